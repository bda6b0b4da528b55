//! Just enough JSON to read what cargo and `apr` print about themselves.

/// One JSON value. Numbers keep their text, which is what is compared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// `null`, `true`, `false` or a number, as printed.
    Bare(String),
    /// A string, unescaped.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object in the order of the text.
    Table(Vec<(String, Value)>),
}

impl Value {
    /// Parses a whole document; the message names the byte at which it stops making sense.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value()?;
        if reader.peek().is_some() { Err(reader.unexpected("the end")) } else { Ok(value) }
    }

    /// The value under `key`, if this is an object that has one.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Table(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The elements, none if this is no array.
    pub(crate) fn list(&self) -> &[Self] {
        match self {
            Self::List(values) => values,
            _ => &[],
        }
    }

    /// The entries, none if this is no object.
    pub(crate) fn table(&self) -> &[(String, Self)] {
        match self {
            Self::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a string under `key`.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Self::text)
    }

    /// A number as it was printed.
    pub(crate) fn bare(&self) -> Option<&str> {
        match self {
            Self::Bare(text) => Some(text),
            _ => None,
        }
    }
}

struct Reader<'text> {
    text: &'text str,
    at: usize,
}

impl Reader<'_> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        self.at += rest.len() - rest.trim_start().len();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.take(byte) { Ok(()) } else { Err(self.unexpected(&format!("`{}`", char::from(byte)))) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        format!("JSON: wanted {wanted} at byte {}", self.at)
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'"') => self.string().map(Value::Text),
            Some(b'[') => self.items(b'[', b']', Self::value).map(Value::List),
            Some(b'{') => self.items(b'{', b'}', Self::entry).map(Value::Table),
            Some(_) => self.bare(),
            None => Err(self.unexpected("a value")),
        }
    }

    fn entry(&mut self) -> Result<(String, Value), String> {
        self.peek();
        let key = self.string()?;
        self.expect(b':')?;
        Ok((key, self.value()?))
    }

    fn items<T>(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        self.expect(open)?;
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(b',')?;
        }
    }

    fn bare(&mut self) -> Result<Value, String> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c)).unwrap_or(rest.len());
        if end == 0 {
            return Err(self.unexpected("a value"));
        }
        self.at += end;
        Ok(Value::Bare(rest.chars().take(end).collect()))
    }

    fn string(&mut self) -> Result<String, String> {
        if self.text.as_bytes().get(self.at) != Some(&b'"') {
            return Err(self.unexpected("a string"));
        }
        let start = self.at + 1;
        let mut chars = self.text.get(start..).unwrap_or_default().char_indices();
        let mut out = String::new();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + offset + 1;
                    return Ok(out);
                }
                '\\' => match chars.next().map(|(_, escape)| escape) {
                    Some('n') => out.push('\n'),
                    Some('t') => out.push('\t'),
                    Some('r') => out.push('\r'),
                    Some('b') => out.push('\u{8}'),
                    Some('f') => out.push('\u{c}'),
                    Some('u') => {
                        let digits: String = chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                        let code = u32::from_str_radix(&digits, 16)
                            .map_err(|_| self.unexpected("four hex digits"))?;
                        // Halves of a pair do not occur in what we read: names of ours are ASCII.
                        out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                    }
                    Some(literal) => out.push(literal),
                    None => break,
                },
                plain => out.push(plain),
            }
        }
        Err(self.unexpected("the end of a string"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_kind_are_read() {
        let value =
            Value::parse(r#" {"a":[1, -2.5e3 ,null],"b":{"c":"x\n\u0041\\"},"d":[],"e":{}} "#).unwrap();
        let numbers: Vec<_> = value.get("a").unwrap().list().iter().filter_map(Value::bare).collect();
        assert_eq!(numbers, ["1", "-2.5e3", "null"]);
        assert_eq!(value.get("b").unwrap().text_of("c"), Some("x\nA\\"));
        assert!(value.get("d").unwrap().list().is_empty());
        assert_eq!(value.table().len(), 4);
        assert_eq!(value.get("z"), None);
    }

    #[test]
    fn broken_text_is_refused_with_its_place() {
        for (text, byte) in
            [("", 0), ("[1", 2), ("{\"a\" 1}", 5), ("[1,]", 3), ("1 2", 2), ("{1:2}", 1), ("\"a", 0)]
        {
            let error = Value::parse(text).unwrap_err();
            assert!(error.ends_with(&format!("at byte {byte}")), "{text}: {error}");
        }
    }
}
