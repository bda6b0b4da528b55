//! `apr predict --private`: predictions of a server to which the rows are sent encrypted. `docs/private-inference.md` is the
//! specification.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use apr_container::{ReadOptions, authenticate};
use apr_crypto::inference::service::{MEDIA_TYPE, ServiceRequest, ServiceResponse, context, signed_key};
use apr_crypto::inference::{Padding, RequestOptions, decrypt_response, encrypt_for_model};
use apr_crypto::{Access, OsRandom, RecipientPublic, Trusted};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Args;
use super::report::Names;
use crate::codes;
use crate::error::{CODE_INFERENCE_KEY, CODE_SERVICE, CODE_USAGE, Exit, Failure};
use crate::output::Destination;
use crate::report::Report;
use crate::secrets::load_recipient;
use crate::tables::{Dialect, Header};
use crate::terminal::Console;
use crate::terminal::escape::escaped;
use crate::terminal::number::Number;

const HEADING: &str = "Private inference";
/// Longest table that is sent.
const ROWS_MAX: u64 = 1 << 30;
/// Longest answer: twice what a server gives, for the padding, and what encryption adds.
const ANSWER_MAX: u64 = (128 << 20) + 64;
/// Longest description of a session.
const OFFER_MAX: u64 = 64 << 10;

#[derive(Debug, clap::Args)]
pub(super) struct PrivateArgs {
    /// Send the rows, encrypted to the owner of the model, to this server (`apr serve --inference-key`); MODEL is a signed copy, if there is one.
    #[arg(long, value_name = "URL", help_heading = HEADING)]
    #[arg(conflicts_with_all = ["output", "column", "ids", "identity", "key", "any_signer", "force", "ask_password", "password_file",
        "password_fd", "compat"])]
    pub(super) private: Option<String>,
    /// The public key of the model's owner: the key itself, or its file; in place of one that a --signer signed.
    #[arg(long, value_name = "KEY-OR-FILE", help_heading = HEADING, requires = "private")]
    #[arg(conflicts_with_all = ["signer", "trusted_keys", "model"])]
    inference_key: Option<PathBuf>,
}

/// What `GET /private` says.
#[derive(Deserialize)]
struct Offer {
    session: String,
    key: String,
    key_file: Option<String>,
    signature: Option<String>,
}

/// The predictions in an answer.
#[derive(Deserialize)]
struct Predicted<'a> {
    #[serde(borrow)]
    predictions: Vec<&'a RawValue>,
    model: &'a str,
}

#[derive(Serialize)]
struct PrivateReport<'a> {
    url: &'a str,
    model: &'a str,
    inference_key: String,
    predictions: &'a [&'a RawValue],
}

impl Report for PrivateReport<'_> {
    const SCHEMA: &'static str = "apr.predict.private/1";
}

/// An error as the server states it.
#[derive(Deserialize)]
struct Refused {
    error: Stated,
}

#[derive(Deserialize)]
struct Stated {
    code: String,
    message: String,
    #[serde(rename = "where")]
    place: Option<String>,
    help: String,
}

/// Runs `apr predict --private`.
///
/// # Errors
///
/// If there is no authenticated key; if the server cannot be reached or refuses the request; if its answer is not from the owner of
/// the key.
pub(super) fn run(args: &Args, url: &str, console: &mut Console) -> Result<Exit, Failure> {
    let url = service_url(url)?;
    let trusted = args.loading.keys.trust.load()?;
    let (media_type, rows) = read_rows(args.rows()?, &args.dialect)?;
    let offer = offer(&url)?;
    let key = key(args, &trusted, &offer)?;
    if offer.key.parse::<RecipientPublic>().ok() != Some(key) {
        let what = format!("the server has another inference key than {}", key.fingerprint());
        return Err(Failure::new(CODE_INFERENCE_KEY, what).because("it could not open the request"));
    }
    let query = if args.proba { "proba=true" } else { "" };
    let content = ServiceRequest { query, media_type, accept: "", body: &rows }.to_vec()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let options = RequestOptions::default().sent_at(now).with_padding(Padding::PowerOfTwo);
    let context = context(&offer.session);
    let (request, pending) = encrypt_for_model(&mut OsRandom, &key, context.as_bytes(), &content, &options)?;
    let (status, answer) = exchange(&url, Some((MEDIA_TYPE, &request)), ANSWER_MAX)?;
    if status != 200 {
        return Err(refused(status, &answer));
    }
    let opened = decrypt_response(&pending, &answer)?;
    let response = ServiceResponse::from_bytes(&opened)?;
    if response.status != 200 {
        return Err(refused(response.status, response.body));
    }
    let answer: Predicted<'_> = serde_json::from_slice(response.body).map_err(|_| no_service(&url))?;
    if console.is_json() {
        console.report(&PrivateReport {
            url: &url,
            model: answer.model,
            inference_key: key.fingerprint().to_string(),
            predictions: &answer.predictions,
        })?;
        return Ok(Exit::Success);
    }
    let names = Names::of(&Destination::Stdout, console);
    for prediction in &answer.predictions {
        let line = line(prediction.get(), names);
        console.text(|out, _| writeln!(out, "{line}"))?;
    }
    Ok(Exit::Success)
}

