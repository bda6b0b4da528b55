// Signed `.apr` files of version 1 at a URL: what was verified is what is read later, whatever the server gives by then.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PROGRAM, inMemory, load, refusal, serve, vector, withChecksum } from "./support.mjs";

const api = await load();
const folder = mkdtempSync(join(tmpdir(), "apr-signed-"));
const PLAIN = "apr/a0100_linreg_none_plain.apr";
/** More than the 64 KiB that are kept of the beginning of a file. */
const INPUTS = 30_000;
const PASSWORD = "only a test";
const text = (name) => readFileSync(join(folder, name), "utf8");
const bytes = (name) => new Uint8Array(readFileSync(join(folder, name)));
let server, given;

function apr(...args) {
  const { status, stderr } = spawnSync(PROGRAM, ["-q", ...args], { cwd: folder });
  assert.equal(status, 0, String(stderr));
}

/** A linear regression whose last coefficient this is; `key` is one for private inference. */
function linear(last, key) {
  const [entries, ...metadata] = vector(PLAIN).subarray(32, 32 + 0x7f);
  const word = (value) => [0xd9, value.length, ...Buffer.from(value)];
  const custom = key === undefined ? [] : [...word("custom"), 0x81, ...word("inference_pub_key"), ...word(key)];
  const described = Uint8Array.of(entries + (key === undefined ? 0 : 1), ...metadata, ...custom);
  const payload = new Uint8Array(1 + 8 + 4 * INPUTS + 5);
  const view = new DataView(payload.buffer);
  payload[0] = 1;
  view.setUint32(1, INPUTS, true);
  view.setFloat32(9 + 4 * (INPUTS - 1), last, true);
  const file = new Uint8Array(32 + described.length + payload.length + 4);
  file.set(vector(PLAIN).subarray(0, 32));
  const lengths = new DataView(file.buffer);
  lengths.setUint32(8, described.length, true);
  [12, 16].forEach((at) => lengths.setUint32(at, payload.length, true));
  file.set(described, 32);
  file.set(payload, 32 + described.length);
  return withChecksum(file);
}

before(async () => {
  for (const name of ["maker", "stranger"]) apr("keygen", "sign", "-o", `${name}.key`);
  writeFileSync(join(folder, "password"), PASSWORD, { mode: 0o600 });
  for (const [name, last, key] of [["honest", 1, "maker"], ["other", 2, "stranger"]]) {
    writeFileSync(join(folder, `${name}.plain`), linear(last));
    apr("sign", `${name}.plain`, "--inside", "--key", `${key}.key`, "-o", name);
    apr("encrypt", `${name}.plain`, "-o", `${name}.locked`, "--password-file", "password", "--sign", `${key}.key`);
  }
  // The signature of the honest file over other bytes.
  const [honest, other] = [bytes("honest"), bytes("other")];
  assert.equal(honest.length, other.length);
  const changed = other.slice();
  changed.set(honest.subarray(-100), changed.length - 100);
  writeFileSync(join(folder, "changed"), withChecksum(changed));
  server = await serve(() => inMemory(bytes(given)));
});

after(async () => {
  await server?.close();
  rmSync(folder, { recursive: true });
});

async function opened(name, options) {
  given = name;
  return api.open(server.url, options);
}

/** The last coefficient, as it is listed, read and used. */
async function lastOf(file) {
  const last = (values) => values.at(-1);
  const row = new Float32Array(INPUTS);
  row[INPUTS - 1] = 1;
  const model = await file.loadModel();
  const answer = model.predict([row])[0];
  model.free();
  const { data } = await file.tensor("coefficients");
  const raw = (await file.bytes("coefficients")).slice(-4);
  return [answer, last(data), last(await file.values("coefficients")), new Float32Array(raw.buffer)[0]];
}

const refused = async (work) => (await refusal(work))?.code;
const maker = () => ({ signer: text("maker.key.pub") });
const trustOf = ({ protection: { verified, signer } }) => [verified, signer?.trusted ?? null];

test("a model is not loaded if the server gives other bytes after the verification", async () => {
  for (const [later, code] of [["changed", "ac-signature"], ["other", "ac-untrusted-signer"]]) {
    for (const again of ["loadModel", "verify", "unlock"]) {
      const file = await opened("honest");
      assert.equal((await file.verify(maker())).signer.trusted, true);
      given = later;
      assert.equal(await refused(() => file[again]()), code, `${later}, ${again}`);
      assert.equal((await file.values("coefficients")).at(-1), 1);
      assert.deepEqual(trustOf(file), [true, true]);
      file.close();
    }
  }
  const file = await opened("honest");
  await file.verify(maker());
  assert.deepEqual(await lastOf(file), [1, 1, 1, 1]);
  file.close();
});

