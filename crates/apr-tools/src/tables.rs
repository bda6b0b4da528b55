//! Tables: columns by name or number, rows as numbers. Comma-separated values, JSON lines, Arrow IPC, Parquet, datasets of alimentar,
//! arrays of NumPy.

mod categories;
#[cfg(feature = "tables")]
mod arrays;
#[cfg(feature = "tables")]
mod columns;
mod csv;
mod input;
mod json_lines;
mod number;

use alloc::collections::BTreeMap;
use std::collections::HashMap;
use std::io::{BufReader, Read};
#[cfg(feature = "tables")]
use std::path::Path;
use std::path::PathBuf;

pub(crate) use self::categories::Categories;
#[cfg(feature = "tables")]
use apr_table::TableFormat;

#[cfg(feature = "tables")]
use self::arrays::Arrays;
#[cfg(feature = "tables")]
use self::columns::Columns;
use self::csv::{BYTE_ORDER_MARK, CsvReader, Record, SAVE_AS_UTF_8, UTF_16_MARKS};
use self::input::Content;
pub(crate) use self::input::{Dialect, Header, Input, is_encrypted};
use self::json_lines::JsonLines;
pub(crate) use self::number::{Accepts, MISSING, Number, is_missing, number};
use crate::error::{CODE_TABLE_CELL, CODE_TABLE_COLUMNS, CODE_TABLE_SYNTAX, Failure, Place};
#[cfg(feature = "tables")]
use crate::output::Destination;
use crate::terminal::escape;
use crate::terminal::human;

/// What the tables are that a command takes, or lines instead of one, for its help page.
#[cfg(feature = "tables")]
pub(crate) const TABLE_OR_LINES: &str = "A table (comma-separated values, JSON lines, Arrow IPC, Parquet, .npy, .npz, .ald), or lines of text; `-` for standard input";
#[cfg(not(feature = "tables"))]
pub(crate) const TABLE_OR_LINES: &str =
    "A table (comma-separated values, JSON lines), or lines of text; `-` for standard input";

/// The format of a table that is written to a file of this name, by its ending.
#[cfg(feature = "tables")]
pub(crate) fn table_format(path: &Path) -> Option<TableFormat> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    match ending.as_str() {
        "arrow" | "feather" => Some(TableFormat::ArrowFile),
        "arrows" => Some(TableFormat::ArrowStream),
        "parquet" => Some(TableFormat::Parquet),
        _ => None,
    }
}

/// The failure of writing a table.
#[cfg(feature = "tables")]
pub(crate) fn output_failure(error: apr_table::Error, destination: &Destination) -> Failure {
    match located_error::io_error(&error) {
        Some(cause) => destination.write_failure(cause),
        None => Failure::from(error).in_file(destination.label()),
    }
}

/// A table whose rows all have as many columns as the first one.
pub(crate) struct Table {
    rows: Rows,
    label: PathBuf,
    names: Option<Vec<String>>,
    /// The column of each name; none of a name that several have.
    by_name: HashMap<String, Option<usize>>,
    n_columns: usize,
    /// Of columns whose cells are no numbers.
    categories: BTreeMap<usize, Categories>,
    /// Of the row behind those that were given last.
    failure: Option<Failure>,
}

enum Rows {
    Csv(CsvReader<BufReader<Box<dyn Read>>>),
    JsonLines(JsonLines<BufReader<Box<dyn Read>>>),
    #[cfg(feature = "tables")]
    Columns(Box<Columns>),
    #[cfg(feature = "tables")]
    Arrays(Box<Arrays>),
}

/// Why rows cannot be taken.
#[cfg(feature = "tables")]
enum Stop {
    Table(Failure),
    Cell { what: String, place: Place, column: usize },
}

/// What is read of each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'w> {
    /// Columns of numbers, or of categories whose numbers are given.
    pub(crate) numbers: &'w [usize],
    pub(crate) accepts: Accepts,
    /// A column of texts.
    pub(crate) text: Option<usize>,
}

/// Rows of numbers, and a text of each.
#[derive(Debug, Default)]
pub(crate) struct Taken<T> {
    pub(crate) n_rows: usize,
    pub(crate) numbers: Vec<T>,
    pub(crate) texts: Vec<Text>,
}

/// A cell as it was written, with the place of its row.
pub(crate) type Text = (Place, String);

