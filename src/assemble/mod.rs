//! From triplets to CSR.

mod symmetry;

pub use symmetry::Symmetry;
