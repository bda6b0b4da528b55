// Reads models beside the page, so that the page answers while a large file is read. Holds one open file.

import * as apr from "./apr-wasm/index.js";
import { sha256 } from "./sha256.js";
import { WHOLE, WHOLE_BY_URL, plan, summary } from "./stats.js";

let file = null;
let model = null;
let remote = false;
let demo = null;

/** What the page shows of the open file, as plain data. */
function description() {
  const { format, innerFormat, version, size, bytesRead, notes, warnings, metadata, protection, tensors } = file;
  return { format, innerFormat, version, size, bytesRead, notes, warnings, metadata, protection, tensors, model: file.model };
}

function freeModel() {
  model?.free();
  model = null;
}

function close() {
  freeModel();
  file?.close();
  file = null;
}

function tensorCalled(name) {
  const tensor = file.tensors.find((candidate) => candidate.name === name);
  if (!tensor) throw new Error("there is no such tensor");
  return tensor;
}

const methods = {
  async open({ source, url }, onProgress) {
    close();
    remote = url !== undefined;
    file = await apr.open(remote ? new URL(url) : source, { onProgress });
    return description();
  },

  /** What loading the file would run. */
  scan({ source, url }, onProgress) {
    return apr.scan(source ?? new URL(url), { onProgress });
  },

  async unlock(keys) {
    await file.unlock(keys);
    freeModel();
    return description();
  },

  async verify({ signer }) {
    await file.verify({ signer });
    // It may be of bytes that this key did not sign.
    freeModel();
    return description();
  },

  /** How many elements a tensor has, how many would be looked at, and how many bytes that reads. */
  cost({ name }) {
    const tensor = tensorCalled(name);
    const { elements } = tensor;
    const looked = plan(elements, remote ? WHOLE_BY_URL : WHOLE).reduce((sum, { start, end }) => sum + end - start, 0);
    return { elements, looked, bytes: elements === 0 ? 0 : Math.ceil((tensor.bytes * looked) / elements), remote };
  },

  async stats({ name }) {
    const { elements } = tensorCalled(name);
    const parts = [];
    for (const range of plan(elements, remote ? WHOLE_BY_URL : WHOLE)) parts.push(await file.values(name, range));
    const first = Array.from(parts[0]?.subarray(0, 8) ?? []);
    return { ...summary(parts), elements, runs: parts.length, first, bytesRead: file.bytesRead };
  },

  async entries({ key }) {
    return Array.from(await file.array(key), (entry) => entry);
  },

  /** Loads the model of the open file; once until its keys change. */
  async model() {
    model ??= await file.loadModel();
    return describeModel(model);
  },

  /** The demonstration: a model out of the cache of this origin, by whatever way it gets there. */
  async demo({ key, url }) {
    demo ??= await apr.loadCached(key, url);
    return describeModel(demo);
  },

  predict({ rows, of }) {
    const asked = of === "demo" ? demo : model;
    return { answers: asked.predict(rows), proba: asked.givesProbabilities ? asked.predictProba(rows) : null };
  },

  /** Of all bytes of the file: of a Blob, or of what a URL has. */
  async sha256({ source, url }, onProgress) {
    if (source) return sha256(source.stream(), onProgress);
    const response = await fetch(url, { credentials: "same-origin" });
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return sha256(response.body, onProgress);
  },

  async verifyDetached({ source, signature, key }) {
    return apr.verifyDetached(source, signature, key);
  },
};

/** What a form has to know of a model. */
function describeModel({ type, inputs, takesText, takesNothing, features, classes, classNames, target, terms, notes }) {
  return { type, inputs, takesText, takesNothing, features, classes, classNames, target, terms, notes };
}

/** What can be told of an error on the other side. */
function problem(error) {
  const { name, message, code, offset, tensor, key, format, help } = error ?? {};
  return { name, message: message ?? String(error), code, offset, tensor, key, format, help };
}

self.addEventListener("message", async ({ data: { id, method, parameters } }) => {
  try {
    const answer = await methods[method](parameters, (progress) => self.postMessage({ id, progress }));
    self.postMessage({ id, answer });
  } catch (error) {
    self.postMessage({ id, problem: problem(error) });
  }
});
self.postMessage({ ready: true });
