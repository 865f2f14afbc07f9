//! Conjugate gradients for one pattern with many sets of values and many right-hand sides.

use super::{Cg, MultiCg, Report, SolveOptions, count_systems};
use crate::backend::{Conversions, KrylovSteps, Products, RowFacts};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::precondition::Jacobi;
use crate::scalar::Scalar;
use std::fmt;
use std::ops::ControlFlow;

/// Conjugate gradients with the Jacobi preconditioner for a pattern that stays: [`setup`](FixedPatternCg::setup)
/// allocates all memory, [`update`](FixedPatternCg::update) and [`solve`](FixedPatternCg::solve) allocate nothing, on
/// the host or on a device. All vectors are buffers of the backend: nothing is copied to the host and back.
///
/// ```
/// use residua::{Csr, Host, krylov::{SolveOptions, FixedPatternCg}};
/// // | 2 -1 |
/// // |-1  2 | x = b, then with 4 in place of 2
/// let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![2.0, -1.0, -1.0, 2.0])?;
/// let mut solver = FixedPatternCg::setup(&Host, a, SolveOptions::default())?;
/// let mut x = vec![0.0; 2];
/// assert!(solver.solve(&[1.0, 1.0], &mut x)?.outcome.is_converged() && x == [1.0, 1.0]);
/// solver.update(&[4.0, -1.0, -1.0, 4.0])?;
/// assert!(solver.solve(&[3.0, 3.0], &mut x)?.outcome.is_converged() && x == [1.0, 1.0]);
/// # Ok::<(), residua::Error>(())
/// ```
///
/// An iteration moves as many bytes as that of [`Cg`] with Jacobi, an update three values per entry and the diagonal.
pub struct FixedPatternCg<T: Scalar, B: KrylovSteps> {
    backend: B,
    a: Csr<T, B>,
    jacobi: Jacobi<T, B>,
    solver: Solver<T, B>,
}

/// One right-hand side at a time, or several together.
enum Solver<T: Scalar, B: KrylovSteps> {
    One(Cg<T, B>),
    Several(MultiCg<T, B>),
}

impl<T: Scalar, B: KrylovSteps> fmt::Debug for FixedPatternCg<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedPatternCg({:?})", self.a)
    }
}

impl<T: Scalar, B: KrylovSteps + Products + Conversions + RowFacts> FixedPatternCg<T, B> {
    /// A solver for the pattern of `a`, which also has the first values.
    ///
    /// # Errors
    /// As [`Jacobi::new`], and if memory runs out.
    pub fn setup(backend: &B, a: Csr<T, B>, options: SolveOptions) -> Result<Self> {
        let jacobi = Jacobi::new(backend, &a)?;
        let solver = Solver::One(Cg::new(backend, a.rows(), options)?);
        Ok(Self { backend: backend.clone(), a, jacobi, solver })
    }

    /// As [`FixedPatternCg::setup`], with memory for [`FixedPatternCg::solve_each`] to solve up to `systems` right-hand
    /// sides together ([`MultiCg`]), 4 n scalars for each: for matrices too large for the caches.
    ///
    /// # Errors
    /// As [`FixedPatternCg::setup`] and [`MultiCg::new`].
    pub fn setup_for_several(
        backend: &B,
        a: Csr<T, B>,
        systems: usize,
        options: SolveOptions,
    ) -> Result<Self> {
        let jacobi = Jacobi::new(backend, &a)?;
        let solver = Solver::Several(MultiCg::new(backend, a.rows(), systems, options)?);
        Ok(Self { backend: backend.clone(), a, jacobi, solver })
    }

    /// Replaces the values, given in the order of the matrix's entries.
    ///
    /// # Errors
    /// If the number of values differs, and as [`Jacobi::update`]; after an error, update again before the next solve.
    pub fn update(&mut self, values: &B::Slice<T>) -> Result<()> {
        Error::check_dimension("number of values", self.a.nonzeros(), B::len(values))?;
        self.backend.copy(values, self.a.values_mut())?;
        self.jacobi.update(&self.backend, &self.a)
    }

    /// As [`Cg::solve`]: starts from `x`, and leaves the solution there.
    ///
    /// # Errors
    /// As [`Cg::solve`].
    pub fn solve(&mut self, b: &B::Slice<T>, x: &mut B::Slice<T>) -> Result<Report> {
        let cg = match &mut self.solver {
            Solver::One(cg) => cg,
            Solver::Several(cg) => cg.alone(),
        };
        cg.solve(&self.a, &self.jacobi, b, x, |_, _| ControlFlow::Continue(()))
    }

    /// Solves for several right-hand sides. These are stored one after another in `b`, the solutions in `x`. They are
    /// solved one by one, or several at once after [`FixedPatternCg::setup_for_several`]. `told` gets each report with
    /// the number of its right-hand side, and can stop the rest.
    ///
    /// # Errors
    /// If the length of b is not a multiple of the number of rows, or x has another length, and as [`Cg::solve`].
    pub fn solve_each(
        &mut self,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut told: impl FnMut(usize, &Report) -> ControlFlow<()>,
    ) -> Result<()> {
        let n = self.a.rows();
        let count = count_systems(n, B::len(b), B::len(x))?;
        let most = match &self.solver {
            Solver::One(_) => 1,
            Solver::Several(cg) => cg.systems(),
        };
        for first in (0..count).step_by(most) {
            let numbers = first..count.min(first + most);
            let part = numbers.start * n..numbers.end * n;
            let (b, x) = (B::part(b, part.clone()), B::part_mut(x, part));
            let alone;
            let reports = match &mut self.solver {
                Solver::Several(cg) => {
                    cg.solve(&self.a, &self.jacobi, b, x, |_, _, _| ControlFlow::Continue(()))?
                }
                Solver::One(_) => {
                    alone = [self.solve(b, x)?];
                    &alone
                }
            };
            if numbers.zip(reports).any(|(number, report)| told(number, report).is_break()) {
                break;
            }
        }
        Ok(())
    }

    /// The matrix.
    pub fn matrix(&self) -> &Csr<T, B> {
        &self.a
    }

    /// Residual norms of the last solve, as [`Cg::history`].
    pub fn history(&self) -> &[f64] {
        match &self.solver {
            Solver::One(cg) => cg.history(),
            Solver::Several(cg) => cg.last_history(),
        }
    }
}
