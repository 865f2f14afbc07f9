//! Steps of multigrid on grids, on the device.

use super::launch::kernels;
use super::slice::Slice;
use super::{Cuda, tuning};
use crate::backend::{
    DIA_SECTION, Grid, GridMatrix, GridSteps, RowsOnGrid, check_weights, grid_values, interpolated,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

mod kernel {
    use super::*;
    kernels! {
        "grid.cu", types(T: Scalar as SCALAR);
        fn grid_coarser(
            nx: u32,
            ny: u32,
            nz: u32,
            neighbours: u32,
            fine: &Slice<T>,
            values: &mut Slice<T>,
            unfit: &mut Slice<u32>,
        );
        fn grid_scales(rows: usize, count: u32, values: &Slice<T>, scales: &mut Slice<T::Real>);
        fn grid_rows(
            rows: usize,
            first: usize,
            place: usize,
            neighbours: u32,
            nx: u32,
            ny: u32,
            nz: u32,
            from: &Slice<T>,
            to: &mut Slice<T>,
        );
        fn grid_restrict(nx: u32, ny: u32, nz: u32, fine: &Slice<T>, coarse: &mut Slice<T>);
        fn grid_prolong(nx: u32, ny: u32, nz: u32, coarse: &Slice<T>, fine: &mut Slice<T>);
    }
}

mod linear {
    use super::*;
    kernels! {
        "grid_linear.cu", types(T: Scalar as SCALAR);
        fn grid_weights(
            nx: u32,
            ny: u32,
            nz: u32,
            neighbours: u32,
            axes: u32,
            values: &Slice<T>,
            weights: &mut Slice<T>,
            unfit: &mut Slice<u32>,
        );
        fn grid_interpolated(
            nx: u32,
            ny: u32,
            nz: u32,
            neighbours: u32,
            coarse_neighbours: u32,
            fine: &Slice<T>,
            weights: &Slice<T>,
            values: &mut Slice<T>,
        );
        fn grid_restrict_weighted(
            nx: u32,
            ny: u32,
            nz: u32,
            weights: &Slice<T>,
            fine: &Slice<T>,
            coarse: &mut Slice<T>,
        );
        fn grid_prolong_weighted(
            nx: u32,
            ny: u32,
            nz: u32,
            weights: &Slice<T>,
            coarse: &Slice<T>,
            fine: &mut Slice<T>,
        );
    }
}

/// Returns an error if the lengths of vectors are not those of the grid and its boxes.
fn check<T>(grid: Grid, fine: &Slice<T>, coarse: &Slice<T>) -> Result<[u32; 3]> {
    Error::check_dimension("length of the fine vector", grid.points(), fine.len())?;
    Error::check_dimension("length of the coarse vector", grid.coarser().points(), coarse.len())?;
    Ok(grid.sizes.map(|size| size as u32))
}

impl GridSteps for Cuda {
    fn grid_coarser<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        values: &mut Slice<T>,
        unfit: &mut Slice<u32>,
    ) -> Result<()> {
        a.check()?;
        let entries = grid_values(a.grid.coarser(), a.neighbours);
        Error::check_dimension("values of the coarser matrix", entries, values.len())?;
        let shape = tuning::elementwise(self.0.chip, entries);
        let [nx, ny, nz] = a.grid.sizes.map(|size| size as u32);
        kernel::grid_coarser::<T>(*self, shape, nx, ny, nz, a.neighbours.0, a.values, values, unfit)
    }

    fn grid_scales<T: Scalar>(&self, a: GridMatrix<'_, T, Self>, scales: &mut Slice<T::Real>) -> Result<()> {
        a.check()?;
        let rows = a.grid.points();
        Error::check_dimension("length of the scales", rows, scales.len())?;
        let shape = tuning::elementwise(self.0.chip, rows);
        kernel::grid_scales::<T>(*self, shape, rows, a.neighbours.count() as u32, a.values, scales)
    }

    fn grid_restrict<T: Scalar>(&self, grid: Grid, fine: &Slice<T>, coarse: &mut Slice<T>) -> Result<()> {
        let [nx, ny, nz] = check(grid, fine, coarse)?;
        let shape = tuning::elementwise(self.0.chip, coarse.len());
        kernel::grid_restrict::<T>(*self, shape, nx, ny, nz, fine, coarse)
    }

    fn grid_prolong<T: Scalar>(&self, grid: Grid, coarse: &Slice<T>, fine: &mut Slice<T>) -> Result<()> {
        let [nx, ny, nz] = check(grid, fine, coarse)?;
        let shape = tuning::elementwise(self.0.chip, fine.len());
        kernel::grid_prolong::<T>(*self, shape, nx, ny, nz, coarse, fine)
    }

    fn grid_weights<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        weights: &mut Slice<T>,
        unfit: &mut Slice<u32>,
    ) -> Result<()> {
        a.check()?;
        check_weights(a.grid, weights.len())?;
        let [nx, ny, nz] = a.grid.sizes.map(|size| size as u32);
        let shape = tuning::elementwise(self.0.chip, a.grid.points());
        // Points between two coarse points come first, because the others need their weights.
        for axes in 1..=if nz > 1 { 3 } else { 2 } {
            linear::grid_weights::<T>(
                *self,
                shape,
                nx,
                ny,
                nz,
                a.neighbours.0,
                axes,
                a.values,
                weights,
                unfit,
            )?;
        }
        Ok(())
    }

    fn grid_interpolated<T: Scalar>(
        &self,
        a: GridMatrix<'_, T, Self>,
        weights: &Slice<T>,
        values: &mut Slice<T>,
    ) -> Result<()> {
        a.check()?;
        check_weights(a.grid, weights.len())?;
        let to = interpolated(a.grid);
        Error::check_dimension(
            "values of the coarser matrix",
            grid_values(a.grid.coarser(), to),
            values.len(),
        )?;
        let rows = a.grid.coarser().points().next_multiple_of(DIA_SECTION);
        let shape = tuning::three_a_row(rows);
        let [nx, ny, nz] = a.grid.sizes.map(|size| size as u32);
        linear::grid_interpolated::<T>(
            *self,
            shape,
            nx,
            ny,
            nz,
            a.neighbours.0,
            to.0,
            a.values,
            weights,
            values,
        )
    }

    fn grid_restrict_weighted<T: Scalar>(
        &self,
        grid: Grid,
        weights: &Slice<T>,
        fine: &Slice<T>,
        coarse: &mut Slice<T>,
    ) -> Result<()> {
        let [nx, ny, nz] = check(grid, fine, coarse)?;
        check_weights(grid, weights.len())?;
        let shape = tuning::elementwise(self.0.chip, coarse.len());
        linear::grid_restrict_weighted::<T>(*self, shape, nx, ny, nz, weights, fine, coarse)
    }

    fn grid_prolong_weighted<T: Scalar>(
        &self,
        grid: Grid,
        weights: &Slice<T>,
        coarse: &Slice<T>,
        fine: &mut Slice<T>,
    ) -> Result<()> {
        let [nx, ny, nz] = check(grid, fine, coarse)?;
        check_weights(grid, weights.len())?;
        let shape = tuning::elementwise(self.0.chip, coarse.len());
        linear::grid_prolong_weighted::<T>(*self, shape, nx, ny, nz, weights, coarse, fine)
    }

    fn grid_rows<T: Scalar>(&self, which: RowsOnGrid, from: &Slice<T>, to: &mut Slice<T>) -> Result<()> {
        which.check(from.len(), to.len())?;
        let RowsOnGrid { neighbours, first, place, rows, within } = which;
        let [nx, ny, nz] = within.map_or([0; 3], |grid| grid.sizes.map(|size| size as u32));
        let shape = tuning::elementwise(self.0.chip, rows);
        kernel::grid_rows::<T>(*self, shape, rows, first, place, neighbours.0, nx, ny, nz, from, to)
    }
}
