//! Diagonals (DIA).

use super::Csr;
use super::lengths::{RowLengths, scanned};
use super::product::product_op;
use super::storage::{FREE_PADDING, MOST_PADDING, Storage, sizes};
use crate::backend::{
    Backend, Conversions, CsrParts, DIA_SECTION, DiaFill, DiaParts, Grid, Host, Neighbours, mirrored, steps,
};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A matrix stored by diagonals, without column indices: for each diagonal with an entry, one value for every row
/// ([`DiaParts`] draws it). Of a matrix that equals its transpose bit by bit, only the main diagonal and those right of
/// it may be stored.
///
/// It suits matrices of grids: each neighbour of a point is a diagonal, and a nonzero takes only the bytes of its
/// value, two thirds of those in formats with columns in double precision. A diagonal with few entries costs as much as
/// a full one.
///
/// A position without an entry has a value with every bit set. Arithmetic never produces it, and a matrix that contains
/// it is refused.
///
/// Sources: Saad, "Iterative Methods for Sparse Linear Systems", section 3.4; Bell and Garland, "Implementing sparse
/// matrix-vector multiplication on throughput-oriented processors" (SC 2009), section 3.1. Slices as in SELL make the
/// values one stream instead of one for each diagonal.
pub struct Dia<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    nonzeros: usize,
    mirrored: usize,
    distances: B::Vec<i64>,
    steps: B::Vec<i64>,
    values: B::Vec<V>,
}

/// The number of rows, rounded up to whole slices.
fn padded(rows: usize) -> usize {
    rows.next_multiple_of(DIA_SECTION)
}

impl<V: Scalar, B: Backend> Dia<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "dia";

    sizes! { |a|
        rows: a.rows,
        columns: a.columns,
        nonzeros: a.nonzeros,
        storage_bytes: 8 * (B::len(&*a.distances) + B::len(&*a.steps)) + B::len(&*a.values) * size_of::<V>(),
        padding: B::len(&*a.values).saturating_sub(a.nonzeros),
    }

    /// Number of diagonals that have an entry.
    pub fn diagonals(&self) -> usize {
        self.parts().diagonals()
    }

    /// Returns whether only the main diagonal and those right of it are stored, and represent those left of it.
    pub fn is_half(&self) -> bool {
        self.mirrored > 0
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> DiaParts<'_, V, B> {
        let Self { rows, columns, mirrored, .. } = *self;
        DiaParts {
            rows,
            columns,
            mirrored,
            distances: &self.distances,
            steps: &self.steps,
            values: &self.values,
        }
    }

    product_op!(dia, " A^T needs no copy, on any backend.");

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        match lengths.diagonals() {
            // Half of a square matrix may be stored.
            Some(count) => Storage {
                exact: lengths.rows() != lengths.columns(),
                ..Self::storage_of(lengths.rows(), lengths.nonzeros(), count, value)
            },
            None => Storage {
                bytes: u64::MAX,
                exact: false,
                padding: u64::MAX,
                refused: Some("the number of its diagonals was not counted".into()),
            },
        }
    }

    fn storage_of(rows: usize, nonzeros: usize, count: usize, value: usize) -> Storage {
        let about = format!("{count} diagonals of {rows} rows");
        let entries = padded(rows) as u128 * count as u128;
        Storage::new(nonzeros, entries, value, 8 * count as u128, &about)
    }

    /// The maximum number of diagonals that are accepted.
    fn most(rows: usize, nonzeros: usize) -> usize {
        let padding = (nonzeros as u64).saturating_mul(MOST_PADDING).max(FREE_PADDING);
        let places = (nonzeros as u64).saturating_add(padding);
        (places / padded(rows).max(1) as u64) as usize
    }
}

impl<V: Scalar, B: Backend> Dia<V, B> {
    /// All diagonals of a matrix on a grid of points.
    pub(crate) fn on_grid(
        backend: &B,
        grid: Grid,
        neighbours: Neighbours,
        values: B::Vec<V>,
    ) -> Result<Self> {
        let rows = grid.points();
        let distances = backend.upload(neighbours.iter().map(|by| grid.distance(by)).collect())?;
        let (nonzeros, steps) = (grid.pairs(neighbours), backend.zeros(0)?);
        Ok(Self { rows, columns: rows, nonzeros, mirrored: 0, distances, steps, values })
    }
}

