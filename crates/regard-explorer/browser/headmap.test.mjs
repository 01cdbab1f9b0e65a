// 7. The heads over a part: what each is worth, computed in the background, and what each does.

import assert from "node:assert/strict";
import { ADDRESS, drawn, inEveryView, once, open, runOf } from "./browser.mjs";

inEveryView("every head of every layer has its place on the map, and a sentence", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, tab: "heads", errors: { part: "validation" } });
  const measure = page.getByRole("button", { name: "Measure the model without each head" });
  await measure.or(page.locator(".worth").first()).first().waitFor();
  if (await measure.isVisible()) await measure.click();
  await page.locator(".headmap .told:not(:empty)").waitFor({ timeout: 240000 });
  const found = await (await fetch(`${ADDRESS}/api/runs/${run.id}/ablation/validation`)).json();
  assert.equal(await page.locator(".worth").count(), new Set(found.heads.map(({ site }) => site)).size);
  assert.equal(await page.locator(".worth td").count(), found.heads.length + found.layers.length);
  // What is written in a cell is what the server says, by mean and by zero.
  const shown = async () => {
    const text = await page.locator('figure[data-site="encoder"] .worth td').first().innerText();
    return Number(text.replace("−", "-"));
  };
  const head = found.heads.find(({ site }) => site === "encoder");
  const near = (a, b) => Math.abs(a - b) <= 0.006 * Math.max(0.1, Math.abs(b));
  assert.ok(near(await shown(), head.mean), `${await shown()} beside ${head.mean}`);
  await page.getByRole("radio", { name: "zero" }).click();
  assert.equal(await page.getByRole("radio", { name: "zero" }).getAttribute("aria-checked"), "true");
  assert.ok(near(await shown(), head.zero), `${await shown()} beside ${head.zero}`);
  assert.ok(found.heads.some(({ mean, zero }) => mean !== zero), "the two are not the same");
  await page.getByRole("radio", { name: "its mean" }).click();
  const look = page.getByRole("button", { name: "Look at what each head looks at" });
  await look.or(page.locator(".profile")).first().waitFor();
  if (await look.isVisible()) await look.click();
  await page.locator(".profile tbody tr").first().waitFor({ timeout: 120000 });
  const sentences = await page.locator(".profile .does").allInnerTexts();
  assert.equal(sentences.length, found.heads.length);
  assert.ok(sentences.every((text) => /looks|picks|spread/.test(text)));
});

once("a study is begun by whoever asks for it, answers meanwhile come at once, and it is kept", async (page) => {
  const run = await runOf("label");
  const address = `${ADDRESS}/api/runs/${run.id}/heads/train`;
  assert.equal((await fetch(address)).status, 405);
  const begun = await fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  assert.ok([200, 202].includes(begun.status));
  const before = Date.now();
  assert.equal((await fetch(`${ADDRESS}/health`)).status, 200);
  assert.ok(Date.now() - before < 1000);
  for (let at = 0; at < 300 && (await fetch(address)).status !== 200; at++)
    await new Promise((resolve) => setTimeout(resolve, 200));
  assert.ok((await (await fetch(address)).json()).heads.length > 0);
  assert.equal((await fetch(`${ADDRESS}/api/runs/${run.id}/heads/nowhere`)).status, 400);
  // An example of a head opens as a question.
  await open(page, { run: run.id, tab: "heads", errors: { part: "train" } });
  await page.locator(".profile td button").first().click();
  await drawn(page, 0);
  assert.match(page.url(), /tab=ask/);
});

once("in Chinese the heads are told in Chinese", async (page) => {
  const run = await runOf("label");
  const address = `${ADDRESS}/api/runs/${run.id}/heads/train`;
  const post = () => fetch(address, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  for (let at = 0; at < 300 && (await post()).status !== 200; at++)
    await new Promise((resolve) => setTimeout(resolve, 200));
  await open(page, { run: run.id, tab: "heads", lang: "zh", errors: { part: "train" } });
  await page.locator(".profile tbody tr").first().waitFor();
  const text = await page.locator("#panel").innerText();
  for (const plain of [/\blooks\b/, /\bspread\b/, /\bhead\b/, /\blayer\b/, /\bsharpness\b/]) assert.doesNotMatch(text, plain);
});
