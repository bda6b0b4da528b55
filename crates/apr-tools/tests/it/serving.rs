//! `apr serve` as a process: keys, reloads, signals.

use core::time::Duration;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Child;
use std::thread::sleep;

use apr_container::{ModelType, Protection, SaveOptions, to_vec};
use apr_models::{LinearRegression, Vector};
use rustix::process::{Pid, Signal, kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{Resource, Rlimit};
use serde_json::{Value, json};

use crate::sandbox::{Ran, Sandbox, maker};

/// A running server; it is killed when this is dropped.
pub(crate) struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    /// Starts `apr serve ...` on a free port.
    pub(crate) fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let port: &[&str] = if args.contains(&"--addr") { &[] } else { &["--addr", "127.0.0.1:0"] };
        let mut child = sandbox.command(&[args, port, &["--json"]].concat()).spawn().unwrap();
        let mut announced = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while lines.read_line(&mut announced).unwrap() > 0 && !announced.ends_with("}\n") {}
        let announced: Value = serde_json::from_str(&announced).unwrap_or_else(|_| {
            let mut said = String::new();
            child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            panic!("{args:?} said {announced:?} {said:?}")
        });
        assert_eq!(announced["schema"], "apr.serve/1");
        let address = announced["address"].as_str().unwrap().replace("0.0.0.0", "127.0.0.1");
        Self { child, address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn http(&self, request: &str, body: &str) -> (u16, String) {
        self.send(&format!("{request} HTTP/1.1\r\n"), body.as_bytes())
    }

    /// Sends a head without its last fields, and a body.
    fn send(&self, head: &str, body: &[u8]) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let len = body.len();
        write!(stream, "{head}host: localhost\r\nconnection: close\r\ncontent-length: {len}\r\n\r\n")
            .unwrap();
        stream.write_all(body).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.http(&format!("GET {path}"), "")
    }

    pub(crate) fn predict(&self, body: &str) -> Value {
        let (status, body) = self.http("POST /predict", body);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits until `/metrics` has this line.
    pub(crate) fn wait_for(&self, line: &str) {
        while !self.get("/metrics").1.lines().any(|found| found == line) {
            sleep(Duration::from_millis(10));
        }
    }

    /// Stops it and gives what it said.
    fn stop(mut self, signal: Signal) -> Ran {
        self.signal(signal);
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        Ran { exit: self.child.wait().unwrap().code().unwrap_or(-1), stdout: String::new(), stderr }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const FAILED: &str = "apr_serve_reloads_total{result=\"failed\"}";

#[test]
fn it_answers_until_a_signal_stops_it() {
    let sandbox = Sandbox::with_models();
    for signal in [Signal::TERM, Signal::INT] {
        let server = Serving::start(&sandbox, &["serve", "model.apr"]);
        let lines = sandbox.run(&["predict", "model.apr", "-i", "rows.csv"]).stdout;
        let expected: Vec<f64> = lines.lines().map(|line| line.parse().unwrap()).collect();
        let answer = server.predict("{\"rows\": [[1, 2], [3, 4], [-0.5, 1e2]]}");
        assert_eq!(answer["predictions"], json!(expected));
        let model: Value = serde_json::from_str(&server.get("/model").1).unwrap();
        assert_eq!(model["file"]["schema"], "apr.inspect/2");
        let digest = model["digest"].as_str().unwrap();
        assert!(digest.starts_with(&format!("sha256:{}", answer["model"].as_str().unwrap())), "{digest}");
        let ran = server.stop(signal);
        assert_eq!(ran.exit, 0, "{}", ran.stderr);
        assert!(ran.stderr.contains("stopping"), "{}", ran.stderr);
    }
}

#[test]
fn where_a_key_is_demanded_no_other_model_is_served() {
    let sandbox = Sandbox::with_models();
    let signer = ["--signer", "maker.key.pub"];
    for (file, keys, exit) in [
        ("model.apr", &signer[..], 4),
        ("made.apr", &[], 4),
        ("model.safetensors", &signer, 4),
        ("sold.apr", &signer, 6),
        ("locked.apr", &["--identity", "buyer.key"], 4),
    ] {
        let args = [&["serve", file, "--addr", "127.0.0.1:0"], keys].concat();
        let ran = sandbox.run(&args);
        assert!(
            ran.exit == exit || file == "made.apr" && ran.exit != 0,
            "{args:?}: {}{}",
            ran.exit,
            ran.stderr
        );
    }
    fs::copy(sandbox.path("made.apr"), sandbox.path("served.apr")).unwrap();
    let server = Serving::start(&sandbox, &[&["serve", "served.apr"], &signer[..]].concat());
    let first = server.predict("[[1, 2]]");
    let replace = |bytes: &[u8]| {
        sandbox.write("new.apr", bytes);
        fs::rename(sandbox.path("new.apr"), sandbox.path("served.apr")).unwrap();
        server.signal(Signal::HUP);
    };
    // Unsigned, then signed and changed.
    replace(&sandbox.read("licensed.apr"));
    server.wait_for(&format!("{FAILED} 1"));
    let mut changed = sandbox.read("made.apr");
    let at = changed.len() / 2;
    changed[at] ^= 1;
    replace(&changed);
    server.wait_for(&format!("{FAILED} 2"));
    assert_eq!(server.predict("[[1, 2]]"), first);
    replace(&sandbox.read("made.apr"));
    server.wait_for("apr_serve_model_generation 2");
    assert_eq!(server.predict("[[1, 2]]"), first);
    let ran = server.stop(Signal::TERM);
    assert_eq!(ran.exit, 0);
    assert!(ran.stderr.contains("error[ac-not-signed]"), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 loads"), "{}", ran.stderr);
}

/// A signed model of the maker that says `value` for zeros.
fn signed(name: &str, created_at: u64, value: f32) -> Vec<u8> {
    let line = LinearRegression::from_parts(Vector::from_vec(vec![1.0, 1.0]), value).unwrap();
    let options = SaveOptions::default().with_name(name).with_created_at(created_at);
    let key = maker();
    let protection = Protection::default().signed_by(&key);
    to_vec(&line, ModelType::LinearRegression, &options.with_protection(protection)).unwrap()
}

#[test]
fn an_older_signed_model_does_not_take_over() {
    let sandbox = Sandbox::with_models();
    let replace = |bytes: &[u8]| {
        sandbox.write("new.apr", bytes);
        fs::rename(sandbox.path("new.apr"), sandbox.path("served.apr")).unwrap();
    };
    let (first, second) = (signed("price", 1_000, 1.0), signed("price", 2_000, 2.0));
    for keys in [["--signer", "maker.key.pub"], ["--trusted-keys", "trusted.txt"]] {
        replace(&second);
        let server = Serving::start(&sandbox, &[&["serve", "served.apr"], &keys[..]].concat());
        // It answers, so it listens to signals.
        assert_eq!(server.predict("[[0, 0]]")["predictions"], json!([2.0]));
        for (number, refused) in
            [&first, &signed("other", 3_000, 3.0), &signed("price", 2_000, 3.0)].into_iter().enumerate()
        {
            replace(refused);
            server.signal(Signal::HUP);
            server.wait_for(&format!("{FAILED} {}", number + 1));
            assert_eq!(server.predict("[[0, 0]]")["predictions"], json!([2.0]));
        }
        // The same once more, then a newer one.
        replace(&second);
        server.signal(Signal::HUP);
        server.wait_for("apr_serve_model_generation 2");
        replace(&signed("price", 2_001, 4.0));
        server.signal(Signal::HUP);
        server.wait_for("apr_serve_model_generation 3");
        assert_eq!(server.predict("[[0, 0]]")["predictions"], json!([4.0]));
        assert!(server.get("/metrics").1.contains("apr_serve_errors_total{code=\"sv-rollback\"} 3"));
        let ran = server.stop(Signal::TERM);
        assert_eq!(ran.stderr.matches("error[sv-rollback]").count(), 3, "{}", ran.stderr);
    }
    for args in [&["--signer", "maker.key.pub", "--allow-rollback"][..], &["--any-signer"]] {
        replace(&second);
        let server = Serving::start(&sandbox, &[&["serve", "served.apr"], args].concat());
        assert_eq!(server.predict("[[0, 0]]")["predictions"], json!([2.0]));
        replace(&first);
        server.signal(Signal::HUP);
        server.wait_for("apr_serve_model_generation 2");
    }
}

#[test]
fn encrypted_models_are_served_with_their_key() {
    let sandbox = Sandbox::with_models();
    let plain = Serving::start(&sandbox, &["serve", "licensed.apr"]).predict("[[1, 2]]");
    for keys in [
        &["sold.apr", "--identity", "buyer.key", "--signer", "maker.key.pub"][..],
        &["locked.apr", "--password-file", "password.txt"],
    ] {
        let server = Serving::start(&sandbox, &[&["serve"], keys].concat());
        assert_eq!(server.predict("[[1, 2]]")["predictions"], plain["predictions"]);
    }
}

/// A crash must not leave the key on the disk.
#[test]
#[cfg(target_os = "linux")]
fn a_server_with_a_key_leaves_no_core() {
    let sandbox = Sandbox::with_models();
    let limits = |args: &[&str]| {
        let server = Serving::start(&sandbox, &[&["serve"], args].concat());
        fs::read_to_string(format!("/proc/{}/limits", server.child.id())).unwrap()
    };
    let core = |limits: &str| {
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        line.split_whitespace().rev().skip(1).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    for keys in [
        &["sold.apr", "--identity", "buyer.key", "--signer", "maker.key.pub"][..],
        &["locked.apr", "--password-file", "password.txt"],
    ] {
        assert_eq!(core(&limits(keys)), ["0", "0"]);
    }
    // Without a secret the limits are those it was started with.
    let own = fs::read_to_string("/proc/self/limits").unwrap();
    assert_eq!(core(&limits(&["model.apr"])), core(&own));
}

#[test]
fn tensors_of_a_model_are_served_as_that_model() {
    let sandbox = Sandbox::with_models();
    assert_eq!(sandbox.run(&["convert", "model.apr", "plain.safetensors"]).exit, 0);
    let expected = Serving::start(&sandbox, &["serve", "model.apr"]).predict("[[1, 2]]");
    let server = Serving::start(&sandbox, &["serve", "plain.safetensors"]);
    assert_eq!(server.predict("[[1, 2]]")["predictions"], expected["predictions"]);
}

#[test]
fn features_have_names_and_requests_are_logged() {
    let sandbox = Sandbox::with_models();
    let trained =
        ["train", "linear-regression", "--data", "table.csv", "--target", "price", "-o", "named.apr"];
    assert_eq!(sandbox.run(&trained).exit, 0);
    let server = Serving::start(&sandbox, &["-v", "serve", "named.apr"]);
    let expected = server.predict("[[1, 20]]");
    assert_eq!(server.predict("{\"rows\":[{\"size\":20,\"age\":1}]}"), expected);
    let (status, body) = server.http("POST /predict", "[{\"age\":1}]");
    assert!(status == 400 && body.contains("sv-feature"), "{body}");
    server.http("GET /\u{202e}", "");
    let ran = server.stop(Signal::TERM);
    let logged: Vec<&str> = ran.stderr.lines().filter(|line| line.contains(" us ")).collect();
    assert_eq!(logged.len(), 4, "{}", ran.stderr);
    assert!(
        logged[0].starts_with("POST /predict 200 ") && logged[0].ends_with(" us 1 rows"),
        "{}",
        logged[0]
    );
    assert!(
        logged[2].starts_with("POST /predict 400 ") && logged[2].ends_with(" us 0 rows"),
        "{}",
        logged[2]
    );
    assert!(!logged[3].contains('\u{202e}'), "{}", logged[3]);
}

/// The same rows as a table, and as bodies of each type: the same predictions, or the same name is refused.
#[cfg(feature = "tables")]
#[test]
fn categories_are_served_by_their_names() {
    use apr_table::{CellType, Cells, ColumnSpec, TableFormat, TableWriter, Values};

    let sandbox = Sandbox::with_models();
    let colours = ["red", "1", "1.5", "true", "dark blue"];
    let row = |row: usize| format!("{},{},{}\n", row % 7, colours[row % 5], row % 7 + 10 * (row % 5));
    let table: String = (0..35).map(row).collect();
    sandbox.write("t.csv", format!("size,colour,price\n{table}").as_bytes());
    let known = [(0.5, "dark blue"), (1.0, "1.5"), (2.0, " true"), (3.0, "1"), (-1.0, "")];
    let rows = |last: &'static str| known.into_iter().chain([(4.0, last)]);
    for (last, unknown) in [("red", "error"), ("green", "ignore"), ("green", "error")] {
        let args = [
            "train",
            "ridge",
            "--data",
            "t.csv",
            "--target",
            "price",
            "--missing",
            "most-frequent",
            "--categorical",
        ];
        let more = ["colour", "--unknown-category", unknown, "-o", "c.apr", "--force"];
        assert_eq!(sandbox.run(&[&args[..], &more].concat()).exit, 0);

        let csv: String = rows(last).map(|(size, colour)| format!("{colour},{size}\n")).collect();
        sandbox.write("rows.csv", format!("colour,size\n{csv}").as_bytes());
        let lines: Vec<String> =
            rows(last).map(|(size, colour)| json!({"size": size, "colour": colour}).to_string()).collect();
        sandbox.write("rows.jsonl", lines.join("\n").as_bytes());
        let spec = |name: &str, cell_type| ColumnSpec { name: name.into(), cell_type, is_nullable: true };
        let specs = vec![spec("colour", CellType::Text), spec("size", CellType::F64)];
        let mut writer = TableWriter::new(Vec::new(), TableFormat::ArrowStream, specs).unwrap();
        let is_valid = Some(rows(last).map(|(_, colour)| !colour.is_empty()).collect());
        let names = Values::Text(rows(last).map(|(_, colour)| colour).collect());
        let sizes = Values::F64(rows(last).map(|(size, _)| size).collect());
        writer.write(vec![Cells { values: names, is_valid }, sizes.into()]).unwrap();
        sandbox.write("rows.arrows", &writer.finish().unwrap());
        // A list of pairs: an array of two, a float of 64 bits, a short string.
        let mut packed = vec![0x90 | rows(last).count() as u8];
        for (size, colour) in rows(last) {
            packed.extend([&[0x92, 0xcb][..], &f64::to_be_bytes(size)].concat());
            packed.extend([&[0xa0 | colour.len() as u8], colour.as_bytes()].concat());
        }

        let server = Serving::start(&sandbox, &["serve", "c.apr"]);
        let model: Value = serde_json::from_str(&server.get("/model").1).unwrap();
        assert_eq!(model["categories"], json!([null, ["1", "1.5", "dark blue", "red", "true"]]));
        let objects = format!("{{\"rows\":[{}]}}", lines.join(","));
        let arrow = "application/vnd.apache.arrow.stream";
        for (table, media_type, body) in [
            ("rows.csv", "text/csv", sandbox.read("rows.csv")),
            ("rows.jsonl", "application/json", objects.into_bytes()),
            ("rows.jsonl", "application/msgpack", packed),
            ("rows.arrows", arrow, sandbox.read("rows.arrows")),
        ] {
            let head = format!("POST /predict HTTP/1.1\r\ncontent-type: {media_type}\r\n");
            let (status, body) = server.send(&head, &body);
            let answer: Value = serde_json::from_str(&body).unwrap();
            let (exit, predicted) = sandbox.json(&["predict", "c.apr", "-i", table]);
            if (last, unknown) == ("green", "error") {
                assert_eq!(
                    (exit, status, &answer["error"]["code"]),
                    (3, 400, &json!("sv-category")),
                    "{body}"
                );
                assert_eq!(answer["error"]["message"], predicted["error"]["message"], "{media_type}");
            } else {
                assert_eq!((exit, status), (0, 200), "{body} {predicted:#}");
                assert_eq!(answer["predictions"], predicted["predictions"], "{media_type}");
            }
        }
    }
}

#[test]
fn a_port_that_is_taken_is_named_with_a_way_out() {
    let sandbox = Sandbox::with_models();
    let server = Serving::start(&sandbox, &["serve", "model.apr"]);
    let ran = sandbox.run(&["serve", "model.apr", "--addr", &server.address]);
    assert_eq!(ran.exit, 5);
    assert!(ran.stderr.contains("--addr 127.0.0.1:0"), "{}", ran.stderr);
}

/// Where the operating system has no descriptors left, idle connections are closed for new ones.
#[cfg(target_os = "linux")]
#[test]
fn a_lack_of_descriptors_closes_idle_connections() {
    let sandbox = Sandbox::with_models();
    let server = Serving::start(&sandbox, &["serve", "model.apr", "--threads", "1"]);
    let pid = Pid::from_child(&server.child);
    let limit = Rlimit { current: Some(40), maximum: Some(40) };
    rustix::process::prlimit(Some(pid), Resource::Nofile, limit).unwrap();
    let idle: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    for _ in 0..5 {
        assert_eq!(server.predict("[[1, 2]]")["predictions"].as_array().unwrap().len(), 1);
    }
    drop(idle);
}

#[test]
fn limits_and_refusals_to_start() {
    let sandbox = Sandbox::with_models();
    let server = Serving::start(&sandbox, &["serve", "model.apr", "--max-rows", "2", "--max-body", "100"]);
    assert_eq!(server.http("POST /predict", "[[1,2],[1,2],[1,2]]").0, 413);
    assert_eq!(server.http("POST /predict", &" ".repeat(101)).0, 413);
    assert_eq!(server.predict("[[1,2],[1,2]]")["predictions"].as_array().unwrap().len(), 2);
    let taken = server.address.clone();
    for (args, exit, code) in [
        (&["serve", "model.apr", "--addr", &taken][..], 5, "sv-bind"),
        (&["serve", "model.apr", "--addr", "nowhere"], 5, "sv-bind"),
        (&["serve", "-"], 2, "cli-usage"),
        (&["serve", "model.apr", "--timeout", "soon"], 2, "cli-usage"),
        (&["serve", "model.apr", "--max-body", "x"], 2, "cli-usage"),
        (&["serve", "missing.apr"], 5, "df-io"),
        (&["serve", "tensors.apr"], 2, "cli-no-prediction"),
    ] {
        let (found, value) = sandbox.json(args);
        assert_eq!((found, value["error"]["code"].as_str()), (exit, Some(code)), "{args:?} {value}");
    }
}
