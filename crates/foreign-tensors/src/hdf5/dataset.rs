//! Datasets as tensors.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use located_error::Subject;
use read_at::ReadAt;
use tensor_dtype::Dtype;

use crate::error::{Error, ErrorKind};
use crate::hdf5::attribute::{Attribute, json};
use crate::hdf5::chunks::Chunked;
use crate::hdf5::datatype::{self, Datatype, Kind};
use crate::hdf5::file::File;
use crate::hdf5::filters;
use crate::hdf5::header::{Header, kind};
use crate::hdf5::layout::{self, Dataspace, Index, Layout};
use crate::model::Model;
use crate::options::Options;
use crate::tensor::{ElementType, Place, Tensor, reserved};
use crate::view::View;

/// Bytes of a tensor for each byte of the file, where it is compressed: zlib reaches 1032.
const EXPANSION: u64 = 1032;
/// Bytes of a tensor that a file of any length may have.
const FREE: u64 = 64 << 20;
/// What a chunk may be longer than its dataset.
const CHUNK: u64 = 32 << 20;
/// Texts that are kept.
const MAX_TEXT: u64 = 1 << 20;

/// Whether the object is a dataset.
pub(crate) fn is_dataset(header: &Header) -> bool {
    [kind::DATASPACE, kind::DATATYPE, kind::LAYOUT].into_iter().all(|kind| header.first(kind).is_some())
}

/// A dataset to be added to the model.
pub(crate) struct Dataset<'a> {
    pub(crate) name: &'a str,
    pub(crate) header: &'a Header,
    pub(crate) attributes: &'a [Attribute],
}

