//! TensorFlow Lite.

use foreign_tensors::{Error, Model, NoCompanions, Options, Tensor, tflite};

#[test]
fn every_vector_gives_its_tensors_or_is_refused() {
    crate::vectors::check(&["tflite", "hostile/tflite"]);
}

#[test]
fn mutants_are_refused_or_read_within_bounds() {
    crate::mutants::survive(&["tflite", "hostile/tflite"]);
}

/// What a field of a table holds.
#[derive(Clone)]
enum Field {
    None,
    /// A number of so many bytes.
    Number(u64, usize),
    Table(Vec<Field>),
    Tables(Vec<Vec<Field>>),
    /// A vector of values of so many bytes each.
    Vector(Vec<u8>, usize),
}

use Field::{None as Missing, Number, Table, Tables, Vector};

fn text(text: &str) -> Field {
    Vector(text.as_bytes().to_vec(), 1)
}

fn shape(dims: &[i32]) -> Field {
    Vector(dims.iter().flat_map(|dim| dim.to_le_bytes()).collect(), 4)
}

/// Appends a table and returns where it is. Offsets lead forward, so what it refers to comes after it.
fn table(out: &mut Vec<u8>, fields: &[Field]) -> usize {
    let start = out.len();
    let widths = fields.iter().map(|field| match field {
        Missing => 0,
        Number(_, width) => *width,
        _ => 4,
    });
    let size = 4 + widths.clone().sum::<usize>();
    out.extend_from_slice(&((4 + 2 * fields.len()) as u16).to_le_bytes());
    out.extend_from_slice(&(size as u16).to_le_bytes());
    let mut offset = 4;
    for width in widths.clone() {
        out.extend_from_slice(&(if width == 0 { 0_u16 } else { offset }).to_le_bytes());
        offset += width as u16;
    }
    let at = out.len();
    out.extend_from_slice(&((at - start) as i32).to_le_bytes());
    out.resize(at + size, 0);
    let mut place = at + 4;
    for (field, width) in fields.iter().zip(widths) {
        match field {
            Missing => {}
            Number(number, width) => {
                out[place..place + width].copy_from_slice(&number.to_le_bytes()[..*width]);
            }
            Table(inner) => {
                let target = table(out, inner);
                refer(out, place, target);
            }
            Tables(tables) => {
                let target = out.len();
                out.extend_from_slice(&(tables.len() as u32).to_le_bytes());
                out.resize(target + 4 + 4 * tables.len(), 0);
                refer(out, place, target);
                for (idx, inner) in tables.iter().enumerate() {
                    let inner = table(out, inner);
                    refer(out, target + 4 + 4 * idx, inner);
                }
            }
            Vector(bytes, width) => {
                let target = out.len();
                out.extend_from_slice(&((bytes.len() / width) as u32).to_le_bytes());
                out.extend_from_slice(bytes);
                refer(out, place, target);
            }
        }
        place += width;
    }
    at
}

fn refer(out: &mut [u8], place: usize, target: usize) {
    out[place..place + 4].copy_from_slice(&((target - place) as u32).to_le_bytes());
}

/// A model of one graph of these tensors and these buffers.
fn file(tensors: &[Vec<Field>], buffers: &[Vec<Field>]) -> Vec<u8> {
    let mut out = b"\0\0\0\0TFL3".to_vec();
    let graph = vec![Tables(tensors.to_vec()), shape(&[0]), shape(&[0])];
    let fields = [Number(3, 4), Missing, Tables(vec![graph]), text("about"), Tables(buffers.to_vec())];
    let root = table(&mut out, &fields);
    refer(&mut out, 0, root);
    out
}

fn opened(tensors: &[Vec<Field>], buffers: &[Vec<Field>]) -> Result<Model, Error> {
    tflite::read(&file(tensors, buffers), &NoCompanions, &Options::default())
}

/// A tensor: shape, type, buffer, name.
fn tensor(dims: &[i32], dtype: u64, buffer: u64, name: &str) -> Vec<Field> {
    vec![shape(dims), Number(dtype, 1), Number(buffer, 4), text(name)]
}

fn buffer(bytes: &[u8]) -> Vec<Field> {
    vec![Vector(bytes.to_vec(), 1)]
}

