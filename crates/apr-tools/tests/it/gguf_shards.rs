//! GGUF models in several files, and back.

use std::fs;
use std::path::Path;

use apr_quant::Dtype;
use gguf_core::{Gguf, GgufBuilder, Value as GgufValue};
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn vector(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/gguf/files").join(name))
        .unwrap()
}

fn done(sandbox: &Sandbox, args: &[&str]) -> Value {
    let (exit, value) = sandbox.json(args);
    assert_eq!(exit, 0, "{args:?}\n{value:#}");
    value
}

fn refused(sandbox: &Sandbox, args: &[&str]) -> (i32, String) {
    let (exit, value) = sandbox.json(args);
    (exit, value["error"]["code"].as_str().unwrap_or("none").to_owned())
}

/// A model of byte tensors of these lengths.
fn bytes(lens: &[usize], fill: u8) -> Vec<u8> {
    let mut builder = GgufBuilder::new();
    builder.set("general.architecture", "demo").unwrap();
    for (idx, len) in lens.iter().enumerate() {
        builder.add_tensor(&format!("t{idx}"), Dtype::I8, &[*len as u64]).unwrap();
    }
    let data: Vec<Vec<u8>> =
        lens.iter().enumerate().map(|(idx, len)| vec![fill.wrapping_add(idx as u8); *len]).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    builder.layout().unwrap().to_vec(&data).unwrap()
}

fn names(report: &Value) -> Vec<&str> {
    report["shards"].as_array().unwrap().iter().map(|shard| shard["file"].as_str().unwrap()).collect()
}

#[test]
fn splitting_and_joining_give_the_same_bytes_back() {
    let sandbox = Sandbox::with_models();
    sandbox.write("be.gguf", &vector("tensors_int_f64_be.gguf"));
    sandbox.write("wide.gguf", &vector("tensors_align64.gguf"));
    sandbox.write("none.gguf", &vector("kv_all_types.gguf"));
    for (model, options) in [
        ("tiny_llama.gguf", &["--max-tensors", "5"][..]),
        ("tiny_llama.gguf", &["--max-tensors", "1", "--no-tensor-first-split"]),
        ("tiny_llama.gguf", &["--max-size", "100kB"]),
        ("tiny_llama.gguf", &[]),
        ("wide.gguf", &["--max-size", "1"]),
        ("be.gguf", &["--max-tensors", "1", "--compat"]),
        ("none.gguf", &["--max-tensors", "1"]),
    ] {
        let _ = fs::remove_dir_all(sandbox.path("parts"));
        let report = done(&sandbox, &[&["shard", model, "-o", "parts"], options].concat());
        let files = names(&report);
        let (prefix, count) = (model.strip_suffix(".gguf").unwrap(), files.len());
        let mut n_tensors = 0;
        for (idx, file) in files.iter().enumerate() {
            assert_eq!(*file, format!("{prefix}-{:05}-of-{count:05}.gguf", idx + 1));
            let shard = sandbox.read(&format!("parts/{file}"));
            assert_eq!(report["shards"][idx]["bytes"], shard.len());
            let compat = gguf_core::ReadOptions::COMPAT;
            let shard = Gguf::from_bytes_with(&shard, &compat).unwrap();
            assert_eq!(shard.get("split.no"), Some(GgufValue::U16(idx as u16)));
            assert_eq!(shard.get("split.count"), Some(GgufValue::U16(count as u16)));
            assert!(idx > 0 || shard.entries().len() > 3, "{file}");
            assert_eq!(report["shards"][idx]["tensors"], shard.tensors().len());
            n_tensors += shard.tensors().len();
            assert_eq!(shard.tensors().is_empty(), n_tensors == 0 || model == "none.gguf");
        }
        let compat: &[&str] = if model == "be.gguf" { &["--compat"] } else { &[] };
        let first = format!("parts/{}", files[0]);
        let last = format!("parts/{}", files[count - 1]);
        for input in [&first, &last, "parts"] {
            let args =
                [&["unshard", input, "-o", "joined.gguf", "--force", "--no-split-keys"], compat].concat();
            let joined = done(&sandbox, &args);
            assert_eq!((&joined["shards"], &joined["tensors"]), (&json!(count), &json!(n_tensors)));
            assert!(sandbox.read("joined.gguf") == sandbox.read(model), "{model} {options:?} {input}");
        }
        // As llama-gguf-split leaves it: all three keys, the count being 0.
        done(&sandbox, &[&["unshard", &first, "-o", "kept.gguf", "--force"], compat].concat());
        let kept = sandbox.read("kept.gguf");
        let kept = Gguf::from_bytes_with(&kept, &gguf_core::ReadOptions::COMPAT).unwrap();
        assert_eq!(kept.get("split.count"), Some(GgufValue::U16(0)));
        assert_eq!(kept.get("split.no"), Some(GgufValue::U16(0)));
        // It is a whole model again: it is split once more, but for the keys of the merge.
        done(&sandbox, &[&["shard", "kept.gguf", "-o", "again", "--dry-run"], compat].concat());
        assert!(!sandbox.path("again").exists());
    }
}

