// Chromium without a window, as the tests use it, and what people do with a page.

import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";

/** Packages lie outside the project's sources. */
const tool = createRequire(join(process.env.TOOLS, "package.json"));
const { chromium } = tool("playwright-core");

/** The rules of accessibility, as a script for the page. */
export const AXE = await readFile(tool.resolve("axe-core/axe.min.js"), "utf8");

const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

export const launch = () => chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });

/** A page in a profile of its own. `asked` collects the origins of everything it requested, `complaints` what it wrote to the console. */
export async function visit(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const asked = new Set();
  const complaints = [];
  context.on("request", (request) => asked.add(new URL(request.url()).origin));
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.goto(url);
  return { context, page, asked, complaints };
}

/** Drops a file on the page. */
export async function drop(page, name, bytes) {
  const data = await page.evaluateHandle(([called, text]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(text), (char) => char.charCodeAt(0))], called));
    return transfer;
  }, [name, Buffer.from(bytes).toString("base64")]);
  await page.dispatchEvent("#drop", "drop", { dataTransfer: data });
}

/** Chooses a file of any size with the file dialog. */
export async function choose(page, file) {
  const chooser = page.waitForEvent("filechooser");
  await page.click("#drop");
  await (await chooser).setFiles(file);
}

export async function example(page, name) {
  await page.click(`#examples button:has(code:text-is("${name}"))`);
  await opened(page, name);
}

/** Waits until `name` is open; an error on the page is one of the test. */
export async function opened(page, name) {
  const outcome = await page.waitForFunction((wanted) => {
    const problem = document.querySelector("#problem .problem");
    if (problem) return problem.innerText;
    return document.getElementById("file-title")?.textContent === wanted && !document.getElementById("file").hidden && "open";
  }, name);
  assert.equal(await outcome.jsonValue(), "open");
}

/** Terms and descriptions below `selector`. */
export const factsOf = (page, selector) => page.locator(`${selector} .facts > div`).evaluateAll((entries) =>
  Object.fromEntries(entries.map((entry) => [entry.querySelector("dt").textContent, entry.querySelector("dd").textContent])));

/** Chooses a tensor in the tree and waits for its figures. */
export async function tensor(page, label) {
  await page.click(`.tree .row:has(.name:text-is("${label}"))`);
  await page.waitForSelector("#tensor .values .facts");
  return factsOf(page, "#tensor .values");
}

/** Answers of several rows, as lines of fields. */
export async function predictRows(page, within, text) {
  const details = page.locator(`${within} details:has(textarea)`);
  if (await details.count() > 0) await details.evaluate((element) => {
    element.open = true;
  });
  await page.fill(`${within} textarea`, text);
  await page.click(`${within} button:text-is("Predict all rows")`);
  await page.waitForSelector(`${within} .answers table`);
  return page.locator(`${within} .answers tbody tr`).evaluateAll((rows) =>
    rows.map((row) => [...row.children].slice(1).map((cell) => cell.textContent)));
}

/** Keeps a picture of the page for people. */
export async function picture(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** The page is not wider than its window. */
export async function fits(page) {
  const [content, view] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(content <= view, `the page is ${content} pixels wide in a window of ${view}`);
}
