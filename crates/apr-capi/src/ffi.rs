//! The functions of C. Each checks its pointers, calls the safe code and keeps the error; no panic leaves it.

#![expect(unsafe_code, reason = "pointers of C")]
#![expect(non_camel_case_types, reason = "the names of types in C")]

use core::ffi::{CStr, c_char, c_void};
use core::panic::AssertUnwindSafe;
use core::ptr;
use std::panic::catch_unwind;
use std::path::PathBuf;

use crate::failure::{Failure, Status, keep, usage, with_last};
use crate::file::File;
use crate::model::{Model, Table};
use crate::options::Options;
use crate::types::{
    APR_ALLOW_UNVERIFIED, APR_ANY_SIGNER, APR_COMPAT, apr_error, apr_model_info, apr_options, apr_table,
    apr_tensor, output_kind,
};

/// An open model file. Any number of threads may use one.
#[derive(Debug)]
pub struct apr_file(File);

/// A loaded model. Any number of threads may use one.
#[derive(Debug)]
pub struct apr_model(Model);

/// Runs a call: keeps its error for `apr_last_error`, and turns a panic into a status.
fn run(call: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(failure)) => keep(failure),
        Err(_) => keep(Failure {
            status: Status::Internal,
            code: "api-internal",
            message: "the library ended the call because of a defect in it".to_owned(),
            help: "report the file and the call",
            offset: None,
        }),
    }
}

/// The text at `text`; `None` for a null pointer.
///
/// # Safety
///
/// `text` is null or points to a string that ends in a zero byte and outlives `'t`.
unsafe fn text<'t>(text: *const c_char) -> Result<Option<&'t str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not null; the caller passes strings with a zero byte at their end.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| usage("a text is not UTF-8"))
}

/// The value at `pointer`.
///
/// # Safety
///
/// `pointer` is null or points to a valid value that outlives `'v`.
unsafe fn at<'v, T>(pointer: *const T) -> Result<&'v T, Failure> {
    // SAFETY: as the caller says.
    unsafe { pointer.as_ref() }.ok_or_else(|| usage("a pointer that is required is null"))
}

/// The place for a result at `pointer`, which may hold any bytes.
fn place<T>(pointer: *mut T) -> Result<*mut T, Failure> {
    if pointer.is_null() { Err(usage("a pointer for a result is null")) } else { Ok(pointer) }
}

/// `len` values at `pointer`.
///
/// # Safety
///
/// `pointer` points to that many valid values that outlive `'v`, or is null and `len` is 0.
unsafe fn slice<'v, T>(pointer: *const T, len: usize) -> Result<&'v [T], Failure> {
    if len == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() || len > isize::MAX as usize / size_of::<T>().max(1) || !pointer.is_aligned() {
        return Err(usage("a pointer to values is null or misaligned, or their number is too large"));
    }
    // SAFETY: not null, aligned, not longer than memory; valid as the caller says.
    Ok(unsafe { core::slice::from_raw_parts(pointer, len) })
}

/// `len` values at `pointer`, to be written.
///
/// # Safety
///
/// As for [`slice()`], and nothing else uses them meanwhile.
unsafe fn slice_mut<'v, T>(pointer: *mut T, len: usize) -> Result<&'v mut [T], Failure> {
    if len == 0 {
        return Ok(&mut []);
    }
    if pointer.is_null() || len > isize::MAX as usize / size_of::<T>().max(1) || !pointer.is_aligned() {
        return Err(usage("a buffer is null or misaligned, or its length is too large"));
    }
    // SAFETY: not null, aligned, not longer than memory; valid and not shared as the caller says.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, len) })
}

/// The options at `options`; the defaults for a null pointer.
///
/// # Safety
///
/// `options` is null or points to options whose texts are null or valid.
unsafe fn options<'o>(options: *const apr_options) -> Result<Options<'o>, Failure> {
    // SAFETY: null or valid, as the caller says.
    let Some(given) = (unsafe { options.as_ref() }) else { return Ok(Options::default()) };
    if given.size != size_of::<apr_options>() {
        return Err(usage(
            "options.size is not sizeof(apr_options): header and library are of different versions",
        ));
    }
    if given.flags & !(APR_COMPAT | APR_ALLOW_UNVERIFIED | APR_ANY_SIGNER) != 0 {
        return Err(usage("options.flags has a flag that this version does not know"));
    }
    let has = |flag| given.flags & flag != 0;
    // SAFETY: the texts are null or valid, as the caller says.
    let (verify_key, identity, password) =
        unsafe { (text(given.verify_key)?, text(given.identity)?, text(given.password)?) };
    Ok(Options {
        compat: has(APR_COMPAT),
        allow_unverified: has(APR_ALLOW_UNVERIFIED),
        any_signer: has(APR_ANY_SIGNER),
        verify_key,
        identity,
        password,
    })
}

