//! Keys of JSON whose values loaders import, call, download or render.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use pickle_core::Error;

use super::lists::{HANDLERS, LIBRARIES, PARENTS, SENTENCE_PACKAGES, SENTENCES, TYPES};
use crate::document::{self, Event, Step};
use crate::kept::Kept;
use crate::problem::Problem;
use crate::reader::Reader;
use crate::{allowed, denied, targets, template, yaml};

/// Documents in texts of each other.
const MAX_DEPTH: u32 = 3;

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
        for step in innermost(steps).filter(|step| !step.is_list && !value.is_empty()) {
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
        let is_template = innermost(steps).any(|step| step.key.contains("chat_template"));
        // In a list, each template has a name beside it.
        let is_name = step.key == "name" && matches!(steps, [.., Step { is_list: true, .. }, _]);
        if is_template && !is_name {
            self.once(at, template::judge(text));
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
            key if self.is_imported(key, steps) && text.contains('.') => {
                Some(targets::named(text)).filter(|_| !targets::is_known(text, &SENTENCE_PACKAGES))
            }
            _ => None,
        };
        problem.into_iter().for_each(|problem| self.once(at, problem));
        self.component(steps, step, text);
        self.module(steps, step, text);
        self.node(step, text);
        self.nested(at, text)
    }

    /// Whether sentence-transformers imports the value of a key if it has dots.
    fn is_imported(&self, key: &str, steps: &[Step]) -> bool {
        let is_type = matches!(steps, [.., types, Step { is_list: false, .. }] if types.key == "types");
        ["activation_function", "activation_fn", "tokenizer_class"].iter().any(|name| key.ends_with(name))
            || is_type && self.name.ends_with("config.json")
    }

    fn code(&self, key: &str) -> Option<Problem> {
        Some(Problem::CodeSetting { key: key.into() })
    }

    fn setting(&mut self, steps: &[Step], name: &str) {
        let at = key(steps).map_or(0, |step| step.at);
        self.once(at, Problem::CodeSetting { key: name.into() });
    }

    /// The library of a component: the first of two in a list at the root, or in that of its type.
    fn component(&mut self, steps: &[Step], step: &Step, text: &str) {
        let is_hint = |hint: &Step| hint.key == "type_hint";
        let is_library = match steps {
            [_, Step { is_list: true, idx: 0, .. }] => true,
            [_, Step { is_list: true, .. }, hint, Step { is_list: true, idx: 0, .. }] => is_hint(hint),
            _ => false,
        };
        if is_library && !LIBRARIES.contains(&text) && step.key != "_class_name" {
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
        let is_function = ["", "FunctionNode"].contains(&node.loader.as_str())
            && !node.path.is_empty()
            && !node.function.is_empty();
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
        let start = text.trim_start();
        let is_template = ["{%", "{{", "{#"].iter().any(|mark| start.starts_with(mark));
        let is_document = start.starts_with(['{', '[']) && !is_template;
        let is_yaml = text.contains("_target_") || text.contains(':') && text.contains(['\n', '\r', '!']);
        for (_, problem) in is_yaml.then(|| yaml::scan(text)).into_iter().flatten() {
            // Programs and prose have `!!`, too.
            let is_used = match &problem {
                Problem::YamlTag { tag } if tag.starts_with("!!") => tag.contains('/') && tag.contains(':'),
                Problem::YamlTag { tag } => tag.contains([':', '%']),
                _ => !is_document,
            };
            if is_used {
                self.once(at, problem);
            }
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

/// Deepest values that belong to a key.
const MAX_BELOW: usize = 8;

fn innermost(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().rev().take(MAX_BELOW)
}

/// The innermost object's key, also of an element of a list.
fn key(steps: &[Step]) -> Option<&Step> {
    steps.iter().rev().find(|step| !step.is_list)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn codes_of(name: &str, text: &str) -> Vec<(u64, &'static str)> {
        let found = scan(&mut Reader::new(&text.as_bytes()), 0, name, 20).expect("in memory");
        found.iter().map(|(at, problem)| (*at, problem.code())).collect()
    }

    fn codes(text: &str) -> Vec<(u64, &'static str)> {
        codes_of("", text)
    }

    const SETTING: &str = "sc-code-setting";
    const TARGET: &str = "sc-config-target";
    const CODE: &str = "sc-config-code";

    #[test]
    fn keys_of_transformers_name_code() {
        for (text, expected) in [
            (r#"{"auto_map":{"AutoModel":"x.Y"}}"#, Some("sc-remote-code")),
            (r#"[[{"a":{"auto_map":["x.Y"]}}]]"#, Some("sc-remote-code")),
            (r#"{"auto_map":{"a":1}}"#, Some("sc-remote-code")),
            (r#"{"auto_map":{"a":null}}"#, None),
            (r#"{"auto_map":false}"#, None),
            (r#"{"custom_pipelines":{"x":{"impl":"a.B"}}}"#, Some(SETTING)),
            (r#"{"custom_pipelines":{}}"#, None),
            (r#"{"attn_implementation":"a/kernels"}"#, Some(SETTING)),
            (r#"{"_attn_implementation":"a/kernels"}"#, Some(SETTING)),
            (r#"{"_attn_implementation_internal":{"text":"a/kernels"}}"#, Some(SETTING)),
            (r#"{"attn_implementation":"sdpa"}"#, None),
            (r#"{"_name_or_path":"a/b"}"#, None),
            (r#"{"trust_remote_code":true}"#, Some(SETTING)),
            (r#"{"trust_remote_code":false}"#, None),
            (r#"{"trust":true}"#, None),
            (r#"{"activation_function":"evil.f"}"#, Some(TARGET)),
            (r#"{"activation_function":"torch.nn.functional.torch.save"}"#, Some(TARGET)),
            (r#"{"activation_function":"torch.nn.modules.activation.Tanh"}"#, None),
            (r#"{"activation_function":"gelu_new"}"#, None),
            (r#"{"sbert_ce_default_activation_function":"evil.f"}"#, Some(TARGET)),
            (r#"{"sentence_transformers":{"activation_fn":"os.system"}}"#, Some(CODE)),
            (r#"{"sentence_transformers":{"activation_fn":"torch.nn.modules.linear.Identity"}}"#, None),
            (r#"{"tokenizer_class":"evil.Cls"}"#, Some(TARGET)),
            (r#"{"tokenizer_class":"LlamaTokenizerFast"}"#, None),
            (
                r#"{"tokenizer_class":"sentence_transformers.models.tokenizer.WhitespaceTokenizer.WhitespaceTokenizer"}"#,
                None,
            ),
            (r#"{"tokenizer_class":"sentence_transformers.util.http_get"}"#, Some(TARGET)),
            (r#"{"tokenizer_class":"sentence_transformers.util.os.PathLike"}"#, Some(TARGET)),
            (r#"{"auto_mapping":{"parent_library":"evil"}}"#, Some(SETTING)),
            (r#"{"auto_mapping":{"parent_library":"transformers.models.llama"}}"#, None),
            (r#"{"auto_mapping":{"parent_library":"peft.x"}}"#, None),
            (r#"{"auto_mapping":{"parent_library":"diffusers.x"}}"#, None),
            (r#"{"auto_mapping":{"parent_library":null}}"#, None),
        ] {
            let found: Vec<_> = codes(text).into_iter().map(|(_, code)| code).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{text}");
        }
        assert_eq!(codes(r#" {"auto_map":{"a":"b","c":"d"}}"#), [(2, "sc-remote-code")], "once, at its key");
        assert_eq!(codes(r#"{"a":{"trust_remote_code":true}}"#), [(6, SETTING)]);
        let below = |depth: usize| format!(r#"{{"auto_map":{}"a"{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert_eq!((codes(&below(MAX_BELOW - 1)).len(), codes(&below(MAX_BELOW)).len()), (1, 0));
    }

    #[test]
    fn pipelines_of_diffusers_have_its_own_components() {
        let index =
            |library: &str, class: &str| format!(r#"{{"unet":["{library}","X"],"_class_name":{class}}}"#);
        for library in LIBRARIES {
            assert_eq!(codes(&index(library, r#""APipeline""#)), [], "{library}");
        }
        assert_eq!(codes(&index("evil", r#""APipeline""#)), [(1, SETTING)]);
        assert_eq!(codes(&index("evil", r#""UNet2DModel""#)), [], "the list is none of components");
        assert_eq!(codes_of("a/model_index.json", &index("evil", r#""UNet2DModel""#)), [(1, SETTING)]);
        assert_eq!(codes(&index("diffusers", r#"["x","APipeline"]"#)), [(26, SETTING)]);
        let hint = |key: &str, library: &str| {
            let text = format!(r#"{{"unet":["diffusers","X",{{"{key}":["{library}","X"]}}]}}"#);
            codes_of("modular_model_index.json", &text)
        };
        assert_eq!(hint("type_hint", "evil"), [(26, SETTING)]);
        assert_eq!(hint("type_hint", "transformers"), []);
        assert_eq!(hint("size", "evil"), []);
        assert_eq!(
            codes_of("model_index.json", r#"{"a":["flax",["evil"]],"b":[null,null],"c":{"d":["evil"]}}"#),
            []
        );
    }

    #[test]
    fn modules_of_sentence_transformers_are_its_own() {
        let modules = |kind: &str| format!(r#"[{{"idx":0,"path":"","type":"{kind}"}}]"#);
        for class in SENTENCES {
            assert_eq!(codes(&modules(&format!("sentence_transformers.models.{class}"))), [], "{class}");
        }
        assert_eq!(codes(&modules("sentence_transformers.Pooling")), []);
        let types = r#"{"types":{"a":"evil.Cls","b":"sentence_transformers.models.Dense"}}"#;
        assert_eq!(codes_of("a/router_config.json", types), [(10, TARGET)]);
        assert_eq!(codes_of("config.json", types), [(10, TARGET)]);
        assert_eq!(codes_of("package.json", types), []);
        for (kind, code) in [
            ("custom_st.Transformer", TARGET),
            ("sentence_transformersx.Pooling", TARGET),
            ("sentence_transformers.util.http_get", TARGET),
            ("Pooling", TARGET),
            ("os.system", CODE),
        ] {
            assert_eq!(codes(&modules(kind)), [(20, code)], "{kind}");
        }
        assert_eq!(codes(r#"[{"type":"x.Y"}]"#), [], "a list of something else");
        assert_eq!(codes(r#"{"a":{"path":"","type":"x.Y"}}"#), []);
    }

    #[test]
    fn targets_are_found_in_texts_and_lists() {
        for (text, expected) in [
            (r#"{"_target_":"os.makedirs"}"#, &[(1, CODE)][..]),
            (r#"{"a":[{"_target_":"x.y"}]}"#, &[(7, TARGET)]),
            (r#"{"_target_":"torch.nn.Linear"}"#, &[]),
            (r#"{"target":"x.y"}"#, &[(1, TARGET)]),
            (r#"{"class_path":"x.y"}"#, &[(1, TARGET)]),
            (r#"{"target":"word"}"#, &[]),
            (r#"{"a":"{\"_target_\":\"os.x\"}"}"#, &[(1, CODE)]),
            (r#"{"a":" [{\"\u005ftarget_\":\"os.x\"}]"}"#, &[(1, CODE)]),
            (r#"{"a":"b:\n  _target_: os.x\n"}"#, &[(1, CODE)]),
            (r#"{"a":"target: os.x"}"#, &[]),
            (r#"{"a":"m:\n  target: os.x\n"}"#, &[(1, CODE)]),
            (r#"{"a":"b: !!python/name:os.x"}"#, &[(1, "sc-yaml-tag")]),
            (r#"{"a":"b: !new:os.x"}"#, &[(1, "sc-yaml-tag")]),
            (r#"{"a":"{b: !!python/name:os.x}"}"#, &[(1, "sc-yaml-tag")]),
            (r#"{"a":"%TAG ! tag:a\n--- !b"}"#, &[(1, "sc-yaml-tag")]),
            (r#"{"a":"b:\n!!note: <b>!</b>"}"#, &[]),
            (r#"{"a":"[\"target: x.y\"]\n"}"#, &[]),
            (r#"{"a":"f(x) {\n  return {a: !!x}\n}"}"#, &[]),
        ] {
            assert_eq!(codes(text), expected, "{text}");
        }
        let nested = |depth: u32| {
            let mut text = String::from(r#"{"_target_":"os.x"}"#);
            for _ in 0..depth {
                text = format!(r#"{{"a":"{}"}}"#, text.replace('\\', "\\\\").replace('"', "\\\""));
            }
            codes(&text)
        };
        assert_eq!(nested(MAX_DEPTH), [(1, CODE)]);
        assert_eq!(nested(MAX_DEPTH + 1), [(1, "sc-unopened")]);
        let deep = "[".repeat(2000);
        assert_eq!(codes(&deep), [(0, "sc-unopened")]);
    }

    #[test]
    fn templates_are_found_in_each_form() {
        let (note, code) = ("sc-chat-template", "sc-template-code");
        for (text, expected) in [
            (r#"{"chat_template":"{{ x }}"}"#, &[(1, note)][..]),
            (r#"{"chat_template":[{"name":"{{ x._y }}","template":"{{ x._y }}"}]}"#, &[(39, code)]),
            (r#"{"chat_template":{"default":"{{ x._y }}"}}"#, &[(18, code)]),
            (r#"{"tokenizer.chat_template":"{{ x._y }}"}"#, &[(1, code)]),
            (r#"{"template":"{{ x._y }}"}"#, &[(1, code)]),
            (r#"{"template":"{{ x|unknown }}{{"}"#, &[]),
            (r#"{"chat_template":"{\"_target_\":\"os.x\"}"}"#, &[(1, note), (1, CODE)]),
            (r#"{"chat_template":"{{ {\"auto_map\": 1} }}"}"#, &[(1, note)]),
            (r#"{"chat_template":{"_target_":"os.x"}}"#, &[(18, note), (18, CODE)]),
            (r#"{"chat_template":{"name":"{{ x.__class__ }}"}}"#, &[(18, code)]),
            (r#"{"chat_template":{"name":["{{ x.__class__ }}"]}}"#, &[(18, code)]),
        ] {
            assert_eq!(codes(text), expected, "{text}");
        }
    }

    #[test]
    fn archives_of_torchserve_name_its_own_handlers() {
        for handler in HANDLERS {
            assert_eq!(
                codes_of("MAR-INF/MANIFEST.json", &format!(r#"{{"handler":"{handler}"}}"#)),
                [],
                "{handler}"
            );
        }
        for (name, text, expected) in [
            ("MAR-INF/MANIFEST.json", r#"{"model":{"handler":"h.py"}}"#, &[(10, SETTING)][..]),
            ("MANIFEST.json", r#"{"requirementsFile":"r.txt"}"#, &[(1, SETTING)]),
            ("config.json", r#"{"handler":"h.py","requirementsFile":"r.txt"}"#, &[]),
        ] {
            assert_eq!(codes_of(name, text), expected, "{text}");
        }
    }

    #[test]
    fn types_of_skops_are_those_of_pickles() {
        let node = |loader: &str, module: &str, class: &str| {
            format!(r#"{{"__class__":"{class}","__module__":"{module}","__loader__":"{loader}"}}"#)
        };
        for class in TYPES {
            assert_eq!(codes(&node("JsonNode", "builtins", class)), [], "{class}");
        }
        for (loader, module, class, code) in [
            ("ObjectNode", "sklearn.pipeline", "Pipeline", ""),
            ("NdArrayNode", "numpy", "ndarray", ""),
            ("ObjectNode", "scipy.sparse", "csr_matrix", ""),
            ("OrderedDictNode", "collections", "OrderedDict", ""),
            ("ObjectNode", "evil", "Model", TARGET),
            ("ObjectNode", "builtins", "eval", CODE),
            ("ObjectNode", "builtins", "type", CODE),
            ("ObjectNode", "numpy", "load", CODE),
            ("MethodNode", "sklearn.pipeline", "Pipeline", TARGET),
            ("OperatorFuncNode", "sklearn.pipeline", "Pipeline", TARGET),
            ("FunctionNode", "sklearn.datasets", "fetch_openml", TARGET),
            ("FunctionNode", "os", "system", CODE),
        ] {
            let found: Vec<_> =
                codes(&node(loader, module, class)).into_iter().map(|(_, code)| code).collect();
            assert_eq!(found.first().copied().unwrap_or_default(), code, "{loader} {module}.{class}");
        }
        assert_eq!(codes(r#"{"__class__":"x","__module__":"os"}"#), [], "without a loader");
        let function = r#"{"content":{"module_path":"os","function":"system"}}"#;
        assert_eq!(codes(function), [(31, CODE)]);
        assert_eq!(codes(r#"{"module_path":"os","function":""}"#), []);
        assert_eq!(codes(r#"{"function":"system"}"#), []);
        for (loader, module, expected) in [
            ("ObjectNode", "numpy", &[(0, CODE)][..]),
            ("FunctionNode", "numpy", &[]),
            ("FunctionNode", "os", &[(0, CODE)]),
        ] {
            let text = format!(
                r#"{{"__class__":"system","__module__":"os","__loader__":"{loader}","module_path":"{module}","function":"log1p"}}"#
            );
            let found: Vec<_> = codes(&text).into_iter().map(|(_, code)| (0, code)).collect();
            assert_eq!(found, expected, "{loader} {module}");
        }
        // Of each object by itself.
        let two = r#"[{"__module__":"os","__loader__":"ObjectNode","a":{"__class__":"x"}}]"#;
        assert_eq!(codes(two), [(20, CODE)]);
    }

    #[test]
    fn as_many_are_kept_as_are_wanted() {
        let text = r#"{"a":{"_target_":"x.y"},"b":{"_target_":"x.z"}}"#;
        let found = scan(&mut Reader::new(&text.as_bytes()), 0, "", 1).expect("in memory");
        assert_eq!(found.len(), 1);
    }
}
