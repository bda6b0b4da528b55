//! Indexes made from the files of a folder, and files that are read as their repair.

use alloc::sync::Arc;

use st_core::{Change, Dtype, ReadOptions, TensorView, WriteOptions};
use st_mmap::{FolderIndex, RepairedFile, SafeTensorsFile, ShardedSafeTensors, write_sharded};

use crate::scratch::Scratch;

const INDEX: &str = "model.safetensors.index.json";

#[test]
fn a_stale_index_is_made_anew() {
    let scratch = Scratch::new();
    let folder = scratch.join("model");
    let view = TensorView::new(Dtype::U8, &[4], &[1, 2, 3, 4]).unwrap();
    write_sharded(&folder, &[("a", view), ("b", view)], 4, &WriteOptions::default()).unwrap();
    let sound = std::fs::read_to_string(folder.join(INDEX)).unwrap();
    let stale = sound.replace("of-00002", "of-00005").replace('8', "9");
    for old in [Some(stale.as_str()), Some("no JSON"), None] {
        match old {
            Some(text) => std::fs::write(folder.join(INDEX), text).unwrap(),
            None => std::fs::remove_file(folder.join(INDEX)).unwrap(),
        }
        let made = FolderIndex::of(&folder, &ReadOptions::STRICT).unwrap();
        assert_eq!((made.name(), made.index().to_json()), (INDEX, sound.clone()));
        assert_eq!(made.shards().iter().map(|shard| shard.tensors).sum::<u64>(), 2);
        assert!(made.others().is_empty());
        std::fs::write(folder.join(INDEX), made.index().to_json()).unwrap();
        assert!(ShardedSafeTensors::open(&folder).unwrap().check().unwrap().is_empty());
    }
}

#[test]
fn what_no_index_can_describe_is_refused() {
    let scratch = Scratch::new();
    let folder = scratch.join("model");
    let view = TensorView::new(Dtype::U8, &[4], &[1, 2, 3, 4]).unwrap();
    write_sharded(&folder, &[("a", view), ("b", view)], 4, &WriteOptions::default()).unwrap();
    let refused = || FolderIndex::of(&folder, &ReadOptions::STRICT).unwrap_err().code();
    let [first, second] = [1, 2].map(|n| folder.join(format!("model-0000{n}-of-00002.safetensors")));
    let bytes = std::fs::read(&first).unwrap();
    std::fs::write(&second, &bytes).unwrap();
    assert_eq!(refused(), "sm-same-tensor");
    std::fs::write(&second, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(refused(), "st-file-length");
    std::fs::remove_file(&second).unwrap();
    assert_eq!(refused(), "sm-missing-shard");
    std::fs::write(folder.join("other-00001-of-00002.safetensors"), &bytes).unwrap();
    assert_eq!(refused(), "sm-several-sets");
    std::fs::write(folder.join("x.safetensors.index.json"), "{}").unwrap();
    assert_eq!(refused(), "sm-several-indexes");
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(refused(), "sm-no-shards");
}

#[test]
fn a_repaired_file_is_read_like_any_other() {
    let scratch = Scratch::new();
    let text = br#"{"__metadata__":{"a":1},"w":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#;
    let file = [&(text.len() as u64).to_le_bytes()[..], text, &[7, 8, 9, 0]].concat();
    let path = scratch.join("a.safetensors");
    std::fs::write(&path, &file).unwrap();
    let open = || read_at::FileSource::new(std::fs::File::open(&path).unwrap()).unwrap();
    let repaired = RepairedFile::of(open(), &path, &ReadOptions::STRICT).unwrap();
    let kinds: Vec<_> = repaired.repair().changes().iter().map(Change::kind).collect();
    assert_eq!(kinds, ["metadata-value", "alignment", "trailing-bytes"]);
    let shared: Arc<dyn read_at::SharedSource> = Arc::new(repaired);
    let opened =
        SafeTensorsFile::from_source(read_at::AnySource::Shared(shared), &path, &ReadOptions::STRICT)
            .unwrap();
    let mut data = [0; 3];
    opened.read_tensor("w", &mut data).unwrap();
    assert_eq!((data, opened.header().metadata().unwrap().get("a")), ([7, 8, 9], Some("1")));
    let mut one = [0];
    opened.read_range("w", 1..2, &mut one).unwrap();
    assert_eq!(one, [8]);
}
