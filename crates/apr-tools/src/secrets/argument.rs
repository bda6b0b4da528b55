//! Secret keys on the command line.

use std::ffi::OsString;

use crate::error::{CODE_SECRET_ARGUMENT, Failure};

/// What secret key lines begin with, up to the letter before their data.
const PREFIXES: [&str; 4] = ["apr-secret-1", "apr-sign-1", "apr-locked-secret-1", "apr-locked-sign-1"];
/// Letters of the shortest data and its checksum.
const LEAST: usize = 58;

/// Refuses a command line with a secret key in it, before anything repeats it.
///
/// # Errors
///
/// If there is one. The failure does not show it.
pub(crate) fn refuse_secrets(args: &[OsString]) -> Result<(), Failure> {
    if args.iter().skip(1).any(|arg| has_secret(&arg.to_string_lossy())) {
        return Err(Failure::new(CODE_SECRET_ARGUMENT, "a secret key stands in the command line"));
    }
    Ok(())
}

fn has_secret(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    PREFIXES.iter().any(|prefix| {
        text.split(prefix).skip(1).any(|rest| {
            let is_data = |letter: char| letter.is_ascii_alphanumeric() && !"1bio".contains(letter);
            rest.chars().take_while(|&letter| is_data(letter)).count() >= LEAST
        })
    })
}

#[cfg(test)]
mod tests {
    use apr_crypto::{Argon2Cost, OsRandom, Password, RecipientSecret, SecretKey, SigningKey};

    use super::*;

    #[test]
    fn secret_keys_are_seen_wherever_they_stand() {
        let keys = [
            SecretKey::from(SigningKey::from_seed(&[1; 32])),
            SecretKey::from(RecipientSecret::from_bytes(&[2; 32])),
        ];
        for key in keys {
            let cost = Argon2Cost::APR_V1;
            let locked = key.lock(&mut OsRandom, &Password::from("x"), &cost).unwrap().to_text();
            for line in [key.to_text().as_str(), &key.to_text().as_str().to_uppercase(), &locked] {
                for arg in [line.to_owned(), format!("--identity={line}"), format!("x{line}y")] {
                    let failure = refuse_secrets(&["apr".into(), arg.into()]).unwrap_err();
                    assert!(
                        !failure.block(crate::terminal::Style::PLAIN).to_lowercase().contains(&line[..20])
                    );
                }
            }
            let public = key.public().to_string();
            refuse_secrets(&["apr".into(), public.into(), "apr-secret-1.key".into()]).unwrap();
        }
    }
}
