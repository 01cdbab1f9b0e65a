// 3. Change, live: normalizer, temperature, window, heads, cells, edges, patches, a word.

import assert from "node:assert/strict";
import { read } from "../page/state.js";
import { answered, asked, inEveryView, open, runOf, state, weights } from "./browser.mjs";

const SENTENCE = { kind: "text", text: "the old man sees a well" };

/** The weights of the first scene as the page would have them. */
const first = (answer) => answer.scenes[0].scene.maps.map((map) => [...weights(map)]);

inEveryView("another normalizer changes the output beside the old one", async (page) => {
  const run = await runOf("translate");
  await open(page, { run: run.id, input: SENTENCE });
  await answered(page, () => page.getByRole("radio", { name: "argmax" }).click());
  assert.match(await page.locator(".answer").innerText(), /Before[\s\S]*After/);
  const changed = await asked(run.id, SENTENCE, { normalizer: "argmax" });
  const shown = await page.locator(".answer .two .output").allInnerTexts();
  assert.deepEqual(
    shown.map((text) => text.trim()),
    [changed.before.output, changed.prediction.output].map((text) => text.trim() || "(nothing)"),
  );
  const differs = changed.before.output !== changed.prediction.output;
  assert.equal((await page.locator(".answer ins, .answer del").count()) > 0, differs, "differences are marked");
  await answered(page, () => page.locator("#undo").click());
  assert.equal(await page.locator(".answer .two").count(), 0);
});

inEveryView("the temperature flattens the weights, by keys alone", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE, look: "table", map: 0 });
  const greatest = () =>
    page.locator(".numbers td").evaluateAll((all) => Math.max(...all.map((cell) => Number(cell.textContent))));
  const before = await greatest();
  const slider = page.getByLabel("Temperature of the attention");
  await slider.focus();
  await answered(page, () => slider.press("End"));
  assert.ok((await greatest()) < before);
  assert.equal(
    await page.evaluate(() => document.activeElement.getAttribute("aria-label")),
    "Temperature of the attention",
    "the focus stays",
  );
});

inEveryView("a window hides what is farther away", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE, look: "table", map: 0 });
  await answered(page, () => page.getByLabel("only so many on each side:").check());
  await answered(page, () => page.getByLabel("Window", { exact: true }).fill("1"));
  const rows = await page
    .locator(".numbers tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => Number(cell.textContent))));
  rows.forEach((row, i) =>
    row.forEach((weight, j) => Math.abs(i - j) > 1 && assert.equal(weight, 0, `row ${i} sees column ${j}`)),
  );
});

inEveryView("a head that is switched off attends to nothing", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE, look: "table", map: 1 });
  await answered(page, () => page.getByRole("button", { name: "switch layer 1, head 2 off" }).click());
  assert.match(await page.locator(".change li").innerText(), /layer 1, head 2/);
  assert.match(await page.locator(".answer").innerText(), /Before[\s\S]*After/);
  await answered(page, () => page.locator(".change li button").click());
  assert.equal(await page.locator(".change li").count(), 0);
});

inEveryView("a cell that is forbidden has no weight, one that is strengthened has more", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE, look: "matrix", map: 0 });
  const canvas = page.locator(".stage .sheet canvas").first();
  await canvas.focus();
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "Enter"]) await canvas.press(key);
  const weight = async () => Number(await page.locator(".readout b").innerText());
  const before = await weight();
  assert.ok(before > 0);
  await answered(page, () => page.getByRole("button", { name: "Strengthen" }).click());
  const stronger = await weight();
  assert.ok(stronger > before, `${stronger} is more than ${before}`);
  await answered(page, () => page.getByRole("button", { name: "Forbid" }).click());
  assert.equal(await weight(), 0);
  await answered(page, () => page.getByRole("button", { name: "As it was" }).click());
  assert.equal(await weight(), before);
  // The same by one key.
  await canvas.focus();
  await answered(page, () => canvas.press("x"));
  assert.equal(await weight(), 0);
});

