// What the tests share: a browser, a page in each size and each theme, and what must hold on every page.
//
// REGARD_EXPLORER is the address of `regard explore`, REGARD_PLAYWRIGHT the folder that has playwright-core,
// REGARD_SHOTS a folder for screenshots. `.ci/explorer` sets them.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";

export const ADDRESS = process.env.REGARD_EXPLORER || "http://127.0.0.1:7317";
const { chromium } = createRequire(path.resolve(process.env.REGARD_PLAYWRIGHT || ".", "package.json"))(
  "playwright-core",
);

// On a screen and on a telephone, in light and in dark. Sizes and colors know nothing of each other, so a test meets each
// of the four once; screenshots are taken of all pairs.
const SCREEN = [1280, 860];
const TELEPHONE = [390, 844];
const VIEWS = [
  [...SCREEN, "light"],
  [...TELEPHONE, "dark"],
];
if (process.env.REGARD_SHOTS) VIEWS.push([...SCREEN, "dark"], [...TELEPHONE, "light"]);

let browser;
before(async () => {
  browser = await chromium.launch({
    executablePath: process.env.REGARD_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--autoplay-policy=no-user-gesture-required"],
  });
});
after(() => browser.close());

/** @returns {Promise<any>} what the server says of its runs */
export const state = async () => (await fetch(`${ADDRESS}/api/state`)).json();

/** The first run of a task. */
export async function runOf(task, which = () => true) {
  const { runs } = await state();
  const found = runs.find((one) => one.task === task && one.ready && which(one));
  assert.ok(found, `there is no run of ${task}`);
  return found;
}

/** A page of one size in one theme; what went wrong on it is an error of the test. */
async function opened(width, height, theme, how) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    hasTouch: width < 500,
    acceptDownloads: true,
    ...how,
  });
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.stack || error.message));
  page.on("console", (message) => {
    // A refusal of the server is told to the reader; the browser lists it besides.
    if (message.type() === "error" && !/Failed to load resource/.test(message.text())) wrong.push(message.text());
  });
  return { context, page, wrong };
}

/**
 * A test in light and dark, on a screen and on a telephone.
 * @param {string} name a sentence about behavior
 * @param {(page: any, view: {width: number, theme: string}) => Promise<void>} body
 */
export function inEveryView(name, body, { expectErrors = false, how = {} } = {}) {
  for (const [width, height, theme] of VIEWS) {
    test(`${name} (${width} pixels, ${theme})`, async () => {
      const { context, page, wrong } = await opened(width, height, theme, how);
      try {
        await body(page, { width, theme });
        await holds(page, theme);
        if (!expectErrors) assert.deepEqual(wrong, []);
        if (process.env.REGARD_SHOTS)
          await page.screenshot({
            path: path.join(
              process.env.REGARD_SHOTS,
              `${name.replace(/\W+/g, "-").slice(0, 60)}-${width}-${theme}.png`,
            ),
            fullPage: true,
          });
      } finally {
        await context.close();
      }
    });
  }
}

/** A test once, on a screen, in light. */
export function once(name, body, how = {}) {
  test(name, async () => {
    const { context, page, wrong } = await opened(1280, 860, "light", how);
    try {
      await body(page);
      assert.deepEqual(wrong, []);
    } finally {
      await context.close();
    }
  });
}

/** What must hold on every page: nothing sticks out, nothing is blank, the theme is the one asked for. */
async function holds(page, theme) {
  const seen = await page.evaluate(() => ({
    over: document.documentElement.scrollWidth - innerWidth,
    text: document.querySelector("#panel").innerText.trim().length,
    theme: document.documentElement.dataset.theme,
    unnamed: [...document.querySelectorAll("button, select, input:not([type=file]), textarea, [role=img]")]
      .filter(
        (one) =>
          one.checkVisibility() &&
          !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length || one.title),
      )
      .map((one) => one.outerHTML.slice(0, 120)),
  }));
  assert.ok(seen.over <= 0, `the page is ${seen.over} pixels wider than the window`);
  assert.ok(seen.text > 0, "the panel is blank");
  assert.equal(seen.theme, theme);
  assert.deepEqual(seen.unnamed, [], "controls that a screen reader cannot name");
}

/** Opens a view and waits until it is drawn. @param {any} page @param {Record<string, any>} view */
export async function open(page, view) {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(view))
    for (const one of [value].flat()) out.append(key, typeof one === "object" ? JSON.stringify(one) : String(one));
  const before = page.url().startsWith(ADDRESS) ? await count(page) : 0;
  await page.goto(`${ADDRESS}/#${out}`);
  if (!view.tab || view.tab === "ask") await drawn(page, before);
}

/** How many answers have been drawn. */
export const count = (page) => page.evaluate(() => Number(document.documentElement.dataset.drawn || 0));

/** Waits until more than so many answers have been drawn. */
export const drawn = (page, before) =>
  page.waitForFunction(
    (n) => Number(document.documentElement.dataset.drawn || 0) > n && !document.querySelector(".answer.waiting"),
    before,
    { timeout: 30000 },
  );

/** Does something and waits for the answer to it. */
export async function answered(page, act) {
  const before = await count(page);
  await act();
  await drawn(page, before);
}

/** Whether something is painted on a canvas, or in an SVG. */
export const isPainted = (page, selector) =>
  page.evaluate((of) => {
    const one = document.querySelector(of);
    if (!one) return false;
    if (one.tagName === "svg") return one.querySelectorAll("path, circle, rect").length > 1;
    const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
    const colors = new Set();
    for (let i = 0; i < data.length; i += 4 * 7) colors.add(`${data[i]},${data[i + 1]},${data[i + 2]},${data[i + 3]}`);
    return colors.size > 2;
  }, selector);

/** What the model answers, as it stands on the page. */
export const output = (page) => page.locator(".answer .output, .answer .words").last().innerText();

/** The server's answer, with its weights as numbers. */
export async function asked(run, input, changes = null) {
  const response = await fetch(`${ADDRESS}/api/ask`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ run, input, changes }),
  });
  assert.equal(response.status, 200, await response.clone().text());
  return response.json();
}

/** The examples of a part as a run judged them, in their order. */
export async function judged(run, part) {
  for (;;) {
    const response = await fetch(`${ADDRESS}/api/runs/${run}/parts/${part}?limit=500&sort=index&order=up`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: "{}",
    });
    const answer = await response.json();
    if (response.status === 200) return answer;
    assert.equal(response.status, 202, answer.error);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Weights that came as base64 of f32. */
export const weights = (map) => new Float32Array(Uint8Array.from(Buffer.from(map.weights, "base64")).buffer);

/** A weight as the page writes it. */
export function written(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.0005 || size >= 1e6) return value.toExponential(1);
  return size < 0.0995 ? value.toPrecision(2) : size < 100 ? value.toFixed(3) : value.toFixed(1);
}
