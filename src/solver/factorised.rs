//! Factorisations as a stage of a solve: on the device, if it has a solver with fronts or a library for it and the
//! system is large enough, else on the CPU. The CPU also takes over if the factors of the device fail.

use super::SolverBackend;
use super::judging::judge;
use super::ready::{Ready, Task};
use super::report::Evidence;
use crate::backend::FactorSteps;
use crate::direct::{
    Analysis, DeviceOptions, DeviceReport, DeviceSeconds, Direct, DirectOptions, DirectReport, Kind,
    OnDevice, Reason, Weights, in_doubles,
};
use crate::error::{Error, Result};
use crate::krylov::{Outcome, Report, SolveOptions};
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::prices::budgets::{IN_RACE, QUICK};
use crate::report::{bytes, seconds};
use crate::scalar::{Real, Scalar};
use crate::verdict::{RowNorms, Verdict};
use num_traits::Float;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often a factorisation asks the observer of the solve whether to go on.
const OFTEN: Duration = Duration::from_millis(50);

/// A factorisation may take this many times the multiplications of its forecast, which does not foresee pivoting. A
/// dense factorisation with column pivoting takes longer for each multiplication than blocks of a sparse one.
const MORE: f64 = 2.0;
const DENSE: f64 = 0.4;

/// Of two least-squares solutions, the later one may have a residual that is larger by this factor: up to rounding,
/// both are minimal.
const ALIKE: f64 = 1.0 + 1e-3;

/// A system with `ON_DEVICE` unknowns or more is factorised on the device without a forecast for the host, which would
/// take seconds; a smaller one, if the host is expected to take more than `LONG` seconds. Loading the library and its
/// kernels takes about 0.3 s.
const ON_DEVICE: usize = 100_000;
const LONG: f64 = 0.3;

/// Returns whether a system is large enough for a factorisation on a device.
pub(crate) fn is_worth_a_device(rows: usize, seconds_on_host: impl FnOnce() -> f64) -> bool {
    rows >= ON_DEVICE || seconds_on_host() > LONG
}

/// Returns whether a backend can factorise in its own memory.
pub(crate) fn factorises<B: FactorSteps>(backend: &B) -> bool {
    backend.has_fronts() || backend.factor_library().is_ok()
}

/// The speed of a device relative to dense blocks on the host: 3e12 operations a second (of up to 1.8e13 measured on an
/// H100, 7 points 100^3), compared to 3e9.
const FASTER: f64 = 1e3;

/// The limits of a stage of factorisations.
#[derive(Debug, Clone, Default)]
pub(super) struct Limits {
    /// The maximum number of multiplications in dense blocks.
    pub(super) flops: Option<f64>,
    /// The maximum number of bytes of the factors; None allows all free memory.
    pub(super) memory: Option<u64>,
    /// True if the condition number is to be estimated.
    pub(super) condition: bool,
    /// Kinds of factorisation that have failed before.
    pub(super) without: Vec<Kind>,
    /// The end of the caller's time limit.
    pub(super) deadline: Option<Instant>,
}

/// A factorisation of the matrix: in the memory of the backend, if it can factorise there and the system is large
/// enough, else in the host's.
pub(super) struct Factorised<T: Scalar, B: SolverBackend> {
    backend: B,
    /// `device` and `host` factorise in the first solve, so that its observer can stop them.
    device: Option<OnDevice<T, B>>,
    host: Option<Direct<T::Double>>,
    limits: Limits,
    /// The forecast bytes and seconds, if there is a forecast.
    expected: Option<(f64, f64)>,
    factor_bytes: u64,
    options: SolveOptions,
    /// The weights of rows on the host, until values change.
    weights: Option<Weights>,
    history: Vec<f64>,
    spent: Duration,
    remark: Option<String>,
    evidence: Evidence,
}

