//! Values by key.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::iter::{Flatten, FusedIterator};
use core::mem;
use core::ops::Index;
use core::slice;

/// Length at which a list is split in two: an insertion moves at most this many entries.
const MOST: usize = 512;

/// Values by key, in the order of the keys.
///
/// The part of `BTreeMap` that metadata use, with less code: `BTreeMap` for one type of values takes as much code as the reader of
/// the metadata. Most maps are a single sorted list.
///
/// ```
/// use apr_container::Map;
///
/// let mut map = Map::from([("b".into(), 1), ("a".into(), 2)]);
/// assert_eq!(map.insert("b".into(), 3), Some(1));
/// assert_eq!((map["b"], map.get("c"), map.len()), (3, None, 2));
/// assert_eq!(map.keys().collect::<Vec<_>>(), ["a", "b"]);
/// ```
#[derive(Clone)]
pub struct Map<V> {
    /// Sorted, consecutive, not empty.
    lists: Vec<Vec<(String, V)>>,
}

impl<V> Map<V> {
    /// An empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { lists: Vec::new() }
    }

    /// The number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Whether the map is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Whether the map has the key.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&V> {
        let (list, place) = self.find(key);
        Some(&self.lists.get(list)?.get(place.ok()?)?.1)
    }

    /// The value of a key, mutable.
    #[must_use]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut V> {
        let (list, place) = self.find(key);
        Some(&mut self.lists.get_mut(list)?.get_mut(place.ok()?)?.1)
    }

    /// Inserts an entry and returns the value that the key had before.
    pub fn insert(&mut self, key: String, value: impl Into<V>) -> Option<V> {
        self.insert_value(key, value.into())
    }

    fn insert_value(&mut self, key: String, value: V) -> Option<V> {
        let (at, place) = self.find(&key);
        let Some(list) = self.lists.get_mut(at) else {
            self.lists.push(vec![(key, value)]);
            return None;
        };
        match place {
            Ok(place) => list.get_mut(place).map(|(_, old)| mem::replace(old, value)),
            Err(place) => {
                list.insert(place, (key, value));
                if list.len() == MOST {
                    let upper = list.split_off(MOST / 2);
                    self.lists.insert(at + 1, upper);
                }
                None
            }
        }
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<V> {
        let (at, place) = self.find(key);
        let list = self.lists.get_mut(at)?;
        let (_, value) = list.remove(place.ok()?);
        if list.is_empty() {
            self.lists.remove(at);
        }
        Some(value)
    }

    /// Keeps the entries for which `keep` returns `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(&String, &mut V) -> bool) {
        for list in &mut self.lists {
            list.retain_mut(|(key, value)| keep(key, value));
        }
        self.lists.retain(|list| !list.is_empty());
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.lists.clear();
    }

    /// Keys and values in the order of the keys.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, V> {
        Iter { lists: self.lists.iter(), entries: [].iter() }
    }

    /// The keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.iter().map(|(key, _)| key)
    }

    /// The values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The list that has the key, or into which it belongs, and the index in it.
    fn find(&self, key: &str) -> (usize, Result<usize, usize>) {
        let begins = |list: &Vec<(String, V)>| list.first().is_some_and(|(first, _)| first.as_str() <= key);
        let at = self.lists.partition_point(begins).saturating_sub(1);
        let list = self.lists.get(at).map_or(&[][..], Vec::as_slice);
        (at, list.binary_search_by(|(other, _)| other.as_str().cmp(key)))
    }
}

impl<V> Default for Map<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V: PartialEq> PartialEq for Map<V> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<V: Eq> Eq for Map<V> {}

impl<V: fmt::Debug> fmt::Debug for Map<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The value of a key.
///
/// # Panics
///
/// If there is no such key.
impl<V> Index<&str> for Map<V> {
    type Output = V;

    fn index(&self, key: &str) -> &V {
        self.get(key).expect("no entry of this key")
    }
}