impl<V: Scalar, B: Conversions> Dia<V, B> {
    /// Converts from CSR; stores half of a matrix that equals its transpose bit by bit, if products are faster with it.
    ///
    /// # Errors
    /// [`Error::Refused`] if padding would take more than twice the nonzeros, or if a value has every bit set; if
    /// memory runs out, or if the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let found = Self::found(backend, a)?;
        if backend.half_pays::<V>(padded(a.rows()) * found.len())
            && let Some(half) = Self::half_of(backend, a, &found)?
        {
            return Ok(half);
        }
        Self::whole_of(backend, a, found)
    }

    /// Converts from CSR, and stores all diagonals.
    ///
    /// # Errors
    /// As [`from_csr`](Self::from_csr).
    pub fn whole_from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Self::whole_of(backend, a, Self::found(backend, a)?)
    }

    /// [`Dia::whole_from_csr`] for a matrix whose diagonals are known.
    pub(crate) fn whole_of_known(backend: &B, a: CsrParts<'_, V, B>, distances: Vec<i64>) -> Result<Self> {
        let (rows, nonzeros) = (a.rows, B::len(a.indices));
        Self::storage_of(rows, nonzeros, distances.len(), size_of::<V>()).check(Self::NAME)?;
        Ok(Self::filled(backend, a, 0, distances)?.expect("all diagonals hold all entries"))
    }

    /// Converts to half of the matrix if possible: not if an entry differs from its mirror image in any bit, or if all
    /// entries are on the main diagonal.
    ///
    /// # Errors
    /// As [`from_csr`](Self::from_csr).
    pub fn half_from_csr(backend: &B, a: &Csr<V, B>) -> Result<Option<Self>> {
        let found = Self::found(backend, a)?;
        Self::half_of(backend, a, &found)
    }

    /// The diagonals that have an entry.
    fn found(backend: &B, a: &Csr<V, B>) -> Result<Vec<i64>> {
        let (size, nonzeros, parts) = ((a.rows(), a.columns()), a.nonzeros(), a.parts());
        let found = backend.diagonals(size, parts.offsets, parts.indices, Self::most(size.0, nonzeros))?;
        Self::storage_of(size.0, nonzeros, found.count, size_of::<V>()).check(Self::NAME)?;
        Ok(found.distances)
    }

    fn whole_of(backend: &B, a: &Csr<V, B>, found: Vec<i64>) -> Result<Self> {
        Ok(Self::filled(backend, a.parts(), 0, found)?.expect("all diagonals hold all entries"))
    }

    fn half_of(backend: &B, a: &Csr<V, B>, found: &[i64]) -> Result<Option<Self>> {
        let mirrored = if a.rows() == a.columns() { mirrored(found) } else { 0 };
        if mirrored == 0 || !backend.seems_symmetric(a.parts())? {
            return Ok(None);
        }
        Self::filled(backend, a.parts(), mirrored, found[mirrored..].to_vec())
    }

    /// Stores these diagonals; `None` if an entry has no mirror image among the `mirrored` ones.
    fn filled(
        backend: &B,
        a: CsrParts<'_, V, B>,
        mirrored: usize,
        distances: Vec<i64>,
    ) -> Result<Option<Self>> {
        let (rows, columns, nonzeros) = (a.rows, a.columns, B::len(a.indices));
        let mut values = backend.buffer(padded(rows) * distances.len())?;
        let steps = backend.upload(steps(&distances, mirrored))?;
        let distances = backend.upload(distances)?;
        match backend.csr_to_dia(a, mirrored, &distances, &mut values)? {
            DiaFill::Whole => {}
            DiaFill::Unlike => return Ok(None),
            DiaFill::Lost => {
                let reason = "a value has every bit set, which here stands for no entry".into();
                return Err(Error::Refused { format: Self::NAME, reason });
            }
        }
        Ok(Some(Self { rows, columns, nonzeros, mirrored, distances, steps, values }))
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let mut lengths = backend.buffer(self.rows)?;
        backend.dia_lengths(self.parts(), &mut lengths)?;
        let offsets = scanned(backend, &lengths, self.nonzeros)?;
        let mut indices = backend.buffer(self.nonzeros)?;
        let mut values = backend.buffer(self.nonzeros)?;
        backend.dia_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
