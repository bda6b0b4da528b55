//! Models that are used only if the signature beside them is right.

use core::sync::atomic::{AtomicBool, Ordering};
use std::fs;

use crate::sandbox::{Sandbox, line, maker};

/// A folder in which the models are signed beside, by an Ed25519 or a P-256 key.
fn signed() -> Sandbox {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["convert", "model.apr", "plane.safetensors"]).exit, 0);
    for (model, key) in [
        ("model.apr", "maker.key"),
        ("plane.safetensors", "maker.key"),
        ("model.gguf", "publisher.pem"),
        ("tensors.apr", "publisher.pem"),
    ] {
        let ran = sandbox.run(&["sign", model, "--key", key]);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
    }
    sandbox
}

/// Another bit near the end of a file, which a valid safetensors or GGUF file does not notice.
fn tamper(sandbox: &Sandbox, name: &str) {
    let mut bytes = sandbox.read(name);
    let at = bytes.len() - 3;
    bytes[at] ^= 1;
    sandbox.write(name, &bytes);
}

const COMMANDS: [&[&str]; 5] = [
    &["predict", "model.apr", "-i", "rows.csv", "--key", "maker.key.pub"],
    &["predict", "plane.safetensors", "-i", "rows.csv", "--key", "maker.key.pub"],
    &["convert", "model.gguf", "out.gguf", "--key", "publisher-p256.pub"],
    &["quantize", "tensors.apr", "--type", "f16", "-o", "small.gguf", "--key", "publisher-p256.pub"],
    &["convert", "plane.safetensors", "out.safetensors", "--key", "maker.key.pub"],
];

#[test]
fn the_signature_beside_a_model_is_verified_before_it_is_used() {
    let sandbox = signed();
    for args in COMMANDS {
        let unsigned = &args[..args.len() - 2];
        let (mut plain, ran) = (sandbox.run(unsigned), sandbox.run(&[args, &["--force"]].concat()));
        assert_eq!((plain.exit, ran.exit), (0, 0), "{args:?}\n{}", ran.stderr);
        if args[0] == "predict" {
            assert_eq!(ran.stdout, core::mem::take(&mut plain.stdout), "{args:?}");
        }
        assert!(!ran.stderr.contains("another name"), "{}", ran.stderr);
        let ran = sandbox.run(&[unsigned, &["--key", "other.pub", "--force"]].concat());
        let code = if args[0] == "predict" || args[1] == "plane.safetensors" {
            "cy-signature"
        } else {
            "cy-key-kind"
        };
        assert!(ran.exit != 0 && ran.stderr.contains(code), "{args:?}\n{}", ran.stderr);
    }
    assert!(sandbox.leftovers().is_empty());

    for output in ["out.gguf", "small.gguf", "out.safetensors"] {
        fs::remove_file(sandbox.path(output)).unwrap();
    }
    for model in ["model.apr", "plane.safetensors", "model.gguf", "tensors.apr"] {
        tamper(&sandbox, model);
    }
    let before = sandbox.listing();
    for args in COMMANDS {
        let ran = sandbox.run(args);
        assert_eq!((ran.exit, &*ran.stdout), (4, ""), "{args:?}\n{}", ran.stderr);
        let model = args[1];
        assert!(ran.stderr.contains(&format!("file:   {model}\n")), "{}", ran.stderr);
    }
    assert_eq!(sandbox.listing(), before);
}

