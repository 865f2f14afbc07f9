//! residua's own communicator, a duplicate, so that its messages can't be confused with those of the host program. All
//! operations are nonblocking and then polled: a waiting rank then yields its processor to others, which the blocking
//! functions of most libraries do not.

use super::abi::{Constants, Handle};
use super::find::{Interface, Mpi};
use super::table::{Status, Table, text};
use crate::error::{Error, Result};
use crate::ranks::wait::Waiting;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Tags of messages: the data of an exchange, and a failure.
const DATA: c_int = 7;
const FAULT: c_int = 9;

/// Bytes of the message of a failure: the rank, the length of the cause and the cause.
const FAULT_BYTES: usize = 1024;

/// Bytes of one message of data; longer data is sent in parts, since MPI counts in 32 bits.
const LONGEST: usize = 1 << 30;

/// The status with which MPI ends all ranks after a failure: that of bad input.
const STATUS: c_int = 3;

/// How long a rank that has failed waits for rank 0 to print the error, before it prints it itself.
const TO_TELL: Duration = Duration::from_secs(2);

/// The operations of MPI that ranks use, for any interface of the library.
pub(in crate::ranks) trait Wire: Send + Sync {
    fn rank(&self) -> usize;

    fn ranks(&self) -> usize;

    /// The name and version of the library.
    fn library(&self) -> String;

    /// The name of this machine according to MPI.
    fn machine(&self) -> String;

    /// `all` gets the bytes of all ranks in their order, as many of each as `own` has.
    fn all_gather(&self, waiting: Waiting, own: &[u8], all: &mut [u8]) -> Result<()>;

    /// Sends the bytes for each rank and receives those of each.
    fn exchange(&self, waiting: Waiting, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()>;

    /// Ends all ranks, after rank 0 has printed the error. If rank 0 does not react in time, this rank prints it.
    fn fail(&self, rank: usize, cause: &str) -> !;

    /// Ends all ranks; with a cause, prints the error first.
    fn abort(&self, told: Option<(usize, &str)>) -> !;

    /// Ends all ranks after a delay, in which the rank that prints the error ends them itself.
    fn abort_later(&self) -> !;

    /// Frees the communicator, and finalises MPI if residua initialised it. All ranks call this.
    fn leave(&self);
}

/// The communicator of all processes that the launcher has started; initialises MPI.
///
/// # Errors
/// [`Error::Mpi`] with the function that failed and the library's message.
pub(super) fn world(mpi: &'static Mpi) -> Result<Box<dyn Wire>> {
    fn begun<H: Handle>(table: &'static Table<H>, mpi: &'static Mpi) -> Result<Box<dyn Wire>> {
        let ours = !mpi.is_running()?;
        if ours {
            let (none, mut provided) = (std::ptr::null_mut(), 0);
            let level = table.constants.serialized;
            // SAFETY: MPI is not initialised in this process yet, and it allows null arguments.
            let status = unsafe { (table.init_thread)(none, none.cast(), level, &raw mut provided) };
            table.check("MPI_Init_thread", status).map_err(Error::Mpi)?;
        }
        Ok(Box::new(Communicator::new(table, mpi, table.constants.world, ours)?))
    }
    match &mpi.interface {
        Interface::Integers(table) => begun(table, mpi),
        Interface::Pointers(table) => begun(table, mpi),
    }
}

/// The communicator with this Fortran handle.
///
/// # Errors
/// [`Error::Mpi`] if MPI has not been initialised, and as [`world`].
pub(super) fn of_number(mpi: &'static Mpi, number: c_int) -> Result<Box<dyn Wire>> {
    if !mpi.is_running()? {
        let cause = "a communicator was given before MPI has begun: call MPI_Init first";
        return Err(Error::Mpi(cause.into()));
    }
    match &mpi.interface {
        Interface::Integers(table) => {
            // With MPICH's interface Fortran and C handles are the same.
            Ok(Box::new(Communicator::new(table, mpi, number, false)?))
        }
        Interface::Pointers(table) => {
            let convert = table.from_fortran.ok_or_else(|| {
                Error::Mpi("the MPI library cannot convert communicators from Fortran".into())
            })?;
            // SAFETY: MPI is initialised; if the number is no communicator, the calls below report it.
            let handle = unsafe { convert(number) };
            Ok(Box::new(Communicator::new(table, mpi, handle, false)?))
        }
    }
}

/// A communicator of an MPI library.
struct Communicator<H: Handle> {
    table: &'static Table<H>,
    mpi: &'static Mpi,
    handle: H,
    rank: usize,
    ranks: usize,
    /// True if residua initialised MPI, and so finalises it.
    ours: bool,
    left: AtomicBool,
}

impl<H: Handle> Communicator<H> {
    fn new(table: &'static Table<H>, mpi: &'static Mpi, of: H, ours: bool) -> Result<Self> {
        let check = |function, status| table.check(function, status).map_err(Error::Mpi);
        let (mut handle, mut rank, mut ranks) = (H::NONE, 0, 0);
        // SAFETY: MPI is initialised, `of` is a communicator of the library, and each function writes to local
        // variables.
        unsafe {
            check("MPI_Comm_dup", (table.comm_dup)(of, &raw mut handle))?;
            let returns = table.constants.errors_return;
            check("MPI_Comm_set_errhandler", (table.set_errhandler)(handle, returns))?;
            check("MPI_Comm_rank", (table.comm_rank)(handle, &raw mut rank))?;
            check("MPI_Comm_size", (table.comm_size)(handle, &raw mut ranks))?;
        }
        let (Ok(rank), Ok(ranks)) = (usize::try_from(rank), usize::try_from(ranks)) else {
            return Err(Error::Mpi(format!("rank {rank} of {ranks}")));
        };
        Ok(Self { table, mpi, handle, rank, ranks, ours, left: AtomicBool::new(false) })
    }

