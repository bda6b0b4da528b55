//! `serve-load`, `serve-soak`: `apr serve` under load, and for a long time.

mod soak;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::json::Value;
use crate::process::{announce, capture, cargo, command, find_tool, stdout_of, step};
use crate::task::{Failure, Outcome, Session, skipped};
use crate::workspace::{Workspace, build_apr};

/// Default durations of each load and of the soak test.
const LOAD_SECONDS: u64 = 10;
const SOAK_SECONDS: u64 = 600;

const SCRIPT: &str = "xtask/serve.lua";

/// Seconds as the only argument.
fn seconds(name: &str, args: &[String], default: u64) -> Result<u64, Failure> {
    match args {
        [] => Ok(default),
        [text] if text.parse::<u64>().is_ok_and(|seconds| seconds > 0) => Ok(text.parse().unwrap_or(default)),
        _ => Err(Failure::Usage(format!("`{name}` takes a number of seconds"))),
    }
}

/// Measures predictions a second and latencies, with wrk.
pub(crate) fn load(session: &mut Session, args: &[String]) -> Outcome {
    let seconds = seconds("serve-load", args, LOAD_SECONDS)?;
    let Some(wrk) = find_tool(session, "wrk") else {
        return Err(skipped("needs Debian's wrk"));
    };
    step(&mut cargo(session, &["build", "--release", "--locked", "--package", "apr-tools"]))?;
    let apr = Workspace::load(session, "Cargo.toml")?.target_dir.join("release").join("apr");
    let folder = scratch(session, "serve-load")?;
    let model = trained(session, &apr, &folder, 0)?;
    let server = Server::start(session, &apr, &model)?;
    println!(
        "{:<44} {:>13} {:>10} {:>10}",
        "load, wrk on one thread beside the server", "predictions/s", "p50", "p99"
    );
    let measure = |what: &str, connections: u64, depth: u64, rows: u64, pause: u64| -> Result<f64, Failure> {
        let connections = connections.to_string();
        let seconds = format!("-d{seconds}s");
        let url = format!("http://{}/predict", server.address);
        let args = ["-t1", "--latency", &seconds, "-c", &connections, "-s", SCRIPT, &url, "--"];
        let mut wrk = command(session, &wrk, &args);
        let numbers = [depth, rows, pause].map(|number| number.to_string());
        let said = stdout_of(wrk.args(numbers))?;
        let figure = |label: &str| {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(label));
            line.map(str::trim).ok_or_else(|| Failure::from(format!("wrk does not say `{label}`:\n{said}")))
        };
        if said.contains("Non-2xx") || said.contains("Socket errors") {
            return Err(format!("{what}: not every request was answered:\n{said}").into());
        }
        let rate = figure("Requests/sec:")?.parse::<f64>().map_err(|error| format!("{said}: {error}"))?;
        let rate = rate * rows as f64;
        println!("{what:<44} {rate:>13.0} {:>10} {:>10}", figure("50%")?, figure("99%")?);
        Ok(rate)
    };
    let most = measure("16 connections, 16 requests at a time", 16, 16, 1, 0)?;
    measure("16 connections, one request at a time", 16, 1, 1, 0)?;
    measure("8 connections, 100 rows a request", 8, 1, 100, 0)?;
    // Each connection sends its requests every 10 ms on average.
    measure("50,000 a second, 5 requests at a time", 106, 5, 1, 10)?;
    measure("50,000 a second, 10 requests at a time", 53, 10, 1, 10)?;
    let half = (most / 2.0 / 500.0) as u64;
    measure("half the first load, 5 requests at a time", half.clamp(1, 500), 5, 1, 10)?;
    println!("memory of the server: {} KiB", server.resident_kib().unwrap_or(0));
    server.stop(session)
}

/// Sends requests for a long time, reloads every second, and sends invalid requests in parallel.
pub(crate) fn soak(session: &mut Session, args: &[String]) -> Outcome {
    let seconds = seconds("serve-soak", args, SOAK_SECONDS)?;
    if !cfg!(target_os = "linux") {
        return Err(skipped("looks at memory in /proc"));
    }
    let apr = build_apr(session)?;
    let folder = scratch(session, "serve-soak")?;
    let models = (0..soak::MODELS).map(|number| trained(session, &apr, &folder, number));
    let models: Vec<PathBuf> = models.collect::<Result<_, _>>()?;
    let served = folder.join("served.apr");
    fs::copy(&models[0], &served).map_err(|error| format!("{}: {error}", served.display()))?;
    let server = Server::start(session, &apr, &served)?;
    soak::run(&server, &served, &models, seconds)?;
    server.stop(session)
}

fn scratch(session: &Session, name: &str) -> Result<PathBuf, Failure> {
    let folder = session.scratch(name);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// A linear regression of four features that predicts `number` if they are all 0.
fn trained(session: &Session, apr: &Path, folder: &Path, number: u8) -> Result<PathBuf, Failure> {
    let (table, model) = (folder.join("table.csv"), folder.join(format!("model-{number}.apr")));
    let mut text = "a,b,c,d,y\n".to_owned();
    for row in 0..32_u32 {
        let [a, b, c, d] = [1, 2, 4, 8].map(|bit| row / bit % 2 + row / 16);
        text += &format!("{a},{b},{c},{d},{}\n", a + 2 * b + c + d + u32::from(number));
    }
    fs::write(&table, text).map_err(|error| format!("{}: {error}", table.display()))?;
    let args = ["train", "linear-regression", "--target", "y", "--force", "--quiet", "--data"];
    let trained = capture(command(session, apr, &args).arg(&table).arg("-o").arg(&model))?;
    if trained.success { Ok(model) } else { Err(trained.stderr.into()) }
}

/// A running `apr serve`.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(session: &Session, apr: &Path, model: &Path) -> Result<Self, Failure> {
        let mut command = command(session, apr, &["serve", "--json", "--quiet", "--addr", "127.0.0.1:0"]);
        command.arg(model).stdout(Stdio::piped()).stderr(Stdio::null());
        announce(&command);
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", apr.display()))?;
        let mut text = String::new();
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                text += &line;
                if line == "}" {
                    break;
                }
            }
        }
        let address = Value::parse(&text).ok().and_then(|value| value.text_of("address").map(str::to_owned));
        let server = Self { child, address: address.unwrap_or_default() };
        if server.address.is_empty() {
            Err(format!("the server does not start: {text}").into())
        } else {
            Ok(server)
        }
    }

    /// KiB of memory that it has.
    fn resident_kib(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    /// A line of `/metrics`.
    fn metric(&self, name: &str) -> Result<u64, Failure> {
        let request = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        let mut text = String::new();
        let asked = TcpStream::connect(&self.address).and_then(|mut stream| {
            stream.write_all(request.as_bytes())?;
            stream.read_to_string(&mut text)
        });
        asked.map_err(|error| format!("/metrics: {error}"))?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| format!("/metrics does not say `{name}`").into())
    }

    /// Waits for its end, which must be a success.
    fn stop(mut self, session: &Session) -> Outcome {
        stdout_of(&mut command(session, "kill", &["-TERM", &self.child.id().to_string()]))?;
        let status = self.child.wait().map_err(|error| format!("the server: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}").into()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