#[test]
fn the_signature_may_lie_elsewhere_and_the_model_come_from_standard_input() {
    let sandbox = signed();
    let predict = ["predict", "plane.safetensors", "-i", "rows.csv", "--key"];
    let key = line(maker().verifying_key());
    fs::rename(sandbox.path("plane.safetensors.minisig"), sandbox.path("s")).unwrap();
    let code = |args: &[&str]| {
        let (exit, value) = sandbox.json(args);
        (exit, value["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(code(&[&predict[..], &[&key]].concat()), (4, "cli-no-signature".to_owned()));
    let named = [&predict[..], &[&key, "--signature", "s"]].concat();
    assert_eq!(code(&named), (0, String::new()));
    // A model is not taken for another one of the same signer without a word.
    fs::rename(sandbox.path("plane.safetensors"), sandbox.path("hill.safetensors")).unwrap();
    let ran = sandbox.run(&[&["predict", "hill.safetensors"], &named[2..]].concat());
    assert!(ran.exit == 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("hill.safetensors was signed under another name: plane.safetensors"),
        "{}",
        ran.stderr
    );

    let model = sandbox.read("hill.safetensors");
    let stdin = ["predict", "-", "-i", "rows.csv", "--key", "maker.key.pub"];
    assert_eq!(sandbox.run_with_input(&[&stdin[..], &["--signature", "s"]].concat(), &model).exit, 0);
    assert_eq!(sandbox.run_with_input(&stdin, &model).exit, 2);
    let ran =
        sandbox.run_with_input(&[&stdin[..], &["--signature", "s"]].concat(), &sandbox.read("model.apr"));
    assert!(ran.exit == 4 && ran.stderr.contains("file:   -\n"), "{}", ran.stderr);

    // Several files, and options that mean nothing.
    assert_eq!(code(&["convert", "sharded", "o.safetensors", "--key", &key]), (2, "cli-usage".to_owned()));
    let index = "sharded/model.safetensors.index.json";
    assert_eq!(code(&["convert", index, "o.safetensors", "--key", &key]), (2, "cli-usage".to_owned()));
    assert_eq!(code(&[&predict[..4], &["--signature", "s"]].concat()), (2, "cli-usage".to_owned()));
    assert_eq!(code(&["convert", "none.gguf", "o.gguf", "--key", &key]).0, 5);
}

/// A signature of the whole file covers the one inside.
#[test]
fn a_model_signed_inside_and_beside_needs_one_key() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["sign", "made.apr", "--key", "publisher.key"]).exit, 0);
    let predict = ["predict", "made.apr", "-i", "rows.csv"];
    assert_eq!(sandbox.run(&predict).exit, 4);
    assert_eq!(sandbox.run(&[&predict[..], &["--key", "publisher.pub"]].concat()).exit, 0);
    let both = [&predict[..], &["--key", "publisher.pub", "--signer"]].concat();
    assert_eq!(sandbox.run(&[&both[..], &["maker.key.pub"]].concat()).exit, 0);
    assert_eq!(sandbox.run(&[&both[..], &["publisher.pub"]].concat()).exit, 4);
}

/// What is used is what was verified, also if the file is changed in between.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_changes_after_its_verification_is_not_looked_at_again() {
    let sandbox = signed();
    let (good, key) = (sandbox.read("plane.safetensors"), "maker.key.pub");
    let expected = sandbox.run(&["predict", "plane.safetensors", "-i", "rows.csv"]).stdout;
    let mut bad = good.clone();
    let at = bad.len() - 3;
    bad[at] ^= 0x40;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let path = sandbox.path("plane.safetensors");
        scope.spawn(|| {
            use std::os::unix::fs::FileExt as _;
            let file = fs::File::options().write(true).open(path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                file.write_all_at(&bad, 0).unwrap();
                std::thread::sleep(core::time::Duration::from_micros(300));
                file.write_all_at(&good, 0).unwrap();
                std::thread::sleep(core::time::Duration::from_micros(700));
            }
        });
        let run = || sandbox.run(&["predict", "plane.safetensors", "-i", "rows.csv", "--key", key]);
        let runs: Vec<_> = (0..60).map(|_| run()).collect();
        stop.store(true, Ordering::Relaxed);
        let (accepted, refused): (Vec<_>, Vec<_>) = runs.into_iter().partition(|ran| ran.exit == 0);
        assert!(!accepted.is_empty());
        assert!(accepted.iter().all(|ran| ran.stdout == expected));
        assert!(refused.iter().all(|ran| ran.exit == 4 && ran.stdout.is_empty()));
    });
}