#[test]
fn tensors_with_bytes_are_read() {
    let mut scaled = tensor(&[2], 9, 2, "scaled");
    let scales = Vector(0.5_f32.to_le_bytes().to_vec(), 4);
    scaled.push(Table(vec![
        Missing,
        Missing,
        scales,
        Vector(vec![3, 0, 0, 0, 0, 0, 0, 0], 8),
        Missing,
        Missing,
        Number(0, 4),
    ]));
    let tensors = [
        tensor(&[4], 0, 0, "input"),
        tensor(&[3], 3, 1, "b"),
        tensor(&[3], 3, 1, "a"),
        tensor(&[3], 9, 1, "a"),
        tensor(&[1, 3], 17, 2, "packed"),
        scaled,
        tensor(&[1], 5, 1, "words"),
    ];
    let bytes = file(&tensors, &[buffer(&[]), buffer(&[1, 2, 3]), buffer(&[0x21, 0x03])]);
    let model = tflite::read(&bytes, &NoCompanions, &Options::default()).unwrap();
    let names: Vec<&str> = model.tensors().iter().map(Tensor::name).collect();
    assert_eq!(names, ["a", "a.graph0.tensor3", "packed", "scaled"]);
    assert_eq!((model.aliases()[0].name.as_str(), model.aliases()[0].of.as_str()), ("b", "a"));
    assert_eq!(model.tensors()[0].to_vec(&model, &bytes).unwrap(), [1, 2, 3]);
    assert_eq!(model.tensors()[2].to_vec(&model, &bytes).unwrap(), [0x21, 0x03]);
    let entry =
        |name: &str| model.entries().iter().find(|(other, _)| other == name).map(|(_, json)| json.as_str());
    let scale = "{\"scales\":[0.5],\"zero_points\":[3],\"axis\":0}";
    assert_eq!(entry("tflite.quantization.scaled"), Some(scale));
    assert_eq!(entry("tflite.description"), Some("\"about\""));
    assert_eq!(entry("tflite.0.inputs"), Some("[{\"name\":\"input\",\"dtype\":\"F32\",\"shape\":[4]}]"));
    // The name that was changed, and the text.
    assert_eq!(model.notes().len(), 2);
}

#[test]
fn buffers_may_be_after_the_tables() {
    let tensors = [tensor(&[2], 3, 1, "w")];
    let after = |offset: u64, len: u64| vec![Missing, Number(offset, 8), Number(len, 8)];
    let len = file(&tensors, &[buffer(&[]), after(2, 2)]).len() as u64;
    let mut bytes = file(&tensors, &[buffer(&[]), after(len, 2)]);
    bytes.extend_from_slice(&[5, 6]);
    let model = tflite::read(&bytes, &NoCompanions, &Options::default()).unwrap();
    assert_eq!(model.tensors()[0].stored(), Some((0, len..len + 2)));
    for (offset, wanted) in [(len, 3), (len + 1, 2), (u64::MAX, 2), (2, u64::MAX)] {
        let error = opened(&tensors, &[buffer(&[]), after(offset, wanted)]).unwrap_err();
        assert_eq!(error.code(), "ft-malformed", "{offset} {wanted}");
    }
    let both = vec![Vector(vec![1, 2], 1), Number(8, 8), Number(2, 8)];
    assert_eq!(opened(&tensors, &[buffer(&[]), both]).unwrap_err().code(), "ft-malformed");
}

#[test]
fn what_does_not_fit_is_refused() {
    let buffers = [buffer(&[]), buffer(&[1, 2, 3, 4])];
    let long = vec![1; 65];
    for (tensor, code) in [
        (tensor(&[3], 3, 1, "w"), "ft-view"),
        (tensor(&[5], 3, 1, "w"), "ft-view"),
        (tensor(&[-1], 3, 1, "w"), "ft-malformed"),
        (tensor(&[4], 3, 2, "w"), "ft-malformed"),
        (tensor(&[i32::MAX; 3], 3, 1, "w"), "ft-view"),
        (tensor(&long, 3, 1, "w"), "ft-limit"),
    ] {
        assert_eq!(opened(&[tensor], &buffers).unwrap_err().code(), code);
    }
    let mut sparse = tensor(&[4], 3, 1, "w");
    sparse.extend([Missing, Missing, Table(Vec::new())]);
    for tensor in [sparse, tensor(&[1], 13, 1, "w"), tensor(&[1], 99, 1, "w")] {
        let model = opened(&[tensor], &buffers).unwrap();
        assert_eq!(model.check().unwrap_err().code(), "ft-tensor-unsupported");
    }
}

#[test]
fn one_table_as_many_tensors_stays_within_the_bound() {
    let tensors = vec![tensor(&[1], 3, 1, "w"); 2];
    let mut bytes = file(&tensors, &[buffer(&[]), buffer(&[1])]);
    // A graph whose tensors are all the same table, at the end of the file.
    let count = 1_usize << 18;
    let graph = bytes.len();
    bytes.extend_from_slice(&[6, 0, 8, 0, 4, 0, 6, 0, 0, 0, 4, 0, 0, 0]);
    bytes.extend_from_slice(&(count as u32).to_le_bytes());
    let end = bytes.len() + 4 * count;
    for at in (bytes.len()..end).step_by(4) {
        bytes.extend_from_slice(&((end + 12 - at) as u32).to_le_bytes());
    }
    // Shape and name are missing: type 3, buffer 1.
    bytes.extend_from_slice(&[12, 0, 9, 0, 0, 0, 8, 0, 4, 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 3]);
    let graphs = bytes.windows(4).position(|bytes| bytes == [1, 0, 0, 0]).expect("a vector of one graph");
    let offset = (graph + 6 - graphs - 4) as u32;
    bytes[graphs + 4..graphs + 8].copy_from_slice(&offset.to_le_bytes());
    crate::mutants::many_parts("tensors", &bytes);
}
