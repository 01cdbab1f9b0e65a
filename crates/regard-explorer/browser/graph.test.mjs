// A graph as a whole: no node is asked about, none is walked to.

import assert from "node:assert/strict";
import { inEveryView, isPainted, open, runOf } from "./browser.mjs";

inEveryView("a whole graph has no node in its middle, and its nodes are not walked to", async (page) => {
  const run = await runOf("graph", ({ id }) => id === "whole-graph");
  await open(page, { run: run.id });
  const scenes = await page.locator('.scenes [role="radio"]').count();
  let graphs = 0;
  for (let scene = 0; scene < Math.max(1, scenes); scene++) {
    if (scenes > 1) await page.locator('.scenes [role="radio"]').nth(scene).click();
    if (!(await page.locator("svg.drawing [data-node]").count())) continue;
    graphs++;
    assert.ok(await isPainted(page, "svg.drawing"));
    const said = await page.locator("#told").innerText();
    assert.match(said, /^Of \d+ edges the strongest is that of node \S+, which listens to \S+ with \d+ %\.$/);
    const before = page.url();
    const node = page.locator("svg.drawing [data-node]").nth(1);
    assert.doesNotMatch(await node.getAttribute("aria-label"), /walk/);
    await node.click();
    await page.waitForTimeout(300);
    assert.equal(page.url().includes("node"), before.includes("node"), page.url());
    assert.ok(await page.locator("#notice").isHidden(), "nothing was refused");
  }
  assert.ok(graphs > 0, "no scene of the run is a graph");
});
