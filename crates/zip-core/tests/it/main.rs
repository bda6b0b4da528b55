//! The public API: archives of every writer, and hostile ones.

mod archives;
mod properties;
mod records;
mod vectors;

/// A member of a made-up archive.
#[derive(Clone)]
struct Plan {
    name: Vec<u8>,
    data: Vec<u8>,
    /// Compressed length is that of `data`, if this is `None`.
    inflated: Option<Vec<u8>>,
    descriptor: bool,
}

fn stored(name: &str, data: &[u8]) -> Plan {
    Plan { name: name.into(), data: data.into(), inflated: None, descriptor: false }
}

/// Where things are in a made-up archive.
#[derive(Clone, Debug, Default)]
struct Places {
    locals: Vec<usize>,
    centrals: Vec<usize>,
    directory: usize,
    end: usize,
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

fn build(plans: &[Plan]) -> (Vec<u8>, Places) {
    let (mut out, mut central, mut places) = (Vec::new(), Vec::new(), Places::default());
    for plan in plans {
        let plain = plan.inflated.as_ref().unwrap_or(&plan.data);
        let method = if plan.inflated.is_some() { 8_u16 } else { 0 };
        let flags = if plan.descriptor { 8_u16 } else { 0 };
        let sizes = [crc32(plain), plan.data.len() as u32, plain.len() as u32];
        let header = |sizes: &[u32]| {
            let mut header = [20, 0].to_vec();
            header.extend([flags, method, 0, 0].iter().flat_map(|field| field.to_le_bytes()));
            header.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
            header.extend((plan.name.len() as u16).to_le_bytes());
            header.extend([0, 0]);
            header
        };
        let offset = out.len();
        places.locals.push(offset);
        places.centrals.push(central.len());
        out.extend(
            [
                b"PK\x03\x04",
                &header(if plan.descriptor { &[0; 3] } else { &sizes })[..],
                &plan.name,
                &plan.data,
            ]
            .concat(),
        );
        if plan.descriptor {
            out.extend(b"PK\x07\x08");
            out.extend(sizes.iter().flat_map(|size| size.to_le_bytes()));
        }
        central.extend(
            [b"PK\x01\x02\x14\0", &header(&sizes)[..], &[0; 10], &(offset as u32).to_le_bytes(), &plan.name]
                .concat(),
        );
    }
    places.directory = out.len();
    places.centrals.iter_mut().for_each(|at| *at += out.len());
    let count = (plans.len() as u16).to_le_bytes();
    let (len, at) = ((central.len() as u32).to_le_bytes(), (out.len() as u32).to_le_bytes());
    out.extend(central);
    places.end = out.len();
    out.extend([b"PK\x05\x06\0\0\0\0".as_slice(), &count, &count, &len, &at, &[0, 0]].concat());
    (out, places)
}

/// Deflated `aaaaaaaaaaaaaaaa`, by Python's zlib.
const DEFLATED: &[u8] = b"\x4b\x4c\x44\x05\x00";

/// Two stored members and a deflated one.
fn plans() -> [Plan; 3] {
    let deflated =
        Plan { inflated: Some(vec![b'a'; 16]), descriptor: true, ..stored("x/deflated", DEFLATED) };
    [stored("x/one", b"first"), stored("x/two", b"second one"), deflated]
}
