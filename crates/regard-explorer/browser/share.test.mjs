// 7. Share: a view is a link; pictures and a page that stands alone; two languages, keys, both themes.

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import { ADDRESS, answered, inEveryView, once, open, output, runOf } from "./browser.mjs";

const SENTENCE = { kind: "text", text: "the old man sees a well" };

inEveryView("a link restores run, input, changes, map, look and language", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id });
  await answered(page, () => page.locator("#ask textarea").fill(SENTENCE.text));
  await answered(page, () => page.getByRole("radio", { name: "sparsemax" }).click());
  await page.getByRole("button", { name: "layer 1, head 2", exact: true }).click();
  await page.getByRole("radio", { name: "Table" }).click();
  await page.getByRole("button", { name: "中文" }).click();
  const seen = async (of) => [
    await output(of),
    await of.locator("#map-name").innerText(),
    await of.locator(".numbers tbody").innerText(),
    await of.locator("html").getAttribute("lang"),
    await of.locator("#ask textarea").inputValue(),
  ];
  await page.waitForFunction(() => location.hash.includes("lang=zh"));
  const other = await page.context().newPage();
  await other.goto(page.url());
  await other.locator(".numbers tbody").waitFor();
  assert.deepEqual(await seen(other), await seen(page));
  assert.equal(await other.locator("html").getAttribute("lang"), "zh-Hans");
  await other.close();
});

inEveryView("a picture is saved as SVG, PNG and a page that stands alone", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE });
  for (const [item, begins] of [
    ["Save the picture as SVG", /^<svg|^<\?xml/],
    ["Save the picture as PNG", /^.PNG/],
    ["Save a page that stands alone (HTML)", /^<!DOCTYPE html>/],
    ["Save Play as an animation (GIF)", /^GIF89a/],
    ["Save the weights as a table (CSV)", /^map,row,column/],
    ["Save the weights for numpy (NPZ)", /^PK/],
  ]) {
    await page.getByRole("button", { name: "↗ Share" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: item }).click(),
    ]);
    const bytes = await fs.readFile(await download.path());
    assert.match(bytes.subarray(0, 15).toString("latin1"), begins, item);
    assert.ok(bytes.length > 200);
  }
});

once("a head that is chosen is saved alone", async (page) => {
  const run = await runOf("label");
  const lines = async (view) => {
    await page.goto("about:blank");
    await open(page, { run: run.id, input: SENTENCE, ...view });
    await page.getByRole("button", { name: "↗ Share" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Save the weights as a table (CSV)" }).click(),
    ]);
    const text = await fs.readFile(await download.path(), "utf8");
    return [...new Set(text.trim().split("\n").slice(1).map((line) => line.split('"')[1]))];
  };
  assert.deepEqual(await lines({ map: "1" }), ["layer 1, head 2"]);
  assert.ok((await lines({ map: "mean" })).length > 1);
});

once("the page that stands alone draws the same weights", async (page) => {
  const run = await runOf("label");
  const response = await fetch(`${ADDRESS}/api/save`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ run: run.id, input: SENTENCE, changes: null, scene: 0, as: "html" }),
  });
  await page.setContent(await response.text());
  const canvas = page.locator("#stage canvas").first();
  await canvas.focus();
  await canvas.press("ArrowRight");
  assert.match(await page.locator("#readout").innerText(), /→ the 0\.\d+/);
  assert.ok((await page.locator("#thumbs button").count()) > 2);
});

once(
  "the link is copied",
  async (page) => {
    const run = await runOf("label");
    await open(page, { run: run.id, input: SENTENCE });
    await page.getByRole("button", { name: "↗ Share" }).click();
    await page.getByRole("menuitem", { name: "Copy the link of this view" }).click();
    await page.getByText("Link copied.").first().waitFor();
    const link = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(link.startsWith(ADDRESS) && link.includes(run.id) && link.includes("input="));
  },
  { permissions: ["clipboard-read", "clipboard-write"] },
);

inEveryView("the interface is Chinese where that is asked for", async (page) => {
  const run = await runOf("label");
  for (const tab of ["ask", "compare", "training", "errors"]) {
    await open(page, { run: run.id, tab, lang: "zh", input: SENTENCE });
    const words = await page.locator("#tabs button").allInnerTexts();
    assert.deepEqual(words, ["查看与改变", "比较", "训练", "错误", "注意力头"]);
    if (tab === "errors") await page.locator("#matching").waitFor({ timeout: 60000 });
    // What is left in Latin letters are names: of the run, of options, of labels, of measures.
    const text = await page.locator("#panel").innerText();
    assert.match(text, /\p{Script=Han}/u);
    assert.doesNotMatch(
      text,
      /\b(Answer|Change|Point at|Epoch|epoch \d|Sorted|Confusion|Computing|training time|layer \d)\b/,
    );
  }
});

inEveryView("all is reached by keys alone", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE });
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "TEXTAREA");
  await page.keyboard.press("Escape");
  for (const [key, tab] of [
    ["2", "compare"],
    ["3", "training"],
    ["4", "errors"],
    ["1", "ask"],
  ]) {
    await page.keyboard.press(key);
    assert.equal(await page.locator('#tabs [aria-selected="true"]').getAttribute("id"), `tab-${tab}`);
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.locator('#tabs [aria-selected="true"]').focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await page.evaluate(() => document.activeElement.id), "tab-compare");
});

inEveryView("dark and light are chosen against the system too", async (page, { theme }) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE });
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const before = await background();
  const other = theme === "dark" ? "Light colors" : "Dark colors";
  await page.getByRole("button", { name: other }).click();
  assert.notEqual(await background(), before);
  await page.getByRole("button", { name: theme === "dark" ? "Dark colors" : "Light colors" }).click();
  assert.equal(await background(), before);
});

/** The dots of a picture: its size, and how many colors its upper and its lower half have. */
const dots = (page, bytes) =>
  page.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/png;base64,${text}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const colors = (y, height) => {
      const { data } = context.getImageData(0, y, canvas.width, height);
      const all = new Set();
      for (let i = 0; i < data.length; i += 4) all.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
      return all.size;
    };
    return { size: [image.width, image.height], sentence: colors(30, 60), picture: colors(240, 280) };
  }, bytes.toString("base64"));

inEveryView("a card of every kind of view has its sentence and its picture", async (page) => {
  for (const task of ["translate", "label", "image", "graph", "regress", "transcribe", "answer", "classify"]) {
    const run = await runOf(task);
    await open(page, { run: run.id });
    await page.locator("#told").waitFor();
    await page.getByRole("button", { name: "↗ Share" }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Save a card of this view (PNG)" }).click(),
    ]);
    const bytes = await fs.readFile(await download.path());
    if (process.env.REGARD_SHOTS) await fs.writeFile(`${process.env.REGARD_SHOTS}/card-${task}-${page.viewportSize().width}-${await page.evaluate(() => document.documentElement.dataset.theme)}.png`, bytes);
    const seen = await dots(page, bytes);
    assert.deepEqual(seen.size, [1200, 630], task);
    assert.ok(seen.sentence > 4 && seen.picture > 4, `${task}: ${JSON.stringify(seen)}`);
  }
});
