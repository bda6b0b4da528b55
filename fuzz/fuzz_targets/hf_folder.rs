//! Any text as the configuration of a folder of the vectors, whose tensors are changed by what comes after a zero byte: refused with
//! a code of the crate, or keys and tensors whose values come from inside the files, and the way back from them.

#![no_main]

use apr_fuzz::Choices;
use apr_fuzz::hf::FOLDERS;
use hf_gguf::{
    Conversion, Error, ErrorKind, Options, OutputType, Parts, Producer, Restoration, RestoreOptions,
    SourceTensor, Target, Texts,
};
use libfuzzer_sys::fuzz_target;

/// Most elements of a model whose values are made.
const MADE: u64 = 1 << 18;

fuzz_target!(|input: &[u8]| {
    let end = input.iter().position(|byte| *byte == 0).unwrap_or(input.len());
    let (config, rest) = input.split_at(end);
    let choices = &mut Choices::new(rest);
    // That of the class that the text names.
    let names = |class: &str| config.windows(class.len()).any(|window| window == class.as_bytes());
    let chosen = FOLDERS.iter().find(|folder| names(&folder.class));
    let folder = chosen.unwrap_or_else(|| &FOLDERS[choices.below(FOLDERS.len())]);
    let mut texts = folder.texts.clone();
    texts.insert("config.json", config.to_vec());
    let (names, mut tables): (Vec<String>, Vec<Vec<SourceTensor>>) = folder.parts.iter().cloned().unzip();
    for _ in 0..choices.below(8) {
        let part = choices.below(tables.len());
        change(choices, &mut tables[part]);
    }
    let mut options = Options::default();
    options.target = match OutputType::ALL.get(choices.below(8)) {
        Some((_, output_type)) => Target::Type(*output_type),
        None => Target::Auto,
    };
    let parts = Parts::find(&texts, names.iter().map(String::as_str));
    match parts.and_then(|parts| Conversion::new(&texts, &parts, &tables, &options)) {
        Ok(conversion) => {
            make(&conversion, &tables);
            restore(&conversion);
        }
        Err(error) => sound(&error),
    }
});

fn change(choices: &mut Choices<'_>, table: &mut Vec<SourceTensor>) {
    if table.is_empty() {
        return;
    }
    let place = choices.below(table.len());
    let byte = choices.byte();
    let Some(tensor) = table.get_mut(place) else { return };
    match byte % 8 {
        0 => tensor.shape.reverse(),
        1 => tensor.shape.push(u64::from(byte)),
        2 => drop(tensor.shape.pop()),
        3 => tensor.shape.iter_mut().for_each(|len| *len <<= byte % 61),
        4 => tensor.dtype = hf_gguf::Dtype::ELEMENTS[choices.below(22)],
        5 => tensor.name.push(char::from(choices.byte())),
        6 => drop(table.swap_remove(place)),
        _ => {
            let copy = tensor.clone();
            table.push(SourceTensor { name: copy.name.replace('0', "1"), ..copy });
        }
    }
}

/// Makes every tensor, of values that are all the same byte.
fn make(conversion: &Conversion, tables: &[Vec<SourceTensor>]) {
    conversion.builder().and_then(|builder| Ok(builder.layout()?)).expect("what was planned has a layout");
    if conversion.parameters().total > MADE {
        return;
    }
    let mut producer = Producer::new();
    for output in conversion.outputs() {
        let mut count = 0;
        let made = producer.run(
            output,
            conversion.inputs(),
            |number, offset, out| {
                let (part, idx) = conversion.sources()[number];
                let tensor = &tables[part][idx];
                let len = tensor.shape.iter().product::<u64>() * tensor.dtype.block_bytes() as u64;
                assert!(offset + out.len() as u64 <= len, "{}: {offset} {}", tensor.name, out.len());
                out.fill(0x3c);
                Ok::<(), Error>(())
            },
            |piece, elements| {
                let bytes = elements / output.dtype.block_len() as u64 * output.dtype.block_bytes() as u64;
                assert_eq!(piece.len() as u64, bytes);
                count += elements;
                Ok(())
            },
        );
        match made {
            Ok(()) => assert_eq!(count, output.count(), "{}", output.name),
            Err(error) => sound(&error),
        }
    }
}

/// Plans the folder of the file, and makes its tensors of values that are all the same byte.
fn restore(conversion: &Conversion) {
    let table = conversion.outputs().iter().map(|output| SourceTensor {
        name: output.name.clone(),
        dtype: output.dtype,
        shape: output.shape.clone(),
    });
    let table: Vec<SourceTensor> = table.collect();
    let values = Restoration::needed(&table).into_iter().map(|number| {
        let tensor = &table[number];
        (tensor.name.clone(), vec![1.0; tensor.shape.iter().product::<u64>() as usize])
    });
    let restored = Restoration::new(conversion.keys(), &table, &values.collect(), &RestoreOptions::default());
    let restoration = match restored {
        Ok(restoration) => restoration,
        Err(error) => return sound(&error),
    };
    assert!(restoration.texts().all(|(name, _)| Texts::max_len(name).is_some()));
    if conversion.parameters().total > MADE {
        return;
    }
    let mut producer = Producer::new();
    for output in restoration.parts().iter().flat_map(|part| &part.tensors) {
        let mut count = 0;
        let made = producer.run(
            output,
            restoration.inputs(),
            |number, offset, out| {
                if let Some(tensor) = table.get(number) {
                    let width =
                        if tensor.dtype.is_quantized() { 4 } else { tensor.dtype.block_bytes() as u64 };
                    let len = tensor.shape.iter().product::<u64>() * width;
                    assert!(offset + out.len() as u64 <= len, "{}: {offset} {}", tensor.name, out.len());
                }
                out.fill(0x3c);
                Ok::<(), Error>(())
            },
            |_, elements| {
                count += elements;
                Ok(())
            },
        );
        match made {
            Ok(()) => assert_eq!(count, output.count(), "{}", output.name),
            Err(error) => sound(&error),
        }
    }
}

fn sound(error: &Error) {
    let is_own = ErrorKind::CODES.contains(&error.code());
    assert!(is_own || error.code().starts_with("gg-") || error.code().starts_with("q-"), "{}", error.code());
}
