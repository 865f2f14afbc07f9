//! Builds the cycle from levels, with smoothers and the coarsest inverse, and updates it with new values.

use super::again::{self, Kept, NewLevel};
use super::blocks::{Blocks, Scales};
use super::cycle::{Coarsest, Cycle, Level, Stored, Transfer};
use super::setup::{Matrices, Plan};
use super::smoother::{Scaling, Smoother};
use super::{LevelFacts, MultigridBackend, MultigridOptions, Smoothing, dense};
use crate::backend::Backend;
use crate::error::Result;
use crate::matrix::Csr;
use crate::parallel::beside;
use crate::precondition::Ilu;
use crate::scalar::Scalar;

/// The inverse of the coarsest matrix is stored only if it has at most this many rows.
const MOST_DENSE: usize = 1200;

/// Steps of smoothing that replace a solve on the coarsest level if there is no inverse.
pub(super) const COARSEST_STEPS: usize = 8;

/// Builds the cycle from levels (matrix, prolongation, restriction) and a coarsest matrix. `scales` are those of the
/// finest level, if they are known.
pub(super) fn cycle_of<T: Scalar, B: MultigridBackend>(
    backend: &B,
    levels: Matrices<T, B>,
    coarsest: Csr<T, B>,
    scales: Option<Scales<T, B>>,
    options: &MultigridOptions,
) -> Result<Cycle<T, B>> {
    moved(backend, levels, coarsest, scales, options, &Ok)
}

/// [`cycle_of`] in half the precision.
pub(super) fn narrow_cycle_of<T: Scalar, B: MultigridBackend>(
    backend: &B,
    levels: Matrices<T, B>,
    coarsest: Csr<T, B>,
    options: &MultigridOptions,
) -> Result<Cycle<T::Lower, B>> {
    moved(backend, levels, coarsest, None, options, &|a: Csr<T, B>| a.into_rounded(backend))
}

/// Returns the new levels, as [`cycle_of`] takes them, and the coarsest matrix.
pub(super) fn of_new<T: Scalar, B: MultigridBackend>(
    a: Csr<T, B>,
    new: Vec<NewLevel<T, B>>,
) -> (Matrices<T, B>, Csr<T, B>) {
    let (mut matrix, mut levels) = (a, Vec::with_capacity(new.len()));
    for NewLevel { prolongation, restriction, coarse } in new {
        levels.push([std::mem::replace(&mut matrix, coarse), prolongation, restriction]);
    }
    (levels, matrix)
}

/// Copies the coarsest matrix to the host if it is small enough to be inverted.
fn small_to_host<T: Scalar, B: MultigridBackend>(
    backend: &B,
    coarsest: &Csr<T, B>,
) -> Result<Option<Csr<T>>> {
    (coarsest.rows() <= MOST_DENSE).then(|| coarsest.to_host(backend)).transpose()
}

fn inverse_on_host<T: Scalar>(coarsest: &Csr<T>, options: &MultigridOptions) -> Result<Csr<T>> {
    let inverse = if options.is_hermitian() { dense::inverse } else { dense::general_inverse };
    inverse(coarsest)
}

/// Builds the cycle from levels (matrix, prolongation, restriction) and a coarsest matrix. `rounded` converts matrices
/// to its precision. `scales` are those of the finest level, if they are known. Another thread of the host inverts the
/// coarsest matrix at the same time.
pub(super) fn moved<T: Scalar, S: Scalar<Lower = T::Lower>, B: MultigridBackend>(
    backend: &B,
    levels: Matrices<T, B>,
    coarsest: Csr<T, B>,
    scales: Option<Scales<S, B>>,
    options: &MultigridOptions,
    rounded: &Rounded<'_, T, S, B>,
) -> Result<Cycle<S, B>> {
    let small = small_to_host(backend, &coarsest)?;
    let large = if small.is_some() { None } else { Some(rounded(coarsest)?) };
    let (mut matrices, mut transfers) = (Vec::new(), Vec::new());
    for [a, prolongation, restriction] in levels {
        matrices.push(rounded(a)?);
        let (prolongation, restriction) =
            (prolongation.into_rounded(backend)?, restriction.into_rounded(backend)?);
        transfers.push(Transfer::Matrices { prolongation, restriction });
    }
    let smoothed = || {
        let levels = matrices.iter().map(|a| (a, None));
        let levels = levels.chain(large.as_ref().map(|a| (a, Some(COARSEST_STEPS)))).collect();
        smoothers(backend, levels, scales, options)
    };
    let inverted = || small.map(|coarsest| inverse_on_host(&coarsest, options)).transpose();
    let (inverse, smoothers) = beside(inverted, smoothed);
    let mut smoothers = smoothers?;
    let coarsest = match (inverse?, large) {
        (Some(inverse), _) => Some(Coarsest::Inverse(rounded(inverse.into_backend(backend)?)?)),
        (None, Some(a)) => smoothers.pop().map(|smoother| Coarsest::Smoothed(Stored::Rows(a), smoother)),
        (None, None) => None,
    };
    let parts = matrices.into_iter().zip(smoothers).zip(transfers);
    let level = |((a, smoother), transfer)| Level { a: Stored::Rows(a), smoother, transfer, twice: false };
    Ok(Cycle {
        levels: parts.map(level).collect(),
        coarsest: coarsest.expect("a coarsest matrix is inverted or smoothed"),
        chebyshev: options.real_eigenvalues,
    })
}

