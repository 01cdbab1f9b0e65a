"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const make = (name, ...children) => {
  const element = document.createElement(name);
  element.append(...children);
  return element;
};
const dark = matchMedia("(prefers-color-scheme: dark)");
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const written = (value) => {
  if (Number.isNaN(value)) return "not a number";
  return value !== 0 && Math.abs(value) < 0.0995 ? value.toPrecision(2) : value.toFixed(3);
};

// Weights: 16 bits each between the least and the greatest of all maps; 65535 is not a number.
const decoded = [];
function weights(which) {
  if (which === data.names.length) return mean();
  if (!decoded[which]) {
    const text = atob(data.weights[which]);
    const out = new Float32Array(text.length / 2);
    const step = (data.high - data.low) / 65534;
    for (let i = 0; i < out.length; i++) {
      const steps = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 8);
      out[i] = steps === 65535 ? NaN : data.low + steps * step;
    }
    decoded[which] = out;
  }
  return decoded[which];
}

let meanOfAll;
function mean() {
  if (!meanOfAll) {
    meanOfAll = new Float32Array(weights(0).length);
    data.names.forEach((_, map) => {
      const values = weights(map);
      for (let i = 0; i < values.length; i++) meanOfAll[i] += values[i] / data.names.length;
    });
  }
  return meanOfAll;
}

// Where there are too many weights, a cell is the greatest of a block of so many a side.
const block = data.block || 1;
const blocks = (names) => (block === 1 ? names : names.filter((_, i) => i % block === 0).map((name, i) => `${i * block + 1} ${name}`));

// What the weights lie over.
const image = new Image();
if (data.picture) image.src = data.picture;

const several = data.names.length > 1;
const titles = several ? [...data.names, "mean of all"] : data.names;
let which = several ? data.names.length : 0;

// The range of colors: of all maps, or of this one.
function range(values) {
  return at("own").checked ? ownRange(values) : [data.low, data.high];
}

function ownRange(values) {
  let low = 0, high = -Infinity;
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high > low ? high : low + 1];
}

function ramp() {
  const text = dark.matches ? data.rampInTheDark : data.ramp;
  return Array.from({ length: 256 }, (_, i) =>
    [0, 2, 4].map((c) => parseInt(text.slice(6 * i + c, 6 * i + c + 2), 16)));
}

