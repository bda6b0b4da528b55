//! States that `BUILD` sets, by class: attributes that shadow methods, hooks, members of layers.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Error, Event, Global, Opcode, Update, Value, ValueId, joblib, python2};

use crate::allowed::{Arguments, ESTIMATOR_METHODS, Kind, MODULE_METHODS, State, Use};
use crate::problem::Problem;
use crate::stream::{Pass, Stream, text};

/// Entries of a state that may be judged again and again, where one dict is the state of several objects.
const MAX_SHARED: usize = 64;

/// Content of a container of a layer or a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Members {
    /// Hooks: none.
    None,
    /// Tensors.
    Tensors,
    /// Layers.
    Layers,
}

/// Keys of the description of an array.
const WRAPPER: [&[u8]; 6] =
    [b"subclass", b"shape", b"order", b"dtype", b"allow_mmap", b"numpy_array_alignment_bytes"];

impl Pass<'_> {
    /// Judges a state, now: the loader copies it.
    pub(crate) fn state(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        target: ValueId,
        state: ValueId,
    ) -> Result<Option<Problem>, Error> {
        let tree = machine.tree();
        let Value::Object(_) = tree.value(target) else {
            return Ok(Some(match tree.value(target) {
                Value::Global(_) | Value::Computed { .. } | Value::Extension(_) => Problem::StateOfName {},
                _ => unexpected(String::new()),
            }));
        };
        let Some(callee) = tree.callee(target) else { return Ok(None) };
        let class = class_of(machine, target).unwrap_or(callee);
        // Otherwise it was reported.
        let Some(usage) = self.usage(class) else { return Ok(None) };
        let (module, name) = python2::modern(class.module, class.name);
        let rule = match usage {
            Use::Script => return Ok(None),
            Use::Class(rule) => rule,
            Use::Container(Arguments::Dtype) => {
                self.notes.dtypes.push((target, event.offset));
                State::Data
            }
            Use::Container(_) if module == "collections" => State::Metadata,
            Use::Function(Arguments::Object(..) | Arguments::Reconstruct) => State::Data,
            Use::Function(Arguments::Partial) => State::Partial,
            _ => State::None,
        };
        let found = self.unexpected_key(machine, event, state, rule, name)?;
        Ok(found.map(|key| unexpected(format!(": {module}.{name}{key}"))))
    }

    /// The key that a state may not have, with a dot, or an empty text if the state as a whole is not expected.
    pub(crate) fn unexpected_key(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        state: ValueId,
        rule: State,
        class: &str,
    ) -> Result<Option<String>, Error> {
        let tree = machine.tree();
        let refused = Ok(Some(String::new()));
        let entries = match (rule, tree.value(state)) {
            (State::None | State::Metadata | State::Attributes, Value::None) => return Ok(None),
            // With slots, attributes are set one by one, under any name.
            (State::None | State::Metadata | State::Attributes, Value::Tuple([attributes, slots]))
                if matches!((tree.value(*attributes), tree.value(*slots)), (Value::None, Value::None)) =>
            {
                return Ok(None);
            }
            (State::Data, Value::Tuple(_) | Value::Dict(_)) => return Ok(None),
            (State::Partial, Value::Tuple([function, args, keywords, attributes])) => {
                let is_expected = self.may_be_partial(machine, *function)
                    && matches!(tree.value(*args), Value::Tuple([]))
                    && matches!(tree.value(*keywords), Value::Dict(_))
                    && matches!(tree.value(*attributes), Value::None);
                return Ok((!is_expected).then(String::new));
            }
            (State::None | State::Data | State::Partial, _) => return refused,
            (_, Value::Dict(entries)) => entries,
            _ => return refused,
        };
        if entries.len() > MAX_SHARED && !self.notes.large.insert(state) {
            return refused;
        }
        for (key, value) in entries {
            let key = text(machine, key)?;
            if !self.attribute(machine, event, (state, value), rule, class, &key)? {
                return Ok(Some(format!(".{}", String::from_utf8_lossy(&key))));
            }
        }
        Ok(None)
    }

    /// Whether a function may lie in a `functools.partial`.
    pub(crate) fn may_be_partial(&self, machine: &Stream<'_>, function: ValueId) -> bool {
        matches!(machine.tree().value(function), Value::Global(_))
            && self.places(machine, function).contains(&"partial.func")
    }

    fn attribute(
        &mut self,
        machine: &Stream<'_>,
        event: Event,
        (state, value): (ValueId, ValueId),
        rule: State,
        class: &str,
        key: &[u8],
    ) -> Result<bool, Error> {
        let Ok(name) = core::str::from_utf8(key) else { return Ok(false) };
        if !is_attribute(name) {
            return Ok(false);
        }
        if self.is_code(machine, value) {
            let place = format!("{class}.{name}");
            let subclass = rule == State::Wrapper && name == "subclass";
            let expected = if subclass {
                self.is_kind(machine, event, ("", value), Kind::ArrayClass)?
            } else {
                self.places(machine, value).contains(&&*place)
            };
            if expected {
                self.notes.excused.push((state, value));
            }
            // Otherwise it is found where it lies.
            return Ok(true);
        }
        let is_none = matches!(machine.tree().value(value), Value::None);
        Ok(match rule {
            State::Metadata => name == "_metadata" && is_mapping(machine, value),
            State::Wrapper => WRAPPER.contains(&key),
            State::Estimator => match name {
                // A folder of pickles, and texts that are names of files.
                "memory" => is_none,
                "input" => text(machine, value)? == b"content",
                _ => !has(ESTIMATOR_METHODS, name),
            },
            State::Module => {
                let members = match name {
                    _ if name.contains("_hooks") => Some(Members::None),
                    "_parameters" | "_buffers" => Some(Members::Tensors),
                    "_modules" => Some(Members::Layers),
                    _ => None,
                };
                if let Some(members) = members {
                    self.notes.members.push((value, members, event.offset));
                }
                !has(MODULE_METHODS, name) && (members.is_some() || self.is_passive(machine, value))
            }
            _ => true,
        })
    }

    /// Whether a value of a layer is data: no object with attributes of its own.
    fn is_passive(&self, machine: &Stream<'_>, value: ValueId) -> bool {
        !matches!(machine.tree().value(value), Value::Object(_))
            || !matches!(self.made_of(machine, value), Some(Use::Class(_)))
    }

    /// The use of the class of an object, or of the function that made it.
    fn made_of(&self, machine: &Stream<'_>, object: ValueId) -> Option<Use> {
        class_of(machine, object).and_then(|class| self.usage(class))
    }

    /// Whether a value is the result of a function of tensors, or of a name that is not listed: that was reported.
    pub(crate) fn is_tensor(&self, machine: &Stream<'_>, value: ValueId) -> bool {
        class_of(machine, value).is_some_and(|class| {
            matches!(
                self.usage(class),
                None | Some(
                    Use::Function(Arguments::Tensor(..) | Arguments::FromType)
                        | Use::Container(Arguments::Tensor(..))
                )
            )
        })
    }

    fn is_layer(&self, machine: &Stream<'_>, value: ValueId) -> bool {
        class_of(machine, value)
            .is_some_and(|class| matches!(self.usage(class), None | Some(Use::Class(State::Module))))
    }

    /// Judges containers of members when all of these are known.
    pub(crate) fn judge_members(
        &mut self,
        machine: &Stream<'_>,
        members: &mut Vec<(ValueId, Members, u64)>,
    ) -> Result<(), Error> {
        members.sort_unstable();
        members.dedup_by_key(|(container, members, _)| (*container, *members));
        for (container, members, offset) in members.iter().copied() {
            if !self.has_members(machine, container, members)? {
                let what = match members {
                    Members::None => ": hooks",
                    Members::Tensors => ": parameters that are not tensors",
                    Members::Layers => ": members that are not layers",
                };
                self.add(offset, Opcode(b'b'), unexpected(what.into()));
            }
        }
        Ok(())
    }

    fn has_members(
        &mut self,
        machine: &Stream<'_>,
        container: ValueId,
        members: Members,
    ) -> Result<bool, Error> {
        let tree = machine.tree();
        if members == Members::None && matches!(tree.value(container), Value::None) {
            return Ok(true);
        }
        if !is_mapping(machine, container) {
            return Ok(false);
        }
        if let Value::Object(object) = tree.value(container)
            && let Value::Tuple([items]) = tree.value(object.args)
            && let Value::List(_) | Value::Dict(_) = tree.value(*items)
            && !self.notes.large.insert(*items)
        {
            return Ok(false);
        }
        let this = &*self;
        let member = |key: ValueId, value: ValueId| -> Result<bool, Error> {
            let key = text(machine, key)?;
            let is_name =
                core::str::from_utf8(&key).is_ok_and(|key| is_attribute(key) && !has(MODULE_METHODS, key));
            let is_member = match members {
                Members::None => false,
                Members::Tensors => this.is_tensor(machine, value),
                Members::Layers => this.is_layer(machine, value),
            };
            Ok(is_name && (is_member || members != Members::None && matches!(tree.value(value), Value::None)))
        };
        match tree.value(container) {
            Value::Dict(entries) => all(entries, member),
            Value::Object(object) => {
                let first = match tree.value(object.args) {
                    Value::Tuple([]) => true,
                    Value::Tuple([items]) => match tree.value(*items) {
                        Value::Dict(entries) => all(entries, member)?,
                        Value::List(items) => {
                            let mut pairs = items.map(|item| pair(machine, item));
                            pairs.all(|pair| pair.is_some())
                                && all(items.filter_map(|item| pair(machine, item)), member)?
                        }
                        _ => false,
                    },
                    _ => false,
                };
                let items = object.updates.filter(|update| !matches!(update, Update::State(_)));
                let items = items.map(|update| match update {
                    Update::SetItem(key, value) => (key, value),
                    Update::Append(item) | Update::Add(item) | Update::State(item) => (item, item),
                });
                Ok(first && all(items, member)?)
            }
            _ => Ok(false),
        }
    }

    /// Judges the types of NumPy whose states were set: whether NumPy writes such states.
    pub(crate) fn judge_dtypes(
        &mut self,
        machine: &Stream<'_>,
        dtypes: &mut Vec<(ValueId, u64)>,
    ) -> Result<(), Error> {
        dtypes.sort_unstable();
        dtypes.dedup_by_key(|(dtype, _)| *dtype);
        let unsound = joblib::unsound_dtype(machine, dtypes.iter().map(|(dtype, _)| *dtype))?;
        let found = dtypes.iter().find(|(dtype, _)| Some(*dtype) == unsound);
        if let Some(&(_, offset)) = found {
            self.add(offset, Opcode(b'b'), unexpected(String::new()));
        }
        Ok(())
    }
}

