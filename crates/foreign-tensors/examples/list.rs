//! Prints the tensors of each file that is named, what else it holds, and notes.

use core::error::Error;
use std::fs::File;
use std::path::Path;

use foreign_tensors::{Folder, Options, read, read_folder};
use read_at::{FileSource, ReadAt};

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let (file, model): (Box<dyn ReadAt>, _) = if Path::new(&path).is_dir() {
            (Box::new(Vec::new()), read_folder(&Folder::new(&path), &Options::default()))
        } else {
            let file = FileSource::new(File::open(&path)?)?;
            let model = read(&file, &Folder::of_file(&path), &Options::default());
            (Box::new(file), model)
        };
        let model = match model {
            Ok(model) => model,
            Err(error) => {
                println!("{path}: {error}");
                continue;
            }
        };
        println!("{path}: {}", model.format().title());
        for tensor in model.tensors() {
            let state = match tensor.to_vec(&model, &file) {
                Ok(bytes) => format!("{} bytes", bytes.len()),
                Err(error) => error.to_string(),
            };
            println!("  {} {} {:?}: {state}", tensor.name(), tensor.dtype().name(), tensor.shape());
        }
        for alias in model.aliases() {
            println!("  {} = {}", alias.name, alias.of);
        }
        for (name, json) in model.entries() {
            println!("  {name}: {}", json.chars().take(100).collect::<String>());
        }
        for note in model.notes() {
            println!("  note: {}: {}", note.place, note.text);
        }
    }
    Ok(())
}
