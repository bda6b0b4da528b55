//! What an `.apr` file may cost: 8 MiB and 24 times its length, whatever it claims and however often; describing it
//! 1 MiB and 4 times its metadata.

use apr_container::{
    Compression, EncodePayload, Error, Expect, ModelType, PayloadLayout, PayloadWriter, ReadOptions,
    SaveOptions, UncheckedSignature, inspect_from, load_from_bytes_with, to_vec,
};
use apr_models::AnyModel;
use conformance::apr::hostile;
use conformance::apr::seal::{seal, seal_header};
use conformance::apr::vectors::{self, Content, Vectors};

use super::{HEAP, Worst};

pub(crate) fn heap_is_bounded() {
    let vectors = Vectors::load().unwrap();
    let mut worst = Worst::default();
    let mut describing = Worst::default();
    for vector in &vectors.hostile {
        let file = vectors::read(&vector.name).unwrap();
        judge(&vector.name, &file, &mut worst, &mut describing);
    }
    worst.print("hostile .apr files");
    describing.print("inspecting them");

    let (mut worst, mut describing) = (Worst::default(), Worst::default());
    for file in &vectors.files {
        if matches!(file.content, Content::V1(_) | Content::V2(_)) {
            let bytes = vectors::read(&file.name).unwrap();
            judge(&file.name, &bytes, &mut worst, &mut describing);
        }
    }
    worst.print("the peers' .apr files");
    describing.print("inspecting them");

    let mut worst = Worst::default();
    for (name, model_type, payload) in dense_payloads() {
        // Up to 16 KiB an unnamed model is asked for its tensors; 6 MiB are what any compressed file may expand to.
        let sizes =
            [(Compression::None, 1 << 14), (Compression::None, 1 << 20), (Compression::ZstdDefault, 6 << 20)];
        for (compression, len) in sizes {
            for layout in PayloadLayout::ALL {
                let options = SaveOptions::default().with_compression(compression).with_layout(layout);
                let file =
                    to_vec(&Raw(payload(len, layout)), model_type, &options.with_created_at(0)).unwrap();
                for level in [ReadOptions::STRICT, ReadOptions::COMPAT] {
                    let (read, usage) = HEAP.measure(|| any_model(&file, &level).is_ok());
                    let told = if read { "read" } else { "refused" };
                    let name = format!("{name}, {compression:?}, {len} bytes, {layout}: {told}");
                    worst.judge(&name, usage, file.len());
                }
            }
        }
    }
    worst.print("dense payloads");
    noise_is_read();
    changed_compressed_files_are_bounded();
}

/// Nothing authenticates a compressed file of version 2: every byte of one changed, with the header's checksum made right.
fn changed_compressed_files_are_bounded() {
    let mut file = vectors::read("hostile/v2h00_good.bin").unwrap();
    file[6] |= 2;
    seal(&mut file);
    let file = [&file[..64], &zstd::encode_all(&file[64..], 3).unwrap()].concat();
    let (mut worst, mut describing) = (Worst::default(), Worst::default());
    for at in 0..file.len() {
        for value in [0, 0x7F, 0xFF, file[at] ^ 1, !file[at]] {
            let mut changed = file.clone();
            changed[at] = value;
            seal_header(&mut changed);
            judge("a changed byte", &changed, &mut worst, &mut describing);
        }
    }
    worst.print("changed compressed files of version 2");
    describing.print("inspecting them");
}

fn any_model(file: &[u8], options: &ReadOptions) -> Result<AnyModel, Error> {
    load_from_bytes_with(file, Expect::AnyKnown, options)
}

/// What compresses badly and takes the memory it says, in a file that does not name its model, is no attack.
fn noise_is_read() {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let count = 500_000;
    let numbers: Vec<u8> = (0..count).flat_map(|_| noise().to_le_bytes()).collect();
    let payload = Raw([&[1][..], &u64s(&[count]), &numbers, &[0; 5]].concat());
    let mut worst = Worst::default();
    for compression in [Compression::None, Compression::ZstdDefault, Compression::ZstdMax, Compression::LZ4] {
        let options = SaveOptions::default().with_compression(compression).with_created_at(0);
        let file = to_vec(&payload, ModelType::LinearRegression, &options).unwrap();
        for level in [ReadOptions::STRICT, ReadOptions::COMPAT] {
            let (read, usage) = HEAP.measure(|| any_model(&file, &level).map(drop));
            assert!(read.is_ok(), "{compression:?}, {:?}: {read:?}", level.strictness);
            worst.judge(&format!("{compression:?}"), usage, file.len());
        }
    }
    worst.print("500,000 coefficients");
}

