// Errors with a stable code and a location in the file.

/** Any error of this package. */
export class AprError extends Error {
  constructor(code, message, details = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = code;
    this.offset = details.offset ?? null;
    this.tensor = details.tensor ?? null;
    this.key = details.key ?? null;
    this.format = details.format ?? null;
    this.help = details.help ?? HELP[code] ?? null;
  }
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

const HELP = {
  "ac-encrypted": "pass the password or the identity: open(source, { password }) or file.unlock({ password })",
  "ac-decryption": "wrong key or password, or the file was modified",
  "ac-signed": "pass the signer's public key: { signer }, or { allowUnverified: true } to use the file unchecked",
  "aw-feature": 'import "apr-wasm" instead of "apr-wasm/core"',
  "aw-trap": "the next call creates a new module; open the file again, and please report the file",
  "aw-memory": "request a range, or use a smaller file",
};

const PROTECTION = new Set([
  "ac-encrypted", "ac-signed", "ac-not-encrypted", "ac-not-signed", "ac-signature", "ac-untrusted-signer", "ac-decryption",
  "ac-rebound", "ac-unbound", "ac-sealed-lock", "ac-unauthenticated",
]);
const NETWORK = new Set([
  "aw-network", "aw-http", "aw-timeout", "aw-aborted", "aw-changed", "aw-range", "aw-too-large", "aw-content",
]);
const USAGE = new Set([
  "aw-usage", "aw-feature", "aw-closed", "aw-message", "aw-trap", "aw-memory", "aw-no-prediction", "aw-init", "aw-no-entry",
  "aw-nothing-to-verify", "aw-no-tensor", "aw-dtype", "aw-byte-order",
]);

/** The error for a code. */
export function refuse(code, message, details) {
  let type = FormatError;
  if (PROTECTION.has(code) || code.startsWith("cy-")) type = ProtectionError;
  else if (code.startsWith("aw-cache")) type = CacheError;
  else if (NETWORK.has(code)) type = NetworkError;
  else if (USAGE.has(code)) type = UsageError;
  return new type(code, message, details);
}
