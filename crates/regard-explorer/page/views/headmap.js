// The heads over a whole part: what each is worth, by the task's own measure, and what each does.

import * as api from "../api.js";
import { button, fill, make, segmented, table } from "../dom.js";
import { colorOf, inkOn, written } from "../draw.js";
import { run, sentence, session } from "../session.js";
import { set, view } from "../state.js";
import { colors } from "../theme.js";
import { percent } from "../told.js";
import { t } from "../words.js";

const PARTS = { train: "training", validation: "validation", test: "test" };
/** How a head is taken away. @type {"mean" | "zero"} */
let by = "mean";

let parts = /** @type {any} */ (null);
/** `asked`: the server has said what it has. @type {Record<"ablation" | "heads", {asked: boolean, found: any, running: any, refusal: string}>} */
const known = { ablation: none(), heads: none() };
let of = "";
let asked = 0;

function none() {
  return { asked: false, found: null, running: null, refusal: "" };
}

/** What the server said of a study. @param {Partial<{found: any, running: any, refusal: string}>} answer */
const heard = (answer) => ({ ...none(), asked: true, ...answer });

const part = () => view.errors.part || "test";

/** @param {Element} panel */
export function enter(panel) {
  parts = { filters: make("div", { class: "row" }), worth: make("div", {}), does: make("div", {}) };
  fill(panel, make("div", { class: "stack headmap" }, parts.filters, parts.worth, parts.does));
  load();
}

export function leave() {
  asked += 1;
  parts = null;
}

/** @param {Set<string>} changed */
export function update(changed) {
  if (!parts) return;
  if (changed.has("errors")) load();
  else if (changed.has("theme")) draw();
}

/** What is known already of this part; nothing is computed. */
function load() {
  const now = JSON.stringify([run().id, part()]);
  if (now !== of) {
    of = now;
    known.ablation = none();
    known.heads = none();
  }
  asked += 1;
  drawFilters();
  draw();
  follow("ablation", false);
  follow("heads", false);
}

/**
 * Asks for a study until it is done.
 * @param {"ablation" | "heads"} study @param {boolean} begins whether it is begun where it was not
 */
async function follow(study, begins) {
  const serial = asked,
    address = `/api/runs/${encodeURIComponent(run().id)}/${study}/${part()}`;
  for (let first = true; ; first = false) {
    let answer;
    try {
      answer = begins && first ? await api.post(address, {}) : await api.get(address);
    } catch (error) {
      if (serial !== asked || !parts) return;
      // It was not begun: whoever wants it presses the button.
      const idle = !begins && /** @type {any} */ (error).status === 405;
      known[study] = heard({ refusal: idle ? "" : sentence(error) });
      return draw();
    }
    if (serial !== asked || !parts) return;
    known[study] = heard(answer.running ? { running: answer } : { found: answer });
    draw();
    if (!answer.running) return;
    await new Promise((resolve) => setTimeout(resolve, 400));
  }
}

function drawFilters() {
  const field = make(
    "select",
    { name: "part", onchange: () => set({ errors: { part: field.value } }) },
    run().parts.map((name) => make("option", { value: name }, t(PARTS[name] || name))),
  );
  field.value = part();
  fill(parts.filters, make("label", {}, t("Part"), " ", field));
}

function draw() {
  if (!parts) return;
  fill(parts.worth, worth());
  fill(parts.does, does());
}

/** A button that begins a study, or how far it is; nothing before one knows which. */
function begin(study, label) {
  const { asked, running, refusal } = known[study];
  if (!asked) return null;
  if (running)
    return make(
      "div",
      { class: "row", role: "status" },
      make("progress", { max: running.total || 1, value: running.done || 0, "aria-label": t(running.phase) }),
      make("span", { class: "quiet" }, `${t(running.phase)} ${running.done} / ${running.total || "–"}`),
    );
  return [
    refusal && make("p", { class: "quiet" }, refusal),
    make(
      "p",
      {},
      button(
        label,
        () => {
          known[study] = heard({ running: { phase: "measuring", done: 0, total: 0 } });
          draw();
          follow(study, true);
        },
        { class: "main" },
      ),
    ),
  ];
}

