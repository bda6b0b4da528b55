//! `save PATH SIZE SEED [replace|create|folder|in-place|read]`: saves a content that depends on size and seed alone, in
//! several writes, and says how that went: `ok` and exit code 0, or `error CODE: ...` and exit code 1. `in-place` is how
//! not to do it: it shows that the harness sees torn files where there are some.
//!
//! The reliability harness (`cargo xtask reliability`) runs this under faults. The two paths that are looked up around
//! the save do not exist: they mark its first and last system call in a trace.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use durable_file::{Error, Replacement, StagedDir};

const BEGIN: &str = "/durable-file-save-begins";
const END: &str = "/durable-file-save-ends";
const CHUNK: usize = 64 << 10;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let (path, size, seed, mode) = match args.as_slice() {
        [path, size, seed] => (path, size, seed, "replace"),
        [path, size, seed, mode] => (path, size, seed, mode.as_str()),
        _ => return usage(),
    };
    let (Ok(size), Ok(seed)) = (size.parse(), seed.parse()) else { return usage() };
    // All memory is taken before the save begins, so that only calls of the save are between the marks.
    let content = content(size, seed);
    let path = Path::new(path);
    let save = match mode {
        "replace" => replace,
        "create" => create,
        "folder" => folder,
        "in-place" => in_place,
        "read" => read,
        _ => return usage(),
    };
    // A test that injects a fault waits for this line. The look-up before it makes the standard library find out once which
    // system calls there are.
    let _ = fs::metadata(END);
    println!("saving");
    let _ = fs::metadata(BEGIN);
    let result = save(path, &content);
    let _ = fs::metadata(END);
    match result {
        Ok(()) => {
            println!("ok");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("error {}: {error}", error.code());
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: save PATH SIZE SEED [replace|create|folder|in-place|read]");
    ExitCode::from(2)
}

fn replace(path: &Path, content: &[u8]) -> Result<(), Error> {
    fill(Replacement::create(path)?, content)
}

fn create(path: &Path, content: &[u8]) -> Result<(), Error> {
    fill(Replacement::create_new(path)?, content)
}

fn fill(mut replacement: Replacement, content: &[u8]) -> Result<(), Error> {
    for chunk in content.chunks(CHUNK) {
        replacement.write_all(chunk).map_err(|error| replacement.write_error(error))?;
    }
    replacement.commit()
}

/// A folder that holds the content twice, once in a folder of its own.
fn folder(path: &Path, content: &[u8]) -> Result<(), Error> {
    let staged = StagedDir::create(path)?;
    let inner = staged.path().join("inner");
    let filled = fs::create_dir(&inner)
        .and_then(|()| fs::write(staged.path().join("content"), content))
        .and_then(|()| fs::write(inner.join("content"), content));
    match filled {
        Ok(()) => staged.commit(),
        Err(error) => {
            drop(staged);
            plain(&error)
        }
    }
}

/// Truncates the old file and writes the new content into it.
fn in_place(path: &Path, content: &[u8]) -> Result<(), Error> {
    let written = fs::File::create(path)
        .and_then(|mut file| content.chunks(CHUNK).try_for_each(|chunk| file.write_all(chunk)));
    written.or_else(|error| plain(&error))
}

/// Reads the file and brings its folder to the medium.
fn read(path: &Path, content: &[u8]) -> Result<(), Error> {
    let found = durable_file::read(path, 1 << 30)?;
    if found != content {
        println!("another content");
        std::process::exit(3);
    }
    durable_file::sync_dir(path.parent().unwrap_or(Path::new("/")))
}

/// Ends with an error that is the standard library's and has no code of ours.
fn plain(error: &io::Error) -> ! {
    println!("error plain: {error}");
    std::process::exit(1)
}

/// Numbers that depend on the seed alone (splitmix64).
fn content(size: usize, mut seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = seed;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
