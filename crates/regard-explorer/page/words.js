// The words of the page. English is the key; what a language lacks is said in English.

import { CHINESE } from "./chinese.js";

let language = "en";

/** @param {string} code "en" or "zh" */
export function setLanguage(code) {
  language = code === "zh" ? "zh" : "en";
}

/** The language the page speaks. */
export const spoken = () => language;

/**
 * A text in the reader's language, its {names} filled in.
 * @param {string} text @param {Record<string, any>} [values]
 */
export function t(text, values = {}) {
  const found = (language === "zh" && CHINESE[text]) || text;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}
