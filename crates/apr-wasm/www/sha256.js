// SHA-256 of a stream (FIPS 180-4). The browser's own digest wants all bytes at once; files here may be larger than memory.

/** The first 32 bits of the fractional parts of square roots and cube roots of the first primes: integers throughout, so that they are exact. */
const primes = [];
for (let candidate = 2; primes.length < 64; candidate += 1) if (primes.every((prime) => candidate % prime !== 0)) primes.push(candidate);

function fraction(prime, degree) {
  // The largest whole number whose power is below prime * 2^(32 * degree), by bisection.
  const goal = BigInt(prime) << BigInt(32 * degree);
  let [low, high] = [0n, 1n << 37n];
  while (high - low > 1n) {
    const middle = (low + high) >> 1n;
    if (middle ** BigInt(degree) <= goal) low = middle;
    else high = middle;
  }
  return Number(low & 0xffffffffn) | 0;
}

const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(prime, 2));
const K = Int32Array.from(primes, (prime) => fraction(prime, 3));

class Sha256 {
  #state = START.slice();
  #words = new Int32Array(64);
  #block = new Uint8Array(64);
  #view = new DataView(this.#block.buffer);
  #filled = 0;
  #length = 0;

  update(bytes) {
    this.#length += bytes.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(64 - this.#filled, bytes.length);
      this.#block.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < 64) return;
      this.#compress(this.#view, 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (; at + 64 <= bytes.length; at += 64) this.#compress(view, at);
    this.#block.set(bytes.subarray(at));
    this.#filled = bytes.length - at;
  }

  finish() {
    this.#block[this.#filled] = 0x80;
    this.#block.fill(0, this.#filled + 1);
    if (this.#filled >= 56) {
      this.#compress(this.#view, 0);
      this.#block.fill(0);
    }
    this.#view.setBigUint64(56, BigInt(this.#length) * 8n);
    this.#compress(this.#view, 0);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #compress(view, from) {
    const words = this.#words;
    for (let at = 0; at < 16; at += 1) words[at] = view.getInt32(from + 4 * at);
    for (let at = 16; at < 64; at += 1) {
      const x = words[at - 15];
      const y = words[at - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[at] = (words[at - 16] + s0 + words[at - 7] + s1) | 0;
    }
    const state = this.#state;
    let a = state[0];
    let b = state[1];
    let c = state[2];
    let d = state[3];
    let e = state[4];
    let f = state[5];
    let g = state[6];
    let h = state[7];
    for (let at = 0; at < 64; at += 1) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const first = (h + s1 + ((e & f) ^ (~e & g)) + K[at] + words[at]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const second = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + first) | 0;
      d = c;
      c = b;
      b = a;
      a = (first + second) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}

/** The digest of a stream of bytes, in hexadecimal digits; `onProgress` hears how many bytes there were so far. */
export async function sha256(stream, onProgress = () => {}) {
  const digest = new Sha256();
  const reader = stream.getReader();
  for (let bytesRead = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return digest.finish();
    digest.update(value);
    bytesRead += value.length;
    onProgress({ bytesRead });
  }
}
