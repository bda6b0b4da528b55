// Runs a WebAssembly program of the WASI preview 1 kind: `node run_wasi.mjs PROGRAM [ARGS]`. It sees the files of this machine.
import { readFile } from "node:fs/promises";
import { argv, env, exit } from "node:process";
import { WASI } from "node:wasi";

const args = argv.slice(2);
const wasi = new WASI({ version: "preview1", args, env, preopens: { "/": "/" }, returnOnExit: true });
const module = await WebAssembly.compile(await readFile(args[0]));
exit(wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject())));
