//! Smoothers: a few steps of Chebyshev's iteration, or of one with incomplete factors, that damp the errors that the
//! next level cannot represent.

use super::MultigridBackend;
use super::blocks::{Blocks, Scales};
use crate::backend::{ChebyshevStep, CsrParts, Op, TriangularSteps};
use crate::error::Result;
use crate::matrix::Csr;
use crate::operator::LinearOperator;
use crate::precondition::{Ilu, Preconditioner};
use crate::scalar::{Real, Scalar};
use num_traits::{One, Zero};

/// The matrix of a level, in the format that suits it.
pub(super) type LevelMatrix<T, B> = dyn LinearOperator<T, B>;

/// The scaling of residuals.
#[derive(Debug)]
pub(super) enum Scaling<T: Scalar, B: TriangularSteps> {
    /// The reciprocals of the row sums of magnitudes: l1-Jacobi.
    Diagonal(B::Vec<T::Real>),
    /// The inverses of small blocks of strongly coupled unknowns.
    Blocks(Blocks<T, B>),
    /// Incomplete factors without fill (ILU(0)), which follow a flow through many unknowns in one step; blocks damp
    /// errors carried by convection only within each block.
    Factors(Box<Ilu<T, B>>),
}

/// y becomes `keep` y + `momentum` (the y before) + `step` D^-1 (b - A y).
#[derive(Debug, Clone, Copy)]
struct Step<R> {
    keep: R,
    momentum: R,
    step: R,
}

/// Chebyshev's iteration of the fourth kind for A x = b, with eigenvalues of D^-1 A up to a bound. It needs no lower
/// bound. For one or two steps, the weights are those with which the cycle converges fastest (Lottes, Optimal
/// polynomial smoothers for multigrid V-cycles, Numerical Linear Algebra with Applications, 2023).
#[derive(Debug)]
pub(super) struct Smoother<T: Scalar, B: TriangularSteps> {
    scaling: Scaling<T, B>,
    steps: Vec<Step<T::Real>>,
    /// True if all steps have weight one.
    plain: bool,
}

/// Lottes' weights of the corrections of one step and of two.
const ONE: f64 = 1.125;
const TWO: [f64; 2] = [1.023_872_875_703_13, 1.264_089_053_710_85];

/// The weights of `steps` steps, at least 1, for eigenvalues up to `largest`.
fn chebyshev<R: Real>(steps: usize, largest: f64) -> Vec<Step<R>> {
    let by = |keep: f64, momentum: f64, step: f64| Step {
        keep: R::from_f64(keep),
        momentum: R::from_f64(momentum),
        step: R::from_f64(step / largest),
    };
    // Correction i is (2i - 3) / (2i + 1) times the one before, plus (8i - 4) / (2i + 1) times the scaled residual.
    match steps.max(1) {
        1 => vec![by(1.0, 0.0, ONE * 4.0 / 3.0)],
        2 => {
            let keep = TWO[0] + TWO[1] / 5.0;
            vec![by(1.0, 0.0, 4.0 / 3.0), by(keep, 1.0 - keep, TWO[1] * 12.0 / 5.0)]
        }
        more => (1..=more as i32)
            .map(|i| {
                let i = f64::from(i);
                let again = if i == 1.0 { 0.0 } else { (2.0 * i - 3.0) / (2.0 * i + 1.0) };
                by(1.0 + again, -again, (8.0 * i - 4.0) / (2.0 * i + 1.0))
            })
            .collect(),
    }
}

impl<T: Scalar, B: MultigridBackend> Smoother<T, B> {
    /// A smoother of `steps` steps, at least 1, for eigenvalues up to `largest`.
    pub(super) fn new(scaling: Scaling<T, B>, steps: usize, largest: f64) -> Self {
        Self { scaling, steps: chebyshev(steps, largest), plain: false }
    }

