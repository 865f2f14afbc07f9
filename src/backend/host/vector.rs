//! Vector operations on the CPU.

use super::sums::{chunk_size, for_chunks, inner, sum_chunks, sum_pairs};
use super::{Host, basis, linear_update, pairs, several};
use crate::backend::scalars::interpret;
use crate::backend::{Hessenberg, LinearUpdate, PairScalars, ScalarProgram, Slot, VectorOps};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Promote, Scalar};

impl VectorOps for Host {
    fn dot<T: Scalar>(&self, x: &[T], y: &[T], out: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        if out.len() > 1 {
            return several::dots(x, y, out);
        }
        let size = chunk_size(x.len());
        let chunks = x.par_chunks(size).zip(y.par_chunks(size));
        out[0] = sum_chunks(x.len(), chunks, |(x, y)| inner(x, y));
        Ok(())
    }

    fn interleave<T: Scalar>(&self, vectors: usize, x: &[T], y: &mut [T]) -> Result<()> {
        several::interleave(vectors, x, y)
    }

    fn separate<T: Scalar>(&self, vectors: usize, x: &[T], y: &mut [T]) -> Result<()> {
        several::separate(vectors, x, y)
    }

    fn norm2_squared<T: Scalar>(&self, x: &[T], out: &mut [T::Real]) -> Result<()> {
        let chunks = x.par_chunks(chunk_size(x.len()));
        out[0] = sum_chunks(x.len(), chunks, |x| sum_pairs(x, x, |x, _| x.abs2()));
        Ok(())
    }

    fn weighted_norms<T: Scalar>(&self, d: &[T::Real], x: &[T], out: &mut [T::Real]) -> Result<()> {
        Error::check_dimension("length of the weights", x.len(), d.len())?;
        let size = chunk_size(x.len());
        let chunks = x.par_chunks(size).zip(d.par_chunks(size));
        let super::sums::Several(sums) = sum_chunks(x.len(), chunks, |(x, d)| {
            // The second sum finds the chunk in the cache.
            let plain = sum_pairs(x, x, |x, _| x.abs2());
            let weighted = sum_pairs(x, d, |x, d| {
                let size = x.abs() * d;
                size * size
            });
            super::sums::Several([plain, weighted])
        });
        out[..2].copy_from_slice(&sums);
        Ok(())
    }

    fn axpby<T: Scalar>(&self, alpha: T, x: &[T], beta: T, y: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        let size = chunk_size(x.len());
        let chunks = x.par_chunks(size).zip(y.par_chunks_mut(size));
        for_chunks(x.len(), chunks, |(x, y)| {
            if beta == T::zero() {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x);
            } else {
                y.iter_mut().zip(x).for_each(|(y, &x)| *y = alpha * x + beta * *y);
            }
        });
        Ok(())
    }

    fn scale_in_place<T: Scalar>(&self, alpha: T, x: &mut [T]) -> Result<()> {
        let n = x.len();
        for_chunks(n, x.par_chunks_mut(chunk_size(n)), |x| x.iter_mut().for_each(|x| *x *= alpha));
        Ok(())
    }

    fn multiply<T: Scalar>(&self, x: &[T], y: &[T], z: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the second vector", x.len(), y.len())?;
        Error::check_dimension("length of the product", x.len(), z.len())?;
        let size = chunk_size(x.len());
        let chunks = x.par_chunks(size).zip(y.par_chunks(size)).zip(z.par_chunks_mut(size));
        for_chunks(x.len(), chunks, |((x, y), z)| {
            z.iter_mut().zip(x.iter().zip(y)).for_each(|(z, (&x, &y))| *z = x * y);
        });
        Ok(())
    }

    fn scale<T: Scalar>(&self, d: &[T::Real], x: &[T], z: &mut [T]) -> Result<()> {
        Error::check_dimension("length of the vector", d.len(), x.len())?;
        Error::check_dimension("length of the product", d.len(), z.len())?;
        let size = chunk_size(x.len());
        let chunks = d.par_chunks(size).zip(x.par_chunks(size)).zip(z.par_chunks_mut(size));
        for_chunks(x.len(), chunks, |((d, x), z)| {
            z.iter_mut().zip(d.iter().zip(x)).for_each(|(z, (&d, &x))| *z = T::from_real(d) * x);
        });
        Ok(())
    }

    fn linear_update<T: Scalar>(
        &self,
        update: LinearUpdate<'_, '_, T, Self>,
        state: &mut [T],
        then: Option<&ScalarProgram<Self>>,
    ) -> Result<()> {
        update.check(state.len())?;
        #[cfg(all(test, feature = "cuda"))]
        super::asked::updates::<T>([update.inputs.len(), update.outputs.len(), update.products.len()], then);
        if state[Slot::ENDED.place()] != T::zero() {
            return Ok(());
        }
        let products = update.products;
        let sums = linear_update::run(update, state);
        for (product, &sum) in products.iter().zip(&sums.0) {
            state[product.to.place()] = sum;
        }
        if let Some(program) = then {
            interpret(&program.words, state);
        }
        Ok(())
    }

    fn run_program<T: Scalar>(&self, program: &ScalarProgram<Self>, state: &mut [T]) -> Result<()> {
        #[cfg(all(test, feature = "cuda"))]
        super::asked::runs::<T>(program);
        interpret(&program.words, state);
        Ok(())
    }

    fn basis_products<T: Scalar>(&self, basis: &[T], count: usize, w: &[T], out: &mut [T]) -> Result<()> {
        basis::products(basis, count, w, out)
    }

    fn basis_update<T: Scalar>(
        &self,
        alpha: T,
        basis: &[T],
        count: usize,
        h: &[T],
        w: &mut [T],
        square: Option<&mut [T]>,
    ) -> Result<()> {
        let norm = basis::update(alpha, basis, count, h, w, square.is_some())?;
        if let Some(square) = square {
            square[0] = norm;
        }
        Ok(())
    }

    fn hessenberg_step<T: Scalar>(&self, column: usize, hessenberg: Hessenberg<'_, T, Self>) -> Result<()> {
        basis::hessenberg_step(column, hessenberg)
    }

    fn triangular_solve<T: Scalar>(
        &self,
        count: usize,
        stride: usize,
        r: &[T],
        g: &[T],
        y: &mut [T],
    ) -> Result<()> {
        basis::triangular_solve(count, stride, r, g, y)
    }

    fn pair_products<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &[S],
        count: usize,
        w: [&[T]; 2],
        out: &mut [T],
    ) -> Result<()> {
        pairs::products(basis, count, w, out)
    }

    fn pair_factors<T: Scalar>(&self, column: usize, pair: PairScalars<'_, T, Self>) -> Result<()> {
        pairs::factors(column, pair)
    }

    fn pair_update<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &mut [S],
        count: usize,
        w: [&[T]; 2],
        factors: &[T],
        v: &mut [T],
        squares: &mut [T],
    ) -> Result<()> {
        pairs::update(basis, count, w, factors, v, squares)
    }

    fn pair_columns<T: Scalar>(&self, column: usize, pair: PairScalars<'_, T, Self>) -> Result<()> {
        pairs::columns(column, pair)
    }

    fn basis_combination<S: Scalar + Promote<T>, T: Scalar>(
        &self,
        basis: &[S],
        count: usize,
        c: &[T],
        x: &mut [T],
    ) -> Result<()> {
        pairs::combination(basis, count, c, x)
    }
}
