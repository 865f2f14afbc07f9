//! Several processes that solve one system together.
//!
//! Each process is a *rank* and owns some of the unknowns. A [`Group`] connects it with the others: as a
//! [`Communicator`](crate::backend::Communicator) for solvers ([`Builder::build_spread`]), and with messages for
//! everything else. Sums are added in the order of ranks, so that the same number of ranks gives the same bits.
//!
//! ```text
//! launch -- starts --> rank 0, rank 1, ...      a socket each: hello, welcome, ready, fault, bye, interrupt
//! mpirun -- starts --> rank 0, rank 1, ...      MPI, loaded when a group is asked for
//!                        |        |
//!                        +-window-+             memory that all of them map: sums and halos
//!                        +-- MPI -+             messages, if they share no memory
//! ```
//!
//! If a rank fails, disagrees with the others or dies, all of them end with one message that names it. No rank waits
//! for one that has died: sockets close when their process ends, launchers of MPI end all ranks when one has died, and
//! a rank that waits in the window checks for it. Ranks do wait for a process that is stopped but not dead.
//!
//! | file | what it holds |
//! |---|---|
//! | `group` | the group of ranks, as seen by one of them |
//! | `carrier` | the transport of sums and bytes: the window, or messages of MPI |
//! | `peers` | ranks with a GPU each: the same transport between GPUs |
//! | `rows` | reading a file with all ranks, each its own rows |
//! | `window` | shared memory of the ranks of one machine: ordered sums, exchange |
//! | `wait` | how a rank waits for others |
//! | `launch`, `member` | both ends of the sockets: starting and monitoring ranks, and being one |
//! | `mpi` | ranks that are processes of MPI |
//! | `control` | the process that started a rank |
//! | `message` | the messages on these sockets |
//! | `fault` | the first failure, as far as a process knows |
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
