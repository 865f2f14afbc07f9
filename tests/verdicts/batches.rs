//! Batches of small systems: the verdict on each is true, and no system affects another.

use crate::elimination::{dense, rank};
use crate::measure::Measures;
use crate::random::Random;
use residua::batch::{Batch, Method, Told};
use residua::krylov::Outcome;
use residua::solver::Solvable;
use residua::{Csr, Host, Scalar};

/// A dense matrix with its right-hand sides, row by row.
struct System<T> {
    a: Vec<T>,
    b: Vec<T>,
    /// Whether it contains an infinity or NaN.
    spoilt: bool,
}

const KINDS: usize = 9;

fn system<T: Scalar>(random: &mut Random, n: usize, k: usize, kind: usize) -> System<T> {
    let single = size_of::<T::Real>() == 4;
    let far = if single { 60 } else { 664 };
    let mut a: Vec<T> = random.vector(n * n);
    let mut b: Vec<T> = random.vector(n * k);
    let mut spoilt = false;
    let powers = |by: i32| T::from_f64(2_f64.powi(by));
    match kind {
        // Small integers, which often give a singular matrix.
        1 => a.iter_mut().for_each(|a| *a = T::from_f64(random.below(3) as f64 - 1.0)),
        // One row is the exact sum of two others.
        2 if n > 2 => {
            a.iter_mut().for_each(|a| *a = T::from_f64(random.below(9) as f64 - 4.0));
            for j in 0..n {
                a[j] = a[n + j] + a[2 * n + j];
            }
        }
        // Entries around 1e200 or 1e-200.
        3 | 4 => {
            let far = if kind == 3 { far } else { -far };
            a.iter_mut().for_each(|a| *a *= powers(far));
            b.iter_mut().for_each(|b| *b *= powers(far / 2));
        }
        // Each row has its own scale.
        5 => {
            for row in a.chunks_exact_mut(n) {
                let unit = powers(random.below(60) as i32 - 30);
                row.iter_mut().for_each(|a| *a *= unit);
            }
        }
        // Hermitian; some of these are positive definite.
        6 => {
            for i in 0..n {
                for j in 0..i {
                    a[i * n + j] = a[j * n + i].conj();
                }
                a[i * n + i] = T::from_f64(n as f64 * random.signed().abs());
            }
        }
        7 => (0..n).for_each(|i| a[i * n] = T::zero()),
        8 => {
            let at = random.below(n * n + n * k);
            let none = T::from_f64(if at.is_multiple_of(2) { f64::NAN } else { f64::INFINITY });
            *a.iter_mut().chain(&mut b).nth(at).unwrap() = none;
            spoilt = true;
        }
        _ => {}
    }
    System { a, b, spoilt }
}

fn matrix<T: Scalar>(n: usize, a: &[T]) -> Csr<T> {
    let columns = (0..n).flat_map(|_| 0..n as u32).collect();
    Csr::from_parts(n, n, (0..=n).map(|i| i * n).collect(), columns, a.to_vec()).unwrap()
}

/// The first false claim about one system, if there is one.
fn fault<T: Scalar>(
    (n, k): (usize, usize),
    (of, kind): (&System<T>, usize),
    x: &[T],
    (outcome, residual): (Outcome, f64),
) -> Option<String> {
    if of.spoilt {
        return (outcome != Outcome::NotFinite).then(|| format!("{outcome} with what is no number"));
    }
    let a = matrix(n, &of.a);
    let column = |of: &[T], c: usize| (0..n).map(|i| of[i * k + c]).collect::<Vec<T>>();
    let tolerance = if size_of::<T::Real>() == 4 { 1e-5 } else { 1e-8 };
    match outcome {
        Outcome::Converged => (0..k).find_map(|c| {
            let true_of = Measures::new(&a, &column(&of.b, c), &column(x, c));
            // The residual in the report was computed in double precision.
            let slack = (4.0 + n as f64) * 4.0 * f64::EPSILON * true_of.terms;
            let told_enough = true_of.relative() <= 1.01 * residual + slack;
            (!true_of.meets(tolerance) || !told_enough)
                .then(|| format!("converged with {:e}, told {residual:e}", true_of.relative()))
        }),
        // The entries of these systems are integers, so the rank can be checked exactly.
        Outcome::Singular | Outcome::LeastSquares => {
            (rank(&dense(&a)) == n).then(|| format!("{outcome} of a regular matrix"))
        }
        // These outcomes claim no more: the system was solved as far as working precision allows, or it may be
        // singular.
        Outcome::PrecisionLimit { .. } => None,
        Outcome::Stagnated | Outcome::IterationLimit if kind != 0 => None,
        _ => Some(format!("{outcome}: neither solved nor shown to be singular")),
    }
}

