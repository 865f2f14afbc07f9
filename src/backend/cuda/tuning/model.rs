//! A model of how fast products in each format are, for choosing a format before measuring.

use crate::backend::ProductModel;

/// Measured on an H200: each format's share of copy bandwidth on its own bytes, about the mean of 7 and 27 points in
/// f64 and f32. ELL's share is that of matrices that fit the second-level cache, since SELL is always faster with
/// larger ones. Examining a sample, and the part of a trial that does not depend on sizes, takes 4 ms. Converting to
/// SELL takes as long as 3 to 4 products, to the compressed format 6 to 8. The cost of entries far from their rows is
/// that of 16 random columns per row, with 2 000 000 rows.
///
/// Latencies of products, from 21 files of 10^5 to 10^6 nonzeros: 0.8 us in ELL, a time in which 5 MB are read from
/// memory and the second-level cache; in CSR 0.1 more (its offsets are read first), in others up to 1.5 more, and 5
/// with several launches. A thread with its own row takes 0.07 to 0.1 us per entry, twice as long with jagged
/// diagonals.
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
