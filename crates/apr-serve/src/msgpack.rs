//! Reads rows of MessagePack without a tree, in the shapes of JSON bodies.
//!
//! ```text
//! body  := rows | { "rows": rows }
//! rows  := [ row, ... ] | row          for models of numbers, row := [ value, ... ] | { "name": value, ... }
//! value := number                      for features with categories the name of one
//! texts := [ text, ... ] | text        for models of texts
//! ```

use alloc::borrow::Cow;
use core::str;

use apr_models::{Accepts, InputKind};
use model_file::CategoryNumbers;
use msgpack_scan::{Scanner, Token};

use crate::categories::{self, Takes};
use crate::features::{Features, Named, unnamed};
use crate::json::{Number, columns};
use crate::refusal::Refusal;

const HELP: &str = "the body is a list of rows, a map with the one key \"rows\", or one row: a list of numbers, or a map from the names of features to numbers; for models of texts strings";

/// A number that integers are rounded to once.
pub(crate) trait PackedNumber: Number {
    fn of_int(value: i64) -> Self;
    fn of_uint(value: u64) -> Self;
}

macro_rules! packed_numbers {
    ($($float:ty)*) => {$(
        impl PackedNumber for $float {
            fn of_int(value: i64) -> Self {
                value as Self
            }

            fn of_uint(value: u64) -> Self {
                value as Self
            }
        }
    )*};
}

packed_numbers! { f32 f64 }

/// Reads the rows of a body one after the other.
#[derive(Debug)]
pub(crate) struct PackedRows<'b> {
    scanner: Scanner<'b>,
    /// The only row, of which this has been read, and where it begins.
    only: Option<(usize, Token<'b>)>,
    /// Rows of the list that are left.
    n_left: u32,
    n_rows: usize,
    features: Option<&'b Features>,
    named: Named,
}

