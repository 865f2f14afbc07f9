//! Random systems of 2 to 8 unknowns. The statement of each verdict is checked without rounding.
//!
//! `RESIDUA_VERDICTS` is the number of systems, half of them complex; the default is 10 000.

use crate::elimination::{Solved, dense, rank};
use crate::exact::Exact;
use crate::judge::judge;
use crate::nearness::{distance_to_singular, may_be_singular};
use crate::random::Random;
use num_complex::Complex;
use rayon::prelude::*;
use residua::krylov::Outcome;
use residua::prelude::*;
use residua::solver::{Solvable, SolveReport};
use std::collections::BTreeMap;

/// The default number of systems.
const USUAL: usize = 10_000;

/// A matrix whose distance to the nearest singular one is greater than this, entry by entry, counts as regular.
const REGULAR: f64 = 1e-10;

/// Classes of random systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Regular,
    /// A row is a linear combination of others, except for one entry that differs by one in 1e4 to 1e17.
    NearlySingular,
    /// [[-g, l], [g (1 - d), -l]].
    Pair,
    /// Rows, columns or both are scaled over forty decades.
    Scaled,
    ScaledNearlySingular,
    /// Integers scaled by powers of two, with one row a combination of others; with a solution and without.
    Consistent,
    Inconsistent,
    Triangular,
    Integers,
    /// Some rows cannot be matched with columns.
    Structural,
    /// Conductances between nodes, and small ones to ground, or none.
    Network,
    /// Symmetric, and singular except for a small shift.
    Shifted,
}

const CLASSES: [Class; 12] = [
    Class::Regular,
    Class::NearlySingular,
    Class::Pair,
    Class::Scaled,
    Class::ScaledNearlySingular,
    Class::Consistent,
    Class::Inconsistent,
    Class::Triangular,
    Class::Integers,
    Class::Structural,
    Class::Network,
    Class::Shifted,
];

type Rows<T> = Vec<Vec<T>>;

/// Ten to a random power between two numbers.
fn decades(random: &mut Random, from: f64, to: f64) -> f64 {
    10_f64.powf(from + (to - from) * (0.5 + 0.5 * random.signed()))
}

/// Fills three of four entries at random, and always the diagonal.
fn filled<T: Solvable>(random: &mut Random, n: usize, mut entry: impl FnMut(&mut Random) -> T) -> Rows<T> {
    let mut row = |i: usize, random: &mut Random| {
        (0..n).map(|j| if i == j || random.below(4) > 0 { entry(random) } else { T::zero() }).collect()
    };
    (0..n).map(|i| row(i, random)).collect()
}

/// An integer of at most that size, in complex types one in each part.
fn integer<T: Solvable>(random: &mut Random, largest: usize) -> T {
    let mut part = || random.below(2 * largest + 1) as f64 - largest as f64;
    let (re, im) = (part(), part());
    T::from_parts(re, if T::COMPLEX { im } else { 0.0 }).unwrap()
}

/// Makes a row the sum of small multiples of the others.
fn combine<T: Solvable>(random: &mut Random, rows: &mut Rows<T>) -> usize {
    let n = rows.len();
    let last = random.below(n);
    let factors: Vec<T> = random.vec(n, |random| integer(random, 2));
    let sum = |j: usize| (0..n).filter(|&i| i != last).map(|i| factors[i] * rows[i][j]).sum();
    rows[last] = (0..n).map(sum).collect();
    last
}

/// Multiplies rows and columns by factors, and b like the rows.
fn scale<T: Solvable>(
    random: &mut Random,
    rows: &mut Rows<T>,
    b: &mut [T],
    mut unit: impl FnMut(&mut Random) -> f64,
) {
    let n = rows.len();
    let which = random.below(3);
    let mut units = |all: bool| random.vec(n, |random| T::from_f64(if all { unit(random) } else { 1.0 }));
    let (of_rows, of_columns) = (units(which != 1), units(which != 0));
    for ((row, b), &unit) in rows.iter_mut().zip(b).zip(&of_rows) {
        row.iter_mut().zip(&of_columns).for_each(|(entry, &column)| *entry *= unit * column);
        *b *= unit;
    }
}

fn product<T: Solvable>(rows: &Rows<T>, x: &[T]) -> Vec<T> {
    rows.iter().map(|row| row.iter().zip(x).map(|(&a, &x)| a * x).sum()).collect()
}

