//! A list of a report that is longer than memory should be.

use std::fs::File;
use std::io::{self, Write};

use durable_file::Scratch;
use serde::Serialize;

use super::layout::Indented;
use crate::error::Failure;

/// Bytes of text in memory; beyond them it goes to a temporary file.
const IN_MEMORY: usize = 1 << 20;

/// A list whose elements are written as they are made, before the report that contains it: fields before the list may depend on
/// all of them, and a report is printed whole or not at all.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// What is not in the file.
    text: Vec<u8>,
    file: Option<Scratch>,
    len: u64,
    is_in_lines: bool,
}

impl List {
    /// How many elements there are.
    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    /// Appends an element. Lists and objects have lines of their own; all elements are such, or none is.
    ///
    /// # Errors
    ///
    /// If the temporary file cannot be written.
    pub(crate) fn push(&mut self, element: &impl Serialize, is_nested: bool) -> Result<(), Failure> {
        let folder = std::env::temp_dir();
        let failed = |error: io::Error| Failure::io("write a temporary file", &folder, &error);
        self.is_in_lines = is_nested;
        self.text.extend_from_slice(match (is_nested, self.len) {
            (true, 0) => b"\n    ",
            (true, _) => b",\n    ",
            (false, 0) => b"",
            (false, _) => b", ",
        });
        self.len += 1;
        let layout = if is_nested { Indented::in_list_of_report() } else { Indented::default() };
        let mut json = serde_json::Serializer::with_formatter(&mut self.text, layout);
        element.serialize(&mut json).map_err(|error| failed(error.into()))?;
        if self.text.len() >= IN_MEMORY {
            let file = match self.file.take() {
                Some(file) => file,
                None => Scratch::create(&folder, "apr-report")?,
            };
            self.file.insert(file).write_all(&self.text).map_err(failed)?;
            self.text.clear();
        }
        Ok(())
    }

    /// Writes the list with its brackets.
    fn write_to(&self, out: &mut (impl Write + ?Sized)) -> io::Result<()> {
        out.write_all(b"[")?;
        if let Some(file) = &self.file {
            io::copy(&mut File::open(file.path())?, out)?;
        }
        out.write_all(&self.text)?;
        out.write_all(if self.is_in_lines { b"\n  ]" } else { b"]" })
    }
}

/// Writes a report whose field `name`, an empty list, stands for `list`.
///
/// # Errors
///
/// If `out` refuses the bytes.
pub(crate) fn write_with_list<R: super::Report>(
    out: &mut (impl Write + ?Sized),
    report: &R,
    name: &str,
    list: &List,
) -> io::Result<()> {
    let mut text = Vec::new();
    super::write(&mut text, report)?;
    let text = String::from_utf8(text).map_err(io::Error::other)?;
    // Strings have no line feed: this is where the field is.
    let field = format!("\n  \"{name}\": ");
    let (before, after) = text.split_once(&format!("{field}[]")).expect("the report has the field");
    out.write_all(before.as_bytes())?;
    out.write_all(field.as_bytes())?;
    list.write_to(out)?;
    out.write_all(after.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Fields, Report};

    #[derive(Serialize)]
    struct Rows {
        n: u64,
        rows: [u8; 0],
        end: bool,
    }

    impl Report for Rows {
        const SCHEMA: &'static str = "rows/1";
    }

    fn written(list: &List) -> String {
        let mut out = Vec::new();
        write_with_list(&mut out, &Rows { n: list.len(), rows: [], end: true }, "rows", list).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn report(n: u64, rows: &str) -> String {
        format!("{{\n  \"schema\": \"rows/1\",\n  \"n\": {n},\n  \"rows\": {rows},\n  \"end\": true\n}}\n")
    }

    #[test]
    fn elements_are_laid_out_as_in_the_report() {
        assert_eq!(written(&List::default()), report(0, "[]"));
        let mut list = List::default();
        ["a", "b, c"].iter().for_each(|text| list.push(text, false).unwrap());
        assert_eq!(written(&list), report(2, r#"["a", "b, c"]"#));
        let mut list = List::default();
        for number in [1.5, 2.0] {
            list.push(&Fields(vec![("x", vec![number, number])]), true).unwrap();
        }
        let row = |number| format!("\n    {{\n      \"x\": [{number}, {number}]\n    }}");
        assert_eq!(written(&list), report(2, &format!("[{},{}\n  ]", row("1.5"), row("2.0"))));
    }

    #[test]
    fn a_long_list_is_written_in_its_order() {
        let mut list = List::default();
        let numbers: Vec<u32> = (0..400_000).collect();
        numbers.iter().for_each(|number| list.push(number, false).unwrap());
        assert!(list.file.is_some() && list.text.len() < IN_MEMORY);
        let found: serde_json::Value = serde_json::from_str(&written(&list)).unwrap();
        assert_eq!(found["rows"], serde_json::json!(numbers));
    }
}
