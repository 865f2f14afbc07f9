//! Factorisation of a matrix in device memory, by a library that the backend has loaded ([`FactorSteps`]).
//!
//! ```text
//! A -> nested dissection on the host's threads -> analysis -> factors -> refinement -> flexible GMRES -> checked x,
//!                                                               with residuals in     preconditioned     or the
//!                                                               twice the precision   by the factors     next kind
//! ```
//!
//! Kinds are tried in the same order as on the host: Cholesky; L D L^H with pivots from the diagonal, then with
//! pivoting inside of blocks of two; LU; and LU of A scaled and permuted such that a maximum product transversal is on
//! its diagonal.

use super::fgmres::fgmres;
use super::fronts::Structure;
use super::goal::norm;
use super::ordering::order_of_elimination;
use super::ways::{Matched, Nature, Way, has_strong_diagonal};
use super::{DeviceOptions, DeviceReport, DeviceSeconds, Prepared, Reason, in_doubles};
use crate::backend::{
    Backend, CsrArrays, Elimination, FactorEstimate, FactorKind, FactorOptions, FactorSteps, Factors,
    FrontPlan, Products, RowFacts, VectorOps, copied,
};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar, Symmetry};
use num_traits::Float;
use std::sync::Arc;
use std::time::Instant;

/// The maximum number of refinement steps. Each step must at least halve the residual.
const STEPS: usize = 30;
/// Iterations of flexible GMRES between two accurate residuals, and how often they are repeated at most.
const ITERATIONS: usize = 60;
const ROUNDS: usize = 6;

/// The operations that a backend needs for factorisations.
pub trait DirectBackend: FactorSteps + VectorOps + Products + RowFacts {}
impl<B: FactorSteps + VectorOps + Products + RowFacts> DirectBackend for B {}

/// A matrix in the memory of a backend, and its factors there.
pub struct OnDevice<T: Scalar, B: DirectBackend> {
    backend: B,
    a: Csr<T, B>,
    options: DeviceOptions,
    nature: Option<Nature>,
    ways: Vec<Way>,
    /// The number of strategies in `ways` that were tried and failed.
    at: usize,
    /// Fill-reducing orderings of A, and of A with permuted rows.
    orders: [Option<Arc<Elimination>>; 2],
    matched: Option<Matched>,
    current: Option<(Way, Box<dyn Factors<T, B>>)>,
    reasons: Vec<(super::Kind, Reason)>,
    seconds: DeviceSeconds,
    /// Whether the ordering in use was computed here, not by the library.
    ordered: bool,
    same_bits: bool,
    /// Whether the backend factorises with its own code instead of a library.
    own: bool,
    /// Whether scaling and pairs of the current structure were computed for other values.
    stale: bool,
}

/// A matrix with its factors, and what has to be applied around them.
pub(super) struct Made<'a, T: Scalar, B: DirectBackend> {
    pub(super) backend: &'a B,
    pub(super) a: &'a Csr<T, B>,
    pub(super) factors: &'a mut dyn Factors<T, B>,
    pub(super) prepared: Option<&'a Prepared>,
}

/// The result of one refinement.
struct Near {
    residual: f64,
    steps: usize,
    iterations: usize,
}

impl<T: Scalar, B: DirectBackend> OnDevice<T, B> {
    /// Chooses the strategies to try and copies A. The first solve factorises.
    ///
    /// # Errors
    /// If the matrix is not square, the backend has neither a library ([`FactorSteps::factor_library`]) nor its own
    /// factorisation, there is too little memory for the copy, or the device fails.
    pub fn planned(backend: &B, a: &Csr<T, B>, options: DeviceOptions) -> Result<Self> {
        Error::check_dimension("columns of a square matrix", a.rows(), a.columns())?;
        let own = backend.has_fronts() && !(options.library && backend.factor_library().is_ok());
        if !own {
            backend.factor_library()?;
        }
        let mut made = Self {
            backend: backend.clone(),
            a: a.copied(backend)?,
            options,
            nature: None,
            ways: Vec::new(),
            at: 0,
            orders: [None, None],
            matched: None,
            current: None,
            reasons: Vec::new(),
            seconds: DeviceSeconds::default(),
            ordered: false,
            same_bits: false,
            own,
            stale: false,
        };
        made.choose()?;
        Ok(made)
    }

