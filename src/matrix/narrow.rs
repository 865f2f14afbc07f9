//! Values stored in half the width, if that is lossless.

use super::Csr;
use crate::backend::{Host, PreconditionSteps};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::One;
use std::any::Any;

/// Values of one task.
const CHUNK: usize = 1 << 14;

impl<V: Scalar> Csr<V, Host> {
    /// Returns whether the narrower type represents every value exactly ([`Scalar::narrow`]) and is really narrower:
    /// true for small integers and binary fractions, as in most stencils.
    pub fn is_narrow(&self) -> bool {
        size_of::<V::Lower>() < size_of::<V>()
            && self.parts().values.par_chunks(CHUNK).all(|chunk| chunk.iter().all(|v| v.narrow().is_some()))
    }

    /// The same matrix with values in the narrower type, or `None` if [`Csr::is_narrow`] is false. Products in type `V`
    /// give the same bits and move 8 bytes per nonzero instead of 12 (from `f64`, with 32-bit indices).
    ///
    /// ```
    /// use residua::{Csr, Host, LinearOperator};
    /// let a = Csr::from_parts(2, 2, vec![0, 1, 2], vec![0, 1], vec![0.5, 3.0])?;
    /// let narrow: Csr<f32> = a.to_lower().expect("0.5 and 3 are exact in f32");
    /// let mut y = vec![0.0_f64; 2];
    /// narrow.apply(&Host, &[0.1, 0.2], &mut y)?;
    /// assert_eq!(y, [0.5 * 0.1, 3.0 * 0.2]);
    /// # Ok::<(), residua::Error>(())
    /// ```
    pub fn to_lower(&self) -> Option<Csr<V::Lower>> {
        self.is_narrow().then(|| self.map(|v| v.narrow().unwrap_or_default()))
    }
}

impl<V: Scalar, B: PreconditionSteps> Csr<V, B> {
    /// As [`Csr::to_lower`] in the memory of any backend, with the pattern moved; returns the matrix itself if that
    /// would lose bits. It needs no temporary memory except for the values in both types.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn into_lower(self, backend: &B) -> Result<std::result::Result<Csr<V::Lower, B>, Self>> {
        if size_of::<V::Lower>() >= size_of::<V>() {
            return Ok(Err(self));
        }
        let mut changed = backend.zeros(1)?;
        backend.narrow_changes::<V>(self.parts().values, &mut changed)?;
        if backend.value(&changed)? != 0 {
            return Ok(Err(self));
        }
        self.into_rounded(backend).map(Ok)
    }

    /// As [`Csr::to_rounded`], with the pattern moved; the matrix itself if no type is narrower.
    pub(crate) fn into_rounded(self, backend: &B) -> Result<Csr<V::Lower, B>> {
        let mut this = Some(self);
        let same: &mut dyn Any = &mut this;
        if let Some(same) = same.downcast_mut::<Option<Csr<V::Lower, B>>>() {
            return Ok(same.take().expect("it is there"));
        }
        let this = this.expect("it is there");
        let mut values = backend.buffer(this.nonzeros())?;
        backend.narrow::<V>(V::Real::one(), this.parts().values, &mut values)?;
        Ok(this.with_values(values))
    }

    /// The same pattern with every value rounded to the narrower type: the matrix of the inner solves of
    /// [`Refinement`](crate::krylov::Refinement).
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_rounded(&self, backend: &B) -> Result<Csr<V::Lower, B>> {
        let parts = self.parts();
        let mut values = backend.zeros(self.nonzeros())?;
        backend.narrow::<V>(V::Real::one(), parts.values, &mut values)?;
        Ok(self.with_values(values))
    }
}
