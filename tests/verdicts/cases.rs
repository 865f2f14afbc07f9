//! Small systems of the kinds that users have reported problems with, and the right result for each. Each kind has
//! several variations in size and numbers.

use crate::random::Random;
use num_complex::Complex;
use residua::{Csr, Scalar};
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// A condition on x in addition to the verdict.
#[derive(Clone)]
pub enum Want<T> {
    /// Nothing: only the verdict is checked.
    Truth,
    /// The mean of x, with weights of size one, equals this up to a relative error.
    Mean(Vec<T>, f64, f64),
    /// Every entry is within this of x.
    Within(Vec<T>, f64),
    /// Every entry is within this of x, relative to its own size.
    Digits(Vec<T>, f64),
    /// The residual of each row is at most this relative to its terms.
    Componentwise(f64),
    /// The normwise backward error is at most this, and no further method is tried after a factorisation.
    AtOnce(f64),
}

/// A system and its right result.
pub struct System<T: Scalar> {
    pub name: String,
    pub a: Csr<T>,
    pub b: Vec<T>,
    pub want: Want<T>,
    /// The outcomes that are allowed; all if empty.
    pub allowed: &'static [&'static str],
}

/// Regular systems are solved, as far as double precision allows.
const SOLVED: &[&str] = &["converged", "precision_limit"];

/// For least-squares problems, and matrices whose singularity can be shown.
const LEAST: &[&str] = &["least_squares", "singular", UNSHOWN];

/// If pivots were replaced in the factors, perhaps no vector that shows singularity is found, and then nothing is
/// claimed.
const UNSHOWN: &str = "precision_limit";

/// A matrix that is within rounding of a singular one may be called singular, too.
const NEARLY_SINGULAR: &[&str] = &["converged", "precision_limit", "singular", "least_squares"];

type Triplet = (usize, usize, f64);

/// Duplicates are added in their order.
fn csr(rows: usize, columns: usize, triplets: impl IntoIterator<Item = Triplet>) -> Csr<f64> {
    let mut entries = BTreeMap::new();
    triplets.into_iter().for_each(|(i, j, value)| *entries.entry((i, j)).or_insert(0.0) += value);
    of_entries(rows, columns, entries)
}

fn of_entries<T: Scalar>(rows: usize, columns: usize, entries: BTreeMap<(usize, usize), T>) -> Csr<T> {
    let mut offsets = vec![0; rows + 1];
    entries.keys().for_each(|(i, _)| offsets[i + 1] += 1);
    (0..rows).for_each(|i| offsets[i + 1] += offsets[i]);
    let indices = entries.keys().map(|&(_, j)| j as u32).collect();
    Csr::from_parts(rows, columns, offsets, indices, entries.into_values().collect()).unwrap()
}

/// The Laplacian of a path; with ends of 1 nothing is fixed, with ends of 2 both are fixed at zero.
fn path(n: usize, ends: f64) -> Vec<Triplet> {
    let diagonal = |i: usize| if i == 0 || i + 1 == n { ends } else { 2.0 };
    let pairs = (1..n).flat_map(|i| [(i, i - 1, -1.0), (i - 1, i, -1.0)]);
    (0..n).map(|i| (i, i, diagonal(i))).chain(pairs).collect()
}

/// The Laplacian of a grid of n by n points.
fn grid(n: usize, ends: f64) -> Vec<Triplet> {
    let line = path(n, ends);
    let along = (0..n).flat_map(|k| line.iter().map(move |&(i, j, v)| (k * n + i, k * n + j, v)));
    let across = (0..n).flat_map(|k| line.iter().map(move |&(i, j, v)| (i * n + k, j * n + k, v)));
    along.chain(across).collect()
}

fn diagonal(n: usize, value: impl Fn(usize) -> f64) -> impl Iterator<Item = Triplet> {
    (0..n).map(move |i| (i, i, value(i)))
}

fn system(
    name: String,
    a: Csr<f64>,
    b: Vec<f64>,
    want: Want<f64>,
    allowed: &'static [&'static str],
) -> System<f64> {
    System { name, a, b, want, allowed }
}

fn unit(n: usize) -> Vec<f64> {
    (0..n).map(|i| f64::from(u8::from(i == 0))).collect()
}

