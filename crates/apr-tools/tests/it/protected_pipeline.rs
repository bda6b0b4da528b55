//! One model through the whole pipeline: quantized, compressed, signed, encrypted, inspected, exported. Every step reversed gives
//! the bytes before it.

use apr_container::v2;
use apr_models::{AnyModel, Model as _, QuantType};
use apr_quant::Dtype;
use gguf_core::Gguf;
use serde_json::Value;
use st_core::SafeTensors;

use crate::exports::{json, with_network};
use crate::protection::reseal;
use crate::sandbox::Sandbox;

const BUYER: [&str; 4] = ["--identity", "buyer.key", "--signer", "maker.key.pub"];

fn run(sandbox: &Sandbox, line: &str) -> String {
    let ran = sandbox.run(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(ran.exit, 0, "{line}\n{}", ran.stderr);
    ran.stdout
}

fn report(sandbox: &Sandbox, line: &str) -> Value {
    json(sandbox, &line.split(' ').collect::<Vec<_>>())
}

/// A file of version 2 with everything after its header in one lz4 block, as another program compresses it.
fn compressed(raw: &[u8]) -> Vec<u8> {
    let mut file = raw.to_vec();
    file[6] |= 1;
    let mut checked = file[..40].to_vec();
    checked.extend_from_slice(&file[44..64]);
    file[40..44].copy_from_slice(&crc32fast::hash(&checked).to_le_bytes());
    let file = reseal(file);
    [&file[..64], &lz4_flex::compress_prepend_size(&file[64..])].concat()
}

/// The blocks of `AprQ4` as those of `Q4_0`, which pair elements that are 16 apart and not neighbours.
fn paired_as_ggml(blocks: &[u8]) -> Vec<u8> {
    let one = |block: &[u8]| {
        let code = |idx: usize| block[2 + idx / 2] >> (4 * (idx % 2)) & 0xF;
        [block[..2].to_vec(), (0..16).map(|idx| code(idx) | code(idx + 16) << 4).collect()].concat()
    };
    blocks.chunks(18).flat_map(one).collect()
}

fn bits(values: impl IntoIterator<Item = f32>) -> Vec<u32> {
    values.into_iter().map(f32::to_bits).collect()
}

#[test]
fn every_step_of_the_pipeline_is_reversible_to_the_bit() {
    let sandbox = with_network();
    let float = sandbox.read("model.apr");

    // Quantize: the blocks are those of the library.
    run(&sandbox, "quantize model.apr --type q4_0 --output model-q4.apr");
    let quantized = sandbox.read("model-q4.apr");
    let ours = AnyModel::from_bytes(&float).unwrap().quantize(QuantType::Q4_0).unwrap();
    let ours: Vec<_> = ours.tensors().map(Result::unwrap).collect();
    let container = v2::Container::from_bytes(&quantized).unwrap();
    assert!(container.tensors().unwrap().eq(ours));
    let shares = report(&sandbox, "inspect model-q4.apr --quantization");
    let four = shares["types"].as_array().unwrap().iter().find(|row| row["type"] == "Q4_0").unwrap();
    assert_eq!((&four["block_elements"], &four["bits_per_weight"]), (&Value::from(32), &Value::from(4.5)));
    let expected = report(&sandbox, "predict model-q4.apr -i rows.csv")["predictions"].clone();

    // Compress, and back: the floats by this program, the blocks as another program does.
    run(&sandbox, "convert model.apr packed.apr --compression zstd");
    run(&sandbox, "convert packed.apr unpacked.apr --compression none");
    assert!(sandbox.read("packed.apr").len() < float.len());
    assert!(sandbox.read("unpacked.apr") == float);
    let packed = compressed(&quantized);
    assert!(packed.len() < quantized.len());
    sandbox.write("model-q4.lz4.apr", &packed);
    run(&sandbox, "check model-q4.lz4.apr");
    run(&sandbox, "convert model-q4.lz4.apr unpacked-q4.apr");
    assert!(sandbox.read("unpacked-q4.apr") == quantized);

    // Sign, verify. A license, then, is covered like every other byte.
    run(&sandbox, "convert model-q4.apr licensed-q4.apr --set license=LicenseRef-Example");
    let licensed = sandbox.read("licensed-q4.apr");
    let container = v2::Container::from_bytes(&licensed).unwrap();
    assert_eq!(container.metadata().license.as_deref(), Some("LicenseRef-Example"));
    for file in ["model-q4.apr", "model-q4.lz4.apr", "licensed-q4.apr"] {
        run(&sandbox, &format!("sign {file} --key maker.key"));
        let verified = report(&sandbox, &format!("verify {file} --signer maker.key.pub"));
        assert_eq!(verified["trusted"], true, "{verified:#}");
    }

    // Encrypt and sign, inspect, decrypt: what comes back is what was signed before.
    for (file, lock, keys) in [
        ("model-q4.apr", "--recipient buyer.key.pub", "--identity buyer.key"),
        ("model-q4.lz4.apr", "--recipient buyer.key.pub", "--identity buyer.key"),
        ("licensed-q4.apr", "--recipient buyer.key.pub", "--identity buyer.key"),
        ("licensed-q4.apr", "--password-file password.txt", "--password-file password.txt"),
        ("unpacked.apr", "--recipient buyer.key.pub", "--identity buyer.key"),
    ] {
        run(&sandbox, &format!("encrypt {file} -o closed {lock} --sign maker.key --force"));
        let said = report(&sandbox, "inspect closed");
        assert!(!said.to_string().contains("LicenseRef-Example"), "{said:#}");
        report(&sandbox, &format!("inspect closed --verify {keys} --signer maker.key.pub"));
        assert_eq!(report(&sandbox, "verify closed --signer maker.key.pub")["trusted"], true);
        let found = report(&sandbox, &format!("predict closed -i rows.csv {keys} --signer maker.key.pub"));
        if file != "unpacked.apr" {
            assert_eq!(found["predictions"], expected, "{file}");
        }
        run(&sandbox, &format!("decrypt closed -o opened.apr {keys} --signer maker.key.pub --force"));
        assert!(sandbox.read("opened.apr") == sandbox.read(file), "{file} {lock}");
        if file != "unpacked.apr" {
            let verify = format!("verify opened.apr --signature {file}.minisig --signer maker.key.pub");
            assert_eq!(report(&sandbox, &verify)["trusted"], true);
        }
    }
    assert_eq!(sandbox.run(&[&["decrypt", "closed", "-o", "x.apr"], &BUYER[..2]].concat()).exit, 4);

    // Export what was decrypted and decompressed: the same blocks in GGUF, the same numbers as floats.
    run(&sandbox, "export unpacked-q4.apr --format gguf --output model.gguf --force");
    run(&sandbox, "export unpacked-q4.apr --format safetensors --output model/");
    let exported = sandbox.read("model.gguf");
    let exported = Gguf::from_bytes(&exported).unwrap();
    let container = v2::Container::from_bytes(&quantized).unwrap();
    let mut n_quantized = 0;
    for view in container.tensors().unwrap() {
        let info = exported.tensor(view.name()).unwrap();
        let blocks = exported.tensor_data(info).unwrap();
        if view.dtype() == v2::AprType::AprQ4 {
            n_quantized += 1;
            assert_eq!(info.dtype(), Dtype::Q4_0);
            assert!(blocks == paired_as_ggml(view.data()), "{}", view.name());
        } else {
            assert!(blocks == view.data(), "{}", view.name());
        }
    }
    assert_eq!(n_quantized, 2);
    let plain = sandbox.read("model/model.safetensors");
    let plain = SafeTensors::from_bytes(&plain).unwrap();
    for view in container.tensors().unwrap() {
        let values = plain.tensor(view.name()).unwrap().elements::<f32>().unwrap();
        assert_eq!(bits(values), bits(view.to_f32().unwrap()), "{}", view.name());
    }
    // And back from GGUF.
    run(&sandbox, "convert model.gguf back.apr");
    let back = sandbox.read("back.apr");
    let back = v2::Container::from_bytes(&back).unwrap();
    assert!(back.tensors().unwrap().eq(container.tensors().unwrap()));
    for file in ["model.gguf", "model/model.safetensors", "back.apr"] {
        assert_eq!(report(&sandbox, &format!("predict {file} -i rows.csv"))["predictions"], expected);
    }
    assert!(sandbox.leftovers().is_empty());
}
