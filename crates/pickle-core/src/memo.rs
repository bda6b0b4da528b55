//! The memo: values by index, where indexes may be anything.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::tree::{ValueId, push};

/// Absent indexes that are worth a place each.
const GAP: usize = 16;

/// Consecutive indexes take four bytes each; others are in a map.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    dense: Vec<Option<ValueId>>,
    sparse: BTreeMap<u64, ValueId>,
    len: u32,
}

impl Memo {
    /// Distinct indexes.
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
        self.len = 0;
    }

    pub(crate) fn get(&self, index: u64) -> Option<ValueId> {
        let dense = usize::try_from(index).ok().and_then(|index| self.dense.get(index).copied().flatten());
        dense.or_else(|| self.sparse.get(&index).copied())
    }

    /// `None` if memory ran out.
    pub(crate) fn put(&mut self, index: u64, value: ValueId) -> Option<()> {
        let dense = usize::try_from(index).ok().filter(|index| *index < self.dense.len() + GAP);
        let before = if let Some(index) = dense {
            while self.dense.len() <= index {
                push(&mut self.dense, None)?;
            }
            let moved = self.sparse.remove(&(index as u64));
            self.dense.get_mut(index)?.replace(value).or(moved)
        } else {
            self.sparse.insert(index, value)
        };
        self.len += u32::from(before.is_none());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_far_beyond_the_others_take_no_memory_between() {
        let mut memo = Memo::default();
        for (index, dense) in [(0, 1), (GAP + 1, 1), (GAP, GAP + 1), (2 * GAP, 2 * GAP + 1)] {
            memo.put(index as u64, ValueId::NONE).expect("memory");
            assert_eq!(memo.dense.len(), dense, "{index}");
        }
    }

    #[test]
    fn distinct_indexes_are_counted_wherever_they_are() {
        let mut memo = Memo::default();
        let value = |idx| ValueId::new(idx).expect("in range");
        for (index, len) in [(0, 1), (100, 2), (100, 2), (u64::MAX, 3), (15, 4), (30, 5), (46, 6), (0, 6)] {
            memo.put(index, value(index as u32 % 1000)).expect("memory");
            assert_eq!((memo.len(), memo.get(index)), (len, Some(value(index as u32 % 1000))));
        }
        for index in 47..=100 {
            memo.put(index, value(7)).expect("memory");
        }
        assert_eq!(
            (memo.len(), memo.get(100), memo.get(99), memo.get(101)),
            (59, Some(value(7)), Some(value(7)), None)
        );
    }
}
