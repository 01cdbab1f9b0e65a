// What holds for the page as a whole: every word in both languages, contrast, files, a server that is gone.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import { CHINESE } from "../page/chinese.js";
import { inkOn, ramp } from "../../regard-picture/src/picture/draw.js";
import { differenceOf } from "../page/difference.js";
import { inWords } from "../page/refusals.js";
import { read, written } from "../page/state.js";
import { setLanguage } from "../page/words.js";
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
    for (const [, words] of text.matchAll(/(?<![\w.$])(?:t|phrase)\(\s*"((?:[^"\\]|\\.)*)"/g))
      if (!(words in CHINESE)) lacking.push(`${name}: ${words}`);
    // Words that are chosen by name, and said later: a table's values are all words where its name is one of these.
    for (const [, table, body] of text.matchAll(
      /const (QUESTIONS|LOOKS|SITES|NAMES|SENTENCES|OF_SITE|WHAT|PARTS) = \{([\s\S]*?)\n?\};/g,
    )) {
      const all = [...body.matchAll(/(?:^|[\s,{])(?:[\w-]+|"[^"]+"): "((?:[^"\\]|\\.)*)"/g)].map(([, words]) => words);
      assert.ok(all.length > 0, `${name}: ${table}`);
      lacking.push(...all.filter((words) => !(words in CHINESE)).map((words) => `${name}, ${table}: ${words}`));
    }
  }
  assert.deepEqual(lacking, []);
});

/** The texts of a Rust source outside of its tests; what runs over several lines joined. */
const texts = (source) =>
  [...source.matchAll(/"((?:[^"\\]|\\[\s\S])*)"/g)].map(([, text]) =>
    text.replace(/\\\n\s*/g, "").replace(/\\"/g, '"'),
  );

/** What stands in the parentheses that open at a place; those within a text are none. */
function inside(source, from) {
  let depth = 0;
  for (const { 0: found, index } of source.slice(from).matchAll(/"(?:[^"\\]|\\[\s\S])*"|[()]/g)) {
    if (found === "(") depth++;
    if (found === ")") depth--;
    if (!depth) return source.slice(from, from + index + 1);
  }
  return "";
}

test("every refusal that the server can say is there in Chinese", async () => {
  const folder = new URL("../src/", import.meta.url);
  const lacking = [];
  let found = 0;
  setLanguage("zh");
  // What only other programs ask has no page.
  for (const name of (await fs.readdir(folder)).filter((one) => /\.rs$/.test(one) && !/^(predict|form)\.rs$/.test(one))) {
    const source = (await fs.readFile(new URL(name, folder), "utf8")).split("#[cfg(test)]")[0];
    for (const call of source.matchAll(/(?:Refusal|Self)::(?:bad|not_found|too_large|new)(?=\()/g)) {
      const own = inside(source, call.index + call[0].length);
      let said = texts(own);
      // The sentence was made before.
      if (!said.length && /\bwhat\b/.test(own))
        said = texts(source.slice(source.lastIndexOf("let what =", call.index), call.index));
      for (const sentence of said.filter((one) => / /.test(one))) {
        found++;
        const filled = sentence.replace(/\{\{/g, "(").replace(/\}\}/g, ")").replace(/\{[^}]*\}/g, "7");
        if (!/\p{Script=Han}/u.test(inWords(filled))) lacking.push(`${name}: ${filled}`);
      }
    }
  }
  setLanguage("en");
  assert.ok(found > 30, `${found} refusals`);
  assert.deepEqual(lacking, []);
});

test("what a task is, is said in Chinese", async () => {
  let tasks = 0;
  const folder = new URL("../../regard-tasks/src/tasks/", import.meta.url);
  for (const name of await fs.readdir(folder)) {
    const source = await fs.readFile(new URL(`${name}/mod.rs`, folder), "utf8").catch(() => "");
    const about = /fn about\(&self\) -> &'static str \{\s*"([^"]*)"/.exec(source)?.[1];
    if (!about) continue;
    tasks++;
    assert.ok(about in CHINESE, about);
  }
  assert.ok(tasks >= 11, `${tasks} tasks`);
});

once("durations and numbers have the units of the language", async (page) => {
  const run = await runOf("label");
  const told = async (lang) => {
    await open(page, { run: run.id, lang });
    return page.evaluate(async () => {
      const { count, duration } = await import("/head.js");
      return [duration(3), duration(600), duration(7200), count(12345), count(2e6)];
    });
  };
  assert.deepEqual(await told("zh"), ["3.0 秒", "10 分钟", "2.0 小时", "1.2 万", "200.0 万"]);
  assert.deepEqual(await told("en"), ["3.0 s", "10 min", "2.0 h", "12 k", "2.0 M"]);
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

test("what in a link has another shape than it should is left out", () => {
  const of = (key, value) => read(`#${new URLSearchParams({ [key]: JSON.stringify(value) })}`)[key];
  const head = { site: "encoder", layer: 0, head: 1 };
  for (const heads of [5, "x", [5], [null], [{ ...head, layer: "one" }], [{ layer: 0, head: 0 }]])
    assert.deepEqual(of("changes", { heads }), {}, JSON.stringify(heads));
  assert.deepEqual(of("changes", { heads: [head], temperature: "hot", window: -1 }), { heads: [head] });
  assert.deepEqual(of("changes", { cells: [{ ...head, row: null, column: 2, bias: "much" }] }), {});
  assert.deepEqual(of("changes", { patches: [{ ...head, what: "output", from: { kind: "text" } }] }), {});
  for (const input of [5, [1], { kind: "point", at: 5 }, { kind: "text" }, { kind: "node", node: "a" }, { kind: "toString" }])
    assert.equal(of("input", input), null, JSON.stringify(input));
  assert.deepEqual(of("input", { kind: "point", at: [0.5] }), { kind: "point", at: [0.5] });
  assert.deepEqual(of("errors", { label: 5, text: "a" }), { text: "a" });
});

once("a link whose changes and point have another shape opens all the same", async (page) => {
  const run = await runOf("regress");
  await open(page, { run: run.id, input: { kind: "point", at: 5 }, changes: { heads: 5 } });
  await page.locator(".stage svg").first().waitFor();
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
      patches: [{ site: "cross", layer: 0, head: 0, what: "output", from: { kind: "text", text: "a" } }],
    },
    scene: 1,
    map: "rollout",
    look: "lines",
    lang: "zh",
    theme: "dark",
    epoch: 7,
    errors: { label: "neg", text: "&" },
    versus: { b: "translate-2", part: "test" },
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
