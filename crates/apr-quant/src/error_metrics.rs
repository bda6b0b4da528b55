//! Quantization error: difference between values and their quantized form.

mod code_range;

use libm::sqrt;

use crate::dtype::check_blocks;
use crate::error::{Error, ErrorKind};
use crate::quantizer::dequantize;
use tensor_dtype::Dtype;

/// Elements decoded at once: a whole number of blocks of every type.
const PIECE: usize = 256;

/// Quantization error of a tensor, from [`ErrorMeter`] or [`measure_error`].
///
/// Pairs with a value that is not finite are counted and excluded from everything else.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ErrorReport {
    /// Number of pairs, including those with a value that is not finite.
    pub count: u64,
    /// Root of the mean squared error, in the unit of the values.
    pub rmse: f64,
    /// Standard deviation of the originals.
    pub sigma: f64,
    /// Root of the mean square of the originals.
    pub rms: f64,
    /// Largest absolute error.
    pub max_error: f64,
    /// Index of its first occurrence over all pieces; `None` without a finite pair.
    pub max_error_element: Option<u64>,
    /// Cosine of the angle between originals and decoded values, as vectors. 1 if both are zero vectors, 0 if one is.
    pub cosine: f64,
    /// Elements with the lowest or the highest code of their block. Counted by [`ErrorMeter::add_blocks`]; `None` for formats
    /// whose codes are not ordered (codebooks, types without blocks), and if only decoded values were compared.
    ///
    /// Formats that scale to the largest magnitude have one such element in nearly every group. A group whose codes all decode
    /// to the same value has none.
    pub saturated: Option<u64>,
    /// Those of them whose original is beyond the decoded value, by any amount.
    pub clipped: Option<u64>,
    /// Originals that are infinite or not a number.
    pub non_finite_originals: u64,
    /// Decoded values that are infinite or not a number.
    pub non_finite_decoded: u64,
}

impl ErrorReport {
    /// Relative RMSE: [`rmse`](Self::rmse) divided by [`sigma`](Self::sigma).
    ///
    /// 0 without any error, infinite if all originals are equal and there is an error.
    #[must_use]
    pub fn relative_rmse(&self) -> f64 {
        if self.rmse == 0.0 { 0.0 } else { self.rmse / self.sigma }
    }

    /// Whether the tensor lost its content: see [`Damage`].
    ///
    /// ```
    /// use apr_quant::{Damage, measure_error};
    ///
    /// let values = [1.0, -1.0, 2.0];
    /// assert_eq!(measure_error(&values, &[0.0; 3])?.damage(), Some(Damage::Zeros));
    /// assert_eq!(measure_error(&values, &[2.0, -2.0, 1.0])?.damage(), Some(Damage::Error));
    /// assert_eq!(measure_error(&values, &[1.0, -1.0, 2.5])?.damage(), None);
    /// # Ok::<(), apr_quant::Error>(())
    /// ```
    #[must_use]
    pub fn damage(&self) -> Option<Damage> {
        // Of equal values, there is no deviation to compare with.
        let scale = if self.sigma == 0.0 { self.rms } else { self.sigma };
        match () {
            () if self.rms > 0.0 && self.cosine == 0.0 => Some(Damage::Zeros),
            () if self.rmse > 0.5 * scale => Some(Damage::Error),
            () => None,
        }
    }
}

/// Loss of the content of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Damage {
    /// All decoded values are zero, and not all originals were.
    Zeros,
    /// The error is more than half of the standard deviation of the originals.
    Error,
}

impl Damage {
    /// Identifier in reports.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Error => "error",
        }
    }
}

