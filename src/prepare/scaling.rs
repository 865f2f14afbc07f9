//! Scaling by two diagonal matrices.

use crate::backend::{Backend, Host, with_offsets};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::parallel::{Cut, both};
use crate::scalar::{Offset, Real, Scalar};

/// Rows that one task scales.
const CHUNK: usize = 1 << 12;

/// Scale factors are between 2 to minus this power and 2 to this power, so that they and their reciprocals are finite.
pub(super) const LARGEST_POWER: f64 = 1000.0;

/// Positive factors for the rows and columns of a matrix: R A C has the entries r_i a_ij c_j. If A x = b, then (R A C)
/// y = R b with x = C y.
///
/// ```
/// use residua::{Csr, prepare::equilibrate};
///
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1e8, 1.0, 1.0, 1e-4])?;
/// let scaling = equilibrate(&a)?; // powers of two: nothing is rounded
/// let scaled = scaling.apply(&a)?;
/// let mut y = vec![1.0, -1.0]; // the solution of the scaled system
/// scaling.scale_by_columns(&mut y)?; // x = C y
/// assert!(scaled.parts().values.iter().all(|value| (1e-5..2.1).contains(value)));
/// # Ok::<(), residua::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    rows: Vec<f64>,
    columns: Vec<f64>,
}

impl Scaling {
    /// Takes the binary logarithms of the factors, which are cut off at 1000 and -1000.
    pub(super) fn from_logarithms(rows: &[f64], columns: &[f64]) -> Self {
        let factors = |logarithms: &[f64]| {
            let factor = |&l: &f64| l.clamp(-LARGEST_POWER, LARGEST_POWER).exp2();
            logarithms.par_iter().with_min_len(CHUNK).map(factor).collect()
        };
        Self { rows: factors(rows), columns: factors(columns) }
    }

    /// Factors of one for a matrix of this size.
    pub fn unit(rows: usize, columns: usize) -> Self {
        Self { rows: vec![1.0; rows], columns: vec![1.0; columns] }
    }

    /// Takes factors for rows and columns.
    ///
    /// # Errors
    /// If a factor is not positive and finite.
    pub fn from_parts(rows: Vec<f64>, columns: Vec<f64>) -> Result<Self> {
        match rows.iter().chain(&columns).find(|factor| !(**factor > 0.0 && factor.is_finite())) {
            None => Ok(Self { rows, columns }),
            Some(factor) => Err(Error::InvalidArgument(format!(
                "the scale factor {factor:e} must be positive and finite"
            ))),
        }
    }

    /// The factors of rows.
    pub fn rows(&self) -> &[f64] {
        &self.rows
    }

    /// The factors of columns.
    pub fn columns(&self) -> &[f64] {
        &self.columns
    }

    /// Takes the factors of rows and columns out.
    pub fn into_parts(self) -> (Vec<f64>, Vec<f64>) {
        (self.rows, self.columns)
    }

    /// Rounds each factor to a power of two (by its logarithm), so that scaling rounds no entry. Entries of magnitude 1
    /// then have a magnitude between 1/2 and 2.
    #[must_use]
    pub fn to_powers_of_two(&self) -> Self {
        let round = |factors: &[f64]| {
            factors.par_iter().with_min_len(CHUNK).map(|f| f.log2().round().exp2()).collect()
        };
        Self { rows: round(&self.rows), columns: round(&self.columns) }
    }

