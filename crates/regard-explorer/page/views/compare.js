// Several runs on the same input, side by side: output, attention, measures, curves, cost.

import { drawn, isPicture } from "../drawn.js";
import { button, fill, make } from "../dom.js";
import { chart, key, linesOf, scoresOf } from "../chart.js";
import { HEAT, Sheet, blocksOf, painted, rangeOf, written } from "../draw.js";
import { count, duration } from "../head.js";
import { described } from "../input.js";
import { axesOf, chosenMap, mapName } from "../scene.js";
import { isAskable, refresh, run, sentence, session } from "../session.js";
import { isChanged, set, view } from "../state.js";
import { colors, paper } from "../theme.js";
import { expected, mark, marked, verdictOf } from "../verdict.js";
import { t } from "../words.js";
import { pictureOf } from "./patches.js";
import { enterVersus, leaveVersus, sameAsked, unmetNote, updateVersus } from "./versus.js";

/** Measures of which less is better. */
const LESS = new Set(["perplexity", "loss", "WER", "CER", "MSE", "RMSE", "MAE", "mean squared error"]);

let parts = /** @type {any} */ (null);
/** @type {Map<string, {answer: any, refusal: string}>} */
let answers = new Map();
let asked = "";

/** @param {Element} panel */
export function enter(panel) {
  parts = {
    choose: make("div", { class: "row" }),
    versus: make("div", { class: "stack" }),
    cards: make("div", { class: "cards" }),
    table: make("div", { class: "scroll", tabindex: 0 }),
    charts: make("div", { class: "charts" }),
    key: make("div"),
  };
  const before = run(),
    others = session.runs.filter(
      (one) => one.task === before?.task && one.id !== before?.id && one.ready && !one.error,
    );
  // A first visit compares with what there is to compare with.
  if (view.runs.length < 2 && others.length) set({ runs: [view.runs[0], ...others.slice(0, 5).map(({ id }) => id)] });
  if (!parts) return; // the change above has drawn all of it again
  fill(
    panel,
    make(
      "div",
      { class: "stack" },
      parts.versus,
      parts.choose,
      parts.cards,
      make("div", { class: "card" }, make("h2", {}, t("Measures and cost")), parts.table),
      parts.key,
      parts.charts,
    ),
  );
  draw();
  enterVersus(parts.versus);
  askAll();
  // A training may have gone on since the page was opened.
  refresh().then(() => parts && draw());
}

export function leave() {
  leaveVersus();
  parts = null;
}

/** @param {Set<string>} changed */
export function update(changed) {
  if (!parts) return;
  updateVersus(changed);
  if (changed.has("input") || changed.has("changes")) askAll();
  if (changed.has("theme") || changed.has("size")) draw();
}

const chosen = () => view.runs.map((id) => session.runs.find((one) => one.id === id)).filter(Boolean);

async function askAll() {
  const request = { input: view.input, changes: isChanged(view.changes) ? view.changes : null };
  const now = JSON.stringify([
    view.runs,
    request.input?.kind === "bytes" ? [request.input.name, request.input.base64?.length] : request.input,
    request.changes,
  ]);
  if (now === asked && answers.size) return drawCards();
  asked = now;
  answers = new Map();
  if (!isAskable(view.input)) return drawCards();
  const ask = async (one, place, first) => {
    try {
      const answer = await sameAsked({ run: one, changes: request.changes, name: one.name }, first, `compare-${place}`);
      if (!answer || asked !== now) return null;
      answers.set(one.id, { answer, refusal: "" });
    } catch (error) {
      if (asked !== now) return null;
      answers.set(one.id, { answer: null, refusal: sentence(error) });
    }
    drawCards();
    return answers.get(one.id)?.answer;
  };
  // What the first was asked is asked of the others: their data may have another example at its place.
  const [head, ...rest] = chosen();
  const first = head && (await ask(head, 0, null));
  await Promise.all(rest.map((one, place) => ask(one, place + 1, first)));
  return undefined;
}