    /// A smoother of `steps` steps of the plain iteration x += D^-1 (b - A x), for eigenvalues that need not be real.
    pub(super) fn plain(scaling: Scaling<T, B>, steps: usize) -> Self {
        let step = Step { keep: T::Real::one(), momentum: T::Real::zero(), step: T::Real::one() };
        Self { scaling, steps: vec![step; steps.max(1)], plain: true }
    }

    /// The number of scalars that `other` needs in addition to the length of x.
    pub(super) fn work_len(&self) -> usize {
        match &self.scaling {
            Scaling::Factors(factors) => factors.work_len(),
            _ => 0,
        }
    }

    /// Smooths x, starting from zero; `other` and `t` are workspaces.
    pub(super) fn smooth_from_zero(
        &self,
        backend: &B,
        a: &LevelMatrix<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        (other, t): (&mut B::Slice<T>, &mut B::Slice<T>),
    ) -> Result<()> {
        if let Scaling::Factors(factors) = &self.scaling {
            let (change, work) = B::split_mut(other, B::len(x));
            factors.solve(backend, work, b, x)?;
            for _ in 1..self.steps.len() {
                residual(backend, a, b, x, t)?;
                factors.solve(backend, work, t, change)?;
                backend.axpby(T::one(), change, T::one(), x)?;
            }
            return Ok(());
        }
        // Two vectors alternate such that the last step writes to x.
        let (mut last, mut now) = if self.steps.len() % 2 == 1 { (x, other) } else { (other, x) };
        for (number, &step) in self.steps.iter().enumerate() {
            // The iterate before the first is zero.
            let step = if number == 1 { Step { momentum: T::Real::zero(), ..step } } else { step };
            let from = (number > 0).then_some(&*now);
            self.step(backend, a, step, b, from, last, t)?;
            std::mem::swap(&mut last, &mut now);
        }
        Ok(())
    }

    /// Smooths x, starting from its current values.
    pub(super) fn smooth(
        &self,
        backend: &B,
        a: &LevelMatrix<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        (other, t): (&mut B::Slice<T>, &mut B::Slice<T>),
    ) -> Result<()> {
        if let Scaling::Factors(factors) = &self.scaling {
            let (change, work) = B::split_mut(other, B::len(x));
            for _ in &self.steps {
                residual(backend, a, b, x, t)?;
                factors.solve(backend, work, t, change)?;
                backend.axpby(T::one(), change, T::one(), x)?;
            }
            return Ok(());
        }
        if let [only] = self.steps[..] {
            residual(backend, a, b, x, t)?;
            return match &self.scaling {
                Scaling::Diagonal(d) => {
                    let step = ChebyshevStep {
                        keep: T::Real::zero(),
                        momentum: T::Real::one(),
                        step: only.step,
                        d: Some(&**d),
                        r: t,
                        last: x,
                    };
                    backend.chebyshev_step(step, None)
                }
                Scaling::Blocks(blocks) => blocks.product(backend, T::from_real(only.step), t, T::one(), x),
                Scaling::Factors(_) => unreachable!("factors take plain steps"),
            };
        }
        let odd = self.steps.len() % 2 == 1;
        {
            let (mut now, mut last) = (&mut *x, &mut *other);
            for &step in &self.steps {
                self.step(backend, a, step, b, Some(now), last, t)?;
                std::mem::swap(&mut last, &mut now);
            }
        }
        if odd { backend.copy(other, x) } else { Ok(()) }
    }

