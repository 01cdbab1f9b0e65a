// What matters: every head switched off in turn, every word forbidden in turn, ranked by how far the answer moves.

import { shownOutput } from "../drawn.js";
import { button, make } from "../dom.js";
import { session } from "../session.js";
import { percent } from "../told.js";
import { t } from "../words.js";
import { changeCell, headName, siteName, toggleHead } from "./change.js";

const SHOWN = 10;
/** Less than this is no effect. */
const NOTHING = 0.005;

let known = /** @type {{of: any, heads: any[], words: any[]} | null} */ (null);

/** The effect of a head, as a share of the greatest; null where it is not known. @param {any} place */
export function effectOfHead(place) {
  if (!place || known?.of !== session.answer) return null;
  return share(
    known.heads,
    ({ site, layer, head }) => site === place.site && layer === place.layer && head === place.head,
  );
}

/** The same of a word that is read. @param {string} site @param {number} column */
export function effectOfWord(site, column) {
  if (known?.of !== session.answer) return null;
  return share(known.words, (one) => one.site === site && one.column === column);
}

function share(all, is) {
  const found = all.find(is);
  return found && all[0].effect >= NOTHING ? found.effect / all[0].effect : found ? 0 : null;
}

/** A list, the greatest effect first, a bar each; a click makes the change. */
function ranked(title, all, name, press, count = all.length) {
  if (!all.length) return null;
  const idle = all.filter(({ effect }) => effect < NOTHING).length;
  const most = Math.max(NOTHING, all[0].effect);
  return make(
    "div",
    { class: "ranked" },
    make("h2", {}, title),
    all
      .filter(({ effect }) => effect >= NOTHING)
      .slice(0, SHOWN)
      .map((one) => {
        const bar = make("i", {});
        bar.style.width = `${(100 * one.effect) / most}%`;
        return make(
          "div",
          { class: "line" },
          button(name(one), () => press(one), { class: "plain link", title: t("Make this change") }),
          make("span", { class: "bar", "aria-hidden": "true" }, bar),
          make("span", { class: "number" }, percent(one.effect)),
          make(
            "span",
            { class: "quiet wrap", dir: "auto" },
            typeof one.mean === "number" && `${t("as its mean: {n}", { n: percent(one.mean) })} `,
            one.output === null ? "" : ["→ ", shownOutput(one.output)],
          ),
        );
      }),
    count > all.length &&
      make("p", { class: "quiet small" }, t("Only the first {n} of {all} were tried.", { n: all.length, all: count })),
    idle > 0 &&
      make("p", { class: "quiet small" }, t("{n} of {all} make no difference.", { n: idle, all: all.length })),
  );
}

/** A word, and where it is read where that is in several places. @param {any} one @param {any[]} all */
function wordName({ name, site }, all) {
  const word = name.replace(/ ←$/, "");
  return all.some((other) => other.site !== site) ? `${word} · ${siteName(site)}` : word;
}

/** @param {any} answer */
export function drawMatters(answer) {
  const fresh = known?.of !== session.answer;
  known = { of: session.answer, heads: answer.heads, words: answer.words };
  // The small maps and the words show it too.
  if (fresh) queueMicrotask(() => document.dispatchEvent(new Event("matters")));
  const cell = ({ site, column }) => ({ site, layer: null, head: null, row: null, column, bias: null });
  const [word, head] = [answer.words[0], answer.heads[0]];
  const strong = (one) => one && one.effect >= NOTHING;
  return [
    make(
      "p",
      { class: "told" },
      strong(word)
        ? t("Without “{word}” the answer moves most ({n}).", {
            word: word.name.replace(/ ←$/, ""),
            n: percent(word.effect),
          })
        : answer.words.length
          ? t("No single word matters: without any one of them the answer stays.")
          : "",
      " ",
      strong(head)
        ? t("Of the heads, {head} matters most ({n}).", { head: headName(head), n: percent(head.effect) })
        : answer.heads.length
          ? t("No single head matters: without any one of them the answer stays.")
          : "",
    ),
    make(
      "div",
      { class: "pair" },
      ranked(
        t("Without this word"),
        answer.words,
        (one) => wordName(one, answer.words),
        (one) => changeCell(cell(one)),
        answer.all.words,
      ),
      ranked(t("Without this head"), answer.heads, headName, toggleHead, answer.all.heads),
      ranked(t("Without this layer"), answer.layers, headName, toggleHead, answer.all.layers),
    ),
    make(
      "p",
      { class: "quiet small" },
      t("Each is taken away alone, by the model itself: 0 % leaves the answer as it is, 100 % makes it all another."),
    ),
  ];
}
