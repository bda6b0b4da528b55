//! `include/apr.h` beside what cbindgen makes of the code. `UPDATE_SNAPSHOTS=1` writes it.

use std::path::Path;
use std::{env, fs};

#[test]
fn header_is_that_of_the_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let sources = ["types.rs", "ffi.rs", "failure.rs"].map(|name| folder.join("src").join(name));
    let builder =
        sources.iter().fold(cbindgen::Builder::new().with_config(config), cbindgen::Builder::with_src);
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let (path, made) =
        (folder.join("include/apr.h"), String::from_utf8(made).unwrap().replace("# Safety\n//\n// ", ""));
    if env::var_os("UPDATE_SNAPSHOTS").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "UPDATE_SNAPSHOTS=1 cargo test -p apr-capi writes the header");
}
