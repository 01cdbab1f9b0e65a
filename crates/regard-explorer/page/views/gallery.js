// All runs as cards: what each answers, how well, and what it looked at last.

import * as api from "../api.js";
import { button, fill, make } from "../dom.js";
import { shownOutput } from "../drawn.js";
import { count, duration, keptScore } from "../head.js";
import { chosenMap } from "../scene.js";
import { chooseRun, session } from "../session.js";
import { set, view } from "../state.js";
import { t } from "../words.js";
import { small } from "./compare.js";

const QUESTIONS = {
  translate: "What is this sentence in the other language?",
  summarize: "What does this text say, in a line?",
  transcribe: "What was said in this recording?",
  caption: "What is in this picture?",
  draw: "What does this sentence look like?",
  answer: "What is the answer to this question, by this text?",
  label: "What is each word, or each moment?",
  classify: "Which kind of text or sound is this?",
  image: "What does this picture show?",
  graph: "Which group does this node belong to?",
  regress: "Which number belongs to this point?",
};

let parts = /** @type {any} */ (null);
/** @type {Map<string, any>} the newest sample of each run, fetched once */
const samples = new Map();

/** @param {Element} panel */
export function enter(panel) {
  parts = { cards: make("div", { class: "cards gallery" }) };
  fill(
    panel,
    make("div", { class: "stack" }, make("h2", { class: "title" }, t("Which model shall we look into?")), parts.cards),
  );
  draw();
}

export function leave() {
  parts = null;
}

/** @param {Set<string>} changed */
export function update(changed) {
  if (parts && (changed.has("theme") || changed.has("gone"))) draw();
}

function draw() {
  fill(parts.cards, session.runs.map(card));
}

/** Opens a run: what is trained on its training, what is ready on a question. */
async function open(one) {
  if (view.runs[0] !== one.id) await chooseRun(one.id);
  set({ tab: one.ready && !one.training ? "ask" : "training" }, { push: true });
}

function card(one) {
  const score = keptScore(one);
  const picture = make("div", { class: "thumbnail" });
  thumbnail(one, picture);
  const state = one.error
    ? make("span", { class: "verdict wrong" }, t("cannot be opened"))
    : one.training
      ? make("span", { class: "live" }, t("training"))
      : !one.ready && make("span", { class: "verdict" }, t("no checkpoint yet"));
  return make(
    "article",
    { class: "card", "data-run": one.id },
    make("div", { class: "row spread" }, make("h3", { class: "wrap" }, one.name), state),
    make("p", { class: "question" }, t(QUESTIONS[one.task] || one.about)),
    score && make("p", { class: "score" }, make("b", {}, score[1].toFixed(score[1] > 10 ? 1 : 3)), ` ${t(score[0])}`),
    picture,
    make(
      "p",
      { class: "quiet small" },
      one.error ||
        `${one.task} · ${t("{n} parameters", { n: count(one.parameters) })} · ${t("trained for {time}", { time: duration(one.seconds) })}`,
    ),
    make(
      "div",
      { class: "row" },
      button(t("Look into it"), () => open(one), {
        class: "main",
        "aria-label": t("Look into it: {name}", { name: one.name }),
      }),
    ),
  );
}

/** What the run kept of its newest epoch: no model is loaded for it. */
async function thumbnail(one, picture) {
  const address = `/api/runs/${encodeURIComponent(one.id)}/snapshots`;
  if (!samples.has(one.id)) {
    const { epochs = [] } = (await api.get(address).catch(() => null)) || {};
    const last = epochs.length ? await api.get(`${address}/${epochs[epochs.length - 1]}`).catch(() => null) : null;
    const sample = last?.samples?.[0] || null;
    if (sample) sample.scenes = api.decoded(sample.scenes);
    samples.set(one.id, sample);
  }
  const sample = samples.get(one.id),
    scene = sample?.scenes[0],
    found = scene && chosenMap(scene, "mean");
  if (!sample) return;
  const asked = String(sample.input).replace("\t", " — ");
  const named = /^(train|validation|test):\d+$/.test(asked);
  fill(
    picture,
    !named && make("p", { class: "quiet small clip", dir: "auto" }, asked.slice(0, 140)),
    make("p", { class: "wrap clip", dir: "auto" }, "→ ", shownOutput(sample.output, 140)),
    found && small(scene, found, 220),
  );
}
