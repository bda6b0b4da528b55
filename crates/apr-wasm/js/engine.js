// One instance of the module: requests and responses, encoded as in `wire.rs`.

import { AprError, refuse } from "./errors.js";

/** The operations; their numbers are those of `session.rs`. */
export const Operation = Object.freeze({
  About: 0, NewFile: 1, Provide: 2, Open: 3, Decode: 4, Verify: 5, Member: 6, Unseal: 7, Content: 8, Entry: 9, CloseFile: 10,
  Values: 11, LoadModel: 12, Predict: 13, FreeModel: 14, Quantize: 15, GenerateKeys: 16, VerifyDetached: 17, EncryptForModel: 18,
  DecryptResponse: 19, Scan: 20, FreeRequest: 21,
});

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Bytes of any kind as they are. */
export function toBytes(bytes) {
  if (bytes instanceof Uint8Array) return bytes;
  if (ArrayBuffer.isView(bytes)) return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // By its name: one of another realm is of another class.
  if (/^\[object (Shared)?ArrayBuffer\]$/.test(Object.prototype.toString.call(bytes))) return new Uint8Array(bytes);
  throw refuse("aw-usage", "bytes are an ArrayBuffer, a typed array or a DataView");
}

/** The arguments of a request. */
export class Question {
  #parts = [];
  length = 0;

  raw(bytes) {
    const part = toBytes(bytes);
    this.#parts.push(part);
    this.length += part.length;
    return this;
  }
  u8(value) {
    return this.raw(Uint8Array.of(value));
  }
  u32(value) {
    const bytes = new Uint8Array(4);
    new DataView(bytes.buffer).setUint32(0, value, true);
    return this.raw(bytes);
  }
  u64(value) {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, BigInt(value), true);
    return this.raw(bytes);
  }
  bytes(bytes) {
    const part = toBytes(bytes);
    return this.u32(part.length).raw(part);
  }
  text(text) {
    return this.bytes(encoder.encode(text));
  }
  writeTo(target) {
    let at = 0;
    for (const part of this.#parts) {
      target.set(part, at);
      at += part.length;
    }
  }
}

/** Replaces `{"$f64": ..}` and `{"$i64": ..}` by their values; keys of files lose the `$` that was added. */
export function revive(value) {
  if (Array.isArray(value)) return value.map(revive);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$f64 === "string") {
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, BigInt("0x" + value.$f64));
    return view.getFloat64(0);
  }
  if (typeof value.$i64 === "string") return BigInt(value.$i64);
  const entries = Object.entries(value).map(([key, inner]) => [key.startsWith("$") ? key.slice(1) : key, revive(inner)]);
  return Object.fromEntries(entries);
}

/** An instance of the module, unusable after a trap. */
export class Engine {
  #exports;
  trapped = null;

  constructor(instance) {
    this.#exports = instance.exports;
    const about = this.call(Operation.About, new Question());
    Object.assign(this, JSON.parse(about.json));
  }

  /** `{ json, bytes }`, or `{ need: { offset, length } }` if bytes of the file are missing. */
  call(operation, question) {
    if (this.trapped) throw refuse("aw-trap", "the module stopped earlier: " + this.trapped, {});
    let status, json, bytes;
    try {
      const at = this.#exports.apr_alloc(question.length) >>> 0;
      if (at === 0) throw refuse("aw-memory", `no memory for ${question.length} bytes`);
      question.writeTo(new Uint8Array(this.#exports.memory.buffer, at, question.length));
      const length = this.#exports.apr_call(operation) >>> 0;
      const begin = this.#exports.apr_answer() >>> 0;
      // A copy: the memory of the module is moved when it grows.
      const answer = new Uint8Array(this.#exports.memory.buffer).slice(begin, begin + length);
      this.#exports.apr_done();
      status = answer[0];
      const jsonLength = new DataView(answer.buffer).getUint32(1, true);
      json = decoder.decode(answer.subarray(5, 5 + jsonLength));
      bytes = answer.slice(5 + jsonLength);
    } catch (error) {
      if (error instanceof AprError) throw error;
      // A failed assertion, or a stack overflow, which has another class in each engine: the state of the instance is unknown.
      this.trapped = String(error?.message ?? error);
      throw refuse("aw-trap", "the module stopped: " + this.trapped, { cause: error });
    }
    if (status === 2) {
      const view = new DataView(bytes.buffer);
      return { need: { offset: Number(view.getBigUint64(0, true)), length: Number(view.getBigUint64(8, true)) } };
    }
    if (status === 1) {
      const { code, message, ...details } = JSON.parse(json);
      throw refuse(code, message, details);
    }
    return { json, bytes };
  }
}

// (module (func (drop (i8x16.popcnt (v128.const i64x2 0 0))))): valid in engines with 128-bit SIMD.
const SIMD = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 25, 1, 23, 0, 253, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
  0, 0, 253, 98, 26, 11,
);

/** Whether the engine supports 128-bit SIMD. */
export function hasSimd() {
  return WebAssembly.validate(SIMD);
}

/** Compiles the module at a URL, or the bytes given. */
export async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(source);
  if (typeof Response !== "undefined" && source instanceof Response) return WebAssembly.compile(await source.arrayBuffer());
  const url = new URL(source, import.meta.url);
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw refuse("aw-init", `the module cannot be fetched: ${response.status} for ${url}`);
  return WebAssembly.compile(await response.arrayBuffer());
}
