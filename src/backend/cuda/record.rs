//! Recorded work: the body runs once under stream capture, and the enqueued work is replayed as a graph.
//!
//! While a thread records, its operations go to a separate stream of the recording, so other threads are not disturbed.
//! Everything that the body uses must outlive the graph. For borrowed buffers, their lifetime ensures this. The body
//! itself, with the buffers that it owns, moves into the recording. The recording also keeps temporary memory that is
//! allocated during capture, and buffers that are dropped during capture. Capture is relaxed, so a kernel that is used
//! for the first time can be compiled and loaded meanwhile.

use super::driver::call;
use super::pool::Allocation;
use super::{Cuda, capture};
use crate::backend::Replay;
use crate::error::{CudaError, Result};
use cudarc::driver::sys::{self, CUgraphExec, CUstream, CUstreamCaptureMode};
use std::fmt;

/// Returns an error while this thread is recording. For operations that would wait for the device, or that pass host
/// memory to a graph that outlives it.
pub(super) fn forbid(cuda: Cuda, what: &'static str) -> Result<()> {
    match capture::stream(cuda.0.ordinal) {
        Some(_) => Err(CudaError::NotRecordable { what }.into()),
        None => Ok(()),
    }
}

/// Memory that is freed after the graph has been destroyed.
struct Kept {
    cuda: Cuda,
    allocations: Vec<Allocation>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.allocations.drain(..).for_each(|allocation| self.cuda.0.free(allocation));
    }
}

/// A graph of the work that a body has enqueued.
pub struct Recording<'a> {
    cuda: Cuda,
    graph: Graph,
    _kept: Kept,
    _body: Box<dyn FnMut() -> Result<()> + Send + 'a>,
}

/// An executable graph.
struct Graph(CUgraphExec);

// SAFETY: the driver accepts graphs from any thread, one at a time, which `&mut self` of `replay` ensures.
unsafe impl Send for Graph {}
// SAFETY: no method uses a shared reference.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: created by instantiation and destroyed once; the driver waits for launches that are running.
        let _ = unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

impl fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording on {}", self.cuda.0.name)
    }
}

impl Replay for Recording<'_> {
    fn replay(&mut self) -> Result<()> {
        if capture::stream(self.cuda.0.ordinal).is_some() {
            return Err(CudaError::NotRecordable { what: "a replay" }.into());
        }
        self.cuda.0.bind()?;
        self.cuda.0.note_replay();
        // Another thread may be between the two launches of a product, and the recording may contain such products too.
        let _pieces = self.cuda.0.workspaces.pieces(0)?;
        // SAFETY: the graph and the stream are valid. Everything that the graph refers to is kept or borrowed by
        // `self`, and freed only after this launch, on the same stream.
        unsafe { call!(&self.cuda.0.name, cuGraphLaunch(self.graph.0, self.cuda.0.main_stream())) }
    }
}

/// Ends the capture of a stream, even if the body panics.
struct Capture {
    cuda: Cuda,
    stream: CUstream,
}

impl Drop for Capture {
    fn drop(&mut self) {
        drop(Kept { cuda: self.cuda, allocations: capture::end() });
        // SAFETY: the stream was made by `record`, and nothing else uses it. Destroying it also abandons a capture that
        // has not ended.
        unsafe {
            let mut graph = std::ptr::null_mut();
            let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
            let _ = sys::cuStreamIsCapturing(self.stream, &raw mut status);
            if status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
                let _ = sys::cuStreamEndCapture(self.stream, &raw mut graph);
                if !graph.is_null() {
                    let _ = sys::cuGraphDestroy(graph);
                }
            }
            let _ = sys::cuStreamDestroy_v2(self.stream);
        }
    }
}

pub(super) fn record<'a>(cuda: Cuda, body: impl FnMut() -> Result<()> + Send + 'a) -> Result<Recording<'a>> {
    let mut body: Box<dyn FnMut() -> Result<()> + Send + 'a> = Box::new(body);
    let device = cuda.0;
    forbid(cuda, "a recording")?;
    device.bind()?;
    let mut stream = std::ptr::null_mut();
    // SAFETY: the call writes one handle; the stream does not wait for the default stream.
    unsafe { call!(&device.name, cuStreamCreate(&raw mut stream, 1)) }?;
    let under_way = Capture { cuda, stream };
    // SAFETY: this stream is used by `record` alone, and has no pending work.
    unsafe {
        call!(
            &device.name,
            cuStreamBeginCapture_v2(stream, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)
        )
    }?;
    capture::begin(device.ordinal, stream);
    let outcome = body();
    let kept = Kept { cuda, allocations: capture::end() };
    outcome?;
    let graph = instantiate(&under_way)?;
    Ok(Recording { cuda, graph, _kept: kept, _body: body })
}

fn instantiate(capture: &Capture) -> Result<Graph> {
    let name = &capture.cuda.0.name;
    let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: this ends the capture that `record` began on this thread. Instantiation copies the graph, which is then
    // destroyed; each handle is written before it is used.
    unsafe {
        call!(name, cuStreamEndCapture(capture.stream, &raw mut graph))?;
        let result = call!(name, cuGraphInstantiateWithFlags(&raw mut executable, graph, 0));
        let _ = sys::cuGraphDestroy(graph);
        result?;
        let executable = Graph(executable);
        call!(name, cuGraphUpload(executable.0, capture.cuda.0.main_stream()))?;
        Ok(executable)
    }
}
