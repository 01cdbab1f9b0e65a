// A regression curve with its data; the query point is dragged, and every datum shows its weight there.

import { fill, make, shape } from "../dom.js";
import { colorOf, written } from "../draw.js";
import { set } from "../state.js";
import { colors, paper } from "../theme.js";
import { t } from "../words.js";
import { strongest } from "../scene.js";

const HEIGHT = 380,
  LEFT = 44,
  RIGHT = 14,
  TOP = 26,
  BOTTOM = 34;

export class CurveView {
  constructor(host) {
    this.host = host;
    this.holder = make("div", {});
    this.element = make("div", {}, this.holder);
    this.dragging = false;
    this.holder.addEventListener("pointerdown", (event) => {
      if (event.target.closest?.("[data-datum]")) return;
      this.dragging = true;
      this.holder.setPointerCapture(event.pointerId);
      this.drag(event);
    });
    this.holder.addEventListener("pointermove", (event) => this.dragging && this.drag(event));
    for (const end of ["pointerup", "pointercancel"])
      this.holder.addEventListener(end, () => {
        this.dragging = false;
      });
  }

  drag(event) {
    const svg = this.holder.firstElementChild;
    if (!svg) return;
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * this.width;
    this.ask(this.scale.low + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (this.scale.high - this.scale.low));
  }

  ask(value) {
    const inside = Math.min(this.scale.high, Math.max(this.scale.low, value));
    set({ input: { kind: "point", at: [Math.round(inside * 1000) / 1000] } });
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { scene } = now.one,
      ink = paper();
    const least = (...lists) => lists.reduce((m, list) => list.reduce((n, v) => Math.min(n, v), m), Infinity);
    const most = (...lists) => lists.reduce((m, list) => list.reduce((n, v) => Math.max(n, v), m), -Infinity);
    const [low, high] = [least(scene.x, scene.at), most(scene.x, scene.at)],
      truth = scene.truth || [];
    const [bottom, top] = [least(scene.y, scene.curve, truth), most(scene.y, scene.curve, truth)];
    this.scale = { low, high };
    const width = Math.min(now.width, 900);
    this.width = width;
    const px = (x) => LEFT + ((x - low) / (high - low || 1)) * (width - LEFT - RIGHT);
    const py = (y) => HEIGHT - BOTTOM - ((y - bottom) / (top - bottom || 1)) * (HEIGHT - TOP - BOTTOM);
    const path = (ys) => ys.map((y, i) => `${i ? "L" : "M"}${px(scene.at[i]).toFixed(1)} ${py(y).toFixed(1)}`).join("");
    this.row = this.nearest(scene);
    const start = this.row * scene.x.length,
      weights = now.map.weights.subarray(start, start + scene.x.length);
    const greatest = Math.max(
        1e-9,
        weights.reduce((m, w) => Math.max(m, w), 0),
      ),
      ramp = colors();
    const svg = shape("svg", {
      class: "drawing drag",
      viewBox: `0 0 ${width} ${HEIGHT}`,
      role: "group",
      "aria-label": t("The curve and its data; drag the query point; as numbers under “Table”"),
    });
    svg.append(...this.axes([bottom, top], [low, high], px, py));
    if (scene.truth)
      svg.append(
        shape("path", {
          d: path(scene.truth),
          fill: "none",
          stroke: ink.faint,
          "stroke-dasharray": "5 4",
          "stroke-width": 1.3,
        }),
      );
    svg.append(shape("path", { d: path(scene.curve), fill: "none", stroke: ink.ink, "stroke-width": 2 }));
    const forbidden = new Set(
      this.host
        .marks()
        .filter(({ sign }) => sign === "×")
        .map(({ column }) => column),
    );
    scene.x.forEach((x, i) =>
      svg.append(this.datum(i, px(x), py(scene.y[i]), weights[i] / greatest, ramp, ink, forbidden.has(i))),
    );
    this.query(svg, scene, px, py, ink);
    const focused =
      this.holder.contains(document.activeElement) && /** @type {any} */ (document.activeElement).dataset.query;
    fill(this.holder, svg);
    if (focused) svg.querySelector("[data-query]")?.focus();
  }

