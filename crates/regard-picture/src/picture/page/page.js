// The page that stands alone. It follows draw.js in one module: what draws is there.
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const make = (name, ...children) => {
  const element = document.createElement(name);
  element.append(...children);
  return element;
};
const dark = matchMedia("(prefers-color-scheme: dark)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const paper = () => ({ ink: css("--ink"), faint: css("--faint"), line: css("--line"), mark: css("--mark"), paper: css("--paper") });
const colors = () => ramp(dark.matches);
const over = data.picture ? DIMMED : undefined;

// Weights: 16 bits each between the least and the greatest of all maps; 65535 is not a number, 65534 is masked.
const decoded = [],
  hidden = [];
const masked = (which) => (weights(which), hidden[which === data.names.length ? 0 : which]);
function weights(which) {
  if (which === data.names.length) return mean();
  if (!decoded[which]) {
    const text = atob(data.weights[which]);
    const out = new Float32Array(text.length / 2);
    const step = (data.high - data.low) / 65533;
    hidden[which] = new Uint8Array(out.length);
    for (let i = 0; i < out.length; i++) {
      const steps = text.charCodeAt(2 * i) | (text.charCodeAt(2 * i + 1) << 8);
      hidden[which][i] = steps === 65534 ? 1 : 0;
      out[i] = steps === 65535 ? NaN : steps === 65534 ? 0 : data.low + steps * step;
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
const range = (values) => (at("own").checked ? rangeOf(values) : [data.low, data.high]);

// A word on the color of its weight.
function chip(text, value, scale, ramp) {
  const color = colorOf(value, scale, ramp);
  const span = make("span", text);
  span.style.background = `rgb(${color})`;
  span.style.color = inkOn(color);
  span.title = `${text}: ${written(value)}`;
  return span;
}

function readout(from, to, value, others) {
  const line = make("span", `${from} → ${to} `, make("b", value === "masked" ? value : written(value)));
  at("readout").replaceChildren(line, make("br"), make("small", others));
}

function strongest(pairs) {
  const best = pairs.filter(([, value]) => !Number.isNaN(value)).sort((a, b) => b[1] - a[1]);
  return "strongest: " + best.slice(0, 5).map(([name, value]) => `${name} ${written(value)}`).join(" · ");
}

// Rows of queries over columns of keys, or parts over a picture.
function gridView() {
  const [rows, columns] = [blocks(data.rows), blocks(data.columns)];
  const sheet = new Sheet(tell);
  at("stage").replaceChildren(sheet.element);
  const name = (i) => (data.picture ? `row ${Math.floor(i / columns.length) + 1}, column ${(i % columns.length) + 1}` : columns[i % columns.length]);

  function draw() {
    const scale = Number(at("size").value);
    const cell = data.picture ? [(scale * 24) / columns.length * data.aspect, (scale * 24) / rows.length] : [scale, scale];
    const values = weights(which);
    sheet.draw({
      rows, columns, rowAxis: data.rowAxis, columnAxis: data.columnAxis, values, range: range(values), colors: colors(), paper: paper(),
      cell, bare: Boolean(data.picture), picture: data.picture && image, over, masked: masked(which),
    });
    sheet.canvas.setAttribute("aria-label", `${titles[which]}: ${rows.length} × ${columns.length} weights; arrow keys move`);
    if (sheet.cursor) tell(...sheet.cursor);
  }

  function tell(row, column) {
    const values = weights(which);
    const start = row * columns.length;
    const [first, count] = data.picture ? [0, values.length] : [start, columns.length];
    const pairs = Array.from({ length: count }, (_, i) => [name(first + i), values[first + i]]);
    const value = masked(which)[start + column] ? "masked" : values[start + column];
    readout(data.picture ? titles[which] : rows[row], name(start + column), value, strongest(pairs));
  }

  if (block > 1) {
    const hint = `A cell is the greatest of ${block} × ${block} weights. Click one, or press Enter: below are the strongest weights of each of its rows.`;
    at("stage").append(make("p", hint));
    sheet.canvas.addEventListener("click", zoom);
    sheet.canvas.addEventListener("keydown", (event) => event.key === "Enter" && zoom());
  }

  // The rows of the block under the cursor, each with its strongest columns.
  function zoom() {
    if (!sheet.cursor) return;
    const [row] = sheet.cursor;
    const table = make("table");
    const last = Math.min((row + 1) * block, data.rows.length);
    for (let query = row * block; query < last; query++) {
      const cells = strongestOf(query);
      const scale = [Math.min(0, data.low), Math.max(...cells.map(([, value]) => value), 1e-9)];
      const chips = cells.map(([column, value]) => chip(`${data.columns[column]} ${written(value)}`, value, scale, colors()));
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
      const step = (data.high - data.low) / 65533;
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

  if (data.picture) image.addEventListener("load", draw);
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
    const [scale, ramp] = [range(values), colors()];
    const texts = data.rows.map((name, row) => {
      const text = make("div", make("h2", `${data.rowAxis} · ${name}`));
      text.className = "text";
      text.dir = "auto";
      data.columns.forEach((token, column) => {
        const value = values[row * data.columns.length + column];
        if (data.spaces[column]) text.append(" ");
        const span = chip(token, value, scale, ramp);
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
      const text = shape("text", { x: cx + radius + 4, y: cy + 4, "font-size": 12, fill: css("--ink"), "pointer-events": "none" });
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
      path.setAttribute("stroke", css(ours ? "--ink" : "--edge"));
      path.setAttribute("stroke-width", 0.6 + 0.5 * radius * share);
      path.setAttribute("stroke-opacity", (ours ? 0.35 : 0.1) + 0.6 * share);
    });
    data.nodes.forEach((node, index) => {
      node.circle.setAttribute("stroke", css(index === chosen ? "--ink" : node.class ? "--paper" : "--edge"));
      node.circle.setAttribute("stroke-width", index === chosen ? 3 : 1);
      if (node.text) node.text.setAttribute("fill", css("--ink"));
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
  context.drawImage(painted(bar, [0, 1], 1, 128, colors(), over), 0, 0);
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
      const scale = data.picture ? rangeOf(weights(map)) : [data.low, data.high];
      context.drawImage(painted(weights(map), scale, rows, columns, colors(), over), 0, 0, 96, 96);
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
