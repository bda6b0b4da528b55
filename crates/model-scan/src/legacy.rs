//! PyTorch's format before 1.6: five pickles and the bytes of the storages.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::stream::{Stream, text};
use pickle_core::{Error, Value, ValueId};

/// The value of the first pickle, `0x1950a86a20f9469cfc6c`.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];

/// Magic number, version, system, object, keys of the storages.
const PICKLES: u32 = 5;

/// What was read of such a file.
#[derive(Default)]
pub(crate) struct Legacy {
    /// Pickles that were read, if the first is the magic number.
    pickles: u32,
    keys: Vec<Vec<u8>>,
    /// Bytes of an element, by key.
    widths: BTreeMap<Vec<u8>, u64>,
}

impl Legacy {
    pub(crate) const fn is_torch(&self) -> bool {
        self.pickles > 0
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.pickles == PICKLES
    }

    /// A pickle has ended.
    pub(crate) fn pickle(&mut self, machine: &Stream<'_>, root: ValueId) -> Result<(), Error> {
        let value = machine.tree().value(root);
        if self.pickles == 0 {
            let Value::BigInt(span) = value else { return Ok(()) };
            // Zeros at its end do not change a number.
            let bytes = machine.tree().bytes(*machine.source(), span, 4096)?;
            let is_magic = bytes.strip_prefix(&MAGIC).is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
            self.pickles = u32::from(is_magic && machine.opcodes() < 8);
            return Ok(());
        }
        self.pickles += 1;
        if self.pickles == PICKLES
            && let Value::List(keys) = value
        {
            self.keys = keys.map(|key| text(machine, key)).collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// A storage: its key and its class.
    pub(crate) fn storage(&mut self, key: Vec<u8>, class: &str) {
        let Some(kind) = class.strip_suffix("Storage") else { return };
        let width = match kind {
            "ComplexDouble" => 16,
            "Double" | "Long" | "ComplexFloat" => 8,
            "Float" | "Int" | "QInt32" => 4,
            "Half" | "BFloat16" | "Short" => 2,
            "Char" | "Byte" | "Bool" | "QInt8" | "QUInt8" | "QUInt4x2" | "QUInt2x4" | "Untyped" => 1,
            _ => return,
        };
        self.widths.insert(key, width);
    }

    /// Passes the bytes of the storages, and returns what is left; `None` if there are fewer than declared.
    pub(crate) fn pass_storages(&self, machine: &mut Stream<'_>) -> Result<Option<u64>, Error> {
        for key in &self.keys {
            let Some(width) = self.widths.get(key) else { return Ok(Some(machine.rest())) };
            let mut count = [0; 8];
            if machine.rest() < 8 {
                return Ok(None);
            }
            let at = machine.position();
            (**machine.source()).read_exact_at(at, &mut count)?;
            let len = u64::from_le_bytes(count).checked_mul(*width).and_then(|len| len.checked_add(8));
            let Some(len) = len.filter(|len| *len <= machine.rest()) else { return Ok(None) };
            machine.skip(len)?;
        }
        Ok(Some(machine.rest()))
    }
}
