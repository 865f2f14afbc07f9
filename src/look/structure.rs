//! The structure of the graph of a matrix.

use crate::error::{Error, Result};
use crate::prepare::{BlockKind, Pattern, block_triangular, maximum_matching};
use crate::report::Facts;
use serde::Serialize;

/// How nearly triangular a matrix is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Triangle {
    /// Diagonal.
    Diagonal,
    /// Lower triangular.
    Lower,
    /// Upper triangular.
    Upper,
    /// Triangular with a full diagonal after rows and columns are permuted.
    Permuted,
    /// Not triangular in any order of rows and columns, or not with a full diagonal.
    None,
}

/// The structure that follows from the positions of the nonzero entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Structure {
    /// Connected components of the graph of A + A^T; of a rectangular matrix, of rows and columns as its vertices.
    pub components: usize,
    /// True if each component has a row with |a_ii| > sum of the other |a_ij|.
    pub strict_in_each_component: bool,
    /// The structural rank: the largest rank for any values on the pattern.
    pub rank: usize,
    /// Rows that a maximum matching (one of several possible) leaves unmatched; A lacks at least this many in row rank.
    #[serde(skip)]
    pub unmatched_rows: Vec<u32>,
    /// Columns that a maximum matching (one of several possible) leaves unmatched.
    #[serde(skip)]
    pub unmatched_columns: Vec<u32>,
    /// Square diagonal blocks of the block triangular form.
    pub square_blocks: usize,
    /// Rows of the largest of them.
    pub largest_square: usize,
    /// Rows and columns of the horizontal block, which has unmatched columns.
    pub horizontal: [usize; 2],
    /// Rows and columns of the vertical block, which has unmatched rows.
    pub vertical: [usize; 2],
    /// Whether A is triangular.
    pub triangle: Triangle,
}

impl Structure {
    /// `strict(i)` is true if row i is strictly diagonally dominant.
    pub(super) fn of(pattern: &Pattern<'_>, facts: &Facts, strict: &dyn Fn(usize) -> bool) -> Result<Self> {
        let square = pattern.rows() == pattern.columns();
        let forest = Forest::of(pattern)?;
        let Trees { number: components, largest } = forest.trees();
        let matching = maximum_matching(pattern)?;
        let diagonal = matching.column_of().iter().zip(0..).all(|(&column, row): (_, u32)| column == row);
        let mut structure = Self {
            components,
            strict_in_each_component: square
                && match facts.strictly_dominant_rows {
                    0 => components == 0,
                    some if components == 1 || some == pattern.rows() => true,
                    _ => forest.trees_with(pattern.rows(), strict) == components,
                },
            rank: matching.pairs(),
            unmatched_rows: matching.unmatched_rows(),
            unmatched_columns: matching.unmatched_columns(),
            square_blocks: components,
            largest_square: largest,
            horizontal: [0; 2],
            vertical: [0; 2],
            triangle: Triangle::None,
        };
        // If the pattern is symmetric with a full diagonal, the blocks are the components.
        if !(square && diagonal && facts.pattern_symmetric && facts.explicit_zeros == 0) {
            let form = block_triangular(pattern, &matching)?;
            structure.largest_square = form.largest_square();
            structure.square_blocks = 0;
            for block in form.blocks() {
                let size = [block.rows.len(), block.columns.len()];
                match block.kind {
                    BlockKind::Horizontal => structure.horizontal = size,
                    BlockKind::Vertical => structure.vertical = size,
                    BlockKind::Square => structure.square_blocks += 1,
                }
            }
        }
        if square {
            structure.triangle = match (facts.below_diagonal, facts.above_diagonal) {
                (0, 0) => Triangle::Diagonal,
                (0, _) => Triangle::Upper,
                (_, 0) => Triangle::Lower,
                _ if structure.rank == pattern.rows() && structure.largest_square == 1 => Triangle::Permuted,
                _ => Triangle::None,
            };
        }
        Ok(structure)
    }
}

/// A forest with one tree for each component (union-find): each vertex points towards the root, which is the smallest
/// vertex.
struct Forest {
    parents: Vec<u32>,
}

/// The number of components, and the vertices of the largest one.
struct Trees {
    number: usize,
    largest: usize,
}

impl Forest {
    /// Unites row i and column j of each entry; these are the same vertices if A is square.
    fn of(pattern: &Pattern<'_>) -> Result<Self> {
        let (rows, columns) = (pattern.rows(), pattern.columns());
        let shift = if rows == columns { 0 } else { rows };
        let Ok(vertices) = u32::try_from(shift + columns) else {
            return Err(Error::Unsupported(format!(
                "a graph of {rows} rows and {columns} columns: at most 2^32 - 1"
            )));
        };
        let mut forest = Self { parents: (0..vertices).collect() };
        for row in 0..rows {
            let mut root = forest.root(row as u32);
            for &column in pattern.row(row) {
                let other = forest.root(shift as u32 + column);
                if other != root {
                    let (low, high) = (root.min(other), root.max(other));
                    forest.parents[high as usize] = low;
                    root = low;
                }
            }
        }
        Ok(forest)
    }

    /// The root of a vertex; the path is halved on the way.
    fn root(&mut self, mut vertex: u32) -> u32 {
        loop {
            let parent = self.parents[vertex as usize];
            if parent == vertex {
                return vertex;
            }
            let above = self.parents[parent as usize];
            self.parents[vertex as usize] = above;
            vertex = above;
        }
    }

    /// The root of each vertex. Parents have smaller numbers, so one pass is enough.
    fn roots(&self) -> Vec<u32> {
        let mut roots = self.parents.clone();
        for vertex in 0..roots.len() {
            roots[vertex] = roots[roots[vertex] as usize];
        }
        roots
    }

    fn trees(&self) -> Trees {
        let mut sizes = vec![0_u32; self.parents.len()];
        self.roots().iter().for_each(|&root| sizes[root as usize] += 1);
        let number = sizes.iter().filter(|&&size| size > 0).count();
        Trees { number, largest: sizes.iter().copied().max().unwrap_or(0) as usize }
    }

    /// The number of trees that contain one of the first `vertices` vertices for which `is` holds.
    fn trees_with(&self, vertices: usize, is: &dyn Fn(usize) -> bool) -> usize {
        let roots = self.roots();
        let mut found = vec![false; roots.len()];
        (0..vertices).filter(|&vertex| is(vertex)).for_each(|vertex| found[roots[vertex] as usize] = true);
        found.iter().filter(|&&found| found).count()
    }
}
