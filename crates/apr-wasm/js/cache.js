// Files stored in IndexedDB, each with its SHA-256, which is verified whenever one is read.

import { refuse } from "./errors.js";

const DATABASE = "apr-wasm";
const VERSION = 1;
const FILES = "files";
/** Default maximum size of the cache. */
const MOST = 512 * 1024 * 1024;

/** The digest of bytes in hexadecimal digits; null where the platform has none, as on pages without TLS. */
export async function sha256(bytes) {
  const subtle = globalThis.crypto?.subtle;
  if (!subtle) return null;
  const digest = new Uint8Array(await subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(refuse("aw-cache", `the cache failed: ${request.error?.message ?? "no reason given"}`, { cause: request.error }));
  });
}

function finished(transaction) {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    const fail = () => {
      const code = transaction.error?.name === "QuotaExceededError" ? "aw-cache-full" : "aw-cache";
      reject(refuse(code, `the cache cannot be written: ${transaction.error?.message ?? "no reason given"}`, { cause: transaction.error }));
    };
    transaction.onerror = fail;
    transaction.onabort = fail;
  });
}

export class Cache {
  #database = null;

  /** The database, or null where there is none: private windows, Node.js. */
  async #open() {
    if (!globalThis.indexedDB) return null;
    this.#database ??= (async () => {
      const request = globalThis.indexedDB.open(DATABASE, VERSION);
      request.onupgradeneeded = () => {
        const database = request.result;
        // A later schema starts empty: files can be fetched again.
        for (const name of [...database.objectStoreNames]) database.deleteObjectStore(name);
        database.createObjectStore(FILES, { keyPath: "key" });
        database.createObjectStore("bytes");
      };
      const database = await promised(request);
      database.onversionchange = () => {
        database.close();
        this.#database = null;
      };
      return database;
    })().catch(() => {
      this.#database = null;
      return null;
    });
    return this.#database;
  }

  async #required() {
    const database = await this.#open();
    if (!database) throw refuse("aw-cache-none", "there is no IndexedDB here");
    return database;
  }

  /** The entries: keys, sizes, digests, times. */
  async list() {
    const database = await this.#open();
    if (!database) return [];
    const entries = await promised(database.transaction(FILES).objectStore(FILES).getAll());
    return entries.sort((one, other) => other.used - one.used);
  }

  /** Size of all entries. */
  async size() {
    return (await this.list()).reduce((sum, { size }) => sum + size, 0);
  }

  async remove(key) {
    const database = await this.#open();
    if (!database) return;
    const transaction = database.transaction([FILES, "bytes"], "readwrite");
    transaction.objectStore(FILES).delete(key);
    transaction.objectStore("bytes").delete(key);
    await finished(transaction);
  }

  async clear() {
    const database = await this.#open();
    if (!database) return;
    const transaction = database.transaction([FILES, "bytes"], "readwrite");
    transaction.objectStore(FILES).clear();
    transaction.objectStore("bytes").clear();
    await finished(transaction);
  }

  /** The bytes of a key if their digest matches, otherwise the reason. */
  async get(key) {
    const database = await this.#open();
    if (!database) return { entry: null, bytes: null };
    const transaction = database.transaction([FILES, "bytes"]);
    const [entry, stored] = await Promise.all([
      promised(transaction.objectStore(FILES).get(key)),
      promised(transaction.objectStore("bytes").get(key)),
    ]);
    if (!entry && !stored) return { entry: null, bytes: null };
    const bytes = stored instanceof ArrayBuffer ? new Uint8Array(stored) : stored;
    const isSound = entry && bytes instanceof Uint8Array && bytes.length === entry.size && (await sha256(bytes)) === entry.sha256;
    if (!isSound) {
      await this.remove(key);
      return { entry: null, bytes: null, dropped: true };
    }
    return { entry, bytes };
  }

  async #touch(entry) {
    const database = await this.#required();
    const transaction = database.transaction(FILES, "readwrite");
    transaction.objectStore(FILES).put({ ...entry, used: Date.now() });
    await finished(transaction);
  }

  /** Stores bytes; evicts the least recently used files. */
  async put(key, url, bytes, digest, most = MOST) {
    const database = await this.#required();
    if (bytes.length > most) throw refuse("aw-cache-full", `${bytes.length} bytes are more than the cache may hold (${most})`);
    const evicted = [];
    const kept = (await this.list()).filter((entry) => entry.key !== key);
    let total = kept.reduce((sum, { size }) => sum + size, bytes.length);
    while (total > most) {
      const oldest = kept.pop();
      total -= oldest.size;
      evicted.push(oldest.key);
    }
    const transaction = database.transaction([FILES, "bytes"], "readwrite");
    for (const old of evicted) {
      transaction.objectStore(FILES).delete(old);
      transaction.objectStore("bytes").delete(old);
    }
    const time = Date.now();
    transaction.objectStore(FILES).put({ key, url: String(url), size: bytes.length, sha256: digest, stored: time, used: time });
    transaction.objectStore("bytes").put(bytes.slice().buffer, key);
    await finished(transaction);
    return evicted;
  }

  /** The bytes of a URL: stored ones if their digest matches, otherwise those that `load` fetches. */
  async fetch(key, url, { sha256: pinned, maxCacheBytes, refresh = false }, load) {
    const notes = [];
    const note = (code, message) => notes.push({ code, message });
    const database = await this.#open();
    if (!database) note("aw-cache-none", "there is no IndexedDB here: the file is fetched each time");
    const hasDigest = Boolean(globalThis.crypto?.subtle);
    if (!hasDigest) {
      note("aw-cache-no-digest", "this page has no SHA-256 (it is not served over TLS): nothing is kept");
      if (pinned) throw refuse("aw-cache-no-digest", "a digest was demanded, and this page cannot compute it");
    }
    const canKeep = database !== null && hasDigest;
    const cached = canKeep && !refresh ? await this.get(key) : { entry: null, bytes: null };
    if (cached.dropped) note("aw-cache-damaged", "what was kept is not what was stored: it was dropped and is fetched again");
    if (cached.bytes) {
      const isWanted = (!pinned || pinned.toLowerCase() === cached.entry.sha256) && cached.entry.url === String(url);
      if (isWanted) {
        await this.#touch(cached.entry).catch(() => note("aw-cache", "the cache cannot be written"));
        note("aw-cached", "loaded from cache (SHA-256 verified)");
        return { bytes: cached.bytes, notes };
      }
      note("aw-cache-other", "what was kept is another file than the one asked for: it is fetched again");
    }
    const bytes = await load();
    const digest = hasDigest ? await sha256(bytes) : null;
    if (pinned && digest !== pinned.toLowerCase()) {
      throw refuse("aw-content", `the file has the SHA-256 ${digest}, not ${pinned}`);
    }
    if (canKeep) {
      try {
        const evicted = await this.put(key, url, bytes, digest, maxCacheBytes);
        if (evicted.length > 0) note("aw-cache-evicted", `evicted: ${evicted.join(", ")}`);
      } catch (error) {
        note(error.code ?? "aw-cache", `not kept: ${error.message}`);
      }
    }
    return { bytes, notes };
  }
}
