//! The files of the project.

use core::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use apr_container::Compression;
use apr_models::{Accepts, AnyModel, Input, Model as _};
use json_scan::{Escape, push_string};

use super::answer::{Answer, Line, Says};
use super::file::{Format, ModelFile, Signature};
use super::service;
use super::template::Values;
use crate::commands::predict;
use crate::error::{CODE_USAGE, Failure};
use crate::input::NamedModel;
use crate::tables;
use crate::terminal::escape;

const MANIFEST: &str = include_str!("template/Cargo.toml.txt");
const README: &str = include_str!("template/README.md.txt");
const HELP: &str = include_str!("template/help.txt");
const MAIN: &str = include_str!("template/main.rs.txt");
const MODEL: &str = include_str!("template/model.rs.txt");
const NUMBERS: &str = include_str!("template/numbers.rs.txt");
const RECORDED: &str = include_str!("template/recorded.rs.txt");
const SERVE: &str = include_str!("template/serve.rs.txt");
const SERVED: &str = include_str!("template/served.rs.txt");

/// Name of the model's file in the project.
const FILE: &str = "model.apr";

/// Names of columns that the program's help lists, and how much of each.
const MAX_NAMES: usize = 24;
const MAX_NAME_CHARS: usize = 60;
/// Categories of a column that it lists.
const MAX_CATEGORIES: usize = 8;

/// Rows whose predictions are recorded.
const N_ROWS: usize = 5;

/// The kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A filter of lines.
    Lines,
    /// An HTTP service.
    Service,
}

/// What the compiler optimizes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Optimize {
    Size,
    Speed,
}

/// The folder of the crates in a checkout of this project.
#[derive(Debug)]
pub(super) struct Checkout(PathBuf);

impl Checkout {
    /// Finds the crates in a checkout; `folder` may also be the folder of the crates itself.
    ///
    /// # Errors
    ///
    /// If they are not there.
    pub(super) fn find(folder: &Path) -> Result<Self, Failure> {
        let places = [folder.join("crates"), folder.to_owned()];
        let place = places.into_iter().find(|place| place.join("apr-models/Cargo.toml").is_file());
        let place = place.and_then(|place| place.canonicalize().ok()).ok_or_else(|| {
            Failure::new(CODE_USAGE, "no checkout of the project: it has no crates/apr-models")
                .in_file(folder)
        })?;
        Ok(Self(place))
    }

    /// The source of a crate in a dependency.
    fn of(&self, name: &str) -> String {
        format!("path = {}", toml(&self.0.join(name).to_string_lossy()))
    }

    /// The versions of everything that the checkout is tested with; cargo drops what is not needed.
    fn lock(&self) -> Option<Vec<u8>> {
        fs::read(self.0.parent()?.join("Cargo.lock")).ok()
    }
}

/// A project to be written.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) name: String,
    pub(super) model: &'static str,
    pub(super) model_bytes: u64,
    /// Paths and contents of the files of the project.
    pub(super) files: Vec<(&'static str, Vec<u8>)>,
    pub(super) recorded: Option<Recorded>,
    /// Whether predictions use the bytes of the file without a copy.
    pub(super) is_view: bool,
    pub(super) is_verified: bool,
    /// Features of apr-container.
    pub(super) features: Vec<&'static str>,
    /// What to try it with, as a word of a command line: a row, or an address.
    pub(super) argument: String,
}

/// Rows, and a buffer for their predictions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    pub(super) rows: &'static str,
    pub(super) predictions: &'static str,
}