/// Solves `systems` systems of one type. Returns the false claims, and how many systems have converged.
fn faults<T: Solvable>(seed: u64, systems: usize) -> (Vec<String>, usize) {
    let (mut random, mut faults, mut converged) = (Random(seed), Vec::new(), 0);
    for (n, k) in [(1, 1), (2, 3), (3, 1), (4, 2), (7, 1), (10, 1)] {
        let all: Vec<System<T>> =
            (0..systems.div_ceil(6)).map(|s| system(&mut random, n, k, s % KINDS)).collect();
        let a: Vec<T> = all.iter().flat_map(|system| system.a.clone()).collect();
        let b: Vec<T> = all.iter().flat_map(|system| system.b.clone()).collect();
        let mut x = vec![T::zero(); b.len()];
        let mut batch = Batch::dense(Host, all.len(), n).unwrap();
        let verdicts = batch.solve_into(&a, &b, &mut x).unwrap();
        for (s, (own, x)) in all.iter().zip(x.chunks_exact(n * k)).enumerate() {
            let told = (verdicts.outcomes[s], verdicts.residuals[s]);
            converged += usize::from(told.0.is_converged());
            faults.extend(
                fault((n, k), (own, s % KINDS), x, told).map(|fault| {
                    format!("{} system {s} of {n} unknowns, kind {}: {fault}", T::NAME, s % KINDS)
                }),
            );
        }
    }
    (faults, converged)
}

fn no_false_verdict(systems: usize) {
    let each = systems / 4;
    let all = [
        faults::<f64>(1, each),
        faults::<f32>(2, each),
        faults::<num_complex::Complex<f64>>(3, each),
        faults::<num_complex::Complex<f32>>(4, each),
    ];
    let converged: usize = all.iter().map(|(_, converged)| converged).sum();
    let faults: Vec<String> = all.into_iter().flat_map(|(faults, _)| faults).collect();
    assert!(faults.is_empty(), "{} faults: {}", faults.len(), faults[..faults.len().min(20)].join("\n"));
    assert!(converged > systems / 2, "{converged} of {systems} have converged");
}

#[test]
fn verdicts_of_batches_are_true() {
    no_false_verdict(1600);
}

#[test]
#[ignore = "minutes: the test before it takes 1600 systems of the same kinds; run after a change of elimination"]
fn verdicts_of_a_hundred_thousand_systems_are_true() {
    no_false_verdict(100_000);
}

/// Systems in single precision whose x cannot meet the tolerance once it is rounded are decided in the batch, and x has
/// the digits that are reported.
#[test]
fn rounding_to_single_precision_is_a_limit_with_digits() {
    for (n, k) in [(24, 2), (40, 1)] {
        let (m, mut random) = (120, Random(n as u64));
        let mut a: Vec<f32> = random.vector(m * n * n);
        // Two rows that are nearly the same, to a different degree in each system.
        for (s, system) in a.chunks_exact_mut(n * n).enumerate() {
            let near = 2_f32.powi(-((s % 20) as i32));
            (0..n).for_each(|j| system[j] = system[n + j] + near * system[j]);
        }
        let b: Vec<f32> = random.vector(m * n * k);
        let mut x = vec![0.0_f32; b.len()];
        let mut batch = Batch::dense(Host, m, n).unwrap();
        let verdicts = batch.solve_into(&a, &b, &mut x).unwrap().clone();
        assert!(!verdicts.all_converged());
        let wide = |of: &[f32]| of.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
        let mut exact = vec![0.0; b.len()];
        let mut batch = Batch::dense(Host, m, n).unwrap();
        assert!(batch.solve_into(&wide(&a), &wide(&b), &mut exact).unwrap().all_converged());
        let mut limited = 0;
        for s in 0..m {
            let Outcome::PrecisionLimit { digits } = verdicts.outcomes[s] else { continue };
            limited += 1;
            assert!(verdicts.residuals[s] > 0.0, "system {s}");
            for c in 0..k {
                let column = |of: &[f64]| (0..n).map(|i| of[(s * n + i) * k + c]).collect::<Vec<_>>();
                let (x, exact) = (column(&wide(&x)), column(&exact));
                let norm = |of: &mut dyn Iterator<Item = f64>| of.map(|x| x * x).sum::<f64>().sqrt();
                let error = norm(&mut x.iter().zip(&exact).map(|(x, exact)| x - exact));
                let relative = error / norm(&mut exact.iter().copied());
                assert!(relative <= 10_f64.powf(-digits), "system {s} of {n}: {digits} digits, {relative:e}");
            }
        }
        assert!(limited > m / 4, "{limited} of {m} are limited by rounding");
        assert_eq!(verdicts.apart, 0, "of {n} unknowns");
    }
}

