//! Model matrices generated on a device, because they are too large, or needed too often, to be copied there.

use crate::backend::{Backend, Cuda, Offsets};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use std::ops::Range;

impl Cuda {
    /// The matrix of [`generate::poisson3d`](super::poisson3d) (7 points), generated on the device.
    ///
    /// # Errors
    /// If there are 2^32 points or more, if memory runs out, or if the device fails.
    pub fn poisson3d<T: Scalar>(&self, nx: usize, ny: usize, nz: usize) -> Result<Csr<T, Self>> {
        self.poisson3d_planes([nx, ny, nz], 0..nz)
    }

    /// The rows of some planes of [`Cuda::poisson3d`], as one of several ranks has them: `planes` are coordinates z of
    /// a grid with the sides nx, ny and nz, and columns have the numbers of the whole matrix.
    ///
    /// # Errors
    /// If there are no such planes, and as [`Cuda::poisson3d`].
    pub fn poisson3d_planes<T: Scalar>(
        &self,
        sides: [usize; 3],
        planes: Range<usize>,
    ) -> Result<Csr<T, Self>> {
        let rows = sides[0] * sides[1] * planes.len();
        csr(rows, self.stencil(sides, planes, false, 6.0)?)
    }

    /// The matrix of [`generate::poisson2d`](super::poisson2d) (5 points), generated on the device.
    ///
    /// # Errors
    /// As [`Cuda::poisson3d`].
    pub fn poisson2d<T: Scalar>(&self, nx: usize, ny: usize) -> Result<Csr<T, Self>> {
        csr(nx * ny, self.stencil([nx, ny, 1], 0..1, false, 4.0)?)
    }

    /// The matrix of [`generate::poisson3d_27`](super::poisson3d_27) (27 points), generated on the device.
    ///
    /// # Errors
    /// As [`Cuda::poisson3d`].
    pub fn poisson3d_27<T: Scalar>(&self, nx: usize, ny: usize, nz: usize) -> Result<Csr<T, Self>> {
        csr(nx * ny * nz, self.stencil([nx, ny, nz], 0..nz, true, 26.0)?)
    }
}

type Arrays<T> = (usize, Offsets<Cuda>, <Cuda as Backend>::Vec<u32>, <Cuda as Backend>::Vec<T>);

fn csr<T: Scalar>(rows: usize, (points, offsets, indices, values): Arrays<T>) -> Result<Csr<T, Cuda>> {
    Ok(Csr::from_parts_unchecked(rows, points, offsets, indices, values))
}
