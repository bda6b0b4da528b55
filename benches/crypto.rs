//! Times of `apr-crypto`: chunks beside the ciphers alone and beside age, tree hashes beside the hashes alone.
//!
//! `cargo bench --bench crypto -- [--rounds N] [--write] [ROW...]`, once as it is and once with `--features native`.
//!
//! Files for age go to `BENCH_DIR`, or to `/dev/shm` where there is one.

mod pool;

use std::fs::{self, File};
use std::hint::black_box;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit};
use apr_benches::{Contender, Plan, Work, contender};
use apr_crypto::{
    ChunkedEncryptor, ChunkedLayout, ChunkedReader, ChunkedWriter, FileKey, LeafLen, OsRandom,
    RecipientSecret, TreeAlgorithm, TreeHasher, TreeRoot, VerifiedReader,
};
use rayon::{ThreadPool, ThreadPoolBuilder};
use read_at::ReadAt as _;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use sha2::Digest as _;

/// The buffers that the ciphers alone get, and the plaintext of a chunk.
const BUFFER: usize = 16 * 1024;

/// What is below our own contenders.
const NATIVE: bool = cfg!(feature = "native");

fn main() {
    let mut plan = Plan::from_arguments(&["median", "best", "median ratio to the first"]);
    // Work of one thread stays where it is. That of two is handed over by this thread, which belongs to no pool and sleeps until it
    // is done: a worker of another pool would look for work of its own meanwhile, on a core that is needed.
    ThreadPoolBuilder::new().num_threads(1).build_global().expect("the first pool");
    rows(&mut plan, &pool::two_threads());
    plan.finish(if NATIVE { "crypto-native" } else { "crypto" });
}

fn rows(plan: &mut Plan, two: &ThreadPool) {
    for mib in [1, 16] {
        seal(plan, mib);
        open(plan, mib);
    }
    two_threads(plan, two);
    if !NATIVE {
        hash(plan);
        verify(plan);
    }
    age(plan, two);
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|idx| (idx * 31 + idx / 256).to_le_bytes()[0]).collect()
}

/// The ciphers alone, over buffers of 16 KiB one after the other, without anything around them: each is copied from the message
/// to its place in the output and encrypted there, or is there already.
struct Ciphers {
    rust: Aes256Gcm,
    native: LessSafeKey,
}

impl Ciphers {
    fn new() -> Self {
        let native = UnboundKey::new(&AES_256_GCM, &[1; 32]).expect("a key");
        Self { rust: Aes256Gcm::new(&[1; 32].into()), native: LessSafeKey::new(native) }
    }

    fn seal_rust(&self, plain: Option<&[u8]>, out: &mut [u8]) {
        for (idx, out) in out.chunks_mut(BUFFER).enumerate() {
            bring(plain, idx, out);
            let tag = self.rust.encrypt_inout_detached(&[2; 12].into(), &[], out.into());
            black_box(tag.expect("short"));
        }
    }

    fn seal_native(&self, plain: Option<&[u8]>, out: &mut [u8]) {
        for (idx, out) in out.chunks_mut(BUFFER).enumerate() {
            bring(plain, idx, out);
            let nonce = Nonce::assume_unique_for_key([2; 12]);
            let tag = self.native.seal_in_place_separate_tag(nonce, Aad::empty(), out);
            let _ = black_box(tag.expect("short"));
        }
    }

    /// Sealed buffers and their tags.
    fn sealed(&self, plain: &[u8]) -> (Vec<u8>, Vec<[u8; 16]>) {
        let mut sealed = plain.to_vec();
        let tags = sealed.chunks_mut(BUFFER).map(|buffer| {
            let tag = self.rust.encrypt_inout_detached(&[2; 12].into(), &[], buffer.into());
            tag.expect("short").into()
        });
        let tags = tags.collect();
        (sealed, tags)
    }

    fn open_rust(&self, sealed: &[u8], tags: &[[u8; 16]], work: &mut [u8]) {
        for ((sealed, tag), work) in sealed.chunks(BUFFER).zip(tags).zip(work.chunks_mut(BUFFER)) {
            work.copy_from_slice(sealed);
            let opened = self.rust.decrypt_inout_detached(&[2; 12].into(), &[], work.into(), tag.into());
            opened.expect("sound");
        }
    }

    fn open_native(&self, sealed: &[u8], tags: &[[u8; 16]], work: &mut [u8]) {
        for ((sealed, tag), work) in sealed.chunks(BUFFER).zip(tags).zip(work.chunks_mut(BUFFER)) {
            work.copy_from_slice(sealed);
            let nonce = Nonce::assume_unique_for_key([2; 12]);
            let opened =
                self.native.open_in_place_separate_tag(nonce, Aad::empty(), (*tag).into(), work, 0..);
            black_box(opened.expect("sound").len());
        }
    }
}

