// A view as a link, and as a file.

import * as api from "./api.js";
import { card } from "./card.js";
import { at, make } from "./dom.js";
import { isAskable, run, sentence, session } from "./session.js";
import { isChanged, view, written } from "./state.js";
import { t } from "./words.js";

/** Says something to everyone: seen for a moment, and read aloud. @param {string} text */
export function say(text) {
  at("said").textContent = text;
  document.querySelector(".toast")?.remove();
  const toast = make("p", { class: "toast" }, text);
  document.body.append(toast);
  setTimeout(() => toast.remove(), 3500);
}

async function copyLink() {
  const link = `${location.origin}${location.pathname}${written()}`;
  try {
    await navigator.clipboard.writeText(link);
  } catch {
    // Without the right to the clipboard the link stands in the address line all the same.
    say(t("The link is in the address line."));
    return;
  }
  say(view.input?.kind === "bytes" ? t("Link copied. The file you dropped is not part of it.") : t("Link copied."));
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  say(t("Saved {name}.", { name }));
}

/** @param {string} as */
async function saveAs(as) {
  try {
    const { blob, name } = await api.save({
      run: view.runs[0],
      input: view.input,
      changes: isChanged(view.changes) ? view.changes : null,
      scene: view.scene,
      // One head that is chosen is saved alone.
      map: /^\d+$/.test(view.map) ? Number(view.map) : null,
      as,
    });
    download(blob, name);
  } catch (error) {
    say(sentence(error));
  }
}

/** @returns {[string, () => void][]} */
export function shareChoices() {
  const choices = [[t("Copy the link of this view"), copyLink]];
  if (run()?.ready && isAskable(view.input) && session.answer?.scenes.length) {
    choices.push(
      [t("Save a card of this view (PNG)"), async () => download(await card(), `${view.runs[0]}-card.png`)],
      [t("Save the picture as SVG"), () => saveAs("svg")],
      [t("Save the picture as PNG"), () => saveAs("png")],
      [t("Save a page that stands alone (HTML)"), () => saveAs("html")],
    );
    const { scene } = session.answer.scenes[view.scene] || session.answer.scenes[0];
    if (scene.kind === "maps" || scene.kind === "image")
      choices.push([t("Save Play as an animation (GIF)"), () => saveAs("gif")]);
    choices.push(
      [t("Save the weights as a table (CSV)"), () => saveAs("csv")],
      [t("Save the weights for numpy (NPZ)"), () => saveAs("npz")],
    );
  }
  return /** @type {any} */ (choices);
}
