// The page, end to end, in Chromium. `cargo xtask page test` runs it; PAGE is the page as it is put together, APR the
// program `apr`, TOOLS the folder of the packages.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import { AXE, choose, drop, example, factsOf, fits, launch, opened, picture, predictRows, tensor, visit } from "./browser.mjs";
import { apr, huge, safetensors, withMetadata } from "./files.mjs";
import { serve } from "./serve.mjs";

const PAGE = process.env.PAGE;
const sample = (name) => join(PAGE, "examples", name);

let browser;
let site;
let scratch;

before(async () => {
  [browser, site, scratch] = await Promise.all([launch(), serve(PAGE), mkdtemp(join(tmpdir(), "apr-page-"))]);
});

after(async () => {
  await browser?.close();
  await site?.close();
  if (scratch) await rm(scratch, { recursive: true });
});

/** Runs `steps` on a fresh visit, and holds the page to what it promises: no other server is asked, nothing is complained about. */
async function visiting(steps, { search = "", servers = [], complains = [], ...options } = {}) {
  // Addresses of blobs have the origin "null".
  const named = new Set(["null", ...[site.url, ...servers].map((url) => new URL(url).origin)]);
  const { page, context, asked, complaints } = await visit(browser, site.url + search, options);
  try {
    await steps(page, context);
    assert.deepEqual([...asked].filter((origin) => !named.has(origin)), [], "servers that nobody named were asked");
    assert.deepEqual(complaints.filter((text) => !complains.some((known) => known.test(text))), []);
  } finally {
    await context.close();
  }
}

const known = () => {
  const ramp = Float32Array.from({ length: 1000 }, (_, at) => at);
  const odd = Float32Array.from([NaN, Infinity, -Infinity, 0, -0, 1, 2, -3]);
  return safetensors([
    { name: "encoder.0.ramp", dtype: "F32", shape: [10, 100], data: ramp },
    { name: "encoder.0.odd", dtype: "F32", shape: [8], data: odd },
    { name: "encoder.1.constant", dtype: "F32", shape: [5], data: new Float32Array(5).fill(2.5) },
    { name: "encoder.1.ids", dtype: "I32", shape: [4], data: Int32Array.from([-1, 0, 1, 2]) },
    { name: "head", dtype: "F32", shape: [0], data: new Float32Array(0) },
  ], { note: "x".repeat(1000), format: "pt" });
};

