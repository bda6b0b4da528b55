//! Any keys and tensors: written, read, split, merged and changed, the same comes back.

#![no_main]

use apr_fuzz::Choices;
use gguf_core::{
    FirstShard, Gguf, GgufBuilder, Header, MergePlan, ReadOptions, ShardLimit, SplitKeys, SplitPlan, Value,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let choices = &mut Choices::new(input);
    let (builder, data) = apr_fuzz::gguf::builder(choices);
    let slices: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let layout = builder.layout().expect("sound");
    let file = layout.to_vec(&slices).expect("as long as planned");
    assert_eq!(layout.file_len(), file.len() as u64);
    let mut streamed = Vec::new();
    let pulled = layout.write_streamed(&mut streamed, |planned, sink| {
        data[planned.idx].chunks(5).try_for_each(|part| sink.write_all(part))
    });
    assert!(pulled.is_ok() && streamed == file);

    let gguf = Gguf::from_bytes_with(&file, &ReadOptions::COMPAT).expect("what we write we read");
    for (info, data) in gguf.tensors().iter().zip(&data) {
        assert_eq!(gguf.tensor_data(info), Some(&data[..]));
    }
    let copy = GgufBuilder::copy_of(gguf.header()).expect("what we write we copy");
    assert_eq!(copy, builder);
    change(choices, &file, &gguf);
    split(choices, &file, &gguf);
});

/// A value changed where it stands, if it fits.
fn change(choices: &mut Choices<'_>, file: &[u8], gguf: &Gguf<'_>) {
    let value = choices.pick([Value::U32(7), Value::I64(-7), Value::F32(7.0), Value::Bool(true)]);
    for entry in gguf.entries() {
        let Ok(patch) = gguf.patch(entry.key().to_str().expect("we wrote it"), value) else { continue };
        let mut changed = file.to_vec();
        let at = patch.offset as usize;
        changed[at..at + patch.bytes.len()].copy_from_slice(&patch.bytes);
        let changed =
            Gguf::from_bytes_with(&changed, &ReadOptions::COMPAT).expect("a patch keeps a file sound");
        for (old, new) in gguf.entries().iter().zip(changed.entries()) {
            let expected = if old.key() == entry.key() { value } else { old.value() };
            assert_eq!((new.key(), format!("{:?}", new.value())), (old.key(), format!("{expected:?}")));
        }
    }
}

/// Split and merged, the file is back.
fn split(choices: &mut Choices<'_>, file: &[u8], gguf: &Gguf<'_>) {
    let limit = choices.pick([ShardLimit::Tensors(1), ShardLimit::Tensors(2), ShardLimit::Bytes(100)]);
    let first = choices.pick([FirstShard::Tensors, FirstShard::KeysOnly]);
    let Ok(plan) = SplitPlan::new(gguf.header(), limit, first) else { return };
    let shards: Vec<Vec<u8>> = (0..plan.shards().len())
        .map(|idx| {
            let infos = &gguf.tensors()[plan.shards()[idx].clone()];
            let data: Vec<&[u8]> = infos.iter().filter_map(|info| gguf.tensor_data(info)).collect();
            let layout = plan.builder(gguf.header(), idx).and_then(|builder| builder.layout());
            layout.and_then(|layout| layout.to_vec(&data)).expect("part of a sound file")
        })
        .collect();
    let read = |shard| Gguf::from_bytes_with(shard, &ReadOptions::COMPAT).expect("what we write we read");
    let shards: Vec<Gguf<'_>> = shards.iter().map(|shard| read(shard)).collect();
    let headers: Vec<Header<'_>> = shards.iter().map(|shard| shard.header().clone()).collect();
    let merge = MergePlan::new(&headers, SplitKeys::Removed).expect("all shards in order");
    let source = |&(shard, idx): &(usize, usize)| shards[shard].tensor_data(&shards[shard].tensors()[idx]);
    let data: Vec<&[u8]> = merge.sources().iter().filter_map(source).collect();
    let merged = merge.builder().layout().and_then(|layout| layout.to_vec(&data)).expect("a sound file");
    // `split.count` of the whole was taken out with those of the shards.
    if gguf.get("split.count").is_none() {
        assert!(merged == file);
    }
}
