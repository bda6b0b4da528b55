//! YAML that makes readers and loaders create objects, call functions or import modules.
//!
//! There is no parser: tags and keys are found wherever they are, also where a reader of YAML sees a text. Comments are passed while it is sure
//! that they are comments.

use alloc::string::String;
use alloc::vec::Vec;

use crate::problem::Problem;
use crate::targets;

/// Tags of YAML itself, after `!!`.
const STANDARD: [&str; 14] = [
    "binary",
    "bool",
    "float",
    "int",
    "map",
    "merge",
    "null",
    "omap",
    "pairs",
    "seq",
    "set",
    "str",
    "timestamp",
    "value",
];

/// Tags of HyperPyYAML that name what they create, call or read.
const HYPER: [&str; 6] = ["!new:", "!apply:", "!applyref:", "!name:", "!module:", "!include:"];

/// Packages that recipes of HyperPyYAML are made of, and names in them that load or run other files.
const PACKAGES: [&str; 2] = ["speechbrain.", "torch."];
const LOADERS: [&str; 9] =
    ["load", "save", "hub", "jit", "package", "cpp_extension", "download_file", "run_shell", "fetch"];

/// Keys whose value is imported: those of Hydra and its like, and of MLflow.
const KEYS: [&str; 4] = ["_target_", "target", "class_path", "loader_module"];

/// What a file of YAML names: offsets and problems.
pub(crate) fn scan(text: &str) -> Vec<(u64, Problem)> {
    let mut found = lines(text);
    let decoded = decode(text);
    if decoded != text {
        // Where it is in the file is not known.
        found.extend(lines(&decoded).into_iter().map(|(_, problem)| (0, problem)));
    }
    found
}

fn lines(text: &str) -> Vec<(u64, Problem)> {
    let (mut found, mut at) = (Vec::new(), 0);
    // Whether no quotation may be open.
    let mut is_plain = true;
    let is_network =
        ["backbone", "head"].iter().all(|key| text.lines().any(|line| key_value(line, key).is_some()));
    for line in text.split_inclusive(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        let content = if is_plain { before_comment(line) } else { line };
        let mut add = |offset: usize, problem: Problem| found.push(((at + offset) as u64, problem));
        for (offset, tag) in tags(content) {
            if let Some(problem) = judge_tag(tag) {
                add(offset, problem);
            }
        }
        if content.starts_with("%TAG") {
            add(0, Problem::YamlTag { tag: "%TAG".into() });
        }
        // YOLO evaluates names and arguments of layers.
        if is_network && let Some(offset) = content.find('(') {
            add(offset, Problem::CodeSetting { key: "backbone".into() });
        }
        let is_even = |quote: char| content.matches(quote).count().is_multiple_of(2);
        is_plain &= is_even('\'') && is_even('"');
        at += line.len();
    }
    for key in KEYS {
        found.extend(values(text, key).filter_map(|(at, value)| Some((at as u64, judge_value(key, value)?))));
    }
    found.sort_by_key(|(at, _)| *at);
    found
}

/// A line up to its comment, as far as no quotation mark is before that.
fn before_comment(line: &str) -> &str {
    let is_comment = |(at, _): &(usize, &str)| {
        line.get(..*at).is_some_and(|before| {
            (before.is_empty() || before.ends_with([' ', '\t'])) && !before.contains(['\'', '"'])
        })
    };
    line.match_indices('#').find(is_comment).and_then(|(at, _)| line.get(..at)).unwrap_or(line)
}

/// Tags of a line: they begin after a space or a bracket.
fn tags(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices('!').filter_map(move |(at, _)| {
        let (before, tag) = line.split_at_checked(at)?;
        let is_start = before.is_empty() || before.ends_with([' ', '\t', '[', '{', ',', '\u{feff}']);
        let end = tag.find([' ', '\t', '\r', '\n', ',', '[', ']', '{', '}']).unwrap_or(tag.len());
        tag.get(..end).filter(|_| is_start).map(|tag| (at, tag))
    })
}

fn judge_tag(tag: &str) -> Option<Problem> {
    let decoded = percent(tag);
    let problem = Some(Problem::YamlTag { tag: decoded.chars().take(200).collect() });
    if decoded.starts_with("!<") {
        return problem;
    }
    if let Some(name) = decoded.strip_prefix("!!") {
        return problem.filter(|_| {
            !STANDARD.contains(&name) && name.starts_with(|first: char| first.is_alphanumeric())
        });
    }
    let target = HYPER.iter().find_map(|tag| decoded.strip_prefix(tag))?;
    let is_known = targets::is_dotted(target)
        && PACKAGES.iter().any(|package| target.starts_with(package))
        && !target.split('.').any(|part| LOADERS.contains(&part));
    problem.filter(|_| !is_known)
}

