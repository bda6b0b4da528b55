//! Keys and passwords: how they reach the program, and how they do not.
//!
//! A password comes from the terminal, from a file that only its owner can read, or from a file descriptor; a secret key from
//! a file. Neither is ever taken from the command line, which other users and the shell's history can see.

mod argument;
mod groups;
mod key_file;
mod password;
mod terminal;

pub(crate) use self::argument::refuse_secrets;
pub(crate) use self::groups::{
    Audience, Identity, IdentityArgs, RecipientArgs, SigningArgs, TrustArgs, Trusted, key_password_args,
};
pub(crate) use self::key_file::{Format, PublicEntry, SecretEntry, load_public, load_secret, parse_public};
pub(crate) use self::password::{PasswordArgs, Purpose};
