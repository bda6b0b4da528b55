//! HDF5 and Keras.

use std::path::Path;

use foreign_tensors::{Error, Model, NoCompanions, Options, read};

use crate::mutants::survive;
use crate::vectors::check;

#[test]
fn vectors_of_hdf5_are_read() {
    check(&["hdf5", "hostile/hdf5"]);
}

#[test]
fn vectors_of_keras_are_read() {
    check(&["keras", "hostile/keras"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    survive(&["hdf5", "hostile/hdf5"]);
}

#[test]
fn mutants_of_keras_are_refused_or_read_within_bounds() {
    survive(&["keras", "hostile/keras"]);
}

fn bytes(vector: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import");
    std::fs::read(root.join(vector)).expect("a vector")
}

fn model_with(vector: &str, set: impl FnOnce(&mut Options)) -> Result<Model, Error> {
    let mut options = Options::default();
    set(&mut options);
    read(&bytes(vector), &NoCompanions, &options)
}

fn model(vector: &str) -> Model {
    model_with(vector, |_| {}).expect("a model")
}

fn names(model: &Model) -> Vec<&str> {
    model.tensors().iter().map(foreign_tensors::Tensor::name).collect()
}

fn notes(model: &Model) -> Vec<&str> {
    model.notes().iter().map(|note| note.place.as_str()).collect()
}

fn entry<'m>(model: &'m Model, name: &str) -> Option<&'m str> {
    model.entries().iter().find(|(entry, _)| entry == name).map(|(_, json)| json.as_str())
}

/// Message of the first error on the way to the bytes of all tensors.
fn refusal(bytes: &[u8]) -> String {
    let read = read(&bytes, &NoCompanions, &Options::default());
    let read = read.and_then(|model| {
        model.check()?;
        model.tensors().iter().try_for_each(|tensor| tensor.to_vec(&model, &bytes).map(drop))
    });
    read.expect_err("a refusal").to_string()
}

#[test]
fn what_cannot_be_represented_is_named() {
    for (vector, tensor, problem) in [
        ("hdf5/lzf.h5", "lzf", "data with the filter 32000 (LZF)"),
        ("hdf5/external_storage.h5", "e", "data in other files"),
        ("hdf5/virtual.h5", "v", "data of a virtual dataset"),
        ("hdf5/non_tensors.h5", "comp", "records"),
        ("hdf5/non_tensors.h5", "opaque", "elements of 5 opaque bytes"),
        ("hdf5/non_tensors.h5", "vlen", "sequences of varying length"),
    ] {
        let model = model(vector);
        let found = model.tensors().iter().find(|found| found.name() == tensor).expect("a tensor");
        assert_eq!(found.problem(), Some(problem), "{vector}");
        assert_eq!(model.check().expect_err("a refusal").code(), "ft-tensor-unsupported");
    }
    let left = |options: &mut Options| options.exclude = ["comp", "opaque", "vl*"].map(Into::into).into();
    let model = model_with("hdf5/non_tensors.h5", left).expect("a model");
    assert!(model.check().is_ok());
    assert_eq!(names(&model), ["w"]);
    assert_eq!(entry(&model, "names"), Some("[\"a\",\"bc\"]"));
    let mut left_out = notes(&model);
    left_out.sort_unstable();
    assert_eq!(left_out, ["comp", "null", "opaque", "ref", "vlen"]);
}

#[test]
fn malformed_files_are_refused_where_they_are() {
    for (vector, message) in [
        (
            "hostile/hdf5/btree_loop.h5",
            "the nodes of a B-tree contradict each other, tensor \"w\", at byte 1400",
        ),
        (
            "hostile/hdf5/chunk_garbage.h5",
            "a compressed chunk is damaged or too long, tensor \"w\", at byte 7281",
        ),
        ("hostile/hdf5/dims_huge.h5", "an address is beyond the end of the file, tensor \"w\", at byte 1400"),
        ("hostile/hdf5/eof_lies.h5", "the file is shorter than its superblock says, at byte 0"),
        (
            "hostile/hdf5/offset_size.h5",
            "HDF5 with addresses or lengths other than 2, 4 or 8 bytes cannot be read, at byte 0",
        ),
        ("hostile/hdf5/root_past_end.h5", "an address is beyond the end of the file, at byte 1099511627776"),
        ("hostile/hdf5/sb_version.h5", "this version of the superblock of HDF5 cannot be read, at byte 0"),
        ("hostile/hdf5/sig_only.h5", "a structure is cut short, at byte 0"),
        ("hostile/hdf5/truncated.h5", "the file is shorter than its superblock says, at byte 0"),
    ] {
        assert_eq!(refusal(&bytes(vector)), message, "{vector}");
    }
}

