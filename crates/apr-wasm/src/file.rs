//! An open file of any format.

mod apr1;
mod apr2;
#[cfg(feature = "gguf")]
mod gguf;
mod plain;
#[cfg(feature = "crypto")]
mod sealed;

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;

use apr_container::{ModelInfo, UncheckedSignature};
use apr_models::AnyModel;
use read_at::{CachedPages, ErrorKind, ReadAt as _};

use crate::failure::Failure;
use crate::json::Json;
use crate::model::Loaded;
use crate::values;
use crate::wire::{Answer, Arguments, Outcome};

/// Bytes that a first look takes, if the file has so many.
const FIRST: u64 = 64 << 10;

/// How strictly to read files, of every kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    safetensors: st_core::ReadOptions,
    apr: apr_container::ReadOptions,
    #[cfg(feature = "gguf")]
    gguf: gguf_core::ReadOptions,
}

impl Rules {
    /// A byte of flags: 1 compat, 2 signed files may be used unverified, 4 small files may become large models.
    fn from_flags(flags: u8) -> Self {
        let is_compat = flags & 1 != 0;
        let mut rules = match is_compat {
            false => Self {
                safetensors: st_core::ReadOptions::STRICT,
                apr: apr_container::ReadOptions::STRICT,
                #[cfg(feature = "gguf")]
                gguf: gguf_core::ReadOptions::STRICT,
            },
            true => Self {
                safetensors: st_core::ReadOptions::COMPAT,
                apr: apr_container::ReadOptions::COMPAT,
                #[cfg(feature = "gguf")]
                gguf: gguf_core::ReadOptions::COMPAT,
            },
        };
        if flags & 2 != 0 {
            rules.apr.unchecked_signature = UncheckedSignature::Allow;
        }
        if flags & 4 != 0 {
            rules.apr.limits = apr_container::Limits::TRUSTED;
        }
        rules
    }
}

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    SafeTensors,
    Gguf,
    Apr1,
    Apr2,
    Sealed,
}

impl Format {
    fn of(first: &[u8]) -> Self {
        match first {
            [b'G', b'G', b'U', b'F', ..] => Self::Gguf,
            [b'A', b'P', b'R', b'N', ..] => Self::Apr1,
            [0x89, b'A', b'P', b'R', b'S', ..] => Self::Sealed,
            _ if apr_container::v2::Magic::of(first).is_some() => Self::Apr2,
            _ => Self::SafeTensors,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::SafeTensors => "safetensors",
            Self::Gguf => "gguf",
            Self::Apr1 | Self::Apr2 => "apr",
            Self::Sealed => "sealed",
        }
    }

    /// Version of the format, where versions are formats of their own.
    const fn version(self) -> Option<u64> {
        match self {
            Self::Apr1 => Some(1),
            Self::Apr2 => Some(2),
            Self::SafeTensors | Self::Gguf | Self::Sealed => None,
        }
    }
}

/// A file: its bytes as far as they are here, and what came of them.
#[derive(Debug)]
pub(crate) struct OpenFile {
    rules: Rules,
    /// Shared with the reader of a sealed file.
    pages: Rc<RefCell<CachedPages>>,
    format: Option<Format>,
    /// Of version 1.
    info: Option<ModelInfo>,
    decoded: Option<Decoded>,
    inflated: Option<Box<apr_container::v2::Inflated>>,
    #[cfg(feature = "crypto")]
    reader: Option<sealed::Reader>,
}

/// A model out of a payload, and its tensors; none of a model that was not trained.
#[derive(Debug)]
struct Decoded {
    model: Option<Rc<AnyModel>>,
    #[cfg(feature = "tensors-of-models")]
    tensors: Option<apr_models::Tensors>,
}

impl OpenFile {
    /// The length of the file, then the flags of [`Rules`].
    pub(crate) fn new(args: &mut Arguments<'_>) -> Result<Self, Failure> {
        let pages = Rc::new(RefCell::new(CachedPages::new(args.u64()?)));
        let rules = Rules::from_flags(args.u8()?);
        Ok(Self {
            rules,
            pages,
            format: None,
            info: None,
            decoded: None,
            inflated: None,
            #[cfg(feature = "crypto")]
            reader: None,
        })
    }

