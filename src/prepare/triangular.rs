//! Dulmage-Mendelsohn decomposition and block triangular form.

use super::matching::{Matching, UNMATCHED};
use super::pattern::Pattern;
use super::strong::strong_components;
use crate::error::{Error, Result};
use crate::graph::Permutation;
use crate::work::look_at;
use std::ops::Range;

/// The kinds of diagonal blocks in the block triangular form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Fewer rows than columns: all rows are matched, and there are several solutions. Only the first block can be of
    /// this kind.
    Horizontal,
    /// As many rows as columns, all matched, and irreducible: all rows and columns reach each other.
    Square,
    /// More rows than columns: all columns are matched, and most right-hand sides have no solution. Only the last block
    /// can be of this kind.
    Vertical,
}

/// A diagonal block, which is a range of new rows and one of new columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Its rows in P A Q.
    pub rows: Range<usize>,
    /// Its columns in P A Q.
    pub columns: Range<usize>,
}

/// Permutations P and Q for which P A Q is block upper triangular.
///
/// ```text
///         | H * * * * |   H  the horizontal block, with more columns than rows
/// P A Q = | . S * * * |   S  square blocks, matched entries on their diagonals
///         | . . S * * |   V  the vertical block, with more rows than columns
///         | . . . S * |
///         | . . . . V |   Square blocks alone: A is structurally nonsingular.
/// ```
#[derive(Debug, Clone)]
pub struct BlockTriangular {
    rows: Permutation,
    columns: Permutation,
    blocks: Vec<Block>,
}

impl BlockTriangular {
    /// P: row i of P A Q is row `rows().new_to_old()[i]` of A.
    pub fn rows(&self) -> &Permutation {
        &self.rows
    }

    /// Q: column j of P A Q is column `columns().new_to_old()[j]` of A.
    pub fn columns(&self) -> &Permutation {
        &self.columns
    }

    /// The diagonal blocks from top left to bottom right. The horizontal block may have no rows, and the vertical one
    /// no columns, if A has empty columns or rows; no block has neither.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns whether all blocks are square.
    pub fn is_structurally_nonsingular(&self) -> bool {
        self.blocks.iter().all(|block| block.kind == BlockKind::Square)
    }

    /// The number of rows of the largest square block; 0 if there is none.
    pub fn largest_square(&self) -> usize {
        let square = self.blocks.iter().filter(|block| block.kind == BlockKind::Square);
        square.map(|block| block.rows.len()).max().unwrap_or(0)
    }

    /// Takes P, Q and the blocks out.
    pub fn into_parts(self) -> (Permutation, Permutation, Vec<Block>) {
        (self.rows, self.columns, self.blocks)
    }
}