/// Compares values with their decoded forms, in pieces.
///
/// Sums are `f64`, in the order of the elements: the report does not depend on how a tensor is split into pieces, unless parts have meters of
/// their own ([`append`](Self::append)).
///
/// ```
/// use apr_quant::{Dtype, ErrorMeter, Quantizer};
///
/// let values: Vec<f32> = (0..512).map(|idx| (idx as f32 * 0.7).sin()).collect();
/// let mut blocks = [0; 16 * 34];
/// Quantizer::new(Dtype::Q8_0)?.quantize(&values, 512, &mut blocks)?;
///
/// let mut meter = ErrorMeter::new();
/// for (values, blocks) in values.chunks(256).zip(blocks.chunks(8 * 34)) {
///     meter.add_blocks(Dtype::Q8_0, values, blocks)?;
/// }
/// let report = meter.report();
/// assert_eq!(report.count, 512);
/// assert!(report.relative_rmse() < 0.005 && report.cosine > 0.9999);
/// assert!(report.saturated.is_some_and(|count| count >= 16));
/// # Ok::<(), apr_quant::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ErrorMeter {
    count: u64,
    /// Finite pairs.
    finite: u64,
    /// The first finite original, subtracted before deviations are added up, so that a large mean does not cancel them.
    origin: f64,
    deviations: f64,
    squared_deviations: f64,
    squared_errors: f64,
    max_error: f64,
    max_error_element: Option<u64>,
    squared_originals: f64,
    squared_decoded: f64,
    products: f64,
    at_ends: Option<AtEnds>,
    without_ends: bool,
    non_finite_originals: u64,
    non_finite_decoded: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct AtEnds {
    saturated: u64,
    clipped: u64,
}

impl ErrorMeter {
    /// Creates a meter without values.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece of a tensor and its decoded form.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnequalLengths`] if the pieces are not of the same length.
    pub fn add(&mut self, originals: &[f32], decoded: &[f32]) -> Result<(), Error> {
        if originals.len() != decoded.len() {
            let (originals, decoded) = (originals.len() as u64, decoded.len() as u64);
            return Err(ErrorKind::UnequalLengths { originals, decoded }.into());
        }
        self.without_ends |= !originals.is_empty();
        self.compare(originals, decoded);
        Ok(())
    }

    /// Adds a piece of a tensor and its blocks, from which saturated codes are counted too.
    ///
    /// For `AprQ8` a piece is a whole tensor, which has one scale.
    ///
    /// # Errors
    ///
    /// As [`dequantize`] if the blocks do not have the length of the values.
    pub fn add_blocks(&mut self, dtype: Dtype, originals: &[f32], blocks: &[u8]) -> Result<(), Error> {
        check_blocks(dtype, blocks, originals)?;
        self.without_ends |= !code_range::has(dtype) && !originals.is_empty();
        let (head, bytes) = blocks.split_at(if dtype == Dtype::AprQ8 { blocks.len().min(4) } else { 0 });
        let piece_bytes = PIECE / dtype.block_len() * dtype.block_bytes();
        for (originals, bytes) in originals.chunks(PIECE).zip(bytes.chunks(piece_bytes)) {
            self.add_piece(dtype, originals, head, bytes)?;
        }
        Ok(())
    }

    /// Adds what another meter has found in the values that follow: parts of a tensor can be compared at the same time. The last bits of
    /// the figures depend on where the parts end.
    ///
    /// ```
    /// # use apr_quant::{ErrorMeter, measure_error};
    /// let (mut first, mut second) = (ErrorMeter::new(), ErrorMeter::new());
    /// first.add(&[1.0, 2.0], &[1.0, 2.5])?;
    /// second.add(&[4.0], &[4.25])?;
    /// first.append(&second);
    /// assert_eq!(first.report(), measure_error(&[1.0, 2.0, 4.0], &[1.0, 2.5, 4.25])?);
    /// # Ok::<(), apr_quant::Error>(())
    /// ```
    pub fn append(&mut self, later: &Self) {
        if self.finite == 0 {
            self.origin = later.origin;
        }
        // Deviations from the first value here.
        let (shift, count) = (later.origin - self.origin, later.finite as f64);
        let shift = if later.finite == 0 { 0.0 } else { shift };
        self.deviations += later.deviations + count * shift;
        self.squared_deviations +=
            later.squared_deviations + 2.0 * shift * later.deviations + count * shift * shift;
        if let Some(element) = later.max_error_element
            && (later.max_error > self.max_error || self.max_error_element.is_none())
        {
            (self.max_error, self.max_error_element) = (later.max_error, Some(self.count + element));
        }
        if let Some(ends) = later.at_ends {
            let at_ends = self.at_ends.get_or_insert_default();
            at_ends.saturated += ends.saturated;
            at_ends.clipped += ends.clipped;
        }
        self.count += later.count;
        self.finite += later.finite;
        self.squared_errors += later.squared_errors;
        self.squared_originals += later.squared_originals;
        self.squared_decoded += later.squared_decoded;
        self.products += later.products;
        self.without_ends |= later.without_ends;
        self.non_finite_originals += later.non_finite_originals;
        self.non_finite_decoded += later.non_finite_decoded;
    }

