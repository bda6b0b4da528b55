//! Keys of JSON whose values loaders import, call, download or render.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use pickle_core::Error;

use crate::document::{self, Event, Step};
use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::{allowed, denied, targets, template, yaml};

/// Documents in texts of each other.
const MAX_DEPTH: u32 = 3;

/// Packages whose classes PEFT may look up.
const PARENTS: [&str; 3] = ["transformers.", "peft.", "diffusers."];

/// Libraries of components in `model_index.json` of diffusers, and modules of its own that have components.
const LIBRARIES: [&str; 20] = [
    "diffusers",
    "transformers",
    "onnxruntime.training",
    "flax",
    "alt_diffusion",
    "audioldm2",
    "blip_diffusion",
    "deepfloyd_if",
    "kandinsky",
    "latent_diffusion",
    "paint_by_example",
    "semantic_stable_diffusion",
    "shap_e",
    "spectrogram_diffusion",
    "stable_audio",
    "stable_diffusion",
    "stable_diffusion_safe",
    "unclip",
    "unidiffuser",
    "wuerstchen",
];

/// Models of sentence-transformers.
const SENTENCES: [&str; 22] = [
    "Asym",
    "BoW",
    "CLIPModel",
    "CNN",
    "Dense",
    "Dropout",
    "LSTM",
    "LayerNorm",
    "MLMTransformer",
    "Module",
    "Normalize",
    "Pooling",
    "Router",
    "SparseAutoEncoder",
    "SparseStaticEmbedding",
    "SpladePooling",
    "StaticEmbedding",
    "Transformer",
    "WeightedLayerPooling",
    "WordEmbeddings",
    "WordWeights",
    "InputModule",
];

/// Handlers that TorchServe has itself.
const HANDLERS: [&str; 5] =
    ["image_classifier", "image_segmenter", "object_detector", "text_classifier", "text_handler"];

/// Types of Python that skops writes.
const TYPES: [&str; 15] = [
    "bool",
    "bytearray",
    "bytes",
    "complex",
    "dict",
    "float",
    "frozenset",
    "int",
    "list",
    "range",
    "set",
    "slice",
    "str",
    "tuple",
    "NoneType",
];

/// What a document names: offsets and problems, at most `kept` of them. `name` is that of its file.
pub(super) fn scan(
    reader: &mut Reader<'_>,
    at: u64,
    name: &str,
    kept: usize,
) -> Result<Vec<(u64, Problem)>, Error> {
    let mut rules = Rules::new(name, kept, 0);
    rules.document(reader, at)?;
    Ok(rules.found.sorted())
}

struct Rules<'n> {
    /// Name of the file, without folders.
    name: &'n str,
    kept: usize,
    depth: u32,
    found: Kept,
    /// Of each open object, what skops says of it.
    nodes: Vec<Node>,
    /// Components of a pipeline of diffusers, if it is one.
    components: Vec<(u64, Problem)>,
    is_pipeline: bool,
    /// Modules of sentence-transformers, if the document is a list of them.
    modules: Vec<(u64, Problem)>,
    has_path: bool,
}

/// What skops writes of an object.
#[derive(Default)]
struct Node {
    at: u64,
    module: String,
    class: String,
    loader: String,
    /// The module and the name of a function.
    path: String,
    function: String,
}

impl<'n> Rules<'n> {
    fn new(name: &'n str, kept: usize, depth: u32) -> Self {
        let name = name.rsplit(['/', '\\']).next().unwrap_or_default();
        Self {
            name,
            kept,
            depth,
            found: Kept::new(kept),
            nodes: Vec::new(),
            components: Vec::new(),
            is_pipeline: name.ends_with("model_index.json"),
            modules: Vec::new(),
            has_path: false,
        }
    }

    fn document(&mut self, reader: &mut Reader<'_>, at: u64) -> Result<(), Error> {
        let mut visited = Ok(());
        let is_whole = document::walk(reader, at, |steps, event| {
            if visited.is_ok() {
                visited = self.event(steps, event);
            }
        })?;
        visited?;
        if !is_whole {
            self.found.add(at, Problem::Unopened { reason: "JSON that is nested too deep" });
        }
        for (is_used, problems) in
            [(self.is_pipeline, &mut self.components), (self.has_path, &mut self.modules)]
        {
            for (at, problem) in core::mem::take(problems).into_iter().filter(|_| is_used) {
                self.found.add(at, problem);
            }
        }
        Ok(())
    }

    fn event(&mut self, steps: &[Step], event: Event<'_>) -> Result<(), Error> {
        match event {
            Event::Open => self.nodes.push(Node::default()),
            Event::Close => {
                let node = self.nodes.pop();
                node.into_iter().for_each(|node| self.skops(&node));
            }
            Event::Word(word) => {
                self.inside(steps, if ["null", "false"].contains(&word) { "" } else { word });
                if word == "true" && key(steps).is_some_and(|step| step.key == "trust_remote_code") {
                    self.setting(steps, "trust_remote_code");
                }
            }
            Event::Text(text) => {
                self.inside(steps, text);
                self.text(steps, text)?;
            }
        }
        Ok(())
    }

    /// Keys that count with all that is below them.
    fn inside(&mut self, steps: &[Step], value: &str) {
        for step in steps.iter().filter(|step| !step.is_list && !value.is_empty()) {
            let problem = match step.key.as_str() {
                "auto_map" => Problem::RemoteCode {},
                "custom_pipelines" => Problem::CodeSetting { key: step.key.clone() },
                // A repository of kernels.
                "attn_implementation" | "_attn_implementation" | "_attn_implementation_internal"
                    if value.contains('/') =>
                {
                    Problem::CodeSetting { key: step.key.clone() }
                }
                _ => continue,
            };
            self.once(step.at, problem);
        }
    }

