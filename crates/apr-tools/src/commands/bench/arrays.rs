//! What is written and read: named arrays of 32-bit floats.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tensor_dtype::{Dtype, TensorType};

use crate::error::Failure;
use crate::input::{Model, Rules, Source};

/// Arrays of a generated set.
const N_ARRAYS: usize = 10;

/// What generated arrays hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Data {
    /// Values of a standard normal distribution: weights as they are trained.
    Normal,
    /// The same, of 16 bits (bfloat16), in 32-bit floats.
    Rounded,
    /// The same, nine of ten replaced by zero.
    Sparse,
}

impl Data {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Rounded => "rounded",
            Self::Sparse => "sparse",
        }
    }
}

/// An array as formats of any objects hold it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Array {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    /// Row-major.
    pub(super) values: Vec<f32>,
}

/// Arrays, and the same values as little-endian bytes.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    pub(super) arrays: Vec<Array>,
    pub(super) bytes: Vec<Vec<u8>>,
}

impl Arrays {
    fn new(arrays: Vec<Array>) -> Self {
        let bytes = |array: &Array| array.values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { bytes: arrays.iter().map(bytes).collect(), arrays }
    }

    /// About as many values in arrays of equal shape, always the same.
    pub(super) fn generate(n_values: usize, data: Data) -> Self {
        let mut rng = Rng(0x9E37_79B9_7F4A_7C15);
        let n_rows = n_values / N_ARRAYS;
        let array = |number: usize| Array {
            name: format!("layers.{number:02}.weight"),
            shape: vec![n_rows],
            values: (0..n_rows).map(|_| rng.value(data)).collect(),
        };
        Self::new((0..N_ARRAYS).map(array).collect())
    }

    /// The tensors of a model whose values are floats of 16 or 32 bits.
    pub(super) fn of_model(path: &Path, rules: &Rules) -> Result<Self, Failure> {
        let model = Model::from_source(Source::open(path)?, rules)?;
        let mut arrays = Vec::new();
        for tensor in model.file().tensors()? {
            if !matches!(tensor.dtype(), TensorType::Known(Dtype::F32 | Dtype::F16 | Dtype::Bf16)) {
                continue;
            }
            let values = tensor.to_f32().map_err(|error| Failure::from(error).in_file(path))?;
            arrays.push(Array { name: tensor.name().to_owned(), shape: tensor.shape().to_vec(), values });
        }
        Ok(Self::new(arrays))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n_values() == 0
    }

    pub(super) fn n_values(&self) -> usize {
        self.arrays.iter().map(|array| array.values.len()).sum()
    }

    /// Of the values alone.
    pub(super) fn raw_len(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.len() as u64).sum()
    }

    /// The array that is read alone.
    pub(super) fn one(&self) -> usize {
        self.arrays.len() / 2
    }

    /// The bytes of every array.
    pub(super) fn slices(&self) -> Vec<&[u8]> {
        self.bytes.iter().map(Vec::as_slice).collect()
    }

    /// Whether these are the values of all arrays, bit for bit.
    pub(super) fn are(&self, read: &[Vec<f32>]) -> bool {
        self.arrays.len() == read.len()
            && self.arrays.iter().zip(read).all(|(array, read)| same(&array.values, read))
    }

    /// Whether these are the values of one array, bit for bit.
    pub(super) fn is_one(&self, read: &[f32]) -> bool {
        self.arrays.get(self.one()).is_some_and(|array| same(&array.values, read))
    }
}

fn same(left: &[f32], right: &[f32]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| left.to_bits() == right.to_bits())
}

/// xorshift64*, by Vigna.
struct Rng(u64);

impl Rng {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        // From above 0 to 1: the logarithm is finite.
        (bits + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Box and Muller's transform.
    fn normal(&mut self) -> f32 {
        let radius = libm::sqrt(-2.0 * libm::log(self.uniform()));
        (radius * libm::cos(core::f64::consts::TAU * self.uniform())) as f32
    }

    fn value(&mut self, data: Data) -> f32 {
        let value = self.normal();
        match data {
            Data::Normal => value,
            Data::Rounded => f32::from_bits(value.to_bits() & 0xFFFF_0000),
            Data::Sparse if self.uniform() <= 0.9 => 0.0,
            Data::Sparse => value,
        }
    }
}
