// 5. Watch training: curves that grow while `regard train` runs, and samples epoch by epoch.
//
// REGARD is the program, REGARD_LIVE the folder of a run that the explorer was started with and that may be trained on.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { inEveryView, once, open, runOf, state } from "./browser.mjs";

const live = async () => {
  const { runs } = await state();
  const found = runs.find((one) => one.id === path.basename(process.env.REGARD_LIVE || "live"));
  assert.ok(found, "the explorer has the run that is trained on");
  return found;
};

inEveryView("curves, progress and samples of a run are there", async (page) => {
  const run = await live();
  await open(page, { run: run.id, tab: "training" });
  await page.locator('[data-measure="training loss"] svg path').waitFor();
  assert.match(await page.locator(".status").innerText(), /epoch \d+ of \d+/);
  await page.locator(".cards article").nth(2).waitFor();
  assert.equal(await page.locator(".cards article").count(), 3);
  assert.equal((await page.locator(".cards article canvas").count()) > 0, true);
});

/** What the samples say and weigh. Runs in the page. */
const samples = () =>
  [...document.querySelectorAll(".cards, .cards canvas")]
    .map((one) => one.getAttribute("aria-label") || one.textContent)
    .join("\n");

inEveryView("the samples are replayed epoch by epoch", async (page) => {
  const run = await runOf("translate");
  await open(page, { run: run.id, tab: "training" });
  const slider = page.getByLabel("Epoch", { exact: true });
  await page.locator(".cards article").nth(2).waitFor();
  const learned = await page.evaluate(samples);
  await slider.focus();
  await slider.press("Home");
  await page.locator("#shown-epoch", { hasText: "epoch 1" }).waitFor();
  await page.waitForFunction(() => /epoch=1\b/.test(location.hash));
  // After one epoch it wrote otherwise than after four.
  const until = async (like) => {
    for (const end = Date.now() + 20000; ((await page.evaluate(samples)) === learned) !== like;)
      assert.ok(Date.now() < end, `the samples are ${like ? "" : "not "}those of the last epoch`);
  };
  await until(false);
  await slider.press("End");
  await until(true);
  await page.locator("#replay").click();
  await page.locator("#replay", { hasText: "Stop" }).waitFor();
  await page.locator("#replay", { hasText: "Replay" }).waitFor({ timeout: 30000 });
});

/** What is said while an epoch is trained; null where it is not all there. Runs in the page. */
function withinEpoch() {
  const text = (id) => document.querySelector(`.status #${id}`)?.textContent || "";
  const number = (from) => Number(/[\d.]+/.exec(from)?.[0] ?? NaN);
  const scale = / h$/.test(text("left")) ? 3600 : / min$/.test(text("left")) ? 60 : 1;
  if (!/batch \d+ of \d+, loss/.test(text("batch")) || !text("left") || !text("speed")) return null;
  return { left: scale * number(text("left")), speed: number(text("speed")) };
}

once("the curves grow while the program trains, and only new lines travel", async (page) => {
  assert.ok(process.env.REGARD && process.env.REGARD_LIVE, "REGARD and REGARD_LIVE are set");
  const run = await live();
  const had = run.records.length,
    asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await open(page, { run: run.id, tab: "training" });
  const points = () =>
    page
      .locator('[data-measure="training loss"] svg path')
      .first()
      .evaluate((line) => line.getAttribute("d").split("L").length);
  await page.locator('[data-measure="training loss"] svg path').waitFor();
  assert.equal(await points(), had);
  const training = spawn(
    process.env.REGARD,
    ["train", "--resume", process.env.REGARD_LIVE, "--set", `epochs=${had + 2}`],
    { stdio: "ignore" },
  );
  const ended = new Promise((resolve) => training.on("exit", resolve));
  await page.locator(".live").waitFor({ timeout: 60000 });
  // Within an epoch: where it is, how fast, how long it will take.
  const told = await (await page.waitForFunction(withinEpoch, null, { timeout: 60000 })).jsonValue();
  const began = Date.now();
  // A speed is that of one moment; the machine may have been busy with something else just then, or in the epoch's rest.
  const speeds = [told.speed];
  let over = false;
  ended.then(() => {
    over = true;
  });
  while (!over) {
    const now = await page.evaluate(withinEpoch);
    if (now) speeds.push(now.speed);
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  assert.equal(await ended, 0);
  const took = (Date.now() - began) / 1000;
  assert.ok(
    told.left < 3 * took + 3 && told.left > took / 3 - 3,
    `${told.left} seconds were said to be left, and ${took} it took`,
  );
  const records = (await live()).records,
    before = records[had - 1],
    last = records[records.length - 1];
  const mean = (last.step - before.step) / (last.seconds - before.seconds);
  const beside = `${speeds.join(", ")} steps a second beside ${mean} with validation`;
  assert.ok(Math.max(...speeds) > mean / 2 && Math.min(...speeds) < 6 * mean, beside);
  await page.waitForFunction(
    (n) => document.querySelector('[data-measure="training loss"] svg path').getAttribute("d").split("L").length >= n,
    had + 2,
    { timeout: 30000 },
  );
  await page.getByText("finished").waitFor({ timeout: 30000 });
  const events = asked.filter((url) => url.includes("/events"));
  assert.equal(events.length, 1, "one stream");
  assert.match(events[0], new RegExp(`after=${had}$`));
  assert.equal(asked.filter((url) => url.endsWith("/api/state")).length, 1, "the rest is not asked for again");
});
