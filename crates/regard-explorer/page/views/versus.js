// Two sides of one question, A and B: two runs, or a run and the same one changed. What each answers, where the
// attention of one is stronger than that of the other, and one cursor in all three maps.

import * as api from "../api.js";
import { button, fill, make } from "../dom.js";
import { aligned } from "../difference.js";
import { isPicture } from "../drawn.js";
import { HEAT, Sheet, painted, rangeOf, written } from "../draw.js";
import { axesOf, choices, mapName, mapsOf } from "../scene.js";
import { isAskable, sentence, session } from "../session.js";
import { isChanged, set, view } from "../state.js";
import { SIDES, colors, diverging, paper } from "../theme.js";
import { mark, marked, verdictOf } from "../verdict.js";
import { t } from "../words.js";
import { pictureOf } from "./patches.js";
import { drawWinners } from "./winners.js";

/**
 * @typedef {{run: any, changes: import("../state.js").Changes | null, name: string}} Side
 * @typedef {{name: string, map: import("../scene.js").WeightMap}} Named
 */

/** Names of rows or columns beyond which two lists are not aligned: it takes the square of them. */
const MOST_NAMES = 2000;
const CHANGED = "changed";

let parts = /** @type {any} */ (null);
let known = { key: "", answers: /** @type {any[]} */ ([null, null]), refusals: ["", ""] };
let sheets = /** @type {Sheet[]} */ ([]);
let grid = /** @type {any} */ (null);

/** @param {Partial<Record<string, string>>} patch an empty text takes a choice away */
export function choose(patch) {
  const next = { ...view.versus, ...patch };
  for (const key of Object.keys(next)) if (!next[key]) delete next[key];
  set({ versus: next });
}

/** What A can be compared with. */
function others() {
  const one = session.runs.find(({ id }) => id === view.runs[0]);
  const runs = session.runs.filter((other) => other.task === one?.task && other.id !== one.id && other.ready && !other.error);
  return { one, runs: one?.ready ? runs : [] };
}

/** The two sides; null where there is nothing to compare with. @returns {[Side, Side] | null} */
export function sidesOf() {
  const { one, runs } = others(),
    changed = isChanged(view.changes);
  const chosen = view.versus.b || view.runs[1] || (runs.length ? runs[0].id : CHANGED);
  if (!one?.ready) return null;
  if (changed && (chosen === CHANGED || !runs.length))
    return [
      { run: one, changes: null, name: one.name },
      { run: one, changes: view.changes, name: t("{name}, changed", { name: one.name }) },
    ];
  const other = runs.find(({ id }) => id === chosen) || runs[0];
  const changes = changed ? view.changes : null;
  return other
    ? [
        { run: one, changes, name: one.name },
        { run: other, changes, name: other.name },
      ]
    : null;
}

/**
 * What a side answers. A change names layers and heads: a run that lacks them is asked without, and `unchanged` says so.
 * @param {Side} side @param {import("../state.js").Input | null} input @param {string} pane
 */
async function answerOf(side, input, pane) {
  const ask = (changes) => api.post("/api/ask", { run: side.run.id, input, changes }, pane);
  const again = async (error) => {
    if (!side.changes || error.status !== 422) throw error;
    const answer = await ask(null);
    return answer && { ...answer, unchanged: sentence(error) };
  };
  const answer = await ask(side.changes).catch(again);
  return answer && { ...answer, scenes: api.decoded(answer.scenes) };
}

/**
 * What a side answers to what another one was asked: an example is a place in the data, and the other's data may have
 * another one there. @param {Side} side @param {any} first the answer of the other @param {string} pane
 */
