//! Opcodes that push values: numbers, strings, bytes, containers.

use core::ops::Range;

use read_at::ReadAt;

use super::{Machine, length};
use crate::error::{ErrorKind, Fault};
use crate::number::{self, Integer};
use crate::opcode::Opcode;
use crate::string;
use crate::tree::{Node, Span, ValueId};

/// A container without items.
const EMPTY: u32 = u32::MAX;

impl<R: ReadAt> Machine<R> {
    pub(super) fn constant(&mut self) -> Result<(), Fault> {
        let node = match self.opcode {
            Opcode::NONE => return self.push(ValueId::NONE),
            Opcode::NEWTRUE => return self.push(ValueId::TRUE),
            Opcode::NEWFALSE => return self.push(ValueId::FALSE),
            Opcode::EMPTY_TUPLE => return self.push(ValueId::EMPTY_TUPLE),
            Opcode::EMPTY_LIST => Node::List(EMPTY),
            Opcode::EMPTY_DICT => Node::Dict(EMPTY),
            Opcode::EMPTY_SET => Node::Set(EMPTY),
            Opcode::BININT => Node::Small(i32::from_le_bytes(self.reader.take()?)),
            Opcode::BININT1 => Node::Small(u8::from_le_bytes(self.reader.take()?).into()),
            Opcode::BININT2 => Node::Small(u16::from_le_bytes(self.reader.take()?).into()),
            Opcode::BINFLOAT => {
                let bits = u64::from_be_bytes(self.reader.take()?);
                Node::Float(self.tree.add_wide(bits)?)
            }
            Opcode::INT | Opcode::LONG | Opcode::FLOAT => self.number_in_text()?,
            Opcode::LONG1 => {
                let len = u8::from_le_bytes(self.reader.take()?);
                self.binary_integer(len.into())?
            }
            Opcode::LONG4 => {
                let len = i32::from_le_bytes(self.reader.take()?);
                self.binary_integer(u64::try_from(len).map_err(|_| Fault::Length)?)?
            }
            Opcode::STRING | Opcode::UNICODE => self.string_in_text()?,
            Opcode::SHORT_BINUNICODE | Opcode::BINUNICODE | Opcode::BINUNICODE8 => {
                let len = self.counted()?;
                let range = self.reader.skip_utf8(len)?;
                self.span(Node::Str, &range)?
            }
            Opcode::SHORT_BINSTRING | Opcode::BINSTRING => {
                let len = self.counted()?;
                let range = self.reader.skip_piece(len)?;
                self.span(Node::Str2, &range)?
            }
            Opcode::SHORT_BINBYTES | Opcode::BINBYTES | Opcode::BINBYTES8 => self.bytes(Node::Bytes)?,
            Opcode::BYTEARRAY8 => self.bytes(Node::ByteArray)?,
            Opcode::TUPLE1 => return self.tuple(1),
            Opcode::TUPLE2 => return self.tuple(2),
            Opcode::TUPLE3 => return self.tuple(3),
            Opcode::TUPLE | Opcode::FROZENSET | Opcode::LIST | Opcode::DICT => return self.collect(),
            opcode => return Err(Fault::Kind(ErrorKind::Opcode { opcode })),
        };
        self.push_node(node).map(drop)
    }

    /// A length of one, four or eight bytes, none of which is signed: the C unpickler reads that of `BINSTRING` so, too.
    fn counted(&mut self) -> Result<u64, Fault> {
        match self.opcode {
            Opcode::SHORT_BINUNICODE | Opcode::SHORT_BINSTRING | Opcode::SHORT_BINBYTES => {
                Ok(u8::from_le_bytes(self.reader.take()?).into())
            }
            Opcode::BINUNICODE | Opcode::BINSTRING | Opcode::BINBYTES => {
                Ok(u32::from_le_bytes(self.reader.take()?).into())
            }
            _ => length(u64::from_le_bytes(self.reader.take()?)),
        }
    }

    fn bytes(&mut self, node: fn(u32) -> Node) -> Result<Node, Fault> {
        let len = self.counted()?;
        let range = self.reader.skip_parts(len)?;
        self.span(node, &range)
    }

    fn span(&mut self, node: fn(u32) -> Node, range: &Range<u64>) -> Result<Node, Fault> {
        self.tree.add_span(Span::of(range)).map(node)
    }

