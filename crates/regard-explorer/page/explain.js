// The field's words, each with a sentence and a tiny drawing: what a head is, what entropy says, what temperature does.

import { button, make, shape } from "./dom.js";
import { t } from "./words.js";

/** Bars side by side. @param {number[]} heights from 0 to 1 @param {number} from */
const bars = (heights, from = 0) =>
  heights.map((height, i) =>
    shape("rect", { x: from + 12 * i, y: 40 - 36 * height, width: 9, height: Math.max(1, 36 * height), rx: 1 }),
  );
const arrow = (x) => shape("path", { class: "line", d: `M${x} 22h14m-4 -4l4 4l-4 4` });
const drawing = (...inside) => shape("svg", { class: "tiny", viewBox: "0 0 150 44", "aria-hidden": "true" }, inside);

/** @type {Record<string, {text: string, draw: () => Element}>} */
const TERMS = {
  head: {
    text: "A layer reads the whole input again. A head is one of its ways of looking: each decides by itself what to look at, and the layer joins what they found.",
    draw: () =>
      drawing(
        [20, 60, 100].map((x) => shape("circle", { cx: x, cy: 8, r: 5 })),
        shape("circle", { cx: 60, cy: 38, r: 5 }),
        shape("path", { class: "line", d: "M60 33L20 13" }),
        shape("path", { class: "line dashed", d: "M60 33L100 13" }),
      ),
  },
  entropy: {
    text: "Entropy says how spread out a look is. 0 is one place only; the more places share the weight, the greater it is.",
    draw: () => drawing(bars([0.05, 1, 0.05, 0.05]), arrow(56), bars([0.4, 0.45, 0.4, 0.4], 84)),
  },
  temperature: {
    text: "The scores are divided by the temperature before they become weights: below 1 the strongest takes more, above 1 all become alike.",
    draw: () => drawing(bars([0.15, 1, 0.2, 0.1]), arrow(56), bars([0.35, 0.5, 0.4, 0.35], 84)),
  },
  normalizer: {
    text: "A normalizer makes weights of scores. Softmax leaves everything a little; sparsemax and entmax give exactly 0 to what is far behind; argmax takes the strongest alone.",
    draw: () => drawing(bars([0.2, 0.9, 0.4, 0.1]), arrow(56), bars([0, 1, 0.25, 0], 84)),
  },
};

/** A small question mark that explains a word. @param {string} term */
export function about(term) {
  const { text, draw } = TERMS[term];
  const id = `about-${term}`;
  const card = make("div", { class: "about", id, role: "tooltip", hidden: true }, draw(), make("p", {}, t(text)));
  const show = (on) => {
    card.hidden = !on;
    opener.setAttribute("aria-expanded", String(on));
  };
  const opener = button("?", () => show(card.hidden), {
    class: "ask-about",
    "aria-label": t("What is this?"),
    "aria-expanded": "false",
    "aria-controls": id,
    onblur: () => show(false),
    onkeydown: (event) => {
      if (event.key !== "Escape" || card.hidden) return;
      event.stopPropagation();
      show(false);
    },
  });
  return make("span", { class: "about-place" }, opener, card);
}

const VISITED = "regard-visited";

/** Three steps for who is here for the first time; null for who has been. */
export function firstSteps() {
  try {
    if (localStorage.getItem(VISITED)) return null;
  } catch {
    return null; // nothing can be remembered here: then it would be said every time
  }
  const steps = make(
    "div",
    { class: "steps", id: "steps" },
    make(
      "ol",
      {},
      make("li", {}, t("Ask: type above, or take another example.")),
      make("li", {}, t("Look: point at a word or a cell to see what it attended to.")),
      make("li", {}, t("Change: click it, forbid it, and see whether the answer changes.")),
    ),
    button(
      t("Got it"),
      () => {
        localStorage.setItem(VISITED, "1");
        steps.remove();
      },
      { class: "plain" },
    ),
  );
  return steps;
}