    fn constants(&self) -> &Constants<H> {
        &self.table.constants
    }

    /// The status argument of functions whose status is ignored.
    fn ignore(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.constants().ignore)
    }

    fn check(&self, function: &str, status: Status) -> Result<()> {
        self.table.check(function, status).map_err(Error::Mpi)
    }

    /// Returns an error if the communicator has been freed.
    fn alive(&self) -> Result<()> {
        match self.left.load(Ordering::Relaxed) {
            true => Err(Error::Mpi("the communicator was freed already".into())),
            false => Ok(()),
        }
    }

    /// Waits for operations that have begun. It returns only once they are done, because MPI may write into the
    /// caller's memory until then; after an error it can only end all ranks.
    fn finish(&self, waiting: Waiting, begun: Result<()>, requests: &mut [H]) {
        let finish = || {
            begun?;
            waiting.until(|| self.are_done(requests), || self.look())
        };
        if let Err(error) = finish() {
            self.abort(Some((self.rank, &error.to_string())));
        }
    }

    fn are_done(&self, requests: &mut [H]) -> Result<bool> {
        let mut done = 0;
        // SAFETY: the requests belong to this library and are in the slice. There are two for each rank and each part
        // of its bytes, far fewer than 2^31.
        let status = unsafe {
            (self.table.testall)(requests.len() as c_int, requests.as_mut_ptr(), &raw mut done, self.ignore())
        };
        self.check("MPI_Testall", status)?;
        Ok(done != 0)
    }

    /// Rank 0 checks whether another one has failed; if so, it prints the error and ends all.
    fn look(&self) -> Result<()> {
        if self.rank != 0 {
            return Ok(());
        }
        let (table, any, mut there) = (self.table, self.constants().any_source, 0);
        // SAFETY: the communicator belongs to this rank, and MPI allows the status to be omitted.
        let status = unsafe { (table.iprobe)(any, FAULT, self.handle, &raw mut there, self.ignore()) };
        self.check("MPI_Iprobe", status)?;
        if there == 0 {
            return Ok(());
        }
        let (mut bytes, byte) = ([0_u8; FAULT_BYTES], self.constants().byte);
        let (place, length) = (bytes.as_mut_ptr().cast(), FAULT_BYTES as c_int);
        // SAFETY: a message of FAULT_BYTES has arrived, and the buffer is large enough.
        let status = unsafe { (table.recv)(place, length, byte, any, FAULT, self.handle, self.ignore()) };
        self.check("MPI_Recv", status)?;
        let (rank, cause) = fault_in(&bytes);
        self.abort(Some((rank, &cause)))
    }