inEveryView("a sentence is forbidden in a hop, where sentences stand over hops", async (page) => {
  const run = await runOf("answer", (one) => one.id === "answer");
  await open(page, { run: run.id, look: "matrix" });
  const canvas = page.locator(".stage .sheet canvas").first();
  await canvas.focus();
  for (const key of ["ArrowRight", "ArrowDown", "Enter"]) await canvas.press(key);
  await answered(page, () => page.getByRole("button", { name: "Forbid" }).click());
  assert.equal(Number(await page.locator(".readout b").innerText()), 0);
  assert.match(await page.locator(".answer").innerText(), /Before[\s\S]*After/);
  const { scenes } = await asked(
    run.id,
    { kind: "example", part: "validation", index: 0 },
    JSON.parse(new URLSearchParams(new URL(page.url()).hash.slice(1)).get("changes")),
  );
  // The hops beside it say the same: the second sentence of the first hop weighs nothing.
  const hops = scenes.find(({ name }) => name === "hops").scene.maps;
  assert.equal(weights(hops[0])[1], 0);
  await answered(page, () => page.getByRole("radio", { name: "argmax" }).click());
  const shown = await page.locator(".stage .legend").innerText();
  assert.match(shown, /1\.000/);
});

inEveryView("a reader's sentences say why they cannot be changed, and its attention can be", async (page) => {
  const run = await runOf("answer", (one) => one.id === "reader");
  await open(page, { run: run.id });
  assert.match(await page.locator("#fixed").innerText(), /reader's output/);
  await page.getByRole("radio", { name: "question", exact: true }).click();
  assert.equal(await page.locator("#fixed").count(), 0);
  await page.getByRole("radio", { name: "Matrix" }).click();
  const canvas = page.locator(".stage .sheet canvas").first();
  await canvas.focus();
  for (const key of ["ArrowRight", "Enter"]) await canvas.press(key);
  await answered(page, () => page.getByRole("button", { name: "Forbid" }).click());
  assert.equal(Number(await page.locator(".readout b").innerText()), 0);
});

inEveryView("an edge is forbidden, and the node is judged without it", async (page) => {
  const run = await runOf("graph");
  await open(page, { run: run.id, look: "graph" });
  const center = await page.locator(".stage .node:not([aria-label^='walk'])").getAttribute("data-node");
  const {
    scenes: [{ scene }],
  } = await asked(run.id, { kind: "node", node: Number(center) });
  const edge = scene.edges.findIndex(([from, to]) => from === (scene.center ?? 0) && to !== from);
  await page.locator(`[data-edge="${edge}"]`).dispatchEvent("click");
  await answered(page, () => page.getByRole("button", { name: "Forbid" }).click());
  assert.match(
    await page.locator(".change li").innerText(),
    new RegExp(`${center} → ${scene.nodes[scene.edges[edge][1]]}`),
  );
  assert.equal(Number(await page.locator(".readout b").innerText()), 0);
});

inEveryView("a patch is forbidden, and the picture is judged without it", async (page) => {
  const run = await runOf("image");
  await open(page, { run: run.id });
  const canvas = page.locator(".stage .sheet canvas").first();
  await canvas.focus();
  for (const key of ["ArrowRight", "Enter"]) await canvas.press(key);
  await answered(page, () => page.getByRole("button", { name: "Forbid" }).click());
  assert.equal(Number(await page.locator(".readout b").innerText()), 0);
  assert.match(await page.locator(".answer").innerText(), /Before[\s\S]*After/);
  // The cursor came in at the first patch and went one to the right, or began there.
  assert.match(await page.locator(".change li").innerText(), /^forbidden: patch 1, [12] · /);
});

inEveryView("a head is taken from another input, by name, and undone; its own changes nothing", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: SENTENCE });
  const other = "a young woman hears the bird";
  await page.getByText("Take a head from another input").click();
  await page.getByLabel("Which head").selectOption({ label: "encoder, layer 1, head 2" });
  await page.getByLabel("Another text").fill(other);
  await answered(page, () => page.getByRole("button", { name: "Put it here" }).click());
  assert.match(
    await page.locator(".change li").innerText(),
    new RegExp(`^encoder, layer 1, head 2: its attention from ${other}`),
  );
  const { changes } = read(new URL(page.url()).hash);
  assert.deepEqual(changes.patches, [
    { site: "encoder", layer: 0, head: 1, what: "attention", from: { kind: "text", text: other } },
  ]);
  // The map of that head is the other sentence's.
  const [patched, there] = await Promise.all([
    asked(run.id, SENTENCE, changes),
    asked(run.id, { kind: "text", text: other }),
  ]);
  const head = (answer) => [...weights(answer.scenes[0].scene.maps[1])];
  head(patched).forEach((weight, i) => assert.ok(Math.abs(weight - head(there)[i]) < 1e-5));
  await answered(page, () => page.locator(".change li button").click());
  assert.equal(await page.locator(".change li").count(), 0);
  await page.getByLabel("Another text").fill(SENTENCE.text);
  await answered(page, () => page.getByRole("button", { name: "Put it here" }).click());
  assert.match(await page.locator("#effect").innerText(), /^No effect/);
});

