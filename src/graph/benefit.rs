//! Whether renumbering can pay, told before it is done.
//!
//! A product reads every entry of A once, and of x whole cache lines. Rows that stand near each other in a good order
//! share these lines; in a random order almost every entry needs one of its own. How many lines some windows of
//! neighbouring rows touch is counted; what they would touch at best is the window's own share of x and as much again.

use crate::backend::{Backend, Host, OrderingPrice, with_offsets};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// Rows of a window: few enough for their lines to stay in a cache.
const WINDOW: usize = 1024;
/// Windows that are looked at, evenly spaced: a copy of each, from a device.
const WINDOWS: usize = 16;

/// A prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Benefit {
    saving: f64,
    products: f64,
    product: f64,
    price: f64,
    start: f64,
}

/// Predicts what reverse Cuthill-McKee would save in `products` products with A: an upper bound, since not every graph
/// can be numbered well. Looks at some 16000 rows. `price` is that of
/// the backend, [`GraphSteps::ordering_price`](crate::backend::GraphSteps::ordering_price).
///
/// # Errors
/// None that is known of on the host.
pub fn predicted_benefit<V: Scalar>(a: &Csr<V>, price: OrderingPrice, products: usize) -> Result<Benefit> {
    predicted_benefit_on(&Host, a, price, products)
}

/// As [`predicted_benefit`], of a matrix in the memory of any backend: only the rows that are looked at are copied.
///
/// # Errors
/// If memory runs out, or if the device fails.
pub fn predicted_benefit_on<V: Scalar, B: Backend>(
    backend: &B,
    a: &Csr<V, B>,
    price: OrderingPrice,
    products: usize,
) -> Result<Benefit> {
    let value = size_of::<V>() as f64;
    let seen = Seen::of(backend, a, (price.line / size_of::<V>()).max(1))?;
    // Bytes a row: what a product streams, what it gathers, and what it would gather at best.
    let a_row = |count: usize| count as f64 / seen.rows.max(1) as f64;
    let streamed = a_row(seen.entries) * (4.0 + value) + 4.0 + value;
    let gathered = a_row(seen.lines) * price.line as f64 * price.weight;
    let at_best = (2.0 * value * price.weight).min(gathered);
    let saving = if seen.rows == 0 { 0.0 } else { (gathered - at_best) / (streamed + gathered) };
    let product = a.rows() as f64 * (streamed + gathered) / price.bandwidth;
    let (start, price) = (price.start, price.seconds(a.rows(), product));
    Ok(Benefit { saving, products: products as f64, product, price, start })
}

/// What windows of rows touch: rows, entries, and lines of x, each window's counted for itself.
#[derive(Default)]
struct Seen {
    rows: usize,
    entries: usize,
    lines: usize,
}

impl Seen {
    /// `line`: entries of x that share one.
    fn of<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>, line: usize) -> Result<Self> {
        let (parts, rows) = (a.parts(), a.rows());
        // The window that touched a line last, counted from the first line of a window's own.
        let mut last: Vec<u8> = Vec::new();
        let mut seen = Seen::default();
        let starts = (0..rows).step_by(rows.div_ceil(WINDOWS).max(WINDOW));
        let windows: Vec<Range<usize>> = starts.map(|start| start..(start + WINDOW).min(rows)).collect();
        let entries = with_offsets!(parts.offsets, offsets => entries_of(backend, offsets, &windows))?;
        for ((number, window), entries) in (1..).zip(windows).zip(entries) {
            seen.rows += window.len();
            seen.entries += entries.len();
            let mut touched = vec![0; entries.len()];
            backend.read(B::part(parts.indices, entries), &mut touched)?;
            let line_of = |column: u32| column as usize / line;
            let lowest = touched.iter().min().map_or(0, |&column| line_of(column));
            let highest = touched.iter().max().map_or(0, |&column| line_of(column));
            last.resize(last.len().max(highest - lowest + 1), 0);
            for column in touched {
                let last = &mut last[line_of(column) - lowest];
                seen.lines += usize::from(*last != number);
                *last = number;
            }
        }
        Ok(seen)
    }
}

/// The entries of windows of rows.
fn entries_of<B: Backend, O: Offset>(
    backend: &B,
    offsets: &B::Slice<O>,
    windows: &[Range<usize>],
) -> Result<Vec<Range<usize>>> {
    let ends: Vec<Range<usize>> =
        windows.iter().flat_map(|window| [window.start, window.end].map(|end| end..end + 1)).collect();
    let mut told = vec![O::default(); ends.len()];
    backend.read_parts(offsets, &ends, &mut told)?;
    Ok(told.as_chunks::<2>().0.iter().map(|&[first, last]| first.to_usize()..last.to_usize()).collect())
}

impl Benefit {
    /// The share of a product's time that may be saved.
    pub fn saving(&self) -> f64 {
        self.saving
    }

    /// The products that are expected.
    pub fn products(&self) -> f64 {
        self.products
    }

    /// The same where so many products are expected.
    #[must_use]
    pub fn with_products(self, products: usize) -> Self {
        Self { products: products as f64, ..self }
    }

    /// Seconds that may be saved in all of them.
    pub fn gain(&self) -> f64 {
        self.saving * self.products * self.product
    }

    /// Seconds that may be saved in a product.
    pub fn gain_of_a_product(&self) -> f64 {
        self.saving * self.product
    }

    /// Seconds to order and permute.
    pub fn price(&self) -> f64 {
        self.price
    }

    /// Seconds of these for what does not have to be loaded or compiled first, as it is once for many solves.
    pub fn price_once_loaded(&self) -> f64 {
        self.price - self.start
    }

    /// Returns whether more is saved than it costs.
    pub fn pays(&self) -> bool {
        self.gain() > self.price
    }
}