describe("a file from this machine", () => {
  test("is dropped, and its tensors, types and metadata are shown", () => visiting(async (page) => {
    await drop(page, "known.safetensors", known());
    await opened(page, "known.safetensors");
    const facts = await factsOf(page, ".file-head");
    assert.equal(facts.Format, "safetensors");
    assert.equal(facts.Tensors, "5");
    assert.equal(await page.locator("#types tbody tr").count(), 3, "F32, I32 and their sum");
    const long = page.locator("#metadata tr", { hasText: "note" });
    assert.ok((await long.locator(".value").textContent()).length < 1000);
    await long.locator("button").click();
    assert.equal((await long.locator(".value").textContent()).length, 1000);
  }));

  test("has figures and a histogram that are right", () => visiting(async (page) => {
    await drop(page, "known.safetensors", known());
    await opened(page, "known.safetensors");
    const ramp = await tensor(page, "ramp");
    assert.deepEqual([ramp.Minimum, ramp.Maximum, ramp.Mean, ramp["Standard deviation"]], ["0", "999", "499.5", "288.675"]);
    assert.equal(ramp["First values"], "0, 1, 2, 3, 4, 5, 6, 7");
    await page.click("#tensor summary");
    // The table is made when the browser says that it is to be seen, some time after the click.
    await page.waitForSelector("#tensor .bins tbody tr");
    const counts = await page.locator("#tensor .bins tbody tr").evaluateAll((rows) => rows.map((row) => Number(row.children[1].textContent)));
    assert.equal(counts.length, 48);
    assert.equal(counts.reduce((sum, value) => sum + value, 0), 1000);
    assert.ok(counts.every((value) => value === 20 || value === 21), "the values of a ramp are spread evenly");
    assert.match(await page.getAttribute("#tensor svg", "aria-label"), /^Histogram of 1,000 values in 48 bins from 0 to 999/);

    const odd = await tensor(page, "odd");
    assert.deepEqual([odd.NaN, odd.Infinite, odd.Zeros], ["1", "2", "2 (25.0 %)"]);
    assert.deepEqual([odd.Minimum, odd.Maximum, odd.Mean, odd["Standard deviation"]], ["-3", "2", "0", "1.67332"]);
    assert.equal(odd["First values"], "NaN, inf, -inf, 0, -0, 1, 2, -3");
    assert.equal((await tensor(page, "constant")).Mean, "2.5");
    assert.equal((await tensor(page, "ids")).Mean, "0.5");
    await page.click(".tree .row:has(.name:text-is('head'))");
    await page.waitForSelector("#tensor :text('The tensor has no values.')");
  }));

  test("of quantized tensors has the figures of what `apr` makes of them", () => visiting(async (page) => {
    const plain = join(scratch, "plain.safetensors");
    apr(["convert", sample("tiny-llama.gguf"), plain, "--dequantize", "f32"]);
    const bytes = await readFile(plain);
    const data = 8 + Number(bytes.readBigUInt64LE());
    const [begin, end] = JSON.parse(bytes.subarray(8, data).toString())["blk.0.ffn_up.weight"].data_offsets;
    const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset + data + begin, bytes.byteOffset + data + end));
    await example(page, "tiny-llama.gguf");
    const types = await page.locator("#types tbody th").allTextContents();
    assert.deepEqual(types, ["Q8_0", "Q5_0", "F32", "all"]);
    const facts = await tensor(page, "ffn_up.weight");
    const six = (value) => Number(value.toPrecision(6));
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    assert.equal(Number(facts.Mean), six(mean));
    assert.equal(Number(facts.Minimum), six(values.reduce((least, value) => Math.min(least, value))));
    assert.equal(Number(facts.Maximum), six(values.reduce((most, value) => Math.max(most, value))));
    await picture(page, "gguf");
  }));

  test("of another program has its tensors, and the verdict of what loading it would run", () => visiting(async (page) => {
    const vector = (name) => readFile(new URL(`../../../conformance/vectors/import/${name}`, import.meta.url));
    const dropped = async (name, path) => {
      await drop(page, name, await vector(path));
      await opened(page, name);
      await page.waitForSelector("#verdict");
      return [(await factsOf(page, ".file-head")).Format, await page.locator("#verdict strong").textContent()];
    };
    assert.deepEqual(await dropped("benign.pt", "torch/align4096.pt"), ["PyTorch", "Safe. "]);
    const described = async (label) => {
      await tensor(page, label);
      return factsOf(page, "#tensor");
    };
    const weight = await described("w");
    assert.deepEqual([weight.Type, weight.Shape], ["F32", "4 × 7"]);
    assert.match(await page.getAttribute("#tensor svg", "aria-label"), /^Histogram of 28 values/);
    await picture(page, "torch");
    assert.deepEqual(await dropped("some.npz", "numpy/compressed.npz"), ["NumPy archive", "Safe. "]);
    assert.equal((await described("b")).Type, "F64");
    assert.deepEqual(await dropped("some.h5", "hdf5/compact_early.h5"), ["HDF5", "Safe. "]);
    assert.equal((await described("compact")).Shape, "3 × 3");
    assert.deepEqual(await dropped("lambda.keras", "keras/lambda.keras"), ["Keras", "Suspicious. "]);
    assert.match(await page.locator("#scan .findings tbody tr").first().textContent(), /suspicious.*Lambda.*config\.json.*sc-keras-layer/);
    await picture(page, "keras");
  }));

  test("that would run code is called dangerous, whether it can be shown or not", () => visiting(async (page) => {
    const pickle = new TextEncoder().encode("cos\nsystem\n(S'id'\ntR.");
    await drop(page, "model.pt", pickle);
    await page.waitForSelector("#verdict.dangerous");
    assert.match(await page.locator("#scan .findings tbody tr").first().textContent(), /dangerous.*os\.system.*sc-dangerous-name/);
    await fits(page);
    await picture(page, "dangerous");
  }));

  test("of 100,000 tensors is a tree of which only the rows in view exist", () => visiting(async (page) => {
    const tensors = Array.from({ length: 100_000 }, (_, at) => `"layers.${Math.floor(at / 10)}.part.${at % 10}":{"dtype":"U8","shape":[1],"data_offsets":[${at},${at + 1}]}`);
    const text = `{${tensors.join(",")}}`;
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    const path = join(scratch, "many.safetensors");
    await writeFile(path, Buffer.concat([length, Buffer.from(text), Buffer.alloc(100_000)]));
    await choose(page, path);
    await opened(page, "many.safetensors");
    await page.click("button:text-is('Expand all')");
    await page.focus(".tree");
    await page.keyboard.press("End");
    assert.ok(await page.locator(".tree .row").count() < 100);
    assert.match(await activeRow(page), /^9, U8, 1, 1 B/);
    await page.fill("#filter", "layers.777.part.7");
    await page.waitForSelector(".told:text-is('1 of 100,000 tensors')");
  }));

  test("has the SHA-256 that others compute", () => visiting(async (page) => {
    await drop(page, "known.safetensors", known());
    await opened(page, "known.safetensors");
    await page.click("button:text-is('Compute SHA-256')");
    assert.equal(await page.textContent("#sha256"), createHash("sha256").update(known()).digest("hex"));
    await example(page, "tiny-llama.gguf");
    await page.click("button:text-is('Compute SHA-256')");
    assert.equal(await page.textContent("#sha256"), createHash("sha256").update(await readFile(sample("tiny-llama.gguf"))).digest("hex"));
  }));

  test("in the way of a later one is given up", () => visiting(async (page) => {
    await drop(page, "first.safetensors", known());
    await drop(page, "second.safetensors", known());
    await opened(page, "second.safetensors");
  }));
});