    pub(crate) fn provide(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.pages.borrow_mut().insert(offset, bytes)?)
    }

    /// Describes the file by what stands before its data.
    pub(crate) fn open(&mut self) -> Result<Answer, Outcome> {
        let (format, description) = {
            let pages = &self.pages.borrow();
            let first = prefix(pages, FIRST)?;
            let format = Format::of(first);
            let mut json = Json::object();
            json.text("format", format.name());
            if let Some(version) = format.version() {
                json.number("version", version);
            }
            match format {
                Format::SafeTensors => match foreign_format::sniff(first) {
                    Some(foreign) => return Err(Failure::foreign(foreign).into()),
                    None => plain::describe(pages, &self.rules, &mut json)?,
                },
                #[cfg(feature = "gguf")]
                Format::Gguf => gguf::describe(pages, &self.rules, &mut json)?,
                #[cfg(not(feature = "gguf"))]
                Format::Gguf => return Err(Failure::lacks("GGUF").into()),
                Format::Apr1 => self.info = Some(apr1::describe(pages, &self.rules, &mut json)?),
                Format::Apr2 => apr2::describe(pages, &self.rules, &mut json)?,
                #[cfg(feature = "crypto")]
                Format::Sealed => sealed::describe(&self.pages, &mut json)?,
                #[cfg(not(feature = "crypto"))]
                Format::Sealed => return Err(Failure::lacks("reading sealed files").into()),
            }
            (format, json.finish())
        };
        self.format = Some(format);
        Ok(Answer { json: description, bytes: Vec::new() })
    }

    /// Decodes the payload of a model, or what is compressed as a whole: [`keys::Keys`](crate::keys::Keys), if there are any.
    pub(crate) fn decode(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let mut json = Json::object();
        match self.format {
            Some(Format::Apr1) => {
                let decoded = apr1::decode(&self.pages.borrow(), &self.rules, args, &mut json)?;
                #[cfg(feature = "tensors-of-models")]
                if let Some(tensors) = &decoded.tensors {
                    json.raw("tensors", &member_list(tensors)?);
                }
                match (&decoded.model, &self.info) {
                    (Some(model), Some(info)) => {
                        let loaded = Loaded::new(Rc::clone(model)).named_by(&info.metadata);
                        json.raw("model", &loaded.describe());
                    }
                    _ => json.raw("model", "null"),
                }
                self.decoded = Some(decoded);
            }
            Some(Format::Apr2) => {
                let inflated = apr2::inflate(&self.pages.borrow(), &self.rules, &mut json)?;
                self.inflated = Some(inflated);
            }
            _ => return Err(not_for_this()),
        }
        self.forget();
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// Compares the checksum and verifies the signature of the whole file.
    pub(crate) fn verify(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let mut json = Json::object();
        match self.format {
            Some(Format::Apr1) => apr1::verify(&self.pages.borrow(), &self.rules, args, &mut json)?,
            Some(Format::Apr2) => apr2::verify(&self.pages.borrow(), &self.rules, &mut json)?,
            #[cfg(feature = "crypto")]
            Some(Format::Sealed) => sealed::verify(&self.pages, args, &mut json)?,
            _ => {
                let what = "a file of this format carries neither checksum nor signature: verify a signature beside it";
                return Err(Failure::new("aw-nothing-to-verify", what).into());
            }
        }
        self.forget();
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// The name of a tensor, the first byte, how many.
    pub(crate) fn member(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let (name, from, len) = (args.text()?, args.u64()?, args.u64()?);
        let part = |data: &[u8]| {
            let from = usize::try_from(from).ok()?;
            let len = usize::try_from(len).ok()?;
            data.get(from..)?.get(..len).map(<[u8]>::to_vec)
        };
        let bytes = match (&self.decoded, &self.inflated) {
            #[cfg(not(feature = "tensors-of-models"))]
            (Some(_), _) => return Err(Failure::lacks("reading tensors of models").into()),
            #[cfg(feature = "tensors-of-models")]
            (Some(Decoded { tensors: Some(tensors), .. }), _) => part(tensors.view(name)?.data()),
            (None, Some(inflated)) => part(inflated.container().data(name)?),
            _ => return Err(not_for_this()),
        };
        let bytes = bytes.ok_or_else(Failure::message)?;
        Ok(Answer { bytes, json: String::new() })
    }

    #[cfg(feature = "crypto")]
    pub(crate) fn unseal(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let mut json = Json::object();
        self.reader = Some(sealed::open(&self.pages, args, &mut json)?);
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// The first byte, how many.
    #[cfg(feature = "crypto")]
    pub(crate) fn content(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let (from, len) = (args.u64()?, args.u64()?);
        let reader = self.reader.as_ref().ok_or_else(not_for_this)?;
        let bytes = sealed::content(&self.pages, reader, from, len)?;
        self.pages.borrow_mut().clear_pages();
        Ok(Answer { bytes, json: String::new() })
    }

    #[cfg(not(feature = "crypto"))]
    pub(crate) fn unseal(&mut self, _: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        Err(Failure::lacks("reading sealed files").into())
    }

    #[cfg(not(feature = "crypto"))]
    pub(crate) fn content(&mut self, _: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        Err(Failure::lacks("reading sealed files").into())
    }

    /// The key of an array.
    #[cfg(feature = "gguf")]
    pub(crate) fn entry(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        gguf::entry(&self.pages.borrow(), &self.rules, args.text()?)
    }

    #[cfg(not(feature = "gguf"))]
    pub(crate) fn entry(&mut self, _: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        Err(Failure::lacks("GGUF").into())
    }

    /// The model that the file holds: [`keys::Keys`](crate::keys::Keys), if there are any.
    pub(crate) fn load_model(&mut self, args: &mut Arguments<'_>) -> Result<Loaded, Outcome> {
        let loaded = match self.format {
            Some(Format::SafeTensors) => plain::model(&self.pages.borrow(), &self.rules)?,
            Some(Format::Apr2) => apr2::model(&self.pages.borrow())?,
            #[cfg(feature = "gguf")]
            Some(Format::Gguf) => gguf::model(&self.pages.borrow(), &self.rules)?,
            Some(Format::Apr1) => {
                let decoded = apr1::decode(&self.pages.borrow(), &self.rules, args, &mut Json::object())?;
                let model = decoded.model.ok_or_else(foreign)?;
                let info = self.info.as_ref().ok_or_else(not_for_this)?;
                Loaded::new(model).named_by(&info.metadata)
            }
            _ => return Err(not_for_this()),
        };
        self.forget();
        Ok(loaded)
    }

    /// Gives back the memory of what was read for one operation.
    fn forget(&mut self) {
        self.pages.borrow_mut().truncate(FIRST);
    }
}

fn foreign() -> Failure {
    Failure::new("aw-foreign-payload", "the payload is of a type of its maker's own")
}

/// Most bytes of a file in a module's memory: half of what 32 bits address.
const MAX_IN_MEMORY: u64 = 1 << 31;

/// The first `len` bytes of a file.
///
/// # Errors
///
/// [`Outcome::Need`] with the part of them that has not arrived.
fn prefix(pages: &CachedPages, len: u64) -> Result<&[u8], Outcome> {
    pages.prefix(len).map_err(|error| match error.kind() {
        ErrorKind::Missing { offset, len } => Outcome::Need { offset, len },
        _ => error.into(),
    })
}

/// All bytes of a file.
///
/// # Errors
///
/// As [`prefix`]; `aw-memory` if they are more than a module can address.
fn whole(pages: &CachedPages) -> Result<&[u8], Outcome> {
    if pages.total_len() > MAX_IN_MEMORY {
        let what = "the file is larger than the memory of a module: this needs all of it at once";
        return Err(Failure::new("aw-memory", what).into());
    }
    prefix(pages, pages.total_len())
}

fn not_for_this() -> Outcome {
    Failure::new("aw-usage", "a file of this format, or in this state, cannot be asked this").into()
}

/// A tensor of a list.
pub(crate) struct Listed<'t> {
    pub(crate) name: &'t str,
    pub(crate) dtype: &'t str,
    /// Where it is in the file; `None` for one that is only in the module's memory.
    pub(crate) offset: Option<u64>,
    pub(crate) bytes: u64,
}

/// One more tensor of a list.
pub(crate) fn list_tensor(list: &mut Json, tensor: &Listed<'_>, shape: &[u64]) {
    let mut dims = Json::list();
    let mut elements = 1_u64;
    for &dim in shape {
        elements = elements.saturating_mul(dim);
        dims.number_item(dim);
    }
    let (unit_len, unit_bytes) = values::unit(tensor.dtype);
    let mut json = Json::object();
    json.text("name", tensor.name);
    json.text("dtype", tensor.dtype);
    json.raw("shape", &dims.finish());
    match tensor.offset {
        Some(offset) => json.number("offset", offset),
        None => json.raw("offset", "null"),
    }
    json.number("bytes", tensor.bytes);
    json.number("elements", elements);
    json.number("unitElements", unit_len);
    json.number("unitBytes", unit_bytes);
    list.item(&json.finish());
}

#[cfg(feature = "tensors-of-models")]
fn member_list(tensors: &apr_models::Tensors) -> Result<String, Failure> {
    let mut list = Json::list();
    for name in tensors.names() {
        let view = tensors.view(name)?;
        let (dtype, bytes) = (view.dtype().name(), view.data().len() as u64);
        let listed = Listed { name, dtype, offset: None, bytes };
        let shape: Vec<u64> = view.shape().iter().map(|&dim| dim as u64).collect();
        list_tensor(&mut list, &listed, &shape);
    }
    Ok(list.finish())
}

/// What the metadata say of a model in a file of tensors.
pub(crate) fn named_model(json: &mut Json, name: Option<&str>) {
    match name.filter(|name| AnyModel::NAMES.contains(name)) {
        Some(name) => {
            let mut model = Json::object();
            model.text("type", name);
            json.raw("model", &model.finish());
        }
        None => json.raw("model", "null"),
    }
}

/// Something that a reader should know.
pub(crate) fn warn(list: &mut Json, kind: &str, message: &dyn core::fmt::Display) {
    let mut json = Json::object();
    json.text("kind", kind);
    json.text("message", &message.to_string());
    list.item(&json.finish());
}
