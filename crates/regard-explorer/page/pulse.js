// Whether the program still answers: the page says so when it does not, and goes on when it is back.

import { say } from "./share.js";
import { session } from "./session.js";
import { t } from "./words.js";
import { at } from "./dom.js";

const CALM = 4000,
  ALARMED = 1500,
  PATIENCE = 4000;

let lived = 0;
let next = /** @type {any} */ (0);
let change = /** @type {(gone: boolean) => void} */ (() => {});

/** How long the program has run, in seconds; null where it does not answer. */
async function seconds() {
  try {
    const response = await fetch("/health", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    return response.ok ? (await response.json()).seconds : null;
  } catch {
    return null;
  }
}

/** Looks now, and again and again. */
export async function check() {
  clearTimeout(next);
  const now = await seconds();
  const gone = now === null,
    another = !gone && now < lived;
  if (!gone) lived = now;
  if (gone !== session.gone || another) {
    const back = session.gone || another;
    session.gone = gone;
    show();
    if (!gone && back) say(t("The program is back."));
    change(gone);
  }
  clearTimeout(next);
  next = setTimeout(check, gone ? ALARMED : CALM);
}

function show() {
  const time = new Date().toTimeString().slice(0, 5);
  at("gone").textContent = session.gone
    ? t(
        "The program does not answer since {time}. What you see is as it was then; the page goes on by itself when `regard explore` runs again.",
        { time },
      )
    : "";
  at("gone").hidden = !session.gone;
  document.body.classList.toggle("gone", session.gone);
}

/** Begins to watch. @param {(gone: boolean) => void} changed hears when the program goes and comes back */
export function watch(changed) {
  change = changed;
  document.addEventListener("visibilitychange", () => document.hidden || check());
  check();
}