/// Bytes that are written as `%2F`.
fn percent(tag: &str) -> String {
    let (mut decoded, mut rest) = (Vec::new(), tag.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.first_chunk::<2>().and_then(|digits| core::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (rest, _) = match code.filter(|_| *first == b'%') {
            Some(code) => (after.get(2..).unwrap_or_default(), decoded.push(code)),
            None => (after, decoded.push(*first)),
        };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// What follows a key at the beginning of a line.
fn key_value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    line.strip_prefix(key)?.trim_start().strip_prefix(':')
}

/// Values of a key, wherever it is: after a quotation mark, a colon, an anchor or in the next line.
fn values<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let is_name = |character: char| character == '_' || character.is_alphanumeric();
    text.match_indices(key).filter_map(move |(at, _)| {
        let (before, rest) = (text.get(..at)?, text.get(at + key.len()..)?);
        if before.ends_with(is_name) || before.ends_with('.') || rest.starts_with(is_name) {
            return None;
        }
        let rest = beginning(rest).trim_start_matches(['\'', '"']).trim_start();
        let value = rest.strip_prefix(':').unwrap_or_default().trim_start();
        // Anchors and tags come before a value.
        let value = if value.starts_with(['&', '!']) {
            value.split_once([' ', '\n']).map_or("", |(_, value)| value.trim_start())
        } else {
            value
        };
        let value = value.trim_start_matches(['\'', '"']);
        let end = value.find(['\'', '"', '\n', '\r', ',', '}', ' ']).unwrap_or(value.len());
        Some((at, value.get(..end)?))
    })
}

/// Longest distance from a key to the end of its value: time is linear in the file.
const MAX_VALUE: usize = 256;

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_VALUE)).unwrap_or(text)
}

fn judge_value(key: &str, value: &str) -> Option<Problem> {
    match key {
        "_target_" => targets::judge(value),
        "loader_module" if value.starts_with("mlflow.") => None,
        "loader_module" => Some(Problem::CodeSetting { key: key.into() }),
        _ => targets::judge_path(value),
    }
}

/// `code` in a file of MLflow: a folder that is put on the path of Python.
pub(crate) fn code_folder(text: &str) -> Option<(u64, Problem)> {
    let mut code = values(text, "code").filter(|(at, value)| {
        let from = text.floor_char_boundary(at.saturating_sub(MAX_VALUE));
        let line = text.get(from..*at).unwrap_or_default().rsplit('\n').next().unwrap_or_default();
        line.trim_start_matches(['\'', '"', ' ', '-', '{', ',']).is_empty()
            && !["", "null", "~"].contains(value)
    });
    code.next().map(|(at, _)| (at as u64, Problem::CodeSetting { key: "code".into() }))
}

/// Registered functions of spaCy in its `config.cfg`: callbacks that are called before a model is there.
pub(crate) fn callbacks(text: &str) -> Vec<(u64, Problem)> {
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        if let Some(value) = line.trim_start().strip_prefix("@callbacks") {
            let name = value.trim_matches([' ', '\t', '=', ':', '"', '\'', '\n', '\r']);
            if !name.starts_with("spacy.") {
                found.push((at, Problem::CodeSetting { key: "@callbacks".into() }));
            }
        }
        at += line.len() as u64;
    }
    found
}

