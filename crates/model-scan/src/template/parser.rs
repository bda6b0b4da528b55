//! Statements and expressions of Jinja: no tree, but what each value may be, and the first thing that is on no list.

mod expression;
mod postfix;

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::kinds::{Kind, Kinds};
use super::lexer::Token;
use super::names;
use crate::problem::Problem;

/// Expressions in each other.
const MAX_DEPTH: usize = 48;

pub(super) struct Parser<'t> {
    tokens: &'t [Token],
    at: usize,
    depth: usize,
    kinds: &'t mut Kinds,
    macros: BTreeSet<&'t str>,
    pub(super) problem: Option<Problem>,
}

/// A value of an expression.
#[derive(Clone, Default)]
struct Value {
    kind: Kind,
    /// A text, if it is nothing else.
    text: Option<String>,
    /// A name, or an attribute with a point before it, if it is nothing else.
    name: Option<String>,
}

impl Value {
    fn of(kind: Kind) -> Self {
        Self { kind, ..Self::default() }
    }
}

/// An argument of a call.
struct Argument {
    keyword: Option<String>,
    value: Value,
}

/// The methods return `None` where the template is none.
impl<'t> Parser<'t> {
    pub(super) fn new(tokens: &'t [Token], kinds: &'t mut Kinds) -> Self {
        let macros = tokens
            .windows(3)
            .filter_map(|tokens| match tokens {
                [Token::OpenBlock, Token::Name(word), Token::Name(name)] if word == "macro" => {
                    Some(name.as_str())
                }
                _ => None,
            })
            .collect();
        let mut parser = Self { tokens, at: 0, depth: 0, kinds, macros, problem: None };
        // Python takes letters that look alike for the same name.
        let foreign = tokens.iter().find_map(|token| match token {
            Token::Name(name) => Some(name).filter(|name| !name.is_ascii()),
            _ => None,
        });
        foreign.into_iter().for_each(|name| parser.unlisted(name));
        parser
    }

    pub(super) fn template(&mut self) -> Option<()> {
        while let Some(token) = self.next() {
            match token {
                Token::OpenOutput => {
                    self.tuple()?;
                    self.expect(&Token::CloseOutput)?;
                }
                _ => {
                    self.statement()?;
                    self.expect(&Token::CloseBlock)?;
                }
            }
        }
        Some(())
    }

    fn statement(&mut self) -> Option<()> {
        match self.name()? {
            "if" | "elif" => self.condition_free_tuple().map(drop),
            "for" => self.for_loop(),
            "set" => self.set(),
            "macro" => self.macro_head(),
            "call" => {
                if self.peek_sign("(") {
                    self.parameters(None)?;
                }
                self.expression().map(drop)
            }
            "filter" => self.filter().and_then(|()| self.filters()),
            "else" | "endif" | "endfor" | "endset" | "endmacro" | "endcall" | "endfilter" | "break"
            | "continue" | "generation" | "endgeneration" => {
                self.name();
                Some(())
            }
            other => {
                self.unlisted(other);
                None
            }
        }
    }

    fn for_loop(&mut self) -> Option<()> {
        let targets = self.targets()?;
        self.word("in")?;
        let values = self.condition_free_tuple()?;
        let kind = self.element(&values);
        for target in targets {
            self.assign(&target, kind);
        }
        if self.skip_word("if") {
            self.expression()?;
        }
        self.skip_word("recursive");
        Some(())
    }

    fn set(&mut self) -> Option<()> {
        let targets = self.targets()?;
        let kind = if self.skip_sign("=") {
            self.tuple()?.kind
        } else {
            // What is between this block and its end.
            self.filters()?;
            Kind::Built
        };
        for target in targets {
            self.assign(&target, kind);
        }
        Some(())
    }

    /// Names that are assigned, attributes with a point before them.
    fn targets(&mut self) -> Option<Vec<String>> {
        let (mut targets, mut open) = (Vec::new(), 0_usize);
        loop {
            while self.skip_sign("(") {
                open += 1;
            }
            let mut name = String::from(self.name()?);
            if self.skip_sign(".") {
                name = format!(".{}", self.name()?);
            }
            targets.push(name);
            while open > 0 && self.skip_sign(")") {
                open -= 1;
            }
            if !self.skip_sign(",") {
                return Some(targets).filter(|_| open == 0);
            }
        }
    }

    fn macro_head(&mut self) -> Option<()> {
        let name = self.name()?;
        self.parameters(Some(name))
    }

    /// Parameters of a macro; those of a block that is called get what the macro builds.
    fn parameters(&mut self, of: Option<&str>) -> Option<()> {
        self.sign("(")?;
        let mut position = 0;
        while !self.skip_sign(")") {
            let name = self.name()?;
            let mut kind = if of.is_none() { Kind::Built } else { Kind::Number };
            if self.skip_sign("=") {
                kind = kind.max(self.expression()?.kind);
            }
            for given in [
                format!("{}#{position}", of.unwrap_or_default()),
                format!("{}#{name}", of.unwrap_or_default()),
            ] {
                kind = kind.max(self.kinds.get(&given).unwrap_or_default());
            }
            self.assign(name, kind);
            position += 1;
            if !self.peek_sign(")") {
                self.sign(",")?;
            }
        }
        Some(())
    }

    /// A variable, or an attribute of a namespace. Under the name of a function, it could be called like that.
    fn assign(&mut self, name: &str, kind: Kind) {
        if names::FUNCTIONS.contains(&name) || names::OBJECTS.contains(&name) || self.macros.contains(name) {
            self.reaches_python();
        }
        self.kinds.grow(name, kind);
    }

    /// Of an element of a list, or of a value of a mapping: what was appended to one may be in any, under another name.
    fn element(&self, of: &Value) -> Kind {
        of.kind.max(self.kinds.get(super::kinds::APPENDED).unwrap_or_default())
    }

    fn unlisted(&mut self, name: &str) {
        let name = name.chars().take(100).collect();
        self.problem.get_or_insert(Problem::TemplateName { name });
    }

    fn reaches_python(&mut self) {
        self.problem.get_or_insert(Problem::TemplateCode {});
    }

    fn check_attribute(&mut self, name: &str) {
        if name.starts_with('_') || names::INSIDES.contains(&name) {
            self.reaches_python();
        }
    }

    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&'t Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn expect(&mut self, wanted: &Token) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    fn name(&mut self) -> Option<&'t str> {
        let Token::Name(name) = self.peek()? else { return None };
        self.at += 1;
        Some(name)
    }

    fn peek_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(name)) if name == word)
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let is_there = self.peek_word(word);
        self.at += usize::from(is_there);
        is_there
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.skip_word(word).then_some(())
    }

    fn peek_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let is_there = self.peek_sign(sign);
        self.at += usize::from(is_there);
        is_there
    }

    fn sign(&mut self, sign: &str) -> Option<()> {
        self.skip_sign(sign).then_some(())
    }
}
