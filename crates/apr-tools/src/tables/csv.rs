//! Comma-separated values, strictly, one record at a time.
//!
//! The rules are those of RFC 4180: fields may be quoted, a quote inside is doubled, a quoted field may hold line feeds.
//! Records end in LF or CR LF. Whatever has two readings is refused with its place: a table read wrongly gives predictions that
//! look right.

use std::io::{self, Read};

use crate::error::{CODE_IO, CODE_TABLE_SYNTAX, Failure, Place};

/// Longest record in bytes, so that an endless line is refused rather than collected.
pub(super) const MAX_RECORD: usize = 16 << 20;

/// Bytes asked for at once.
const CHUNK: usize = 64 << 10;

/// What follows the byte order mark that some programs write.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What text in UTF-16 begins with, of either byte order.
pub(super) const UTF_16_MARKS: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// What to do with text of another encoding.
pub(super) const SAVE_AS_UTF_8: &str = "save the table as UTF-8: iconv -f ENCODING -t UTF-8 TABLE > COPY";

/// Reads records from a stream.
#[derive(Debug)]
pub(crate) struct CsvReader<R> {
    input: R,
    delimiter: u8,
    buf: Vec<u8>,
    /// Begin of what has not been parsed yet.
    at: usize,
    /// Bytes from there on that hold no end of a record, so that a long record is looked through once.
    scanned: usize,
    state: State,
    is_at_end: bool,
    begun: bool,
    /// Of the next record.
    line: u64,
    record: Record,
    /// Whether the record is to be given once more.
    repeats: bool,
}

/// Where in a field a byte stands: what tells a line feed that ends a record from one in quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At its begin.
    Begin,
    /// In one without quotes.
    Bare,
    /// Between quotes.
    Quoted,
    /// After a quote that closes the field, or that is the first of two.
    Closed,
}

/// The fields of one record.
#[derive(Debug, Default)]
pub(crate) struct Record {
    text: String,
    /// End of each field within the text.
    ends: Vec<usize>,
    /// Booleans of JSON with the indices of their fields, in order; a string with the same letters is none.
    booleans: Vec<(usize, bool)>,
    line: u64,
}

impl Record {
    /// Line of the file that the record begins in, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The fields with their quotes taken away.
    pub(crate) fn fields(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.ends.len()).map(|idx| self.field(idx))
    }

    /// The field of that index; nothing if there is none.
    pub(crate) fn field(&self, idx: usize) -> &str {
        let begin = idx.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(idx).copied().unwrap_or(begin);
        self.text.get(begin..end).unwrap_or_default()
    }

    /// The field of that index, if it is a boolean of JSON.
    pub(super) fn boolean(&self, idx: usize) -> Option<bool> {
        let place = self.booleans.binary_search_by_key(&idx, |(field, _)| *field).ok()?;
        self.booleans.get(place).map(|(_, value)| *value)
    }

    /// Empties it for the record of that line.
    pub(super) fn clear(&mut self, line: u64) {
        self.text.clear();
        self.ends.clear();
        self.booleans.clear();
        self.line = line;
    }

    /// Adds a field.
    pub(super) fn push(&mut self, field: &str) {
        self.text.push_str(field);
        self.end_field();
    }

    /// Adds a boolean of JSON, whose text is that of JSON.
    pub(super) fn push_boolean(&mut self, value: bool) {
        self.booleans.push((self.ends.len(), value));
        self.push(if value { "true" } else { "false" });
    }

    fn end_field(&mut self) {
        self.ends.push(self.text.len());
    }
}

impl<R: Read> CsvReader<R> {
    pub(crate) fn new(input: R, delimiter: u8) -> Self {
        Self {
            input,
            delimiter,
            buf: Vec::new(),
            at: 0,
            scanned: 0,
            state: State::Begin,
            is_at_end: false,
            begun: false,
            line: 1,
            record: Record::default(),
            repeats: false,
        }
    }

    /// The next record, or `None` at the end.
    ///
    /// # Errors
    ///
    /// If the input cannot be read or breaks a rule of the format.
    pub(crate) fn next(&mut self) -> Result<Option<&Record>, Failure> {
        if core::mem::take(&mut self.repeats) {
            return Ok(Some(&self.record));
        }
        let Some(len) = self.record_len()? else { return Ok(None) };
        let begin = self.at;
        self.at += len;
        (self.scanned, self.state) = (0, State::Begin);
        let line = self.line;
        let raw = self.buf.get(begin..begin + len).unwrap_or_default();
        self.line += raw.iter().filter(|&&byte| byte == b'\n').count() as u64;
        self.record.clear(line);
        parse(raw, self.delimiter, &mut self.record)?;
        Ok(Some(&self.record))
    }

