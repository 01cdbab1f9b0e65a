// What the program refuses, in the reader's language. It says it in English; what is known is told in the page's words.

import { t } from "./words.js";

/** Sentences of the program, with what is filled in; the page's words have the same names. @type {[RegExp, string][]} */
const KNOWN = [
  [
    /^a text of (?<n>\d+) characters; (?<most>\d+) are read at most$/,
    "a text of {n} characters; {most} are read at most",
  ],
  [/^a text of (?<n>\d+) words; (?<most>\d+) are read at most$/, "a text of {n} words; {most} are read at most"],
  [
    /^(?<name>.*): a picture of (?<size>\d+×\d+) pixels; (?<most>\d+) are read at most$/,
    "{name}: a picture of {size} pixels; {most} are read at most",
  ],
  [
    /^(?<name>.*): a recording of (?<n>[\d.]+) seconds; (?<most>\d+) are read at most$/,
    "{name}: a recording of {n} seconds; {most} are read at most",
  ],
  [/^(?<name>.*): (?<n>\d+) vectors; (?<most>\d+) are read at most$/, "{name}: {n} vectors; {most} are read at most"],
  [
    /^(?<name>.*): (?<n>\d+) bytes once it is unpacked; (?<most>\d+) are read at most$/,
    "{name}: {n} bytes once it is unpacked; {most} are read at most",
  ],
  [/^the request is larger than (?<most>\d+) bytes$/, "the request is larger than {most} bytes"],
  [/^`.*`: the part has (?<n>\d+) .*, from 0$/, "the part has only {n} examples"],
  [/^this model does not read (?<what>text|files|nodes|points)$/, "this model does not read {what}"],
  [/^the text is empty/, "the text is empty"],
  [/^the question is empty/, "the question is empty"],
];

/** @param {string} text */
export function inWords(text) {
  for (const [pattern, words] of KNOWN) {
    const found = pattern.exec(text);
    if (!found) continue;
    const { what, ...rest } = found.groups || {};
    return t(words, what ? { ...rest, what: t(what) } : rest);
  }
  return t(text);
}
