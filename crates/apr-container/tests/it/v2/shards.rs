//! Models in several files.

use apr_container::v2::{Index, Shard, ShardManifest, ShardProblem};
use apr_container::{Error, ReadOptions};

use super::vector;

fn read(text: &str) -> Result<ShardManifest, Error> {
    ShardManifest::from_json(text.as_bytes(), &ReadOptions::STRICT)
}

fn peer() -> String {
    String::from_utf8(vector("f0723v2_shards.manifest.json")).unwrap()
}

#[test]
fn the_manifest_of_another_writer_is_made_again_byte_for_byte() {
    let text = peer();
    let manifest = read(&text).unwrap();
    assert_eq!(manifest.to_json(), text);
    assert_eq!((manifest.version(), manifest.total_size_declared()), ("2.0", 1032));
    assert_eq!((manifest.shard_of("layer.1.weight"), manifest.shard_of("x")), (Some(1), None));
    assert_eq!(manifest.weight_map().len(), 2);
    assert!(ShardManifest::new(manifest.shards().to_vec()).unwrap() == manifest);
}

#[test]
fn the_shards_are_what_the_manifest_says() {
    let manifest = read(&peer()).unwrap();
    let index = |name: &str| Index::from_bytes(&vector(name), &ReadOptions::STRICT).unwrap();
    let indices: Vec<_> =
        manifest.shards().iter().map(|shard| (&shard.filename, index(&shard.filename))).collect();
    let find = |name: &str| indices.iter().find(|(shard, _)| *shard == name).map(|(_, index)| index);
    assert!(manifest.check(find).is_empty());

    let first = &manifest.shards()[0].filename;
    let problems = manifest.check(|name| find(name).filter(|_| name != first));
    assert_eq!(problems, [ShardProblem::MissingShard { shard: first.clone() }]);

    // Both files are there, in each other's place.
    let swapped =
        manifest.check(|name| indices.iter().find(|(shard, _)| *shard != name).map(|(_, index)| index));
    let texts: Vec<_> = swapped.iter().map(ToString::to_string).collect();
    assert_eq!(texts.len(), 6, "{texts:?}");
    assert!(texts[0].contains("number 1 of 2, the manifest says 0 of 2"), "{}", texts[0]);
    assert!(matches!(&swapped[1], ShardProblem::GhostTensor { tensor, .. } if tensor == "layer.0.weight"));
    assert!(matches!(&swapped[2], ShardProblem::UnlistedTensor { tensor, .. } if tensor == "layer.1.weight"));

    let grown = read(&peer().replacen("516", "517", 1)).unwrap();
    let problems = grown.check(find);
    assert!(matches!(&problems[..], [ShardProblem::WrongSize { declared: 517, actual: 516, .. }]));
    let total = read(&peer().replacen("1032", "1", 1)).unwrap();
    assert_eq!(total.check(find), [ShardProblem::WrongTotalSize { declared: 1, actual: 1032 }]);
}

