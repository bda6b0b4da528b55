//! Each rule, and how each was bypassed elsewhere.

use model_scan::{Options, Origin, Verdict, scan};

pub(crate) fn codes(stream: &[u8], origin: Origin) -> (Verdict, Vec<&'static str>) {
    let report = scan(stream, origin, &Options::DEFAULT).expect("a report");
    (report.verdict(), report.findings.iter().map(|finding| finding.problem.code()).collect())
}

#[test]
fn each_problem_is_found() {
    use Verdict::{Dangerous, Malformed, Safe, Suspicious};

    for (stream, verdict, expected) in [
        (b"cos\nsystem\n.".as_slice(), Dangerous, &["sc-dangerous-name"][..]),
        (b"c__builtin__\neval\n.", Dangerous, &["sc-dangerous-name"]),
        (b"\x80\x04\x8c\x05torch\x8c\x0cnn.os.system\x93.", Dangerous, &["sc-attribute-path"]),
        (b"\x80\x04cmy.module\nA.__class__\n.", Dangerous, &["sc-attribute-path"]),
        (b"\x80\x04c__builtin__\nstr\n(Va\ntR\x8c\x01x\x93.", Dangerous, &["sc-computed-name"]),
        // What is certainly not a string ends the stream, as the unpickler ends there.
        (b"\x80\x04ccollections\nOrderedDict\n)R\x8c\x01x\x93.", Malformed, &["sc-malformed"]),
        (b"\x80\x04ctorch\nfloat32\n\x8c\x01x\x93.", Malformed, &["sc-malformed"]),
        (b"ccollections\nOrderedDict\n)R)R.", Dangerous, &["sc-computed-call"]),
        (b"ctorch\nfloat32\n}b.", Dangerous, &["sc-state-of-name"]),
        (b"cmy.module\nC\n)\x81.", Suspicious, &["sc-unknown-name"]),
        (b"ctorch\nfloat32\n)R.", Suspicious, &["sc-unexpected-use"]),
        (b"c_codecs\nencode\n(S'a'\nS'zlib'\ntR.", Suspicious, &["sc-unexpected-use"]),
        (b"ctorch._utils\n_rebuild_tensor_v2\n)R.", Suspicious, &["sc-unexpected-use"]),
        (
            b"ccollections\ndefaultdict\n(ctorch._utils\n_rebuild_tensor\ntR.",
            Suspicious,
            &["sc-unexpected-use"],
        ),
        (b"ccollections\ndefaultdict\n(c__builtin__\nlist\ntR.", Safe, &[]),
        (b"ccollections\nOrderedDict\n)R(N}tb.", Suspicious, &["sc-unexpected-state"]),
        (b"ccollections\nOrderedDict\n)RNNs.", Safe, &[]),
        (b"ctorch\ndevice\n(S'cpu'\ntRNNs.", Suspicious, &["sc-unexpected-state"]),
        (b"\x82\x01.", Suspicious, &["sc-extension"]),
        (b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI2\ntQ.", Suspicious, &["sc-persistent-id"]),
        (b"\x97.", Suspicious, &["sc-out-of-band"]),
        (b"N.N.", Suspicious, &["sc-several-pickles"]),
        (b"N.\xff\xff", Suspicious, &["sc-trailing-bytes"]),
        (b"N.cos\nsystem\n.", Dangerous, &["sc-dangerous-name", "sc-several-pickles"]),
        (b"NR.", Malformed, &["sc-malformed"]),
        (b"cos\nsystem\n)RR", Dangerous, &["sc-dangerous-name", "sc-malformed"]),
        (b"", Malformed, &["sc-malformed"]),
        (b"}S'os.system'\nS'cos\\nsystem\\n'\ns.", Safe, &[]),
    ] {
        let (found, codes) = codes(stream, Origin::File);
        assert_eq!((found, &codes[..]), (verdict, expected), "{}", stream.escape_ascii());
    }
}

#[test]
fn names_depend_on_where_they_are() {
    let storage = b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI2\ntQ.";
    assert_eq!(codes(storage, Origin::Torch).0, Verdict::Safe);
    let script = b"\x80\x02c__torch__.m\nNet\n)\x81}b.";
    assert_eq!(codes(script, Origin::TorchScript).0, Verdict::Safe);
    assert_eq!(codes(script, Origin::Torch).0, Verdict::Suspicious);
}

/// `STACK_GLOBAL` takes strings alone: objects that certainly are none end the stream, others may be any name.
#[test]
fn operands_that_are_no_strings_end_a_stream() {
    let found = |operand: &str| {
        let stream = [operand.as_bytes(), b"\x8c\x01x\x93."].concat();
        codes(&stream, Origin::File).1.pop()
    };
    for operand in [
        "ccollections\nOrderedDict\n)R",
        "cargparse\nNamespace\n",
        "ctorch.nn.functional\nrelu\n",
        "c_codecs\nencode\n(Va\nS'latin1'\ntR",
        "cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n)S'b'\ntR",
        "ctorch._utils\n_rebuild_meta_tensor_no_storage\n(N))I00\ntR",
    ] {
        assert_eq!(found(operand), Some("sc-malformed"), "{operand}");
    }
    for operand in [
        "c__builtin__\nstr\n(Va\ntR",
        "cnumpy.core.multiarray\nscalar\n(NVa\ntR",
        "cmy.module\nC\n)R",
        "cmy.module\nC\n",
        "cos\nname\n",
    ] {
        assert_eq!(found(operand), Some("sc-computed-name"), "{operand}");
    }
}

#[test]
fn operators_of_bytecode_are_those_of_pytorch() {
    let found = |operator: &str, origin| {
        let stream = format!("(V{operator}\nVTensor\nt.");
        codes(stream.as_bytes(), origin).1
    };
    assert_eq!(found("aten::add", Origin::TorchScript), [""; 0]);
    assert_eq!(found("aten::save", Origin::TorchScript), ["sc-script-operation"]);
    assert_eq!(found("mylib::run", Origin::TorchScript), ["sc-script-operation"]);
    assert_eq!(found("mylib::run", Origin::Torch), [""; 0]);
    assert_eq!(codes(b"(Vmylib::run\nNt.", Origin::TorchScript).1, [""; 0]);
}

#[test]
fn trusted_names_are_exact() {
    let mut trusting = Options::DEFAULT;
    trusting.allow = &[("my.module", "C")];
    for (stream, verdict) in [
        (b"cmy.module\nC\n)\x81}b.".as_slice(), Verdict::Safe),
        (b"cmy.module\nD\n)\x81}b.", Verdict::Suspicious),
        (b"cmy.module\nC.x\n.", Verdict::Suspicious),
        (b"(cmy.module\nC\nl.", Verdict::Safe),
    ] {
        assert_eq!(scan(stream, Origin::File, &trusting).expect("a report").verdict(), verdict);
    }
}

/// A frame that ends inside an argument: to `pickle.loads` the stream is two strings, to `pickle.load` from a file it is a call.
#[test]
fn both_programs_of_a_stream_with_frames_are_judged() {
    let hidden = b"cos\nsystem\n(S':'\ntR.";
    let string = |text: &[u8]| [b"X".as_slice(), &(text.len() as u32).to_le_bytes(), text].concat();
    let strings = [string(&[b'a'; 20]), string(hidden), b".".to_vec()].concat();
    let framed = |len: u8| [b"\x80\x04\x95".as_slice(), &[len, 0, 0, 0, 0, 0, 0, 0], &strings].concat();
    // From a file, five bytes of the first string are lost, and the header of the second is its end.
    let (verdict, found) = codes(&framed(10), Origin::File);
    assert_eq!(verdict, Verdict::Dangerous, "{found:?}");
    assert!(found.contains(&"sc-frame"));
    // The argument begins where the frame ends: nothing is lost.
    assert_eq!(codes(&framed(5), Origin::File), (Verdict::Safe, vec![]));
    assert_eq!(codes(&framed(strings.len() as u8), Origin::File), (Verdict::Safe, vec![]));
}

/// What joblib takes for the bytes of an array is a program for `pickle.load`.
#[test]
fn bytes_of_arrays_are_read_as_opcodes_too() {
    let hidden = b"cos\nsystem\n(S':'\ntR.";
    let start = b"\x80\x04cjoblib.numpy_pickle\nNumpyArrayWrapper\n)\x81}(\x8c\x05shapeK";
    let rest = b"\x85\x8c\x05order\x8c\x01C\x8c\x05dtypecnumpy\ndtype\n\x8c\x02u1\x89\x88\x87R(K\x03\x8c\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tbub";
    let stream = |bytes: &[u8]| [start.as_slice(), &[bytes.len() as u8], rest, bytes, b"."].concat();
    assert_eq!(codes(&stream(hidden), Origin::File).0, Verdict::Dangerous);
    assert_eq!(codes(&stream(b"\0\x01\x02"), Origin::File), (Verdict::Safe, vec![]));
    assert_eq!(codes(&stream(b"NNNN"), Origin::File), (Verdict::Safe, vec![]));
    // What is not read for lack of opcodes is not safe, in none of the passes.
    let mut options = Options::DEFAULT;
    options.limits.opcodes =
        scan(stream(b"NNNN").as_slice(), Origin::File, &options).expect("a report").opcodes;
    for (fewer, verdict) in [(0, Verdict::Safe), (1, Verdict::Malformed)] {
        options.limits.opcodes -= fewer;
        let report = scan(stream(b"NNNN").as_slice(), Origin::File, &options).expect("a report");
        assert_eq!(report.verdict(), verdict, "{fewer}");
    }
}

#[test]
fn nested_files_are_followed_to_a_depth() {
    let nest = |inner: &[u8]| {
        let len = (inner.len() as u32).to_le_bytes();
        [b"ctorch.storage\n_load_from_bytes\nB".as_slice(), &len, inner, b"\x85R."].concat()
    };
    assert_eq!(codes(&nest(b"N."), Origin::File).0, Verdict::Safe);
    let mut stream = b"cos\nsystem\n.".to_vec();
    for _ in 0..4 {
        stream = nest(&stream);
        assert_eq!(codes(&stream, Origin::File), (Verdict::Dangerous, vec!["sc-dangerous-name"]));
    }
    for _ in 0..2 {
        stream = nest(&stream);
        assert_eq!(codes(&stream, Origin::File), (Verdict::Suspicious, vec!["sc-nested"]));
    }
}

#[test]
fn what_is_done_with_a_name_has_to_be_its_use() {
    let (script, file) = (Origin::TorchScript, Origin::File);
    for (stream, origin, expected) in [
        // Calls.
        (b"\x82\x01)R.".as_slice(), file, &["sc-extension"][..]),
        (b"c__torch__.m\nNet\n)\x81.", script, &[]),
        (b"c__torch__.m\nNet\n)R.", script, &["sc-unexpected-use"]),
        (b"c__torch__.m\nNet\nN\x85\x81.", script, &["sc-unexpected-use"]),
        (b"cargparse\nNamespace\nN\x85\x81.", file, &["sc-unexpected-use"]),
        (b"ccollections\nOrderedDict\n)}\x92.", file, &[]),
        (b"ccollections\nOrderedDict\n)}S'a'\nNs\x92.", file, &["sc-unexpected-use"]),
        (b"c_codecs\nencode\n(Va\nS'latin1'\nt\x81.", file, &["sc-unexpected-use"]),
        // States.
        (b"c_codecs\nencode\n(Va\nS'latin1'\ntR}b.", file, &["sc-unexpected-state"]),
        (b"ccopy_reg\n_reconstructor\n(cargparse\nNamespace\nc__builtin__\nobject\nNtR}b.", file, &[]),
        (b"ccollections\nOrderedDict\n)R(NNtb.", file, &[]),
        // Items.
        (b"ctorch\nfloat32\nNa.", file, &["sc-state-of-name"]),
        (b"\x82\x01Na.", file, &["sc-extension", "sc-state-of-name"]),
        (b"c__builtin__\nlist\n)RNa.", file, &[]),
        (b"c__builtin__\nstr\n)RNa.", file, &["sc-unexpected-state"]),
        (b"ccopy_reg\n_reconstructor\n(ccollections\nOrderedDict\nc__builtin__\nobject\nNtRNNs.", file, &[]),
        (
            b"ccopy_reg\n_reconstructor\n(cargparse\nNamespace\nc__builtin__\nobject\nNtRNNs.",
            file,
            &["sc-unexpected-state"],
        ),
        (b"c_codecs\nencode\n(Va\nS'latin1'\ntRNNs.", file, &["sc-unexpected-state"]),
        // Paths: the insides of Python begin and end with two underscores.
        (b"\x80\x04cmy.module\nC.__private\n.", file, &["sc-unknown-name"]),
        (b"\x80\x04cmy.module\nC.end__\n.", file, &["sc-unknown-name"]),
    ] {
        assert_eq!(codes(stream, origin).1, expected, "{}", stream.escape_ascii());
    }
}

#[test]
fn names_are_trusted_as_stored_and_as_python_3_names_them() {
    let stream = b"c__builtin__\neval\n.";
    for (allow, verdict) in [
        (&[("__builtin__", "eval")], Verdict::Safe),
        (&[("builtins", "eval")], Verdict::Safe),
        (&[("builtins", "exec")], Verdict::Dangerous),
    ] {
        let mut options = Options::DEFAULT;
        options.allow = allow;
        assert_eq!(scan(stream.as_slice(), Origin::File, &options).expect("a report").verdict(), verdict);
    }
}

#[test]
fn trusted_names_lie_anywhere() {
    for (stream, pair) in [
        (b"(ctorch.nn.functional\nrelu\nl.".as_slice(), ("torch.nn.functional", "relu")),
        (b"(c__builtin__\ngetattr\nl.", ("builtins", "getattr")),
        (b"c__builtin__\ngetattr\n(NVx\ntR.", ("builtins", "getattr")),
    ] {
        let mut options = Options::DEFAULT;
        assert_ne!(scan(stream, Origin::File, &options).expect("a report").verdict(), Verdict::Safe);
        let allow = [pair];
        options.allow = &allow;
        assert_eq!(
            scan(stream, Origin::File, &options).expect("a report").verdict(),
            Verdict::Safe,
            "{pair:?}"
        );
    }
}
