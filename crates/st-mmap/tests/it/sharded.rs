//! Sets of shards.

use std::path::Path;

use st_core::{Bounds, Dtype, ShardProblem, SlicePlan, TensorView, WriteOptions};
use st_mmap::{ErrorKind, ShardedSafeTensors, WrittenShards, save, write_sharded};

use crate::scratch::{Scratch, names, noise, save_bytes};

const INDEX: &str = "model.safetensors.index.json";

/// Three tensors of 100 bytes in two shards.
fn write_set(folder: &Path) -> Vec<Vec<u8>> {
    let data: Vec<_> = (0..3).map(|seed| noise(100, seed)).collect();
    let tensors: Vec<_> = ["a", "b", "c"]
        .iter()
        .zip(&data)
        .map(|(name, data)| (*name, TensorView::new(Dtype::U8, &[10, 10], data).unwrap()))
        .collect();
    let options = WriteOptions {
        metadata: Some([("format".to_owned(), "pt".to_owned())].into()),
        ..WriteOptions::default()
    };
    let written = write_sharded(folder, &tensors, 200, &options).unwrap();
    assert_eq!(written.index, Some(folder.join(INDEX)));
    assert_eq!(written.shards.len(), 2);
    data
}

fn rewrite_index(folder: &Path, from: &str, to: &str) {
    let path = folder.join(INDEX);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&path, text.replace(from, to)).unwrap();
}

#[test]
fn a_set_is_written_and_opened_by_index_or_folder() {
    let scratch = Scratch::new();
    let folder = scratch.join("model");
    let data = write_set(&folder);
    assert_eq!(
        names(&folder),
        ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", INDEX]
    );
    for path in [folder.clone(), folder.join(INDEX)] {
        let set = ShardedSafeTensors::open(path).unwrap();
        assert_eq!(set.names().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(set.shard_names().count(), 2);
        assert_eq!(set.index().unwrap().total_size(), Some(300));
        let mut read = [0; 100];
        for (name, data) in ["c", "a", "b"].iter().zip([&data[2], &data[0], &data[1]]) {
            set.read_tensor(name, &mut read).unwrap();
            assert_eq!(read, **data);
            assert_eq!(set.tensor(name).unwrap().data(), *data);
            assert_eq!(set.tensor(name).unwrap().shape(), [10, 10]);
        }
        let plan = SlicePlan::new(Dtype::U8, &[10, 10], &[(2..4).into()], Bounds::Exact).unwrap();
        set.read_slice("b", &plan, &mut read[..20]).unwrap();
        assert_eq!(read[..20], data[1][20..40]);
        let header = set.file_of("a").unwrap().header();
        assert_eq!(header.metadata().unwrap().get("format"), Some("pt"));
        assert_eq!(set.check().unwrap(), []);
        assert_eq!(set.tensor("d").unwrap_err().code(), "st-not-found");
    }
}

#[test]
fn one_file_is_a_set_of_one() {
    let scratch = Scratch::new();
    let data = save_bytes(&scratch.join("model.safetensors"), 50);
    let set = ShardedSafeTensors::open(scratch.path()).unwrap();
    assert!(set.index().is_none());
    assert_eq!((set.names().collect::<Vec<_>>(), set.shard_names().count()), (vec!["w"], 0));
    assert_eq!(set.tensor("w").unwrap().data(), data);
    assert_eq!(set.check().unwrap(), []);

    let view = TensorView::new(Dtype::U8, &[50], &data).unwrap();
    let folder = scratch.join("small");
    let written = write_sharded(&folder, &[("w", view)], 50, &WriteOptions::default()).unwrap();
    assert_eq!(written, WrittenShards { shards: vec![folder.join("model.safetensors")], index: None });
    assert_eq!(names(&folder), ["model.safetensors"]);
}

#[test]
fn folders_without_a_clear_choice_are_refused() {
    let scratch = Scratch::new();
    assert_eq!(ShardedSafeTensors::open(scratch.path()).unwrap_err().code(), "sm-no-model");
    write_set(scratch.path());
    std::fs::copy(scratch.join(INDEX), scratch.join("other.safetensors.index.json")).unwrap();
    let error = ShardedSafeTensors::open(scratch.path()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::SeveralIndexes { count: 2 }), "{error}");
    assert!(ShardedSafeTensors::open(scratch.join("other.safetensors.index.json")).is_ok());
    assert!(ShardedSafeTensors::open(scratch.join("absent")).unwrap_err().is_not_found());
}

#[test]
fn shards_are_opened_when_they_are_needed() {
    let scratch = Scratch::new();
    write_set(scratch.path());
    std::fs::write(scratch.join("model-00002-of-00002.safetensors"), b"").unwrap();
    let set = ShardedSafeTensors::open(scratch.path()).unwrap();
    assert!(set.tensor("a").is_ok());
    assert_eq!(set.tensor("c").unwrap_err().code(), "st-header-too-small");
    assert_eq!(set.check().unwrap_err().code(), "st-header-too-small");
}

