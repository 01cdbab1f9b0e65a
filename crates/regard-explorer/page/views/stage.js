// One map, large: as a matrix, as lines, over the text, the graph, the picture, the curve or the sound;
// and as a table of numbers for those who read with ears.

import { button, fill, make, segmented } from "../dom.js";
import { HEAT, painted, rangeOf, written } from "../draw.js";
import { about } from "../explain.js";
import { axesOf, chosenMap, choices, isHead, mapName, mapsOf, rangeOfAll } from "../scene.js";
import { singleKeys } from "../keys.js";
import { run, session } from "../session.js";
import { set, view } from "../state.js";
import { colors } from "../theme.js";
import { told } from "../told.js";
import { t } from "../words.js";
import { allowCell, cellChange, changeCell, toggleHead } from "./change.js";
import { cellAt, markOf } from "./cell.js";
import { MatrixView } from "./matrix.js";
import { RibbonsView } from "./ribbons.js";
import { LinesView } from "./lines.js";
import { TextView } from "./text.js";
import { PatchesView } from "./patches.js";
import { GraphView } from "./graph.js";
import { CurveView } from "./curve.js";
import { SoundView } from "./sound.js";
import { NumbersView } from "./numbers.js";

const VIEWS = { ribbons: RibbonsView, matrix: MatrixView, lines: LinesView, text: TextView, patches: PatchesView,
  graph: GraphView, curve: CurveView, sound: SoundView, table: NumbersView };
const LOOKS = { ribbons: "Ribbons", matrix: "Matrix", lines: "Lines", text: "Text", patches: "Picture",
  graph: "Graph", curve: "Curve", sound: "Sound", table: "Table" };

/** @type {{look: string, drawn: any, cursor: [number, number] | null, pinned: boolean, every: {heads: boolean, rows: boolean}, own: boolean, nodes: string[] | null, cover: number}} */
const stage = {
  look: "",
  drawn: null,
  cursor: null,
  pinned: false,
  every: { heads: false, rows: false },
  own: false,
  nodes: null,
  cover: HEAT.cover,
};
let parts = /** @type {any} */ (null);
let current = /** @type {any} */ (null);

/** Words above which two lines of them say less than a matrix. */
const MOST_WORDS = 240;

/** The ways in which a scene can be looked at, the most telling first. @param {import("../scene.js").Scene} one */
function looksOf(one) {
  const { kind } = one.scene;
  if (kind === "graph" || kind === "curve" || kind === "sound")
    return kind === "graph" ? ["graph", "table"] : [kind, "matrix", "table"];
  if (kind === "image") return ["patches", "table"];
  const { rows, columns } = one.scene;
  // What writes text is seen as it reads: what was read above, what was written below.
  const writes = one.scene.row_axis === "output" && one.scene.column_axis === "source";
  if (writes && rows.length + columns.length <= MOST_WORDS) return ["ribbons", "matrix", "lines", "text", "table"];
  if (rows.length <= 2 && columns.length > 3) return ["text", "matrix", "lines", "table"];
  return ["matrix", "lines", "text", "table"];
}

