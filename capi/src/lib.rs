//! The C interface of residua. It calls [`residua_core::Solver`] and contains no numerics. C, C++ and Fortran see it
//! through `include/residua.h`.
//!
//! | file | what it holds |
//! |---|---|
//! | `status` | codes, the last error of a thread, the guard that no panic crosses |
//! | `handle` | the table of handles; none is ever dereferenced, so that invalid ones are recognised |
//! | `options`, `spaces` | options by name, and options that are arrays |
//! | `arrays` | a caller's arrays, on the host or on a GPU, as the arrays of a matrix |
//! | `engine` | solvers of the four types of values, with one trait |
//! | `callback`, `function` | a function of the caller, and solvers that have one as operator or preconditioner |
//! | `distributed` | solvers with rows distributed over MPI processes |
//! | `held` | a solver behind its handle |
//! | `observer`, `observe` | observers, cancellation, the log |
//! | `batch` | thousands of small systems at once |
//! | `solver`, `report` | the entries |

mod arrays;
mod batch;
mod callback;
#[cfg(unix)]
mod distributed;
mod engine;
mod function;
mod handle;
mod held;
mod observe;
mod observer;
mod options;
mod report;
mod solver;
mod spaces;
mod status;

pub use batch::*;
pub use observe::*;
pub use options::*;
pub use report::*;
pub use solver::*;
pub use spaces::*;
pub use status::*;