impl<V> Extend<(String, V)> for Map<V> {
    fn extend<I: IntoIterator<Item = (String, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

/// Of several entries with the same key, the last one remains.
impl<V> FromIterator<(String, V)> for Map<V> {
    fn from_iter<I: IntoIterator<Item = (String, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<V, const N: usize> From<[(String, V); N]> for Map<V> {
    fn from(entries: [(String, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<V> IntoIterator for Map<V> {
    type Item = (String, V);
    type IntoIter = Flatten<vec::IntoIter<Vec<(String, V)>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.lists.into_iter().flatten()
    }
}

impl<'m, V> IntoIterator for &'m Map<V> {
    type Item = (&'m String, &'m V);
    type IntoIter = Iter<'m, V>;

    fn into_iter(self) -> Iter<'m, V> {
        self.iter()
    }
}

/// Keys and values of a [`Map`] in the order of the keys.
#[derive(Debug)]
pub struct Iter<'m, V> {
    lists: slice::Iter<'m, Vec<(String, V)>>,
    entries: slice::Iter<'m, (String, V)>,
}

impl<V> Clone for Iter<'_, V> {
    fn clone(&self) -> Self {
        Self { lists: self.lists.clone(), entries: self.entries.clone() }
    }
}

impl<'m, V> Iterator for Iter<'m, V> {
    type Item = (&'m String, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.entries.next() {
                return Some((key, value));
            }
            self.entries = self.lists.next()?.iter();
        }
    }
}

impl<V> FusedIterator for Iter<'_, V> {}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    fn is_sound<V>(map: &Map<V>) {
        assert!(map.lists.iter().all(|list| !list.is_empty() && list.len() < MOST));
        assert!(map.lists.iter().flatten().is_sorted_by(|(one, _), (next, _)| one < next));
    }

    #[test]
    fn any_order_makes_the_same_map() {
        let count = 5000_usize;
        let key = |idx: usize| format!("{idx:04}");
        let up: Map<usize> = (0..count).map(|idx| (key(idx), idx)).collect();
        let down: Map<usize> = (0..count).rev().map(|idx| (key(idx), idx)).collect();
        // 1877 and 5000 have no common divisor.
        let mixed: Map<usize> = (0..count).map(|idx| idx * 1877 % count).map(|idx| (key(idx), idx)).collect();
        for map in [&up, &down, &mixed] {
            is_sound(map);
            assert_eq!((map.len(), map), (count, &up));
            assert!(map.values().copied().eq(0..count));
        }
        // The capacity is at most twice the number of entries, which metadata's budget counts.
        for map in [&up, &down] {
            let capacity: usize = map.lists.iter().map(Vec::capacity).sum();
            assert!(capacity <= 2 * count + MOST, "{capacity}");
        }
    }

    #[test]
    fn a_missing_key_is_told_by_name() {
        let map: Map<u8> = Map::new();
        assert!(map.is_empty() && map.iter().next().is_none() && map.get("a").is_none());
        assert_eq!(format!("{:?}", Map::from([("a".into(), 1)])), "{\"a\": 1}");
    }

    proptest! {
        #[test]
        fn agrees_with_the_standard_library(
            steps in prop::collection::vec((any::<bool>(), "[a-d]{0,4}", any::<u8>()), 0..400),
        ) {
            let (mut map, mut other) = (Map::new(), BTreeMap::new());
            for (is_new, key, value) in steps {
                if is_new {
                    prop_assert_eq!(map.insert(key.clone(), value), other.insert(key.clone(), value));
                } else {
                    prop_assert_eq!(map.remove(&key), other.remove(&key));
                }
                prop_assert_eq!(map.get(&key), other.get(&key));
                is_sound(&map);
            }
            prop_assert_eq!(map.len(), other.len());
            prop_assert!(map.iter().eq(&other));
            map.retain(|key, value| key.len() > 1 && *value > 100);
            other.retain(|key, value| key.len() > 1 && *value > 100);
            is_sound(&map);
            prop_assert!(map.into_iter().eq(other));
        }
    }
}
