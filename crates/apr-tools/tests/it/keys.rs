//! Key files: made once, read by their owner, never shown.

use std::fs;

use apr_crypto::{Argon2Limits, PublicKey, SecretKey, StoredKey, minisign, p256};
use serde_json::json;

use crate::sandbox::{Sandbox, buyer, line, maker};

/// The secret lines of the sandbox, parts of which must not appear anywhere.
fn secrets() -> [String; 2] {
    [buyer().to_text().as_str().to_owned(), maker().to_text().as_str().to_owned()]
}

#[test]
fn a_pair_is_made_and_fits() {
    let sandbox = Sandbox::empty();
    for kind in ["encrypt", "sign"] {
        let file = format!("{kind}.key");
        let ran = sandbox.run(&["keygen", kind, "-o", &file, "--comment", "of a test"]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let StoredKey::Open(secret) =
            StoredKey::open_file(&sandbox.path(&file), &Argon2Limits::default()).unwrap()
        else {
            panic!("not locked")
        };
        let public = PublicKey::open_file(&sandbox.path(&format!("{file}.pub"))).unwrap();
        assert_eq!(secret.public(), public);
        assert!(ran.stdout.contains(&public.to_string()));
        for text in [&ran.stdout, &ran.stderr] {
            assert!(!text.contains(&secret.to_text().as_str()[..20]));
        }
        let text = fs::read_to_string(sandbox.path(&file)).unwrap();
        assert!(text.starts_with("# of a test\napr-"), "a comment, then the key");
    }
}

#[cfg(unix)]
#[test]
fn the_secret_file_is_its_owners_alone_whatever_the_umask() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = Sandbox::empty();
    assert_eq!(sandbox.shell("umask 0 && apr keygen sign -o a.key").exit, 0);
    let mode = |name: &str| fs::metadata(sandbox.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("a.key"), 0o600);
    assert_eq!(mode("a.key.pub") & 0o400, 0o400);
}