const activeRow = (page) => page.evaluate(() => {
  const tree = document.querySelector(".tree");
  const row = document.getElementById(tree.getAttribute("aria-activedescendant"));
  return [...row.children].map((part) => part.textContent).filter(Boolean).join(", ");
});

describe("the keyboard", () => {
  test("opens a file, walks the tree and chooses a tensor", () => visiting(async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement.id === "main");
    const chooser = page.waitForEvent("filechooser");
    await page.keyboard.press("Tab");
    // The key goes to what has the focus when the browser handles it.
    await page.waitForFunction(() => document.activeElement.id === "drop");
    await page.keyboard.press("Enter");
    await (await chooser).setFiles({ name: "known.safetensors", mimeType: "", buffer: known() });
    await opened(page, "known.safetensors");
    assert.equal(await page.evaluate(() => document.activeElement.id), "file-title");
    for (let step = 0; step < 12 && !await page.evaluate(() => document.activeElement.matches(".tree")); step += 1) await page.keyboard.press("Tab");
    assert.match(await activeRow(page), /^encoder, 4 tensors/);
    await page.keyboard.press("ArrowRight");
    assert.match(await activeRow(page), /^0, 2 tensors/);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await page.getAttribute(".row.active", "aria-expanded"), "false");
    await page.keyboard.press("ArrowLeft");
    assert.match(await activeRow(page), /^encoder/);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("*");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.type("ra");
    assert.match(await activeRow(page), /^ramp, F32, 10 × 100/);
    await page.keyboard.press("Enter");
    await page.waitForSelector("#tensor .histogram");
    assert.equal(await page.getAttribute(".row.active", "aria-selected"), "true");
    await page.keyboard.press("End");
    assert.match(await activeRow(page), /^head/);
    await page.keyboard.press("Home");
    assert.match(await activeRow(page), /^encoder/);
  }));
});

