//! Files that are refused, or verified, in little memory, whatever their size.

use core::fmt::Write as _;
use core::time::Duration;
use std::fs::File;
use std::time::Instant;

use apr_container::{
    Compression, EncodePayload, Error, ModelType, PayloadWriter, Protection, SaveOptions, to_vec,
};
use serde_json::Value;

use crate::sandbox::{Ran, Sandbox, maker, raw};

/// Runs a line of a shell in which a process may have 32 MiB of memory of its own.
fn limited(sandbox: &Sandbox, line: &str) -> Ran {
    limited_to(sandbox, 32, line)
}

/// Runs a line of a shell in which a process may have so many MiB of memory of its own.
fn limited_to(sandbox: &Sandbox, mib: u64, line: &str) -> Ran {
    sandbox.shell(&format!("ulimit -c 0; ulimit -d {}; {line}", mib << 10))
}

/// A file of `len` bytes that begins as `model` does and whose header announces `len` plus `more`.
fn sparse(sandbox: &Sandbox, name: &str, model: &[u8], len: u64, more: i64) {
    let header = apr_container::inspect_bytes(model).unwrap();
    let signature = if header.signed { 96 } else { 0 };
    let before = 32 + header.metadata_size;
    let payload = (len - before - signature - 4).checked_add_signed(more).unwrap();
    let payload = u32::try_from(payload).unwrap().to_le_bytes();
    let mut first = model[..before as usize].to_vec();
    first[12..16].copy_from_slice(&payload);
    first[16..20].copy_from_slice(&payload);
    sandbox.write(name, &first);
    File::options().write(true).open(sandbox.path(name)).unwrap().set_len(len).unwrap();
}

#[test]
fn a_large_file_whose_header_is_wrong_is_refused_at_once() {
    let sandbox = Sandbox::with_models();
    let gib = 1 << 30;
    sparse(&sandbox, "plain.apr", &sandbox.read("model.apr"), 3 * gib, -32);
    sparse(&sandbox, "longer.apr", &sandbox.read("made.apr"), 3 * gib, -32);
    sparse(&sandbox, "shorter.apr", &sandbox.read("made.apr"), 3 * gib, 32);
    // Sound lengths: refused for the key, or for want of a signature.
    sparse(&sandbox, "signed.apr", &sandbox.read("made.apr"), 3 * gib, 0);
    sparse(&sandbox, "unsigned.apr", &sandbox.read("model.apr"), 3 * gib, 0);
    let key = "--identity buyer.key";
    for (line, code) in [
        ("verify longer.apr --key maker.key.pub", "ac-unowned"),
        ("verify longer.apr --any-signer", "ac-unowned"),
        ("verify shorter.apr --trusted-keys trusted.txt", "ac-truncated"),
        ("verify signed.apr --key publisher.pub", "ac-untrusted-signer"),
        ("verify unsigned.apr --key maker.key.pub", "cli-no-signature"),
        ("predict plain.apr -i rows.csv", "ac-unowned"),
        ("predict longer.apr -i rows.csv --signer maker.key.pub", "ac-unowned"),
        ("predict shorter.apr -i rows.csv --any-signer", "ac-truncated"),
        ("predict signed.apr -i rows.csv --signer publisher.pub", "ac-untrusted-signer"),
        ("predict unsigned.apr -i rows.csv --any-signer", "ac-not-signed"),
        ("serve longer.apr --addr 127.0.0.1:0 --trusted-keys trusted.txt", "ac-unowned"),
        ("check longer.apr --signer maker.key.pub", "ac-unowned"),
        ("inspect longer.apr --signer maker.key.pub", "ac-unowned"),
        ("embed longer.apr -o project --signer maker.key.pub --crates .", "ac-unowned"),
        ("convert plain.apr out.safetensors", "ac-unowned"),
        ("quantize plain.apr --type q8_0 -o out.gguf", "ac-unowned"),
        (&format!("decrypt longer.apr -o out.apr {key} --signer maker.key.pub"), "ac-unowned"),
        ("encrypt plain.apr -o out.apr --recipient buyer.key.pub", "ac-unowned"),
        ("sign plain.apr --inside -o out.apr --key maker.key", "ac-unowned"),
        ("license show longer.apr --any-signer", "ac-unowned"),
    ] {
        // The fastest of a few: the machine may have other things to do.
        let mut fastest = Duration::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            let ran = limited(&sandbox, &format!("apr {line}"));
            fastest = fastest.min(start.elapsed());
            assert!(ran.stderr.contains(&format!("[{code}]")), "{line}\n{}", ran.stderr);
            if fastest < Duration::from_millis(100) {
                break;
            }
        }
        assert!(fastest < Duration::from_millis(500), "{line}: {fastest:?}");
    }
}

