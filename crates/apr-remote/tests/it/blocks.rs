//! Files whose blocks are kept on disk.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::fs;
use std::path::PathBuf;

use apr_remote::{BlockCache, Client, Counts, Network, Place, RemoteFile};
use read_at::ReadAt as _;

use crate::server::{Reply, Seen, Server};
use crate::{Arc, content, options, read};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// A folder for blocks that is removed in the end.
struct Kept(PathBuf);

impl Kept {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("apr-remote-blocks-{}-{id}", std::process::id())))
    }

    fn cache(&self) -> BlockCache {
        BlockCache::new(self.0.clone(), 1 << 30)
    }

    /// As a process of its own.
    fn client(&self, hub: Option<&Server>, network: Network) -> Arc<Client> {
        let mut options = options(hub);
        (options.network, options.hub_cache, options.block_cache) = (network, None, Some(self.cache()));
        Client::new(options).unwrap()
    }

    fn open(&self, hub: Option<&Server>, url: &str) -> (Arc<Client>, RemoteFile) {
        let client = self.client(hub, Network::On);
        let file = client.open_model(&Place::parse(url).unwrap().unwrap()).unwrap();
        (client, file)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn counted(client: &Client) -> (u64, u64, u64) {
    let Counts { requests, bytes, blocks_discarded, .. } = client.counts();
    (requests, bytes, blocks_discarded)
}

/// Answers as servers do: 304 for the tag that is known.
fn conditional(seen: &Seen, bytes: &[u8], tag: &str) -> Reply {
    match seen.header("if-none-match") == Some(tag) {
        true => Reply { head: format!("HTTP/1.1 304 Not Modified\r\netag: {tag}\r\n"), ..Reply::default() },
        false => Reply::range(seen, bytes, &format!("etag: {tag}\r\n")),
    }
}

#[test]
fn a_url_that_did_not_change_costs_one_request_and_no_bytes() {
    let (bytes, kept) = (content(3_000_000), Kept::new());
    let served = bytes.clone();
    let version = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&version);
    let server = Server::new(move |_, seen| match now.load(Ordering::Relaxed) {
        1 => conditional(seen, &served, "\"v1\""),
        _ => conditional(seen, &served[1..], "\"v2\""),
    });
    let url = |signature| server.url(&format!("/m.safetensors?X-Amz-Signature={signature}"));
    let (client, file) = kept.open(None, &url("first"));
    assert_eq!(read(&file, 1_000_000, 500).unwrap(), bytes[1_000_000..1_000_500]);
    assert_eq!(counted(&client), (2, 65_536 * 2, 0));
    // The connection is used again after a 304.
    for signature in ["second", "third"] {
        let (client, file) = kept.open(None, &url(signature));
        assert_eq!((file.total_len(), file.version(), file.has_blocks()), (3_000_000, Some("\"v1\""), true));
        assert_eq!(read(&file, 1_000_000, 500).unwrap(), bytes[1_000_000..1_000_500]);
        assert_eq!(read(&file, 0, 65_536).unwrap(), bytes[..65_536]);
        assert_eq!(counted(&client), (1, 0, 0));
        assert_eq!(read(&file, 2_000_000, 500).unwrap(), bytes[2_000_000..2_000_500]);
        assert_eq!(counted(&client).1, if signature == "second" { 65_536 } else { 0 });
    }
    let last = server.seen().pop().unwrap();
    assert_eq!((last.header("if-none-match"), last.header("range")), (Some("\"v1\""), Some("bytes=0-65535")));
    version.store(2, Ordering::Relaxed);
    let (client, file) = kept.open(None, &url("fourth"));
    assert_eq!(read(&file, 1_000_000, 500).unwrap(), bytes[1_000_001..1_000_501]);
    assert_eq!(counted(&client), (2, 65_536 * 2, 0));
    let shown: Vec<_> = kept.cache().list().unwrap().into_iter().map(|object| object.url.unwrap()).collect();
    assert_eq!(shown, [server.url("/m.safetensors")], "without the signature");
    assert!(kept.cache().clear(Duration::ZERO).unwrap().blocks > 2);
    assert_eq!(counted(&kept.open(None, &url("fifth")).0), (1, 65_536, 0));
}

/// A hub with a large file and a small one at two commits, and its store.
fn hub(large: &[u8], store: &Server) -> Server {
    let (len, location) = (large.len(), store.url("/blob"));
    Server::new(move |number, seen| {
        let commit = if seen.path.contains(OTHER) || seen.path.contains("later") { OTHER } else { COMMIT };
        let commit = format!("x-repo-commit: {commit}\r\n");
        match seen.path.rsplit('/').next() {
            Some("m.safetensors") => Reply::status(
                "302 Found",
                &format!(
                    "{commit}location: {location}?signature={number}\r\nx-linked-etag: \"{}\"\r\nx-linked-size: {len}\r\n",
                    "ab".repeat(32)
                ),
            ),
            Some("config.json") => Reply::range(seen, b"{\"a\": 1}", &format!("{commit}etag: \"blob\"\r\n")),
            _ => Reply::status("404 Not Found", ""),
        }
    })
}

