//! AES-256-GCM implementations: Rust, or with the feature `ring` the assembler of BoringSSL, with the same results and errors.

#[cfg(feature = "ring")]
mod native;
mod rust;

#[cfg(feature = "ring")]
pub(crate) use native::Cipher;
#[cfg(not(feature = "ring"))]
pub(crate) use rust::Cipher;

/// The implementation that checks the tag before it writes anything.
pub(crate) use rust::Cipher as CautiousCipher;

const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;

#[cfg(all(test, feature = "ring"))]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Each opens what the other sealed, to the same bytes, and refuses the same.
        #[test]
        fn both_implementations_are_one(
            key: [u8; 32], nonce: [u8; 12], header: Vec<u8>,
            data in prop::collection::vec(any::<u8>(), 0..20_000), bit: usize,
        ) {
            let (native, rust) = (Cipher::new(&key), CautiousCipher::new(&key));
            let (mut one, mut two) = (data.clone(), data.clone());
            let tag = native.seal(&nonce, &header, &mut one).unwrap();
            prop_assert_eq!(rust.seal(&nonce, &header, &mut two).unwrap(), tag);
            prop_assert_eq!(&one, &two);
            let mut wrong_tag = tag;
            wrong_tag[bit / 8 % 16] ^= 1 << (bit % 8);
            for (header, tag) in [(&header, &wrong_tag), (&[header.as_slice(), b"x"].concat(), &tag)] {
                let kinds = [
                    native.open(&nonce, header, &mut one.clone(), tag),
                    rust.open(&nonce, header, &mut one.clone(), tag),
                ];
                for kind in kinds {
                    prop_assert_eq!(kind.unwrap_err().code(), "cy-open");
                }
            }
            native.open(&nonce, &header, &mut one, &tag).unwrap();
            rust.open(&nonce, &header, &mut two, &tag).unwrap();
            prop_assert_eq!((&one, &two), (&data, &data));
        }
    }

    #[test]
    fn what_does_not_open_leaves_no_plaintext() {
        let cipher = Cipher::new(&[1; 32]);
        let mut sealed = [7; 40_000];
        let tag = cipher.seal(&[2; NONCE_LEN], b"", &mut sealed).unwrap();
        sealed[39_999] ^= 1;
        cipher.open(&[2; NONCE_LEN], b"", &mut sealed, &tag).unwrap_err();
        assert_eq!(sealed, [0; 40_000]);
    }
}
