// Gradient saliency beside attention, and the beam of what is written. Computed when opened.

import * as api from "../api.js";
import { fill, make } from "../dom.js";
import { HEAT, colorOf, inkOn, painted, rangeOf, written } from "../draw.js";
import { axesOf, chosenMap, mapsOf, meanOf } from "../scene.js";
import { isAskable, sentence, session } from "../session.js";
import { isChanged, view } from "../state.js";
import { colors } from "../theme.js";
import { t } from "../words.js";
import { chosen, curve, methodName, methods } from "./attribution.js";
import { pictureOf } from "./patches.js";
import { drawBeam } from "./beam.js";
import { drawMatters } from "./matters.js";

const open = { matters: false, saliency: false, beam: false };
/** @type {Record<string, {key: string, answer: any, refusal: string}>} */
const known = {};
let element = /** @type {any} */ (null);

/** @param {Element} more */
export function drawMore(more) {
  element = more;
  if (!session.answer) return fill(more);
  const writes = Array.isArray(session.answer.prediction.details?.tokens);
  fill(
    more,
    session.answer.scenes.length > 0 &&
      fold("matters", t("What matters? Every head and every word taken away in turn"), drawMatters),
    fold("saliency", t("Gradient saliency beside attention"), drawSaliency),
    writes && fold("beam", t("Beam: what else could have been written"), (answer) => drawBeam(answer)),
    make(
      "p",
      { class: "quiet small", id: "caution" },
      t(
        "Attention weights say what was read, not why it was answered so: attention is not an explanation. Change a weight and see whether the output changes.",
      ),
    ),
  );
  return undefined;
}

/** Something that is asked for when it is opened, and again when the answer is another. */
function fold(name, title, draw) {
  const body = make("div", {});
  const details = make(
    "details",
    {
      class: "card",
      id: name,
      ontoggle: () => {
        open[name] = details.open;
        if (details.open) look(name, body, draw);
      },
    },
    make("summary", {}, title),
    body,
  );
  details.open = open[name];
  return details;
}

async function look(name, body, draw) {
  if (!isAskable(view.input)) return;
  const request = {
    run: view.runs[0],
    input: view.input,
    changes: isChanged(view.changes) ? view.changes : null,
    ...(name === "saliency" && { method: chosen.method }),
  };
  const again = () => look(name, body, draw);
  const key = JSON.stringify([
    request.run,
    name === "saliency" && chosen.method,
    request.changes,
    request.input?.kind === "bytes"
      ? [request.input.name, request.input.base64?.length, request.input.moment]
      : request.input,
  ]);
  if (known[name]?.key !== key) {
    if (!body.firstChild) fill(body, make("p", { class: "quiet" }, t("Computing…")));
    const found = { key, answer: null, refusal: "" };
    try {
      found.answer = await api.post(`/api/${name}`, request, name);
      if (!found.answer) return;
    } catch (error) {
      found.refusal = sentence(error);
    }
    known[name] = found;
  }
  const { answer, refusal } = known[name];
  const drawn = refusal ? make("p", { class: "quiet" }, refusal) : draw(answer);
  fill(body, name === "saliency" && methods(again), drawn);
}

/** The weight that each key got, the mean over rows, beside what the gradient says of it. */
function drawSaliency(answer) {
  const values = Float32Array.from(answer.values, (value) => Math.abs(value ?? NaN));
  if (answer.grid) return [patches(answer, values), curve(answer), note(answer)];
  const one = session.answer.scenes.find(
    (scene) => readsInput(scene) && axesOf(scene)?.columns.length === answer.names.length,
  );
  const attention = one ? means(one) : null;
  const line = (label, numbers) => {
    const range = rangeOf(numbers),
      ramp = colors();
    const sum = numbers.reduce((total, value) => total + (value || 0), 0) || 1;
    return make(
      "div",
      {},
      make("h2", {}, label),
      make(
        "div",
        { class: "words", dir: "auto", tabindex: 0, role: "group", "aria-label": label },
        answer.names.slice(0, 600).map((name, i) => {
          const color = colorOf(numbers[i], range, ramp),
            chip = make(
              "span",
              { class: "tagged", title: written(numbers[i]) },
              name,
              make("small", {}, `${Math.round((100 * numbers[i]) / sum)} %`),
            );
          chip.style.background = `rgb(${color})`;
          chip.style.color = inkOn(color);
          chip.lastElementChild.style.color = inkOn(color);
          return chip;
        }),
      ),
    );
  };
  return [
    line(`${methodName(answer.method)} (${ofWhat(answer.of)})`, values),
    attention && line(t("Attention, the mean over rows and heads"), attention),
    curve(answer),
    note(answer),
  ];
}

/** Whether the columns of a scene are what was read, and not what was written or how often. */
function readsInput(one) {
  const place = mapsOf(one)[0]?.place;
  return one.scene.kind === "maps" && place?.site !== "decoder" && !place?.columns_are_layers;
}

/** What the gradient is of, in the reader's language. @param {string} text */
function ofWhat(text) {
  const what = /^the log-probability of (.*)$/.exec(text)?.[1];
  return what === undefined ? t(text) : t("the log-probability of {what}", { what: t(what) });
}

function means(one) {
  const [, map] = /** @type {any} */ (chosenMap(one, "mean")),
    axes = /** @type {any} */ (axesOf(one)),
    columns = axes.columns.length;
  const out = new Float32Array(columns);
  for (let row = 0; row < axes.rows.length; row++)
    for (let column = 0; column < columns; column++)
      out[column] += (map.weights[row * columns + column] || 0) / axes.rows.length;
  return out;
}

/** Gradient and attention over the same picture, side by side. */
function patches(answer, values) {
  const image = session.answer.scenes.find((scene) => scene.scene.kind === "image");
  const [rows, columns] = answer.grid;
  const [wide, high] = image ? [image.scene.width, image.scene.height] : [columns, rows];
  const over = (label, weights, [down, across]) => {
    const height = Math.round((280 * high) / wide);
    const canvas = make("canvas", { width: 280, height, role: "img", "aria-label": label });
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    if (image) context.drawImage(pictureOf(image.scene), 0, 0, canvas.width, canvas.height);
    const painting = painted(weights, rangeOf(weights), down, across, colors(), image ? HEAT : undefined);
    context.drawImage(painting, 0, 0, canvas.width, canvas.height);
    return make("figure", {}, make("h2", {}, label), canvas);
  };
  // Where a map is a word of a sentence, the picture's attention is the mean over all words.
  const attention = image && mapsOf(image).length > 0 ? meanOf(image).weights : null;
  return make(
    "div",
    { class: "pair" },
    over(`${methodName(answer.method)} (${ofWhat(answer.of)})`, values, [rows, columns]),
    attention && over(t("Attention, the mean over all maps"), attention, [image.scene.rows, image.scene.columns]),
  );
}

const note = (answer) => answer.note && make("p", { class: "quiet small" }, t(answer.note));
