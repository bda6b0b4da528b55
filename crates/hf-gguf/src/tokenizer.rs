//! The tokenizer of a model: tokens, types, special tokens, templates.

mod added;
mod base;
mod encode;
mod file;
mod pre;
mod protobuf;
mod scan;
mod sentencepiece;
mod settings;
mod special;
mod strings;
