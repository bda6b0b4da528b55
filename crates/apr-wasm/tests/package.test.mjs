// The package as a user installs it: packed, installed, the example of the README run, the types checked.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PACKAGE, ROOT, TOOLS, VECTORS } from "./support.mjs";

const USES = `
import { AprError, ProtectionError, cache, dequantize, encryptForModel, generateKeys, init, loadCached, open, quantize } from "apr-wasm";
import { open as openPlain } from "apr-wasm/core";

const { simd }: { simd: boolean } = await init({ variant: "auto" });
const file = await open(new Uint8Array(8), { level: "compat", password: "x", onProgress: ({ bytesRead }) => console.log(bytesRead) });
const names: string[] = file.tensors.map(({ name }) => name);
const values: Float32Array = await file.values(names[0]!, { start: 0 });
const { data, isView } = await file.tensor("a");
const model = await file.loadModel();
const proba: number = model.predictProba([[1, null]]).columns;
try {
  await loadCached("key", new URL("https://example.org/m.apr"), { maxCacheBytes: 1, sha256: "00" });
} catch (error) {
  if (error instanceof ProtectionError || error instanceof AprError) console.log(error.code, error.offset?.toFixed());
}
const blocks: Uint8Array = quantize("q8_0", values, { rowLength: 32 });
const again: Float32Array = dequantize("q8_0", blocks, 32);
const { request, decryptResponse, free } = encryptForModel(new ArrayBuffer(4), generateKeys("encrypt").publicKey);
const terms: string[] | null = model.terms;
const label: string | number | bigint | boolean | null | undefined = model.classes?.[0];
quantize("q8_0", [1, 2], { importance: new Float64Array(2) });
free();
console.log(simd, data.length, isView, proba, again, request, decryptResponse, (await cache.list())[0]?.sha256, openPlain, terms, label);
// @ts-expect-error: no such level
await open("x", { level: "lax" });
`;

test("packed, installed elsewhere, and used as the README says", { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "apr-wasm-"));
  const run = (program, ...words) => execFileSync(program, words, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  try {
    const [{ filename, files }] = JSON.parse(run("npm", "pack", "--json", PACKAGE));
    const listed = files.map(({ path }) => path);
    for (const path of ["index.js", "index.d.ts", "core.js", "README.md", "wasm/apr-full.wasm", "wasm/apr-full-simd.wasm", "wasm/apr-core.wasm", "wasm/apr-pickles.wasm", "wasm/apr-hdf5.wasm", "wasm/apr-graphs.wasm", "wasm/apr-scan.wasm"]) {
      assert.ok(listed.includes(path), path);
    }
    console.log(`npm tarball: ${statSync(join(folder, filename)).size} bytes`);
    writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }');
    run("npm", "install", "--no-audit", "--no-fund", "--offline", `./${filename}`);

    const readme = readFileSync(join(ROOT, "crates/apr-wasm/README.md"), "utf8");
    const [, example] = /```js\n([^]*?)```/.exec(readme);
    copyFileSync(join(VECTORS, "apr/a0100_linreg_none_plain.apr"), join(folder, "model.apr"));
    const before = 'import { readFileSync } from "node:fs";\nconst MODEL = readFileSync("model.apr");\n';
    writeFileSync(join(folder, "example.js"), before + example);
    const printed = run("node", "example.js");
    assert.match(printed, /coefficients F32 \[ 3 \]/);
    assert.match(printed, /LinearRegression 3 Float32Array\(1\)/);

    mkdirSync(join(folder, "types"));
    writeFileSync(join(folder, "types/uses.ts"), USES);
    const options = ["--strict", "--noEmit", "--noUncheckedIndexedAccess", "--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom"];
    run("node", join(TOOLS, "node_modules/typescript/bin/tsc"), ...options, "types/uses.ts");
  } catch (error) {
    if (error.stdout || error.stderr) error.message += `\n${error.stdout}\n${error.stderr}`;
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
});