/// [[-g, l], [g (1 - d), -l]], b = 1: g, l and d.
fn pair_numbers(variation: usize) -> Vec<(f64, f64, f64)> {
    if variation == 0 {
        return vec![(0.97, 0.28, 1.5e-15), (0.12, 0.17, 1e-14), (0.52, 0.57, 4.6e-15), (0.3, 0.7, 1e-12)];
    }
    let mut random = Random(variation as u64);
    let between = |random: &mut Random| 0.55 + 0.45 * random.signed();
    random.vec(20, |random| (between(random), between(random), 10_f64.powf(-11.5 + 3.5 * random.signed())))
}

/// Pairs that are within 200 times rounding of a singular one may be called singular.
fn of_pair(d: f64) -> &'static [&'static str] {
    if d < 2e-13 { NEARLY_SINGULAR } else { SOLVED }
}

/// A certificate must notice if the terms of a row cancel.
pub fn pairs(variation: usize) -> Vec<System<f64>> {
    let pair = |(g, l, d): (f64, f64, f64)| {
        let a = csr(2, 2, [(0, 0, -g), (0, 1, l), (1, 0, g * (1.0 - d)), (1, 1, -l)]);
        system(format!("pair {g:.3} {l:.3} {d:.1e}"), a, vec![1.0; 2], Want::Truth, of_pair(d))
    };
    pair_numbers(variation).into_iter().map(pair).collect()
}

/// Such pairs inside of a network, for which iterations are needed.
pub fn pairs_in_a_network(variation: usize) -> Vec<System<f64>> {
    let n = [30, 23][variation % 2];
    let mut random = Random(7 + variation as u64);
    let mut pair = |(g, l, d): (f64, f64, f64)| {
        let m = n * n;
        let upper = (1..m).map(|i| (i - 1, i, 0.1));
        let block = [(m, m, -g), (m, m + 1, l), (m + 1, m, g * (1.0 - d)), (m + 1, m + 1, -l)];
        let a = csr(m + 2, m + 2, grid(n, 2.0).into_iter().chain(upper).chain(block));
        let b = (0..m + 2).map(|i| if i < m { 0.005 + 0.005 * random.signed() } else { 1.0 }).collect();
        system(format!("pair in a network {g:.3} {l:.3} {d:.1e}"), a, b, Want::Truth, of_pair(d))
    };
    pair_numbers(variation).into_iter().take(4).map(&mut pair).collect()
}

/// A row whose entries are far larger than their sum.
pub fn a_row_that_cancels(variation: usize) -> Vec<System<f64>> {
    let large = [1e17, 3e18][variation % 2];
    let row = [(0, 0, large), (0, 1, 1.0), (0, 2, -large)];
    let a = csr(4, 4, row.into_iter().chain((1..4).map(|i| (i, [1, 2, 3][i - 1], 1.0))));
    vec![system("cancelling row".into(), a, vec![0.0, 1.0, 1.0, 1e5], Want::Truth, SOLVED)]
}

/// Regular, though every row almost adds up to zero: conductances to ground.
pub fn leaks(variation: usize) -> Vec<System<f64>> {
    let n = [40, 27][variation % 2];
    let leak = |g: f64| {
        let a = csr(n * n, n * n, grid(n, 1.0).into_iter().chain(diagonal(n * n, |_| g)));
        // The error that the condition allows, and the effect of a residual within the tolerance on the mean.
        let within = (100.0 * f64::EPSILON / g).max(1e-6);
        let mean = 1.0 / ((n * n) as f64 * g);
        system(format!("leak {g:.0e}"), a, unit(n * n), Want::Mean(vec![1.0; n * n], mean, within), SOLVED)
    };
    [1e-8, 1e-10, 1e-11, 1e-12].map(leak).into()
}

/// Three points with a tiny leak: every entry of x is almost 1 / 3e-8.
pub fn a_leak_of_three(_: usize) -> Vec<System<f64>> {
    let g = 1e-8;
    let a = csr(3, 3, path(3, 1.0).into_iter().chain(diagonal(3, |_| g)));
    let x = [5.0, -1.0, -4.0].map(|ninths| 1.0 / (3.0 * g) + ninths / 9.0);
    vec![system("leak of three".into(), a, unit(3), Want::Digits(x.to_vec(), 1e-6), SOLVED)]
}

