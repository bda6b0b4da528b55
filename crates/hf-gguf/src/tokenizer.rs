//! The tokenizer of a model: tokens, types, special tokens, templates.

mod added;
mod encode;
mod file;
mod scan;
mod settings;
mod strings;