impl Table {
    /// Reads what the columns are. A table without any row may have none.
    ///
    /// # Errors
    ///
    /// If the table cannot be read.
    pub(crate) fn open(input: Input, dialect: &Dialect) -> Result<Self, Failure> {
        let label = input.label().to_owned();
        let in_table = |failure: Failure| failure.in_file(&label);
        let rows = match input.content {
            Content::Text(text) => match is_json(&text).map_err(in_table)? {
                true => Rows::JsonLines(JsonLines::open(text).map_err(in_table)?),
                false => Rows::Csv(CsvReader::new(text, dialect.delimiter)),
            },
            #[cfg(feature = "tables")]
            Content::Arrow(stream) => Rows::Columns(Box::new(Columns::arrow(stream).map_err(in_table)?)),
            #[cfg(feature = "tables")]
            Content::Parquet(file) => Rows::Columns(Box::new(Columns::parquet(file).map_err(in_table)?)),
            #[cfg(feature = "tables")]
            Content::Ald(dataset) => {
                Rows::Columns(Box::new(Columns::ald(*dataset, &input.keys).map_err(in_table)?))
            }
            #[cfg(feature = "tables")]
            Content::Arrays(file, _) => {
                Rows::Arrays(Box::new(Arrays::open(file, dialect.array.as_deref()).map_err(in_table)?))
            }
            #[cfg(not(feature = "tables"))]
            content => {
                let failure = content.refused_as("comma-separated values", &label);
                return Err(failure.help("write it as comma-separated values or JSON lines, or build apr with the feature `tables`"));
            }
        };
        let categories = BTreeMap::new();
        let by_name = HashMap::new();
        let mut table = Self { rows, label, names: None, by_name, n_columns: 0, categories, failure: None };
        table.names = match &mut table.rows {
            Rows::JsonLines(lines) => Some(lines.names().to_vec()),
            #[cfg(feature = "tables")]
            Rows::Columns(columns) => Some(columns.names().to_vec()),
            #[cfg(feature = "tables")]
            Rows::Arrays(arrays) => {
                table.n_columns = arrays.n_columns();
                let Some(names) = arrays.names() else { return Ok(table) };
                Some(names)
            }
            Rows::Csv(csv) => {
                let Some(first) = csv.next().map_err(|failure| failure.in_file(&table.label))? else {
                    return Ok(table);
                };
                table.n_columns = first.len();
                let is_header = match dialect.header {
                    Header::Yes => true,
                    Header::No => false,
                    Header::Auto => looks_like_names(first),
                };
                let names = is_header.then(|| first.fields().map(|name| name.trim().to_owned()).collect());
                if !is_header {
                    csv.repeat();
                }
                names
            }
        };
        if let Some(names) = &table.names {
            table.n_columns = names.len();
            for (column, name) in names.iter().enumerate() {
                let column_of = table.by_name.entry(name.clone());
                column_of.and_modify(|column| *column = None).or_insert(Some(column));
            }
        }
        Ok(table)
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The names of the columns, if the first line has them.
    pub(crate) fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The column of that name, or of that number counted from 1. Of an archive of NumPy also an array with a value for each row: its
    /// number is beyond [`n_columns`](Self::n_columns).
    ///
    /// # Errors
    ///
    /// If there is none, or there are several of the name.
    pub(crate) fn column(&self, wanted: &str) -> Result<usize, Failure> {
        let failure = |what: String| Failure::new(CODE_TABLE_COLUMNS, what).in_file(&self.label);
        let shown = escape::cut(wanted, 60);
        let missing = |why: String| failure(format!("the table has no column `{shown}`")).because(why);
        #[cfg(feature = "tables")]
        if let Rows::Arrays(arrays) = &self.rows
            && let Some(column) = arrays.column(wanted).map_err(|failure| failure.in_file(&self.label))?
        {
            return Ok(column);
        }
        match self.by_name.get(wanted) {
            Some(Some(column)) => return Ok(*column),
            Some(None) => {
                let failure = failure(format!("several columns are named `{shown}`"));
                return Err(failure.because(self.numbers_of(wanted)).help(
                    "give each column a name of its own; options that name columns also take their numbers",
                ));
            }
            None => {}
        }
        match (wanted.parse::<usize>(), &self.names, &self.rows) {
            (Ok(number), ..) if (1..=self.n_columns).contains(&number) => Ok(number - 1),
            (_, Some(names), _) => Err(missing(format!("it has {}", listed(names)))),
            (_, None, _) if self.n_columns == 0 => Err(missing("it is empty".to_owned())),
            (_, None, Rows::Csv(csv)) if csv.repeated().is_some_and(|first| has_field(first, wanted)) => {
                let failure = missing("its first line is read as data, not as names".to_owned());
                Err(failure.help(
                    "with --header yes, the first line names the columns; by default it does if none of its cells is a number or a \
                     missing value",
                ))
            }
            (_, None, _) => {
                let why = format!("its columns have no names, only numbers from 1 to {}", self.n_columns);
                Err(missing(why))
            }
        }
    }

    /// Which columns have a name that several have.
    fn numbers_of(&self, wanted: &str) -> String {
        const SHOWN: usize = 8;
        let names = self.names.iter().flatten().enumerate();
        let numbers = names.filter(|(_, name)| *name == wanted).map(|(column, _)| (column + 1).to_string());
        let numbers: Vec<String> = numbers.collect();
        let more = if numbers.len() > SHOWN { ", and more" } else { "" };
        format!("these are columns {}{more}", numbers[..numbers.len().min(SHOWN)].join(", "))
    }

    /// Lets a column have categories instead of numbers.
    pub(crate) fn set_categories(&mut self, column: usize, categories: Categories) {
        self.categories.insert(column, categories);
    }

    /// The categories of a column, with those that were found in it.
    pub(crate) fn take_categories(&mut self, column: usize) -> Option<Categories> {
        self.categories.remove(&column)
    }

    /// Takes the next rows, at most `limit` and at least one; none at the end. It does not wait for more than have arrived.
    ///
    /// # Errors
    ///
    /// If the input cannot be read or breaks a rule of its format, a row has more or fewer columns than the first one, or a cell is not an
    /// accepted number. Rows before the one at fault are given first.
    pub(crate) fn next_rows<T: Number>(
        &mut self,
        wanted: Wanted<'_>,
        limit: usize,
    ) -> Result<Taken<T>, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut taken = Taken { n_rows: 0, numbers: Vec::new(), texts: Vec::new() };
        let result = match &mut self.rows {
            #[cfg(feature = "tables")]
            Rows::Columns(columns) => {
                let stopped = columns.take(wanted, &mut self.categories, limit, &mut taken);
                stopped.map_err(|stop| self.stopped(stop))
            }
            #[cfg(feature = "tables")]
            Rows::Arrays(arrays) => {
                let stopped = arrays.take(wanted, &mut self.categories, limit, &mut taken);
                stopped.map_err(|stop| self.stopped(stop))
            }
            _ => {
                let mut categories = core::mem::take(&mut self.categories);
                let result = self.next_records(wanted, &mut categories, limit, &mut taken);
                self.categories = categories;
                result
            }
        };
        match result {
            Err(failure) if taken.n_rows > 0 => self.failure = Some(failure),
            other => other?,
        }
        Ok(taken)
    }

