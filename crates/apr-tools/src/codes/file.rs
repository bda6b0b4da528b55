//! Codes of `durable-file` (`df-`) and `st-mmap` (`sm-`): opening, replacing and verifying files.

use located_error::Category::{Internal, Invalid, Io, Unsupported, Verification};
use located_error::Entry;

use super::{MEND_SHARDS, SHARDS_DISAGREE, entry};

const QUIET: &str = "repeat when nothing else writes to the file";
const MEMORY: &str = "free some memory, or use a machine with more of it";
const OLDER: &str = "do not use this checkpoint: go back to an older one, or to the copy it came from";
const BUG: &str = "this is a defect in the calling program, not in the file: please report it";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "sm-io",
        Io,
        "The operating system refused to read a file that was open.",
        "check the disk or network share",
    ),
    entry(
        "sm-shrunk",
        Io,
        "The file became shorter after it was opened, so its tensors are no longer there.",
        QUIET,
    ),
    entry(
        "sm-address-space",
        Unsupported,
        "The file is larger than this machine can address at once.",
        "use a 64-bit build",
    ),
    entry("sm-out-of-memory", Io, "There is no memory for the data asked for.", MEMORY),
    entry(
        "sm-arena-limit",
        Invalid,
        "The data is larger than the buffer it should go to is allowed to grow.",
        MEMORY,
    ),
    entry("sm-buffer-length", Internal, "A buffer was passed that is not as long as the data.", BUG),
    entry("sm-range", Internal, "A byte range reaches outside its tensor.", BUG),
    entry(
        "sm-no-model",
        Invalid,
        "A folder is read through the file in it that ends in `.safetensors.index.json`, or else through \
         `model.safetensors`. This one has neither.",
        "name the model file or the index itself",
    ),
    entry(
        "sm-several-indexes",
        Invalid,
        "The folder has several indexes of shards, and which one is meant is open.",
        "name the index instead of the folder",
    ),
    entry("sm-shard", Invalid, SHARDS_DISAGREE, MEND_SHARDS),
    entry(
        "sm-replaced",
        Io,
        "Another program replaced the file while its metadata was being changed in place. Nothing was written.",
        QUIET,
    ),
    entry(
        "sm-step-not-found",
        Invalid,
        "The folder of checkpoints has none of this step.",
        "look which folders step_N there are",
    ),
    entry(
        "sm-missing-manifest",
        Verification,
        "The checkpoint has no manifest.json, so none of its files can be verified. It was not written to its end, \
         or someone removed the file.",
        "go back to an older checkpoint; if the trainer writes no manifests, `apr check --allow-missing-manifest` checks the headers alone",
    ),
    entry(
        "sm-manifest",
        Verification,
        "The manifest of the checkpoint is not an object of file names and SHA-256 digests.",
        OLDER,
    ),
    entry(
        "sm-missing-file",
        Verification,
        "The checkpoint lacks a file that it needs or that its manifest lists.",
        OLDER,
    ),
    entry(
        "sm-unlisted-file",
        Verification,
        "The checkpoint holds something that its manifest does not list, so nothing vouches for it.",
        "find out where the file comes from, and remove it if it does not belong there",
    ),
    entry(
        "sm-checksum-mismatch",
        Verification,
        "The content of a file is not what was saved: its SHA-256 differs from the manifest's. Bits were damaged on \
         the disk or on the way, or someone changed the file.",
        OLDER,
    ),
    entry("sm-meta", Verification, "The meta.json of the checkpoint is not what it should be.", OLDER),
    entry(
        "sm-step-mismatch",
        Verification,
        "The folder of the checkpoint and its meta.json name different steps: the folder was renamed or mixed up.",
        OLDER,
    ),
    entry(
        "sm-optimizer-pair",
        Verification,
        "The state of an optimizer is kept in two files, tensors and JSON, and one of them is missing.",
        OLDER,
    ),
    entry("sm-json", Invalid, "Text that should be JSON is not.", "fetch the file again"),
];
