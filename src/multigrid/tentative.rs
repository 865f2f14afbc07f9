//! The tentative prolongation: on each aggregate, an orthonormal basis of the near-null vectors there.

use super::aggregate::{Aggregates, NONE};
use super::strength::{Nodes, packed};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, Zero};

/// A vector of which no more than this part is left after the others were taken out depends on them.
const DEPENDENT: f64 = 1e-8;

/// Vectors that A takes near to zero, as rows: entry j of row i is vector j at unknown i.
#[derive(Debug, Clone)]
pub(super) struct NearNull<T> {
    pub(super) vectors: usize,
    pub(super) rows: Vec<T>,
}

impl<T: Scalar> NearNull<T> {
    /// Ones, for each of the unknowns of a node by itself.
    pub(super) fn constant(unknowns: usize, nodes: &Nodes) -> Self {
        let Some(starts) = &nodes.0 else { return Self { vectors: 1, rows: vec![T::one(); unknowns] } };
        let vectors = starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(1) as usize;
        let mut rows = vec![T::zero(); unknowns * vectors];
        for node in starts.windows(2) {
            for unknown in node[0]..node[1] {
                rows[unknown as usize * vectors + (unknown - node[0]) as usize] = T::one();
            }
        }
        Self { vectors, rows }
    }
}

/// What one aggregate gives.
struct Basis<T> {
    /// Columns of the basis.
    rank: usize,
    /// Its rows, `rank` entries each, in the order of the aggregate's unknowns.
    q: Vec<T>,
    /// Near-null vectors in it: `rank` rows.
    r: Vec<T>,
}

/// P with P^H P = I and P `coarse` = `near_null` on all aggregates, the nodes of the next level, and `coarse`.
pub(super) fn tentative<T: Scalar>(
    unknowns: usize,
    nodes: &Nodes,
    aggregates: &Aggregates,
    near_null: &NearNull<T>,
) -> (Csr<T>, Nodes, NearNull<T>) {
    let k = near_null.vectors;
    let (starts, members) = by_group(&aggregates.of, aggregates.count);
    let unknowns_of = |aggregate: usize| {
        let members = &members[starts[aggregate]..starts[aggregate + 1]];
        members.iter().flat_map(|&node| nodes.unknowns(node as usize))
    };
    let bases = (0..aggregates.count).into_par_iter().with_min_len(256).map(|aggregate| {
        let unknowns: Vec<usize> = unknowns_of(aggregate).collect();
        orthonormal(&unknowns, near_null)
    });
    let bases = bases.collect();
    let mut first = Vec::with_capacity(bases.len() + 1);
    let mut columns = 0_usize;
    first.push(0_u32);
    for basis in &bases {
        columns += basis.rank;
        first.push(columns as u32);
    }
    let mut offsets = vec![0_u64; unknowns + 1];
    for (aggregate, basis) in bases.iter().enumerate() {
        for unknown in unknowns_of(aggregate) {
            offsets[unknown + 1] = basis.rank as u64;
        }
    }
    for unknown in 0..unknowns {
        offsets[unknown + 1] += offsets[unknown];
    }
    let total = offsets[unknowns] as usize;
    let (mut indices, mut values) = (vec![0_u32; total], vec![T::zero(); total]);
    for (aggregate, basis) in bases.iter().enumerate() {
        for (row, unknown) in unknowns_of(aggregate).enumerate() {
            let place = offsets[unknown] as usize;
            for j in 0..basis.rank {
                indices[place + j] = first[aggregate] + j as u32;
                values[place + j] = basis.q[row * basis.rank + j];
            }
        }
    }
    let coarse = NearNull { vectors: k, rows: bases.into_iter().flat_map(|basis| basis.r).collect() };
    let coarse_nodes = Nodes((k > 1).then_some(first));
    let p = Csr::from_parts_unchecked(unknowns, columns, packed(offsets), indices, values);
    (p, coarse_nodes, coarse)
}

/// The members of each group, ascending, and where each group's start; who is in none is left out.
pub(super) fn by_group(group: &[u32], count: usize) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0_usize; count + 1];
    for &of in group.iter().filter(|&&of| of != NONE) {
        starts[of as usize + 1] += 1;
    }
    for group in 0..count {
        starts[group + 1] += starts[group];
    }
    let (mut next, mut members) = (starts.clone(), vec![0_u32; starts[count]]);
    for (node, &of) in group.iter().enumerate().filter(|(_, of)| **of != NONE) {
        members[next[of as usize]] = node as u32;
        next[of as usize] += 1;
    }
    (starts, members)
}

/// Gram and Schmidt's orthogonalisation, modified, each vector twice (Golub and Van Loan, 5.2.8); vectors that depend on
/// the ones before are left out.
fn orthonormal<T: Scalar>(unknowns: &[usize], near_null: &NearNull<T>) -> Basis<T> {
    let (m, k) = (unknowns.len(), near_null.vectors);
    let mut kept: Vec<Vec<T>> = Vec::with_capacity(k);
    let mut r: Vec<Vec<T>> = Vec::with_capacity(k);
    for j in 0..k {
        let mut vector: Vec<T> = unknowns.iter().map(|&i| near_null.rows[i * k + j]).collect();
        let norm =
            |vector: &[T]| Float::sqrt(vector.iter().fold(T::Real::zero(), |sum, value| sum + value.abs2()));
        let whole = norm(&vector);
        for _ in 0..2 {
            for (q, r) in kept.iter().zip(&mut r) {
                let dot = q.iter().zip(&vector).fold(T::zero(), |sum, (&q, &v)| sum + q.conj() * v);
                vector.iter_mut().zip(q).for_each(|(v, &q)| *v -= dot * q);
                r[j] += dot;
            }
        }
        let left = norm(&vector);
        let independent = left > T::Real::from_f64(DEPENDENT) * whole;
        if !independent || kept.len() == m {
            continue;
        }
        let mut row = vec![T::zero(); k];
        row[j] = T::from_real(left);
        r.push(row);
        vector.iter_mut().for_each(|v| *v *= T::from_real(left.recip()));
        kept.push(vector);
    }
    let rank = kept.len();
    let q = (0..m).flat_map(|i| kept.iter().map(move |q| q[i])).collect();
    Basis { rank, q, r: r.concat() }
}
