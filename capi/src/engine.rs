//! One trait for solvers of the four types of values and for matrix-free solvers.

use crate::arrays::{Place, Raw, check, check_on, gpu_of, on_gpu, slice};
use crate::observer::{Observer, told};
use crate::options::Settings;
use crate::report::Filed;
use crate::status::{Answer, Fault, RESIDUA_DIMENSION, RESIDUA_UNSUPPORTED};
use residua_core::Cuda;
use residua_core::solver::{ArraySolver, Canceller, Device, Solvable, SolveReport};
use std::ffi::c_void;

/// A solver with values of any type.
pub(crate) trait Engine: Send {
    fn shape(&self) -> (usize, usize);

    /// Replaces the values by `len` new ones, in the caller's order.
    ///
    /// # Safety
    /// As for [`slice`]; if a stream is given, `values` is on a GPU and this stream writes it.
    unsafe fn update(&mut self, values: *const c_void, len: usize, stream: Option<u64>) -> Answer;

    /// Replaces the values by those of a matrix with the same pattern.
    ///
    /// # Safety
    /// As for [`Raw::on_host`].
    unsafe fn update_matrix(&mut self, _: &Raw) -> Answer {
        Err(Fault::new(RESIDUA_UNSUPPORTED, "only a solver of a stored matrix can take new values"))
    }

    /// Solves for `count` right-hand sides; the lengths of b and x are those of all right-hand sides together.
    ///
    /// # Safety
    /// As for [`slice`]. x does not overlap b, and nothing else accesses it meanwhile. If a stream is given, both are
    /// on a GPU and this stream writes them.
    unsafe fn solve(&mut self, count: usize, b: Given, x: Given, how: How) -> Answer<Vec<Filed>>;

    fn history(&self, right_hand_side: usize) -> &[f64];

    /// A handle that stops it from another thread, if there is one.
    fn canceller(&self) -> Option<Canceller> {
        None
    }

    /// Returns a solver of the transposed matrix.
    fn transposed(&self) -> Answer<Box<dyn Engine>> {
        Err(Fault::new(
            RESIDUA_UNSUPPORTED,
            "only a solver of a stored matrix can make a solver of the transposed matrix",
        ))
    }
}

/// The caller's stream if vectors are on a GPU, and the observer if there is one.
pub(crate) type How = (Option<u64>, Option<Observer>);

/// The caller's vector, with its length in elements.
#[derive(Clone, Copy)]
pub(crate) struct Given {
    pub(crate) data: *mut c_void,
    pub(crate) len: usize,
}

/// Returns an error if vectors have other lengths than `count` right-hand sides need, or overlap.
fn check_vectors<T>((rows, columns): (usize, usize), count: usize, b: Given, x: Given) -> Answer {
    for (what, each, given) in [("b", rows, b.len), ("x", columns, x.len)] {
        if each.checked_mul(count) != Some(given) {
            let text = format!("{what} has {given} elements, but {count} x {each} are needed");
            return Err(Fault::new(RESIDUA_DIMENSION, text));
        }
    }
    let end = |given: Given| given.data.addr().saturating_add(given.len.saturating_mul(size_of::<T>()));
    if b.len > 0 && x.len > 0 && b.data.addr() < end(x) && x.data.addr() < end(b) {
        return Err(Fault::argument("b and x overlap"));
    }
    Ok(())
}

/// The caller's vectors as slices, after a check of their lengths.
///
/// # Safety
/// As for [`Engine::solve`], with vectors on the host.
pub(crate) unsafe fn vectors<'a, T>(
    shape: (usize, usize),
    count: usize,
    b: Given,
    x: Given,
) -> Answer<(&'a [T], &'a mut [T])> {
    check_vectors::<T>(shape, count, b, x)?;
    // SAFETY: guaranteed by the caller.
    let right = unsafe { slice("b", b.data, b.len)? };
    if x.len == 0 {
        return Ok((right, &mut []));
    }
    check::<T>("x", x.data, x.len)?;
    // SAFETY: checked above; the caller guarantees that nothing else uses x, and that it does not overlap b.
    Ok((right, unsafe { std::slice::from_raw_parts_mut(x.data.cast(), x.len) }))
}

/// Runs work on a GPU after the caller's stream, makes the caller's stream wait for it, and returns its result.
///
/// # Safety
/// `stream` belongs to this GPU.
unsafe fn in_order<R>(cuda: &Cuda, stream: u64, work: impl FnOnce() -> Answer<R>) -> Answer<R> {
    // SAFETY: guaranteed by the caller.
    unsafe { cuda.run_after(stream)? };
    let done = work();
    // SAFETY: as above.
    unsafe { cuda.run_before(stream)? };
    done
}

/// A solver for a stored matrix.
pub(crate) struct Stored<T: Solvable>(ArraySolver<T>);

