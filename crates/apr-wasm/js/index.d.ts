/** Any refusal of this package; `code` is stable. */
export class AprError extends Error {
  readonly code: string;
  /** Byte of the file. */
  readonly offset: number | null;
  readonly tensor: string | null;
  readonly key: string | null;
  /** Of `aw-foreign-format`: what the file is, for example `web-page`, `torch`, `npz`. */
  readonly format: string | null;
  readonly help: string | null;
}
/** The file is not sound, is damaged, or is of another kind than what was asked for. */
export class FormatError extends AprError {}
/** A key or password is missing or wrong, or a signature is. */
export class ProtectionError extends AprError {}
/** The file cannot be fetched or read, or changed while it was read. */
export class NetworkError extends AprError {}
/** The cache cannot do what was asked. */
export class CacheError extends AprError {}
/** A call that cannot be carried out. */
export class UsageError extends AprError {}

export interface InitOptions {
  /** Which module of `apr-wasm`; `apr-wasm/core` has only one. */
  variant?: "auto" | "simd" | "scalar";
  wasmUrl?: string | URL;
  module?: WebAssembly.Module | ArrayBuffer | Uint8Array;
}
export interface About {
  simd: boolean;
  version: string;
  features: string[];
}
/** Loads the module. Everything that returns a promise does so itself. */
export function init(options?: InitOptions): Promise<About>;
/** Whether the engine has vectors of 128 bits. */
export function hasSimd(): boolean;

/** Where a file is. A text is a URL; in Node.js one without a scheme is a path. */
export type Source = ArrayBuffer | Uint8Array | Blob | Response | URL | string;

/** What opens a file, and whose signature it must have. */
export interface Keys {
  password?: string;
  /** Text of a secret key, as `apr keygen encrypt` writes it. */
  identity?: string;
  /** Of a secret key that is kept under one. */
  keyPassword?: string;
  /** Texts of public keys; `"anyone"` takes the key in the file. */
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
  /** Let a small file become a large model, with whatever memory that takes. */
  trusted?: boolean;
  signal?: AbortSignal;
  /** Milliseconds without a byte after which a request fails; 30,000. */
  timeout?: number;
  headers?: Record<string, string>;
  credentials?: RequestCredentials;
  fetch?: typeof fetch;
  /** Most bytes fetched from a server that gives no ranges; 1 GiB. */
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
  classes: Label[] | null;
  takesText: boolean;
  takesNothing: boolean;
  wide: boolean;
  givesProbabilities: boolean;
  features: string[] | null;
  classNames: string[] | null;
  target: string | null;
}

export interface AprFile {
  readonly format: "safetensors" | "gguf" | "apr" | "sealed";
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
  values: Float32Array,
  options?: { rowLength?: number; importance?: Float32Array },
): Uint8Array;
export function dequantize(type: string, bytes: Uint8Array, elements: number): Float32Array;
export function quantTypes(): string[];

export interface KeyPair {
  publicKey: string;
  secretKey: string;
  fingerprint: string;
}
export function generateKeys(kind: "sign" | "encrypt"): KeyPair;
/** Verifies a signature beside a file, as minisign makes it. */
export function verifyDetached(
  input: Source,
  signature: string,
  publicKey: string,
): Promise<{ trustedComment: string; fingerprint: string }>;
/** Encrypts a question to the owner of a model: to a public key, or to that in the metadata of a verified file. */
export function encryptForModel(
  input: string | Uint8Array | Float32Array,
  key: string | AprFile,
  options?: { context?: string | Uint8Array },
): { request: Uint8Array; decryptResponse(response: Uint8Array): Uint8Array };
