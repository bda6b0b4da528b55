//! What follows a value: attributes, keys, calls, filters and tests.

use alloc::format;
use alloc::vec::Vec;

use super::super::kinds::{APPENDED, Kind};
use super::super::lexer::Token;
use super::super::names::{self, Named};
use super::{Argument, Parser, Value};

impl Parser<'_> {
    pub(super) fn postfix(&mut self, value: Value) -> Option<Value> {
        let mut value = self.parts(value)?;
        loop {
            if self.skip_sign("|") {
                let name = self.name()?;
                let arguments = if self.peek_sign("(") { self.arguments()? } else { Vec::new() };
                value = self.filtered(&value, name, &arguments);
            } else if self.skip_word("is") {
                self.skip_word("not");
                self.test()?;
                value = Value::of(Kind::Number);
            } else if self.peek_sign("(") {
                value = self.call(&value)?;
            } else {
                return Some(value);
            }
        }
    }

    /// Attributes, keys and calls.
    fn parts(&mut self, mut value: Value) -> Option<Value> {
        loop {
            value = if self.skip_sign(".") {
                match self.next()? {
                    Token::Number => Value::of(self.element(&value)),
                    Token::Name(name) if self.peek_sign("(") => self.method(&value, name)?,
                    Token::Name(name) => {
                        self.check_attribute(name);
                        // Of a loop, over texts that may be built.
                        let is_item = ["previtem", "nextitem"].contains(&name.as_str());
                        let name = format!(".{name}");
                        let own = self.kinds.get(&name).or(Some(Kind::Built).filter(|_| is_item));
                        let kind = self.element(&value).max(own.unwrap_or_default());
                        Value { name: Some(name), ..Value::of(kind) }
                    }
                    _ => return None,
                }
            } else if self.skip_sign("[") {
                self.key(&value)?
            } else if self.peek_sign("(") {
                self.call(&value)?
            } else {
                return Some(value);
            };
        }
    }

    /// A key in brackets, or a slice.
    fn key(&mut self, of: &Value) -> Option<Value> {
        let (mut is_slice, mut key) = (false, None);
        while !self.skip_sign("]") {
            if self.skip_sign(":") {
                is_slice = true;
            } else {
                key = Some(self.tuple()?);
                if !self.peek_sign(":") && !self.peek_sign("]") {
                    return None;
                }
            }
        }
        // Attributes of namespaces, by their names.
        let mut own = Kind::Number;
        if let Some(key) = key.filter(|_| !is_slice) {
            match &key.text {
                Some(name) => {
                    self.check_attribute(name);
                    own = self.attribute(name);
                }
                None if key.kind == Kind::Built => self.reaches_python(),
                None if key.kind == Kind::Number => {}
                None => own = self.kinds.any_attribute(),
            }
        }
        let kind = self.element(of).max(own);
        // Parts of a text of the template.
        let kind = if is_slice && kind == Kind::Literal { Kind::Built } else { kind };
        Some(Value::of(kind))
    }

    /// Greatest kind of the assigned attributes that a dotted path names.
    fn attribute(&self, path: &str) -> Kind {
        path.split('.').filter_map(|name| self.kinds.get(&format!(".{name}"))).max().unwrap_or_default()
    }

    pub(super) fn arguments(&mut self) -> Option<Vec<Argument>> {
        self.sign("(")?;
        let mut arguments = Vec::new();
        while !self.skip_sign(")") {
            if self.skip_sign("*") || self.skip_sign("**") {
                // Arguments that only the running template knows.
                self.reaches_python();
            }
            let keyword = match self.tokens.get(self.at..) {
                Some([Token::Name(name), Token::Sign("="), ..]) => {
                    self.at += 2;
                    self.check_attribute(name);
                    Some(name.clone())
                }
                _ => None,
            };
            let value = self.expression()?;
            arguments.push(Argument { keyword, value });
            if !self.peek_sign(")") {
                self.sign(",")?;
            }
        }
        Some(arguments)
    }

    /// A call of something that is no method.
    fn call(&mut self, callee: &Value) -> Option<Value> {
        let arguments = self.arguments()?;
        let of_arguments = arguments.iter().map(|argument| argument.value.kind).max().unwrap_or_default();
        let name = callee.name.as_deref().unwrap_or("a call of a value");
        let kind = match name {
            "namespace" => {
                for argument in &arguments {
                    if let Some(keyword) = &argument.keyword {
                        self.kinds.grow(&format!(".{keyword}"), argument.value.kind);
                    }
                }
                let positional = arguments.iter().filter(|argument| argument.keyword.is_none());
                positional.map(|argument| argument.value.kind).fold(Kind::Data, Kind::max)
            }
            "dict" => of_arguments,
            "range" | "raise_exception" => Kind::Number,
            "strftime_now" | "caller" => Kind::Built,
            name if self.macros.contains(name) => {
                for (position, argument) in arguments.iter().enumerate() {
                    let parameter = match &argument.keyword {
                        Some(keyword) => format!("{name}#{keyword}"),
                        None => format!("{name}#{position}"),
                    };
                    self.kinds.grow(&parameter, argument.value.kind);
                }
                Kind::Built
            }
            name => {
                self.unlisted(name);
                Kind::Built
            }
        };
        Some(Value::of(kind))
    }

    fn method(&mut self, of: &Value, name: &str) -> Option<Value> {
        let arguments = self.arguments()?;
        let of_arguments = arguments.iter().map(|argument| argument.value.kind).max().unwrap_or_default();
        let kind = match name {
            "get" | "pop" => self.element(of).max(of_arguments),
            "items" => self.element(of),
            "append" => {
                self.kinds.grow(APPENDED, of_arguments);
                Kind::Number
            }
            "startswith" | "endswith" => Kind::Number,
            "split" | "strip" | "lstrip" | "rstrip" => part(of.kind),
            _ => Kind::Built,
        };
        if name.starts_with('_') || self.kinds.get(&format!(".{name}")).is_some() {
            // An assigned attribute is called in place of the method.
            self.reaches_python();
        } else if !names::METHODS.contains(&name) {
            self.unlisted(name);
        }
        Some(Value::of(kind))
    }

    /// A filter of a block, whose result is put out.
    pub(super) fn filter(&mut self) -> Option<()> {
        let name = self.name()?;
        let arguments = if self.peek_sign("(") { self.arguments()? } else { Vec::new() };
        self.filtered(&Value::default(), name, &arguments);
        Some(())
    }

    pub(super) fn filters(&mut self) -> Option<()> {
        while self.skip_sign("|") {
            self.filter()?;
        }
        Some(())
    }

    fn filtered(&mut self, of: &Value, name: &str, arguments: &[Argument]) -> Value {
        if name == "attr" {
            self.reaches_python();
        } else if !names::FILTERS.contains(&name) {
            self.unlisted(name);
        }
        for (position, argument) in arguments.iter().enumerate() {
            self.filter_argument(name, position, argument);
        }
        let of_arguments = arguments.iter().map(|argument| argument.value.kind).max().unwrap_or_default();
        let by_attribute = arguments.iter().all(|argument| argument.keyword.as_deref() == Some("attribute"));
        let kind = match name {
            "length" => Kind::Number,
            // For input that is not a number, the result is the argument.
            "int" => of_arguments,
            "default" => of.kind.max(of_arguments),
            "trim" => part(of.kind),
            "map" if by_attribute => {
                let paths = arguments.iter().filter_map(|argument| argument.value.text.as_deref());
                paths.map(|path| self.attribute(path)).fold(self.element(of), Kind::max)
            }
            "string" | "safe" | "list" | "sort" | "unique" | "selectattr" | "rejectattr" | "reject" => {
                of.kind
            }
            "first" | "last" | "items" | "dictsort" => self.element(of),
            _ => Kind::Built,
        };
        Value::of(kind)
    }

    /// What an argument names is written in the template, and on its list.
    fn filter_argument(&mut self, filter: &str, position: usize, argument: &Argument) {
        let Some(named) = names::argument(filter, position, argument.keyword.as_deref()) else { return };
        let Some(text) = &argument.value.text else { return self.reaches_python() };
        let is_listed = match named {
            Named::Attribute => {
                text.split('.').for_each(|name| self.check_attribute(name));
                true
            }
            Named::Filter => names::SIMPLE.contains(&text.as_str()),
            Named::Test => names::TESTS.contains(&text.as_str()),
        };
        if !is_listed {
            self.reaches_python();
        }
    }

    /// After `is`: a name, and an argument in brackets or without.
    fn test(&mut self) -> Option<()> {
        let name = self.name()?;
        if !names::TESTS.contains(&name) {
            self.unlisted(name);
        }
        if self.peek_sign("(") {
            return self.arguments().map(drop);
        }
        let is_argument = match self.peek() {
            Some(Token::Name(name)) => {
                !["else", "or", "and", "if", "is", "not", "in", "recursive"].contains(&name.as_str())
            }
            Some(Token::Text(_) | Token::Number | Token::Sign("[" | "{")) => true,
            _ => false,
        };
        if is_argument {
            let value = self.primary()?;
            self.parts(value)?;
        }
        Some(())
    }
}

/// Of what is cut out of a text.
fn part(of: Kind) -> Kind {
    if of > Kind::Data { Kind::Built } else { of }
}
