//! Every vector: a verdict among those that may be given, and every name that has to be reported.

use std::path::{Path, PathBuf};

use pickle_scan::{Format, Options, Origin, Report, Verdict, scan, scan_file};
use serde_json::Value;

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/pickle")
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Safe => "safe",
        Verdict::Suspicious => "suspicious",
        Verdict::Dangerous => "dangerous",
        Verdict::Malformed => "malformed",
    }
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

/// Starts of compressed files, which are not opened here.
const COMPRESSED: [&[u8]; 6] = [b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x78\x5e", b"\x78\x01", b"\x78\x9c"];

#[test]
fn streams_get_one_of_their_verdicts() {
    let text = std::fs::read_to_string(vectors().join("verdicts.json")).expect("the list");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let (mut count, mut failures) = (0, Vec::new());
    for vector in list["vectors"].as_array().expect("a list") {
        let (file, format) =
            (vector["file"].as_str().expect("a name"), vector["format"].as_str().expect("a format"));
        let bytes = std::fs::read(vectors().join(file)).expect("a file");
        if !STREAMS.contains(&format) || COMPRESSED.iter().any(|start| bytes.starts_with(start)) {
            continue;
        }
        count += 1;
        let report = scan(bytes.as_slice(), Origin::File, &Options::DEFAULT).expect("a report");
        let verdict = word(report.verdict());
        let allowed = vector["verdicts"].as_array().expect("verdicts");
        if !allowed.iter().any(|allowed| allowed == verdict) {
            failures.push(format!("{file}: {verdict}, not {allowed:?}\n{:#?}", report.findings));
        }
        for name in vector["globals"].as_array().into_iter().flatten() {
            if !has_name(&report, name) {
                failures.push(format!("{file}: {name} in {:?}", report.names));
            }
        }
    }
    assert!(count > 85, "{count}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// `[module, name, offset, opcode, member]`; offsets of later pickles of a PyTorch file count from their own starts.
fn has_name(report: &Report, expected: &Value) -> bool {
    let in_part = expected[4].is_string();
    report.names.iter().any(|name| {
        expected[0] == name.module.as_str()
            && expected[1] == name.name.as_str()
            && (in_part || expected[2] == name.offset)
            && expected[3] == name.opcode.name()
    })
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

/// Formats whose code is not in pickles: their readers judge it.
const OTHER_CODE: [&str; 3] = ["keras", "keras-v3", "safetensors"];

#[test]
fn files_get_one_of_their_verdicts() {
    let text = std::fs::read_to_string(vectors().join("verdicts.json")).expect("the list");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    let (mut count, mut failures) = (0, Vec::new());
    for vector in list["vectors"].as_array().expect("a list") {
        let (file, format) =
            (vector["file"].as_str().expect("a name"), vector["format"].as_str().expect("a format"));
        if OTHER_CODE.contains(&format) {
            continue;
        }
        count += 1;
        let bytes = std::fs::read(vectors().join(file)).expect("a file");
        let report = scan_file(bytes.as_slice(), &Options::DEFAULT).expect("a report");
        let verdict = word(report.verdict());
        let allowed = vector["verdicts"].as_array().expect("verdicts");
        let may = |verdict: &str| allowed.iter().any(|allowed| allowed == verdict);
        let not_applicable =
            may("not-applicable") && matches!(report.format, Format::Other | Format::Numpy | Format::Zip);
        let expected = may(verdict) || (verdict == "safe" && not_applicable);
        if !expected {
            failures.push(format!("{file}: {verdict}, not {allowed:?}\n{report:#?}"));
        }
        for name in vector["globals"].as_array().into_iter().flatten() {
            if !report.parts.iter().any(|part| has_name(&part.report, name)) {
                failures.push(format!("{file}: {name}\n{report:#?}"));
            }
        }
    }
    assert!(count > 200, "{count}");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n"));
}
