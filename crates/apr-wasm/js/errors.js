// What is refused: an error with a stable code, and where it is in the file.

/** Any refusal of this package. */
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

/** The file is not sound, is damaged, or is of another kind than what was asked for. */
export class FormatError extends AprError {}
/** A key or password is missing or wrong, or a signature is. */
export class ProtectionError extends AprError {}
/** The file cannot be fetched or read, or changed while it was read. */
export class NetworkError extends AprError {}
/** The cache cannot do what was asked. */
export class CacheError extends AprError {}
/** A call that cannot be carried out: arguments, closed files, what this build is without. */
export class UsageError extends AprError {}

const HELP = {
  "ac-encrypted": "pass the password or the identity: open(source, { password }) or file.unlock({ password })",
  "ac-decryption": "the key is another one, or the file was changed: nobody can tell these apart",
  "ac-signed": "pass the signer's public key: { signer }, or { allowUnverified: true } to use the file unchecked",
  "aw-feature": 'import "apr-wasm", which has everything, in the place of "apr-wasm/core"',
  "aw-trap": "the module is made anew by the next call; open the file again, and report the file that did this",
  "aw-memory": "ask for a range, or use a smaller file",
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
