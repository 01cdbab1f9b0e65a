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

/** What belongs to A and to B, of which the second is compared with the first. */
export const SIDES = { a: "#2f6fd0", b: "#b8500a" };

/** Colors of a difference in 256 steps: A's where A has more, the page's where both have as much, B's where B has. */
export function diverging() {
  const rgb = (hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));
  const [a, b] = isDark() ? [rgb("#7fb0ff"), rgb("#ff9d4d")] : [rgb(SIDES.a), rgb(SIDES.b)];
  const middle = isDark() ? [0x23, 0x28, 0x30] : [0xf6, 0xf6, 0xf3];
  return Array.from({ length: 256 }, (_, step) => {
    const share = (step - 127.5) / 127.5,
      end = share < 0 ? a : b;
    return /** @type {import("./draw.js").Rgb} */ (
      middle.map((from, i) => Math.round(from + Math.abs(share) * (end[i] - from)))
    );
  });
}
