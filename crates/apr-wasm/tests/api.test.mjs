// The functions of the package: sources, errors, ranges, cache, workers, keys, traps.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { closeSync, mkdtempSync, openAsBlob, openSync, readFileSync, readSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { MODELS, OWNER, PACKAGE, TOOLS, VECTORS, inMemory, load, refusal, serve, sha256, vector, withChecksum } from "./support.mjs";

const api = await load();
await api.init();
const LINE = "apr/a0100_linreg.safetensors";

/** A safetensors file of these tensors, each a list of floats. */
function safetensors(tensors) {
  const header = {};
  let at = 0;
  for (const [name, values] of Object.entries(tensors)) {
    header[name] = { dtype: "F32", shape: [values.length], data_offsets: [at, (at += values.length * 4)] };
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padded = Math.ceil(text.length / 8) * 8;
  const file = new Uint8Array(8 + padded + at).fill(32, 8, 8 + padded);
  new DataView(file.buffer).setBigUint64(0, BigInt(padded), true);
  file.set(text, 8);
  const data = Object.values(tensors).flat();
  file.set(new Uint8Array(Float32Array.from(data).buffer), 8 + padded);
  return file;
}

test("a file from memory, a Blob, a Response, a path, a file URL and a server gives the same", async () => {
  const bytes = vector(LINE);
  const server = await serve(() => inMemory(bytes));
  const folder = mkdtempSync(join(tmpdir(), "apr-wasm-"));
  const path = join(folder, "model.safetensors");
  writeFileSync(path, bytes);
  const sources = [bytes, bytes.slice().buffer, new Blob([bytes]), new Response(bytes), pathToFileURL(path), path, pathToFileURL(path).href, await openAsBlob(path), server.url];
  for (const source of sources) {
    const file = await api.open(source);
    assert.equal(file.format, "safetensors");
    assert.equal(file.size, bytes.length);
    assert.deepEqual(file.tensors.map(({ name }) => name), ["coefficients", "intercept"]);
    assert.equal((await file.values("coefficients")).length, 3);
    assert.equal(file.notes.length, 0);
    file.close();
    assert.equal((await refusal(() => file.array("x"))).code, "aw-closed");
  }
  await server.close();
  rmSync(folder, { recursive: true });
});

test("aligned tensors in memory are views, others copies", async () => {
  const file = await api.open(safetensors({ a: [1, 2], b: [3] }));
  const { data, isView } = await file.tensor("a");
  assert.deepEqual([...data], [1, 2]);
  assert.equal(isView, true);
  const shifted = new Uint8Array(1000);
  const bytes = safetensors({ a: [1, 2], b: [3] });
  shifted.set(bytes, 1);
  const other = await (await api.open(shifted.subarray(1, 1 + bytes.length))).tensor("b");
  assert.deepEqual([[...other.data], other.isView], [[3], false]);
});

test("values of ranges are the same as those of the whole", async () => {
  const file = await api.open(vector("gguf/files/tiny_llama_Q4_K_M.gguf"));
  for (const { name, elements } of file.tensors) {
    const all = await file.values(name);
    const ranges = [[0, 1], [1, 300], [255, 257], [elements - 1, elements], [elements, elements]];
    for (const [start, end] of ranges.filter(([start]) => start <= elements)) {
      const some = await file.values(name, { start, end });
      assert.deepEqual(some, all.slice(start, Math.min(end, elements)), name);
    }
  }
  assert.equal((await refusal(() => file.values(file.tensors[0].name, { start: 5, end: 2 }))).code, "aw-usage");
  assert.equal((await refusal(() => file.values("no such"))).code, "aw-no-tensor");
  file.close();
});

test("refusals are typed, with code and place", async () => {
  const cut = vector(LINE).slice(0, 40);
  const error = await refusal(() => api.open(cut));
  assert.ok(error instanceof api.FormatError && error instanceof api.AprError && error instanceof Error);
  assert.equal(error.name, "FormatError");
  assert.ok(error.code.startsWith("st-"));
  const locked = await refusal(async () => (await api.open(vector("apr/a0100_linreg_none_password.apr"), { level: "compat" })).loadModel());
  assert.ok(locked instanceof api.ProtectionError && locked.help.includes("password"));
  const wrong = await refusal(() => api.open(vector("apr/a0100_linreg_none_password.apr"), { level: "compat", password: "no" }));
  assert.ok(wrong instanceof api.ProtectionError, wrong.code);
  assert.ok((await refusal(() => api.open(17))) instanceof api.UsageError);
  assert.ok((await refusal(() => api.open(cut, { level: "lax" }))) instanceof api.UsageError);
  assert.equal((await refusal(() => api.open(vector(LINE), { password: "x" }))).code, "ac-not-encrypted");
  assert.equal((await refusal(() => api.open(vector(LINE), { signer: "anyone" }))).code, "ac-not-signed");
});

test("what only native programs honour is said to be ignored", async () => {
  const file = await api.open(vector(LINE), { streaming: true, nativeAlignment: true });
  assert.deepEqual(file.notes.map(({ code }) => code), ["aw-ignored-streaming", "aw-ignored-native-alignment"]);
  const flagged = vector("apr/a0100_linreg_none_plain.apr");
  flagged[21] |= 0b0001_0100;
  const asked = await api.open(withChecksum(flagged));
  assert.deepEqual(asked.notes.map(({ code }) => code), ["aw-ignored-streaming", "aw-ignored-native-alignment"]);
  assert.equal((await asked.loadModel()).type, "LinearRegression");
});

test("2 GiB files are inspected with less than 1 MiB read", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "apr-wasm-"));
  const gib2 = 2 ** 31;
  const large = {
    "/large.safetensors": () => {
      const text = new TextEncoder().encode(JSON.stringify(Object.fromEntries(Array.from({ length: 512 }, (_, idx) => [
        `layers.${idx}.weight`,
        { dtype: "F32", shape: [1024, 1024], data_offsets: [idx * 2 ** 22, (idx + 1) * 2 ** 22] },
      ]))));
      const head = new Uint8Array(8 + text.length);
      new DataView(head.buffer).setBigUint64(0, BigInt(text.length), true);
      head.set(text, 8);
      return { head, length: head.length + gib2 };
    },
    "/large.gguf": () => {
      const small = vector("gguf/files/tiny_llama_f32.gguf");
      return { head: ggufOf(512, small), length: null };
    },
  };
  const sizes = {};
  for (const [name, make] of Object.entries(large)) {
    const { head, length } = make();
    const path = join(folder, name.slice(1));
    writeFileSync(path, head);
    truncateSync(path, length ?? Math.ceil(head.length / 32) * 32 + gib2);
    sizes[name] = path;
  }
  const handles = Object.fromEntries(Object.entries(sizes).map(([name, path]) => [name, openSync(path, "r")]));
  const server = await serve((url) => {
    const handle = handles[url];
    if (handle === undefined) return null;
    return {
      size: statSync(sizes[url]).size,
      read: (start, end) => {
        const bytes = Buffer.alloc(end - start);
        readSync(handle, bytes, 0, bytes.length, start);
        return bytes;
      },
    };
  });
  for (const name of Object.keys(large)) {
    const before = server.log.sent;
    const requests = server.log.requests.length;
    const file = await api.open(server.url + name.slice(1));
    assert.ok(file.size >= gib2);
    assert.equal(file.tensors.length, 512);
    const sent = server.log.sent - before;
    console.log(`${name.slice(1)}: ${file.size} bytes, inspected with ${sent} bytes in ${server.log.requests.length - requests} requests`);
    assert.ok(sent < 2 ** 20);
    assert.equal(file.bytesRead, sent);
    const values = await file.values(file.tensors[511].name, { start: 1000, end: 1010 });
    assert.deepEqual([...values], Array(10).fill(0));
    assert.ok(server.log.sent - before < 2 ** 20);
    file.close();
  }
  await server.close();
  Object.values(handles).forEach((handle) => closeSync(handle));
  rmSync(folder, { recursive: true });
});

