//! The same linear model for everyone.

use core::fmt;
use std::path::{Path, PathBuf};

use apr_container::{PayloadLayout, encode_payload_to_vec};
use apr_models::{LinearRegression, Vector};

/// The model in the type of aprender 0.15.0.
pub(crate) type Older = aprender_015::linear_model::LinearRegression;

/// The model in the type of aprender-core 0.72.3.
pub(crate) type Newer = aprender_072::linear_model::LinearRegression;

/// What the coefficients are like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values {
    /// As trained weights are: a bell around zero, every mantissa bit in use. Next to incompressible.
    Noise,
    /// Thirteen values in turn.
    Pattern,
}

impl Values {
    pub(crate) fn take(self, count: usize) -> Vec<f32> {
        match self {
            Self::Noise => {
                let mut state = 0x9E37_79B9_7F4A_7C15_u64;
                let mut uniform = move || {
                    // xorshift64: the top 24 bits are what an f32 can hold.
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 40) as f32 / (1 << 24) as f32 - 0.5
                };
                (0..count).map(|_| (uniform() + uniform() + uniform() + uniform()) * 0.05).collect()
            }
            Self::Pattern => (0..count).map(|idx| (idx % 13) as f32 * 0.25 - 1.0).collect(),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Noise => "noise",
            Self::Pattern => "pattern",
        })
    }
}

/// One model in three types.
pub(crate) struct Pair {
    pub(crate) ours: LinearRegression,
    pub(crate) older: Older,
    pub(crate) newer: Newer,
    /// Bytes of the payload before compression.
    pub(crate) payload_len: usize,
}

impl Pair {
    pub(crate) fn new(count: usize, values: Values) -> Self {
        let ours = LinearRegression::from_parts(Vector::from_vec(values.take(count)), 0.25).expect("finite");
        let payload = encode_payload_to_vec(&ours, PayloadLayout::V0_15).expect("small");
        Self {
            older: bincode::deserialize(&payload).expect("the peer's own layout"),
            newer: bincode::deserialize(&payload).expect("the peer's own layout"),
            ours,
            payload_len: payload.len(),
        }
    }
}

/// Where the files go: memory, where the system offers it as a folder.
pub(crate) fn folder() -> PathBuf {
    let memory = Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir());
    let chosen = std::env::var_os("BENCH_DIR").map(PathBuf::from);
    chosen.or_else(|| memory.map(Path::to_path_buf)).unwrap_or_else(std::env::temp_dir)
}
