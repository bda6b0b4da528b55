//! That `docs/json-schema.md` specifies every report and every field that the snapshots show.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Fields whose members are named by files, models or targets.
const FREE: [&str; 9] = [
    "bytes",
    "metadata",
    "public_metadata",
    "private_metadata",
    "hyperparameters",
    "metrics",
    "coefficients",
    "sha256",
    "probabilities",
];

#[test]
fn every_report_and_field_is_specified() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../../docs/json-schema.md")).unwrap();
    let mut missing = Vec::new();
    let mut n_reports = 0;
    for entry in fs::read_dir(root.join("tests/snapshots")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let stdout = text.split("--- stdout\n").nth(1).and_then(|rest| rest.split("--- stderr").next());
        let Some(Ok(report)) = stdout.map(serde_json::from_str::<Value>) else { continue };
        let Some(schema) = report["schema"].as_str() else { continue };
        n_reports += 1;
        let is_title = |line: &str| line.starts_with("## ") && line.contains(schema);
        if !page.lines().any(is_title) {
            missing.push(schema.to_owned());
        }
        fields(&report, schema, &page, &mut missing);
    }
    missing.sort();
    missing.dedup();
    assert!(n_reports > 20 && missing.is_empty(), "{n_reports} reports, not in the page: {missing:?}");
}

fn fields(value: &Value, path: &str, page: &str, missing: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                if !page.contains(&format!("`{name}`")) {
                    missing.push(format!("{path}.{name}"));
                }
                if !FREE.contains(&name.as_str()) {
                    fields(member, &format!("{path}.{name}"), page, missing);
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| fields(element, path, page, missing)),
        _ => {}
    }
}