/// New values for a level of a cycle, or for a coarsest matrix that is smoothed.
struct Numbers<S: Scalar, B: Backend> {
    a: Option<B::Vec<S>>,
    /// Values of the prolongation and of the restriction.
    transfer: Option<[B::Vec<S::Lower>; 2]>,
    sums: Option<B::Vec<S::Real>>,
}

/// New values for the matrices of a cycle, whose patterns are those of the plans. They are in separate arrays, so the
/// cycle is not changed yet.
fn numbers<T: Scalar, S: Scalar<Lower = T::Lower>, B: MultigridBackend>(
    backend: &B,
    cycle: &Cycle<S, B>,
    (a, new): (&Csr<T, B>, &[NewLevel<T, B>]),
    write: &Write<'_, T, S, B>,
) -> Result<Vec<Numbers<S, B>>> {
    let of_matrix = |stored: &Stored<S, B>, smoother: &Smoother<S, B>, from: &Csr<T, B>| -> Result<_> {
        let Stored::Rows(stored) = stored else { return Ok((None, None)) };
        let mut values = backend.buffer(from.nonzeros())?;
        write(from.parts().values, &mut values)?;
        let sums = smoother.sums(backend, stored.parts().with_values(&*values))?;
        Ok((Some(values), sums))
    };
    let narrowed = |from: &Csr<T, B>| -> Result<_> {
        let mut values = backend.buffer(from.nonzeros())?;
        backend.narrow::<T>(num_traits::One::one(), from.parts().values, &mut values)?;
        Ok(values)
    };
    let (mut matrix, mut all) = (a, Vec::with_capacity(new.len() + 1));
    for (level, from) in cycle.levels.iter().zip(new) {
        let (a, sums) = of_matrix(&level.a, &level.smoother, matrix)?;
        let transfer = match &level.transfer {
            Transfer::Matrices { .. } => Some([narrowed(&from.prolongation)?, narrowed(&from.restriction)?]),
            _ => None,
        };
        all.push(Numbers { a, transfer, sums });
        matrix = &from.coarse;
    }
    if let Coarsest::Smoothed(a, smoother) = &cycle.coarsest {
        let (a, sums) = of_matrix(a, smoother, matrix)?;
        all.push(Numbers { a, transfer: None, sums });
    }
    Ok(all)
}

/// Moves new values into a cycle, with the inverse of its coarsest matrix if it has one.
fn renew<S: Scalar, B: MultigridBackend>(
    backend: &B,
    cycle: &mut Cycle<S, B>,
    numbers: Vec<Numbers<S, B>>,
    inverse: Option<Csr<S, B>>,
) -> Result<()> {
    if let Some(inverse) = inverse {
        cycle.coarsest = Coarsest::Inverse(inverse);
    }
    let take = |stored: &mut Stored<S, B>, smoother: &mut Smoother<S, B>, a, sums: Option<_>| {
        if let (Stored::Rows(stored), Some(values)) = (stored, a) {
            stored.replace_values(values);
        }
        if let Some(sums) = sums {
            smoother.take_sums(sums);
        }
    };
    let mut numbers = numbers.into_iter();
    for (level, Numbers { a, transfer, sums }) in cycle.levels.iter_mut().zip(numbers.by_ref()) {
        take(&mut level.a, &mut level.smoother, a, sums);
        if let (Transfer::Matrices { prolongation, restriction }, Some([p, r])) =
            (&mut level.transfer, transfer)
        {
            prolongation.replace_values(p);
            restriction.replace_values(r);
        }
    }
    if let (Coarsest::Smoothed(matrix, smoother), Some(Numbers { a, sums, .. })) =
        (&mut cycle.coarsest, numbers.next())
    {
        take(matrix, smoother, a, sums);
    }
    let levels = cycle.levels.iter_mut().map(|level| (&level.a, &mut level.smoother));
    let coarsest = match &mut cycle.coarsest {
        Coarsest::Smoothed(a, smoother) => Some((&*a, smoother)),
        _ => None,
    };
    let in_rows = levels.chain(coarsest).filter_map(|(a, smoother)| match a {
        Stored::Rows(a) => Some((a, smoother)),
        _ => None,
    });
    Smoother::renew(backend, in_rows)
}

/// Everything that new values change: the cycle, the kept data, and the sizes of the levels.
pub(super) type Changed<'a, T, S, B> =
    (&'a mut Cycle<S, B>, &'a [Plan<T, B>], &'a mut Option<Kept<B>>, &'a mut Vec<LevelFacts>);

