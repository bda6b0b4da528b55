//! The formats, each by the library that reads and writes it here.

use std::fs::File;
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use apr_container::{Compression, LoadOptions, ModelType, PayloadLayout, SaveOptions, Serde, v2};
use apr_crypto::{Access, OsRandom, RecipientSecret};
use apr_sealed::{Part, Plan, SealOptions, Sealer};
use foreign_tensors::numpy;
use gguf_core::GgufBuilder;
use model_file::{ModelFile, OpenOptions};
use read_at::FileSource;
use st_core::{TensorSpec, WriteOptions};
use tensor_dtype::{AprType, Dtype};
use zip_core::StoredArchive;

use super::arrays::{Array, Arrays};
use crate::error::{CODE_IO, CODE_NOT_CARRIED, Failure};

/// The values of an array.
type Values = Vec<f32>;

/// How a format writes and reads. Readers know names and shapes only where the file does not have them.
pub(super) struct Format {
    pub(super) name: &'static str,
    /// What the file does not keep of named arrays.
    pub(super) lost: &'static str,
    pub(super) write: fn(&Arrays, &Path) -> Result<(), Failure>,
    pub(super) read: fn(&Arrays, &Path) -> Result<Vec<Values>, Failure>,
    /// The array of that number alone.
    pub(super) read_one: fn(&Arrays, usize, &Path) -> Result<Values, Failure>,
}

impl core::fmt::Debug for Format {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name)
    }
}

