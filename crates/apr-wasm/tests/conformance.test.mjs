// Every vector through both modules: the verdicts of the reviewed lists, the bits of the reference, and the same answers from both
// modules. What is asked here is asked native code afterwards: `cargo xtask wasm test`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { writeFileSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { MODELS, VECTORS, files, json, load, record, recipientPem, refusal, sha256, sidecars, transcript, vector, verifyingPem } from "./support.mjs";

const inputs = json(join(VECTORS, "apr/inputs.json"));
const counts = {};
const count = (what, by = 1) => (counts[what] = (counts[what] ?? 0) + by);

/**
 * Whether a refusal is of the width of addresses: a module counts elements with 32 bits and refuses greater dimensions at once, where native
 * code comes further, to an empty tensor or to another refusal.
 */
function isNarrow(found, bytes) {
  const numbers = new TextDecoder("latin1").decode(bytes).match(/[0-9]{10,}/g) ?? [];
  return found.code === "st-size-overflow" && numbers.some((digits) => BigInt(digits) >= 2n ** 32n);
}

/** Whether a file was taken for safetensors, which has no magic number, or for a foreign format. */
const isElse = (code) => isForeign(code) || (code?.startsWith("st-") ?? false);
/** Whether it was taken for a file of another program, and refused as such or by the reader of its format. */
const isForeign = (code) => code === "aw-foreign-format" || (code?.startsWith("ft-") ?? false);

/** "accept", or code and offset. */
function verdict(error) {
  return error === null ? "accept" : error.offset === null ? { code: error.code } : { code: error.code, offset: error.offset };
}

async function safetensors(api, entries) {
  for (const entry of sidecars("safetensors").filter(({ file }) => file.endsWith(".safetensors"))) {
    const bytes = vector(join("safetensors", entry.file));
    const before = entries.length;
    let format = "safetensors";
    const found = verdict(await refusal(async () => {
      const file = await api.open(bytes);
      format = file.format;
      file.close();
    }));
    if (format !== "safetensors") {
      count(`safetensors: files of another format, opened as ${format}`);
      continue;
    }
    if (!isDeepStrictEqual(found, entry.strict) && isNarrow(found, bytes)) {
      count("safetensors: dimensions beyond 32 bits, refused as such");
      entries.length = before;
      continue;
    }
    if (isForeign(found.code)) {
      assert.notEqual(entry.strict, "accept", entry.file);
      count("safetensors: files of another format, refused by its name");
    } else {
      assert.deepEqual(found, entry.strict, entry.file);
      count("safetensors: verdicts");
    }
    for (const level of ["strict", "compat"]) {
      let file = null;
      await refusal(async () => (file = await api.open(bytes, { level })));
      for (const expected of (file && entry.tensors) || []) {
        const stored = await file.bytes(expected.name);
        if (expected.sha256) assert.equal(sha256(stored), expected.sha256, `${entry.file}: ${expected.name}`);
        const { data } = await file.tensor(expected.name);
        assert.equal(data.byteLength, stored.length);
        const error = await refusal(() => file.values(expected.name));
        assert.ok(error === null || expected.dtype === "C64", `${entry.file}: ${expected.name}: ${error}`);
        count("safetensors: tensors");
      }
      file?.close();
    }
  }
}

/** What opens the files of the other writers. */
function keysFor(protection) {
  const { password, recipient, signed } = inputs.keys;
  if (protection === "password") return { password: password.password };
  if (protection === "recipient") return { identity: recipientPem(recipient.x25519_secret_hex) };
  if (protection === "signed") return { signer: verifyingPem(signed.ed25519_public_hex) };
  return {};
}

