// 8. Tell: what happened in a sentence, ribbons between what was read and written, Play, right or wrong, what was not read.

import assert from "node:assert/strict";
import {
  ADDRESS,
  answered,
  asked,
  inEveryView,
  isPainted,
  once,
  open,
  output,
  runOf,
  state,
  weights,
} from "./browser.mjs";

const SENTENCE = { kind: "text", text: "Tom will not write the story to the children by the river" };

/** The strongest source of each written token, by the server's numbers. */
function sources({ scenes }) {
  const { scene } = scenes[0],
    columns = scene.columns.length,
    all = weights(scene.maps[0]);
  return scene.rows.map((name, row) => {
    const of = [...all.slice(row * columns, (row + 1) * columns)];
    const best = of.indexOf(Math.max(...of));
    return { name, best, word: scene.columns[best], share: of[best] };
  });
}

inEveryView("what writes text opens with two large lines, and pointing at a word lights its sources", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate");
  await open(page, { run: run.id, input: SENTENCE });
  const answer = await asked(run.id, SENTENCE);
  assert.deepEqual(await page.locator(".line.source .word").allInnerTexts(), answer.scenes[0].scene.columns);
  const size = await page
    .locator(".line.source .word")
    .first()
    .evaluate((word) => Number.parseFloat(getComputedStyle(word).fontSize));
  assert.ok(size >= 20, `the words are ${size} pixels high`);
  assert.ok((await page.locator(".bands path").count()) >= answer.scenes[0].scene.rows.length / 2);
  const all = sources(answer);
  for (const row of [0, all.length - 2]) {
    const { name, best, word, share } = all[row];
    await page.locator(`.output-line .word[data-index="${row}"]`).hover();
    assert.equal(await page.locator(`.line.source .word[data-index="${best}"]`).getAttribute("data-on"), "other");
    assert.ok((await page.locator(".bands path.on").count()) > 0);
    const said = await page.locator("#told").innerText();
    assert.ok(said.startsWith(`Writing ${name}, it read ${word} (${Math.round(100 * share)} %)`), said);
  }
  // The other way round: what was written from a source word.
  await page.locator(`.line.source .word[data-index="${all[0].best}"]`).hover();
  assert.equal(await page.locator('.output-line .word[data-index="0"]').getAttribute("data-on"), "other");
  // By keys too.
  await page.locator('.output-line .word[data-index="0"]').focus();
  await page.keyboard.press("ArrowRight");
  assert.ok((await page.locator("#told").innerText()).includes(all[1].word));
  await page.getByRole("radio", { name: "Matrix" }).click();
  assert.ok(await isPainted(page, ".stage .sheet canvas"), "the matrix is second");
});