    fn small(&mut self, value: i64) -> Result<Node, Fault> {
        match i32::try_from(value) {
            Ok(value) => Ok(Node::Small(value)),
            Err(_) => self.tree.add_wide(value.cast_unsigned()).map(Node::Wide),
        }
    }

    fn binary_integer(&mut self, len: u64) -> Result<Node, Fault> {
        let range = self.reader.skip_piece(len)?;
        let bytes = self.reader.copy(&range, ("integer_bytes", self.limits.integer_bytes))?;
        match number::from_le(&bytes) {
            Some(value) => self.small(value),
            None => self.span(Node::BigInt, &range),
        }
    }

    fn number_in_text(&mut self) -> Result<Node, Fault> {
        let line = self.line()?;
        let text = self.reader.copy(&line, ("integer_bytes", self.limits.integer_bytes))?;
        let integer = match self.opcode {
            Opcode::FLOAT => {
                let value = number::float(&text).ok_or(Fault::Text)?;
                return self.tree.add_wide(value.to_bits()).map(Node::Float);
            }
            Opcode::INT => number::int(&text),
            _ => number::long(&text),
        };
        match integer.ok_or(Fault::Text)? {
            Integer::Bool(value) => Ok(Node::Bool(value)),
            Integer::Small(value) => self.small(value),
            Integer::Big(bytes) => {
                let span = self.tree.add_decoded(&bytes, self.limits.decoded_bytes)?;
                self.tree.add_span(span).map(Node::BigInt)
            }
        }
    }

    fn string_in_text(&mut self) -> Result<Node, Fault> {
        let mut range = self.line()?;
        let mut text = self.reader.copy(&range, ("decoded_bytes", self.limits.decoded_bytes))?;
        let is_string = self.opcode == Opcode::STRING;
        let node = if is_string { Node::Str2 } else { Node::Str };
        if is_string {
            let [quote @ (b'\'' | b'"'), inside @ .., end] = text.as_slice() else { return Err(Fault::Text) };
            if quote != end {
                return Err(Fault::Text);
            }
            text = inside.into();
            range = range.start + 1..range.end - 1;
        }
        let plain = !text.contains(&b'\\') && (is_string || text.is_ascii());
        if plain {
            return self.span(node, &range);
        }
        let decoded =
            if is_string { string::decode_escapes(&text) } else { string::decode_raw_unicode(&text) };
        let span = self.tree.add_decoded(&decoded.ok_or(Fault::Text)?, self.limits.decoded_bytes)?;
        self.tree.add_span(span).map(node)
    }

    fn tuple(&mut self, len: usize) -> Result<(), Fault> {
        let height = self.stack.len().checked_sub(len).filter(|height| *height >= self.fence());
        self.tuple_from(height.ok_or(Fault::Stack)?).map(drop)
    }

    /// Makes a tuple of the values from `height` on, and pushes it.
    pub(super) fn tuple_from(&mut self, height: usize) -> Result<ValueId, Fault> {
        let items = self.stack.get(height..).unwrap_or_default();
        if items.is_empty() {
            self.push(ValueId::EMPTY_TUPLE)?;
            return Ok(ValueId::EMPTY_TUPLE);
        }
        let slice = self.tree.add_slice(items)?;
        self.stack.truncate(height);
        self.push_node(Node::Tuple(slice))
    }

    fn collect(&mut self) -> Result<(), Fault> {
        let height = self.pop_mark()?;
        match self.opcode {
            Opcode::TUPLE => return self.tuple_from(height).map(drop),
            Opcode::FROZENSET => {
                let slice = self.tree.add_slice(self.stack.get(height..).unwrap_or_default())?;
                self.stack.truncate(height);
                return self.push_node(Node::FrozenSet(slice)).map(drop);
            }
            Opcode::DICT if !self.above(height).len().is_multiple_of(2) => return Err(Fault::Operand),
            _ => {}
        }
        let node = if self.opcode == Opcode::DICT { Node::Dict } else { Node::List };
        let value = self.tree.add(node(EMPTY), self.limits.values)?;
        self.tree.extend(value, self.stack.get(height..).unwrap_or_default())?;
        self.stack.truncate(height);
        self.push(value)
    }
}
