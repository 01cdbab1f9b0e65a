// What must be in sight: a map beside the bar of changes, every name of few words, the answer on a telephone.

import assert from "node:assert/strict";
import { answered, inEveryView, once, open, runOf } from "./browser.mjs";

const WORDS = "I came back with the quiet old man and saw a small bird by the well near the white house".split(" ");

inEveryView("a map of nineteen words fits into the window beside what stays in sight", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: { kind: "text", text: WORDS.slice(0, 19).join(" ") }, look: "matrix" });
  const canvas = page.locator(".stage .sheet canvas").first();
  const { high, covered } = await page.evaluate(() => ({
    high: document.querySelector(".stage .sheet canvas").getBoundingClientRect().height,
    covered: [...document.querySelectorAll(".change, .answer")]
      .filter((one) => getComputedStyle(one).position === "sticky")
      .reduce((sum, one) => sum + one.getBoundingClientRect().height, 0),
  }));
  assert.ok(covered > 20, "something stays in sight");
  const room = page.viewportSize().height - covered;
  assert.ok(high <= room, `a map of ${high} pixels in ${room}`);
  // Scrolled to, all of it is between them.
  await page.evaluate(() => {
    const map = document.querySelector(".stage .sheet canvas").getBoundingClientRect();
    const answer = document.querySelector(".answer");
    const top = getComputedStyle(answer).position === "sticky" ? answer.offsetHeight : 0;
    scrollBy(0, map.top - top - 2);
  });
  const box = await canvas.boundingBox();
  const bar = await page.evaluate(() => {
    const change = document.querySelector(".change");
    return getComputedStyle(change).position === "sticky" ? change.getBoundingClientRect().top : innerHeight;
  });
  assert.ok(box.y + box.height <= bar + 1, `the map ends at ${box.y + box.height}, the bar begins at ${bar}`);
});

inEveryView("every word of a map of twenty has its name", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: { kind: "text", text: WORDS.join(" ") }, look: "matrix" });
  // What is written on the canvas, by whoever writes it.
  const written = await page.evaluate(async () => {
    const names = new Set();
    const { fillText } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
      if (this.canvas.closest(".stage")) names.add(text);
      return fillText.call(this, text, ...rest);
    };
    document.querySelector('.segmented [data-value="lines"]').click();
    document.querySelector('.segmented [data-value="matrix"]').click();
    await new Promise((resolve) => setTimeout(resolve, 200));
    CanvasRenderingContext2D.prototype.fillText = fillText;
    return [...names];
  });
  assert.deepEqual([...new Set(WORDS)].filter((word) => !written.includes(word)), []);
});

once(
  "on a telephone the answer is in sight when a change was clicked",
  async (page) => {
    const run = await runOf("label");
    await open(page, { run: run.id, input: { kind: "text", text: "the old man sees a well" } });
    await page.locator(".change").scrollIntoViewIfNeeded();
    await answered(page, () => page.getByRole("radio", { name: "argmax" }).click());
    const box = await page.locator("#effect").boundingBox();
    assert.ok(box.y >= 0 && box.y + box.height <= 844, JSON.stringify(box));
    assert.ok((await page.evaluate(() => scrollY)) > 100, "it was scrolled away from");
  },
  { viewport: { width: 390, height: 844 } },
);
