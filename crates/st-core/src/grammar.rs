//! The JSON grammar of a header: an object of tensor entries and at most one `__metadata__`.
//!
//! ```text
//! header   = "{" [ member *( "," member ) ] "}"
//! member   = "__metadata__" ":" ( null | "{" [ string ":" string ... ] "}" )
//!          | name ":" entry
//! entry    = { "dtype": string, "shape": [ integer ... ], "data_offsets": [ integer, integer ], ... }
//! ```
//!
//! One pass over the text reports each member to a [`Visit`]; nothing is stored here.

use json_scan::{Check, RawStr, Scanner};

use crate::canonical;
use crate::error::{Error, ErrorKind};
use crate::limits::Strictness;
use tensor_dtype::Dtype;

pub(crate) const METADATA_KEY: &str = "__metadata__";

/// Deepest nesting of arrays and objects, counted from the outermost; the limit of the official reader.
pub(crate) const MAX_DEPTH: u8 = 127;

/// The result of a step: an error has its byte offset in the text.
pub(crate) type Scan<T> = Result<T, Error>;

/// The error `kind` at the position of the scanner.
#[cold]
#[inline(never)]
pub(crate) fn fault(scanner: &Scanner<'_>, kind: ErrorKind) -> Error {
    kind.in_text(scanner.pos())
}

/// Moves over any value and the white space after it, inside `depth` arrays and objects. It is checked as by a parser that keeps it.
pub(crate) fn skip_value(scanner: &mut Scanner<'_>, depth: u8) -> Scan<()> {
    scanner.skip_value(usize::from(MAX_DEPTH - depth))?;
    scanner.skip_white_space();
    Ok(())
}

/// A string where other values are well-formed too, and the white space after it.
pub(crate) fn string_value<'h>(scanner: &mut Scanner<'h>) -> Scan<RawStr<'h>> {
    match scanner.peek() {
        Some(b'"') => Ok(scanner.string()?),
        _ => Err(fault(scanner, ErrorKind::WrongType { expected: "a string" })),
    }
}

/// A tensor's entry. Its shape has been reported dimension by dimension before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'h> {
    pub(crate) name: RawStr<'h>,
    pub(crate) dtype: Dtype,
    /// The JSON array of dimensions.
    pub(crate) shape: &'h str,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    /// Byte offset of the entry, with its name, in the text.
    pub(crate) at: usize,
    pub(crate) text_len: usize,
}

/// Receives the members of a header. Everything but tensors is ignored unless overridden.
pub(crate) trait Visit<'h> {
    /// `__metadata__` is an object.
    fn metadata_begins(&mut self) {}

    /// An item of it.
    fn metadata(&mut self, _key: RawStr<'h>, _value: RawStr<'h>, _at: usize) -> Scan<()> {
        Ok(())
    }

    /// A tensor's dimensions begin; those reported since the last tensor count no more.
    fn shape_begins(&mut self) {}

    /// The next dimension.
    fn dim(&mut self, _dim: u64, _at: usize) -> Scan<()> {
        Ok(())
    }

    /// A tensor, complete.
    fn tensor(&mut self, entry: Entry<'h>) -> Scan<()>;
}

/// Reads a whole header.
pub(crate) fn visit_header<'h>(
    text: &'h str,
    strictness: Strictness,
    visit: &mut impl Visit<'h>,
) -> Scan<()> {
    let mut pass = Pass { scanner: Scanner::new(text, Check::Values), strictness };
    pass.header(visit)
}

struct Pass<'h> {
    scanner: Scanner<'h>,
    strictness: Strictness,
}

const OBJECT: ErrorKind = ErrorKind::WrongType { expected: "an object" };
const ENTRY: ErrorKind = ErrorKind::WrongType { expected: "a tensor entry" };
const DTYPE: ErrorKind = ErrorKind::WrongType { expected: "a dtype name" };
const SHAPE: ErrorKind = ErrorKind::WrongType { expected: "an array of dimensions" };
const OFFSETS: ErrorKind = ErrorKind::WrongType { expected: "an array of two offsets" };
const TRIPLE: ErrorKind = ErrorKind::WrongType { expected: "an array of dtype, shape and data_offsets" };

