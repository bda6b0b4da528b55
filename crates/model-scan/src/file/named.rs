//! What names of files and members say, where the content has no mark.

use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

use super::{coded, prefix};
use crate::kept::Kept;
use crate::problem::Problem;
use crate::{keras, template, yaml};

/// Longest configuration that is read.
const MAX_TEXT: u64 = 16 << 20;

/// Files that a loader or a user runs, or that make loaders run others, because of their names: Python, templates, configurations.
pub(super) fn scan(source: &dyn ReadAt, name: &str, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let mut found = Kept::new(kept);
    problems(source, name)?.into_iter().for_each(|(at, problem)| found.add(at, problem));
    Ok(found.sorted())
}

fn problems(source: &dyn ReadAt, name: &str) -> Result<Vec<(u64, Problem)>, Error> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let ending = name.rsplit_once('.').map_or(name.as_str(), |(_, ending)| ending);
    let is_too_long = source.total_len() > MAX_TEXT;
    Ok(match ending {
        "jinja" | "jinja2" | "j2" => {
            Vec::from([(0, template::judge(&text(source, template::MAX as u64 + 1)?))])
        }
        // Readers of JSON and YAML take UTF-16, too.
        "json" | "yaml" | "yml" if is_wide(source)? => {
            Vec::from([(0, Problem::Unopened { reason: "a configuration that is not in UTF-8" })])
        }
        "yaml" | "yml" | "mlmodel" | "cfg" if is_too_long => {
            Vec::from([(0, Problem::Unopened { reason: "a configuration of more than 16 MiB" })])
        }
        "yaml" | "yml" => yaml::scan(&text(source, MAX_TEXT)?),
        "mlmodel" if is_mlflow(source)? => {
            let text = text(source, MAX_TEXT)?;
            yaml::scan(&text).into_iter().chain(yaml::code_folder(&text)).collect()
        }
        // TensorFlow reads it like `saved_model.pb`.
        "pbtxt" if name == "saved_model.pbtxt" => {
            Vec::from([(0, Problem::Unopened { reason: "a SavedModel as text" })])
        }
        "cfg" => yaml::callbacks(&text(source, MAX_TEXT)?),
        _ => coded::scan(source, &name)?.map(|problem| (0, problem)).into_iter().collect(),
    })
}

fn is_wide(source: &dyn ReadAt) -> Result<bool, Error> {
    Ok(prefix(source, &mut [0; 4])?.first_chunk().is_some_and(keras::is_wide))
}

/// Models of Core ML end so, too; they are no text.
fn is_mlflow(source: &dyn ReadAt) -> Result<bool, Error> {
    let mut start = [0; 512];
    Ok(!prefix(source, &mut start)?.contains(&0))
}

pub(super) fn text(source: &dyn ReadAt, max: u64) -> Result<String, Error> {
    let len = usize::try_from(source.total_len().min(max)).unwrap_or_default();
    let mut bytes = alloc::vec![0; len];
    Ok(String::from_utf8_lossy(prefix(source, &mut bytes)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_about_texts_without_a_mark() {
        let codes = |name: &str, text: &[u8]| -> Vec<_> {
            let found = scan(&text, name, 9).expect("in memory");
            found.into_iter().map(|(_, problem)| problem.code()).collect()
        };
        let mlflow = b"flavors:\n  python_function:\n    loader_module: evil\n    code: x\n".as_slice();
        let (target, setting) = ("sc-config-code", "sc-code-setting");
        for (name, text, expected) in [
            ("a.py", b"".as_slice(), &["sc-python-file"][..]),
            ("a/B.PYC", b"", &["sc-python-file"]),
            ("a.pyw", b"", &["sc-python-file"]),
            ("chat_template.jinja", b"{{ x }}", &["sc-chat-template"]),
            ("additional_chat_templates/a.jinja2", b"{{ x._y }}", &["sc-template-code"]),
            ("a.j2", b"{{ x }}", &["sc-chat-template"]),
            ("a.yaml", b"_target_: os.x", &[target]),
            ("a\\b.YML", b"_target_: os.x", &[target]),
            ("a.json", b"_target_: os.x", &[]),
            ("yaml", b"_target_: os.x", &[target]),
            ("MLmodel", mlflow, &[setting, setting]),
            ("model/MLmodel", mlflow, &[setting, setting]),
            ("a.mlmodel", b"\x08\x01\0_target_: os.x", &[]),
            ("config.cfg", b"@callbacks = \"evil\"", &[setting]),
            ("config.txt", b"@callbacks = \"evil\"", &[]),
            ("model/saved_model.pbtxt", b"", &["sc-unopened"]),
            ("a.yaml", b"\xff\xfea\0", &["sc-unopened"]),
            ("a.json", b"{\0\"\0", &["sc-unopened"]),
            ("a.json", b"{}", &[]),
            ("a.bin", b"{\0\"\0", &[]),
            ("config.pbtxt", b"", &[]),
            ("", b"_target_: os.x", &[]),
        ] {
            assert_eq!(codes(name, text), expected, "{name}");
        }
    }

    #[test]
    fn long_configurations_are_not_read() {
        for (len, code) in [(MAX_TEXT, None), (MAX_TEXT + 1, Some("sc-unopened"))] {
            let text = alloc::vec![b' '; usize::try_from(len).expect("a size")];
            let found = scan(&text.as_slice(), "a.yaml", 9).expect("in memory");
            assert_eq!(found.first().map(|(_, problem)| problem.code()), code, "{len}");
        }
    }
}
