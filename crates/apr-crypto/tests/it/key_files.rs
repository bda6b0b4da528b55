//! Key files on a real file system.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use apr_crypto::{
    Argon2Cost, Argon2Limits, ErrorKind, OsRandom, Password, PublicKey, SecretKey, SigningKey, StoredKey,
    TrustedKeys,
};

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("apr-crypto-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key() -> SecretKey {
    SigningKey::from_seed(&[7; 32]).into()
}

fn open(path: &Path) -> Result<StoredKey, apr_crypto::Error> {
    StoredKey::open_file(path, &Argon2Limits::default())
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn secret_files_are_for_their_owner() {
    let folder = Folder::new("owner");
    let path = folder.path("a.key");
    key().create_file(&path, "for tests").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# for tests\napr-sign-1") && text.lines().count() == 2);
    let StoredKey::Open(found) = open(&path).unwrap() else { panic!() };
    assert_eq!(found.public(), key().public());

    for mode in [0o644, 0o640, 0o604, 0o620, 0o601, 0o777] {
        chmod(&path, mode);
        let error = open(&path).unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Exposed { mode }, "{mode:o}");
        assert_eq!(error.path(), Some(&*path));
    }
    chmod(&path, 0o400);
    open(&path).unwrap();
    // A public key's file may be readable by anyone.
    let public = folder.path("a.pub");
    key().public().create_file(&public, "").unwrap();
    assert_eq!(PublicKey::open_file(&public).unwrap(), key().public());
}

#[test]
fn files_are_never_replaced() {
    let folder = Folder::new("replace");
    let path = folder.path("a.key");
    fs::write(&path, "precious").unwrap();
    let (limits, rng) = (Argon2Limits::default().with_memory_kib(8..=8), &mut OsRandom);
    let cost = Argon2Cost::new(8, 1, 1, &limits).unwrap();
    let locked = key().lock(rng, &Password::from("x"), &cost).unwrap();
    // A link to nowhere counts as a file: nothing is created where it points.
    let link = folder.path("link");
    symlink(folder.path("elsewhere"), &link).unwrap();
    for path in [&path, &link] {
        assert_eq!(key().create_file(path, "").unwrap_err().kind(), &ErrorKind::FileExists);
        assert_eq!(locked.create_file(path, "").unwrap_err().kind(), &ErrorKind::FileExists);
        assert_eq!(key().public().create_file(path, "").unwrap_err().kind(), &ErrorKind::FileExists);
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
    assert!(!folder.path("elsewhere").exists());
    let missing = folder.path("no/such/folder");
    assert_eq!(key().create_file(&missing, "").unwrap_err().kind(), &ErrorKind::File { operation: "create" });
    assert_eq!(key().create_file(&folder.path("b"), "a\nb").unwrap_err().code(), "cy-comment");
    assert!(!folder.path("b").exists());
    locked.create_file(&folder.path("locked"), "").unwrap();
    let stored = StoredKey::open_file(&folder.path("locked"), &limits).unwrap();
    let unlocked = stored.unlock_with(|| Ok::<_, apr_crypto::Error>(Password::from("x"))).unwrap();
    assert_eq!(unlocked.public(), key().public());
    // The default limits do not accept a password that costs nothing.
    let error = open(&folder.path("locked")).unwrap_err();
    assert_eq!((error.code(), error.line()), ("cy-cost", Some(1)));
}

#[test]
fn odd_files_are_errors_not_hangs() {
    let folder = Folder::new("odd");
    let pipe = folder.path("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [&pipe, &folder.0, Path::new("/dev/zero")] {
        assert_eq!(open(path).unwrap_err().kind(), &ErrorKind::NotRegular, "{path:?}");
        assert_eq!(PublicKey::open_file(path).unwrap_err().kind(), &ErrorKind::NotRegular);
        assert_eq!(TrustedKeys::open_file(path).unwrap_err().kind(), &ErrorKind::NotRegular);
    }
    assert_eq!(open(&folder.path("none")).unwrap_err().kind(), &ErrorKind::File { operation: "read" });

    let path = folder.path("a.key");
    let code = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        chmod(&path, 0o600);
        open(&path).unwrap_err().code()
    };
    assert_eq!(code(b""), "cy-no-key");
    assert_eq!(code(b"\xff\xfe"), "cy-text");
    assert_eq!(code(&vec![b'#'; 70_000]), "cy-too-long");
    assert_eq!(code(key().public().to_string().as_bytes()), "cy-key-kind");
    // A link to a secret file is followed; the file's own permissions count.
    fs::write(&path, key().to_text().as_str()).unwrap();
    let link = folder.path("link");
    symlink(&path, &link).unwrap();
    open(&link).unwrap();
    chmod(&path, 0o644);
    assert_eq!(open(&link).unwrap_err().code(), "cy-exposed");
}

#[test]
fn trusted_keys_are_read_unless_others_may_change_them() {
    let folder = Folder::new("trusted");
    let path = folder.path("trusted");
    let mut list = TrustedKeys::new();
    list.add("alice", SigningKey::from_seed(&[1; 32]).verifying_key()).unwrap();
    fs::write(&path, list.to_string()).unwrap();
    for mode in [0o600, 0o644, 0o444] {
        chmod(&path, mode);
        assert_eq!(TrustedKeys::open_file(&path).unwrap(), list);
    }
    for mode in [0o666, 0o664, 0o602] {
        chmod(&path, mode);
        assert_eq!(TrustedKeys::open_file(&path).unwrap_err().kind(), &ErrorKind::Exposed { mode });
    }
    chmod(&path, 0o600);
    fs::write(&path, "alice\n").unwrap();
    let error = TrustedKeys::open_file(&path).unwrap_err();
    assert_eq!((error.line(), error.path()), (Some(1), Some(&*path)));
}

#[cfg(feature = "p256")]
#[test]
fn p256_keys_are_pem_files() {
    use apr_crypto::p256;
    let folder = Folder::new("p256");
    let (path, public) = (folder.path("a.pem"), folder.path("a.pub"));
    let key = p256::SigningKey::generate(&mut OsRandom).unwrap();
    key.create_file(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(key.create_file(&path).unwrap_err().kind(), &ErrorKind::FileExists);
    assert_eq!(p256::SigningKey::open_file(&path).unwrap().verifying_key(), key.verifying_key());
    chmod(&path, 0o640);
    assert_eq!(p256::SigningKey::open_file(&path).unwrap_err().kind(), &ErrorKind::Exposed { mode: 0o640 });
    key.verifying_key().create_file(&public).unwrap();
    assert_eq!(p256::VerifyingKey::open_file(&public).unwrap(), key.verifying_key());
    assert_eq!(p256::VerifyingKey::open_file(&folder.0).unwrap_err().kind(), &ErrorKind::NotRegular);
    let error = p256::VerifyingKey::open_file(&path).unwrap_err();
    assert_eq!((error.code(), error.path()), ("cy-text", Some(&*path)));
}
