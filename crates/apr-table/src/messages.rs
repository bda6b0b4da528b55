//! Messages of an Arrow IPC stream, each measured before the library sees it.

use alloc::collections::BTreeMap;
use std::io::Read;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{Message, root_as_message_with_opts};
use arrow_schema::{ArrowError, DataType, Schema};
use flatbuffers::VerifierOptions;

use crate::error::{Error, ErrorKind, within};
use crate::unpanicked::unpanicked;

/// What an Arrow IPC file begins with; after zeros up to the writer's alignment, a stream follows.
const FILE_MAGIC: [u8; 8] = *b"ARROW1\0\0";
/// Largest alignment of writers.
const MAX_ALIGNMENT: u64 = 64;
/// What a message begins with, but for those of old writers.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Longest description of a message.
const MAX_HEADER: u64 = 64 << 20;
/// Longest description without its length before it, and continuations that may stand in one.
const MAX_UNPREFIXED: u64 = 4 << 20;
const MAX_ENDS: usize = 64;
/// What the place of the table in a description is at most, and less than the length of one with a schema.
const MAX_ROOT: u32 = 32;
/// Longest body of a message, also when decompressed.
const MAX_BODY: u64 = 2 << 30;
/// Decompressed bytes that any message may have.
const MIN_DECOMPRESSED: u64 = 32 << 20;
/// Decompressed bytes that a message may have for each byte of its body.
const MAX_RATIO: u64 = 1024;
/// Bytes that any description may have with those that are used more than once.
const MIN_APPARENT: usize = 64 << 10;
/// The same for each byte of it. Writers use vtables more than once, and nothing else: twice the bytes at most.
const MAX_APPARENT: usize = 4;
/// Columns, also nested ones, and keys of metadata that any schema may have.
const MIN_PARTS: usize = 1024;
/// Bytes of a schema for each more: writers take 48 for a column, which becomes some hundred bytes in memory.
const MIN_PART: usize = 24;
/// Bytes of a dictionary beside its values, about.
const DICTIONARY: u64 = 256;
/// Length of a buffer's length before compressed bytes.
const PREFIX: usize = 8;

/// What ends a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// Record batches of a stream.
pub(crate) struct Messages<R> {
    input: R,
    decoder: StreamDecoder,
    schema: Option<Schema>,
    /// What the decoder has not taken yet: a message without a body waits in it for the bytes behind.
    pending: Buffer,
    /// The beginning of the next message, if it has been read.
    begun: Option<Vec<u8>>,
    /// Whether the first message had no length.
    is_unprefixed: bool,
    offset: u64,
    /// Where the last message begins.
    message_at: u64,
    /// Whether this is a file, which ends with a mark and a footer.
    is_file: bool,
    /// Decompressed bytes of the dictionaries, by their number: the decoder holds them all.
    dictionaries: BTreeMap<i64, u64>,
    /// Their sum: a table may have many.
    held: u64,
    /// Decompressed bytes that may follow.
    left: u64,
    is_at_end: bool,
}

impl<R: Read> Messages<R> {
    /// Reads the schema.
    pub(crate) fn open(input: R) -> Result<Self, Error> {
        Self::open_within(input, u64::MAX)
    }

    /// The same, of a stream whose batches and dictionaries have at most so many bytes in all when decompressed.
    pub(crate) fn open_within(input: R, max_content: u64) -> Result<Self, Error> {
        let mut messages = Self {
            input,
            decoder: StreamDecoder::new(),
            schema: None,
            pending: Buffer::default(),
            begun: None,
            is_unprefixed: false,
            offset: 0,
            message_at: 0,
            is_file: false,
            dictionaries: BTreeMap::new(),
            held: 0,
            left: max_content,
            is_at_end: false,
        };
        let mut begin = messages.take(4)?;
        if begin == FILE_MAGIC[..4] {
            begin.extend(messages.take(4)?);
            if begin != FILE_MAGIC {
                return Err(Error::from(ErrorKind::Arrow {}).at(0));
            }
            messages.is_file = true;
            begin = messages.take(4)?;
            while begin == [0; 4] && messages.offset <= MAX_ALIGNMENT {
                begin = messages.take(4)?;
            }
        }
        let root = begin.last_chunk::<4>().map_or(0, |root| u32::from_le_bytes(*root));
        messages.pending = match messages.is_file && (4..=MAX_ROOT).contains(&root) {
            true => messages.unprefixed(begin)?,
            false => messages.message(begin)?.ok_or(ErrorKind::Arrow {})?,
        };
        match messages.schema {
            Some(_) => Ok(messages),
            None => Err(Error::from(ErrorKind::Arrow {}).at(0)),
        }
    }

