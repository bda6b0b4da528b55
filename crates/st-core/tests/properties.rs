//! Claims about all inputs.
//!
//! A binary of its own: the library that makes random inputs takes longer to build than all other tests, and
//! mutation testing, which builds a thousand times, does without.

#![allow(missing_docs, clippy::unwrap_used, clippy::std_instead_of_alloc, clippy::std_instead_of_core)]

use std::collections::BTreeMap;

use proptest::prelude::*;
use st_core::{
    Alignment, Bounds, Dtype, Header, Index, Layout, Order, ReadOptions, SafeTensors, SlicePlan, TensorSpec,
    WriteOptions, find,
};

#[path = "it/file.rs"]
mod file;

use file::file;

#[derive(Clone, Debug)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Vec<u8>,
}

fn tensor() -> impl Strategy<Value = Tensor> {
    (0..22usize, prop::collection::vec(0..5usize, 0..4), any::<u8>()).prop_map(|(dtype, mut shape, fill)| {
        let dtype = Dtype::ELEMENTS[dtype];
        if dtype.byte_len(&shape).is_err() {
            shape.push(8);
        }
        let len = dtype.byte_len(&shape).unwrap() as usize;
        let data = (0..len).map(|at| fill.wrapping_add(at as u8)).collect();
        Tensor { dtype, shape, data }
    })
}

fn options() -> impl Strategy<Value = WriteOptions> {
    let metadata = prop::option::of(prop::collection::btree_map(".{0,12}", ".{0,12}", 0..4));
    let order = prop_oneof![Just(Order::Official), Just(Order::ByName), Just(Order::AsGiven)];
    (metadata, order, 3..13u32, 0..100usize).prop_map(|(metadata, order, shift, header_room)| WriteOptions {
        metadata,
        alignment: Alignment::new(1 << shift).unwrap(),
        order,
        header_room,
    })
}

fn tensors() -> impl Strategy<Value = BTreeMap<String, Tensor>> {
    prop::collection::btree_map(".{0,20}", tensor(), 0..8)
}

fn lay_out(tensors: &BTreeMap<String, Tensor>, options: &WriteOptions) -> Layout {
    let spec = |(name, tensor): (&'_ String, &'_ Tensor)| (name.clone(), tensor.dtype, tensor.shape.clone());
    let specs: Vec<_> = tensors.iter().map(spec).collect();
    Layout::new(specs.iter().map(|(name, dtype, shape)| TensorSpec { name, dtype: *dtype, shape }), options)
        .unwrap()
}

