//! Our reader and writer in the terms of the sidecars.

use st_core::{Error, ErrorKind, ReadOptions, SafeTensors, TensorView, WriteOptions};

use crate::content::{Content, Tensor};

/// Reads a whole file.
///
/// # Errors
///
/// Those of [`SafeTensors::from_bytes_with`].
pub fn read<'data>(file: &'data [u8], options: &ReadOptions) -> Result<Content<'data>, Error> {
    let parsed = SafeTensors::from_bytes_with(file, options)?;
    let mut content = Content::default();
    for info in parsed.header() {
        // An error here would be a bug of ours: report it as the refusal it looks like.
        let data = parsed.data(info.name()).ok_or(ErrorKind::TensorNotFound)?;
        let begin = info.data_offsets().0;
        let tensor = Tensor { dtype: info.dtype(), shape: info.shape().to_vec(), begin, data };
        content.tensors.insert(info.name().to_owned(), tensor);
    }
    let pair = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    content.metadata = parsed.header().metadata().map(|map| map.iter().map(pair).collect());
    Ok(content)
}

/// Writes a whole file; the metadata of the options is replaced by the content's.
///
/// # Errors
///
/// Those of [`st_core::to_vec`].
pub fn write(content: &Content<'_>, options: &WriteOptions) -> Result<Vec<u8>, Error> {
    let views = content.tensors.iter().map(|(name, tensor)| {
        Ok((name.as_str(), TensorView::new(tensor.dtype, &tensor.shape, tensor.data)?))
    });
    let views = views.collect::<Result<Vec<_>, Error>>()?;
    let options = WriteOptions { metadata: content.metadata.clone(), ..options.clone() };
    st_core::to_vec(&views, &options)
}

/// The variant of the official crate's error type that means the same; [`None`] for what only the strict
/// reader or a limit refuses.
///
/// # Examples
///
/// ```
/// use conformance::ours;
/// use st_core::SafeTensors;
///
/// let error = SafeTensors::from_bytes(b"short").err().map(|error| *error.kind());
/// assert_eq!(error.and_then(ours::official_variant), Some("HeaderTooSmall"));
/// ```
#[must_use]
pub fn official_variant(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::HeaderTooSmall { .. } => "HeaderTooSmall",
        ErrorKind::HeaderTooLarge { .. } => "HeaderTooLarge",
        ErrorKind::InvalidHeaderLength { .. } => "InvalidHeaderLength",
        ErrorKind::InvalidUtf8 => "InvalidHeader",
        ErrorKind::UnexpectedEnd { .. }
        | ErrorKind::UnexpectedByte { .. }
        | ErrorKind::ControlCharacter { .. }
        | ErrorKind::InvalidEscape
        | ErrorKind::LoneSurrogate
        | ErrorKind::InvalidNumber
        | ErrorKind::NumberOutOfRange
        | ErrorKind::NestingTooDeep { .. }
        | ErrorKind::TrailingBytes { .. }
        | ErrorKind::WrongType { .. }
        | ErrorKind::MissingField { .. }
        | ErrorKind::DuplicateField { .. }
        | ErrorKind::UnknownDtype
        | ErrorKind::DuplicateMetadata => "InvalidHeaderDeserialization",
        ErrorKind::InvalidOffsets { .. } => "InvalidOffset",
        ErrorKind::SizeOverflow => "ValidationOverflow",
        ErrorKind::PartialByte { .. } => "MisalignedSlice",
        ErrorKind::SizeMismatch { .. } => "TensorInvalidInfo",
        ErrorKind::IncompleteFile { .. } => "MetadataIncompleteBuffer",
        _ => return None,
    })
}
