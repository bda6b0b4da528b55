// Everything: safetensors, GGUF, `.apr` plain, compressed, encrypted, signed and sealed, models, blocks, keys.

import { createApi } from "./api.js";

export { AprError, CacheError, FormatError, NetworkError, ProtectionError, UsageError } from "./errors.js";
export { hasSimd } from "./engine.js";

const api = createApi("full");

export const {
  init, open, scan, loadModel, loadFromUrl, loadCached, quantize, dequantize, quantTypes, generateKeys, verifyDetached, encryptForModel,
  privatePredict, cache,
} = api;
