//! Keys and passwords, and the ways to pass them.
//!
//! A password comes from the terminal, from a file that only its owner can read, or from a file descriptor; a secret key from
//! a file. Neither is ever taken from the command line, which other users and the shell's history can see.

mod argument;
mod groups;
mod key_file;
mod keys;
mod limits;
mod password;
mod process;
mod signer;
mod terminal;

pub(crate) use self::argument::refuse_secrets;
pub(crate) use self::groups::{
    Audience, Identity, KeysArgs, RecipientArgs, SigningArgs, TrustArgs, load_fingerprint, load_recipient,
    load_recipient_secret, load_recipients, load_signing, load_trusted,
};
pub(crate) use self::key_file::{KeyFile, load_any, load_secret};
pub(crate) use self::keys::{Keys, SignedBy, refuse_shared_stdin};
pub(crate) use self::limits::Limits;
pub(crate) use self::password::{HEADING, KeyPasswordArgs, PasswordArgs, Purpose};
pub(crate) use self::process::{is_the_program, keep_secrets};
pub(crate) use self::signer::{Signer, Verifier, load_signer, load_verifier};
pub(crate) use self::terminal::restore as restore_terminal;
