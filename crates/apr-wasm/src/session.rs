//! The state of an instance of the module, and its operations.

use alloc::vec::Vec;

use crate::failure::Failure;
use crate::file::OpenFile;
use crate::json::Json;
#[cfg(feature = "apr")]
use crate::model::{Loaded, describe_model};
use crate::values;
use crate::wire::{self, Answer, Arguments, Outcome};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        /// The operations. Their numbers are those of `js/engine.js`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Operation {
            $($(#[$doc])* $name = $number,)*
        }

        impl Operation {
            const fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }
        }
    };
}

operations! {
    /// Version and features.
    About = 0;
    /// Adds a file of this length, to be read with these options; returns its number.
    NewFile = 1;
    /// Provides bytes of a file.
    Provide = 2;
    /// Describes a file by the bytes before its data.
    Open = 3;
    /// Decodes the payload of an `.apr` file of version 1, or decompresses one of version 2.
    Decode = 4;
    /// Verifies checksum and signature.
    Verify = 5;
    /// Bytes of a tensor that exists only in memory.
    Member = 6;
    /// Opens a sealed file.
    Unseal = 7;
    /// Bytes of the file inside a sealed one.
    Content = 8;
    /// A value of a GGUF file with all elements of an array.
    Entry = 9;
    /// Closes a file.
    CloseFile = 10;
    /// Values of any dtype as `f32`.
    Values = 11;
    /// Loads the model in a file; returns its number and description.
    LoadModel = 12;
    /// Predictions for rows or texts.
    Predict = 13;
    /// Frees a model.
    FreeModel = 14;
    /// Quantizes floats.
    Quantize = 15;
    /// A new key pair.
    GenerateKeys = 16;
    /// Verifies a detached signature.
    VerifyDetached = 17;
    /// Encrypts a request to the owner of a model.
    EncryptForModel = 18;
    /// Decrypts the response.
    DecryptResponse = 19;
    /// What loading a file would run.
    Scan = 20;
    /// Frees a request whose response is not decrypted.
    FreeRequest = 21;
}

/// Open files and loaded models by their numbers.
#[derive(Debug, Default)]
pub struct Session {
    files: Slots<OpenFile>,
    #[cfg(feature = "apr")]
    models: Slots<Loaded>,
    #[cfg(feature = "crypto")]
    pending: Slots<apr_crypto::inference::PendingRequest>,
}

