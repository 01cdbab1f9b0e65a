// What happened, in a sentence: made of the weights that are drawn.

import { make } from "./dom.js";
import { axesOf, isHead, layerAndHead, mapsOf, strongest } from "./scene.js";
import { t } from "./words.js";

/** A share as a person says it. @param {number} share */
export const percent = (share) => (share > 0 && share < 0.01 ? t("< 1 %") : t("{n} %", { n: Math.round(100 * share) }));

/** A word that stands out in a sentence. @param {string} text */
const word = (text) => make("b", { dir: "auto" }, text);

/**
 * A sentence with words that stand out in it.
 * @param {string} text with {names} @param {Record<string, any>} values texts or elements
 */
function phrase(text, values) {
  const parts = t(text).split(/(\{\w+\})/);
  return parts.map((part) => (/^\{\w+\}$/.test(part) ? values[part.slice(1, -1)] : part)).flat();
}

/** Words with their shares: as many as tell the most of it, three at most. */
function shares(weights, from, names) {
  let sum = 0;
  for (let i = 0; i < names.length; i++) sum += Math.max(0, weights[from + i] || 0);
  const best = strongest(weights, from, names.length, 3).filter((i) => weights[from + i] > 0);
  if (!best.length || sum <= 0) return null;
  const share = (i) => weights[from + i] / sum;
  const kept = share(best[0]) >= 0.6 ? best.slice(0, 1) : best.filter((i) => share(i) >= share(best[0]) / 3);
  const list = kept.flatMap((i, place) => [place ? t(", ") : "", word(names[i]), ` (${percent(share(i))})`]);
  return { first: best[0], share: share(best[0]), list };
}

const isEnd = (token) => token === "<end>" || token === "</s>";

/** What one row read. */
function ofRow(one, map, axes, row) {
  const found = shares(map.weights, row * axes.columns.length, axes.columns);
  const who = axes.rows[row];
  if (!found) return phrase("{who} attended to nothing.", { who: word(who) });
  const { row_axis: rowAxis } = one.scene.weights || one.scene;
  if (rowAxis === "output")
    return isEnd(who)
      ? phrase("To stop there, it read {list}.", found)
      : phrase("Writing {who}, it read {list}.", { who: word(who), ...found });
  if (rowAxis === "answer") return phrase("For {who}, it read {list}.", { who: word(who), ...found });
  return phrase("{who} looked at {list}.", { who: word(who), ...found });
}

/** How clear each row is: the share of its strongest. */
function peaks(map, axes) {
  const columns = axes.columns.length;
  return axes.rows
    .map((name, row) => ({ name, row, found: shares(map.weights, row * columns, axes.columns) }))
    .filter(({ name, found }) => found && !isEnd(name));
}

/** What was written from what, over all. */
function ofWriting(map, axes) {
  const all = peaks(map, axes);
  if (!all.length) return null;
  const mean = all.reduce((sum, { found }) => sum + found.share, 0) / all.length;
  if (mean < 0.3)
    return phrase("No source word stands out: the strongest one has {n} on average.", { n: percent(mean) });
  const seen = new Set();
  const clearest = [...all]
    .sort((a, b) => b.found.share - a.found.share)
    .filter(({ found }) => !seen.has(found.first) && seen.add(found.first))
    .slice(0, 3);
  const list = clearest.flatMap(({ name, found }, place) => [
    place ? t(", ") : "",
    ...phrase("{who} from {whom}", { who: word(name), whom: word(axes.columns[found.first]) }),
    ` (${percent(found.share)})`,
  ]);
  return [
    ...phrase("What it wrote, and what it read for it: {list}.", { list }),
    make("span", { class: "hint" }, " ", t("Point at a word to see its own.")),
  ];
}

/** The mean share of the weight that lies so many places to the right of each row. */
function atOffset(map, rows, columns, offset) {
  let [sum, count] = [0, 0];
  for (let row = 0; row < rows; row++) {
    const column = row + offset;
    if (column < 0 || column >= columns) continue;
    let all = 0;
    for (let i = 0; i < columns; i++) all += map.weights[row * columns + i] || 0;
    if (all > 0) {
      sum += map.weights[row * columns + column] / all;
      count += 1;
    }
  }
  return count > 1 ? sum / count : 0;
}

function inColumn(map, rows, columns, column) {
  let sum = 0;
  for (let row = 0; row < rows; row++) sum += map.weights[row * columns + column] || 0;
  return sum / rows;
}

/** Over how many places a row is spread, on average: e to the power of its entropy. */
function spread(map, rows, columns) {
  let [total, count] = [0, 0];
  for (let row = 0; row < rows; row++) {
    let [sum, entropy] = [0, 0];
    for (let i = 0; i < columns; i++) sum += Math.max(0, map.weights[row * columns + i] || 0);
    if (!(sum > 0)) continue;
    for (let i = 0; i < columns; i++) {
      const share = Math.max(0, map.weights[row * columns + i] || 0) / sum;
      if (share > 0) entropy -= share * Math.log(share);
    }
    total += Math.exp(entropy);
    count += 1;
  }
  return count ? total / count : 0;
}