    fn text(&mut self, steps: &[Step], text: &str) -> Result<(), Error> {
        let Some(step) = key(steps) else { return Ok(()) };
        let (at, is_list) = (step.at, steps.last().is_some_and(|step| step.is_list));
        if steps.iter().any(|step| step.key.contains("chat_template")) {
            if step.key != "name" {
                self.once(at, template::judge(text));
            }
            return Ok(());
        }
        let problem = match step.key.as_str() {
            // Other templates are no programs.
            "template" => Some(template::judge(text)).filter(|problem| *problem == Problem::TemplateCode {}),
            "parent_library" if !PARENTS.iter().any(|parent| text.starts_with(parent)) => {
                self.code(&step.key)
            }
            "_class_name" if is_list => self.code(&step.key),
            "_class_name" => {
                self.is_pipeline |= text.ends_with("Pipeline");
                None
            }
            "_target_" => targets::judge(text),
            "target" | "class_path" => targets::judge_path(text),
            "handler" if self.name == "MANIFEST.json" && !HANDLERS.contains(&text) => self.code(&step.key),
            "requirementsFile" if self.name == "MANIFEST.json" => self.code(&step.key),
            _ => None,
        };
        problem.into_iter().for_each(|problem| self.once(at, problem));
        self.component(steps, step, text);
        self.module(steps, step, text);
        self.node(step, text);
        self.nested(at, text)
    }

    fn code(&self, key: &str) -> Option<Problem> {
        Some(Problem::CodeSetting { key: key.into() })
    }

    fn setting(&mut self, steps: &[Step], name: &str) {
        let at = key(steps).map_or(0, |step| step.at);
        self.once(at, Problem::CodeSetting { key: name.into() });
    }

    /// The library of a component: the first of two in a list at the root.
    fn component(&mut self, steps: &[Step], step: &Step, text: &str) {
        if let [_, Step { is_list: true, idx: 0, .. }] = steps
            && !LIBRARIES.contains(&text)
            && step.key != "_class_name"
        {
            self.components.push((step.at, Problem::CodeSetting { key: step.key.clone() }));
        }
    }

    /// The type of a module of sentence-transformers, in a list at the root.
    fn module(&mut self, steps: &[Step], step: &Step, text: &str) {
        let [Step { is_list: true, .. }, Step { is_list: false, .. }] = steps else { return };
        self.has_path |= step.key == "path";
        let (module, class) = text.rsplit_once('.').unwrap_or(("", text));
        let is_own = (module == "sentence_transformers" || module.starts_with("sentence_transformers."))
            && SENTENCES.contains(&class);
        if step.key == "type" && !is_own {
            self.modules.push((step.at, targets::named(text)));
        }
    }

    fn node(&mut self, step: &Step, text: &str) {
        let Some(node) = self.nodes.last_mut() else { return };
        let field = match step.key.as_str() {
            "__module__" => &mut node.module,
            "__class__" => &mut node.class,
            "__loader__" => &mut node.loader,
            "module_path" => &mut node.path,
            "function" => &mut node.function,
            _ => return,
        };
        *field = text.to_string();
        node.at = step.at;
    }

    /// An object of skops: types of scikit-learn and its like, and functions that pickles may have.
    fn skops(&mut self, node: &Node) {
        let is_function = !node.path.is_empty() && !node.function.is_empty();
        if node.loader.is_empty() && !is_function {
            return;
        }
        let (module, name) =
            if is_function { (&node.path, &node.function) } else { (&node.module, &node.class) };
        let root = module.split('.').next().unwrap_or_default();
        let is_known = match node.loader.as_str() {
            "MethodNode" | "OperatorFuncNode" => false,
            "FunctionNode" | "" => allowed::usage(module, name).is_some(),
            _ if ["sklearn", "numpy", "scipy"].contains(&root) => denied::reason(module, name).is_none(),
            _ if module == "builtins" => TYPES.contains(&name.as_str()),
            _ => allowed::usage(module, name).is_some(),
        };
        if !is_known {
            self.once(node.at, targets::named(&alloc::format!("{module}.{name}")));
        }
    }

    /// A document in a text, as metadata of safetensors have it.
    fn nested(&mut self, at: u64, text: &str) -> Result<(), Error> {
        let is_document = text.trim_start().starts_with(['{', '[']);
        if !is_document && text.contains("_target_") {
            yaml::scan(text).into_iter().for_each(|(_, problem)| self.once(at, problem));
        }
        if !is_document {
            return Ok(());
        }
        if self.depth == MAX_DEPTH {
            self.once(at, Problem::Unopened { reason: "JSON in texts that are nested too deep" });
            return Ok(());
        }
        let mut inner = Rules::new("", self.kept, self.depth + 1);
        inner.document(&mut Reader::new(&text.as_bytes()), 0)?;
        inner.found.sorted().into_iter().for_each(|(_, problem)| self.once(at, problem));
        Ok(())
    }

    fn once(&mut self, at: u64, problem: Problem) {
        let known = (at, problem);
        if !self.found.as_slice().contains(&known) {
            self.found.add(known.0, known.1);
        }
    }
}

/// The innermost object's key, also of an element of a list.
fn key(steps: &[Step]) -> Option<&Step> {
    steps.iter().rev().find(|step| !step.is_list)
}