    /// Lets the next call give the same record again.
    pub(crate) fn repeat(&mut self) {
        self.repeats = true;
    }

    /// The record that the next call gives again.
    pub(super) fn repeated(&self) -> Option<&Record> {
        self.repeats.then_some(&self.record)
    }

    /// Whether the next record has arrived already, so that reading it does not wait.
    pub(crate) fn has_buffered(&mut self) -> bool {
        self.scan();
        self.repeats || self.buf.get(self.at + self.scanned) == Some(&b'\n')
    }

    /// Length of the next record with its line end, all of which is in the buffer then.
    fn record_len(&mut self) -> Result<Option<usize>, Failure> {
        loop {
            self.scan();
            let left = self.buf.len() - self.at;
            if self.scanned < left {
                return Ok(Some(self.scanned + 1));
            }
            if self.is_at_end {
                return match (left, self.state) {
                    (0, _) => Ok(None),
                    (_, State::Quoted) => {
                        Err(syntax("a quoted field has no closing quote", Place::line(self.line)))
                    }
                    (left, _) => Ok(Some(left)),
                };
            }
            if left > MAX_RECORD {
                let what = format!("a record is longer than {} MiB", MAX_RECORD >> 20);
                return Err(syntax(&what, Place::line(self.line)));
            }
            self.fill()?;
        }
    }

    /// Moves on to the line feed that ends the record, or to the end of the buffer.
    fn scan(&mut self) {
        let rest = self.buf.get(self.at + self.scanned..).unwrap_or_default();
        let (mut state, delimiter) = (self.state, self.delimiter);
        let end = rest.iter().position(|&byte| {
            if byte == b'\n' && state != State::Quoted {
                return true;
            }
            state = match (state, byte) {
                (State::Begin | State::Closed, b'"') => State::Quoted,
                (State::Quoted, b'"') => State::Closed,
                (State::Quoted, _) => State::Quoted,
                (_, byte) if byte == delimiter => State::Begin,
                _ => State::Bare,
            };
            false
        });
        self.state = state;
        self.scanned += end.unwrap_or(rest.len());
    }

