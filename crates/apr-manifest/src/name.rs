//! Names of files on a list: canonical relative paths (OpenSSF Model Signing 1.0, section 6.1.2).

use core::cmp::Ordering;

/// Paths at the top of a folder that are excluded unless the signer includes them (section 6.2).
pub(crate) const DEFAULT_IGNORED: [&str; 4] = [".git", ".gitattributes", ".github", ".gitignore"];

/// Whether `name` is a path below its folder, without any component that is empty, `.` or `..`.
pub(crate) fn is_canonical(name: &str) -> bool {
    !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Whether `name` is `folder` or below it.
pub(crate) fn is_within(name: &str, folder: &str) -> bool {
    name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The order of components, which the reference implementation uses: a folder comes right before what is in it.
pub(crate) fn by_components(a: &str, b: &str) -> Ordering {
    a.split('/').cmp(b.split('/'))
}

/// `path:start:end` with the last two colons; numbers in canonical form.
pub(crate) fn split_shard(name: &str) -> Option<(&str, u64, u64)> {
    let number = |text: &str| {
        let is_plain =
            text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        if is_plain { text.parse().ok() } else { None }
    };
    let (rest, end) = name.rsplit_once(':')?;
    let (path, start) = rest.rsplit_once(':')?;
    Some((path, number(start)?, number(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_are_canonical() {
        for name in ["a", "a/b", "a b", "..a", "a..", "...", "ü/鍵", "a:b", "a\\b", ".git", "-"] {
            assert!(is_canonical(name), "{name}");
        }
        for name in
            ["", "/", "/a", "a/", "a//b", ".", "./a", "a/.", "a/./b", "..", "../a", "a/..", "a/../b", "a\0"]
        {
            assert!(!is_canonical(name), "{name}");
        }
    }

    #[test]
    fn folders_hold_whole_components() {
        assert!(is_within("a", "a") && is_within("a/b", "a") && is_within("a/b/c", "a/b"));
        assert!(!is_within("ab", "a") && !is_within("b/a", "a") && !is_within("a", "a/b"));
        assert_eq!(by_components("sub/b", "sub.txt"), Ordering::Less);
        assert_eq!("sub/b".cmp("sub.txt"), Ordering::Greater);
    }

    #[test]
    fn shards_are_named_by_their_last_two_numbers() {
        assert_eq!(split_shard("a:0:10"), Some(("a", 0, 10)));
        assert_eq!(split_shard("a:1:2:30:40"), Some(("a:1:2", 30, 40)));
        for name in [
            "a",
            "a:1",
            "a:0:",
            "a::1",
            "a:00:1",
            "a:0:+1",
            "a:0:01",
            "a:0:1 ",
            "a:-1:1",
            "a:0:18446744073709551616",
        ] {
            assert_eq!(split_shard(name), None, "{name}");
        }
    }
}
