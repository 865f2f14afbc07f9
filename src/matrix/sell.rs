//! SELL-C-sigma: sectioned jagged diagonals.

use super::Csr;
use super::format::{Storage, check_vectors, offset_bytes};
use super::lengths::{RowLengths, longest_first, offsets_of};
use crate::backend::{Backend, Conversions, Host, Offsets, Op, Products, RowOrder, SellParts};
use crate::error::{Error, Result};
use crate::scalar::{Scalar, Widen};

/// A matrix in SELL-C-sigma: sections of C rows, each padded to its own longest row; within windows of sigma rows,
/// rows are ordered from longest to shortest ([`SellParts`] draws it). Products write y through the row order, so it
/// stays the same operator as in CSR.
///
/// Source: Kreutzer, Hager, Wellein, Fehske and Bishop, "A unified sparse matrix data format for efficient general
/// sparse matrix-vector multiplication on modern processors with wide SIMD units", SIAM J. Sci. Comput. 36 (2014);
/// PMPP section 14.6 describes it as JDS cut into sections.
pub struct Sell<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    nonzeros: usize,
    height: usize,
    window: usize,
    order: Option<RowOrder<B>>,
    lengths: B::Vec<u32>,
    offsets: Offsets<B>,
    indices: B::Vec<u32>,
    values: B::Vec<V>,
}

/// Where the rows go and how wide the sections are.
struct Plan {
    order: Option<Vec<u32>>,
    lengths: Vec<u32>,
    widths: Vec<usize>,
}

impl Plan {
    fn new(lengths: &RowLengths, height: usize, window: usize) -> Self {
        let lengths = lengths.as_slice();
        let order = if window > 1 { longest_first(lengths, window) } else { Vec::new() };
        // Rows that are in order already need no order.
        let ordered = order.iter().enumerate().any(|(p, &row)| p != row as usize);
        let lengths: Vec<u32> =
            if ordered { order.iter().map(|&row| lengths[row as usize]).collect() } else { lengths.to_vec() };
        let widths = lengths.chunks(height).map(|s| s.iter().copied().max().unwrap_or(0) as usize).collect();
        Self { order: ordered.then_some(order), lengths, widths }
    }
}

impl<V: Scalar, B: Backend> Sell<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "sell";

    /// C where the caller does not say: two cache lines of sums in double precision.
    pub const HEIGHT: usize = 16;

    /// Sigma where the caller does not say and rows are of different lengths.
    pub const WINDOW: usize = 1024;

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows of a section: C.
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
            window: self.window,
            order: self.order.as_ref().map(RowOrder::as_ref),
            lengths: &self.lengths,
            offsets: self.offsets.as_ref(),
            indices: &self.indices,
            values: &self.values,
        }
    }

    /// Number of stored entries, padding not counted.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// Bytes of all arrays.
    pub fn storage_bytes(&self) -> usize {
        let orders = if self.order.is_some() { 8 } else { 4 };
        self.offsets.as_ref().bytes() + self.rows * orders + B::len(&*self.values) * (4 + size_of::<V>())
    }

    /// Entries stored beyond the nonzeros.
    pub fn padding(&self) -> usize {
        B::len(&*self.values) - self.nonzeros
    }

    /// y = alpha op(A) x + beta y. Where `beta` is zero, y is not read.
    ///
    /// # Errors
    /// On vectors of the wrong length, where the backend has no kernel, or when the device fails.
    pub fn product_op<T: Scalar>(
        &self,
        backend: &B,
        op: Op,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        V: Widen<T>,
        B: Products,
    {
        check_vectors(op, (self.rows(), self.columns()), (B::len(x), B::len(y)))?;
        backend.sell(self.parts(), op, alpha, x, beta, y)
    }

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let window = Self::usual_window(lengths);
        Self::storage_of(&Plan::new(lengths, Self::HEIGHT, window), lengths, Self::HEIGHT, value)
    }

    /// 1 where sections of rows in their order need little padding: at most a twentieth of the nonzeros. Reading and
    /// writing through an order would cost more than it saves.
    fn usual_window(lengths: &RowLengths) -> usize {
        let widths =
            lengths.as_slice().chunks(Self::HEIGHT).map(|s| s.iter().copied().max().unwrap_or(0) as usize);
        let entries = widths.sum::<usize>() as u128 * Self::HEIGHT as u128;
        if entries - lengths.nonzeros() as u128 <= lengths.nonzeros() as u128 / 20 { 1 } else { Self::WINDOW }
    }

    fn storage_of(plan: &Plan, lengths: &RowLengths, height: usize, value: usize) -> Storage {
        let entries = plan.widths.iter().map(|&w| w as u128).sum::<u128>() * height as u128;
        let orders = if plan.order.is_some() { 2 } else { 1 };
        let index = offset_bytes(plan.widths.len() + 1, entries) + orders * 4 * lengths.rows() as u128;
        let about = format!("sections of {height} rows padded to their longest");
        Storage::new(lengths.nonzeros(), entries, 4 + value, index, &about)
    }
}

