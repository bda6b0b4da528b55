//! Valid and invalid requests, and a new model every second.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::Server;
use crate::json::Value;
use crate::task::Outcome;

/// Models that take turns.
pub(super) const MODELS: u8 = 5;

/// What all threads share.
struct Soak<'s> {
    server: &'s Server,
    is_over: AtomicBool,
    answers: AtomicU64,
    bad_requests: AtomicU64,
    /// The prediction of each model for features of 0.
    said: Mutex<HashMap<String, f64>>,
    problems: Mutex<Vec<String>>,
}

/// Runs for some seconds.
///
/// # Errors
///
/// If a valid request fails, a response is not that of any served model, or memory grows.
pub(super) fn run(server: &Server, served: &Path, models: &[PathBuf], seconds: u64) -> Outcome {
    let soak = Soak {
        server,
        is_over: AtomicBool::new(false),
        answers: AtomicU64::new(0),
        bad_requests: AtomicU64::new(0),
        said: Mutex::default(),
        problems: Mutex::default(),
    };
    let begun = Instant::now();
    let mut samples = Vec::new();
    thread::scope(|scope| {
        for (pipelined, rows) in [(1, 1), (8, 1), (1, 50), (2, 900)] {
            let soak = &soak;
            scope.spawn(move || soak.ask(pipelined, rows));
        }
        scope.spawn(|| soak.disturb());
        scope.spawn(|| soak.dawdle());
        scope.spawn(|| soak.replace(served, models));
        while begun.elapsed() < Duration::from_secs(seconds) && soak.problems().is_empty() {
            thread::sleep(
                Duration::from_secs(1).min(Duration::from_secs(seconds).saturating_sub(begun.elapsed())),
            );
            samples.extend(server.resident_kib());
            if samples.len().is_multiple_of(10) {
                println!(
                    "{:>5.0} s: {} answers, {} bad requests, {} KiB",
                    begun.elapsed().as_secs_f64(),
                    soak.answers.load(Ordering::Relaxed),
                    soak.bad_requests.load(Ordering::Relaxed),
                    samples.last().unwrap_or(&0)
                );
            }
        }
        soak.is_over.store(true, Ordering::Relaxed);
    });
    let (good, bad) = (soak.answers.load(Ordering::Relaxed), soak.bad_requests.load(Ordering::Relaxed));
    let reloads = server.metric("apr_serve_reloads_total{result=\"ok\"}")?;
    let refused = server.metric("apr_serve_reloads_total{result=\"failed\"}")?;
    println!(
        "serve-soak: {good} good answers of {} models in {:.0} s beside {bad} bad requests; {reloads} reloads, {refused} files refused; {}",
        soak.said.lock().unwrap_or_else(PoisonError::into_inner).len(),
        begun.elapsed().as_secs_f64(),
        memory(&samples)
    );
    let mut problems = core::mem::take(&mut *soak.problems());
    if good == 0 || bad == 0 || (seconds >= 10 && (reloads < 3 || refused == 0)) {
        problems.push("not everything was tried".to_owned());
    }
    if grows(&samples) {
        problems.push("memory grows".to_owned());
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n").into()) }
}

/// The median of the second fifth of the samples and of the last one: caches are warm in both.
fn early_and_late(samples: &[u64]) -> Option<(u64, u64)> {
    let fifth = samples.len() / 5;
    let median = |samples: &[u64]| {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    };
    Some((median(samples.get(fifth..2 * fifth)?)?, median(samples.get(samples.len() - fifth..)?)?))
}

fn memory(samples: &[u64]) -> String {
    let most = samples.iter().max().copied().unwrap_or(0);
    match early_and_late(samples) {
        Some((early, late)) => format!("memory {early} KiB early, {late} KiB late, {most} KiB at most"),
        None => format!("memory {most} KiB at most"),
    }
}

/// A tenth and 4 MiB more are what allocators keep.
fn grows(samples: &[u64]) -> bool {
    early_and_late(samples).is_some_and(|(early, late)| late > early + early / 10 + 4096)
}

impl Soak<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn problems(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok(stream)
    }

    /// Good requests on one connection, some at a time, each with so many rows.
    fn ask(&self, pipelined: usize, rows: usize) {
        let body = format!("[{}]", vec!["[0,0,0,0]"; rows].join(","));
        let head =
            format!("POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", body.len());
        let requests = (head + &body).repeat(pipelined);
        let asked = || -> io::Result<()> {
            let mut stream = self.connect()?;
            let mut unread = Vec::new();
            while !self.is_over() {
                stream.write_all(requests.as_bytes())?;
                for _ in 0..pipelined {
                    let answer = answer(&mut stream, &mut unread)?;
                    self.judge(&answer, rows).map_err(io::Error::other)?;
                    self.answers.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        };
        if let Err(error) = asked() {
            self.problems().push(format!("a good request, {pipelined} at a time, {rows} rows: {error}"));
        }
    }

    /// A response comes from one model: its prediction belongs to the name in it.
    fn judge(&self, answer: &str, rows: usize) -> Result<(), String> {
        let value = Value::parse(answer)?;
        let name = value.text_of("model").ok_or_else(|| answer.to_owned())?;
        let list = answer.split(['[', ']']).nth(1).unwrap_or_default();
        let said: Vec<f64> = list.split(',').filter_map(|number| number.parse().ok()).collect();
        let first = said.first().copied().unwrap_or(f64::NAN);
        let is_known = (0..MODELS).any(|number| (first - f64::from(number)).abs() < 1e-3);
        if said.len() != rows || !is_known || said.iter().any(|number| number.to_bits() != first.to_bits()) {
            return Err(format!("no answer of one model: {answer:.200}"));
        }
        let mut all = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let before = *all.entry(name.to_owned()).or_insert(first);
        if before.to_bits() == first.to_bits() {
            Ok(())
        } else {
            Err(format!("{name} said {before}, now {first}"))
        }
    }

    /// Requests that are none, are too long, or end too early.
    fn disturb(&self) {
        let long =
            format!("POST /predict HTTP/1.1\r\ncontent-length: 2000000\r\n\r\n{}", "[".repeat(100_000));
        let chunks =
            format!("POST /predict HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{}", "10000\r\n".repeat(20));
        let head = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(50_000));
        let requests: [&[u8]; 9] = [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
            b"hello\r\n\r\n",
            long.as_bytes(),
            chunks.as_bytes(),
            head.as_bytes(),
            b"POST /predict HTTP/1.1\r\ncontent-length: 9\r\n\r\n[[1,2,3,x",
            b"POST /predict HTTP/1.1\r\ncontent-length: 50\r\n\r\n[[1,2",
            b"POST /predict HTTP/1.1\r\ncontent-type: application/octet-stream\r\ncontent-length: 3\r\n\r\nabc",
            b"DELETE /model HTTP/1.1\r\n\r\nGET /nowhere HTTP/1.1\r\n\r\n",
        ];
        for (number, request) in requests.iter().cycle().enumerate() {
            if self.is_over() {
                return;
            }
            if let Ok(mut stream) = self.connect() {
                let _ = stream.write_all(request);
                // Half of them disconnect without reading the response.
                if number % 2 == 0 {
                    let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
                    let _ = stream.read(&mut [0; 4096]);
                }
            }
            self.bad_requests.fetch_add(1, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Clients that send a byte at a time, or do not read.
    fn dawdle(&self) {
        while !self.is_over() {
            let mut streams: Vec<TcpStream> = (0..20).filter_map(|_| self.connect().ok()).collect();
            for byte in b"POST /predict HTTP/1.1\r\n" {
                streams.iter_mut().for_each(|stream| drop(stream.write_all(&[*byte])));
                thread::sleep(Duration::from_millis(50));
                if self.is_over() {
                    return;
                }
            }
            self.bad_requests.fetch_add(20, Ordering::Relaxed);
        }
    }

    /// Another file every second, each fifth one cut short.
    fn replace(&self, served: &Path, models: &[PathBuf]) {
        let new = served.with_extension("new");
        let replaced = || -> io::Result<()> {
            for (turn, model) in models.iter().cycle().enumerate() {
                let mut bytes = fs::read(model)?;
                if turn % 5 == 2 {
                    bytes.truncate(bytes.len() / 2);
                }
                fs::write(&new, bytes)?;
                fs::rename(&new, served)?;
                for _ in 0..12 {
                    thread::sleep(Duration::from_millis(100));
                    if self.is_over() {
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        if let Err(error) = replaced() {
            self.problems().push(format!("{}: {error}", served.display()));
        }
    }
}

/// The body of the next response, which must be a success.
fn answer(stream: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<String> {
    loop {
        let text = String::from_utf8_lossy(unread);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            if !head.starts_with("HTTP/1.1 200 ") {
                return Err(io::Error::other(text.into_owned()));
            }
            let len =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let len = len.ok_or_else(|| io::Error::other("an answer without a length"))?;
            if let Some(body) = body.get(..len) {
                let (body, end) = (body.to_owned(), head.len() + 4 + len);
                unread.drain(..end);
                return Ok(body);
            }
        }
        let mut buffer = [0; 16 << 10];
        match stream.read(&mut buffer)? {
            0 => return Err(io::Error::other("the connection was closed")),
            read => unread.extend_from_slice(buffer.get(..read).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_told_from_noise() {
        let steady: Vec<u64> = (0..100).map(|second| 10_000 + second % 7 * 100).collect();
        assert!(!grows(&steady));
        let growing: Vec<u64> = (0..100).map(|second| 10_000 + second * 200).collect();
        assert!(grows(&growing));
        assert!(!grows(&[1, 2]));
    }
}
