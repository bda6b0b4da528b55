//! Prints the format of each file that is named.

use std::fs::File;
use std::io::{Error, Read, Seek, SeekFrom};

fn main() -> Result<(), Error> {
    for path in std::env::args().skip(1) {
        let mut file = File::open(&path)?;
        let len = file.metadata()?.len();
        let format = foreign_format::identify(len, |offset, buf| {
            file.seek(SeekFrom::Start(offset))?;
            file.read_exact(buf)
        })?;
        match format {
            Some(format) => println!("{path}: {}", format.title()),
            None => println!("{path}: safetensors or unknown"),
        }
    }
    Ok(())
}
