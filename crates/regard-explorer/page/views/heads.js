// All layers and heads as small maps; a click takes one to be looked at, another switches it off.

import { button, fill, make, segmented } from "../dom.js";
import { HEAT, blocksOf, painted, rangeOf } from "../draw.js";
import { about } from "../explain.js";
import { axesOf, choices, headColor, headsIn, layerAndHead, mapName, mapsOf, rangeOfAll } from "../scene.js";
import { run, session } from "../session.js";
import { set, view } from "../state.js";
import { colors } from "../theme.js";
import { t } from "../words.js";
import { pictureOf } from "./patches.js";
import { isOff, toggleHead } from "./change.js";
import { effectOfHead } from "./matters.js";

const SIDE = 72;
// Beyond so many the small maps are drawn a few at a time, so that the page answers meanwhile.
const AT_ONCE = 12;

let drawing = 0;
let tiles = /** @type {Map<string, any>} */ (new Map());
let shape = "";

/** @param {Element} element */
export function drawHeads(element) {
  const scenes = session.answer?.scenes || [];
  const one = scenes[view.scene] || scenes[0];
  if (!one) {
    shape = "";
    return fill(element);
  }
  const all = choices(one);
  const key = JSON.stringify([
    view.runs[0],
    view.scene,
    scenes.map(({ name }) => name),
    all.map(([, map]) => map.name),
    document.documentElement.lang,
    one.scene.kind,
  ]);
  // The same heads again: only their pictures are drawn, so that a key press costs little.
  if (key !== shape || !element.firstChild) {
    shape = key;
    build(element, one, scenes, all);
  }
  mark();
  paint(one, all);
  return undefined;
}

function build(element, one, scenes, all) {
  tiles = new Map();
  const most = Math.max(1, ...mapsOf(one).map((map) => (layerAndHead(map)?.[1] ?? -1) + 1));
  const across = layerAndHead(all[0][1]) ? Math.min(most, 4) : Math.min(all.length, 3);
  const grid = make("div", { class: "tiles", role: "group", "aria-label": t("All maps") });
  grid.style.gridTemplateColumns = `repeat(${all.length === 1 ? 1 : across}, ${SIDE + 8}px)`;
  let layer = "";
  // What is made of all heads stands before them: it is what is looked at first.
  const made = all.filter(([, map]) => !layerAndHead(map)),
    heads = all.filter(([, map]) => layerAndHead(map));
  for (const [key, map] of [...made, ...heads]) {
    const place = layerAndHead(map);
    const name = place ? t("layer {layer}", { layer: place[0] + 1 }) : heads.length ? t("over all") : "";
    // What a head is, is said once.
    if (name !== layer) grid.append(make("div", { class: "layer" }, name, place?.[0] === 0 && about("head")));
    layer = name;
    grid.append(tile(key, map));
  }
  const names = scenes.map(({ name }, i) => /** @type {[string, string]} */ ([String(i), t(name)]));
  // One map alone is looked at large; there is nothing to choose from.
  grid.hidden = all.length === 1;
  element.classList.toggle("alone", all.length === 1);
  fill(
    element,
    scenes.length > 1 &&
      make(
        "div",
        { class: "scenes" },
        segmented(t("Scene"), names, String(Math.min(view.scene, scenes.length - 1)), (value) =>
          set({ scene: Number(value), map: "", look: "" }),
        ),
      ),
    grid,
  );
}

function tile(key, map) {
  const canvas = make("canvas", { "aria-hidden": "true" });
  const place = layerAndHead(map);
  const label = place ? t("head {head}", { head: place[1] + 1 }) : mapName(map.name);
  const pick = button([canvas, label], () => set({ map: key }), {
    class: "pick",
    "aria-label": mapName(map.name),
    title: mapName(map.name),
  });
  const can = map.place && map.place.head !== null && run()?.changes?.heads;
  const off =
    can &&
    button(t("off"), () => toggleHead(map.place), {
      class: "off",
      "aria-label": t("switch {name} off", { name: mapName(map.name) }),
    });
  const bar = make("i", { class: "effect-bar", hidden: true });
  // A head's color is where it is taken beside others.
  const beside =
    place &&
    button("", () => toggleBeside(key), {
      class: "beside",
      "aria-label": t("show {name} beside the others", { name: mapName(map.name) }),
      title: t("show {name} beside the others", { name: mapName(map.name) }),
    });
  if (beside) beside.style.setProperty("--head", headColor(Number(key)));
  const around = make("div", { class: "tile" }, pick, off, beside, bar);
  tiles.set(key, { around, pick, off, beside, bar, canvas, map });
  return around;
}

