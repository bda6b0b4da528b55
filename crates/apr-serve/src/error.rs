//! Kinds of errors of a server that does not start.

use std::io;

located_error::errors! {
    /// Why a server cannot start, or had to stop.
    pub struct Error;

    /// What could not be done.
    #[derive(Debug)]
    pub enum ErrorKind {
        /// The address cannot be listened on: another program does, it is not one of this machine, or its port needs rights.
        Bind {
            /// As it was given.
            addr: Box<str>,
            /// The system's reason.
            error: io::Error,
        } = "sv-bind" (Io) from error,
            "cannot listen on {addr}"
            => "choose another --addr; port 0 is any that is free";
        /// The operating system gives the server no thread, clock or signal handler.
        Start {
            /// The system's reason.
            error: io::Error,
        } = "sv-start" (Io) from error,
            "cannot start the server"
            => "see the reason above";
    }
}

impl Error {
    pub(crate) fn start(error: io::Error) -> Self {
        ErrorKind::Start { error }.into()
    }

    /// The system's reason.
    #[must_use]
    pub const fn io_error(&self) -> &io::Error {
        match self.kind() {
            ErrorKind::Bind { error, .. } | ErrorKind::Start { error } => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_kinds_is_complete() {
        let problems = located_error::problems(ErrorKind::TABLE, "sv-");
        assert!(problems.is_empty(), "{problems:?}");
    }
}
