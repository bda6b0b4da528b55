// Pictures of numbers, each with its numbers beside it.

import { el, facts, svg, table } from "./dom.js";
import { bytes, count, figure, float32, percent, plural } from "./text.js";

const WIDTH = 480;
const HEIGHT = 150;

/** Where bin `at` of a histogram begins. */
const edge = ({ low, high, bins }, at) => low + ((high - low) * at) / bins.length;

function bars(stats, logarithmic) {
  const height = (value) => (logarithmic ? Math.log1p(value) : value);
  const highest = Math.max(...stats.bins.map(height));
  const step = WIDTH / stats.bins.length;
  return stats.bins.map((value, at) => {
    // What is there at all can be seen.
    const tall = value === 0 ? 0 : Math.max(1.5, (HEIGHT * height(value)) / highest);
    return svg("rect", { x: at * step + 0.5, y: HEIGHT - tall, width: Math.max(1, step - 1), height: tall });
  });
}

/** The histogram of `stats`, with a switch for logarithmic counts and the counts as a table. */
export function histogram(stats) {
  if (stats.bins.length === 0) return el("p", {}, "No finite values.");
  const highest = stats.bins.indexOf(Math.max(...stats.bins));
  const label = stats.bins.length === 1
    ? `Histogram: all ${plural(stats.finite, "value")} are ${figure(stats.min)}`
    : `Histogram of ${plural(stats.finite - stats.outside, "value")} in ${stats.bins.length} bins from ${figure(stats.low)} to ${figure(stats.high)}; ` +
      `most, ${count(stats.bins[highest])}, are between ${figure(edge(stats, highest))} and ${figure(edge(stats, highest + 1))}`;
  const picture = svg("svg", { class: "histogram", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  const draw = (logarithmic) => {
    picture.replaceChildren(...bars(stats, logarithmic));
    if (stats.low < 0 && stats.high > 0) {
      const zero = (WIDTH * -stats.low) / (stats.high - stats.low);
      picture.append(svg("line", { x1: zero, x2: zero, y1: 0, y2: HEIGHT, class: "zero" }));
    }
  };
  draw(false);
  const axis = el("div", { class: "axis", "aria-hidden": "true" },
    el("span", {}, figure(stats.low)), stats.bins.length > 1 ? el("span", {}, figure(stats.high)) : null);
  const far = stats.outside === 0 ? null
    : el("p", { class: "told" }, `Not shown: ${plural(stats.outside, "value")} far outside of this range.`);
  const rows = () => stats.bins.map((value, at) =>
    [`${figure(edge(stats, at))} to ${figure(edge(stats, at + 1))}`, { number: count(value) }, { number: percent(value, stats.finite) }]);
  const details = el("details", {}, el("summary", {}, "Counts as a table"));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(table("Counts of the histogram", ["Values", "Count", "Share"], rows(), { class: "bins" }));
  });
  const scale = el("label", { class: "check" },
    el("input", { type: "checkbox", onchange: ({ target }) => draw(target.checked) }), "Logarithmic counts");
  return el("div", { class: "chart" }, el("div", { class: "plot" }, picture), axis, far, el("div", { class: "row-of" }, scale, details));
}

/** The figures under a histogram. */
export function figures(stats) {
  const number = (value) => (value === null ? "none" : figure(value));
  return facts([
    ["Minimum", number(stats.min)],
    ["Maximum", number(stats.max)],
    ["Mean", number(stats.mean)],
    ["Standard deviation", number(stats.std)],
    ["Zeros", `${count(stats.zeros)} (${percent(stats.zeros, stats.values)})`],
    ["NaN", count(stats.nan)],
    ["Infinite", count(stats.infinite)],
    ["First values", stats.first.map(float32).join(", ") || "none"],
  ]);
}

/** Bytes, tensors and bits per type, the largest share first. */
export function shares(tensors) {
  const types = new Map();
  let whole = 0;
  for (const { dtype, elements, bytes: length } of tensors) {
    const entry = types.get(dtype) ?? { dtype, tensors: 0, parameters: 0, bytes: 0 };
    entry.tensors += 1;
    entry.parameters += elements;
    entry.bytes += length;
    whole += length;
    types.set(dtype, entry);
  }
  return { whole, types: [...types.values()].sort((one, other) => other.bytes - one.bytes || (one.dtype < other.dtype ? -1 : 1)) };
}

/** The shares as a bar and a table. */
export function sharesView(tensors) {
  const { whole, types } = shares(tensors);
  const bar = el("div", { class: "shares", "aria-hidden": "true" }, types.map(({ bytes: part }, at) => {
    const piece = el("span", { class: `share c${Math.min(at, 7)}` });
    piece.style.flexGrow = String(whole === 0 ? 1 : part / whole);
    return piece;
  }));
  const bits = (parameters, length) => (parameters === 0 ? "" : String(Number(((8 * length) / parameters).toPrecision(4))));
  const rows = types.map((type, at) => [
    el("span", { class: "key" }, el("span", { class: `swatch c${Math.min(at, 7)}`, "aria-hidden": "true" }), type.dtype),
    { number: count(type.tensors) }, { number: count(type.parameters) }, { number: bytes(type.bytes) },
    { number: percent(type.bytes, whole) }, { number: bits(type.parameters, type.bytes) },
  ]);
  if (types.length > 1) {
    const sum = (field) => types.reduce((total, type) => total + type[field], 0);
    rows.push(["all", { number: count(sum("tensors")) }, { number: count(sum("parameters")) }, { number: bytes(whole) },
      { number: "100.0 %" }, { number: bits(sum("parameters"), whole) }]);
  }
  return el("div", {}, bar, table("Dtypes of the tensors", ["Type", "Tensors", "Parameters", "Bytes", "Share", "Bits per weight"], rows));
}
