// The keys, and what attention weights do not say.

import { button, make } from "./dom.js";
import { setSingleKeys, singleKeys } from "./keys.js";
import { t } from "./words.js";

export function drawHelp() {
  const keys = [
    ["/", t("to the input")],
    ["1 – 5", t("look, compare, training, errors, heads")],
    ["PgUp PgDn", t("the map before, the next map")],
    ["← ↑ → ↓", t("from cell to cell, from token to token")],
    ["X", t("forbid the cell at the cursor, or allow it again")],
    ["+", t("strengthen the cell at the cursor")],
    ["O", t("switch the chosen head off or on")],
    ["0", t("undo all changes")],
    ["?", t("this list")],
  ];
  const single = make("input", { type: "checkbox", onchange: () => setSingleKeys(single.checked) });
  single.checked = singleKeys();
  const dialog = make(
    "dialog",
    { "aria-label": t("Keys and help"), onclose: () => dialog.remove() },
    make("h3", {}, t("Keys")),
    make(
      "dl",
      {},
      keys.map(([key, text]) => [
        make(
          "dt",
          {},
          key.split(" – ").length > 1 ? make("kbd", {}, key) : key.split(" ").map((one) => [make("kbd", {}, one), " "]),
        ),
        make("dd", {}, text),
      ]),
    ),
    make("p", {}, make("label", { class: "line" }, single, t("Keys do this without Ctrl or Alt"))),
    make(
      "p",
      { class: "quiet" },
      t(
        "Attention weights say what was read, not why it was answered so: attention is not an explanation. Change a weight and see whether the output changes.",
      ),
    ),
    make(
      "p",
      { class: "row" },
      button(t("Close"), () => dialog.close(), { class: "main" }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
