//! A simulated network with a clock of its own: random faults, each reproducible by its seed.

mod cached;
mod slow;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::{self, Read};
use std::sync::Mutex;

use read_at::ReadAt as _;
use ureq::http::{HeaderMap, HeaderName, HeaderValue};

use crate::blocks::BlockCache;
use crate::client::{Client, Network, Options, PlainHttp, Route};
use crate::error::{Error, ErrorKind};
use crate::file::RemoteFile;
use crate::hub::Hub;
use crate::pin::{Pin, Version};
use crate::place::Place;
use crate::retry::{Pace, Tries};
use crate::sign::{Sign, Signed};
use crate::transport::{Answer, Broken, Request, Transport};
use crate::url::Url;

const TOKEN: &str = "token-of-the-user";
const HUB: &str = "https://hub.example";
const FILE: &str = "https://hub.example/o/n/resolve/main/model.safetensors";
const STORE: &str = "https://store.example/blob?signature=1";
const LEN: u64 = 3 << 30;
/// Content repeats after this many bytes, a prime number: shifted bytes are other bytes.
const PERIOD: usize = 1_000_003;

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The bytes of a version of the file, three periods long so that slices are contiguous.
fn table(version: u64) -> Arc<Vec<u8>> {
    let mut state = version;
    let period: Vec<u8> = (0..PERIOD).map(|_| next(&mut state) as u8).collect();
    Arc::new(period.repeat(3))
}

fn content(table: &[u8], offset: u64, len: usize) -> &[u8] {
    let at = (offset % PERIOD as u64) as usize;
    &table[at..at + len]
}

/// Virtual time in microseconds.
#[derive(Debug, Default)]
struct Clock {
    now: AtomicU64,
    random: Mutex<u64>,
}

#[derive(Clone, Debug)]
struct Ticks(Arc<Clock>);

impl Pace for Ticks {
    fn now(&self) -> Duration {
        Duration::from_micros(self.0.now.load(Ordering::Relaxed))
    }

    fn sleep(&self, pause: Duration) {
        self.0.now.fetch_add(pause.as_micros() as u64, Ordering::Relaxed);
    }

    fn random(&self) -> u64 {
        next(&mut self.0.random.lock().unwrap())
    }
}

/// What a server does instead of answering rightly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Refused,
    Busy,
    LongPause,
    /// The body ends or breaks early.
    Short,
    Trickle,
    Whole,
    WrongRange,
    WrongTotal,
    NoRange,
    WrongLength,
    Longer,
    Compressed,
    /// From now on, another version.
    Changes,
    /// A weak tag in place of a strong one.
    Weak,
    /// A 304 without a tag.
    Untagged,
    Missing,
    Expired,
    Elsewhere,
    ToPlainHttp,
    Endless,
}

const FAULTS: [Fault; 20] = [
    Fault::Refused,
    Fault::Busy,
    Fault::LongPause,
    Fault::Short,
    Fault::Trickle,
    Fault::Whole,
    Fault::WrongRange,
    Fault::WrongTotal,
    Fault::NoRange,
    Fault::WrongLength,
    Fault::Longer,
    Fault::Compressed,
    Fault::Changes,
    Fault::Weak,
    Fault::Untagged,
    Fault::Missing,
    Fault::Expired,
    Fault::Elsewhere,
    Fault::ToPlainHttp,
    Fault::Endless,
];
/// Of these, a read recovers.
const PASSING: [Fault; 6] =
    [Fault::Refused, Fault::Busy, Fault::Short, Fault::Trickle, Fault::Expired, Fault::Elsewhere];

#[derive(Debug)]
struct State {
    seed: u64,
    /// Of 100 requests.
    faulty: u64,
    faults: Vec<Fault>,
    /// One after the other, before the random ones.
    script: Vec<Fault>,
    version: usize,
    requests: u64,
    leaks: u64,
}

#[derive(Debug)]
struct Simulated {
    clock: Arc<Clock>,
    versions: [Arc<Vec<u8>>; 2],
    state: Arc<Mutex<State>>,
}

struct Body {
    clock: Arc<Clock>,
    table: Arc<Vec<u8>>,
    at: u64,
    left: u64,
    /// Microseconds for each piece.
    pause: u64,
    /// Whether it ends with an error.
    breaks: bool,
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && self.breaks {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let most = if self.pause > 1_000_000 { 4 << 10 } else { 1 << 20 };
        let len = out.len().min(most).min(usize::try_from(self.left).unwrap_or(usize::MAX)).min(PERIOD);
        out[..len].copy_from_slice(content(&self.table, self.at, len));
        self.at += len as u64;
        self.left -= len as u64;
        self.clock.now.fetch_add(self.pause, Ordering::Relaxed);
        Ok(len)
    }
}

