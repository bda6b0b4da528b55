//! Times of the `.apr` container and of a linear model, beside the crates that made the format.
//!
//! `cargo bench --manifest-path benches/peers/Cargo.toml --bench apr_speed -- [--rounds N] [--write] [ROW...]`
//!
//! Files go to `BENCH_DIR`, or to `/dev/shm` where there is one; rows that end in `on disk` to `BENCH_DISK`, or to the
//! folder for temporary files.

mod data;

use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};

use apr_benches::{Plan, Work, contender};
use apr_container::{
    Compression, ModelType, Protection, SaveOptions, load, load_as_recipient, load_encrypted,
    load_from_bytes, save, save_encrypted, save_for_recipient, to_vec,
};
use apr_crypto::{Argon2Cost, OsRandom, Password, RecipientSecret, Salt};
use apr_models::{LinearRegression, Matrix};
use aprender_015::format as v0_15;
use aprender_072::format as v0_72;
use x25519_dalek_2::{PublicKey as X25519PublicKey, StaticSecret as X25519SecretKey};

use crate::data::{Pair, Values, folder};

const KIND: ModelType = ModelType::LinearRegression;

fn main() {
    let mut plan = Plan::from_arguments(&["median", "best", "median ratio to the first"]);
    for count in [10, 1_000_000] {
        plain(&mut plan, count);
        for values in [Values::Noise, Values::Pattern] {
            zstd(&mut plan, count, values);
            lz4(&mut plan, count, values);
        }
    }
    for count in [10, 1_000_000] {
        encrypted(&mut plan, count);
    }
    on_disk(&mut plan);
    predict(&mut plan);
    plan.finish("apr-speed");
}