describe("predictions", () => {
  test("are those of `apr predict`, one row and 150", () => visiting(async (page) => {
    const table = await readFile(sample("iris.csv"), "utf8");
    const expected = apr(["predict", sample("iris.apr"), "--input", sample("iris.csv"), "--proba"]).trimEnd().split("\n").map((line) => line.split(","));
    assert.equal(expected.length, 150);
    await example(page, "iris.apr");
    assert.deepEqual(await predictRows(page, "#predict", table), expected.slice(0, 100));
    assert.match(await page.locator("#predict .answers").textContent(), /150 answers.*The first 100 are shown/);

    const [head, first] = table.split("\n");
    const row = first.split(",").slice(0, 4);
    for (const [at, value] of row.entries()) await page.fill(`#model-input-${at}`, value);
    await page.click("#predict button:text-is('Predict')");
    await page.waitForSelector("#predict .answer");
    assert.equal(await page.textContent("#predict .answer"), expected[0][0]);
    assert.deepEqual(await page.locator("#predict .odds .number").allTextContents(), expected[0].slice(1));
    assert.deepEqual(await page.locator("#predict .fields label").allTextContents(), head.split(",").slice(0, 4));
    await picture(page, "predict");
  }));

  test("of the same network in safetensors are the same as well", () => visiting(async (page) => {
    const expected = apr(["predict", sample("network.safetensors"), "--input", sample("iris.csv"), "--proba"]).split("\n").slice(0, 100).map((line) => line.split(","));
    await example(page, "network.safetensors");
    assert.deepEqual(await predictRows(page, "#predict", await readFile(sample("iris.csv"), "utf8")), expected);
  }));

  test("of a model of texts are the weights of their terms", () => visiting(async (page) => {
    const [lines, path] = [join(scratch, "lines.txt"), join(scratch, "words.apr")];
    await writeFile(lines, "the cat sat\nthe dog sat\n");
    apr(["train", "count-vectorizer", "--data", lines, "-o", path]);
    await choose(page, path);
    await opened(page, "words.apr");
    await page.fill("#predict textarea", "cat cat dog\nbird");
    await page.click("button:text-is('Predict all rows')");
    await page.waitForSelector("#predict .answers table");
    assert.deepEqual(await page.locator("#predict td").allTextContents(), ["cat: 2, dog: 1", "no term of the model"]);
  }));

  test("refuse what is no number, and say where", () => visiting(async (page) => {
    await example(page, "iris.apr");
    await page.fill("#model-input-1", "wide");
    await page.click("#predict button:text-is('Predict')");
    await page.waitForSelector("#predict :text('sepal_width needs a number.')");
    assert.equal(await page.evaluate(() => document.activeElement.id), "model-input-1");
    await page.click("#predict summary");
    await page.fill("#predict textarea", "1,2,3,4\n1,2,x,4");
    await page.click("button:text-is('Predict all rows')");
    await page.waitForSelector("#predict :text('row 2, column 3: `x` is no number')");
  }));
});

