//! Factors of a nonsingular matrix near one that is singular or nearly so. They do not invert A, but with refinement
//! and flexible GMRES they solve every consistent system.
//!
//! Hermitian A: L D L^H of A + s I. A null vector of A has the eigenvalue s instead of a pivot of rounding errors. An
//! eigenvalue l far above s is changed by a relative s / l, which is the factor by which each refinement step contracts
//! the error.
//!
//! Any other A: the x that minimises ||b - A x||^2 + s^2 ||x||^2, from
//!
//! ```text
//! | s I    A  | |y|   |b|
//! | A^H  -s I | |x| = |0|
//! ```
//!
//! This matrix is quasi-definite: it has an L D L^H in every ordering (Vanderbei, "Symmetric quasidefinite matrices",
//! SIAM J. Optim. 5, 1995), and without pivoting that is stable as long as s is well above the root of the rounding
//! unit (Gill, Saunders and Shinnerl, SIAM J. Matrix Anal. Appl. 17, 1996). Refinement with it is Riley's iteration
//! (Math. Tables Aids Comput. 9, 1955), which converges to a least-squares solution whether b is in the range of A or
//! not. A times this approximate inverse is Hermitian without negative eigenvalues, so that GMRES does not break down.

use super::faer_wrapper;
use super::options::DirectOptions;
use super::report::Reason;
use super::steps::{as_reason, columns_of_transpose, times, within};
use super::structures::symmetric_structure;
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::{Scaling, equilibrate, equilibrate_symmetric};
use crate::scalar::Real;
use faer::sparse::linalg::cholesky::SymbolicCholesky;
use num_traits::Float;
use std::sync::Arc;

/// s, relative to the largest entry, which scaling has brought near 1: the cube root of the rounding unit eps, so that
/// the error of the elimination, eps / s^2, is about as small as s.
fn shift<T: Factorable>() -> f64 {
    <T::Real as Float>::epsilon().to_f64().cbrt()
}

/// Powers of two that bring the largest entry of each column near 1.
fn of_columns<T: Factorable>(a: &Csr<T>) -> Result<Scaling, Reason> {
    let mut columns = vec![0.0_f64; a.columns()];
    for row in 0..a.rows() {
        let (indices, values) = a.row(row);
        for (&column, value) in both(indices, values) {
            let largest = &mut columns[column as usize];
            *largest = largest.max(value.abs().to_f64());
        }
    }
    columns.iter_mut().for_each(|largest| *largest = if *largest > 0.0 { 1.0 / *largest } else { 1.0 });
    Ok(Scaling::from_parts(vec![1.0; a.rows()], columns).map_err(as_reason)?.to_powers_of_two())
}

/// L D L^H of a shifted A, or of the quasi-definite matrix that contains A.
pub(super) struct Regular<T: Factorable> {
    structure: Arc<SymbolicCholesky<u32>>,
    values: Vec<T>,
    scaling: Scaling,
    /// The rows of A, which come before its columns in the quasi-definite matrix; 0 if A itself was shifted.
    rows: usize,
}

/// Sorted columns and their values, row by row.
struct Rows<T> {
    starts: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
}

impl<T: Factorable> Rows<T> {
    fn with_capacity(rows: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Self { starts, indices: Vec::with_capacity(entries), values: Vec::with_capacity(entries) }
    }

    fn push(&mut self, column: usize, value: T) {
        self.indices.push(column as u32);
        self.values.push(value);
    }

    fn end(&mut self) {
        self.starts.push(self.indices.len());
    }

    fn into_csr(self, n: usize) -> Result<Csr<T>, Reason> {
        Csr::from_parts(n, n, self.starts, self.indices, self.values).map_err(as_reason)
    }
}

impl<T: Factorable> Regular<T> {
    /// Factorises A + s I for a Hermitian A.
    pub(super) fn shifted(a: &Csr<T>, options: &DirectOptions) -> Result<Self, Reason> {
        let scaling = equilibrate_symmetric(a).map_err(as_reason)?;
        let a = scaling.apply(a).map_err(as_reason)?;
        let (n, s) = (a.rows(), T::from_f64(shift::<T>()));
        let mut rows = Rows::with_capacity(n, a.nonzeros() + n);
        for i in 0..n {
            let (indices, values) = a.row(i);
            let before = indices.partition_point(|&column| (column as usize) < i);
            let has_diagonal = indices.get(before).is_some_and(|&column| column as usize == i);
            let behind = before + usize::from(has_diagonal);
            let of = |k: usize| (indices[k] as usize, values[k]);
            (0..before).map(of).for_each(|(column, value)| rows.push(column, value));
            rows.push(i, if has_diagonal { values[before] + s } else { s });
            (behind..indices.len()).map(of).for_each(|(column, value)| rows.push(column, value));
            rows.end();
        }
        Self::factorised(&rows.into_csr(n)?, scaling, 0, options)
    }

