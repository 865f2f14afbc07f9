//! The assignment problem behind a maximum product matching: bids, then shortest paths.

use super::matching::{Matching, UNMATCHED};
use super::pattern::Pattern;
use super::peel::{Forced, peel};
use super::scaling::{LARGEST_POWER, Scaling, logarithms};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use crate::work::{self, Meter, Stage, look_at};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Cost units in a factor of two.
const UNIT: f64 = (1u64 << 32) as f64;

/// The length of a path that does not exist, and the cost of an entry that does not.
const NEVER: i64 = i64::MAX;

/// The tree of a column that every search may enter.
const ALIVE: u32 = u32::MAX;

/// The tree of a column whose row was forced.
const FORCED: u32 = u32::MAX - 1;

/// The number of passes over unmatched rows before paths are searched.
const BIDDING_PASSES: usize = 40;

/// The number of bids in all passes, for each row of the matrix.
const BIDS_A_ROW: usize = 24;

/// Steps between two checks for cancellation, which take a millisecond or less.
const STEPS: u64 = 1 << 16;

/// Returns the matching of largest product and its scaling, or none if its searches take too many steps.
pub(super) fn assigned<T: Scalar>(a: &Csr<T>, most: u64) -> Result<Option<(Matching, Scaling)>> {
    let mut sizes = logarithms(a, Pattern::stored(a)?.starts())?;
    sizes.retain(|&size| size != f64::NEG_INFINITY);
    let pattern = Pattern::nonzero(a)?;
    let (forced, transposed) = peel(&pattern)?;
    let mut assignment = Assignment::new(&pattern, &sizes, most);
    assignment.set_aside(&forced);
    assignment.start();
    assignment.look_one_step_ahead();
    assignment.bid();
    // Bids have their own limit.
    (assignment.effort.steps, assignment.effort.look) = (0, STEPS);
    for row in 0..pattern.rows() {
        if assignment.matching.column_of()[row] == UNMATCHED && !assignment.search(row) {
            return Ok(None);
        }
    }
    assignment.settle_dead_trees();
    if let Some(transposed) = transposed {
        assignment.settle_forced(&forced, &transposed);
    }
    assignment.settle_unmatched();
    let scaling = assignment.scaling(&sizes);
    Ok(Some((assignment.matching, scaling)))
}

/// Counts steps.
struct Effort {
    meter: Meter,
    steps: u64,
    most: u64,
    /// The number of steps at which cancellation is checked next.
    look: u64,
}

impl Effort {
    /// Counts some steps, and returns whether more are allowed.
    fn spend(&mut self, steps: usize) -> bool {
        self.steps += steps as u64;
        if self.steps >= self.look {
            self.look = self.steps + STEPS;
            self.meter.advance(0);
        }
        self.steps <= self.most
    }
}

/// The state between two searches: u_i + v_j <= c_ij for all columns j that are alive, with equality for matched
/// entries.
struct Assignment<'a> {
    pattern: &'a Pattern<'a>,
    costs: Vec<i64>,
    /// The largest logarithm of each row, which its costs are relative to.
    largest: Vec<i64>,
    u: Vec<i64>,
    v: Vec<i64>,
    matching: Matching,
    /// The length of the shortest path to each column in the current search; it is valid if `found` is the search's
    /// number.
    distances: Vec<i64>,
    found: Vec<u32>,
    done: Vec<u32>,
    /// The row from which the path enters each column.
    from: Vec<u32>,
    heap: BinaryHeap<Reverse<(i64, u32)>>,
    /// Columns at the current distance, which need no heap.
    near: Vec<u32>,
    /// The columns of the shortest path tree.
    tree: Vec<u32>,
    searches: u32,
    /// The failed search whose tree each column is in. No path leads out of such a tree, so later searches do not enter
    /// it.
    dead: Vec<u32>,
    /// The rows and columns of each failed search's tree; the row that it started from is the first.
    trees: Vec<(Vec<u32>, Vec<u32>)>,
    effort: Effort,
}

