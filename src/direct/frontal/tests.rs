//! Tests of factors of matrices whose structures exercise all paths of the elimination of a front.

use super::super::steps::columns_of_transpose;
use super::symmetric::TWO;
use super::tree::NONE;
use super::{Frontal, InOrder, Tree};
use crate::direct::Factorable;
use crate::generate::{convection_diffusion, helmholtz_absorbing, poisson2d};
use crate::graph::{Adjacency, Permutation};
use crate::matrix::Csr;
use crate::random::Random;
use crate::scalar::Real;
use num_complex::Complex;
use std::sync::Arc;

/// A matrix from its entries.
fn matrix<T: Factorable>(n: usize, mut entries: Vec<(usize, usize, T)>) -> Csr<T> {
    entries.sort_unstable_by_key(|&(i, j, _)| (i, j));
    entries.dedup_by_key(|&mut (i, j, _)| (i, j));
    let mut offsets = vec![0; n + 1];
    entries.iter().for_each(|&(i, _, _)| offsets[i + 1] += 1);
    (0..n).for_each(|i| offsets[i + 1] += offsets[i]);
    let (indices, values) = entries.iter().map(|&(_, j, value)| (j as u32, value)).unzip();
    Csr::from_parts(n, n, offsets, indices, values).unwrap()
}

/// Pivots below this fraction of the largest entry are replaced.
const LEAST: f64 = 1.5e-8;

/// A random order of elimination.
fn shuffled(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut order: Vec<u32> = (0..n as u32).collect();
    (1..n).rev().for_each(|k| order.swap(k, random.below(k as u64 + 1) as usize));
    order
}

/// Factorises the matrix M whose columns are the rows of `a`.
fn factor<T: Factorable>(a: &Csr<T>, order: &[u32]) -> Frontal<T> {
    let tree = Arc::new(Tree::new(a, order).unwrap());
    checked(&tree, a.rows());
    Frontal::new(columns_of_transpose(a).unwrap(), a.parts().values, (&tree, LEAST), &mut || true).unwrap()
}

/// Factorises a symmetric matrix as L D L^T.
fn symmetric_factor<T: Factorable>(a: &Csr<T>, order: &[u32]) -> Frontal<T> {
    assert!(a.is_symmetric());
    let order = Permutation::from_new_to_old(order.to_vec()).unwrap();
    let tree = Arc::new(Tree::symmetric(&Adjacency::new(a).unwrap(), &order).unwrap());
    checked(&tree, a.rows());
    Frontal::new(columns_of_transpose(a).unwrap(), a.parts().values, (&tree, LEAST), &mut || true).unwrap()
}

/// Factorises a symmetric matrix whose pivots are the diagonal entries in order.
fn factor_in_order<T: Factorable>(a: &Csr<T>, order: &[u32], rule: InOrder) -> Frontal<T> {
    let order = Permutation::from_new_to_old(order.to_vec()).unwrap();
    let tree = Arc::new(Tree::symmetric(&Adjacency::new(a).unwrap(), &order).unwrap());
    Frontal::in_order((columns_of_transpose(a).unwrap(), a.parts().values), &tree, rule, &mut || true)
        .unwrap()
}

/// Replaces the entries above the diagonal by those below it.
fn mirrored<T: Factorable>(a: &Csr<T>) -> Csr<T> {
    let below = a.iter().filter(|&(i, j, _)| i >= j);
    let entries = below.flat_map(|(i, j, value)| [(i, j, value), (j, i, value)]).collect();
    matrix(a.rows(), entries)
}

/// Checks that each column belongs to one supernode, and that a supernode's rows ascend and are among the columns or
/// rows of its parent.
fn checked(tree: &Tree, n: usize) {
    let mut order = tree.order.clone();
    order.sort_unstable();
    assert!(order.into_iter().eq(0..n as u32));
    for s in 0..tree.len() {
        let (rows, parent) = (tree.rows(s), tree.parents[s]);
        assert!(tree.begin[s] < tree.begin[s + 1] && rows.windows(2).all(|w| w[0] < w[1]));
        assert_eq!(parent == NONE, rows.is_empty());
        if let Some(&first) = rows.first() {
            let p = parent as usize;
            assert!(p > s && (tree.begin[p]..tree.begin[p + 1]).contains(&first));
            let known = |&row: &u32| row < tree.begin[p + 1] || tree.rows(p).binary_search(&row).is_ok();
            assert!(rows.iter().all(known));
        }
    }
}

