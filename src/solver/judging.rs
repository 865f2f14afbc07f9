//! The judge of a Krylov method's x: decides whether it is the solution, and which residual to ask for next if it is
//! not.
//!
//! A method works in one norm. If its x does not meet the tolerance row by row, or its residual is dominated by
//! rounding, the method goes on as long as that improves x.

use super::SolverBackend;
use super::choice::is_fault;
use super::system::Stored;
use crate::backend::Space;
use crate::direct::{ALMOST, EVEN, excused, is_orthogonal};
use crate::error::Result;
use crate::krylov::{Judgement, Outcome, SolveOptions};
use crate::scalar::Scalar;
use crate::verdict::{Known, RowNorms, Verdict, decided, more, normal_residual, verdict};
use std::cell::Cell;

/// Judges x on the backend. If that leaves the verdict open, judges it row by row on the host.
pub(super) fn judge<T: Scalar, B: SolverBackend>(
    backend: &B,
    (stored, norms): (&Stored<T, B>, &mut RowNorms<T, B>),
    (b, x): (&B::Slice<T>, &B::Slice<T>),
    options: &SolveOptions,
    known: Option<Known<'_, T, B>>,
) -> Result<Verdict> {
    let space = Space::new(backend.clone());
    let told = verdict(&space, (stored.operator(), &mut *norms), (b, x), options, known)?;
    if !told.undecided || !told.residual.is_finite() {
        return Ok(told);
    }
    let a = stored.to_csr(backend)?.to_host(backend)?;
    let (b, x) = (backend.download(b)?, backend.download(x)?);
    Ok(decided(told, &a, (&b, &x), &norms.to_host(backend)?, options))
}

/// The verdicts of one stage of a solve.
pub(super) struct Judging<'a> {
    /// The options of the caller.
    pub(super) asked: &'a SolveOptions,
    /// The relative residual that the method has to reach next, shared with the forecast of the race.
    sought: &'a Cell<Option<f64>>,
    worst: f64,
    /// The verdict on the final x of the method, if it meets the tolerance.
    pub(super) last: Option<Verdict>,
}

impl<'a> Judging<'a> {
    pub(super) fn new(asked: &'a SolveOptions, sought: &'a Cell<Option<f64>>) -> Self {
        Self { asked, sought, worst: f64::INFINITY, last: None }
    }

    /// Returns whether the final x of a method may be the solution without having been judged: it did not reach the
    /// residual that was asked for beyond the tolerance, but may be good enough.
    pub(super) fn is_open(&self, outcome: &Outcome) -> bool {
        let has_asked = self.worst.is_finite();
        self.last.is_none() && (*outcome == Outcome::Converged || (is_fault(outcome) && has_asked))
    }

    /// Judges an x with this verdict. `own` is its residual in the method's norm, relative to b; `meets` is true if
    /// that is small enough for the method's current tolerance.
    pub(super) fn hear<T: Scalar>(&mut self, verdict: Verdict, own: f64, meets: bool) -> Judgement {
        if verdict.met {
            self.last = Some(verdict);
            return Judgement::Met;
        }
        if !meets {
            return Judgement::Missed;
        }
        let excess = verdict.excess::<T>(self.asked);
        let next = more(own, excess, self.worst);
        self.worst = excess;
        match next {
            Some(next) => {
                self.sought.set(Some(next));
                Judgement::More(next)
            }
            None => Judgement::Missed,
        }
    }
}

/// Returns ||A^H r|| / (||A|| ||r||) for the residual r of x, if it is small enough to show that x is a least-squares
/// solution, and if r is orthogonal to every column of A whatever the units of rows and columns are. Returns it in any
/// case if it is not `tested`.
pub(super) fn nearest<T: Scalar, B: SolverBackend>(
    backend: &B,
    (stored, norms): (&Stored<T, B>, &mut RowNorms<T, B>),
    (b, x): (&B::Slice<T>, &B::Slice<T>),
    options: &SolveOptions,
    tested: bool,
) -> Result<Option<f64>> {
    let (space, part) = (Space::new(backend.clone()), options.least_squares_tolerance::<T>());
    let (strict, told) = normal_residual(&space, (stored.operator(), &mut *norms), b, x)?;
    if !tested {
        return Ok(Some(told));
    }
    let judged = judge(backend, (stored, &mut *norms), (b, x), options, None)?;
    let (sums, is_even) = (norms.most * judged.x + judged.b, norms.spread() <= EVEN);
    let rounding = if is_even { excused::<T>((sums, judged.b), judged.residual) } else { 0.0 };
    // If the residual meets the tolerance, or nearly, only rows in small units miss it.
    let least = options.threshold::<T>(judged.b) * if is_even { 1.0 } else { ALMOST };
    if strict > part.max(rounding) || judged.residual <= least {
        return Ok(None);
    }
    let a = stored.to_csr(backend)?.to_host(backend)?;
    let (b, x) = (backend.download(b)?, backend.download(x)?);
    let weights = norms.to_host(backend)?.plain;
    Ok(is_orthogonal((&a, &b, &x), weights.as_deref(), part).then_some(told))
}