impl Transport for Simulated {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Broken> {
        let mut state = self.state.lock().unwrap();
        state.requests += 1;
        let is_hub = request.url.to_string().starts_with(HUB);
        if request.authorization.is_some() != is_hub
            || request.authorization.iter().any(|value| !value.contains(TOKEN))
        {
            state.leaks += 1;
        }
        self.clock.now.fetch_add(20_000, Ordering::Relaxed);
        let random = next(&mut state.seed);
        let fault = match state.script.is_empty() {
            false => Some(state.script.remove(0)),
            true if random % 100 < state.faulty => {
                let pick = (random >> 32) as usize % state.faults.len();
                Some(state.faults[pick])
            }
            true => None,
        };
        if fault == Some(Fault::Changes) {
            state.version = 1;
        }
        let version = state.version;
        drop(state);
        let random = next(&mut { random });
        let range = request.range.clone().unwrap();
        let status = |status| Ok(self.empty(status, &[]));
        let redirect = |to: &str| Ok(self.empty(302, &[("location", to)]));
        match fault {
            Some(Fault::Refused) => return Err(Broken::Connection("refused".into())),
            Some(Fault::Busy) => return status([408, 429, 500, 502, 503, 504][(random % 6) as usize]),
            Some(Fault::LongPause) => return Ok(self.empty(429, &[("retry-after", "100000")])),
            Some(Fault::Missing) => return status(404),
            Some(Fault::Expired) if !is_hub => return status(403),
            Some(Fault::Elsewhere) => return redirect("https://mirror.example/blob?signature=2"),
            Some(Fault::ToPlainHttp) => return redirect("http://store.example/blob"),
            Some(Fault::Endless) => return redirect(&request.url.full()),
            _ if is_hub => return redirect(STORE),
            _ => {}
        }
        let tag = ["\"first\"", "\"second\""][version];
        if request.if_match.is_some_and(|expected| expected != tag) {
            return status(412);
        }
        if request.if_none_match == Some(tag) && fault != Some(Fault::Whole) {
            return Ok(match fault {
                Some(Fault::Untagged) => self.empty(304, &[]),
                Some(Fault::Weak) => self.empty(304, &[("etag", "W/\"first\"")]),
                _ => self.empty(304, &[("etag", tag)]),
            });
        }
        let end = range.end.min(LEN);
        let (mut from, mut len) = (range.start, end - range.start);
        let mut headers = vec![("etag", tag.to_owned()), ("content-length", len.to_string())];
        let mut content_range = format!("bytes {}-{}/{LEN}", range.start, end - 1);
        let mut body = Body {
            clock: Arc::clone(&self.clock),
            table: Arc::clone(&self.versions[version]),
            at: 0,
            left: 0,
            pause: 10,
            breaks: false,
        };
        let mut code = 206;
        match fault {
            Some(Fault::Short) => {
                (len, body.breaks) = (random % len, random & 1 << 40 != 0);
            }
            Some(Fault::Trickle) => body.pause = 5_000_000,
            Some(Fault::Whole) => {
                (code, from, len) = (200, 0, LEN);
                headers[1].1 = LEN.to_string();
            }
            Some(Fault::WrongRange) => {
                from += 1;
                content_range = format!("bytes {from}-{end}/{LEN}");
            }
            Some(Fault::WrongTotal) => {
                content_range = format!("bytes {}-{}/{}", range.start, end - 1, LEN + 1);
            }
            Some(Fault::NoRange) => content_range.clear(),
            Some(Fault::WrongLength) => headers[1].1 = (len + 1).to_string(),
            Some(Fault::Longer) => len += 100,
            Some(Fault::Compressed) => headers.push(("content-encoding", "gzip".to_owned())),
            Some(Fault::Weak) => headers[0].1 = "W/\"first\"".to_owned(),
            _ => {}
        }
        (body.at, body.left) = (from, len);
        if code == 206 && !content_range.is_empty() {
            headers.push(("content-range", content_range));
        }
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let mut answer = self.empty(code, &headers);
        answer.body = Box::new(body);
        Ok(answer)
    }
}