impl<T: Scalar, B: SolverBackend> Factorised<T, B> {
    /// Prepares a factorisation, unless it is forecast to take more multiplications than allowed.
    ///
    /// # Errors
    /// [`Error::Unsupported`] with the forecast if it takes more than allowed, or more memory or time than there is.
    pub(super) fn new(backend: &B, a: &Csr<T, B>, options: &SolveOptions, limits: Limits) -> Result<Self> {
        let square = a.rows() == a.columns();
        let on_device = || -> Result<OnDevice<T, B>> {
            let flop_limit = limits.flops.map_or(f64::INFINITY, |flops| FASTER * flops);
            let memory_limit = limits.memory.unwrap_or(u64::MAX);
            OnDevice::planned(
                backend,
                a,
                DeviceOptions { flop_limit, memory_limit, ..DeviceOptions::default() },
            )
        };
        let may = |yes: bool| square && yes && factorises(backend);
        let mut expected = None;
        let (device, host) = if may(is_worth_a_device(a.rows(), || 0.0)) {
            (Some(on_device()?), None)
        } else {
            let (mut direct, limit) = on_host(backend, a, &limits)?;
            // A rectangular matrix has no forecast, and is refused by the factorisation itself if it is too large.
            let forecast = if square || limit.is_some() { Some(direct.forecast()) } else { None };
            match forecast {
                Some(Ok(forecast)) if may(is_worth_a_device(a.rows(), || forecast.seconds())) => {
                    (Some(on_device()?), None)
                }
                Some(Err(error)) if limit.is_some() => return Err(error),
                Some(Ok(forecast)) => {
                    within(&forecast, limit)?;
                    in_time(&forecast, limits.deadline)?;
                    if limits.flops.is_some_and(|flops| flops <= IN_RACE) {
                        // Alternative kinds with other pivoting, which the forecast does not cover, are limited to the
                        // same budget here, because other stages follow.
                        let flops = forecast.in_blocks().max(QUICK);
                        direct.allow(MORE * flops, DENSE * flops);
                    }
                    expected = Some((forecast.bytes, forecast.seconds()));
                    (None, Some(direct))
                }
                _ => (None, Some(direct)),
            }
        };
        Ok(Self {
            backend: backend.clone(),
            device,
            host,
            limits,
            expected,
            factor_bytes: 0,
            options: options.clone(),
            weights: None,
            history: Vec::new(),
            spent: Duration::ZERO,
            remark: None,
            evidence: Evidence::default(),
        })
    }

    /// Solves with the factors on the device, if there is a factorisation there. Returns the outcome to report in case
    /// x does not meet the tolerance.
    fn by_device(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        tolerance: f64,
        going: &mut dyn FnMut() -> bool,
    ) -> Option<Outcome> {
        let device = self.device.as_mut()?;
        let (words, outcome) = match device.solve_while(b, x, tolerance, going) {
            Ok(told) => (words_of_device(&told), failure(&told.reasons)),
            Err(error) => (error.to_string(), Outcome::Stagnated),
        };
        self.remark = Some(words);
        Some(outcome)
    }

    /// Solves with the factors on the host, which are computed if there are none yet, and returns the report.
    fn by_host(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        (tolerance, weights): (f64, &Weights),
        going: &mut dyn FnMut() -> bool,
    ) -> Result<DirectReport> {
        if self.host.is_none()
            && let Some(device) = &self.device
        {
            let (mut direct, limit) = on_host(&self.backend, device.matrix(), &self.limits)?;
            within(&direct.forecast()?, limit)?;
            self.host = Some(direct);
        }
        let Some(direct) = &mut self.host else { return Err(Error::Unsupported("no factors".into())) };
        direct.until(self.limits.deadline);
        let b: Vec<_> = self.backend.download(b)?.into_iter().map(T::to_double).collect();
        let mut solution = vec![T::Double::default(); B::len(x)];
        let told = direct.solve_towards(&b, &mut solution, (tolerance, weights), going)?;
        let solution: Vec<T> = solution.into_iter().map(T::from_double).collect();
        self.backend.write(&solution, x)?;
        let before = self.remark.take().map_or(String::new(), |words| format!("{words}; then on the CPU: "));
        self.remark = Some(before + &words(&told));
        self.evidence = evidence(&told);
        self.factor_bytes = told.factor_bytes;
        Ok(told)
    }

