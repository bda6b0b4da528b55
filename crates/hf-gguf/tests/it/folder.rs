//! Model folders on disk, read as front ends do.

use std::fs;
use std::path::{Path, PathBuf};

use foreign_tensors::torch;
use hf_gguf::{Conversion, Error, Options, PartFormat, Parts, Producer, SourceTensor, Texts};
use st_core::{Header, ReadOptions};

/// The folders of the vectors.
pub(crate) fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/hf")
}

/// A file of tensors: its table and the bytes of each.
pub(crate) type NewFile = (Vec<SourceTensor>, Vec<Vec<u8>>);

/// A folder, whole in memory.
pub(crate) struct Folder {
    pub(crate) texts: Texts,
    pub(crate) parts: Parts,
    pub(crate) tables: Vec<Vec<SourceTensor>>,
    /// Bytes of each tensor.
    data: Vec<Vec<Vec<u8>>>,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Self {
        Self::read(path, |texts, names| Parts::find(texts, names.iter().map(String::as_str)))
    }

    /// The folder of an adapter.
    pub(crate) fn open_adapter(path: &Path) -> Self {
        Self::read(path, |texts, names| Parts::find_adapter(texts, names.iter().map(String::as_str)))
    }

    fn read(path: &Path, find: impl Fn(&Texts, &[String]) -> Result<Parts, Error>) -> Self {
        let mut texts = Texts::new(path.file_name().unwrap().to_str().unwrap());
        let mut names = Vec::new();
        for name in files(path, "") {
            if Texts::max_len(&name).is_some() {
                texts.insert(name.clone(), fs::read(path.join(&name)).unwrap());
            }
            names.push(name);
        }
        let parts = find(&texts, &names).unwrap();
        let read = |name: &String| {
            let file = fs::read(path.join(name)).unwrap();
            match parts.format {
                PartFormat::SafeTensors => safetensors(&file),
                PartFormat::Pickle => pickle(&file),
            }
        };
        let (tables, data) = parts.files.iter().map(read).unzip();
        Self { texts, parts, tables, data }
    }

    /// A folder of files in memory: its small files, and for each file of tensors its table and the bytes of each tensor.
    pub(crate) fn of(name: &str, texts: &[(String, Vec<u8>)], files: Vec<(String, NewFile)>) -> Self {
        let mut own = Texts::new(name);
        for (name, bytes) in texts {
            assert!(Texts::max_len(name).is_some(), "{name} is not read");
            own.insert(name.clone(), bytes.clone());
        }
        let parts = Parts::find(&own, files.iter().map(|(name, _)| name.as_str())).unwrap();
        assert_eq!(parts.files, files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
        let (tables, data) = files.into_iter().map(|(_, file)| file).unzip();
        Self { texts: own, parts, tables, data }
    }

    pub(crate) fn convert(&self, options: &Options) -> Result<Conversion, Error> {
        Conversion::new(&self.texts, &self.parts, &self.tables, options)
    }

    /// The bytes of each output, and the same once more from several threads where that is possible.
    pub(crate) fn produce(&self, conversion: &Conversion) -> Result<Vec<Vec<u8>>, Error> {
        let mut producer = Producer::new();
        let read = |tensor: usize, offset: u64, out: &mut [u8]| {
            let (part, idx) = conversion.sources()[tensor];
            out.copy_from_slice(&self.data[part][idx][offset as usize..][..out.len()]);
            Ok::<(), Error>(())
        };
        let inputs = conversion.inputs();
        let outputs = conversion.outputs().iter().map(|output| {
            let [mut bytes, mut again] = [Vec::new(), Vec::new()];
            producer.run(output, inputs, read, |piece, _| {
                bytes.extend_from_slice(piece);
                Ok(())
            })?;
            if output.sources(inputs).is_some() {
                let keep = |piece: &[u8], _| {
                    again.extend_from_slice(piece);
                    Ok(())
                };
                Producer::new().run_shared(output, inputs, read, keep)?;
                assert!(again == bytes, "{}", output.name);
            }
            Ok(bytes)
        });
        outputs.collect()
    }
}

fn files(root: &Path, below: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.join(below)).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(root, &format!("{name}/")));
        } else {
            found.push(name);
        }
    }
    found
}

fn safetensors(file: &[u8]) -> (Vec<SourceTensor>, Vec<Vec<u8>>) {
    let header = Header::from_bytes(file, &ReadOptions::STRICT).unwrap();
    let tensor = |info: st_core::TensorInfo<'_>| {
        let range = info.file_range();
        let data = file[range.start as usize..range.end as usize].to_vec();
        let shape = info.shape().iter().map(|&len| len as u64).collect();
        (SourceTensor { name: info.name().into(), dtype: info.dtype(), shape }, data)
    };
    header.iter().map(tensor).unzip()
}

fn pickle(file: &[u8]) -> (Vec<SourceTensor>, Vec<Vec<u8>>) {
    let model =
        torch::read(&file, &foreign_tensors::NoCompanions, &foreign_tensors::Options::default()).unwrap();
    let tensor = |tensor: &foreign_tensors::Tensor| {
        let foreign_tensors::ElementType::Known(dtype) = tensor.dtype() else { panic!("{}", tensor.name()) };
        let source = SourceTensor { name: tensor.name().into(), dtype, shape: tensor.shape().into() };
        (source, tensor.to_vec(&model, &file).unwrap())
    };
    model.tensors().iter().map(tensor).unzip()
}
