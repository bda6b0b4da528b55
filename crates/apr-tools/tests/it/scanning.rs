//! `apr scan`: verdicts of all vectors, exit codes, baselines, names that are trusted, SARIF.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sandbox::Sandbox;

/// `os.system(":")`.
pub(crate) const PAYLOAD: &[u8] = b"\x80\x02cos\nsystem\nX\x01\0\0\0:\x85R.";
/// An object of a class that is not known.
pub(crate) const UNKNOWN: &[u8] = b"\x80\x02cmy_project.config\nCfg\n)\x81.";
/// A dict.
pub(crate) const PLAIN: &[u8] = b"\x80\x02}X\x01\0\0\0aK\x01s.";

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/import")
}

fn sidecars(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sidecars(&path, found);
        } else if path.to_str().unwrap().ends_with(".vector.json") {
            found.push(path);
        }
    }
}

fn generated(facts: &Value) -> Vec<u8> {
    let piece = |piece: &Value| {
        let hex = piece[0].as_str().unwrap();
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        bytes.repeat(piece[1].as_u64().unwrap() as usize)
    };
    facts["generate"].as_array().unwrap().iter().flat_map(piece).collect()
}

#[test]
fn every_vector_gets_one_of_its_verdicts() {
    let sandbox = Sandbox::empty();
    let (exit, report) = sandbox.json(&["scan", vectors().to_str().unwrap()]);
    assert_eq!((exit, &report["schema"], &report["verdict"]), (4, &"apr.scan/1".into(), &"dangerous".into()));
    let rows = report["files"].as_array().unwrap();
    assert_eq!(report["unread"], Value::Array(Vec::new()));
    let (mut n_files, mut missed, mut false_alarms, mut names) = (0, Vec::new(), Vec::new(), Vec::new());
    let mut found = Vec::new();
    sidecars(&vectors(), &mut found);
    for sidecar in found {
        let facts: Value = serde_json::from_slice(&fs::read(&sidecar).unwrap()).unwrap();
        let path = PathBuf::from(sidecar.to_str().unwrap().strip_suffix(".vector.json").unwrap());
        let row = if path.is_file() {
            rows.iter().find(|row| row["path"].as_str() == path.to_str()).unwrap().clone()
        } else if path.is_dir() {
            let (_, report) = sandbox.json(&["scan", path.to_str().unwrap()]);
            report
        } else {
            sandbox.write("generated", &generated(&facts));
            sandbox.json(&["scan", "generated"]).1["files"][0].clone()
        };
        n_files += 1;
        let verdict = row["verdict"].as_str().unwrap();
        let allowed: Vec<&str> =
            facts["scan"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let may_be_safe = allowed.contains(&"safe") || allowed.contains(&"not-applicable");
        if verdict == "safe" && !may_be_safe {
            missed.push(path.display().to_string());
        } else if verdict != "safe" && !allowed.contains(&verdict) {
            false_alarms.push(format!("{}: {verdict}", path.display()));
        }
        for global in facts["globals"].as_array().into_iter().flatten() {
            let name = format!("{}.{}", global[0].as_str().unwrap(), global[1].as_str().unwrap());
            let of_pickles = row["pickles"].as_array().unwrap().iter().map(|pickle| &pickle["names"]);
            if !of_pickles.into_iter().any(|names| names.as_array().unwrap().contains(&name.as_str().into()))
            {
                names.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(n_files >= 335, "{n_files}");
    assert!(missed.is_empty(), "missed {missed:#?}");
    assert!(false_alarms.is_empty(), "false alarms {false_alarms:#?}");
    assert!(names.is_empty(), "not named {names:#?}");
    // The sidecars are files of a folder, too.
    let json = rows.iter().filter(|row| row["path"].as_str().unwrap().ends_with(".vector.json"));
    assert!(json.into_iter().all(|row| row["verdict"] == "safe"));
}

#[test]
fn exit_codes_are_those_of_the_worst_file() {
    let sandbox = Sandbox::empty();
    fs::create_dir_all(sandbox.path("models/.hidden")).unwrap();
    sandbox.write("models/plain.pkl", PLAIN);
    sandbox.write("models/README.md", b"# A model\n");
    assert_eq!(sandbox.run(&["scan", "models"]).exit, 0);
    let ran = sandbox.run(&["scan", "models", "missing"]);
    assert!(
        ran.exit == 5 && ran.stderr.contains("1 not read") && !ran.stderr.contains("all safe"),
        "{ran:?}"
    );
    sandbox.write("models/broken.safetensors", &[0xff; 64]);
    assert_eq!(sandbox.run(&["scan", "models"]).exit, 4);
    fs::remove_file(sandbox.path("models/broken.safetensors")).unwrap();
    sandbox.write("models/.hidden/unknown", UNKNOWN);
    assert_eq!(
        sandbox.run(&["scan", "models", "missing"]).exit,
        4,
        "a finding counts more than what is missing"
    );
    let (exit, report) = sandbox.json(&["scan", "models", "missing"]);
    assert_eq!((exit, &report["verdict"]), (4, &"suspicious".into()));
    assert_eq!(report["files"].as_array().unwrap().len(), 3, "what can be read is reported");
    assert_eq!(report["unread"][0]["file"], "missing");
    sandbox.write("models/cut.pkl", &PLAIN[..8]);
    assert_eq!(sandbox.json(&["scan", "models"]).1["verdict"], "malformed");
    sandbox.write("models/evil.txt", PAYLOAD);
    let (exit, report) = sandbox.json(&["scan", "models"]);
    assert_eq!((exit, &report["verdict"]), (4, &"dangerous".into()));
    let row =
        report["files"].as_array().unwrap().iter().find(|row| row["path"] == "models/evil.txt").unwrap();
    assert_eq!((&row["format"], &row["bytes"]), (&"pickle".into(), &PAYLOAD.len().into()));
    let finding = &row["findings"][0];
    assert_eq!(
        (&finding["name"], &finding["offset"], &finding["opcode"], &finding["code"]),
        (&"os.system".into(), &2.into(), &"GLOBAL".into(), &"sc-dangerous-name".into())
    );
    assert_eq!(sandbox.run(&["explain", "sc-dangerous-name"]).exit, 0);
}

/// An array file of NumPy of this type.
fn array(kind: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (1,), }}");
    [b"\x93NUMPY\x01\0v\0".as_slice(), format!("{header:<117}\n").as_bytes(), data].concat()
}

#[test]
fn check_scans_files_of_other_programs() {
    let sandbox = Sandbox::empty();
    sandbox.write("sound.npy", &array("<f4", &[0; 4]));
    sandbox.write("objects.npy", &array("|O", PAYLOAD));
    sandbox.write("values.npy", &array("|O", b"N."));
    sandbox.write("three.npy", &array("<f3", &[0; 3]));
    for (name, exit, runs_code) in [
        ("sound.npy", 0, None),
        ("objects.npy", 4, Some("dangerous")),
        ("values.npy", 3, None),
        ("three.npy", 3, None),
    ] {
        let (found, report) = sandbox.json(&["check", name]);
        assert_eq!((found, report["ok"] == true), (exit, exit == 0), "{name}: {report}");
        assert_eq!(report["runs_code"][0]["verdict"].as_str(), runs_code, "{name}");
    }
    let ran = sandbox.run(&["check", "objects.npy"]);
    assert!(ran.stdout.contains("objects.npy") && ran.stdout.contains("runs commands"), "{ran:?}");
    assert!(!ran.stdout.contains("ok objects.npy"), "{ran:?}");
}

#[test]
fn a_program_under_the_name_of_a_model_is_suspicious() {
    let sandbox = Sandbox::empty();
    let mut gguf = [b"MZ".as_slice(), &[0; 58], &[64, 0, 0, 0], b"PE\0\0"].concat();
    sandbox.write("model.gguf", &gguf);
    assert_eq!(sandbox.json(&["scan", "model.gguf"]).1["verdict"], "suspicious");
    gguf = b"%PDF-1.7\n".to_vec();
    sandbox.write("model.gguf", &gguf);
    let (exit, report) = sandbox.json(&["scan", "model.gguf"]);
    let message = &report["files"][0]["findings"][0]["message"];
    assert_eq!(
        (exit, message.as_str()),
        (4, Some("not opened: the content is of no format that the name stands for"))
    );
}

#[test]
fn standard_input_is_scanned_whatever_it_is() {
    let sandbox = Sandbox::empty();
    for (bytes, exit) in [(PLAIN, 0), (PAYLOAD, 4), (b"".as_slice(), 0), (b"7z\xbc\xaf\x27\x1c\0\x04", 4)] {
        assert_eq!(sandbox.run_with_input(&["scan", "-"], bytes).exit, exit, "{}", bytes.escape_ascii());
    }
}

#[test]
fn a_baseline_knows_files_by_their_bytes() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("models")).unwrap();
    sandbox.write("models/a.pkl", UNKNOWN);
    let ran = sandbox.run(&["scan", "models", "--json"]);
    assert_eq!(ran.exit, 4);
    sandbox.write("baseline.json", ran.stdout.as_bytes());
    let scan = ["scan", "models", "--baseline", "baseline.json"];
    assert_eq!(sandbox.run(&scan).exit, 0);
    let (_, report) = sandbox.json(&scan);
    assert_eq!((&report["verdict"], &report["files"][0]["verdict"]), (&"safe".into(), &"suspicious".into()));
    assert_eq!(report["files"][0]["known"], true);
    // The same bytes elsewhere, and other bytes in the same place.
    sandbox.write("models/b.pkl", UNKNOWN);
    assert_eq!(sandbox.run(&scan).exit, 4);
    fs::remove_file(sandbox.path("models/b.pkl")).unwrap();
    sandbox.write("models/a.pkl", PAYLOAD);
    assert_eq!(sandbox.run(&scan).exit, 4);
    sandbox.write("baseline.json", b"{\"schema\":\"apr.check/2\",\"files\":[]}");
    assert_eq!(sandbox.run(&scan).exit, 2);
}

