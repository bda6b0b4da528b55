// An open file: its description, tensors and model.

import { Operation, Question, revive } from "./engine.js";
import { FormatError, refuse } from "./errors.js";
import { Model } from "./model.js";
import { MemorySource, toSource } from "./sources.js";

/** Largest remote file that is read only to list the tensors of a model. */
const LISTED = 16 * 1024 * 1024;
/** Bytes read, decrypted or decoded at once. */
const PIECE = 4 * 1024 * 1024;

const ARRAYS = {
  F64: Float64Array, F32: Float32Array, C64: Float32Array, I64: BigInt64Array, U64: BigUint64Array, I32: Int32Array, U32: Uint32Array,
  I16: Int16Array, U16: Uint16Array, F16: Uint16Array, BF16: Uint16Array, I8: Int8Array,
};

/** The keys of `keys.rs`. */
function writeKeys(question, { password, identity, keyPassword, signer }, fallback) {
  if (password !== undefined && identity !== undefined) {
    throw refuse("aw-usage", "a file is opened with a password or with an identity, not with both");
  }
  if (password !== undefined) question.u8(1).text(password);
  else if (identity !== undefined) question.u8(2).text(identity).text(keyPassword ?? "");
  else question.u8(0);
  if (signer === "anyone" || (signer === undefined && fallback === "anyone")) return question.u8(2);
  if (signer === undefined || signer === null) return question.u8(0);
  const signers = Array.isArray(signer) ? signer : [signer];
  question.u8(1).u32(signers.length);
  signers.forEach((text) => question.text(text));
  return question;
}

export class AprFile {
  #engine;
  /** The module that turns bytes into numbers. */
  #numbers;
  #source;
  #options;
  #number = null;
  #tensors = new Map();
  #isBigEndian = false;
  #needsDecoding = false;
  #lock = Promise.resolve();

  constructor(engine, source, options, numbers) {
    this.#engine = engine;
    this.#numbers = numbers;
    this.#source = source;
    this.#options = options;
    this.notes = [...source.notes];
    this.warnings = [];
    this.metadata = {};
    this.tensors = [];
    this.model = null;
    this.protection = { encrypted: false, kind: null, signed: false, signer: null, verified: false, needs: null };
    if (options.streaming) this.#note("aw-ignored-streaming", "streaming is for native programs: the file is read through memory");
    if (options.nativeAlignment) {
      this.#note("aw-ignored-native-alignment", "native alignment is for native programs: tensors are read as they lie");
    }
  }

  static async open(engine, given, options, numbers = engine) {
    const source = await toSource(given, options);
    const file = new AprFile(engine, source, options, numbers);
    await file.#open();
    return file;
  }

