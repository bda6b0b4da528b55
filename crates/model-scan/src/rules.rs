//! What each event means.

use alloc::borrow::ToOwned;
use alloc::string::String;

use pickle_core::{Construct, Error, Event, EventKind, Global, Value, ValueId, python2};

use crate::allowed::{self, Arguments, Use};
use crate::denied;
use crate::legacy::Legacy;
use crate::places::{is_getattr, misuse};
use crate::problem::Problem;
use crate::report::{Name, Origin, Standing};
use crate::states::{class_of, unexpected};
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
            EventKind::Call { object } => self.call(machine, event, object)?,
            EventKind::Build { target, state } => self.state(machine, event, target, state)?,
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
        if self.is_code(machine, value) {
            self.notes.code.push((value, event.opcode, event.offset));
        }
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

    pub(crate) fn standing(&self, global: Global<'_>) -> Standing {
        let (module, name) = python2::modern(global.module, global.name);
        if self.usage(global).is_some() {
            Standing::Allowed
        } else if self.is_trusted(global) {
            Standing::Trusted
        } else if is_getattr(global) {
            // What it is called with decides: see `attribute`.
            Standing::Unknown
        } else if denied::reason(module, name).is_some() || is_path(module, name) {
            Standing::Dangerous
        } else {
            Standing::Unknown
        }
    }

    pub(crate) fn is_trusted(&self, global: Global<'_>) -> bool {
        let is_pair = |pair: &(&str, &str)| {
            *pair == (global.module, global.name) || *pair == python2::modern(global.module, global.name)
        };
        self.options.allow.iter().any(is_pair)
    }

    pub(crate) fn usage(&self, global: Global<'_>) -> Option<Use> {
        let (module, name) = python2::modern(global.module, global.name);
        let usage = allowed::usage(module, name);
        usage.filter(|usage| *usage != Use::Script || self.origin == Origin::TorchScript)
    }

    fn call(&mut self, machine: &Stream<'_>, event: Event, value: ValueId) -> Result<Option<Problem>, Error> {
        let tree = machine.tree();
        let Value::Object(object) = tree.value(value) else { return Ok(None) };
        let global = match tree.value(object.callable) {
            Value::Global(global) => global,
            Value::Extension(_) => return Ok(None), // Reported where it is resolved.
            Value::Object(_) | Value::Computed { .. } => {
                return Ok(Some(Problem::ComputedCall {}));
            }
            _ => return Ok(Some(unexpected(String::new()))),
        };
        if is_getattr(global) && !self.is_trusted(global) && !is_distribution(machine, object.args)? {
            return Ok(Some(misuse(global)));
        }
        // A name that is not allowed was reported where it is resolved.
        let Some(usage) = self.usage(global) else { return Ok(None) };
        let kwargs = object.kwargs.map(|kwargs| tree.value(kwargs));
        let plain = kwargs.is_none_or(|kwargs| matches!(kwargs, Value::Dict(entries) if entries.is_empty()));
        let empty = matches!(tree.value(object.args), Value::Tuple([]));
        let (module, _) = python2::modern(global.module, global.name);
        let expected = plain
            && match usage {
                Use::Constant | Use::Argument | Use::Value(_) => false,
                Use::Class(_) => empty,
                Use::Script => empty && object.construct == Construct::NewObj,
                Use::Function(rule) => {
                    object.construct == Construct::Reduce
                        && self.expected(machine, event, (module, &object), rule)?
                }
                Use::Container(rule) | Use::Type(rule) => {
                    self.expected(machine, event, (module, &object), rule)?
                }
            };
        if usage == Use::Function(Arguments::Partial) {
            self.notes.code.push((value, event.opcode, event.offset));
        }
        Ok((!expected).then(|| misuse(global)))
    }

    fn update(&self, machine: &Stream<'_>, target: ValueId) -> Option<Problem> {
        let tree = machine.tree();
        let Value::Object(_) = tree.value(target) else {
            return Some(match tree.value(target) {
                Value::Global(_) | Value::Computed { .. } | Value::Extension(_) => Problem::StateOfName {},
                _ => unexpected(String::new()),
            });
        };
        let global = class_of(machine, target)?;
        self.usage(global)?; // Otherwise it was reported.
        let container = match python2::modern(global.module, global.name) {
            ("collections", _) | ("sklearn.utils._bunch", "Bunch") => true,
            ("builtins", name) => matches!(name, "list" | "dict" | "set" | "bytearray"),
            _ => false,
        };
        if container { None } else { Some(unexpected(String::new())) }
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
        if let Value::Tuple([kind, class, key, _, count, rest @ ..]) = tree.value(id)
            && known
            && rest.len() <= 2
            && text(machine, *kind)? == b"storage"
            && let (Value::Global(class), Value::Int(0..)) = (tree.value(*class), tree.value(*count))
            && matches!(self.usage(class), None | Some(Use::Argument))
        {
            legacy.storage(text(machine, *key)?, class.name);
            return Ok(None);
        }
        Ok(Some(Problem::PersistentId {}))
    }
}

/// `(distribution, name)`: how SciPy pickles methods of its distributions, whose classes are not listed.
fn is_distribution(machine: &Stream<'_>, args: ValueId) -> Result<bool, Error> {
    let Value::Tuple([object, name]) = machine.tree().value(args) else { return Ok(false) };
    let class = class_of(machine, *object).map(|class| class.module);
    let name = text(machine, *name)?;
    Ok(class.is_some_and(|module| module.starts_with("scipy.stats._"))
        && !name.is_empty()
        && !name.starts_with(b"__"))
}

/// A path of attributes that leads away from a module whose names are known, or through the insides of Python.
fn is_path(module: &str, name: &str) -> bool {
    let inside = |part: &str| part.starts_with("__") && part.ends_with("__");
    name.contains('.') && allowed::has_module(module) || name.split('.').any(inside)
}