impl<V: Scalar, B: Conversions> Sell<V, B> {
    /// Converts, with the usual C and sigma.
    ///
    /// # Errors
    /// As [`Sell::with_sections`].
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let lengths = RowLengths::of(backend, a)?;
        Self::with_plan(backend, a, &lengths, Self::HEIGHT, Self::usual_window(&lengths))
    }

    /// Converts: sections of `height` rows (C), rows ordered within windows of `window` rows (sigma; 1 keeps them in
    /// their order).
    ///
    /// # Errors
    /// Unless `height` is at least 1 and `window` is 1 or a multiple of it;
    /// [`Error::Refused`] where padding would take more than twice the nonzeros; on too little memory, or
    /// when the device fails.
    pub fn with_sections(backend: &B, a: &Csr<V, B>, height: usize, window: usize) -> Result<Self> {
        if height == 0 || window == 0 || (window != 1 && !window.is_multiple_of(height)) {
            return Err(Error::InvalidArgument(format!(
                "sell-{height}-{window}: the window must be 1 or a multiple of the sections' height"
            )));
        }
        Self::with_plan(backend, a, &RowLengths::of(backend, a)?, height, window)
    }

    fn with_plan(
        backend: &B,
        a: &Csr<V, B>,
        lengths: &RowLengths,
        height: usize,
        window: usize,
    ) -> Result<Self> {
        let plan = Plan::new(lengths, height, window);
        Self::storage_of(&plan, lengths, height, size_of::<V>()).check(Self::NAME)?;
        let order = plan.order.map(|order| backend.upload(order)).transpose()?.map(RowOrder::new);
        let offsets = offsets_of(backend, plan.widths.iter().map(|&w| w * height))?;
        let entries = plan.widths.iter().sum::<usize>() * height;
        let mut indices = backend.zeros(entries)?;
        let mut values = backend.zeros(entries)?;
        let order_ref = order.as_ref().map(RowOrder::as_ref);
        backend.csr_to_sell(a.parts(), height, order_ref, offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Self {
            rows: a.rows(),
            columns: a.columns(),
            nonzeros: a.nonzeros(),
            height,
            window,
            order,
            lengths: backend.upload(plan.lengths)?,
            offsets,
            indices,
            values,
        })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// On too little memory, or when the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let mut lengths = backend.download(&*self.lengths)?;
        if let Some(order) = &self.order {
            let order = backend.download(order.as_ref().as_slice())?;
            let by_position = std::mem::replace(&mut lengths, vec![0; self.rows]);
            order.iter().zip(by_position).for_each(|(&row, n)| lengths[row as usize] = n);
        }
        let offsets = offsets_of(backend, lengths.iter().map(|&n| n as usize))?;
        let mut indices = backend.zeros(self.nonzeros)?;
        let mut values = backend.zeros(self.nonzeros)?;
        backend.sell_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }
}
