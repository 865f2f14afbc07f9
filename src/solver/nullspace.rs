//! A known null space: given by the caller, or constants. Constants are found by row sums of zero, as in a graph's
//! Laplacian or a pure Neumann problem.
//!
//! The null space of a Hermitian matrix is orthogonal to its range. Removing the part of b in the null space therefore
//! leaves the part in the range. A least-squares solution of A x = b solves the remaining system, and removing the null
//! space from x gives the shortest solution.

use super::SolverBackend;
use super::builder::{Builder, NullSpaceWish};
use super::names::Method;
use super::report::Decision;
use crate::backend::Host;
use crate::direct::{NULL_UNITS, Singularity, null_ratio, residual};
use crate::error::{Error, Result};
use crate::graph::{Adjacency, connected_components_on};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::report::count;
use crate::scalar::{Real, Scalar};
use num_complex::Complex;
use num_traits::Float;
use std::any::Any;

/// With more components than this, the basis is stored as component labels, not as vectors.
const AS_VECTORS: usize = 8;

/// The largest ||A v|| / (||A|| ||v||) of a given null vector, as from files with twelve digits.
const NULL: f64 = 1e-10;

/// Row sums below this, relative to the magnitudes of the row, suggest that constants were meant to be a null space.
const NEARLY_ZERO: f64 = 1e-11;
const NEARLY: &str = "rows add up to nearly zero, but not to zero: solved as the regular matrix that it is; if constants \
                      are a null space of your model, say --null-space constants";

/// An orthonormal basis.
enum Basis<T: Scalar, B: SolverBackend> {
    Vectors(Vec<B::Vec<T>>),
    /// Constants on components: the component of each unknown, and the size of each.
    Components(Vec<u32>, Vec<usize>),
}

/// The null space of a matrix, in the order of the caller's unknowns.
pub(super) struct NullSpace<T: Scalar, B: SolverBackend> {
    basis: Basis<T, B>,
    /// The largest row sum, relative to its magnitudes, in units of rounding; none if the caller stated the null space.
    ratio: Option<f64>,
    /// Workspace for one scalar.
    scalar: B::Vec<T>,
    /// True if A is Hermitian: then b has no part in the null space if A x = b has a solution.
    pub(super) hermitian: bool,
}

/// A null space, with workspaces for a right-hand side and a solution.
pub(super) struct Beside<T: Scalar, B: SolverBackend> {
    pub(super) space: NullSpace<T, B>,
    pub(super) b: B::Vec<T>,
    pub(super) x: B::Vec<T>,
}

/// A null space if there is one, and the decision about it.
pub(super) struct FoundNull<T: Scalar, B: SolverBackend> {
    pub(super) space: Option<NullSpace<T, B>>,
    pub(super) decision: Option<Decision>,
}

impl<T: Scalar, B: SolverBackend> NullSpace<T, B> {
    /// Returns the null space that the caller stated, or that was found.
    ///
    /// # Errors
    /// If a vector has the wrong length or is not in the null space, if memory runs out, or if the device fails.
    pub(super) fn of(
        backend: &B,
        a: &Csr<T, B>,
        wishes: &Builder,
        hermitian: bool,
    ) -> Result<FoundNull<T, B>> {
        let wish = &wishes.null_space;
        let mut ratio = None;
        let (basis, chosen, why) = match wish {
            NullSpaceWish::Auto => {
                // A named method solves the system as it is given.
                if !hermitian || wishes.method != Method::Auto {
                    return Ok(FoundNull { space: None, decision: None });
                }
                let near = ratio_of_constants(backend, a)?;
                if near > NULL_UNITS {
                    let unit = <T::Real as Float>::epsilon().to_f64();
                    let seems = || Decision::new("null space", "none", NEARLY);
                    return Ok(FoundNull { space: None, decision: (near * unit <= NEARLY_ZERO).then(seems) });
                }
                ratio = Some(near);
                let (basis, components) = constants(backend, a)?;
                (basis, told(components), "all rows add up to zero")
            }
            NullSpaceWish::Constants => {
                let (basis, components) = constants(backend, a)?;
                (basis, told(components), "as given")
            }
            NullSpaceWish::Vectors(vectors) => {
                let basis = orthonormal(backend, a.columns(), vectors)?;
                let chosen = format!("of {} dimensions", basis.len());
                (Basis::Vectors(basis), chosen, "as given")
            }
        };
        let made = Self { basis, ratio, scalar: backend.zeros(1)?, hermitian };
        if made.is_given() {
            made.check(backend, a, matches!(wish, NullSpaceWish::Constants))?;
        }
        let decision = Some(Decision::new("null space", chosen, why));
        Ok(FoundNull { space: Some(made), decision })
    }

