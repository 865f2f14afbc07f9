//! Batches of small systems: every kernel and class at ragged sizes, with systems that fail, compared with the host.

use crate::random::Random;
use num_complex::Complex;
use residua::backend::BatchSteps;
use residua::batch::{Batch, Method};
use residua::krylov::Outcome;
use residua::scalar::Real;
use residua::solver::Solvable;
use residua::{Cuda, Host, Result, Scalar};

/// A sparsity pattern.
#[derive(Clone)]
struct Pattern {
    offsets: Vec<u64>,
    columns: Vec<u32>,
}

/// `n` rows with the diagonal and up to `near` neighbours on either side.
fn band(n: usize, near: usize) -> Pattern {
    let (mut offsets, mut columns) = (vec![0], Vec::new());
    for i in 0..n {
        columns.extend((i.saturating_sub(near)..(i + near + 1).min(n)).map(|j| j as u32));
        offsets.push(columns.len() as u64);
    }
    Pattern { offsets, columns }
}

/// Outcomes and x of a batch.
type Solved<T> = (Vec<Outcome>, Vec<T>);

fn solved<T: Solvable, B: BatchSteps>(
    b: &B,
    batch: Result<Batch<T, B>>,
    method: Method,
    (values, right): (&[T], &[T]),
) -> Solved<T> {
    let mut batch = batch.unwrap().method(method);
    let (values, right) = (b.upload(values.to_vec()).unwrap(), b.upload(right.to_vec()).unwrap());
    let mut x = b.zeros(B::len(&right)).unwrap();
    let outcomes = batch.solve_into(&values, &right, &mut x).unwrap().outcomes.clone();
    (outcomes, b.download(&x).unwrap())
}

/// Checks that the device has the same outcomes as the host, and the same x.
fn alike<T: Scalar>(what: &str, n: usize, (here, expected): Solved<T>, (there, x): Solved<T>) {
    let each = expected.len() / here.len();
    for (s, (here, there)) in here.iter().zip(&there).enumerate() {
        assert_eq!(
            here.is_solved(),
            there.is_solved(),
            "{what} of {n}, system {s}: {here} here, {there} there"
        );
        let own = s * each..(s + 1) * each;
        let size = |of: &mut dyn Iterator<Item = T>| of.map(|x| x.abs().to_f64()).fold(0.0, f64::max);
        let most = size(&mut expected[own.clone()].iter().copied());
        let mut differences = own.map(|i| x[i] - expected[i]);
        assert!(
            !here.is_converged() || size(&mut differences) <= 1e-3 * most,
            "{what} of {n}, system {s}: x"
        );
    }
}

/// Dense systems, the third one with a row of zeros.
fn dense<T: Solvable>(b: &Cuda, n: usize, m: usize) {
    let mut random = Random(n as u64 + 1);
    let mut values: Vec<T> = random.vector(m * n * n);
    let right: Vec<T> = random.vector(m * n * 2);
    if n > 1 {
        values[2 * n * n..][n..2 * n].fill(T::zero());
    }
    let given = (&values[..], &right[..]);
    let here = solved(&Host, Batch::dense(Host, m, n), Method::Auto, given);
    alike("dense", n, here, solved(b, Batch::dense(*b, m, n), Method::Auto, given));
}

/// Systems of one pattern with a large diagonal, the third one with a row of zeros.
fn sparse<T: Solvable>(b: &Cuda, pattern: &Pattern, m: usize, method: Method) {
    let Pattern { offsets, columns } = pattern;
    let (n, each) = (offsets.len() - 1, columns.len());
    let mut random = Random(n as u64 + 1);
    let mut values: Vec<T> = random.vector(m * each);
    for system in values.chunks_exact_mut(each) {
        if method == Method::Cg {
            hermitian(pattern, system);
        }
        for i in 0..n {
            let own = offsets[i] as usize..offsets[i + 1] as usize;
            for at in own.clone().filter(|&at| columns[at] as usize == i) {
                system[at] += T::from_f64(own.len() as f64);
            }
        }
    }
    values[2 * each..][..offsets[1] as usize].fill(T::zero());
    let right: Vec<T> = random.vector(m * n);
    let given = (&values[..], &right[..]);
    let (o, c) = (|| offsets.clone(), || columns.clone());
    let here = solved(&Host, Batch::one_pattern(Host, m, o(), c()), Method::Lu, given);
    alike("one pattern", n, here, solved(b, Batch::one_pattern(*b, m, o(), c()), method, given));
}

