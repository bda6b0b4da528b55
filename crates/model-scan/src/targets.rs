//! Classes and functions that configurations name for loaders to import and call.

use alloc::format;
use alloc::string::String;

use crate::problem::Problem;
use crate::{denied, lines, script};

/// Packages whose classes configurations of models are made of.
const PACKAGES: [&str; 5] =
    ["torch.nn.", "torch.optim.", "nemo.collections.tts.torch.", "nemo.collections.", "lightning.pytorch."];

/// Functions that configurations name; of modules, all that are public.
const FUNCTIONS: [&str; 21] = [
    "nemo.collections.asr.modules.transformer.get_nemo_transformer",
    "speechbrain.decoders.ctc_greedy_decode",
    "speechbrain.lobes.models.FastSpeech2.mel_spectogram",
    "speechbrain.lobes.models.HifiGAN.mel_spectogram",
    "speechbrain.lobes.models.Tacotron2.mel_spectogram",
    "speechbrain.lobes.models.g2p.dataio.",
    "speechbrain.lobes.models.g2p.model.input_dim",
    "speechbrain.nnet.loss.si_snr_loss.",
    "speechbrain.nnet.losses.",
    "speechbrain.processing.features.spectral_magnitude",
    "speechbrain.processing.signal_processing.resynthesize",
    "speechbrain.utils.hparams.choice",
    "speechbrain.utils.seed_everything",
    "torch.bfloat16",
    "torch.device",
    "torch.hamming_window",
    "torch.manual_seed",
    "torch.nn.functional.",
    "torch.nn.init.",
    "torch.ones",
    "torch.zeros",
];

/// Modules of `torch.nn` and `torch.optim` whose classes are layers and optimizers.
const TORCH: &str = "\
activation\nadadelta\nadagrad\nadam\nadamax\nadamw\nadaptive\nasgd\nbatchnorm\nchannelshuffle\ncontainer\nconv\n\
distance\ndropout\nembedding\nflatten\nfold\ninstancenorm\nlbfgs\nlinear\nloss\nlr_scheduler\nmodules\nnadam\n\
normalization\npadding\nparameter\npixelshuffle\npooling\nradam\nrmsprop\nrnn\nrprop\nsgd\nsparse\nsparse_adam\n\
swa_utils\ntransformer\nupsampling\n";

/// Packages that others import, beside those of [`denied`]: a path through one of them leads anywhere.
const IMPORTED: &str = "\
apex\nargparse\nboto3\ndeepspeed\ndistutils\nfsspec\nh5py\nhuggingface_hub\nhydra\nhyperpyyaml\njoblib\n\
jsonargparse\nlhotse\nlibrosa\nlightning\nlogging\nmatplotlib\nmegatron\nnemo\nnumpy\nomegaconf\nonnx\nonnxruntime\n\
pandas\npsutil\npytorch_lightning\nruamel\nsafetensors\nscipy\nsentencepiece\nsetuptools\nsklearn\nsoundfile\n\
speechbrain\ntensorflow\ntorch\ntorchaudio\ntorchvision\nwebdataset\n";

/// Modules that run code, open files or reach the network, beside those of [`denied`].
const ROOTS: [&str; 6] = ["os", "subprocess", "builtins", "shutil", "pickle", "joblib"];

/// The value of `_target_` and its like.
pub(crate) fn judge(target: &str) -> Option<Problem> {
    if is_known(target, &PACKAGES) { None } else { Some(named(target)) }
}

/// Whether a text is the path of a class in one of these packages, or of a known function, and leads through no module of another package.
pub(crate) fn is_known(target: &str, packages: &[&str]) -> bool {
    let is_function = |module: &&str| {
        let name = target.strip_prefix(module);
        name.is_some_and(|name| !name.starts_with('_') && !name.contains('.'))
    };
    let is_class = |package: &&str| {
        let is_own = |name: &str| {
            if package.starts_with("torch.") {
                return lines::has(TORCH, name);
            }
            // Short names are those that modules get where they are imported, as `np`.
            let is_alias = name.len() <= 2 && !name.ends_with(char::is_numeric);
            !is_alias && !lines::has(IMPORTED, name) && denied::reason(name, "").is_none()
        };
        target.strip_prefix(package).is_some_and(|path| {
            let mut names = path.rsplit('.');
            names.next().is_some_and(|class| class.chars().take(2).any(char::is_uppercase))
                && names.all(is_own)
        })
    };
    is_dotted(target) && (packages.iter().any(is_class) || FUNCTIONS.iter().any(is_function))
}

