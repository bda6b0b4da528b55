//! What a report of a file says: findings, formats, names of files.

use model_scan::{FileReport, Options, Problem, Verdict, scan_file, scan_named};

use crate::files::{PAYLOAD, archive, zip};

fn report(bytes: &[u8]) -> FileReport {
    scan_file(bytes, &Options::DEFAULT).expect("a report")
}

/// Member, offset, depth, opcode, name, code and bypass of each finding.
fn rows(report: &FileReport) -> Vec<String> {
    let row = |found: model_scan::Found<'_>| {
        let opcode = found.opcode.map_or("-".to_owned(), |opcode| opcode.to_string());
        let name = found.name.unwrap_or_default();
        let bypass = found.bypass.unwrap_or("-");
        format!("{} {} {} {opcode} {name} {} {bypass}", found.member, found.offset, found.depth, found.code)
    };
    report.findings().map(row).collect()
}

#[test]
fn findings_say_where_what_and_who_was_bypassed() {
    for (bytes, expected) in [
        (PAYLOAD.to_vec(), vec![" 0 0 GLOBAL os.system sc-dangerous-name -"]),
        (
            b"Ncasyncio.tasks\nf\n.".to_vec(),
            vec![" 1 0 GLOBAL asyncio.tasks.f sc-dangerous-name GHSA-f7qq-56ww-84cr"],
        ),
        (b"casyncio\nf\n.".to_vec(), vec![" 0 0 GLOBAL asyncio.f sc-dangerous-name GHSA-f7qq-56ww-84cr"]),
        (b"casyncios\nf\n.".to_vec(), vec![" 0 0 GLOBAL asyncios.f sc-unknown-name -"]),
        (b"\x80\x04ctorch\nnn.a\n.".to_vec(), vec![" 2 0 GLOBAL torch.nn.a sc-attribute-path modelscan 338"]),
        (b"ctorch\nfloat32\n)R.".to_vec(), vec![" 16 0 REDUCE torch.float32 sc-unexpected-use -"]),
        (b"N.N.".to_vec(), vec![" 2 0 -  sc-several-pickles -"]),
        (b"\x97.".to_vec(), vec![" 0 0 NEXT_BUFFER  sc-out-of-band -"]),
        (
            b"ctorch.storage\n_load_from_bytes\nB\x0c\0\0\0cos\nsystem\n.\x85R.".to_vec(),
            vec![" 0 1 GLOBAL os.system sc-dangerous-name -"],
        ),
        ([b"x".repeat(4), zip("a", b"N.")].concat(), vec![" 0 0 -  zc-leading -"]),
    ] {
        assert_eq!(rows(&report(&bytes)), expected, "{}", bytes.escape_ascii());
    }
    let mut wrong = zip("a", PAYLOAD);
    wrong[14] ^= 1;
    let directory = wrong.len() - 22 - 47;
    wrong[directory + 16] ^= 1;
    let found = report(&wrong);
    assert_eq!(
        rows(&found),
        ["a 0 0 GLOBAL os.system sc-dangerous-name -", "a 0 0 -  zc-checksum GHSA-mjqp-26hc-grxg"]
    );
    assert_eq!(found.findings().map(|found| found.verdict).max(), Some(Verdict::Dangerous));
    let config = zip("config.json", br#"{"a": {"auto_map": {"b": "c"}}}"#);
    assert_eq!(rows(&report(&config)), ["config.json 7 0 -  sc-remote-code -"]);
}

#[test]
fn a_contradiction_is_suspicious() {
    let mut bytes = zip("a", b"N.");
    bytes[30] = b'b';
    assert_eq!(
        (report(&bytes).verdict(), rows(&report(&bytes))),
        (Verdict::Suspicious, vec!["a 0 0 -  zc-local-name GHSA-7q5r-7gvp-wc82".to_owned()])
    );
}

#[test]
fn dropped_findings_are_counted_over_all_members() {
    let mut options = Options::DEFAULT;
    options.kept = 0;
    let bytes = archive(&[("a", b"cos\nsystem\n."), ("b", b"N.N.")]);
    let report = scan_file(bytes.as_slice(), &options).expect("a report");
    assert_eq!((report.verdict(), report.dropped(), report.findings().count()), (Verdict::Dangerous, 3, 0));
}

#[test]
fn formats_have_names() {
    let torch = zip("m/data.pkl", b"N.");
    let script = archive(&[("m/data.pkl", b"N."), ("m/constants.pkl", b"N.")]);
    let code = archive(&[("m/data.pkl", b"N."), ("m/code/a.py", b"a")]);
    let other_code = archive(&[("m/data.pkl", b"N."), ("code/a.py", b"a"), ("m/constants.pkl.x", b"a")]);
    let keras = archive(&[("config.json", b"{}"), ("metadata.json", b"{}")]);
    let weights = archive(&[("config.json", b"{}"), ("model.weights.h5", b"")]);
    let no_keras = archive(&[("metadata.json", b"{}"), ("model.weights.h5", b"")]);
    let known = ("known", "known");
    for (bytes, name, of_known) in [
        (torch.as_slice(), "torch", "torch"),
        (&script, "torchscript", "torchscript"),
        (&code, "torchscript", "torchscript"),
        (&other_code, "torch", "torch"),
        (&keras, "keras", "keras"),
        (&weights, "keras", "keras"),
        (&no_keras, "zip", "known"),
        (&zip("data.pkl", b"N."), "zip", "known"),
        (b"N.", "pickle", "pickle"),
        (b"\x93NUMPY", "npy", "known"),
        (b"\x1f\x8b", "compressed", "known"),
        (b"text", "unknown", "known"),
        (b"", "empty", "empty"),
    ] {
        let report = report(bytes);
        let found = |known| report.format_of(bytes.len() as u64, known).0;
        assert_eq!((found(None), found(Some(known))), (name, of_known), "{}", bytes.escape_ascii());
    }
    assert_eq!(report(b"N.").format_of(2, Some(("torch-legacy", "known"))).1, "known");
}

#[test]
fn names_of_files_tell_code_and_templates() {
    let judged = |name: &str, bytes: &[u8]| {
        let report = scan_named(bytes, name, &Options::DEFAULT).expect("a report");
        let format = report.format_of(bytes.len() as u64, None).0;
        let codes: Vec<_> = report.findings().map(|found| found.code).collect();
        (report.verdict(), codes.concat(), format)
    };
    let (safe, suspicious) = (Verdict::Safe, Verdict::Suspicious);
    for name in ["model.py", "a.PYW", "a.b.pyc"] {
        assert_eq!(judged(name, b"x = 1\n"), (suspicious, "sc-python-file".to_owned(), "python"));
        assert_eq!(judged(name, b""), (safe, String::new(), "empty"));
    }
    for name in ["chat_template.jinja", "a.jinja2", "a.J2"] {
        assert_eq!(judged(name, b"{{ x }}"), (safe, "sc-chat-template".to_owned(), "unknown"));
        assert_eq!(judged(name, b"{{ x.__class__ }}").1, "sc-template-code");
        assert_eq!(judged(name, b"").1, "");
        assert_eq!(judged(name, &vec![b'x'; (1 << 20) + 1]).1, "sc-unopened", "too long to be judged");
    }
    assert_eq!(judged("model.txt", b"x = 1\n"), (safe, String::new(), "unknown"));
    assert_eq!(judged("libop.so", b"\x7fELF\x02\x01").1, "sc-code-file");
    assert_eq!(judged("libop.so.bin", b"\x7fELF\x02\x01").1, "sc-unopened");
    // A template is a note, a program is not.
    assert_eq!(judged("a.jinja", b"#!/bin/sh\n").1, "sc-chat-templatesc-unopened");
    let unknown = |name, bytes: &[u8]| {
        let mut report = scan_named(bytes, name, &Options::DEFAULT).expect("a report");
        report.check_name(name, None);
        report.verdict()
    };
    assert_eq!((unknown("a.PT", b"\xfe\xff"), unknown("a.bin", b"\xfe\xff")), (suspicious, safe));
    assert_eq!((unknown("a.pkl", b"N."), unknown("a.pkl", b"cos\nsystem\n.")), (safe, Verdict::Dangerous));
    assert_eq!(Problem::ChatTemplate {}.verdict(), safe);
}

#[test]
fn content_of_another_format_than_that_of_the_name_is_suspicious() {
    let verdict = |name: &str, known| {
        let mut report = scan_named(b"~".as_slice(), name, &Options::DEFAULT).expect("a report");
        report.check_name(name, known);
        report.verdict()
    };
    for (name, known) in [
        ("a.gguf", "gguf"),
        ("a.GGUF", "git-lfs"),
        ("a.h5", "hdf5"),
        ("a.hdf5", "mat"),
        ("a.keras", "keras"),
        ("a.npy", "npy"),
        ("a.npz", "npz"),
        ("a.onnx", "onnx"),
        ("a.onnx", "onnx-ml"),
        ("a.onnx", "git-lfs-conflict"),
        ("a.pt", "torch"),
        ("a.ckpt", "tf-checkpoint"),
        ("a.joblib", "zlib"),
        ("a.safetensors", "sealed"),
        ("a.tflite", "tflite"),
        ("a.pkl", "text"),
        ("a.bin", "executable"),
        ("gguf", "executable"),
    ] {
        assert_eq!(verdict(name, Some(known)), Verdict::Safe, "{name} {known}");
    }
    for (name, known) in [
        ("a.gguf", "executable"),
        ("a.gguf", "onnx"),
        ("a.safetensors", "gguf"),
        ("a.pkl", "safetensors"),
        ("a.npy", "zip"),
        ("a.npz", "npy"),
        ("a.pt", "image"),
    ] {
        assert_eq!(verdict(name, Some(known)), Verdict::Suspicious, "{name} {known}");
    }
    let mut report = scan_named(b"N.".as_slice(), "a.onnx", &Options::DEFAULT).expect("a report");
    report.check_name("a.onnx", None);
    assert_eq!(report.verdict(), Verdict::Safe, "a pickle that no reader of models knows");
}
