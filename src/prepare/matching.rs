//! Matchings of rows with columns.

use super::pattern::Pattern;
use super::peel::peel;
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::work::look_at;

/// Stands for "none" if a row or a column has no partner.
pub const UNMATCHED: u32 = u32::MAX;

/// A matching: each row has at most one column, in which it has an entry, and each column at most one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matching {
    column_of: Vec<u32>,
    row_of: Vec<u32>,
}

impl Matching {
    pub(super) fn none(rows: usize, columns: usize) -> Self {
        Self { column_of: vec![UNMATCHED; rows], row_of: vec![UNMATCHED; columns] }
    }

    pub(super) fn pair(&mut self, row: usize, column: usize) {
        self.column_of[row] = column as u32;
        self.row_of[column] = row as u32;
    }

    /// Removes the column of a matched row. The row gets another column afterwards.
    pub(super) fn release(&mut self, row: usize) {
        self.column_of[row] = UNMATCHED;
    }

    /// The column of each row; [`UNMATCHED`] if it has none.
    pub fn column_of(&self) -> &[u32] {
        &self.column_of
    }

    /// The row of each column; [`UNMATCHED`] if it has none.
    pub fn row_of(&self) -> &[u32] {
        &self.row_of
    }

    /// Takes both arrays out: the column of each row, and the row of each column.
    pub fn into_parts(self) -> (Vec<u32>, Vec<u32>) {
        (self.column_of, self.row_of)
    }

    /// The number of pairs. For a maximum matching this is the structural rank, which the rank exceeds for no values.
    pub fn pairs(&self) -> usize {
        self.column_of.iter().filter(|&&column| column != UNMATCHED).count()
    }

    /// Returns whether every row and every column has a partner.
    pub fn is_perfect(&self) -> bool {
        self.column_of.iter().chain(&self.row_of).all(|&partner| partner != UNMATCHED)
    }

    /// The rows without a partner, ascending.
    pub fn unmatched_rows(&self) -> Vec<u32> {
        unmatched(&self.column_of)
    }

    /// The columns without a partner, ascending.
    pub fn unmatched_columns(&self) -> Vec<u32> {
        unmatched(&self.row_of)
    }

    /// Returns the permutation P of rows for which P A has the matched entries on its diagonal: row j of P A is the row
    /// that is matched with column j. Rows without a partner take the places of columns without one, both in ascending
    /// order.
    ///
    /// # Errors
    /// If the numbers of rows and columns differ.
    pub fn row_permutation(&self) -> Result<Permutation> {
        Error::check_dimension("columns of a square matrix", self.column_of.len(), self.row_of.len())?;
        let mut left = self.unmatched_rows().into_iter();
        let mut order = self.row_of.clone();
        for (row, spare) in order.iter_mut().filter(|row| **row == UNMATCHED).zip(&mut left) {
            *row = spare;
        }
        Permutation::from_new_to_old(order)
    }

    /// Finds the pairs that need no search: row i with column i if the whole diagonal is there; otherwise forced pairs,
    /// then the remaining diagonal entries, then each row with its first free column.
    fn cheap(pattern: &Pattern<'_>) -> Result<Self> {
        let mut matching = Self::none(pattern.rows(), pattern.columns());
        let diagonal: Vec<usize> = (0..pattern.rows().min(pattern.columns()))
            .filter(|&row| pattern.row(row).binary_search(&(row as u32)).is_ok())
            .collect();
        if diagonal.len() < pattern.rows() {
            for pair in peel(pattern)?.0 {
                matching.pair(pair.row as usize, pair.column as usize);
            }
        }
        for row in diagonal {
            if matching.column_of[row] == UNMATCHED && matching.row_of[row] == UNMATCHED {
                matching.pair(row, row);
            }
        }
        for row in 0..pattern.rows() {
            look_at(row);
            if matching.column_of[row] == UNMATCHED {
                let free = pattern.row(row).iter().find(|&&j| matching.row_of[j as usize] == UNMATCHED);
                if let Some(&column) = free {
                    matching.pair(row, column as usize);
                }
            }
        }
        Ok(matching)
    }
}

