//! What can go wrong before a result exists. A solver that does not converge is no error: it is an outcome in its
//! report ([`crate::krylov::Outcome`]).

mod cuda;

pub use cuda::CudaError;

use std::path::PathBuf;

/// Result with residua's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every way in which an operation is refused. Messages are lowercase, name the place, and say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file, as the caller named it; `-` is standard input or output.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file's content is not what its format allows.
    #[error("{}:{line}: {cause}", path.display())]
    Parse {
        /// The file, as the caller named it.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// What is wrong there.
        cause: String,
    },
    /// The same of a file that has no lines.
    #[error("{}: at byte {offset}: {cause}", path.display())]
    Content {
        /// The file, as the caller named it, and the part of it after a colon.
        path: PathBuf,
        /// Place in the file or in that part, from 0.
        offset: u64,
        /// What is wrong there.
        cause: String,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {got}")]
    Dimension {
        /// Which size.
        what: &'static str,
        /// The size that the operation needs.
        expected: usize,
        /// The size that was given.
        got: usize,
    },
    /// An index, offset or structure that no matrix of the claimed shape can have.
    #[error("invalid matrix: {0}")]
    InvalidMatrix(String),
    /// The caller asked for an end ([`crate::work::Work::stop`]).
    #[error("stopped by the caller")]
    Stopped,
    /// An argument outside of its domain.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// A diagonal entry that no positive definite matrix has, or that has no reciprocal.
    #[error(
        "diagonal entry {value:e} in row {row} (from 0): a positive definite matrix has only positive real \
         ones, and a preconditioner needs their reciprocals; use none, or scale the matrix"
    )]
    Diagonal {
        /// Row, from 0.
        row: usize,
        /// Real part of the entry, 0 where it is missing.
        value: f64,
    },
    /// A diagonal block that no positive definite matrix has.
    #[error(
        "the diagonal block at row {row} (from 0) is not positive definite, so the matrix is not either; use \
         preconditioner jacobi or none to see what conjugate gradients makes of it"
    )]
    Block {
        /// Row of the block at which it shows, from 0.
        row: usize,
    },
    /// A format would waste memory on this matrix, or cannot hold it.
    #[error("format {format} refused: {reason}")]
    Refused {
        /// The format's name.
        format: &'static str,
        /// Why, in figures.
        reason: String,
    },
    /// Memory for a buffer could not be had.
    #[error("out of memory on {device}: {bytes} bytes were asked for")]
    OutOfMemory {
        /// Which memory.
        device: String,
        /// Bytes of the allocation that failed.
        bytes: u64,
    },
    /// One of several processes has failed, or disagrees with the others.
    #[error("rank {rank} of {ranks}: {cause}")]
    Rank {
        /// The process that it happened to, from 0.
        rank: usize,
        /// How many there are.
        ranks: usize,
        /// What happened.
        cause: String,
    },
    /// MPI is absent, or has failed.
    #[error("mpi: {0}")]
    Mpi(String),
    /// CUDA is absent, unfit or broken.
    #[error("cuda: {0}")]
    Cuda(#[from] CudaError),
    /// Something that the format or the method allows and that residua does not do yet.
    #[error("not supported: {0}")]
    Unsupported(String),
}

impl Error {
    /// An [`Error::Dimension`] unless `got == expected`.
    pub(crate) fn check_dimension(what: &'static str, expected: usize, got: usize) -> Result<()> {
        if expected == got { Ok(()) } else { Err(Error::Dimension { what, expected, got }) }
    }
}
