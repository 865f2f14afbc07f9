//! The tentative prolongation: an orthonormal basis of the near-null vectors on each aggregate.

use super::aggregate::Aggregates;
use super::strength::{Nodes, packed};
use crate::backend::{Backend, CoarseningSteps, Conversions, CsrPattern, NO_GROUP, offsets_of};
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::scalar::Scalar;
use num_traits::{Float, One, Zero};

/// A vector is dependent if at most this fraction of it is left after orthogonalisation against the others.
const DEPENDENT: f64 = 1e-8;

/// Near-null vectors, which A maps nearly to zero.
#[derive(Debug)]
pub(super) enum NearNull<T: Scalar, B: Backend> {
    /// One real near-null vector, if each unknown is a node.
    One(B::Vec<T::Real>),
    /// Any number of vectors.
    Several(Vectors<T>),
}

/// Vectors as rows: entry j of row i is vector j at unknown i.
#[derive(Debug, Clone)]
pub(super) struct Vectors<T> {
    pub(super) count: usize,
    pub(super) rows: Vec<T>,
}

impl<T: Scalar, B: Backend> NearNull<T, B> {
    /// Constants: a vector of ones for each unknown of a node.
    pub(super) fn constant(backend: &B, unknowns: usize, nodes: &Nodes) -> Result<Self> {
        let Some(starts) = &nodes.0 else {
            let mut ones = backend.buffer(unknowns)?;
            backend.fill(T::Real::one(), &mut ones)?;
            return Ok(Self::One(ones));
        };
        let count = starts.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(1) as usize;
        let mut rows = vec![T::zero(); unknowns * count];
        for node in starts.windows(2) {
            for unknown in node[0]..node[1] {
                rows[unknown as usize * count + (unknown - node[0]) as usize] = T::one();
            }
        }
        Ok(Self::Several(Vectors { count, rows }))
    }
}

/// The norm of a vector on each aggregate.
type Norms<T, B> = <B as Backend>::Vec<<T as Scalar>::Real>;

/// P, the nodes of the next level, and the near-null vectors there.
type Tentative<T, B> = (Csr<T, B>, Nodes, NearNull<T, B>);

/// P with P^H P = I and P `coarse` = `near_null` on all aggregates, the nodes of the next level, and `coarse`.
pub(super) fn tentative<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    nodes: &Nodes,
    aggregates: &Aggregates<B>,
    near_null: &NearNull<T, B>,
) -> Result<Tentative<T, B>> {
    match near_null {
        NearNull::One(vector) => {
            let (p, norms) = of_one(backend, aggregates, vector)?;
            Ok((p, Nodes::default(), NearNull::One(norms)))
        }
        NearNull::Several(vectors) => {
            let of = backend.download(&aggregates.of)?;
            let (p, nodes, vectors) = of_several(nodes, &of, aggregates.count, vectors);
            Ok((p.into_backend(backend)?, nodes, NearNull::Several(vectors)))
        }
    }
}

/// [`tentative`] for one vector: its part on each aggregate, divided by its norm there.
fn of_one<T: Scalar, B: CoarseningSteps + Conversions>(
    backend: &B,
    aggregates: &Aggregates<B>,
    vector: &B::Slice<T::Real>,
) -> Result<(Csr<T, B>, Norms<T, B>)> {
    let mut p = parts_of::<T, B>(backend, &aggregates.of, aggregates.count, vector)?;
    let mut norms = backend.buffer(aggregates.count)?;
    backend.row_norms(p.transpose(backend)?.parts(), &mut norms)?;
    let (pattern, values) = p.pattern_and_values();
    backend.divide_by_column(pattern.indices, &norms, values)?;
    Ok((p, norms))
}

/// The part of a vector on each of `count` aggregates, as a column.
pub(super) fn parts_of<T: Scalar, B: CoarseningSteps>(
    backend: &B,
    of: &B::Slice<u32>,
    count: usize,
    vector: &B::Slice<T::Real>,
) -> Result<Csr<T, B>> {
    let n = B::len(of);
    // Only nodes in an aggregate have an entry.
    let mut lengths = backend.buffer(n + 1)?;
    backend.group_flags(of, true, &mut lengths)?;
    let (offsets, entries) = offsets_of(backend, &lengths)?;
    let (mut indices, mut values) = (backend.buffer(entries)?, backend.buffer::<T>(entries)?);
    backend.group_entries(of, vector, offsets.as_ref(), &mut indices, &mut values)?;
    Ok(Csr::from_parts_unchecked(n, count, offsets, indices, values))
}

