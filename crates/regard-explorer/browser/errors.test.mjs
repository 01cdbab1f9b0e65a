// 6. Find errors: sorted by loss, filtered, and opened from the confusion matrix.

import assert from "node:assert/strict";
import { inEveryView, open, runOf } from "./browser.mjs";

const losses = (page) =>
  page.locator("table.list tbody tr td:nth-child(4)").evaluateAll((all) => all.map((cell) => Number(cell.textContent)));
const matching = async (page) => Number((await page.locator("#matching").innerText()).split(" ")[0]);

inEveryView("the part is sorted by loss and filtered", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id, tab: "errors" });
  await page.locator("table.list tbody tr").first().waitFor({ timeout: 60000 });
  const sorted = await losses(page);
  assert.ok(sorted.length > 3);
  assert.deepEqual(
    sorted,
    [...sorted].sort((a, b) => b - a),
  );
  const all = await matching(page);
  const word = (await page.locator("table.list tbody tr td:first-child").first().innerText()).split(/\s+/)[0];
  await page.getByLabel("Contains").fill(word);
  await page.waitForFunction(
    (like) =>
      [...document.querySelectorAll("table.list tbody tr td:first-child")].every((cell) =>
        cell.textContent.toLowerCase().includes(like),
      ),
    word.toLowerCase(),
  );
  assert.ok((await matching(page)) >= 1 && (await matching(page)) <= all);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByLabel("Order").selectOption("up");
  await page.waitForFunction(() => {
    const all = [...document.querySelectorAll("table.list tbody tr td:nth-child(4)")].map((cell) =>
      Number(cell.textContent),
    );
    return all.length > 1 && all.every((value, i) => i === 0 || value >= all[i - 1]);
  });
});

inEveryView("a cell of the confusion matrix opens its examples, and each opens as a question", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id, tab: "errors" });
  await page.locator(".confusion tbody button").first().waitFor({ timeout: 60000 });
  const cell = page.locator(".confusion tbody button:not(:text-is('·'))").first();
  const times = Number(await cell.innerText()),
    said = await cell.getAttribute("aria-label");
  await cell.click();
  await page.waitForFunction((n) => Number(document.querySelector("#matching").innerText.split(" ")[0]) === n, times);
  const [, truth, predicted] = /times (.*) taken for (.*)/.exec(said);
  const rows = await page
    .locator("table.list tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].slice(1, 3).map((one) => one.textContent)));
  assert.ok(rows.length > 0 && rows.every(([is, was]) => is === truth && was === predicted), JSON.stringify(rows));
  const index = Number(await page.locator("table.list tbody tr").first().getAttribute("data-index"));
  await page.locator("table.list tbody tr").first().locator("button").click();
  await page.locator(".answer .output").waitFor();
  assert.equal(await page.getByLabel("Number of the example").inputValue(), String(index + 1));
  assert.equal((await page.locator(".answer .output").innerText()).trim(), predicted);
  await page.goBack();
  await page.locator("table.list tbody tr").first().waitFor();
});

inEveryView("a model that writes text has its worst sentences first", async (page) => {
  const run = await runOf("translate");
  await open(page, { run: run.id, tab: "errors", errors: { part: "validation" } });
  await page.locator("table.list tbody tr").first().waitFor({ timeout: 90000 });
  const sorted = await losses(page);
  assert.deepEqual(
    sorted,
    [...sorted].sort((a, b) => b - a),
  );
  assert.equal(await page.locator(".confusion").count(), 0);
  assert.match(await page.locator("#notes").innerText(), /written greedily here; the beam of \d+/);
});
