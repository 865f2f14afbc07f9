//! The structure of fronts for a backend that eliminates them in its own memory: scaling, matching, order of
//! elimination and tree, computed on the host.
//!
//! For a symmetric or Hermitian matrix, rows and columns have the same order, and rows that a symmetric matching pairs
//! are in one block of pivots, among which LU chooses freely. For other matrices, a matching brings large entries to
//! the diagonal. It is left out if the diagonal is strong already.

use super::elimination::Elimination;
use super::frontal::{Preparation, Tree, plan};
use super::options::{DirectOptions, Prepared};
use super::report::Reason;
use super::steps::{as_reason, caught};
use super::structures::{Structures, is_prepared};
use super::symmetric::{has_positive_diagonal, is_symmetric_up_to_rounding};
use crate::backend::FrontPlan;
use crate::direct::Factorable;
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::parallel::join;
use crate::prepare::Scaling;
use crate::scalar::{Scalar, Symmetry};
use num_traits::Float;
use std::sync::Arc;

/// The structure that the host computes for the current values.
pub(super) struct Structure {
    tree: Arc<Tree>,
    scaling: Scaling,
    rows: Option<Permutation>,
    partners: Vec<u32>,
    symmetry: Symmetry,
    least: f64,
}

impl Structure {
    /// Computes the structure for a factorisation in type `D` that may take at most `flop_limit` operations.
    /// `symmetry` is what all entries have, bit by bit.
    pub(super) fn new<D: Scalar>(
        a: &Csr<D::Double>,
        symmetry: Symmetry,
        flop_limit: f64,
    ) -> Result<Self, Reason> {
        let unit = <D::Real as Float>::epsilon();
        caught(|| Self::found(a, symmetry, crate::scalar::Real::to_f64(unit), flop_limit))
    }

    fn found<T: Factorable>(
        a: &Csr<T>,
        symmetry: Symmetry,
        unit: f64,
        flop_limit: f64,
    ) -> Result<Self, Reason> {
        // A multiplication comes with an addition, and each counts as an operation.
        let flop_limit = flop_limit / 2.0;
        let options = DirectOptions { flop_limit, by_coordinates: true, ..DirectOptions::default() };
        let mut structures = Structures::default();
        let symmetric = || {
            symmetry != Symmetry::General
                || is_symmetric_up_to_rounding(a, false)
                || (T::COMPLEX && is_symmetric_up_to_rounding(a, true))
        };
        let (is_prepared, symmetric) = join(|| is_prepared(a), symmetric);
        if is_prepared {
            let may_be_definite = symmetric && !T::COMPLEX && has_positive_diagonal(a);
            return Ok(Self {
                tree: Elimination::new(a, &options)?.tree(a)?,
                scaling: Prepared::none(a).map_err(as_reason)?.scaling,
                rows: None,
                partners: Vec::new(),
                symmetry,
                least: if may_be_definite { unit } else { unit.sqrt() },
            });
        }
        if symmetric {
            let plan = structures.fronts(a, &options)?;
            return Ok(Self {
                tree: plan.tree.clone(),
                scaling: plan.scaling.clone(),
                rows: None,
                partners: plan.partners.clone(),
                symmetry,
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
            symmetry: Symmetry::General,
            least: unit.sqrt(),
        })
    }

    /// Returns the plan with blocks of at most `block` columns.
    pub(super) fn plan<T: Factorable>(&self, a: &Csr<T>, block: u32) -> FrontPlan {
        let Self { tree, scaling, rows, partners, symmetry, least } = self;
        let (rows, symmetry, least) = (rows.as_ref(), *symmetry, *least);
        plan(a, tree, &Preparation { scaling, rows, partners, symmetry, least, block })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::NO_FRONT;
    use crate::generate;
    use crate::random::Random;
    use crate::scalar::Real;
    use num_complex::Complex;

    /// Factors computed by a plan as a device would do it: each front is assembled as a dense matrix.
    struct Reference<'a, T> {
        plan: &'a FrontPlan,
        factors: Vec<T>,
    }

    /// Returns the inverse of an n x n matrix stored by columns, with partial pivoting.
    fn inverse<T: Factorable>(a: &[T], n: usize) -> Vec<T> {
        let mut a = a.to_vec();
        let mut inverse: Vec<T> =
            (0..n * n).map(|k| T::from_f64(if k / n == k % n { 1.0 } else { 0.0 })).collect();
        for k in 0..n {
            let size = |i: &usize| a[k * n + i].abs2().to_f64();
            let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).unwrap();
            for values in [&mut a, &mut inverse] {
                values.chunks_exact_mut(n).for_each(|column| column.swap(k, pivot));
            }
            let (column, over) = (a[k * n..(k + 1) * n].to_vec(), T::from_f64(1.0) / a[k * n + k]);
            for values in [&mut a, &mut inverse] {
                for other in values.chunks_exact_mut(n) {
                    let own = other[k] * over;
                    (0..n).for_each(|i| other[i] -= column[i] * own);
                    other[k] = own;
                }
            }
        }
        inverse
    }