export async function sameAsked(side, first, pane) {
  const answer = await answerOf(side, view.input, pane);
  if (!answer || !first || view.input?.kind !== "example") return answer;
  if (answer.text === first.text && (answer.text !== null || answer.truth === first.truth)) return answer;
  if (first.text && side.run.input.kinds[0] === "text") {
    const typed = await answerOf(side, { kind: "text", text: first.text }, pane);
    return typed && { ...typed, elsewhere: true };
  }
  throw new api.Refusal(t("The data of this run have another example at this place."), 422);
}

/** Says which changes found nothing to change. @param {any} answer */
export function unmetNote({ unmet }) {
  const n = (unmet?.heads.length || 0) + (unmet?.cells.length || 0);
  return n > 0 && make("p", { class: "quiet small" }, t("{n} of the changes name heads or cells that this model does not have here.", { n }));
}

/** @param {Element} panel */
export function enterVersus(panel) {
  parts = {
    who: make("div", { class: "row" }),
    told: make("p", { class: "told", id: "versus-told" }),
    outputs: make("div", { class: "two-sides" }),
    choose: make("div", { class: "row" }),
    maps: make("div", { class: "three-maps" }),
    readout: make("p", { class: "versus-readout", id: "versus-readout", "aria-live": "polite" }),
    most: make("div", { class: "row" }),
    winners: make("div", { class: "card winners", id: "winners" }),
  };
  const { who, told, outputs, choose: which, maps, readout, most } = parts;
  const heading = make("h2", {}, t("Two side by side: A and B"));
  fill(panel, make("div", { class: "card versus", id: "versus" }, heading, who, told, outputs, which, readout, maps, most), parts.winners);
  ask();
}

export function leaveVersus() {
  parts = null;
  sheets = [];
}

/** @param {Set<string>} changed */
export function updateVersus(changed) {
  if (!parts) return;
  if (["input", "changes", "versus"].some((key) => changed.has(key))) ask();
  else if (changed.has("theme") || changed.has("size")) draw();
}

async function ask() {
  const sides = sidesOf();
  parts.winners.hidden = !sides;
  const contest = JSON.stringify([sides?.map(({ run, changes }) => [run.id, changes]), view.versus]);
  if (sides && parts.contest !== contest) drawWinners(parts.winners, sides);
  parts.contest = contest;
  const { input } = view,
    bytes = input?.kind === "bytes" && [input.name, input.base64?.length];
  const key = sides && isAskable(input) ? JSON.stringify([sides.map(({ run, changes }) => [run.id, changes]), bytes || input]) : "";
  if (key === known.key) return draw();
  known = { key, answers: [null, null], refusals: ["", ""] };
  draw();
  if (!key || !sides) return undefined;
  const now = known;
  for (const [i, side] of sides.entries()) {
    try {
      now.answers[i] = await sameAsked(side, i ? now.answers[0] : null, `versus-${i}`);
    } catch (error) {
      now.refusals[i] = sentence(error);
    }
    if (known !== now || !parts) return undefined;
  }
  return draw();
}

function draw() {
  if (!parts) return;
  const sides = sidesOf();
  drawWho(sides);
  const [a, b] = known.answers;
  const all = [parts.told, parts.outputs, parts.choose, parts.maps, parts.readout, parts.most];
  for (const part of all) part.hidden = !sides;
  if (!sides) return;
  const waiting = isAskable(view.input) && !known.refusals.some(Boolean) && !(a && b);
  fill(parts.told, a && b ? toldOf(a, b) : waiting ? t("Computing…") : isAskable(view.input) ? "" : t("Choose an input above."));
  fill(parts.outputs, sides.map((side, i) => outputOf(side, i)), a && b && numbers(a, b));
  drawMaps(a, b);
}

const badge = (i) => {
  const one = make("b", { class: "side" }, "AB"[i]);
  one.style.background = Object.values(SIDES)[i];
  return one;
};

