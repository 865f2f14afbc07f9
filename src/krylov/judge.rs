//! Whether an x whose residual is small enough in the norm of its method is the solution: who asked for it may know of
//! more that has to hold, row by row for instance.

use crate::backend::Backend;
use crate::error::Result;
use crate::scalar::Scalar;

/// An x whose residual has met the threshold, or misses it by what rounding may have added to it.
pub(crate) struct Certified<'s, T: Scalar, B: Backend> {
    pub(crate) x: &'s B::Slice<T>,
    /// `scale` (b - A x), and the power of two that it is scaled by.
    pub(crate) r: &'s B::Slice<T>,
    pub(crate) scale: f64,
    /// ||b - A x|| / ||b||.
    pub(crate) relative: f64,
    /// Whether the threshold is met.
    pub(crate) meets: bool,
}

/// A residual of up to so many times the threshold, computed in working precision where its recurrence has met that,
/// is shown to the judge too: where |A| |x| is far above b, rounding in b - A x alone may be that large.
pub(crate) const NEARLY: f64 = 100.0;

/// What is said of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judgement {
    /// It is the solution.
    Met,
    /// The method goes on until its residual is at most this, relative to b.
    More(f64),
    /// It is not the solution, and a smaller residual brings it no nearer.
    Missed,
}

/// Who says it.
pub(crate) type Judge<'a, T, B> = dyn FnMut(Certified<'_, T, B>) -> Result<Judgement> + 'a;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use crate::generate::poisson2d;
    use crate::krylov::{Cg, Gmres, Outcome, Report, SolveOptions};
    use crate::precondition::Identity;
    use std::ops::ControlFlow;

    /// Solves to 1e-3, and then for a judge that asks for `next` where the residual is larger.
    fn judged(next: f64, method: &str) -> (Report, usize) {
        let (a, b) = (poisson2d(30, 30).unwrap(), vec![1.0; 900]);
        let (mut x, mut asked) = (vec![0.0; 900], 0);
        let options = SolveOptions::default().tolerance(1e-3);
        let mut judge = |certified: Certified<'_, f64, Host>| {
            asked += 1;
            let is_met = certified.relative <= next;
            Ok(if is_met { Judgement::Met } else { Judgement::More(next) })
        };
        let mut go_on = |_, _| ControlFlow::Continue(());
        let system: (
            &dyn crate::LinearOperator<f64, Host>,
            &dyn crate::precondition::Preconditioner<f64, Host>,
        ) = (&a, &Identity);
        let report = if method == "cg" {
            Cg::new(&Host, 900, options).unwrap().solve_judged(system, &b, &mut x, &mut go_on, &mut judge)
        } else {
            Gmres::new(&Host, 900, 30, options)
                .unwrap()
                .solve_judged(system, &b, &mut x, &mut go_on, &mut judge)
        };
        (report.unwrap(), asked)
    }

    #[test]
    fn conjugate_gradients_go_on_where_they_were_when_more_is_asked_for() {
        let (all, _) = judged(1e-3, "cg");
        let (more, asked) = judged(1e-10, "cg");
        let (a, b) = (poisson2d(30, 30).unwrap(), vec![1.0; 900]);
        let options = SolveOptions::default().tolerance(1e-10);
        let mut once = Cg::new(&Host, 900, options).unwrap();
        let at_once =
            once.solve(&a, &Identity, &b, &mut vec![0.0; 900], |_, _| ControlFlow::Continue(())).unwrap();
        assert!(all.iterations < more.iterations && asked >= 2, "{all:?} {more:?}");
        assert!(more.iterations <= at_once.iterations + 2 && more.restarts == 0, "{more:?} {at_once:?}");
        assert!(more.outcome.is_converged() && more.relative_residual <= 1e-10, "{more:?}");
    }

    #[test]
    fn a_method_that_begins_anew_reaches_what_is_asked_for_too() {
        let (more, _) = judged(1e-10, "gmres");
        assert!(more.outcome.is_converged() && more.relative_residual <= 1e-10, "{more:?}");
    }

    #[test]
    fn what_is_missed_ends_as_stagnated_with_the_x_that_was_judged() {
        let (a, b, mut x) = (poisson2d(9, 9).unwrap(), vec![1.0; 81], vec![0.0; 81]);
        let mut cg = Cg::new(&Host, 81, SolveOptions::default()).unwrap();
        let mut of_x = Vec::new();
        let mut judge = |certified: Certified<'_, f64, Host>| {
            of_x = certified.x.to_vec();
            Ok(Judgement::Missed)
        };
        let mut go_on = |_, _| ControlFlow::Continue(());
        let report = cg.solve_judged((&a, &Identity), &b, &mut x, &mut go_on, &mut judge).unwrap();
        assert_eq!((report.outcome, &x), (Outcome::Stagnated, &of_x));
    }
}