    impl<'a, T: Factorable> Reference<'a, T> {
        fn new(plan: &'a FrontPlan, values: &[T]) -> Self {
            let mut factors = vec![T::default(); plan.entries() as usize];
            for (k, &target) in plan.targets.iter().enumerate() {
                let scale = plan.scales.as_ref().map_or(1.0, |scales| scales[k]);
                assert_eq!(factors[target as usize], T::default(), "entries have places of their own");
                factors[target as usize] = values[k] * T::from_f64(scale);
            }
            let mut contributions: Vec<Vec<T>> = vec![Vec::new(); plan.len()];
            for front in 0..plan.len() {
                let (w, r) = plan.shape(front);
                let m = w + r;
                let at = plan.factors_at[front] as usize;
                let mut dense = factors[at..at + m * w].to_vec();
                dense.resize(m * m, T::default());
                (0..r).for_each(|j| {
                    let own = &factors[at + m * w + j * w..][..w];
                    dense[(w + j) * m..][..w].copy_from_slice(own);
                });
                for child in (0..front).filter(|&child| plan.parents[child] == front as u32) {
                    let places = &plan.places[plan.rows_at[child]..plan.rows_at[child + 1]];
                    for (k, &value) in contributions[child].iter().enumerate() {
                        let (i, j) = (places[k % places.len()], places[k / places.len()]);
                        dense[j as usize * m + i as usize] += value;
                    }
                }
                let blocks = &plan.blocks[plan.blocks_at[front]..plan.blocks_at[front + 1]];
                for block in blocks.windows(2) {
                    let (begin, end) = (block[0] as usize, block[1] as usize);
                    let n = end - begin;
                    let d: Vec<T> = (0..n * n).map(|k| dense[(begin + k / n) * m + begin + k % n]).collect();
                    let d = inverse(&d, n);
                    for i in end..m {
                        let row: Vec<T> = (begin..end).map(|k| dense[k * m + i]).collect();
                        for j in 0..n {
                            dense[(begin + j) * m + i] =
                                row.iter().enumerate().map(|(k, &f)| f * d[j * n + k]).sum();
                        }
                    }
                    for j in end..m {
                        for k in begin..end {
                            let e = dense[j * m + k];
                            (end..m).for_each(|i| {
                                let v = dense[k * m + i];
                                dense[j * m + i] -= v * e;
                            });
                        }
                    }
                    (0..n * n).for_each(|k| dense[(begin + k / n) * m + begin + k % n] = d[k]);
                }
                factors[at..at + m * w].copy_from_slice(&dense[..m * w]);
                for j in 0..r {
                    factors[at + m * w + j * w..][..w].copy_from_slice(&dense[(w + j) * m..][..w]);
                    contributions[front].extend_from_slice(&dense[(w + j) * m + w..(w + j + 1) * m]);
                }
            }
            Self { plan, factors }
        }