/// Solves with M = A^T and with A, and returns the larger residual relative to b.
fn residual<T: Factorable>(a: &Csr<T>, lu: &Frontal<T>) -> f64 {
    let n = a.rows();
    let mut random = Random::new(5);
    let b: Vec<T> = (0..n).map(|_| T::from_f64(random.below(2000) as f64 / 1000.0 - 1.0)).collect();
    let size = |x: &[T]| x.iter().map(|x| x.abs().to_f64()).fold(0.0, f64::max);
    let mut worst = 0.0_f64;
    for transposed in [false, true] {
        let mut x = b.clone();
        lu.solve(transposed, x.as_chunks_mut::<1>().0, &mut vec![[T::default()]; n]);
        // Solves with several vectors at once do not influence each other.
        let mut columns: Vec<[T; 3]> = b.iter().map(|&b| [b, T::default(), b]).collect();
        columns[n / 2][1] = T::from_f64(1.0);
        lu.solve(transposed, &mut columns, &mut vec![[T::default(); 3]; n]);
        assert!(columns.iter().zip(&x).all(|(of_row, &x)| of_row[0] == x && of_row[2] == x));
        let mut r = b.clone();
        for (i, j, value) in a.iter() {
            let (row, column) = if transposed { (i, j) } else { (j, i) };
            r[row] -= value * x[column];
        }
        worst = worst.max(size(&r) / size(&b));
    }
    worst
}

/// Checks that factors and solutions have the same bits on any number of threads.
fn same_bits<T: Factorable>(one: &Frontal<T>, other: impl Fn() -> Frontal<T> + Sync) {
    let n = one.tree.order.len();
    let solved = |factor: &Frontal<T>| {
        [false, true].map(|transposed| {
            let mut x: Vec<T> = (0..n).map(|k| T::from_f64((k % 17) as f64 - 8.0)).collect();
            factor.solve(transposed, x.as_chunks_mut::<1>().0, &mut vec![[T::default()]; n]);
            x
        })
    };
    let x = solved(one);
    for threads in [1, 2, 3, 8, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let other = other();
            assert!(one.values == other.values && one.swaps == other.swaps, "{threads} threads");
            assert!(solved(&other) == x, "{threads} threads");
        });
    }
}

/// A matrix with random entries and a diagonal; `dense` rows and columns couple all others.
fn ragged<T: Factorable>(n: usize, seed: u64, dense: usize, value: impl Fn(f64, f64) -> T) -> Csr<T> {
    let mut random = Random::new(seed);
    let mut number = || random.below(2000) as f64 / 1000.0 - 1.0;
    let mut entries: Vec<(usize, usize, T)> = (0..n).map(|i| (i, i, value(4.0, 1.0))).collect();
    let mut random = Random::new(seed + 100);
    for _ in 0..2 * n {
        let (i, j) = (random.below(n as u64) as usize, random.below(n as u64) as usize);
        entries.push((i, j, value(number(), number())));
    }
    for k in 0..dense.min(n) {
        for i in (0..n).filter(|&i| i != k) {
            entries.push((i, k, value(number() / 10.0, number())));
            entries.push((k, i, value(number() / 10.0, number())));
        }
    }
    matrix(n, entries)
}

#[test]
fn ragged_random_matrices_of_every_type_are_solved() {
    for (n, dense) in [(1, 0), (2, 1), (7, 0), (40, 2), (150, 0), (150, 3), (260, 1)] {
        for seed in 0..3 {
            let order = shuffled(n, seed);
            let a = ragged(n, seed, dense, |re, _| re);
            assert!(residual(&a, &factor(&a, &order)) < 1e-11, "{n} {dense} {seed}");
            let a = ragged(n, seed, dense, Complex::<f64>::new);
            assert!(residual(&a, &factor(&a, &order)) < 1e-11, "complex {n} {dense} {seed}");
        }
    }
}

