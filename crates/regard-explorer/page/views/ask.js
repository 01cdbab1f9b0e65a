// Ask, look, change: the answer, all heads, one large, and what can be changed.

import { fill, make } from "../dom.js";
import { firstSteps } from "../explain.js";
import { session } from "../session.js";
import { drawAnswer } from "./answer.js";
import { drawHeads } from "./heads.js";
import { drawStage } from "./stage.js";
import { drawChange } from "./change.js";
import { drawMore } from "./more.js";

let parts = /** @type {any} */ (null);

/** @param {Element} panel */
export function enter(panel) {
  parts = {
    answer: make("section", { class: "card answer", "aria-live": "polite" }),
    heads: make("section", { class: "heads" }),
    stage: make("section", { class: "card stage" }),
    change: make("aside", { class: "card change" }),
    more: make("section", { class: "more" }),
  };
  parts.work = make("div", { class: "work" }, parts.heads, parts.stage);
  fill(panel, make("div", { class: "ask" }, firstSteps(), parts.answer, parts.work, parts.change, parts.more));
  update(new Set(["answer", "changes"]));
}

/** @param {Set<string>} changed */
export function update(changed) {
  if (!parts) return;
  const has = (...keys) => keys.some((key) => changed.has(key));
  if (has("answer", "changes", "from", "theme")) drawAnswer(parts.answer);
  // While an answer is on its way nothing flickers: what is there stays, dimmed if it takes long.
  parts.work.classList.toggle("waiting", session.waiting);
  const stale = Boolean(session.refusal && session.answer && !session.waiting);
  for (const part of [parts.answer, parts.work, parts.more]) part.classList.toggle("stale", stale);
  parts.stage.hidden = !session.answer;
  parts.change.hidden = !session.answer;
  if (!session.waiting && has("answer", "scene", "map", "look", "theme", "size", "changes")) {
    drawHeads(parts.heads);
    drawStage(parts.stage);
  }
  // A slider that is being dragged is left alone until the answer is there.
  if (has("answer", "changes", "from", "theme") && (!session.waiting || !parts.change.firstChild))
    drawChange(parts.change);
  if (has("answer", "theme") && !session.waiting) drawMore(parts.more);
  if (has("answer") && !session.waiting && session.answer)
    document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn || 0) + 1);
}

// What was found to matter is seen on the small maps and on the words.
document.addEventListener("matters", () => parts && update(new Set(["map"])));

export function leave() {
  parts = null;
}
