//! Patterns of sparse rows on the host, for prolongations that are computed row by row.

use crate::backend::host::by_column;
use crate::parallel::of_stretches;
use crate::scalar::{Real, Scalar};
use std::ops::Range;

/// The minimum number of rows in a task, and the maximum number of tasks: each task has its own table of columns.
pub(super) const AT_LEAST: usize = 1 << 9;
const TASKS: usize = 64;

/// The kept entries of a row are scaled so that its sum stays the same, unless the factor exceeds this.
pub(super) const SCALED: f64 = 10.0;

/// The number of rows of a task.
pub(super) fn task_of(rows: usize) -> usize {
    rows.div_ceil(TASKS).max(AT_LEAST)
}

/// The table of a task: the position of each column within the current row.
pub(super) struct Places {
    row: Vec<u32>,
    place: Vec<u32>,
}

impl Places {
    pub(super) fn new(columns: usize) -> Self {
        Self { row: vec![u32::MAX; columns], place: vec![0; columns] }
    }

    pub(super) fn set(&mut self, row: usize, columns: &[u32]) {
        for (place, &column) in (0..).zip(columns) {
            (self.row[column as usize], self.place[column as usize]) = (row as u32, place);
        }
    }

    /// Appends a column to those of a row, unless it is there.
    #[inline(always)]
    pub(super) fn add(&mut self, row: usize, column: u32, columns: &mut Vec<u32>) {
        if self.of(row, column).is_none() {
            (self.row[column as usize], self.place[column as usize]) = (row as u32, columns.len() as u32);
            columns.push(column);
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, row: usize, column: u32) -> Option<usize> {
        (self.row[column as usize] == row as u32).then(|| self.place[column as usize] as usize)
    }
}

/// Columns of each row, ascending: a matrix without values.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) starts: Vec<usize>,
    pub(super) columns: Vec<u32>,
}

impl Pattern {
    /// Builds a pattern in parallel from the columns that `row` adds for each row.
    pub(super) fn of_rows(rows: usize, row: impl Fn(usize, &mut Vec<u32>) + Sync) -> Self {
        let stretches = of_stretches(&(0..rows), task_of(rows), |rows| {
            let (mut ends, mut columns) = (Vec::with_capacity(rows.len()), Vec::new());
            for number in rows {
                row(number, &mut columns);
                ends.push(columns.len());
            }
            (ends, columns)
        });
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        let mut columns = Vec::with_capacity(stretches.iter().map(|stretch| stretch.1.len()).sum());
        for (ends, of_stretch) in stretches {
            let before = columns.len();
            starts.extend(ends.into_iter().map(|end| before + end));
            columns.extend(of_stretch);
        }
        Self { starts, columns }
    }

    pub(super) fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn range(&self, row: usize) -> Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    pub(super) fn row(&self, row: usize) -> &[u32] {
        &self.columns[self.range(row)]
    }

    /// The transpose of a square pattern.
    pub(super) fn transpose(&self) -> Self {
        let mut starts = vec![0; self.rows() + 1];
        self.columns.iter().for_each(|&column| starts[column as usize + 1] += 1);
        for row in 0..self.rows() {
            starts[row + 1] += starts[row];
        }
        let (mut next, mut columns) = (starts.clone(), vec![0; self.columns.len()]);
        for row in 0..self.rows() {
            for &column in self.row(row) {
                let place = &mut next[column as usize];
                columns[*place] = row as u32;
                *place += 1;
            }
        }
        Self { starts, columns }
    }
}

/// Keeps the `most` entries of largest magnitude of a row, in the order of columns; of two equal ones, that with the
/// smaller column.
pub(super) fn keep_largest<T: Scalar>(row: &mut Vec<(u32, T)>, most: usize) {
    row.sort_by(|a, b| {
        let (a, b) = (a.1.abs2().to_f64(), b.1.abs2().to_f64());
        b.total_cmp(&a)
    });
    row.truncate(most);
    by_column(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_become_rows() {
        let rows: [&[u32]; 4] = [&[1, 2], &[], &[0, 1, 3], &[1]];
        let pattern = Pattern::of_rows(4, |row, columns| columns.extend(rows[row]));
        assert_eq!(pattern.starts, [0, 2, 2, 5, 6]);
        let transpose = pattern.transpose();
        let expected: [&[u32]; 4] = [&[2], &[0, 2, 3], &[0], &[2]];
        assert!((0..4).all(|row| transpose.row(row) == expected[row]));
        // More rows than one task takes.
        let pattern =
            Pattern::of_rows(1300, |row, columns| columns.extend((row % 3 == 0).then_some(row as u32)));
        assert!((0..1300).all(|row| pattern.row(row).len() == usize::from(row % 3 == 0)));
        assert_eq!(pattern.transpose().columns, pattern.columns);
    }

    #[test]
    fn the_largest_stay_in_order() {
        let mut row = vec![(3, 1.0), (5, -4.0), (7, 2.0), (8, -2.0), (9, 2.0)];
        keep_largest(&mut row, 3);
        assert_eq!(row, [(5, -4.0), (7, 2.0), (8, -2.0)]);
    }
}
