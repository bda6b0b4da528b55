//! Indices of sharded checkpoints.

use st_core::{
    Dtype, ErrorKind, Header, Layout, ReadOptions, ShardIndex, ShardPlan, ShardProblem, Subject, TensorSpec,
    WriteOptions,
};

#[test]
fn indices_are_written_as_the_hub_does() {
    let index = ShardIndex::new([("b", "1.safetensors"), ("a\u{7f}é😀\"\n\u{1}", "2.safetensors")], Some(12))
        .unwrap();
    let json = "{\n  \"metadata\": {\n    \"total_size\": 12\n  },\n  \"weight_map\": {\n    \"b\": \"1.safetensors\",\n    \
                \"a\\u007f\\u00e9\\ud83d\\ude00\\\"\\n\\u0001\": \"2.safetensors\"\n  }\n}";
    assert_eq!(index.to_json(), json);
    let again = ShardIndex::from_json(json.as_bytes()).unwrap();
    assert!(again.weight_map().eq(index.weight_map()));
    assert_eq!(again.to_json(), json);
    let empty = ShardIndex::new([], None).unwrap();
    assert_eq!(empty.to_json(), "{\n  \"metadata\": {},\n  \"weight_map\": {}\n}");
    assert_eq!(empty.total_size(), None);
}

#[test]
fn extra_metadata_is_kept() {
    let json = br#" {"other":[1,{"x":2}],"metadata":{"z":[1, 2] ,"total_size":8.0,"a":"b"},"weight_map":{"t":"s"}} "#;
    let index = ShardIndex::from_json(json).unwrap();
    assert_eq!(index.total_size(), Some(8));
    assert_eq!(index.metadata().get("z").map(String::as_str), Some("[1, 2]"));
    assert_eq!(
        index.to_json(),
        "{\n  \"metadata\": {\n    \"total_size\": 8,\n    \"a\": \"b\",\n    \"z\": [1, 2]\n  },\n  \"weight_map\": {\n    \"t\": \"s\"\n  }\n}"
    );
}