impl Project {
    /// # Errors
    ///
    /// If the model predicts nothing, or is compressed in a way that is not known here.
    pub(super) fn new(
        known: &NamedModel,
        file: &ModelFile,
        name: &str,
        shape: Shape,
        optimize: Optimize,
        checkout: &Checkout,
    ) -> Result<Self, Failure> {
        let answer = Answer::of(known)?;
        if shape == Shape::Service && !checkout.0.join("apr-serve").exists() {
            return Err(Failure::new(CODE_USAGE, "this checkout has no apr-serve").in_file(&checkout.0));
        }
        let loader = Loader::new(known, file, answer);
        let names = names(known, answer)?;
        let rows = rows(known, answer.line, shape);
        let example = rows.as_ref().and_then(|rows| rows.get(1)).cloned();
        let example = example.unwrap_or_else(|| "1,2,3".to_owned());
        let request = rows.as_ref().map(|rows| service::request(rows, answer.line));
        let answered = match shape {
            Shape::Service => service::answer(known, file, request.as_deref())?,
            Shape::Lines => None,
        };
        let asked = service::request(core::slice::from_ref(&example), answer.line);
        let example = if answer.line == Line::Text { escape::quoted(&example) } else { example };
        let mut filling =
            Filling { values: Values::default(), known, answer, loader: &loader, names: names.as_deref() };
        filling.project(name, shape, optimize, checkout, &example);
        filling.model(file);
        filling.values.text("request", escape::quoted(&asked));
        filling.values.part("recorded", answered.is_some());
        let values = filling.values;

        let mut files = vec![
            ("Cargo.toml", values.fill(MANIFEST).into_bytes()),
            (".gitignore", b"/target\n".to_vec()),
            ("README.md", values.fill(README).into_bytes()),
            (FILE, file.bytes.clone()),
        ];
        files.extend(checkout.lock().map(|lock| ("Cargo.lock", lock)));
        let mut recorded = None;
        match shape {
            Shape::Service => {
                files.push(("src/main.rs", values.fill(SERVE).into_bytes()));
                files.push(("tests/served.rs", values.fill(SERVED).into_bytes()));
                if let (Some(request), Some(answer)) = (request, answered) {
                    files.push(("tests/request.json", (request + "\n").into_bytes()));
                    files.push(("tests/answer.json", answer.into_bytes()));
                }
            }
            Shape::Lines => {
                files.push(("src/main.rs", values.fill(MAIN).into_bytes()));
                files.push(("src/help.txt", values.fill(HELP).into_bytes()));
                files.push(("src/model.rs", values.fill(MODEL).into_bytes()));
                files.push(("src/answer.rs", values.fill(answer.template).into_bytes()));
                if uses_numbers(answer) {
                    files.push(("src/numbers.rs", values.fill(NUMBERS).into_bytes()));
                }
                if let Some(rows) = rows {
                    files.push(("tests/recorded.rs", values.fill(RECORDED).into_bytes()));
                    files.push(("tests/rows.txt", (rows.join("\n") + "\n").into_bytes()));
                    recorded =
                        Some(Recorded { rows: "tests/rows.txt", predictions: "tests/predictions.txt" });
                }
            }
        }
        Ok(Self {
            name: name.to_owned(),
            model: known.model.name(),
            model_bytes: file.bytes.len() as u64,
            files,
            recorded,
            is_view: shape == Shape::Lines && loader.view.is_some(),
            is_verified: loader.is_signed,
            features: loader.features,
            argument: if shape == Shape::Service { "127.0.0.1:8080".to_owned() } else { example },
        })
    }
}

/// How the program loads its model.
struct Loader {
    view: Option<&'static str>,
    is_first: bool,
    /// Whether a signature is verified.
    is_signed: bool,
    /// Whether a signature is allowed that `load` would not take unverified.
    has_options: bool,
    features: Vec<&'static str>,
}

impl Loader {
    fn new(known: &NamedModel, file: &ModelFile, answer: Answer) -> Self {
        let Format::First { compression, signature } = &file.format else {
            return Self {
                view: None,
                is_first: false,
                is_signed: false,
                has_options: false,
                features: vec![],
            };
        };
        let is_signed = matches!(signature, Signature::Verified(_));
        let mut features = Vec::new();
        features.extend(is_signed.then_some("crypto"));
        match *compression {
            Compression::None => {}
            Compression::LZ4 => features.push("lz4"),
            _ => features.push("ruzstd"),
        }
        // An unfitted model fails when it predicts, and has no view.
        let is_view = *compression == Compression::None && known.model.n_features().is_some();
        Self {
            view: answer.view.filter(|_| is_view),
            is_first: true,
            is_signed,
            has_options: !matches!(signature, Signature::None),
            features,
        }
    }
}

/// The values of the templates.
struct Filling<'p> {
    values: Values,
    known: &'p NamedModel,
    answer: Answer,
    loader: &'p Loader,
    names: Option<&'p [String]>,
}

