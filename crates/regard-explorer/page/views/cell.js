// Where a cell of a picture lies in the model, and where a changed pair of the model lies in a picture.

import { mapsOf } from "../scene.js";

const placeOf = (one, map) => map.place || mapsOf(one)[0]?.place;

/**
 * A cell of a map as the model calls it; null where it is none of its attention.
 * @param {import("../scene.js").Scene} one @param {import("../scene.js").WeightMap} map
 * @param {number} row @param {number} column @param {{heads: boolean, rows: boolean}} every
 */
export function cellAt(one, map, row, column, every) {
  const place = placeOf(one, map);
  if (!place) return null;
  const { kind } = one.scene;
  if (place.columns_are_layers) {
    if (row < place.row) return null;
    const [layer, head] = every.heads ? [null, null] : [place.layer + column, 0];
    return { site: place.site, layer, head, row: 0, column: row - place.row };
  }
  const heads = every.heads || !map.place;
  const [from, to] =
    kind === "graph"
      ? [Number(one.scene.nodes[row]), Number(one.scene.nodes[column])]
      : kind === "image"
        ? [null, place.column + row * one.scene.columns + column]
        : [place.row + row, place.column + column];
  return {
    site: place.site,
    layer: heads ? null : place.layer,
    head: heads ? null : place.head,
    row: every.rows || kind === "curve" ? null : from,
    column: to,
  };
}

/**
 * The sign of a changed pair and where it stands in a map; null where that does not show it.
 * @param {import("../scene.js").Scene} one @param {import("../scene.js").WeightMap} map @param {any} cell
 */
export function markOf(one, map, cell) {
  const place = placeOf(one, map);
  if (!place || cell.site !== place.site) return null;
  const minus = (value, by) => (value === null ? null : value - by);
  const sign = cell.bias === null ? "×" : cell.bias > 0 ? "+" : "−";
  if (place.columns_are_layers)
    return { row: cell.column + place.row, column: minus(cell.layer, place.layer), sign, cell };
  const isHere =
    !map.place ||
    ((cell.layer === null || cell.layer === place.layer) &&
      (cell.head === null || place.head === null || cell.head === place.head));
  return isHere ? { row: minus(cell.row, place.row), column: minus(cell.column, place.column), sign, cell } : null;
}
