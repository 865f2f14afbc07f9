//! SELL-C-sigma: sliced ELLPACK.

use super::Csr;
use super::kept::Kept;
use super::lengths::{RowLengths, lengths_of, scanned};
use super::product::product_op;
use super::storage::{Storage, sizes};
use crate::backend::{Backend, Conversions, Host, NARROW_LIMIT, Offsets, RowOrder, SellParts};
use crate::error::{Error, Result};
use crate::scalar::Scalar;

/// A matrix in SELL-C-sigma: chunks of C rows, each padded to its own longest row; within windows of sigma rows, rows
/// are ordered from longest to shortest ([`SellParts`] draws it). Products write y in the original order of rows, so
/// the operator is the same as in CSR.
///
/// Source: Kreutzer, Hager, Wellein, Fehske and Bishop, "A unified sparse matrix data format for efficient general
/// sparse matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput. 36 (2014);
/// PMPP section 14.6 describes it as JDS cut into chunks.
pub struct Sell<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    nonzeros: usize,
    height: usize,
    widest: usize,
    window: usize,
    order: Option<RowOrder<B>>,
    lengths: B::Vec<u32>,
    offsets: Offsets<B>,
    indices: B::Vec<u32>,
    values: B::Vec<V>,
    transposed: Kept<Csr<V, B>>,
}

/// The order of rows, and the start of each chunk.
struct Plan<B: Backend> {
    window: usize,
    /// The row at each position, unless rows keep their order.
    order: Option<RowOrder<B>>,
    /// The number of entries of the row at each position.
    lengths: B::Vec<u32>,
    offsets: Offsets<B>,
    /// Entries in all chunks, including padding.
    entries: usize,
    /// Entries of the longest row.
    widest: usize,
}

impl<B: Conversions> Plan<B> {
    /// Keeps the order of rows if chunks then need little padding, at most a twentieth of the nonzeros: reading and
    /// writing through another order would cost more than it saves. Else sorts within windows of the usual size.
    fn usual(backend: &B, lengths: B::Vec<u32>, nonzeros: usize, height: usize) -> Result<Self> {
        let mut room = backend.zeros(6)?;
        let (first, second) = B::split_mut(&mut room, 3);
        let plan = Self::new(backend, lengths, height, (1, nonzeros), first, None)?;
        if plan.entries - nonzeros <= nonzeros / 20 {
            return Ok(plan);
        }
        let sizes = (WINDOW, plan.widest);
        let offsets = match plan.offsets {
            Offsets::Lower(offsets) => Some(offsets),
            Offsets::Wide(_) => None,
        };
        Self::new(backend, plan.lengths, height, sizes, second, offsets)
    }

    /// No row has more than `most` entries. `found` is three words set to zero, `offsets` memory for one more offset
    /// than there are chunks.
    fn new(
        backend: &B,
        lengths: B::Vec<u32>,
        height: usize,
        (window, most): (usize, usize),
        found: &mut B::Slice<u64>,
        offsets: Option<B::Vec<u32>>,
    ) -> Result<Self> {
        // Three words that the host needs, copied together: whether a row was moved, the number of entries including
        // padding, and the longest row.
        let (moved, places) = B::split_mut(found, 1);
        let mut ordered = None;
        if window > 1 {
            let rows = B::len(&*lengths);
            let (mut order, mut sorted) = (backend.buffer(rows)?, backend.buffer(rows)?);
            backend.order_windows(&lengths, (window, most), &mut order, &mut sorted, moved)?;
            ordered = Some((order, sorted));
        }
        let by_position: &B::Slice<u32> = ordered.as_ref().map_or(&lengths, |(_, sorted)| sorted);
        let chunks = B::len(by_position).div_ceil(height);
        let mut narrow = match offsets {
            Some(offsets) => offsets,
            None => backend.buffer(chunks + 1)?,
        };
        backend.chunk_offsets(by_position, height, &mut narrow, places)?;
        let mut told = [0; 3];
        backend.read(found, &mut told)?;
        let [moved, entries, widest] = told;
        let (entries, widest) = (entries as usize, widest as usize);
        let offsets = if entries <= NARROW_LIMIT {
            Offsets::Lower(narrow)
        } else {
            drop(narrow);
            let mut wide = backend.buffer::<u64>(chunks + 1)?;
            backend.chunk_offsets(by_position, height, &mut wide, B::part_mut(found, 1..3))?;
            Offsets::Wide(wide)
        };
        // If no row was moved, no order is stored.
        let (order, lengths) = match ordered {
            Some((order, sorted)) if moved > 0 => (Some(RowOrder::new(order)), sorted),
            _ => (None, lengths),
        };
        Ok(Self { window, order, lengths, offsets, entries, widest })
    }

    fn storage(&self, nonzeros: usize, height: usize, value: usize) -> Storage {
        let orders = if self.order.is_some() { 2 } else { 1 };
        let index = self.offsets.as_ref().bytes() as u128 + orders * 4 * B::len(&*self.lengths) as u128;
        let about = format!("chunks of {height} rows padded to their longest");
        Storage::new(nonzeros, self.entries as u128, 4 + value, index, &about)
    }
}

