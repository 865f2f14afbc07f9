//! Block triangular forms: random blocks that are strongly connected, entries below them, and all of it permuted.

use super::random::Random;
use super::{product, relative, solved};
use num_complex::Complex;
use residua::direct::{Direct, DirectOptions, Factorable, Kind, Reason};
use residua::{Csr, Scalar};

/// A matrix with diagonal blocks of these sizes, each a cycle with further entries, and two entries per row left of
/// them.
fn reducible<T: Scalar>(random: &mut Random, sizes: &[usize]) -> Csr<T> {
    let n: usize = sizes.iter().sum();
    let mut entries = Vec::new();
    let mut first = 0;
    for &size in sizes {
        for i in 0..size {
            entries.push((first + i, first + i, T::from_f64(2.0) + random.scalar::<T>()));
            entries.push((first + i, first + (i + 1) % size, random.scalar()));
            (0..3).for_each(|_| entries.push((first + i, first + random.below(size), random.scalar())));
            (0..2.min(first)).for_each(|_| entries.push((first + i, random.below(first), random.scalar())));
        }
        first += size;
    }
    let mut shuffled = || {
        let mut order: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| order.swap(i, random.below(i + 1)));
        order
    };
    let (rows, columns) = (shuffled(), shuffled());
    let mut all = vec![std::collections::BTreeMap::new(); n];
    for (i, j, value) in entries {
        *all[rows[i]].entry(columns[j] as u32).or_insert(T::zero()) += value;
    }
    let mut offsets = vec![0];
    offsets.extend(all.iter().scan(0, |sum, row| {
        *sum += row.len();
        Some(*sum)
    }));
    let (indices, values) = all.into_iter().flatten().unzip();
    Csr::from_parts(n, n, offsets, indices, values).unwrap()
}

fn blocks_of_all_sizes<T: Factorable>() {
    let mut random = Random(11);
    // Triangular; small and larger blocks; one that is factorised in fronts.
    for sizes in [vec![1; 60], vec![1, 2, 1, 17, 5, 40, 1, 3, 16, 60], [&[700_usize][..], &[1; 120]].concat()]
    {
        let a = reducible::<T>(&mut random, &sizes);
        let (report, residual) = solved(&a, DirectOptions::default(), 1e-12, 3);
        assert!(report.solved && residual <= 1e-12, "{} {sizes:?}: {report:?}", T::NAME);
        let is_triangular = sizes.iter().all(|&size| size == 1);
        let kind = if is_triangular { Kind::Triangular } else { Kind::BlockLu };
        assert_eq!(report.kind, kind, "{report:?}");
        // The condition estimate needs solves with the transposed factor.
        let (other, _) = solved(&a, DirectOptions::default().kind(Kind::Lu), 1e-12, 3);
        let (one, two) = (report.condition.unwrap(), other.condition.unwrap());
        assert!((one / two - 1.0).abs() < 1e-6, "{} {sizes:?}: {one} and {two}", T::NAME);
    }
}

#[test]
fn blocks_are_factorised_alone() {
    blocks_of_all_sizes::<f64>();
    blocks_of_all_sizes::<Complex<f64>>();
}

/// Substitution needs no factor in addition to the entries of A; LU of the whole matrix, whose order is that of A +
/// A^T, fills in.
#[test]
fn what_is_triangular_in_some_order_is_solved_by_substitution() {
    let a = reducible::<f64>(&mut Random(16), &[1; 1000]);
    let (report, _) = solved(&a, DirectOptions::default(), 1e-12, 3);
    let (other, _) = solved(&a, DirectOptions::default().kind(Kind::Lu), 1e-12, 3);
    assert_eq!(report.kind, Kind::Triangular, "{report:?}");
    assert!(report.factor_bytes < other.factor_bytes, "{report:?} {other:?}");
}

#[test]
fn new_values_keep_the_blocks() {
    let mut a = reducible::<f64>(&mut Random(12), &[1, 30, 4, 1, 30, 2]);
    let mut direct = Direct::new(&a, DirectOptions::default()).unwrap();
    a.values_mut().iter_mut().enumerate().for_each(|(k, value)| *value *= 1.0 + (k % 3) as f64 / 4.0);
    direct.update(&a).unwrap();
    let b = product(&a, &Random(13).vector(a.columns()));
    let mut x = vec![0.0; a.columns()];
    let report = direct.solve(&b, &mut x, 1e-12).unwrap();
    assert!(report.solved && report.kind == Kind::BlockLu, "{report:?}");
    assert!(relative(&a, &b, &x) <= 1e-12);
}

/// A matrix of one block has no such form; if this kind was named, the report says so.
#[test]
fn one_block_is_left_to_other_kinds() {
    let a = reducible::<f64>(&mut Random(14), &[50]);
    assert_ne!(solved(&a, DirectOptions::default(), 1e-12, 1).0.kind, Kind::BlockLu);
    let (report, _) = solved(&a, DirectOptions::default().kind(Kind::BlockLu), 1e-12, 1);
    assert!(!report.solved && matches!(report.reasons[0].1, Reason::Refused(_)), "{report:?}");
}

/// A row of stored zeros: its block has no usable factor, but consistent systems are solved by another kind.
#[test]
fn a_singular_block_is_met_by_the_kinds_behind() {
    let a = reducible::<f64>(&mut Random(15), &[3, 1, 20, 1, 1, 20]);
    let (mut indices, mut values, mut offsets) = (Vec::new(), Vec::new(), vec![0]);
    for row in 0..a.rows() {
        let (i, v) = a.row(row);
        indices.extend_from_slice(i);
        values.extend(if row == 5 { vec![0.0; v.len()] } else { v.to_vec() });
        offsets.push(indices.len());
    }
    let a = Csr::from_parts(a.rows(), a.columns(), offsets, indices, values).unwrap();
    let (report, residual) = solved(&a, DirectOptions::default(), 1e-8, 2);
    assert!(report.solved && residual <= 1e-8, "{report:?}");
}
