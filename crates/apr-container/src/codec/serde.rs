//! Users' own types as payloads, by serde.

mod decode;
mod encode;
mod refusal;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::decode::Decoder;
use self::encode::Encoder;
use crate::codec::{DecodePayload, EncodePayload, PayloadReader, PayloadWriter};
use crate::error::Error;

/// A value of any serde type, as the payload of a container: `Serde(&model)` is saved, `Serde<Model>` is loaded.
///
/// The bytes are those of bincode 1.3 with its default settings, which the format's other implementations use for every
/// model. No field names and no types are in them. Therefore:
///
/// - Fields are known by their order alone. Adding, removing or moving one is a new type to older files; keep a version
///   number of your own as the first field, or a new alternative at the end of an enum.
/// - `skip_serializing_if` loses the place of what follows. `flatten` and lists of unknown length are refused when
///   saving; `untagged` and internally tagged enums are refused when loading.
/// - Borrowed strings and bytes (`&str`) cannot be loaded.
///
/// Loading is bounded by the available bytes, whatever lengths they declare, by [`Limits::payload_depth`] levels of
/// values within each other, and by [`Limits::empty_elements`] list elements that take no bytes.
///
/// [`Limits::payload_depth`]: crate::Limits::payload_depth
/// [`Limits::empty_elements`]: crate::Limits::empty_elements
///
/// # Examples
///
/// ```
/// use apr_container::{ModelType, SaveOptions, Serde, load_from_bytes, to_vec};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Network {
///     version: u32,
///     layers: Vec<Vec<f32>>,
///     activation: Activation,
/// }
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// enum Activation {
///     Relu,
///     Leaky { slope: f32 },
/// }
///
/// let network =
///     Network { version: 1, layers: vec![vec![0.5, -1.0]], activation: Activation::Leaky { slope: 0.1 } };
/// let file = to_vec(&Serde(&network), ModelType::NeuralCustom, &SaveOptions::default())?;
/// let Serde(loaded) = load_from_bytes::<Serde<Network>>(&file, ModelType::NeuralCustom)?;
/// assert_eq!(loaded, network);
/// # Ok::<(), apr_container::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Serde<T>(pub T);

impl<T: Serialize> EncodePayload for Serde<T> {
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for lists and maps of unknown length,
    /// [`ErrorKind::Custom`](crate::ErrorKind::Custom) with the type's own message, and errors of the destination.
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        self.0.serialize(Encoder::new(out)).map_err(|refusal| refusal.0)
    }
}

impl<T: DeserializeOwned> DecodePayload for Serde<T> {
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for types that need self-describing input,
    /// [`ErrorKind::Custom`](crate::ErrorKind::Custom) with the type's own message, [`ErrorKind::Limit`](crate::ErrorKind::Limit),
    /// and what the reader refuses.
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let mut decoder = Decoder::new(input);
        match T::deserialize(&mut decoder) {
            Ok(value) => Ok(Self(value)),
            // An error of the type itself has no offset yet.
            Err(refusal) if refusal.0.offset().is_none() => Err(refusal.0.at(decoder.offset())),
            Err(refusal) => Err(refusal.0),
        }
    }
}
