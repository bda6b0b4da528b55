//! Every help page has examples, and they run.

use crate::sandbox::Sandbox;
#[cfg(unix)]
use crate::serving::Serving;

const COMMANDS: [&str; 44] = [
    "inspect",
    "tensors",
    "dump",
    "check",
    "checkpoint",
    "scan",
    "diff",
    "compatible",
    "convert",
    "export",
    "quantize",
    "get",
    "put",
    "cache",
    "shard",
    "unshard",
    "batch",
    "plan",
    "run-task",
    "status",
    "finish",
    "abort",
    "train",
    "predict",
    "score",
    "distill",
    "bench",
    "embed",
    "size",
    "serve",
    "keygen",
    "key",
    "encrypt",
    "decrypt",
    "seal",
    "open",
    "rekey",
    "license",
    "sign",
    "verify",
    "demo",
    "explain",
    "completions",
    "man",
];

/// The commands below `Examples:` of a help page.
pub(crate) fn examples(help: &str) -> Vec<String> {
    let after = help.split_once("\nExamples:\n").map_or("", |(_, after)| after);
    after.lines().take_while(|line| line.starts_with("  apr ")).map(|line| line.trim().to_owned()).collect()
}

#[cfg(unix)]
/// A server of encrypted requests.
const PRIVATE: [&str; 4] = ["serve", "made.apr", "--any-signer", "--inference-key=owner.key"];

#[test]
fn examples_of_all_help_pages_run() {
    let algorithms = algorithms();
    assert!(algorithms.len() >= 10, "{algorithms:?}");
    let pages = COMMANDS.iter().map(|command| vec![*command, "--help"]).chain([vec!["--help"]]);
    let nested = [
        ["bench", "formats"],
        ["cache", "list"],
        ["cache", "clear"],
        ["key", "show"],
        ["license", "show"],
        ["license", "check"],
        ["license", "set"],
    ];
    let nested = nested.iter().map(|[command, sub]| vec![*command, *sub, "--help"]);
    for page in pages.chain(algorithms.iter().map(|name| vec!["train", name, "--help"])).chain(nested) {
        let sandbox = Sandbox::with_models();
        crate::checkpoints::add_run(&sandbox);
        if ["predict", "serve", "sign"].contains(&page[0]) {
            for line in [
                "apr keygen inference -o owner.key",
                "apr sign owner.key.pub --key maker.key --comment 'apr inference key'",
            ] {
                assert_eq!(sandbox.shell(line).exit, 0);
            }
            if page[0] == "sign" {
                std::fs::remove_file(sandbox.path("owner.key.pub.minisig")).unwrap();
            }
        }
        if page[0] == "compatible" {
            sandbox.write("new.apr", &sandbox.read("model.apr"));
        }
        if ["run-task", "status", "finish", "abort"].contains(&page[0]) {
            let plan = "apr plan -o job.json --from model.apr --to out -- check {in}";
            assert_eq!(sandbox.shell(plan).exit, 0);
            if page[0] != "run-task" {
                assert_eq!(sandbox.shell("apr run-task job.json all").exit, 0);
            }
        }
        let help = sandbox.run(&page).stdout;
        let examples = examples(&help);
        let enough = if page.len() == 3 { 1 } else { 2 };
        assert!(examples.len() >= enough, "{page:?} has {} examples", examples.len());
        for example in examples {
            if page[0] == "get" || page[0] == "put" {
                // They need the hub: `get.rs` has one, and runs them. `cargo xtask cloud` has object stores.
                continue;
            }
            if page[0] == "serve" {
                // It runs until it is told to stop, and any port will do.
                let words = example.split_whitespace().skip(1).map(|word| word.replace(":8080", ":0"));
                let words: Vec<String> = words.collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                assert_eq!(Serving::start(&sandbox, &words).get("/health").0, 200, "{example}");
                continue;
            }
            let mut example = example;
            let server = example.contains("--private").then(|| Serving::start(&sandbox, &PRIVATE));
            if let Some(server) = &server {
                example = example.replace("http://127.0.0.1:8080", &server.url());
            }
            let ran = sandbox.shell(&example);
            assert_eq!(ran.exit, 0, "{example}\n{}{}", ran.stdout, ran.stderr);
        }
    }
}

/// The words listed below a heading of a help page.
fn listed(help: &str, heading: &str) -> Vec<String> {
    let listed = help.split_once(heading).unwrap().1.lines();
    listed
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .filter(|name| name != "help")
        .collect()
}

fn algorithms() -> Vec<String> {
    listed(&Sandbox::empty().run(&["train", "--help"]).stdout, "Algorithms:\n")
}

#[test]
fn all_commands_are_known_here() {
    assert_eq!(listed(&Sandbox::empty().run(&["--help"]).stdout, "Commands:\n"), COMMANDS);
}
