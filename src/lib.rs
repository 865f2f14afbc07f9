//! residua solves sparse linear systems A x = b on NVIDIA GPUs, and on any CPU where there is none.

pub mod assemble;
pub mod backend;
pub mod error;
pub mod generate;
pub mod graph;
pub mod krylov;
pub mod market;
pub mod matrix;
pub mod operator;
pub mod precondition;
pub mod report;
pub mod scalar;

pub use backend::{Backend, Host};
pub use error::{Error, Result};
pub use krylov::solve;
pub use matrix::{Csr, Triplets};
pub use operator::LinearOperator;
pub use scalar::{Element, Real, Scalar};
