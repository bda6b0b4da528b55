//! Codes of `apr-container` (`ac-`): `.apr` files of both versions and sealed files.

use located_error::Category::{Internal, Invalid, Io, Unsupported, Usage, Verification};
use located_error::Entry;

use super::{NOT_AS_SIGNED, entry};

const FETCH: &str = "fetch the file again and compare its SHA-256 with the publisher's";
const WRITER: &str =
    "tell the maker of the program that wrote it; `apr check --compat` says whether other readers take it";
const TRUSTED: &str = "if you trust the file, repeat with --trusted";
const BUG: &str = "this is a defect in the calling program, not in the file: please report it";
const SAVED: &str = "save a smaller model, or one file for each part of it";
const PAYLOAD: &str =
    "check with `apr check FILE`: if the checksum matches, the program that wrote the file is at fault";

pub(super) const ENTRIES: &[Entry] = &[
    entry(
        "ac-too-small",
        Invalid,
        "The file is shorter than a header and a checksum. The download or the copy was cut short.",
        FETCH,
    ),
    entry(
        "ac-magic",
        Invalid,
        "An .apr file begins with `APRN` (version 1), or with `APR` and a zero byte or `APR2` (version \
         2). This one does not.",
        "check that this is the right file",
    ),
    entry(
        "ac-second-generation",
        Invalid,
        "The file is of version 2, which holds named tensors instead of a model, and was opened as one \
         of the first.",
        "look at it with `apr tensors FILE`; `apr convert` makes a model of tensors that say which one they are",
    ),
    entry(
        "ac-version",
        Unsupported,
        "The file is of a major version that this program does not know. Its layout may differ anywhere, so nothing \
         is guessed.",
        "update apr, or have the file written in version 1.0 or 2.0",
    ),
    entry(
        "ac-unknown-type",
        Invalid,
        "The header names a model type that no specification lists, so nothing says what the payload means.",
        "`apr inspect FILE` shows what can be read; update apr if the file was made by a newer program",
    ),
    entry(
        "ac-wrong-type",
        Invalid,
        "The file holds another type of model than was asked for.",
        "`apr inspect FILE` says which one it is",
    ),
    entry(
        "ac-compression",
        Invalid,
        "The header names a compression that no specification lists.",
        "update apr if the file was made by a newer program, else fetch it again",
    ),
    entry(
        "ac-reserved",
        Invalid,
        "Header bytes or flags are in use that this version of the format leaves unused. Strict reading refuses what \
         no careful writer makes: whatever they mean would be lost.",
        WRITER,
    ),
    entry(
        "ac-truncated",
        Invalid,
        "A part of the file reaches past its end: the file was cut short, or a length in it is wrong.",
        FETCH,
    ),
    entry(
        "ac-unowned",
        Invalid,
        "There are bytes between the payload and the checksum that belong to no part of the file. Known readers pass \
         over them; strict reading does not, because they can carry anything.",
        WRITER,
    ),
    entry(
        "ac-checksum",
        Verification,
        "The checksum at the end of the file is not that of its bytes: the file is damaged, and nothing in it can be \
         relied on. Every reader refuses it.",
        FETCH,
    ),
    entry(
        "ac-encrypted",
        Unsupported,
        "The payload is encrypted. Header and metadata can be read, but are not authenticated; the model itself \
         needs its password or a recipient's key.",
        "bring the key: --identity KEYFILE or --ask-password, where the command has them; else `apr decrypt FILE -o OUT` first",
    ),
    entry(
        "ac-compressed",
        Usage,
        "A program wants to use the model where it lies, without a copy of its values, and the payload is compressed.",
        "store it as it is (`apr train --compression none`, or `SaveOptions` without compression), or load the model",
    ),
    entry(
        "ac-signed",
        Verification,
        "The file is signed: its maker wants it verified before it is used, and it was not verified. The key in the \
         file proves nothing, anyone can sign with a key of their own.",
        "verify it with the maker's key (--signer KEY), or add --allow-unverified to use the file as if it were not signed",
    ),
    entry(
        "ac-not-encrypted",
        Verification,
        "A password or a key was given and the payload is not encrypted. An attacker who put a plain file in the place of an \
         encrypted one needed no key for that.",
        "get the file from its maker again; load it without a key only if it was never meant to be encrypted",
    ),
    entry(
        "ac-not-signed",
        Verification,
        "A signature was demanded and the file has none. It may have been taken off.",
        "get the signed file from its maker",
    ),
    entry(
        "ac-signature",
        Verification,
        "The signature does not belong to these bytes and this key: the file was changed after it was signed, or signed by \
         someone else.",
        NOT_AS_SIGNED,
    ),
    entry(
        "ac-untrusted-signer",
        Verification,
        "The file is signed, and not by a key that was said to be trusted. Anyone can sign with a key of their own.",
        "get the maker's public key on a way you trust, and compare its fingerprint",
    ),
    entry(
        "ac-decryption",
        Verification,
        "The payload cannot be decrypted. Whether the password or key is another one or the file was changed cannot be told \
         apart, and must not be.",
        "try the password or key again, then fetch the file again",
    ),
    entry(
        "ac-unbound",
        Verification,
        "The payload is encrypted in the way of programs that do not tie it to its header and metadata: those could have \
         been exchanged, and the payload could have a second meaning under a second key.",
        "if header and metadata do not matter, read the file in compat mode; else have it encrypted anew",
    ),
    entry(
        "ac-rebound",
        Verification,
        "The payload was decrypted, and says that it belongs to another header, other metadata or another signer than those \
         in the file: someone exchanged them.",
        FETCH,
    ),
    entry(
        "ac-unauthenticated",
        Verification,
        "What was asked for may only come from metadata that a trusted key or a password authenticates. These are not signed by a trusted \
         key, and no password ties them to an encrypted payload: anyone can have written them.",
        "get the maker's public key on a way you trust and demand a signature by it",
    ),
    entry(
        "ac-inference-key",
        Verification,
        "The metadata are authentic but hold no usable public key for encrypted questions to the model: \
         `custom.inference_pub_key` has to be a key line `apr-public-1...` or 64 hexadecimal digits.",
        "ask the model's owner for a file with a public key",
    ),
    entry(
        "ac-too-large",
        Usage,
        "A part of the model is longer than the format can say: lengths in version 1 have 32 bits. \
         Other programs write such a file all the same, and lose the model.",
        SAVED,
    ),
    entry(
        "ac-limit",
        Invalid,
        "The file asks for more than any real model needs. The limits keep a hostile file from using up memory.",
        "if you trust the file, read it with the library and higher `Limits`",
    ),
    entry(
        "ac-expansion",
        Invalid,
        "A small compressed payload claims to become very large. That is how a file of a few kilobytes fills the \
         memory of the program that opens it; it is also how a model of mostly zeros looks.",
        TRUSTED,
    ),
    entry(
        "ac-model-memory",
        Invalid,
        "The payload is made of so many small parts that the model would take many times the file's length in memory. \
         That is how a small file fills the memory of the program that opens it.",
        TRUSTED,
    ),
    entry(
        "ac-uncompressed-size",
        Invalid,
        "The header says how long the payload is before compression, and it is not.",
        WRITER,
    ),
    entry("ac-decompression", Invalid, "The compressed payload is not sound.", PAYLOAD),
    entry(
        "ac-feature",
        Unsupported,
        "This build of the program was made without the part that is needed.",
        "build apr with its default features",
    ),
    entry(
        "ac-memory",
        Io,
        "There is no memory for the model.",
        "free some memory, or use a machine with more of it",
    ),
    entry(
        "ac-payload-end",
        Invalid,
        "The payload ends inside a value. It is damaged, of another layout than the metadata say, or not of the type \
         in the header.",
        PAYLOAD,
    ),
    entry(
        "ac-payload-trailing",
        Invalid,
        "The payload goes on after its last value. Known readers ignore what follows; strict reading does not, \
         because a payload of another layout shows itself that way.",
        WRITER,
    ),
    entry(
        "ac-count",
        Invalid,
        "A list claims more elements than there are bytes left for them. It is refused before memory is taken for it.",
        PAYLOAD,
    ),
    entry("ac-bool", Invalid, "A truth value in the payload is neither 0 nor 1.", PAYLOAD),
    entry("ac-option", Invalid, "The mark of an optional value in the payload is neither 0 nor 1.", PAYLOAD),
    entry("ac-variant", Invalid, "The payload names an alternative that its type does not have.", PAYLOAD),
    entry("ac-utf8", Invalid, "Text in the file is not UTF-8.", PAYLOAD),
    entry("ac-value", Invalid, "A value in the file contradicts others or cannot be.", PAYLOAD),
    entry(
        "ac-metadata-marker",
        Invalid,
        "The metadata have a byte where a value should begin that begins none: they are not MessagePack.",
        FETCH,
    ),
    entry(
        "ac-metadata-type",
        Invalid,
        "A field of the metadata has another type than the format says.",
        WRITER,
    ),
    entry("ac-metadata-missing", Invalid, "The metadata lack a field that every writer writes.", WRITER),
    entry(
        "ac-metadata-duplicate",
        Invalid,
        "A key stands in the metadata twice: readers that take the first and readers that take the last would \
         disagree.",
        WRITER,
    ),
    entry(
        "ac-metadata-trailing",
        Invalid,
        "Bytes follow the metadata within their part of the file.",
        WRITER,
    ),
    entry(
        "ac-metadata-dense",
        Invalid,
        "The metadata are made of very many tiny values, which take many times their length in memory.",
        TRUSTED,
    ),
    entry("ac-custom", Invalid, "The type that the payload was to become refuses it.", PAYLOAD),
    entry(
        "ac-unsupported",
        Usage,
        "A type has parts that the layout of payloads cannot express.",
        "store those parts in another way",
    ),
    entry(
        "ac-v2-header-checksum",
        Verification,
        "The header has a checksum of its own, and it is not that of its bytes: the file is damaged.",
        FETCH,
    ),
    entry(
        "ac-v2-column-major",
        Invalid,
        "The file says that its matrices are stored column by column. No known reader accepts that, because most \
         would read them as rows.",
        "import the model again with the program that wrote it",
    ),
    entry(
        "ac-v2-compressed",
        Invalid,
        "Everything after the header is one compressed block. Such a file is read as a whole where that is possible; \
         here it is not.",
        "`apr convert FILE OUT.apr` writes it uncompressed",
    ),
    entry(
        "ac-v2-misplaced",
        Invalid,
        "A part of the file or a tensor is not where the format puts it: there are holes, overlaps, or a wrong offset.",
        WRITER,
    ),
    entry("ac-v2-misaligned", Invalid, "A tensor does not begin at a multiple of 64 bytes.", WRITER),
    entry("ac-v2-padding", Invalid, "Padding that has to be zero is not. It can carry anything.", WRITER),
    entry(
        "ac-v2-trailing",
        Invalid,
        "More bytes follow the last tensor than the checksum has, or fewer.",
        FETCH,
    ),
    entry(
        "ac-v2-dtype",
        Invalid,
        "A tensor has an element type that no specification lists, so nothing says how long it has to be.",
        "update apr if the file was made by a newer program; `--compat` carries such tensors without reading them",
    ),
    entry(
        "ac-v2-dimensions",
        Invalid,
        "A tensor has more dimensions than the eight that the format allows.",
        "reshape the tensor, or store the model as safetensors",
    ),
    entry(
        "ac-v2-name",
        Invalid,
        "A tensor's name is longer than the 256 bytes that the format keeps; other writers cut it, and two tensors \
         may get one name.",
        "give it a shorter name: apr convert --rename FROM=TO",
    ),
    entry("ac-v2-duplicate-tensor", Invalid, "Two tensors have one name.", WRITER),
    entry(
        "ac-v2-order",
        Invalid,
        "The index is not sorted by name, so a reader that searches it would miss tensors.",
        WRITER,
    ),
    entry("ac-v2-overflow", Invalid, "A size is beyond what 64 bits can count.", FETCH),
    entry("ac-v2-size", Invalid, "The size of a tensor is not what its type and shape need.", FETCH),
    entry("ac-v2-not-found", Usage, "There is no tensor of that name.", "`apr tensors FILE` lists the names"),
    entry(
        "ac-v2-dtype-mismatch",
        Usage,
        "The tensor holds elements of another type.",
        "`apr tensors FILE` says which",
    ),
    entry("ac-v2-view", Internal, "Bytes are not aligned in memory for a view without a copy.", BUG),
    entry("ac-v2-endian", Internal, "This machine stores numbers in another byte order than the file.", BUG),
    entry(
        "ac-v2-data-length",
        Invalid,
        "A tensor has another length than was laid out for it, or the file changed while it was read.",
        "repeat when nothing else writes to the file",
    ),
    entry(
        "ac-v2-data-count",
        Internal,
        "Data were given for another number of tensors than were laid out.",
        BUG,
    ),
    entry(
        "ac-v2-flag",
        Usage,
        "A flag stands for something that is not written, so it would promise what the file does not have.",
        "leave the flag out",
    ),
    entry("ac-v2-json", Invalid, "The metadata are not JSON.", FETCH),
    entry(
        "ac-v2-duplicate-key",
        Invalid,
        "A key stands in the metadata twice: readers that take the first and readers that take the last would \
         disagree.",
        WRITER,
    ),
    entry(
        "ac-v2-json-type",
        Invalid,
        "A member of the metadata has another type than the format says.",
        WRITER,
    ),
    entry("ac-v2-missing-key", Invalid, "The metadata lack a member that every writer writes.", WRITER),
    entry(
        "ac-v2-shard-name",
        Invalid,
        "A file name in a manifest could lead out of the folder of the manifest.",
        "do not use this manifest",
    ),
    entry("ac-v2-manifest", Invalid, "The manifest of a sharded model contradicts itself.", FETCH),
    entry(
        "ac-sealed-magic",
        Invalid,
        "A sealed file begins with the bytes 89 41 50 52 53 0D 0A 1A. This one does not.",
        "check that this is the right file; `apr inspect FILE` says what it is",
    ),
    entry(
        "ac-sealed-version",
        Unsupported,
        "The sealed file is of a version that this program does not know, so nothing in it is guessed.",
        "update apr, or have the file sealed in version 1",
    ),
    entry(
        "ac-sealed-suite",
        Unsupported,
        "The sealed file is encrypted with algorithms that this program does not know.",
        "update apr, or have the file sealed with suite 1",
    ),
    entry(
        "ac-sealed-flags",
        Unsupported,
        "The sealed file needs something of its reader that this program does not know. Ignoring it could mean ignoring \
         a protection.",
        "update apr",
    ),
    entry(
        "ac-sealed-length",
        Invalid,
        "The parts that the header of the sealed file describes are longer or shorter than the file: it was cut off, or \
         something was added.",
        FETCH,
    ),
    entry(
        "ac-sealed-header",
        Invalid,
        "Fields in the header of the sealed file contradict each other.",
        FETCH,
    ),
    entry(
        "ac-sealed-directory",
        Invalid,
        "The list of tensors and other parts is not in the form the specification gives it: a name is missing or there \
         twice, or the parts are not as long as the payload. In a file that opened, its maker wrote it so.",
        "tell the maker of the program that sealed it",
    ),
    entry(
        "ac-sealed-slots",
        Verification,
        "The sealed file has two places for its list of recipients, and neither is whole. An interrupted `apr rekey` \
         leaves one of them whole, so the file was damaged otherwise.",
        FETCH,
    ),
    entry(
        "ac-sealed-unprotected",
        Verification,
        "A sealed file is encrypted, signed or both. With neither, nothing would show a change.",
        "name a recipient, a password or a signing key; a file that says it has none of them was tampered with",
    ),
    entry(
        "ac-sealed-lock",
        Usage,
        "The file is locked with a password and a key was given, or the other way round.",
        "`apr inspect FILE` says what opens it",
    ),
    entry(
        "ac-sealed-stanzas",
        Verification,
        "A recipient's key is tried on every stanza of a sealed file, and this one has more of them than are tried: a file made \
         to keep the machine busy, or one for very many recipients.",
        "if you trust where the file comes from, raise the limit: --max-recipients N",
    ),
    entry(
        "ac-sealed-unlisted",
        Usage,
        "A stanza of a sealed file does not name its recipient. This file was sealed without the list of recipients, or by a release \
         that does not write one.",
        "name those who are to stay: --remove-others with --recipient for each of them",
    ),
    entry(
        "ac-sealed-recipient",
        Usage,
        "None of the recipients that the sealed file lists has the key or fingerprint that was given.",
        "`apr inspect FILE --identity KEYFILE` lists them",
    ),
    entry(
        "ac-sealed-no-recipient",
        Usage,
        "All recipients of the sealed file were to be removed: its content could never be read again.",
        "keep at least one recipient: remove fewer, or add --recipient KEY; to destroy the file, delete it",
    ),
    entry(
        "ac-sealed-room",
        Usage,
        "The list of recipients has a fixed length, chosen when the file was sealed, and it has no space for so \
         many.",
        "remove recipients, or seal the file again with more space",
    ),
    entry(
        "ac-sealed-bound",
        Usage,
        "The list of recipients is signed by the key that sealed the file, so that only its holder can change it.",
        "give the key that signed the file, or ask its owner",
    ),
    entry(
        "ac-io",
        Io,
        "The operating system refused to read or write the file.",
        "check the path, its permissions and the free space",
    ),
];
