//! Diagonal scaling after which constants are near the null space again, and the matrix is Hermitian again.
//!
//! ```text
//! S           the matrix of a mesh: symmetric, and S 1 is small relative to S
//! A = D S E   equations divided by volumes or time steps (D), unknowns in other units (E)
//! L A R       with diagonal L and R found from A alone, such that it is Hermitian and L A R 1 is small again
//! ```
//!
//! Interpolation of constants and thresholds for couplings are right for S and not for A. Therefore the hierarchy is
//! that of L A R, and the preconditioner is R M L with its cycle M.
//!
//! `symmetrize` finds L for a matrix that is not Hermitian. R is the result of a few steps of smoothing for A x = 0
//! from x = 1 / sqrt(a_ii), which is how adaptive smoothed aggregation finds near-null vectors (Brezina, Falgout,
//! MacLachlan, Manteuffel, McCormick and Ruge, Adaptive smoothed aggregation, SIAM Review 47, 2005). If E is constant,
//! R stays 1.

use super::MultigridBackend;
use super::blocks::Scales;
use super::diagonal::{inverse_roots, times};
use super::sample::relative_sums;
use super::smoother::{Scaling, Smoother};
use super::tentative::{NearNull, Vectors};
use crate::backend::{Backend, copied};
use crate::error::Result;
use crate::look::has_positive_diagonal;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Constants are near the null space if the median of the row sums, relative to the sums of magnitudes, is at most
/// this. Meshes and networks have zero. Unknowns whose units vary from 0.8 to 1.25 at random have 0.05, with which a
/// Delaunay mesh takes 42 iterations instead of 13; units over decades have 0.5 to 0.9.
const SMALL: f64 = 0.03;

/// Scaling is used if it divides that median by at least this. A mass matrix has large row sums however it is scaled.
const GAIN: f64 = 2.0;

/// Steps of smoothing for R. With six to twelve, meshes and lognormal coefficients took about as many iterations as
/// without scaling; with more, x becomes small near boundary conditions, and grids take a third more iterations.
const STEPS: usize = 10;

/// The diagonals of L and R.
#[derive(Debug)]
pub(super) struct Scaled<T: Scalar, B: Backend> {
    /// The scaling of rows; `None` if L = R.
    left: Option<B::Vec<T>>,
    /// The scaling of columns; `None` if R = 1.
    pub(super) right: Option<B::Vec<T>>,
}

/// R, R^H A R, and the near-null vectors of that unless they are constants.
pub(super) type NearConstants<T, B> = (<B as Backend>::Vec<T>, Csr<T, B>, Option<NearNull<T, B>>);

impl<T: Scalar, B: MultigridBackend> Scaled<T, B> {
    /// The scaling by row factors that make A Hermitian, if there are any, and by R of the resulting matrix.
    pub(super) fn new(backend: &B, factors: Option<B::Vec<T>>, right: Option<B::Vec<T>>) -> Result<Self> {
        let left = match (factors, &right) {
            (factors, None) => factors,
            (None, Some(right)) if T::COMPLEX => Some(conjugate(backend, right)?),
            (None, Some(_)) => None,
            (Some(factors), Some(right)) => {
                let mut both = backend.buffer(B::len(&factors))?;
                backend.multiply(&factors, &*conjugate(backend, right)?, &mut both)?;
                Some(both)
            }
        };
        Ok(Self { left, right })
    }

    /// Turns the diagonals for A into those for D A D, or for D A without `columns`; `inverse` is the diagonal of D^-1.
    pub(super) fn within(self, backend: &B, inverse: &B::Slice<T>, columns: bool) -> Result<Self> {
        let times = |factors: B::Vec<T>| -> Result<B::Vec<T>> {
            let mut both = backend.buffer(B::len(&factors))?;
            backend.multiply(&factors, inverse, &mut both)?;
            Ok(both)
        };
        if !columns {
            let left = match (self.left, &self.right) {
                (Some(left), _) => times(left)?,
                (None, Some(right)) => times(copied(backend, right)?)?,
                (None, None) => copied(backend, inverse)?,
            };
            return Ok(Self { left: Some(left), right: self.right });
        }
        let right = match self.right {
            Some(right) => times(right)?,
            None => copied(backend, inverse)?,
        };
        Ok(Self { left: self.left.map(times).transpose()?, right: Some(right) })
    }

