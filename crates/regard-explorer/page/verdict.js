// Whether an answer is right: a mark, and word by word what differs from what was expected. Green is right, and
// nothing else is green.

import { make } from "./dom.js";
import { differenceOf } from "./difference.js";
import { written } from "./draw.js";
import { isPicture } from "./drawn.js";
import { t } from "./words.js";

/**
 * @typedef {{right: boolean | null, off: number | null, truth: string, parts: {kind: string, text: string}[]}} Verdict
 */

/** The truths that are as good as each other. @param {string} truth */
const alternatives = (truth) => (truth.includes(" | ") ? truth.split(" | ") : [truth]);

const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));

/** What is different, the nearest of several truths. */
function nearest(truth, output) {
  const all = alternatives(truth).map((one) => ({ truth: one, parts: differenceOf(one, output) }));
  const size = ({ parts }) =>
    parts.filter(({ kind }) => kind !== "same").reduce((sum, { text }) => sum + text.length, 0);
  return all.reduce((best, one) => (size(one) < size(best) ? one : best));
}

/**
 * @param {string | null | undefined} truth @param {string} output
 * @returns {Verdict | null} null where nothing is known
 */
export function verdictOf(truth, output) {
  // Many pictures are right for a sentence.
  if (truth === null || truth === undefined || isPicture(truth)) return null;
  const given = output === "" ? "(none)" : output;
  // A number is never the same to the last digit: it is so far off.
  if (isNumber(truth) && isNumber(output) && /[.e]/.test(truth + output))
    return { right: null, off: Math.abs(Number(truth) - Number(output)), truth, parts: [] };
  const right = alternatives(truth).some((one) => one.trim() === given.trim() || one.trim() === output.trim());
  return { right, off: null, ...(right ? { truth: output, parts: [] } : nearest(truth, output)) };
}

/** The mark: right, wrong, or how far off. @param {Verdict | null} verdict */
export function mark(verdict) {
  if (!verdict) return null;
  if (verdict.off !== null) return make("span", { class: "verdict" }, t("off by {n}", { n: written(verdict.off) }));
  return verdict.right
    ? make("span", { class: "verdict right" }, "✓ ", t("right"))
    : make("span", { class: "verdict wrong" }, "✗ ", t("wrong"));
}

/** An output whose words that were not expected are marked. @param {Verdict | null} verdict @param {string} output */
export const marked = (verdict, output) =>
  !verdict?.parts.length
    ? output
    : verdict.parts
        .filter(({ kind }) => kind !== "removed")
        .map(({ kind, text }) =>
          kind === "same" || !text.trim() ? text : make("span", { class: "not-expected" }, text),
        );

/** What was expected where the answer is something else, what is missing marked. @param {Verdict | null} verdict */
export function expected(verdict) {
  if (!verdict || verdict.right) return null;
  const words = verdict.parts.length
    ? verdict.parts
        .filter(({ kind }) => kind !== "added")
        .map(({ kind, text }) => (kind === "same" || !text.trim() ? text : make("span", { class: "missing" }, text)))
    : verdict.truth;
  return make(
    "p",
    { class: "expected wrap", dir: "auto" },
    make("span", { class: "quiet" }, t("Expected: ")),
    words,
  );
}
