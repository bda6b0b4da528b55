//! Decimal text to the nearest double without tables: those of the standard library take 10 kB of a module, and do not compress.

use alloc::vec::Vec;

/// Digits that decide how a double is rounded; of further ones it matters only whether one is not zero.
const MAX_DIGITS: usize = 800;
/// Beyond it, every number is zero or infinite.
const MAX_EXPONENT: i64 = 2000;
/// 5 to the power of 13, the largest that 32 bits hold.
const FIVES: (u32, u32) = (13, 1_220_703_125);

/// The double nearest to a decimal number in the syntax of `f64::from_str`.
pub(super) fn parse(text: &str) -> Option<f64> {
    let (is_negative, text) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let is_word = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()));
    let magnitude = if is_word(&["inf", "infinity"]) {
        f64::INFINITY
    } else if is_word(&["nan"]) {
        f64::NAN
    } else {
        let split = text.iter().position(|byte| matches!(byte, b'e' | b'E'));
        let (digits, exponent) = text.split_at(split.unwrap_or(text.len()));
        number(digits, exponent.get(1..).map_or(Some(0), exponent_of)?)?
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

fn exponent_of(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        rest => (1, rest),
    };
    let add = |sum: i64, byte: &u8| {
        byte.is_ascii_digit().then(|| sum.saturating_mul(10).saturating_add(i64::from(byte - b'0')))
    };
    let magnitude = digits.iter().try_fold(0, add).filter(|_| !digits.is_empty())?;
    Some(sign * magnitude)
}

/// Digits, one point among them, times a power of ten.
fn number(text: &[u8], mut exponent: i64) -> Option<f64> {
    let (mut number, mut kept, mut is_inexact) = (Natural::default(), 0, false);
    let (mut has_digits, mut has_point) = (false, false);
    for byte in text {
        match byte {
            b'.' if !has_point => has_point = true,
            b'0'..=b'9' => {
                has_digits = true;
                let digit = u32::from(byte - b'0');
                if kept < MAX_DIGITS {
                    number.multiply_add(10, digit);
                    kept += usize::from(kept > 0 || digit > 0);
                    exponent = exponent.saturating_sub(i64::from(has_point));
                } else {
                    is_inexact |= digit > 0;
                    exponent = exponent.saturating_add(i64::from(!has_point));
                }
            }
            _ => return None,
        }
    }
    if !has_digits {
        return None;
    }
    if kept == 0 || exponent < -MAX_EXPONENT {
        return Some(0.0);
    }
    if exponent > MAX_EXPONENT {
        return Some(f64::INFINITY);
    }
    // A power of ten is one of five, times one of two, which is the exponent of the double.
    let mut fives = exponent.unsigned_abs() as u32;
    let mut twos = exponent;
    if exponent < 0 {
        // Enough bits for what is left after the division.
        let shift = fives * 7 / 3 + 66;
        number.shift(shift);
        twos -= i64::from(shift);
    }
    while fives > 0 {
        let (power, factor) = if fives >= FIVES.0 { FIVES } else { (1, 5) };
        if exponent < 0 {
            is_inexact |= number.divide(factor) != 0;
        } else {
            number.multiply_add(factor, 0);
        }
        fives -= power;
    }
    Some(number.to_f64(twos, is_inexact))
}

/// A natural number in limbs of 32 bits, the lowest first, the highest not zero.
#[derive(Default)]
struct Natural(Vec<u32>);

impl Natural {
    fn multiply_add(&mut self, factor: u32, term: u32) {
        let mut carry = u64::from(term);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divides, and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0;
        for limb in self.0.iter_mut().rev() {
            let dividend = u64::from(rest) << 32 | u64::from(*limb);
            *limb = (dividend / u64::from(divisor)) as u32;
            rest = (dividend % u64::from(divisor)) as u32;
        }
        while self.0.pop_if(|limb| *limb == 0).is_some() {}
        rest
    }

    fn shift(&mut self, bits: u32) {
        self.multiply_add(1 << (bits % 32), 0);
        let zeros = (bits / 32) as usize;
        self.0.splice(..0, core::iter::repeat_n(0, zeros));
    }

    /// The nearest double to this times a power of two, plus something less than one if it `is_inexact`; ties to even.
    fn to_f64(&self, twos: i64, mut is_inexact: bool) -> f64 {
        let limb =
            |idx: usize| self.0.len().checked_sub(idx).and_then(|at| self.0.get(at)).copied().unwrap_or(0);
        let bits = self.0.len() as i64 * 32 - i64::from(limb(1).leading_zeros());
        // The highest 64 bits.
        let three = u128::from(limb(1)) << 64 | u128::from(limb(2)) << 32 | u128::from(limb(3));
        let aligned = three << (32 + limb(1).leading_zeros());
        let top = (aligned >> 64) as u64;
        is_inexact |= aligned as u64 != 0 || self.0.iter().rev().skip(3).any(|limb| *limb != 0);
        // The exponent of the highest bit.
        let exponent = bits - 1 + twos;
        if exponent > 1023 {
            return f64::INFINITY;
        }
        // Bits that are dropped: more of a subnormal number.
        let dropped = 11 + (-1022 - exponent).max(0);
        if dropped > 64 {
            return 0.0;
        }
        let (kept, rest) = if dropped == 64 { (0, top) } else { (top >> dropped, top << (64 - dropped)) };
        let half = 1 << 63;
        let is_up = rest > half || rest == half && (is_inexact || kept & 1 == 1);
        // A carry of the fraction increments the exponent, which is the right one then.
        let biased = if exponent < -1022 { 0 } else { (exponent + 1022) as u64 };
        f64::from_bits((biased << 52) + kept + u64::from(is_up))
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;
    use alloc::format;

    use proptest::prelude::*;

    use super::parse;

    #[test]
    fn hard_cases_are_those_of_the_standard_library() {
        let long = format!("{}.{}e-700", "9".repeat(900), "5".repeat(900));
        let half = format!("9007199254740993{}1", ".".to_owned() + &"0".repeat(900));
        for text in [
            "0",
            "-0",
            "1",
            "0.1",
            "1e23",
            "9007199254740993",
            "9007199254740992.5",
            "1.7976931348623157e308",
            "1.7976931348623159e308",
            "2.2250738585072014e-308",
            "2.2250738585072011e-308",
            "4.9406564584124654e-324",
            "2.4703282292062327e-324",
            "2.4703282292062328e-324",
            "1e400",
            "1e-400",
            "1e99999999999999999999",
            "0e99999999999999999999",
            ".5",
            "5.",
            ".",
            "",
            "e5",
            "1e",
            "1e+",
            "1e+5",
            "1E-5",
            "inf",
            "-Infinity",
            "NaN",
            "1x",
            "1.2.3",
            "--1",
            "0x10",
            &long,
            &half,
        ] {
            let expected: Option<f64> = text.parse().ok();
            assert_eq!(parse(text).map(f64::to_bits), expected.map(f64::to_bits), "{text}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(bits: u64, digits in "[0-9]{0,30}\\.?[0-9]{0,30}", exponent in -360_i32..360) {
            let number = f64::from_bits(bits);
            prop_assume!(!number.is_nan());
            prop_assert_eq!(parse(&format!("{number:?}")), Some(number));
            prop_assert_eq!(parse(&format!("{number}")), Some(number));
            let text = format!("{digits}e{exponent}");
            prop_assert_eq!(parse(&text), text.parse().ok());
        }
    }
}
