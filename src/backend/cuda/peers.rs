//! Shared-memory windows: memory of a GPU that processes with other GPUs of the machine can write. Sums over all ranks
//! and halos go through them.

use super::driver::call;
use super::launch::{kernels, passed};
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, tuning};
use crate::backend::{Backend, HaloProduct, OffsetsRef};
use crate::error::{Error, Result};
use crate::scalar::Scalar;
use cudarc::driver::sys;

mod kernel {
    use super::*;
    kernels! {
        "peers.cu", types(T: Scalar as SCALAR);
        fn peers_sum(
            way: Way<'_>,
            count: usize,
            sums: &mut Slice<T>,
        );
        fn peers_send(
            way: Way<'_>,
            room: usize,
            starts: &Slice<u64>,
            asked: Option<&Slice<u32>>,
            send: &Slice<T>,
        );
        fn peers_send_words(
            way: Way<'_>,
            room: usize,
            count: usize,
            words: &Slice<u32>,
        );
        fn peers_or_words(
            way: Way<'_>,
            room: usize,
            count: usize,
            words: &mut Slice<u32>,
        );
        fn peers_drop(way: Way<'_>);
        fn peers_receive(
            way: Way<'_>,
            room: usize,
            starts: &Slice<u64>,
            halo: &mut Slice<T>,
        );
    }
    kernels! {
        "peers_rows.cu", types(T: Scalar as SCALAR; offsets as OFFSET);
        fn peers_rows(
            way: Way<'_>,
            room: usize,
            starts: &Slice<u64>,
            count: usize,
            rows: &Slice<u32>,
            offsets: OffsetsRef<'_, Cuda>,
            columns: &Slice<u32>,
            values: &Slice<T>,
            alpha: T,
            d: Option<&Slice<T::Real>>,
            x: Option<&Slice<T>>,
            y: &mut Slice<T>,
            xy: Option<&mut Slice<T>>,
            publish: u64,
        );
    }
}

/// The number of bytes in the handle of a window.
const HANDLE: usize = 64;

/// This process's window, which other processes can open. It is a separate allocation, because memory of the driver's
/// pool can't be shared.
#[derive(Debug)]
pub struct Window {
    cuda: Cuda,
    address: u64,
    handle: [u8; HANDLE],
    /// The number of bytes for the halo from each rank.
    room: usize,
}

/// This rank, the number of ranks, their windows and the counters of exchanges, as kernels take them: null if sums come
/// from memory.
pub(super) struct Way<'a> {
    rank: u64,
    ranks: u64,
    windows: Option<&'a Slice<u64>>,
    rounds: Option<&'a mut Slice<u64>>,
}

passed!(['a] Way<'a>: rank as u64, ranks as u64, windows as Option<&'a Slice<u64>>,
    rounds as Option<&'a mut Slice<u64>>);

impl Way<'_> {
    /// No way to other ranks.
    pub(super) fn none() -> Self {
        Self { rank: 0, ranks: 1, windows: None, rounds: None }
    }
}

/// The windows of all ranks, mapped into this process, and counters of the exchanges so far.
#[derive(Debug)]
pub struct Windows {
    cuda: Cuda,
    rank: usize,
    own: Window,
    /// The opened windows of other ranks, kept open as long as their addresses are used.
    _opened: Vec<Opened>,
    addresses: DeviceVec<u64>,
    state: DeviceVec<u64>,
}

/// The opened window of another process.
#[derive(Debug)]
struct Opened {
    cuda: Cuda,
    address: u64,
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: opened by `Windows::open`, and all work of this process that used it has finished.
        let _ = self.cuda.0.bind().map(|()| unsafe { sys::cuIpcCloseMemHandle(self.address) });
    }
}

impl Window {
    /// Allocates a window for this number of ranks, with `room` bytes for the halo from each.
    ///
    /// # Errors
    /// If memory runs out, or if the driver can't share it.
    pub fn new(cuda: Cuda, ranks: usize, room: usize) -> Result<Self> {
        let room = room.next_multiple_of(256);
        let bytes = 16 * ranks + 2 * ranks * tuning::PEERS_MOST * 32 + 2 * ranks * room;
        let (mut address, mut name) = (0, sys::CUipcMemHandle_st { reserved: [0; HANDLE] });
        cuda.0.bind()?;
        // SAFETY: the call writes one address.
        unsafe { call!(&cuda.0.name, cuMemAlloc_v2(&raw mut address, bytes))? };
        // From here on, dropping `made` frees the memory if a call fails.
        let mut made = Self { cuda, address, handle: [0; HANDLE], room };
        // SAFETY: clears the allocation and writes its IPC handle.
        unsafe {
            call!(&cuda.0.name, cuMemsetD8_v2(address, 0, bytes))?;
            call!(&cuda.0.name, cuIpcGetMemHandle(&raw mut name, address))?;
            call!(&cuda.0.name, cuCtxSynchronize())?;
        }
        made.handle = name.reserved.map(|byte| byte as u8);
        Ok(made)
    }

    /// Returns the handle by which other processes of this machine can open the window.
    pub fn handle(&self) -> &[u8] {
        &self.handle
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated by `new`, and nothing in this process uses it any more. A destructor can't
        // report errors.
        let _ = self.cuda.0.bind().map(|()| unsafe { sys::cuMemFree_v2(self.address) });
    }
}

