//! The judge of a solution. An x whose residual is small enough in the 2-norm may still have to meet other conditions
//! of the caller, for instance row by row.

use crate::backend::Backend;
use crate::error::Result;
use crate::scalar::Scalar;

/// An x whose residual has met the threshold, or misses it by no more than rounding may have added.
pub(crate) struct Certified<'s, T: Scalar, B: Backend> {
    pub(crate) x: &'s B::Slice<T>,
    /// `scale` (b - A x), where `scale` is a power of two.
    pub(crate) r: &'s B::Slice<T>,
    pub(crate) scale: f64,
    /// ||b - A x|| / ||b||.
    pub(crate) relative: f64,
    /// True if the threshold is met.
    pub(crate) meets: bool,
}

/// If the recurrence has met the threshold, the judge is also called for a residual of up to this many times the
/// threshold, computed in working precision: if |A| |x| is far above b, rounding in b - A x alone may be that large.
pub(crate) const NEARLY: f64 = 100.0;

/// The verdict of a judge on an x.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judgement {
    /// x is the solution.
    Met,
    /// The method has to go on until its residual, relative to b, is at most this.
    More(f64),
    /// x is not the solution, and a smaller residual would not help.
    Missed,
}

/// Decides whether an x is the solution.
pub(crate) type Judge<'a, T, B> = dyn FnMut(Certified<'_, T, B>) -> Result<Judgement> + 'a;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Host;
    use crate::generate::poisson2d;
    use crate::krylov::{Cg, Gmres, Outcome, Report, SolveOptions};
    use crate::precondition::Identity;
    use std::ops::ControlFlow;

    /// Solves to 1e-3, with a judge that then asks for `next` as long as the residual is larger.
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
