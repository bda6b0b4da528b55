//! The names in a pickle, by a walk of its own: written from the table of opcodes of CPython's `pickletools`, not from `pickle-core`.

use std::collections::BTreeMap;

/// A value on the stack, as far as names need it.
#[derive(Clone, PartialEq)]
enum Value {
    Mark,
    Text(String),
    Other,
}

/// What is left of the stream.
struct Rest<'s>(&'s [u8]);

impl<'s> Rest<'s> {
    fn take(&mut self, len: usize) -> Option<&'s [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, width: usize) -> Option<usize> {
        let bytes = self.take(width)?;
        usize::try_from(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte))).ok()
    }

    /// Bytes after their length in `width` bytes.
    fn counted(&mut self, width: usize) -> Option<&'s [u8]> {
        let len = self.number(width)?;
        self.take(len)
    }

    fn line(&mut self) -> Option<&'s str> {
        let len = self.0.iter().position(|&byte| byte == b'\n')?;
        let line = self.take(len + 1)?;
        core::str::from_utf8(&line[..len]).ok()
    }
}

/// Module and name of every global up to the end of the first pickle, or to what is malformed. Names that the walk cannot know are left out.
pub fn globals(stream: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let _ = walk(Rest(stream), &mut found);
    found
}

fn walk(mut rest: Rest<'_>, found: &mut Vec<(String, String)>) -> Option<()> {
    let mut stack: Vec<Value> = Vec::new();
    let mut memo = BTreeMap::new();
    let text =
        |bytes: &[u8]| core::str::from_utf8(bytes).map_or(Value::Other, |text| Value::Text(text.into()));
    loop {
        let opcode = *rest.take(1)?.first()?;
        let (pops, pushed) = match opcode {
            b'.' => return Some(()),
            b'(' => (0, Some(Value::Mark)),
            // FLOAT, INT, LONG, PERSID.
            b'F' | b'I' | b'L' | b'P' => {
                rest.line()?;
                (0, Some(Value::Other))
            }
            // STRING and UNICODE, if they have no escapes.
            b'S' => (0, Some(plain(rest.line()?.trim_matches(['\'', '"'])))),
            b'V' => (0, Some(plain(rest.line()?))),
            // BININT1, EXT1; BININT2, EXT2; BININT, EXT4; BINFLOAT.
            b'K' | 0x82 | b'M' | 0x83 | b'J' | 0x84 | b'G' => {
                rest.take(match opcode {
                    b'K' | 0x82 => 1,
                    b'M' | 0x83 => 2,
                    b'J' | 0x84 => 4,
                    _ => 8,
                })?;
                (0, Some(Value::Other))
            }
            // SHORT_BINSTRING, SHORT_BINUNICODE; BINSTRING, BINUNICODE; BINUNICODE8.
            b'U' | 0x8c => (0, Some(text(rest.counted(1)?))),
            b'T' | b'X' => (0, Some(text(rest.counted(4)?))),
            0x8d => (0, Some(text(rest.counted(8)?))),
            // LONG1, SHORT_BINBYTES; LONG4, BINBYTES; BINBYTES8, BYTEARRAY8.
            0x8a | b'C' | 0x8b | b'B' | 0x8e | 0x96 => {
                rest.counted(match opcode {
                    0x8a | b'C' => 1,
                    0x8b | b'B' => 4,
                    _ => 8,
                })?;
                (0, Some(Value::Other))
            }
            // NONE, NEWTRUE, NEWFALSE, empty containers, NEXT_BUFFER.
            b'N' | 0x88 | 0x89 | b'}' | b']' | b')' | 0x8f | 0x97 => (0, Some(Value::Other)),
            // POP; APPEND, BUILD; SETITEM.
            b'0' | b'a' | b'b' => (1, None),
            b's' => (2, None),
            // DUP.
            b'2' => (0, Some(stack.last()?.clone())),
            // BINPERSID, TUPLE1, READONLY_BUFFER; REDUCE, NEWOBJ, TUPLE2; TUPLE3, NEWOBJ_EX.
            b'Q' | 0x85 | 0x98 => (1, Some(Value::Other)),
            b'R' | 0x81 | 0x86 => (2, Some(Value::Other)),
            0x87 | 0x92 => (3, Some(Value::Other)),
            // POP_MARK, APPENDS, SETITEMS, ADDITEMS; DICT, LIST, TUPLE, OBJ, FROZENSET.
            b'1' | b'e' | b'u' | 0x90 => (above_mark(&stack)?, None),
            b'd' | b'l' | b't' | b'o' | 0x91 => (above_mark(&stack)?, Some(Value::Other)),
            // GLOBAL, INST, STACK_GLOBAL.
            b'c' | b'i' => {
                found.push((rest.line()?.into(), rest.line()?.into()));
                (if opcode == b'i' { above_mark(&stack)? } else { 0 }, Some(Value::Other))
            }
            0x93 => {
                if let [.., Value::Text(module), Value::Text(name)] = stack.as_slice() {
                    found.push((module.clone(), name.clone()));
                }
                (2, Some(Value::Other))
            }
            // GET, BINGET, LONG_BINGET; PUT, BINPUT, LONG_BINPUT; MEMOIZE.
            b'g' | b'h' | b'j' | b'p' | b'q' | b'r' | 0x94 => {
                let index = match opcode {
                    b'g' | b'p' => rest.line()?.parse().ok()?,
                    b'h' | b'q' => rest.number(1)?,
                    b'j' | b'r' => rest.number(4)?,
                    _ => memo.len(),
                };
                if matches!(opcode, b'g' | b'h' | b'j') {
                    (0, Some(Value::clone(memo.get(&index)?)))
                } else {
                    memo.insert(index, stack.last()?.clone());
                    (0, None)
                }
            }
            // PROTO, FRAME.
            0x80 => rest.take(1).map(|_| (0, None))?,
            0x95 => rest.take(8).map(|_| (0, None))?,
            _ => return None,
        };
        stack.truncate(stack.len().checked_sub(pops)?);
        stack.extend(pushed);
    }
}

/// A string without escapes.
fn plain(line: &str) -> Value {
    if line.contains('\\') { Value::Other } else { Value::Text(line.into()) }
}

/// How many values there are from the last mark on.
fn above_mark(stack: &[Value]) -> Option<usize> {
    Some(stack.len() - stack.iter().rposition(|value| *value == Value::Mark)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_kind_are_found() {
        for (stream, expected) in [
            (&b"cos\nsystem\n."[..], vec![("os", "system")]),
            (b"(S'id'\nios\nsystem\n.", vec![("os", "system")]),
            (b"\x8c\x02os\x94\x8c\x06system\x93.", vec![("os", "system")]),
            (b"Vos\nq\x070Vsystem\np1\n0h\x07g1\n\x93.", vec![("os", "system")]),
            (b"(Vos\n1X\x01\0\0\0aU\x01b\x93.", vec![("a", "b")]),
            (b"N)\x93.", vec![]),
            (b"ca\nb\n\xffcc\nd\n.", vec![("a", "b")]),
        ] {
            let found = globals(stream);
            let found: Vec<_> = found.iter().map(|(module, name)| (module.as_str(), name.as_str())).collect();
            assert_eq!(found, expected, "{stream:x?}");
        }
    }
}
