//! From the text of a regular expression to its parts.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Missing;
use super::class::{Class, Item, Property};
use super::{Assertion, Mode, Node, Side};

/// Groups and classes within one another.
const MAX_DEPTH: usize = 40;
/// Quantifiers of one part: `a{2}{3}` has two.
const MAX_QUANTIFIERS: usize = 8;
/// Longest expression, in bytes.
const MAX_PATTERN: usize = 1 << 16;
/// Largest number of repetitions.
const MAX_REPEAT: u32 = 10_000;

/// Parses an expression.
pub(super) fn parse(pattern: &str) -> Result<Node, Missing> {
    if pattern.len() > MAX_PATTERN {
        return Err(Missing::new("a regular expression of this size"));
    }
    let mut parser = Parser { rest: pattern, depth: 0, flags: Flags::default() };
    let node = parser.alternatives()?;
    if parser.rest.is_empty() { Ok(node) } else { Err(wrong()) }
}

#[derive(Clone, Copy, Default)]
struct Flags {
    ignores_case: bool,
    /// Whether `.` is any character: a line feed, too.
    dot_is_all: bool,
}

struct Parser<'p> {
    rest: &'p str,
    depth: usize,
    flags: Flags,
}

fn wrong() -> Missing {
    Missing::new("a regular expression of the tokenizer")
}

