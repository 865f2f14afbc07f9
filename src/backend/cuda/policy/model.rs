//! How fast products are in each format, as far as the choice of a format needs it before it measures.

use crate::matrix::ProductModel;

/// Measured on an H200: the share of copy bandwidth on a format's own bytes, about the mean of 7 and 27 points in f64 and f32. A
/// product of little takes 3 us, in which 13 MB are copied; a look at a sample, and what of a trial does not depend on sizes,
/// 4 ms. Converting to SELL takes 3 to 4 products, to the compressed format 6 to 8. What
/// entries far from their rows cost is that of 16 random columns a row, 2 000 000 rows.
pub(in crate::backend::cuda) const PRODUCT_MODEL: ProductModel = ProductModel::new(
    1.3e7,
    1.7e10,
    6.0,
    &[
        ("csr", 0.92),
        ("coo", 0.60),
        ("csc", 0.20),
        ("ell", 0.79),
        ("hybrid", 0.75),
        ("jds", 0.75),
        ("sell", 1.03),
        ("dia", 1.08),
        ("swept", 1.0),
        ("slim", 0.90),
    ],
)
.far(17.5, 6.0);
