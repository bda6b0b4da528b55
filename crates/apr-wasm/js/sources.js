// The sources of the bytes of a file: memory, a Blob, ranges of a URL, the inside of a sealed file.

import { refuse } from "./errors.js";

const FIRST = 64 * 1024;
const TIMEOUT = 30_000;
/** Default maximum size of a file from a server without range requests. */
const MOST_WHOLE = 1024 ** 3;

/** Bytes in memory, read as views. */
export class MemorySource {
  notes = [];
  bytesRead = 0;
  isMemory = true;

  constructor(bytes) {
    this.bytes = bytes;
    this.size = bytes.byteLength;
  }
  async read(offset, length) {
    this.bytesRead += length;
    return this.bytes.subarray(offset, offset + length);
  }
}

/** A Blob or File. */
export class BlobSource {
  notes = [];
  bytesRead = 0;

  constructor(blob) {
    this.blob = blob;
    this.size = blob.size;
  }
  async read(offset, length) {
    let bytes;
    try {
      bytes = new Uint8Array(await this.blob.slice(offset, offset + length).arrayBuffer());
    } catch (error) {
      throw refuse("aw-content", "the file cannot be read: it may have been changed or removed", { cause: error });
    }
    if (bytes.length !== length) throw refuse("aw-changed", "the file became shorter while it was read");
    this.bytesRead += length;
    return bytes;
  }
}

/** Ranges of a URL; the whole file if the server does not support range requests. */
export class UrlSource {
  notes = [];
  bytesRead = 0;
  #head = new Uint8Array(0);
  #tag = null;

  constructor(url, options) {
    this.url = url;
    this.options = options;
  }

  static async open(url, options) {
    const source = new UrlSource(url, options);
    await source.#first();
    return source;
  }

  async #first() {
    const { response, bytes } = await this.#request({ from: 0, end: FIRST }, null);
    const total = totalOf(response);
    if (response.status === 206 && total !== null && !isEncoded(response)) {
      if (startOf(response) !== 0 || bytes.length !== Math.min(FIRST, total)) throw otherRange();
      this.size = total;
      this.#head = bytes;
      this.#tag = tagOf(response);
      return;
    }
    if (response.status === 416) {
      this.#whole(new Uint8Array(0));
      return;
    }
    let whole = bytes;
    if (response.status === 206) ({ bytes: whole } = await this.#request(null, null));
    const message = "the server gives no ranges: the whole file was fetched";
    this.notes.push({ code: "aw-no-ranges", message });
    this.#whole(whole);
  }

  #whole(bytes) {
    this.size = bytes.length;
    this.bytes = bytes;
    this.isMemory = true;
  }

  async read(offset, length) {
    if (this.bytes) return this.bytes.subarray(offset, offset + length);
    const parts = [];
    if (offset < this.#head.length) parts.push(this.#head.slice(offset, offset + length));
    const from = Math.max(offset, this.#head.length);
    const end = offset + length;
    if (from < end) {
      const { response, bytes } = await this.#request({ from, end }, this.#tag);
      const changed = response.status === 200 || totalOf(response) !== this.size || tagOf(response) !== this.#tag;
      if (changed) throw refuse("aw-changed", "the file at this address changed while it was read: open it again");
      if (startOf(response) !== from || bytes.length !== end - from) throw otherRange();
      parts.push(bytes);
    }
    if (parts.length === 1) return parts[0];
    const joined = new Uint8Array(length);
    let at = 0;
    for (const part of parts) {
      joined.set(part, at);
      at += part.length;
    }
    return joined;
  }

  /** A request and its body, tried twice. */
  async #request(range, tag) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await this.#try(range, tag);
      } catch (error) {
        const again = error.code === "aw-network" || (error.code === "aw-http" && error.isTransient);
        if (!again || attempt > 0) throw error;
      }
    }
  }

  async #try(range, tag) {
    const { signal, timeout = TIMEOUT, headers = {}, fetch: fetcher = globalThis.fetch } = this.options;
    if (signal?.aborted) throw refuse("aw-aborted", "the caller ended the request", { cause: signal.reason });
    const controller = new AbortController();
    const abort = () => controller.abort(signal.reason);
    signal?.addEventListener("abort", abort, { once: true });
    let timedOut = false;
    let timer;
    // The time limit applies to each piece of the body, not to all of it: large files take long.
    const wind = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        timedOut = true;
        controller.abort();
      }, timeout);
    };
    const sent = new Headers(headers);
    if (range) sent.set("Range", `bytes=${range.from}-${range.end - 1}`);
    // Across origins this header costs a second request, and many servers refuse it: there only the responses are compared.
    if (tag && tag.startsWith('"') && isOwnOrigin(this.url)) sent.set("If-Range", tag);
    try {
      wind();
      const response = await fetcher(this.url, { headers: sent, signal: controller.signal, credentials: this.options.credentials ?? "same-origin" });
      if (![200, 206, 416].includes(response.status)) {
        const error = refuse("aw-http", `the server answered ${response.status} for ${this.url}`);
        error.status = response.status;
        error.isTransient = response.status >= 500;
        throw error;
      }
      // These bodies are of no use: the file changed, there is no such range, or the length of what was compressed is not known.
      const isRange = response.status === 206 && range !== null;
      if ((response.status === 200 && (tag || range?.from > 0)) || response.status === 416 || (isRange && isEncoded(response))) {
        controller.abort();
        return { response, bytes: new Uint8Array(0) };
      }
      const most = isRange ? range.end - range.from : (this.options.maxBytes ?? MOST_WHOLE);
      const tooLong = (length) => isRange ? otherRange()
        : refuse("aw-too-large", `the server gives no ranges, and the file has ${length} bytes: allow them by maxBytes`);
      const declared = Number(response.headers.get("content-length") ?? NaN);
      if (declared > most) {
        controller.abort();
        throw tooLong(declared);
      }
      const bytes = await collect(response, most, tooLong, (length) => {
        wind();
        this.bytesRead += length;
        this.options.onProgress?.({ bytesRead: this.bytesRead, size: this.size ?? null });
      });
      return { response, bytes };
    } catch (error) {
      if (error.code?.startsWith?.("aw-")) throw error;
      if (timedOut) throw refuse("aw-timeout", `nothing came from ${this.url} for ${timeout} ms`, { cause: error });
      if (signal?.aborted) throw refuse("aw-aborted", "the caller ended the request", { cause: error });
      throw refuse("aw-network", `${this.url} cannot be fetched: ${error.message}`, { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
    }
  }
}

