//! User-defined model types.

use apr_container::{DecodePayload, EncodePayload, Error, ModelType, PayloadReader, PayloadWriter};

/// Defines a wrapper that gives any payload one model type.
macro_rules! wrapper {
    ($(#[$doc:meta])* $name:ident, $model_type:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name<P>(pub P);

        impl<P: EncodePayload> EncodePayload for $name<P> {
            const MODEL_TYPE: Option<ModelType> = Some($model_type);

            fn model_name(&self) -> Option<&str> {
                self.0.model_name()
            }

            fn check_fitted(&self) -> Result<(), Error> {
                self.0.check_fitted()
            }

            fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
                self.0.encode_payload(out)
            }
        }

        impl<P: DecodePayload> DecodePayload for $name<P> {
            const MODEL_TYPE: Option<ModelType> = Some($model_type);

            fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
                P::decode_payload(input).map(Self)
            }

            fn skip_payload(input: &mut PayloadReader<'_>) -> Result<(), Error> {
                P::skip_payload(input)
            }
        }
    };
}

wrapper! {
    /// A model of the user's own type: any payload, for example a serde type in `apr_container::Serde`.
    ///
    /// ```
    /// use apr_container::{
    ///     DecodePayload, EncodePayload, Error, PayloadLayout, ModelType, PayloadReader, PayloadWriter,
    ///     decode_payload_from_slice, encode_payload_to_vec,
    /// };
    /// use apr_models::Custom;
    ///
    /// #[derive(Debug, PartialEq)]
    /// struct Threshold(f32);
    ///
    /// impl EncodePayload for Threshold {
    ///     fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
    ///         out.f32(self.0)
    ///     }
    /// }
    ///
    /// impl DecodePayload for Threshold {
    ///     fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
    ///         Ok(Self(input.f32()?))
    ///     }
    /// }
    ///
    /// let bytes = encode_payload_to_vec(&Custom(Threshold(0.5)), PayloadLayout::default())?;
    /// let Custom(threshold): Custom<Threshold> =
    ///     decode_payload_from_slice(&bytes, PayloadLayout::default(), ModelType::Custom)?;
    /// assert_eq!(threshold, Threshold(0.5));
    /// # Ok::<(), Error>(())
    /// ```
    Custom, ModelType::Custom
}

wrapper! {
    /// A neural network of the user's own type; otherwise as [`Custom`].
    NeuralCustom, ModelType::NeuralCustom
}
