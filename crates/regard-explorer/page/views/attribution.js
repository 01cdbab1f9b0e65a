// Ways of telling which parts of an input matter, and the curve that says which of them is right.

import { chart, key } from "../chart.js";
import { make } from "../dom.js";
import { written } from "../draw.js";
import { t } from "../words.js";

/** What each method is called. @type {[string, string][]} */
const METHODS = [
  ["gradient-input", "Gradient × input"],
  ["integrated-gradients", "Integrated gradients"],
  ["attention", "Attention"],
  ["attention-gradient", "Attention × gradient"],
  ["rollout", "Rollout"],
];

/** The method that is looked at. */
export const chosen = { method: METHODS[0][0] };

/** @param {string} method */
export const methodName = (method) => t(METHODS.find(([name]) => name === method)?.[1] ?? METHODS[0][1]);

/** A choice of the method. @param {() => void} again what draws anew */
export function methods(again) {
  const select = make(
    "select",
    {
      id: "method",
      onchange: () => {
        chosen.method = select.value;
        again();
      },
    },
    METHODS.map(([value, name]) => make("option", { value, selected: value === chosen.method }, t(name))),
  );
  return make("label", { class: "row" }, t("Method of attribution"), select);
}

/** What is predicted while parts of the input go, in three orders. @param {any} answer */
export function curve(answer) {
  const faithful = answer.faithfulness;
  if (!faithful) return undefined;
  const orders = /** @type {[string, any][]} */ ([
    ["what matters most first", faithful.most],
    ["what matters least first", faithful.least],
    ["in random order", faithful.random],
  ]);
  const lines = orders.map(([name, { scores }], color) => ({
    name: t(name),
    color,
    points: scores.map((score, at) => [100 * faithful.removed[at], score ?? NaN]),
  }));
  return make(
    "div",
    { id: "faithfulness" },
    chart("While parts of the input are taken away", lines, { over: t("% taken away") }),
    key(lines.map(({ name }) => name)),
    make(
      "p",
      { class: "small" },
      t(
        "On average it falls by {most} if what matters most is taken away first, by {random} in random order, and by {least} if what matters least goes first. The larger the first number and the smaller the last, the more faithful the explanation.",
        { most: written(faithful.most.area), random: written(faithful.random.area), least: written(faithful.least.area) },
      ),
    ),
  );
}