fn draw<T: Solvable>(class: Class, random: &mut Random) -> (Csr<T>, Vec<T>) {
    let n = if class == Class::Pair { 2 } else { 2 + random.below(7) };
    let integers = |random: &mut Random| filled(random, n, |random| integer::<T>(random, 5));
    let mut rows = match class {
        Class::Regular | Class::Scaled | Class::NearlySingular | Class::ScaledNearlySingular => {
            filled(random, n, Random::scalar)
        }
        Class::Pair => pair(random),
        Class::Consistent | Class::Inconsistent | Class::Integers => integers(random),
        Class::Triangular => triangular(random, n),
        Class::Structural => structural(random, n),
        Class::Network => network(random, n),
        Class::Shifted => shifted(random, n),
    };
    let mut b: Vec<T> = match class {
        Class::Pair => vec![T::one(); 2],
        _ => random.vector(n),
    };
    match class {
        Class::NearlySingular | Class::ScaledNearlySingular => {
            let row = combine(random, &mut rows);
            let by = T::from_f64(1.0 + decades(random, -17.0, -4.0));
            rows[row][random.below(n)] *= by;
        }
        Class::Consistent | Class::Inconsistent => {
            combine(random, &mut rows);
            let x: Vec<T> = random.vec(n, |random| integer(random, 9));
            b = if class == Class::Consistent { product(&rows, &x) } else { x };
            scale(random, &mut rows, &mut b, |random| 2_f64.powi(random.below(121) as i32 - 60));
        }
        Class::Network => {
            // A current enters at one node and, unless something else is required, leaves at another.
            b = (0..n).map(|i| T::from_f64(f64::from(u8::from(i == 0)))).collect();
            if random.below(2) == 0 {
                b[n - 1] -= T::one();
            }
        }
        Class::Integers | Class::Structural => b = random.vec(n, |random| integer(random, 9)),
        Class::Regular | Class::Scaled if random.below(2) == 0 => b = product(&rows, &random.vector(n)),
        _ => {}
    }
    if matches!(class, Class::Scaled | Class::ScaledNearlySingular) {
        scale(random, &mut rows, &mut b, |random| decades(random, -20.0, 20.0));
        if random.below(3) == 0 {
            b = random.vector(n);
        }
    }
    if random.below(3) == 0 {
        (1..n).rev().for_each(|i| {
            let other = random.below(i + 1);
            rows.swap(i, other);
            b.swap(i, other);
        });
    }
    (stored(&rows), b)
}

fn pair<T: Solvable>(random: &mut Random) -> Rows<T> {
    let (g, l) = (0.55 + 0.45 * random.signed(), 0.55 + 0.45 * random.signed());
    let d = decades(random, -15.5, -8.0);
    [[-g, l], [g * (1.0 - d), -l]].map(|row| row.map(T::from_f64).to_vec()).to_vec()
}

fn triangular<T: Solvable>(random: &mut Random, n: usize) -> Rows<T> {
    let growth = decades(random, 0.0, 6.0);
    let mut rows = vec![vec![T::zero(); n]; n];
    for (i, row) in rows.iter_mut().enumerate() {
        row[..i].iter_mut().for_each(|entry| *entry = random.scalar::<T>() * T::from_f64(growth));
        row[i] = T::one();
    }
    rows
}

/// The entries of `few` + 1 rows are all in `few` columns.
fn structural<T: Solvable>(random: &mut Random, n: usize) -> Rows<T> {
    let few = random.below(n);
    let mut rows = filled(random, n, |random| integer::<T>(random, 5));
    rows[..=few].iter_mut().for_each(|row| row[few..].fill(T::zero()));
    rows
}

fn network<T: Solvable>(random: &mut Random, n: usize) -> Rows<T> {
    let mut rows = vec![vec![T::zero(); n]; n];
    let conductances = random.vec(2 * n, |random| 0.2 + random.below(64) as f64 / 16.0);
    let mut next = conductances.iter();
    let mut connect = |i: usize, j: usize| {
        let conductance = T::from_f64(*next.next().expect("one for each pair"));
        for (at, other) in [(i, j), (j, i)] {
            rows[at][at] += conductance;
            rows[at][other] -= conductance;
        }
    };
    (1..n).for_each(|i| connect(i, random.below(i)));
    for _ in 0..n / 2 {
        let (i, j) = (random.below(n), random.below(n));
        if i != j {
            connect(i, j);
        }
    }
    let leak = if random.below(4) == 0 { 0.0 } else { decades(random, -17.0, -5.0) };
    (0..n).for_each(|i| rows[i][i] += T::from_f64(leak));
    rows
}

/// B^H B plus a shift, for a square matrix B of integers with a row of zeros.
fn shifted<T: Solvable>(random: &mut Random, n: usize) -> Rows<T> {
    let mut factor = filled(random, n, |random| integer::<T>(random, 3));
    factor[random.below(n)].fill(T::zero());
    let entry = |i: usize, j: usize| factor.iter().map(|row| row[i].conj() * row[j]).sum::<T>();
    let shift = if random.below(4) == 0 { 0.0 } else { decades(random, -17.0, -4.0) };
    let shifted = |i: usize, j: usize| entry(i, j) + T::from_f64(if i == j { shift } else { 0.0 });
    (0..n).map(|i| (0..n).map(|j| shifted(i, j)).collect()).collect()
}

