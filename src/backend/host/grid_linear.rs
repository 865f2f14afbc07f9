//! Multigrid on grids with the interpolating prolongation (`crate::backend::grid`), on the CPU. Sums are added in the
//! same order as in `kernels/grid_linear.cu`.

use super::sums::for_chunks;
use crate::backend::{
    DIA_SECTION, Grid, GridMatrix, Host, LEAST_LEFT, NEIGHBOURS, Neighbours, bits_of, check_weights,
    first_place, grid_values, interpolated as interpolated_neighbours, is_no_entry, no_entry, weight_number,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of slices in a task.
const SECTIONS: usize = 16;

/// The number of boxes along x whose rows are computed together.
const BLOCK: usize = 64;

fn moved(place: [usize; 3], bits: usize) -> [usize; 3] {
    [0, 1, 2].map(|axis| place[axis] + (bits >> axis & 1))
}

/// Computes the weights of the point of a box with odd coordinates along `odd`, one for each corner. `away` has the
/// displacement of each neighbour, with bit masks of the axes along which it is not zero and along which it is
/// negative. Sets `bad` if the point's row has an entry for a point outside of the grid, or one that is infinite or
/// NaN.
fn weights_of<T: Scalar>(
    a: &GridMatrix<'_, T, Host>,
    away: &[([i64; 3], (usize, usize))],
    weights: &[T],
    (place, odd): ([usize; 3], usize),
    bad: &AtomicBool,
) -> [T; 8] {
    let (grid, coarse) = (a.grid, a.grid.coarser());
    let mut sums = [T::zero(); 8];
    let point = [0, 1, 2].map(|axis| 2 * place[axis] + (odd >> axis & 1));
    if !grid.has(point) {
        return sums;
    }
    let first = first_place(grid.number(point), away.len());
    let (mut left, mut others) = (T::Real::zero(), T::Real::zero());
    // An inner point of a three-dimensional grid has all neighbours, so no check is needed.
    let inner = (0..3).all(|axis| point[axis] > 0 && point[axis] + 1 < grid.sizes[axis]);
    for (k, &(by, (all, down))) in away.iter().enumerate() {
        let value = a.values[first + k * DIA_SECTION];
        if value == T::zero() || is_no_entry(value) {
            continue;
        }
        if !value.is_finite() || (!inner && grid.neighbour(point, by).is_none()) {
            bad.store(true, Ordering::Relaxed);
            continue;
        }
        // The odd axes along which the neighbour differs from the point, and those of them along which it is above.
        let (across, up) = (all & odd, all & !down & odd);
        if across == 0 {
            left += value.re();
            continue;
        }
        others += value.abs();
        let still = odd & !across;
        let there = coarse.number(moved(place, up));
        for corner in (0..8).filter(|corner| corner & !still == 0) {
            let weight = match still {
                0 => T::one(),
                _ => weights[weight_number(still, corner) * coarse.points() + there],
            };
            sums[up | corner] -= value * weight;
        }
    }
    // Must not be written as a negated comparison, because it has to be false for NaN.
    let tells = left > T::Real::from_f64(LEAST_LEFT) * others;
    let left = if tells { left } else { others };
    let each = T::from_real(left.recip());
    sums.map(|sum| if left > T::Real::zero() { sum * each } else { T::zero() })
}

/// See [`crate::backend::GridSteps::grid_weights`].
pub(super) fn weights<T: Scalar>(
    a: GridMatrix<'_, T, Host>,
    weights: &mut [T],
    unfit: &mut [u32],
) -> Result<()> {
    a.check()?;
    check_weights(a.grid, weights.len())?;
    let coarse = a.grid.coarser();
    let (boxes, line) = (coarse.points(), coarse.sizes[0]);
    let away: Vec<_> = a.neighbours.iter().map(|by| (by, bits_of(by))).collect();
    let bad = AtomicBool::new(false);
    let kinds = if a.grid.sizes[2] > 1 { 8 } else { 4 };
    // Points between two coarse points come first, because the others need their weights.
    for odd in (0..=3).flat_map(|axes| (0..kinds).filter(move |odd: &usize| odd.count_ones() == axes)) {
        let corners: Vec<usize> = (0..8).filter(|corner| corner & !odd == 0).collect();
        let mut made = vec![T::zero(); corners.len() * boxes];
        let lines = made.par_chunks_mut(corners.len() * line).enumerate();
        for_chunks(a.grid.points(), lines, |(number, made)| {
            let [_, y, z] = coarse.place(number * line);
            for (x, made) in made.chunks_mut(corners.len()).enumerate() {
                let all = weights_of(&a, &away, weights, ([x, y, z], odd), &bad);
                made.iter_mut().zip(&corners).for_each(|(made, &corner)| *made = all[corner]);
            }
        });
        if odd > 0 {
            let first = weight_number(odd, 0);
            let slots = weights[first * boxes..(first + corners.len()) * boxes].par_chunks_mut(boxes);
            slots.enumerate().for_each(|(slot, weights)| {
                let of_slot = made[slot..].iter().step_by(corners.len());
                weights.iter_mut().zip(of_slot).for_each(|(weight, &made)| *weight = made);
            });
        }
    }
    if bad.into_inner() {
        unfit[0] = 1;
    }
    Ok(())
}

/// A coarse point to which an entry in the row of a fine point contributes.
struct Parent {
    /// Its displacement from the row's coarse point, and the index of the entry.
    by: [i64; 3],
    entry: usize,
    /// The number of its weight, and the offset of its box from the row's box; `None` if the weight is one.
    weight: Option<(usize, i64)>,
}

/// Returns the parents of a point: the neighbour at displacement `by` of a point that is itself at displacement `from`
/// of a coarse point.
fn parents(coarse: Grid, from: [i64; 3], by: [i64; 3], to: Neighbours) -> Vec<Parent> {
    let end = [0, 1, 2].map(|axis| from[axis] + by[axis]);
    let all = Neighbours::ALL.iter().filter_map(|parent| {
        let offset = [0, 1, 2].map(|axis| end[axis] - 2 * parent[axis]);
        if offset.iter().any(|d| d.abs() > 1) {
            return None;
        }
        let (odd, back) = bits_of(offset);
        let of_box = [0, 1, 2].map(|axis| parent[axis] - (back >> axis & 1) as i64);
        let weight = (odd != 0).then(|| (weight_number(odd, back), coarse.distance(of_box)));
        Some(Parent { by: parent, entry: to.number(parent)?, weight })
    });
    all.collect()
}

/// Returns those of `rows` rows in a line whose points exist: the first row has x = `start`, each later one `step`
/// more, and x must be from 0 to `size` - 1.
fn lanes(start: i64, step: i64, size: usize, rows: usize) -> Range<usize> {
    let before = |bound: i64| (bound - start + step - 1).div_euclid(step).clamp(0, rows as i64) as usize;
    before(0)..before(size as i64)
}

/// The values of consecutive rows, for each of their possible entries.
type Rows<T> = [[T; BLOCK]; NEIGHBOURS];

/// The operands of P^H A P.
struct Product<'a, T: Scalar> {
    a: GridMatrix<'a, T, Host>,
    weights: &'a [T],
    coarse: Grid,
    away: Vec<[i64; 3]>,
    /// For each fine point with a weight for a row, grouped by y: its displacement and, for each of its entries, the
    /// coarse points to which the entry contributes.
    table: Vec<([i64; 3], Vec<Vec<Parent>>)>,
}

