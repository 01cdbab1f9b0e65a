// What is changed of the mechanism, without training: normalizer, temperature, window, heads, cells, and heads as they
// are for another input.

import { button, fill, make, segmented } from "../dom.js";
import { pieces } from "../difference.js";
import { about } from "../explain.js";
import { described } from "../input.js";
import { axesOf, mapsOf } from "../scene.js";
import { run, session, typed } from "../session.js";
import { isChanged, set, view } from "../state.js";
import { t } from "../words.js";

/** @param {import("../state.js").Changes} patch undefined takes one away */
function change(patch) {
  const next = { ...view.changes, ...patch };
  for (const key of Object.keys(next)) if (next[key] === undefined || next[key]?.length === 0) delete next[key];
  set({ changes: next });
}

const sameHead = (a, b) => a.site === b.site && a.layer === b.layer && a.head === b.head;

/** @param {any} place */
export const isOff = (place) => Boolean(view.changes.heads?.some((head) => sameHead(head, place)));

/** @param {any} place */
export function toggleHead({ site, layer, head }) {
  const heads = view.changes.heads || [],
    one = { site, layer, head };
  change({ heads: isOff(one) ? heads.filter((other) => !sameHead(other, one)) : [...heads, one] });
}

const sameCell = (a, b) => sameHead(a, b) && a.row === b.row && a.column === b.column;

/** The change of a cell, if there is one. @param {any} cell */
export const cellChange = (cell) => view.changes.cells?.find((other) => sameCell(other, cell)) || null;

/** Forbids (bias null) or strengthens a cell; the same again takes it back. @param {any} cell */
export function changeCell(cell) {
  const cells = view.changes.cells || [],
    before = cellChange(cell);
  const others = cells.filter((other) => !sameCell(other, cell));
  if (before && before.bias === cell.bias) return change({ cells: others });
  return change({ cells: [...others, cell] });
}

/** Takes the change of a cell back. @param {any} cell */
export const allowCell = (cell) =>
  change({ cells: (view.changes.cells || []).filter((other) => !sameCell(other, cell)) });

const SITES = {
  encoder: "encoder",
  decoder: "decoder",
  cross: "decoder over source",
  pooling: "pooling",
  hops: "hops",
  question: "question",
  graph: "graph",
  kernel: "kernel",
};

/** Where attention stands in a model. @param {string} site */
export const siteName = (site) => t(SITES[site] || site);

/** How many heads of a place are shown. @param {string} site */
const headsOf = (site) =>
  (session.answer?.scenes || []).flatMap(mapsOf).filter((map) => map.place?.site === site).length;

/** The words of a pair, where a scene shows them: "子 → to". @param {any} cell */
function wordsOf(cell) {
  for (const one of session.answer?.scenes || []) {
    const place = mapsOf(one)[0]?.place,
      axes = axesOf(one);
    if (place?.site !== cell.site || !axes) continue;
    // Every row forbids the same patch, or the same datum.
    if (one.scene.kind === "image") {
      const at = cell.column - place.column;
      return t("patch {row}, {column}", {
        row: Math.floor(at / one.scene.columns) + 1,
        column: (at % one.scene.columns) + 1,
      });
    }
    if (one.scene.kind === "curve") return t("the datum at {x}", { x: axes.columns[cell.column - place.column] });
    if (place.columns_are_layers) continue;
    const name = (names, at, from, every) => (at === null ? every : names[at - from]);
    const who = name(axes.rows, cell.row, place.row, t("every row")),
      whom = name(axes.columns, cell.column, place.column, t("every column"));
    if (who !== undefined && whom !== undefined) return `${who} → ${whom}`;
  }
  return null;
}