/// Copies buffer `idx` of the message, if there is one.
fn bring(message: Option<&[u8]>, idx: usize, out: &mut [u8]) {
    if let Some(message) = message {
        let begin = idx * BUFFER;
        out.copy_from_slice(&message[begin..begin + out.len()]);
    }
}

fn seal(plan: &mut Plan, mib: usize) {
    let row = format!("seal {mib} MiB");
    if !plan.wants(&row) {
        return;
    }
    let plain = data(mib << 20);
    let ciphers = Ciphers::new();
    let key = FileKey::generate(&mut OsRandom).expect("randomness");
    let [mut rust, mut native] = [plain.clone(), plain.clone()];
    let [mut rust_in_place, mut native_in_place] = [plain.clone(), plain.clone()];
    let mut reused = Vec::new();
    let mut buffer = buffer_for(&plain);
    let into = |buffer: &mut [u8]| {
        key.seal_chunked_into(&mut OsRandom, b"header", &plain, buffer).expect("as long");
    };
    let whole = || key.seal_chunked(&mut OsRandom, b"header", &plain).expect("memory");
    let contenders = peers_first(
        contender("aes-gcm 0.11, buffers of 16 KiB", || ciphers.seal_rust(Some(&plain), &mut rust)),
        contender("ring 0.17, buffers of 16 KiB", || ciphers.seal_native(Some(&plain), &mut native)),
        vec![
            contender("aes-gcm 0.11, the same in place", || ciphers.seal_rust(None, &mut rust_in_place)),
            contender("ring 0.17, the same in place", || ciphers.seal_native(None, &mut native_in_place)),
            contender("seal_chunked, one thread", whole),
            contender("seal_chunked_into the same buffer, one thread", || into(&mut buffer)),
            contender("ChunkedEncryptor into the same buffer, one thread", || {
                reused.clear();
                let mut encryptor =
                    ChunkedEncryptor::new(&key, &mut OsRandom, b"header", &mut reused).expect("randomness");
                encryptor.update(&plain, &mut reused).expect("memory");
                encryptor.finish(&mut reused).expect("memory");
            }),
            contender("ChunkedWriter to nowhere, one thread", || stream(&key, &plain[..], io::sink())),
        ],
    );
    plan.run(&row, Work::bytes(plain.len()), contenders);
}

fn open(plan: &mut Plan, mib: usize) {
    let row = format!("open {mib} MiB");
    if !plan.wants(&row) {
        return;
    }
    let plain = data(mib << 20);
    let ciphers = Ciphers::new();
    let (buffers, tags) = ciphers.sealed(&plain);
    let key = FileKey::generate(&mut OsRandom).expect("randomness");
    let sealed = key.seal_chunked(&mut OsRandom, b"header", &plain).expect("memory");
    let [mut rust, mut native] = [plain.clone(), plain.clone()];
    let mut ours = plain.clone();
    let whole = || key.open_chunked(b"header", &sealed).expect("sound");
    let contenders = peers_first(
        contender("aes-gcm 0.11, buffers of 16 KiB", || ciphers.open_rust(&buffers, &tags, &mut rust)),
        contender("ring 0.17, buffers of 16 KiB", || ciphers.open_native(&buffers, &tags, &mut native)),
        vec![
            contender("open_chunked, one thread", whole),
            contender("ChunkedReader into the same buffer, one thread", || {
                read_all(&key, &sealed, &mut ours);
            }),
        ],
    );
    plan.run(&row, Work::bytes(plain.len()), contenders);
}

/// What a message of this plaintext takes.
fn buffer_for(plain: &[u8]) -> Vec<u8> {
    let layout = ChunkedLayout::of_plaintext(plain.len() as u64).expect("short");
    vec![0; usize::try_from(layout.sealed_len()).expect("short")]
}

