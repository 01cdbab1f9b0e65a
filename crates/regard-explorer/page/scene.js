// What the scenes of an answer have in common: maps, labels of rows and columns, places in the model.

import { rangeOf } from "./draw.js";
import { t } from "./words.js";

/**
 * @typedef {{site: string, layer: number, head: number | null, row: number, column: number,
 *   columns_are_layers?: boolean}} Place
 * @typedef {{name: string, place: Place | null, fixed?: string, weights: Float32Array, masked?: Uint8Array,
 *   parts?: {weights: Float32Array, color: string, name: string}[]}} WeightMap
 * @typedef {{name: string, scene: any, measures: any[], rollout: WeightMap | null, mean?: WeightMap}} Scene
 * @typedef {{rows: string[], columns: string[], rowAxis: string, columnAxis: string}} Axes
 */

/** @param {Scene} one @returns {WeightMap[]} */
export const mapsOf = (one) => (one.scene.kind === "sound" ? one.scene.weights.maps : one.scene.maps);

/** The rows and columns of the weights, where they are a grid; a graph has edges. @param {Scene} one @returns {Axes | null} */
export function axesOf(one) {
  const scene = one.scene,
    count = (n) => Array.from({ length: n }, (_, i) => String(i + 1));
  switch (scene.kind) {
    case "maps":
      return grid(scene);
    case "sound":
      return grid(scene.weights);
    case "image":
      return {
        rows: count(scene.rows),
        columns: count(scene.columns),
        rowAxis: t("patch row"),
        columnAxis: t("patch column"),
      };
    case "curve":
      return {
        rows: scene.at.map(short),
        columns: scene.x.map(short),
        rowAxis: t("x asked for"),
        columnAxis: t("x of the datum"),
      };
    default:
      return null;
  }
}

const short = (value) => Number(value).toFixed(2);
const grid = (maps) => ({
  rows: maps.rows,
  columns: maps.maps[0]?.place?.columns_are_layers ? maps.columns.map(mapName) : maps.columns,
  rowAxis: t(maps.row_axis),
  columnAxis: t(maps.column_axis),
});

/** The mean of all maps, made once. @param {Scene} one @returns {WeightMap} */
export function meanOf(one) {
  if (!one.mean) {
    const maps = mapsOf(one);
    const weights = new Float32Array(maps[0].weights.length);
    for (const map of maps) for (let i = 0; i < weights.length; i++) weights[i] += map.weights[i] / maps.length;
    // A mask hides the same pairs in every head.
    one.mean = { name: "mean of all", place: null, weights, masked: maps[0].masked };
  }
  return one.mean;
}

/** What can be chosen in a scene: every map, and what is made of all of them. @param {Scene} one @returns {[string, WeightMap][]} */
export function choices(one) {
  const maps = mapsOf(one);
  const all = maps.map((map, i) => /** @type {[string, WeightMap]} */ ([String(i), map]));
  // Where a map is a word of a sentence, a mean over words says nothing.
  if (maps.length > 1 && maps.some((map) => isHead(map))) all.push(["mean", meanOf(one)]);
  if (one.rollout) all.push(["rollout", one.rollout]);
  return all;
}

/** @param {WeightMap} map */
export const isHead = (map) => /^layer \d+, head \d+$/.test(map.name) || /^head \d+$/.test(map.name);

/** The colors of heads, in the order of their scene. */
const HEAD_COLORS = ["#2f6fd0", "#d9630a", "#1a9850", "#c2328f", "#8a63d2", "#b08a00", "#0e9aa7", "#d0342c", "#6b7c2b", "#7a5c43"];

/** The color of a scene's map. @param {number} place */
export const headColor = (place) => HEAD_COLORS[place % HEAD_COLORS.length];

/** The heads of a choice such as "0,3": their places. @param {string} chosen */
export const headsIn = (chosen) => chosen.split(",").filter((key) => /^\d+$/.test(key));

/**
 * Several heads as one map: their mean, with each in its color beside it; null where fewer are meant.
 * @param {Scene & {several?: Record<string, WeightMap>}} one @param {string} chosen @returns {WeightMap | null}
 */
function severalOf(one, chosen) {
  const maps = mapsOf(one);
  const places = headsIn(chosen).map(Number).filter((place) => place < maps.length);
  if (places.length < 2) return null;
  one.several ??= {};
  if (!one.several[chosen]) {
    const weights = new Float32Array(maps[0].weights.length);
    for (const place of places)
      for (let i = 0; i < weights.length; i++) weights[i] += maps[place].weights[i] / places.length;
    const parts = places.map((place) => ({ weights: maps[place].weights, color: headColor(place), name: maps[place].name }));
    one.several[chosen] = { name: `${places.length} heads`, place: null, weights, parts, masked: maps[0].masked };
  }
  return one.several[chosen];
}

/** The chosen map, or the one to begin with. @param {Scene} one @param {string} chosen @returns {[string, WeightMap] | null} */
export function chosenMap(one, chosen) {
  const all = choices(one);
  const several = chosen.includes(",") && severalOf(one, chosen);
  if (several) return [chosen, several];
  return all.find(([key]) => key === chosen) || all.find(([key]) => key === "mean") || all[0] || null;
}

/** From none to the greatest weight of all maps. @param {Scene & {range?: [number, number]}} one @returns {[number, number]} */
export function rangeOfAll(one) {
  if (!one.range) {
    let [low, high] = [0, -Infinity];
    for (const map of mapsOf(one)) {
      const [from, to] = rangeOf(map.weights);
      [low, high] = [Math.min(low, from), Math.max(high, to)];
    }
    one.range = [low, high > low ? high : low + 1];
  }
  return one.range;
}

/** Layer and head out of a map's place or name; null where it has none, as a hop. @param {WeightMap} map */
export function layerAndHead(map) {
  if (map.place?.site === "hops") return null;
  if (map.place && map.place.head !== null) return [map.place.layer, map.place.head];
  const found = /^layer (\d+), head (\d+)$/.exec(map.name);
  return found ? [Number(found[1]) - 1, Number(found[2]) - 1] : null;
}

/** A map's name in the reader's language. @param {string} name */
export function mapName(name) {
  const found = /^layer (\d+), head (\d+)$/.exec(name);
  if (found) return t("layer {layer}, head {head}", { layer: found[1], head: found[2] });
  const [, what, number] = /^(head|layer|hop) (\d+)$/.exec(name) || [];
  if (what === "head") return t("head {head}", { head: number });
  if (what === "layer") return t("layer {layer}", { layer: number });
  const several = /^(\d+) heads$/.exec(name);
  if (several) return t("{n} heads", { n: several[1] });
  return what === "hop" ? t("hop {hop}", { hop: number }) : t(name);
}

/**
 * The strongest of some weights.
 * @param {ArrayLike<number>} weights @param {number} from @param {number} count @param {number} most
 * @returns {number[]} places, the greatest first
 */
export function strongest(weights, from, count, most) {
  const best = [];
  for (let i = 0; i < count; i++) {
    const weight = weights[from + i];
    if (!(weight > 0) && !(weight < 0)) continue;
    if (best.length === most && weight <= weights[from + best[most - 1]]) continue;
    let place = best.length;
    while (place > 0 && weights[from + best[place - 1]] < weight) place--;
    best.splice(place, 0, i);
    if (best.length > most) best.pop();
  }
  return best;
}

/** How many tokens a text has, roughly, for what is laid out by it. @param {Scene} one */
export const sizeOf = (one) => {
  const axes = axesOf(one);
  return axes ? Math.max(axes.rows.length, axes.columns.length) : one.scene.nodes?.length || 0;
};