impl<T: Scalar> Product<'_, T> {
    /// Computes the entries of `rows` rows from `first` on. All are in one line.
    fn rows(&self, first: usize, rows: usize, all: &mut Rows<T>) {
        let Self { a: GridMatrix { grid, neighbours, values }, weights, coarse, .. } = *self;
        let (place, boxes) = (coarse.place(first).map(|at| at as i64), coarse.points());
        let has = |grid: Grid, place: [i64; 3]| {
            (1..3).all(|axis| (0..grid.sizes[axis] as i64).contains(&place[axis]))
        };
        let added = |to: [i64; 3], by: [i64; 3]| [0, 1, 2].map(|axis| to[axis] + by[axis]);
        // The sums over the points with the same y. These sums are then added up in `all`.
        let mut sums = [[T::zero(); BLOCK]; NEIGHBOURS];
        all.iter_mut().for_each(|all| all.fill(T::zero()));
        let (mut here, mut of_row) = ([T::one(); BLOCK], [T::zero(); BLOCK]);
        for (number, (from, leads)) in self.table.iter().enumerate() {
            if number > 0 && number % 9 == 0 {
                take(&mut sums, all);
            }
            let point = added(place.map(|at| 2 * at), *from);
            if !has(grid, point) {
                continue;
            }
            let there = lanes(point[0], 2, grid.sizes[0], rows);
            let (odd, back) = bits_of(*from);
            if odd != 0 {
                let of_box = [0, 1, 2].map(|axis| -((back >> axis & 1) as i64));
                let start = (weight_number(odd, back) * boxes + first) as i64 + coarse.distance(of_box);
                for lane in there.clone() {
                    here[lane] = weights[(start + lane as i64) as usize].conj();
                }
            } else {
                here.fill(T::one());
            }
            // The number of the first row's point, if it exists. From row to row it grows by two.
            let start = grid.distance(point);
            for ((k, &by), parents) in self.away.iter().enumerate().zip(leads) {
                if !has(grid, added(point, by)) {
                    continue;
                }
                let ends = lanes(point[0] + by[0], 2, grid.sizes[0], rows);
                let inside = there.start.max(ends.start)..there.end.min(ends.end);
                of_row[..rows].fill(T::zero());
                for lane in inside.clone() {
                    let row = (start + 2 * lane as i64) as usize;
                    let value = values[first_place(row, neighbours.count()) + k * DIA_SECTION];
                    of_row[lane] = if is_no_entry(value) { T::zero() } else { here[lane] * value };
                }
                for Parent { by, entry, weight } in parents {
                    if !has(coarse, added(place, *by)) {
                        continue;
                    }
                    let these = lanes(place[0] + by[0], 1, coarse.sizes[0], rows);
                    let these = these.start.max(inside.start)..these.end.min(inside.end);
                    if these.is_empty() {
                        continue;
                    }
                    let sums = &mut sums[*entry][these.clone()];
                    let pairs = sums.iter_mut().zip(&of_row[these.clone()]);
                    match *weight {
                        None => pairs.for_each(|(sum, &value)| *sum += value),
                        Some((slot, behind)) => {
                            let start = (slot * boxes + first + these.start) as i64 + behind;
                            let weights = &weights[start as usize..][..these.len()];
                            pairs.zip(weights).for_each(|((sum, &value), &weight)| *sum += value * weight);
                        }
                    }
                }
            }
        }
        take(&mut sums, all);
    }
}