    /// Returns whether the caller has stated it.
    pub(super) fn is_given(&self) -> bool {
        self.ratio.is_none()
    }

    /// Returns whether the null space that was found holds for new values too.
    pub(super) fn holds(&self, backend: &B, a: &Csr<T, B>) -> Result<bool> {
        Ok(ratio_of_constants(backend, a)? <= NULL_UNITS)
    }

    /// The proof that A is singular, if it was found and not stated.
    pub(super) fn singularity(&self) -> Option<Singularity> {
        self.ratio.map(|ratio| Singularity::NullVector { ratio })
    }

    /// Refuses vectors that A does not map to zero.
    fn check(&self, backend: &B, a: &Csr<T, B>, constants: bool) -> Result<()> {
        let (size, mut product) = (norm(backend, a.parts().values)?, backend.zeros(a.rows())?);
        let mut refuse = |v: &B::Slice<T>, which: String| {
            a.apply(backend, v, &mut product)?;
            let (left, length) = (norm(backend, &product)?, norm(backend, v)?);
            let unit = <T::Real as Float>::epsilon().to_f64();
            if left <= NULL.max(8.0 * unit) * size * length {
                return Ok(());
            }
            Err(Error::InvalidArgument(format!(
                "{which} not in the null space of A: ||A v|| is {:.1e} ||A|| ||v||, rounding alone makes it {unit:.0e}",
                left / (size * length)
            )))
        };
        match &self.basis {
            Basis::Vectors(vectors) => vectors.iter().enumerate().try_for_each(|(k, v)| {
                refuse(v, if constants { "constants are".into() } else { format!("vector {} is", k + 1) })
            }),
            Basis::Components(labels, _) => {
                // One vector with a different constant on each component tests all components.
                let v = labels.iter().map(|&label| T::from_f64(1.0 + f64::from(label % 17)));
                let v = backend.upload(v.collect::<Vec<_>>())?;
                refuse(&v, "constants on the components of its graph are".into())
            }
        }
    }

    /// Removes the part of a vector that is in the null space, and returns the norm of that part.
    pub(super) fn remove(&mut self, backend: &B, x: &mut B::Slice<T>) -> Result<f64> {
        match &self.basis {
            Basis::Vectors(vectors) => {
                let mut square = 0.0;
                for v in vectors {
                    backend.dot(v, x, &mut self.scalar)?;
                    let part = backend.value(&self.scalar)?;
                    backend.axpby(-part, v, T::one(), x)?;
                    square += part.abs().to_f64().powi(2);
                }
                Ok(square.sqrt())
            }
            Basis::Components(labels, sizes) => {
                let mut here = backend.download(x)?;
                let mut means = vec![T::default(); sizes.len()];
                here.iter().zip(labels).for_each(|(&x, &label)| means[label as usize] += x);
                let mut square = 0.0;
                for (mean, &size) in means.iter_mut().zip(sizes) {
                    *mean *= T::from_f64(1.0 / size as f64);
                    square += mean.abs().to_f64().powi(2) * size as f64;
                }
                here.iter_mut().zip(labels).for_each(|(x, &label)| *x -= means[label as usize]);
                backend.write(&here, x)?;
                Ok(square.sqrt())
            }
        }
    }
}

/// How nearly A maps constants to zero: the largest |sum of row i| / (sum of magnitudes of row i), in units of
/// rounding. On a device a norm of the sums first shows whether the rows need to be examined one by one.
fn ratio_of_constants<T: Scalar, B: SolverBackend>(backend: &B, a: &Csr<T, B>) -> Result<f64> {
    if a.nonzeros() == 0 {
        return Ok(f64::INFINITY);
    }
    let any: &dyn Any = a;
    if let Some(a) = any.downcast_ref::<Csr<T, Host>>() {
        return Ok(ratio_on_host(a));
    }
    let (n, unit) = (a.rows(), <T::Real as Float>::epsilon().to_f64());
    let (mut ones, mut sums, zeros) = (backend.buffer(n)?, backend.buffer(n)?, backend.zeros(n)?);
    backend.fill(T::one(), &mut ones)?;
    backend.csr_residual(a.parts(), T::one(), &zeros, &ones, &mut sums)?;
    let (left, size) = (norm(backend, &sums)?, norm(backend, a.parts().values)?);
    if left == 0.0 {
        return Ok(0.0);
    }
    // If all row sums are at most NEARLY_ZERO, the norm of the sums is at most this, whatever the lengths of rows.
    if left > (NEARLY_ZERO + NULL_UNITS * unit) * size * (a.nonzeros() as f64).sqrt() {
        return Ok(f64::INFINITY);
    }
    Ok(ratio_on_host(&a.to_host(backend)?))
}

