//! PyTorch.

use foreign_tensors::{Error, Folder, Model, Options, read};
use read_at::FileSource;

use crate::vectors::{check, root};

fn read_vector(name: &str, options: &Options) -> Result<Model, Error> {
    let path = root().join(name);
    let file = FileSource::new(std::fs::File::open(&path).expect("a vector")).expect("its length");
    read(&file, &Folder::of_file(&path), options)
}

fn names(model: &Model) -> Vec<&str> {
    model.tensors().iter().map(foreign_tensors::Tensor::name).collect()
}

#[test]
fn vectors() {
    check(&["torch", "hostile/torch"]);
}

#[test]
fn mutants_are_read_or_refused() {
    crate::mutants::survive(&["torch", "hostile/torch"]);
}

#[test]
fn a_key_chooses_a_nested_object() {
    let mut options = Options::default();
    options.object = "model".into();
    let model = read_vector("torch/trainer.ckpt", &options).expect("a model");
    assert_eq!(names(&model), ["weight", "bias"]);
    options.object = "optimizer.state.0".into();
    let model = read_vector("torch/trainer.ckpt", &options).expect("a state");
    assert_eq!(names(&model), ["step", "exp_avg", "exp_avg_sq"]);
    options.object = "history.1".into();
    assert_eq!(names(&read_vector("torch/trainer.ckpt", &options).expect("a list")), ["0"]);
    for key in ["modelx", "model.weight.x", "model.", "."] {
        options.object = key.into();
        let error = read_vector("torch/trainer.ckpt", &options).expect_err("no such key");
        assert_eq!(error.code(), "ft-key", "{key}");
    }
    options.object = "nothing".into();
    let error = read_vector("torch/trainer.ckpt", &options).expect_err("no such key").to_string();
    assert!(error.contains("model, ") && error.contains("optimizer"), "{error}");
}

#[test]
fn what_is_no_tensor_is_json() {
    let entries = |name: &str| {
        let model = read_vector(name, &Options::default()).expect("a model");
        model.entries().iter().map(|(name, json)| format!("{name} = {json}")).collect::<Vec<_>>()
    };
    let found = entries("torch/trainer.ckpt");
    for expected in [
        "epoch = 12",
        "global_step = 1099511627777",
        "lr = 0.25",
        "name = \"run é中\"",
        "done = false",
        "none = null",
        "optimizer.param_groups.0.betas = [0.9,0.999]",
    ] {
        assert!(found.iter().any(|entry| entry == expected), "{expected}: {found:?}");
    }
    assert_eq!(entries("torch/np_leaves.ckpt"), ["best = 0.75", "step = 9"]);
    assert_eq!(
        entries("torch/namespace.ckpt"),
        ["args.lr = 0.1", "args.layers = [1,2]", "path = \"runs/1\""]
    );
    assert_eq!(entries("pickle/scalars.pkl"), ["a = 1.5", "b = 7", "c = true"]);
}

#[test]
fn a_module_has_the_names_of_its_state() {
    for (name, first) in [("torch/module.pt", "fc1.weight"), ("torch/module_legacy_old.pth", "0.weight")] {
        let model = read_vector(name, &Options::default()).expect("a module");
        assert_eq!((names(&model)[0], model.entries().len(), model.notes().len()), (first, 0, 1), "{name}");
    }
}

#[test]
fn bytes_that_are_stored_as_they_are_are_ranges_of_the_file() {
    for name in ["torch/sd_basic.pt", "torch/legacy_sd.pth", "torch/exported.pt2", "pickle/dict_proto4.pkl"] {
        let model = read_vector(name, &Options::default()).expect("a model");
        let n_stored = model.tensors().iter().filter(|tensor| tensor.stored().is_some()).count();
        // Of the pickle, one array is big-endian and one in column-major order.
        let others = if name.starts_with("pickle") { 2 } else { 0 };
        assert_eq!(n_stored + others, model.tensors().len(), "{name}");
    }
}

#[test]
fn excluded_tensors_are_left_out() {
    let mut options = Options::default();
    assert!(read_vector("torch/meta.pt", &options).expect("a list").check().is_err());
    options.exclude = ["m".into()].into();
    let model = read_vector("torch/meta.pt", &options).expect("a list");
    assert!(model.check().is_ok() && model.tensors().len() == 1 && model.notes().len() == 1);
    // The kept name of tied tensors is one that is not left out.
    options.exclude = ["head.*".into()].into();
    let model = read_vector("torch/pytorch_model.bin", &options).expect("tied weights");
    assert_eq!((names(&model), model.aliases().len()), (vec!["model.embed.weight", "bias"], 0));
}

#[test]
fn tied_tensors_are_one_with_two_names() {
    let model = read_vector("torch/pytorch_model.bin", &Options::default()).expect("tied weights");
    assert_eq!(names(&model), ["head.weight", "bias"]);
    let alias = &model.aliases()[0];
    assert_eq!((alias.name.as_str(), alias.of.as_str()), ("model.embed.weight", "head.weight"));
}

