// Lines over epochs or steps: one chart for one measure, a line for each run.

import { make, shape } from "./dom.js";
import { named } from "./draw.js";
import { isDark } from "./theme.js";
import { t } from "./words.js";

const WIDTH = 400,
  HEIGHT = 190,
  LEFT = 46,
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 26;

/** A number on an axis. @param {number} value */
export const tick = (value) =>
  value === 0
    ? "0"
    : Math.abs(value) >= 1000 || Math.abs(value) < 0.001
      ? value.toExponential(0)
      : String(Number(value.toPrecision(3)));

/** Round places on an axis. @param {number} low @param {number} high */
export function ticks(low, high, most = 4) {
  const raw = (high - low) / most,
    power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw) || power;
  const out = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step)
    out.push(Number(value.toPrecision(10)));
  return out;
}

/** Where a point stands on the chart. @param {[number, number][]} all */
function scaleOf(all) {
  const of = (axis, pick) => all.reduce((found, point) => pick(found, point[axis]), all[0][axis]);
  const [left, right] = [of(0, Math.min), of(0, Math.max)];
  let [low, high] = [of(1, Math.min), of(1, Math.max)];
  if (high - low < 1e-9) [low, high] = [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  return {
    left,
    right,
    low,
    high,
    px: (value) => LEFT + (right > left ? (value - left) / (right - left) : 0.5) * (WIDTH - LEFT - RIGHT),
    py: (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM),
  };
}

/** Numbers along both sides, and a mark where the eye should be. */
function axes({ left, right, low, high, px, py }, mark) {
  const across = { x1: LEFT, x2: WIDTH - RIGHT };
  const levels = ticks(low, high).map((value) => [
    shape("line", { class: "axis", ...across, y1: py(value), y2: py(value) }),
    shape("text", { class: "faint", x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, tick(value)),
  ]);
  const epochs = ticks(left, right, 6)
    .filter(Number.isInteger)
    .map((value) => shape("text", { class: "faint", x: px(value), y: HEIGHT - 8, "text-anchor": "middle" }, value));
  const seen = mark !== null && mark >= left && mark <= right;
  const at =
    seen &&
    shape("line", {
      x1: px(mark),
      x2: px(mark),
      y1: TOP,
      y2: HEIGHT - BOTTOM,
      stroke: "var(--mark)",
      "stroke-dasharray": "3 3",
    });
  return [levels, epochs, at];
}

/** A line, and a dot at its end. */
function drawn(line, color, { px, py }) {
  const points = line.points.filter(([, y]) => Number.isFinite(y));
  const d = points.map(([a, b], place) => `${place ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
  const [x, y] = points[points.length - 1] || [];
  return [
    shape(
      "path",
      { d, fill: "none", stroke: color, "stroke-width": 1.8, "stroke-linejoin": "round" },
      shape("title", {}, line.name),
    ),
    x !== undefined &&
      shape("circle", { cx: px(x), cy: py(y), r: 2.8, fill: color }, shape("title", {}, `${line.name}: ${tick(y)}`)),
  ];
}

/**
 * @param {string} name
 * @param {{name: string, color?: number, points: [number, number][]}[]} lines
 * @param {{mark?: number | null, over?: string}} [more] where the eye should be, and what several lines go over
 */
export function chart(name, lines, { mark = null, over = t("over epochs") } = {}) {
  const all = lines.flatMap((line) => line.points).filter(([, y]) => Number.isFinite(y));
  const title = make("h2", {}, t(name));
  if (!all.length)
    return make("figure", { class: "card" }, title, make("p", { class: "quiet small" }, t("nothing yet")));
  const scale = scaleOf(all);
  const last = lines.filter((line) => line.points.length).map((line) => tick(line.points[line.points.length - 1][1]));
  const svg = shape(
    "svg",
    {
      class: "drawing",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `${t(name)}: ${last.join(", ")}`,
    },
    axes(scale, mark),
    lines.map((line, i) => drawn(line, named(line.color ?? i, isDark()), scale)),
  );
  const value = make("span", { class: "quiet small number" }, lines.length === 1 ? last[0] : over);
  return make(
    "figure",
    { class: "card", "data-measure": name },
    make("div", { class: "row spread" }, title, value),
    svg,
  );
}

/** Which line is whose. @param {string[]} names @param {number[]} [colors] */
export const key = (names, colors) =>
  make(
    "div",
    { class: "key" },
    names.map((name, i) => {
      const swatch = make("i");
      swatch.style.background = named(colors ? colors[i] : i, isDark());
      return make("span", {}, swatch, name);
    }),
  );

/** The scores of a record, or of what `regard eval` measured. @param {any} record @returns {[string, number][]} */
export function scoresOf(record) {
  const scores = record?.validation || record?.scores || {};
  const pairs = Array.isArray(scores.values) ? scores.values : Object.entries(scores);
  return pairs.filter(([, value]) => typeof value === "number");
}

/**
 * The lines of a run's records: every score, the loss and the learning rate, by epoch.
 * @param {any[]} records
 * @returns {Map<string, [number, number][]>}
 */
export function linesOf(records) {
  const out = new Map();
  records.forEach((record, i) => {
    const x = record.epoch ?? i + 1;
    // The score that decides first, beside the loss.
    const [first, ...others] = scoresOf(record);
    const all = [first || ["", NaN], ["training loss", record.loss], ...others, ["learning rate", record.rate]];
    for (const [name, value] of all) {
      if (typeof value !== "number" || !Number.isFinite(value)) continue;
      if (!out.has(name)) out.set(name, []);
      out.get(name).push([x, value]);
    }
  });
  return out;
}