/** The head of a GGUF file with so many tensors of 4 MiB, and a vocabulary. */
function ggufOf(count) {
  const parts = [];
  const u32 = (value) => parts.push(Buffer.from(Uint32Array.of(value).buffer));
  const u64 = (value) => parts.push(Buffer.from(BigUint64Array.of(BigInt(value)).buffer));
  const text = (value) => {
    u64(Buffer.byteLength(value));
    parts.push(Buffer.from(value));
  };
  parts.push(Buffer.from("GGUF"));
  u32(3);
  u64(count);
  u64(2);
  text("general.architecture");
  u32(8);
  text("llama");
  text("tokenizer.ggml.tokens");
  u32(9);
  u32(8);
  u64(20_000);
  for (let idx = 0; idx < 20_000; idx += 1) text(`token${idx}`);
  for (let idx = 0; idx < count; idx += 1) {
    text(`blk.${idx}.weight`);
    u32(2);
    u64(1024);
    u64(1024);
    u32(0);
    u64(idx * 2 ** 22);
  }
  return Buffer.concat(parts);
}

test("ranges: a changed file, no ranges, failing servers, time-outs, an ended request", async () => {
  const bytes = safetensors({ a: Array.from({ length: 100_000 }, (_, idx) => idx) });
  let tag = '"one"';
  const server = await serve(() => inMemory(bytes), { etag: () => tag });
  const file = await api.open(server.url);
  assert.equal((await file.values("a", { start: 50_000, end: 50_001 }))[0], 50_000);
  assert.equal(server.log.requests.at(-1).ifRange, '"one"');
  tag = '"two"';
  assert.equal((await refusal(() => file.values("a", { start: 90_000, end: 90_001 }))).code, "aw-changed");
  await server.close();

  const plain = await serve(() => inMemory(bytes), { ranges: false });
  const whole = await api.open(plain.url);
  assert.deepEqual(whole.notes.map(({ code }) => code), ["aw-no-ranges"]);
  assert.equal((await whole.values("a", { start: 99_999 }))[0], 99_999);
  assert.equal((await refusal(() => api.open(plain.url, { maxBytes: 1000 }))).code, "aw-too-large");
  await plain.close();

  let failures = 1;
  const failing = await serve(() => inMemory(bytes), {
    respond: (request, response) => {
      if (request.url === "/gone") return response.writeHead(404).end();
      if (request.url === "/silent") return true;
      if (request.url === "/cut") {
        response.writeHead(206, { "content-range": `bytes 0-99/1000`, "content-length": 100 });
        response.write(Buffer.alloc(10));
        setTimeout(() => response.destroy(), 10);
        return true;
      }
      if (failures-- > 0) return response.writeHead(503).end();
      return false;
    },
  });
  assert.equal((await api.open(failing.url)).tensors.length, 1);
  const gone = await refusal(() => api.open(`${failing.url}gone`));
  assert.ok(gone instanceof api.NetworkError);
  assert.deepEqual([gone.code, gone.status], ["aw-http", 404]);
  assert.equal((await refusal(() => api.open(`${failing.url}silent`, { timeout: 50 }))).code, "aw-timeout");
  assert.equal((await refusal(() => api.open(`${failing.url}cut`))).code, "aw-network");
  const controller = new AbortController();
  const pending = refusal(() => api.open(`${failing.url}silent`, { signal: controller.signal }));
  controller.abort();
  assert.equal((await pending).code, "aw-aborted");
  await failing.close();
  assert.equal((await refusal(() => api.open(failing.url))).code, "aw-network");
});

