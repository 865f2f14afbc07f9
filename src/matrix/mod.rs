//! Storage formats of sparse matrices.

mod csr;
mod triplets;

pub use csr::Csr;
pub use triplets::Triplets;
