//! The codebooks of the IQ formats, and the signs beside them.

mod points;

/// Magnitudes of the formats with two and a half bits, eight to a point.
pub(super) static IQ2_XXS: [[i8; 8]; 256] = eights(points::IQ2_XXS, TWO_BITS);
pub(super) static IQ2_XS: [[i8; 8]; 512] = eights(points::IQ2_XS, TWO_BITS);
pub(super) static IQ2_S: [[i8; 8]; 1024] = eights(points::IQ2_S, TWO_BITS);
/// Signed numbers, eight to a point.
pub(super) static IQ1: [[i8; 8]; 2048] = eights(points::IQ1, [-1, 0, 1]);
/// Magnitudes of the formats with three bits, four to a point.
pub(super) static IQ3_XXS: [[i8; 4]; 256] = fours(points::IQ3_XXS, [4, 12, 20, 28, 36, 44, 52, 62]);
pub(super) static IQ3_S: [[i8; 4]; 512] = fours(points::IQ3_S, [1, 3, 5, 7, 9, 11, 13, 15]);

const TWO_BITS: [i8; 3] = [8, 25, 43];

/// Eight signs of which seven are stored, bit by bit: the number of negative ones is even.
#[inline(always)]
pub(super) const fn even_signs(stored: u32) -> u8 {
    let stored = (stored & 127) as u8;
    stored | ((stored.count_ones() & 1) << 7) as u8
}

/// -1 where the bit of this place is set, else 1.
#[inline(always)]
pub(super) fn sign(signs: u8, place: usize) -> f32 {
    if signs >> place & 1 == 1 { -1.0 } else { 1.0 }
}

/// Writes the eight magnitudes of a point with their signs, times the scale.
#[inline(always)]
pub(super) fn write(point: [i8; 8], signs: u8, scale: f32, out: &mut [f32; 8]) {
    for (place, (out, magnitude)) in out.iter_mut().zip(point).enumerate() {
        *out = scale * f32::from(magnitude) * sign(signs, place);
    }
}

/// Two points of four as one of eight.
#[inline(always)]
pub(super) fn joined(first: [i8; 4], second: [i8; 4]) -> [i8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (first, second);
    [a, b, c, d, e, f, g, h]
}

/// The points of a set, in order: the first coordinate is the lowest digit of a number to base 3.
const fn eights<const N: usize, const HEX: usize>(set: &[u8; HEX], values: [i8; 3]) -> [[i8; 8]; N] {
    let (mut points, mut count, mut number) = ([[0; 8]; N], 0, 0);
    while number < 6561 {
        if contains(set, number) {
            let (mut place, mut rest) = (0, number);
            while place < 8 {
                points[count][place] = values[rest % 3];
                rest /= 3;
                place += 1;
            }
            count += 1;
        }
        number += 1;
    }
    assert!(count == N, "the set has as many points as the codebook");
    points
}

/// As [`eights`], with four coordinates to base 8.
const fn fours<const N: usize, const HEX: usize>(set: &[u8; HEX], values: [i8; 8]) -> [[i8; 4]; N] {
    let (mut points, mut count, mut number) = ([[0; 4]; N], 0, 0);
    while number < 4096 {
        if contains(set, number) {
            let mut place = 0;
            while place < 4 {
                points[count][place] = values[(number >> (3 * place)) & 7];
                place += 1;
            }
            count += 1;
        }
        number += 1;
    }
    assert!(count == N, "the set has as many points as the codebook");
    points
}

/// Whether bit `number` of a set is there; byte by byte two hexadecimal digits, the high one first.
const fn contains<const HEX: usize>(set: &[u8; HEX], number: usize) -> bool {
    let digit = set[number / 8 * 2 + (if number % 8 < 4 { 1 } else { 0 })];
    let digit = if digit < b'a' { digit - b'0' } else { digit - b'a' + 10 };
    digit >> (number % 4) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_the_codebooks_are_where_they_belong() {
        assert_eq!((IQ2_XXS[0], IQ2_XS[511]), ([8; 8], [43, 43, 43, 43, 43, 43, 43, 43]));
        assert_eq!((IQ1[0], IQ1[2047]), ([-1; 8], [1; 8]));
        assert_eq!((IQ3_XXS[0], IQ3_S[0]), ([4; 4], [1; 4]));
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
