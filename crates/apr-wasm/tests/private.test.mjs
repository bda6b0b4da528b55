// Private inference: the package against `apr serve` over loopback, and what lies between them.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PROGRAM, VECTORS, load, refusal, vector } from "./support.mjs";

const api = await load();
const MODEL = "apr/a0100_linreg_none_plain.apr";
const ROWS = [[1, 2, 3], [0.5, -1, 0]];
const folder = mkdtempSync(join(tmpdir(), "apr-private-"));
const text = (name) => readFileSync(join(folder, name), "utf8");
let server, url;

function apr(...args) {
  const { status, stderr } = spawnSync(PROGRAM, ["-q", ...args], { cwd: folder });
  assert.equal(status, 0, String(stderr));
}

before(async () => {
  for (const [kind, name] of [["sign", "maker"], ["sign", "stranger"], ["inference", "owner"], ["inference", "other"]]) {
    apr("keygen", kind, "-o", `${name}.key`);
  }
  apr("sign", join(VECTORS, MODEL), "--inside", "--inference-key", "owner.key.pub", "--key", "maker.key", "-o", "signed.apr");
  apr("sign", "owner.key.pub", "--key", "maker.key", "--comment", "apr inference key");
  const keys = ["--signer", "maker.key.pub", "--inference-key", "owner.key", "--addr", "127.0.0.1:0"];
  server = spawn(PROGRAM, ["serve", "signed.apr", ...keys], { cwd: folder });
  url = await new Promise((resolve) => server.stdout.once("data", (line) => resolve(String(line).trim())));
});

after(() => {
  server?.kill();
  rmSync(folder, { recursive: true });
});

test("predictions are those of the model", async () => {
  const expected = [...(await api.loadModel(vector(MODEL))).predict(ROWS)];
  const signer = text("maker.key.pub");
  const copy = await api.open(new Uint8Array(readFileSync(join(folder, "signed.apr"))), { signer });
  for (const keys of [{ signer }, { signer: [text("stranger.key.pub"), signer] }, { key: text("owner.key.pub") }, { key: copy }]) {
    const found = await api.privatePredict(url, ROWS, keys);
    assert.deepEqual(found.map(Math.fround), expected);
  }
  const typed = await api.privatePredict(new URL(`${url}/private`), ROWS.map((row) => Float32Array.from(row)), { signer });
  assert.deepEqual(typed.map(Math.fround), expected);
});

test("no other key is used", async () => {
  const signer = text("maker.key.pub");
  const copy = () => new Uint8Array(readFileSync(join(folder, "signed.apr")));
  const unverified = await api.open(copy(), { allowUnverified: true });
  // Valid signatures, by whoever signed.
  const anyone = await api.open(copy(), { signer: "anyone" });
  const itself = await api.open(copy(), { allowUnverified: true });
  await itself.verify();
  for (const [keys, code] of [
    [{ signer: text("stranger.key.pub") }, "cy-signature"],
    [{ key: unverified }, "ac-signed"],
    [{ key: anyone }, "ac-signed"],
    [{ key: itself }, "ac-signed"],
    [{ key: text("other.key.pub") }, "sv-private"],
    [{ key: signer }, "cy-key-kind"],
    [{}, "aw-usage"],
    [{ key: text("owner.key.pub"), signer }, "aw-usage"],
  ]) {
    assert.equal((await refusal(() => api.privatePredict(url, ROWS, keys)))?.code, code, JSON.stringify(keys));
  }
  assert.equal((await refusal(() => api.privatePredict(`${url}?proba=true`, ROWS, { signer }))).code, "aw-usage");
  assert.equal((await refusal(() => api.privatePredict("http://127.0.0.1:9", ROWS, { signer }))).code, "aw-network");
});

test("errors about rows have their code", async () => {
  const key = text("owner.key.pub");
  assert.equal((await refusal(() => api.privatePredict(url, [[1]], { key }))).code, "sv-columns");
  assert.equal((await refusal(() => api.privatePredict(url, [[1, NaN, 1]], { key }))).code, "sv-number");
});

test("a proxy reads and forges nothing", async () => {
  let recorded, alter;
  const proxy = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    const body = Buffer.concat(parts);
    if (request.method === "POST") recorded = body;
    const sent = request.method === "POST" ? { method: "POST", body, headers: { "content-type": request.headers["content-type"] } } : {};
    const answer = await fetch(url + request.url, sent);
    const bytes = Buffer.from(await answer.arrayBuffer());
    response.writeHead(answer.status).end(request.method === "POST" && alter ? alter(bytes) : bytes);
  });
  await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const predict = () => api.privatePredict(`http://127.0.0.1:${proxy.address().port}`, ROWS, { signer: text("maker.key.pub") });
  try {
    assert.equal((await predict()).length, 2);
    assert.equal(recorded.includes("rows"), false);
    let kept;
    for (const change of [
      (bytes) => (bytes.writeUInt8(bytes.at(-1) ^ 1, bytes.length - 1), bytes),
      (bytes) => bytes.subarray(0, 40),
      (bytes) => ((kept = Buffer.from(bytes)), Buffer.concat([bytes, Buffer.of(0)])),
      () => kept,
    ]) {
      alter = change;
      assert.equal((await refusal(predict)).code, "cy-open");
    }
    const again = await fetch(`${url}/private`, { method: "POST", body: recorded, headers: { "content-type": "application/vnd.apr.private" } });
    assert.equal(again.status, 409);
    assert.equal((await again.json()).error.code, "cy-replay");
  } finally {
    proxy.close();
    proxy.closeAllConnections();
  }
});