pub(crate) const fn unexpected(what: String) -> Problem {
    Problem::UnexpectedState { what }
}

/// A name that no class has for itself.
fn is_attribute(name: &str) -> bool {
    !(name.is_empty() || name.starts_with("__") && name.ends_with("__"))
}

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

/// Whether a name is this one of Python 3.
pub(crate) fn is_name(global: Global<'_>, module: &str, name: &str) -> bool {
    global.name == name && python2::modern(global.module, name) == (module, name)
}

/// The class of an object, or the function that made it.
pub(crate) fn class_of<'t>(machine: &'t Stream<'_>, object: ValueId) -> Option<Global<'t>> {
    let tree = machine.tree();
    let callee = tree.callee(object)?;
    if is_name(callee, "copyreg", "_reconstructor")
        && let Value::Object(object) = tree.value(object)
        && let Value::Tuple([class, ..]) = tree.value(object.args)
        && let Value::Global(class) = tree.value(*class)
    {
        return Some(class);
    }
    Some(callee)
}

/// The attributes and the slots of a tensor.
pub(crate) fn attributes_and_slots(machine: &Stream<'_>, state: ValueId) -> Option<[ValueId; 2]> {
    match machine.tree().value(state) {
        Value::Tuple([attributes, slots]) => Some([*attributes, *slots]),
        _ => None,
    }
}

/// A dict or an ordered one.
fn is_mapping(machine: &Stream<'_>, value: ValueId) -> bool {
    match machine.tree().value(value) {
        Value::Dict(_) => true,
        Value::Object(_) => class_of(machine, value).is_some_and(|class| {
            is_name(class, "collections", "OrderedDict") || is_name(class, "builtins", "dict")
        }),
        _ => false,
    }
}

/// Key and value in a list or tuple, as Python 2 writes ordered dicts.
fn pair(machine: &Stream<'_>, item: ValueId) -> Option<(ValueId, ValueId)> {
    match machine.tree().value(item) {
        Value::List(mut items) if items.len() == 2 => items.next().zip(items.next()),
        Value::Tuple([key, value]) => Some((*key, *value)),
        _ => None,
    }
}

fn all(
    mut items: impl Iterator<Item = (ValueId, ValueId)>,
    member: impl Fn(ValueId, ValueId) -> Result<bool, Error>,
) -> Result<bool, Error> {
    items.try_fold(true, |so_far, (key, value)| Ok(so_far && member(key, value)?))
}
