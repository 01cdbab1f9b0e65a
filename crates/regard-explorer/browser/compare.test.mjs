// 4. Compare: several runs on the same input, side by side.

import assert from "node:assert/strict";
import { asked, inEveryView, judged, once, open, runOf, state, weights, written } from "./browser.mjs";

const SENTENCE = { kind: "text", text: "the old man sees a well" };

inEveryView("the runs of a task answer the same input side by side", async (page) => {
  const { runs } = await state();
  const same = runs.filter((one) => one.task === "translate" && one.ready);
  assert.ok(same.length >= 2, "there are two translators");
  await open(page, { run: same[0].id, tab: "compare", input: SENTENCE });
  await page
    .locator("article .output")
    .nth(same.length - 1)
    .waitFor();
  for (const run of same) {
    const card = page.locator(`article[data-run="${run.id}"]`);
    const { prediction, blank } = await asked(run.id, SENTENCE);
    assert.match(
      (await card.locator(".output").innerText()).replace(/\s/g, ""),
      new RegExp(`^${prediction.output.replace(/\s/g, "").replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`),
    );
    if (blank) assert.match(await card.innerText(), /attends to nothing/);
    else assert.ok((await card.locator("canvas").count()) > 0);
  }
  const heads = await page.locator("table thead th").allInnerTexts();
  assert.deepEqual(
    heads.filter((text) => text),
    same.map((one) => one.name),
  );
  assert.match(await page.locator("table").innerText(), /parameters/);
  const lines = await page.locator('[data-measure="training loss"] svg path').count();
  assert.equal(lines, same.length);
});

inEveryView("another sentence is asked of all", async (page) => {
  const { runs } = await state();
  const same = runs.filter((one) => one.task === "translate" && one.ready);
  await open(page, { run: same.map((one) => one.id), tab: "compare", input: SENTENCE });
  await page
    .locator("article .output")
    .nth(same.length - 1)
    .waitFor();
  await page.locator("#ask textarea").fill("I see a small bird");
  const { prediction } = await asked(same[1].id, { kind: "text", text: "I see a small bird" });
  await page.waitForFunction(
    ([id, text]) =>
      document.querySelector(`article[data-run="${id}"] .output`)?.textContent.replace(/\s/g, "").startsWith(text),
    [same[1].id, prediction.output.replace(/\s/g, "")],
  );
  await page.locator(`article[data-run="${same[1].id}"]`).getByRole("button", { name: "look at it" }).click();
  await page.locator(".ask .stage").waitFor();
  assert.equal(await page.getByLabel("Run", { exact: true }).inputValue(), same[1].id);
});

/** Waits until A and B have answered: their maps, or why there are none. */
const settled = (page) =>
  page.waitForFunction(
    () => {
      const one = document.querySelector("#versus");
      return one && (one.querySelectorAll("canvas[data-map]").length === 3 || one.querySelector("#versus-blank") || one.querySelector(".output .quiet:not(.small)")?.textContent.length > 1);
    },
    null,
    { timeout: 60000 },
  );

/** The number behind each side in the readout. */
const readout = async (page) => {
  const text = await page.locator("#versus-readout").innerText();
  const [, cell, a, b] = /^([\s\S]*?)\s*A\s*(\S+)\s*B\s*(\S+)/.exec(text) || [];
  return { text, cell, a, b };
};

/** The mean of a scene's maps, by names of row and column; none of a name that stands there twice. */
function byName(scene) {
  const maps = scene.maps.map(weights),
    out = new Map();
  scene.rows.forEach((row, r) =>
    scene.columns.forEach((column, c) => {
      const name = `${row} → ${column}`;
      const mean = maps.reduce((sum, map) => sum + map[r * scene.columns.length + c], 0) / maps.length;
      out.set(name, out.has(name) ? null : mean);
    }),
  );
  return out;
}

