//! Object headers: the messages of a group or dataset.

use alloc::vec::Vec;

use crate::error::Error;
use crate::hdf5::file::{Fields, File};

/// Kinds of messages.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    pub(crate) const FILTERS: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// A flag of messages: the content is elsewhere.
const SHARED: u8 = 1 << 1;

/// One message.
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) data: Vec<u8>,
    /// Address of the data.
    pub(crate) address: u64,
    pub(crate) shared: bool,
}

/// The messages of an object.
pub(crate) struct Header(Vec<Message>);

impl Header {
    /// Reads the header at an address with all its continuations.
    pub(crate) fn read(file: &File<'_>, address: u64) -> Result<Self, Error> {
        let start = file.read(address, 4)?;
        let parsed =
            if start.starts_with(b"OHDR") { version_2(file, address) } else { version_1(file, address) };
        file.at(address, parsed.map(Self))
    }

    /// The first message of a kind.
    pub(crate) fn first(&self, kind: u16) -> Option<&Message> {
        self.0.iter().find(|message| message.kind == kind)
    }

    /// All messages of a kind.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.0.iter().filter(move |message| message.kind == kind)
    }

    /// The content of the first message of a kind, wherever it is; `None` if there is no such message.
    pub(crate) fn content(&self, file: &File<'_>, kind: u16) -> Result<Option<Vec<u8>>, Error> {
        let Some(message) = self.first(kind) else { return Ok(None) };
        if message.shared {
            shared(file, &message.data, kind).map(Some)
        } else {
            Ok(Some(message.data.clone()))
        }
    }
}

/// The message of another object that a shared message stands for.
pub(crate) fn shared(file: &File<'_>, data: &[u8], kind: u16) -> Result<Vec<u8>, Error> {
    let mut fields = Fields::new(data);
    let (version, place) = (fields.u8()?, fields.u8()?);
    match (version, place) {
        (1, _) => {
            fields.take(6)?;
        }
        (2, _) | (3, 2) => {}
        _ => return Err(Error::unsupported("a message of HDF5 in a table of shared messages")),
    }
    let address = fields.some_address(&file.frame)?;
    let other = Header::read(file, address)?;
    let message = other.0.into_iter().find(|message| message.kind == kind && !message.shared);
    message.map(|message| message.data).ok_or_else(|| Error::malformed("a shared message is missing"))
}

/// Parts of a header that were read, and those still to be read.
struct Parts<'f, 'a> {
    file: &'a File<'f>,
    messages: Vec<Message>,
    /// Address and length of continuations.
    pending: Vec<(u64, u64)>,
    /// Bytes so far: parts that overlap are more than there are in the file.
    bytes: u64,
}

impl<'f, 'a> Parts<'f, 'a> {
    fn new(file: &'a File<'f>) -> Self {
        Self { file, messages: Vec::new(), pending: Vec::new(), bytes: 0 }
    }

    fn count(&mut self, len: u64) -> Result<(), Error> {
        self.bytes = self.bytes.saturating_add(len);
        if self.bytes > self.file.frame.file_len() {
            return Err(Error::malformed("the parts of an object header are a loop"));
        }
        Ok(())
    }

    fn add(&mut self, kind: u16, flags: u8, data: &[u8], address: u64) -> Result<(), Error> {
        match kind {
            0 => {}
            kind::CONTINUATION => {
                let mut fields = Fields::new(data);
                let address = fields.some_address(&self.file.frame)?;
                self.pending.push((address, fields.length(&self.file.frame)?));
            }
            _ => {
                let shared = flags & SHARED != 0;
                self.messages.push(Message { kind, data: data.to_vec(), address, shared });
            }
        }
        Ok(())
    }
}

fn version_1(file: &File<'_>, address: u64) -> Result<Vec<Message>, Error> {
    let prefix = file.read(address, 16)?;
    let mut fields = Fields::new(&prefix);
    if fields.u8()? != 1 {
        return Err(Error::malformed("an object header has an unknown version"));
    }
    fields.u8()?;
    let mut left = fields.u16()?;
    fields.u32()?; // References.
    let len = fields.u32()?;
    let mut parts = Parts::new(file);
    parts.pending.push((address + 16, len.into()));
    while let Some((address, len)) = parts.pending.pop() {
        parts.count(len)?;
        let block = file.read(address, len)?;
        let mut fields = Fields::new(&block);
        while fields.rest().len() >= 8 && left > 0 {
            left -= 1;
            let (kind, size, flags) = (fields.u16()?, fields.u16()?, fields.u8()?);
            fields.take(3)?;
            let at = address + (block.len() - fields.rest().len()) as u64;
            let data = fields.take(size.into())?;
            parts.add(kind, flags, data, at)?;
        }
    }
    Ok(parts.messages)
}

fn version_2(file: &File<'_>, address: u64) -> Result<Vec<Message>, Error> {
    let start = file.read(address, 6)?;
    let mut fields = Fields::new(&start);
    fields.take(4)?;
    if fields.u8()? != 2 {
        return Err(Error::malformed("an object header has an unknown version"));
    }
    let flags = fields.u8()?;
    let before_size = 6 + if flags & 1 << 5 != 0 { 16 } else { 0 } + if flags & 1 << 4 != 0 { 4 } else { 0 };
    let size_width = 1_u64 << (flags & 3);
    let size = file.read(address.saturating_add(before_size), size_width)?;
    let len = Fields::new(&size).length_of(size.len())?;
    let mut parts = Parts::new(file);
    // All of a part, and how much of it comes before the messages.
    let whole = len.checked_add(before_size + size_width + 4);
    let whole = whole.ok_or_else(|| Error::malformed("the length of an object header overflows"))?;
    parts.pending.push((address, whole));
    while let Some((at, len)) = parts.pending.pop() {
        parts.count(len)?;
        let (signature, skipped) = if at == address {
            (b"OHDR".as_slice(), (before_size + size_width) as usize)
        } else {
            (b"OCHK".as_slice(), 4)
        };
        let block = file.read_checked(at, len, signature)?;
        let mut fields = Fields::new(&block);
        fields.take(skipped)?;
        let head = if flags & 1 << 2 != 0 { 6 } else { 4 };
        // Fewer bytes than the head of a message are a gap.
        while fields.rest().len() >= head {
            let (kind, size, message_flags) = (fields.u8()?, fields.u16()?, fields.u8()?);
            fields.take(head - 4)?;
            let data_at = at + (block.len() - fields.rest().len()) as u64;
            let data = fields.take(size.into())?;
            parts.add(kind.into(), message_flags, data, data_at)?;
        }
    }
    Ok(parts.messages)
}
