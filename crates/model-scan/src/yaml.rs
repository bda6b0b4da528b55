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

/// Packages that recipes of HyperPyYAML are made of.
const PACKAGES: [&str; 4] = ["speechbrain.", "torch.nn.", "torch.optim.", "torch.utils.data."];

/// Ends of lines of YAML 1.1.
const ENDS: [char; 5] = ['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'];

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
    for line in text.split_inclusive(ENDS) {
        let content = if is_plain { before_comment(line) } else { line };
        let mut add = |offset: usize, problem: Problem| found.push(((at + offset) as u64, problem));
        let mut end = 0;
        for (offset, tag) in tags(content) {
            // Tags do not overlap.
            if offset >= end
                && let Some(problem) = judge_tag(tag)
            {
                end = offset + tag.len();
                add(offset, problem);
            }
        }
        if content.trim_start_matches('\u{feff}').starts_with("%TAG") {
            add(0, Problem::YamlTag { tag: "%TAG".into() });
        }
        // YOLO evaluates names and arguments of layers.
        if is_network && let Some(offset) = content.find('(') {
            add(offset, Problem::CodeSetting { key: "backbone".into() });
        }
        // Some readers do not end a line at the last three: a comment goes on there.
        is_plain &= is_closed(content) && !line.ends_with(['\u{85}', '\u{2028}', '\u{2029}']);
        at += line.len();
    }
    for key in KEYS {
        found.extend(values(text, key).filter_map(|(at, value)| Some((at as u64, judge_value(key, value)?))));
    }
    found.sort_by_key(|(at, _)| *at);
    found
}

/// Whether every quotation in a line is closed in it. Quotations with characters other than letters, digits and `._-/` count as open: their
/// marks may be escaped, or part of a plain text.
fn is_closed(line: &str) -> bool {
    let is_simple = |quoted: &str| {
        quoted.chars().all(|character| character.is_alphanumeric() || "._-/".contains(character))
    };
    let mut rest = line;
    while let Some(at) = rest.find(['\'', '"']) {
        let (_, quoted) = rest.split_at(at);
        let mark = if quoted.starts_with('"') { '"' } else { '\'' };
        let Some((inner, after)) = quoted.get(1..).and_then(|quoted| quoted.split_once(mark)) else {
            return false;
        };
        if !is_simple(inner) {
            return false;
        }
        rest = after;
    }
    true
}

/// A line up to its comment, as far as no quotation may be open before that.
fn before_comment(line: &str) -> &str {
    let mut before = line.match_indices('#').filter_map(|(at, _)| line.get(..at));
    // A quotation that is open before the first mark of a comment is open before all others.
    let first = before.find(|before| before.is_empty() || before.ends_with([' ', '\t']));
    first.filter(|before| is_closed(before)).unwrap_or(line)
}

/// Tags of a line: they begin after anything but a word, which they would be a part of.
fn tags(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.match_indices('!').filter_map(move |(at, _)| {
        let (before, tag) = line.split_at_checked(at)?;
        let is_start = !before.ends_with(|last: char| last == '!' || last.is_alphanumeric());
        let tag = is_start.then(|| beginning(tag))?;
        let end = tag.find([' ', '\t', '\r', '\n', ',', '[', ']', '{', '}']).unwrap_or(tag.len());
        tag.get(..end).map(|tag| (at, tag))
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
    // A longer tag may be cut.
    let is_whole = tag.len() < MAX_VALUE - 4;
    let is_known = is_whole && !decoded.starts_with("!include:") && targets::is_known(target, &PACKAGES);
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
        let near = beginning(rest);
        let after = after_marks(near.trim_start_matches(QUOTES));
        let Some(value) = after.strip_prefix(':') else {
            // An alias may be a key elsewhere.
            let is_key = is_marked(word_before(before)) || after.is_empty() && near.len() < rest.len();
            return Some((at, if is_key { UNKNOWN } else { "" }));
        };
        let value = after_marks(value);
        let value = if value.starts_with('*') { UNKNOWN } else { value.trim_start_matches(QUOTES) };
        match value.find(|last: char| last.is_whitespace() || ['\'', '"', ',', '}', ']'].contains(&last)) {
            Some(end) => Some((at, value.get(..end)?)),
            None if near.len() < rest.len() => Some((at, UNKNOWN)),
            None => Some((at, value)),
        }
    })
}