inEveryView("two maps are laid over each other by their words, with one cursor and their difference", async (page) => {
  const { runs } = await state();
  const [a, b] = ["translate", "translate-heads"].map((id) => runs.find((one) => one.id === id));
  const input = { kind: "text", text: "she is drawing a bird and the old man sees a well" };
  await open(page, { run: [a.id, b.id], tab: "compare", input });
  await settled(page);
  const both = await Promise.all([a, b].map((one) => asked(one.id, input)));
  const [of, others] = both.map(({ scenes }) => byName(scenes.find(({ name }) => name === "alignment").scene));
  const all = page.locator("#versus .row button.small");
  let compared = 0;
  for (let i = 0; i < (await all.count()); i++) {
    await all.nth(i).click();
    const now = await readout(page);
    assert.ok(of.has(now.cell) && others.has(now.cell), `${now.cell}: a difference is of what both have`);
    if (of.get(now.cell) === null || others.get(now.cell) === null) continue;
    compared++;
    assert.equal(now.a, written(of.get(now.cell)), now.cell);
    assert.equal(now.b, written(others.get(now.cell)), now.cell);
    const far = others.get(now.cell) - of.get(now.cell);
    assert.ok(now.text.includes(`${far > 0 ? "+" : "−"}${written(Math.abs(far))}`), now.text);
  }
  assert.ok(compared >= 2, `${compared} cells`);
  // The cell of one is marked in all three, by pointer and by keys.
  const marked = () =>
    page.locator("#versus .sheet canvas:nth-child(2)").evaluateAll((sheets) =>
      sheets.map((one) => {
        const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
        let rows = 0;
        for (let i = 3; i < data.length; i += 4) if (data[i] === 255) rows += (i >> 2) * 7;
        return rows;
      }),
    );
  for (const map of ["a", "b", "difference"]) {
    const canvas = page.locator(`#versus canvas[data-map=${map}]`);
    await canvas.scrollIntoViewIfNeeded();
    await canvas.focus();
    const before = (await readout(page)).text;
    await page.keyboard.press(map === "b" ? "ArrowLeft" : "ArrowRight");
    await page.keyboard.press("ArrowDown");
    assert.notEqual((await readout(page)).text, before, `${map}: the keys move the cursor`);
    const marks = await marked();
    assert.ok(marks[0] > 0 && marks.every((one) => one === marks[0]), `${map}: ${marks}`);
  }
});

inEveryView("a run is compared with itself, changed", async (page) => {
  const run = await runOf("classify");
  const input = run.samples[0],
    changes = { temperature: 0.2 };
  await open(page, { run: run.id, tab: "compare", input, changes, versus: { b: "changed" } });
  await settled(page);
  const sides = await Promise.all([asked(run.id, input), asked(run.id, input, changes)]);
  const row = async (label) => page.locator(`table.sides tr:has(th:text-is("${label}")) td`).allInnerTexts();
  const [label] = Object.keys(sides[0].prediction.details.probabilities).filter((name) => name !== sides[0].truth);
  assert.deepEqual(
    await row(label),
    sides.map(({ prediction }) => written(prediction.details.probabilities[label])),
  );
  for (const [i, side] of ["A", "B"].entries())
    assert.match(await page.locator(`#versus [data-side=${side}]`).innerText(), new RegExp(sides[i].prediction.output));
  // What is expected has its better side in bold, and no other number is.
  const [x, y] = sides.map(({ prediction, truth }) => prediction.details.probabilities[truth]);
  assert.deepEqual(await page.locator("table.sides td b").allInnerTexts(), [written(Math.max(x, y))]);
});