    /// Applies first `self` and then `next`.
    ///
    /// # Errors
    /// If the sizes differ.
    pub fn then(&self, next: &Self) -> Result<Self> {
        Error::check_dimension("rows of the second scaling", self.rows.len(), next.rows.len())?;
        Error::check_dimension("columns of the second scaling", self.columns.len(), next.columns.len())?;
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).collect();
        Self::from_parts(product(&self.rows, &next.rows), product(&self.columns, &next.columns))
    }

    /// Returns R A C, computed by several threads.
    ///
    /// # Errors
    /// If the matrix has another size, or if memory runs out.
    pub fn apply<T: Scalar>(&self, a: &Csr<T>) -> Result<Csr<T>> {
        let mut scaled = a.copied(&Host)?;
        self.apply_in_place(&mut scaled)?;
        Ok(scaled)
    }

    /// Replaces A by R A C.
    ///
    /// # Errors
    /// If the matrix has another size, or if memory runs out.
    pub fn apply_in_place<T: Scalar>(&self, a: &mut Csr<T>) -> Result<()> {
        let values = self.values(a)?;
        a.replace_values(values);
        Ok(())
    }

    /// Returns the values of R A C, computed by several threads.
    ///
    /// # Errors
    /// As [`Scaling::apply`].
    pub(crate) fn values<T: Scalar>(&self, a: &Csr<T>) -> Result<Vec<T>> {
        Error::check_dimension("rows of the matrix to scale", self.rows.len(), a.rows())?;
        Error::check_dimension("columns of the matrix to scale", self.columns.len(), a.columns())?;
        let firsts: Vec<u64> = with_offsets!(a.parts().offsets, offsets => {
            (0..a.rows()).step_by(CHUNK).map(|row| offsets[row].to_usize() as u64).collect()
        });
        let mut values = Host.zeros::<T>(a.nonzeros())?;
        let chunks = Cut::new(&mut values, &firsts).expect("offsets ascend");
        chunks.enumerate().for_each(|(chunk, mut places)| {
            for row in chunk * CHUNK..((chunk + 1) * CHUNK).min(a.rows()) {
                let (columns, values) = a.row(row);
                let (own, behind) = places.split_at_mut(values.len());
                for (place, (&column, &value)) in own.iter_mut().zip(both(columns, values)) {
                    let (r, c) = (self.rows[row], self.columns[column as usize]);
                    // If the product of both factors overflows or underflows, so does the entry.
                    *place = if (r * c).is_normal() {
                        times(value, r * c)
                    } else {
                        times(times(value, r.min(c)), r.max(c))
                    };
                }
                places = behind;
            }
        });
        Ok(values)
    }

    /// Replaces b by R b, the right-hand side of the scaled system.
    ///
    /// # Errors
    /// If the vector has the wrong length.
    pub fn scale_by_rows<T: Scalar>(&self, b: &mut [T]) -> Result<()> {
        scale(&self.rows, b)
    }

    /// Replaces y by C y, the solution of the original system.
    ///
    /// # Errors
    /// If the vector has the wrong length.
    pub fn scale_by_columns<T: Scalar>(&self, y: &mut [T]) -> Result<()> {
        scale(&self.columns, y)
    }
}

fn scale<T: Scalar>(factors: &[f64], x: &mut [T]) -> Result<()> {
    Error::check_dimension("length of the vector to scale", factors.len(), x.len())?;
    x.iter_mut().zip(factors).for_each(|(x, &factor)| *x = times(*x, factor));
    Ok(())
}

/// Multiplies in double precision, because the factor may be out of range in `T`.
#[inline(always)]
fn times<T: Scalar>(value: T, factor: f64) -> T {
    let (re, im) = (value.re().to_f64() * factor, value.im().to_f64() * factor);
    if T::COMPLEX { T::from_parts(re, im).unwrap_or_default() } else { T::from_f64(re) }
}

/// Returns the binary logarithms of the magnitudes of all entries; minus infinity for zeros.
///
/// # Errors
/// If an entry is infinite or not a number; the message has its place.
pub(super) fn logarithms<T: Scalar>(a: &Csr<T>, starts: &[usize]) -> Result<Vec<f64>> {
    let parts = a.parts();
    let is_finite = |value: &T| value.is_finite();
    if !parts.values.par_iter().with_min_len(CHUNK).all(is_finite)
        && let Some(k) = parts.values.iter().position(|value| !value.is_finite())
    {
        let row = starts.partition_point(|&start| start <= k) - 1;
        return Err(Error::InvalidMatrix(format!(
            "the entry in row {row}, column {} (from 0) is {}: infinities and NaN can't be scaled",
            parts.indices[k], parts.values[k]
        )));
    }
    let mut logarithms = Host.zeros::<f64>(parts.values.len())?;
    // The magnitude of a complex number may exceed the largest double although its parts do not.
    let magnitude = |value: T| value.abs().to_f64().min(f64::MAX);
    logarithms
        .par_iter_mut()
        .zip(parts.values)
        .with_min_len(CHUNK)
        .for_each(|(logarithm, &value)| *logarithm = magnitude(value).log2());
    Ok(logarithms)
}
