// Over a whole part: which examples A alone has right, which B alone, which both and which neither.

import * as api from "../api.js";
import { button, fill, make, table } from "../dom.js";
import { isPicture, shownOutput } from "../drawn.js";
import { written } from "../draw.js";
import { described } from "../input.js";
import { sentence } from "../session.js";
import { view } from "../state.js";
import { percent } from "../told.js";
import { t } from "../words.js";
import { askBoth, choose } from "./versus.js";

const PAGE = 10;
const PARTS = { train: "training", validation: "validation", test: "test" };
/** How an example ends; where the answers are numbers, who is nearer. */
const SENTENCES = {
  a: "A right, B wrong",
  b: "B right, A wrong",
  both: "Both right",
  neither: "Both wrong",
  "nearer-a": "A nearer",
  "nearer-b": "B nearer",
  "nearer-both": "Equally far off",
  "nearer-neither": "Not known",
};

let serial = 0;

/** The part that is judged; none before it is asked for: it takes a while. */
const part = () => (Object.hasOwn(PARTS, view.versus.part || "") ? view.versus.part : "");

/** What a link names, where it can be meant: an outcome, and how many examples are skipped. */
const which = () => (["a", "b", "both", "neither"].includes(view.versus.which) ? view.versus.which : null);
const skipped = () => Math.max(0, Math.floor(Number(view.versus.offset)) || 0);

/** @param {Element} element @param {[any, any]} sides */
export function drawWinners(element, sides) {
  serial += 1;
  const body = make("div", {}),
    all = sides[0].run.parts;
  const select = make(
    "select",
    { "aria-label": t("Part"), onchange: () => part() && choose({ part: select.value, which: "", offset: "" }) },
    all.map((name) => make("option", { value: name }, t(PARTS[name] || name))),
  );
  select.value = all.includes(part()) ? part() : all.includes("test") ? "test" : all[0];
  fill(
    element,
    make("h2", {}, t("Who is right where")),
    make(
      "div",
      { class: "row" },
      make("span", { class: "quiet" }, t("Each example of a part, judged by both.")),
      select,
      !part() && button(t("Judge A and B"), () => choose({ part: select.value }), { class: "main" }),
    ),
    body,
  );
  if (part()) load(body, sides);
}

/** @param {Element} body @param {[any, any]} sides */
async function load(body, sides) {
  const now = ++serial;
  const side = ({ run, changes }) => ({ run: run.id, changes });
  const question = { a: side(sides[0]), b: side(sides[1]), part: part(), which: which(), offset: skipped(), limit: PAGE };
  for (;;) {
    let answer;
    try {
      answer = await api.post("/api/versus", question);
    } catch (error) {
      if (now === serial) fill(body, make("p", { class: "quiet" }, sentence(error)));
      return;
    }
    if (now !== serial || !body.isConnected) return;
    if (answer.examples) return draw(body, answer);
    fill(
      body,
      make(
        "p",
        { class: "row", role: "status" },
        make("progress", { max: answer.total || 1, value: answer.done || 0 }),
        make("span", { class: "quiet wrap" }, `${answer.run}: ${t(answer.phase || "computing")} ${answer.done ?? 0} / ${answer.total || "–"}`),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
}

/** How both did, and whether that may be chance. */
function summary({ counts, count, chance, nearer }) {
  const right = [counts.a + counts.both, counts.b + counts.both];
  const bold = (i) => {
    const text = t("{n} of {count} ({share})", { n: right[i], count, share: percent(right[i] / count) });
    return right[i] > right[1 - i] ? make("b", {}, text) : text;
  };
  const words = nearer
    ? t("A is nearer to the truth for {a} of {count} examples, B for {b}.", { a: counts.a, b: counts.b, count })
    : t("A alone is right for {a} examples, B alone for {b}.", { a: counts.a, b: counts.b });
  return [
    make("p", { class: "told" }, words),
    !nearer && make("p", { id: "rights" }, `${t("Right")}: A `, bold(0), " · B ", bold(1)),
    counts.a + counts.b > 0 &&
      make(
        "p",
        { class: "quiet small" },
        t("Two equally good models would differ as much or more in {share} of such parts (McNemar's exact test).", { share: percent(chance) }),
      ),
  ];
}

function draw(body, answer) {
  const { counts, nearer, left_out: left, differing, beam } = answer;
  const ways = Object.keys(counts).filter((key) => counts[key] || !nearer);
  const one = (key) =>
    button([t(SENTENCES[nearer ? `nearer-${key}` : key]), make("b", { class: "number" }, ` ${counts[key]}`)], () => choose({ which: which() === key ? "" : key, offset: "" }), {
      "aria-pressed": String(which() === key),
      "data-which": key,
    });
  const notes = [
    left[0] + left[1] > 0 && t("Not both have judged {a} examples of A and {b} of B: the other's data do not have them.", { a: left[0], b: left[1] }),
    differing.length > 0 && t("Their options of the data differ: {names}.", { names: differing.join(", ") }),
    beam > 1 && t("Outputs are written greedily here; the beam of {n} of “Look and change” may find others.", { n: beam }),
  ].filter(Boolean);
  fill(
    body,
    summary(answer),
    notes.length > 0 && make("p", { class: "quiet small" }, notes.join(" ")),
    make("div", { class: "row groups", role: "group", "aria-label": t("Who is right where") }, ways.map(one)),
    pager(answer),
    answer.examples.length
      ? table([[t("Input")], [t("Expected")], ["A"], ["B"], [t("number"), "number"]], answer.examples.map((example) => line(example, answer)), { class: "list" })
      : make("p", { class: "quiet" }, t("No example is like that.")),
  );
}

function pager({ matching, examples }) {
  const offset = skipped(),
    end = offset + examples.length;
  const turn = (sign, to, disabled, name) => button(sign, () => choose({ offset: String(Math.max(0, to)) }), { disabled, "aria-label": name });
  return make(
    "p",
    { class: "row", role: "status" },
    turn("‹", Math.min(offset, matching) - PAGE, offset === 0, t("previous")),
    make("span", { class: "number quiet" }, examples.length ? t("{from} to {to} of {n}", { from: offset + 1, to: end, n: matching }) : "–"),
    turn("›", offset + PAGE, end >= matching, t("next")),
  );
}

const clipped = (text) => (isPicture(text) ? shownOutput(text) : [...String(text)].length > 160 ? `${[...String(text)].slice(0, 160).join("")}…` : String(text));

/** An input that is named by its place is told as everywhere on the page. */
function named(text) {
  const [, name, index] = /^(train|validation|test):(\d+)$/.exec(text) || [];
  return name ? described({ kind: "example", part: name, index: Number(index) }) : text;
}

function line({ input, truth, a, b }, { part: of, nearer }) {
  const side = (one, name) =>
    make(
      "td",
      { dir: "auto", class: nearer || one.right ? "" : "wrong", "data-name": name, title: typeof one.loss === "number" ? `${t("loss")} ${written(one.loss)}` : null },
      clipped(one.output) || t("(nothing)"),
    );
  const look = button(clipped(named(input)), () => askBoth(of, a.index), { class: "plain link", title: t("ask both") });
  return make(
    "tr",
    { class: "open", "data-index": a.index },
    make("td", { dir: "auto" }, look),
    make("td", { dir: "auto", "data-name": t("Expected") }, clipped(truth)),
    side(a, "A"),
    side(b, "B"),
    make("td", { class: "number quiet", "data-name": t("number") }, `${a.index + 1}`),
  );
}
