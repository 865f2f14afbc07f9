//! Row (and column) scaling of a matrix whose rows differ in scale, before iterations begin.
//!
//! If row norms differ by so much that rounding in rows of large entries exceeds what the tolerance allows in rows of
//! small ones, no method that works in one norm can solve the system. Scaling by powers of two does not round.

use super::RowNorms;
use crate::backend::copied;
use crate::error::Result;
use crate::krylov::SolveOptions;
use crate::matrix::Csr;
use crate::multigrid::MultigridBackend;
use crate::scalar::{Real, Scalar};
use num_traits::Float;
use std::sync::Arc;

/// Rows are scaled if their norms differ by more than this factor, or by a corresponding factor for single precision.
const MOST_SPREAD: f64 = 1e3;

/// Rows are scaled if rounding relative to the largest norm exceeds this fraction of the tolerance relative to the
/// smallest.
const OF_TOLERANCE: f64 = 1e-2;

/// The diagonals R and C of R A C, powers of two: (R A C) y = R b, x = C y. C = R for a Hermitian matrix; C = 1 for
/// others, whose unknowns keep their units.
pub(crate) struct Equilibrated<T: Scalar, B: MultigridBackend> {
    left: B::Vec<T>,
    /// C and its inverse.
    right: Option<(B::Vec<T>, B::Vec<T>)>,
    /// The diagonal of R on the host.
    factors: Vec<f64>,
}

/// The units that a scaled matrix had before: it is D A D, or D A if only rows are scaled.
#[derive(Clone)]
pub(crate) struct CallersUnits {
    /// The diagonal of D^-1.
    pub(crate) inverse: Arc<[f64]>,
    /// True if columns are scaled too.
    pub(crate) columns: bool,
}

/// Multigrid is set up for A, not for R A C, unless a factor exceeds 2 to this power: A's entries are of the order of
/// its square, and have to fit single precision.
const MOST_OF_UNITS: f64 = 30.0;

/// Returns whether rows whose norms differ by this factor must be scaled to reach the tolerance.
fn is_needed<T: Scalar>(spread: f64, options: &SolveOptions) -> bool {
    let epsilon = <T::Real as Float>::epsilon().to_f64();
    let rounding = spread * epsilon > OF_TOLERANCE * options.threshold_of_one::<T>();
    spread > MOST_SPREAD && rounding
}

/// R A C and its factors.
type Scaled<T, B> = (Csr<T, B>, Equilibrated<T, B>);

/// R A C and its factors, if the rows of A must be scaled; `norms` are then updated for that matrix. A Hermitian matrix
/// stays Hermitian.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub(crate) fn equilibrated<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    norms: &mut RowNorms<T, B>,
    hermitian: bool,
    options: &SolveOptions,
) -> Result<Option<Scaled<T, B>>> {
    if a.rows() != a.columns() || !norms.counts_rows() || !is_needed::<T>(norms.spread(), options) {
        return Ok(None);
    }
    let n = a.rows();
    let power = |size: f64| if size > 0.0 && size.is_finite() { size.log2().round().exp2() } else { 1.0 };
    let factors: Vec<f64> = if hermitian {
        // 1 / a_ii, or 1 / (norm of the row) if a_ii is negligible.
        let mut inverses = backend.buffer::<T::Real>(n)?;
        backend.row_inverses::<T, T>(a.parts(), true, &mut inverses)?;
        let here = backend.download(&inverses)?;
        let of_norms = norms.logarithms(backend)?;
        // The reciprocal of a denormal number is out of range, its square root is not.
        let smallest = T::Real::min_positive_value().to_f64().log2();
        let factor = |(inverse, logarithm): (&T::Real, f64)| match logarithm > smallest + 2.0 {
            true => power(inverse.to_f64().sqrt()),
            false => power((-0.5 * logarithm).exp2()),
        };
        here.iter().zip(of_norms).map(factor).collect()
    } else {
        norms.inverses(backend)?.into_iter().map(power).collect()
    };
    let factor = |f: &f64| T::from_f64(*f);
    let left: B::Vec<T> = backend.upload(factors.iter().map(factor).collect())?;
    let right = if hermitian {
        let inverse = backend.upload(factors.iter().map(|f| T::from_f64(f.recip())).collect())?;
        Some((copied(backend, &left)?, inverse))
    } else {
        None
    };
    let mut values = backend.buffer(a.nonzeros())?;
    match &right {
        Some((right, _)) => backend.scaled_values(a.parts(), &left, right, &mut values)?,
        None => {
            let mut ones = backend.buffer(n)?;
            backend.fill(T::one(), &mut ones)?;
            backend.scaled_values(a.parts(), &left, &ones, &mut values)?;
        }
    }
    norms.scale(backend, &factors, hermitian)?;
    Ok(Some((a.with_values(values), Equilibrated { left, right, factors })))
}

impl<T: Scalar, B: MultigridBackend> Equilibrated<T, B> {
    /// The description of the scaling, for the trail.
    pub(crate) fn words(&self) -> &'static str {
        match self.right {
            Some(_) => "rows and columns, alike",
            None => "rows",
        }
    }

    /// The caller's units, for a preconditioner that is made for A. None if they are too far apart.
    pub(crate) fn units(&self) -> Option<CallersUnits> {
        let near = self.factors.iter().all(|factor| factor.log2().abs() <= MOST_OF_UNITS);
        near.then(|| CallersUnits {
            inverse: self.factors.iter().map(|factor| factor.recip()).collect(),
            columns: self.right.is_some(),
        })
    }

    /// Computes R b, and y = C^-1 x.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn enter(
        &self,
        backend: &B,
        (b, x): (&B::Slice<T>, &B::Slice<T>),
        (to_b, to_y): (&mut B::Slice<T>, &mut B::Slice<T>),
    ) -> Result<()> {
        backend.multiply(&self.left, b, to_b)?;
        match &self.right {
            Some((_, inverse)) => backend.multiply(inverse, x, to_y),
            None => backend.copy(x, to_y),
        }
    }

    /// Returns A from R A C. Undoing the powers of two is exact.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub(crate) fn undone(&self, backend: &B, scaled: Csr<T, B>) -> Result<Csr<T, B>> {
        let n = scaled.rows();
        let factors = backend.download(&self.left)?.into_iter().map(|factor| T::one() / factor);
        let left: B::Vec<T> = backend.upload(factors.collect())?;
        let mut values = backend.buffer(scaled.nonzeros())?;
        match &self.right {
            Some((_, inverse)) => backend.scaled_values(scaled.parts(), &left, inverse, &mut values)?,
            None => {
                let mut ones = backend.buffer(n)?;
                backend.fill(T::one(), &mut ones)?;
                backend.scaled_values(scaled.parts(), &left, &ones, &mut values)?;
            }
        }
        Ok(scaled.with_values(values))
    }

    /// x = C y.
    ///
    /// # Errors
    /// If the device fails.
    pub(crate) fn leave(&self, backend: &B, y: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<()> {
        match &self.right {
            Some((right, _)) => backend.multiply(right, y, x),
            None => backend.copy(y, x),
        }
    }
}