impl<T: Solvable> Stored<T> {
    /// A solver for the caller's arrays in the given place.
    ///
    /// # Safety
    /// As for [`Raw::on_host`] or [`Raw::on_gpu`].
    pub(crate) unsafe fn new(raw: &Raw, place: Place, settings: &Settings) -> Answer<Self> {
        settings.refuse_function()?;
        let builder = &settings.builder;
        Ok(Self(match place {
            // SAFETY: guaranteed by the caller.
            Place::Host => builder.build_arrays(&unsafe { raw.on_host::<T>()? }, true)?,
            Place::Gpu(cuda, stream) => {
                match settings.device {
                    Device::Auto => {}
                    Device::Cuda(number) if number == cuda.ordinal() => {}
                    other => {
                        let text = format!(
                            "the option device is {other}, but the matrix is on cuda:{}",
                            cuda.ordinal()
                        );
                        return Err(Fault::argument(text));
                    }
                }
                let build = || {
                    // SAFETY: guaranteed by the caller.
                    let arrays = unsafe { raw.on_gpu::<T>(&cuda)? };
                    Ok(builder.build_arrays_on(&cuda, &arrays, true)?)
                };
                // SAFETY: guaranteed by the caller.
                unsafe { in_order(&cuda, stream, build)? }
            }
        }))
    }

    fn shape(&self) -> (usize, usize) {
        (self.0.solver.rows(), self.0.solver.columns())
    }

    /// Solves with vectors on a GPU.
    ///
    /// # Safety
    /// As for [`Engine::solve`] with a stream.
    unsafe fn solve_on(
        &mut self,
        count: usize,
        b: Given,
        x: Given,
        (stream, observer): (u64, Option<Observer>),
    ) -> Answer<Vec<SolveReport>> {
        check_vectors::<T>(self.shape(), count, b, x)?;
        if b.len == 0 || x.len == 0 {
            return Ok(Vec::new());
        }
        let cuda = gpu_of("b", b.data)?;
        check_on::<T>(&cuda, "x", x.data, x.len)?;
        // SAFETY: guaranteed by the caller; both were checked.
        unsafe {
            let right = on_gpu::<T>(&cuda, "b", b.data, b.len)?;
            let unknowns = cuda.foreign_mut::<T>(x.data.addr() as u64, x.len);
            let solver = &mut self.0.solver;
            in_order(&cuda, stream, || {
                Ok(match count {
                    1 => vec![solver.solve_on_with(&cuda, right, unknowns, told(observer))?],
                    _ => solver.solve_many_on_with(&cuda, right, unknowns, told(observer))?,
                })
            })
        }
    }
}

impl<T: Solvable> Engine for Stored<T> {
    fn shape(&self) -> (usize, usize) {
        self.shape()
    }

    unsafe fn update(&mut self, values: *const c_void, len: usize, stream: Option<u64>) -> Answer {
        let Some(stream) = stream else {
            // SAFETY: guaranteed by the caller.
            return Ok(self.0.update(unsafe { slice("values", values, len)? })?);
        };
        let cuda = gpu_of("values", values)?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let values = on_gpu::<T>(&cuda, "values", values, len)?;
            in_order(&cuda, stream, || Ok(self.0.update_on(&cuda, values)?))
        }
    }

    unsafe fn update_matrix(&mut self, raw: &Raw) -> Answer {
        // SAFETY: guaranteed by the caller.
        Ok(self.0.update_matrix(&unsafe { raw.on_host::<T>()? })?)
    }

    unsafe fn solve(
        &mut self,
        count: usize,
        b: Given,
        x: Given,
        (stream, observer): How,
    ) -> Answer<Vec<Filed>> {
        let reports = if let Some(stream) = stream {
            // SAFETY: guaranteed by the caller.
            unsafe { self.solve_on(count, b, x, (stream, observer))? }
        } else {
            // SAFETY: guaranteed by the caller.
            let (b, x) = unsafe { vectors(self.shape(), count, b, x)? };
            match count {
                0 => Vec::new(),
                1 => vec![self.0.solver.solve_with(b, x, told(observer))?],
                _ => self.0.solver.solve_many_with(b, x, told(observer))?,
            }
        };
        Ok(reports.iter().map(Filed::of_solver).collect())
    }

    fn history(&self, right_hand_side: usize) -> &[f64] {
        self.0.solver.history_of(right_hand_side)
    }

    fn canceller(&self) -> Option<Canceller> {
        Some(self.0.solver.canceller())
    }

    fn transposed(&self) -> Answer<Box<dyn Engine>> {
        Ok(Box::new(Self(self.0.transposed()?)))
    }
}

/// Returns an error if a stream is given, since the solver takes no arrays on a GPU.
pub(crate) fn on_host_alone(stream: Option<u64>, what: &str) -> Answer {
    match stream {
        None => Ok(()),
        Some(_) => Err(Fault::new(
            RESIDUA_UNSUPPORTED,
            format!("{what} computes on the CPU, so arrays must be on the host"),
        )),
    }
}
