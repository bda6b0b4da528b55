//! Flax: trees of arrays in `MessagePack`.
//!
//! Source: `flax/serialization.py` of Flax 0.12.

mod array;
mod token;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use foreign_format::Format;
use json_scan::{Escape, Writer};
use located_error::Subject;
use read_at::ReadAt;

use crate::error::{Error, ErrorKind};
use crate::files::Companions;
use crate::model::{Model, json_number};
use crate::options::Options;
use crate::reader::{Budget, Reader};

use self::array::Array;
use self::token::{Token, Tokens};

/// The key that marks an array in chunks.
const CHUNKED: &str = "__msgpack_chunked_array__";

/// What Orbax writes in place of an array that is in a file of its own.
const PLACEHOLDER: &str = "PLACEHOLDER://";

/// A map or list that is being read.
struct Open {
    is_map: bool,
    /// Values, or pairs, that are still to come.
    left: u64,
    /// The number of the next one.
    next: u64,
    /// Length of the path to it.
    path: usize,
}

/// The file and what is being made of it.
struct Context<'c> {
    reader: Reader<'c>,
    tokens: Tokens,
    options: &'c Options,
    budget: Budget,
    /// Keys from the root, joined with `.`.
    path: String,
    open: Vec<Open>,
    model: Model,
    /// Keys at the root, for the message if another one is asked for.
    roots: Vec<String>,
    is_found: bool,
}

/// Reads a file of Flax.
///
/// # Errors
///
/// If the file is malformed or continues after its value; [`ErrorKind::NoObject`].
pub fn read(file: &dyn ReadAt, companions: &dyn Companions, options: &Options) -> Result<Model, Error> {
    let _ = companions;
    let mut context = Context {
        reader: Reader::new(file),
        tokens: Tokens { rest: 0..file.total_len() },
        options,
        budget: Budget::new(options.limits.text_bytes),
        path: String::new(),
        open: Vec::new(),
        model: Model::new(Format::MessagePack),
        roots: Vec::new(),
        is_found: options.object.is_empty(),
    };
    context.value()?;
    while let Some(open) = context.open.last_mut() {
        let Open { is_map, path, .. } = *open;
        let number = open.next;
        let is_done = open.left == 0;
        open.left = open.left.saturating_sub(1);
        open.next += 1;
        context.path.truncate(path);
        if is_done {
            context.open.pop();
        } else if is_map {
            context.pair(number)?;
        } else {
            context.enter(&format!("{number}"))?;
            context.value()?;
        }
    }
    let Context { tokens, model, roots, is_found, .. } = context;
    if !tokens.rest.is_empty() {
        return Err(Error::malformed("the file continues after its value").at(tokens.rest.start));
    }
    if is_found { Ok(model) } else { Err(ErrorKind::NoObject { objects: roots.join(", ") }.into()) }
}

