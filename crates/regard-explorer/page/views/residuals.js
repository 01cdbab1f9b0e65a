// How far numbers are off: what was predicted less what is true, over what is true.

import { make, shape } from "../dom.js";
import { tick, ticks } from "../chart.js";
import { written } from "../draw.js";
import { t } from "../words.js";

const WIDTH = 400,
  HEIGHT = 230,
  LEFT = 52,
  RIGHT = 12,
  TOP = 12,
  BOTTOM = 30;

/** From the least to the greatest of some numbers; some room where they are all the same. */
function rangeOf(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) [low, high] = [Math.min(low, value), Math.max(high, value)];
  const room = high > low ? 0.04 * (high - low) : Math.abs(high) * 0.1 || 0.5;
  return [low - room, high + room];
}

/**
 * @param {{count: number, points: [number, number, number][], mean: number, greatest: number}} residuals
 * @param {(index: number) => void} open an example
 */
export function residualsCard({ count, points, mean, greatest }, open) {
  const all = points.filter(([, truth, given]) => Number.isFinite(truth) && Number.isFinite(given));
  const [left, right] = rangeOf(all.map(([, truth]) => truth)),
    [low, high] = rangeOf([0, ...all.map(([, truth, given]) => given - truth)]);
  const px = (value) => LEFT + ((value - left) / (right - left)) * (WIDTH - LEFT - RIGHT),
    py = (value) => HEIGHT - BOTTOM - ((value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const across = { x1: LEFT, x2: WIDTH - RIGHT };
  const axes = [
    ticks(low, high).map((value) => [
      shape("line", { class: "axis", ...across, y1: py(value), y2: py(value) }),
      shape("text", { class: "faint", x: LEFT - 6, y: py(value) + 4, "text-anchor": "end" }, tick(value)),
    ]),
    ticks(left, right, 5).map((value) =>
      shape("text", { class: "faint", x: px(value), y: HEIGHT - 14, "text-anchor": "middle" }, tick(value)),
    ),
    shape("line", { class: "zero", ...across, y1: py(0), y2: py(0) }),
    shape("text", { class: "faint", x: WIDTH - RIGHT, y: HEIGHT - 1, "text-anchor": "end" }, t("what is true")),
  ];
  const dot = ([index, truth, given]) =>
    shape(
      "circle",
      { class: "dot", cx: px(truth), cy: py(given - truth), r: 3, "data-index": index, onclick: () => open(index) },
      shape("title", {}, `${t("number")} ${index + 1}: ${written(truth)} → ${written(given)}`),
    );
  const told = t("On average it is off by {mean}, at worst by {greatest}.", { mean: written(mean), greatest: written(greatest) });
  return make(
    "figure",
    { class: "card", id: "residuals" },
    make("h2", {}, t("How far off: predicted less true")),
    make("p", {}, told),
    shape("svg", { class: "drawing", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": told }, axes, all.map(dot)),
    make(
      "p",
      { class: "quiet small" },
      points.length < count ? t("{n} of {count} examples are drawn, evenly chosen.", { n: points.length, count }) : "",
      " ",
      t("A dot opens its example; the same numbers are in the table."),
    ),
  );
}
