//! Diagonal scaling that brings constants back near to the null space, and symmetry back.
//!
//! ```text
//! S           the matrix of a mesh: symmetric, and S 1 is small beside S
//! A = D S E   equations divided by volumes or time steps (D), unknowns in other units (E)
//! L A R       with diagonal L and R found from A alone, such that it is Hermitian and L A R 1 is small again
//! ```
//!
//! Interpolation of constants, and thresholds for couplings, suit S and not A. So the hierarchy is that of L A R, and
//! the preconditioner is R M L with its cycle M.
//!
//! **L** is there for a matrix that is not Hermitian: where it is D S, the ratio a_ij / a_ji of every coupling is
//! d_i / d_j, so that L = 1 / D follows from a walk through the graph, and the couplings that close circles tell
//! whether it is so. **R** is what is left of 1 / sqrt(a_ii) after some steps of smoothing for A x = 0, which is how
//! adaptive smoothed aggregation finds near-null vectors (Brezina, Falgout, MacLachlan, Manteuffel, McCormick and Ruge,
//! Adaptive smoothed aggregation, SIAM Review 47, 2005). If E is constant, R stays 1.

use super::MultigridBackend;
use super::blocks::Scales;
use super::sample::relative_sums;
use super::smoother::{Scaling, Smoother};
use super::strength::packed;
use super::tentative::{NearNull, Vectors};
use crate::backend::{Backend, Host, copied};
use crate::error::Result;
use crate::look::has_positive_diagonal;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::scalar::Scalar;
use num_traits::{Float, One, Zero};

/// Where half of the sums of rows are this part of the sums of their magnitudes or less, constants are near the null
/// space. Meshes and networks have zero, unknowns in units that vary at random by 0.8 to 1.25 have 0.05, with which a
/// Delaunay mesh takes 42 iterations instead of 13, and those in units over decades 0.5 to 0.9.
const SMALL: f64 = 0.03;

/// Scaling is taken where it divides that median by this at least. A mass matrix has large sums however it is scaled.
const GAIN: f64 = 2.0;

/// Steps of smoothing for R. Six to twelve gave meshes and lognormal coefficients about the iterations that they have
/// without scaling; with more, x comes to be small beside boundary conditions, and grids take a third more iterations.
const STEPS: usize = 10;

/// Factors of rows may span so many orders of magnitude. Constant convection is symmetric up to factors that grow
/// exponentially along it: where they are larger, symmetry is of no use.
const SPAN: f64 = 1e10;

/// Rows that are looked at for L before all are.
const FIRST_ROWS: usize = 1000;

/// How far from each other both ways round a circle of couplings may be, relative to the coupling: rounding errors of
/// thousands of divisions.
const ROUNDING: f64 = 1e-9;

/// L and R, of diagonal matrices; none where it is the identity.
#[derive(Debug)]
pub(super) struct Scaled<T: Scalar, B: Backend> {
    left: Option<B::Vec<T>>,
    pub(super) right: Option<B::Vec<T>>,
}

/// R, R^H A R, and vectors that it takes near to zero where these are not constants.
pub(super) type NearConstants<T, B> = (<B as Backend>::Vec<T>, Csr<T, B>, Option<NearNull<T, B>>);

impl<T: Scalar, B: MultigridBackend> Scaled<T, B> {
    /// Of factors that make rows Hermitian, and of R for what comes of that.
    pub(super) fn new(backend: &B, factors: Option<B::Vec<T>>, right: Option<B::Vec<T>>) -> Result<Self> {
        let left = match (factors, &right) {
            (factors, None) => factors,
            (None, Some(right)) => Some(conjugate(backend, right)?),
            (Some(factors), Some(right)) => {
                let mut both = backend.buffer(B::len(&factors))?;
                backend.multiply(&factors, &*conjugate(backend, right)?, &mut both)?;
                Some(both)
            }
        };
        Ok(Self { left, right })
    }

    /// z = R M L r, where `cycle` applies M; `between` is as long as these.
    pub(super) fn around(
        &self,
        backend: &B,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
        between: &mut B::Slice<T>,
        cycle: impl FnOnce(&B::Slice<T>, &mut B::Slice<T>) -> Result<()>,
    ) -> Result<()> {
        let Some(left) = &self.left else { return cycle(r, z) };
        let Some(right) = &self.right else {
            backend.multiply(left, r, between)?;
            return cycle(between, z);
        };
        backend.multiply(left, r, z)?;
        cycle(z, between)?;
        backend.multiply(right, between, z)
    }

