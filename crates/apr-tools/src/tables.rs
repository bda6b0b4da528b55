//! A table of comma-separated values: columns by name or number, cells as numbers.

mod csv;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use self::csv::{CsvReader, Record};
use crate::error::{CODE_TABLE_CELL, CODE_TABLE_COLUMNS, Failure, Place};
use crate::foreign;
use crate::terminal::escape;
use crate::terminal::human;

/// How other programs write that a value is missing.
pub(crate) const MISSING: [&str; 7] = ["na", "n/a", "nan", "null", "none", "nil", "?"];

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Dialect {
    /// The character between columns, or `tab`.
    #[arg(long, value_name = "C", default_value = ",", value_parser = delimiter)]
    pub(crate) delimiter: u8,
    /// Whether the first line names the columns: auto is if no cell of it is a number.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) header: Header,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Header {
    #[default]
    Auto,
    Yes,
    No,
}

fn delimiter(text: &str) -> Result<u8, &'static str> {
    match *text.as_bytes() {
        _ if matches!(text, "tab" | "\\t") => Ok(b'\t'),
        [byte] if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"\"\r\n.+-".contains(&byte) => {
            Ok(byte)
        }
        _ => Err("write one character such as `,` or `;`, or `tab`"),
    }
}

/// Where a table or a list of texts comes from.
pub(crate) struct Input {
    label: PathBuf,
    read: Box<dyn Read>,
}

impl Input {
    /// Opens a regular file; `-` is standard input.
    ///
    /// # Errors
    ///
    /// If it cannot be opened.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let read: Box<dyn Read> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(open(path)?),
        };
        Ok(Self { label: path.to_owned(), read })
    }

    pub(crate) fn label(&self) -> &Path {
        &self.label
    }
}

fn open(path: &Path) -> Result<File, Failure> {
    let regular = durable_file::open_regular(path, u64::MAX)?;
    let len = regular.len();
    let mut file = regular.into_file();
    let failed = |error: io::Error| Failure::io("read", path, &error);
    match foreign::of_open(&mut file, len).map_err(failed)? {
        None => {}
        Some(kind) if kind.foreign().is_some_and(foreign_format::Format::is_text) => {}
        Some(kind) => return Err(foreign::refusal(kind, "text", path)),
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    Ok(file)
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read.read(buf)
    }
}

/// A table whose records all have as many fields as the first one.
pub(crate) struct CsvTable {
    csv: CsvReader<Input>,
    label: PathBuf,
    names: Option<Vec<String>>,
    n_columns: usize,
}

