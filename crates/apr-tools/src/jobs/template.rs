//! The command of a job: that of one input, with placeholders.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser as _;
use serde::{Deserialize, Serialize};

use crate::cli::Cli;
use crate::error::{CODE_USAGE, Failure};
use crate::terminal::escape;

/// What the outputs of a command are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outputs {
    /// What it writes.
    Files,
    /// What it prints.
    Report,
    /// It says whether something is so.
    Verdict,
}

/// The commands of jobs.
const COMMANDS: [(&str, Outputs); 16] = [
    ("check", Outputs::Verdict),
    ("scan", Outputs::Verdict),
    ("verify", Outputs::Verdict),
    ("inspect", Outputs::Report),
    ("tensors", Outputs::Report),
    ("convert", Outputs::Files),
    ("export", Outputs::Files),
    ("quantize", Outputs::Files),
    ("shard", Outputs::Files),
    ("unshard", Outputs::Files),
    ("seal", Outputs::Files),
    ("open", Outputs::Files),
    ("encrypt", Outputs::Files),
    ("decrypt", Outputs::Files),
    ("predict", Outputs::Files),
    ("sign", Outputs::Files),
];

/// Commands that take files one by one, of a set of shards too.
const BY_FILE: [&str; 7] = ["scan", "sign", "verify", "seal", "open", "encrypt", "decrypt"];

/// Options that are the job's own, or make no sense in one.
const OF_JOBS: [&str; 15] = [
    "--json",
    "--quiet",
    "-q",
    "--verbose",
    "-v",
    "--color",
    "--offline",
    "--allow-http",
    "--no-hub-cache",
    "--block-cache",
    "--block-cache-size",
    "--stats",
    "--time-limit",
    "--dry-run",
    "--recursive",
];

/// Options that take a password from where there is only one.
const INTERACTIVE: [&str; 3] = ["--password-fd", "--ask-password", "--key-password-fd"];

const PLACEHOLDERS: [&str; 4] = ["{in}", "{out}", "{path}", "{to}"];

/// What takes the place of the placeholders.
pub(super) struct Values<'a> {
    pub(super) input: &'a str,
    /// The folder of the outputs.
    pub(super) to: &'a str,
    /// Path of the input below the place that was named, with `/`.
    pub(super) path: &'a str,
}

/// Words of a command line, the first of which is a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Template(Vec<String>);

impl Template {
    /// Checks a command line.
    ///
    /// # Errors
    ///
    /// If it is none of a job, or none of `apr`.
    pub(crate) fn new(words: Vec<String>) -> Result<Self, Failure> {
        let template = Self(words);
        template.check()?;
        Ok(template)
    }

