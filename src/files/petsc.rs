//! PETSc's binary files: big endian; matrices and vectors, one behind the other. Neither the width of indices nor the
//! type of values is told: the class id's own width tells the former, the file's length the latter.

use super::bytes::Bytes;
use super::found::{Found, Numbers};
use crate::error::Result;
use num_complex::Complex;
use std::io::{Cursor, Read};
use std::path::Path;

const MATRIX: i64 = 1_211_216;
const VECTOR: i64 = 1_211_214;

/// Whether a file starts so.
pub(super) fn is(start: &[u8]) -> bool {
    let class = |word: &[u8]| [MATRIX, VECTOR].iter().any(|id| (*id as u32).to_be_bytes() == *word);
    let swapped = |word: &[u8]| [MATRIX, VECTOR].iter().any(|id| (*id as u32).to_le_bytes() == *word);
    start.len() >= 8
        && (class(&start[..4]) || swapped(&start[..4]) || start[..4] == [0; 4] && class(&start[4..8]))
}

/// The first object, or, as the right-hand side, the vector that follows a matrix.
pub(super) fn read(path: &Path, mut reader: impl Read, right_hand_side: bool) -> Result<Option<Found>> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).map_err(|source| crate::Error::Io { path: path.to_owned(), source })?;
    if [MATRIX, VECTOR].iter().any(|id| all.starts_with(&(*id as u32).to_le_bytes())) {
        return Err(
            Bytes::new(path, &[][..]).error("PETSc's files are big endian, and this one is little endian")
        );
    }
    let wide = all.starts_with(&[0; 4]);
    // Double precision first: eight bytes may be a complex number of two singles too, which nobody can tell.
    let mut first_error = None;
    for (size, complex) in [(8, false), (16, true), (4, false)] {
        match objects(path, &all, wide, size, complex) {
            Ok(mut found) => {
                let behind = right_hand_side && found.len() > 1 && found[1].1 == VECTOR;
                let at = usize::from(right_hand_side);
                return Ok((!right_hand_side || behind).then(|| found.swap_remove(at).0));
            }
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map_or(Ok(None), Err)
}

/// All objects, with their class ids, where values have so many bytes.
fn objects(path: &Path, all: &[u8], wide: bool, size: usize, complex: bool) -> Result<Vec<(Found, i64)>> {
    let mut bytes = Bytes::new(path, Cursor::new(all));
    let mut found = Vec::new();
    while bytes.at < all.len() as u64 {
        let width = if wide { 8 } else { 4 };
        let word = |raw: &[u8]| match raw {
            &[a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
            _ => raw.iter().fold(0i64, |value, &byte| value << 8 | i64::from(byte)),
        };
        let class = bytes.array(1, width, "numbers of a header", word)?[0];
        let sizes = match class {
            MATRIX => 3,
            VECTOR => 1,
            other => {
                return Err(bytes.error(format!(
                    "class id {other}: {MATRIX} (a matrix) or {VECTOR} (a vector) is expected"
                )));
            }
        };
        let head = bytes.array(sizes, width, "numbers of a header", word)?;
        if let Some(bad) = head.iter().take(2).find(|&&n| !(0..=1 << 32).contains(&n)) {
            return Err(bytes.error(format!("a size of {bad}: from 0 to 2^32 is expected")));
        }
        let number = |raw: &[u8]| match raw {
            &[a, b, c, d] => f64::from(f32::from_be_bytes([a, b, c, d])),
            _ => f64::from_bits(word(raw) as u64),
        };
        let values =
            |bytes: &mut Bytes<_>, count: u64| -> Result<Numbers> {
                Ok(if complex {
                    Numbers::Complex(bytes.array(count, size, "values", |raw| {
                        Complex::new(number(&raw[..8]), number(&raw[8..]))
                    })?)
                } else {
                    Numbers::Real(bytes.array(count, size, "values", number)?)
                })
            };
        let (rows, columns) = (head[0] as u64, head.get(1).map_or(1, |&n| n as u64));
        let object = if class == VECTOR {
            Found::array(rows, 1, values(&mut bytes, rows)?)
        } else if head[2] == -1 {
            let by_rows = values(&mut bytes, rows.saturating_mul(columns))?;
            let (m, n) = (rows as usize, columns as usize);
            let places: Vec<usize> = (0..n).flat_map(|j| (0..m).map(move |i| i * n + j)).collect();
            Found::array(rows, columns, by_rows.gathered(&places))
        } else {
            let count = u64::try_from(head[2]).map_err(|_| bytes.error(format!("{} nonzeros", head[2])))?;
            let lengths = bytes.array(rows, width, "row lengths", word)?;
            let sum =
                lengths.iter().try_fold(0u64, |sum, &length| sum.checked_add(u64::try_from(length).ok()?));
            if sum != Some(count) {
                return Err(bytes
                    .error(format!("the row lengths do not add up to the {count} nonzeros of the header")));
            }
            let list = bytes.array(count, width, "column indices", word)?;
            if let Some(bad) = list.iter().find(|&&j| !(0..columns as i64).contains(&j)) {
                return Err(
                    bytes.error(format!("column index {bad} is outside of {columns} columns (from 0)"))
                );
            }
            let in_rows =
                lengths.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(i as u32, n as usize));
            let places = (in_rows.collect(), list.iter().map(|&j| j as u32).collect());
            Found::coordinates((rows, columns), places, values(&mut bytes, count)?)
        };
        found.push((object, class));
    }
    Ok(found)
}