/// [`ratio_of_constants`] on the host; for most matrices the first row decides.
fn ratio_on_host<T: Scalar>(a: &Csr<T>) -> f64 {
    let unit = <T::Real as Float>::epsilon().to_f64();
    let is_far = |row: usize| {
        let (mut sum, mut magnitudes) = (T::default(), 0.0);
        for &value in a.row(row).1 {
            sum += value;
            magnitudes += value.abs().to_f64();
        }
        let rounding = (a.row(row).1.len() as f64 + NULL_UNITS) * unit;
        sum.abs().to_f64() > (NEARLY_ZERO + rounding) * magnitudes
    };
    if (0..a.rows()).any(is_far) {
        return f64::INFINITY;
    }
    null_ratio(a, &vec![T::one(); a.columns()])
}

/// Returns the proof that a square A is singular if the residual r = b - A x is a left null vector: r is not zero, but
/// every component of A^H r is, up to rounding. A least-squares solution has such a residual if the system is
/// inconsistent.
pub(super) fn proof_by_residual<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    (b, x): (&B::Slice<T>, &B::Slice<T>),
) -> Result<Option<Singularity>> {
    let a = a.to_host(backend)?;
    let (b, x) = (backend.download(b)?, backend.download(x)?);
    let mut r = vec![T::default(); a.rows()];
    residual(&a, &b, &x, None, &mut r);
    // A^H r is the conjugate of A^T conj(r).
    r.iter_mut().for_each(|r| *r = r.conj());
    let ratio = null_ratio(&a.transpose(&Host)?, &r);
    Ok((ratio <= NULL_UNITS).then_some(Singularity::NullVector { ratio }))
}

/// Describes a null space of constants, for the report.
fn told(components: usize) -> String {
    match components {
        1 => "constants".into(),
        many => format!("constants on each of {} components", count(many as u64)),
    }
}

/// Constants on each component.
fn constants<T: Scalar, B: SolverBackend>(backend: &B, a: &Csr<T, B>) -> Result<(Basis<T, B>, usize)> {
    Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
    let components = connected_components_on(backend, &Adjacency::on(backend, a)?)?;
    let (labels, sizes) = (backend.download(components.labels())?, components.sizes().to_vec());
    if sizes.len() > AS_VECTORS {
        let many = sizes.len();
        return Ok((Basis::Components(labels, sizes), many));
    }
    let vector = |(component, &size): (usize, &usize)| {
        let value = T::from_f64(1.0 / (size as f64).sqrt());
        let on = |&label: &u32| if label as usize == component { value } else { T::default() };
        backend.upload(labels.iter().map(on).collect::<Vec<_>>())
    };
    let vectors = sizes.iter().enumerate().map(vector).collect::<Result<Vec<_>>>()?;
    Ok((Basis::Vectors(vectors), sizes.len()))
}

/// An orthonormal basis of the span of some vectors; dependent ones are left out.
fn orthonormal<T: Scalar, B: SolverBackend>(
    backend: &B,
    n: usize,
    vectors: &[Vec<Complex<f64>>],
) -> Result<Vec<B::Vec<T>>> {
    let mut basis: Vec<Vec<T>> = Vec::new();
    for (k, vector) in vectors.iter().enumerate() {
        Error::check_dimension("length of a null vector", n, vector.len())?;
        let mut v = Vec::with_capacity(n);
        for value in vector {
            match T::from_parts(value.re, value.im) {
                Some(value) if value.is_finite() => v.push(value),
                _ => {
                    return Err(Error::InvalidArgument(format!(
                        "null space: vector {} has the entry {value}, but must be finite, and real if A is",
                        k + 1
                    )));
                }
            }
        }
        let length = |v: &[T]| v.iter().map(|v| v.abs().to_f64().powi(2)).sum::<f64>().sqrt();
        let before = length(&v);
        for _ in 0..2 {
            for u in &basis {
                let part = u.iter().zip(&v).fold(T::default(), |sum, (u, &v)| sum + u.conj() * v);
                v.iter_mut().zip(u).for_each(|(v, &u)| *v -= part * u);
            }
        }
        let left = length(&v);
        if left > 1e-6 * before {
            v.iter_mut().for_each(|v| *v *= T::from_f64(1.0 / left));
            basis.push(v);
        }
    }
    basis.into_iter().map(|v| backend.upload(v)).collect()
}

/// The 2-norm.
pub(super) fn norm<T: Scalar, B: SolverBackend>(backend: &B, x: &B::Slice<T>) -> Result<f64> {
    let mut square = backend.zeros::<T::Real>(1)?;
    backend.norm2_squared(x, &mut square)?;
    Ok(backend.value(&square)?.to_f64().sqrt())
}