impl<'a> Assignment<'a> {
    fn new(pattern: &'a Pattern<'a>, sizes: &[f64], most: u64) -> Self {
        let (rows, columns) = (pattern.rows(), pattern.columns());
        let mut costs = vec![0; sizes.len()];
        costs.par_iter_mut().zip(sizes).with_min_len(1 << 14).for_each(|(cost, &size)| {
            *cost = (-size * UNIT).round() as i64;
        });
        let mut largest = vec![0; rows];
        for (row, largest) in largest.iter_mut().enumerate() {
            look_at(row);
            let line = &mut costs[pattern.starts()[row]..pattern.starts()[row + 1]];
            let least = line.iter().copied().min().unwrap_or(0);
            line.iter_mut().for_each(|cost| *cost -= least);
            *largest = -least;
        }
        Self {
            pattern,
            costs,
            largest,
            u: vec![0; rows],
            v: vec![0; columns],
            matching: Matching::none(rows, columns),
            distances: vec![0; columns],
            found: vec![0; columns],
            done: vec![0; columns],
            from: vec![0; columns],
            heap: BinaryHeap::new(),
            near: Vec::new(),
            tree: Vec::new(),
            searches: 0,
            dead: vec![ALIVE; columns],
            trees: Vec::new(),
            effort: Effort { meter: work::begin(Stage::Ordering, 0, None), steps: 0, most, look: STEPS },
        }
    }

