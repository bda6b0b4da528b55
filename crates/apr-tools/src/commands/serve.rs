//! `apr serve`: serves a model over HTTP.

mod private;

use alloc::borrow::Cow;
use alloc::rc::Rc;
use core::time::Duration;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use apr_crypto::{RecipientPublic, Trust};
use apr_serve::{Event, Logged, Options, Server, Shape, Signals, Signed, Succession, Watch};
use clap::value_parser;
use serde::Serialize;

use crate::args::{CompatArg, PayloadArgs, parse_size};
use crate::detached::{Detached, DetachedArgs};
use crate::error::{CODE_NO_PREDICTION, CODE_USAGE, Exit, Failure};
use crate::file_digest::{sha256, sha256_of};
use crate::input::{Model, Rules, Source};
use crate::interruption::{self, Asked};
use crate::remote::is_url;
use crate::report::{self, Report};
use crate::sealed_file::tell_cost;
use crate::secrets::{Keys, KeysArgs};
use crate::terminal::Console;
use crate::terminal::escape;
use crate::terminal::human::plural;

const AFTER_HELP: &str = "POST /predict takes {\"rows\": [[1, 2], [3, 4]]} or {\"rows\": [{\"age\": 1, \"size\": 2}]} as application/json or application/msgpack, lines of text/csv, columns as \
    application/vnd.apache.arrow.stream, or raw 32-bit floats as application/vnd.apr.f32; Accept chooses the form of the answer. GET /model, /health and /metrics say what is served and how it is; -v logs a line for each request. docs/serve.md is the \
    specification.\n\n\
    When MODEL changes, or at SIGHUP, it is loaded again and takes over at once; a file that is not sound, not \
    signed by whom it must be, or takes other inputs leaves the old one answering. SIGTERM and SIGINT let requests in \
    progress finish.\n\n\
    With --signer, --trusted-keys or --any-signer, the signature is verified before anything else of the model \
    is looked at, at the start and at every reload. With --signer or --trusted-keys, a new file must also have a later signed creation time than the old one, and the same model name.\n\n\
    With --inference-key, POST /private answers encrypted requests: docs/private-inference.md. A model that is bound to another key is \
    refused.\n\n\
    Examples:\n  apr serve model.apr\n  apr serve model.apr --addr 0.0.0.0:8080 --threads 4 --max-rows 1000\n  \
    apr serve sold.apr --identity buyer.key --signer maker.key.pub\n  \
    apr serve made.apr --signer maker.key.pub --inference-key owner.key\n\n\
    Exit codes: 0 stopped by a signal, 2 it predicts nothing, 3 invalid model, 4 corrupted, not verified or \
    not decrypted, 5 I/O, an address in use among it, 6 another format, or encrypted and no key given.";

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Args {
    /// A model in a file of any format, or a sealed file of one.
    #[arg(value_name = "MODEL")]
    input: PathBuf,
    /// Where to listen; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    addr: String,
    /// The same as --addr 127.0.0.1:PORT.
    #[arg(long, value_name = "PORT", conflicts_with = "addr")]
    port: Option<u16>,
    /// Threads that accept, parse and predict [default: one per core].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Maximum size of a request's body.
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    max_body: String,
    /// Memory of all requests and answers at a time; above it, requests are refused and may be sent again.
    #[arg(long, value_name = "SIZE", default_value = "256MiB")]
    max_memory: String,
    /// Maximum number of rows of a request.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = value_parser!(u32).range(1..))]
    max_rows: u32,
    /// Maximum number of connections at a time; idle ones are closed for new ones.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = value_parser!(u32).range(1..))]
    max_connections: u32,
    /// Maximum number of connections of one address at a time [default: half of all].
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    max_connections_per_address: Option<u32>,
    /// Accept also this name in the Host field of requests; repeatable.
    #[arg(long, value_name = "NAME", value_parser = parse_host)]
    allow_host: Vec<String>,
    /// For the body of a request and its answer.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    timeout: Duration,
    /// For requests in progress when the server stops.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_time)]
    grace: Duration,
    /// Let a new file take other inputs than the old one.
    #[arg(long)]
    allow_shape_change: bool,
    /// Let a new file signed by a trusted key be older than the old one, or of another model.
    #[arg(long)]
    allow_rollback: bool,
    /// Answer also requests encrypted to this secret key (`apr keygen inference`), at /private; KEYFILE.pub and KEYFILE.pub.minisig are offered to clients if they exist.
    #[arg(long, value_name = "KEYFILE")]
    inference_key: Option<PathBuf>,
    #[command(flatten)]
    compat: CompatArg,
    #[command(flatten)]
    payload: PayloadArgs,
    #[command(flatten)]
    keys: KeysArgs,
    #[command(flatten)]
    detached: DetachedArgs,
}

