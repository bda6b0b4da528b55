//! Places of names: code may be called, and be an argument or the value of an attribute that expects it, and nothing else.
//!
//! Containers may change until a pickle ends. So places are judged then, over all values: a value that is dropped may have been used.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use pickle_core::{Error, Global, Opcode, Update, Value, ValueId, python2};

use crate::allowed::{Arguments, State, Use};
use crate::denied;
use crate::problem::Problem;
use crate::states::{Members, is_name};
use crate::stream::{Pass, Stream};

/// Notes on a pickle until it ends.
#[derive(Default)]
pub(crate) struct Notes {
    /// Index of its first value.
    pub(crate) first: usize,
    /// Values that are code, in the order of the tree, and where they come from.
    pub(crate) code: Vec<(ValueId, Opcode, u64)>,
    /// Containers whose members are restricted.
    pub(crate) members: Vec<(ValueId, Members, u64)>,
    /// States and values in them that are code and may be.
    pub(crate) excused: Vec<(ValueId, ValueId)>,
    /// Large states that were judged: no second time, which would take time without bound.
    pub(crate) large: BTreeSet<ValueId>,
    /// Bytes that were scanned as files.
    pub(crate) read: BTreeSet<ValueId>,
    /// Types of NumPy whose states were set, and where.
    pub(crate) dtypes: Vec<(ValueId, u64)>,
}

/// Arguments of a call that may be containers: calls with more of them have been found, since no function takes them.
const MAX_ARGS: usize = 16;

/// Attributes whose values may be classes: of splitters that repeat others.
const SPLITTERS: &[&str] = &["RepeatedKFold.cv", "RepeatedStratifiedKFold.cv"];

/// Attributes whose values may be a `functools.partial`.
const PARTIALS: &[&str] = &["FunctionTransformer.func"];

impl Pass<'_> {
    /// Whether a value is code by itself: a listed function or class, what makes others call one, or what reaches any name.
    pub(crate) fn is_code(&self, machine: &Stream<'_>, value: ValueId) -> bool {
        match machine.tree().value(value) {
            Value::Global(global) => {
                !self.is_trusted(global)
                    && (is_getattr(global) || self.usage(global).is_some_and(Use::is_code))
            }
            Value::Object(_) => self.makes(machine, value) == Some(Use::Function(Arguments::Partial)),
            _ => false,
        }
    }

    /// The use of the name that was called to make an object.
    pub(crate) fn makes(&self, machine: &Stream<'_>, object: ValueId) -> Option<Use> {
        machine.tree().callee(object).and_then(|global| self.usage(global))
    }

    /// Attributes that code may be the value of.
    pub(crate) fn places(&self, machine: &Stream<'_>, value: ValueId) -> &'static [&'static str] {
        let Value::Global(global) = machine.tree().value(value) else { return PARTIALS };
        match self.usage(global) {
            Some(Use::Value(places)) => places,
            Some(Use::Class(State::Estimator)) if global.name.ends_with("KFold") => SPLITTERS,
            _ => &[],
        }
    }

    /// Judges a pickle that has ended, with its value, or has broken off.
    pub(crate) fn judge(&mut self, machine: &Stream<'_>, root: Option<ValueId>) -> Result<(), Error> {
        let mut notes = core::mem::take(&mut self.notes);
        self.judge_members(machine, &mut notes.members)?;
        self.judge_places(machine, &mut notes, root);
        self.judge_bytes(machine, &mut notes)?;
        self.judge_dtypes(machine, &mut notes.dtypes)
    }

    fn judge_places(&mut self, machine: &Stream<'_>, notes: &mut Notes, root: Option<ValueId>) {
        notes.excused.sort_unstable();
        let holders = holders(machine, notes);
        if holders.is_empty() {
            return;
        }
        let mut misplaced = Vec::new();
        let mut place = |value: ValueId| misplaced.extend(code_of(&holders, value));
        root.into_iter().for_each(&mut place);
        for id in machine.tree().ids(notes.first) {
            match machine.tree().value(id) {
                Value::List(items) | Value::Set(items) => items.for_each(&mut place),
                Value::FrozenSet(items) => items.iter().copied().for_each(&mut place),
                Value::Dict(entries) => {
                    for (key, value) in entries {
                        place(key);
                        if notes.excused.binary_search(&(id, value)).is_err() {
                            place(value);
                        }
                    }
                }
                // The class of a storage is the second.
                Value::Persistent(id) => match machine.tree().value(id) {
                    Value::Tuple([kind, _, rest @ ..]) => {
                        [kind].into_iter().chain(rest).take(MAX_ARGS).copied().for_each(&mut place);
                    }
                    _ => place(id),
                },
                Value::Object(object) => {
                    let makes = self.makes(machine, id);
                    // Names among arguments were judged at the call; tuples and dicts were not.
                    if let Value::Tuple(args) = machine.tree().value(object.args) {
                        let nested = match (makes, args) {
                            (Some(Use::Function(Arguments::FromType)), [_, _, args, _]) => Some(*args),
                            _ => None,
                        };
                        let args = args.iter().filter(|arg| Some(**arg) != nested);
                        let nested = nested.map(|nested| machine.tree().value(nested));
                        let nested = if let Some(Value::Tuple(args)) = nested { args } else { &[] };
                        let args = args.take(MAX_ARGS).chain(nested.iter().take(MAX_ARGS));
                        let args = args.filter(|arg| is_container(machine, **arg));
                        args.copied().for_each(&mut place);
                    }
                    for update in object.updates {
                        match update {
                            Update::State(state) => {
                                let is_judged = makes == Some(Use::Function(Arguments::Partial))
                                    || matches!(machine.tree().value(state), Value::Dict(_));
                                if !is_judged {
                                    place(state);
                                }
                            }
                            Update::Append(item) | Update::Add(item) => place(item),
                            Update::SetItem(key, value) => [key, value].into_iter().for_each(&mut place),
                        }
                    }
                }
                _ => {}
            }
        }
        misplaced.sort_unstable();
        misplaced.dedup();
        for code in misplaced {
            self.misplaced(machine, notes, code);
        }
    }

    fn misplaced(&mut self, machine: &Stream<'_>, notes: &Notes, code: ValueId) {
        let Ok(idx) = notes.code.binary_search_by_key(&code, |(id, ..)| *id) else { return };
        let Some(&(_, opcode, offset)) = notes.code.get(idx) else { return };
        let global = match machine.tree().value(code) {
            Value::Global(global) => Some(global),
            _ => machine.tree().callee(code),
        };
        let Some(global) = global else { return };
        self.add(offset, opcode, misuse(global));
    }
}