function otherRange() {
  return refuse("aw-http", "the server sent another range than it was asked for");
}

async function collect(response, most, tooLong, took) {
  if (!response.body) return new Uint8Array(await response.arrayBuffer());
  const reader = response.body.getReader();
  const pieces = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    took(value.length);
    if (length > most) {
      await reader.cancel();
      throw tooLong(`more than ${most}`);
    }
    pieces.push(value);
  }
  if (pieces.length === 1) return pieces[0];
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function contentRange(response) {
  return /^bytes (\d+)-(\d+)\/(\d+)$/.exec(response.headers.get("content-range") ?? "");
}

function totalOf(response) {
  const found = contentRange(response);
  return found ? Number(found[3]) : null;
}

function startOf(response) {
  const found = contentRange(response);
  return found ? Number(found[1]) : null;
}

function isEncoded(response) {
  return (response.headers.get("content-encoding") ?? "identity") !== "identity";
}

function tagOf(response) {
  return response.headers.get("etag") ?? response.headers.get("last-modified");
}

function isOwnOrigin(url) {
  return typeof location === "undefined" || new URL(url, location.href).origin === location.origin;
}

/** A local file by its path or URL, in Node.js only. */
async function openFile(path) {
  try {
    const { openAsBlob, promises } = await import("node:fs");
    // The error of opening it as a Blob is the same for every reason.
    if (!(await promises.stat(path)).isFile()) throw new Error("it is not a regular file");
    return new BlobSource(await openAsBlob(path));
  } catch (error) {
    throw refuse("aw-content", `${path} cannot be opened: ${error.message}`, { cause: error });
  }
}

/** Two letters at least: one is a drive. */
const SCHEME = /^[a-z][a-z0-9+.-]+:/i;

/** The source for an argument of any supported type. */
export async function toSource(given, options) {
  if (given && typeof given.read === "function" && typeof given.size === "number") return given;
  if (given instanceof ArrayBuffer) return new MemorySource(new Uint8Array(given));
  if (ArrayBuffer.isView(given)) return new MemorySource(new Uint8Array(given.buffer, given.byteOffset, given.byteLength));
  if (typeof SharedArrayBuffer !== "undefined" && given instanceof SharedArrayBuffer) return new MemorySource(new Uint8Array(given));
  if (typeof Blob !== "undefined" && given instanceof Blob) return new BlobSource(given);
  if (typeof Response !== "undefined" && given instanceof Response) {
    if (!given.ok) throw refuse("aw-http", `the server answered ${given.status}`);
    return new MemorySource(new Uint8Array(await given.arrayBuffer()));
  }
  if (given instanceof URL || typeof given === "string") {
    // A relative URL has no base outside of pages.
    if (typeof location === "undefined" && typeof given === "string" && !SCHEME.test(given)) return openFile(given);
    const url = typeof location === "undefined" ? new URL(given) : new URL(given, location.href);
    return url.protocol === "file:" ? openFile(url) : UrlSource.open(String(url), options);
  }
  throw refuse("aw-usage", "a file is bytes, a Blob, a Response, a URL, or in Node.js a path");
}
