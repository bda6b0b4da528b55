//! Views: which stored elements a tensor consists of, and in what order.

use alloc::vec::Vec;

use crate::error::Error;

/// Elements of a storage, by offset and strides in elements, and what is done to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct View {
    /// Of the first element.
    pub(crate) offset: u64,
    /// One per dimension; `None` if the elements are contiguous and row-major.
    pub(crate) strides: Option<Vec<u64>>,
    /// Bytes whose order is reversed: those of a number, or of one part of a complex number. 0 or 1 for none.
    pub(crate) swap: usize,
    /// The sign of every number is reversed.
    pub(crate) negate: bool,
    /// The sign of every imaginary part is reversed.
    pub(crate) conjugate: bool,
}

impl View {
    /// The whole of a contiguous storage.
    pub(crate) fn whole() -> Self {
        Self::default()
    }

    /// Elements that are stored in column-major order.
    #[cfg(feature = "numpy")]
    pub(crate) fn column_major(shape: &[u64]) -> Result<Self, Error> {
        let mut strides = Vec::with_capacity(shape.len());
        let mut stride = 1_u64;
        for &dim in shape {
            strides.push(stride);
            stride = stride.checked_mul(dim.max(1)).ok_or_else(|| Error::view("its size overflows"))?;
        }
        Ok(Self { strides: Some(strides), ..Self::default() })
    }

    /// Compares the view with a storage of `stored` elements. Contiguous strides are dropped.
    ///
    /// # Errors
    ///
    /// If it reaches beyond the storage.
    pub(crate) fn check(&mut self, shape: &[u64], stored: u64) -> Result<(), Error> {
        let overflow = || Error::view("its size overflows");
        let count =
            shape.iter().try_fold(1_u64, |count, &dim| count.checked_mul(dim)).ok_or_else(overflow)?;
        if self.strides.as_ref().is_some_and(|strides| strides.len() != shape.len()) {
            return Err(Error::view("shape and strides have different lengths"));
        }
        if count == 0 {
            // PyTorch writes such offsets: `torch.zeros(5, 0)[3:]` begins at 3.
            self.offset = self.offset.min(stored);
            return Ok(());
        }
        let last = match &self.strides {
            None => count - 1,
            Some(strides) => shape
                .iter()
                .zip(strides)
                .try_fold(0_u64, |last, (&dim, &stride)| last.checked_add((dim - 1).checked_mul(stride)?))
                .ok_or_else(overflow)?,
        };
        if last.checked_add(self.offset).ok_or_else(overflow)? >= stored {
            return Err(Error::view("it reaches beyond its storage"));
        }
        if self.is_contiguous(shape) {
            self.strides = None;
        }
        Ok(())
    }

