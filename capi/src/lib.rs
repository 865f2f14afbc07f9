//! The C interface of residua. It calls [`residua_core::Solver`] and holds no numerics: `include/residua.h` is what C,
//! C++ and Fortran see of it.
//!
//! | file | what it holds |
//! |---|---|
//! | `status` | codes, the last error of a thread, the guard that no panic crosses |
//! | `handle` | the table behind the handles: none is ever dereferenced, so stale ones are seen |
//! | `options`, `spaces` | options by name, and those that are arrays |
//! | `arrays` | a caller's arrays, on the host or on a GPU, as those of a matrix |
//! | `engine` | solvers of the four types of values behind one trait |
//! | `function`, `distributed` | matrix-free ones, and those whose rows processes of MPI have |
//! | `batch` | thousands of small systems at once |
//! | `solver`, `report` | the entries |

mod arrays;
mod batch;
#[cfg(unix)]
mod distributed;
mod engine;
mod function;
mod handle;
mod options;
mod report;
mod solver;
mod spaces;
mod status;

pub use batch::*;
pub use options::*;
pub use report::*;
pub use solver::*;
pub use spaces::*;
pub use status::*;
