// Outputs that are pictures: what a model that draws answers, as a PNG in a text.

import { make } from "./dom.js";
import { t } from "./words.js";

const BEGINNING = "data:image/png;base64,";

/** Whether an output is a picture. @param {any} output */
export const isPicture = (output) => typeof output === "string" && output.startsWith(BEGINNING);

/** A picture, its pixels as they are. @param {string} output @param {string} [name] */
export const drawn = (output, name = t("what the model drew")) =>
  make("img", { class: "drawn", src: output, alt: name, title: name });

/** An output as it is shown: a picture, or its text as far as it fits. @param {any} output @param {number} [most] */
export const shownOutput = (output, most = Infinity) =>
  isPicture(output) ? drawn(output) : String(output).slice(0, most) || t("(nothing)");
