//! Many small systems: each thread takes eight of one shape side by side, or one that is larger.
//!
//! | file | what it holds |
//! |---|---|
//! | `lanes` | the entries of systems side by side |
//! | `small` | elimination of small dense matrices side by side |
//! | `sparse` | elimination of matrices of one sparse pattern side by side |
//! | `rows` | the rows of one system as the caller has them |
//! | `dense` | elimination of one matrix |
//! | `iterate` | iteration on one matrix |
//! | `judge` | from factors to an x of which is known how good it is |

mod dense;
mod iterate;
mod judge;
mod lanes;
mod rows;
mod small;
mod sparse;

use super::Host;
use crate::backend::batch::{
    BatchElimination, BatchEntries, BatchGoal, BatchIteration, BatchParts, BatchReduction, BatchSteps,
    BatchVectors, LIMITED, UNCERTAIN, UNSCALED,
};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::parallel::prelude::*;
use crate::parallel::{Inlined, vectorised_whole};
use crate::scalar::Scalar;
use dense::Dense;
use iterate::Iterated;
use judge::{Found, Vectors, exponent, power, size};
use lanes::{Entries, LANES, Laid, Lanes, Shape};
use rows::{Row, Rows, SUMS};
use small::Small;
use sparse::Sparse;
use std::sync::Mutex;

/// Multiplications that a thread takes at once.
const AT_ONCE: usize = 1 << 16;

/// Memory of the threads.
#[derive(Debug)]
pub struct BatchRoom<T: Scalar>(Mutex<Vec<Workspace<T::Double>>>);

impl<T: Scalar> Default for BatchRoom<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// Memory of one thread: for systems side by side, and for one system.
#[derive(Debug, Default)]
struct Workspace<D> {
    entries: Entries<D>,
    small: Small<D>,
    sparse: Sparse<D>,
    ordered: Vec<Lanes<D>>,
    together: Vectors<D, LANES>,
    factors: Dense<D>,
    iterated: Iterated<D>,
    vectors: Vectors<D, 1>,
}

/// Adds what was found of one more right-hand side: the most steps, or the fewest digits, and the largest residual.
fn worse(of_others: Found, found: Found) -> Found {
    let ((steps, residual), (own, size)) = (of_others?, found?);
    let code = match (steps >= LIMITED, own >= LIMITED) {
        (true, true) => steps.min(own),
        _ => steps.max(own),
    };
    Some((code, residual.max(size)))
}

impl<D: Scalar<Real = f64>> Workspace<D> {
    /// Loads the entries; returns false unless all are finite and every row has a nonzero one, within the range of
    /// powers of two.
    #[inline(always)]
    fn load<T: Scalar<Double = D>>(&mut self, n: usize, rows: &Rows<'_, T>) -> bool {
        self.factors.clear(n);
        self.vectors.resize(n);
        let mut sound = true;
        for i in 0..n {
            let own = self.factors.row(i);
            let (mut most, mut nothing) = ([0.0_f64; SUMS], [D::default(); SUMS]);
            match rows.row(n, i) {
                Row::Dense(values) => {
                    for (own, value) in own.iter_mut().zip(values) {
                        *own = value.to_double();
                    }
                }
                Row::Sparse(columns, values) => {
                    for (&column, value) in columns.iter().zip(values) {
                        own[column as usize] += value.to_double();
                    }
                }
            }
            for values in own.chunks(SUMS) {
                for (value, (most, nothing)) in values.iter().zip(most.iter_mut().zip(&mut nothing)) {
                    let size = size(*value);
                    *most = if size > *most { size } else { *most };
                    // Neither infinities nor NaN times zero are zero.
                    *nothing += *value * D::default();
                }
            }
            let most = most.into_iter().fold(0.0, f64::max);
            let finite = nothing.iter().all(|nothing| *nothing == D::default());
            let found = exponent(most).filter(|_| finite);
            sound &= found.is_some();
            self.vectors.exponents[i] = [-found.unwrap_or(0)];
        }
        sound
    }

    /// Factorises the matrix that was loaded.
    #[inline(always)]
    fn factorise<T: Scalar<Double = D>>(&mut self, n: usize, rows: &Rows<'_, T>) -> bool {
        let ordinary = self.vectors.exponents.iter().all(|[e]| e.abs() < UNSCALED);
        if ordinary && self.factors.is_hermitian() {
            self.vectors.exponents.fill([0]);
            self.scale(n);
            if self.factors.eliminate_definite() {
                return true;
            }
            self.load(n, rows);
        }
        self.scale(n);
        self.factors.eliminate()
    }

