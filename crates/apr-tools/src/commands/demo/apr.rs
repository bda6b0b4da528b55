//! The same model as `.apr` files.

use std::fs;
use std::path::Path;

use apr_container::{Checksum, Compression, ModelInfo, ModelType, SaveOptions, inspect_with, load, save};
use apr_models::{LinearRegression, Vector};

use super::data::Table;
use super::{Step, expect, flipped, timed, write};
use crate::error::{CODE_DEMO, Failure};
use crate::input::Rules;

/// A copy with one bit of the payload flipped.
pub(super) const DAMAGED: &str = "damaged.apr";

/// How the model is saved.
pub(super) const COPIES: [Copy; 3] = [
    Copy { file: "model.apr", compression: Compression::None, step: "save as .apr" },
    Copy { file: "model-zstd.apr", compression: Compression::ZstdDefault, step: "save as .apr, zstd" },
    Copy { file: "model-lz4.apr", compression: Compression::LZ4, step: "save as .apr, lz4" },
];

/// One way to save the model.
pub(super) struct Copy {
    pub(super) file: &'static str,
    pub(super) compression: Compression,
    /// What saving it is called.
    step: &'static str,
}

/// What happened.
pub(super) struct Chapter {
    /// The description of the first file.
    pub(super) info: ModelInfo,
    /// Lengths of the files, in the order of [`COPIES`].
    pub(super) bytes: Vec<u64>,
    /// The error for the damaged copy.
    pub(super) refusal: Failure,
}

/// Saves the model in each way, inspects and loads it, and damages a copy.
pub(super) fn tell(
    folder: &Path,
    table: &Table,
    model: &LinearRegression,
    predictions: &Vector,
    r2: f32,
    steps: &mut Vec<Step>,
) -> Result<Chapter, Failure> {
    let mut options =
        SaveOptions::default().with_name("longley").with_description("employed, from six features");
    options.metadata.metrics.insert("r2".to_owned(), f64::from(r2));
    let mut bytes = Vec::new();
    for Copy { file, compression, step } in COPIES {
        let path = folder.join(file);
        let options = options.clone().with_compression(compression);
        timed(steps, step, || save(model, ModelType::LinearRegression, &path, options))?;
        let loaded: LinearRegression =
            timed(steps, "load and check it", || load(&path, ModelType::LinearRegression))?;
        let again = loaded.try_predict(&table.x)?;
        let same = again.iter().map(f32::to_bits).eq(predictions.iter().map(f32::to_bits));
        expect(loaded == *model && same, "the model loaded from an .apr file differs")?;
        let len = path.metadata().map_err(|error| Failure::io("read the file", &path, &error))?.len();
        bytes.push(len);
        for step in steps.iter_mut().rev().take(2) {
            step.bytes = Some(len);
        }
    }
    let [plain, ..] = COPIES;
    let plain = folder.join(plain.file);
    let info = timed(steps, "inspect it", || inspect_with(&plain, Checksum::Skip, &Rules::STRICT.apr))?;

    let path = folder.join(DAMAGED);
    let good = fs::read(&plain).map_err(|error| Failure::io("read the file", &plain, &error))?;
    // The last byte of the payload precedes the four bytes of the checksum.
    write(&path, &flipped(&good, good.len() - 5))?;
    let Err(refusal) = load::<LinearRegression>(&path, ModelType::LinearRegression) else {
        return Err(Failure::new(CODE_DEMO, "a damaged .apr file was accepted"));
    };
    Ok(Chapter { info, bytes, refusal: Failure::from(refusal).in_place_of_file(Path::new(DAMAGED)) })
}
