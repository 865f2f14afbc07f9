//! The C interface of residua. It calls [`residua_core::Solver`] and holds no numerics: `include/residua.h` is what C,
//! C++ and Fortran see of it.
//!
//! | file | what it holds |
//! |---|---|
//! | `status` | codes, the last error of a thread, the guard that no panic crosses |
//! | `handle` | the table behind the handles: none is ever dereferenced, so stale ones are seen |
//! | `options` | options by name |
//! | `arrays` | a caller's arrays as a matrix |
//! | `engine` | solvers of the four types of values, and matrix-free ones, behind one trait |
//! | `solver`, `report` | the entries |

mod arrays;
mod engine;
mod handle;
mod options;
mod report;
mod solver;
mod status;

pub use options::*;
pub use report::*;
pub use solver::*;
pub use status::*;
