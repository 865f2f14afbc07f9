//! An open device with one of its streams, and the state that operations of the stream share.

use super::chip;
use super::modules::Kernels;
use super::staging::Staging;
use super::stream::Stream;
use super::workspace::Workspaces;
use crate::error::{CudaError, Result};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::AtomicU32;

/// An open device with one of its streams. There is one for each device and stream, as long as the process lives. All
/// handles of it share its stream, so the order of calls is the order of execution.
pub(super) struct Device {
    stream: &'static Stream,
    /// The loaded kernels, which all streams share.
    pub(super) kernels: &'static Kernels,
    pub(super) staging: Staging,
    pub(super) workspaces: Workspaces,
    /// A bit for each group of threads: set if a thread of the group has enqueued work that counts indices out of range
    /// since the last synchronisation.
    pub(super) checks_indices: AtomicU32,
}

impl Deref for Device {
    type Target = Stream;
    fn deref(&self) -> &Stream {
        self.stream
    }
}

static DEVICES: Mutex<BTreeMap<(usize, usize), &'static Device>> = Mutex::new(BTreeMap::new());

impl Device {
    /// Returns the device with this number and one of its streams. The first call opens it.
    pub(super) fn open(ordinal: usize, number: usize) -> Result<&'static Device> {
        let mut devices = lock(&DEVICES);
        if let Some(device) = devices.get(&(ordinal, number)) {
            return Ok(device);
        }
        let count = chip::count()?;
        if count == 0 {
            return Err(CudaError::NoDevice.into());
        }
        if ordinal >= count {
            return Err(CudaError::NoSuchDevice { ordinal, count }.into());
        }
        let (kernels, usage) = match devices.get(&(ordinal, 0)) {
            Some(first) => (first.kernels, first.pool.usage()),
            None => (&*Box::leak(Box::default()), &*Box::leak(Box::default())),
        };
        let stream = Stream::open(ordinal, number, usage)?;
        let device = Box::leak(Box::new(Device {
            stream,
            kernels,
            staging: Staging::new(stream),
            workspaces: Workspaces::new(stream)?,
            checks_indices: AtomicU32::new(0),
        }));
        devices.insert((ordinal, number), device);
        Ok(device)
    }
}
