//! The header is the one that the code declares, and programs in C and C++ use the library. They are compiled with the sanitizers for
//! addresses and undefined behaviour, where the compiler has them.

mod header;
mod programs;

use apr_capi::{File, Options};
use apr_crypto::{OsRandom, Password};
use apr_sealed::{Part, Plan, SealOptions};

/// The page promises that threads may share handles.
#[test]
fn handles_may_be_shared() {
    const fn shared<T: Send + Sync>() {}
    shared::<apr_capi::apr_file>();
    shared::<apr_capi::apr_model>();
}

/// Of any format inside: the password is for the file around it.
#[test]
fn sealed_files_open_with_their_keys() {
    let view = st_core::TensorView::new(st_core::Dtype::U8, &[3], b"abc").unwrap();
    let content = st_core::to_vec(&[("a\0b", view)], &st_core::WriteOptions::default()).unwrap();
    let password = Password::new("secret");
    let options = SealOptions::default().with_password(&password);
    let plan = Plan::new([Part::raw(content.len() as u64)]).unwrap();
    let sealed: &'static [u8] = apr_sealed::to_vec(&plan, &content, &options, &mut OsRandom).unwrap().leak();
    let open = |password| File::from_bytes(sealed, &Options { password, ..Options::default() });
    let file = open(Some("secret")).unwrap_or_else(|failure| panic!("{}", failure.message));
    let tensor = &file.tensors().unwrap_or_else(|failure| panic!("{}", failure.message))[0];
    // The name whole, and no offset in a file that has other bytes there.
    assert_eq!((tensor.name(), &*tensor.name, tensor.file_offset), (&b"a\0b"[..], &b"a\0b\0"[..], None));
    assert!(file.find("a\0b").is_ok_and(|index| index == 0) && file.find("a\u{fffd}b").is_err());
    assert!(open(Some("other")).is_err());
    assert!(open(None).is_ok_and(|file| file.tensors().is_err()));
}
