//! Tar archives as `tarfile` of Python reads them.

use model_scan::{Format, Options, Verdict, scan_file};

use crate::files::{PAYLOAD, judged};

/// A header of any type whose size says what it likes.
fn header(name: &[u8], kind: u8, size: &[u8], change: impl Fn(&mut [u8])) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..name.len()].copy_from_slice(name);
    header[124..124 + size.len()].copy_from_slice(size);
    header[156] = kind;
    header[148..156].fill(b' ');
    change(&mut header);
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn padded(data: &[u8]) -> Vec<u8> {
    let mut data = data.to_vec();
    data.resize(data.len().next_multiple_of(512), 0);
    data
}

fn member(name: &str, kind: u8, data: &[u8]) -> Vec<u8> {
    let size = format!("{:011o}\0", data.len());
    [header(name.as_bytes(), kind, size.as_bytes(), |_| {}), padded(data)].concat()
}

/// An extended header of PAX with these records.
fn pax(kind: u8, records: &[(&str, &str)]) -> Vec<u8> {
    let record = |(key, value): &(&str, &str)| {
        let rest = key.len() + value.len() + 3;
        let digits = (1..5).find(|digits| (rest + digits).to_string().len() == *digits).expect("short");
        format!("{} {key}={value}\n", rest + digits)
    };
    member("PaxHeader", kind, records.iter().map(record).collect::<String>().as_bytes())
}

/// Members and their findings, without the sentences that all findings of their code have.
fn found(archive: &[u8]) -> Vec<String> {
    let report = scan_file(archive, &Options::DEFAULT).expect("a report");
    assert_eq!(report.format, Format::Tar);
    report.findings().map(|found| format!("{}: {}", found.member, found.message)).collect()
}

fn archive(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), vec![0; 1024]].concat()
}

const RUNS: &str = "os.system: runs commands";

#[test]
fn extended_headers_replace_names_and_sizes() {
    let long = "l".repeat(130);
    let size = PAYLOAD.len().to_string();
    let runs = |name: &str| vec![format!("{name}: {RUNS}")];
    // A header without a size, and data that are no header.
    let hidden = [header(b"a", b'0', b"0", |_| {}), padded(PAYLOAD)].concat();
    let with_size =
        vec![format!("a: {RUNS}"), "a: an extended header with another size in a tar archive".to_owned()];
    for kind in [b'x', b'X'] {
        assert_eq!(found(&archive(&[pax(kind, &[("size", &size)]), hidden.clone()])), with_size);
        let named = archive(&[pax(kind, &[("mtime", "1.5"), ("path", &long)]), member("a", b'0', PAYLOAD)]);
        assert_eq!(found(&named), runs(&long));
    }
    // Of several, the first.
    let twice = [
        pax(b'x', &[("path", "one")]),
        member("././@LongLink", b'L', b"two\0three"),
        pax(b'x', &[("path", "four")]),
    ];
    assert_eq!(found(&archive(&[twice.concat(), member("a", b'0', PAYLOAD)])), runs("one"));
    let gnu = |name: &str| member("././@LongLink", b'L', name.as_bytes());
    assert_eq!(found(&archive(&[gnu("two\0x"), member("a", b'0', PAYLOAD)])), runs("two"));
    // For the next member alone.
    let both = [gnu("two"), member("a", b'0', b"~"), member("b", b'0', PAYLOAD)];
    assert_eq!(found(&archive(&both)), runs("b"));
    // The same size, and one that is no number.
    let same = [pax(b'x', &[("size", &size)]), member("a", b'0', PAYLOAD)];
    assert_eq!(found(&archive(&same)), runs("a"));
    let none = [pax(b'x', &[("size", "-1")]), member("a", b'0', b"")];
    let other = "a: an extended header with another size in a tar archive";
    assert_eq!(found(&archive(&none)), [other], "0 for `tarfile`");
    let none = [pax(b'x', &[("size", "1_9")]), hidden.clone()];
    assert_eq!(found(&archive(&none)), [other, ": an invalid member header in a tar archive"]);
    // What a field of octal digits cannot hold is in the extended header alone.
    let cut = "a: not opened: tar header without a length";
    for (size, expected) in [("8589934591", &[other, cut][..]), ("8589934592", &[cut])] {
        assert_eq!(found(&[pax(b'x', &[("size", size)]), member("a", b'0', b"")].concat()), expected);
    }
}

