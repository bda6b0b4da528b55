//! An open file of any format: [`ModelFile`] over the bytes that have arrived.

mod description;
mod pages;
#[cfg(feature = "scan")]
mod scan;

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

#[cfg(feature = "apr")]
use apr_container::UncheckedSignature;
#[cfg(any(feature = "gguf", feature = "crypto"))]
use model_file::Contents;
#[cfg(feature = "apr")]
use model_file::NamedModel;
use model_file::{ErrorKind, FileKind, ModelFormat, OpenOptions, ReadOptions};
use read_at::ReadAt;

use self::pages::Pages;
use crate::failure::Failure;
#[cfg(feature = "apr")]
use crate::json::Json;
#[cfg(feature = "crypto")]
use crate::keys::{Keys, found_json, signer_of};
use crate::values::too_many;
use crate::wire::{Answer, Arguments, Outcome};

/// Bytes kept of the beginning of a file, and the fewest that are requested at once.
const FIRST: u64 = 64 << 10;
/// Most bytes of a file in a module's memory: half of what 32 bits address.
#[cfg(feature = "apr")]
const MAX_IN_MEMORY: u64 = 1 << 31;

type ModelFile = model_file::ModelFile<Rc<Pages>>;

/// A file: its bytes as far as they have arrived, and what was read of them.
#[derive(Debug)]
pub(crate) struct OpenFile {
    options: ReadOptions,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Its header was not read, or it is compressed as a whole.
    Unread(Rc<Pages>),
    Read(Box<ModelFile>),
}

impl OpenFile {
    /// The length of the file, then a byte of flags: 1 compat, 2 signed files may be used unverified, 4 small files may become large models.
    pub(crate) fn new(args: &mut Arguments<'_>) -> Result<Self, Failure> {
        let state = State::Unread(Rc::new(Pages::new(args.u64()?)));
        let flags = args.u8()?;
        let mut options = if flags & 1 == 0 { ReadOptions::STRICT } else { ReadOptions::COMPAT };
        if flags & 2 != 0 {
            options = options.with_unchecked_signatures();
        }
        if flags & 4 != 0 {
            options = options.with_unlimited_expansion();
        }
        Ok(Self { options, state })
    }

    /// Bytes that have arrived: their offset, and the bytes.
    pub(crate) fn provide(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let offset = args.u64()?;
        self.pages_mut()?.insert(offset, args.clone().rest())?;
        Ok(Answer::default())
    }

    /// Describes the file by what precedes its data.
    pub(crate) fn open(&mut self) -> Result<Answer, Outcome> {
        let options = OpenOptions::new().with_read_options(self.options).without_inflation();
        let json = match self.read(&options) {
            Ok(file) => {
                let json = description::describe(&file)?;
                self.state = State::Read(Box::new(file));
                #[cfg(feature = "foreign")]
                self.forget();
                json.finish()
            }
            Err(Outcome::Refused(failure)) if failure.code() == "ac-v2-compressed" => {
                String::from(description::OF_COMPRESSED)
            }
            Err(error) => return Err(error),
        };
        Ok(Answer { json, bytes: Vec::new() })
    }

