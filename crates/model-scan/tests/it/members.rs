//! Members of archives and compressed files: which are read, how deep, and what fails.

use core::cell::Cell;

use model_scan::{FileReport, Format, Options, Problem, Verdict, scan_file, scan_named};
use read_at::{Error, ReadAt};

use crate::files::{PAYLOAD, archive, judged, tar_member, zip};

/// Deflate without compression.
fn stored_blocks(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let blocks: Vec<&[u8]> = bytes.chunks(0xffff).collect();
    for (idx, block) in blocks.iter().enumerate() {
        let len = block.len() as u16;
        stream.push(u8::from(idx + 1 == blocks.len()));
        stream.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
        stream.extend(*block);
    }
    stream
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    [&[0x78, 0x01], stored_blocks(bytes).as_slice(), &(high << 16 | low).to_be_bytes()].concat()
}

/// A ZIP archive of one file, whose data are deflated.
pub(crate) fn deflated(name: &str, data: &[u8]) -> Vec<u8> {
    let (packed, plain) = (stored_blocks(data), zip(name, data));
    let crc = plain[14..18].to_vec();
    let mut bytes = zip(name, &packed);
    let directory = 30 + name.len() + packed.len();
    for at in [8, directory + 10] {
        bytes[at] = 8; // The method.
        bytes[at + 6..at + 10].copy_from_slice(&crc);
        bytes[at + 14..at + 18].copy_from_slice(&(data.len() as u32).to_le_bytes());
    }
    bytes
}

fn report(bytes: &[u8]) -> FileReport {
    scan_file(bytes, &Options::DEFAULT).expect("a report")
}

/// What was not opened: the member and why.
fn unopened(report: &FileReport) -> Vec<(&str, &str)> {
    let reason = |remark| match remark {
        &model_scan::Remark { ref path, problem: Problem::Unopened { reason }, .. } => {
            (path.as_str(), reason)
        }
        other => panic!("{other:?}"),
    };
    report.remarks.iter().map(reason).collect()
}