/// Version of the library, for example `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn apr_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Writes why the last failed call of this thread failed to `error`, whose texts are valid until another call of this thread
/// fails or the thread ends. Returns false, and writes nothing, if no call failed yet.
///
/// # Safety
///
/// `error` is null or points to memory for an `apr_error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_last_error(error: *mut apr_error) -> bool {
    if error.is_null() {
        return false;
    }
    with_last(|last| {
        let found = apr_error {
            status: last.status,
            code: last.code.as_ptr(),
            message: last.message.as_ptr(),
            help: last.help.as_ptr(),
            offset: last.offset,
        };
        // SAFETY: not null; the caller passes memory for it.
        unsafe { error.write(found) };
    })
    .is_some()
}

/// Opens a file, a folder with a model, or an index of shards. `path` is UTF-8; `options` may be null. Close it with `apr_close`.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_open(
    path: *const c_char,
    options: *const apr_options,
    file: *mut *mut apr_file,
) -> Status {
    run(|| {
        let file = place(file)?;
        // SAFETY: null or valid, as the caller says.
        let (path, options) = unsafe { (text(path)?, self::options(options)?) };
        let path = PathBuf::from(path.ok_or_else(|| usage("the path is null"))?);
        let opened = Box::new(apr_file(File::open(&path, &options)?));
        // SAFETY: not null; the caller passes memory for a pointer.
        unsafe { file.write(Box::into_raw(opened)) };
        Ok(())
    })
}

/// Opens the bytes of a file, which stay the caller's: they have to be valid and unchanged until the file is closed. `options` may
/// be null.
///
/// # Safety
///
/// Pointers are null or valid; the `len` bytes at `data` outlive the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_open_memory(
    data: *const c_void,
    len: usize,
    options: *const apr_options,
    file: *mut *mut apr_file,
) -> Status {
    run(|| {
        let file = place(file)?;
        // SAFETY: null or valid, as the caller says; the caller keeps the bytes until the file is closed.
        let (bytes, options) = unsafe { (slice::<u8>(data.cast(), len)?, self::options(options)?) };
        let opened = Box::new(apr_file(File::from_bytes(bytes, &options)?));
        // SAFETY: not null; the caller passes memory for a pointer.
        unsafe { file.write(Box::into_raw(opened)) };
        Ok(())
    })
}

/// Closes a file. Models that were loaded from it stay. Null is allowed.
///
/// # Safety
///
/// `file` came from `apr_open` or `apr_open_memory`, and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_close(file: *mut apr_file) {
    if !file.is_null() {
        run(|| {
            // SAFETY: it came from `Box::into_raw`, and the caller gives it up.
            drop(unsafe { Box::from_raw(file) });
            Ok(())
        });
    }
}

/// Name of the format: `safetensors`, `apr`, `gguf`, `sealed`, or that of another program's. Null for a null pointer. Valid until the
/// file is closed.
///
/// # Safety
///
/// `file` is null or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_format(file: *const apr_file) -> *const c_char {
    // SAFETY: null or open, as the caller says.
    match unsafe { file.as_ref() } {
        Some(file) => file.0.format().as_ptr(),
        None => ptr::null(),
    }
}

/// Describes the file as one JSON object: format, metadata, tensors, properties. Valid until the file is closed.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_describe(file: *const apr_file, json: *mut *const c_char) -> Status {
    run(|| {
        let json = place(json)?;
        // SAFETY: null or open, as the caller says.
        let description = unsafe { at(file)? }.0.description()?;
        // SAFETY: not null; the caller passes memory for a pointer.
        unsafe { json.write(description.as_ptr()) };
        Ok(())
    })
}

/// Reads everything that the format can verify. `has_checksum` is whether there was a checksum, or may be null. Signatures are verified
/// when a file is opened with a key.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_verify(file: *const apr_file, has_checksum: *mut bool) -> Status {
    run(|| {
        // SAFETY: null or open, as the caller says.
        let verified = unsafe { at(file)? }.0.verify()?;
        if !has_checksum.is_null() {
            // SAFETY: not null; the caller passes memory for it.
            unsafe { has_checksum.write(verified) };
        }
        Ok(())
    })
}