  axes([bottom, top], [low, high], px, py) {
    const levels = [bottom, (bottom + top) / 2, top].flatMap((y) => [
      shape("line", { class: "axis", x1: LEFT, x2: this.width - RIGHT, y1: py(y), y2: py(y) }),
      shape("text", { class: "faint", x: LEFT - 6, y: py(y) + 4, "text-anchor": "end" }, y.toFixed(1)),
    ]);
    const places = [low, (low + high) / 2, high].map((x) =>
      shape("text", { class: "faint", x: px(x), y: HEIGHT - 12, "text-anchor": "middle" }, x.toFixed(1)),
    );
    return [...levels, ...places];
  }

  nearest(scene) {
    const query = scene.query ?? scene.at[Math.floor(scene.at.length / 2)];
    let best = 0;
    scene.at.forEach((value, i) => {
      if (Math.abs(value - query) < Math.abs(scene.at[best] - query)) best = i;
    });
    return best;
  }

  datum(i, cx, cy, share, ramp, ink, forbidden) {
    const point = shape("circle", {
      cx,
      cy,
      r: 3.5 + 4.5 * share,
      fill: forbidden ? "none" : `rgb(${colorOf(0.12 + 0.88 * share, [0, 1], ramp)})`,
      stroke: forbidden ? ink.mark : ink.edge,
      "stroke-width": forbidden ? 2 : 0.8,
      "data-datum": i,
      class: "node",
    });
    point.addEventListener("pointerenter", () => !this.dragging && this.host.point(this.row, i));
    point.addEventListener("click", () => this.host.pin(this.row, i));
    return point;
  }

  query(svg, scene, px, py, ink) {
    const at = scene.at[this.row],
      x = px(at),
      y = py(scene.curve[this.row]);
    const handle = shape(
      "g",
      {
        tabindex: 0,
        role: "slider",
        "aria-label": t("query point"),
        "aria-valuemin": this.scale.low,
        "aria-valuemax": this.scale.high,
        "aria-valuenow": at,
        "data-query": "1",
      },
      shape("line", {
        x1: x,
        x2: x,
        y1: TOP,
        y2: HEIGHT - BOTTOM,
        stroke: ink.mark,
        "stroke-width": 1.2,
        "stroke-dasharray": "2 3",
      }),
      shape("circle", { cx: x, cy: y, r: 8, fill: ink.mark, stroke: ink.paper, "stroke-width": 2 }),
      shape(
        "text",
        {
          class: "halo",
          x: Math.min(this.width - 60, Math.max(LEFT + 40, x)),
          y: TOP - 10,
          "text-anchor": "middle",
        },
        `${at.toFixed(2)} → ${scene.curve[this.row].toFixed(3)}`,
      ),
    );
    handle.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: 1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.ask(at + (step * (this.scale.high - this.scale.low)) / 100);
    });
    svg.append(handle);
  }

  tell(row, column) {
    const { scene } = this.now.one,
      start = this.row * scene.x.length;
    if (column >= scene.x.length) return null;
    const best = strongest(this.now.map.weights, start, scene.x.length, 5);
    return {
      from: `x = ${scene.at[this.row].toFixed(2)}`,
      to: `(${scene.x[column].toFixed(2)}, ${scene.y[column].toFixed(2)})`,
      weight: this.now.map.weights[start + column],
      others: `${t("strongest")}: ${best.map((i) => `x = ${scene.x[i].toFixed(2)} ${written(this.now.map.weights[start + i])}`).join(" · ")}`,
    };
  }

  hint() {
    return t("Drag the query point, or move it by the arrow keys. A datum is as large as its weight there.");
  }
}
