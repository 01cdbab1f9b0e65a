// What the model is asked: text, an example, a file, a node, a point. The controls follow the run.

import { button, fill, make } from "./dom.js";
import { run, session, typed } from "./session.js";
import { set, view } from "./state.js";
import { t } from "./words.js";
import { menu } from "./menu.js";
import { say } from "./share.js";

const PARTS = { train: "training", training: "training", validation: "validation", test: "test" };
const ACCEPT = {
  picture: "image/png,image/jpeg,image/gif,image/bmp,image/webp",
  recording: ".wav,.flac,.mp3,.ogg,.oga,audio/*",
  features: ".npy,.npz,.csv",
  vectors: ".npy,.npz,.csv,.wav,.flac,.mp3,.ogg,.oga",
};

let built = "";

/** The text that stands in the field. */
function textOf() {
  if (view.input?.kind === "text") return view.input.text || "";
  return view.input?.kind === "example" ? typed() : "";
}

/** An input in a few words. @param {any} input */
export function described(input) {
  switch (input?.kind) {
    case "text":
      return input.text.replace("\t", " — ");
    case "example":
      return t("{part} part, number {number}", { part: t(PARTS[input.part] || input.part), number: input.index + 1 });
    case "bytes":
      return input.name;
    case "node":
      return t("node {node}", { node: input.node });
    case "point":
      return `x = ${input.at.join(", ")}`;
    default:
      return "";
  }
}

/** Draws the controls, or only sets what is in them where they are the same. @param {Element} ask */
export function drawInput(ask) {
  const one = run();
  if (!one) return;
  const key = JSON.stringify([one.id, one.ready, one.input.form, document.documentElement.lang]);
  if (built !== key || !ask.firstChild) {
    built = key;
    build(ask, one);
  }
  refresh(one);
}

/** @type {((one: any) => void)[]} */
let refreshers = [];
const refresh = (one) => refreshers.forEach((refresher) => refresher(one));

function build(ask, one) {
  refreshers = [];
  const { form, kinds } = one.input;
  const fields = [];
  if (form === "passage-question") fields.push(...passage());
  else if (kinds.includes("text")) fields.push(sentenceField());
  if (form === "point") fields.push(...points(one));
  if (form === "node") fields.push(nodeField(one));
  if (kinds.includes("bytes")) fields.push(fileField(form));
  if (!fields.length) fields.push(make("div", { class: "field drop inline" }, described(view.input)));
  fill(
    ask,
    make(
      "div",
      { class: "bar" },
      fields,
      kinds.includes("example") && examples(one),
      one.samples.length > 1 && samples(one),
    ),
  );
}

function grow(area) {
  area.style.height = "auto";
  area.style.height = `${Math.max(46, area.scrollHeight + 2)}px`;
}

/** A field for text that asks with every key. */
function textArea(label, read, write) {
  const area = make("textarea", {
    rows: 1,
    "aria-label": label,
    placeholder: label,
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    dir: "auto",
    maxlength: session.limits.characters,
  });
  area.addEventListener("input", () => {
    grow(area);
    write(area.value);
  });
  refreshers.push(() => {
    const text = read();
    if (document.activeElement === area && view.input?.kind === "text") return;
    if (area.value !== text) area.value = text;
    requestAnimationFrame(() => grow(area));
  });
  return area;
}

function sentenceField() {
  const area = textArea(t("Type a sentence"), textOf, (text) =>
    set({ input: { kind: "text", text: text.replace(/\t/g, " ") }, scene: view.scene }),
  );
  return make("div", { class: "field" }, area);
}

function passage() {
  const halves = () => {
    const [text, question = ""] = textOf().split("\t");
    return [text, question];
  };
  const write = (text, question) => set({ input: { kind: "text", text: `${text}\t${question}` } });
  const clean = (text) => text.replace(/\t/g, " ");
  const text = textArea(
    t("Text"),
    () => halves()[0],
    (value) => write(clean(value), question.value),
  );
  const question = textArea(
    t("Question"),
    () => halves()[1],
    (value) => write(text.value, clean(value)),
  );
  return [make("div", { class: "field" }, text), make("div", { class: "field" }, question)];
}

/** A number of the example that was asked. @param {number} place */
function asked(place) {
  const text = view.input?.kind === "example" && typed();
  return text ? Number(text.split(/[\s,]+/)[place]) : undefined;
}

function points(one) {
  const { columns, range } = one.input;
  return columns.map((name, place) => {
    const [low, high] = range[place] || [-1, 1];
    const ask = (value) => {
      const at = columns.map((_, i) => (i === place ? value : (view.input?.at?.[i] ?? asked(i) ?? 0)));
      if (Number.isFinite(value)) set({ input: { kind: "point", at } });
    };
    const span = high - low || 1;
    const slider = make("input", {
      type: "range",
      min: low - 0.1 * span,
      max: high + 0.1 * span,
      step: span / 500,
      "aria-label": name,
      class: "grow",
      oninput: () => ask(Number(slider.value)),
    });
    const number = make("input", {
      type: "number",
      step: "any",
      "aria-label": name,
      oninput: () => number.value !== "" && ask(Number(number.value)),
    });
    refreshers.push(() => {
      const value = view.input?.kind === "point" ? view.input.at?.[place] : asked(place);
      if (value === undefined || !Number.isFinite(value)) return;
      slider.value = String(value);
      if (document.activeElement !== number) number.value = String(Math.round(value * 1000) / 1000);
    });
    return make("div", { class: "field drop inline" }, make("span", {}, `${name} =`), number, slider);
  });
}

