//! Opcodes and their names.

use core::fmt;

/// An opcode: one byte of the stream. Bytes without a meaning can be carried and printed, too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Opcode(pub u8);

/// The opcodes of protocols 0 to 5, with the names of CPython's `pickletools`.
const NAMES: [(u8, &str); 68] = [
    (b'(', "MARK"),
    (b')', "EMPTY_TUPLE"),
    (b'.', "STOP"),
    (b'0', "POP"),
    (b'1', "POP_MARK"),
    (b'2', "DUP"),
    (b'B', "BINBYTES"),
    (b'C', "SHORT_BINBYTES"),
    (b'F', "FLOAT"),
    (b'G', "BINFLOAT"),
    (b'I', "INT"),
    (b'J', "BININT"),
    (b'K', "BININT1"),
    (b'L', "LONG"),
    (b'M', "BININT2"),
    (b'N', "NONE"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
    (b'R', "REDUCE"),
    (b'S', "STRING"),
    (b'T', "BINSTRING"),
    (b'U', "SHORT_BINSTRING"),
    (b'V', "UNICODE"),
    (b'X', "BINUNICODE"),
    (b']', "EMPTY_LIST"),
    (b'a', "APPEND"),
    (b'b', "BUILD"),
    (b'c', "GLOBAL"),
    (b'd', "DICT"),
    (b'e', "APPENDS"),
    (b'g', "GET"),
    (b'h', "BINGET"),
    (b'i', "INST"),
    (b'j', "LONG_BINGET"),
    (b'l', "LIST"),
    (b'o', "OBJ"),
    (b'p', "PUT"),
    (b'q', "BINPUT"),
    (b'r', "LONG_BINPUT"),
    (b's', "SETITEM"),
    (b't', "TUPLE"),
    (b'u', "SETITEMS"),
    (b'}', "EMPTY_DICT"),
    (0x80, "PROTO"),
    (0x81, "NEWOBJ"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (0x85, "TUPLE1"),
    (0x86, "TUPLE2"),
    (0x87, "TUPLE3"),
    (0x88, "NEWTRUE"),
    (0x89, "NEWFALSE"),
    (0x8a, "LONG1"),
    (0x8b, "LONG4"),
    (0x8c, "SHORT_BINUNICODE"),
    (0x8d, "BINUNICODE8"),
    (0x8e, "BINBYTES8"),
    (0x8f, "EMPTY_SET"),
    (0x90, "ADDITEMS"),
    (0x91, "FROZENSET"),
    (0x92, "NEWOBJ_EX"),
    (0x93, "STACK_GLOBAL"),
    (0x94, "MEMOIZE"),
    (0x95, "FRAME"),
    (0x96, "BYTEARRAY8"),
    (0x97, "NEXT_BUFFER"),
    (0x98, "READONLY_BUFFER"),
];

impl Opcode {
    pub(crate) const MARK: Self = Self(b'(');
    pub(crate) const EMPTY_TUPLE: Self = Self(b')');
    pub(crate) const STOP: Self = Self(b'.');
    pub(crate) const POP: Self = Self(b'0');
    pub(crate) const POP_MARK: Self = Self(b'1');
    pub(crate) const DUP: Self = Self(b'2');
    pub(crate) const BINBYTES: Self = Self(b'B');
    pub(crate) const SHORT_BINBYTES: Self = Self(b'C');
    pub(crate) const FLOAT: Self = Self(b'F');
    pub(crate) const BINFLOAT: Self = Self(b'G');
    pub(crate) const INT: Self = Self(b'I');
    pub(crate) const BININT: Self = Self(b'J');
    pub(crate) const BININT1: Self = Self(b'K');
    pub(crate) const LONG: Self = Self(b'L');
    pub(crate) const BININT2: Self = Self(b'M');
    pub(crate) const NONE: Self = Self(b'N');
    pub(crate) const PERSID: Self = Self(b'P');
    pub(crate) const BINPERSID: Self = Self(b'Q');
    pub(crate) const REDUCE: Self = Self(b'R');
    pub(crate) const STRING: Self = Self(b'S');
    pub(crate) const BINSTRING: Self = Self(b'T');
    pub(crate) const SHORT_BINSTRING: Self = Self(b'U');
    pub(crate) const UNICODE: Self = Self(b'V');
    pub(crate) const BINUNICODE: Self = Self(b'X');
    pub(crate) const EMPTY_LIST: Self = Self(b']');
    pub(crate) const APPEND: Self = Self(b'a');
    pub(crate) const BUILD: Self = Self(b'b');
    pub(crate) const GLOBAL: Self = Self(b'c');
    pub(crate) const DICT: Self = Self(b'd');
    pub(crate) const APPENDS: Self = Self(b'e');
    pub(crate) const GET: Self = Self(b'g');
    pub(crate) const BINGET: Self = Self(b'h');
    pub(crate) const INST: Self = Self(b'i');
    pub(crate) const LONG_BINGET: Self = Self(b'j');
    pub(crate) const LIST: Self = Self(b'l');
    pub(crate) const OBJ: Self = Self(b'o');
    pub(crate) const PUT: Self = Self(b'p');
    pub(crate) const BINPUT: Self = Self(b'q');
    pub(crate) const LONG_BINPUT: Self = Self(b'r');
    pub(crate) const SETITEM: Self = Self(b's');
    pub(crate) const TUPLE: Self = Self(b't');
    pub(crate) const SETITEMS: Self = Self(b'u');
    pub(crate) const EMPTY_DICT: Self = Self(b'}');
    pub(crate) const PROTO: Self = Self(0x80);
    pub(crate) const NEWOBJ: Self = Self(0x81);
    pub(crate) const EXT1: Self = Self(0x82);
    pub(crate) const EXT2: Self = Self(0x83);
    pub(crate) const EXT4: Self = Self(0x84);
    pub(crate) const TUPLE1: Self = Self(0x85);
    pub(crate) const TUPLE2: Self = Self(0x86);
    pub(crate) const TUPLE3: Self = Self(0x87);
    pub(crate) const NEWTRUE: Self = Self(0x88);
    pub(crate) const NEWFALSE: Self = Self(0x89);
    pub(crate) const LONG1: Self = Self(0x8a);
    pub(crate) const LONG4: Self = Self(0x8b);
    pub(crate) const SHORT_BINUNICODE: Self = Self(0x8c);
    pub(crate) const BINUNICODE8: Self = Self(0x8d);
    pub(crate) const BINBYTES8: Self = Self(0x8e);
    pub(crate) const EMPTY_SET: Self = Self(0x8f);
    pub(crate) const ADDITEMS: Self = Self(0x90);
    pub(crate) const FROZENSET: Self = Self(0x91);
    pub(crate) const NEWOBJ_EX: Self = Self(0x92);
    pub(crate) const STACK_GLOBAL: Self = Self(0x93);
    pub(crate) const MEMOIZE: Self = Self(0x94);
    pub(crate) const FRAME: Self = Self(0x95);
    pub(crate) const BYTEARRAY8: Self = Self(0x96);
    pub(crate) const NEXT_BUFFER: Self = Self(0x97);
    pub(crate) const READONLY_BUFFER: Self = Self(0x98);

    /// Its name in CPython's `pickletools`, for example `STACK_GLOBAL`; `unknown` for a byte that is no opcode.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = NAMES.binary_search_by_key(&self.0, |(byte, _)| *byte);
        found.ok().and_then(|idx| NAMES.get(idx)).map_or("unknown", |(_, name)| name)
    }

    /// Whether the byte is an opcode.
    #[must_use]
    pub fn is_known(self) -> bool {
        NAMES.binary_search_by_key(&self.0, |(byte, _)| *byte).is_ok()
    }
}

/// `STACK_GLOBAL`, or `0xff` for a byte that is no opcode.
impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_known() { f.write_str(self.name()) } else { write!(f, "{:#04x}", self.0) }
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn names_are_sorted_and_bytes_without_one_are_shown() {
        assert!(NAMES.is_sorted_by_key(|(byte, _)| *byte));
        assert_eq!(Opcode(b'.').to_string(), "STOP");
        assert_eq!((Opcode(0xff).to_string(), Opcode(0).is_known()), ("0xff".into(), false));
    }
}
