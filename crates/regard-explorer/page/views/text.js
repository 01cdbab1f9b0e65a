// The keys as running text, each on the color of its weight; the query is chosen above, or in the text.

import { button, fill, make } from "../dom.js";
import { colorOf, inkOn, rangeOf, written } from "../draw.js";
import { colors } from "../theme.js";
import { t } from "../words.js";
import { strongestText } from "./matrix.js";

const NO_SPACE_BEFORE = /^[,.;:!?%)\]}»”’，。；：！？、）】》…]|^##|^'|^@@/u;
const IDEOGRAPH = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

export class TextView {
  constructor(host) {
    this.host = host;
    this.query = make("select", { "aria-label": t("Query"), onchange: () => this.choose(Number(this.query.value)) });
    this.text = make("div", { class: "text", dir: "auto" });
    this.line = make("label", { class: "line" });
    this.element = make("div", {}, this.line, this.text);
    this.row = 0;
    this.listen();
  }

  choose(row) {
    this.row = row;
    this.host.point(row, this.column ?? 0);
    this.draw(this.now);
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { axes, map } = now,
      columns = axes.columns.length;
    this.row = Math.min(this.row, axes.rows.length - 1);
    const names = JSON.stringify(axes.rows);
    if (this.names !== names) {
      this.names = names;
      fill(
        this.query,
        axes.rows.map((name, i) => make("option", { value: i }, axes.rows.length > 1 ? `${i + 1} ${name}` : name)),
      );
    }
    this.query.value = String(this.row);
    fill(
      this.line,
      make("span", { class: "quiet small" }, axes.rowAxis),
      axes.rows.length > 1 ? this.query : make("b", {}, axes.rows[0]),
    );
    const weights = map.weights.subarray(this.row * columns, (this.row + 1) * columns);
    const focused = this.text.contains(document.activeElement)
      ? /** @type {any} */ (document.activeElement).dataset.column
      : null;
    fill(this.text, this.tokens(axes, weights));
    if (focused !== null) this.text.querySelector(`[data-column="${focused}"]`)?.focus();
  }

  /** Each token on the color of its weight, with the spaces of the text between them. */
  tokens(axes, weights) {
    // A row may be far below the greatest weight of all maps; within a text only the row counts.
    const range = rangeOf(weights),
      ramp = colors(),
      marks = this.host.marks();
    return axes.columns.map((token, column) => {
      const joined = NO_SPACE_BEFORE.test(token) || (IDEOGRAPH.test(token) && IDEOGRAPH.test(axes.columns[column - 1]));
      const color = colorOf(weights[column], range, ramp);
      const mark = marks.find((one) => one.column === column && (one.row === null || one.row === this.row));
      const title = `${token}: ${written(weights[column])}`;
      const chip = button(mark ? `${token}${mark.sign}` : token, () => this.take(column), {
        class: "token",
        tabindex: column ? -1 : 0,
        title,
        "data-column": column,
      });
      chip.style.background = `rgb(${color})`;
      chip.style.color = inkOn(color);
      if (axes.rows.length === axes.columns.length && column === this.row) chip.setAttribute("aria-pressed", "true");
      // Without the last a line never ends where no space is.
      return [column && !joined ? " " : "", chip, document.createElement("wbr")];
    });
  }

  take(column) {
    this.column = column;
    this.host.pin(this.row, column);
  }

  /** Pointer and keys move from token to token; a double click makes a token the query. */
  listen() {
    const columnOf = (event) =>
      event.target.dataset?.column === undefined ? null : Number(event.target.dataset.column);
    this.text.addEventListener(
      "pointerover",
      (event) => columnOf(event) !== null && this.host.point(this.row, columnOf(event)),
    );
    this.text.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key],
        from = columnOf(event);
      const to = step && from !== null && this.text.querySelector(`[data-column="${from + step}"]`);
      if (!to) return;
      event.preventDefault();
      to.focus();
      this.host.point(this.row, from + step);
    });
    this.text.addEventListener("dblclick", (event) => {
      const { rows, columns } = this.now.axes;
      if (rows.length === columns.length && columnOf(event) !== null) this.choose(columnOf(event));
    });
  }

  tell(_, column) {
    const { axes, map } = this.now;
    if (column >= axes.columns.length) return null;
    const start = this.row * axes.columns.length;
    return {
      from: axes.rows[this.row],
      to: axes.columns[column],
      weight: map.weights[start + column],
      others: strongestText(map.weights, start, axes.columns),
    };
  }

  hint() {
    return this.now?.axes.rows.length === this.now?.axes.columns.length
      ? t("Each token is on the color of its weight. Double-click a token to see what it attends to.")
      : t("Each token is on the color of its weight.");
  }
}