    pub(crate) fn schema(&self) -> Schema {
        self.schema.clone().unwrap_or_else(Schema::empty)
    }

    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>, Error> {
        loop {
            let batch = unpanicked(|| self.decoder.decode(&mut self.pending));
            let batch = batch.unwrap_or_else(impossible).map_err(|error| self.invalid(error))?;
            if let Some(batch) = batch {
                return Ok(Some(batch));
            }
            if self.is_at_end {
                return Ok(None);
            }
            let begin = match self.begun.take() {
                Some(begin) => begin,
                None => self.take(4)?,
            };
            self.pending = match self.message(begin)? {
                Some(message) => message,
                None => {
                    self.is_at_end = true;
                    END.as_slice().into()
                }
            };
        }
    }

    /// The error of a source: one of ours if it decodes what it reads.
    fn unread(&self, error: std::io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::caused(ErrorKind::Read {}, error).at(self.offset),
        }
    }

    fn invalid(&self, error: ArrowError) -> Error {
        Error::caused(ErrorKind::Arrow {}, error).at(self.message_at)
    }

    /// Refuses a size above a limit, at the last message.
    fn within(&self, what: &'static str, found: u64, allowed: u64) -> Result<(), Error> {
        within(what, found, allowed).map_err(|error| error.at(self.message_at))
    }

    /// The schema whose description begins with these bytes. Polars 2 writes the first message of a file without its length: it ends where the
    /// next one begins.
    fn unprefixed(&mut self, mut header: Vec<u8>) -> Result<Buffer, Error> {
        self.message_at = self.offset - header.len() as u64;
        let mut n_ends = 0;
        loop {
            let mut word = Vec::new();
            self.append(4, &mut word)?;
            if word == CONTINUATION {
                match root_as_message_with_opts(&verifier(header.len()), &header) {
                    Ok(_) => {
                        (self.begun, self.is_unprefixed) = (Some(word), true);
                        // At most the limit below.
                        let prefix = [CONTINUATION, (header.len() as u32).to_le_bytes()].concat();
                        return self.described(prefix, &header);
                    }
                    Err(error) if n_ends == MAX_ENDS => {
                        return Err(self.invalid(ArrowError::ParseError(error.to_string())));
                    }
                    Err(_) => n_ends += 1,
                }
            }
            header.extend(word);
            self.within("the schema", header.len() as u64, MAX_UNPREFIXED)?;
        }
    }

    /// A whole message whose first bytes are these; nothing at the end of the stream.
    fn message(&mut self, begin: Vec<u8>) -> Result<Option<Buffer>, Error> {
        if begin.is_empty() {
            let expected = END.len() as u64;
            return match self.is_file {
                true => Err(Error::from(ErrorKind::Truncated { expected, found: 0 }).at(self.offset)),
                false => Ok(None),
            };
        }
        let mut bytes = begin;
        self.message_at = self.offset - bytes.len() as u64;
        if bytes == CONTINUATION {
            self.append(4, &mut bytes)?;
        }
        let len = bytes.last_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len));
        if len == 0 {
            return Ok(None);
        }
        self.within("the description of a message", len.into(), MAX_HEADER)?;
        let mut header = Vec::new();
        self.append(len.into(), &mut header)?;
        self.described(bytes, &header).map(Some)
    }

    /// The message with this description, behind what precedes it.
    fn described(&mut self, mut bytes: Vec<u8>, header: &[u8]) -> Result<Buffer, Error> {
        let message = root_as_message_with_opts(&verifier(header.len()), header)
            .map_err(|error| self.invalid(ArrowError::ParseError(error.to_string())))?;
        if let Some(schema) = message.header_as_schema() {
            if self.schema.is_some() {
                return Err(self.invalid(ArrowError::ParseError("a second schema".to_owned())));
            }
            if n_parts(schema) > MIN_PARTS + header.len() / MIN_PART {
                let what = "the schema has more columns than its bytes can describe".to_owned();
                return Err(self.invalid(ArrowError::ParseError(what)));
            }
            let schema = unpanicked(|| try_fb_to_schema(schema)).unwrap_or_else(impossible);
            self.schema = Some(schema.map_err(|error| self.invalid(error))?);
        }
        // A negative one is beyond the limit.
        let body_len = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        self.within("the body of a message", body_len, MAX_BODY)?;
        bytes.extend_from_slice(header);
        let body_at = bytes.len();
        self.append(body_len, &mut bytes)?;
        let body = bytes.get(body_at..).unwrap_or_default();
        if self.is_unprefixed && message.header_as_record_batch().is_some() && self.lacks_dictionaries() {
            return Err(Error::from(ErrorKind::LateDictionaries {}).at(self.message_at));
        }
        let mut len = check_buffers(&message, body).map_err(|error| error.at(self.message_at))?;
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            let known = self.dictionaries.entry(dictionary.id()).or_default();
            // What is appended is put behind a copy of the values so far, which batches that were decoded before may still hold.
            if dictionary.isDelta() {
                len = len.saturating_add(*known);
            }
            self.held = (self.held - *known).saturating_add(len);
            *known = len;
            self.within("the dictionaries", self.held, MAX_BODY)?;
            len = len.saturating_add(DICTIONARY);
        }
        self.within("the content of the table", len, self.left)?;
        self.left -= len;
        Ok(Buffer::from_vec(bytes))
    }

    /// Whether there are columns with dictionaries, and none of these yet.
    fn lacks_dictionaries(&self) -> bool {
        let columns = self.schema.iter().flat_map(Schema::fields);
        let mut types = columns.map(|column| column.data_type());
        self.dictionaries.is_empty() && types.any(|of| matches!(of, DataType::Dictionary(..)))
    }

    /// The source, after the last batch.
    #[cfg(feature = "ald")]
    pub(crate) fn into_input(self) -> R {
        self.input
    }

    /// So many bytes, or none at the end of the source.
    fn take(&mut self, len: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        match self.append(len, &mut bytes) {
            Err(error) if bytes.is_empty() && matches!(error.kind(), ErrorKind::Truncated { .. }) => {
                Ok(bytes)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(bytes),
        }
    }

    /// Appends so many bytes. Memory grows with the bytes that arrive.
    fn append(&mut self, len: u64, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let found = self.input.by_ref().take(len).read_to_end(bytes);
        let found = found.map_err(|error| self.unread(error))? as u64;
        if found < len {
            return Err(Error::from(ErrorKind::Truncated { expected: len, found }).at(self.offset));
        }
        self.offset += len;
        Ok(())
    }
}