/** Who looks: a head by its name, or what is made of all. */
function subject(one, key, map) {
  if (key === "mean") return t("The mean of all heads");
  if (key === "rollout") return t("The layers together");
  const place = layerAndHead(map);
  if (!place || mapsOf(one).length < 2) return t("Each word");
  return mapsOf(one).some((other) => (layerAndHead(other)?.[0] ?? 0) > 0)
    ? t("Head {head} of layer {layer}", { layer: place[0] + 1, head: place[1] + 1 })
    : t("Head {head}", { head: place[1] + 1 });
}

/** What a head does among the words of one text. */
function ofHead(one, key, map, axes) {
  const [rows, columns] = [axes.rows.length, axes.columns.length],
    who = subject(one, key, map);
  const patterns = /** @type {[string, number, string?][]} */ ([
    ["{who} mostly looks one word back ({n}).", atOffset(map, rows, columns, -1)],
    ["{who} mostly looks at the word itself ({n}).", atOffset(map, rows, columns, 0)],
    ["{who} mostly looks one word ahead ({n}).", atOffset(map, rows, columns, 1)],
  ]);
  if (rows === columns && columns > 2) {
    for (let column = 0; column < columns; column++) {
      const share = inColumn(map, rows, columns, column);
      if (share > patterns[0][1]) patterns.push(["{who} mostly looks at {whom} ({n}).", share, axes.columns[column]]);
    }
    const [text, share, whom] = patterns.reduce((best, one) => (one[1] > best[1] ? one : best));
    if (share >= 0.4) return phrase(text, { who, n: percent(share), whom: whom && word(whom) });
  }
  const over = spread(map, rows, columns);
  return phrase("{who} is spread over about {n} of {all} words.", {
    who,
    n: over.toFixed(over < 10 ? 1 : 0),
    all: columns,
  });
}

/** Hops over sentences: a column each. */
function ofHops(one, map, axes) {
  const [rows, columns] = [axes.rows.length, axes.columns.length];
  // A reader's columns are where its answer starts and ends; those of a memory are its hops.
  const steps = one.scene.columns[0] === "start" ? ["The answer starts in {whom}", "it ends in {whom}"] : [];
  const list = axes.columns.flatMap((_, column) => {
    let best = 0;
    for (let row = 1; row < rows; row++)
      if (map.weights[row * columns + column] > map.weights[best * columns + column]) best = row;
    const sentence = axes.rows[best].replace(/ ←$/, "");
    return [
      column ? t("; ") : "",
      ...phrase(steps[column] || "Hop {n} read {whom}", { n: column + 1, whom: word(sentence) }),
      ` (${percent(map.weights[best * columns + column])})`,
    ];
  });
  return phrase("{list}.", { list });
}

const SIDES = [
  ["the top left", "the top", "the top right"],
  ["the left", "the middle", "the right"],
  ["the bottom left", "the bottom", "the bottom right"],
];

/** Where in a picture the weight lies. */
function ofPicture(one, key, map) {
  const { rows, columns } = one.scene,
    { weights } = map;
  let [sum, x, y, most] = [0, 0, 0, 0];
  for (let i = 0; i < weights.length; i++) {
    sum += weights[i];
    most = Math.max(most, weights[i]);
    x += weights[i] * ((i % columns) + 0.5);
    y += weights[i] * (Math.floor(i / columns) + 0.5);
  }
  if (!(sum > 0)) return phrase("{who} attended to nothing.", { who: word(map.name) });
  // The fewest patches that hold half of the weight.
  const sorted = [...weights].sort((a, b) => b - a);
  let [held, count] = [0, 0];
  while (held < sum / 2 && count < sorted.length) held += sorted[count++];
  const third = (share) => Math.min(2, Math.floor(3 * share));
  const strong = strongest(weights, 0, weights.length, Math.max(1, count));
  const mean = (of) => strong.reduce((total, i) => total + of(i), 0) / strong.length;
  const place = t(
    SIDES[third(mean((i) => (Math.floor(i / columns) + 0.5) / rows))][
      third(mean((i) => ((i % columns) + 0.5) / columns))
    ],
  );
  const values = { place: word(place), count, all: weights.length };
  if (count > weights.length / 3)
    return phrase("It looked all over the picture: half of the weight needs {count} of {all} patches.", values);
  return isHead(map) || key === "mean" || key === "rollout" || mapsOf(one).length === 1
    ? phrase("It looked mostly at {place}: half of the weight lies on {count} of {all} patches.", values)
    : phrase("Writing {who}, it looked mostly at {place}: half of the weight lies on {count} of {all} patches.", {
        ...values,
        who: word(map.name),
      });
}

