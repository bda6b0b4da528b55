//! Every code of every small float type, beside an independent implementation.

use std::fs;

use conformance::vectors::folder;
use serde_json::Value;
use st_core::{Dtype, TensorView};

fn oracle() -> Value {
    let text = fs::read_to_string(folder("dtypes").join("small-floats.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Bits of the value of each code; every NaN as one.
fn table(oracle: &Value, dtype: Dtype) -> Vec<u32> {
    let bits = oracle["types"][dtype.name()]["bits"].as_array().unwrap();
    let bits = bits.iter().map(|bits| match bits.as_str().unwrap() {
        "nan" => f32::NAN.to_bits(),
        bits => u32::from_str_radix(bits, 16).unwrap(),
    });
    bits.collect()
}

fn decode(dtype: Dtype, count: usize, data: &[u8]) -> Vec<u32> {
    let shape = [count];
    let view = TensorView::new(dtype, &shape, data).unwrap();
    let single = view.to_f32().unwrap().map(canonical).collect();
    let double: Vec<u32> = view.to_f64().unwrap().map(|value| canonical(value as f32)).collect();
    assert_eq!(single, double);
    single
}

fn canonical(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() }
}

#[test]
fn all_codes_of_byte_types() {
    let oracle = oracle();
    let codes: Vec<u8> = (0..=255).collect();
    for dtype in [Dtype::F8E4M3, Dtype::F8E5M2, Dtype::F8E4M3Fnuz, Dtype::F8E5M2Fnuz, Dtype::F8E8M0] {
        assert_eq!(decode(dtype, 256, &codes), table(&oracle, dtype), "{dtype}");
    }
}

/// The format leaves the order inside a byte open; ours is that of ggml and of the OCP examples: the first
/// element in the lowest bits.
#[test]
fn all_codes_of_sub_byte_types_at_every_place_of_a_group() {
    let oracle = oracle();
    for (dtype, bits, group) in [(Dtype::F4, 4, 2), (Dtype::F6E2M3, 6, 4), (Dtype::F6E3M2, 6, 4)] {
        let table = table(&oracle, dtype);
        assert_eq!(table.len(), 1 << bits);
        for place in 0..group {
            for (code, value) in table.iter().enumerate() {
                let packed = (code as u32) << (bits * place);
                let data = &packed.to_le_bytes()[..bits * group / 8];
                let mut expected = vec![table[0]; group];
                expected[place] = *value;
                assert_eq!(decode(dtype, group, data), expected, "{dtype}, code {code}, place {place}");
            }
        }
    }
}

#[test]
fn all_codes_of_16_bit_types() {
    let data: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let bf16: Vec<u32> =
        (0..=u16::MAX).map(|code| canonical(f32::from_bits(u32::from(code) << 16))).collect();
    assert_eq!(decode(Dtype::Bf16, 1 << 16, &data), bf16);
    let f16: Vec<u32> = (0..=u16::MAX).map(|code| canonical(half_value(code))).collect();
    assert_eq!(decode(Dtype::F16, 1 << 16, &data), f16);
}

/// IEEE 754 binary16 by its definition.
fn half_value(code: u16) -> f32 {
    let sign = if code >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(code >> 10 & 31), f32::from(code & 1023));
    sign * match exponent {
        0 => fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
    }
}
