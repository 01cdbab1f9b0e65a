// How weights are drawn in a browser: their colors, a grid of them with labels and a cursor. The
// explorer imports this module; the page that stands alone carries its text. So it imports nothing.

/** @typedef {[number, number, number]} Rgb */
/** @typedef {{ink: string, faint: string, line: string, mark: string, paper: string}} Paper */

const FONT = 'system-ui, "Helvetica Neue", Arial, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
const MISSING = /** @type {Rgb} */ ([150, 140, 135]);

/** How a picture is dimmed where it has no weight. @type {{dim: Rgb, cover: number}} */
export const DIMMED = { dim: [0x70, 0x7d, 0x8c], cover: 0.88 };

/** The heat over a picture: nothing where it has no weight. @type {{heat: Rgb, cover: number}} */
export const HEAT = { heat: [0xff, 0x7a, 0x00], cover: 0.8 };

/** A weight as text, three digits. @param {number} value */
export function written(value) {
  if (Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.0005 || size >= 1e6) return value.toExponential(1);
  return size < 0.0995 ? value.toPrecision(2) : size < 100 ? value.toFixed(3) : value.toFixed(1);
}

// Björn Ottosson's OKLCH as sRGB, what lies outside being cut off.
function oklch(lightness, chroma, hue) {
  const angle = (hue * Math.PI) / 180;
  const [a, b] = [Math.cos(angle) * chroma, Math.sin(angle) * chroma];
  const l = (lightness + 0.39633778 * a + 0.21580376 * b) ** 3;
  const m = (lightness - 0.105561346 * a - 0.06385417 * b) ** 3;
  const s = (lightness - 0.08948418 * a - 1.2914855 * b) ** 3;
  return [
    4.0767417 * l - 3.3077116 * m + 0.23096994 * s,
    -1.268438 * l + 2.6097574 * m - 0.3413194 * s,
    -0.0041960863 * l - 0.7034186 * m + 1.7076147 * s,
  ].map((linear) => {
    const inside = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (inside <= 0.0031308 ? 12.92 * inside : 1.055 * inside ** (1 / 2.4) - 0.055));
  });
}

const ramps = new Map();

/** The colors of weights, in 256 steps from none to the greatest: those of `color.rs`. @param {boolean} dark @returns {Rgb[]} */
export function ramp(dark) {
  if (!ramps.has(dark)) {
    const color = (share) =>
      dark
        ? oklch(0.22 + 0.73 * share, 0.03 + 0.42 * share * (1 - 0.74 * share), 265 - 165 * share)
        : oklch(0.985 - 0.7 * share, 0.004 + 0.4 * share * (1 - 0.74 * share), 222 + 48 * share);
    ramps.set(
      dark,
      Array.from({ length: 256 }, (_, i) => color(i / 255)),
    );
  }
  return ramps.get(dark);
}

/** A color for the name at this place; the first eight are easy to tell apart. @param {number} place @param {boolean} dark */
export function named(place, dark) {
  const hues = [255, 45, 150, 345, 85, 205, 300, 20];
  const lightness = [0.53, 0.56, 0.5, 0.55, 0.53, 0.52, 0.42, 0.4];
  const round = Math.floor(place / 8);
  const light = dark ? 0.72 + 0.04 * ((place % 8) % 3) : lightness[place % 8];
  return `rgb(${oklch(light, 0.15 / (1 + round), hues[place % 8] + 22 * round)})`;
}

