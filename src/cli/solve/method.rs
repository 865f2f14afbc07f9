//! Preconditioner and precision, as a user names them, and set up.

use super::several::{self, Several};
use super::single::Single;
use crate::cli::choice::{expected_products, polynomial_may_pay, polynomial_pays};
use residua::backend::{PreconditionSteps, Products};
use residua::krylov::{Cg, Outcome, Refinement, Report, SolveOptions};
use residua::matrix::{self, ChoiceOptions, ChoiceReport, Sell, SparseMatrix};
use residua::precondition::{BlockJacobi, Chebyshev, Fsai, Identity, Jacobi, Preconditioner};
use residua::scalar::Widen;
use residua::{Csr, Error, LinearOperator, Scalar};
use std::ops::ControlFlow;
use std::time::Duration;

/// Rows of a block where the matrix has no natural ones.
const BLOCK: usize = 4;

/// Steps of the polynomial where none are given, and where it is in half the precision.
const STEPS: usize = 4;
const SINGLE_STEPS: usize = 14;

/// A preconditioner by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Name {
    None,
    Jacobi,
    /// Blocks of so many rows, or natural ones.
    Blocks(Option<usize>),
    Fsai,
    /// A polynomial of so many steps.
    Chebyshev(usize),
    /// The same in half the precision.
    ChebyshevSingle(usize),
    /// Jacobi, or the polynomial in half the precision where that is likely to be faster.
    Auto,
}

/// Accepts what [`Name`] can be.
pub(super) fn parse(text: &str) -> Result<Name, String> {
    let (name, number) = match text.split_once(':') {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    };
    let number = number
        .map(|number| number.parse::<usize>().ok().filter(|n| (1..=64).contains(n)).ok_or(number))
        .transpose()
        .map_err(|number| format!("'{number}' is no number from 1 to 64"))?;
    match (name, number) {
        ("auto", None) => Ok(Name::Auto),
        ("none", None) => Ok(Name::None),
        ("jacobi", None) => Ok(Name::Jacobi),
        ("block-jacobi", Some(33..)) => Err("a block has at most 32 rows".into()),
        ("block-jacobi", size) => Ok(Name::Blocks(size)),
        ("fsai", None) => Ok(Name::Fsai),
        ("chebyshev", steps) => Ok(Name::Chebyshev(steps.unwrap_or(STEPS))),
        ("chebyshev-single", steps) => Ok(Name::ChebyshevSingle(steps.unwrap_or(SINGLE_STEPS))),
        _ => Err("possible: auto, none, jacobi, block-jacobi[:ROWS], fsai, chebyshev[:STEPS], chebyshev-single[:STEPS]".into()),
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Name::None => f.write_str("none"),
            Name::Jacobi => f.write_str("jacobi"),
            Name::Blocks(None) => f.write_str("block-jacobi"),
            Name::Blocks(Some(rows)) => write!(f, "block-jacobi:{rows}"),
            Name::Fsai => f.write_str("fsai"),
            Name::Chebyshev(steps) => write!(f, "chebyshev:{steps}"),
            Name::ChebyshevSingle(steps) => write!(f, "chebyshev-single:{steps}"),
            Name::Auto => f.write_str("auto"),
        }
    }
}

/// A preconditioner that is set up, or the proof that none is needed.
pub(super) enum Setup<T: Scalar, B: PreconditionSteps + Products> {
    Identity,
    Jacobi(Jacobi<T, B>),
    Blocks(BlockJacobi<T, B>),
    Fsai(Fsai<T, B>),
    Chebyshev(Jacobi<T, B>, usize),
    /// A polynomial in half the precision, and what to go on with where the choice was ours and it fails.
    Single(Box<Single<T, B>>, Option<Box<Setup<T, B>>>),
    /// A diagonal entry that no positive definite matrix has.
    NotPositiveDefinite(f64),
}

impl<T: Scalar, B: PreconditionSteps + Products> Setup<T, B> {
    fn new<V: Scalar + Widen<T>>(backend: &B, a: &Csr<V, B>, name: Name) -> residua::Result<Self> {
        let made = match name {
            Name::None => Ok(Setup::Identity),
            // Half the precision is set up by `store`, behind the matrix's own format.
            Name::Jacobi | Name::Auto | Name::ChebyshevSingle(_) => {
                Jacobi::new(backend, a).map(Setup::Jacobi)
            }
            Name::Chebyshev(steps) => Jacobi::new(backend, a).map(|d| Setup::Chebyshev(d, steps)),
            Name::Fsai => Fsai::new(backend, a).map(Setup::Fsai),
            Name::Blocks(Some(rows)) => BlockJacobi::new(backend, a, rows).map(Setup::Blocks),
            Name::Blocks(None) => {
                let sizes = BlockJacobi::<T, B>::natural_blocks(backend, a, BlockJacobi::<T, B>::LARGEST)?;
                if sizes.iter().any(|&size| size > 1) {
                    BlockJacobi::with_blocks(backend, a, &sizes).map(Setup::Blocks)
                } else {
                    BlockJacobi::new(backend, a, BLOCK).map(Setup::Blocks)
                }
            }
        };
        match made {
            Err(Error::Diagonal { value, .. }) if value <= 0.0 => Ok(Setup::NotPositiveDefinite(value)),
            made => made,
        }
    }

