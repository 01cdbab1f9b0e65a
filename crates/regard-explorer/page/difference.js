// What differs between two outputs, token by token.

import { make } from "./dom.js";

/** Words and spaces; where a script writes no spaces, each character. @param {string} text */
export function pieces(text) {
  return (
    text.match(
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}\p{M}'’_-]+|\s+|\p{Extended_Pictographic}(?:\u200d\p{Extended_Pictographic}|\ufe0f|\p{Emoji_Modifier})*|[^\s]/gu,
    ) || []
  );
}

/**
 * The longest common subsequence of two lists: pairs of places, null where one has nothing.
 * @param {string[]} a @param {string[]} b
 * @returns {[number | null, number | null][]}
 */
export function aligned(a, b) {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const out = /** @type {[number | null, number | null][]} */ ([]);
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) out.push([i++, j++]);
    else if (j >= b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]))
      out.push([i++, null]);
    else out.push([null, j++]);
  }
  return out;
}

/**
 * What stayed, went and came.
 * @param {string} before @param {string} after
 * @returns {{kind: string, text: string}[]}
 */
export function differenceOf(before, after) {
  const [a, b] = [pieces(before).slice(0, 2000), pieces(after).slice(0, 2000)];
  const out = [];
  for (const [i, j] of aligned(a, b)) {
    const kind = i === null ? "added" : j === null ? "removed" : "same",
      last = out[out.length - 1];
    const text = i === null ? b[j] : a[i];
    if (last?.kind === kind) last.text += text;
    else out.push({ kind, text });
  }
  return out;
}

/** The old output with what went marked. @param {{kind: string, text: string}[]} parts */
export const oldOf = (parts) =>
  parts
    .filter(({ kind }) => kind !== "added")
    .map(({ kind, text }) => (kind === "same" ? text : make("del", {}, text)));

/** The new output with what came marked. @param {{kind: string, text: string}[]} parts */
export const newOf = (parts) =>
  parts
    .filter(({ kind }) => kind !== "removed")
    .map(({ kind, text }) => (kind === "same" ? text : make("ins", {}, text)));
