// What the server has told so far, and the asking of the main pane.

import * as api from "./api.js";
import { isChanged, set, view } from "./state.js";
import { inWords } from "./refusals.js";
import { t } from "./words.js";

export const session = {
  /** @type {any[]} */ runs: [],
  /** @type {any} */ limits: {},
  /** @type {any} */ answer: null,
  /** @type {any} the answer beside which a changed one is shown, for another input */ baseline: null,
  /** @type {string} */ refusal: "",
  waiting: false,
  /** whether the program does not answer */ gone: false,
  /** whether it did not answer the last question */ lost: false,
};

/** @type {(() => void)[]} */
const listeners = [];

/** Hears when there is an answer, a refusal, or waiting begins. @param {() => void} listener */
export const onAnswer = (listener) => listeners.push(listener);
const tell = () => listeners.forEach((listener) => listener());

/** The run that is asked. @returns {any} */
export const run = () => session.runs.find((one) => one.id === view.runs[0]) || null;

/** What was asked, as somebody would type it. */
export const typed = () => (session.answer ? (session.answer.text ?? session.answer.prediction.input) : "");

/** A refusal in the reader's words where the server gave none. @param {unknown} error */
export const sentence = (error) =>
  inWords(/** @type {any} */ (error)?.message || "") ||
  t("The program does not answer. Is `regard explore` still running?");

/** Whether there is something to ask. @param {any} input */
export function isAskable(input) {
  if (!input) return false;
  if (input.kind === "text") return Boolean(input.text?.trim());
  return input.kind !== "point" || input.at?.every(Number.isFinite);
}

let baselineKey = "",
  later = /** @type {any} */ (0);

async function askBaseline() {
  const key = view.from ? JSON.stringify([view.runs[0], view.from]) : "";
  if (key === baselineKey) return;
  baselineKey = key;
  session.baseline = null;
  if (!view.from) return;
  const answer = await api
    .post("/api/ask", { run: view.runs[0], input: view.from, changes: null }, "from")
    .catch(() => null);
  if (answer && key === baselineKey) {
    session.baseline = answer;
    tell();
  }
}

/** Asks what the view says; the answer comes to all who listen. */
export async function ask() {
  const one = run();
  if (!one) return;
  if (one.error || !one.ready || !isAskable(view.input)) {
    Object.assign(session, {
      answer: null,
      waiting: false,
      refusal:
        one.error ||
        (one.ready
          ? ""
          : t("This run has no checkpoint yet: watch its training, and ask when the first epoch is done.")),
    });
    tell();
    clearTimeout(later);
    if (!one.ready && !one.error)
      later = setTimeout(() => view.runs[0] === one.id && reload(one.id).then(() => one.ready || ask()), 3000);
    return;
  }
  session.waiting = true;
  tell();
  if (!isKnown(one)) await reload(one.id);
  askBaseline();
  try {
    const answer = await api.post(
      "/api/ask",
      { run: one.id, input: view.input, changes: isChanged(view.changes) ? view.changes : null },
      "main",
    );
    if (!answer) return;
    answer.scenes = api.decoded(answer.scenes);
    Object.assign(session, { answer, refusal: "", lost: false });
  } catch (error) {
    session.refusal = sentence(error);
    session.lost = /** @type {any} */ (error)?.status === 0;
  }
  session.waiting = false;
  tell();
}

/** Whether the model of a run has said what it can be asked. @param {any} one */
const isKnown = (one) => Boolean(one.input.form);

/** Takes a run as the one that is asked, with an input that it understands. @param {string} id */
export async function chooseRun(id) {
  const [next, before] = [session.runs.find((one) => one.id === id), run()];
  if (!next) return;
  if (next.ready && !isKnown(next)) await reload(id);
  const fits = before && before.task === next.task && view.input && next.input.kinds.includes(view.input.kind);
  const others = view.runs.slice(1).filter((other) => other !== id);
  session.answer = null;
  session.refusal = "";
  set(
    {
      runs: [id, ...others],
      changes: {},
      from: null,
      scene: 0,
      map: "",
      look: "",
      epoch: null,
      errors: {},
      versus: {},
      tab: !next.ready ? "training" : view.tab === "runs" ? "ask" : view.tab,
      input: fits ? view.input : next.samples[0] || null,
    },
    { push: true },
  );
}

/** A view with a run and an input, where the address names none. @param {import("./state.js").View} of */
export function completed(of) {
  const known = of.runs.filter((id) => session.runs.some((one) => one.id === id));
  const first = known[0] || (session.runs.find((one) => one.ready && !one.error) || session.runs[0])?.id;
  if (!first) return of;
  const one = session.runs.find((other) => other.id === first);
  // What is being trained is watched; there may be nothing to ask yet.
  // Whoever names no run of several chooses one.
  const several = session.runs.length > 1 && !of.runs.length && !of.input;
  const tab = of.tab || (several ? "runs" : one.ready && !one.training ? "ask" : "training");
  // An input that was meant for a run that is not here says nothing to another.
  const meant = known.length > 0 || of.runs.length === 0;
  return {
    ...of,
    tab,
    runs: [first, ...known.filter((id) => id !== first)],
    input: (meant && of.input) || one.samples[0] || null,
  };
}

/** A run with all that the page reads: one without a model, or that cannot be opened, says less. @param {any} one */
const whole = (one) => ({
  task: "",
  about: "",
  parameters: 0,
  samples: [],
  settings: {},
  records: [],
  parts: [],
  seconds: null,
  changes: {},
  ...one,
  input: { kinds: [], form: "", columns: [], range: [], nodes: null, labels: [], ...one.input },
});

/** Loads the runs; gives the name of one that the address has and the program has not. */
export async function load() {
  const state = await api.get("/api/state");
  const runs = state.runs.map(whole);
  Object.assign(session, { runs, limits: state.limits });
  const missing = view.runs.find((id) => !runs.some((one) => one.id === id));
  const next = completed(view),
    first = runs.find((one) => one.id === next.runs[0]);
  // The model is loaded when it is first asked: what it can be asked, it says then.
  if (first?.ready && !isKnown(first)) await reload(first.id);
  set(next);
  return missing;
}

/** Reads what the folders of all runs say now: records, epochs, which of them trains. */
export async function refresh() {
  const state = await api.get("/api/state").catch(() => null);
  for (const fresh of state?.runs || []) {
    const one = session.runs.find(({ id }) => id === fresh.id);
    if (one) Object.assign(one, fresh, { input: one.input, changes: one.changes });
    else session.runs.push(whole(fresh));
  }
}

/** Reads a run again, such as when its first checkpoint is there. @param {string} id */
export async function reload(id) {
  const fresh = await api.get(`/api/runs/${encodeURIComponent(id)}`).catch(() => null);
  if (!fresh) return;
  const place = session.runs.findIndex((one) => one.id === id);
  const wasReady = session.runs[place]?.ready;
  // In place: whoever follows its training goes on holding it.
  Object.assign(session.runs[place], whole(fresh));
  if (!wasReady && session.runs[place].ready && view.runs[0] === id) {
    if (!view.input) set({ input: session.runs[place].samples[0] || null });
    else ask();
  }
}
