// What a person is looking at. It is kept in the address, so a view is a link.

/**
 * @typedef {{kind: string, text?: string, part?: string, index?: number, moment?: number, name?: string,
 *   base64?: string, node?: number, at?: number[]}} Input
 * @typedef {{site: string, layer: number | null, head: number | null}} Head
 * @typedef {Head & {row: number | null, column: number | null, bias: number | null}} Cell
 * @typedef {{site: string, layer: number, head: number, what: string, from: Input}} Patch a head as it is for another input
 * @typedef {{normalizer?: string, temperature?: number, window?: number, heads?: Head[], cells?: Cell[],
 *   patches?: Patch[]}} Changes
 * @typedef {{runs: string[], tab: string, input: Input | null, from: Input | null, changes: Changes,
 *   scene: number, map: string, look: string, lang: string, theme: string, epoch: number | null,
 *   errors: Record<string, string>, versus: Record<string, string>}} View
 */

/** @type {View} */
const EMPTY = {
  runs: [],
  tab: "",
  input: null,
  from: null,
  changes: {},
  scene: 0,
  map: "",
  look: "",
  lang: "",
  theme: "",
  epoch: null,
  errors: {},
  versus: {},
};

/** @type {View} */
export let view = { ...EMPTY };

/** @type {((changed: Set<string>) => void)[]} */
const listeners = [];

/** Hears of every change, with the names of what changed. @param {(changed: Set<string>) => void} listener */
export const listen = (listener) => listeners.push(listener);

/** JSON that may have been typed by anyone. @param {string | null} text */
function parsed(text) {
  try {
    const value = JSON.parse(text || "null");
    return value && typeof value === "object" ? value : null;
  } catch {
    return null;
  }
}

const isPlace = (value) => Number.isInteger(value) && value >= 0;
const isAny = (value) => value === null || isPlace(value);
const isRecord = (value) => Boolean(value) && typeof value === "object" && !Array.isArray(value);

/** What each kind of input must have. @type {Record<string, (input: any) => boolean>} */
const INPUTS = {
  text: ({ text }) => typeof text === "string",
  example: ({ part, index }) => typeof part === "string" && isPlace(index),
  node: ({ node }) => isPlace(node),
  point: ({ at }) => Array.isArray(at) && at.every((value) => value === null || typeof value === "number"),
};

/** An input out of a link; null where it is none. @param {any} value @returns {Input | null} */
const inputOf = (value) => (isRecord(value) && Object.hasOwn(INPUTS, value.kind) && INPUTS[value.kind](value) ? value : null);

const isHead = (one) => isRecord(one) && typeof one.site === "string" && isAny(one.layer) && isAny(one.head);
const isCell = (one) =>
  isHead(one) && isAny(one.row) && isAny(one.column) && (one.bias === null || Number.isFinite(one.bias));
const isPatch = (one) =>
  isHead(one) && ["attention", "output"].includes(one.what) && inputOf(one.from) !== null;

/** What each change must be. @type {Record<string, (value: any) => boolean>} */
const CHANGES = {
  normalizer: (value) => typeof value === "string",
  temperature: (value) => Number.isFinite(value) && value > 0,
  window: isPlace,
  heads: (value) => Array.isArray(value) && value.every(isHead),
  cells: (value) => Array.isArray(value) && value.every(isCell),
  patches: (value) => Array.isArray(value) && value.every(isPatch),
};

/** The changes of a link that can be meant. @param {any} value @returns {Changes} */
const changesOf = (value) =>
  isRecord(value)
    ? Object.fromEntries(Object.entries(value).filter(([key, one]) => Object.hasOwn(CHANGES, key) && CHANGES[key](one)))
    : {};

/** What is chosen among errors, or of two sides: words alone. @param {any} value @returns {Record<string, string>} */
const wordsOf = (value) =>
  isRecord(value) ? Object.fromEntries(Object.entries(value).filter(([, one]) => typeof one === "string")) : {};

/** @param {string} hash @returns {View} */
export function read(hash) {
  const from = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key) => from.get(key) || "";
  return {
    runs: from.getAll("run"),
    tab: ["runs", "ask", "compare", "training", "errors", "heads"].includes(text("tab")) ? text("tab") : "",
    input: inputOf(parsed(from.get("input"))),
    from: inputOf(parsed(from.get("from"))),
    changes: changesOf(parsed(from.get("changes"))),
    scene: Math.max(0, Number.parseInt(text("scene"), 10) || 0),
    map: text("map"),
    look: text("look"),
    lang: text("lang"),
    theme: text("theme"),
    epoch: from.has("epoch") ? Number(text("epoch")) || null : null,
    errors: wordsOf(parsed(from.get("errors"))),
    versus: wordsOf(parsed(from.get("versus"))),
  };
}

/** A view as the fragment of an address. Bytes of a file do not travel in it. @param {View} of */
export function written(of = view) {
  const out = new URLSearchParams();
  of.runs.forEach((run) => out.append("run", run));
  if (of.tab) out.set("tab", of.tab);
  for (const key of /** @type {("input" | "from")[]} */ (["input", "from"])) {
    const input = of[key];
    if (input && input.kind !== "bytes") out.set(key, JSON.stringify(input));
  }
  if (isChanged(of.changes)) out.set("changes", JSON.stringify(of.changes));
  if (of.scene) out.set("scene", String(of.scene));
  for (const key of /** @type {("map" | "look" | "lang" | "theme")[]} */ (["map", "look", "lang", "theme"]))
    if (of[key]) out.set(key, of[key]);
  if (of.epoch) out.set("epoch", String(of.epoch));
  for (const key of /** @type {("errors" | "versus")[]} */ (["errors", "versus"]))
    if (Object.keys(of[key]).length) out.set(key, JSON.stringify(of[key]));
  return `#${out}`;
}

/** Whether anything of the mechanism is changed. @param {Changes} changes */
export const isChanged = (changes) =>
  Boolean(
    changes.normalizer ||
    changes.temperature ||
    changes.window !== undefined ||
    changes.heads?.length ||
    changes.cells?.length ||
    changes.patches?.length,
  );

let resting = /** @type {any} */ (null);
let stale = false;

/** Puts the view into the address: at once, but no oftener than browsers allow while something is dragged. */
function write(push) {
  if (!push && resting) {
    stale = true;
    return;
  }
  history[push ? "pushState" : "replaceState"](null, "", written());
  stale = false;
  clearTimeout(resting);
  resting = setTimeout(() => {
    resting = null;
    if (stale) write(false);
  }, 200);
}

/**
 * Changes the view; what is new is told to all who listen, once.
 * @param {Partial<View>} patch
 * @param {{push?: boolean}} [how] push: a step that the browser's Back undoes
 */
export function set(patch, { push = false } = {}) {
  const changed = new Set(Object.keys(patch).filter((key) => JSON.stringify(patch[key]) !== JSON.stringify(view[key])));
  if (!changed.size) return;
  view = { ...view, ...patch };
  write(push);
  listeners.forEach((listener) => listener(changed));
}

/** Takes the view of the address as it is now. @param {(view: View) => View} [completed] fills in what it lacks */
export function restore(completed = (same) => same) {
  const named = read(location.hash);
  // A file that was dropped is in no address; it stays while nothing else was asked for.
  if (!named.input && view.input?.kind === "bytes" && named.runs[0] === view.runs[0]) named.input = view.input;
  const next = completed(named);
  const changed = new Set(Object.keys(next).filter((key) => JSON.stringify(next[key]) !== JSON.stringify(view[key])));
  view = next;
  if (changed.size) listeners.forEach((listener) => listener(changed));
}
