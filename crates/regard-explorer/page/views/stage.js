// One map, large: as a matrix, as lines, over the text, the graph, the picture, the curve or the sound;
// and as a table of numbers for those who read with ears.

import { button, fill, make, segmented } from "../dom.js";
import { painted, rangeOf, written } from "../draw.js";
import { axesOf, chosenMap, choices, mapName, mapsOf, rangeOfAll } from "../scene.js";
import { run, session } from "../session.js";
import { set, view } from "../state.js";
import { colors } from "../theme.js";
import { t } from "../words.js";
import { allowCell, cellChange, changeCell, toggleHead } from "./change.js";
import { cellAt, markOf } from "./cell.js";
import { MatrixView } from "./matrix.js";
import { LinesView } from "./lines.js";
import { TextView } from "./text.js";
import { PatchesView } from "./patches.js";
import { GraphView } from "./graph.js";
import { CurveView } from "./curve.js";
import { SoundView } from "./sound.js";
import { NumbersView } from "./numbers.js";

const VIEWS = { matrix: MatrixView, lines: LinesView, text: TextView, patches: PatchesView,
  graph: GraphView, curve: CurveView, sound: SoundView, table: NumbersView };
const LOOKS = { matrix: "Matrix", lines: "Lines", text: "Text", patches: "Picture",
  graph: "Graph", curve: "Curve", sound: "Sound", table: "Table" };

/** @type {{look: string, drawn: any, cursor: [number, number] | null, pinned: boolean, every: {heads: boolean, rows: boolean}, own: boolean, nodes: string[] | null}} */
const stage = {
  look: "",
  drawn: null,
  cursor: null,
  pinned: false,
  every: { heads: false, rows: false },
  own: false,
  nodes: null,
};
let parts = /** @type {any} */ (null);
let current = /** @type {any} */ (null);

/** The ways in which a scene can be looked at, the most telling first. @param {import("../scene.js").Scene} one */
function looksOf(one) {
  const { kind } = one.scene;
  if (kind === "graph" || kind === "curve" || kind === "sound")
    return kind === "graph" ? ["graph", "table"] : [kind, "matrix", "table"];
  if (kind === "image") return ["patches", "table"];
  const { rows, columns } = one.scene;
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
      head: make("div", { class: "row spread" }),
      measures: make("div", { class: "measures" }),
      readout: make("div", { class: "readout" }),
      body: make("div", {}),
    };
    fill(element, parts.head, parts.measures, parts.readout, parts.body);
    stage.drawn = null;
  }
  if (!stage.drawn || stage.look !== look) {
    stage.drawn = new VIEWS[look](host);
    stage.look = look;
    fill(parts.body, stage.drawn.element);
  }
  const range =
    stage.own || key === "mean" || key === "rollout" || one.scene.kind === "image"
      ? rangeOf(map.weights)
      : rangeOfAll(one);
  current = {
    one,
    key,
    map,
    range,
    axes: axesOf(one),
    width: Math.max(200, parts.body.clientWidth || element.clientWidth),
  };
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
    ),
    0,
    0,
  );
  fill(
    parts.head,
    make("h3", { id: "map-name" }, mapName(map.name)),
    make(
      "div",
      { class: "row" },
      mapsOf(current.one).length > 1 && make("label", { class: "line small quiet" }, own, t("own scale")),
      current.one.scene.kind !== "image" &&
        make("span", { class: "legend" }, written(range[0]), bar, written(range[1])),
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

function drawMeasures() {
  const { one, key, map } = current;
  const measure = one.measures?.[Number(key)];
  const shown = (label, value, title) =>
    typeof value === "number" && make("span", { title }, `${label} `, make("b", {}, written(value)));
  fill(
    parts.measures,
    measure && [
      shown(t("entropy"), measure.entropy, t("mean over rows, in nats: 0 looks at one place only")),
      shown(t("distance"), measure.distance, t("how far away it looks, in tokens")),
      shown(t("on the diagonal"), measure.diagonal, t("share of the weight at the same place")),
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
  const told = stage.cursor && stage.drawn.tell?.(...stage.cursor);
  if (!told) {
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
      told.from,
      told.to !== undefined && ` → ${told.to}`,
      " ",
      told.weight !== undefined && make("b", {}, written(told.weight)),
    ),
    stage.pinned && told.cell !== false && changers(),
    make("span", { class: "others" }, told.others || ""),
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
  } else if (event.key.toLowerCase() === "o" && current.map.place?.head !== null && current.map.place)
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