    /// Bytes of both.
    pub(super) fn storage_bytes(&self) -> usize {
        self.left.iter().chain(&self.right).map(|factors| B::len(factors) * size_of::<T>()).sum()
    }
}

/// Factors of rows, and A times these.
pub(super) type Symmetrized<T, B> = (<B as Backend>::Vec<T>, Csr<T, B>);

/// Positive factors of rows that make A Hermitian, where it is not, and what it becomes.
pub(super) fn symmetrized<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<Option<Symmetrized<T, B>>> {
    let factors = factors_of_rows(backend, a)?;
    let Some(factors) = factors.filter(|factors| factors.iter().any(|&factor| factor != T::Real::one()))
    else {
        return Ok(None);
    };
    let factors = backend.upload(factors.into_iter().map(T::from_real).collect())?;
    let s = times(backend, a, &factors, &*ones(backend, a.rows())?)?;
    Ok(Some((factors, s)))
}

/// R for a Hermitian matrix that does not take constants near to zero, where R^H A R does. With nodes of several
/// `unknowns` R is 1 / sqrt(a_ii), and each of these has a vector of its own: one that is made from them all would mix
/// them.
pub(super) fn near_constants<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    unknowns: usize,
) -> Result<Option<NearConstants<T, B>>> {
    let sums = relative_sums(backend, a)?;
    // R is to be regular.
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

fn ones<T: Scalar, B: MultigridBackend>(backend: &B, n: usize) -> Result<B::Vec<T>> {
    let mut ones = backend.buffer(n)?;
    backend.fill(T::one(), &mut ones)?;
    Ok(ones)
}

/// L A R.
fn times<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    left: &B::Slice<T>,
    right: &B::Slice<T>,
) -> Result<Csr<T, B>> {
    let mut values = backend.buffer(a.nonzeros())?;
    backend.scaled_values(a.parts(), left, right, &mut values)?;
    Ok(a.with_values(values))
}

/// 1 / sqrt(a_ii).
fn inverse_roots<T: Scalar, B: MultigridBackend>(backend: &B, a: &Csr<T, B>) -> Result<B::Vec<T>> {
    let mut roots = backend.buffer(a.rows())?;
    backend.inverse_roots(a.parts(), &mut roots)?;
    Ok(roots)
}

/// What smoothing for A x = 0 leaves of x.
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

/// The same of constants of each of the unknowns that nodes have.
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
    Ok(NearNull::Several(Vectors { count: unknowns, rows }))
}

/// Positive factors of rows with which A becomes Hermitian, where there are such. Of a matrix that has none, the first
/// rows tell that nearly always.
fn factors_of_rows<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
) -> Result<Option<Vec<T::Real>>> {
    let first = leading(&a.window(backend, 0..a.rows().min(FIRST_ROWS))?);
    if symmetrizing(&first)?.is_none() {
        return Ok(None);
    }
    symmetrizing(&a.to_host(backend)?)
}

/// As many columns as rows.
fn leading<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let n = a.rows();
    let (mut offsets, mut indices, mut values) = (vec![0_u64], Vec::new(), Vec::new());
    for i in 0..n {
        let (columns, entries) = a.row(i);
        let within = columns.partition_point(|&j| (j as usize) < n);
        indices.extend_from_slice(&columns[..within]);
        values.extend_from_slice(&entries[..within]);
        offsets.push(indices.len() as u64);
    }
    Csr::from_parts_unchecked(n, n, packed(offsets), indices, values)
}