#[test]
fn a_dense_matrix_is_one_front_with_pivots_of_any_row() {
    let mut random = Random::new(3);
    let n = 147;
    let mut entries = Vec::new();
    for i in 0..n {
        for j in 0..n {
            entries.push((i, j, random.below(2000) as f64 / 1000.0 - 1.0));
        }
    }
    let a = matrix(n, entries);
    let lu = factor(&a, &shuffled(n, 1));
    assert!(lu.tree.len() == 1 && lu.made_up == 0 && residual(&a, &lu) < 1e-10);
    assert!(lu.swaps.iter().enumerate().any(|(k, &with)| with as usize != k));
}

#[test]
fn grids_are_solved_and_threads_change_no_bit() {
    let a = convection_diffusion([13, 12, 14], 0.05).unwrap();
    let order = crate::prepare::nested_dissection(&a).unwrap();
    let lu = factor(&a, order.new_to_old());
    assert!(lu.made_up == 0 && residual(&a, &lu) < 1e-11);
    same_bits(&lu, || factor(&a, order.new_to_old()));
    // Blocks are stored with few zeros.
    let size = crate::prepare::order_size(&a, &order).unwrap();
    assert!(
        (lu.tree.all_entries() as f64) < 1.5 * (2.0 * size.entries),
        "{} {size:?}",
        lu.tree.all_entries()
    );
}

#[test]
fn what_is_singular_has_pivots_made_up_and_observers_are_heard() {
    let a = poisson2d(20, 20).unwrap();
    let order = shuffled(400, 2);
    // Row and column 7 become zero.
    let kept = a.iter().map(|(i, j, value)| (i, j, if i == 7 || j == 7 { 0.0 } else { value }));
    let lu = factor(&matrix(400, kept.collect()), &order);
    assert!(lu.made_up == 1 && lu.is_finite());
    let tree = Arc::new(Tree::new(&a, &order).unwrap());
    let columns = columns_of_transpose(&a).unwrap();
    assert!(Frontal::new(columns, a.parts().values, (&tree, LEAST), &mut || false).is_err());
}

#[test]
fn ragged_random_symmetric_matrices_are_solved_real_and_complex() {
    for (n, dense) in [(1, 0), (2, 1), (7, 0), (40, 2), (150, 0), (150, 3), (260, 1)] {
        for seed in 0..3 {
            let order = shuffled(n, seed);
            let a = mirrored(&ragged(n, seed, dense, |re, _| re));
            assert!(residual(&a, &symmetric_factor(&a, &order)) < 1e-11, "{n} {dense} {seed}");
            let a = mirrored(&ragged(n, seed, dense, Complex::<f64>::new));
            assert!(residual(&a, &symmetric_factor(&a, &order)) < 1e-11, "complex {n} {dense} {seed}");
        }
    }
}

/// A dense symmetric matrix with random entries; `zeros` of every seven diagonal entries are zero.
fn dense_symmetric<T: Factorable>(n: usize, zeros: usize, value: impl Fn(f64, f64) -> T) -> Csr<T> {
    let mut random = Random::new(3);
    let mut entries = Vec::new();
    for i in 0..n {
        for j in 0..i + 1 {
            let mut number = || random.below(2000) as f64 / 1000.0 - 1.0;
            let entry = value(number(), number());
            let entry = if i == j && i % 7 < zeros { T::from_f64(0.0) } else { entry };
            entries.extend([(i, j, entry), (j, i, entry)]);
        }
    }
    matrix(n, entries)
}

