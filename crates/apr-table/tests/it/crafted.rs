//! Parquet files that declare what they do not have.

use apr_table::{Error, ErrorKind, Table};

/// A structure of Thrift's compact protocol, field by field.
#[derive(Clone, Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

impl Struct {
    fn field(mut self, number: u8, kind: u8, value: &[u8]) -> Self {
        self.bytes.push((number - self.last) << 4 | kind);
        self.bytes.extend(value);
        self.last = number;
        self
    }

    fn int(self, number: u8, value: i64) -> Self {
        self.field(number, 5, &varint((value << 1 ^ value >> 63) as u64))
    }

    fn text(self, number: u8, text: &str) -> Self {
        self.field(number, 8, &[&varint(text.len() as u64), text.as_bytes()].concat())
    }

    fn list(self, number: u8, kind: u8, items: &[Vec<u8>]) -> Self {
        self.field(number, 9, &[vec![0xf0 | kind], varint(items.len() as u64), items.concat()].concat())
    }

    fn child(self, number: u8, child: Self) -> Self {
        self.field(number, 12, &child.end())
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn group(n_children: i64) -> Vec<u8> {
    Struct::default().int(3, 0).text(4, "g").int(5, n_children).end()
}

fn column() -> Vec<u8> {
    Struct::default().int(1, 1).int(3, 0).text(4, "x").end()
}

const GZIP: i64 = 2;
const ZSTD: i64 = 6;

/// A file of these pages in one column, with this schema.
fn file(schema: &[Vec<u8>], pages: &[u8]) -> Vec<u8> {
    compressed_file(ZSTD, schema, pages)
}

fn compressed_file(codec: i64, schema: &[Vec<u8>], pages: &[u8]) -> Vec<u8> {
    let len = pages.len() as i64;
    let chunk = Struct::default()
        .int(1, 1)
        .list(2, 5, &[vec![0]])
        .list(3, 8, &[[&[1], &b"x"[..]].concat()])
        .int(4, codec)
        .field(5, 6, &varint(20))
        .field(6, 6, &varint(len as u64 * 2))
        .field(7, 6, &varint(len as u64 * 2))
        .field(9, 6, &varint(8));
    let chunk = Struct::default().field(2, 6, &varint(8)).child(3, chunk).end();
    let rows =
        Struct::default().list(1, 12, &[chunk]).field(2, 6, &varint(200)).field(3, 6, &varint(20)).end();
    let footer =
        Struct::default().int(1, 1).list(2, 12, schema).field(3, 6, &varint(20)).list(4, 12, &[rows]).end();
    let len = (footer.len() as u32).to_le_bytes();
    [&b"PAR1"[..], pages, &footer, &len, b"PAR1"].concat()
}

/// A footer with a row group of two columns of 20 values each, of which `change` changes something: the types and numbers of values of the chunks, the
/// rows of the group and of the file.
fn footer(change: impl FnOnce(&mut [i64; 6])) -> Vec<u8> {
    let mut values = [1, 1, 20, 20, 20, 20];
    change(&mut values);
    let [first, second, n_first, n_second, of_group, of_file] = values;
    let chunk = |kind: i64, n_values: i64| {
        let meta = Struct::default()
            .int(1, kind)
            .list(2, 5, &[vec![0]])
            .list(3, 8, &[[&[1], &b"x"[..]].concat()])
            .int(4, 0)
            .field(5, 6, &varint(n_values as u64 * 2))
            .field(6, 6, &varint(0))
            .field(7, 6, &varint(0))
            .field(9, 6, &varint(8));
        Struct::default().field(2, 6, &varint(8)).child(3, meta).end()
    };
    let chunks = [chunk(first, n_first), chunk(second, n_second)];
    let rows = Struct::default().list(1, 12, &chunks).field(2, 6, &varint(0));
    let rows = rows.field(3, 6, &varint(of_group as u64 * 2)).end();
    let columns = [group(2), column(), column()];
    let footer = Struct::default().int(1, 1).list(2, 12, &columns);
    let footer = footer.field(3, 6, &varint(of_file as u64 * 2)).list(4, 12, &[rows]).end();
    let len = (footer.len() as u32).to_le_bytes();
    [&b"PAR1"[..], &footer, &len, b"PAR1"].concat()
}

#[test]
fn parts_of_a_footer_that_disagree_are_refused() {
    let refused = |bytes| Table::parquet_in_memory(bytes).map(drop).map_err(|error| error.to_string());
    assert_eq!(refused(footer(|_| ())), Ok(()));
    for (change, what) in [
        // 32-bit floats in a column of 32-bit integers.
        ((|values| values[1] = 4) as fn(&mut [i64; 6]), "are of another type than the schema says"),
        (|values| values[3] = 19, "have different numbers of values"),
        (|values| values[4] = 21, "have another number of values than it has rows"),
        (|values| values[5] = 40, "have another number of rows than the file"),
        (
            |values| {
                values[4] = 10;
                values[5] = 10;
            },
            "have another number of values than it has rows",
        ),
    ] {
        let error = refused(footer(change)).unwrap_err();
        assert!(error.contains("contradicts itself") && error.contains(what), "{what}: {error}");
    }
}

/// A page whose header declares this.
fn page(kind: i64, decompressed: i64, of_kind: (u8, Struct)) -> Vec<u8> {
    page_of(&[0; 16], kind, decompressed, of_kind)
}

fn page_of(content: &[u8], kind: i64, decompressed: i64, of_kind: (u8, Struct)) -> Vec<u8> {
    let header = Struct::default().int(1, kind).int(2, decompressed).int(3, content.len() as i64);
    [header.child(of_kind.0, of_kind.1).end(), content.to_vec()].concat()
}

fn data_page(decompressed: i64, encoding: i64) -> Vec<u8> {
    page(0, decompressed, (5, Struct::default().int(1, 10).int(2, encoding).int(3, 3).int(4, 3)))
}

fn refusal(bytes: Vec<u8>) -> Error {
    let mut table = match Table::parquet_in_memory(bytes) {
        Ok(table) => table,
        Err(error) => return error,
    };
    loop {
        match table.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("not refused"),
            Err(error) => return error,
        }
    }
}

/// 1,000 bytes in a block that is not compressed.
#[test]
fn pages_of_gzip_have_the_length_that_they_declare() {
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 1, 0xe8, 3, 0x17, 0xfc];
    gzip.extend([0; 1000]);
    gzip.extend([0; 8]);
    for declared in [80, 2000] {
        let of_data = (5, Struct::default().int(1, 20).int(2, 0).int(3, 3).int(4, 3));
        let page = page_of(&gzip, 0, declared, of_data);
        let error = refusal(compressed_file(GZIP, &[group(1), column()], &page));
        assert_eq!(error.code(), "tb-parquet", "{declared}: {error}");
    }
}

