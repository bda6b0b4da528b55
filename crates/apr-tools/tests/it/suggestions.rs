//! What the program says about words that it does not know and files that are not there.

#[cfg(unix)]
use std::fs;

use crate::sandbox::Sandbox;

#[test]
fn a_missing_file_is_answered_with_what_was_meant() {
    let sandbox = Sandbox::with_models();
    for (name, said, unsaid) in [
        ("modle.safetensors", "did you mean model.safetensors?", "free space"),
        ("sharded/model-00001.safetensors", "help:", "free space"),
        ("nowhere/model.safetensors", "there is no folder nowhere", "free space"),
        ("zzzzzz.apr", "check the path", "free space"),
    ] {
        for command in ["inspect", "tensors", "check", "convert"] {
            let rest = if command == "convert" { &["out.safetensors"][..] } else { &[] };
            let ran = sandbox.run(&[&[command, name], rest].concat());
            assert_eq!(ran.exit, 5, "{command} {name}\n{}", ran.stderr);
            assert!(ran.stderr.contains(said) && !ran.stderr.contains(unsaid), "{command}\n{}", ran.stderr);
        }
    }
}

#[test]
fn an_unknown_word_is_neither_a_command_nor_a_file() {
    let sandbox = Sandbox::with_models();
    for (word, help) in [
        ("gpt2", "`apr --help` lists the commands"),
        ("inspekt", "did you mean `apr inspect`?"),
        ("cat", "`apr tensors FILE`"),
        ("download", "apr get"),
        ("quirkk", "`apr --help`"),
    ] {
        let ran = sandbox.run(&[word]);
        assert_eq!(ran.exit, 2, "{word}");
        let said = format!("error[cli-usage]: `{word}` is neither a command nor a file");
        assert!(ran.stderr.contains(&said) && ran.stderr.contains(help), "{}", ran.stderr);
        assert!(!ran.stderr.contains("verify"), "{}", ran.stderr);
    }
    let ran = sandbox.run(&["rekey", "model.sealed", "--revoke", "k"]);
    assert!(
        ran.exit == 2 && ran.stderr.contains("--remove") && !ran.stderr.contains("--verbose"),
        "{}",
        ran.stderr
    );
    assert!(!sandbox.run(&["explain", "foo"]).stderr.contains("did you mean"));
}

#[test]
fn words_of_other_programs_are_understood() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["version"]).stdout, sandbox.run(&["--version"]).stdout);
    for (alias, name) in [("info", "inspect"), ("stat", "inspect"), ("ls", "tensors"), ("list", "tensors")] {
        let (by_alias, by_name) =
            (sandbox.run(&[alias, "model.safetensors"]), sandbox.run(&[name, "model.safetensors"]));
        assert_eq!((by_alias.exit, &by_alias.stdout), (0, &by_name.stdout), "{alias}");
    }
}

#[test]
fn types_of_quantize_are_named_in_help_error_and_completions() {
    let sandbox = Sandbox::with_models();
    let help = sandbox.run(&["quantize", "--help"]).stdout;
    let script = sandbox.run(&["completions", "bash"]).stdout;
    for name in ["q8_0", "q4_k_m", "tq1_0", "bf16"] {
        assert!(help.contains(name) && script.contains(name), "{name}");
    }
    assert!(script.contains("st-offsets"), "codes of `apr explain`");
    let ran = sandbox.run(&["quantize", "model.safetensors", "--type", "q4km", "-o", "x.gguf"]);
    assert_eq!(ran.exit, 2);
    for part in ["did you mean `q4_k_m`?", "the types are f32, f16, q4_0"] {
        assert!(ran.stderr.contains(part), "{part}\n{}", ran.stderr);
    }
}