#[test]
fn members_are_read_or_are_elements() {
    let torch = |name: &str, data: &[u8]| archive(&[("m/data.pkl", b"N."), (name, data)]);
    let script =
        |name: &str, data: &[u8]| archive(&[("m/data.pkl", b"N."), ("m/constants.pkl", b"N."), (name, data)]);
    let keras =
        |name: &str, data: &[u8]| archive(&[("metadata.json", b"{}"), ("config.json", b"{}"), (name, data)]);
    let (safe, dangerous) = (Verdict::Safe, Verdict::Dangerous);
    let array = |kind: &str, data: &[u8]| {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (1,), }}");
        [b"\x93NUMPY\x01\0v\0".as_slice(), format!("{header:<117}\n").as_bytes(), data].concat()
    };
    let (objects, elements) = (array("|O", PAYLOAD), array("<f8", &[0; 8]));
    for (number, (bytes, verdict)) in [
        (torch("m/data/0", PAYLOAD), safe),
        (torch("m/data/0x", PAYLOAD), dangerous),
        (torch("m/constants/0", PAYLOAD), dangerous),
        (torch("data/0", PAYLOAD), dangerous),
        (script("m/constants/0", PAYLOAD), safe),
        (script("m/constants/x", PAYLOAD), dangerous),
        (script("m/other/0", PAYLOAD), dangerous),
        (script("m/code/a.py", b"torch.save(x)"), Verdict::Suspicious),
        // Not of the program: Python.
        (script("m/extra/code/a.py", b"x"), Verdict::Suspicious),
        (script("code/a.py", b"x"), Verdict::Suspicious),
        (script("m/code/a.py", b"x"), safe),
        // Keras does not need the other members for it.
        (zip("config.json", br#"{"class_name":"f","module":"os"}"#), dangerous),
        // An array of objects is read by NumPy, whatever else is in the archive.
        (torch("m/data/0", &objects), dangerous),
        (torch("m/data/0", &elements), safe),
        (script("m/constants/0", &objects), dangerous),
        // `model_from_json` reads a file of any name.
        (keras("other.json", br#"{"class_name":"f","config":{"module":"os"}}"#), dangerous),
        (keras("other.json", br#"{"class_name":"f","module":"os"}"#), safe),
        (
            archive(&[("metadata.json", b"{}"), ("config.json", br#"{"class_name":"f","module":"os"}"#)]),
            dangerous,
        ),
        (deflated("a", PAYLOAD), dangerous),
        // The name of a folder, which NumPy reads as an array.
        (zip("a/", PAYLOAD), dangerous),
        (zip("a/", b""), safe),
        // No array, although the length of a header is where an array has it.
        (deflated("a", &[b"K\0K\0NK\x01M\x02\0".as_slice(), b"0000", PAYLOAD].concat()), dangerous),
        (deflated("a", &[PAYLOAD, &[0; 5000]].concat()), dangerous),
    ]
    .iter()
    .enumerate()
    {
        assert_eq!(judged(bytes).1, *verdict, "{number}");
    }
}

#[test]
fn another_pickle_in_an_archive_of_torch_is_suspicious() {
    let names = |format, files: &[(&str, &[u8])]| {
        let report = report(&archive(files));
        assert_eq!(report.format, format);
        let found: Vec<_> = report.findings().map(|found| (found.member.to_owned(), found.code)).collect();
        found
    };
    let side = |name: &str| vec![(name.to_owned(), "sc-side-pickle")];
    assert_eq!(names(Format::Torch, &[("m/data.pkl", b"N."), ("m/a", b"N.")]), side("m/a"));
    assert_eq!(names(Format::Torch, &[("m/data.pkl", b"N."), ("a", b"N.")]), side("a"));
    assert_eq!(names(Format::Torch, &[("m/data.pkl", b"N."), ("m/a", b"text")]), []);
    assert_eq!(names(Format::TorchScript, &[("m/data.pkl", b"N."), ("m/constants.pkl", b"N.")]), []);
    assert_eq!(names(Format::Zip, &[("a", b"N."), ("b", b"N.")]), []);
}

#[test]
fn names_of_members_count_as_those_of_files() {
    let codes = |files: &[(&str, &[u8])]| {
        let report = report(&archive(files));
        let found: Vec<_> =
            report.findings().map(|found| format!("{} {}", found.member, found.code)).collect();
        (report.verdict(), found)
    };
    let suspicious = |name: &str, code| (Verdict::Suspicious, vec![format!("{name} {code}")]);
    for (name, code) in [
        ("code/inference.py", "sc-python-file"),
        ("lib/op.so.1", "sc-code-file"),
        ("META-INF/A.class", "sc-code-file"),
        ("a.whl", "sc-code-file"),
        ("setup.sh", "sc-code-file"),
    ] {
        assert_eq!(codes(&[(name, b"~")]), suspicious(name, code));
    }
    let template: &[u8] = b"{{ x.__class__ }}";
    assert_eq!(codes(&[("a.jinja", template)]), suspicious("a.jinja", "sc-template-code"));
    let manifest: &[u8] = br#"{"model": {"handler": "os:listdir"}}"#;
    assert_eq!(
        codes(&[("MAR-INF/MANIFEST.json", manifest)]),
        suspicious("MAR-INF/MANIFEST.json", "sc-code-setting")
    );
    // The name in a compressed file is that of the file without its last ending.
    let packed = |name| {
        let report = scan_named(zlib(b"x").as_slice(), name, &Options::DEFAULT).expect("a report");
        report.findings().map(|found| found.code).collect::<Vec<_>>()
    };
    assert_eq!(
        (packed("a.py.gz"), packed("a.py"), packed("py")),
        (vec!["sc-python-file"], vec!["sc-python-file"], vec![])
    );
}

#[test]
fn packages_of_pytorch_with_code_are_dangerous() {
    let runs = |files: &[(&str, &[u8])]| {
        report(&archive(files))
            .findings()
            .any(|found| found.code == "sc-package-code" && found.member.ends_with("a.py"))
    };
    let code: (&str, &[u8]) = ("p/a.py", b"x");
    let script: (&str, &[u8]) = ("p/code/a.py", b"x");
    let extern_modules: (&str, &[u8]) = ("p/.data/extern_modules", b"~");
    let version: (&str, &[u8]) = ("p/.data/version", b"6");
    let data: (&str, &[u8]) = ("p/data.pkl", b"N.");
    assert!(
        runs(&[extern_modules, code]) && runs(&[version, code]) && runs(&[(".data/version", b"6"), code])
    );
    assert!(
        !runs(&[code])
            && !runs(&[("p/x.data/version", b"6"), code])
            && !runs(&[("p/.data/versions", b"6"), code])
    );
    assert!(!runs(&[extern_modules, ("p/a.txt", b"x")]) && runs(&[version, script]));
    // TorchScript, unless its modules are those of a package.
    assert!(!runs(&[version, data, script]) && runs(&[extern_modules, data, script]));
    assert!(runs(&[version, data, code]));
}

#[test]
fn storages_of_many_checkpoints_are_read() {
    let roots = |count: usize| {
        let names: Vec<String> =
            (0..count).flat_map(|idx| [format!("{idx}/data.pkl"), format!("{idx}/data/0")]).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b"N."[..])).collect();
        report(&archive(&files)).parts.len()
    };
    assert_eq!((roots(16), roots(17)), (16, 18));
}

#[test]
fn what_was_not_opened_says_why() {
    let damaged = |mut bytes: Vec<u8>, at: usize| {
        bytes[at] ^= 0xff;
        bytes
    };
    let expands = || deflated("a", &[0; 40]);
    let mut little = Options::DEFAULT;
    little.inflated = Some(39);
    for (bytes, options, expected) in [
        (
            [zlib(b"N.").as_slice(), b"more"].concat(),
            Options::DEFAULT,
            ("", "bytes after the compressed data"),
        ),
        (damaged(zlib(b"N."), 2), Options::DEFAULT, ("", "cannot be decompressed")),
        (zlib(&[0; 40]), little, ("", "expands beyond the limit")),
        (expands(), little, ("a", "expands beyond the limit")),
        (
            damaged(deflated("a", &[PAYLOAD, &[0; 70_000]].concat()), 31 + 5 + 0xffff),
            Options::DEFAULT,
            ("a", "cannot be read"),
        ),
        (damaged(expands(), 32), Options::DEFAULT, ("a", "cannot be read")),
        #[cfg(not(feature = "lz4"))]
        (b"\x04\x22\x4d\x18".to_vec(), Options::DEFAULT, ("", "compressed with bzip2, xz, lzma or lz4")),
    ] {
        let report = scan_file(bytes.as_slice(), &options).expect("a report");
        assert_eq!(unopened(&report), [expected]);
    }
    little.inflated = Some(40);
    for bytes in [zlib(&[0; 40]), expands()] {
        assert_eq!(unopened(&scan_file(bytes.as_slice(), &little).expect("a report")), []);
    }
}

#[test]
fn what_is_decompressed_counts_over_all_members() {
    let mut options = Options::DEFAULT;
    options.inflated = Some(100);
    let judged = |bytes: &[u8]| unopened(&scan_file(bytes, &options).expect("a report")).len();
    let both = |first: &[u8], second: &[u8]| archive(&[("a", &zlib(first)), ("b", &zlib(second))]);
    assert_eq!((judged(&both(&[0; 50], &[0; 50])), judged(&both(&[0; 50], &[0; 51]))), (0, 1));
    let nested =
        |first: &[u8], second: &[u8]| archive(&[("a", &deflated("a", first)), ("b", &deflated("b", second))]);
    assert_eq!((judged(&nested(&[0; 50], &[0; 50])), judged(&nested(&[0; 50], &[0; 51]))), (0, 1));
}

#[test]
fn whatever_contains_another_file_is_a_level() {
    for pack in [
        zlib as fn(&[u8]) -> Vec<u8>,
        |data| zip("a", data),
        |data| deflated("a", data),
        |data| tar_member(b"a", data, u8::into),
    ] {
        let mut nested = PAYLOAD.to_vec();
        for _ in 0..Options::DEFAULT.depth {
            nested = pack(&nested);
        }
        assert_eq!(judged(&nested).1, Verdict::Dangerous);
        nested = pack(&nested);
        let report = report(&nested);
        assert!(matches!(unopened(&report).as_slice(), [(_, "nested too deep")]));
    }
}

#[test]
fn memory_is_that_of_the_length_of_the_file() {
    // Of a file as it is: as many values as it has bytes.
    let tuple = [b"(".as_slice(), &b"]".repeat(200_000), b"t."].concat();
    assert_eq!(judged(&tuple), (Format::Pickle, Verdict::Safe));
    // Of what is decompressed: half the length of the file, and a number.
    let is_limited = |values: usize| {
        let bomb = crate::memory::bomb(b']', values);
        let bytes = archive(&[("elements", &vec![b'~'; 100_000 - bomb.len()]), ("a", &bomb)]);
        report(&bytes).findings().any(|found| found.message.contains("pk-limit"))
    };
    assert!(!is_limited(115_000) && is_limited(117_000));
}

#[test]
fn arrays_of_elements_are_not_read_to_their_end() {
    let array = |kind: &str, data: &[u8]| {
        let header = format!("{{'descr': '{kind}'}}");
        [b"\x93NUMPY\x01\0", [header.len() as u8, 0].as_slice(), header.as_bytes(), data].concat()
    };
    let mut options = Options::DEFAULT;
    options.inflated = Some(5000);
    let judged =
        |data: &[u8]| scan_file(deflated("a", data).as_slice(), &options).expect("a report").verdict();
    assert_eq!(judged(&array("<f4", &[0; 10_000])), Verdict::Safe);
    assert_eq!(judged(&array("|O8", &[PAYLOAD, &[0; 10_000]].concat())), Verdict::Dangerous);
    // An array is at the beginning.
    let padding = vec![0; 4096 - PAYLOAD.len()];
    assert_eq!(judged(&[PAYLOAD, &padding, &array("<f4", &[])].concat()), Verdict::Dangerous);
}

#[test]
fn tar_archives_are_read_to_their_end() {
    let plain = |name: &[u8], data: &[u8]| tar_member(name, data, u8::into);
    let signed: fn(u8) -> i64 = |byte| byte.cast_signed().into();
    let first = plain(b"a", &[b'~'; 600]);
    for archive in [
        [first.as_slice(), &plain(b"b", PAYLOAD)].concat(),
        [first.as_slice(), &[0; 512], &plain(b"b", PAYLOAD)].concat(),
        tar_member(b"\xe9", PAYLOAD, u8::into),
        tar_member(b"\xe9", PAYLOAD, signed),
    ] {
        assert_eq!(judged(&archive), (Format::Tar, Verdict::Dangerous));
    }
    // A length of all that is left, and of one more.
    let mut cut = [first.as_slice(), &plain(b"b", &[b'~'; 512])].concat();
    assert_eq!(judged(&cut), (Format::Tar, Verdict::Safe));
    cut.pop();
    assert_eq!(unopened(&report(&cut)), [("b", "tar header without a length")]);
    let members = |name: &[u8]| report(&plain(name, PAYLOAD)).parts.remove(0).path;
    assert_eq!((members(b"name"), members(&[b'n'; 120])), ("name".to_owned(), "n".repeat(100)));
}

/// Bytes one of whose reads fails.
struct Failing<'b> {
    bytes: &'b [u8],
    /// Reads until then.
    left: Cell<usize>,
}

impl ReadAt for Failing<'_> {
    fn total_len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        if left == 0 {
            Err(Error::from_source(core::fmt::Error))
        } else {
            self.bytes.read_exact_at(offset, out)
        }
    }
}

#[test]
fn no_read_that_fails_is_a_finding() {
    let torch =
        archive(&[("m/data.pkl", b"N."), ("m/constants.pkl", b"N."), ("m/code/a.py", b"torch.save(x)")]);
    let keras = archive(&[("metadata.json", b"{}"), ("config.json", b"{}"), ("a", &deflated("b", PAYLOAD))]);
    let gguf = [b"GGUF\x03\0\0\0".as_slice(), &[0; 8], &[1, 0, 0, 0, 0, 0, 0, 0], &[0; 100]].concat();
    let array = [b"\x93NUMPY\x01\0\x10\0{'descr': '|O8'}".as_slice(), PAYLOAD].concat();
    for bytes in
        [&zlib(PAYLOAD), &torch, &keras, &gguf, &array, &deflated("a", PAYLOAD), PAYLOAD, b"N)))", b"text"]
    {
        let mut reads = 0;
        loop {
            let source = Failing { bytes, left: Cell::new(reads) };
            match scan_file(&source, &Options::DEFAULT) {
                Err(error) => assert_eq!(error.code(), "pk-read", "{reads}"),
                Ok(_) if source.left.get() > reads => panic!("{reads}: not reported"),
                Ok(_) => break,
            }
            reads += 1;
        }
        assert!(reads > 1, "{reads}");
    }
}

#[test]
fn long_words_in_files_are_no_encodings() {
    let stream = ["c_codecs\nencode\n(Vab\nS'", "latin1".repeat(50).as_str(), "'\ntR."].concat();
    let source = Failing { bytes: stream.as_bytes(), left: Cell::new(usize::MAX) };
    let report = scan_file(&source, &Options::DEFAULT).expect("a report");
    let codes: Vec<_> =
        report.parts.iter().flat_map(|part| &part.report.findings).map(|f| f.problem.code()).collect();
    assert_eq!(codes, ["sc-unexpected-use"]);
}

#[test]
fn exported_graphs_have_operations_of_pytorch() {
    for (name, operation, verdict) in [
        ("m/models/model.json", "aten.add.Tensor", Verdict::Safe),
        ("m/models/model.json", "aten.from_file.default", Verdict::Suspicious),
        ("serialized_exported_program.json", "mylib.run.default", Verdict::Suspicious),
        ("m/models/model.txt", "mylib.run.default", Verdict::Safe),
        ("m/model.json", "mylib.run.default", Verdict::Safe),
    ] {
        let graph = format!(r#"{{"target": "torch.ops.{operation}"}}"#);
        assert_eq!(judged(&zip(name, graph.as_bytes())).1, verdict, "{name} {operation}");
    }
}
