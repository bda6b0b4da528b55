//! From a tree of values to tensors with names.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use located_error::Subject;
use pickle_core::{Value, ValueId};

use crate::error::{Error, ErrorKind};
use crate::model::Model;
use crate::numpy::strings::STRINGS;
use crate::options::Options;
use crate::pickled::json::writer;
use crate::pickled::values::{Key, Kind, Parts};
use crate::pickled::{Found, Pickle, Storages, dotted};
use crate::tensor::Tensor;

/// Longest key.
const MAX_KEY: u64 = 1 << 16;

/// Keys that an error lists.
const MAX_LISTED: usize = 64;

/// Notes of a file. More of them help no one.
const MAX_NOTES: usize = 200;

/// Visits of values that any file may cost; each value may be visited several times.
const MIN_STEPS: u64 = 1 << 16;

/// A value stands for another one at most so often: a parameter for a tensor, a list for a tuple.
const MAX_HOPS: usize = 8;

/// Adds all tensors below `root` to the model, and what else is there as JSON.
pub(crate) fn walk(
    pickle: &Pickle<'_>,
    root: ValueId,
    storages: &dyn Storages,
    options: &Options,
    model: &mut Model,
) -> Result<(), Error> {
    let mut walker = Walker {
        pickle,
        storages,
        options,
        model,
        path: String::new(),
        steps: options.limits.steps.min(MIN_STEPS + 64 * pickle.tree.len() as u64),
        names: 0,
        values: 0,
        n_notes: 0,
    };
    let root = walker.find(root)?;
    walker.run(root)?;
    model.tie();
    Ok(())
}

struct Walker<'w, 's> {
    pickle: &'w Pickle<'s>,
    storages: &'w dyn Storages,
    options: &'w Options,
    model: &'w mut Model,
    path: String,
    steps: u64,
    /// Bytes of the names of tensors.
    names: u64,
    /// Bytes of what is kept beside the tensors, with the names of it.
    values: u64,
    n_notes: usize,
}

