//! Loops compiled for the widest vectors of the processor.

/// Proof that the processor has vectors that pay for tiles of sums: 32 sums fit its registers.
#[derive(Clone, Copy)]
pub(crate) struct Vectors(Level);

#[cfg(all(feature = "std", target_arch = "x86_64"))]
type Level = fearless_simd::Level;
#[cfg(not(all(feature = "std", target_arch = "x86_64")))]
type Level = ();

impl Vectors {
    /// AVX2 or AVX-512 on x86-64, which only programs with the standard library find; NEON, which every AArch64 has.
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        {
            let level = fearless_simd::Level::new();
            level.as_avx2().map(|_| Self(level))
        }
        #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
        cfg!(target_arch = "aarch64").then_some(Self(()))
    }

    /// Runs `work`, which is to be inlined, compiled for these vectors. No instruction set changes a bit: the compiler neither fuses nor
    /// reorders operations on floats.
    #[inline(always)]
    pub(crate) fn run<R>(self, work: impl FnOnce() -> R) -> R {
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        {
            use fearless_simd::Simd as _;
            if let Some(simd) = self.0.as_avx512() {
                return simd.vectorize(work);
            }
            if let Some(simd) = self.0.as_avx2() {
                return simd.vectorize(work);
            }
        }
        work()
    }
}
