//! Servers that send little.

use super::*;

/// Zeros, 65 KiB of each range within 30 seconds.
#[derive(Debug)]
struct Dripping(Arc<Clock>);

impl Transport for Dripping {
    fn send(&self, request: &Request<'_>) -> Result<Answer, Broken> {
        self.0.now.fetch_add(30_000_000, Ordering::Relaxed);
        let range = request.range.clone().unwrap();
        let mut headers = HeaderMap::new();
        let value = format!("bytes {}-{}/{LEN}", range.start, range.end - 1);
        headers.insert("content-range", HeaderValue::from_str(&value).unwrap());
        let len = (range.end - range.start).min(65 << 10);
        Ok(Answer { status: 206, headers, body: Box::new(io::repeat(0).take(len)) })
    }
}

/// Each try brings what counts as progress, but 2 kB/s of it.
#[test]
fn servers_that_drip_do_not_hold_a_reader() {
    for rate in [0, 10_000] {
        let clock = Arc::new(Clock::default());
        let mut options = Options::from_environment(|_| None).unwrap();
        options.tries.rate = rate;
        let transport = Box::new(Dripping(Arc::clone(&clock)));
        let client = Client::with(transport, Box::new(Ticks(Arc::clone(&clock))), options).unwrap();
        let file = client.open(&Place::parse("https://store.example/m").unwrap().unwrap()).unwrap();
        let read = file.read_exact_at(1 << 30, &mut vec![0; 8 << 20]);
        let minutes = Duration::from_micros(clock.now.load(Ordering::Relaxed)).as_secs() / 60;
        let code = read.map_err(|error| crate::error::remote_error(&error).unwrap().code());
        match rate {
            0 => assert!(code.is_ok() && minutes > 50, "{code:?} {minutes}"),
            _ => assert!(code == Err("rm-gave-up") && minutes < 8, "{code:?} {minutes}"),
        }
    }
}
