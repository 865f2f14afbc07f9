//! Writes `.npz`: a zip archive of NumPy arrays, not compressed. Sizes and offsets have 64 bits if they need them.

use super::npy::{BLOCK, descr, put_array, put_head, put_values};
use crate::backend::OffsetsRef;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::output;
use crate::scalar::Scalar;
use std::io::{self, Write};
use std::path::Path;

/// Writes a matrix in CSR as `scipy.sparse.save_npz` does, so that `scipy.sparse.load_npz` reads it. Nothing is
/// compressed. The file appears under its name when it is complete ([`crate::output`]).
///
/// # Errors
/// If the file cannot be written.
pub fn write_npz<T: Scalar>(path: impl AsRef<Path>, matrix: &Csr<T>) -> Result<()> {
    let parts = matrix.parts();
    // SciPy needs the same type for indices and offsets.
    let largest = matrix.rows().max(matrix.columns()).max(matrix.nonzeros());
    let wide = i32::try_from(largest).is_err();
    let list = |count: usize| format!("({count},)");
    let integer = if wide { "<i8" } else { "<i4" };
    let indices = |to: &mut dyn Write| {
        put_head(to, integer, false, &list(parts.indices.len()))?;
        put_integers(to, wide, parts.indices.iter().map(|&index| index.into()))
    };
    let offsets = |to: &mut dyn Write| {
        put_head(to, integer, false, &list(matrix.rows() + 1))?;
        match parts.offsets {
            OffsetsRef::Lower(offsets) => put_integers(to, wide, offsets.iter().map(|&offset| offset as u64)),
            OffsetsRef::Wide(offsets) => put_integers(to, wide, offsets.iter().copied()),
        }
    };
    let format = |to: &mut dyn Write| {
        put_head(to, "|S3", false, "()")?;
        to.write_all(b"csr")
    };
    let shape = |to: &mut dyn Write| {
        put_head(to, "<i8", false, "(2,)")?;
        put_integers(to, true, [matrix.rows() as u64, matrix.columns() as u64].into_iter())
    };
    let data = |to: &mut dyn Write| {
        put_head(to, &descr::<T>(), false, &list(parts.values.len()))?;
        put_values(to, parts.values)
    };
    let members: [(&str, Fill<'_>); 5] = [
        ("indices", &indices),
        ("indptr", &offsets),
        ("format", &format),
        ("shape", &shape),
        ("data", &data),
    ];
    output::write(path, |file| put_archive(file, &members, SHORT))
}

/// Writes a full array, `values` column by column, as the only member of an archive, under `name`; otherwise as
/// [`write_npy`](super::write_npy).
///
/// # Errors
/// Unless there are `rows * columns` values, or if the file cannot be written.
pub fn write_npz_array<T: Scalar>(
    path: impl AsRef<Path>,
    name: &str,
    rows: usize,
    columns: usize,
    values: &[T],
) -> Result<()> {
    Error::check_dimension("number of values", rows.saturating_mul(columns), values.len())?;
    let array = |to: &mut dyn Write| put_array(to, rows, columns, values);
    output::write(path, |file| put_archive(file, &[(name, &array)], SHORT))
}

/// The first size that does not fit 32 bits.
const SHORT: u64 = u32::MAX as u64;

/// Writes the bytes of a member; called twice.
type Fill<'a> = &'a dyn Fn(&mut dyn Write) -> io::Result<()>;

fn put_integers(to: &mut dyn Write, wide: bool, mut numbers: impl Iterator<Item = u64>) -> io::Result<()> {
    let mut block = Vec::with_capacity(8 * BLOCK);
    loop {
        block.clear();
        for number in numbers.by_ref().take(BLOCK) {
            block.extend_from_slice(&number.to_le_bytes()[..if wide { 8 } else { 4 }]);
        }
        if block.is_empty() {
            return Ok(());
        }
        to.write_all(&block)?;
    }
}

/// A writer that counts bytes and computes their checksum.
struct Sum {
    crc: flate2::Crc,
    size: u64,
}

impl Write for Sum {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A number in four bytes. If it does not fit, all bits are set, which means that a 64-bit field has it.
fn short(number: u64) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

/// Sizes and offsets below `limit` have 32 bits.
fn put_archive(to: &mut dyn Write, members: &[(&str, Fill<'_>)], limit: u64) -> io::Result<()> {
    const VERSION: &[u8] = &45u16.to_le_bytes();
    let (mut at, mut list) = (0u64, Vec::new());
    for (name, fill) in members {
        let mut sum = Sum { crc: flate2::Crc::new(), size: 0 };
        fill(&mut sum)?;
        let size = sum.size;
        let name = format!("{name}.npy");
        let wide = size >= limit;
        // Stored, no flags. The date is the earliest possible, so that the same matrix gives the same file.
        let common = |extra: usize| {
            let sizes = [short(if wide { u64::MAX } else { size }); 2].concat();
            let names = [(name.len() as u16).to_le_bytes(), (extra as u16).to_le_bytes()].concat();
            [VERSION, &[0; 6], &33u16.to_le_bytes(), &sum.crc.sum().to_le_bytes(), &sizes, &names].concat()
        };
        let field = |numbers: &[u64]| match numbers.len() as u16 {
            0 => Vec::new(),
            count => {
                let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
                [1u16.to_le_bytes(), (8 * count).to_le_bytes()].concat().into_iter().chain(numbers).collect()
            }
        };
        let sizes = if wide { vec![size, size] } else { Vec::new() };
        let own = field(&sizes);
        let head = [b"PK\x03\x04", &common(own.len())[..], name.as_bytes(), &own].concat();
        let far = at >= limit;
        let listed = field(&[sizes, if far { vec![at] } else { Vec::new() }].concat());
        let place = short(if far { u64::MAX } else { at });
        list.extend_from_slice(b"PK\x01\x02");
        list.extend([VERSION, &common(listed.len()), &[0; 10], &place, name.as_bytes(), &listed].concat());
        to.write_all(&head)?;
        fill(to)?;
        at += head.len() as u64 + size;
    }
    to.write_all(&list)?;
    let (count, size) = (members.len() as u64, list.len() as u64);
    if at >= limit {
        let numbers = [count, count, size, at].map(u64::to_le_bytes).concat();
        to.write_all(
            &[b"PK\x06\x06", &44u64.to_le_bytes()[..], VERSION, VERSION, &[0; 8], &numbers].concat(),
        )?;
        to.write_all(
            &[b"PK\x06\x07", &[0; 4][..], &(at + size).to_le_bytes(), &1u32.to_le_bytes()].concat(),
        )?;
    }
    let counts = [(count as u16).to_le_bytes(); 2].concat();
    to.write_all(
        &[
            b"PK\x05\x06",
            &[0; 4][..],
            &counts,
            &short(size),
            &short(if at >= limit { u64::MAX } else { at }),
            &[0; 2],
        ]
        .concat(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::zip::Zip;
    use super::*;

    /// A small limit makes sizes and offsets use 64 bits.
    #[test]
    fn sizes_and_places_of_64_bits() {
        let path = std::env::temp_dir().join(format!("residua-zip64-{}.npz", std::process::id()));
        let one = |to: &mut dyn Write| to.write_all(b"the first");
        let two = |to: &mut dyn Write| to.write_all(b"word");
        let lengths = [0, 5, SHORT].map(|limit| {
            output::write(&path, |file| put_archive(file, &[("one", &one), ("two", &two)], limit)).unwrap();
            let zip = Zip::open(&path).unwrap();
            assert_eq!(zip.names(), ["one", "two"]);
            let source = zip.member("one").unwrap();
            let mut bytes = source.bytes();
            assert_eq!(&bytes.take::<9>("words").unwrap(), b"the first");
            bytes.end("the words").unwrap();
            let source = zip.member("two").unwrap();
            let mut bytes = source.bytes();
            assert_eq!(&bytes.take::<4>("a word").unwrap(), b"word");
            bytes.end("the word").unwrap();
            std::fs::metadata(&path).unwrap().len()
        });
        // Each 64-bit size and offset takes eight bytes more, after a field header of four; the end of the list
        // takes 76.
        assert_eq!(
            [lengths[0] - lengths[2], lengths[1] - lengths[2]],
            [20 * 4 + 8 + 8 + 76, 20 + 20 + 12 + 76]
        );
        std::fs::remove_file(&path).unwrap();
    }
}
