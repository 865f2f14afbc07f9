//! Storage formats of sparse matrices.

mod choose;
mod compressed;
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
mod kept;
mod lengths;
mod multiply;
mod narrow;
mod product;
mod sell;
mod sparse;
mod stencil;
mod storage;
mod transposed;
mod triplets;
mod windows;

pub use crate::backend::{CompressionRule, ProductModel, Transposable};
pub use choose::{
    Advice, Basis, Choice, ChoiceOptions, ChoiceReport, Traits, Trial, Variety, advise, choose,
};
pub use compressed::{Compressed, CompressedOptions};
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
pub(crate) use multiply::{multiply_at, multiply_within};
pub use sell::Sell;
pub use sparse::SparseMatrix;
pub use storage::{FREE_PADDING, MOST_PADDING, Storage};
pub use triplets::Triplets;
pub(crate) use windows::windows;
