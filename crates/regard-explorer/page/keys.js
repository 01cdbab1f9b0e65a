// Shortcuts of one key alone, which whoever speaks to the computer, or trembles, can turn off.

const KEPT = "regard single keys";

/** Whether a single key does something. */
export function singleKeys() {
  try {
    return localStorage.getItem(KEPT) !== "off";
  } catch {
    return true; // a browser that keeps nothing
  }
}

/** @param {boolean} on */
export function setSingleKeys(on) {
  try {
    if (on) localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, "off");
  } catch {
    // It holds as long as nothing is kept: not at all.
  }
}
