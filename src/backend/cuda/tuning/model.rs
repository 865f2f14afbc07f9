//! A model of the speed of products in each format, for choosing a format before measuring.

use crate::backend::ProductModel;

/// Measured on an H200. For each format, the fraction of copy bandwidth that it reaches on its own bytes, about the
/// mean of 7 and 27 points in f64 and f32. The fraction of ELL is that of matrices that fit the second-level cache,
/// because SELL is always faster for larger ones. To examine a sample, and the part of a trial that does not depend on
/// sizes, takes 4 ms. A conversion to SELL takes as long as 3 to 4 products, to the compressed format 6 to 8. The cost
/// of entries far from the diagonal is that of 16 random columns per row, with 2 000 000 rows.
///
/// Latencies of products, from 21 files of 10^5 to 10^6 nonzeros: 0.8 us in ELL, the time to read 5 MB from memory and
/// the second-level cache; 0.1 us more in CSR, whose offsets are read first; up to 1.5 us more in other formats, and 5
/// us more with several launches. If a thread processes a whole row, an entry takes 0.07 to 0.1 us, and twice as long
/// with jagged diagonals.
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
