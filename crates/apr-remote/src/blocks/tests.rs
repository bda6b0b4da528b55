//! Damage, limits, several writers, and what the disk refuses.

#![allow(clippy::unwrap_used, reason = "tests")]

use core::time::Duration;
use std::fs::{self, File};
use std::thread;
use std::time::SystemTime;

use super::*;
use crate::declared::Declared;
use crate::pin::Pin;
use crate::url::Url;

/// A folder that is removed in the end.
pub(crate) struct TestFolder(PathBuf);

impl TestFolder {
    pub(crate) fn new() -> Self {
        use core::sync::atomic::AtomicU32;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("apr-blocks-{}-{id}", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn cache(&self, limit: u64) -> BlockCache {
        BlockCache::new(self.0.clone(), limit)
    }

    fn store(&self, limit: u64) -> Arc<Store> {
        Arc::new(Store::open(&self.cache(limit), Arc::default()).unwrap())
    }

    /// The files of all objects, sorted.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let list = |path: &Path| -> Vec<PathBuf> {
            fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
        };
        let mut files: Vec<_> = list(&self.0).iter().flat_map(|object| list(object)).collect();
        files.sort();
        files
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn known(etag: &str, len: u64) -> Known {
    let pin = Pin { len, etag: Some(format!("\"{etag}\"")), modified: None };
    Known { pin, declared: Declared::default() }
}

fn key(name: &str) -> Key {
    Key::of_url(&Url::parse(&format!("https://h.example/{name}")).unwrap())
}

fn blocks_of(store: &Arc<Store>, name: &str, etag: &str) -> Blocks {
    Blocks::open(store, &key(name), &known(etag, 1 << 40)).unwrap()
}

fn content(from: u64, len: usize) -> Vec<u8> {
    (from..from + len as u64).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// What is missing of a range; bytes that are there are right.
fn missing(blocks: &Blocks, from: u64, len: usize) -> core::ops::Range<usize> {
    let mut out = vec![0; len];
    let missing = blocks.copy(from, &mut out);
    let expected = content(from, len);
    assert!(
        out[..missing.start] == expected[..missing.start] && out[missing.end..] == expected[missing.end..]
    );
    if missing.is_empty() { 0..0 } else { missing }
}

fn counts(store: &Store) -> (u64, u64, u64) {
    let counts = store.counters.counts();
    (counts.blocks_read, counts.blocks_written, counts.blocks_discarded)
}

fn age(path: &Path, seconds: u64) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn what_was_kept_is_there_for_the_next_process() {
    let folder = TestFolder::new();
    let store = folder.store(1 << 30);
    let first = blocks_of(&store, "a", "1");
    assert_eq!(missing(&first, 0, 100), 0..100);
    first.keep(1_000_000, &content(1_000_000, 3_000_000));
    assert_eq!(missing(&first, 1_000_000, 3_000_000), 0..0);
    assert_eq!(counts(&store).1, 4, "cut at multiples of 1 MiB");
    let store = folder.store(1 << 30);
    let second = blocks_of(&store, "a", "1");
    assert_eq!(missing(&second, 999_900, 3_000_100), 0..100);
    assert_eq!(missing(&second, 1_000_100, 10), 0..0);
    assert_eq!(missing(&second, 3_999_990, 20), 10..20);
    // Between two blocks, one range is missing.
    second.keep(9_000_000, &content(9_000_000, 100));
    assert_eq!(missing(&second, 3_999_000, 5_001_100), 1_000..5_001_000);
    // Other versions, lengths and objects have none of it.
    let other_len = Blocks::open(&store, &key("a"), &known("1", 1 << 39)).unwrap();
    for other in [blocks_of(&store, "a", "2"), blocks_of(&store, "b", "1"), other_len] {
        assert_eq!(missing(&other, 1_000_000, 10), 0..10);
    }
    assert_eq!((counts(&store).2, store.problem().is_none()), (0, true));
}

#[test]
fn longer_blocks_take_the_place_of_those_in_them() {
    let folder = TestFolder::new();
    let store = folder.store(1 << 30);
    let blocks = blocks_of(&store, "a", "1");
    for (from, len) in [(100, 50), (300, 50), (100, 60), (320, 100)] {
        blocks.keep(from, &content(from, len));
    }
    assert_eq!(folder.files().len(), 3);
    blocks.keep(0, &content(0, 400));
    assert_eq!(folder.files().len(), 2);
    assert_eq!(missing(&blocks, 0, 420), 0..0);
    blocks.keep(10, &content(10, 100));
    assert_eq!(folder.files().len(), 2, "it is there");
}

#[test]
fn damaged_and_foreign_blocks_are_discarded_and_never_read() {
    let folder = TestFolder::new();
    type Damage = fn(&Path, &Path);
    let cases: [(&str, Damage); 9] = [
        ("truncated", |path, _| File::options().write(true).open(path).unwrap().set_len(1_000).unwrap()),
        ("empty", |path, _| fs::write(path, "").unwrap()),
        ("longer", |path, _| fs::write(path, [fs::read(path).unwrap(), vec![0]].concat()).unwrap()),
        ("a bit of the data", |path, _| flip(path, 500)),
        ("a bit of the header", |path, _| flip(path, 9)),
        ("a bit of the hash", |path, _| flip(path, 30)),
        ("another block of the object", |path, other| _ = fs::copy(other, path).unwrap()),
        ("zeros", |path, _| fs::write(path, vec![0; fs::metadata(path).unwrap().len() as usize]).unwrap()),
        ("a folder", |path, _| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
    ];
    for (what, damage) in cases {
        let store = folder.store(1 << 30);
        let first = blocks_of(&store, "a", "1");
        first.keep(0, &content(0, 2_000));
        first.keep(5_000, &content(5_000, 2_000));
        let files = folder.files();
        damage(&files[0], &files[1]);
        assert_eq!(missing(&blocks_of(&store, "a", "1"), 0, 2_000), 0..2_000, "{what}");
        assert_eq!(counts(&store).2, 1, "{what}");
        assert!(!files[0].exists(), "{what}");
        assert_eq!(missing(&first, 0, 100), 0..100, "{what}: the one that wrote it does not have it either");
        first.keep(0, &content(0, 2_000));
        assert_eq!(missing(&first, 0, 2_000), 0..0, "{what}");
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn blocks_of_other_objects_and_versions_are_foreign_under_this_name() {
    let folder = TestFolder::new();
    let store = folder.store(1 << 30);
    let own = blocks_of(&store, "a", "1");
    own.keep(0, &content(0, 2_000));
    let path = folder.files().remove(0);
    let name = path.file_name().unwrap().to_owned();
    for (object, etag) in [("b", "1"), ("a", "2")] {
        blocks_of(&store, object, etag).keep(0, &content(7, 2_000));
        let other = folder.files().into_iter().find(|other| *other != path).unwrap();
        fs::rename(other, &path).unwrap();
        let before = counts(&store).2;
        assert_eq!(missing(&blocks_of(&store, "a", "1"), 0, 2_000), 0..2_000);
        assert_eq!(counts(&store).2, before + 1);
        own.keep(0, &content(0, 2_000));
    }
    assert!(path.ends_with(name));
}

#[test]
fn records_of_other_objects_or_damaged_are_discarded() {
    let folder = TestFolder::new();
    let store = folder.store(1 << 30);
    let all = Known {
        pin: Pin { len: 7, etag: Some("\"e tag\"".to_owned()), modified: None },
        declared: Declared { commit: Some("0".repeat(40)), sha256: Some("ab".repeat(32)), size: None },
    };
    all.write(&store, &key("a"));
    assert_eq!(Known::read(&store, &key("a")), Some(all.clone()));
    assert_eq!(Known::read(&store, &key("b")), None);
    let path = folder.files().remove(0);
    for at in 0..fs::metadata(&path).unwrap().len() as usize - 1 {
        flip(&path, at);
        assert_eq!(Known::read(&store, &key("a")), None, "byte {at}");
        assert_eq!((folder.files().len(), counts(&store).2), (0, at as u64 + 1));
        all.write(&store, &key("a"));
    }
    all.write(&store, &key("b"));
    let other = folder.files().into_iter().find(|other| *other != path).unwrap();
    fs::copy(&path, other).unwrap();
    assert_eq!(Known::read(&store, &key("b")), None);
}

#[test]
fn what_was_not_used_for_longest_goes_first_and_the_limit_holds() {
    let folder = TestFolder::new();
    let limit = 40 * 4096;
    let store = folder.store(limit);
    let blocks = blocks_of(&store, "a", "1");
    for number in 0..30_u64 {
        blocks.keep(number << 20, &content(number << 20, 4_000));
    }
    let files = folder.files();
    for (number, file) in (0..).zip(&files) {
        // The tenth is the oldest.
        age(file, 10_000 + (number + 20) % 30);
    }
    assert_eq!(files.len(), 30);
    let name_of = |number: u64| files[number as usize].clone();
    // Reading makes it young.
    assert_eq!(missing(&blocks, 12 << 20, 4_000), 0..0);
    let next = folder.store(limit);
    let other = blocks_of(&next, "b", "1");
    for number in 0..11_u64 {
        other.keep(number << 20, &content(number << 20, 4_000));
    }
    // 41 would be too many: 36 are left, and the one that is written.
    assert!(
        !name_of(9).exists() && !name_of(8).exists() && name_of(12).exists(),
        "{:?}",
        folder.files().len()
    );
    assert!(name_of(10).exists() && name_of(0).exists());
    for number in 0..400_u64 {
        other.keep(number << 20, &content(number << 20, 4_000));
        let bytes: u64 =
            folder.files().iter().map(|file| usage::on_disk(fs::metadata(file).unwrap().len())).sum();
        assert!(bytes <= limit, "{bytes} after {number}");
    }
    // Of the blocks that were removed nothing is said to be there.
    assert_eq!(missing(&blocks, 0, 4_000), 0..4_000);
    assert_eq!(counts(&next).2, 0);
    // A file that would fill half of it is not kept.
    let small = folder.store(1 << 20);
    blocks_of(&small, "c", "1").keep(0, &content(0, 1 << 20));
    assert_eq!(counts(&small), (0, 0, 0));
}

#[test]
fn threads_and_processes_that_race_read_right_bytes_or_none() {
    let folder = TestFolder::new();
    thread::scope(|scope| {
        for seed in 0..4_u64 {
            let folder = &folder;
            scope.spawn(move || {
                // As a process of its own, with so little space that they remove each other's.
                let store = folder.store(600 << 10);
                let mut random = seed;
                for _ in 0..300 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let at = (random >> 33) % 200 * 10_007;
                    let blocks = blocks_of(&store, if random >> 63 == 0 { "a" } else { "b" }, "1");
                    let gap = missing(&blocks, at, 30_000);
                    blocks.keep(at + gap.start as u64, &content(at + gap.start as u64, gap.len()));
                    if random % 97 == 0 {
                        folder.cache(1).clear(Duration::ZERO).unwrap();
                    }
                }
                assert!(store.problem().is_none(), "{:?}", store.problem());
                assert_eq!(counts(&store).2, 0);
            });
        }
    });
    assert!(folder.files().iter().all(|file| !file.to_string_lossy().contains("tmp-")));
}

#[test]
fn objects_are_listed_and_removed_and_other_files_stay() {
    let folder = TestFolder::new();
    let cache = folder.cache(1 << 30);
    assert_eq!(cache.list().unwrap(), []);
    assert_eq!(cache.clear(Duration::ZERO).unwrap(), Removed::default());
    let store = folder.store(1 << 30);
    for name in ["a", "b"] {
        known("1", 1 << 40).write(&store, &key(name));
        blocks_of(&store, name, "1").keep(0, &content(0, 5_000));
    }
    let own = folder.path().join("of-the-user");
    fs::write(&own, "x").unwrap();
    let in_object = folder.files()[0].with_file_name("of-the-user");
    fs::write(&in_object, "x").unwrap();
    for file in folder.files().iter().filter(|file| file.starts_with(folder.path().join(key("a").name()))) {
        age(file, 90_000);
    }
    let listed = cache.list().unwrap();
    let shown: Vec<_> =
        listed.iter().map(|object| (object.url.as_deref(), object.blocks, object.bytes)).collect();
    let expected = |name| (Some(name), 1, 3 * 4096);
    assert_eq!(shown, [expected("https://h.example/a"), expected("https://h.example/b")]);
    assert_eq!(
        cache.clear(Duration::from_secs(86_400)).unwrap(),
        Removed { blocks: 1, bytes: 3 * 4096, remaining: 0 }
    );
    assert_eq!(cache.list().unwrap().len(), 1);
    assert_eq!(cache.clear(Duration::ZERO).unwrap(), Removed { blocks: 1, bytes: 3 * 4096, remaining: 0 });
    assert_eq!((cache.list().unwrap(), own.exists(), in_object.exists()), (vec![], true, true));
}

#[test]
fn temporary_files_of_the_dead_are_removed() {
    let folder = TestFolder::new();
    blocks_of(&folder.store(1 << 30), "a", "1").keep(0, &content(0, 100));
    let object = folder.files()[0].parent().unwrap().to_owned();
    let (old, new) = (object.join("tmp-1-1"), object.join("tmp-1-2"));
    fs::write(&old, "half").unwrap();
    fs::write(&new, "half").unwrap();
    age(&old, 7_200);
    usage::shrink(folder.path(), 1 << 30, 1 << 30).unwrap();
    assert!(!old.exists() && new.exists());
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_discarded_and_folders_of_others_refused() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let folder = TestFolder::new();
    let store = folder.store(1 << 30);
    let first = blocks_of(&store, "a", "1");
    first.keep(0, &content(0, 2_000));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = folder.files().remove(0);
    assert_eq!((mode(folder.path()), mode(path.parent().unwrap()), mode(&path)), (0o700, 0o700, 0o600));
    // To the very block, even.
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    symlink(&elsewhere, &path).unwrap();
    assert_eq!(missing(&first, 0, 2_000), 0..2_000);
    assert_eq!((counts(&store).2, elsewhere.exists()), (1, true));
    assert!(fs::symlink_metadata(&path).is_err());
    // The folder of an object is a link.
    let object = path.parent().unwrap();
    let moved = folder.path().join("moved");
    fs::rename(object, &moved).unwrap();
    symlink(&moved, object).unwrap();
    let linked = blocks_of(&store, "a", "1");
    linked.keep(0, &content(0, 2_000));
    assert_eq!(missing(&linked, 0, 2_000), 0..2_000);
    assert!(store.problem().is_some() && fs::read_dir(&moved).unwrap().next().is_none());
    assert_eq!(folder.cache(1).list().unwrap(), []);

    let refused = |path: &Path| {
        let cache = BlockCache::new(path.to_owned(), 1 << 30);
        let error = Store::open(&cache, Arc::default()).unwrap_err();
        assert_eq!((cache.list().unwrap_err().code(), error.code()), ("rm-block-cache", "rm-block-cache"));
    };
    let link = TestFolder::new();
    symlink(folder.path(), link.path()).unwrap();
    refused(link.path());
    fs::remove_file(link.path()).unwrap();
    fs::write(link.path(), "").unwrap();
    refused(link.path());
    fs::remove_file(link.path()).unwrap();
    for mode in [0o720, 0o702, 0o777] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        refused(folder.path());
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder.store(1 << 30);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(folder.path(), Some(12_345), None).unwrap();
        refused(folder.path());
    }
}

#[test]
fn a_folder_that_cannot_be_written_ends_nothing() {
    let folder = TestFolder::new();
    fs::create_dir(folder.path()).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let store = Arc::new(Store::open(&BlockCache::new(file.join("below"), 1 << 30), Arc::default()).unwrap());
    assert!(store.problem().is_some());
    let blocks = blocks_of(&store, "a", "1");
    blocks.keep(0, &content(0, 100));
    assert_eq!((missing(&blocks, 0, 100), counts(&store)), (0..100, (0, 0, 0)));
}

#[test]
fn the_environment_names_folder_and_size() {
    let of = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        let variable =
            move |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.into());
        BlockCache::if_asked_for(variable)
    };
    let home = ("HOME", "/u");
    let cache = |path: &str, limit| Some(BlockCache::new(path.into(), limit));
    for off in [&[home][..], &[home, ("APR_BLOCK_CACHE", "")], &[home, ("APR_BLOCK_CACHE", "0")]] {
        assert_eq!(of(off).unwrap(), None);
    }
    let on = ("APR_BLOCK_CACHE", "1");
    assert_eq!(of(&[home, ("APR_BLOCK_CACHE", "OFF")]).unwrap(), None);
    assert_eq!(of(&[home, ("APR_BLOCK_CACHE", "yes")]).unwrap(), of(&[home, on]).unwrap());
    assert_eq!(of(&[home, ("APR_BLOCK_CACHE", "folder")]).unwrap_err().code(), "rm-block-cache");
    assert_eq!(of(&[home, on]).unwrap(), cache("/u/.cache/apr/blocks", 10 << 30));
    assert_eq!(of(&[("XDG_CACHE_HOME", "/x"), on]).unwrap(), cache("/x/apr/blocks", 10 << 30));
    let size = |text| ("APR_BLOCK_CACHE_SIZE", text);
    assert_eq!(of(&[("APR_BLOCK_CACHE", "/c"), size("5 MiB")]).unwrap(), cache("/c", 5 << 20));
    assert_eq!(of(&[("APR_BLOCK_CACHE", "/c"), size("5000")]).unwrap(), cache("/c", 5_000));
    for wrong in [&[on][..], &[home, on, size("0")], &[home, on, size("5GB")], &[home, on, size("MiB")]] {
        assert_eq!(of(wrong).unwrap_err().code(), "rm-block-cache");
    }
}
