// A node and its neighbors; an edge is as wide as its weight. A click on a neighbor walks to it.

import { fill, make, shape } from "../dom.js";
import { named, written } from "../draw.js";
import { set } from "../state.js";
import { isDark, paper } from "../theme.js";
import { t } from "../words.js";

const HEIGHT = 480;

/** The node that is asked about in the middle, the others around it; a whole graph has none. @param {any} scene @param {number} width @returns {[number, number][]} */
function places(scene, width) {
  const center = scene.center ?? -1,
    others = scene.nodes.map((_, i) => i).filter((i) => i !== center);
  const out = /** @type {[number, number][]} */ ([]);
  if (center >= 0) out[center] = [width / 2, HEIGHT / 2];
  const rings = others.length > 40 ? 3 : others.length > 16 ? 2 : 1;
  others.forEach((node, i) => {
    const angle = (2 * Math.PI * i) / others.length - Math.PI / 2,
      share = rings === 1 ? 1 : 0.58 + (0.42 * (i % rings)) / (rings - 1);
    out[node] = [
      width / 2 + Math.cos(angle) * share * (width / 2 - 34),
      HEIGHT / 2 + Math.sin(angle) * share * (HEIGHT / 2 - 40),
    ];
  });
  return out;
}

/** Whether it is a graph as a whole, of which no node is asked about. @param {any} scene */
const isWhole = (scene) => scene.center === null || scene.center === undefined;

/** The first node that a node takes something in from; itself where there is none. @param {any} scene @param {number} node */
const firstOf = (scene, node) => scene.edges.find(([from]) => from === node)?.[1] ?? node;

export class GraphView {
  constructor(host) {
    this.host = host;
    this.classes = make("div", { class: "classes" });
    this.holder = make("div", {});
    this.element = make("div", {}, this.holder, this.classes);
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { scene } = now.one,
      ink = paper(),
      width = Math.min(now.width, 860),
      at = places(scene, width);
    const radius = scene.nodes.length > 40 ? 7 : 11;
    const svg = shape("svg", {
      class: "drawing",
      viewBox: `0 0 ${width} ${HEIGHT}`,
      width,
      height: HEIGHT,
      role: "group",
      "aria-label": isWhole(scene)
        ? t("A graph and its edges; as numbers under “Table”")
        : t("Node {node} and its neighbors; as numbers under “Table”", { node: scene.nodes[scene.center] }),
    });
    const marks = this.host.marks();
    scene.edges.forEach(([from, to], edge) => this.edge(svg, at, [from, to], edge, radius, ink, marks));
    scene.nodes.forEach((label, node) => this.node(svg, at, node, label, radius, ink));
    const focused = /** @type {any} */ (document.activeElement)?.dataset?.node;
    fill(this.holder, svg);
    if (focused !== undefined && focused !== null)
      /** @type {any} */ (svg.querySelector(`[data-node="${focused}"]`) || svg.querySelector("[data-node]"))?.focus();
    fill(
      this.classes,
      scene.class_names.map((name, i) => {
        const swatch = make("i");
        swatch.style.background = named(i, isDark());
        return make("span", {}, swatch, name);
      }),
    );
  }

  edge(svg, at, [from, to], edge, radius, ink, marks) {
    const { map, range, one } = this.now;
    const [a, b] = [at[from], at[to]];
    const share = Math.min(1, Math.max(0, (map.weights[edge] - range[0]) / (range[1] - range[0]))) || 0;
    const bend = [(a[0] + b[0]) / 2 + 0.08 * (b[1] - a[1]), (a[1] + b[1]) / 2 - 0.08 * (b[0] - a[0])];
    const d =
      from === to ? `M${a[0] - radius - 4} ${a[1] - 2}a${radius + 5} ${radius + 5} 0 1 1 0 4` : `M${a}Q${bend} ${b}`;
    const ours = isWhole(one.scene) || from === one.scene.center;
    const changed = marks.find(
      ({ cell }) =>
        cell.column === Number(one.scene.nodes[to]) &&
        (cell.row === null || cell.row === Number(one.scene.nodes[from])),
    );
    svg.append(
      shape("path", {
        d,
        fill: "none",
        stroke: changed ? ink.mark : ours ? ink.ink : ink.edge,
        "stroke-width": 0.7 + 6 * share,
        "stroke-opacity": changed ? 0.9 : (ours ? 0.25 : 0.08) + (ours ? 0.6 : 0.3) * share,
        "stroke-dasharray": changed?.sign === "×" ? "4 4" : undefined,
      }),
    );
    // A thin edge is hard to hit: what listens is wider, and cannot be seen.
    const target = shape("path", { d, fill: "none", stroke: "transparent", "stroke-width": 12, "data-edge": edge });
    target.addEventListener("pointerenter", () => this.host.point(from, to));
    target.addEventListener("click", () => this.host.pin(from, to));
    svg.append(target);
  }

  node(svg, at, node, label, radius, ink) {
    const { scene } = this.now.one,
      [cx, cy] = at[node],
      center = node === scene.center,
      walks = !center && !isWhole(scene);
    const kind = scene.classes[node];
    const fillColor = kind === null || kind === undefined ? ink.paper : named(kind, isDark());
    const name = `${t("node {node}", { node: label })}${kind !== null && kind !== undefined ? `, ${scene.class_names[kind]}` : ""}`;
    const group = shape(
      "g",
      {
        class: "node",
        tabindex: 0,
        role: isWhole(scene) ? "img" : "button",
        "aria-label": walks ? t("walk to {name}", { name }) : name,
        "data-node": label,
      },
      shape("circle", {
        cx,
        cy,
        r: center ? radius + 5 : radius,
        fill: fillColor,
        stroke: center ? ink.mark : ink.edge,
        "stroke-width": center ? 3 : 1.2,
      }),
      shape(
        "text",
        { x: cx, y: cy + (center ? radius + 20 : radius + 14), "text-anchor": "middle", class: "halo" },
        label,
      ),
    );
    const walk = () => (walks ? set({ input: { kind: "node", node: Number(label) } }, { push: true }) : undefined);
    group.addEventListener("click", walk);
    group.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      walk();
    });
    // Of a whole graph, what the node itself takes in.
    const show = () => this.host.point(isWhole(scene) ? node : scene.center, isWhole(scene) ? firstOf(scene, node) : node);
    group.addEventListener("pointerenter", show);
    group.addEventListener("focus", show);
    svg.append(group);
  }

  tell(from, to) {
    const { scene } = this.now.one,
      { weights } = this.now.map;
    if (from >= scene.nodes.length || to >= scene.nodes.length) return null;
    const edge = scene.edges.findIndex(([a, b]) => a === from && b === to);
    const own = scene.edges
      .map(([a, b], i) => [a, b, i])
      .filter(([a]) => a === from)
      .sort((a, b) => weights[b[2]] - weights[a[2]])
      .slice(0, 5);
    const others = `${t("strongest")}: ${own.map(([, b, i]) => `${scene.nodes[b]} ${written(weights[i])}`).join(" · ")}`;
    if (edge < 0) return { from: t("node {node}", { node: scene.nodes[to] }), others: "", cell: false };
    return { from: t("node {node}", { node: scene.nodes[from] }), to: scene.nodes[to], weight: weights[edge], others };
  }

  hint() {
    return this.now && isWhole(this.now.one.scene)
      ? t("Click an edge to forbid or strengthen it.")
      : t("Click a neighbor to walk to it; click an edge to forbid or strengthen it.");
  }
}
