//! The keys of author, recipients and attacker.

use apr_crypto::{Password, RecipientSecret, SigningKey};

/// How a file is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    None,
    Password,
    Recipient,
}

pub(super) struct People {
    pub(super) maker: SigningKey,
    pub(super) attacker: SigningKey,
    pub(super) reader: RecipientSecret,
    pub(super) password: Password,
}

pub(super) fn people() -> People {
    People {
        maker: SigningKey::from_seed(&[1; 32]),
        attacker: SigningKey::from_seed(&[2; 32]),
        reader: RecipientSecret::from_bytes(&[3; 32]),
        password: Password::from("a password between two people"),
    }
}

impl People {
    /// The same, with the attacker as the maker.
    pub(super) fn as_villain() -> Self {
        let Self { attacker: maker, maker: attacker, reader, password } = people();
        Self { maker, attacker, reader, password }
    }
}