    /// Multiplies rows by their powers of two, and computes their norms.
    #[inline(always)]
    fn scale(&mut self, n: usize) {
        for i in 0..n {
            let scale = D::from_f64(power(self.vectors.exponents[i][0]));
            let mut sums = [0.0; 4];
            let row = self.factors.row(i);
            for own in row.iter_mut() {
                *own *= scale;
            }
            for four in row.chunks(4) {
                for (sum, own) in sums.iter_mut().zip(four) {
                    *sum += own.abs2();
                }
            }
            self.vectors.norms[i] = [((sums[0] + sums[1]) + (sums[2] + sums[3])).sqrt()];
        }
    }
}

/// Up to [`LANES`] systems of one shape side by side, of which those that are `asked` for are solved: by elimination
/// with the pattern of factors if there is one, and else with partial pivoting.
struct Group<'a, T: Scalar> {
    space: &'a mut Workspace<T::Double>,
    count: usize,
    asked: Lanes<bool>,
    shape: Shape<'a>,
    pattern: Option<&'a BatchElimination<'a, Host>>,
    values: &'a [T],
    b: &'a [T],
    x: &'a mut [T],
    goal: &'a BatchGoal,
}

impl<T: Scalar> Inlined for Group<'_, T> {
    type Output = Lanes<Found>;

    #[inline(always)]
    fn run(self) -> Lanes<Found> {
        let Self { space, count, asked, shape, pattern, values, b, x, goal } = self;
        let apart = shape.size() * count;
        let systems = b.len() / apart;
        let Workspace { entries, small, sparse, ordered, together, .. } = space;
        let mut open = entries.load(shape, (systems, values), together);
        (0..LANES).for_each(|lane| open[lane] &= asked[lane]);
        match pattern {
            Some(pattern) => {
                sparse.take(pattern, entries);
                sparse.eliminate(pattern);
            }
            None => {
                small.take(shape, entries);
                small.eliminate();
            }
        }
        let mut found = open.map(|open| open.then_some((0, 0.0)));
        for column in 0..count {
            let vectors = (&b[column..], &mut x[column..], count, apart);
            let of_column = match pattern {
                Some(pattern) => {
                    let (matrix, factors) = (Laid { shape, entries }, &*sparse);
                    let mut system = sparse::Eliminated { matrix, factors, pattern, ordered };
                    together.solve(&mut system, vectors, goal, open)
                }
                None => {
                    let mut system = small::Eliminated { matrix: Laid { shape, entries }, factors: small };
                    together.solve(&mut system, vectors, goal, open)
                }
            };
            for lane in 0..LANES {
                found[lane] = worse(found[lane], of_column[lane]);
                open[lane] = found[lane].is_some();
            }
        }
        found
    }
}

/// How one system is iterated on: the method, the order of its rows, and how many of these can be eliminated.
#[derive(Clone, Copy)]
struct Way<'a> {
    iteration: BatchIteration,
    order: &'a [u32],
    eliminated: usize,
}

/// One system with all its right-hand sides, which is solved by elimination if there is no other way.
struct One<'a, T: Scalar> {
    space: &'a mut Workspace<T::Double>,
    way: Option<Way<'a>>,
    n: usize,
    count: usize,
    rows: &'a Rows<'a, T>,
    b: &'a [T],
    x: &'a mut [T],
    goal: &'a BatchGoal,
}

impl<T: Scalar> Inlined for One<'_, T> {
    type Output = Found;

    #[inline(always)]
    fn run(self) -> Found {
        let Self { space, way, n, count, rows, b, x, goal } = self;
        let sound = match way {
            Some(way) => space.iterated.load(way, rows, &mut space.vectors),
            None => space.load(n, rows) && space.factorise(n, rows),
        };
        let mut found = sound.then_some((0, 0.0));
        for column in 0..count {
            found?;
            let vectors = (&b[column..], &mut x[column..], count, 0);
            let own = if let Some(way) = way {
                let mut system = space.iterated.of(way, rows, goal.relative);
                let [own] = space.vectors.solve(&mut system, vectors, goal, [true]);
                let iterations = system.iterations;
                own.map(|(steps, residual)| (if steps < LIMITED { iterations } else { steps }, residual))
            } else {
                let mut system = dense::Eliminated { rows, factors: &space.factors };
                let [own] = space.vectors.solve(&mut system, vectors, goal, [true]);
                own
            };
            found = worse(found, own);
        }
        found
    }
}

