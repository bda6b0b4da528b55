// A loaded model.

import { Operation, Question } from "./engine.js";
import { refuse } from "./errors.js";

const encoder = new TextEncoder();

export class Model {
  #engine;
  #number;

  constructor(engine, number, known, notes) {
    this.#engine = engine;
    this.#number = number;
    Object.assign(this, known);
    this.notes = notes;
  }

  #ask(rows, wanted) {
    if (this.#number === null) throw refuse("aw-closed", "the model was freed");
    const question = new Question().u32(this.#number).u8(wanted);
    if (this.takesNothing) throw refuse("aw-no-prediction", `a ${this.type} predicts nothing about rows`);
    if (this.takesText) {
      const texts = typeof rows === "string" ? [rows] : [...rows];
      if (!texts.every((text) => typeof text === "string")) throw refuse("aw-usage", `a ${this.type} takes texts`);
      question.u8(2).u32(texts.length);
      texts.forEach((text) => question.bytes(encoder.encode(text)));
    } else {
      const { values, columns } = this.#table(rows);
      question.u8(this.wide ? 1 : 0).u32(columns);
      question.raw(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    }
    const { json, bytes } = this.#engine.call(Operation.Predict, question);
    return { ...JSON.parse(json), bytes };
  }

  /** Rows in row-major order, in the float type of the model. */
  #table(rows) {
    const Type = this.wide ? Float64Array : Float32Array;
    if (ArrayBuffer.isView(rows) || (Array.isArray(rows) && rows.every((value) => typeof value === "number"))) {
      const columns = this.inputs ?? rows.length;
      if (columns === 0 || rows.length % columns !== 0) {
        throw refuse("am-feature-count", `${rows.length} numbers are no rows of ${columns} each`);
      }
      return { values: rows instanceof Type ? rows : Type.from(rows), columns };
    }
    const table = Array.from(rows, (row) => (ArrayBuffer.isView(row) || Array.isArray(row) ? row : null));
    const columns = table[0]?.length ?? this.inputs ?? 0;
    table.forEach((row, idx) => {
      const isRow = row !== null && row.length === columns;
      if (!isRow) throw refuse("aw-usage", `row ${idx} is not ${columns} numbers, as the first is`);
    });
    const values = new Type(columns * table.length);
    table.forEach((row, idx) => {
      // An element that an array does not have is missing too: `forEach` would leave it out.
      for (let column = 0; column < columns; column += 1) {
        // A missing value is NaN, which models without support for missing values refuse.
        const number = row[column] ?? NaN;
        if (typeof number !== "number") throw refuse("aw-usage", `row ${idx} holds something that is no number`);
        values[idx * columns + column] = number;
      }
    });
    return { values, columns };
  }

  /** A prediction for each row or text. */
  predict(rows) {
    const { kind, dtype, columns, counts, bytes } = this.#ask(rows, 0);
    if (kind === "terms") return termsOf(counts, dtype, bytes);
    const values = typed(dtype, bytes);
    if (kind === "class" || kind === "outlier") return this.#named(Int32Array.from(values));
    if (kind === "label") return this.#named(labelsOf(values, this.classes));
    if (columns !== 1) return { data: values, columns };
    return values;
  }

  /** Probabilities of the classes: [n_samples, n_classes]. */
  predictProba(rows) {
    const { dtype, columns, bytes } = this.#ask(rows, 1);
    return { data: typed(dtype, bytes), columns };
  }

  #named(classes) {
    const { classNames } = this;
    if (!classNames || !ArrayBuffer.isView(classes)) return classes;
    return Array.from(classes, (number) => classNames[number] ?? String(number));
  }

  free() {
    if (this.#number !== null && !this.#engine.trapped) this.#engine.call(Operation.FreeModel, new Question().u32(this.#number));
    this.#number = null;
  }
}

function typed(dtype, bytes) {
  const Type = { f32: Float32Array, f64: Float64Array, i32: Int32Array, u32: Uint32Array }[dtype];
  return new Type(bytes.buffer, bytes.byteOffset, bytes.byteLength / Type.BYTES_PER_ELEMENT);
}

/** The labels of class indices: integers as a typed array, other labels as a list. */
function labelsOf(places, labels) {
  if (!labels) return Int32Array.from(places);
  const found = Array.from(places, (place) => labels[place] ?? place);
  const isWhole = found.every((label) => Number.isInteger(label) && Math.abs(label) < 2 ** 31);
  return isWhole ? Int32Array.from(found) : found;
}

function termsOf(counts, dtype, bytes) {
  const stored = counts.reduce((sum, count) => sum + count, 0);
  const columns = new Uint32Array(bytes.buffer, bytes.byteOffset, stored);
  const weights = typed(dtype, bytes.slice(stored * 4));
  let at = 0;
  return counts.map((count) => {
    const row = Array.from({ length: count }, (_, idx) => ({ term: columns[at + idx], weight: weights[at + idx] }));
    at += count;
    return row;
  });
}
