// A button that opens a list of choices.

import { button, make } from "./dom.js";

/**
 * @param {string} label
 * @param {string} sign a character before the label
 * @param {() => [string, () => void][]} choices texts and what each does, asked for when it opens
 */
export function menu(label, sign, choices) {
  const list = make("div", { class: "sheet-of-choices", role: "menu", hidden: true });
  const opener = button(sign ? `${sign} ${label}` : label, () => (list.hidden ? open() : close()), {
    "aria-haspopup": "menu",
    "aria-expanded": "false",
  });
  const around = make("div", { class: "menu" }, opener, list);

  function open() {
    list.replaceChildren(
      ...choices().map(([text, act]) =>
        button(
          text,
          () => {
            close();
            act();
          },
          { role: "menuitem" },
        ),
      ),
    );
    list.hidden = false;
    opener.setAttribute("aria-expanded", "true");
    list.firstElementChild?.focus();
    addEventListener("pointerdown", outside);
    // A list that would leave the window on the left begins at the button.
    list.style.right = "0";
    list.style.left = "auto";
    if (list.getBoundingClientRect().left < 4) {
      list.style.right = "auto";
      list.style.left = `${Math.max(0, 4 - around.getBoundingClientRect().left)}px`;
      const over = list.getBoundingClientRect().right - innerWidth + 4;
      if (over > 0) list.style.left = `${-over}px`;
    }
  }

  function close() {
    list.hidden = true;
    opener.setAttribute("aria-expanded", "false");
    removeEventListener("pointerdown", outside);
  }

  const outside = (event) => !around.contains(event.target) && close();
  around.addEventListener("keydown", (event) => {
    const items = [...list.children];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && !list.hidden) {
      close();
      opener.focus();
    } else if (step && !list.hidden) {
      event.preventDefault();
      items[(items.indexOf(document.activeElement) + step + items.length) % items.length]?.focus();
    }
  });
  return around;
}
