//! What each event means.

use alloc::borrow::ToOwned;

use pickle_core::{
    Construct, Error, Event, EventKind, Global, Object, Opcode, Value, ValueId, joblib, python2,
};

use crate::allowed::{self, Use};
use crate::arguments;
use crate::denied;
use crate::legacy::Legacy;
use crate::problem::Problem;
use crate::report::{Name, Origin, Standing};
use crate::stream::{Pass, Stream, text};

impl Pass<'_> {
    pub(crate) fn event(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        legacy: &mut Legacy,
    ) -> Result<(), Error> {
        let tree = machine.tree();
        let runs = matches!(event.kind, EventKind::Call { .. } | EventKind::Build { .. });
        self.report.calls += u64::from(runs);
        let problem = match event.kind {
            EventKind::Global { value } => self.name(machine, event, value),
            EventKind::Extension { value } => match tree.value(value) {
                Value::Extension(code) => Some(Problem::Extension { code }),
                _ => None,
            },
            EventKind::Call { object } => match tree.value(object) {
                Value::Object(object) => self.call(machine, event, &object)?,
                _ => None,
            },
            EventKind::Build { target, state } => {
                self.note_dtype(machine, event.offset, target);
                self.state(machine, target, state)
            }
            EventKind::Update { target } => self.update(machine, target),
            EventKind::Persistent { value } => match tree.value(value) {
                Value::Persistent(id) => self.persistent(machine, id, legacy)?,
                _ => None,
            },
            EventKind::Buffer { .. } => Some(Problem::OutOfBand {}),
            _ => None,
        };
        if let Some(problem) = problem {
            self.add(event.offset, event.opcode, problem);
        }
        Ok(())
    }

    fn name(&mut self, machine: &Stream<'_>, event: Event, value: ValueId) -> Option<Problem> {
        let Value::Global(global) = machine.tree().value(value) else {
            return Some(Problem::ComputedName {});
        };
        let standing = self.standing(global);
        self.report.add_name(Name {
            offset: event.offset,
            opcode: event.opcode,
            depth: self.depth,
            module: global.module.to_owned(),
            name: global.name.to_owned(),
            standing,
        });
        let (module, name) = python2::modern(global.module, global.name);
        let owned = || (module.to_owned(), name.to_owned());
        match standing {
            Standing::Allowed | Standing::Trusted => None,
            Standing::Unknown => {
                let (module, name) = owned();
                Some(Problem::UnknownName { module, name })
            }
            Standing::Dangerous => {
                let reason = denied::reason(module, name);
                let (module, name) = owned();
                Some(match reason {
                    Some(reason) => Problem::DangerousName { module, name, reason },
                    None => Problem::AttributePath { module, name },
                })
            }
        }
    }

    fn standing(&self, global: Global<'_>) -> Standing {
        let (module, name) = python2::modern(global.module, global.name);
        let trusted = |pair: &(&str, &str)| *pair == (module, name) || *pair == (global.module, global.name);
        if self.usage(global).is_some() {
            Standing::Allowed
        } else if self.options.allow.iter().any(trusted) {
            Standing::Trusted
        } else if denied::reason(module, name).is_some() || is_path(module, name) {
            Standing::Dangerous
        } else {
            Standing::Unknown
        }
    }

    fn usage(&self, global: Global<'_>) -> Option<Use> {
        let (module, name) = python2::modern(global.module, global.name);
        let usage = allowed::usage(module, name);
        usage.filter(|usage| *usage != Use::Script || self.origin == Origin::TorchScript)
    }

    fn call(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        object: &Object<'_>,
    ) -> Result<Option<Problem>, Error> {
        let global = match machine.tree().value(object.callable) {
            Value::Global(global) => global,
            Value::Extension(_) => return Ok(None), // Reported where it is resolved.
            Value::Object(_) | Value::Computed { .. } => {
                return Ok(Some(Problem::ComputedCall {}));
            }
            _ => return Ok(Some(Problem::UnexpectedState {})),
        };
        // A name that is not allowed was reported where it is resolved.
        let Some(usage) = self.usage(global) else { return Ok(None) };
        let kwargs = object.kwargs.map(|kwargs| machine.tree().value(kwargs));
        let plain = kwargs.is_none_or(|kwargs| matches!(kwargs, Value::Dict(entries) if entries.is_empty()));
        let empty = matches!(machine.tree().value(object.args), Value::Tuple([]));
        let expected = plain
            && match usage {
                Use::Constant => false,
                Use::Class => empty,
                Use::Script => empty && object.construct == Construct::NewObj,
                Use::Function(rule) => {
                    object.construct == Construct::Reduce
                        && arguments::expected(self, machine, object, rule, event)?
                }
                Use::Container(rule) => arguments::expected(self, machine, object, rule, event)?,
            };
        if expected {
            return Ok(None);
        }
        let (module, name) = python2::modern(global.module, global.name);
        Ok(Some(Problem::UnexpectedUse { module: module.to_owned(), name: name.to_owned() }))
    }

    fn state(&self, machine: &Stream<'_>, target: ValueId, state: ValueId) -> Option<Problem> {
        let tree = machine.tree();
        let Value::Object(_) = tree.value(target) else {
            return Some(match tree.value(target) {
                Value::Global(_) | Value::Computed { .. } | Value::Extension(_) => Problem::StateOfName {},
                _ => Problem::UnexpectedState {},
            });
        };
        let global = tree.callee(target)?;
        let usage = self.usage(global)?; // Otherwise it was reported.
        let (module, name) = python2::modern(global.module, global.name);
        let has_state = match usage {
            Use::Container(_) | Use::Class | Use::Script => true,
            Use::Function(_) => (module, name) == ("copyreg", "_reconstructor"),
            Use::Constant => false,
        };
        // Slots: attributes are set one by one, whatever their names.
        let slots = matches!(tree.value(state), Value::Tuple([_, slots]) if matches!(tree.value(*slots), Value::Dict(_)));
        if has_state && !slots { None } else { Some(Problem::UnexpectedState {}) }
    }

    /// Remembers a type of NumPy: what its state refers to may change until the pickle ends.
    fn note_dtype(&mut self, machine: &Stream<'_>, offset: u64, target: ValueId) {
        if let Some(Global { module: "numpy", name: "dtype", .. }) = machine.tree().callee(target) {
            self.dtypes.push((target, offset));
        }
    }

    /// Judges the types of NumPy whose states were set: whether NumPy writes such states.
    pub(crate) fn judge_dtypes(&mut self, machine: &Stream<'_>) -> Result<(), Error> {
        self.dtypes.sort_unstable();
        self.dtypes.dedup_by_key(|(dtype, _)| *dtype);
        let unsound = joblib::unsound_dtype(machine, self.dtypes.iter().map(|(dtype, _)| *dtype))?;
        let found = self.dtypes.iter().find(|(dtype, _)| Some(*dtype) == unsound);
        if let Some(&(_, offset)) = found {
            self.add(offset, Opcode(b'b'), Problem::UnexpectedState {});
        }
        Ok(())
    }

    fn update(&self, machine: &Stream<'_>, target: ValueId) -> Option<Problem> {
        let tree = machine.tree();
        let Value::Object(object) = tree.value(target) else {
            return Some(match tree.value(target) {
                Value::Global(_) | Value::Computed { .. } | Value::Extension(_) => Problem::StateOfName {},
                _ => Problem::UnexpectedState {},
            });
        };
        let mut global = tree.callee(target)?;
        self.usage(global)?; // Otherwise it was reported.
        if python2::modern(global.module, global.name) == ("copyreg", "_reconstructor")
            && let Value::Tuple([class, ..]) = tree.value(object.args)
            && let Value::Global(class) = tree.value(*class)
        {
            global = class;
        }
        let container = match python2::modern(global.module, global.name) {
            ("collections", _) => true,
            ("builtins", name) => matches!(name, "list" | "dict" | "set" | "bytearray"),
            _ => false,
        };
        if container { None } else { Some(Problem::UnexpectedState {}) }
    }

    /// `('storage', class, key, location, number of elements, ...)`.
    fn persistent(
        &self,
        machine: &Stream<'_>,
        id: ValueId,
        legacy: &mut Legacy,
    ) -> Result<Option<Problem>, Error> {
        let tree = machine.tree();
        let known = self.origin != Origin::File || legacy.is_torch();
        if let Value::Tuple([kind, class, key, _, count, ..]) = tree.value(id)
            && known
            && text(machine, *kind)? == b"storage"
            && let (Value::Global(class), Value::Int(0..)) = (tree.value(*class), tree.value(*count))
        {
            legacy.storage(text(machine, *key)?, class.name);
            return Ok(None);
        }
        Ok(Some(Problem::PersistentId {}))
    }
}

/// A path of attributes that leads away from a module whose names are known, or through the insides of Python.
fn is_path(module: &str, name: &str) -> bool {
    let inside = |part: &str| part.starts_with("__") && part.ends_with("__");
    name.contains('.') && allowed::has_module(module) || name.split('.').any(inside)
}