/// The same work in one thread and in two, a row each; many calls in a row, since a second core that slept a while is handed over
/// late by the machine below.
fn two_threads(plan: &mut Plan, two: &ThreadPool) {
    const CALLS: u32 = 8;
    let plain = data(16 << 20);
    let key = FileKey::generate(&mut OsRandom).expect("randomness");
    let sealed = key.seal_chunked(&mut OsRandom, b"header", &plain).expect("memory");
    let (mut buffer, mut opened) = (buffer_for(&plain), plain.clone());
    let ciphers = Ciphers::new();
    let mut halves = plain.clone();
    let works: [(&str, &mut (dyn FnMut() + Send)); 7] = [
        ("aes-gcm alone, half and half", &mut || {
            let (left, right) = halves.split_at_mut(8 << 20);
            rayon::join(|| ciphers.seal_rust(None, left), || ciphers.seal_rust(None, right));
        }),
        ("seal_chunked", &mut || drop(key.seal_chunked(&mut OsRandom, b"header", &plain).expect("memory"))),
        ("seal_chunked_into", &mut || {
            key.seal_chunked_into(&mut OsRandom, b"header", &plain, &mut buffer).expect("as long");
        }),
        ("ChunkedWriter", &mut || {
            stream(&key, &plain[..], io::sink());
        }),
        ("open_chunked", &mut || drop(key.open_chunked(b"header", &sealed).expect("sound"))),
        ("ChunkedReader", &mut || read_all(&key, &sealed, &mut opened)),
        ("TreeHasher, BLAKE3", &mut || drop(tree(&plain, TreeAlgorithm::Blake3, 16 << 10))),
    ];
    for (name, work) in works {
        let work = Mutex::new(work);
        let repeat = || {
            let mut work = work.lock().expect("no panic");
            (0..CALLS).for_each(|_| work());
        };
        let contenders =
            vec![contender("one thread", repeat), contender("two threads", || two.install(repeat))];
        plan.run(&format!("{name}, 16 MiB"), Work::Times(CALLS), contenders);
    }
}

/// The cipher that is below ours is what the ratios refer to.
fn peers_first<'a>(
    rust: Contender<'a>,
    native: Contender<'a>,
    ours: Vec<Contender<'a>>,
) -> Vec<Contender<'a>> {
    let mut all = if NATIVE { vec![native, rust] } else { vec![rust, native] };
    all.extend(ours);
    all
}

fn read_all(key: &FileKey, sealed: &[u8], out: &mut [u8]) {
    let reader = ChunkedReader::open(sealed, key, b"header").expect("sound");
    reader.read_exact_at(0, out).expect("sound");
}

/// Through the writer, a mebibyte at a time.
fn stream<W: Write + Send>(key: &FileKey, mut from: impl Read + Send, to: W) -> W {
    let mut writer = ChunkedWriter::new(to, key, &mut OsRandom, b"header").expect("randomness");
    let mut piece = vec![0; 1 << 20];
    loop {
        let len = from.read(&mut piece).expect("readable");
        if len == 0 {
            return writer.finish().expect("space");
        }
        writer.write_all(&piece[..len]).expect("space");
    }
}

/// The tree over content that comes a mebibyte at a time.
fn tree(content: &[u8], algorithm: TreeAlgorithm, leaf: u64) -> (TreeRoot, Vec<u8>) {
    let mut hasher = TreeHasher::new(algorithm, LeafLen::new(leaf).expect("a power of two"));
    content.chunks(1 << 20).for_each(|piece| hasher.update(piece));
    hasher.finish()
}

fn hash(plan: &mut Plan) {
    let plain = data(64 << 20);
    let tree = |algorithm, leaf| tree(&plain, algorithm, leaf);
    let row = "hash 64 MiB, BLAKE3";
    if plan.wants(row) {
        let contenders = vec![
            contender("blake3 1.8", || blake3::hash(&plain)),
            contender("TreeHasher, leaves of 16 KiB, one thread", || tree(TreeAlgorithm::Blake3, 16 << 10)),
            contender("TreeHasher, leaves of 1 MiB, one thread", || tree(TreeAlgorithm::Blake3, 1 << 20)),
        ];
        plan.run(row, Work::bytes(plain.len()), contenders);
    }
    let row = "hash 64 MiB, SHA-256";
    if plan.wants(row) {
        let contenders = vec![
            contender("sha2 0.11", || sha2::Sha256::digest(&plain)),
            contender("TreeHasher, leaves of 16 KiB, one thread", || tree(TreeAlgorithm::Sha256, 16 << 10)),
        ];
        plan.run(row, Work::bytes(plain.len()), contenders);
    }
}

