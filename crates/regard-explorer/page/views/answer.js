// What the model answers; beside it what it answered before a change, with the differences marked.

import { button, fill, make } from "../dom.js";
import { differenceOf, newOf, oldOf } from "../difference.js";
import { drawn, isPicture } from "../drawn.js";
import { described } from "../input.js";
import { mapsOf } from "../scene.js";
import { run, session, typed } from "../session.js";
import { percent } from "../told.js";
import { isChanged, set, view } from "../state.js";
import { expected, mark, marked, verdictOf } from "../verdict.js";
import { t } from "../words.js";

const shown = (value) => (Math.abs(value) < 10 ? value.toFixed(3) : value.toFixed(1));

/** An output, or a word for none. @param {any} children */
const output = (children) =>
  make(
    "p",
    { class: "output", dir: "auto", lang: /\p{Script=Han}/u.test(children) ? "zh" : undefined },
    children === "" ? make("span", { class: "quiet" }, t("(nothing)")) : isPicture(children) ? drawn(children) : children,
  );

/** The picture that the data have for an example, beside the one that was drawn. @param {any} truth */
const pictureOfTheData = (truth) =>
  isPicture(truth) &&
  make("p", { class: "expected" }, make("span", { class: "quiet" }, t("In the data: ")), drawn(truth, t("the picture in the data")));

/** @param {Element} element */
export function drawAnswer(element) {
  element.classList.toggle("waiting", session.waiting);
  const answer = session.answer;
  if (!answer) return fill(element, make("h2", {}, t("Answer")), make("p", { class: "quiet" }, nothingYet()));
  if (session.waiting) return undefined;
  const old = oldAnswer();
  const changed = isChanged(view.changes);
  const verdict = verdictOf(answer.truth, answer.prediction.output);
  // An answer to another input than the one that was refused must not pass for its own.
  const name = session.refusal ? t("The answer to the input before") : t("Answer");
  const heading = make("div", { class: "row heading" }, make("h2", {}, name), mark(verdict));
  fill(
    element,
    old
      ? [effect(old, answer), beside(old, answer), mark(verdict)]
      : isTagged(answer)
        ? [heading, tagged(answer.prediction, null, answer.truth)]
        : [heading, output(answer.prediction.output === "" ? "" : marked(verdict, answer.prediction.output))],
    !isTagged(answer) && expected(verdict),
    pictureOfTheData(answer.truth),
    notRead(answer.prediction.details || {}),
    details(answer, old),
    make(
      "div",
      { class: "facts" },
      sure(answer.prediction.details),
      answer.prediction.details?.ended === false && make("span", {}, t("stopped before the end")),
      make(
        "span",
        { class: "number" },
        `${answer.milliseconds.toFixed(answer.milliseconds < 10 ? 1 : 0)} ms${answer.cached ? ` · ${t("from the cache")}` : ""}`,
      ),
    ),
    (changed || view.from) &&
      make(
        "div",
        { class: "row" },
        changed && button(t("Undo all changes"), () => set({ changes: {} }), { id: "undo" }),
        view.from && button(t("Back to the old input"), () => set({ input: view.from, from: null })),
        view.from && button(t("Forget the old input"), () => set({ from: null })),
      ),
  );
  return undefined;
}

/** The mean probability of written tokens; null where none were. @param {any} details */
function meanOfTokens(details) {
  const scores = details?.token_scores;
  if (!Array.isArray(scores) || !scores.length) return null;
  return Math.exp(scores.reduce((sum, score) => sum + score, 0) / scores.length);
}

/** How sure a writer is of what it wrote: the mean probability of its tokens. @param {any} details */
function sure(details) {
  const mean = meanOfTokens(details);
  if (mean === null) return null;
  return make(
    "span",
    { class: "number", title: `${t("log-probability")} ${shown(details.log_probability)}` },
    t("{n} % sure of a token, on average", { n: Math.round(100 * mean) }),
  );
}