    /// Returns the outcome of a factorisation on the host whose x does not meet the tolerance.
    fn outcome(&mut self, told: &DirectReport, weights: &Weights) -> Outcome {
        if told.reasons.iter().any(|(_, reason)| *reason == Reason::Stopped) {
            return Outcome::Interrupted;
        }
        if told.normal_residual.is_some() {
            return Outcome::LeastSquares;
        }
        if told.precision_limited || told.solved {
            let mut digits = told.digits;
            if told.solved {
                // In double precision x meets the tolerance, so only rounding x to this type prevents it.
                let condition = self.host.as_mut().and_then(|host| host.condition_of(weights));
                let unit = <T::Real as Float>::epsilon().to_f64();
                digits = condition.map(|condition| (-(condition * unit).log10()).max(0.0));
                (self.evidence.condition, self.evidence.digits) = (condition, digits);
            }
            return Outcome::PrecisionLimit { digits: digits.unwrap_or(0.0) };
        }
        if told.singularity.is_some() {
            return Outcome::Singular;
        }
        match told.reasons.last() {
            Some((_, Reason::NotFinite)) => Outcome::NotFinite,
            _ => Outcome::Stagnated,
        }
    }
}

/// The best x of a solve so far, with its verdict.
struct Best<'a, T: Scalar, B: SolverBackend> {
    x: &'a mut B::Slice<T>,
    verdict: Verdict,
}

impl<T: Scalar, B: SolverBackend> Ready<T, B> for Factorised<T, B> {
    fn solve(
        &mut self,
        task: Task<'_, '_, T, B>,
        observer: &mut dyn FnMut(usize, f64) -> ControlFlow<()>,
    ) -> Result<Report> {
        let start = Instant::now();
        self.limits.deadline = task.request.deadline;
        let options = task.options(&self.options);
        let Task { a, stored, b, x, norms, .. } = task;
        let backend = self.backend.clone();
        let report = |outcome, iterations, told: &Verdict| {
            Report::of_factor(outcome, iterations, told.residual, told.relative())
        };
        let before = judge(&backend, (stored, &mut *norms), (b, x), &options, None)?;
        self.history = vec![before.residual];
        self.evidence = Evidence::default();
        if !before.b.is_finite() || !before.residual.is_finite() {
            return Ok(report(Outcome::NotFinite, 0, &before));
        }
        if observer(0, before.residual).is_break() && !before.met {
            return Ok(report(Outcome::Interrupted, 0, &before));
        }
        if before.met {
            return Ok(report(Outcome::Converged, 0, &before));
        }
        let mut asked = Instant::now();
        let mut going = || {
            if asked.elapsed() < OFTEN {
                return true;
            }
            asked = Instant::now();
            observer(1, before.residual).is_continue()
        };
        let goal = options.threshold::<T>(before.b) / before.b;
        let mut candidate = self.backend.zeros(a.columns())?;
        let mut best = Best::<T, B> { x, verdict: before };
        self.remark = None;
        let excess = |verdict: &Verdict| verdict.excess::<T>(&options);
        let mut outcome = Outcome::Stagnated;
        if let Some(failed) = self.by_device(b, &mut candidate, goal, &mut going) {
            let told = judge(&backend, (stored, &mut *norms), (b, &candidate), &options, None)?;
            if told.met || excess(&told) < excess(&best.verdict) {
                self.backend.copy(&candidate, best.x)?;
                best.verdict = told;
            }
            outcome = failed;
        }
        if !best.verdict.met && outcome != Outcome::Interrupted {
            let weights = norms.to_host(&self.backend)?;
            match self.by_host(b, &mut candidate, (goal, &weights), &mut going) {
                Ok(told) => {
                    let own = judge(&backend, (stored, &mut *norms), (b, &candidate), &options, None)?;
                    outcome = if own.met { Outcome::Converged } else { self.outcome(&told, &weights) };
                    let taken = match outcome {
                        Outcome::Converged => true,
                        // The outcome belongs to this x, whatever its residual.
                        Outcome::PrecisionLimit { .. } => true,
                        Outcome::LeastSquares => own.residual <= ALIKE * best.verdict.residual,
                        _ => false,
                    };
                    if taken || excess(&own) < excess(&best.verdict) {
                        self.backend.copy(&candidate, best.x)?;
                        best.verdict = own;
                    } else if outcome == Outcome::LeastSquares {
                        // A later x is better than the one that was taken for a least-squares solution.
                        outcome = Outcome::Stagnated;
                    }
                    if outcome.is_solved() {
                        // The factors on the device failed for these values, and those on the host did not.
                        self.device = None;
                    }
                }
                // The result of the device is kept, with its remark.
                Err(error) => match &mut self.remark {
                    Some(remark) => *remark += &format!("; on the CPU: {error}"),
                    None => return Err(error),
                },
            }
        }
        self.history.push(best.verdict.residual);
        self.spent = start.elapsed();
        if best.verdict.met {
            outcome = Outcome::Converged;
        }
        let flow = observer(1, best.verdict.residual);
        let outcome = if flow.is_break() && !outcome.is_solved() { Outcome::Interrupted } else { outcome };
        // The whole solve counts as one iteration; the trail has its refinement steps.
        Ok(report(outcome, 1, &best.verdict))
    }

