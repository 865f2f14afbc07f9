//! The fused steps of a Krylov iteration on the device.

use super::inverse::with_diagonal;
use super::launch::kernels;
use super::slice::Slice;
use super::vector::check_block;
use super::workspace::Reduction;
use super::{Cuda, tuning};
use crate::backend::{
    CgSlot, CsrParts, Derived, Inverse, KrylovSteps, PartDirection, PartResidual, Persistent, SellParts,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Promote, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "krylov.cu", types(T: Scalar as SCALAR, D: Element as DIAGONAL);
        /// `d` is null unless the inverse is a diagonal; `rz` is null unless the inverse is a diagonal or the identity.
        fn cg_residual(
            d: Option<&Slice<D>>,
            pq: &Slice<T>,
            q: &Slice<T>,
            r: &mut Slice<T>,
            rz: Option<&mut Slice<T>>,
            state: &mut Slice<T::Real>,
            n: usize,
            reduction: Reduction,
        );
        /// `z` is r if the inverse is a diagonal or the identity; `d` is null unless it is a diagonal.
        fn cg_direction(
            d: Option<&Slice<D>>,
            z: &Slice<T>,
            rz: &Slice<T>,
            p: &mut Slice<T>,
            x: &mut Slice<T>,
            state: &mut Slice<T::Real>,
            n: usize,
            finished: u64,
        );
    }
    kernels! {
        "krylov_block.cu", types(T: Scalar as SCALAR, D: Element as DIAGONAL);
        /// As `cg_residual` for `k` systems, whose vectors are interleaved.
        fn cg_residuals(
            k: u32,
            d: Option<&Slice<D>>,
            pq: &Slice<T>,
            q: &Slice<T>,
            r: &mut Slice<T>,
            rz: Option<&mut Slice<T>>,
            state: &mut Slice<T::Real>,
            n: usize,
            reduction: Reduction,
        );
        fn cg_directions(
            k: u32,
            d: Option<&Slice<D>>,
            z: &Slice<T>,
            rz: &Slice<T>,
            p: &mut Slice<T>,
            x: &mut Slice<T>,
            state: &mut Slice<T::Real>,
            n: usize,
            finished: u64,
        );
    }
    kernels! {
        "csr_krylov.cu", types(T: Scalar as SCALAR, V: Element as STORED; a as OFFSET);
        fn residual(
            rows: usize,
            a: CsrParts<'_, V, Cuda>,
            scale: T,
            b: &Slice<T>,
            x: &Slice<T>,
            r: &mut Slice<T>,
        );
    }
}

impl KrylovSteps for Cuda {
    fn cg_residual<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        pq: &Slice<T>,
        q: &Slice<T>,
        r: &mut Slice<T>,
        rz: &mut Slice<T>,
        state: &mut Slice<T::Real>,
    ) -> Result<()> {
        let (n, k) = (r.len(), pq.len());
        Error::check_dimension("length of q", n, q.len())?;
        Error::check_dimension("length of r.z", k, rz.len())?;
        Error::check_dimension("length of the state", k * CgSlot::COUNT, state.len())?;
        let rz = if let Inverse::General(_) = inverse { None } else { Some(rz) };
        let reduction @ (_, counter) = self.0.workspaces.reduction();
        if k > 1 {
            check_block(k, n)?;
            let shape = tuning::krylov_block_sum(self.0.chip, k, n, size_of::<T>());
            let (_guard, partials) = self.0.workspaces.pieces(k * shape.blocks as usize)?;
            return with_diagonal!(inverse, n / k, d => kernel::cg_residuals::<T, _>(
                *self, shape, k as u32, d, pq, q, r, rz, state, n, (partials, counter),
            ));
        }
        let shape = tuning::krylov_sum(self.0.chip, n, size_of::<T>());
        with_diagonal!(inverse, n, d => {
            kernel::cg_residual::<T, _>(*self, shape, d, pq, q, r, rz, state, n, reduction)
        })
    }

    fn cg_direction<T: Scalar>(
        &self,
        inverse: Inverse<'_, T, Self>,
        r: &Slice<T>,
        rz: &Slice<T>,
        p: &mut Slice<T>,
        x: &mut Slice<T>,
        state: &mut Slice<T::Real>,
    ) -> Result<()> {
        let (n, k) = (x.len(), rz.len());
        let z = if let Inverse::General(z) = inverse { z } else { r };
        Error::check_dimension("length of p", n, p.len())?;
        Error::check_dimension("length of r", n, z.len())?;
        Error::check_dimension("length of the state", k * CgSlot::COUNT, state.len())?;
        let (_, finished) = self.0.workspaces.reduction();
        if k > 1 {
            check_block(k, n)?;
            let shape = tuning::krylov_block_map(k, n, size_of::<T>());
            return with_diagonal!(inverse, n / k, d => kernel::cg_directions::<T, _>(
                *self, shape, k as u32, d, z, rz, p, x, state, n, finished,
            ));
        }
        let shape = tuning::krylov_map(n, size_of::<T>());
        with_diagonal!(inverse, n, d => {
            kernel::cg_direction::<T, _>(*self, shape, d, z, rz, p, x, state, n, finished)
        })
    }

    fn cg_part_residual<T: Scalar>(&self, step: PartResidual<'_, T, Self>) -> Result<()> {
        super::parts::residual(*self, step, None)
    }

    fn cg_part_direction<T: Scalar>(&self, step: PartDirection<'_, T, Self>) -> Result<()> {
        super::parts::direction(*self, step, None)
    }

    const PERSISTENT_ITERATIONS: usize = super::persistent::LENGTH;

    fn cg_persists<V: Promote<T>, T: Scalar>(&self, rows: usize, nonzeros: usize) -> bool {
        tuning::likely_resident(self.0.chip, rows, nonzeros, size_of::<V>(), size_of::<T>())
    }

    fn cg_streams<V: Promote<T>, T: Scalar>(&self, rows: usize, nonzeros: usize) -> bool {
        tuning::likely_streamed(self.0.chip, rows, nonzeros, size_of::<V>(), size_of::<T>())
    }

    fn csr_persistent<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        derived: &Derived,
        work: Persistent<'_, T, Self>,
    ) -> Result<bool> {
        super::persistent::resident(*self, a, derived, work)
    }

    fn sell_persistent<V: Promote<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Self>,
        work: Persistent<'_, T, Self>,
    ) -> Result<bool> {
        super::persistent::streamed(*self, a, work)
    }
}

impl Cuda {
    /// See [`Products::csr_residual`](crate::backend::Products::csr_residual).
    pub(super) fn accurate_residual<V: Promote<T>, T: Scalar>(
        self,
        a: CsrParts<'_, V, Self>,
        scale: T,
        b: &Slice<T>,
        x: &Slice<T>,
        r: &mut Slice<T>,
    ) -> Result<()> {
        let shape = tuning::csr(self.0.chip, a.rows, a.indices.len());
        kernel::residual(self, shape, a.rows, a, scale, b, x, r)
    }
}