    #[cfg(feature = "tables")]
    fn stopped(&self, stop: Stop) -> Failure {
        match stop {
            Stop::Table(failure) => failure.in_file(&self.label),
            Stop::Cell { what, place, column } => self.cell_failure(what, place, column),
        }
    }

    fn next_records<T: Number>(
        &mut self,
        wanted: Wanted<'_>,
        categories: &mut BTreeMap<usize, Categories>,
        limit: usize,
        taken: &mut Taken<T>,
    ) -> Result<(), Failure> {
        while taken.n_rows < limit && (taken.n_rows == 0 || self.rows.has_buffered()) {
            let Some(record) = self.next_record()? else { break };
            let (line, begin) = (record.line(), taken.numbers.len());
            for &column in wanted.numbers {
                let cell = record.field(column);
                let number = match categories.get_mut(&column) {
                    Some(categories) => categories.number(Some(cell), wanted.accepts).map(T::from),
                    None => match record.boolean(column) {
                        Some(value) => Ok(T::from(f32::from(u8::from(value)))),
                        None => T::parse(cell, wanted.accepts),
                    },
                };
                match number {
                    Ok(value) => taken.numbers.push(value),
                    Err(what) => {
                        taken.numbers.truncate(begin);
                        return Err(self.cell_failure(what, Place::line(line), column));
                    }
                }
            }
            let text = wanted.text.map(|column| record.field(column).to_owned());
            taken.texts.extend(text.map(|text| (Place::line(line), text)));
            taken.n_rows += 1;
        }
        Ok(())
    }