function drawWho(sides) {
  const { one, runs } = others();
  const ways = runs.map((other) => [other.id, other.name]);
  if (isChanged(view.changes) && one) ways.push([CHANGED, t("{name}, changed", { name: one.name })]);
  if (!sides)
    return fill(
      parts.who,
      make(
        "span",
        { class: "quiet" },
        t("There is no second run of this task. Change something under “Look and change” to compare this one with itself, changed."),
      ),
    );
  const select = make(
    "select",
    { "aria-label": t("What B is"), onchange: () => choose({ b: select.value, scene: "", map: "", which: "", offset: "" }) },
    ways.map(([value, text]) => make("option", { value }, text)),
  );
  select.value = sides[1].run.id === sides[0].run.id ? CHANGED : sides[1].run.id;
  return fill(parts.who, badge(0), make("span", { class: "wrap" }, sides[0].name), badge(1), select);
}

/** Whose answer is right, in a sentence. */
function toldOf(a, b) {
  const [one, other] = [a.prediction.output, b.prediction.output];
  const [right, theirs] = [one, other].map((output) => verdictOf(a.truth, output));
  if (one === other)
    return right?.right
      ? t("Both give the same answer, and it is right.")
      : right?.right === false
        ? t("Both give the same wrong answer.")
        : t("Both give the same answer.");
  if (right?.off != null && theirs?.off != null)
    return t(right.off < theirs.off ? "A is nearer to the truth." : right.off > theirs.off ? "B is nearer to the truth." : "Both are as far from the truth.");
  if (!right || !theirs || isPicture(one)) return t("A and B answer differently.");
  if (right.right) return t(theirs.right ? "Both are right, in different words." : "A is right, B is wrong.");
  return t(theirs.right ? "B is right, A is wrong." : "A and B are wrong in different ways.");
}

function outputOf(side, i) {
  const answer = known.answers[i],
    refusal = known.refusals[i];
  const output = answer?.prediction.output,
    verdict = answer && verdictOf(known.answers[0]?.truth, output);
  const body = refusal
    ? make("span", { class: "quiet" }, refusal)
    : !answer
      ? make("span", { class: "quiet" }, "…")
      : isPicture(output)
        ? make("img", { class: "drawn", src: output, alt: t("what the model drew") })
        : output === ""
          ? make("span", { class: "quiet" }, t("(nothing)"))
          : marked(verdict, output);
  return make(
    "div",
    { class: "wrap output", "data-side": "AB"[i] },
    badge(i),
    " ",
    make("bdi", {}, body),
    " ",
    mark(verdict),
    answer?.unchanged && make("p", { class: "quiet small" }, t("Asked without the changes: {why}", { why: answer.unchanged })),
    answer && unmetNote(answer),
    answer?.elsewhere && make("p", { class: "quiet small" }, t("Its data have another example at this place; it was asked the same text.")),
  );
}

/** What both say in numbers; the better of two is bold, where one is better. */
function numbers(a, b) {
  const [of, others] = [a, b].map(({ prediction }) => prediction.details?.probabilities);
  const plain = (one) => one && !Array.isArray(one) && Object.values(one).every((value) => typeof value === "number");
  if (!plain(of) || !plain(others)) return null;
  const labels = Object.keys(of).filter((label) => label in others);
  const most = (label) => Math.max(of[label], others[label]);
  const shown = labels.sort((x, y) => most(y) - most(x)).filter((label, i) => i < 6 || label === a.truth);
  const cell = (value, better) => make("td", { class: "number" }, better ? make("b", {}, written(value)) : written(value));
  const line = (label) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", dir: "auto" }, label, label === a.truth && make("span", { class: "quiet" }, ` (${t("expected")})`)),
      cell(of[label], label === a.truth && of[label] > others[label]),
      cell(others[label], label === a.truth && others[label] > of[label]),
    );
  const heads = [t("probability"), "A", "B"].map((name, i) => make("th", { scope: "col", class: i ? "number" : "" }, name));
  return make("table", { class: "sides" }, make("thead", {}, make("tr", {}, heads)), make("tbody", {}, shown.map(line)));
}

