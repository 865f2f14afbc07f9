//! The tentative prolongation: an orthonormal basis of the near-null vectors on each aggregate.

use super::aggregate::Aggregates;
use super::strength::{NodeList, Nodes};
use crate::backend::{Backend, CoarseningSteps, Conversions, CsrPattern, NearNullSteps, copied, offsets_of};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use num_traits::One;

/// Near-null vectors, which A maps nearly to zero.
#[derive(Debug)]
pub(super) enum NearNull<T: Scalar, B: Backend> {
    /// One real near-null vector, if each unknown is a node.
    One(B::Vec<T::Real>),
    /// Any number of vectors.
    Several(Vectors<T, B>),
}

/// Vectors as rows: entry j of row i is vector j at unknown i.
#[derive(Debug)]
pub(super) struct Vectors<T: Scalar, B: Backend> {
    pub(super) count: usize,
    pub(super) rows: B::Vec<T>,
}

impl<T: Scalar, B: Backend> NearNull<T, B> {
    /// Constants: a vector of ones for each of the `size` unknowns of a node.
    pub(super) fn constant(backend: &B, unknowns: usize, size: usize) -> Result<Self> {
        if size <= 1 {
            let mut ones = backend.buffer(unknowns)?;
            backend.fill(T::Real::one(), &mut ones)?;
            return Ok(Self::One(ones));
        }
        let mut rows = vec![T::zero(); unknowns * size];
        rows.chunks_exact_mut(size).enumerate().for_each(|(unknown, row)| row[unknown % size] = T::one());
        Ok(Self::Several(Vectors { count: size, rows: backend.upload(rows)? }))
    }
}

/// The norm of a vector on each aggregate.
type Norms<T, B> = <B as Backend>::Vec<<T as Scalar>::Real>;

/// What several near-null vectors are in terms of an orthonormal basis on each aggregate, as
/// [`NearNullSteps`](crate::backend::NearNullSteps) has it.
#[derive(Debug)]
pub(super) struct Bases<T: Scalar, B: Backend> {
    /// The aggregate of each unknown.
    pub(super) of: B::Vec<u32>,
    pub(super) first: B::Vec<u32>,
    pub(super) r: B::Vec<T>,
}

/// The tentative prolongation, and what it makes of nodes and near-null vectors.
pub(super) struct Tentative<T: Scalar, B: Backend> {
    pub(super) p: Csr<T, B>,
    /// The nodes of the next level.
    pub(super) nodes: Nodes<B>,
    /// The near-null vectors there.
    pub(super) near_null: NearNull<T, B>,
    /// The bases of several vectors.
    pub(super) bases: Option<Bases<T, B>>,
}

/// P with P^H P = I and P `near_null` of the next level = `near_null` on all aggregates.
pub(super) fn tentative<T: Scalar, B: NearNullSteps>(
    backend: &B,
    nodes: &Nodes<B>,
    aggregates: &Aggregates<B>,
    near_null: &NearNull<T, B>,
) -> Result<Tentative<T, B>> {
    match near_null {
        NearNull::One(vector) => {
            let (p, norms) = of_one(backend, aggregates, vector)?;
            Ok(Tentative { p, nodes: Nodes::default(), near_null: NearNull::One(norms), bases: None })
        }
        NearNull::Several(vectors) => of_several(backend, nodes, aggregates, vectors),
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
    Several { p: Csr<T, B>, bases: Bases<T, B>, vectors: Vectors<T, B> },
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
            (None, Self::Several { p, .. }) => p.copied(backend),
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
            Self::Several { p, bases: Bases { of, first, r }, vectors } => {
                p.storage_bytes()
                    + (B::len(of) + B::len(first)) * size_of::<u32>()
                    + (B::len(r) + B::len(&vectors.rows)) * size_of::<T>()
            }
        }
    }
}

/// [`tentative`] for several vectors.
fn of_several<T: Scalar, B: NearNullSteps>(
    backend: &B,
    nodes: &Nodes<B>,
    aggregates: &Aggregates<B>,
    vectors: &Vectors<T, B>,
) -> Result<Tentative<T, B>> {
    let (k, groups) = (vectors.count, aggregates.count);
    let n = B::len(&vectors.rows) / k;
    let of = match &nodes.0 {
        None => copied(backend, &aggregates.of)?,
        Some(nodes) => {
            let mut of = backend.buffer::<u32>(n)?;
            backend.gather(&aggregates.of, &nodes.of, &mut of)?;
            of
        }
    };
    let mut ones = backend.buffer::<f32>(n)?;
    backend.fill(1.0, &mut ones)?;
    let members = parts_of::<f32, B>(backend, &of, groups, &ones)?.transpose(backend)?;
    drop(ones);
    let (mut q, mut r) = (backend.buffer::<T>(n * k)?, backend.buffer::<T>(groups * k * k)?);
    let (mut ranks, mut first) = (backend.zeros::<u32>(groups + 1)?, backend.buffer::<u32>(groups + 1)?);
    let in_groups = members.parts();
    let (rows, ranks_of) = (&vectors.rows, &mut ranks);
    backend.group_bases(k, in_groups.offsets, in_groups.indices, rows, &mut q, &mut r, ranks_of)?;
    backend.exclusive_scan(&ranks, &mut first)?;
    let columns = backend.value(B::part(&first, groups..groups + 1))? as usize;
    let mut lengths = backend.buffer(n + 1)?;
    backend.basis_lengths(&of, &first, &mut lengths)?;
    let (offsets, entries) = offsets_of(backend, &lengths)?;
    let (mut indices, mut values) = (backend.buffer(entries)?, backend.buffer::<T>(entries)?);
    backend.basis_entries(k, &of, &first, &q, offsets.as_ref(), &mut indices, &mut values)?;
    let p = Csr::from_parts_unchecked(n, columns, offsets, indices, values);
    let (mut rows, mut node) = (backend.buffer::<T>(columns * k)?, backend.buffer::<u32>(columns)?);
    backend.basis_rows(k, &first, &r, &mut rows, &mut node)?;
    Ok(Tentative {
        p,
        nodes: Nodes((k > 1).then_some(NodeList { of: node, count: groups })),
        near_null: NearNull::Several(Vectors { count: k, rows }),
        bases: Some(Bases { of, first, r }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Host, NO_GROUP};
    use crate::generate;
    use crate::matrix::multiply;
    use crate::multigrid::setup::OMEGA;
    use crate::multigrid::strength::{damping, strong_couplings};

    #[test]
    fn a_smoothed_prolongation_has_the_bits_of_the_product() {
        for a in [
            generate::anisotropic2d(23, 17, 0.01).unwrap(),
            generate::jumping([9, 8, 7], 1e6, 2, 1).unwrap(),
            generate::wathen(6, 5, 1).unwrap(),
        ] {
            let graph = strong_couplings(&Host, &a, None, 0.25, None).unwrap();
            let mut aggregates = Aggregates::new(&Host, &graph, None, None, None).unwrap();
            // One node is in no aggregate.
            aggregates.of[5] = NO_GROUP;
            let vector: Vec<f64> = (0..a.rows()).map(|i| 1.0 + (i % 7) as f64).collect();
            let near_null = NearNull::One(vector.clone());
            let Tentative { p, near_null: coarse, .. } =
                tentative(&Host, &Nodes::default(), &aggregates, &near_null).unwrap();
            let strong = graph.parts().pattern();
            let product = multiply(&Host, &damping(&Host, &a, strong, OMEGA).unwrap(), &p).unwrap();
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
