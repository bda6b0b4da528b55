//! Code in Keras files: classes that hold Python code, and what is not among the classes and functions that models are made of.

mod symbols;

use alloc::borrow::ToOwned as _;
use alloc::string::String;
use alloc::vec::Vec;

use pickle_core::Error;
use read_at::ReadAt;

use crate::file::prefix;
use crate::json::{self, Value};
use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::{denied, lines};

/// Classes with marshalled or pickled code in their configuration, or that call functions by name or load other models.
const CLASSES: [&str; 7] =
    ["FlaxLayer", "JaxLayer", "Lambda", "TFSMLayer", "TensorFlowOpLayer", "TorchModuleWrapper", "__lambda__"];

/// Layers, losses, optimizers and the like of Keras 3.15 and TF-Keras 2.15, their operations, and what their configurations are written with. Without
/// base classes, whose methods come from elsewhere, and without columns of features, which read files.
const KNOWN_CLASSES: &str = include_str!("keras/classes.txt");

/// Functions of `activations`, `initializers`, `layers`, `losses`, `metrics`, `ops`, `random` and `regularizers` of the same.
const KNOWN_FUNCTIONS: &str = include_str!("keras/functions.txt");

/// Packages of Keras. Functions of `builtins` are those of Keras and of programs; until Keras 3.9 they are also those of Python, which are
/// recognized by their names.
const PACKAGES: [&str; 6] = ["keras", "keras_hub", "keras_nlp", "keras_cv", "tf_keras", "builtins"];

/// Modules of `keras` and `tf_keras` whose classes and functions models are made of, below `src` or not.
const MODULES: [&str; 17] = [
    "activations",
    "applications",
    "constraints",
    "dtype_policies",
    "engine",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "mixed_precision",
    "models",
    "ops",
    "optimizers",
    "quantizers",
    "random",
    "regularizers",
    "saving",
];

/// Functions of Python that run code, open files, or reach other names.
const BUILTINS: [&str; 14] = [
    "__import__",
    "breakpoint",
    "compile",
    "delattr",
    "eval",
    "exec",
    "exit",
    "getattr",
    "globals",
    "input",
    "open",
    "quit",
    "setattr",
    "vars",
];

/// Functions of Keras that open files or addresses, or switch its checks off.
const FUNCTIONS: [&str; 9] = [
    "get_file",
    "enable_unsafe_deserialization",
    "load_model",
    "load_weights",
    // A configuration in a string, in a file, or written to one.
    "model_from_json",
    "model_from_config",
    "_load_model_from_fileobj",
    "_load_model_from_dir",
    "save_model",
];

/// Settings that are read as a path or an address if they are texts.
const PATHS: [&str; 9] = [
    "dataset",
    "file_path",
    "filename",
    "filepath",
    "idf_weights",
    "merges",
    "origin",
    "vocabulary",
    "vocabulary_file",
];

/// What a file of configuration names, as [`scan`].
pub(crate) fn settings(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let mut start = [0; 4];
    if prefix(source, &mut start)?.first_chunk().is_some_and(is_wide) {
        return Ok(Vec::from([(0, Problem::Unopened { reason: "JSON that is not in UTF-8" })]));
    }
    scan(source, kept)
}

/// What the configuration in a file names: offsets and problems, at most `kept` of them.
pub(crate) fn scan(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    Ok(found(source, kept)?.0)
}

/// What a model of Keras names, as [`scan`]; of other JSON, which has no configuration beside the name of a class, layers with code alone.
pub(crate) fn model(source: &dyn ReadAt, kept: usize) -> Result<Vec<(u64, Problem)>, Error> {
    let (mut found, is_model) = found(source, kept)?;
    found.retain(|(_, problem)| is_model || matches!(problem, Problem::KerasLayer { .. }));
    Ok(found)
}

