//! Files that are mapped, read by position or loaded give the results of the same bytes in memory.

use conformance::sharded::problem_name;
use conformance::vectors::{StrictVerdict, Vectors, folder};
use st_core::{Bounds, Index, ReadOptions, SafeTensors, ShardIndex, SlicePlan};
use st_mmap::{Arena, ErrorKind, MappedSafeTensors, SafeTensorsFile, ShardedSafeTensors};

#[test]
fn files_give_the_result_of_their_bytes() {
    for vector in Vectors::load().unwrap().files {
        let path = folder("safetensors").join(&vector.file);
        let bytes = std::fs::read(&path).unwrap();
        for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let mapped = MappedSafeTensors::open_with(&path, &options);
            let file = SafeTensorsFile::open_with(&path, &options);
            match SafeTensors::from_bytes_with(&bytes, &options) {
                Ok(expected) => same_content(&expected, &mapped.unwrap(), &file.unwrap()),
                Err(expected) => {
                    for error in [mapped.map(|_| ()).unwrap_err(), file.map(|_| ()).unwrap_err()] {
                        let ErrorKind::Format(found) = error.kind() else {
                            panic!("{}: {error}", vector.file)
                        };
                        assert_eq!(*found, expected, "{}", vector.file);
                    }
                }
            }
        }
    }
}

fn same_content(expected: &SafeTensors<'_>, mapped: &MappedSafeTensors, file: &SafeTensorsFile) {
    let text = format!("{:?}", expected.header());
    assert_eq!(format!("{:?}", mapped.header()), text);
    assert_eq!(format!("{:?}", file.header()), text);
    let mut arena = Arena::default();
    let loaded = file.load(&mut arena).unwrap();
    for (name, view) in expected.iter() {
        assert_eq!(mapped.tensor(name).unwrap().data(), view.data());
        assert_eq!(loaded.tensor(name).unwrap().data(), view.data());
        let mut read = vec![0; view.data().len()];
        file.read_tensor(name, &mut read).unwrap();
        assert_eq!(read, view.data());
    }
}

#[test]
fn slices_read_by_position_are_those_of_memory() {
    let path = folder("safetensors").join("valid/slice_source.safetensors");
    let file = SafeTensorsFile::open(&path).unwrap();
    let mapped = MappedSafeTensors::open(&path).unwrap();
    let indices = [
        vec![],
        vec![Index::Select(-1)],
        vec![Index::from(3..7), Index::from(..5)],
        vec![Index::Ellipsis, Index::from(2..3)],
        vec![Index::Range { start: Some(1), stop: None, step: 3.try_into().unwrap() }],
    ];
    for (name, view) in mapped.iter() {
        for index in &indices {
            let Ok(slice) = view.slice(index, Bounds::Clamp) else { continue };
            let plan = SlicePlan::new(view.dtype(), view.shape(), index, Bounds::Clamp).unwrap();
            let mut read = vec![0; plan.byte_len() as usize];
            file.read_slice(name, &plan, &mut read).unwrap();
            assert_eq!(read, slice.to_vec(), "{name} {index:?}");
        }
    }
}

#[test]
fn shard_folders_open_or_are_refused_as_recorded() {
    for shards in Vectors::load().unwrap().sharded {
        let opened = ShardedSafeTensors::open(folder("safetensors").join(&shards.dir));
        let found = match opened {
            Ok(opened) => match opened.check().unwrap().as_slice() {
                [] => StrictVerdict::Accept,
                problems => {
                    let code = problems.iter().map(problem_name).collect::<Vec<_>>().join(", ");
                    StrictVerdict::Refuse { code, offset: None }
                }
            },
            Err(error) => {
                let ErrorKind::Format(error) = error.kind() else { panic!("{}: {error}", shards.dir) };
                StrictVerdict::Refuse { code: error.code().to_owned(), offset: None }
            }
        };
        assert_eq!(found, shards.strict, "{}", shards.dir);
    }
}

#[test]
fn shards_hold_the_recorded_tensors() {
    for shards in Vectors::load().unwrap().sharded {
        let Some(split) = shards.split else { continue };
        let model = ShardedSafeTensors::open(folder("safetensors").join(&shards.dir)).unwrap();
        assert_eq!(model.index().and_then(ShardIndex::total_size), Some(split.total_size), "{}", shards.dir);
        for tensor in &split.tensors {
            let view = model.tensor(&tensor.name).unwrap();
            assert_eq!(conformance::digest::sha256_hex(view.data()), tensor.sha256, "{}", shards.dir);
            assert!(view.shape().iter().map(|dim| *dim as u64).eq(tensor.shape.iter().copied()));
        }
    }
}