#[test]
fn keys_are_never_replaced() {
    let sandbox = Sandbox::with_models();
    let before = sandbox.listing();
    for args in [
        &["keygen", "sign", "-o", "maker.key"][..],
        &["keygen", "encrypt", "-o", "maker.key"],
        // The public file is in the way.
        &["keygen", "sign", "-o", "other.key"],
        &["keygen", "sign", "-o", "-"],
        &["keygen", "sign", "-o", "maker.key", "--force"],
    ] {
        sandbox.write("other.key.pub", b"x");
        assert_eq!(sandbox.run(args).exit, 2, "{args:?}");
    }
    fs::remove_file(sandbox.path("other.key.pub")).unwrap();
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn a_comment_that_breaks_the_line_makes_nothing() {
    let sandbox = Sandbox::empty();
    let before = sandbox.listing();
    for comment in ["two\nlines", "\u{1b}[2J", "\u{202e}x"] {
        let (exit, value) = sandbox.json(&["keygen", "sign", "-o", "a.key", "--comment", comment]);
        assert_eq!((exit, &value["error"]["code"]), (2, &json!("cy-comment")), "{comment:?}");
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn a_locked_key_needs_its_password() {
    let sandbox = Sandbox::with_models();
    let made = sandbox.run(&["keygen", "sign", "-o", "l.key", "--password-file", "password.txt"]);
    assert_eq!(made.exit, 0, "{}", made.stderr);
    assert!(String::from_utf8(sandbox.read("l.key")).unwrap().contains("\napr-locked-sign-1"));
    let (exit, value) = sandbox.json(&["key", "show", "l.key", "--key-password-file", "password.txt"]);
    assert_eq!(exit, 0);
    assert_eq!((&value["locked"], &value["secret"]), (&json!(true), &json!(true)));
    assert!(made.stdout.contains(value["public_key"].as_str().unwrap()));

    sandbox.write("wrong.txt", b"correct horse battery stable");
    sandbox.close("wrong.txt");
    let (exit, value) = sandbox.json(&["key", "show", "l.key", "--key-password-file", "wrong.txt"]);
    assert_eq!((exit, &value["error"]["code"]), (4, &json!("cy-open")));

    let sign = ["encrypt", "model.apr", "-o", "s.apr", "--recipient", "buyer.key.pub", "--sign", "l.key"];
    assert_eq!(sandbox.run(&[&sign[..], &["--key-password-file", "wrong.txt"]].concat()).exit, 4);
    assert!(!sandbox.path("s.apr").exists());
    assert_eq!(sandbox.run(&[&sign[..], &["--key-password-file", "password.txt"]].concat()).exit, 0);
    let ran = sandbox.run(&["check", "s.apr", "--signer", "l.key.pub"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}

#[test]
fn keys_of_other_programs_are_taken_and_given() {
    let sandbox = Sandbox::with_models();
    let minisign = minisign::SecretKey::from(maker());
    sandbox.write("minisign.key", minisign.to_text().as_str().as_bytes());
    sandbox.close("minisign.key");
    let expected = SecretKey::from(maker()).public();
    for from in ["ed25519.pem", "minisign.key", "maker.key"] {
        let file = format!("from-{from}");
        let ran = sandbox.run(&["keygen", "sign", "-o", &file, "--from", from]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        assert_eq!(PublicKey::open_file(&sandbox.path(&format!("{file}.pub"))).unwrap(), expected, "{from}");
        // For the other purpose it is no key.
        let (exit, value) = sandbox.json(&["keygen", "encrypt", "-o", "n.key", "--from", from]);
        assert_eq!((exit, &value["error"]["code"]), (3, &json!("cy-key-kind")), "{from}");
    }
    let shown = |format: &str| sandbox.run(&["key", "show", "maker.key", "--format", format]).stdout;
    assert_eq!(shown("pem"), expected.to_spki_pem());
    assert_eq!(shown("minisign"), minisign.public().to_string());
    assert_eq!(shown("apr"), format!("{expected}\n"));
    // An id of minisign's own survives.
    let own = minisign::PublicKey::new(minisign::KeyId([1, 2, 3, 4, 5, 6, 7, 8]), maker().verifying_key());
    sandbox.write("own.pub", own.to_string().as_bytes());
    assert_eq!(sandbox.run(&["key", "show", "own.pub", "--format", "minisign"]).stdout, own.to_string());
    assert_eq!(sandbox.run(&["key", "show", "buyer.key", "--format", "minisign"]).exit, 2);
}

#[test]
fn p256_keys_are_made_shown_and_sign() {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["keygen", "sign-p256", "-o", "p.key"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let key = p256::SigningKey::open_file(&sandbox.path("p.key")).unwrap();
    let public = p256::VerifyingKey::open_file(&sandbox.path("p.key.pub")).unwrap();
    assert_eq!(key.verifying_key(), public);
    assert!(ran.stdout.contains(&public.fingerprint().to_string()) && ran.stdout.ends_with(&public.to_pem()));
    assert!(!ran.stdout.contains("PRIVATE"));
    for file in ["p.key", "p.key.pub"] {
        let (exit, value) = sandbox.json(&["key", "show", file]);
        assert_eq!(
            (exit, &value["kind"], &value["secret"]),
            (0, &json!("sign-p256"), &json!(file == "p.key"))
        );
        assert_eq!(sandbox.run(&["key", "show", file, "--format", "pem"]).stdout, public.to_pem());
        assert_eq!(sandbox.run(&["key", "show", file, "--format", "minisign"]).exit, 2);
    }
    let ran = sandbox.run(&["keygen", "sign-p256", "-o", "copy.key", "--from", "p.key"]);
    assert_eq!((ran.exit, sandbox.read("copy.key")), (0, sandbox.read("p.key")));
    assert_eq!(sandbox.run(&["sign", "sharded", "--key", "copy.key"]).exit, 0);
    assert_eq!(sandbox.run(&["verify", "sharded", "--key", "p.key.pub"]).exit, 0);
    for (exit, args) in [
        (2, &["keygen", "sign-p256", "-o", "p.key"][..]),
        (2, &["keygen", "sign-p256", "-o", "n.key", "--comment", "x"]),
        (2, &["keygen", "sign-p256", "-o", "n.key", "--password-file", "password.txt"]),
        (3, &["keygen", "sign-p256", "-o", "n.key", "--from", "maker.key"]),
        (3, &["keygen", "sign", "-o", "n.key", "--from", "p.key"]),
        (3, &["encrypt", "model.apr", "-o", "n.apr", "--recipient", "p.key.pub"]),
    ] {
        assert_eq!(sandbox.run(args).exit, exit, "{args:?}");
    }
    assert!(!sandbox.path("n.key").exists());
    sandbox.set_mode("p.key", 0o644);
    assert_eq!(sandbox.run(&["key", "show", "p.key"]).exit, 4);
}

#[test]
fn no_secret_is_ever_shown() {
    let sandbox = Sandbox::with_models();
    let [buyers, makers] = secrets();
    let locked = "apr-locked-secret-1".to_owned() + &"q".repeat(128);
    sandbox.write("two.key", format!("{buyers}\n{makers}\n").as_bytes());
    sandbox.write("torn.key", &makers.as_bytes()[..makers.len() - 3]);
    sandbox.write("typo.key", makers.replace("apr-sign-1", "apr-sign-1q").as_bytes());
    sandbox.write("list.txt", format!("alice {makers}\n").as_bytes());
    for name in ["two.key", "torn.key", "typo.key", "list.txt"] {
        sandbox.close(name);
    }
    for (exit, args) in [
        (0, &["key", "show", "maker.key"][..]),
        (0, &["key", "show", "buyer.key", "--format", "pem"]),
        (3, &["key", "show", "two.key"]),
        (3, &["key", "show", "torn.key"]),
        (3, &["key", "show", "typo.key"]),
        (3, &["check", "made.apr", "--trusted-keys", "list.txt"]),
        (3, &["check", "made.apr", "--signer", "maker.key"]),
        (3, &["encrypt", "model.apr", "-o", "n.apr", "--recipient", "buyer.key"]),
        // In the command line, where it is seen already: not repeated at least.
        (2, &["encrypt", "model.apr", "-o", "n.apr", "--recipient", &buyers]),
        (2, &["decrypt", "sold.apr", "-o", "n.apr", "--identity", &buyers]),
        (2, &["check", "made.apr", "--signer", &makers.to_uppercase()]),
        (2, &["nonsense", &makers]),
        (2, &[&buyers]),
        (2, &["keygen", "sign", "-o", "n.key", "--comment", &makers]),
        (2, &["key", "show", &locked]),
    ] {
        for json in [&[][..], &["--json"]] {
            let ran = sandbox.run(&[args, json].concat());
            assert_eq!(ran.exit, exit, "{args:?}\n{}", ran.stderr);
            let shown = (ran.stdout + &ran.stderr).to_lowercase();
            for secret in [&buyers, &makers, &locked] {
                let data = secret.rsplit_once('1').unwrap().1;
                for part in [&data[..12], &data[data.len() - 12..]] {
                    assert!(!shown.contains(part), "{args:?}: {shown}");
                }
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn secret_files_that_others_can_read_are_refused() {
    let sandbox = Sandbox::with_models();
    for mode in [0o640, 0o604, 0o620, 0o610, 0o677] {
        sandbox.set_mode("buyer.key", mode);
        sandbox.set_mode("maker.key", mode);
        sandbox.set_mode("password.txt", mode);
        for args in [
            &["decrypt", "sold.apr", "-o", "n.apr", "--identity", "buyer.key", "--signer", "maker.key.pub"][..],
            &["encrypt", "model.apr", "-o", "n.apr", "--recipient", "buyer.key.pub", "--sign", "maker.key"],
            &["encrypt", "model.apr", "-o", "n.apr", "--password-file", "password.txt"],
            &["keygen", "sign", "-o", "n.key", "--from", "maker.key"],
            &["keygen", "sign", "-o", "n.key", "--password-file", "password.txt"],
            &["key", "show", "maker.key"],
        ] {
            let (exit, value) = sandbox.json(args);
            assert_eq!((exit, &value["error"]["code"]), (4, &json!("cy-exposed")), "{args:?} {mode:o}");
        }
    }
    assert!(!sandbox.path("n.apr").exists() && !sandbox.path("n.key").exists());
    // A list of trusted keys may be read, and not changed.
    let check = ["check", "made.apr", "--trusted-keys", "trusted.txt"];
    sandbox.set_mode("trusted.txt", 0o644);
    assert_eq!(sandbox.run(&check).exit, 0);
    sandbox.set_mode("trusted.txt", 0o664);
    assert_eq!(sandbox.run(&check).exit, 4);
}

#[cfg(unix)]
#[test]
fn keys_come_from_regular_files_only() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.shell("mkfifo pipe").exit, 0);
    for place in ["pipe", "/dev/zero", "sharded"] {
        for args in [
            &["decrypt", "sold.apr", "-o", "n.apr", "--any-signer", "--identity", place][..],
            &["decrypt", "locked.apr", "-o", "n.apr", "--password-file", place],
            &["check", "made.apr", "--signer", place],
            &["check", "made.apr", "--trusted-keys", place],
            &["key", "show", place],
        ] {
            let ran = sandbox.run(args);
            assert_eq!(ran.exit, 3, "{args:?}\n{}", ran.stderr);
        }
    }
}

#[test]
fn a_recipient_is_named_once_and_is_one() {
    let sandbox = Sandbox::with_models();
    let encrypt = |recipients: &[&str]| {
        let args: Vec<&str> = recipients.iter().flat_map(|key| ["--recipient", key]).collect();
        sandbox.json(&[&["encrypt", "model.apr", "-o", "n.apr"][..], &args].concat())
    };
    let key = line(buyer().public());
    for twice in [[&key, "buyer.key.pub"], [&key, &key], ["buyer.key.pub", "buyer.key.pub"]] {
        let (exit, value) = encrypt(&twice);
        assert_eq!((exit, &value["error"]["code"]), (2, &json!("cli-usage")));
        assert!(value["error"]["message"].as_str().unwrap().contains("twice"), "{value}");
    }
    sandbox.run(&["keygen", "encrypt", "-o", "second.key"]);
    let weak = "apr-public-1".to_owned() + &"q".repeat(58);
    assert_eq!(encrypt(&[&weak]).0, 3);
    assert_eq!(encrypt(&[&line(maker().verifying_key())]).1["error"]["code"], "cy-key-kind");
    assert_eq!(encrypt(&[&key]).0, 0);
}
