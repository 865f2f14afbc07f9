//! Smoothing of prolongations whose nodes have several unknowns: the displacements of a point, and on coarser levels
//! the rigid body modes of an aggregate.
//!
//! ```text
//! P = (I - omega D^-1 F) Q + C
//! ```
//!
//! Q is the tentative prolongation, Q R = B for the near-null vectors B of this level and R of the next. F is A without
//! weak couplings, which would fill the next level, and D its diagonal. omega is 4/3 divided by an estimate of the
//! largest eigenvalue of D^-1 F. With row sums of magnitudes, which bound it, tetrahedra took 36 iterations instead of
//! 31.
//!
//! F B is not nearly zero as A B is, so P R would be far from B next to weak couplings, and most of all at unknowns of
//! flat elements. C R = omega D^-1 (F - A) B adds what is missing, in the columns of each unknown's own aggregate
//! (Olson, Schroder and Tuminaro, A general interpolation strategy for algebraic multigrid using energy minimization,
//! SIAM Journal on Scientific Computing 33, 2011, enforce such constraints). Then P R = B - omega D^-1 A B.

use super::MultigridBackend;
use super::blocks::start_vector;
use super::diagonal::{inverse_roots, ones, times};
use super::setup::OMEGA;
use super::strength::{NodeList, Nodes, damping};
use super::tentative::{Bases, Vectors};
use crate::backend::{CsrPattern, Gemv, Op, offsets_of};
use crate::error::Result;
use crate::matrix::{Csr, add, multiply};
use crate::scalar::{Real, Scalar};
use num_traits::Float;

/// Steps of the power method for the largest eigenvalue of D^-1 F, and the factor for its result, which is a lower
/// bound.
const STEPS: usize = 10;
const ABOVE: f64 = 1.1;

/// A tentative prolongation, its bases, and the near-null vectors that it represents.
pub(super) type OfVectors<'a, T, B> = (&'a Csr<T, B>, &'a Bases<T, B>, &'a Vectors<T, B>);

/// The smoothed prolongation for several near-null vectors: `q` is the tentative one, with `bases`.
pub(super) fn smoothed<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    nodes: &Nodes<B>,
    strong: CsrPattern<'_, B>,
    (q, bases, vectors): OfVectors<'_, T, B>,
) -> Result<Csr<T, B>> {
    let Some(nodes) = &nodes.0 else {
        return multiply(backend, &damping(backend, a, strong, OMEGA)?, q);
    };
    let filtered = without_weak(backend, a, nodes, strong)?;
    let mut scale = backend.buffer::<T>(a.rows())?;
    {
        let roots = inverse_roots(backend, a)?;
        backend.multiply(&roots, &roots, &mut scale)?;
    }
    let omega = T::from_f64(OMEGA / (ABOVE * largest_eigenvalue(backend, &filtered, &scale)?));
    backend.scale_in_place(omega, &mut scale)?;
    let mut missing = backend.buffer::<T>(a.rows() * vectors.count)?;
    products(backend, a, vectors, -T::one(), T::zero(), &mut missing)?;
    products(backend, &filtered, vectors, T::one(), T::one(), &mut missing)?;
    let mut p = q.copied(backend)?;
    {
        let Bases { of, first, r } = bases;
        let (pattern, values) = p.pattern_and_values();
        backend.basis_corrections(
            vectors.count,
            of,
            first,
            r,
            &scale,
            &mut missing,
            pattern.offsets,
            values,
        )?;
    }
    let scaled = times(backend, &filtered, &scale, &*ones(backend, a.rows())?)?;
    let change = multiply(backend, &scaled, q)?;
    add(backend, T::one(), &p, -T::one(), &change)
}

/// Y = alpha A B + beta Y.
fn products<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    vectors: &Vectors<T, B>,
    alpha: T,
    beta: T,
    y: &mut B::Slice<T>,
) -> Result<()> {
    let gemv = Gemv { op: Op::None, alpha, x: &*vectors.rows, beta, y };
    match vectors.count {
        1 => backend.csr(a.parts(), gemv),
        count => backend.csr_block(a.parts(), count, gemv),
    }
}

/// A without the blocks between nodes that are not strongly coupled.
fn without_weak<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    nodes: &NodeList<B>,
    strong: CsrPattern<'_, B>,
) -> Result<Csr<T, B>> {
    let (n, all) = (a.rows(), a.parts());
    let (mut kept, mut lengths) = (backend.buffer::<u8>(a.nonzeros())?, backend.buffer(n + 1)?);
    backend.strong_blocks(all.pattern(), &nodes.of, strong, &mut kept, &mut lengths)?;
    let (offsets, entries) = offsets_of(backend, &lengths)?;
    let (mut indices, mut values) = (backend.buffer(entries)?, backend.buffer(entries)?);
    {
        let mut front = backend.buffer::<u32>(a.nonzeros())?;
        backend.compact(all.indices, &kept, &mut front)?;
        backend.copy(B::part(&front, 0..entries), &mut indices)?;
    }
    let mut front = backend.buffer::<T>(a.nonzeros())?;
    backend.compact(all.values, &kept, &mut front)?;
    backend.copy(B::part(&front, 0..entries), &mut values)?;
    Ok(Csr::from_parts_unchecked(n, n, offsets, indices, values))
}