#[test]
fn shards_are_read_through_their_index() {
    let folder = Folder::new(root().join("torch"));
    let read_index = |text: &str| {
        let model = read(&text.as_bytes().to_vec(), &folder, &Options::default())?;
        let read_all = |tensor: &foreign_tensors::Tensor| tensor.to_vec(&model, &Vec::new());
        let all: Result<Vec<_>, _> = model.tensors().iter().map(read_all).collect();
        all.map(|all| (names(&model).join(" "), all))
    };
    let index = r#"{"metadata": {"total_size": 1}, "weight_map": {
        "w": "no_byteorder.pt", "b": "no_byteorder.pt", "half": "no_byteorder.pt", "bf": "legacy_new.pth"}}"#;
    let error = read_index(index).expect_err("both have a tensor w");
    assert_eq!(error.code(), "ft-duplicate-name");
    for (stored, other) in [("zip_deflated.pt", "parameters.pth"), ("conj_neg.pt", "zip_deflated.pt")] {
        let index =
            format!(r#"{{"weight_map": {{"half": "zip_deflated.pt", "x": "{stored}", "y": "{other}"}}}}"#);
        assert_eq!(read_index(&index).expect_err("no such tensor").code(), "ft-malformed", "{index}");
    }
    let index = r#"{"weight_map": {"half": "zip_deflated.pt", "conj": "conj_neg.pt"}}"#;
    let (found, bytes) = read_index(index).expect("two shards");
    assert_eq!(found, "conj plain neg w b half");
    let alone = root().join("torch/zip_deflated.pt");
    let file = FileSource::new(std::fs::File::open(&alone).expect("a vector")).expect("its length");
    let model = read(&file, &folder, &Options::default()).expect("a model");
    assert_eq!(model.tensors()[0].to_vec(&model, &file).expect("bytes"), bytes[3]);
    for path in ["../torch/conj_neg.pt", "/etc/passwd", "missing.bin", "pytorch_model.bin.vector.json"] {
        let index = format!(r#"{{"weight_map": {{"w": "{path}"}}}}"#);
        assert!(read_index(&index).is_err(), "{path}");
    }
}

/// An archive of members that are not compressed, without checksums.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let len = u32::try_from(content.len()).expect("a small file").to_le_bytes();
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend([len, len].concat());
        common.extend([name.len() as u8, 0, 0, 0]);
        let at = u32::try_from(file.len()).expect("a small file").to_le_bytes();
        directory.extend([b"PK\x01\x02\x14\0", common.as_slice(), &[0; 10], &at, name.as_bytes()].concat());
        file.extend([b"PK\x03\x04", common.as_slice(), name.as_bytes(), content].concat());
    }
    let sizes = [directory.len() as u32, file.len() as u32].map(u32::to_le_bytes).concat();
    let n_members = [members.len() as u8, 0, members.len() as u8, 0];
    [file, directory, [b"PK\x05\x06\0\0\0\0", n_members.as_slice(), &sizes, &[0, 0]].concat()].concat()
}

#[test]
fn an_older_exported_program_contains_its_state_as_an_archive() {
    for name in ["torch/sd_basic.pt", "torch/zip_deflated.pt"] {
        let inner = std::fs::read(root().join(name)).expect("a vector");
        let file = archive(&[
            ("serialized_exported_program.json", b"{}"),
            ("serialized_state_dict.pt", &inner),
            ("version", b"1"),
        ]);
        let outer = read(&file, &Folder::new("."), &Options::default()).expect("a program");
        let alone = read(&inner, &Folder::new("."), &Options::default()).expect("a state");
        assert_eq!(names(&outer), names(&alone));
        assert_eq!(outer.format().name(), "torch-export");
        for (tensor, alone_tensor) in outer.tensors().iter().zip(alone.tensors()) {
            let bytes = tensor.to_vec(&outer, &file).expect("bytes");
            assert_eq!(bytes, alone_tensor.to_vec(&alone, &inner).expect("bytes"), "{}", tensor.name());
        }
    }
}

/// A long history beside the weights is no reason not to read them.
#[test]
fn values_beyond_the_limit_are_left_out_and_tensors_are_read() {
    let all = read_vector("torch/trainer.ckpt", &Options::default()).expect("a model");
    let mut options = Options::default();
    options.limits.text_bytes = names(&all).iter().map(|name| name.len() as u64).sum();
    let some = read_vector("torch/trainer.ckpt", &options).expect("its tensors");
    assert_eq!(names(&some), names(&all));
    let kept = |model: &Model| {
        model.entries().iter().map(|(name, json)| (name.len() + json.len()) as u64).sum::<u64>()
    };
    assert!(kept(&some) <= options.limits.text_bytes && kept(&all) > options.limits.text_bytes);
    assert!(some.notes().iter().any(|note| note.text.contains("text_bytes")));
    options.limits.text_bytes -= 1;
    assert_eq!(read_vector("torch/trainer.ckpt", &options).err().map(|error| error.code()), Some("ft-limit"));
}