#[test]
fn names_are_trusted_exactly() {
    let sandbox = Sandbox::empty();
    sandbox.write("a.pkl", UNKNOWN);
    assert_eq!(sandbox.run(&["scan", "a.pkl", "--allow", "my_project.config.Cfg"]).exit, 0);
    for other in ["my_project.config.Cf", "my_project.config", "config.Cfg"] {
        assert_eq!(sandbox.run(&["scan", "a.pkl", "--allow", other]).exit, 4, "{other}");
    }
    assert_eq!(sandbox.run(&["scan", "a.pkl", "--allow", "Cfg"]).exit, 2);
}

#[test]
fn limits_are_options() {
    let sandbox = Sandbox::empty();
    sandbox.write("a.pkl", PLAIN);
    assert_eq!(sandbox.json(&["scan", "a.pkl", "--max-opcodes", "3"]).1["verdict"], "malformed");
    sandbox.write(
        "many.pkl",
        &b"\x80\x02".iter().copied().chain(UNKNOWN[2..UNKNOWN.len() - 1].repeat(9)).collect::<Vec<_>>(),
    );
    let (_, report) = sandbox.json(&["scan", "many.pkl", "--max-findings", "2"]);
    assert_eq!(
        (report["files"][0]["findings"].as_array().unwrap().len(), report["files"][0]["dropped"].is_u64()),
        (2, true)
    );
    let bomb = vectors().join("joblib/dict_zlib.joblib");
    let bomb = bomb.to_str().unwrap();
    assert_eq!(sandbox.run(&["scan", bomb]).exit, 0);
    assert_eq!(sandbox.run(&["scan", bomb, "--max-inflated", "100"]).exit, 4);
    assert_eq!(sandbox.run(&["scan", bomb, "--max-depth", "0"]).exit, 4);
}

