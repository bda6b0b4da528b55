//! Index expressions in Python's notation, and the result of each reader.

use core::fmt;
use core::num::{NonZeroU64, NonZeroUsize};
use core::ops::Bound;

use safetensors::slice::TensorIndexer;
use st_core::Index;

/// One item between the brackets of `tensor[..]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// `3` or `-1`.
    Int(i64),
    /// `start:stop:step`, each of them optional.
    Range {
        /// First index.
        start: Option<i64>,
        /// One past the last index.
        stop: Option<i64>,
        /// Distance between indices.
        step: Option<i64>,
    },
    /// `...`
    Ellipsis,
    /// `[0, 1]`
    List(Vec<i64>),
}

/// Why an expression cannot become an index of the named reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not an index expression.
    Syntax {
        /// Byte of the expression where reading stopped.
        at: usize,
    },
    /// A step below one.
    Step(i64),
    /// A list of indices that is not empty.
    IndexList,
    /// A negative bound of a range, where only unsigned ones exist.
    NegativeBound(i64),
    /// A negative index that reaches below the first element.
    BelowZero(i64),
    /// More than one ellipsis.
    SecondEllipsis,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { at } => write!(f, "not an index expression, at byte {at}"),
            Self::Step(step) => write!(f, "step {step} is not positive"),
            Self::IndexList => write!(f, "lists of indices are not supported"),
            Self::NegativeBound(bound) => write!(f, "negative bound {bound}"),
            Self::BelowZero(index) => write!(f, "index {index} reaches below the first element"),
            Self::SecondEllipsis => write!(f, "more than one ellipsis"),
        }
    }
}

impl core::error::Error for Refusal {}

/// Reads an expression with its brackets, such as `[3:5, -1]`.
///
/// # Errors
///
/// [`Refusal::Syntax`].
///
/// # Examples
///
/// ```
/// use conformance::index::{Item, parse};
///
/// assert_eq!(parse("[..., -1]"), Ok(vec![Item::Ellipsis, Item::Int(-1)]));
/// assert_eq!(parse("[::2]"), Ok(vec![Item::Range { start: None, stop: None, step: Some(2) }]));
/// assert!(parse("[1").is_err());
/// ```
pub fn parse(expression: &str) -> Result<Vec<Item>, Refusal> {
    let mut reader = Reader { text: expression.as_bytes(), at: 0 };
    reader.expect(b"[")?;
    let items = if reader.take(b"()") { Vec::new() } else { reader.items()? };
    reader.expect(b"]")?;
    if reader.at != reader.text.len() {
        return Err(reader.refusal());
    }
    Ok(items)
}

/// The items as indices of [`st_core`]. An empty list selects nothing, as `0:0` does.
///
/// # Errors
///
/// [`Refusal::Step`] and [`Refusal::IndexList`]: neither can be written as an [`Index`].
pub fn to_ours(items: &[Item]) -> Result<Vec<Index>, Refusal> {
    items
        .iter()
        .map(|item| match item {
            Item::Int(index) => Ok(Index::Select(*index)),
            Item::Ellipsis => Ok(Index::Ellipsis),
            Item::Range { start, stop, step } => {
                Ok(Index::Range { start: *start, stop: *stop, step: positive(step.unwrap_or(1))? })
            }
            Item::List(list) if list.is_empty() => {
                Ok(Index::Range { start: Some(0), stop: Some(0), step: NonZeroU64::MIN })
            }
            Item::List(_) => Err(Refusal::IndexList),
        })
        .collect()
}

/// The items as indices of the `safetensors` crate for a tensor of this shape. The crate knows neither
/// negative indices nor the ellipsis; they are resolved as its Python binding does.
///
/// # Errors
///
/// Every kind but [`Refusal::Syntax`].
pub fn to_official(items: &[Item], shape: &[usize]) -> Result<Vec<TensorIndexer>, Refusal> {
    if items.iter().filter(|item| **item == Item::Ellipsis).count() > 1 {
        return Err(Refusal::SecondEllipsis);
    }
    let named = items.iter().filter(|item| **item != Item::Ellipsis).count();
    let mut out = Vec::new();
    for item in items {
        match item {
            Item::Int(index) => {
                // A dimension too many keeps its index: the crate itself refuses it.
                let size = shape.get(out.len()).map_or(0, |dim| *dim as i64);
                let resolved = if *index < 0 { index + size } else { *index };
                let resolved = usize::try_from(resolved).map_err(|_| Refusal::BelowZero(*index))?;
                out.push(TensorIndexer::Select(resolved));
            }
            Item::Range { start, stop, step } => {
                let step = positive(step.unwrap_or(1))?;
                let step = NonZeroUsize::try_from(step).map_err(|_| Refusal::Step(0))?;
                let start = unsigned(*start)?.map_or(Bound::Unbounded, Bound::Included);
                let stop = unsigned(*stop)?.map_or(Bound::Unbounded, Bound::Excluded);
                out.push(TensorIndexer::Narrow(start, stop, step));
            }
            Item::Ellipsis => {
                for _ in named..shape.len() {
                    out.push(TensorIndexer::Narrow(Bound::Unbounded, Bound::Unbounded, NonZeroUsize::MIN));
                }
            }
            Item::List(list) if list.is_empty() => {
                out.push(TensorIndexer::Narrow(Bound::Included(0), Bound::Excluded(0), NonZeroUsize::MIN));
            }
            Item::List(_) => return Err(Refusal::IndexList),
        }
    }
    Ok(out)
}