// A map as an image with a pixel for each weight. Over a picture it dims what has none.
function painted(values, [low, high], columns, rows) {
  const canvas = make("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = image.data;
  const colors = ramp();
  const span = high - low;
  for (let i = 0; i < columns * rows; i++) {
    const share = Math.min(1, Math.max(0, (values[i] - low) / span));
    let [r, g, b, a] = [150, 140, 135, 255];
    if (data.picture) [[r, g, b], a] = [data.dim, 255 * data.cover * (1 - (share || 0))];
    else if (!Number.isNaN(share)) [r, g, b] = colors[Math.round(share * 255)];
    pixels[4 * i] = r;
    pixels[4 * i + 1] = g;
    pixels[4 * i + 2] = b;
    pixels[4 * i + 3] = a;
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// Dark or light ink, whichever is easier to read on a color.
function inkOn([r, g, b]) {
  const linear = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return luminance > 0.179 ? "#000" : "#fff";
}

// A word on the color of its weight.
function chip(text, value, [low, high], colors) {
  const share = Math.min(1, Math.max(0, (value - low) / (high - low)));
  const color = Number.isNaN(share) ? [150, 140, 135] : colors[Math.round(share * 255)];
  const span = make("span", text);
  span.style.background = `rgb(${color})`;
  span.style.color = inkOn(color);
  span.title = `${text}: ${written(value)}`;
  return span;
}

function readout(from, to, value, others) {
  const line = make("span", `${from} → ${to} `, make("b", written(value)));
  at("readout").replaceChildren(line, make("br"), make("small", others));
}

function strongest(pairs) {
  const best = pairs.filter(([, value]) => !Number.isNaN(value)).sort((a, b) => b[1] - a[1]);
  return "strongest: " + best.slice(0, 5).map(([name, value]) => `${name} ${written(value)}`).join(" · ");
}

// Rows of queries over columns of keys, or parts over a picture.
function gridView() {
  const [rows, columns] = [blocks(data.rows), blocks(data.columns)];
  const canvas = make("canvas"), mark = make("canvas");
  const sheet = make("div", canvas, mark);
  sheet.className = "sheet";
  at("stage").replaceChildren(sheet);
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  const font = '12px system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
  const picture = data.picture && image;
  let cell, left, top, cursor, labels;

  function layOut() {
    const scale = Number(at("size").value);
    cell = data.picture ? [(scale * 24) / columns.length * data.aspect, (scale * 24) / rows.length] : [scale, scale];
    const context = canvas.getContext("2d");
    context.font = font;
    const short = (text) => {
      let kept = [...text];
      while (kept.length > 1 && context.measureText(kept.join("")).width > 140) kept = kept.slice(0, -1);
      return kept.join("") === text ? text : kept.join("") + "…";
    };
    labels = [rows.map(short), columns.map(short)];
    const widest = (texts) => texts.reduce((most, text) => Math.max(most, context.measureText(text).width), 0);
    left = data.picture ? 1 : widest(labels[0]) + 34;
    top = data.picture ? 1 : widest(labels[1]) + 34;
    const [width, height] = [left + columns.length * cell[0] + 12, top + rows.length * cell[1] + 12];
    const density = Math.min(devicePixelRatio || 1, 12000 / Math.max(width, height));
    for (const one of [canvas, mark]) {
      one.width = Math.ceil(width * density);
      one.height = Math.ceil(height * density);
      one.style.width = width + "px";
      one.style.height = height + "px";
      one.getContext("2d").setTransform(density, 0, 0, density, 0, 0);
    }
  }

  function draw() {
    layOut();
    const values = weights(which);
    const context = canvas.getContext("2d");
    const [width, height] = [columns.length * cell[0], rows.length * cell[1]];
    context.imageSmoothingEnabled = false;
    if (picture) context.drawImage(picture, left, top, width, height);
    context.drawImage(painted(values, range(values), columns.length, rows.length), left, top, width, height);
    context.strokeStyle = colorOf("--line");
    context.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
    canvas.setAttribute("aria-label", `${titles[which]}: ${rows.length} × ${columns.length} weights; arrow keys move`);
    if (!picture) drawLabels(context, width, height);
    drawMark();
  }

  function drawLabels(context, width, height) {
    context.font = font;
    context.fillStyle = colorOf("--ink");
    context.textBaseline = "middle";
    const step = cell.map((side) => Math.ceil(14 / side));
    context.textAlign = "right";
    for (let row = 0; row < rows.length; row += step[1]) {
      context.fillText(labels[0][row], left - 6, top + (row + 0.5) * cell[1]);
    }
    for (let column = 0; column < columns.length; column += step[0]) {
      upright(context, labels[1][column], left + (column + 0.5) * cell[0], top - 6, "left");
    }
    context.fillStyle = colorOf("--faint");
    context.textAlign = "center";
    context.fillText(data.columnAxis, left + Math.min(width / 2, 300), 10);
    upright(context, data.rowAxis, 10, top + Math.min(height / 2, 300), "center");
  }

  function upright(context, text, x, y, align) {
    context.save();
    context.translate(x, y);
    context.rotate(-Math.PI / 2);
    context.textAlign = align;
    context.fillText(text, 0, 0);
    context.restore();
  }

  function drawMark() {
    const context = mark.getContext("2d");
    context.clearRect(0, 0, mark.width, mark.height);
    if (!cursor) return;
    const [row, column] = cursor;
    const [x, y] = [left + column * cell[0], top + row * cell[1]];
    context.strokeStyle = colorOf("--mark");
    context.lineWidth = 1.5;
    context.strokeRect(x - 1, y - 1, cell[0] + 2, cell[1] + 2);
    if (!picture) {
      context.globalAlpha = 0.4;
      context.strokeRect(left, y - 0.5, columns.length * cell[0], cell[1] + 1);
      context.strokeRect(x - 0.5, top, cell[0] + 1, rows.length * cell[1]);
      context.globalAlpha = 1;
      markLabels(context, x + cell[0] / 2, y + cell[1] / 2, labels[0][row], labels[1][column]);
    }
    const values = weights(which);
    const start = row * columns.length;
    const name = (i) => (picture ? `row ${Math.floor(i / columns.length) + 1}, column ${(i % columns.length) + 1}` : columns[i - start]);
    const [first, count] = picture ? [0, values.length] : [start, columns.length];
    const pairs = Array.from({ length: count }, (_, i) => [name(first + i), values[first + i]]);
    const place = start + column;
    readout(picture ? titles[which] : rows[row], name(place), values[place], strongest(pairs));
  }

  function markLabels(context, x, y, rowLabel, columnLabel) {
    context.font = "bold " + font;
    context.textBaseline = "middle";
    context.fillStyle = colorOf("--paper");
    context.fillRect(18, y - 8, left - 21, 16);
    context.fillRect(x - 8, 18, 16, top - 21);
    context.fillStyle = colorOf("--mark");
    context.textAlign = "right";
    context.fillText(rowLabel, left - 6, y, left - 24);
    upright(context, columnLabel, x, top - 6, "left");
  }

  function move(row, column) {
    const inside = (value, count) => Math.min(count - 1, Math.max(0, value));
    cursor = [inside(row, rows.length), inside(column, columns.length)];
    drawMark();
  }

  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / cell[0]);
    const row = Math.floor((event.clientY - box.top - top) / cell[1]);
    if (row >= 0 && row < rows.length && column >= 0 && column < columns.length) move(row, column);
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    const [row, column] = cursor || [0, -1];
    move(row + step[0], column + step[1]);
  });
  if (block > 1) {
    const hint = `A cell is the greatest of ${block} × ${block} weights. Click one, or press Enter: below are the strongest weights of each of its rows.`;
    at("stage").append(make("p", hint));
    canvas.addEventListener("click", zoom);
    canvas.addEventListener("keydown", (event) => event.key === "Enter" && zoom());
  }

  // The rows of the block under the cursor, each with its strongest columns.
  function zoom() {
    if (!cursor) return;
    const [row] = cursor;
    const colors = ramp();
    const table = make("table");
    const last = Math.min((row + 1) * block, data.rows.length);
    for (let query = row * block; query < last; query++) {
      const cells = strongestOf(query);
      const scale = [Math.min(0, data.low), Math.max(...cells.map(([, value]) => value), 1e-9)];
      const chips = cells.map(([column, value]) => chip(`${data.columns[column]} ${written(value)}`, value, scale, colors));
      table.append(make("tr", make("td", `${query + 1} ${data.rows[query]}`), make("td", ...chips)));
    }
    const heading = make("h2", `${titles[which]}: ${data.rowAxis} ${row * block + 1} to ${last}, the strongest weights of each`);
    at("zoom").replaceChildren(heading, table);
  }

  // [column, weight] of a row, the greatest first; of the mean of all, those of every map.
  function strongestOf(row) {
    const of = (map) => {
      const text = atob(data.strongest[map].slice(8 * data.kept * row, 8 * data.kept * (row + 1)));
      const byte = (at) => text.charCodeAt(at);
      const step = (data.high - data.low) / 65534;
      return Array.from({ length: data.kept }, (_, i) => {
        const at = 6 * i;
        const column = byte(at) + 256 * byte(at + 1) + 65536 * byte(at + 2);
        return [column, data.low + (byte(at + 4) + 256 * byte(at + 5)) * step];
      });
    };
    if (which < data.names.length) return of(which);
    const sums = new Map();
    data.names.forEach((_, map) => of(map).forEach(([column, value]) => sums.set(column, (sums.get(column) || 0) + value / data.names.length)));
    return [...sums].sort((a, b) => b[1] - a[1]).slice(0, data.kept);
  }

  if (picture) {
    picture.addEventListener("load", draw);
  }
  const fitting = Math.min((innerWidth - 260) / columns.length, 680 / rows.length);
  at("size").value = data.picture ? 18 : Math.max(2, Math.min(28, Math.floor(fitting)));
  at("size").addEventListener("input", draw);
  return draw;
}

