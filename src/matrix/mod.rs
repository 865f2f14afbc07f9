//! Storage formats of sparse matrices.

mod choose;
mod coo;
mod csc;
mod csr;
mod dia;
mod ell;
mod entries;
mod format;
mod hybrid;
#[cfg(any(feature = "sprs", feature = "nalgebra"))]
mod interop;
mod jds;
mod lengths;
mod multiply;
mod narrow;
mod sell;
mod slim;
mod sparse;
mod stencil;
mod storage;
mod transposed;
mod triplets;

pub use choose::{
    Advice, Basis, Choice, ChoiceOptions, ChoiceReport, Compressed, ProductModel, Traits, Trial, Variety,
    advise, choose,
};
pub use coo::Coo;
pub use csc::Csc;
pub use csr::Csr;
pub use dia::Dia;
pub use ell::Ell;
pub use format::{FORMAT_NAMES, Format, build, convert, format, formats, storage_estimates};
pub use hybrid::Hybrid;
pub use jds::Jds;
pub use lengths::{RowLengths, RowStatistics};
pub use multiply::{TripleProduct, add, multiply, multiply_again};
pub use sell::Sell;
pub use slim::{Slim, SlimOptions};
pub use sparse::SparseMatrix;
pub use storage::{FREE_PADDING, MOST_PADDING, Storage};
pub use transposed::Transposable;
pub use triplets::Triplets;
