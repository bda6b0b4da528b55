//! Finds a name among many in constant time, also for adversarial names.
//!
//! An open-addressing table of (hash, index) pairs, half full at most. Colliding names would make probes long, and a secret
//! hash key needs a source of randomness that not every system has. So if a probe becomes longer than ordinary names cause, the
//! index becomes a sorted list instead.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

/// Longest probe. At load 1/2, chance needs more than a billion names to exceed it.
const MAX_PROBE: usize = 128;

#[derive(Clone, Debug)]
pub(crate) enum NameIndex {
    /// Slots, a power of two of them; `EMPTY` marks free ones.
    Table(Vec<Slot>),
    /// Indices in order of their names.
    Sorted(Vec<u32>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    hash: u32,
    idx: u32,
}

const EMPTY: Slot = Slot { hash: 0, idx: u32::MAX };

/// Indices of two equal names, the smaller first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Duplicate(pub(crate) u32, pub(crate) u32);

/// A set of names to be indexed, with the [`hash`] of each.
pub(crate) trait Names {
    fn count(&self) -> usize;
    fn name(&self, idx: u32) -> &str;
    fn hash(&self, idx: u32) -> u32;
}

impl NameIndex {
    /// Indexes names that are all different.
    ///
    /// # Errors
    ///
    /// The first pair of equal names that was met.
    pub(crate) fn new(names: &impl Names) -> Result<Self, Duplicate> {
        if names.count() == 0 {
            return Ok(Self::Sorted(Vec::new()));
        }
        let mut slots = vec![EMPTY; (names.count() * 2).next_power_of_two()];
        for idx in 0..names.count() as u32 {
            let hash = names.hash(idx);
            let mut at = first_slot(hash, slots.len());
            let mut probes = 0;
            while slots[at].idx != EMPTY.idx {
                if slots[at].hash == hash && names.name(slots[at].idx) == names.name(idx) {
                    return Err(Duplicate(slots[at].idx, idx));
                }
                probes += 1;
                if probes > MAX_PROBE {
                    drop(slots);
                    return Self::sorted(names);
                }
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = Slot { hash, idx };
        }
        Ok(Self::Table(slots))
    }

    fn sorted(names: &impl Names) -> Result<Self, Duplicate> {
        let order = in_order(names.count() as u32, &|idx| names.name(idx));
        let equal = order.windows(2).find(|pair| names.name(pair[0]) == names.name(pair[1]));
        match equal {
            Some(pair) => Err(Duplicate(pair[0], pair[1])),
            None => Ok(Self::Sorted(order)),
        }
    }

    /// Index of `name` among the names this was built from.
    pub(crate) fn find(&self, name: &str, names: &impl Names) -> Option<u32> {
        match self {
            Self::Table(slots) => {
                let hash = hash(name);
                let mut at = first_slot(hash, slots.len());
                while slots[at].idx != EMPTY.idx {
                    if slots[at].hash == hash && names.name(slots[at].idx) == name {
                        return Some(slots[at].idx);
                    }
                    at = (at + 1) & (slots.len() - 1);
                }
                None
            }
            Self::Sorted(order) => {
                let compare = |&idx: &u32| -> Ordering { names.name(idx).cmp(name) };
                order.binary_search_by(compare).ok().map(|at| order[at])
            }
        }
    }
}

/// Indices of names, sorted by name and index. Rarely used, so one function serves all types of names.
pub(crate) fn in_order<'a>(count: u32, name: &dyn Fn(u32) -> &'a str) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_unstable_by(|&a, &b| name(a).cmp(name(b)).then(a.cmp(&b)));
    order
}

/// Spreads 32-bit hashes over `len` slots by their upper bits.
fn first_slot(hash: u32, len: usize) -> usize {
    ((u64::from(hash) * len as u64) >> 32) as usize
}