impl CsvTable {
    /// Reads the first line. A table without any line has no columns.
    ///
    /// # Errors
    ///
    /// If the table cannot be read.
    pub(crate) fn open(input: Input, dialect: Dialect) -> Result<Self, Failure> {
        let label = input.label().to_owned();
        let mut csv = CsvReader::new(input, dialect.delimiter);
        let first = csv.next().map_err(|failure| failure.in_file(&label))?;
        let Some(first) = first else { return Ok(Self { csv, label, names: None, n_columns: 0 }) };
        let n_columns = first.len();
        let is_header = match dialect.header {
            Header::Yes => true,
            Header::No => false,
            Header::Auto => looks_like_names(first),
        };
        let names = is_header.then(|| first.fields().map(|name| name.trim().to_owned()).collect());
        if !is_header {
            csv.repeat();
        }
        Ok(Self { csv, label, names, n_columns })
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The names of the columns, if the first line has them.
    pub(crate) fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    /// The column of that name, or of that number counted from 1.
    ///
    /// # Errors
    ///
    /// If there is none, or there are several of the name.
    pub(crate) fn column(&self, wanted: &str) -> Result<usize, Failure> {
        let missing = |why: String| {
            let what = format!("the table has no column `{}`", escape::cut(wanted, 60));
            Err(Failure::new(CODE_TABLE_COLUMNS, what).in_file(&self.label).because(why))
        };
        if let Some(names) = &self.names {
            let mut found = names.iter().enumerate().filter(|(_, name)| *name == wanted).map(|(idx, _)| idx);
            match (found.next(), found.next()) {
                (Some(idx), None) => return Ok(idx),
                (Some(_), Some(_)) => return missing("several columns have that name".to_owned()),
                (None, _) => {}
            }
        }
        match (wanted.parse::<usize>(), &self.names) {
            (Ok(number), _) if (1..=self.n_columns).contains(&number) => Ok(number - 1),
            (_, Some(names)) => missing(format!("it has {}", listed(names))),
            (_, None) if self.n_columns == 0 => missing("it is empty".to_owned()),
            (_, None) => {
                missing(format!("its columns have no names, only numbers from 1 to {}", self.n_columns))
            }
        }
    }

    /// The next record.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, breaks a rule of the format, or the record has more or fewer fields than the first
    /// line.
    pub(crate) fn next(&mut self) -> Result<Option<&Record>, Failure> {
        let (label, expected) = (&self.label, self.n_columns);
        let record = self.csv.next().map_err(|failure| failure.in_file(label))?;
        match record {
            Some(record) if record.len() != expected => {
                let found = human::plural(record.len() as u64, "column");
                let what = format!("this line has {found}, the first one {expected}");
                let failure = Failure::new(CODE_TABLE_COLUMNS, what).in_file(label);
                Err(failure.placed(Place::line(record.line())))
            }
            record => Ok(record),
        }
    }

    /// Appends what `number` reads in these columns of the next record; `false` at the end.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next); what `number` says of a cell.
    pub(crate) fn next_numbers<T>(
        &mut self,
        columns: &[usize],
        number: impl Fn(&str) -> Result<T, String>,
        out: &mut Vec<T>,
    ) -> Result<bool, Failure> {
        // Looked up again after the record is borrowed, so that a failure can name the column.
        let Some(record) = self.next()? else { return Ok(false) };
        let line = record.line();
        for &column in columns {
            match number(record.field(column)) {
                Ok(value) => out.push(value),
                Err(what) => return Err(self.cell_failure(what, line, column)),
            }
        }
        Ok(true)
    }

    /// The failure of a cell.
    pub(crate) fn cell_failure(&self, what: String, line: u64, column: usize) -> Failure {
        let name = self.names.as_ref().and_then(|names| names.get(column)).map(String::as_str);
        let place = Place::line(line).in_column(column as u64 + 1).named(name);
        Failure::new(CODE_TABLE_CELL, what).in_file(&self.label).placed(place)
    }

    /// Whether the next record has arrived already.
    pub(crate) fn has_buffered(&mut self) -> bool {
        self.csv.has_buffered()
    }
}

/// The finite number in a cell, or what is wrong with it.
pub(crate) fn number(cell: &str) -> Result<f32, String> {
    let text = cell.trim();
    if text.is_empty() {
        return Err("the cell is empty".to_owned());
    }
    match text.parse::<f32>() {
        Ok(value) if value.is_finite() => Ok(value),
        // Digits that come out infinite were a number once.
        Ok(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
            Err(format!("`{}` is beyond what a 32-bit float can hold", escape::cut(text, 60)))
        }
        Ok(_) => Err(format!("`{text}` is not a finite number")),
        Err(_) => Err(format!("`{}` is not a number", escape::cut(text, 60))),
    }
}

/// Whether a cell says that there is no value.
pub(crate) fn is_missing(cell: &str) -> bool {
    let cell = cell.trim();
    cell.is_empty() || MISSING.iter().any(|missing| cell.eq_ignore_ascii_case(missing))
}

/// Whether a first line holds names: no number, no sign of a missing value, and not only blanks.
fn looks_like_names(record: &Record) -> bool {
    let is_blank = |cell: &str| cell.trim().is_empty();
    let is_value = |cell: &str| cell.trim().parse::<f32>().is_ok() || (!is_blank(cell) && is_missing(cell));
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

    fn table(text: &'static str, header: Header) -> Result<CsvTable, Failure> {
        let input = Input { label: "t.csv".into(), read: Box::new(text.as_bytes()) };
        CsvTable::open(input, Dialect { delimiter: b',', header })
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
            let mut row = Vec::new();
            assert!(table.next_numbers(&[1, 0], number, &mut row).unwrap());
            assert_eq!(row, [2.0, 1.0]);
            let failure = table.next_numbers(&[1], number, &mut row).unwrap_err();
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
                match table.next() {
                    Ok(record) => assert!(record.is_some(), "{text}"),
                    Err(failure) => break failure,
                }
            };
            assert_eq!(failure.code(), CODE_TABLE_COLUMNS);
        }
    }
}
