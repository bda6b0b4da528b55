//! Every vector: opened from memory, from a file and from pages that arrive late.

use std::fs;
use std::path::{Path, PathBuf};

use model_file::{Contents, Description, Error, FileKind, ModelFile, ModelFormat, OpenOptions, ReadOptions};
use read_at::{CachedPages, FileSource, ReadAt, missing_range};

/// The files below the folder of vectors with this ending.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors").join(folder)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("the vectors can be listed") {
            let path = entry.expect("the vectors can be listed").path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.extend(path.extension().is_some_and(|found| found == ending).then_some(path)),
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

fn strict() -> OpenOptions<'static> {
    OpenOptions::new().with_read_options(ReadOptions::STRICT.with_unchecked_signatures())
}

/// What a reader says: a description, or a code.
fn said<R: ReadAt>(file: Result<ModelFile<R>, Error>) -> Result<Description, String> {
    file.and_then(|file| file.describe()).map_err(|error| error.code().to_owned())
}

/// The same of pages that are fetched when they are missing.
fn of_late_pages(bytes: &[u8]) -> Result<Description, String> {
    let mut pages = CachedPages::new(bytes.len() as u64);
    loop {
        let error = match ModelFile::read(&pages, &strict()).and_then(|file| file.describe()) {
            Ok(description) => return Ok(description),
            Err(error) => error,
        };
        let Some(range) = missing_range(&error) else { return Err(error.code().to_owned()) };
        let end = (range.end.max(range.start + 64) as usize).min(bytes.len());
        pages.insert(range.start, &bytes[range.start as usize..end]).expect("the range is in the file");
    }
}

#[test]
fn descriptions_do_not_depend_on_where_the_bytes_are() {
    let mut opened = 0;
    for ending in ["safetensors", "apr", "gguf", "bin"] {
        for path in files(".", ending) {
            let name = path.display();
            let bytes = fs::read(&path).unwrap();
            let expected = said(ModelFile::from_bytes(&bytes, &strict()));
            assert_eq!(of_late_pages(&bytes), expected, "{name}: pages");
            let source = FileSource::new(fs::File::open(&path).unwrap()).unwrap();
            assert_eq!(said(ModelFile::read(source, &strict())), expected, "{name}: file");
            let by_path = said(ModelFile::open(&path, &strict()));
            // By path, safetensors is the format of every unknown file.
            match (&expected, by_path) {
                (Err(code), Err(found)) if code == "mo-foreign-format" => {
                    assert!(found.starts_with("st-"), "{name}");
                }
                (_, found) => assert_eq!(&found, &expected, "{name}: path"),
            }
            let Ok(description) = expected else { continue };
            opened += 1;
            assert_eq!(description.file_size, bytes.len() as u64, "{name}");
            assert_eq!(
                Some(&*description.format),
                FileKind::of(&bytes).model().map(ModelFormat::name),
                "{name}"
            );
        }
    }
    assert!(opened > 400, "{opened}");
}

#[test]
fn files_of_other_programs_have_the_format_that_was_detected() {
    let mut opened = 0;
    for ending in
        ["pt", "pth", "npz", "npy", "onnx", "h5", "keras", "joblib", "pkl", "gz", "msgpack", "tflite"]
    {
        for path in files("import", ending) {
            let source = FileSource::new(fs::File::open(&path).unwrap()).unwrap();
            let kind = FileKind::of_source(&source).unwrap();
            let Ok(file) = ModelFile::read(source, &strict()) else { continue };
            opened += 1;
            // The graph says that a file of ONNX is ONNX-ML; its first bytes do not.
            let found = file.format().name();
            let found = if found == "onnx-ml" { "onnx" } else { found };
            assert_eq!(found, kind.expected().name(), "{}", path.display());
        }
    }
    assert!(opened > 100, "{opened}");
}

