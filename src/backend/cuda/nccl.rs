//! NCCL: sums and exchanges between GPUs that can't share memory, such as those of several machines.
//!
//! The library is loaded when the first communicator is created: the one that the process has already loaded (for
//! example PyTorch's), else the file that `RESIDUA_NCCL` names, else one in a toolkit, in Python's packages or on the
//! loader's path. Six of its functions move data. They are enqueued on the backend's stream, so they can be recorded.
//!
//! For a sum, the terms of all ranks are gathered on each rank, and a kernel adds them in the order of ranks, so sums
//! have the same bits as those through shared-memory windows.

use super::find::{self, Wanted};
use super::launch::kernels;
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, tuning};
use crate::backend::Backend;
use crate::error::{CudaError, Error, Result};
use crate::scalar::Scalar;
use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

kernels! {
    "peers.cu", types(T: Scalar as SCALAR);
    /// `sums[k]` = `all[k]` + `all[count + k]` + ..., added in the order of ranks.
    fn peers_add(ranks: u64, count: usize, all: u64, sums: &mut Slice<T>);
}

/// How the library is found, unless the process has loaded it.
const NCCL: Wanted =
    Wanted { variable: Some("RESIDUA_NCCL"), file: "libnccl.so", releases: &["2"], packages: &["nccl/lib"] };

/// The number of bytes in the identifier of a communicator.
const ID: usize = 128;

/// NCCL's identifier of a communicator, as in nccl.h.
#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([c_char; ID]);

type Comm = *mut c_void;
type Code = c_int;
type Stream = *mut c_void;

/// `ncclInt8`, because all data are moved as bytes.
const BYTES: c_int = 0;

/// With this flag the loader only returns a library that is already loaded.
const RTLD_NOLOAD: c_int = 4;

/// The functions of the library.
struct Table {
    version: unsafe extern "C" fn(*mut c_int) -> Code,
    error_string: unsafe extern "C" fn(Code) -> *const c_char,
    async_error: unsafe extern "C" fn(Comm, *mut Code) -> Code,
    unique_id: unsafe extern "C" fn(*mut UniqueId) -> Code,
    init_rank: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> Code,
    destroy: unsafe extern "C" fn(Comm) -> Code,
    all_gather: unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, Comm, Stream) -> Code,
    send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, Stream) -> Code,
    receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, Stream) -> Code,
    group_start: unsafe extern "C" fn() -> Code,
    group_end: unsafe extern "C" fn() -> Code,
    /// Never unloaded, because the library has threads.
    _library: Library,
}

impl Table {
    /// Returns the library of this process.
    fn get() -> Result<&'static Table> {
        static FOUND: OnceLock<Result<Table, String>> = OnceLock::new();
        let found = FOUND.get_or_init(Self::find);
        found.as_ref().map_err(|told| Error::Unsupported(told.clone()))
    }

    fn find() -> Result<Table, String> {
        let name = PathBuf::from("libnccl.so.2");
        if let Ok(loaded) = Self::open(&name, RTLD_LAZY | RTLD_NOLOAD) {
            return Ok(loaded);
        }
        let (files, searched) = find::candidates(NCCL);
        let opened = files.iter().find_map(|file| Self::open(file, RTLD_LAZY | RTLD_LOCAL).ok());
        opened.ok_or_else(|| {
            format!(
                "GPUs that share no memory without NCCL: `pip install nvidia-nccl-cu13`, or name the library in \
                 RESIDUA_NCCL; looked in {searched}"
            )
        })
    }

    fn open(file: &Path, flags: c_int) -> Result<Table, String> {
        let told = |error: libloading::Error| format!("{}: {error}", file.display());
        // SAFETY: the file has NCCL's name, or the user says that it is NCCL, so its initialisers are those that run in
        // any program linked to NCCL. The types are those of nccl.h.
        unsafe {
            let library = Library::open(Some(file), flags).map_err(told)?;
            Ok(Table {
                version: *library.get(c"ncclGetVersion").map_err(told)?,
                error_string: *library.get(c"ncclGetErrorString").map_err(told)?,
                async_error: *library.get(c"ncclCommGetAsyncError").map_err(told)?,
                unique_id: *library.get(c"ncclGetUniqueId").map_err(told)?,
                init_rank: *library.get(c"ncclCommInitRank").map_err(told)?,
                destroy: *library.get(c"ncclCommDestroy").map_err(told)?,
                all_gather: *library.get(c"ncclAllGather").map_err(told)?,
                send: *library.get(c"ncclSend").map_err(told)?,
                receive: *library.get(c"ncclRecv").map_err(told)?,
                group_start: *library.get(c"ncclGroupStart").map_err(told)?,
                group_end: *library.get(c"ncclGroupEnd").map_err(told)?,
                _library: library,
            })
        }
    }

    fn check(&self, call: &'static str, device: &str, code: Code) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library returns a static, terminated string.
        let text = unsafe { (self.error_string)(code).as_ref().map(|text| CStr::from_ptr(text)) };
        let cause = text.map_or_else(|| format!("code {code}"), |text| text.to_string_lossy().into_owned());
        Err(CudaError::Call { call, device: device.into(), cause }.into())
    }
}

/// Creates an identifier for a communicator of all ranks. One rank calls this and sends the result to the others.
///
/// # Errors
/// [`Error::Unsupported`] if there is no NCCL, or if it fails.
pub fn unique_id() -> Result<Vec<u8>> {
    let (table, mut id) = (Table::get()?, UniqueId([0; ID]));
    // SAFETY: the call writes one identifier.
    let code = unsafe { (table.unique_id)(&raw mut id) };
    table.check("ncclGetUniqueId", "this machine", code)?;
    Ok(id.0.iter().map(|&byte| byte.cast_unsigned()).collect())
}

