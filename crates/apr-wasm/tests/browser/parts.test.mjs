// The parts of the page that need no browser.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";

import { shares } from "../../www/chart.js";
import { TableError, numbers, quoted, records } from "../../www/csv.js";
import { rows, valueText } from "../../www/metadata.js";
import { answersOf, classesOf } from "../../www/predict.js";
import { sha256 } from "../../www/sha256.js";
import { WHOLE, plan, summary } from "../../www/stats.js";
import { brief, bytes, cut, figure, float32, float64, visible } from "../../www/text.js";
import { build } from "../../www/tree.js";

test("what hides or reorders text is written as an escape", () => {
  assert.equal(visible("a\u202eb\u0000\n\u{e0041}\ud800"), "a\\u{202e}b\\0\\n\\u{e0041}\\u{d800}");
  assert.equal(visible("line\n\tfeed", { lines: true }), "line\n\tfeed");
  assert.equal(visible("größe 🙂 تجربة"), "größe 🙂 تجربة");
});

test("long names keep both ends, and are not looked at as a whole", () => {
  assert.equal(brief(""), "(empty)");
  const shown = brief(`begin${"x".repeat(1_000_000)}end`);
  assert.ok(shown.length <= 160 && shown.startsWith("begin") && shown.endsWith("end"));
  assert.deepEqual(cut("ab\u{1f642}", 3), { text: "ab", more: true });
});

test("lengths are decimal, as `apr` prints them", () => {
  assert.deepEqual([0, 999, 1000, 68_704, 999_600, 2 ** 31].map(bytes), ["0 B", "999 B", "1.00 kB", "68.7 kB", "1.00 MB", "2.15 GB"]);
});

test("numbers have as many digits as their bits need", () => {
  const written = (value) => float32(Math.fround(value));
  assert.deepEqual([0.1, 6.678077e-8, 1e20, 16777216, 1e-5, -0, NaN, -Infinity].map(written),
    ["0.1", "6.678077e-8", "1e20", "16777216", "0.00001", "-0", "NaN", "-inf"]);
  assert.deepEqual([0.1, 1e-7, 123456789012345680, 9007199254740993].map(float64), ["0.1", "1e-7", "1.2345678901234568e17", "9007199254740992"]);
  assert.deepEqual([1 / 3, 1e-9, 1e12].map(figure), ["0.333333", "1e-9", "1e+12"]);
});

test("a table has quotes, line ends of all kinds and three delimiters", () => {
  assert.deepEqual(records('a,"b, ""c"""\r\n1,2\n'), [["a", 'b, "c"'], ["1", "2"]]);
  assert.deepEqual(records("1;2\n3;4"), [["1", "2"], ["3", "4"]]);
  assert.deepEqual(records("1\t2"), [["1", "2"]]);
  assert.throws(() => records('"a'), TableError);
});

test("columns are taken by name where both sides have names, else in their order", () => {
  assert.deepEqual(numbers("b,kind,a\n2,x,1", 2, ["a", "b"]), { rows: [[1, 2]], ignored: ["kind"] });
  assert.deepEqual(numbers("u,v\n1,2", 2, null), { rows: [[1, 2]], ignored: [] });
  assert.deepEqual(numbers("1,2e1", 2, ["a", "b"]), { rows: [[1, 20]], ignored: [] });
  for (const [text, words] of [["", /no row/], ['1,""', /column 2: `` is no number/], ['" ",2', /column 1: ` ` is no number/], ["a,b", /no row below/], ["a,c\n1,2", /no column `b`/], ["1,2,3", /row 1: 3 fields/], ["1,\n", /`` is no number/]]) {
    assert.throws(() => numbers(text, 2, ["a", "b"]), (error) => error instanceof TableError && words.test(error.message), text);
  }
});

test("what is saved begins no formula", () => {
  const names = ["=1+2", "+x", "-x", "@x", "\tx", "\r=x", '=a"b', "x=1"];
  assert.deepEqual(names.map(quoted), ["'=1+2", "'+x", "'-x", "'@x", "'\tx", "\"'\r=x\"", "\"'=a\"\"b\"", "x=1"]);
  for (const number of ["-1", "-1.5e-7", "+2", "-0", "-inf", "NaN", "0.5"]) assert.equal(quoted(number), number);
});

test("small tensors are looked at whole, large ones in even runs to both ends", () => {
  assert.deepEqual(plan(WHOLE, WHOLE), [{ start: 0, end: WHOLE }]);
  const elements = 10 * WHOLE + 7;
  const runs = plan(elements, WHOLE);
  assert.equal(runs.reduce((sum, { start, end }) => sum + end - start, 0), WHOLE / 4);
  assert.deepEqual([runs[0].start, runs.at(-1).end], [0, elements]);
  assert.ok(runs.every(({ start }, at) => at === 0 || start >= runs[at - 1].end));
});

test("figures leave out what is not finite", () => {
  const { values, finite, nan, infinite, zeros, min, max, mean, std, bins } = summary([Float32Array.of(NaN, 1, 3), Float32Array.of(-Infinity, 0, -0)]);
  assert.deepEqual({ values, finite, nan, infinite, zeros, min, max, mean, std }, { values: 6, finite: 4, nan: 1, infinite: 1, zeros: 2, min: 0, max: 3, mean: 1, std: Math.sqrt(1.5) });
  assert.equal(bins.reduce((sum, count) => sum + count), 4);
  assert.deepEqual(summary([Float32Array.of(NaN)]).bins, []);
  assert.deepEqual(summary([new Float32Array(7).fill(2)]).bins, [7]);
});

