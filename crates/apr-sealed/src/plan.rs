//! Parts of a sealed file and their offsets.

use alloc::boxed::Box;
use alloc::vec::Vec;

use apr_crypto::ChunkedLayout;

use located_error::Subject;

use crate::error::{Error, ErrorKind};
use crate::fixed::PART_ALIGN;

/// Longest name of a part.
pub(crate) const NAME_MAX: usize = 65_535;
/// Longest name of an element type.
pub(crate) const DTYPE_MAX: usize = 16;
/// Most dimensions.
pub(crate) const RANK_MAX: usize = 255;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PartKind {
    /// Bytes of the original file that belong to no tensor: its header, gaps between tensors.
    Raw,
    /// The bytes of one tensor.
    Tensor,
}

/// A part of what is sealed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    kind: PartKind,
    name: Box<str>,
    dtype: Box<str>,
    shape: Box<[u64]>,
    len: u64,
    offset: u64,
}

impl Part {
    /// Bytes that are no tensor.
    #[must_use]
    pub fn raw(len: u64) -> Self {
        Self { kind: PartKind::Raw, name: "".into(), dtype: "".into(), shape: Box::new([]), len, offset: 0 }
    }

    /// A tensor of `len` bytes. The element type is spelled as the original file's format spells it (`F32`, `Q4_K`); no one
    /// compares it with shape and length.
    #[must_use]
    pub fn tensor(name: &str, dtype: &str, shape: impl Into<Box<[u64]>>, len: u64) -> Self {
        let (name, dtype, shape) = (name.into(), dtype.into(), shape.into());
        Self { kind: PartKind::Tensor, name, dtype, shape, len, offset: 0 }
    }

    /// What it is.
    #[must_use]
    pub const fn kind(&self) -> PartKind {
        self.kind
    }

    /// The tensor's name; empty for raw bytes.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tensor's element type; empty for raw bytes.
    #[must_use]
    pub fn dtype(&self) -> &str {
        &self.dtype
    }

    /// The tensor's shape.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where it begins in the payload before encryption: a multiple of 64. In a file that is signed only, that is so many
    /// bytes after [`SealedLayout::payload_offset`](crate::SealedLayout::payload_offset).
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    fn check(&self) -> Result<(), Error> {
        let what = match self.kind {
            PartKind::Raw if self.len == 0 => "raw bytes that are none",
            PartKind::Tensor if self.name.is_empty() => "a tensor without a name",
            PartKind::Tensor if self.name.len() > NAME_MAX => "a tensor name above 65535 bytes",
            PartKind::Tensor if self.dtype.is_empty() => "a tensor without an element type",
            PartKind::Tensor if self.dtype.len() > DTYPE_MAX => "an element type above 16 bytes",
            PartKind::Tensor if self.shape.len() > RANK_MAX => "a tensor of more than 255 dimensions",
            _ => return Ok(()),
        };
        Err(Error::from(ErrorKind::Directory { what }).of(Subject::tensor(&self.name)))
    }
}

/// What is sealed: parts in order, each at its place. No place is stored in a file, all follow from order and lengths: there
/// are no gaps and no overlaps to check.
///
/// ```
/// use apr_sealed::{Part, PartKind, Plan};
///
/// // A file of 1,000 bytes with a tensor in its middle.
/// let plan = Plan::of_file(1_000, [(200, Part::tensor("weight", "F32", [10, 10], 400))])?;
/// let parts: Vec<_> = plan.parts().iter().map(|part| (part.kind(), part.len(), part.offset())).collect();
/// assert_eq!(parts, [(PartKind::Raw, 200, 0), (PartKind::Tensor, 400, 256), (PartKind::Raw, 400, 704)]);
/// assert_eq!(plan.content_len(), 1_000);
/// # Ok::<(), apr_sealed::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    parts: Vec<Part>,
    /// The tensors in the order of their names.
    by_name: Vec<u32>,
    content_len: u64,
    payload_len: u64,
}

