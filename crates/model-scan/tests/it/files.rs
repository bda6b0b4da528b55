//! Files that are no plain stream.

use model_scan::{Format, Options, Verdict, scan_file};

pub(crate) const PAYLOAD: &[u8] = b"cos\nsystem\n(S':'\ntR.";

pub(crate) fn judged(bytes: &[u8]) -> (Format, Verdict) {
    let report = scan_file(bytes, &Options::DEFAULT).expect("a report");
    (report.format, report.verdict())
}

/// A tar archive of one file, of the oldest kind: without a magic number.
fn tar(name: &str, data: &[u8]) -> Vec<u8> {
    [tar_member(name.as_bytes(), data, u8::into), vec![0; 1024]].concat()
}

/// A member of a tar archive; `value` is how its checksum takes bytes.
pub(crate) fn tar_member(name: &[u8], data: &[u8], value: fn(u8) -> i64) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name);
    header[124..136].copy_from_slice(format!("{:011o}\0", data.len()).as_bytes());
    header[148..156].fill(b' ');
    let sum: i64 = header.iter().copied().map(value).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = data.len().next_multiple_of(512) - data.len();
    [&header, data, &vec![0; padding]].concat()
}

/// A ZIP archive of one stored file.
pub(crate) fn zip(name: &str, data: &[u8]) -> Vec<u8> {
    archive(&[(name, data)])
}

/// A ZIP archive of stored files.
pub(crate) fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut locals, mut directory) = (Vec::new(), Vec::new());
    for (name, data) in files {
        let crc = data.iter().fold(!0_u32, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        });
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend((!crc).to_le_bytes());
        common.extend([(data.len() as u32).to_le_bytes(); 2].concat());
        common.extend([name.len() as u8, 0, 0, 0]);
        let at = (locals.len() as u32).to_le_bytes();
        directory.extend([b"PK\x01\x02\x14\0".as_slice(), &common, &[0; 10], &at, name.as_bytes()].concat());
        locals.extend([b"PK\x03\x04".as_slice(), &common, name.as_bytes(), data].concat());
    }
    let (len, at) = (directory.len() as u32, locals.len() as u32);
    let count = (files.len() as u16).to_le_bytes();
    let end = [
        b"PK\x05\x06\0\0\0\0".as_slice(),
        &[count; 2].concat(),
        &len.to_le_bytes(),
        &at.to_le_bytes(),
        &[0, 0],
    ];
    [locals, directory, end.concat()].concat()
}

#[test]
fn unknown_names_are_found_whatever_follows_the_pickle() {
    // Nothing but names and calls tells that these are pickles: no number of a protocol, and no end.
    let calls: [&[u8]; 5] = [
        b"cpackage.module\nfunction\n(S':'\ntR.",
        b"(S':'\nipackage.module\nClass\n.",
        b"(cpackage.module\nClass\no.",
        b"cpackage.module\nthing\n}S'a'\nI1\nsb.",
        b"cos\nno name\n(tR",
    ];
    for call in calls {
        for rest in [&b"text after it"[..], b"\xff\xfe", b"cmore\n", &[0; 4096]] {
            let bytes = [call, rest].concat();
            assert_ne!(judged(&bytes).1, Verdict::Safe, "{}", bytes.escape_ascii());
        }
    }
    // A stream of PyTorch in protocol 1: a number, a version, a system, an object, keys.
    let stream = [b"L119547037146038801333356L\n.M\xe9\x03.}.", calls[0], b"].rest"].concat();
    assert_ne!(judged(&stream).1, Verdict::Safe);
}