/// In the order of the table.
pub(super) const FORMATS: &[Format] = &[
    Format {
        name: "json",
        lost: "types, NaN, infinities",
        write: |arrays, path| {
            let mut out = create(path)?;
            serde_json::to_writer(&mut out, &arrays.arrays).map_err(failed)?;
            out.flush().map_err(failed)
        },
        read: |_, path| Ok(values_of(serde_json::from_slice(&bytes(path)?).map_err(failed)?)),
        read_one: |_, one, path| pick(serde_json::from_slice(&bytes(path)?).map_err(failed)?, one),
    },
    Format {
        name: "messagepack",
        lost: "types of arrays: each value has its own",
        write: |arrays, path| {
            let mut out = create(path)?;
            rmp_serde::encode::write(&mut out, &arrays.arrays).map_err(failed)?;
            out.flush().map_err(failed)
        },
        read: |_, path| Ok(values_of(rmp_serde::from_slice(&bytes(path)?).map_err(failed)?)),
        read_one: |_, one, path| pick(rmp_serde::from_slice(&bytes(path)?).map_err(failed)?, one),
    },
    Format {
        name: "bincode",
        lost: "everything but the values: the program knows what they are",
        write: |arrays, path| {
            let bytes =
                apr_container::encode_payload_to_vec(&Serde(&arrays.arrays), PayloadLayout::default())?;
            std::fs::write(path, bytes).map_err(failed)
        },
        read: |_, path| bincode(path).map(values_of),
        read_one: |_, one, path| pick(bincode(path)?, one),
    },
    Format {
        name: "raw",
        lost: "names, shapes, types, byte order",
        write: |arrays, path| {
            let mut out = File::create(path).map_err(failed)?;
            arrays.bytes.iter().try_for_each(|bytes| out.write_all(bytes)).map_err(failed)
        },
        read: |arrays, path| {
            let mut file = File::open(path).map_err(failed)?;
            arrays.bytes.iter().map(|bytes| exactly(&mut file, bytes.len())).collect()
        },
        read_one: |arrays, one, path| {
            let mut file = File::open(path).map_err(failed)?;
            let before: u64 = arrays.bytes.iter().take(one).map(|bytes| bytes.len() as u64).sum();
            file.seek(SeekFrom::Start(before)).map_err(failed)?;
            exactly(&mut file, arrays.bytes.get(one).map_or(0, Vec::len))
        },
    },
    Format {
        name: "npz",
        lost: "metadata, bfloat16",
        write: write_npz,
        read: read_model,
        read_one: read_tensor,
    },
    Format {
        name: "safetensors",
        lost: "nothing; metadata are texts",
        write: |arrays, path| {
            let layout = safetensors(arrays)?;
            layout.write_to(&mut File::create(path).map_err(failed)?, &arrays.slices()).map_err(failed)
        },
        read: read_model,
        read_one: read_tensor,
    },
    Format {
        name: "gguf",
        lost: "scalars, more than four dimensions, booleans",
        write: write_gguf,
        read: read_model,
        read_one: read_tensor,
    },
    Format {
        name: "apr-v2",
        lost: "more than eight dimensions",
        write: |arrays, path| {
            let shapes = shapes(arrays);
            let specs = arrays.arrays.iter().zip(&shapes);
            let specs = specs.map(|(array, shape)| v2::TensorSpec::new(&array.name, AprType::F32, shape));
            let layout = v2::Layout::new(specs, &v2::WriteOptions::new(v2::Metadata::default()))?;
            Ok(layout.write_to(&mut File::create(path).map_err(failed)?, &arrays.slices())?)
        },
        read: read_model,
        read_one: read_tensor,
    },
    Format {
        name: "apr",
        lost: "names of fields and types: the model type says what they are",
        write: |arrays, path| write_apr(arrays, path, Compression::None),
        read: read_apr,
        read_one: read_apr_one,
    },
    Format {
        name: "apr-lz4",
        lost: "as apr",
        write: |arrays, path| write_apr(arrays, path, Compression::LZ4),
        read: read_apr,
        read_one: read_apr_one,
    },
    Format {
        name: "apr-zstd",
        lost: "as apr",
        write: |arrays, path| write_apr(arrays, path, Compression::ZstdDefault),
        read: read_apr,
        read_one: read_apr_one,
    },
    Format {
        name: "sealed",
        lost: "nothing: a safetensors file, encrypted",
        write: write_sealed,
        read: |arrays, path| {
            whole(arrays, &opened(path, &OpenOptions::new().with_access(access(&secret())))?)
        },
        read_one: |arrays, one, path| {
            tensor(arrays, one, &opened(path, &OpenOptions::new().with_access(access(&secret())))?)
        },
    },
    #[cfg(feature = "tables")]
    Format {
        name: "arrow",
        lost: "shapes; all columns have one length",
        write: |arrays, path| columns::write(arrays, path, apr_table::TableFormat::ArrowFile),
        read: |arrays, path| columns::read(arrays, columns::arrow(path)?),
        read_one: |arrays, one, path| columns::read_one(arrays, one, columns::arrow(path)?),
    },
    #[cfg(feature = "tables")]
    Format {
        name: "parquet",
        lost: "shapes; all columns have one length",
        write: |arrays, path| columns::write(arrays, path, apr_table::TableFormat::Parquet),
        read: |arrays, path| columns::read(arrays, columns::parquet(path)?),
        read_one: |arrays, one, path| columns::read_one(arrays, one, columns::parquet(path)?),
    },
];

fn failed(error: impl core::fmt::Display) -> Failure {
    Failure::new(CODE_IO, error.to_string())
}

fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path).map(BufWriter::new).map_err(failed)
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(failed)
}

fn values_of(arrays: Vec<Array>) -> Vec<Values> {
    arrays.into_iter().map(|array| array.values).collect()
}

/// One of the arrays of a file that can only be read whole.
fn pick(arrays: Vec<Array>, one: usize) -> Result<Values, Failure> {
    let array = arrays.into_iter().nth(one);
    array.map(|array| array.values).ok_or_else(|| failed("the file has fewer arrays than were written"))
}

fn bincode(path: &Path) -> Result<Vec<Array>, Failure> {
    let bytes = bytes(path)?;
    let (layout, model_type) = (PayloadLayout::default(), ModelType::Custom);
    Ok(apr_container::decode_payload_from_slice::<Serde<_>>(&bytes, layout, model_type)?.0)
}