/// Unit lower bidiagonal and growing: the determinant is one, and substitution gives x to the last bits.
pub fn chains(variation: usize) -> Vec<System<f64>> {
    let chain = |(f, n): (f64, usize)| {
        let a = csr(n, n, diagonal(n, |_| 1.0).chain((1..n).map(|i| (i, i - 1, -f))));
        let x = (0..n).map(|i| f.powi(i as i32)).collect();
        system(format!("chain {f} {n}"), a, unit(n), Want::Digits(x, 1e-10), SOLVED)
    };
    let sizes = [[(1000.0, 9), (1.1, 320), (7.0, 25)], [(50.0, 14), (1.3, 200), (3.0, 60)]];
    sizes[variation % 2].map(chain).into()
}

/// Fixed values by identity rows, along with a small diffusion.
pub fn identity_rows(variation: usize) -> Vec<System<f64>> {
    let n = [100, 61][variation % 2];
    let column = |i: usize| i % n;
    let fixed = |i: usize| column(i) == 0 || column(i) == n - 1;
    let diffusion = |d: f64| {
        let free = grid(n, 1.0).into_iter().filter(|entry| !fixed(entry.0)).map(|(i, j, v)| (i, j, d * v));
        let a = csr(n * n, n * n, free.chain((0..n * n).filter(|&i| fixed(i)).map(|i| (i, i, 1.0))));
        let b = (0..n * n).map(|i| match column(i) {
            0 => 1000.0,
            last if last == n - 1 => 500.0,
            _ => 0.0,
        });
        let x = (0..n * n).map(|i| 1000.0 - 500.0 * column(i) as f64 / (n - 1) as f64).collect();
        system(format!("identity rows {d:.0e}"), a, b.collect(), Want::Within(x, 0.1), SOLVED)
    };
    [1e-3, 1e-6, 1e-9].map(diffusion).into()
}

/// Fixed values by penalties on the diagonal.
pub fn penalties(variation: usize) -> Vec<System<f64>> {
    let n = [100, 61][variation % 2];
    let rim = |i: usize| [i % n, i / n].iter().any(|&at| at == 0 || at == n - 1);
    let value = |i: usize| 1.0 + (i % n) as f64 / n as f64;
    let penalty = |p: f64| {
        let a = csr(
            n * n,
            n * n,
            grid(n, 2.0).into_iter().chain(diagonal(n * n, |i| if rim(i) { p } else { 0.0 })),
        );
        let b = (0..n * n).map(|i| if rim(i) { p * value(i) } else { 0.0 }).collect();
        system(format!("penalty {p:.0e}"), a, b, Want::Within((0..n * n).map(value).collect(), 1e-3), SOLVED)
    };
    [1e6, 1e12, 1e30].map(penalty).into()
}

/// Two fields in different units, one of which drives the other.
pub fn two_fields(variation: usize) -> Vec<System<f64>> {
    let n = [60, 45][variation % 2];
    let mut random = Random(31 + variation as u64);
    let mut fields = |s: f64| {
        let positive = |random: &mut Random| 0.5 + 0.5 * random.signed();
        let field: Vec<Triplet> = path(n, 2.0).into_iter().chain(diagonal(n, |_| 2.0)).collect();
        let coupling: Vec<Triplet> = (0..n).map(|i| (i, n + i, positive(&mut random))).collect();
        let scaled = csr(n, n, field.iter().copied());
        let second: Vec<Triplet> = scaled.iter().map(|(i, j, v)| (n + i, n + j, s * v)).collect();
        let a = csr(2 * n, 2 * n, field.into_iter().chain(coupling).chain(second));
        let b = (0..2 * n).map(|i| if i < n { 0.0 } else { s * positive(&mut random) }).collect();
        system(format!("two fields {s:.0e}"), a, b, Want::Componentwise(1e-13), SOLVED)
    };
    [1e-10, 1e-16, 1e-20].into_iter().map(&mut fields).collect()
}

/// Shifted by almost an eigenvalue: a factorisation achieves everything that double precision allows.
pub fn near_an_eigenvalue(variation: usize) -> Vec<System<f64>> {
    let n = [60, 41][variation % 2];
    let eigenvalue = 4.0 - 4.0 * (PI / (n + 1) as f64).cos();
    let b = Random(47 + variation as u64).vec(n * n, |random| 2.0 * random.signed());
    let shifted = |off: f64| {
        let a = csr(n * n, n * n, grid(n, 2.0).into_iter().chain(diagonal(n * n, |_| off - eigenvalue)));
        system(format!("{off:.0e} from an eigenvalue"), a, b.clone(), Want::AtOnce(1e-14), SOLVED)
    };
    [1e-8, 1e-10, 1e-12].map(shifted).into()
}