    /// Report on the values so far.
    #[must_use]
    pub fn report(&self) -> ErrorReport {
        let per = self.finite.max(1) as f64;
        let mean = self.deviations / per;
        let lengths = sqrt(self.squared_originals) * sqrt(self.squared_decoded);
        let both_zero = self.squared_originals == 0.0 && self.squared_decoded == 0.0;
        let at_ends = if self.without_ends { None } else { self.at_ends };
        ErrorReport {
            count: self.count,
            rmse: sqrt(self.squared_errors / per),
            sigma: sqrt((self.squared_deviations / per - mean * mean).max(0.0)),
            rms: sqrt(self.squared_originals / per),
            max_error: self.max_error,
            max_error_element: self.max_error_element,
            cosine: match () {
                () if both_zero => 1.0,
                () if lengths == 0.0 => 0.0,
                () => (self.products / lengths).clamp(-1.0, 1.0),
            },
            saturated: at_ends.map(|ends| ends.saturated),
            clipped: at_ends.map(|ends| ends.clipped),
            non_finite_originals: self.non_finite_originals,
            non_finite_decoded: self.non_finite_decoded,
        }
    }

    /// At most [`PIECE`] elements, whose blocks have the right length.
    fn add_piece(&mut self, dtype: Dtype, originals: &[f32], head: &[u8], bytes: &[u8]) -> Result<(), Error> {
        let (mut decoded, mut low, mut high) = ([0.0; PIECE], [0.0; PIECE], [0.0; PIECE]);
        let [decoded, low, high] =
            [&mut decoded, &mut low, &mut high].map(|buffer| &mut buffer[..originals.len()]);
        let mut buffer = [0; code_range::BUFFER_LEN];
        let (scale, rest) = buffer.split_at_mut(head.len());
        scale.copy_from_slice(head);
        rest[..bytes.len()].copy_from_slice(bytes);
        let all = head.len() + bytes.len();
        dequantize(dtype, &buffer[..all], decoded)?;
        if code_range::has(dtype) {
            code_range::set_codes(dtype, &mut buffer[head.len()..all], code_range::End::Low);
            dequantize(dtype, &buffer[..all], low)?;
            code_range::set_codes(dtype, &mut buffer[head.len()..all], code_range::End::High);
            dequantize(dtype, &buffer[..all], high)?;
            let at_ends = self.at_ends.get_or_insert_default();
            for ((original, decoded), (a, b)) in originals.iter().zip(&*decoded).zip(low.iter().zip(&*high)) {
                let (low, high) = if a < b { (a, b) } else { (b, a) };
                let is_finite = original.is_finite() && decoded.is_finite();
                if is_finite && low < high && (decoded <= low || decoded >= high) {
                    at_ends.saturated += 1;
                    at_ends.clipped += u64::from(original < low || original > high);
                }
            }
        }
        self.compare(originals, decoded);
        Ok(())
    }

