//! The structure of fronts for a backend that eliminates them in its own memory: scaling, matching, order of elimination
//! and tree, found on the host.
//!
//! A matrix that is symmetric, or Hermitian, gets the same rows and columns in the same order, with rows that a
//! symmetric matching pairs in one block of pivots; LU chooses pivots among them as it likes. Of others a matching
//! brings large entries to the diagonal.

use super::factor::caught;
use super::frontal::{Preparation, Tree, plan};
use super::options::DirectOptions;
use super::report::Reason;
use super::structures::Structures;
use super::symmetric::is_symmetric_up_to_rounding;
use crate::backend::FrontPlan;
use crate::direct::Factorable;
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::prepare::Scaling;
use crate::scalar::Scalar;
use num_traits::Float;
use std::sync::Arc;

/// What the host finds out for the values at hand.
pub(super) struct Structure {
    tree: Arc<Tree>,
    scaling: Scaling,
    rows: Option<Permutation>,
    partners: Vec<u32>,
    least: f64,
}

impl Structure {
    /// For a factorisation with numbers of type `D` that may take so many operations.
    pub(super) fn new<D: Scalar>(a: &Csr<D::Double>, flop_limit: f64) -> Result<Self, Reason> {
        let unit = <D::Real as Float>::epsilon();
        caught(|| Self::found(a, crate::scalar::Real::to_f64(unit), flop_limit))
    }

    fn found<T: Factorable>(a: &Csr<T>, unit: f64, flop_limit: f64) -> Result<Self, Reason> {
        // A multiplication and an addition.
        let options = DirectOptions { flop_limit: flop_limit / 2.0, ..DirectOptions::default() };
        let mut structures = Structures::default();
        let symmetric =
            is_symmetric_up_to_rounding(a, false) || (T::COMPLEX && is_symmetric_up_to_rounding(a, true));
        if symmetric {
            let plan = structures.fronts(a, &options)?;
            return Ok(Self {
                tree: plan.tree.clone(),
                scaling: plan.scaling.clone(),
                rows: None,
                partners: plan.partners.clone(),
                least: if plan.may_be_definite { unit } else { unit.sqrt() },
            });
        }
        let plan = structures.lu(a, &options)?;
        let matched = &plan.rows;
        if matched.matched < a.rows() {
            let (rank, unmatched) = (matched.matched, matched.unmatched.clone());
            return Err(Reason::StructurallySingular { rank, unmatched });
        }
        Ok(Self {
            tree: plan.tree(a)?,
            scaling: matched.prepared.scaling.clone(),
            rows: Some(matched.prepared.rows.clone()),
            partners: Vec::new(),
            least: unit.sqrt(),
        })
    }

    /// The plan with blocks of at most so many columns.
    pub(super) fn plan<T: Factorable>(&self, a: &Csr<T>, block: u32) -> FrontPlan {
        let Self { tree, scaling, rows, partners, least } = self;
        plan(a, tree, &Preparation { scaling, rows: rows.as_ref(), partners, least: *least, block })
    }
}