/// The value of `target` and `class_path`, which many programs have for something else: paths with points and interpolations alone, and no
/// operators of exported graphs, which are judged where such a graph is.
pub(crate) fn judge_path(target: &str) -> Option<Problem> {
    let operator = target.strip_prefix("torch.ops.").and_then(|operator| operator.split_once('.'));
    let is_operator = operator.is_some_and(|(namespace, rest)| {
        let name = rest.split('.').next().unwrap_or_default();
        namespace != "aten" || !script::is_suspicious(&format!("aten::{name}"))
    });
    let is_path = is_importable(target) || target.contains("${");
    if is_operator || !is_path { None } else { judge(target) }
}

/// Whether a text with dots can be the path of an import: file names with slashes or spaces cannot.
fn is_importable(text: &str) -> bool {
    let is_other = |character: char| character.is_whitespace() || ['/', '\\'].contains(&character);
    let last = text.rsplit('.').next().unwrap_or_default();
    text.contains('.')
        && !text.contains(is_other)
        && text.split('.').all(|part| !part.is_empty())
        && last.starts_with(|first: char| first == '_' || first.is_alphabetic())
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
            ("torch.nn.modules.activation.Tanh", ""),
            ("torch.nn.functional.relu", ""),
            ("torch.optim.lr_scheduler.StepLR", ""),
            ("torch.manual_seed", ""),
            ("nemo.collections.tts.torch.g2ps.EnglishG2p", ""),
            ("nemo.collections.common.tokenizers.text_to_speech.tts_tokenizers.IPATokenizer", ""),
            ("nemo.collections.tts.g2p.data.t5.T5G2PDataset", ""),
            ("lightning.pytorch.loggers.wandb.WandbLogger", ""),
            ("torch.nn.functional.torch.utils.collect_env.run", "sc-config-target"),
            ("torch.nn.functional.torch.save", "sc-config-target"),
            ("torch.nn.functional.torch.os.system", "sc-config-target"),
            ("torch.nn.functional._overload", "sc-config-target"),
            ("torch.nn.modules.module.torch.utils.data.Dataset", "sc-config-target"),
            ("torch.optim.optimizer.torch.serialization.shutil.copyfile", "sc-config-target"),
            ("torch.nn.parallel.distributed.Join", "sc-config-target"),
            ("torch.nn.functional.importlib.import_module", "sc-config-target"),
            ("torch.nn.utils.clip_grad", "sc-config-target"),
            ("torch.manual_seed.x", "sc-config-target"),
            ("nemo.collections.asr.models.os.system", "sc-config-target"),
            ("nemo.collections.asr.models.subprocess.Popen", "sc-config-target"),
            ("nemo.collections.asr.models.sp.Popen", "sc-config-target"),
            ("nemo.collections.tts.torch.x.torch.nn.Linear", "sc-config-target"),
            ("lightning.pytorch.trainer.trainer.torch.hub.HTTPError", "sc-config-target"),
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
    fn lists_of_modules_are_sorted() {
        lines::tests::check(TORCH, TORCH.lines().count());
        lines::tests::check(IMPORTED, IMPORTED.lines().count());
    }

    #[test]
    fn words_and_operators_of_graphs_are_no_targets() {
        for (target, code) in [
            ("x86", ""),
            ("a/b.c", ""),
            ("a b.c", ""),
            ("a\\b.c", ""),
            ("0.5", ""),
            ("...", ""),
            (".x", ""),
            ("evil-mod.f", "sc-config-target"),
            ("1.f", "sc-config-target"),
            ("evil.mod:f", "sc-config-target"),
            ("${x", "sc-config-target"),
            ("os.${x}", "sc-config-code"),
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
