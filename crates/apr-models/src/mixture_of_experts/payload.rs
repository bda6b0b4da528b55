//! Payload of a mixture: list of experts, gate, experts per sample, capacity factor, dropped fraction, weight of load
//! balancing.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

use apr_container::v1::Container;
use apr_container::{
    Compression, DecodePayload, EncodePayload, Error, ModelType, PayloadLayout, PayloadReader, PayloadWriter,
    decode_payload_from_slice, load_from_bytes,
};

use super::{GatingNetwork, MixtureOfExperts, MoeConfig};
use crate::error::ErrorKind;
use crate::payload::fields::read;

impl<E: EncodePayload, G: EncodePayload> EncodePayload for MixtureOfExperts<E, G> {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::MixtureOfExperts);

    fn model_name(&self) -> Option<&str> {
        Some("MixtureOfExperts")
    }

    fn check_fitted(&self) -> Result<(), Error> {
        self.experts.iter().try_for_each(EncodePayload::check_fitted)
    }

    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.usize(self.experts.len())?;
        self.experts.iter().try_for_each(|expert| expert.encode_payload(out))?;
        self.gating.encode_payload(out)?;
        let MoeConfig { top_k, capacity_factor, expert_dropout, load_balance_weight } = self.config;
        out.usize(top_k)?;
        out.f32s_raw(&[capacity_factor, expert_dropout, load_balance_weight])
    }
}

impl<E: DecodePayload, G: GatingNetwork + DecodePayload> DecodePayload for MixtureOfExperts<E, G> {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::MixtureOfExperts);

    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let experts: Vec<E> = input.list(1, E::decode_payload)?;
        let gating = G::decode_payload(input)?;
        if gating.n_experts() != experts.len() {
            return Err(input.invalid("the gate is for another number of experts"));
        }
        let config = read(input, |fields| MoeConfig {
            top_k: fields.usize(),
            capacity_factor: fields.f32(),
            expert_dropout: fields.f32(),
            load_balance_weight: fields.f32(),
        })?;
        Ok(Self { experts, gating, config })
    }

    fn skip_payload(input: &mut PayloadReader<'_>) -> Result<(), Error> {
        ExpertIndex::<E, G>::decode_payload(input).map(drop)
    }
}

/// Byte range of each expert in a payload.
struct ExpertIndex<E, G> {
    ranges: Vec<Range<u64>>,
    layout: PayloadLayout,
    parts: PhantomData<(E, G)>,
}

impl<E: DecodePayload, G: DecodePayload> DecodePayload for ExpertIndex<E, G> {
    const MODEL_TYPE: Option<ModelType> = Some(ModelType::MixtureOfExperts);

    fn decode_payload(input: &mut PayloadReader<'_>) -> Result<Self, Error> {
        let ranges = input.list(1, |input| {
            let begin = input.offset();
            E::skip_payload(input)?;
            Ok(begin..input.offset())
        })?;
        G::skip_payload(input)?;
        input.skip(20)?;
        Ok(Self { ranges, layout: input.layout(), parts: PhantomData })
    }
}

impl<E: DecodePayload, G: DecodePayload> MixtureOfExperts<E, G> {
    /// Reads one expert, counted from 0, from the bytes of an `.apr` file. The others are passed over, not decoded;
    /// `None` if there are not that many.
    ///
    /// ```
    /// use apr_container::{ModelType, SaveOptions, to_vec};
    /// use apr_models::{LinearRegression, MixtureOfExperts, SoftmaxGating, Vector};
    ///
    /// type Moe = MixtureOfExperts<LinearRegression, SoftmaxGating>;
    /// let expert = |slope: f32| LinearRegression::from_parts(Vector::from_vec(vec![slope]), 0.0);
    /// let moe = Moe::builder().gating(SoftmaxGating::new(1, 2)).expert(expert(1.0)?).expert(expert(2.0)?).build()?;
    /// let file = to_vec(&moe, ModelType::MixtureOfExperts, &SaveOptions::default())?;
    ///
    /// assert_eq!(Moe::read_expert(&file, 1)?, Some(expert(2.0)?));
    /// assert_eq!(Moe::read_expert(&file, 2)?, None);
    /// # Ok::<(), apr_models::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Container`].
    pub fn read_expert(file: &[u8], idx: usize) -> Result<Option<E>, crate::Error> {
        let index: ExpertIndex<E, G> = load_from_bytes(file, ModelType::MixtureOfExperts)?;
        let Some(range) = index.ranges.get(idx) else { return Ok(None) };
        let payload = Container::from_bytes(file)?.payload().plain()?;
        let decompressed;
        let bytes = if payload.compression() == Compression::None {
            payload.stored()
        } else {
            decompressed = payload.to_vec()?;
            &decompressed
        };
        // Offsets of a payload that was read fit the machine it was read on.
        let bytes = bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
        let model_type = E::MODEL_TYPE.unwrap_or(ModelType::MixtureOfExperts);
        let expert = decode_payload_from_slice(bytes, index.layout, model_type);
        expert.map(Some).map_err(|error| ErrorKind::Container(error).into())
    }
}