/// A prediction on one line, as `predict` without a server shows it: text as a cell, floats in as few digits as give them back, the
/// values of a row with commas between; anything else as JSON.
fn line(json: &str, names: Names) -> String {
    if let Ok(text) = serde_json::from_str::<String>(json) {
        let mut line = String::new();
        names.push(&text, ',', &mut line);
        return line;
    }
    if let Ok(row) = serde_json::from_str::<Vec<&RawValue>>(json) {
        let row: Vec<String> = row.iter().map(|value| number(value.get())).collect();
        return row.join(",");
    }
    number(json)
}

fn number(json: &str) -> String {
    let float = json.parse().ok().filter(|_| json.contains(['.', 'e', 'E']));
    float.map_or_else(|| escaped(json), |value| Number::F64(value).to_string())
}

/// The address of the endpoint, below that of the server.
fn service_url(url: &str) -> Result<String, Failure> {
    if url.contains(['?', '#']) {
        return Err(Failure::new(CODE_USAGE, "--private takes the address of a server, without a query"));
    }
    let base = url.trim_end_matches('/');
    Ok(if base.ends_with("/private") { base.to_owned() } else { format!("{base}/private") })
}

/// The key to encrypt to: given, or in a signed copy of the model, or offered by the server and signed.
fn key(args: &Args, trusted: &Trusted, offer: &Offer) -> Result<RecipientPublic, Failure> {
    if let Some(path) = &args.private.inference_key {
        return load_recipient(path);
    }
    if matches!(trusted, Trusted::NoSignature) {
        let failure = Failure::new(CODE_USAGE, "whose key are the rows to be encrypted to?");
        return Err(failure.help(
            "name the signer of the model with --signer KEY, or the owner's public key with --inference-key KEY",
        ));
    }
    if let Some(path) = &args.model {
        let file = durable_file::read(path, ROWS_MAX)?;
        let access = Access::default().with_trust(trusted.trust());
        let key = authenticate(&file, &access, &ReadOptions::STRICT)
            .and_then(|metadata| metadata.inference_key())
            .map_err(|error| Failure::from(error).in_file(path))?;
        return Ok(*key.public());
    }
    match (&offer.key_file, &offer.signature) {
        (Some(file), Some(signature)) => Ok(signed_key(file, signature, trusted.trust())?),
        _ => Err(Failure::new(CODE_INFERENCE_KEY, "the server offers no signed inference key").help(
            "name a signed copy of its model: apr predict MODEL --private URL --signer KEY; or the owner's public key: --inference-key KEY",
        )),
    }
}