/// Computes the block triangular form from a maximum matching (which may be one of largest product). The rows and
/// columns that alternating paths reach from unmatched ones are split off, and the rest is divided into strongly
/// connected components. Dulmage and Mendelsohn, "Coverings of bipartite graphs", Canadian Journal of Mathematics 10
/// (1958); Pothen and Fan, "Computing the block triangular form of a sparse matrix", ACM TOMS 16 (1990). O(entries).
///
/// ```
/// use residua::{Csr, prepare::{Pattern, block_triangular, maximum_matching}};
///
/// // Rows 0 and 2 need each other; row 1 can be solved once they are.
/// let a = Csr::from_parts(3, 3, vec![0, 2, 5, 7], vec![0, 2, 0, 1, 2, 0, 2], vec![1.0; 7])?;
/// let pattern = Pattern::stored(&a)?;
/// let form = block_triangular(&pattern, &maximum_matching(&pattern)?)?;
/// assert_eq!(form.blocks().len(), 2);
/// assert_eq!(form.rows().new_to_old(), [1, 0, 2]);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// # Errors
/// If the matching does not belong to this pattern, if it is not maximum (the message says so), or if memory runs out.
pub fn block_triangular(pattern: &Pattern<'_>, matching: &Matching) -> Result<BlockTriangular> {
    check(pattern, matching)?;
    let (column_of, row_of) = (matching.column_of(), matching.row_of());
    // The rows and columns that unmatched rows reach: a row, any of its columns, the row matched with that, and so on.
    let (vertical_rows, vertical_columns) = reached(pattern, row_of, &matching.unmatched_rows())?;
    let unmatched_columns = matching.unmatched_columns();
    let horizontal_rows = if unmatched_columns.is_empty() {
        vec![false; pattern.rows()]
    } else {
        reached(&pattern.transposed()?, column_of, &unmatched_columns)?.1
    };
    let square: Vec<u32> = (0..pattern.rows() as u32)
        .filter(|&row| !vertical_rows[row as usize] && !horizontal_rows[row as usize])
        .collect();
    let components = strong_components(&square, pattern, |column| {
        if vertical_columns[column as usize] { UNMATCHED } else { row_of[column as usize] }
    });

    // In the horizontal block, matched columns come first, next to their rows, and unmatched ones after them.
    let mut rows = marked(&horizontal_rows);
    let mut columns: Vec<u32> = rows.iter().map(|&row| column_of[row as usize]).collect();
    columns.extend(&unmatched_columns);
    let mut blocks = Vec::with_capacity(components.len() + 2);
    let mut close = |kind, rows: &[u32], columns: &[u32]| {
        let (row, column) = blocks.last().map_or((0, 0), |last: &Block| (last.rows.end, last.columns.end));
        if rows.len() > row || columns.len() > column {
            blocks.push(Block { kind, rows: row..rows.len(), columns: column..columns.len() });
        }
    };
    close(BlockKind::Horizontal, &rows, &columns);
    // A row comes before the rows that it refers to.
    for component in components.iter().rev() {
        rows.extend(component);
        columns.extend(component.iter().map(|&row| column_of[row as usize]));
        close(BlockKind::Square, &rows, &columns);
    }
    let vertical = marked(&vertical_columns);
    rows.extend(vertical.iter().map(|&column| row_of[column as usize]));
    rows.extend(matching.unmatched_rows());
    columns.extend(vertical);
    close(BlockKind::Vertical, &rows, &columns);
    Ok(BlockTriangular {
        rows: Permutation::from_new_to_old(rows)?,
        columns: Permutation::from_new_to_old(columns)?,
        blocks,
    })
}

/// Returns which rows and columns alternating paths from unmatched rows reach: by any entry to a column, and by the
/// matched entry to a row.
fn reached(pattern: &Pattern<'_>, row_of: &[u32], unmatched: &[u32]) -> Result<(Vec<bool>, Vec<bool>)> {
    let (mut rows, mut columns) = (vec![false; pattern.rows()], vec![false; pattern.columns()]);
    let mut queue = unmatched.to_vec();
    queue.iter().for_each(|&row| rows[row as usize] = true);
    let mut steps = 0;
    while let Some(row) = queue.pop() {
        steps += 1;
        look_at(steps);
        for &column in pattern.row(row as usize) {
            if std::mem::replace(&mut columns[column as usize], true) {
                continue;
            }
            match row_of[column as usize] {
                UNMATCHED => {
                    return Err(Error::InvalidArgument(
                        "block triangular form: the matching could have more pairs; use a maximum one".into(),
                    ));
                }
                next => {
                    rows[next as usize] = true;
                    queue.push(next);
                }
            }
        }
    }
    Ok((rows, columns))
}

fn marked(marks: &[bool]) -> Vec<u32> {
    (0..).zip(marks).filter(|(_, mark)| **mark).map(|(k, _)| k).collect()
}

fn check(pattern: &Pattern<'_>, matching: &Matching) -> Result<()> {
    Error::check_dimension("rows of the matching", pattern.rows(), matching.column_of().len())?;
    Error::check_dimension("columns of the matching", pattern.columns(), matching.row_of().len())?;
    for (row, &column) in matching.column_of().iter().enumerate() {
        if column != UNMATCHED && pattern.row(row).binary_search(&column).is_err() {
            return Err(Error::InvalidArgument(format!(
                "the matching pairs row {row} with column {column} (from 0), where there is no entry"
            )));
        }
    }
    Ok(())
}
