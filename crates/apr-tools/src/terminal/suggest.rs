//! Suggestions: similar names, and help for files that do not exist.

use std::fs;
use std::path::Path;

use super::escape;

/// Most entries of a folder that are compared with a name.
const MAX_ENTRIES: usize = 10_000;

/// The candidate that is closest to a word, if it is close: an edit for each three characters, four at most.
pub(crate) fn closest<T: AsRef<str>>(word: &str, candidates: impl IntoIterator<Item = T>) -> Option<T> {
    let allowed = (word.chars().count() / 3).clamp(1, 4);
    let near = candidates.into_iter().map(|candidate| (distance(word, candidate.as_ref()), candidate));
    near.filter(|(edits, _)| *edits <= allowed)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Edits that turn one word into the other: characters inserted, removed or replaced, and neighbours exchanged. Long words are
/// infinitely far.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 256;
    if a.len() > LONGEST || b.len() > LONGEST { usize::MAX } else { strsim::osa_distance(a, b) }
}

/// What to do about a path at which there is nothing.
pub(crate) fn missing(path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else {
        return format!("check the path: there is no folder {}", escape::short_path(folder));
    };
    let names = entries.flatten().take(MAX_ENTRIES);
    let names: Vec<String> = names.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    match closest(&wanted, names) {
        Some(close) => format!("did you mean {}?", escape::path(&path.with_file_name(close))),
        None => "check the path; a relative one begins at the current folder".to_owned(),
    }
}

/// Whether an argument is the address of a file elsewhere.
pub(crate) fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_words_are_found_and_others_are_not() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("modle", "model"), 1);
        assert_eq!(closest("inspekt", ["convert", "inspect"]), Some("inspect"));
        assert_eq!(closest("foo", ["mf-io", "df-io"]), None);
        assert_eq!(closest("version", ["verify", "convert"]), None);
        assert_eq!(closest("", ["a", "bc"]), Some("a"));
    }

    #[test]
    fn addresses_are_told_from_paths() {
        assert!(is_url("https://example.org/model.safetensors") && is_url("s3://bucket/x"));
        assert!(!is_url("C:/models/x") && !is_url("./a") && !is_url("://x"));
    }
}
