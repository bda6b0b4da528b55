//! Fixed-length byte strings.

/// The first `A` bytes and the other `B`; that they add up to `N` is checked when it is compiled.
pub(crate) fn split<const N: usize, const A: usize, const B: usize>(bytes: &[u8; N]) -> (&[u8; A], &[u8; B]) {
    const { assert!(A + B == N) };
    let (front, back) = bytes.split_at(A);
    let whole = "the lengths add up";
    (front.try_into().expect(whole), back.try_into().expect(whole))
}

/// Constructor, bytes and length of a public value that files store in `$len` bytes.
macro_rules! stored_bytes {
    ($type:ident, $len:literal) => {
        impl $type {
            /// Length in bytes.
            pub const LEN: usize = $len;

            /// The value stored in a file.
            #[must_use]
            pub const fn from_file(bytes: [u8; Self::LEN]) -> Self {
                Self(bytes)
            }

            /// The bytes to store.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; Self::LEN] {
                self.0
            }
        }
    };
}

pub(crate) use stored_bytes;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        assert_eq!(split::<5, 2, 3>(b"abcde"), (b"ab", b"cde"));
        assert_eq!(split::<2, 0, 2>(b"ab"), (b"", b"ab"));
    }
}