#[test]
fn payloads_are_found_in_whatever_they_are_packed() {
    let zlib = b"\x78\x9c\x4b\xce\x2f\xe6\x2a\xae\x2c\x2e\x49\xcd\xe5\xd2\x08\x56\xb7\x52\xe7\x2a\x09\xd2\x03\x00\x46\x97\x06\x00";
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xf3\xd3\x03\x00\xbb\x7d\xf5\xf3\x02\x00\x00\x00\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xce\x2f\xe6\x2a\xae\x2c\x2e\x49\xcd\xe5\xd2\x08\x56\xb7\x52\xe7\x2a\x09\xd2\x03\x00\x33\xb0\x7d\xb6\x14\x00\x00\x00";
    let named = b"\x1f\x8b\x08\x08\x00\x00\x00\x00\x02\xff\x6e\x61\x6d\x65\x00\x4b\xce\x2f\xe6\x2a\xae\x2c\x2e\x49\xcd\xe5\xd2\x08\x56\xb7\x52\xe7\x2a\x09\xd2\x03\x00\x33\xb0\x7d\xb6\x14\x00\x00\x00";
    let packed = [
        (zip("a", PAYLOAD), Format::Zip),
        (zip("m/data.pkl", PAYLOAD), Format::Torch),
        (zip("a", &zip("b", PAYLOAD)), Format::Zip),
        (tar("pickle", PAYLOAD), Format::Tar),
        (tar("a", &zip("b", PAYLOAD)), Format::Tar),
        ([PAYLOAD, &zip("a", b"text")].concat(), Format::Zip),
        (zlib.to_vec(), Format::Compressed),
        (gzip.to_vec(), Format::Compressed),
        (named.to_vec(), Format::Compressed),
        (zip("a", zlib), Format::Zip),
    ];
    for (number, (bytes, format)) in packed.iter().enumerate() {
        assert_eq!(judged(bytes), (*format, Verdict::Dangerous), "{number}");
    }
}

#[cfg(all(feature = "bzip2", feature = "xz"))]
#[test]
fn payloads_are_found_in_bzip2_and_xz() {
    let xz = b"\xfd\x37\x7a\x58\x5a\x00\x00\x04\xe6\xd6\xb4\x46\x02\x00\x21\x01\x0c\x00\x00\x00\x8f\x98\x41\x9c\x01\x00\x13\x63\x6f\x73\x0a\x73\x79\x73\x74\x65\x6d\x0a\x28\x53\x27\x3a\x27\x0a\x74\x52\x2e\x00\xc1\x8f\xad\x36\xf9\xa3\x47\x76\x00\x01\x2c\x14\xf8\x0a\x6d\x03\x1f\xb6\xf3\x7d\x01\x00\x00\x00\x00\x04\x59\x5a";
    let bzip2 = b"\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xc1\x52\x40\x76\x00\x00\x05\x5b\x80\x00\x10\x00\xc1\x00\x10\x18\x00\x0a\x02\x8c\x20\x20\x00\x22\x26\x9a\x68\xf2\x9e\x50\x40\x00\x02\xab\x62\xc6\x98\x39\x49\xf8\xc3\x8f\x8b\xb9\x22\x9c\x28\x48\x60\xa9\x20\x3b\x00";
    let lzma = b"\x5d\x00\x00\x04\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x31\x9b\xca\xc6\xb2\x7c\x65\xdf\xdf\x91\x59\x9f\xb1\xd6\x7e\x28\x92\x62\x0d\x8f\xdf\xf1\x8b\x98\xcd\xff\xff\x88\x82\x00\x00";
    for compressed in [xz.as_slice(), bzip2, lzma] {
        assert_eq!(judged(compressed), (Format::Compressed, Verdict::Dangerous));
        let twice = [compressed, compressed].concat();
        assert_eq!(judged(&twice).1, Verdict::Dangerous);
        let cut = compressed.get(..compressed.len() - 4).expect("shorter");
        assert_ne!(judged(cut).1, Verdict::Safe);
        let mut options = Options::DEFAULT;
        options.inflated = Some(5);
        assert_eq!(scan_file(compressed, &options).expect("a report").verdict(), Verdict::Suspicious);
    }
}

