//! Limits of sealed files for readers, and the messages to writers.

use apr_crypto::RecipientSecret;
use apr_sealed::SealOptions;
use sha2::{Digest as _, Sha256};

use crate::sandbox::{Sandbox, buyer, sealed};

/// A sealed file whose password costs this much, as anyone can make one of another.
fn costing(sandbox: &Sandbox, mib: u32, passes: u32) {
    if !sandbox.path("word.sealed").exists() {
        let seal = ["seal", "model.apr", "-o", "word.sealed", "--password-file", "password.txt"];
        assert_eq!(sandbox.run(&seal).exit, 0);
    }
    let mut file = sandbox.read("word.sealed");
    let (slot, slot_len) = (512, u32::from_le_bytes(file[52..56].try_into().unwrap()) as usize);
    file[slot + 84..slot + 88].copy_from_slice(&(mib << 10).to_le_bytes());
    file[slot + 88..slot + 92].copy_from_slice(&passes.to_le_bytes());
    let checksum = Sha256::digest(&file[slot..slot + slot_len - 32]);
    file[slot + slot_len - 32..slot + slot_len].copy_from_slice(&checksum);
    sandbox.write("costly.sealed", &file);
}

#[test]
fn a_password_costs_no_more_than_the_command_line_allows() {
    let sandbox = Sandbox::with_models();
    let password = ["--password-file", "password.txt"];
    let open = ["open", "costly.sealed", "-o", "out.bin"];
    let predict = ["predict", "costly.sealed", "-i", "rows.csv"];
    let limit = |text| ["--max-password-cost", text];
    for (mib, passes, option, advice) in [
        (257, 1, None, Some("--max-password-cost 257MiB:1")),
        (64, 9, None, Some("--max-password-cost 64MiB:9")),
        (1 << 20, 4, None, Some("--max-password-cost 1048576MiB:4")),
        (1 << 20, 4, Some("1GiB:4"), Some("--max-password-cost 1048576MiB:4")),
        (9, 2, Some("9MiB:1"), Some("--max-password-cost 9MiB:2")),
        (4, 1, None, None),
    ] {
        costing(&sandbox, mib, passes);
        for args in [&open[..], &predict] {
            let option = option.map(limit);
            let args = [args, &password, option.as_ref().map_or(&[][..], |option| &option[..])].concat();
            let (exit, value) = sandbox.json(&args);
            let error = &value["error"];
            assert_eq!((exit, error["code"].as_str()), (4, Some("cy-cost")), "{args:?} {value}");
            let help = error["help"].as_str().unwrap();
            assert!(advice.is_none_or(|advice| help.contains(advice)), "{help}");
        }
    }
    // Allowed, it is told before it starts; the changed cost opens nothing.
    costing(&sandbox, 257, 1);
    for args in [&open[..], &predict] {
        let ran = sandbox.run(&[args, &password, &limit("257MiB:1")].concat());
        assert!(ran.exit == 4 && ran.stderr.contains("error[ac-decryption]"), "{}", ran.stderr);
        let told = "this file asks for 257 MiB of memory and 1 pass to try the password: about 1 second";
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    // What the program writes itself needs neither option nor words.
    let ran = sandbox.run(&[&["open", "word.sealed", "-o", "out.bin"], &password[..]].concat());
    assert!(ran.exit == 0 && !ran.stderr.contains("asks for"), "{}", ran.stderr);
    for wrong in ["1GiB", "1MiB:1", "x:1", "1GiB:0"] {
        assert_eq!(sandbox.run(&[&open[..], &password, &limit(wrong)].concat()).exit, 2, "{wrong}");
    }
}

#[test]
fn a_key_is_tried_on_no_more_stanzas_than_the_command_line_allows() {
    let sandbox = Sandbox::with_models();
    let others = (0_u16..1_024).map(|number| {
        let [low, high] = number.to_le_bytes();
        RecipientSecret::from_bytes(&core::array::from_fn(|at| [low, high, 5][at.min(2)])).public()
    });
    let options = others.fold(SealOptions::default(), SealOptions::for_recipient);
    let file = sealed(&sandbox.read("model.safetensors"), &options.for_recipient(buyer().public()));
    sandbox.write("many.sealed", &file);
    let more = ["--max-recipients", "1025"];
    for args in [
        &["open", "many.sealed", "-o", "out.bin"][..],
        &["inspect", "many.sealed"],
        &["rekey", "many.sealed", "--recipient", "second.key.pub", "--remove-others"],
    ] {
        let args = [args, &["--identity", "buyer.key"]].concat();
        let (exit, value) = sandbox.json(&args);
        assert_eq!((exit, value["error"]["code"].as_str()), (4, Some("ac-sealed-stanzas")), "{value}");
        assert!(value["error"]["help"].as_str().unwrap().contains("--max-recipients"), "{value}");
        assert_eq!(sandbox.read("many.sealed"), file);
        assert_eq!(sandbox.json(&[&args[..], &more].concat()).0, 0, "{args:?}");
    }
    // Their number is visible without a key.
    assert_eq!(sandbox.run(&["inspect", "many.sealed"]).exit, 0);
    let seal = ["seal", "model.apr", "-o", "room.sealed", "--recipient", "buyer.key.pub", "--room"];
    let ran = sandbox.run(&[&seal[..], &["1025"]].concat());
    assert!(ran.exit == 0 && ran.stderr.contains("--max-recipients"), "{}", ran.stderr);
    let ran = sandbox.run(&[&seal[..], &["1024", "--force"]].concat());
    assert!(ran.exit == 0 && !ran.stderr.contains("--max-recipients"), "{}", ran.stderr);
}

#[test]
fn a_maker_learns_that_recipients_can_add_others() {
    let sandbox = Sandbox::with_models();
    let warned = |args: &[&str]| {
        let ran = sandbox.run(&[&["seal", "model.apr", "-o", "s.sealed", "--force"], args].concat());
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        ran.stderr.contains("--bind-recipients")
    };
    let (to, by) = (["--recipient", "buyer.key.pub"], ["--sign", "maker.key"]);
    assert!(warned(&[to, by].concat()));
    assert!(!warned(&[&to[..], &by, &["--bind-recipients"]].concat()));
    assert!(!warned(&to) && !warned(&by));
    assert!(!warned(&[&by[..], &["--password-file", "password.txt"]].concat()));
}
