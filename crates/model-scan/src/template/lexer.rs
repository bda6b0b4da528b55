//! Tokens of Jinja, as jinja2 3.1 reads them with its usual delimiters.

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

/// A token of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Number,
    /// An operator or a bracket.
    Sign(&'static str),
    /// `{%` and `%}`
    OpenBlock,
    CloseBlock,
    /// `{{` and `}}`
    OpenOutput,
    CloseOutput,
}

/// Longer ones first.
const SIGNS: [&str; 29] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";", "!", "@", "^",
];

/// The tokens; `None` if it is no template. Text between blocks and comments have none.
pub(super) fn tokens(template: &str) -> Option<Vec<Token>> {
    let (mut rest, mut tokens) = (template, Vec::new());
    while let Some(at) = rest.find('{') {
        let (_, here) = rest.split_at_checked(at)?;
        rest = if let Some(comment) = here.strip_prefix("{#") {
            after(comment, "#}")?
        } else if let Some(output) = here.strip_prefix("{{") {
            tokens.push(Token::OpenOutput);
            inside(output, "}}", Token::CloseOutput, &mut tokens)?
        } else if let Some(block) = here.strip_prefix("{%") {
            match raw(block) {
                Some(raw) => raw_end(raw)?,
                None => {
                    tokens.push(Token::OpenBlock);
                    inside(block, "%}", Token::CloseBlock, &mut tokens)?
                }
            }
        } else {
            here.get(1..)?
        };
    }
    Some(tokens)
}

fn after<'t>(text: &'t str, end: &str) -> Option<&'t str> {
    text.split_once(end).map(|(_, rest)| rest)
}

/// What follows `raw %}`, if a block begins with that.
fn raw(block: &str) -> Option<&str> {
    tag(block.strip_prefix(['-', '+']).unwrap_or(block), "raw")
}

/// What follows a word and the end of its block.
fn tag<'t>(block: &'t str, word: &str) -> Option<&'t str> {
    let rest = block.trim_start().strip_prefix(word)?.trim_start();
    rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix("%}")
}

/// What follows the end of a raw block.
fn raw_end(mut text: &str) -> Option<&str> {
    loop {
        text = after(text, "{%")?;
        if let Some(rest) = tag(text.strip_prefix(['-', '+']).unwrap_or(text), "endraw") {
            return Some(rest);
        }
    }
}

/// Tokens of a block up to its end; what follows it.
fn inside<'t>(block: &'t str, end: &str, close: Token, tokens: &mut Vec<Token>) -> Option<&'t str> {
    let mut rest = block.strip_prefix(['-', '+']).unwrap_or(block);
    // Brackets that are open: `}}` may be two of them.
    let mut open = 0_usize;
    loop {
        rest = rest.trim_start();
        let closed = rest.strip_prefix(['-', '+']).unwrap_or(rest).strip_prefix(end);
        if let Some(rest) = closed.or_else(|| rest.strip_prefix(end)).filter(|_| open == 0) {
            tokens.push(close);
            return Some(rest);
        }
        let first = rest.chars().next()?;
        rest = if first == '\'' || first == '"' {
            let (text, rest) = string(rest.get(1..)?, first)?;
            tokens.push(Token::Text(text));
            rest
        } else if first.is_ascii_digit() {
            tokens.push(Token::Number);
            number(rest)
        } else if first == '_' || first.is_alphabetic() {
            let name_end =
                rest.find(|next: char| next != '_' && !next.is_alphanumeric()).unwrap_or(rest.len());
            let (name, rest) = rest.split_at_checked(name_end)?;
            tokens.push(Token::Name(name.to_owned()));
            rest
        } else {
            let sign = SIGNS.into_iter().find(|sign| rest.starts_with(*sign))?;
            match sign {
                "(" | "[" | "{" => open += 1,
                ")" | "]" | "}" => open = open.checked_sub(1)?,
                _ => {}
            }
            tokens.push(Token::Sign(sign));
            rest.strip_prefix(sign)?
        };
    }
}

