// From key press to drawn maps, measured in the browser: a sentence of 20 words with the translator, and a text of 500
// tokens with the labeler. A benchmark, not a test: `BENCH=1 .ci/explorer target/release/regard`.

import { createRequire } from "node:module";
import path from "node:path";

const address = process.env.REGARD_EXPLORER;
const { chromium } = createRequire(path.resolve(process.env.REGARD_PLAYWRIGHT, "package.json"))("playwright-core");
const { runs } = await (await fetch(`${address}/api/state`)).json();
const WORDS = ["the", "old", "man", "sees", "a", "small", "bird", "in", "the", "garden"];
const text = (count) => Array.from({ length: count }, (_, i) => WORDS[i % WORDS.length]).join(" ");

const browser = await chromium.launch({
  executablePath: process.env.REGARD_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

/** Milliseconds from a key to the frame in which its answer is drawn, for several keys. */
async function measure(task, count, keys, wish) {
  const run = runs.find((one) => one.task === task && !/fixed|live/.test(one.id));
  const page = await browser.newPage({ viewport: { width: 1280, height: 860 } });
  const input = JSON.stringify({ kind: "text", text: text(count) });
  await page.goto(`${address}/#${new URLSearchParams({ run: run.id, input })}`);
  await page.waitForFunction(() => Number(document.documentElement.dataset.drawn) > 0, null, { timeout: 120000 });
  const field = page.locator("#ask textarea");
  await field.focus();
  await page.evaluate(() => {
    const area = document.querySelector("#ask textarea");
    area.setSelectionRange(area.value.length, area.value.length);
    globalThis.times = [];
    // The time at which the key's event was made, before the page has heard of it.
    addEventListener(
      "keydown",
      (event) => {
        globalThis.pressed = event.timeStamp;
      },
      true,
    );
    new MutationObserver(() =>
      requestAnimationFrame(() => {
        // The frame after the next one: then what was drawn is on the screen.
        const began = globalThis.pressed;
        setTimeout(() => globalThis.times.push(performance.now() - began));
      }),
    ).observe(document.documentElement, { attributeFilter: ["data-drawn"] });
  });
  for (let i = 0; i < keys; i++) {
    const had = await page.evaluate(() => globalThis.times.length);
    await page.keyboard.press("abcdefghijklmnopqrstuvwxyz"[i % 26]);
    await page.waitForFunction((n) => globalThis.times.length > n, had, { timeout: 60000 });
  }
  const times = (await page.evaluate(() => globalThis.times)).sort((a, b) => a - b);
  await page.close();
  const at = (share) => times[Math.min(times.length - 1, Math.floor(share * times.length))].toFixed(0);
  console.log(
    `${task}, ${count} words: median ${at(0.5)} ms, 90 % ${at(0.9)} ms, slowest ${at(1)} ms of ${times.length} keys (wanted: ${wish} ms)`,
  );
}

await measure("translate", 20, 30, 150);
await measure("label", 500, 10, 1000);
await browser.close();
