//! A candidate: a method with its preconditioner and precision, and its budget.

use crate::solver::names::{Method, Precision, PreconditionerChoice};

/// When a candidate is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::solver) enum When {
    Always,
    /// Unless conjugate gradients have found that the matrix is not positive definite.
    Definite,
    /// Only if conjugate gradients have found that it is not.
    Indefinite,
    /// Only if the iterations before it were given up because this candidate is forecast to finish earlier.
    HandedOver,
    /// The same, or if what comes next is forecast to take much longer than a trial of this candidate.
    HandedOverOrCostly,
    /// Only if what comes next is forecast to take much longer than a trial of this candidate.
    BeforeCostly,
}

impl When {
    /// Whether iterations may be given up for this candidate.
    pub(in crate::solver) fn is_handed_over(self) -> bool {
        matches!(self, When::HandedOver | When::HandedOverOrCostly)
    }

    /// The condition in words; none for `Always`.
    pub(in crate::solver) fn words(self) -> Option<&'static str> {
        match self {
            When::Always => None,
            When::Definite => Some("if A has not turned out to be indefinite"),
            When::Indefinite => Some("if A turns out to be indefinite"),
            When::BeforeCostly => Some("if the next candidate is forecast to take much longer"),
            When::HandedOverOrCostly => Some(
                "if it is forecast to finish before the iterations, or the next candidate to take much longer",
            ),
            When::HandedOver => Some("if it is forecast to finish before the iterations"),
        }
    }
}

/// The origin of a candidate's preconditioner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::solver) enum Source {
    /// It is set up already: it was chosen for the matrix, or named.
    Chosen,
    /// The diagonal, which is set up already in addition to the chosen one.
    Beside,
    /// It is set up when the candidate is tried.
    Later,
}

/// A method that may solve a system.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Candidate {
    pub(in crate::solver) method: Method,
    pub(in crate::solver) preconditioner: PreconditionerChoice,
    pub(in crate::solver) precision: Precision,
    pub(in crate::solver) why: &'static str,
    pub(in crate::solver) source: Source,
    pub(in crate::solver) when: When,
    /// The expected number of iterations.
    pub(in crate::solver) iterations: usize,
    /// The fraction of the remaining iterations that it may take before the next candidate is tried; `None` if it may
    /// take all of them.
    pub(in crate::solver) share: Option<f64>,
    /// True if it goes on beyond its share as long as the slope of the residual predicts the end within the same number
    /// of iterations.
    pub(in crate::solver) may_go_on: bool,
    /// The maximum number of multiplications of a factorisation; none if it is not limited.
    pub(in crate::solver) flops: Option<f64>,
    /// The maximum number of bytes of a factor; if there is none, the free memory is the limit.
    pub(in crate::solver) memory: Option<u64>,
    /// Whether a factorisation estimates the condition number.
    pub(in crate::solver) condition: bool,
    /// Whether iterations are given up if the factorisation that follows them is forecast to finish earlier.
    pub(in crate::solver) race: bool,
}

impl Candidate {
    /// Its method, preconditioner and precision.
    pub(in crate::solver) fn what(&self) -> (Method, PreconditionerChoice, Precision) {
        (self.method, self.preconditioner, self.precision)
    }
}

impl AsRef<Candidate> for Candidate {
    fn as_ref(&self) -> &Candidate {
        self
    }
}