/// Adds the sums to `all`, and sets them to zero.
fn take<T: Scalar>(sums: &mut Rows<T>, all: &mut Rows<T>) {
    for (all, sums) in all.iter_mut().zip(sums) {
        for (all, sum) in all.iter_mut().zip(sums) {
            *all += std::mem::replace(sum, T::zero());
        }
    }
}

/// See [`crate::backend::GridSteps::grid_interpolated`].
pub(super) fn interpolated<T: Scalar>(
    a: GridMatrix<'_, T, Host>,
    weights: &[T],
    values: &mut [T],
) -> Result<()> {
    a.check()?;
    check_weights(a.grid, weights.len())?;
    let (coarse, to) = (a.grid.coarser(), interpolated_neighbours(a.grid));
    Error::check_dimension("values of the coarser matrix", grid_values(coarse, to), values.len())?;
    let (boxes, entries, line) = (coarse.points(), to.count(), coarse.sizes[0]);
    let away: Vec<[i64; 3]> = a.neighbours.iter().collect();
    let leads = |from| away.iter().map(|&by| parents(coarse, from, by, to)).collect();
    let table = Neighbours::ALL.iter().map(|[x, z, y]| [x, y, z]).map(|from| (from, leads(from))).collect();
    let strides: Vec<i64> = to.iter().map(|by| coarse.distance(by)).collect();
    let product = Product { a, weights, coarse, away: a.neighbours.iter().collect(), table };
    let task = SECTIONS * DIA_SECTION;
    values.par_chunks_mut(task * entries).enumerate().for_each(|(part, values)| {
        values.fill(no_entry());
        let mut all = [[T::zero(); BLOCK]; NEIGHBOURS];
        let (mut first, end) = (part * task, ((part + 1) * task).min(boxes));
        while first < end {
            let rows = BLOCK.min(line - first % line).min(end - first);
            product.rows(first, rows, &mut all);
            for (row, lane) in (first..first + rows).zip(0..) {
                let at = first_place(row - part * task, entries);
                for (k, stride) in strides.iter().enumerate() {
                    if (0..boxes as i64).contains(&(row as i64 + stride)) {
                        values[at + k * DIA_SECTION] = all[k][lane];
                    }
                }
            }
            first += rows;
        }
    });
    Ok(())
}

