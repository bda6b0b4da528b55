//! Private inference over loopback: keys, a server, a client, and what each of them refuses.

use std::fs;

use serde_json::{Value, json};

use crate::sandbox::Sandbox;
use crate::serving::Serving;

/// A sandbox with the key pair of a model's owner, `signed.apr` bound to it, and the key signed by the maker.
fn with_owner() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let ran = sandbox.run(&["keygen", "inference", "-o", "owner.key"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("--inference-key owner.key.pub"), "{}", ran.stderr);
    let bind = ["sign", "model.apr", "--inside", "--inference-key", "owner.key.pub"];
    let ran = sandbox.run(&[&bind[..], &["--key", "maker.key", "-o", "signed.apr"]].concat());
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    sandbox
}

fn sign_key(sandbox: &Sandbox, comment: &str) {
    let args = ["sign", "owner.key.pub", "--key", "maker.key", "--comment", comment, "--force"];
    assert_eq!(sandbox.run(&args).exit, 0);
}

fn start(sandbox: &Sandbox) -> Serving {
    Serving::start(
        sandbox,
        &["serve", "signed.apr", "--signer", "maker.key.pub", "--inference-key", "owner.key"],
    )
}

fn code(value: &Value) -> &str {
    value["error"]["code"].as_str().unwrap_or_default()
}

#[test]
fn a_server_answers_rows_that_only_its_owner_can_read() {
    let sandbox = with_owner();
    sign_key(&sandbox, "apr inference key");
    let server = start(&sandbox);
    let url = server.url();
    let expected = sandbox.run(&["predict", "model.apr", "-i", "rows.csv"]).stdout;
    let numbers = |text: &str| -> Vec<f64> { text.lines().map(|line| line.parse().unwrap()).collect() };
    let (key, signer) = (["--inference-key", "owner.key.pub"], ["--signer", "maker.key.pub"]);
    for (model, keys) in [(&[][..], &signer), (&["signed.apr"], &signer), (&[], &key)] {
        let args = [&["predict"], model, &["--private", &url, "-i", "rows.csv"], keys].concat();
        let ran = sandbox.run(&args);
        assert_eq!(ran.exit, 0, "{args:?} {}", ran.stderr);
        assert_eq!(ran.stdout, expected, "{args:?}");
    }
    sandbox.write("rows.json", b"{\"rows\": [[1, 2], [3, 4]]}");
    let args = ["predict", "--private", &url, "-i", "rows.json", "--signer", "maker.key.pub"];
    let (exit, value) = sandbox.json(&args);
    assert_eq!((exit, &value["schema"]), (0, &json!("apr.predict.private/1")), "{value}");
    assert_eq!(value["predictions"].as_array().unwrap().len(), 2);
    let digest: Value = serde_json::from_str(&server.get("/model").1).unwrap();
    assert!(digest["digest"].as_str().unwrap()[7..].starts_with(value["model"].as_str().unwrap()));
    // Standard input is a table, too.
    let piped = sandbox.run_with_input(&["predict", "--private", &url, "-i", "-", key[0], key[1]], b"1,2\n");
    assert_eq!(numbers(&piped.stdout)[..], numbers(&expected)[..1], "{}", piped.stderr);
    // What the server says about the rows arrives with its code.
    sandbox.write("short.csv", b"1\n");
    let (exit, value) = sandbox.json(&["predict", "--private", &url, "-i", "short.csv", key[0], key[1]]);
    assert_eq!((exit, code(&value)), (3, "sv-columns"), "{value}");
}

