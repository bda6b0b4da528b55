//! Pickled arrays: NumPy, joblib, scikit-learn, Paddle.

#[cfg(all(feature = "bzip2", feature = "lz4", feature = "xz"))]
use std::path::Path;

use foreign_tensors::{NoCompanions, Options, read};

use crate::mutants::{judge_alone, survive};
#[cfg(all(feature = "bzip2", feature = "lz4", feature = "xz"))]
use crate::vectors;
use crate::vectors::check;

const FOLDERS: [&str; 5] = ["joblib", "pickle", "hostile/joblib", "hostile/pickle", "paddle"];

#[test]
fn vectors() {
    check(&FOLDERS);
}

#[test]
fn mutants_are_read_or_refused() {
    survive(&FOLDERS);
}

#[cfg(all(feature = "bzip2", feature = "lz4", feature = "xz"))]
#[test]
fn every_compression_of_joblib_is_read() {
    let options = Options::default();
    let read = |path: &Path| read(&std::fs::read(path).expect("a file"), &NoCompanions, &options);
    let mut count = 0;
    for vector in
        vectors::vectors(&["joblib"]).iter().filter(|vector| vector.name.starts_with("joblib/dict_"))
    {
        let model = read(&vector.path).unwrap_or_else(|error| panic!("{}: {error}", vector.name));
        assert_eq!(model.tensors().len() + model.aliases().len(), 4, "{}", vector.name);
        count += 1;
    }
    assert_eq!(count, 10);
    for vector in vectors::vectors(&["hostile/joblib"]) {
        let error = read(&vector.path).expect_err(&vector.name);
        let expected: &[&str] = match vector.name.split(['/', '_']).nth(2).expect("a kind") {
            "bomb" => &["ft-unsupported"],
            "after" => &["zc-after", "zc-damaged"],
            "cut" => &["zc-short", "zc-damaged"],
            "length" => &["zc-damaged"],
            "digits" => &["ft-format"],
            kind => panic!("{kind}"),
        };
        assert!(expected.contains(&error.code()), "{}: {error:?}", vector.name);
    }
}

#[cfg(all(feature = "bzip2", feature = "lz4", feature = "xz"))]
#[test]
fn the_limit_holds_for_every_compression() {
    let mut options = Options::default();
    options.limits.decompressed_bytes = 6000;
    for vector in
        vectors::vectors(&["joblib"]).iter().filter(|vector| vector.name.starts_with("joblib/dict_"))
    {
        let bytes = std::fs::read(&vector.path).expect("a file");
        match read(&bytes, &NoCompanions, &options) {
            Ok(_) => assert_eq!(vector.name, "joblib/dict_plain.joblib"),
            Err(error) => assert_eq!(error.code(), "ft-limit", "{}: {error}", vector.name),
        }
    }
}

#[test]
fn deep_and_wide_pickles_are_refused_in_bounded_memory() {
    let repeated = |parts: &[(&[u8], usize)]| -> Vec<u8> {
        parts.iter().flat_map(|(part, times)| part.repeat(*times)).collect()
    };
    for (name, bytes) in [
        ("lists", repeated(&[(b"\x80\x02", 1), (b"]", 60_000), (b"a", 59_999), (b".", 1)])),
        ("tuples", repeated(&[(b"\x80\x02)", 1), (b"\x85", 200_000), (b".", 1)])),
        ("marks", repeated(&[(b"\x80\x02", 1), (b"(", 1_000_000), (b".", 1)])),
    ] {
        judge_alone(name, &bytes);
        assert!(read(&bytes, &NoCompanions, &Options::default()).is_err(), "{name}");
    }
}