#[test]
fn pivots_of_two_rows_are_taken_where_the_diagonal_is_small() {
    // The sizes need several blocks of pivots and several groups of blocks; in some the last block has one pivot.
    for n in [2, 3, 5, 31, 32, 33, 65, 147, 290] {
        for zeros in [0, 3, 7] {
            let a = dense_symmetric(n, zeros, |re, _| re);
            let ldl = symmetric_factor(&a, &shuffled(n, 1));
            assert!(ldl.tree.len() == 1 && ldl.made_up == 0, "{n} {zeros}");
            assert!(residual(&a, &ldl) < 1e-9, "{n} {zeros}");
            let twos = ldl.swaps.iter().filter(|&swap| swap & TWO != 0).count();
            assert!(twos >= zeros / 7 && 2 * twos <= n, "{n} {zeros} {twos}");
            let a = dense_symmetric(n, zeros, Complex::<f64>::new);
            let ldl = symmetric_factor(&a, &shuffled(n, 1));
            assert!(ldl.made_up == 0 && residual(&a, &ldl) < 1e-9, "complex {n} {zeros}");
        }
    }
}

/// A dense symmetric matrix whose first rows are coupled with each other by entries of this size.
fn weak_at_first<T: Factorable>(n: usize, weak: usize, size: f64, value: impl Fn(f64, f64) -> T) -> Csr<T> {
    let entries = dense_symmetric(n, 0, value);
    let scaled =
        |i: usize, j: usize, value: T| if i.max(j) < weak { value * T::from_f64(size) } else { value };
    matrix(n, entries.iter().map(|(i, j, value)| (i, j, scaled(i, j, value))).collect())
}

#[test]
fn wide_fronts_search_all_rows_if_the_block_on_the_diagonal_is_weak() {
    let natural: Vec<u32> = (0..400).collect();
    for (weak, size) in [(0, 1.0), (128, 0.0), (150, 0.0), (40, 1e-5), (300, 1e-5), (128, 1e-6)] {
        // The condition number is 10^7 if most rows are weak.
        let most = if weak == 300 { 1e-6 } else { 1e-9 };
        let a = weak_at_first(400, weak, size, |re, _| re);
        let ldl = symmetric_factor(&a, &natural);
        assert!(ldl.tree.len() == 1 && ldl.made_up == 0 && residual(&a, &ldl) < most, "{weak} {size}");
        same_bits(&ldl, || symmetric_factor(&a, &natural));
        // The pivots of the first group come from the rows after it.
        let from_behind = ldl.swaps[..128].iter().any(|&swap| (swap & !TWO) >= 128);
        assert_eq!(from_behind, weak >= 128, "{weak} {size}");
        let a = weak_at_first(400, weak, size, Complex::<f64>::new);
        let ldl = symmetric_factor(&a, &natural);
        assert!(ldl.made_up == 0 && residual(&a, &ldl) < most, "complex {weak} {size}");
    }
}

const IN_ORDER: InOrder = InOrder { epsilon: 1e-11, delta: 1e-8 };

#[test]
fn diagonal_entries_of_both_signs_are_pivots_in_their_order() {
    // Several blocks and groups of pivots, and wide fronts. The diagonal is larger than the rest of its row.
    for n in [1, 2, 31, 33, 129, 159, 160, 290, 400] {
        let signed = |i: usize, value: f64| {
            if i.is_multiple_of(3) { value - 3.0 * n as f64 } else { value + n as f64 }
        };
        let entries = dense_symmetric(n, 0, |re, _| re);
        let entries =
            entries.iter().map(|(i, j, value)| (i, j, if i == j { signed(i, value) } else { value }));
        let a = matrix(n, entries.collect());
        let order = shuffled(n, 1);
        let ldl = factor_in_order(&a, &order, IN_ORDER);
        assert!(ldl.tree.len() == 1 && residual(&a, &ldl) < 1e-12, "{n}");
        assert!(ldl.swaps.iter().zip(0..).all(|(&swap, k)| swap == k));
        same_bits(&ldl, || factor_in_order(&a, &order, IN_ORDER));
    }
    for (n, dense) in [(7, 0), (150, 3), (260, 1), (2000, 0)] {
        let a = mirrored(&ragged(n, 1, dense, |re, _| re));
        let diagonal = |i: usize, value: f64| if i.is_multiple_of(5) { -40.0 } else { value + 40.0 };
        let entries = a.iter().map(|(i, j, value)| (i, j, if i == j { diagonal(i, value) } else { value }));
        let a = matrix(n, entries.collect());
        let order = crate::prepare::nested_dissection(&a).unwrap();
        let ldl = factor_in_order(&a, order.new_to_old(), IN_ORDER);
        assert!(residual(&a, &ldl) < 1e-11, "{n} {dense}");
        same_bits(&ldl, || factor_in_order(&a, order.new_to_old(), IN_ORDER));
    }
}