fn not(what: &str) -> Missing {
    Missing::new(&alloc::format!("`{what}` in a regular expression"))
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// What is inside of brackets, which `inside` reads with the closing one.
    fn nested<T>(&mut self, inside: impl FnOnce(&mut Self) -> Result<T, Missing>) -> Result<T, Missing> {
        if self.depth == MAX_DEPTH {
            return Err(Missing::new("a regular expression of this depth"));
        }
        self.depth += 1;
        let value = inside(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Up to the end or a closing parenthesis.
    fn alternatives(&mut self) -> Result<Node, Missing> {
        let mut alternatives = Vec::new();
        let mut sequence = Vec::new();
        loop {
            match self.peek() {
                None | Some(')') => break,
                Some('|') => {
                    self.next();
                    alternatives.push(Node::Sequence(core::mem::take(&mut sequence)));
                }
                Some(_) => {
                    let node = self.atom()?;
                    sequence.push(self.repeated(node)?);
                }
            }
        }
        alternatives.push(Node::Sequence(sequence));
        Ok(if alternatives.len() == 1 { alternatives.remove(0) } else { Node::Alternatives(alternatives) })
    }

    /// The quantifiers after a part.
    fn repeated(&mut self, mut node: Node) -> Result<Node, Missing> {
        for _ in 0..MAX_QUANTIFIERS {
            let (min, max, is_interval) = match self.peek() {
                Some('*') => (0, None, false),
                Some('+') => (1, None, false),
                Some('?') => (0, Some(1), false),
                Some('{') => match self.interval()? {
                    Some((min, max)) => (min, max, true),
                    None => return Ok(node),
                },
                _ => return Ok(node),
            };
            if !is_interval {
                self.next();
            }
            // After an interval of one number, `?` makes it optional; after any interval, `+` repeats it.
            let is_fixed = is_interval && max == Some(min);
            let mode = if !is_fixed && self.eat("?") { Mode::Lazy } else { Mode::Greedy };
            let is_possessive = !is_interval && mode == Mode::Greedy && self.eat("+");
            node = Node::Repeat { node: Box::new(node), min, max, mode };
            if is_possessive {
                node = Node::Atomic(Box::new(node));
            }
        }
        Err(wrong())
    }

    /// `{n}`, `{n,}`, `{,m}`, `{n,m}`; `None`, and nothing is read, if the brace begins none of these.
    fn interval(&mut self) -> Result<Option<(u32, Option<u32>)>, Missing> {
        let Some((inside, rest)) = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return Ok(None);
        };
        let (min, max) = inside.split_once(',').unwrap_or((inside, inside));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(min) || !is_number(max) || (min.is_empty() && max.is_empty()) {
            return Ok(None);
        }
        let number = |text: &str| {
            let number = text.parse().ok().filter(|number| *number <= MAX_REPEAT);
            number.ok_or_else(|| Missing::new("a regular expression of this size"))
        };
        let min_number = if min.is_empty() { 0 } else { number(min)? };
        let max_number = if max.is_empty() { None } else { Some(number(max)?) };
        if max_number.is_some_and(|max| max < min_number) {
            return Err(wrong());
        }
        self.rest = rest;
        Ok(Some((min_number, max_number)))
    }

    /// A part without its quantifiers.
    fn atom(&mut self) -> Result<Node, Missing> {
        Ok(match self.next() {
            Some('(') => self.nested(Self::group)?,
            Some('[') => Node::Class(self.nested(Self::class)?.into()),
            Some('.') => {
                let line_feed = Item::Range('\n', '\n');
                let parts = if self.flags.dot_is_all { Vec::new() } else { alloc::vec![line_feed] };
                Node::Class(Class { parts: alloc::vec![parts], is_negated: true, ignores_case: false }.into())
            }
            Some('^') => Node::Assert(Assertion::LineBegin),
            Some('$') => Node::Assert(Assertion::LineEnd),
            Some('*' | '+' | '?') | None => return Err(wrong()),
            Some('\\') => self.escape()?,
            Some(c) => self.character(c),
        })
    }

    fn character(&self, c: char) -> Node {
        Node::Class(Class { ignores_case: self.flags.ignores_case, ..Class::of(c) }.into())
    }

    /// What follows an opening parenthesis.
    fn group(&mut self) -> Result<Node, Missing> {
        let flags = self.flags;
        let look = |side, is_negative| Some((side, is_negative));
        let mut is_atomic = false;
        let looks = match () {
            () if self.eat("?=") => look(Side::Ahead, false),
            () if self.eat("?!") => look(Side::Ahead, true),
            () if self.eat("?<=") => look(Side::Behind, false),
            () if self.eat("?<!") => look(Side::Behind, true),
            () if self.eat("?>") => {
                is_atomic = true;
                None
            }
            () if self.eat("?:") => None,
            () if self.eat("?<") => {
                let (name, rest) = self.rest.split_once('>').ok_or_else(wrong)?;
                if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    return Err(wrong());
                }
                self.rest = rest;
                None
            }
            () if self.eat("?") => {
                if !self.flags()? {
                    // They hold up to the end of the group around, with all of its alternatives.
                    let node = self.alternatives()?;
                    self.flags = flags;
                    return Ok(node);
                }
                None
            }
            () => None,
        };
        let node = self.alternatives()?;
        if !self.eat(")") {
            return Err(wrong());
        }
        self.flags = flags;
        let node = Box::new(node);
        Ok(match looks {
            Some((side, is_negative)) => Node::Look { node, side, is_negative },
            None if is_atomic => Node::Atomic(node),
            None => *node,
        })
    }

    /// Flags after `(?`: whether they are followed by a colon, and else by the end of the group.
    fn flags(&mut self) -> Result<bool, Missing> {
        let mut value = true;
        loop {
            match self.next() {
                Some('i') => self.flags.ignores_case = value,
                Some('m') => self.flags.dot_is_all = value,
                Some('-') => value = false,
                Some(':') => return Ok(true),
                Some(')') => return Ok(false),
                _ => return Err(not("(?")),
            }
        }
    }

    /// What follows a backslash outside of brackets.
    fn escape(&mut self) -> Result<Node, Missing> {
        let assertion = match self.peek() {
            Some('b') => Some(Assertion::WordBoundary),
            Some('B') => Some(Assertion::NoWordBoundary),
            Some('A') => Some(Assertion::TextBegin),
            Some('z') => Some(Assertion::TextEnd),
            Some('Z') => Some(Assertion::TextEndOrLastLine),
            _ => None,
        };
        if let Some(assertion) = assertion {
            self.next();
            return Ok(Node::Assert(assertion));
        }
        Ok(match self.escaped()? {
            Item::Range(c, _) => self.character(c),
            Item::Property(property, is_negated) => Node::Class(Class::with(property, is_negated).into()),
            Item::Class(class) => Node::Class(Arc::from(class)),
        })
    }

    /// A character or a property after a backslash.
    fn escaped(&mut self) -> Result<Item, Missing> {
        let c = self.next().ok_or_else(wrong)?;
        let property = |property, is_negated| Ok(Item::Property(property, is_negated));
        let literal = match c {
            'd' | 'D' => return property(Property::Digit, c == 'D'),
            's' | 'S' => return property(Property::Space, c == 'S'),
            'w' | 'W' => return property(Property::Word, c == 'W'),
            'h' | 'H' => return property(Property::HexDigit, c == 'H'),
            'p' | 'P' => return self.property(c == 'P'),
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'f' => '\u{c}',
            'v' => '\u{b}',
            'a' => '\u{7}',
            'e' => '\u{1b}',
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            _ if c.is_ascii_alphanumeric() => return Err(not(&alloc::format!("\\{c}"))),
            _ => c,
        };
        Ok(Item::Range(literal, literal))
    }

    /// `{L}` or `{^L}` after `\p`.
    fn property(&mut self, is_negated: bool) -> Result<Item, Missing> {
        let inside = self.rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let (name, rest) = inside.ok_or_else(wrong)?;
        let (name, is_negated) =
            name.strip_prefix('^').map_or((name, is_negated), |name| (name, !is_negated));
        let property = Property::named(name).ok_or_else(|| not(&alloc::format!("\\p{{{name}}}")))?;
        self.rest = rest;
        Ok(Item::Property(property, is_negated))
    }

    /// Digits in braces, or `n_digits` of them.
    fn hexadecimal(&mut self, n_digits: usize) -> Result<char, Missing> {
        let (digits, rest) = match self.rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}').ok_or_else(wrong)?,
            None => self.rest.split_at_checked(n_digits).ok_or_else(wrong)?,
        };
        let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let code = is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten();
        self.rest = rest;
        code.and_then(char::from_u32).ok_or_else(wrong)
    }

    /// What follows an opening bracket.
    fn class(&mut self) -> Result<Class, Missing> {
        let mut class =
            Class { is_negated: self.eat("^"), ignores_case: self.flags.ignores_case, ..Class::default() };
        let mut items = Vec::new();
        let mut is_first = true;
        loop {
            if self.eat("&&") {
                class.parts.push(core::mem::take(&mut items));
                continue;
            }
            let item = match self.next().ok_or_else(wrong)? {
                ']' if !is_first => break,
                '[' if self.rest.starts_with(':') => self.posix()?,
                '[' => Item::Class(Box::new(self.nested(Self::class)?)),
                '\\' if self.eat("b") => Item::Range('\u{8}', '\u{8}'),
                '\\' => self.escaped()?,
                c => Item::Range(c, c),
            };
            is_first = false;
            items.push(self.range(item)?);
        }
        class.parts.push(items);
        Ok(class)
    }

    /// The range that begins with this character, if there is one.
    fn range(&mut self, item: Item) -> Result<Item, Missing> {
        let Item::Range(first, _) = item else { return Ok(item) };
        let Some(rest) = self.rest.strip_prefix('-') else { return Ok(item) };
        if rest.starts_with([']', '[']) {
            return Ok(item);
        }
        self.rest = rest;
        let last = match self.next().ok_or_else(wrong)? {
            '\\' => self.escaped()?,
            c => Item::Range(c, c),
        };
        match last {
            Item::Range(last, _) if first <= last => Ok(Item::Range(first, last)),
            _ => Err(wrong()),
        }
    }

    /// `:alpha:]` after an opening bracket.
    fn posix(&mut self) -> Result<Item, Missing> {
        let (name, rest) = self.rest.split_once(":]").ok_or_else(wrong)?;
        let name = name.strip_prefix(':').unwrap_or(name);
        let (name, is_negated) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        let names = ["alpha", "digit", "lower", "upper", "space", "word", "xdigit"];
        let property = names.contains(&name).then(|| Property::named(name)).flatten();
        let property = property.ok_or_else(|| not(&alloc::format!("[:{name}:]")))?;
        self.rest = rest;
        Ok(Item::Property(property, is_negated))
    }
}
