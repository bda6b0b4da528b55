//! Structures with named fields, to and from MessagePack.

use alloc::string::String;
use alloc::vec::Vec;

use located_error::Subject;

use super::reader::{Reader, Shape, under};
use super::value::Value;
use super::writer::{Writer, Written};
use crate::error::{Error, ErrorKind};
use crate::map::Map;

/// The type of a field.
pub(super) trait Part: Written {
    /// Reads a value into a default part.
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error>;
}

/// A list of parts.
pub(super) trait List {
    fn count(&self) -> usize;

    fn get(&self, idx: usize) -> Option<&dyn Written>;

    /// Bytes of memory that an element takes.
    fn element_size(&self) -> usize;

    /// Reserves memory for this many elements; `false` if there is none.
    fn reserve(&mut self, count: usize) -> bool;

    /// Appends a default part.
    fn add(&mut self) -> &mut dyn Part;
}

/// A structure with named fields. Those that a new one would leave out when written, lists and options, are not required.
pub(super) trait Record {
    /// The names of the fields, in the order of the format's first implementation: what a structure written as a list needs.
    fn names(&self) -> &'static [&'static str];

    fn field(&self, idx: usize) -> &dyn Part;

    fn field_mut(&mut self, idx: usize) -> &mut dyn Part;

    fn extra(&self) -> &Map<Value>;

    fn extra_mut(&mut self) -> &mut Map<Value>;
}

/// Declares a structure, each field once, and how it is read and written.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $ty:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $ty,)*
            /// Keys of no field of this version, kept for when the metadata are written again.
            pub extra: $crate::map::Map<$crate::metadata::Value>,
        }

        const _: () = {
            #[expect(non_camel_case_types, reason = "they are called as the fields")]
            enum Place {
                $($field),*
            }

            const PLACES: &[Place] = &[$(Place::$field),*];

            impl $crate::metadata::record::Record for $name {
                fn names(&self) -> &'static [&'static str] {
                    &[$(stringify!($field)),*]
                }

                fn field(&self, idx: usize) -> &dyn $crate::metadata::record::Part {
                    match PLACES.get(idx) {
                        $(Some(Place::$field) => &self.$field,)*
                        None => &self.extra,
                    }
                }

                fn field_mut(&mut self, idx: usize) -> &mut dyn $crate::metadata::record::Part {
                    match PLACES.get(idx) {
                        $(Some(Place::$field) => &mut self.$field,)*
                        None => &mut self.extra,
                    }
                }

                fn extra(&self) -> &$crate::map::Map<$crate::metadata::Value> {
                    &self.extra
                }

                fn extra_mut(
                    &mut self,
                ) -> &mut $crate::map::Map<$crate::metadata::Value> {
                    &mut self.extra
                }
            }
        };

        impl $crate::metadata::writer::Written for $name {
            fn write(&self, out: &mut $crate::metadata::writer::Writer) -> Result<(), $crate::error::Error> {
                $crate::metadata::record::write(self, out)
            }
        }

        impl $crate::metadata::record::Part for $name {
            fn read(
                &mut self,
                input: &mut $crate::metadata::reader::Reader<'_>,
            ) -> Result<(), $crate::error::Error> {
                $crate::metadata::record::read(self, input)
            }
        }
    };
}
pub(super) use record;

/// Declares an enum that is written as its name, and how it is read and written.
macro_rules! choice {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
            /// A name that this version does not know, kept as it is.
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

        /// The variant of that name.
        impl From<alloc::string::String> for $name {
            fn from(name: alloc::string::String) -> Self {
                $(if name == stringify!($variant) {
                    return Self::$variant;
                })*
                Self::Other(name)
            }
        }

        /// The variant of that name.
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
            fn read(
                &mut self,
                input: &mut $crate::metadata::reader::Reader<'_>,
            ) -> Result<(), $crate::error::Error> {
                *self = Self::from(input.text()?);
                Ok(())
            }
        }
    };
}
pub(super) use choice;

