// The test or validation part: sorted by loss, filtered, and the confusion matrix that opens its examples.

import { drawn, isPicture } from "../drawn.js";
import * as api from "../api.js";
import { button, fill, make, table } from "../dom.js";
import { colorOf, inkOn, written } from "../draw.js";
import { described } from "../input.js";
import { run, sentence, session } from "../session.js";
import { set, view } from "../state.js";
import { colors } from "../theme.js";
import { t } from "../words.js";
import { residualsCard } from "./residuals.js";

const PAGE = 50;
const PARTS = { train: "training", training: "training", validation: "validation", test: "test" };

let parts = /** @type {any} */ (null);
let shown = /** @type {any} */ (null);
let asked = 0;

/** @param {Element} panel */
export function enter(panel) {
  parts = {
    filters: make("form", { class: "filters", onsubmit: (event) => event.preventDefault() }),
    list: make("div", {}),
    side: make("div", {}),
  };
  fill(panel, make("div", { class: "errors" }, parts.filters, parts.list, parts.side));
  shown = null;
  drawFilters();
  load();
}

export function leave() {
  asked += 1;
  parts = null;
}

/** @param {Set<string>} changed */
export function update(changed) {
  if (!parts) return;
  if (changed.has("errors")) {
    drawFilters();
    load();
  }
  if (changed.has("theme")) draw();
}

const part = () =>
  view.errors.part ||
  (run().parts.includes("test") ? "test" : run().parts.includes("validation") ? "validation" : run().parts[0]);

/** @param {Record<string, string>} patch an empty text takes a filter away */
function filter(patch, keepPage = false) {
  const next = { ...view.errors, ...(keepPage ? {} : { offset: "" }), ...patch };
  for (const key of Object.keys(next)) if (next[key] === "") delete next[key];
  set({ errors: next });
}