test("a server that sends more, or from another place, than it was asked for", async () => {
  const bytes = safetensors({ a: Array.from({ length: 100_000 }, (_, idx) => idx) });
  const endless = (response) => {
    const piece = Buffer.alloc(1 << 16);
    const more = () => {
      while (!response.destroyed && response.write(piece)) more.sent += piece.length;
      if (!response.destroyed) response.once("drain", more);
    };
    more.sent = 0;
    more();
    return more;
  };
  let bodies = 0;
  let stream;
  const server = await serve(() => inMemory(bytes), {
    respond: ({ url, headers }, response) => {
      const [, start] = /^bytes=(\d+)-/.exec(headers.range) ?? [];
      if (url === "/long" || (url === "/later" && start !== "0")) {
        response.writeHead(206, { etag: '"v1"', "content-range": `bytes ${start}-${Number(start) + 65_535}/${bytes.length}` });
      } else if (url === "/empty") {
        response.writeHead(416, { "content-range": `bytes */${bytes.length}` });
      } else if (url === "/elsewhere") {
        response.writeHead(206, { "content-range": `bytes 8-65543/${bytes.length}` });
        return response.end(bytes.subarray(8, 65_544));
      } else if (url === "/declared") {
        response.writeHead(206, { "content-range": `bytes 0-65535/${bytes.length}`, "content-length": 70_000 });
        return response.end(Buffer.alloc(70_000));
      } else if (url === "/compressed" && headers.range !== undefined) {
        response.writeHead(206, { "content-range": `bytes 0-65535/${bytes.length}`, "content-encoding": "identity, identity" });
      } else {
        return false;
      }
      bodies += 1;
      stream = endless(response);
      return true;
    },
  });
  const code = async (work) => (await refusal(work))?.code;
  const open = (path) => api.open(server.url + path, { timeout: 5000 });
  assert.equal(await code(() => open("long")), "aw-http");
  assert.equal(await code(() => open("declared")), "aw-http");
  assert.equal(await code(() => open("elsewhere")), "aw-http");
  // Nothing is in the file that a server says to be empty.
  assert.notEqual(await refusal(() => open("empty")), null);
  const file = await open("later");
  assert.equal(await code(() => file.values("a", { start: 50_000, end: 50_001 })), "aw-http");
  assert.deepEqual((await open("compressed")).notes.map(({ code }) => code), ["aw-no-ranges"]);
  assert.equal(bodies, 4);
  assert.ok(stream.sent < 64 << 20, `${stream.sent} bytes of a body without an end`);
  await server.close();
});

