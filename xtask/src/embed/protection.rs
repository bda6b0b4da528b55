//! `embed protection`: what signatures and decryption add to a program that reads its model from a file.

use std::fs;
use std::path::Path;

use super::size::length;
use super::target::{Target, installed};
use super::{SIGNED, TRAINED, base64, empty, public_key_bytes, train, write};
use crate::process::{capture_with_input, command, stdout_of};
use crate::task::{Failure, Outcome, Session};
use crate::workspace::{Workspace, build_apr};

const MAIN: &str = include_str!("protection/main.rs.txt");

/// The profile is that of `apr embed`.
const MANIFEST: &str = r#"[package]
name = "protected"
version = "0.1.0"
edition = "2024"
publish = false

[features]
crypto = ["dep:apr-crypto", "apr-container/crypto"]
signer = ["crypto"]
password = ["crypto"]
recipient = ["crypto"]
save = ["apr-crypto?/getrandom"]

[dependencies]
apr-container = { path = "ROOT/crates/apr-container", default-features = false }
apr-crypto = { path = "ROOT/crates/apr-crypto", default-features = false, optional = true }
apr-models = { path = "ROOT/crates/apr-models", default-features = false }

[profile.release]
opt-level = "z"
lto = true
codegen-units = 1
panic = "abort"
strip = true

[workspace]
"#;

/// Programs by their features; the first one of each block is what the others are compared with.
const PROGRAMS: [&[&str]; 2] = [
    &["", "signer", "password", "recipient", "password,recipient", "signer,password,recipient"],
    &["save", "save,password"],
];

const PASSWORD: &str = "a password for tests";

/// Alice's keys in RFC 7748, section 6.1.
const SECRET_KEY: [u8; 32] = *b"\x77\x07\x6d\x0a\x73\x18\xa5\x7d\x3c\x16\xc1\x72\x51\xb2\x66\x45\
    \xdf\x4c\x2f\x87\xeb\xc0\x99\x2a\xb1\x77\xfb\xa5\x1d\xb9\x2c\x2a";
const PUBLIC_KEY: [u8; 32] = *b"\x85\x20\xf0\x09\x89\x30\xa7\x54\x74\x8b\x7d\xdc\xb4\x3e\xf7\x5a\
    \x0d\xbf\x3a\x0d\x26\x38\x1a\xf4\xeb\xa4\xa9\x8e\xaa\x9b\x4e\x6a";

/// Builds the programs, has each read a file of every kind that it can read, and prints what it takes.
pub(super) fn run(session: &mut Session, args: &[String]) -> Outcome {
    let only = match args {
        [] => None,
        [word] if !word.starts_with('-') => Some(word.as_str()),
        _ => return Err(Failure::Usage("`embed protection` takes a target, or nothing".to_owned())),
    };
    let targets = installed(session, only)?;
    let apr = build_apr(session)?;
    let folder = empty(session.scratch("embed-protection"))?;
    let (models, project) = (empty(folder.join("models"))?, folder.join("project"));
    models_in(session, &apr, &models)?;
    fs::create_dir_all(project.join("src")).map_err(|error| format!("{}: {error}", project.display()))?;
    let root = session.root().to_str().ok_or("the root of the project is not UTF-8")?;
    write(&project.join("Cargo.toml"), &MANIFEST.replace("ROOT", root))?;
    write(&project.join("src/main.rs"), MAIN)?;
    let lock = session.root().join("Cargo.lock");
    fs::copy(&lock, project.join("Cargo.lock")).map_err(|error| format!("{}: {error}", lock.display()))?;
    let target_dir = Workspace::load(session, "Cargo.toml")?.target_dir.join("embed-size");
    for target in targets {
        println!("{}", target.triple);
        for programs in PROGRAMS {
            let mut first = None;
            for &features in programs {
                let program =
                    target.build(session, &project, &target_dir, "protected", &["--features", features])?;
                reads(session, target, &program, features, &models)?;
                let len = length(&program)?.cast_signed();
                let added = len - *first.get_or_insert(len);
                println!("  {:26} {len:7} {added:+7}", if features.is_empty() { "-" } else { features });
            }
        }
    }
    Ok(())
}

/// Models in plaintext, encrypted and signed, and the secrets for them.
fn models_in(session: &Session, apr: &Path, folder: &Path) -> Outcome {
    let name = TRAINED[0].0;
    train(session, apr, folder, &TRAINED[..1])?;
    let plain = folder.join(name).with_extension("apr");
    let der = [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x6e\x03\x21\x00".as_slice(), &PUBLIC_KEY].concat();
    let key = folder.join("recipient.pem");
    write(&key, &format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", base64(&der)))?;
    // A file with a password would have to be made for its owner alone.
    for (option, from, input, out) in [
        ("--password-fd", Path::new("0"), PASSWORD, "password.apr"),
        ("--recipient", &key, "", "recipient.apr"),
    ] {
        let mut encrypt = command(session, apr, &["-q", "encrypt"]);
        encrypt.arg(&plain).arg("-o").arg(folder.join(out)).arg(option).arg(from);
        let encrypted = capture_with_input(&mut encrypt, input)?;
        if !encrypted.success {
            return Err(encrypted.stderr.into());
        }
    }
    let signed = session.root().join(SIGNED);
    let copies = [(&plain, "-.apr"), (&signed, "signer.apr")];
    for (from, to) in copies {
        fs::copy(from, folder.join(to)).map_err(|error| format!("{}: {error}", from.display()))?;
    }
    for (name, secret) in [
        ("-", PASSWORD.as_bytes()),
        ("password", PASSWORD.as_bytes()),
        ("recipient", &SECRET_KEY),
        ("signer", &public_key_bytes(&signed)?),
    ] {
        let path = folder.join(name).with_extension("secret");
        fs::write(&path, secret).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Runs a program on the files that it can read: an error unless decrypted models predict what the plain one does.
fn reads(session: &Session, target: &Target, program: &Path, features: &str, models: &Path) -> Outcome {
    let mut plain = None;
    let kinds = features.split(',').filter(|feature| !["", "save"].contains(feature));
    for kind in core::iter::once("-").chain(kinds) {
        let Some(mut command) = target.runs(session, program) else { return Ok(()) };
        command.arg(models.join(kind).with_extension("apr")).arg(kind);
        command.arg(models.join(kind).with_extension("secret")).arg(models.join("written.apr"));
        let prediction = stdout_of(&mut command)?;
        let expected = plain.get_or_insert_with(|| prediction.clone());
        // The signed model is another one.
        if kind != "signer" && *expected != prediction {
            return Err(format!("{} predicts {prediction} in place of {expected}", program.display()).into());
        }
    }
    Ok(())
}
