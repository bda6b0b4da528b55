// Sealed files, as `examples/fixtures.rs` writes them: opened, read by ranges, asked, verified, refused.

import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { FIXTURES, inMemory, load, refusal, serve, vector } from "./support.mjs";

const api = await load();
const text = (name) => readFileSync(join(FIXTURES, name), "utf8");
const sealed = (name) => new Uint8Array(readFileSync(join(FIXTURES, name)));
const identity = text("reader.key");
const signer = text("signer.pub");
const MODELS = ["apr/a0100_linreg.safetensors", "gguf/files/tiny_llama_Q4_0.gguf", "apr/a0100_linreg_none_plain.apr"];
const KEYS = {
  password: { password: "only a test" },
  recipient: { identity },
  signed: { signer },
  both: { identity, signer },
};

test("sealed files are the files inside, from memory and by ranges", { timeout: 120_000 }, async () => {
  const server = await serve((url) => inMemory(sealed(url.slice(1))));
  let opened = 0;
  for (const path of MODELS) {
    const name = path.split("/").at(-1);
    const plain = await api.open(vector(path));
    for (const [kind, keys] of Object.entries(KEYS)) {
      for (const source of [sealed(`${name}.${kind}`), server.url + `${name}.${kind}`]) {
        const file = await api.open(source);
        assert.deepEqual([file.format, file.protection.signed], ["sealed", kind === "signed" || kind === "both"]);
        if (kind !== "signed") {
          assert.equal(file.protection.needs, kind === "password" ? "password" : "identity");
          assert.equal(file.tensors.length, 0);
        }
        await file.unlock(keys);
        assert.equal(file.innerFormat, plain.format);
        assert.equal(file.protection.verified, kind === "signed" || kind === "both");
        if (file.protection.verified) assert.equal(file.protection.signer.trusted, true);
        assert.deepEqual(file.tensors, plain.tensors);
        assert.deepEqual(file.metadata, plain.metadata);
        for (const tensor of plain.tensors) {
          assert.deepEqual(await file.bytes(tensor.name), await plain.bytes(tensor.name), tensor.name);
          assert.deepEqual(await file.values(tensor.name, { end: 40 }), await plain.values(tensor.name, { end: 40 }), tensor.name);
        }
        if (plain.format === "apr" && plain.version === 1) assert.equal((await file.loadModel()).type, "LinearRegression");
        if (kind === "signed" || kind === "both") assert.equal((await file.verify({ signer })).signer.trusted, true);
        file.close();
        opened += 1;
      }
    }
  }
  console.log(`${opened} sealed files opened with their keys`);
  await server.close();
});

test("other keys, and a changed byte, are refused", async () => {
  const bytes = sealed("a0100_linreg.safetensors.both");
  const other = api.generateKeys("encrypt").secretKey;
  assert.equal((await refusal(() => api.open(bytes, { identity: other, signer }))).code, "ac-decryption");
  assert.equal((await refusal(() => api.open(bytes, { password: "x", signer }))).code, "ac-sealed-lock");
  const stranger = api.generateKeys("sign").publicKey;
  const untrusted = await refusal(() => api.open(bytes, { identity, signer: stranger }));
  assert.ok(untrusted instanceof api.ProtectionError, untrusted.code);
  const changed = bytes.slice();
  changed[bytes.length >> 1] ^= 1;
  assert.notEqual(await refusal(async () => (await api.open(changed, { identity, signer })).verify({ signer })), null);
});