fn judge(name: &str, file: &[u8], worst: &mut Worst, describing: &mut Worst) {
    for options in [ReadOptions::STRICT, ReadOptions::COMPAT] {
        let options = options.with_unchecked_signature(UncheckedSignature::Allow);
        let (_, usage) = HEAP.measure(|| hostile::load(file, &options).is_ok());
        worst.judge(name, usage, file.len());
        let (_, usage) =
            HEAP.measure(|| load_from_bytes_with::<AnyModel>(file, Expect::AnyKnown, &options).is_ok());
        worst.judge(name, usage, file.len());
        let (_, usage) = HEAP.measure(|| hostile::inspect(file, &options).is_ok());
        describing.judge(name, usage, file.len());
        if file.starts_with(b"APRN") {
            let (info, usage) = HEAP.measure(|| inspect_from(&file, &options).is_ok());
            let claimed =
                file.get(8..12).map_or(0, |len| u32::from_le_bytes(len.try_into().unwrap()) as usize);
            let metadata_len = if info { claimed } else { claimed.min(file.len()) };
            assert!(usage.peak <= (1 << 20) + 4 * metadata_len, "{name}: {usage:?} to inspect");
        }
    }
}

/// A payload without a model.
struct Raw(Vec<u8>);

impl EncodePayload for Raw {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.bytes_raw(&self.0)
    }
}

type Dense = fn(usize, PayloadLayout) -> Vec<u8>;