inEveryView("a word is edited, and the old answer stays beside the new one", async (page) => {
  const run = await runOf("translate");
  await open(page, { run: run.id, input: SENTENCE });
  await page.getByRole("button", { name: "edit the word man" }).click();
  const field = page.getByLabel("Another word for man");
  await field.fill("cat");
  await answered(page, () => field.press("Enter"));
  await page.locator(".answer .two").waitFor();
  assert.equal(await page.locator("#ask textarea").inputValue(), "the old cat sees a well");
  const [old, now] = await Promise.all([
    asked(run.id, SENTENCE),
    asked(run.id, { kind: "text", text: "the old cat sees a well" }),
  ]);
  assert.deepEqual(
    (await page.locator(".answer .two .output").allInnerTexts()).map((text) => text.trim()),
    [old, now].map((answer) => answer.prediction.output.trim() || "(nothing)"),
  );
  await answered(page, () => page.getByRole("button", { name: "Back to the old input" }).click());
  assert.equal(await page.locator("#ask textarea").inputValue(), SENTENCE.text);
});

inEveryView("what is changed is computed by the model, not by the page", async (page) => {
  const run = await runOf("label");
  const plain = await asked(run.id, SENTENCE),
    sparse = await asked(run.id, SENTENCE, { normalizer: "sparsemax" });
  const zeros = (answer) =>
    first(answer)
      .flat()
      .filter((weight) => weight === 0).length;
  assert.ok(zeros(sparse) > zeros(plain), "sparsemax gives exact zeros");
  await open(page, { run: run.id, input: SENTENCE, changes: { normalizer: "sparsemax" }, look: "table", map: 0 });
  const shown = await page.locator(".numbers td").allInnerTexts();
  assert.equal(shown.filter((text) => text === "0").length, first(sparse)[0].filter((weight) => weight === 0).length);
});

inEveryView("what a link changes and the model does not have is said to change nothing", async (page) => {
  const { runs } = await state();
  let tried = 0;
  for (const run of runs.filter((one) => one.ready && !one.training)) {
    const { scenes } = await asked(run.id, run.samples[0]);
    const place = scenes.flatMap(({ scene }) => (scene.weights || scene).maps).find((map) => map.place && map.place.head !== null)?.place;
    if (!place) continue;
    const { site, layer, head } = place;
    const heads = [
      { site, layer, head },
      { site, layer: 77, head },
      { site: site === "encoder" ? "hops" : "encoder", layer: 55, head: 0 },
    ];
    await open(page, { run: run.id, input: run.samples[0], changes: { heads } });
    await page.reload();
    await page.locator(".change li").nth(2).waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".change li .idle").length === 2);
    assert.deepEqual(
      await page.locator(".change li").evaluateAll((all) => all.map((one) => Boolean(one.querySelector(".idle")))),
      [false, true, true],
      run.id,
    );
    tried++;
  }
  assert.ok(tried >= 8, `${tried} runs`);
});