#[test]
fn rows_are_encrypted_to_no_key_that_the_signer_did_not_sign() {
    let sandbox = with_owner();
    for (kind, name) in [("inference", "other.key"), ("sign", "stranger.key")] {
        assert_eq!(sandbox.run(&["keygen", kind, "-o", name]).exit, 0);
    }
    // A key that the server offers unsigned, signed for another purpose, signed by someone else.
    let bare = start(&sandbox);
    let predict = |server: &Serving, args: &[&str]| {
        let url = server.url();
        sandbox.json(&[args, &["--private", &url, "-i", "rows.csv"]].concat())
    };
    let signer = ["--signer", "maker.key.pub"];
    let of_signer = ["predict", signer[0], signer[1]];
    let (exit, value) = predict(&bare, &of_signer);
    assert_eq!((exit, code(&value)), (4, "cli-inference-key"), "{value}");
    sign_key(&sandbox, "file:owner.key.pub");
    let (exit, value) = predict(&start(&sandbox), &of_signer);
    assert_eq!((exit, code(&value)), (4, "cy-key-purpose"), "{value}");
    sign_key(&sandbox, "apr inference key");
    let server = start(&sandbox);
    assert_eq!(predict(&server, &of_signer).0, 0);
    for (args, exit, expected) in [
        (&["predict"][..], 2, "cli-usage"),
        (&["predict", "--any-signer"], 2, "cli-usage"),
        (&["predict", "--signer", "stranger.key.pub"], 4, "cy-signature"),
        (&["predict", "signed.apr", "--signer", "stranger.key.pub"], 4, "ac-untrusted-signer"),
        (&["predict", "model.apr", "--signer", "maker.key.pub"], 4, "ac-not-signed"),
        (&["predict", "made.apr", "--signer", "maker.key.pub"], 4, "ac-inference-key"),
        (&["predict", "--inference-key", "other.key.pub"], 4, "cli-inference-key"),
        (&["predict", "--inference-key", "maker.key.pub"], 3, "cy-key-kind"),
    ] {
        let (found, value) = predict(&server, args);
        assert_eq!((found, code(&value)), (exit, expected), "{args:?} {value}");
    }
    // A server without a key, and an address where there is none.
    let plain = Serving::start(&sandbox, &["serve", "model.apr"]);
    let (exit, value) = predict(&plain, &of_signer);
    assert_eq!((exit, code(&value)), (5, "cli-service"), "{value}");
    let url = plain.url();
    drop(plain);
    let (exit, _) = sandbox.json(&["predict", "--private", &url, "-i", "rows.csv", signer[0], signer[1]]);
    assert_eq!(exit, 5);
}

#[test]
fn options_for_a_model_of_this_machine_are_refused() {
    let sandbox = with_owner();
    for option in [
        &["-o", "p.csv"][..],
        &["--identity", "owner.key"],
        &["--ask-password"],
        &["--password-file", "password.txt"],
        &["--password-fd", "3"],
        &["--key", "maker.key.pub"],
        &["--any-signer"],
        &["--compat"],
        &["--column", "a"],
        &["--ids"],
        &["--force"],
    ] {
        let args = [&["predict", "--private", "http://127.0.0.1:9", "-i", "rows.csv"], option].concat();
        let ran = sandbox.run(&args);
        assert!(ran.exit == 2 && ran.stderr.contains("--private"), "{option:?}: {}", ran.stderr);
    }
}

#[test]
fn a_model_is_served_with_the_key_that_it_is_bound_to() {
    let sandbox = with_owner();
    assert_eq!(sandbox.run(&["keygen", "inference", "-o", "other.key"]).exit, 0);
    let serve = ["serve", "signed.apr", "--signer", "maker.key.pub", "--addr", "127.0.0.1:0"];
    let (exit, value) = sandbox.json(&[&serve[..], &["--inference-key", "other.key"]].concat());
    assert_eq!((exit, code(&value)), (4, "cli-inference-key"), "{value}");
    let (exit, value) = sandbox.json(&[&serve[..], &["--inference-key", "maker.key"]].concat());
    assert_eq!((exit, code(&value)), (3, "cy-key-kind"), "{value}");
    // The signed key beside the secret one is another one.
    sign_key(&sandbox, "apr inference key");
    fs::copy(sandbox.path("owner.key.pub.minisig"), sandbox.path("other.key.pub.minisig")).unwrap();
    fs::copy(sandbox.path("owner.key.pub"), sandbox.path("other.key.pub")).unwrap();
    let args = ["serve", "model.apr", "--addr", "127.0.0.1:0", "--inference-key", "other.key"];
    let (exit, value) = sandbox.json(&args);
    assert_eq!((exit, code(&value)), (4, "cy-key-mismatch"), "{value}");
    // A model that is bound to another key does not take over.
    fs::copy(sandbox.path("signed.apr"), sandbox.path("served.apr")).unwrap();
    let serve = ["serve", "served.apr", "--any-signer", "--inference-key", "owner.key"];
    let server = Serving::start(&sandbox, &serve);
    let first = server.predict("[[1, 2]]");
    fs::remove_file(sandbox.path("other.key")).unwrap();
    fs::remove_file(sandbox.path("other.key.pub")).unwrap();
    assert_eq!(sandbox.run(&["keygen", "inference", "-o", "other.key"]).exit, 0);
    let bind = ["sign", "model.apr", "--inside", "--inference-key", "other.key.pub", "--key", "maker.key"];
    assert_eq!(sandbox.run(&[&bind[..], &["-o", "served.apr", "--force"]].concat()).exit, 0);
    server.wait_for("apr_serve_reloads_total{result=\"failed\"} 1");
    assert_eq!(server.predict("[[1, 2]]"), first);
}
