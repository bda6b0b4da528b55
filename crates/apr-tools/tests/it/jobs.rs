//! Jobs: tasks run twice, at once, killed; inputs of every kind; what is refused.

use alloc::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};
use crate::scanning::{PAYLOAD, PLAIN};

const TRY_AGAIN: i32 = 75;

/// The files below a folder but for what jobs store, with their bytes.
fn files(sandbox: &Sandbox, folder: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let root = sandbox.path(folder);
    let mut files = BTreeMap::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                if entry.file_name() != ".apr-job" {
                    folders.push(path);
                }
            } else {
                files.insert(path.strip_prefix(&root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

fn attempts(sandbox: &Sandbox, to: &str, job: &str) -> usize {
    fs::read_dir(sandbox.path(to).join(".apr-job").join(job).join("attempts")).map_or(0, Iterator::count)
}

/// Runs a line whose words have no blanks.
fn apr(sandbox: &Sandbox, line: &str) -> Ran {
    sandbox.run(&line.split_whitespace().collect::<Vec<_>>())
}

fn json(sandbox: &Sandbox, line: &str) -> (i32, Value) {
    let ran = apr(sandbox, &format!("--json {line}"));
    (ran.exit, serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {ran:?}")))
}

/// A conversion divided into files, and the files of the same command without a job.
fn divided(sandbox: &Sandbox) -> (usize, BTreeMap<PathBuf, Vec<u8>>) {
    sandbox.write_folder("llama", "hf/Tiny-Llama2-110K-Chat");
    fs::create_dir(sandbox.path("alone")).unwrap();
    let alone = apr(sandbox, "convert llama alone/llama.gguf --type q8_0 --split-max-tensors 4");
    assert_eq!(alone.exit, 0, "{alone:?}");
    let (exit, plan) = json(
        sandbox,
        "plan -o job.json --from llama --to out -- convert {in} {out}.gguf --type q8_0 --split-max-tensors 4",
    );
    assert_eq!(exit, 0, "{plan}");
    (plan["tasks"].as_u64().unwrap() as usize, files(sandbox, "alone"))
}

#[test]
fn tasks_run_twice_and_in_any_order_give_the_files_of_the_command_alone() {
    let sandbox = Sandbox::empty();
    let (tasks, expected) = divided(&sandbox);
    assert!(tasks > 4 && expected.len() == tasks, "{tasks}");
    for task in (0..tasks).rev() {
        let early = apr(&sandbox, "finish job.json");
        assert!(early.exit == TRY_AGAIN && early.stderr.contains("cli-tasks-missing"), "{early:?}");
        let first = apr(&sandbox, &format!("run-task job.json {task} --json"));
        let second = apr(&sandbox, &format!("run-task job.json {task} --json"));
        assert_eq!((first.exit, &first.stdout), (0, &second.stdout), "{first:?} {second:?}");
        assert_eq!(files(&sandbox, "out"), BTreeMap::new());
    }
    let first = apr(&sandbox, "finish job.json --json --report report.csv");
    assert_eq!((first.exit, files(&sandbox, "out") == expected), (0, true), "{first:?}");
    let before = sandbox.listing();
    let second = apr(&sandbox, "finish job.json --json --verify");
    assert_eq!((&first.stdout, before), (&second.stdout, sandbox.listing()));
    let report = String::from_utf8(sandbox.read("report.csv")).unwrap();
    assert_eq!(report.lines().count(), tasks + 1, "{report}");
    // The same request is the same job.
    assert_eq!(apr(&sandbox, "run-task job.json all").exit, 0);
    assert_eq!(apr(&sandbox, &format!("run-task job.json {tasks}")).exit, 2);
    assert_eq!(apr(&sandbox, "abort job.json").exit, 0);
    assert!(files(&sandbox, "out") == expected && !sandbox.path("out/.apr-job").exists());
}

#[test]
fn processes_at_the_same_task_leave_one_result() {
    let sandbox = Sandbox::empty();
    let (tasks, expected) = divided(&sandbox);
    for task in 0..tasks {
        let task = task.to_string();
        let spawn = |_| sandbox.command(&["run-task", "job.json", &task, "--json"]).spawn().unwrap();
        let racers: Vec<_> = (0..4).map(spawn).collect();
        let outputs: Vec<Ran> =
            racers.into_iter().map(|racer| racer.wait_with_output().unwrap().into()).collect();
        assert!(outputs.iter().all(|ran| ran.exit == 0 && ran.stdout == outputs[0].stdout), "{outputs:?}");
    }
    let (_, status) = json(&sandbox, "status job.json");
    assert_eq!(status["attempts"], tasks, "those that were too late remove what they made");
    assert_eq!(apr(&sandbox, "finish job.json").exit, 0);
    assert!(files(&sandbox, "out") == expected);
    assert_eq!(attempts(&sandbox, "out", status["job"].as_str().unwrap()), 0);
}

#[cfg(unix)]
#[test]
fn killed_workers_cost_their_own_tasks() {
    let sandbox = Sandbox::empty();
    let (tasks, expected) = divided(&sandbox);
    let mut killed = 0;
    for round in 0..12_u64 {
        let mut worker = sandbox.command(&["run-task", "job.json", "all", "--jobs", "2"]).spawn().unwrap();
        std::thread::sleep(core::time::Duration::from_millis(5 + 7 * round));
        // SIGKILL.
        worker.kill().unwrap();
        killed += u32::from(worker.wait().unwrap().code().is_none());
        assert_eq!(files(&sandbox, "out"), BTreeMap::new());
    }
    assert!(killed > 0);
    assert_eq!(apr(&sandbox, "run-task job.json all").exit, 0);
    let (exit, report) = json(&sandbox, "finish job.json --verify");
    assert_eq!((exit, &report["tasks"]), (0, &Value::from(tasks)), "{report}");
    assert!(files(&sandbox, "out") == expected);
    assert_eq!(attempts(&sandbox, "out", report["job"].as_str().unwrap()), 0);
}

/// Sound, broken, foreign and hostile files.
fn zoo(sandbox: &Sandbox) {
    let models = Sandbox::with_models();
    fs::create_dir_all(sandbox.path("zoo/sub/.hidden")).unwrap();
    for (name, from) in [
        ("zoo/a.safetensors", "model.safetensors"),
        ("zoo/sub/b.gguf", "tiny_llama.gguf"),
        ("zoo/cut.safetensors", "broken.safetensors"),
        ("zoo/locked.apr", "locked.apr"),
        ("zoo/table.parquet", "table.parquet"),
        ("zoo/sub/.hidden/c.safetensors", "model.safetensors"),
    ] {
        sandbox.write(name, &models.read(from));
    }
    for entry in fs::read_dir(models.path("sharded")).unwrap().map(Result::unwrap) {
        let to = Path::new("zoo/sub").join(entry.file_name());
        sandbox.write(to.to_str().unwrap(), &fs::read(entry.path()).unwrap());
    }
    sandbox.write("zoo/evil.pkl", PAYLOAD);
    sandbox.write("zoo/plain.pkl", PLAIN);
    sandbox.write("zoo/README.md", b"# Models\n");
    sandbox.write("zoo/empty.bin", b"");
}

fn by_input(report: &Value) -> BTreeMap<String, (u64, Option<String>)> {
    let results = report["results"].as_array().unwrap().iter().map(|result| {
        let input = result["input"].as_str().unwrap().to_owned();
        (input, (result["exit"].as_u64().unwrap(), result["code"].as_str().map(str::to_owned)))
    });
    results.collect()
}

#[test]
fn a_mixed_folder_is_reported_file_by_file_and_once() {
    let sandbox = Sandbox::empty();
    zoo(&sandbox);
    let line = "batch --from zoo --to out --jobs 2 --report report.json -- quantize {in} -o {to}/{path}.gguf --type q8_0 --exclude mask";
    let (exit, report) = json(&sandbox, line);
    let results = by_input(&report);
    let expected = [
        ("zoo/README.md", 6, Some("cli-foreign-format")),
        ("zoo/a.safetensors", 0, None),
        ("zoo/cut.safetensors", 3, None),
        ("zoo/empty.bin", 3, None),
        ("zoo/evil.pkl", 6, None),
        ("zoo/locked.apr", 6, Some("ac-encrypted")),
        ("zoo/sub/b.gguf", 0, None),
        ("zoo/sub/model.safetensors.index.json", 0, None),
        ("zoo/table.parquet", 6, Some("cli-foreign-format")),
    ];
    for (input, exit, code) in expected {
        let found = results.get(input).unwrap_or_else(|| panic!("{input} is not in {results:?}"));
        assert_eq!(found.0, exit, "{input}: {found:?}");
        assert!(code.is_none() || found.1.as_deref() == code, "{input}: {found:?}");
    }
    // Shards are read with their index, hidden folders not at all.
    assert_eq!(results.len(), expected.len() + 1, "{results:?}");
    assert_eq!(exit, 3, "the worst: 3 comes before 6");
    let outputs = files(&sandbox, "out");
    let names: Vec<&str> = outputs.keys().map(|path| path.to_str().unwrap()).collect();
    assert!(names.contains(&"a.safetensors.gguf") && names.contains(&"sub/b.gguf.gguf"), "{names:?}");

    let before = sandbox.listing();
    let again = json(&sandbox, line);
    assert!(again == (exit, report) && sandbox.listing() == before);

    let (exit, report) = json(&sandbox, "batch --from zoo --to scanned -- scan {in}");
    let results = report["results"].as_array().unwrap();
    let verdict =
        |input: &str| results.iter().find(|result| result["input"] == input).map(|result| &result["verdict"]);
    assert!(exit == 4 && verdict("zoo/evil.pkl").unwrap() == "dangerous", "{report}");
    assert_eq!(verdict("zoo/plain.pkl").unwrap(), "safe");
    assert!(results.len() > expected.len() + 1, "shards are files here");
}

#[test]
fn shards_become_shards_with_an_index() {
    let sandbox = Sandbox::with_models();
    let whole = "batch --from sharded --to whole -- convert {in} {out}.safetensors";
    assert_eq!(apr(&sandbox, whole).exit, 0);
    let line =
        "batch --from sharded --to out --by-shard --task-size 1 -- convert {in} {out}.safetensors --align 64";
    let (exit, report) = json(&sandbox, line);
    assert!(exit == 0 && report["tasks"].as_u64().unwrap() > 1, "{report}");
    assert_eq!(apr(&sandbox, "check out").exit, 0);
    let diff = apr(&sandbox, "diff whole/model.safetensors out/model.safetensors.index.json");
    assert_eq!(diff.exit, 0, "{diff:?}");
    let before = sandbox.listing();
    assert!(json(&sandbox, line) == (0, report) && sandbox.listing() == before);
    let single = apr(&sandbox, "plan -o x.json --from model.apr --to x --by-shard -- check {in}");
    assert!(single.exit == 2 && single.stderr.contains("--by-shard"), "{single:?}");
    let shard =
        sandbox.listing().into_keys().find(|path| path.to_string_lossy().contains("sharded/model-00002"));
    fs::remove_file(sandbox.path(shard.unwrap().to_str().unwrap())).unwrap();
    let ran = apr(&sandbox, &line.replace("--to out", "--to other"));
    assert!(ran.exit == 2 && ran.stderr.contains("model-00002"), "{ran:?}");
}

#[test]
fn a_folder_is_converted_as_a_batch() {
    let sandbox = Sandbox::empty();
    zoo(&sandbox);
    let line = "convert zoo out --recursive --jobs 2 --format safetensors --exclude mask";
    let (exit, report) = json(&sandbox, line);
    assert_eq!((exit, &report["schema"]), (3, &Value::from("apr.job/1")), "{report}");
    let outputs = files(&sandbox, "out");
    let expected = Path::new("sub/model.safetensors");
    assert!(
        outputs.contains_key(expected) && outputs.contains_key(Path::new("a.safetensors")),
        "{outputs:?}"
    );
    let before = sandbox.listing();
    assert!(json(&sandbox, line) == (exit, report) && sandbox.listing() == before);
    let refused = apr(&sandbox, "convert zoo out --recursive");
    assert!(refused.exit == 2 && refused.stderr.contains("--format"), "{refused:?}");
}

#[test]
fn an_input_that_changed_is_refused_by_name() {
    let sandbox = Sandbox::with_models();
    for digest in ["", "--digest"] {
        let plan = format!(
            "plan -o job{digest}.json --from model.safetensors --to out{digest} {digest} -- check {{in}}"
        );
        assert_eq!(apr(&sandbox, &plan).exit, 0);
        let model = sandbox.read("model.safetensors");
        let mut changed = model.clone();
        *changed.last_mut().unwrap() ^= 1;
        sandbox.write("model.safetensors", &changed);
        let (exit, report) = json(&sandbox, &format!("run-task job{digest}.json 0"));
        assert_eq!((exit, &report["error"]["code"]), (4, &Value::from("cli-input-changed")), "{report}");
        assert_eq!(report["error"]["file"], "model.safetensors");
        // The same bytes again: with a digest it is the same file, without one its time is another.
        sandbox.write("model.safetensors", &model);
        let again = apr(&sandbox, &format!("run-task job{digest}.json 0"));
        assert_eq!(again.exit, if digest.is_empty() { 4 } else { 0 }, "{again:?}");
    }
}

#[test]
fn a_key_or_signature_that_changed_makes_another_job() {
    let sandbox = Sandbox::with_models();
    for name in ["a", "b"] {
        let ran = apr(&sandbox, &format!("keygen sign -o {name}.key"));
        assert_eq!(ran.exit, 0, "{ran:?}");
    }
    sandbox.write("used.pub", &sandbox.read("a.key.pub"));
    assert_eq!(apr(&sandbox, "sign model.safetensors --key a.key").exit, 0);
    let verify = "batch --from model.safetensors --to out -- verify {in} --key used.pub";
    assert_eq!(apr(&sandbox, verify).exit, 0);
    sandbox.write("used.pub", &sandbox.read("b.key.pub"));
    let refused = apr(&sandbox, verify);
    assert_eq!(refused.exit, 4, "{refused:?}");
    // The same bytes at another time are the same job.
    sandbox.write("used.pub", &sandbox.read("a.key.pub"));
    assert_eq!(apr(&sandbox, verify).exit, 0);
    fs::remove_file(sandbox.path("model.safetensors.minisig")).unwrap();
    assert_ne!(apr(&sandbox, verify).exit, 0);

    assert_eq!(
        apr(
            &sandbox,
            "plan -o job.json --from model.apr --to o2 -- convert {in} {out}.safetensors --key used.pub"
        )
        .exit,
        0
    );
    sandbox.write("used.pub", &sandbox.read("b.key.pub"));
    let (exit, report) = json(&sandbox, "run-task job.json 0");
    assert_eq!((exit, &report["error"]["code"]), (4, &Value::from("cli-input-changed")), "{report}");
    assert_eq!(report["error"]["file"], "used.pub");
}

#[test]
fn a_report_replaces_nothing_but_an_earlier_one() {
    let sandbox = Sandbox::with_models();
    sandbox.write("settings.json", b"{\"layers\": 2}");
    sandbox.write("table.csv", b"a,b\n1,2\n");
    let batch = |report: &str| {
        apr(&sandbox, &format!("batch --from model.apr --to out --report {report} -- check {{in}}"))
    };
    for name in ["settings.json", "table.csv"] {
        let before = sandbox.read(name);
        let ran = batch(name);
        assert!(ran.exit == 2 && ran.stderr.contains("cli-output-exists"), "{ran:?}");
        assert_eq!(sandbox.read(name), before);
    }
    for name in ["report.json", "report.csv", "report.json", "report.csv"] {
        assert_eq!(batch(name).exit, 0, "{name}");
    }
    assert_eq!(apr(&sandbox, "plan -o job.json --from model.apr --to out2 -- check {in}").exit, 0);
    assert_eq!(apr(&sandbox, "run-task job.json all").exit, 0);
    assert_eq!(apr(&sandbox, "finish job.json --report job.json").exit, 2);
    assert_eq!(apr(&sandbox, "finish job.json --report report.json").exit, 0);
}

#[test]
fn outputs_and_records_that_were_changed_are_refused() {
    let sandbox = Sandbox::with_models();
    let plan = "plan -o job.json --from model.apr --to out -- convert {in} {out}.safetensors";
    let (_, planned) = json(&sandbox, plan);
    let job = planned["job"].as_str().unwrap();
    assert_eq!(apr(&sandbox, "run-task job.json 0").exit, 0);
    let attempts = sandbox.path("out/.apr-job").join(job).join("attempts");
    let attempt = fs::read_dir(attempts).unwrap().next().unwrap().unwrap().file_name();
    let attempt = attempt.to_str().unwrap();
    let made = format!("out/.apr-job/{job}/attempts/{attempt}/all/model.safetensors");
    let output = sandbox.read(&made);
    sandbox.write(&made, &output[..output.len() - 1]);
    let code = |line: &str| json(&sandbox, line).1["error"]["code"].clone();
    assert_eq!(code("finish job.json"), "cli-job-output");
    let mut other = output.clone();
    other[0] ^= 1;
    sandbox.write(&made, &other);
    assert_eq!(code("finish job.json --verify"), "cli-job-output");
    sandbox.write(&made, &output);
    // A file that came into the place of the output stays.
    sandbox.write("out/model.safetensors", b"of the user");
    assert_eq!(code("finish job.json"), "cli-output-exists");
    assert_eq!(sandbox.read("out/model.safetensors"), b"of the user");
    fs::remove_file(sandbox.path("out/model.safetensors")).unwrap();
    assert_eq!(apr(&sandbox, "finish job.json").exit, 0);
    assert_eq!(sandbox.read("out/model.safetensors"), output);
    // An output that was moved away since is missed, with the way to make it again.
    fs::rename(sandbox.path("out/model.safetensors"), sandbox.path("moved")).unwrap();
    let (_, missed) = json(&sandbox, "finish job.json");
    assert_eq!(missed["error"]["code"], "cli-job-output");
    assert!(missed["error"]["help"].as_str().unwrap().contains("apr abort"), "{missed}");
    fs::rename(sandbox.path("moved"), sandbox.path("out/model.safetensors")).unwrap();

    let record = format!("out/.apr-job/{job}/tasks/00000.json");
    let known = sandbox.read(&record);
    let done = format!("out/.apr-job/{job}/done.json");
    let end = sandbox.read(&done);
    fs::remove_file(sandbox.path(&done)).unwrap();
    sandbox.write(&record, b"");
    assert_eq!(code("status job.json"), "cli-plan");
    sandbox.write(&record, &known);
    sandbox.write(&done, &end);
    assert_eq!(apr(&sandbox, "status job.json").exit, 0);
    let aborted = |expected: &str| {
        let ran = apr(&sandbox, "abort job.json");
        assert!(ran.exit == 0 && ran.stderr.contains(expected), "{ran:?}");
    };
    aborted("removed what job");
    aborted("has stored nothing");

    let text = String::from_utf8(sandbox.read("job.json")).unwrap();
    sandbox.write("job.json", text.replace("model.apr", "other.apr").as_bytes());
    assert_eq!(code("run-task job.json 0"), "cli-plan");
    sandbox.write("job.json", b"{}");
    assert_eq!(code("status job.json"), "cli-plan");
}

#[test]
fn what_cannot_be_a_job_is_refused_when_it_is_planned() {
    let sandbox = Sandbox::with_models();
    sandbox.write("model.gguf.txt", b"");
    for (line, expected) in [
        ("--from model.apr -- train linear {in}", "is not a command of jobs"),
        ("--from model.apr -- check model.apr", "where the input stands"),
        ("--from model.apr -- convert {in} x.gguf", "where the output goes"),
        ("--from model.apr -- quantize {in} -o {out}.gguf", "--type"),
        ("--from model.apr -- convert {in} {to}/../x.apr", "would not be in the folder"),
        ("--from model.apr --from model.safetensors -- convert {in} {out}.apr", "the same output"),
        ("--from empty -- check {in}", "no inputs"),
        ("--from model.apr --include *.gguf -- check {in}", "no inputs"),
        ("--from missing.apr -- check {in}", "missing.apr"),
        ("--from model.apr -- seal {in} -o {out}.sealed --password-fd 0", "--password-fd is for one command"),
        ("--from model.apr -- seal {in} -o {out}.sealed --ask-password", "--ask-password is for one command"),
        ("-- check {in}", "--from"),
    ] {
        let ran = apr(&sandbox, &format!("plan -o job.json --to out {line}"));
        assert!(matches!(ran.exit, 2 | 5) && ran.stderr.contains(expected), "{line}: {ran:?}");
        assert!(!sandbox.path("job.json").exists() && !sandbox.path("out").exists(), "{line}");
    }
    for command in ["plan -o job.json", "batch"] {
        let line =
            format!("{command} --from model.apr --to s3://bucket/out -- convert {{in}} {{out}}.safetensors");
        let ran = apr(&sandbox, &line);
        assert!(ran.exit == 2 && ran.stderr.contains("not written to a URL"), "{line}: {ran:?}");
        assert!(!sandbox.path("s3:").exists());
    }
    fs::create_dir(sandbox.path("out")).unwrap();
    sandbox.write("out/model.safetensors", b"of the user");
    let line = "batch --from model.apr --to out -- convert {in} {out}.safetensors";
    let ran = apr(&sandbox, line);
    assert!(ran.exit == 2 && ran.stderr.contains("cli-output-exists"), "{ran:?}");
    assert_eq!(apr(&sandbox, &line.replace("--to", "--skip-existing --to")).exit, 0);
    assert_eq!(sandbox.read("out/model.safetensors"), b"of the user");
    assert_eq!(apr(&sandbox, &line.replace("--to", "--force --to")).exit, 0);
    assert_ne!(sandbox.read("out/model.safetensors"), b"of the user");
}

#[test]
fn lists_and_task_numbers_come_from_outside() {
    let sandbox = Sandbox::with_models();
    sandbox.write("list.txt", b"model.safetensors\n\nmodel.apr\n");
    let plan = "plan -o job.json --list list.txt --to out --task-size 1 -- inspect {in}";
    assert_eq!(json(&sandbox, plan).1["tasks"], 2);
    let run = |name: &str, value: &str| {
        let mut command = sandbox.command(&["run-task", "job.json", "env"]);
        Ran::from(command.env(name, value).output().unwrap())
    };
    assert_eq!(run("OTHER", "0").exit, 2);
    assert_eq!(run("JOB_COMPLETION_INDEX", "x").exit, 2);
    assert_eq!(run("JOB_COMPLETION_INDEX", "0").exit, 0);
    let missing = apr(&sandbox, "status job.json --missing");
    assert_eq!((missing.exit, missing.stdout.as_str()), (TRY_AGAIN, "1\n"));
    assert_eq!(run("SLURM_ARRAY_TASK_ID", "1").exit, 0);
    assert_eq!(apr(&sandbox, "finish job.json").exit, 0);
    let report: Value = serde_json::from_slice(&sandbox.read("out/model.apr.json")).unwrap();
    assert_eq!(report["schema"], "apr.inspect/2");
}

#[cfg(feature = "remote")]
#[test]
fn a_repository_is_a_source_and_a_network_that_fails_no_result() {
    use crate::get::{COMMIT, hub};
    use crate::server::{Reply, Server};

    let sandbox = Sandbox::with_models();
    let model = sandbox.read("model.safetensors");
    let server = hub(
        vec![("model.safetensors", model, true), ("README.md", b"# A model\n".to_vec(), false)],
        |_, reply| reply,
    );
    let run = |server: &Server, line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = sandbox.command(&words);
        Ran::from(command.env("HF_ENDPOINT", server.url("")).output().unwrap())
    };
    let plan = "plan -o job.json --from hf://org/name --include *.safetensors --to out -- convert {in} {out}.safetensors --align 64";
    let planned = run(&server, plan);
    assert_eq!(planned.exit, 0, "{planned:?}");
    let text = String::from_utf8(sandbox.read("job.json")).unwrap();
    assert!(text.contains(&format!("hf://org/name@{COMMIT}/model.safetensors")), "{text}");
    let broken = Server::new(|_, _| Reply::status("404 Not Found", ""));
    let failed = run(&broken, "run-task job.json 0");
    assert!(failed.exit == TRY_AGAIN && failed.stdout.contains("rm-"), "{failed:?}");
    assert_eq!(run(&server, "status job.json --missing").stdout, "0\n");
    let given_up = run(&broken, "run-task job.json 0 --give-up");
    assert!(given_up.exit == 5 && given_up.stdout.contains("1 refused"), "{given_up:?}");
    assert_eq!(run(&server, "status job.json --missing").stdout, "");
    assert_eq!(run(&server, "abort job.json").exit, 0);
    assert_eq!(run(&server, "run-task job.json 0").exit, 0);
    assert_eq!(run(&server, "finish job.json").exit, 0);
    assert!(sandbox.path("out/model.safetensors").is_file());
}

#[test]
fn sets_are_chosen_by_any_of_their_files() {
    let sandbox = Sandbox::with_models();
    for selection in ["--include *.safetensors", "--exclude *.json"] {
        let (exit, report) =
            json(&sandbox, &format!("batch --from sharded --to a {selection} -- tensors {{in}}"));
        assert_eq!((exit, &report["inputs"]), (0, &Value::from(1)), "{report}");
        fs::remove_dir_all(sandbox.path("a")).unwrap();
    }
}

#[test]
fn files_that_are_in_the_way_or_inputs_themselves_are_refused() {
    let sandbox = Sandbox::with_models();
    fs::create_dir_all(sandbox.path("in/m.safetensors.d")).unwrap();
    fs::create_dir_all(sandbox.path("in/model")).unwrap();
    for name in ["in/model.safetensors", "in/model/b.safetensors"] {
        sandbox.write(name, &sandbox.read("model.safetensors"));
    }
    sandbox.write("in/model.apr", &sandbox.read("model.apr"));
    for (line, expected) in [
        ("--from in --to in --force -- tensors {in}", "no inputs"),
        (
            "--from in/model.apr --from in/model.safetensors --to in --force -- convert {in} {to}/{path}",
            "replace an input",
        ),
        (
            "--from in --include *.safetensors --to out -- convert {in} {out} --format apr2",
            "an output itself",
        ),
        ("--from in --to out -- check {in} --json", "--json"),
        ("--from in --to out -- convert {in} {out}.apr --dry-run", "--dry-run"),
        ("--from in --to out -- sign {in} --key maker.key", "where the output goes"),
        ("--from https://127.0.0.1:1/m.safetensors?sig=x --to out -- check {in}", "secret"),
    ] {
        let ran = apr(&sandbox, &format!("plan -o job.json {line}"));
        assert!(ran.exit == 2 && ran.stderr.contains(expected), "{line}: {ran:?}");
    }
    assert_eq!(sandbox.read("in/model.safetensors"), sandbox.read("model.safetensors"));
}

#[cfg(unix)]
#[test]
fn odd_names_are_names() {
    let sandbox = Sandbox::with_models();
    fs::create_dir(sandbox.path("in")).unwrap();
    let names = ["-x.apr", "--help", "a\\b.apr", "{out}.apr", "a b\n.apr", "sha256:0a.apr", "é.apr"];
    for name in names {
        sandbox.write(&format!("in/{name}"), &sandbox.read("model.apr"));
    }
    let (exit, report) = json(&sandbox, "batch --from in --to out -- convert {in} {to}/{path}.safetensors");
    assert_eq!((exit, &report["outputs"]), (0, &Value::from(names.len())), "{report}");
    for name in names {
        assert!(sandbox.path(&format!("out/{name}.safetensors")).is_file(), "{name}");
    }
    // Named from the folder itself, where they begin with a dash.
    sandbox.write("list.txt", b"./-x.apr\n--help\n-x.apr\n");
    let mut command =
        sandbox.command(&["--json", "batch", "--list", "../list.txt", "--to=-o", "--", "check", "{in}"]);
    let ran = Ran::from(command.current_dir(sandbox.path("in")).output().unwrap());
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    // The same file twice is one input.
    assert_eq!((ran.exit, &report["inputs"]), (0, &Value::from(2)), "{report}");
}

#[test]
fn processes_that_finish_at_once_agree() {
    let sandbox = Sandbox::with_models();
    fs::create_dir(sandbox.path("in")).unwrap();
    for number in 0..60 {
        sandbox.write(&format!("in/{number}.apr"), &sandbox.read("model.apr"));
    }
    assert_eq!(
        apr(&sandbox, "plan -o job.json --from in --to out -- convert {in} {out}.safetensors").exit,
        0
    );
    assert_eq!(apr(&sandbox, "run-task job.json all").exit, 0);
    let spawn = |_| sandbox.command(&["finish", "job.json", "--json"]).spawn().unwrap();
    let racers: Vec<_> = (0..4).map(spawn).collect();
    let outputs: Vec<Ran> =
        racers.into_iter().map(|racer| racer.wait_with_output().unwrap().into()).collect();
    assert!(outputs.iter().all(|ran| ran.exit == 0 && ran.stdout == outputs[0].stdout), "{outputs:?}");
    assert_eq!(files(&sandbox, "out").len(), 60);
}

#[test]
fn a_job_goes_on_after_a_disk_that_fails_and_after_an_abort() {
    let sandbox = Sandbox::with_models();
    let (_, planned) =
        json(&sandbox, "plan -o job.json --from model.apr --to out -- convert {in} {out}.safetensors");
    let folder = sandbox.path("out/.apr-job").join(planned["job"].as_str().unwrap());
    // A file where the job wants a folder: a disk that fails.
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("attempts"), b"").unwrap();
    let failed = apr(&sandbox, "run-task job.json 0");
    assert_eq!(failed.exit, TRY_AGAIN, "{failed:?}");
    fs::remove_file(folder.join("attempts")).unwrap();
    assert_eq!(apr(&sandbox, "run-task job.json 0").exit, 0);
    assert_eq!(apr(&sandbox, "abort job.json").exit, 0);
    assert_eq!(apr(&sandbox, "run-task job.json 0").exit, 0);
    assert_eq!(apr(&sandbox, "finish job.json").exit, 0);

    // A record that is not whole.
    let record = folder.join("tasks/00000.json");
    let text = fs::read_to_string(&record).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    value["results"] = Value::Array(Vec::new());
    for damaged in [String::new(), value.to_string()] {
        fs::write(&record, damaged).unwrap();
        assert_eq!(json(&sandbox, "finish job.json").1["error"]["code"], "cli-plan");
    }
}