/// These factors of a square matrix, by a walk through each component of its graph.
fn symmetrizing<T: Scalar>(a: &Csr<T>) -> Result<Option<Vec<T::Real>>> {
    let n = a.rows();
    // Where the pattern is symmetric, entries of A^T stand where those of A do.
    let mirrored = a.transpose(&Host)?;
    if mirrored.parts().indices != a.parts().indices {
        return Ok(None);
    }
    let rounding = T::Real::from_f64(ROUNDING).max(T::Real::epsilon() * T::Real::from_f64(1e3));
    let mut factors = vec![T::Real::zero(); n];
    let mut queue = Vec::new();
    for first in 0..n {
        if factors[first] > T::Real::zero() {
            continue;
        }
        factors[first] = T::Real::one();
        queue.push(first as u32);
        let (mut smallest, mut largest) = (T::Real::one(), T::Real::one());
        let mut next = 0;
        while next < queue.len() {
            let i = queue[next] as usize;
            next += 1;
            let ((columns, values), (others, mirrored)) = (a.row(i), mirrored.row(i));
            if columns != others {
                return Ok(None);
            }
            for ((&j, &there), &back) in both(columns, values).zip(mirrored) {
                // l_i a_ij = conj(l_j a_ji); of the diagonal, that it is real.
                let (wanted, back) = (T::from_real(factors[i]) * there, back.conj());
                if there == T::zero() && back == T::zero() {
                    continue;
                }
                let factor = &mut factors[j as usize];
                if *factor == T::Real::zero() {
                    *factor = (wanted / back).re();
                    if !Float::is_finite(*factor) || *factor <= T::Real::zero() {
                        return Ok(None);
                    }
                    (smallest, largest) = (smallest.min(*factor), largest.max(*factor));
                    if largest > smallest * T::Real::from_f64(SPAN) {
                        return Ok(None);
                    }
                    queue.push(j);
                }
                let difference = (wanted - T::from_real(*factor) * back).abs();
                if difference.is_nan() || difference > rounding * wanted.abs() {
                    return Ok(None);
                }
            }
        }
        queue.clear();
    }
    Ok(Some(factors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::matrix::Triplets;
    use num_complex::Complex;

    fn of(entries: &[(usize, usize, f64)], n: usize) -> Csr<f64> {
        let mut triplets = Triplets::new(n, n).unwrap();
        entries.iter().for_each(|&(i, j, value)| triplets.push(i, j, value).unwrap());
        crate::assemble::to_csr(&crate::Host, triplets).unwrap()
    }

    #[test]
    fn factors_of_rows_are_found_on_every_component() {
        // Two components, the rows of the first scaled by 1, 4 and 2, those of the second by 1 and 3.
        let entries =
            [(0, 0, 2.0), (0, 2, -1.0), (2, 0, -2.0), (2, 2, 6.0), (2, 1, -2.0), (1, 2, -4.0), (1, 1, 8.0)];
        let others = [(3, 3, 1.0), (3, 4, 0.5), (4, 3, 1.5), (4, 4, 3.0)];
        let a = of(&[&entries[..], &others[..]].concat(), 5);
        assert_eq!(symmetrizing(&a).unwrap().unwrap(), [1.0, 0.25, 0.5, 1.0, 1.0 / 3.0]);
        assert!(symmetrized(&crate::Host, &a).unwrap().is_some());
        // Of a matrix that is symmetric as it is, there is nothing to find.
        let plain = generate::poisson2d(40, 40).unwrap();
        assert!(symmetrized(&crate::Host, &plain).unwrap().is_none());
    }

    #[test]
    fn what_no_factors_make_symmetric_is_told() {
        let chain = |back: f64| vec![(0, 0, 1.0), (1, 1, 1.0), (0, 1, -1.0), (1, 0, back)];
        assert!(symmetrizing(&of(&chain(-0.5), 2)).unwrap().is_some());
        assert!(symmetrizing(&of(&chain(0.5), 2)).unwrap().is_none(), "another sign");
        assert!(symmetrizing(&of(&chain(0.0), 2)).unwrap().is_none(), "a coupling one way");
        assert!(symmetrizing(&of(&chain(-1e-20), 2)).unwrap().is_none(), "factors beyond use");
        // Around a circle the factors have to come back to where they began.
        let circle = |last: f64| {
            let pairs = [(0, 1, 2.0), (1, 2, 3.0), (2, 0, last)];
            let both = pairs.into_iter().flat_map(|(i, j, ratio)| [(i, j, -ratio), (j, i, -1.0)]);
            of(&both.collect::<Vec<_>>(), 3)
        };
        assert!(
            symmetrizing(&circle(1.0 / 6.0)).unwrap().is_some()
                && symmetrizing(&circle(0.2)).unwrap().is_none()
        );
        // A diagonal that is not real is not that of a Hermitian matrix, whatever the factor.
        let complex = of(&chain(-0.5), 2).map(|value| Complex::new(value, 0.0));
        assert!(symmetrizing(&complex).unwrap().is_some());
        assert!(symmetrizing(&complex.map(|value| value * Complex::new(0.0, 1.0))).unwrap().is_none());
        let wind = generate::convection_diffusion([12, 12, 12], 1e-2).unwrap();
        assert!(symmetrized(&crate::Host, &wind).unwrap().is_none());
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