inEveryView("a sentence stands above every view of every task", async (page) => {
  const { runs } = await state();
  for (const one of runs.filter(({ ready, id }) => ready && !["live", "translate-fixed"].includes(id))) {
    await open(page, { run: one.id });
    const count = Math.max(1, await page.locator('.scenes [role="radio"]').count());
    for (let scene = 0; scene < count; scene++) {
      if (count > 1) await page.locator('.scenes [role="radio"]').nth(scene).click();
      const said = (await page.locator("#told").innerText()).trim();
      assert.match(said, /^\S.*[.]$/s, `${one.id}, scene ${scene}: ${said}`);
      assert.doesNotMatch(said, /\{|NaN|undefined|null|Infinity/, `${one.id}, scene ${scene}: ${said}`);
    }
  }
});

once("the sentence is Chinese on the Chinese page", async (page) => {
  for (const task of ["translate", "label", "caption", "transcribe", "graph", "regress", "answer", "classify"]) {
    const run = await runOf(task);
    await open(page, { run: run.id, lang: "zh" });
    const said = await page.locator("#told").innerText();
    assert.match(said, /[\p{Script=Han}].*。$/su, `${task}: ${said}`);
    assert.doesNotMatch(said, /\{|\b(it|of|the)\b (read|weight|looks)/, said);
  }
});

inEveryView("Play writes the output word by word", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate");
  await open(page, { run: run.id, input: SENTENCE });
  const all = await page.locator(".output-line .word").count();
  await page.locator("#play-words").click();
  await page.locator("#play-words", { hasText: "Stop" }).waitFor();
  const later = () => page.locator(".output-line .word.later").count();
  const first = await later();
  assert.ok(first >= all - 3 && first < all, `${first} of ${all} are not written yet`);
  await page.waitForFunction((n) => document.querySelectorAll(".output-line .word.later").length < n - 1, first);
  assert.match(await page.locator("#told").innerText(), /^Writing /);
  await page.locator("#play-words").click();
  assert.equal(await later(), 0);
  await page.locator("#play-words", { hasText: "Play" }).waitFor();
});

once("Play goes through a caption with what was looked at for each word", async (page) => {
  const run = await runOf("caption");
  await open(page, { run: run.id });
  const words = (await asked(run.id, { kind: "example", part: "validation", index: 0 })).scenes[0].scene.maps;
  await page.locator("#play-words").click();
  for (const { name } of words.slice(0, 3))
    await page.locator("#told", { hasText: new RegExp(`^Writing ${name},`) }).waitFor({ timeout: 5000 });
  await page.locator("#play-words", { hasText: "Stop" }).click();
  await page.locator("#play-words", { hasText: "Play" }).waitFor();
});

/** Examples of a part that are right and wrong, by the program's own judgement. */
async function judged(run, right) {
  for (;;) {
    const response = await fetch(`${ADDRESS}/api/runs/${run}/parts/validation?right=${right}&limit=1`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{}",
    });
    if (response.status === 200) return (await response.json()).examples[0];
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

inEveryView("a right answer has a green mark, a wrong one a red one and what was expected", async (page) => {
  const tried = { true: 0, false: 0 };
  for (const task of ["translate", "classify", "label", "caption"]) {
    const run = await runOf(task);
    for (const right of [true, false]) {
      const example = await judged(run.id, right);
      if (!example) continue;
      tried[String(right)]++;
      await open(page, { run: run.id, input: { kind: "example", part: "validation", index: example.index } });
      const mark = page.locator(".answer .verdict");
      assert.match(await mark.innerText(), right ? /^✓ right$/ : /^✗ wrong$/, `${task} ${example.index}`);
      const [wrong, missing] = await Promise.all(
        [".answer .not-expected, .answer .tagged.wrong", ".answer .missing, .answer .tagged .expected"].map((which) =>
          page.locator(which).count(),
        ),
      );
      assert.equal(
        wrong + missing > 0,
        !right,
        `${task} ${example.index}: ${wrong} wrong and ${missing} missing words`,
      );
      assert.equal(await page.locator(".answer ins").count(), 0, "nothing that is not right is green");
    }
  }
  assert.ok(tried.true >= 2 && tried.false >= 2, `examples of both kinds were tried: ${JSON.stringify(tried)}`);
});

once("compare and training mark wrong words as the answer does", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate-fixed");
  const example = await judged(run.id, false);
  const input = { kind: "example", part: "validation", index: example.index };
  await open(page, { run: [run.id], tab: "compare", input });
  const card = page.locator(`article[data-run="${run.id}"]`);
  await card.locator(".verdict.wrong").waitFor();
  assert.ok((await card.locator(".not-expected, .missing").count()) > 0);
  await page.getByRole("tab", { name: "Training" }).click();
  await page.locator(".cards article .verdict").first().waitFor();
  const cards = page.locator(".cards article");
  for (let at = 0; at < (await cards.count()); at++) {
    const right = (await cards.nth(at).locator(".verdict").innerText()).startsWith("✓");
    assert.equal((await cards.nth(at).locator(".not-expected, .missing").count()) > 0, !right);
  }
  assert.equal(await page.locator("#panel ins").count(), 0);
});

inEveryView("words that the model does not know are dotted and named", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate");
  await open(page, { run: run.id, input: { kind: "text", text: "Tom xylographs the 鸟 🐦" } });
  const told = await page.locator("#unknown").innerText();
  for (const word of ["xylographs", "鸟"]) assert.ok(told.includes(word), told);
  assert.ok(!told.includes("Tom"));
  const dotted = await page.locator(".line.source .word.unknown").allInnerTexts();
  assert.ok(dotted.includes("xylographs") && !dotted.includes("Tom"), String(dotted));
  await answered(page, () => page.locator("#ask textarea").fill(SENTENCE.text));
  assert.equal(await page.locator("#unknown").count(), 0);
});

