// 6. Find errors: sorted by loss, filtered, and opened from the confusion matrix.

import assert from "node:assert/strict";
import { ADDRESS, asked, inEveryView, judged, once, open, runOf, state, weights } from "./browser.mjs";

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

inEveryView("pictures are seen and recordings heard beside what was made of them", async (page) => {
  const { runs } = await state();
  const found = { picture: 0, sound: 0, none: 0 };
  for (const run of runs.filter((one) => one.ready && !one.training && !/^sentences|^live/.test(one.id))) {
    await open(page, { run: run.id, tab: "errors", errors: { part: "validation", sort: "index", order: "up" } });
    await page.reload();
    const first = page.locator("table.list tbody tr").first();
    await first.waitFor({ timeout: 90000 });
    const { evidence } = await judged(run.id, "validation");
    found[evidence || "none"]++;
    if (!evidence) {
      assert.equal(await first.locator("img.thumb, audio").count(), 0, run.id);
    } else if (evidence === "picture") {
      // The very pixels that the model looks at.
      const seen = first.locator("img.thumb");
      await page.waitForFunction(() => document.querySelector("img.thumb")?.naturalWidth > 0);
      const pixels = await seen.evaluate((one) => {
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [one.naturalWidth, one.naturalHeight];
        canvas.getContext("2d").drawImage(one, 0, 0);
        return [...canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data].filter((_, i) => i % 4 === 0);
      });
      const { scenes } = await asked(run.id, { kind: "example", part: "validation", index: 0 });
      const { scene } = scenes.find((one) => one.scene.kind === "image");
      const expected = [...weights({ weights: scene.pixels })].filter((_, i) => i % scene.channels === 0);
      assert.deepEqual(pixels, expected.map((value) => Math.round(255 * value)), run.id);
    } else {
      const audio = first.locator("audio");
      const seconds = await audio.evaluate(
        (one) => new Promise((resolve, reject) => {
          one.onloadedmetadata = () => resolve(one.duration);
          one.onerror = () => reject(new Error(`${one.src}: ${one.error?.message}`));
          one.preload = "metadata";
          one.load();
        }),
      );
      assert.ok(seconds > 0.05, `${run.id}: ${seconds} s`);
      await audio.click({ position: { x: 60, y: 16 } });
      assert.match(page.url(), /tab=errors/, "listening opens nothing");
    }
  }
  assert.ok(found.picture >= 2 && found.sound >= 2 && found.none >= 4, JSON.stringify(found));
});

inEveryView("what is confused most is told with the words it happens to", async (page) => {
  const run = await runOf("label", (one) => one.id === "label");
  await open(page, { run: run.id, tab: "errors", errors: { part: "validation" } });
  await page.locator(".groups li").first().waitFor({ timeout: 60000 });
  // Counted anew from the sentences, "saw/VERB" each.
  const { examples, count } = await judged(run.id, "validation");
  assert.equal(examples.length, count, "all of them are counted");
  const counts = new Map();
  for (const { truth, output } of examples) {
    const given = output.split(" ");
    truth.split(" ").forEach((tagged, i) => {
      if (tagged === given[i]) return;
      const [word, is] = tagged.split(/\/(?=[^/]*$)/),
        was = given[i].split("/").pop();
      const key = `${is} → ${was}`;
      if (!counts.has(key)) counts.set(key, new Map());
      counts.get(key).set(word, (counts.get(key).get(word) || 0) + 1);
    });
  }
  const total = (words) => [...words.values()].reduce((sum, n) => sum + n, 0);
  const shown = await page.locator(".groups li").evaluateAll((all) =>
    all.map((one) => [one.querySelector("button").textContent, one.querySelector(".words-of").textContent]),
  );
  assert.ok(shown.length >= 2, JSON.stringify(shown));
  const greatest = [...counts.values()].map(total).sort((a, b) => b - a);
  shown.forEach(([name, words], place) => {
    const [, key, n] = /^(.*), (\d+)$/.exec(name);
    assert.equal(Number(n), total(counts.get(key)), name);
    assert.equal(Number(n), greatest[place], name);
    const times = words.split(", ").map((one) => /^(.*) ×(\d+)$/.exec(one).slice(1));
    for (const [word, of] of times) assert.equal(counts.get(key).get(word), Number(of), `${name}: ${word}`);
    assert.equal(Number(times[0][1]), Math.max(...counts.get(key).values()), name);
  });
});

inEveryView("numbers have residuals, each dot an example, and are never called wrong", async (page) => {
  const run = await runOf("regress");
  await open(page, { run: run.id, tab: "errors", errors: { part: "validation" } });
  await page.locator("#residuals .dot").first().waitFor({ timeout: 60000 });
  const { examples, count } = await judged(run.id, "validation");
  const dots = await page.locator("#residuals .dot").evaluateAll((all) =>
    all.map((one) => [Number(one.dataset.index), Number(one.getAttribute("cx")), Number(one.getAttribute("cy"))]),
  );
  assert.equal(dots.length, count);
  // Farther right is greater, higher is more above the truth; the line is where nothing is off.
  const zero = Number(await page.locator("#residuals .zero").getAttribute("y1"));
  for (const [index, x, y] of dots) {
    const off = Number(examples[index].output) - Number(examples[index].truth);
    if (Math.abs(off) > 0.01) assert.equal(Math.sign(zero - y), Math.sign(off), `example ${index}`);
    const [other, theirs] = dots[(index + 1) % dots.length],
      apart = Number(examples[index].truth) - Number(examples[other].truth);
    if (Math.abs(apart) > 0.01) assert.equal(Math.sign(x - theirs), Math.sign(apart), `${index} and ${other}`);
  }
  const mean = examples.slice(0, count).reduce((sum, { truth, output }) => sum + Math.abs(truth - output), 0) / count;
  const [, told] = /off by ([\d.]+)/.exec(await page.locator("#residuals p").first().innerText());
  assert.ok(Math.abs(told - mean) < 0.002 * mean + 0.0002, `${told}, counted ${mean}`);
  assert.equal(await page.locator("table.list .wrong").count(), 0);
  assert.equal(await page.getByLabel("Right?").count(), 0);
  const [index] = dots[3];
  await page.locator(`#residuals .dot[data-index="${index}"]`).dispatchEvent("click");
  await page.locator(".answer").waitFor();
  assert.equal(await page.getByLabel("Number of the example").inputValue(), String(index + 1));
});

once("a picture or a sound that is not there is refused in a sentence", async () => {
  const { runs } = await state();
  let refused = 0;
  for (const run of runs.filter((one) => one.ready))
    for (const [what, file] of [["picture", "0.png"], ["sound", "0.wav"], ["picture", "999999.png"], ["sound", "x.wav"], ["picture", "0.gif"]]) {
      const response = await fetch(`${ADDRESS}/api/runs/${run.id}/${what}/validation/${file}`);
      if (response.status === 200) continue;
      refused++;
      assert.ok([404, 422].includes(response.status), `${run.id}/${what}/${file}: ${response.status}`);
      assert.ok((await response.json()).error.length > 10);
    }
  assert.ok(refused > 40, `${refused}`);
});
