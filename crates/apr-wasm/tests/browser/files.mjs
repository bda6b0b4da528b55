// Model files that tests make: safetensors with known values, of any size, as hostile as needed.

import { spawnSync } from "node:child_process";
import { open, truncate } from "node:fs/promises";

/** A safetensors file of `tensors` (`{ name, dtype, shape, data }`, `data` a typed array) and `metadata`. */
export function safetensors(tensors, metadata = null) {
  const header = {};
  if (metadata) header.__metadata__ = metadata;
  let end = 0;
  const parts = [];
  for (const { name, dtype, shape, data } of tensors) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.length] };
    end += bytes.length;
    parts.push(bytes);
  }
  let text = JSON.stringify(header);
  text += " ".repeat((8 - (Buffer.byteLength(text) % 8)) % 8);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  return Buffer.concat([length, Buffer.from(text), ...parts]);
}

/** A sparse file of `gib` GiB: `layers` tensors of zeros, and a first one that counts from 0 to 999. */
export async function huge(path, gib, layers) {
  const size = gib * 2 ** 30;
  const each = Math.floor(size / layers / 4) * 4;
  const header = { "first.weight": { dtype: "F32", shape: [1000], data_offsets: [0, 4000] } };
  let end = 4000;
  for (let at = 0; at < layers; at += 1) {
    header[`layers.${at}.weight`] = { dtype: "F32", shape: [each / 4], data_offsets: [end, end + each] };
    end += each;
  }
  const text = JSON.stringify(header);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  const file = await open(path, "w");
  await file.write(Buffer.concat([length, Buffer.from(text), Buffer.from(Float32Array.from({ length: 1000 }, (_, at) => at).buffer)]));
  await file.close();
  await truncate(path, 8 + text.length + end);
  return 8 + text.length + end;
}

/** What the program `apr` prints; it has to succeed. `input` is its standard input. */
export function apr(args, input = "") {
  const { status, stdout, stderr, error } = spawnSync(process.env.APR, args, { input, encoding: "utf8" });
  if (error || status !== 0) throw new Error(`apr ${args.join(" ")}: ${error ?? stderr}`);
  return stdout;
}

/** An `.apr` file of version 1 with one more entry of the metadata, as MessagePack; they have fewer than 15. */
export function withMetadata(file, entry) {
  const end = 32 + file.readUInt32LE(8);
  const out = Buffer.concat([file.subarray(0, end), Buffer.from(entry), file.subarray(end)]);
  out.writeUInt32LE(file.readUInt32LE(8) + entry.length, 8);
  out[32] += 1;
  let crc = 0xffffffff;
  for (const byte of out.subarray(0, -4)) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  out.writeUInt32LE(~crc >>> 0, out.length - 4);
  return out;
}
