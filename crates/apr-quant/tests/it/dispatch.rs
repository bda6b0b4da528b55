//! Every SIMD level against the scalar code, on unusual values.

use apr_quant::{Dtype, NonFinite, Quantizer, SimdLevel, dequantize_on, dtypes};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// Between -1 and 1, more often near zero.
    fn bell(&mut self) -> f32 {
        let sum: i64 = (0..4).map(|_| (self.bits() >> 44).cast_signed() - (1 << 19)).sum();
        sum as f32 / (1 << 21) as f32
    }
}

/// A block of one of many kinds.
fn fill(random: &mut Random, values: &mut [f32]) {
    let scale = (2.0_f32).powi(random.below(60) as i32 - 40);
    let offset = random.bell() * 4.0;
    let kind = random.below(14);
    let constant = random.bell();
    for value in values.iter_mut() {
        let bell = random.bell();
        *value = match kind {
            0 => bell,
            1 => bell * scale,
            2 => bell + offset,
            3 => (bell + offset) * scale,
            4 => constant,
            5 => constant + bell * 1e-7,
            6 => [0.0, -0.0, bell][random.below(3) as usize],
            7 => (bell * 16.0).round() / 8.0,
            8 => (bell * 254.0).round() / 2.0 * scale,
            9 => bell.abs() * scale,
            10 => -bell.abs() - offset.abs(),
            11 => bell * (2.0_f32).powi(random.below(40) as i32 - 20),
            12 => f32::from_bits(random.bits() as u32),
            _ => [-constant, constant, 0.0, -0.0][random.below(4) as usize],
        };
    }
    if random.below(8) == 0 {
        let place = random.below(values.len() as u64) as usize;
        values[place] *= 1000.0;
    }
}

#[test]
fn all_paths_give_the_same_bits() {
    let mut random = Random(7);
    for dtype in dtypes() {
        let Ok(quantizer) = Quantizer::new(dtype) else { continue };
        let blocks = if dtype.block_len() == 256 { 1500 } else { 12_000 };
        // Odd, so that the last group of blocks is not whole.
        for round in 0..blocks / 3 {
            let mut values = vec![0.0; dtype.block_len() * 3];
            for block in values.chunks_mut(dtype.block_len()) {
                fill(&mut random, block);
            }
            compare(quantizer, dtype, &values, round);
        }
    }
}

fn compare(quantizer: Quantizer<'_>, dtype: Dtype, values: &[f32], round: usize) {
    let len = dtype.byte_len_of_rows(values.len() as u64, 1).unwrap().try_into().unwrap();
    for non_finite in [NonFinite::Refuse, NonFinite::AsReference] {
        let quantizer = quantizer.non_finite(non_finite);
        let on = |level: SimdLevel| {
            let mut out = vec![0; len];
            let result = quantizer.simd(level).quantize(values, values.len(), &mut out);
            result.map(|()| out)
        };
        let expected = on(SimdLevel::SCALAR);
        for level in SimdLevel::all() {
            assert_eq!(on(level), expected, "{dtype} {level:?} {round} {values:?}");
        }
        let Ok(blocks) = expected else { continue };
        let back = |level| {
            let mut back = vec![0.0; values.len()];
            dequantize_on(level, dtype, &blocks, &mut back).unwrap();
            back.into_iter().map(|value| if value.is_nan() { 0 } else { value.to_bits() }).collect::<Vec<_>>()
        };
        let expected = back(SimdLevel::SCALAR);
        for level in SimdLevel::all() {
            assert_eq!(back(level), expected, "{dtype} {level:?} {round}");
        }
    }
}

#[test]
fn the_best_path_has_lanes_where_the_target_has() {
    let names: Vec<_> = SimdLevel::all().map(SimdLevel::name).collect();
    assert_eq!(names[0], "scalar");
    assert_eq!(names.last(), Some(&SimdLevel::best().name()));
    if cfg!(target_arch = "aarch64") {
        assert_eq!(names, ["scalar", "neon"]);
    } else if cfg!(all(target_arch = "wasm32", target_feature = "simd128")) {
        assert_eq!(names, ["scalar", "simd128"]);
    } else if cfg!(target_arch = "x86_64") {
        assert!(["scalar", "sse2", "avx2", "avx512"].starts_with(&names) && names.len() > 1, "{names:?}");
    }
}
