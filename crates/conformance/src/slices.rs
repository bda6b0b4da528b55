//! Index expressions: our plan compared with the official library and NumPy.

use safetensors::slice::TensorIndexer;
use st_core::{Bounds, Index, SafeTensors, TensorView};

use crate::index::{self, Item, Refusal};
use crate::matrix::{Outcome, Suite};
use crate::vectors::{self, SliceAnswer, SliceCase, Vectors};
use crate::{digest, official};

const COLUMNS: &[&str] = &["ours, `Bounds::Exact`", "ours, `Bounds::Clamp`", "crate 0.8.0"];

const ABOUT: &str = "\
Index expressions in Python's notation. `Bounds::Exact` gives the official library's answers and refuses
what it refuses; `Bounds::Clamp` gives NumPy's. Negative steps and lists of indices, which NumPy knows and
we do not, are refused by type before a plan is made.";

/// Runs every index expression of the vectors.
///
/// # Errors
///
/// A vector that cannot be read from disk.
///
/// # Panics
///
/// If the file of an expression is not a valid one.
pub fn suite(vectors: &Vectors) -> Result<Suite, vectors::Error> {
    let mut suite = Suite::new("safetensors: slices", ABOUT, COLUMNS);
    for case in &vectors.slices {
        let file = vectors::read(&case.file)?;
        let tensors = SafeTensors::from_bytes(&file).expect("slices are taken of valid files");
        let view = tensors.tensor(&case.tensor).expect("the tensor is in the file");
        let items = index::parse(&case.index).expect("the notation of the sidecars is known");
        let row = match (&case.official, &case.numpy) {
            (Some(_), _) => "both know",
            (None, Some(_)) => "only NumPy knows",
            (None, None) => "neither knows",
        };
        let outcomes = [
            ours(&view, &items, Bounds::Exact, case.official.as_ref()),
            ours(&view, &items, Bounds::Clamp, case.numpy.as_ref()),
            judge(&view, &items, case),
        ];
        suite.record(row, &format!("{}{}", case.tensor, case.index), outcomes);
    }
    Ok(suite)
}

fn ours(view: &TensorView<'_>, items: &[Item], bounds: Bounds, expected: Option<&SliceAnswer>) -> Outcome {
    let index = match index::to_ours(items) {
        Ok(index) => index,
        // Not an index of ours, whatever NumPy makes of it.
        Err(Refusal::Step(_) | Refusal::IndexList) => return Outcome::Expected("refused by type"),
        Err(refusal) => return Outcome::Wrong(refusal.to_string()),
    };
    compare(slice(view, &index, bounds), expected)
}

fn slice(view: &TensorView<'_>, index: &[Index], bounds: Bounds) -> Result<SliceAnswer, String> {
    let slice = view.slice(index, bounds).map_err(|error| error.to_string())?;
    let bytes = slice.to_vec();
    if slice.byte_len() != bytes.len() as u64 {
        return Err("byte_len differs from the bytes".to_owned());
    }
    Ok(SliceAnswer { shape: wide(slice.shape()), sha256: digest::sha256_hex(&bytes) })
}

fn judge(view: &TensorView<'_>, items: &[Item], case: &SliceCase) -> Outcome {
    let found = match index::to_official(items, view.shape()) {
        Ok(index) => official_slice(view, &index),
        Err(refusal) => Err(refusal.to_string()),
    };
    compare(found, case.official.as_ref())
}

fn official_slice(view: &TensorView<'_>, index: &[TensorIndexer]) -> Result<SliceAnswer, String> {
    // The crate panics on reversed ranges: to the sidecar that is a refusal.
    official::call(|| {
        let view = safetensors::tensor::TensorView::new(
            official::theirs(view.dtype()),
            view.shape().to_vec(),
            view.data(),
        )?;
        let answer = view.sliced_data(index).map(|slice| {
            let shape = wide(&slice.newshape());
            let bytes = slice.collect::<Vec<_>>().concat();
            SliceAnswer { shape, sha256: digest::sha256_hex(&bytes) }
        });
        Ok(answer.map_err(|error| error.to_string()))
    })
    .unwrap_or_else(|refusal| Err(refusal.to_string()))
}

fn compare(found: Result<SliceAnswer, String>, expected: Option<&SliceAnswer>) -> Outcome {
    match (found, expected) {
        (Ok(found), Some(expected)) if found == *expected => Outcome::Expected("equal"),
        (Err(_), None) => Outcome::Expected("refused"),
        (found, expected) => Outcome::Wrong(format!("{found:?}, expected {expected:?}")),
    }
}

fn wide(shape: &[usize]) -> Vec<u64> {
    shape.iter().map(|dim| *dim as u64).collect()
}