/// Number of tensors.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_tensor_count(file: *const apr_file, count: *mut usize) -> Status {
    run(|| {
        let count = place(count)?;
        // SAFETY: null or open, as the caller says.
        let n_tensors = unsafe { at(file)? }.0.tensors()?.len();
        // SAFETY: not null; the caller passes memory for it.
        unsafe { count.write(n_tensors) };
        Ok(())
    })
}

/// Describes a tensor, by its index in file order from 0.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_tensor_at(
    file: *const apr_file,
    index: usize,
    tensor: *mut apr_tensor,
) -> Status {
    run(|| {
        let tensor = place(tensor)?;
        // SAFETY: null or open, as the caller says.
        let tensors = unsafe { at(file)? }.0.tensors()?;
        let found = tensors.get(index).ok_or_else(|| usage("no tensor has this index"))?;
        let described = apr_tensor {
            name: found.name.as_ptr().cast(),
            name_len: found.name().len(),
            dtype: found.dtype.as_ptr(),
            rank: found.shape.len(),
            shape: found.shape.as_ptr(),
            byte_len: found.byte_len,
            file_offset: found.file_offset.unwrap_or(u64::MAX),
        };
        // SAFETY: not null; the caller passes memory for it.
        unsafe { tensor.write(described) };
        Ok(())
    })
}

/// Finds the index of the tensor with this name.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_tensor_find(
    file: *const apr_file,
    name: *const c_char,
    index: *mut usize,
) -> Status {
    run(|| {
        let index = place(index)?;
        // SAFETY: null or valid, as the caller says.
        let (file, name) = unsafe { (at(file)?, text(name)?) };
        let name = name.ok_or_else(|| usage("the name is null"))?;
        let found = file.0.find(name)?;
        // SAFETY: not null; the caller passes memory for it.
        unsafe { index.write(found) };
        Ok(())
    })
}

/// Reads `len` bytes of a tensor as they are stored, little-endian and row-major, from byte `offset` of its data on.
///
/// # Safety
///
/// `file` is null or open; `buffer` has `len` bytes that nothing else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_tensor_read(
    file: *const apr_file,
    index: usize,
    offset: u64,
    buffer: *mut c_void,
    len: usize,
) -> Status {
    run(|| {
        // SAFETY: as the caller says.
        let (file, out) = unsafe { (at(file)?, slice_mut::<u8>(buffer.cast(), len)?) };
        file.0.read(index, offset, out)
    })
}

/// Reads all values of a tensor, of any type with a conversion, as 32-bit floats. `count` is the number of its elements.
///
/// # Safety
///
/// `file` is null or open; `buffer` has `count` floats that nothing else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_tensor_read_f32(
    file: *const apr_file,
    index: usize,
    buffer: *mut f32,
    count: usize,
) -> Status {
    run(|| {
        // SAFETY: as the caller says.
        let (file, out) = unsafe { (at(file)?, slice_mut(buffer, count)?) };
        file.0.read_f32(index, out)
    })
}

/// Loads the model that a file holds. Free it with `apr_model_free`.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_model_load(file: *const apr_file, model: *mut *mut apr_model) -> Status {
    run(|| {
        let model = place(model)?;
        // SAFETY: null or open, as the caller says.
        let loaded = Box::new(apr_model(unsafe { at(file)? }.0.model()?));
        // SAFETY: not null; the caller passes memory for a pointer.
        unsafe { model.write(Box::into_raw(loaded)) };
        Ok(())
    })
}

/// Frees a model. Null is allowed.
///
/// # Safety
///
/// `model` came from `apr_model_load`, and nothing uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_model_free(model: *mut apr_model) {
    if !model.is_null() {
        run(|| {
            // SAFETY: it came from `Box::into_raw`, and the caller gives it up.
            drop(unsafe { Box::from_raw(model) });
            Ok(())
        });
    }
}

/// Describes a model.
///
/// # Safety
///
/// Pointers are null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_model_describe(model: *const apr_model, info: *mut apr_model_info) -> Status {
    run(|| {
        let info = place(info)?;
        // SAFETY: null or valid, as the caller says.
        let model = &unsafe { at(model)? }.0;
        let described = apr_model_info {
            name: model.name().as_ptr(),
            n_features: model.n_features().unwrap_or(0),
            n_classes: model.labels().len(),
            takes_texts: model.takes_texts(),
        };
        // SAFETY: not null; the caller passes memory for it.
        unsafe { info.write(described) };
        Ok(())
    })
}