impl<'w> Walker<'w, '_> {
    fn run(&mut self, root: ValueId) -> Result<(), Error> {
        let mut open: Vec<(Parts<'w>, usize, bool)> = Vec::new();
        if let Some(parts) = self.visit(root)? {
            open.push((parts, 0, true));
        }
        loop {
            let Some((parts, len, is_root)) = open.last_mut() else { return Ok(()) };
            let (len, is_root) = (*len, *is_root);
            self.path.truncate(len);
            let Some((key, value)) = self.pickle.next_part(parts)? else {
                open.pop();
                continue;
            };
            if !self.descend(&key, is_root)? {
                continue;
            }
            if let Some(parts) = self.visit(value)? {
                if open.len() >= self.options.limits.depth {
                    return Err(limit("depth", self.options.limits.depth as u64).of(Subject::key(&self.path)));
                }
                open.push((parts, self.path.len(), false));
            }
        }
    }

    /// Counts visits of values.
    fn charge(&mut self, visits: u64) -> Result<(), Error> {
        let steps = self.steps.checked_sub(visits);
        self.steps = steps.ok_or_else(|| limit("steps", self.options.limits.steps))?;
        Ok(())
    }

    /// Appends a key to the path; not if it has no spelling there.
    fn descend(&mut self, key: &Key, is_root: bool) -> Result<bool, Error> {
        let Some(part) = self.key(key)? else {
            self.note("an entry whose key is neither text nor a number is left out");
            return Ok(false);
        };
        if !is_root {
            self.path.push('.');
        }
        self.path.push_str(&part);
        Ok(true)
    }

    fn key(&self, key: &Key) -> Result<Option<String>, Error> {
        let id = match key {
            Key::Index(number) => return Ok(Some(number.to_string())),
            Key::Of(id) => *id,
        };
        Ok(match self.pickle.tree.value(id) {
            Value::Int(number) => Some(number.to_string()),
            Value::Bool(value) => Some(String::from(if value { "True" } else { "False" })),
            Value::None => Some(String::from("None")),
            _ => self.pickle.text(id, MAX_KEY)?,
        })
    }

    /// Adds a tensor or an entry, or returns the parts of the value.
    fn visit(&mut self, id: ValueId) -> Result<Option<Parts<'w>>, Error> {
        self.charge(1)?;
        let mut id = id;
        for _ in 0..MAX_HOPS {
            if self.add_objects(id)? {
                return Ok(None);
            }
            let found = self.pickle.tensor(id, self.storages, self.options);
            if let Some(found) = found.map_err(|error| error.of(Subject::tensor(&self.path)))? {
                self.add(found)?;
                return Ok(None);
            }
            match self.pickle.kind(id)? {
                Kind::Same(other) => {
                    if self.is_paddle_bf16(id, other)? {
                        return Ok(None);
                    }
                    id = other;
                }
                Kind::Parts(parts) => {
                    return Ok(if self.add_list(self.pickle, id)? { None } else { Some(parts) });
                }
                Kind::Object(parts) => {
                    self.charge(parts.cost)?;
                    let (module, name) = self.pickle.callee(id).unwrap_or(("", "?"));
                    let (module, name) = match self.pickle.args(id).first() {
                        Some(&class) if name == "_reconstructor" => {
                            self.pickle.global(class).unwrap_or((module, name))
                        }
                        _ => (module, name),
                    };
                    let is_data =
                        module.starts_with("__torch__") || (module, name) == ("argparse", "Namespace");
                    if !is_data {
                        self.model.add_class(dotted(module, name));
                        let text = format!(
                            "an object of the class {module}.{name}: its attributes and arguments are read, nothing else of it"
                        );
                        self.note(&text);
                    }
                    return Ok(Some(parts));
                }
                Kind::Module(parts) => {
                    self.charge(parts.cost)?;
                    if self.path.is_empty() {
                        self.note(
                            "a module: its parameters, buffers and submodules are read, nothing else of it",
                        );
                    }
                    return Ok(Some(parts));
                }
                Kind::Scalar => {
                    let mut json = writer();
                    if self.pickle.write_scalar(id, &mut json, self.options)? {
                        self.entry(json.finish());
                    } else {
                        self.note("a value without a form in JSON is left out");
                    }
                    return Ok(None);
                }
            }
        }
        Err(Error::malformed("a value that stands for a value again and again"))
    }

    /// Paddle stores bfloat16 as 16-bit integers; it has no such integers.
    fn is_paddle_bf16(&mut self, tuple: ValueId, array: ValueId) -> Result<bool, Error> {
        let is_paddle =
            self.pickle.args(tuple).first().is_some_and(|&items| self.pickle.paddle(items) == Some(array));
        if !is_paddle {
            return Ok(false);
        }
        let bf16 = crate::ElementType::Known(tensor_dtype::Dtype::Bf16);
        let u16 = crate::ElementType::Known(tensor_dtype::Dtype::U16);
        match self.pickle.tensor(array, self.storages, self.options)? {
            Some(Found::Tensor { dtype, shape, place, view, storage }) if dtype == u16 => {
                self.add(if self.options.void_is_bf16 {
                    Found::Tensor { dtype: bf16, shape, place, view, storage }
                } else {
                    Found::unsupported(shape, "an array of 16-bit integers, as which Paddle stores bfloat16,")
                })?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn add(&mut self, found: Found) -> Result<(), Error> {
        self.charge_name()?;
        let path = self.path.as_str();
        let tensor = match found {
            Found::Tensor { dtype, shape, place, view, storage } => {
                Tensor::new(path, dtype, shape, place, view, &self.options.limits)?.of_storage(storage)
            }
            Found::Unsupported { shape, what } => Tensor::unsupported(path, shape, what),
            Found::Strings(json) => {
                self.note(STRINGS);
                self.entry(json);
                return Ok(());
            }
        };
        self.model.add(tensor, self.options)
    }

    /// Adds an array of objects that are values without parts, as names of features are, as one entry.
    fn add_objects(&mut self, id: ValueId) -> Result<bool, Error> {
        let outer = self.pickle;
        let (pickle, array) = outer.objects.get(&id).map_or((outer, id), |(inner, root)| (inner, *root));
        match pickle.object_list(array) {
            Some(list) if self.add_list(pickle, list)? => {
                self.note(STRINGS);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Adds a list of values without parts as one entry.
    fn add_list(&mut self, pickle: &Pickle<'_>, id: ValueId) -> Result<bool, Error> {
        let items: Vec<ValueId> = match pickle.tree.value(id) {
            Value::List(items) | Value::Set(items) => items.collect(),
            Value::Tuple(items) | Value::FrozenSet(items) => items.to_vec(),
            _ => return Ok(false),
        };
        let mut json = writer();
        json.begin_array();
        for item in items {
            let is_plain = matches!(
                pickle.tree.value(item),
                Value::None
                    | Value::Bool(_)
                    | Value::Int(_)
                    | Value::Float(_)
                    | Value::Str(_)
                    | Value::Str2(_)
            );
            if !is_plain || !pickle.write_scalar(item, &mut json, self.options)? {
                return Ok(false);
            }
            self.charge(1)?;
        }
        json.end_array();
        self.entry(json.finish());
        Ok(true)
    }

    /// A value beside the tensors. One that is too long is left out: the tensors are what the file is read for.
    fn entry(&mut self, json: String) {
        let values = self.values.saturating_add((self.path.len() + json.len()) as u64);
        if values > self.options.limits.text_bytes {
            self.note("a value is left out: the limit of text (`text_bytes`) is reached");
            return;
        }
        self.values = values;
        self.model.add_entry(self.path.as_str(), json);
    }

    /// Counts the name of a tensor.
    fn charge_name(&mut self) -> Result<(), Error> {
        self.names = self.names.saturating_add(self.path.len() as u64);
        let allowed = self.options.limits.text_bytes;
        if self.names > allowed { Err(limit("text_bytes", allowed)) } else { Ok(()) }
    }

    fn note(&mut self, text: &str) {
        self.n_notes += 1;
        match self.n_notes {
            ..MAX_NOTES => self.model.note(self.path.as_str(), text),
            MAX_NOTES => self.model.note("", "more values are left out, which are not listed"),
            _ => {}
        }
    }

    /// The value that `options.object` names.
    fn find(&mut self, root: ValueId) -> Result<ValueId, Error> {
        let key = self.options.object.as_str();
        let mut rest = Some(key).filter(|key| !key.is_empty());
        let mut id = root;
        while let Some(wanted) = rest {
            let mut parts = match self.pickle.kind(id)? {
                Kind::Same(other) => {
                    id = other;
                    self.charge(1)?;
                    continue;
                }
                Kind::Parts(parts) | Kind::Object(parts) | Kind::Module(parts) => parts,
                Kind::Scalar => return Err(crate::names::no_key([].into_iter())),
            };
            // Keys may contain dots: the longest one is meant.
            let mut best: Option<(ValueId, Option<&str>)> = None;
            let mut keys = Vec::new();
            while let Some((key, value)) = self.pickle.next_part(&mut parts)? {
                self.charge(1)?;
                let Some(key) = self.key(&key)? else { continue };
                let after = wanted.strip_prefix(key.as_str());
                let after = match after {
                    Some("") => Some(None),
                    Some(after) => after.strip_prefix('.').map(Some),
                    None => None,
                };
                let left = |after: Option<&str>| after.map_or(0, |after| after.len() + 1);
                if let Some(after) = after
                    && best.is_none_or(|(_, best)| left(after) < left(best))
                {
                    best = Some((value, after));
                }
                if keys.len() < MAX_LISTED {
                    keys.push(key);
                }
            }
            let Some((value, after)) = best else {
                return Err(crate::names::no_key(keys.iter().map(String::as_str)));
            };
            (id, rest) = (value, after);
        }
        Ok(id)
    }
}

fn limit(limit: &'static str, allowed: u64) -> Error {
    ErrorKind::Limit { limit, allowed }.into()
}