#[test]
fn pivots_in_order_that_are_too_small_are_replaced_with_their_sign() {
    let order = [0, 1, 2, 3];
    let pivots = |diagonal: [f64; 4]| {
        let ldl =
            factor_in_order(&matrix(4, (0..4).map(|i| (i, i, diagonal[i])).collect()), &order, IN_ORDER);
        (0..4).map(|s| ldl.values[ldl.at[s].0 as usize][ldl.at[s].1]).collect::<Vec<f64>>()
    };
    assert_eq!(pivots([1e-12, -1e-12, 0.0, -2e-11]), [1e-8, -1e-8, 1e-8, -2e-11]);
    let ldl = factor_in_order(&matrix(2, vec![(0, 0, f64::NAN), (1, 1, 1.0)]), &[0, 1], IN_ORDER);
    assert!(!ldl.is_finite());
}

#[test]
fn replaced_pivots_are_counted_in_fronts_of_any_width() {
    for n in [1, 2, 33, 129, 160, 400] {
        let ones = matrix(n, (0..n).flat_map(|i| (0..n).map(move |j| (i, j, 1.0))).collect());
        assert_eq!(factor_in_order(&ones, &shuffled(n, 1), IN_ORDER).made_up, n - 1, "{n}");
    }
}

#[test]
fn waves_are_solved_with_half_of_the_entries_and_threads_change_no_bit() {
    let a = helmholtz_absorbing([13, 12, 14], 9.0).unwrap();
    let order = crate::prepare::nested_dissection(&a).unwrap();
    let ldl = symmetric_factor(&a, order.new_to_old());
    assert!(ldl.made_up == 0 && residual(&a, &ldl) < 1e-11);
    same_bits(&ldl, || symmetric_factor(&a, order.new_to_old()));
    let entries = |factor: &Frontal<Complex<f64>>| factor.tree.all_entries() as f64;
    let (lu, half) = (entries(&factor(&a, order.new_to_old())), entries(&ldl));
    assert!(half < 0.65 * lu, "{half} {lu}");
}

#[test]
fn symmetric_matrices_that_are_singular_have_pivots_made_up_and_tiny_ones_replaced() {
    let a = poisson2d(20, 20).unwrap();
    let order = shuffled(400, 2);
    let without = a.iter().map(|(i, j, value)| (i, j, if i == 7 || j == 7 { 0.0 } else { value }));
    let ldl = symmetric_factor(&matrix(400, without.collect()), &order);
    assert!(ldl.made_up == 1 && ldl.is_finite());
    let tiny = a.iter().map(|(i, j, value)| (i, j, if i == 7 || j == 7 { value * 1e-30 } else { value }));
    let ldl = symmetric_factor(&matrix(400, tiny.collect()), &order);
    assert!(ldl.made_up == 1 && ldl.is_finite());
    let a = matrix(2, vec![(0, 0, f64::NAN), (0, 1, 1.0), (1, 0, 1.0), (1, 1, f64::NAN)]);
    let order = Permutation::identity(2).unwrap();
    let tree = Arc::new(Tree::symmetric(&Adjacency::new(&a).unwrap(), &order).unwrap());
    let columns = columns_of_transpose(&a).unwrap();
    assert!(!Frontal::new(columns, a.parts().values, (&tree, LEAST), &mut || true).unwrap().is_finite());
}