  /** What loading a file would run. */
  static async scan(engine, source, options, name) {
    const file = new AprFile(engine, source, options, null);
    file.#number = JSON.parse(engine.call(Operation.NewFile, new Question().u64(source.size).u8(0)).json).number;
    try {
      return await file.#asked(Operation.Scan, (question) => {
        question.text(name);
        for (const trusted of options.allow ?? []) question.text(trusted);
        return question;
      });
    } finally {
      file.close();
    }
  }

  get size() {
    return this.#source.size;
  }
  get bytesRead() {
    return this.#source.bytesRead;
  }
  get #isAprV1() {
    return this.format === "apr" && this.version === 1;
  }
  get #isAprV2() {
    return this.format === "apr" && this.version === 2;
  }

  #note(code, message) {
    if (!this.notes.some((note) => note.code === code)) this.notes.push({ code, message });
  }

  async #open() {
    const { level = "strict", allowUnverified = false, noSizeLimit = false } = this.#options;
    if (level !== "strict" && level !== "compat") throw refuse("aw-usage", 'the level is "strict" or "compat"');
    const flags = (level === "compat" ? 1 : 0) | (allowUnverified ? 2 : 0) | (noSizeLimit ? 4 : 0);
    const { json } = this.#engine.call(Operation.NewFile, new Question().u64(this.size).u8(flags));
    this.#number = JSON.parse(json).number;
    try {
      await this.#describe();
    } catch (error) {
      this.close();
      throw error;
    }
  }

  async #describe() {
    const said = await this.#asked(Operation.Open, (question) => question);
    this.format = said.format;
    this.#described(said);
    const encrypted = said.encrypted ?? false;
    this.protection = {
      encrypted,
      kind: this.format === "sealed" ? "sealed" : encrypted ? (said.lock ?? null) : null,
      signed: said.signed ?? false,
      signer: said.declaredSigner ?? null,
      verified: false,
      needs: encrypted && !this.#isAprV2 ? (said.lock === "recipient" ? "identity" : "password") : null,
    };
    const { password, identity } = this.#options;
    const signer = this.#options.signer ?? undefined;
    const hasKey = password !== undefined || identity !== undefined;
    if (this.format === "sealed") {
      if (hasKey || !encrypted) await this.unlock(this.#options);
    } else if (hasKey || (signer !== undefined && this.#isAprV1 && !encrypted)) {
      if (!this.#isAprV1) {
        throw refuse("ac-not-encrypted", `a key was given, and a file of the format ${this.format} is not encrypted`);
      }
      await this.unlock(this.#options);
    } else if (signer !== undefined && !this.#isAprV1) {
      throw this.#holdsNoSignature();
    } else if (this.#needsDecoding && !encrypted) {
      await this.#look();
    }
  }

  /** Decodes an unencrypted payload to show it; an invalid one is a warning until it is used. */
  async #look() {
    const isNear = this.#source.isMemory || !("url" in this.#source);
    if (!isNear && this.size > LISTED) {
      this.#note("aw-payload-not-read", "the payload was not read: loadModel() does, and then the tensors are known");
      return;
    }
    try {
      this.#described(await this.#decodeAll({}));
    } catch (error) {
      if (error.code === "aw-trap" || !error.code) throw error;
      this.warnings.push({ kind: "payload", code: error.code, message: error.message });
    }
  }

  /** The description of the decoded payload, whose signature is verified if a signer is given. */
  #decodeAll(keys) {
    return this.#asked(Operation.Decode, (question) => writeKeys(question.u8(1), keys));
  }

  /** Takes over a description; of a sealed file that was opened, that of the file inside it. */
  #described(said) {
    this.#isBigEndian = said.bigEndian ?? false;
    this.#needsDecoding = said.needsDecoding ?? false;
    this.metadata = said.plainMetadata ?? revive(said.metadata);
    if (this.format === said.format) {
      for (const key of ["modelType", "compression", "payloadSize", "uncompressedSize", "version", "dataStart"]) {
        if (said[key] !== undefined) this[key] = said[key];
      }
    }
    this.warnings = said.warnings ?? [];
    this.#setTensors(said.tensors);
    this.model = describeModel(said.model, said.modelType);
    if (said.lacksTensors) this.#note("aw-feature", 'tensors of models are listed by "apr-wasm", not by "apr-wasm/core"');
    if (said.asksStreaming) {
      this.#note("aw-ignored-streaming", "the file asks to be streamed, as native programs can: it is read through memory");
    }
    if (said.asksNativeAlignment) {
      this.#note("aw-ignored-native-alignment", "the file is aligned for native programs: it is read as it lies");
    }
  }

  #setTensors(tensors) {
    this.#tensors = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    this.tensors = tensors.map(({ name, dtype, shape, offset, bytes, elements, aliasOf }) => {
      const bitsPerWeight = elements === 0 ? 0 : (bytes * 8) / elements;
      return { name, dtype, shape, offset, bytes, elements, bitsPerWeight, ...(aliasOf === undefined ? {} : { aliasOf }) };
    });
  }

  /** Repeats a request until all bytes that it needs are there; one request at a time. */
  async ask(operation, write) {
    const before = this.#lock;
    let release;
    this.#lock = new Promise((resolve) => (release = resolve));
    await before;
    try {
      for (;;) {
        if (this.#number === null) throw refuse("aw-closed", "the file was closed");
        const answer = this.#engine.call(operation, write(new Question().u32(this.#number)));
        if (!answer.need) return answer;
        await this.#provide(answer.need);
      }
    } finally {
      release();
    }
  }

  async #asked(operation, write) {
    return JSON.parse((await this.ask(operation, write)).json);
  }

  async #provide({ offset, length }) {
    const piece = this.#source.isMemory ? length : PIECE;
    for (let at = offset; at < offset + length; at += piece) {
      const now = Math.min(piece, offset + length - at);
      const bytes = await this.#source.read(at, now);
      if (this.#number === null) throw refuse("aw-closed", "the file was closed");
      this.#engine.call(Operation.Provide, new Question().u32(this.#number).u64(at).raw(bytes));
      this.#options.onProgress?.({ bytesRead: this.bytesRead, size: this.size });
    }
  }

  /**
   * These keys, or those that the file was opened with. Bytes that are read again need the signature of the key that was verified before:
   * a server may give others.
   */
  #keys(given) {
    const { password, identity, keyPassword } = given.password === undefined && given.identity === undefined ? this.#options : given;
    const signer = given.signer ?? this.#options.signer ?? undefined;
    if (signer !== undefined && !this.#numbers.features.includes("crypto")) {
      throw refuse("aw-feature", 'verifying signatures is not in this build: import "apr-wasm" instead of "apr-wasm/core"');
    }
    return { password, identity, keyPassword, signer };
  }

  /** Decrypts; with a signer, verifies first. */
  async unlock(given = {}) {
    if (this.format !== "sealed" && !this.#isAprV1) throw refuse("ac-not-encrypted", `a file of the format ${this.format} is not encrypted`);
    const keys = this.#keys(given);
    let said;
    if (this.format === "sealed") {
      said = await this.#asked(Operation.Unseal, (question) => writeKeys(question, keys, this.protection.signed ? "anyone" : null));
      this.publicMetadata ??= this.metadata;
      this.privateMetadata = revive(said.privateMetadata);
      this.innerFormat = said.format;
      this.innerVersion = said.version;
      this.#described(said);
      if (this.#needsDecoding) await this.#look();
    } else {
      said = await this.#decodeAll(keys);
      this.#described(said);
    }
    this.#options = { ...this.#options, ...keys };
    this.#signedBy(said.signer, given);
    this.protection = { ...this.protection, needs: null };
    return this;
  }

  /** Notes the key whose signature was verified: nothing is read from now on that it did not sign. */
  #signedBy(signer, given) {
    if (!signer) return;
    // Without a signer it is the key of before, no more trusted than it was.
    const { verified, signer: before } = this.protection;
    const isAgain = verified && (given.signer ?? null) === null;
    this.protection = { ...this.protection, signer: isAgain ? before : signer, verified: true };
    this.#options = { ...this.#options, signer: signer.publicKey };
  }

  /** Reads all bytes: the checksum, and the signature by the signer's public key (`"anyone"` for the key in the file). */
  async verify({ signer } = {}) {
    if (this.#engine !== this.#numbers) {
      throw refuse("aw-nothing-to-verify", "a file of this format has neither checksum nor signature: verify a signature in a file of its own");
    }
    if ((signer ?? null) !== null && this.#isAprV2) throw this.#holdsNoSignature();
    const fallback = this.protection.signed ? "anyone" : null;
    const keys = { signer: this.#keys({ signer }).signer };
    const said = await this.#asked(Operation.Verify, (question) => (this.#isAprV2 ? question : writeKeys(question, keys, fallback)));
    if (this.innerFormat) {
      // What was read of the file before may be of other bytes.
      await this.unlock({ signer });
    } else {
      if (said.format !== undefined) this.#described(said);
      this.#signedBy(said.signer, { signer });
      if (said.format !== undefined && this.protection.needs === null) await this.#decodeVerified();
    }
    return { signer: said.signer ? this.protection.signer : null, complete: true };
  }

  #holdsNoSignature() {
    return refuse("ac-not-signed", `a signature was demanded, and a file of the format ${this.format} holds none`);
  }

  /** Decodes the payload of a file that was verified; an invalid one is a warning until it is used. */
  async #decodeVerified() {
    try {
      this.#described(await this.#decodeAll(this.#keys({})));
    } catch (error) {
      if (!(error instanceof FormatError) && error.code !== "aw-memory") throw error;
      this.warnings.push({ kind: "payload", code: error.code, message: error.message });
    }
  }

  #tensor(name) {
    const tensor = this.#tensors.get(name);
    if (tensor) return tensor;
    throw refuse("aw-no-tensor", `the file has no tensor ${JSON.stringify(name)}`, { tensor: name });
  }

  async #part(tensor, from, length) {
    if (this.#isAprV2 && this.protection.encrypted) {
      throw refuse("ac-encrypted", "the file is marked as encrypted in an unknown way", { offset: 6, tensor: tensor.name });
    }
    if (length === 0 && tensor.dtype !== "unsupported") return new Uint8Array(0);
    if (tensor.offset !== null && this.innerFormat) return this.#content(tensor.offset + from, length);
    if (tensor.offset !== null) return this.#source.read(tensor.offset + from, length);
    const { bytes } = await this.ask(Operation.Member, (question) => question.text(tensor.name).u64(from).u64(length));
    return bytes;
  }

  /** Bytes of the file inside a sealed one: each range is decrypted and verified when it is read. */
  async #content(offset, length) {
    const out = new Uint8Array(length);
    for (let at = 0; at < length; at += PIECE) {
      const now = Math.min(PIECE, length - at);
      const { bytes } = await this.ask(Operation.Content, (question) => question.u64(offset + at).u64(now));
      out.set(bytes, at);
    }
    return out;
  }

  /** A tensor's bytes as they are stored: of a file in memory, a view of them. */
  async bytes(name) {
    const tensor = this.#tensor(name);
    return this.#part(tensor, 0, tensor.bytes);
  }

  /** A tensor as a typed array of its own type; blocks and small floats are bytes, 16-bit floats their bits. */
  async tensor(name) {
    const { dtype, shape, bytes: length } = this.#tensor(name);
    if (this.#isBigEndian) throw refuse("aw-byte-order", "numbers are not read from big-endian files", { tensor: name });
    let bytes = await this.bytes(name);
    const Type = ARRAYS[dtype] ?? Uint8Array;
    let isView = this.#source.isMemory === true && !this.innerFormat && this.#tensor(name).offset !== null && length > 0;
    if (bytes.byteOffset % Type.BYTES_PER_ELEMENT !== 0) {
      bytes = bytes.slice();
      isView = false;
    }
    const data = new Type(bytes.buffer, bytes.byteOffset, bytes.byteLength / Type.BYTES_PER_ELEMENT);
    return { name, dtype, shape, data, isView };
  }

  /** Elements of a tensor as 32-bit floats, whatever its type. */
  async values(name, { start = 0, end } = {}) {
    const tensor = this.#tensor(name);
    if (this.#isBigEndian) throw refuse("aw-byte-order", "numbers are not read from big-endian files", { tensor: name });
    const last = Math.min(end ?? tensor.elements, tensor.elements);
    if (!(start >= 0 && start <= last)) throw refuse("aw-usage", "start and end are no range of the elements", { tensor: name });
    const out = new Float32Array(last - start);
    if (out.length === 0) return out;
    const { unitElements, unitBytes } = tensor;
    const isRegular = unitElements > 0 && Math.ceil(tensor.elements / unitElements) * unitBytes === tensor.bytes;
    if (!isRegular) {
      const all = await this.#decode(tensor, 0, tensor.bytes, tensor.elements);
      return all.slice(start, last);
    }
    const step = Math.max(1, Math.floor(PIECE / unitBytes));
    const firstUnit = Math.floor(start / unitElements);
    const lastUnit = Math.ceil(last / unitElements);
    for (let unit = firstUnit; unit < lastUnit; unit += step) {
      const until = Math.min(unit + step, lastUnit);
      const first = unit * unitElements;
      const count = Math.min(until * unitElements, tensor.elements) - first;
      const numbers = await this.#decode(tensor, unit * unitBytes, (until - unit) * unitBytes, count);
      const from = Math.max(start - first, 0);
      out.set(numbers.subarray(from, Math.min(last - first, count)), first + from - start);
    }
    return out;
  }

  async #decode(tensor, from, length, count) {
    const bytes = await this.#part(tensor, from, length);
    try {
      return decodeValues(this.#numbers, tensor.dtype, bytes, count);
    } catch (error) {
      if (error.code && error.tensor === null) error.tensor = tensor.name;
      throw error;
    }
  }

  /** The value of a key of a GGUF file, an array as a whole. */
  async array(key) {
    return revive((await this.#asked(Operation.Entry, (question) => question.text(key))).value);
  }
  entries(key) {
    return this.array(key);
  }

  /** The model in the file; reads all of it. */
  async loadModel(keys = {}) {
    if (this.#engine !== this.#numbers) {
      throw refuse("mo-no-model", `tensors of another program (${this.format}) are not a model that predicts here: read them one by one`);
    }
    const isDemanded = (keys.signer ?? null) !== null;
    if (this.format === "sealed") {
      if (!this.innerFormat || isDemanded) await this.unlock(keys);
    } else if (isDemanded && !this.#isAprV1) {
      throw this.#holdsNoSignature();
    }
    const all = this.#keys(keys);
    const { model, number } = await this.#asked(Operation.LoadModel, (question) => writeKeys(question, all));
    const known = describeModel(model);
    if (this.model) this.model = known;
    return new Model(this.#engine, number, known, this.notes);
  }

  close() {
    if (this.#number === null) return;
    const number = this.#number;
    this.#number = null;
    if (!this.#engine.trapped) this.#engine.call(Operation.CloseFile, new Question().u32(number));
  }
}

function describeModel(said, modelType) {
  if (!said) return modelType && modelType !== "unknown" ? { ...UNKNOWN, type: modelType } : null;
  return { ...UNKNOWN, ...revive(said) };
}

const UNKNOWN = Object.freeze({
  type: null, inputs: null, outputs: null, classes: null, takesText: false, takesNothing: false, wide: false, givesProbabilities: false,
  features: null, classNames: null, target: null, terms: null,
});

/** Numbers of any type as 32-bit floats. */
export function decodeValues(engine, dtype, bytes, count) {
  const question = new Question().text(dtype).u64(count).raw(bytes);
  return new Float32Array(engine.call(Operation.Values, question).bytes.buffer);
}

export { MemorySource };