impl Plan {
    /// Lays parts out in this order.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Directory`] for a part that the format cannot say or a name that occurs twice;
    /// [`ErrorKind::SizeOverflow`] beyond 4 PiB.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Result<Self, Error> {
        let mut parts: Vec<Part> = parts.into_iter().collect();
        let (mut content_len, mut end) = (0_u64, 0_u64);
        for part in &mut parts {
            part.check()?;
            let place =
                end.checked_next_multiple_of(PART_ALIGN).and_then(|at| Some((at, at.checked_add(part.len)?)));
            let (at, after) = place
                .filter(|(_, after)| *after <= ChunkedLayout::MAX_PLAINTEXT_LEN)
                .ok_or_else(|| Error::from(ErrorKind::SizeOverflow).of(Subject::tensor(&part.name)))?;
            part.offset = at;
            end = after;
            // Not more than `end`.
            content_len += part.len;
        }
        if u32::try_from(parts.len()).is_err() {
            return Err(ErrorKind::Directory { what: "more than 4294967295 parts" }.into());
        }
        let name = |idx: &u32| parts.get(*idx as usize).map(Part::name).unwrap_or_default();
        let mut by_name: Vec<u32> = (0..parts.len() as u32).filter(|idx| !name(idx).is_empty()).collect();
        by_name.sort_unstable_by(|a, b| name(a).cmp(name(b)));
        let twice = by_name.windows(2).find_map(|pair| match pair {
            [a, b] if name(a) == name(b) => Some(b),
            _ => None,
        });
        if let Some(twice) = twice {
            return Err(Error::from(ErrorKind::Directory { what: "two tensors of one name" })
                .of(Subject::tensor(name(twice))));
        }
        Ok(Self { parts, by_name, content_len, payload_len: end })
    }

    /// A file of `len` bytes with these tensors, each behind the offset at which it begins; what lies between them becomes raw
    /// parts. The tensors may come in any order.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`ErrorKind::Directory`] too if tensors overlap or reach past the end.
    pub fn of_file(len: u64, tensors: impl IntoIterator<Item = (u64, Part)>) -> Result<Self, Error> {
        let mut tensors: Vec<(u64, Part)> = tensors.into_iter().collect();
        // An empty tensor stands before one that begins where it does.
        tensors.sort_by_key(|(at, part)| (*at, part.len));
        let mut parts = Vec::with_capacity(2 * tensors.len() + 1);
        let mut end = 0;
        for (at, part) in tensors {
            let outside = |what| Error::from(ErrorKind::Directory { what }).of(Subject::tensor(&part.name));
            let gap = at.checked_sub(end).ok_or_else(|| outside("tensors that overlap"))?;
            if gap > 0 {
                parts.push(Part::raw(gap));
            }
            let after = at.checked_add(part.len).filter(|after| *after <= len);
            end = after.ok_or_else(|| outside("a tensor past the end of the file"))?;
            parts.push(part);
        }
        if end < len {
            parts.push(Part::raw(len - end));
        }
        Self::new(parts)
    }

    /// The parts in order.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The place of a tensor among the parts.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        let part = |idx: &u32| self.parts.get(*idx as usize);
        let found = self.by_name.binary_search_by(|idx| part(idx).map_or("", Part::name).cmp(name)).ok()?;
        self.by_name.get(found).map(|idx| *idx as usize)
    }

    /// Bytes of all parts.
    #[must_use]
    pub const fn content_len(&self) -> u64 {
        self.content_len
    }

    /// Bytes of the payload before encryption: all parts and the zeros between them.
    #[must_use]
    pub const fn payload_len(&self) -> u64 {
        self.payload_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_format_cannot_say_is_refused() {
        let long = "x".repeat(NAME_MAX + 1);
        let wrong = [
            Part::raw(0),
            Part::tensor("", "F32", [], 4),
            Part::tensor(&long, "F32", [], 4),
            Part::tensor("a", "", [], 4),
            Part::tensor("a", "a dtype of 17 byt", [], 4),
            Part::tensor("a", "F32", [1; 256], 4),
            Part::tensor("a", "F32", [], u64::MAX),
            Part::tensor("a", "F32", [], ChunkedLayout::MAX_PLAINTEXT_LEN + 1),
        ];
        for part in wrong {
            assert!(Plan::new([part.clone()]).is_err(), "{:?}", part.dtype);
        }
        let twice = ["b", "a", "b"].map(|name| Part::tensor(name, "F32", [], 4));
        let error = Plan::new(twice).unwrap_err();
        assert_eq!((error.code(), error.subject().map(Subject::name)), ("ac-sealed-directory", Some("b")));
        let tensor = || Part::tensor("a", "F32", [], 10);
        let other = Part::tensor("b", "F32", [], 10);
        assert!(Plan::of_file(19, [(0, tensor()), (9, other)]).is_err());
        assert!(Plan::of_file(9, [(0, tensor())]).is_err());
        assert!(Plan::of_file(9, [(u64::MAX, tensor())]).is_err());
    }

    #[test]
    fn parts_of_a_file_follow_each_other() {
        let tensor = |name: &str, len| Part::tensor(name, "U8", [len], len);
        let tensors = [(10, tensor("late", 5)), (10, tensor("empty", 0)), (0, tensor("first", 3))];
        let plan = Plan::of_file(15, tensors).unwrap();
        let names: Vec<&str> = plan.parts().iter().map(Part::name).collect();
        assert_eq!(names, ["first", "", "empty", "late"]);
        assert_eq!(plan.content_len(), 15);
        assert_eq!(plan.payload_len(), 128 + 5);
        assert_eq!(plan.find("late"), Some(3));
        assert_eq!((plan.find(""), plan.find("x")), (None, None));
        let nothing = Plan::of_file(0, []).unwrap();
        assert_eq!((nothing.parts().len(), nothing.payload_len()), (0, 0));
    }
}