/** The sites that are there, in their order. */
const sites = (all) => [...new Set(all.map(({ site }) => site))];

const NAMES = {
  encoder: "Encoder",
  decoder: "Decoder",
  cross: "From output to source",
  pooling: "Pooling",
  hops: "Hops",
  question: "From text to question",
  graph: "Along the edges",
  kernel: "Kernel",
};

/** A head by its name; what is the only one of its kind needs no number. @param {any} one @param {any[]} all */
function nameOf({ site: of, layer, head }, all) {
  const here = all.filter((one) => one.site === of),
    site = t(NAMES[of] || of);
  if (here.length === 1) return site;
  if (here.every((one) => one.head === 0)) return t("{site}, layer {layer}", { site, layer: layer + 1 });
  return t("{site}, layer {layer}, head {head}", { site, layer: layer + 1, head: head + 1 });
}

/** How much worse the model is without a head: more is worse, whichever way the measure goes. */
function lossOf(found, one) {
  const change = one[by];
  return typeof change === "number" ? (found.better === "higher" ? -change : change) : null;
}

const signed = (value) => `${value < 0 ? "−" : "+"}${written(Math.abs(value))}`;

function worth() {
  const { found: done, running } = known.ablation,
    found = done || running?.so_far;
  return make(
    "div",
    { class: "card" },
    make("h2", { class: "title" }, t("What is each head worth?")),
    make(
      "p",
      { class: "quiet small" },
      t("Each head is taken away alone, over the whole part, and the task's own measure is taken again."),
    ),
    !done && begin("ablation", t("Measure the model without each head")),
    found?.heads && ablation(found, Boolean(done)),
  );
}

function ablation(found, isDone) {
  const all = [...found.heads, ...found.layers];
  const most = Math.max(1e-9, ...all.map((one) => Math.abs(lossOf(found, one) ?? 0)));
  return [
    make("p", { class: "told" }, isDone ? mostLost(found) : ""),
    make(
      "div",
      { class: "row" },
      make("span", {}, t("A head's output is set to")),
      segmented(
        t("A head's output is set to"),
        [
          ["mean", t("its mean")],
          ["zero", t("zero")],
        ],
        by,
        (value) => {
          by = value === "zero" ? "zero" : "mean";
          draw();
        },
      ),
      make(
        "span",
        { class: "quiet small" },
        t("{measure} of the whole model: {value}, {n} examples", {
          measure: t(found.measure),
          value: written(found.whole ?? NaN),
          n: found.examples,
        }),
      ),
    ),
    make(
      "div",
      { class: "pair" },
      sites(found.heads).map((site) => map(found, site, most)),
    ),
    make(
      "p",
      { class: "quiet small" },
      t("The stronger the color, the more is lost. What gets better without a head is framed."),
    ),
  ];
}

/** The head without which most is lost, in a sentence. */
function mostLost(found) {
  const ranked = found.heads
    .map((one) => ({ one, loss: lossOf(found, one) ?? 0 }))
    .sort((a, b) => b.loss - a.loss);
  const idle = ranked.filter(({ loss }) => loss <= 0).length,
    best = ranked[0];
  if (!best || best.loss <= 0) return t("Without any single head the model is as good as whole.");
  return t("Most is lost without {head}: {measure} {change}. {idle} of {all} heads can go one at a time without a loss.", {
    head: nameOf(best.one, found.heads),
    measure: t(found.measure),
    change: signed(best.one[by]),
    idle,
    all: ranked.length,
  });
}