#[test]
fn code_beside_the_model_is_named() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("repo")).unwrap();
    sandbox.write("repo/tokenizer_config.json", b"{\"chat_template\": \"{{ messages }}\"}");
    sandbox.write("repo/chat_template.jinja", b"{% for m in messages %}{{ m.content }}{% endfor %}");
    sandbox.write("repo/__init__.py", b"");
    let (exit, report) = sandbox.json(&["scan", "repo"]);
    assert_eq!((exit, &report["verdict"]), (0, &"safe".into()));
    let codes = |report: &Value| -> Vec<String> {
        let files = report["files"].as_array().unwrap().iter();
        files
            .flat_map(|file| file["findings"].as_array().unwrap())
            .map(|finding| finding["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(codes(&report), ["sc-chat-template", "sc-chat-template"], "named, and safe");
    sandbox.write("repo/config.json", b"{\"\\u0061uto_map\": {\"AutoModel\": \"modeling.Net\"}}");
    sandbox.write("repo/modeling.py", b"class Net: pass\n");
    sandbox.write("repo/chat_template.jinja", b"{{ ''.__class__ }}");
    let (exit, report) = sandbox.json(&["scan", "repo"]);
    assert_eq!(exit, 4);
    assert_eq!(codes(&report), ["sc-template-code", "sc-remote-code", "sc-python-file", "sc-chat-template"]);
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_not_followed_and_not_safe() {
    let sandbox = Sandbox::empty();
    fs::create_dir(sandbox.path("repo")).unwrap();
    fs::create_dir(sandbox.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", sandbox.path("repo/link")).unwrap();
    let (exit, report) = sandbox.json(&["scan", "repo"]);
    assert_eq!((exit, &report["files"][0]["findings"][0]["code"]), (4, &"sc-unopened".into()));
    // A link to a file is that file.
    fs::remove_file(sandbox.path("repo/link")).unwrap();
    sandbox.write("elsewhere/a", PAYLOAD);
    std::os::unix::fs::symlink("../elsewhere/a", sandbox.path("repo/link")).unwrap();
    assert_eq!(sandbox.json(&["scan", "repo"]).1["verdict"], "dangerous");
}

#[test]
fn sarif_has_a_result_for_each_finding() {
    let sandbox = Sandbox::empty();
    sandbox.write("a b.pkl", PAYLOAD);
    sandbox.write("plain.pkl", PLAIN);
    let ran = sandbox.run(&["scan", "a b.pkl", "plain.pkl", "missing", "--sarif"]);
    assert_eq!(ran.exit, 4);
    let log: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules: Vec<&str> = run["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["id"].as_str().unwrap())
        .collect();
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        assert!(rules.contains(&result["ruleId"].as_str().unwrap()));
        assert_eq!(result["level"], "error");
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "a%20b.pkl");
    }
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    assert_eq!(sandbox.run(&["scan", "plain.pkl", "--sarif", "--json"]).exit, 2);
}