fn positive(step: i64) -> Result<NonZeroU64, Refusal> {
    u64::try_from(step).ok().and_then(NonZeroU64::new).ok_or(Refusal::Step(step))
}

fn unsigned(bound: Option<i64>) -> Result<Option<usize>, Refusal> {
    bound.map(|bound| usize::try_from(bound).map_err(|_| Refusal::NegativeBound(bound))).transpose()
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn refusal(&self) -> Refusal {
        Refusal::Syntax { at: self.at }
    }

    fn skip_spaces(&mut self) {
        while self.text.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }

    fn take(&mut self, token: &[u8]) -> bool {
        self.skip_spaces();
        let found = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(token));
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &[u8]) -> Result<(), Refusal> {
        if self.take(token) { Ok(()) } else { Err(self.refusal()) }
    }

    fn items(&mut self) -> Result<Vec<Item>, Refusal> {
        let mut items = vec![self.item()?];
        while self.take(b",") {
            items.push(self.item()?);
        }
        Ok(items)
    }

    fn item(&mut self) -> Result<Item, Refusal> {
        if self.take(b"...") {
            return Ok(Item::Ellipsis);
        }
        if self.take(b"[") {
            return self.list();
        }
        let start = self.int()?;
        if !self.take(b":") {
            return start.map(Item::Int).ok_or(self.refusal());
        }
        let stop = self.int()?;
        let step = if self.take(b":") { self.int()? } else { None };
        Ok(Item::Range { start, stop, step })
    }

    fn list(&mut self) -> Result<Item, Refusal> {
        let mut list = Vec::new();
        while !self.take(b"]") {
            if !list.is_empty() {
                self.expect(b",")?;
            }
            list.push(self.int()?.ok_or(self.refusal())?);
        }
        Ok(Item::List(list))
    }

    fn int(&mut self) -> Result<Option<i64>, Refusal> {
        self.skip_spaces();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let sign = usize::from(rest.first() == Some(&b'-'));
        let len = sign + rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        if len == 0 {
            return Ok(None);
        }
        let digits = rest.get(..len).and_then(|text| core::str::from_utf8(text).ok());
        let value = digits.and_then(|text| text.parse().ok()).ok_or(self.refusal())?;
        self.at += len;
        Ok(Some(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: Option<i64>, stop: Option<i64>, step: Option<i64>) -> Item {
        Item::Range { start, stop, step }
    }

    #[test]
    fn notation_of_the_vectors_is_read() {
        let table: [(&str, Vec<Item>); 8] = [
            ("[:]", vec![range(None, None, None)]),
            ("[()]", vec![]),
            ("[-64]", vec![Item::Int(-64)]),
            ("[3:5, -1]", vec![range(Some(3), Some(5), None), Item::Int(-1)]),
            ("[60:64, 40:48:3]", vec![range(Some(60), Some(64), None), range(Some(40), Some(48), Some(3))]),
            ("[7,...,0]", vec![Item::Int(7), Item::Ellipsis, Item::Int(0)]),
            ("[::-1]", vec![range(None, None, Some(-1))]),
            ("[[0,1]]", vec![Item::List(vec![0, 1])]),
        ];
        for (text, items) in table {
            assert_eq!(parse(text), Ok(items), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_where_it_stands() {
        for (text, at) in [
            ("", 0),
            ("[", 1),
            ("[1", 2),
            ("[1]x", 3),
            ("[,]", 1),
            ("[1,]", 3),
            ("[[1 2]]", 4),
            ("[99999999999999999999]", 1),
            ("[-]", 1),
        ] {
            assert_eq!(parse(text), Err(Refusal::Syntax { at }), "{text}");
        }
    }

    #[test]
    fn steps_and_lists_without_an_equivalent_are_refused_by_kind() {
        let refused = |text| to_ours(&parse(text).expect("an expression")).map(|_| ());
        assert_eq!(refused("[::-1]"), Err(Refusal::Step(-1)));
        assert_eq!(refused("[::0]"), Err(Refusal::Step(0)));
        assert_eq!(refused("[[0,1]]"), Err(Refusal::IndexList));
        assert_eq!(refused("[[]]"), Ok(()));
    }
}
