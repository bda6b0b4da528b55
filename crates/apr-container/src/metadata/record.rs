//! Structures with named fields, to and from MessagePack.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::reader::{Reader, Shape, under};
use super::value::Value;
use super::writer::{Writer, Written};
use crate::error::{Error, ErrorKind};

/// The type of a field.
pub(super) trait Part: Written + Sized {
    /// Whether a structure without it is refused.
    const REQUIRED: bool = true;

    fn read(input: &mut Reader<'_>) -> Result<Self, Error>;
}

/// A field, in the order of the format's first implementation: what a structure written as a list needs.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
}

/// A structure with named fields.
pub(super) trait Record: Default {
    const FIELDS: &'static [Field];

    fn read_field(&mut self, name: &str, input: &mut Reader<'_>) -> Result<(), Error>;

    /// Fields that are to be written.
    fn present(&self) -> Vec<(&'static str, &dyn Written)>;

    fn extra(&self) -> &BTreeMap<String, Value>;

    fn extra_mut(&mut self) -> &mut BTreeMap<String, Value>;
}

/// Declares a structure, each field once, and how it is read and written.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
            /// Keys of no field of this version, kept for when the metadata are written again.
            pub extra: alloc::collections::BTreeMap<alloc::string::String, $crate::metadata::Value>,
        }

        impl $crate::metadata::record::Record for $name {
            const FIELDS: &'static [$crate::metadata::record::Field] = &[$($crate::metadata::record::Field {
                name: stringify!($field),
                is_required: <$ty as $crate::metadata::record::Part>::REQUIRED,
            }),*];

            fn read_field(
                &mut self,
                name: &str,
                input: &mut $crate::metadata::reader::Reader<'_>,
            ) -> Result<(), $crate::error::Error> {
                $(if name == stringify!($field) {
                    self.$field = $crate::metadata::record::Part::read(input)?;
                })*
                Ok(())
            }

            fn present(&self) -> alloc::vec::Vec<(&'static str, &dyn $crate::metadata::writer::Written)> {
                let mut present = alloc::vec::Vec::new();
                $({
                    let field: &dyn $crate::metadata::writer::Written = &self.$field;
                    if !field.is_absent() {
                        present.push((stringify!($field), field));
                    }
                })*
                present
            }

            fn extra(&self) -> &alloc::collections::BTreeMap<alloc::string::String, $crate::metadata::Value> {
                &self.extra
            }

            fn extra_mut(
                &mut self,
            ) -> &mut alloc::collections::BTreeMap<alloc::string::String, $crate::metadata::Value> {
                &mut self.extra
            }
        }

        impl $crate::metadata::writer::Written for $name {
            fn write(&self, out: &mut $crate::metadata::writer::Writer) -> Result<(), $crate::error::Error> {
                $crate::metadata::record::write(self, out)
            }
        }

        impl $crate::metadata::record::Part for $name {
            fn read(input: &mut $crate::metadata::reader::Reader<'_>) -> Result<Self, $crate::error::Error> {
                $crate::metadata::record::read(input)
            }
        }
    };
}
pub(super) use record;

/// Declares a choice that is written as its name, and how it is read and written.
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A name this version does not know, carried as it is.
            Other(alloc::string::String),
        }

        impl $name {
            /// The name it is written as.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                    Self::Other(name) => name,
                }
            }
        }

        /// The choice of that name.
        impl From<alloc::string::String> for $name {
            fn from(name: alloc::string::String) -> Self {
                $(if name == stringify!($variant) {
                    return Self::$variant;
                })*
                Self::Other(name)
            }
        }

        /// The choice of that name.
        impl From<&str> for $name {
            fn from(name: &str) -> Self {
                Self::from(alloc::string::String::from(name))
            }
        }

        /// The name.
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }

        impl $crate::metadata::writer::Written for $name {
            fn write(&self, out: &mut $crate::metadata::writer::Writer) -> Result<(), $crate::error::Error> {
                out.text(self.name())
            }
        }

        impl $crate::metadata::record::Part for $name {
            fn read(input: &mut $crate::metadata::reader::Reader<'_>) -> Result<Self, $crate::error::Error> {
                input.text().map(Self::from)
            }
        }
    };
}
pub(super) use choice;

pub(super) fn read<R: Record>(input: &mut Reader<'_>) -> Result<R, Error> {
    let at = input.offset();
    let mut record = R::default();
    let mut seen = 0_u64;
    match input.structure()? {
        Shape::Named(count) => {
            for _ in 0..count {
                let key_at = input.offset();
                let key = input.text()?;
                let Some(idx) = R::FIELDS.iter().position(|field| field.name == key) else {
                    input.extra(key, key_at, record.extra_mut())?;
                    continue;
                };
                if seen & 1 << idx != 0 {
                    return Err(ErrorKind::MetadataDuplicate.at(key_at).named(&key));
                }
                seen |= 1 << idx;
                record.read_field(&key, input).map_err(|error| under(error, &key))?;
            }
        }
        Shape::Positional(count) => {
            if count > R::FIELDS.len() {
                return Err(
                    ErrorKind::InvalidValue { what: "metadata list longer than there are fields" }.at(at)
                );
            }
            for (idx, field) in R::FIELDS.iter().take(count).enumerate() {
                seen |= 1 << idx;
                record.read_field(field.name, input).map_err(|error| under(error, field.name))?;
            }
        }
    }
    input.leave();
    for (idx, field) in R::FIELDS.iter().enumerate() {
        if field.is_required && seen & 1 << idx == 0 {
            return Err(ErrorKind::MetadataMissing.at(at).named(field.name));
        }
    }
    Ok(record)
}

pub(super) fn write<R: Record>(record: &R, out: &mut Writer) -> Result<(), Error> {
    for field in R::FIELDS {
        if record.extra().contains_key(field.name) {
            return Err(Error::from(ErrorKind::MetadataDuplicate).named(field.name));
        }
    }
    out.structure(record.present(), record.extra())
}

impl Written for String {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.text(self)
    }
}

impl Part for String {
    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        input.text()
    }
}

impl Written for u64 {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.unsigned(*self);
        Ok(())
    }
}

impl Part for u64 {
    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        input.unsigned()
    }
}

impl Written for u32 {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.unsigned((*self).into());
        Ok(())
    }
}

impl Part for u32 {
    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        let at = input.offset();
        let wide = input.unsigned()?;
        Self::try_from(wide)
            .map_err(|_| ErrorKind::InvalidValue { what: "a count of more than 32 bits" }.at(at))
    }
}

impl Written for f32 {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.narrow_number(*self);
        Ok(())
    }
}

impl Part for f32 {
    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        input.narrow_number()
    }
}

/// Left out when `None`; nil is read as `None`.
impl<P: Part> Written for Option<P> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        self.as_ref().map_or(Ok(()), |part| part.write(out))
    }
}

impl<P: Part> Part for Option<P> {
    const REQUIRED: bool = false;

    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        if input.nil() { Ok(None) } else { P::read(input).map(Some) }
    }
}

/// Left out when empty; nil is read as empty.
impl<P: Part> Written for Vec<P> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.list(self)
    }
}

impl<P: Part> Part for Vec<P> {
    const REQUIRED: bool = false;

    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        if input.nil() { Ok(Self::new()) } else { input.list(P::read) }
    }
}

/// Left out when empty.
impl Written for BTreeMap<String, Value> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.map(self)
    }
}

impl Part for BTreeMap<String, Value> {
    const REQUIRED: bool = false;

    fn read(input: &mut Reader<'_>) -> Result<Self, Error> {
        input.map()
    }
}