    /// Checks it.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub(super) fn check(&self) -> Result<(), Failure> {
        let template = self;
        let refused = |what: String| Failure::new(CODE_USAGE, what);
        if COMMANDS.iter().all(|(name, _)| *name != template.command()) {
            let names: Vec<&str> = COMMANDS.iter().map(|(name, _)| *name).collect();
            let what = format!("`{}` is not a command of jobs", template.command());
            return Err(refused(what).help(format!("these are: {}", names.join(", "))));
        }
        if !template.0.iter().any(|word| word.contains("{in}")) {
            self.refuse_other_placeholders()?;
            return Err(refused("the command does not say where the input stands".to_owned())
                .help("write {in} in its place: apr plan ... -- check {in}"));
        }
        if let Some(option) = OF_JOBS.iter().find(|option| template.has(option)) {
            return Err(refused(format!("{option} is not for the command of a job"))
                .help("options of all commands are those of `apr plan`, `apr run-task` and `apr batch`"));
        }
        if let Some(option) = INTERACTIVE.iter().find(|option| template.has(option)) {
            return Err(refused(format!(
                "{option} is for one command alone: the next one of a job would find nothing"
            ))
            .help("give passwords by --password-file or by their environment variables"));
        }
        let is_begin = |word: &&String| {
            let value = value_of(word);
            !names_output(word) || value.starts_with("{out}") || value.starts_with("{to}/")
        };
        if let Some(word) = template.0.iter().find(|word| !is_begin(word)) {
            let shown = escape::without_credentials(value_of(word).into());
            return Err(refused(format!("`{shown}` does not begin with the folder of the outputs"))
                .help("{out} and {to}/ begin with it: -o {out}.gguf, --output={to}/{path}.gguf"));
        }
        if template.outputs() == Outputs::Files && !template.0.iter().any(|word| names_output(word)) {
            self.refuse_other_placeholders()?;
            return Err(refused("the command does not say where the output goes".to_owned()).help(
                "write {out} in its place, with an ending: -- quantize {in} -o {out}.gguf --type q8_0",
            ));
        }
        let sample = Values { input: "in", to: "to", path: "in" };
        let words = ["apr".to_owned()].into_iter().chain(template.words(&sample));
        if let Err(error) = Cli::try_parse_from(words.map(OsString::from)) {
            let text = error.to_string();
            // What follows is the usage.
            let lines: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            let line = lines.join(" ");
            let what = format!("the command of the job: {}", line.strip_prefix("error: ").unwrap_or(&line));
            return Err(refused(what).help(format!("see `apr {} --help`", template.command())));
        }
        Ok(())
    }

    /// Where a placeholder is missing, a word in braces is taken for a mistyped one. Elsewhere it is what it is.
    fn refuse_other_placeholders(&self) -> Result<(), Failure> {
        let in_braces = |word: &'_ str| {
            let begin = word.find('{')?;
            let len = word[begin..].find('}')? + 1;
            Some(word[begin..begin + len].to_owned())
        };
        let mut found = self.0.iter().filter_map(|word| in_braces(word));
        match found.find(|name| !PLACEHOLDERS.contains(&name.as_str())) {
            Some(name) => {
                let what = format!("`{}` is not a placeholder", escape::cut(&name, 60));
                let known = format!("the placeholders are {}", PLACEHOLDERS.join(", "));
                Err(Failure::new(CODE_USAGE, what).help(known))
            }
            None => Ok(()),
        }
    }

    pub(super) fn command(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    pub(super) fn outputs(&self) -> Outputs {
        let known = COMMANDS.iter().find(|(name, _)| *name == self.command());
        known.map_or(Outputs::Verdict, |(_, outputs)| *outputs)
    }

    /// Whether a set of shards is one input.
    pub(super) fn takes_sets(&self) -> bool {
        !BY_FILE.contains(&self.command())
    }

    /// Whether signatures beside the inputs decide the results.
    pub(super) fn reads_signatures(&self) -> bool {
        let has_key = ["--key", "--signer", "--trusted-keys"].iter().any(|option| self.has(option));
        // Those of `sign` are its outputs.
        self.command() == "verify" || has_key && self.command() != "sign"
    }

    /// Whether a folder with the configuration of a language model is one input.
    pub(super) fn takes_model_folders(&self) -> bool {
        let is_gguf = |word: &String| names_output(word) && word.to_ascii_lowercase().ends_with(".gguf");
        self.command() == "convert" && self.0.iter().any(is_gguf) && !self.has("--tensors-only")
    }

    /// Whether the command divides its output, so that each file can be a task.
    pub(super) fn divides(&self) -> bool {
        self.takes_model_folders() && (self.has("--split-max-size") || self.has("--split-max-tensors"))
    }

    /// Files that the words of the command line name, those of passwords excepted: their digests could be guessed.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        let before = core::iter::once("").chain(self.0.iter().map(String::as_str));
        let words = self.0.iter().zip(before).skip(1);
        let words =
            words.filter(|(word, before)| ![word, *before].iter().any(|word| word.contains("password-file")));
        words.map(|(word, _)| value_of(word)).filter(|value| Path::new(value).is_file())
    }

    fn has(&self, option: &str) -> bool {
        self.0.iter().any(|word| word.split('=').next() == Some(option))
    }

    /// The words of the command line for an input.
    pub(super) fn words(&self, values: &Values<'_>) -> Vec<String> {
        self.0.iter().map(|word| filled(word, values)).collect()
    }

    /// Paths below the folder of the outputs that the command line of an input names.
    pub(super) fn named_outputs(&self, path: &str) -> Vec<String> {
        let values = Values { input: "", to: "", path };
        let named = self.0.iter().filter(|word| names_output(word));
        // After the empty folder of the outputs.
        let value = |word: &String| filled(value_of(word), &values).split_off(1);
        match self.outputs() {
            Outputs::Report => vec![format!("{path}.json")],
            _ => named.map(value).collect(),
        }
    }
}