describe("protection", () => {
  test("an encrypted model asks for its password, refuses another one, and answers as `apr` does", () => visiting(async (page) => {
    await example(page, "locked.apr");
    assert.equal((await factsOf(page, ".file-head")).Protection, "encrypted, not signed");
    await picture(page, "locked");
    await page.fill("#password", "wrong");
    await page.click("button:text-is('Decrypt with password')");
    await page.waitForSelector("#protection .problem code:text-is('ac-decryption')");
    await page.fill("#password", "open sesame");
    await page.click("button:text-is('Decrypt with password')");
    await page.waitForSelector("#predict .fields");
    const header = "deflator,gnp,unemployed,armed_forces,population,year";
    const rows = `${header}\n83.0,234289,2356,1590,107608,1947\n116.9,554894,4007,2827,130081,1962\n`;
    const expected = apr(["predict", sample("locked.apr"), "--input", "-", "--password-file", passwordFile()], rows).trimEnd().split("\n");
    assert.deepEqual((await predictRows(page, "#predict", rows)).flat(), expected);
  }));

  test("an encrypted and signed model opens with the recipient's key, and a wrong one is refused", () => visiting(async (page) => {
    const [buyer, other, maker] = ["buyer.key", "stranger.key", "maker.key"].map((name) => join(scratch, name));
    for (const [kind, path] of [["encrypt", buyer], ["encrypt", other], ["sign", maker]]) apr(["keygen", kind, "-o", path]);
    const sold = join(scratch, "sold.apr");
    apr(["encrypt", sample("iris.apr"), "-o", sold, "--recipient", `${buyer}.pub`, "--sign", maker]);
    await choose(page, sold);
    await opened(page, "sold.apr");
    assert.equal((await factsOf(page, ".file-head")).Protection, "encrypted, signed, not verified");
    await page.fill("#identity", await readFile(other, "utf8"));
    await page.click("button:text-is('Decrypt with key')");
    await page.waitForSelector("#protection .problem code:text-is('ac-decryption')");
    await page.fill("#identity", await readFile(buyer, "utf8"));
    await page.click("button:text-is('Decrypt with key')");
    await page.waitForSelector("#predict .problem:has-text('check the signature first')");
    await page.fill("#signer", await readFile(`${maker}.pub`, "utf8"));
    await page.click("button:text-is('Verify the signature')");
    await page.waitForSelector("#protection .state.good:has-text('the given key')");
    await page.click("#predict summary");
    await page.fill("#predict textarea", "5.1,3.5,1.4,0.2");
    await page.click("button:text-is('Predict all rows')");
    await page.waitForSelector("#predict .answer:text-is('setosa')");
  }));

  test("a sealed file opens with its password, and its tensors are read out of it", () => visiting(async (page) => {
    const sealed = join(scratch, "locked.sealed");
    apr(["seal", sample("tiny-llama.gguf"), "-o", sealed, "--password-file", passwordFile()]);
    await choose(page, sealed);
    await opened(page, "locked.sealed");
    await page.fill("#password", "open sesame");
    await page.click("button:text-is('Decrypt with password')");
    await page.waitForSelector("#tensors");
    const inside = await tensor(page, "ffn_up.weight");
    await example(page, "tiny-llama.gguf");
    assert.deepEqual(await tensor(page, "ffn_up.weight"), inside);
  }));

  test("a signature beside the file is checked", () => visiting(async (page) => {
    const [key, path] = [join(scratch, "release.key"), join(scratch, "release.safetensors")];
    await writeFile(path, known());
    apr(["keygen", "sign", "-o", key]);
    apr(["sign", path, "--key", key]);
    const check = async () => {
      await page.click("#protection details summary");
      await page.fill("#detached", await readFile(`${path}.minisig`, "utf8"));
      await page.fill("#detached-key", await readFile(`${key}.pub`, "utf8"));
      await page.click("#protection details button");
    };
    await choose(page, path);
    await opened(page, "release.safetensors");
    await check();
    await page.waitForSelector("#protection details .state.good");
    const changed = known();
    changed[changed.length - 1] ^= 1;
    await drop(page, "changed.safetensors", changed);
    await opened(page, "changed.safetensors");
    await check();
    await page.waitForSelector("#protection details .problem code");
  }));

  test("a signature counts with the right key alone", () => visiting(async (page) => {
    await example(page, "signed.sealed");
    assert.match((await factsOf(page, ".file-head")).Protection, /signed, not verified/);
    const key = (await readFile(sample("signed.key.pub"), "utf8")).trim();
    const other = apr(["keygen", "sign", "-o", join(scratch, "other.key"), "--json"]);
    await page.fill("#signer", JSON.parse(other).public_key ?? await readFile(join(scratch, "other.key.pub"), "utf8"));
    await page.click("button:text-is('Verify the signature')");
    await page.waitForSelector("#protection .problem code");
    await page.fill("#signer", key);
    await page.click("button:text-is('Verify the signature')");
    await page.waitForSelector("#protection .state.good:has-text('the given key')");
    assert.equal((await factsOf(page, ".file-head")).Protection, "not encrypted, signature verified");
    await picture(page, "signed");
  }));
});

let password = null;

/** A file with the password of the example, readable by its owner only. */
function passwordFile() {
  password ??= join(scratch, "password");
  writeFileSync(password, "open sesame\n", { mode: 0o600 });
  return password;
}