#[test]
fn a_system_has_the_same_bits_alone_and_among_others() {
    let (n, mut random) = (9, Random(5));
    let all: Vec<System<f64>> = (0..70).map(|s| system(&mut random, n, 1, s % KINDS)).collect();
    let a: Vec<f64> = all.iter().flat_map(|system| system.a.clone()).collect();
    let b: Vec<f64> = all.iter().flat_map(|system| system.b.clone()).collect();
    let mut x = vec![0.0; b.len()];
    let mut batch = Batch::dense(Host, all.len(), n).unwrap();
    let together = batch.solve_into(&a, &b, &mut x).unwrap().clone();
    let mut alone = Batch::dense(Host, 1, n).unwrap();
    for (s, own) in all.iter().enumerate() {
        let mut own_x = vec![0.0; n];
        let verdict = alone.solve_into(&own.a, &own.b, &mut own_x).unwrap();
        assert_eq!(verdict.outcomes[0], together.outcomes[s], "system {s}");
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&own_x), bits(&x[s * n..(s + 1) * n]), "system {s}");
    }
}

/// Systems with a sparse pattern, with different row lengths and sizes, give the same verdicts as the same dense
/// matrices.
#[test]
fn patterns_tell_the_same_as_dense_matrices() {
    let (n, m, mut random) = (12, 40, Random(6));
    let stored = |i: usize, j: usize| i == j || (i * 7 + j * 3).is_multiple_of(5);
    let (mut offsets, mut columns) = (vec![0_u64], Vec::new());
    for i in 0..n {
        columns.extend((0..n).filter(|&j| stored(i, j)).map(|j| j as u32));
        offsets.push(columns.len() as u64);
    }
    let each = columns.len();
    let values: Vec<f64> = random.vector(m * each);
    let b: Vec<f64> = random.vector(m * n);
    let mut full = vec![0.0; m * n * n];
    for s in 0..m {
        for i in 0..n {
            for at in offsets[i] as usize..offsets[i + 1] as usize {
                full[(s * n + i) * n + columns[at] as usize] = values[s * each + at];
            }
        }
    }
    let (mut x, mut by_pattern, mut by_each) = (b.clone(), b.clone(), b.clone());
    let mut batch = Batch::dense(Host, m, n).unwrap();
    let expected = batch.solve_into(&full, &b, &mut x).unwrap().clone();
    let mut batch = Batch::one_pattern(Host, m, offsets.clone(), columns.clone()).unwrap();
    let found = batch.solve_into(&values, &b, &mut by_pattern).unwrap();
    assert!(expected.all_converged() && found.all_converged());
    let near = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| (x - y).abs() <= 1e-6 * (1.0 + x.abs()));
    assert!(near(&x, &by_pattern), "another order of elimination, the same x");

    // The same systems, preceded by one with a single unknown.
    let starts: Vec<u64> = std::iter::once(0).chain((0..=m).map(|s| (1 + s * n) as u64)).collect();
    let rows = (0..m).flat_map(|s| offsets[1..].iter().map(move |end| 1 + (s * each) as u64 + end));
    let all_offsets: Vec<u64> = [0, 1].into_iter().chain(rows).collect();
    let all_columns: Vec<u32> = std::iter::once(0).chain((0..m).flat_map(|_| columns.clone())).collect();
    let with =
        |first: f64, rest: &[f64]| std::iter::once(first).chain(rest.iter().copied()).collect::<Vec<_>>();
    by_each.push(0.0);
    let mut batch = Batch::each_its_own(Host, starts, all_offsets, all_columns).unwrap();
    let found = batch.solve_into(&with(2.0, &values), &with(1.0, &b), &mut by_each).unwrap();
    assert!(found.all_converged());
    assert!(near(&with(0.5, &x), &by_each), "one system at a time, the same x");
}