    /// The matrix that is solved with.
    pub fn matrix(&self) -> &Csr<T, B> {
        &self.a
    }

    /// Chooses strategies for the current values, and returns whether they are the same as before.
    fn choose(&mut self) -> Result<bool> {
        self.reasons.clear();
        let nature = if self.is_finite()? {
            Some(Nature::of(&self.backend, &self.a)?)
        } else {
            self.reasons.push((super::Kind::Auto, Reason::NotFinite));
            None
        };
        let same = nature == self.nature;
        if !same {
            self.nature = nature;
            let (backend, a) = (&self.backend, &self.a);
            let strong = || Ok(has_strong_diagonal(&a.to_host(backend)?));
            self.ways = match nature {
                Some(_) if self.own => vec![Way::FRONTS],
                Some(nature) => nature.ways(backend.has_blocks_of_two(), strong)?,
                None => Vec::new(),
            };
        }
        Ok(same)
    }

    fn is_finite(&self) -> Result<bool> {
        let values = self.a.parts().values;
        // The sum of squares may overflow although all entries are finite.
        Ok(square(&self.backend, values)?.is_finite()
            || self.backend.download(values)?.iter().all(|value| value.is_finite()))
    }

    /// Replaces the values; the pattern stays. The next solve computes new factors, without a new analysis as long as
    /// the properties of the matrix (symmetry, positive diagonal) have not changed.
    ///
    /// # Errors
    /// If the number of entries differs, or the device fails.
    pub fn update(&mut self, a: &Csr<T, B>) -> Result<()> {
        Error::check_dimension("number of values", self.a.nonzeros(), a.nonzeros())?;
        self.backend.copy(a.parts().values, self.a.values_mut())?;
        self.seconds = DeviceSeconds::default();
        if !self.choose()? {
            (self.at, self.current) = (0, None);
            return Ok(());
        }
        let Some((way, factors)) = self.current.take() else {
            self.at = 0;
            return Ok(());
        };
        self.stale = true;
        match self.numbers(way, factors) {
            Ok(factors) => self.current = Some((way, factors)),
            Err(reason) => self.reasons.push((way.name(), reason)),
        }
        Ok(())
    }

    /// Solves A x = b such that ||b - A x|| <= `tolerance` ||b||. If that fails, x has the smallest residual that was
    /// found.
    ///
    /// # Errors
    /// If a vector has the wrong length, or the device fails.
    pub fn solve(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>, tolerance: f64) -> Result<DeviceReport> {
        self.solve_while(b, x, tolerance, &mut || true)
    }

