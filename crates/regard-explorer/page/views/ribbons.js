// What was read and what was written as two large lines, with ribbons between: the first view of what writes text.

import { button, fill, make, shape } from "../dom.js";
import { mapsOf, strongest } from "../scene.js";
import { session } from "../session.js";
import { percent } from "../told.js";
import { t } from "../words.js";
import { strongestText } from "./matrix.js";
import { effectOfWord } from "./matters.js";

const GAP = 120,
  PACE = 550;
const IDEOGRAPH = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u;

export class RibbonsView {
  constructor(host) {
    this.host = host;
    this.source = make("div", { class: "line source", dir: "auto" });
    this.output = make("div", { class: "line output-line", dir: "auto" });
    this.svg = shape("svg", { class: "drawing bands", "aria-hidden": "true" });
    this.play = button("", () => (this.played === null ? this.start() : this.stop()), { id: "play-words" });
    this.names = [make("h2", {}), make("h2", {})];
    this.gap = make("div", { class: "gap" });
    this.gap.style.height = `${GAP}px`;
    this.canvas = make("div", { class: "two-lines" }, this.svg, this.source, this.gap, this.output);
    this.element = make(
      "div",
      { class: "ribbons" },
      make("div", { class: "row spread" }, this.names[0], this.play),
      this.canvas,
      this.names[1],
    );
    this.hover = /** @type {{side: string, index: number} | null} */ (null);
    this.played = /** @type {number | null} */ (null);
    this.listen();
  }

