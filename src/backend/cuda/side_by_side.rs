//! Several simultaneous solvers, each with its own thread and stream.
//!
//! A small system leaves most of a chip idle, and solvers that run one after another each wait for their own latency.
//! On separate streams they share the chip. Kernels, memory and the context belong to all streams of a device.
//! Temporary memory of operations (partial sums, workspaces of scans and sorts, barriers between blocks) belongs to
//! each stream.
//!
//! `stream` implements the order between streams.
//!
//! Kernels whose blocks wait for each other (persistent iterations, searches in small levels) need no special order:
//! they are launched cooperatively or as one cluster, and such a launch starts only when all of its blocks fit at the
//! same time, so two launches that need the whole chip run one after the other, and neither occupies part of it while
//! it waits. In kernels whose blocks wait only for blocks with lower numbers (products with divided rows, scans), those
//! blocks are already running.
//!
//! Not covered here: a buffer that one running thread passes to another, for example through a channel. The thread that
//! wrote it has to synchronise before.

use super::Cuda;
use super::device::Device;
use crate::backend::Backend;
use crate::error::Result;

impl Cuda {
    /// Runs `work` on several threads at the same time. It gets the thread's number and a handle with a separate
    /// stream. Returns the results in order. All earlier work has ended before they start, and all their work has ended
    /// when this returns, so buffers may be passed in and out. Results have the same bits as if the threads ran one
    /// after another.
    ///
    /// ```no_run
    /// use residua::{Backend, Cuda, generate, krylov::{Cg, SolveOptions}, precondition::Identity};
    /// use std::ops::ControlFlow;
    /// let cuda = Cuda::new(0)?;
    /// let a = generate::poisson2d(100, 100)?.to_backend(&cuda)?;
    /// let iterations = cuda.side_by_side(4, |number, cuda| {
    ///     let b = cuda.upload(vec![1.0 + number as f64; 10_000])?;
    ///     let mut x = cuda.zeros(10_000)?;
    ///     let mut cg = Cg::new(cuda, 10_000, SolveOptions::default())?;
    ///     let report = cg.solve(&a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?;
    ///     Ok(report.iterations)
    /// })?;
    /// # Ok::<(), residua::Error>(())
    /// ```
    ///
    /// If one of the threads passes a buffer to another while both run, it must call [`Backend::synchronize`] before.
    ///
    /// # Errors
    /// The first error of a thread, or if the device fails. A panic in a thread is resumed here.
    pub fn side_by_side<R: Send>(
        &self,
        streams: usize,
        work: impl Fn(usize, &Cuda) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        self.synchronize()?;
        let handles = (1..=streams)
            .map(|number| Device::open(self.0.ordinal, number).map(Cuda))
            .collect::<Result<Vec<_>>>()?;
        let one = |number: usize, cuda: &Cuda| {
            let result = work(number, cuda);
            cuda.synchronize().and(result)
        };
        std::thread::scope(|scope| {
            let spawn = |(number, cuda)| scope.spawn(move || one(number, cuda));
            let threads: Vec<_> = handles.iter().enumerate().map(spawn).collect();
            let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            threads.into_iter().map(join).collect()
        })
    }
}