impl<'h> Pass<'h> {
    fn header(&mut self, visit: &mut impl Visit<'h>) -> Scan<()> {
        self.scanner.skip_white_space();
        if self.scanner.pos() != 0 && self.strictness == Strictness::Strict {
            return Err(ErrorKind::LeadingWhitespace.in_text(0));
        }
        self.open_object()?;
        let mut metadata_seen = false;
        if !self.scanner.eat(b'}') {
            loop {
                let at = self.scanner.pos();
                let name = self.scanner.bare_string()?;
                if name.is(METADATA_KEY) {
                    if metadata_seen {
                        return Err(ErrorKind::DuplicateMetadata.in_text(at));
                    }
                    metadata_seen = true;
                    self.colon()?;
                    self.metadata(visit)?;
                } else {
                    self.tensor(name, at, visit)?;
                }
                self.scanner.skip_white_space();
                if !self.scanner.eat(b',') {
                    break;
                }
            }
            self.scanner.expect(b'}', "a comma or a closing brace")?;
        }
        Ok(self.scanner.finish()?)
    }

    fn colon(&mut self) -> Scan<()> {
        self.scanner.skip_white_space();
        Ok(self.scanner.expect(b':', "a colon")?)
    }

    fn metadata(&mut self, visit: &mut impl Visit<'h>) -> Scan<()> {
        if self.scanner.strip("null") {
            return Ok(());
        }
        self.open_object()?;
        visit.metadata_begins();
        if self.scanner.eat(b'}') {
            return Ok(());
        }
        loop {
            let at = self.scanner.pos();
            let key = self.scanner.key()?;
            let value = string_value(&mut self.scanner)?;
            visit.metadata(key, value, at)?;
            if !self.scanner.eat(b',') {
                return Ok(self.scanner.expect(b'}', "a comma or a closing brace")?);
            }
        }
    }

    fn tensor(&mut self, name: RawStr<'h>, at: usize, visit: &mut impl Visit<'h>) -> Scan<()> {
        let fields = match canonical::entry(&mut self.scanner, visit) {
            Some(fields) => fields,
            None => {
                self.colon()?;
                self.entry(visit)?
            }
        };
        let text_len = self.scanner.pos() - at;
        let Fields { dtype, shape, offsets: (begin, end) } = fields;
        visit.tensor(Entry { name, dtype, shape, begin, end, at, text_len })
    }

