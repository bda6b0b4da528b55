//! States by class: attributes that shadow methods, hooks, members of layers; and bytes that are pickles.

use model_scan::{Options, Origin, Verdict, scan, scan_file};

use crate::places::{call, check, dict, name, object, opcodes, tensor};
use crate::rules::codes;

const STATE: &[&str] = &["sc-unexpected-state"];

#[test]
fn layers_have_data_tensors_and_layers() {
    let layer = |attributes: &[(&str, &str)]| object("torch.nn.modules.container Sequential", attributes);
    let (inner, tensor) = (&object("torch.nn.modules.linear Identity", &[("training", "I00\n")]), &tensor());
    let ordered =
        |key: &str, value: &str| format!("{}V{key}\n{value}s", call("collections OrderedDict", &[]));
    for (key, value) in [
        ("training", "I01\n"),
        ("_is_full_backward_hook", "N"),
        ("_non_persistent_buffers_set", &call("__builtin__ set", &["]"])),
        ("_flat_weights", &format!("({tensor}l")),
        ("weight", tensor),
        ("kernel_size", "(I3\nI3\nt"),
        ("_forward_hooks", &call("collections OrderedDict", &[])),
        ("_forward_hooks", "}"),
        ("_state_dict_hooks", "N"),
        ("_parameters", &ordered("weight", tensor)),
        ("_parameters", &ordered("bias", "N")),
        ("_parameters", &dict(&[("weight", tensor)])),
        ("_parameters", &call("collections OrderedDict", &[&dict(&[("weight", tensor)])])),
        ("_parameters", &call("collections OrderedDict", &[&format!("((Vweight\n{tensor}ll")])),
        ("_parameters", &call("collections OrderedDict", &[&format!("((Vweight\n{tensor}tl")])),
        ("_buffers", &ordered("mean", tensor)),
        ("_modules", &ordered("0", inner)),
        ("_modules", &ordered("0", "N")),
        ("_modules", "}"),
    ] {
        check(&layer(&[(key, value)]), &[]);
    }
    let reconstructed = call(
        "copy_reg _reconstructor",
        &[&name("torch.nn.modules.linear Identity"), &name("__builtin__ object"), "N"],
    );
    check(&layer(&[("_modules", &ordered("0", &reconstructed))]), &[]);
    check(&format!("{reconstructed}{}b", dict(&[("training", "I00\n")])), &[]);
    check(&format!("{reconstructed}{}b", dict(&[("forward", "I00\n")])), STATE);
    for (key, value) in [
        ("forward", "N"),
        ("_call_impl", tensor.as_str()),
        ("_compiled_call_impl", "N"),
        ("__class__", "N"),
        ("detach", inner),
        ("x", &object("argparse Namespace", &[("a", "N")])),
        ("_forward_pre_hooks", &ordered("0", "N")),
        ("_forward_pre_hooks", &dict(&[("0", "N")])),
        ("_load_state_dict_pre_hooks", "]"),
        ("_parameters", &ordered("weight", inner)),
        ("_parameters", &ordered("forward", tensor)),
        ("_parameters", "]"),
        ("_parameters", "N"),
        ("_parameters", &call("collections OrderedDict", &["(I1\nl"])),
        ("_parameters", &call("collections OrderedDict", &[&format!("((Vweight\n{inner}tl")])),
        ("_buffers", &ordered("mean", "I1\n")),
        ("_modules", &ordered("0", tensor)),
        ("_modules", &ordered("requires_grad_", inner)),
        ("_modules", &ordered("__call__", inner)),
        ("_modules", &object("argparse Namespace", &[("a", "N")])),
    ] {
        check(&layer(&[(key, value)]), STATE);
    }
    check(&format!("{})\u{81}}}I1\nNsb", name("torch.nn.modules.linear Identity")), STATE);
    // A member that is added after the state.
    let late = format!("}}p0\n0{}g0\nV0\n{tensor}s", layer(&[("_modules", "g0\n")]));
    check(&late, STATE);
}

#[test]
fn states_are_plain() {
    let ordered = &call("collections OrderedDict", &[]);
    let metadata = |key: &str, value: &str| format!("{ordered}{}b", dict(&[(key, value)]));
    check(&metadata("_metadata", ordered), &[]);
    check(&metadata("_metadata", "}"), &[]);
    check(&metadata("_metadata", "N"), STATE);
    check(&metadata("items", "}"), STATE);
    for class in ["torch.nn.modules.linear Identity", "argparse Namespace", "sklearn.pipeline Pipeline"] {
        let state = |state: &str| format!("{})\u{81}{state}b", name(class));
        check(&state("}"), &[]);
        for (key, expected) in [("__private", &[][..]), ("end__", &[]), ("__class__", STATE), ("", STATE)] {
            check(&state(&dict(&[(key, "N")])), expected);
        }
        for other in [ordered.as_str(), "]", "(}}t", "(N}t", "I1\n"] {
            check(&state(other), STATE);
        }
    }
    let path = call("pathlib PurePosixPath", &["Va\n"]);
    check(&format!("{path}}}b"), STATE);
    check(&format!("{path}(NNtb"), &[]);
    check(&format!("{path}Nb"), &[]);
    // A large state is that of one object.
    let entries: String = (0..65).map(|idx| format!("Vk{idx}\nN")).collect();
    for (count, expected) in [(65, STATE), (64, &[][..])] {
        let entries: String = (0..count).map(|idx| format!("Vk{idx}\nN")).collect();
        let shared = format!("{}p0\n0", name("argparse Namespace"));
        check(&format!("{shared}}}({entries}up1\n0g0\n)\u{81}g1\nbg0\n)\u{81}g1\nb"), expected);
    }
    check(&format!("{})\u{81}}}({entries}ub", name("argparse Namespace")), &[]);
}