test("tensors of a remote file are copies", async () => {
  const bytes = safetensors({ a: [1, 2], b: [3] });
  const server = await serve(() => inMemory(bytes));
  const file = await api.open(server.url);
  const { data, isView } = await file.tensor("a");
  assert.deepEqual([[...data], isView], [[1, 2], false]);
  data.fill(7);
  (await file.bytes("b")).fill(0xff);
  assert.deepEqual([...(await file.values("a")), ...(await file.values("b"))], [1, 2, 3]);
  await server.close();
});

test("bytes and numbers of every kind, and what is neither", async () => {
  const floats = Float32Array.from({ length: 32 }, (_, idx) => idx - 16);
  const blocks = api.quantize("q8_0", floats);
  const weights = Float32Array.from({ length: 32 }, (_, idx) => idx + 1);
  for (const values of [Float64Array.from(floats), Int8Array.from(floats), [...floats]]) {
    assert.deepEqual(api.quantize("q8_0", values), blocks);
    assert.deepEqual(api.quantize("q4_0", values, { importance: [...weights] }), api.quantize("q4_0", floats, { importance: weights }));
  }
  for (const values of [floats.buffer, new DataView(floats.buffer), BigInt64Array.from([1n]), "1".repeat(32), Array(32).fill("1"), null, 7]) {
    assert.equal((await refusal(async () => api.quantize("q8_0", values)))?.code, "aw-usage");
    if (values !== null) assert.equal((await refusal(async () => api.quantize("q8_0", floats, { importance: values })))?.code, "aw-usage");
  }
  const expected = api.dequantize("q8_0", blocks, 32);
  for (const bytes of [blocks.slice().buffer, new DataView(blocks.slice().buffer), new Uint16Array(blocks.slice().buffer)]) {
    assert.deepEqual(api.dequantize("q8_0", bytes, 32), expected);
  }
  const { publicKey } = api.generateKeys("encrypt");
  for (const bytes of [[...blocks], null, 7, {}]) {
    assert.equal((await refusal(async () => api.dequantize("q8_0", bytes, 32)))?.code, "aw-usage");
    assert.equal((await refusal(async () => api.encryptForModel(bytes, publicKey)))?.code, "aw-usage");
  }
});