test("a few far values do not leave a histogram in one bin", () => {
  const bell = Float32Array.from({ length: 10_000 }, (_, at) => Math.sin(at) * Math.sin(3 * at) * Math.sin(7 * at));
  const { min, max, low, high, outside, bins } = summary([bell, Float32Array.of(1e6, -1e3, 87)]);
  assert.deepEqual([min, max, outside], [-1e3, 1e6, 3]);
  assert.ok(low >= -1 && high <= 1 && bins.filter((count) => count > 0).length > 30, `${low} to ${high}: ${bins}`);
  assert.equal(bins.reduce((sum, count) => sum + count), 10_000);
  // Values that are many, or that nothing would be left beside, are shown.
  for (const parts of [[bell], [new Float32Array(1000), Float32Array.of(1)], [new Float32Array(10).fill(-5), new Float32Array(10).fill(5)]]) {
    const { min, max, low, high, outside } = summary(parts);
    assert.deepEqual([low, high, outside], [min, max, 0]);
  }
});

test("the time of a file has its date", () => {
  assert.equal(valueText("created_at", "1795389369"), "1795389369 (2026-11-22 23:16:09 UTC)");
  assert.equal(valueText("created_at", 0), "0 (1970-01-01 00:00:00 UTC)");
  assert.equal(valueText("created_at", "yesterday"), "yesterday");
  assert.equal(valueText("created_at", "99999999999999"), "99999999999999");
  assert.equal(valueText("general.created_at", 5), "5");
});

test("the tree is as deep as allowed, whatever names say", () => {
  const tensor = (name) => ({ name, bytes: 1, dtype: "U8", shape: [1] });
  const root = build(["a.b", "a", "a.c", "__proto__.x", ".".repeat(100_000), ""].map(tensor));
  assert.equal(root.tensors, 6);
  assert.equal(root.groups.get("a").tensors, 2);
  let depth = 0;
  for (let node = root; node; node = node.groups?.get("")) depth += 1;
  assert.ok(depth <= 25, String(depth));
});

test("shares add up and are sorted by bytes", () => {
  const { whole, types } = shares([{ dtype: "F32", elements: 4, bytes: 16 }, { dtype: "Q8_0", elements: 64, bytes: 68 }, { dtype: "F32", elements: 1, bytes: 4 }]);
  assert.equal(whole, 88);
  assert.deepEqual(types.map(({ dtype, tensors, parameters, bytes }) => [dtype, tensors, parameters, bytes]), [["Q8_0", 1, 64, 68], ["F32", 2, 5, 20]]);
});

test("metadata become rows, nested as deep as they may be", () => {
  const metadata = { a: { b: 1 }, c: [1], d: { type: "u32", length: 9, preview: [1] } };
  assert.deepEqual(rows(metadata, true).map(({ key, isArray }) => [key, isArray]), [["a.b", false], ["c", false], ["d", true]]);
  // Only GGUF files have arrays that are not read as a whole.
  assert.deepEqual(rows(metadata, false).map(({ key, isArray }) => [key, isArray]),
    [["a.b", false], ["c", false], ["d.type", false], ["d.length", false], ["d.preview", false]]);
  for (const value of [{ preview: null, length: 1, type: "a" }, { preview: [1], length: "9", type: "a" }, { preview: [1], length: 1n, type: "a" }]) {
    assert.ok(rows({ custom: { x: value } }, true).every(({ isArray }) => !isArray));
  }
  let deep = 1;
  for (let level = 0; level < 50; level += 1) deep = { x: deep };
  assert.equal(rows(deep, false).length, 1);
});

test("answers of every kind become words", () => {
  const model = (more) => ({ classes: null, classNames: null, terms: null, ...more });
  const words = (answers, more = {}, rows = answers.length) => answersOf(answers, rows, model(more));
  assert.deepEqual(words(Float32Array.of(0.1, 1e-7)), [["0.1"], ["1e-7"]]);
  assert.deepEqual(words(Float64Array.of(0.1)), [["0.1"]]);
  assert.deepEqual(words(Int32Array.of(-1, 2)), [["-1"], ["2"]]);
  assert.deepEqual(words(["a\u202e", true, 2.5]), [["a\\u{202e}"], ["true"], ["2.5"]]);
  assert.deepEqual(words({ data: Float32Array.of(1, 2, 3, 4), columns: 2 }, {}, 2), [["1", "2"], ["3", "4"]]);
  assert.deepEqual(words([[{ term: 1, weight: 0.5 }], []], { terms: ["a", "b"] }), [["b: 0.5"], ["no term of the model"]]);
  assert.deepEqual(classesOf(model({ classes: [5, 7], classNames: null }), 2), ["5", "7"]);
  assert.deepEqual(classesOf(model({ classes: [1, 0], classNames: ["x", "y"] }), 2), ["y", "x"]);
  assert.deepEqual(classesOf(model({ classNames: ["x", "y"] }), 2), ["x", "y"]);
  assert.deepEqual(classesOf(model({}), 2), ["0", "1"]);
});

test("the digest is that of another implementation, for every length of a last block", async () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 1000, 200_000]) {
    const bytes = Uint8Array.from({ length }, (_, at) => (at * 7 + length) % 256);
    const pieces = new Blob([bytes.subarray(0, length / 3), bytes.subarray(length / 3)]).stream();
    assert.equal(await sha256(pieces), createHash("sha256").update(bytes).digest("hex"), String(length));
  }
});
