//! Opcodes that resolve names.

use core::ops::Range;

use read_at::ReadAt;

use super::{EventKind, Machine};
use crate::error::{ErrorKind, Fault};
use crate::opcode::Opcode;
use crate::tree::{Construct, Node, Span, ValueId};

impl<R: ReadAt> Machine<R> {
    pub(super) fn name(&mut self) -> Result<(), Fault> {
        match self.opcode {
            Opcode::STACK_GLOBAL => self.name_from_stack(),
            Opcode::INST => {
                let (callable, terminated) = self.name_in_lines()?;
                if !terminated {
                    return Err(Fault::Truncated);
                }
                // The Python unpickler has resolved the name by now, mark or not.
                let height = self.pop_mark()?;
                let args = self.tuple_from(height)?;
                self.pop()?;
                self.push_object(Construct::Inst, callable, args, None)
            }
            _ => {
                let (value, terminated) = self.name_in_lines()?;
                if terminated { self.push(value) } else { Err(Fault::Truncated) }
            }
        }
    }

    /// Two lines. The Python unpickler drops the last byte of a line that ends with the source, and resolves what is left.
    fn name_in_lines(&mut self) -> Result<(ValueId, bool), Fault> {
        let mut ids = [0; 2];
        let mut terminated = true;
        for id in &mut ids {
            let line = self.reader.line()?;
            let mut range = line.range;
            if !line.terminated {
                range.end = range.end.saturating_sub(1).max(range.start);
                terminated = false;
            }
            *id = self.intern_line(&range)?;
        }
        let global = self.tree.add_global(ids[0], ids[1])?;
        let value = self.tree.add(Node::Global(global), self.limits.values)?;
        self.report(EventKind::Global { value });
        Ok((value, terminated))
    }

    fn intern_line(&mut self, range: &Range<u64>) -> Result<u32, Fault> {
        let bytes = self.reader.copy(range, ("name_bytes", self.limits.name_bytes))?;
        let is_inst = self.opcode == Opcode::INST;
        let valid = if is_inst { bytes.is_ascii() } else { core::str::from_utf8(&bytes).is_ok() };
        if valid { self.tree.add_name(&bytes) } else { Err(Fault::Text) }
    }

    fn name_from_stack(&mut self) -> Result<(), Fault> {
        let name = self.pop()?;
        let module = self.pop()?;
        let mut ids = [0; 2];
        for (id, value) in ids.iter_mut().zip([module, name]) {
            let span = match self.tree.node(value) {
                Node::Str(idx) | Node::Str2(idx) => self.tree.span(idx),
                // A name may stand for a string: `os.name` is one. So may what a call or the loader returns.
                Node::Object(_)
                | Node::Global(_)
                | Node::Computed(_)
                | Node::Persistent(_)
                | Node::Extension(_) => {
                    let operands = self.tree.add_slice(&[module, name])?;
                    let value = self.push_node(Node::Computed(operands))?;
                    self.report(EventKind::Global { value });
                    return Ok(());
                }
                _ => return Err(Fault::Operand),
            };
            *id = self.intern_span(span)?;
        }
        let global = self.tree.add_global(ids[0], ids[1])?;
        let value = self.push_node(Node::Global(global))?;
        self.report(EventKind::Global { value });
        Ok(())
    }

    fn intern_span(&mut self, span: Span) -> Result<u32, Fault> {
        if let Some(id) = self.tree.interned(span) {
            return Ok(id);
        }
        let limit = self.limits.name_bytes;
        if span.len() > limit.into() {
            return Err(Fault::Limit("name_bytes", limit.into()));
        }
        let bytes = match span.range() {
            Some(range) => self.reader.copy(&range, ("name_bytes", limit))?,
            None => self.tree.decoded(span).unwrap_or_default().into(),
        };
        self.tree.intern(span, &bytes)
    }

    pub(super) fn extension(&mut self) -> Result<(), Fault> {
        let code = match self.opcode {
            Opcode::EXT1 => u8::from_le_bytes(self.reader.take()?).into(),
            Opcode::EXT2 => u16::from_le_bytes(self.reader.take()?).into(),
            _ => i32::from_le_bytes(self.reader.take()?),
        };
        let positive = u32::try_from(code).ok().filter(|code| *code > 0);
        let node = Node::Extension(positive.ok_or(Fault::Kind(ErrorKind::Extension { code }))?);
        let value = self.push_node(node)?;
        self.report(EventKind::Extension { value });
        Ok(())
    }
}
