//! The declaration of kinds.

/// Declares an error type and its kinds; the crate's documentation has an example.
///
/// ```text
/// located_error::errors! {
///     /// Doc comment of the error type.
///     #[derive(...)]                      // Clone, PartialEq, Eq, if the kinds have them; Debug is written here
///     pub struct Error;                   // or: pub struct Error caused by located_error::AnyCause, with path;
///
///     /// Doc comment of the enum.
///     #[derive(Debug, ...)]
///     pub enum ErrorKind {
///         /// The meaning: what happened and why it is refused, in sentences.
///         Name { /** Doc comment. */ field: Type } = "code" (Category) if "feature", "message {field}" => REMEDY;
///         Other { field: Type } = "code" (Category), "message {}", field.len() => REMEDY;
///     }
///
///     wrapped {
///         /// What the errors of the other crate are about.
///         Format(st_core::Error);
///         File(durable_file::Error) if "std";
///     }
/// }
/// ```
///
/// - `Category` is a variant of [`Category`](crate::Category), the remedy any constant expression of type `&'static str`.
/// - A message either names each field of its kind once or more, or is followed by arguments, in which fields are references.
/// - `if "feature"` compiles a kind only with that feature of the declaring crate.
/// - `from field` makes the error in that field the source; the message need not show it.
/// - A wrapped kind has the code, the message and the location of the error in it, whose type implements
///   [`Located`](crate::Located); `From` is implemented for it.
///
/// The error type gets, besides `From<ErrorKind>`, `Display`, `Debug`, [`core::error::Error`] and [`Located`](crate::Located):
/// `kind()`, `code()`, `offset()`, `subject()`, `entry()`, and for the crate itself `at(offset)`, `shifted(base)` and `of(subject)`,
/// which leave what is known already: the innermost location is the exact one. `with path` adds `path()` and `in_file(path)`; it needs
/// the feature `std` of this crate. A line or a cause is set by functions that the crate writes, on the fields of
/// [`Context`](crate::Context) (`self.0.cause`).
#[macro_export]
macro_rules! errors {
    (
        $(#[$error_meta:meta])*
        pub struct $Error:ident $(caused by $cause:ty)? $(, with $path:ident)?;

        $(#[$kind_meta:meta])*
        pub enum $Kind:ident { $($kinds:tt)* }

        $(wrapped { $($wrapped:tt)* })?
    ) => {
        $crate::kinds! {
            $(#[$kind_meta])*
            pub enum $Kind { $($kinds)* }

            $(wrapped { $($wrapped)* })?
        }

        $($crate::__from! { $Error $Kind $($wrapped)* })?
        $($crate::__path! { $Error $path })?

        $(#[$error_meta])*
        pub struct $Error($crate::__Box<$crate::Context<$Kind $(, $cause)?>>);

        impl $Error {
            /// What was wrong.
            #[must_use]
            pub const fn kind(&self) -> &$Kind {
                &self.0.kind
            }

            /// Stable identifier of the kind; of a kind that wraps another error, that error's.
            #[must_use]
            pub fn code(&self) -> &'static str {
                self.0.kind.code()
            }

            /// Byte offset in the file or text concerned, where it is known.
            #[must_use]
            pub fn offset(&self) -> ::core::option::Option<u64> {
                $crate::Located::location(self).offset
            }

            /// The tensor, key or field concerned.
            #[must_use]
            pub fn subject(&self) -> ::core::option::Option<&$crate::Subject> {
                $crate::Located::location(self).subject
            }

            /// Category, meaning and remedy of the kind.
            #[must_use]
            pub fn entry(&self) -> ::core::option::Option<&'static $crate::Entry> {
                self.0.kind.entry()
            }

            #[allow(dead_code, reason = "not every crate has offsets")]
            pub(crate) fn at(mut self, offset: u64) -> Self {
                self.0.offset.get_or_insert(offset);
                self
            }

            /// The same error of bytes that begin at `base`.
            #[allow(dead_code, reason = "not every crate reads parts")]
            pub(crate) fn shifted(mut self, base: u64) -> Self {
                self.0.offset = self.0.offset.map(|offset| offset.saturating_add(base));
                self
            }

            #[allow(dead_code, reason = "not every crate has subjects")]
            pub(crate) fn of(mut self, subject: $crate::Subject) -> Self {
                if self.subject().is_none() {
                    self.0.subject = Some(subject);
                }
                self
            }
        }

        impl ::core::convert::From<$Kind> for $Error {
            fn from(kind: $Kind) -> Self {
                Self($crate::__Box::new($crate::Context::new(kind)))
            }
        }

        impl ::core::fmt::Debug for $Error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Debug::fmt(&*self.0, f)
            }
        }

        impl ::core::fmt::Display for $Error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(&*self.0, f)
            }
        }

        /// The text of a wrapped error is part of this one's; what comes next is its own source.
        impl ::core::error::Error for $Error {
            fn source(&self) -> ::core::option::Option<&(dyn ::core::error::Error + 'static)> {
                self.0.kind.inner_source().or(self.0.cause.as_ref().map($crate::Cause::as_error))
            }
        }

        impl $crate::Located for $Error {
            fn code(&self) -> &'static str {
                self.0.kind.code()
            }

            fn message(&self) -> &dyn ::core::fmt::Display {
                self.0.kind.message()
            }

            fn location(&self) -> $crate::Location<'_> {
                self.0.location(self.0.kind.inner_location())
            }

            fn entry(&self) -> ::core::option::Option<&'static $crate::Entry> {
                self.0.kind.entry()
            }
        }
    };
}

