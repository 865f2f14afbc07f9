//! Predicts, before a matrix is renumbered, whether this saves time.
//!
//! A product reads every entry of A once, and x in whole cache lines. In a good order, neighbouring rows share these
//! lines; in a random order almost every entry needs its own. The lines that some windows of neighbouring rows touch
//! are counted; in the best case, twice as many entries of x are assumed to be read as the window has rows.

use crate::backend::{Backend, Host, OrderingPrice, with_offsets};
use crate::error::Result;
use crate::matrix::{Csr, windows};
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

/// The number of rows of a window, small enough that the lines of x that they touch stay in a cache.
const WINDOW: usize = 1024;
/// The number of windows in the sample. Each is copied from a device separately.
const WINDOWS: usize = 16;

/// The predicted costs and savings of a renumbering.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Benefit {
    saving: f64,
    products: f64,
    product: f64,
    price: f64,
    start: f64,
}

/// Predicts how much time reverse Cuthill-McKee saves in `products` products with A. This is an upper bound, since not
/// every graph has a good numbering. Reads about 16000 rows. `price` is that of the backend,
/// [`GraphSteps::ordering_price`](crate::backend::GraphSteps::ordering_price).
///
/// # Errors
/// None on the host.
pub fn predicted_benefit<V: Scalar>(a: &Csr<V>, price: OrderingPrice, products: usize) -> Result<Benefit> {
    predicted_benefit_on(&Host, a, price, products)
}

/// [`predicted_benefit`] for a matrix in the memory of any backend; only the sampled rows are copied.
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
    // Bytes per row: what a product reads and writes in order, what it gathers of x, and what it would gather at best.
    let a_row = |count: usize| count as f64 / seen.rows.max(1) as f64;
    let streamed = a_row(seen.entries) * (4.0 + value) + 4.0 + value;
    let gathered = a_row(seen.lines) * price.line as f64 * price.weight;
    let at_best = (2.0 * value * price.weight).min(gathered);
    let saving = if seen.rows == 0 { 0.0 } else { (gathered - at_best) / (streamed + gathered) };
    let product = a.rows() as f64 * (streamed + gathered) / price.bandwidth;
    let (start, price) = (price.start, price.seconds(a.rows(), product));
    Ok(Benefit { saving, products: products as f64, product, price, start })
}

/// Rows, entries, and lines of x touched, summed over the windows.
#[derive(Default)]
struct Seen {
    rows: usize,
    entries: usize,
    lines: usize,
}

impl Seen {
    /// `line` is the number of entries of x in a cache line.
    fn of<V: Scalar, B: Backend>(backend: &B, a: &Csr<V, B>, line: usize) -> Result<Self> {
        let (parts, rows) = (a.parts(), a.rows());
        // The last window that touched each line, relative to the first line of the current window.
        let mut last: Vec<u8> = Vec::new();
        let mut seen = Seen::default();
        let windows = windows(rows, WINDOWS, WINDOW);
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

/// The range of entries of each window of rows.
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
    /// The fraction of a product's time that may be saved.
    pub fn saving(&self) -> f64 {
        self.saving
    }

    /// The expected number of products.
    pub fn products(&self) -> f64 {
        self.products
    }

    /// Changes the expected number of products.
    #[must_use]
    pub fn with_products(self, products: usize) -> Self {
        Self { products: products as f64, ..self }
    }

    /// Seconds that may be saved in all products.
    pub fn gain(&self) -> f64 {
        self.saving * self.products * self.product
    }

    /// Seconds that may be saved in one product.
    pub fn gain_of_a_product(&self) -> f64 {
        self.saving * self.product
    }

    /// Seconds to compute the ordering and permute.
    pub fn price(&self) -> f64 {
        self.price
    }

    /// Seconds to compute the ordering and permute, without loading and compiling, which happen once for many solves.
    pub fn price_once_loaded(&self) -> f64 {
        self.price - self.start
    }

    /// Returns whether the savings exceed the price.
    pub fn pays(&self) -> bool {
        self.gain() > self.price
    }
}
