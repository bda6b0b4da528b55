//! Values with completions that are not restricted to them.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

/// Accepts any text, and completes those that the function lists: for values whose wrong spellings get an error of their own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed(pub(crate) fn() -> Vec<&'static str>);

impl TypedValueParser for Listed {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}
