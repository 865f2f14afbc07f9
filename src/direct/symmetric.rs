//! Scaling, ordering and structure of L D L^T in fronts, for a symmetric A, real or complex.
//!
//! Two rows that the symmetric matching pairs become one vertex of the graph that is ordered, and get the same pattern,
//! so that they are eliminated in the same front. Whatever their diagonal entries are, a pivot of two rows is available
//! there (Schenk and Gaertner, "On fast factorization pivoting methods for sparse symmetric indefinite systems", ETNA
//! 23, 2006).

use super::elimination::Elimination;
use super::frontal::Tree;
use super::options::DirectOptions;
use super::report::Reason;
use super::steps::{FEW, as_reason, times};
use crate::direct::Factorable;
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::parallel::{both, join};
use crate::prepare::{Counted, OrderKind, Scaling, symmetric_matching};
use crate::scalar::{Real, Scalar};
use crate::work::look_at;
use num_traits::Float;
use std::sync::Arc;

/// The analysis of a pattern; it can be reused as long as the pivots of the first values suit the new ones.
pub(super) struct SymmetricPlan {
    /// Powers of two, the same for row i and column i.
    pub(super) scaling: Scaling,
    pub(super) order: OrderKind,
    pub(super) tree: Arc<Tree>,
    /// True if no rows are paired and the diagonal is positive: A may be positive definite.
    pub(super) may_be_definite: bool,
    /// The partner of each row, or the row itself if it has none; empty if no rows are paired.
    pub(super) partners: Vec<u32>,
}

/// A fill-reducing ordering that is already known.
pub(super) struct KnownOrder {
    /// The old index of each new one.
    pub(super) order: Vec<u32>,
    pub(super) kind: OrderKind,
    /// The elimination tree and column counts, if they are known.
    pub(super) counted: Option<Counted>,
}

impl SymmetricPlan {
    /// Matching, scaling, ordering and structure for the current values. A `known` ordering is used if the matching
    /// pairs no rows.
    pub(super) fn new<T: Factorable>(
        a: &Csr<T>,
        known: Option<KnownOrder>,
        options: &DirectOptions,
    ) -> Result<Self, Reason> {
        // A known ordering is likely to be usable: if each diagonal entry is large enough, no rows are paired.
        let known_tree = || {
            let known = known.as_ref()?;
            known.counted.as_ref().map(|counted| Tree::of_counted(counted, &known.order, true))
        };
        let (matching, known_tree) = match a.nonzeros() <= FEW {
            true => (symmetric_matching(a), known_tree()),
            false => join(|| symmetric_matching(a), known_tree),
        };
        let (partners, scaling, _) = matching.map_err(as_reason)?.into_parts();
        let scaling = scaling.to_powers_of_two();
        let graph = || Adjacency::new(a).map_err(as_reason);
        let groups = Groups::new(&partners);
        let (order, tree);
        let alone = groups.len() == partners.len();
        if alone {
            (order, tree) = match (known, known_tree) {
                (Some(known), Some(tree)) => (known.kind, tree),
                (Some(known), None) => (known.kind, Tree::symmetric(&graph()?, &permutation(known.order)?)?),
                (None, _) => {
                    let found = Elimination::new(a, options)?;
                    (found.kind, found.symmetric_tree(&graph()?)?)
                }
            };
        } else {
            let small = groups.compressed::<T>(&graph()?)?;
            let found = Elimination::new(&small, options)?;
            let rows = found.order.iter().flat_map(|&group| groups.members(group)).collect();
            let whole = groups.expanded(&small)?;
            let graph = Adjacency::from_symmetric(&whole).map_err(as_reason)?;
            order = found.kind;
            tree = Tree::symmetric(&graph, &permutation(rows)?)?;
        }
        let may_be_definite = !T::COMPLEX && alone && has_positive_diagonal(a);
        let partners = if alone { Vec::new() } else { partners };
        Ok(Self { scaling, order, tree: Arc::new(tree), may_be_definite, partners })
    }

    /// The values of D A D.
    pub(super) fn scaled<T: Factorable>(&self, a: &Csr<T>) -> Result<Vec<T>, Reason> {
        self.scaling.values(a).map_err(as_reason)
    }

    /// Replaces x by D x, for `N` vectors.
    pub(super) fn scale<T: Scalar, const N: usize>(&self, x: &mut [[T; N]]) {
        let scaled = x.par_iter_mut().zip(self.scaling.rows()).with_min_len(FEW / N);
        scaled.for_each(|(x, &factor)| *x = x.map(|x| times(x, factor)));
    }
}

/// An entry and its mirror image may differ by this many rounding units, since an assembly may sum them in another
/// order.
const ALIKE: f64 = 64.0;