function draw() {
  const one = run();
  const others = session.runs.filter((other) => other.task === one?.task);
  fill(
    parts.choose,
    make("span", { class: "quiet" }, t("Runs")),
    others.map((other) => {
      const on = view.runs.includes(other.id);
      const box = make("input", {
        type: "checkbox",
        disabled: other.id === view.runs[0],
        onchange: () =>
          set({ runs: box.checked ? [...view.runs, other.id] : view.runs.filter((id) => id !== other.id) }),
      });
      box.checked = on;
      return make("label", { class: "line" }, box, other.name);
    }),
    others.length < 2 &&
      make(
        "span",
        { class: "quiet" },
        t(
          "There is only one run of this task. Start `regard explore` with several folders, such as those of `regard compare`.",
        ),
      ),
  );
  drawCards();
  drawTable();
  drawCharts();
}

function drawCards() {
  if (!parts) return;
  const truth = [...answers.values()].map(({ answer }) => answer?.truth).find(Boolean);
  fill(
    parts.cards,
    isAskable(view.input) &&
      truth &&
      make(
        "div",
        { class: "card" },
        make("h2", {}, t("Expected")),
        make("p", { class: "wrap", dir: "auto" }, isPicture(truth) ? drawn(truth, t("the picture in the data")) : truth),
        make("p", { class: "quiet small wrap" }, described(view.input)),
      ),
    chosen().map((one) => card(one, truth)),
  );
}

function card(one, truth) {
  const { answer, refusal } = answers.get(one.id) || { answer: null, refusal: "" };
  const output = answer?.prediction.output,
    verdict = answer && verdictOf(truth, output);
  const scene = answer?.scenes[0],
    found = scene && chosenMap(scene, "mean");
  return make(
    "article",
    { class: "card", "data-run": one.id },
    make(
      "div",
      { class: "row spread" },
      make("h3", { class: "wrap" }, one.name),
      one.id !== view.runs[0] && button(t("look at it"), () => open(one.id), { class: "plain small" }),
    ),
    refusal
      ? make("p", { class: "quiet" }, refusal)
      : !answer
        ? make("p", { class: "quiet" }, isAskable(view.input) ? t("Computing…") : t("Choose an input above."))
        : [
            make(
              "p",
              { class: "wrap output", dir: "auto" },
              output === ""
                ? make("span", { class: "quiet" }, t("(nothing)"))
                : isPicture(output)
                  ? drawn(output)
                  : marked(verdict, output),
              " ",
              mark(verdict),
            ),
            expected(verdict),
            answer.unchanged &&
              make("p", { class: "quiet small" }, t("Asked without the changes: {why}", { why: answer.unchanged })),
            unmetNote(answer),
            answer.elsewhere &&
              make("p", { class: "quiet small" }, t("Its data have another example at this place; it was asked the same text.")),
            found
              ? [
                  small(scene, found),
                  make("p", { class: "quiet small" }, `${t(scene.name)} · ${mapName(found[1].name)}`),
                ]
              : make("p", { class: "quiet small" }, t(answer.blank || "This model attends to nothing.")),
            make("p", { class: "quiet small number" }, `${answer.milliseconds.toFixed(1)} ms`),
          ],
  );
}

function open(id) {
  set(
    { runs: [id, ...view.runs.filter((other) => other !== id)], tab: "ask", scene: 0, map: "", look: "" },
    { push: true },
  );
}

/** A map of the attention, small, with its strongest cells in words for those who cannot see it. */
export function small(scene, [, map], side = 280) {
  const axes = axesOf(scene);
  const [rows, columns] = axes ? [axes.rows.length, axes.columns.length] : [1, map.weights.length];
  if (axes && scene.scene.kind === "maps" && rows <= 40 && columns <= 40) return labeled(axes, map);
  const picture = scene.scene.kind === "image" ? pictureOf(scene.scene) : null;
  const ratio = picture ? scene.scene.height / scene.scene.width : Math.min(1.2, Math.max(0.12, rows / columns));
  const canvas = make("canvas", {
    class: "mini",
    width: side * 2,
    height: Math.round(side * 2 * ratio),
    role: "img",
    "aria-label": `${mapName(map.name)}: ${inWords(axes, map)}`,
  });
  const context = canvas.getContext("2d"),
    cells = blocksOf(map.weights, rows, columns, Math.max(1, Math.ceil(Math.max(rows, columns) / (side * 2))));
  context.imageSmoothingEnabled = false;
  if (picture) context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  context.drawImage(
    painted(cells.values, rangeOf(map.weights), cells.rows, cells.columns, colors(), picture ? HEAT : undefined),
    0,
    0,
    canvas.width,
    canvas.height,
  );
  return canvas;
}

