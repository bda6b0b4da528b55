// Times of the package in Node.js: `node crates/apr-wasm/tests/bench.mjs`, after `cargo xtask wasm build`.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { MODELS, load, vector } from "./support.mjs";

/** The median of so many runs, in milliseconds. */
async function median(work, runs = 15) {
  const times = [];
  for (let run = 0; run < runs; run += 1) {
    const began = performance.now();
    await work();
    times.push(performance.now() - began);
  }
  return times.sort((one, other) => one - other)[runs >> 1];
}

const row = (what, ...values) => console.log(what.padEnd(44), ...values.map((value) => value.toFixed(3).padStart(10)));
const variants = ["scalar", "simd"];
const apis = [];
for (const variant of variants) {
  const api = await load("index.js", `?${variant}`);
  const began = performance.now();
  await api.init({ variant });
  row(`module compiled, ${variant}: ms`, performance.now() - began);
  apis.push(api);
}
console.log(`\n${"milliseconds, median of 15".padEnd(44)} ${variants.map((name) => name.padStart(10)).join(" ")}`);
for (const name of ["ridge_of_three", "random_forest", "texts"]) {
  const bytes = new Uint8Array(readFileSync(join(MODELS, `pipelines/${name}.apr`)));
  const { rows } = JSON.parse(readFileSync(join(MODELS, "pipelines.json"), "utf8")).cases.find((known) => known.name === name);
  const times = [];
  for (const api of apis) {
    times.push(await median(async () => {
      const model = await api.loadModel(bytes);
      model.predict(rows);
      model.free();
    }));
  }
  row(`load and ask ${name} (${bytes.length} bytes)`, ...times);
}
const line = vector("apr/a0100_linreg_none_plain.apr");
row("load and ask a linear regression", ...(await Promise.all(apis.map((api) => median(async () => (await api.loadModel(line)).predict([[1, 2, 3]]))))));
const numbers = Float32Array.from({ length: 1 << 20 }, (_, idx) => Math.sin(idx));
console.log(`\n${"MiB of floats a second".padEnd(44)} ${variants.map((name) => name.padStart(10)).join(" ")} simd/scalar`);
for (const type of ["Q8_0", "Q4_0", "Q4_K", "Q6_K"]) {
  for (const [what, work] of [
    ["dequantize", (api, blocks) => api.dequantize(type, blocks, numbers.length)],
    ["quantize", (api) => api.quantize(type, numbers, { rowLength: 4096 })],
  ]) {
    const speeds = [];
    for (const api of apis) {
      const blocks = api.quantize(type, numbers, { rowLength: 4096 });
      speeds.push(4000 / (await median(() => work(api, blocks), 5)));
    }
    row(`${what} ${type}`, ...speeds, speeds[1] / speeds[0]);
  }
}