/// The value of `--option=value`; other words as they are.
fn value_of(word: &str) -> &str {
    word.split_once('=').filter(|_| word.starts_with("--")).map_or(word, |(_, value)| value)
}

/// A path that is no option to the program.
pub(super) fn as_word(path: &str) -> String {
    if path.starts_with('-') { format!("./{path}") } else { path.to_owned() }
}

fn names_output(word: &str) -> bool {
    word.contains("{out}") || word.contains("{to}")
}

/// A word with the values of its placeholders, in which no placeholder is looked for again.
fn filled(word: &str, values: &Values<'_>) -> String {
    let Values { input, to, path } = values;
    let mut rest = word;
    let mut text = String::with_capacity(word.len());
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let placeholders = [
            ("{in}", (*input).to_owned()),
            ("{out}", format!("{to}/{}", without_ending(path))),
            ("{path}", (*path).to_owned()),
            ("{to}", (*to).to_owned()),
        ];
        let (len, value) = match placeholders.into_iter().find(|(name, _)| rest.starts_with(name)) {
            Some((name, value)) => (name.len(), value),
            None => (1, "{".to_owned()),
        };
        text.push_str(&value);
        rest = &rest[len..];
    }
    text + rest
}

/// A path without the ending of its last name; of an index of shards without both of its endings.
fn without_ending(path: &str) -> &str {
    let begin = path.rfind('/').map_or(0, |at| at + 1);
    let name = &path[begin..];
    let stem = name.strip_suffix(".index.json").unwrap_or(name);
    let len = match stem.rfind('.') {
        Some(at) if at > 0 => at,
        _ => stem.len(),
    };
    &path[..begin + len]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(line: &str) -> Result<Template, Failure> {
        Template::new(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn placeholders_are_filled_once() {
        let values = Values { input: "{to}/a", to: "out", path: "sub/m.v1.safetensors" };
        for (word, expected) in [
            ("{in}", "{to}/a"),
            ("{out}.gguf", "out/sub/m.v1.gguf"),
            ("--output={to}/{path}.gguf", "--output=out/sub/m.v1.safetensors.gguf"),
            ("a{2}{", "a{2}{"),
            ("", ""),
        ] {
            assert_eq!(filled(word, &values), expected, "{word}");
        }
    }

    #[test]
    fn endings_are_left_out() {
        for (path, expected) in [
            ("m.safetensors", "m"),
            ("a.b/model.safetensors.index.json", "a.b/model"),
            ("a.b/model", "a.b/model"),
            (".hidden", ".hidden"),
            ("a.tar.gz", "a.tar"),
        ] {
            assert_eq!(without_ending(path), expected);
        }
    }

    #[test]
    fn commands_are_those_of_one_input() {
        for line in [
            "quantize {in} -o {out}.gguf --type q8_0",
            "quantize {in} --output={out}.gguf --type q8_0",
            "check {in}",
            "convert {in} {to}/{path}.gguf",
            "tensors {in} --digest",
        ] {
            template(line).unwrap();
        }
        for (line, expected) in [
            ("train linear --data {in}", "is not a command"),
            ("", "is not a command"),
            ("check x", "where the input"),
            ("convert {in} out.gguf", "where the output"),
            ("convert {in} {foo}.gguf", "`{foo}` is not a placeholder"),
            ("check {input}", "`{input}` is not a placeholder"),
            ("quantize {in} -o {out}.gguf", "--type"),
            ("check {in} --jsn", "--jsn"),
        ] {
            let failure = template(line).unwrap_err();
            assert!(failure.code() == CODE_USAGE && failure.what().contains(expected), "{failure}");
        }
        let quantize = template("quantize {in} --output={out}.gguf --type q8_0").unwrap();
        assert_eq!(quantize.named_outputs("a/b.apr"), ["a/b.gguf"]);
        for line in ["check {in} --json", "convert {in} sub{out}.gguf", "convert {in} {out}.gguf --dry-run"] {
            assert_eq!(template(line).unwrap_err().code(), CODE_USAGE, "{line}");
        }
        assert_eq!(template("inspect {in}").unwrap().named_outputs("a.apr"), ["a.apr.json"]);
    }
}
