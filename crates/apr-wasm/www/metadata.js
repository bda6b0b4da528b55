// What a file says about itself, as a table of keys and values. All of it is foreign text.

import { el } from "./dom.js";
import { brief, count, cut, float32, float64, plural, visible } from "./text.js";

const LONG = 240;
const STEP = 100;
const SHOWN_ENTRIES = 1000;

/** Whether a value of a GGUF file is the beginning of an array: `{ type, length, preview }`. Metadata of other formats may look the same. */
const isArrayPreview = (value) =>
  Array.isArray(value?.preview) && Number.isSafeInteger(value.length) && value.length >= 0 && typeof value.type === "string";

/** Nested metadata as rows of dotted keys; lists stay values. Those of a GGUF file are not nested: an object is an array of it. */
export function rows(metadata, isGguf, prefix = "", depth = 0) {
  return Object.entries(metadata ?? {}).flatMap(([key, value]) => {
    const isArray = isGguf && isArrayPreview(value);
    const nested = value !== null && typeof value === "object" && !Array.isArray(value) && !isArray;
    if (nested && depth < 8 && Object.keys(value).length > 0) return rows(value, isGguf, `${prefix}${key}.`, depth + 1);
    return [{ key: prefix + key, name: key, value, isArray }];
  });
}

/** The time of a file as `apr inspect` shows it: seconds since 1970, and the date. */
function time(seconds) {
  const date = new Date(1000 * Number(seconds));
  // Digits alone, and of a year that a date can have.
  if (!/^\d{1,12}$/.test(String(seconds)) || Number.isNaN(date.valueOf())) return null;
  return `${seconds} (${date.toISOString().replace("T", " ").replace(".000Z", " UTC")})`;
}

const json = (value) => JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? Number(inner) : inner));

/** A number with the digits it needs as what it probably was: most floats of models have 32 bits. */
const numeral = (value) => (Number.isInteger(value) ? String(value) : Math.fround(value) === value ? float32(value) : float64(value));

/** The value of a key as text. */
export function valueText(key, value) {
  return (key === "created_at" && time(value)) || asText(value);
}

function asText(value) {
  if (typeof value === "string") return value;
  if (typeof value === "number") return numeral(value);
  return value !== null && typeof value === "object" ? json(value) : String(value);
}

/** A value with a button for the rest if it is long. */
function valueView(text) {
  const shortened = cut(text, LONG);
  const place = el("span", { class: "value" }, visible(shortened.text, { lines: true }));
  if (!shortened.more) return place;
  const button = el("button", { type: "button", class: "small", "aria-expanded": "false" }, `Show all ${count(text.length)} characters`);
  button.addEventListener("click", () => {
    const open = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!open));
    place.textContent = visible(open ? shortened.text : text, { lines: true });
    button.textContent = open ? `Show all ${count(text.length)} characters` : "Show less";
  });
  return el("div", {}, place, " ", button);
}

function arrayView({ key, value }, entries) {
  const { length } = value;
  const some = Array.from(value.preview, asText).join(", ");
  const place = el("div", { class: "value" }, `${value.type}[${count(length)}] `, brief(some, LONG), length > value.preview.length ? ", …" : "");
  if (length <= value.preview.length) return place;
  const button = el("button", { type: "button", class: "small" }, `Show ${count(Math.min(length, SHOWN_ENTRIES))} entries`);
  button.addEventListener("click", async () => {
    const all = (await entries(key)).slice(0, SHOWN_ENTRIES);
    place.textContent = all.map((entry) => visible(asText(entry))).join("\n");
    place.classList.add("entries");
    place.setAttribute("tabindex", "0");
    place.setAttribute("role", "region");
    place.setAttribute("aria-label", `Entries of ${brief(key)}`);
    button.remove();
    place.focus();
  });
  return el("div", {}, place, " ", button);
}

/** The table; `entries(key)` fetches all of an array of a GGUF file, and is `null` for other formats. */
export function metadataView(metadata, entries) {
  const all = rows(metadata, entries !== null);
  if (all.length === 0) return el("p", {}, "The file has no metadata.");
  const body = el("tbody", {});
  let shown = 0;
  const more = el("button", { type: "button" });
  const extend = () => {
    for (const row of all.slice(shown, shown + STEP)) {
      body.append(el("tr", {}, el("th", { scope: "row" }, brief(row.key, 200)),
        el("td", {}, row.isArray ? arrayView(row, entries) : valueView(valueText(row.key, row.value)))));
    }
    shown = Math.min(all.length, shown + STEP);
    more.textContent = `Show ${count(Math.min(STEP, all.length - shown))} more of ${plural(all.length, "key")}`;
    more.hidden = shown === all.length;
  };
  more.addEventListener("click", extend);
  extend();
  return el("div", {},
    el("table", { class: "metadata" }, el("caption", { class: "unseen" }, "Metadata"),
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Key"), el("th", { scope: "col" }, "Value"))), body),
    el("p", {}, more));
}