  listen() {
    const of = (event) => {
      const chip = event.target.closest?.("[data-index]");
      return chip && { side: chip.dataset.side, index: Number(chip.dataset.index) };
    };
    this.canvas.addEventListener("pointerover", (event) => of(event) && this.over(of(event)));
    this.canvas.addEventListener("focusin", (event) => of(event) && this.over(of(event)));
    this.canvas.addEventListener(
      "pointerleave",
      (event) => event.pointerType === "mouse" && !this.host.pinned && this.over(null),
    );
    this.canvas.addEventListener("click", (event) => {
      if (!of(event)) return;
      this.over(of(event));
      this.host.pin(...this.cell());
    });
    this.canvas.addEventListener("keydown", (event) => {
      const from = of(event),
        step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!from) return;
      const to = step
        ? { ...from, index: from.index + step }
        : event.key === "ArrowDown" && from.side === "source"
          ? { side: "output", index: this.cellOf(from)[0] }
          : event.key === "ArrowUp" && from.side === "output"
            ? { side: "source", index: this.cellOf(from)[1] }
            : null;
      const chip = to && this.chip(to.side, to.index);
      if (!chip) return;
      event.preventDefault();
      chip.focus();
    });
  }

  chip(side, index) {
    return (side === "source" ? this.source : this.output).querySelector(`[data-index="${index}"]`);
  }

  over(hover) {
    if (JSON.stringify(hover) === JSON.stringify(this.hover)) return;
    this.hover = hover;
    this.paint();
    if (hover) this.host.point(...this.cell());
    else this.host.leave();
  }

  cell() {
    return this.cellOf(/** @type {any} */ (this.hover));
  }

  /** A word's strongest cell. @returns {[number, number]} */
  cellOf({ side, index }) {
    const { axes, map } = this.now,
      columns = axes.columns.length;
    if (side === "output") return [index, strongest(map.weights, index * columns, columns, 1)[0] ?? 0];
    let best = 0;
    for (let row = 1; row < axes.rows.length; row++)
      if (map.weights[row * columns + index] > map.weights[best * columns + index]) best = row;
    return [best, index];
  }

  /** @param {any} now */
  draw(now) {
    const key = JSON.stringify([now.axes.rows, now.axes.columns]);
    if (this.key !== key) {
      this.hover = null;
      this.played = null;
      clearTimeout(this.timer);
    }
    this.key = key;
    this.now = now;
    const { axes } = now,
      count = axes.rows.length + axes.columns.length;
    this.element.dataset.size = count <= 44 ? "large" : count <= 110 ? "middle" : "small";
    this.names[0].textContent = axes.columnAxis;
    this.names[1].textContent = axes.rowAxis;
    const unknown = new Set(session.answer?.prediction.details?.unknown || []);
    const cut = session.answer?.prediction.details?.read;
    fill(
      this.source,
      axes.columns.map((name, i) => this.token("source", name, i, axes.columns[i - 1], unknown)),
      cut && make("span", { class: "unread" }, t("… {n} more were not read", { n: cut.of - cut.count })),
    );
    fill(
      this.output,
      axes.rows.map((name, i) => this.token("output", name, i, axes.rows[i - 1], new Set())),
    );
    this.paint();
  }

  token(side, name, index, before, unknown) {
    const joined = index > 0 && IDEOGRAPH.test(name) && IDEOGRAPH.test(before || "");
    const lost = unknown.has(name);
    const place = this.now.map.place || mapsOf(this.now.one)[0]?.place;
    const effect = side === "source" && place ? effectOfWord(place.site, place.column + index) : null;
    const bar = effect !== null && make("i", { class: "effect-bar" });
    if (bar) bar.style.width = `${Math.max(2, 100 * effect)}%`;
    const marks = this.host
      .marks()
      .filter((mark) => (side === "source" ? mark.column === index && mark.row === null : false));
    return [
      index && !joined ? " " : "",
      button([name === "<end>" ? "∎" : `${name}${marks.map(({ sign }) => sign).join("")}`, bar], () => {}, {
        class: `word${lost ? " unknown" : ""}`,
        "data-side": side,
        "data-index": index,
        tabindex: index ? -1 : 0,
        title: lost
          ? t("The model does not know this word.")
          : name === "<end>"
            ? t("the end of what is written")
            : undefined,
      }),
      document.createElement("wbr"),
    ];
  }

  /** The share of a cell in its row. */
  share(row, column) {
    return Math.max(0, this.now.map.weights[row * this.now.axes.columns.length + column] || 0);
  }

  /** The cells that have a ribbon: all that count of what is pointed at, else the strongest of each row. */
  bands() {
    const { axes, map } = this.now,
      columns = axes.columns.length;
    const hover = this.played === null ? this.hover : { side: "output", index: this.played };
    if (hover?.side === "source")
      return axes.rows
        .map((_, row) => [row, hover.index, true])
        .filter(([row, column]) => this.share(row, column) >= 0.05);
    const few = axes.rows.length > 60 ? 1 : 3;
    const of = (row, most, least) =>
      strongest(map.weights, row * columns, columns, most)
        .filter((column) => this.share(row, column) >= least)
        .map((column) => [row, column, hover?.index === row]);
    const rows = axes.rows.map((_, row) => row).filter((row) => this.played === null || row <= this.played);
    const all = rows.filter((row) => hover?.index !== row).flatMap((row) => of(row, few, 0.15));
    return hover ? [...all, ...of(hover.index, 12, 0.02)] : all;
  }

  /** Every ribbon: of each head in its color, where several are looked at. */
  ribbons() {
    const { map } = this.now;
    if (!map.parts) return this.bands().map((band) => [...band, this.share(band[0], band[1]), ""]);
    return map.parts.flatMap(({ weights, color }) => {
      const of = { ...this.now, map: { ...map, weights, parts: undefined } };
      const whole = this.now;
      this.now = of;
      const all = this.bands().map((band) => [...band, this.share(band[0], band[1]), color]);
      this.now = whole;
      return all;
    });
  }

  paint() {
    const box = this.canvas.getBoundingClientRect();
    const middle = (side, index) => {
      const one = this.chip(side, index)?.getBoundingClientRect();
      if (!one) return null;
      return [one.left + one.width / 2 - box.left, (side === "source" ? one.bottom : one.top) - box.top, one.width];
    };
    this.svg.setAttribute("viewBox", `0 0 ${Math.max(1, box.width)} ${Math.max(1, box.height)}`);
    const hovering = this.hover !== null || this.played !== null;
    // Where a line is broken, ribbons run behind words: they are fainter until one is pointed at.
    const broken = [this.source, this.output].some(
      (line) => line.firstElementChild?.offsetTop !== line.lastElementChild?.previousElementSibling?.offsetTop,
    );
    const faint = broken ? 0.6 : 1;
    const bands = this.bands();
    fill(
      this.svg,
      this.ribbons().map(([row, column, on, weight, color]) => {
        const from = middle("source", column),
          to = middle("output", row),
          share = Math.min(1, weight);
        if (!from || !to) return null;
        const bend = Math.max(30, (to[1] - from[1]) / 2);
        const path = shape("path", {
          d: `M${from[0]} ${from[1]}C${from[0]} ${from[1] + bend} ${to[0]} ${to[1] - bend} ${to[0]} ${to[1]}`,
          class: on ? "on" : hovering ? "dim" : "",
          "stroke-width": (1 + share * Math.min(22, Math.min(from[2], to[2]) * 0.8)).toFixed(1),
          "stroke-opacity": (on ? 0.35 + 0.55 * share : faint * (hovering ? 0.07 : 0.12 + 0.45 * share)).toFixed(2),
        });
        if (color) path.style.stroke = color;
        return path;
      }),
    );
    this.light(bands);
    this.play.textContent = this.played === null ? `▶ ${t("Play")}` : `■ ${t("Stop")}`;
  }

  /** Marks the words that the ribbons of what is pointed at reach, with their shares. */
  light(bands) {
    for (const chip of this.canvas.querySelectorAll(".word")) {
      delete chip.dataset.on;
      delete chip.dataset.share;
      chip.classList.toggle(
        "later",
        this.played !== null && chip.dataset.side === "output" && Number(chip.dataset.index) > this.played,
      );
    }
    const hover = this.played === null ? this.hover : { side: "output", index: this.played };
    if (!hover) return;
    const own = this.chip(hover.side, hover.index);
    if (own) own.dataset.on = "self";
    for (const [row, column, on] of bands.filter((band) => band[2])) {
      const other = hover.side === "output" ? this.chip("source", column) : this.chip("output", row);
      if (!other || !on) continue;
      other.dataset.on = "other";
      if (this.share(row, column) >= 0.1) other.dataset.share = percent(this.share(row, column));
    }
  }

  /** Writes the output again, word by word. */
  start() {
    this.host.leave();
    this.hover = null;
    this.played = -1;
    const step = () => {
      if (this.played === null || !this.canvas.isConnected) return;
      if (this.played >= this.now.axes.rows.length - 1) {
        this.stop();
        return;
      }
      this.played += 1;
      this.paint();
      this.host.point(this.played, this.cellOf({ side: "output", index: this.played })[1]);
      this.timer = setTimeout(step, PACE);
    };
    step();
  }

  stop() {
    clearTimeout(this.timer);
    this.played = null;
    this.host.leave();
    this.paint();
  }

  tell(row, column) {
    const { axes, map } = this.now,
      columns = axes.columns.length;
    if (row >= axes.rows.length || column >= columns) return null;
    return {
      from: axes.rows[row],
      to: axes.columns[column],
      weight: map.weights[row * columns + column],
      others: strongestText(map.weights, row * columns, axes.columns),
    };
  }

  hint() {
    return t(
      "Point at a word to see what it was written from, or what was written from it. Click to keep it and change it.",
    );
  }
}