    /// z = R M L r, where `cycle` applies M; `between` is a vector of the same length.
    pub(super) fn around(
        &self,
        backend: &B,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
        between: &mut B::Slice<T>,
        cycle: impl FnOnce(&B::Slice<T>, &mut B::Slice<T>) -> Result<()>,
    ) -> Result<()> {
        let Some(left) = self.left.as_ref().or(self.right.as_ref()) else { return cycle(r, z) };
        let Some(right) = &self.right else {
            backend.multiply(left, r, between)?;
            return cycle(between, z);
        };
        backend.multiply(left, r, z)?;
        cycle(z, between)?;
        backend.multiply(right, between, z)
    }

    /// Returns the bytes of both diagonals.
    pub(super) fn storage_bytes(&self) -> usize {
        self.left.iter().chain(&self.right).map(|factors| B::len(factors) * size_of::<T>()).sum()
    }
}

/// True if constants are near the null space of A.
pub(super) fn has_near_constants<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    Ok(relative_sums(backend, a)? <= SMALL)
}

/// Computes R for a Hermitian matrix. Returns `None` if constants are near the null space of A, or if R would not bring
/// them near that of R^H A R. For nodes of several `unknowns`, R is 1 / sqrt(a_ii), and each unknown of a node gets its
/// own vector: a single one would mix them.
pub(super) fn near_constants<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    unknowns: usize,
) -> Result<Option<NearConstants<T, B>>> {
    let sums = relative_sums(backend, a)?;
    // R must be nonsingular.
    if sums.is_nan() || sums <= SMALL || !has_positive_diagonal(backend, a)? {
        return Ok(None);
    }
    let roots = inverse_roots(backend, a)?;
    if unknowns > 1 {
        let scaled = times(backend, a, &roots, &roots)?;
        let vectors = of_each_unknown(backend, &scaled, unknowns)?;
        return Ok(Some((roots, scaled, Some(vectors))));
    }
    let right = smoothed(backend, a, roots)?;
    let scaled = times(backend, a, &*conjugate(backend, &right)?, &right)?;
    let pays = relative_sums(backend, &scaled)? * GAIN <= sums;
    Ok(pays.then_some((right, scaled, None)))
}

fn conjugate<T: Scalar, B: MultigridBackend>(backend: &B, x: &B::Slice<T>) -> Result<B::Vec<T>> {
    let mut conjugate = copied(backend, x)?;
    if T::COMPLEX {
        backend.conjugate(&mut conjugate)?;
    }
    Ok(conjugate)
}

/// Returns the result of smoothing x for A x = 0.
fn smoothed<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    mut x: B::Vec<T>,
) -> Result<B::Vec<T>> {
    let n = a.rows();
    let scales = Scales::new(backend, a)?;
    let scaling = if scales.blocks_pay(backend)? {
        Scaling::Blocks(scales.block_inverses(backend, a, true)?)
    } else {
        Scaling::Diagonal(scales.of_sums)
    };
    let (zero, mut other, mut t) = (backend.zeros::<T>(n)?, backend.zeros(n)?, backend.zeros(n)?);
    Smoother::new(scaling, STEPS, 1.0).smooth(backend, a, &zero, &mut x, (&mut other, &mut t))?;
    Ok(x)
}