/** @param {HTMLElement} element */
export function drawStage(element) {
  const answer = session.answer;
  const one = answer && (answer.scenes[view.scene] || answer.scenes[0]);
  if (!one || !choices(one).length) {
    parts = null;
    return fill(
      element,
      answer && !session.waiting && make("p", { class: "quiet", id: "blank" }, sentenceFor(answer, one)),
    );
  }
  const [key, map] = /** @type {any} */ (chosenMap(one, view.map));
  const looks = looksOf(one);
  const look = looks.includes(view.look) ? view.look : looks[0];
  if (!parts || !element.contains(parts.body)) {
    parts = {
      told: make("p", { class: "told", id: "told", dir: "auto" }),
      head: make("div", { class: "row spread" }),
      measures: make("div", { class: "measures" }),
      readout: make("div", { class: "readout" }),
      body: make("div", { id: "stage-body" }),
    };
    fill(element, parts.told, parts.head, parts.body, parts.readout, parts.measures);
    stage.drawn = null;
  }
  if (!stage.drawn || stage.look !== look) {
    stage.drawn = new VIEWS[look](host);
    stage.look = look;
    fill(parts.body, stage.drawn.element);
  }
  const range =
    stage.own || map.parts || key === "mean" || key === "rollout" || one.scene.kind === "image"
      ? rangeOf(map.weights)
      : rangeOfAll(one);
  current = {
    one,
    key,
    map,
    range,
    axes: axesOf(one),
    cover: stage.cover,
    width: Math.max(200, parts.body.clientWidth || element.clientWidth),
  };
  if (parts.of !== session.answer) {
    parts.told.style.minHeight = "";
    Object.assign(parts, { of: session.answer, tall: 0 });
  }
  follow(one.scene.nodes);
  drawHead(looks, look);
  drawMeasures();
  stage.drawn.draw(current);
  drawReadout();
  return undefined;
}

const sentenceFor = (answer, one) =>
  one ? t("There are no weights to draw.") : t(answer.blank || "This model attends to nothing.");

function drawHead(looks, look) {
  const { range, map } = current;
  const own = make("input", {
    type: "checkbox",
    onchange: () => {
      stage.own = own.checked;
      drawStage(parts.body.parentElement);
    },
  });
  own.checked = stage.own;
  const bar = make("canvas", { width: 96, height: 1, "aria-hidden": "true" });
  bar.getContext("2d").drawImage(
    painted(
      Float32Array.from({ length: 96 }, (_, i) => i / 95),
      [0, 1],
      1,
      96,
      colors(),
      current.one.scene.kind === "image" ? { ...HEAT, cover: 1 } : undefined,
    ),
    0,
    0,
  );
  fill(
    parts.head,
    // One map alone needs no name; for who cannot see it, it has one.
    make("h3", { id: "map-name", class: mapsOf(current.one).length > 1 ? "" : "unseen" }, mapName(map.name)),
    make(
      "div",
      { class: "row" },
      mapsOf(current.one).length > 1 && make("label", { class: "line small quiet" }, own, t("own scale")),
      current.one.scene.kind === "image" && isWritten(current.one) && player(),
      current.one.scene.kind === "image" && opacity(),
      look !== "ribbons" && make("span", { class: "legend" }, written(range[0]), bar, written(range[1])),
      looks.length > 1 &&
        segmented(
          t("How to look"),
          looks.map((name) => /** @type {[string, string]} */ ([name, t(LOOKS[name])])),
          look,
          (value) => set({ look: value }),
        ),
    ),
  );
}

/** Whether the maps of a scene are the words that were written, one after the other. */
const isWritten = (one) => mapsOf(one).length > 1 && !mapsOf(one).some(isHead);

const PACE = 800;
let played = /** @type {any} */ (null);

/** Goes through the words of a picture's sentence, each with what was looked at for it. */
function player() {
  const { one } = current;
  const stop = () => {
    clearTimeout(played);
    played = null;
    if (parts) drawStage(parts.body.parentElement);
  };
  const step = (place) => {
    // Another answer, another view: there is nothing to go on with.
    if (current?.one !== one || place >= mapsOf(one).length) return stop();
    played = setTimeout(() => step(place + 1), PACE);
    return set({ map: String(place) });
  };
  const label = played === null ? `▶ ${t("Play")}` : `■ ${t("Stop")}`;
  return button(label, () => (played === null ? step(0) : stop()), { id: "play-words" });
}

/** How much of a picture its heat covers. */
function opacity() {
  const slider = make("input", {
    type: "range",
    min: 0,
    max: 1,
    step: 0.05,
    value: stage.cover,
    "aria-label": t("Strength of the overlay"),
    title: t("Strength of the overlay"),
    class: "short",
    oninput: () => {
      stage.cover = Number(slider.value);
      current.cover = stage.cover;
      stage.drawn.draw(current);
    },
  });
  return slider;
}

