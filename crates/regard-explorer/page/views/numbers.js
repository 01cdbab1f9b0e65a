// A map as a table: every weight as a number, for screen readers and for copying.

import { button, fill, make, table } from "../dom.js";
import { colorOf, inkOn, written } from "../draw.js";
import { mapName } from "../scene.js";
import { colors } from "../theme.js";
import { t } from "../words.js";

// A table of all weights of 500 tokens would stop any browser: so many at a time.
const ROWS = 60,
  COLUMNS = 60;

export class NumbersView {
  constructor(host) {
    this.host = host;
    this.from = [0, 0];
    this.pager = make("div", { class: "row small quiet" });
    this.holder = make("div", {
      class: "scroll numbers",
      tabindex: 0,
      role: "region",
      "aria-label": t("Table of the weights"),
    });
    this.element = make("div", {}, this.pager, this.holder);
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { axes, one } = now;
    if (one.scene.kind === "graph") return this.edges();
    const [rows, columns] = [axes.rows.length, axes.columns.length];
    this.from = [this.from[0] < rows ? this.from[0] : 0, this.from[1] < columns ? this.from[1] : 0];
    const [r, c] = this.from,
      [rowEnd, columnEnd] = [Math.min(rows, r + ROWS), Math.min(columns, c + COLUMNS)];
    const places = Array.from({ length: columnEnd - c }, (_, i) => c + i);
    const row = (place) =>
      make(
        "tr",
        {},
        make("th", { scope: "row", dir: "auto" }, axes.rows[place]),
        places.map((column) => this.cell(place, column)),
      );
    const heads = [`${axes.rowAxis} \\ ${axes.columnAxis}`, ...places.map((column) => axes.columns[column])];
    const caption = `${mapName(now.map.name)}: ${axes.rowAxis} × ${axes.columnAxis}`;
    const whole = table(
      heads.map((name) => [name]),
      Array.from({ length: rowEnd - r }, (_, i) => row(r + i)),
    );
    whole.prepend(make("caption", { class: "unseen" }, caption));
    fill(this.holder, whole);
    fill(
      this.pager,
      this.pages(0, t("rows"), rowEnd, rows, ROWS),
      this.pages(1, t("columns"), columnEnd, columns, COLUMNS),
    );
    return undefined;
  }

  cell(row, column) {
    const { axes, map, range } = this.now;
    const weight = map.weights[row * axes.columns.length + column],
      color = colorOf(weight, range, colors());
    const td = make("td", {}, written(weight));
    td.style.background = `rgb(${color})`;
    td.style.color = inkOn(color);
    return td;
  }

  /** Where in the rows or columns this part of the table is, and the way to the next. */
  pages(axis, text, end, count, by) {
    if (count <= by) return [];
    const turn = (sign, to, disabled, name) =>
      button(
        sign,
        () => {
          this.from[axis] = Math.max(0, to);
          this.draw(this.now);
        },
        { disabled, "aria-label": `${text}, ${name}` },
      );
    const from = this.from[axis];
    return [
      text,
      turn("‹", from - by, from === 0, t("previous")),
      `${from + 1}–${end} / ${count}`,
      turn("›", from + by, end >= count, t("next")),
    ];
  }

  edges() {
    const { scene } = this.now.one,
      { weights } = this.now.map;
    const kind = (node) => (scene.classes[node] === null ? "" : (scene.class_names[scene.classes[node]] ?? ""));
    const order = scene.edges
      .map((_, i) => i)
      .sort((a, b) => scene.edges[a][0] - scene.edges[b][0] || weights[b] - weights[a])
      .slice(0, 600);
    fill(this.pager);
    const rows = order.map((edge) => {
      const [from, to] = scene.edges[edge];
      return make(
        "tr",
        {},
        make("th", { scope: "row" }, scene.nodes[from]),
        [scene.nodes[to], kind(to), written(weights[edge])].map((text) => make("td", {}, text)),
      );
    });
    const whole = table([[t("who attends")], [t("to whom")], [t("class")], [t("weight")]], rows);
    whole.prepend(make("caption", { class: "unseen" }, mapName(this.now.map.name)));
    fill(this.holder, whole);
  }

  hint() {
    return t("Every weight as a number.");
  }

  tell() {
    return null;
  }
}
