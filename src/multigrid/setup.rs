//! From a matrix to its hierarchy, on the host.

use super::aggregate::Aggregates;
use super::strength::{Nodes, damping, strong_couplings};
use super::tentative::{NearNull, tentative};
use super::{LevelFacts, MultigridOptions};
use crate::backend::Host;
use crate::error::Result;
use crate::matrix::{Csr, multiply};
use crate::scalar::Scalar;

/// More levels than any matrix has where aggregates have more than two nodes.
const MOST_LEVELS: usize = 25;

/// Aggregates that are more than this part of the nodes gain nothing.
const STAGNATION: f64 = 0.85;

/// What smoothing the prolongation is damped by: 4/3 over the bound of the largest eigenvalue, 1 (Vanek, Mandel and
/// Brezina, Computing 56, 1996).
const OMEGA: f64 = 4.0 / 3.0;

/// What is kept for new values: what follows from the strength of couplings, and no values of A.
#[derive(Debug, Clone)]
pub(super) struct Plan<T: Scalar> {
    nodes: Nodes,
    tentative: Csr<T>,
    smoothed: bool,
}

/// A level that was computed.
#[derive(Debug)]
pub(super) struct Built<T: Scalar> {
    pub(super) a: Csr<T>,
    pub(super) prolongation: Csr<T>,
    pub(super) restriction: Csr<T>,
}

/// All levels but the coarsest, the coarsest matrix, and what is kept.
pub(super) struct Hierarchy<T: Scalar> {
    pub(super) levels: Vec<Built<T>>,
    pub(super) coarsest: Csr<T>,
    pub(super) plans: Vec<Plan<T>>,
}

impl<T: Scalar> Hierarchy<T> {
    /// From the finest matrix.
    pub(super) fn new(a: Csr<T>, near_null: Option<NearNull<T>>, options: &MultigridOptions) -> Result<Self> {
        let finest = a.nonzeros();
        let mut nodes = Nodes::of_size(a.rows(), options.unknowns_a_node);
        let mut near_null = near_null.unwrap_or_else(|| NearNull::constant(a.rows(), &nodes));
        let mut this = Self { levels: Vec::new(), coarsest: a, plans: Vec::new() };
        let mut entries = finest;
        while this.coarsest.rows() > options.coarsest_rows && this.levels.len() < MOST_LEVELS {
            let a = &this.coarsest;
            let graph = strong_couplings(a, &nodes, options.strength);
            let aggregates = Aggregates::new(&graph);
            let count = nodes.count(a.rows());
            if aggregates.count == 0 || aggregates.count as f64 > STAGNATION * count as f64 {
                break;
            }
            let (p, coarse_nodes, coarse_null) = tentative(a.rows(), &nodes, &aggregates, &near_null);
            if p.columns() == 0 || p.columns() as f64 > STAGNATION * a.rows() as f64 {
                break;
            }
            let smoothed = multiply(&Host, &damping(a, &nodes, &graph, OMEGA), &p)?;
            let mut built = galerkin(a, smoothed)?;
            let most = options.most_entries * finest as f64;
            let fits = (entries + built.1.nonzeros()) as f64 <= most;
            if !fits {
                built = galerkin(a, p.clone())?;
            }
            entries += built.1.nonzeros();
            this.push(built);
            this.plans.push(Plan { nodes, tentative: p, smoothed: fits });
            (nodes, near_null) = (coarse_nodes, coarse_null);
        }
        Ok(this)
    }

    /// From new values on the pattern of a hierarchy whose aggregates are kept.
    pub(super) fn again(a: Csr<T>, plans: Vec<Plan<T>>, options: &MultigridOptions) -> Result<Self> {
        let mut this = Self { levels: Vec::new(), coarsest: a, plans: Vec::new() };
        for plan in &plans {
            let a = &this.coarsest;
            let p = if plan.smoothed {
                let graph = strong_couplings(a, &plan.nodes, options.strength);
                multiply(&Host, &damping(a, &plan.nodes, &graph, OMEGA), &plan.tentative)?
            } else {
                plan.tentative.clone()
            };
            let built = galerkin(a, p)?;
            this.push(built);
        }
        this.plans = plans;
        Ok(this)
    }

    fn push(&mut self, (transfer, coarse): (Transfer<T>, Csr<T>)) {
        let a = std::mem::replace(&mut self.coarsest, coarse);
        let (prolongation, restriction) = transfer.0;
        self.levels.push(Built { a, prolongation, restriction });
    }

    /// Rows and entries of each level.
    pub(super) fn facts(&self) -> Vec<LevelFacts> {
        let all = self.levels.iter().map(|level| &level.a).chain([&self.coarsest]);
        all.map(|a| LevelFacts { rows: a.rows(), entries: a.nonzeros() }).collect()
    }
}

/// Prolongation and restriction.
struct Transfer<T: Scalar>((Csr<T>, Csr<T>));

impl<T: Scalar> Transfer<T> {
    fn of(p: Csr<T>) -> Result<Self> {
        let r = p.transpose(&Host)?;
        let r = if T::COMPLEX { r.map(Scalar::conj) } else { r };
        Ok(Self((p, r)))
    }
}

/// P, R = P^H, and R A P.
fn galerkin<T: Scalar>(a: &Csr<T>, p: Csr<T>) -> Result<(Transfer<T>, Csr<T>)> {
    let transfer = Transfer::of(p)?;
    let (p, r) = &transfer.0;
    let coarse = multiply(&Host, r, &multiply(&Host, a, p)?)?;
    Ok((transfer, coarse))
}