/** A small map with its words, where there are few. */
function labeled(axes, map) {
  const sheet = new Sheet(() => {});
  // Every word has room for its name; what is wider than its card is scrolled.
  const side = Math.max(14, Math.min(20, 190 / axes.columns.length));
  sheet.draw({
    ...axes,
    values: map.weights,
    range: rangeOf(map.weights),
    colors: colors(),
    paper: paper(),
    cell: [side, axes.rows.length > 16 ? Math.min(side, 14) : Math.max(14, side)],
    labelWidth: 84,
  });
  sheet.canvas.setAttribute("aria-label", `${mapName(map.name)}: ${inWords(axes, map)}`);
  return sheet.element;
}

function inWords(axes, map) {
  if (!axes) return "";
  const columns = axes.columns.length;
  return axes.rows
    .slice(0, 30)
    .map((name, row) => {
      let best = 0;
      for (let column = 1; column < columns; column++)
        if (map.weights[row * columns + column] > map.weights[row * columns + best]) best = column;
      return `${name} → ${axes.columns[best]} ${written(map.weights[row * columns + best])}`;
    })
    .join("; ");
}

function drawTable() {
  const runs = chosen();
  const names = [
    ...new Set(runs.flatMap((one) => one.records.flatMap((record) => scoresOf(record).map(([name]) => name)))),
  ];
  const kept = (one) =>
    new Map(
      scoresOf(
        [...one.records].reverse().find((record) => record.best && scoresOf(record).length) ||
          one.records[one.records.length - 1],
      ),
    );
  // The best of a measure is bold; of most the greatest is, of errors the least.
  const row = (label, value, best = /** @type {(one: any) => boolean} */ (() => false)) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, label),
      runs.map((one) => make("td", { class: "number" }, best(one) ? make("b", {}, value(one)) : value(one))),
    );
  const bestOf = (name) => {
    const values = runs.map((one) => kept(one).get(name)).filter((value) => typeof value === "number");
    const top = LESS.has(name) ? Math.min(...values) : Math.max(...values);
    return (one) => values.length > 1 && kept(one).get(name) === top;
  };
  const differing = Object.keys(runs[0]?.settings || {}).filter(
    (setting) => new Set(runs.map((one) => JSON.stringify(one.settings?.[setting]))).size > 1,
  );
  fill(
    parts.table,
    make(
      "table",
      {},
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("td", {}),
          runs.map((one) => make("th", { scope: "col", class: "number" }, one.name)),
        ),
      ),
      make(
        "tbody",
        {},
        names.map((name) =>
          row(t(name), (one) => (kept(one).has(name) ? written(kept(one).get(name)) : "–"), bestOf(name)),
        ),
        row(t("parameters"), (one) => count(one.parameters)),
        row(t("training time"), (one) => duration(one.seconds)),
        row(t("epochs"), (one) => `${one.records[one.records.length - 1]?.epoch ?? 0} / ${one.epochs ?? "–"}`),
        differing.map((setting) => row(setting, (one) => String(one.settings?.[setting] ?? "–"))),
      ),
    ),
  );
}

function drawCharts() {
  const runs = chosen(),
    lines = runs.map((one) => linesOf(one.records));
  const names = [...new Set(lines.flatMap((of) => [...of.keys()]))].filter((name) => name !== "learning rate");
  fill(parts.key, key(runs.map((one) => one.name)));
  fill(
    parts.charts,
    names.map((name) =>
      chart(
        name,
        runs
          .map((one, i) => ({ name: one.name, color: i, points: lines[i].get(name) || [] }))
          .filter(({ points }) => points.length),
      ),
    ),
  );
}
