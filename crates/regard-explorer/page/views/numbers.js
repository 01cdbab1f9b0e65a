// A map as a table: every weight as a number, for screen readers and for copying.

import { button, fill, make } from "../dom.js";
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
    const ramp = colors();
    const cell = (row, column) => {
      const weight = now.map.weights[row * columns + column],
        color = colorOf(weight, now.range, ramp);
      const td = make("td", {}, written(weight));
      td.style.background = `rgb(${color})`;
      td.style.color = inkOn(color);
      return td;
    };
    const body = Array.from({ length: rowEnd - r }, (_, i) =>
      make(
        "tr",
        {},
        make("th", { scope: "row", dir: "auto" }, axes.rows[r + i]),
        places.map((column) => cell(r + i, column)),
      ),
    );
    const table = make(
      "table",
      {},
      make("caption", { class: "unseen" }, `${mapName(now.map.name)}: ${axes.rowAxis} × ${axes.columnAxis}`),
      make(
        "thead",
        {},
        make(
          "tr",
          {},
          make("th", { scope: "col" }, `${axes.rowAxis} \\ ${axes.columnAxis}`),
          places.map((column) => make("th", { scope: "col", dir: "auto" }, axes.columns[column])),
        ),
      ),
      make("tbody", {}, body),
    );
    fill(this.holder, table);
    const move = (axis, by) => () => {
      this.from[axis] = Math.max(0, this.from[axis] + by);
      this.draw(this.now);
    };
    const step = (axis, text, end, count, by) =>
      count > by
        ? [
            text,
            button("‹", move(axis, -by), {
              disabled: this.from[axis] === 0,
              "aria-label": `${text}, ${t("previous")}`,
            }),
            `${this.from[axis] + 1}–${end} / ${count}`,
            button("›", move(axis, by), { disabled: end >= count, "aria-label": `${text}, ${t("next")}` }),
          ]
        : [];
    fill(this.pager, step(0, t("rows"), rowEnd, rows, ROWS), step(1, t("columns"), columnEnd, columns, COLUMNS));
    return undefined;
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
    fill(
      this.holder,
      make(
        "table",
        {},
        make("caption", { class: "unseen" }, mapName(this.now.map.name)),
        make(
          "thead",
          {},
          make(
            "tr",
            {},
            [t("who attends"), t("to whom"), t("class"), t("weight")].map((name) => make("th", { scope: "col" }, name)),
          ),
        ),
        make(
          "tbody",
          {},
          order.map((edge) => {
            const [from, to] = scene.edges[edge];
            return make(
              "tr",
              {},
              make("th", { scope: "row" }, scene.nodes[from]),
              make("td", {}, scene.nodes[to]),
              make("td", {}, kind(to)),
              make("td", {}, written(weights[edge])),
            );
          }),
        ),
      ),
    );
  }

  hint() {
    return t("Every weight as a number.");
  }

  tell() {
    return null;
  }
}