    fn next_record(&mut self) -> Result<Option<&Record>, Failure> {
        let (label, expected) = (&self.label, self.n_columns);
        let record = match &mut self.rows {
            Rows::Csv(csv) => csv.next(),
            Rows::JsonLines(lines) => lines.next(),
            #[cfg(feature = "tables")]
            Rows::Columns(_) | Rows::Arrays(_) => Ok(None),
        };
        match record.map_err(|failure| failure.in_file(label))? {
            Some(record) if record.len() != expected => {
                let found = human::plural(record.len() as u64, "column");
                let what = format!("this line has {found}, the first one {expected}");
                let failure = Failure::new(CODE_TABLE_COLUMNS, what).in_file(label);
                Err(failure.placed(Place::line(record.line())))
            }
            record => Ok(record),
        }
    }

    /// The failure of a cell.
    pub(crate) fn cell_failure(&self, what: String, place: Place, column: usize) -> Failure {
        let name = self.names.as_ref().and_then(|names| names.get(column)).map(String::as_str);
        let place = place.in_column(column as u64 + 1).named(name);
        Failure::new(CODE_TABLE_CELL, what).in_file(&self.label).placed(place)
    }
}

impl Rows {
    /// Whether the next record has arrived already.
    fn has_buffered(&mut self) -> bool {
        match self {
            Self::Csv(csv) => csv.has_buffered(),
            Self::JsonLines(lines) => lines.has_buffered(),
            #[cfg(feature = "tables")]
            Self::Columns(_) | Self::Arrays(_) => false,
        }
    }
}

/// Whether a text is JSON lines, perhaps after a byte order mark. A brace may begin comma-separated values, but not with a quote after it.
///
/// # Errors
///
/// If it is an array of JSON, or UTF-16: nothing later in the table would say so.
fn is_json(text: &BufReader<Box<dyn Read>>) -> Result<bool, Failure> {
    let begin = text.buffer();
    let refused =
        |what: &str, help: &str| Err(Failure::new(CODE_TABLE_SYNTAX, what).placed(Place::line(1)).help(help));
    if UTF_16_MARKS.iter().any(|mark| begin.starts_with(mark)) {
        return refused("the text is UTF-16, not UTF-8", SAVE_AS_UTF_8);
    }
    let begin = begin.strip_prefix(BYTE_ORDER_MARK).unwrap_or(begin).trim_ascii_start();
    let is_object = |text: &[u8]| {
        let object = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
        object.is_some_and(|object| matches!(object.first(), Some(b'"' | b'}')))
    };
    match begin.strip_prefix(b"[").map(<[u8]>::trim_ascii_start) {
        Some(first) if is_object(first) => refused(
            "the table is one JSON array, not JSON lines",
            "write one object on each line, without the brackets and commas of the array: jq -c '.[]' ARRAY > TABLE",
        ),
        _ => Ok(is_object(begin)),
    }
}

/// Whether a cell of a record is this name.
fn has_field(record: &Record, name: &str) -> bool {
    record.fields().any(|field| field.trim() == name)
}

/// Whether a first line holds names: no number, no sign of a missing value, and not only blanks.
fn looks_like_names(record: &Record) -> bool {
    let is_blank = |cell: &str| cell.trim().is_empty();
    let is_mark = |cell: &str| MISSING.iter().any(|missing| cell.trim().eq_ignore_ascii_case(missing));
    let is_value = |cell: &str| cell.trim().parse::<f32>().is_ok() || is_mark(cell);
    !record.fields().any(is_value) && !record.fields().all(is_blank)
}