/// Bounds of a description of so many bytes. Tables and strings in it may be used more than once, each of which becomes a copy.
fn verifier(len: usize) -> VerifierOptions {
    VerifierOptions { max_apparent_size: MIN_APPARENT + len * MAX_APPARENT, ..VerifierOptions::default() }
}

/// Columns of a schema with those that they contain, and keys of metadata. One description may be used for many of them.
fn n_parts(schema: arrow_ipc::Schema<'_>) -> usize {
    fn of_field(field: arrow_ipc::Field<'_>) -> usize {
        let children = field.children().into_iter().flatten().map(of_field).sum::<usize>();
        1 + children + field.custom_metadata().map_or(0, |keys| keys.len())
    }
    let fields = schema.fields().into_iter().flatten().map(of_field).sum::<usize>();
    fields + schema.custom_metadata().map_or(0, |keys| keys.len())
}

/// What the decoder says about a stream that it panics about.
fn impossible<T>() -> Result<T, ArrowError> {
    Err(ArrowError::IpcError("a length is impossible".to_owned()))
}

/// The bytes of the buffers of a batch when decompressed. The library trusts that they lie in the body, copies those that are not aligned,
/// and allocates what compressed ones declare.
fn check_buffers(message: &Message<'_>, body: &[u8]) -> Result<u64, Error> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = message.header_as_record_batch().or(dictionary) else { return Ok(0) };
    // Nulls alone take no bytes: as many rows as bytes are allowed.
    within("the rows of a message", u64::try_from(batch.length()).unwrap_or(u64::MAX), MAX_BODY)?;
    let allowed = match batch.compression() {
        Some(_) => MIN_DECOMPRESSED.max((body.len() as u64).saturating_mul(MAX_RATIO)).min(MAX_BODY),
        // They do not overlap.
        None => body.len() as u64,
    };
    let mut total = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let place = usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let bytes = place.and_then(|(begin, len)| body.get(begin..begin.checked_add(len)?));
        let bytes = bytes.ok_or(ErrorKind::Arrow {})?;
        let len = match (batch.compression(), bytes.first_chunk::<PREFIX>()) {
            _ if bytes.is_empty() => 0,
            (None, _) => bytes.len() as u64,
            (Some(_), None) => return Err(ErrorKind::Arrow {}.into()),
            // -1: as it is.
            (Some(_), Some(len)) => u64::try_from(i64::from_le_bytes(*len)).unwrap_or(bytes.len() as u64),
        };
        total = total.saturating_add(len);
        within("the content of a message", total, allowed)?;
    }
    Ok(total)
}
