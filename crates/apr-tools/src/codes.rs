//! The meaning of every error code. The table also determines the exit code of a failure.

pub(crate) mod cli;
mod wasm;

use located_error::Category;
pub(crate) use located_error::Entry;

/// One entry of the table.
const fn entry(code: &'static str, category: Category, meaning: &'static str, remedy: &'static str) -> Entry {
    Entry::new(code, category, "", meaning, remedy)
}

/// All entries, in the order they are listed.
pub(crate) fn entries() -> impl Iterator<Item = &'static Entry> {
    [
        st_core::ErrorKind::TABLE,
        st_structures::ErrorKind::TABLE,
        gguf_core::ErrorKind::TABLE,
        apr_container::ErrorKind::TABLE,
        apr_container::v2::ErrorKind::TABLE,
        apr_crypto::ErrorKind::TABLE,
        apr_manifest::ErrorKind::TABLE,
        durable_file::ErrorKind::TABLE,
        st_mmap::ErrorKind::TABLE,
        apr_models::ErrorKind::TABLE,
        model_file::ErrorKind::TABLE,
        apr_convert::ErrorKind::TABLE,
        apr_quant::ErrorKind::TABLE,
        hf_gguf::ErrorKind::TABLE,
        #[cfg(feature = "remote")]
        apr_remote::ErrorKind::TABLE,
        #[cfg(feature = "tables")]
        apr_table::ErrorKind::TABLE,
        pickle_core::ErrorKind::TABLE,
        zip_core::ErrorKind::TABLE,
        zip_core::Problem::TABLE,
        model_scan::Problem::TABLE,
        foreign_tensors::ErrorKind::TABLE,
        #[cfg(feature = "serve")]
        apr_serve::ErrorKind::TABLE,
        #[cfg(feature = "serve")]
        apr_serve::TABLE,
        wasm::ENTRIES,
        cli::ENTRIES,
    ]
    .into_iter()
    .flatten()
    // Its other codes are those of apr-container.
    .chain(apr_sealed::ErrorKind::TABLE.iter().filter(|entry| entry.code.starts_with("ac-sealed-")))
}

/// The entry of a code.
pub(crate) fn find(code: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.code == code)
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn every_code_of_every_crate_is_explained_once() {
        let all: BTreeSet<&str> = entries().map(|entry| entry.code).collect();
        assert_eq!(all.len(), entries().count(), "a code is explained twice");
        // The other tables declare the codes that they explain.
        let known: BTreeSet<&str> = wasm::ENTRIES.iter().map(|entry| entry.code).collect();
        let package = codes_of_package();
        let all: BTreeSet<&str> = package.iter().map(String::as_str).collect();
        let missing: Vec<_> = all.difference(&known).collect();
        let stale: Vec<_> = known.difference(&all).collect();
        assert!(missing.is_empty() && stale.is_empty(), "missing {missing:?}, stale {stale:?}");
    }

    #[test]
    fn every_code_that_a_crate_declares_is_explained() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut declared = 0;
        for entry in fs::read_dir(crates).unwrap().map(Result::unwrap) {
            // The macro and this text.
            if ["located-error", "apr-tools"].iter().any(|name| entry.file_name() == *name) {
                continue;
            }
            let is_declaration = |text: &&String| {
                text.contains("located_error::errors!") || text.contains("located_error::kinds!")
            };
            for text in sources(&[entry.path().join("src")]).iter().filter(is_declaration) {
                let parts: Vec<&str> = text.split('"').collect();
                let codes =
                    parts.windows(3).filter(|parts| parts[0].ends_with(" = ") && parts[2].starts_with(" ("));
                for code in codes.map(|parts| parts[1]) {
                    declared += 1;
                    assert!(find(code).is_some(), "{code}");
                }
            }
        }
        assert!(declared > 300, "{declared}");
    }

    /// The codes in the sources of the npm package, which this crate does not use.
    fn codes_of_package() -> BTreeSet<String> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apr-wasm");
        let texts = sources(&[package.join("src"), package.join("js")]);
        let words = texts.iter().flat_map(|text| text.split('"'));
        words.filter(|word| is_code_of_package(word)).map(str::to_owned).collect()
    }

    /// The files in these folders that exist, and in the folders below them.
    fn sources(folders: &[PathBuf]) -> Vec<String> {
        let mut folders: Vec<PathBuf> = folders.iter().filter(|folder| folder.is_dir()).cloned().collect();
        let mut texts = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                } else {
                    texts.push(String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned());
                }
            }
        }
        texts
    }

    fn is_code_of_package(word: &str) -> bool {
        let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '-';
        word.strip_prefix("aw-").is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_letter))
    }

    #[test]
    fn texts_are_sentences() {
        for entry in entries() {
            assert!(entry.meaning.ends_with('.'), "{}", entry.code);
            assert!(!entry.remedy.is_empty() && !entry.remedy.ends_with('.'), "{}", entry.code);
            assert!(!entry.remedy.contains('\n') && !entry.meaning.contains("  "), "{}", entry.code);
        }
    }
}
