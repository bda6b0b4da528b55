//! Thrift's compact protocol, as far as the footer and the page headers of Parquet need it.
//!
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

/// Structures in structures, lists in lists.
const MAX_DEPTH: usize = 64;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
pub(crate) const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub(crate) const STRUCT: u8 = 12;

/// Why bytes are no structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// They end within it.
    Cut,
    /// They break the protocol.
    Invalid,
}

/// Bytes that are not read yet.
pub(crate) struct Thrift<'b>(pub(crate) &'b [u8]);

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8, Damage> {
        let (first, rest) = self.0.split_first().ok_or(Damage::Cut)?;
        self.0 = rest;
        Ok(*first)
    }

    fn varint(&mut self) -> Result<u64, Damage> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damage::Invalid)
    }

    /// An integer of 16, 32 or 64 bits as the value of a field of this type.
    pub(crate) fn integer(&mut self, kind: u8) -> Result<i64, Damage> {
        if !(I16..=I64).contains(&kind) {
            return Err(Damage::Invalid);
        }
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Number and type of the next field; none at the end of the structure. `last` is the number of the field before.
    pub(crate) fn field(&mut self, last: &mut i64) -> Result<Option<u8>, Damage> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *last = match byte >> 4 {
            0 => self.integer(I16)?,
            delta => last.saturating_add(delta.into()),
        };
        Ok(Some(byte & 0x0f))
    }

    /// Type and number of the elements of a list; each takes at least a byte.
    pub(crate) fn list(&mut self) -> Result<(u8, u64), Damage> {
        let byte = self.byte()?;
        let len = match byte >> 4 {
            15 => self.varint()?,
            len => len.into(),
        };
        if len > self.0.len() as u64 { Err(Damage::Cut) } else { Ok((byte & 0x0f, len)) }
    }

    /// Skips the value of a field of this type.
    pub(crate) fn skip(&mut self, kind: u8) -> Result<(), Damage> {
        match kind {
            TRUE | FALSE => Ok(()),
            _ => self.skip_value(kind, MAX_DEPTH),
        }
    }

    /// Skips a value, booleans of lists and maps included.
    fn skip_value(&mut self, kind: u8, depth: usize) -> Result<(), Damage> {
        let depth = depth.checked_sub(1).ok_or(Damage::Invalid)?;
        match kind {
            TRUE | FALSE | BYTE => self.skip_bytes(1),
            I16..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.skip_bytes(8),
            BINARY => {
                let len = self.varint()?;
                self.skip_bytes(len)
            }
            LIST | SET => {
                let (kind, len) = self.list()?;
                (0..len).try_for_each(|_| self.skip_value(kind, depth))
            }
            MAP => {
                let len = self.varint()?;
                let kinds = if len == 0 { 0 } else { self.byte()? };
                (0..len).try_for_each(|_| {
                    self.skip_value(kinds >> 4, depth)?;
                    self.skip_value(kinds & 0x0f, depth)
                })
            }
            STRUCT => {
                let mut last = 0;
                while let Some(kind) = self.field(&mut last)? {
                    match kind {
                        TRUE | FALSE => {}
                        _ => self.skip_value(kind, depth)?,
                    }
                }
                Ok(())
            }
            _ => Err(Damage::Invalid),
        }
    }

    fn skip_bytes(&mut self, len: u64) -> Result<(), Damage> {
        let rest = usize::try_from(len).ok().and_then(|len| self.0.get(len..));
        self.0 = rest.ok_or(Damage::Cut)?;
        Ok(())
    }
}
