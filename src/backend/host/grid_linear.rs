//! Multigrid on grids whose prolongation interpolates (`crate::backend::grid`), on the CPU. Sums are added in the order
//! of `kernels/grid_linear.cu`.

use super::sums::for_chunks;
use crate::backend::{
    DIA_SECTION, Grid, GridMatrix, Host, LEAST_LEFT, NEIGHBOURS, Neighbours, check_weights, first_place,
    grid_values, interpolated as interpolated_neighbours, is_no_entry, no_entry, weight_number,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};
use std::sync::atomic::{AtomicBool, Ordering};

/// Sections that one task takes.
const SECTIONS: usize = 16;

/// Boxes along x whose points' values are summed up side by side.
const BLOCK: usize = 64;

/// The bits of the axes along which a step is not zero, and of those along which it goes down.
fn bits_of(step: [i64; 3]) -> (usize, usize) {
    let bits = |of: fn(i64) -> bool| (0..3).map(|axis| usize::from(of(step[axis])) << axis).sum();
    (bits(|d| d != 0), bits(|d| d < 0))
}

fn moved(place: [usize; 3], bits: usize) -> [usize; 3] {
    [0, 1, 2].map(|axis| place[axis] + (bits >> axis & 1))
}

/// The weights of the point of a box that is odd along `odd`, one for each corner; `bad` where its row has an entry
/// that leads out of the grid, or is infinite or NaN.
fn weights_of<T: Scalar>(
    a: &GridMatrix<'_, T, Host>,
    away: &[[i64; 3]],
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
    for (k, &by) in away.iter().enumerate() {
        let value = a.values[first + k * DIA_SECTION];
        if value == T::zero() || is_no_entry(value) {
            continue;
        }
        if !value.is_finite() || grid.neighbour(point, by).is_none() {
            bad.store(true, Ordering::Relaxed);
            continue;
        }
        // Along which of its odd axes the neighbour lies, and upwards.
        let (all, down) = bits_of(by);
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
    // Not a comparison the other way round: NaN is left too.
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
    let (away, bad) = (a.neighbours.iter().collect::<Vec<_>>(), AtomicBool::new(false));
    let kinds = if a.grid.sizes[2] > 1 { 8 } else { 4 };
    // Points between two come before those that need their weights.
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

/// A point of the next level that an entry of a point's row leads to.
struct Parent {
    /// From the row's point of the next level, and the number of the entry.
    by: [i64; 3],
    entry: usize,
    /// The number of the weight there, of the box so far from the row's; none where it is one.
    weight: Option<(usize, [i64; 3])>,
}

/// Those of the point so far from one of the next level, by the entry that leads from there along `by`.
fn parents(from: [i64; 3], by: [i64; 3], to: Neighbours) -> Vec<Parent> {
    let end = [0, 1, 2].map(|axis| from[axis] + by[axis]);
    let all = Neighbours::ALL.iter().filter_map(|coarse| {
        let offset = [0, 1, 2].map(|axis| end[axis] - 2 * coarse[axis]);
        if offset.iter().any(|d| d.abs() > 1) {
            return None;
        }
        let (odd, back) = bits_of(offset);
        let of_box = [0, 1, 2].map(|axis| coarse[axis] - (back >> axis & 1) as i64);
        let weight = (odd != 0).then(|| (weight_number(odd, back), of_box));
        Some(Parent { by: coarse, entry: to.number(coarse)?, weight })
    });
    all.collect()
}

/// See [`crate::backend::GridSteps::grid_interpolated`].
pub(super) fn interpolated<T: Scalar>(
    a: GridMatrix<'_, T, Host>,
    weights: &[T],
    values: &mut [T],
) -> Result<()> {
    a.check()?;
    check_weights(a.grid, weights.len())?;
    let GridMatrix { grid, neighbours, values: fine } = a;
    let (coarse, to) = (grid.coarser(), interpolated_neighbours(grid));
    Error::check_dimension("values of the coarser matrix", grid_values(coarse, to), values.len())?;
    let (boxes, count, entries) = (coarse.points(), neighbours.count(), to.count());
    let away: Vec<[i64; 3]> = neighbours.iter().collect();
    // For each point that has a weight for a row's, those with one y together, and each of its entries: where it leads.
    let table: Vec<([i64; 3], Vec<Vec<Parent>>)> = Neighbours::ALL
        .iter()
        .map(|[x, z, y]| [x, y, z])
        .map(|from| (from, away.iter().map(|&by| parents(from, by, to)).collect()))
        .collect();
    let strides: Vec<i64> = to.iter().map(|by| coarse.distance(by)).collect();
    let task = SECTIONS * DIA_SECTION;
    values.par_chunks_mut(task * entries).enumerate().for_each(|(part, values)| {
        values.fill(no_entry());
        for row in part * task..((part + 1) * task).min(boxes) {
            let place = coarse.place(row);
            // All around are there.
            let inner = (0..3)
                .all(|axis| coarse.sizes[axis] == 1 || (1..coarse.sizes[axis] - 1).contains(&place[axis]))
                && grid.sizes[2] > 1;
            // Sums over the points with one y, and of these.
            let (mut sums, mut all) = ([T::zero(); NEIGHBOURS], [T::zero(); NEIGHBOURS]);
            for (number_of_point, (from, leads)) in table.iter().enumerate() {
                if number_of_point % 9 == 0 {
                    all.iter_mut().zip(&sums).for_each(|(all, &sum)| *all += sum);
                    sums = [T::zero(); NEIGHBOURS];
                }
                let Some(point) = grid.neighbour(place.map(|at| 2 * at), *from) else { continue };
                let first = first_place(grid.number(point), count);
                let (odd, back) = bits_of(*from);
                let here = match odd {
                    0 => T::one(),
                    _ => {
                        let of_box = coarse.number([0, 1, 2].map(|axis| place[axis] - (back >> axis & 1)));
                        weights[weight_number(odd, back) * boxes + of_box].conj()
                    }
                };
                for (k, parents) in leads.iter().enumerate() {
                    let value = fine[first + k * DIA_SECTION];
                    if value == T::zero() || is_no_entry(value) {
                        continue;
                    }
                    if !inner && grid.neighbour(point, away[k]).is_none() {
                        continue;
                    }
                    let value = here * value;
                    for parent in parents {
                        if !inner && coarse.neighbour(place, parent.by).is_none() {
                            continue;
                        }
                        sums[parent.entry] += match parent.weight {
                            None => value,
                            Some((slot, of_box)) => {
                                let there = (row as i64 + coarse.distance(of_box)) as usize;
                                value * weights[slot * boxes + there]
                            }
                        };
                    }
                }
            }
            all.iter_mut().zip(&sums).for_each(|(all, &sum)| *all += sum);
            let at = first_place(row - part * task, entries);
            for k in 0..entries {
                if (0..boxes as i64).contains(&(row as i64 + strides[k])) {
                    values[at + k * DIA_SECTION] = all[k];
                }
            }
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
            // Lines of points beside this one; of the points of a line, every other one.
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
            // Of the points that are even along x, and of those that are odd.
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