/// Where the server listens.
#[derive(Serialize)]
struct ServeReport<'a> {
    file: Cow<'a, str>,
    model: &'a str,
    address: String,
    url: &'a str,
}

impl Report for ServeReport<'_> {
    const SCHEMA: &'static str = "apr.serve/1";
}

/// Reads `10s`, `500ms`, `2m`, `1.5s` or a number of seconds.
fn parse_time(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("write a time as 10s, 500ms or 2m".to_owned()),
    };
    let seconds = number.parse::<f64>().ok().map(|number| number * scale).filter(|seconds| *seconds > 0.0);
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| *time <= Duration::from_secs(86_400))
        .ok_or_else(|| "write a time above zero and up to a day".to_owned())
}

/// A name for the Host field, without a port.
fn parse_host(text: &str) -> Result<String, String> {
    if apr_serve::is_host(text) {
        Ok(text.to_owned())
    } else {
        Err("write a name as model.example.com or an address, without scheme and port".to_owned())
    }
}

fn options(args: &Args) -> Result<Options, Failure> {
    let (max_body, max_memory) = (parse_size(&args.max_body)?, parse_size(&args.max_memory)?);
    if max_body > max_memory {
        let what = format!("--max-body {} is more than --max-memory {}", args.max_body, args.max_memory);
        return Err(Failure::new(CODE_USAGE, what)
            .help("give --max-memory a larger size, several times that of a body"));
    }
    let default = Options::default();
    Ok(Options {
        threads: args.threads.map_or(default.threads, |count| count as usize),
        max_body: usize::try_from(max_body).unwrap_or(usize::MAX),
        max_memory: usize::try_from(max_memory).unwrap_or(usize::MAX),
        max_rows: args.max_rows as usize,
        max_connections: args.max_connections as usize,
        max_connections_per_address: args.max_connections_per_address.map(|count| count as usize),
        allowed_hosts: args.allow_host.clone(),
        request_time: args.timeout,
        grace: args.grace,
        signals: Signals::Obey,
        ..default
    })
}

/// Runs `apr serve`.
///
/// # Errors
///
/// If the model cannot be loaded or predicts nothing, or the address cannot be listened on.
pub(crate) fn run(args: &Args, console: &mut Console) -> Result<Exit, Failure> {
    let rules = args.payload.apply(args.compat.rules());
    let path = args.input.as_path();
    if path.as_os_str() == "-" {
        let failure = Failure::new(CODE_USAGE, "a model that is served is a file, not standard input");
        return Err(
            failure.help("write it to a file first; when that changes, the server takes the new model")
        );
    }
    let mut options = options(args)?;
    if interruption::is_installed() {
        // They reach the server through its handle.
        options.signals = Signals::Leave;
    }
    let keys = Rc::new(args.keys.load([path])?);
    let mut watch = args.detached.places(path).into_iter().fold(Watch::new(path), Watch::with);
    if args.allow_shape_change {
        watch.shape = Shape::MayChange;
    }
    if args.allow_rollback {
        watch.succession = Succession::MayRollBack;
    }
    let detached = args.detached.load()?;
    let private =
        args.inference_key.as_deref().map(|path| private::load(path, &args.keys.key_password)).transpose()?;
    let (private, bound) = private.unzip();
    let load = |console: &Console| {
        let required = Required { keys: &keys, detached: detached.as_ref(), inference_key: bound.as_ref() };
        load(path, &rules, &required, console)
    };
    let model = load(console)?;
    let addr = match args.port {
        Some(port) => format!("127.0.0.1:{port}"),
        None => args.addr.clone(),
    };
    let mut server = Server::bind(addr.as_str(), options).map_err(|error| {
        let is_taken = error.io_error().kind() == ErrorKind::AddrInUse;
        let help = "another program listens there; for a free port use --addr 127.0.0.1:0 and the address that is printed";
        let failure = Failure::from(error);
        if is_taken { failure.help(help) } else { failure }
    })?;
    if console.is_verbose() {
        server = server.with_log(log);
    }
    if let Some(private) = private {
        server = server.with_private(private);
    }
    let handle = server.handle();
    interruption::take_over(move |asked| match asked {
        Asked::Stop => handle.stop(),
        Asked::Reload => handle.reload(),
    });
    announce(path, &server, model.any(), console)?;
    let shown = escape::path(path).to_string();
    let console = &*console;
    let again = || load(console);
    server.serve_watched(model, watch, again, |event| match event {
        Event::Reloaded { load_count, .. } => {
            console.note(format_args!("{shown}: reloaded, {load_count} loads"));
        }
        Event::NotLoaded(failure) => {
            console.failure(&failure);
            console.remark("the model that was loaded before goes on answering");
        }
        Event::OtherShape { expected, found } => {
            let what = format!("the new model takes {found}, the one that is served {expected}");
            console.failure(&Failure::new("sv-shape", what).in_file(path));
        }
        Event::RolledBack(rollback) => {
            console.failure(&Failure::new("sv-rollback", rollback.to_string()).in_file(path));
        }
        Event::Draining { open } => {
            console.note(format_args!("stopping: {} open", plural(open as u64, "connection")));
        }
        _ => {}
    })?;
    Ok(Exit::Success)
}