once("what is longer than the model reads says how much was read", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate");
  const input = { kind: "text", text: "Tom will not write the story ".repeat(80).trim() };
  const { read } = (await asked(run.id, input)).prediction.details;
  assert.ok(read.count < read.of);
  await open(page, { run: run.id, input });
  assert.match(
    await page.locator("#unread").innerText(),
    new RegExp(`^Only ${read.count} of ${read.of} words were read`),
  );
  // What was not read is seen, gray: the end of the text and nothing of its beginning.
  const rest = await page.locator("#unread-words").innerText();
  assert.ok(input.text.endsWith(rest) && rest.split(/\s+/).length === read.of - read.count, rest.slice(0, 200));
});

once("an input that is refused dims the answer to the one before", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id });
  await page.locator("#ask textarea").evaluate((area) => area.removeAttribute("maxlength"));
  await page.locator("#ask textarea").fill("a ".repeat(1200));
  await page.locator("#notice", { hasText: "1000 are read at most" }).waitFor();
  assert.equal(await page.locator(".answer.stale, .work.stale").count(), 2);
  assert.match(await page.locator(".answer").innerText(), /The answer to the input before/);
  await answered(page, () => page.locator("#ask textarea").fill("a good film"));
  assert.equal(await page.locator(".stale").count(), 0);
});

once("a refusal is told in Chinese on the Chinese page", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id, lang: "zh", input: { kind: "example", part: "test", index: 0 } });
  await page.getByLabel("例子的编号").fill("1000000");
  await page.getByLabel("例子的编号").press("Enter");
  await page.locator("#notice", { hasText: /这部分数据只有 \d+ 个例子/ }).waitFor();
});

once("a change that does nothing says so, and one that does says what", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id, input: { kind: "text", text: "I came back with the quiet well ." } });
  await answered(page, () => page.getByRole("radio", { name: "softmax", exact: true }).click());
  assert.match(await page.locator("#effect").innerText(), /^No effect: every label is as before/);
  const writer = await runOf("translate", (one) => one.id === "translate");
  await open(page, { run: writer.id, input: SENTENCE, changes: { temperature: 4 } });
  assert.match(await page.locator("#effect").innerText(), /^(The output is another one|The same output|No effect)/);
  const { prediction, before } = await asked(writer.id, SENTENCE, { temperature: 4 });
  assert.equal(
    (await page.locator("#effect").innerText()).startsWith("The output is another"),
    prediction.output !== before.output,
  );
});

once("what matters is found by taking every word and every head away", async (page) => {
  const run = await runOf("label");
  const input = { kind: "text", text: "I came back with the quiet well ." };
  await open(page, { run: run.id, input });
  await page.locator("#matters summary").click();
  await page.locator("#matters .ranked").nth(1).waitFor({ timeout: 60000 });
  // The first of the list, tried by hand, moves the labels as much as any other.
  const { prediction, scenes } = await asked(run.id, input);
  const moved = async (change) => {
    const after = (await asked(run.id, input, change)).prediction.details;
    const { labels, probabilities } = prediction.details;
    const each = labels.map((label, i) =>
      label === after.labels[i] ? Math.abs(probabilities[i] - after.probabilities[i]) : 1,
    );
    return each.reduce((sum, one) => sum + one, 0) / each.length;
  };
  const all = [];
  for (const { place } of scenes[0].scene.maps)
    all.push({ place, effect: await moved({ heads: [{ site: place.site, layer: place.layer, head: place.head }] }) });
  const best = all.reduce((a, b) => (b.effect > a.effect ? b : a));
  const first = await page.locator("#matters .ranked").nth(1).locator(".line").first().innerText();
  assert.match(first, new RegExp(`layer ${best.place.layer + 1}, head ${best.place.head + 1}`));
  assert.match(first, new RegExp(`${Math.round(100 * best.effect)} %`));
  assert.ok((await page.locator(".tile .effect-bar:not([hidden])").count()) >= all.length, "bars on the small maps");
  // A click makes the change.
  await answered(page, () => page.locator("#matters .ranked").nth(1).locator(".line button").first().click());
  assert.match(await page.locator(".change li").innerText(), /off/);
});

