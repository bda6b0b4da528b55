//! Copies with other keys, and values changed where they stand.

use gguf_core::Dtype;
use gguf_core::{Endian, Gguf, GgufBuilder, ReadOptions, Text, Value};

fn file(endian: Endian) -> Vec<u8> {
    let mut builder = GgufBuilder::with_endian(endian);
    builder.set("a", 1u32).unwrap();
    builder.set("b", "text").unwrap();
    builder.set_numbers("c", &[1u16, 2, 3]).unwrap();
    builder.set("general.alignment", 64u32).unwrap();
    builder.add_tensor("t", Dtype::F32, &[2, 3]).unwrap();
    builder.layout().unwrap().to_vec(&[&[7; 24]]).unwrap()
}

#[test]
fn a_patch_changes_one_value_and_nothing_else() {
    for endian in [Endian::Little, Endian::Big] {
        let file = file(endian);
        let gguf = Gguf::from_bytes_with(&file, &ReadOptions::COMPAT).unwrap();
        for (key, value) in [("a", Value::U32(77)), ("b", Value::Text(Text::from("abcd")))] {
            let patch = gguf.patch(key, value).unwrap();
            let mut changed = file.clone();
            changed[patch.offset as usize..][..patch.bytes.len()].copy_from_slice(&patch.bytes);
            let changed =
                Gguf::from_bytes_with(&changed, &ReadOptions::COMPAT).unwrap().get(key).map(|found| {
                    assert_eq!(found, value);
                    changed.iter().zip(&file).filter(|(a, b)| a != b).count()
                });
            assert!(changed.unwrap() <= patch.bytes.len());
        }
        let code = |key: &str, value: Value<'_>| gguf.patch(key, value).unwrap_err().code();
        assert_eq!(code("a", Value::I32(1)), "gg-in-place");
        assert_eq!(code("b", Value::Text(Text::from("longer"))), "gg-in-place");
        assert_eq!(code("general.alignment", Value::U32(64)), "gg-in-place");
        assert_eq!(code("z", Value::U32(64)), "gg-key-not-found");
        assert_eq!(code("c", gguf.get("a").unwrap()), "gg-in-place");
        assert!(gguf.patch("c", gguf.get("c").unwrap()).is_ok());
    }
}

#[test]
fn a_copy_takes_other_keys_and_alignments() {
    let file = file(Endian::Little);
    let gguf = Gguf::from_bytes(&file).unwrap();
    let mut copy = GgufBuilder::copy_of(gguf.header()).unwrap();
    assert!(copy.remove("general.alignment") && !copy.remove("general.alignment"));
    copy.rename("b", "z").unwrap();
    copy.set("a", "now a text").unwrap();
    assert_eq!(copy.rename("b", "x").unwrap_err().code(), "gg-key-not-found");
    assert_eq!(copy.rename("a", "z").unwrap_err().code(), "gg-key-duplicate");
    assert_eq!(copy.rename("a", "").unwrap_err().code(), "gg-key");
    copy.rename("a", "a").unwrap();
    let data = gguf.tensor_data(gguf.tensor("t").unwrap()).unwrap();
    let copy = copy.layout().unwrap().to_vec(&[data]).unwrap();
    let copy = Gguf::from_bytes(&copy).unwrap();
    let keys: Vec<String> = copy.entries().iter().map(|entry| entry.key().to_string()).collect();
    assert_eq!(keys, ["a", "z", "c"]);
    assert_eq!((copy.alignment(), copy.get("a").unwrap().as_str()), (32, Some("now a text")));
    assert_eq!(copy.tensor_data(copy.tensor("t").unwrap()), Some(data));
}

/// Keys of another byte order are turned around on the way.
#[test]
fn entries_cross_byte_orders() {
    let file = file(Endian::Big);
    let gguf = Gguf::from_bytes_with(&file, &ReadOptions::COMPAT).unwrap();
    let mut little = GgufBuilder::new();
    little.set("a", 5u8).unwrap();
    little.copy_entries(gguf.header()).unwrap();
    let little = little.layout().unwrap().to_vec(&[]).unwrap();
    let little = Gguf::from_bytes(&little).unwrap();
    for entry in gguf.entries() {
        assert_eq!(little.get(&entry.key().to_str_lossy()), Some(entry.value()));
    }
    assert_eq!(little.entries().len(), gguf.entries().len());
}

/// A search from the first key on would take minutes.
#[test]
fn as_many_keys_as_a_file_may_have_are_set_at_once() {
    const COUNT: u32 = 200_000;
    let mut builder = GgufBuilder::new();
    for round in 0..2 {
        for number in 0..COUNT {
            builder.set(&format!("k{number}"), number + round).unwrap();
        }
    }
    assert!(builder.remove("k1") && !builder.remove("k1"));
    builder.rename("k2", "k1").unwrap();
    builder.set("k1", 7u32).unwrap();
    let file = builder.layout().unwrap().to_vec(&[]).unwrap();
    let gguf = Gguf::from_bytes(&file).unwrap();
    let entry = |place: usize| {
        let entry = gguf.entries().get(place).unwrap();
        (entry.key().to_string(), entry.value())
    };
    assert_eq!(gguf.entries().len(), COUNT as usize - 1);
    assert_eq!(entry(1), ("k1".into(), Value::U32(7)));
    assert_eq!(entry(2), ("k3".into(), Value::U32(4)));
    let last = COUNT - 1;
    assert_eq!(entry(COUNT as usize - 2), (format!("k{last}"), Value::U32(COUNT)));
}
