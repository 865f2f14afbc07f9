//! Model matrices that are generated on the device, because they are too large, or needed too often, to be copied
//! there.

use super::launch::kernels;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, tuning};
use crate::backend::{NARROW_LIMIT, Offsets, Primitives};
use crate::error::{Error, Result};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

mod kernel {
    use super::*;
    kernels! {
        "stencil.cu", types(T: Scalar as SCALAR, I: Offset as OFFSET);
        fn stencil_lengths(
            nx: u32,
            ny: u32,
            nz: u32,
            begin: usize,
            rows: usize,
            all_around: bool,
            lengths: &mut Slice<u32>,
        );
        fn stencil_fill(
            nx: u32,
            ny: u32,
            nz: u32,
            begin: usize,
            rows: usize,
            all_around: bool,
            diagonal: T,
            other: T,
            offsets: &Slice<I>,
            columns: &mut Slice<u32>,
            values: &mut Slice<T>,
        );
    }
}

/// The number of rows, and the offsets, columns and values of a matrix in CSR.
type StencilArrays<T> = (usize, Offsets<Cuda>, DeviceVec<u32>, DeviceVec<T>);

impl Cuda {
    /// Returns the rows of some planes of a stencil's matrix in CSR, on a grid with these sides: the number of points of
    /// the grid, offsets, columns and values. Each point is coupled to all 26 points around it with `all_around`, else
    /// to 6.
    ///
    /// # Errors
    /// If there are 2^32 points or more, or fewer planes; if memory runs out, or if the device fails.
    pub(crate) fn stencil<T: Scalar>(
        &self,
        sides: [usize; 3],
        planes: Range<usize>,
        all_around: bool,
        diagonal: f64,
    ) -> Result<StencilArrays<T>> {
        let points = sides.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let Some(points) = points.filter(|&points| points <= NARROW_LIMIT) else {
            return Err(Error::InvalidArgument(format!(
                "a grid of {sides:?} points is too large: fewer than 2^32 are possible"
            )));
        };
        let [nx, ny, nz] = sides;
        if planes.start > planes.end || planes.end > nz {
            return Err(Error::InvalidArgument(format!("planes {planes:?} of a grid with {nz}")));
        }
        // The planes that each plane is coupled to, itself among them.
        let coupled: usize = planes.clone().map(|z| 1 + usize::from(z > 0) + usize::from(z + 1 < nz)).sum();
        let along = |n: usize| (3 * n).saturating_sub(2);
        let plane = nx * ny;
        let nonzeros = if all_around {
            along(nx) * along(ny) * coupled
        } else {
            // Neighbours within the plane, and one point of each other plane.
            let within = along(nx) * ny + along(ny) * nx - plane;
            planes.len() * within.saturating_sub(plane) + plane * coupled
        };
        let mut indices = self.uninitialised(nonzeros)?;
        let mut values = self.uninitialised(nonzeros)?;
        let numbers = (T::from_f64(diagonal), T::from_f64(-1.0));
        let rows = planes.start * plane..planes.end * plane;
        let arrays = (&mut *indices, &mut *values);
        let offsets = if nonzeros <= NARROW_LIMIT {
            Offsets::Lower(self.stencil_arrays((sides, rows), all_around, numbers, arrays)?)
        } else {
            Offsets::Wide(self.stencil_arrays((sides, rows), all_around, numbers, arrays)?)
        };
        Ok((points, offsets, indices, values))
    }

    /// Returns the row offsets. Fills the columns, and the values with `diagonal` and `other`.
    fn stencil_arrays<T: Scalar, I: Offset>(
        &self,
        (sides, rows): ([usize; 3], Range<usize>),
        all_around: bool,
        (diagonal, other): (T, T),
        (indices, values): (&mut Slice<u32>, &mut Slice<T>),
    ) -> Result<DeviceVec<I>> {
        let [nx, ny, nz] = sides.map(|n| n as u32);
        let (first, count) = (rows.start, rows.len());
        let shape = tuning::elementwise(self.0.chip, rows.len());
        let mut lengths = self.uninitialised(rows.len())?;
        kernel::stencil_lengths::<T, I>(*self, shape, nx, ny, nz, first, count, all_around, &mut lengths)?;
        let mut offsets = self.uninitialised(rows.len() + 1)?;
        self.exclusive_scan(&lengths, &mut offsets)?;
        kernel::stencil_fill(
            *self, shape, nx, ny, nz, first, count, all_around, diagonal, other, &offsets, indices, values,
        )?;
        Ok(offsets)
    }
}