/** A head by its name. @param {any} head */
export const headName = ({ site, layer, head }) => {
  if (site === "hops") return layer === null ? t("all hops") : t("hop {hop}", { hop: layer + 1 });
  const where = t(SITES[site] || site);
  if (layer === null) return headsOf(site) > 1 ? `${where}, ${t("all heads")}` : where;
  // The only one needs no number.
  if (headsOf(site) === 1) return where;
  return `${where}, ${head === null ? t("layer {layer}", { layer: layer + 1 }) : t("layer {layer}, head {head}", { layer: layer + 1, head: head + 1 })}`;
};

function cellName(cell) {
  const [row, column] = [
    cell.row === null ? t("every row") : `${t("row")} ${cell.row + 1}`,
    cell.column === null ? t("every column") : `${t("column")} ${cell.column + 1}`,
  ];
  const graph =
    cell.site === "graph"
      ? `${cell.row ?? "*"} → ${cell.column ?? "*"}`
      : cell.site === "hops"
        ? `${t("sentence")} ${cell.column + 1}`
        : (wordsOf(cell) ?? `${row}, ${column}`);
  return `${cell.bias === null ? t("forbidden") : `${cell.bias > 0 ? "+" : "−"}${Math.abs(cell.bias)}`}: ${graph} · ${headName(cell)}`;
}

/** What of a run's changes means something for the attention that is shown. @param {any} one */
function changeable(one) {
  const can = one.changes || {};
  if (!session.answer) return can;
  const maps = session.answer.scenes.flatMap(mapsOf);
  const sites = new Set(maps.flatMap((map) => (map.place ? [map.place.site] : [])));
  // Of many data the heaviest are shown, none of which keeps its place; their kernel can be changed.
  const attends = sites.size > 0 || maps.some((map) => map.name === "kernel");
  return {
    normalizers: attends ? can.normalizers : [],
    window: can.window && (sites.has("encoder") || sites.has("decoder")),
    heads: can.heads && sites.size > 0,
    cells: can.cells && sites.size > 0,
  };
}

/** @param {Element} element */
export function drawChange(element) {
  const one = run();
  // Before there is an answer nothing is known of what could be changed.
  if (!one || !session.answer) {
    fill(element);
    return;
  }
  const can = changeable(one);
  const active = /** @type {any} */ (document.activeElement);
  const focused = element.contains(active) ? active?.dataset.keep : null;
  const sections = [
    can.normalizers?.length > 0 && normalizer(can.normalizers),
    can.normalizers?.length > 0 && temperature(),
    can.window && windowOf(),
    one.input.kinds.includes("text") && words(),
    can.heads && patchOf(one),
    list(),
  ].filter(Boolean);
  const nothing = !can.normalizers?.length && !can.window && !can.heads && !can.cells;
  fill(
    element,
    make(
      "h3",
      {
        title: can.cells
          ? t("Switch a head off in its small map. Click a cell, an edge or a patch to forbid or strengthen it.")
          : undefined,
      },
      t("What if?"),
    ),
    nothing && make("p", { class: "quiet" }, t("This model has no attention that could be changed.")),
    sections,
    isChanged(view.changes) && button(t("Undo all"), () => set({ changes: {} }), { class: "plain small" }),
  );
  if (focused) /** @type {any} */ (element.querySelector(`[data-keep="${focused}"]`))?.focus();
}

function normalizer(names) {
  const choices = [["", t("as trained")], ...names.map((name) => [name, name])];
  return make(
    "div",
    {},
    make("h2", {}, t("Normalizer")),
    about("normalizer"),
    segmented(t("Normalizer"), /** @type {any} */ (choices), view.changes.normalizer || "", (value) =>
      change({ normalizer: value || undefined }),
    ),
  );
}

