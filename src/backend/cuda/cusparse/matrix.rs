//! Matrices as cuSPARSE takes them.

use super::functions::{BASE_ZERO, INDEX_32, INDEX_64, data_type, pointer};
use super::{CuSparse, CuSparseFormat, CuSparseProduct};
use crate::backend::cuda::Cuda;
use crate::backend::cuda::slice::Vec as DeviceVec;
use crate::backend::{Backend, OffsetsRef};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};

/// Rows of a slice of [`CuSparseFormat::Sell`].
const SLICE: usize = 32;

/// Sliced ELL is not built where it would hold more than this many entries a nonzero.
const MOST_FILL: usize = 4;

impl CuSparse {
    /// Describes the matrix to cuSPARSE.
    pub(super) fn enter<T: Scalar>(
        &self,
        product: &mut CuSparseProduct<'_, T>,
        format: CuSparseFormat,
        a: &Csr<T, Cuda>,
    ) -> Result<()> {
        let wide = matches!(a.parts().offsets, OffsetsRef::Wide(_));
        if a.nonzeros() > i32::MAX as usize && !wide || a.columns() > i32::MAX as usize {
            return Err(Error::Unsupported("cuSPARSE counts with signed 32-bit numbers".into()));
        }
        match format {
            CuSparseFormat::Csr1 | CuSparseFormat::Csr2 => self.enter_csr(product, a),
            CuSparseFormat::Coo if wide => {
                Err(Error::Unsupported("too many entries for cuSPARSE's COO".into()))
            }
            CuSparseFormat::Coo => self.enter_coo(product, a),
            CuSparseFormat::Sell => self.enter_sell(product, a),
        }
    }

    fn enter_csr<T: Scalar>(&self, product: &mut CuSparseProduct<'_, T>, a: &Csr<T, Cuda>) -> Result<()> {
        let parts = a.parts();
        let (offsets, width) = match parts.offsets {
            OffsetsRef::Narrow(o) => (o.address(), INDEX_32),
            OffsetsRef::Wide(o) => (o.address(), INDEX_64),
        };
        product.bytes = a.storage_bytes();
        let [rows, columns, entries] = sizes(a);
        // SAFETY: the arrays are as long as told, and live as long as the product, which borrows `a`.
        let status = unsafe {
            (self.functions.create_csr)(
                &raw mut product.matrix,
                rows,
                columns,
                entries,
                pointer(offsets),
                pointer(parts.indices.address()),
                pointer(parts.values.address()),
                width,
                INDEX_32,
                BASE_ZERO,
                data_type::<T>(),
            )
        };
        self.check("cusparseCreateCsr", status)
    }

    fn enter_coo<T: Scalar>(&self, product: &mut CuSparseProduct<'_, T>, a: &Csr<T, Cuda>) -> Result<()> {
        let parts = a.parts();
        let offsets = self.offsets(a)?;
        let mut list = Vec::with_capacity(a.nonzeros());
        for (row, pair) in offsets.windows(2).enumerate() {
            list.resize(list.len() + pair[1] - pair[0], row as u32);
        }
        let list = self.cuda.upload(list)?;
        product.bytes = a.nonzeros() * (8 + size_of::<T>());
        let [rows, columns, entries] = sizes(a);
        // SAFETY: as in `enter_csr`; the row indices are kept by the product.
        let status = unsafe {
            (self.functions.create_coo)(
                &raw mut product.matrix,
                rows,
                columns,
                entries,
                pointer(list.address()),
                pointer(parts.indices.address()),
                pointer(parts.values.address()),
                INDEX_32,
                BASE_ZERO,
                data_type::<T>(),
            )
        };
        product.indices.push(list);
        self.check("cusparseCreateCoo", status)
    }

    fn enter_sell<T: Scalar>(&self, product: &mut CuSparseProduct<'_, T>, a: &Csr<T, Cuda>) -> Result<()> {
        let create = self.functions.create_sell;
        let create = create.ok_or_else(|| Error::Unsupported("this cuSPARSE has no sliced ELL".into()))?;
        let (offsets, indices, values) = self.sliced(a)?;
        product.bytes = offsets.bytes() + indices.bytes() + values.bytes();
        let [rows, columns, entries] = sizes(a);
        // SAFETY: the arrays are as long as told, and kept by the product.
        let status = unsafe {
            create(
                &raw mut product.matrix,
                rows,
                columns,
                entries,
                values.len() as i64,
                SLICE as i64,
                pointer(offsets.address()),
                pointer(indices.address()),
                pointer(values.address()),
                INDEX_32,
                INDEX_32,
                BASE_ZERO,
                data_type::<T>(),
            )
        };
        product.indices.extend([offsets, indices]);
        product.values = Some(values);
        self.check("cusparseCreateSlicedEll", status)
    }

    fn offsets<T: Scalar>(&self, a: &Csr<T, Cuda>) -> Result<Vec<usize>> {
        Ok(match a.parts().offsets {
            OffsetsRef::Narrow(o) => self.cuda.download(o)?.into_iter().map(Offset::to_usize).collect(),
            OffsetsRef::Wide(o) => self.cuda.download(o)?.into_iter().map(Offset::to_usize).collect(),
        })
    }

    /// Slices of 32 rows, each padded to its longest and stored column by column; padding has column -1.
    fn sliced<T: Scalar>(&self, a: &Csr<T, Cuda>) -> Result<(DeviceVec<u32>, DeviceVec<u32>, DeviceVec<T>)> {
        let offsets = self.offsets(a)?;
        let mut starts = vec![0_u32];
        let mut total = 0;
        for slice in (0..a.rows()).step_by(SLICE) {
            let end = (slice + SLICE).min(a.rows());
            let width = (slice..end).map(|row| offsets[row + 1] - offsets[row]).max().unwrap_or(0);
            total += width * SLICE;
            if total > i32::MAX as usize || total > MOST_FILL * a.nonzeros().max(SLICE) {
                return Err(Error::Unsupported(format!("more than {MOST_FILL} entries a nonzero, or 2^31")));
            }
            starts.push(total as u32);
        }
        let columns = self.cuda.download(a.parts().indices)?;
        let numbers = self.cuda.download(a.parts().values)?;
        let (mut indices, mut values) = (vec![u32::MAX; total], vec![T::zero(); total]);
        for row in 0..a.rows() {
            let first = starts[row / SLICE] as usize + row % SLICE;
            for (k, entry) in (offsets[row]..offsets[row + 1]).enumerate() {
                indices[first + k * SLICE] = columns[entry];
                values[first + k * SLICE] = numbers[entry];
            }
        }
        Ok((self.cuda.upload(starts)?, self.cuda.upload(indices)?, self.cuda.upload(values)?))
    }
}

/// Rows, columns and entries.
fn sizes<T: Scalar>(a: &Csr<T, Cuda>) -> [i64; 3] {
    [a.rows(), a.columns(), a.nonzeros()].map(|size| size as i64)
}