/// This process as a rank of a communicator.
pub struct Nccl {
    table: &'static Table,
    cuda: Cuda,
    comm: Comm,
    rank: usize,
    ranks: usize,
    /// Space for the scalars of all ranks in a sum.
    gathered: DeviceVec<u64>,
}

// SAFETY: any thread may use a communicator, one at a time: all functions take `&mut self`.
unsafe impl Send for Nccl {}

impl std::fmt::Debug for Nccl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nccl {}, rank {} of {}", self.version(), self.rank, self.ranks)
    }
}

impl Nccl {
    /// Joins the communicator with this identifier. All ranks must call this.
    ///
    /// # Errors
    /// If there is no NCCL, or if it fails.
    pub fn join(cuda: Cuda, id: &[u8], rank: usize, ranks: usize) -> Result<Self> {
        let (table, mut name) = (Table::get()?, UniqueId([0; ID]));
        Error::check_dimension("bytes of a communicator's name", ID, id.len())?;
        name.0.iter_mut().zip(id).for_each(|(to, &byte)| *to = byte.cast_signed());
        let gathered = cuda.zeros(2 * tuning::PEERS_MOST * ranks)?;
        cuda.0.bind()?;
        let mut comm = std::ptr::null_mut();
        // SAFETY: the call writes one handle, and the GPU's context is current.
        let code = unsafe { (table.init_rank)(&raw mut comm, ranks as c_int, name, rank as c_int) };
        table.check("ncclCommInitRank", &cuda.0.name, code)?;
        let mut made = Self { table, cuda, comm, rank, ranks, gathered };
        // The ranks are connected during the first call, which must not be recorded.
        made.all_sum(&mut *cuda.zeros::<f64>(1)?)?;
        cuda.synchronize()?;
        Ok(made)
    }

    /// Returns the library's version as text.
    pub fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the call writes one number.
        unsafe { (self.table.version)(&raw mut version) };
        format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
    }

    fn check(&self, call: &'static str, code: Code) -> Result<()> {
        self.table.check(call, &self.cuda.0.name, code)
    }

    fn stream(&self) -> Stream {
        self.cuda.0.stream().cast()
    }

    /// Checks for errors that the library has found in the background.
    ///
    /// # Errors
    /// If another rank has ended, or if the connection to it is broken.
    pub fn check_all(&self) -> Result<()> {
        let mut code = 0;
        // SAFETY: the call writes one code.
        let told = unsafe { (self.table.async_error)(self.comm, &raw mut code) };
        self.check("ncclCommGetAsyncError", told)?;
        self.check("NCCL", code)
    }

    /// Replaces every scalar by its sum over all ranks, added in the order of ranks.
    ///
    /// # Errors
    /// If NCCL or the device fails.
    pub fn all_sum<T: Scalar>(&mut self, sums: &mut Slice<T>) -> Result<()> {
        let mut first = 0;
        while first < sums.len() {
            let count = (sums.len() - first).min(tuning::PEERS_MOST);
            let part = Cuda::part_mut(sums, first..first + count);
            let all = self.gathered.address();
            // SAFETY: `gathered` has space for `PEERS_MOST` scalars of 16 bytes from each rank. Both buffers live until
            // the stream has finished, even in a recording, which borrows the buffers that it uses.
            let code = unsafe {
                (self.table.all_gather)(
                    part.address() as *const c_void,
                    all as *mut c_void,
                    part.bytes(),
                    BYTES,
                    self.comm,
                    self.stream(),
                )
            };
            self.check("ncclAllGather", code)?;
            peers_add::<T>(self.cuda, tuning::peers(1), self.ranks as u64, count, all, part)?;
            first += count;
        }
        Ok(())
    }

    /// Sends `counts[0]` entries to the ranks and receives `counts[1]` entries from them, both in the order of ranks.
    ///
    /// # Errors
    /// If NCCL or the device fails.
    pub fn exchange<T: Scalar>(
        &mut self,
        counts: [&[usize]; 2],
        send: &Slice<T>,
        receive: &mut Slice<T>,
    ) -> Result<()> {
        Error::check_dimension("entries to send", counts[0].iter().sum(), send.len())?;
        Error::check_dimension("entries to receive", counts[1].iter().sum(), receive.len())?;
        let (mut from, mut to) = (send.address(), receive.address());
        // SAFETY: starts a group, which always ends below.
        self.check("ncclGroupStart", unsafe { (self.table.group_start)() })?;
        let mut outcome = Ok(());
        for rank in 0..self.ranks {
            let [sent, received] = counts.map(|counts| counts[rank] * size_of::<T>());
            if sent > 0 && outcome.is_ok() {
                // SAFETY: the sum of the counts is the length of `send`, which lives until the stream has finished.
                let code = unsafe {
                    (self.table.send)(
                        from as *const c_void,
                        sent,
                        BYTES,
                        rank as c_int,
                        self.comm,
                        self.stream(),
                    )
                };
                outcome = self.check("ncclSend", code);
            }
            if received > 0 && outcome.is_ok() {
                // SAFETY: as above, for `receive`.
                let code = unsafe {
                    (self.table.receive)(
                        to as *mut c_void,
                        received,
                        BYTES,
                        rank as c_int,
                        self.comm,
                        self.stream(),
                    )
                };
                outcome = self.check("ncclRecv", code);
            }
            (from, to) = (from + sent as u64, to + received as u64);
        }
        // SAFETY: ends the group that was started above.
        let ended = self.check("ncclGroupEnd", unsafe { (self.table.group_end)() });
        outcome.and(ended)
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        let _ = self.cuda.synchronize();
        // SAFETY: the communicator was created by `join`, and nothing in this process uses it any more.
        unsafe { (self.table.destroy)(self.comm) };
    }
}
