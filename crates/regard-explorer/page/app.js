// The page: its head, the input, and one of five tabs.

import { at, button, fill, make } from "./dom.js";
import { ask, completed, load, onAnswer, refresh, run, sentence, session } from "./session.js";
import { isChanged, listen, restore, set, view } from "./state.js";
import { applyTheme, onTheme } from "./theme.js";
import { setLanguage, spoken, t } from "./words.js";
import { drawHead } from "./head.js";
import { drawInput } from "./input.js";
import { drawHelp } from "./help.js";
import { singleKeys } from "./keys.js";
import { check, watch } from "./pulse.js";
import * as askTab from "./views/ask.js";
import * as compareTab from "./views/compare.js";
import * as trainingTab from "./views/training.js";
import * as errorsTab from "./views/errors.js";
import * as headsTab from "./views/headmap.js";
import * as gallery from "./views/gallery.js";

/** @type {Record<string, {enter: (panel: Element) => void, leave?: () => void, update: (changed: Set<string>) => void}>} */
const TABS = { ask: askTab, compare: compareTab, training: trainingTab, errors: errorsTab, heads: headsTab, runs: gallery };
const NAMES = { ask: "Look and change", compare: "Compare", training: "Training", errors: "Errors", heads: "Heads" };

let entered = /** @type {string | null} */ (null);
let started = false;

/** Says what went wrong; nothing where all is well. @param {string} text */
function notice(text) {
  at("notice").textContent = text;
  at("notice").hidden = !text;
}

/** Says why an input was refused, where an answer to another one is seen; where none is, its place says it. */
function refused() {
  notice(session.answer && (view.tab === "ask" || view.tab === "compare") ? session.refusal : "");
}

function drawTabs() {
  const list = at("tabs");
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", t("What to do"));
  const keys = Object.keys(NAMES);
  // The gallery is of all runs, the tabs of one.
  list.hidden = view.tab === "runs";
  fill(
    list,
    keys.map((key, place) => {
      const on = key === view.tab;
      const one = button(t(NAMES[key]), () => set({ tab: key }, { push: true }), {
        role: "tab",
        id: `tab-${key}`,
        "aria-selected": String(on),
        "aria-controls": "panel",
        tabindex: on ? 0 : -1,
      });
      one.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        set({ tab: keys[(place + step + keys.length) % keys.length] }, { push: true });
        at(`tab-${view.tab}`).focus();
      });
      return one;
    }),
  );
  if (view.tab === "runs") at("panel").removeAttribute("aria-labelledby");
  else at("panel").setAttribute("aria-labelledby", `tab-${view.tab}`);
}

function enter() {
  if (entered) TABS[entered].leave?.();
  entered = view.tab;
  at("ask").hidden = ["training", "errors", "heads", "runs"].includes(view.tab);
  fill(at("panel"));
  if (started) refused();
  TABS[view.tab].enter(at("panel"));
}

/** Draws everything again: another language, other colors, another run. */
function drawAll() {
  document.documentElement.lang = spoken() === "zh" ? "zh-Hans" : "en";
  const one = run();
  document.title = one ? `${one.name} · regard` : "regard";
  drawHead(at("top"));
  drawInput(at("ask"));
  drawTabs();
  enter();
}

listen((changed) => {
  if (!started) return;
  if (changed.has("theme")) applyTheme();
  if (changed.has("lang")) setLanguage(view.lang);
  if (changed.has("lang") || changed.has("runs")) drawAll();
  else if (changed.has("tab")) {
    drawTabs();
    drawHead(at("top"));
    if (changed.has("input")) drawInput(at("ask"));
    enter();
  } else {
    if (changed.has("input")) drawInput(at("ask"));
    TABS[view.tab].update(changed);
  }
  if (changed.has("theme") && !changed.has("lang")) drawHead(at("top"));
  if (["runs", "input", "from", "changes"].some((key) => changed.has(key))) ask();
});

onAnswer(() => {
  if (session.lost) check();
  if (!session.waiting) refused();
  if (!session.waiting) drawInput(at("ask"));
  TABS[view.tab].update(new Set(["answer"]));
});

onTheme(() => entered && TABS[view.tab].update(new Set(["theme"])));
// Both tell of a step back; the second finds nothing new.
for (const step of ["popstate", "hashchange"]) {
  addEventListener(step, () => {
    if (started) restore(completed);
  });
}
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  if (entered) TABS[view.tab].update(new Set(["size"]));
});

addEventListener("keydown", (event) => {
  const typing = /** @type {Element} */ (event.target).closest?.("input, textarea, select");
  if (event.key === "Escape" && typing) /** @type {any} */ (typing).blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !singleKeys()) return;
  const tab = Object.keys(NAMES)[Number(event.key) - 1];
  if (event.key === "/") {
    event.preventDefault();
    at("ask").querySelector("textarea, input")?.focus();
  } else if (event.key === "?") drawHelp();
  else if (tab) set({ tab }, { push: true });
  else if (event.key === "0" && isChanged(view.changes)) set({ changes: {} });
});

async function start() {
  restore();
  setLanguage(view.lang || (navigator.language.startsWith("zh") ? "zh" : "en"));
  applyTheme();
  try {
    const missing = await load();
    if (!session.runs.length) {
      drawHead(at("top"));
      fill(
        at("panel"),
        make(
          "p",
          { class: "card" },
          t(
            "There is no run to explore. Train one, such as by `regard train translate`, and start `regard explore` with its folder.",
          ),
        ),
      );
      return;
    }
    started = true;
    drawAll();
    watch(async (gone) => {
      if (!gone) {
        await refresh();
        drawHead(at("top"));
        await ask();
      } else TABS[view.tab].update(new Set(["gone"]));
    });
    await ask();
    if (missing) notice(t("The link names a run that is not here: {run}.", { run: missing }));
  } catch (error) {
    notice(sentence(error));
    fill(
      at("panel"),
      button(t("Try again"), () => location.reload()),
    );
  }
}

start();
