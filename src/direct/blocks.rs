//! LU of the diagonal blocks of a block triangular form.
//!
//! ```text
//! | B1  .  .  |   If the dependence between unknowns goes in one direction only, it is enough to factorise the
//! | *   B2 .  |   diagonal blocks. The entries below them multiply the part of x that has been computed by then.
//! | *   *  B3 |   A matrix that can be permuted to triangular form is solved by substitution.
//! ```
//!
//! With a maximum matching on the diagonal, the blocks of M are the strongly connected components of its graph (Duff
//! and Reid, An implementation of Tarjan's algorithm for the block triangularization of a matrix, ACM Trans. Math.
//! Softw. 4, 1978). Matrices of circuits and chemical plants have many such blocks: Davis and Palamadai Natarajan,
//! Algorithm 907: KLU, ibid. 37, 2010.

use super::elimination::Elimination;
use super::frontal::Frontal;
use super::lanes::subtract_row;
use super::lu::{Lu, NO_PIVOT, PREFER_DIAGONAL};
use super::options::DirectOptions;
use super::report::Reason;
use super::steps::{as_reason, columns_of_transpose};
use crate::backend::Offsets;
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::{OrderKind, Pattern, strong_components};
use crate::work::look_at;
use num_traits::Float;
use std::ops::Range;
use std::sync::Arc;

/// If one block has at least this fraction of all rows, the whole matrix is factorised instead.
const MOST: f64 = 0.9;

/// Blocks with at most this many rows are eliminated in their natural order, without a search for a better one.
const SMALL: usize = 16;

/// The time of a multiplication in LU column by column, relative to one in dense fronts.
const BY_COLUMNS: f64 = 1.5;

/// The diagonal blocks of a matrix, each with its fill-reducing ordering.
pub(super) struct BlockPlan {
    /// The columns of M, block by block, ordered such that off-diagonal entries are below the diagonal blocks.
    members: Vec<u32>,
    /// The position of each column in `members`.
    places: Vec<u32>,
    /// The first column of each block, then the total number of columns.
    begin: Vec<u32>,
    /// The ordering of each block with more than one column.
    eliminations: Vec<Option<Box<Elimination>>>,
    /// Entries of L below its diagonal, without those below the diagonal blocks.
    pub(super) entries: f64,
    /// Multiplications; those done column by column are weighted by their longer time.
    pub(super) flops: f64,
    /// The method that ordered the block with the most work.
    pub(super) kind: OrderKind,
}

impl BlockPlan {
    /// Splits a square matrix, given as the rows of `columns`, into blocks. `None` if one block has almost all rows.
    pub(super) fn new<T: Factorable>(
        columns: &Csr<T>,
        options: &DirectOptions,
    ) -> Result<Option<Self>, Reason> {
        let n = columns.rows();
        let all: Vec<u32> = (0..n as u32).collect();
        let pattern = Pattern::stored(columns).map_err(as_reason)?;
        let mut blocks = strong_components(&all, &pattern, |row| row);
        let largest = blocks.iter().map(Vec::len).max().unwrap_or(0);
        if largest as f64 >= MOST * n as f64 {
            return Ok(None);
        }
        // Tarjan's search finds blocks such that off-diagonal entries are above; reversed, they are below.
        blocks.reverse();
        let mut plan = Self {
            members: Vec::with_capacity(n),
            places: vec![0; n],
            begin: vec![0],
            eliminations: Vec::with_capacity(blocks.len()),
            entries: 0.0,
            flops: 0.0,
            kind: OrderKind::MinimumDegree,
        };
        for block in &blocks {
            plan.members.extend(block);
            plan.begin.push(plan.members.len() as u32);
        }
        for (place, &member) in plan.members.iter().enumerate() {
            plan.places[member as usize] = place as u32;
        }
        let mut most = 0.0;
        for (k, block) in blocks.iter().enumerate() {
            look_at(k);
            let elimination = match block.len() {
                1 => None,
                few if few <= SMALL => Some(Box::new(Elimination::natural(few))),
                _ => Some(Box::new(Elimination::new(&plan.block(columns, k)?, options)?)),
            };
            if let Some(elimination) = &elimination {
                let weight = if elimination.suits_fronts() { 1.0 } else { BY_COLUMNS };
                plan.entries += elimination.entries;
                plan.flops += weight * elimination.flops;
                if elimination.flops > most {
                    (most, plan.kind) = (elimination.flops, elimination.kind);
                }
            }
            plan.eliminations.push(elimination);
        }
        Ok(Some(plan))
    }

    fn range(&self, k: usize) -> Range<usize> {
        self.begin[k] as usize..self.begin[k + 1] as usize
    }

    /// The columns of block k, stored as the rows of a matrix.
    fn block<T: Factorable>(&self, columns: &Csr<T>, k: usize) -> Result<Csr<T>, Reason> {
        let parts = columns_of_transpose(columns)?;
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let range = self.range(k);
        for &column in &self.members[range.clone()] {
            for at in parts.starts[column as usize] as usize..parts.starts[column as usize + 1] as usize {
                let place = self.places[parts.indices[at] as usize] as usize;
                if range.contains(&place) {
                    // The members of a block ascend, so its row indices do too.
                    indices.push((place - range.start) as u32);
                    values.push(columns.parts().values[at]);
                }
            }
            starts.push(indices.len() as u32);
        }
        Ok(Csr::from_parts_unchecked(range.len(), range.len(), Offsets::Lower(starts), indices, values))
    }
}