/// 32 well-mixed bits of a name: pairs of 64-bit words, the last ending with the name, folded into 128-bit
/// products. Not a cryptographic hash.
#[inline]
pub(crate) fn hash(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let tail = bytes.last_chunk::<16>().copied().unwrap_or_else(|| {
        let mut short = [0; 16];
        short[..bytes.len()].copy_from_slice(bytes);
        short
    });
    let mut state = bytes.len() as u64;
    for pair in bytes.as_chunks::<16>().0.iter().chain([&tail]) {
        let pair = u128::from_le_bytes(*pair);
        let (low, high) = (pair as u64, (pair >> 64) as u64);
        state = fold(state ^ low ^ 0x2d35_8dcc_aa6c_78a5, high ^ 0x8bb8_4b93_962e_acc9);
    }
    (fold(state, 0x4b33_a62e_d433_d4a3) >> 32) as u32
}

#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::String};

    use super::*;

    struct Listed {
        names: Vec<String>,
        hash: fn(&str) -> u32,
    }

    impl Names for Listed {
        fn count(&self) -> usize {
            self.names.len()
        }
        fn name(&self, idx: u32) -> &str {
            &self.names[idx as usize]
        }
        fn hash(&self, idx: u32) -> u32 {
            (self.hash)(self.name(idx))
        }
    }

    fn check(names: &Listed) -> NameIndex {
        let index = NameIndex::new(names).unwrap();
        for idx in 0..names.count() as u32 {
            assert_eq!(index.find(names.name(idx), names), Some(idx));
        }
        assert_eq!(index.find("absent", names), None);
        index
    }

    #[test]
    fn finds_every_name() {
        for count in [0, 1, 2, 3, 1000, 20_000] {
            let names = (0..count).map(|idx| format!("layers.{idx}.weight")).collect();
            let index = check(&Listed { names, hash });
            assert_eq!(matches!(index, NameIndex::Table(_)), count > 0);
        }
    }

    #[test]
    fn colliding_names_are_sorted_instead() {
        let names = Listed { names: (0..500).map(|idx| format!("{idx}")).collect(), hash: |_| 7 };
        assert!(matches!(check(&names), NameIndex::Sorted(_)));
    }

    #[test]
    fn collisions_up_to_the_longest_probe_stay_in_the_table() {
        let names = |count| Listed { names: (0..count).map(|idx| format!("{idx}")).collect(), hash: |_| 7 };
        assert!(matches!(NameIndex::new(&names(MAX_PROBE + 1)), Ok(NameIndex::Table(_))));
        assert!(matches!(NameIndex::new(&names(MAX_PROBE + 2)), Ok(NameIndex::Sorted(_))));
    }

    #[test]
    fn both_forms_report_duplicates_in_order() {
        for (hash, count) in [(hash as fn(&str) -> u32, 10), (|_| 7, 10), (|_| 7, 400)] {
            let mut names: Vec<String> = (0..count).map(|idx| format!("{idx}")).collect();
            names[count - 1] = "3".into();
            let found = NameIndex::new(&Listed { names, hash }).unwrap_err();
            assert_eq!(found, Duplicate(3, count as u32 - 1));
        }
    }

    #[test]
    fn names_of_equal_hash_are_told_apart() {
        // Of 2^18 names, some 8 pairs share their 32 bits.
        let mut hashed: Vec<_> = (0..1 << 18).map(|idx| (hash(&format!("{idx}")), idx)).collect();
        hashed.sort_unstable();
        let pair = hashed.windows(2).find(|pair| pair[0].0 == pair[1].0).unwrap();
        let names = Listed { names: vec![format!("{}", pair[0].1)], hash };
        let index = check(&names);
        assert_eq!(index.find(&format!("{}", pair[1].1), &names), None);
    }

    #[test]
    fn similar_names_hash_apart() {
        let mut hashes = vec![];
        for idx in 0..4096 {
            hashes.push(hash(&format!("model.layers.{idx}.mlp.down_proj.weight")));
            hashes.push(hash(&"\0".repeat(idx)));
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert!(hashes.len() >= 8190);
    }
}