    /// [`OnDevice::solve`] that stops when `going` returns false; `going` is called between factorisations of different
    /// kinds.
    ///
    /// # Errors
    /// As [`OnDevice::solve`].
    pub fn solve_while(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        tolerance: f64,
        going: &mut dyn FnMut() -> bool,
    ) -> Result<DeviceReport> {
        let n = self.a.rows();
        Error::check_dimension("length of b", n, B::len(b))?;
        Error::check_dimension("length of x", n, B::len(x))?;
        let size = length(&self.backend, b)?;
        let goal = tolerance * size;
        let mut best = Near { residual: size, steps: 0, iterations: 0 };
        let mut kind = self.current.as_ref().map_or(super::Kind::Auto, |(way, _)| way.name());
        self.backend.fill(T::default(), x)?;
        if !size.is_finite() {
            self.reasons.push((kind, Reason::NotFinite));
        }
        if self.reasons.iter().any(|(_, reason)| *reason == Reason::Stopped) {
            // An earlier solve was stopped before all strategies were tried, so this one starts again.
            self.reasons.clear();
            self.at = 0;
        }
        self.seconds.solve = 0.0;
        let mut candidate = self.backend.zeros(n)?;
        while size.is_finite() && best.residual > goal && self.factorise(going) {
            let start = Instant::now();
            let near = self.refine(b, &mut candidate, (goal, size))?;
            self.seconds.solve += start.elapsed().as_secs_f64();
            let Some((way, _)) = &self.current else { break };
            let (way, solved) = (*way, near.residual <= goal);
            if near.residual < best.residual {
                self.backend.copy(&candidate, x)?;
                (best, kind) = (near, way.name());
            }
            if !solved {
                self.current = None;
                if way.fronts && self.stale {
                    // It may succeed with pairs and scaling for the current values.
                    self.at = 0;
                } else {
                    self.reasons.push((way.name(), Reason::Stagnated));
                }
            }
        }
        let estimate = self.current.as_ref().map(|(_, factors)| factors.estimate()).unwrap_or_default();
        Ok(DeviceReport {
            solved: best.residual <= goal,
            kind,
            residual_norm: best.residual,
            relative_residual: if size > 0.0 { best.residual / size } else { best.residual },
            refinements: best.steps,
            iterations: best.iterations,
            perturbed: self.current.as_ref().and_then(|(_, factors)| factors.perturbed()),
            estimate,
            seconds: self.seconds,
            library: if self.own { None } else { Some(self.backend.factor_library()?) },
            dissected: self.ordered,
            same_bits: self.same_bits,
            reasons: self.reasons.clone(),
        })
    }

    /// Solves for `count` right-hand sides together, stored one after another, with one refinement step each. Returns
    /// ||b - A x|| / ||b|| for each.
    ///
    /// # Errors
    /// If a vector has the wrong length, every kind of factorisation fails, or the device fails.
    pub fn solve_several(&mut self, count: usize, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<Vec<f64>> {
        let n = self.a.rows();
        Error::check_dimension("length of b", n * count, B::len(b))?;
        Error::check_dimension("length of x", n * count, B::len(x))?;
        let Made { backend, a, factors, prepared } = self.made()?;
        let (mut r, mut d) = (backend.zeros(n * count)?, backend.zeros(n * count)?);
        apply(backend, factors, prepared, count, b, x)?;
        for number in 0..count {
            let part = number * n..(number + 1) * n;
            let to = B::part_mut(&mut r, part.clone());
            backend.csr_residual(a.parts(), T::one(), B::part(b, part.clone()), B::part(x, part), to)?;
        }
        apply(backend, factors, prepared, count, &r, &mut d)?;
        backend.axpby(T::one(), &d, T::one(), x)?;
        (0..count)
            .map(|number| {
                let part = number * n..(number + 1) * n;
                let (b, to) = (B::part(b, part.clone()), B::part_mut(&mut r, part.clone()));
                backend.csr_residual(a.parts(), T::one(), b, B::part(x, part), to)?;
                let (left, size) = (length(backend, to)?, length(backend, b)?);
                Ok(if size > 0.0 { left / size } else { left })
            })
            .collect()
    }

    /// Returns the current factors; factorises if there are none.
    pub(super) fn made(&mut self) -> Result<Made<'_, T, B>> {
        if !self.factorise(&mut || true) {
            let reasons: Vec<String> =
                self.reasons.iter().map(|(kind, why)| format!("{kind}: {why}")).collect();
            return Err(Error::Unsupported(reasons.join("; ")));
        }
        let Self { backend, a, current, matched, .. } = self;
        let Some((way, factors)) = current else { return Err(Error::Unsupported("no factors".into())) };
        let prepared = matched.as_ref().filter(|_| way.matched).map(|matched| &matched.prepared);
        Ok(Made { backend, a, factors: factors.as_mut(), prepared })
    }