/// The table as the server reads it, with its media type.
fn read_rows(path: &Path, dialect: &Dialect) -> Result<(&'static str, Vec<u8>), Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let media_type = match (ending.to_ascii_lowercase().as_str(), dialect.header) {
        ("json", _) => "application/json",
        ("arrow" | "arrows" | "feather", _) => "application/vnd.apache.arrow.stream",
        ("parquet" | "npy" | "npz" | "ald" | "jsonl" | "ndjson", _) => {
            return Err(Failure::new(CODE_USAGE, "this format is not sent to a server").in_file(path).help(
                "write the rows as .csv, .json ({\"rows\": [[1, 2]]}) or .arrow: docs/serve.md has the forms",
            ));
        }
        (_, Header::Yes) => "text/csv; header=present",
        (_, Header::No) => "text/csv; header=absent",
        (_, Header::Auto) => "text/csv",
    };
    if dialect.delimiter != b',' {
        return Err(Failure::new(CODE_USAGE, "a server reads cells that are separated by commas"));
    }
    if path.as_os_str() != "-" {
        return Ok((media_type, durable_file::read(path, ROWS_MAX)?));
    }
    let mut rows = Vec::new();
    let read = std::io::stdin().lock().take(ROWS_MAX + 1).read_to_end(&mut rows);
    read.map_err(|error| Failure::io("read the file", path, &error))?;
    if rows.len() as u64 > ROWS_MAX {
        return Err(Failure::new(CODE_USAGE, "the rows have more than 1 GiB, the most that is sent"));
    }
    Ok((media_type, rows))
}

fn offer(url: &str) -> Result<Offer, Failure> {
    let (status, body) = exchange(url, None, OFFER_MAX)?;
    match status {
        200 => serde_json::from_slice(&body).map_err(|_| no_service(url)),
        404 => {
            Err(no_service(url)
                .help("is the address that of the server, without a path? If it is, the server answers plain requests alone: start it with --inference-key"))
        }
        _ => Err(refused(status, &body)),
    }
}

/// An answer that no `apr serve` gives.
fn no_service(url: &str) -> Failure {
    Failure::new(CODE_SERVICE, format!("no private inference at {}", escaped(url)))
}

/// The refusal of a server, with its code if it is one of ours.
fn refused(status: u16, body: &[u8]) -> Failure {
    let Ok(Refused { error }) = serde_json::from_slice(body) else {
        return Failure::new(CODE_SERVICE, format!("the server answered with status {status}"));
    };
    let place = error.place.map(|place| format!("{}: ", escaped(&place))).unwrap_or_default();
    let what = format!("the server refused: {place}{}", escaped(&error.message));
    let code = codes::find(&error.code).map_or(CODE_SERVICE, |entry| entry.code);
    Failure::new(code, what).help(escaped(&error.help))
}

/// Status and body of an answer.
#[cfg(feature = "remote")]
fn exchange(url: &str, content: Option<(&str, &[u8])>, max_len: u64) -> Result<(u16, Vec<u8>), Failure> {
    let at = |error: apr_remote::Error| Failure::from(error).in_file(Path::new(url));
    use apr_remote::ErrorKind;
    let target = apr_remote::Url::parse(url).map_err(at)?;
    let answer = crate::remote::client()?.exchange(&target, content, max_len);
    let answer = answer.map_err(|error| match error.kind() {
        ErrorKind::TooLong { .. } => no_service(url).because(error.to_string()),
        _ => at(error),
    })?;
    Ok((answer.status, answer.body))
}

#[cfg(not(feature = "remote"))]
fn exchange(url: &str, _: Option<(&str, &[u8])>, _: u64) -> Result<(u16, Vec<u8>), Failure> {
    Err(Failure::not_remote(Path::new(url)).help("this build lacks the feature `remote`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_the_endpoint() {
        for (given, expected) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/private"),
            ("https://host/models/iris/", "https://host/models/iris/private"),
            ("https://host/private", "https://host/private"),
        ] {
            assert_eq!(service_url(given).unwrap(), expected);
        }
        assert!(service_url("http://host/?proba=true").is_err());
    }

    #[test]
    fn predictions_are_lines() {
        for (json, expected) in [
            ("1.5", "1.5"),
            ("3.0", "3"),
            ("-0.30000001", "-0.30000001"),
            ("1e20", "1e20"),
            ("7", "7"),
            ("null", "null"),
            ("\"a\\u001bb\"", "a\\u{1b}b"),
            ("[1.0,2.5]", "1,2.5"),
            ("{\"a\":1}", "{\"a\":1}"),
        ] {
            assert_eq!(line(json, Names::Shown), expected);
        }
    }
}