    /// Begins to send or receive parts of at most `LONGEST` bytes.
    fn begin(&self, requests: &mut Vec<H>, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()> {
        let byte = self.constants().byte;
        for (other, bytes) in receive.iter_mut().enumerate().filter(|(other, _)| *other != self.rank) {
            for part in bytes.chunks_mut(LONGEST) {
                let (place, length) = (part.as_mut_ptr().cast(), part.len() as c_int);
                let mut request = H::NONE;
                let (comm, irecv) = (self.handle, self.table.irecv);
                // SAFETY: the caller keeps the part until `finish` returns, which it does once all transfers are
                // complete.
                let status =
                    unsafe { irecv(place, length, byte, other as c_int, DATA, comm, &raw mut request) };
                self.check("MPI_Irecv", status)?;
                requests.push(request);
            }
        }
        for (other, bytes) in send.iter().enumerate().filter(|(other, _)| *other != self.rank) {
            for part in bytes.chunks(LONGEST) {
                let (place, length) = (part.as_ptr().cast(), part.len() as c_int);
                let mut request = H::NONE;
                let (comm, isend) = (self.handle, self.table.isend);
                // SAFETY: as for the receives.
                let status =
                    unsafe { isend(place, length, byte, other as c_int, DATA, comm, &raw mut request) };
                self.check("MPI_Isend", status)?;
                requests.push(request);
            }
        }
        Ok(())
    }
}

impl<H: Handle> Wire for Communicator<H> {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn library(&self) -> String {
        // SAFETY: the buffer is longer than the longest version text.
        let version = text(|place, length| unsafe { (self.table.library_version)(place, length) });
        let version = version.unwrap_or_default();
        let words: Vec<&str> =
            version.split([',', '\n']).next().unwrap_or_default().split_whitespace().collect();
        let file = self.mpi.file.file_name().unwrap_or_default().to_string_lossy();
        format!("{} ({file})", words.join(" "))
    }

    fn machine(&self) -> String {
        // SAFETY: the buffer is longer than the longest name of a processor.
        text(|place, length| unsafe { (self.table.processor_name)(place, length) }).unwrap_or_default()
    }

    fn all_gather(&self, waiting: Waiting, own: &[u8], all: &mut [u8]) -> Result<()> {
        self.alive()?;
        Error::check_dimension("bytes of all ranks", own.len() * self.ranks, all.len())?;
        let length = c_int::try_from(own.len());
        let length =
            length.map_err(|_| Error::Mpi(format!("{} bytes are too many for one message", own.len())))?;
        let (byte, mut request) = (self.constants().byte, [H::NONE]);
        let (from, to) = (own.as_ptr().cast::<c_char>(), all.as_mut_ptr().cast::<c_char>());
        let (iallgather, place) = (self.table.iallgather, &raw mut request[0]);
        // SAFETY: the caller keeps both buffers until `finish` returns, which it does once all transfers are complete.
        // They have the lengths that are passed.
        let status =
            unsafe { iallgather(from.cast(), length, byte, to.cast(), length, byte, self.handle, place) };
        self.finish(waiting, self.check("MPI_Iallgather", status), &mut request);
        Ok(())
    }

