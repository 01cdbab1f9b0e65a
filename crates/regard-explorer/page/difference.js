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
 * The longest common subsequence, as what stayed, went and came.
 * @param {string} before @param {string} after
 * @returns {{kind: string, text: string}[]}
 */
export function differenceOf(before, after) {
  const [a, b] = [pieces(before).slice(0, 2000), pieces(after).slice(0, 2000)];
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
  const out = [];
  const add = (kind, text) => {
    const last = out[out.length - 1];
    if (last?.kind === kind) last.text += text;
    else out.push({ kind, text });
  };
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add("same", a[i++]);
      j++;
    } else if (j >= b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]))
      add("removed", a[i++]);
    else add("added", b[j++]);
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
