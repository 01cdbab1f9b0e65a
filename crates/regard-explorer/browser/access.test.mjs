// 9. For everyone: what axe-core finds, keys that can be turned off, nothing that moves for whom that is too much.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { inEveryView, once, open, runOf } from "./browser.mjs";

const AXE = fs.readFileSync(
  path.resolve(process.env.REGARD_PLAYWRIGHT || ".", "node_modules/axe-core/axe.min.js"),
  "utf8",
);

/** What axe-core finds on a page, WCAG 2.2 AA and what it calls best. */
async function found(page) {
  const results = await page.evaluate(() =>
    globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    }),
  );
  return results.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
}

/** Every way of looking, each of a task that has it. */
const LOOKS = [
  ...["ribbons", "matrix", "lines", "text", "table"].map((look) => ["translate", look]),
  ["label", "text"],
  ["image", "table"],
  ["graph", "table"],
  ["regress", "matrix"],
  ["regress", "table"],
  ["transcribe", "matrix"],
  ["transcribe", "table"],
];

const VIEWS = [
  ["translate", { tab: "ask" }],
  ["label", { tab: "ask" }],
  ["image", { tab: "ask" }],
  ["graph", { tab: "ask" }],
  ["regress", { tab: "ask" }],
  ["answer", { tab: "ask" }],
  ["transcribe", { tab: "ask" }],
  ["classify", { tab: "training" }],
  ["classify", { tab: "errors" }],
  ["classify", { tab: "heads" }],
  ["classify", { tab: "compare" }],
  ["classify", { tab: "runs" }],
  ["image", { tab: "errors" }],
  ["transcribe", { tab: "errors" }],
  ["label", { tab: "errors" }],
  ["regress", { tab: "errors" }],
  ["image", { tab: "compare", changes: { temperature: 0.2 }, versus: { b: "changed", part: "validation" } }],
  ["translate", { tab: "compare", versus: { part: "validation" } }],
  ["label", { tab: "heads" }],
];

/** That axe-core finds nothing in both colors, those of the view last. */
async function holds(page, theme) {
  await page.evaluate(AXE);
  for (const colorScheme of [theme === "dark" ? "light" : "dark", theme]) {
    await page.emulateMedia({ colorScheme });
    // A view may still be drawing itself.
    let faults = [""];
    for (let tries = 0; tries < 10 && faults.length; tries++) {
      await page.waitForTimeout(300);
      faults = await found(page);
    }
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
    assert.deepEqual(faults, [], `in ${colorScheme}`);
  }
}

for (const [task, view] of VIEWS)
  inEveryView(`axe-core finds nothing in ${view.tab} of ${task}${view.versus ? ", side by side" : ""}`, async (page, { theme }) => {
    const run = await runOf(task);
    await open(page, { run: run.id, ...view });
    if (view.tab === "errors") await page.locator("table.list tbody tr").first().waitFor({ timeout: 60000 });
    if (view.versus) {
      await page.locator("#winners [data-which]").first().waitFor({ timeout: 60000 });
      await page.locator("#versus canvas[data-map=difference], #versus-blank").first().waitFor();
    }
    await holds(page, theme);
  });

for (const [task, look] of LOOKS)
  inEveryView(`axe-core finds nothing in ${task} looked at as ${look}`, async (page, { theme }) => {
    const run = await runOf(task);
    await open(page, { run: run.id, look });
    const chosen = page.getByRole("radiogroup", { name: "How to look" }).locator('[aria-checked="true"]');
    assert.equal(await chosen.getAttribute("data-value"), look);
    await holds(page, theme);
  });

for (const task of ["translate", "label", "image", "answer", "transcribe", "classify"])
  inEveryView(`axe-core finds nothing in the opened folds of ${task}`, async (page, { theme }) => {
    const run = await runOf(task);
    await open(page, { run: run.id });
    const folds = page.locator("details");
    let opened = 0;
    for (let i = 0; i < (await folds.count()); i++) {
      const fold = folds.nth(i);
      if (!(await fold.isVisible())) continue;
      if (!(await fold.evaluate((one) => one.open))) await fold.locator("summary").first().click();
      opened++;
    }
    assert.ok(opened >= 2, `${opened} folds`);
    await page.waitForFunction(
      () => [...document.querySelectorAll("details[open] > div")].every((one) => one.innerText.length > 20 && !/^Computing/.test(one.innerText)),
      null,
      { timeout: 60000 },
    );
    await holds(page, theme);
  });

once("single keys can be turned off, and stay so", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id });
  await page.keyboard.press("4");
  await page.waitForFunction(() => location.hash.includes("tab=errors"));
  await page.keyboard.press("1");
  await page.waitForFunction(() => location.hash.includes("tab=ask"));
  await page.getByRole("button", { name: "Keys and help" }).click();
  await page.getByLabel("Keys do this without Ctrl or Alt").uncheck();
  await page.getByRole("button", { name: "Close" }).click();
  await page.keyboard.press("4");
  await page.keyboard.press("?");
  await page.waitForTimeout(200);
  assert.doesNotMatch(page.url(), /tab=errors/);
  assert.equal(await page.locator("dialog").count(), 0);
  await page.reload();
  await page.locator(".answer .words, .answer .output").first().waitFor();
  await page.keyboard.press("4");
  await page.waitForTimeout(200);
  assert.doesNotMatch(page.url(), /tab=errors/);
});

once(
  "nothing moves by itself where less motion is wanted",
  async (page) => {
    const run = await runOf("translate");
    await open(page, { run: run.id });
    // What would move elsewhere: a training's sign, and ribbons that fade.
    const lively = () =>
      page.evaluate(() => {
        const sign = document.createElement("span");
        sign.className = "live";
        document.body.append(sign);
        const moving = document.getAnimations().length;
        sign.remove();
        return moving;
      });
    assert.equal(await lively(), 0);
    await page.emulateMedia({ reducedMotion: "no-preference" });
    assert.ok((await lively()) > 0, "there is something that moves");
  },
  { reducedMotion: "reduce" },
);
