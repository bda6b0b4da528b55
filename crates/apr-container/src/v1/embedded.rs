//! Models embedded in programs: the header is validated when the program is compiled.

use core::fmt;
use core::marker::PhantomData;

use crate::codec::{DecodePayload, ViewPayload};
use crate::error::Error;
use crate::limits::ReadOptions;
use crate::v1::flags::Flags;
use crate::v1::header::{CHECKSUM_LEN, HEADER_LEN, MAGIC, SIGNATURE_LEN, VERSION};
use crate::v1::load::{Expect, load_from_bytes_with, view_bytes_with};

/// Bytes aligned to 64.
#[doc(hidden)]
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Aligned<const LEN: usize>(pub [u8; LEN]);

/// A model file inside the program, in its read-only data.
///
/// Created by [`embed_model!`](crate::embed_model), which reads the header at compile time: a file that is not a model, one of
/// another type than `M`, or a truncated one does not compile.
pub struct Embedded<M> {
    file: &'static [u8],
    model: PhantomData<fn() -> M>,
}

impl<M: DecodePayload> Embedded<M> {
    /// From the bytes of a file, as `include_bytes!` returns them.
    ///
    /// # Panics
    ///
    /// If the header is not that of a model of this type, or its lengths are not those of the file; in a constant or a static
    /// that is a compile error. The rest of the file, including its checksum, is validated by [`load`](Self::load).
    #[must_use]
    pub const fn new(file: &'static [u8]) -> Self {
        let Some((header, rest)) = file.split_first_chunk::<HEADER_LEN>() else {
            panic!("no model file: shorter than a header");
        };
        let &[m0, m1, m2, m3, major, _, t0, t1, a0, a1, a2, a3, b0, b1, b2, b3, .., flags] =
            header.first_chunk::<22>().expect("22 of 32 bytes");
        let magic = [m0, m1, m2, m3];
        assert!(u32::from_le_bytes(magic) == u32::from_le_bytes(MAGIC), "no model file of version 1");
        assert!(major == VERSION.0, "a model file of another version");
        if let Some(expected) = M::MODEL_TYPE {
            assert!(u16::from_le_bytes([t0, t1]) == expected.0, "a model of another type");
        }
        let flags = Flags(flags);
        assert!(!flags.contains(Flags::ENCRYPTED), "an encrypted model: only a key can load it");
        let signature = if flags.contains(Flags::SIGNED) { SIGNATURE_LEN } else { 0 };
        let metadata = u32::from_le_bytes([a0, a1, a2, a3]) as usize;
        let payload = u32::from_le_bytes([b0, b1, b2, b3]) as usize;
        // A saturated sum is longer than any file.
        let expected = metadata.saturating_add(payload).saturating_add(signature + CHECKSUM_LEN);
        assert!(rest.len() == expected, "a model file that was cut off, or with bytes behind its end");
        Self { file, model: PhantomData }
    }

    /// The model.
    ///
    /// # Errors
    ///
    /// As [`load_from_bytes`](crate::load_from_bytes): the checksum among them, and
    /// [`ErrorKind::SignatureUnchecked`](crate::ErrorKind::SignatureUnchecked) for a file with a signature, which
    /// [`load_with`](Self::load_with) can accept where the program itself is signed.
    pub fn load(&self) -> Result<M, Error> {
        self.load_with(&ReadOptions::STRICT)
    }

    /// The model, with read options.
    ///
    /// # Errors
    ///
    /// As [`load_from_bytes_with`].
    pub fn load_with(&self, options: &ReadOptions) -> Result<M, Error> {
        load_from_bytes_with(self.file, M::MODEL_TYPE.map_or(Expect::AnyKnown, Expect::Type), options)
    }
}

impl<M: ViewPayload> Embedded<M> {
    /// The model as a view of the program's read-only data: no value is copied.
    ///
    /// # Errors
    ///
    /// Those of [`load`](Self::load); [`ErrorKind::Compressed`](crate::ErrorKind::Compressed).
    pub fn view(&self) -> Result<M::View<'static>, Error> {
        self.view_with(&ReadOptions::STRICT)
    }

    /// The same with read options.
    ///
    /// # Errors
    ///
    /// As [`view`](Self::view).
    pub fn view_with(&self, options: &ReadOptions) -> Result<M::View<'static>, Error> {
        view_bytes_with::<M>(self.file, M::MODEL_TYPE.map_or(Expect::AnyKnown, Expect::Type), options)
    }
}

impl<M> Embedded<M> {
    /// The file.
    #[must_use]
    pub const fn file(&self) -> &'static [u8] {
        self.file
    }
}

impl<M> Clone for Embedded<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Embedded<M> {}