inEveryView("several runs open as cards, each with its question and its measure", async (page) => {
  await page.goto(ADDRESS);
  const { runs } = await state();
  await page
    .locator(".gallery article")
    .nth(runs.length - 1)
    .waitFor();
  assert.equal(await page.locator(".gallery article").count(), runs.length);
  for (const one of runs.filter(({ id }) => ["translate", "graph", "caption"].includes(id))) {
    const card = page.locator(`.gallery article[data-run="${one.id}"]`);
    assert.match(await card.locator(".question").innerText(), /\?$/);
    assert.match(await card.locator(".score").innerText(), /\d/);
  }
  await page.locator('.gallery article[data-run="translate"] canvas').first().waitFor();
  assert.ok((await state()).runs.length === runs.length);
  await page.getByRole("button", { name: "Look into it: translate", exact: true }).click();
  await page.locator(".output-line .word").first().waitFor();
  await page.getByRole("button", { name: "All runs" }).click();
  await page.locator(".gallery article").first().waitFor();
});

inEveryView("a word of three thousand letters widens nothing", async (page) => {
  for (const task of ["label", "translate", "classify"]) {
    const run = await runOf(task);
    await open(page, { run: run.id, input: { kind: "text", text: `the ${"x".repeat(3000)} bird` } });
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${task}: ${over} pixels wider than the window`);
  }
});

once("the map of five hundred labels is in sight below them", async (page) => {
  const run = await runOf("label");
  const text = Array.from({ length: 500 }, (_, i) => ["the", "old", "man"][i % 3]).join(" ");
  await open(page, { run: run.id, input: { kind: "text", text } });
  const top = await page.locator(".stage").evaluate((stage) => stage.getBoundingClientRect().top);
  assert.ok(top < 860, `the map begins at ${top} pixels`);
});

once("a picture keeps its brightness, and what was attended to is orange", async (page) => {
  const run = await runOf("image");
  await open(page, { run: run.id });
  const { scenes } = await asked(run.id, { kind: "example", part: "validation", index: 0 });
  const { scene } = scenes[0];
  await page.getByRole("button", { name: "layer 1, head 1", exact: true }).click();
  const all = [...weights(scene.maps[0])],
    [low, high] = [all.indexOf(Math.min(...all)), all.indexOf(Math.max(...all))];
  const pixels = new Float32Array(Uint8Array.from(Buffer.from(scene.pixels, "base64")).buffer);
  const seen = await page.evaluate(
    ([rows, columns, cells]) => {
      const canvas = document.querySelector(".stage .sheet canvas");
      const [width, height] = [canvas.width / columns, canvas.height / rows];
      return cells.map((cell) => [
        ...canvas
          .getContext("2d")
          .getImageData((cell % columns) * width + width / 2, Math.floor(cell / columns) * height + height / 2, 1, 1)
          .data,
      ]);
    },
    [scene.rows, scene.columns, [low, high]],
  );
  const plain = (cell) => {
    const [x, y] = [cell % scene.columns, Math.floor(cell / scene.columns)];
    const [px, py] = [((x + 0.5) * scene.width) / scene.columns, ((y + 0.5) * scene.height) / scene.rows].map(
      Math.floor,
    );
    return 255 * pixels[(py * scene.width + px) * scene.channels];
  };
  const share = (all[low] - 0) / all[high];
  assert.ok(Math.abs(seen[0][0] - plain(low)) < 30 + 255 * 0.8 * share, `${seen[0]} beside ${plain(low)}`);
  assert.ok(seen[1][0] > seen[1][2] + 60, `${seen[1]} is orange`);
});

once("a cell that is forbidden is called by its words", async (page) => {
  const run = await runOf("translate", (one) => one.id === "translate");
  const { scenes } = await asked(run.id, SENTENCE);
  await open(page, { run: run.id, input: SENTENCE });
  await page.locator('.output-line .word[data-index="1"]').click();
  await answered(page, () => page.getByRole("button", { name: "Forbid" }).click());
  const named = await page.locator(".change li").innerText();
  assert.match(named, new RegExp(`forbidden: ${scenes[0].scene.rows[1]} → `));
  assert.doesNotMatch(named, /layer 1|head 1/, "the only head needs no number");
});

once("the field's words are explained, and a first visit is told three steps once", async (page) => {
  const run = await runOf("label");
  await open(page, { run: run.id });
  assert.equal(await page.locator("#steps li").count(), 3);
  await page.getByRole("button", { name: "Got it" }).click();
  await page.reload();
  await page.locator(".stage canvas").first().waitFor();
  assert.equal(await page.locator("#steps").count(), 0);
  for (const term of ["head", "temperature", "normalizer"]) {
    const card = page.locator(`#about-${term}`);
    await page.locator(`[aria-controls="about-${term}"]`).click();
    assert.ok((await card.innerText()).length > 60 && (await card.locator("svg").count()) === 1, term);
    const box = await card.boundingBox();
    assert.ok(box.x >= 0 && box.y >= 0 && box.x + box.width <= 1280, `${term} is in sight: ${JSON.stringify(box)}`);
    await page.keyboard.press("Escape");
    assert.ok(await card.isHidden());
  }
});