/// Writes a line for each answered request on standard error. One that is closed loses it.
fn log(logged: Logged<'_>) {
    let Logged { method, target, status, elapsed, n_rows, .. } = logged;
    let (method, target) = (escape::Visible(method), escape::Visible(target));
    let micros = elapsed.as_micros();
    let _ =
        io::stderr().write_all(format!("{method} {target} {status} {micros} us {n_rows} rows\n").as_bytes());
}

/// What opens a model, and what is required of it, at the start and at every reload.
struct Required<'r> {
    keys: &'r Rc<Keys>,
    detached: Option<&'r Detached>,
    inference_key: Option<&'r RecipientPublic>,
}

/// The model of a file, verified and opened with the keys.
fn load(
    path: &Path,
    rules: &Rules,
    required: &Required<'_>,
    console: &Console,
) -> Result<apr_serve::Model, Failure> {
    let Required { keys, detached, inference_key } = *required;
    if is_url(path) {
        return Err(Failure::not_remote(path));
    }
    let source = Source::open_verified(path, detached, console)?.with_keys(keys);
    tell_cost(&source, console)?;
    let opened = Model::of_content(source, rules)?;
    let is_signed = matches!(keys.trusted().trust(), Trust::Key(_) | Trust::AnyOf(_));
    let metadata =
        if is_signed || inference_key.is_some() { Some(opened.as_apr_v1_metadata()?) } else { None };
    if let (Some(metadata), Some(key)) = (&metadata, inference_key) {
        private::check(metadata, key).map_err(|failure| failure.in_file(path))?;
    }
    // A folder has no digest; a file of shards has one, its index.
    let digest = match opened.file().source() {
        // What was opened: another file may be at the path by now.
        Some(source) => {
            Some(sha256_of(source).map_err(|error| Failure::io("read the file", path, &error.into()))?)
        }
        None => opened.path().is_file().then(|| sha256(opened.path(), |_| ())).transpose()?,
    };
    // Of a verified copy nothing more is told: whatever is at the path by now was not verified.
    let is_at_path = opened.path() == path;
    let known = opened.named()?;
    let refused =
        |error: apr_models::Error| Failure::new(CODE_NO_PREDICTION, error.to_string()).in_file(path);
    let mut model = apr_serve::Model::new(known.model).map_err(refused)?;
    if let Some(names) = known.features {
        model = model.with_features(names);
    }
    if let Some(categories) = &known.categories {
        model = model.with_categories(categories).map_err(refused)?;
    }
    if let Some(names) = known.classes {
        model = model.with_classes(names);
    }
    if let Some(metadata) = metadata.filter(|_| is_signed) {
        let created_at = metadata.created_at_unix();
        model = model.with_signed(Signed { name: metadata.model_name, created_at });
    }
    if let Some(digest) = digest {
        model = model.with_digest(digest);
    }
    if !is_at_path {
        return Ok(model);
    }
    let (_, about) =
        crate::run_json(["inspect".into(), "--no-tree".into(), "--".into(), PathBuf::from(path).into()]);
    Ok(model.with_about(about))
}

/// Says where the server listens.
fn announce(
    path: &Path,
    server: &Server,
    model: &apr_models::AnyModel,
    console: &mut Console,
) -> Result<(), Failure> {
    use apr_models::Model as _;
    let url = format!("http://{}", server.local_addr());
    if console.is_json() {
        return console.report(&ServeReport {
            file: report::path(path),
            model: model.name(),
            address: server.local_addr().to_string(),
            url: &url,
        });
    }
    console.text(|out, _| writeln!(out, "{url}"))?;
    console.note(format_args!("serving {}: a {}; stop with Ctrl-C", escape::path(path), model.name()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        for text in ["", "s", "0s", "-1s", "1x", "1e9", "2d", "999999h"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