    /// Tries the remaining strategies until one gives factors, unless there are factors already. Returns whether there
    /// are factors.
    fn factorise(&mut self, going: &mut dyn FnMut() -> bool) -> bool {
        while self.current.is_none() && self.at < self.ways.len() {
            let way = self.ways[self.at];
            if !going() {
                self.reasons.push((way.name(), Reason::Stopped));
                self.at = self.ways.len();
                break;
            }
            self.at += 1;
            let made = self
                .analysed(way)
                .and_then(|factors| if going() { self.numbers(way, factors) } else { Err(Reason::Stopped) });
            match made {
                Ok(factors) => self.current = Some((way, factors)),
                Err(reason) => {
                    let stopped = reason == Reason::Stopped;
                    self.reasons.push((way.name(), reason));
                    if stopped {
                        self.at = self.ways.len();
                    }
                }
            }
        }
        self.current.is_some()
    }

    /// Orders and analyses the matrix for one strategy.
    fn analysed(&mut self, way: Way) -> Result<Box<dyn Factors<T, B>>, Reason> {
        self.stale = false;
        let factors = if way.fronts { self.analysed_in_fronts() } else { self.analysed_by_library(way) }?;
        let estimate = factors.estimate();
        let limit = self.options.memory_limit.min(estimate.free);
        if estimate.peak > limit {
            return Err(Reason::TooLarge { bytes: estimate.peak, limit });
        }
        match estimate.flops {
            Some(flops) if flops > self.options.flop_limit => {
                let limit = self.options.flop_limit;
                Err(Reason::Refused(format!(
                    "{flops:.1e} operations are needed, but only {limit:.1e} are allowed"
                )))
            }
            _ => Ok(factors),
        }
    }

    /// Computes the structure of fronts on the host, and sets it up in the backend's memory.
    fn analysed_in_fronts(&mut self) -> Result<Box<dyn Factors<T, B>>, Reason> {
        let start = Instant::now();
        let host = in_doubles(self.a.to_host(&self.backend).map_err(refused)?);
        let symmetry = self.nature.map_or(Symmetry::General, Nature::symmetry);
        let structure = Structure::new::<T>(&host, symmetry, self.options.flop_limit)?;
        self.seconds.order += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let made = self.backend.fronts(&structure.plan(&host, FrontPlan::block_of::<T>()));
        self.seconds.analysis += start.elapsed().as_secs_f64();
        (self.ordered, self.same_bits) = (true, true);
        made.map_err(refused)
    }

    /// Analyses the matrix with the library.
    fn analysed_by_library(&mut self, way: Way) -> Result<Box<dyn Factors<T, B>>, Reason> {
        let start = Instant::now();
        if way.matched && self.matched.is_none() {
            let host = self.a.to_host(&self.backend).map_err(refused)?;
            self.matched = Some(Matched::new(&host)?);
        }
        let order = &mut self.orders[usize::from(way.matched)];
        if order.is_none() && self.options.dissect {
            let host = self.a.to_host(&self.backend).map_err(refused)?;
            *order = match self.matched.as_ref().filter(|_| way.matched) {
                Some(matched) => order_of_elimination(&matched.matrix(&host).map_err(refused)?),
                None => order_of_elimination(&host),
            }
            .map(Arc::new);
        }
        let order = order.clone();
        self.seconds.order += start.elapsed().as_secs_f64();
        let start = Instant::now();
        let mut made = self.analysed_in(way, order.as_deref(), self.options.deterministic);
        self.ordered = made.is_ok() && order.is_some();
        if made.is_err() && order.is_some() {
            // If the library fails with our ordering, let it compute its own.
            made = self.analysed_in(way, None, self.options.deterministic);
        }
        let room = |estimate: FactorEstimate| self.options.memory_limit.min(estimate.free);
        let fits = |factors: &dyn Factors<T, B>| factors.estimate().peak <= room(factors.estimate());
        self.same_bits = self.options.deterministic && made.as_ref().is_ok_and(|made| fits(&**made));
        if self.options.deterministic && !self.same_bits && made.is_ok() {
            // Reproducible factors take up to ten times the memory, so the next attempt gives up reproducibility.
            drop(made);
            made = self.analysed_in(way, order.as_deref().filter(|_| self.ordered), false);
        }
        self.seconds.analysis += start.elapsed().as_secs_f64();
        made.map_err(refused)
    }

