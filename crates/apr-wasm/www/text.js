// How numbers and foreign text are shown.

// Characters that move, hide or reorder what stands around them: controls, bidirectional marks, zero-width characters, line separators.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb]|\p{Surrogate}|[\u{e0000}-\u{e0fff}]/gu;
const SHORT = new Map([["\n", "\\n"], ["\r", "\\r"], ["\t", "\\t"], ["\0", "\\0"]]);

/** `text` with everything that is not seen written as an escape, as the program `apr` does it; `lines` keeps line feeds and tabs. */
export function visible(text, { lines = false } = {}) {
  return String(text).replace(UNSEEN, (found) => {
    if (lines && (found === "\n" || found === "\t")) return found;
    return SHORT.get(found) ?? `\\u{${found.codePointAt(0).toString(16)}}`;
  });
}

/** The first `limit` characters, and whether there are more. */
export function cut(text, limit) {
  if (text.length <= limit) return { text, more: false };
  const end = text.charCodeAt(limit - 1) >= 0xd800 && text.charCodeAt(limit - 1) < 0xdc00 ? limit - 1 : limit;
  return { text: text.slice(0, end), more: true };
}

/** A shortened name: its beginning and its end. */
export function brief(name, limit = 160) {
  if (name === "") return "(empty)";
  const shown = visible(name.length > 4 * limit ? name.slice(0, 2 * limit) + name.slice(-2 * limit) : name);
  return shown.length <= limit ? shown : `${shown.slice(0, limit - 40)}…${shown.slice(-39)}`;
}

const GROUPS = new Intl.NumberFormat("en");

/** A whole number with its thousands grouped. */
export const count = (value) => GROUPS.format(value);

export const plural = (value, one, many = `${one}s`) => `${count(value)} ${Number(value) === 1 ? one : many}`;

function scaled(value, units) {
  let size = Number(value);
  let unit = 0;
  while (size >= 999.5 && unit + 1 < units.length) {
    size /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toPrecision(3)} ${units[unit]}`.trim();
}

/** A length in decimal units: `68.7 kB`. */
export const bytes = (value) => scaled(value, ["B", "kB", "MB", "GB", "TB", "PB"]);

/** A large count, short: `71.9 k`. */
export const short = (value) => scaled(value, ["", "k", "M", "G", "T"]);

export const percent = (part, whole) => `${whole > 0 ? ((100 * Number(part)) / Number(whole)).toFixed(1) : "0.0"} %`;

/** A statistic, in six digits. */
export function figure(value) {
  if (!Number.isFinite(value)) return String(value);
  const digits = Number(value.toPrecision(6));
  return Math.abs(digits) >= 1e9 || (digits !== 0 && Math.abs(digits) < 1e-4) ? digits.toExponential() : String(digits);
}

/** The shortest digits that are this 32-bit float. */
function shortest32(value) {
  let digits = 1;
  while (digits < 9 && Math.fround(Number(value.toPrecision(digits))) !== value) digits += 1;
  return Number(value.toPrecision(digits));
}

/** A 32-bit float with as many digits as it needs, as `apr predict` prints it. */
export const float32 = (value) => float64(Number.isFinite(value) && value !== 0 ? shortest32(value) : value);

/** The same of a 64-bit float: an exponent only below 0.00001 and from 10^16. */
export function float64(value) {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  const size = Math.abs(value);
  if (size < 1e-5 || size >= 1e16) return value.toExponential().replace("+", "");
  // JavaScript has an exponent below 0.000001 and from 10^21 only.
  return String(value);
}

/** A shape as people write it: `64 × 96`; of a single number `scalar`. */
export const shape = (dimensions) => (dimensions.length === 0 ? "scalar" : dimensions.map(count).join(" × "));
