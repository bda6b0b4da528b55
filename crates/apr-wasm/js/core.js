// The core module: safetensors, plain `.apr`, models. Features that it lacks are errors with the code `aw-feature`.

import { createApi } from "./api.js";

export { AprError, CacheError, FormatError, NetworkError, ProtectionError, UsageError } from "./errors.js";
export { hasSimd } from "./engine.js";

const api = createApi("core");

export const {
  init, open, scan, loadModel, loadFromUrl, loadCached, quantize, dequantize, quantTypes, generateKeys, verifyDetached, encryptForModel,
  privatePredict, cache,
} = api;
