// Asking a model: a field for each input, or rows of a table, or lines of text.

import { TableError, numbers, quoted, records } from "./csv.js";
import { el, table } from "./dom.js";
import { brief, count, float32, float64, plural, visible } from "./text.js";

/** A model with more inputs than this is asked with tables only. */
const MAX_FIELDS = 24;
/** As many answers are shown; all of them are in the table that can be saved. */
const SHOWN = 100;

/** One value in words: numbers as `apr predict` prints them. */
function worded(value, floats) {
  if (typeof value !== "number") return visible(String(value));
  return floats === Float64Array || !floats ? float64(value) : float32(value);
}

/** Answers of any kind as rows of words: numbers, classes, transformed rows, weighted terms. */
export function answersOf(answers, rows, { terms }) {
  const { data, columns } = "columns" in answers ? answers : { data: answers, columns: 1 };
  const floats = ArrayBuffer.isView(data) ? data.constructor : null;
  return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => {
    const value = data[row * columns + column];
    if (!Array.isArray(value)) return worded(value, floats);
    return value.map(({ term, weight }) => `${visible(terms?.[term] ?? `term ${term}`)}: ${float32(weight)}`).join(", ") || "no term of the model";
  }));
}

/** What the columns of probabilities are called. */
export function classesOf({ classes, classNames }, columns) {
  return Array.from({ length: columns }, (_, column) => {
    const label = classes?.[column] ?? column;
    return visible(String(classNames?.[label] ?? label));
  });
}

const probabilitiesOf = ({ data, columns }, rows) => Array.from({ length: rows }, (_, row) => data.slice(row * columns, (row + 1) * columns));

/** A probability with the digits of its kind of float. */
const share = (probabilities, at) => worded(probabilities[at], probabilities.constructor);

/** One answer, with the probability of each class: bars for the eye, numbers for all. */
function single(answer, probabilities, classes) {
  const parts = [el("p", { class: "answer" }, answer.join(", "))];
  if (probabilities) {
    parts.push(el("ul", { class: "odds" }, Array.from(probabilities, (probability, at) => {
      const bar = el("span", { class: "odds-bar", "aria-hidden": "true" }, el("span", {}));
      bar.firstChild.style.width = `${100 * probability}%`;
      return el("li", {}, el("span", { class: "odds-name" }, classes[at]), bar, el("span", { class: "number" }, share(probabilities, at)));
    })));
  }
  return parts;
}

function several(answers, probabilities, classes) {
  const head = ["Row", "Answer", ...classes];
  const rows = answers.map((answer, at) =>
    [String(at + 1), answer.join(", "), ...classes.map((_, column) => share(probabilities[at], column))]);
  const shown = rows.slice(0, SHOWN).map(([row, ...rest]) => [row, ...rest.map((number) => ({ number }))]);
  const save = el("button", {
    type: "button",
    onclick: () => {
      const lines = [head, ...rows].map((row) => row.map(quoted).join(",")).join("\n");
      const link = el("a", { href: URL.createObjectURL(new Blob([`${lines}\n`], { type: "text/csv" })), download: "answers.csv" });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    },
  }, "Save as CSV");
  const rest = rows.length > SHOWN ? ` The first ${count(SHOWN)} are shown.` : "";
  return [el("p", {}, `${plural(rows.length, "answer")}.${rest}`), table("Answers", head, shown), el("p", {}, save)];
}

/**
 * A form for `model`, as the worker describes it; `ask(rows)` has its answers, `example` is a first row, `id` makes the fields unique in the
 * page, `explain` shows an error.
 */
export function predictForm({ model, example, id, ask, explain }) {
  if (model.takesNothing) return el("p", {}, `A ${visible(model.type)} does not predict rows.`);
  const answer = el("div", { class: "answers", role: "status", "aria-live": "polite" });
  const named = model.features && model.features.length === model.inputs ? model.features : null;
  const label = (at) => (named ? brief(named[at], 60) : `Input ${at + 1}`);

  async function show(rows, note) {
    try {
      const { answers, proba } = await ask(rows);
      const words = answersOf(answers, rows.length, model);
      const odds = proba ? probabilitiesOf(proba, rows.length) : null;
      const classes = proba ? classesOf(model, proba.columns) : [];
      answer.replaceChildren(...(note ? [el("p", { class: "note" }, note)] : []),
        ...(rows.length === 1 ? single(words[0], odds?.[0], classes) : several(words, odds, classes)));
    } catch (error) {
      answer.replaceChildren(explain(error));
    }
  }

  const wrong = (message) => answer.replaceChildren(el("p", { class: "problem" }, message));
  const forms = [];

  if (!model.takesText && model.inputs > 0 && model.inputs <= MAX_FIELDS) {
    const fields = Array.from({ length: model.inputs }, (_, at) =>
      el("input", { id: `${id}-input-${at}`, type: "text", inputmode: "decimal", required: true, autocomplete: "off", value: example?.[at] ?? "" }));
    forms.push(el("form", {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        const row = fields.map((field) => Number(field.value.trim() === "" ? NaN : field.value));
        const bad = row.findIndex(Number.isNaN);
        fields.forEach((field, at) => field.setAttribute("aria-invalid", String(Number.isNaN(row[at]))));
        if (bad < 0) return show([row]);
        fields[bad].focus();
        return wrong(`${label(bad)} needs a number.`);
      },
    },
    el("div", { class: "fields" }, fields.map((field, at) => el("div", {}, el("label", { for: field.id }, label(at)), field))),
    el("p", {}, el("button", { type: "submit", class: "primary" }, "Predict"))));
  }

  const area = el("textarea", { id: `${id}-rows`, rows: "4", spellcheck: "false", autocomplete: "off" });
  const explained = model.takesText
    ? "Texts, one per line"
    : `Rows of ${plural(model.inputs ?? 0, "value")}, separated by commas, semicolons or tabs; the first line may contain column names`;
  const whole = el("form", {
    onsubmit: (event) => {
      event.preventDefault();
      try {
        if (model.takesText) return show(area.value.replace(/\n+$/, "").split("\n"));
        const { rows, ignored } = numbers(area.value, model.inputs ?? records(area.value)[0]?.length ?? 0, named);
        return show(rows, ignored.length > 0 ? `Ignored columns: ${ignored.map((name) => brief(name, 40)).join(", ")}.` : null);
      } catch (error) {
        if (error instanceof TableError) return wrong(`${error.message}.`);
        throw error;
      }
    },
  },
  el("label", { for: area.id }, explained), area,
  el("p", {}, el("button", { type: "submit", class: forms.length === 0 ? "primary" : null }, "Predict all rows")));
  forms.push(forms.length === 0 ? whole : el("details", {}, el("summary", {}, "Several rows at once"), whole));
  return el("div", { class: "predict" }, forms, answer);
}
