// Rows of a pasted table: commas, semicolons or tabs; quotes where a field needs them (RFC 4180).

/** What is wrong with a table, and where. */
export class TableError extends Error {}

/** Every record of `text` as a list of fields. */
export function records(text) {
  const first = text.slice(0, text.indexOf("\n") < 0 ? undefined : text.indexOf("\n"));
  const delimiter = first.includes("\t") ? "\t" : !first.includes(",") && first.includes(";") ? ";" : ",";
  const rows = [];
  let row = [];
  let field = "";
  let quoted = false;
  let closed = false;
  const endField = () => {
    row.push(closed ? field : field.trim());
    field = "";
    closed = false;
  };
  const endRow = () => {
    endField();
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
  };
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at];
    if (quoted) {
      if (char !== '"') field += char;
      else if (text[at + 1] === '"') {
        field += '"';
        at += 1;
      } else {
        quoted = false;
        closed = true;
      }
    } else if (char === '"' && field.trim() === "" && !closed) {
      field = "";
      quoted = true;
    } else if (char === delimiter) endField();
    else if (char === "\n") endRow();
    else if (char !== "\r" && !closed) field += char;
  }
  if (quoted) throw new TableError(`row ${rows.length + 1}: a quote is not closed`);
  endRow();
  return rows;
}

const isNumber = (field) => field.trim() !== "" && !Number.isNaN(Number(field));

/**
 * The numbers of a table for a model with `inputs` inputs called `names` (or null): by name if the first line has names and the model too,
 * else in their order. `ignored` are the columns left out.
 */
export function numbers(text, inputs, names) {
  const rows = records(text.replace(/^\ufeff/, ""));
  if (rows.length === 0) throw new TableError("there is no row");
  const header = rows[0].some(isNumber) ? null : rows.shift();
  if (rows.length === 0) throw new TableError("there is a line of names and no row below it");
  let columns = Array.from({ length: inputs }, (_, at) => at);
  let ignored = [];
  let width = inputs;
  if (header && names) {
    columns = names.map((name) => {
      const at = header.indexOf(name);
      if (at < 0) throw new TableError(`there is no column \`${name}\``);
      return at;
    });
    ignored = header.filter((_, at) => !columns.includes(at));
    width = header.length;
  }
  const values = rows.map((row, at) => {
    if (row.length !== width) {
      throw new TableError(`row ${at + 1}: ${row.length} fields, where ${width} are needed`);
    }
    return columns.map((column) => {
      if (!isNumber(row[column])) {
        throw new TableError(`row ${at + 1}, column ${column + 1}: \`${row[column].slice(0, 40)}\` is no number`);
      }
      return Number(row[column]);
    });
  });
  return { rows: values, ignored };
}

/**
 * A field as it stands in a table that is saved. Names of classes and terms are text of a file: spreadsheets would take what begins like a
 * formula for one, so it gets an apostrophe in front.
 */
export function quoted(field) {
  const isPlain = isNumber(field) || field === "-inf" || !/^[=+\-@\t\r]/.test(field);
  const safe = isPlain ? field : `'${field}`;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