/// The data from which a tentative prolongation is rebuilt for new values. They take a quarter of its memory if each
/// unknown is a node.
#[derive(Debug)]
pub(super) enum Groups<T: Scalar, B: Backend> {
    /// The aggregate of each unknown, the norm of the near-null vector on each aggregate, and that vector itself unless
    /// it is all ones or equal to the norms of the level before.
    One { of: B::Vec<u32>, norms: Norms<T, B>, vector: Option<B::Vec<T::Real>> },
    /// Several vectors: the prolongation itself is stored.
    Several(Csr<T, B>),
}

/// The aggregate of each unknown, and a near-null vector with its norm on each aggregate: these define a tentative
/// prolongation if each unknown is a node.
#[derive(Debug)]
pub(super) struct Parts<'a, T: Scalar, B: Backend> {
    pub(super) of: &'a B::Slice<u32>,
    pub(super) vector: &'a B::Slice<T::Real>,
    pub(super) norms: &'a B::Slice<T::Real>,
}

impl<T: Scalar, B: CoarseningSteps> Parts<'_, T, B> {
    /// (I - omega D^-1 F) P for a matrix, without storing the first factor or P. `known` is the pattern, if it has been
    /// computed.
    pub(super) fn smoothed(
        &self,
        backend: &B,
        a: &Csr<T, B>,
        strong: CsrPattern<'_, B>,
        omega: f64,
        known: Option<CsrPattern<'_, B>>,
    ) -> Result<Csr<T, B>> {
        let n = a.rows();
        let (offsets, entries) = match known {
            Some(known) => (known.offsets.copied(backend)?, B::len(known.indices)),
            None => {
                let mut lengths = backend.buffer(n + 1)?;
                backend.smoothed_lengths(strong, self.of, &mut lengths)?;
                offsets_of(backend, &lengths)?
            }
        };
        let (mut indices, mut values) = (backend.buffer(entries)?, backend.buffer(entries)?);
        let (omega, to) = (T::Real::from_f64(omega), offsets.as_ref());
        backend.smoothed_entries(
            a.parts(),
            strong,
            omega,
            self.of,
            self.vector,
            self.norms,
            to,
            &mut indices,
            &mut values,
        )?;
        Ok(Csr::from_parts_unchecked(n, B::len(self.norms), offsets, indices, values))
    }
}

