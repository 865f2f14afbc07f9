//! PETSc's binary files: big endian, matrices and vectors one after another. Neither the width of indices nor the type
//! of values is stored: the width of the class id gives the former, the length of the file the latter.

use super::lines::{self, Ascent, Lines};
use super::npy::{array_header, by_columns};
use super::numbers::Type;
use super::source::{Source, Stretch};
use super::stored::{Entries, Stored};
use crate::backend::{Host, offsets_of};
use crate::error::Result;
use crate::market::{Field, Header};
use crate::parallel::join;
use crate::scalar::Scalar;
use std::path::Path;

const MATRIX: i64 = 1_211_216;
const VECTOR: i64 = 1_211_214;

/// Types of values, doubles first: eight bytes may also be a complex number in single precision, which cannot be
/// distinguished.
const VALUES: [Type; 3] = [
    Type { letter: b'f', size: 8, big: true },
    Type { letter: b'c', size: 16, big: true },
    Type { letter: b'f', size: 4, big: true },
];

/// Returns whether a file starts with a class id.
pub(super) fn is(start: &[u8]) -> bool {
    let class = |word: &[u8]| [MATRIX, VECTOR].iter().any(|id| (*id as u32).to_be_bytes() == *word);
    let swapped = |word: &[u8]| [MATRIX, VECTOR].iter().any(|id| (*id as u32).to_le_bytes() == *word);
    start.len() >= 8
        && (class(&start[..4]) || swapped(&start[..4]) || start[..4] == [0; 4] && class(&start[4..8]))
}

/// The objects in a file, without their numbers.
pub(super) struct Objects {
    source: Source,
    integer: Type,
    value: Type,
    all: Vec<Object>,
}

/// A matrix or a vector, and the offset of the data after its header.
struct Object {
    class: i64,
    rows: u64,
    columns: u64,
    /// Entries of a sparse matrix.
    nonzeros: Option<u64>,
    at: u64,
}

impl Objects {
    /// Finds all objects of a file. The type of values is the first with which the last object ends at the end of the
    /// file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let source = Source::open(path)?;
        let mut start = [0; 4];
        let there = source.length().min(4) as usize;
        source.exact(0, &mut start[..there])?;
        if [MATRIX, VECTOR].iter().any(|id| start == (*id as u32).to_le_bytes()) {
            return Err(source.error(0, "PETSc's files are big endian, and this one is little endian"));
        }
        let integer = Type { letter: b'i', size: if start == [0; 4] { 8 } else { 4 }, big: true };
        let mut first_error = None;
        for value in VALUES {
            match walk(&source, integer, value) {
                Ok(all) => return Ok(Self { source, integer, value, all }),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or_else(|| source.error(0, "there is no matrix and no vector in this file")))
    }

    /// The first object, or the vector after a matrix if the right-hand side is requested.
    fn chosen(&self, right_hand_side: bool) -> Option<&Object> {
        self.all.get(usize::from(right_hand_side)).filter(|found| !right_hand_side || found.class == VECTOR)
    }

    /// The header of the chosen object.
    pub(super) fn header(&self, right_hand_side: bool) -> Option<Header> {
        let &Object { rows, columns, nonzeros, .. } = self.chosen(right_hand_side)?;
        let field = self.value.field();
        Some(match nonzeros {
            Some(count) => lines::header(field, (rows, columns), count),
            None => array_header(field, rows, columns),
        })
    }

