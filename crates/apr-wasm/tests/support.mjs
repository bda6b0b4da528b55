// What the tests share: the package under test, the vectors, a server, a record of what modules are asked.

import { createServer } from "node:http";
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createHash } from "node:crypto";
import { fileURLToPath, pathToFileURL } from "node:url";
import { join } from "node:path";

const HERE = fileURLToPath(new URL(".", import.meta.url));
export const ROOT = join(HERE, "../../..");
export const VECTORS = join(ROOT, "crates/conformance/vectors");
export const MODELS = join(ROOT, "crates/apr-models/tests/data");
export const PACKAGE = process.env.APR_WASM_PACKAGE ?? join(ROOT, "target/wasm/package");
export const FIXTURES = process.env.APR_WASM_FIXTURES ?? join(ROOT, "target/wasm/fixtures");
/** `examples/owner.rs`, built. */
export const OWNER = process.env.APR_WASM_OWNER ?? join(ROOT, "target/debug/examples/owner");
/** The program `apr`, built. */
export const PROGRAM = process.env.APR_WASM_PROGRAM ?? join(ROOT, "target/debug/apr");
export const TOOLS = process.env.APR_WASM_TOOLS ?? join(ROOT, "target/wasm/tools");

/** A file of the package, imported; with another `copy`, as an instance of its own. */
export function load(name = "index.js", copy = "") {
  return import(pathToFileURL(join(PACKAGE, name)).href + copy);
}

export const vector = (name) => new Uint8Array(readFileSync(join(VECTORS, name)));
export const json = (path) => JSON.parse(readFileSync(path, "utf8"));
/** What is known about the vectors of a folder: path below the folder and the sidecar's fields, by path. */
export function sidecars(folder) {
  const root = join(VECTORS, folder);
  const suffix = ".vector.json";
  const names = readdirSync(root, { recursive: true }).map((name) => name.replaceAll("\\", "/"));
  const found = names.filter((name) => name.endsWith(suffix)).sort();
  return found.map((name) => ({ file: name.slice(0, -suffix.length), ...json(join(root, name)) }));
}
export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
export const files = (folder) => readdirSync(folder).filter((name) => statSync(join(folder, name)).isFile()).sort();

/** The refusal of a promise: its code and offset, or `null`. */
export async function refusal(work) {
  try {
    await work();
    return null;
  } catch (error) {
    if (typeof error.code !== "string" || !("offset" in error)) throw error;
    return error;
  }
}

/** A server of byte ranges on a free port; `respond` may answer first. Counts what it sends. */
export async function serve(contentOf, { ranges = true, etag = '"v1"', respond } = {}) {
  const log = { requests: [], sent: 0 };
  const server = createServer((request, response) => {
    const entry = { url: request.url, range: request.headers.range ?? null, ifRange: request.headers["if-range"] ?? null };
    log.requests.push(entry);
    if (respond?.(request, response, log)) return;
    const content = contentOf(request.url);
    if (!content) return response.writeHead(404).end();
    const tag = typeof etag === "function" ? etag() : etag;
    const headers = { "content-type": "application/octet-stream", ...(tag ? { etag: tag } : {}) };
    const found = ranges && /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const stale = request.headers["if-range"] !== undefined && request.headers["if-range"] !== tag;
    if (found && !stale) {
      const start = Number(found[1]);
      const end = Math.min(found[2] === "" ? content.size - 1 : Number(found[2]), content.size - 1);
      if (start >= content.size) return response.writeHead(416, { "content-range": `bytes */${content.size}` }).end();
      const body = content.read(start, end + 1);
      log.sent += body.length;
      response.writeHead(206, { ...headers, "content-range": `bytes ${start}-${end}/${content.size}`, "content-length": body.length });
      return response.end(body);
    }
    const body = content.read(0, content.size);
    log.sent += body.length;
    response.writeHead(200, { ...headers, "content-length": body.length });
    return response.end(body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url, log, close };
}

/** Content that lies in memory. */
export function inMemory(bytes) {
  return { size: bytes.length, read: (start, end) => bytes.subarray(start, end) };
}

/** What the instances of modules made from now on are asked, and what they answer. */
export function record() {
  const instantiate = WebAssembly.instantiate;
  const entries = [];
  let count = 0;
  WebAssembly.instantiate = async (module, imports) => {
    const { exports } = await instantiate(module, imports);
    const session = count++;
    let at = 0;
    let length = 0;
    // Modules for files of other programs are compared with the sidecars of their vectors.
    let isLate = false;
    return {
      exports: {
        memory: exports.memory,
        apr_alloc: (asked) => ((length = asked), (at = exports.apr_alloc(asked) >>> 0)),
        apr_call: (operation) => {
          const question = new Uint8Array(exports.memory.buffer).slice(at, at + length);
          const answered = exports.apr_call(operation) >>> 0;
          const begin = exports.apr_answer() >>> 0;
          const answer = new Uint8Array(exports.memory.buffer).slice(begin, begin + answered);
          // The first question is what the module is, which differs.
          if (operation === 0) isLate = /"(pickles|hdf5|graphs|scan)"/.test(new TextDecoder().decode(answer));
          else if (!isLate) entries.push({ session, operation, question, answer });
          return answered;
        },
        apr_answer: exports.apr_answer,
        apr_done: exports.apr_done,
      },
    };
  };
  return { entries, stop: () => (WebAssembly.instantiate = instantiate) };
}

/** Entries in the form that `examples/replay.rs` reads. */
export function transcript(entries) {
  const parts = [];
  for (const { session, operation, question, answer } of entries) {
    parts.push(Buffer.from(Uint32Array.of(session, operation, question.length, answer.length).buffer), question, answer);
  }
  return Buffer.concat(parts);
}

/** A secret X25519 key out of its 32 bytes, as PEM. */
export function recipientPem(hex) {
  const der = Buffer.concat([Buffer.from("302e020100300506032b656e04220420", "hex"), Buffer.from(hex, "hex")]);
  return `-----BEGIN PRIVATE KEY-----\n${der.toString("base64")}\n-----END PRIVATE KEY-----\n`;
}

/** A public Ed25519 key out of its 32 bytes, as PEM. */
export function verifyingPem(hex) {
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), Buffer.from(hex, "hex")]);
  return `-----BEGIN PUBLIC KEY-----\n${der.toString("base64")}\n-----END PUBLIC KEY-----\n`;
}

/** The same file with its last four bytes right. */
export function withChecksum(file) {
  let crc = 0xffffffff;
  for (const byte of file.subarray(0, file.length - 4)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  new DataView(file.buffer).setUint32(file.length - 4, ~crc >>> 0, true);
  return file;
}
