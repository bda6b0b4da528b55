//! Codes of keys, encryption and signatures.

use located_error::Category::{Invalid, Io, Unsupported, Usage, Verification};
use located_error::Entry;

use super::{NOT_AS_SIGNED, entry};

const KEY_TEXT: &str = "copy the key line again, as a whole: it begins with `apr-` and has no spaces";
const SMALLER: &str = "make room for it, or take a smaller piece";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "cy-open",
        Verification,
        "What is encrypted cannot be opened. Whether the password or key is another one or the data were changed cannot be told \
         apart, and must not be.",
        "try the password or key again, then fetch the file again",
    ),
    entry(
        "cy-signature",
        Verification,
        "The signature does not belong to these bytes and this key: the data were changed after they were signed, or signed by \
         someone else.",
        NOT_AS_SIGNED,
    ),
    entry(
        "cy-tree",
        Verification,
        "The data do not belong to the tree hash that is trusted: they were changed, or are a part of another file.",
        NOT_AS_SIGNED,
    ),
    entry(
        "cy-mac",
        Verification,
        "The header of the file has another authentication code than its key gives: it was changed, or the key is another one.",
        NOT_AS_SIGNED,
    ),
    entry(
        "cy-weak-key",
        Verification,
        "The public key is one of the few with which anybody can forge signatures or compute the shared secret. No program \
         makes such a key by accident.",
        "ask the owner for another key, on a way you trust",
    ),
    entry(
        "cy-invalid-key",
        Invalid,
        "The bytes are no public key, or another spelling of one. Every key has one spelling, so that comparing keys means \
         something.",
        "ask the owner for the key again",
    ),
    entry(
        "cy-key-mismatch",
        Verification,
        "The file holds a secret key beside a public one that is not its own. Signing with such a pair can give the secret away.",
        "take the key from a copy of the file; the damaged one is of no use",
    ),
    entry(
        "cy-randomness",
        Io,
        "The operating system gave no randomness, and nothing secret can be made without it. Nothing was written.",
        "try again; on a machine that has just started, a little later",
    ),
    entry(
        "cy-cost",
        Verification,
        "A password's cost is outside what is accepted: below it guessing is too cheap to call it protection, above it a file \
         could keep the machine busy for hours.",
        "have the file or key made anew with a cost in that range, or raise the limit: --max-password-cost SIZE:PASSES",
    ),
    entry(
        "cy-memory",
        Io,
        "The system has no memory for a large piece: what a password costs, or the content of a file.",
        SMALLER,
    ),
    entry(
        "cy-truncated",
        Invalid,
        "The data are shorter than the format needs: the file was cut off.",
        NOT_AS_SIGNED,
    ),
    entry(
        "cy-too-long",
        Invalid,
        "A text or message is longer than the format or the limit allows. Key files are short; a longer file is hardly one.",
        "check that the right file was named",
    ),
    entry(
        "cy-chunked-length",
        Invalid,
        "No message encrypted in chunks has this length: the file was cut off or something was added.",
        NOT_AS_SIGNED,
    ),
    entry(
        "cy-range",
        Invalid,
        "More bytes were asked for than there are.",
        "check that the file is complete",
    ),
    entry(
        "cy-source",
        Io,
        "The data could not be read.",
        "check the disk or connection they come from, and try again",
    ),
    entry(
        "cy-leaf-len",
        Invalid,
        "The tree hash has leaves of a length that this version does not know.",
        NOT_AS_SIGNED,
    ),
    entry(
        "cy-algorithm",
        Unsupported,
        "The file names an algorithm that this version does not know.",
        "use a newer version of apr",
    ),
    entry(
        "cy-bech32",
        Invalid,
        "The text is not a key line: it lacks the mark between kind and data, or has letters or a length that no key line has.",
        KEY_TEXT,
    ),
    entry(
        "cy-checksum",
        Invalid,
        "The key line contains a typing error: its last six letters are a checksum and do not match. Up to three wrong letters \
         are always noticed.",
        KEY_TEXT,
    ),
    entry(
        "cy-key-kind",
        Invalid,
        "The key is of another kind than the one needed: a public one in place of a secret one or the reverse, or one for \
         encrypting in place of one for signing.",
        "recipients' keys are made by `apr keygen encrypt`, signers' by `apr keygen sign`; the public half is in FILE.pub",
    ),
    entry(
        "cy-no-key",
        Invalid,
        "There is no key in the text: all of its lines are empty or comments.",
        "check that the right file was named; `apr keygen` makes key files",
    ),
    entry(
        "cy-second-key",
        Invalid,
        "The file holds more than one key, and which one is meant cannot be told.",
        "keep each key in a file of its own",
    ),
    entry(
        "cy-comment",
        Usage,
        "A comment or a name has letters that do not fit into one line: control characters, or invisible ones that reorder what \
         a terminal shows.",
        "leave them out",
    ),
    entry(
        "cy-text",
        Invalid,
        "The text is not in the format it should be in. Key files are read as our own key lines, PEM (PKCS#8 and SPKI, Ed25519 \
         and X25519) and minisign's.",
        "check that the right file was named; `openssl pkey` converts keys of other forms to PEM",
    ),
    entry(
        "cy-minisign-password",
        Unsupported,
        "The secret key is one of minisign's under a password, and minisign's way of deriving keys from passwords is not built in.",
        "make a copy of the key and take the password off: minisign -C -W -s COPY; then `apr keygen sign --from COPY --ask-password`",
    ),
    entry(
        "cy-key-id",
        Verification,
        "The signature names another key than the one it was to be checked with.",
        "get the public key of whoever signed the file, on a way you trust",
    ),
    entry(
        "cy-duplicate",
        Invalid,
        "A name or a key stands twice in the list of trusted keys: which of the two counts cannot be told.",
        "take one of the two lines out",
    ),
    entry(
        "cy-file-exists",
        Usage,
        "The key file exists. Keys are never overwritten, not even with --force: what was encrypted for the old one could not be \
         opened any more.",
        "choose another name, or move the old key away",
    ),
    entry(
        "cy-not-regular",
        Invalid,
        "Keys and lists of trusted keys are read from regular files alone, not from pipes, devices or folders.",
        "name a file",
    ),
    entry(
        "cy-exposed",
        Verification,
        "Others can read a file that has to be secret, or change a list of keys that has to be yours. Who did so is not known, \
         so the content counts for nothing any more.",
        "make a new key or password in a file of mode 600; if you are sure that nobody looked, chmod 600 FILE",
    ),
    entry(
        "cy-file",
        Io,
        "The operating system refused to read or write the file.",
        "check the path, its permissions and the room on the disk",
    ),
    entry(
        "cy-message",
        Invalid,
        "The bytes are no question to a model, or no answer of one: another beginning, another version, or too short.",
        "see that both sides speak the same version of the protocol",
    ),
    entry(
        "cy-replay",
        Verification,
        "A question was recorded on its way and sent again. It was answered once.",
        "ask anew: each question is made for one time",
    ),
    entry(
        "cy-stale",
        Verification,
        "A question was made too long ago, or by a clock that is ahead.",
        "set the clock of the asking machine, and ask anew",
    ),
    entry(
        "cy-replay-full",
        Io,
        "The server remembers as many questions as it has room for, and takes none that it could not recognise if it came again.",
        "ask again later; the server's owner can give it more room or a shorter time",
    ),
];