// A text for each row, every token on the color of its weight.
function textView() {
  at("sizing").hidden = true;
  return function draw() {
    const values = weights(which);
    const [scale, colors] = [range(values), ramp()];
    const texts = data.rows.map((name, row) => {
      const text = make("div", make("h2", `${data.rowAxis} · ${name}`));
      text.className = "text";
      text.dir = "auto";
      data.columns.forEach((token, column) => {
        const value = values[row * data.columns.length + column];
        if (data.spaces[column]) text.append(" ");
        const span = chip(token, value, scale, colors);
        span.addEventListener("mouseenter", () => readout(name, token, value, ""));
        // Without this a line never ends where no space is.
        text.append(span, document.createElement("wbr"));
      });
      return text;
    });
    at("stage").replaceChildren(...texts);
  };
}

// Nodes and edges.
function graphView() {
  at("sizing").hidden = true;
  at("legend").hidden = true;
  const space = "http://www.w3.org/2000/svg";
  const shape = (name, attributes) => {
    const element = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const [width, height, margin] = [900, 640, 26];
  const radius = Math.max(3, Math.min(11, 80 / Math.sqrt(data.nodes.length)));
  const svg = shape("svg", { viewBox: `0 0 ${width + 120} ${height}`, width: width + 120, height });
  const place = (node) => [margin + node.x * (width - 2 * margin), margin + node.y * (height - 2 * margin)];
  const edges = data.edges.map(([from, to], edge) => {
    const [a, b] = [place(data.nodes[from]), place(data.nodes[to])];
    const bend = [(a[0] + b[0]) / 2 + 0.1 * (b[1] - a[1]), (a[1] + b[1]) / 2 - 0.1 * (b[0] - a[0])];
    const d = from === to
      ? `M${a[0] - radius - 3} ${a[1]}a${radius + 3} ${radius + 3} 0 1 1 0 0.01`
      : `M${a}Q${bend} ${b}`;
    const path = shape("path", { d, fill: "none" });
    // A thin edge is hard to hit: what listens is wider, and cannot be seen.
    const target = shape("path", { d, fill: "none", stroke: "transparent", "stroke-width": 9 });
    target.addEventListener("mouseenter", () => {
      readout(data.nodes[from].label, data.nodes[to].label, weights(which)[edge], attended(from));
    });
    svg.append(path, target);
    return path;
  });
  let chosen = data.center;

  function attended(node) {
    const pairs = [];
    data.edges.forEach(([from, to], edge) => {
      if (from === node) pairs.push([data.nodes[to].label, weights(which)[edge]]);
    });
    return strongest(pairs);
  }

  function choose(node) {
    chosen = node;
    const about = data.nodes[node];
    at("readout").replaceChildren(make("b", about.label), about.class ? ` (${about.class})` : "", make("br"), make("small", attended(node)));
    draw();
  }

  data.nodes.forEach((node, index) => {
    const [cx, cy] = place(node);
    const circle = shape("circle", { cx, cy, r: radius, fill: node.color, class: "node", tabindex: 0, "aria-label": node.label });
    circle.addEventListener("mouseenter", () => choose(index));
    circle.addEventListener("focus", () => choose(index));
    svg.append(circle);
    node.circle = circle;
    if (data.nodes.length <= 80) {
      const text = shape("text", { x: cx + radius + 4, y: cy + 4, "font-size": 12, fill: colorOf("--ink"), "pointer-events": "none" });
      text.textContent = node.label;
      svg.append(text);
      node.text = text;
    }
  });
  const classes = make("p", ...data.classes.map(([name, color]) => {
    const swatch = make("i");
    swatch.style.background = color;
    return make("span", swatch, name);
  }));
  classes.className = "classes";
  at("stage").replaceChildren(classes, svg, make("p", "Point at a node or press Tab: its strong edges show whom it attends to. Point at an edge for its weight."));

  function draw() {
    const values = weights(which);
    const [low, high] = range(values);
    edges.forEach((path, edge) => {
      const share = Math.max(0, (values[edge] - low) / (high - low)) || 0;
      const ours = data.edges[edge][0] === chosen;
      path.setAttribute("stroke", colorOf(ours ? "--ink" : "--edge"));
      path.setAttribute("stroke-width", 0.6 + 0.5 * radius * share);
      path.setAttribute("stroke-opacity", (ours ? 0.35 : 0.1) + 0.6 * share);
    });
    data.nodes.forEach((node, index) => {
      node.circle.setAttribute("stroke", colorOf(index === chosen ? "--ink" : node.class ? "--paper" : "--edge"));
      node.circle.setAttribute("stroke-width", index === chosen ? 3 : 1);
      if (node.text) node.text.setAttribute("fill", colorOf("--ink"));
    });
  }
  if (chosen !== null) choose(chosen);
  return draw;
}

// Heads differ in how strongly they attend: over a picture each has its own scale.
at("own").checked = Boolean(data.picture);
const isText = Boolean(data.spaces) && block === 1;
const draw = data.nodes ? graphView() : isText ? textView() : gridView();

function show(map) {
  which = (map + titles.length) % titles.length;
  at("which").value = which;
  [...at("thumbs").children].forEach((button, i) => button.setAttribute("aria-pressed", i === which));
  const [low, high] = range(weights(which));
  at("low").textContent = written(low);
  at("high").textContent = written(high);
  const context = at("ramp").getContext("2d");
  const bar = Float32Array.from({ length: 128 }, (_, i) => i / 127);
  context.clearRect(0, 0, 128, 1);
  context.drawImage(painted(bar, [0, 1], 128, 1), 0, 0);
  draw();
}

// Small pictures of all maps, made one by one so that the page answers meanwhile.
function thumbs() {
  if (!several || data.nodes || isText) return;
  const [columns, rows] = [data.columns, data.rows].map((names) => Math.ceil(names.length / block));
  titles.forEach((title, map) => {
    const small = make("canvas");
    small.width = small.height = 96;
    const button = make("button", small, title);
    button.type = "button";
    button.setAttribute("aria-pressed", map === which);
    button.addEventListener("click", () => show(map));
    at("thumbs").append(button);
    setTimeout(() => {
      const context = small.getContext("2d");
      context.imageSmoothingEnabled = columns > 96;
      if (data.picture) context.drawImage(image, 0, 0, 96, 96);
      const scale = data.picture ? ownRange(weights(map)) : [data.low, data.high];
      context.drawImage(painted(weights(map), scale, columns, rows), 0, 0, 96, 96);
    }, 20 * map);
  });
}

titles.forEach((title, map) => at("which").append(new Option(title, map)));
at("which").addEventListener("change", () => show(Number(at("which").value)));
at("previous").addEventListener("click", () => show(which - 1));
at("next").addEventListener("click", () => show(which + 1));
at("own").addEventListener("change", () => show(which));
dark.addEventListener("change", () => show(which));
document.addEventListener("keydown", (event) => {
  if (event.key === "PageUp" || event.key === "PageDown") {
    event.preventDefault();
    show(which + (event.key === "PageUp" ? -1 : 1));
  }
});
thumbs();
show(which);
