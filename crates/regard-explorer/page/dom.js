// Elements, made from names, attributes and children. Text is always text, never markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} element
 * @param {Record<string, any>} attributes `on…` listens, `class` and the rest are attributes;
 *   true sets an empty attribute, false, null and undefined leave it out
 */
function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" && "value" in element) element.value = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
}

/** @param {any[]} children @returns {(Node | string)[]} */
const present = (children) =>
  children
    .flat(3)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));

/**
 * An HTML element.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {any}
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  element.append(...present(children));
  set(element, attributes);
  return element;
}

/**
 * An SVG element.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {any}
 */
export function shape(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  set(element, attributes);
  element.append(...present(children));
  return element;
}

/** @param {string} id @returns {any} */
export const at = (id) => document.getElementById(id);

/** Replaces what an element holds. @param {Element} element @param {...any} children */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/** A button. @param {any} label @param {() => void} press @param {Record<string, any>} [more] */
export const button = (label, press, more = {}) => make("button", { type: "button", onclick: press, ...more }, label);

/**
 * One of several, as buttons side by side that the arrow keys walk through.
 * @param {string} label what is chosen, for a screen reader
 * @param {[string, string][]} choices value and text
 * @param {string} chosen
 * @param {(value: string) => void} choose
 */
export function segmented(label, choices, chosen, choose) {
  const group = make("div", { class: "segmented", role: "radiogroup", "aria-label": label });
  choices.forEach(([value, text], place) => {
    const on = value === chosen;
    const one = button(text, () => choose(value), {
      role: "radio",
      "aria-checked": String(on),
      tabindex: on ? 0 : -1,
      "data-value": value,
    });
    one.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      const next = choices[(place + step + choices.length) % choices.length][0];
      choose(next);
      // The group may have been drawn again: the focus goes to the one that is chosen now.
      requestAnimationFrame(() => {
        for (const other of document.querySelectorAll('[role="radiogroup"]')) {
          if (other.getAttribute("aria-label") === label)
            /** @type {any} */ (other.querySelector('[aria-checked="true"]'))?.focus();
        }
      });
    });
    group.append(one);
  });
  if (!choices.some(([value]) => value === chosen) && group.firstElementChild) group.firstElementChild.tabIndex = 0;
  return group;
}

/**
 * A table of rows that are made already.
 * @param {[string, string?][]} heads texts, and classes where they have one
 * @param {Element[]} rows
 * @param {Record<string, any>} [attributes]
 */
export function table(heads, rows, attributes = {}) {
  const row = heads.map(([text, kind]) => make("th", { scope: "col", class: kind }, text));
  return make("table", attributes, make("thead", {}, make("tr", {}, row)), make("tbody", {}, rows));
}
