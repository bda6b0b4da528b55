//! Every vector of foreign formats: a verdict among those that may be given, and every name that has to be reported.

use std::path::{Path, PathBuf};

use model_scan::{Name, Options, Origin, Verdict, scan, scan_file};
use serde_json::Value;

/// A vector and what its sidecar says.
pub(crate) struct Vector {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) facts: Value,
}

impl Vector {
    /// Its bytes: stored, or repeated as the field `generate` says.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let Some(pieces) = self.facts["generate"].as_array() else {
            return std::fs::read(&self.path).expect("a file");
        };
        let piece = |piece: &Value| {
            let (hex, count) = (piece[0].as_str().expect("hex"), piece[1].as_u64().expect("a count"));
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("a byte");
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            bytes.repeat(usize::try_from(count).expect("a size"))
        };
        pieces.iter().flat_map(piece).collect()
    }

    pub(crate) fn may_be(&self, verdict: Verdict) -> bool {
        let allowed = self.facts["scan"].as_array().expect("verdicts");
        let may = |word: &str| allowed.iter().any(|allowed| allowed == word);
        may(verdict.name()) || verdict == Verdict::Safe && may("not-applicable")
    }

    pub(crate) fn format(&self) -> &str {
        self.facts["format"].as_str().unwrap_or_default()
    }
}

/// All vectors.
pub(crate) fn vectors() -> Vec<Vector> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import");
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if let Some(file) = path.to_str().expect("text").strip_suffix(".vector.json") {
                let text = std::fs::read_to_string(&path).expect("a sidecar");
                let name = Path::new(file).strip_prefix(&root).expect("inside").display().to_string();
                let facts = serde_json::from_str(&text).expect("JSON");
                found.push(Vector { name, path: file.into(), facts });
            }
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

/// `[module, name, offset, opcode, member]`; offsets of later pickles of a PyTorch file count from their own starts.
fn is_name(name: &Name, expected: &Value) -> bool {
    let in_part = expected[4].is_string();
    expected[0] == name.module.as_str()
        && expected[1] == name.name.as_str()
        && (in_part || expected[2] == name.offset)
        && expected[3] == name.opcode.name()
}

/// Formats that are one stream.
const STREAMS: [&str; 7] = [
    "pickle",
    "pickle-numpy",
    "pickle-sklearn",
    "paddle-pickle",
    "joblib",
    "joblib-sklearn",
    "pytorch-legacy",
];

/// Starts of compressed files, which are not streams.
const COMPRESSED: [&[u8]; 9] = [
    b"\x1f\x8b",
    b"\xfd7zXZ",
    b"BZh",
    b"\x5d\0\0",
    b"\x04\x22\x4d\x18",
    b"ZF0",
    b"\x78\x5e",
    b"\x78\x01",
    b"\x78\x9c",
];

#[test]
fn streams_get_one_of_their_verdicts() {
    let (mut count, mut failures) = (0, Vec::new());
    for vector in vectors().iter().filter(|vector| STREAMS.contains(&vector.format())) {
        let (name, bytes) = (&vector.name, vector.bytes());
        if COMPRESSED.iter().any(|start| bytes.starts_with(start)) {
            continue;
        }
        count += 1;
        let report = scan(bytes.as_slice(), Origin::File, &Options::DEFAULT).expect("a report");
        if !vector.may_be(report.verdict()) {
            failures.push(format!("{name}: {:?}\n{:#?}", report.verdict(), report.findings));
        }
        for expected in vector.facts["globals"].as_array().into_iter().flatten() {
            if !report.names.iter().any(|name| is_name(name, expected)) {
                failures.push(format!("{name}: {expected} in {:?}", report.names));
            }
        }
    }
    assert!(count > 85, "{count}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn large_and_nested_streams_are_not_safe_by_exhaustion() {
    for (stream, verdict) in [
        ([b"\x80\x02".as_slice(), &b"]".repeat(60_000), &b"a".repeat(59_999), b"."].concat(), Verdict::Safe),
        ([b"\x80\x02)".as_slice(), &b"\x85".repeat(200_000), b"."].concat(), Verdict::Safe),
        ([b"\x80\x02".as_slice(), &b"(".repeat(1_000_000), b"."].concat(), Verdict::Malformed),
        (b"cos\nsystem\n".repeat(100_000), Verdict::Dangerous),
    ] {
        let report = scan(stream.as_slice(), Origin::File, &Options::DEFAULT).expect("a report");
        assert_eq!(report.verdict(), verdict);
        assert!(report.findings.len() <= Options::DEFAULT.kept);
    }
}

#[test]
fn files_get_one_of_their_verdicts() {
    let (mut count, mut failures) = (0, Vec::new());
    for vector in vectors().iter().filter(|vector| !vector.path.is_dir()) {
        let (name, bytes) = (&vector.name, vector.bytes());
        count += 1;
        let report = scan_file(bytes.as_slice(), &Options::DEFAULT).expect("a report");
        if !vector.may_be(report.verdict()) {
            failures.push(format!("{name}: {:?}\n{report:#?}", report.verdict()));
        }
        for expected in vector.facts["globals"].as_array().into_iter().flatten() {
            let names = report.parts.iter().flat_map(|part| &part.report.names);
            if !names.into_iter().any(|name| is_name(name, expected)) {
                failures.push(format!("{name}: {expected}\n{report:#?}"));
            }
        }
    }
    assert!(count > 330, "{count}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
