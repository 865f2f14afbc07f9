//! Errors before there is a result. A solver that does not converge is no error: that is an outcome in its report
//! ([`crate::krylov::Outcome`]).

mod cuda;

pub use cuda::CudaError;

use std::path::PathBuf;

/// Result with residua's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every reason for which an operation is refused. Messages are lowercase, name the place, and say what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused access to a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file, as the caller named it; `-` is standard input or output.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file's content violates its format.
    #[error("{}:{line}: {cause}", path.display())]
    Parse {
        /// The file, as the caller named it.
        path: PathBuf,
        /// Line number, from 1.
        line: u64,
        /// The cause.
        cause: String,
    },
    /// The content of a file without lines violates its format.
    #[error("{}: at byte {offset}: {cause}", path.display())]
    Content {
        /// The file, as the caller named it, and the part of it after a colon.
        path: PathBuf,
        /// Offset in the file or in that part, from 0.
        offset: u64,
        /// The cause.
        cause: String,
    },
    /// Two sizes that must agree do not.
    #[error("{what}: expected {expected}, got {got}")]
    Dimension {
        /// The name of the size.
        what: &'static str,
        /// The size that the operation needs.
        expected: usize,
        /// The size that was given.
        got: usize,
    },
    /// An index, offset or structure that is invalid for a matrix of the given shape.
    #[error("invalid matrix: {0}")]
    InvalidMatrix(String),
    /// The caller has requested a stop ([`crate::work::Work::stop`]).
    #[error("stopped by the caller")]
    Stopped,
    /// An argument out of range.
    #[error("invalid argument: {0}")]
    InvalidArgument(String),
    /// A diagonal entry that is not positive and finite, so that the matrix is not positive definite.
    #[error(
        "diagonal entry {value:e} in row {row} (from 0): a positive definite matrix has only positive real \
         ones, and a preconditioner needs their reciprocals; use none, or scale the matrix"
    )]
    Diagonal {
        /// Row, from 0.
        row: usize,
        /// Real part of the entry, 0 if it is missing.
        value: f64,
    },
    /// A diagonal block that is not positive definite, so that the matrix is not either.
    #[error(
        "the diagonal block at row {row} (from 0) is not positive definite, so the matrix is not either; use \
         preconditioner jacobi or none to see what conjugate gradients makes of it"
    )]
    Block {
        /// Row of the block at which this was found, from 0.
        row: usize,
    },
    /// A format that would waste memory on this matrix, or cannot represent it.
    #[error("format {format} refused: {reason}")]
    Refused {
        /// The format's name.
        format: &'static str,
        /// The reason, with numbers.
        reason: String,
    },
    /// Memory for a buffer could not be allocated.
    #[error("out of memory on {device}: {bytes} bytes were requested")]
    OutOfMemory {
        /// The memory: that of a device or the host.
        device: String,
        /// Bytes of the allocation that failed.
        bytes: u64,
    },
    /// One of several processes has failed, or disagrees with the others.
    #[error("rank {rank} of {ranks}: {cause}")]
    Rank {
        /// The process, from 0.
        rank: usize,
        /// The number of processes.
        ranks: usize,
        /// A description of the failure.
        cause: String,
    },
    /// MPI is missing, or has failed.
    #[error("mpi: {0}")]
    Mpi(String),
    /// CUDA is missing, unsuitable or broken.
    #[error("cuda: {0}")]
    Cuda(#[from] CudaError),
    /// A feature that is valid but not supported.
    #[error("not supported: {0}")]
    Unsupported(String),
}

impl Error {
    /// An [`Error::Dimension`] unless `got == expected`.
    pub(crate) fn check_dimension(what: &'static str, expected: usize, got: usize) -> Result<()> {
        if expected == got { Ok(()) } else { Err(Error::Dimension { what, expected, got }) }
    }
}
