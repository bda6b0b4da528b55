//! `checkpoint save|in-place FOLDER STEP SIZE`, `checkpoint prune FOLDER KEEP`, `checkpoint verify FOLDER`: saves, removes and verifies
//! checkpoints whose content depends on step and size alone, and says how that went: `ok` and exit code 0, or `error CODE: ...` and exit code 1.
//! `in-place` is how not to do it: it shows that the harness sees torn checkpoints where there are some.
//!
//! The reliability harness (`cargo xtask reliability`) runs this under faults; it waits for the line `saving`.

extern crate alloc;

use alloc::collections::BTreeMap;
use core::num::NonZeroUsize;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use st_core::{Dtype, TensorView};
use st_mmap::{Arena, CheckpointData, Checkpoints, Error, OptimizerData, PartData};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    let result = match args.as_slice() {
        ["save", folder, step, size] | ["in-place", folder, step, size] => {
            let (Some(step), Some(size)) = (number(step), number(size)) else { return usage() };
            let content = Content::new(step, size as usize);
            if args.first() == Some(&"save") {
                begin();
                content.save(&Checkpoints::new(*folder))
            } else {
                let files = content.files();
                begin();
                write_in_place(&Path::new(folder).join(format!("step_{step}")), &files);
                Ok(())
            }
        }
        ["prune", folder, keep] => {
            let Some(keep) = number(keep).and_then(|keep| NonZeroUsize::new(keep as usize)) else {
                return usage();
            };
            begin();
            Checkpoints::new(*folder).keep_last(keep).map(drop)
        }
        ["verify", folder] => verify(&Checkpoints::new(*folder)),
        _ => return usage(),
    };
    match result {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("error {}: {error}", error.code());
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: checkpoint save|in-place FOLDER STEP SIZE | prune FOLDER KEEP | verify FOLDER");
    ExitCode::from(2)
}

fn begin() {
    println!("saving");
}

/// Prints a line for each step: `STEP whole`, or `STEP` and what is wrong.
fn verify(checkpoints: &Checkpoints) -> Result<(), Error> {
    let mut arena = Arena::new();
    for step in checkpoints.steps()? {
        let found = checkpoints.load(step).and_then(|checkpoint| {
            let len = checkpoint.load_model(&mut arena)?.data().len();
            // What was meant, not only what the manifest says.
            let expected = Content::new(step, len);
            let whole = checkpoint.load_model(&mut arena)?.data() == expected.model;
            let parts =
                checkpoint.load_part("ema", &mut arena)?.is_some_and(|ema| ema.data() == expected.model);
            let moments = checkpoint
                .load_optimizer(&mut arena)?
                .is_some_and(|loaded| loaded.data() == expected.moments);
            Ok(whole && parts && moments)
        });
        match found {
            Ok(true) => println!("{step} whole"),
            Ok(false) => println!("{step} another content"),
            Err(error) => println!("{step} {}: {error}", error.code()),
        }
    }
    Ok(())
}

/// The bytes of a checkpoint.
struct Content {
    step: u64,
    model: Vec<u8>,
    moments: Vec<u8>,
}

impl Content {
    fn new(step: u64, size: usize) -> Self {
        Self { step, model: noise(size, step), moments: noise(2 * size, step + 1_000_000) }
    }

    fn save(&self, checkpoints: &Checkpoints) -> Result<(), Error> {
        let shape = [self.model.len()];
        let double = [self.moments.len()];
        let view = |shape, bytes| TensorView::new(Dtype::U8, shape, bytes).expect("one byte an element");
        let model = [("w", view(&shape, &self.model))];
        let moments = [("w.m", view(&double, &self.moments))];
        let data = CheckpointData {
            step: self.step,
            model: &model,
            optimizer: Some(OptimizerData { tensors: &moments, metadata: None, json: "{\"lr\": 0.1}" }),
            parts: &[
                PartData { name: "ema", tensors: &model, metadata: None },
                PartData {
                    name: "training",
                    tensors: &[],
                    metadata: Some(BTreeMap::from([("k".into(), "v".into())])),
                },
            ],
            metrics: BTreeMap::from([("loss".into(), 0.5)]),
            model_class: "Net",
            optimizer_class: "AdamW",
            ..CheckpointData::default()
        };
        checkpoints.save(&data).map(drop)
    }

    /// The files that a save writes.
    fn files(&self) -> Vec<(OsString, Vec<u8>)> {
        let elsewhere = env::temp_dir().join(format!("checkpoint-in-place-{}", std::process::id()));
        let checkpoints = Checkpoints::new(&elsewhere);
        self.save(&checkpoints).expect("a scratch folder");
        let entries = fs::read_dir(checkpoints.path_of(self.step)).expect("just saved").flatten();
        let files =
            entries.map(|entry| (entry.file_name(), fs::read(entry.path()).expect("just saved"))).collect();
        fs::remove_dir_all(elsewhere).expect("a scratch folder");
        files
    }
}

/// Writes files one by one where they belong.
fn write_in_place(folder: &Path, files: &[(OsString, Vec<u8>)]) {
    fs::create_dir_all(folder).expect("a new folder");
    for (name, bytes) in files {
        let mut file = fs::File::create(folder.join(name)).expect("a new file");
        bytes.chunks(64 << 10).for_each(|chunk| file.write_all(chunk).expect("room for it"));
    }
}

/// Bytes that depend on the seed alone (splitmix64).
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
