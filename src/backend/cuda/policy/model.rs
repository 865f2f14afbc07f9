//! How fast products are in each format, as far as the choice of a format needs it before it measures.

use crate::matrix::ProductModel;

/// Measured on an H200, 7-point stencil on 256^3 points, f64: the share of copy bandwidth on a format's own bytes. A
/// product of little takes 3 us, in which 13 MB are copied; a look at a sample, and what
/// of a trial does not depend on sizes, 4 ms. Converting takes 5 to 10 products.
pub(in crate::backend::cuda) const PRODUCT_MODEL: ProductModel = ProductModel::new(
    1.3e7,
    1.7e10,
    8.0,
    &[
        ("csr", 0.80),
        ("coo", 0.80),
        ("csc", 0.20),
        ("ell", 0.95),
        ("hybrid", 0.90),
        ("jds", 0.85),
        ("sell", 0.96),
        ("slim", 0.90),
    ],
);
