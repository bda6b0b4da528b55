/** Any error of this package; `code` is stable. */
export class AprError extends Error {
  readonly code: string;
  /** Byte offset in the file. */
  readonly offset: number | null;
  readonly tensor: string | null;
  readonly key: string | null;
  /** Of `aw-foreign-format`: what the file is, for example `web-page`, `torch`, `npz`. */
  readonly format: string | null;
  readonly help: string | null;
}
/** The file is invalid, corrupted, or of another kind than requested. */
export class FormatError extends AprError {}
/** A key, password or signature is missing or wrong. */
export class ProtectionError extends AprError {}
/** The file cannot be fetched or read, or changed while it was read. */
export class NetworkError extends AprError {}
/** The cache failed. */
export class CacheError extends AprError {}
/** An invalid call: arguments, closed files, features that this build lacks. */
export class UsageError extends AprError {}

export interface InitOptions {
  /** Which module of `apr-wasm`; `apr-wasm/core` has only one. */
  variant?: "auto" | "simd" | "scalar";
  wasmUrl?: string | URL;
  module?: WebAssembly.Module | ArrayBuffer | Uint8Array;
  /** Modules that are loaded when they are first needed, where they are not beside the scripts. */
  modules?: Partial<Record<"pickles" | "hdf5" | "graphs" | "scan", string | URL | WebAssembly.Module | ArrayBuffer | Uint8Array>>;
}
export interface About {
  simd: boolean;
  version: string;
  features: string[];
}
/** Loads the module. Everything that returns a promise does so itself. */
export function init(options?: InitOptions): Promise<About>;
/** Whether the engine supports 128-bit SIMD. */
export function hasSimd(): boolean;

/** The location of a file. A string is a URL; in Node.js one without a scheme is a path. */
export type Source = ArrayBuffer | Uint8Array | Blob | Response | URL | string;

/** The key that decrypts a file, and the keys whose signature it must have. */
export interface Keys {
  password?: string;
  /** A secret key as a string, as `apr keygen encrypt` writes it. */
  identity?: string;
  /** The password of a secret key that is encrypted with one. */
  keyPassword?: string;
  /** Public keys as strings; `"anyone"` takes the key in the file. */
  signer?: string | string[] | "anyone";
}

export interface Progress {
  bytesRead: number;
  size: number | null;
}

export interface OpenOptions extends Keys {
  level?: "strict" | "compat";
  /** Use a signed file without verifying its signature. */
  allowUnverified?: boolean;
  /** Lift the limit on decompressed size; only for files you trust. */
  noSizeLimit?: boolean;
  signal?: AbortSignal;
  /** Milliseconds without a byte after which a request fails; 30,000. */
  timeout?: number;
  headers?: Record<string, string>;
  credentials?: RequestCredentials;
  fetch?: typeof fetch;
  /** Maximum size of a file from a server without range requests; 1 GiB. */
  maxBytes?: number;
  onProgress?: (progress: Progress) => void;
  /** For native programs; a note says that it was ignored. */
  streaming?: boolean;
  /** For native programs; a note says that it was ignored. */
  nativeAlignment?: boolean;
}

export interface Note {
  code: string;
  message: string;
}
export interface Warning {
  kind: string;
  message: string;
  code?: string;
}

export interface TensorInfo {
  name: string;
  dtype: string;
  shape: number[];
  /** From the start of the file; `null` for tensors of a decoded payload. */
  offset: number | null;
  bytes: number;
  elements: number;
  bitsPerWeight: number;
  /** Of a file of another program: the tensor that this is a second name of. */
  aliasOf?: string;
}

export type NumberArray =
  | Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array | Uint32Array | BigInt64Array
  | BigUint64Array;

export interface Tensor {
  name: string;
  dtype: string;
  shape: number[];
  data: NumberArray;
  /** Whether `data` is a view of the bytes that were opened. */
  isView: boolean;
}

export interface Signer {
  fingerprint: string;
  publicKey: string;
  trusted: boolean;
}

export interface Protection {
  encrypted: boolean;
  kind: null | "password" | "recipient" | "sealed";
  signed: boolean;
  signer: Signer | null;
  verified: boolean;
  needs: null | "password" | "identity";
}

export type Label = number | bigint | string | boolean;

export interface ModelInfo {
  type: string;
  inputs: number | null;
  outputs: number | null;
  /** `null` for a label of a type that is not known. */
  classes: (Label | null)[] | null;
  takesText: boolean;
  takesNothing: boolean;
  wide: boolean;
  givesProbabilities: boolean;
  features: string[] | null;
  classNames: string[] | null;
  target: string | null;
  /** Of a model of texts, once it is decoded: the terms that {@link Term} has the indices of. */
  terms: string[] | null;
}

/** Formats of other programs. */
export type ForeignFormat =
  | "torch" | "torch-legacy" | "torchscript" | "torch-export" | "pickle" | "npy" | "npz" | "hdf5" | "keras" | "onnx" | "tflite"
  | "saved-model" | "tf-checkpoint" | "msgpack";

