//! The part of YAML that cards of models have: mappings and lists in lines or in brackets, scalars of every style. Anchors, tags, keys
//! that are not scalars, and documents after the first are refused.

mod scalar;

use alloc::string::String;
use alloc::vec::Vec;
use core::mem;

pub(super) use self::scalar::Scalar;

/// Mappings and lists within one another.
const MAX_DEPTH: usize = 32;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Yaml {
    Scalar(Scalar),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

/// Where reading stops, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The line of the file, from 1.
    pub(super) line: u64,
    pub(super) what: &'static str,
}

/// A name of the outermost mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) line: u64,
}

/// Reads lines.
#[derive(Clone, Debug)]
pub(super) struct Reader<'l> {
    lines: &'l [&'l str],
    line: usize,
    /// Bytes of the line that have been read.
    col: usize,
    depth: usize,
}

type Read<T> = Result<T, Stop>;

impl<'l> Reader<'l> {
    /// A reader of the lines after the first one of a file.
    pub(super) const fn new(lines: &'l [&'l str]) -> Self {
        Self { lines, line: 0, col: 0, depth: 0 }
    }

    /// The next name of the outermost mapping; its value is read next. `None` at the end, and if the outermost value is no
    /// mapping.
    pub(super) fn entry(&mut self) -> Read<Option<Entry>> {
        self.skip_blank();
        let Some(line) = self.lines.get(self.line) else { return Ok(None) };
        if line.starts_with("...") || is_item(line) {
            return Ok(None);
        }
        self.col = 0;
        let line = self.number();
        Ok(Some(Entry { name: self.key()?, line }))
    }

    /// The value of the name that was read.
    pub(super) fn value(&mut self) -> Read<Yaml> {
        self.value_of_key(0)
    }

    /// Moves over the value of the name that was read, whatever its form.
    pub(super) fn skip_value(&mut self) {
        let before = self.clone();
        if self.value().is_ok() {
            return;
        }
        *self = before;
        self.next_line();
        while let Some(line) = self.lines.get(self.line) {
            if !is_blank(line) && !line.starts_with(' ') && !is_item(line) {
                break;
            }
            self.next_line();
        }
    }

    fn number(&self) -> u64 {
        self.line as u64 + 2
    }

    fn stop<T>(&self, what: &'static str) -> Read<T> {
        Err(Stop { line: self.number().min(self.lines.len() as u64 + 2), what })
    }

    /// What is left of the line.
    fn rest(&self) -> &'l str {
        self.lines.get(self.line).and_then(|line| line.get(self.col..)).unwrap_or_default()
    }

    fn next_line(&mut self) {
        self.line += 1;
        self.col = 0;
    }

    fn skip_blank(&mut self) {
        while self.lines.get(self.line).is_some_and(|line| is_blank(line)) {
            self.next_line();
        }
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.col += rest.len() - rest.trim_start_matches(' ').len();
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == MAX_DEPTH {
            return self.stop("values are nested too deeply");
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Where the key of a mapping ends that begins here: before its colon, and after it.
    fn key_end(&self) -> Option<(usize, usize)> {
        let rest = self.rest();
        if rest.starts_with(['"', '\'']) {
            let mut after = self.clone();
            after.quoted().ok()?;
            let colon = after.rest().trim_start_matches(' ');
            if after.line != self.line || !ends_key(colon) {
                return None;
            }
            let begin = rest.len().checked_sub(colon.len())?;
            return Some((begin, begin + 1));
        }
        let comment = rest.find(" #").unwrap_or(rest.len());
        let colon = rest.match_indices(':').map(|(at, _)| at).find(|at| ends_key(&rest[*at..]))?;
        (colon < comment && !rest.starts_with(INDICATORS)).then_some((colon, colon + 1))
    }

    /// The key of a mapping.
    fn key(&mut self) -> Read<String> {
        let Some((end, after)) = self.key_end() else { return self.stop("expected a name and a colon") };
        let key = match self.rest().starts_with(['"', '\'']) {
            true => self.clone().quoted()?,
            false => self.rest()[..end].trim_end().into(),
        };
        self.col += after;
        Ok(key)
    }

    /// What follows the colon of a key with this indentation.
    fn value_of_key(&mut self, indent: usize) -> Read<Yaml> {
        self.skip_spaces();
        if !is_blank(self.rest()) {
            return self.inline(indent);
        }
        self.next_line();
        self.skip_blank();
        let Some(line) = self.lines.get(self.line) else { return Ok(Scalar::plain("")) };
        let own = indentation(line);
        if is_item(&line[own..]) && own >= indent {
            self.deeper(|reader| reader.list(own))
        } else if own > indent {
            self.col = own;
            self.block(own, indent)
        } else {
            Ok(Scalar::plain(""))
        }
    }

    /// A value that begins here, `own` bytes into its line, below something with the indentation `parent`.
    fn block(&mut self, own: usize, parent: usize) -> Read<Yaml> {
        if is_item(self.rest()) {
            return self.deeper(|reader| reader.list(own));
        }
        if self.key_end().is_some() {
            return self.deeper(|reader| reader.mapping(own));
        }
        self.inline(parent)
    }

    /// Items with this indentation.
    fn list(&mut self, indent: usize) -> Read<Yaml> {
        let mut items = Vec::new();
        self.col = indent;
        while is_item(self.rest()) {
            self.col += 1;
            self.skip_spaces();
            let own = self.col;
            if is_blank(self.rest()) {
                self.next_line();
                self.skip_blank();
                let own = self.lines.get(self.line).map_or(0, |line| indentation(line));
                self.col = own;
                let is_below = own > indent && self.line < self.lines.len();
                items.push(if is_below { self.block(own, indent)? } else { Scalar::plain("") });
            } else {
                items.push(self.block(own, indent)?);
            }
            if !self.at_indentation(indent)? {
                break;
            }
        }
        Ok(Yaml::List(items))
    }

    /// Members with this indentation.
    fn mapping(&mut self, indent: usize) -> Read<Yaml> {
        let mut members = Vec::new();
        self.col = indent;
        loop {
            let key = self.key()?;
            members.push((key, self.value_of_key(indent)?));
            if !self.at_indentation(indent)? || is_item(self.rest()) {
                return Ok(Yaml::Map(members));
            }
        }
    }

    /// Moves to the next line that has something; whether it has this indentation, and not a smaller one.
    fn at_indentation(&mut self, indent: usize) -> Read<bool> {
        self.skip_blank();
        let Some(line) = self.lines.get(self.line) else { return Ok(false) };
        let own = indentation(line);
        if own > indent {
            return self.stop("the line is indented more than the one above that it belongs to");
        }
        self.col = own;
        Ok(own == indent)
    }

    /// A scalar, or a value in brackets.
    fn inline(&mut self, parent: usize) -> Read<Yaml> {
        let rest = self.rest();
        match rest.chars().next().unwrap_or_default() {
            '"' | '\'' => {
                let text = self.quoted()?;
                self.end_line()?;
                Ok(Scalar::quoted(text))
            }
            '[' | '{' => {
                let value = self.flow()?;
                self.end_line()?;
                Ok(value)
            }
            '|' | '>' => self.block_scalar(parent),
            _ if rest.starts_with(INDICATORS) || is_item(rest) => {
                self.stop("anchors, tags and such are not read")
            }
            _ => self.plain(parent),
        }
    }

    fn end_line(&mut self) -> Read<()> {
        let rest = self.rest();
        if !rest.trim_start_matches(' ').is_empty() && !rest.trim_start().starts_with('#') {
            return self.stop("unexpected text after a value");
        }
        self.next_line();
        Ok(())
    }

    /// Text without quotes, with the lines after it that are indented more than `parent`.
    fn plain(&mut self, parent: usize) -> Read<Yaml> {
        let mut text = String::new();
        let mut n_blank = 0;
        loop {
            let rest = self.rest();
            let comment = rest.find(" #");
            let line = rest[..comment.unwrap_or(rest.len())].trim_matches(' ');
            if line.match_indices(':').any(|(at, _)| ends_key(&line[at..])) {
                return self.stop("a colon in text that has no quotes");
            }
            if !text.is_empty() {
                text.push_str(if n_blank == 0 { " " } else { "" });
                text.extend(core::iter::repeat_n('\n', n_blank));
            }
            text.push_str(line);
            self.next_line();
            if comment.is_some() {
                return Ok(Scalar::plain(text));
            }
            n_blank = 0;
            let mut ahead = self.line;
            while self.lines.get(ahead).is_some_and(|line| line.trim_matches(' ').is_empty()) {
                ahead += 1;
                n_blank += 1;
            }
            let next = self.lines.get(ahead).copied().unwrap_or_default();
            let own = indentation(next);
            if own <= parent || is_blank(next) {
                return Ok(Scalar::plain(text));
            }
            (self.line, self.col) = (ahead, own);
        }
    }

    /// Text in quotes, which may go on in the next lines.
    fn quoted(&mut self) -> Read<String> {
        let quote = self.rest().chars().next().unwrap_or_default();
        self.col += 1;
        let mut text = String::new();
        let mut spaces = String::new();
        loop {
            let Some(c) = self.rest().chars().next() else {
                spaces.clear();
                let n_ends = self.fold()?;
                text.push_str(if n_ends == 1 { " " } else { "" });
                text.extend(core::iter::repeat_n('\n', n_ends - 1));
                continue;
            };
            self.col += c.len_utf8();
            match c {
                ' ' => spaces.push(' '),
                '\'' if quote == '\'' && self.rest().starts_with('\'') => {
                    self.col += 1;
                    text.push_str(&mem::take(&mut spaces));
                    text.push('\'');
                }
                _ if c == quote => {
                    text.push_str(&spaces);
                    return Ok(text);
                }
                '\\' if quote == '"' => {
                    text.push_str(&mem::take(&mut spaces));
                    if self.rest().is_empty() {
                        // The end of the line is not part of the text.
                        let n_ends = self.fold()?;
                        text.extend(core::iter::repeat_n('\n', n_ends - 1));
                    } else {
                        text.push(self.escape()?);
                    }
                }
                _ => {
                    text.push_str(&mem::take(&mut spaces));
                    text.push(c);
                }
            }
        }
    }

    /// Moves to the next line that has something, within quotes; the number of ends of lines.
    fn fold(&mut self) -> Read<usize> {
        let mut n_ends = 0;
        loop {
            self.next_line();
            n_ends += 1;
            if self.line >= self.lines.len() {
                return self.stop("a quote is not closed");
            }
            self.skip_spaces();
            if !self.rest().is_empty() {
                return Ok(n_ends);
            }
        }
    }

    /// The character that an escape sequence stands for.
    fn escape(&mut self) -> Read<char> {
        let c = self.rest().chars().next().unwrap_or_default();
        self.col += c.len_utf8();
        let n_digits = match c {
            '0' => return Ok('\0'),
            'a' => return Ok('\u{7}'),
            'b' => return Ok('\u{8}'),
            't' => return Ok('\t'),
            'n' => return Ok('\n'),
            'v' => return Ok('\u{b}'),
            'f' => return Ok('\u{c}'),
            'r' => return Ok('\r'),
            'e' => return Ok('\u{1b}'),
            'N' => return Ok('\u{85}'),
            '_' => return Ok('\u{a0}'),
            'L' => return Ok('\u{2028}'),
            'P' => return Ok('\u{2029}'),
            ' ' | '"' | '\\' | '/' => return Ok(c),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return self.stop("an unknown escape sequence"),
        };
        let digits =
            self.rest().get(..n_digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32);
        self.col += n_digits;
        code.map_or_else(|| self.stop("an unknown escape sequence"), Ok)
    }

    /// A value in brackets, or within them.
    fn flow(&mut self) -> Read<Yaml> {
        self.skip_flow_space()?;
        match self.rest().chars().next().unwrap_or_default() {
            '[' => self.deeper(Self::flow_list),
            '{' => self.deeper(Self::flow_mapping),
            '"' | '\'' => Ok(Scalar::quoted(self.quoted()?)),
            _ if self.rest().starts_with(INDICATORS) => self.stop("anchors, tags and such are not read"),
            _ => Ok(Scalar::plain(self.flow_plain())),
        }
    }

    fn flow_list(&mut self) -> Read<Yaml> {
        self.col += 1;
        let mut items = Vec::new();
        loop {
            if self.eat_flow(']')? {
                return Ok(Yaml::List(items));
            }
            let item = self.flow()?;
            let item = match item {
                Yaml::Scalar(key) if self.eat_flow(':')? => Yaml::Map(alloc::vec![(key.text, self.flow()?)]),
                item => item,
            };
            items.push(item);
            if !self.eat_flow(',')? && !self.at_flow(']')? {
                return self.stop("expected a comma or a closing bracket");
            }
        }
    }

    fn flow_mapping(&mut self) -> Read<Yaml> {
        self.col += 1;
        let mut members = Vec::new();
        loop {
            if self.eat_flow('}')? {
                return Ok(Yaml::Map(members));
            }
            let Yaml::Scalar(key) = self.flow()? else { return self.stop("a name that is not text") };
            let value = if self.eat_flow(':')? { self.flow()? } else { Scalar::plain("") };
            members.push((key.text, value));
            if !self.eat_flow(',')? && !self.at_flow('}')? {
                return self.stop("expected a comma or a closing brace");
            }
        }
    }

    /// Text without quotes in brackets, up to what cannot be in it.
    fn flow_plain(&mut self) -> String {
        let rest = self.rest();
        let is_end = |at: usize, c: char| {
            ",[]{}".contains(c)
                || (c == ':' && rest[at + 1..].chars().next().is_none_or(|next| " ,[]{}".contains(next)))
                || (c == '#' && rest[..at].ends_with(' '))
        };
        let end = rest.char_indices().find(|(at, c)| is_end(*at, *c)).map_or(rest.len(), |(at, _)| at);
        self.col += end;
        rest[..end].trim_matches(' ').into()
    }

    /// Moves over spaces, ends of lines and comments in brackets.
    fn skip_flow_space(&mut self) -> Read<()> {
        loop {
            self.skip_spaces();
            if !self.rest().is_empty() && !self.rest().starts_with('#') {
                return Ok(());
            }
            self.next_line();
            if self.line >= self.lines.len() {
                return self.stop("a bracket is not closed");
            }
        }
    }

    fn at_flow(&mut self, c: char) -> Read<bool> {
        self.skip_flow_space()?;
        Ok(self.rest().starts_with(c))
    }

    fn eat_flow(&mut self, c: char) -> Read<bool> {
        let found = self.at_flow(c)?;
        self.col += usize::from(found);
        Ok(found)
    }

    /// Text whose lines are kept (`|`) or joined (`>`).
    fn block_scalar(&mut self, parent: usize) -> Read<Yaml> {
        let is_folded = self.rest().starts_with('>');
        self.col += 1;
        let (mut keeps, mut increment) = (None, None);
        for _ in 0..2 {
            match self.rest().chars().next() {
                Some(sign @ ('+' | '-')) => keeps = Some(sign == '+'),
                Some(digit @ '1'..='9') => increment = digit.to_digit(10),
                _ => break,
            }
            self.col += 1;
        }
        self.end_line()?;
        let below = self.lines.get(self.line..).unwrap_or_default();
        let first = below.iter().find(|line| !line.trim_matches(' ').is_empty());
        let indent = match increment {
            Some(increment) => parent + increment as usize,
            None => first.map_or(0, |line| indentation(line)).max(parent + 1),
        };
        let mut text = String::new();
        let mut n_blank = 0;
        let mut previous: Option<&str> = None;
        for line in below {
            if line.trim_matches(' ').is_empty() && line.len() <= indent {
                n_blank += 1;
            } else if indentation(line) >= indent {
                let content = &line[indent..];
                if let Some(previous) = previous {
                    let joins = is_folded && !previous.starts_with(' ') && !content.starts_with(' ');
                    text.push_str(if !joins {
                        "\n"
                    } else if n_blank == 0 {
                        " "
                    } else {
                        ""
                    });
                }
                text.extend(core::iter::repeat_n('\n', n_blank));
                text.push_str(content);
                previous = Some(content);
                n_blank = 0;
            } else {
                break;
            }
            self.next_line();
        }
        if previous.is_some() && keeps != Some(false) {
            text.push('\n');
        }
        text.extend(core::iter::repeat_n('\n', if keeps == Some(true) { n_blank } else { 0 }));
        Ok(Scalar::quoted(text))
    }
}

/// Characters that begin something else than plain text.
const INDICATORS: &[char] = &['&', '*', '!', '%', '@', '`', '[', ']', '{', '}', ',', '|', '>', '"', '\''];

/// Whether a text begins with the dash of a list.
fn is_item(text: &str) -> bool {
    text == "-" || text.starts_with("- ")
}

/// Whether a text begins with a colon that ends a key.
fn ends_key(text: &str) -> bool {
    text.strip_prefix(':').is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start_matches(' ');
    line.is_empty() || line.starts_with('#')
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests;
