//! Triangular factors, stored by level sets, and pairs of them.

use crate::backend::{
    Backend, CsrParts, CsrPattern, Offsets, Side, TriangleParts, TriangularSteps, offsets_of,
};
use crate::error::Result;
use crate::scalar::Scalar;

/// The level sets of one triangle of a matrix.
#[derive(Debug)]
struct Levels<B: Backend> {
    /// The rows, level after level, ascending within a level.
    order: B::Vec<u32>,
    /// The position of each row in `order`.
    places: B::Vec<u32>,
    /// Where each level starts in `order`, and the number of rows at the end.
    starts: Vec<u32>,
}

impl<B: TriangularSteps> Levels<B> {
    fn new(backend: &B, pattern: CsrPattern<'_, B>, side: Side) -> Result<Self> {
        let n = pattern.rows;
        let mut found = backend.buffer::<u32>(n + 1)?;
        backend.row_levels(pattern, side, &mut found)?;
        let (mut levels, mut order) = (backend.buffer::<u32>(n)?, backend.buffer::<u32>(n)?);
        backend.copy(B::part(&found, 0..n), &mut levels)?;
        drop(found);
        backend.sequence(&mut order)?;
        let bits = usize::BITS - n.leading_zeros();
        backend.sort_pairs(&mut levels, &mut order, 0..bits.clamp(1, 32))?;
        let count = if n == 0 { 0 } else { backend.value(B::part(&levels, n - 1..n))? as usize + 1 };
        let mut starts = backend.buffer::<u32>(count + 1)?;
        backend.offsets_of_sorted(&levels, &mut starts)?;
        let mut places = backend.buffer::<u32>(n)?;
        // The levels have been used, so their memory is reused for the positions.
        backend.sequence(&mut levels)?;
        backend.scatter(&levels, &order, &mut places)?;
        Ok(Self { order, places, starts: backend.download(&starts)? })
    }
}

/// A triangular factor of a matrix, sorted by level sets for solving.
#[derive(Debug)]
struct Triangle<T: Scalar, B: TriangularSteps> {
    side: Side,
    levels: Levels<B>,
    offsets: Offsets<B>,
    columns: B::Vec<u32>,
    values: B::Vec<T>,
    /// The inverse of each diagonal entry, in stored order; `None` for a unit diagonal.
    inverses: Option<B::Vec<T>>,
}

impl<T: Scalar, B: TriangularSteps> Triangle<T, B> {
    /// The structure of one triangle of a matrix; [`Triangle::refill`] sets the values.
    fn new(backend: &B, pattern: CsrPattern<'_, B>, side: Side) -> Result<Self> {
        let levels = Levels::new(backend, pattern, side)?;
        let mut lengths = backend.buffer::<u32>(pattern.rows + 1)?;
        backend.triangle_lengths(pattern, side, &levels.order, &mut lengths)?;
        let (offsets, entries) = offsets_of(backend, &lengths)?;
        let (columns, values) = (backend.buffer(entries)?, backend.buffer(entries)?);
        Ok(Self { side, levels, offsets, columns, values, inverses: None })
    }

    /// Sets the values from a matrix, and from the inverses of its diagonal (unless it is 1) in the order of its rows.
    fn refill(&mut self, backend: &B, a: CsrParts<'_, T, B>, inverses: Option<&B::Slice<T>>) -> Result<()> {
        let Levels { order, places, .. } = &self.levels;
        let offsets = self.offsets.as_ref();
        backend.triangle_entries(
            a,
            self.side,
            order,
            places,
            offsets,
            &mut self.columns,
            &mut self.values,
        )?;
        if let Some(inverses) = inverses {
            let own = match self.inverses.take() {
                Some(own) => own,
                None => backend.buffer(a.rows)?,
            };
            backend.gather(inverses, order, self.inverses.insert(own))?;
        }
        Ok(())
    }

    /// Solves for a right-hand side whose element `sources[k]` belongs to the k-th stored row. The unknowns are written
    /// in stored order; `x` has one element more than there are rows.
    fn solve(
        &self,
        backend: &B,
        sources: &B::Slice<u32>,
        r: &B::Slice<T>,
        x: &mut B::Slice<T>,
    ) -> Result<()> {
        let triangle = TriangleParts {
            sources,
            offsets: self.offsets.as_ref(),
            columns: &self.columns,
            values: &self.values,
            inverses: self.inverses.as_deref(),
            levels: &self.levels.starts,
        };
        backend.triangular_solve(triangle, r, x)
    }