impl Simulated {
    fn empty(&self, status: u16, pairs: &[(&str, &str)]) -> Answer {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
        }
        Answer { status, headers, body: Box::new(io::empty()) }
    }
}

struct World {
    clock: Arc<Clock>,
    state: Arc<Mutex<State>>,
    client: Arc<Client>,
}

impl World {
    fn new(versions: &[Arc<Vec<u8>>; 2], seed: u64, faulty: u64, faults: &[Fault]) -> Self {
        Self::with_cache(versions, seed, faulty, faults, None)
    }

    fn with_cache(
        versions: &[Arc<Vec<u8>>; 2],
        seed: u64,
        faulty: u64,
        faults: &[Fault],
        block_cache: Option<BlockCache>,
    ) -> Self {
        let clock = Arc::new(Clock { now: AtomicU64::new(0), random: Mutex::new(seed) });
        let state = State {
            seed,
            faulty,
            faults: faults.to_vec(),
            script: Vec::new(),
            version: 0,
            requests: 0,
            leaks: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let transport =
            Simulated { clock: Arc::clone(&clock), versions: versions.clone(), state: Arc::clone(&state) };
        let options = Options {
            plain_http: PlainHttp::Loopback,
            network: Network::On,
            tries: Tries::default(),
            hub: Hub { endpoint: Url::parse(HUB).unwrap(), token: Ok(Some(TOKEN.to_owned().into())) },
            hub_cache: None,
            block_cache,
            certificates: None,
            ..Options::from_environment(|_| None).unwrap()
        };
        let client = Client::with(Box::new(transport), Box::new(Ticks(Arc::clone(&clock))), options).unwrap();
        Self { clock, state, client }
    }

    fn open(&self) -> Result<RemoteFile, Error> {
        self.client.open(&Place::parse(FILE).unwrap().unwrap())
    }
}

/// 64 tensors: some after each other, some far apart.
fn tensors(seed: &mut u64) -> Vec<(u64, usize)> {
    let mut at = next(seed) % (1 << 20);
    let mut tensors = Vec::new();
    for _ in 0..64 {
        let random = next(seed);
        let len = 1 + (random % 48_000) as usize;
        tensors.push((at, len));
        at += len as u64 + if random & 1 << 33 == 0 { 0 } else { (random >> 34) % (30 << 20) };
    }
    assert!(at < LEN);
    tensors
}

/// Reads 10 MiB in small pieces, as a whole, or after saying so.
fn go_through(file: &RemoteFile, version: &[u8], kind: u64) -> Result<(), read_at::Error> {
    let (start, len) = (1_000_000_000 + kind * 1_000, 10 << 20);
    let step = match kind % 3 {
        0 => len,
        1 => 600_000,
        _ => {
            file.will_read(start..start + len as u64);
            300_000
        }
    };
    let mut out = vec![0; len];
    let mut at = start;
    for piece in out.chunks_mut(step) {
        file.read_exact_at(at, piece)?;
        for piece in piece.chunks(1_000_000) {
            assert!(content(version, at, piece.len()) == piece, "wrong bytes: kind {kind}, offset {at}");
            at += piece.len() as u64;
        }
    }
    Ok(())
}

/// Reads the tensors that `state` chooses, all of one version.
fn read_some(
    world: &World,
    versions: &[Arc<Vec<u8>>; 2],
    seed: u64,
    mut state: u64,
) -> Result<(), read_at::Error> {
    let mut buf = vec![0; 48_000];
    let file = world.open()?;
    file.read_exact_at(0, &mut buf[..100])?;
    let version = versions.iter().find(|table| content(table, 0, 100) == &buf[..100]);
    let version = version.unwrap_or_else(|| panic!("wrong bytes at the beginning: seed {seed}"));
    for (offset, len) in tensors(&mut state) {
        let out = &mut buf[..len];
        file.read_exact_at(offset, out)?;
        assert!(content(version, offset, len) == out, "wrong bytes: seed {seed}, offset {offset}");
    }
    // Of 20 schedules, one of each kind also sends several requests at once.
    if seed % 20 < 2 { go_through(&file, version, seed / 20) } else { Ok(()) }
}

#[test]
fn random_faults_never_give_wrong_bytes_never_hang_and_never_leak_credentials() {
    let schedules: u64 = std::env::var("APR_REMOTE_SCHEDULES").map_or(2_000, |count| count.parse().unwrap());
    let versions = [table(1), table(2)];
    let (mut whole, mut refused) = (0_u64, 0_u64);
    for seed in 0..schedules {
        // Half of the schedules have only faults that pass.
        let (faulty, faults): (u64, &[Fault]) =
            if seed % 2 == 0 { (1 + seed % 30, &PASSING) } else { (1 + seed % 12, &FAULTS) };
        let world = World::new(&versions, seed, faulty, faults);
        let read = read_some(&world, &versions, seed, seed ^ 0xABCD);
        whole += u64::from(read.is_ok());
        if let Err(error) = read {
            refused += 1;
            let error = crate::error::remote_error(&error).expect("an error of ours");
            // A new signed URL may be refused at once, too.
            let is_expected = ["rm-gave-up", "rm-denied"].contains(&error.code());
            assert!(faults.len() == FAULTS.len() || is_expected, "seed {seed}: {error}");
        }
        let state = world.state.lock().unwrap();
        assert_eq!(state.leaks, 0, "credentials left their host: seed {seed}");
        assert!(state.requests < 5_000, "{} requests: seed {seed}", state.requests);
        let hours = Duration::from_micros(world.clock.now.load(Ordering::Relaxed)).as_secs() / 3_600;
        assert!(hours < 24, "{hours} virtual hours: seed {seed}");
    }
    assert!(whole > schedules / 3 && refused > schedules / 20, "{whole} whole, {refused} refused");
}

#[test]
fn copies_are_in_order_and_end_at_the_first_error() {
    let versions = [table(1), table(2)];
    for seed in 0..40 {
        let world = World::new(&versions, seed, seed % 30, &PASSING);
        let Ok(file) = world.open() else { continue };
        let range = 1_000..30_000_000;
        let mut at = range.start;
        let read = file.read_in_order(range.clone(), 1 + seed as usize % 8, |bytes| {
            for piece in bytes.chunks(1_000_000) {
                assert!(content(&versions[0], at, piece.len()) == piece, "seed {seed}, offset {at}");
                at += piece.len() as u64;
            }
            if seed % 5 == 0 && at > 9_000_000 {
                Err(Error::from(ErrorKind::Outside).into())
            } else {
                Ok::<(), read_at::Error>(())
            }
        });
        match read {
            Ok(()) => assert_eq!(at, range.end),
            Err(error) if seed % 5 == 0 => assert!(at < 14_000_000, "{error}"),
            Err(error) => {
                let code = crate::error::remote_error(&error).map(Error::code);
                assert!(matches!(code, Some("rm-gave-up" | "rm-denied")), "{error}");
            }
        }
    }
}

#[test]
fn each_fault_ends_in_the_right_bytes_or_the_right_error() {
    let versions = [table(1), table(2)];
    for (fault, code) in [
        (Fault::Refused, None),
        (Fault::Busy, None),
        (Fault::Short, None),
        (Fault::Trickle, None),
        (Fault::Expired, None),
        (Fault::Elsewhere, None),
        (Fault::Longer, None),
        (Fault::Endless, None),
        (Fault::LongPause, Some("rm-pause")),
        (Fault::Whole, Some("rm-range")),
        (Fault::WrongRange, Some("rm-range")),
        (Fault::WrongTotal, Some("rm-changed")),
        (Fault::NoRange, Some("rm-range")),
        (Fault::WrongLength, Some("rm-range")),
        (Fault::Compressed, Some("rm-encoding")),
        (Fault::Changes, Some("rm-changed")),
        (Fault::Weak, Some("rm-changed")),
        (Fault::Missing, None),
        (Fault::ToPlainHttp, Some("rm-redirect")),
    ] {
        let world = World::new(&versions, 7, 0, &FAULTS);
        let file = world.open().unwrap();
        assert_eq!(world.state.lock().unwrap().requests, 2, "one request, and one for the redirect");
        world.state.lock().unwrap().script = vec![fault];
        let mut out = vec![0; 200_000];
        let read = file.read_exact_at(1 << 30, &mut out);
        match (read, code) {
            (Ok(()), None) => assert!(content(&versions[0], 1 << 30, out.len()) == out, "{fault:?}"),
            (Err(error), Some(code)) => {
                let error = crate::error::remote_error(&error).unwrap();
                assert_eq!(error.code(), code, "{fault:?}");
                assert!(!format!("{error} {error:?}").contains("signature"), "{error:?}");
            }
            (read, code) => panic!("{fault:?}: {read:?} instead of {code:?}"),
        }
        assert_eq!(world.state.lock().unwrap().leaks, 0, "{fault:?}");
    }
}

#[test]
fn faults_that_stay_are_given_up() {
    let versions = [table(1), table(2)];
    for (fault, code) in [
        (Fault::Refused, "rm-gave-up"),
        (Fault::Busy, "rm-gave-up"),
        (Fault::Missing, "rm-not-found"),
        (Fault::Endless, "rm-redirect"),
        (Fault::Whole, "rm-no-ranges"),
        (Fault::Compressed, "rm-encoding"),
    ] {
        let world = World::new(&versions, 3, 100, &[fault]);
        assert_eq!(world.open().unwrap_err().code(), code, "{fault:?}");
        assert!(world.clock.now.load(Ordering::Relaxed) < 200_000_000, "three minutes at most");
    }
    // Bytes arrive, but less than 64 KiB in the time of a try.
    let world = World::new(&versions, 3, 100, &[Fault::Trickle]);
    world.state.lock().unwrap().faulty = 0;
    let file = world.open().unwrap();
    world.state.lock().unwrap().faulty = 100;
    let mut out = vec![0; 300_000];
    assert_eq!(
        crate::error::remote_error(&file.read_exact_at(1 << 30, &mut out).unwrap_err()).map(Error::code),
        Some("rm-gave-up")
    );
}

/// Signs the URL of a store, and counts how often.
#[derive(Debug, Default)]
struct Signatures {
    count: AtomicU64,
    has_token: bool,
}

impl Sign for Signatures {
    fn sign(&self) -> Result<Signed, Error> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let bearer = self.has_token.then(|| format!("Bearer {TOKEN}").into());
        Ok(Signed { url: Url::parse(STORE)?, bearer })
    }