async function load() {
  const one = run(),
    serial = ++asked;
  const { part: _, ...filters } = view.errors;
  const query = new URLSearchParams({ sort: "loss", order: "down", limit: String(PAGE), ...filters });
  parts.list.classList.add("waiting");
  for (;;) {
    let answer;
    try {
      answer = await api.post(`/api/runs/${encodeURIComponent(one.id)}/parts/${part()}?${query}`, {});
    } catch (error) {
      if (serial === asked && parts) {
        parts.list.classList.remove("waiting");
        fill(parts.list, make("p", { class: "card quiet" }, sentence(error)));
        fill(parts.side);
      }
      return;
    }
    if (serial !== asked || !parts) return;
    if (answer.examples) {
      shown = answer;
      parts.list.classList.remove("waiting");
      draw();
      return;
    }
    parts.list.classList.remove("waiting");
    fill(
      parts.list,
      make(
        "div",
        { class: "card row", role: "status" },
        make("progress", { max: answer.total || 1, value: answer.done || 0 }),
        make(
          "span",
          { class: "quiet" },
          `${t(answer.phase || "computing")} ${answer.done ?? 0} / ${answer.total ?? "–"}`,
        ),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

/** One of several, as a filter. */
function selected(name, label, choices) {
  const field = make(
    "select",
    { name, onchange: () => filter({ [name]: field.value }) },
    choices.map(([value, text]) => make("option", { value }, text)),
  );
  field.value = view.errors[name] ?? (name === "part" ? part() : choices[0][0]);
  return make("label", {}, label, field);
}

/** Something typed, as a filter; it is heard when the typing pauses. */
function typed(name, label, type, more = {}) {
  const heard = (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => filter({ [name]: event.target.value.trim() }), 250);
  };
  return make(
    "label",
    {},
    label,
    make("input", { name, type, value: view.errors[name] ?? "", oninput: heard, ...more }),
  );
}

function drawFilters() {
  const one = run(),
    errors = view.errors,
    labels = shown?.labels?.length ? shown.labels : one.input.labels;
  const filtered = Object.keys(errors).some((key) => !["part", "sort", "order"].includes(key));
  const clear = button(t("Clear"), () => set({ errors: errors.part ? { part: errors.part } : {} }), {
    name: "clear",
    hidden: !filtered,
  });
  const focused = /** @type {any} */ (document.activeElement);
  if (parts.filters.contains(focused) && ["text", "shortest", "longest"].includes(focused.name)) {
    // Whoever is typing goes on in the same field.
    parts.filters.querySelector('[name="clear"]').replaceWith(clear);
    return;
  }
  const any = ["", t("any")],
    named = [any, ...labels.map((name) => [name, name])];
  fill(
    parts.filters,
    selected(
      "part",
      t("Part"),
      one.parts.map((name) => [name, t(PARTS[name] || name)]),
    ),
    selected("sort", t("Sorted by"), [
      ["loss", t("loss")],
      ["length", t("length")],
      ["index", t("place in the data")],
    ]),
    selected("order", t("Order"), [
      ["down", t("greatest first")],
      ["up", t("least first")],
    ]),
    labels.length > 0 && [selected("label", t("Label"), named), selected("predicted", t("Predicted"), named)],
    // A number is nearer to the truth or further off, and never right.
    !shown?.residuals && selected("right", t("Right?"), [any, ["false", t("wrong")], ["true", t("right")]]),
    typed("shortest", t("Length from"), "number", { min: 0 }),
    typed("longest", t("to"), "number", { min: 0 }),
    typed("text", t("Contains"), "search"),
    clear,
  );
}

let typing = /** @type {any} */ (0);

/** Opens an example as a question. */
function open(index) {
  session.answer = null; // what was asked before must not pass for the answer to this
  const input = { kind: "example", part: shown.part, index };
  set({ tab: "ask", input, from: null, changes: {}, scene: 0, map: "", look: "" }, { push: true });
}

function line(example) {
  const look = button(clipped(named(example.input)), () => open(example.index), {
    class: "plain link",
    title: t("look at it"),
  });
  const row = make(
    "tr",
    { class: "open", "data-index": example.index },
    make("td", { dir: "auto" }, evidence(example.index), look),
    // On a telephone a table has no head: each says what it is.
    make("td", { dir: "auto", "data-name": t("Expected") }, clipped(example.truth ?? "–")),
    make(
      "td",
      { dir: "auto", class: example.right === false ? "wrong" : "", "data-name": t("Output") },
      clipped(example.output),
    ),
    make(
      "td",
      { class: "number", "data-name": t("loss") },
      typeof example.loss === "number" ? written(example.loss) : "–",
    ),
    make("td", { class: "number", "data-name": t("length") }, example.length),
    make("td", { class: "number quiet", "data-name": t("number") }, `${example.index + 1}`),
  );
  row.addEventListener("click", (event) => event.target.closest("button, audio") || open(example.index));
  return row;
}

/** What an example looks or sounds like. @param {number} index */
function evidence(index) {
  const what = shown.evidence,
    of = `${encodeURIComponent(run().id)}/${what}/${encodeURIComponent(shown.part)}/${index}`;
  const name = described({ kind: "example", part: shown.part, index });
  // Its name stands beside it.
  if (what === "picture")
    return make("img", { class: "thumb", src: `/api/runs/${of}.png`, alt: "", loading: "lazy", width: 56, height: 56 });
  return what === "sound" && make("audio", { controls: true, preload: "none", src: `/api/runs/${of}.wav`, "aria-label": name });
}

/** How many there are, and the pages of them. */
function pager() {
  const offset = Number(view.errors.offset) || 0,
    end = offset + shown.examples.length;
  const turn = (sign, to, disabled, name) =>
    button(sign, () => filter({ offset: String(Math.max(0, to)) }, true), { disabled, "aria-label": name });
  return make(
    "p",
    { class: "row spread", role: "status" },
    make(
      "span",
      { id: "matching" },
      shown.matching === shown.count
        ? t("{count} examples", { count: shown.count })
        : t("{matching} of {count} examples", { matching: shown.matching, count: shown.count }),
    ),
    make(
      "span",
      { class: "row" },
      turn("‹", offset - PAGE, offset === 0, t("previous")),
      make("span", { class: "number quiet" }, shown.matching ? `${offset + 1}–${end}` : "–"),
      turn("›", offset + PAGE, end >= shown.matching, t("next")),
    ),
  );
}

function draw() {
  if (!shown || !parts) return;
  const number = (name) => /** @type {[string, string]} */ ([name, "number"]);
  const heads = [
    [t("Input")],
    [t("Expected")],
    [t("Output")],
    number(t(shown.measure || "loss")),
    number(t("length")),
    number(t("number")),
  ];
  fill(
    parts.list,
    pager(),
    shown.notes.length > 0 &&
      make("p", { class: "quiet small", id: "notes" }, shown.notes.map((note) => t(note.text, note)).join(" ")),
    shown.examples.length
      ? table(/** @type {any} */ (heads), shown.examples.map(line), { class: "list" })
      : make("p", { class: "quiet card" }, t("No example is like that.")),
  );
  const { confusion: matrix, residuals } = shown;
  fill(
    parts.side,
    residuals && residualsCard(residuals, open),
    (matrix || shown.groups.length > 0) && groups(shown.groups, matrix),
    matrix && confusion(matrix),
  );
  if ((shown.labels?.length && !run().input.labels.length) || residuals) drawFilters();
}

/** An input that is named by its place is told as everywhere on the page: the first is number 1. */
function named(text) {
  const [, name, index] = /^(train|validation|test):(\d+)$/.exec(text) || [];
  return name ? described({ kind: "example", part: name, index: Number(index) }) : text;
}

const clipped = (text) =>
  isPicture(text) ? drawn(text) : [...String(text)].length > 220 ? `${[...String(text)].slice(0, 220).join("")}…` : String(text);

/** The confusions that occur most, each a click away from its examples, with the words they have in common. */
function groups(most, matrix) {
  const counts = matrix?.counts || [],
    total = counts.flat().reduce((sum, n) => sum + n, 0),
    wrong = total - counts.reduce((sum, row, i) => sum + row[i], 0);
  const one = ({ truth, predicted, n, words }) => {
    const on = view.errors.label === truth && view.errors.predicted === predicted;
    return make(
      "li",
      {},
      button(
        [make("b", {}, truth), ` → ${predicted}, ${n}`],
        () => filter(on ? { label: "", predicted: "" } : { label: truth, predicted }),
        { "aria-pressed": String(on) },
      ),
      make(
        "span",
        { class: "quiet small wrap words-of" },
        words.map(([word, times], i) => [i ? ", " : "", make("bdi", {}, word), ` ×${times}`]),
      ),
    );
  };
  return make(
    "div",
    { class: "card groups" },
    make("h2", {}, t("What goes wrong most")),
    total > 0 &&
      make("p", {}, wrong ? t("{wrong} of {total} are wrong.", { wrong, total }) : t("All {total} are right.", { total })),
    make("ul", { class: "plain-list" }, most.slice(0, 6).map(one)),
  );
}

/** Rows are the truth, columns what was predicted; a cell opens its examples. */
function confusion({ labels, counts }) {
  // One scale: the share of each row's examples, whatever stands on the diagonal.
  const sums = counts.map((row) =>
      Math.max(
        1,
        row.reduce((sum, count) => sum + count, 0),
      ),
    ),
    ramp = colors();
  const cell = (i, j) => {
    const color = colorOf(counts[i][j] / sums[i], [0, 1], ramp),
      on = view.errors.label === labels[i] && view.errors.predicted === labels[j];
    const one = button(
      counts[i][j] || "·",
      () => filter(on ? { label: "", predicted: "" } : { label: labels[i], predicted: labels[j] }),
      {
        "aria-pressed": String(on),
        "aria-label": t("{n} times {truth} taken for {predicted}", {
          n: counts[i][j],
          truth: labels[i],
          predicted: labels[j],
        }),
      },
    );
    one.style.background = `rgb(${color})`;
    one.style.color = inkOn(color);
    return make("td", {}, one);
  };
  return make(
    "div",
    { class: "card" },
    make("h2", {}, t("Confusion: rows are the truth, columns what was predicted")),
    make("p", { class: "quiet small" }, t("The darker, the larger the share of the row.")),
    make(
      "div",
      { class: "scroll" },
      make(
        "table",
        { class: "confusion" },
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            make("td", {}),
            labels.map((name) => make("th", { scope: "col" }, make("span", {}, name))),
          ),
        ),
        make(
          "tbody",
          {},
          labels.map((name, i) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, name),
              labels.map((_, j) => cell(i, j)),
            ),
          ),
        ),
      ),
    ),
  );
}
