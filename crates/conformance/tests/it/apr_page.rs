//! The example of `docs/apr-format.md` is a file.

use std::fs;
use std::path::Path;

use apr_container::{ModelType, SaveOptions, to_vec};
use apr_models::{LinearRegression, Vector};

#[test]
fn the_example_of_the_page_is_what_is_written() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/apr-format.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, example) = page.split_once("\n## Example\n").unwrap();
    let (_, dump) = example.split_once("```text\n").unwrap();
    let (dump, _) = dump.split_once("```").unwrap();
    let hex = dump.lines().flat_map(|line| line.get(6..53).unwrap().split_whitespace());
    let bytes: Vec<u8> = hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();

    let model = LinearRegression::from_parts(Vector::from_vec(vec![2.0]), 1.0).unwrap();
    let options = SaveOptions::default().with_created_at(1_795_241_427);
    assert_eq!(to_vec(&model, ModelType::LinearRegression, &options).unwrap(), bytes);
}
