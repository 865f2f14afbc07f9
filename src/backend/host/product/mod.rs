//! Products on the CPU, one file for each layout.
//!
//! A task takes consecutive rows (or positions in the row order) with about the same number of entries. The division
//! depends only on the matrix. Transposed products are accumulated in private vectors, see `transposed`.

mod block;
mod compressed;
mod coo;
mod csr;
mod dia;
mod ell;
mod jds;
mod model;
pub(super) mod prefetch;
pub(super) mod scattered;
mod sell;
mod shared;
mod transposed;

use super::Host;
use super::precondition::step_of_row;
use crate::backend::ProductModel;
use crate::backend::{
    ChebyshevStep, CompressedParts, CooParts, CsrParts, DiaParts, EllParts, Gemv, JdsParts, Products,
    SellParts, VectorOps, with_offsets,
};
use crate::error::Result;
use crate::scalar::{Promote, Scalar};

/// alpha and beta of y = alpha A x + beta y.
#[derive(Clone, Copy)]
struct Scale<T> {
    alpha: T,
    beta: T,
}

impl<T: Scalar> Scale<T> {
    /// Returns the new value of an element of y from its row's sum and its old value, which is not used if beta is
    /// zero.
    #[inline(always)]
    fn finish(self, sum: T, y: T) -> T {
        if self.beta == T::zero() { self.alpha * sum } else { self.alpha * sum + self.beta * y }
    }
}

/// Compiles the body with `$value` as the function that promotes a stored value, and conjugates it if `op` does.
macro_rules! with_value {
    ($op:expr, $value:ident => $body:expr) => {
        if $op.conjugates() && T::COMPLEX {
            let $value = |v: V| Promote::<T>::widen(v).conj();
            $body
        } else {
            let $value = |v: V| Promote::<T>::widen(v);
            $body
        }
    };
}

impl Products for Host {
    fn csr_residual<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scale: T,
        b: &[T],
        x: &[T],
        r: &mut [T],
    ) -> Result<()> {
        with_offsets!(a.offsets, offsets => {
            crate::backend::host::residual::residual((offsets, a.indices, a.values), scale, b, (x, None), r);
        });
        Ok(())
    }

    fn model(&self) -> ProductModel {
        model::MODEL
    }

    fn csr_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        x: &[T],
        y: &mut [T],
        xy: &mut [T],
    ) -> Result<()> {
        xy[0] = with_offsets!(a.offsets, offsets => csr::product_dot(offsets, a.indices, a.values, x, y));
        Ok(())
    }

    fn csr_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        ChebyshevStep { keep, momentum, step, d, r, last }: ChebyshevStep<'_, T, Host>,
        z: &[T],
    ) -> Result<bool> {
        let step = step_of_row((keep, momentum, step), d, r, z);
        with_offsets!(a.offsets, offsets => csr::product_then(offsets, a.indices, a.values, z, last, step));
        Ok(true)
    }

    fn csr<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_offsets!(a.offsets, offsets => with_value!(op, value => {
            if op.transposes() {
                csr::transposed(offsets, a.indices, a.values, value, scale, x, y);
            } else {
                csr::product(offsets, a.indices, a.values, value, scale, x, y);
            }
        }));
        Ok(())
    }

    fn csr_block<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        vectors: usize,
        Gemv { alpha, x, beta, y, .. }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        with_offsets!(a.offsets, offsets => {
            block::product(offsets, a.indices, a.values, vectors, Scale { alpha, beta }, x, y);
        });
        Ok(())
    }

    fn coo<V: Promote<T>, T: Scalar>(
        &self,
        a: CooParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_value!(op, value => {
            if op.transposes() {
                coo::transposed(a, value, scale, x, y);
            } else {
                coo::product(a, value, scale, x, y);
            }
        });
        Ok(())
    }

    fn ell<V: Promote<T>, T: Scalar>(
        &self,
        a: EllParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_value!(op, value => {
            if op.transposes() {
                ell::transposed(a, value, scale, x, y);
            } else {
                ell::product(a, value, scale, x, y);
            }
        });
        Ok(())
    }

    fn jds<V: Promote<T>, T: Scalar>(
        &self,
        a: JdsParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_offsets!(a.offsets, offsets => with_value!(op, value => {
            if op.transposes() {
                jds::transposed(a, offsets, value, scale, x, y);
            } else {
                jds::product(a, offsets, value, scale, x, y);
            }
        }));
        Ok(())
    }

    fn sell<V: Promote<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_value!(op, value => {
            if op.transposes() {
                sell::transposed(a, value, scale, x, y);
            } else {
                sell::product(a, value, x, y, |_: &mut (), _, sum, y| scale.finish(sum, y));
            }
        });
        Ok(())
    }

    fn sell_dot<V: Promote<T>, T: Scalar>(
        &self,
        a: SellParts<'_, V, Host>,
        x: &[T],
        y: &mut [T],
        xy: &mut [T],
    ) -> Result<()> {
        let dots = sell::product(a, V::widen, x, y, |dot: &mut T, row, sum, _| {
            *dot += x[row].conj() * sum;
            sum
        });
        xy[0] = dots.into_iter().sum();
        Ok(())
    }

    fn dia<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_value!(op, value => {
            if op.transposes() && a.mirrored == 0 {
                dia::transposed(a, value, scale, x, y);
            } else {
                dia::product(a, value, x, y, |_: &mut (), _, sum, y| scale.finish(sum, y));
            }
        });
        Ok(())
    }

    fn dia_chebyshev<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Host>,
        ChebyshevStep { keep, momentum, step, d, r, last }: ChebyshevStep<'_, T, Host>,
        z: &[T],
    ) -> Result<bool> {
        let step = step_of_row((keep, momentum, step), d, r, z);
        dia::product(a, <V as Promote<T>>::widen, z, last, |_: &mut (), row, sum, last| step(row, sum, last));
        Ok(true)
    }

    fn dia_dot<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: DiaParts<'_, V, Host>,
        x: &[T],
        y: &mut [T],
        xy: &mut [T],
    ) -> Result<()> {
        let dots = dia::product(a, <V as Promote<T>>::widen, x, y, |dot: &mut T, row, sum, _| {
            *dot += x[row].conj() * sum;
            sum
        });
        xy[0] = dots.into_iter().sum();
        Ok(())
    }

    fn compressed<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CompressedParts<'_, V, Host>,
        Gemv { op, alpha, x, beta, y }: Gemv<'_, T, Host>,
    ) -> Result<()> {
        let scale = Scale { alpha, beta };
        with_value!(op, value => {
            if op.transposes() {
                compressed::transposed(a, value, scale, x, y);
            } else {
                compressed::product(a, value, x, y, |_: &mut (), _, sum, y| scale.finish(sum, y));
                if let Some(long) = a.long {
                    compressed::add_long(long, value, alpha, x, y);
                }
            }
        });
        Ok(())
    }

    fn compressed_dot<V: Scalar + Promote<T>, T: Scalar>(
        &self,
        a: CompressedParts<'_, V, Host>,
        x: &[T],
        y: &mut [T],
        xy: &mut [T],
    ) -> Result<()> {
        let dots = compressed::product(a, <V as Promote<T>>::widen, x, y, |dot: &mut T, row, sum, _| {
            *dot += x[row].conj() * sum;
            sum
        });
        xy[0] = dots.into_iter().sum();
        if let Some(long) = a.long {
            compressed::add_long(long, <V as Promote<T>>::widen, T::one(), x, y);
            self.dot(x, y, xy)?;
        }
        Ok(())
    }
}
