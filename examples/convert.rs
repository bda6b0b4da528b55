//! Converts a safetensors model to GGUF, in memory.

use core::error::Error;

use gguf_core::{Gguf, GgufBuilder};
use st_core::{Dtype, SafeTensors, TensorView, WriteOptions};

fn main() -> Result<(), Box<dyn Error>> {
    let weight: Vec<u8> = (0..6).flat_map(|value: u8| f32::from(value).to_le_bytes()).collect();
    let source = st_core::to_vec(
        &[("weight", TensorView::new(Dtype::F32, &[2, 3], &weight)?)],
        &WriteOptions::default(),
    )?;

    let tensors = SafeTensors::from_bytes(&source)?;
    let mut builder = GgufBuilder::new();
    builder.set("general.architecture", "example")?;
    let mut data = Vec::new();
    for (name, tensor) in tensors.iter() {
        let shape: Vec<u64> = tensor.shape().iter().map(|&dim| dim as u64).collect();
        builder.add_tensor(name, tensor.dtype(), &shape)?;
        data.push(tensor.data());
    }
    let converted = builder.layout()?.to_vec(&data)?;

    let gguf = Gguf::from_bytes(&converted)?;
    let info = gguf.tensor("weight")?;
    println!("{} bytes of GGUF, weight {:?}", converted.len(), info.shape().collect::<Vec<_>>());
    assert_eq!(gguf.tensor_data(info), Some(weight.as_slice()));
    Ok(())
}

#[test]
fn runs() {
    main().expect("the example succeeds");
}