/** Dark or light ink, whichever is easier to read on a color. @param {Rgb} color */
export function inkOn(color) {
  const [r, g, b] = color.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

/** The color of a weight within a range. @param {number} value @param {[number, number]} range @param {Rgb[]} colors @returns {Rgb} */
export function colorOf(value, [low, high], colors) {
  const share = (value - low) / (high - low);
  return Number.isNaN(share) ? MISSING : colors[Math.round(255 * Math.min(1, Math.max(0, share)))];
}

/** From zero, or the least where that is below it, to the greatest. @param {ArrayLike<number>} values @returns {[number, number]} */
export function rangeOf(values) {
  let low = 0,
    high = -Infinity;
  for (let i = 0; i < values.length; i++) {
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  return [low, high > low ? high : low + 1];
}

/** The greatest of each block of so many rows and columns. @param {ArrayLike<number>} values */
export function blocksOf(values, rows, columns, block) {
  if (block === 1) return { values, rows, columns };
  const [down, across] = [Math.ceil(rows / block), Math.ceil(columns / block)];
  const out = new Float32Array(down * across).fill(NaN);
  for (let row = 0; row < rows; row++) {
    const start = Math.floor(row / block) * across;
    for (let column = 0; column < columns; column++) {
      const place = start + Math.floor(column / block),
        value = values[row * columns + column];
      if (!(out[place] >= value)) out[place] = Number.isNaN(value) ? out[place] : value;
    }
  }
  return { values: out, rows: down, columns: across };
}

/**
 * Weights as an image with a pixel for each. Over a picture (`cover`) it dims what has none, or heats what has some.
 * @param {ArrayLike<number>} values @param {[number, number]} range
 * @param {{dim?: Rgb, heat?: Rgb, cover: number}} [over]
 */
export function painted(values, range, rows, columns, colors, over) {
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  // A pixel is one number of 32 bits: a map of 500 × 500 is painted in a millisecond.
  const pixels = new Uint32Array(image.data.buffer);
  const packed = ([r, g, b], a = 255) => ((a << 24) | (b << 16) | (g << 8) | r) >>> 0;
  const shade = (share) =>
    over.heat ? packed(over.heat, 255 * over.cover * share) : packed(over.dim, 255 * over.cover * (1 - share));
  const missing = over ? shade(0) : packed(MISSING);
  const table = Uint32Array.from({ length: 256 }, (_, i) => (over ? shade(i / 255) : packed(colors[i])));
  const [low, high] = range,
    scale = 255 / (high - low);
  for (let i = 0; i < rows * columns; i++) {
    const step = (values[i] - low) * scale;
    pixels[i] = step >= 0 ? table[step > 255 ? 255 : (step + 0.5) | 0] : step < 0 ? table[0] : missing;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Makes a canvas so many pixels of the page wide and high, and sharp. @param {HTMLCanvasElement} canvas */
export function sized(canvas, width, height) {
  const density = Math.min(globalThis.devicePixelRatio || 1, 12000 / Math.max(width, height, 1));
  canvas.width = Math.ceil(width * density);
  canvas.height = Math.ceil(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}

/** A text that is at most so wide, its end left out where it must be. @param {CanvasRenderingContext2D} context */
export function shortened(context, text, most) {
  // A letter is seldom wider than its height: what has few of them fits.
  if (text.length * 13 < most || context.measureText(text).width <= most) return text;
  const letters = [...text];
  let [low, high] = [1, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(letters.slice(0, middle).join("") + "…").width <= most) low = middle;
    else high = middle - 1;
  }
  return letters.slice(0, low).join("") + "…";
}

const IDEOGRAPHS = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]+$/u;

/**
 * A text that runs upward; Chinese is not turned, its characters stand one under the other.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} x @param {number} y
 * @param {CanvasTextAlign} align where in the text y is: at its begin (left), its middle or its end
 */
export function upright(context, text, x, y, align) {
  context.save();
  if (IDEOGRAPHS.test(text)) {
    const letters = [...text],
      size = 12,
      above = { left: 1, center: 0.5 }[align] ?? 0,
      top = y - above * letters.length * size;
    context.textAlign = "center";
    context.textBaseline = "middle";
    letters.forEach((letter, i) => context.fillText(letter, x, top + (i + 0.5) * size));
    context.restore();
    return;
  }
  context.translate(x, y);
  context.rotate(-Math.PI / 2);
  context.textAlign = align;
  context.fillText(text, 0, 0);
  context.restore();
}

/**
 * Rows of queries over columns of keys: a canvas of cells with labels, and one above it for the cursor.
 *
 * @typedef {{rows: string[], columns: string[], rowAxis: string, columnAxis: string,
 *   values: ArrayLike<number>, range: [number, number], colors: Rgb[], paper: Paper,
 *   cell: [number, number], bare?: boolean, picture?: CanvasImageSource,
 *   over?: {dim?: Rgb, heat?: Rgb, cover: number}, masked?: ArrayLike<number>, labelWidth?: number, marks?: {row: number | null, column: number | null, sign: string}[]}} Grid
 */
export class Sheet {
  /** @param {(row: number, column: number) => void} moved the cursor is at another cell */
  constructor(moved) {
    this.canvas = document.createElement("canvas");
    this.cursorCanvas = document.createElement("canvas");
    this.element = document.createElement("div");
    this.element.className = "sheet";
    this.element.append(this.canvas, this.cursorCanvas);
    this.cursor = /** @type {[number, number] | null} */ (null);
    this.moved = moved;
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    const point = (event) => {
      const place = this.cellAt(event);
      if (place) this.move(...place);
    };
    this.canvas.addEventListener("pointermove", point);
    this.canvas.addEventListener("pointerdown", point);
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      const [row, column] = this.cursor || [0, -1];
      this.move(row + step[0], column + step[1]);
    });
  }

  /** The cell under the pointer. @param {PointerEvent | MouseEvent} event @returns {[number, number] | null} */
  cellAt(event) {
    const box = this.canvas.getBoundingClientRect(),
      grid = this.grid;
    if (!grid) return null;
    const column = Math.floor((event.clientX - box.left - this.left) / grid.cell[0]);
    const row = Math.floor((event.clientY - box.top - this.top) / grid.cell[1]);
    return row >= 0 && row < grid.rows.length && column >= 0 && column < grid.columns.length ? [row, column] : null;
  }

  move(row, column) {
    const inside = (value, count) => Math.min(count - 1, Math.max(0, value));
    const next = [inside(row, this.grid.rows.length), inside(column, this.grid.columns.length)];
    if (this.cursor && next[0] === this.cursor[0] && next[1] === this.cursor[1]) return;
    this.cursor = /** @type {[number, number]} */ (next);
    this.drawCursor();
    this.moved(next[0], next[1]);
  }

  /** @param {Grid} grid */
  draw(grid) {
    this.grid = grid;
    const { rows, columns, cell } = grid;
    const measure = this.canvas.getContext("2d");
    measure.font = `12px ${FONT}`;
    const most = grid.labelWidth || 140;
    this.labels = grid.bare
      ? [[], []]
      : [rows, columns].map((names) => names.map((name) => shortened(measure, name, most)));
    const widest = (texts) => texts.reduce((most, text) => Math.max(most, measure.measureText(text).width), 0);
    this.left = grid.bare ? 1 : Math.ceil(widest(this.labels[0])) + 30;
    this.top = grid.bare ? 1 : Math.ceil(widest(this.labels[1])) + 30;
    const [width, height] = [columns.length * cell[0], rows.length * cell[1]];
    const name = grid.bare ? 0 : measure.measureText(grid.columnAxis).width;
    const size = /** @type {[number, number]} */ ([this.left + Math.max(width, name) + 8, this.top + height + 8]);
    const context = sized(this.canvas, ...size);
    sized(this.cursorCanvas, ...size);
    context.imageSmoothingEnabled = false;
    if (grid.picture) context.drawImage(grid.picture, this.left, this.top, width, height);
    context.drawImage(
      painted(grid.values, grid.range, rows.length, columns.length, grid.colors, grid.over),
      this.left,
      this.top,
      width,
      height,
    );
    this.drawMasked(context);
    context.strokeStyle = grid.paper.line;
    context.strokeRect(this.left - 0.5, this.top - 0.5, width + 1, height + 1);
    if (!grid.bare) this.drawLabels(context, width, height);
    this.drawMarks(context);
    if (this.cursor && (this.cursor[0] >= rows.length || this.cursor[1] >= columns.length)) this.cursor = null;
    this.drawCursor();
  }

  // Hatching over what a mask hides: a zero that nobody computed is not a low weight.
  drawMasked(context) {
    const { masked, columns, cell, paper } = this.grid;
    if (!masked || Math.min(...cell) < 3) return;
    context.save();
    context.beginPath();
    for (let i = 0; i < masked.length; i++) {
      if (!masked[i]) continue;
      const [x, y] = [this.left + (i % columns.length) * cell[0], this.top + Math.floor(i / columns.length) * cell[1]];
      context.moveTo(x, y + cell[1]);
      context.lineTo(x + cell[0], y);
      if (Math.min(...cell) < 10) continue;
      context.moveTo(x, y + cell[1] / 2);
      context.lineTo(x + cell[0] / 2, y);
      context.moveTo(x + cell[0] / 2, y + cell[1]);
      context.lineTo(x + cell[0], y + cell[1] / 2);
    }
    context.strokeStyle = paper.faint;
    context.globalAlpha = 0.55;
    context.lineWidth = 0.8;
    context.stroke();
    context.restore();
  }

  drawLabels(context, width, height) {
    const { paper, cell, rowAxis, columnAxis } = this.grid,
      [rows, columns] = this.labels;
    context.font = `12px ${FONT}`;
    context.fillStyle = paper.ink;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const step = cell.map((side) => Math.ceil(14 / side));
    for (let row = 0; row < rows.length; row += step[1])
      context.fillText(rows[row], this.left - 6, this.top + (row + 0.5) * cell[1]);
    for (let column = 0; column < columns.length; column += step[0]) {
      upright(context, columns[column], this.left + (column + 0.5) * cell[0], this.top - 6, "left");
    }
    context.fillStyle = paper.faint;
    context.textAlign = "left";
    context.fillText(columnAxis, this.left, 9);
    upright(context, rowAxis, 9, this.top + Math.min(height, 400), "left");
  }

  // What was forbidden or strengthened: a sign in each of its cells.
  drawMarks(context) {
    const { marks = [], rows, columns, cell, values, range, colors } = this.grid;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `bold ${Math.max(8, Math.min(16, cell[0] * 0.7, cell[1] * 0.7))}px ${FONT}`;
    for (const { row, column, sign } of marks) {
      for (let r = row ?? 0; r <= (row ?? rows.length - 1); r++) {
        for (let c = column ?? 0; c <= (column ?? columns.length - 1); c++) {
          context.fillStyle = this.grid.picture
            ? "#fff"
            : inkOn(colorOf(values[r * columns.length + c], range, colors));
          context.fillText(sign, this.left + (c + 0.5) * cell[0], this.top + (r + 0.5) * cell[1]);
        }
      }
    }
  }

  drawCursor() {
    const context = this.cursorCanvas.getContext("2d"),
      { cell, paper, rows, columns, bare } = this.grid;
    context.clearRect(0, 0, this.cursorCanvas.width, this.cursorCanvas.height);
    if (!this.cursor) return;
    const [row, column] = this.cursor;
    const [x, y] = [this.left + column * cell[0], this.top + row * cell[1]];
    context.strokeStyle = paper.mark;
    context.lineWidth = 1.5;
    context.strokeRect(x - 1, y - 1, cell[0] + 2, cell[1] + 2);
    if (bare) return;
    context.globalAlpha = 0.45;
    context.strokeRect(this.left, y - 0.5, columns.length * cell[0], cell[1] + 1);
    context.strokeRect(x - 0.5, this.top, cell[0] + 1, rows.length * cell[1]);
    context.globalAlpha = 1;
    context.font = `bold 12px ${FONT}`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const [middle, center] = [y + cell[1] / 2, x + cell[0] / 2];
    context.fillStyle = paper.paper;
    context.fillRect(18, middle - 8, this.left - 21, 16);
    context.fillRect(center - 8, 18, 16, this.top - 21);
    context.fillStyle = paper.mark;
    context.fillText(this.labels[0][row], this.left - 6, middle, this.left - 24);
    upright(context, this.labels[1][column], center, this.top - 6, "left");
  }
}