/// Returns whether A^T = A, or A^H = A if `conjugate`, up to rounding relative to the entries themselves and to sqrt
/// |a_ii a_jj|. The factorisation uses one triangle only, and residuals use the whole matrix.
pub(super) fn is_symmetric_up_to_rounding<T: Factorable>(a: &Csr<T>, conjugate: bool) -> bool {
    if a.rows() != a.columns() {
        return false;
    }
    let n = a.rows();
    let mut root = vec![0.0; n];
    root.par_iter_mut().enumerate().with_min_len(1 << 10).for_each(|(i, root)| {
        *root = a.get(i, i).map_or(0.0, |d| d.abs().to_f64().sqrt());
    });
    let most = ALIKE * <T::Real as Float>::epsilon().to_f64();
    let is_alike = |i: usize, j: u32, value: T, mirror: T| {
        let mirror = if conjugate { mirror.conj() } else { mirror };
        let (size, other) = (value.abs().to_f64(), mirror.abs().to_f64());
        value == mirror
            || (value - mirror).abs().to_f64() <= most * (size.max(other) + root[i] * root[j as usize])
    };
    let rows = || (0..n).into_par_iter().with_min_len(1 << 10);
    let before = |i: usize| a.row(i).0.partition_point(|&j| (j as usize) < i);
    // So far every entry below the diagonal has a mirror image. If there are equally many above, each of those has one
    // too.
    let many = rows().map(|i| a.row(i).0.len() - before(i) - usize::from(a.get(i, i).is_some()));
    let as_many = many.reduce(|| 0, |a, b| a + b) == rows().map(before).reduce(|| 0, |a, b| a + b);
    let is_mirrored = |i: usize| {
        let ((columns, values), first) = (a.row(i), before(i));
        both(&columns[first..], &values[first..])
            .all(|(&j, &value)| a.get(j as usize, i).is_some_and(|mirror| is_alike(i, j, value, mirror)))
    };
    (as_many && rows().all(is_mirrored))
        || rows().all(|i| {
            let (columns, values) = a.row(i);
            let mirror = |j: u32| a.get(j as usize, i).unwrap_or_default();
            both(columns, values).all(|(&j, &value)| is_alike(i, j, value, mirror(j)))
        })
}

/// Returns whether each diagonal entry is a positive number.
pub(super) fn has_positive_diagonal<T: Factorable>(a: &Csr<T>) -> bool {
    (0..a.rows())
        .into_par_iter()
        .with_min_len(1 << 10)
        .all(|i| a.get(i, i).is_some_and(|d| d.re() > T::Real::default()))
}

fn permutation(order: Vec<u32>) -> Result<Permutation, Reason> {
    Permutation::from_new_to_old(order).map_err(as_reason)
}

/// Single rows and pairs of rows, in ascending order of their first rows.
struct Groups<'a> {
    partners: &'a [u32],
    first: Vec<u32>,
    of: Vec<u32>,
}

impl<'a> Groups<'a> {
    fn new(partners: &'a [u32]) -> Self {
        let (mut first, mut of) = (Vec::new(), vec![0; partners.len()]);
        for (row, &partner) in (0..).zip(partners) {
            if partner >= row {
                (of[row as usize], of[partner as usize]) = (first.len() as u32, first.len() as u32);
                first.push(row);
            }
        }
        Self { partners, first, of }
    }

    fn len(&self) -> usize {
        self.first.len()
    }

    fn members(&self, group: u32) -> impl Iterator<Item = u32> + use<> {
        let row = self.first[group as usize];
        let partner = self.partners[row as usize];
        [row, partner].into_iter().take(if row == partner { 1 } else { 2 })
    }

    /// The pattern of the groups; its values have no meaning.
    fn compressed<T: Factorable>(&self, graph: &Adjacency<'_>) -> Result<Csr<T>, Reason> {
        let (mut starts, mut indices) = (vec![0], Vec::with_capacity(2 * graph.edges()));
        let mut met = vec![u32::MAX; self.len()];
        for group in 0..self.len() as u32 {
            look_at(group as usize);
            let start = indices.len();
            let mut meet = |other: u32| {
                if met[other as usize] != group {
                    met[other as usize] = group;
                    indices.push(other);
                }
            };
            meet(group);
            for row in self.members(group) {
                graph.neighbours(row as usize).for_each(|other| meet(self.of[other]));
            }
            indices[start..].sort_unstable();
            starts.push(indices.len());
        }
        let values = vec![T::default(); indices.len()];
        Csr::from_parts(self.len(), self.len(), starts, indices, values).map_err(as_reason)
    }

    /// The pattern of the rows, with the same columns for both members of a pair.
    fn expanded<T: Factorable>(&self, groups: &Csr<T>) -> Result<Csr<T>, Reason> {
        let (mut starts, mut indices) = (vec![0], Vec::with_capacity(4 * groups.nonzeros()));
        for (row, &group) in self.of.iter().enumerate() {
            look_at(row);
            let start = indices.len();
            indices.extend(groups.row(group as usize).0.iter().flat_map(|&other| self.members(other)));
            indices[start..].sort_unstable();
            starts.push(indices.len());
        }
        let (n, values) = (self.of.len(), vec![T::default(); indices.len()]);
        Csr::from_parts(n, n, starts, indices, values).map_err(as_reason)
    }
}