    /// Runs `solve` with the preconditioner for `a`.
    fn with(
        &self,
        backend: &B,
        a: &dyn LinearOperator<T, B>,
        solve: impl FnOnce(&dyn Preconditioner<T, B>) -> residua::Result<Report>,
    ) -> residua::Result<Report> {
        match self {
            Setup::Identity | Setup::NotPositiveDefinite(_) => solve(&Identity),
            Setup::Jacobi(m) => solve(m),
            Setup::Blocks(m) => solve(m),
            Setup::Fsai(m) => solve(m),
            Setup::Chebyshev(diagonal, steps) => solve(&Chebyshev::new(backend, a, diagonal, *steps)?),
            Setup::Single(single, _) => solve(&single.preconditioner(backend)?),
        }
    }

    /// What to go on with where the choice was ours, and it failed.
    fn rescue(&self) -> Option<&Self> {
        match self {
            Setup::Single(_, rescue) => rescue.as_deref(),
            _ => None,
        }
    }
}

/// A matrix in the format in which it is multiplied, and its preconditioner.
pub(super) struct Stored<T: Scalar, B: PreconditionSteps + Products> {
    pub(super) operator: Box<dyn LinearOperator<T, B>>,
    pub(super) preconditioner: Setup<T, B>,
    /// How many right-hand sides are to be solved at once.
    pub(super) at_once: usize,
}

/// What of the arguments decides how a system is set up.
#[derive(Clone, Copy)]
pub(super) struct Wishes<'a> {
    pub(super) preconditioner: Name,
    pub(super) format: &'a str,
    pub(super) max_iterations: Option<usize>,
    pub(super) right_hand_sides: usize,
    pub(super) in_one_precision: bool,
}

impl Wishes<'_> {
    /// Products with a matrix of `n` rows that are to be expected.
    fn products(self, n: usize) -> usize {
        expected_products(n, self.right_hand_sides, self.max_iterations)
    }
}

/// A system that is ready to be solved, in one precision or in two.
pub(super) enum System<T: Scalar, B: PreconditionSteps + Products> {
    Full(Stored<T, B>),
    /// The matrix, and the same rounded.
    Mixed(Box<dyn LinearOperator<T, B>>, Stored<T::Narrow, B>),
    /// As `Mixed`, with the preconditioner for going on in full precision where half does not serve.
    Either(Box<dyn LinearOperator<T, B>>, Stored<T::Narrow, B>, Setup<T, B>),
}

/// Seconds of the parts of a setup.
#[derive(Default)]
pub(super) struct Spent {
    pub(super) setup: f64,
    pub(super) convert: f64,
}

/// How a matrix came to be stored.
pub(super) struct How {
    pub(super) format: &'static str,
    /// The preconditioner, where it was to be chosen the one that was.
    pub(super) preconditioner: Name,
    /// How the format was chosen, where it was.
    pub(super) choice: Option<ChoiceReport>,
    pub(super) spent: Spent,
}

/// What came of the setup.
pub(super) struct Ready<T: Scalar, B: PreconditionSteps + Products> {
    pub(super) system: System<T, B>,
    pub(super) how: How,
}

impl<T: Scalar, B: PreconditionSteps + Products> System<T, B> {
    /// Sets the preconditioner up, and stores the matrix in the format asked for, or in the one that pays for the products
    /// to be expected.
    pub(super) fn full<V: Scalar + Widen<T>>(
        backend: &B,
        a: Csr<V, B>,
        wishes: Wishes<'_>,
    ) -> residua::Result<Ready<T, B>>
    where
        V::Narrow: Widen<T::Narrow>,
    {
        let (stored, how) = store(backend, a, wishes)?;
        Ok(Ready { system: System::Full(stored), how })
    }