/** The maps of a scene, each by a name; what stands alone is also the mean of all. @param {any} one @returns {Named[]} */
function named(one) {
  const seen = new Map();
  const all = choices(one).map(([, map]) => {
    // A word may be written twice: the second is the second.
    const times = (seen.get(map.name) || 0) + 1;
    seen.set(map.name, times);
    return { name: times > 1 ? `${map.name} (${times})` : map.name, map };
  });
  if (mapsOf(one).length === 1) all.push({ name: "mean of all", map: mapsOf(one)[0] });
  return all;
}

/** The scenes that both have, by their names. */
const scenesOf = (a, b) =>
  a.scenes.flatMap((one) => {
    const other = b.scenes.find(({ name, scene }) => name === one.name && scene.kind === one.scene.kind);
    return other ? [[one, other]] : [];
  });

/** The maps that both scenes have; the mean where they have no other in common. */
function mapsIn([one, other]) {
  const theirs = named(other);
  return named(one).flatMap(({ name, map }) => {
    const found = theirs.find((other) => other.name === name);
    return found ? [{ name, maps: [map, found.map] }] : [];
  });
}

function drawMaps(a, b) {
  sheets = [];
  grid = null;
  fill(parts.choose);
  fill(parts.maps);
  fill(parts.readout);
  fill(parts.most);
  if (!a || !b) return;
  const pairs = scenesOf(a, b),
    pair = pairs.find(([one]) => one.name === view.versus.scene) || pairs[0];
  const maps = pair ? mapsIn(pair) : [],
    chosen = maps.find(({ name }) => name === view.versus.map) || maps.find(({ name }) => name === "mean of all") || maps[0];
  const why = !pair
    ? t(a.blank || b.blank || (a.scenes.length && b.scenes.length ? "A and B attend in different places; no map is of the same." : "This model attends to nothing."))
    : !chosen
      ? t("A and B have no map of the same name here.")
      : "";
  const found = chosen ? gridOf(pair, chosen.maps) : why;
  if (typeof found === "string") return fill(parts.maps, make("p", { class: "quiet", id: "versus-blank" }, found));
  grid = found;
  const select = (label, key, names, now) => {
    const one = make("select", { "aria-label": label, onchange: () => choose({ [key]: one.value }) }, names.map(([value, text]) => make("option", { value }, text)));
    one.value = now;
    return names.length > 1 && one;
  };
  fill(
    parts.choose,
    select(t("Attention"), "scene", pairs.map(([one]) => [one.name, t(one.name)]), pair[0].name),
    select(t("Map"), "map", maps.map(({ name }) => [name, mapName(name)]), chosen.name),
  );
  drawSheets();
  readout(null);
  mostOf();
  return undefined;
}

/**
 * Both maps over the same rows and columns: what only one has stays empty in the other. A sentence where there is no
 * such thing.
 * @param {[any, any]} pair @param {import("../scene.js").WeightMap[]} maps
 */