#[test]
fn what_is_no_batch_is_refused() {
    assert!(Batch::<f64>::one_pattern(Host, 2, vec![0, 1, 2], vec![0, 2]).is_err(), "a column too far");
    assert!(Batch::<f64>::one_pattern(Host, 2, vec![0, 2, 2], vec![1, 0]).is_err(), "columns that descend");
    assert!(Batch::<f64>::one_pattern(Host, 2, vec![0, 3, 2], vec![0, 1]).is_err(), "offsets that descend");
    assert!(Batch::<f64>::each_its_own(Host, vec![0, 3, 2], vec![0, 1, 2], vec![0, 0]).is_err(), "starts");
    let mut batch = Batch::<f64>::dense(Host, 2, 2).unwrap();
    let mut x = [0.0; 4];
    assert!(batch.solve_into(&[1.0; 7], &[1.0; 4], &mut x).is_err(), "too few values");
    assert!(batch.solve_into(&[1.0; 8], &[1.0; 3], &mut x).is_err(), "b of another length");
    let mut batch = Batch::<f64>::dense(Host, 1, 1).unwrap().tolerance(f64::NAN);
    assert!(batch.solve_into(&[1.0], &[1.0], &mut x[..1]).is_err(), "no tolerance");
}

#[test]
fn sparse_elimination_is_judged_like_any_other() {
    grids_are_judged(Method::Lu);
}

#[test]
fn iterations_are_judged_like_any_other() {
    grids_are_judged(Method::BiCgStab);
}

/// Conjugate gradients on Hermitian matrices, some of them scaled by 2^300 and 2^-300, one indefinite.
fn hermitian_grids<T: Solvable>() {
    let (side, m, mut random) = (9_usize, 12, Random(8));
    let n = side * side;
    let (mut offsets, mut columns) = (vec![0_u64], Vec::new());
    for i in 0..n {
        let near = [i.wrapping_sub(side), i.wrapping_sub(1), i, i + 1, i + side];
        let is_there = |&&j: &&usize| j < n && (j / side == i / side || j % side == i % side);
        columns.extend(near.iter().filter(is_there).map(|&j| j as u32));
        offsets.push(columns.len() as u64);
    }
    let row = |i: usize| offsets[i] as usize..offsets[i + 1] as usize;
    let mut values: Vec<T> = Vec::new();
    for s in 0..m {
        let mut own: Vec<T> = random.vector(columns.len());
        for i in 0..n {
            for at in row(i) {
                let j = columns[at] as usize;
                let across = offsets[j] as usize + columns[row(j)].binary_search(&(i as u32)).unwrap();
                if i == j {
                    own[at] = T::from_f64(if s == 3 && i == 40 { -4.5 } else { 4.5 });
                } else if i < j {
                    own[at] = own[across].conj();
                }
            }
        }
        let far = if size_of::<T::Real>() == 4 { 40 } else { 300 };
        let by = T::from_f64(2_f64.powi([0, far, -far][s % 3]));
        values.extend(own.into_iter().map(|a| a * by));
    }
    let b: Vec<T> = random.vector(m * n);
    let mut x = b.clone();
    let batch = Batch::one_pattern(Host, m, offsets.clone(), columns.clone()).unwrap();
    let verdicts = batch.method(Method::Cg).solve_into(&values, &b, &mut x).unwrap().clone();
    let tolerance = if size_of::<T::Real>() == 4 { 1e-5 } else { 1e-8 };
    for s in 0..m {
        assert!(verdicts.outcomes[s].is_converged(), "{} {s}: {}", T::NAME, verdicts.outcomes[s]);
        assert!(s == 3 || verdicts.iterations[s] > 3, "{} {s}: {}", T::NAME, verdicts.iterations[s]);
        let offsets = offsets.iter().map(|&offset| offset as usize).collect();
        let own = values[s * columns.len()..(s + 1) * columns.len()].to_vec();
        let a = Csr::from_parts(n, n, offsets, columns.clone(), own).unwrap();
        let true_of = Measures::new(&a, &b[s * n..(s + 1) * n], &x[s * n..(s + 1) * n]);
        assert!(true_of.meets(tolerance), "{} {s}: {:e}", T::NAME, true_of.relative());
    }
}

#[test]
fn conjugate_gradients_are_judged_like_any_other() {
    hermitian_grids::<f64>();
    hermitian_grids::<f32>();
    hermitian_grids::<num_complex::Complex<f64>>();
    hermitian_grids::<num_complex::Complex<f32>>();
}