/// A value that is elsewhere.
const UNKNOWN: &str = "*";
const QUOTES: [char; 2] = ['\'', '"'];

/// A text after white space, comments, anchors, tags and the headers of block texts.
fn after_marks(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = match text.chars().next() {
            Some('#' | '|' | '>') => text.find(ENDS),
            Some('&' | '!') => text.find(char::is_whitespace),
            _ => return text,
        };
        text = end.and_then(|end| text.get(end..)).unwrap_or_default();
    }
}

/// Longest tag, and longest distance from a key to the end of its value: time is linear in the file.
const MAX_VALUE: usize = 256;

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_VALUE)).unwrap_or(text)
}

/// Last word of a line that ends before a key, delimited by white space or a bracket; empty if the key begins the line.
fn word_before(before: &str) -> &str {
    let from = before.floor_char_boundary(before.len().saturating_sub(MAX_VALUE));
    let line = before.get(from..).unwrap_or_default().rsplit(ENDS).next().unwrap_or_default();
    let line = line.trim_end_matches(QUOTES).trim_end();
    line.rsplit([' ', '\t', '[', '{', ',', '?']).next().unwrap_or_default()
}

/// Whether a word is an anchor or a tag.
fn is_marked(word: &str) -> bool {
    word.len() > 1 && word.starts_with(['&', '!'])
}

fn judge_value(key: &str, value: &str) -> Option<Problem> {
    match key {
        "_target_" => targets::judge(value),
        "loader_module" if value.starts_with("mlflow.") => None,
        "loader_module" => Some(Problem::CodeSetting { key: key.into() }),
        _ if value == UNKNOWN => Some(targets::named(value)),
        _ => targets::judge_path(value),
    }
}

/// `code` in a file of MLflow: a folder that is put on the path of Python.
pub(crate) fn code_folder(text: &str) -> Option<(u64, Problem)> {
    let decoded = decode(text);
    let mut code = values(&decoded, "code").filter(|(at, value)| {
        let word = word_before(decoded.get(..*at).unwrap_or_default());
        (word.is_empty() || word == "-" || is_marked(word)) && !["", "null", "~"].contains(value)
    });
    code.next().map(|(at, _)| (offset(text, &decoded, at), Problem::CodeSetting { key: "code".into() }))
}

/// Registered functions of spaCy in its `config.cfg`: callbacks that are called before a model is there.
pub(crate) fn callbacks(text: &str) -> Vec<(u64, Problem)> {
    let decoded = decode(text);
    let found = decoded.match_indices("@callbacks").filter(|(at, key)| {
        let value = decoded.get(at + key.len()..).unwrap_or_default();
        let name = value.trim_start_matches(|first: char| first.is_whitespace() || "=:\"'".contains(first));
        !name.starts_with("spacy.")
    });
    found.map(|(at, key)| (offset(text, &decoded, at), Problem::CodeSetting { key: key.into() })).collect()
}