/// The factors of one diagonal block.
enum Diagonal<T> {
    One(T),
    Columns(Box<Lu<T>>),
    Fronts(Box<Frontal<T>>),
}

/// The factors of all blocks, and the entries below them.
pub(super) struct BlockLu<T> {
    plan: Arc<BlockPlan>,
    blocks: Vec<Diagonal<T>>,
    /// The entries below the blocks, by columns; rows and columns are numbered block by block.
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
    /// The number of perturbed pivots.
    pub(super) made_up: usize,
}

impl<T: Factorable> BlockLu<T> {
    /// Factorises the blocks of a matrix given as the rows of `columns`.
    pub(super) fn new(
        columns: &Csr<T>,
        plan: &Arc<BlockPlan>,
        options: &DirectOptions,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Reason> {
        let parts = columns_of_transpose(columns)?;
        let mut lu = Self {
            plan: plan.clone(),
            blocks: Vec::with_capacity(plan.eliminations.len()),
            starts: Vec::with_capacity(plan.members.len() + 1),
            indices: Vec::new(),
            values: Vec::new(),
            made_up: 0,
        };
        lu.starts.push(0);
        for (k, elimination) in plan.eliminations.iter().enumerate() {
            look_at(k);
            let end = plan.begin[k + 1];
            for &column in &plan.members[plan.range(k)] {
                for at in parts.starts[column as usize] as usize..parts.starts[column as usize + 1] as usize {
                    let place = plan.places[parts.indices[at] as usize];
                    if place >= end {
                        lu.indices.push(place);
                        lu.values.push(columns.parts().values[at]);
                    }
                }
                lu.starts.push(lu.indices.len());
            }
            let block = plan.block(columns, k)?;
            let diagonal = match elimination {
                None => lu.one(block.parts().values),
                Some(elimination) if elimination.suits_fronts() => {
                    Diagonal::Fronts(Box::new(elimination.in_fronts(&block, options, going)?))
                }
                Some(elimination) => {
                    let (entries, pivots) = (columns_of_transpose(&block)?, (NO_PIVOT, PREFER_DIAGONAL));
                    let values = block.parts().values;
                    let lu = elimination.by_columns(entries, values, pivots, options, going)?;
                    Diagonal::Columns(Box::new(lu))
                }
            };
            lu.made_up += match &diagonal {
                Diagonal::One(_) => 0,
                Diagonal::Columns(lu) => lu.made_up,
                Diagonal::Fronts(lu) => lu.made_up,
            };
            lu.blocks.push(diagonal);
        }
        Ok(lu)
    }

    /// Factorises a block of one row. A zero is replaced by the pivot that LU would use if the largest entry were 1.
    fn one(&mut self, values: &[T]) -> Diagonal<T> {
        match values {
            [value] if *value != T::default() => Diagonal::One(*value),
            _ => {
                self.made_up += 1;
                Diagonal::One(T::from_real(Float::sqrt(<T::Real as Float>::epsilon())))
            }
        }
    }

    /// Replaces x by M^-1 x, or by M^-T x if `transposed`, for `N` vectors; `work` has the same length.
    pub(super) fn solve<const N: usize>(&self, transposed: bool, x: &mut [[T; N]], work: &mut [[T; N]]) {
        let BlockPlan { members, .. } = &*self.plan;
        let mut y: Vec<[T; N]> = members.iter().map(|&member| x[member as usize]).collect();
        let solve = |k: usize, y: &mut [[T; N]], work: &mut [[T; N]]| match &self.blocks[k] {
            Diagonal::One(pivot) => y[0].iter_mut().for_each(|y| *y /= *pivot),
            Diagonal::Columns(lu) => lu.solve(transposed, y, work),
            Diagonal::Fronts(lu) => lu.solve(transposed, y, work),
        };
        let column = |j: usize| {
            let range = self.starts[j]..self.starts[j + 1];
            both(&self.indices[range.clone()], &self.values[range]).map(|(&i, &value)| (i as usize, value))
        };
        if transposed {
            for k in (0..self.blocks.len()).rev() {
                let range = self.plan.range(k);
                for j in range.clone() {
                    let mut row = y[j];
                    column(j).for_each(|(i, value)| subtract_row(&mut row, value, &y[i]));
                    y[j] = row;
                }
                solve(k, &mut y[range.clone()], &mut work[range]);
            }
        } else {
            for k in 0..self.blocks.len() {
                let range = self.plan.range(k);
                solve(k, &mut y[range.clone()], &mut work[range.clone()]);
                for j in range {
                    let known = y[j];
                    column(j).for_each(|(i, value)| subtract_row(&mut y[i], value, &known));
                }
            }
        }
        for (&member, &y) in members.iter().zip(&y) {
            x[member as usize] = y;
        }
    }

    /// Memory of the factors and of the entries below them, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let of_block = |block: &Diagonal<T>| match block {
            Diagonal::One(_) => size_of::<Diagonal<T>>() as u64,
            Diagonal::Columns(lu) => lu.bytes(),
            Diagonal::Fronts(lu) => lu.bytes(),
        };
        let below = self.starts.len() * 8 + self.values.len() * (size_of::<T>() + 4);
        self.blocks.iter().map(of_block).sum::<u64>() + below as u64
    }

    /// Returns whether all entries are finite.
    pub(super) fn is_finite(&self) -> bool {
        let of_block = |block: &Diagonal<T>| match block {
            Diagonal::One(pivot) => pivot.is_finite(),
            Diagonal::Columns(lu) => lu.is_finite(),
            Diagonal::Fronts(lu) => lu.is_finite(),
        };
        self.blocks.iter().all(of_block)
    }
}
