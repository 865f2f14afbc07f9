//! Counts by columns, and dense rows and columns.

use crate::backend::with_offsets;
use crate::matrix::Csr;
use crate::report::Facts;
use crate::scalar::{Offset, Real, Scalar};
use serde::Serialize;

/// A row or column is dense if it has more entries than this times the square root of its length, as in the ordering
/// AMD (Amestoy, Davis and Duff, "Algorithm 837", ACM TOMS 30, 2004).
const DENSE: f64 = 10.0;

/// A row or column with at most this many entries is never dense.
const SHORT: usize = 16;

/// Counts by columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Columns {
    /// Columns with |a_jj| > sum of the other |a_ij|.
    pub strictly_dominant: usize,
    /// Columns with |a_jj| >= sum of the other |a_ij|.
    pub dominant: usize,
    /// The smallest over all columns of the largest |a_ij|, without columns of zeros; infinity if all entries are zero.
    pub smallest_column: f64,
    /// Rows with more than 16 entries and more than 10 sqrt(columns).
    pub dense_rows: usize,
    /// Columns with more than 16 entries and more than 10 sqrt(rows).
    pub dense_columns: usize,
    /// The number of entries in the longest row.
    pub longest_row: usize,
    /// The number of entries in the longest column.
    pub longest_column: usize,
}

impl Columns {
    /// If the magnitudes are symmetric (`mirrored`), the counts follow from those of the rows.
    pub(super) fn of<T: Scalar>(a: &Csr<T>, facts: &Facts, mirrored: bool) -> Self {
        let parts = a.parts();
        let limit = |n: usize| SHORT.max((DENSE * (n as f64).sqrt()) as usize);
        let (mut dense_rows, mut longest_row) = (0, 0);
        with_offsets!(parts.offsets, offsets => {
            for pair in offsets.windows(2) {
                let length = pair[1].to_usize() - pair[0].to_usize();
                dense_rows += usize::from(length > limit(parts.columns));
                longest_row = longest_row.max(length);
            }
        });
        let mut columns = Self {
            strictly_dominant: facts.strictly_dominant_rows,
            dominant: facts.dominant_rows,
            smallest_column: facts.smallest_row,
            dense_rows,
            dense_columns: dense_rows,
            longest_row,
            longest_column: longest_row,
        };
        if !mirrored {
            columns.count(a, limit(parts.rows));
        }
        columns
    }

    fn count<T: Scalar>(&mut self, a: &Csr<T>, limit: usize) {
        let parts = a.parts();
        // For each column: |a_jj| minus the sum of the others, the largest magnitude, and the number of entries.
        let mut lines = vec![(0.0_f64, 0.0_f64, 0_u32); parts.columns];
        with_offsets!(parts.offsets, offsets => {
            for row in 0..parts.rows {
                for k in offsets[row].to_usize()..offsets[row + 1].to_usize() {
                    let (column, magnitude) = (parts.indices[k] as usize, parts.values[k].abs().to_f64());
                    let line = &mut lines[column];
                    line.2 += 1;
                    if magnitude.is_finite() {
                        line.0 += if column == row { magnitude } else { -magnitude };
                        line.1 = line.1.max(magnitude);
                    }
                }
            }
        });
        let own = &lines[..parts.rows.min(parts.columns)];
        self.strictly_dominant = own.iter().filter(|line| line.0 > 0.0).count();
        self.dominant = own.iter().filter(|line| line.0 >= 0.0).count();
        let largest = lines.iter().map(|line| line.1).filter(|&largest| largest > 0.0);
        self.smallest_column = largest.fold(f64::INFINITY, f64::min);
        self.dense_columns = lines.iter().filter(|line| line.2 as usize > limit).count();
        self.longest_column = lines.iter().map(|line| line.2 as usize).max().unwrap_or(0);
    }
}

/// Returns whether |a_ii| > sum of the other |a_ij|.
pub(super) fn is_strict<T: Scalar>(a: &Csr<T>, row: usize) -> bool {
    let parts = a.parts();
    let places =
        with_offsets!(parts.offsets, offsets => offsets[row].to_usize()..offsets[row + 1].to_usize());
    let (mut centre, mut others) = (0.0, 0.0);
    for k in places {
        let magnitude = parts.values[k].abs().to_f64();
        if parts.indices[k] as usize == row { centre = magnitude } else { others += magnitude }
    }
    centre > others
}
