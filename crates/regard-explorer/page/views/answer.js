// What the model answers; beside it what it answered before a change, with the differences marked.

import { button, fill, make } from "../dom.js";
import { differenceOf, newOf, oldOf } from "../difference.js";
import { described } from "../input.js";
import { run, session } from "../session.js";
import { isChanged, set, view } from "../state.js";
import { t } from "../words.js";

const shown = (value) => (Math.abs(value) < 10 ? value.toFixed(3) : value.toFixed(1));

/** An output, or a word for none. @param {any} children */
const output = (children) =>
  make(
    "p",
    { class: "output", dir: "auto", lang: /\p{Script=Han}/u.test(children) ? "zh" : undefined },
    children === "" ? make("span", { class: "quiet" }, t("(nothing)")) : children,
  );

/** @param {Element} element */
export function drawAnswer(element) {
  element.classList.toggle("waiting", session.waiting);
  const answer = session.answer;
  if (!answer) return fill(element, make("h2", {}, t("Answer")), make("p", { class: "quiet" }, nothingYet()));
  if (session.waiting) return undefined;
  const old = oldAnswer();
  const changed = isChanged(view.changes);
  fill(
    element,
    old
      ? beside(old, answer)
      : isTagged(answer)
        ? [make("h2", {}, t("Answer")), tagged(answer.prediction, null)]
        : [make("h2", {}, t("Answer")), output(answer.prediction.output)],
    details(answer, old),
    make(
      "div",
      { class: "facts" },
      answer.truth !== null &&
        make(
          "span",
          {},
          `${t("Expected")}: ${answer.truth}`,
          answer.truth === answer.prediction.output ? ` ${t("✓ the same")}` : "",
        ),
      answer.prediction.details?.score !== undefined &&
        make("span", { class: "number" }, `${t("score")} ${shown(answer.prediction.details.score)}`),
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

const isTagged = (answer) =>
  Array.isArray(answer.prediction.details?.words) && Array.isArray(answer.prediction.details?.labels);

function beside(old, answer) {
  const parts = old.difference?.text?.length
    ? old.difference.text
    : differenceOf(old.prediction.output, answer.prediction.output);
  const same = parts.every(({ kind }) => kind === "same");
  const joined = joinedParts(parts, old.prediction.output, answer.prediction.output);
  return make(
    "div",
    { class: "two" },
    make(
      "div",
      {},
      make("h2", {}, old.input ? `${t("Before")} · ${described(old.input)}` : t("Before")),
      isTagged(old) ? tagged(old.prediction, null) : output(same ? old.prediction.output : oldOf(joined)),
    ),
    make(
      "div",
      {},
      make("h2", {}, same ? t("After: the same") : t("After")),
      isTagged(answer)
        ? tagged(answer.prediction, old.prediction)
        : output(same ? answer.prediction.output : newOf(joined)),
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
  return text("added") === before && text("removed") === after ? parts : differenceOf(before, after);
}

/** Words with their labels, those marked that were others before. */
function tagged(prediction, old) {
  const { words, labels, probabilities } = prediction.details;
  const before = old?.details?.words?.length === words.length ? old.details.labels : null;
  const sure = (place) =>
    typeof probabilities?.[place] === "number" ? ` ${Math.round(100 * probabilities[place])} %` : "";
  return make(
    "div",
    { class: "words", dir: "auto" },
    words.map((word, place) => {
      const differs = before && before[place] !== labels[place];
      return make(
        "span",
        { class: `tagged${differs ? " differs" : ""}`, title: `${labels[place]}${sure(place)}` },
        word,
        make("small", {}, differs ? `${before[place]} → ${labels[place]}` : labels[place]),
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