export interface AprFile {
  /** Of a file of another program, the name of its format. */
  readonly format: "safetensors" | "gguf" | "apr" | "sealed" | ForeignFormat;
  /** Version of the format: of `.apr`, 1 or 2; of GGUF. */
  readonly version?: number;
  /** Format and version of the file inside a sealed one, once it is open. */
  readonly innerFormat?: "safetensors" | "gguf" | "apr";
  readonly innerVersion?: number;
  readonly size: number;
  readonly bytesRead: number;
  readonly notes: Note[];
  readonly warnings: Warning[];
  readonly metadata: Record<string, unknown>;
  readonly publicMetadata?: Record<string, unknown>;
  readonly privateMetadata?: Record<string, unknown>;
  readonly protection: Protection;
  readonly tensors: TensorInfo[];
  readonly model: ModelInfo | null;
  unlock(keys: Keys): Promise<AprFile>;
  verify(keys?: Pick<Keys, "signer">): Promise<{ signer: Signer | null; complete: true }>;
  bytes(name: string): Promise<Uint8Array>;
  tensor(name: string): Promise<Tensor>;
  values(name: string, range?: { start?: number; end?: number }): Promise<Float32Array>;
  array(key: string): Promise<unknown>;
  entries(key: string): Promise<unknown>;
  loadModel(keys?: Keys): Promise<Model>;
  close(): void;
}

/** `null` is a missing value. */
export type Rows = (number | null)[][] | number[] | Float32Array | Float64Array | Float32Array[] | string | string[];

export interface Table {
  data: Float32Array | Float64Array;
  columns: number;
}
export interface Term {
  term: number;
  weight: number;
}
export type Predictions = Float32Array | Float64Array | Int32Array | Label[] | Table | Term[][];

export interface Model extends ModelInfo {
  notes: Note[];
  predict(rows: Rows): Predictions;
  predictProba(rows: Rows): Table;
  free(): void;
}

export function open(source: Source, options?: OpenOptions): Promise<AprFile>;

export type Verdict = "safe" | "suspicious" | "malformed" | "dangerous";
/** Something in a file that files of tensors do not need. */
export interface Finding {
  /** Names of members of archives, joined with `!`; absent for the file itself. */
  member?: string;
  /** Byte of the member. */
  offset: number;
  /** Depth of a pickle within a pickle. */
  depth?: number;
  opcode?: string;
  /** `module.name`. */
  name?: string;
  verdict: Verdict;
  /** Explained by `apr explain CODE`. */
  code: string;
  message: string;
  /** A report of a scanner that was bypassed with it. */
  bypass?: string;
}
/** The object that `apr scan --json` prints, without SHA-256. */
export interface ScanReport {
  schema: "apr.scan/1";
  files: {
    path: string;
    format: string;
    bytes: number;
    verdict: Verdict;
    findings: Finding[];
    /** Findings beyond the first 1,000 of a pickle. */
    dropped?: number;
    pickles: { member?: string; verdict: Verdict; opcodes: number; names: string[] }[];
  }[];
  unread: never[];
  verdict: Verdict;
}
export interface ScanOptions extends Omit<OpenOptions, keyof Keys | "level" | "allowUnverified" | "noSizeLimit" | "streaming" | "nativeAlignment"> {
  /** The name of the file: that of a `File` or an address by default. */
  name?: string;
  /** Names that the caller trusts, as `package.module.name`. */
  allow?: string[];
}
/** What loading a file would run, without running it. */
export function scan(source: Source, options?: ScanOptions): Promise<ScanReport>;
export function loadModel(source: Source, options?: OpenOptions): Promise<Model>;
export function loadFromUrl(url: string | URL, options?: OpenOptions): Promise<Model>;

export interface CacheOptions extends OpenOptions {
  /** Maximum size of the cache; the least recently used files are evicted. 512 MiB. */
  maxCacheBytes?: number;
  /** Digest that the file must have, in hexadecimal digits. */
  sha256?: string;
  /** Fetch even if a copy is kept. */
  refresh?: boolean;
}
export function loadCached(key: string, url: string | URL, options?: CacheOptions): Promise<Model>;

export interface CacheEntry {
  key: string;
  url: string;
  size: number;
  sha256: string;
  stored: number;
  used: number;
}
export const cache: {
  list(): Promise<CacheEntry[]>;
  size(): Promise<number>;
  remove(key: string): Promise<void>;
  clear(): Promise<void>;
};

export function quantize(
  type: string,
  values: ArrayLike<number>,
  options?: { rowLength?: number; importance?: ArrayLike<number> },
): Uint8Array;
export function dequantize(type: string, bytes: ArrayBuffer | ArrayBufferView, elements: number): Float32Array;
export function quantTypes(): string[];

export interface KeyPair {
  publicKey: string;
  secretKey: string;
  fingerprint: string;
}
export function generateKeys(kind: "sign" | "encrypt"): KeyPair;
/** Verifies a detached signature in the format of minisign. */
export function verifyDetached(
  input: Source,
  signature: string,
  publicKey: string,
): Promise<{ trustedComment: string; fingerprint: string }>;
/** Encrypts a request to the owner of a model: to a public key, or to that in the metadata of a verified file. */
export function encryptForModel(
  input: string | ArrayBuffer | ArrayBufferView,
  key: string | AprFile,
  options?: { context?: string | ArrayBuffer | ArrayBufferView },
): {
  request: Uint8Array;
  /** Once, if the response is the one to this request. */
  decryptResponse(response: ArrayBuffer | ArrayBufferView): Uint8Array;
  /** Frees what decrypts the response, for a request whose response is not decrypted. */
  free(): void;
};
/**
 * Predictions of a server (`apr serve --inference-key`), which only the owner of its model and this page can read. The rows are encrypted to
 * `key`, the owner's public key or a file of the model that was opened with `signer`; or to the key that the server offers, signed by
 * `signer`. Returns one prediction per row as `POST /predict` does.
 */
export function privatePredict(
  url: string | URL,
  rows: ReadonlyArray<ArrayLike<number | null> | Record<string, number | null> | string>,
  options: {
    key?: string | AprFile;
    signer?: string | string[];
    proba?: boolean;
    timeout?: number;
    signal?: AbortSignal;
    headers?: Record<string, string>;
  },
): Promise<unknown[]>;
