// A map as lines between queries (left) and keys (right); pointing at a token leaves only its lines.

import { make } from "../dom.js";
import { shortened, sized, written } from "../draw.js";
import { mapName, strongest } from "../scene.js";
import { paper } from "../theme.js";
import { t } from "../words.js";
import { strongestText } from "./matrix.js";

const FONT = '13px system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const PER_TOKEN = 12;

export class LinesView {
  constructor(host) {
    this.host = host;
    this.canvas = make("canvas", { tabindex: 0, role: "img" });
    this.element = make("div", { class: "scroll" }, make("div", { class: "sheet" }, this.canvas));
    this.hover = /** @type {{side: string, index: number} | null} */ (null);
    const point = (event) => this.at(event);
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener(
      "pointerleave",
      (event) => event.pointerType === "mouse" && !host.pinned && this.over(null),
    );
    this.canvas.addEventListener("click", () => this.hover && host.pin(...this.cell()));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const [side, index] = this.hover ? [this.hover.side, this.hover.index] : ["row", -1];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.over({ side, index: Math.min(this.count(side) - 1, Math.max(0, index + step)) });
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
      const next = event.key === "ArrowRight" ? "column" : "row";
      this.over({ side: next, index: Math.min(this.count(next) - 1, Math.max(0, index)) });
    } else if (event.key === "Enter" && this.hover) this.host.pin(...this.cell());
    else return;
    event.preventDefault();
  }

  count(side) {
    return (side === "row" ? this.now.axes.rows : this.now.axes.columns).length;
  }

  at(event) {
    if (!this.now) return;
    const box = this.canvas.getBoundingClientRect();
    const side = event.clientX - box.left < this.width / 2 ? "row" : "column";
    const index = Math.floor((event.clientY - box.top - this.top) / this.pitch[side]);
    this.over(index >= 0 && index < this.count(side) ? { side, index } : null);
  }

  over(hover) {
    if (JSON.stringify(hover) === JSON.stringify(this.hover)) return;
    this.hover = hover;
    this.paint();
    if (hover) this.host.point(...this.cell());
  }

  /** The token's strongest cell. @returns {[number, number]} */
  cell() {
    const { axes, map } = this.now,
      hover = /** @type {any} */ (this.hover),
      columns = axes.columns.length;
    if (hover.side === "row") return [hover.index, strongest(map.weights, hover.index * columns, columns, 1)[0] ?? 0];
    let best = 0;
    for (let row = 1; row < axes.rows.length; row++)
      if (map.weights[row * columns + hover.index] > map.weights[best * columns + hover.index]) best = row;
    return [best, hover.index];
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { axes } = now;
    if (this.hover && this.hover.index >= this.count(this.hover.side)) this.hover = null;
    const [rows, columns] = [axes.rows.length, axes.columns.length];
    this.width = Math.min(now.width - 4, 900);
    const most = Math.max(rows, columns);
    const tall = most <= 60 ? most * 20 : Math.min(1500, Math.max(760, most * 3));
    this.height = tall + 30;
    this.top = 26;
    this.pitch = { row: tall / rows, column: tall / columns };
    if (most <= 60) this.pitch = { row: Math.min(28, tall / rows), column: Math.min(28, tall / columns) };
    // As wide as the longest name, as long as the lines have a third between them.
    const context = this.canvas.getContext("2d");
    context.font = FONT;
    const widest = [...axes.rows, ...axes.columns]
      .slice(0, 400)
      .reduce((most, name) => Math.max(most, name.length > 80 ? Infinity : context.measureText(name).width), 60);
    this.edge = Math.min(widest + 50, this.width * 0.36);
    this.canvas.setAttribute(
      "aria-label",
      t("{name}: lines from each token to those it attends to; arrow keys walk the tokens; as numbers under “Table”", {
        name: mapName(now.map.name),
      }),
    );
    this.paint();
  }

  paint() {
    const { axes, map, range } = this.now,
      ink = paper();
    const context = sized(this.canvas, this.width, this.height);
    const columns = axes.columns.length;
    const middle = (side, index) => this.top + (index + 0.5) * this.pitch[side];
    const line = (weights, row, column, bold) => {
      const share = Math.min(1, Math.max(0, (weights[row * columns + column] - range[0]) / (range[1] - range[0])));
      if (share < 0.03) return;
      context.globalAlpha = Math.min(1, bold ? 0.15 + 0.85 * share : 0.04 + 0.7 * share);
      context.lineWidth = bold ? 0.6 + 3.4 * share : 0.5 + 1.6 * share;
      const [x, to, y, end] = [this.edge + 4, this.width - this.edge - 4, middle("row", row), middle("column", column)];
      context.beginPath();
      context.moveTo(x, y);
      context.bezierCurveTo((x + to) / 2, y, (x + to) / 2, end, to, end);
      context.stroke();
    };
    // Several heads: each in its color.
    for (const { weights, color } of map.parts || [{ weights: map.weights, color: "" }]) {
      context.strokeStyle = color || (this.hover ? ink.mark : ink.edge);
      if (this.hover?.side === "row")
        for (let column = 0; column < columns; column++) line(weights, this.hover.index, column, true);
      else if (this.hover) for (let row = 0; row < axes.rows.length; row++) line(weights, row, this.hover.index, true);
      else
        for (let row = 0; row < axes.rows.length; row++)
          strongest(weights, row * columns, columns, PER_TOKEN).forEach((column) => line(weights, row, column, false));
    }
    context.globalAlpha = 1;
    context.font = FONT;
    context.textBaseline = "middle";
    this.tokens(context, "row", axes.rows, axes.rowAxis, middle, ink);
    this.tokens(context, "column", axes.columns, axes.columnAxis, middle, ink);
  }

  tokens(context, side, names, axis, middle, ink) {
    const left = side === "row",
      x = left ? this.edge - 2 : this.width - this.edge + 2;
    context.textAlign = left ? "right" : "left";
    context.fillStyle = ink.faint;
    context.fillText(shortened(context, axis, this.edge - 4), x, 10);
    const every = Math.ceil(14 / this.pitch[side]),
      columns = this.now.axes.columns.length;
    names.forEach((name, index) => {
      const on = this.hover?.side === side && this.hover.index === index;
      const weight =
        this.hover && this.hover.side !== side
          ? this.now.map.weights[left ? index * columns + this.hover.index : this.hover.index * columns + index]
          : null;
      const strong = weight !== null && weight > this.now.range[1] * 0.12;
      if (index % every && !on && !strong) return;
      context.fillStyle = on || strong ? ink.mark : ink.ink;
      const text = strong ? (left ? `${written(weight)} ${name}` : `${name} ${written(weight)}`) : name;
      if (on || strong) {
        context.fillStyle = ink.paper;
        context.fillRect(left ? 0 : x - 2, middle(side, index) - 8, this.edge, 16);
        context.fillStyle = ink.mark;
      }
      context.fillText(shortened(context, text, this.edge - 4), x, middle(side, index));
    });
  }

  tell(row, column) {
    const { axes, map } = this.now,
      columns = axes.columns.length;
    if (row >= axes.rows.length || column >= columns) return null;
    const shown = { from: axes.rows[row], to: axes.columns[column], weight: map.weights[row * columns + column] };
    if (this.hover?.side !== "column")
      return { ...shown, others: strongestText(map.weights, row * columns, axes.columns) };
    const into = Float32Array.from(axes.rows, (_, i) => map.weights[i * columns + column]);
    return { ...shown, others: `${t("attended to by")} — ${strongestText(into, 0, axes.rows)}` };
  }

  hint() {
    return t("Point at a token to see its lines alone.");
  }
}
