//! Every help page has examples, and they run.

use std::process::{Command, Stdio};

use crate::sandbox::Sandbox;

const COMMANDS: [&str; 11] = [
    "inspect",
    "tensors",
    "check",
    "diff",
    "convert",
    "shard",
    "unshard",
    "demo",
    "explain",
    "completions",
    "man",
];

/// The commands below `Examples:` of a help page.
fn examples(help: &str) -> Vec<String> {
    let after = help.split_once("\nExamples:\n").map_or("", |(_, after)| after);
    after.lines().take_while(|line| line.starts_with("  apr ")).map(|line| line.trim().to_owned()).collect()
}

#[cfg(unix)]
#[test]
fn examples_of_all_help_pages_run() {
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_apr")).parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let pages = COMMANDS.iter().map(|command| vec![*command, "--help"]).chain([vec!["--help"]]);
    for page in pages {
        let sandbox = Sandbox::with_models();
        let help = sandbox.run(&page).stdout;
        let examples = examples(&help);
        assert!(examples.len() >= 2, "{page:?} has {} examples", examples.len());
        for example in examples {
            let output = Command::new("sh")
                .args(["-c", &example])
                .current_dir(sandbox.path("."))
                .env("PATH", format!("{}:{path}", bin.display()))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{example}\n{stderr}");
        }
    }
}

#[test]
fn all_commands_are_known_here() {
    let help = Sandbox::empty().run(&["--help"]).stdout;
    let listed = help.split_once("Commands:\n").unwrap().1.lines();
    let listed: Vec<_> = listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap())
        .filter(|&name| name != "help")
        .collect();
    assert_eq!(listed, COMMANDS);
}
