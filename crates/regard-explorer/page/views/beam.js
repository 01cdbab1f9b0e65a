// The beam as a tree: what was written step by step, what fell out, and the scores.

import { make, shape, table } from "../dom.js";
import { paper } from "../theme.js";
import { t } from "../words.js";

const PITCH = 36,
  FALLEN = 2;

/** How wide a token is drawn, about. @param {string} text */
const wide = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 13.5 : 7.6), 4);

const label = (node) =>
  node.ended && !node.token ? "∎" : [...node.token].slice(0, 9).join("") + (node.ended ? " ∎" : "");

/** What was kept, and of what fell out the best of each step: all of it would be a thicket. */
function few(nodes) {
  const fallen = new Map();
  for (const node of nodes) if (!node.kept) fallen.set(node.step, [...(fallen.get(node.step) || []), node]);
  const near = new Set(
    [...fallen.values()].flatMap((all) => all.sort((a, b) => b.total - a.total).slice(0, FALLEN)).map(({ id }) => id),
  );
  return nodes.filter((node) => node.kept || near.has(node.id));
}

/** Where each node stands: a column for each step, the best on top. @returns {Map<number, [number, number]>} */
function places(nodes, best, wideStep) {
  const at = new Map(),
    columns = new Map();
  for (const node of nodes) columns.set(node.step, [...(columns.get(node.step) || []), node]);
  for (const [step, column] of columns) {
    column.sort((a, b) => Number(best.has(b.id)) - Number(best.has(a.id)) || b.total - a.total);
    column.forEach((node, i) => at.set(node.id, [8 + step * wideStep, 16 + i * PITCH]));
  }
  return at;
}

/** The line from a node's parent to it. */
function branch(node, parent, at, isBest, ink, wideStep) {
  const [x, y] = at.get(node.id),
    [left, top] = at.get(parent.id);
  const from = left + Math.min(wideStep - 14, wide(label(parent)));
  return shape("path", {
    d: `M${from} ${top}C${x - 14} ${top} ${x - 34} ${y} ${x - 4} ${y}`,
    fill: "none",
    stroke: isBest ? ink.mark : ink.edge,
    "stroke-width": isBest ? 2 : 1,
    "stroke-opacity": node.kept ? 0.8 : 0.3,
  });
}

/** A node's token; one that fell out of the beam is struck through. */
function token(node, [x, y], isBest, ink) {
  const fell = node.kept ? "" : ` (${t("fell out of the beam")})`;
  const told = `${node.token}: ${node.log_prob.toFixed(3)}, ${t("in all")} ${node.total.toFixed(3)}${fell}`;
  // How likely it was, after what stands before it.
  const likely = shape(
    "text",
    { x, y: y + 17, "font-size": 10.5, fill: ink.faint },
    `${Math.round(100 * Math.exp(node.log_prob))} %`,
  );
  const word = shape(
    "text",
    {
      x,
      y: y + 4,
      "font-size": 14,
      "font-weight": isBest ? 700 : 400,
      fill: isBest ? ink.mark : node.kept ? ink.ink : ink.faint,
      "text-decoration": node.kept ? undefined : "line-through",
    },
    label(node),
    shape("title", {}, told),
  );
  return [word, likely];
}

/** @param {any} answer */
export function drawBeam(answer) {
  const ink = paper(),
    best = new Set(answer.hypotheses[0]?.nodes || []);
  const nodes = few(answer.nodes);
  const wideStep = nodes.reduce((most, node) => Math.max(most, wide(label(node)) + 34), 58);
  const at = places(nodes, best, wideStep),
    byId = new Map(nodes.map((node) => [node.id, node]));
  const far = (axis) => [...at.values()].reduce((most, place) => Math.max(most, place[axis]), 0);
  const [width, height] = [far(0) + wideStep, far(1) + PITCH];
  const name = t("Beam of {width} as a tree; the hypotheses are listed below", { width: answer.width });
  const svg = shape("svg", {
    class: "beam",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": name,
  });
  for (const node of nodes)
    if (byId.has(node.parent)) svg.append(branch(node, byId.get(node.parent), at, best.has(node.id), ink, wideStep));
  for (const node of nodes) svg.append(...token(node, at.get(node.id), best.has(node.id), ink));
  const number = (value) => make("td", { class: "number" }, value.toFixed(3));
  const rows = answer.hypotheses.map((one) =>
    make("tr", {}, make("td", { class: "wrap", dir: "auto" }, one.output), number(one.score), number(one.log_prob)),
  );
  return [
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("Beam") }, svg),
    make(
      "div",
      { class: "scroll" },
      table([[t("Output")], [t("score"), "number"], [t("log-probability"), "number"]], rows),
    ),
  ];
}