#[test]
fn indices_are_refused_with_their_reason() {
    for (json, code, offset) in [
        ("", "st-entry-type", Some(0)),
        ("[]", "st-entry-type", Some(0)),
        ("{", "st-json-end", Some(1)),
        ("{}", "st-shard-no-map", None),
        (r#"{"metadata":{}}"#, "st-shard-no-map", None),
        ("{}}", "st-json-trailing", Some(2)),
        (r#"{"weight_map":[]}"#, "st-entry-type", Some(14)),
        (r#"{"weight_map":{"a":1}}"#, "st-entry-type", Some(19)),
        (r#"{"weight_map":{"a":"b",}}"#, "st-json-syntax", Some(23)),
        (r#"{"weight_map":{},"weight_map":{}}"#, "st-shard-duplicate", Some(17)),
        (r#"{"metadata":{},"metadata":{}}"#, "st-shard-duplicate", Some(15)),
        (r#"{"metadata":{"a":1,"\u0061":1}}"#, "st-shard-duplicate", Some(19)),
        (r#"{"metadata":{"total_size":1,"total_size":1}}"#, "st-shard-duplicate", Some(28)),
        (r#"{"weight_map":{"a":"b","\u0061":"c"}}"#, "st-shard-duplicate", None),
        (r#"{"metadata":{"total_size":"8"}}"#, "st-shard-size", Some(13)),
        (r#"{"metadata":{"total_size":-8}}"#, "st-shard-size", Some(13)),
        (r#"{"metadata":{"total_size":8.5}}"#, "st-shard-size", Some(13)),
        (r#"{"metadata":{"total_size":1e3}}"#, "st-shard-size", Some(13)),
        (r#"{"metadata":{"x":[}}"#, "st-json-syntax", Some(18)),
        (r#"{"x":nope}"#, "st-json-syntax", Some(5)),
    ] {
        let error = ShardIndex::from_json(json.as_bytes()).expect_err(json);
        assert_eq!((error.code(), error.offset()), (code, offset), "{json}: {error}");
    }
    let longest = vec![b' '; 100_000_001];
    assert_eq!(ShardIndex::from_json(&longest[1..]).unwrap_err().code(), "st-entry-type");
    let error = ShardIndex::from_json(&longest).unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::LimitExceeded { limit: "bytes of a shard index", max: 100_000_000 });
    let error = ShardIndex::from_json(b"{\"\xff\":1}").unwrap_err();
    assert_eq!((*error.kind(), error.offset()), (ErrorKind::InvalidUtf8, Some(2)));
}

#[test]
fn shards_stay_in_the_folder_of_the_index() {
    for (path, accepted) in [
        ("a.safetensors", true),
        ("shards/a.safetensors", true),
        ("..a", true),
        ("", false),
        (".", false),
        ("..", false),
        ("../a", false),
        ("a/../b", false),
        ("a/./b", false),
        ("/a", false),
        ("a/", false),
        ("a//b", false),
        ("a\\b", false),
        ("C:a", false),
        ("a\0b", false),
    ] {
        let result = ShardIndex::new([("t", path)], None);
        assert_eq!(result.is_ok(), accepted, "{path}");
        if let Err(error) = result {
            assert_eq!(
                (*error.kind(), error.subject().map(Subject::name)),
                (ErrorKind::ShardPathEscapes, Some("t"))
            );
        }
    }
    let error = ShardIndex::from_json(br#"{"weight_map":{"t":"../a"}}"#).unwrap_err();
    assert_eq!(
        (error.code(), error.offset(), error.subject().map(Subject::name)),
        ("st-shard-path", Some(15), Some("t"))
    );
}

fn header(names: &[&str]) -> Header {
    let specs = names.iter().map(|name| TensorSpec { name, dtype: Dtype::U8, shape: &[3] });
    let layout = Layout::new(specs, &WriteOptions::default()).unwrap();
    Header::from_prefix(layout.header_bytes(), layout.file_len(), &ReadOptions::STRICT).unwrap()
}

#[test]
fn shards_are_compared_both_ways() {
    let shards = [("1", header(&["a", "b"])), ("2", header(&["c"]))];
    let header_of = |shard: &str| shards.iter().find(|(name, _)| *name == shard).map(|(_, header)| header);
    let check = |map: &[(&str, &str)], total| {
        let index = ShardIndex::new(map.iter().copied(), total).unwrap();
        index.check(header_of).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let sound = [("a", "1"), ("b", "1"), ("c", "2")];
    assert!(check(&sound, Some(9)).is_empty());
    assert!(check(&sound, None).is_empty());
    assert_eq!(check(&sound, Some(8)), ["expected 8 bytes by total_size, found 9 in the shards"]);
    assert_eq!(
        check(&[("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")], Some(9)),
        ["tensor \"d\" is listed in the index but not in shard \"2\""]
    );
    assert_eq!(
        check(&[("a", "1"), ("c", "2")], Some(9)),
        ["tensor \"b\" is in shard \"1\" but not listed there by the index"]
    );
    assert_eq!(
        check(&[("a", "1"), ("b", "2"), ("c", "2")], None),
        [
            "tensor \"b\" is in shard \"1\" but not listed there by the index",
            "tensor \"b\" is listed in the index but not in shard \"2\""
        ]
    );
    assert_eq!(
        check(&[("a", "1"), ("b", "1"), ("c", "3")], Some(1)),
        ["shard \"3\" is missing or unreadable"]
    );
    let index = ShardIndex::new([("x", "9")], None).unwrap();
    assert_eq!(index.check(header_of), [ShardProblem::MissingShard { shard: "9".into() }]);
}

#[test]
fn lookups_by_name() {
    let index = ShardIndex::new([("a", "2"), ("b", "1"), ("c", "2")], None).unwrap();
    assert_eq!((index.shard_of("c"), index.shard_of("b"), index.shard_of("d")), (Some("2"), Some("1"), None));
    assert!(index.shard_names().eq(["2", "1"]));
    assert!(index.weight_map().eq([("a", "2"), ("b", "1"), ("c", "2")]));
    assert_eq!(index.weight_map().len(), 3);
}

#[test]
fn tensors_are_divided_greedily() {
    let divide = |sizes: &[u64], max| {
        let names: Vec<_> = (0..sizes.len()).map(|n| format!("t{n}")).collect();
        let plan = ShardPlan::new(names.iter().map(String::as_str).zip(sizes.iter().copied()), max).unwrap();
        assert_eq!(plan.index().is_some(), plan.shards().len() > 1);
        if let Some(index) = plan.index() {
            assert_eq!(index.total_size(), Some(sizes.iter().sum()));
            for shard in plan.shards() {
                assert!(
                    shard.tensors.iter().all(|&idx| index.shard_of(&names[idx]) == Some(&shard.file_name))
                );
            }
        }
        plan.shards().iter().map(|shard| (shard.file_name.clone(), shard.tensors.clone())).collect::<Vec<_>>()
    };
    let of = |nth: usize, count: usize| format!("model-{nth:05}-of-{count:05}.safetensors");
    assert_eq!(divide(&[], 10), [("model.safetensors".to_owned(), vec![])]);
    assert_eq!(divide(&[4, 6], 10), [("model.safetensors".to_owned(), vec![0, 1])]);
    assert_eq!(divide(&[4, 7], 10), [(of(1, 2), vec![0]), (of(2, 2), vec![1])]);
    assert_eq!(divide(&[11], 10), [("model.safetensors".to_owned(), vec![0])]);
    // The large one comes before the shard that was open.
    assert_eq!(divide(&[1, 11, 2], 10), [(of(1, 2), vec![1]), (of(2, 2), vec![0, 2])]);
    assert_eq!(divide(&[5, 5, 0, 1, 9], 10), [(of(1, 2), vec![0, 1, 2]), (of(2, 2), vec![3, 4])]);
    let error = ShardPlan::new([("a", 1), ("a", 1)], 10).unwrap_err();
    assert_eq!((error.code(), error.subject().map(Subject::name)), ("st-shard-duplicate", Some("a")));
}
