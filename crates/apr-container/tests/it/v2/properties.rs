//! Whatever is written is read again, and whatever is read is written again.

use apr_container::ReadOptions;
use apr_container::v2::{
    AprType, Container, Dtype, Index, Metadata, Order, Shard, ShardManifest, Stored, TensorView,
    WriteOptions, byte_len, to_vec,
};
use proptest::prelude::*;

use super::{BOTH, edited, sample};

type Owned = (String, AprType, Vec<u64>, Vec<u8>);

/// A type, a shape of few elements, and as many bytes as they need.
fn tensor() -> impl Strategy<Value = (AprType, Vec<u64>, Vec<u8>)> {
    let shape = prop::collection::vec(0u64..5, 0..=8);
    let types: Vec<AprType> = Dtype::ALL.iter().filter_map(|dtype| dtype.apr_type()).collect();
    (prop::sample::select(types), shape, any::<u64>()).prop_map(|(dtype, mut shape, seed)| {
        while byte_len(dtype, &shape).unwrap() > 4096 {
            shape.pop();
        }
        let len = byte_len(dtype, &shape).unwrap();
        let bytes = (0..len).map(|at| (seed >> (at % 57)) as u8 ^ at as u8).collect();
        (dtype, shape, bytes)
    })
}

fn tensors() -> impl Strategy<Value = Vec<Owned>> {
    let named = prop::collection::btree_map("\\PC{0,40}", tensor(), 0..8);
    let list = named.prop_map(|map| {
        map.into_iter().map(|(name, (dtype, shape, bytes))| (name, dtype, shape, bytes)).collect::<Vec<_>>()
    });
    list.prop_shuffle()
}

fn views(tensors: &[Owned]) -> Vec<TensorView<'_>> {
    let view = |(name, dtype, shape, bytes)| TensorView::new(name, dtype, shape, bytes).unwrap();
    tensors.iter().map(|(name, dtype, shape, bytes)| view((name.as_str(), *dtype, shape, bytes))).collect()
}

proptest! {
    #[test]
    fn tensors_round_trip(tensors in tensors(), model_type in ".*", as_given in any::<bool>()) {
        let views = views(&tensors);
        let order = if as_given { Order::AsGiven } else { Order::ByName };
        let options = WriteOptions { metadata: Metadata::new(&model_type), order, ..WriteOptions::default() };
        let file = to_vec(&views, &options).unwrap();
        let container = Container::from_bytes(&file).unwrap();
        prop_assert_eq!(container.len(), views.len());
        prop_assert_eq!(&container.metadata().model_type, &model_type);
        for view in &views {
            prop_assert_eq!(container.tensor(view.name()).unwrap(), *view);
            prop_assert_eq!(container.index().tensor(view.name()).unwrap().file_range().start % 64, 0);
        }
        let names: Vec<_> = container.tensors().unwrap().map(|view| view.name()).collect();
        prop_assert!(names.is_sorted());

        // Read from its beginning alone, it is the same.
        let needed = Index::prefix_len(&file[..64], file.len() as u64, &ReadOptions::STRICT).unwrap();
        let index = Index::from_prefix(&file[..needed as usize], file.len() as u64, &ReadOptions::STRICT).unwrap();
        prop_assert_eq!(format!("{index:?}"), format!("{:?}", container.index()));

        // Written again in the order of the names, it is what a writer with all tensors at hand makes.
        let again: Vec<_> = container.tensors().unwrap().collect();
        let again = to_vec(&again, &WriteOptions::like(container.index())).unwrap();
        let by_name = to_vec(&views, &WriteOptions { order: Order::ByName, ..options }).unwrap();
        prop_assert!(again == by_name);
    }

    #[test]
    fn any_changed_byte_of_a_sealed_file_is_refused(tensors in tensors(), at in any::<prop::sample::Index>(), xor in 1u8..) {
        let mut file = to_vec(&views(&tensors), &WriteOptions::default()).unwrap();
        let at = at.index(file.len());
        file[at] ^= xor;
        prop_assert!(Container::from_bytes(&file).is_err(), "byte {} of {}", at, file.len());
    }

    /// Checksums that fit do not make a file sound.
    #[test]
    fn resealed_changes_lead_to_a_verdict(changes in prop::collection::vec((4usize..700, any::<u8>()), 1..6)) {
        let file = sample();
        let file = edited(&file, |file| {
            for (at, value) in &changes {
                let at = at % file.len();
                file[at.max(4)] = *value;
            }
        });
        for options in &BOTH {
            if let Ok(stored) = Stored::from_bytes(&file, options) {
                let container = stored.container();
                for view in container.tensors().into_iter().flatten() {
                    let _ = (view.to_f32(), view.element_count());
                }
                if let Ok(again) = container.tensors() {
                    let again: Vec<_> = again.collect();
                    let _ = to_vec(&again, &WriteOptions::like(container.index()));
                }
            }
        }
    }

    #[test]
    fn any_bytes_lead_to_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for options in &BOTH {
            prop_assert!(Stored::from_bytes(&bytes, options).is_err());
            let _ = ShardManifest::from_json(&bytes, options);
        }
    }

    #[test]
    fn manifests_round_trip(
        shards in prop::collection::btree_map("[a-z ü]{1,9}", (any::<u32>(), prop::collection::vec(".*", 0..4)), 0..5),
    ) {
        let mut seen = std::collections::BTreeSet::new();
        let shards = shards.into_iter().map(|(filename, (size, mut tensors))| {
            tensors.retain(|tensor| seen.insert(tensor.clone()));
            Shard { filename, size: size.into(), tensors, ..Shard::default() }
        });
        let manifest = ShardManifest::new(shards.collect()).unwrap();
        let text = manifest.to_json();
        prop_assert_eq!(&ShardManifest::from_json(text.as_bytes(), &ReadOptions::STRICT).unwrap(), &manifest);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::to_string_pretty(&value).unwrap().len(), text.len());
    }
}
