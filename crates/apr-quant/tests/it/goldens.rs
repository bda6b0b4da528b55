//! Every section of every pack that the reference filled.

use std::fs;
use std::path::Path;

use apr_quant::{Dtype, NonFinite, Quantizer, SimdLevel, dequantize_on};
use serde_json::Value;

/// Formats that the reference quantizes and this crate only reads.
const READ_ONLY: [Dtype; 7] =
    [Dtype::IQ1_S, Dtype::IQ1_M, Dtype::IQ2_XXS, Dtype::IQ2_XS, Dtype::IQ2_S, Dtype::IQ3_XXS, Dtype::IQ3_S];

struct Section {
    name: String,
    kind: String,
    bytes: Vec<u8>,
}

struct Pack {
    name: String,
    class: String,
    sections: Vec<Section>,
}

impl Pack {
    fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    fn floats(&self, name: &str) -> Option<Vec<f32>> {
        let (floats, _) = self.section(name)?.bytes.as_chunks();
        Some(floats.iter().copied().map(f32::from_le_bytes).collect())
    }

    /// Sections of blocks with their format and what the reference reads from them.
    fn blocks(&self) -> impl Iterator<Item = (Dtype, &[u8], Option<&Section>)> {
        self.sections.iter().filter(|section| section.kind == "blocks").map(|section| {
            let dtype = Dtype::from_name_ignore_case(&section.name).unwrap();
            (dtype, &section.bytes[..], self.section(&format!("{}.f32", section.name)))
        })
    }
}

fn packs() -> Vec<Pack> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/quantization");
    let entries =
        fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        entries.filter_map(|name| name.strip_suffix(".vector.json").map(str::to_owned)).collect();
    names.sort();
    // More may be added.
    assert!(names.len() >= 22, "{}", names.len());
    names.into_iter().map(|name| pack(&folder, name)).collect()
}

fn pack(folder: &Path, name: String) -> Pack {
    let sidecar = fs::read(folder.join(format!("{name}.vector.json"))).unwrap();
    let sidecar: Value = serde_json::from_slice(&sidecar).unwrap();
    let file = fs::read(folder.join(&name)).unwrap();
    let section = |entry: &Value| {
        let number = |key: &str| usize::try_from(entry[key].as_u64().unwrap()).unwrap();
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        let bytes = file[number("offset")..][..number("len")].to_vec();
        Section { name: text("name"), kind: text("kind"), bytes }
    };
    let sections = sidecar["sections"].as_array().unwrap().iter().map(section).collect();
    Pack { name, class: sidecar["class"].as_str().unwrap().into(), sections }
}

/// Sections that nothing defines, and why.
fn is_undefined(pack: &Pack, dtype: Dtype) -> Option<&'static str> {
    let searched = dtype.block_len() == 256;
    (pack.name == "q_fp16_overflow_scale.bin" && searched).then_some(
        "an infinite scale makes not-a-number, whose bits the search takes for codes; see the notes on edges",
    )
}

#[test]
fn quantized_blocks_are_those_of_the_reference() {
    let packs = packs();
    for level in SimdLevel::all() {
        quantize_all(&packs, level);
    }
}

fn quantize_all(packs: &[Pack], level: SimdLevel) {
    let mut compared = 0;
    for pack in packs {
        let Some(input) = pack.floats("input") else { continue };
        let importance = pack.floats("imatrix");
        let row_len = importance.as_ref().map_or(input.len(), Vec::len);
        for (dtype, expected, _) in pack.blocks() {
            let mut quantizer = match Quantizer::new(dtype) {
                Ok(quantizer) => quantizer.non_finite(NonFinite::AsReference).simd(level),
                Err(error) => {
                    assert!(error.code() == "q-not-quantizable" && READ_ONLY.contains(&dtype), "{error}");
                    continue;
                }
            };
            if let Some(importance) = &importance {
                quantizer = quantizer.importance(importance);
            }
            let mut blocks = vec![0x55; expected.len()];
            quantizer.quantize(&input, row_len, &mut blocks).unwrap();
            let differ = blocks
                .chunks(dtype.block_bytes())
                .zip(expected.chunks(dtype.block_bytes()))
                .position(|(ours, theirs)| ours != theirs);
            match (differ, is_undefined(pack, dtype)) {
                (None, _) => compared += 1,
                (Some(_), Some(_)) => {}
                (Some(idx), None) => {
                    let place = idx * dtype.block_bytes()..(idx + 1) * dtype.block_bytes();
                    panic!(
                        "{} {dtype} on {level:?}, block {idx}\nours   {:02x?}\ntheirs {:02x?}",
                        pack.name,
                        &blocks[place.clone()],
                        &expected[place]
                    );
                }
            }
        }
    }
    assert!(compared > 400, "{compared}");
}

#[test]
fn ordinary_numbers_need_no_opt_in() {
    for pack in packs().iter().filter(|pack| pack.class == "finite" || pack.class == "imatrix") {
        let input = pack.floats("input").unwrap();
        for (dtype, expected, _) in pack.blocks() {
            if READ_ONLY.contains(&dtype) || pack.class == "imatrix" {
                continue;
            }
            let mut blocks = vec![0; expected.len()];
            Quantizer::new(dtype).unwrap().quantize(&input, input.len(), &mut blocks).unwrap();
            assert_eq!(blocks, expected, "{} {dtype}", pack.name);
        }
    }
}

#[test]
fn values_are_those_of_the_reference() {
    let packs = packs();
    for level in SimdLevel::all() {
        dequantize_all(&packs, level);
    }
}

fn dequantize_all(packs: &[Pack], level: SimdLevel) {
    let mut compared = 0;
    for pack in packs {
        for (dtype, blocks, expected) in pack.blocks() {
            let Some(expected) = expected else { continue };
            let mut values = vec![0.0; expected.bytes.len() / 4];
            dequantize_on(level, dtype, blocks, &mut values).unwrap();
            for (idx, (value, bytes)) in values.iter().zip(expected.bytes.as_chunks().0).enumerate() {
                let theirs = f32::from_le_bytes(*bytes);
                // Which of the many bit patterns that are no number comes out depends on the processor.
                assert!(
                    value.to_bits() == theirs.to_bits() || value.is_nan() && theirs.is_nan(),
                    "{} {dtype} on {level:?}, element {idx}: {value} is not {theirs}",
                    pack.name
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 400, "{compared}");
}
