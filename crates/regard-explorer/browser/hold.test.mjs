// 9. Hold: a program that is killed and started again, a run that has no checkpoint, a model that is loaded when asked.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { ADDRESS, once, state } from "./browser.mjs";

const RUNS = path.dirname(process.env.REGARD_LIVE || "live");

/** A program of its own; ends with the test. */
async function started(folders, port = 0) {
  const program = spawn(process.env.REGARD, ["explore", ...folders, "--port", String(port), "--no-open"]);
  const address = await new Promise((resolve, reject) => {
    let told = "";
    program.stdout.on("data", (some) => {
      told += some;
      const found = /http:\/\/[\d.]+:\d+/.exec(told);
      if (found) resolve(found[0]);
    });
    program.on("exit", () => reject(new Error(`the program ended: ${told}`)));
  });
  return { program, address };
}

const ended = (program) =>
  new Promise((resolve) => {
    if (program.exitCode !== null || program.signalCode) resolve(null);
    program.on("exit", resolve);
    program.kill("SIGKILL");
  });

once("a program that is killed is said to be gone, and the page goes on when it is back", async (page) => {
  const folders = ["classify", "regress"].map((name) => path.join(RUNS, name));
  const first = await started(folders);
  let second;
  try {
    await page.goto(`${first.address}/#run=classify&tab=training`);
    await page.locator('[data-measure="training loss"] svg path').waitFor();
    await page.getByText("finished").waitFor();
    await ended(first.program);
    await page.locator("#gone", { hasText: "The program does not answer since" }).waitFor({ timeout: 12000 });
    assert.equal(await page.getByText("finished").count(), 0, "what is no longer known is not said");
    assert.match(await page.locator(".status").innerText(), /not known/);
    second = await started(folders, Number(new URL(first.address).port));
    await page.locator("#gone").waitFor({ state: "hidden", timeout: 12000 });
    await page.getByText("finished").waitFor();
    await page.getByRole("tab", { name: "Look and change" }).click();
    await page.locator("#ask textarea").fill("the program is back");
    await page.waitForFunction(() => document.querySelector(".answer .output")?.textContent.length > 0);
    assert.ok(await page.locator("#notice").isHidden());
  } finally {
    await ended(first.program);
    if (second) await ended(second.program);
  }
});

once("a run without a checkpoint opens on Training, and says so once", async (page) => {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "regard-"));
  await fs.cp(path.join(RUNS, "regress"), path.join(folder, "begun"), { recursive: true });
  for (const name of await fs.readdir(path.join(folder, "begun")))
    if (/safetensors$|^metrics\.jsonl$|^snapshots$/.test(name))
      await fs.rm(path.join(folder, "begun", name), { recursive: true });
  const { program, address } = await started([path.join(folder, "begun")]);
  try {
    await page.goto(address);
    await page.locator(".status").waitFor();
    assert.equal(await page.getByRole("tab", { name: "Training" }).getAttribute("aria-selected"), "true");
    await page.getByRole("tab", { name: "Look and change" }).click();
    await page.getByText("This run has no checkpoint yet").first().waitFor();
    assert.equal(await page.getByText("This run has no checkpoint yet").count(), 1);
    assert.equal(await page.getByText("no attention that could be changed").count(), 0);
  } finally {
    await ended(program);
    await fs.rm(folder, { recursive: true });
  }
});

once("no model is loaded before it is asked", async (page) => {
  const folders = ["classify", "regress", "graph"].map((name) => path.join(RUNS, name));
  const { program, address } = await started(folders);
  try {
    await page.goto(`${address}/#run=regress`);
    await page.locator(".answer .output").waitFor();
    const { runs } = await (await fetch(`${address}/api/state`)).json();
    assert.deepEqual(
      runs.filter(({ loaded }) => loaded).map(({ id }) => id),
      ["regress"],
    );
    // Another run is asked for its kind of input when it is chosen.
    await page.getByLabel("Run", { exact: true }).selectOption("graph");
    await page.getByLabel("Node", { exact: true }).waitFor();
    await page.goBack();
    await page.locator("#ask input[type=range]").waitFor();
  } finally {
    await ended(program);
  }
});

once("compare and training tell of the same epoch", async (page) => {
  const { runs } = await state();
  const run = runs.find(({ id }) => id === "classify");
  await page.goto(`${ADDRESS}/#run=classify&tab=compare`);
  await page.locator("table tbody tr", { hasText: "epochs" }).first().waitFor();
  const last = run.records.at(-1).epoch;
  const shown = await page.locator("table tbody tr", { hasText: "epochs" }).first().locator("td").first().innerText();
  assert.equal(shown, `${last} / ${run.epochs}`);
  await page.getByRole("tab", { name: "Training" }).click();
  await page.locator(".status", { hasText: `epoch ${last} of ${run.epochs}` }).waitFor();
});