#[test]
fn a_commit_of_the_hub_needs_no_request_and_a_branch_one() {
    let (bytes, kept) = (content(1_000_000), Kept::new());
    let served = bytes.clone();
    let tag = Arc::new(AtomicUsize::new(1));
    let now = Arc::clone(&tag);
    let store = Server::new(move |_, seen| {
        conditional(seen, &served, &format!("\"of-store-{}\"", now.load(Ordering::Relaxed)))
    });
    let hub = hub(&bytes, &store);
    let at = |revision: &str, name: &str| format!("hf://o/n@{revision}/{name}");
    let (client, file) = kept.open(Some(&hub), "hf://o/n/m.safetensors");
    assert_eq!(read(&file, 500_000, 9).unwrap(), bytes[500_000..500_009]);
    assert_eq!(counted(&client), (3, 65_536 * 2, 0));
    kept.open(Some(&hub), "hf://o/n/config.json");

    for (url, requests) in [
        (at("main", "m.safetensors"), 1),
        (at(COMMIT, "m.safetensors"), 0),
        (at(COMMIT, "config.json"), 0),
        (at("main", "config.json"), 1),
        // Another commit has the same file, as its SHA-256 says.
        (at("later", "m.safetensors"), 1),
        (at(OTHER, "m.safetensors"), 0),
    ] {
        let (client, file) = kept.open(Some(&hub), &url);
        let commit = if url.contains("later") || url.contains(OTHER) { OTHER } else { COMMIT };
        assert_eq!(file.commit(), Some(commit), "{url}");
        if url.ends_with("json") {
            assert_eq!(read(&file, 0, 8).unwrap(), b"{\"a\": 1}");
        } else {
            assert_eq!(file.sha256_declared(), Some("ab".repeat(32).as_str()));
            assert_eq!(read(&file, 500_000, 9).unwrap(), bytes[500_000..500_009]);
        }
        assert_eq!(counted(&client), (requests, 0, 0), "{url}");
    }
    assert_eq!(store.seen().len(), 2);

    // Without the network: what is there of a commit, and no more.
    let client = kept.client(Some(&hub), Network::Off);
    let open = |url: &str| client.open(&Place::parse(url).unwrap().unwrap());
    let file = open(&at(COMMIT, "m.safetensors")).unwrap();
    assert_eq!(read(&file, 500_000, 9).unwrap(), bytes[500_000..500_009]);
    assert_eq!(read(&file, 800_000, 9).unwrap_err(), "rm-offline");
    assert_eq!(open(&at("main", "m.safetensors")).unwrap_err().code(), "rm-offline");
    assert_eq!(open(&hub.url("/o/n/resolve/main/config.json")).unwrap_err().code(), "rm-offline");

    // The store has moved: its tag of the same bytes is another one. From then on, that is the version.
    tag.store(2, Ordering::Relaxed);
    let (client, file) = kept.open(Some(&hub), &at(COMMIT, "m.safetensors"));
    assert_eq!(read(&file, 800_000, 9).unwrap(), bytes[800_000..800_009]);
    assert_eq!(counted(&client), (2, 65_536, 0));
    tag.store(3, Ordering::Relaxed);
    assert_eq!(read(&file, 300_000, 9).unwrap_err(), "rm-changed");
}

#[test]
fn a_commit_that_was_not_kept_with_a_token_is_asked_for() {
    let kept = Kept::new();
    let server = Server::new(|_, seen| match seen.header("authorization") {
        Some(_) => conditional(seen, &content(100), "\"v1\""),
        None => Reply::status("401 Unauthorized", ""),
    });
    // By a URL, the server decides each time.
    let url = server.url("/o/n/resolve/main/m");
    let (client, _) = kept.open(Some(&server), &url);
    assert_eq!(counted(&client), (1, 100, 0));
    let error = kept.client(None, Network::On).open(&Place::parse(&url).unwrap().unwrap()).unwrap_err();
    assert_eq!(error.code(), "rm-denied");
    assert_eq!(counted(&kept.open(Some(&server), &url).0), (1, 0, 0));
}

#[test]
fn servers_without_ranges_or_tags_are_read_as_without_the_cache() {
    for headers in ["", "etag: W/\"v1\"\r\n", "last-modified: Sat, 28 Nov 2026 00:00:00 GMT\r\n"] {
        let (bytes, kept) = (content(200_000), Kept::new());
        let server = Server::new(move |_, seen| Reply::range(seen, &bytes, headers));
        for _ in 0..2 {
            let (client, file) = kept.open(None, &server.url("/m"));
            read(&file, 100_000, 9).unwrap();
            assert_eq!(counted(&client), (2, 65_536 + 100_000, 0), "{headers}");
        }
        assert_eq!(kept.cache().list().unwrap(), []);
    }
    let (bytes, kept) = (content(200_000), Kept::new());
    let server = Server::new(move |_, _| Reply::whole(&bytes, "etag: \"v1\"\r\n"));
    for _ in 0..2 {
        let (client, file) = kept.open(None, &server.url("/m"));
        read(&file, 150_000, 9).unwrap();
        assert_eq!((counted(&client), file.has_blocks()), ((1, 200_000, 0), false));
    }
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let kept = Kept::new();
    fs::write(&kept.0, "").unwrap();
    let mut options = options(None);
    options.block_cache = Some(kept.cache());
    assert_eq!(Client::new(options).unwrap_err().code(), "rm-block-cache");
    fs::remove_file(&kept.0).unwrap();
}
