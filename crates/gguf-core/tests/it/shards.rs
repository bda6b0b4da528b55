//! Splitting and merging.

use gguf_core::Dtype;
use gguf_core::{
    FirstShard, Gguf, GgufBuilder, Header, MergePlan, ShardLimit, ShardName, SplitKeys, SplitPlan, Value,
};

fn file(n_tensors: u64, alignment: Option<u32>) -> Vec<u8> {
    let mut builder = GgufBuilder::new();
    builder.set("general.architecture", "demo").unwrap();
    if let Some(alignment) = alignment {
        builder.set("general.alignment", alignment).unwrap();
    }
    let data: Vec<Vec<u8>> = (0..n_tensors).map(|idx| vec![idx as u8; 4 * (idx as usize + 1)]).collect();
    for idx in 0..n_tensors {
        builder.add_tensor(&format!("t{idx}"), Dtype::F32, &[idx + 1]).unwrap();
    }
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    builder.layout().unwrap().to_vec(&data).unwrap()
}

fn split(gguf: &Gguf<'_>, plan: &SplitPlan) -> Vec<Vec<u8>> {
    let shard = |(idx, range): (usize, &core::ops::Range<usize>)| {
        let infos = &gguf.tensors()[range.clone()];
        let data: Vec<&[u8]> = infos.iter().map(|info| gguf.tensor_data(info).unwrap()).collect();
        plan.builder(gguf.header(), idx).unwrap().layout().unwrap().to_vec(&data).unwrap()
    };
    plan.shards().iter().enumerate().map(shard).collect()
}

fn merge(shards: &[Vec<u8>], keys: SplitKeys) -> Result<Vec<u8>, gguf_core::Error> {
    let shards: Vec<Gguf<'_>> = shards.iter().map(|shard| Gguf::from_bytes(shard).unwrap()).collect();
    let headers: Vec<Header<'_>> = shards.iter().map(|shard| shard.header().clone()).collect();
    let plan = MergePlan::new(&headers, keys)?;
    let data = plan.sources().iter().map(|&(shard, idx)| {
        let gguf = &shards[shard];
        gguf.tensor_data(&gguf.tensors()[idx]).unwrap()
    });
    plan.builder().layout()?.to_vec(&data.collect::<Vec<_>>())
}

#[test]
fn split_and_merge_give_the_file_back() {
    for alignment in [None, Some(8), Some(4096)] {
        let file = file(10, alignment);
        let gguf = Gguf::from_bytes(&file).unwrap();
        for (limit, first) in [
            (ShardLimit::Tensors(1), FirstShard::Tensors),
            (ShardLimit::Tensors(3), FirstShard::KeysOnly),
            (ShardLimit::Tensors(99), FirstShard::Tensors),
            (ShardLimit::Bytes(64), FirstShard::KeysOnly),
            (ShardLimit::Bytes(1), FirstShard::Tensors),
        ] {
            let plan = SplitPlan::new(gguf.header(), limit, first).unwrap();
            let shards = split(&gguf, &plan);
            assert_eq!(merge(&shards, SplitKeys::Removed).unwrap(), file);
            for (idx, shard) in shards.iter().enumerate() {
                let shard = Gguf::from_bytes(shard).unwrap();
                assert_eq!(shard.get("split.no"), Some(Value::U16(idx as u16)));
                assert_eq!(shard.get("split.count"), Some(Value::U16(shards.len() as u16)));
                assert_eq!(shard.get("split.tensors.count"), Some(Value::I32(10)));
                assert_eq!(shard.get("general.architecture").is_some(), idx == 0);
                assert_eq!(shard.alignment(), gguf.alignment());
                assert_eq!(shard.tensors().is_empty(), first == FirstShard::KeysOnly && idx == 0);
                let name = plan.file_name("m", idx);
                let parsed = ShardName::parse(&name).unwrap();
                assert_eq!((parsed.idx as usize, parsed.count as usize), (idx, shards.len()));
            }
        }
    }
}

