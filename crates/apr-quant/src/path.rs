//! Which instructions the work is done with.

use core::fmt;

use fearless_simd::Level;

/// Runs one expression for the lanes of a path, another one without.
///
/// Of the kinds that `fearless_simd` knows, those that are worth their code: every kind is a copy of all kernels. Where floats
/// are soft (x86 without SSE2: kernels, firmware) the compiler has no code for any of them.
macro_rules! with_lanes {
    ($path:expr, $simd:ident => $lanes:expr, $scalar:expr) => {{
        let level = $path.level();
        #[cfg(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            target_feature = "sse2",
            feature = "every-vector"
        ))]
        {
            if let Some($simd) = level.and_then(fearless_simd::Level::as_avx512) {
                $lanes
            } else if let Some($simd) = level.and_then(fearless_simd::Level::as_avx2) {
                $lanes
            } else if let Some($simd) = level.and_then(fearless_simd::Level::as_sse2) {
                $lanes
            } else {
                $scalar
            }
        }
        #[cfg(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            target_feature = "sse2",
            not(feature = "every-vector")
        ))]
        match level.and_then(fearless_simd::Level::as_avx2) {
            Some($simd) => $lanes,
            None => $scalar,
        }
        #[cfg(target_arch = "aarch64")]
        match level.and_then(fearless_simd::Level::as_neon) {
            Some($simd) => $lanes,
            None => $scalar,
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        match level.and_then(fearless_simd::Level::as_wasm_simd128) {
            Some($simd) => $lanes,
            None => $scalar,
        }
        #[cfg(not(any(
            all(any(target_arch = "x86", target_arch = "x86_64"), target_feature = "sse2"),
            target_arch = "aarch64",
            all(target_arch = "wasm32", target_feature = "simd128")
        )))]
        {
            let _ = level;
            $scalar
        }
    }};
}

pub(crate) use with_lanes;

/// A way to compute: the instructions that it uses. All give the same bits.
///
/// ```
/// use apr_quant::{Dtype, Path, Quantizer};
///
/// let values = [0.5; 64];
/// let (mut scalar, mut best) = ([0; 68], [0; 68]);
/// let quantizer = Quantizer::new(Dtype::Q8_0)?;
/// quantizer.path(Path::SCALAR).quantize(&values, 64, &mut scalar)?;
/// quantizer.path(Path::best()).quantize(&values, 64, &mut best)?;
/// assert_eq!(scalar, best);
/// # Ok::<(), apr_quant::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Path(Option<Level>);

impl Path {
    /// An element at a time; what the compiler makes of it is its own affair.
    pub const SCALAR: Self = Self(None);

    /// The fastest that this processor has; without the feature `std`, the fastest that every processor of the target has.
    #[must_use]
    pub fn best() -> Self {
        Self(Some(Level::try_detect().unwrap_or(Level::baseline())))
    }

    /// Every way that this processor knows, the slowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        let Self(best) = Self::best();
        [Some(Self::SCALAR), below(best, 0), below(best, 1), below(best, 2)].into_iter().flatten()
    }

    /// Name of the instructions: `scalar`, `sse2`, `avx2`, `avx512`, `neon`, `simd128`.
    #[must_use]
    pub fn name(self) -> &'static str {
        with_lanes!(self, simd => crate::lanes::name(simd), "scalar")
    }

    pub(crate) const fn level(self) -> Option<Level> {
        self.0
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Path").field(&self.name()).finish()
    }
}

/// The kinds of lanes that there is code for, up to the one of this level.
fn below(best: Option<Level>, idx: usize) -> Option<Path> {
    let best = best?;
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(feature = "every-vector")))]
    {
        use fearless_simd::Simd;
        let level = if idx == 0 { Simd::level(best.as_avx2()?) } else { return None };
        Some(Path(Some(level)))
    }
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), feature = "every-vector"))]
    {
        use fearless_simd::Simd;
        let level = match idx {
            0 => Simd::level(best.as_sse2()?),
            1 => Simd::level(best.as_avx2()?),
            _ => Simd::level(best.as_avx512()?),
        };
        Some(Path(Some(level)))
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    (idx == 0 && !best.is_fallback()).then_some(Path(Some(best)))
}