/// Verdicts that a caller keeps are not overwritten by later solves.
#[test]
fn verdicts_that_are_kept_stay_as_they_are() {
    let (m, n, mut random) = (5, 3, Random(9));
    let a: Vec<f64> = (0..m * n * n).map(|at| if at % (n * n) % (n + 1) == 0 { 4.0 } else { 1.0 }).collect();
    let (b, mut x) = (random.vector::<f64>(m * n), vec![0.0; m * n]);
    let mut batch = Batch::dense(Host, m, n).unwrap();
    let mut kept = Vec::new();
    for solve in 0..4 {
        let b: Vec<f64> = b.iter().map(|b| b + f64::from(solve)).collect();
        let Told::AllConverged(stored) = batch.solve_there(&a, &b, &mut x).unwrap() else {
            panic!("not all have converged")
        };
        assert_eq!(stored.systems(), m);
        kept.push((b, stored));
    }
    for (b, stored) in kept {
        let (mut iterations, mut residuals) = (vec![9; m], vec![9.0; m]);
        stored.read(&mut iterations, &mut residuals).unwrap();
        let expected = batch.solve_into(&a, &b, &mut x).unwrap();
        assert_eq!((&iterations, &residuals), (&expected.iterations, &expected.residuals));
        assert!(expected.all_converged() && residuals.iter().all(|r| *r < 1e-8));
    }
    let Told::Each(told) = batch.solve_there(&vec![0.0; a.len()], &b, &mut x).unwrap() else {
        panic!("zeros have converged")
    };
    assert!(!told.all_converged() && told.apart == m);
}

/// An unsymmetric matrix on a grid with too many unknowns for dense elimination.
fn grids_are_judged(method: Method) {
    let (side, m, mut random) = (9_usize, 21, Random(7));
    let n = side * side;
    let (mut offsets, mut columns) = (vec![0_u64], Vec::new());
    for i in 0..n {
        let near = [i.wrapping_sub(side), i.wrapping_sub(1), i, i + 1, i + side];
        let is_there = |&&j: &&usize| j < n && (j / side == i / side || j % side == i % side);
        columns.extend(near.iter().filter(is_there).map(|&j| j as u32));
        offsets.push(columns.len() as u64);
    }
    let each = columns.len();
    let mut values: Vec<f64> = random.vector(m * each);
    for s in 0..m {
        for i in 0..n {
            for at in offsets[i] as usize..offsets[i + 1] as usize {
                if columns[at] as usize == i {
                    values[s * each + at] += 6.0;
                }
            }
        }
    }
    // Damages some systems: a row of zeros, a zero pivot that needs a row exchange, an infinity, entries around 1e200.
    let row = |s: usize, i: usize| s * each + offsets[i] as usize..s * each + offsets[i + 1] as usize;
    values[row(3, 40)].fill(0.0);
    for at in row(5, 0) {
        values[at] = if columns[at - 5 * each] == 0 { 0.0 } else { values[at] };
    }
    values[7 * each] = f64::INFINITY;
    values[9 * each..10 * each].iter_mut().for_each(|value| *value *= 2_f64.powi(664));
    let b: Vec<f64> = random.vector(m * n * 2);
    let solve = |systems: std::ops::Range<usize>| {
        let (values, b) = (
            &values[systems.start * each..systems.end * each],
            &b[2 * systems.start * n..2 * systems.end * n],
        );
        let mut x = vec![0.0; b.len()];
        let batch = Batch::one_pattern(Host, systems.len(), offsets.clone(), columns.clone()).unwrap();
        let verdicts = batch.method(method).solve_into(values, b, &mut x).unwrap().clone();
        (x, verdicts)
    };
    let (x, verdicts) = solve(0..m);
    assert!(verdicts.apart <= 3, "{method:?} leaves {} to the solver", verdicts.apart);
    for s in 0..m {
        let a = Csr::from_parts(
            n,
            n,
            offsets.iter().map(|&offset| offset as usize).collect(),
            columns.clone(),
            values[s * each..(s + 1) * each].to_vec(),
        )
        .unwrap();
        let outcome = verdicts.outcomes[s];
        match s {
            3 => assert!(!outcome.is_converged(), "a row of zeros: {outcome}"),
            7 => assert_eq!(outcome, Outcome::NotFinite),
            9 => assert!(outcome.is_converged(), "1e200: {outcome}"),
            _ => {
                assert!(outcome.is_converged(), "system {s}: {outcome}");
                for c in 0..2 {
                    let column = |of: &[f64]| (0..n).map(|i| of[(s * n + i) * 2 + c]).collect::<Vec<_>>();
                    assert!(Measures::new(&a, &column(&b), &column(&x)).meets(1e-8), "system {s}");
                }
            }
        }
    }
    // Each system has the same bits in any batch.
    for part in [0..1, 2..13, 10..m] {
        let (own, told) = solve(part.clone());
        let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&own), bits(&x[2 * part.start * n..2 * part.end * n]), "{part:?}");
        assert_eq!(told.outcomes, verdicts.outcomes[part]);
    }
}