    fn entry(&mut self, visit: &mut impl Visit<'h>) -> Scan<Fields<'h>> {
        match self.scanner.peek() {
            Some(b'{') => self.entry_object(visit),
            Some(b'[') if self.strictness == Strictness::Strict => {
                Err(fault(&self.scanner, ErrorKind::EntryAsArray))
            }
            Some(b'[') => self.entry_array(visit),
            _ => Err(fault(&self.scanner, ENTRY)),
        }
    }

    fn entry_object(&mut self, visit: &mut impl Visit<'h>) -> Scan<Fields<'h>> {
        let at = self.scanner.pos();
        let (mut dtype, mut shape, mut offsets) = (None, None, None);
        self.open_object()?;
        if !self.scanner.eat(b'}') {
            loop {
                let key_at = self.scanner.pos();
                let key = self.scanner.key()?;
                let duplicate = |field| ErrorKind::DuplicateField { field }.in_text(key_at);
                if key.is("dtype") {
                    let value = self.dtype()?;
                    if dtype.replace(value).is_some() {
                        return Err(duplicate("dtype"));
                    }
                } else if key.is("shape") {
                    let value = self.shape(visit)?;
                    if shape.replace(value).is_some() {
                        return Err(duplicate("shape"));
                    }
                } else if key.is("data_offsets") {
                    let value = self.offsets()?;
                    if offsets.replace(value).is_some() {
                        return Err(duplicate("data_offsets"));
                    }
                } else {
                    // The header object and this entry are open.
                    skip_value(&mut self.scanner, 2)?;
                }
                if !self.scanner.eat(b',') {
                    break;
                }
            }
            self.scanner.expect(b'}', "a comma or a closing brace")?;
        }
        let missing = |field| ErrorKind::MissingField { field }.in_text(at);
        Ok(Fields {
            dtype: dtype.ok_or_else(|| missing("dtype"))?,
            shape: shape.ok_or_else(|| missing("shape"))?,
            offsets: offsets.ok_or_else(|| missing("data_offsets"))?,
        })
    }

    fn entry_array(&mut self, visit: &mut impl Visit<'h>) -> Scan<Fields<'h>> {
        self.open_array(TRIPLE)?;
        let dtype = self.dtype()?;
        self.next_element(TRIPLE)?;
        let shape = self.shape(visit)?;
        self.next_element(TRIPLE)?;
        let offsets = self.offsets()?;
        self.close_array(TRIPLE)?;
        Ok(Fields { dtype, shape, offsets })
    }

    fn dtype(&mut self) -> Scan<Dtype> {
        let at = self.scanner.pos();
        let name = match self.scanner.peek() {
            Some(b'"') => self.scanner.string()?,
            Some(b'{') if self.strictness == Strictness::Strict => {
                return Err(fault(&self.scanner, ErrorKind::DtypeAsMap));
            }
            Some(b'{') => {
                self.open_object()?;
                let name = self.scanner.key()?;
                if !self.scanner.strip("null") {
                    return Err(fault(&self.scanner, DTYPE));
                }
                self.scanner.skip_white_space();
                self.scanner.expect(b'}', "a closing brace")?;
                name
            }
            _ => return Err(fault(&self.scanner, DTYPE)),
        };
        let known = Dtype::ELEMENTS.into_iter().find(|dtype| name.is(dtype.name()));
        known.ok_or_else(|| ErrorKind::UnknownDtype.in_text(at))
    }

    fn shape(&mut self, visit: &mut impl Visit<'h>) -> Scan<&'h str> {
        let start = self.scanner.pos();
        visit.shape_begins();
        self.open_array(SHAPE)?;
        if !self.scanner.eat(b']') {
            loop {
                let at = self.scanner.pos();
                let dim = self.scanner.integer()?;
                visit.dim(dim, at)?;
                if !self.scanner.eat(b',') {
                    break;
                }
            }
            self.close_array(SHAPE)?;
        }
        Ok(self.scanner.text_from(start))
    }

    fn offsets(&mut self) -> Scan<(u64, u64)> {
        self.open_array(OFFSETS)?;
        let begin = self.scanner.integer()?;
        self.next_element(OFFSETS)?;
        let end = self.scanner.integer()?;
        self.close_array(OFFSETS)?;
        Ok((begin, end))
    }

    fn open_object(&mut self) -> Scan<()> {
        if self.scanner.eat(b'{') { Ok(()) } else { Err(fault(&self.scanner, OBJECT)) }
    }

    fn open_array(&mut self, otherwise: ErrorKind) -> Scan<()> {
        if self.scanner.eat(b'[') { Ok(()) } else { Err(fault(&self.scanner, otherwise)) }
    }

    fn next_element(&mut self, otherwise: ErrorKind) -> Scan<()> {
        self.scanner.skip_white_space();
        if self.scanner.eat(b',') { Ok(()) } else { Err(fault(&self.scanner, otherwise)) }
    }

    fn close_array(&mut self, otherwise: ErrorKind) -> Scan<()> {
        self.scanner.skip_white_space();
        if self.scanner.eat(b']') { Ok(()) } else { Err(fault(&self.scanner, otherwise)) }
    }
}

/// The fields of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'h> {
    pub(crate) dtype: Dtype,
    pub(crate) shape: &'h str,
    pub(crate) offsets: (u64, u64),
}