async function apr(api) {
  for (const { file: name, protection, container, requested } of sidecars("apr")) {
    if (!name.endsWith(".apr")) continue;
    const bytes = vector(join("apr", name));
    const isFirst = container === "apr-v1";
    // Their files lack what binds the payload to its header: those open in compat.
    const options = { level: "compat", ...(isFirst ? keysFor(protection) : {}) };
    const file = await api.open(bytes, options);
    for (const tensor of file.tensors) {
      await file.bytes(tensor.name);
      await refusal(() => file.values(tensor.name));
      count("apr: tensors");
    }
    await file.verify(protection === "signed" ? keysFor(protection) : {});
    if (protection === "signed") assert.equal(file.protection.signer.trusted, true, name);
    if (isFirst) {
      const error = await refusal(async () => {
        const model = await file.loadModel();
        if (model.takesNothing || model.inputs !== 3) return model.free();
        model.predict(inputs.rows);
        if (model.givesProbabilities) model.predictProba(inputs.rows);
        count("apr: models asked");
        return model.free();
      });
      const isForeign = error?.code === "aw-foreign-payload";
      assert.ok(error === null || isForeign || error.code === "am-not-fitted", `${name}: ${error?.code} ${error}`);
      if (protection === "recipient" || protection === "signed") {
        const strict = await refusal(async () => (await api.open(bytes, keysFor(protection))).loadModel());
        const expected = protection === "signed" ? null : "ac-unbound";
        assert.equal(strict?.code ?? null, isForeign ? strict.code : expected, name);
        const without = await refusal(async () => (await api.open(bytes)).loadModel());
        assert.equal(without.code, protection === "signed" ? "ac-signed" : "ac-encrypted", name);
        count("apr: protected files");
      }
    }
    count(`apr: files ${requested ?? ""}`.trim());
    file.close();
  }
  for (const entry of sidecars("apr/hostile")) {
    const { file: name, container } = entry;
    const bytes = vector(join("apr/hostile", name));
    for (const level of ["strict", "compat"]) {
      const expected = entry[level];
      let file = null;
      const inspected = await refusal(async () => (file = await api.open(bytes, { level })));
      if (isElse(inspected?.code)) {
        assert.ok(["ac-magic", "ac-too-small", "ac-v2-magic"].includes(expected.inspect.code), `${name}: ${expected.inspect.code}`);
        count("apr: files that do not begin as one, refused as safetensors");
        continue;
      }
      assert.deepEqual(verdict(inspected), expected.inspect, `${name}: inspect, ${level}`);
      count("apr: verdicts");
      if (!file) continue;
      const loaded = verdict(await refusal(async () => {
        if (container === "apr-v1") return (await file.loadModel()).free();
        await file.verify();
        for (const { name: tensor } of file.tensors) await file.bytes(tensor);
      }));
      // The list is about a linear regression, whatever the file says; here the file decides what is decoded, and may be refused by another
      // decoder. Native code has to say the same, as to every question.
      if (container === "apr-v1" && expected.load !== "accept") {
        assert.notEqual(loaded, "accept", `${name}: load, ${level}`);
        if (!isDeepStrictEqual(loaded, expected.load)) count("apr: refused by the decoder of another model");
      } else {
        assert.deepEqual(loaded, expected.load, `${name}: load, ${level}`);
      }
      count("apr: verdicts");
      file.close();
    }
  }
}

async function gguf(api) {
  for (const expected of sidecars("gguf")) {
    const name = expected.file;
    const bytes = vector(join("gguf", name));
    for (const level of ["strict", "compat"]) {
      let file = null;
      const found = verdict(await refusal(async () => (file = await api.open(bytes, { level }))));
      if (isElse(found.code)) {
        assert.ok(expected[level].code === "gg-magic" || bytes.length < 4, name);
        count("gguf: files that do not begin as one, refused as safetensors");
        continue;
      }
      assert.deepEqual(found, expected[level], `${name}, ${level}`);
      count("gguf: verdicts");
      if (!file) continue;
      // A key that is no UTF-8 can be shown and not named.
      for (const [key, value] of Object.entries(file.metadata).filter(([key]) => !key.includes("\ufffd"))) {
        const all = await file.array(key);
        if (value?.preview) assert.equal(all.length, value.length);
      }
      for (const tensor of file.tensors) {
        await file.bytes(tensor.name);
        await refusal(() => file.values(tensor.name));
        count("gguf: tensors");
      }
      file.close();
    }
  }
}

