//! Arguments of allowed names: those that their writers pass, and each that differs in one place.

use model_scan::{Options, Origin, Verdict, scan};

use crate::rules::codes;

const USE: &[&str] = &["sc-unexpected-use"];

/// `module name` called with arguments, each as opcodes.
fn call(name: &str, args: &[&str]) -> Vec<u8> {
    let name = name.replace(' ', "\n");
    format!("c{name}\n({}tR.", args.concat()).into_bytes()
}

#[track_caller]
fn check(name: &str, args: &[&str], expected: &[&str]) {
    let found = codes(&call(name, args), Origin::File).1;
    assert_eq!(found, expected, "{name} {args:?}");
}

#[test]
fn containers_take_what_was_read_already() {
    let (text, latin1) = ("Vab\n", "S'latin1'\n");
    for data in ["]", ")", "}", text, latin1] {
        check("collections OrderedDict", &[data], &[]);
    }
    check("collections OrderedDict", &[], &[]);
    check("__builtin__ bytearray", &[text, latin1], &[]);
    for bytes in [&format!("c_codecs\nencode\n({text}{latin1}tR"), "c__builtin__\nbytes\n)R"] {
        check("__builtin__ bytearray", &[bytes], &[]);
    }
    for args in
        [&["N"][..], &["I1\n"], &["]", latin1], &[text, "S'utf-7'\n"], &[text, "N"], &[text, latin1, "N"]]
    {
        check("__builtin__ bytearray", args, USE);
    }
    check("fractions Fraction", &["S'1'\n", "I2\n", "N", "F0.5\n", "I01\n"], &[]);
    check("fractions Fraction", &["S'1'\n", "]"], USE);
    check("pathlib PurePosixPath", &["Va\n"; 256], &[]);
    check("pathlib PurePosixPath", &["Va\n"; 257], USE);
}

#[test]
fn bytes_of_a_text_have_one_encoding() {
    check("_codecs encode", &["Vab\n", "S'latin1'\n"], &[]);
    check("_codecs encode", &["]", "S'latin1'\n"], USE);
    check("_codecs encode", &["Vab\n", "S'zip'\n"], USE);
    check("_codecs encode", &["Vab\n"], USE);
    check("_codecs encode", &["Vab\n", &format!("S'{}'\n", "latin1".repeat(50))], USE);
}

#[test]
fn objects_are_made_of_allowed_classes() {
    let (class, object) = ("cargparse\nNamespace\n", "c__builtin__\nobject\n");
    check("copy_reg _reconstructor", &[class, object, "N"], &[]);
    check("copy_reg _reconstructor", &["ccollections\nOrderedDict\n", object, "N"], &[]);
    check("copy_reg _reconstructor", &["ctorch\nfloat32\n", object, "N"], USE);
    check("copy_reg _reconstructor", &[class, "c__builtin__\nlist\n", "N"], USE);
    check("copy_reg _reconstructor", &[class, "N", "N"], USE);
    check("copy_reg _reconstructor", &[class, object, "]"], USE);
    check("copy_reg _reconstructor", &[class, object], USE);
}

#[test]
fn factories_are_classes_of_builtins() {
    let list = "c__builtin__\nlist\n";
    for args in [&[][..], &[list], &["c__builtin__\nint\n"], &["N"], &[list, "}"]] {
        check("collections defaultdict", args, &[]);
    }
    for args in
        [&[list, "}", "}"][..], &[list, "I1\n"], &["ctorch\nfloat32\n"], &["cdatetime\ndate\n"], &["]"]]
    {
        check("collections defaultdict", args, USE);
    }
}

#[test]
fn subclasses_of_tensors_are_rebuilt_by_functions_of_pytorch() {
    let (function, class) =
        ("ctorch._utils\n_rebuild_meta_tensor_no_storage\n", "ctorch.nn.parameter\nParameter\n");
    let args = "(ctorch\nfloat32\n))I00\nt";
    let name = "torch._tensor _rebuild_from_type_v2";
    for state in ["}", "N", "(}Nt", "(NNt", "}Vname\nVx\ns"] {
        check(name, &[function, class, args, state], &[]);
    }
    check(name, &["c_codecs\nencode\n", class, args, "}"], USE);
    check(name, &["ctorch._utils\nother\n", class, args, "}"], &["sc-unknown-name", "sc-unexpected-use"]);
    check(name, &[function, "N", args, "}"], USE);
    check(name, &[function, function, args, "}"], USE);
    check(name, &[function, class, "]", "}"], USE);
    // Arguments of the function are judged as those of a call.
    check(name, &[function, class, ")", "}"], USE);
    check(name, &["ctorch._utils\n_rebuild_parameter\n", class, "(NI00\nNt", "}"], USE);
    check(name, &[function, class, args], USE);
    for state in ["]", "V__class__\n", "}V__class__\nNs", "}I1\nNs", "(}]t"] {
        check(name, &[function, class, args, state], USE);
    }
}

#[test]
fn arrays_have_a_type_and_no_elements() {
    for args in [&["S'f4'\n", "I00\n", "I01\n"][..], &["Vf4\n", "I0\n"], &["cnumpy\nfloat32\n"]] {
        check("numpy dtype", args, &[]);
    }
    for args in
        [&[][..], &["N"], &["c__builtin__\nlist\n"], &["S'f4'\n", "I0\n", "I0\n", "I0\n"], &["S'f4'\n", "N"]]
    {
        check("numpy dtype", args, USE);
    }
    let array = "cnumpy\nndarray\n";
    let name = "numpy.core.multiarray _reconstruct";
    check(name, &[array, "(I0\nt", "S'b'\n"], &[]);
    check(name, &["ctorch\nfloat32\n", ")", "S'b'\n"], USE);
    check(name, &["cnumpy\ndtype\n", ")", "S'b'\n"], USE);
    check(name, &["N", ")", "S'b'\n"], USE);
    check(name, &[array, "]", "S'b'\n"], USE);
    check(name, &[array, ")"], USE);
    let created = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n)S'b'\nt\x81.";
    assert_eq!(codes(created, Origin::File).1, USE);
}

#[test]
fn nested_files_are_followed_as_bytes_and_as_text() {
    let name = "torch.storage _load_from_bytes";
    let text = "Vcos\\u000asystem\\u000a.\n";
    let plain = "X\x0c\0\0\0cos\nsystem\n.";
    for text in [text, plain] {
        check(name, &[&format!("c_codecs\nencode\n({text}S'latin1'\ntR")], &["sc-dangerous-name"]);
        check(name, &[text], &["sc-dangerous-name"]);
    }
    // What another function returns is not known.
    check(name, &[&format!("cfractions\nFraction\n({plain}S'latin1'\ntR")], &["sc-nested"]);
    check(name, &["c_codecs\nencode\n)R"], &["sc-unexpected-use", "sc-nested"]);
    // No text of bytes: its characters are beyond them.
    check(name, &["V\\u0100\n"], &["sc-nested"]);
    check(name, &["N"], &["sc-nested"]);
    check(name, &["VN.\n", "N"], USE);
}

#[test]
fn a_nested_text_of_64_mib_is_not_decoded() {
    let len = (64_u32 << 20) + 1;
    let start = [b"ctorch.storage\n_load_from_bytes\nX".as_slice(), &len.to_le_bytes()].concat();
    let stream = [start, vec![b'N'; len as usize], b"\x85R.".to_vec()].concat();
    let report = scan(stream.as_slice(), Origin::File, &Options::DEFAULT).expect("a report");
    assert_eq!((report.verdict(), report.findings[0].problem.code()), (Verdict::Suspicious, "sc-nested"));
}
