//! Lists of names as text: one name a line, sorted by their bytes.

use core::cmp::Ordering;

/// Whether `name` is a line of `list`.
pub(crate) fn has(list: &str, name: &str) -> bool {
    let (mut rest, name) = (list.as_bytes(), name.as_bytes());
    while !rest.is_empty() {
        let (before, after) = rest.split_at(rest.len() / 2);
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let end = before.len() + after.iter().position(|byte| *byte == b'\n').unwrap_or(after.len());
        rest = match name.cmp(rest.get(start..end).unwrap_or_default()) {
            Ordering::Equal => return true,
            Ordering::Less => rest.get(..start).unwrap_or_default(),
            Ordering::Greater => rest.get(end + 1..).unwrap_or_default(),
        };
    }
    false
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every line of a list is found, and nothing beside it.
    pub(crate) fn check(list: &str, n_lines: usize) {
        let lines: alloc::vec::Vec<_> = list.lines().collect();
        assert!(lines.is_sorted_by(|one, next| one < next));
        assert_eq!(lines.len(), n_lines);
        for line in lines {
            assert!(has(list, line), "{line}");
            for other in [alloc::format!("{line}\n"), alloc::format!("{line}~"), alloc::format!("\n{line}")] {
                assert!(!has(list, &other), "{other}");
            }
        }
    }

    #[test]
    fn lines_are_found_whole() {
        check("", 0);
        check("one\n", 1);
        check("a\nbb\nccc\nd\n", 4);
        assert!(has("a\nb", "b"), "without an end of its line");
        for name in ["", "e", "b", "aa", "cc", "a\nbb"] {
            assert!(!has("a\nbb\nccc\nd\n", name), "{name}");
        }
    }
}
