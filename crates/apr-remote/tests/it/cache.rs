//! Files in the cache of the hub.

use core::sync::atomic::{AtomicU32, Ordering};
use std::fs;
use std::path::PathBuf;

use apr_remote::{CachedFile, Client, Folder, HubCache, HubPath, Network, Place, RemoteFile};
use read_at::ReadAt as _;

use crate::server::{Reply, Server};
use crate::{Arc, content, options, read};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

/// A cache with one repository, as the hub's own programs make it.
struct Made {
    folder: PathBuf,
}

impl Made {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("apr-remote-cache-{}-{id}", std::process::id()));
        let made = Self { folder };
        fs::create_dir_all(made.repository().join("refs")).unwrap();
        fs::create_dir_all(made.repository().join("blobs")).unwrap();
        fs::write(made.repository().join("refs/main"), COMMIT).unwrap();
        made
    }

    fn repository(&self) -> PathBuf {
        self.folder.join("models--o--n")
    }

    /// A file of the commit; of a system without links, a copy.
    fn add(&self, path: &str, blob: &str, bytes: &[u8]) {
        let blob = self.repository().join("blobs").join(blob);
        fs::write(&blob, bytes).unwrap();
        let path = self.repository().join("snapshots").join(COMMIT).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(&blob, &path).unwrap();
        #[cfg(not(unix))]
        fs::copy(&blob, &path).unwrap();
    }

    fn client(&self, hub: &Server, network: Network) -> Arc<Client> {
        let mut options = options(Some(hub));
        (options.network, options.hub_cache) = (network, Some(HubCache::new(self.folder.clone())));
        Client::new(options).unwrap()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn open(client: &Arc<Client>, url: &str) -> Result<RemoteFile, apr_remote::Error> {
    client.open_model(&Place::parse(url).unwrap()?)
}

/// A hub whose `main` is at this commit.
fn hub(commit: &'static str, len: usize) -> Server {
    let sha256 = "cd".repeat(32);
    Server::new(move |_, seen| match seen.path.as_str() {
        path if path.ends_with("model.safetensors") => Reply::range(
            seen,
            &content(len),
            &format!(
                "etag: \"v\"\r\nx-repo-commit: {commit}\r\nx-linked-etag: \"{sha256}\"\r\nx-linked-size: {len}\r\n"
            ),
        ),
        _ => Reply::status("404 Not Found", &format!("x-repo-commit: {commit}\r\n")),
    })
}

#[test]
fn a_commit_needs_no_request_and_a_branch_one() {
    let made = Made::new();
    let blob = "ab".repeat(32);
    made.add("sub/model.safetensors", &blob, &content(300_000));
    let server = hub(COMMIT, 300_000);
    for (url, network, requests, sha256) in [
        (format!("hf://o/n@{COMMIT}/sub/model.safetensors"), Network::On, 0, &blob),
        (format!("hf://o/n@{COMMIT}/sub/model.safetensors"), Network::Off, 0, &blob),
        ("hf://o/n/sub/model.safetensors".to_owned(), Network::Off, 0, &blob),
        ("hf://o/n/sub/model.safetensors".to_owned(), Network::On, 1, &"cd".repeat(32)),
    ] {
        let before = server.seen().len();
        let client = made.client(&server, network);
        let file = open(&client, &url).unwrap();
        assert_eq!(file.total_len(), 300_000);
        assert!(read(&file, 100_000, 200_000).unwrap() == content(300_000)[100_000..], "{url}");
        assert_eq!(server.seen().len() - before, requests, "{url}");
        assert!(file.is_cached() && client.counts().cached == 1, "{url}");
        assert_eq!(file.commit(), Some(COMMIT));
        assert!(file.url().to_string().ends_with(&format!("/{COMMIT}/sub/model.safetensors")));
        if cfg!(unix) {
            assert_eq!(file.sha256_declared(), Some(sha256.as_str()), "{url}");
        }
        // The hub is asked, where that is possible.
        let of_hub = file.sha256_of_hub().unwrap();
        let is_asked = network == Network::On;
        if cfg!(unix) || is_asked {
            assert_eq!(of_hub, Some(if is_asked { "cd".repeat(32) } else { blob.clone() }), "{url}");
        }
        let mut copied = Vec::new();
        file.read_in_order(7..300_000, 8, |bytes| {
            copied.extend_from_slice(bytes);
            Ok::<(), read_at::Error>(())
        })
        .unwrap();
        assert!(copied == content(300_000)[7..]);
    }
}

#[test]
fn a_branch_that_has_moved_is_read_from_the_hub() {
    let made = Made::new();
    made.add("model.safetensors", "b", &[7; 10]);
    let server = hub(OTHER, 300_000);
    let client = made.client(&server, Network::On);
    let file = open(&client, "hf://o/n").unwrap();
    assert_eq!((file.total_len(), file.commit(), client.counts().cached), (300_000, Some(OTHER), 0));
    // Without the network, what it was.
    let file = open(&made.client(&server, Network::Off), "hf://o/n").unwrap();
    assert_eq!((file.total_len(), file.commit()), (10, Some(COMMIT)));
}

#[test]
fn what_is_not_in_the_cache_is_asked_for_or_refused() {
    let made = Made::new();
    made.add("model.safetensors", "part.incomplete", &content(100));
    fs::create_dir_all(made.repository().join("snapshots").join(COMMIT).join("folder")).unwrap();
    let server = hub(COMMIT, 100);
    for url in [
        "hf://o/n",
        "hf://o/n/model.safetensors",
        &format!("hf://o/n@{COMMIT}/model.safetensors"),
        "hf://o/n/folder",
        "hf://o/n@other/model.safetensors",
        "hf://o/missing/model.safetensors",
        "hf://datasets/o/n/model.safetensors",
    ] {
        if cfg!(unix) || !url.ends_with("model.safetensors") {
            let error = open(&made.client(&server, Network::Off), url).unwrap_err();
            assert_eq!(error.code(), "rm-offline", "{url}");
        }
    }
    assert!(server.seen().is_empty());
    let client = made.client(&server, Network::On);
    assert!(!open(&client, "hf://o/n/model.safetensors").unwrap().is_cached() || cfg!(not(unix)));
}

#[test]
fn shards_come_from_the_cache_and_others_from_the_hub() {
    let made = Made::new();
    made.add("sub/model.safetensors.index.json", "i", b"{}");
    made.add("sub/a", "a", b"cached");
    let server = Server::new(|_, seen| Reply::range(seen, b"requested", ""));
    let client = made.client(&server, Network::On);
    let index = open(&client, &format!("hf://o/n@{COMMIT}/sub/model.safetensors.index.json")).unwrap();
    let folder = Folder::of(Arc::clone(&client), &index);
    assert_eq!(read(&folder.file("a").unwrap(), 0, 6).unwrap(), b"cached");
    assert!(server.seen().is_empty());
    assert_eq!(read(&folder.file("b").unwrap(), 0, 9).unwrap(), b"requested");
    assert_eq!(server.seen()[0].path, format!("/o/n/resolve/{COMMIT}/sub/b"));
    for name in ["../a", "/a", "x/../../a", "https://example.org/a"] {
        assert_eq!(folder.file(name).unwrap_err().code(), "rm-outside", "{name}");
    }
}

#[test]
fn another_length_than_the_declared_one_is_refused() {
    let made = Made::new();
    made.add("model.safetensors", "b", &content(99));
    let error = open(&made.client(&hub(COMMIT, 100), Network::On), "hf://o/n/model.safetensors").unwrap_err();
    assert_eq!(error.code(), "rm-cache");
}

#[test]
fn lists_are_those_of_the_cache_without_the_network_alone() {
    let made = Made::new();
    let blob = "ab".repeat(32);
    made.add("config.json", "c", b"{}");
    made.add("a/b/model.safetensors", &blob, &content(100));
    let server = hub(COMMIT, 100);
    let repository = HubPath::parse("o/n").unwrap();
    let (at, files) = made.client(&server, Network::Off).cached_files(&repository).unwrap().unwrap();
    assert_eq!(at.revision(), COMMIT);
    let sha256 = cfg!(unix).then_some(blob);
    assert_eq!(
        files,
        [
            CachedFile { path: "a/b/model.safetensors".to_owned(), len: 100, sha256 },
            CachedFile { path: "config.json".to_owned(), len: 2, sha256: None },
        ]
    );
    assert_eq!(made.client(&server, Network::On).cached_files(&repository).unwrap(), None);
    let missing = HubPath::parse("o/missing").unwrap();
    assert_eq!(made.client(&server, Network::Off).cached_files(&missing).unwrap(), None);
}

#[cfg(unix)]
#[test]
fn links_stay_in_the_folder_of_their_repository() {
    use std::os::unix::fs::symlink;

    let made = Made::new();
    made.add("inside", "b", b"inside");
    let snapshot = made.repository().join("snapshots").join(COMMIT);
    fs::write(made.folder.join("secret"), b"secret").unwrap();
    fs::create_dir_all(made.folder.join("models--o--other/blobs")).unwrap();
    fs::write(made.folder.join("models--o--other/blobs/x"), b"x").unwrap();
    symlink("../../../secret", snapshot.join("outside")).unwrap();
    symlink("/etc/hostname", snapshot.join("absolute")).unwrap();
    symlink("../../../models--o--other/blobs/x", snapshot.join("other")).unwrap();
    symlink("../../..", snapshot.join("up")).unwrap();
    symlink("missing", snapshot.join("dangling")).unwrap();
    symlink("loop", snapshot.join("loop")).unwrap();
    symlink("../../secret", made.repository().join("refs/leads-out")).unwrap();
    fs::write(made.repository().join("refs/wrong"), b"../../../secret").unwrap();
    fs::write(made.repository().join("refs/long"), [b'a'; 1_000]).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(snapshot.join("socket")).unwrap();
    let server = hub(COMMIT, 100);
    let client = made.client(&server, Network::Off);
    for (path, code) in [
        ("n@main/inside", None),
        ("n@main/outside", Some("rm-cache")),
        ("n@main/absolute", Some("rm-cache")),
        ("n@main/other", Some("rm-cache")),
        ("n@main/up/secret", Some("rm-cache")),
        ("n@main/dangling", Some("rm-offline")),
        ("n@main/loop", Some("rm-cache-read")),
        ("n@main/socket", Some("rm-cache")),
        ("n@leads-out/inside", Some("rm-cache")),
        ("n@wrong/inside", Some("rm-cache")),
        ("n@long/inside", Some("rm-cache")),
    ] {
        let opened = open(&client, &format!("hf://o/{path}"));
        assert_eq!(opened.as_ref().err().map(apr_remote::Error::code), code, "{path}");
    }
    drop(socket);
    // A folder of a repository may be a link: that is how people move it to another disk.
    fs::rename(made.repository(), made.folder.join("moved")).unwrap();
    symlink("moved", made.repository()).unwrap();
    assert!(open(&client, "hf://o/n/inside").is_ok());
    assert!(server.seen().is_empty());
}