impl<T: Scalar, B: CoarseningSteps> Groups<T, B> {
    /// Calls `work` with the parts that define P if each unknown is a node; otherwise returns `None`. `before` is the
    /// data of the level before.
    pub(super) fn with_parts<R>(
        &self,
        backend: &B,
        before: Option<&Self>,
        work: impl FnOnce(Parts<'_, T, B>) -> Result<R>,
    ) -> Result<Option<R>> {
        let Self::One { of, norms, vector } = self else { return Ok(None) };
        let done = match (vector, before) {
            (Some(vector), _) | (None, Some(Self::One { norms: vector, .. })) => {
                work(Parts { of, vector, norms })
            }
            (None, _) => {
                let mut ones = backend.buffer(B::len(of))?;
                backend.fill(T::Real::one(), &mut ones)?;
                work(Parts { of, vector: &ones, norms })
            }
        };
        done.map(Some)
    }

    /// P; `before` is the data of the level before.
    pub(super) fn tentative(&self, backend: &B, before: Option<&Self>) -> Result<Csr<T, B>> {
        let made = self.with_parts(backend, before, |Parts { of, vector, norms }| {
            let mut p = parts_of(backend, of, B::len(norms), vector)?;
            let (pattern, values) = p.pattern_and_values();
            backend.divide_by_column(pattern.indices, norms, values)?;
            Ok(p)
        })?;
        match (made, self) {
            (Some(p), _) => Ok(p),
            (None, Self::Several(p)) => p.copied(backend),
            (None, Self::One { .. }) => unreachable!("one vector has its parts"),
        }
    }

    /// Returns the bytes of all arrays.
    pub(super) fn storage_bytes(&self) -> usize {
        match self {
            Self::One { of, norms, vector } => {
                let reals = B::len(norms) + vector.as_ref().map_or(0, |vector| B::len(vector));
                B::len(of) * size_of::<u32>() + reals * size_of::<T::Real>()
            }
            Self::Several(p) => p.storage_bytes(),
        }
    }
}

/// The orthonormal basis on one aggregate.
struct Basis<T> {
    /// Columns of the basis.
    rank: usize,
    /// Its rows, `rank` entries each, in the order of the aggregate's unknowns.
    q: Vec<T>,
    /// The near-null vectors in terms of the basis: `rank` rows.
    r: Vec<T>,
}

/// [`tentative`] for several vectors, on the host; `of` is the aggregate of each node.
fn of_several<T: Scalar>(
    nodes: &Nodes,
    of: &[u32],
    count: usize,
    near_null: &Vectors<T>,
) -> (Csr<T>, Nodes, Vectors<T>) {
    let k = near_null.count;
    let unknowns = near_null.rows.len() / k;
    let (starts, members) = by_group(of, count);
    let unknowns_of = |aggregate: usize| {
        let members = &members[starts[aggregate]..starts[aggregate + 1]];
        members.iter().flat_map(|&node| nodes.unknowns(node as usize))
    };
    let bases = (0..count).into_par_iter().with_min_len(256).map(|aggregate| {
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
    let coarse = Vectors { count: k, rows: bases.into_iter().flat_map(|basis| basis.r).collect() };
    let coarse_nodes = Nodes((k > 1).then_some(first));
    let p = Csr::from_parts_unchecked(unknowns, columns, packed(offsets), indices, values);
    (p, coarse_nodes, coarse)
}

/// The members of each group, ascending, and the index of each group's first member; nodes in no group are left out.
fn by_group(group: &[u32], count: usize) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0_usize; count + 1];
    for &of in group.iter().filter(|&&of| of != NO_GROUP) {
        starts[of as usize + 1] += 1;
    }
    for group in 0..count {
        starts[group + 1] += starts[group];
    }
    let (mut next, mut members) = (starts.clone(), vec![0_u32; starts[count]]);
    for (node, &of) in group.iter().enumerate().filter(|(_, of)| **of != NO_GROUP) {
        members[next[of as usize]] = node as u32;
        next[of as usize] += 1;
    }
    (starts, members)
}

/// Modified Gram-Schmidt orthogonalisation, each vector twice (Golub and Van Loan, 5.2.8); dependent vectors are left
/// out.
fn orthonormal<T: Scalar>(unknowns: &[usize], near_null: &Vectors<T>) -> Basis<T> {
    let (m, k) = (unknowns.len(), near_null.count);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Host;
    use crate::generate;
    use crate::matrix::multiply;
    use crate::multigrid::setup::OMEGA;
    use crate::multigrid::strength::{damping, strong_couplings};

    #[test]
    fn a_smoothed_prolongation_has_the_bits_of_the_product() {
        let nodes = Nodes::default();
        for a in [
            generate::anisotropic2d(23, 17, 0.01).unwrap(),
            generate::jumping([9, 8, 7], 1e6, 2, 1).unwrap(),
            generate::wathen(6, 5, 1).unwrap(),
        ] {
            let graph = strong_couplings(&Host, &a, &nodes, 0.25, None).unwrap();
            let mut aggregates = Aggregates::new(&Host, &graph, None, None, None).unwrap();
            // One node is in no aggregate.
            aggregates.of[5] = NO_GROUP;
            let vector: Vec<f64> = (0..a.rows()).map(|i| 1.0 + (i % 7) as f64).collect();
            let near_null = NearNull::One(vector.clone());
            let (p, _, coarse) = tentative(&Host, &nodes, &aggregates, &near_null).unwrap();
            let strong = graph.parts().pattern();
            let product = multiply(&Host, &damping(&Host, &a, &nodes, strong, OMEGA).unwrap(), &p).unwrap();
            let NearNull::One(norms) = coarse else { panic!("one vector becomes one") };
            let parts = Parts::<f64, Host> { of: &aggregates.of, vector: &vector, norms: &norms };
            let smoothed = parts.smoothed(&Host, &a, strong, OMEGA, None).unwrap();
            let entries = |a: &Csr<f64>| a.iter().map(|(i, j, v)| (i, j, v.to_bits())).collect::<Vec<_>>();
            assert!(product.nonzeros() > a.rows());
            assert_eq!(entries(&smoothed), entries(&product));
            let again = parts.smoothed(&Host, &a, strong, OMEGA, Some(product.parts().pattern())).unwrap();
            assert_eq!(entries(&again), entries(&product));
        }
    }
}
