//! A random number generator with the same sequence on every platform for a seed.
//!
//! xoshiro256++ (Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators", ACM TOMS 47, 2021), its state
//! filled by SplitMix64 from the seed as its authors recommend. Good for shuffles, starting points and mini-batches;
//! never for secrets.

/// Seeded generator of the numbers training needs.
#[derive(Clone, Debug)]
pub(crate) struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator of that seed; every seed is a good one.
    pub(crate) fn new(seed: u64) -> Self {
        let mut mixer = seed;
        let state = [(); 4].map(|()| split_mix(&mut mixer));
        Self { state }
    }

    /// 64 random bits.
    pub(crate) const fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let out = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let carried = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= carried;
        *d = d.rotate_left(45);
        out
    }

    /// A number from 0 up to, not including, 1: a multiple of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// An index less than `count`, each equally likely; 0 if `count` is 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        // The high half of the product is unbiased once the few low halves that would favour some index are redrawn
        // (Lemire, "Fast Random Integer Generation in an Interval", 2019).
        let count = count as u64;
        let unfair = count.wrapping_neg().checked_rem(count).unwrap_or(0);
        loop {
            let product = u128::from(self.next_u64()) * u128::from(count);
            if product as u64 >= unfair {
                return (product >> 64) as usize;
            }
        }
    }

    /// A draw from the standard normal distribution (polar method).
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let (a, b) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = a * a + b * b;
            if square > 0.0 && square < 1.0 {
                return a * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Puts the items in a random order, each order equally likely.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

const fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_of_seed_0_is_what_split_mix_publishes() {
        // First outputs of the reference SplitMix64 for the seed 0.
        assert_eq!(
            Rng::new(0).state,
            [0xE220_A839_7B1D_CDAF, 0x6E78_9E6A_A1B9_65F4, 0x06C4_5D18_8009_454F, 0xF88B_B8A8_724C_81EC]
        );
    }

    #[test]
    fn sequence_follows_the_reference_generator() {
        // First outputs of the reference xoshiro256++ from the state 1, 2, 3, 4.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let drawn = [(); 4].map(|()| rng.next_u64());
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn draws_have_the_range_and_the_moments_they_promise() {
        let mut rng = Rng::new(7);
        let mut seen = [0_u32; 5];
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..20_000 {
            seen[rng.below(5)] += 1;
            assert!((0.0..1.0).contains(&rng.unit()));
            let value = rng.normal();
            sum += value;
            squares += value * value;
        }
        assert!(seen.iter().all(|&count| (3_800..4_200).contains(&count)), "{seen:?}");
        assert!((sum / 20_000.0).abs() < 0.03 && (squares / 20_000.0 - 1.0).abs() < 0.04, "{sum} {squares}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: [usize; 50] = core::array::from_fn(|idx| idx);
        Rng::new(1).shuffle(&mut items);
        assert_ne!(items[..5], [0, 1, 2, 3, 4]);
        items.sort_unstable();
        assert_eq!(items, core::array::from_fn(|idx| idx));
    }
}