fn check<T>(grid: Grid, weights: &[T], fine: usize, coarse: usize) -> Result<()> {
    check_weights(grid, weights.len())?;
    Error::check_dimension("length of the fine vector", grid.points(), fine)?;
    Error::check_dimension("length of the coarse vector", grid.coarser().points(), coarse)
}

/// See [`crate::backend::GridSteps::grid_restrict_weighted`].
pub(super) fn restrict<T: Scalar>(grid: Grid, weights: &[T], fine: &[T], coarse: &mut [T]) -> Result<()> {
    check(grid, weights, fine.len(), coarse.len())?;
    let (all, boxes, line) = (grid.coarser(), coarse.len(), grid.coarser().sizes[0]);
    let lines = coarse.par_chunks_mut(line).enumerate();
    for_chunks(fine.len(), lines, |(number_of_line, coarse)| {
        coarse.fill(T::zero());
        let place = all.place(number_of_line * line);
        for [tx, ty, tz] in Neighbours::ALL.iter() {
            // The grid line next to this point. Every other point of it is used.
            let Some(start) = grid.neighbour(place.map(|at| 2 * at), [0, ty, tz]) else { continue };
            let points = &fine[grid.number(start)..][..grid.sizes[0]];
            let (odd, back) = bits_of([tx, ty, tz]);
            let of_box =
                [0, 1, 2].map(|axis| place[axis].wrapping_sub(if axis == 0 { 0 } else { back >> axis & 1 }));
            let (to, points) = match tx {
                -1 => (coarse.get_mut(1..).unwrap_or_default(), points.get(1..).unwrap_or_default()),
                0 => (&mut *coarse, points),
                _ => (&mut *coarse, points.get(1..).unwrap_or_default()),
            };
            let points = points.iter().step_by(2);
            if odd == 0 {
                to.iter_mut().zip(points).for_each(|(sum, &value)| *sum += value);
                continue;
            }
            let weights = &weights[weight_number(odd, back) * boxes + all.number(of_box)..][..line];
            let pairs = to.iter_mut().zip(points.zip(weights));
            pairs.for_each(|(sum, (&value, weight))| *sum += weight.conj() * value);
        }
    });
    Ok(())
}

/// See [`crate::backend::GridSteps::grid_prolong_weighted`].
pub(super) fn prolong<T: Scalar>(grid: Grid, weights: &[T], coarse: &[T], fine: &mut [T]) -> Result<()> {
    check(grid, weights, fine.len(), coarse.len())?;
    let (all, boxes, nx) = (grid.coarser(), coarse.len(), grid.sizes[0]);
    let lines = fine.par_chunks_mut(nx).enumerate();
    for_chunks(grid.points(), lines, |(line, fine)| {
        let [_, y, z] = grid.place(line * nx);
        let (odd, of_line) = ((y & 1) << 1 | (z & 1) << 2, [0, y / 2, z / 2]);
        let own = all.number(of_line);
        for (block, fine) in fine.chunks_mut(2 * BLOCK).enumerate() {
            let (from, count) = (block * BLOCK, fine.len().div_ceil(2));
            // Sums for the points that are even along x, and for those that are odd.
            let mut sums = [[T::zero(); BLOCK]; 2];
            for corner in (0..8).step_by(2).filter(|corner| corner & !odd == 0) {
                let to = moved(of_line, corner);
                if !all.has(to) {
                    continue;
                }
                let values = &coarse[all.number(to)..][..all.sizes[0]];
                let weights_of = |odd: usize, corner: usize| {
                    &weights[weight_number(odd, corner) * boxes + own + from..][..count]
                };
                if odd == 0 {
                    sums[0][..count].copy_from_slice(&values[from..from + count]);
                } else {
                    let pairs = values[from..].iter().zip(weights_of(odd, corner));
                    sums[0].iter_mut().zip(pairs).for_each(|(sum, (&value, &weight))| *sum += weight * value);
                }
                for up in 0..2 {
                    let pairs = values[from + up..].iter().zip(weights_of(odd | 1, corner | up));
                    sums[1].iter_mut().zip(pairs).for_each(|(sum, (&value, &weight))| *sum += weight * value);
                }
            }
            let [even, odd] = &sums;
            for (pair, (&even, &odd)) in fine.chunks_mut(2).zip(even.iter().zip(odd)) {
                pair[0] += even;
                if let Some(last) = pair.get_mut(1) {
                    *last += odd;
                }
            }
        }
    });
    Ok(())
}