test("models: every shape of rows, and what is no row", async () => {
  const model = await api.loadModel(vector("apr/a0100_linreg_none_plain.apr"));
  const expected = [...model.predict([[1, 2, 3], [4, 5, 6]])];
  assert.deepEqual([...model.predict(Float32Array.of(1, 2, 3, 4, 5, 6))], expected);
  assert.deepEqual([...model.predict([1, 2, 3, 4, 5, 6])], expected);
  assert.deepEqual([...model.predict([Float32Array.of(1, 2, 3), Float32Array.of(4, 5, 6)])], expected);
  assert.equal((await refusal(async () => model.predict([[1, 2]]))).code, "am-feature-count");
  assert.equal((await refusal(async () => model.predict([1, 2]))).code, "am-feature-count");
  assert.equal((await refusal(async () => model.predict([[1, 2, "3"]]))).code, "aw-usage");
  assert.equal((await refusal(async () => model.predictProba([[1, 2, 3]]))).code, "aw-no-prediction");
  // An element that is not there is a missing value, as one that is undefined.
  const outcome = async (row) => {
    let found;
    const error = await refusal(async () => (found = [...model.predict([row])]));
    return error?.code ?? found;
  };
  assert.notDeepEqual(await outcome([1, NaN, 3]), await outcome([1, 0, 3]));
  for (const row of [[1, undefined, 3], [1, null, 3], [1, , 3], Object.assign([1, NaN], { length: 3, 2: 3 })]) {
    assert.deepEqual(await outcome(row), await outcome([1, NaN, 3]));
  }
  model.free();
  assert.equal((await refusal(async () => model.predict([[1, 2, 3]]))).code, "aw-closed");
  const texts = await api.loadModel(new Uint8Array(readFileSync(join(MODELS, "pipelines/texts.apr"))));
  assert.equal(texts.takesText, true);
  assert.equal(texts.predict("some text").length, 1);
  assert.equal(model.terms, null);
});

test("a cache in IndexedDB: kept, compared, replaced, evicted, offline, absent", async () => {
  const bytes = vector("apr/a0100_linreg_none_plain.apr");
  const server = await serve(() => inMemory(bytes));
  const codes = (model) => model.notes.map(({ code }) => code);
  assert.deepEqual(codes(await api.loadCached("line", server.url)), ["aw-cache-none"]);

  const require = createRequire(join(TOOLS, "package.json"));
  const { IDBFactory } = require("fake-indexeddb");
  globalThis.indexedDB = new IDBFactory();
  try {
    const fetched = server.log.requests.length;
    assert.deepEqual(codes(await api.loadCached("line", server.url)), []);
    assert.ok(server.log.requests.length > fetched);
    const kept = server.log.requests.length;
    assert.deepEqual(codes(await api.loadCached("line", server.url)), ["aw-cached"]);
    assert.equal(server.log.requests.length, kept);
    const [entry] = await api.cache.list();
    assert.deepEqual([entry.key, entry.size, entry.sha256], ["line", bytes.length, sha256(bytes)]);

    // The stored copy is modified.
    const database = await new Promise((resolve) => (globalThis.indexedDB.open("apr-wasm").onsuccess = ({ target }) => resolve(target.result)));
    const transaction = database.transaction("bytes", "readwrite");
    const changed = bytes.slice();
    changed[40] ^= 1;
    transaction.objectStore("bytes").put(changed.buffer, "line");
    await new Promise((resolve) => (transaction.oncomplete = resolve));
    assert.deepEqual(codes(await api.loadCached("line", server.url)), ["aw-cache-damaged"]);
    assert.deepEqual(codes(await api.loadCached("line", server.url)), ["aw-cached"]);

    assert.equal((await refusal(() => api.loadCached("line", server.url, { sha256: "00" }))).code, "aw-content");
    await api.loadCached("line", server.url, { sha256: sha256(bytes) });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const second = await api.loadCached("second", server.url, { maxCacheBytes: bytes.length + 10 });
    assert.deepEqual(codes(second), ["aw-cache-evicted"]);
    assert.deepEqual((await api.cache.list()).map(({ key }) => key), ["second"]);
    assert.deepEqual(codes(await api.loadCached("third", server.url, { maxCacheBytes: 10 })), ["aw-cache-full"]);

    await server.close();
    assert.deepEqual(codes(await api.loadCached("second", server.url)), ["aw-cached"]);
    await api.cache.remove("second");
    assert.equal(await api.cache.size(), 0);
    await api.cache.clear();
    database.close();
  } finally {
    delete globalThis.indexedDB;
  }
});