#[test]
fn estimators_keep_their_methods() {
    let estimator = |key: &str, value: &str| object("sklearn.pipeline Pipeline", &[(key, value)]);
    let step = &object("sklearn.preprocessing._data StandardScaler", &[("with_mean", "I01\n")]);
    for (key, value) in [
        ("steps", format!("((Vscale\n{step}tl").as_str()),
        ("memory", "N"),
        ("input", "Vcontent\n"),
        ("_sklearn_version", "V1.9.1\n"),
        ("coef_", &call("numpy.core.multiarray _reconstruct", &[&name("numpy ndarray"), "(I0\nt", "S'b'\n"])),
    ] {
        check(&estimator(key, value), &[]);
    }
    for (key, value) in [
        ("predict", step.as_str()),
        ("fit", "N"),
        ("__class__", "N"),
        ("memory", "V/tmp\n"),
        ("input", "Vfilename\n"),
    ] {
        check(&estimator(key, value), STATE);
    }
    let bunch = format!("{})\u{81}Vfit\nNs", name("sklearn.utils._bunch Bunch"));
    check(&bunch, &[]);
    check(&(step.clone() + "Vfit\nNs"), STATE);
    check(&object("sklearn.utils._metadata_requests MetadataRequest", &[("fit", "N")]), &[]);
    let tree = call("sklearn.tree._tree Tree", &["I1\n", "N", "I1\n"]);
    check(&format!("{tree}{}b", dict(&[("values", "N")])), &[]);
    check(&format!("{tree}(Ntb"), &[]);
    check(&format!("{tree}]b"), STATE);
    check(
        &object("joblib.numpy_pickle NumpyArrayWrapper", &[("read", "N")])[..],
        &["sc-unexpected-state", "sc-malformed"],
    );
}

#[test]
fn a_pickle_in_bytes_is_found_wherever_it_lies() {
    let found = |bytes: &[u8]| {
        let stream = [b"\x80\x03(}C".as_slice(), &[bytes.len() as u8], bytes, b"l."].concat();
        codes(&stream, Origin::File)
    };
    let hidden = (Verdict::Suspicious, vec!["sc-hidden-pickle"]);
    for bytes in [
        b"\x80\x02cos\nsystem\n(X\x01\0\0\0:tR.".as_slice(),
        b"\x80\x02cos\nsystem\n(X\x01\0\0\0:tR",
        b"cos\nsystem\n(S':'\ntR.",
        b"cos\nfork\n)R.",
        b"cmy.module\nRun\n)R.",
        b"cmy.module\nRunning\n.",
        b"cmy_module\nRun_it\n)R.",
        b"\x80\x02\x82\x01)R0000000",
    ] {
        assert_eq!(found(bytes), hidden, "{}", bytes.escape_ascii());
    }
    assert_eq!(found(b"PK\x03\x04\0\0\0\0\0\0\0\0"), (Verdict::Suspicious, vec!["sc-nested"]));
    for bytes in [
        b"\x80\x02}X\x04\0\0\0nameK\x01s.".as_slice(),
        b"cos\nfork\n)R",
        b"config\nname and more text",
        b"cmy module\nRun\n)R.",
        b"c\nRunningFast\n)R.",
        b"cmy.module\nRunning\n and more",
        b"\x80\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ] {
        assert_eq!(found(bytes), (Verdict::Safe, vec![]), "{}", bytes.escape_ascii());
    }
    // As a byte array, as text of Python 2 and as text that becomes bytes.
    let text = "cos\\u000asystem\\u000a(S':'\\u000atR.";
    for stream in [
        "\u{80}\u{5}\u{96}\u{14}\0\0\0\0\0\0\0cos\nsystem\n(S':'\ntR.".to_owned(),
        "U\u{14}cos\nsystem\n(S':'\ntR.".to_owned(),
        call("_codecs encode", &[&format!("V{text}\n"), "Vlatin1\n"]),
        call("__builtin__ bytearray", &[&format!("V{text}\n"), "Vlatin1\n"]),
    ] {
        check(&stream, &["sc-hidden-pickle"]);
    }
    check(&format!("V{text}\n"), &[]);
    // As deep as other pickles are followed.
    let bytes = b"\x80\x02cos\nsystem\n(X\x01\0\0\0:tR.";
    let stream = [b"\x80\x03C".as_slice(), &[bytes.len() as u8], bytes, b"."].concat();
    let mut options = Options::DEFAULT;
    options.depth = 0;
    let report = scan(stream.as_slice(), Origin::File, &options).expect("a report");
    assert_eq!(report.findings.iter().map(|found| found.problem.code()).collect::<Vec<_>>(), ["sc-nested"]);
    options.depth = 1;
    let report = scan(stream.as_slice(), Origin::File, &options).expect("a report");
    assert_eq!(
        report.findings.iter().map(|found| found.problem.code()).collect::<Vec<_>>(),
        ["sc-hidden-pickle"]
    );
    let code = opcodes("C\u{c}cos\nsystem\n(.");
    assert_eq!(scan(code.as_slice(), Origin::File, &options).expect("a report").verdict(), Verdict::Safe);
}