impl Context<'_> {
    /// Appends a key to the path.
    fn enter(&mut self, key: &str) -> Result<(), Error> {
        self.budget.take(key.len() as u64)?;
        if self.open.len() == 1 && self.roots.len() < 32 {
            self.roots.push(key.into());
        }
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(key);
        Ok(())
    }

    /// The name of the value at the path; `None` if it is not below the key that was asked for.
    fn name(&mut self) -> Result<Option<String>, Error> {
        let key = self.options.object.as_str();
        let name = if key.is_empty() {
            &self.path
        } else {
            let Some(rest) = self.path.strip_prefix(key) else { return Ok(None) };
            match rest.strip_prefix('.') {
                Some(rest) => rest,
                // The key names a value and not an object.
                None if rest.is_empty() => key.rsplit('.').next().unwrap_or(key),
                None => return Ok(None),
            }
        };
        self.is_found = true;
        // What is kept of a value besides its name.
        self.budget.take(name.len() as u64 + 256)?;
        Ok(Some(name.into()))
    }

    /// A pair of a map.
    fn pair(&mut self, number: u64) -> Result<(), Error> {
        let at = self.tokens.rest.start;
        let key = match self.tokens.next(&mut self.reader)? {
            Token::Text(range) | Token::Bytes(range) => self.reader.text(range, &mut self.budget)?,
            Token::Unsigned(key) => format!("{key}"),
            Token::Signed(key) => format!("{key}"),
            _ => return Err(Error::malformed("a key is not text").at(at)),
        };
        if key != CHUNKED {
            self.enter(&key)?;
            return self.value();
        }
        let pairs = match self.open.pop() {
            Some(open) if number == 0 => open.left + 1,
            _ => return Err(Error::unsupported("an array in chunks with other values in its map").at(at)),
        };
        let name = self.name()?;
        let subject = Subject::tensor(name.as_deref().unwrap_or(&self.path));
        let limits = &self.options.limits;
        let unnamed = name.clone().unwrap_or_default();
        let tensor = array::chunked(&mut self.reader, &mut self.tokens, unnamed, pairs, limits);
        let tensor = tensor.map_err(|error| error.of(subject).at(at))?;
        if name.is_some() { self.model.add(tensor, self.options) } else { Ok(()) }
    }

    /// A value at the path: a map or list is opened.
    fn value(&mut self) -> Result<(), Error> {
        let at = self.tokens.rest.start;
        let token = self.tokens.next(&mut self.reader)?;
        let (is_map, left) = match token {
            Token::Map(left) => (true, left),
            Token::Array(left) => (false, left),
            token => {
                return match self.name()? {
                    Some(name) => self.leaf(token, name).map_err(|error| error.at(at)),
                    None => Ok(()),
                };
            }
        };
        let limit = self.options.limits.depth;
        if self.open.len() >= limit {
            return Err(Error::from(ErrorKind::Limit { limit: "depth", allowed: limit as u64 }).at(at));
        }
        if left == 0
            && let Some(name) = self.name()?
        {
            self.model.add_entry(name, if is_map { "{}" } else { "[]" });
        }
        self.open.push(Open { is_map, left, next: 0, path: self.path.len() });
        Ok(())
    }

    /// A value that contains no others.
    fn leaf(&mut self, token: Token, name: String) -> Result<(), Error> {
        let limits = &self.options.limits;
        let json = match token {
            Token::Nil => "null".into(),
            Token::Bool(value) => format!("{value}"),
            Token::Unsigned(value) => format!("{value}"),
            Token::Signed(value) => format!("{value}"),
            Token::F32(value) => json_number(value),
            Token::F64(value) => json_number(value),
            Token::Text(range) => {
                let text = self.reader.text(range, &mut self.budget)?;
                if text.starts_with(PLACEHOLDER) {
                    return Err(Error::unsupported("a checkpoint of Orbax, whose arrays are in other files"));
                }
                let mut json = Writer::compact(Escape::Minimal);
                json.string(&text);
                json.finish()
            }
            Token::Extension(1, range) => {
                let subject = Subject::tensor(&name);
                let tensor =
                    Array::read(&mut self.reader, range, limits).and_then(|array| array.tensor(name, limits));
                return self.model.add(tensor.map_err(|error| error.of(subject))?, self.options);
            }
            Token::Extension(2, range) => array::complex(&mut self.reader, range)?,
            Token::Extension(3, range) => {
                let subject = Subject::tensor(&name);
                let array =
                    Array::read(&mut self.reader, range, limits).map_err(|error| error.of(subject))?;
                match array.json(&mut self.reader)? {
                    Some(json) => json,
                    None => return self.model.add(array.tensor(name, limits)?, self.options),
                }
            }
            Token::Bytes(_) => {
                self.model.note(name, "bytes that are not an array are left out");
                return Ok(());
            }
            // Of other programs: it may be an array.
            Token::Extension(kind, _) => {
                let tensor = crate::tensor::Tensor::unsupported(
                    name,
                    Vec::new(),
                    format!("extension {kind} of MessagePack"),
                );
                return self.model.add(tensor, self.options);
            }
            Token::Map(_) | Token::Array(_) => return Ok(()),
        };
        self.model.add_entry(name, json);
        Ok(())
    }
}
