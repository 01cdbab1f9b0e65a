// Dark and light: as the system has it, or as the view says.

import { view } from "./state.js";
import { ramp } from "./draw.js";

const system = matchMedia("(prefers-color-scheme: dark)");

/** @type {(() => void)[]} */
const listeners = [];

/** Hears when the colors change. @param {() => void} listener */
export const onTheme = (listener) => listeners.push(listener);

export const isDark = () => (view.theme ? view.theme === "dark" : system.matches);

let shown = /** @type {boolean | null} */ (null);

/** Puts the page into the colors of the view. */
export function applyTheme() {
  if (shown === isDark()) return;
  shown = isDark();
  document.documentElement.dataset.theme = shown ? "dark" : "light";
  cached = null;
  listeners.forEach((listener) => listener());
}

system.addEventListener("change", applyTheme);

let cached = null;

/** The colors that a canvas draws with. @returns {import("./draw.js").Paper & {edge: string, added: string, removed: string}} */
export function paper() {
  if (!cached) {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    cached = {
      ink: color("ink"),
      faint: color("faint"),
      line: color("line"),
      mark: color("mark"),
      paper: color("panel"),
      edge: color("edge"),
      added: color("added-ink"),
      removed: color("removed-ink"),
    };
  }
  return cached;
}

/** The colors of weights. */
export const colors = () => ramp(isDark());
