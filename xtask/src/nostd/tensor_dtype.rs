use tensor_dtype::{Dtype, Elements};

fn call(bytes: &[u8]) -> usize {
    let dtype = core::str::from_utf8(bytes).ok().and_then(Dtype::from_name);
    let len = dtype.and_then(|dtype| dtype.byte_len(&[bytes.len()]).ok()).unwrap_or_default();
    Elements::<f32>::new(bytes).fold(len as usize, |sum, value| sum ^ value.to_bits() as usize)
}
