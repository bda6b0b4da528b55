//! Files made to do harm through what is printed about them.

use alloc::collections::BTreeMap;

use st_core::Dtype;

use crate::sandbox::{Sandbox, Tensor, file, raw};

const HOSTILE: &str =
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}gpj.exe\u{2066}\u{200f}\n\r\t\u{7f}\u{2028}";

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{2028}')
    })
}

#[test]
fn names_and_metadata_are_escaped_everywhere() {
    let sandbox = Sandbox::empty();
    let metadata = BTreeMap::from([(HOSTILE.to_owned(), HOSTILE.to_owned())]);
    let name = |suffix: &str| format!("{HOSTILE}{suffix}");
    let a = [Tensor::counting(&name("a"), &[2], 0.0), Tensor::counting(&name("b"), &[0], 0.0)];
    let b = [Tensor::counting(&name("a"), &[2], 1.0), Tensor::new(&name("c"), Dtype::U8, &[1], vec![1])];
    sandbox.write("a", &file(&a, &metadata));
    sandbox.write("b", &file(&b, &BTreeMap::from([("k".to_owned(), HOSTILE.to_owned())])));
    let entry =
        format!("{{\"{}\":{{\"dtype\":\"NO\",\"shape\":[],\"data_offsets\":[0,0]}}}}", "\\u001b[2J\u{202e}");
    sandbox.write("bad", &raw(&entry, b""));
    let index = r#"{"weight_map":{"\u001b[2J\u202e":"a\u001b\u202e.safetensors"}}"#;
    sandbox.write("model.safetensors.index.json", index.as_bytes());
    for args in [
        &["inspect", "a"][..],
        &["inspect", "a", "-v"],
        &["tensors", "a", "--digest"],
        &["check", "a", "bad"],
        &["check", "model.safetensors.index.json"],
        &["inspect", "model.safetensors.index.json"],
        &["diff", "a", "b"],
        &["convert", "a", "out", "-v"],
        &["convert", "a", "out2", "--unset", HOSTILE],
        &["convert", "a", "out3", "--rename", "*=x"],
        &["shard", "a", "-o", "shards", "--max-size", "8", "-v"],
        &["tensors", "bad"],
        &["tensors", HOSTILE],
        &["convert", "a", "out4", "--rename", HOSTILE],
        &["explain", HOSTILE],
    ] {
        let ran = sandbox.run(args);
        assert!(
            is_harmless(&ran.stdout) && is_harmless(&ran.stderr),
            "{args:?}\n{:?}\n{:?}",
            ran.stdout,
            ran.stderr
        );
        if args[0] != "shard" && args[0] != "convert" {
            let (_, value) = sandbox.json(args);
            let ran = sandbox.run(&[args, &["--json"]].concat());
            assert!(is_harmless(&ran.stdout) && value.is_object(), "{args:?}");
        }
    }
    let (_, value) = sandbox.json(&["tensors", "a"]);
    assert_eq!(value["tensors"][0]["name"], name("a"), "JSON says exactly what the file says");
}

#[test]
fn many_dots_and_many_tensors_are_shown_in_bounds() {
    let sandbox = Sandbox::empty();
    let mut tensors = vec![Tensor::counting(&".".repeat(60_000), &[1], 0.0)];
    tensors.extend((0..3000).map(|idx| Tensor::counting(&format!("odd{idx}x"), &[idx % 7], 0.0)));
    sandbox.write("wide", &file(&tensors, &BTreeMap::new()));
    let ran = sandbox.run(&["inspect", "./wide"]);
    assert_eq!(ran.exit, 0);
    assert!(ran.stdout.lines().count() < 100, "{}", ran.stdout.lines().count());
    assert_eq!(sandbox.json(&["inspect", "./wide"]).0, 0);
}
