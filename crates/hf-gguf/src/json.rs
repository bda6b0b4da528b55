//! JSON as a tree, read as Python's `json` module reads it.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem;

use json_scan::{Check, Escape, Scanner, Writer};
use located_error::cut;

use crate::error::{Error, ErrorKind};

/// Most arrays and objects within one another.
const MAX_DEPTH: usize = 64;
/// Most values of a text: a value of two bytes needs fifty in memory.
const MAX_VALUES: usize = 1 << 22;

/// A value. `NaN` and the infinities are numbers, as Python writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is spelled.
    Number(Box<str>),
    /// A string; a lone surrogate is U+FFFD.
    String(Box<str>),
    /// An array.
    Array(Vec<Self>),
    /// An object.
    Object(Object),
}

/// Members in the order of their first occurrence; of members with the same name, the last has the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Object {
    members: Vec<(Box<str>, Json)>,
    /// Indices of the members, sorted by name.
    by_name: Vec<u32>,
}

impl Json {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotUtf8`]; [`ErrorKind::Json`] for anything but one value, and for more than 64 arrays and objects within one
    /// another.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, Error> {
        let text = core::str::from_utf8(bytes).map_err(|error| {
            Error::from(ErrorKind::NotUtf8 { file: file.into() }).at(error.valid_up_to() as u64)
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        parse(text).map_err(|stop| match stop {
            Stop::Syntax(what, offset) => {
                Error::from(ErrorKind::Json { file: file.into(), what }).at(offset as u64)
            }
            Stop::TooMany => ErrorKind::limit(file, "values", MAX_VALUES),
        })
    }

    /// The member of this name, if this is an object that has it and it is not null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.as_object()?.get(name).filter(|value| !value.is_null())
    }

    /// Whether this is `null`.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The truth value.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// The string.
    #[must_use]
    pub const fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The array.
    #[must_use]
    pub const fn as_array(&self) -> Option<&[Self]> {
        if let Self::Array(items) = self { Some(items.as_slice()) } else { None }
    }

    /// The object.
    #[must_use]
    pub const fn as_object(&self) -> Option<&Object> {
        if let Self::Object(object) = self { Some(object) } else { None }
    }

    /// The number, if it is spelled as an integer and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        if let Self::Number(text) = self { text.parse().ok() } else { None }
    }

    /// The number, rounded to the nearest double.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        let Self::Number(text) = self else { return None };
        match &**text {
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            text => text.parse().ok(),
        }
    }

    /// The value as text, one member or element a line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = Writer::indented(Escape::Minimal);
        self.write_to(&mut out);
        out.finish() + "\n"
    }

    /// Appends the value. What is written is built here, so that its depth is small.
    pub(crate) fn write_to(&self, out: &mut Writer) {
        match self {
            Self::Null => {
                out.null();
            }
            Self::Bool(value) => {
                out.plain(value);
            }
            Self::Number(number) => {
                out.plain(number);
            }
            Self::String(text) => {
                out.string(text);
            }
            Self::Array(items) => {
                out.begin_array();
                items.iter().for_each(|item| item.write_to(out));
                out.end_array();
            }
            Self::Object(object) => {
                out.begin_object();
                for (name, value) in object.iter() {
                    out.key(name);
                    value.write_to(out);
                }
                out.end_object();
            }
        }
    }

    /// A number as it is spelled, or what else it is, for messages.
    pub(crate) fn shown(&self) -> &str {
        const MAX: usize = 64;
        match self {
            Self::Number(number) => cut(number, MAX),
            other => other.kind_name(),
        }
    }

    /// What it is, for messages.
    #[must_use]
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a truth value",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl Object {
    /// The value of the member of this name, also if it is null.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        let found = self.by_name.binary_search_by(|&idx| self.name_at(idx).cmp(name));
        let idx = self.by_name.get(found.ok()?)?;
        self.members.get(*idx as usize).map(|(_, value)| value)
    }

    /// The members in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.members.iter().map(|(name, value)| (&**name, value))
    }

    /// Number of members.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Sets a member: an old value is replaced where it stands, a new member comes last.
    pub fn set(&mut self, name: &str, value: Json) {
        match self.by_name.binary_search_by(|&idx| self.name_at(idx).cmp(name)) {
            Ok(place) => self.members[self.by_name[place] as usize].1 = value,
            Err(place) => {
                self.by_name.insert(place, self.members.len() as u32);
                self.members.push((name.into(), value));
            }
        }
    }

    /// The value of the member of this name.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Json> {
        let place = self.by_name.binary_search_by(|&idx| self.name_at(idx).cmp(name)).ok()?;
        let idx = self.by_name[place] as usize;
        self.members.get_mut(idx).map(|(_, value)| value)
    }

    /// Removes a member; returns its value.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Json> {
        let place = self.by_name.binary_search_by(|&idx| self.name_at(idx).cmp(name)).ok()?;
        let (_, value) = self.members.remove(self.by_name[place] as usize);
        self.by_name = sorted(&self.members);
        Some(value)
    }

    fn name_at(&self, idx: u32) -> &str {
        self.members.get(idx as usize).map_or("", |(name, _)| name)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(number.to_string().into())
    }
}

impl From<f64> for Json {
    fn from(number: f64) -> Self {
        Self::Number(number.to_string().into())
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

/// Members as they were read, with names that may occur several times.
impl From<Vec<(Box<str>, Json)>> for Object {
    fn from(mut members: Vec<(Box<str>, Json)>) -> Self {
        let by_name = sorted(&members);
        let mut is_dropped = alloc::vec![false; members.len()];
        let mut n_dropped = 0;
        let mut begin = 0;
        while let Some(&first) = by_name.get(begin) {
            let name = &members[first as usize].0;
            let len = by_name[begin..].iter().take_while(|&&idx| members[idx as usize].0 == *name).count();
            // The sort is stable: members of a name are in their order.
            for &idx in &by_name[begin + 1..begin + len] {
                members[first as usize].1 = mem::replace(&mut members[idx as usize].1, Json::Null);
                is_dropped[idx as usize] = true;
                n_dropped += 1;
            }
            begin += len;
        }
        if n_dropped == 0 {
            return Self { members, by_name };
        }
        let mut dropped = is_dropped.into_iter();
        members.retain(|_| dropped.next() == Some(false));
        let by_name = sorted(&members);
        Self { members, by_name }
    }
}

/// Indices of 32 bits: a member has four bytes at least, a file 100 MB at most.
fn sorted(members: &[(Box<str>, Json)]) -> Vec<u32> {
    let mut by_name: Vec<u32> = (0..members.len() as u32).collect();
    by_name.sort_by(|&a, &b| members[a as usize].0.cmp(&members[b as usize].0));
    by_name
}

/// What has begun and not ended.
enum Open {
    Array(Vec<Json>),
    /// With the name of the member whose value comes next.
    Object(Vec<(Box<str>, Json)>, Box<str>),
}

/// Why a text is not read.
enum Stop {
    Syntax(json_scan::ErrorKind, usize),
    TooMany,
}

fn parse(text: &str) -> Result<Json, Stop> {
    let stop = |error: json_scan::Error| Stop::Syntax(error.kind(), error.offset());
    let mut scanner = Scanner::new(text, Check::Syntax);
    scanner.skip_white_space();
    let mut open: Vec<Open> = Vec::new();
    let mut n_values = 0;
    loop {
        n_values += 1;
        if n_values > MAX_VALUES {
            return Err(Stop::TooMany);
        }
        let begins = matches!(scanner.peek(), Some(b'{' | b'['));
        if begins && open.len() == MAX_DEPTH {
            return Err(Stop::Syntax(json_scan::ErrorKind::TooDeep, scanner.pos()));
        }
        let mut value = if scanner.eat(b'[') {
            if !scanner.eat(b']') {
                open.push(Open::Array(Vec::new()));
                continue;
            }
            Json::Array(Vec::new())
        } else if scanner.eat(b'{') {
            if !scanner.eat(b'}') {
                let name = scanner.key().map_err(stop)?.unescape().into();
                open.push(Open::Object(Vec::new(), name));
                continue;
            }
            Json::Object(Object::default())
        } else {
            scalar(&mut scanner).map_err(stop)?
        };
        // The value, and what ends with it.
        loop {
            match open.pop() {
                None => {
                    scanner.finish().map_err(stop)?;
                    return Ok(value);
                }
                Some(Open::Array(mut items)) => {
                    items.push(value);
                    if scanner.eat(b',') {
                        open.push(Open::Array(items));
                        break;
                    }
                    scanner.expect(b']', "a comma or a closing bracket").map_err(stop)?;
                    value = Json::Array(items);
                }
                Some(Open::Object(mut members, name)) => {
                    members.push((name, value));
                    if scanner.eat(b',') {
                        let name = scanner.key().map_err(stop)?.unescape().into();
                        open.push(Open::Object(members, name));
                        break;
                    }
                    scanner.expect(b'}', "a comma or a closing brace").map_err(stop)?;
                    value = Json::Object(members.into());
                }
            }
        }
    }
}

fn scalar(scanner: &mut Scanner<'_>) -> Result<Json, json_scan::Error> {
    const WORDS: [(&str, Json); 3] =
        [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))];
    let word = WORDS.into_iter().find(|(word, _)| scanner.strip(word)).map(|(_, value)| value);
    let number = ["NaN", "Infinity", "-Infinity"];
    let value = if let Some(value) = word {
        value
    } else if let Some(name) = number.into_iter().find(|name| scanner.strip(name)) {
        Json::Number(name.into())
    } else {
        match scanner.peek() {
            Some(b'"') => Json::String(scanner.bare_string()?.unescape().into()),
            Some(b'-' | b'0'..=b'9') => Json::Number(scanner.number()?.into()),
            _ => return Err(scanner.unexpected("a JSON value")),
        }
    };
    scanner.skip_white_space();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json {
        Json::from_bytes("x.json", text.as_bytes()).unwrap()
    }

    #[test]
    fn members_keep_their_first_place_and_take_their_last_value() {
        let value = read(r#" {"b": 1, "a": [2, {}], "b": 3, "c": {"x": null}, "b": 4.5e0} "#);
        let object = value.as_object().unwrap();
        let names: Vec<&str> = object.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "a", "c"]);
        assert_eq!(value.get("b").and_then(Json::as_f64), Some(4.5));
        assert_eq!(value.get("b").and_then(Json::as_i64), None);
        assert_eq!(value.get("c").and_then(|c| c.get("x")), None);
        assert_eq!(object.get("c").and_then(Json::as_object).map(Object::len), Some(1));
        assert_eq!(value.get("d"), None);
    }

    #[test]
    fn numbers_are_pythons() {
        let value = read("[NaN, -Infinity, 1e400, 0.1, 123456789012345678901234567890]");
        let numbers: Vec<f64> = value.as_array().unwrap().iter().filter_map(Json::as_f64).collect();
        assert!(numbers[0].is_nan());
        assert_eq!(numbers[1..], [f64::NEG_INFINITY, f64::INFINITY, 0.1, 123456789012345678901234567890.0]);
    }

    #[test]
    fn damage_is_refused_with_its_place() {
        for (text, offset) in [
            ("", 0),
            ("{", 1),
            ("[1,]", 3),
            ("{\"a\" 1}", 5),
            ("[1] 2", 4),
            ("\"a", 2),
            ("[01]", 2),
            ("nul", 0),
        ] {
            let error = Json::from_bytes("x.json", text.as_bytes()).unwrap_err();
            assert_eq!((error.code(), error.offset()), ("hg-json", Some(offset)), "{text}: {error}");
        }
        assert_eq!(Json::from_bytes("x.json", b"[\xff]").unwrap_err().code(), "hg-utf8");
        let deep = "[".repeat(100_000);
        assert!(Json::from_bytes("x.json", deep.as_bytes()).unwrap_err().to_string().contains("deep"));
        let many = alloc::format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert_eq!(Json::from_bytes("x.json", many.as_bytes()).unwrap_err().code(), "hg-limit");
        assert!(matches!(read(&(String::from("[").repeat(64) + &"]".repeat(64))), Json::Array(_)));
    }
}