    fn exchange(&self, waiting: Waiting, send: &[&[u8]], receive: &mut [&mut [u8]]) -> Result<()> {
        self.alive()?;
        Error::check_dimension("messages to ranks", self.ranks, send.len())?;
        Error::check_dimension("messages of ranks", self.ranks, receive.len())?;
        let own = send[self.rank];
        Error::check_dimension("bytes to oneself", own.len(), receive[self.rank].len())?;
        receive[self.rank].copy_from_slice(own);
        let mut requests = Vec::new();
        let begun = self.begin(&mut requests, send, receive);
        self.finish(waiting, begun, &mut requests);
        Ok(())
    }

    fn fail(&self, rank: usize, cause: &str) -> ! {
        if self.rank > 0 && self.alive().is_ok() {
            // MPI may read it as long as this process lives.
            let bytes: &'static [u8] = Box::leak(Box::new(fault(rank, cause)));
            let (place, length, byte) = (bytes.as_ptr().cast(), bytes.len() as c_int, self.constants().byte);
            let (mut request, comm) = ([H::NONE], self.handle);
            let start = Instant::now();
            // SAFETY: the bytes are leaked, so they stay valid.
            let sent =
                unsafe { (self.table.isend)(place, length, byte, 0, FAULT, comm, &raw mut request[0]) };
            // If the message arrives, this process is ended. If rank 0 does not print errors, ranks that fail at the
            // same time print theirs one after another.
            let patience =
                TO_TELL + Duration::from_millis(100) * u32::try_from(self.rank).unwrap_or(0).min(50);
            while sent == 0 && start.elapsed() < patience {
                // The library makes progress with sending while it is polled.
                let _ = self.are_done(&mut request);
                thread::sleep(Duration::from_millis(1));
            }
        }
        self.abort(Some((rank, cause)))
    }

    fn abort(&self, told: Option<(usize, &str)>) -> ! {
        if let Some((rank, cause)) = told {
            use std::io::Write;
            let cause: Vec<&str> = cause.lines().map(str::trim).collect();
            let line = format!("residua: rank {rank} of {}: {}\n", self.ranks, cause.join(" "));
            // If standard error fails too, nothing more can be done.
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
        if self.alive().is_ok() {
            // SAFETY: the communicator belongs to this rank.
            let _ = unsafe { (self.table.abort)(self.handle, STATUS) };
        }
        // The standard does not guarantee that MPI ends this process.
        std::process::exit(STATUS)
    }

    fn abort_later(&self) -> ! {
        thread::sleep(TO_TELL);
        self.abort(None)
    }

    fn leave(&self) {
        if self.left.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut handle = self.handle;
        // SAFETY: the communicator belongs to this rank, and no transfer is pending on it. MPI is finalised only if
        // this library has initialised it. Errors are ignored, since the work is done.
        unsafe {
            let _ = (self.table.comm_free)(&raw mut handle);
            if self.ours {
                let _ = (self.table.finalize)();
            }
        }
    }
}

/// The message of a failure.
fn fault(rank: usize, cause: &str) -> [u8; FAULT_BYTES] {
    let mut bytes = [0; FAULT_BYTES];
    let mut length = cause.len().min(FAULT_BYTES - 16);
    while !cause.is_char_boundary(length) {
        length -= 1;
    }
    bytes[..8].copy_from_slice(&(rank as u64).to_le_bytes());
    bytes[8..16].copy_from_slice(&(length as u64).to_le_bytes());
    bytes[16..16 + length].copy_from_slice(&cause.as_bytes()[..length]);
    bytes
}

/// The rank and the cause in such a message.
fn fault_in(bytes: &[u8; FAULT_BYTES]) -> (usize, String) {
    let number = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word) as usize
    };
    let length = number(8).min(FAULT_BYTES - 16);
    (number(0), String::from_utf8_lossy(&bytes[16..16 + length]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_goes_through_its_message() {
        assert_eq!(fault_in(&fault(3, "no more memory")), (3, "no more memory".to_string()));
        let (rank, cause) = fault_in(&fault(1, &"ü".repeat(2000)));
        assert_eq!((rank, cause.len(), cause.chars().all(|letter| letter == 'ü')), (1, 1008, true));
    }
}