describe("a URL", () => {
  let other;
  let size;
  before(async () => {
    size = await huge(join(scratch, "huge.safetensors"), 2, 64);
    other = await serve(scratch, { cors: true });
  });
  after(() => other?.close());

  test("of a file of 2 GiB is inspected by reading less than 1 MiB", async () => {
    const url = `${other.url}huge.safetensors`;
    await visiting(async (page) => {
      await opened(page, "huge.safetensors");
      const facts = await factsOf(page, ".file-head");
      assert.equal(facts.Tensors, "65");
      const [, read, whole] = /\(([\d,]+) of ([\d,]+) bytes\)/.exec(facts["Read so far"]).map((text) => Number(text.replaceAll(",", "")));
      assert.equal(whole, size);
      assert.equal(read, other.state.sent, "the bytes shown are those the server sent");
      assert.ok(read < 1 << 20, `${read} bytes`);
      assert.match(await page.textContent("#promise"), new RegExp(`may connect to ${new URL(url).origin};`));
      await picture(page, "url");

      const first = await tensor(page, "first.weight");
      assert.equal(first.Mean, "499.5");
      await page.click(".tree .row.group");
      await page.keyboard.press("ArrowRight");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await page.click("#tensor button:has-text('for the histogram')");
      await page.waitForSelector("#tensor .note:has-text('From a sample')");
      assert.ok(other.state.sent < 8 << 20, `${other.state.sent} bytes`);
    }, { search: `?url=${encodeURIComponent(url)}`, servers: [other.url] });
  });

  test("is all the page may connect to, in the page and in its worker", async () => {
    const third = await serve(scratch, { cors: true });
    const attempt = (url) => fetch(url).then(() => "connected", () => "refused");
    const refused = { complains: [/Content Security Policy/, /Fetch API cannot load/] };
    try {
      await visiting(async (page) => {
        await opened(page, "huge.safetensors");
        assert.equal(await page.evaluate(attempt, `${other.url}huge.safetensors?`), "connected");
        assert.equal(await page.evaluate(attempt, third.url), "refused");
        assert.ok(page.workers().length > 0);
        for (const worker of page.workers()) assert.equal(await worker.evaluate(attempt, third.url), "refused");
      }, { search: `?url=${encodeURIComponent(`${other.url}huge.safetensors`)}`, servers: [other.url], ...refused });
      await visiting(async (page) => {
        await example(page, "iris.apr");
        assert.equal(await page.evaluate(attempt, other.url), "refused");
        for (const worker of page.workers()) assert.equal(await worker.evaluate(attempt, other.url), "refused");
      }, refused);
      assert.deepEqual(third.state.requests, []);
    } finally {
      await third.close();
    }
  });

  test("that leads to another server is refused, until the visitor allows that", async () => {
    const third = await serve(scratch, { cors: true });
    const leading = await serve(scratch, { cors: true, moved: third.url });
    try {
      await visiting(async (page) => {
        await page.waitForSelector("#problem dd code:text-is('aw-network')");
        const again = new URL(await page.getAttribute("#problem a", "href"));
        assert.equal(again.searchParams.get("redirects"), "any");
        await page.goto(again.href);
        assert.match(await page.textContent("#promise"), /may connect to any https server/);
      }, { search: `?url=${encodeURIComponent(`${leading.url}moved/huge.safetensors`)}`, servers: [leading.url, third.url], complains: [/Content Security Policy/, /Fetch API cannot load/] });
      assert.deepEqual(third.state.requests, []);
    } finally {
      await Promise.all([leading.close(), third.close()]);
    }
  });

  test("that cannot be read is an error with a way out", () => visiting(async (page) => {
    await page.waitForSelector("#problem .problem");
    assert.match(await page.textContent("#problem"), /may connect to http:\/\/127\.0\.0\.1:\d+ and to its own server only/);
    await example(page, "iris.apr");
    assert.equal(await page.textContent("#problem"), "");
  }, { search: `?url=${encodeURIComponent(`${other.url}missing.gguf`)}`, servers: [other.url], complains: [/404/] }));
});