    /// The number of levels.
    fn depth(&self) -> usize {
        self.levels.starts.len() - 1
    }

    /// Bytes that a solve moves.
    fn bytes(&self) -> usize {
        let (rows, scalar) = (B::len(&self.levels.order), size_of::<T>());
        let diagonal = if self.inverses.is_some() { scalar } else { 0 };
        B::len(&self.columns) * (scalar + 4) + rows * (2 * scalar + 8 + diagonal)
    }
}

/// A pair of factors, M = P^T L U with a permutation P of rows.
#[derive(Debug)]
pub(super) struct Factors<T: Scalar, B: TriangularSteps> {
    lower: Triangle<T, B>,
    upper: Triangle<T, B>,
    /// For each stored row of L, the index of its right-hand side, if rows are permuted.
    sources: Option<B::Vec<u32>>,
    /// For each stored row of U, the position of its right-hand side among the unknowns of L.
    between: B::Vec<u32>,
}

impl<T: Scalar, B: TriangularSteps> Factors<T, B> {
    /// The structure of the lower triangle of one pattern and the upper triangle of another or the same. `permuted[i]`
    /// is the row of A that is row i of P A. [`Factors::refill`] sets the values.
    pub(super) fn new(
        backend: &B,
        lower: CsrPattern<'_, B>,
        upper: CsrPattern<'_, B>,
        permuted: Option<&B::Slice<u32>>,
    ) -> Result<Self> {
        let lower = Triangle::new(backend, lower, Side::Lower)?;
        let upper = Triangle::new(backend, upper, Side::Upper)?;
        let n = B::len(&lower.levels.order);
        let sources = match permuted {
            Some(permuted) => {
                let mut sources = backend.buffer(n)?;
                backend.gather(permuted, &lower.levels.order, &mut sources)?;
                Some(sources)
            }
            None => None,
        };
        let mut between = backend.buffer(n)?;
        backend.gather(&lower.levels.places, &upper.levels.order, &mut between)?;
        Ok(Self { lower, upper, sources, between })
    }

    /// Sets the values of both triangles, and the inverses of U's diagonal.
    pub(super) fn refill(
        &mut self,
        backend: &B,
        lower: CsrParts<'_, T, B>,
        upper: CsrParts<'_, T, B>,
        inverses: &B::Slice<T>,
    ) -> Result<()> {
        self.lower.refill(backend, lower, None)?;
        self.upper.refill(backend, upper, Some(inverses))
    }

    /// The rows of L in the order of its level sets.
    pub(super) fn order(&self) -> &B::Slice<u32> {
        &self.lower.levels.order
    }

    /// z = M^-1 r, in a workspace of [`Factors::work_len`] scalars.
    pub(super) fn solve(
        &self,
        backend: &B,
        work: &mut B::Slice<T>,
        r: &B::Slice<T>,
        z: &mut B::Slice<T>,
    ) -> Result<()> {
        let n = self.rows();
        let (y, x) = B::split_mut(work, n + 1);
        self.lower.solve(backend, self.sources.as_deref().unwrap_or(&self.lower.levels.order), r, y)?;
        let x = B::part_mut(x, 0..n + 1);
        self.upper.solve(backend, &self.between, B::part(y, 0..n), x)?;
        backend.gather(B::part(x, 0..n), &self.upper.levels.places, z)
    }

    pub(super) fn rows(&self) -> usize {
        B::len(&self.between)
    }

    /// A vector of unknowns for each factor, each with one more element, which a device uses as a counter.
    pub(super) fn work_len(&self) -> usize {
        2 * (self.rows() + 1)
    }

    /// The numbers of levels of L and of U.
    pub(super) fn depth(&self) -> (usize, usize) {
        (self.lower.depth(), self.upper.depth())
    }

    /// The number of entries off the diagonals.
    pub(super) fn entries(&self) -> usize {
        B::len(&self.lower.columns) + B::len(&self.upper.columns)
    }

    /// Bytes that a solve moves.
    pub(super) fn bytes(&self) -> usize {
        self.lower.bytes() + self.upper.bytes() + self.rows() * (2 * size_of::<T>() + 4)
    }
}
