// The functions of the package, for the full module and for the core.

import { Cache, sha256 } from "./cache.js";
import { Engine, Operation, Question, compile, hasSimd, toBytes } from "./engine.js";
import { refuse } from "./errors.js";
import { AprFile, decodeValues } from "./file.js";
import { createPrivatePredict } from "./private.js";
import { UrlSource, toSource } from "./sources.js";

/** Random bytes of the platform. */
function random(length) {
  return globalThis.crypto.getRandomValues(new Uint8Array(length));
}

/** Modules that exist with and without SIMD: nothing in the core would be faster with it. */
const WITH_TWINS = new Set(["full"]);

/** The modules that read files of other programs, by the names of formats. */
const READERS = Object.fromEntries(
  Object.entries({
    pickles: "torch torch-legacy torchscript torch-export torch-index pickle npy npz zip gzip zlib zfile",
    hdf5: "hdf5 keras",
    graphs: "onnx tflite saved-model tf-checkpoint msgpack",
  }).flatMap(([module, formats]) => formats.split(" ").map((format) => [format, module])),
);
/** Modules that are loaded when they are first needed. */
const LATE = ["pickles", "hdf5", "graphs", "scan"];

export function createApi(flavour) {
  let chosen = null;
  let loading = null;
  let engine = null;
  let given = {};
  const late = new Map();
  const cache = new Cache();

  async function load(options) {
    const { variant = "auto", wasmUrl, module } = options;
    if (!["auto", "simd", "scalar"].includes(variant)) throw refuse("aw-usage", 'the variant is "auto", "simd" or "scalar"');
    const simd = WITH_TWINS.has(flavour) && (variant === "auto" ? hasSimd() : variant === "simd");
    const source = module ?? wasmUrl ?? new URL(`./wasm/apr-${flavour}${simd ? "-simd" : ""}.wasm`, import.meta.url);
    given = options.modules ?? given;
    const unknown = Object.keys(given).find((name) => !LATE.includes(name));
    if (unknown !== undefined) throw refuse("aw-usage", `modules that are loaded later are ${LATE.join(", ")}, not ${unknown}`);
    const compiled = await compile(source);
    chosen = compiled;
    engine = new Engine(await WebAssembly.instantiate(compiled, {}));
    return about();
  }

  function about() {
    const { version, features } = engine;
    return { simd: features.includes("simd"), version, features };
  }

  /** Loads the module that the first call names. */
  async function init(options = {}) {
    if (loading && Object.keys(options).length === 0) {
      await loading;
      return about();
    }
    const before = loading;
    loading = (async () => {
      await before?.catch(() => {});
      return load(options);
    })();
    try {
      return await loading;
    } catch (error) {
      loading = null;
      throw error.code ? error : refuse("aw-init", `the module cannot be loaded: ${error.message}`, { cause: error });
    }
  }

  /** A usable instance: a new one after a trap. */
  async function ready() {
    await init();
    if (engine.trapped) engine = new Engine(await WebAssembly.instantiate(chosen, {}));
    return engine;
  }

  function now() {
    if (!engine) throw refuse("aw-init", "the module is not loaded yet: await init() first");
    if (engine.trapped) engine = new Engine(new WebAssembly.Instance(chosen, {}));
    return engine;
  }

  /** An instance of a module that is loaded when it is first needed. */
  async function lateEngine(name) {
    if (!late.has(name)) {
      const loading = (async () => {
        const compiled = await compile(given[name] ?? new URL(`./wasm/apr-${name}.wasm`, import.meta.url));
        return { compiled, engine: new Engine(await WebAssembly.instantiate(compiled, {})) };
      })();
      late.set(name, loading);
      loading.catch(() => late.delete(name));
    }
    let loaded;
    try {
      loaded = await late.get(name);
    } catch (error) {
      throw error.code ? error : refuse("aw-init", `the module ${name} cannot be loaded: ${error.message}`, { cause: error });
    }
    if (loaded.engine.trapped) loaded.engine = new Engine(await WebAssembly.instantiate(loaded.compiled, {}));
    return loaded.engine;
  }

  async function open(given, options = {}) {
    const engine = await ready();
    const source = await toSource(given, options);
    const tried = new Set();
    let reader = engine;
    for (;;) {
      try {
        return await AprFile.open(reader, source, options, engine);
      } catch (error) {
        // The first bytes of an archive do not say what is in it: its reader does.
        const module = error.code === "aw-foreign-format" ? READERS[error.format] : undefined;
        if (module === undefined || tried.has(module)) throw error;
        tried.add(module);
        reader = await lateEngine(module);
      }
    }
  }

  /** What loading a file would run: the object that `apr scan --json` prints. */
  async function scan(given, options = {}) {
    const source = await toSource(given, options);
    const name = options.name ?? nameOf(given);
    return AprFile.scan(await lateEngine("scan"), source, options, name);
  }

  async function loadModel(source, options = {}) {
    const file = await open(source, options);
    try {
      return await file.loadModel();
    } finally {
      file.close();
    }
  }

  async function loadFromUrl(url, options = {}) {
    return loadModel(url, options);
  }

  /** The model of a URL, stored in IndexedDB under a key; its SHA-256 is verified whenever it is read. */
  async function loadCached(key, url, options = {}) {
    const { bytes, notes } = await cache.fetch(key, url, options, async () => {
      const source = await UrlSource.open(new URL(url, globalThis.location?.href).href, options);
      return source.read(0, source.size);
    });
    const model = await loadModel(bytes, options);
    model.notes = [...notes, ...model.notes];
    return model;
  }

  /** Quantizes floats to a block type. */
  function quantize(type, values, { rowLength, importance } = {}) {
    const floats = toFloats(values);
    const question = new Question().text(type).u32(rowLength ?? floats.length).bytes(toFloats(importance ?? [])).raw(floats);
    return now().call(Operation.Quantize, question).bytes;
  }

  /** Dequantizes blocks. */
  function dequantize(type, bytes, elements) {
    return decodeValues(now(), type, bytes, elements);
  }

  function quantTypes() {
    return now().quantTypes ?? [];
  }

  function generateKeys(kind) {
    if (kind !== "sign" && kind !== "encrypt") throw refuse("aw-usage", 'a key pair is made to "sign" or to "encrypt"');
    return JSON.parse(now().call(Operation.GenerateKeys, new Question().u8(kind === "sign" ? 0 : 1).raw(random(256))).json);
  }

  /** Verifies a detached signature in the format of minisign. */
  async function verifyDetached(input, signature, publicKey) {
    const engine = await ready();
    const source = await toSource(input, {});
    const question = new Question().text(signature).text(publicKey).raw(await source.read(0, source.size));
    return JSON.parse(engine.call(Operation.VerifyDetached, question).json);
  }

  /** Encrypts a request to the owner of a model, whose key is given or is in the metadata of an open file. */
  function encryptForModel(input, key, { context = new Uint8Array(0) } = {}) {
    const bytesOf = (value) => (typeof value === "string" ? new TextEncoder().encode(value) : toBytes(value));
    const text = typeof key === "string" ? key : key.metadata?.custom?.inference_pub_key;
    if (typeof text !== "string") throw refuse("aw-usage", "this file names no key for private inference");
    // A valid signature by the key inside the file says nothing about who signed.
    if (typeof key !== "string" && !(key.protection.verified && key.protection.signer?.trusted)) {
      throw refuse("ac-signed", "the key in the metadata is only as good as the file: open it with { signer }, or give the key itself");
    }
    const engine = now();
    const seconds = Math.floor(Date.now() / 1000);
    const question = new Question().text(text).bytes(bytesOf(context)).bytes(random(256)).u64(seconds).raw(bytesOf(input));
    const { json, bytes } = engine.call(Operation.EncryptForModel, question);
    // The module gives the number to another request as soon as this one is freed.
    let { number } = JSON.parse(json);
    const decryptResponse = (response) => {
      if (number === null) throw refuse("aw-closed", "the response was decrypted, or the request was freed");
      const opened = engine.call(Operation.DecryptResponse, new Question().u32(number).raw(bytesOf(response)));
      number = null;
      return opened.bytes;
    };
    const free = () => {
      if (number !== null && !engine.trapped) engine.call(Operation.FreeRequest, new Question().u32(number));
      number = null;
    };
    return { request: bytes, decryptResponse, free };
  }

  return {
    init, open, scan, loadModel, loadFromUrl, loadCached, quantize, dequantize, quantTypes, generateKeys, verifyDetached, encryptForModel,
    privatePredict: createPrivatePredict({ encryptForModel: async (...args) => (await ready(), encryptForModel(...args)), verifyDetached }), cache, sha256,
  };
}

/** Numbers as 32-bit floats. */
function toFloats(numbers) {
  if (numbers instanceof Float32Array) return numbers;
  const wrong = () => refuse("aw-usage", "what is quantized, and its importance, are numbers in a typed array or a list");
  if (typeof numbers?.length !== "number") throw wrong();
  return Float32Array.from(numbers, (number) => {
    if (typeof number !== "number") throw wrong();
    return number;
  });
}

/** The name of a file, whose ending matters for Python files and chat templates. */
function nameOf(given) {
  if (typeof given?.name === "string") return given.name;
  const address = given instanceof URL ? given.href : typeof given === "string" ? given : (given?.url ?? "");
  return String(address).split(/[?#]/, 1)[0].split(/[\\/]/).pop();
}
