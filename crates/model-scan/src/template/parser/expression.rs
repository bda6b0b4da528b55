//! Operators, from the loosest to the tightest.

use alloc::string::String;

use super::super::kinds::Kind;
use super::super::lexer::Token;
use super::super::names;
use super::{MAX_DEPTH, Parser, Value};

const COMPARISONS: [&str; 6] = ["==", "!=", ">=", "<=", ">", "<"];

impl Parser<'_> {
    /// Expressions with commas between them.
    pub(super) fn tuple(&mut self) -> Option<Value> {
        self.separated(Self::expression)
    }

    /// The same where `if` belongs to the statement.
    pub(super) fn condition_free_tuple(&mut self) -> Option<Value> {
        self.separated(Self::or)
    }

    fn separated(&mut self, parse: fn(&mut Self) -> Option<Value>) -> Option<Value> {
        let mut value = parse(self)?;
        while self.skip_sign(",") {
            value = Value::of(value.kind.max(Kind::Data));
            if self.peek_sign(")") {
                break;
            }
            value.kind = value.kind.max(parse(self)?.kind);
        }
        Some(value)
    }

    pub(super) fn expression(&mut self) -> Option<Value> {
        self.deeper(|parser| {
            let mut value = parser.or()?;
            while parser.skip_word("if") {
                parser.or()?;
                let otherwise =
                    if parser.skip_word("else") { parser.expression()?.kind } else { Kind::Number };
                value = Value::of(value.kind.max(otherwise));
            }
            Some(value)
        })
    }

    fn deeper(&mut self, parse: impl FnOnce(&mut Self) -> Option<Value>) -> Option<Value> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn or(&mut self) -> Option<Value> {
        let mut value = self.and()?;
        while self.skip_word("or") {
            let other = self.and()?;
            value = Value::of(value.kind.max(other.kind));
        }
        Some(value)
    }

    fn and(&mut self) -> Option<Value> {
        let mut value = self.not()?;
        while self.skip_word("and") {
            let other = self.not()?;
            value = Value::of(value.kind.max(other.kind));
        }
        Some(value)
    }

    fn not(&mut self) -> Option<Value> {
        if self.skip_word("not") {
            return self.deeper(Self::not).map(|_| Value::of(Kind::Number));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Option<Value> {
        let mut value = self.sum()?;
        loop {
            let is_operator =
                COMPARISONS.iter().any(|sign| self.skip_sign(sign)) || self.skip_word("in") || {
                    let is_not_in = self.peek_word("not");
                    if is_not_in {
                        self.at += 1;
                        self.word("in")?;
                    }
                    is_not_in
                };
            if !is_operator {
                return Some(value);
            }
            self.sum()?;
            value = Value::of(Kind::Number);
        }
    }

    fn sum(&mut self) -> Option<Value> {
        let mut value = self.concatenation()?;
        loop {
            let kind = if self.skip_sign("-") {
                // Of sets, a part of the first.
                if self.concatenation()?.kind == Kind::Number { Kind::Number } else { value.kind }
            } else if self.skip_sign("+") {
                let other = self.concatenation()?;
                // With a number, the other one is a number, too.
                if value.kind.min(other.kind) == Kind::Number { Kind::Number } else { Kind::Built }
            } else {
                return Some(value);
            };
            value = Value::of(kind);
        }
    }

    fn concatenation(&mut self) -> Option<Value> {
        let mut value = self.product()?;
        while self.skip_sign("~") {
            self.product()?;
            value = Value::of(Kind::Built);
        }
        Some(value)
    }

    fn product(&mut self) -> Option<Value> {
        let mut value = self.power()?;
        loop {
            let kind = if self.skip_sign("*") {
                // A text and a number make a longer text.
                value.kind.max(self.power()?.kind)
            } else if self.skip_sign("%") {
                self.power()?;
                value.kind
            } else if self.skip_sign("/") || self.skip_sign("//") {
                self.power()?;
                Kind::Number
            } else {
                return Some(value);
            };
            value = Value::of(if kind == Kind::Number { Kind::Number } else { Kind::Built });
        }
    }

    fn power(&mut self) -> Option<Value> {
        let mut value = self.unary()?;
        while self.skip_sign("**") {
            self.unary()?;
            value = Value::of(Kind::Number);
        }
        Some(value)
    }

    fn unary(&mut self) -> Option<Value> {
        if self.skip_sign("-") || self.skip_sign("+") {
            return self.deeper(Self::unary).map(|_| Value::of(Kind::Number));
        }
        let value = self.primary()?;
        self.postfix(value)
    }

    pub(super) fn primary(&mut self) -> Option<Value> {
        match self.next()? {
            Token::Number => Some(Value::of(Kind::Number)),
            Token::Text(text) => Some(self.text(text.clone())),
            Token::Name(name) => Some(self.variable(name)),
            Token::Sign("(") => {
                if self.skip_sign(")") {
                    return Some(Value::of(Kind::Data));
                }
                let value = self.tuple()?;
                self.sign(")")?;
                Some(value)
            }
            Token::Sign("[") => self.elements("]", |parser| Some(parser.expression()?.kind)),
            Token::Sign("{") => self.elements("}", |parser| {
                let key = parser.expression()?.kind;
                parser.sign(":")?;
                Some(key.max(parser.expression()?.kind))
            }),
            _ => None,
        }
    }

    /// Elements of a list or a mapping, up to its end.
    fn elements(&mut self, end: &str, parse: impl Fn(&mut Self) -> Option<Kind>) -> Option<Value> {
        // With another list, it makes one of that kind: it is no number.
        let mut kind = Kind::Data;
        while !self.skip_sign(end) {
            kind = kind.max(parse(self)?);
            if !self.peek_sign(end) {
                self.sign(",")?;
            }
        }
        Some(Value::of(kind))
    }

    /// A text, with those right after it.
    fn text(&mut self, mut text: String) -> Value {
        while let Some(Token::Text(next)) = self.peek() {
            text.push_str(next);
            self.at += 1;
        }
        let is_name_of_python = |(at, _): (usize, &str)| {
            text.get(at + 2..).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_lowercase()))
        };
        if text.match_indices("__").any(is_name_of_python) {
            self.reaches_python();
        }
        let kind = if text.starts_with('_') { Kind::Built } else { Kind::Literal };
        Value { text: Some(text), ..Value::of(kind) }
    }

    fn variable(&mut self, name: &str) -> Value {
        if ["true", "false", "none", "True", "False", "None"].contains(&name) {
            return Value::of(Kind::Number);
        }
        let is_function = names::FUNCTIONS.contains(&name) || self.macros.contains(name);
        if names::OBJECTS.contains(&name) || (is_function && !self.peek_sign("(") && !self.peek_definition())
        {
            self.reaches_python();
        }
        Value { name: Some(name.into()), ..Value::of(self.kinds.variable(name)) }
    }

    /// Whether `is defined`, `is undefined`, or the opposite follows.
    fn peek_definition(&self) -> bool {
        let words = self.tokens.get(self.at..).unwrap_or_default().iter().map_while(|token| match token {
            Token::Name(name) => Some(name.as_str()),
            _ => None,
        });
        let mut words = words.filter(|word| *word != "not");
        words.next() == Some("is")
            && words.next().is_some_and(|test| ["defined", "undefined"].contains(&test))
    }
}
