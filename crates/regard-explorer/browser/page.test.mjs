// What holds for the page as a whole: every word in both languages, contrast, files, a server that is gone.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { CHINESE } from "../page/chinese.js";
import { inkOn, ramp } from "../../regard-picture/src/picture/draw.js";
import { differenceOf } from "../page/difference.js";
import { read, written } from "../page/state.js";
import { ADDRESS, asked, once, open, runOf, state } from "./browser.mjs";

const PAGE = new URL("../page/", import.meta.url);

/** Every file of the page, by its name. */
async function files() {
  const all = await fs.readdir(PAGE, { recursive: true });
  return all.filter((name) => /\.(js|css|html|svg)$/.test(name)).map((name) => name.split(path.sep).join("/"));
}

test("every word of the page is there in Chinese", async () => {
  const lacking = [];
  for (const name of (await files()).filter((one) => one.endsWith(".js") && one !== "chinese.js")) {
    const text = await fs.readFile(new URL(name, PAGE), "utf8");
    for (const [, words] of text.matchAll(/(?<![\w.$])t\("((?:[^"\\]|\\.)*)"/g))
      if (!(words in CHINESE)) lacking.push(`${name}: ${words}`);
  }
  assert.deepEqual(lacking, []);
});

test("what the program calls things is there in Chinese", async () => {
  const lacking = new Set();
  for (const run of (await state()).runs.filter((one) => one.ready)) {
    const { scenes } = await asked(run.id, run.samples[0]);
    for (const { name, scene } of scenes) {
      const grid = scene.weights || scene,
        maps = grid.maps.filter((map) => !/^(layer|head|hop) \d+/.test(map.name));
      const said = [name, grid.row_axis, ...maps.map((map) => map.fixed)];
      // A word of a caption names its map; the question stands over the sentences.
      if (scene.kind !== "image") said.push(...maps.map((map) => map.name));
      if (name !== "sentences") said.push(grid.column_axis);
      said.filter((words) => words && !(words in CHINESE)).forEach((words) => lacking.add(`${run.id}: ${words}`));
    }
  }
  assert.deepEqual([...lacking], []);
});

test("a Chinese text fills in the same names as the English one", () => {
  const names = (text) => [...text.matchAll(/\{\w+\}/g)].map(String).sort();
  for (const [english, chinese] of Object.entries(CHINESE)) assert.deepEqual(names(chinese), names(english), english);
});

test("the program carries every file of the page", async () => {
  for (const name of [...(await files()), "draw.js"]) {
    const response = await fetch(`${ADDRESS}/${name}`);
    assert.equal(response.status, 200, name);
    assert.match(response.headers.get("content-security-policy") || "", /default-src 'self'/);
  }
});

test("text is never markup, and nothing comes from elsewhere", async () => {
  for (const name of await files()) {
    const text = await fs.readFile(new URL(name, PAGE), "utf8");
    assert.doesNotMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function/, name);
    assert.doesNotMatch(text.replaceAll("http://www.w3.org/2000/svg", ""), /https?:\/\//, name);
    assert.doesNotMatch(text, /style="|setAttribute\("style"/, name);
  }
});

/** WCAG 2's contrast of two colors. */
function contrast(a, b) {
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((value) =>
      value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}
const rgb = (hex) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

test("every ink stands out from what is under it by 4.5 to 1", async () => {
  const css = await fs.readFile(new URL("style.css", PAGE), "utf8");
  const themes = [...css.matchAll(/:root(?:\[data-theme="dark"\])? \{([^}]*)\}/g)].slice(0, 2);
  assert.equal(themes.length, 2);
  for (const [, theme] of themes) {
    const color = (name) => rgb(new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(theme)[1]);
    for (const ink of ["ink", "faint", "mark", "accent"])
      for (const under of ["page", "panel", "well"])
        assert.ok(
          contrast(color(ink), color(under)) >= 4.5,
          `${ink} on ${under}: ${contrast(color(ink), color(under))}`,
        );
    for (const [ink, under] of [
      ["added-ink", "added"],
      ["removed-ink", "removed"],
      ["accent-ink", "accent"],
      ["removed-ink", "panel"],
      ["removed-ink", "page"],
      ["added-ink", "panel"],
    ])
      assert.ok(contrast(color(ink), color(under)) >= 4.5, `${ink} on ${under}`);
    // The edge of a control, by which it is found.
    for (const under of ["page", "panel"]) assert.ok(contrast(color("rule"), color(under)) >= 3, `rule on ${under}`);
  }
  for (const dark of [false, true])
    for (const color of ramp(dark))
      assert.ok(contrast(inkOn(color) === "#000" ? [0, 0, 0] : [255, 255, 255], color) >= 4.5, String(color));
});

once("a program that is gone is said to be gone", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id });
  await page.route("**/api/ask", (route) => route.abort());
  await page.locator("#ask textarea").fill("is anyone there");
  await page.getByText("The program does not answer").first().waitFor();
  await page.unroute("**/api/ask");
  await page.locator("#ask textarea").fill("is anyone there now");
  await page.waitForFunction(() => document.querySelector("#notice").hidden);
});

once("a link to a run that is not here opens another, and says so", async (page) => {
  await open(page, { run: "no-such-run" });
  await page.getByText("The link names a run that is not here: no-such-run.").waitFor();
});

once("a link that someone garbled opens all the same", async (page) => {
  const run = await runOf("label");
  await page.goto(`${ADDRESS}/#run=${run.id}&input={broken&changes=[1&scene=-5&map=999&look=nonsense&errors=7&epoch=x`);
  await page.locator(".answer .words").waitFor();
});

test("a view that is written as a link is read as the same view", () => {
  const view = {
    runs: ["translate", "translate-2"],
    tab: "errors",
    input: { kind: "text", text: "a & b = “c” #1 🐦\t?" },
    from: { kind: "example", part: "test", index: 3 },
    changes: {
      temperature: 0.5,
      cells: [{ site: "cross", layer: null, head: null, row: null, column: 5, bias: null }],
    },
    scene: 1,
    map: "rollout",
    look: "lines",
    lang: "zh",
    theme: "dark",
    epoch: 7,
    errors: { label: "neg", text: "&" },
  };
  assert.deepEqual(read(written(view)), view);
  assert.doesNotMatch(written({ ...view, input: { kind: "bytes", name: "a.png", base64: "secret" } }), /secret|bytes/);
});

test("differences are marked word by word, and character by character in Chinese", () => {
  const told = (before, after) =>
    differenceOf(before, after)
      .map(({ kind, text }) => ({ same: "", added: "+", removed: "-" })[kind] + text)
      .join("|");
  assert.equal(told("the old man", "the young man"), "the |-old|+young| man");
  assert.equal(told("我看见一只鸟", "我看见一棵树"), "我看见一|-只鸟|+棵树");
  assert.equal(told("same", "same"), "same");
  assert.equal(told("", "new"), "+new");
});
