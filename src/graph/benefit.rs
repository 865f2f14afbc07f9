//! Whether renumbering can pay, told before it is done.
//!
//! A product reads every entry of A once, and of x whole cache lines. Rows that stand near each other in a good order
//! share these lines; in a random order almost every entry needs one of its own. How many lines some windows of
//! neighbouring rows touch is counted; what they would touch at best is the window's own share of x and as much again.

use crate::backend::{Backend, Host, OffsetsRef, OrderingPrice};
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// Rows of a window: few enough for their lines to stay in a cache.
const WINDOW: usize = 1024;
/// Windows that are looked at, evenly spaced.
const WINDOWS: usize = 64;

/// A prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Benefit {
    saving: f64,
    price: f64,
    products: f64,
}

/// Predicts what reverse Cuthill-McKee would save in `products` products with A: an upper bound, since not every graph
/// can be numbered well. Looks at some 65000 rows. `price` is that of
/// the backend, [`GraphSteps::ORDERING_PRICE`](crate::backend::GraphSteps::ORDERING_PRICE).
///
/// # Errors
/// None that is known of on the host.
pub fn predicted_benefit<V: Scalar>(a: &Csr<V>, price: OrderingPrice, products: usize) -> Result<Benefit> {
    predicted_benefit_on(&Host, a, price, products)
}

/// As [`predicted_benefit`], of a matrix in the memory of any backend: only the rows that are looked at are copied.
///
/// # Errors
/// On too little memory, or when the device fails.
pub fn predicted_benefit_on<V: Scalar, B: Backend>(
    backend: &B,
    a: &Csr<V, B>,
    price: OrderingPrice,
    products: usize,
) -> Result<Benefit> {
    let (parts, rows) = (a.parts(), a.rows());
    let value = size_of::<V>() as f64;
    let a_line = (price.line / size_of::<V>()).max(1) as u32;
    let (mut lines, mut entries, mut looked_at) = (0, 0, 0);
    let step = rows.div_ceil(WINDOWS).max(WINDOW);
    for start in (0..rows).step_by(step) {
        let end = (start + WINDOW).min(rows);
        let (from, to) = (offset(backend, parts.offsets, start)?, offset(backend, parts.offsets, end)?);
        let mut touched = vec![0; to - from];
        backend.read(B::part(parts.indices, from..to), &mut touched)?;
        touched.iter_mut().for_each(|column| *column /= a_line);
        touched.sort_unstable();
        touched.dedup();
        lines += touched.len();
        entries += to - from;
        looked_at += end - start;
    }
    // Per row: what a product streams, what it gathers, and what it would gather at best.
    let per_row = |count: usize| count as f64 / looked_at.max(1) as f64;
    let streamed = per_row(entries) * (4.0 + value) + 4.0 + value;
    let gathered = per_row(lines) * price.line as f64 * price.weight;
    let at_best = (2.0 * value * price.weight).min(gathered);
    let saving = if looked_at == 0 { 0.0 } else { (gathered - at_best) / (streamed + gathered) };
    Ok(Benefit { saving, price: price.products, products: products as f64 })
}

fn offset<B: Backend>(backend: &B, offsets: OffsetsRef<'_, B>, row: usize) -> Result<usize> {
    match offsets {
        OffsetsRef::Narrow(offsets) => {
            let mut at = [0];
            backend.read(B::part(offsets, row..row + 1), &mut at)?;
            Ok(at[0] as usize)
        }
        OffsetsRef::Wide(offsets) => {
            let mut at = [0];
            backend.read(B::part(offsets, row..row + 1), &mut at)?;
            Ok(at[0] as usize)
        }
    }
}

impl Benefit {
    /// The share of a product's time that may be saved.
    pub fn saving(&self) -> f64 {
        self.saving
    }

    /// The time to order and permute, in products.
    pub fn price(&self) -> f64 {
        self.price
    }

    /// The products that are expected.
    pub fn products(&self) -> f64 {
        self.products
    }

    /// Whether more is saved than it costs.
    pub fn pays(&self) -> bool {
        self.saving * self.products > self.price
    }
}
