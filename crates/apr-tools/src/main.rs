//! `apr`, the program: see the library.

#![forbid(unsafe_code)]

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(apr_tools::run(env::args_os()))
}
