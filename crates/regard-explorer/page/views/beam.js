// The beam as a tree: what was written step by step, what fell out, and the scores.

import { make, shape } from "../dom.js";
import { paper } from "../theme.js";
import { t } from "../words.js";

const STEP = 92,
  PITCH = 24;

/** How wide a token is drawn, about. @param {string} text */
const wide = (text) => [...text].reduce((sum, letter) => sum + (letter > "\u2e80" ? 13.5 : 7.6), 4);

/** @param {any} answer */
export function drawBeam(answer) {
  const ink = paper();
  const best = new Set(answer.hypotheses[0]?.nodes || []);
  const used = new Set(answer.hypotheses.flatMap((one) => one.nodes));
  const steps = answer.nodes.reduce((most, node) => Math.max(most, node.step), 0) + 1;
  const columns = Array.from({ length: steps }, () => /** @type {any[]} */ ([]));
  answer.nodes.forEach((node) => columns[node.step].push(node));
  const tallest = Math.max(...columns.map((column) => column.length));
  const at = new Map(),
    ends = new Map();
  const label = (node) =>
    node.ended && !node.token ? "∎" : [...node.token].slice(0, 9).join("") + (node.ended ? " ∎" : "");
  columns.forEach((column, step) => {
    column.sort((a, b) => Number(best.has(b.id)) - Number(best.has(a.id)) || b.total - a.total);
    column.forEach((node, i) => {
      at.set(node.id, [8 + step * STEP, 16 + i * PITCH]);
      ends.set(node.id, Math.min(STEP - 14, wide(label(node))));
    });
  });
  const [width, height] = [steps * STEP + 20, tallest * PITCH + 16];
  const svg = shape("svg", {
    class: "beam",
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "img",
    "aria-label": t("Beam of {width} as a tree; the hypotheses are listed below", { width: answer.width }),
  });
  for (const node of answer.nodes) {
    const [x, y] = at.get(node.id),
      from = node.parent === null ? null : at.get(node.parent);
    if (from)
      svg.append(
        shape("path", {
          d: `M${from[0] + ends.get(node.parent)} ${from[1]}C${x - 14} ${from[1]} ${x - 34} ${y} ${x - 4} ${y}`,
          fill: "none",
          stroke: best.has(node.id) ? ink.mark : ink.edge,
          "stroke-width": best.has(node.id) ? 2 : 1,
          "stroke-opacity": node.kept ? 0.8 : 0.3,
        }),
      );
  }
  for (const node of answer.nodes) {
    const [x, y] = at.get(node.id);
    svg.append(
      shape(
        "text",
        {
          x,
          y: y + 4,
          "font-size": 13,
          "font-weight": best.has(node.id) ? 700 : 400,
          fill: best.has(node.id) ? ink.mark : node.kept || used.has(node.id) ? ink.ink : ink.faint,
          "text-decoration": node.kept ? undefined : "line-through",
        },
        label(node),
        shape(
          "title",
          {},
          `${node.token}: ${node.log_prob.toFixed(3)}, ${t("in all")} ${node.total.toFixed(3)}${node.kept ? "" : ` (${t("fell out of the beam")})`}`,
        ),
      ),
    );
  }
  const list = make(
    "table",
    {},
    make(
      "thead",
      {},
      make(
        "tr",
        {},
        make("th", {}, t("Output")),
        make("th", { class: "number" }, t("score")),
        make("th", { class: "number" }, t("log-probability")),
      ),
    ),
    make(
      "tbody",
      {},
      answer.hypotheses.map((one) =>
        make(
          "tr",
          {},
          make("td", { class: "wrap", dir: "auto" }, one.output),
          make("td", { class: "number" }, one.score.toFixed(3)),
          make("td", { class: "number" }, one.log_prob.toFixed(3)),
        ),
      ),
    ),
  );
  return [
    make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": t("Beam") }, svg),
    make("div", { class: "scroll" }, list),
  ];
}
