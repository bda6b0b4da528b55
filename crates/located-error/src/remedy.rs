//! Remedies that the tables of several crates share.

/// A defect of the calling program.
pub const BUG: &str = "this is a defect in the calling program, not in the file: please report it";
/// A corrupted or truncated file.
pub const FETCH: &str = "fetch the file again and compare its SHA-256 with the publisher's";
/// A modified file.
pub const NOT_AS_SIGNED: &str = "do not use the file: get it from its publisher again, and compare the fingerprint of the key with the publisher's";
/// A key that is not known to be the publisher's.
pub const PUBLISHER_KEY: &str =
    "get the publisher's public key over a channel you trust, and compare its fingerprint";
/// A key or password that does not decrypt.
pub const WRONG_KEY: &str = "try the password or key again, then fetch the file again";
/// Memory that cannot be allocated.
pub const MEMORY: &str = "free some memory, or use a machine with more of it";
/// A file that another program writes to.
pub const QUIET: &str = "repeat when nothing else writes to the file";
/// An operation on a file that the operating system refuses.
pub const PATH: &str = "check the path, its permissions and the free space";
/// A name that no tensor has.
pub const TENSOR_NAMES: &str = "`apr tensors FILE` lists the names";
/// Shards that contradict their index.
pub const SHARDS: &str = "fetch the files again; `apr check FOLDER` lists every disagreement, and `apr shard --index FOLDER --force` makes a new index if only the index is wrong";