    fn history(&self) -> &[f64] {
        &self.history
    }

    fn iterating(&self) -> Duration {
        self.spent
    }

    fn update(&mut self, a: &Csr<T, B>) -> Result<()> {
        self.weights = None;
        if let Some(device) = &mut self.device {
            self.host = None;
            return device.update(a);
        }
        match &mut self.host {
            Some(host) => host.update(&in_doubles(a.to_host(&self.backend)?)),
            None => Ok(()),
        }
    }

    fn solve_quickly(
        &mut self,
        transposed: bool,
        b: &[T],
        x: &mut [T],
        norms: &RowNorms<T, B>,
    ) -> Result<bool> {
        let Some(direct) = &mut self.host else { return Ok(false) };
        if self.device.is_some() || size_of::<T>() != size_of::<T::Double>() {
            // Rounding x to single precision would have to be judged too.
            return Ok(false);
        }
        let weights = match self.weights.take() {
            Some(weights) => weights,
            None => norms.to_host(&self.backend)?,
        };
        let tolerance = self.options.threshold_of_one::<T>();
        let good = direct.solve_quickly(transposed, b, x, (tolerance, &weights));
        self.weights = Some(weights);
        Ok(good)
    }

    fn bytes(&self, a: &dyn LinearOperator<T, B>) -> f64 {
        a.bytes() as f64
    }

    fn forecast(&self, a: &dyn LinearOperator<T, B>, iterations: usize, bandwidth: f64) -> (f64, f64) {
        let bytes = iterations as f64 * self.bytes(a);
        self.expected.unwrap_or((bytes, bytes / bandwidth))
    }

    fn moved(&self, _: &Report) -> f64 {
        self.factor_bytes as f64
    }

    fn evidence(&self) -> Evidence {
        self.evidence.clone()
    }

    fn remark(&self) -> Option<String> {
        self.remark.clone()
    }

    fn failed(&self) -> Vec<Kind> {
        self.host.as_ref().map(Direct::failed).unwrap_or_default()
    }
}

/// Maximum bytes and multiplications, if there is a limit.
type Limit = Option<(f64, f64)>;