/// Payloads of about so many bytes with as many of the smallest parts as these can hold.
fn dense_payloads() -> Vec<(&'static str, ModelType, Dense)> {
    let list: [(&'static str, ModelType, Dense); 15] = [
        ("coefficients", ModelType::LinearRegression, |len, _| {
            let count = len / 4;
            [&[1][..], &u64s(&[count as u64]), &vec![0; count * 4], &[0; 5]].concat()
        }),
        ("cluster labels", ModelType::KMeans, |len, _| {
            let count = len / 8;
            let labels = [&u64s(&[count as u64])[..], &vec![0; count * 8]].concat();
            [&u64s(&[1, 1])[..], &[0; 4], &[0], &[0], &[1], &labels, &[0; 4], &u64s(&[1])].concat()
        }),
        ("forest of empty trees", ModelType::RandomForest, |len, layout| {
            let tree: &[u8] = if layout == PayloadLayout::V0_10 { &[0, 0] } else { &[0, 0, 0] };
            forest(tree, len / tree.len(), &u64s(&[0]))
        }),
        ("forest of leaves", ModelType::RandomForest, |len, layout| {
            let tree =
                [&[1][..], &leaf(layout), &[0], if layout == PayloadLayout::V0_10 { &[] } else { &[0] }]
                    .concat();
            forest(&tree, len / tree.len(), &u64s(&[0]))
        }),
        ("samples a forest did not see", ModelType::RandomForest, |len, layout| {
            let tree =
                [&[1][..], &leaf(layout), &[0], if layout == PayloadLayout::V0_10 { &[] } else { &[0] }]
                    .concat();
            let count = len / 8;
            forest(&tree, 1, &[&u64s(&[count as u64])[..], &vec![0; count * 8]].concat())
        }),
        ("regressors of leaves", ModelType::RandomForest, |len, layout| {
            let value: &[u8] = if layout == PayloadLayout::V0_72 { &[0; 16] } else { &[0; 12] };
            let tree = [&[1][..], &1u32.to_le_bytes(), value, &[0], &u64s(&[2, 1])].concat();
            forest(&tree, len / tree.len(), &u64s(&[0]))
        }),
        ("a tree that only goes left", ModelType::DecisionTree, |len, layout| {
            let node = split(layout);
            let count = len / (node.len() + leaf(layout).len());
            let nodes = [node.repeat(count), leaf(layout).repeat(count + 1)].concat();
            [&[1][..], &nodes, &[0], if layout == PayloadLayout::V0_10 { &[] } else { &[0] }].concat()
        }),
        ("a tree that only goes right", ModelType::DecisionTree, |len, layout| {
            let node = [split(layout), leaf(layout)].concat();
            let nodes = [node.repeat(len / node.len()), leaf(layout)].concat();
            [&[1][..], &nodes, &[0], if layout == PayloadLayout::V0_10 { &[] } else { &[0] }].concat()
        }),
        ("an isolation forest of empty trees", ModelType::Custom, |len, _| {
            let count = len / 9;
            let trees = [&u64s(&[count as u64])[..], &[0; 9].repeat(count)].concat();
            [&u64s(&[1])[..], &[0], &[0; 4], &[0], &u64s(&[1]), &trees, &[0], &[0; 4]].concat()
        }),
        ("an isolation forest of leaves", ModelType::Custom, |len, _| {
            let tree = [&[1, 0, 0, 0, 0][..], &u64s(&[1, 0])].concat();
            let count = len / tree.len();
            let trees = [&u64s(&[count as u64])[..], &tree.repeat(count)].concat();
            [&u64s(&[count as u64])[..], &[0], &[0; 4], &[0], &u64s(&[1]), &trees, &[0], &[0; 4]].concat()
        }),
        ("boosted leaves", ModelType::GradientBoosting, |len, _| {
            let tree = [&u64s(&[1])[..], &[0xFF; 4], &u64s(&[1]), &[0; 4]].concat();
            let count = len / tree.len();
            let sum = [&u64s(&[1])[..], &0.5_f64.to_le_bytes(), &u64s(&[1, 0, count as u64])].concat();
            [&[1, 0, 0, 0, 1, 0, 0, 0][..], &sum, &tree.repeat(count)].concat()
        }),
        ("layers of one weight", ModelType::NeuralSequential, |len, _| {
            let layer = [&u64s(&[1])[..], &[0; 4], &u64s(&[1]), &[0; 4], &u64s(&[1]), &[0; 4]].concat();
            let count = len / layer.len();
            [&[1, 0, 0, 0, 1, 0, 0, 0][..], &u64s(&[1, count as u64]), &layer.repeat(count)].concat()
        }),
        ("short terms", ModelType::CountVectorizer, |len, _| {
            let count = len / 13;
            let letter = |idx: usize, place: u32| b'a' + (idx / 26_usize.pow(place) % 26) as u8;
            let term = |idx: usize| [4, 3, 2, 1, 0].map(|place| letter(idx, place));
            let terms = (0..count).flat_map(|idx| [&u64s(&[5])[..], &term(idx)].concat());
            let how = [&[0, 0, 0, 0, 0][..], &u64s(&[1, 1]), &[0], &u64s(&[0, count as u64])].concat();
            [&[1, 0, 0, 0, 1, 0, 0, 0][..], &how, &terms.collect::<Vec<_>>()].concat()
        }),
        ("a mixture of many experts", ModelType::MixtureOfExperts, |len, _| {
            let expert = [&[1][..], &u64s(&[1]), &[0; 4], &[0; 4], &[1]].concat();
            let count = len / expert.len();
            let gating = [
                &u64s(&[1, count as u64])[..],
                &1f32.to_le_bytes(),
                &u64s(&[count as u64]),
                &vec![0; count * 4],
            ]
            .concat();
            [
                &u64s(&[count as u64])[..],
                &expert.repeat(count),
                &gating,
                &u64s(&[1]),
                &1f32.to_le_bytes(),
                &[0; 8],
            ]
            .concat()
        }),
        ("covariances of no features", ModelType::Custom, |len, _| {
            let count = len / 24;
            let covariances = [&[1][..], &u64s(&[count as u64]), &[0; 24].repeat(count)].concat();
            [&u64s(&[1])[..], &[0; 4], &u64s(&[1]), &[0; 4], &[0], &[0], &covariances, &[0], &[0]].concat()
        }),
    ];
    list.into()
}

fn u64s(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn leaf(layout: PayloadLayout) -> Vec<u8> {
    let impurity: &[u8] = if layout == PayloadLayout::V0_72 { &[0; 4] } else { &[] };
    [&1u32.to_le_bytes()[..], &u64s(&[0, 1]), impurity].concat()
}

fn split(layout: PayloadLayout) -> Vec<u8> {
    let measured: &[u8] = if layout == PayloadLayout::V0_72 { &[0; 12] } else { &[] };
    [&0u32.to_le_bytes()[..], &u64s(&[0]), &[0; 4], measured].concat()
}

fn forest(tree: &[u8], count: usize, oob: &[u8]) -> Vec<u8> {
    let trees = [&u64s(&[count as u64])[..], &tree.repeat(count)].concat();
    [&trees[..], &u64s(&[count as u64]), &[0], &[0], oob, &[0], &[0]].concat()
}