/** Layers down, heads across. */
function map(found, site, most) {
  const heads = found.heads.filter((one) => one.site === site),
    layers = found.layers.filter((one) => one.site === site);
  const across = Math.max(...heads.map(({ head }) => head)) + 1,
    down = [...new Set(heads.map(({ layer }) => layer))];
  const cell = (one) => {
    const loss = one && lossOf(found, one);
    if (loss === null || loss === undefined) return make("td", {}, one ? "…" : "");
    const color = colorOf(Math.max(0, loss), [0, most], colors());
    const name = one.head === null ? t("layer {layer}", { layer: one.layer + 1 }) : nameOf(one, found.heads);
    const td = make(
      "td",
      { class: loss < 0 ? "number better" : "number", title: `${name}: ${t(found.measure)} ${signed(one[by])}` },
      signed(one[by]),
    );
    td.style.background = `rgb(${color})`;
    td.style.color = inkOn(color);
    return td;
  };
  return make(
    "figure",
    { "data-site": site },
    make("h2", {}, t(NAMES[site] || site)),
    make(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": t(NAMES[site] || site) },
      table(
        /** @type {[string][]} */ ([
          [t("layer")],
          ...Array.from({ length: across }, (_, head) => [t("head {head}", { head: head + 1 })]),
          ...(layers.length ? [[t("all heads")]] : []),
        ]),
        down.map((layer) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, layer + 1),
            Array.from({ length: across }, (_, head) =>
              cell(heads.find((one) => one.layer === layer && one.head === head)),
            ),
            layers.length > 0 && cell(layers.find((one) => one.layer === layer)),
          ),
        ),
        { class: "worth" },
      ),
    ),
  );
}

function does() {
  const { found } = known.heads;
  return make(
    "div",
    { class: "card" },
    make("h2", { class: "title" }, t("What does each head do?")),
    !found && begin("heads", t("Look at what each head looks at")),
    found && profile(found),
  );
}

const SENTENCES = {
  previous: "mostly looks one word back ({n})",
  itself: "mostly looks at the word itself ({n})",
  next: "mostly looks one word ahead ({n})",
  first: "mostly looks at the first word ({n})",
  separators: "mostly looks at punctuation and marks ({n})",
  label: "mostly looks at {label} ({n})",
  sharp: "picks one position, with {n} of its weight on it",
  spread: "is spread over about {over} of {of} positions",
};
const OF_SITE = {
  "decoder previous": "mostly looks at the word before the one just written ({n})",
  "decoder itself": "mostly looks at the word just written ({n})",
  "graph itself": "mostly looks at the node itself ({n})",
};

/** What a head does, in a sentence. */
function told({ site, does: { what, share, label, over, of: all } }) {
  return t(OF_SITE[`${site} ${what}`] || SENTENCES[what], {
    n: percent(share ?? 0),
    label,
    over: over?.toFixed(1),
    of: all?.toFixed(1),
  });
}

/** Opens an example as a question. */
function open(index, scene) {
  session.answer = null;
  const input = { kind: "example", part: part(), index };
  set({ tab: "ask", input, from: null, changes: {}, scene, map: "", look: "" }, { push: true });
}

function profile(found) {
  const share = (value) => make("td", { class: "number" }, typeof value === "number" ? percent(value) : "–");
  const row = (head) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, nameOf(head, found.heads)),
      make("td", { class: "does" }, told(head)),
      make("td", { class: "number" }, head.distance === null ? "–" : head.distance.toFixed(1)),
      share(head.previous),
      share(head.itself),
      share(head.next),
      share(head.separators[0]),
      share(head.same_label?.[0]),
      share(head.sharpness),
      make(
        "td",
        {},
        head.strongest.map((one) =>
          button(`${one.row} → ${one.column} (${percent(one.weight)})`, () => open(one.example, head.scene_at), {
            class: "plain link",
            title: t("look at it"),
            dir: "auto",
          }),
        ),
      ),
    );
  const number = (name) => /** @type {[string, string]} */ ([name, "number"]);
  return [
    make("p", { class: "quiet small" }, t("{n} examples were looked at; shares are of a head's weight.", { n: found.examples })),
    make(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": t("What does each head do?") },
      table(
        [
          [t("Head")],
          [t("What it does")],
          ...["distance", "one back", "itself", "one ahead", "punctuation", "same class", "sharpness"].map((name) =>
            number(t(name)),
          ),
          [t("Strongest")],
        ],
        found.heads.map(row),
        { class: "profile" },
      ),
    ),
    found.alike.slice(0, 8).map(([a, b, same]) =>
      make(
        "p",
        {},
        t("{a} and {b} do the same: {n} of their weights.", {
          a: nameOf(found.heads[a], found.heads),
          b: nameOf(found.heads[b], found.heads),
          n: percent(same),
        }),
      ),
    ),
  ];
}