/// The matrix, without storing its zeros.
fn stored<T: Solvable>(rows: &Rows<T>) -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        for (j, &value) in row.iter().enumerate().filter(|(_, value)| **value != T::zero()) {
            indices.push(j as u32);
            values.push(value);
        }
        offsets.push(indices.len());
    }
    Csr::from_parts(rows.len(), rows.len(), offsets, indices, values).unwrap()
}

/// The false claims in the report on x.
fn faults<T: Solvable>(a: &Csr<T>, b: &[T], x: &[T], report: &SolveReport) -> Vec<String> {
    let mut faults = judge(a, b, x, report, 1e-8).faults;
    let solved = report.outcome.is_solved();
    if report.outcome.is_converged() {
        return faults;
    }
    let (rows, right) = (dense(a), Exact::of_all(b));
    let Some(exact) = Solved::new(&rows, std::slice::from_ref(&right)) else {
        // If x is one of many solutions or none exists, no correct digits can be claimed.
        if solved && !matches!(report.outcome, Outcome::LeastSquares) {
            faults.push(format!("{}: the rank is {} of {}", report.outcome, rank(&rows), rows.len()));
        }
        return faults;
    };
    if let Outcome::PrecisionLimit { digits } = report.outcome {
        let error = exact.error(x);
        if digits >= 1.0 && error > 10_f64.powf(1.0 - digits) {
            faults.push(format!("{}: x is wrong by {error:.1e}", report.outcome));
        }
    } else if matches!(report.outcome, Outcome::Singular | Outcome::LeastSquares)
        && distance_to_singular(&rows, REGULAR) > REGULAR
        && !may_be_singular(&rows, REGULAR)
    {
        faults.push(format!("{}: of a matrix that is regular for all to see", report.outcome));
    }
    faults
}

/// How often each outcome was reported for each class, and the faults.
#[derive(Default)]
struct Tally {
    outcomes: BTreeMap<(Class, Way, &'static str), usize>,
    faults: Vec<String>,
}

/// The name of a way to solve.
type Way = &'static str;

impl Tally {
    fn of<T: Solvable>(seed: u64) -> Self {
        let class = CLASSES[seed as usize % CLASSES.len()];
        let (a, b) = draw::<T>(class, &mut Random(seed));
        let mut tally = Self::default();
        for (way, builder) in
            [("auto", Solver::builder()), ("direct", Solver::builder().method(Method::Direct))]
        {
            let mut told = |x: &[T], report: &SolveReport| {
                *tally.outcomes.entry((class, way, report.outcome.status())).or_default() += 1;
                let place = |fault| format!("{class:?} {} {seed} by {way}: {fault}", T::NAME);
                tally.faults.extend(faults(&a, &b, x, report).into_iter().map(place));
            };
            let mut solver = builder.build(&a).unwrap();
            if seed.is_multiple_of(5) {
                let (twice, mut x) = ([&b[..], &b[..]].concat(), vec![T::zero(); 2 * b.len()]);
                let reports = solver.solve_many(&twice, &mut x).unwrap();
                x.chunks(b.len()).zip(&reports).for_each(|(x, report)| told(x, report));
            } else {
                let solution = solver.solve(&b).unwrap();
                told(&solution.x, &solution.report);
            }
        }
        tally
    }

    fn and(mut self, other: Self) -> Self {
        other.outcomes.into_iter().for_each(|(key, count)| *self.outcomes.entry(key).or_default() += count);
        self.faults.extend(other.faults);
        self
    }
}

fn all_are_true<T: Solvable>() {
    let count = std::env::var("RESIDUA_VERDICTS").ok().and_then(|count| count.parse().ok()).unwrap_or(USUAL);
    let tally = (0..count as u64 / 2).into_par_iter().map(Tally::of::<T>).reduce(Tally::default, Tally::and);
    for ((class, way, status), count) in &tally.outcomes {
        println!("{class:?} {} by {way}: {status} {count}", T::NAME);
    }
    let first: Vec<&str> = tally.faults.iter().map(String::as_str).take(60).collect();
    assert!(tally.faults.is_empty(), "{} faults, the first:\n{}", tally.faults.len(), first.join("\n"));
}

#[test]
fn what_is_said_of_random_systems_is_true() {
    all_are_true::<f64>();
}

#[test]
fn what_is_said_of_complex_random_systems_is_true() {
    all_are_true::<Complex<f64>>();
}