#[test]
fn what_a_file_declares_is_bounded_before_memory_is_taken() {
    const PLAIN: i64 = 0;
    let table = [group(1), column()];
    let nested: Vec<_> = (0..100).map(|_| group(1)).chain([column()]).collect();
    let dictionary = |n_values| (7, Struct::default().int(1, n_values).int(2, PLAIN));
    let first_page = Some(4);
    for (name, bytes, code, offset) in [
        ("children", file(&[group(i64::from(i32::MAX)), column()], &[]), "tb-parquet", None),
        ("a negative number of children", file(&[group(-1), column()], &[]), "tb-parquet", None),
        ("groups in groups", file(&nested, &[]), "tb-parquet", None),
        ("decompressed", file(&table, &data_page(i64::from(i32::MAX), PLAIN)), "tb-limit", first_page),
        ("a negative length", file(&table, &data_page(-1, PLAIN)), "tb-parquet", first_page),
        ("delta lengths", file(&table, &data_page(100, 6)), "tb-encoding", first_page),
        ("delta strings", file(&table, &data_page(100, 7)), "tb-encoding", first_page),
        ("a dictionary", file(&table, &page(2, 100, dictionary(i64::MAX >> 33))), "tb-parquet", first_page),
        ("zeros that are not zstd", file(&table, &data_page(100, PLAIN)), "tb-parquet", None),
        ("a page header without end", file(&table, &[0x15; 3000]), "tb-parquet", first_page),
    ] {
        let error = refusal(bytes);
        assert_eq!(error.kind().code(), code, "{name}: {error}");
        if offset.is_some() {
            assert_eq!(error.offset(), offset, "{name}: {error}");
        }
    }
}

#[test]
fn encrypted_files_are_named() {
    let mut bytes = file(&[group(1), column()], &[]);
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(b"PARE");
    assert_eq!(*refusal(bytes).kind(), ErrorKind::Encrypted {});
    assert_eq!(*refusal(b"PAR1".to_vec()).kind(), ErrorKind::Truncated { expected: 12, found: 4 });
}