fn unmatched(partners: &[u32]) -> Vec<u32> {
    (0..).zip(partners).filter(|(_, partner)| **partner == UNMATCHED).map(|(k, _)| k).collect()
}

/// Computes a maximum matching: Hopcroft and Karp, "An n^(5/2) algorithm for maximum matchings in bipartite graphs",
/// SIAM Journal on Computing 2 (1973). It takes O(entries sqrt(rows)), in most cases a few passes over the entries.
/// Entries on the diagonal are preferred if this loses no pair.
///
/// ```
/// use residua::{Csr, prepare::{Pattern, maximum_matching}};
///
/// let a = Csr::from_parts(3, 3, vec![0, 2, 3, 4], vec![0, 1, 1, 1], vec![1.0; 4])?;
/// let matching = maximum_matching(&Pattern::stored(&a)?)?;
/// assert_eq!(matching.pairs(), 2); // rows 1 and 2 both have an entry in column 1 alone
/// assert_eq!((matching.unmatched_rows(), matching.unmatched_columns()), (vec![2], vec![2]));
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If memory runs out.
pub fn maximum_matching(pattern: &Pattern<'_>) -> Result<Matching> {
    let mut search = Search {
        pattern,
        matching: Matching::cheap(pattern)?,
        levels: vec![FAR; pattern.rows()],
        next: vec![0; pattern.rows()],
        rows: Vec::new(),
    };
    while search.levels() {
        search.next.copy_from_slice(&pattern.starts()[..pattern.rows()]);
        for row in 0..pattern.rows() {
            look_at(row);
            if search.matching.column_of[row] == UNMATCHED {
                search.augment(row);
            }
        }
    }
    Ok(search.matching)
}

/// The level of a row that no shortest alternating path reaches.
const FAR: u32 = u32::MAX;

/// One phase, which finds a maximal set of disjoint shortest augmenting paths.
struct Search<'a> {
    pattern: &'a Pattern<'a>,
    matching: Matching,
    levels: Vec<u32>,
    /// The next entry to try in each row.
    next: Vec<usize>,
    /// First the queue of the level search, and later the current path.
    rows: Vec<u32>,
}

impl Search<'_> {
    /// Sets the level of each row to its distance from unmatched rows, up to the distance of the nearest unmatched
    /// column, and returns whether there is such a column.
    fn levels(&mut self) -> bool {
        self.levels.fill(FAR);
        self.rows = self.matching.unmatched_rows();
        self.rows.iter().for_each(|&row| self.levels[row as usize] = 0);
        let (mut at, mut last) = (0, FAR);
        while at < self.rows.len() {
            look_at(at);
            let row = self.rows[at] as usize;
            at += 1;
            let level = self.levels[row];
            if level == last {
                break;
            }
            for &column in self.pattern.row(row) {
                match self.matching.row_of[column as usize] {
                    UNMATCHED => last = level + 1,
                    next if self.levels[next as usize] == FAR => {
                        self.levels[next as usize] = level + 1;
                        self.rows.push(next);
                    }
                    _ => {}
                }
            }
        }
        last != FAR
    }

    /// Searches depth-first for an unmatched column, from level to level, and exchanges partners along the path.
    fn augment(&mut self, start: usize) {
        let starts = self.pattern.starts();
        let indices = self.pattern.indices();
        self.rows.clear();
        self.rows.push(start as u32);
        let mut steps = 0;
        while let Some(&row) = self.rows.last() {
            let row = row as usize;
            steps += 1;
            look_at(steps);
            let Some(&column) = indices[..starts[row + 1]].get(self.next[row]) else {
                // This row leads to nothing more in this phase.
                self.levels[row] = FAR;
                self.rows.pop();
                continue;
            };
            match self.matching.row_of[column as usize] {
                UNMATCHED => {
                    // Each row of the path takes the column by which the path left it.
                    while let Some(row) = self.rows.pop() {
                        let row = row as usize;
                        self.matching.pair(row, indices[self.next[row]] as usize);
                        self.next[row] += 1;
                        self.levels[row] = FAR;
                    }
                }
                owner if self.levels[owner as usize] == self.levels[row].wrapping_add(1) => {
                    self.rows.push(owner);
                }
                _ => self.next[row] += 1,
            }
        }
    }
}