/// The next bytes of a file as floats.
fn exactly(file: &mut File, len: usize) -> Result<Values, Failure> {
    let mut bytes = vec![0; len];
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn shapes(arrays: &Arrays) -> Vec<Vec<u64>> {
    arrays.arrays.iter().map(|array| array.shape.iter().map(|&dim| dim as u64).collect()).collect()
}

fn write_npz(arrays: &Arrays, path: &Path) -> Result<(), Failure> {
    let mut out = create(path)?;
    let mut archive = StoredArchive::default();
    for (Array { name, shape, .. }, bytes) in arrays.arrays.iter().zip(&arrays.bytes) {
        let header = numpy::header(Dtype::F32, shape).ok_or_else(|| failed("NumPy has no 32-bit floats"))?;
        let mut crc32 = crc32fast::Hasher::new();
        crc32.update(&header);
        crc32.update(bytes);
        let len = (header.len() + bytes.len()) as u64;
        let member = archive.member(&format!("{name}.npy"), len, crc32.finalize());
        let member =
            member.ok_or_else(|| Failure::new(CODE_NOT_CARRIED, "a name is too long for an archive"))?;
        [&member, &header, bytes].iter().try_for_each(|part| out.write_all(part)).map_err(failed)?;
    }
    out.write_all(&archive.end()).and_then(|()| out.flush()).map_err(failed)
}

fn safetensors(arrays: &Arrays) -> Result<st_core::Layout, Failure> {
    fn spec(array: &Array) -> TensorSpec<'_> {
        TensorSpec { name: &array.name, dtype: Dtype::F32, shape: &array.shape }
    }
    Ok(st_core::Layout::new(arrays.arrays.iter().map(spec), &WriteOptions::default())?)
}

fn write_gguf(arrays: &Arrays, path: &Path) -> Result<(), Failure> {
    let mut builder = GgufBuilder::new();
    for (array, shape) in arrays.arrays.iter().zip(shapes(arrays)) {
        builder.add_tensor(&array.name, Dtype::F32, &shape)?;
    }
    let layout = builder.layout()?;
    let mut out = create(path)?;
    layout.write_to(&mut out, &arrays.slices()).and_then(|()| out.flush()).map_err(failed)
}

fn opened(path: &Path, options: &OpenOptions<'_>) -> Result<ModelFile<FileSource>, Failure> {
    let source = FileSource::new(File::open(path).map_err(failed)?).map_err(failed)?;
    Ok(ModelFile::read(source, options)?)
}

fn whole(arrays: &Arrays, file: &ModelFile<FileSource>) -> Result<Vec<Values>, Failure> {
    (0..arrays.arrays.len()).map(|one| tensor(arrays, one, file)).collect()
}

fn tensor(arrays: &Arrays, one: usize, file: &ModelFile<FileSource>) -> Result<Values, Failure> {
    let name = arrays.arrays.get(one).map_or("", |array| array.name.as_str());
    Ok(file.tensor(name)?.to_f32()?)
}

fn read_model(arrays: &Arrays, path: &Path) -> Result<Vec<Values>, Failure> {
    whole(arrays, &opened(path, &OpenOptions::new())?)
}

fn read_tensor(arrays: &Arrays, one: usize, path: &Path) -> Result<Values, Failure> {
    tensor(arrays, one, &opened(path, &OpenOptions::new())?)
}

fn write_apr(arrays: &Arrays, path: &Path, compression: Compression) -> Result<(), Failure> {
    let options = SaveOptions { compression, ..SaveOptions::default() };
    let mut file = File::create(path).map_err(failed)?;
    Ok(apr_container::write_to(&Serde(&arrays.arrays), ModelType::Custom, &mut file, &options)?)
}

fn load_apr(path: &Path) -> Result<Vec<Array>, Failure> {
    let bytes = bytes(path)?;
    let options = LoadOptions::default();
    Ok(apr_container::load_from_bytes_with::<Serde<_>>(&bytes, ModelType::Custom, options)?.0)
}

fn read_apr(_: &Arrays, path: &Path) -> Result<Vec<Values>, Failure> {
    load_apr(path).map(values_of)
}

fn read_apr_one(_: &Arrays, one: usize, path: &Path) -> Result<Values, Failure> {
    pick(load_apr(path)?, one)
}