/// Makes a matrix of a symmetric pattern Hermitian.
fn hermitian<T: Solvable>(Pattern { offsets, columns }: &Pattern, values: &mut [T]) {
    for i in 0..offsets.len() - 1 {
        for at in offsets[i] as usize..offsets[i + 1] as usize {
            let j = columns[at] as usize;
            let row = offsets[j] as usize..offsets[j + 1] as usize;
            let across = row.start + columns[row].binary_search(&(i as u32)).unwrap();
            values[at] = if i < j { values[across].conj() } else { values[at] };
            if i == j {
                values[at] = T::from_real(values[at].re());
            }
        }
    }
}

/// Systems of different sizes, one without rows, one with an empty row.
fn each_its_own<T: Solvable>(b: &Cuda, sizes: &[usize], method: Method) {
    let (mut starts, mut offsets, mut columns) = (vec![0_u64], vec![0_u64], Vec::new());
    let mut values: Vec<T> = Vec::new();
    let mut random = Random(9);
    for &n in sizes {
        let own = band(n, 2);
        for i in 0..n {
            let range = own.offsets[i] as usize..own.offsets[i + 1] as usize;
            // The last row of systems of five unknowns is empty.
            if (n, i) != (5, 4) {
                columns.extend(&own.columns[range.clone()]);
                let diagonal =
                    |&column: &u32| if column as usize == i { T::from_f64(6.0) } else { T::zero() };
                values.extend(own.columns[range].iter().map(|c| diagonal(c) + random.vector::<T>(1)[0]));
            }
            offsets.push(columns.len() as u64);
        }
        starts.push(offsets.len() as u64 - 1);
    }
    let right: Vec<T> = random.vector(offsets.len() - 1);
    let given = (&values[..], &right[..]);
    let (s, o, c) = (|| starts.clone(), || offsets.clone(), || columns.clone());
    let (here, expected) = solved(&Host, Batch::each_its_own(Host, s(), o(), c()), Method::Lu, given);
    let (there, x) = solved(b, Batch::each_its_own(*b, s(), o(), c()), method, given);
    let solves = |of: &[Outcome]| of.iter().map(Outcome::is_solved).collect::<Vec<_>>();
    assert_eq!(solves(&here), solves(&there), "{sizes:?}");
    for (s, outcome) in here.iter().enumerate().filter(|(_, outcome)| outcome.is_converged()) {
        for i in starts[s] as usize..starts[s + 1] as usize {
            let difference = (x[i] - expected[i]).abs().to_f64();
            assert!(difference <= 1e-3, "{sizes:?}, system {s}: {outcome}");
        }
    }
}

fn of_type<T: Solvable>(b: &Cuda) {
    for n in [1, 2, 3, 4, 5, 8, 11, 16, 17, 31, 32] {
        dense::<T>(b, n, 7);
    }
    for n in [33, 70, 129] {
        dense::<T>(b, n, 4);
    }
    each_its_own::<T>(b, &[3, 0, 5, 1, 4, 7], Method::Auto);
    each_its_own::<T>(b, &[3, 0, 5, 1, 40], Method::Auto);
    each_its_own::<T>(b, &[3, 0, 5, 1, 40], Method::BiCgStab);
}

pub fn doubles(b: &Cuda) {
    of_type::<f64>(b);
}

pub fn singles(b: &Cuda) {
    of_type::<f32>(b);
}

pub fn complex_doubles(b: &Cuda) {
    of_type::<Complex<f64>>(b);
}

pub fn complex_singles(b: &Cuda) {
    of_type::<Complex<f32>>(b);
}

fn patterns(b: &Cuda, method: Method) {
    // Rows of few entries, of more, and of more than a thread holds.
    for (n, near) in [(67, 1), (130, 4), (130, 9), (300, 1), (300, 4), (300, 9), (1100, 1)] {
        sparse::<f64>(b, &band(n, near), 5, method);
    }
    sparse::<f32>(b, &band(67, 1), 5, method);
    sparse::<Complex<f64>>(b, &band(130, 2), 5, method);
    sparse::<Complex<f32>>(b, &band(300, 2), 5, method);
}

pub fn eliminated(b: &Cuda) {
    patterns(b, Method::Lu);
}

pub fn iterated(b: &Cuda) {
    patterns(b, Method::BiCgStab);
    patterns(b, Method::Cg);
}
