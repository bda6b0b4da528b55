//! Archives of PyTorch, NumPy and Keras have no findings; hostile ones have theirs.

use std::path::{Path, PathBuf};

use zip_core::{Archive, Limits};

/// Vectors whose archives contradict themselves.
const FINDINGS: &[(&str, &[&str])] = &[
    ("hostile/numpy/overlap.npz", &["zc-local-name", "zc-overlap", "zc-gap"]),
    ("hostile/numpy/traversal.npz", &["zc-name", "zc-name"]),
    ("hostile/torch/bad_crc.pt", &["zc-checksum"]),
    ("hostile/torch/flag_encrypted.pt", &["zc-encrypted"]),
    ("hostile/torch/local_name.pt", &["zc-local-name"]),
    ("hostile/torch/other_folder.pt", &["zc-name"]),
    ("hostile/torch/pickle_then_zip.pt", &["zc-leading"]),
    ("hostile/torch/two_data_pkl.pt", &["zc-duplicate"]),
];

#[test]
fn contradictions_are_found_and_nothing_else() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import");
    let mut folders: Vec<PathBuf> = vec![root.clone()];
    let mut archives = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("a file");
            let name = path.strip_prefix(&root).expect("inside").display().to_string();
            let Ok((archive, found)) = Archive::open(bytes.as_slice(), &Limits::DEFAULT) else {
                assert!(!bytes.starts_with(b"PK\x03\x04"), "{name}");
                continue;
            };
            archives += 1;
            let mut codes: Vec<_> = found.iter().map(|finding| finding.problem.code()).collect();
            for entry in archive.entries() {
                let problem = archive.member(entry).and_then(|mut member| member.verify());
                codes.extend(
                    problem.unwrap_or_else(|error| panic!("{name}: {error}")).map(|problem| problem.code()),
                );
            }
            let expected =
                FINDINGS.iter().find(|(vector, _)| *vector == name).map_or(&[][..], |(_, codes)| codes);
            assert_eq!(codes, expected, "{name}");
        }
    }
    assert!(archives > 80, "{archives}");
}
