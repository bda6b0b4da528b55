//! Readers of foreign formats: what has to hold whatever they read.

pub use self::written::index;

#[path = "../../crates/foreign-tensors/src/tensorflow/written.rs"]
mod written;

use foreign_tensors::{Companions, Error, Model, NoCompanions};
use read_at::ReadAt;

/// A folder in which every file has these bytes.
pub struct Folder<'b>(pub &'b [u8]);

impl Companions for Folder<'_> {
    fn open(&self, path: &str) -> Result<Box<dyn ReadAt + Send + Sync>, Error> {
        match NoCompanions.open(path) {
            Err(error) if error.code() == "ft-companion-path" => Err(error),
            _ => Ok(Box::new(self.0.to_vec())),
        }
    }

    fn file_name(&self) -> Option<&str> {
        Some("model.index")
    }
}

/// Tensors have the bytes that their type and shape say, and those that are stored as they are, are bytes of a file.
pub fn check(model: &Result<Model, Error>, file: &[u8]) {
    check_up_to(u64::MAX, model, file);
}

/// The same, without reading tensors of more than `longest` bytes.
pub fn check_up_to(longest: u64, model: &Result<Model, Error>, file: &[u8]) {
    let Ok(model) = model else { return };
    let _ = model.check();
    for tensor in model.tensors() {
        let stored = tensor.stored().map(|(number, range)| match number.checked_sub(1) {
            None => (&file as &dyn ReadAt, range),
            Some(companion) => (&*model.companions()[companion] as &dyn ReadAt, range),
        });
        if let Some((file, range)) = &stored {
            assert!(range.end <= file.total_len(), "{tensor:?}");
        }
        if tensor.byte_len() > longest {
            continue;
        }
        let Ok(bytes) = tensor.to_vec(model, &file) else { continue };
        assert_eq!(bytes.len() as u64, tensor.byte_len(), "{tensor:?}");
        if let Some((file, range)) = stored {
            let mut stored = vec![0; bytes.len()];
            file.read_exact_at(range.start, &mut stored).expect("the file has these bytes");
            assert_eq!(bytes, stored, "{tensor:?}");
        }
    }
    for alias in model.aliases() {
        assert!(model.tensors().iter().any(|tensor| tensor.name() == alias.of), "{alias:?}");
    }
    for (name, json) in model.entries() {
        assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{name}: {json}");
    }
}
