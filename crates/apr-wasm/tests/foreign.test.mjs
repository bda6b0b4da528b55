// Files of other programs: every vector by its sidecar, sources, errors, modules that are loaded when they are needed.

import assert from "node:assert/strict";
import { readFileSync, existsSync, openAsBlob, statSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { VECTORS, inMemory, load, refusal, serve, sha256, sidecars, vector } from "./support.mjs";

const { open, scan } = await load();
const IMPORT = join(VECTORS, "import");
/** Tensors whose bytes are in a file beside the file, which a page does not have; an index of TensorFlow is recognized by its end alone. */
const needsOthers = (file, { code }) => code === "ft-companion-missing" || (file.endsWith(".index") && code.startsWith("st-"));
/** What a sidecar allows in words. */
const MAY_ADD = { "torch/np_leaves.ckpt": "arr F32 2,3", "joblib/sk_logreg.joblib": "n_iter_ I32 1", "joblib/sk_logreg.pkl": "n_iter_ I32 1" };
/** Decoders that this build of the scanner does not have: what it cannot open is suspicious. */
const isUnopened = (report) => report.files[0].findings.some(({ message }) => /compressed with bzip2, xz, lzma or lz4/.test(message));

/** Begins as bzip2, xz, lzma and lz4 do. */
const isCompressedSo = (bytes) => /^(425a68|fd377a58|5d0000|04224d18)/.test(Buffer.from(bytes.subarray(0, 4)).toString("hex"));

/** Bytes of a vector: stored, or repeated as `generate` says. */
function bytesOf({ file, generate }) {
  if (!generate) return vector(join("import", file));
  return new Uint8Array(Buffer.concat(generate.flatMap(([hex, count]) => Array(count).fill(Buffer.from(hex, "hex")))));
}

const all = sidecars("import").filter(({ file, generate }) => generate || (existsSync(join(IMPORT, file)) && statSync(join(IMPORT, file)).isFile()));

test("every vector of other formats has the tensors of its sidecar, or is refused as it allows", async (t) => {
  const problems = [];
  const counts = { read: 0, refused: 0, elsewhere: 0 };
  for (const facts of all.filter(({ import: outcomes, format }) => Array.isArray(outcomes) && !["safetensors", "gguf"].includes(format))) {
    const problem = await imported(facts, counts);
    if (problem) problems.push(`${facts.file}: ${problem}`);
  }
  t.diagnostic(`${counts.read} read, ${counts.refused} refused, ${counts.elsewhere} need another file`);
  assert.ok(counts.read > 130 && counts.refused > 150 && counts.elsewhere < 20, JSON.stringify(counts));
  assert.deepEqual(problems, []);
});

async function imported(facts, counts) {
  const may = (outcome) => facts.import.includes(outcome);
  let file;
  const rows = [];
  try {
    file = await open(bytesOf(facts));
    for (const { name, dtype, shape } of file.tensors) rows.push(`${name} ${dtype} ${shape} ${sha256(await file.bytes(name))}`);
  } catch (error) {
    if (typeof error.code !== "string" || ["aw-trap", "aw-message", "aw-init"].includes(error.code)) return `${error.code} ${error.message}`;
    if (needsOthers(facts.file, error)) {
      counts.elsewhere += 1;
      return null;
    }
    counts.refused += 1;
    return may("refused") ? null : `refused: ${error.code} ${error.message}`;
  } finally {
    file?.close();
  }
  counts.read += 1;
  if (!may("ok") && !(may("ok-with-warnings") && file.warnings.length > 0)) return "accepted without a warning";
  const expected = (tensors) => (tensors ?? []).map(({ name, dtype, shape, sha256 }) => `${name} ${dtype} ${shape} ${sha256}`);
  const listed = expected(facts.tensors);
  const others = expected(facts.alternatives);
  if (listed.length + others.length === 0) return null;
  const found = new Set(rows);
  if (others.length > 0 && rows.length === others.length && others.every((row) => found.has(row))) return null;
  const known = new Set([...listed, ...others]);
  const missing = listed.filter((row) => !found.has(row));
  const more = rows.filter((row) => !known.has(row) && !row.startsWith(`${MAY_ADD[facts.file]} `));
  return missing.length + more.length === 0 ? null : `missing ${missing.join("; ")}, more ${more.join("; ")}`;
}

test("every vector has one of its verdicts, and the names that it must show", async (t) => {
  const problems = [];
  let unopened = 0;
  for (const facts of all) {
    const bytes = bytesOf(facts);
    const report = await scan(bytes, { name: basename(facts.file) });
    const { schema, verdict, files } = report;
    assert.equal(schema, "apr.scan/1");
    assert.equal(files[0].verdict, verdict);
    assert.equal(isUnopened(report), isCompressedSo(bytes), facts.file);
    if (isUnopened(report)) {
      unopened += 1;
      if (verdict === "safe") problems.push(`${facts.file}: safe, and not opened`);
      continue;
    }
    const may = facts.scan.includes(verdict) || (verdict === "safe" && facts.scan.includes("not-applicable"));
    if (!may) problems.push(`${facts.file}: ${verdict} ${JSON.stringify(files[0].findings)}`);
    const names = new Set(files[0].pickles.flatMap(({ names }) => names));
    for (const [module, name] of facts.globals ?? []) {
      if (!names.has(`${module}.${name}`)) problems.push(`${facts.file}: ${module}.${name} is missing`);
    }
  }
  t.diagnostic(`${all.length} files, ${unopened} of them compressed in a way that this build does not read`);
  assert.ok(all.length > 330 && unopened > 0, `${all.length}, ${unopened}`);
  assert.deepEqual(problems, []);
});

test("vectors give the same from ranges as from memory", async () => {
  const chosen = all.filter(({ import: outcomes, file }) => Array.isArray(outcomes) && statSync(join(IMPORT, file), { throwIfNoEntry: false })?.size > 0);
  for (const facts of chosen.filter((_, at) => at % 4 === 0)) {
    const bytes = bytesOf(facts);
    const results = [];
    for (const source of [bytes, new Blob([bytes]), { size: bytes.length, notes: [], read: async (at, length) => bytes.slice(at, at + length) }]) {
      const error = await refusal(async () => {
        const file = await open(source);
        results.push(JSON.stringify([file.format, file.tensors, file.metadata, file.warnings]));
        file.close();
      });
      if (error) results.push(`${error.code} ${error.message} ${error.offset}`);
      results.push(JSON.stringify(await scan(source, { name: "x" })));
    }
    assert.equal(new Set(results.filter((_, at) => at % 2 === 0)).size, 1, facts.file);
    assert.equal(new Set(results.filter((_, at) => at % 2 === 1)).size, 1, facts.file);
  }
});

test("a large checkpoint is read by ranges: its directory, its pickle, and the tensors that are asked for", async () => {
  const folder = mkdtempSync(join(tmpdir(), "apr-wasm-"));
  after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, "large.npz");
  const size = 96 * 1024 * 1024;
  writeFileSync(path, stored([["first.npy", npy(new Float32Array([1, 2, 3]))], ["large.npy", npy(new Float32Array(size / 4).fill(0.5))], ["last.npy", npy(new Float32Array([4, 5]))]]));
  const file = await open(await openAsBlob(path));
  assert.deepEqual(file.tensors.map(({ name, dtype, shape }) => [name, dtype, shape]), [["first", "F32", [3]], ["large", "F32", [size / 4]], ["last", "F32", [2]]]);
  assert.deepEqual([...(await file.values("last"))], [4, 5]);
  assert.deepEqual([...(await file.values("large", { start: 1_000_000, end: 1_000_003 }))], [0.5, 0.5, 0.5]);
  assert.ok(file.bytesRead < 1024 * 1024, `${file.bytesRead} bytes of ${file.size} were read`);
  file.close();
  const report = await scan(await openAsBlob(path), { name: "large.npz" });
  assert.equal(report.verdict, "safe");
  const server = await serve(() => inMemory(readFileSync(path)));
  const remote = await open(`${server.url}large.npz`);
  assert.deepEqual([...(await remote.values("last"))], [4, 5]);
  assert.ok(server.log.sent < 1024 * 1024, `${server.log.sent} bytes were sent`);
  remote.close();
  await server.close();
});