        fn solve(&self, b: &[T]) -> Vec<T> {
            let plan = self.plan;
            let (rows, columns) = plan.scaling.clone().unwrap_or_default();
            let scaled = |value: T, scales: &[f64], k: usize| {
                value * T::from_f64(scales.get(k).copied().unwrap_or(1.0))
            };
            let mut y: Vec<T> =
                plan.from.iter().enumerate().map(|(k, &old)| scaled(b[old as usize], &rows, k)).collect();
            let row_of = |front: usize, i: usize| {
                let (w, _) = plan.shape(front);
                if i < w {
                    plan.begin[front] as usize + i
                } else {
                    plan.rows[plan.rows_at[front] + i - w] as usize
                }
            };
            let of = |front: usize| {
                let (w, r) = plan.shape(front);
                let blocks = &plan.blocks[plan.blocks_at[front]..plan.blocks_at[front + 1]];
                (w, w + r, plan.factors_at[front] as usize, blocks)
            };
            for front in 0..plan.len() {
                let (_, m, at, blocks) = of(front);
                for block in blocks.windows(2) {
                    for k in block[0] as usize..block[1] as usize {
                        for i in block[1] as usize..m {
                            let known = y[row_of(front, k)];
                            y[row_of(front, i)] -= self.factors[at + k * m + i] * known;
                        }
                    }
                }
            }
            for front in (0..plan.len()).rev() {
                let (w, m, at, blocks) = of(front);
                for block in blocks.windows(2).rev() {
                    let (begin, end) = (block[0] as usize, block[1] as usize);
                    let left: Vec<T> = (begin..end)
                        .map(|k| {
                            let e =
                                |j: usize| if j < w { at + j * m + k } else { at + w * m + (j - w) * w + k };
                            y[row_of(front, k)]
                                - (end..m).map(|j| self.factors[e(j)] * y[row_of(front, j)]).sum::<T>()
                        })
                        .collect();
                    for k in begin..end {
                        y[row_of(front, k)] = left
                            .iter()
                            .enumerate()
                            .map(|(j, &l)| self.factors[at + (begin + j) * m + k] * l)
                            .sum();
                    }
                }
            }
            let mut x = vec![T::default(); y.len()];
            plan.to.iter().enumerate().for_each(|(k, &old)| x[old as usize] = scaled(y[k], &columns, k));
            x
        }
    }

    fn check<T: Factorable>(name: &str, a: &Csr<T>, block: u32) {
        let structure = Structure::found(a, Symmetry::General, f64::EPSILON, f64::INFINITY).unwrap();
        let plan = structure.plan(a, block);
        let mut random = Random::new(3);
        let known: Vec<T> = (0..a.rows()).map(|_| T::from_f64(random.unit() - 0.5)).collect();
        let mut b = vec![T::default(); a.rows()];
        a.product(&crate::Host, T::one(), &known, T::default(), &mut b).unwrap();
        let x = Reference::new(&plan, a.parts().values).solve(&b);
        let error = x.iter().zip(&known).map(|(&x, &known)| (x - known).abs().to_f64()).fold(0.0, f64::max);
        assert!(error < 1e-6, "{name} with blocks of {block}: {error:e}");
        assert!(plan.parents.contains(&NO_FRONT));
    }

    /// A grid that is ordered by its coordinates, with another numbering and without.
    #[test]
    fn a_large_grid_in_any_numbering_has_an_order_by_its_coordinates() {
        let a: Csr<f64> = generate::poisson2d(240, 210).unwrap();
        let shuffled = Permutation::random(a.rows(), 2).unwrap();
        let other = crate::graph::permute_symmetric(&a, &shuffled).unwrap();
        let searched = Elimination::new(&a, &DirectOptions::default()).unwrap();
        for a in [&a, &other] {
            let found = Structure::found(a, Symmetry::Symmetric, f64::EPSILON, f64::INFINITY).unwrap();
            let part = found.tree.all_work() / searched.flops;
            assert!(part < 0.95, "{part}");
            check("grid", a, 64);
        }
    }

    #[test]
    fn a_plan_leads_to_the_solution() {
        for block in [1, 3, 64] {
            check("grid", &generate::poisson2d(17, 13).unwrap(), block);
            check("cube", &generate::poisson3d(6, 5, 7).unwrap(), block);
            check("wind", &generate::convection_diffusion([7, 8, 5], 0.01).unwrap(), block);
            check("arrow", &generate::arrow(60).unwrap(), block);
            check("one row", &generate::diagonal(1).unwrap(), block);
            let many = generate::along_the_diagonal(&generate::poisson2d(3, 3).unwrap(), 9).unwrap();
            check("components", &many, block);
            check::<Complex<f64>>("waves", &generate::helmholtz_absorbing([15, 14, 1], 10.0).unwrap(), block);
        }
        // If rows are paired, both are in the same block.
        check("program", &generate::quadratic_program(120, 60, 10.0, 1).unwrap(), 8);
        check("saddle point", &generate::stokes([8, 7, 1], 1.0, true).unwrap(), 8);
        check("circuit", &generate::circuit(200, 1e3, 1).unwrap(), 8);
    }

    #[test]
    fn a_column_without_a_row_is_told() {
        let a = Csr::from_parts(2, 2, vec![0, 1, 2], vec![0, 0], vec![1.0, 2.0]).unwrap();
        let reason = Structure::new::<f64>(&a, Symmetry::General, f64::INFINITY).err().unwrap();
        assert!(matches!(reason, Reason::StructurallySingular { rank: 1, .. }), "{reason}");
    }
}
