//! Several processes that solve one system together.
//!
//! Each process is a *rank*. It owns some of the unknowns, and a [`Group`] is what it sees of the others: a
//! [`Communicator`](crate::backend::Communicator) for solvers ([`Builder::build_spread`]), and messages for all else.
//! Sums are added in the order of ranks, so that the same number of ranks gives the same bits.
//!
//! ```text
//! launch -- starts --> rank 0, rank 1, ...      a socket each: hello, welcome, ready, fault, bye, interrupt
//! mpirun -- starts --> rank 0, rank 1, ...      MPI, loaded when a group is asked for
//!                        |        |
//!                        +-window-+             memory that all of them map: sums and halos
//!                        +-- MPI -+             messages, where they have no memory in common
//! ```
//!
//! A rank that fails, disagrees with the others or dies ends all of them with one message that names it. Nobody waits
//! for a rank that has gone: sockets close when their process ends, launchers of MPI end all ranks when one has died,
//! and who waits in the window looks whether that has happened. A process that is stopped but not ended is waited for.
//!
//! | file | what it holds |
//! |---|---|
//! | `group` | the ranks, as one of them sees them |
//! | `carrier` | what moves sums and bytes: the window, or messages of MPI |
//! | `peers` | ranks with a GPU each: the same between GPUs |
//! | `rows` | a file that all ranks read together, each its own rows |
//! | `window` | the memory that ranks of one machine share: ordered sums, exchange |
//! | `wait` | how a rank waits for others |
//! | `launch`, `member` | both ends of the sockets: starting ranks and watching over them, and being one |
//! | `mpi` | ranks that are processes of MPI |
//! | `control` | who started a rank, and hears when it leaves or fails |
//! | `message` | what goes over these sockets |
//! | `fault` | the first failure, as a process knows it |
//!
//! [`Builder::build_spread`]: crate::solver::Builder::build_spread

mod carrier;
mod control;
mod fault;
mod group;
mod launch;
mod member;
mod message;
mod mpi;
#[cfg(feature = "cuda")]
mod peers;
#[cfg(feature = "cli")]
mod rows;
mod wait;
mod window;

pub use group::Group;
pub use launch::launch;
#[cfg(feature = "cli")]
pub(crate) use mpi::Launcher;
#[cfg(feature = "cuda")]
pub use peers::Peers;
#[cfg(feature = "cli")]
pub(crate) use rows::{OwnRows, read_rows};