impl Dataset<'_> {
    /// Adds the dataset: as a tensor, as an entry, or as a note. Returns whether it is a tensor.
    pub(crate) fn add(
        &self,
        file: &File<'_>,
        source: &dyn ReadAt,
        model: &mut Model,
        options: &Options,
    ) -> Result<bool, Error> {
        let added = self.try_add(file, source, model, options);
        added.map_err(|error| error.of(Subject::tensor(self.name)))
    }

    fn try_add(
        &self,
        file: &File<'_>,
        source: &dyn ReadAt,
        model: &mut Model,
        options: &Options,
    ) -> Result<bool, Error> {
        let content = |kind| {
            let content = self.header.content(file, kind)?;
            content.ok_or_else(|| Error::malformed("a dataset lacks its type, shape or layout"))
        };
        let datatype = datatype::read(&content(kind::DATATYPE)?)?;
        let space = layout::dataspace(&content(kind::DATASPACE)?, &file.frame)?;
        if space.is_null {
            model.note(self.name, "a dataset without elements and shape is left out");
            return Ok(false);
        }
        match &datatype.kind {
            Kind::Reference => {
                model.note(self.name, "references to other objects are left out");
                return Ok(false);
            }
            Kind::Text | Kind::VarText => {
                let text = match self.place(file, &datatype, &space, options)? {
                    Ok(place) => self.text(file, source, &datatype, &space, &place)?,
                    Err(_) => None,
                };
                match text {
                    Some(text) => model.add_entry(self.name, text),
                    None => model.note(self.name, "text is left out"),
                }
                return Ok(false);
            }
            _ => {}
        }
        let tensor =
            match (self.element(file, &datatype, options)?, self.place(file, &datatype, &space, options)?) {
                (Ok((element, swap)), Ok(place)) => {
                    let view = View { swap, ..View::whole() };
                    Tensor::new(self.name, element, space.shape, place, view, &options.limits)?
                }
                (Err(what), _) | (_, Err(what)) => Tensor::unsupported(self.name, space.shape, what),
            };
        if let Kind::Enumeration { .. } = datatype.kind {
            model.note(self.name, "the names of the values of an enumeration are left out");
        }
        model.add(tensor, options)?;
        Ok(true)
    }

    /// Type of the elements and what is swapped, or what they are instead.
    fn element(
        &self,
        file: &File<'_>,
        datatype: &Datatype,
        options: &Options,
    ) -> Result<Result<(ElementType, usize), String>, Error> {
        Ok(match &datatype.kind {
            Kind::Number { element, swap } | Kind::Enumeration { element, swap } => Ok((*element, *swap)),
            Kind::Opaque => {
                // Keras stores types that h5py does not have as bytes, and their names beside them.
                let mut named = None;
                for attribute in self.attributes.iter().filter(|attribute| attribute.name == "dtype") {
                    named = attribute.text(file)?;
                }
                match (named.as_deref(), datatype.size) {
                    (Some("bfloat16"), 2) => Ok((ElementType::Known(Dtype::Bf16), 0)),
                    (Some("float8_e4m3fn"), 1) => Ok((ElementType::Known(Dtype::F8E4M3), 0)),
                    (Some("float8_e5m2"), 1) => Ok((ElementType::Known(Dtype::F8E5M2), 0)),
                    (None, 2) if options.void_is_bf16 => Ok((ElementType::Known(Dtype::Bf16), 0)),
                    (None, 2) => {
                        Err("two opaque bytes, which may be bfloat16 (--void-as-bf16 reads them as that),"
                            .into())
                    }
                    _ => Err(format!("elements of {} opaque bytes", datatype.size)),
                }
            }
            Kind::Other(what) => Err(what.clone()),
            Kind::Text | Kind::VarText | Kind::Reference => Err("text".into()),
        })
    }

    /// Where the bytes are and how many, or why they cannot be read.
    fn place(
        &self,
        file: &File<'_>,
        datatype: &Datatype,
        space: &Dataspace,
        options: &Options,
    ) -> Result<Result<(Place, u64), String>, Error> {
        if self.header.first(kind::EXTERNAL).is_some() {
            return Ok(Err("data in other files".into()));
        }
        let overflow = || Error::view("its size overflows");
        let count =
            space.shape.iter().try_fold(1_u64, |count, dim| count.checked_mul(*dim)).ok_or_else(overflow)?;
        let len = count.checked_mul(datatype.size).ok_or_else(overflow)?;
        let Some(message) = self.header.first(kind::LAYOUT) else {
            return Err(Error::malformed("a dataset lacks its layout"));
        };
        if message.shared {
            return Err(Error::malformed("the layout of a dataset is elsewhere"));
        }
        let (chunk, index, address, edges_unfiltered) = match layout::layout(message, &file.frame)? {
            Layout::Compact(address, stored) => {
                if stored < len {
                    return Err(Error::view("it reaches beyond its storage"));
                }
                return Ok(Ok((Place::Stored(0, file.frame.range(address, len)?), len)));
            }
            Layout::Contiguous(Some(address)) => {
                return Ok(Ok((Place::Stored(0, file.frame.range(address, len)?), len)));
            }
            Layout::Contiguous(None) => {
                (space.shape.iter().map(|dim| (*dim).max(1)).collect(), Index::Implicit, None, false)
            }
            Layout::Chunked { chunk, index, address, edges_unfiltered } => {
                (chunk, index, address, edges_unfiltered)
            }
            Layout::Virtual => return Ok(Err("data of a virtual dataset".into())),
        };
        let filters = match self.header.content(file, kind::FILTERS)? {
            None => Vec::new(),
            Some(data) => match filters::read(&data)? {
                Ok(filters) => filters,
                Err(what) => return Ok(Err(what)),
            },
        };
        let fill: Option<Box<[u8]>> = layout::fill_value(file, self.header)?;
        let chunked = Chunked {
            frame: file.frame,
            shape: space.shape.clone(),
            max: space.max.clone(),
            chunk,
            width: datatype.size,
            fill,
            filters,
            index,
            address,
            edges_unfiltered,
        };
        if chunked.chunk.len() != chunked.shape.len() {
            return Err(Error::malformed("chunks have other dimensions than their dataset"));
        }
        let chunk_len = chunked.chunk_len().ok_or_else(overflow)?;
        let padded = chunked.grid().iter().try_fold(chunk_len, |len, chunks| len.checked_mul(*chunks));
        let allowed = file
            .frame
            .file_len()
            .saturating_mul(EXPANSION)
            .saturating_add(FREE)
            .min(options.limits.tensor_bytes);
        let is_written = chunked.address.is_some();
        if len > allowed {
            return Err(ErrorKind::Limit { limit: "expansion", allowed }.into());
        }
        if is_written
            && (chunk_len > len.saturating_add(CHUNK)
                || padded.is_none_or(|padded| padded / 64 > len.saturating_add(FREE)))
        {
            return Err(ErrorKind::Limit { limit: "chunk", allowed: len.saturating_add(CHUNK) }.into());
        }
        Ok(Ok((Place::Encoded(Arc::new(chunked)), len)))
    }

    /// Texts as JSON.
    fn text(
        &self,
        file: &File<'_>,
        source: &dyn ReadAt,
        datatype: &Datatype,
        space: &Dataspace,
        (place, len): &(Place, u64),
    ) -> Result<Option<String>, Error> {
        if *len > MAX_TEXT {
            return Ok(None);
        }
        let bytes = match place {
            Place::Stored(_, range) => {
                let mut bytes = reserved(*len)?;
                bytes.resize(*len as usize, 0);
                source.read_exact_at(range.start, &mut bytes)?;
                bytes
            }
            Place::Encoded(encoded) => encoded.decode(source)?,
            Place::Memory(bytes) => bytes.to_vec(),
        };
        json(file, datatype, space, &bytes)
    }
}
