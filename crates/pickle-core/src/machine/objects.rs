//! Opcodes that call something.

use read_at::ReadAt;

use super::{EventKind, Machine};
use crate::error::Fault;
use crate::opcode::Opcode;
use crate::tree::{Construct, Node, Span, Update, ValueId};

impl<R: ReadAt> Machine<R> {
    pub(super) fn object(&mut self) -> Result<(), Fault> {
        match self.opcode {
            Opcode::REDUCE | Opcode::NEWOBJ | Opcode::NEWOBJ_EX => {
                let kwargs = if self.opcode == Opcode::NEWOBJ_EX { Some(self.pop()?) } else { None };
                let args = self.pop()?;
                let callable = self.pop()?;
                let construct = match self.opcode {
                    Opcode::REDUCE => Construct::Reduce,
                    Opcode::NEWOBJ => Construct::NewObj,
                    _ => Construct::NewObjEx,
                };
                self.push_object(construct, callable, args, kwargs)
            }
            Opcode::OBJ => {
                let height = self.pop_mark()?;
                let callable = *self.above(height).first().ok_or(Fault::Stack)?;
                let args = self.tuple_from(height + 1)?;
                self.stack.truncate(height);
                self.push_object(Construct::Obj, callable, args, None)
            }
            Opcode::BUILD => {
                let state = self.pop()?;
                let target = self.top()?;
                if let Node::Object(object) = self.tree.node(target) {
                    self.tree.update(object, Update::State(state))?;
                }
                self.report(EventKind::Build { target, state });
                Ok(())
            }
            Opcode::PERSID => {
                let line = self.line()?;
                let id = self.tree.add_span(Span::of(&line))?;
                let id = self.tree.add(Node::Str(id), self.limits.values)?;
                self.push_persistent(id)
            }
            Opcode::BINPERSID => {
                let id = self.pop()?;
                self.push_persistent(id)
            }
            Opcode::NEXT_BUFFER => {
                let value = self.push_node(Node::Buffer(self.buffers))?;
                self.buffers += 1;
                self.report(EventKind::Buffer { value });
                Ok(())
            }
            _ => self.top().map(drop), // READONLY_BUFFER: a view of the same bytes.
        }
    }

    fn push_persistent(&mut self, id: ValueId) -> Result<(), Fault> {
        let value = self.push_node(Node::Persistent(id))?;
        self.report(EventKind::Persistent { value });
        Ok(())
    }

    pub(super) fn push_object(
        &mut self,
        construct: Construct,
        callable: ValueId,
        args: ValueId,
        kwargs: Option<ValueId>,
    ) -> Result<(), Fault> {
        let record = self.tree.add_object(construct, callable, args, kwargs)?;
        let object = self.push_node(Node::Object(record))?;
        self.report(EventKind::Call { object });
        Ok(())
    }

    /// `APPEND` and its relatives. Nothing is done to anything if there are no items.
    pub(super) fn update(&mut self) -> Result<(), Fault> {
        let height = match self.opcode {
            Opcode::APPEND => self.stack.len().checked_sub(1),
            Opcode::SETITEM => self.stack.len().checked_sub(2),
            _ => Some(self.pop_mark()?),
        };
        let height = height.filter(|height| *height > self.fence()).ok_or(Fault::Stack)?;
        let target =
            height.checked_sub(1).and_then(|idx| self.stack.get(idx)).copied().ok_or(Fault::Stack)?;
        let items = self.stack.get(height..).unwrap_or_default();
        if items.is_empty() {
            return Ok(());
        }
        let pairs = matches!(self.opcode, Opcode::SETITEM | Opcode::SETITEMS);
        let odd = pairs && !items.len().is_multiple_of(2);
        let appends = matches!(self.opcode, Opcode::APPEND | Opcode::APPENDS);
        match self.tree.node(target) {
            Node::List(_) if appends => self.tree.extend(target, items)?,
            Node::Dict(_) if pairs && !odd => self.tree.extend(target, items)?,
            Node::Set(_) if self.opcode == Opcode::ADDITEMS => self.tree.extend(target, items)?,
            Node::Object(object) => {
                for item in items.chunks(if pairs { 2 } else { 1 }) {
                    let update = match *item {
                        [key, value] => Update::SetItem(key, value),
                        [item] if appends => Update::Append(item),
                        [item] if !pairs => Update::Add(item),
                        _ => continue,
                    };
                    self.tree.update(object, update)?;
                }
                self.report(EventKind::Update { target });
            }
            // A list has `__setitem__`, a byte array that and `append`. What the others are is up to the loader.
            Node::List(_) if pairs => self.report(EventKind::Update { target }),
            Node::ByteArray(_) if pairs || appends => self.report(EventKind::Update { target }),
            Node::Global(_)
            | Node::Computed(_)
            | Node::Persistent(_)
            | Node::Extension(_)
            | Node::Buffer(_) => self.report(EventKind::Update { target }),
            _ => return Err(Fault::Operand),
        }
        self.stack.truncate(height);
        // The Python unpickler has set the pairs before the odd one.
        if odd { Err(Fault::Operand) } else { Ok(()) }
    }
}