/** The heads that are looked at together: one that is there goes, another comes. */
function toggleBeside(key) {
  const now = headsIn(view.map);
  const next = now.includes(key) ? now.filter((other) => other !== key) : [...now, key];
  next.sort((a, b) => Number(a) - Number(b));
  set({ map: next.join(",") });
}

/** Which are chosen, and which are switched off. */
function mark() {
  const several = view.map.includes(",") ? headsIn(view.map).filter((key) => tiles.has(key)) : [];
  const one = tiles.has(view.map) ? view.map : tiles.has("mean") ? "mean" : "0";
  const chosen = several.length > 1 ? several : [one];
  for (const [key, { around, pick, off, beside, bar, map }] of tiles) {
    around.dataset.on = String(chosen.includes(key));
    pick.setAttribute("aria-pressed", String(chosen.includes(key)));
    beside?.setAttribute("aria-pressed", String(headsIn(view.map).includes(key)));
    const effect = effectOfHead(map.place);
    bar.hidden = effect === null;
    bar.style.width = `${Math.max(2, 100 * (effect ?? 0))}%`;
    const out = Boolean(off) && isOff(map.place);
    around.dataset.off = String(out);
    if (off) {
      off.setAttribute("aria-pressed", String(out));
      off.textContent = out ? t("is off") : t("off");
    }
  }
}

function paint(one, all) {
  const serial = ++drawing;
  const picture = one.scene.kind === "image" ? pictureOf(one.scene) : null;
  all.slice(0, AT_ONCE).forEach(([key, map]) => paintTile(one, key, map, picture));
  let next = AT_ONCE;
  const more = () => {
    if (serial !== drawing) return;
    all.slice(next, next + AT_ONCE).forEach(([key, map]) => paintTile(one, key, map, picture));
    next += AT_ONCE;
    if (next < all.length) requestAnimationFrame(more);
  };
  if (all.length > AT_ONCE) requestAnimationFrame(more);
}

/** The weights with the data from left to right: they come in any order. */
function inOrder(weights, x) {
  const order = x.map((_, i) => i).sort((a, b) => x[a] - x[b]);
  return weights.map((_, i) => weights[i - (i % x.length) + order[i % x.length]]);
}

function paintTile(one, key, map, picture) {
  const { canvas } = tiles.get(key) || {};
  if (!canvas) return;
  const axes = axesOf(one);
  const [rows, columns] = axes ? [axes.rows.length, axes.columns.length] : [1, map.weights.length];
  const density = Math.min(2, devicePixelRatio || 1);
  const long = columns >= rows;
  const ratio = picture
    ? one.scene.height / one.scene.width
    : Math.min(1.6, Math.max(long ? 0.22 : 0.3, rows / columns));
  canvas.width = SIDE * density;
  canvas.height = Math.round(SIDE * ratio) * density;
  const context = canvas.getContext("2d");
  const weights = one.scene.kind === "curve" ? inOrder(map.weights, one.scene.x) : map.weights;
  const block = Math.max(1, Math.ceil(Math.max(rows / canvas.height, columns / canvas.width)));
  const cells = blocksOf(weights, rows, columns, block);
  const range = picture || key === "rollout" || key === "mean" ? rangeOf(map.weights) : rangeOfAll(one);
  context.imageSmoothingEnabled = false;
  if (picture) context.drawImage(picture, 0, 0, canvas.width, canvas.height);
  const over = picture ? HEAT : undefined;
  context.drawImage(
    painted(cells.values, range, cells.rows, cells.columns, colors(), over),
    0,
    0,
    canvas.width,
    canvas.height,
  );
}