    fn analysed_in(
        &self,
        way: Way,
        order: Option<&Elimination>,
        deterministic: bool,
    ) -> Result<Box<dyn Factors<T, B>>> {
        let options =
            FactorOptions { kind: way.kind, order, blocks_of_two: way.blocks_of_two, deterministic };
        let arrays: CsrArrays<T, B> = match self.matched.as_ref().filter(|_| way.matched) {
            Some(matched) => {
                let matrix = matched.matrix(&self.a.to_host(&self.backend)?)?;
                matrix.into_backend(&self.backend)?.into_arrays(&self.backend)?
            }
            None => self.a.copied(&self.backend)?.into_arrays(&self.backend)?,
        };
        self.backend.factors(self.a.rows(), arrays, options)
    }

    /// Computes the factors of the current values.
    fn numbers(
        &mut self,
        way: Way,
        mut factors: Box<dyn Factors<T, B>>,
    ) -> Result<Box<dyn Factors<T, B>>, Reason> {
        let start = Instant::now();
        let done = match self.matched.as_ref().filter(|_| way.matched) {
            Some(matched) => self.a.to_host(&self.backend).and_then(|host| {
                let (_, _, values) = matched.matrix(&host)?.into_arrays(&crate::backend::Host)?;
                factors.factorise(&*self.backend.upload(values)?)
            }),
            None => factors.factorise(self.a.parts().values),
        };
        self.seconds.factor += start.elapsed().as_secs_f64();
        match done.map_err(refused)? {
            Some(_) if way.kind == FactorKind::Positive => {
                Err(Reason::Refused("the matrix is not positive definite".into()))
            }
            _ => Ok(factors),
        }
    }

    /// Solves with the current factors, by refinement and then flexible GMRES.
    fn refine(&mut self, b: &B::Slice<T>, x: &mut B::Vec<T>, (goal, size): (f64, f64)) -> Result<Near> {
        let Self { backend, a, current, matched, .. } = self;
        let mut best = Near { residual: size, steps: 0, iterations: 0 };
        let Some((way, factors)) = current else { return Ok(best) };
        let prepared = matched.as_ref().filter(|_| way.matched).map(|matched| &matched.prepared);
        let n = a.rows();
        backend.fill(T::default(), x)?;
        let (mut r, mut d) = (copied(backend, b)?, backend.zeros(n)?);
        let (mut next, mut left) = (backend.zeros(n)?, backend.zeros(n)?);
        let (mut rounds, mut stalled) = (0, false);
        while best.residual > goal && best.steps < STEPS && rounds < ROUNDS {
            let before = best.residual;
            if stalled {
                rounds += 1;
                let start = backend.download(&*r)?;
                let (step, spent) = around(backend, a, (factors.as_mut(), prepared), &start, goal / 4.0);
                best.iterations += spent;
                backend.write(&step, &mut d)?;
            } else {
                apply(backend, factors.as_mut(), prepared, 1, &r, &mut d)?;
                best.steps += 1;
            }
            backend.copy(&*x, &mut next)?;
            backend.axpby(T::one(), &d, T::one(), &mut next)?;
            backend.csr_residual(a.parts(), T::one(), b, &next, &mut left)?;
            let reached = length(backend, &left)?;
            if reached < before {
                std::mem::swap(x, &mut next);
                std::mem::swap(&mut r, &mut left);
                best.residual = reached;
            }
            if reached.is_nan() || reached > before / 2.0 {
                if stalled {
                    break;
                }
                stalled = true;
            }
        }
        Ok(best)
    }
}

