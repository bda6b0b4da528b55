//! The header is the one that the code declares, and programs in C and C++ use the library. They are compiled with the sanitizers for
//! addresses and undefined behaviour, where the compiler has them.

mod header;
mod programs;

/// The page promises that threads may share handles.
#[test]
fn handles_may_be_shared() {
    const fn shared<T: Send + Sync>() {}
    shared::<apr_capi::apr_file>();
    shared::<apr_capi::apr_model>();
}
