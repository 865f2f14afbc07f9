//! The functions of MPI that are called, by type and name. They are the same in each binary interface, except for the
//! type of handles.

use super::abi::{Constants, Handle, Pointer};
use libloading::os::unix::Library;
use std::ffi::{c_char, c_int, c_void};

/// The return type of every function but one: zero for success.
pub(super) type Status = c_int;

/// A library's functions and constants.
pub(super) struct Table<H> {
    pub(super) constants: Constants<H>,
    pub(super) initialized: unsafe extern "C" fn(*mut c_int) -> Status,
    pub(super) finalized: unsafe extern "C" fn(*mut c_int) -> Status,
    pub(super) init_thread: unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> Status,
    pub(super) finalize: unsafe extern "C" fn() -> Status,
    pub(super) abort: unsafe extern "C" fn(H, c_int) -> Status,
    pub(super) error_string: unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> Status,
    pub(super) library_version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> Status,
    pub(super) processor_name: unsafe extern "C" fn(*mut c_char, *mut c_int) -> Status,
    pub(super) comm_rank: unsafe extern "C" fn(H, *mut c_int) -> Status,
    pub(super) comm_size: unsafe extern "C" fn(H, *mut c_int) -> Status,
    pub(super) comm_dup: unsafe extern "C" fn(H, *mut H) -> Status,
    pub(super) comm_free: unsafe extern "C" fn(*mut H) -> Status,
    pub(super) set_errhandler: unsafe extern "C" fn(H, H) -> Status,
    pub(super) iallgather:
        unsafe extern "C" fn(*const c_void, c_int, H, *mut c_void, c_int, H, H, *mut H) -> Status,
    pub(super) isend: unsafe extern "C" fn(*const c_void, c_int, H, c_int, c_int, H, *mut H) -> Status,
    pub(super) irecv: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, c_int, H, *mut H) -> Status,
    pub(super) recv: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, c_int, H, *mut c_void) -> Status,
    pub(super) testall: unsafe extern "C" fn(c_int, *mut H, *mut c_int, *mut c_void) -> Status,
    pub(super) iprobe: unsafe extern "C" fn(c_int, c_int, H, *mut c_int, *mut c_void) -> Status,
    /// The conversion from a Fortran handle; none if both are the same.
    pub(super) from_fortran: Option<unsafe extern "C" fn(c_int) -> H>,
}

impl Table<c_int> {
    /// A library with MPICH's interface, where C's handles are Fortran's numbers.
    pub(super) fn mpich(library: &Library) -> Result<Self, libloading::Error> {
        Self::new(library, Constants::MPICH, None)
    }
}

impl Table<Pointer> {
    /// A library with the standard's interface.
    pub(super) fn standard(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: the type is that of the function in the standard.
        let from_fortran = unsafe { *library.get(c"MPI_Comm_fromint")? };
        Self::new(library, Constants::standard(), Some(from_fortran))
    }

    /// A library with Open MPI's interface.
    pub(super) fn open_mpi(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: the type is that of the function in the standard.
        let from_fortran = unsafe { *library.get(c"MPI_Comm_f2c")? };
        Self::new(library, Constants::open_mpi(library)?, Some(from_fortran))
    }
}

impl<H: Handle> Table<H> {
    fn new(
        library: &Library,
        constants: Constants<H>,
        from_fortran: Option<unsafe extern "C" fn(c_int) -> H>,
    ) -> Result<Self, libloading::Error> {
        // SAFETY: each type is that of the function in the standard, where H is the type of handles in this ABI.
        unsafe {
            Ok(Self {
                constants,
                initialized: *library.get(c"MPI_Initialized")?,
                finalized: *library.get(c"MPI_Finalized")?,
                init_thread: *library.get(c"MPI_Init_thread")?,
                finalize: *library.get(c"MPI_Finalize")?,
                abort: *library.get(c"MPI_Abort")?,
                error_string: *library.get(c"MPI_Error_string")?,
                library_version: *library.get(c"MPI_Get_library_version")?,
                processor_name: *library.get(c"MPI_Get_processor_name")?,
                comm_rank: *library.get(c"MPI_Comm_rank")?,
                comm_size: *library.get(c"MPI_Comm_size")?,
                comm_dup: *library.get(c"MPI_Comm_dup")?,
                comm_free: *library.get(c"MPI_Comm_free")?,
                set_errhandler: *library.get(c"MPI_Comm_set_errhandler")?,
                iallgather: *library.get(c"MPI_Iallgather")?,
                isend: *library.get(c"MPI_Isend")?,
                irecv: *library.get(c"MPI_Irecv")?,
                recv: *library.get(c"MPI_Recv")?,
                testall: *library.get(c"MPI_Testall")?,
                iprobe: *library.get(c"MPI_Iprobe")?,
                from_fortran,
            })
        }
    }

    /// Whether MPI is initialised, and not finalised, in this process.
    ///
    /// # Errors
    /// A message if MPI has been finalised.
    pub(super) fn is_running(&self) -> Result<bool, String> {
        let (mut begun, mut over) = (0, 0);
        // SAFETY: both functions may be called at any time, and write to local integers.
        let status = unsafe { (self.initialized)(&raw mut begun) | (self.finalized)(&raw mut over) };
        match (status, over) {
            (0, 0) => Ok(begun != 0),
            (0, _) => Err("MPI was ended (MPI_Finalize) in this process and can't begin again".into()),
            (status, _) => Err(format!("MPI_Initialized returns {status}")),
        }
    }

    /// The message of a status, unless it is success.
    ///
    /// # Errors
    /// The name of the function, and the library's message.
    pub(super) fn check(&self, function: &str, status: Status) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: the buffer is longer than the longest message.
        let words = text(|place, length| unsafe { (self.error_string)(status, place, length) });
        let words = words.unwrap_or_else(|| format!("error {status}"));
        Err(format!("{function}: {}", words.split_whitespace().collect::<Vec<_>>().join(" ")))
    }
}

/// The text that a function writes into a buffer of the largest length, which is at most 8192 in any library.
pub(super) fn text(call: impl FnOnce(*mut c_char, *mut c_int) -> Status) -> Option<String> {
    let (mut bytes, mut length) = (vec![0_u8; 16 << 10], 0);
    let status = call(bytes.as_mut_ptr().cast(), &raw mut length);
    bytes.truncate(usize::try_from(length).unwrap_or(0));
    let text = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_string();
    (status == 0).then_some(text)
}
