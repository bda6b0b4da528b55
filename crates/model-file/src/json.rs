//! JSON in metadata: a tree of values, or the texts of the members or elements.

use alloc::string::String;
use alloc::vec::Vec;

use apr_container::{Map, Value};
use json_scan::{Check, Error, Scanner};

/// Most arrays and objects within one another.
const MAX_DEPTH: usize = 127;

/// The value of a text; `None` if it is not JSON.
pub(crate) fn parse(text: &str) -> Option<Value> {
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    let start = scanner.pos();
    // After this the values are known to be valid, and the depth of the recursion to be limited.
    scanner.skip_value(MAX_DEPTH).ok()?;
    let value = scanner.text_from(start);
    scanner.skip_white_space();
    scanner.finish().ok()?;
    tree(&mut Scanner::new(value, Check::Values)).ok()
}

fn tree(scanner: &mut Scanner<'_>) -> Result<Value, Error> {
    let value = match scanner.peek() {
        Some(b'{') => {
            let mut map = Map::new();
            scanner.members(|scanner, key, _| {
                map.insert(key.unescape().into_owned(), tree(scanner)?);
                Ok::<_, Error>(())
            })?;
            Value::Map(map)
        }
        Some(b'[') => {
            let mut values = Vec::new();
            scanner.items(|scanner, _| {
                values.push(tree(scanner)?);
                Ok::<_, Error>(())
            })?;
            Value::Array(values)
        }
        Some(b'"') => Value::from(&*scanner.string()?.unescape()),
        Some(b't') => word(scanner, "true", Value::Bool(true)),
        Some(b'f') => word(scanner, "false", Value::Bool(false)),
        Some(b'n') => word(scanner, "null", Value::Nil),
        _ => number(scanner.number()?),
    };
    scanner.skip_white_space();
    Ok(value)
}

fn word(scanner: &mut Scanner<'_>, word: &str, value: Value) -> Value {
    scanner.advance(word.len());
    value
}

fn number(text: &str) -> Value {
    // An integer has no negative zero.
    if let (Ok(number), true) = (text.parse(), text != "-0") {
        Value::Int(number)
    } else if let Ok(number) = text.parse() {
        Value::UInt(number)
    } else {
        Value::F64(text.parse().unwrap_or(f64::NAN))
    }
}

/// The members of an object in their order, as texts.
pub(crate) fn members(text: &str) -> Result<Vec<(String, &str)>, Error> {
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    let mut members = Vec::new();
    scanner.members(|scanner, key, _| {
        members.push((key.unescape().into_owned(), raw(scanner)?));
        Ok::<_, Error>(())
    })?;
    scanner.finish()?;
    Ok(members)
}

/// The elements of an array, as texts.
pub(crate) fn items(text: &str) -> Result<Vec<&str>, Error> {
    let mut scanner = Scanner::new(text, Check::Values);
    scanner.skip_white_space();
    let mut items = Vec::new();
    scanner.items(|scanner, _| {
        items.push(raw(scanner)?);
        Ok::<_, Error>(())
    })?;
    scanner.finish()?;
    Ok(items)
}

/// The text of the next value, and moves over the white space after it.
fn raw<'t>(scanner: &mut Scanner<'t>) -> Result<&'t str, Error> {
    let start = scanner.pos();
    scanner.skip_value(MAX_DEPTH)?;
    let text = scanner.text_from(start);
    scanner.skip_white_space();
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_type() {
        let text = " [0, -1, 18446744073709551615, -0, 0.5, 1e3, 18446744073709551616, null, true, \"\\u00e9\", {\"a\": {}}] ";
        let values = parse(text).unwrap();
        let found: Vec<&Value> = values.as_array().unwrap().iter().collect();
        assert_eq!((found[0], found[1], found[2]), (&Value::Int(0), &Value::Int(-1), &Value::UInt(u64::MAX)));
        assert!(found[3].as_f64().unwrap().is_sign_negative());
        assert_eq!((found[4], found[5]), (&Value::F64(0.5), &Value::F64(1000.0)));
        assert_eq!(found[6], &Value::F64(18_446_744_073_709_551_616.0));
        assert_eq!((found[7], found[8], found[9]), (&Value::Nil, &Value::Bool(true), &Value::from("é")));
        for wrong in ["", "[1", "1 2", "nul", "1e999", "\"\\ud800\""] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert_eq!(parse(&("[".repeat(200) + &"]".repeat(200))), None);
    }
}
