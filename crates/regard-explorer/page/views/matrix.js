// A map as a matrix: rows of queries over columns of keys.

import { make } from "../dom.js";
import { Sheet, written } from "../draw.js";
import { mapName, strongest } from "../scene.js";
import { colors, paper } from "../theme.js";
import { t } from "../words.js";

/** "strongest: see 0.61 · bird 0.20" for some weights. */
export function strongestText(weights, from, names, most = 5) {
  const best = strongest(weights, from, names.length, most);
  return best.length
    ? `${t("strongest")}: ${best.map((place) => `${names[place]} ${written(weights[from + place])}`).join(" · ")}`
    : t("nothing is attended to");
}

/** How much of the window is covered by what stays in sight: the bar of changes, on a telephone the answer. */
const covered = () =>
  [...document.querySelectorAll(".ask > .change, .ask > .answer")]
    .filter((one) => getComputedStyle(one).position === "sticky")
    .reduce((sum, one) => sum + /** @type {any} */ (one).offsetHeight + 8, 0);

export class MatrixView {
  constructor(host) {
    this.host = host;
    this.sheet = new Sheet((row, column) => host.point(row, column));
    this.element = make("div", { class: "scroll" }, this.sheet.element);
    this.sheet.canvas.addEventListener("click", (event) => {
      const place = this.sheet.cellAt(event);
      if (place) host.pin(...place);
    });
    this.sheet.canvas.addEventListener(
      "keydown",
      (event) => event.key === "Enter" && this.sheet.cursor && host.pin(...this.sheet.cursor),
    );
  }

  /** @param {any} now */
  draw(now) {
    this.now = now;
    const { axes, width } = now;
    const [rows, columns] = [axes.rows.length, axes.columns.length];
    // Few columns leave room for long names of rows, such as sentences.
    const room = width - 46 - 44 * columns;
    const labelWidth = Math.max(Math.min(140, width * 0.27), Math.min(420, room));
    // Where the columns are few enough to be read each has its name: the map is scrolled on what is narrow.
    const least = columns <= 60 ? 14 : 1.4;
    const across = Math.min(44, Math.max(least, (width - labelWidth - 46) / columns));
    // As high as fits into the window beside what stays in sight, as long as every row can have its name.
    const fits = (innerHeight - covered() - Math.min(140, labelWidth) - 64) / rows;
    const down = rows <= 60 ? Math.max(15, Math.min(36, across, fits)) : across;
    this.sheet.draw({
      rows: axes.rows,
      columns: axes.columns,
      rowAxis: axes.rowAxis,
      columnAxis: axes.columnAxis,
      values: now.map.weights,
      masked: now.map.masked,
      range: now.range,
      colors: colors(),
      paper: paper(),
      cell: [across, down],
      labelWidth,
      marks: this.host.marks(),
    });
    this.sheet.canvas.setAttribute(
      "aria-label",
      t("{name}: {rows} × {columns} weights; arrow keys move, Enter takes a cell; as numbers under “Table”", {
        name: mapName(now.map.name),
        rows,
        columns,
      }),
    );
  }

  tell(row, column) {
    const { axes, map } = this.now;
    if (row >= axes.rows.length || column >= axes.columns.length) return null;
    const start = row * axes.columns.length;
    return {
      from: axes.rows[row],
      to: axes.columns[column],
      weight: map.weights[start + column],
      others: strongestText(map.weights, start, axes.columns),
    };
  }
}