    /// The columns and costs of a row's entries.
    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        let places = self.pattern.starts()[row]..self.pattern.starts()[row + 1];
        both(self.pattern.row(row), &self.costs[places]).map(|(&column, &cost)| (column as usize, cost))
    }

    /// The entries of a row without columns that were set aside.
    fn alive(&self, row: usize) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.entries(row).filter(|&(column, _)| self.dead[column] == ALIVE)
    }

    /// Sets forced pairs aside; the searches do not see them.
    fn set_aside(&mut self, forced: &[Forced]) {
        for pair in forced {
            self.matching.pair(pair.row as usize, pair.column as usize);
            self.dead[pair.column as usize] = FORCED;
        }
    }

    /// Makes first v_j and then u_i as large as possible, and then matches pairs of zero cost, those on the diagonal
    /// first.
    fn start(&mut self) {
        let rows: Vec<usize> = self.matching.unmatched_rows().into_iter().map(|row| row as usize).collect();
        self.v.fill(NEVER);
        for &row in &rows {
            look_at(row);
            let places = self.pattern.starts()[row]..self.pattern.starts()[row + 1];
            for (&column, &cost) in both(self.pattern.row(row), &self.costs[places]) {
                let v = &mut self.v[column as usize];
                *v = (*v).min(cost);
            }
        }
        self.v.iter_mut().filter(|v| **v == NEVER).for_each(|v| *v = 0);
        for &row in &rows {
            look_at(row);
            self.u[row] = self.alive(row).map(|(column, cost)| cost - self.v[column]).min().unwrap_or(0);
            let diagonal = self.alive(row).find(|&(column, _)| column == row);
            if diagonal.is_some_and(|(_, cost)| cost == self.u[row] + self.v[row]) {
                self.matching.pair(row, row);
            }
        }
        for row in rows {
            if self.matching.column_of()[row] == UNMATCHED
                && let Some(column) = self.free_column(row)
            {
                self.matching.pair(row, column);
            }
        }
    }

    /// Returns an unmatched column of zero reduced cost.
    fn free_column(&self, row: usize) -> Option<usize> {
        let mut entries = self.alive(row);
        entries
            .find(|&(column, cost)| {
                self.matching.row_of()[column] == UNMATCHED && cost == self.u[row] + self.v[column]
            })
            .map(|(column, _)| column)
    }

    /// For each row left, checks whether the owner of a column of zero reduced cost can take another one of zero
    /// reduced cost.
    fn look_one_step_ahead(&mut self) {
        for row in 0..self.u.len() {
            look_at(row);
            if self.matching.column_of()[row] != UNMATCHED {
                continue;
            }
            let swap = self
                .alive(row)
                .filter(|&(column, cost)| cost == self.u[row] + self.v[column])
                .find_map(|(column, _)| {
                    let owner = self.matching.row_of()[column];
                    if owner == UNMATCHED {
                        return Some((None, column));
                    }
                    self.free_column(owner as usize).map(|other| (Some((owner as usize, other)), column))
                });
            if let Some((moved, column)) = swap {
                if let Some((owner, other)) = moved {
                    self.matching.pair(owner, other);
                }
                self.matching.pair(row, column);
            }
        }
    }

    /// Each unmatched row takes its cheapest column, at a price that makes its second cheapest equally good, and the
    /// previous owner then does the same: the row reduction of Jonker and Volgenant, "A shortest augmenting path
    /// algorithm for dense and sparse linear assignment problems", Computing 38 (1987). It can take long if many rows
    /// compete for few columns, so bids are limited.
    fn bid(&mut self) {
        let mut waiting = self.matching.unmatched_rows();
        let mut left = BIDS_A_ROW * self.u.len();
        for _ in 0..BIDDING_PASSES {
            for mut row in std::mem::take(&mut waiting) {
                while let Some((column, least, second)) = self.two_cheapest(row as usize) {
                    // A row with one column would pay any price; a search finds the right one.
                    if left == 0 || second == NEVER {
                        waiting.push(row);
                        break;
                    }
                    left -= 1;
                    self.effort.spend(self.pattern.row(row as usize).len());
                    let owner = self.matching.row_of()[column];
                    self.u[row as usize] = second;
                    self.v[column] -= second - least;
                    if owner == UNMATCHED {
                        self.matching.pair(row as usize, column);
                        break;
                    }
                    self.matching.release(owner as usize);
                    self.matching.pair(row as usize, column);
                    row = owner;
                    if second == least {
                        waiting.push(row);
                        break;
                    }
                }
            }
        }
    }

    /// Returns the cheapest column of a row (a free one if there are several), its cost, and the second smallest cost.
    fn two_cheapest(&self, row: usize) -> Option<(usize, i64, i64)> {
        let (mut best, mut least, mut second) = (None, NEVER, NEVER);
        for (column, cost) in self.alive(row) {
            let cost = cost - self.v[column];
            if cost < least || cost == least && self.matching.row_of()[column] == UNMATCHED {
                (second, least, best) = (least, cost, Some(column));
            } else {
                second = second.min(cost);
            }
        }
        best.map(|column| (column, least, second))
    }

    /// Finds the shortest augmenting path from an unmatched row, if there is one, and exchanges partners along it.
    /// Returns false if the allowed steps were used up.
    fn search(&mut self, start: usize) -> bool {
        self.searches += 1;
        self.heap.clear();
        self.near.clear();
        self.tree.clear();
        let (mut row, mut distance, mut shortest, mut end) = (start, 0, NEVER, 0);
        loop {
            if !self.effort.spend(self.pattern.row(row).len() + 1) {
                return false;
            }
            self.reach(row, distance, &mut shortest, &mut end);
            let Some((column, length)) = self.nearest(distance, shortest) else { break };
            self.done[column] = self.searches;
            self.tree.push(column as u32);
            (row, distance) = (self.matching.row_of()[column] as usize, length);
        }
        if shortest == NEVER {
            self.bury(start);
            return true;
        }
        self.u[start] += shortest;
        for &column in &self.tree {
            let saved = shortest - self.distances[column as usize];
            self.v[column as usize] -= saved;
            self.u[self.matching.row_of()[column as usize] as usize] += saved;
        }
        // Back along the path, each row leaves the column by which the path entered it to the row before.
        loop {
            let row = self.from[end] as usize;
            let before = self.matching.column_of()[row];
            self.matching.pair(row, end);
            if row == start {
                return true;
            }
            end = before as usize;
        }
    }

    /// Continues paths over the entries of a row at this distance.
    fn reach(&mut self, row: usize, distance: i64, shortest: &mut i64, end: &mut usize) {
        let places = self.pattern.starts()[row]..self.pattern.starts()[row + 1];
        let base = distance - self.u[row];
        for (&column, &cost) in both(self.pattern.row(row), &self.costs[places]) {
            let j = column as usize;
            if self.dead[j] != ALIVE || self.done[j] == self.searches {
                continue;
            }
            let length = base + cost - self.v[j];
            if length >= *shortest || (self.found[j] == self.searches && length >= self.distances[j]) {
                continue;
            }
            self.from[j] = row as u32;
            if self.matching.row_of()[j] == UNMATCHED {
                (*shortest, *end) = (length, j);
                if length == distance {
                    return;
                }
                continue;
            }
            (self.found[j], self.distances[j]) = (self.searches, length);
            if length == distance {
                self.near.push(column);
            } else {
                self.heap.push(Reverse((length, column)));
            }
        }
    }

    /// Returns the nearest column that is not done and its distance, unless an unmatched column is as near.
    fn nearest(&mut self, distance: i64, shortest: i64) -> Option<(usize, i64)> {
        if shortest == distance {
            return None;
        }
        while let Some(column) = self.near.pop() {
            if self.done[column as usize] != self.searches {
                return Some((column as usize, distance));
            }
        }
        while let Some(Reverse((length, column))) = self.heap.pop() {
            if length >= shortest {
                return None;
            }
            // A heap entry is outdated if a shorter path was found later.
            if self.done[column as usize] != self.searches && length == self.distances[column as usize] {
                return Some((column as usize, length));
            }
        }
        None
    }

    /// Excludes the tree of a failed search from all later searches.
    fn bury(&mut self, start: usize) {
        let number = self.trees.len() as u32;
        let mut rows = vec![start as u32];
        for &column in &self.tree {
            self.dead[column as usize] = number;
            rows.push(self.matching.row_of()[column as usize]);
        }
        self.trees.push((rows, std::mem::take(&mut self.tree)));
    }

    /// Restores u_i + v_j <= c_ij for columns of dead trees, after the u of other rows have grown. All entries of rows
    /// in a tree are in its own columns or in those of earlier trees. Subtracting a number from a tree's columns and
    /// adding it to its rows therefore changes nothing inside, and the latest tree is settled first.
    fn settle_dead_trees(&mut self) {
        if self.trees.is_empty() {
            return;
        }
        let trees = std::mem::take(&mut self.trees);
        let mut excess = vec![0; trees.len()];
        let mut buried = vec![false; self.u.len()];
        trees.iter().flat_map(|(rows, _)| rows).for_each(|&row| buried[row as usize] = true);
        for row in (0..self.u.len()).filter(|&row| !buried[row]) {
            look_at(row);
            let column = self.matching.column_of()[row];
            if self.dead[column as usize] != FORCED {
                self.note_excess(row, &mut excess);
            }
        }
        for (number, (rows, columns)) in trees.iter().enumerate().rev() {
            rows.iter().for_each(|&row| self.u[row as usize] += excess[number]);
            columns.iter().for_each(|&column| self.v[column as usize] -= excess[number]);
            for &row in rows {
                let (earlier, _) = excess.split_at_mut(number);
                self.note_excess(row as usize, earlier);
            }
        }
    }

    /// Raises each tree's element of `excess` to the largest amount by which the row's entries violate the inequality.
    /// Trees beyond the end of `excess` are left out.
    fn note_excess(&self, row: usize, excess: &mut [i64]) {
        for (column, cost) in self.entries(row) {
            if let Some(most) = excess.get_mut(self.dead[column] as usize) {
                *most = (*most).max(self.u[row] + self.v[column] - cost);
            }
        }
    }

    /// Sets u and v of forced pairs, the last pair first. Of the row and column of a pair, the one with other entries
    /// in the settled part gets the largest number that these allow; the other makes their common entry cost zero.
    /// Unmatched rows and columns impose no limits and are settled at the end.
    fn settle_forced(&mut self, forced: &[Forced], transposed: &Pattern<'_>) {
        let mut row_settled: Vec<bool> = self.matching.column_of().iter().map(|&j| j != UNMATCHED).collect();
        let mut column_settled: Vec<bool> = self.matching.row_of().iter().map(|&i| i != UNMATCHED).collect();
        for pair in forced {
            (row_settled[pair.row as usize], column_settled[pair.column as usize]) = (false, false);
        }
        for &Forced { row, column, by_row } in forced.iter().rev() {
            let (i, j) = (row as usize, column as usize);
            let own = self.cost(i, column);
            if by_row {
                let others = transposed.row(j).iter().map(|&k| k as usize).filter(|&k| row_settled[k]);
                let most = others.map(|k| self.cost(k, column) - self.u[k]).min();
                self.v[j] = most.unwrap_or(0);
                self.u[i] = own - self.v[j];
            } else {
                let others = self.entries(i).filter(|&(k, _)| column_settled[k]);
                let most = others.map(|(k, cost)| cost - self.v[k]).min();
                self.u[i] = most.unwrap_or(0);
                self.v[j] = own - self.u[i];
            }
            (row_settled[i], column_settled[j]) = (true, true);
        }
    }

    /// The cost of an entry.
    fn cost(&self, row: usize, column: u32) -> i64 {
        let place = self.pattern.row(row).binary_search(&column);
        place.map_or(NEVER, |place| self.costs[self.pattern.starts()[row] + place])
    }

    /// Brings the largest entry of each unmatched row and column to magnitude 1.
    fn settle_unmatched(&mut self) {
        for row in self.matching.unmatched_rows() {
            let row = row as usize;
            self.u[row] = self.entries(row).map(|(column, cost)| cost - self.v[column]).min().unwrap_or(0);
        }
        let unmatched = self.matching.unmatched_columns();
        if unmatched.is_empty() {
            return;
        }
        let mut least = vec![NEVER; self.v.len()];
        for row in 0..self.u.len() {
            for (column, cost) in self.entries(row) {
                least[column] = least[column].min(cost - self.u[row]);
            }
        }
        for column in unmatched.into_iter().map(|column| column as usize) {
            self.v[column] = if least[column] == NEVER { 0 } else { least[column] };
        }
    }

    /// Computes the scale factors. Those of matched rows are computed from the entries' magnitudes again, so matched
    /// entries have magnitude 1 up to rounding and not only up to a unit of cost. The part that can be shifted between
    /// rows and columns is divided evenly.
    fn scaling(&self, sizes: &[f64]) -> Scaling {
        let mean = |numbers: &mut dyn Iterator<Item = f64>, count: usize| {
            numbers.sum::<f64>() / (count as f64 * UNIT).max(1.0)
        };
        let row_logarithms = self.u.iter().zip(&self.largest).map(|(u, largest)| (u - largest) as f64);
        let moved = (mean(&mut row_logarithms.clone(), self.u.len())
            - mean(&mut self.v.iter().map(|&v| v as f64), self.v.len()))
            / 2.0;
        let mut columns: Vec<f64> = self.v.iter().map(|&v| v as f64 / UNIT + moved).collect();
        let mut rows: Vec<f64> = row_logarithms.map(|logarithm| logarithm / UNIT - moved).collect();
        for (row, &column) in self.matching.column_of().iter().enumerate() {
            if let Ok(place) = self.pattern.row(row).binary_search(&column) {
                rows[row] = -sizes[self.pattern.starts()[row] + place] - columns[column as usize];
            }
        }
        if rows.iter().chain(&columns).any(|factor| factor.abs() > LARGEST_POWER) {
            // Such factors cannot be represented: those of columns are cut off, and rows are scaled to a largest entry
            // of 1.
            columns
                .iter_mut()
                .for_each(|factor| *factor = factor.clamp(-0.5 * LARGEST_POWER, 0.5 * LARGEST_POWER));
            for (row, factor) in rows.iter_mut().enumerate() {
                let entries = self.pattern.row(row).iter().zip(&sizes[self.pattern.starts()[row]..]);
                let largest = entries.map(|(&column, size)| size + columns[column as usize]);
                let largest = largest.fold(f64::NEG_INFINITY, f64::max);
                *factor = if largest.is_finite() { -largest } else { 0.0 };
            }
        }
        Scaling::from_logarithms(&rows, &columns)
    }
}
