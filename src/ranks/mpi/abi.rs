//! The three binary interfaces of MPI libraries, with the constants of each.
//!
//! Source: chapter 20 of the MPI 5.0 standard and `mpi_abi.h` for the standard one; `mpi.h` of MPICH 5.0 for MPICH and
//! all that keep to its binary interface since 2013 (Intel, Cray, MVAPICH); `mpi.h` of Open MPI 5.0 for Open MPI.

use libloading::os::unix::Library;
use std::ffi::{c_int, c_void};
use std::path::Path;

/// The binary interface of a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Abi {
    /// The binary interface of MPI 5.0, whose handles are pointers with fixed values for constants.
    Standard,
    /// MPICH's: handles are integers.
    Mpich,
    /// Open MPI's: handles are addresses of variables of the library.
    OpenMpi,
}

impl Abi {
    /// The file names of the library.
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            Abi::Standard => &["libmpi_abi.so.1", "libmpi_abi.so.0"],
            Abi::Mpich => &["libmpi.so.12"],
            Abi::OpenMpi => &["libmpi.so.40"],
        }
    }

    /// The interface of a library with any name. MPICH's own library also has the functions of the standard interface,
    /// so its name has to decide.
    pub(super) fn of(library: &Library, path: &Path) -> Self {
        let name = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let named = [path, &name].into_iter().filter_map(Path::file_name);
        if named.into_iter().any(|name| name.to_string_lossy().contains("mpi_abi")) {
            return Abi::Standard;
        }
        // SAFETY: the symbol is only looked up, not read.
        let open = unsafe { library.get::<*mut c_void>(c"ompi_mpi_comm_world") }.is_ok();
        if open { Abi::OpenMpi } else { Abi::Mpich }
    }
}

/// A communicator, a datatype, a request or an error handler: within each interface they all have the same type.
pub(super) trait Handle: Copy + Send + Sync + 'static {
    /// A value to be overwritten.
    const NONE: Self;
}

/// A handle of MPICH.
impl Handle for c_int {
    const NONE: Self = 0;
}

/// A handle of the standard interface or of Open MPI.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Pointer(pub(super) *mut c_void);

// SAFETY: the address is only passed back to the library, by one thread at a time.
unsafe impl Send for Pointer {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pointer {}

impl Handle for Pointer {
    const NONE: Self = Pointer(std::ptr::null_mut());
}

/// The constants that functions are called with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants<H> {
    /// `MPI_COMM_WORLD`.
    pub(super) world: H,
    /// `MPI_BYTE`.
    pub(super) byte: H,
    /// `MPI_ERRORS_RETURN`.
    pub(super) errors_return: H,
    /// `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE`, as an address.
    pub(super) ignore: usize,
    /// `MPI_ANY_SOURCE`.
    pub(super) any_source: c_int,
    /// `MPI_THREAD_SERIALIZED`: calls may come from any thread, one at a time.
    pub(super) serialized: c_int,
}

impl Constants<c_int> {
    /// The constants of MPICH.
    pub(super) const MPICH: Self = Self {
        world: 0x4400_0000,
        byte: 0x4c00_010d,
        errors_return: 0x5400_0001,
        ignore: 1,
        any_source: -2,
        serialized: 2,
    };
}

impl Constants<Pointer> {
    /// The constants of the standard interface.
    pub(super) fn standard() -> Self {
        let value = |number: usize| Pointer(std::ptr::without_provenance_mut(number));
        Self {
            world: value(0x101),
            byte: value(0x247),
            errors_return: value(0x143),
            ignore: 0,
            any_source: -1,
            serialized: 2048,
        }
    }

    /// The constants of Open MPI, which are addresses of variables of the library.
    pub(super) fn open_mpi(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: only the addresses of the variables are used, not their contents.
        let address =
            |name| unsafe { library.get::<*mut c_void>(name) }.map(|symbol| Pointer(symbol.as_raw_ptr()));
        Ok(Self {
            world: address(c"ompi_mpi_comm_world")?,
            byte: address(c"ompi_mpi_byte")?,
            errors_return: address(c"ompi_mpi_errors_return")?,
            ignore: 0,
            any_source: -1,
            serialized: 2,
        })
    }
}
