//! Memory and time are bounded by the length of the file, whatever it claims.

use core::time::Duration;

use model_scan::{Options, Verdict, scan_file};
use test_meter::{CountingAllocator, CpuTimer};

use crate::vectors::vectors;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// Scans a file within its bounds.
fn scanned(name: &str, bytes: &[u8]) -> Verdict {
    let timer = CpuTimer::start();
    let (report, usage) = HEAP.measure_thread(|| scan_file(bytes, &Options::DEFAULT).expect("a report"));
    let time = timer.elapsed();
    let bound = (8 << 20) + 24 * bytes.len();
    assert!(usage.peak <= bound, "{name}: {usage:?} for a file of {}", bytes.len());
    assert!(time < Duration::from_secs(2), "{name}: {time:?}");
    report.verdict()
}

#[test]
fn vectors_stay_within_their_bounds() {
    for vector in vectors().iter().filter(|vector| !vector.path.is_dir()) {
        scanned(&vector.name, &vector.bytes());
    }
}

/// Deflate of `count` times the same byte, in blocks of a fixed code: 258 bytes take 13 bits, in zlib's wrapper without its checksum.
pub(crate) fn bomb(byte: u8, count: usize) -> Vec<u8> {
    let (mut bits, mut len) = (Vec::<u8>::from([0x78, 0x9c]), 0_u32);
    let mut put = |value: u32, width: u32| {
        for idx in 0..width {
            if len % 8 == 0 {
                bits.push(0);
            }
            *bits.last_mut().expect("a byte") |= ((value >> idx & 1) as u8) << (len % 8);
            len += 1;
        }
    };
    let reversed = |code: u32, width: u32| (0..width).fold(0, |out, idx| out << 1 | code >> idx & 1);
    put(0b011, 3); // The last block, fixed codes.
    put(reversed(0x30 + u32::from(byte), 8), 8);
    for _ in 0..count / 258 {
        put(reversed(0b1100_0101, 8), 8); // Length 258.
        put(0, 5); // Distance 1.
    }
    put(0, 7);
    bits
}

#[test]
fn bombs_stay_within_their_bounds() {
    for (name, bytes, verdict) in [
        ("lists", bomb(b']', 64 << 20), Verdict::Malformed),
        ("lists within the limit", bomb(b']', 2 << 20), Verdict::Malformed),
        ("marks", bomb(b'(', 3 << 20), Verdict::Malformed),
        ("quotes", [b"{".as_slice(), &b"\"class_name\":\"".repeat(1 << 16)].concat(), Verdict::Safe),
        ("blanks", [b"{\"auto_map\"".as_slice(), &b" ".repeat(1 << 20)].concat(), Verdict::Safe),
        ("groups", [b"\x0b".repeat(1 << 20), b"\x0c".repeat(1 << 20)].concat(), Verdict::Safe),
        ("nodes", b"\x0a\x02\x0a\x00".repeat(1 << 18), Verdict::Safe),
        ("keys", [b"GGUF\x03\0\0\0".as_slice(), &[0; 8], &[0xff; 8], &[0; 1 << 16]].concat(), Verdict::Safe),
        (
            "array",
            [
                b"GGUF\x03\0\0\0".as_slice(),
                &[0; 8],
                &[1; 8],
                &[0; 8],
                &[9, 0, 0, 0, 8, 0, 0, 0],
                &[0xff; 7],
                &[0; 1 << 16],
            ]
            .concat(),
            Verdict::Safe,
        ),
        ("globals", b"cos\nsystem\n".repeat(1 << 16), Verdict::Dangerous),
        (
            "code",
            [b"ctorch.nn.functional\nrelu\np0\n".as_slice(), &b"h\0\x85".repeat(1 << 18), b"."].concat(),
            Verdict::Suspicious,
        ),
        (
            "states",
            [b"cargparse\nNamespace\n)\x81".as_slice(), &b"}b".repeat(1 << 19), b"."].concat(),
            Verdict::Safe,
        ),
        (
            "lists in bytes",
            [b"\x80\x03B\0\0\x20\0".as_slice(), &b"]".repeat(1 << 21), b"."].concat(),
            Verdict::Safe,
        ),
    ] {
        assert_eq!(scanned(name, &bytes), verdict, "{name}");
    }
}

#[cfg(all(feature = "bzip2", feature = "xz"))]
#[test]
fn decoders_stay_within_their_bounds() {
    for (name, bytes, verdict) in [
        ("16 MiB of lists in xz", include_bytes!("../bombs/bomb.xz").as_slice(), Verdict::Malformed),
        ("16 MiB of lists in bzip2", include_bytes!("../bombs/bomb.bz2"), Verdict::Malformed),
        ("a dictionary of 64 MiB", include_bytes!("../bombs/dictionary.xz"), Verdict::Suspicious),
    ] {
        assert_eq!(scanned(name, bytes), verdict, "{name}");
    }
}

/// Values that are named again and again are judged once.
#[test]
fn shared_values_take_no_time_again() {
    let len = 1_u32 << 18;
    let many = |count: usize| b"N".repeat(count);
    let tuple = [b"(".as_slice(), &many(len as usize), b"tq\0"].concat();
    let pairs = [b"(".as_slice(), &b"NN\x86".repeat(1 << 16), b"lq\0"].concat();
    let state = [b"}(".as_slice(), &b"K\x01N".repeat(1 << 16), b"uq\0"].concat();
    let text = [b"X".as_slice(), &len.to_le_bytes(), &vec![b']'; len as usize], b"q\0"].concat();
    let layer = b"ctorch.nn.modules.linear\nIdentity\nq\x01ccollections\nOrderedDict\nq\x02";
    let named = b"X\x0b\0\0\0_parametersq\x03Vlatin1\nq\x04";
    for (name, before, repeated) in [
        ("arguments", &tuple, b"h\x02h\0R0".as_slice()),
        ("persistent ids", &tuple, b"h\0Q0"),
        ("members", &pairs, b"h\x01)\x81}h\x03h\x02h\0\x85Rsb0"),
        ("states", &state, b"h\x01)\x81h\0b0"),
        ("texts", &text, b"h\x05h\0h\x04\x86R0"),
        ("files", &text, b"h\x06h\x05h\0h\x04\x86R\x85R0"),
    ] {
        let functions =
            b"c_codecs\nencode\nq\x05ctorch.storage\n_load_from_bytes\nq\x06ctorch.nn.functional\nrelu\n";
        let start = [before.as_slice(), layer, named, functions].concat();
        scanned(name, &[&start, repeated.repeat(1 << 13).as_slice(), b"N."].concat());
    }
}