#[test]
fn shards_of_other_programs_are_joined() {
    let sandbox = Sandbox::empty();
    let files = [1, 2].map(|no| format!("shard-0000{no}-of-00002.gguf"));
    files.iter().for_each(|name| sandbox.write(name, &vector(name)));
    let report = done(&sandbox, &["unshard", &files[0], "-o", "whole.gguf"]);
    let parts = files.each_ref().map(|name| sandbox.read(name));
    let parts = parts.each_ref().map(|part| Gguf::from_bytes(part).unwrap());
    let whole = sandbox.read("whole.gguf");
    let whole = Gguf::from_bytes(&whole).unwrap();
    assert_eq!(report["tensors"], parts.iter().map(|part| part.tensors().len()).sum::<usize>());
    for part in &parts {
        for info in part.tensors() {
            let joined = whole.tensor(&info.name().to_str_lossy()).unwrap();
            assert!(whole.tensor_data(joined) == part.tensor_data(info), "{}", info.name());
        }
    }
    done(&sandbox, &["check", "whole.gguf"]);
    // To standard output as well, and from standard input.
    let output = sandbox.command(&["unshard", &files[1], "-o", "-"]).output().unwrap();
    assert!(output.stdout == sandbox.read("whole.gguf"));
    let ran = sandbox.run_with_input(&["shard", "-", "-o", "parts", "--max-tensors", "1"], &output.stdout);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert!(
        sandbox
            .path("parts")
            .read_dir()
            .unwrap()
            .all(|entry| { entry.unwrap().file_name().to_str().unwrap().starts_with("model-0000") })
    );
}

#[test]
fn sets_that_are_no_model_are_refused() {
    let sandbox = Sandbox::with_models();
    done(&sandbox, &["shard", "tiny_llama.gguf", "-o", "parts", "--max-tensors", "5"]);
    let report = done(&sandbox, &["shard", "tiny_llama.gguf", "-o", "n", "--max-tensors", "5", "--dry-run"]);
    let files = names(&report);
    assert_eq!(files.len(), 3);
    let path = |file: &str| format!("parts/{file}");
    let whole: Vec<Vec<u8>> = files.iter().map(|file| sandbox.read(&path(file))).collect();
    // The same model divided elsewhere: as many files, other tensors in them.
    let other = ["--max-size", "120kB", "--prefix", "tiny_llama"];
    let other = done(&sandbox, &[&["shard", "tiny_llama.gguf", "-o", "other"], &other[..]].concat());
    assert_eq!(names(&other).len(), 3, "{other:#}");
    let foreign = sandbox.read(&format!("other/{}", files[1]));
    sandbox.write("small.gguf", &bytes(&[8, 8, 8], 1));
    done(&sandbox, &["shard", "small.gguf", "-o", "small", "--max-tensors", "1", "--prefix", "tiny_llama"]);
    let stranger = sandbox.read(&format!("small/{}", files[1]));
    let swapped = vector("tensors_int_f64_be.gguf");

    for (what, change, exit, codes) in [
        ("missing", None, 3, &["cli-shards"][..]),
        ("empty", Some(vec![]), 3, &["cli-shards"]),
        ("cut in its tensors", Some(whole[1][..whole[1].len() - 40].to_vec()), 3, &["gg-data-end"]),
        (
            "cut in its header",
            Some(whole[1][..60].to_vec()),
            3,
            &["gg-truncated", "gg-string-length", "gg-count"],
        ),
        ("another's place", Some(whole[2].clone()), 3, &["gg-shard-order"]),
        ("twice the same", Some(whole[0].clone()), 3, &["gg-shard-order"]),
        ("of another split", Some(foreign), 3, &["gg-shard-tensors", "gg-name-duplicate"]),
        ("of another model", Some(stranger), 3, &["gg-shard-tensors"]),
        ("no shard", Some(sandbox.read("small.gguf")), 3, &["gg-shard-keys"]),
        ("of another byte order", Some(swapped), 6, &["gg-byte-order"]),
        ("of another format", Some(sandbox.read("model.safetensors")), 3, &["cli-shards"]),
    ] {
        match change {
            Some(bytes) => sandbox.write(&path(files[1]), &bytes),
            None => fs::remove_file(sandbox.path(&path(files[1]))).unwrap(),
        }
        let before = sandbox.listing();
        for input in [path(files[0]), path(files[2])] {
            let (found, code) = refused(&sandbox, &["unshard", &input, "-o", "x.gguf"]);
            assert_eq!(found, exit, "{what}: {code}");
            assert!(codes.contains(&code.as_str()), "{what}: {code}");
        }
        assert_eq!(sandbox.listing(), before, "{what}");
    }
    sandbox.write(&path(files[1]), &whole[1]);
    done(&sandbox, &["unshard", &path(files[0]), "-o", "x.gguf"]);

    // Two tensors of one name, in shards that agree about everything else.
    let twice = [bytes(&[8], 1), bytes(&[8], 2)];
    for (idx, file) in twice.iter().enumerate() {
        let gguf = Gguf::from_bytes(file).unwrap();
        let mut builder = GgufBuilder::copy_of(gguf.header()).unwrap();
        builder.set("split.no", idx as u16).unwrap();
        builder.set("split.tensors.count", 2_i32).unwrap();
        builder.set("split.count", 2_u16).unwrap();
        let data = gguf.tensor_data(&gguf.tensors()[0]).unwrap();
        let shard = builder.layout().unwrap().to_vec(&[data]).unwrap();
        sandbox.write(&format!("twice-0000{}-of-00002.gguf", idx + 1), &shard);
    }
    let (exit, code) = refused(&sandbox, &["unshard", "twice-00001-of-00002.gguf", "-o", "y.gguf"]);
    assert_eq!((exit, code.as_str()), (3, "gg-name-duplicate"));
    assert!(!sandbox.path("y.gguf").exists());
}

