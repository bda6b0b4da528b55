//! Classes and functions that configurations name for loaders to import and call.

use alloc::format;
use alloc::string::String;

use crate::problem::Problem;
use crate::{denied, script};

/// Packages whose classes configurations of models are made of.
const PACKAGES: [&str; 4] = ["torch.nn.", "torch.optim.", "nemo.collections.", "lightning.pytorch."];

/// Modules that run code, open files or reach the network, beside those of [`denied`].
const ROOTS: [&str; 6] = ["os", "subprocess", "builtins", "shutil", "pickle", "joblib"];

/// The value of `_target_` and its like.
pub(crate) fn judge(target: &str) -> Option<Problem> {
    if is_dotted(target) && PACKAGES.iter().any(|package| target.starts_with(package)) {
        return None;
    }
    Some(named(target))
}

/// The value of `target` and `class_path`, which many programs have for something else: names with points alone, and no operators of exported
/// graphs, which are judged where such a graph is.
pub(crate) fn judge_path(target: &str) -> Option<Problem> {
    let operator = target.strip_prefix("torch.ops.").and_then(|operator| operator.split_once('.'));
    let is_operator = operator.is_some_and(|(namespace, rest)| {
        let name = rest.split('.').next().unwrap_or_default();
        namespace != "aten" || !script::is_suspicious(&format!("aten::{name}"))
    });
    if is_operator || !is_dotted(target) { None } else { judge(target) }
}

/// What names are that are on no list: what a loader of pickles must not reach is dangerous here, too.
pub(crate) fn named(target: &str) -> Problem {
    let name: String = target.chars().take(200).collect();
    let (module, last) = target.rsplit_once('.').unwrap_or((target, ""));
    let root = target.split('.').next().unwrap_or_default();
    if ROOTS.contains(&root) || denied::reason(module, last).is_some() {
        Problem::ConfigCode { name }
    } else {
        Problem::ConfigTarget { name }
    }
}

/// Whether a text is a path of at least two names of Python.
pub(crate) fn is_dotted(text: &str) -> bool {
    let is_name = |part: &str| {
        part.chars().all(|character| character == '_' || character.is_alphanumeric())
            && part.starts_with(|first: char| first == '_' || first.is_alphabetic())
    };
    text.contains('.') && text.split('.').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_classes_of_known_packages() {
        for (target, code) in [
            ("torch.nn.Linear", ""),
            ("torch.optim.AdamW", ""),
            ("nemo.collections.asr.models.EncDecCTCModel", ""),
            ("lightning.pytorch.Trainer", ""),
            ("torch.nnx.Linear", "sc-config-target"),
            ("torch.nn. Linear", "sc-config-target"),
            ("torch.nn.", "sc-config-target"),
            ("my_package.Model", "sc-config-target"),
            ("Model", "sc-config-target"),
            ("${x}", "sc-config-target"),
            ("", "sc-config-target"),
            ("os", "sc-config-code"),
            ("os.makedirs", "sc-config-code"),
            ("shutil.copy", "sc-config-code"),
            ("subprocess.Popen", "sc-config-code"),
            ("builtins.open", "sc-config-code"),
            ("pickle.load", "sc-config-code"),
            ("joblib.load", "sc-config-code"),
            ("socket.socket", "sc-config-code"),
        ] {
            assert_eq!(judge(target).map_or("", |problem| problem.code()), code, "{target}");
        }
        let long = named(&"a".repeat(300));
        assert_eq!(long, Problem::ConfigTarget { name: "a".repeat(200) });
    }

    #[test]
    fn words_and_operators_of_graphs_are_no_targets() {
        for (target, code) in [
            ("x86", ""),
            ("a/b.c", ""),
            ("torch.nn.Linear", ""),
            ("torch.ops.aten.add.Tensor", ""),
            ("torch.ops.other.add.default", ""),
            ("torch.ops.aten.from_file.default", "sc-config-target"),
            ("torch.ops.load_library", "sc-config-code"),
            ("my_package.Model", "sc-config-target"),
            ("os.system", "sc-config-code"),
        ] {
            assert_eq!(judge_path(target).map_or("", |problem| problem.code()), code, "{target}");
        }
    }

    #[test]
    fn paths_are_names_with_points() {
        for (text, expected) in [
            ("a.b", true),
            ("_a.B1.c_d", true),
            ("a", false),
            ("", false),
            (".", false),
            ("a.", false),
            ("a.1b", false),
            ("a.b-c", false),
            ("www.a b.c", false),
        ] {
            assert_eq!(is_dotted(text), expected, "{text}");
        }
    }
}