/// What follows a number: digits and letters, with a point only before a digit.
fn number(text: &str) -> &str {
    let mut rest = text.trim_start_matches(|next: char| next == '_' || next.is_ascii_alphanumeric());
    if let Some(fraction) =
        rest.strip_prefix('.').filter(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
    {
        rest = fraction.trim_start_matches(|next: char| next == '_' || next.is_ascii_alphanumeric());
    }
    rest
}

/// A text after its quotation mark, with escapes decoded as Python does, and what follows it. A character by its name is an underscore: that is
/// the only use of it.
fn string(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut decoded, mut characters) = (String::new(), text.chars());
    loop {
        let character = match characters.next()? {
            found if found == quote => return Some((decoded, characters.as_str())),
            '\\' => match characters.next()? {
                // The text goes on in the next line.
                '\n' => continue,
                '\r' => {
                    characters =
                        characters.as_str().strip_prefix('\n').unwrap_or(characters.as_str()).chars();
                    continue;
                }
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'x' => code(&mut characters, 16, 2)?,
                'u' => code(&mut characters, 16, 4)?,
                'U' => code(&mut characters, 16, 8)?,
                'N' => '_',
                first @ '0'..='7' => {
                    let mut code = first.to_digit(8)?;
                    for _ in 0..2 {
                        let Some(digit) = characters.clone().next().and_then(|next| next.to_digit(8)) else {
                            break;
                        };
                        characters.next();
                        code = code * 8 + digit;
                    }
                    char::from_u32(code)?
                }
                other => other,
            },
            other => other,
        };
        decoded.push(character);
    }
}

fn code(characters: &mut core::str::Chars<'_>, radix: u32, n_digits: u32) -> Option<char> {
    let mut code = 0_u32;
    for _ in 0..n_digits {
        code = code.checked_mul(radix)?.checked_add(characters.next()?.to_digit(radix)?)?;
    }
    // Halves of characters are none of an underscore.
    Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn shown(template: &str) -> Option<String> {
        let shown: Vec<_> = tokens(template)?
            .iter()
            .map(|token| match token {
                Token::Name(name) => name.clone(),
                Token::Text(text) => format!("'{text}'"),
                Token::Number => String::from("0"),
                Token::Sign(sign) => String::from(*sign),
                Token::OpenBlock => String::from("<"),
                Token::CloseBlock => String::from(">"),
                Token::OpenOutput => String::from("{{"),
                Token::CloseOutput => String::from("}}"),
            })
            .collect();
        Some(shown.join(" "))
    }

    #[test]
    fn tokens_are_those_of_blocks() {
        for (template, expected) in [
            ("text { } %} }} '", ""),
            ("a{{ b }}c{% if d %}e", "{{ b }} < if d >"),
            ("{{- b -}}{%+ if d +%}{{+c+}}", "{{ b }} < if d > {{ c }}"),
            ("{{ -1 }}", "{{ - 0 }}"),
            ("{# {{ x }} '#}{{ y }}", "{{ y }}"),
            ("{% raw %}{{ x }}{% if %}{%- endraw -%}{{ y }}", "{{ y }}"),
            ("{%-raw-%}{%endif%}{%endraw%}{{y}}", "{{ y }}"),
            ("{%+ raw +%} {%+ endraw +%}{{ y }}", "{{ y }}"),
            ("{% rawx %}", "< rawx >"),
            ("{{ '}}' ~ \"%}\" }}", "{{ '}}' ~ '%}' }}"),
            ("{{ {'a': {'b': 1}} }}", "{{ { 'a' : { 'b' : 0 } } }}"),
            ("{{ {}}}", "{{ { } }}"),
            ("{{ a1_b.c2 1.5e3 1_0 2.x }}", "{{ a1_b . c2 0 0 0 . x }}"),
            ("{{ 0x1f.5 3. }}", "{{ 0 0 . }}"),
            ("{{ a//b**c==d!=e>=f<=g }}", "{{ a // b ** c == d != e >= f <= g }}"),
            ("{{ [a](b)+-/*%~>< =.:|,;!@^ }}", "{{ [ a ] ( b ) + - / * % ~ > < = . : | , ; ! @ ^ }}"),
            ("{{ \u{e4}x }}", "{{ \u{e4}x }}"),
        ] {
            assert_eq!(shown(template).as_deref(), Some(expected), "{template}");
        }
        for template in [
            "{{ a",
            "{% a",
            "{# a",
            "{{ ' }}",
            "{{ $ }}",
            "{{ ) }}",
            "{{ (a }}",
            "{% raw %}{{",
            "{{ '\\xzz' }}",
        ] {
            assert_eq!(shown(template), None, "{template}");
        }
    }

    #[test]
    fn texts_are_decoded() {
        for (text, expected) in [
            (r"a\n\t\r\\\'\q", "a\n\t\r\\'q"),
            (r"\x5f\u005F\U0000005f\137\1378\7", "_____8\u{7}"),
            (r"\N{LOW LINE}", "_{LOW LINE}"),
            (r"\ud800", "\u{fffd}"),
            (r"\0a", "\0a"),
            ("a\\\nb\\\r\nc\\\rd", "abcd"),
        ] {
            let template = format!("{{{{ '{text}' }}}}");
            let found = tokens(&template).expect("a template");
            assert_eq!(found.get(1), Some(&Token::Text(String::from(expected))), "{text}");
        }
        assert_eq!(tokens("{{ '\\U1FFFFFFFFF' }}").map(|found| found.len()), Some(3));
    }
}