    /// As [`System::full`], with the matrix rounded in the loop and as it is outside.
    pub(super) fn mixed<V>(backend: &B, a: Csr<V, B>, wishes: Wishes<'_>) -> residua::Result<Ready<T, B>>
    where
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let (stored, how) = store(backend, a.to_rounded(backend)?, wishes)?;
        let whole: Box<dyn SparseMatrix<T, B, V>> = Box::new(a);
        Ok(Ready { system: System::Mixed(whole, stored), how })
    }

    /// As [`System::mixed`] where rounding leaves a matrix to iterate with, and with the means to go on in full precision;
    /// else as [`System::full`].
    pub(super) fn either<V>(backend: &B, a: Csr<V, B>, wishes: Wishes<'_>) -> residua::Result<Ready<T, B>>
    where
        V: Scalar + Widen<T>,
        V::Narrow: Widen<T::Narrow>,
    {
        let start = std::time::Instant::now();
        let rescue = Setup::new(backend, &a, wishes.preconditioner)?;
        let spent = start.elapsed().as_secs_f64();
        match store(backend, a.to_rounded(backend)?, wishes) {
            Ok((Stored { preconditioner: Setup::NotPositiveDefinite(_), .. }, _))
            | Err(Error::Diagonal { .. }) => Self::full(backend, a, wishes),
            Ok((stored, mut how)) => {
                how.spent.setup += spent;
                let whole: Box<dyn SparseMatrix<T, B, V>> = Box::new(a);
                Ok(Ready { system: System::Either(whole, stored, rescue), how })
            }
            Err(error) => Err(error),
        }
    }

    /// A diagonal entry that no positive definite matrix has, where the setup found one.
    pub(super) fn bad_diagonal(&self) -> Option<f64> {
        match self {
            System::Full(Stored { preconditioner: Setup::NotPositiveDefinite(value), .. })
            | System::Mixed(_, Stored { preconditioner: Setup::NotPositiveDefinite(value), .. }) => {
                Some(*value)
            }
            _ => None,
        }
    }

    pub(super) fn rows(&self) -> usize {
        match self {
            System::Full(stored) => stored.operator.rows(),
            System::Mixed(a, _) | System::Either(a, ..) => a.rows(),
        }
    }
}

fn store<V, T, B>(backend: &B, a: Csr<V, B>, wishes: Wishes<'_>) -> residua::Result<(Stored<T, B>, How)>
where
    V: Scalar + Widen<T>,
    V::Narrow: Widen<T::Narrow>,
    T: Scalar,
    B: PreconditionSteps + Products,
{
    let mut spent = Spent::default();
    let start = std::time::Instant::now();
    let mut preconditioner = Setup::new(backend, &a, wishes.preconditioner)?;
    spent.setup = start.elapsed().as_secs_f64();
    let start = std::time::Instant::now();
    let low = match wishes.preconditioner {
        Name::ChebyshevSingle(_) => Some(a.to_rounded(backend)?),
        // Without memory for it, the choice is made.
        Name::Auto if may_pay::<V, T, B>(backend, &a, wishes) => a.to_rounded(backend).ok(),
        _ => None,
    };
    let (operator, choice) = match wishes.format {
        "auto" => automatic(backend, a, wishes)?,
        name => (matrix::convert::<T, B, V>(backend, name, a)?, None),
    };
    // A format that was chosen for one right-hand side gives way to what several at once are fast in.
    let single = matches!(wishes.preconditioner, Name::ChebyshevSingle(_));
    let at_once = match choice {
        Some(_) if wishes.in_one_precision && !single => {
            several::instead(&*operator, &preconditioner, wishes.right_hand_sides)
        }
        _ => 1,
    };
    let (operator, choice) = match operator.format() {
        format if at_once > 1 && format != Csr::<V>::NAME => {
            let csr: Box<dyn SparseMatrix<T, B, V>> = Box::new(operator.to_csr(backend)?);
            (csr, None)
        }
        _ => (operator, choice),
    };
    let format = operator.format();
    backend.synchronize()?;
    spent.convert = start.elapsed().as_secs_f64();
    let start = std::time::Instant::now();
    let mut name = wishes.preconditioner;
    if let (Some(low), Setup::Jacobi(_)) = (low, &preconditioner) {
        let products = wishes.products(operator.rows());
        match name {
            Name::ChebyshevSingle(steps) => {
                preconditioner = Setup::Single(Box::new(Single::new(backend, low, format, steps)?), None);
            }
            _ if at_once == 1 && polynomial_pays(&*operator, products, SINGLE_STEPS) => {
                // Where it can't be set up, what is at hand must do.
                if let Ok(single) = Single::new(backend, low, format, SINGLE_STEPS) {
                    preconditioner = Setup::Single(Box::new(single), Some(Box::new(preconditioner)));
                    name = Name::ChebyshevSingle(SINGLE_STEPS);
                }
            }
            _ => {}
        }
    }
    if name == Name::Auto {
        name = Name::Jacobi;
    }
    backend.synchronize()?;
    spent.setup += start.elapsed().as_secs_f64();
    Ok((Stored { operator, preconditioner, at_once }, How { format, preconditioner: name, choice, spent }))
}

/// Whether a polynomial in half the precision may be faster: where vectors and matrix come from memory in each iteration.
fn may_pay<V: Scalar + Widen<T>, T: Scalar, B: PreconditionSteps + Products>(
    backend: &B,
    a: &Csr<V, B>,
    wishes: Wishes<'_>,
) -> bool {
    let (rows, nonzeros) = (a.rows(), a.nonzeros());
    let stays = backend.cg_bursts::<V, T>(rows, nonzeros) || backend.cg_streams::<V, T>(rows, nonzeros);
    B::BYTES_TELL && !stays && polynomial_may_pay::<T>(rows, wishes.products(rows))
}

/// A matrix in the format that was chosen, and how.
type Chosen<T, B, V> = (Box<dyn SparseMatrix<T, B, V>>, Option<ChoiceReport>);

/// In the format that pays: where many iterations go in one call, the one that they ask for, else by trial.
fn automatic<V: Scalar + Widen<T>, T: Scalar, B: PreconditionSteps + Products>(
    backend: &B,
    a: Csr<V, B>,
    wishes: Wishes<'_>,
) -> residua::Result<Chosen<T, B, V>> {
    if backend.cg_bursts::<V, T>(a.rows(), a.nonzeros()) {
        return Ok((matrix::convert::<T, B, V>(backend, Csr::<V>::NAME, a)?, None));
    }
    if backend.cg_streams::<V, T>(a.rows(), a.nonzeros()) {
        match matrix::build::<T, B, V>(backend, Sell::<V>::NAME, &a) {
            Err(Error::Refused { .. }) => {}
            made => return Ok((made?, None)),
        }
    }
    let options = ChoiceOptions::default().products(wishes.products(a.rows()));
    let (operator, report) = matrix::choose::<T, V, B>(backend, a, &options)?.into_parts();
    Ok((operator, Some(report)))
}

/// The memory of the solver that a system needs.
pub(super) enum Solver<T: Scalar, B: PreconditionSteps> {
    Full(Box<Full<T, B>>),
    Several(Box<Several<T, B>>),
    Mixed(Box<Refinement<T, B>>),
    Either(Box<Either<T, B>>),
}

/// Conjugate gradients, and what went on where a preconditioner of our own choice failed.
pub(super) struct Full<T: Scalar, B: PreconditionSteps> {
    cg: Cg<T, B>,
    options: SolveOptions,
    past: Past,
}

impl<T: Scalar, B: PreconditionSteps + Products> Full<T, B> {
    fn solve(
        &mut self,
        backend: &B,
        Stored { operator, preconditioner, .. }: &Stored<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<Report> {
        let (cg, a) = (&mut self.cg, &**operator);
        let report = preconditioner.with(backend, a, |m| cg.solve(a, m, b, x, &mut observer))?;
        self.past = Past { history: self.cg.history().to_vec(), iterating: self.cg.iterating() };
        match preconditioner.rescue() {
            Some(rescue) if is_fault(&report.outcome) => {
                go_on(backend, (a, rescue), &self.options, (report, &mut self.past), b, x, observer)
            }
            _ => Ok(report),
        }
    }
}

/// Refinement, and what went on in full precision.
pub(super) struct Either<T: Scalar, B: PreconditionSteps> {
    refinement: Refinement<T, B>,
    options: SolveOptions,
    past: Past,
}

impl<T: Scalar, B: PreconditionSteps + Products> Either<T, B> {
    fn solve(
        &mut self,
        backend: &B,
        a: &dyn LinearOperator<T, B>,
        (low, rescue): (&Stored<T::Narrow, B>, &Setup<T, B>),
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<Report> {
        let (refinement, operator) = (&mut self.refinement, &*low.operator);
        let report = low
            .preconditioner
            .with(backend, operator, |m| refinement.solve(a, operator, m, b, x, &mut observer))?;
        self.past =
            Past { history: self.refinement.history().to_vec(), iterating: self.refinement.iterating() };
        // Whatever ended it lies in half the precision, as far as can be told.
        if !is_fault(&report.outcome) {
            return Ok(report);
        }
        go_on(backend, (a, rescue), &self.options, (report, &mut self.past), b, x, observer)
    }
}

/// What is told of a solve's iterations.
#[derive(Default)]
pub(super) struct Past {
    history: Vec<f64>,
    iterating: Duration,
}

/// Whether a solve ended in something that another preconditioner, or more precision, may not meet.
fn is_fault(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Converged | Outcome::Interrupted | Outcome::IterationLimit)
}

/// Goes on from x in full precision, with a preconditioner that promises less.
fn go_on<T: Scalar, B: PreconditionSteps + Products>(
    backend: &B,
    (a, m): (&dyn LinearOperator<T, B>, &Setup<T, B>),
    options: &SolveOptions,
    (first, past): (Report, &mut Past),
    b: &B::Slice<T>,
    x: &mut B::Slice<T>,
    mut observer: impl FnMut(usize, f64) -> ControlFlow<()>,
) -> residua::Result<Report> {
    let n = a.rows();
    let left = options.iteration_limit(n).saturating_sub(first.iterations);
    let mut cg = Cg::new(backend, n, options.clone().max_iterations(left))?;
    let mut report = m.with(backend, a, |m| {
        cg.solve(a, m, b, x, |iteration, norm| match iteration {
            0 => ControlFlow::Continue(()),
            _ => observer(first.iterations + iteration, norm),
        })
    })?;
    past.history.extend(cg.history().iter().skip(1));
    past.iterating += cg.iterating();
    report.iterations += first.iterations;
    report.restarts += first.restarts;
    Ok(report)
}

impl<T: Scalar, B: PreconditionSteps + Products> Solver<T, B> {
    pub(super) fn new(backend: &B, system: &System<T, B>, options: SolveOptions) -> residua::Result<Self> {
        let n = system.rows();
        if let Some(several) = Several::new(backend, system, &options)? {
            return Ok(Solver::Several(Box::new(several)));
        }
        match system {
            System::Full(_) => Ok(Solver::Full(Box::new(Full {
                cg: Cg::new(backend, n, options.clone())?,
                options,
                past: Past::default(),
            }))),
            System::Mixed(..) => Refinement::new(backend, n, options).map(|r| Solver::Mixed(Box::new(r))),
            System::Either(..) => Ok(Solver::Either(Box::new(Either {
                refinement: Refinement::new(backend, n, options.clone())?,
                options,
                past: Past::default(),
            }))),
        }
    }

    pub(super) fn solve(
        &mut self,
        backend: &B,
        system: &System<T, B>,
        b: &B::Slice<T>,
        x: &mut B::Slice<T>,
        observer: impl FnMut(usize, f64) -> ControlFlow<()>,
    ) -> residua::Result<Report> {
        if let Some(curvature) = system.bad_diagonal() {
            let outcome = Outcome::NotPositiveDefinite { iteration: 0, curvature };
            return Ok(Report::not_started(outcome, &backend.download(b)?));
        }
        match (self, system) {
            (Solver::Full(full), System::Full(stored)) => full.solve(backend, stored, b, x, observer),
            (Solver::Mixed(refinement), System::Mixed(a, Stored { operator, preconditioner, .. })) => {
                preconditioner
                    .with(backend, &**operator, |m| refinement.solve(&**a, &**operator, m, b, x, observer))
            }
            (Solver::Either(either), System::Either(a, low, rescue)) => {
                either.solve(backend, &**a, (low, rescue), b, x, observer)
            }
            _ => unreachable!("a solver is made for its system"),
        }
    }

    pub(super) fn history(&self) -> &[f64] {
        match self {
            Solver::Full(full) => &full.past.history,
            Solver::Several(_) => unreachable!("each of several has a history of its own"),
            Solver::Mixed(refinement) => refinement.history(),
            Solver::Either(either) => &either.past.history,
        }
    }

    /// How long the last solve iterated.
    pub(super) fn iterating(&self) -> Duration {
        match self {
            Solver::Full(full) => full.past.iterating,
            Solver::Several(several) => several.cg.iterating(),
            Solver::Mixed(refinement) => refinement.iterating(),
            Solver::Either(either) => either.past.iterating,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_were_typed() {
        for name in ["none", "jacobi", "block-jacobi", "block-jacobi:3", "fsai", "chebyshev:5"] {
            assert_eq!(parse(name).unwrap().to_string(), name);
        }
        assert_eq!(parse("chebyshev").unwrap(), Name::Chebyshev(STEPS));
        for wrong in ["magic", "jacobi:2", "block-jacobi:0", "block-jacobi:33", "chebyshev:x", "fsai:1", ""] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
