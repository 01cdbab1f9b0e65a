// The page's head: which run, what is known of it; language, colors, sharing.

import { button, fill, make } from "./dom.js";
import { chooseRun, run, session } from "./session.js";
import { set, view } from "./state.js";
import { isDark } from "./theme.js";
import { spoken, t } from "./words.js";
import { menu } from "./menu.js";
import { shareChoices } from "./share.js";
import { drawHelp } from "./help.js";
import { scoresOf } from "./chart.js";

/** A number of parameters, or of anything, short. @param {number} n */
export const count = (n) =>
  // Chinese counts by ten thousands.
  spoken() === "zh"
    ? n >= 1e8 ? `${(n / 1e8).toFixed(1)} 亿` : n >= 1e4 ? `${(n / 1e4).toFixed(1)} 万` : String(n)
    : n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 1e4 ? `${Math.round(n / 1e3)} k` : String(n);

/** @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 90) return t("{n} s", { n: seconds < 10 ? seconds.toFixed(1) : Math.round(seconds) });
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? t("{n} min", { n: minutes }) : t("{n} h", { n: (minutes / 60).toFixed(1) });
}

/** The score that decides, of the epoch that was kept. @param {any} one @returns {[string, number] | null} */
export function keptScore(one) {
  const scored = one.records.filter((line) => scoresOf(line).length);
  const record = [...scored].reverse().find((line) => line.best) || scored[scored.length - 1];
  return record ? scoresOf(record)[0] : null;
}

/** @param {Element} top */
export function drawHead(top) {
  const one = run();
  const choose = make(
    "select",
    { "aria-label": t("Run"), onchange: (event) => chooseRun(event.target.value) },
    session.runs.map((other) => make("option", { value: other.id }, `${other.name}${other.training ? " ●" : ""}`)),
  );
  if (one) choose.value = one.id;
  const facts = one && [one.task, t("{n} parameters", { n: count(one.parameters) })];
  const score = one && keptScore(one);
  if (score) facts.push(`${t(score[0])} ${score[1].toFixed(score[1] > 10 ? 1 : 3)}`);
  fill(
    top,
    make("h1", {}, make("img", { src: "/icon.svg", alt: "regard", width: 20, height: 20 }), make("span", { "aria-hidden": "true" }, "regard")),
    session.runs.length > 1 &&
      button(t("All runs"), () => set({ tab: "runs" }, { push: true }), {
        "aria-pressed": String(view.tab === "runs"),
        class: view.tab === "runs" ? "main" : "",
      }),
    session.runs.length > 0 && view.tab !== "runs" && choose,
    make("span", { class: "facts grow", title: one?.about && t(one.about) }, facts && view.tab !== "runs" ? facts.join(" · ") : ""),
    make(
      "div",
      { class: "row" },
      one && menu(t("Share"), "↗", shareChoices),
      button(spoken() === "zh" ? "English" : "中文", () => set({ lang: spoken() === "zh" ? "en" : "zh" }), {
        class: "plain",
        lang: spoken() === "zh" ? "en" : "zh",
        "aria-label": spoken() === "zh" ? "English" : "中文",
      }),
      button(isDark() ? "☀" : "☾", () => set({ theme: isDark() ? "light" : "dark" }), {
        class: "plain",
        "aria-label": isDark() ? t("Light colors") : t("Dark colors"),
        title: isDark() ? t("Light colors") : t("Dark colors"),
      }),
      button("?", drawHelp, { class: "plain", "aria-label": t("Keys and help"), title: t("Keys and help") }),
    ),
  );
}