#[test]
fn what_no_archive_of_a_model_has_is_suspicious() {
    let plain = || member("a", b'0', b"~");
    let of_tar = |name: &str, reason: &str| vec![format!("{name}: {reason} in a tar archive")];
    let global = "a global extended header that changes members";
    let sparse = "a sparse member";
    let other_size = "an extended header with another size";
    let two_values = "an extended header with two values of a member";
    let broken = |text: &str| vec![member("p", b'x', text.as_bytes()), plain()];
    for (parts, expected) in [
        (vec![pax(b'g', &[("comment", "0123abcd")]), plain()], vec![]),
        (vec![pax(b'g', &[("size", "1")]), plain()], of_tar("a", global)),
        (vec![pax(b'g', &[("path", "b")]), plain()], of_tar("a", global)),
        (
            vec![pax(b'g', &[("GNU.sparse.major", "1")]), plain()],
            [of_tar("a", sparse), of_tar("a", global)].concat(),
        ),
        (vec![pax(b'x', &[("GNU.sparse.map", "0,1")]), plain()], of_tar("a", sparse)),
        (vec![broken("12 path=b").concat()], of_tar("a", "a malformed extended header")),
        (vec![broken("x path=b\n").concat()], of_tar("a", "a malformed extended header")),
        (vec![broken("10 path:b\n").concat()], of_tar("a", "a malformed extended header")),
        (vec![broken("2 path=b\n").concat()], of_tar("a", "a malformed extended header")),
        (vec![broken("99 path=b\n").concat()], of_tar("a", "a malformed extended header")),
        (vec![pax(b'x', &[("size", "1")]), plain()], vec![]),
        (vec![pax(b'x', &[("size", "+0")]), member("a", b'0', b"")], of_tar("a", other_size)),
        (vec![pax(b'x', &[("size", " 0")]), member("a", b'0', b"")], of_tar("a", other_size)),
        (vec![pax(b'x', &[("size", "0_0")]), member("a", b'0', b"")], of_tar("a", other_size)),
        (vec![pax(b'x', &[("size", "0"), ("size", "1")]), plain()], of_tar("a", two_values)),
        (vec![pax(b'x', &[("path", "a"), ("path", "../b")]), plain()], {
            [of_tar("../b", two_values), of_tar("../b", "a name that leaves the folder")].concat()
        }),
        (vec![pax(b'x', &[("path", "b"), ("path", "b")]), plain()], vec![]),
        (vec![pax(b'x', &[("path", "../b///")]), plain()], of_tar("../b", "a name that leaves the folder")),
        (vec![member("a", b'1', b"")], of_tar("a", "a link")),
        (vec![member("a", b'2', b"")], of_tar("a", "a link")),
        (vec![member("l", b'K', b"target"), member("a", b'2', b"")], of_tar("a", "a link")),
        (vec![member("a", b'3', b"")], of_tar("a", "a device or pipe")),
        (vec![member("a", b'4', b"")], of_tar("a", "a device or pipe")),
        (vec![member("a", b'6', b"")], of_tar("a", "a device or pipe")),
        (vec![member("a/", b'5', b""), member("a/", b'5', b"")], vec![]),
        (vec![member("a", b'7', b"~"), member("b", b'0', b"~")], vec![]),
        (vec![member("/a", b'0', b"~")], of_tar("/a", "a name that leaves the folder")),
        (vec![member("b/../../a", b'0', b"~")], of_tar("b/../../a", "a name that leaves the folder")),
        (vec![member("C:a", b'0', b"~")], of_tar("C:a", "a name that leaves the folder")),
        (vec![member("b\\a", b'0', b"~")], of_tar("b\\a", "a name that leaves the folder")),
        (vec![member("b..c/..a", b'0', b"~"), member("1:a", b'0', b"~")], vec![]),
        (vec![member("a", b'0', b"~"), member("a", b'0', b"~")], vec![]),
        (vec![member("a", b'0', b"~"), member("./a", b'0', b"^")], of_tar("./a", "two members of one name")),
        (
            vec![member("b//a", b'0', b"~"), member("b/a", b'0', b"~~")],
            of_tar("b/a", "two members of one name"),
        ),
        (vec![member("a", b'0', b""), member("a/", b'5', b"")], of_tar("a/", "two members of one name")),
        (vec![member("a", b'0', b"~"), member("b/a", b'0', b"^"), member("ba", b'0', b"")], vec![]),
        (
            vec![
                member("a", b'0', &[b'~'; 5000]),
                member("a", b'0', &[[b'~'; 4999].as_slice(), b"^"].concat()),
            ],
            of_tar("a", "two members of one name"),
        ),
        (vec![member("a", b'0', &[b'~'; 5000]), member("a", b'0', &[b'~'; 5000])], vec![]),
        (vec![plain(), vec![1; 512]], of_tar("", "an invalid member header")),
        (vec![plain(), vec![0; 512], vec![1; 512]], of_tar("", "an invalid member header")),
        (vec![plain(), vec![0; 512], vec![1]], of_tar("", "an invalid member header")),
        (vec![plain(), vec![0; 700]], vec![]),
    ] {
        let bytes = parts.concat();
        assert_eq!(found(&bytes), expected, "{}", bytes[..512].escape_ascii());
    }
}