/// Copies values in the precision of a cycle.
type Write<'a, T, S, B> = dyn Fn(&<B as Backend>::Slice<T>, &mut <B as Backend>::Slice<S>) -> Result<()> + 'a;

/// Rounds a matrix to the precision of a cycle.
type Rounded<'a, T, S, B> = dyn Fn(Csr<T, B>) -> Result<Csr<S, B>> + 'a;

/// Builds a new cycle from levels.
type Made<'a, T, S, B> = dyn Fn(Vec<NewLevel<T, B>>) -> Result<Cycle<S, B>> + 'a;

/// Applies new values: the first time by building a new cycle, later by writing them into the cycle's matrices.
pub(super) fn take_over<T: Scalar, S: Scalar<Lower = T::Lower>, B: MultigridBackend>(
    backend: &B,
    a: &Csr<T, B>,
    (cycle, plans, kept, facts): Changed<'_, T, S, B>,
    options: &MultigridOptions,
    made: &Made<'_, T, S, B>,
    write: &Write<'_, T, S, B>,
    narrowed: &Rounded<'_, T, S, B>,
) -> Result<()> {
    let Some(kept) = kept else {
        let (known, new) = Kept::new(backend, a, plans)?;
        let levels = facts[..1].iter().copied().chain(again::facts(&new)).collect();
        *cycle = made(new)?;
        (*facts, *kept) = (levels, Some(known));
        return Ok(());
    };
    let new = kept.again(backend, a, plans, cycle)?;
    // The host inverts the coarsest matrix at the same time. The cycle does not change before that has succeeded,
    // because a matrix without an inverse is refused.
    let small = small_to_host(backend, new.last().map_or(a, |level| &level.coarse))?;
    let inverted = || small.map(|coarsest| inverse_on_host(&coarsest, options)).transpose();
    let (inverse, numbers) = beside(inverted, || numbers(backend, cycle, (a, &new), write));
    let inverse = inverse?.map(|inverse| narrowed(inverse.into_backend(backend)?)).transpose()?;
    renew(backend, cycle, numbers?, inverse)
}

/// The smoothers of the levels, each with its number of steps if that is given; the scales of the first level may be
/// known. With plain scaling, 1 bounds the eigenvalues. If the options leave open whether blocks are used, the first
/// level decides; if they request incomplete factors, these are used.
fn smoothers<T: Scalar, B: MultigridBackend>(
    backend: &B,
    levels: Vec<(&Csr<T, B>, Option<usize>)>,
    mut known: Option<Scales<T, B>>,
    options: &MultigridOptions,
) -> Result<Vec<Smoother<T, B>>> {
    if options.factors {
        let of_level = |(a, steps): (&Csr<T, B>, Option<usize>)| {
            let steps = steps.unwrap_or_else(|| options.smoothing_steps(true));
            Ok(Smoother::plain(Scaling::Factors(Box::new(Ilu::new(backend, a)?)), steps))
        };
        return levels.into_iter().map(of_level).collect();
    }
    let scaled = levels.into_iter().map(|(a, steps)| {
        let scales = known.take().map_or_else(|| Scales::new(backend, a), Ok)?;
        Ok((a, steps, scales))
    });
    let all = scaled.collect::<Result<Vec<_>>>()?;
    let in_blocks = match options.smoothing {
        Smoothing::Auto => all.first().map_or(Ok(false), |(.., scales)| scales.blocks_pay(backend))?,
        Smoothing::Diagonal => false,
        Smoothing::Blocks => true,
    };
    let smoother = |scaling, steps: Option<usize>, largest| {
        let steps = steps.unwrap_or_else(|| options.smoothing_steps(in_blocks));
        if options.real_eigenvalues {
            Smoother::new(scaling, steps, largest)
        } else {
            Smoother::plain(scaling, steps)
        }
    };
    if !in_blocks {
        let by_sums = |(_, steps, scales): (_, _, Scales<T, B>)| {
            smoother(Scaling::Diagonal(scales.of_sums), steps, 1.0)
        };
        return Ok(all.into_iter().map(by_sums).collect());
    }
    let scaled: Vec<_> = all.iter().map(|(a, _, scales)| (*a, scales)).collect();
    let mut of_all = Scales::blocks(backend, &scaled, options.is_hermitian())?;
    let largest = if options.real_eigenvalues {
        let mut both: Vec<_> = all.iter().map(|(a, ..)| *a).zip(&mut of_all).collect();
        Blocks::renew(backend, &mut both)?
    } else {
        let each = all.iter().zip(&mut of_all);
        each.map(|((a, ..), blocks)| blocks.renew_bounded(backend, a).map(|()| 1.0)).collect::<Result<_>>()?
    };
    let in_blocks = all.iter().zip(of_all).zip(largest);
    let made = in_blocks
        .map(|(((_, steps, _), blocks), largest)| smoother(Scaling::Blocks(blocks), *steps, largest));
    Ok(made.collect())
}
