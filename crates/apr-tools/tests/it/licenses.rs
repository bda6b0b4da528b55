//! Licenses: a label that is shown, checked against facts, and set.

use serde_json::json;

use crate::sandbox::{Sandbox, licensed};

#[test]
fn a_license_holds_or_says_why_not() {
    let sandbox = Sandbox::with_models();
    for (exit, args) in [
        (0, &[][..]),
        (0, &["--seats", "10"]),
        (1, &["--seats", "11"]),
        (0, &["--tier", "team"]),
        (1, &["--tier", "enterprise"]),
        (0, &["--at", "2999-12-31"]),
        (0, &["--at", "2999-12-31T23:59:59Z"]),
        (1, &["--at", "3000-01-01"]),
        (1, &["--at", "2999-12-31T23:59:59-01:00"]),
        (0, &["--at", "0"]),
        (2, &["--at", "soon"]),
        (2, &["--at", "2999-02-30"]),
        (2, &["--tier", "gold"]),
        (2, &["--seats", "-1"]),
    ] {
        let ran = sandbox.run(&[&["license", "check", "licensed.apr"], args].concat());
        assert_eq!(ran.exit, exit, "{args:?}\n{}{}", ran.stdout, ran.stderr);
        if exit < 2 {
            assert!(ran.stdout.contains("a label, not a lock"), "{}", ran.stdout);
        }
    }
    let (exit, value) =
        sandbox.json(&["license", "check", "licensed.apr", "--seats", "99", "--at", "3000-01-01"]);
    assert_eq!((exit, &value["holds"]), (1, &json!(false)));
    assert_eq!(value["problems"].as_array().unwrap().len(), 2);
    let (exit, value) = sandbox.json(&["license", "check", "model.apr"]);
    assert_eq!((exit, &value["license"]), (1, &json!(null)));
}

#[test]
fn it_is_said_who_vouches_for_it() {
    let sandbox = Sandbox::with_models();
    let worth = |args: &[&str]| sandbox.run(&[&["license", "show"], args].concat()).stdout;
    assert!(worth(&["licensed.apr"]).contains("not signed: anyone"));
    assert!(worth(&["sold.apr"]).contains("the signature was not verified"));
    assert!(worth(&["sold.apr", "--any-signer"]).contains("that is anyone"));
    assert!(
        worth(&["sold.apr", "--trusted-keys", "trusted.txt"])
            .contains("covered by a verified signature by maker (")
    );
    let (_, value) = sandbox.json(&["license", "show", "sold.apr", "--signer", "maker.key.pub"]);
    assert_eq!((&value["signed"], &value["signer"]["trusted"]), (&json!(true), &json!(true)));
    // A demand that is not met is no answer.
    let (exit, value) = sandbox.json(&["license", "show", "licensed.apr", "--signer", "maker.key.pub"]);
    assert_eq!((exit, &value["error"]["code"]), (4, &json!("ac-not-signed")));
    sandbox.run(&["keygen", "sign", "-o", "other.key"]);
    let ran = sandbox.run(&["license", "check", "sold.apr", "--signer", "other.key.pub"]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (4, ""));
    assert!(!ran.stderr.contains("Example"), "nothing of the content: {}", ran.stderr);
}

#[test]
fn a_license_is_set_changed_and_cleared_and_the_model_stays() {
    let sandbox = Sandbox::with_models();
    let set = |args: &[&str]| sandbox.run(&[&["license", "set"], args].concat());
    let ran =
        set(&["model.apr", "-o", "a.apr", "--licensee", "Zoë", "--seats", "3", "--expiry", "2030-06-30"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let (_, value) = sandbox.json(&["license", "show", "a.apr"]);
    let license = &value["license"];
    assert_eq!((&license["licensee"], &license["seats"]), (&json!("Zoë"), &json!(3)));
    assert_eq!((&license["tier"], &license["expiry_unix"]), (&json!("Personal"), &json!(1_909_094_400)));

    assert_eq!(set(&["a.apr", "-o", "b.apr", "--tier", "academic", "--id", "7"]).exit, 0);
    let (_, value) = sandbox.json(&["license", "show", "b.apr"]);
    assert_eq!((&value["license"]["tier"], &value["license"]["seats"]), (&json!("Academic"), &json!(3)));
    assert_eq!(set(&["b.apr", "-o", "c.apr", "--clear"]).exit, 0);
    assert_eq!(sandbox.read("c.apr"), sandbox.read("model.apr"), "and nothing else has changed");

    for (exit, args) in [
        (2, &["model.apr", "-o", "n.apr"][..]),
        (2, &["model.apr", "-o", "n.apr", "--expiry", "tomorrow"]),
        (2, &["model.apr", "-o", "n.apr", "--clear", "--seats", "1"]),
        (2, &["model.apr", "-o", "a.apr", "--seats", "1"]),
        (4, &["made.apr", "-o", "n.apr", "--seats", "1"]),
        (6, &["locked.apr", "-o", "n.apr", "--seats", "1"]),
        (6, &["model.safetensors", "-o", "n.apr", "--seats", "1"]),
        (0, &["model.apr", "-o", "n.apr", "--seats", "1", "--dry-run"]),
    ] {
        assert_eq!(set(args).exit, exit, "{args:?}");
    }
    assert!(!sandbox.path("n.apr").exists());
}

#[test]
fn a_license_with_tricks_in_it_is_shown_as_text() {
    let sandbox = Sandbox::with_models();
    let ran =
        sandbox.run(&["license", "set", "model.apr", "-o", "a.apr", "--licensee", "x\u{1b}[2J\u{202e}y"]);
    assert_eq!(ran.exit, 0);
    let ran = sandbox.run(&["license", "show", "a.apr"]);
    assert!(ran.stdout.contains("x\\u{1b}[2J\\u{202e}y"), "{}", ran.stdout);
    let ran = sandbox.run_with_input(&["license", "check", "-"], &licensed());
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}