/// The same, and whether a class is named somewhere, and a configuration.
fn found(source: &dyn ReadAt, kept: usize) -> Result<(Vec<(u64, Problem)>, bool), Error> {
    // Modules are those of Keras if a class is named somewhere, functions those of Python if its module is, and the lists count if there is a
    // configuration, too.
    let (mut modules, mut python, mut others) = (Kept::new(kept), Kept::new(kept), Kept::new(kept));
    let mut listed = Kept::new(kept);
    let (mut has_class, mut has_config, mut has_python) = (false, false, false);
    let named = ["class_name", "module", "config", "registered_name", "function"];
    let symbols = ["cls_symbol", "method_name", "attr_name"];
    let wanted = [named.as_slice(), &symbols, &PATHS].concat();
    json::keys(&mut Reader::new(source), &wanted, |at, key, value| {
        has_class |= key == "class_name";
        has_config |= key == "config";
        let Value::String(text) = value else { return };
        // Keras looks for the name below the module: `utils.get_file` below `keras`.
        let (parent, name) = text.rsplit_once('.').unwrap_or(("", text));
        match key {
            "module" => {
                has_python |= text == "builtins";
                if let Some(problem) = module(text) {
                    modules.add(at, problem);
                }
            }
            "class_name" if CLASSES.contains(&name) => {
                others.add(at, Problem::KerasLayer { class: name.to_owned() });
            }
            "class_name" | "config" | "registered_name" if FUNCTIONS.contains(&name) => {
                others.add(at, Problem::KerasCode { name: cut(text) });
            }
            "class_name" | "config" | "registered_name" if BUILTINS.contains(&name) => {
                python.add(at, Problem::KerasCode { name: cut(text) });
            }
            "class_name" | "config" if !parent.is_empty() && !is_module(parent) => {
                modules.add(at, Problem::KerasModule { module: cut(text) });
            }
            "class_name" if !lines::has(KNOWN_CLASSES, name) => {
                listed.add(at, Problem::KerasName { name: cut(text) });
            }
            "config" if !is_function(name) => listed.add(at, Problem::KerasName { name: cut(text) }),
            "function" | "cls_symbol" => {
                symbols::function(text).into_iter().for_each(|found| listed.add(at, found));
            }
            "method_name" | "attr_name" if !symbols::is_member(text) => {
                listed.add(at, Problem::KerasName { name: cut(text) });
            }
            _ if PATHS.contains(&key) && !text.is_empty() => {
                listed.add(at, Problem::PathSetting { key: key.to_owned() });
            }
            _ => {}
        }
    })?;
    let is_model = has_class && has_config;
    let wanted =
        [(others, true), (modules, has_class), (python, has_class && has_python), (listed, is_model)];
    let mut found: Vec<_> = wanted
        .into_iter()
        .filter(|(_, is_wanted)| *is_wanted)
        .flat_map(|(found, _)| found.sorted())
        .collect();
    found.sort_by_key(|(at, _)| *at);
    let mut all = Kept::new(kept);
    found.into_iter().for_each(|(at, problem)| all.add(at, problem));
    Ok((all.sorted(), is_model))
}

/// A function as a configuration names it; where it has a configuration in a text of JSON instead, its keys are judged.
fn is_function(name: &str) -> bool {
    lines::has(KNOWN_FUNCTIONS, name) || lines::has(KNOWN_CLASSES, name) || name.is_empty()
}

/// Whether models are made of what is in that module of Keras, named from its package on.
fn is_module(name: &str) -> bool {
    let mut parts = name.split('.').skip_while(|part| *part == "src");
    parts.next().is_some_and(|part| {
        let next = parts.next();
        // Optimizers of a compiled model are those of the backend.
        let is_optimizer = part == "backend" && next.is_some() && parts.next() == Some("optimizers");
        MODULES.contains(&part) || (part, next) == ("utils", Some("feature_space")) || is_optimizer
    })
}

fn module(name: &str) -> Option<Problem> {
    let (root, rest) = name.split_once('.').unwrap_or((name, ""));
    let is_known = rest.is_empty() || !["keras", "tf_keras"].contains(&root) || is_module(rest);
    if PACKAGES.contains(&root) && is_known {
        None
    } else if denied::reason(name, "").is_some() {
        Some(Problem::KerasCode { name: cut(name) })
    } else {
        Some(Problem::KerasModule { module: cut(name) })
    }
}

