// Training as it goes: curves that grow, speed, time left; and three samples, epoch by epoch.

import { drawn, isPicture } from "../drawn.js";
import * as api from "../api.js";
import { button, fill, make } from "../dom.js";
import { chart, linesOf } from "../chart.js";
import { written } from "../draw.js";
import { duration } from "../head.js";
import { chosenMap } from "../scene.js";
import { reload, run, sentence, session } from "../session.js";
import { set, view } from "../state.js";
import { expected, mark, marked, verdictOf } from "../verdict.js";
import { t } from "../words.js";
import { small } from "./compare.js";

let parts = /** @type {any} */ (null);
let stream = /** @type {EventSource | null} */ (null);
let live = /** @type {any} */ (null);
let speed = /** @type {number | null} */ (null);
let epochs = /** @type {number[]} */ ([]);
let playing = /** @type {number | null} */ (null);
/** @type {Map<string, any>} snapshots do not change: each is fetched once */
const kept = new Map();

/** @param {Element} panel */
export function enter(panel) {
  parts = {
    status: make("div", { class: "status card", role: "status" }),
    charts: make("div", { class: "charts" }),
    replay: make("div", { class: "row" }),
    samples: make("div", { class: "cards" }),
  };
  fill(
    panel,
    make(
      "div",
      { class: "stack" },
      parts.status,
      parts.charts,
      make(
        "div",
        { class: "card stack" },
        make("h3", {}, t("Three samples, epoch by epoch")),
        parts.replay,
        parts.samples,
      ),
    ),
  );
  live = speed = null;
  drawCharts();
  drawStatus();
  listen();
  loadEpochs();
}

export function leave() {
  stream?.close();
  stream = null;
  stop();
  parts = null;
}

/** @param {Set<string>} changed */
export function update(changed) {
  if (!parts) return;
  if (changed.has("gone") || changed.has("answer")) drawStatus();
  if (changed.has("theme") || changed.has("epoch")) drawCharts();
  if (changed.has("theme") || changed.has("epoch")) drawSamples();
}

/** Only lines that are new travel: the stream begins behind those that are known. */
function listen() {
  const one = run();
  stream = new EventSource(`/api/runs/${encodeURIComponent(one.id)}/events?after=${one.records.length}`);
  stream.addEventListener("record", (event) => {
    const record = JSON.parse(event.data),
      number = Number(event.lastEventId) || one.records.length + 1;
    one.records[number - 1] = record;
    drawCharts();
    if (!one.ready) reload(one.id);
  });
  // The run began anew: what was known of it is no more.
  stream.addEventListener("reset", () => {
    one.records.length = 0;
    epochs = [];
    for (const name of [...kept.keys()]) if (name.startsWith(`${one.id}/`)) kept.delete(name);
    drawCharts();
    drawReplay();
  });
  stream.addEventListener("state", (event) => {
    live = JSON.parse(event.data);
    one.training = live.training;
    // Between two epochs the speed is that of the last one: a mean over all would jump to and fro.
    if (live.now || !live.training) speed = live.now ? live.steps_per_second : null;
    drawStatus();
  });
  stream.addEventListener("snapshot", (event) => {
    const { epoch } = JSON.parse(event.data);
    if (!epochs.includes(epoch)) epochs = [...epochs, epoch].sort((a, b) => a - b);
    // Whoever looks at the newest goes on doing so.
    drawReplay();
    if (!view.epoch) drawSamples();
  });
}

function drawStatus() {
  const one = run(),
    last = one.records[one.records.length - 1];
  const done = live?.epoch ?? last?.epoch ?? 0,
    all = live?.epochs ?? one.epochs ?? 0,
    now = live?.now;
  const training = live?.training ?? one.training;
  // What was told before the program went is no longer known.
  if (session.gone)
    return fill(
      parts.status,
      make("b", {}, t("not known")),
      make(
        "span",
        { class: "number" },
        t("epoch {epoch} of {epochs} when it was last heard of", { epoch: now?.epoch ?? done, epochs: all || "–" }),
      ),
    );
  const place = now ? now.epoch - 1 + now.batch / now.batches : done;
  return fill(
    parts.status,
    training
      ? make("span", { class: "live" }, t("training"))
      : make("b", {}, all && done >= all ? t("finished") : t("not training")),
    make(
      "span",
      { class: "row" },
      make("progress", { max: Math.max(1, all), value: place, "aria-label": t("epochs") }),
      make(
        "span",
        { class: "number" },
        t("epoch {epoch} of {epochs}", { epoch: now?.epoch ?? done, epochs: all || "–" }),
      ),
    ),
    now && make("span", { class: "number", id: "batch" }, within(now)),
    make("span", {}, `${t("so far")} ${duration(live?.seconds ?? one.seconds)}`),
    typeof live?.seconds_left === "number" &&
      make(
        "span",
        { id: "left" },
        // Whoever has patience may stop earlier.
        `${live.patience ? t("left at most") : t("left")} ${duration(live.seconds_left)}`,
      ),
    typeof (speed ?? live?.steps_per_second) === "number" &&
      make(
        "span",
        {
          class: "number",
          id: "speed",
          title: speed !== null ? t("in this epoch, without validation") : t("on average, validation included"),
        },
        t("{n} steps a second", { n: Number((speed ?? live.steps_per_second).toPrecision(3)) }),
      ),
    !training &&
      !(all && done >= all) &&
      make("span", { class: "quiet small" }, t("`regard train --resume` goes on; this page follows by itself.")),
  );
}