/// `pickle.load` reads an array of objects in a file of joblib: the memo of the file is that of the array.
#[test]
fn the_memo_of_an_array_of_objects_is_its_own() {
    let array = |before: &str, inner: &str| {
        let start = "\u{8c}\u{13}joblib.numpy_pickle\u{94}\u{8c}\u{11}NumpyArrayWrapper\u{94}\u{93}\u{94})\u{81}\u{94}}(\
            \u{8c}\u{5}shapeK\u{1}\u{85}\u{8c}\u{5}order\u{8c}\u{1}C\u{8c}\u{5}dtypecnumpy\ndtype\n\u{8c}\u{2}O8\
            \u{89}\u{88}\u{87}R(K\u{3}\u{8c}\u{1}|NNNJ\u{ff}\u{ff}\u{ff}\u{ff}J\u{ff}\u{ff}\u{ff}\u{ff}K?tbub";
        let stream = format!("\u{80}\u{4}{before}{start}\u{80}\u{4}{inner}.0N.");
        codes(&opcodes(&stream), Origin::File)
    };
    // The module of the type by the memo of the array: another value by that of the file.
    let typed = "00000\u{8c}\u{5}numpy\u{94}0h\0\u{8c}\u{5}dtype\u{93}\u{8c}\u{2}O8\u{89}\u{88}\u{87}R";
    let typed = typed.trim_start_matches('0');
    for before in [
        "",
        "]\u{94}",
        "\u{8c}\u{8}features\u{94}",
        "\u{8c}\u{9}two words\u{94}",
        "ctorch\nfloat32\n\u{94}",
        "N\u{94}",
    ] {
        assert_eq!(array(before, typed), (Verdict::Safe, vec![]), "{before}");
    }
    assert_eq!(array("cmy.module\nName\n\u{94}", typed).0, Verdict::Suspicious);
    assert_eq!(array("cmy.module\nName\n)\u{81}\u{94}", typed).0, Verdict::Suspicious);
    // Modules that have a type of this name, or may be any string.
    for before in ["torch", "jax", "cupy", "mxnet", "ml_dtypes", "tensorflow", "my.data"] {
        let before = &format!("\u{8c}{}{before}\u{94}", char::from(before.len() as u8));
        assert_eq!(array(before, typed), (Verdict::Suspicious, vec!["sc-unknown-name"]), "{before}");
    }
    assert_eq!(array("cos\nname\n\u{94}", typed).0, Verdict::Dangerous);
    assert_eq!(array("c__builtin__\nstr\n(Vos\ntR\u{94}", typed).0, Verdict::Dangerous);
    // Another name than that of a type.
    let system = "\u{8c}\u{8}my_local\u{94}0h\0\u{8c}\u{6}system\u{93}";
    assert_eq!(array("\u{8c}\u{2}os\u{94}", system).0, Verdict::Dangerous);
}

/// Verdicts of the files of a folder of `tests/data`.
fn verdicts(folder: &str) -> Vec<(String, Verdict)> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder);
    let paths = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let judged = paths.map(|path| {
        let bytes = std::fs::read(&path).expect("a file");
        let report = scan_file(bytes.as_slice(), &Options::DEFAULT).expect("a report");
        (path.display().to_string(), report.verdict())
    });
    judged.collect()
}

#[test]
fn gadgets_of_allowed_names_are_not_safe() {
    let found = verdicts("gadgets");
    assert_eq!(found.len(), 14);
    let missed: Vec<_> = found.iter().filter(|(_, verdict)| *verdict == Verdict::Safe).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn what_libraries_write_is_safe() {
    let found = verdicts("written");
    assert_eq!(found.len(), 32);
    let alarms: Vec<_> = found.iter().filter(|(_, verdict)| *verdict != Verdict::Safe).collect();
    assert!(alarms.is_empty(), "{alarms:?}");
}