test("a second name is a tensor with the name of the first", async () => {
  const found = [];
  for (const facts of all.filter(({ file }) => file.startsWith("torch/"))) {
    const error = await refusal(async () => {
      const file = await open(bytesOf(facts));
      found.push(...file.tensors.filter(({ aliasOf }) => aliasOf !== undefined));
      for (const { name, aliasOf } of file.tensors.filter(({ aliasOf }) => aliasOf !== undefined)) {
        assert.equal(sha256(await file.bytes(name)), sha256(await file.bytes(aliasOf)), facts.file);
      }
      file.close();
    });
    assert.ok(error === null || error.code !== "aw-trap");
  }
  assert.ok(found.length > 0);
});

test("what a file of another program has not is an error with a code", async () => {
  const { file: name } = all.find(({ file, import: outcomes }) => file.startsWith("torch/") && outcomes?.length === 1 && outcomes[0] === "ok");
  const file = await open(vector(join("import", name)));
  assert.equal((await refusal(() => file.loadModel())).code, "mo-no-model");
  assert.equal((await refusal(() => file.verify())).code, "aw-nothing-to-verify");
  assert.equal((await refusal(() => file.values("no such tensor"))).code, "aw-no-tensor");
  assert.equal((await refusal(() => open(vector(join("import", name)), { password: "x" }))).code, "ac-not-encrypted");
  file.close();
  const page = await refusal(() => open(new TextEncoder().encode("<!doctype html><html></html>")));
  assert.deepEqual([page.code, page.format], ["aw-foreign-format", "web-page"]);
});

