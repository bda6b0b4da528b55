//! Rounding, bit-identical to the reference's code on x86-64.

use crate::inline::shared;

/// Nearest integer, ties to even: the mantissa after adding 1.5 · 2^23.
///
/// Exact for magnitudes up to 4,194,303; above, and for values that are not finite, the same bits as the reference.
#[inline(always)]
pub(crate) fn nearest_int(value: f32) -> i32 {
    let bits = (value + 12_582_912.0).to_bits();
    (bits & 0x007f_ffff).cast_signed() - 0x0040_0000
}

shared! {
    /// Nearest integer, ties away from zero: C's `roundf`.
    ///
    /// Adding the largest float below one half and truncating equals `roundf` for each float up to 128.
    pub(crate) fn round_away(value: f32) -> f32 {
        let magnitude = value.abs();
        // From 2^23 on, every float is an integer; not-a-number is returned as well.
        if magnitude < 8_388_608.0 {
            let whole = if magnitude <= 128.0 { magnitude + 0.499_999_97 } else { magnitude + 0.5 };
            (whole as i32 as f32).copysign(value)
        } else {
            value
        }
    }

    /// Truncation to an integer as by `cvttss2si`: `i32::MIN` if it does not fit.
    pub(crate) fn truncate(value: f32) -> i32 {
        if (-2_147_483_648.0..2_147_483_648.0).contains(&value) { value as i32 } else { i32::MIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_where_c_sends_them() {
        assert_eq!([0.5, 1.5, 2.5, -0.5, -1.5, 3.499_999_8].map(nearest_int), [0, 2, 2, 0, -2, 3]);
        assert_eq!(
            [0.5, 1.5, 2.5, -0.5, -2.5, 0.499_999_97, 126.5].map(round_away),
            [1.0, 2.0, 3.0, -1.0, -3.0, 0.0, 127.0]
        );
        assert_eq!(round_away(f32::INFINITY), f32::INFINITY);
        assert!(round_away(f32::NAN).is_nan());
    }

    #[test]
    fn rounding_away_is_exact_beyond_the_range_of_codes() {
        for bits in (128.0f32.to_bits()..=8_388_610.0f32.to_bits()).step_by(97) {
            let value = f32::from_bits(bits);
            let wide = f64::from(value);
            assert_eq!(f64::from(round_away(value)), (wide + 0.5) as i64 as f64, "{value}");
        }
    }

    #[test]
    fn what_does_not_fit_is_the_smallest_integer() {
        let values = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2_147_483_648.0, 3e9, -3e9];
        assert_eq!(values.map(truncate), [i32::MIN; 6]);
        assert_eq!([-1.9, 1.9, -2_147_483_648.0].map(truncate), [-1, 1, i32::MIN]);
    }
}