#[test]
fn help_has_colours_where_they_are_wanted() {
    let sandbox = Sandbox::empty();
    for args in [&["--help"][..], &["convert", "--help"], &["help", "convert"]] {
        let plain = sandbox.run(args);
        assert!(plain.exit == 0 && !plain.stdout.contains('\u{1b}'), "{args:?}");
        for option in [&["--color", "always"][..], &["--color=always"]] {
            let coloured = sandbox.run(&[option, args].concat());
            assert!(coloured.exit == 0 && coloured.stdout.contains("\u{1b}["), "{args:?}");
        }
    }
    let ran = sandbox.run(&["--color=always", "inspect", "--no-such-option"]);
    assert!(ran.exit == 2 && !ran.stderr.contains("u{1b}"), "{}", ran.stderr);
}

#[test]
fn manual_pages_go_where_the_output_option_says() {
    let sandbox = Sandbox::empty();
    let ran = sandbox.run(&["man", "-o", "pages"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    for page in ["inspect", "checkpoint-list", "train-random-forest", "bench-formats"] {
        assert!(sandbox.path(&format!("pages/apr-{page}.1")).is_file(), "{page}");
    }
}

#[test]
fn check_says_each_finding_once() {
    let sandbox = Sandbox::empty();
    sandbox.write("bad.safetensors", &[9, 0, 0, 0, 0, 0, 0, 0, b'{']);
    let ran = sandbox.run(&["check", "bad.safetensors"]);
    assert_eq!(ran.stdout, format!("refused bad.safetensors: {}\n", code(&ran.stderr)));
    let sentence = ran.stderr.lines().next().unwrap().split_once(": ").unwrap().1;
    assert_eq!(ran.stderr.matches(sentence).count(), 1, "{}", ran.stderr);
}

/// The code in the brackets of an error.
#[test]
fn advice_is_about_what_happened() {
    let sandbox = Sandbox::with_models();
    let to = ["-o", "x.sealed", "--recipient", "buyer.key.pub"];
    let train = ["--data", "rows.csv", "--target", "1", "-o", "x.apr"];
    for (args, part) in [
        ([&["encrypt", "model.safetensor"][..], &to].concat(), "did you mean model.safetensors?"),
        (["predict", "model.apr", "-i", "model.apr"].to_vec(), "name a table here"),
        ([&["train"][..], &train].concat(), "name the algorithm first"),
        (
            [&["train", "random-forest", "--trees", "0"][..], &train].concat(),
            "'--trees <N>': a number of at least 1",
        ),
        (
            [&["train", "random-forest", "--trees", "99999999999"][..], &train].concat(),
            "1 to 1,000,000 are possible",
        ),
        (["predict", "tiny_llama.gguf", "-i", "rows.csv"].to_vec(), "a language model runs in llama.cpp"),
        (["man", "train"].to_vec(), "`apr train --help`"),
        (["man", "rows.csv"].to_vec(), "exists and is not a folder"),
        (["embed", "model.apr", "-o", "x", "--name", "test"].to_vec(), "cargo or Rust uses this name itself"),
        (["embed", "model.apr", "-o", "x", "--name", "1"].to_vec(), "beginning with a letter"),
        (["batch", "--from", "nothere", "--to", "x", "--", "check", "{in}"].to_vec(), "check the path"),
    ] {
        let ran = sandbox.run(&args);
        assert!(ran.exit != 0 && ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(sandbox.run(&["explain", "ERROR[ST-OFFSETS]"]).exit, 0);
    let knn = ["train", "knn", "--neighbors", "1"];
    let ran = sandbox.run(&[&knn[..], &train].concat());
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn a_link_without_a_target_is_told_as_one() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("in")).unwrap();
    sandbox.write("in/a.safetensors", b"");
    std::os::unix::fs::symlink("nowhere", sandbox.path("in/b.safetensors")).unwrap();
    let ran = sandbox.run(&["convert", "in", "out", "--recursive", "--format", "gguf"]);
    assert!(ran.exit == 5 && ran.stderr.contains("it links to nowhere"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--exclude of `apr batch`"), "{}", ran.stderr);
}

fn code(stderr: &str) -> &str {
    stderr.split_once('[').and_then(|(_, rest)| rest.split_once(']')).unwrap().0
}