#[test]
fn what_cannot_be_divided_or_joined_is_refused() {
    let sandbox = Sandbox::with_models();
    done(&sandbox, &["shard", "tiny_llama.gguf", "-o", "parts", "--max-tensors", "5"]);
    let part = "parts/tiny_llama-00001-of-00003.gguf";
    fs::copy(sandbox.path(part), sandbox.path("renamed.gguf")).unwrap();
    fs::create_dir(sandbox.path("two")).unwrap();
    for name in ["a", "b"] {
        fs::copy(sandbox.path(part), sandbox.path(&format!("two/{name}-00001-of-00003.gguf"))).unwrap();
    }
    let before = sandbox.listing();
    for (args, exit, code) in [
        (&["shard", part, "-o", "n"][..], 3, "gg-shard-keys"),
        (&["shard", "cut.gguf", "-o", "n"], 3, "gg-data-end"),
        (&["shard", "tiny_llama.gguf", "-o", "n", "--align", "64"], 2, "cli-usage"),
        (&["shard", "tiny_llama.gguf", "-o", "n", "--order", "name"], 2, "cli-usage"),
        (&["shard", "tiny_llama.gguf", "-o", "n", "--prefix", "../m"], 2, "cli-usage"),
        (&["shard", "tiny_llama.gguf", "-o", "n", "--max-tensors", "0"], 2, "cli-usage"),
        (&["shard", "tiny_llama.gguf", "-o", "n", "--max-tensors", "1", "--max-size", "1G"], 2, "cli-usage"),
        (&["shard", "tiny_llama.gguf", "-o", "model.gguf"], 2, "cli-output-kind"),
        (&["shard", "tiny_llama.gguf", "-o", "parts", "--max-tensors", "5"], 2, "cli-output-exists"),
        (&["shard", "model.safetensors", "-o", "n", "--max-tensors", "1"], 2, "cli-usage"),
        (&["shard", "model.safetensors", "-o", "n", "--prefix", "m"], 2, "cli-usage"),
        (&["unshard", "renamed.gguf", "-o", "n.gguf"], 3, "cli-shards"),
        (&["unshard", "tiny_llama.gguf", "-o", "n.gguf"], 3, "cli-shards"),
        (&["unshard", "two", "-o", "n.gguf"], 2, "cli-usage"),
        (&["unshard", "two/a-00001-of-00003.gguf", "-o", "n.gguf"], 3, "cli-shards"),
        (&["unshard", "parts", "-o", "model.gguf"], 2, "cli-output-exists"),
        (&["unshard", "parts", "-o", "n.gguf", "--align", "64"], 2, "cli-usage"),
        (&["unshard", "sharded", "-o", "n.safetensors", "--no-split-keys"], 2, "cli-usage"),
    ] {
        let found = refused(&sandbox, args);
        assert_eq!((found.0, found.1.as_str()), (exit, code), "{args:?}");
    }
    assert_eq!(sandbox.listing(), before);
    // The help of the refusal to quantize a part names this command.
    let ran = sandbox.run(&["quantize", part, "-t", "q8_0", "-o", "n.gguf"]);
    assert!(ran.exit == 2 && ran.stderr.contains("apr unshard FIRST"), "{}", ran.stderr);
}