    /// One step from `now` (from zero if that is `None`). `last` has the iterate before, and gets the next one.
    #[allow(clippy::too_many_arguments)]
    fn step(
        &self,
        backend: &B,
        a: &LevelMatrix<T, B>,
        Step { keep, momentum, step }: Step<T::Real>,
        b: &B::Slice<T>,
        now: Option<&B::Slice<T>>,
        last: &mut B::Slice<T>,
        t: &mut B::Slice<T>,
    ) -> Result<()> {
        match &self.scaling {
            Scaling::Diagonal(d) => {
                let by = ChebyshevStep { keep, momentum, step, d: Some(&**d), r: b, last };
                let Some(now) = now else { return backend.chebyshev_step(by, None) };
                if let Some(a) = a.chebyshev_product()
                    && a.chebyshev_step(backend, ChebyshevStep { last: &mut *by.last, ..by }, now)?
                {
                    return Ok(());
                }
                a.apply(backend, now, t)?;
                backend.chebyshev_step(by, Some((now, t)))
            }
            Scaling::Blocks(blocks) => {
                let step = T::from_real(step);
                let Some(now) = now else { return blocks.product(backend, step, b, T::zero(), last) };
                residual(backend, a, b, now, t)?;
                backend.axpby(T::from_real(keep), now, T::from_real(momentum), last)?;
                blocks.product(backend, step, t, T::one(), last)
            }
            Scaling::Factors(_) => unreachable!("factors take plain steps"),
        }
    }

    /// The scaling for these values of the matrix, if it is diagonal; `None` for blocks.
    pub(super) fn sums(&self, backend: &B, a: CsrParts<'_, T, B>) -> Result<Option<B::Vec<T::Real>>> {
        matches!(self.scaling, Scaling::Diagonal(_)).then(|| Scales::sums(backend, a)).transpose()
    }

    /// Sets the scaling that [`Smoother::sums`] returned.
    pub(super) fn take_sums(&mut self, sums: B::Vec<T::Real>) {
        if let Scaling::Diagonal(before) = &mut self.scaling {
            *before = sums;
        }
    }

    /// Updates the inverses of smoothers with blocks for new values of their matrices; the blocks are kept.
    pub(super) fn renew<'a>(
        backend: &B,
        all: impl Iterator<Item = (&'a Csr<T, B>, &'a mut Self)>,
    ) -> Result<()> {
        let (mut steps, mut in_blocks) = (Vec::new(), Vec::new());
        for (a, smoother) in all {
            match &mut smoother.scaling {
                Scaling::Diagonal(_) => {}
                Scaling::Factors(factors) => factors.update(backend, a)?,
                Scaling::Blocks(blocks) if smoother.plain => blocks.renew_bounded(backend, a)?,
                Scaling::Blocks(blocks) => {
                    steps.push(&mut smoother.steps);
                    in_blocks.push((a, blocks));
                }
            }
        }
        for (steps, largest) in steps.into_iter().zip(Blocks::renew(backend, &mut in_blocks)?) {
            *steps = chebyshev(steps.len(), largest);
        }
        Ok(())
    }

    /// Bytes that the scaling takes.
    pub(super) fn storage_bytes(&self) -> usize {
        match &self.scaling {
            Scaling::Diagonal(d) => B::len(d) * size_of::<T::Real>(),
            Scaling::Blocks(blocks) => blocks.storage_bytes(),
            Scaling::Factors(factors) => factors.storage_bytes(),
        }
    }

    /// The number of products with A in the smoothings before and after the correction together.
    pub(super) fn products(&self) -> usize {
        2 * self.steps.len() - 1
    }
}

/// t = b - A x.
pub(super) fn residual<T: Scalar, B: MultigridBackend>(
    backend: &B,
    a: &LevelMatrix<T, B>,
    b: &B::Slice<T>,
    x: &B::Slice<T>,
    t: &mut B::Slice<T>,
) -> Result<()> {
    // In one pass if the matrix can fuse its product with a step: a step of length one, from zero.
    if let Some(a) = a.chebyshev_product() {
        let (keep, momentum, step) = (T::Real::zero(), T::Real::zero(), T::Real::one());
        let by = ChebyshevStep { keep, momentum, step, d: None, r: b, last: &mut *t };
        if a.chebyshev_step(backend, by, x)? {
            return Ok(());
        }
    }
    backend.copy(b, t)?;
    a.product_op(backend, Op::None, -T::one(), x, T::one(), t)
}