async function quantization(api) {
  const types = api.quantTypes();
  for (const { file: pack, class: kind, sections } of sidecars("quantization")) {
    const file = vector(join("quantization", pack));
    const part = ({ name, kind: form, offset, len }) => [name, { form, bytes: file.slice(offset, offset + len) }];
    const parts = new Map(sections.map(part));
    const input = parts.get("input") && new Float32Array(parts.get("input").bytes.buffer);
    const importance = parts.get("imatrix") && new Float32Array(parts.get("imatrix").bytes.buffer);
    for (const [section, { form, bytes }] of parts) {
      if (form !== "blocks" || !types.includes(section)) continue;
      const numbers = parts.get(`${section}.f32`);
      const elements = numbers ? numbers.bytes.length / 4 : input.length;
      const found = api.dequantize(section, bytes, elements);
      if (numbers?.form === "dequant") assert.equal(sha256(new Uint8Array(found.buffer)), sha256(numbers.bytes), `${pack}: ${section}`);
      count("quantization: blocks read");
      if (!input) continue;
      let made = null;
      await refusal(() => (made = api.quantize(section, input, { rowLength: importance?.length ?? input.length, importance })));
      if (made && kind !== "nonfinite" && kind !== "edge") {
        if (sha256(made) !== sha256(bytes)) count(`quantization: differ from the reference (as native): ${section}`);
      }
      count("quantization: blocks made");
    }
  }
  for (const [dtype, { bits }] of Object.entries(json(join(VECTORS, "dtypes/small-floats.json")).types)) {
    const width = { F4: 4, F6_E2M3: 6, F6_E3M2: 6 }[dtype] ?? 8;
    const codes = bits.map((_, code) => code);
    const packed = new Uint8Array((codes.length * width) / 8);
    codes.forEach((code, idx) => {
      for (let bit = 0; bit < width; bit += 1) {
        const at = idx * width + bit;
        packed[at >> 3] |= ((code >> bit) & 1) << (at & 7);
      }
    });
    const found = new Uint32Array(api.dequantize(dtype, packed, codes.length).buffer);
    found.forEach((value, code) => {
      const text = Number.isNaN(new Float32Array(Uint32Array.of(value).buffer)[0]) ? "nan" : value.toString(16).padStart(8, "0");
      assert.equal(text, bits[code], `${dtype} ${code}`);
    });
    count("dtypes: codes", codes.length);
  }
}

async function rest(api) {
  for (const { file: name, schema } of sidecars("structures")) {
    const file = await api.open(vector(join("structures", name)));
    if (schema) assert.ok(Object.values(file.metadata).includes(schema), name);
    file.close();
    count("structures: files");
  }
  const folder = join(VECTORS, "signatures");
  const text = (name) => readFileSync(join(folder, name), "utf8");
  const weights = new Uint8Array(readFileSync(join(folder, "model/weights.safetensors")));
  for (const name of ["weights.minisig", "weights.legacy.minisig"]) {
    assert.ok((await api.verifyDetached(weights, text(name), text("minisign.pub"))).fingerprint);
    const other = await refusal(() => api.verifyDetached(weights, text(name), text("minisign-other.pub")));
    assert.equal(other.code, "cy-key-id");
    const changed = await refusal(() => api.verifyDetached(weights.subarray(1), text(name), text("minisign.pub")));
    assert.equal(changed.code, "cy-signature");
    count("signatures: verified", 3);
  }
}

/** Every kind of answer is asked for; the bits are compared with those of native code. */
async function models(api) {
  const { cases } = json(join(MODELS, "pipelines.json"));
  assert.equal(cases.length, readdirSync(join(MODELS, "pipelines")).length);
  for (const { name, rows, expected } of cases) {
    const model = await api.loadModel(new Uint8Array(readFileSync(join(MODELS, "pipelines", `${name}.apr`))));
    const found = model.predict(rows);
    if (model.givesProbabilities) model.predictProba(rows);
    if (Array.isArray(expected.predict)) {
      const values = expected.predict.map((value) => (typeof value === "object" && value !== null ? value.value : value));
      const isExact = values.every((value) => typeof value === "string" || Number.isInteger(value));
      if (isExact && found.length === values.length) assert.deepEqual(Array.from(found), values, name);
    }
    model.free();
    count("models: pipelines asked");
  }
}

async function everything(variant) {
  const recording = record();
  try {
    const api = await load("index.js", `?${variant}`);
    await api.init({ variant }).then(({ simd }) => assert.ok("LAB" in process.env || simd === (variant === "simd")));
    for (const part of [safetensors, apr, gguf, quantization, rest, models]) await part(api, recording.entries);
  } finally {
    recording.stop();
  }
  return recording.entries;
}

test("the vectors: verdicts, bits, keys; both modules answer alike", { timeout: 600_000 }, async () => {
  const scalar = await everything("scalar");
  const asked = { ...counts };
  const simd = await everything("simd");
  assert.equal(simd.length, scalar.length);
  scalar.forEach((entry, idx) => {
    assert.equal(simd[idx].operation, entry.operation);
    assert.ok(Buffer.compare(simd[idx].question, entry.question) === 0, `question ${idx}`);
    assert.ok(Buffer.compare(simd[idx].answer, entry.answer) === 0, `answer ${idx} of operation ${entry.operation}`);
  });
  for (const [what, times] of Object.entries(asked)) console.log(`${String(times).padStart(6)}  ${what}`);
  console.log(`${scalar.length} answers, the same from the scalar and the simd128 module`);
  if (process.env.APR_WASM_TRANSCRIPT) writeFileSync(process.env.APR_WASM_TRANSCRIPT, transcript(scalar));
});