pub(super) fn read(record: &mut dyn Record, input: &mut Reader<'_>) -> Result<(), Error> {
    let at = input.offset();
    let mut seen = 0_u64;
    let names = record.names();
    match input.structure()? {
        Shape::Named(count) => {
            for _ in 0..count {
                let key_at = input.offset();
                let key = input.text()?;
                let Some(idx) = names.iter().position(|name| *name == key) else {
                    input.extra(key, key_at, record.extra_mut())?;
                    continue;
                };
                if seen & 1 << idx != 0 {
                    return Err(ErrorKind::MetadataDuplicate.at(key_at).about(Subject::key(&key)));
                }
                seen |= 1 << idx;
                record.field_mut(idx).read(input).map_err(|error| under(error, &key))?;
            }
        }
        Shape::Positional(count) => {
            if count > names.len() {
                return Err(
                    ErrorKind::InvalidValue { what: "metadata list longer than there are fields" }.at(at)
                );
            }
            for (idx, name) in names.iter().take(count).enumerate() {
                seen |= 1 << idx;
                record.field_mut(idx).read(input).map_err(|error| under(error, name))?;
            }
        }
    }
    input.leave();
    for (idx, name) in names.iter().enumerate() {
        if seen & 1 << idx == 0 && !record.field(idx).is_absent() {
            return Err(ErrorKind::MetadataMissing.at(at).about(Subject::key(name)));
        }
    }
    Ok(())
}

pub(super) fn write(record: &dyn Record, out: &mut Writer) -> Result<(), Error> {
    let mut present: Vec<(&str, &dyn Written)> = Vec::new();
    for (idx, &name) in record.names().iter().enumerate() {
        if record.extra().contains_key(name) {
            return Err(Error::from(ErrorKind::MetadataDuplicate).about(Subject::key(name)));
        }
        let field = record.field(idx);
        if !field.is_absent() {
            present.push((name, field));
        }
    }
    out.structure(present, record.extra())
}

impl Written for String {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.text(self)
    }
}

impl Part for String {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        *self = input.text()?;
        Ok(())
    }
}

impl Written for u64 {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.unsigned(*self);
        Ok(())
    }
}

impl Part for u64 {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        *self = input.unsigned()?;
        Ok(())
    }
}

impl Written for u32 {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.unsigned((*self).into());
        Ok(())
    }
}

impl Part for u32 {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        let at = input.offset();
        let wide = input.unsigned()?;
        *self = Self::try_from(wide)
            .map_err(|_| ErrorKind::InvalidValue { what: "a count of more than 32 bits" }.at(at))?;
        Ok(())
    }
}

impl Written for f32 {
    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.narrow_number(*self);
        Ok(())
    }
}

impl Part for f32 {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        *self = input.narrow_number()?;
        Ok(())
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

impl<P: Part + Default> Part for Option<P> {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        if input.nil() { Ok(()) } else { self.insert(P::default()).read(input) }
    }
}

impl<P: Part + Default> List for Vec<P> {
    fn count(&self) -> usize {
        self.len()
    }

    fn get(&self, idx: usize) -> Option<&dyn Written> {
        self.as_slice().get(idx).map(|part| part as &dyn Written)
    }

    fn element_size(&self) -> usize {
        size_of::<P>()
    }

    fn reserve(&mut self, count: usize) -> bool {
        self.try_reserve_exact(count).is_ok()
    }

    fn add(&mut self) -> &mut dyn Part {
        let idx = self.len();
        self.push(P::default());
        &mut self[idx]
    }
}

/// Left out when empty; nil is read as empty.
impl<P: Part + Default> Written for Vec<P> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.list(self)
    }
}

impl<P: Part + Default> Part for Vec<P> {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        if input.nil() { Ok(()) } else { input.list(self) }
    }
}

impl Part for Value {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        *self = input.value()?;
        Ok(())
    }
}

/// Left out when empty.
impl Written for Map<Value> {
    fn is_absent(&self) -> bool {
        self.is_empty()
    }

    fn write(&self, out: &mut Writer) -> Result<(), Error> {
        out.map(self)
    }
}

impl Part for Map<Value> {
    fn read(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        *self = input.map()?;
        Ok(())
    }
}