/// Declares the kinds alone, as [`errors!`] does, for a crate that does not allocate and writes its error type itself.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$kind_meta:meta])*
        pub enum $Kind:ident {
            $(
                $(#[doc = $meaning:literal])+
                $variant:ident $({ $($(#[$field_meta:meta])* $field:ident: $ty:ty),* $(,)? })?
                = $code:literal ($category:ident) $(if $feature:literal)? $(from $source:ident)?, $message:literal $(, $arg:expr)* => $remedy:expr;
            )*
        }

        $(wrapped {
            $(
                $(#[$wrapper_meta:meta])+
                $wrapper:ident($inner:ty) $(if $wrapper_feature:literal)?;
            )*
        })?
    ) => {
        $(#[$kind_meta])*
        #[non_exhaustive]
        pub enum $Kind {
            $(
                $(#[doc = $meaning])+
                #[doc = ""]
                #[doc = concat!("Code: `", $code, "`.")]
                $(#[cfg(feature = $feature)])?
                $variant $({ $($(#[$field_meta])* $field: $ty),* })?,
            )*
            $($(
                $(#[$wrapper_meta])+
                $(#[cfg(feature = $wrapper_feature)])?
                $wrapper($inner),
            )*)?
        }

        impl $Kind {
            /// Every code of this crate's own kinds.
            pub const CODES: &'static [&'static str] = &[$($(#[cfg(feature = $feature)])? $code),*];

            /// Code, category, message, meaning and remedy of every kind of this crate's own.
            pub const TABLE: &'static [$crate::Entry] = &[$(
                $(#[cfg(feature = $feature)])?
                $crate::Entry::new(
                    $code,
                    $crate::Category::$category,
                    $message,
                    concat!($($meaning),+),
                    $remedy,
                ),
            )*];

            /// Stable identifier of the kind; of a kind that wraps another error, that error's.
            #[must_use]
            pub fn code(&self) -> &'static str {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant $({ $($field: _),* })? => $code,)*
                    $($($(#[cfg(feature = $wrapper_feature)])? Self::$wrapper(error) => $crate::Located::code(error),)*)?
                }
            }

            /// Meaning and remedy of the kind.
            #[must_use]
            pub fn entry(&self) -> ::core::option::Option<&'static $crate::Entry> {
                match self {
                    $($($(#[cfg(feature = $wrapper_feature)])? Self::$wrapper(error) => $crate::Located::entry(error),)*)?
                    #[allow(unreachable_patterns, reason = "a crate may only wrap errors")]
                    _ => Self::TABLE.iter().find(|entry| entry.code == self.code()),
                }
            }

            #[allow(dead_code, reason = "for the error type")]
            pub(crate) fn inner_location(&self) -> $crate::Location<'_> {
                match self {
                    $($($(#[cfg(feature = $wrapper_feature)])? Self::$wrapper(error) => $crate::Located::location(error),)*)?
                    #[allow(unreachable_patterns, reason = "a crate may only wrap errors")]
                    _ => $crate::Location::default(),
                }
            }

            #[allow(dead_code, reason = "for the error type")]
            pub(crate) fn inner_source(&self) -> ::core::option::Option<&(dyn ::core::error::Error + 'static)> {
                match self {
                    $($($(#[cfg(feature = $wrapper_feature)])? Self::$wrapper(error) => ::core::error::Error::source(error),)*)?
                    $($(#[cfg(feature = $feature)])? Self::$variant { $($source,)? .. } => $crate::__source!($($source)?),)*
                }
            }

            /// The message of the innermost error, without its location.
            #[allow(dead_code, reason = "for the error type")]
            pub(crate) fn message(&self) -> &dyn ::core::fmt::Display {
                match self {
                    $($($(#[cfg(feature = $wrapper_feature)])? Self::$wrapper(error) => $crate::Located::message(error),)*)?
                    #[allow(unreachable_patterns, reason = "a crate may only wrap errors")]
                    kind => kind,
                }
            }
        }

        impl ::core::fmt::Display for $Kind {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$variant $({ $($field),* })? => {
                        $crate::__write!(f, $message, [$($($field)*)?] [$($source)?] $($arg),*)
                    })*
                    $($($(#[cfg(feature = $wrapper_feature)])? Self::$wrapper(error) => ::core::fmt::Display::fmt(error, f),)*)?
                }
            }
        }
    };
}

/// `From` for wrapped errors.
#[doc(hidden)]
#[macro_export]
macro_rules! __from {
    ($Error:ident $Kind:ident $(
        $(#[$wrapper_meta:meta])+
        $wrapper:ident($inner:ty) $(if $wrapper_feature:literal)?;
    )*) => {$(
        $(#[cfg(feature = $wrapper_feature)])?
        impl ::core::convert::From<$inner> for $Error {
            fn from(error: $inner) -> Self {
                $Kind::$wrapper(error).into()
            }
        }
    )*};
}

/// The field that is the cause of an error.
#[doc(hidden)]
#[macro_export]
macro_rules! __source {
    () => {
        ::core::option::Option::None
    };
    ($source:ident) => {
        ::core::option::Option::Some($source)
    };
}

/// The path of an error type that has one.
#[doc(hidden)]
#[cfg(feature = "std")]
#[macro_export]
macro_rules! __path {
    ($Error:ident path) => {
        impl $Error {
            /// The file or folder concerned, as the caller named it.
            #[must_use]
            pub fn path(&self) -> ::core::option::Option<&::std::path::Path> {
                $crate::Located::location(self).path
            }

            pub(crate) fn in_file(mut self, path: &::std::path::Path) -> Self {
                if self.path().is_none() {
                    self.0.path = ::core::option::Option::Some(path.into());
                }
                self
            }
        }
    };
}

/// Writes a message with the fields that it names, or with arguments of its own. The fields are references: dereferenced, or each
/// argument would be a reference to one.
#[doc(hidden)]
#[macro_export]
macro_rules! __write {
    ($f:ident, $message:literal, [$($field:ident)*] []) => {
        ::core::write!($f, $message, $($field = *$field),*)
    };
    ($f:ident, $message:literal, [$($field:ident)*] [$source:ident]) => {{
        $(let _ = $field;)*
        ::core::write!($f, $message)
    }};
    ($f:ident, $message:literal, [$($field:ident)*] [$($source:ident)?] $($arg:expr),+) => {{
        $(let _ = $field;)*
        ::core::write!($f, $message, $($arg),+)
    }};
}
