//! Placeholders for the key options in builds without the feature `crypto`, so that the options have the same fields.

use core::marker::PhantomData;

/// No keys: this build lacks the feature `crypto`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'k>(PhantomData<&'k ()>);

/// No protection: this build lacks the feature `crypto`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Protection<'k>(PhantomData<&'k ()>);
