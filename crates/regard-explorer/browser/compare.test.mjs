// 4. Compare: several runs on the same input, side by side.

import assert from "node:assert/strict";
import { asked, inEveryView, open, state } from "./browser.mjs";

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