impl Session {
    /// Without files and models.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            files: Slots(Vec::new()),
            #[cfg(feature = "apr")]
            models: Slots(Vec::new()),
            #[cfg(feature = "crypto")]
            pending: Slots(Vec::new()),
        }
    }

    /// Performs a request; both are encoded as [`wire`] says.
    pub fn answer(&mut self, operation: u32, question: &[u8]) -> Vec<u8> {
        wire::encode(self.run(operation, question))
    }

    fn run(&mut self, operation: u32, question: &[u8]) -> Result<Answer, Outcome> {
        let mut arguments = Arguments::new(question);
        let args = &mut arguments;
        match Operation::from_number(operation).ok_or_else(Failure::message)? {
            Operation::About => Ok(about()),
            Operation::NewFile => {
                let file = OpenFile::new(args)?;
                Ok(number(self.files.insert(file)))
            }
            Operation::CloseFile => self.files.remove(args.u32()?),
            Operation::Values if cfg!(feature = "apr") => Ok(values::answer(args)?),
            #[cfg(feature = "apr")]
            Operation::Predict => {
                let model = self.models.get(args.u32()?)?;
                Ok(model.predict(arguments)?)
            }
            #[cfg(feature = "apr")]
            Operation::FreeModel => self.models.remove(args.u32()?),
            #[cfg(not(feature = "apr"))]
            Operation::Predict | Operation::FreeModel => Err(Failure::lacks("models").into()),
            #[cfg(feature = "quantize")]
            Operation::Quantize => Ok(crate::blocks::quantize(args)?),
            #[cfg(not(feature = "quantize"))]
            Operation::Quantize => Err(Failure::lacks("quantization").into()),
            #[cfg(feature = "crypto")]
            Operation::GenerateKeys => Ok(crate::keys::generate(args)?),
            #[cfg(feature = "crypto")]
            Operation::VerifyDetached => Ok(crate::keys::verify_detached(args)?),
            #[cfg(feature = "crypto")]
            Operation::EncryptForModel => {
                let (request, pending) = crate::keys::encrypt_for_model(args)?;
                let number = number(self.pending.insert(pending));
                Ok(Answer { bytes: request, ..number })
            }
            #[cfg(feature = "crypto")]
            Operation::DecryptResponse => {
                let pending = args.u32()?;
                let bytes =
                    apr_crypto::inference::decrypt_response(self.pending.get(pending)?, arguments.rest())?;
                self.pending.remove(pending)?;
                Ok(Answer { bytes, ..Answer::default() })
            }
            #[cfg(feature = "crypto")]
            Operation::FreeRequest => self.pending.remove(args.u32()?),
            #[cfg(not(feature = "crypto"))]
            Operation::GenerateKeys
            | Operation::VerifyDetached
            | Operation::EncryptForModel
            | Operation::DecryptResponse
            | Operation::FreeRequest => Err(Failure::lacks("cryptography").into()),
            operation => self.run_on_file(operation, arguments),
        }
    }

    /// An operation on an open file, whose number comes first.
    fn run_on_file(&mut self, operation: Operation, mut args: Arguments<'_>) -> Result<Answer, Outcome> {
        let file = self.files.get(args.u32()?)?;
        let args = &mut args;
        match operation {
            Operation::Provide => file.provide(args),
            Operation::Open => file.open(),
            #[cfg(feature = "apr")]
            Operation::Decode => file.decode(args),
            #[cfg(feature = "apr")]
            Operation::Verify => file.verify(args),
            Operation::Member => file.member(args),
            Operation::Unseal => file.unseal(args),
            Operation::Content => file.content(args),
            Operation::Entry => file.entry(args),
            #[cfg(feature = "scan")]
            Operation::Scan => file.scan(args),
            #[cfg(feature = "apr")]
            Operation::LoadModel => {
                let loaded = Loaded(file.load_model(args)?);
                let mut json = Json::object();
                json.key("model");
                describe_model(&loaded.0, &mut json);
                json.number("number", u64::from(self.models.insert(loaded)));
                Ok(Answer { json: json.finish(), bytes: Vec::new() })
            }
            _ => Err(Failure::message().into()),
        }
    }
}

fn number(number: u32) -> Answer {
    let mut json = Json::object();
    json.number("number", u64::from(number));
    Answer { json: json.finish(), bytes: Vec::new() }
}

fn about() -> Answer {
    const FEATURES: &[&str] = &[
        #[cfg(feature = "gguf")]
        "gguf",
        #[cfg(feature = "quantize")]
        "quantize",
        #[cfg(feature = "compression")]
        "compression",
        #[cfg(feature = "crypto")]
        "crypto",
        #[cfg(feature = "pickles")]
        "pickles",
        #[cfg(feature = "graphs")]
        "graphs",
        #[cfg(feature = "hdf5")]
        "hdf5",
        #[cfg(feature = "scan")]
        "scan",
        #[cfg(target_feature = "simd128")]
        "simd",
    ];
    let mut json = Json::object();
    json.text("version", env!("CARGO_PKG_VERSION"));
    json.texts("features", FEATURES.iter().copied());
    #[cfg(feature = "quantize")]
    json.texts("quantTypes", crate::blocks::names());
    Answer { json: json.finish(), bytes: Vec::new() }
}

/// Objects by the numbers that JavaScript has for them.
#[derive(Debug)]
struct Slots<T>(Vec<Option<T>>);

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Slots<T> {
    fn insert(&mut self, thing: T) -> u32 {
        let free = self.0.iter().position(Option::is_none);
        let place = free.unwrap_or_else(|| {
            self.0.push(None);
            self.0.len() - 1
        });
        if let Some(slot) = self.0.get_mut(place) {
            *slot = Some(thing);
        }
        place as u32
    }

    fn get(&mut self, number: u32) -> Result<&mut T, Failure> {
        let slot = self.0.get_mut(number as usize).and_then(Option::as_mut);
        slot.ok_or_else(|| Failure::new("aw-closed", "this was closed or freed"))
    }

    fn remove(&mut self, number: u32) -> Result<Answer, Outcome> {
        self.get(number)?;
        if let Some(slot) = self.0.get_mut(number as usize) {
            *slot = None;
        }
        Ok(Answer::default())
    }
}