#[test]
fn members_are_where_python_sees_them() {
    // Links, devices and folders have no data, regardless of their size.
    for kind in [b'1', b'2', b'3', b'4', b'5', b'6'] {
        let bytes = [header(b"a", kind, b"00000001000", |_| {}), member("b", b'0', PAYLOAD)].concat();
        assert_eq!(judged(&bytes).1, Verdict::Dangerous, "{kind}");
    }
    let folder = [header(b"a/", 0, b"00000001000", |_| {}), member("b", b'0', PAYLOAD)].concat();
    assert_eq!(found(&folder), [format!("b: {RUNS}")]);
    // Files of other types, or of none, have data.
    for kind in [b'0', b'7', 0, b'A', b'V'] {
        assert_eq!(found(&member("a", kind, PAYLOAD)), [format!("a: {RUNS}")], "{kind}");
        let bytes = [member("a", kind, &member("inner", b'0', PAYLOAD)), member("b", b'0', b"~")].concat();
        assert_eq!(found(&bytes), [format!("a!inner: {RUNS}")], "{kind}");
    }
    let slash = member("a/", b'0', PAYLOAD);
    assert_eq!(found(&slash), [format!("a/: {RUNS}")]);
    // A prefix of the name, and sizes in base 256.
    let prefixed = |kind| {
        let change = |block: &mut [u8]| block[345..348].copy_from_slice(b"pre");
        [header(b"a", kind, format!("{:o}", PAYLOAD.len()).as_bytes(), change), padded(PAYLOAD)].concat()
    };
    assert_eq!(found(&prefixed(b'0')), [format!("pre/a: {RUNS}")]);
    assert_eq!(found(&prefixed(b'S'))[0], format!("a: {RUNS}"));
    let mut size = [0; 12];
    (size[0], size[11]) = (0x80, PAYLOAD.len() as u8);
    assert_eq!(found(&[header(b"a", b'0', &size, |_| {}), padded(PAYLOAD)].concat()), [format!("a: {RUNS}")]);
    // The map of a sparse member goes on in blocks of their own.
    let sparse = |maps: usize| {
        let goes_on = |block: &mut [u8]| block[482] = u8::from(maps > 0);
        let map = |idx: usize| {
            let mut block = vec![b'~'; 512];
            block[504] = u8::from(idx + 1 < maps);
            block
        };
        let maps: Vec<u8> = (0..maps).flat_map(map).collect();
        [header(b"a", b'S', b"0", goes_on), maps, member("b", b'0', PAYLOAD)].concat()
    };
    for maps in 0..3 {
        assert_eq!(judged(&sparse(maps)).1, Verdict::Dangerous, "{maps}");
    }
    assert_eq!(judged(&sparse(1)[..1024]).1, Verdict::Suspicious);
}

#[test]
fn headers_that_cannot_be_followed_end_the_archive() {
    let big = |kind| [header(b"a", kind, b"00004000001", |_| {}), vec![b'~'; (1 << 20) + 512]].concat();
    let most = |kind| {
        [header(b"a", kind, b"00004000000", |_| {}), vec![b'\n'; 1 << 20], member("b", b'0', b"~")].concat()
    };
    let too_long = ": not opened: an extended header of more than 1 MiB";
    for kind in [b'x', b'g', b'L', b'K'] {
        assert_eq!(found(&big(kind)), [too_long], "{kind}");
        assert!(!found(&most(kind)).contains(&too_long.to_owned()), "{kind}");
        assert_eq!(found(&header(b"a", kind, b"00000000001", |_| {})), [too_long], "{kind}");
    }
    for size in [b"-1".as_slice(), b"9", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
        let bytes = [header(b"a", b'0', size, |_| {}), member("b", b'0', PAYLOAD)].concat();
        assert_eq!(found(&bytes), [": not opened: tar header without a length"]);
    }
    // As much as there is of a member that is cut.
    let mut cut = member("a", b'0', &[PAYLOAD, &[0; 600]].concat());
    cut.truncate(1024);
    assert_eq!(judged(&cut).1, Verdict::Dangerous);
}