impl Filling<'_> {
    fn project(&mut self, name: &str, shape: Shape, optimize: Optimize, checkout: &Checkout, example: &str) {
        let (values, answer, loader) = (&mut self.values, self.answer, self.loader);
        let model = self.known.model.name();
        values.text("name", name);
        values.text("model", model);
        let article = if model.starts_with(['A', 'E', 'I', 'O', 'U']) { "n" } else { "" };
        values.text("A_model", format!("A{article} {model}"));
        values.text("a_model", format!("a{article} {model}"));
        values.text("opt", if optimize == Optimize::Size { "\"z\"" } else { "3" });
        values.text("container_source", checkout.of("apr-container"));
        values.text("crypto_source", checkout.of("apr-crypto"));
        values.text("models_source", checkout.of("apr-models"));
        let features: Vec<String> = loader.features.iter().map(|feature| toml(feature)).collect();
        let features = if features.is_empty() {
            String::new()
        } else {
            format!(", features = [{}]", features.join(", "))
        };
        values.text("container_features", features);
        values.text("example", example);
        let is_text = answer.line == Line::Text;
        values.text("lines", if is_text { "texts" } else { "rows, numbers separated by commas" });
        values.text("unit", if is_text { "text" } else { "row" });
        values.text("UNIT", if is_text { "TEXT" } else { "ROW" });
        values.text("input", input(self.known, answer.line));
        values.text(
            "names_rule",
            if self.known.features.is_some() { "; it has to name the features in their order" } else { "" },
        );
        values.part("signed", loader.is_signed);
        values.part("header", !is_text);
        values.part("numbers", !is_text);
        values.part("texts", is_text);
        values.part("features", !is_text && self.known.features.is_some());
        values.text("serve_source", checkout.of("apr-serve"));
        values.part("lines", shape == Shape::Lines);
        values.part("served", shape == Shape::Service);
        // A service needs it for the features alone.
        values.part("container", shape == Shape::Lines || !loader.features.is_empty());
    }

    fn model(&mut self, file: &ModelFile) {
        let imports = self.imports();
        let (values, answer, loader, known) = (&mut self.values, self.answer, self.loader, self.known);
        values.text("file", FILE);
        values.text("imports", imports);
        values.text("type", type_of(&known.model));
        let view = loader.view.map(|view| format!("{view}<'static>"));
        values.text("model_type", view.unwrap_or_else(|| type_of(&known.model)));
        values.text("loader", if loader.view.is_some() { "view" } else { "load" });
        values.part("first", loader.is_first);
        values.part("tensors", !loader.is_first);
        values.part("options", loader.is_first && loader.has_options);
        values.part("plain", loader.is_first && !loader.has_options);
        values.part("view", loader.view.is_some());
        values.part("owned", loader.view.is_none());
        match &file.format {
            Format::First { signature: Signature::Verified(key), .. } => {
                values.text("signer", format!("{:?}", key.as_bytes()));
            }
            Format::Tensors { reader } => values.text("reader", *reader),
            Format::First { .. } => {}
        }
        let list = |names: &[String]| format!("{names:?}");
        values.text("features", list(known.features.as_deref().unwrap_or_default()));
        values.text("classes", list(self.names.unwrap_or_default()));
        let has_names = self.names.is_some();
        values.part("names", has_names);
        // Those of an .apr file of version 1 come with it.
        let classes = known.classes.as_deref().filter(|_| !loader.is_first);
        values.part("classes", classes.is_some());
        values.text("class_names", list(classes.unwrap_or_default()));
        values.part("numbered", !has_names);
        if let AnyModel::Pipeline(pipeline) = &*known.model
            && let Input::Numbers { accepts, .. } = pipeline.input()
        {
            values.part("missing", *accepts != Accepts::Finite);
            values.part("anything", *accepts == Accepts::Anything);
        }
        values.part("read", answer.line != Line::Text);
        values.part("narrow", answer.line == Line::Narrow);
        values.part("wide", answer.line == Line::Wide);
        values.part("show", answer.says == Says::Numbers);
        values.text("missing", format!("{:?}", tables::MISSING));
        values.part("number_file", uses_numbers(answer));
    }

    /// The `use` lines of the module of the model.
    fn imports(&self) -> String {
        let loader = self.loader;
        let mut out = String::new();
        let mut container = Vec::new();
        if loader.is_first {
            container.extend(["Embedded", "Error"]);
            container.extend(loader.has_options.then_some("ReadOptions"));
            container.extend(loader.has_options.then_some("UncheckedSignature"));
            container.push("embed_model");
            container.extend(loader.is_signed.then_some("verify_signature"));
            out += &using("apr_container", &container);
        }
        if loader.is_signed {
            out += "use apr_crypto::VerifyingKey;\n";
        }
        let model = self.known.model.name();
        let model = if model == "DBSCAN" { "Dbscan" } else { model };
        let mut models = vec![model];
        models.extend(loader.view);
        if model == "MixtureOfExperts" {
            models.push("LinearRegression");
        }
        if !loader.is_first {
            models.extend(["Error", "Tensors"]);
        }
        models.sort_unstable();
        out + &using("apr_models", &models)
    }
}

/// The line, or the lines, that bring these items.
fn using(from: &str, items: &[&str]) -> String {
    if let [item] = items {
        return format!("use {from}::{item};\n");
    }
    let line = format!("use {from}::{{{}}};\n", items.join(", "));
    if line.len() <= 101 { line } else { format!("use {from}::{{\n    {},\n}};\n", items.join(", ")) }
}