/// A payload of 64 MiB.
struct Zeros;

impl EncodePayload for Zeros {
    fn encode_payload(&self, out: &mut PayloadWriter<'_>) -> Result<(), Error> {
        out.bytes_raw(&vec![0; 64 << 20])
    }
}

#[test]
fn large_files_are_verified_in_little_memory() {
    let sandbox = Sandbox::with_models();
    let (options, key) = (SaveOptions::default().with_compression(Compression::None), maker());
    let protection = Protection::default().signed_by(&key);
    let file = to_vec(&Zeros, ModelType::Custom, &options.with_protection(protection)).unwrap();
    sandbox.write("large.apr", &file);
    let ran = limited(&sandbox, "apr verify large.apr --key maker.key.pub");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);

    // A signature of the file's hash that says it is one of the file itself, as old ones are.
    assert_eq!(sandbox.run(&["sign", "large.apr", "--key", "maker.key"]).exit, 0);
    let ran = limited(&sandbox, "apr verify large.apr --key maker.key.pub");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    let text = String::from_utf8(sandbox.read("large.apr.minisig")).unwrap();
    sandbox.write("large.apr.minisig", text.replacen("\nRU", "\nRW", 1).as_bytes());
    let ran = limited(&sandbox, "apr verify large.apr --key maker.key.pub");
    assert!(ran.exit == 4 && ran.stderr.contains("[cy-signature]"), "{}", ran.stderr);
}

#[test]
fn a_report_of_many_predictions_needs_no_more_memory_than_one_of_few() {
    const ROWS: usize = 1_000_000;
    let sandbox = Sandbox::with_models();
    let rows = String::from_utf8(sandbox.read("rows.csv")).unwrap();
    let (names, rows) = rows.split_once('\n').unwrap();
    let lines = core::iter::once(names).chain(rows.lines().cycle().take(ROWS));
    sandbox.write("many.csv", lines.flat_map(|line| [line, "\n"]).collect::<String>().as_bytes());
    for output in ["> found.json", "-o found.json"] {
        let ran = limited(&sandbox, &format!("apr predict model.apr -i many.csv --json {output}"));
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        let found: Value = serde_json::from_slice(&sandbox.read("found.json")).unwrap();
        assert_eq!(found["rows"], ROWS);
        assert_eq!(found["predictions"].as_array().unwrap().len(), ROWS);
        std::fs::remove_file(sandbox.path("found.json")).unwrap();
    }
}

/// A tensor, or a key, in a report has no copy of its own: what remains is the table of the file and the tree.
#[test]
fn a_report_of_a_million_entries_has_no_copy_of_each() {
    const ENTRIES: usize = 1_000_000;
    let sandbox = Sandbox::empty();
    let mut safetensors = String::from("{");
    for idx in 0..ENTRIES {
        let comma = if idx == 0 { "" } else { "," };
        let end = idx + 1;
        write!(
            safetensors,
            "{comma}\"t{idx}\":{{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[{idx},{end}]}}"
        )
        .unwrap();
    }
    safetensors.push('}');
    sandbox.write("many.safetensors", &raw(&safetensors, &vec![0; ENTRIES]));
    // Version 3, no tensor, and keys that are empty texts.
    let mut gguf = [&b"GGUF\x03\0\0\0"[..], &[0; 8], &(ENTRIES as u64).to_le_bytes()].concat();
    for idx in 0..ENTRIES {
        let key = format!("k{idx}");
        gguf.extend((key.len() as u64).to_le_bytes());
        gguf.extend(key.bytes().chain(8u32.to_le_bytes()).chain([0; 8]));
    }
    gguf.resize(gguf.len().next_multiple_of(32), 0);
    sandbox.write("many.gguf", &gguf);
    for (file, mib) in [("many.safetensors", 512), ("many.gguf", 112)] {
        for line in [format!("apr inspect {file} --json > found"), format!("apr inspect {file} > found")] {
            let ran = limited_to(&sandbox, mib, &line);
            assert_eq!(ran.exit, 0, "{line}: {}", ran.stderr);
        }
    }
}
