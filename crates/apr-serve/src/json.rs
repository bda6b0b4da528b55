//! Parses rows of JSON without a tree: each number is parsed directly into the row.
//!
//! ```text
//! body  := rows | { "rows": rows }
//! rows  := [ row, ... ] | row          for models of numbers, row := [ value, ... ] | { "name": value, ... }
//! value := number                      for features with categories the name of one
//! texts := [ text, ... ] | text        for models of texts
//! ```

use alloc::borrow::Cow;
use core::str::{self, FromStr};

use apr_models::{Accepts, InputKind};
use json_scan::{Check, ErrorKind, Scanner};
use model_file::CategoryNumbers;

use crate::categories::{self, Takes};
use crate::features::{Features, Named, unnamed};
use crate::refusal::Refusal;

const HELP: &str = "the body is {\"rows\": [[1, 2], [3, 4]]}, [[1, 2], [3, 4]], or one row [1, 2], where a row may name its features: {\"age\": 1, \"size\": 2}; for models of texts [\"a text\"]";

/// A number that a row is made of; parsing gives the nearest one, infinite if there is none.
pub(crate) trait Number: Copy + FromStr + From<f32> {
    fn of(value: f64) -> Self;
    fn is_finite(self) -> bool;
}

macro_rules! numbers {
    ($($float:ty)*) => {$(
        impl Number for $float {
            fn of(value: f64) -> Self {
                value as Self
            }

            fn is_finite(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}

numbers! { f32 f64 }

/// Reads the rows of a body one after the other.
#[derive(Debug)]
pub(crate) struct Rows<'b> {
    scanner: Scanner<'b>,
    /// All of the body, for messages.
    text: &'b str,
    /// Whether the rows are the value of a field.
    in_object: bool,
    next: Next,
    n_rows: usize,
    features: Option<&'b Features>,
    named: Named,
}

/// The state of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// The first element of the list, or its end.
    First,
    /// The only row, whose bracket has been read.
    OnlyRow,
    /// The only row, which names its features and whose brace has been read.
    OnlyNamed,
    /// The only text.
    OnlyText,
    /// A comma, or the end of the list.
    More,
    /// Nothing.
    End,
}

impl<'b> Rows<'b> {
    /// Begins to read, for a model of such samples.
    ///
    /// # Errors
    ///
    /// If the body does not begin as one.
    pub(crate) fn new(
        body: &'b [u8],
        input_kind: InputKind,
        features: Option<&'b Features>,
    ) -> Result<Self, Refusal> {
        let text = str::from_utf8(body).map_err(|error| {
            let at = error.valid_up_to();
            Refusal::of_body("sv-json", "the body is not UTF-8", HELP).at(format_args!("byte {at}"))
        })?;
        let mut rows = Self {
            scanner: Scanner::new(text, Check::Values),
            text,
            in_object: false,
            next: Next::First,
            n_rows: 0,
            features,
            named: Named::default(),
        };
        if rows.peek() == Some(b'{') {
            rows.scanner.advance(1);
            rows.in_object = true;
            rows.scanner.skip_white_space();
            let key_at = rows.scanner.pos();
            if rows.string()? != "rows" {
                return Err(rows.unexpected_at(key_at, "the field \"rows\""));
            }
            rows.expect(b':', "`:`")?;
        }
        match rows.peek() {
            Some(b'[') => {
                rows.scanner.advance(1);
                rows.next = match rows.peek() {
                    Some(b'[' | b']' | b'{') => Next::First,
                    // A number that JSON lacks is a string, too.
                    Some(b'"') if input_kind == InputKind::Text => Next::First,
                    _ => Next::OnlyRow,
                };
            }
            Some(b'{') if rows.in_object => {
                rows.scanner.advance(1);
                rows.next = Next::OnlyNamed;
            }
            Some(b'"') => rows.next = Next::OnlyText,
            _ => return Err(rows.unexpected("`[`")),
        }
        Ok(rows)
    }

    /// Appends the values of the next row; `false` if there is none. A row has `n_columns`, if that is known.
    ///
    /// # Errors
    ///
    /// If the text is not as it should be, or a number is none that the model takes.
    pub(crate) fn next_numbers<T: Number>(
        &mut self,
        takes: Takes<'_>,
        n_columns: Option<usize>,
        out: &mut Vec<T>,
    ) -> Result<bool, Refusal> {
        let is_only = matches!(self.next, Next::OnlyRow | Next::OnlyNamed);
        let mut is_named = self.next == Next::OnlyNamed;
        if !is_only {
            if !self.goes_on()? {
                return Ok(false);
            }
            is_named = match self.peek() {
                Some(b'[') => false,
                Some(b'{') => true,
                _ => return Err(self.unexpected("a row, which begins with `[` or `{`")),
            };
            self.scanner.advance(1);
        }
        let len_before = out.len();
        match takes.categories {
            None => self.row(is_named, Takes { categories: None, ..takes }, out)?,
            Some(_) => self.row_of_categories(is_named, takes, out)?,
        }
        let found = out.len() - len_before;
        if let Some(expected) = n_columns
            && found != expected
        {
            return Err(columns(expected, found).at(format_args!("row {}", self.n_rows)));
        }
        self.n_rows += 1;
        if is_only {
            self.end()?;
        }
        Ok(true)
    }

    /// The next text; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the text is not as it should be.
    pub(crate) fn next_text(&mut self) -> Result<Option<Cow<'b, str>>, Refusal> {
        let is_only = self.next == Next::OnlyText;
        if !is_only && !self.goes_on()? {
            return Ok(None);
        }
        self.scanner.skip_white_space();
        let text = self.string()?;
        self.n_rows += 1;
        if is_only {
            self.end()?;
        }
        Ok(Some(text))
    }

    /// Whether the list has another element; at its end, the rest of the input is read too.
    fn goes_on(&mut self) -> Result<bool, Refusal> {
        let found = self.peek();
        match (self.next, found) {
            (Next::End, _) => return Ok(false),
            (Next::First | Next::More, Some(b']')) => {
                self.scanner.advance(1);
                self.end()?;
                return Ok(false);
            }
            (Next::First, _) => {}
            (Next::More, Some(b',')) => self.scanner.advance(1),
            (Next::More, _) => return Err(self.unexpected("`,` or `]`")),
            // The model takes rows of the other kind.
            (Next::OnlyRow | Next::OnlyNamed, _) => return Err(self.unexpected("a text, in double quotes")),
            (Next::OnlyText, _) => return Err(self.unexpected("a row, which begins with `[`")),
        }
        self.next = Next::More;
        Ok(true)
    }

    /// Reads what follows the rows.
    fn end(&mut self) -> Result<(), Refusal> {
        if self.in_object {
            self.expect(b'}', "`}`: there is no field but \"rows\"")?;
        }
        self.next = Next::End;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the body")),
        }
    }

    /// Reads the values of a row. Inlined where a model has no categories, so that none are looked for.
    #[inline(always)]
    fn row<T: Number>(&mut self, is_named: bool, takes: Takes<'_>, out: &mut Vec<T>) -> Result<(), Refusal> {
        if is_named { self.named_numbers(takes, out) } else { self.numbers(takes, out) }
    }

    /// The same where some values are names of categories.
    #[inline(never)]
    fn row_of_categories<T: Number>(
        &mut self,
        is_named: bool,
        takes: Takes<'_>,
        out: &mut Vec<T>,
    ) -> Result<(), Refusal> {
        self.row(is_named, takes, out)
    }

    /// Reads the values up to the closing bracket.
    #[inline(always)]
    fn numbers<T: Number>(&mut self, takes: Takes<'_>, out: &mut Vec<T>) -> Result<(), Refusal> {
        let len_before = out.len();
        if self.peek() == Some(b']') {
            self.scanner.advance(1);
            return Ok(());
        }
        loop {
            let value = self.value(takes, out.len() - len_before)?;
            out.push(value);
            match self.peek() {
                Some(b',') => self.scanner.advance(1),
                Some(b']') => {
                    self.scanner.advance(1);
                    return Ok(());
                }
                _ => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    /// Reads the values up to the closing brace, each after the name of its feature, in the order of the features.
    #[inline(always)]
    fn named_numbers<T: Number>(&mut self, takes: Takes<'_>, out: &mut Vec<T>) -> Result<(), Refusal> {
        let n_rows = self.n_rows;
        let row = || format!("row {n_rows}");
        let Some(features) = self.features else { return Err(unnamed().at(row())) };
        let begin = out.len();
        out.resize(begin + features.names().len(), T::of(f64::NAN));
        self.named.begin(features);
        let mut is_first = true;
        loop {
            match self.peek() {
                Some(b'}') if is_first => {
                    self.scanner.advance(1);
                    break;
                }
                Some(b'"') => {}
                _ => return Err(self.unexpected("the name of a feature, in double quotes")),
            }
            is_first = false;
            let at = self.scanner.pos();
            let name = self.string()?;
            let refused = |refusal: Refusal| refusal.at(format_args!("byte {at}, row {n_rows}"));
            let feature = self.named.next(features, &name).map_err(refused)?;
            self.expect(b':', "`:`")?;
            let value = self.value(takes, feature)?;
            if let Some(place) = out.get_mut(begin + feature) {
                *place = value;
            }
            match self.peek() {
                Some(b',') => self.scanner.advance(1),
                Some(b'}') => {
                    self.scanner.advance(1);
                    break;
                }
                _ => return Err(self.unexpected("`,` or `}`")),
            }
        }
        self.named.end(features).map_err(|refusal| refusal.at(row()))
    }

    /// The next value of a row. Inlined into the loop over a row, which most of a request's time goes to.
    #[inline(always)]
    fn value<T: Number>(&mut self, takes: Takes<'_>, column: usize) -> Result<T, Refusal> {
        match takes.categories.and_then(|categories| categories.of(column)) {
            None => self.number_or_word(takes.accepts, column),
            Some(categories) => self.category(categories, takes.accepts, column),
        }
    }

    /// The next number, or its replacement.
    #[inline(always)]
    fn number_or_word<T: Number>(&mut self, accepts: Accepts, column: usize) -> Result<T, Refusal> {
        let is_number = matches!(self.peek(), Some(b'-' | b'0'..=b'9'));
        let at = self.scanner.pos();
        let refused = |rows: &Self, what: &str| {
            let place = format_args!("byte {at}, row {}, column {column}", rows.n_rows).to_string();
            Refusal::of_body("sv-number", what, "GET /model says what the model takes").at(place)
        };
        if is_number {
            let value = self.number()?.parse().ok().filter(|value: &T| value.is_finite());
            return value
                .ok_or_else(|| refused(self, "the number is beyond what the model's floats can hold"));
        }
        let Some(value) = self.word() else { return Err(self.unexpected("a number")) };
        match accepts {
            Accepts::Anything => {}
            Accepts::Missing if value.is_nan() => {}
            _ if value.is_nan() => return Err(refused(self, "a missing value, and the model takes none")),
            _ => return Err(refused(self, "an infinite value, and the model takes none")),
        }
        Ok(T::of(value))
    }

    /// The number of the category that comes next: by its name, which may be a number or a truth value as it is written.
    fn category<T: Number>(
        &mut self,
        categories: &CategoryNumbers,
        accepts: Accepts,
        column: usize,
    ) -> Result<T, Refusal> {
        let next = self.peek();
        let at = self.scanner.pos();
        let name = match next {
            Some(b'"') => Some(self.string()?),
            Some(b'-' | b'0'..=b'9') => Some(self.number()?.into()),
            _ if self.scanner.strip("null") => None,
            _ => match ["true", "false"].into_iter().find(|word| self.scanner.strip(word)) {
                Some(word) => Some(word.into()),
                None => return Err(self.unexpected("the name of a category")),
            },
        };
        let refused =
            |refusal: Refusal| refusal.at(format_args!("byte {at}, row {}, column {column}", self.n_rows));
        categories::number(categories, name.as_deref(), accepts).map_err(refused)
    }

    /// `null`, or one of the strings that represent the values which JSON numbers do not have.
    fn word(&mut self) -> Option<f64> {
        const WORDS: [(&str, f64); 4] = [
            ("null", f64::NAN),
            ("\"nan\"", f64::NAN),
            ("\"inf\"", f64::INFINITY),
            ("\"-inf\"", f64::NEG_INFINITY),
        ];
        WORDS.iter().find(|(word, _)| self.scanner.strip(word)).map(|(_, value)| *value)
    }

    /// The characters of a number.
    #[inline(always)]
    fn number(&mut self) -> Result<&'b str, Refusal> {
        self.scanner.number().map_err(|error| self.invalid(error))
    }

    /// A string, whose opening quote comes next.
    fn string(&mut self) -> Result<Cow<'b, str>, Refusal> {
        if self.scanner.peek() != Some(b'"') {
            return Err(self.unexpected("a text, in double quotes"));
        }
        match self.scanner.bare_string() {
            Ok(string) => Ok(string.unescape()),
            Err(error) => Err(self.invalid(error)),
        }
    }

    /// The next byte that is not white space, which stays.
    fn peek(&mut self) -> Option<u8> {
        self.scanner.skip_white_space();
        self.scanner.peek()
    }

    fn expect(&mut self, byte: u8, called: &str) -> Result<(), Refusal> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(called));
        }
        self.scanner.advance(1);
        Ok(())
    }

    /// An error of the scanner.
    #[cold]
    fn invalid(&self, error: json_scan::Error) -> Refusal {
        let expected = match error.kind() {
            ErrorKind::UnexpectedByte { expected, .. } | ErrorKind::UnexpectedEnd { expected } => expected,
            ErrorKind::ControlCharacter { .. } => "no control character; write it as \\n or \\u000a",
            ErrorKind::InvalidEscape => "an escape sequence",
            ErrorKind::LoneSurrogate => "both halves of a surrogate pair",
            _ => "a digit; numbers have no leading zeros",
        };
        self.unexpected_at(error.offset(), expected)
    }

    fn unexpected(&self, expected: &str) -> Refusal {
        self.unexpected_at(self.scanner.pos(), expected)
    }

    #[cold]
    fn unexpected_at(&self, at: usize, expected: &str) -> Refusal {
        let found = match self.text.as_bytes().get(at) {
            None => "the end of the body".to_owned(),
            Some(&byte @ 0x21..0x7f) => format!("`{}`", char::from(byte)),
            Some(byte) => format!("the byte {byte:#04x}"),
        };
        let what = format_args!("expected {expected}, found {found}").to_string();
        Refusal::of_body("sv-json", what, HELP).at(format_args!("byte {at}"))
    }
}

/// A row of another length than the model takes.
pub(crate) fn columns(expected: usize, found: usize) -> Refusal {
    let what = format_args!("expected {expected} values in a row, found {found}").to_string();
    Refusal::of_body("sv-columns", what, "GET /model says how many inputs the model takes")
}
