// 2. Look: all heads and one large; lines and weights; measures, rollout, saliency, beam, sound, graph.

import assert from "node:assert/strict";
import { answered, asked, count, inEveryView, isPainted, open, runOf, weights, written } from "./browser.mjs";

const SENTENCE = { kind: "text", text: "the old man sees a well" };

inEveryView("every head of every layer is a small map, and one is large", async (page) => {
  const run = await runOf("label");
  const {
    scenes: [scene],
  } = await asked(run.id, SENTENCE);
  await open(page, { run: run.id, input: SENTENCE });
  const made = (scene.scene.maps.length > 1 ? 1 : 0) + (scene.rollout ? 1 : 0);
  assert.equal(await page.locator(".tile").count(), scene.scene.maps.length + made);
  assert.ok(scene.rollout, "rollout over the layers is there");
  for (const name of ["layer 1, head 2", "rollout"]) {
    const tile = page.getByRole("button", { name, exact: true });
    await tile.click();
    assert.equal(await tile.getAttribute("aria-pressed"), "true");
    assert.equal(await page.locator("#map-name").innerText(), name);
  }
  assert.ok(await isPainted(page, ".tile canvas"));
  await page.locator("body").press("PageUp");
  assert.notEqual(await page.locator("#map-name").innerText(), "rollout");
});

inEveryView("encoder, decoder and what lies between them are scenes, each with all its heads", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate-heads");
  const { scenes } = await asked(run.id, SENTENCE);
  assert.deepEqual(
    scenes.map(({ name }) => name),
    ["alignment", "encoder", "decoder"],
  );
  await open(page, { run: run.id, input: SENTENCE });
  for (const { name, scene, rollout } of scenes) {
    await page.getByRole("radio", { name, exact: true }).click();
    assert.ok(scene.maps.length >= 4, `${name} has layers and heads`);
    assert.equal(await page.locator(".tile").count(), scene.maps.length + 1 + (rollout ? 1 : 0), name);
    const surface = (await page.locator(".stage .bands").count()) ? ".stage .bands" : ".stage .sheet canvas";
    assert.ok(await isPainted(page, surface), name);
  }
  // What is not yet written is not seen: a row is the word that is written, over those before it.
  await page.getByRole("button", { name: "layer 1, head 1", exact: true }).click();
  await page.getByRole("radio", { name: "Table" }).click();
  const rows = await page
    .locator(".numbers tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent))));
  assert.ok(rows.length > 2);
  rows.forEach((row, i) => assert.ok(row.every((weight, j) => j <= i || weight === 0)));
  const heads = await page.locator(".numbers thead th").allInnerTexts();
  assert.equal(heads[1], "<start>");
});

inEveryView("pointing at a cell says its weight, by mouse, by finger and by keys", async (page, { width }) => {
  const run = await runOf("label");
  const {
    scenes: [{ scene, measures }],
  } = await asked(run.id, SENTENCE);
  await open(page, { run: run.id, input: SENTENCE, map: 0, look: "matrix" });
  const canvas = page.locator(".stage .sheet canvas").first();
  await canvas.focus();
  for (let i = 0; i < 3; i++) await canvas.press("ArrowRight");
  await canvas.press("ArrowDown");
  const weight = weights(scene.maps[0])[scene.columns.length + 2];
  const readout = page.locator(".readout");
  assert.match(await readout.innerText(), new RegExp(`${scene.rows[1].replace(/\W/g, ".")} → ${scene.columns[2]}`));
  assert.equal(await readout.locator("b").innerText(), written(weight));
  // By pointer, the cell at the lower right end.
  const box = await canvas.boundingBox();
  const corner = { position: { x: box.width - 14, y: box.height - 14 } };
  await (width < 500 ? canvas.tap(corner) : canvas.hover(corner));
  assert.equal(await readout.locator("b").innerText(), written(weights(scene.maps[0]).at(-1)));
  const shown = await page.locator(".measures").innerText();
  assert.match(shown, new RegExp(`entropy ${written(measures[0].entropy).replace(".", "\\.")}`));
});

inEveryView("lines run from a token to those it attends to", async (page) => {
  const run = await runOf("translate");
  await open(page, { run: run.id, look: "lines" });
  const canvas = page.locator(".stage .sheet canvas");
  assert.ok(await isPainted(page, ".stage .sheet canvas"));
  await canvas.focus();
  await canvas.press("ArrowDown");
  assert.match(await page.locator(".readout").innerText(), /→ .* \d/);
  const before = await page.locator(".readout").innerText();
  await canvas.press("ArrowRight");
  await canvas.press("ArrowDown");
  assert.notEqual(await page.locator(".readout").innerText(), before);
});

inEveryView("every map is a table too, with the same numbers", async (page) => {
  const run = await runOf("translate");
  const {
    scenes: [{ scene }],
  } = await asked(run.id, SENTENCE);
  await open(page, { run: run.id, input: SENTENCE, look: "table", map: 0 });
  const rows = await page
    .locator(".numbers tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
  const numbers = weights(scene.maps[0]),
    columns = scene.columns.length;
  assert.deepEqual(
    rows,
    scene.rows.slice(0, 60).map((_, r) => scene.columns.slice(0, 60).map((_, c) => written(numbers[r * columns + c]))),
  );
  for (const task of ["graph", "image", "regress", "transcribe"]) {
    const other = await runOf(task);
    await open(page, { run: other.id, look: "table" });
    assert.ok((await page.locator(".numbers tbody tr").count()) > 0, `${task} has a table`);
  }
});

inEveryView("saliency stands beside attention, with the warning", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id });
  await page.locator("#saliency summary").click();
  await page.locator("#saliency .tagged").first().waitFor();
  assert.match(await page.locator("#saliency").innerText(), /Gradient × input/);
  assert.match(await page.locator("#caution").innerText(), /attention is not an explanation/);
});