test("the key in the file stays the same, and is trusted when it is given", async () => {
  for (const options of [{ signer: "anyone" }, maker()]) {
    const file = await opened("honest", options);
    given = "other";
    assert.equal(await refused(() => file.loadModel()), "ac-untrusted-signer");
    file.close();
  }
  const file = await opened("honest");
  await file.verify();
  assert.deepEqual(trustOf(file), [true, false]);
  await file.verify();
  assert.deepEqual(trustOf(file), [true, false]);
  await file.verify(maker());
  assert.deepEqual(trustOf(file), [true, true]);
  await file.verify();
  assert.deepEqual(trustOf(file), [true, true]);
  await file.verify({ signer: "anyone" });
  assert.deepEqual(trustOf(file), [true, false]);
});

test("what was read before the verification is read anew", async () => {
  for (const before of ["changed", "other"]) {
    const unsigned = await opened(before);
    assert.notEqual(await refusal(() => unsigned.verify(maker())), null);
    assert.equal(unsigned.protection.verified, false);
    const file = await opened(before);
    assert.equal((await file.values("coefficients")).at(-1), 2);
    given = "honest";
    await file.verify(maker());
    assert.deepEqual(await lastOf(file), [1, 1, 1, 1]);
    file.close();
  }
});

test("an encrypted file is decrypted as it was verified", async () => {
  const keys = { password: PASSWORD };
  const locked = async (options) => {
    const file = await opened("honest.locked", options);
    await file.verify(maker());
    assert.deepEqual(trustOf(file), [true, true]);
    return file;
  };
  const file = await locked();
  assert.deepEqual([file.protection.needs, file.tensors.length], ["password", 0]);
  await file.unlock(keys);
  assert.equal(file.protection.needs, null);
  assert.deepEqual(await lastOf(file), [1, 1, 1, 1]);
  assert.deepEqual(await lastOf(await locked(keys)), [1, 1, 1, 1]);
  // Their beginnings differ: a mixture of both has neither checksum nor signature.
  for (const [options, again] of [[undefined, (file) => file.unlock(keys)], [keys, (file) => file.loadModel()]]) {
    const file = await locked(options);
    given = "other.locked";
    assert.notEqual(await refusal(() => again(file)), null);
  }
  // A signer of the options holds for a password that is given later.
  const asked = await opened("other.locked", maker());
  assert.equal(await refused(() => asked.unlock(keys)), "ac-untrusted-signer");
});

test("a demanded signature that is not there, or that the small module cannot verify, is an error", async () => {
  const signer = text("maker.key.pub");
  const plain = await api.open(linear(3));
  assert.equal(await refused(() => plain.verify({ signer })), "ac-not-signed");
  assert.equal(await refused(() => plain.loadModel({ signer })), "ac-not-signed");
  assert.deepEqual(await plain.verify(), { signer: null, complete: true });
  assert.equal((await plain.values("coefficients")).at(-1), 3);
  const safetensors = await api.open(vector("apr/a0100_linreg.safetensors"));
  assert.equal(await refused(() => safetensors.loadModel({ signer })), "ac-not-signed");
  const core = await load("core.js");
  for (const source of [linear(3), bytes("honest"), bytes("other")]) {
    assert.equal(await refused(() => core.open(source, { signer })), "aw-feature");
    const file = await core.open(source);
    assert.equal(await refused(() => file.verify({ signer })), "aw-feature");
    assert.equal(await refused(() => file.loadModel({ signer })), "aw-feature");
  }
});

test("the key for private inference in a signed file may be hexadecimal digits", async () => {
  const { publicKey } = generateKeyPairSync("x25519");
  const hex = Buffer.from(publicKey.export({ format: "jwk" }).x, "base64url").toString("hex");
  for (const [name, key] of [["hex", hex], ["capitals", hex.toUpperCase()], ["short", hex.slice(2)]]) {
    writeFileSync(join(folder, `${name}.plain`), linear(1, key));
    apr("sign", `${name}.plain`, "--inside", "--key", "maker.key", "-o", name);
  }
  const signer = text("maker.key.pub");
  for (const name of ["hex", "capitals"]) {
    const { request, free } = api.encryptForModel("x", await api.open(bytes(name), { signer }));
    assert.equal(String.fromCharCode(...request.subarray(0, 7)), "apr-ask");
    free();
  }
  assert.equal(String.fromCharCode(...api.encryptForModel("x", hex).request.subarray(0, 7)), "apr-ask");
  const short = await api.open(bytes("short"), { signer });
  assert.notEqual(await refusal(async () => api.encryptForModel("x", short)), null);
});
