//! Packed 6-bit scales and minima: `Q4_K` and `Q5_K` store eight of each in twelve bytes, `Q3_K` sixteen scales.

use crate::inline::shared;

shared! {
    /// Eight scales and eight minima.
    ///
    /// The lower six bits of bytes 0-3 and 4-7 are scales and minima 0-3. Bytes 8-11 hold the lower four bits of scales and
    /// minima 4-7; their upper two bits are bits 6 and 7 of bytes 0-7.
    pub(crate) fn write_pairs(scales: &[u8; 8], mins: &[u8; 8], out: &mut [u8; 12]) {
        for idx in 0..4 {
            let (scale, min) = (scales[idx + 4], mins[idx + 4]);
            out[idx] = scales[idx] | scale >> 4 << 6;
            out[idx + 4] = mins[idx] | min >> 4 << 6;
            out[idx + 8] = scale & 0x0f | min << 4;
        }
    }

    /// Unpacks the scales and minima of twelve bytes.
    pub(crate) fn read_pairs(bytes: &[u8; 12]) -> ([u8; 8], [u8; 8]) {
        let (mut scales, mut mins) = ([0; 8], [0; 8]);
        for idx in 0..4 {
            scales[idx] = bytes[idx] & 63;
            mins[idx] = bytes[idx + 4] & 63;
            scales[idx + 4] = bytes[idx + 8] & 0x0f | bytes[idx] >> 6 << 4;
            mins[idx + 4] = bytes[idx + 8] >> 4 | bytes[idx + 4] >> 6 << 4;
        }
        (scales, mins)
    }

    /// Sixteen scales: the lower four bits in eight bytes, `j` together with `j + 8`; the upper two bits in four bytes, every
    /// fourth scale in the same byte.
    pub(crate) fn write_scales(scales: &[u8; 16], out: &mut [u8; 12]) {
        out.fill(0);
        for idx in 0..8 {
            out[idx] = scales[idx] & 0x0f | scales[idx + 8] << 4;
        }
        for (idx, scale) in scales.iter().enumerate() {
            out[8 + idx % 4] |= scale >> 4 << (2 * (idx / 4));
        }
    }

    /// Unpacks the scales of twelve bytes.
    pub(crate) fn read_scales(bytes: &[u8; 12]) -> [u8; 16] {
        let mut scales = [0; 16];
        for (idx, scale) in scales.iter_mut().enumerate() {
            let low = bytes[idx % 8] >> (4 * (idx / 8)) & 0x0f;
            *scale = low | (bytes[8 + idx % 4] >> (2 * (idx / 4)) & 3) << 4;
        }
        scales
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_back() {
        for seed in 0..64_u8 {
            let number = |idx: usize| (idx as u8).wrapping_mul(37).wrapping_add(seed.wrapping_mul(11)) & 63;
            let (scales, mins) = (core::array::from_fn(number), core::array::from_fn(|idx| number(idx + 8)));
            let mut bytes = [0; 12];
            write_pairs(&scales, &mins, &mut bytes);
            assert_eq!(read_pairs(&bytes), (scales, mins));
            let scales = core::array::from_fn(number);
            write_scales(&scales, &mut bytes);
            assert_eq!(read_scales(&bytes), scales);
        }
    }
}
