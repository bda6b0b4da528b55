//! Writes sealed files for the tests in Node.js, and the texts of their keys: `fixtures FOLDER MODEL...`.

use core::error::Error;
use std::path::Path;

use apr_crypto::{
    Argon2Cost, Argon2Limits, Error as CryptoError, Password, RecipientSecret, Rng, SecretKey, SigningKey,
};
use apr_sealed::{Part, Plan, SealOptions, to_vec};

/// Deterministic bytes in place of random ones, for fixtures only.
struct Counter(u8);

impl Rng for Counter {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), CryptoError> {
        for byte in out {
            self.0 = self.0.wrapping_mul(5).wrapping_add(113);
            *byte = self.0;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let folder = args.next().ok_or("usage: fixtures FOLDER MODEL...")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let rng = &mut Counter(1);
    let (reader, signer) = (RecipientSecret::generate(rng)?, SigningKey::generate(rng)?);
    let (public, verifying) = (reader.public(), signer.verifying_key());
    let password = Password::new("only a test");
    let cost = Argon2Cost::new(19_456, 2, 1, &Argon2Limits::default())?;
    for path in args {
        let path = Path::new(&path);
        let content = std::fs::read(path)?;
        let name = path.file_name().ok_or("a model is a file")?.to_string_lossy();
        // Two parts, so that reads go over the border between them.
        let first = (content.len() / 3).max(1) as u64;
        let plan = Plan::new([Part::raw(first), Part::raw(content.len() as u64 - first)])?;
        for (kind, options) in [
            ("password", SealOptions::default().with_password_at(&password, cost)),
            ("recipient", SealOptions::default().for_recipient(public)),
            ("signed", SealOptions::default().signed_by(&signer).with_public("name", "a test")),
            (
                "both",
                SealOptions::default().for_recipient(public).signed_by(&signer).with_private("for", "you"),
            ),
        ] {
            std::fs::write(folder.join(format!("{name}.{kind}")), to_vec(&plan, &content, &options, rng)?)?;
        }
    }
    std::fs::write(folder.join("signer.pub"), verifying.to_string())?;
    std::fs::write(folder.join("reader.key"), SecretKey::from(reader).to_text().as_str())?;
    Ok(())
}
