//! `.apr` version 1: a payload that is decoded into a model.

use alloc::sync::Arc;
use core::cell::OnceCell;

#[cfg(feature = "sealed")]
use apr_container::LoadOptions;
use apr_container::{
    DecodePayload, Expect, ModelInfo, ModelType, PayloadLayout, PayloadReader, ReadOptions, inspect_prefix,
    load_from_bytes_with, prefix_len,
};
use apr_models::{AnyModel, QuantType};
#[cfg(feature = "tensor-models")]
use apr_models::{Model as _, Tensors};
use read_at::ReadAt;
use tensor_dtype::{Dtype, TensorType};

use crate::content::{read_all, read_prefix};
use crate::error::{Error, ErrorKind};
use crate::options::OpenOptions;
use crate::tensor::Tensor;

/// Bytes before the metadata.
const HEADER_LEN: u64 = 32;
/// Name of the one tensor that a quantized table becomes.
const TABLE: &str = "weight";

/// Header and metadata of an `.apr` file of version 1, and its payload once it was decoded.
#[derive(Debug)]
pub struct AprV1 {
    info: ModelInfo,
    options: ReadOptions,
    /// Whether the file is the original of a sealed one.
    #[cfg(feature = "std")]
    is_sealed: bool,
    decoded: OnceCell<Decoded>,
    #[cfg(feature = "sealed")]
    signer: Option<SignedBy>,
    #[cfg(feature = "sealed")]
    is_decrypted: bool,
}

/// A decoded payload.
#[derive(Debug)]
pub struct Payload {
    /// The model; `None` if the payload is of a type that only its maker's program can decode.
    pub model: Option<Arc<AnyModel>>,
    /// The layout of the payload.
    pub layout: PayloadLayout,
}

/// A payload, and the tensors that its model becomes; none of a model that was not fitted.
#[derive(Debug)]
struct Decoded {
    payload: Payload,
    #[cfg(feature = "tensor-models")]
    tensors: Option<Tensors>,
}

/// The beginning of a recipient's public key.
#[cfg(feature = "sealed")]
type RecipientId = [u8; apr_crypto::RecipientPublic::ID_LEN];

/// Whose signature was verified.
#[cfg(feature = "sealed")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignedBy {
    /// A trusted key, with its name in the list of trusted keys if it has one.
    Trusted(apr_crypto::VerifyingKey, Option<alloc::string::String>),
    /// Any key: the signature is valid, which proves nothing about its origin.
    Unknown(apr_crypto::VerifyingKey),
}

#[cfg(feature = "sealed")]
impl SignedBy {
    /// The same, borrowed.
    #[must_use]
    pub fn as_signer(&self) -> apr_crypto::Signer<'_> {
        match self {
            Self::Trusted(key, name) => apr_crypto::Signer::Trusted(*key, name.as_deref()),
            Self::Unknown(key) => apr_crypto::Signer::Unknown(*key),
        }
    }
}

#[cfg(feature = "sealed")]
impl From<apr_crypto::Signer<'_>> for SignedBy {
    fn from(signer: apr_crypto::Signer<'_>) -> Self {
        match signer {
            apr_crypto::Signer::Trusted(key, name) => Self::Trusted(key, name.map(Into::into)),
            apr_crypto::Signer::Unknown(key) => Self::Unknown(key),
        }
    }
}

impl DecodePayload for Payload {
    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, apr_container::Error> {
        let layout = input.layout();
        let may_be_foreign = matches!(input.model_type(), ModelType::Custom | ModelType::NeuralCustom);
        let model = match AnyModel::decode_payload(input) {
            Ok(model) => Some(Arc::new(model)),
            // All of it has been read: the models were tried on a copy.
            Err(error) if may_be_foreign && error.code() == "am-unknown-model" => None,
            Err(error) => return Err(error),
        };
        Ok(Self { model, layout })
    }
}