fn verify(plan: &mut Plan) {
    let row = "verify 64 MiB, BLAKE3";
    if !plan.wants(row) {
        return;
    }
    let plain = data(64 << 20);
    let made = |leaf: u64| {
        let mut hasher = TreeHasher::new(TreeAlgorithm::Blake3, LeafLen::new(leaf).expect("a power of two"));
        hasher.update(&plain);
        hasher.finish()
    };
    let [small, large] = [made(16 << 10), made(256 << 10)];
    let mut out = vec![0; 64 << 20];
    let mut out_large = out.clone();
    let copy = &mut out.clone();
    let contenders = vec![
        contender("blake3 1.8, and a copy", || {
            copy.copy_from_slice(&plain);
            blake3::hash(copy)
        }),
        contender("VerifiedReader, leaves of 16 KiB, one thread", || {
            {
                let (root, outboard) = &small;
                let reader = VerifiedReader::new(*root, &plain[..], &outboard[..]).expect("as long");
                reader.read_exact_at(0, &mut out).expect("sound");
            };
        }),
        contender("VerifiedReader, leaves of 256 KiB, one thread", || {
            {
                let (root, outboard) = &large;
                let reader = VerifiedReader::new(*root, &plain[..], &outboard[..]).expect("as long");
                reader.read_exact_at(0, &mut out_large).expect("sound");
            };
        }),
    ];
    plan.run(row, Work::bytes(plain.len()), contenders);
}

/// Whole processes of age 1.x, file to file, beside the writer and the reader of chunks; both know their recipient's key.
fn age(plan: &mut Plan, two: &ThreadPool) {
    const LEN: usize = 256 << 20;
    let [seal_row, open_row] = ["seal a file of 256 MiB", "open a file of 256 MiB"];
    if !plan.wants(seal_row) && !plan.wants(open_row) {
        return;
    }
    let memory = Some(Path::new("/dev/shm")).filter(|folder| folder.is_dir());
    let folder = std::env::var_os("BENCH_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| memory.map(Path::to_path_buf)).unwrap_or_else(std::env::temp_dir);
    let folder = folder.join(format!("apr-crypto-bench-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let [plain, by_age, by_us, back] = ["plain", "age", "apr", "back"].map(|name| folder.join(name));
    fs::write(&plain, data(LEN)).expect("space");

    let keys = folder.join("key");
    let made = Command::new("age-keygen").arg("-o").arg(&keys).stderr(Stdio::null()).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("age is not installed: its rows are left out");
        let _ = fs::remove_dir_all(&folder);
        return;
    }
    let age = |arguments: &[&str], out: &Path, input: &Path| {
        let mut command = Command::new("age");
        command.args(arguments).arg("-i").arg(&keys).arg("-o").arg(out).arg(input);
        assert!(command.status().expect("age").success());
    };
    let us = RecipientSecret::generate(&mut OsRandom).expect("randomness");
    let seal_file = || {
        let key = FileKey::generate(&mut OsRandom).expect("randomness");
        let stanza = key.wrap_for(&mut OsRandom, &us.public(), b"bench").expect("randomness");
        let mut out = File::create(&by_us).expect("space");
        out.write_all(&stanza.to_bytes()).expect("space");
        stream(&key, File::open(&plain).expect("written"), out);
    };
    let open_file = || {
        let mut sealed = BufReader::new(File::open(&by_us).expect("written"));
        let mut stanza = [0; apr_crypto::RecipientStanza::LEN];
        sealed.read_exact(&mut stanza).expect("written");
        let stanza = apr_crypto::RecipientStanza::from_bytes(&stanza).expect("sound");
        let key = stanza.unwrap(&us, b"bench").expect("sound");
        let file = read_at::FileSource::new(File::open(&by_us).expect("written")).expect("a file");
        let begin = apr_crypto::RecipientStanza::LEN as u64;
        let window = read_at::Window::new(&file, begin, file.total_len() - begin).expect("inside");
        let reader = ChunkedReader::open(window, &key, b"header").expect("sound");
        let mut out = File::create(&back).expect("space");
        let mut piece = vec![0; 1 << 20];
        let mut at = 0;
        while at < reader.total_len() {
            let len = (reader.total_len() - at).min(1 << 20);
            let (piece, _) = piece.split_at_mut(len as usize);
            reader.read_exact_at(at, piece).expect("sound");
            out.write_all(piece).expect("space");
            at += len;
        }
    };
    let contenders = vec![
        contender("age 1.x, whole process", || age(&["-e"], &by_age, &plain)),
        contender("ChunkedWriter, one thread", seal_file),
        contender("ChunkedWriter, two threads", || two.install(seal_file)),
    ];
    plan.run(seal_row, Work::bytes(LEN), contenders);
    age(&["-e"], &by_age, &plain);
    seal_file();
    let contenders = vec![
        contender("age 1.x, whole process", || age(&["-d"], &back, &by_age)),
        contender("ChunkedReader, one thread", open_file),
        contender("ChunkedReader, two threads", || two.install(open_file)),
    ];
    plan.run(open_row, Work::bytes(LEN), contenders);
    fs::remove_dir_all(&folder).expect("ours");
}
