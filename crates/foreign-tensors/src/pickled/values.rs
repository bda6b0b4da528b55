//! What values consist of.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::{Entries, Items, Update, Updates, Value, ValueId};

use crate::error::Error;
use crate::pickled::Pickle;

/// Names of submodules and tensors are short.
const MAX_KEY: u64 = 1 << 16;

/// The name of a part.
pub(crate) enum Key {
    Of(ValueId),
    Index(u64),
}

/// Parts that come one after the other.
enum Series<'t> {
    Pairs(Entries<'t>),
    Items(Items<'t>, u64),
    Slice(core::slice::Iter<'t, ValueId>, u64),
    /// What was put into an object.
    Updates(Updates<'t>, u64),
    /// A list of pairs.
    PairList(Items<'t>),
}

/// The parts of a value.
pub(crate) struct Parts<'t> {
    /// The last one comes first.
    series: Vec<Series<'t>>,
    /// Of a module: parts that are none are left out, and so are these.
    module: Option<BTreeSet<String>>,
    /// Values that were visited to know this.
    pub(crate) cost: u64,
}

/// How a value is read.
pub(crate) enum Kind<'t> {
    /// By its parts.
    Parts(Parts<'t>),
    /// As another value.
    Same(ValueId),
    /// By its attributes and the arguments that it was constructed from, which may not be all of it.
    Object(Parts<'t>),
    /// A module of PyTorch by its tensors and submodules.
    Module(Parts<'t>),
    /// It has no parts.
    Scalar,
}

impl<'t> Pickle<'t> {
    /// What a value consists of.
    pub(crate) fn kind(&self, id: ValueId) -> Result<Kind<'_>, Error> {
        let one = |series| Parts { series: [series].into(), module: None, cost: 0 };
        Ok(match self.tree.value(id) {
            Value::Dict(pairs) => Kind::Parts(one(Series::Pairs(pairs))),
            Value::List(items) => Kind::Parts(one(Series::Items(items, 0))),
            Value::Tuple(items) => Kind::Parts(one(Series::Slice(items.iter(), 0))),
            Value::Set(items) => Kind::Parts(one(Series::Items(items, 0))),
            Value::FrozenSet(items) => Kind::Parts(one(Series::Slice(items.iter(), 0))),
            Value::Object(object) => {
                let args = self.args(id);
                match self.callee(id) {
                    Some(
                        ("collections", "OrderedDict" | "Counter" | "defaultdict") | ("builtins", "dict"),
                    ) => {
                        let mut series = alloc::vec![Series::Updates(object.updates, 0)];
                        match args.last().map(|&arg| self.tree.value(arg)) {
                            Some(Value::List(pairs)) => series.push(Series::PairList(pairs)),
                            Some(Value::Dict(pairs)) => series.push(Series::Pairs(pairs)),
                            _ => {}
                        }
                        Kind::Parts(Parts { series, module: None, cost: 0 })
                    }
                    Some(("builtins", "tuple" | "list" | "set" | "frozenset") | ("collections", "deque")) => {
                        match args.first() {
                            Some(&items) => match self.paddle(items) {
                                Some(array) => Kind::Same(array),
                                None => Kind::Same(items),
                            },
                            None => Kind::Parts(one(Series::Updates(object.updates, 0))),
                        }
                    }
                    Some((
                        "torch.jit._pickle",
                        "build_intlist" | "build_tensorlist" | "build_boollist" | "build_doublelist"
                        | "restore_type_tag",
                    )) => args.first().map_or(Kind::Scalar, |&list| Kind::Same(list)),
                    Some(
                        (
                            "numpy.core.multiarray"
                            | "numpy._core.multiarray"
                            | "pathlib"
                            | "pathlib._local"
                            | "datetime"
                            | "_codecs"
                            | "numpy",
                            _,
                        )
                        | ("torch", "device" | "Size"),
                    ) => Kind::Scalar,
                    Some(("copyreg", "_reconstructor")) => {
                        // `(class, object, None)`, or with a dict or list that is the base.
                        let base = args.get(2).map(|&base| self.tree.value(base));
                        let parts = self.attributes(object.updates, base);
                        self.module(object.updates)?.map_or(Kind::Object(parts), Kind::Module)
                    }
                    _ => {
                        let mut parts = self.attributes(object.updates, None);
                        // Named tuples and the like.
                        parts.series.push(Series::Slice(args.iter(), 0));
                        self.module(object.updates)?.map_or(Kind::Object(parts), Kind::Module)
                    }
                }
            }
            _ => Kind::Scalar,
        })
    }

    /// The name and the array that Paddle makes of a tensor: the array.
    pub(crate) fn paddle(&self, items: ValueId) -> Option<ValueId> {
        let Value::Tuple([name, array]) = self.tree.value(items) else { return None };
        let is_name = matches!(self.tree.value(*name), Value::Str(_) | Value::Str2(_));
        let is_array = matches!(self.callee(*array), Some((_, "_reconstruct" | "_frombuffer")));
        (is_name && is_array).then_some(*array)
    }

    /// What was set and put into an object.
    fn attributes<'p>(&'p self, updates: Updates<'p>, base: Option<Value<'p>>) -> Parts<'p> {
        let mut series = alloc::vec![Series::Updates(updates, 0)];
        match base {
            Some(Value::Dict(pairs)) => series.push(Series::Pairs(pairs)),
            Some(Value::List(items)) => series.push(Series::Items(items, 0)),
            _ => {}
        }
        for state in updates.filter_map(state) {
            match self.tree.value(state) {
                Value::Dict(pairs) => series.push(Series::Pairs(pairs)),
                // With the attributes of slots.
                Value::Tuple(&[attributes, slots]) => {
                    for part in [attributes, slots] {
                        if let Value::Dict(pairs) = self.tree.value(part) {
                            series.push(Series::Pairs(pairs));
                        }
                    }
                }
                _ => {}
            }
        }
        let cost = series.len() as u64;
        Parts { series, module: None, cost }
    }

    /// Parameters, buffers and submodules, if these are the attributes of a module.
    fn module<'p>(&'p self, updates: Updates<'p>) -> Result<Option<Parts<'p>>, Error> {
        let Some(state) = updates.filter_map(state).last() else { return Ok(None) };
        let Value::Dict(pairs) = self.tree.value(state) else { return Ok(None) };
        let mut found = [None; 4];
        for (key, value) in pairs {
            let (Value::Str(span) | Value::Str2(span)) = self.tree.value(key) else { continue };
            if span.len() > 32 || span.is_empty() {
                continue;
            }
            let place = match &*self.bytes(span, 32)? {
                b"_parameters" => 0,
                b"_buffers" => 1,
                b"_modules" => 2,
                b"_non_persistent_buffers_set" => 3,
                _ => continue,
            };
            if let Some(found) = found.get_mut(place) {
                *found = Some(value);
            }
        }
        let [Some(parameters), Some(buffers), Some(modules), temporary] = found else { return Ok(None) };
        let mut left_out = BTreeSet::new();
        let cost = pairs.len();
        let items: Vec<ValueId> = match temporary.map(|set| self.tree.value(set)) {
            Some(Value::Set(items)) => items.collect(),
            Some(Value::Object(_)) => {
                match temporary.and_then(|set| self.args(set).first()).map(|&list| self.tree.value(list)) {
                    Some(Value::List(items)) => items.collect(),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        };
        let cost = (cost + items.len()) as u64;
        for item in items {
            left_out.extend(self.text(item, MAX_KEY)?);
        }
        let mut series = Vec::new();
        for part in [modules, buffers, parameters] {
            match self.tree.value(part) {
                Value::Dict(pairs) => series.push(Series::Pairs(pairs)),
                Value::Object(object) => {
                    series.push(Series::Updates(object.updates, 0));
                    if let Some(Value::List(pairs)) = self.args(part).first().map(|&arg| self.tree.value(arg))
                    {
                        series.push(Series::PairList(pairs));
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok(Some(Parts { series, module: Some(left_out), cost }))
    }

    /// The next part. Those of a module that are none are passed.
    pub(crate) fn next_part(&self, parts: &mut Parts<'_>) -> Result<Option<(Key, ValueId)>, Error> {
        loop {
            let Some((key, value)) = self.next_of(&mut parts.series) else { return Ok(None) };
            let Some(left_out) = &parts.module else { return Ok(Some((key, value))) };
            if matches!(self.tree.value(value), Value::None) {
                continue;
            }
            if let (Key::Of(name), false) = (&key, left_out.is_empty())
                && self.text(*name, MAX_KEY)?.is_some_and(|name| left_out.contains(&name))
            {
                continue;
            }
            return Ok(Some((key, value)));
        }
    }

    fn next_of(&self, series: &mut Vec<Series<'_>>) -> Option<(Key, ValueId)> {
        loop {
            let next = match series.last_mut()? {
                Series::Pairs(pairs) => pairs.next().map(|(key, value)| (Key::Of(key), value)),
                Series::Items(items, number) => items.next().map(|value| (count(number), value)),
                Series::Slice(items, number) => items.next().map(|&value| (count(number), value)),
                Series::Updates(updates, number) => updates.find_map(|update| match update {
                    Update::SetItem(key, value) => Some((Key::Of(key), value)),
                    Update::Append(value) | Update::Add(value) => Some((count(number), value)),
                    Update::State(_) => None,
                }),
                Series::PairList(pairs) => pairs.find_map(|pair| match self.tree.value(pair) {
                    Value::Tuple(&[key, value]) => Some((Key::Of(key), value)),
                    Value::List(mut items) if items.len() == 2 => {
                        Some((Key::Of(items.next()?), items.next()?))
                    }
                    _ => None,
                }),
            };
            if next.is_some() {
                return next;
            }
            series.pop();
        }
    }
}

fn state(update: Update) -> Option<ValueId> {
    match update {
        Update::State(state) => Some(state),
        _ => None,
    }
}

fn count(number: &mut u64) -> Key {
    *number += 1;
    Key::Index(*number - 1)
}