impl Windows {
    /// Opens the windows with these handles, one from each rank. This rank's own window is `own`.
    ///
    /// # Errors
    /// If a GPU can't access the memory of another.
    pub fn open(own: Window, rank: usize, handles: &[Vec<u8>]) -> Result<Self> {
        let cuda = own.cuda;
        cuda.0.bind()?;
        let (mut opened, mut addresses) = (Vec::new(), Vec::new());
        for (other, handle) in handles.iter().enumerate() {
            if other == rank {
                addresses.push(own.address);
                continue;
            }
            let mut name = sys::CUipcMemHandle_st { reserved: [0; HANDLE] };
            for (to, &byte) in name.reserved.iter_mut().zip(handle) {
                *to = byte as _;
            }
            let (mut address, lazily) = (0, sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
            // SAFETY: the call writes one address; the driver checks the handle.
            unsafe {
                call!(&cuda.0.name, cuIpcOpenMemHandle_v2(&raw mut address, name, lazily as u32))?;
            }
            opened.push(Opened { cuda, address });
            addresses.push(address);
        }
        let (addresses, state) = (cuda.upload(addresses)?, cuda.zeros(8 + 2 * tuning::ROWS_BLOCKS)?);
        Ok(Self { cuda, rank, own, _opened: opened, addresses, state })
    }

    /// Returns the maximum number of bytes in a halo from each rank.
    pub fn room(&self) -> usize {
        self.own.room
    }

    pub(super) fn ranks(&self) -> u64 {
        self.addresses.len() as u64
    }

    pub(super) fn cuda(&self) -> Cuda {
        self.cuda
    }

    /// Returns the arguments for the next exchange.
    pub(super) fn way(&mut self) -> Way<'_> {
        let (rank, ranks) = (self.rank as u64, self.ranks());
        Way { rank, ranks, windows: Some(&self.addresses), rounds: Some(&mut self.state) }
    }

    /// Marks the last sent exchange as received, if it was not received.
    ///
    /// # Errors
    /// If the device fails.
    pub fn drop_exchange<T: Scalar>(&mut self) -> Result<()> {
        kernel::peers_drop::<T>(self.cuda, tuning::peers(1), self.way())
    }

    /// Replaces every scalar by its sum over all ranks.
    ///
    /// # Errors
    /// If the device fails.
    pub fn all_sum<T: Scalar>(&mut self, sums: &mut Slice<T>) -> Result<()> {
        let mut first = 0;
        while first < sums.len() {
            let count = (sums.len() - first).min(tuning::PEERS_MOST);
            let part = Cuda::part_mut(sums, first..first + count);
            kernel::peers_sum(self.cuda, tuning::peers(1), self.way(), count, part)?;
            first += count;
        }
        Ok(())
    }

    /// Combines words of all ranks by bitwise or. The windows must be large enough and must not be used for anything
    /// else.
    ///
    /// # Errors
    /// If the windows are too small, or if the device fails.
    pub fn all_or(&mut self, words: &mut Slice<u32>) -> Result<()> {
        let (cuda, room, count) = (self.cuda, self.own.room, words.len());
        if 4 * count > room {
            return Err(Error::InvalidArgument(format!("{count} words in a window of {room} bytes")));
        }
        // The kernel sends words, so the scalar type does not matter.
        let shape = tuning::peers_words(words.len());
        kernel::peers_send_words::<f32>(cuda, shape, self.way(), room, count, words)?;
        kernel::peers_or_words::<f32>(cuda, shape, self.way(), room, count, words)
    }

    /// Writes entries of `send` into the windows of other ranks: those with indices `asked`, or all of them. The
    /// entries for rank p begin at `starts[p]`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn send<T: Scalar>(
        &mut self,
        starts: &Slice<u64>,
        asked: Option<&Slice<u32>>,
        send: &Slice<T>,
    ) -> Result<()> {
        let (cuda, room) = (self.cuda, self.own.room);
        let shape = tuning::peers(asked.map_or(send.len(), |asked| asked.len()));
        kernel::peers_send(cuda, shape, self.way(), room, starts, asked, send)
    }

    /// Adds the products of rows with the entries that other ranks have sent. Those of rank p begin at `starts[p]`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn add_rows<T: Scalar>(&mut self, starts: &Slice<u64>, halo: HaloProduct<'_, T, Cuda>) -> Result<()> {
        let HaloProduct { rows, matrix, alpha, d, y, dot, publish } = halo;
        let (x, xy) = dot.unzip();
        let (cuda, room) = (self.cuda, self.own.room);
        let shape = tuning::peers_rows(rows.len());
        kernel::peers_rows(
            cuda,
            shape,
            self.way(),
            room,
            starts,
            rows.len(),
            rows,
            matrix.offsets,
            matrix.indices,
            matrix.values,
            alpha,
            d,
            x,
            y,
            xy,
            u64::from(publish),
        )
    }

    /// Copies the entries that other ranks have sent to `halo`. Those of rank p begin at `starts[p]`.
    ///
    /// # Errors
    /// If the device fails.
    pub fn receive<T: Scalar>(&mut self, starts: &Slice<u64>, halo: &mut Slice<T>) -> Result<()> {
        let (cuda, room) = (self.cuda, self.own.room);
        kernel::peers_receive(cuda, tuning::peers(halo.len()), self.way(), room, starts, halo)
    }
}

impl Drop for Windows {
    /// Waits until no work uses a window any more.
    fn drop(&mut self) {
        let _ = self.cuda.synchronize();
    }
}