/// z = A^-1 r with the factors alone, for `count` vectors.
pub(super) fn apply<T: Scalar, B: DirectBackend>(
    backend: &B,
    factors: &mut dyn Factors<T, B>,
    prepared: Option<&Prepared>,
    count: usize,
    r: &B::Slice<T>,
    z: &mut B::Slice<T>,
) -> Result<()> {
    let Some(prepared) = prepared else { return factors.solve(count, r, z) };
    let n = prepared.rows.len();
    for number in 0..count {
        let part = number * n..(number + 1) * n;
        let mut x = backend.download(B::part(r, part.clone()))?;
        let mut done = Ok(());
        let lanes = x.as_chunks_mut::<1>().0;
        prepared.around(false, lanes, &mut vec![[T::default()]; n], |x, _| {
            let x = x.as_flattened_mut();
            done = backend.upload(x.to_vec()).and_then(|r| {
                let mut z = backend.zeros(n)?;
                factors.solve(1, &r, &mut z)?;
                backend.read(&z, x)
            });
        });
        done?;
        backend.write(&x, B::part_mut(z, part))?;
    }
    Ok(())
}

/// An operation on the device that computes one vector from another.
type Step<'a, T, B> =
    &'a mut dyn FnMut(&<B as Backend>::Slice<T>, &mut <B as Backend>::Slice<T>) -> Result<()>;

/// Flexible GMRES preconditioned by the factors, for a residual in host memory. If the device fails, the result is
/// zero, which ends the iteration.
fn around<T: Scalar, B: DirectBackend>(
    backend: &B,
    a: &Csr<T, B>,
    (factors, prepared): (&mut dyn Factors<T, B>, Option<&Prepared>),
    r: &[T],
    goal: f64,
) -> (Vec<T>, usize) {
    let through = |x: &[T], work: Step<'_, T, B>| {
        let (x, mut y) = (backend.upload(x.to_vec())?, backend.zeros(x.len())?);
        work(&x, &mut y)?;
        backend.download(&*y)
    };
    let mut product = |x: &[T], y: &mut [T]| {
        let done = through(x, &mut |x, y| a.product(backend, T::one(), x, T::default(), y));
        if let Ok(done) = done {
            y.copy_from_slice(&done);
        }
    };
    let mut precondition = |z: &mut Vec<T>| {
        let done = through(z, &mut |r, z| apply(backend, &mut *factors, prepared, 1, r, z));
        *z = done.unwrap_or_else(|_| vec![T::default(); z.len()]);
    };
    fgmres(&mut product, &mut precondition, r, goal, ITERATIONS)
}

/// The sum of squared magnitudes, which may overflow the type.
fn square<T: Scalar, B: DirectBackend>(backend: &B, x: &B::Slice<T>) -> Result<f64> {
    let mut square = backend.zeros(1)?;
    backend.norm2_squared::<T>(x, &mut square)?;
    Ok(backend.value(&square)?.to_f64())
}

/// The 2-norm, without overflow.
pub(super) fn length<T: Scalar, B: DirectBackend>(backend: &B, x: &B::Slice<T>) -> Result<f64> {
    let square = square(backend, x)?;
    let range = T::Real::min_positive_value().to_f64() / T::Real::epsilon().to_f64();
    if square.is_finite() && square > range { Ok(square.sqrt()) } else { Ok(norm(&backend.download(x)?)) }
}

fn refused(error: Error) -> Reason {
    match error {
        Error::OutOfMemory { bytes, .. } => Reason::TooLarge { bytes, limit: 0 },
        other => Reason::Refused(other.to_string()),
    }
}
