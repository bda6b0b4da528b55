//! Packed elements of four and six bits: the first in the lowest bits, as in OCP MX and torch.

use st_core::Dtype;

/// Whether a byte holds more than one element, so that no view can show them.
pub(crate) fn is_packed(dtype: Dtype) -> bool {
    dtype.bits() < 8
}

/// One element in each byte, in its lowest bits.
pub(crate) fn unpack(dtype: Dtype, packed: &[u8], out: &mut [u8]) {
    let bits = dtype.bits();
    let mask = (1_u16 << bits) - 1;
    let (mut held, mut count) = (0_u16, 0);
    let mut bytes = packed.iter();
    for code in out {
        if count < bits {
            held |= u16::from(bytes.next().copied().unwrap_or_default()) << count;
            count += 8;
        }
        *code = (held & mask) as u8;
        held >>= bits;
        count -= bits;
    }
}

/// The elements in as few bytes as they need; the last one is filled with zeros.
pub(crate) fn pack(dtype: Dtype, codes: &[u8]) -> Vec<u8> {
    let bits = dtype.bits();
    let mask = (1_u16 << bits) - 1;
    let mut packed = Vec::with_capacity(codes.len());
    let (mut held, mut count) = (0_u16, 0);
    for &code in codes {
        held |= (u16::from(code) & mask) << count;
        count += bits;
        if count >= 8 {
            packed.push(held as u8);
            held >>= 8;
            count -= 8;
        }
    }
    if count > 0 {
        packed.push(held as u8);
    }
    packed
}