/** The stretch of time that holds most of a row's weight. */
function ofSound(one, map, axes, row) {
  const { key_step: step } = one.scene,
    columns = axes.columns.length,
    start = row * columns;
  const best = strongest(map.weights, start, columns, 1)[0];
  if (best === undefined) return null;
  let [from, to, sum, all] = [best, best, map.weights[start + best], 0];
  for (let i = 0; i < columns; i++) all += map.weights[start + i];
  while (sum < 0.6 * all && (from > 0 || to < columns - 1)) {
    const [left, right] = [
      from > 0 ? map.weights[start + from - 1] : -1,
      to < columns - 1 ? map.weights[start + to + 1] : -1,
    ];
    if (left > right) sum += map.weights[start + --from];
    else sum += map.weights[start + ++to];
  }
  const unit = one.scene.unit === "seconds" ? " s" : "";
  const when = word(`${(from * step).toFixed(2)}–${((to + 1) * step).toFixed(2)}${unit}`);
  const values = { who: word(axes.rows[row]), when, n: percent(sum / all) };
  if (one.scene.weights.row_axis !== "output") return phrase("At {who}, it listened mostly to {when} ({n}).", values);
  return isEnd(axes.rows[row])
    ? phrase("To stop there, it listened mostly to {when} ({n}).", values)
    : phrase("Writing {who}, it listened mostly to {when} ({n}).", values);
}

/** The data that a point of a curve is made of. */
function ofCurve(one, map) {
  const { x, at, query } = one.scene;
  let row = 0;
  at.forEach((value, i) => {
    if (Math.abs(value - (query ?? at[0])) < Math.abs(at[row] - (query ?? at[0]))) row = i;
  });
  const weights = map.weights.subarray(row * x.length, (row + 1) * x.length);
  const sum = weights.reduce((total, value) => total + value, 0);
  const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
  let [held, count] = [0, 0];
  while (held < sum / 2 && count < order.length) held += weights[order[count++]];
  const near = order.slice(0, count).map((i) => x[i]);
  return phrase("At {x}, half of the weight lies on {count} of {all} data, from {low} to {high}.", {
    x: word(`x = ${Number((query ?? at[row]).toFixed(2))}`),
    count,
    all: x.length,
    low: Math.min(...near).toFixed(2),
    high: Math.max(...near).toFixed(2),
  });
}

/** The strongest edge of a graph of which no node is asked about. */
function ofWholeGraph(one, map) {
  const { nodes, edges } = one.scene;
  const order = [...edges.keys()].filter((edge) => edges[edge][0] !== edges[edge][1]);
  const best = order.reduce((top, edge) => (top === null || map.weights[edge] > map.weights[top] ? edge : top), null);
  if (best === null) return null;
  const [who, whom] = edges[best];
  return phrase("Of {n} edges the strongest is that of node {who}, which listens to {whom} with {share} %.", {
    n: order.length,
    who: word(String(nodes[who])),
    whom: word(String(nodes[whom])),
    share: Math.round(100 * map.weights[best]),
  });
}

/** The neighbors a node listens to. */
function ofGraph(one, map) {
  const { nodes, edges, center: own } = one.scene;
  if (own === null || own === undefined) return ofWholeGraph(one, map);
  const from = edges
    .map(([who, whom], edge) => ({ who, whom, weight: map.weights[edge] }))
    .filter(({ who }) => who === own);
  const found = shares(
    from.map(({ weight }) => weight),
    0,
    from.map(({ whom }) => (whom === own ? t("itself") : String(nodes[whom]))),
  );
  if (!found) return null;
  return phrase("Node {who} listens mostly to {list}, of {n} neighbors.", {
    who: word(String(nodes[own])),
    n: from.filter(({ whom }) => whom !== own).length,
    ...found,
  });
}

/**
 * What happened, in a sentence; null where there is nothing to say.
 * @param {any} one the scene @param {string} key which map @param {any} map
 * @param {[number, number] | null} cursor the cell that is pointed at
 * @returns {any[] | null}
 */
export function told(one, key, map, cursor) {
  const { kind } = one.scene,
    axes = axesOf(one);
  if (kind === "image") return ofPicture(one, key, map);
  if (kind === "graph") return ofGraph(one, map);
  if (kind === "curve") return ofCurve(one, map);
  if (!axes) return null;
  const row = cursor && cursor[0] < axes.rows.length ? cursor[0] : null;
  if (kind === "sound") return ofSound(one, map, axes, row ?? 0);
  if (one.scene.row_axis === "sentence") return ofHops(one, map, axes);
  if (row !== null || axes.rows.length === 1) return ofRow(one, map, axes, row ?? 0);
  return one.scene.row_axis === "output" && one.scene.column_axis === "source"
    ? ofWriting(map, axes)
    : ofHead(one, key, map, axes);
}