#[test]
fn shards_are_filled_as_the_reference_fills_them() {
    let file = file(10, None);
    let gguf = Gguf::from_bytes(&file).unwrap();
    let plan = |limit, first| SplitPlan::new(gguf.header(), limit, first).unwrap().shards().to_vec();
    assert_eq!(plan(ShardLimit::Tensors(4), FirstShard::Tensors), [0..4, 4..8, 8..10]);
    assert_eq!(plan(ShardLimit::Tensors(5), FirstShard::KeysOnly), [0..0, 0..5, 5..10]);
    // Eight tensors of 32 bytes with their padding, two of 64.
    assert_eq!(plan(ShardLimit::Bytes(128), FirstShard::Tensors), [0..4, 4..8, 8..10]);
    assert_eq!(plan(ShardLimit::Bytes(33), FirstShard::Tensors).len(), 10);
}

#[test]
fn a_merged_file_keeps_the_keys_as_the_reference_does() {
    let file = file(3, None);
    let gguf = Gguf::from_bytes(&file).unwrap();
    let plan = SplitPlan::new(gguf.header(), ShardLimit::Tensors(2), FirstShard::Tensors).unwrap();
    let merged = merge(&split(&gguf, &plan), SplitKeys::AsReference).unwrap();
    let merged = Gguf::from_bytes(&merged).unwrap();
    let keys: Vec<String> = merged.entries().iter().map(|entry| entry.key().to_string()).collect();
    assert_eq!(keys, ["general.architecture", "split.no", "split.tensors.count", "split.count"]);
    assert_eq!(merged.get("split.count"), Some(Value::U16(0)));
    // It can be split again.
    let again = SplitPlan::new(merged.header(), ShardLimit::Tensors(2), FirstShard::Tensors).unwrap();
    assert_eq!(merge(&split(&merged, &again), SplitKeys::Removed).unwrap(), file);
}

#[test]
fn sets_that_do_not_belong_together_are_refused() {
    let file = file(6, None);
    let gguf = Gguf::from_bytes(&file).unwrap();
    let plan = SplitPlan::new(gguf.header(), ShardLimit::Tensors(2), FirstShard::Tensors).unwrap();
    let shards = split(&gguf, &plan);
    let code = |shards: &[Vec<u8>]| merge(shards, SplitKeys::AsReference).unwrap_err().code();
    assert_eq!(code(&[]), "gg-shard-count");
    assert_eq!(code(std::slice::from_ref(&file)), "gg-shard-keys");
    assert_eq!(code(&shards[..2]), "gg-shard-order");
    assert_eq!(code(&[shards[1].clone(), shards[0].clone(), shards[2].clone()]), "gg-shard-order");
    // The last one of another set: the same place, other tensors.
    let other = self::file(8, None);
    let other = Gguf::from_bytes(&other).unwrap();
    let plan = SplitPlan::new(other.header(), ShardLimit::Tensors(3), FirstShard::Tensors).unwrap();
    let foreign = split(&other, &plan).pop().unwrap();
    assert_eq!(code(&[shards[0].clone(), shards[1].clone(), foreign]), "gg-shard-tensors");

    let shard = Gguf::from_bytes(&shards[0]).unwrap();
    let refused = |header, limit| SplitPlan::new(header, limit, FirstShard::Tensors).unwrap_err().code();
    assert_eq!(refused(shard.header(), ShardLimit::Tensors(1)), "gg-shard-keys");
    assert_eq!(refused(gguf.header(), ShardLimit::Bytes(0)), "gg-shard-size");
    assert_eq!(plan.builder(gguf.header(), 9).unwrap_err().code(), "gg-shard-count");
    assert_eq!(plan.builder(gguf.header(), 2).unwrap_err().code(), "gg-shard-count");

    // All agree on a number of tensors that they do not have.
    let lying: Vec<Vec<u8>> = shards
        .iter()
        .map(|shard| {
            let gguf = Gguf::from_bytes(shard).unwrap();
            let mut builder = GgufBuilder::copy_of(gguf.header()).unwrap();
            builder.set("split.tensors.count", 7i32).unwrap();
            let data: Vec<&[u8]> =
                gguf.tensors().iter().map(|info| gguf.tensor_data(info).unwrap()).collect();
            builder.layout().unwrap().to_vec(&data).unwrap()
        })
        .collect();
    assert_eq!(code(&lying), "gg-shard-tensors");
}