impl AprV1 {
    /// Reads header and metadata; with keys, the whole file: verifies it, then decrypts and decodes it.
    pub(crate) fn read(
        content: &dyn ReadAt,
        options: &OpenOptions<'_>,
        #[cfg_attr(
            not(any(feature = "std", feature = "sealed")),
            expect(unused_variables, reason = "none is")
        )]
        is_sealed: bool,
    ) -> Result<Self, Error> {
        let apr = options.read_options().apr;
        #[cfg(feature = "sealed")]
        if let Some(access) = options.access()
            && !is_sealed
        {
            return Self::read_protected(content, &access, &apr);
        }
        let len = content.total_len();
        let first = read_prefix(content, HEADER_LEN)?;
        // Nothing is reserved for a file that is not as long as its header says.
        let prefix = read_prefix(content, prefix_len(&first, len, &apr)?)?;
        let info = inspect_prefix(&prefix, len, &apr)?;
        Ok(Self {
            info,
            options: apr,
            #[cfg(feature = "std")]
            is_sealed,
            decoded: OnceCell::new(),
            #[cfg(feature = "sealed")]
            signer: None,
            #[cfg(feature = "sealed")]
            is_decrypted: false,
        })
    }

    #[cfg(feature = "sealed")]
    fn read_protected(
        content: &dyn ReadAt,
        access: &apr_crypto::Access<'_>,
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        prefix_len(&read_prefix(content, HEADER_LEN)?, content.total_len(), options)?;
        // Of a long file, before the rest of it is read.
        apr_container::check_source(content, access.trust(), options)?;
        Self::read_whole(&read_all(content)?, access, options)
    }

    /// Verifies the signature, then reads the metadata, then decrypts and decodes the payload.
    #[cfg(feature = "sealed")]
    fn read_whole(
        file: &[u8],
        access: &apr_crypto::Access<'_>,
        options: &ReadOptions,
    ) -> Result<Self, Error> {
        let signer = apr_container::verify_signature(file, access.trust(), options)?;
        let mut options = *options;
        if signer.is_some() {
            // It was verified just now, of these bytes.
            options.unchecked_signature = apr_container::UncheckedSignature::Allow;
        }
        let info = apr_container::inspect_bytes_with(file, &options)?;
        let decoded = OnceCell::new();
        if !info.encrypted || access.key().is_some() {
            let trusting = access.with_trust(apr_crypto::Trust::NoSignature);
            let options = LoadOptions { read: options, access: trusting };
            // The cell is empty.
            let _ = decoded.set(Decoded::new(load_from_bytes_with(file, Expect::AnyKnown, options)?)?);
        }
        let is_decrypted = info.encrypted && decoded.get().is_some();
        Ok(Self {
            info,
            options,
            #[cfg(feature = "std")]
            is_sealed: false,
            decoded,
            signer: signer.map(SignedBy::from),
            is_decrypted,
        })
    }

    fn decoded(&self, content: &dyn ReadAt) -> Result<&Decoded, Error> {
        if let Some(decoded) = self.decoded.get() {
            return Ok(decoded);
        }
        let decoded = self.read_payload(content)?;
        Ok(self.decoded.get_or_init(|| decoded))
    }

    fn read_payload(&self, content: &dyn ReadAt) -> Result<Decoded, Error> {
        let payload = match content.in_memory() {
            // Read once, a piece at a time.
            #[cfg(feature = "std")]
            None if !self.is_sealed => apr_container::load_from(content, Expect::AnyKnown, self.options)?,
            _ => load_from_bytes_with(&read_all(content)?, Expect::AnyKnown, self.options)?,
        };
        Decoded::new(payload)
    }

    /// Header and metadata.
    #[must_use]
    pub const fn info(&self) -> &ModelInfo {
        &self.info
    }

    /// Whose signature was verified, if keys were given that demand one.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub const fn signer(&self) -> Option<&SignedBy> {
        self.signer.as_ref()
    }

    /// Whether the payload was decrypted.
    #[cfg(feature = "sealed")]
    #[must_use]
    pub const fn is_decrypted(&self) -> bool {
        self.is_decrypted
    }

    /// The payload, if it was decoded.
    #[must_use]
    pub fn payload(&self) -> Option<&Payload> {
        self.decoded.get().map(|decoded| &decoded.payload)
    }

    /// The layout of the payload, if it was decoded.
    #[must_use]
    pub fn layout(&self) -> Option<PayloadLayout> {
        Some(self.payload()?.layout)
    }

    /// The model, if the payload was decoded and holds one.
    #[must_use]
    pub fn model(&self) -> Option<&AnyModel> {
        self.payload()?.model.as_deref()
    }

    /// The name in the metadata of the model's tensors, if the payload was decoded.
    #[cfg(feature = "tensor-models")]
    #[must_use]
    pub fn model_entry(&self) -> Option<&str> {
        self.decoded.get()?.tensors.as_ref()?.model()
    }

    /// Whether the payload was decoded and its model was fitted.
    #[cfg(feature = "tensor-models")]
    #[must_use]
    pub fn is_fitted(&self) -> bool {
        self.decoded.get().is_some_and(|decoded| decoded.tensors.is_some())
    }

    /// The table of a `QuantizedBlock` as one tensor of blocks; `None` for every other model, and for an unknown block type.
    #[must_use]
    pub fn table(&self) -> Option<Tensor<'_>> {
        let Some(AnyModel::QuantizedBlock(table)) = self.model() else { return None };
        let dtype = match table.quant_type() {
            // Neighbours share a byte: not what GGUF files call Q4_0.
            QuantType::Q4_0 => TensorType::Known(Dtype::AprQ4),
            QuantType::Q8_0 => TensorType::Known(Dtype::Q8_0),
            _ => return None,
        };
        Some(Tensor::in_memory(TABLE, dtype, table.shape(), table.blocks()))
    }

    /// Offset of the payload in the file.
    #[cfg(feature = "sealed")]
    const fn payload_start(&self) -> u64 {
        HEADER_LEN + self.info.metadata_size
    }

    /// The key next to the signature.
    #[cfg(feature = "sealed")]
    pub(crate) fn signer_declared(&self, content: &dyn ReadAt) -> Option<apr_crypto::VerifyingKey> {
        let mut key = [0; 32];
        let signature = self.info.signed.then_some(self.payload_start() + self.info.payload_size)?;
        content.read_exact_at(signature + 64, &mut key).ok()?;
        apr_crypto::VerifyingKey::from_bytes(&key).ok()
    }

    /// The beginning of the recipient's public key, if the metadata say that there is one.
    #[cfg(feature = "sealed")]
    pub(crate) fn recipient_declared(&self, content: &dyn ReadAt) -> Option<RecipientId> {
        let mut id = RecipientId::default();
        let is_for_one =
            self.info.encrypted && self.info.key_hint() == Some(apr_container::KeyHint::Recipient);
        is_for_one.then(|| content.read_exact_at(self.payload_start() + 32, &mut id).ok())??;
        Some(id)
    }

    /// Compares the checksum.
    #[cfg(feature = "std")]
    pub(crate) fn verify(&self, content: &dyn ReadAt) -> Result<(), Error> {
        match apr_container::checksum_mismatch_from(content)? {
            Some(mismatch) => Err(mismatch.into()),
            None => Ok(()),
        }
    }

    /// Compares the checksum.
    #[cfg(not(feature = "std"))]
    pub(crate) fn verify(&self, content: &dyn ReadAt) -> Result<(), Error> {
        apr_container::v1::Container::from_bytes_with(&read_all(content)?, &self.options)?;
        Ok(())
    }

    /// Verifies the signature, if `trust` asks for one, and compares the checksum.
    #[cfg(feature = "sealed")]
    pub(crate) fn verify_signature<'k>(
        &self,
        content: &dyn ReadAt,
        trust: apr_crypto::Trust<'k>,
    ) -> Result<Option<apr_crypto::Signer<'k>>, Error> {
        Ok(apr_container::verify_signature(&read_all(content)?, trust, &self.options)?)
    }

    /// Decodes the payload, which has to be of a known model.
    pub(crate) fn decode(&self, content: &dyn ReadAt) -> Result<&Arc<AnyModel>, Error> {
        let foreign = || ErrorKind::ForeignPayload { model_type: self.info.model_type };
        Ok(self.decoded(content)?.payload.model.as_ref().ok_or_else(foreign)?)
    }

    #[cfg(not(feature = "tensor-models"))]
    pub(crate) fn tensors(&self, content: &dyn ReadAt) -> Result<alloc::vec::Vec<Tensor<'_>>, Error> {
        self.decode(content).map(|_| alloc::vec::Vec::new())
    }

    #[cfg(feature = "tensor-models")]
    pub(crate) fn tensors(&self, content: &dyn ReadAt) -> Result<alloc::vec::Vec<Tensor<'_>>, Error> {
        self.decode(content)?;
        let Some(tensors) = &self.decoded(content)?.tensors else { return Ok(alloc::vec::Vec::new()) };
        let tensor = |name| {
            let view = tensors.view(name)?;
            Ok(Tensor::in_memory(name, TensorType::Known(view.dtype()), view.shape(), view.data()))
        };
        tensors.names().map(tensor).collect()
    }
}

impl Decoded {
    fn new(payload: Payload) -> Result<Self, Error> {
        #[cfg(feature = "tensor-models")]
        let tensors = match payload.model.as_ref().map(|model| model.to_tensors()) {
            None => None,
            Some(Ok(tensors)) => Some(tensors),
            Some(Err(error)) if error.code() == "am-not-fitted" => None,
            Some(Err(error)) => return Err(error.into()),
        };
        Ok(Self {
            payload,
            #[cfg(feature = "tensor-models")]
            tensors,
        })
    }
}