/** Where in an epoch the training is. */
const within = (now) =>
  now.batch === now.batches
    ? t("validating")
    : t("batch {batch} of {batches}, loss {loss}", { ...now, loss: written(now.loss) });

function drawCharts() {
  if (!parts) return;
  const lines = linesOf(run().records.filter(Boolean));
  if (!lines.size)
    return fill(
      parts.charts,
      make("p", { class: "quiet" }, t("No epoch is done yet. The curves appear here by themselves.")),
    );
  return fill(
    parts.charts,
    [...lines].map(([name, points]) => chart(name, [{ name, points }], { mark: view.epoch })),
  );
}

async function loadEpochs() {
  const one = run();
  const answer = await api.get(`/api/runs/${encodeURIComponent(one.id)}/snapshots`).catch(() => null);
  if (!parts || run() !== one) return;
  epochs = answer?.epochs || [];
  drawReplay();
  drawSamples();
}

const shownEpoch = () => (view.epoch && epochs.includes(view.epoch) ? view.epoch : epochs[epochs.length - 1]);

function drawReplay() {
  if (!parts) return;
  if (!epochs.length) return fill(parts.replay, make("span", { class: "quiet" }, t("This training kept no samples.")));
  const place = epochs.indexOf(shownEpoch());
  const slider = make("input", {
    type: "range",
    min: 0,
    max: epochs.length - 1,
    step: 1,
    value: place,
    "aria-label": t("Epoch"),
    "aria-valuetext": String(shownEpoch()),
    class: "grow",
    id: "epoch",
    oninput: () => go(Number(slider.value)),
  });
  const focused = document.activeElement?.id === "epoch";
  fill(
    parts.replay,
    button(playing === null ? `▶ ${t("Replay")}` : `■ ${t("Stop")}`, () => (playing === null ? play() : stop()), {
      id: "replay",
    }),
    slider,
    make("span", { class: "number", id: "shown-epoch" }, t("epoch {epoch}", { epoch: shownEpoch() })),
  );
  if (focused) slider.focus();
  return undefined;
}

function go(place) {
  const epoch = epochs[Math.min(epochs.length - 1, Math.max(0, place))];
  set({ epoch: epoch === epochs[epochs.length - 1] && playing === null ? null : epoch });
  drawReplay();
}

function play() {
  playing = 0;
  const step = async () => {
    if (playing === null || !parts) return;
    go(playing);
    await drawSamples();
    if (playing === null || playing >= epochs.length - 1) return stop();
    playing += 1;
    setTimeout(step, 450);
  };
  step();
}

function stop() {
  playing = null;
  drawReplay();
}

async function drawSamples() {
  const one = run(),
    epoch = shownEpoch();
  if (!parts || epoch === undefined) return fill(parts?.samples || make("div"));
  const name = `${one.id}/${epoch}`;
  try {
    if (!kept.has(name)) {
      const answer = await api.get(`/api/runs/${encodeURIComponent(one.id)}/snapshots/${epoch}`);
      answer.samples.forEach((sample) => {
        sample.scenes = api.decoded(sample.scenes);
      });
      kept.set(name, answer);
    }
  } catch (error) {
    return parts && fill(parts.samples, make("p", { class: "quiet" }, sentence(error)));
  }
  if (!parts || shownEpoch() !== epoch) return undefined;
  return fill(
    parts.samples,
    kept.get(name).samples.map((sample) => {
      const verdict = verdictOf(sample.truth, sample.output);
      const scene = sample.scenes[0],
        found = scene && chosenMap(scene, "mean");
      return make(
        "article",
        { class: "card" },
        make("p", { class: "quiet small wrap", dir: "auto" }, String(sample.input).slice(0, 400)),
        make(
          "p",
          { class: "wrap", dir: "auto" },
          sample.output === "" ? make("span", { class: "quiet" }, t("(nothing)")) : isPicture(sample.output) ? drawn(sample.output) : marked(verdict, sample.output),
          " ",
          mark(verdict),
        ),
        expected(verdict),
        found
          ? small(scene, found)
          : make("p", { class: "quiet small" }, t(sample.blank || "This model attends to nothing.")),
      );
    }),
  );
}
