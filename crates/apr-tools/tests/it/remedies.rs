//! Remedies: a command that an error names is run on the input that caused the error.

use alloc::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sandbox::{Sandbox, raw};

/// A command that a remedy names.
struct Case {
    /// Of the error.
    code: &'static str,
    /// The arguments that cause it; none of an error that only callers of the library can cause.
    fails: &'static str,
    /// The command in the remedy, with its placeholders.
    named: &'static str,
    /// The arguments that the placeholders make of it.
    runs: &'static str,
}

const fn case(code: &'static str, fails: &'static str, named: &'static str, runs: &'static str) -> Case {
    Case { code, fails, named, runs }
}

const COMPAT: &str = "apr convert --compat IN OUT";
const REPAIR: &str = "apr convert IN OUT --repair";

const CASES: &[Case] = &[
    case(
        "st-duplicate-tensor",
        "tensors quirk.safetensors",
        COMPAT,
        "convert --compat quirk.safetensors a.safetensors",
    ),
    case(
        "st-strict-whitespace",
        "tensors space.safetensors",
        COMPAT,
        "convert --compat space.safetensors b.safetensors",
    ),
    case(
        "st-strict-array",
        "tensors array.safetensors",
        COMPAT,
        "convert --compat array.safetensors c.safetensors",
    ),
    case(
        "st-strict-dtype",
        "tensors dtype.safetensors",
        COMPAT,
        "convert --compat dtype.safetensors d.safetensors",
    ),
    case(
        "st-duplicate-key",
        "tensors keys.safetensors",
        COMPAT,
        "convert --compat keys.safetensors e.safetensors",
    ),
    case(
        "st-entry-type",
        "tensors number.safetensors",
        REPAIR,
        "convert number.safetensors f.safetensors --repair",
    ),
    case(
        "st-json-trailing",
        "check zeros.safetensors",
        REPAIR,
        "convert zeros.safetensors g.safetensors --repair",
    ),
    case(
        "st-file-length",
        "inspect tail.safetensors",
        REPAIR,
        "convert tail.safetensors h.safetensors --repair",
    ),
    case(
        "st-misaligned",
        "",
        "apr convert IN OUT --align 64",
        "convert model.safetensors i.safetensors --align 64",
    ),
    case(
        "st-header-room",
        "",
        "apr convert IN OUT --set KEY=VALUE --header-room 4096",
        "convert model.safetensors j.safetensors --set author=me --header-room 4096",
    ),
    case(
        "st-shard-no-map",
        "tensors no-map",
        "apr shard --index no-map --force",
        "shard --index no-map --force",
    ),
    case(
        "st-shard-duplicate",
        "tensors twice",
        "apr shard --index twice --force",
        "shard --index twice --force",
    ),
    case(
        "st-shard-size",
        "convert size k.gguf",
        "apr shard --index size --force",
        "shard --index size --force",
    ),
    case(
        "cli-shards",
        "convert stale l.safetensors",
        "apr shard --index stale --force",
        "shard --index stale --force",
    ),
    case("sm-shard", "", "apr shard --index FOLDER --force", "shard --index ghost --force"),
    case("sm-no-model", "tensors no-index", "apr shard --index no-index", "shard --index no-index"),
    case(
        "ac-encrypted",
        "convert sold.apr m.apr",
        "apr decrypt FILE -o OUT",
        "decrypt sold.apr -o m.apr --identity buyer.key --signer maker.key.pub",
    ),
    case(
        "ac-signed",
        "predict made.apr -i rows.csv",
        "apr check FILE --signer KEY",
        "check made.apr --signer maker.key.pub",
    ),
    case(
        "ac-compressed",
        "",
        "apr train --compression none",
        "train linear-regression --compression none --data table.csv --target price -o n.apr",
    ),
    case("ac-v2-compressed", "", "apr convert FILE OUT.apr", "convert tensors.apr o.apr"),
    case(
        "cy-key-kind",
        "encrypt model.apr -o p.apr --recipient maker.key.pub",
        "apr keygen encrypt",
        "keygen encrypt -o new.key",
    ),
    case("cy-key-kind", "", "apr keygen sign", "keygen sign -o new-sign.key"),
    case("cy-no-key", "", "apr keygen", "keygen encrypt -o other.key"),
    case("cli-secret-argument", "", "apr keygen", "keygen sign -o another.key"),
    case("cli-unknown-code", "explain st-nothing", "apr explain", "explain"),
    case(
        "cli-not-published",
        "",
        "apr embed MODEL -o DIR --crates CHECKOUT",
        "embed model.apr -o program --crates checkout",
    ),
    case(
        "ft-tensor-unsupported",
        "convert meta.pt q.safetensors",
        "apr convert --exclude NAME",
        "convert --exclude m meta.pt q.safetensors",
    ),
    case("cli-tasks-missing", "finish job.json", "apr run-task PLAN all", "run-task job.json all"),
    case("cli-tasks-missing", "", "apr finish", "finish job.json"),
    case(
        "sm-missing-manifest",
        "",
        "apr check --allow-missing-manifest",
        "check --allow-missing-manifest model.safetensors",
    ),
    case(
        "cli-plan",
        "",
        "apr plan",
        "plan -o job2.json --from model.safetensors --to out2 -- convert {in} {out}.safetensors",
    ),
    case("cli-job-output", "", "apr abort PLAN", "abort job2.json"),
];