#[test]
fn damage_behind_a_checksum_is_found() {
    for (vector, signatures) in [
        ("hdf5/filters_latest.h5", [b"OHDR", b"OCHK", b"FADB", b"FAHD"]),
        ("hdf5/fill_values_latest.h5", [b"OHDR", b"EAHD", b"EAIB", b"FADB"]),
        ("hdf5/many_groups_latest.h5", [b"BTHD", b"BTLF", b"FRHP", b"FHIB"]),
        ("hdf5/many_groups_latest.h5", [b"OHDR", b"OCHK", b"FHDB", b"BTHD"]),
    ] {
        let original = bytes(vector);
        for signature in signatures {
            let at = original.windows(4).position(|window| window == signature).expect("a structure");
            let mut damaged = original.clone();
            damaged[at + 6] ^= 1;
            let refusal = refusal(&damaged);
            assert!(
                refusal.starts_with("a checksum does not match"),
                "{} {refusal}",
                signature.escape_ascii()
            );
        }
    }
    let original = bytes("hdf5/filters_latest.h5");
    // Within the one chunk of the dataset `fletcher`.
    let mut damaged = original;
    damaged[0x20b0 + 500] ^= 1;
    assert_eq!(
        refusal(&damaged),
        "the checksum of a chunk does not match, tensor \"fletcher\", at byte 8368"
    );
}

#[test]
fn chunks_that_are_not_in_order_are_refused() {
    let mut bytes = bytes("hdf5/filters.h5");
    // A node of a B-tree of chunks: after 24 bytes keys of 32 bytes, each before an address. Offsets begin at the 8th byte of a key.
    let node = bytes.windows(5).position(|window| window == b"TREE\x01").expect("a B-tree");
    bytes.copy_within(node + 32..node + 56, node + 72);
    assert!(
        refusal(&bytes).starts_with("the chunks of a dataset are empty or not in order, tensor \"chunked\"")
    );
}

#[test]
fn links_give_aliases_and_notes() {
    let model = model("hdf5/links.h5");
    assert_eq!(names(&model), ["a.w"]);
    let aliases: Vec<_> =
        model.aliases().iter().map(|alias| (alias.name.as_str(), alias.of.as_str())).collect();
    assert_eq!(aliases, [("b_hard", "a.w"), ("c_soft", "a.w")]);
    assert_eq!(notes(&model), ["ext", "dangling"]);
    let model = model_with("hdf5/links.h5", |options| options.exclude = vec!["a.*".into()]).expect("a model");
    assert_eq!((names(&model), model.aliases().len()), (vec!["b_hard"], 1));
}

#[test]
fn a_group_can_be_chosen() {
    let choose =
        |key: &'static str| model_with("keras/legacy_full.h5", |options| options.object = key.into());
    let model = choose("model_weights.dense_a").expect("a model");
    assert_eq!(names(&model), ["dense_a.bias", "dense_a.kernel"]);
    let model = choose("model_weights.dense_a.dense_a.bias").expect("a model");
    assert_eq!(names(&model), ["bias"]);
    let error = choose("model").expect_err("a refusal");
    assert_eq!(error.to_string(), "no such object, there are: model_weights, optimizer_weights");
}

#[test]
fn configurations_are_entries() {
    let model = model("keras/legacy_full.h5");
    assert_eq!(entry(&model, "backend"), Some("\"tensorflow\""));
    assert_eq!(
        entry(&model, "model_weights.dense_a.weight_names"),
        Some("[\"dense_a/kernel\",\"dense_a/bias\"]")
    );
    assert!(entry(&model, "model_config").expect("an entry").starts_with("{\"class_name\""));
    let model = self::model("keras/model.keras");
    assert!(entry(&model, "config.json").expect("an entry").starts_with("{\"module\""));
    let model = self::model("hostile/keras/no_config.keras");
    assert_eq!(notes(&model), ["config.json"]);
}

#[test]
fn opaque_elements_are_what_is_said_of_them() {
    // The name of the attribute with the type is changed.
    let mut unnamed = bytes("keras/bf16.weights.h5");
    for at in 0..unnamed.len() - 6 {
        if &unnamed[at..at + 6] == b"dtype\0" {
            unnamed[at] = b'D';
        }
    }
    assert!(refusal(&unnamed).starts_with("two opaque bytes, which may be bfloat16 (--void-as-bf16"));
    let mut options = Options::default();
    options.void_is_bf16 = true;
    let model = read(&unnamed, &NoCompanions, &options).expect("a model");
    assert!(model.tensors().iter().all(|tensor| tensor.dtype().name() == "BF16"));
}

#[test]
fn user_blocks_of_any_length_are_passed() {
    let plain = bytes("hdf5/rank5.h5");
    let expected = read(&plain, &NoCompanions, &Options::default()).expect("a model");
    for len in [512, 1024, 2048, 1 << 16] {
        let file = [vec![b' '; len], plain.clone()].concat();
        let model = read(&file, &NoCompanions, &Options::default()).expect("a model");
        assert_eq!(names(&model), names(&expected), "{len}");
        for (tensor, other) in model.tensors().iter().zip(expected.tensors()) {
            let bytes = tensor.to_vec(&model, &file).expect("bytes");
            assert_eq!(bytes, other.to_vec(&expected, &plain).expect("bytes"), "{len}: {tensor:?}");
        }
    }
}

#[test]
fn deflated_weights_are_bounded_by_a_limit() {
    let error = model_with("keras/deflated.keras", |options| options.limits.decompressed_bytes = 31_207);
    let error = error.expect_err("31,208 bytes");
    assert_eq!(error.code(), "ft-limit");
    assert!(error.to_string().contains("decompressed_bytes"), "{error}");
}