inEveryView("each way of telling what matters is tried by taking words away", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id });
  if (!(await page.locator("#saliency[open]").count())) await page.locator("#saliency summary").click();
  const seen = new Set();
  for (const method of ["gradient-input", "integrated-gradients", "attention", "attention-gradient"]) {
    const answer = page.waitForResponse((response) => response.url().endsWith("/api/saliency"));
    if (method !== "gradient-input") await page.locator("#method").selectOption(method);
    if (method !== "gradient-input") assert.equal((await (await answer).json()).method, method);
    const name = await page.locator("#method option:checked").innerText();
    await page.locator("#saliency h2", { hasText: name }).first().waitFor();
    assert.equal(await page.locator("#faithfulness path").count(), 3, "a line for each order");
    seen.add(await page.locator("#saliency .words").first().innerText());
  }
  assert.ok(seen.size >= 3, "other methods, other values");
  await page.locator("#method").selectOption("rollout");
  await page.locator("#saliency p", { hasText: "self-attention" }).waitFor();
  assert.equal(await page.locator("#method").count(), 1, "another can be chosen");
});

inEveryView("the saliency of a picture lies over it, beside the attention", async (page) => {
  for (const task of ["image", "caption"]) {
    const run = await runOf(task);
    await open(page, { run: run.id });
    if (!(await page.locator("#saliency[open]").count())) await page.locator("#saliency summary").click();
    await page.locator("#saliency canvas").nth(1).waitFor();
    assert.equal(await page.locator("#saliency canvas").count(), 2, task);
    assert.ok(await isPainted(page, "#saliency canvas"), task);
  }
});

inEveryView("the beam of a translation is a tree with scores", async (page) => {
  const run = await runOf("translate");
  await open(page, { run: run.id });
  await page.locator("#beam summary").click();
  await page.locator("#beam svg text").first().waitFor();
  const scores = await page.locator("#beam tbody tr td:nth-child(2)").allInnerTexts();
  assert.ok(scores.length > 1);
  assert.deepEqual(
    scores.map(Number),
    scores.map(Number).sort((a, b) => b - a),
    "the best first",
  );
});

inEveryView("a recording plays with the weights moving along", async (page) => {
  const run = await runOf("transcribe");
  await open(page, { run: run.id });
  await page.locator("#play").click();
  const at = () => page.locator(".readout").innerText();
  await page.waitForFunction(() => /→/.test(document.querySelector(".readout").innerText));
  const first = await at();
  await page.waitForFunction((before) => document.querySelector(".readout").innerText !== before, first);
  await page.getByText("▶ Play").waitFor({ timeout: 15000 });
});

inEveryView("a model without attention says so", async (page) => {
  const run = await runOf("translate", (one) => /fixed/.test(one.id));
  const before = await count(page).catch(() => 0);
  assert.equal(before, 0);
  await open(page, { run: run.id });
  assert.match(await page.locator("#blank").innerText(), /attends to nothing/);
  assert.match(await page.locator(".change").innerText(), /no attention that could be changed/);
  const offered = await page.getByRole("radio", { name: "sparsemax" }).count();
  assert.equal(offered, 0, "what would change nothing is not offered");
});

inEveryView("a patch says its weight", async (page) => {
  const run = await runOf("image");
  await open(page, { run: run.id });
  const canvas = page.locator(".stage .sheet canvas").first();
  await canvas.focus();
  await canvas.press("ArrowRight");
  assert.match(await page.locator(".readout").innerText(), /patch 1, 1 \d/);
  await answered(page, () => page.getByLabel("next", { exact: true }).click());
});

inEveryView("several heads are looked at at once, each in its color", async (page) => {
  const run = await runOf("translate", (one) => one.settings["model.decoder"]?.includes("transformer"));
  await open(page, { run: run.id });
  const beside = page.locator(".tile .beside");
  assert.ok((await beside.count()) >= 4);
  await beside.nth(0).click();
  await beside.nth(1).click();
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get("map") === "0,1");
  assert.equal(await page.locator('.tile[data-on="true"]').count(), 2);
  assert.match(await page.locator("#map-name").innerText(), /2 heads/);
  const strokes = await page
    .locator(".bands path")
    .evaluateAll((all) => [...new Set(all.map((one) => getComputedStyle(one).stroke))]);
  assert.equal(strokes.length, 2, strokes.join(" "));
  // What is drawn over the picture is the mean of the two, in a link as well.
  await page.getByRole("radio", { name: "Table" }).click();
  const mean = await page.locator(".numbers tbody").innerText();
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get("look") === "table");
  await page.reload();
  await page.locator(".numbers tbody").waitFor();
  assert.equal(await page.locator(".numbers tbody").innerText(), mean);
  await page.getByRole("radio", { name: "Lines" }).click();
  await beside.nth(1).click();
  await page.waitForFunction(() => new URLSearchParams(location.hash.slice(1)).get("map") === "0");
});