#[test]
fn a_set_of_many_files_needs_a_new_folder() {
    let sandbox = Sandbox::empty();
    sandbox.write("many.gguf", &bytes(&[3; 300], 7));
    fs::create_dir(sandbox.path("old")).unwrap();
    let args = ["shard", "many.gguf", "-o", "old", "--max-tensors", "1"];
    assert_eq!(refused(&sandbox, &args), (2, "cli-usage".to_owned()));
    assert_eq!(sandbox.path("old").read_dir().unwrap().count(), 0);
    done(&sandbox, &["shard", "many.gguf", "-o", "new", "--max-tensors", "1"]);
    done(&sandbox, &["unshard", "new", "-o", "again.gguf", "--no-split-keys"]);
    assert!(sandbox.read("again.gguf") == sandbox.read("many.gguf"));
}

#[test]
fn an_old_set_is_replaced_as_a_whole() {
    let sandbox = Sandbox::empty();
    let lens = [100, 3_000_000, 5];
    sandbox.write("m.gguf", &bytes(&lens, 1));
    done(&sandbox, &["shard", "m.gguf", "-o", "parts", "--max-tensors", "1"]);
    done(&sandbox, &["unshard", "parts", "-o", "whole.gguf", "--no-split-keys"]);
    let old = sandbox.listing();
    sandbox.write("m.gguf", &bytes(&lens, 9));
    // Killed in the middle of the second file, by a limit of the system on the length of files.
    #[cfg(unix)]
    for command in [
        "apr shard m.gguf -o parts --max-tensors 1 --force",
        "apr shard m.gguf -o fresh --max-tensors 1",
        "apr unshard parts -o whole.gguf --force",
    ] {
        let ran = sandbox.shell(&format!("ulimit -c 0; ulimit -f 200; {command}"));
        assert_ne!(ran.exit, 0, "{command}");
        let now = sandbox.listing();
        let is_old = |(path, bytes): (&std::path::PathBuf, &Vec<u8>)| {
            path.ends_with("m.gguf") || now.get(path) == Some(bytes)
        };
        assert!(old.iter().all(is_old), "{command}");
        assert!(!sandbox.path("fresh").exists(), "{command}");
    }
    done(&sandbox, &["shard", "m.gguf", "-o", "parts", "--max-tensors", "1", "--force"]);
    done(&sandbox, &["unshard", "parts", "-o", "whole.gguf", "--no-split-keys", "--force"]);
    assert!(sandbox.read("whole.gguf") == sandbox.read("m.gguf"));
    // What the killed programs left has gone.
    assert_eq!(sandbox.path("parts").read_dir().unwrap().count(), 3);
}

#[test]
fn files_of_an_old_set_do_not_stay_beside_a_new_one() {
    let sandbox = Sandbox::empty();
    sandbox.write("m.gguf", &bytes(&[100, 300, 5], 1));
    done(&sandbox, &["shard", "m.gguf", "-o", "parts", "--max-tensors", "1"]);
    let (exit, code) = refused(&sandbox, &["shard", "m.gguf", "-o", "parts", "--max-tensors", "2"]);
    assert_eq!((exit, code.as_str()), (2, "cli-output-exists"));
    done(&sandbox, &["shard", "m.gguf", "-o", "parts", "--max-tensors", "2", "--force"]);
    assert_eq!(sandbox.path("parts").read_dir().unwrap().count(), 2);
}

#[test]
fn a_part_is_not_taken_for_the_whole() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["shard", "tiny_llama.gguf", "-o", "parts", "--max-tensors", "8"]).exit, 0);
    let folder = sandbox.run(&["convert", "parts", "whole.safetensors"]);
    assert!(folder.stderr.contains("apr unshard parts -o OUT.gguf"), "{folder:?}");
    let names = fs::read_dir(sandbox.path("parts")).unwrap().map(|entry| entry.unwrap().file_name());
    let first = format!("parts/{}", names.min().unwrap().to_str().unwrap());
    let first = first.as_str();
    let ran = sandbox.run(&["convert", first, "part.safetensors"]);
    assert!(ran.exit == 0 && ran.stderr.contains("this is shard 1 of"), "{ran:?}");
    assert!(sandbox.run(&["check", first]).stdout.contains("this is shard 1 of"));
}