/// An estimate of the largest eigenvalue of D^-1 F by the power method; `inverse` is the diagonal of D^-1. The host
/// waits for the backend.
fn largest_eigenvalue<T: Scalar, B: MultigridBackend>(
    backend: &B,
    f: &Csr<T, B>,
    inverse: &B::Slice<T>,
) -> Result<f64> {
    let n = f.rows();
    let (mut x, mut y) = (start_vector::<T, B>(backend, n)?, backend.buffer::<T>(n)?);
    let mut norms = backend.zeros::<T::Real>(2)?;
    // An eigenvalue of a few units makes x longer by less than a decade a step, so nothing needs scaling between them.
    for step in 1..=STEPS {
        if step == STEPS {
            backend.norm2_squared(&x, B::part_mut(&mut norms, 0..1))?;
        }
        f.product(backend, T::one(), &x, T::zero(), &mut y)?;
        backend.multiply(inverse, &y, &mut x)?;
    }
    backend.norm2_squared(&x, B::part_mut(&mut norms, 1..2))?;
    let norms = backend.download(&norms)?;
    let largest = Float::sqrt(norms[1] / norms[0]).to_f64();
    Ok(if largest.is_finite() && largest > 0.0 { largest } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::generate;
    use crate::multigrid::aggregate::Aggregates;
    use crate::multigrid::strength::{squared_norms, strong_couplings};
    use crate::multigrid::tentative::{NearNull, Tentative, tentative};

    /// The rows of A B.
    fn product(a: &Csr<f64>, vectors: &Vectors<f64, Host>) -> Vec<f64> {
        let mut y = vec![0.0; a.rows() * vectors.count];
        products(&Host, a, vectors, 1.0, 0.0, &mut y).unwrap();
        y
    }

    #[test]
    fn near_null_vectors_are_smoothed_as_by_the_whole_matrix() {
        for (a, threshold) in [
            (generate::elasticity3d(6, 5, 7, 0.3).unwrap(), 0.6),
            (generate::elasticity_mesh([6, 7, 6], 0.3, 3).unwrap(), 0.25),
        ] {
            let n = a.rows();
            let nodes = Nodes::<Host>::of_size(&Host, n, 3).unwrap();
            let squares = squared_norms(&Host, &a, nodes.0.as_ref().unwrap()).unwrap();
            for (i, j, square) in squares.iter().take(500) {
                let entries = (0..9).map(|k| a.get(3 * i + k / 3, 3 * j + k % 3).unwrap_or(0.0).powi(2));
                assert!((entries.sum::<f64>() - square).abs() <= 1e-12 * square);
            }
            let graph = strong_couplings(&Host, &a, Some(&squares), threshold, None).unwrap();
            let aggregates = Aggregates::new(&Host, &graph, None, None, None).unwrap();
            let near_null = NearNull::constant(&Host, n, 3).unwrap();
            let made = tentative(&Host, &nodes, &aggregates, &near_null).unwrap();
            let Tentative { p: q, near_null: NearNull::Several(coarse), bases: Some(bases), .. } = made
            else {
                panic!("several vectors stay several")
            };
            let NearNull::Several(fine) = near_null else { panic!("three unknowns have three vectors") };
            let strong = graph.parts().pattern();
            let filtered = without_weak(&Host, &a, nodes.0.as_ref().unwrap(), strong).unwrap();
            assert!(n < filtered.nonzeros() && filtered.nonzeros() < a.nonzeros());
            let p = smoothed(&Host, &a, &nodes, strong, (&q, &bases, &fine)).unwrap();
            // P R - B is -omega D^-1 A B: the same multiple of A B / a_ii in each row.
            let (of_p, of_q, of_a) = (product(&p, &coarse), product(&q, &coarse), product(&a, &fine));
            let mut factors = Vec::new();
            for i in 0..n {
                for k in (0..3).map(|k| 3 * i + k) {
                    assert!((of_q[k] - fine.rows[k]).abs() < 1e-13);
                    let relative = of_a[k] / a.get(i, i).unwrap();
                    if relative.abs() < 1e-12 {
                        assert!((of_p[k] - fine.rows[k]).abs() < 1e-11, "row {i}");
                    } else {
                        factors.push((fine.rows[k] - of_p[k]) / relative);
                    }
                }
            }
            assert!(factors.len() > 10 && factors[0] > 0.2 && factors[0] < 4.0 / 3.0, "{}", factors[0]);
            assert!(factors.iter().all(|factor| (factor / factors[0] - 1.0).abs() < 1e-6));
        }
    }

    #[test]
    fn the_largest_eigenvalue_is_found() {
        // D^-1 A of 7 points has eigenvalues up to nearly 2.
        let a = generate::poisson3d(12, 13, 14).unwrap();
        let inverse = vec![1.0 / 6.0; a.rows()];
        let largest = largest_eigenvalue(&Host, &a, &inverse).unwrap();
        assert!(largest < 2.0 && ABOVE * largest > 1.9, "{largest}");
    }
}