impl<M> fmt::Debug for Embedded<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("len", &self.file.len()).finish_non_exhaustive()
    }
}

/// Embeds a model file in the program, aligned to 64 bytes, and validates its header at compile time. The path is as for
/// `include_bytes!`.
///
/// ```
/// use apr_container::{Embedded, embed_model};
/// # struct LinearRegression;
/// # impl apr_container::DecodePayload for LinearRegression {
/// #     const MODEL_TYPE: Option<apr_container::ModelType> = Some(apr_container::ModelType::LinearRegression);
/// #     fn decode_payload(input: &mut apr_container::PayloadReader<'_>) -> Result<Self, apr_container::Error> {
/// #         while input.u8().is_ok() {}
/// #         Ok(Self)
/// #     }
/// # }
///
/// static PRICE: Embedded<LinearRegression> =
///     embed_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/apr/a0150_linreg_none_plain.apr"));
///
/// let model: LinearRegression = PRICE.load()?;
/// assert_eq!(PRICE.file().as_ptr().addr() % 64, 0);
/// # Ok::<(), apr_container::Error>(())
/// ```
///
/// A file of another type does not compile:
///
/// ```compile_fail,E0080
/// # use apr_container::{Embedded, embed_model};
/// # struct KMeans;
/// # impl apr_container::DecodePayload for KMeans {
/// #     const MODEL_TYPE: Option<apr_container::ModelType> = Some(apr_container::ModelType::KMeans);
/// #     fn decode_payload(_: &mut apr_container::PayloadReader<'_>) -> Result<Self, apr_container::Error> {
/// #         Ok(Self)
/// #     }
/// # }
/// static CLUSTERS: Embedded<KMeans> =
///     embed_model!(concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/vectors/apr/a0150_linreg_none_plain.apr"));
/// ```
#[macro_export]
macro_rules! embed_model {
    ($path:expr $(,)?) => {{
        static FILE: $crate::Aligned<{ ::core::include_bytes!($path).len() }> =
            $crate::Aligned(*::core::include_bytes!($path));
        $crate::Embedded::new(&FILE.0)
    }};
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::codec::{EncodePayload, PayloadReader, PayloadWriter};
    use crate::model_type::ModelType;
    use crate::v1::save::{SaveOptions, to_vec};

    #[derive(Debug, PartialEq)]
    struct Sample(u32);

    impl EncodePayload for Sample {
        const MODEL_TYPE: Option<ModelType> = Some(ModelType::KMeans);

        fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
            out.u32(self.0)
        }
    }

    impl DecodePayload for Sample {
        const MODEL_TYPE: Option<ModelType> = Some(ModelType::KMeans);

        fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
            input.u32().map(Self)
        }
    }

    fn file() -> Vec<u8> {
        to_vec(&Sample(7), ModelType::KMeans, &SaveOptions::default()).unwrap()
    }

    /// The compile error for a file.
    fn refusal(file: Vec<u8>) -> Option<&'static str> {
        let file: &'static [u8] = Box::leak(file.into_boxed_slice());
        let error = std::panic::catch_unwind(|| Embedded::<Sample>::new(file)).err()?;
        Some(*error.downcast_ref::<&'static str>().unwrap())
    }

    #[test]
    fn what_has_the_right_header_is_taken_and_read_whole_only_when_it_is_loaded() {
        let sound = file();
        assert_eq!(refusal(sound.clone()), None);
        let embedded = Embedded::<Sample>::new(Box::leak(sound.clone().into_boxed_slice()));
        assert_eq!((embedded.load().unwrap(), embedded.file()), (Sample(7), &*sound));
        let mut damaged = sound;
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(refusal(damaged.clone()), None);
        let embedded = Embedded::<Sample>::new(Box::leak(damaged.into_boxed_slice()));
        assert_eq!(embedded.load().unwrap_err().code(), "ac-checksum");
    }

    #[test]
    fn what_can_never_be_loaded_is_refused() {
        let changed = |at: usize, value: u8| {
            let mut file = file();
            file[at] = value;
            refusal(file).unwrap_or_default()
        };
        assert!(changed(0, b'X').contains("version 1"));
        assert!(changed(4, 2).contains("another version"));
        assert!(changed(6, 1).contains("another type"));
        assert!(changed(21, Flags::ENCRYPTED.0).contains("encrypted"));
        // A missing signature.
        assert!(changed(21, Flags::SIGNED.0).contains("cut off"));
        for at in [8, 11, 12, 15] {
            assert!(changed(at, 0xFF).contains("cut off"));
        }
        let whole = file();
        for len in 0..whole.len() {
            assert!(refusal(whole[..len].to_vec()).is_some(), "{len}");
        }
        assert!(refusal([whole, vec![0]].concat()).unwrap().contains("cut off"));
    }
}
