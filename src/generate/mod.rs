//! Model problems: matrices for testing, measuring and learning.
//!
//! Each is built row by row in CSR, in parallel, and is the same for any number of threads: random ones draw each row
//! (or cell, or edge) from its own numbered stream of a seed. (Results of powers may differ in the last bit between
//! machines.) [`MODELS`] is the table for the command's `generate`; programs call the functions.
//!
//! The 5-point matrix on 3 x 2 points (x fastest), from [`poisson2d`]`(3, 2)`:
//!
//! ```text
//!  4 -1  . -1  .  .
//! -1  4 -1  . -1  .
//!  . -1  4  .  . -1
//! -1  .  .  4 -1  .
//!  . -1  . -1  4 -1
//!  .  . -1  . -1  4
//! ```

use crate::error::Result;
use crate::matrix::Csr;

mod circuit;
mod coefficients;
mod copies;
#[cfg(feature = "cuda")]
mod device;
mod elasticity;
mod flows;
mod graphs;
mod grid;
mod models;
mod networks;
mod plates;
mod rows;
mod saddle;
mod simple;
mod simplices;
#[cfg(test)]
mod tests;
mod wathen;
mod waves;

pub use crate::random::Random;
pub use circuit::circuit;
pub use coefficients::{convection_diffusion, jumping};
pub use copies::along_the_diagonal;
pub use elasticity::{elasticity2d, elasticity3d};
pub use flows::{drift_diffusion, oseen, reservoir};
pub use graphs::{RmatKind, RowLengths, random, rmat};
pub use grid::{anisotropic2d, anisotropic3d, poisson2d, poisson2d_9, poisson3d, poisson3d_27};
pub use models::{COMPLEX_MODELS, MODELS, Model, Parameters};
pub use networks::{control, network_flow, pagerank, power_grid, toeplitz};
pub use plates::{image, maxwell, plate};
pub use saddle::{quadratic_program, stokes};
pub use simple::{arrow, diagonal, tridiagonal};
pub use simplices::{elasticity_mesh, mesh};
pub use wathen::wathen;
pub use waves::{helmholtz, helmholtz_absorbing};