/// A text with the escapes of quoted texts decoded, and lines joined where they end with one.
fn decode(text: &str) -> String {
    let (mut decoded, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        decoded.push_str(before);
        let n_digits = match after.chars().next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('\n') => {
                rest = after.trim_start();
                continue;
            }
            _ => 0,
        };
        let digits = after.get(1..=n_digits).filter(|digits| !digits.is_empty());
        let character = digits.and_then(|digits| char::from_u32(u32::from_str_radix(digits, 16).ok()?));
        rest = match character {
            Some(character) => {
                decoded.push(character);
                after.get(1 + n_digits..).unwrap_or_default()
            }
            None => {
                decoded.push('\\');
                after
            }
        };
    }
    decoded.push_str(rest);
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<(u64, &'static str)> {
        scan(text).iter().map(|(at, problem)| (*at, problem.code())).collect()
    }

    #[test]
    fn tags_are_those_of_yaml_itself() {
        for tag in STANDARD {
            assert_eq!(codes(&alloc::format!("a: !!{tag} b")), [], "{tag}");
        }
        let tag = "sc-yaml-tag";
        for (text, at) in [
            ("x: !!python/object/apply:os.system [a]", 3),
            ("!!python/name:os.system", 0),
            ("[!!python/module:os]", 1),
            ("{a: b,!!python/object:x y}", 6),
            ("a: !!%70ython/object/new:x", 3),
            ("a: !<tag:yaml.org,2002:python/object/apply:x> []", 3),
            ("a: !<!local> []", 3),
            ("%TAG !e! tag:yaml.org,2002:python/", 0),
            ("a:\t!new:os.system", 3),
            ("a: !apply:os.system", 3),
            ("a: !applyref:os.system", 3),
            ("a: !name:evil.f", 3),
            ("a: !module:evil", 3),
            ("a: !include:/etc/passwd", 3),
            ("a: !new%3aos.system", 3),
            ("a: !apply:torch.load", 3),
            ("a: !apply:torch.hub.load_state_dict_from_url", 3),
            ("a: !apply:speechbrain.utils.data_utils.download_file", 3),
            ("a: 'b # c', !!python/name:x", 12),
            ("a: 'b\n# c' : !!python/name:x", 13),
            ("# c\r!!python/name:x", 4),
        ] {
            assert_eq!(codes(text).first(), Some(&(at, tag)), "{text}");
        }
        for text in [
            "# !!python/name:x",
            "a: b # !!python/name:x",
            "a: b!!python",
            "a: wow !! b",
            "a: !ref <b>",
            "a: !new:speechbrain.nnet.CNN.Conv1d",
            "a: !name:torch.nn.ReLU",
            "# don't\n# !!python/name:x",
            "a: '!' # it's\n",
        ] {
            assert_eq!(codes(text), [], "{text}");
        }
    }

    #[test]
    fn keys_whose_values_are_imported_are_found_however_they_are_written() {
        let (target, code, setting) = ("sc-config-target", "sc-config-code", "sc-code-setting");
        for (text, expected) in [
            ("a:\n  _target_: os.makedirs", (5, code)),
            ("{_target_: evil.f}", (1, target)),
            ("'_target_' : \"evil.f\"", (1, target)),
            ("? _target_\n: os.system", (2, code)),
            ("_target_:\n  os.system", (0, code)),
            ("_target_: &a os.system", (0, code)),
            ("_target_: !!str os.system", (0, code)),
            ("a: &x _target_\n*x : os.system", (6, target)),
            ("\"_t\\x61rget_\": os.system", (0, code)),
            ("\"_t\\u0061rget_\": os.system", (0, code)),
            ("\"_t\\U00000061rget_\": os.system", (0, code)),
            ("\"_tar\\\n  get_\": os.system", (0, code)),
            ("target: evil.f", (0, target)),
            ("class_path: evil.f", (0, target)),
            ("loader_module: evil", (0, setting)),
        ] {
            assert_eq!(codes(text), [expected], "{text}");
        }
        for text in [
            "_target_: torch.nn.Linear",
            "target: nemo.collections.asr.models.EncDecCTCModel",
            "target: x86",
            "my_target: evil.f",
            "target :",
            "a._target_: evil.f",
            "targets: evil.f",
            "class_path: some/path.x",
            "loader_module: mlflow.sklearn",
            "a: \\q \\x \\",
        ] {
            assert_eq!(codes(text), [], "{text}");
        }
    }

    #[test]
    fn values_are_looked_for_near_their_keys() {
        let far =
            |n_blanks: usize| codes(&alloc::format!("_target_:{}torch.nn.Linear", " ".repeat(n_blanks)));
        assert_eq!(far(MAX_VALUE - ":torch.nn.Linear".len()), []);
        assert_eq!(far(MAX_VALUE), [(0, "sc-config-target")]);
        // A cut in a letter of two bytes.
        assert_eq!(codes(&alloc::format!("_target_:{}", "\u{e4}".repeat(300))).len(), 1);
        let code =
            |n_blanks: usize| code_folder(&alloc::format!("x{}code: y", " ".repeat(n_blanks))).is_some();
        assert!(!code(MAX_VALUE - 1) && code(MAX_VALUE));
    }

    #[test]
    fn networks_of_yolo_have_no_calls() {
        let network = |layer: &str| alloc::format!("backbone:\n  [{layer}]\nhead:\n  []\n");
        assert_eq!(codes(&network("[-1, 1, Conv, [64, 6]]")), []);
        assert_eq!(codes(&network("[-1, 1, exec('x'), []]")), [(25, "sc-code-setting")]);
        assert_eq!(codes("backbone:\n  f(x)"), []);
    }

    #[test]
    fn folders_of_code_are_those_of_mlflow() {
        for (text, expected) in [
            ("flavors:\n  python_function:\n    code: code", Some(32)),
            ("{'code': x}", Some(2)),
            ("code: null", None),
            ("code: ~\n", None),
            ("code:", None),
            ("x: code: y", None),
            ("encode: x", None),
        ] {
            assert_eq!(code_folder(text).map(|(at, _)| at), expected, "{text}");
        }
    }

    #[test]
    fn callbacks_are_those_of_spacy() {
        for (text, n_found) in [
            ("[initialize.before_init]\n@callbacks = \"spacy.copy_from_base_model.v1\"", 0),
            ("[a]\n@callbacks = \"evil.v1\"\n", 1),
            ("[a]\r\n  @callbacks: 'evil'\r\n", 1),
            ("callbacks = \"evil\"", 0),
        ] {
            assert_eq!(callbacks(text).len(), n_found, "{text}");
        }
        assert_eq!(callbacks("[a]\n@callbacks = \"evil.v1\"\n")[0].0, 4);
    }
}