/// A factorisation on the host, and its limits.
fn on_host<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    limits: &Limits,
) -> Result<(Direct<T::Double>, Limit)> {
    let mut wishes = DirectOptions {
        condition: limits.condition,
        without: limits.without.clone(),
        ..DirectOptions::default()
    };
    if let Some(most) = limits.memory {
        wishes.memory_limit = most;
    }
    let memory = wishes.memory_limit as f64;
    if let Some(flops) = limits.flops {
        wishes.dense_flop_limit = DENSE * flops;
        wishes.flop_limit = MORE * flops;
    }
    let direct = Direct::planned(&in_doubles(a.to_host(backend)?), wishes)?;
    Ok((direct, limits.flops.map(|flops| (memory, flops))))
}

/// Refuses a factorisation that is expected to end after the deadline.
fn in_time(forecast: &Analysis, deadline: Option<Instant>) -> Result<()> {
    let Some(deadline) = deadline else { return Ok(()) };
    let (seconds, left) = (forecast.seconds(), deadline.saturating_duration_since(Instant::now()));
    if seconds > left.as_secs_f64() {
        let reason = Reason::TooLate { seconds, left: left.as_secs_f64() };
        return Err(Error::Unsupported(format!("{}: {reason}", forecast.kind)));
    }
    Ok(())
}

/// Refuses a factorisation that takes more bytes or multiplications than allowed.
fn within(forecast: &Analysis, limit: Limit) -> Result<()> {
    match limit {
        Some((memory, _)) if forecast.bytes > memory => {
            let needs = Reason::TooLarge { bytes: forecast.bytes as u64, limit: memory as u64 };
            Err(Error::Unsupported(format!("{}: {needs}", forecast.kind)))
        }
        Some((_, flops)) if forecast.in_blocks() > flops => Err(Error::Unsupported(format!(
            "{} takes {:.1e} multiplications and {} of memory, which is too much",
            forecast.kind,
            forecast.flops,
            bytes(forecast.bytes as u64)
        ))),
        _ => Ok(()),
    }
}

/// The outcome of a solve on a device that did not meet the tolerance.
fn failure(reasons: &[(Kind, Reason)]) -> Outcome {
    if reasons.iter().any(|(_, reason)| *reason == Reason::Stopped) {
        return Outcome::Interrupted;
    }
    Outcome::Stagnated
}

/// The facts about A that a direct solve has found.
fn evidence(told: &DirectReport) -> Evidence {
    let unmatched = told.reasons.iter().find_map(|(_, reason)| match reason {
        Reason::StructurallySingular { unmatched, .. } if !told.solved => Some(unmatched.clone()),
        _ => None,
    });
    // The smallest memory that any kind of factorisation would need.
    let needed = told.reasons.iter().filter_map(|(_, reason)| match reason {
        Reason::TooLarge { bytes, .. } if !told.solved => Some(*bytes),
        _ => None,
    });
    Evidence {
        memory_needed: needed.min(),
        condition: told.condition,
        digits: told.digits,
        singularity: told.singularity,
        unmatched,
    }
}

/// The trail's remark about a factorisation.
fn words(told: &DirectReport) -> String {
    let steps = told.refinements + told.iterations;
    let order = told.order.map(|order| format!(", order by {order}")).unwrap_or_default();
    let words = format!(
        "{told} after {steps} refinement steps; the factor takes {}{order}",
        bytes(told.factor_bytes)
    );
    words + &said(&told.reasons)
}

/// The trail's remark about a factorisation on a device.
fn words_of_device(told: &DeviceReport) -> String {
    let steps = told.refinements + told.iterations;
    let DeviceSeconds { order, analysis, factor, solve, .. } = told.seconds;
    let words = format!(
        "{told} after {steps} refinement steps; the factors take {}; ordering {}, analysis {}, factorisation {}, \
         solve {}",
        bytes(told.estimate.bytes),
        seconds(order),
        seconds(analysis),
        seconds(factor),
        seconds(solve)
    );
    let bits = if told.same_bits { "" } else { "; the last bits may differ, because memory is short" };
    words + bits + &said(&told.reasons)
}

fn said(reasons: &[(Kind, Reason)]) -> String {
    reasons.iter().map(|(kind, reason)| format!("; {kind}: {reason}")).collect()
}