test("a name that the caller trusts is not reported", async () => {
  const pickle = new TextEncoder().encode("cpackage.module\nName\n.");
  assert.equal((await scan(pickle)).verdict, "suspicious");
  assert.equal((await scan(pickle, { allow: ["package.module.Name"] })).verdict, "safe");
  assert.equal((await scan(new TextEncoder().encode("import os\n"), { name: "model.py" })).verdict, "suspicious");
  assert.equal((await scan(new TextEncoder().encode("cos\nsystem\n(S'id'\ntR."))).verdict, "dangerous");
});

test("modules are loaded when they are needed, from where the caller says", async () => {
  const fresh = await load("index.js", "?modules");
  const compile = WebAssembly.compile;
  const compiled = [];
  WebAssembly.compile = (bytes) => (compiled.push(bytes.byteLength), compile(bytes));
  try {
    await fresh.init();
    const one = compiled.length;
    await fresh.scan(new Uint8Array(10));
    await fresh.scan(new Uint8Array(10));
    assert.deepEqual([one, compiled.length], [1, 2]);
  } finally {
    WebAssembly.compile = compile;
  }
  const other = await load("index.js", "?others");
  await other.init({ modules: { scan: new Uint8Array([1, 2, 3]) } });
  assert.equal((await refusal(() => other.scan(new Uint8Array(10)))).code, "aw-init");
  assert.equal((await refusal(() => other.init({ modules: { any: new Uint8Array() } }))).code, "aw-usage");
});

/** An array in the format of NumPy. */
function npy(values) {
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${values.length},), }`.padEnd(117) + "\n";
  return Buffer.concat([Buffer.from("\x93NUMPY\x01\x00v\x00", "latin1"), Buffer.from(header), Buffer.from(values.buffer)]);
}

/** A ZIP archive without compression. */
function stored(members) {
  const parts = [];
  const directory = [];
  let at = 0;
  for (const [name, bytes] of members) {
    const fixed = Buffer.alloc(26);
    fixed.writeUInt16LE(20, 0);
    fixed.writeUInt32LE(crc32(bytes), 10);
    fixed.writeUInt32LE(bytes.length, 14);
    fixed.writeUInt32LE(bytes.length, 18);
    fixed.writeUInt16LE(name.length, 22);
    parts.push(Buffer.from("PK\x03\x04"), fixed, Buffer.from(name), bytes);
    const entry = Buffer.alloc(14);
    entry.writeUInt32LE(at, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x00"), fixed, entry, Buffer.from(name));
    at += 30 + name.length + bytes.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(members.length, 4);
  end.writeUInt16LE(members.length, 6);
  end.writeUInt32LE(listed.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, listed, Buffer.from("PK\x05\x06"), end]);
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let state = byte;
  for (let bit = 0; bit < 8; bit += 1) state = (state >>> 1) ^ (state & 1 ? 0xedb88320 : 0);
  return state;
});
function crc32(bytes) {
  let state = ~0;
  for (const byte of bytes) state = (state >>> 8) ^ TABLE[(state ^ byte) & 255];
  return ~state >>> 0;
}
