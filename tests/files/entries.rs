//! A matrix as a list of entries, and as the bytes of each format.

use crate::archives::{npy, zip};
use residua::backend::OffsetsRef;
use residua::files;
use residua::generate::Random;
use residua::market::{Order, ReadOptions};
use residua::{Csr, Scalar, Triplets};
use std::path::Path;

/// NumPy's types of integers, and how one is written.
pub const INTEGERS: [&str; 13] =
    ["<i4", "<i8", ">i4", ">i8", "<u4", "<u8", ">u4", ">u8", "<i2", ">i2", "<u2", ">u2", "=i8"];

pub fn number(descr: &str, value: i64) -> Vec<u8> {
    let size: usize = descr[2..].parse().unwrap();
    let mut bytes = value.to_le_bytes()[..size].to_vec();
    if descr.starts_with('>') {
        bytes.reverse();
    }
    bytes
}

pub fn integers(descr: &str, list: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = list.iter().flat_map(|&value| number(descr, value)).collect();
    npy(&format!("'{descr}'"), &format!("({},)", list.len()), &data)
}

pub fn word(text: &str) -> Vec<u8> {
    npy(&format!("'|S{}'", text.len()), "()", text.as_bytes())
}

pub fn doubles(values: &[f64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("'<f8'", &format!("({},)", values.len()), &data)
}

/// A matrix as a list of entries, row after row.
#[derive(Clone)]
pub struct Entries {
    pub size: (usize, usize),
    pub rows: Vec<i64>,
    pub columns: Vec<i64>,
    pub values: Vec<f64>,
}

impl Entries {
    /// Up to `most` entries per row, columns ascending.
    pub fn random(size: (usize, usize), most: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
        for row in 0..size.0 {
            let count = random.below(most + 1);
            let mut own: Vec<i64> = (0..count).map(|_| random.below(size.1 as u64) as i64).collect();
            own.sort_unstable();
            own.dedup();
            rows.extend(own.iter().map(|_| row as i64));
            values.extend(own.iter().map(|_| random.between(-1.0, 1.0)));
            columns.extend(own);
        }
        Self { size, rows, columns, values }
    }

    pub fn offsets(&self) -> Vec<i64> {
        let mut offsets = vec![0; self.size.0 + 1];
        self.rows.iter().for_each(|&row| offsets[row as usize + 1] += 1);
        (1..offsets.len()).for_each(|row| offsets[row] += offsets[row - 1]);
        offsets
    }

    pub fn transposed(self) -> Self {
        Self { size: (self.size.1, self.size.0), rows: self.columns, columns: self.rows, values: self.values }
    }

    pub fn shape(&self) -> Vec<u8> {
        integers("<i8", &[self.size.0 as i64, self.size.1 as i64])
    }

    /// The matrix that assembly makes from the entries in this order.
    pub fn assembled(&self) -> Csr<f64> {
        let list = |list: &[i64]| list.iter().map(|&index| index as u32).collect();
        let (rows, columns) = (list(&self.rows), list(&self.columns));
        Csr::from_triplets(
            Triplets::from_parts(self.size.0, self.size.1, rows, columns, self.values.clone()).unwrap(),
        )
        .unwrap()
    }

    /// Compressed rows. Offsets and indices have one type each.
    pub fn csr(&self, types: [&str; 2], deflate: bool) -> Vec<u8> {
        let members = [
            ("indices.npy", integers(types[1], &self.columns)),
            ("indptr.npy", integers(types[0], &self.offsets())),
            ("format.npy", word("csr")),
            ("shape.npy", self.shape()),
            ("data.npy", doubles(&self.values)),
        ];
        zip(&members, deflate)
    }

    /// Compressed columns of the transpose, which are the rows of this matrix.
    pub fn csc_of_transpose(&self, deflate: bool) -> Vec<u8> {
        let members = [
            ("data.npy", doubles(&self.values)),
            ("indices.npy", integers("<i4", &self.columns)),
            ("indptr.npy", integers("<i8", &self.offsets())),
            ("format.npy", word("csc")),
            ("shape.npy", integers("<i4", &[self.size.1 as i64, self.size.0 as i64])),
        ];
        zip(&members, deflate)
    }

    pub fn coo(&self, descr: &str, together: bool, deflate: bool) -> Vec<u8> {
        let mut members = vec![
            ("format.npy", word("coo")),
            ("shape.npy", self.shape()),
            ("data.npy", doubles(&self.values)),
        ];
        if together {
            let both: Vec<u8> =
                self.rows.iter().chain(&self.columns).flat_map(|&index| number(descr, index)).collect();
            let shape = format!("(2, {})", self.rows.len());
            members.push(("coords.npy", npy(&format!("'{descr}'"), &shape, &both)));
        } else {
            members.push(("row.npy", integers(descr, &self.rows)));
            members.push(("col.npy", integers(descr, &self.columns)));
        }
        zip(&members, deflate)
    }

    pub fn petsc(&self, wide: bool) -> Vec<u8> {
        let descr = if wide { ">i8" } else { ">i4" };
        let (rows, columns) = (self.size.0 as i64, self.size.1 as i64);
        let mut all = vec![1_211_216, rows, columns, self.values.len() as i64];
        all.extend(self.offsets().windows(2).map(|w| w[1] - w[0]));
        all.extend(&self.columns);
        let mut file: Vec<u8> = all.into_iter().flat_map(|value| number(descr, value)).collect();
        file.extend(self.values.iter().flat_map(|value| value.to_be_bytes()));
        file
    }
}

pub fn bits<T: Scalar>(a: &Csr<T>) -> (usize, usize, Vec<usize>, Vec<u32>, Vec<[u64; 2]>) {
    let parts = a.parts();
    let offsets = match parts.offsets {
        OffsetsRef::Lower(offsets) => offsets.iter().map(|&offset| offset as usize).collect(),
        OffsetsRef::Wide(offsets) => offsets.iter().map(|&offset| offset as usize).collect(),
    };
    (a.rows(), a.columns(), offsets, parts.indices.to_vec(), parts.values.iter().map(|v| v.bits()).collect())
}

/// Compares a file with a matrix in all ways of reading it. Returns the order of its triplets.
pub fn check<T: Scalar>(path: &Path, expected: &Csr<T>, what: &str) -> Order {
    let expected = bits(expected);
    let found = files::read_csr::<T>(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(bits(&found), expected, "{what}");
    let file = files::read_triplets::<T>(path, &ReadOptions::default()).unwrap();
    assert_eq!((file.header().rows(), file.header().columns()), (expected.0, expected.1), "{what}");
    let (_, triplets, order) = file.into_parts();
    assert_eq!(bits(&Csr::from_triplets(triplets).unwrap()), expected, "{what}");
    order
}
