// 5. Watch training: curves that grow while `regard train` runs, and samples epoch by epoch.
//
// REGARD is the program, REGARD_LIVE the folder of a run that the explorer was started with and that may be trained on.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { inEveryView, once, open, state } from "./browser.mjs";

const live = async () => {
  const { runs } = await state();
  const found = runs.find((one) => one.id === path.basename(process.env.REGARD_LIVE || "live"));
  assert.ok(found, "the explorer has the run that is trained on");
  return found;
};

inEveryView("curves, progress and samples of a run are there", async (page) => {
  const run = await live();
  await open(page, { run: run.id, tab: "training" });
  await page.locator('[data-measure="loss"] svg path').waitFor();
  assert.match(await page.locator(".status").innerText(), /epoch \d+ of \d+/);
  await page.locator(".cards article").nth(2).waitFor();
  assert.equal(await page.locator(".cards article").count(), 3);
  assert.equal((await page.locator(".cards article canvas").count()) > 0, true);
});

inEveryView("the samples are replayed epoch by epoch", async (page) => {
  const run = await live();
  await open(page, { run: run.id, tab: "training" });
  const slider = page.getByLabel("Epoch", { exact: true });
  await slider.waitFor();
  await slider.focus();
  await slider.press("Home");
  await page.locator("#shown-epoch", { hasText: "epoch 1" }).waitFor();
  await page.waitForFunction(() => /epoch=1\b/.test(location.hash));
  const first = await page.locator(".cards").innerText();
  await slider.press("End");
  await page.waitForFunction((before) => document.querySelector(".cards").innerText !== before, first);
  await page.locator("#replay").click();
  await page.locator("#replay", { hasText: "Stop" }).waitFor();
  await page.locator("#replay", { hasText: "Replay" }).waitFor({ timeout: 30000 });
});

once("the curves grow while the program trains, and only new lines travel", async (page) => {
  assert.ok(process.env.REGARD && process.env.REGARD_LIVE, "REGARD and REGARD_LIVE are set");
  const run = await live();
  const had = run.records.length,
    asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await open(page, { run: run.id, tab: "training" });
  const points = () =>
    page
      .locator('[data-measure="loss"] svg path')
      .first()
      .evaluate((line) => line.getAttribute("d").split("L").length);
  await page.locator('[data-measure="loss"] svg path').waitFor();
  assert.equal(await points(), had);
  const training = spawn(
    process.env.REGARD,
    ["train", "--resume", process.env.REGARD_LIVE, "--set", `epochs=${had + 3}`],
    { stdio: "ignore" },
  );
  const ended = new Promise((resolve) => training.on("exit", resolve));
  await page.locator(".live").waitFor({ timeout: 60000 });
  assert.equal(await ended, 0);
  await page.waitForFunction(
    (n) => document.querySelector('[data-measure="loss"] svg path').getAttribute("d").split("L").length >= n,
    had + 3,
    { timeout: 30000 },
  );
  await page.getByText("finished").waitFor({ timeout: 30000 });
  const events = asked.filter((url) => url.includes("/events"));
  assert.equal(events.length, 1, "one stream");
  assert.match(events[0], new RegExp(`after=${had}$`));
  assert.equal(asked.filter((url) => url.endsWith("/api/state")).length, 1, "the rest is not asked for again");
});
