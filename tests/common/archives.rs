//! NumPy's arrays and zip archives, made byte by byte.

use std::io::Write;

pub fn npy_in(descr: &str, by_columns: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if by_columns { "True" } else { "False" };
    let head = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(head.len() as u16).to_le_bytes()[..], head.as_bytes(), data].concat()
}

pub fn npy(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy_in(descr, false, shape, data)
}

/// A zip archive, its members stored or deflated.
pub fn zip(members: &[(&str, Vec<u8>)], deflate: bool) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for (name, data) in members {
        let packed = if deflate {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(data).unwrap();
            encoder.finish().unwrap()
        } else {
            data.clone()
        };
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let common = [
            &[20, 0, 0, 0, if deflate { 8 } else { 0 }, 0, 0, 0, 0, 0][..],
            &crc.sum().to_le_bytes(),
            &(packed.len() as u32).to_le_bytes(),
            &(data.len() as u32).to_le_bytes(),
            &(name.len() as u16).to_le_bytes(),
            &[0, 0],
        ]
        .concat();
        let place = (file.len() as u32).to_le_bytes();
        list.extend([&b"PK\x01\x02\x14\x00"[..], &common, &[0; 10], &place, name.as_bytes()].concat());
        file.extend([&b"PK\x03\x04"[..], &common, name.as_bytes(), &packed].concat());
    }
    let (place, size) = ((file.len() as u32).to_le_bytes(), (list.len() as u32).to_le_bytes());
    let count = (members.len() as u16).to_le_bytes();
    [&file[..], &list, b"PK\x05\x06\0\0\0\0", &count, &count, &size, &place, &[0, 0]].concat()
}
