//! Shard indices that a folder of files cannot show.

use std::collections::BTreeMap;

use conformance::sharded::{INDEX_FILE, problem_name};
use conformance::vectors::{self, Vectors};
use st_core::{ErrorKind, Header, ReadOptions, ShardIndex};

#[test]
fn paths_that_leave_the_folder_are_refused() {
    let paths = [
        "..",
        "../a",
        "a/../../b",
        "/a",
        "//a",
        "a/..",
        "./../a",
        "\\\\a",
        "..\\\\a",
        "C:\\\\a",
        "C:a",
        "a\\u0000b",
        "",
        ".",
        "a/",
        "a//b",
        "\\\\\\\\server\\\\share",
    ];
    for path in paths {
        let json = format!("{{\"weight_map\":{{\"t\":\"{path}\"}}}}");
        let error = ShardIndex::from_json(json.as_bytes()).expect_err(path);
        assert_eq!(*error.kind(), ErrorKind::ShardPathEscapes, "{path}");
    }
    for path in ["model.safetensors", "a/b.safetensors", "..a", "a..b", "...", "é"] {
        let json = format!("{{\"weight_map\":{{\"t\":\"{path}\"}}}}");
        assert!(ShardIndex::from_json(json.as_bytes()).is_ok(), "{path}");
    }
}

#[test]
fn a_missing_shard_is_reported_once_and_hides_the_total() {
    let index = vectors::read(&format!("sharded/ten_256/{INDEX_FILE}")).unwrap();
    let index = ShardIndex::from_json(&index).unwrap();
    let mut headers = BTreeMap::new();
    for shard in index.shard_names().skip(1) {
        let file = vectors::read(&format!("sharded/ten_256/{shard}")).unwrap();
        headers.insert(shard.to_owned(), Header::from_bytes(&file, &ReadOptions::STRICT).unwrap());
    }
    let problems = index.check(|shard| headers.get(shard));
    assert_eq!(problems.iter().map(problem_name).collect::<Vec<_>>(), ["missing shard"]);
    assert!(problems[0].to_string().contains("model-00001-of-00005.safetensors"));
}

#[test]
fn indices_survive_a_round_trip() {
    for folder in Vectors::load().unwrap().sharded {
        let bytes = vectors::read(&format!("{}/{INDEX_FILE}", folder.dir)).unwrap();
        let Ok(index) = ShardIndex::from_json(&bytes) else { continue };
        assert_eq!(index.to_json().as_bytes(), bytes, "{}", folder.dir);
    }
}

#[test]
fn damaged_indices_do_not_panic() {
    let bytes = vectors::read(&format!("sharded/exact_fit/{INDEX_FILE}")).unwrap();
    for at in 0..bytes.len() {
        let _ = ShardIndex::from_json(&bytes[..at]);
        for byte in *b"\0\"\\{}[]:,0-e\xff/." {
            let mut damaged = bytes.clone();
            damaged[at] = byte;
            if let Ok(index) = ShardIndex::from_json(&damaged) {
                assert!(ShardIndex::from_json(index.to_json().as_bytes()).is_ok());
            }
        }
    }
}