/** Which words the model does not know, and how much it did not read. */
function notRead({ unknown = [], read }) {
  const words = unknown.slice(0, 12).flatMap((word, i) => [i ? t(", ") : "", make("span", { class: "unknown" }, word)]);
  const units = { tokens: t("words"), sentences: t("sentences"), vectors: t("vectors") };
  return [
    unknown.length > 0 &&
      make(
        "p",
        { class: "caution", id: "unknown" },
        `${t("The model does not know these words, and reads each as “unknown”:")} `,
        words,
        unknown.length > 12 ? ` … (${unknown.length})` : "",
      ),
    read &&
      make(
        "p",
        { class: "caution", id: "unread" },
        t("Only {count} of {of} {unit} were read: the rest is beyond what this model reads.", {
          ...read,
          unit: units[read.unit] || read.unit,
        }),
      ),
    read && unreadWords(),
  ];
}

/** The words that were not read, gray: what follows the last word that the maps have. */
function unreadWords() {
  const text = typed();
  const scene = session.answer.scenes.find((one) => one.scene.kind === "maps" && mapsOf(one)[0]?.place?.site !== "decoder");
  if (!text || !scene) return null;
  let end = 0;
  for (const name of scene.scene.columns) {
    const plain = name.replace(/^##|^▁|@@$/g, ""),
      found = plain ? text.indexOf(plain, end) : -1;
    // A mark of the model's own stands nowhere in the text.
    if (found >= 0 && !text.slice(end, found).trim()) end = found + plain.length;
  }
  const rest = end ? text.slice(end).trim() : "";
  return rest && make("p", { class: "unread clip", id: "unread-words", dir: "auto" }, rest.slice(0, 2000));
}

function nothingYet() {
  const one = run();
  if (session.refusal) return session.refusal;
  if (session.waiting) return t("Computing…");
  if (one?.input.form === "sentence" || one?.input.form === "text")
    return t("Type a sentence above, or choose an example.");
  return t("Choose an input above.");
}

/** What the answer is compared with: the same input unchanged, or the input before a word was edited. */
function oldAnswer() {
  if (view.from && session.baseline)
    return { prediction: session.baseline.prediction, input: view.from, difference: null };
  if (session.answer.before)
    return { prediction: session.answer.before, input: null, difference: session.answer.difference };
  return null;
}

/** What a change has done, in a sentence; that it did nothing is worth knowing. */
function effect(old, answer) {
  const [before, now] = [old.prediction, answer.prediction];
  const likely = (/** @type {{details?: any}} */ { details }) => {
    if (typeof details?.probability === "number") return details.probability;
    const all = details?.probabilities;
    if (all && !Array.isArray(all)) return Math.max(...Object.values(all));
    return meanOfTokens(details);
  };
  const [was, is] = [likely(before), likely(now)];
  const both = was !== null && is !== null;
  const numbers = both ? { was: percent(was), is: percent(is) } : {};
  const sentence = () => {
    if (isTagged(old) && isTagged(answer) && before.details.words.length === now.details.words.length) {
      const count = now.details.labels.filter((label, i) => label !== before.details.labels[i]).length;
      return count
        ? t("{count} of {all} labels are others now.", { count, all: now.details.labels.length })
        : t("No effect: every label is as before.");
    }
    if (before.output !== now.output)
      return both ? t("The output is another one ({was} → {is}).", numbers) : t("The output is another one.");
    if (both && Math.abs(was - is) >= 0.005)
      return t("The same output, but its probability is another: {was} → {is}.", numbers);
    return t("No effect: the output is as before. What was changed did not matter here.");
  };
  return make("p", { class: "effect", id: "effect" }, sentence());
}

const isTagged = (answer) =>
  Array.isArray(answer.prediction.details?.words) && Array.isArray(answer.prediction.details?.labels);

function beside(old, answer) {
  const [was, is] = [old.prediction.output, answer.prediction.output];
  // Of two pictures the letters that they are written with say nothing.
  const pictures = isPicture(was) || isPicture(is);
  const parts = pictures ? [] : old.difference?.text?.length ? old.difference.text : differenceOf(was, is);
  const same = pictures ? was === is : parts.every(({ kind }) => kind === "same");
  const joined = joinedParts(parts, was, is);
  return make(
    "div",
    { class: "two" },
    make(
      "div",
      {},
      make("h2", {}, old.input ? `${t("Before")} · ${described(old.input)}` : t("Before")),
      isTagged(old) ? tagged(old.prediction, null) : output(same || pictures ? was : oldOf(joined)),
    ),
    make(
      "div",
      {},
      make("h2", {}, same ? t("After: the same") : t("After")),
      isTagged(answer)
        ? tagged(answer.prediction, old.prediction)
        : output(same || pictures ? is : newOf(joined)),
    ),
  );
}

// The server's parts may be tokens without the spaces between them: then our own are used.
function joinedParts(parts, before, after) {
  const text = (without) =>
    parts
      .filter(({ kind }) => kind !== without)
      .map((part) => part.text)
      .join("");
  if (isPicture(before) || isPicture(after)) return [];
  return text("added") === before && text("removed") === after ? parts : differenceOf(before, after);
}

/** Words with their labels, those marked that were others before. */
function tagged(prediction, old, truth = null) {
  const { words, labels, probabilities, unknown = [] } = prediction.details;
  const right = truth ? truth.split(" ").map((pair) => pair.slice(pair.lastIndexOf("/") + 1)) : null;
  const known = right?.length === words.length ? right : null;
  const before = old?.details?.words?.length === words.length ? old.details.labels : null;
  const sure = (place) =>
    typeof probabilities?.[place] === "number" ? ` ${Math.round(100 * probabilities[place])} %` : "";
  return make(
    "div",
    { class: "words", dir: "auto", tabindex: 0 },
    words.map((word, place) => {
      const differs = before && before[place] !== labels[place];
      const wrong = known && known[place] !== labels[place];
      const name = `tagged${differs ? " differs" : ""}${wrong ? " wrong" : ""}`;
      return make(
        "span",
        { class: name, title: `${labels[place]}${sure(place)}` },
        make("span", { class: unknown.includes(word) ? "unknown" : undefined }, word),
        make("small", {}, differs ? `${before[place]} → ${labels[place]}` : labels[place]),
        wrong && make("small", { class: "expected" }, t("is {label}", { label: known[place] })),
      );
    }),
  );
}

/** Probabilities of labels, those of the old answer above those of the new. */
function details(answer, old) {
  const { probabilities, probability } = answer.prediction.details || {};
  const labels = probabilities && !Array.isArray(probabilities) ? Object.entries(probabilities) : [];
  const before = old?.prediction.details?.probabilities;
  const most = labels.sort((a, b) => b[1] - a[1]).slice(0, 8);
  if (!most.length) {
    const was = old?.prediction.details?.probability;
    return (
      typeof probability === "number" &&
      make(
        "p",
        { class: "quiet number" },
        `${t("probability")} ${typeof was === "number" ? `${shown(was)} → ` : ""}${shown(probability)}`,
      )
    );
  }
  const part = (value, name) => {
    const line = make("i", { class: name });
    line.style.width = `${Math.max(0.5, 100 * value)}%`;
    return line;
  };
  return make(
    "div",
    { class: "bars" },
    most.map(([label, value]) => {
      const was = before && !Array.isArray(before) ? before[label] : undefined;
      const text = `${(100 * value).toFixed(1)} %`;
      return [
        make("span", { class: "wrap" }, label),
        make(
          "span",
          { class: "bar", "aria-hidden": "true" },
          was !== undefined && part(was, "old"),
          part(value, was === undefined ? "" : "new"),
        ),
        make("span", { class: "number small" }, was === undefined ? text : `${(100 * was).toFixed(1)} % → ${text}`),
      ];
    }),
  );
}
