mod declared {
    located_error::errors! {
        /// An error.
        pub struct Error;

        /// What was wrong.
        #[derive(Debug)]
        pub enum ErrorKind {
            /// The first byte is not zero.
            First {
                /// The byte.
                found: u8,
            } = "no-first" (Invalid), "expected a zero, found {found}" => "take other bytes";
        }
    }
}

fn call(bytes: &[u8]) -> usize {
    use alloc::string::ToString;

    let found = bytes.first().copied().unwrap_or_default();
    let error = declared::Error::from(declared::ErrorKind::First { found }).of(located_error::Subject::tensor_bytes(bytes));
    error.to_string().len() + error.entry().map_or(0, |entry| entry.remedy.len())
}