/// Whether the model has an output, a value of `apr_output`.
///
/// # Safety
///
/// `model` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_model_supports(model: *const apr_model, output: i32) -> bool {
    // SAFETY: null or valid, as the caller says.
    match (unsafe { model.as_ref() }, output_kind(output)) {
        (Some(model), Ok(output)) => model.0.supports(output),
        _ => false,
    }
}

/// Name of a feature, from 0; null if the file names none. Valid until the model is freed.
///
/// # Safety
///
/// `model` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_model_feature(model: *const apr_model, index: usize) -> *const c_char {
    // SAFETY: null or valid, as the caller says.
    let found = unsafe { model.as_ref() }.and_then(|model| model.0.features().get(index));
    found.map_or(ptr::null(), |name| name.as_ptr())
}

/// Label of a class, by its index: of a prediction, or of a column of probabilities. Null beyond the last one. Valid until the model is
/// freed.
///
/// # Safety
///
/// `model` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_model_label(model: *const apr_model, index: usize) -> *const c_char {
    // SAFETY: null or valid, as the caller says.
    let found = unsafe { model.as_ref() }.and_then(|model| model.0.labels().get(index));
    found.map_or(ptr::null(), |label| label.as_ptr())
}

/// Predicts rows of numbers, `n_rows * n_features` values, row after row. `output` is a value of `apr_output`. Models that compute
/// with 32-bit floats round the values to those. Free the table with `apr_table_free`.
///
/// # Safety
///
/// Pointers are null or valid; `rows` has that many values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_predict(
    model: *const apr_model,
    output: i32,
    rows: *const f64,
    n_rows: usize,
    n_features: usize,
    table: *mut apr_table,
) -> Status {
    run(|| {
        let (table, output) = (place(table)?, output_kind(output)?);
        let len = n_rows.checked_mul(n_features).ok_or_else(|| usage("there are too many rows"))?;
        // SAFETY: as the caller says.
        let (model, rows) = unsafe { (at(model)?, slice(rows, len)?) };
        give(model.0.predict(rows, n_rows, output)?, n_rows, table)
    })
}

/// Predicts texts, UTF-8 and each ended by a zero byte. Free the table with `apr_table_free`.
///
/// # Safety
///
/// Pointers are null or valid; `texts` has `n_texts` of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_predict_texts(
    model: *const apr_model,
    output: i32,
    texts: *const *const c_char,
    n_texts: usize,
    table: *mut apr_table,
) -> Status {
    run(|| {
        let (table, output) = (place(table)?, output_kind(output)?);
        // SAFETY: as the caller says.
        let (model, pointers) = unsafe { (at(model)?, slice(texts, n_texts)?) };
        let mut texts = Vec::with_capacity(n_texts);
        for &pointer in pointers {
            // SAFETY: null or valid, as the caller says.
            texts.push(unsafe { text(pointer)? }.ok_or_else(|| usage("a text is null"))?);
        }
        give(model.0.predict_texts(&texts, output)?, n_texts, table)
    })
}

/// Passes a table to C.
fn give(made: Table, n_rows: usize, table: *mut apr_table) -> Result<(), Failure> {
    let n_columns = made.n_columns;
    assert_eq!(n_rows.checked_mul(n_columns), Some(made.values.len()), "a row for each sample");
    let values = Box::into_raw(made.values.into_boxed_slice()).cast();
    // SAFETY: `place` has checked it; the caller passes memory for a table.
    unsafe { table.write(apr_table { n_rows, n_columns, values }) };
    Ok(())
}

/// Frees the values of a table and sets it to zero. Null and a table of zeros are allowed.
///
/// # Safety
///
/// `table` is null, or was written by `apr_predict` or `apr_predict_texts` and not changed, or is all zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apr_table_free(table: *mut apr_table) {
    // SAFETY: null or valid, as the caller says.
    let Some(table) = (unsafe { table.as_mut() }) else { return };
    if !table.values.is_null() {
        let values = ptr::slice_from_raw_parts_mut(table.values, table.n_rows * table.n_columns);
        // SAFETY: the values are those that `give` passed on, as many as the table says.
        drop(unsafe { Box::from_raw(values) });
    }
    *table = apr_table { n_rows: 0, n_columns: 0, values: ptr::null_mut() };
}
