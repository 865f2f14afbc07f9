//! LU of the diagonal blocks of a block triangular form.
//!
//! ```text
//! | B1  .  .  |   Where unknowns need each other one way alone, only the blocks on the diagonal are factorised, and
//! | *   B2 .  |   what stands below them multiplies the part of x that is known by then. A matrix that is triangular
//! | *   *  B3 |   in some order is solved by substitution.
//! ```
//!
//! With a matching's entries on its diagonal, the blocks of M are the strongly connected components of its graph (Duff
//! and Reid, An implementation of Tarjan's algorithm for the block triangularization of a matrix, ACM Trans. Math.
//! Softw. 4, 1978). Circuits and chemical plants have many: Davis and Palamadai Natarajan, Algorithm 907: KLU, ibid.
//! 37, 2010.

use super::elimination::Elimination;
use super::factor::{as_reason, columns_of_transpose};
use super::frontal::Frontal;
use super::lu::{Lu, NO_PIVOT, PREFER_DIAGONAL};
use super::options::DirectOptions;
use super::report::Reason;
use crate::backend::Offsets;
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::{OrderKind, Pattern, strong_components};
use crate::work::look_at;
use num_traits::Float;
use std::ops::Range;
use std::sync::Arc;

/// Where one block has at least this part of all rows, LU of the whole matrix is taken instead.
const MOST: f64 = 0.9;

/// A block of at most so many rows is eliminated in the order of its columns, without a search for a better one.
const SMALL: usize = 16;

/// A multiplication of LU column by column takes as long as so many of them in dense fronts.
const BY_COLUMNS: f64 = 1.5;

/// The blocks of a matrix, each with an order of elimination.
pub(super) struct BlockPlan {
    /// The columns of M, block by block: what stands beside the diagonal blocks is below them.
    members: Vec<u32>,
    /// Where each column is among them.
    places: Vec<u32>,
    /// The first column of each block, and the number of columns.
    begin: Vec<u32>,
    /// For blocks of more than one column.
    eliminations: Vec<Option<Box<Elimination>>>,
    /// Entries of L below its diagonal, those below the blocks not counted.
    pub(super) entries: f64,
    /// Multiplications, those column by column weighted by their time.
    pub(super) flops: f64,
    /// How the order of the block with most work was found.
    pub(super) kind: OrderKind,
}

impl BlockPlan {
    /// The blocks of a square matrix whose columns are the rows of `columns`; none where one has almost all rows.
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
        // In the order of the search, entries beside the diagonal blocks are above them; in the reverse order, below.
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

    /// The columns of a block, as the rows of a matrix.
    fn block<T: Factorable>(&self, columns: &Csr<T>, k: usize) -> Result<Csr<T>, Reason> {
        let parts = columns_of_transpose(columns)?;
        let (mut starts, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let range = self.range(k);
        for &column in &self.members[range.clone()] {
            for at in parts.starts[column as usize] as usize..parts.starts[column as usize + 1] as usize {
                let place = self.places[parts.indices[at] as usize] as usize;
                if range.contains(&place) {
                    // Members of a block ascend, so its rows do.
                    indices.push((place - range.start) as u32);
                    values.push(columns.parts().values[at]);
                }
            }
            starts.push(indices.len() as u32);
        }
        Ok(Csr::from_parts_unchecked(range.len(), range.len(), Offsets::Narrow(starts), indices, values))
    }
}

/// The factors of a block.
enum Diagonal<T> {
    One(T),
    Columns(Box<Lu<T>>),
    Fronts(Box<Frontal<T>>),
}

/// The factors of all blocks, and what stands below them.
pub(super) struct BlockLu<T> {
    plan: Arc<BlockPlan>,
    blocks: Vec<Diagonal<T>>,
    /// What is below the blocks by columns, both numbered block by block.
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
    /// Pivots that were made up.
    pub(super) made_up: usize,
}

impl<T: Factorable> BlockLu<T> {
    /// Factorises the blocks of a matrix whose columns are the rows of `columns`.
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

    /// A block of one row; a zero gets the pivot that LU would make up beside a largest entry of 1.
    fn one(&mut self, values: &[T]) -> Diagonal<T> {
        match values {
            [value] if *value != T::default() => Diagonal::One(*value),
            _ => {
                self.made_up += 1;
                Diagonal::One(T::from_real(Float::sqrt(<T::Real as Float>::epsilon())))
            }
        }
    }

    /// x becomes M^-1 x, of M^T where `transposed`; `work` is as long.
    pub(super) fn solve(&self, transposed: bool, x: &mut [T], work: &mut [T]) {
        let BlockPlan { members, .. } = &*self.plan;
        let mut y: Vec<T> = members.iter().map(|&member| x[member as usize]).collect();
        let solve = |k: usize, y: &mut [T], work: &mut [T]| match &self.blocks[k] {
            Diagonal::One(pivot) => y[0] /= *pivot,
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
                    y[j] = column(j).fold(y[j], |sum, (i, value)| sum - value * y[i]);
                }
                solve(k, &mut y[range.clone()], &mut work[range]);
            }
        } else {
            for k in 0..self.blocks.len() {
                let range = self.plan.range(k);
                solve(k, &mut y[range.clone()], &mut work[range.clone()]);
                for j in range {
                    let known = y[j];
                    column(j).for_each(|(i, value)| y[i] -= value * known);
                }
            }
        }
        for (&member, &y) in members.iter().zip(&y) {
            x[member as usize] = y;
        }
    }

    /// Bytes of the factors and of what stands below them.
    pub(super) fn bytes(&self) -> u64 {
        let of_block = |block: &Diagonal<T>| match block {
            Diagonal::One(_) => size_of::<Diagonal<T>>() as u64,
            Diagonal::Columns(lu) => lu.bytes(),
            Diagonal::Fronts(lu) => lu.bytes(),
        };
        let below = self.starts.len() * 8 + self.values.len() * (size_of::<T>() + 4);
        self.blocks.iter().map(of_block).sum::<u64>() + below as u64
    }

    /// Whether all entries are numbers.
    pub(super) fn is_finite(&self) -> bool {
        let of_block = |block: &Diagonal<T>| match block {
            Diagonal::One(pivot) => pivot.is_finite(),
            Diagonal::Columns(lu) => lu.is_finite(),
            Diagonal::Fronts(lu) => lu.is_finite(),
        };
        self.blocks.iter().all(of_block)
    }
}