    fn fill(&mut self) -> Result<(), Failure> {
        self.buf.drain(..self.at);
        self.at = 0;
        let len = self.buf.len();
        self.buf.resize(len + CHUNK, 0);
        let got = loop {
            match self.input.read(self.buf.get_mut(len..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.buf.truncate(len + got.as_ref().copied().unwrap_or(0));
        let got = got.map_err(|error| Failure::new(CODE_IO, format!("read the table: {error}")))?;
        self.is_at_end = got == 0;
        // A pipe may hand over the mark in pieces; three bytes of anything else are as good a beginning.
        if !self.begun && (self.is_at_end || self.buf.len() >= BYTE_ORDER_MARK.len()) {
            self.begun = true;
            if self.buf.starts_with(BYTE_ORDER_MARK) {
                self.buf.drain(..BYTE_ORDER_MARK.len());
            }
        }
        Ok(())
    }
}

/// Takes one record apart, its line end included.
fn parse(raw: &[u8], delimiter: u8, record: &mut Record) -> Result<(), Failure> {
    let line = record.line;
    let body = raw.strip_suffix(b"\n").unwrap_or(raw);
    let body = body.strip_suffix(b"\r").unwrap_or(body);
    let text = core::str::from_utf8(body).map_err(|error| {
        let before = body.get(..error.valid_up_to()).unwrap_or_default();
        let line = line + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
        syntax("the text is not UTF-8", Place::line(line)).help(SAVE_AS_UTF_8)
    })?;
    if text.is_empty() {
        return Err(syntax("the line is empty", Place::line(line)));
    }
    let delimiter = char::from(delimiter);
    let mut rest = text;
    loop {
        let column = record.len() as u64 + 1;
        let refused = |what| Err(syntax(what, Place::line(line).in_column(column)));
        rest = match rest.strip_prefix('"') {
            Some(quoted) => {
                let after = unquote(quoted, &mut record.text);
                if !(after.is_empty() || after.starts_with(delimiter)) {
                    return refused("text follows the closing quote of a field");
                }
                after
            }
            None => {
                let end = rest.find(delimiter).unwrap_or(rest.len());
                let (field, after) = rest.split_at(end);
                if field.contains('"') {
                    return refused("a quote stands inside a field that does not begin with one");
                }
                if field.contains('\r') {
                    return refused("a carriage return stands inside a line");
                }
                record.text.push_str(field);
                after
            }
        };
        record.end_field();
        match rest.strip_prefix(delimiter) {
            Some(next) => rest = next,
            None => return Ok(()),
        }
    }
}

/// Appends a field whose opening quote has been taken, and returns what follows its closing one.
fn unquote<'t>(quoted: &'t str, out: &mut String) -> &'t str {
    let mut rest = quoted;
    while let Some((part, after)) = rest.split_once('"') {
        out.push_str(part);
        match after.strip_prefix('"') {
            Some(next) => {
                out.push('"');
                rest = next;
            }
            None => return after,
        }
    }
    // Not reached: a record ends outside of quotes.
    out.push_str(rest);
    ""
}

fn syntax(what: &str, place: Place) -> Failure {
    Failure::new(CODE_TABLE_SYNTAX, what).placed(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands over a few bytes at a time, as pipes may.
    struct Trickle<'t>(&'t [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let len = self.1.min(self.0.len()).min(buf.len());
            let (head, rest) = self.0.split_at(len);
            buf[..len].copy_from_slice(head);
            self.0 = rest;
            Ok(len)
        }
    }

    fn read(text: &[u8], step: usize) -> Result<Vec<(u64, Vec<String>)>, Failure> {
        let mut reader = CsvReader::new(Trickle(text, step), b',');
        let mut records = Vec::new();
        while let Some(record) = reader.next()? {
            records.push((record.line(), record.fields().map(str::to_owned).collect()));
        }
        Ok(records)
    }

    fn both(text: &[u8]) -> Result<Vec<(u64, Vec<String>)>, Failure> {
        let whole = read(text, usize::MAX);
        for step in 1..4 {
            let pieces = read(text, step);
            assert_eq!(whole.as_ref().ok(), pieces.as_ref().ok(), "{:?}", String::from_utf8_lossy(text));
            let text_of = |failure: &Failure| failure.block(crate::terminal::Style::PLAIN);
            assert_eq!(whole.as_ref().err().map(text_of), pieces.as_ref().err().map(text_of));
        }
        whole
    }

    #[test]
    fn records_are_taken_apart() {
        let text = b"\xef\xbb\xbfa,\"b \"\"q\"\"\",c\r\n1,,\"\"\n\"x\ny\",\" , \",3\n4,5,6";
        let records = both(text).unwrap();
        let fields: Vec<Vec<&str>> =
            records.iter().map(|(_, fields)| fields.iter().map(String::as_str).collect()).collect();
        assert_eq!(
            fields,
            [["a", "b \"q\"", "c"], ["1", "", ""], ["x\ny", " , ", "3"], ["4", "5", "6"]].map(Vec::from)
        );
        let lines: Vec<u64> = records.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3, 5]);
        assert!(both(b"").unwrap().is_empty() && both(b"\xef\xbb\xbf").unwrap().is_empty());
        assert_eq!(both(b",").unwrap()[0].1, ["", ""]);
    }

    #[test]
    fn what_has_two_readings_is_refused_with_its_place() {
        for (text, what, place) in [
            (&b"1,2\n3,a\"b\n"[..], "a quote stands inside", "line 2, column 2"),
            (b"\"a\"b,1\n", "text follows the closing quote", "line 1, column 1"),
            (b"1\n\"a,2\n3\n", "no closing quote", "line 2"),
            (b"1\n\n2\n", "the line is empty", "line 2"),
            (b"1\n2\n\r\n", "the line is empty", "line 3"),
            (b"1,\xff\n", "not UTF-8", "line 1"),
            (b"\"\n\n\xff\"\n", "not UTF-8", "line 3"),
            (b"1\r2\n", "carriage return", "line 1, column 1"),
        ] {
            let failure = both(text).unwrap_err();
            let block = failure.block(crate::terminal::Style::PLAIN);
            assert!(block.contains(what) && block.contains(place), "{block}");
            assert_eq!(failure.code(), CODE_TABLE_SYNTAX);
        }
    }

    #[test]
    fn an_endless_record_is_refused() {
        let failure = CsvReader::new(io::repeat(b'1'), b',').next().map(drop).unwrap_err();
        assert!(failure.what().contains("16 MiB"));
    }

    #[test]
    fn what_has_arrived_is_known() {
        let mut reader = CsvReader::new(Trickle(b"1\n2\n34\n", 4), b',');
        assert!(!reader.has_buffered());
        reader.next().unwrap();
        assert!(reader.has_buffered());
        reader.next().unwrap();
        assert!(!reader.has_buffered());
        assert_eq!(reader.next().unwrap().unwrap().field(0), "34");
        assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn other_delimiters_work() {
        let mut reader = CsvReader::new(&b"1,5;2\n"[..], b';');
        assert_eq!(reader.next().unwrap().unwrap().fields().collect::<Vec<_>>(), ["1,5", "2"]);
    }
}