/// An offset in a decoded text as that in the file, which is not known where anything is decoded.
fn offset(text: &str, decoded: &str, at: usize) -> u64 {
    if text.len() == decoded.len() { at as u64 } else { 0 }
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
            Some(end) if ENDS.contains(&end) => {
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
            ("{\"a\":!!python/name:x b}", 5),
            ("{?!!python/name:x b: 1}", 2),
            ("[ \"x\\\"\n# \", !!python/name:x b]", 12),
            ("a: ['\"', \"x\n# \", !!python/name:x b]", 17),
            ("[don't, 'x\n# ', !!python/name:x b]", 16),
            ("[a 'b, ' x\n# ', !!python/name:x b]", 16),
            ("[a\u{2028}#, !apply:os.system b]", 8),
            ("\u{feff}%TAG !e! tag:yaml.org,2002:python/\n---\n!e!object/apply:os.system [a]", 0),
            ("a: !apply:torch.os.system", 3),
            ("a: !apply:torch.nn.functional.torch.os.system", 3),
            ("a: !new:speechbrain.utils.superpowers.subprocess.Popen", 3),
            ("a: !include:torch.nn.A", 3),
            ("a: .!!python/name:x!!python/name:y", 4),
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
            "a: [None, 2, \"nearest\"] # !!python/name:x\n# !!python/name:x",
            "[ \"y\", # \", !!python/name:x b]",
            "a: !apply:torch.manual_seed [1]",
            "a: !name:speechbrain.nnet.losses.nll_loss",
            "a: !new:speechbrain.integrations.huggingface.mbart.mBART",
            "a: !apply:speechbrain.lobes.models.g2p.dataio.lazy_init",
            "a: !new:torch.optim.lr_scheduler.StepLR",
            "a: !new:speechbrain.lobes.models.ECAPA_TDNN.ECAPA_TDNN",
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
            ("\"_tar\\\r\n  get_\": os.system", (0, code)),
            ("\"_tar\\\r get_\": os.system", (0, code)),
            ("\"_tar\\\u{85}get_\": os.system", (0, code)),
            ("\"_tar\\\u{2028}get_\": os.system", (0, code)),
            ("\"_tar\\\u{2029}get_\": os.system", (0, code)),
            ("_target_: torch.nn.functional.torch.save", (0, target)),
            ("target: evil.f", (0, target)),
            ("target: evil-mod.f", (0, target)),
            ("[target: evil.f]", (1, target)),
            ("target: |-\n  os.system", (0, code)),
            ("target: # c\n  os.system", (0, code)),
            ("target: &x !!str # c\r\n  'os.system'", (0, code)),
            ("? target # c\n: os.system", (2, code)),
            ("a: &x os.system\ntarget: *x", (16, target)),
            ("a: {&x \"target\"}\nb:\n  *x : os.system", (8, target)),
            ("x: os.system\ntarget: ${x}", (13, target)),
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
            "R&D target",
            "rock & target",
            "target: # a.b",
            "target: 0.5",
            "target: [a, b]",
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
        let tag = |n_letters: usize| codes(&alloc::format!("!new:torch.nn.A{}", "a".repeat(n_letters)));
        assert_eq!((tag(200), tag(300)), (Vec::new(), Vec::from([(0, "sc-yaml-tag")])));
        assert_eq!(codes(".!!a.!!a").len(), 1, "tags do not overlap");
        // Cut in a name, or before the colon.
        assert_eq!(far(MAX_VALUE - ":torch.nn.L".len()), [(0, "sc-config-target")]);
        let cut = alloc::format!("? target # {}\n: os.system", "c".repeat(MAX_VALUE));
        assert_eq!(codes(&cut), [(2, "sc-config-target")]);
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
            ("python_function: {loader_module: mlflow.sklearn, code: code}", Some(49)),
            ("- code: x", Some(2)),
            ("{a: b, \"c\\x6fde\": x}", Some(0)),
            ("&a !!str code: x", Some(9)),
            ("code: # c\n  x", Some(0)),
            ("a: {code: null}", None),
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
            ("before_creation = {\"@callbacks\":\"evil.v1\"}", 1),
            ("a = {\"@call\\u0062acks\" : \"evil.v1\"}", 1),
            ("a = {\"@callbacks\":\"spacy.a.v1\",\"@callbacks\":\"evil.v1\"}", 1),
            ("callbacks = \"evil\"", 0),
        ] {
            assert_eq!(callbacks(text).len(), n_found, "{text}");
        }
        assert_eq!(callbacks("[a]\n@callbacks = \"evil.v1\"\n")[0].0, 4);
    }
}