/// Without compression: files, and from memory.
fn plain(plan: &mut Plan, count: usize) {
    let pair = Pair::new(count, Values::Noise);
    let path = scratch("plain");
    let row = format!("save plain {count}");
    if plan.wants(&row) {
        let contenders = vec![
            contender("apr-container", || ours(&pair.ours, &path, Compression::None)),
            contender("apr-container, in memory", || in_memory(&pair.ours, Compression::None)),
            contender("apr-container, in memory, then fs::write", || {
                fs::write(&path, in_memory(&pair.ours, Compression::None)).expect("space");
            }),
            contender("aprender 0.15.0", || older(&pair.older, &path, v0_15::Compression::None)),
            contender("aprender-core 0.72.3", || newer(&pair.newer, &path, v0_72::Compression::None)),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    ours(&pair.ours, &path, Compression::None);
    let bytes = fs::read(&path).expect("just written");
    let row = format!("load plain {count}");
    if plan.wants(&row) {
        plan.run(&row, Work::bytes(pair.payload_len), loads(&path));
    }
    let row = format!("load_from_bytes plain {count}");
    if plan.wants(&row) {
        let payload = &bytes[bytes.len() - 4 - pair.payload_len..bytes.len() - 4];
        let contenders = vec![
            contender("apr-container", || load_from_bytes::<LinearRegression>(&bytes, KIND).expect("sound")),
            contender("payload.to_vec()", || payload.to_vec()),
            contender("CRC-32 of the file alone", || crc32fast::hash(black_box(&bytes))),
            contender("aprender 0.15.0", || {
                let kind = v0_15::ModelType::LinearRegression;
                v0_15::load_from_bytes::<data::Older>(&bytes, kind).expect("sound")
            }),
            contender("aprender-core 0.72.3", || {
                let kind = v0_72::ModelType::LinearRegression;
                v0_72::load_from_bytes::<data::Newer>(&bytes, kind).expect("sound")
            }),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    let _ = fs::remove_file(&path);
}

fn zstd(plan: &mut Plan, count: usize, values: Values) {
    let pair = Pair::new(count, values);
    let path = scratch("zstd");
    let row = format!("save zstd {count} {values}");
    if plan.wants(&row) {
        let contenders = vec![
            contender("apr-container", || ours(&pair.ours, &path, Compression::ZstdDefault)),
            contender("aprender 0.15.0", || older(&pair.older, &path, v0_15::Compression::ZstdDefault)),
            contender("aprender-core 0.72.3", || newer(&pair.newer, &path, v0_72::Compression::ZstdDefault)),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    let row = format!("load zstd {count} {values}");
    if plan.wants(&row) {
        ours(&pair.ours, &path, Compression::ZstdDefault);
        plan.run(&row, Work::bytes(pair.payload_len), loads(&path));
    }
    let _ = fs::remove_file(&path);
}

/// The older peer has no lz4.
fn lz4(plan: &mut Plan, count: usize, values: Values) {
    let pair = Pair::new(count, values);
    let path = scratch("lz4");
    let row = format!("save lz4 {count} {values}");
    if plan.wants(&row) {
        let contenders = vec![
            contender("apr-container", || ours(&pair.ours, &path, Compression::LZ4)),
            contender("aprender-core 0.72.3", || newer(&pair.newer, &path, v0_72::Compression::Lz4)),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    let row = format!("load lz4 {count} {values}");
    if plan.wants(&row) {
        ours(&pair.ours, &path, Compression::LZ4);
        let mut contenders = loads(&path);
        contenders.remove(1);
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    let _ = fs::remove_file(&path);
}

/// For a recipient, whose key costs no Argon2id; and under a password, beside deriving its key alone.
fn encrypted(plan: &mut Plan, count: usize) {
    let pair = Pair::new(count, Values::Noise);
    let path = scratch("encrypted");
    let secret = RecipientSecret::from_bytes(&[7; 32]);
    let public = secret.public();
    let their_secret = X25519SecretKey::from([7; 32]);
    let their_public = X25519PublicKey::from(&their_secret);
    let options = || v0_15::SaveOptions::new().with_compression(v0_15::Compression::None);
    let kind = v0_15::ModelType::LinearRegression;

    let row = format!("save for a recipient {count}");
    if plan.wants(&row) {
        let protection = Protection::default().for_recipient(&public);
        let contenders = vec![
            contender("apr-container", || {
                save_for_recipient(&pair.ours, KIND, &path, SaveOptions::default(), &public).expect("space");
            }),
            contender("apr-container, in memory", || {
                let options = SaveOptions::default().with_protection(protection);
                to_vec(&pair.ours, KIND, &options).expect("fits")
            }),
            contender("aprender 0.15.0", || {
                v0_15::save_for_recipient(&pair.older, kind, &path, options(), &their_public).expect("space");
            }),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    // Each its own file: the peer's lacks what ours are bound with.
    save_for_recipient(&pair.ours, KIND, &path, SaveOptions::default(), &public).expect("space");
    let theirs = scratch("encrypted-theirs");
    v0_15::save_for_recipient(&pair.older, kind, &theirs, options(), &their_public).expect("space");
    let row = format!("load as recipient {count}");
    if plan.wants(&row) {
        let contenders = vec![
            contender("apr-container", || {
                load_as_recipient::<LinearRegression>(&path, KIND, &secret).expect("sound")
            }),
            contender("aprender 0.15.0", || {
                v0_15::load_as_recipient::<data::Older>(&path, kind, &their_secret).expect("sound")
            }),
            contender("aprender 0.15.0, its own file", || {
                v0_15::load_as_recipient::<data::Older>(&theirs, kind, &their_secret).expect("sound")
            }),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    let row = format!("save and load under a password {count}");
    if plan.wants(&row) {
        const PASSWORD: &str = "my-strong-password";
        let password = Password::from(PASSWORD);
        let contenders = vec![
            contender("apr-container", || {
                save_encrypted(&pair.ours, KIND, &path, SaveOptions::default(), PASSWORD).expect("space");
                load_encrypted::<LinearRegression>(&path, KIND, PASSWORD).expect("sound")
            }),
            contender("apr-crypto, the key twice", || {
                let salt = Salt::generate(&mut OsRandom).expect("randomness");
                [(); 2].map(|()| password.derive_key(&salt, &Argon2Cost::APR_V1).expect("memory"))
            }),
            contender("aprender 0.15.0", || {
                v0_15::save_encrypted(&pair.older, kind, &path, options(), PASSWORD).expect("space");
                v0_15::load_encrypted::<data::Older>(&path, kind, PASSWORD).expect("sound")
            }),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
    }
    let _ = (fs::remove_file(&path), fs::remove_file(&theirs));
}

/// What waiting for the medium adds: our `save` always waits, the peers never do.
fn on_disk(plan: &mut Plan) {
    for count in [10, 1_000_000] {
        let row = format!("save plain {count}, on disk");
        if !plan.wants(&row) {
            continue;
        }
        let pair = Pair::new(count, Values::Noise);
        let disk = std::env::var_os("BENCH_DISK").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = disk.join(format!("apr-bench-{}.apr", std::process::id()));
        let contenders = vec![
            contender("apr-container, fsync", || ours(&pair.ours, &path, Compression::None)),
            contender("apr-container, in memory, then fs::write", || {
                fs::write(&path, in_memory(&pair.ours, Compression::None)).expect("space");
            }),
            contender("aprender 0.15.0", || older(&pair.older, &path, v0_15::Compression::None)),
            contender("aprender 0.15.0, then fsync", || {
                older(&pair.older, &path, v0_15::Compression::None);
                File::open(&path)
                    .and_then(|file| file.sync_all())
                    .expect("a file that can be brought to the medium");
            }),
        ];
        plan.run(&row, Work::bytes(pair.payload_len), contenders);
        let _ = fs::remove_file(&path);
    }
}

/// One thread, ten features, far more rows than caches hold, beside reading the same numbers.
fn predict(plan: &mut Plan) {
    const FEATURES: usize = 10;
    const ROWS: usize = 10_000_000;
    let pair = Pair::new(FEATURES, Values::Noise);
    let row = format!("predict {ROWS} rows of {FEATURES}");
    if plan.wants(&row) {
        let values = Values::Noise.take(ROWS * FEATURES);
        let x = Matrix::from_vec(ROWS, FEATURES, values.clone()).expect("rows times columns");
        let theirs = aprender_015::Matrix::from_vec(ROWS, FEATURES, values).expect("rows times columns");
        let mut out = vec![0.0; ROWS];
        let contenders = vec![
            contender("reading the rows alone", || sum(black_box(x.as_slice()))),
            contender("apr-models, predict_into", || {
                pair.ours.predict_into(black_box(x.as_slice()), &mut out).expect("as many features");
            }),
            contender("apr-models, predict", || pair.ours.predict(black_box(&x))),
            contender("aprender 0.15.0", || {
                aprender_015::Estimator::predict(&pair.older, black_box(&theirs))
            }),
        ];
        plan.run(&row, Work::bytes(ROWS * FEATURES * 4), contenders);
    }
    let row = "predict one row of 10";
    if plan.wants(row) {
        const TIMES: u32 = 1_000;
        let one = Matrix::from_vec(1, FEATURES, Values::Noise.take(FEATURES)).expect("one row");
        let theirs =
            aprender_015::Matrix::from_vec(1, FEATURES, Values::Noise.take(FEATURES)).expect("one row");
        let mut out = [0.0];
        let contenders = vec![
            contender("apr-models, predict_into", || {
                (0..TIMES).for_each(|_| {
                    pair.ours
                        .predict_into(black_box(one.as_slice()), black_box(&mut out))
                        .expect("as many features");
                });
            }),
            contender("aprender 0.15.0", || {
                (0..TIMES).for_each(|_| {
                    black_box(aprender_015::Estimator::predict(&pair.older, black_box(&theirs)));
                });
            }),
        ];
        plan.run(row, Work::Times(TIMES), contenders);
    }
}

/// Adds in as many lanes as keep any vector unit busy, so that memory is the limit.
fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 64];
    let (blocks, rest) = values.as_chunks::<64>();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().chain(rest).sum()
}

fn ours(model: &LinearRegression, path: &Path, compression: Compression) {
    save(model, KIND, path, SaveOptions::default().with_compression(compression)).expect("space");
}

fn in_memory(model: &LinearRegression, compression: Compression) -> Vec<u8> {
    to_vec(model, KIND, &SaveOptions::default().with_compression(compression)).expect("fits")
}

fn older(model: &data::Older, path: &Path, compression: v0_15::Compression) {
    let options = v0_15::SaveOptions::new().with_compression(compression);
    v0_15::save(model, v0_15::ModelType::LinearRegression, path, options).expect("space");
}

fn newer(model: &data::Newer, path: &Path, compression: v0_72::Compression) {
    let options = v0_72::SaveOptions::new().with_compression(compression);
    v0_72::save(model, v0_72::ModelType::LinearRegression, path, options).expect("space");
}

/// Ours first, then the older peer.
fn loads(path: &Path) -> Vec<apr_benches::Contender<'_>> {
    vec![
        contender("apr-container", move || load::<LinearRegression>(path, KIND).expect("sound")),
        contender("aprender 0.15.0", move || {
            v0_15::load::<data::Older>(path, v0_15::ModelType::LinearRegression).expect("sound")
        }),
        contender("aprender-core 0.72.3", move || {
            v0_72::load::<data::Newer>(path, v0_72::ModelType::LinearRegression).expect("sound")
        }),
    ]
}

fn scratch(name: &str) -> PathBuf {
    folder().join(format!("apr-bench-{}-{name}.apr", std::process::id()))
}