function drawMeasures() {
  const { one, key, map } = current;
  const measure = one.measures?.[Number(key)];
  const shown = (label, value, text) =>
    typeof value === "number" &&
    make("span", {}, `${label} `, make("b", {}, written(value)), make("span", { class: "means" }, ` ${text}`));
  // Between a text and another one, the same place is no place to be.
  const within = one.scene.kind === "maps" && one.scene.rows.length === one.scene.columns.length &&
    one.scene.row_axis !== "output";
  fill(
    parts.measures,
    measure && [
      shown(
        t("entropy"),
        measure.entropy,
        t("as if spread evenly over {n}", { n: Math.exp(measure.entropy ?? 0).toFixed(1) }),
      ),
      typeof measure.entropy === "number" && about("entropy"),
      within && shown(t("distance"), measure.distance, t("words away, on average")),
      within && shown(t("on the diagonal"), measure.diagonal, t("of the weight stays at the word itself")),
    ],
    key === "rollout" &&
      make(
        "span",
        {},
        t("Rollout: the layers' weights multiplied, the residual path included (Abnar and Zuidema, 2020)."),
      ),
    map.place &&
      map.place.head !== null &&
      run()?.changes?.heads &&
      button(t("Switch this head off or on"), () => toggleHead(map.place), { class: "plain small" }),
    map.fixed && make("span", { id: "fixed" }, t(map.fixed)),
  );
}

/** Remembers the nodes at the cursor: a change may give a graph other neighbors in another order. */
function name() {
  const { nodes } = current.one.scene;
  stage.nodes = nodes && stage.cursor ? stage.cursor.map((place) => nodes[place]) : null;
}

/** Follows the nodes at the cursor to where they stand now. */
function follow(nodes) {
  if (!stage.nodes || !nodes) return;
  const places = stage.nodes.map((node) => nodes.indexOf(node));
  stage.cursor = places.includes(-1) ? null : /** @type {[number, number]} */ (places);
  if (!stage.cursor) stage.pinned = false;
}

/** What the views tell the stage. */
const host = {
  get cursor() {
    return stage.cursor;
  },
  get pinned() {
    return stage.pinned;
  },
  /** The cursor is at a cell. */
  point(row, column) {
    if (stage.pinned) return;
    stage.cursor = [row, column];
    name();
    drawReadout();
  },
  /** A cell is taken, to be changed; the same again lets it go. */
  pin(row, column) {
    const same = stage.pinned && stage.cursor?.[0] === row && stage.cursor?.[1] === column;
    stage.pinned = !same;
    stage.cursor = [row, column];
    name();
    drawReadout();
  },
  /** Nothing is pointed at any more. */
  leave() {
    if (stage.pinned) return;
    stage.cursor = null;
    name();
    drawReadout();
  },
  /** The row whose weights a view shows. */
  row: () => Math.min(stage.cursor?.[0] ?? 0, (current?.axes?.rows.length ?? 1) - 1),
  cellOf,
  marks,
};

/** A cell of the scene as the model calls it. */
function cellOf(row, column) {
  return run()?.changes?.cells ? cellAt(current.one, current.map, row, column, stage.every) : null;
}

/** The signs of changed cells that this map shows. */
function marks() {
  const all = (view.changes.cells || []).map((cell) => markOf(current.one, current.map, cell));
  return all.filter((mark) => mark !== null);
}