/// Plane stress on m by m bilinear squares, nothing fixed: three rigid motions are the null space. b is not in balance.
pub fn a_free_body(variation: usize) -> Vec<System<f64>> {
    let m = [24, 15][variation % 2];
    let n = m + 1;
    let element = plane_stress(0.3);
    let mut triplets = Vec::new();
    for corner in (0..m * m).map(|e| e / m * n + e % m) {
        let nodes = [corner, corner + 1, corner + n + 1, corner + n];
        let unknown = |k: usize| 2 * nodes[k / 2] + k % 2;
        triplets.extend((0..64).map(|at| (unknown(at / 8), unknown(at % 8), element[at / 8][at % 8])));
    }
    let b = Random(53 + variation as u64).vec(2 * n * n, Random::signed);
    vec![system("free body".into(), csr(2 * n * n, 2 * n * n, triplets), b, Want::Truth, LEAST)]
}

/// The stiffness of a bilinear square, by four points of Gauss.
fn plane_stress(ratio: f64) -> [[f64; 8]; 8] {
    let (g, factor) = (1.0 / 3_f64.sqrt(), 1.0 / (1.0 - ratio * ratio));
    let law = [
        [factor, ratio * factor, 0.0],
        [ratio * factor, factor, 0.0],
        [0.0, 0.0, 0.5 * (1.0 - ratio) * factor],
    ];
    let mut stiffness = [[0.0; 8]; 8];
    for (x, y) in [(-g, -g), (-g, g), (g, -g), (g, g)] {
        let along = [y - 1.0, 1.0 - y, 1.0 + y, -1.0 - y].map(|d| 0.5 * d);
        let across = [x - 1.0, -1.0 - x, 1.0 + x, 1.0 - x].map(|d| 0.5 * d);
        // Strains of each unit displacement.
        let strain: Vec<[f64; 3]> = (0..8)
            .map(|k| {
                if k % 2 == 0 {
                    [along[k / 2], 0.0, across[k / 2]]
                } else {
                    [0.0, across[k / 2], along[k / 2]]
                }
            })
            .collect();
        for (i, row) in stiffness.iter_mut().enumerate() {
            for (j, entry) in row.iter_mut().enumerate() {
                let stress = |p: usize| (0..3).map(|q| law[p][q] * strain[j][q]).sum::<f64>();
                *entry += 0.25 * (0..3).map(|p| strain[i][p] * stress(p)).sum::<f64>();
            }
        }
    }
    stiffness
}

/// Least squares with scaled rows.
pub fn tall_with_scaled_rows(variation: usize) -> Vec<System<f64>> {
    let (rows, columns) = [(400, 60), (210, 33)][variation % 2];
    let mut random = Random(61 + variation as u64);
    let units = random.vec(rows, |random| 10_f64.powf(-4.0 + 4.0 * random.signed()));
    let entries =
        (0..rows * columns).map(|at| (at / columns, at % columns, units[at / columns] * random.signed()));
    let a = csr(rows, columns, entries.collect::<Vec<_>>());
    vec![system("tall, rows scaled".into(), a, random.vec(rows, Random::signed), Want::Truth, &[])]
}

/// Least squares with singular values over eleven decades.
pub fn tall_and_ill_conditioned(variation: usize) -> Vec<System<f64>> {
    let (rows, columns) = [(400, 60), (210, 33)][variation % 2];
    let mut random = Random(67 + variation as u64);
    let mut a = vec![vec![0.0; columns]; rows];
    (0..columns).for_each(|k| a[k][k] = 10_f64.powf(-11.0 * k as f64 / (columns - 1) as f64));
    for _ in 0..3 {
        // Reflections from the left and from the right.
        let (u, v) = (direction(&mut random, rows), direction(&mut random, columns));
        let left: Vec<f64> = (0..columns).map(|j| (0..rows).map(|i| u[i] * a[i][j]).sum()).collect();
        a.iter_mut()
            .zip(&u)
            .for_each(|(row, u)| row.iter_mut().zip(&left).for_each(|(e, l)| *e -= 2.0 * u * l));
        for row in &mut a {
            let along: f64 = row.iter().zip(&v).map(|(e, v)| e * v).sum();
            row.iter_mut().zip(&v).for_each(|(e, v)| *e -= 2.0 * along * v);
        }
    }
    let entries =
        a.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(j, &v)| (i, j, v)));
    let a = csr(rows, columns, entries.collect::<Vec<_>>());
    vec![system("tall and ill-conditioned".into(), a, random.vec(rows, Random::signed), Want::Truth, &[])]
}