inEveryView("every pair of runs of a task is laid side by side, or says why not", async (page, { width }) => {
  const { runs } = await state();
  let pairs = 0,
    maps = 0;
  for (const a of runs.filter((one) => one.ready && !one.training)) {
    const b = runs.find((one) => one.task === a.task && one.id !== a.id && one.ready && !one.training);
    // What has no second run is compared with itself, changed.
    const with_ = b ? { run: [a.id, b.id] } : { run: a.id, changes: { temperature: 0.5 }, versus: { b: "changed" } };
    await open(page, { ...with_, tab: "compare", input: { kind: "example", part: "validation", index: 1 } });
    await page.reload();
    await settled(page);
    pairs++;
    const told = await page.locator("#versus").innerText();
    assert.doesNotMatch(told, /undefined|NaN|\[object/, a.id);
    if (!(await page.locator("#versus canvas[data-map]").count())) {
      assert.ok((await page.locator("#versus-blank, #versus .output .quiet").first().innerText()).length > 20, a.id);
      continue;
    }
    maps++;
    await page.locator("#versus canvas[data-map=difference]").focus();
    await page.keyboard.press("ArrowRight");
    assert.ok((await readout(page)).a, `${a.id}: ${(await readout(page)).text}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${a.id}: ${over} pixels too wide for ${width}`);
  }
  assert.ok(pairs >= 12 && maps >= 8, `${maps} of ${pairs}`);
});

inEveryView("over a part, what A alone has right is listed, and opens in both", async (page) => {
  const { runs } = await state();
  const run = runs.find((one) => one.id === "classify"),
    changes = { temperature: 0.05 };
  await open(page, { run: run.id, tab: "compare", input: run.samples[0], changes, versus: { b: "changed" } });
  await page.getByRole("button", { name: "Judge A and B" }).click();
  await page.locator("#winners [data-which]").first().waitFor({ timeout: 60000 });
  // Counted anew, from what the model answers to each example.
  const right = { a: new Map(), b: new Map() };
  const part = JSON.parse(new URLSearchParams(page.url().split("#")[1]).get("versus")).part;
  const { examples } = await judged(run.id, part);
  for (const { index } of examples.slice(0, 40)) {
    const input = { kind: "example", part, index };
    for (const [side, change] of Object.entries({ a: null, b: changes })) {
      const { prediction, truth } = await asked(run.id, input, change);
      right[side].set(index, prediction.output === truth);
    }
  }
  const ends = { a: [true, false], b: [false, true], both: [true, true], neither: [false, false] };
  let seen = 0;
  for (const [which, [x, y]] of Object.entries(ends)) {
    const one = page.locator(`#winners [data-which=${which}]`);
    const count = Number((await one.innerText()).match(/\d+$/)[0]);
    await one.click();
    await page.waitForFunction(
      ([n]) => document.querySelector("#winners [role=status] .number")?.textContent.endsWith(n ? `of ${n}` : "–"),
      [count],
    );
    for (const index of await page.locator("#winners tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.dataset.index)))) {
      if (!right.a.has(index)) continue;
      seen++;
      assert.deepEqual([right.a.get(index), right.b.get(index)], [x, y], `${which}: example ${index}`);
    }
    if (which === "a" && count) {
      await page.locator("#winners tbody tr button").first().click();
      await page.waitForFunction(() => document.querySelector("#versus-told")?.textContent === "A is right, B is wrong.");
      await page.goBack();
    }
  }
  assert.ok(seen > 5, `${seen} examples were counted`);
});

once("a change of a head that one run lacks is said", async (page) => {
  const changes = { heads: [{ site: "encoder", layer: 1, head: 3 }] };
  await open(page, { run: ["translate-heads", "translate"], tab: "compare", input: SENTENCE, changes });
  await settled(page);
  const told = ":has-text('1 of the changes name heads')";
  await page.locator(`#versus [data-side="B"]${told}`).waitFor();
  await page.locator(`article[data-run="translate"]${told}`).waitFor();
  assert.equal(await page.locator(`#versus [data-side="A"]${told}, article[data-run="translate-heads"]${told}`).count(), 0);
});

once("a link that asks for what is not there is answered all the same", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate");
  let tried = 0;
  for (const versus of [
    { b: "nobody" },
    { b: run.id },
    { b: "__proto__" },
    { part: "middle" },
    { part: "__proto__" },
    { b: "translate-heads", part: "validation", which: "everyone" },
    { b: "translate-heads", part: "validation", offset: "-5" },
    { b: "translate-heads", part: "validation", offset: "99999999" },
    { b: "translate-heads", part: "validation", offset: "1.5" },
    { scene: "nothing", map: "none" },
  ]) {
    await page.goto("about:blank");
    await open(page, { run: run.id, tab: "compare", input: run.samples[0], changes: { temperature: 0.3 }, versus });
    await settled(page);
    if (versus.part === "validation") await page.locator("#winners [data-which]").first().waitFor({ timeout: 60000 });
    const told = await page.locator("#winners").innerText();
    assert.doesNotMatch(told, /unknown variant|invalid value|no part|NaN|undefined/, JSON.stringify(versus));
    tried++;
  }
  assert.equal(tried, 10);
});

inEveryView("words of any script and of any length leave the page as wide as it is", async (page) => {
  let tried = 0;
  for (const text of ["שלום עולם מה שלומך היום", "مرحبا the bird 你好 🐦", "a".repeat(3000), "the ".repeat(120), "<img src=x onerror=alert(1)>"])
    for (const task of ["translate", "classify"]) {
      const run = await runOf(task);
      await page.goto("about:blank");
      await open(page, { run: run.id, tab: "compare", input: { kind: "text", text }, changes: { temperature: 0.5 }, versus: { b: "changed" } });
      await settled(page);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${task}, ${text.slice(0, 20)}: ${over} pixels too wide`);
      assert.equal(await page.locator("#versus img[src=x]").count(), 0);
      tried++;
    }
  assert.equal(tried, 10);
});