function gridOf([one, other], maps) {
  const [a, b] = [axesOf(one), axesOf(other)];
  if (!a || !b) return edgesOf([one, other], maps);
  const same = (x, y) => JSON.stringify(x) === JSON.stringify(y);
  const equal = same(a.rows, b.rows) && same(a.columns, b.columns);
  // Patches and moments have numbers for names: the third of four is not the third of seven.
  if (!equal && one.scene.kind !== "maps") return t("A and B divide this input in different ways; their cells cannot be compared.");
  if ([a, b].some(({ rows, columns }) => rows.length > MOST_NAMES || columns.length > MOST_NAMES) && !equal)
    return t("These maps are too large to be laid over each other.");
  const rows = equal ? a.rows.map((_, i) => [i, i]) : aligned(a.rows, b.rows),
    columns = equal ? a.columns.map((_, i) => [i, i]) : aligned(a.columns, b.columns);
  const name = (names, theirs) => ([i, j]) => (i === null ? theirs[j] : names[i]);
  const taken = [a, b].map((axes, side) => {
    const width = axes.columns.length,
      out = new Float32Array(rows.length * columns.length).fill(NaN);
    rows.forEach((row, r) =>
      columns.forEach((column, c) => {
        if (row[side] !== null && column[side] !== null)
          out[r * columns.length + c] = maps[side].weights[row[side] * width + column[side]];
      }),
    );
    return out;
  });
  return {
    scene: one.scene,
    scenes: [one.scene, other.scene],
    rows: rows.map(name(a.rows, b.rows)),
    columns: columns.map(name(a.columns, b.columns)),
    rowAxis: a.rowAxis,
    columnAxis: a.columnAxis,
    values: [...taken, taken[1].map((value, i) => value - taken[0][i])],
    alone: [0, 1].map((side) => rows.filter((row) => row[1 - side] === null).length + columns.filter((column) => column[1 - side] === null).length),
  };
}

/** Edges as a list: a graph has no rows and columns. */
function edgesOf([one, other], maps) {
  const names = [one, other].map(({ scene }) => scene.edges.map(([from, to]) => `${scene.nodes[from]} → ${scene.nodes[to]}`));
  const columns = names[0].filter((name) => names[1].includes(name));
  if (!columns.length) return t("A and B divide this input in different ways; their cells cannot be compared.");
  const values = names.map((all, side) => Float32Array.from(columns, (name) => maps[side].weights[all.indexOf(name)]));
  return {
    scene: one.scene,
    scenes: [one.scene, other.scene],
    rows: columns,
    columns: [t("weight")],
    rowAxis: t("edge"),
    columnAxis: "",
    values: [...values, values[1].map((value, i) => value - values[0][i])],
    alone: names.map((all) => all.length - columns.length),
  };
}

/** The greatest of some numbers without their signs. */
const greatest = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value) || 0), 0);

function drawSheets() {
  const range = rangeOf([...grid.values[0], ...grid.values[1]].filter((value) => !Number.isNaN(value)));
  const far = greatest(grid.values[2]) || 1;
  const names = [[badge(0)], [badge(1)], [badge(1), " − ", badge(0)]];
  const figures = grid.values.map((values, i) => {
    const sheet = new Sheet((row, column) => point(row, column, i));
    sheets.push(sheet);
    const shown = /** @type {[number, number]} */ (i < 2 ? range : [-far, far]);
    const bar = legend(shown, i < 2 ? colors() : diverging(), i < 2 && grid.scene.kind === "image");
    return make("figure", {}, make("figcaption", { class: "row spread" }, make("span", {}, names[i]), bar), make("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": ["A", "B", "B − A"][i] }, sheet.element));
  });
  fill(parts.maps, figures);
  const width = figures[0].clientWidth || 300;
  grid.values.forEach((values, i) => {
    const shown = /** @type {[number, number]} */ (i < 2 ? range : [-far, far]);
    const { rows, columns, rowAxis, columnAxis } = grid;
    sheets[i].draw({
      rows, columns, rowAxis, columnAxis, values,
      range: shown,
      colors: i < 2 ? colors() : diverging(),
      paper: paper(),
      ...shapeOf(width, grid.scenes[i]),
    });
    const what = [t("A's weights"), t("B's weights"), t("B's weights less A's")][i];
    sheets[i].canvas.setAttribute(
      "aria-label",
      t("{name}: {rows} × {columns}; arrow keys move the cursor of all three", { name: what, rows: rows.length, columns: columns.length }),
    );
    sheets[i].canvas.dataset.map = ["a", "b", "difference"][i];
  });
}

