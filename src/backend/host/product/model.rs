//! The performance model of CPU products: 7-point stencil on 160^3 points, f64, 2 cores of an AMD EPYC, relative to the
//! format's own bytes (docs/internals/benchmarks/cpu.md, "Products").

use crate::backend::{CompressionRule, ProductModel};

/// Distributing a product to the threads takes 2 us, the time to copy 80 kB; a sample takes 0.2 ms. A conversion takes
/// as long as 6 to 20 products. Diagonals are read at 0.8 of the speed of CSR (7 points on 128^3 and 27 points on
/// 100^3), but have two thirds of its bytes. The compressed format processes runs of equal rows: an entry takes the
/// time to copy 2.1 bytes (5 points, 1000^2), 3.3 (27, 70^3) or 4.5 (7, 100^3). Without runs it is slower than CSR.
pub(super) const MODEL: ProductModel = ProductModel::new(
    8e4,
    8e6,
    12.0,
    &[
        ("csr", 0.70),
        ("sell", 0.71),
        ("dia", 0.57),
        ("coo", 0.69),
        ("csc", 0.36),
        ("jds", 0.32),
        ("ell", 0.31),
        ("hybrid", 0.31),
        ("compressed", 1.0),
    ],
)
.compression(CompressionRule::Runs { rows: 8, entry: 4.5 });