/// A name in a place where it may not be, or called as it may not be.
pub(crate) fn misuse(global: Global<'_>) -> Problem {
    let (module, name) = python2::modern(global.module, global.name);
    let (owned_module, owned_name) = (module.to_owned(), name.to_owned());
    match denied::reason(module, name).filter(|_| is_getattr(global)) {
        Some(reason) => Problem::DangerousName { module: owned_module, name: owned_name, reason },
        None => Problem::UnexpectedUse { module: owned_module, name: owned_name },
    }
}

/// `builtins.getattr`, which distributions of SciPy are pickled with.
pub(crate) fn is_getattr(global: Global<'_>) -> bool {
    is_name(global, "builtins", "getattr")
}

fn is_container(machine: &Stream<'_>, value: ValueId) -> bool {
    matches!(machine.tree().value(value), Value::Tuple(_) | Value::Dict(_))
}

/// Code, the states that hold some, and tuples of these, each with the code that it holds: in the order of the tree, where a tuple comes after
/// its items.
fn holders(machine: &Stream<'_>, notes: &Notes) -> Vec<(ValueId, ValueId)> {
    let mut holders: Vec<(ValueId, ValueId)> = Vec::new();
    if notes.code.is_empty() {
        return holders;
    }
    for id in machine.tree().ids(notes.first) {
        let code = match machine.tree().value(id) {
            Value::Tuple(items) => items.iter().find_map(|item| code_of(&holders, *item)),
            Value::Dict(_) => excused(notes, id),
            Value::Global(_) | Value::Object(_) => {
                notes.code.binary_search_by_key(&id, |(code, ..)| *code).is_ok().then_some(id)
            }
            _ => None,
        };
        holders.extend(code.map(|code| (id, code)));
    }
    holders
}

fn code_of(holders: &[(ValueId, ValueId)], value: ValueId) -> Option<ValueId> {
    let found = holders.binary_search_by_key(&value, |(id, _)| *id);
    found.ok().and_then(|idx| holders.get(idx)).map(|(_, code)| *code)
}

/// Code that a state may hold.
fn excused(notes: &Notes, state: ValueId) -> Option<ValueId> {
    let at = notes.excused.partition_point(|(excused, _)| *excused < state);
    notes.excused.get(at).filter(|(excused, _)| *excused == state).map(|(_, value)| *value)
}