#[test]
fn manifests_that_contradict_themselves_are_refused() {
    let text = peer();
    let cases = [
        (r#""version": "2.0","#, r#""version": "1.0","#, "ac-v2-manifest"),
        (r#""version": "2.0","#, "", "ac-v2-missing-key"),
        (r#""version": "2.0","#, r#""version": 2,"#, "ac-v2-json-type"),
        (r#""version": "2.0","#, r#""version": "2.0","version": "2.0","#, "ac-v2-duplicate-key"),
        (r#""shard_count": 2"#, r#""shard_count": 3"#, "ac-v2-manifest"),
        (r#""tensor_count": 2"#, r#""tensor_count": 3"#, "ac-v2-manifest"),
        (r#""index": 1"#, r#""index": 2"#, "ac-v2-manifest"),
        (r#""index": 1"#, r#""index": 0"#, "ac-v2-manifest"),
        (r#""index": 1,"#, "", "ac-v2-missing-key"),
        (r#""layer.1.weight": 1"#, r#""layer.1.weight": 0"#, "ac-v2-manifest"),
        (r#""layer.1.weight": 1"#, r#""layer.1.weight": 18446744073709551615"#, "ac-v2-manifest"),
        (r#""layer.1.weight": 1"#, r#""layer.0.weight": 1"#, "ac-v2-duplicate-key"),
        (r#""layer.1.weight": 1"#, r#""layer.2.weight": 1"#, "ac-v2-manifest"),
        (
            "        \"layer.1.weight\"",
            "        \"layer.1.weight\",\"layer.1.weight\"",
            "ac-v2-duplicate-tensor",
        ),
        ("        \"layer.1.weight\"", "        7", "ac-v2-json-type"),
        ("00002-of-00002", "00001-of-00002", "ac-v2-manifest"),
        (r#""size": 516"#, r#""size": -1"#, "ac-v2-json-type"),
    ];
    for (from, to, code) in cases {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert_eq!(read(&changed).map_err(|error| error.code()), Err(code), "{from} -> {to}");
    }
}

#[test]
fn shard_names_stay_in_their_folder() {
    let hostile =
        ["", ".", "..", "../a", "/a", "a/b", "a\\b", "..\\a", "c:a", "a\0", "a\n", "sub/../../a", "\u{85}"];
    for name in hostile {
        let shard = Shard { filename: name.into(), ..Shard::default() };
        let error = ShardManifest::new(vec![shard]).unwrap_err();
        assert_eq!(error.code(), "ac-v2-shard-name", "{name:?}");
        let mut escaped = serde_json::to_string(name).unwrap();
        escaped.pop();
        let text = peer().replacen("\"f0723v2_shard-00001-of-00002.apr", &escaped, 1);
        assert_eq!(read(&text).unwrap_err().code(), "ac-v2-shard-name", "{name:?}");
    }
    for name in ["a", "..a", "model-00001-of-00002.apr", "ü.apr", ".hidden"] {
        let shard = Shard { filename: name.into(), ..Shard::default() };
        assert!(ShardManifest::new(vec![shard]).is_ok());
    }
}

#[test]
fn shards_may_be_listed_in_any_order_and_unknown_members_survive() {
    let text = concat!(
        r#"{"weight_map":{"b":0,"a":1},"note":{"x":[1]},"shards":["#,
        r#"{"index":1,"filename":"2.apr","size":2,"tensors":["a"],"sha256":"00"},"#,
        r#"{"tensors":["b"],"size":1,"filename":"1.apr","index":0}],"#,
        r#""tensor_count":2,"total_size":3,"shard_count":2,"version":"2.1"}"#,
    );
    let manifest = read(text).unwrap();
    let names: Vec<_> = manifest.shards().iter().map(|shard| shard.filename.as_str()).collect();
    assert_eq!(names, ["1.apr", "2.apr"]);
    assert_eq!(manifest.other()["note"].text(), r#"{"x":[1]}"#);
    let again = manifest.to_json();
    assert!(again.contains("\"sha256\": \"00\"") && again.ends_with("\"note\": {\"x\":[1]}\n}"));
    assert_eq!(read(&again).unwrap(), manifest);
    assert_eq!(read(&ShardManifest::new(vec![]).unwrap().to_json()).unwrap().shards().len(), 0);
}

#[test]
fn sums_and_sizes_do_not_overflow() {
    let shard = |name: &str| Shard { filename: name.into(), size: u64::MAX, ..Shard::default() };
    let error = ShardManifest::new(vec![shard("a"), shard("b")]).unwrap_err();
    assert_eq!(error.code(), "ac-v2-overflow");
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(read(&deep).unwrap_err().code(), "ac-limit");
    let long = vec![b' '; 100_000_001];
    let error = ShardManifest::from_json(&long, &ReadOptions::STRICT).unwrap_err();
    assert_eq!(error.code(), "ac-limit");
}
