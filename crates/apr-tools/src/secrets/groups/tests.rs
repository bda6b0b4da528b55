//! What the groups of options accept.

use std::fs;

use apr_crypto::SecretKey;
use clap::{Args, Command};

use super::*;

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("apr-groups-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn secret(&self, name: &str, key: impl Into<SecretKey>) -> String {
        let path = self.0.join(name);
        key.into().create_file(&path, "").unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn text(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn parsed<A: Args>(words: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(Command::new("x").no_binary_name(true));
    command.try_get_matches_from(words).and_then(|matches| A::from_arg_matches(&matches))
}

fn code<T>(result: Result<T, Failure>) -> &'static str {
    result.err().map_or("none", |failure| failure.code())
}

#[test]
fn an_identity_is_a_recipients_secret_key() {
    let folder = Folder::new("identity");
    let load =
        |path: &str| parsed::<KeysArgs>(&["--identity", path]).unwrap().load_identity(Path::new("m.apr"));
    let recipient = RecipientSecret::from_bytes(&[1; 32]);
    let public = recipient.public();
    let good = folder.secret("good", recipient);
    assert!(matches!(load(&good), Ok(Identity::Recipient(secret)) if secret.public() == public));
    assert_eq!(code(load(&folder.secret("sign", SigningKey::from_seed(&[1; 32])))), "cy-key-kind");
    // Readable by all, as public keys are: its kind is what is wrong.
    assert_eq!(code(load(&folder.text("public", &public.to_string()))), "cy-key-kind");
    assert_eq!(code(load(&folder.text("open", &fs::read_to_string(&good).unwrap()))), "cy-exposed");
    assert_eq!(code(load("no such file")), "df-io");
    assert_eq!(code(load(folder.0.to_str().unwrap())), "df-not-regular");
}

#[test]
fn options_that_exclude_each_other() {
    for words in [
        &["--identity", "a", "--password-file", "b"][..],
        &["--identity", "a", "--ask-password"],
        &["--password-fd", "3", "--password-file", "b"],
        &["--password-fd", "1"],
        &["--password-fd", "-3"],
        &["--key-password-fd", "3", "--key-password-file", "b"],
    ] {
        assert!(parsed::<KeysArgs>(words).is_err(), "{words:?}");
    }
    assert!(parsed::<TrustArgs>(&["--any-signer", "--signer", "a"]).is_err());
    assert!(parsed::<RecipientArgs>(&["--recipient", "a", "--ask-password"]).is_err());
}

#[test]
fn recipients_are_keys_or_files_and_none_twice() {
    let folder = Folder::new("recipients");
    let load = |words: &[&str]| {
        let words: Vec<&str> = words.iter().flat_map(|word| ["--recipient", word]).collect();
        parsed::<RecipientArgs>(&words).unwrap().load(Path::new("m.apr"))
    };
    let [a, b] = [1, 2].map(|seed| RecipientSecret::from_bytes(&[seed; 32]));
    let (line, upper) = (a.public().to_string(), a.public().to_string().to_uppercase());
    let file = folder.text("b.pub", &b.public().to_string());
    assert!(matches!(load(&[]), Ok(None)));
    let Ok(Some(Audience::Recipients(keys))) = load(&[&line, &file]) else { panic!() };
    assert_eq!(keys, [a.public(), b.public()]);
    assert_eq!(code(load(&[&line, &upper])), "cli-usage");
    assert_eq!(code(load(&[&file, &b.public().to_string()])), "cli-usage");
    let verifying = SigningKey::from_seed(&[1; 32]).verifying_key().to_string();
    assert_eq!(code(load(&[&verifying])), "cy-key-kind");
    assert_eq!(code(load(&[&format!("{line}q")])), "cy-checksum");
    let secret = folder.secret("a", a);
    let failure = load(&[&secret]).unwrap_err();
    assert_eq!(failure.code(), "cy-key-kind");
    assert!(!failure.block(crate::terminal::Style::PLAIN).contains("apr-secret-"));
}

#[test]
fn signers_of_every_spelling_are_one_key() {
    let folder = Folder::new("signers");
    let load = |words: &[&str]| parsed::<TrustArgs>(words).unwrap().load();
    let key = SigningKey::from_seed(&[1; 32]).verifying_key();
    let public = apr_crypto::PublicKey::from(key);
    let minisign = apr_crypto::minisign::PublicKey::from(key).to_string();
    let word = minisign.lines().nth(1).unwrap();
    let (pem, file) = (folder.text("pem", &public.to_spki_pem()), folder.text("minisign", &minisign));
    let line = key.to_string();
    let words = [&line, word, &pem, &file].map(|word| ["--signer", word]).concat();
    let Ok(Trusted::AnyOf(keys)) = load(&words) else { panic!() };
    assert_eq!(keys.len(), 1);
    assert_eq!(keys.name_of(&key), Some(&*key.fingerprint().to_string()));

    let list = folder.text("list", &format!("alice {key}\n"));
    let Ok(Trusted::AnyOf(keys)) = load(&["--trusted-keys", &list, "--signer", &line]) else { panic!() };
    assert_eq!(keys.name_of(&key), Some("alice"));
    assert_eq!(code(load(&["--trusted-keys", &folder.text("empty", "# none\n")])), "cy-no-key");
    let recipient = RecipientSecret::from_bytes(&[1; 32]).public().to_string();
    assert_eq!(code(load(&["--signer", &recipient])), "cy-key-kind");
    assert!(matches!(load(&["--any-signer"]), Ok(Trusted::Anyone)));
    assert!(matches!(load(&[]), Ok(Trusted::NoSignature)));
}

#[cfg(unix)]
#[test]
fn signing_keys_of_other_programs_sign() {
    let folder = Folder::new("signing");
    let key = || SigningKey::from_seed(&[3; 32]);
    let load = |path: &str| parsed::<SigningArgs>(&["--sign", path]).unwrap().load();
    let close = |path: String| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    };
    let minisign = apr_crypto::minisign::SecretKey::from(key()).to_text();
    let pem = SecretKey::from(key()).to_pkcs8_pem();
    for (name, text) in [("minisign", minisign.as_str()), ("pem", pem.as_str())] {
        let loaded = load(&close(folder.text(name, text))).unwrap().unwrap();
        assert_eq!(loaded.verifying_key(), key().verifying_key(), "{name}");
        // Where a public key is needed, it is named and not shown.
        let failure = load_public(&folder.0.join(name)).unwrap_err();
        assert_eq!(failure.code(), "cy-key-kind", "{name}");
    }
    let recipient = folder.secret("recipient", RecipientSecret::from_bytes(&[1; 32]));
    assert_eq!(code(load(&recipient)), "cy-key-kind");
    assert_eq!(code(load(&close(folder.text("text", "hello")))), "cy-bech32");
    assert_eq!(code(load(&close(folder.text("empty", "")))), "cy-no-key");
}
