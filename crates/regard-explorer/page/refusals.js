// What the program refuses, in the reader's language. It says it in English; what is known is told in the page's words.

import { t } from "./words.js";

/** What is said in fewer words than the program has. @type {Record<string, string>} */
const SHORTER = { "`{name}`: the part has {n} {unit}, from 0": "the part has only {n} examples" };

/**
 * Sentences of the program, with what is filled in, the longest first; the page's words have the same names.
 */
const KNOWN = [
  "a text of {n} characters; {most} are read at most",
  "a text of {n} words; {most} are read at most",
  "{name}: a picture of {size} pixels; {most} are read at most",
  "{name}: a recording of more than {n} seconds; {most} are read at most",
  "{name}: {n} vectors; {most} are read at most",
  "{name}: {n} bytes once it is unpacked; {most} are read at most",
  "the request is larger than {most} bytes",
  "the request did not arrive within {n} seconds",
  "the request is not JSON: line {line}, column {column} cannot be read",
  "the request is not JSON: it ends too early",
  "the request: {what}",
  "`{name}`: the part has {n} {unit}, from 0",
  "this model does not read {what}",
  "this model reads files: send the content of one as {example}, or as the field `input` of a form",
  "there is no part `{name}`; there are train, validation and test",
  "`changes`: {what}",
  "more than {n} heads and cells are changed",
  "more than {n} heads are put from other inputs",
  "`{name}` cannot be `{value}`",
  "there is no `{name}` to ask for",
  "there is no scene {n}; there are {count}",
  "there is no such map; there are {count}",
  "`{name}` is no node; there are {count}, {what}",
  "{n} questions wait already; ask again later",
  "{n} parts wait already to be computed; ask again later",
  "{n} pages listen already",
  "this server does not answer under the name `{name}`; `--allow-host {host}` adds it",
  "an animation of {n} steps; {most} are drawn at most",
  "{place}: no call of that attention was for a single sequence",
  "{place}: the rows of that attention have different lengths; its output can be taken instead",
  "{name}: damaged image: {what}",
  "one of the two has no such head to take away: layer {layer}, head {head}",
].map((words) => ({
  words: SHORTER[words] || words,
  pattern: new RegExp(`^${words.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.+?)")}$`, "su"),
}));

/** @param {string} text */
export function inWords(text) {
  for (const { words, pattern } of KNOWN) {
    const found = pattern.exec(text);
    if (!found) continue;
    const { what, ...rest } = found.groups || {};
    return t(words, what ? { ...rest, what: inWords(what) } : rest);
  }
  return t(text);
}