/// Commands that describe a file of any kind, valid or not; the test over the vectors runs them on files that are refused.
const DESCRIBING: [&str; 12] = [
    "apr scan FILE",
    "apr tensors FILE",
    "apr inspect FILE",
    "apr inspect MODEL",
    "apr inspect",
    "apr inspect --verify FILE",
    "apr inspect --verify MODEL",
    "apr inspect FILE --identity KEYFILE",
    "apr check",
    "apr check FILE",
    "apr check --compat",
    "apr check FOLDER",
];

/// Codes whose command is not run here, with the reason.
const EXEMPT: [(&str, &str); 21] = [
    ("st-header-too-large", "needs names of 100 MB"),
    ("ac-second-generation", "whether `convert` makes a model depends on the names of the tensors"),
    ("cy-minisign-password", "needs a file that minisign locked, and a terminal for its password"),
    ("mf-limit", "needs millions of files"),
    ("mf-symlink", "needs a link; run below"),
    ("mf-not-regular", "needs a pipe; its command is that of mf-symlink"),
    ("sm-no-metric", "its command is run in the tests of checkpoints"),
    ("am-continuous-target", "run in the tests of training"),
    ("am-no-such-output", "names the command that asks for what the model predicts"),
    ("mo-no-model", "names the command that made the file"),
    ("mo-model-dtype", "names the command that made the file"),
    ("hg-prefix", "run in the tests of language models"),
    ("rm-object-limit", "needs an object store"),
    ("ft-callable", "run below: the exit code is that of a dangerous file"),
    ("ft-duplicate-name", "needs a nested object"),
    ("aw-byte-order", "an error of the npm package; its command is that of gg-byte-order"),
    ("cli-inference-key", "needs a server; run in the tests of private predictions"),
    ("cli-already-quantized", "needs a checkpoint of codes and scales; its help is tested with them"),
    ("cli-no-tensors", "run in the tests of conversions"),
    ("cli-remote", "needs a server; run in the tests of copies"),
    ("cli-demo", "a defect of the program"),
];

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::with_models();
    let a = r#""a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}"#;
    for (name, header, data) in [
        ("space", format!(" {{{a}}}"), &[1, 2][..]),
        ("array", r#"{"a":["U8",[2],[0,2]]}"#.to_owned(), &[1, 2]),
        ("dtype", r#"{"a":{"dtype":{"U8":null},"shape":[2],"data_offsets":[0,2]}}"#.to_owned(), &[1, 2]),
        ("keys", format!(r#"{{"__metadata__":{{"k":"1","k":"2"}},{a}}}"#), &[1, 2]),
        ("number", format!(r#"{{"__metadata__":{{"steps":5,"lr":"1e-3"}},{a}}}"#), &[1, 2]),
        ("zeros", format!("{{{a}}}\0\0\0"), &[1, 2]),
        ("tail", format!("{{{a}}}"), &[1, 2, 3]),
    ] {
        sandbox.write(&format!("{name}.safetensors"), &raw(&header, data));
    }
    let index = String::from_utf8(sandbox.read("sharded/model.safetensors.index.json")).unwrap();
    for (name, text) in [
        ("stale", Some(index.replace("-of-0000", "-of-0009"))),
        (
            "ghost",
            Some(index.replace(
                r#""weight_map": {"#,
                r#""weight_map": { "mtp": "model-00001-of-00002.safetensors","#,
            )),
        ),
        ("no-map", Some("{}".to_owned())),
        ("twice", Some(format!(r#"{{"metadata":{{}},"metadata":{{}},{}"#, &index[1..]))),
        (
            "size",
            Some(index.replace(r#""total_size": "#, r#""total_size": "#.trim_end()).replacen(
                r#""total_size":"#,
                r#""total_size": 0.5, "was":"#,
                1,
            )),
        ),
        ("no-index", None),
    ] {
        fs::create_dir(sandbox.path(name)).unwrap();
        for entry in fs::read_dir(sandbox.path("sharded")).unwrap().map(Result::unwrap) {
            let file = entry.file_name().into_string().unwrap();
            if !file.ends_with(".json") {
                sandbox.write(&format!("{name}/{file}"), &fs::read(entry.path()).unwrap());
            }
        }
        if let Some(text) = text {
            sandbox.write(&format!("{name}/model.safetensors.index.json"), text.as_bytes());
        }
    }
    sandbox.write("meta.pt", &fs::read(vectors().join("import/torch/meta.pt")).unwrap());
    let plan = "plan -o job.json --from model.safetensors --to out -- convert {in} {out}.safetensors";
    assert_eq!(sandbox.run(&words(plan)).exit, 0);
    sandbox
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors")
}

#[test]
fn a_named_command_works_on_the_input_that_was_refused() {
    let sandbox = sandbox();
    for Case { code, fails, named, runs } in CASES {
        if !fails.is_empty() {
            let refused = sandbox.run(&words(fails));
            assert!(refused.stderr.contains(&format!("[{code}]")), "{fails}\n{}", refused.stderr);
            assert!(refused.stderr.contains(&format!("`{named}`")), "{code}: {named}\n{}", refused.stderr);
        }
        // What is run is what the remedy names.
        let command = named.split_whitespace().nth(1).unwrap();
        assert_eq!(runs.split_whitespace().next(), Some(command), "{code}");
        for option in named.split_whitespace().filter(|word| word.starts_with('-')) {
            assert!(words(runs).contains(&option), "{code}: {option}");
        }
        let ran = sandbox.run(&words(runs));
        assert_eq!(ran.exit, 0, "{code}: {runs}\n{}", ran.stderr);
    }
    for sound in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        assert_eq!(sandbox.run(&["check", &format!("{sound}.safetensors")]).exit, 0, "{sound}");
    }
    for folder in ["stale", "ghost", "no-map", "twice", "size", "no-index"] {
        let ran = sandbox.run(&["diff", "sharded", folder]);
        assert_eq!(ran.exit, 0, "{folder}\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn every_remedy_with_a_command_is_tested() {
    let sandbox = Sandbox::empty();
    let (_, explained) = sandbox.json(&["explain"]);
    let mut missing = Vec::new();
    let mut codes = BTreeSet::new();
    for entry in explained["codes"].as_array().unwrap() {
        let (code, help) = (entry["code"].as_str().unwrap(), entry["help"].as_str().unwrap());
        codes.insert(code);
        let exempt = EXEMPT.iter().any(|(known, _)| *known == code);
        let tested = |named: &String| {
            DESCRIBING.contains(&named.as_str())
                || CASES.iter().any(|case| case.code == code && named.starts_with(case.named))
                // With IN and OUT, and the folder that was named.
                || CASES.iter().any(|case| case.code == code && case.named.starts_with(named.as_str()))
                || CASES.iter().any(|case| case.code == code && case.named.starts_with("apr shard --index"))
        };
        let named: Vec<String> = commands(help).collect();
        assert!(!exempt || !named.is_empty(), "{code} names no command and needs no exemption");
        missing.extend(
            named
                .into_iter()
                .filter(|named| !exempt && !tested(named))
                .map(|named| format!("{code}: {named}")),
        );
    }
    assert!(missing.is_empty(), "remedies that no test runs: {missing:#?}");
    let stale: Vec<_> = EXEMPT
        .iter()
        .map(|(code, _)| *code)
        .chain(CASES.iter().map(|case| case.code))
        .filter(|code| !codes.contains(code) && !code.starts_with("rm-"))
        .collect();
    assert!(stale.is_empty(), "{stale:?}");
}

/// Commands in backticks; pages of help are tested with the help.
fn commands(help: &str) -> impl Iterator<Item = String> {
    let quoted = help.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.starts_with("apr ") && !text.ends_with("--help")).map(str::to_owned)
}

#[test]
fn refusals_of_all_vectors_name_commands_that_work() {
    let sandbox = Sandbox::empty();
    let mut folders = ["apr", "gguf", "import", "safetensors"].map(|name| vectors().join(name)).to_vec();
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let is_json = path.extension().is_some_and(|ending| ending == "json");
            match entry.metadata().unwrap() {
                found if found.is_dir() => folders.push(path),
                found if found.len() > 300_000 || is_json => {}
                _ => count += tried(&sandbox, path.to_str().unwrap()),
            }
        }
    }
    assert!(count >= 90, "{count}");
}

/// Runs what the refusal of a file names; returns how many commands.
fn tried(sandbox: &Sandbox, path: &str) -> usize {
    let (_, report) = sandbox.json(&["tensors", path]);
    let Some(help) = report["error"]["help"].as_str() else { return 0 };
    let code = report["error"]["code"].as_str().unwrap();
    let ending = Path::new(path).extension().unwrap_or_default().to_str().unwrap();
    let mut count = 0;
    for named in commands(help) {
        // These need a key, a name, or another file.
        if ["apr decrypt", "apr open", "apr predict", "apr serve", "apr convert --object", "apr train"]
            .iter()
            .any(|other| named.starts_with(other))
        {
            continue;
        }
        let out = format!("out.{ending}");
        let mut line: Vec<&str> = named
            .split_whitespace()
            .skip(1)
            .map(|word| match word {
                "FILE" | "IN" | "FOLDER" => path,
                "OUT" => &out,
                "OUT.safetensors" => "out.safetensors",
                "OUT.apr" => "out.apr",
                word => word,
            })
            .collect();
        if !line.contains(&path) {
            line.push(path);
        }
        if line[0] == "convert" {
            line.push("--force");
        }
        let mut ran = sandbox.run(&line);
        // The refusal of a file without tensors names an option, which works.
        if ran.stderr.contains("[cli-no-tensors]") && ran.stderr.contains("--allow-empty") {
            line.push("--allow-empty");
            ran = sandbox.run(&line);
        }
        let promised: &[i32] = match line[0] {
            "convert" | "shard" => &[0],
            // A verdict about the same file.
            _ => &[0, 3, 4],
        };
        assert!(promised.contains(&ran.exit), "{code} of {path}: {line:?}: {}\n{}", ran.exit, ran.stderr);
        count += 1;
    }
    count
}

#[test]
fn a_pickle_that_runs_code_is_scanned() {
    let sandbox = Sandbox::empty();
    sandbox
        .write("evil.joblib", &fs::read(vectors().join("import/hostile/numpy/zlib_payload.joblib")).unwrap());
    let ran = sandbox.run(&["tensors", "evil.joblib"]);
    assert!(ran.stderr.contains("[ft-callable]") && ran.stderr.contains("`apr scan`"), "{}", ran.stderr);
    let ran = sandbox.run(&["scan", "evil.joblib"]);
    assert!(ran.exit == 4 && ran.stdout.starts_with("dangerous"), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn a_link_in_a_signed_folder_is_left_out() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("folder")).unwrap();
    sandbox.write("folder/a", b"a");
    std::os::unix::fs::symlink("a", sandbox.path("folder/link")).unwrap();
    assert_eq!(sandbox.run(&["keygen", "sign-p256", "-o", "p256.key"]).exit, 0);
    let ran = sandbox.run(&["sign", "folder", "--key", "p256.key"]);
    assert!(
        ran.stderr.contains("[mf-symlink]") && ran.stderr.contains("`apr sign --ignore NAME`"),
        "{}",
        ran.stderr
    );
    let ran = sandbox.run(&["sign", "folder", "--key", "p256.key", "--ignore", "link"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
}
