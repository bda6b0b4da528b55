//! Formats that a name stands for.

use super::{FileReport, Format, Remark};
use crate::problem::{Problem, Verdict};

const PICKLES: &[&str] = &[
    "bzip2",
    "gzip",
    "lz4",
    "lzma",
    "npy",
    "npz",
    "pickle",
    "tar",
    "torch",
    "torch-export",
    "torch-legacy",
    "torchscript",
    "xz",
    "zfile",
    "zip",
    "zlib",
    "zstd",
];

/// Endings of models, and formats that programs write under them.
const EXPECTED: [(&[&str], &[&[&str]]); 10] = [
    (&["ckpt", "pt", "pt2", "pth"], &[PICKLES, &["hdf5", "msgpack", "safetensors", "tf-checkpoint"]]),
    (&["joblib", "pickle", "pkl"], &[PICKLES]),
    (&["gguf"], &[&["gguf"]]),
    (&["h5", "hdf5"], &[&["hdf5", "mat", "netcdf"]]),
    (&["keras"], &[&["hdf5", "keras", "zip"]]),
    (&["npy"], &[&["npy", "pickle"]]),
    (&["npz"], &[&["npz", "zip"]]),
    (&["onnx"], &[&["onnx", "onnx-ml"]]),
    // Checkpoints of PyTorch under the new name are loaded by its own function, as they are.
    (&["safetensors"], &[PICKLES, &["safetensors", "sealed"]]),
    (&["tflite"], &[&["tflite"]]),
];

/// Text, also in place of a model that was not downloaded: nothing loads it.
const TEXTS: [&str; 11] = [
    "csv",
    "error-reply",
    "git-lfs",
    "git-lfs-conflict",
    "json",
    "shard-index",
    "text",
    "torch-index",
    "web-page",
    "xml",
    "zeros",
];

impl FileReport {
    /// Adds that the content is of no format that the name stands for, if the name is that of a model: what a reader of models takes the file for is
    /// `known`, a [name](Self::format_of) or `None`.
    pub fn check_name(&mut self, name: &str, known: Option<&str>) {
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
        let expected =
            EXPECTED.iter().find(|(endings, _)| ending.as_ref().is_some_and(|e| endings.contains(&&**e)));
        let Some((_, formats)) = expected.filter(|_| self.verdict() == Verdict::Safe) else { return };
        let fits = match known {
            Some(known) => TEXTS.contains(&known) || formats.iter().any(|formats| formats.contains(&known)),
            None => self.format != Format::Other,
        };
        if !fits {
            let problem =
                Problem::Unopened { reason: "the content is of no format that the name stands for" };
            self.remarks.push(Remark { path: alloc::string::String::new(), offset: 0, problem });
        }
    }
}
