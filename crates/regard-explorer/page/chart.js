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
const tick = (value) =>
  value === 0
    ? "0"
    : Math.abs(value) >= 1000 || Math.abs(value) < 0.001
      ? value.toExponential(0)
      : String(Number(value.toPrecision(3)));

/** Round places on an axis. @param {number} low @param {number} high */
function ticks(low, high, most = 4) {
  const raw = (high - low) / most,
    power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= raw) || power;
  const out = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step / 1e6; value += step)
    out.push(Number(value.toPrecision(10)));
  return out;
}

/**
 * @param {string} name
 * @param {{name: string, color?: number, points: [number, number][]}[]} lines
 * @param {{mark?: number | null}} [more] where the eye should be
 */
export function chart(name, lines, { mark = null } = {}) {
  const all = lines.flatMap((line) => line.points).filter(([, y]) => Number.isFinite(y));
  if (!all.length)
    return make(
      "figure",
      { class: "card" },
      make("h2", {}, t(name)),
      make("p", { class: "quiet small" }, t("nothing yet")),
    );
  const [left, right] = [Math.min(...all.map(([a]) => a)), Math.max(...all.map(([a]) => a))];
  let [low, high] = [Math.min(...all.map(([, b]) => b)), Math.max(...all.map(([, b]) => b))];
  if (high - low < 1e-9) [low, high] = [low - (Math.abs(low) * 0.1 || 0.5), high + (Math.abs(high) * 0.1 || 0.5)];
  const px = (value) => LEFT + (right > left ? (value - left) / (right - left) : 0.5) * (WIDTH - LEFT - RIGHT);
  const py = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const last = lines
    .map((line) => line.points[line.points.length - 1])
    .filter(Boolean)
    .map(([, y]) => tick(y));
  const svg = shape("svg", {
    class: "drawing",
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    "aria-label": `${t(name)}: ${last.join(", ")}`,
  });
  for (const value of ticks(low, high))
    svg.append(
      shape("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: py(value), y2: py(value) }),
      shape("text", { class: "faint", x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, tick(value)),
    );
  for (const value of ticks(left, right, 6).filter((one) => Number.isInteger(one)))
    svg.append(shape("text", { class: "faint", x: px(value), y: HEIGHT - 8, "text-anchor": "middle" }, value));
  if (mark !== null && mark >= left && mark <= right)
    svg.append(
      shape("line", {
        x1: px(mark),
        x2: px(mark),
        y1: TOP,
        y2: HEIGHT - BOTTOM,
        stroke: "var(--mark)",
        "stroke-dasharray": "3 3",
      }),
    );
  lines.forEach((line, i) => {
    const color = named(line.color ?? i, isDark()),
      points = line.points.filter(([, y]) => Number.isFinite(y));
    const d = points.map(([a, b], place) => `${place ? "L" : "M"}${px(a).toFixed(1)} ${py(b).toFixed(1)}`).join("");
    svg.append(
      shape(
        "path",
        { d, fill: "none", stroke: color, "stroke-width": 1.8, "stroke-linejoin": "round" },
        shape("title", {}, line.name),
      ),
    );
    const end = points[points.length - 1];
    if (end)
      svg.append(
        shape(
          "circle",
          { cx: px(end[0]), cy: py(end[1]), r: 2.8, fill: color },
          shape("title", {}, `${line.name}: ${tick(end[1])}`),
        ),
      );
  });
  return make(
    "figure",
    { class: "card", "data-measure": name },
    make(
      "div",
      { class: "row spread" },
      make("h2", {}, t(name)),
      make("span", { class: "quiet small number" }, lines.length === 1 ? last[0] : t("over epochs")),
    ),
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
    for (const [name, value] of [
      ...scoresOf(record),
      ["loss", record.loss],
      ["learning rate", record.rate ?? record.learning_rate],
    ]) {
      if (typeof value !== "number" || !Number.isFinite(value)) continue;
      if (!out.has(name)) out.set(name, []);
      out.get(name).push([x, value]);
    }
  });
  return out;
}
