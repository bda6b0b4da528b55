//! The codebooks of the IQ formats, and their packed signs.

mod points;
#[cfg(any(apr_small, test))]
mod set;
#[cfg(not(apr_small))]
mod table;

// Small builds compute each point on use: the tables take 34 KB, a twentieth of the full module of the npm package.
#[cfg(apr_small)]
use set::Codebook;
#[cfg(not(apr_small))]
use table::Codebook;

use crate::inline::shared;

/// Magnitudes of the 2-bit formats, eight coordinates per point.
pub(super) static IQ2_XXS: Codebook<256, 8> = Codebook::new(const { &eights(points::IQ2_XXS) }, &TWO_BITS);
pub(super) static IQ2_XS: Codebook<512, 8> = Codebook::new(const { &eights(points::IQ2_XS) }, &TWO_BITS);
pub(super) static IQ2_S: Codebook<1024, 8> = Codebook::new(const { &eights(points::IQ2_S) }, &TWO_BITS);
/// Signed values, eight coordinates per point.
pub(super) static IQ1: Codebook<2048, 8> = Codebook::new(const { &eights(points::IQ1) }, &[-1, 0, 1]);
/// Magnitudes of the 3-bit formats, four coordinates per point.
pub(super) static IQ3_XXS: Codebook<256, 4> =
    Codebook::new(const { &fours(points::IQ3_XXS) }, &[4, 12, 20, 28, 36, 44, 52, 62]);
pub(super) static IQ3_S: Codebook<512, 4> =
    Codebook::new(const { &fours(points::IQ3_S) }, &[1, 3, 5, 7, 9, 11, 13, 15]);

const TWO_BITS: [i8; 3] = [8, 25, 43];

/// Eight signs as bits; seven are stored, and the number of negative ones is even.
#[inline(always)]
pub(super) const fn even_signs(stored: u32) -> u8 {
    let stored = (stored & 127) as u8;
    stored | ((stored.count_ones() & 1) << 7) as u8
}

/// -1 if bit `idx` is set, else 1.
#[inline(always)]
pub(super) fn sign(signs: u8, place: usize) -> f32 {
    if signs >> place & 1 == 1 { -1.0 } else { 1.0 }
}

shared! {
    /// Writes the eight magnitudes of a point with their signs, multiplied by the scale.
    pub(super) fn write(point: [i8; 8], signs: u8, scale: f32, out: &mut [f32; 8]) {
        for (place, (out, magnitude)) in out.iter_mut().zip(&point).enumerate() {
            *out = scale * f32::from(*magnitude) * sign(signs, place);
        }
    }
}

/// Joins two points of four coordinates to one of eight.
#[inline(always)]
pub(super) fn joined(first: [i8; 4], second: [i8; 4]) -> [i8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (first, second);
    [a, b, c, d, e, f, g, h]
}

/// The set of points with eight coordinates, one bit per base-3 number.
const fn eights(set: &[u8; 1642]) -> [u64; 103] {
    words(set)
}

/// The set of points with four coordinates, one bit per base-8 number.
const fn fours(set: &[u8; 1024]) -> [u64; 64] {
    words(set)
}

/// Bits of a set from hexadecimal digits, two per byte, the high one first.
const fn words<const HEX: usize, const WORDS: usize>(set: &[u8; HEX]) -> [u64; WORDS] {
    let (mut words, mut place) = ([0; WORDS], 0);
    while place < HEX {
        let digit = if set[place] < b'a' { set[place] - b'0' } else { set[place] - b'a' + 10 };
        words[place / 16] |= (digit as u64) << (place % 16 / 2 * 8 + (1 - place % 2) * 4);
        place += 1;
    }
    words
}

/// The coordinates of a point: the digits of its number, lowest first, mapped to their values.
const fn coordinates<const LEN: usize>(mut number: usize, values: &[i8]) -> [i8; LEN] {
    let (mut point, mut place) = ([0; LEN], 0);
    while place < LEN {
        point[place] = values[number % values.len()];
        number /= values.len();
        place += 1;
    }
    point
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_codebooks_are_where_they_belong() {
        assert_eq!((IQ2_XXS.point(0), IQ2_XS.point(511)), ([8; 8], [43, 43, 43, 43, 43, 43, 43, 43]));
        assert_eq!((IQ1.point(0), IQ1.point(2047)), ([-1; 8], [1; 8]));
        assert_eq!((IQ3_XXS.point(0), IQ3_S.point(0)), ([4; 4], [1; 4]));
    }

    #[test]
    fn a_set_has_the_points_of_its_table() {
        let found = set::Codebook::<512, 8>::new(const { &eights(points::IQ2_XS) }, &TWO_BITS);
        assert!((0..512).all(|idx| found.point(idx) == IQ2_XS.point(idx)));
        let found = set::Codebook::<2048, 8>::new(const { &eights(points::IQ1) }, &[-1, 0, 1]);
        assert!((0..2048).all(|idx| found.point(idx) == IQ1.point(idx)));
        let found =
            set::Codebook::<512, 4>::new(const { &fours(points::IQ3_S) }, &[1, 3, 5, 7, 9, 11, 13, 15]);
        assert!((0..512).all(|idx| found.point(idx) == IQ3_S.point(idx)));
    }

    #[test]
    fn the_eighth_sign_makes_the_number_even() {
        for stored in 0..128 {
            let signs = even_signs(stored | 0x80);
            assert_eq!(u32::from(signs & 127), stored);
            assert_eq!(signs.count_ones() % 2, 0);
        }
    }
}
