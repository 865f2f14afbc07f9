//! How fast products are in each format, as far as the choice of a format needs it before it measures.

use crate::backend::ProductModel;

/// Measured on an H200: the share of copy bandwidth on a format's own bytes, about the mean of 7 and 27 points in f64
/// and f32, ELL's where the second-level cache holds the matrix: in larger ones SELL is always faster. A look at a
/// sample, and what of a trial does not depend on sizes, takes 4 ms. Converting to SELL takes 3 to 4 products, to the
/// compressed format 6 to 8. What entries far from their rows cost is that of 16 random columns a row, 2 000 000 rows.
///
/// What products wait for, of 21 files of 10^5 to 10^6 nonzeros: in ELL 0.8 us, in which 5 MB come from memory and the
/// second-level cache, in CSR 0.1 more (its offsets come first), in others up to 1.5 more, and 5 where there are
/// several launches. A thread that has a row to itself takes 0.07 to 0.1 us an entry, of jagged diagonals twice that.
pub(in crate::backend::cuda) const PRODUCT_MODEL: ProductModel = ProductModel::new(
    5e6,
    1.7e10,
    6.0,
    &[
        ("csr", 0.92),
        ("coo", 0.60),
        ("csc", 0.20),
        ("ell", 1.0),
        ("hybrid", 0.75),
        ("jds", 0.75),
        ("sell", 1.08),
        ("dia", 1.08),
        ("compressed", 0.90),
    ],
)
.waits(&[
    ("csr", 6e5, 0.0),
    ("coo", 3e7, 0.0),
    ("csc", 3e7, 0.0),
    ("ell", 0.0, 3e5),
    ("hybrid", 3e7, 0.0),
    ("jds", 7e6, 6e5),
    ("sell", 5e5, 3e5),
    ("dia", 4e6, 0.0),
    ("compressed", 8.5e6, 0.0),
])
.far(17.5);
