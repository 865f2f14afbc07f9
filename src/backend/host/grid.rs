//! Steps of multigrid on grids, on the CPU.

use super::grid_linear;
use super::precondition::step_of_rows;
use super::sums::{chunk_size, for_chunks};
use super::{Host, grid_stencil};
use crate::backend::{
    BoxSums, ChebyshevStep, CsrParts, DIA_SECTION, Grid, GridMatrix, GridStencil, GridSteps, Neighbours,
    RowsOnGrid, first_place, grid_values, is_no_entry, no_entry,
};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of slices in a task.
const SECTIONS: usize = 64;

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
        let sums = BoxSums::new(neighbours);
        let strides: Vec<i64> = neighbours.iter().map(|by| coarse.distance(by)).collect();
        let bad = AtomicBool::new(false);
        let task = SECTIONS * DIA_SECTION;
        let tasks = values.par_chunks_mut(task * count).enumerate();
        tasks.for_each(|(number, values)| {
            let rows = number * task..((number + 1) * task).min(coarse.points());
            values.fill(no_entry());
            for row in rows {
                let (sums, fits) = sums.row(grid, coarse.place(row), |point| {
                    let from = first_place(grid.number(point), count);
                    move |k| {
                        let value = fine[from + k * DIA_SECTION];
                        if is_no_entry(value) { T::zero() } else { value }
                    }
                });
                if !fits {
                    bad.store(true, Ordering::Relaxed);
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
            let start = boxes.number([0, y / 2, z / 2]);
            let pairs = fine.chunks_mut(2).zip(&coarse[start..]);
            pairs.for_each(|(pair, &value)| pair.iter_mut().for_each(|v| *v += value));
        });
        Ok(())
    }

    fn grid_weights<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        weights: &mut [T],
        unfit: &mut [u32],
    ) -> Result<()> {
        grid_linear::weights(a, weights, unfit)
    }

    fn grid_interpolated<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        weights: &[T],
        values: &mut [T],
    ) -> Result<()> {
        grid_linear::interpolated(a, weights, values)
    }

    fn grid_restrict_weighted<T: Scalar>(
        &self,
        grid: Grid,
        weights: &[T],
        fine: &[T],
        coarse: &mut [T],
    ) -> Result<()> {
        grid_linear::restrict(grid, weights, fine, coarse)
    }

    fn grid_prolong_weighted<T: Scalar>(
        &self,
        grid: Grid,
        weights: &[T],
        coarse: &[T],
        fine: &mut [T],
    ) -> Result<()> {
        grid_linear::prolong(grid, weights, coarse, fine)
    }

    fn grid_rows<T: Scalar>(&self, which: RowsOnGrid, from: &[T], to: &mut [T]) -> Result<()> {
        which.check(from.len(), to.len())?;
        let RowsOnGrid { neighbours, first, place, rows, within } = which;
        let (count, away) = (neighbours.count(), neighbours.iter().collect::<Vec<_>>());
        // A slice of `to` has the entries of `DIA_SECTION` rows, interleaved.
        let section = DIA_SECTION * count;
        to.par_chunks_mut(section).with_min_len(SECTIONS).enumerate().for_each(|(number, to)| {
            let start = number * DIA_SECTION;
            for row in start.max(place)..(start + DIA_SECTION).min(place + rows) {
                let from = &from[first_place(first + row - place, count)..];
                for (k, &by) in away.iter().enumerate() {
                    let leads_out = within.is_some_and(|grid| grid.neighbour(grid.place(row), by).is_none());
                    let value = if leads_out { no_entry() } else { from[k * DIA_SECTION] };
                    to[row - start + k * DIA_SECTION] = value;
                }
            }
        });
        Ok(())
    }

    fn grid_stencil<T: Scalar>(
        &self,
        a: CsrParts<'_, T, Self>,
        grid: Grid,
        neighbours: Neighbours,
    ) -> Result<Option<GridStencil<T>>> {
        Ok(grid_stencil::find(a, grid, neighbours))
    }

    fn grid_stencil_product<T: Scalar>(&self, a: &GridStencil<T>, x: &[T], y: &mut [T]) -> Result<()> {
        grid_stencil::product(a, x, y, |_, sums, y| y.copy_from_slice(sums));
        Ok(())
    }

    fn grid_stencil_chebyshev<T: Scalar>(
        &self,
        a: &GridStencil<T>,
        ChebyshevStep { keep, momentum, step, d, r, last }: ChebyshevStep<'_, T, Self>,
        z: &[T],
    ) -> Result<()> {
        grid_stencil::product(
            a,
            z,
            last,
            #[inline(always)]
            |rows, sums, last| {
                let (r, z, d) = (&r[rows.clone()], &z[rows.clone()], d.map(|d| &d[rows]));
                step_of_rows((keep, momentum, step), d, r, (z, sums), last);
            },
        );
        Ok(())
    }
}
