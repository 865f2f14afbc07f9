//! From a matrix to its hierarchy, where the matrix lies.

use super::aggregate::Aggregates;
use super::energy::{WEAKER, of_least_energy};
use super::strength::{Nodes, damping, strong_couplings};
use super::tentative::{Groups, NearNull, Parts, tentative};
use super::{LevelFacts, MultigridOptions, Prolongation};
use crate::backend::{CoarseningSteps, Conversions, copied};
use crate::error::Result;
use crate::matrix::{Csr, multiply};
use crate::scalar::Scalar;

/// More levels than any matrix has where aggregates have more than two nodes.
pub(super) const MOST_LEVELS: usize = 25;

/// Aggregates that are more than this part of the nodes gain nothing.
pub(super) const STAGNATION: f64 = 0.85;

/// What smoothing the prolongation is damped by: 4/3 over the bound of the largest eigenvalue, 1 (Vanek, Mandel and
/// Brezina, Computing 56, 1996).
pub(super) const OMEGA: f64 = 4.0 / 3.0;

/// What is kept for new values: what follows from the strength of couplings, and no values of A.
#[derive(Debug)]
pub(super) struct Plan<T: Scalar, B: CoarseningSteps> {
    pub(super) nodes: Nodes,
    pub(super) groups: Groups<T, B>,
    pub(super) smoothed: bool,
}

/// A level that was computed.
#[derive(Debug)]
pub(super) struct Built<T: Scalar, B: CoarseningSteps> {
    pub(super) a: Csr<T, B>,
    pub(super) prolongation: Csr<T, B>,
    pub(super) restriction: Csr<T, B>,
}

/// All levels but the coarsest, the coarsest matrix, and what is kept.
pub(super) struct Hierarchy<T: Scalar, B: CoarseningSteps> {
    pub(super) levels: Vec<Built<T, B>>,
    pub(super) coarsest: Csr<T, B>,
    pub(super) plans: Vec<Plan<T, B>>,
}

/// The matrix, the prolongation and the restriction of each level but the coarsest.
pub(super) type Matrices<T, B> = Vec<[Csr<T, B>; 3]>;

/// What [`Hierarchy::into_parts`] gives.
pub(super) type AllParts<T, B> = (Matrices<T, B>, Csr<T, B>, Vec<Plan<T, B>>);

impl<T: Scalar, B: CoarseningSteps + Conversions> Hierarchy<T, B> {
    /// From the finest matrix.
    pub(super) fn new(
        backend: &B,
        a: Csr<T, B>,
        near_null: Option<NearNull<T, B>>,
        options: &MultigridOptions,
    ) -> Result<Self> {
        let finest = a.nonzeros();
        let mut nodes = Nodes::of_size(a.rows(), options.unknowns_a_node);
        let given = near_null.is_some();
        let mut near_null = match near_null {
            Some(near_null) => near_null,
            None => NearNull::constant(backend, a.rows(), &nodes)?,
        };
        let mut this = Self { levels: Vec::new(), coarsest: a, plans: Vec::new() };
        let of_energy = options.prolongation == Prolongation::LeastEnergy;
        let strength = options.strength * if of_energy { WEAKER } else { 1.0 };
        let mut entries = finest;
        while this.coarsest.rows() > options.coarsest_rows && this.levels.len() < MOST_LEVELS {
            let a = &this.coarsest;
            let graph = strong_couplings(backend, a, &nodes, strength)?;
            let aggregates = Aggregates::new(backend, &graph)?;
            let count = nodes.count(a.rows());
            if aggregates.count == 0 || aggregates.count as f64 > STAGNATION * count as f64 {
                break;
            }
            let (p, coarse_nodes, coarse_null) = tentative(backend, &nodes, &aggregates, &near_null)?;
            if p.columns() == 0 || p.columns() as f64 > STAGNATION * a.rows() as f64 {
                break;
            }
            let strong = graph.parts().pattern();
            let smoothed = match (&near_null, &coarse_null) {
                (NearNull::One(vector), NearNull::One(norms)) if of_energy => {
                    let of = backend.download(&aggregates.of)?;
                    let (vector, norms) = (backend.download(vector)?, backend.download(norms)?);
                    let (a, graph) = (a.to_host(backend)?, graph.to_host(backend)?);
                    of_least_energy(&a, &graph, &of, &vector, &norms).into_backend(backend)?
                }
                (NearNull::One(vector), NearNull::One(norms)) => {
                    let parts = Parts::<T, B> { of: &*aggregates.of, vector: &**vector, norms: &**norms };
                    parts.smoothed(backend, a, strong, OMEGA, None)?
                }
                _ => multiply(backend, &damping(backend, a, &nodes, strong, OMEGA)?, &p)?,
            };
            drop(graph);
            let mut built = galerkin(backend, a, smoothed)?;
            let most = options.most_entries * finest as f64;
            let fits = (entries + built.1.nonzeros()) as f64 <= most;
            if !fits {
                built = galerkin(backend, a, p.copied(backend)?)?;
            }
            entries += built.1.nonzeros();
            let groups = match (near_null, &coarse_null) {
                (NearNull::One(vector), NearNull::One(norms)) => {
                    let vector = (given && this.levels.is_empty()).then_some(vector);
                    Groups::One { of: aggregates.of, norms: copied(backend, norms)?, vector }
                }
                _ => Groups::Several(p),
            };
            this.push(built);
            this.plans.push(Plan { nodes, groups, smoothed: fits });
            (nodes, near_null) = (coarse_nodes, coarse_null);
        }
        Ok(this)
    }

    fn push(&mut self, (transfer, coarse): (Transfer<T, B>, Csr<T, B>)) {
        let a = std::mem::replace(&mut self.coarsest, coarse);
        let (prolongation, restriction) = transfer;
        self.levels.push(Built { a, prolongation, restriction });
    }

    /// The levels (matrix, prolongation, restriction), the coarsest matrix, and what is kept.
    pub(super) fn into_parts(self) -> AllParts<T, B> {
        let levels = self.levels.into_iter().map(|level| [level.a, level.prolongation, level.restriction]);
        (levels.collect(), self.coarsest, self.plans)
    }

    /// Rows and entries of each level.
    pub(super) fn facts(&self) -> Vec<LevelFacts> {
        facts(&self.levels, &self.coarsest)
    }
}

/// Rows and entries of levels and the coarsest matrix.
pub(super) fn facts<T: Scalar, B: CoarseningSteps>(
    levels: &[Built<T, B>],
    coarsest: &Csr<T, B>,
) -> Vec<LevelFacts> {
    let all = levels.iter().map(|level| &level.a).chain([coarsest]);
    all.map(|a| LevelFacts { rows: a.rows(), entries: a.nonzeros() }).collect()
}

/// P^H.
pub(super) fn conjugate_transpose<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    p: &Csr<T, B>,
) -> Result<Csr<T, B>> {
    let mut r = p.transpose(backend)?;
    if T::COMPLEX {
        backend.conjugate(r.values_mut())?;
    }
    Ok(r)
}

/// Prolongation and restriction.
type Transfer<T, B> = (Csr<T, B>, Csr<T, B>);

/// P and R = P^H, and R A P.
fn galerkin<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    a: &Csr<T, B>,
    p: Csr<T, B>,
) -> Result<(Transfer<T, B>, Csr<T, B>)> {
    let r = conjugate_transpose(backend, &p)?;
    let coarse = multiply(backend, &r, &multiply(backend, a, &p)?)?;
    Ok(((p, r), coarse))
}