describe("the page itself", () => {
  test("keeps the model of the demonstration, and works without a network", () => visiting(async (page, context) => {
    await page.waitForSelector("#demo-form .fields");
    assert.equal(await page.textContent("#demo-cache"), "");
    await page.waitForSelector("#offline:has-text('works offline')");
    await page.reload();
    await page.waitForSelector("#demo-form .fields");
    assert.match(await page.textContent("#demo-cache"), /cache/);
    await context.setOffline(true);
    await site.close();
    try {
      await page.reload();
      await page.click("#demo button:text-is('Predict')");
      await page.waitForSelector("#demo .answer");
      assert.equal(await page.textContent("#demo .answer"), apr(["predict", sample("iris.apr"), "--input", "-"], "6.1,2.8,4.9,1.7").trim());
      await example(page, "tiny-llama.gguf");
      await tensor(page, "ffn_up.weight");
    } finally {
      site = await serve(PAGE);
    }
  }));

  test("is updated when no other tab uses the version before", async () => {
    const folder = join(scratch, "updated");
    await cp(PAGE, folder, { recursive: true });
    const updated = await serve(folder);
    const { page, context } = await visit(browser, updated.url);
    try {
      await page.waitForSelector("#offline:has-text('works offline')");
      const other = await context.newPage();
      await other.goto(updated.url);
      await other.waitForSelector("#offline:has-text('works offline')");
      const list = await readFile(join(folder, "files.js"), "utf8");
      await writeFile(join(folder, "files.js"), list.replace(/version: "/, 'version: "next-'));
      await writeFile(join(folder, "text.js"), `${await readFile(join(folder, "text.js"), "utf8")}\nglobalThis.isNext = true;\n`);
      await page.evaluate(async () => (await navigator.serviceWorker.ready).update());
      await page.click("#offline button:text-is('Update')");
      await page.waitForSelector("#offline:has-text('Close the other tabs')");
      // Both tabs have the files of the version before, also those that they have not loaded yet.
      for (const tab of [page, other]) {
        assert.equal(await tab.evaluate(async () => (await (await fetch("text.js")).text()).includes("isNext")), false);
      }
      await other.close();
      await Promise.all([page.waitForEvent("load"), page.click("#offline button:text-is('Update')")]);
      await page.waitForFunction(() => globalThis.isNext === true);
    } finally {
      await context.close();
      await updated.close();
    }
  });

  test("reads files in workers", () => visiting(async (page) => {
    await example(page, "iris.apr");
    assert.ok(page.workers().length > 0);
    assert.equal(await page.evaluate(() => performance.getEntriesByType("resource").some(({ name }) => name.endsWith(".wasm"))), false);
  }));

  test("follows the theme of the system, or what was chosen, also after a reload", () => visiting(async (page) => {
    const paper = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await paper();
    await page.emulateMedia({ colorScheme: "dark" });
    const dark = await paper();
    assert.notEqual(light, dark);
    await page.selectOption("#theme", "light");
    assert.equal(await paper(), light);
    await page.reload();
    assert.equal(await paper(), light);
    await page.selectOption("#theme", "system");
    assert.equal(await paper(), dark);
  }));

  test("fits into 360 pixels, with every example open", () => visiting(async (page) => {
    await fits(page);
    await picture(page, "narrow-start");
    for (const name of ["iris.apr", "network.safetensors", "tiny-llama.gguf", "locked.apr", "signed.sealed"]) {
      await example(page, name);
      await fits(page);
      if (name === "tiny-llama.gguf") {
        await tensor(page, "token_embd.weight");
        assert.ok(await page.locator(".tree .row[aria-selected=true] .shape").isVisible(), "the shape is under the name");
      }
      await fits(page);
      await picture(page, `narrow-${name}`);
    }
  }, { viewport: { width: 360, height: 740 } }));

  for (const colorScheme of ["light", "dark"]) {
    test(`has no fault that axe finds, ${colorScheme}`, () => visiting(async (page) => {
      const faults = async (where) => {
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => globalThis.axe.run());
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`), [], where);
      };
      await page.waitForSelector("#demo-form .fields");
      await page.click("#demo button:text-is('Predict')");
      await page.waitForSelector("#demo .answer");
      await faults("start");
      await picture(page, `start-${colorScheme}`);
      await example(page, "network.safetensors");
      await page.waitForSelector("#predict .fields");
      await predictRows(page, "#predict", "1,2,3,4\n5,6,7,8");
      await tensor(page, "layer_1_weights");
      await page.click("#tensor summary");
      await page.waitForSelector("#tensor .bins tbody tr");
      await faults("a model");
      await picture(page, `model-${colorScheme}`);
      await example(page, "locked.apr");
      await page.fill("#password", "wrong");
      await page.click("button:text-is('Decrypt with password')");
      await page.waitForSelector("#protection .problem");
      await faults("a refusal");
      await example(page, "tiny-llama.gguf");
      await page.click("#metadata button:has-text('entries')");
      await page.waitForSelector("#metadata .value.entries");
      await faults("a list of entries");
      await drop(page, "nothing.gguf", Buffer.from("not a model"));
      await page.waitForSelector("#problem .problem");
      await faults("an error");
    }, { colorScheme }));
  }
});

describe("hostile files", () => {
  test("cannot become markup or scripts: the policy refuses both", () => visiting(async (page) => {
    const attempt = (act) => page.evaluate(act).then(() => "done", () => "refused");
    assert.equal(await attempt(() => {
      document.createElement("p").innerHTML = "<b>text</b>";
    }), "refused");
    assert.equal(await attempt(() => {
      document.createElement("script").src = "app.js";
    }), "refused");
    assert.equal(await attempt(() => new Worker("worker.js")), "refused");
  }, { complains: [/requires 'Trusted/] }));

  test("are shown as text, whatever they say", () => visiting(async (page) => {
    const html = "<img src=x onerror=alert(1)><script>alert(2)</script>";
    const one = { dtype: "U8", shape: [1], data: Uint8Array.of(1) };
    const names = [html, "a\u202egnp.exe", "n".repeat(50_000), ".".repeat(300), "", "__proto__.constructor", "line\nfeed", "\u0301".repeat(200)];
    const bytes = safetensors(names.map((name) => ({ name, ...one })), { [html]: html, "bidi\u202e": "\u2066x\u2069", __proto__x: "1" });
    await drop(page, `${html}\u202e.safetensors`, bytes);
    await page.waitForFunction(() => !document.getElementById("file").hidden);
    assert.equal(await page.locator("#file img, #file script").count(), 0);
    assert.ok(await page.locator(".row .name", { hasText: "a\\u{202e}gnp" }).count() === 1);
    assert.ok((await page.textContent("#metadata")).includes(html));
    assert.ok(!(await page.textContent("#file")).includes("\u202e"));
    for (const row of await page.locator(".tree .row.leaf").all()) await row.click();
    await fits(page);
    await picture(page, "hostile");
  }, { viewport: { width: 360, height: 740 } }));

  test("are shown whatever their metadata look like", () => visiting(async (page) => {
    const plain = await readFile(new URL("../../../conformance/vectors/apr/a0100_linreg_none_plain.apr", import.meta.url));
    const word = (text) => [0xa0 | text.length, ...Buffer.from(text)];
    // `custom: { x: { preview: null, length: 1, type: "a" } }`, which is like the beginning of an array of a GGUF file.
    const value = [0x83, ...word("preview"), 0xc0, ...word("length"), 1, ...word("type"), ...word("a")];
    await drop(page, "like.apr", withMetadata(plain, [...word("custom"), 0x81, ...word("x"), ...value]));
    await opened(page, "like.apr");
    const keys = await page.locator("#metadata tbody th").allTextContents();
    assert.deepEqual(keys.filter((key) => key.startsWith("custom")), ["custom.x.length", "custom.x.preview", "custom.x.type"]);
    await page.waitForSelector("#predict .fields");
  }));

  test("are refused with code and help, and the next file opens", () => visiting(async (page) => {
    const whole = known();
    for (const [name, bytes] of [["cut.safetensors", whole.subarray(0, whole.length - 9)], ["empty.apr", Buffer.alloc(0)], ["text.txt", Buffer.from("hello, world, this is text")],
      ["long.safetensors", Buffer.concat([Buffer.from("ffffffffffffff7f", "hex"), Buffer.from("{}")])]]) {
      await drop(page, name, bytes);
      await page.waitForSelector(`#problem .problem dd code`);
      assert.match(await page.textContent("#problem dd code"), /^[a-z]+-[a-z-]+$/, name);
      await page.evaluate(() => document.getElementById("problem").replaceChildren());
    }
    await drop(page, "known.safetensors", whole);
    await opened(page, "known.safetensors");
  }));
});