/// A key that is known to everyone: only times are of interest.
fn secret() -> RecipientSecret {
    RecipientSecret::from_bytes(&[7; RecipientSecret::LEN])
}

fn access(secret: &RecipientSecret) -> Access<'_> {
    Access::default().with_recipient(secret)
}

fn write_sealed(arrays: &Arrays, path: &Path) -> Result<(), Failure> {
    let layout = safetensors(arrays)?;
    let shapes = shapes(arrays);
    let mut at = layout.header_bytes().len() as u64;
    let mut parts = Vec::new();
    for planned in layout.tensors() {
        let (array, shape) = (&arrays.arrays[planned.input_idx], shapes[planned.input_idx].clone());
        parts.push((at, Part::tensor(&array.name, "F32", shape, planned.byte_len)));
        at += planned.byte_len;
    }
    let plan = Plan::of_file(layout.file_len(), parts)?;
    let options = SealOptions::default().for_recipient(secret().public());
    let mut sealer = Sealer::new(File::create(path).map_err(failed)?, &plan, &options, &mut OsRandom)?;
    layout.write_to(&mut sealer, &arrays.slices()).map_err(failed)?;
    sealer.finish()?;
    Ok(())
}

/// Arrays as columns of a table.
#[cfg(feature = "tables")]
mod columns {
    use apr_table::{
        Accepted, CellType, Cells, ColumnSpec, Table, TableFormat, TableWriter, Values as Column,
    };

    use super::{Arrays, CODE_NOT_CARRIED, Failure, File, Path, Values, failed};

    /// Rows given to the writer at once.
    const PIECE: usize = 1 << 16;

    pub(super) fn write(arrays: &Arrays, path: &Path, format: TableFormat) -> Result<(), Failure> {
        let mut lens = arrays.arrays.iter().map(|array| array.values.len());
        let first = lens.next();
        if lens.any(|len| Some(len) != first) {
            return Err(Failure::new(CODE_NOT_CARRIED, "the arrays have different lengths"));
        }
        let spec =
            |name: &str| ColumnSpec { name: name.to_owned(), cell_type: CellType::F32, is_nullable: false };
        let specs = arrays.arrays.iter().map(|array| spec(&array.name)).collect();
        let mut writer = TableWriter::new(File::create(path).map_err(failed)?, format, specs)?;
        // A piece at a time: the writer takes vectors, and the arrays stay.
        for begin in (0..first.unwrap_or(0)).step_by(PIECE) {
            let cells = arrays.arrays.iter().map(|array| {
                let piece = array.values.iter().skip(begin).take(PIECE).copied().collect();
                Cells::from(Column::F32(piece))
            });
            writer.write(cells.collect())?;
        }
        writer.finish()?;
        Ok(())
    }

    pub(super) fn arrow(path: &Path) -> Result<Table<'static>, Failure> {
        Ok(Table::arrow(File::open(path).map_err(failed)?)?)
    }

    pub(super) fn parquet(path: &Path) -> Result<Table<'static>, Failure> {
        Ok(Table::parquet(File::open(path).map_err(failed)?)?)
    }

    pub(super) fn read(arrays: &Arrays, table: Table<'_>) -> Result<Vec<Values>, Failure> {
        let all: Vec<usize> = (0..arrays.arrays.len()).collect();
        chosen(&all, table)
    }

    pub(super) fn read_one(_: &Arrays, one: usize, table: Table<'_>) -> Result<Values, Failure> {
        Ok(chosen(&[one], table)?.pop().unwrap_or_default())
    }

    fn chosen(wanted: &[usize], mut table: Table<'_>) -> Result<Vec<Values>, Failure> {
        table.choose(wanted)?;
        let mut columns = vec![Values::new(); wanted.len()];
        while let Some(batch) = table.next_batch()? {
            for (&column, values) in wanted.iter().zip(&mut columns) {
                let accepted = Accepted { missing: true, infinite: true };
                batch.append_rows(&[column], accepted, values).map_err(failed)?;
            }
        }
        Ok(columns)
    }
}