/** How large a cell is; a picture lies under its patches. */
function shapeOf(width, scene) {
  const { rows, columns } = grid;
  if (grid.scene.kind === "image") {
    const side = Math.min(width - 16, 340),
      high = (side * grid.scene.height) / grid.scene.width;
    return {
      cell: /** @type {[number, number]} */ ([side / columns.length, high / rows.length]),
      bare: true,
      ...(scene && { picture: pictureOf(scene), over: HEAT }),
    };
  }
  const across = Math.min(30, Math.max(columns.length <= 60 ? 15 : 1.4, (width - 110) / columns.length)),
    down = rows.length <= 60 ? Math.max(15, Math.min(24, across)) : across;
  return { cell: /** @type {[number, number]} */ ([across, down]), labelWidth: Math.min(110, width * 0.3) };
}

function legend(range, ramp, heat = false) {
  const bar = make("canvas", { width: 96, height: 1, "aria-hidden": "true" });
  bar.getContext("2d").drawImage(painted(Float32Array.from({ length: 96 }, (_, i) => i / 95), [0, 1], 1, 96, ramp, heat ? { ...HEAT, cover: 1 } : undefined), 0, 0);
  return make("span", { class: "legend" }, written(range[0]), bar, written(range[1]));
}

/** The cursor of all three. */
function point(row, column, from = -1) {
  sheets.forEach((sheet, i) => {
    if (i === from) return;
    sheet.cursor = [row, column];
    sheet.drawCursor();
  });
  readout([row, column]);
}

const cellName = (row, column) =>
  grid.scene.kind === "image"
    ? t("patch {row}, {column}", { row: row + 1, column: column + 1 })
    : grid.scene.kind === "graph"
      ? grid.rows[row]
      : `${grid.rows[row]} → ${grid.columns[column]}`;

/** A number with its sign. */
const signed = (value) => (value > 0 ? `+${written(value)}` : written(value).replace("-", "−"));

function readout(cell) {
  if (!cell) {
    const [a, b] = grid.alone;
    const lone = a + b > 0 && t("Rows and columns that only A ({a}) or only B ({b}) has are gray in the other.", { a, b });
    return fill(parts.readout, make("span", { class: "quiet" }, t("Point at a cell, or use the arrow keys: the same one is marked in all three."), " ", lone || ""));
  }
  const [a, b, far] = grid.values.map((values) => values[cell[0] * grid.columns.length + cell[1]]);
  const told = (value) => (Number.isNaN(value) ? t("has none") : written(value));
  return fill(
    parts.readout,
    make("bdi", { class: "wrap" }, cellName(...cell)),
    make("span", {}, badge(0), " ", a > b ? make("b", {}, told(a)) : told(a)),
    make("span", {}, badge(1), " ", b > a ? make("b", {}, told(b)) : told(b)),
    !Number.isNaN(far) && make("span", { class: "number" }, `${t("difference")} ${signed(far)}`),
  );
}

/** Where the two differ most, in words. */
function mostOf() {
  const far = grid.values[2];
  const best = [];
  far.forEach((value, i) => {
    if (!(Math.abs(value) > 1e-6)) return;
    if (best.length === 5 && Math.abs(value) <= Math.abs(far[best[4]])) return;
    best.push(i);
    best.sort((x, y) => Math.abs(far[y]) - Math.abs(far[x]));
    best.length = Math.min(best.length, 5);
  });
  if (!best.length) return fill(parts.most, make("span", { class: "quiet" }, t("The weights of both are the same.")));
  const width = grid.columns.length;
  return fill(
    parts.most,
    make("span", { class: "quiet" }, t("They differ most at")),
    best.map((i) => {
      const [row, column] = [Math.floor(i / width), i % width];
      return button([make("bdi", {}, cellName(row, column)), ` ${signed(far[i])}`], () => point(row, column), { class: "small" });
    }),
  );
}

/** An input of a part, asked of both. @param {string} part @param {number} index */
export function askBoth(part, index) {
  set({ input: { kind: "example", part, index } }, { push: true });
  document.querySelector("#versus")?.scrollIntoView({ block: "start" });
}