function nodeField(one) {
  const most = one.input.nodes - 1;
  const ask = (node) =>
    Number.isFinite(node) &&
    set({ input: { kind: "node", node: Math.min(most, Math.max(0, Math.round(node))) } }, { push: true });
  const number = make("input", {
    type: "number",
    min: 0,
    max: most,
    step: 1,
    "aria-label": t("Node"),
    onchange: () => ask(Number(number.value)),
  });
  refreshers.push(() => {
    if (document.activeElement !== number)
      number.value = String(view.input?.kind === "node" ? view.input.node : (asked(0) ?? ""));
  });
  const step = (by) => () => ask((view.input?.node ?? asked(0) ?? 0) + by);
  return make(
    "div",
    { class: "field drop inline" },
    t("Node"),
    button("‹", step(-1), { "aria-label": t("previous") }),
    number,
    button("›", step(1), { "aria-label": t("next") }),
    button(t("any"), () => ask(Math.random() * most)),
    make("span", { class: "quiet small" }, t("0 to {most}; click a neighbor below to walk to it", { most })),
  );
}

function fileField(form) {
  const input = make("input", {
    type: "file",
    class: "unseen",
    tabindex: -1,
    accept: ACCEPT[form],
    "aria-label": t("File"),
    onchange: () => take(input.files[0]),
  });
  const name = make("span", { class: "quiet grow wrap" });
  refreshers.push(() => {
    name.textContent = view.input ? described(view.input) : "";
  });
  const hint =
    { picture: t("Drop a picture here, or"), recording: t("Drop a recording here, or") }[form] ||
    t("Drop a file here, or");
  return make(
    "div",
    { class: "field drop" },
    make("span", {}, hint),
    button(t("choose a file"), () => input.click()),
    input,
    name,
  );
}

/** @param {ArrayBuffer} bytes */
function base64(bytes) {
  const view8 = new Uint8Array(bytes);
  const native = /** @type {any} */ (view8).toBase64;
  if (native) return native.call(view8);
  let text = "";
  for (let i = 0; i < view8.length; i += 0x8000) text += String.fromCharCode(...view8.subarray(i, i + 0x8000));
  return btoa(text);
}

/** Takes a file as the input. @param {File | undefined} file */
async function take(file) {
  const one = run();
  if (!file || !one) return;
  if (one.input.kinds.includes("bytes")) {
    if (file.size * 1.4 > session.limits.body) return say(t("{name} is too large.", { name: file.name }));
    set(
      { input: { kind: "bytes", name: file.name, base64: base64(await file.arrayBuffer()) }, scene: 0, map: "" },
      { push: true },
    );
  } else if (one.input.kinds.includes("text") && file.size < session.limits.characters * 4) {
    set(
      { input: { kind: "text", text: (await file.text()).trim().slice(0, session.limits.characters) } },
      { push: true },
    );
  } else say(t("This model does not read files."));
}

function examples(one) {
  const part = make(
    "select",
    { "aria-label": t("Part") },
    one.parts.map((name) => make("option", { value: name }, t(PARTS[name] || name))),
  );
  part.value = one.parts.includes("test") ? "test" : one.parts[0];
  const number = make("input", { type: "number", min: 1, step: 1, value: 1, "aria-label": t("Number of the example") });
  const ask = (index) =>
    set({ input: { kind: "example", part: part.value, index: Math.max(0, index) }, from: null }, { push: true });
  const current = () => Math.max(1, Number.parseInt(number.value, 10) || 1) - 1;
  part.addEventListener("change", () => ask(0));
  number.addEventListener("change", () => ask(current()));
  refreshers.push(() => {
    if (view.input?.kind !== "example" || document.activeElement === number) return;
    if (one.parts.includes(view.input.part)) part.value = view.input.part;
    number.value = String((view.input.index || 0) + 1);
  });
  return make(
    "div",
    { class: "examples", role: "group", "aria-label": t("Example of a part") },
    part,
    button("‹", () => ask(current() - 1), { "aria-label": t("previous"), class: "plain" }),
    number,
    button("›", () => ask(view.input?.kind === "example" ? current() + 1 : current()), {
      "aria-label": t("next"),
      class: "plain",
    }),
  );
}

const samples = (one) =>
  menu(t("Samples"), "", () =>
    one.samples.map((input) => [described(input), () => set({ input, from: null }, { push: true })]),
  );

addEventListener("dragover", (event) => {
  if (![...(event.dataTransfer?.types || [])].includes("Files")) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
addEventListener("dragleave", (event) => !event.relatedTarget && document.body.classList.remove("dropping"));
addEventListener("drop", (event) => {
  document.body.classList.remove("dropping");
  if (!event.dataTransfer?.files.length) return;
  event.preventDefault();
  take(event.dataTransfer.files[0]);
});