    fn compare(&mut self, originals: &[f32], decoded: &[f32]) {
        for (&original, &decoded) in originals.iter().zip(decoded) {
            let element = self.count;
            self.count += 1;
            if !(original.is_finite() && decoded.is_finite()) {
                self.non_finite_originals += u64::from(!original.is_finite());
                self.non_finite_decoded += u64::from(!decoded.is_finite());
                continue;
            }
            let (original, decoded) = (f64::from(original), f64::from(decoded));
            if self.finite == 0 {
                self.origin = original;
            }
            self.finite += 1;
            let deviation = original - self.origin;
            self.deviations += deviation;
            self.squared_deviations += deviation * deviation;
            let error = (original - decoded).abs();
            self.squared_errors += error * error;
            if error > self.max_error || self.max_error_element.is_none() {
                (self.max_error, self.max_error_element) = (error, Some(element));
            }
            self.squared_originals += original * original;
            self.squared_decoded += decoded * decoded;
            self.products += original * decoded;
        }
    }
}

/// Compares a whole tensor with its decoded form.
///
/// ```
/// use apr_quant::measure_error;
///
/// let report = measure_error(&[1.0, 2.0, 3.0], &[1.0, 2.5, 3.0])?;
/// assert_eq!((report.max_error, report.max_error_element), (0.5, Some(1)));
/// # Ok::<(), apr_quant::Error>(())
/// ```
///
/// # Errors
///
/// [`ErrorKind::UnequalLengths`] if they are not of the same length.
pub fn measure_error(originals: &[f32], decoded: &[f32]) -> Result<ErrorReport, Error> {
    let mut meter = ErrorMeter::new();
    meter.add(originals, decoded)?;
    Ok(meter.report())
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::quantizer::Quantizer;

    #[test]
    fn figures_are_those_of_the_textbook() {
        let report = measure_error(&[1.0, 2.0, 3.0, 4.0], &[1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!((report.rmse, report.sigma), (1.0, sqrt(1.25)));
        assert_eq!(report.max_error_element, Some(3));
        assert!((report.cosine - 38.0 / sqrt(30.0 * 50.0)).abs() < 1e-15);
        assert!((report.relative_rmse() - 1.0 / sqrt(1.25)).abs() < 1e-15);
        assert_eq!((report.saturated, report.clipped), (None, None));
    }

    #[test]
    fn a_large_mean_does_not_swallow_the_spread() {
        let values = [1e9f32, 1e9 + 64.0, 1e9 + 128.0];
        let report = measure_error(&values, &values).unwrap();
        assert!((report.sigma - 64.0 * sqrt(2.0 / 3.0)).abs() < 1e-9);
    }

    #[test]
    fn parts_have_the_figures_of_the_whole() {
        let value = |idx: u32| (idx.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 20) as f32 + 100.0;
        let mut values: Vec<f32> = (0..4096).map(value).collect();
        values[70] = f32::NAN;
        let mut blocks = vec![0; 4096 / 32 * 34];
        values[70] = 0.0;
        Quantizer::new(Dtype::Q8_0).unwrap().quantize(&values, 4096, &mut blocks).unwrap();
        values[70] = f32::NAN;
        let of = |begin: usize, end: usize| {
            let mut meter = ErrorMeter::new();
            let blocks = &blocks[begin / 32 * 34..end / 32 * 34];
            meter.add_blocks(Dtype::Q8_0, &values[begin..end], blocks).unwrap();
            meter
        };
        let whole = of(0, 4096).report();
        for ends in [vec![0, 4096], vec![0, 0, 64, 96, 4096], vec![0, 32, 64, 2048, 4096, 4096]] {
            let mut all = ErrorMeter::new();
            ends.windows(2).for_each(|ends| all.append(&of(ends[0], ends[1])));
            let parts = all.report();
            let near = |a: f64, b: f64| (a - b).abs() <= a.abs() * 1e-12;
            assert!(near(whole.rmse, parts.rmse) && near(whole.sigma, parts.sigma), "{whole:?} {parts:?}");
            assert!(near(whole.cosine, parts.cosine));
            let figures = |report: &ErrorReport| {
                (
                    report.count,
                    report.max_error_element,
                    report.saturated,
                    report.clipped,
                    report.non_finite_originals,
                )
            };
            assert_eq!(figures(&whole), figures(&parts));
        }
    }

    #[test]
    fn zeros_have_a_cosine() {
        assert_eq!(measure_error(&[0.0; 3], &[0.0; 3]).unwrap().cosine, 1.0);
        assert_eq!(measure_error(&[0.0; 3], &[0.0, 1.0, 0.0]).unwrap().cosine, 0.0);
        let report = measure_error(&[5.0; 2], &[5.0, 4.0]).unwrap();
        assert_eq!((report.sigma, report.relative_rmse()), (0.0, f64::INFINITY));
        let nothing = ErrorMeter::new().report();
        assert_eq!((nothing.count, nothing.cosine, nothing.max_error_element), (0, 1.0, None));
    }

    #[test]
    fn numbers_that_are_not_finite_are_counted_and_left_out() {
        let originals = [f32::NAN, 1.0, f32::INFINITY, 2.0, 3.0];
        let report = measure_error(&originals, &[1.0, 1.0, f32::NAN, f32::INFINITY, 3.0]).unwrap();
        assert_eq!((report.non_finite_originals, report.non_finite_decoded, report.count), (2, 2, 5));
        assert_eq!((report.rmse, report.sigma, report.max_error_element), (0.0, 1.0, Some(1)));
    }

    #[test]
    fn codes_at_the_ends_are_counted() {
        let mut values = [0.0; 32];
        // A scale of 1: the codes reach from -8 to 7.
        (values[0], values[5], values[6], values[7]) = (-8.0, 7.0, 7.9, 6.0);
        let mut blocks = [0; 18];
        let quantizer = Quantizer::new(Dtype::Q4_0).unwrap();
        quantizer.quantize(&values, 32, &mut blocks).unwrap();
        let mut meter = ErrorMeter::new();
        meter.add_blocks(Dtype::Q4_0, &values, &blocks).unwrap();
        let report = meter.report();
        assert_eq!((report.saturated, report.clipped, report.max_error_element), (Some(3), Some(1), Some(6)));
        // A block of zeros has no code range; after a format without ordered codes there is no count.
        meter.add_blocks(Dtype::Q4_0, &[0.0; 32], &[0; 18]).unwrap();
        assert_eq!(meter.report().saturated, Some(3));
        meter.add_blocks(Dtype::F16, &[0.0], &[0; 2]).unwrap();
        assert_eq!(meter.report().saturated, None);
        assert_eq!(meter.report().count, 65);
    }

    #[test]
    fn one_scale_and_a_short_block_are_understood() {
        let values: [f32; 300] = core::array::from_fn(|idx| (idx % 21) as f32 - 10.0);
        for (dtype, len) in [(Dtype::AprQ8, 304), (Dtype::AprQ4, 180)] {
            let mut blocks = [0; 304];
            let quantizer = Quantizer::new(dtype).unwrap();
            quantizer.quantize(&values, 300, &mut blocks[..len]).unwrap();
            let mut decoded = [0.0; 300];
            dequantize(dtype, &blocks[..len], &mut decoded).unwrap();
            let mut meter = ErrorMeter::new();
            meter.add_blocks(dtype, &values, &blocks[..len]).unwrap();
            let report = meter.report();
            let expected = measure_error(&values, &decoded).unwrap();
            assert_eq!(
                (report.rmse, report.cosine, report.sigma),
                (expected.rmse, expected.cosine, expected.sigma)
            );
            assert!(report.saturated.is_some_and(|count| count >= 28), "{report:?}");
        }
    }

    #[test]
    fn pieces_have_to_fit() {
        assert_eq!(measure_error(&[1.0], &[]).unwrap_err().code(), "q-unequal-lengths");
        let mut meter = ErrorMeter::new();
        let refused = meter.add_blocks(Dtype::Q8_0, &[0.0; 32], &[0; 33]).unwrap_err();
        assert_eq!(refused.code(), "q-blocks-length");
        let refused = meter.add_blocks(Dtype::Q8_0, &[0.0; 31], &[0; 34]).unwrap_err();
        assert_eq!(refused.code(), "q-row-length");
        assert_eq!(meter.report().count, 0);
    }
}
