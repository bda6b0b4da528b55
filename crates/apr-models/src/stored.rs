//! How a model is stored: implements the payload and tensor traits from one description.

/// Implements [`Model`](crate::Model), `EncodePayload` and `DecodePayload` by the methods `push_tensors`, `encode_fields` and
/// `decode_fields` of the model. The declaration begins with the name in files and the container type; `or any` accepts a
/// payload under every container type. With `form N of M`, the header of this project precedes the fields; without it, there is
/// no header, or `encode_fields` and `decode_fields` include it. The documentation describes the fields.
macro_rules! stored_model {
    (
        $(#[$doc:meta])*
        $model:ident $name:literal [$model_type:ident $($any:ident any)?] $(form $form:tt of $n_forms:tt)?
        n_features: $n_features:expr;
        $(is_fitted: $is_fitted:expr;)?
        $(skip: $skip:expr;)?
    ) => {
        impl $model {
            /// The name of the model in files.
            pub(crate) const NAME: &'static str = $name;
        }

        impl $crate::model::Model for $model {
            fn name(&self) -> &'static str {
                Self::NAME
            }

            fn model_type(&self) -> apr_container::ModelType {
                apr_container::ModelType::$model_type
            }

            fn n_features(&self) -> Option<usize> {
                let n_features: fn(&Self) -> Option<usize> = $n_features;
                n_features(self)
            }

            fn to_tensors(&self) -> Result<$crate::tensors::Tensors, $crate::error::Error> {
                $crate::tensors::Tensors::made(Self::NAME, &|tensors| self.push_tensors(tensors))
            }
        }

        $(#[$doc])*
        impl apr_container::EncodePayload for $model {
            const MODEL_TYPE: Option<apr_container::ModelType> =
                $crate::stored::payload_type!($model_type $($any)?);

            fn model_name(&self) -> Option<&str> {
                Some(Self::NAME)
            }

            $(fn check_fitted(&self) -> Result<(), apr_container::Error> {
                let is_fitted: fn(&Self) -> bool = $is_fitted;
                $crate::model::check_fitted(is_fitted(self))
            })?

            fn encode_payload(
                &self,
                out: &mut apr_container::PayloadWriter<'_>,
            ) -> Result<(), apr_container::Error> {
                $($crate::payload::header::write(out, $form)?;)?
                self.encode_fields(out)
            }
        }

        $(#[$doc])*
        impl apr_container::DecodePayload for $model {
            const MODEL_TYPE: Option<apr_container::ModelType> =
                $crate::stored::payload_type!($model_type $($any)?);

            fn decode_payload(
                input: &mut apr_container::PayloadReader<'_>,
            ) -> Result<Self, apr_container::Error> {
                $($crate::payload::header::expect_form(input, $form, $n_forms)?;)?
                Self::decode_fields(input)
            }

            $(fn skip_payload(
                input: &mut apr_container::PayloadReader<'_>,
            ) -> Result<(), apr_container::Error> {
                $skip(input)
            })?
        }
    };
}

/// The container type that a payload is expected under.
macro_rules! payload_type {
    ($model_type:ident) => {
        Some(apr_container::ModelType::$model_type)
    };
    ($model_type:ident or) => {
        None
    };
}

pub(crate) use payload_type;