    /// Decodes the payload of an `.apr` file of version 1, or decompresses one of version 2: whether the caller only looks (a byte), then the
    /// [`Keys`].
    #[cfg(feature = "apr")]
    pub(crate) fn decode(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let looks = args.u8()? != 0;
        let keys = Keys::read(args)?;
        if !self.file().is_ok_and(model_file::ModelFile::is_sealed) {
            let file = self.read_whole(looks, &keys)?;
            self.state = State::Read(Box::new(file));
        }
        let file = self.file()?;
        match file.decode() {
            Err(error) if !matches!(error.kind(), ErrorKind::ForeignPayload { .. }) => {
                return Err(self.outcome(error));
            }
            _ => {}
        }
        let mut json = description::describe(file)?;
        json.truth("lacksTensors", cfg!(not(feature = "every-model")) && file.format() == ModelFormat::AprV1);
        #[cfg(feature = "crypto")]
        json.raw("signer", signer_of(file).as_deref().unwrap_or("null"));
        self.forget();
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// Compares the checksum and verifies the signature of the whole file.
    #[cfg(feature = "apr")]
    pub(crate) fn verify(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        self.need_whole()?;
        #[cfg(feature = "crypto")]
        if self.file().is_ok_and(|file| file.format() == ModelFormat::AprV1 && !file.is_sealed()) {
            return self.verify_v1(&Keys::read(args)?);
        }
        let mut json = Json::object();
        json.raw("signer", self.verified(args)?.as_deref().unwrap_or("null"));
        self.forget();
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// Verifies an `.apr` file of version 1 and describes it anew by the bytes that were verified: those that came when it was opened may
    /// be others. Those of a file that is not encrypted stay for [`decode`](Self::decode), which verifies whatever it decodes.
    #[cfg(feature = "crypto")]
    fn verify_v1(&mut self, keys: &Keys) -> Result<Answer, Outcome> {
        let file = self.read(&OpenOptions::new().with_read_options(self.options).without_inflation())?;
        let signer = file.verify_signature(keys.trust()).map_err(|error| self.outcome(error))?;
        let mut json = description::describe(&file)?;
        json.raw("signer", signer.map(found_json).as_deref().unwrap_or("null"));
        let is_encrypted = matches!(file.contents(), Contents::AprV1(file) if file.info().encrypted);
        self.state = State::Read(Box::new(file));
        if is_encrypted {
            self.forget();
        }
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// The signer as JSON, if the keys demand one.
    #[cfg(feature = "apr")]
    fn verified(&self, args: &mut Arguments<'_>) -> Result<Option<String>, Outcome> {
        let inflated;
        let file = match &self.state {
            State::Read(file) => file,
            State::Unread(_) => {
                inflated = self.read(&OpenOptions::new().with_read_options(self.options))?;
                &inflated
            }
        };
        #[cfg(feature = "crypto")]
        if file.is_sealed() {
            let keys = Keys::read(args)?;
            let signer = file.verify_signature(keys.trust()).map_err(|error| self.outcome(error))?;
            return Ok(signer.map(found_json));
        }
        #[cfg(not(feature = "crypto"))]
        let _ = args;
        match file.format() {
            ModelFormat::AprV1 | ModelFormat::AprV2 => {
                file.verify().map_err(|error| self.outcome(error))?;
                Ok(None)
            }
            _ => {
                let what = "a file of this format has neither checksum nor signature: verify a signature in a file of its own";
                Err(Failure::new("aw-nothing-to-verify", what).into())
            }
        }
    }

    /// Bytes of a tensor: its name, the offset of the first byte, how many.
    pub(crate) fn member(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let (name, from, len) = (args.text()?, args.u64()?, args.u64()?);
        if cfg!(not(any(feature = "every-model", feature = "compression", feature = "foreign"))) {
            return Err(Failure::lacks("reading tensors of models").into());
        }
        let tensor = self.file()?.tensor(name).map_err(|error| self.outcome(error))?;
        if from.checked_add(len).is_none_or(|end| end > tensor.byte_len()) {
            return Err(Failure::message().into());
        }
        let mut bytes = zeros(len)?;
        let read = tensor.read(from, &mut bytes);
        #[cfg(any(feature = "foreign", feature = "scan"))]
        self.need_missing()?;
        read.map_err(|error| self.outcome(error))?;
        #[cfg(feature = "foreign")]
        self.forget();
        Ok(Answer { bytes, json: String::new() })
    }

    /// Opens a sealed file: the [`Keys`].
    #[cfg(feature = "crypto")]
    pub(crate) fn unseal(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let keys = Keys::read(args)?;
        let options = OpenOptions::new().with_read_options(self.options).with_access(keys.access());
        let file = self.read(&options)?;
        let reader = file.sealed().ok_or_else(not_for_this)?;
        let signer = reader.signer().map(found_json);
        let mut json = description::describe(&file)?;
        json.key("privateMetadata");
        json.open("{");
        for (key, value) in reader.private_metadata() {
            json.foreign_key(key);
            json.string(value);
        }
        json.close("}");
        json.raw("signer", signer.as_deref().unwrap_or("null"));
        self.state = State::Read(Box::new(file));
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    /// Bytes of the file inside a sealed one: the offset of the first, how many.
    #[cfg(feature = "crypto")]
    pub(crate) fn content(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let (from, len) = (args.u64()?, args.u64()?);
        let file = self.file()?;
        if from.checked_add(len).is_none_or(|end| end > file.content().total_len()) {
            return Err(Failure::new("aw-range", "bytes beyond the end of the file").into());
        }
        let mut bytes = zeros(len)?;
        file.content().read_exact_at(from, &mut bytes).map_err(|error| self.outcome(error.into()))?;
        self.pages_mut()?.clear_pages();
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

    /// A value of the metadata of a GGUF file, with all elements of an array: its key.
    #[cfg(feature = "gguf")]
    pub(crate) fn entry(&mut self, args: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        let Contents::Gguf(file) = self.file()?.contents() else { return Err(not_for_this().into()) };
        let header = file.header()?;
        let value = header.get(args.text()?);
        let value = value.ok_or_else(|| Failure::new("aw-no-entry", "the file has no such key"))?;
        let mut json = Json::object();
        json.key("value");
        description::write_gguf_value(value, &mut json);
        Ok(Answer { json: json.finish(), bytes: Vec::new() })
    }

    #[cfg(not(feature = "gguf"))]
    pub(crate) fn entry(&mut self, _: &mut Arguments<'_>) -> Result<Answer, Outcome> {
        Err(Failure::lacks("GGUF").into())
    }

    /// The model in the file: the [`Keys`].
    #[cfg(feature = "apr")]
    pub(crate) fn load_model(&mut self, args: &mut Arguments<'_>) -> Result<NamedModel, Outcome> {
        self.need_whole()?;
        let read;
        let file = match &self.state {
            State::Read(file) if file.format() != ModelFormat::AprV1 || file.is_sealed() => file,
            _ => {
                read = self.read_whole(false, &Keys::read(args)?)?;
                &read
            }
        };
        if cfg!(not(feature = "every-model")) && file.format() != ModelFormat::AprV1 {
            return Err(Failure::lacks("models in files of tensors").into());
        }
        let model = file.model().map_err(|error| self.outcome(error))?;
        self.forget();
        Ok(model)
    }

    /// Reads the file anew, all of which has to be there.
    #[cfg(feature = "apr")]
    fn read_whole(&self, looks: bool, keys: &Keys) -> Result<ModelFile, Outcome> {
        self.need_whole()?;
        let mut read = self.options;
        // A caller that looks is told that the signature was not verified; one that uses the model has to allow it.
        if looks {
            read.apr.unchecked_signature = UncheckedSignature::Allow;
        }
        let options = OpenOptions::new().with_read_options(read);
        #[cfg(feature = "crypto")]
        if !keys.are_empty() {
            return self.read(&options.with_access(keys.access()));
        }
        #[cfg(not(feature = "crypto"))]
        let Keys = keys;
        self.read(&options)
    }

    fn read(&self, options: &OpenOptions<'_>) -> Result<ModelFile, Outcome> {
        let read = ModelFile::read(Rc::clone(self.pages()?), options);
        #[cfg(any(feature = "foreign", feature = "scan"))]
        self.need_missing()?;
        read.map_err(|error| self.outcome(error))
    }

    /// Requests what a reader missed, whatever it made of that.
    #[cfg(any(feature = "foreign", feature = "scan"))]
    fn need_missing(&self) -> Result<(), Outcome> {
        let pages = self.pages()?;
        match pages.take_missing() {
            Some(range) => {
                let Outcome::Need { offset, len } = needed(pages, &range) else { return Ok(()) };
                let len = pages.request(offset, len).min(pages.total_len().saturating_sub(offset));
                Err(Outcome::Need { offset, len })
            }
            None => Ok(()),
        }
    }

    /// What a failed reader needs, or why it failed.
    fn outcome(&self, error: model_file::Error) -> Outcome {
        let Ok(pages) = self.pages() else { return Failure::message().into() };
        if let Some(range) = read_at::missing_range(&error) {
            return needed(pages, &range);
        }
        match error.kind() {
            ErrorKind::ForeignFormat { found: FileKind::Model(ModelFormat::Gguf) } => {
                Failure::lacks("GGUF").into()
            }
            #[cfg(not(feature = "crypto"))]
            _ if pages.available_prefix().starts_with(&apr_sealed::MAGIC) => {
                Failure::lacks("reading sealed files").into()
            }
            _ => error.into(),
        }
    }

    fn file(&self) -> Result<&ModelFile, Failure> {
        match &self.state {
            State::Read(file) => Ok(file),
            State::Unread(_) => Err(not_for_this()),
        }
    }

    fn pages(&self) -> Result<&Rc<Pages>, Failure> {
        match &self.state {
            State::Unread(pages) => Ok(pages),
            State::Read(file) => file.source().ok_or_else(Failure::message),
        }
    }

    /// Between two operations there is one reference to them.
    fn pages_mut(&mut self) -> Result<&mut Pages, Failure> {
        let pages = match &mut self.state {
            State::Unread(pages) => Some(pages),
            State::Read(file) => file.source_mut(),
        };
        pages.and_then(Rc::get_mut).ok_or_else(Failure::message)
    }

    /// Requests what is missing of the file.
    #[cfg(feature = "apr")]
    fn need_whole(&self) -> Result<(), Outcome> {
        let pages = self.pages()?;
        if pages.total_len() > MAX_IN_MEMORY {
            let what = "the file is larger than the memory of a module: this needs all of it at once";
            return Err(Failure::new("aw-memory", what).into());
        }
        match pages.available_prefix().len() as u64 {
            here if here < pages.total_len() => {
                Err(Outcome::Need { offset: here, len: pages.total_len() - here })
            }
            _ => Ok(()),
        }
    }

    /// Gives back the memory of what was read for one operation.
    #[cfg(any(feature = "apr", feature = "foreign", feature = "scan"))]
    fn forget(&mut self) {
        if let Ok(pages) = self.pages_mut() {
            pages.truncate(FIRST);
        }
    }
}

/// The request for a range that is missing.
fn needed(pages: &Pages, range: &Range<u64>) -> Outcome {
    let here = pages.available_prefix().len() as u64;
    // What continues the prefix is requested without the part that is there.
    let offset = if range.contains(&here) { here } else { range.start };
    let end = range.end.max(offset.saturating_add(FIRST)).min(pages.total_len());
    Outcome::Need { offset, len: end.saturating_sub(offset) }
}

/// A build without cryptography has none.
#[cfg(all(feature = "apr", not(feature = "crypto")))]
struct Keys;

#[cfg(all(feature = "apr", not(feature = "crypto")))]
impl Keys {
    #[expect(clippy::unnecessary_wraps, reason = "as with cryptography")]
    const fn read(_: &mut Arguments<'_>) -> Result<Self, Failure> {
        Ok(Self)
    }
}

/// Space for the bytes that are read next.
fn zeros(len: u64) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let len = usize::try_from(len).map_err(|_| too_many())?;
    bytes.try_reserve_exact(len).map_err(|_| too_many())?;
    bytes.resize(len, 0);
    Ok(bytes)
}

fn not_for_this() -> Failure {
    Failure::new("aw-usage", "a file of this format, or in this state, has no such operation")
}
