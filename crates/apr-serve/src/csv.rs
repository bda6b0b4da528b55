//! Parses rows of comma-separated values (RFC 4180).
//!
//! The first line is a header if the media type has `header=present`, or if it has no `header` parameter and no cell of the
//! line is a number.

use alloc::borrow::Cow;
use core::str;

use apr_models::Accepts;

use crate::categories::{self, CategoricalFeatures, Takes};
use crate::features::{Features, Named};
use crate::json::{Number, columns};
use crate::refusal::Refusal;

const HELP: &str = "the body is lines of comma-separated values, with or without a line of names before them";

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// If no cell of it is a number.
    Auto,
    Present,
    Absent,
}

/// Reads the rows of a body one after the other.
#[derive(Debug)]
pub(crate) struct CsvRows<'b> {
    text: &'b str,
    at: usize,
    /// Of the next record, from 1.
    line: usize,
    /// The feature of each column, where a header names them in another order.
    order: Option<Vec<usize>>,
}

impl<'b> CsvRows<'b> {
    /// Creates a reader for a model with these feature names.
    ///
    /// # Errors
    ///
    /// If the body is not UTF-8, its first line has more cells than the model has inputs (where that is known: memory for names is
    /// bounded by it), or its header does not have exactly these names.
    pub(crate) fn new(
        body: &'b [u8],
        header: Header,
        features: Option<&Features>,
        n_columns: Option<usize>,
    ) -> Result<Self, Refusal> {
        let text = str::from_utf8(body).map_err(|error| {
            Refusal::of_body("sv-csv", "the body is not UTF-8", HELP)
                .at(format_args!("byte {}", error.valid_up_to()))
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut rows = Self { text, at: 0, line: 1, order: None };
        if header == Header::Absent || rows.is_at_end() {
            return Ok(rows);
        }
        let most = features.map(|features| features.names().len()).or(n_columns);
        let mut names = Vec::new();
        let (mut n_cells, mut has_value, mut is_empty) = (0, false, true);
        rows.record(|name, _| {
            n_cells += 1;
            // One more is refused by its name.
            if let Some(most) = most.filter(|&most| n_cells > most + 1) {
                return Err(columns(most, n_cells).at("line 1"));
            }
            has_value |= name.trim().parse::<f64>().is_ok();
            is_empty &= name.trim().is_empty();
            // Without features names are not used.
            if features.is_some() {
                names.push(name);
            }
            Ok(())
        })?;
        if header == Header::Auto && (has_value || is_empty) {
            (rows.at, rows.line) = (0, 1);
            return Ok(rows);
        }
        if let Some(features) = features {
            let mut named = Named::default();
            named.begin(features);
            let order = names.iter().map(|name| named.next(features, name.trim()));
            let order =
                order.collect::<Result<Vec<_>, _>>().and_then(|order| named.end(features).map(|()| order));
            rows.order = Some(order.map_err(|refusal| refusal.at("line 1"))?);
        } else if let Some(expected) = n_columns.filter(|&expected| expected != n_cells) {
            return Err(columns(expected, n_cells).at("line 1"));
        }
        Ok(rows)
    }

    /// Appends the values of the next row, in the order of the features; `false` if there is none. A row has `n_columns`, if
    /// that is known.
    ///
    /// # Errors
    ///
    /// If the text is not as it should be, or a cell is no number that the model takes.
    pub(crate) fn next_numbers<T: Number>(
        &mut self,
        takes: Takes<'_>,
        n_columns: Option<usize>,
        out: &mut Vec<T>,
    ) -> Result<bool, Refusal> {
        if self.is_at_end() {
            return Ok(false);
        }
        let (begin, line) = (out.len(), self.line);
        match takes.categories {
            None => self.record(|cell, line| {
                let value = number(cell.trim(), takes.accepts)
                    .map_err(|what| not_taken(what).at(place(line, out.len() - begin)))?;
                out.push(value);
                Ok(())
            })?,
            Some(categories) => self.cells(takes.accepts, categories, out)?,
        }
        let found = out.len() - begin;
        let expected = self.order.as_ref().map(Vec::len).or(n_columns);
        if let Some(expected) = expected
            && found != expected
        {
            return Err(columns(expected, found).at(format_args!("line {line}")));
        }
        if let Some(order) = &self.order
            && let Some(row) = out.get_mut(begin..)
        {
            let found = row.to_vec();
            for (&feature, value) in order.iter().zip(found) {
                if let Some(place) = row.get_mut(feature) {
                    *place = value;
                }
            }
        }
        Ok(true)
    }

    /// Appends the values of the next row in the order of its cells, names of categories among them.
    #[inline(never)]
    fn cells<T: Number>(
        &mut self,
        accepts: Accepts,
        categories: &CategoricalFeatures,
        out: &mut Vec<T>,
    ) -> Result<(), Refusal> {
        let (begin, order) = (out.len(), self.order.take());
        let read = self.record(|cell, line| {
            let column = out.len() - begin;
            let feature = order.as_ref().map_or(Some(column), |order| order.get(column).copied());
            let value = match feature.and_then(|feature| categories.of(feature)) {
                None => number(cell.trim(), accepts).map_err(not_taken),
                Some(categories) => categories::number(categories, Some(&cell), accepts),
            };
            out.push(value.map_err(|refusal| refusal.at(place(line, column)))?);
            Ok(())
        });
        self.order = order;
        read
    }

    /// Whether nothing follows; a line feed at the end of the last line begins no other one.
    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Passes the cells of the next record on, without their quotes, each with the line on which it begins.
    fn record(
        &mut self,
        mut take: impl FnMut(Cow<'b, str>, usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        loop {
            let line = self.line;
            let refused = |what: &str| Refusal::of_body("sv-csv", what, HELP).at(format_args!("line {line}"));
            let rest = self.text.get(self.at..).unwrap_or_default();
            let (cell, len) = match rest.strip_prefix('"') {
                Some(quoted) => {
                    let (cell, len) =
                        unquoted(quoted).ok_or_else(|| refused("a quoted cell has no closing quote"))?;
                    (cell, len + 1)
                }
                None => {
                    let len = rest.find([',', '\n', '"']).unwrap_or(rest.len());
                    let cell = rest.get(..len).unwrap_or_default();
                    let is_last_of_line = rest.as_bytes().get(len) != Some(&b',');
                    (
                        Cow::Borrowed(if is_last_of_line {
                            cell.strip_suffix('\r').unwrap_or(cell)
                        } else {
                            cell
                        }),
                        len,
                    )
                }
            };
            self.line += rest.get(..len).unwrap_or_default().matches('\n').count();
            self.at += len;
            take(cell, line)?;
            let rest = rest.get(len..).unwrap_or_default();
            let end = ["\r\n", "\n", ","].into_iter().find(|end| rest.starts_with(end));
            self.at += end.map_or(0, str::len);
            match end {
                Some(",") => {}
                Some(_) => {
                    self.line += 1;
                    return Ok(());
                }
                None if rest.is_empty() => return Ok(()),
                None => {
                    return Err(refused("a quote stands inside a cell, or something behind a closing quote"));
                }
            }
        }
    }
}

/// The content of a cell whose opening quote has been read, and its length with the closing one. Two quotes inside are one.
fn unquoted(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    let mut end = rest.find('"')?;
    if rest.as_bytes().get(end + 1) != Some(&b'"') {
        return Some((Cow::Borrowed(rest.get(..end)?), end + 1));
    }
    let (mut text, mut begin) = (String::new(), 0);
    loop {
        text.push_str(rest.get(begin..end)?);
        if rest.as_bytes().get(end + 1) != Some(&b'"') {
            return Some((Cow::Owned(text), end + 1));
        }
        text.push('"');
        begin = end + 2;
        end = begin + rest.get(begin..)?.find('"')?;
    }
}

/// A cell that is no number that the model takes.
fn not_taken(what: &str) -> Refusal {
    Refusal::of_body("sv-number", what, "GET /model says what the model takes")
}

/// The place of a cell, whose column is counted from 0.
fn place(line: usize, column: usize) -> String {
    format!("line {line}, column {}", column + 1)
}

/// A number of a cell. A missing value is an empty cell or `nan`.
fn number<T: Number>(text: &str, accepts: Accepts) -> Result<T, &'static str> {
    if text.is_empty() || text.eq_ignore_ascii_case("nan") {
        return match accepts {
            Accepts::Finite => Err("a missing value, and the model takes none"),
            _ => Ok(T::of(f64::NAN)),
        };
    }
    match text.parse::<T>() {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) if text.bytes().any(|byte| byte.is_ascii_digit()) => {
            Err("the number is beyond what the model's floats can hold")
        }
        Ok(value) if accepts == Accepts::Anything => Ok(value),
        Ok(_) => Err("an infinite value, and the model takes none"),
        Err(_) => Err("the cell is not a number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features() -> Features {
        Features::new(vec!["age".to_owned(), "size, m\"".to_owned()]).expect("the names differ")
    }

    fn read(
        text: &str,
        header: Header,
        features: Option<&Features>,
        n_columns: usize,
    ) -> Result<Vec<f32>, Refusal> {
        let mut rows = CsvRows::new(text.as_bytes(), header, features, None)?;
        let mut out = Vec::new();
        let takes = Takes { accepts: Accepts::Missing, categories: None };
        while rows.next_numbers(takes, Some(n_columns), &mut out)? {}
        Ok(out)
    }

    #[test]
    fn rows_come_by_place_and_by_name() {
        let features = features();
        for (text, header, expected) in [
            ("1,2\n3,4\n", Header::Auto, &[1.0, 2.0, 3.0, 4.0][..]),
            ("1,2\r\n3,4", Header::Auto, &[1.0, 2.0, 3.0, 4.0]),
            ("\u{feff} 1 ,\"2\"\n", Header::Auto, &[1.0, 2.0]),
            ("age,\"size, m\"\"\"\n1,2\n", Header::Auto, &[1.0, 2.0]),
            ("\"size, m\"\"\",age\r\n1,2\r\n", Header::Auto, &[2.0, 1.0]),
            ("\"size, m\"\"\",age", Header::Present, &[]),
            ("", Header::Auto, &[]),
            ("", Header::Present, &[]),
        ] {
            assert_eq!(read(text, header, Some(&features), 2), Ok(expected.to_vec()), "{text:?}");
        }
        // A model that knows no names takes the columns in their order.
        assert_eq!(read("b,a\n1,2\n", Header::Auto, None, 2), Ok(vec![1.0, 2.0]));
        assert_eq!(read("7,8\n1,2\n", Header::Present, None, 2), Ok(vec![1.0, 2.0]));
        let too_few =
            CsvRows::new(b"a\n1,2\n", Header::Auto, None, Some(2)).expect_err("a header of one column");
        assert_eq!((too_few.code, too_few.place()), ("sv-columns", Some("line 1")));
        assert!(read("1,\n", Header::Auto, None, 2).expect("an empty cell is a missing value")[1].is_nan());
    }

    #[test]
    fn other_texts_are_refused_with_their_place() {
        let features = features();
        for (text, header, code, place) in [
            ("age\n1\n", Header::Auto, "sv-feature", "line 1"),
            ("age,age\n1,2\n", Header::Auto, "sv-feature", "line 1"),
            ("age,x\n1,2\n", Header::Auto, "sv-feature", "line 1"),
            ("age,x\n1,2\n", Header::Absent, "sv-number", "line 1, column 1"),
            ("1,2\n3\n", Header::Auto, "sv-columns", "line 2"),
            ("1,2\n\n3,4\n", Header::Auto, "sv-columns", "line 2"),
            ("1,2\n3,x\n", Header::Auto, "sv-number", "line 2, column 2"),
            ("1,1e99\n", Header::Auto, "sv-number", "line 1, column 2"),
            ("1,inf\n", Header::Auto, "sv-number", "line 1, column 2"),
            ("1,\"2\n", Header::Auto, "sv-csv", "line 1"),
            ("1,2\"\n", Header::Auto, "sv-csv", "line 1"),
            ("1,\"2\"3\n", Header::Auto, "sv-csv", "line 1"),
            ("1,2\n\"3\n\",4\n5,x", Header::Auto, "sv-number", "line 4, column 2"),
            ("\"1\n\",x\n", Header::Auto, "sv-number", "line 2, column 2"),
            ("\"1\n\",\"2\n", Header::Auto, "sv-csv", "line 2"),
            ("\"1\n\",2,3\n", Header::Auto, "sv-columns", "line 1"),
            ("1\r2,3\n", Header::Auto, "sv-number", "line 1, column 1"),
        ] {
            let refusal = read(text, header, Some(&features), 2).expect_err(text);
            assert_eq!((refusal.code, refusal.place()), (code, Some(place)), "{text:?}");
        }
    }
}
