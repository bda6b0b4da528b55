//! Times of `apr-quant` beside candle's quantizers on one thread, and what of their blocks differs.
//!
//! `cargo bench --manifest-path benches/candle/Cargo.toml --bench candle_quant -- [--rounds N] [--write] [ROW...]`. `QUANT_MIB` is
//! the size of the numbers, 16 unless told.

use apr_benches::{Plan, Work, contender, normals};
use apr_quant::{Dtype, Quantizer, dequantize};
use candle_core::quantized::k_quants::{
    BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4_1, BlockQ4K, BlockQ5_0, BlockQ5_1, BlockQ5K, BlockQ6K, BlockQ8_0,
    GgmlType,
};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};

/// Elements of a row.
const ROW: usize = 4096;

const CANDLE: &str = "candle 0.11.1";

fn main() {
    let mib = std::env::var("QUANT_MIB").ok().and_then(|mib| mib.parse().ok()).unwrap_or(16);
    let values = normals(mib << 18);
    let mut plan = Plan::from_arguments(&["median", "best", "median ratio to the first"]);
    times::<BlockQ8_0>(&mut plan, Dtype::Q8_0, &values);
    times::<BlockQ4_0>(&mut plan, Dtype::Q4_0, &values);
    times::<BlockQ4_1>(&mut plan, Dtype::Q4_1, &values);
    times::<BlockQ5_0>(&mut plan, Dtype::Q5_0, &values);
    times::<BlockQ5_1>(&mut plan, Dtype::Q5_1, &values);
    times::<BlockQ4K>(&mut plan, Dtype::Q4_K, &values);
    times::<BlockQ5K>(&mut plan, Dtype::Q5_K, &values);
    times::<BlockQ6K>(&mut plan, Dtype::Q6_K, &values);
    times::<BlockQ2K>(&mut plan, Dtype::Q2_K, &values);
    times::<BlockQ3K>(&mut plan, Dtype::Q3_K, &values);
    plan.finish("candle-quant");

    let mut plan =
        Plan::from_arguments(&["blocks", "other than the reference's", "error, the reference's", "error"]);
    for (format, theirs) in [
        (Dtype::Q8_0, GgmlDType::Q8_0),
        (Dtype::Q4_0, GgmlDType::Q4_0),
        (Dtype::Q4_1, GgmlDType::Q4_1),
        (Dtype::Q5_0, GgmlDType::Q5_0),
        (Dtype::Q5_1, GgmlDType::Q5_1),
        (Dtype::Q4_K, GgmlDType::Q4K),
        (Dtype::Q5_K, GgmlDType::Q5K),
        (Dtype::Q6_K, GgmlDType::Q6K),
        (Dtype::Q2_K, GgmlDType::Q2K),
        (Dtype::Q3_K, GgmlDType::Q3K),
    ] {
        differences(&mut plan, format, theirs, &values);
    }
    plan.finish("candle-blocks");
}

fn times<T: GgmlType>(plan: &mut Plan, format: Dtype, values: &[f32]) {
    let quantizer = Quantizer::new(format).expect("a format to write");
    let mut ours = vec![0; byte_len(format, values)];
    let mut theirs = vec![T::zeros(); values.len() / T::BLCK_SIZE];
    let contenders = vec![
        contender("apr-quant", || quantizer.quantize(values, ROW, &mut ours).expect("ordinary numbers")),
        contender(CANDLE, || T::from_float(values, &mut theirs)),
    ];
    plan.run(&format!("quantize {format}"), Work::bytes(size_of_val(values)), contenders);

    quantizer.quantize(values, ROW, &mut ours).expect("ordinary numbers");
    T::from_float(values, &mut theirs);
    let (mut our_values, mut their_values) = (vec![0.0; values.len()], vec![0.0; values.len()]);
    let contenders = vec![
        contender("apr-quant", || dequantize(format, &ours, &mut our_values).expect("whole blocks")),
        contender(CANDLE, || T::to_float(&theirs, &mut their_values)),
    ];
    plan.run(&format!("dequantize {format}"), Work::bytes(size_of_val(values)), contenders);
}

/// Our blocks are the reference's, bit for bit: `cargo xtask ggml`.
fn differences(plan: &mut Plan, format: Dtype, theirs: GgmlDType, values: &[f32]) {
    let row = format!("blocks {format}");
    if !plan.wants(&row) {
        return;
    }
    let mut ours = vec![0; byte_len(format, values)];
    Quantizer::new(format)
        .expect("a format to write")
        .quantize(values, ROW, &mut ours)
        .expect("ordinary numbers");
    let tensor = Tensor::from_slice(values, (values.len() / ROW, ROW), &Device::Cpu).expect("a matrix");
    let tensor = QTensor::quantize(&tensor, theirs).expect("whole blocks");
    let theirs = tensor.data().expect("blocks in memory");
    let block = format.block_bytes();
    let pairs = ours.chunks_exact(block).zip(theirs.chunks_exact(block));
    let differing = pairs.filter(|(ours, theirs)| ours != theirs).count();
    let count = ours.len() / block;
    let errors = [&ours[..], &theirs].map(|blocks| error(format, blocks, values));
    plan.line(&format!(
        "| {row} | {CANDLE} | {count} | {:.3} % | {:.3} % | {:.3} % |",
        differing as f64 * 100.0 / count as f64,
        errors[0],
        errors[1]
    ));
}

/// The root of the mean squared error in hundredths of the root of the mean square.
fn error(format: Dtype, blocks: &[u8], values: &[f32]) -> f64 {
    let mut read = vec![0.0; values.len()];
    dequantize(format, blocks, &mut read).expect("whole blocks");
    let squared: f64 = read.iter().zip(values).map(|(a, b)| f64::from(a - b).powi(2)).sum();
    let whole: f64 = values.iter().map(|value| f64::from(*value).powi(2)).sum();
    (squared / whole).sqrt() * 100.0
}

fn byte_len(format: Dtype, values: &[f32]) -> usize {
    let len = format.byte_len_of_rows(ROW as u64, (values.len() / ROW) as u64).expect("whole rows");
    usize::try_from(len).expect("memory")
}