#[test]
fn other_files_are_no_pickles() {
    for bytes in [
        b"class Net(Module):\n  def f(self):\n".as_slice(),
        b"cat\ndog\nbird\n",
        b"{\"a\": 1}",
        b"The quick brown fox",
        b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x05",
        b"copyright 2026\nall rights reserved\n",
        b"PNG",
        // Elements: integers of 64 bits, lengths of 3 GB.
        b"\x95W\0\0\0\0\0\0ZB\0\0\0\0\0\0",
        b"x?\0\0\0\0\0\0\xc6|\0\0\0\0\0\0",
        b"B\x01\x02\x03\xbf\x10\x20\x30\xbf",
        // Calls of what is no name.
        b"copyright\nall rights reserved\n(tR text",
        b"cnot a name\nname\n(tR text",
        b"cos\nand other texts\n text",
        b"BZh1 is how bzip2 begins",
        // lzma without a length that could be one.
        b"\x5d\0\0\x80\0\0\0\0\0\0\x01\0\0\0",
    ] {
        assert_eq!(judged(bytes), (Format::Other, Verdict::Safe), "{}", bytes.escape_ascii());
    }
    assert_eq!(judged(b""), (Format::Other, Verdict::Safe), "nothing to run");
    // Its first bytes are those of a pickle of protocol 2.
    let safetensors = [b"\x80\x02\0\0\0\0\0\0{}".as_slice(), &b" ".repeat(638)].concat();
    assert_eq!(judged(&safetensors), (Format::Other, Verdict::Safe));
    // These are not: the header is longer than the file, or is none.
    assert_eq!(judged(&safetensors[..647]), (Format::Pickle, Verdict::Malformed));
    let other = [b"\x80\x02\0\0\0\0\0\0".as_slice(), &[0; 640]].concat();
    assert_eq!(judged(&other), (Format::Pickle, Verdict::Malformed));
    // Elements that look like a pickle are elements.
    let mut bytes = zip("m/data/0", PAYLOAD);
    assert_eq!(
        judged(&bytes),
        (Format::Zip, Verdict::Dangerous),
        "without data.pkl it is a file like others"
    );
    bytes = zip("m/data/x", PAYLOAD);
    assert_eq!(judged(&bytes).1, Verdict::Dangerous);
    bytes = b"\x93NUMPY\x01\0\x10\0{'descr': '<f4'}".to_vec();
    bytes.extend(PAYLOAD);
    assert_eq!(judged(&bytes), (Format::Numpy, Verdict::Safe));
    let at = bytes.windows(3).position(|window| window == b"<f4").expect("the type");
    bytes[at..at + 3].copy_from_slice(b"|O8");
    assert_eq!(judged(&bytes), (Format::Numpy, Verdict::Dangerous));
}

#[test]
fn what_is_not_opened_is_not_safe() {
    for bytes in [
        b"7z\xbc\xaf\x27\x1c\0\x04".as_slice(),
        b"\xfd7zXZ\0\0",
        b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0",
        b"\x5d\0\0\x80\0\x05\0\0\0\0\0\0\0\0",
        b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\0\0\0\0",
        b"BZh91AY&SY",
        b"\x1f\x8b\x08\0\0\0\0\0\0\0garbage",
        b"\x28\xb5\x2f\xfd\0",
        b"PK\x03\x04 broken",
    ] {
        assert_eq!(judged(bytes).1, Verdict::Suspicious, "{}", bytes.escape_ascii());
    }
    let mut nested = PAYLOAD.to_vec();
    for _ in 0..4 {
        nested = zip("a", &nested);
        assert_eq!(judged(&nested).1, Verdict::Dangerous);
    }
    nested = zip("a", &nested);
    let report = scan_file(nested.as_slice(), &Options::DEFAULT).expect("a report");
    assert_eq!(
        (report.verdict(), report.remarks[0].problem.to_string()),
        (Verdict::Suspicious, "not opened: nested too deep".to_owned())
    );
}

#[test]
fn parts_are_named_by_their_members() {
    let report = scan_file(zip("a.zip", &zip("b", PAYLOAD)).as_slice(), &Options::DEFAULT).expect("a report");
    assert_eq!(report.parts[0].path, "a.zip!b");
    assert_eq!(report.parts[0].report.names[0].name, "system");
}

