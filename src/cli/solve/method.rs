//! A system made ready to be solved: the matrix in its format, the preconditioner, in one precision or in two.

use super::at_once;
use super::preconditioner::{Name, SINGLE_STEPS, Setup};
use super::single;
use crate::cli::choice::{expected_products, polynomial_may_pay, polynomial_pays};
use residua::backend::{PreconditionSteps, Products};
use residua::matrix::{self, ChoiceOptions, ChoiceReport, Sell, SparseMatrix};
use residua::scalar::Widen;
use residua::{Csr, Error, LinearOperator, Scalar};
use std::sync::Arc;

/// A matrix in the format in which it is multiplied, and its preconditioner.
pub(super) struct Stored<T: Scalar, B: PreconditionSteps + Products> {
    pub(super) operator: Arc<dyn LinearOperator<T, B>>,
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
    Mixed(Arc<dyn LinearOperator<T, B>>, Stored<T::Narrow, B>),
    /// As `Mixed`, with the preconditioner for going on in full precision where half does not serve.
    Either(Arc<dyn LinearOperator<T, B>>, Stored<T::Narrow, B>, Box<Setup<T, B>>),
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
    /// Sets the preconditioner up, and stores the matrix in the format asked for, or in the one that pays for the
    /// products to be expected.
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
        let low = store(backend, a.to_rounded(backend)?, wishes);
        let refused = match &low {
            Ok((stored, _)) => matches!(stored.preconditioner, Setup::NotPositiveDefinite(_)),
            Err(error) => matches!(error, Error::Diagonal { .. }),
        };
        // Where rounding has done that, it is the precision that does not serve, not the matrix.
        if refused && !matches!(Setup::<T, B>::new(backend, &a, Name::Jacobi)?, Setup::NotPositiveDefinite(_))
        {
            return Err(Error::InvalidArgument(
                "a diagonal entry is beyond the range of single precision; use --precision double, or scale A and b"
                    .into(),
            ));
        }
        let (stored, how) = low?;
        let whole: Arc<dyn LinearOperator<T, B>> = Arc::new(a);
        Ok(Ready { system: System::Mixed(whole, stored), how })
    }

    /// As [`System::mixed`] where rounding leaves a matrix to iterate with, and with the means to go on in full
    /// precision; else as [`System::full`].
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
                let whole: Arc<dyn LinearOperator<T, B>> = Arc::new(a);
                Ok(Ready {
                    system: System::Either(whole.clone(), stored, Box::new(rescue.on(backend, &whole)?)),
                    how,
                })
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
    let by_name = matches!(wishes.preconditioner, Name::ChebyshevSingle(_));
    let at_once = match choice {
        Some(_) if wishes.in_one_precision && !by_name => {
            at_once::instead(&*operator, &preconditioner, wishes.right_hand_sides)
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
                preconditioner =
                    Setup::Single(Box::new(single::make::<T, _, B>(backend, low, format, steps)?), None);
            }
            _ if at_once == 1 && polynomial_pays(&*operator, products, SINGLE_STEPS) => {
                // Where it can't be set up, what is at hand must do.
                if let Ok(single) = single::make::<T, _, B>(backend, low, format, SINGLE_STEPS) {
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
    let operator: Arc<dyn LinearOperator<T, B>> = Arc::from(operator as Box<dyn LinearOperator<T, B>>);
    let preconditioner = preconditioner.on(backend, &operator)?;
    backend.synchronize()?;
    spent.setup += start.elapsed().as_secs_f64();
    Ok((Stored { operator, preconditioner, at_once }, How { format, preconditioner: name, choice, spent }))
}

/// Whether a polynomial in half the precision may be faster: where vectors and matrix come from memory in each
/// iteration.
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