    /// Reads the chosen object.
    pub(super) fn read<T: Scalar>(&self, path: &Path, right_hand_side: bool) -> Result<Option<Stored<T>>> {
        let Some(object) = self.chosen(right_hand_side) else { return Ok(None) };
        if self.value.field() == Field::Complex && !T::COMPLEX {
            return Err(super::complex(path));
        }
        let &Object { class, rows, columns, nonzeros, at } = object;
        let stretch = |at, count, kind, what| Stretch::new(&self.source, at, count, kind, what);
        let Some(count) = nonzeros else {
            let numbers = stretch(at, rows.saturating_mul(columns), self.value, "values")?;
            let values = numbers.finite(numbers.values()?, numbers.count)?;
            let header = array_header(self.value.field(), rows, columns);
            let values = if class == VECTOR { values } else { by_columns(&header, values)? };
            return Ok(Some(Stored::new(header, Entries::Array(values))));
        };
        let lengths = stretch(at, rows, self.integer, "row lengths")?;
        let list = stretch(lengths.end(), count, self.integer, "column indices")?;
        let numbers = stretch(list.end(), count, self.value, "values")?;
        let structure = || {
            let (mut of_rows, fault) = lengths.indices::<u32>(1 << 32, &|_, _| ())?;
            // There is one more length than rows; the scan puts the total there.
            of_rows.push(0);
            let (offsets, total) = offsets_of(&Host, &of_rows)?;
            if fault.is_some() || total as u64 != count {
                return Err(unequal(&lengths, count));
            }
            let (indices, ascending) = Ascent::new(offsets.as_ref()).read(list, "column index", columns)?;
            Ok((offsets, indices, ascending))
        };
        let (values, structure) = join(|| numbers.values(), structure);
        let (offsets, indices, ascending) = structure?;
        let values = numbers.finite(values?, numbers.count)?;
        let lines = Lines { offsets, indices, values, ascending };
        Ok(Some(lines.stored(self.value.field(), (rows, columns), false)?))
    }
}

fn unequal(lengths: &Stretch<'_>, count: u64) -> crate::Error {
    let cause = format!("the row lengths do not add up to the {count} nonzeros of the header");
    lengths.source.error(lengths.end(), cause)
}

/// Finds objects by going from header to header.
fn walk(source: &Source, integer: Type, value: Type) -> Result<Vec<Object>> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < source.length() {
        let mut header = |count: u64| -> Result<Vec<i64>> {
            let numbers = Stretch::new(source, at, count, integer, "numbers of a header")?;
            at = numbers.end();
            numbers.integers()
        };
        let class = header(1)?[0];
        let sizes = match class {
            MATRIX => header(3)?,
            VECTOR => header(1)?,
            other => {
                let cause = format!(
                    "the class id is {other}, but {MATRIX} (a matrix) or {VECTOR} (a vector) is expected"
                );
                return Err(source.error(at, cause));
            }
        };
        if let Some(bad) = sizes.iter().take(2).find(|&&n| !(0..=1 << 32).contains(&n)) {
            return Err(source.error(at, format!("a size is {bad}, but 0 to 2^32 is expected")));
        }
        let (rows, columns) = (sizes[0] as u64, sizes.get(1).map_or(1, |&n| n as u64));
        let nonzeros = match sizes.get(2) {
            None | Some(-1) => None,
            Some(&count) => Some(u64::try_from(count).map_err(|_| {
                source.error(at, format!("the number of nonzeros is {count}, which is impossible"))
            })?),
        };
        let object = Object { class, rows, columns, nonzeros, at };
        at = match nonzeros {
            None => Stretch::new(source, at, rows.saturating_mul(columns), value, "values")?.end(),
            Some(count) => {
                let lengths = Stretch::new(source, at, rows, integer, "row lengths")?;
                let behind = Stretch::new(source, lengths.end(), count, integer, "column indices")
                    .and_then(|list| Stretch::new(source, list.end(), count, value, "values"));
                match behind {
                    Ok(values) => values.end(),
                    // A wrong count is reported rather than a file that seems too short.
                    Err(short) => {
                        let sum = lengths
                            .integers()?
                            .into_iter()
                            .try_fold(0u64, |sum, length| sum.checked_add(u64::try_from(length).ok()?));
                        return Err(if sum == Some(count) { short } else { unequal(&lengths, count) });
                    }
                }
            }
        };
        all.push(object);
    }
    Ok(all)
}
