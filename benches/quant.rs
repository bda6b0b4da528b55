//! Times of `apr-quant`, each way to compute beside a copy of the numbers and beside the reference.
//!
//! `cargo bench --bench quant -- [--rounds N] [--write] [ROW...]`. `GGML_BASE` names a `libggml-base.so`; without it there is no row of
//! the reference. `QUANT_MIB` is the size of the numbers, 16 unless told.

mod pool;

use std::ffi::{c_float, c_int, c_void};

use apr_benches::{Contender, Plan, Work, contender, normals};
use apr_quant::{Dtype, Quantizer, SimdLevel, dequantize_on, dequantize_parallel};
use libloading::Library;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// Elements of a row.
const ROW: usize = 4096;

const FORMATS: [Dtype; 12] = [
    Dtype::F16,
    Dtype::Bf16,
    Dtype::Q8_0,
    Dtype::Q4_0,
    Dtype::Q4_1,
    Dtype::Q5_0,
    Dtype::Q5_1,
    Dtype::Q4_K,
    Dtype::Q5_K,
    Dtype::Q6_K,
    Dtype::Q2_K,
    Dtype::Q3_K,
];

type QuantizeChunk =
    unsafe extern "C" fn(c_int, *const c_float, *mut c_void, i64, i64, i64, *const c_float) -> usize;
type Dequantize = unsafe extern "C" fn(*const c_void, *mut c_float, i64);

struct Reference {
    library: Library,
    quantize: QuantizeChunk,
}

impl Reference {
    fn load() -> Option<Self> {
        let path = std::env::var_os("GGML_BASE")?;
        // SAFETY: the caller names a library that has the functions of ggml.
        let library = unsafe { Library::new(path) }.expect("a library");
        // SAFETY: the signature of `ggml.h`.
        let quantize =
            *unsafe { library.get::<QuantizeChunk>(b"ggml_quantize_chunk") }.expect("ggml_quantize_chunk");
        Some(Self { library, quantize })
    }

    fn quantize(&self, format: Dtype, values: &[f32], out: &mut [u8]) {
        let number = format.ggml_type().expect("a ggml format").0.cast_signed();
        let rows = (values.len() / ROW) as i64;
        // SAFETY: the output holds the blocks of all rows; no importance.
        unsafe {
            (self.quantize)(
                number,
                values.as_ptr(),
                out.as_mut_ptr().cast(),
                0,
                rows,
                ROW as i64,
                std::ptr::null(),
            )
        };
    }

    fn dequantize(&self, format: Dtype) -> Option<Dequantize> {
        let name = match format {
            Dtype::F16 => "ggml_fp16_to_fp32_row".into(),
            Dtype::Bf16 => "ggml_bf16_to_fp32_row".into(),
            _ => format!(
                "dequantize_row_{}",
                format.name().replace("_k", "_K").to_lowercase().replace("_k", "_K")
            ),
        };
        // SAFETY: the signature of `ggml-quants.h`.
        unsafe { self.library.get::<Dequantize>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    }
}

fn main() {
    let mut plan = Plan::from_arguments(&["median", "best", "median ratio to the first"]);
    let mib = std::env::var("QUANT_MIB").ok().and_then(|mib| mib.parse().ok()).unwrap_or(16);
    let values = normals(mib << 18);
    let reference = Reference::load();
    ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool");
    let two = pool::two_threads();
    for format in FORMATS {
        quantize(&mut plan, format, &values, reference.as_ref(), &two);
        dequantize(&mut plan, format, &values, reference.as_ref(), &two);
    }
    plan.finish("quant");
}

fn copy<'a>(values: &'a [f32], out: &'a mut [f32]) -> Contender<'a> {
    contender("copy", move || out.copy_from_slice(values))
}

fn quantize(plan: &mut Plan, format: Dtype, values: &[f32], reference: Option<&Reference>, two: &ThreadPool) {
    let len = format.byte_len_of_rows(ROW as u64, (values.len() / ROW) as u64).expect("whole rows");
    let len = usize::try_from(len).expect("memory");
    let mut copied = vec![0.0; values.len()];
    let mut theirs = vec![0; len];
    let mut contenders = Vec::new();
    if let Some(reference) = reference {
        let theirs = &mut theirs;
        contenders.push(contender("reference", move || reference.quantize(format, values, theirs)));
    }
    contenders.push(copy(values, &mut copied));
    for level in SimdLevel::all() {
        let quantizer = Quantizer::new(format).expect("a format to write").simd(level);
        let mut out = vec![0; len];
        contenders.push(contender(level.name(), move || {
            quantizer.quantize(values, ROW, &mut out).expect("ordinary numbers");
        }));
    }
    let (quantizer, mut out) = (Quantizer::new(format).expect("a format to write"), vec![0; len]);
    contenders.push(contender("two threads", move || {
        two.install(|| quantizer.quantize_parallel(values, ROW, &mut out)).expect("ordinary numbers");
    }));
    plan.run(&format!("quantize {format}"), Work::bytes(size_of_val(values)), contenders);
}

fn dequantize(
    plan: &mut Plan,
    format: Dtype,
    values: &[f32],
    reference: Option<&Reference>,
    two: &ThreadPool,
) {
    let len = format.byte_len_of_rows(ROW as u64, (values.len() / ROW) as u64).expect("whole rows");
    let mut blocks = vec![0; usize::try_from(len).expect("memory")];
    Quantizer::new(format)
        .expect("a format to write")
        .quantize(values, ROW, &mut blocks)
        .expect("ordinary numbers");
    let blocks = &blocks[..];
    let mut copied = vec![0.0; values.len()];
    let mut theirs = vec![0.0_f32; values.len()];
    let mut contenders = Vec::new();
    if let Some(dequantize) = reference.and_then(|reference| reference.dequantize(format)) {
        let theirs = &mut theirs;
        // SAFETY: as many blocks as the output has elements for.
        contenders.push(contender("reference", move || unsafe {
            dequantize(blocks.as_ptr().cast(), theirs.as_mut_ptr(), theirs.len() as i64);
        }));
    }
    contenders.push(copy(values, &mut copied));
    for level in SimdLevel::all() {
        let mut out = vec![0.0; values.len()];
        contenders.push(contender(level.name(), move || {
            dequantize_on(level, format, blocks, &mut out).expect("whole blocks");
        }));
    }
    let mut out = vec![0.0; values.len()];
    contenders.push(contender("two threads", move || {
        two.install(|| dequantize_parallel(format, blocks, &mut out)).expect("whole blocks");
    }));
    plan.run(&format!("dequantize {format}"), Work::bytes(size_of_val(values)), contenders);
}