#[test]
fn an_array_that_many_names_lead_to_is_decoded_once() {
    // One array whose bytes are text, in a compressed stream: 2,000 names of 30,000 elements.
    let mut pickle =
        b"\x80\x02}(cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85c_codecs\nencode\n"
            .to_vec();
    pickle.extend(b"X\x01\x00\x00\x00bX\x06\x00\x00\x00latin1\x86R\x87R(K\x01M\x30\x75\x85cnumpy\ndtype\nX\x02\x00\x00\x00u1K\x00K\x01\x87R");
    pickle.extend(b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89c_codecs\nencode\nX\x30\x75\x00\x00");
    pickle.extend([b'a'; 30_000]);
    pickle.extend(b"X\x06\x00\x00\x00latin1\x86Rtbq\x000");
    for name in 0..2000 {
        pickle.extend(format!("X\x04\0\0\0{name:04}h\0").bytes());
    }
    pickle.extend(b"u.");
    let file = zlib(&pickle);
    judge_alone("names", &file);
    let model = read(&file, &NoCompanions, &Options::default()).expect("one array");
    assert_eq!((model.tensors().len(), model.aliases().len()), (1, 1999));
    assert_eq!(model.tensors()[0].to_vec(&model, &file).expect("bytes"), [b'a'; 30_000]);
}

/// The pickle of an array of one byte.
const ARRAY: &str = "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntVb\ntR(I1\n(I1\nt\
    cnumpy\ndtype\n(Vu1\nI0\nI1\ntR(I3\nV|\nNNNI-1\nI-1\nI0\ntbI00\nVa\ntb";

fn read_text(pickle: &str) -> Result<foreign_tensors::Model, foreign_tensors::Error> {
    let bytes = pickle.replace("ARRAY", ARRAY).into_bytes();
    foreign_tensors::joblib::read(&bytes, &NoCompanions, &Options::default())
}

#[test]
fn names_follow_containers_and_attributes() {
    for (pickle, name) in [
        // `{"a": [array]}`
        ("(dp0\nVa\n(lp1\nARRAYas.", "a.0"),
        // `OrderedDict([["a", array]])` of Python 2.
        ("ccollections\nOrderedDict\n((l(lVa\naARRAYaatR.", "a"),
        // `defaultdict(list)` with `d["a"] = array`.
        ("ccollections\ndefaultdict\n(c__builtin__\nlist\ntRVa\nARRAYs.", "a"),
        // An object whose attributes are a dict, or a pair of those and slots.
        ("ccopy_reg\n_reconstructor\n(cmodels\nNet\nc__builtin__\nobject\nNtR(dVw\nARRAYsb.", "w"),
        ("ccopy_reg\n_reconstructor\n(cmodels\nNet\nc__builtin__\nobject\nNtR(N(dVw\nARRAYstb.", "w"),
        ("ccopy_reg\n_reconstructor\n(cmodels\nNet\nc__builtin__\nobject\nNtR((d(dVw\nARRAYstb.", "w"),
        // A named tuple of a number and an array.
        ("cmodels\nPair\n(I1\nARRAYtR.", "1"),
        // `{None: {1: {True: array}}}`
        ("(dN(dI1\n(dI01\nARRAYsss.", "None.1.True"),
    ] {
        let model = read_text(pickle).unwrap_or_else(|error| panic!("{pickle}: {error}"));
        let names: Vec<_> = model.tensors().iter().map(foreign_tensors::Tensor::name).collect();
        assert_eq!(names, [name], "{pickle}");
    }
}

#[test]
fn pickles_of_other_things_are_refused() {
    for (pickle, code) in [
        ("(dVa\nARRAYsVb\ncos\nsystem\n(Vx\ntRs.", "ft-callable"),
        ("(dVa\nARRAYsVb\ncos\nsystem\ns.", "ft-callable"),
        ("(dVa\nARRAYsVb\ncmodels\nbuild\n(Vx\ntRs.", "ft-callable"),
        ("(dVa\nARRAYsVb\nP0\ns.", "ft-unsupported"),
        ("(dVa\nARRAYsVa\nARRAYs.", "ft-duplicate-name"),
        ("(dVa\nARRAYs.more", "ft-malformed"),
        ("(dVa\nI1\ns.", "ft-unsupported"),
    ] {
        let Err(error) = read_text(pickle) else { panic!("{pickle}") };
        assert_eq!(error.code(), code, "{pickle}: {error}");
    }
}

/// A stream of stored blocks.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let blocks: Vec<&[u8]> = bytes.chunks(0xffff).collect();
    for (idx, block) in blocks.iter().enumerate() {
        let len = block.len() as u16;
        stream.push(u8::from(idx + 1 == blocks.len()));
        stream.extend(len.to_le_bytes());
        stream.extend((!len).to_le_bytes());
        stream.extend(*block);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % 65521;
        high = (high + low) % 65521;
    }
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}
