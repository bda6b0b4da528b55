//! Cells of columns to write.

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellType {
    /// 32-bit floats.
    F32,
    /// 64-bit floats.
    F64,
    /// Signed integers of 64 bits.
    I64,
    /// Booleans.
    Bool,
    /// Strings.
    Text,
}

impl CellType {
    /// A word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "float",
            Self::F64 => "double",
            Self::I64 => "int64",
            Self::Bool => "bool",
            Self::Text => "string",
        }
    }
}

/// A column to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The name.
    pub name: String,
    /// The type of the cells.
    pub cell_type: CellType,
    /// Whether cells may be null.
    pub is_nullable: bool,
}

/// A value for each cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
    /// Signed integers.
    I64(Vec<i64>),
    /// Booleans.
    Bool(Vec<bool>),
    /// Strings.
    Text(Texts),
}

/// Strings in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    pub(crate) text: String,
    /// Where each string ends.
    pub(crate) ends: Vec<usize>,
}

impl Texts {
    /// Empty, with capacity for `count` strings.
    #[cfg(feature = "ald")]
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self { text: String::new(), ends: Vec::with_capacity(count) }
    }

    /// How many strings there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The strings in their order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = core::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| self.text.get(begin..end).unwrap_or_default())
    }

    /// Appends a string.
    pub fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Bytes of memory that they take, about.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.text.len() + 8 * self.ends.len()
    }

    /// Length of each string in bytes.
    pub(crate) fn lens(&self) -> impl Iterator<Item = usize> {
        let begins = core::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(begins).map(|(end, begin)| end - begin)
    }

    /// Bytes of the first strings.
    fn len_of_first(&self, count: usize) -> usize {
        count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or(0)
    }

    fn take(&mut self, count: usize) -> Self {
        let len = self.len_of_first(count);
        let ends = first(&mut self.ends, count);
        self.ends.iter_mut().for_each(|end| *end -= len);
        let rest = self.text.split_off(len);
        Self { text: core::mem::replace(&mut self.text, rest), ends }
    }

    fn append(&mut self, other: &Self) {
        let begin = self.text.len();
        self.text.push_str(&other.text);
        self.ends.extend(other.ends.iter().map(|end| begin + end));
    }
}

impl<'t> FromIterator<&'t str> for Texts {
    fn from_iter<I: IntoIterator<Item = &'t str>>(texts: I) -> Self {
        let mut all = Self::default();
        texts.into_iter().for_each(|text| all.push(text));
        all
    }
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Cells {
    /// A value for each; where it is null, any.
    pub values: Values,
    /// Which are not null; without it, none is.
    pub is_valid: Option<Vec<bool>>,
}

impl From<Values> for Cells {
    fn from(values: Values) -> Self {
        Self { values, is_valid: None }
    }
}

impl Values {
    /// None of this type.
    #[must_use]
    pub fn new(cell_type: CellType) -> Self {
        match cell_type {
            CellType::F32 => Self::F32(Vec::new()),
            CellType::F64 => Self::F64(Vec::new()),
            CellType::I64 => Self::I64(Vec::new()),
            CellType::Bool => Self::Bool(Vec::new()),
            CellType::Text => Self::Text(Texts::default()),
        }
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        match self {
            Self::F32(values) => values.len(),
            Self::F64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(texts) => texts.ends.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the first ones take, about.
    pub(crate) fn memory(&self, count: usize) -> usize {
        match self {
            Self::F32(_) => count * 4,
            Self::Bool(_) => count,
            Self::Text(texts) => count * 8 + texts.len_of_first(count),
            _ => count * 8,
        }
    }

    fn take(&mut self, count: usize) -> Self {
        match self {
            Self::F32(values) => Self::F32(first(values, count)),
            Self::F64(values) => Self::F64(first(values, count)),
            Self::I64(values) => Self::I64(first(values, count)),
            Self::Bool(values) => Self::Bool(first(values, count)),
            Self::Text(texts) => Self::Text(texts.take(count)),
        }
    }

    /// Appends others; whether they have the same type.
    fn append(&mut self, other: Self) -> bool {
        match (self, other) {
            (Self::F32(values), Self::F32(other)) => values.extend(other),
            (Self::F64(values), Self::F64(other)) => values.extend(other),
            (Self::I64(values), Self::I64(other)) => values.extend(other),
            (Self::Bool(values), Self::Bool(other)) => values.extend(other),
            (Self::Text(texts), Self::Text(other)) => texts.append(&other),
            _ => return false,
        }
        true
    }
}

/// Takes the first values out of a list that has as many.
fn first<T>(values: &mut Vec<T>, count: usize) -> Vec<T> {
    let rest = values.split_off(count);
    core::mem::replace(values, rest)
}

impl Cells {
    /// Takes the first cells out, of which there are as many.
    pub(crate) fn take(&mut self, count: usize) -> Self {
        let is_valid = self.is_valid.as_mut().map(|is_valid| first(is_valid, count));
        Self {
            values: self.values.take(count),
            is_valid: is_valid.filter(|is_valid| is_valid.contains(&false)),
        }
    }

    /// Appends others; whether they have the same type.
    pub(crate) fn append(&mut self, other: Self) -> bool {
        let (n_before, n_more) = (self.values.len(), other.values.len());
        if self.is_valid.is_some() || other.is_valid.is_some() {
            let is_valid = self.is_valid.get_or_insert_with(|| vec![true; n_before]);
            is_valid.extend(other.is_valid.unwrap_or_else(|| vec![true; n_more]));
        }
        self.values.append(other.values)
    }
}