    /// Whether the elements are in row-major order without gaps. Strides of dimensions of one element do not matter.
    fn is_contiguous(&self, shape: &[u64]) -> bool {
        let Some(strides) = &self.strides else { return true };
        let mut expected = 1;
        shape.iter().zip(strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == expected;
            expected = expected.saturating_mul(dim);
            fits
        })
    }

    /// Elements of the storage from the first to the last that the view reads.
    pub(crate) fn span(&self, shape: &[u64]) -> u64 {
        if shape.contains(&0) {
            return 0;
        }
        match &self.strides {
            None => shape.iter().product(),
            Some(strides) => {
                1 + shape.iter().zip(strides).map(|(&dim, &stride)| (dim - 1) * stride).sum::<u64>()
            }
        }
    }

    /// Whether stored and logical bytes are the same.
    pub(crate) fn is_plain(&self) -> bool {
        self.strides.is_none() && self.swap <= 1 && !self.negate && !self.conjugate
    }

    /// Appends the elements in row-major order. `stored` begins at the first one of the view; the view has been checked.
    pub(crate) fn gather(&self, shape: &[u64], width: usize, stored: &[u8], out: &mut Vec<u8>) {
        let Some(strides) = &self.strides else {
            out.extend_from_slice(stored);
            return;
        };
        if shape.contains(&0) {
            return;
        }
        let Some((&row_len, outer)) = shape.split_last() else {
            out.extend_from_slice(stored.get(..width).unwrap_or(&[]));
            return;
        };
        let (&row_stride, outer_strides) = strides.split_last().unwrap_or((&1, &[]));
        let mut index = alloc::vec![0_u64; outer.len()];
        let mut first = 0_u64;
        loop {
            self.gather_row((first, row_stride, row_len), width, stored, out);
            // The next row: as an odometer.
            let mut dim = outer.len();
            loop {
                let Some(at) = dim.checked_sub(1) else { return };
                dim = at;
                let (Some(digit), Some(&len), Some(&stride)) =
                    (index.get_mut(at), outer.get(at), outer_strides.get(at))
                else {
                    return;
                };
                *digit += 1;
                first += stride;
                if *digit < len {
                    break;
                }
                *digit = 0;
                first -= stride * len;
            }
        }
    }

    fn gather_row(
        &self,
        (first, stride, len): (u64, u64, u64),
        width: usize,
        stored: &[u8],
        out: &mut Vec<u8>,
    ) {
        let start = first as usize * width;
        if stride == 1 {
            out.extend_from_slice(stored.get(start..start + len as usize * width).unwrap_or(&[]));
            return;
        }
        let step = stride as usize * width;
        for at in 0..len as usize {
            let start = start + at * step;
            out.extend_from_slice(stored.get(start..start + width).unwrap_or(&[]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(view: &View, shape: &[u64], stored: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        view.gather(shape, 1, stored, &mut out);
        out
    }

    #[test]
    fn strides_are_followed() {
        let mut transposed = View::column_major(&[2, 3]).unwrap();
        transposed.check(&[2, 3], 6).unwrap();
        assert_eq!(gathered(&transposed, &[2, 3], b"adbecf"), b"abcdef");
        let mut repeated = View { strides: Some(alloc::vec![0, 1]), ..View::whole() };
        repeated.check(&[2, 2], 2).unwrap();
        assert_eq!(gathered(&repeated, &[2, 2], b"ab"), b"abab");
        let mut scalar = View { strides: Some(alloc::vec![]), ..View::whole() };
        scalar.check(&[], 1).unwrap();
        assert_eq!((gathered(&scalar, &[], b"a"), scalar.span(&[])), (b"a".to_vec(), 1));
        let mut every_second = View { strides: Some(alloc::vec![6, 2, 3]), ..View::whole() };
        every_second.check(&[1, 2, 2], 6).unwrap();
        assert_eq!(gathered(&every_second, &[1, 2, 2], b"abcdef"), b"adcf");
    }

    #[test]
    fn contiguous_strides_are_recognized() {
        let mut view = View { strides: Some(alloc::vec![99, 3, 1]), ..View::whole() };
        view.check(&[1, 2, 3], 6).unwrap();
        assert_eq!(view, View::whole());
    }

    #[test]
    fn a_view_without_elements_may_begin_anywhere() {
        let mut view = View { offset: 7, strides: Some(alloc::vec![1, 1]), ..View::whole() };
        view.check(&[0, 3], 6).unwrap();
        assert_eq!((view.offset, view.span(&[0, 3])), (6, 0));
    }

    #[test]
    fn views_stay_in_their_storage() {
        for (offset, strides, shape, stored) in [
            (1, [3, 1], [2, 3], 6),
            (0, [4, 1], [2, 3], 6),
            (0, [u64::MAX, 1], [2, 3], 6),
            (0, [0, 1], [u64::MAX, 3], 6),
        ] {
            let mut view = View { offset, strides: Some(strides.to_vec()), ..View::whole() };
            assert_eq!(view.check(&shape, stored).unwrap_err().code(), "ft-view");
        }
    }
}
