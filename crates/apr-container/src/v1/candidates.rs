//! Payload layouts to try.

use alloc::string::{String, ToString};

use crate::codec::MODEL_NAME_KEY;
use crate::codec::payload_layout::PayloadLayout;
use crate::codec::{Context, DecodePayload, PayloadReader, Source};
use crate::compression::Bound;
use crate::error::Error;
use crate::limits::ReadOptions;
use crate::metadata::Metadata;
use crate::v1::header::{HEADER_LEN, Header};

/// What is known about a payload before it is decoded.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    /// `None` if the metadata do not state it: each is tried.
    layout: Option<PayloadLayout>,
    context: Context,
}

impl Candidates {
    pub(crate) fn new(header: &Header, metadata: &[u8], options: &ReadOptions) -> Result<Self, Error> {
        let (mut layout, mut model_name) = (None, None::<String>);
        match Metadata::from_msgpack(metadata, options.strictness, &options.limits) {
            Ok(metadata) => {
                layout = PayloadLayout::from_version(&metadata.aprender_version);
                model_name =
                    metadata.custom.get(MODEL_NAME_KEY).and_then(|name| Some(name.as_str()?.to_string()));
            }
            Err(error) if options.is_strict() => return Err(error.shifted(HEADER_LEN as u64)),
            // The known readers ignore metadata when they load.
            Err(_) => {}
        }
        let mut context =
            Context::new(PayloadLayout::default(), header.model_type, *options, header.payload_len.into());
        context.model_name = model_name;
        Ok(Self { layout, context })
    }

    /// Decodes the model in the layout that the metadata name, or in the newest one that fits exactly. `open` calls its argument
    /// with the payload from its beginning.
    pub(crate) fn decode<M: DecodePayload>(
        self,
        bound: Bound,
        open: impl FnMut(&mut dyn FnMut(&mut dyn Source) -> Result<M, Error>) -> Result<M, Error>,
    ) -> Result<M, Error> {
        self.read(bound, M::decode_payload, open)
    }

    /// As [`decode`](Self::decode), with `read` in place of the model's decoder.
    pub(crate) fn read<T>(
        mut self,
        bound: Bound,
        mut read: impl FnMut(&mut PayloadReader<'_>) -> Result<T, Error>,
        mut open: impl FnMut(&mut dyn FnMut(&mut dyn Source) -> Result<T, Error>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let tried = match &self.layout {
            Some(layout) => core::slice::from_ref(layout),
            None => &PayloadLayout::ALL,
        };
        let mut first_error = None;
        for &layout in tried.iter().rev() {
            self.context.layout = layout;
            let result = open(&mut |source| {
                let mut input = PayloadReader::new(source, bound.len(), &self.context);
                let value = read(&mut input)?;
                bound.check_end(input.finish()?)?;
                Ok(value)
            });
            match result {
                Ok(value) => return Ok(value),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| crate::ErrorKind::InvalidValue { what: "no layout to try" }.into()))
    }
}