impl BatchSteps for Host {
    type BatchRoom<T: Scalar> = BatchRoom<T>;

    const MOST_DENSE: usize = 4096;
    const MOST_SPARSE: usize = u32::MAX as usize;
    const MOST_ITERATED: usize = 4096;
    const DENSE_BEHIND_SPARSE: bool = false;
    const SPARSE_PRICE: f64 = 1.0;

    fn solve_dense_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        let n = systems.size;
        let shape = match systems.entries {
            _ if systems.starts.is_some() || n == 0 || n > small::MOST => None,
            BatchEntries::Dense(values) => Some((Shape::Dense(n), values)),
            BatchEntries::Compressed { offsets, columns, values } => {
                Some((Shape::Compressed(offsets, columns), values))
            }
        };
        if let Some((shape, values)) = shape {
            return together(systems, (shape, None, values), vectors, goal, room);
        }
        let at_once = (AT_ONCE / (n * n * n).max(1)).clamp(1, 1 << 12);
        each_system(systems, vectors, goal, (room, at_once), None)
    }

    fn iterate_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        way: (BatchIteration, &BatchReduction<'_, Self>),
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        if matches!(systems.entries, BatchEntries::Dense(_)) {
            return Err(Error::InvalidArgument("an iteration on dense systems of a batch".into()));
        }
        each_system(systems, vectors, goal, (room, 1), Some(way))
    }

    fn solve_sparse_batch<T: Scalar>(
        &self,
        systems: &BatchParts<'_, T, Self>,
        pattern: &BatchElimination<'_, Self>,
        vectors: BatchVectors<'_, T, Self>,
        goal: &BatchGoal,
        room: &mut BatchRoom<T>,
    ) -> Result<()> {
        pattern.check(systems)?;
        let BatchEntries::Compressed { offsets, columns, values } = systems.entries else {
            return Err(Error::InvalidArgument("a sparse elimination of dense systems".into()));
        };
        let shape = Shape::Compressed(offsets, columns);
        together(systems, (shape, Some(pattern), values), vectors, goal, room)
    }
}

/// Hands systems of one shape to threads, [`LANES`] at a time.
fn together<T: Scalar>(
    systems: &BatchParts<'_, T, Host>,
    (shape, pattern, values): (Shape<'_>, Option<&BatchElimination<'_, Host>>, &[T]),
    vectors: BatchVectors<'_, T, Host>,
    goal: &BatchGoal,
    room: &BatchRoom<T>,
) -> Result<()> {
    systems.check(&vectors)?;
    let (n, each) = (systems.size, systems.entries_each);
    let BatchVectors { count, b, x, steps, residuals, worst } = vectors;
    // Groups of systems that a task takes, so that small ones are worth a task.
    let groups = (AT_ONCE / (LANES * n * n).max(1)).clamp(1, 64);
    let told = steps.par_chunks_mut(groups * LANES).zip(residuals.par_chunks_mut(groups * LANES));
    told.zip(x.par_chunks_mut((groups * LANES * n * count).max(1))).enumerate().for_each(
        |(task, ((steps, residuals), x))| {
            let mut space = lock(&room.0).pop().unwrap_or_default();
            let told = steps.chunks_mut(LANES).zip(residuals.chunks_mut(LANES));
            let vectors = x.chunks_mut((LANES * n * count).max(1));
            for (group, ((steps, residuals), x)) in told.zip(vectors).enumerate() {
                let first = (task * groups + group) * LANES;
                let values = &values[first * each..(first + steps.len()) * each];
                let b = &b[first * n * count..(first + steps.len()) * n * count];
                let asked: Lanes<bool> =
                    std::array::from_fn(|lane| steps.get(lane).is_some_and(|steps| goal.asks_for(*steps)));
                if !asked.contains(&true) {
                    continue;
                }
                let space = &mut space;
                let group = Group { space, count, asked, shape, pattern, values, b, x, goal };
                let found = vectorised_whole(group);
                for (lane, (steps, residual)) in steps.iter_mut().zip(residuals).enumerate() {
                    if asked[lane] {
                        (*steps, *residual) = found[lane].unwrap_or((UNCERTAIN, f64::NAN));
                    }
                }
            }
            lock(&room.0).push(space);
        },
    );
    raise(worst, steps);
    Ok(())
}