/// The type in the library.
fn type_of(model: &AnyModel) -> String {
    match model {
        AnyModel::MixtureOfExperts(_) => "MixtureOfExperts<LinearRegression>".to_owned(),
        model => model.name().to_owned(),
    }
}

fn uses_numbers(answer: Answer) -> bool {
    answer.line != Line::Text || answer.says == Says::Numbers
}

/// A string of TOML. Rust escapes what TOML wants escaped.
fn toml(text: &str) -> String {
    format!("{text:?}")
}

/// The output for each class or index, if that is not the index.
fn names(known: &NamedModel, answer: Answer) -> Result<Option<Vec<String>>, Failure> {
    match answer.says {
        Says::Place(count) => predict::names(known, count).map(Some),
        Says::Class => known.classes.as_ref().map(|classes| predict::names(known, classes.len())).transpose(),
        Says::Numbers | Says::Mark => Ok(None),
    }
}

/// The description of the input in the program's help.
fn input(known: &NamedModel, line: Line) -> String {
    if line == Line::Text {
        return "Each TEXT is an argument. Without arguments, each line of standard input is a text."
            .to_owned();
    }
    let width = known.n_features();
    let mut out = match width {
        Some(1) => "Each ROW is an argument: one number".to_owned(),
        Some(width) => format!("Each ROW is an argument: {width} numbers separated by commas"),
        None => "Each ROW is an argument: numbers separated by commas".to_owned(),
    };
    if let Some(names) = &known.features {
        out += ", in this order:\n";
        for (idx, name) in names.iter().enumerate().take(MAX_NAMES) {
            let _ = write!(out, "  {}", escape::cut(name, MAX_NAME_CHARS));
            let categories = known.categories.as_ref().and_then(|known| known.of_features.get(idx));
            for (number, name) in categories.into_iter().flatten().enumerate().take(MAX_CATEGORIES) {
                let begin = if number == 0 { ", the number of a category:" } else { "," };
                let _ = write!(out, "{begin} {number} {}", escape::cut(name, MAX_NAME_CHARS));
            }
            let rest = categories.map_or(0, |names| names.len().saturating_sub(MAX_CATEGORIES));
            out += if rest > 0 { ", ...\n" } else { "\n" };
        }
        if let Some(rest) = names.len().checked_sub(MAX_NAMES).filter(|&rest| rest > 0) {
            let _ = writeln!(out, "  ... and {rest} more");
        }
    } else {
        out += ".\n";
    }
    out + "Without arguments, rows are read from standard input, one per line."
}

/// Rows of any values whose predictions are worth recording; `None` for a model that does not store their length. A service takes names of
/// categories, as JSON.
fn rows(known: &NamedModel, line: Line, shape: Shape) -> Option<Vec<String>> {
    if line == Line::Text {
        let words = match &*known.model {
            AnyModel::CountVectorizer(model) => some_of(|idx| model.vocabulary().get(idx)),
            AnyModel::TfIdf(model) => some_of(|idx| model.vocabulary().get(idx)),
            AnyModel::Pipeline(model) => match model.input() {
                Input::Texts(texts) => {
                    let terms = texts.terms();
                    some_of(|idx| terms.get(idx).copied())
                }
                _ => String::new(),
            },
            _ => String::new(),
        };
        let texts = ["What is this about", &words, "the cat sat on the mat", "a b c"];
        return Some(texts.iter().filter(|text| !text.is_empty()).map(|&text| text.to_owned()).collect());
    }
    let width = known.n_features().filter(|&width| width > 0)?;
    let row = |row: usize| {
        let mut line = String::new();
        for column in 0..width {
            line += if column > 0 { "," } else { "" };
            let value = (row * (2 + column % 7) + column * 3) % 23;
            let categories = known.categories.as_ref().and_then(|known| known.of_features.get(column));
            match categories.map_or(&[][..], Vec::as_slice) {
                // Quarters: as many digits as a float has, and no more. The second row is the example of the help and has no sign.
                [] => {
                    line +=
                        &(value as f32 * 0.25 - if row.is_multiple_of(2) { 1.5 } else { 0.0 }).to_string();
                }
                names if shape == Shape::Service => {
                    push_string(&mut line, &names[(row + column) % names.len()], Escape::Ascii);
                }
                names => line += &((row + column) % names.len()).to_string(),
            }
        }
        line
    };
    Some((0..N_ROWS).map(row).collect())
}

/// A few terms, which are what texts are taken apart into. They become words of command lines and of a README, so only plain
/// ones are taken: a file may hold any characters.
fn some_of<'t>(term: impl Fn(usize) -> Option<&'t str>) -> String {
    let is_plain =
        |term: &&str| term.chars().all(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.'));
    let terms: Vec<&str> = (0..8).map_while(term).filter(is_plain).collect();
    terms.join(" ")
}
