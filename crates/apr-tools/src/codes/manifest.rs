//! Codes of signatures beside models.

use located_error::Category::{Invalid, Io, Unsupported, Verification};
use located_error::Entry;

use super::entry;

const AGAIN: &str = "get the signature from whoever signed the model again";
const BY_HAND: &str = "put regular files in its place, or leave it out (`apr sign --ignore NAME`)";

pub(super) const ENTRIES: &[Entry] = &[
    entry("mf-io", Io, "A file or folder could not be read.", "see the reason above"),
    entry(
        "mf-json",
        Verification,
        "A model signature, or the list in it, is not the JSON it should be: it was cut off, changed, or is another kind of file.",
        AGAIN,
    ),
    entry(
        "mf-bundle",
        Verification,
        "The file is JSON and no model signature: a part is missing, there twice, or of another kind.",
        AGAIN,
    ),
    entry(
        "mf-unsupported",
        Unsupported,
        "The model signature is of a kind that is not checked here: with a certificate or from Sigstore's service, of an older version, \
         or with another hash.",
        "check it with the program that made it, or ask for one with a P-256 key",
    ),
    entry(
        "mf-statement",
        Verification,
        "The signature is right and what was signed contradicts itself: it is no list of files, an entry is there twice or out of order, or \
         shards do not cover their file. Such a list vouches for less than it seems to.",
        "ask whoever signed the model for another signature",
    ),
    entry(
        "mf-name",
        Verification,
        "A name is not a plain relative path: it is absolute, or has a part that is empty, `.` or `..`.",
        "name files below the folder, with `/` between folders",
    ),
    entry(
        "mf-root",
        Verification,
        "The digest over the whole list is not that of its entries.",
        "ask whoever signed the model for another signature",
    ),
    entry(
        "mf-key",
        Verification,
        "The model signature names another key than the one it was to be checked with.",
        "get the public key of whoever signed the model, on a way you trust",
    ),
    entry(
        "mf-limit",
        Invalid,
        "There is more than a signature may speak of: 1,000,000 files or entries, 64 MiB of list.",
        "sign fewer files, or in larger shards (`apr sign --shard-size`)",
    ),
    entry(
        "mf-differs",
        Verification,
        "The files are not the signed ones: some were changed, are missing, or are there and not on the list. An added file can do harm as \
         much as a changed one.",
        "fetch the model again; take away files that do not belong to it",
    ),
    entry(
        "mf-symlink",
        Verification,
        "There is a symbolic link in the folder. What it points to can change without the folder, so no signature of the folder covers it.",
        BY_HAND,
    ),
    entry(
        "mf-not-regular",
        Verification,
        "There is something in the folder that is neither a file nor a folder: a pipe, a socket or a device.",
        BY_HAND,
    ),
    entry("mf-not-utf8", Invalid, "A file's name is not UTF-8, so no list can hold it.", "rename the file"),
    entry(
        "mf-empty",
        Invalid,
        "The folder holds no file that could be signed.",
        "look whether it is the right folder",
    ),
    entry(
        "mf-unstable",
        Io,
        "The length of a file changed while it was being read.",
        "make sure that no other program writes there, and try again",
    ),
];
