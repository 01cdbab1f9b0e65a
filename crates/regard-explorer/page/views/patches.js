// A picture as it is, with the heat of its patches' weights over it.

import { make } from "../dom.js";
import { HEAT, written } from "../draw.js";
import { mapName, strongest } from "../scene.js";
import { colors, paper } from "../theme.js";
import { t } from "../words.js";
import { MatrixView } from "./matrix.js";

const pictures = new WeakMap();

/** The pixels of an image scene as a canvas, made once. @param {any} scene @returns {HTMLCanvasElement} */
export function pictureOf(scene) {
  if (!pictures.has(scene)) {
    const { width, height, channels, pixels } = scene;
    const canvas = make("canvas", { width, height });
    const context = canvas.getContext("2d"),
      image = context.createImageData(width, height);
    for (let i = 0; i < width * height; i++) {
      for (let c = 0; c < 3; c++) image.data[4 * i + c] = 255 * pixels[i * channels + (channels === 3 ? c : 0)];
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    pictures.set(scene, canvas);
  }
  return pictures.get(scene);
}

/** A matrix whose cells are patches: pointed at and taken as those are. */
export class PatchesView extends MatrixView {
  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { scene } = now.one;
    const scale = Math.min((now.width - 12) / scene.width, Math.max(280, 0.46 * innerHeight) / scene.height);
    const marks = this.host
      .marks()
      .map((mark) => ({ ...mark, row: Math.floor(mark.column / scene.columns), column: mark.column % scene.columns }));
    this.sheet.draw({
      rows: now.axes.rows,
      columns: now.axes.columns,
      rowAxis: "",
      columnAxis: "",
      values: now.map.weights,
      range: now.range,
      colors: colors(),
      paper: paper(),
      cell: [(scene.width * scale) / scene.columns, (scene.height * scale) / scene.rows],
      bare: true,
      picture: pictureOf(scene),
      over: { ...HEAT, cover: now.cover ?? HEAT.cover },
      marks,
    });
    this.sheet.canvas.setAttribute(
      "aria-label",
      t("{name}: {rows} × {columns} patches; orange ones were attended to; arrow keys move; as numbers under “Table”", {
        name: mapName(now.map.name),
        rows: scene.rows,
        columns: scene.columns,
      }),
    );
  }

  tell(row, column) {
    const { scene } = this.now.one,
      { weights, name } = this.now.map;
    if (row >= scene.rows || column >= scene.columns) return null;
    const patch = (i) =>
      t("patch {row}, {column}", { row: Math.floor(i / scene.columns) + 1, column: (i % scene.columns) + 1 });
    const best = strongest(weights, 0, weights.length, 5);
    return {
      from: mapName(name),
      to: patch(row * scene.columns + column),
      weight: weights[row * scene.columns + column],
      others: `${t("strongest")}: ${best.map((i) => `${patch(i)} ${written(weights[i])}`).join(" · ")}`,
    };
  }

  hint() {
    return t("Orange is what was attended to. Point at a patch for its weight; click it to forbid or strengthen it.");
  }
}