once("one color scale for the whole confusion matrix", async (page) => {
  const run = await runOf("classify");
  await open(page, { run: run.id, tab: "errors" });
  await page.locator(".confusion tbody button").first().waitFor({ timeout: 60000 });
  const rows = await page.locator(".confusion tbody tr").evaluateAll((all) =>
    all.map((row) =>
      [...row.querySelectorAll("button")].map((cell) => {
        const [r, g, b] = getComputedStyle(cell).backgroundColor.match(/\d+/g).map(Number);
        return { count: Number(cell.textContent) || 0, dark: 765 - r - g - b };
      }),
    ),
  );
  const shares = rows.flatMap((row) => {
    const sum = Math.max(
      1,
      row.reduce((total, { count }) => total + count, 0),
    );
    return row.map(({ count, dark }) => ({ share: count / sum, dark }));
  });
  shares.sort((a, b) => a.share - b.share);
  for (let i = 1; i < shares.length; i++)
    assert.ok(
      shares[i].dark >= shares[i - 1].dark - 3,
      `${JSON.stringify(shares[i - 1])} and ${JSON.stringify(shares[i])}`,
    );
});

once("what goes wrong most opens its examples", async (page) => {
  const run = await runOf("image");
  await open(page, { run: run.id, tab: "errors" });
  await page.locator(".groups button").first().waitFor({ timeout: 60000 });
  const [, truth, predicted, n] = /^(.*) → (.*), (\d+)$/.exec(await page.locator(".groups button").first().innerText());
  const most = await page
    .locator(".confusion tbody tr")
    .evaluateAll((rows) =>
      Math.max(
        ...rows.flatMap((row, i) =>
          [...row.querySelectorAll("button")].map((cell, j) => (i === j ? 0 : Number(cell.textContent) || 0)),
        ),
      ),
    );
  assert.equal(Number(n), most);
  await page.locator(".groups button").first().click();
  await page.waitForFunction(
    (count) => Number(document.querySelector("#matching").innerText.split(" ")[0]) === count,
    most,
  );
  const rows = await page
    .locator("table.list tbody tr")
    .evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].slice(1, 3).map((one) => one.textContent)));
  assert.ok(rows.every(([is, was]) => is === truth && was === predicted));
});

once("an example of pictures has the same number in Errors as on the page", async (page) => {
  const run = await runOf("image");
  await open(page, { run: run.id, tab: "errors", errors: { sort: "index", order: "up" } });
  const first = page.locator("table.list tbody tr").first();
  await first.waitFor({ timeout: 60000 });
  assert.equal(await first.locator("button").innerText(), "test part, number 1");
  await first.locator("button").click();
  await page.locator(".answer .output").waitFor();
  assert.equal(await page.getByLabel("Number of the example").inputValue(), "1");
  assert.ok((await output(page)).length > 0);
});