fn cut(text: &str) -> String {
    text.chars().take(200).collect()
}

/// UTF-16 or UTF-32, which Python's reader of JSON accepts.
pub(crate) fn is_wide(start: &[u8; 4]) -> bool {
    start.contains(&0) || start.starts_with(b"\xfe\xff") || start.starts_with(b"\xff\xfe")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_are_kept_are_found_in_their_order() {
        let text =
            br#"{"module":"os","class_name":"Lambda","module":"sys","class_name":"Lambda"}"#.as_slice();
        let found = |kept: usize| -> Vec<_> {
            scan(&text, kept).expect("in memory").iter().map(|(at, problem)| (*at, problem.code())).collect()
        };
        let (module, class) = ("sc-keras-code", "sc-keras-layer");
        assert_eq!(found(9), [(1, module), (15, class), (37, module), (52, class)]);
        assert_eq!(found(1), [(1, module)]);
    }

    fn codes(text: &[u8]) -> Vec<&'static str> {
        settings(&text, 10).expect("in memory").iter().map(|(_, problem)| problem.code()).collect()
    }

    #[test]
    fn code_is_found_whatever_is_around_it() {
        assert_eq!(codes(br#"{"class_name":"Dense","module":"keras.layers"}"#), [""; 0]);
        assert_eq!(codes(br#"\x00"class_name" : "\u004cambda""#), ["sc-keras-layer"]);
        assert_eq!(
            codes(br#"{"module":"os","class_name":"function","config":"system"}"#),
            ["sc-keras-code", "sc-keras-name"]
        );
        assert_eq!(codes(br#"{"module":"mathutils","class_name":"f"}"#), ["sc-keras-module"]);
        assert_eq!(codes(br#"{"module":"keras_evil","class_name":"f"}"#), ["sc-keras-module"]);
        assert_eq!(
            codes(br#"{"module":"keras.utils","class_name":"function","config":"get_file"}"#),
            ["sc-keras-module", "sc-keras-code"]
        );
        assert_eq!(
            codes(br#"{"module":"keras.models","class_name":"function","config":"load_model"}"#),
            ["sc-keras-code"]
        );
        for module in [
            "keras",
            "keras.src.models.functional",
            "keras.src.backend.torch.optimizers.torch_adam",
            "tf_keras.src.engine.sequential",
            "keras.saving",
            "builtins",
        ] {
            let text = alloc::format!(r#"{{"module":"{module}","class_name":"Functional"}}"#);
            assert_eq!(codes(text.as_bytes()), [""; 0], "{module}");
        }
        let file_utils =
            br#"{"module":"keras.src.utils.file_utils","class_name":"function","config":"makedirs"}"#;
        assert_eq!(codes(file_utils), ["sc-keras-module", "sc-keras-name"]);
        for name in ["exec", "open", "getattr"] {
            let text = alloc::format!(r#"{{"module":"builtins","class_name":"function","config":"{name}"}}"#);
            assert_eq!(codes(text.as_bytes()), ["sc-keras-code"], "{name}");
        }
        assert_eq!(codes(br#"{"class_name":"TFSMLayer"}"#), ["sc-keras-layer"]);
        // Names below a module, and functions of Python where nothing is of Python.
        for name in ["utils.get_file", "config.enable_unsafe_deserialization", "models.model_from_json"] {
            let text = alloc::format!(r#"{{"module":"keras","class_name":"function","config":"{name}"}}"#);
            assert_eq!(codes(text.as_bytes()), ["sc-keras-code"], "{name}");
        }
        let below = br#"{"module":"keras","class_name":"function","config":"utils.save_img"}"#;
        assert_eq!(codes(below), ["sc-keras-module"]);
        assert_eq!(codes(br#"{"module":"keras","class_name":"layers.Dense"}"#), [""; 0]);
        assert_eq!(codes(br#"{"class_name":"open"}"#), [""; 0]);
        let other = br#"{"labels":[{"class_name":"open","module":"my.package"}]}"#.as_slice();
        assert!(model(&other, 10).expect("in memory").is_empty());
        assert_eq!(codes(br#"{"module":"os"}"#), [""; 0], "not of Keras");
        assert_eq!(codes(br#"{"module":"os.unknown","class_name":"f"}"#), ["sc-keras-code"]);
        let long = alloc::format!(r#"{{"module":"{}","class_name":"f"}}"#, "m".repeat(300));
        let module = Problem::KerasModule { module: "m".repeat(200) };
        assert_eq!(scan(&long.as_bytes(), 10).expect("in memory"), [(1, module)]);
        assert_eq!(codes(b"{\0\"\0"), ["sc-unopened"]);
    }

    #[test]
    fn classes_and_functions_are_those_of_the_lists() {
        lines::tests::check(KNOWN_CLASSES, 670);
        lines::tests::check(KNOWN_FUNCTIONS, 410);
        for name in CLASSES {
            assert!(!lines::has(KNOWN_CLASSES, name), "{name}");
            let text = alloc::format!(r#"{{"class_name":"{name}"}}"#);
            assert_eq!(codes(text.as_bytes()), ["sc-keras-layer"], "{name}");
        }
        for name in FUNCTIONS {
            let text = alloc::format!(r#"{{"class_name":"function","config":"{name}"}}"#);
            assert_eq!(codes(text.as_bytes()), ["sc-keras-code"], "{name}");
        }
        for (class, config, expected) in [
            ("Dense", "{}", &[][..]),
            ("function", "\"relu\"", &[]),
            ("function", "\"Zeros\"", &[]),
            ("function", "\"\"", &[]),
            ("function", "\"my_loss\"", &["sc-keras-name"]),
            ("MyLayer", "{}", &["sc-keras-name"]),
            ("Custom>MyLayer", "{}", &["sc-keras-name"]),
            ("Layer", "{}", &["sc-keras-name"]),
            ("Wrapper", "{}", &["sc-keras-name"]),
            ("DenseFeatures", "{}", &["sc-keras-name"]),
        ] {
            let text = alloc::format!(r#"{{"class_name":"{class}","config":{config}}}"#);
            assert_eq!(codes(text.as_bytes()), expected, "{text}");
            let text = alloc::format!(r#"{{"class_name":"{class}"}}"#);
            assert_eq!(codes(text.as_bytes()), [""; 0], "without a configuration");
        }
    }

    #[test]
    fn names_of_symbols_and_paths_are_judged_in_models() {
        let model = |rest: &str| alloc::format!(r#"{{"class_name":"Dense","config":{{{rest}}}}}"#);
        for (rest, expected) in [
            (r#""function":"math.add""#, &[][..]),
            (r#""function":"io.read_file""#, &["sc-keras-code"]),
            (r#""cls_symbol":"io.TFRecordWriter""#, &["sc-keras-code"]),
            (r#""function":"my.function""#, &["sc-keras-name"]),
            (r#""method_name":"to_tensor""#, &[]),
            (r#""method_name":"__call__""#, &["sc-keras-name"]),
            (r#""attr_name":"shape""#, &[]),
            (r#""attr_name":"graph""#, &["sc-keras-name"]),
        ] {
            assert_eq!(codes(model(rest).as_bytes()), expected, "{rest}");
        }
        for key in PATHS {
            for (value, expected) in [
                ("\"/etc/passwd\"", &["sc-path-setting"][..]),
                ("\"\"", &[]),
                ("null", &[]),
                ("[\"a\"]", &[]),
            ] {
                let rest = alloc::format!("\"{key}\":{value}");
                assert_eq!(codes(model(&rest).as_bytes()), expected, "{rest}");
                assert_eq!(codes(alloc::format!("{{{rest}}}").as_bytes()), [""; 0], "of no model");
            }
        }
    }
}
