//! Random numbers, our blocks of them and our numbers from these, for another implementation to judge.
//!
//! `blocks FORMAT plain|weighted|bytes BLOCKS SEED` writes pieces of 64 rows of 1,024 elements to standard output until there
//! are enough blocks. Each kind of instructions that the processor has takes its turn, the best first:
//!
//! | part | bytes | with |
//! | --- | --- | --- |
//! | importance of the 1,024 columns, `f32` | 4,096 | `weighted` |
//! | the numbers, `f32` | 262,144 | `plain`, `weighted` |
//! | their blocks; of `bytes`, random bytes | 65,536 / elements of a block x its bytes | all |
//! | what the blocks decode to, `f32` | 262,144 | all |
//!
//! The same seed gives the same bytes. `cargo xtask ggml` lets ggml's reference judge them.

use core::error::Error;
use std::io::Write;
use std::{env, io};

use apr_quant::{Dtype, NonFinite, Quantizer, SimdLevel, dequantize_on};

const ROW_LEN: usize = 1024;
const ROWS: usize = 64;
const ELEMENTS: usize = ROWS * ROW_LEN;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [dtype, kind, n_blocks, seed] = &args[..] else {
        return Err("usage: blocks FORMAT plain|weighted|bytes BLOCKS SEED".into());
    };
    let dtype = Dtype::from_name_ignore_case(dtype).ok_or("no such format")?;
    let n_blocks: usize = n_blocks.parse()?;
    let mut random = Random(seed.parse()?);
    let sink = &mut io::stdout().lock();

    let mut weights = vec![0.0; ROW_LEN];
    let mut values = vec![0.0; ELEMENTS];
    let mut blocks = vec![0; usize::try_from(dtype.byte_len_of_rows(ROW_LEN as u64, ROWS as u64)?)?];
    let mut decoded = vec![0.0; ELEMENTS];
    let mut paths: Vec<SimdLevel> = SimdLevel::all().collect();
    paths.reverse();
    for (_, path) in (0..n_blocks.div_ceil(ELEMENTS / dtype.block_len())).zip(paths.into_iter().cycle()) {
        if kind == "bytes" {
            blocks.iter_mut().for_each(|byte| *byte = (random.next() >> 56) as u8);
        } else {
            values.chunks_mut(ROW_LEN).for_each(|row| fill(row, dtype, &mut random));
            // What is compared is bits, those of numbers at the edge too.
            let mut quantizer = Quantizer::new(dtype)?.simd(path).non_finite(NonFinite::AsReference);
            if kind == "weighted" {
                weights.fill_with(|| random.weight());
                write(sink, &weights)?;
                quantizer = quantizer.importance(&weights);
            }
            quantizer.quantize(&values, ROW_LEN, &mut blocks)?;
            write(sink, &values)?;
        }
        sink.write_all(&blocks)?;
        dequantize_on(path, dtype, &blocks, &mut decoded)?;
        write(sink, &decoded)?;
    }
    Ok(())
}

fn write(sink: &mut impl Write, values: &[f32]) -> io::Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    sink.write_all(&bytes)
}

/// A row of one of ten kinds.
fn fill(row: &mut [f32], dtype: Dtype, random: &mut Random) {
    let scale = libm::exp2f(random.unit() * 30.0 - 20.0);
    // Beyond 2^30 the searches run into infinity, where nothing is defined.
    let is_searched = dtype.block_len() == 256 || dtype == Dtype::IQ4_NL;
    let limit = if is_searched { (1 << 30) as f32 } else { f32::MAX };
    let steps = [7.0, 8.0, 15.0, 16.0, 31.0, 127.0][random.below(6)];
    let kind = random.below(10);
    let offset = random.normal() * 3.0;
    row.fill_with(|| match kind {
        0 | 1 => random.normal() * scale,
        // Few large numbers among many small ones.
        2 => random.normal() * scale / (random.unit() + 0.01),
        3 => loop {
            let value = f32::from_bits(random.next() as u32);
            if value.abs() < limit {
                break value;
            }
        },
        4 => (random.below(3) as f32 - 1.0) * scale,
        5 if random.below(10) > 0 => 0.0,
        5 => random.normal() * scale,
        6 => (random.unit() * 2.0 - 1.0) * scale,
        // Ties between codes.
        7 => ((random.unit() * 2.0 - 1.0) * 2.0 * steps).round() * 0.5 * scale,
        // All on one side of zero.
        8 => (offset + random.normal() * 0.1) * scale,
        // Another scale in each number.
        _ => random.normal() * libm::exp2f(random.unit() * 70.0 - 45.0),
    });
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// From 0 to less than 1.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }

    fn below(&mut self, count: u64) -> usize {
        (self.next() % count) as usize
    }

    /// Close enough to a normal distribution: the sum of four uniform numbers, and the lowest bits of one more.
    fn normal(&mut self) -> f32 {
        let (bits, low) = (self.next(), self.unit());
        let parts = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        (parts as f32 + low - 131_071.0) * (1.732_05 / 65_536.0)
    }

    /// Mostly ordinary, some nothing, some huge.
    fn weight(&mut self) -> f32 {
        let value = self.normal();
        match self.below(20) {
            0 => 0.0,
            1 => value * value * 1000.0,
            _ => value * value,
        }
    }
}