    /// Factorises the quasi-definite matrix. Scaling the rows is needed for badly scaled systems, but it changes
    /// least-squares solutions; so `rows_too` says whether it is allowed.
    pub(super) fn around(a: &Csr<T>, rows_too: bool, options: &DirectOptions) -> Result<Self, Reason> {
        let scaling = if rows_too { equilibrate(a).map_err(as_reason)? } else { of_columns(a)? };
        let a = scaling.apply(a).map_err(as_reason)?;
        Self::factorised(&Self::quasi_definite(&a)?, scaling, a.rows(), options)
    }

    /// The numbers of entries and of multiplications of [`Regular::around`].
    pub(super) fn size(a: &Csr<T>, options: &DirectOptions) -> Result<(f64, f64), Reason> {
        let (structure, _) = symmetric_structure(&Self::quasi_definite(a)?, options)?;
        Ok((structure.len_val() as f64, faer_wrapper::symmetric_flops(&structure)))
    }

    /// The quasi-definite matrix, with s and -s on the diagonal, and A and A^H off the diagonal.
    fn quasi_definite(a: &Csr<T>) -> Result<Csr<T>, Reason> {
        let (m, n, s) = (a.rows(), a.columns(), T::from_f64(shift::<T>()));
        let mut rows = Rows::with_capacity(m + n, 2 * a.nonzeros() + m + n);
        let mut counts = vec![0_usize; n + 1];
        for i in 0..m {
            rows.push(i, s);
            let (indices, values) = a.row(i);
            for (&column, &value) in both(indices, values) {
                rows.push(m + column as usize, value);
                counts[column as usize + 1] += 1;
            }
            rows.end();
        }
        for column in 0..n {
            counts[column + 1] += counts[column];
        }
        let (mut next, mut places) = (counts.clone(), vec![(0, T::default()); a.nonzeros()]);
        for i in 0..m {
            let (indices, values) = a.row(i);
            for (&column, &value) in both(indices, values) {
                let place = &mut next[column as usize];
                places[*place] = (i, value.conj());
                *place += 1;
            }
        }
        for column in 0..n {
            places[counts[column]..counts[column + 1]].iter().for_each(|&(row, value)| rows.push(row, value));
            rows.push(m + column, T::default() - s);
            rows.end();
        }
        rows.into_csr(m + n)
    }

    fn factorised(
        k: &Csr<T>,
        scaling: Scaling,
        rows: usize,
        options: &DirectOptions,
    ) -> Result<Self, Reason> {
        let columns = columns_of_transpose(k)?;
        let structure = Arc::new(symmetric_structure(k, options)?.0);
        let bytes = (structure.len_val() * size_of::<T>()) as u64;
        within(bytes, faer_wrapper::symmetric_flops(&structure), options)?;
        let mut values = Vec::new();
        // A pivot that vanishes nevertheless is replaced by s.
        let unit = <T::Real as Float>::epsilon().to_f64();
        T::symmetric_factor(
            &structure,
            (columns, k.parts().values),
            Some((unit, shift::<T>())),
            &mut values,
        )?;
        Ok(Self { structure, values, scaling, rows })
    }

    /// Replaces x by the factor's approximation of A^-1 x.
    pub(super) fn apply(&self, x: &mut Vec<T>) {
        let scaled = |x: &mut [T], factors: &[f64]| {
            x.iter_mut().zip(factors).for_each(|(x, &factor)| *x = times(*x, factor));
        };
        scaled(x, self.scaling.rows());
        if self.rows > 0 {
            x.resize(self.rows + self.scaling.columns().len(), T::default());
        }
        T::symmetric_solve(&self.structure, &self.values, true, false, x);
        x.drain(..self.rows);
        scaled(x, self.scaling.columns());
    }

    /// Returns whether this is the quasi-definite matrix with unscaled rows.
    pub(super) fn has_normal(&self) -> bool {
        self.rows > 0 && self.scaling.rows().iter().all(|&factor| factor == 1.0)
    }

    /// Replaces g = A^H r by the solution of (A^H A + s^2) x = g, up to column scaling: the right-hand side of the
    /// system above is then (0, -g / s).
    pub(super) fn apply_normal(&self, x: &mut Vec<T>) {
        let scaled = |x: &mut [T], factor: f64| {
            x.iter_mut().zip(self.scaling.columns()).for_each(|(x, &column)| *x = times(*x, factor * column));
        };
        scaled(x, -1.0 / shift::<T>());
        let mut whole = vec![T::default(); self.rows];
        whole.append(x);
        T::symmetric_solve(&self.structure, &self.values, true, false, &mut whole);
        whole.drain(..self.rows);
        *x = whole;
        scaled(x, 1.0);
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.values.capacity() * size_of::<T>()) as u64
    }

    pub(super) fn is_finite(&self) -> bool {
        self.values.iter().all(|value| value.is_finite())
    }
}
