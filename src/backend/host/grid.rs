//! Steps of multigrid on grids, on the CPU.

use super::Host;
use super::sums::{chunk_size, for_chunks};
use crate::backend::{
    DIA_SECTION, Grid, GridMatrix, GridSteps, NEIGHBOURS, Neighbours, first_place, grid_values, is_no_entry,
    no_entry,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};
use std::sync::atomic::{AtomicBool, Ordering};

/// Sections that one task takes.
const SECTIONS: usize = 64;

/// For a point at each of the 8 places in a box and each of its neighbours: which neighbour of the box that is in.
fn boxes_of(neighbours: Neighbours) -> [[usize; NEIGHBOURS]; 8] {
    let mut table = [[0; NEIGHBOURS]; 8];
    for (place, boxes) in table.iter_mut().enumerate() {
        for (k, by) in neighbours.iter().enumerate() {
            let within = [place & 1, place >> 1 & 1, place >> 2].map(|bit| bit as i64);
            let to = [0, 1, 2].map(|axis| (within[axis] + by[axis]).div_euclid(2));
            boxes[k] = neighbours.number(to).expect("neighbours of a box are those of its points");
        }
    }
    table
}

/// The points of a box: the place of each within it, and its number.
fn points_of(grid: Grid, place: [usize; 3]) -> impl Iterator<Item = (usize, [usize; 3])> {
    (0..8).filter_map(move |within| {
        let point = [0, 1, 2].map(|axis| 2 * place[axis] + (within >> axis & 1));
        (0..3).all(|axis| point[axis] < grid.sizes[axis]).then_some((within, point))
    })
}

impl GridSteps for Host {
    fn grid_coarser<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        values: &mut [T],
        unfit: &mut [u32],
    ) -> Result<()> {
        a.check()?;
        let GridMatrix { grid, neighbours, values: fine } = a;
        let (coarse, count) = (grid.coarser(), neighbours.count());
        Error::check_dimension(
            "values of the coarser matrix",
            grid_values(coarse, neighbours),
            values.len(),
        )?;
        let (table, away) = (boxes_of(neighbours), neighbours.iter().collect::<Vec<_>>());
        let strides: Vec<i64> = away.iter().map(|&by| coarse.distance(by)).collect();
        let bad = AtomicBool::new(false);
        let task = SECTIONS * DIA_SECTION;
        let tasks = values.par_chunks_mut(task * count).enumerate();
        tasks.for_each(|(number, values)| {
            let rows = number * task..((number + 1) * task).min(coarse.points());
            values.fill(no_entry());
            for row in rows {
                let mut sums = [T::zero(); NEIGHBOURS];
                for (within, point) in points_of(grid, coarse.place(row)) {
                    let from = first_place(grid.distance(point.map(|at| at as i64)) as usize, count);
                    for (k, &by) in away.iter().enumerate() {
                        let value = fine[from + k * DIA_SECTION];
                        if value == T::zero() || is_no_entry(value) {
                            continue;
                        }
                        if !value.is_finite() || grid.neighbour(point, by).is_none() {
                            bad.store(true, Ordering::Relaxed);
                        }
                        sums[table[within][k]] += value;
                    }
                }
                let to = first_place(row - number * task, count);
                for k in 0..count {
                    let column = row as i64 + strides[k];
                    if (0..coarse.points() as i64).contains(&column) {
                        values[to + k * DIA_SECTION] = sums[k];
                    }
                }
            }
        });
        if bad.into_inner() {
            unfit[0] = 1;
        }
        Ok(())
    }

    fn grid_scales<T: Scalar>(&self, a: GridMatrix<'_, T, Self>, scales: &mut [T::Real]) -> Result<()> {
        a.check()?;
        Error::check_dimension("length of the scales", a.grid.points(), scales.len())?;
        let (count, size) = (a.neighbours.count(), chunk_size(scales.len()));
        for_chunks(scales.len(), scales.par_chunks_mut(size).enumerate(), |(chunk, scales)| {
            for (row, scale) in (chunk * size..).zip(scales) {
                let values = a.values[first_place(row, count)..].iter().step_by(DIA_SECTION).take(count);
                let values = values.filter(|value| !is_no_entry(**value));
                let sum = values.fold(T::Real::zero(), |sum, value| sum + value.abs());
                let inverse = sum.recip();
                *scale = if Float::is_finite(inverse) { inverse } else { T::Real::zero() };
            }
        });
        Ok(())
    }

    fn grid_restrict<T: Scalar>(&self, grid: Grid, fine: &[T], coarse: &mut [T]) -> Result<()> {
        let boxes = grid.coarser();
        Error::check_dimension("length of the fine vector", grid.points(), fine.len())?;
        Error::check_dimension("length of the coarse vector", boxes.points(), coarse.len())?;
        let [nx, ny, _] = grid.sizes;
        let lines = coarse.par_chunks_mut(boxes.sizes[0]).enumerate();
        for_chunks(fine.len(), lines.with_min_len(1), |(line, coarse)| {
            coarse.fill(T::zero());
            let [_, y, z] = boxes.place(line * boxes.sizes[0]);
            for (y, z) in [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(dy, dz)| (2 * y + dy, 2 * z + dz)) {
                if y < ny && z < grid.sizes[2] {
                    let start = nx * (y + ny * z);
                    let pairs = fine[start..start + nx].chunks(2);
                    coarse.iter_mut().zip(pairs).for_each(|(sum, pair)| pair.iter().for_each(|&v| *sum += v));
                }
            }
        });
        Ok(())
    }

    fn grid_prolong<T: Scalar>(&self, grid: Grid, coarse: &[T], fine: &mut [T]) -> Result<()> {
        let boxes = grid.coarser();
        Error::check_dimension("length of the fine vector", grid.points(), fine.len())?;
        Error::check_dimension("length of the coarse vector", boxes.points(), coarse.len())?;
        let nx = grid.sizes[0];
        let lines = fine.par_chunks_mut(nx).enumerate();
        for_chunks(grid.points(), lines, |(line, fine)| {
            let [_, y, z] = grid.place(line * nx);
            let start = boxes.distance([0, y as i64 / 2, z as i64 / 2]) as usize;
            let pairs = fine.chunks_mut(2).zip(&coarse[start..]);
            pairs.for_each(|(pair, &value)| pair.iter_mut().for_each(|v| *v += value));
        });
        Ok(())
    }
}
