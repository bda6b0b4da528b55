//! 256 two-bit codes: 32 bytes for each 128 codes; the codes of a byte are 32 elements apart.

use crate::inline::shared;

shared! {
    /// Only the lower two bits of a code are used.
    pub(crate) fn write(codes: &[u8; 256], out: &mut [u8; 64]) {
        for half in 0..2 {
            for idx in 0..32 {
                let code = |shift: usize| (codes[128 * half + 32 * shift + idx] & 3) << (2 * shift);
                out[32 * half + idx] = code(0) | code(1) | code(2) | code(3);
            }
        }
    }

    /// Code `idx` of 64 bytes.
    pub(crate) fn read(bytes: &[u8; 64]) -> [u8; 256] {
        let mut codes = [0; 256];
        for half in 0..2 {
            for shift in 0..4 {
                for idx in 0..32 {
                    codes[128 * half + 32 * shift + idx] = bytes[32 * half + idx] >> (2 * shift) & 3;
                }
            }
        }
        codes
    }
}
