// Predictions of a server to which the rows are sent encrypted: docs/private-inference.md is the specification.

import { refuse } from "./errors.js";

const MEDIA_TYPE = "application/vnd.apr.private";
const PURPOSE = "apr inference key";
/** Longest answer: twice what a server gives, for the padding, and what encryption adds; longest description of a session. */
const ANSWER_MAX = 128 * 1024 * 1024 + 64;
const OFFER_MAX = 65_536;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The function of the package, over its encryption and its signatures. */
export function createPrivatePredict({ encryptForModel, verifyDetached }) {
  return async function privatePredict(url, rows, { key, signer, proba = false, timeout = 30_000, signal, headers } = {}) {
    if ((key === undefined) === (signer === undefined)) {
      throw refuse("aw-usage", "give the key of the model's owner (key: text, or an open file that was verified), or its signer");
    }
    if (/[?#]/.test(String(url))) throw refuse("aw-usage", "privatePredict takes the address of a server, without a query");
    const base = String(url).replace(/\/+$/, "");
    const address = base.endsWith("/private") ? base : `${base}/private`;
    const exchange = (options, most) => answerOf(address, { ...options, signal: limited(timeout, signal) }, most);

    const offer = parsed(await exchange({ headers }, OFFER_MAX), address);
    if (typeof offer.session !== "string" || typeof offer.key !== "string") throw noService(address);
    const to = key ?? (await signedKey(offer, signer, verifyDetached));
    const query = proba ? "proba=true" : "";
    const body = encoder.encode(JSON.stringify({ rows: plain(rows) }));
    const context = `apr-serve private 1 ${offer.session}`;
    const content = contentOf(query, "application/json", "", body);
    const { request, decryptResponse, free } = await encryptForModel(content, to, { context });
    let response;
    try {
      const sent = { method: "POST", body: request, headers: new Headers(headers) };
      sent.headers.set("Content-Type", MEDIA_TYPE);
      response = responseOf(decryptResponse(await exchange(sent, ANSWER_MAX)));
    } finally {
      free();
    }
    const told = parsed(response.body, address);
    if (response.status !== 200) throw refusalOf(told, response.status);
    return told.predictions;
  };
}

/** The text of the public key that the server offers, if a signer signed it for this purpose. */
async function signedKey(offer, signer, verifyDetached) {
  if (typeof offer.key_file !== "string" || typeof offer.signature !== "string") {
    throw refuse("cli-inference-key", "the server offers no signed key: pass the key, or a copy of the signed model");
  }
  let failure;
  for (const one of [signer].flat()) {
    let signed;
    try {
      signed = await verifyDetached(encoder.encode(offer.key_file), offer.signature, one);
    } catch (error) {
      failure = error;
      continue;
    }
    if (signed.trustedComment === PURPOSE) return offer.key_file;
    throw refuse("cy-key-purpose", `the key was signed for another purpose: expected the trusted comment \`${PURPOSE}\``);
  }
  throw failure ?? refuse("aw-usage", "name at least one signer");
}

/** The parts of `POST /predict`: three texts after their lengths, and the body. */
function contentOf(query, mediaType, accept, body) {
  const texts = [query, mediaType, accept].map((text) => encoder.encode(text));
  const content = new Uint8Array(texts.reduce((length, text) => length + 2 + text.length, body.length));
  const view = new DataView(content.buffer);
  let at = 0;
  for (const text of texts) {
    view.setUint16(at, text.length, true);
    content.set(text, at + 2);
    at += 2 + text.length;
  }
  content.set(body, at);
  return content;
}

/** Status, columns, two texts and the body of a response. */
function responseOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 6;
  const text = () => {
    if (at + 2 > bytes.length) throw refuse("cy-message", "malformed message: expected status, media type and a body");
    const end = at + 2 + view.getUint16(at, true);
    if (end > bytes.length) throw refuse("cy-message", "malformed message: expected status, media type and a body");
    const found = decoder.decode(bytes.subarray(at + 2, end));
    at = end;
    return found;
  };
  const [mediaType, model] = [text(), text()];
  return { status: view.getUint16(0, true), mediaType, model, body: bytes.subarray(at) };
}

/** Rows as JSON has them: missing values are null, infinities the texts that the server reads. */
function plain(value) {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof DataView) throw refuse("aw-usage", "rows are lists, typed arrays, objects or texts, not a DataView");
  if (typeof value === "number") return Number.isFinite(value) ? value : Number.isNaN(value) ? null : value > 0 ? "inf" : "-inf";
  if (ArrayBuffer.isView(value)) return Array.from(value, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (value !== null && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]));
  return value;
}

function limited(timeout, signal) {
  const limit = AbortSignal.timeout(timeout);
  return signal === undefined ? limit : AbortSignal.any([limit, signal]);
}

/** The bytes of an answer with the status 200. */
async function answerOf(address, options, most) {
  let response, bytes;
  try {
    response = await fetch(address, { ...options, redirect: "error", credentials: "omit", cache: "no-store" });
    bytes = await bytesOf(response, most);
  } catch (error) {
    if (error.code?.startsWith?.("aw-")) throw error;
    const code = error.name === "TimeoutError" ? "aw-timeout" : error.name === "AbortError" ? "aw-aborted" : "aw-network";
    throw refuse(code, `${address}: ${error.cause?.message ?? error.message}`, { cause: error });
  }
  if (response.status !== 200) throw refusalOf(stated(bytes), response.status);
  return bytes;
}

async function bytesOf(response, most) {
  const parts = [];
  let length = 0;
  for (const reader = response.body.getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > most) {
      await reader.cancel();
      throw refuse("aw-too-large", `the answer has more than ${most} bytes`);
    }
    parts.push(value);
  }
  const bytes = new Uint8Array(length);
  parts.reduce((at, part) => (bytes.set(part, at), at + part.length), 0);
  return bytes;
}

function parsed(bytes, address) {
  const value = stated(bytes);
  if (value === undefined) throw noService(address);
  return value;
}

/** An object as JSON, if the bytes are one. */
function stated(bytes) {
  try {
    const value = JSON.parse(decoder.decode(bytes));
    return value !== null && typeof value === "object" ? value : undefined;
  } catch {
    return undefined;
  }
}

function noService(address) {
  return refuse("aw-content", `no private inference at ${address}`);
}

/** An error as the server states it. */
function refusalOf(told, status) {
  const { code, message, where, help } = told?.error ?? {};
  if (typeof code !== "string") return refuse("aw-http", `the server answered with status ${status}`);
  return refuse(code, where ? `${where}: ${message}` : String(message), { help });
}
