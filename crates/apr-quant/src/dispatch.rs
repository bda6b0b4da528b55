//! CPU feature dispatch: the SIMD instructions that kernels run with.

use core::fmt;

use fearless_simd::Level;

/// Evaluates one expression with the SIMD token of a level, another one without SIMD.
///
/// Each level compiles a copy of all kernels, so only the levels that pay for it are here. Without hardware floats (x86 without
/// SSE2: kernels, firmware) the compiler supports none of them.
macro_rules! with_simd {
    ($of:expr, $simd:ident => $vector:expr, $scalar:expr) => {{
        let level = $of.level();
        #[cfg(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            target_feature = "sse2",
            feature = "all-simd"
        ))]
        {
            if let Some($simd) = level.and_then(fearless_simd::Level::as_avx512) {
                $vector
            } else if let Some($simd) = level.and_then(fearless_simd::Level::as_avx2) {
                $vector
            } else if let Some($simd) = level.and_then(fearless_simd::Level::as_sse2) {
                $vector
            } else {
                $scalar
            }
        }
        #[cfg(all(
            any(target_arch = "x86", target_arch = "x86_64"),
            target_feature = "sse2",
            not(feature = "all-simd")
        ))]
        match level.and_then(fearless_simd::Level::as_avx2) {
            Some($simd) => $vector,
            None => $scalar,
        }
        #[cfg(target_arch = "aarch64")]
        match level.and_then(fearless_simd::Level::as_neon) {
            Some($simd) => $vector,
            None => $scalar,
        }
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        match level.and_then(fearless_simd::Level::as_wasm_simd128) {
            Some($simd) => $vector,
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

pub(crate) use with_simd;

/// Set of SIMD instructions that kernels use. All levels give the same bits.
///
/// ```
/// use apr_quant::{Dtype, SimdLevel, Quantizer};
///
/// let values = [0.5; 64];
/// let (mut scalar, mut best) = ([0; 68], [0; 68]);
/// let quantizer = Quantizer::new(Dtype::Q8_0)?;
/// quantizer.simd(SimdLevel::SCALAR).quantize(&values, 64, &mut scalar)?;
/// quantizer.simd(SimdLevel::best()).quantize(&values, 64, &mut best)?;
/// assert_eq!(scalar, best);
/// # Ok::<(), apr_quant::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct SimdLevel(Option<Level>);

impl SimdLevel {
    /// No explicit SIMD: one element at a time, as the compiler vectorizes it.
    pub const SCALAR: Self = Self(None);

    /// The fastest level of this CPU; without the feature `std`, the fastest that every CPU of the target has.
    #[must_use]
    pub fn best() -> Self {
        Self(Some(Level::try_detect().unwrap_or(Level::baseline())))
    }

    /// Every level that this CPU supports, the slowest first.
    pub fn all() -> impl Iterator<Item = Self> {
        let Self(best) = Self::best();
        [Some(Self::SCALAR), below(best, 0), below(best, 1), below(best, 2)].into_iter().flatten()
    }

    /// Name of the instructions: `scalar`, `sse2`, `avx2`, `avx512`, `neon`, `simd128`.
    #[must_use]
    pub fn name(self) -> &'static str {
        with_simd!(self, simd => crate::simd::name(simd), "scalar")
    }

    /// Runs `work`, which is to be inlined, compiled for these instructions: for loops that the compiler vectorizes by itself. It neither
    /// fuses nor reorders operations on floats, so that all levels give the same bits.
    ///
    /// ```
    /// let values = [1.5_f32; 64];
    /// let greatest = apr_quant::SimdLevel::best().run(
    ///     #[inline(always)]
    ///     || values.iter().fold(f32::MIN, |most, &value| if value > most { value } else { most }),
    /// );
    /// assert_eq!(greatest, 1.5);
    /// ```
    #[inline(always)]
    pub fn run<R>(self, work: impl FnOnce() -> R) -> R {
        with_simd!(self, simd => fearless_simd::Simd::vectorize(simd, work), work())
    }

    pub(crate) const fn level(self) -> Option<Level> {
        self.0
    }
}

impl fmt::Debug for SimdLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SimdLevel").field(&self.name()).finish()
    }
}

/// The compiled levels up to the best one of this CPU, by index.
fn below(best: Option<Level>, idx: usize) -> Option<SimdLevel> {
    let best = best?;
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), not(feature = "all-simd")))]
    {
        use fearless_simd::Simd;
        let level = if idx == 0 { Simd::level(best.as_avx2()?) } else { return None };
        Some(SimdLevel(Some(level)))
    }
    #[cfg(all(any(target_arch = "x86", target_arch = "x86_64"), feature = "all-simd"))]
    {
        use fearless_simd::Simd;
        let level = match idx {
            0 => Simd::level(best.as_sse2()?),
            1 => Simd::level(best.as_avx2()?),
            _ => Simd::level(best.as_avx512()?),
        };
        Some(SimdLevel(Some(level)))
    }
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
    (idx == 0 && !best.is_fallback()).then_some(SimdLevel(Some(best)))
}
