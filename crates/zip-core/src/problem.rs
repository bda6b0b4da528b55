//! Where two readers may see two different archives.

const AMBIGUOUS: &str = "do not trust the file: another program may see other members";

/// A contradiction, and the member it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Position in [`Archive::entries`](crate::Archive::entries); `None` for the archive.
    pub entry: Option<usize>,
    /// Byte offset in the source.
    pub offset: u64,
    /// What contradicts what.
    pub problem: Problem,
}

located_error::kinds! {
    /// What contradicts what.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Problem {
        /// There are bytes before the archive: a loader that looks at the first bytes takes the file for something else.
        Leading {
            /// Bytes before the first member.
            len: u64,
        } = "zc-leading" (Verification), "{len} bytes before the archive" => AMBIGUOUS;
        /// There are bytes after the end record and its comment.
        Trailing {
            /// How many bytes.
            len: u64,
        } = "zc-trailing" (Verification), "{len} bytes after the archive" => AMBIGUOUS;
        /// There is another end record: some readers take the first, some the last.
        SecondEnd {} = "zc-second-end" (Verification), "a second end record" => AMBIGUOUS;
        /// The end records disagree about the directory, or the directory is not what they declare.
        End {} = "zc-end-differs" (Verification), "the end record contradicts the directory" => AMBIGUOUS;
        /// Bytes between members that belong to none: a member that is not in the directory may be there.
        Gap {
            /// How many bytes.
            len: u64,
        } = "zc-gap" (Verification), "{len} bytes belong to no member" => AMBIGUOUS;
        /// Two members share bytes.
        Overlap {} = "zc-overlap" (Verification), "the member overlaps another one" => AMBIGUOUS;
        /// Two members have one name: some readers take the first, some the last.
        Duplicate {} = "zc-duplicate" (Verification), "the name occurs twice" => AMBIGUOUS;
        /// A name that leaves the folder, that readers cut or change, or that is not in its encoding.
        Name {} = "zc-name" (Verification), "the name is ambiguous or leaves the folder" => AMBIGUOUS;
        /// A symbolic link: programs that create it may write the members after it elsewhere.
        Link {} = "zc-link" (Verification), "the member is a symbolic link" => AMBIGUOUS;
        /// There is no local header where the directory says.
        LocalMissing {} = "zc-local-missing" (Verification), "no local header" => AMBIGUOUS;
        /// The name before the member is another one.
        LocalName {} = "zc-local-name" (Verification), "the local header has another name" => AMBIGUOUS;
        /// The compression method before the member is another one.
        LocalMethod {} = "zc-local-method" (Verification), "the local header has another compression method" => AMBIGUOUS;
        /// The flags before the member are others.
        LocalFlags {} = "zc-local-flags" (Verification), "the local header has other flags" => AMBIGUOUS;
        /// The sizes before the member are others.
        LocalSize {} = "zc-local-size" (Verification), "the local header has other sizes" => AMBIGUOUS;
        /// The checksum before the member is another one.
        LocalChecksum {} = "zc-local-checksum" (Verification), "the local header has another checksum" => AMBIGUOUS;
        /// The sizes or the checksum after the member are others.
        Descriptor {} = "zc-descriptor" (Verification), "the data descriptor has other sizes or another checksum" => AMBIGUOUS;
        /// The member is marked as encrypted: some readers refuse it, some read it as it is.
        Encrypted {} = "zc-encrypted" (Verification), "the member is marked as encrypted" => AMBIGUOUS;
        /// The compression method is none that is read here.
        Method {
            /// Its number.
            method: u16,
        } = "zc-unknown-method" (Verification), "compression method {method}" => AMBIGUOUS;
        /// An extra field that gives the member another name or that ends inside itself.
        Extra {} = "zc-extra" (Verification), "an extra field is malformed or renames the member" => AMBIGUOUS;
        /// The data have another checksum. Some readers verify it, some do not.
        Checksum {} = "zc-checksum" (Verification), "the checksum does not match" => AMBIGUOUS;
        /// The data are longer than the directory declares.
        Longer {} = "zc-longer" (Verification), "the member is longer than declared" => AMBIGUOUS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        assert_eq!(located_error::problems(Problem::TABLE, "zc-"), [""; 0]);
    }
}