/// Sigma if the caller does not give it and rows have different lengths.
const WINDOW: usize = 1024;

/// The maximum number of rows in a chunk or window, so that indices within a chunk do not overflow.
const TALLEST: usize = 1 << 31;

impl<V: Scalar, B: Conversions> Sell<V, B> {
    /// C if the caller does not give it: the height that suits the backend.
    pub const HEIGHT: usize = B::CHUNK_HEIGHT;
}

impl<V: Scalar, B: Backend> Sell<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "sell";

    /// Sigma if the caller does not give it and rows have different lengths.
    pub const WINDOW: usize = WINDOW;

    sizes! { |a|
        rows: a.rows,
        columns: a.columns,
        nonzeros: a.nonzeros,
        storage_bytes: {
            let orders = if a.order.is_some() { 8 } else { 4 };
            a.offsets.as_ref().bytes() + a.rows * orders + B::len(&*a.values) * (4 + size_of::<V>())
        },
        padding: B::len(&*a.values) - a.nonzeros,
    }

    /// Rows of a chunk: C.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Rows of a sorting window: sigma.
    pub fn window(&self) -> usize {
        self.window
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> SellParts<'_, V, B> {
        SellParts {
            rows: self.rows,
            columns: self.columns,
            height: self.height,
            widest: self.widest,
            window: self.window,
            order: self.order.as_ref().map(RowOrder::as_ref),
            lengths: &self.lengths,
            offsets: self.offsets.as_ref(),
            indices: &self.indices,
            values: &self.values,
        }
    }

    product_op!(sell; transposed);

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage
    where
        B: Conversions,
    {
        let nonzeros = lengths.nonzeros();
        match Plan::usual(&Host, lengths.as_slice().to_vec(), nonzeros, Self::HEIGHT) {
            Ok(plan) => plan.storage(nonzeros, Self::HEIGHT, value),
            Err(error) => {
                Storage { bytes: u64::MAX, exact: true, padding: 0, refused: Some(error.to_string()) }
            }
        }
    }
}

impl<V: Scalar, B: Conversions> Sell<V, B> {
    /// Converts from CSR, with the usual C and sigma.
    ///
    /// # Errors
    /// As [`Sell::with_chunks`].
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let plan = Plan::usual(backend, lengths_of(backend, a)?, a.nonzeros(), Self::HEIGHT)?;
        Self::with_plan(backend, a, plan, Self::HEIGHT)
    }

    /// Converts from CSR: chunks of `height` rows (C), rows sorted within windows of `window` rows (sigma; 1 keeps
    /// their order).
    ///
    /// # Errors
    /// Unless `height` is at least 1 and `window` is 1 or a multiple of it, both at most 2^31; [`Error::Refused`] if
    /// padding would take more than twice the nonzeros; if memory runs out, or if the device fails.
    pub fn with_chunks(backend: &B, a: &Csr<V, B>, height: usize, window: usize) -> Result<Self> {
        if height == 0 || window == 0 || (window != 1 && !window.is_multiple_of(height)) {
            return Err(Error::InvalidArgument(format!(
                "sell-{height}-{window}: the window must be 1 or a multiple of the chunks' height"
            )));
        }
        if height.max(window) > TALLEST {
            return Err(Error::InvalidArgument(format!(
                "sell-{height}-{window}: both numbers must be at most {TALLEST}"
            )));
        }
        let sorting = (window, a.columns().min(a.nonzeros()));
        let mut found = backend.zeros(3)?;
        let plan = Plan::new(backend, lengths_of(backend, a)?, height, sorting, &mut found, None)?;
        Self::with_plan(backend, a, plan, height)
    }

    fn with_plan(backend: &B, a: &Csr<V, B>, plan: Plan<B>, height: usize) -> Result<Self> {
        plan.storage(a.nonzeros(), height, size_of::<V>()).check(Self::NAME)?;
        let Plan { window, order, lengths, offsets, entries, widest } = plan;
        let mut indices = backend.buffer(entries)?;
        let mut values = backend.buffer(entries)?;
        let order_ref = order.as_ref().map(RowOrder::as_ref);
        let (size, chunks) = ((height, widest), offsets.as_ref());
        backend.csr_to_sell(a.parts(), size, order_ref, chunks, &mut indices, &mut values)?;
        Ok(Self {
            rows: a.rows(),
            columns: a.columns(),
            nonzeros: a.nonzeros(),
            height,
            widest,
            window,
            order,
            lengths,
            offsets,
            indices,
            values,
            transposed: Kept::default(),
        })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let offsets = match &self.order {
            Some(order) => {
                let mut lengths = backend.buffer(self.rows)?;
                backend.scatter(&*self.lengths, order.as_ref().as_slice(), &mut lengths)?;
                scanned(backend, &lengths, self.nonzeros)?
            }
            None => scanned(backend, &self.lengths, self.nonzeros)?,
        };
        let mut indices = backend.buffer(self.nonzeros)?;
        let mut values = backend.buffer(self.nonzeros)?;
        backend.sell_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