proptest! {
    #[test]
    fn what_is_written_is_read((tensors, options) in (tensors(), options())) {
        let layout = lay_out(&tensors, &options);
        let data: Vec<_> = tensors.values().map(|tensor| tensor.data.as_slice()).collect();
        let bytes = layout.to_vec(&data).unwrap();
        prop_assert_eq!(bytes.len() as u64, layout.file_len());
        let read = SafeTensors::from_bytes(&bytes).unwrap();
        prop_assert_eq!(read.len(), tensors.len());
        for (name, tensor) in &tensors {
            let view = read.tensor(name).unwrap();
            prop_assert_eq!((view.dtype(), view.shape(), view.data()), (tensor.dtype, &tensor.shape[..], &tensor.data[..]));
            let found = find(&bytes, name).unwrap().unwrap();
            prop_assert!(found.dims().eq(tensor.shape.iter().map(|&dim| dim as u64)));
            prop_assert_eq!((found.dtype(), found.data()), (tensor.dtype, &tensor.data[..]));
        }
        let metadata = read.header().metadata().map(|metadata| metadata.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect());
        prop_assert_eq!(&metadata, &options.metadata);
        // Written again with what was read, the bytes are the same.
        prop_assert_eq!(read.header().with_metadata(options.metadata.as_ref()).unwrap(), layout.header_bytes());
    }

    #[test]
    fn bytes_do_not_depend_on_the_order_given(tensors in tensors()) {
        let forward = lay_out(&tensors, &WriteOptions::default());
        let specs: Vec<_> = tensors.iter().rev().collect();
        let backward = Layout::new(
            specs.iter().map(|(name, tensor)| TensorSpec { name, dtype: tensor.dtype, shape: &tensor.shape }),
            &WriteOptions::default(),
        );
        let backward = backward.unwrap();
        prop_assert_eq!(forward.header_bytes(), backward.header_bytes());
    }

    /// The fast path for entries as official writers put them and the general one read the same.
    #[test]
    fn spaces_do_not_change_the_meaning(tensors in tensors(), seed in any::<u64>()) {
        let layout = lay_out(&tensors, &WriteOptions::default());
        let text = std::str::from_utf8(&layout.header_bytes()[8..]).unwrap();
        let mut spaced = String::new();
        let (mut in_string, mut escaped, mut state) = (false, false, seed);
        for character in text.chars() {
            let token = !in_string && "{}[]:,\"".contains(character);
            let closing = in_string && character == '"' && !escaped;
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let space = if state >> 61 == 0 { " " } else { "" };
            if token && !spaced.is_empty() {
                spaced += space;
            }
            spaced.push(character);
            if token && character != '"' || closing {
                spaced += space;
            }
            if character == '"' && !escaped {
                in_string = !in_string;
            }
            escaped = in_string && character == '\\' && !escaped;
        }
        let data = vec![0; (layout.file_len() - layout.header_bytes().len() as u64) as usize];
        let plain = file(text, &data);
        let spaced = file(&spaced, &data);
        let plain = Header::from_bytes(&plain, &ReadOptions::STRICT).unwrap();
        let spaced = Header::from_bytes(&spaced, &ReadOptions::STRICT).unwrap();
        let facts = |header: &Header| -> Vec<_> {
            header.iter().map(|info| (info.name().to_owned(), info.dtype(), info.shape().to_vec(), info.data_offsets())).collect()
        };
        prop_assert_eq!(facts(&plain), facts(&spaced));
    }

    #[test]
    fn any_bytes_are_judged_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), text in r#"[\[\]{}":,0-9a-z_\\ ]{0,64}"#) {
        for bytes in [bytes, file(&text, b""), file(&format!(r#"{{"a":{text}}}"#), b"")] {
            let strict = Header::from_bytes(&bytes, &ReadOptions::STRICT);
            let compat = Header::from_bytes(&bytes, &ReadOptions::COMPAT);
            prop_assert!(compat.is_ok() || strict.is_err());
            if strict.is_ok() {
                prop_assert!(find(&bytes, "a").is_ok());
            }
        }
    }

    #[test]
    fn slices_are_inside_ascending_and_apart(
        shape in prop::collection::vec(0..6usize, 0..4),
        index in prop::collection::vec((any::<bool>(), -7..7i64, prop::option::of(-7..7i64), 1..4u64), 0..4),
        dtype in 0..22usize,
    ) {
        let dtype = Dtype::ELEMENTS[dtype];
        let index: Vec<_> = index.into_iter().map(|(select, start, stop, step)| {
            if select { Index::Select(start) } else { Index::Range { start: Some(start), stop, step: step.try_into().unwrap() } }
        }).collect();
        let exact = SlicePlan::new(dtype, &shape, &index, Bounds::Exact);
        let clamp = SlicePlan::new(dtype, &shape, &index, Bounds::Clamp);
        if let Ok(exact) = &exact {
            prop_assert_eq!(Some(exact), clamp.as_ref().ok());
        }
        if let Ok(plan) = clamp {
            let whole = dtype.byte_len(&shape).unwrap();
            let mut end = None;
            let mut total = 0;
            for range in plan.ranges() {
                prop_assert!(range.start < range.end && range.end <= whole);
                prop_assert!(end.is_none_or(|end| range.start > end));
                total += range.end - range.start;
                end = Some(range.end);
            }
            prop_assert_eq!(total, plan.byte_len());
            prop_assert_eq!(dtype.byte_len(plan.shape()).unwrap(), total);
        }
    }
}
