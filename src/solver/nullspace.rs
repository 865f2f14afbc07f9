//! A null space that is known: given by the caller, or constants, which the rows of a graph's Laplacian or of a pure
//! Neumann problem show by adding up to zero.
//!
//! Of a Hermitian matrix the null space is what its range is orthogonal to. So b without its part there is what A x can
//! come to, a least-squares solution of A x = b is a solution of that, and x without its part there is the shortest.

use super::SolverBackend;
use super::builder::Builder;
use super::names::Method;
use super::report::Decision;
use crate::backend::Host;
use crate::error::{Error, Result};
use crate::graph::{Adjacency, connected_components_on};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::report::{Facts, count};
use crate::scalar::{Real, Scalar};
use num_complex::Complex;
use num_traits::Float;
use std::any::Any;
use std::sync::Arc;

/// What a caller says of the null space of its matrix.
#[derive(Debug, Clone, Default)]
pub(super) enum NullSpaceWish {
    /// Nothing: constants are found where a Hermitian matrix has them.
    #[default]
    Auto,
    /// Constants on each component of the matrix's graph.
    Constants,
    /// Vectors that span it.
    Vectors(Arc<Vec<Vec<Complex<f64>>>>),
}

impl NullSpaceWish {
    pub(super) fn is_auto(&self) -> bool {
        matches!(self, Self::Auto)
    }
}

/// More components than this are kept as numbers of components, not as vectors.
const AS_VECTORS: usize = 8;

/// ||A v|| beside ||A|| ||v|| that a null vector may leave: what files with twelve digits do.
const NULL: f64 = 1e-10;

/// An orthonormal basis.
enum Basis<T: Scalar, B: SolverBackend> {
    Vectors(Vec<B::Vec<T>>),
    /// Constants on components: the component of each unknown, and how large it is.
    Components(Vec<u32>, Vec<usize>),
}

/// The null space of a matrix, in the order of the caller's unknowns.
pub(super) struct NullSpace<T: Scalar, B: SolverBackend> {
    basis: Basis<T, B>,
    /// Room for one scalar.
    scalar: B::Vec<T>,
    /// Whether b has no part in it where A x = b has a solution.
    pub(super) hermitian: bool,
}

/// A null space, with room for a right-hand side and a solution.
pub(super) struct Beside<T: Scalar, B: SolverBackend> {
    pub(super) space: NullSpace<T, B>,
    pub(super) b: B::Vec<T>,
    pub(super) x: B::Vec<T>,
}

impl<T: Scalar, B: SolverBackend> NullSpace<T, B> {
    /// As it is wished for, or found; and what is told of it.
    ///
    /// # Errors
    /// On vectors of another length or that are none of the null space, on too little memory, or when the device fails.
    pub(super) fn of(
        backend: &B,
        a: &Csr<T, B>,
        wishes: &Builder,
        hermitian: bool,
    ) -> Result<Option<(Self, Decision)>> {
        let wish = &wishes.null_space;
        let (basis, chosen, why) = match wish {
            NullSpaceWish::Auto => {
                // A method that was named is given what it was named for.
                if !hermitian || wishes.method != Method::Auto || !rows_add_up_to_zero(a) {
                    return Ok(None);
                }
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
        let made = Self { basis, scalar: backend.zeros(1)?, hermitian };
        if !matches!(wish, NullSpaceWish::Auto) {
            made.check(backend, a)?;
        }
        Ok(Some((made, Decision::new("null space", chosen, why))))
    }

    /// Refuses what A does not map to zero.
    fn check(&self, backend: &B, a: &Csr<T, B>) -> Result<()> {
        let (size, mut product) = (norm(backend, a.parts().values)?, backend.zeros(a.rows())?);
        let mut refuse = |v: &B::Slice<T>, which: String| {
            a.apply(backend, v, &mut product)?;
            let (left, length) = (norm(backend, &product)?, norm(backend, v)?);
            let unit = <T::Real as Float>::epsilon().to_f64();
            if left <= NULL.max(8.0 * unit) * size * length {
                return Ok(());
            }
            Err(Error::InvalidArgument(format!(
                "null space: {which} is no null vector, ||A v|| is {:.1e} ||A|| ||v||",
                left / (size * length)
            )))
        };
        match &self.basis {
            Basis::Vectors(vectors) => {
                vectors.iter().enumerate().try_for_each(|(k, v)| refuse(v, format!("vector {}", k + 1)))
            }
            Basis::Components(labels, _) => {
                // One vector with another constant on each component tells of all.
                let constants = labels.iter().map(|&label| T::from_f64(1.0 + f64::from(label % 17)));
                let constants = backend.upload(constants.collect::<Vec<_>>())?;
                refuse(&constants, "a constant on components".into())
            }
        }
    }

    /// Takes the part of a vector that lies in it away, and returns its length.
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

/// Whether all rows add up to zero, up to rounding. Asked on the host alone: a device has no pass that tells, and there
/// a caller says so.
pub(super) fn rows_add_up_to_zero<T: Scalar, B: SolverBackend>(a: &Csr<T, B>) -> bool {
    let any: &dyn Any = a;
    let Some(a) = any.downcast_ref::<Csr<T, Host>>() else { return false };
    a.nonzeros() > 0 && (0..a.rows()).all(|row| Facts::adds_up_to_zero(a.row(row).1))
}

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

/// An orthonormal basis of what some vectors span, those left out that the others span already.
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
                        "null space: vector {} holds {value}, which a real and finite number cannot be",
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