/// A vector of length one.
fn direction(random: &mut Random, n: usize) -> Vec<f64> {
    let vector = random.vec(n, Random::signed);
    let norm = vector.iter().map(|v| v * v).sum::<f64>().sqrt();
    vector.into_iter().map(|v| v / norm).collect()
}

/// One entry is below the normal numbers; once the matrix is symmetric, and once it is not.
pub fn denormal_diagonals(variation: usize) -> Vec<System<f64>> {
    let tiny = [4e-310, 1e-315][variation % 2];
    let entries = [(0, 0, tiny), (1, 1, 2.0), (1, 2, 1.0), (2, 1, 1.0), (2, 2, 3.0)];
    let twin = entries.map(|(i, j, v)| (i, j, if (i, j) == (2, 1) { 0.5 } else { v }));
    let x = |third: f64| vec![1.0, (1.0 - third) / 2.0, third];
    let make = |name: &str, entries: [Triplet; 5], third: f64| {
        let want = Want::Digits(x(third), 1e-7);
        system(format!("denormal diagonal, {name}"), csr(3, 3, entries), vec![tiny, 1.0, 1.0], want, SOLVED)
    };
    vec![make("symmetric", entries, 0.2), make("unsymmetric", twin, 0.75 / 2.75)]
}

/// Multiplies x, b and A by powers of i that differ from unknown to unknown: P A P^H (P x) = P b. Nothing is rounded.
pub fn turned(system: &System<f64>, seed: u64) -> System<Complex<f64>> {
    let (rows, columns) = (system.a.rows(), system.a.columns());
    let mut random = Random(seed);
    let turns: Vec<Complex<f64>> =
        random.vec(rows.max(columns), |random| Complex::i().powu(random.below(4) as u32));
    let vector = |v: &[f64]| v.iter().zip(&turns).map(|(&v, p)| p * v).collect::<Vec<_>>();
    let entries = system.a.iter().map(|(i, j, v)| ((i, j), turns[i] * v * turns[j].conj())).collect();
    System {
        name: format!("{}, complex", system.name),
        a: of_entries(rows, columns, entries),
        b: vector(&system.b),
        want: with_vectors(&system.want, |x| vector(x)),
        allowed: system.allowed,
    }
}

/// The same with rows and columns in random order: the same order for both if the matrix is square, unless `apart`.
pub fn permuted<T: Scalar>(system: &System<T>, seed: u64, apart: bool) -> System<T> {
    let (rows, columns) = (system.a.rows(), system.a.columns());
    let mut random = Random(seed);
    let mut order = |n: usize| {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| order.swap(i, random.below(i + 1)));
        order
    };
    let to_row = order(rows);
    let to_column = if rows == columns && !apart { to_row.clone() } else { order(columns) };
    let vector = |v: &[T], to: &[usize]| {
        let mut moved = v.to_vec();
        v.iter().zip(to).for_each(|(&v, &to)| moved[to] = v);
        moved
    };
    let entries = system.a.iter().map(|(i, j, v)| ((to_row[i], to_column[j]), v)).collect();
    System {
        name: format!(
            "{}, {}",
            system.name,
            if apart { "rows and columns permuted apart" } else { "permuted" }
        ),
        a: of_entries(rows, columns, entries),
        b: vector(&system.b, &to_row),
        want: with_vectors(&system.want, |x| vector(x, &to_column)),
        allowed: system.allowed,
    }
}

/// Applies a function to the vectors of an expected result.
fn with_vectors<T, U>(want: &Want<T>, vector: impl Fn(&[T]) -> Vec<U>) -> Want<U> {
    match want {
        Want::Truth => Want::Truth,
        Want::Mean(weights, mean, within) => Want::Mean(vector(weights), *mean, *within),
        Want::Within(x, error) => Want::Within(vector(x), *error),
        Want::Digits(x, error) => Want::Digits(vector(x), *error),
        Want::Componentwise(error) => Want::Componentwise(*error),
        Want::AtOnce(error) => Want::AtOnce(*error),
    }
}