function drawReadout() {
  if (!parts || !current) return;
  const cell = stage.cursor && stage.drawn.tell?.(...stage.cursor);
  const { one, key, map } = current;
  const sentence = told(one, key, map, cell ? stage.cursor : null);
  fill(parts.told, sentence);
  parts.told.hidden = !sentence;
  // As high as it has been: what is pointed at must not move away because of what is said of it.
  const tall = parts.told.offsetHeight;
  if (tall > (parts.tall || 0)) parts.told.style.minHeight = `${(parts.tall = tall)}px`;
  if (!cell) {
    fill(
      parts.readout,
      make(
        "span",
        { class: "quiet" },
        stage.drawn.hint?.() ||
          (current.map.fixed
            ? t("Point at a cell, or use the arrow keys.")
            : t("Point at a cell, or use the arrow keys. Click to keep it and change it.")),
      ),
    );
    return;
  }
  fill(
    parts.readout,
    make(
      "span",
      { class: "wrap", dir: "auto" },
      cell.from,
      cell.to !== undefined && ` → ${cell.to}`,
      " ",
      cell.weight !== undefined && make("b", {}, written(cell.weight)),
    ),
    stage.pinned && cell.cell !== false && changers(),
    make("span", { class: "others" }, cell.others || ""),
  );
}

/** Why a cell cannot be changed. */
function whyNot(row) {
  const { map } = current;
  if (map.fixed) return map.fixed;
  return map.place?.columns_are_layers && row < map.place.row
    ? "This sentence is too long ago: the memory no longer holds it."
    : "This weight cannot be changed.";
}

function changers() {
  const [row, column] = /** @type {[number, number]} */ (stage.cursor);
  const base = cellOf(row, column);
  if (!base) return make("span", { class: "quiet small" }, t(whyNot(row)));
  const named = (bias) => ({ ...base, bias });
  const now = cellChange(base);
  const scope = (key, text) => {
    const box = make("input", {
      type: "checkbox",
      onchange: () => {
        stage.every[key] = box.checked;
        drawReadout();
      },
    });
    box.checked = stage.every[key];
    return make("label", { class: "line small" }, box, text);
  };
  const kind = current.one.scene.kind,
    hops = current.map.place?.columns_are_layers;
  return make(
    "span",
    { class: "row", id: "changers" },
    button(now && now.bias === null ? t("Allow again") : t("Forbid"), () => changeCell(named(null))),
    button(t("Strengthen"), () => changeCell(named((now?.bias ?? 0) + 2))),
    button(t("Weaken"), () => changeCell(named((now?.bias ?? 0) - 2))),
    now && button(t("As it was"), () => allowCell(base)),
    current.map.place &&
      (hops ? current.axes.columns.length : mapsOf(current.one).length) > 1 &&
      kind !== "curve" &&
      scope("heads", current.map.place.site === "hops" ? t("in all hops") : t("in all heads")),
    (kind === "maps" || kind === "sound") && !hops && current.axes.rows.length > 1 && scope("rows", t("for every row")),
    button(
      "✕",
      () => {
        stage.pinned = false;
        drawReadout();
      },
      { class: "plain", "aria-label": t("let go") },
    ),
  );
}

addEventListener("keydown", (event) => {
  if (view.tab !== "ask" || !parts || !current || event.ctrlKey || event.metaKey || event.altKey) return;
  if (/** @type {Element} */ (event.target).closest?.("input, textarea, select, dialog")) return;
  const all = choices(current.one).map(([key]) => key),
    place = all.indexOf(current.key);
  const step = { PageUp: -1, PageDown: 1 }[event.key];
  if (step) {
    event.preventDefault();
    set({ map: all[(place + step + all.length) % all.length] });
  } else if (event.key === "Escape" && stage.pinned) {
    stage.pinned = false;
    drawReadout();
  } else if (!singleKeys()) return;
  else if (event.key.toLowerCase() === "o" && current.map.place?.head !== null && current.map.place)
    toggleHead(current.map.place);
  else if (stage.cursor && (event.key.toLowerCase() === "x" || event.key === "+")) {
    const cell = cellOf(...stage.cursor);
    if (!cell) return;
    const now = cellChange(cell);
    if (event.key === "+") changeCell({ ...cell, bias: (now?.bias ?? 0) + 2 });
    else if (now?.bias === null) allowCell(cell);
    else changeCell({ ...cell, bias: null });
  }
});