function temperature() {
  const value = view.changes.temperature ?? 1;
  const slider = make("input", {
    type: "range",
    min: -2,
    max: 2,
    step: 0.05,
    value: Math.log2(value),
    "aria-label": t("Temperature of the attention"),
    "aria-valuetext": value.toFixed(2),
    "data-keep": "temperature",
    oninput: () => {
      const next = 2 ** Number(slider.value);
      change({ temperature: Math.abs(next - 1) < 0.01 ? undefined : Math.round(next * 1000) / 1000 });
    },
  });
  return make(
    "div",
    {},
    make("h2", { title: t("Temperature of the attention") }, t("Temperature")),
    about("temperature"),
    make("span", { class: "quiet small" }, t("sharper")),
    slider,
    make("span", { class: "quiet small" }, t("flatter")),
    make("span", { class: "value" }, value.toFixed(2)),
  );
}

function windowOf() {
  const on = view.changes.window !== undefined;
  const number = make("input", {
    type: "number",
    min: 0,
    max: 500,
    step: 1,
    value: view.changes.window ?? 3,
    disabled: !on,
    "aria-label": t("Window"),
    "data-keep": "window",
    oninput: () => number.value !== "" && change({ window: Math.max(0, Math.round(Number(number.value))) }),
  });
  const box = make("input", {
    type: "checkbox",
    "data-keep": "window-on",
    onchange: () => change({ window: box.checked ? Number(number.value) || 3 : undefined }),
  });
  box.checked = on;
  return make(
    "div",
    {},
    make("h2", {}, t("Window")),
    make("div", { class: "row" }, make("label", { class: "line" }, box, t("only so many on each side:")), number),
  );
}

/** Words that fit into the bar; more are folded away until they are asked for. */
const FEW = 24;
let unfolded = false;

/** Words to edit one by one: the old answer stays beside the new one. */
function words() {
  const text = view.input?.kind === "text" ? view.input.text || "" : typed();
  const parts = pieces(text);
  if (!parts.length || parts.length > 240) return null;
  const chips = make("div", { class: "chips" });
  const put = (place, word) => {
    const next = parts.map((part, i) => (i === place ? word : part)).join("");
    if (next === text) return fill(chips, all());
    return set({ from: view.from || view.input, input: { kind: "text", text: next } });
  };
  const edit = (place) => {
    const field = make("input", {
      type: "text",
      value: parts[place],
      "aria-label": t("Another word for {word}", { word: parts[place] }),
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") put(place, field.value);
      if (event.key === "Escape") fill(chips, all());
    });
    const done = button("✓", () => put(place, field.value), { "aria-label": t("Ask with this word") });
    chips.children[place === -1 ? 0 : shownPlaces.indexOf(place)].replaceWith(field);
    field.after(done);
    field.focus();
    field.select();
  };
  const shownPlaces = parts.map((_, i) => i).filter((i) => parts[i].trim());
  const all = () =>
    shownPlaces.map((place) =>
      button(parts[place], () => edit(place), { "aria-label": t("edit the word {word}", { word: parts[place] }) }),
    );
  fill(chips, all());
  if (shownPlaces.length <= FEW) return make("div", {}, make("h2", {}, t("Edit one word")), chips);
  const fold = make(
    "details",
    {
      ontoggle: () => {
        unfolded = fold.open;
      },
    },
    make("summary", {}, t("Edit one word")),
    chips,
  );
  fold.open = unfolded;
  return fold;
}

/** What stands in the field that takes a head from elsewhere. */
const wanted = { open: false, head: "", what: "attention", from: "text", text: "", number: 1 };
const WHAT = { attention: "its attention", output: "its output" };
const PARTS = { train: "training", validation: "validation", test: "test" };

/** A patch by its words. @param {import("../state.js").Patch} patch */
const patchName = ({ what, from, ...head }) =>
  t("{head}: {what} from {input}", { head: headName(head), what: t(WHAT[what]), input: described(from) });

/** Puts a head as it is for another input; of a head and what of it the last counts. */
function put() {
  const [site, layer, head] = JSON.parse(wanted.head);
  const from =
    wanted.from === "text"
      ? { kind: "text", text: wanted.text }
      : { kind: "example", part: wanted.from, index: Math.max(1, Math.round(wanted.number)) - 1 };
  if (from.kind === "text" && !wanted.text.trim()) return;
  const one = { site, layer, head, what: wanted.what, from };
  const others = (view.changes.patches || []).filter((other) => !sameHead(other, one) || other.what !== one.what);
  change({ patches: [...others, one] });
}