#[test]
fn tensors_of_every_vector_are_as_long_as_described() {
    for ending in ["safetensors", "apr", "gguf"] {
        for path in files(".", ending) {
            let name = path.display();
            let Ok(file) = ModelFile::open(&path, &strict()) else { continue };
            let Ok(tensors) = file.tensors() else {
                assert!(matches!(file.contents(), Contents::AprV1(_)), "{name}");
                continue;
            };
            let description = file.describe().unwrap();
            assert_eq!(description.tensors.len(), tensors.len(), "{name}");
            let Some((tensor, described)) = tensors.first().zip(description.tensors.first()) else {
                continue;
            };
            assert_eq!((tensor.name(), tensor.byte_len()), (&*described.name, described.bytes), "{name}");
            match tensor.to_vec() {
                Ok(bytes) => assert_eq!(bytes.len() as u64, described.bytes, "{name}"),
                Err(error) => assert_eq!(error.code(), "mo-byte-order", "{name}"),
            }
        }
    }
}

#[test]
fn threads_read_what_one_reads() {
    fn shared<T: Sync>(value: T) -> T {
        value
    }
    let mut formats = Vec::new();
    for ending in ["safetensors", "apr", "gguf", "pt"] {
        for path in files(".", ending) {
            let Ok(file) = ModelFile::open(&path, &strict()) else { continue };
            for tensor in file.tensors().unwrap_or_default() {
                let (Some(reader), Ok(expected)) = (tensor.shared().map(shared), tensor.to_vec()) else {
                    continue;
                };
                let mut bytes = vec![0; expected.len()];
                reader.read(0, &mut bytes).unwrap();
                assert_eq!(bytes, expected, "{} {}", path.display(), tensor.name());
                let error = reader.read(expected.len() as u64, &mut [0]).unwrap_err();
                assert_eq!(error.code(), "mo-range", "{}", path.display());
                formats.push(file.format());
            }
            let bytes = fs::read(&path).unwrap();
            let tensors = ModelFile::from_bytes(&bytes, &strict()).unwrap();
            assert!(tensors.tensors().unwrap_or_default().iter().all(|tensor| tensor.shared().is_none()));
        }
    }
    for format in [ModelFormat::SafeTensors, ModelFormat::AprV2, ModelFormat::Gguf] {
        assert!(formats.contains(&format), "{format:?}");
    }
}

#[test]
fn valid_safetensors_are_opened_and_invalid_ones_refused_with_the_code_of_their_reader() {
    let compat = OpenOptions::new().with_read_options(ReadOptions::COMPAT);
    for folder in ["safetensors/valid", "safetensors/own/valid", "safetensors/quirk", "safetensors/own/quirk"]
    {
        for path in files(folder, "safetensors") {
            assert!(ModelFile::open(&path, &compat).is_ok(), "{}", path.display());
            assert!(ModelFile::is_accepted_by_compat(&path, &OpenOptions::new()), "{}", path.display());
        }
    }
    for folder in ["safetensors/invalid", "safetensors/own/invalid"] {
        for path in files(folder, "safetensors") {
            let bytes = fs::read(&path).unwrap();
            if FileKind::of(&bytes).expected() != ModelFormat::SafeTensors {
                continue;
            }
            let expected = st_core::Header::from_bytes(&bytes, &st_core::ReadOptions::STRICT).unwrap_err();
            let error = ModelFile::open(&path, &OpenOptions::new()).unwrap_err();
            assert_eq!(error.code(), expected.code(), "{}", path.display());
            assert!(!ModelFile::is_accepted_by_compat(&path, &OpenOptions::new()), "{}", path.display());
        }
    }
}

#[test]
fn sets_of_shards_are_opened_by_their_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/safetensors/sharded");
    for name in ["exact_fit", "oversize_tensor", "ten_256", "zero_sized"] {
        let file = ModelFile::open(folder.join(name), &OpenOptions::new()).unwrap();
        assert!(file.shard_problems().unwrap().is_empty(), "{name}");
        let description = file.describe().unwrap();
        assert!(description.tensors.iter().all(|tensor| tensor.shard.is_some()), "{name}");
    }
}