/// Raises the worst of the steps.
fn raise(worst: &mut [u32], steps: &[u32]) {
    let most = steps.iter().copied().filter(|&steps| steps >= LIMITED).max();
    worst[0] = worst[0].max(most.unwrap_or(0));
}

/// Hands each system to a thread, `at_once` of them together: to eliminate it, or to iterate in a way.
fn each_system<T: Scalar>(
    systems: &BatchParts<'_, T, Host>,
    vectors: BatchVectors<'_, T, Host>,
    goal: &BatchGoal,
    (room, at_once): (&BatchRoom<T>, usize),
    way: Option<(BatchIteration, &BatchReduction<'_, Host>)>,
) -> Result<()> {
    let (m, n) = (systems.systems, systems.size);
    systems.check(&vectors)?;
    let BatchVectors { count, b, x, steps, residuals, worst } = vectors;
    if let Some(end) = systems.starts.and_then(|starts| starts.last()) {
        Error::check_dimension("number of right-hand sides' entries", *end as usize * count, b.len())?;
    }
    if let Some((_, reduction)) = way {
        reduction.check(systems, b.len().checked_div(count).unwrap_or(0))?;
    }
    let first_row = |system: usize| systems.starts.map_or(system * n, |starts| starts[system] as usize);
    let of_group = |group: usize, x: &mut [T], steps: &mut [u32], residuals: &mut [f64]| {
        let mut space = lock(&room.0).pop().unwrap_or_default();
        let start = first_row(group * at_once);
        for (k, (steps, residual)) in steps.iter_mut().zip(residuals).enumerate() {
            if !goal.asks_for(*steps) {
                continue;
            }
            let system = group * at_once + k;
            let own = first_row(system)..first_row(system + 1);
            let of_vectors = own.start * count..own.end * count;
            let x = &mut x[of_vectors.start - start * count..of_vectors.end - start * count];
            let rows = rows_of(systems, system, &own);
            let (n, b) = (own.len(), &b[of_vectors]);
            let way = way.map(|(iteration, reduction)| {
                let (order, of) = match systems.starts {
                    Some(_) => (&reduction.order[own.clone()], system),
                    None => (reduction.order, 0),
                };
                Way { iteration, order, eliminated: reduction.eliminated[of] as usize }
            });
            let one = One { space: &mut space, way, n, count, rows: &rows, b, x, goal };
            let found = vectorised_whole(one);
            (*steps, *residual) = found.unwrap_or((UNCERTAIN, f64::NAN));
        }
        lock(&room.0).push(space);
    };
    let told = steps.par_chunks_mut(at_once).zip(residuals.par_chunks_mut(at_once));
    if systems.starts.is_none() {
        let x = x.par_chunks_mut((at_once * n * count).max(1));
        told.zip(x)
            .enumerate()
            .for_each(|(group, ((steps, residuals), x))| of_group(group, x, steps, residuals));
    } else {
        let groups: Vec<u64> =
            (0..m.div_ceil(at_once)).map(|group| (first_row(group * at_once) * count) as u64).collect();
        let x = crate::parallel::Cut::new(x, &groups)
            .ok_or_else(|| Error::InvalidArgument("starts of systems that do not ascend".into()))?;
        told.zip(x)
            .enumerate()
            .for_each(|(group, ((steps, residuals), x))| of_group(group, x, steps, residuals));
    }
    raise(worst, steps);
    Ok(())
}

/// The rows of one system.
fn rows_of<'a, T: Scalar>(
    systems: &BatchParts<'a, T, Host>,
    system: usize,
    own: &std::ops::Range<usize>,
) -> Rows<'a, T> {
    match systems.entries {
        BatchEntries::Dense(values) => {
            let entries = systems.size * systems.size;
            Rows::Dense(&values[system * entries..(system + 1) * entries])
        }
        BatchEntries::Compressed { offsets, columns, values } if systems.starts.is_some() => {
            Rows::Compressed { offsets: &offsets[own.start..=own.end], columns, values }
        }
        BatchEntries::Compressed { offsets, columns, values } => {
            let each = systems.entries_each;
            Rows::Compressed { offsets, columns, values: &values[system * each..(system + 1) * each] }
        }
    }
}
