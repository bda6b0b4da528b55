//! Whether a number is within the range of a double.

/// The powers of ten that a double has, from the least that takes some 64-bit integer beyond its range.
const POWERS: [f64; 20] = [
    1e289, 1e290, 1e291, 1e292, 1e293, 1e294, 1e295, 1e296, 1e297, 1e298, 1e299, 1e300, 1e301, 1e302, 1e303,
    1e304, 1e305, 1e306, 1e307, 1e308,
];
const LEAST: i32 = 289;

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
        // Below that, a double represents even 2^64 times the power.
        let Ok(idx) = usize::try_from(self.exponent - LEAST) else { return true };
        POWERS.get(idx).is_some_and(|power| (self.significand as f64 * power).is_finite())
    }
}