#[test]
fn every_kind_of_disagreement_is_found() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    let data = write_set(folder);

    std::fs::rename(scratch.join("model-00002-of-00002.safetensors"), scratch.join("away")).unwrap();
    let set = ShardedSafeTensors::open(folder).unwrap();
    assert!(set.tensor("c").unwrap_err().is_not_found());
    let shard = "model-00002-of-00002.safetensors".to_owned();
    assert_eq!(set.check().unwrap(), [ShardProblem::MissingShard { shard }]);
    std::fs::rename(scratch.join("away"), scratch.join("model-00002-of-00002.safetensors")).unwrap();

    // A tensor the shard lacks makes the set refuse that shard, whichever tensor is asked for.
    rewrite_index(
        folder,
        "\"c\": \"model-00002",
        "\"ghost\": \"model-00001-of-00002.safetensors\",\n    \"c\": \"model-00002",
    );
    let set = ShardedSafeTensors::open(folder).unwrap();
    for name in ["ghost", "a"] {
        let error = set.tensor(name).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Shard { problem: ShardProblem::GhostTensor { tensor, .. } } if tensor == "ghost")
        );
        assert_eq!(
            (error.code(), error.path()),
            ("sm-shard", Some(&*scratch.join("model-00001-of-00002.safetensors")))
        );
    }
    assert!(set.tensor("c").is_ok());
    assert!(matches!(&set.check().unwrap()[..], [ShardProblem::GhostTensor { .. }]));

    // Renamed in the index: the same shard has one tensor too few and one too many.
    rewrite_index(folder, "\"b\"", "\"other\"");
    rewrite_index(folder, "\"total_size\": 300", "\"total_size\": 299");
    let set = ShardedSafeTensors::open(folder).unwrap();
    let error = set.tensor("a").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Shard { problem: ShardProblem::UnlistedTensor { tensor, .. } } if tensor == "b")
    );
    let problems = set.check().unwrap();
    let ghosts =
        problems.iter().filter(|problem| matches!(problem, ShardProblem::GhostTensor { .. })).count();
    assert_eq!((problems.len(), ghosts), (4, 2), "{problems:?}");
    assert!(problems.contains(&ShardProblem::WrongTotalSize { declared: 299, actual: 300 }));

    // A tensor that sits in another shard than the index says.
    let set = scratch.join("moved");
    let view = TensorView::new(Dtype::U8, &[100], &data[0]).unwrap();
    write_sharded(&set, &[("a", view), ("b", view)], 100, &WriteOptions::default()).unwrap();
    save(set.join("model-00001-of-00002.safetensors"), &[("a", view), ("b", view)], &WriteOptions::default())
        .unwrap();
    let error = ShardedSafeTensors::open(&set).unwrap().tensor("a").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Shard { problem: ShardProblem::UnlistedTensor { .. } }),
        "{error}"
    );
}

#[test]
fn shard_names_that_leave_the_folder_are_refused() {
    let scratch = Scratch::new();
    let folder = scratch.join("model");
    write_set(&folder);
    for name in ["../model-00001-of-00002.safetensors", "/etc/passwd"] {
        let path = folder.join(INDEX);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"model-00001-of-00002.safetensors\"", &format!("{name:?}")))
            .unwrap();
        assert_eq!(ShardedSafeTensors::open(&folder).unwrap_err().code(), "st-shard-path");
        std::fs::write(&path, text).unwrap();
    }
    rewrite_index(&folder, "weight_map", "weights");
    let error = ShardedSafeTensors::open(&folder).unwrap_err();
    assert_eq!((error.code(), error.path()), ("st-shard-no-map", Some(&*folder.join(INDEX))));
}

#[cfg(unix)]
#[test]
fn linked_shards_work() {
    let scratch = Scratch::new();
    let (blobs, snapshot) = (scratch.join("blobs"), scratch.join("snapshot"));
    let data = write_set(&blobs);
    std::fs::create_dir(&snapshot).unwrap();
    for name in names(&blobs) {
        std::os::unix::fs::symlink(Path::new("../blobs").join(&name), snapshot.join(&name)).unwrap();
    }
    let set = ShardedSafeTensors::open(&snapshot).unwrap();
    assert_eq!(set.tensor("c").unwrap().data(), data[2]);
    assert_eq!(set.check().unwrap(), []);
}

#[test]
fn an_existing_set_is_not_touched() {
    let scratch = Scratch::new();
    let folder = scratch.path();
    write_set(folder);
    let before: Vec<_> = names(folder).iter().map(|name| std::fs::read(folder.join(name)).unwrap()).collect();
    let data = [1; 30];
    let view = TensorView::new(Dtype::U8, &[30], &data).unwrap();
    let tensors = [("x", view), ("y", view)];
    for max in [30, 60] {
        let error = write_sharded(folder, &tensors, max, &WriteOptions::default()).unwrap_err();
        assert_eq!(error.code(), "df-exists", "{error}");
    }
    let after: Vec<_> = names(folder).iter().map(|name| std::fs::read(folder.join(name)).unwrap()).collect();
    assert_eq!(before, after);

    // One shard in the way: what was written before it goes again.
    let partly = scratch.join("partly");
    std::fs::create_dir(&partly).unwrap();
    std::fs::write(partly.join("model-00002-of-00002.safetensors"), b"mine").unwrap();
    let error = write_sharded(&partly, &tensors, 30, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.code(), "df-exists");
    assert_eq!(names(&partly), ["model-00002-of-00002.safetensors"]);

    let single = scratch.join("single");
    std::fs::create_dir(&single).unwrap();
    save_bytes(&single.join("model.safetensors"), 5);
    assert_eq!(
        write_sharded(&single, &tensors, 30, &WriteOptions::default()).unwrap_err().code(),
        "df-exists"
    );
    assert_eq!(names(&single), ["model.safetensors"]);
}

#[test]
fn two_threads_open_one_set() {
    let scratch = Scratch::new();
    let data = write_set(scratch.path());
    for _ in 0..20 {
        let set = ShardedSafeTensors::open(scratch.path()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for (name, data) in ["a", "b", "c"].iter().zip(&data) {
                        assert_eq!(set.tensor(name).unwrap().data(), data);
                    }
                });
            }
        });
    }
}
