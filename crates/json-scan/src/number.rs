//! Whether a number is within the range of a double.

/// The exponent of the greatest power of ten that a double has.
const GREATEST: i32 = 308;

/// Whether a JSON number is finite as a double, decided as `serde_json` does: it keeps the leading digits that fit
/// 64 bits and scales them by a power of ten.
pub(crate) fn is_finite(number: &str) -> bool {
    let mantissa_len = number.find(['e', 'E']).unwrap_or(number.len());
    let (mantissa, exponent) = number.split_at(mantissa_len);
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut decimal = Decimal::default();
    for digit in digits(integer) {
        if !decimal.push(digit) {
            decimal.exponent = decimal.exponent.saturating_add(1);
        }
    }
    decimal.full = false;
    for digit in digits(fraction) {
        if decimal.push(digit) {
            decimal.exponent = decimal.exponent.saturating_sub(1);
        }
    }
    let scale = digits(exponent)
        .fold(0_i32, |scale, digit| scale.saturating_mul(10).saturating_add(i32::from(digit)));
    decimal.exponent = match (scale, exponent.contains('-')) {
        (i32::MAX, true) => i32::MIN,
        (i32::MAX, false) => i32::MAX,
        (_, true) => decimal.exponent.saturating_sub(scale),
        (_, false) => decimal.exponent.saturating_add(scale),
    };
    decimal.is_finite()
}

fn digits(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0')
}

/// `significand * 10^exponent`.
#[derive(Default)]
struct Decimal {
    significand: u64,
    exponent: i32,
    /// A digit did not fit: later ones only scale (integer part) or are ignored (fraction).
    full: bool,
}

impl Decimal {
    fn push(&mut self, digit: u8) -> bool {
        let next = self.significand.checked_mul(10).and_then(|s| s.checked_add(u64::from(digit)));
        match next {
            Some(next) if !self.full => self.significand = next,
            _ => self.full = true,
        }
        !self.full
    }

    fn is_finite(&self) -> bool {
        if self.significand == 0 || self.exponent < 0 {
            return true;
        }
        let Ok(below) = u32::try_from(GREATEST - self.exponent) else { return false };
        // Divisors that do not fit 64 bits are of powers so small that a double represents even 2^64 times the power. The others
        // are exact as doubles; the test compares the result with that of the powers as literals.
        let Some(divisor) = 10_u64.checked_pow(below) else { return true };
        (self.significand as f64 * (1e308 / divisor as f64)).is_finite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The powers of ten that take some 64-bit integer beyond the range of a double.
    const POWERS: [f64; 20] = [
        1e289, 1e290, 1e291, 1e292, 1e293, 1e294, 1e295, 1e296, 1e297, 1e298, 1e299, 1e300, 1e301, 1e302,
        1e303, 1e304, 1e305, 1e306, 1e307, 1e308,
    ];

    #[test]
    fn range_ends_where_a_product_with_the_power_does() {
        for (exponent, power) in (289..).zip(POWERS) {
            let is_finite = |significand| Decimal { significand, exponent, full: false }.is_finite();
            let (mut finite, mut infinite) = (1, u64::MAX);
            while infinite - finite > 1 {
                let middle = finite + (infinite - finite) / 2;
                match (middle as f64 * power).is_finite() {
                    true => finite = middle,
                    false => infinite = middle,
                }
            }
            assert!(is_finite(finite), "{finite} * 10^{exponent}");
            assert!(!is_finite(infinite), "{infinite} * 10^{exponent}");
        }
        for (exponent, expected) in [(288, true), (309, false), (i32::MAX, false)] {
            let decimal = Decimal { significand: u64::MAX, exponent, full: false };
            assert_eq!(decimal.is_finite(), expected, "10^{exponent}");
        }
    }
}
