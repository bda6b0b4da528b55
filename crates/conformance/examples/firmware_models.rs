//! Writes the models that go into the firmware into a folder, and prints what the firmware has to say of them.
//! `cargo xtask firmware` compares.

use std::fs;
use std::path::{Path, PathBuf};

use apr_container::{EncodePayload, ModelType, Protection, SaveOptions, to_vec};
use apr_crypto::SigningKey;
use apr_models::{AnyModel, Classifier, LinearRegression, Vector};

/// Samples that are predicted; `crates/conformance/firmware/src/main.rs` has the same rule.
const N_ROWS: usize = 4;

/// Value of a feature: quarters, so that every machine has it exactly.
fn value(row: usize, column: usize) -> f32 {
    ((row * 7 + column * 3) % 11) as f32 * 0.25 - 1.0
}

fn rows(n_features: usize) -> Vec<f32> {
    (0..N_ROWS * n_features).map(|at| value(at / n_features, at % n_features)).collect()
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from).ok_or("name a folder")?;
    fs::create_dir_all(&folder)?;
    let key = SigningKey::from_seed(&[7; SigningKey::LEN]);
    fs::write(folder.join("key.bin"), key.verifying_key().as_bytes())?;
    let save = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes);

    let coefficients = (0..24).map(|idx| (idx as f32 * 0.7).sin()).collect();
    let linear = LinearRegression::from_parts(coefficients, 0.125)?;
    let file = signed(&linear, ModelType::LinearRegression, &key)?;
    save("linear.apr", &file)?;
    let mut out = [0.0; N_ROWS];
    linear.predict_into(&rows(24), &mut out)?;
    let bits = out.iter().map(|number| format!(" {:08x}", number.to_bits())).collect::<String>();
    println!("linear in place:{bits}");
    println!("linear loaded:{bits}");

    let vector =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/apr/a0723_rforest_zstd-default_plain.apr");
    let AnyModel::RandomForestClassifier(forest) = AnyModel::load(vector)? else {
        return Err("no forest".into());
    };
    save("forest.apr", &signed(&forest, ModelType::RandomForest, &key)?)?;
    let n_features = apr_models::Model::n_features(&forest).ok_or("a forest of no width")?;
    let mut classes = [0; N_ROWS];
    forest.predict_into(&rows(n_features), &mut classes)?;
    println!("forest loaded:{}", classes.iter().map(|class| format!(" {class:08x}")).collect::<String>());

    // Another model under the first one's signature; the checksum is right.
    let other = LinearRegression::from_parts(Vector::from_vec(vec![0.5; 24]), 0.125)?;
    let mut tampered = signed(&other, ModelType::LinearRegression, &key)?;
    let end = tampered.len() - 4;
    let block = end - 96..end - 32;
    tampered[block.clone()].copy_from_slice(&file[block]);
    let checksum = crc32(&tampered[..end]);
    tampered[end..].copy_from_slice(&checksum.to_le_bytes());
    save("tampered.apr", &tampered)?;
    println!("tampered: ac-signature");

    // More values than fit into the firmware's heap.
    let large = LinearRegression::from_parts(Vector::from_vec(vec![1.0; 10_000]), 0.0)?;
    save("large.apr", &signed(&large, ModelType::LinearRegression, &key)?)?;
    println!("large: ac-memory");
    Ok(())
}

fn signed<M: EncodePayload>(
    model: &M,
    model_type: ModelType,
    key: &SigningKey,
) -> Result<Vec<u8>, apr_container::Error> {
    let options = SaveOptions::default().with_created_at(0);
    to_vec(model, model_type, &options.with_protection(Protection::default().signed_by(key)))
}

/// The checksum of the format (CRC-32 as in IEEE 802.3), computed bitwise.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}