/// The first few names.
pub(crate) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| escape::cut(name, 40)).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &'static str, header: Header) -> Result<Table, Failure> {
        let content = Content::of(Box::new(text.as_bytes())).unwrap();
        let input = Input { label: "t.csv".into(), content, keys: Default::default() };
        Table::open(input, &Dialect { header, ..Dialect::COMMAS })
    }

    #[test]
    fn a_header_is_recognised() {
        for (text, is_header) in [
            ("a,b\n1,2\n", true),
            ("1,2\n3,4\n", false),
            (",b\n1,2\n", true),
            ("a,2\n1,2\n", false),
            ("a,NaN\n", false),
            (",\n", false),
            ("N/A,?\n1,2\n", false),
        ] {
            assert_eq!(table(text, Header::Auto).unwrap().names().is_some(), is_header, "{text}");
        }
        assert_eq!(table("1,2\n", Header::Yes).unwrap().names().unwrap(), ["1", "2"]);
        assert!(table("a,b\n", Header::No).unwrap().names().is_none());
        assert_eq!(table("", Header::Auto).unwrap().n_columns(), 0);
    }

    fn block(result: Result<impl Sized, Failure>) -> String {
        result.err().unwrap().block(crate::terminal::Style::PLAIN)
    }

    #[test]
    fn a_column_that_is_not_found_has_a_reason() {
        let twice = block(table("a,b,a\n1,2,3\n", Header::Auto).unwrap().column("a"));
        assert!(twice.contains("several columns are named `a`") && twice.contains("columns 1, 3"), "{twice}");
        for first in ["2020,2021,y", "a,NA,y", "id,?,y"] {
            let text = format!("{first}\n1,2,3\n").leak();
            let block = block(table(text, Header::Auto).unwrap().column("y"));
            assert!(block.contains("read as data") && block.contains("--header yes"), "{block}");
        }
        let none = block(table("1,2\n", Header::Auto).unwrap().column("y"));
        assert!(none.contains("only numbers from 1 to 2") && !none.contains("--header"), "{none}");
    }

    #[test]
    fn what_is_no_table_is_told_by_its_beginning() {
        for (text, part) in
            [("[{\"a\":1,\"b\":2}]", "JSON array"), ("\u{feff}[\n  { \"a\": 1 }\n]\n", "jq -c")]
        {
            let block = block(table(text, Header::Auto));
            assert!(block.contains(part) && block.contains("line 1"), "{block}");
        }
        assert!(table("[x],{\n1,2\n", Header::Auto).is_ok());
        for bytes in [&b"\xff\xfea\0,\0y\0\n\0"[..], b"\xfe\xff\0a"] {
            let content = Content::of(Box::new(bytes)).unwrap();
            let input = Input { label: "t.csv".into(), content, keys: Default::default() };
            let block = block(Table::open(input, &Dialect::COMMAS));
            assert!(block.contains("UTF-16") && block.contains("as UTF-8"), "{block}");
        }
    }

    #[test]
    fn booleans_of_json_are_numbers_and_strings_are_not() {
        let text = "{\"a\":1,\"b\":true}\n{\"b\":false,\"a\":2}\n{\"a\":3,\"b\":\"true\"}\n";
        let mut table = table(text, Header::Auto).unwrap();
        let wanted = Wanted { numbers: &[0, 1], accepts: Accepts::Finite, text: Some(1) };
        let taken = table.next_rows::<f32>(wanted, 9).unwrap();
        assert_eq!(taken.numbers, [1.0, 1.0, 2.0, 0.0]);
        let texts: Vec<&str> = taken.texts.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["true", "false"]);
        assert!(block(table.next_rows::<f32>(wanted, 9)).contains("`true` is not a number"));
    }

    #[test]
    fn columns_are_found_by_name_or_number() {
        let named = table("a,2,b,b\n", Header::Yes).unwrap();
        assert_eq!(named.column("a").unwrap(), 0);
        assert_eq!(named.column("2").unwrap(), 1, "a name comes before a number");
        assert_eq!(named.column("4").unwrap(), 3);
        assert!(named.column("b").is_err() && named.column("5").is_err() && named.column("0").is_err());
        assert_eq!(table("1,2\n", Header::Auto).unwrap().column("2").unwrap(), 1);
    }

    #[test]
    fn cells_that_are_no_numbers_are_refused_with_their_place() {
        for (cell, part) in [
            ("", "empty"),
            (" ", "empty"),
            ("x", "not a number"),
            ("NaN", "finite"),
            ("inf", "finite"),
            ("1e39", "32-bit"),
        ] {
            let text = format!("a,b\n1,2\n3,{cell}\n").leak();
            let mut table = table(text, Header::Auto).unwrap();
            let wanted = |numbers| Wanted { numbers, accepts: Accepts::Finite, text: None };
            let taken = table.next_rows::<f32>(wanted(&[1, 0]), 9).unwrap();
            assert_eq!(taken.numbers, [2.0, 1.0]);
            let failure = table.next_rows::<f32>(wanted(&[1]), 9).unwrap_err();
            let block = failure.block(crate::terminal::Style::PLAIN);
            assert!(block.contains(part) && block.contains("line 3, column 2 (b)"), "{block}");
        }
        assert_eq!(number(" -1.5e3 "), Ok(-1500.0));
    }

    #[test]
    fn every_line_has_as_many_columns_as_the_first() {
        for text in ["1,2\n3\n", "1,2\n3,4,5\n", "a,b\n1\n"] {
            let mut table = table(text, Header::Auto).unwrap();
            let failure = loop {
                match table.next_record() {
                    Ok(record) => assert!(record.is_some(), "{text}"),
                    Err(failure) => break failure,
                }
            };
            assert_eq!(failure.code(), CODE_TABLE_COLUMNS);
        }
    }
}