    fn bucket(&self) -> &str {
        "bucket"
    }
}

#[test]
fn urls_of_objects_are_signed_again_when_they_expire() {
    let versions = [table(1), table(2)];
    let world = World::new(&versions, 7, 0, &FAULTS);
    let signatures = Arc::new(Signatures::default());
    let route = Route::signed(Arc::<Signatures>::clone(&signatures)).unwrap();
    assert_eq!(route.origin().full(), "https://store.example/blob");
    let mut headers = HeaderMap::new();
    headers.insert("etag", HeaderValue::from_static("\"first\""));
    let pin = Version::seen(Pin::new(LEN, &headers));
    let mut out = vec![0; 1_000];
    let mut fetch = |script: &[Fault]| {
        world.state.lock().unwrap().script = script.to_vec();
        world.client.fetch(&route, &pin, 1 << 30, &mut out)
    };
    fetch(&[]).unwrap();
    fetch(&[]).unwrap();
    assert_eq!(signatures.count.load(Ordering::Relaxed), 2, "for the route, and for the first request");
    fetch(&[Fault::Expired]).unwrap();
    assert_eq!(signatures.count.load(Ordering::Relaxed), 3);
    let error = fetch(&[Fault::Expired, Fault::Expired]).unwrap_err();
    assert!(error.code() == "rm-denied" && !format!("{error} {error:?} {route:?}").contains("signature="));
    assert_eq!(fetch(&[Fault::Changes]).unwrap_err().code(), "rm-changed");
    assert!(content(&versions[0], 1 << 30, out.len()) == out);
}

#[test]
fn tokens_of_object_stores_stay_with_their_host() {
    let world = World::new(&[table(1), table(2)], 7, 0, &FAULTS);
    let signatures = Signatures { has_token: true, ..Signatures::default() };
    let route = Route::signed(Arc::new(signatures)).unwrap();
    world.state.lock().unwrap().script = vec![Fault::Elsewhere];
    let mut headers = HeaderMap::new();
    headers.insert("etag", HeaderValue::from_static("\"first\""));
    let version = Version::seen(Pin::new(LEN, &headers));
    for _ in 0..2 {
        world.client.fetch(&route, &version, 0, &mut [0; 10]).unwrap();
    }
    // Of three requests, the first goes to the store.
    let state = world.state.lock().unwrap();
    assert_eq!((state.requests, state.leaks), (3, 1));
}

#[test]
fn switched_off_means_no_request() {
    let versions = [table(1), table(2)];
    let mut world = World::new(&versions, 3, 0, &FAULTS);
    let state = Arc::clone(&world.state);
    Arc::get_mut(&mut world.client).unwrap().set_network(Network::Off);
    assert_eq!(world.open().unwrap_err().code(), "rm-offline");
    assert_eq!(state.lock().unwrap().requests, 0);
}
