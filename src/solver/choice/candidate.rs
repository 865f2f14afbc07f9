//! A candidate: a method with its preconditioner in a precision, and how far it may go.

use crate::solver::names::{Method, Precision, PreconditionerChoice};

/// For which events a candidate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::solver) enum When {
    Always,
    /// Until conjugate gradients have told that the matrix is not positive definite.
    Definite,
    /// Once they have told it.
    Indefinite,
    /// Once the iterations before it were given up for it, since it is forecast to shorten them.
    HandedOver,
}

impl When {
    /// The same in words, if it is not always.
    pub(in crate::solver) fn words(self) -> Option<&'static str> {
        match self {
            When::Always => None,
            When::Definite => Some("if A has not turned out to be indefinite"),
            When::Indefinite => Some("if A turns out to be indefinite"),
            When::HandedOver => Some("if it is forecast to shorten the iterations before it"),
        }
    }
}

/// What a candidate's preconditioner is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::solver) enum Source {
    /// It is set up: the one that was chosen for the matrix or named.
    Chosen,
    /// It is set up beside that: the diagonal.
    Beside,
    /// It is set up when its turn comes.
    Later,
}

/// What may solve a system.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Candidate {
    pub(in crate::solver) method: Method,
    pub(in crate::solver) preconditioner: PreconditionerChoice,
    pub(in crate::solver) precision: Precision,
    pub(in crate::solver) why: &'static str,
    pub(in crate::solver) source: Source,
    pub(in crate::solver) when: When,
    /// Iterations to be expected.
    pub(in crate::solver) iterations: usize,
    /// The share of the iterations left that it may take before the next one's turn; none: all of them, and then it is
    /// over.
    pub(in crate::solver) share: Option<f64>,
    /// Whether it goes on beyond its share while the slope of the residual promises the end within as many iterations
    /// again.
    pub(in crate::solver) may_go_on: bool,
    /// The most multiplications of a factorisation, where it is not to be had at any price.
    pub(in crate::solver) flops: Option<f64>,
    /// The most bytes of a factor, where that is not what is free.
    pub(in crate::solver) memory: Option<u64>,
    /// Whether a factorisation estimates the condition number.
    pub(in crate::solver) condition: bool,
    /// Whether iterations are given up where the factorisation behind them is forecast to be faster.
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