#[test]
fn what_two_scans_find_is_reported_once() {
    let path =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/import/hostile/keras/module_fn.keras");
    let bytes = std::fs::read(path).expect("a vector");
    let report = scan_file(&bytes, &Options::DEFAULT).expect("in memory");
    let found: Vec<_> =
        report.findings().map(|found| (found.member.to_owned(), found.offset, found.code)).collect();
    let mut once = found.clone();
    once.sort();
    once.dedup();
    assert_eq!(found.len(), once.len(), "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
}

/// `tests/data/README.md`.
#[test]
fn files_whose_loaders_ran_code_are_not_safe() {
    let mut n_files = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending != "md") {
            assert_ne!(judged(&std::fs::read(&path).unwrap()).1, Verdict::Safe, "{}", path.display());
            n_files += 1;
        }
    }
    assert_eq!(n_files, 20);
}

#[test]
fn white_space_and_frames_that_are_skipped_hide_nothing() {
    let blank = [vec![b'\n'; 5000], br#"{"auto_map":{"AutoModel":"x.Y"}}"#.to_vec()].concat();
    assert_ne!(judged(&blank).1, Verdict::Safe);
    assert_eq!(judged(&[b'\n'; 5000]).1, Verdict::Safe);
    for start in [b"\x50\x2a\x4d\x18".as_slice(), b"\x5f\x2a\x4d\x18", b"\x1f\x9d\x90", b"LRZI"] {
        let bytes = [start, &[4, 0, 0, 0], b"abcd\x28\xb5\x2f\xfd"].concat();
        assert_eq!(judged(&bytes).1, Verdict::Suspicious, "{start:x?}");
    }
    // A text that is dropped.
    for kind in [b'V', b'U', b'X', b'T'] {
        let bytes = [&[kind, b'*', b'M', 0x18][..], b"\n0", PAYLOAD].concat();
        let expected = if kind == b'V' { Verdict::Dangerous } else { Verdict::Suspicious };
        assert!(judged(&bytes).1 >= expected, "{kind}");
    }
}

#[test]
fn keras_models_behind_other_formats_are_found() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/import/keras/lambda.h5");
    let model = std::fs::read(model).expect("a vector");
    // Readers of HDF5 look at 0, 512, 1024 and so on.
    let behind = |front: &[u8], at: usize| {
        let padding = vec![0; at.checked_sub(front.len()).expect("a short front")];
        [front, &padding, &model].concat()
    };
    let array = [b"\x93NUMPY\x01\0\x76\0".as_slice(), &[b' '; 118]].concat();
    let packed = zip("archive/data/0", &behind(&[], 512 - 44));
    for (name, file) in [
        ("an array", behind(&array, 512)),
        ("an array, far", behind(&array, 4096)),
        ("gzip", behind(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x03\0\0\0\0\0\0\0\0\0", 512)),
        ("a tar archive", behind(&tar("a", b""), 2048)),
        ("a storage of an archive", packed),
    ] {
        assert!(file.windows(model.len()).any(|found| found == model), "{name}");
        assert_ne!(judged(&file).1, Verdict::Safe, "{name}");
    }
}

#[test]
fn names_in_tar_archives_are_no_pickles() {
    let header = format!("{}{}", "{\"a\":[0,1]}", " ".repeat(6000));
    for name in [
        "checkpoint.safetensors",
        "config.json",
        "gpt2/model.safetensors",
        "pytorch_model.safetensors",
        "image.safetensors",
        "Llama/model.safetensors",
        "Falcon.safetensors",
        "Index",
    ] {
        assert_eq!(judged(&tar(name, header.as_bytes())), (Format::Tar, Verdict::Safe), "{name}");
    }
    // A number of as many digits as one likes may precede a call.
    for name in ["F0", "I 0", "L+0"] {
        let hidden = [&[b'0'; 6000][..], b"1\n0", PAYLOAD].concat();
        assert_ne!(judged(&tar(name, &hidden)).1, Verdict::Safe, "{name}");
    }
}