test("keys, and a request to a model's owner", async () => {
  const sign = api.generateKeys("sign");
  const encrypt = api.generateKeys("encrypt");
  assert.ok(sign.publicKey.startsWith("apr-verify-1") && encrypt.publicKey.startsWith("apr-public-1"));
  assert.notEqual(api.generateKeys("sign").secretKey, sign.secretKey);
  const { request, decryptResponse } = api.encryptForModel("37.2 0.8", encrypt.publicKey, { context: "risk 3" });
  assert.equal(String.fromCharCode(...request.subarray(0, 7)), "apr-ask");
  assert.equal((await refusal(async () => decryptResponse(request))).code, "cy-message");
  assert.equal((await refusal(async () => api.encryptForModel("x", sign.publicKey))).code, "cy-key-kind");
});

test("a request that is freed decrypts nothing, nor does one that has the same number", async () => {
  const { publicKey, secretKey } = api.generateKeys("encrypt");
  const path = join(VECTORS, "apr/a0100_linreg_none_plain.apr");
  const ask = () => api.encryptForModel(Float32Array.of(1, 2, 3), publicKey, { context: "x" });
  const answer = ({ request }) => spawnSync(OWNER, [secretKey, path, "x"], { input: request }).stdout;
  const first = ask();
  first.decryptResponse(answer(first));
  const second = ask();
  const response = answer(second);
  assert.equal((await refusal(async () => first.decryptResponse(response)))?.code, "aw-closed");
  first.free();
  assert.equal(second.decryptResponse(response).length, 4);
  const third = ask();
  third.free();
  third.free();
  assert.equal((await refusal(async () => third.decryptResponse(response)))?.code, "aw-closed");
});

test("a request to a model's owner is answered, in private", async () => {
  const { publicKey, secretKey } = api.generateKeys("encrypt");
  const path = join(VECTORS, "apr/a0100_linreg_none_plain.apr");
  const model = await api.loadModel(vector("apr/a0100_linreg_none_plain.apr"));
  const features = Float32Array.from({ length: model.inputs }, (_, at) => at + 0.5);
  const ask = (context) => api.encryptForModel(features, publicKey, { context });
  const answer = (input, context) => spawnSync(OWNER, [secretKey, path, context], { input });

  const { request, decryptResponse } = ask("risk 3");
  const { status, stdout, stderr } = answer(request, "risk 3");
  assert.equal(status, 0, String(stderr));
  const bytes = decryptResponse(stdout);
  assert.deepEqual(new Float32Array(bytes.slice().buffer), model.predict([features]));
  for (const message of [request, stdout]) assert.equal(Buffer.from(message).includes(Buffer.from(features.buffer)), false);

  const other = ask("risk 3");
  assert.equal((await refusal(async () => other.decryptResponse(stdout))).code, "cy-open", "the answer to another request");
  const changed = Uint8Array.from(stdout);
  changed[changed.length - 1] ^= 1;
  assert.equal((await refusal(async () => ask("risk 3").decryptResponse(changed))).code, "cy-open");
  assert.notEqual(answer(request, "risk 4").status, 0, "another context");
});