impl<'b> PackedRows<'b> {
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
        let scanner = Scanner::new(body);
        let mut rows = Self { scanner, only: None, n_left: 0, n_rows: 0, features, named: Named::default() };
        let (mut at, mut token) = rows.token()?;
        let in_map = matches!(token, Token::Map(_));
        if in_map {
            if token == Token::Map(1) {
                (at, token) = rows.token()?;
            }
            if token != Token::Text(b"rows") {
                return Err(rows.refused(at, "expected a map with the one key \"rows\""));
            }
            (at, token) = rows.token()?;
        }
        match token {
            Token::Array(n_rows) => match rows.scanner.clone().token() {
                Ok(Token::Array(_) | Token::Map(_)) => rows.n_left = n_rows,
                Ok(Token::Text(_)) if input_kind == InputKind::Text => rows.n_left = n_rows,
                _ if n_rows == 0 => {}
                _ => rows.only = Some((at, token)),
            },
            Token::Map(_) if in_map => rows.only = Some((at, token)),
            Token::Text(_) => rows.only = Some((at, token)),
            other => return Err(rows.unexpected(at, "rows", &other)),
        }
        if rows.only.is_none() && rows.n_left == 0 {
            rows.end()?;
        }
        Ok(rows)
    }

    /// Appends the values of the next row; `false` if there is none. A row has `n_columns`, if that is known.
    ///
    /// # Errors
    ///
    /// If the body is not as it should be, or a number is none that the model takes.
    pub(crate) fn next_numbers<T: PackedNumber>(
        &mut self,
        takes: Takes<'_>,
        n_columns: Option<usize>,
        out: &mut Vec<T>,
    ) -> Result<bool, Refusal> {
        let Some((at, token)) = self.next()? else { return Ok(false) };
        match token {
            Token::Array(len) => {
                if let Some(expected) = n_columns.filter(|&expected| expected != len as usize) {
                    return Err(columns(expected, len as usize).at(format_args!("row {}", self.n_rows)));
                }
                for column in 0..len as usize {
                    let value = self.value(takes, column)?;
                    out.push(value);
                }
            }
            Token::Map(len) => self.named_numbers(len, takes, out)?,
            other => return Err(self.unexpected(at, "a row, which is a list or a map", &other)),
        }
        self.end_row().map(|()| true)
    }

    /// The next text; `None` if there is none.
    ///
    /// # Errors
    ///
    /// If the body is not as it should be.
    pub(crate) fn next_text(&mut self) -> Result<Option<&'b str>, Refusal> {
        let Some((at, token)) = self.next()? else { return Ok(None) };
        let Token::Text(text) = token else { return Err(self.unexpected(at, "a string", &token)) };
        let text = str::from_utf8(text).map_err(|_| self.refused(at, "a string is not UTF-8"))?;
        self.end_row().map(|()| Some(text))
    }

    /// What the next row begins with, and where.
    fn next(&mut self) -> Result<Option<(usize, Token<'b>)>, Refusal> {
        if let Some(only) = self.only.take() {
            return Ok(Some(only));
        }
        let Some(n_left) = self.n_left.checked_sub(1) else { return Ok(None) };
        self.n_left = n_left;
        self.token().map(Some)
    }

    fn end_row(&mut self) -> Result<(), Refusal> {
        self.n_rows += 1;
        if self.n_left == 0 { self.end() } else { Ok(()) }
    }

    /// Checks that nothing follows.
    fn end(&self) -> Result<(), Refusal> {
        match self.scanner.is_at_end() {
            true => Ok(()),
            false => Err(self.refused(self.scanner.offset(), "expected the end of the body")),
        }
    }

    /// Reads so many values, each after the name of its feature, in the order of the features.
    fn named_numbers<T: PackedNumber>(
        &mut self,
        len: u32,
        takes: Takes<'_>,
        out: &mut Vec<T>,
    ) -> Result<(), Refusal> {
        let row = format!("row {}", self.n_rows);
        let Some(features) = self.features else { return Err(unnamed().at(row)) };
        let begin = out.len();
        out.resize(begin + features.names().len(), T::of(f64::NAN));
        self.named.begin(features);
        for _ in 0..len {
            let (at, name) = match self.token()? {
                (at, Token::Text(name)) => {
                    (at, str::from_utf8(name).map_err(|_| self.refused(at, "a name is not UTF-8"))?)
                }
                (at, other) => return Err(self.unexpected(at, "the name of a feature", &other)),
            };
            let refused = |refusal: Refusal| refusal.at(format_args!("byte {at}, {row}"));
            let feature = self.named.next(features, name).map_err(refused)?;
            let value = self.value(takes, feature)?;
            if let Some(place) = out.get_mut(begin + feature) {
                *place = value;
            }
        }
        self.named.end(features).map_err(|refusal| refusal.at(row))
    }

    fn value<T: PackedNumber>(&mut self, takes: Takes<'_>, column: usize) -> Result<T, Refusal> {
        match takes.categories.and_then(|categories| categories.of(column)) {
            None => self.number(takes.accepts, column),
            Some(categories) => self.category(categories, takes.accepts, column),
        }
    }

    fn number<T: PackedNumber>(&mut self, accepts: Accepts, column: usize) -> Result<T, Refusal> {
        let (at, token) = self.token()?;
        let value = match token {
            Token::Int(value) => return Ok(T::of_int(value)),
            Token::UInt(value) => return Ok(T::of_uint(value)),
            Token::F32(value) => f64::from(value),
            Token::F64(value) => value,
            Token::Nil => f64::NAN,
            other => return Err(self.unexpected(at, "a number", &other)),
        };
        let number = T::of(value);
        let what = match accepts {
            _ if value.is_finite() && !number.is_finite() => {
                "the number is beyond what the model's floats can hold"
            }
            Accepts::Finite if value.is_nan() => "a missing value, and the model takes none",
            Accepts::Finite | Accepts::Missing if value.is_infinite() => {
                "an infinite value, and the model takes none"
            }
            _ => return Ok(number),
        };
        let place = format_args!("byte {at}, row {}, column {column}", self.n_rows).to_string();
        Err(Refusal::of_body("sv-number", what, "GET /model says what the model takes").at(place))
    }

    /// The number of the category that comes next: by its name, or by the text that a number or a truth value is.
    fn category<T: PackedNumber>(
        &mut self,
        categories: &CategoryNumbers,
        accepts: Accepts,
        column: usize,
    ) -> Result<T, Refusal> {
        let (at, token) = self.token()?;
        let name: Option<Cow<'b, str>> = match token {
            Token::Text(text) => {
                Some(str::from_utf8(text).map_err(|_| self.refused(at, "a name is not UTF-8"))?.into())
            }
            Token::Int(value) => Some(value.to_string().into()),
            Token::UInt(value) => Some(value.to_string().into()),
            Token::Bool(value) => Some(value.to_string().into()),
            Token::F32(value) => (!value.is_nan()).then(|| value.to_string().into()),
            Token::F64(value) => (!value.is_nan()).then(|| value.to_string().into()),
            Token::Nil => None,
            other => return Err(self.unexpected(at, "the name of a category", &other)),
        };
        let refused =
            |refusal: Refusal| refusal.at(format_args!("byte {at}, row {}, column {column}", self.n_rows));
        categories::number(categories, name.as_deref(), accepts).map_err(refused)
    }

    /// The next token, and where it begins.
    fn token(&mut self) -> Result<(usize, Token<'b>), Refusal> {
        let at = self.scanner.offset();
        let token = self.scanner.token().map_err(|error| self.refused(error.offset(), error.kind()))?;
        Ok((at, token))
    }

    #[cold]
    fn unexpected(&self, at: usize, expected: &str, found: &Token<'_>) -> Refusal {
        self.refused(at, format_args!("expected {expected}, found {}", found.type_name()))
    }

    #[cold]
    fn refused(&self, at: usize, what: impl core::fmt::Display) -> Refusal {
        Refusal::of_body("sv-msgpack", what, HELP).at(format_args!("byte {at}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(body: &[u8], accepts: Accepts) -> Result<Vec<f32>, Refusal> {
        let features = Features::new(vec!["age".to_owned(), "size".to_owned()]).expect("the names differ");
        let mut rows = PackedRows::new(body, InputKind::F32, Some(&features))?;
        let mut out = Vec::new();
        while rows.next_numbers(Takes { accepts, categories: None }, Some(2), &mut out)? {}
        Ok(out)
    }

    #[test]
    fn rows_have_the_shapes_of_json() {
        for (body, expected) in [
            (&b"\x92\x92\x01\x02\x92\xca\x3f\x80\0\0\xff"[..], &[1.0, 2.0, 1.0, -1.0][..]),
            (b"\x92\x01\xcb\x3f\xe0\0\0\0\0\0\0", &[1.0, 0.5]),
            (b"\x81\xa4rows\x91\x82\xa4size\x02\xa3age\x01", &[1.0, 2.0]),
            (b"\x81\xa4rows\x82\xa4size\x02\xa3age\x01", &[1.0, 2.0]),
            (b"\x90", &[]),
            (b"\x81\xa4rows\x90", &[]),
            // Rounded once.
            (
                b"\x92\xcf\xff\xff\xff\xff\xff\xff\xff\xff\xd3\x80\0\0\0\0\0\0\x01",
                &[u64::MAX as f32, i64::MIN as f32],
            ),
        ] {
            assert_eq!(numbers(body, Accepts::Finite), Ok(expected.to_vec()), "{body:x?}");
        }
        let found = numbers(b"\x92\xc0\xca\x7f\xc0\0\0", Accepts::Missing).expect("missing values");
        assert!(found.iter().all(|value| value.is_nan()));
        let mut texts = PackedRows::new(b"\x92\xa1a\xa0", InputKind::Text, None).expect("texts");
        let mut next = || texts.next_text().expect("a text, or the end");
        assert_eq!([next(), next(), next()], [Some("a"), Some(""), None]);
    }

    #[test]
    fn other_bodies_are_refused_with_their_place() {
        for (body, code, place) in [
            (&b""[..], "sv-msgpack", "byte 0"),
            (b"\xc1", "sv-msgpack", "byte 0"),
            (b"\x01", "sv-msgpack", "byte 0"),
            (b"\x92\x92\x01", "sv-msgpack", "byte 1"),
            (b"\x91\xdd\xff\xff\xff\xff", "sv-columns", "row 0"),
            (b"\x91\x91\xdd\xff\xff\xff\xff", "sv-columns", "row 0"),
            (b"\xdf\xff\xff\xff\xff", "sv-msgpack", "byte 0"),
            (b"\x80", "sv-msgpack", "byte 0"),
            (b"\x82\xa4rows\x90\xa1x\x01", "sv-msgpack", "byte 0"),
            (b"\x81\xa4rows\x01", "sv-msgpack", "byte 6"),
            (b"\x81\xa4rows\xa1a", "sv-msgpack", "byte 6"),
            (b"\xa1a", "sv-msgpack", "byte 0"),
            (b"\x81\xa4cows\x90", "sv-msgpack", "byte 1"),
            (b"\x92\x92\x01\x02\x93\x01\x02\x03", "sv-columns", "row 1"),
            (b"\x91\x92\x01\xc3", "sv-msgpack", "byte 3"),
            (b"\x91\x92\x01\xa11", "sv-msgpack", "byte 3"),
            (b"\x91\x92\x01\x91\x01", "sv-msgpack", "byte 3"),
            (b"\x91\x92\x01\xc4\x01a", "sv-msgpack", "byte 3"),
            (b"\x91\x92\x01\xd4\x01a", "sv-msgpack", "byte 3"),
            (b"\x91\x92\x01\xc0", "sv-number", "byte 3, row 0, column 1"),
            (b"\x92\x01\xca\x7f\x80\0\0", "sv-number", "byte 2, row 0, column 1"),
            (b"\x92\x01\xcb\x7f\xe0\0\0\0\0\0\0", "sv-number", "byte 2, row 0, column 1"),
            (b"\x91\x81\xa3age\x01", "sv-feature", "row 0"),
            (b"\x91\x82\xa3age\x01\xa3age\x01", "sv-feature", "byte 7, row 0"),
            (b"\x91\x82\x01\x01\xa3age\x01", "sv-msgpack", "byte 2"),
            (b"\x91\x92\x01\x02\x03", "sv-msgpack", "byte 4"),
            (b"\x90\x90", "sv-msgpack", "byte 1"),
            (b"\x92\x92\x01\x02\x05", "sv-msgpack", "byte 4"),
        ] {
            let refusal = numbers(body, Accepts::Finite).expect_err("not as it should be");
            assert_eq!((refusal.code, refusal.place()), (code, Some(place)), "{body:x?}");
        }
        for (body, place) in [
            (&b"\x92\x01\x02"[..], "byte 0"),
            (b"\x81\xa4rows\x92\x01\x02", "byte 6"),
            (b"\xa1\xff", "byte 0"),
        ] {
            let mut texts = PackedRows::new(body, InputKind::Text, None).expect("one row");
            let refusal = texts.next_text().expect_err("no text");
            assert_eq!((refusal.code, refusal.place()), ("sv-msgpack", Some(place)), "{body:x?}");
        }
        let deep = [0x91; 60_000];
        assert_eq!(numbers(&deep, Accepts::Finite).map_err(|refusal| refusal.code), Err("sv-columns"));
    }
}
