//! Several solvers at once: each on a thread and a stream of its own.
//!
//! Small systems leave most of a chip idle, and one after the other each waits for its own latency. On streams of their
//! own they share the chip. Kernels, memory and the context belong to all streams of a device; what operations use in
//! passing (partial sums, the workspaces of scans and sorts, where blocks meet) each stream has for itself.
//!
//! The order between streams is `stream`'s work.
//!
//! Kernels whose blocks wait for each other (persistent iterations, searches in narrow levels) need no order either:
//! they are launched cooperatively or as one cluster, and such a launch starts only when all of its blocks have a place
//! at the same time. So two that want the whole chip follow one another, and neither holds a place while it waits for
//! the other. Where blocks wait for blocks of lower number only (products with rows that are cut, scans), these have
//! their places already.
//!
//! Not seen here: a buffer that goes from one running thread to another, through a channel say. Its maker synchronises.

use super::Cuda;
use super::device::Device;
use crate::backend::Backend;
use crate::error::Result;

impl Cuda {
    /// Runs `work` on as many threads at once, with the thread's number and a handle whose work goes to a stream of its
    /// own; returns what they came to, in order. All that was enqueued before has ended when they start, and all of
    /// theirs when this returns, so buffers may be handed in and out. Results have the same bits as one after the
    /// other.
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
    /// A buffer that one of the threads hands to another while both run needs [`Backend::synchronize`] before.
    ///
    /// # Errors
    /// The first that one of them returned, or when the device fails. A panic of theirs goes on here.
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