test("in a worker", async () => {
  const source = `
    import { parentPort, workerData } from "node:worker_threads";
    const { loadModel } = await import(workerData.url);
    const model = await loadModel(workerData.bytes);
    parentPort.postMessage([...model.predict([[1, 2, 3]])]);
  `;
  const url = new URL(`data:text/javascript,${encodeURIComponent(source)}`);
  const worker = new Worker(url, { workerData: { url: pathToFileURL(join(PACKAGE, "index.js")).href, bytes: vector("apr/a0100_linreg_none_plain.apr") } });
  const answer = await new Promise((resolve, reject) => worker.on("message", resolve).on("error", reject));
  const model = await api.loadModel(vector("apr/a0100_linreg_none_plain.apr"));
  assert.deepEqual(answer, [...model.predict([[1, 2, 3]])]);
  await worker.terminate();
});

test("the small module reads plain files and says what it lacks", async () => {
  const core = await load("core.js");
  const { features } = await core.init();
  assert.deepEqual(features, []);
  assert.equal((await core.loadModel(vector("apr/a0100_linreg_none_plain.apr"))).type, "LinearRegression");
  assert.equal((await core.open(vector(LINE))).tensors.length, 2);
  const { model, notes, tensors } = await core.open(vector("apr/a0100_linreg_none_plain.apr"));
  assert.deepEqual([model.type, tensors.length, notes.map(({ code }) => code)], ["LinearRegression", 0, ["aw-feature"]]);
  for (const name of ["gguf/files/tiny_llama_f32.gguf"]) {
    assert.equal((await refusal(() => core.open(vector(name)))).code, "aw-feature");
  }
  assert.equal((await refusal(async () => core.generateKeys("sign"))).code, "aw-feature");
  assert.equal((await refusal(async () => core.quantize("q8_0", new Float32Array(32)))).code, "aw-feature");
});

test("a module that traps is made anew", async () => {
  const { Engine, Operation, Question } = await load("engine.js");
  const module = await WebAssembly.compile(readFileSync(join(PACKAGE, "wasm/apr-core.wasm")));
  const { exports } = await WebAssembly.instantiate(module, {});
  let traps = false;
  // A stack overflow is a RangeError in V8 and JavaScriptCore, and an InternalError in SpiderMonkey, which Node.js has no class for.
  const overflow = Object.assign(new Error("too much recursion"), { name: "InternalError" });
  for (const error of [new WebAssembly.RuntimeError("unreachable"), new RangeError("Maximum call stack size exceeded"), overflow]) {
    for (const name of ["apr_alloc", "apr_call", "apr_answer", "apr_done"]) {
      const stop = () => {
        throw error;
      };
      traps = false;
      const engine = new Engine({ exports: { ...exports, [name]: (argument) => (traps ? stop() : exports[name](argument)) } });
      traps = true;
      assert.equal((await refusal(async () => engine.call(Operation.About, new Question()))).code, "aw-trap");
      traps = false;
      assert.equal((await refusal(async () => engine.call(Operation.About, new Question()))).code, "aw-trap");
    }
  }
});

test("questions that nobody asks are refused, and no byte of one stops the module", async () => {
  const { Engine, Question } = await load("engine.js");
  const module = await WebAssembly.compile(readFileSync(join(PACKAGE, "wasm/apr-full.wasm")));
  const engine = new Engine(await WebAssembly.instantiate(module, {}));
  let seed = 1;
  const next = () => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0);
  for (let round = 0; round < 20_000; round += 1) {
    const bytes = Uint8Array.from({ length: (next() >>> 16) % 40 }, () => ((next() >>> 16) % 3 === 0 ? next() >>> 16 : 0));
    try {
      engine.call((next() >>> 16) % 22, new Question().raw(bytes));
    } catch (error) {
      assert.ok(typeof error.code === "string" && error.code !== "aw-trap", String(error));
    }
  }
});
