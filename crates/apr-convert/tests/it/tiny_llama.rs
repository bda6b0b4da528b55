//! What llama-quantize made of one small model, made again: types, order, bytes, the whole file.

use std::path::PathBuf;

use apr_convert::quantize::{Mixture, ModelFacts, Options, Plan, Target, TensorSpec};
use apr_convert::{Error, Transcoder};
use gguf_core::{Gguf, GgufBuilder};

fn vector(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/gguf/files");
    std::fs::read(folder.join(name)).unwrap()
}

fn shapes(gguf: &Gguf<'_>) -> Vec<Vec<u64>> {
    gguf.tensors().iter().map(|info| info.shape().collect()).collect()
}

fn specs<'a>(gguf: &'a Gguf<'_>, shapes: &'a [Vec<u64>]) -> Vec<TensorSpec<'a>> {
    let infos = gguf.tensors().iter().zip(shapes);
    infos
        .map(|(info, shape)| TensorSpec {
            name: info.name().to_str().unwrap(),
            shape,
            dtype: Some(info.dtype()),
        })
        .collect()
}

/// The file that `options` make of another.
fn quantized(source: &[u8], options: &Options<'_>) -> Vec<u8> {
    let gguf = Gguf::from_bytes(source).unwrap();
    let shapes = shapes(&gguf);
    let specs = specs(&gguf, &shapes);
    let plan = Plan::new(&specs, &ModelFacts::of_gguf(gguf.header()), options).unwrap();

    let mut builder = GgufBuilder::new();
    builder.copy_entries(gguf.header()).unwrap();
    for key in ["general.quantization_version", "general.file_type"] {
        builder.remove(key);
    }
    builder.set("general.quantization_version", 2_u32).unwrap();
    builder.set("general.file_type", options.target.file_type().0).unwrap();
    let mut data = Vec::new();
    for decision in plan.decisions() {
        let spec = &specs[decision.tensor_idx];
        let (from, to) = (decision.from.unwrap(), decision.to.unwrap());
        builder.add_tensor(spec.name, to, spec.shape).unwrap();
        let bytes = gguf.tensor_data(gguf.tensor(spec.name).unwrap()).unwrap();
        let mut out = Vec::new();
        let read = |offset: u64, piece: &mut [u8]| -> Result<(), Error> {
            piece.copy_from_slice(&bytes[offset as usize..][..piece.len()]);
            Ok(())
        };
        let transcoder = Transcoder::new(from, to, spec.shape).unwrap();
        transcoder
            .run(read, |piece| {
                out.extend_from_slice(piece.bytes);
                Ok::<(), Error>(())
            })
            .unwrap();
        assert_eq!(out.len() as u64, decision.bytes.1);
        data.push(out);
    }
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    builder.layout().unwrap().to_vec(&data).unwrap()
}

#[test]
fn whole_files_are_those_of_llama_quantize() {
    let source = vector("tiny_llama_f32.gguf");
    let made = |target: &str, mixture| {
        let mut options = Options::new(Target::from_name(target).unwrap());
        options.mixture = mixture;
        quantized(&source, &options)
    };
    for target in ["BF16", "Q8_0", "Q4_0", "Q4_1", "Q4_K_M"] {
        let expected = vector(&format!("tiny_llama_{target}.gguf"));
        assert!(made(target, Mixture::Reference) == expected, "{target}");
    }
    assert!(made("q4_0", Mixture::Pure) == vector("tiny_llama_Q4_0_pure.gguf"));
}

#[test]
fn what_is_quantized_is_not_quantized_again_unasked() {
    let source = vector("tiny_llama_Q8_0.gguf");
    let gguf = Gguf::from_bytes(&source).unwrap();
    let shapes = shapes(&gguf);
    let specs = specs(&gguf, &shapes);
    let facts = ModelFacts::of_gguf(gguf.header());
    let mut options = Options::new(Target::from_name("q4_0").unwrap());
    let error = Plan::new(&specs, &facts, &options).unwrap_err();
    assert_eq!(
        (error.code(), error.subject().map(apr_convert::Subject::name)),
        ("cv-requantize", Some("token_embd.weight"))
    );
    options.requantize = apr_convert::quantize::Requantize::Allow;
    // The output tensor has its eight bits already.
    let plan = Plan::new(&specs, &facts, &options).unwrap();
    assert!(plan.decisions()[0].is_copy());
    assert_eq!(plan.totals().fallbacks, 1);
    assert!(plan.totals().bits_per_weight() < 6.0);
}