/** Which of several, kept while the bar is drawn again. @param {string} name @param {[string, string][]} all */
function choice(name, label, all, again = false) {
  if (!all.some(([value]) => value === wanted[name])) wanted[name] = all[0][0];
  const field = make(
    "select",
    {
      "aria-label": label,
      "data-keep": `patch-${name}`,
      onchange: () => {
        wanted[name] = field.value;
        // Another kind of source has another field.
        if (again) fold.replaceWith(patchOf(run()));
      },
    },
    all.map(([value, text]) => make("option", { value }, text)),
  );
  field.value = wanted[name];
  return field;
}

let fold = /** @type {any} */ (null);

/** Takes what a head does for another input. @param {any} one */
function patchOf(one) {
  const heads = new Map();
  for (const { place } of session.answer.scenes.flatMap(mapsOf))
    if (place && place.head !== null && !place.columns_are_layers)
      heads.set(JSON.stringify([place.site, place.layer, place.head]), headName(place));
  const sources = [
    ...(one.input.kinds.includes("text") ? [["text", t("this text")]] : []),
    ...one.parts.map((part) => [part, t("an example of {part}", { part: t(PARTS[part] || part) })]),
  ];
  if (!heads.size || !sources.length) return null;
  const of = choice("from", t("From which input"), /** @type {any} */ (sources), true);
  const field = make("input", {
    ...(wanted.from === "text" ? { type: "text", dir: "auto" } : { type: "number", min: 1, step: 1 }),
    value: wanted.from === "text" ? wanted.text : wanted.number,
    "aria-label": wanted.from === "text" ? t("Another text") : t("Which example"),
    "data-keep": "patch-field",
    oninput: () => {
      if (wanted.from === "text") wanted.text = field.value;
      else wanted.number = Number(field.value) || 1;
    },
    onkeydown: (event) => event.key === "Enter" && put(),
  });
  fold = make(
    "details",
    { ontoggle: () => { wanted.open = fold.open; } },
    make("summary", {}, t("Take a head from another input")),
    make(
      "div",
      { class: "row", id: "patch" },
      choice("head", t("Which head"), [...heads]),
      choice("what", t("What of it"), Object.entries(WHAT).map(([value, text]) => [value, t(text)])),
      of,
      field,
      button(t("Put it here"), put, { "data-keep": "patch-put" }),
    ),
  );
  fold.open = wanted.open;
  return fold;
}

/** What is changed, to be taken back one by one. */
function list() {
  const { heads = [], cells = [], patches = [] } = view.changes;
  // What a link names need not be there, and a shorter sentence has fewer words.
  const unmet = session.answer?.unmet;
  const idle = (kind, place) => unmet?.[kind]?.includes(place) && make("span", { class: "idle" }, ` (${t("not there: it changes nothing")})`);
  if (!heads.length && !cells.length && !patches.length) return null;
  const back = (label, act) =>
    button("✕", act, { class: "plain", "aria-label": t("take back: {what}", { what: label }) });
  return make(
    "div",
    {},
    make("h2", {}, t("Changed")),
    make(
      "ul",
      {},
      heads.map((head, place) =>
        make(
          "li",
          {},
          `${t("off")}: ${headName(head)}`,
          idle("heads", place),
          back(headName(head), () => toggleHead(head)),
        ),
      ),
      cells.map((cell, place) =>
        make(
          "li",
          {},
          cellName(cell),
          idle("cells", place),
          back(cellName(cell), () => allowCell(cell)),
        ),
      ),
      patches.map((patch) =>
        make(
          "li",
          {},
          patchName(patch),
          back(patchName(patch), () => change({ patches: patches.filter((other) => other !== patch) })),
        ),
      ),
    ),
  );
}
