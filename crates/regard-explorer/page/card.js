// A card to show around: the sentence, the question and its answer, and the view as it is drawn.

import { isPicture } from "./drawn.js";
import { run, session } from "./session.js";
import { paper } from "./theme.js";
import { t } from "./words.js";

const [WIDTH, HEIGHT, EDGE] = [1200, 630, 48];
const FONT = 'system-ui, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';

/**
 * Text in lines, as many as fit; what does not ends in "…".
 * @param {CanvasRenderingContext2D} context @param {string} text @param {[number, number]} at
 * @param {number} width @param {number} most lines @param {number} height of a line
 * @returns {number} where the next thing may stand
 */
function paragraph(context, text, [x, y], width, most, height) {
  // Words, and where there are no spaces the signs themselves.
  const parts = text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}，。：；]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}，。：；]+|\s+/gu) || [];
  const lines = [""];
  for (const part of parts) {
    const next = lines[lines.length - 1] + part;
    if (context.measureText(next.trimEnd()).width <= width) lines[lines.length - 1] = next;
    else lines.push(part.trimStart());
  }
  const shown = lines.slice(0, most);
  if (lines.length > most) {
    let last = shown[most - 1];
    while (last && context.measureText(`${last}…`).width > width) last = [...last].slice(0, -1).join("");
    shown[most - 1] = `${last}…`;
  }
  shown.forEach((line, i) => context.fillText(line, x, y + i * height));
  return y + shown.length * height;
}

/** An SVG as it is seen, its styles written into it. @param {SVGSVGElement} svg @returns {Promise<HTMLImageElement>} */
function imageOf(svg) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const [from, to] = [svg, copy].map((one) => [one, ...one.querySelectorAll("*")]);
  const names = ["fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "fill-opacity", "opacity"];
  const all = [...names, "visibility", "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "paint-order"];
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const name of all) to[i].setAttribute(name, style.getPropertyValue(name));
    to[i].removeAttribute("style");
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  return image.decode().then(() => image);
}

/**
 * Everything that is drawn inside an element, at its place and scaled to fit.
 * @param {CanvasRenderingContext2D} context @param {Element} element @param {DOMRect} room
 */
async function picture(context, element, room) {
  const box = element.getBoundingClientRect();
  const drawn = [...element.querySelectorAll("canvas, svg.drawing")].filter((one) => one.checkVisibility());
  const words = [...element.querySelectorAll(".word, .token, td, th")].filter((one) => one.checkVisibility());
  const all = [...drawn, ...words].map((one) => one.getBoundingClientRect());
  if (!all.length) return;
  const right = Math.max(...all.map((one) => one.right)) - box.left,
    bottom = Math.max(...all.map((one) => one.bottom)) - box.top;
  const scale = Math.min(2.2, room.width / Math.max(1, right), room.height / Math.max(1, bottom));
  const left = room.x + (room.width - right * scale) / 2;
  context.save();
  context.translate(left, room.y + (room.height - bottom * scale) / 2);
  context.scale(scale, scale);
  for (const one of drawn) {
    const at = one.getBoundingClientRect();
    const image = one instanceof SVGSVGElement ? await imageOf(one) : one;
    context.drawImage(/** @type {any} */ (image), at.left - box.left, at.top - box.top, at.width, at.height);
  }
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (const one of words) {
    const at = one.getBoundingClientRect(),
      style = getComputedStyle(one);
    context.font = `${style.fontWeight} ${style.fontSize} ${FONT}`;
    if (style.backgroundColor !== "rgba(0, 0, 0, 0)") {
      context.fillStyle = style.backgroundColor;
      context.fillRect(at.left - box.left, at.top - box.top, at.width, at.height);
    }
    context.fillStyle = style.color;
    context.fillText(one.textContent || "", at.left + at.width / 2 - box.left, at.top + at.height / 2 - box.top);
  }
  context.restore();
}

/** The view as a picture of 1200 × 630 dots, as pages show for a link. @returns {Promise<Blob>} */
export async function card() {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")),
    ink = paper();
  context.fillStyle = ink.paper;
  context.fillRect(0, 0, WIDTH, HEIGHT);
  context.fillStyle = ink.mark;
  context.fillRect(0, 0, 10, HEIGHT);
  context.textBaseline = "top";
  const told = [...(document.querySelector("#told")?.childNodes || [])]
    .filter((one) => !(one instanceof Element && one.classList.contains("hint")))
    .map((one) => one.textContent)
    .join("");
  context.fillStyle = ink.ink;
  context.font = `600 32px ${FONT}`;
  let y = paragraph(context, told, [EDGE, EDGE - 10], WIDTH - 2 * EDGE, 3, 42);
  const output = session.answer?.prediction.output || "";
  context.font = `22px ${FONT}`;
  context.fillStyle = ink.faint;
  if (output && !isPicture(output)) y = paragraph(context, `→ ${output}`, [EDGE, y + 4], WIDTH - 2 * EDGE, 1, 30);
  const body = document.querySelector("#stage-body");
  const room = new DOMRect(EDGE, y + 18, WIDTH - 2 * EDGE, HEIGHT - y - 18 - 58);
  if (body) await picture(context, body, room);
  context.textAlign = "start";
  context.textBaseline = "alphabetic";
  context.font = `18px ${FONT}`;
  context.fillStyle = ink.faint;
  const name = run()?.name || "";
  context.fillText(`regard · ${name} · ${run()?.task || ""}`, EDGE, HEIGHT - 22);
  context.textAlign = "end";
  context.fillText(t("Attention weights say what was read, not why."), WIDTH - EDGE, HEIGHT - 22);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"),
  );
}