/// Finds a near-null vector for each unknown of the nodes separately.
fn of_each_unknown<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    unknowns: usize,
) -> Result<NearNull<T, B>> {
    let n = a.rows();
    let mut rows = vec![T::zero(); n * unknowns];
    for unknown in 0..unknowns {
        let constant = (0..n).map(|i| if i % unknowns == unknown { T::one() } else { T::zero() });
        let x = smoothed(backend, a, backend.upload(constant.collect())?)?;
        let x = backend.download(&*x)?;
        rows.iter_mut().skip(unknown).step_by(unknowns).zip(x).for_each(|(entry, value)| *entry = value);
    }
    Ok(NearNull::Several(Vectors { count: unknowns, rows: backend.upload(rows)? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::multigrid::symmetrize::tests::of;
    use crate::multigrid::{Multigrid, MultigridOptions};
    use crate::precondition::Preconditioner;

    #[test]
    fn a_scaled_matrix_has_the_levels_of_the_one_before() {
        let n = 11 * 12 * 13;
        let a = generate::jumping([11, 12, 13], 1e6, 3, 1).unwrap();
        let power = |i: usize| a.get(i, i).unwrap().sqrt().log2().round().exp2();
        let units: Vec<f64> = (0..n).map(power).collect();
        let inverse: Vec<f64> = units.iter().map(|unit| unit.recip()).collect();
        let scaled = |a: &Csr<f64>| times(&crate::Host, a, &inverse, &inverse).unwrap();
        let options = MultigridOptions::default().boxes(false);
        let make = |a: &Csr<f64>| Multigrid::new(&crate::Host, a, &options).map(Some);
        let of_scaled = |a: &Csr<f64>| {
            Multigrid::in_units_of(&crate::Host, &scaled(a), (units.clone(), true), make).unwrap().unwrap()
        };
        let applied = |m: &Multigrid<f64, crate::Host>, r: &[f64]| {
            let mut z = vec![0.0; n];
            m.apply(&crate::Host, r, &mut z).unwrap();
            z
        };
        let product = |x: &[f64]| -> Vec<f64> { x.iter().zip(&units).map(|(x, unit)| x * unit).collect() };
        let mut random = crate::random::Random::new(5);
        let r: Vec<f64> = (0..n).map(|_| random.between(-1.0, 1.0)).collect();
        // Scaling by powers of two causes no rounding.
        let expected = |a: &Csr<f64>| product(&applied(&make(a).unwrap().unwrap(), &product(&r)));
        let mut m = of_scaled(&a);
        assert_eq!(applied(&m, &r), expected(&a));
        let other = a.map(|value| 3.0 * value);
        m.update(&crate::Host, &scaled(&other)).unwrap();
        assert_eq!(applied(&m, &r), expected(&other));
        // Constants are not near the null space of a mass matrix, whatever the units.
        let mass = generate::poisson2d(40, 40).unwrap().map(f64::abs);
        let other = vec![2.0; 1600];
        let m = Multigrid::in_units_of(&crate::Host, &mass, (other, true), make).unwrap().unwrap();
        assert_eq!(m.facts(), make(&mass).unwrap().unwrap().facts());
        assert!(m.units.is_none());
        // If only rows were scaled, it is the same for a matrix that is not Hermitian, unless A is further from that.
        let a = generate::convection_diffusion([11, 12, 13], 0.1).unwrap();
        let rows = |i: usize| [0.25, 1.0, 16.0, 64.0][i % 4];
        let (left, ones) = ((0..n).map(rows).collect::<Vec<f64>>(), vec![1.0; n]);
        let inverse: Vec<f64> = left.iter().map(|row| row.recip()).collect();
        let of_rows = times(&crate::Host, &a, &left, &ones).unwrap();
        let general = MultigridOptions::default().boxes(false).real_eigenvalues(false);
        let make = |a: &Csr<f64>| Multigrid::new(&crate::Host, a, &general).map(Some);
        let of_r: Vec<f64> = r.iter().zip(&inverse).map(|(r, inverse)| r * inverse).collect();
        let m =
            Multigrid::in_units_of(&crate::Host, &of_rows, (inverse.clone(), false), make).unwrap().unwrap();
        assert_eq!(applied(&m, &r), applied(&make(&a).unwrap().unwrap(), &of_r));
        let m = Multigrid::in_units_of(&crate::Host, &a, (left, false), make).unwrap().unwrap();
        assert!(m.units.is_none());
    }

    #[test]
    fn where_a_diagonal_entry_is_missing_nothing_is_scaled() {
        let entries = [(0, 0, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 1, 3.0), (1, 2, 1.0), (2, 1, 1.0)];
        assert!(near_constants(&crate::Host, &of(&entries, 3), 1).unwrap().is_none());
        assert!(near_constants(&crate::Host, &of(&entries, 3), 3).unwrap().is_none());
        let whole = [&entries[..], &[(2, 2, 1.0)]].concat();
        assert!(near_constants(&crate::Host, &of(&whole, 3), 3).unwrap().is_some());
    }

    #[test]
    fn sums_of_rows_tell_which_matrices_are_in_other_units() {
        let a = generate::poisson3d(12, 12, 12).unwrap();
        let sums = |a: &Csr<f64>| relative_sums(&crate::Host, a).unwrap();
        let mut random = crate::random::Random::new(3);
        let units: Vec<f64> = (0..a.rows()).map(|_| 10.0_f64.powf(random.between(-2.0, 2.0))).collect();
        let scaled = times(&crate::Host, &a, &units, &units).unwrap();
        assert!(sums(&a) < 0.11 && sums(&scaled) > 0.5, "{} {}", sums(&a), sums(&scaled));
        assert_eq!(scaled.get(0, 1).unwrap(), a.get(0, 1).unwrap() * (units[0] * units[1]));
    }
}
