//! Tables and folders for the other tests.

use core::sync::atomic::{AtomicU32, Ordering};
use std::path::{Path, PathBuf};

use apr_models::{LinearRegression, Matrix, Vector};

/// A folder of its own that disappears with the value.
pub(crate) struct TempFolder(PathBuf);

impl TempFolder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("apr-models-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // Nothing to be done about a failure here, and a panic would hide the test's own.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

pub(crate) fn matrix<const COLS: usize>(rows: &[[f32; COLS]]) -> Matrix {
    Matrix::from_vec(rows.len(), COLS, rows.concat()).unwrap()
}

pub(crate) fn fitted(x: &Matrix, y: &[f32]) -> LinearRegression {
    let mut model = LinearRegression::new();
    model.fit(x, &Vector::from_vec(y.to_vec())).unwrap();
    model
}

/// Asserts coefficients and intercept (last) within `tolerance`, relative to the largest expected number.
#[track_caller]
pub(crate) fn assert_weights(model: &LinearRegression, expected: &[f64], tolerance: f64) {
    let found: Vec<f64> = model.coefficients().iter().chain([model.intercept()]).map(f64::from).collect();
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    for (found_value, value) in found.iter().zip(expected) {
        assert!((found_value - value).abs() <= tolerance * largest, "found {found:?}, expected {expected:?}");
    }
}

/// Reproducible numbers, evenly spread over -1..1 (Knuth's 64-bit congruential generator, the high bits).
pub(crate) struct Numbers(pub(crate) u64);

impl Iterator for Numbers {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((self.0 >> 40) as f32 / (1 << 23) as f32 - 1.0)
    }
}
