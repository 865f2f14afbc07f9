use super::*;
use crate::generate::{self, Random, RowLengths};
use crate::graph::Permutation;
use crate::matrix::Csr;
use crate::scalar::{Real, Scalar};
use num_complex::Complex;

/// Column and magnitude of the entries of each row.
fn rows<T: Scalar>(a: &Csr<T>) -> Vec<Vec<(usize, f64)>> {
    let pattern = Pattern::stored(a).unwrap();
    let values = a.parts().values;
    (0..a.rows())
        .map(|i| {
            let start = pattern.starts()[i];
            let magnitudes = values[start..].iter().map(|value| value.abs().to_f64());
            pattern.row(i).iter().map(|&j| j as usize).zip(magnitudes).collect()
        })
        .collect()
}

/// A matrix with about `density` of its places filled, magnitudes over twelve decades, some of them equal or zero.
fn ragged(rows: usize, columns: usize, density: f64, random: &mut Random) -> Csr<f64> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..rows {
        for j in 0..columns as u32 {
            if random.unit() < density {
                indices.push(j);
                let value = 10f64.powf(12.0 * random.unit() - 6.0);
                values.push([value, -value, 1.0, 2.0, 0.0][random.below(5) as usize]);
            }
        }
        offsets.push(indices.len());
    }
    Csr::from_parts(rows, columns, offsets, indices, values).unwrap()
}

/// The largest number of pairs, and with that number the largest sum of logarithms, found by trying all matchings.
fn brute_force(rows: &[Vec<(usize, f64)>], row: usize, taken: u32) -> (usize, f64) {
    let Some(line) = rows.get(row) else { return (0, 0.0) };
    let mut best = brute_force(rows, row + 1, taken);
    for &(column, size) in line.iter().filter(|(column, size)| *size > 0.0 && taken >> column & 1 == 0) {
        let (pairs, sum) = brute_force(rows, row + 1, taken | 1 << column);
        if (pairs + 1, sum + size.log2()) > best {
            best = (pairs + 1, sum + size.log2());
        }
    }
    best
}

fn product<T: Scalar>(a: &Csr<T>, matching: &Matching) -> (usize, f64) {
    let pairs = rows(a).into_iter().zip(matching.column_of()).filter(|(_, column)| **column != UNMATCHED);
    let sizes = pairs.map(|(line, &j)| line.iter().find(|entry| entry.0 == j as usize).unwrap().1);
    sizes.fold((0, 0.0), |(pairs, sum), size| (pairs + 1, sum + size.log2()))
}

/// Checks that partners agree, and that the scaling has the documented properties.
fn check_scaled<T: Scalar>(a: &Csr<T>, best: &ProductMatching) {
    let matching = best.matching();
    for (row, &column) in matching.column_of().iter().enumerate() {
        assert!(column == UNMATCHED || matching.row_of()[column as usize] as usize == row);
    }
    let scaled = rows(&best.scaling().apply(a).unwrap());
    let mut largest = vec![0.0_f64; a.columns()];
    for (row, line) in scaled.iter().enumerate() {
        let most = line.iter().map(|entry| entry.1).fold(0.0, f64::max);
        assert!(most == 0.0 || (most - 1.0).abs() < 1e-8, "row {row}: {most}");
        for &(column, size) in line {
            largest[column] = largest[column].max(size);
            if matching.column_of()[row] as usize == column {
                assert!((size - 1.0).abs() < 1e-12, "{row} {column}: {size}");
            }
        }
    }
    for (column, most) in largest.into_iter().enumerate() {
        assert!(most == 0.0 || (most - 1.0).abs() < 1e-8, "column {column}: {most}");
    }
}

#[test]
fn products_are_the_largest_of_all() {
    let mut random = Random::new(5);
    for trial in 0..600 {
        let (n, m) = (1 + random.below(6) as usize, 1 + random.below(6) as usize);
        let a = ragged(n, if trial % 3 == 0 { m } else { n }, 0.2 + 0.6 * random.unit(), &mut random);
        let best = maximum_product_matching(&a).unwrap();
        let (pairs, sum) = brute_force(&rows(&a), 0, 0);
        let found = product(&a, best.matching());
        assert_eq!(found.0, pairs, "trial {trial}");
        let most = maximum_matching(&Pattern::nonzero(&a).unwrap()).unwrap();
        assert_eq!(most.pairs(), pairs, "trial {trial}");
        if pairs == n && n == a.columns() {
            assert!((found.1 - sum).abs() < 1e-7, "trial {trial}: {} of {sum}", found.1);
        }
        check_scaled(&a, &best);
    }
}

#[test]
fn larger_matrices_are_scaled_as_promised() {
    let mut random = Random::new(7);
    for density in [0.01, 0.03, 0.1] {
        for (n, m) in [(150, 150), (120, 180), (200, 140)] {
            let a = ragged(n, m, density, &mut random);
            let best = maximum_product_matching(&a).unwrap();
            check_scaled(&a, &best);
            let most = maximum_matching(&Pattern::nonzero(&a).unwrap()).unwrap();
            assert_eq!(most.pairs(), best.matching().pairs());
        }
    }
}

/// The permutations that hide large entries in P A Q are found again, for each scalar type.
#[test]
fn hidden_diagonals_are_found() {
    let n = 500;
    let a = generate::random(n, n, RowLengths::Constant(9), 3).unwrap();
    let rows = Permutation::random(n, 4).unwrap();
    let mut triplets = crate::Triplets::<Complex<f32>>::new(n, n).unwrap();
    for (i, line) in self::rows(&a).into_iter().enumerate() {
        for (j, size) in line {
            triplets.push(i, j, Complex::new(0.0, (size / 10.0) as f32)).unwrap();
        }
        let j = rows.new_to_old()[i] as usize;
        triplets.push(i, j, Complex::new(0.0, 1e6)).unwrap();
    }
    let a = crate::assemble::to_csr(&crate::Host, triplets).unwrap();
    let best = maximum_product_matching(&a).unwrap();
    assert_eq!(best.matching().column_of(), rows.new_to_old());
    let p = best.matching().row_permutation().unwrap();
    assert_eq!(p.new_to_old(), rows.old_to_new());
    let permuted = permute(&a, &p, &Permutation::identity(n).unwrap()).unwrap();
    assert!(
        self::rows(&permuted)
            .iter()
            .enumerate()
            .all(|(i, line)| { line.iter().find(|entry| entry.0 == i).is_some_and(|entry| entry.1 > 1e5) })
    );
}

#[test]
fn nothing_and_what_is_no_number() {
    let nothing = Csr::<f64>::from_parts(0, 0, vec![0], vec![], vec![]).unwrap();
    assert!(maximum_product_matching(&nothing).unwrap().matching().is_perfect());
    assert!(symmetric_matching(&nothing).unwrap().partner().is_empty());
    let empty = Csr::<f64>::from_parts(2, 3, vec![0, 0, 0], vec![], vec![]).unwrap();
    let best = maximum_product_matching(&empty).unwrap();
    assert_eq!(best.matching().unmatched_columns(), [0, 1, 2]);
    assert_eq!((best.scaling().rows(), best.scaling().columns()), (&[1.0; 2][..], &[1.0; 3][..]));
    let infinite = Csr::from_parts(1, 2, vec![0, 2], vec![0, 1], vec![1.0, f64::INFINITY]).unwrap();
    for error in [maximum_product_matching(&infinite).unwrap_err(), equilibrate(&infinite).unwrap_err()] {
        assert!(error.to_string().contains("row 0, column 1"), "{error}");
    }
}

#[test]
fn extreme_sizes_stay_numbers() {
    let values = vec![f64::MAX, 5e-324, 5e-324, f64::MAX, 1e-300, f64::MIN_POSITIVE];
    let a = Csr::from_parts(3, 3, vec![0, 2, 4, 6], vec![0, 1, 1, 2, 0, 2], values).unwrap();
    for scaling in [
        maximum_product_matching(&a).unwrap().scaling().clone(),
        equilibrate(&a).unwrap(),
        equilibrate_symmetric(&a).unwrap(),
    ] {
        let scaled = scaling.apply(&a).unwrap();
        assert!(scaled.parts().values.iter().all(|value| value.is_finite() && *value <= 3.0), "{scaling:?}");
    }
}

#[test]
fn rows_alone_equilibrate_a_symmetric_matrix_with_any_number_of_threads() {
    let mut a = crate::generate::poisson2d(150, 140).unwrap();
    // D A D, whose entries are over ten decades.
    let size = |k: usize| 10_f64.powi((k * 7 % 11) as i32 - 5);
    let entries: Vec<f64> = a.iter().map(|(i, j, value)| value * size(i) * size(j)).collect();
    a.values_mut().copy_from_slice(&entries);
    let expected = equilibrate_symmetric(&a).unwrap();
    for threads in [1, 2, 3, 8, 16] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| equilibrate_hermitian(&a)).unwrap(), expected, "{threads} threads");
    }
}

#[test]
fn equilibrated_rows_and_columns_are_near_one_and_unrounded() {
    let mut random = Random::new(11);
    for n in [1, 7, 60] {
        let a = ragged(n, n + n / 3, 0.3, &mut random);
        let scaling = equilibrate(&a).unwrap();
        assert_eq!(scaling, scaling.to_powers_of_two());
        let scaled = scaling.apply(&a).unwrap();
        let mut largest = vec![0.0_f64; a.columns()];
        for line in rows(&scaled) {
            let most = line.iter().map(|entry| entry.1).fold(0.0, f64::max);
            assert!(most == 0.0 || (0.3..3.0).contains(&most), "{most}");
            line.iter().for_each(|&(j, size)| largest[j] = largest[j].max(size));
        }
        assert!(largest.iter().all(|&most| most == 0.0 || (0.3..3.0).contains(&most)), "{largest:?}");
        let back: Vec<f64> = [scaling.rows(), scaling.columns()].concat();
        let inverse: Vec<f64> = back.iter().map(|factor| 1.0 / factor).collect();
        let (r, c) = inverse.split_at(n);
        let back = Scaling::from_parts(r.to_vec(), c.to_vec()).unwrap().apply(&scaled).unwrap();
        assert_eq!(back.parts().values, a.parts().values);
    }
}

/// A symmetric matrix with random entries over ten decades, many without a diagonal.
fn symmetric(n: usize, density: f64, random: &mut Random) -> Csr<f64> {
    let mut triplets = crate::Triplets::new(n, n).unwrap();
    for i in 0..n {
        for j in 0..=i {
            if random.unit() < density && (i != j || random.unit() < 0.3) {
                let value = 10f64.powf(10.0 * random.unit() - 5.0);
                triplets.push(i, j, value).unwrap();
                if i != j {
                    triplets.push(j, i, value).unwrap();
                }
            }
        }
    }
    crate::assemble::to_csr(&crate::Host, triplets).unwrap()
}

#[test]
fn symmetric_matchings_pair_rows_by_entries_of_magnitude_one() {
    let mut random = Random::new(3);
    for n in [1, 2, 5, 17, 40, 150] {
        for density in [1.5 / n as f64, 4.0 / n as f64, 0.4] {
            let a = symmetric(n, density, &mut random);
            let pairs = symmetric_matching(&a).unwrap();
            let most = maximum_matching(&Pattern::stored(&a).unwrap()).unwrap();
            assert_eq!(pairs.unmatched().len(), n - most.pairs());
            assert_eq!(pairs.scaling().rows(), pairs.scaling().columns());
            let scaled = rows(&pairs.scaling().apply(&a).unwrap());
            for (i, line) in scaled.iter().enumerate() {
                let largest = line.iter().map(|entry| entry.1).fold(0.0, f64::max);
                assert!(largest == 0.0 || (largest - 1.0).abs() < 1e-8, "{i}: {largest}");
                let j = pairs.partner()[i] as usize;
                assert_eq!(pairs.partner()[j] as usize, i);
                if j != i {
                    let size = line.iter().find(|entry| entry.0 == j).unwrap().1;
                    assert!((size - 1.0).abs() < 1e-8, "{i} {j}: {size}");
                }
            }
        }
    }
}

/// Checks the form against its definition, and that square blocks cannot be split further.
fn check_form(a: &Csr<f64>, form: &BlockTriangular) {
    let permuted = permute(a, form.rows(), form.columns()).unwrap();
    let lines = rows(&permuted);
    let mut ends = (0, 0);
    for block in form.blocks() {
        assert_eq!((block.rows.start, block.columns.start), ends);
        ends = (block.rows.end, block.columns.end);
        match block.kind {
            BlockKind::Horizontal => assert!(block.rows.len() < block.columns.len()),
            BlockKind::Square => assert_eq!(block.rows.len(), block.columns.len()),
            BlockKind::Vertical => assert!(block.rows.len() > block.columns.len()),
        }
        for i in block.rows.clone() {
            assert!(lines[i].iter().all(|entry| entry.0 >= block.columns.start), "row {i} of {block:?}");
            if block.kind == BlockKind::Square {
                let diagonal = block.columns.start + i - block.rows.start;
                assert!(lines[i].iter().any(|entry| entry.0 == diagonal));
            }
        }
        if block.kind == BlockKind::Square && block.rows.len() > 1 {
            let n = block.rows.len();
            for start in 0..n {
                let (mut seen, mut queue) = (vec![false; n], vec![start]);
                seen[start] = true;
                while let Some(i) = queue.pop() {
                    let line = &lines[block.rows.start + i];
                    for j in line
                        .iter()
                        .filter(|e| block.columns.contains(&e.0))
                        .map(|e| e.0 - block.columns.start)
                    {
                        if !std::mem::replace(&mut seen[j], true) {
                            queue.push(j);
                        }
                    }
                }
                assert!(seen.iter().all(|&seen| seen), "{block:?} can be split");
            }
        }
    }
    assert_eq!(ends, (a.rows(), a.columns()));
}

#[test]
fn block_forms_are_triangular_and_finest() {
    let mut random = Random::new(17);
    for trial in 0..300 {
        let (n, m) = (1 + random.below(30) as usize, 1 + random.below(30) as usize);
        let columns = if trial % 2 == 0 { n } else { m };
        let a = ragged(n, columns, 2.5 * random.unit() / columns as f64, &mut random);
        let pattern = Pattern::stored(&a).unwrap();
        let matching = maximum_matching(&pattern).unwrap();
        let form = block_triangular(&pattern, &matching).unwrap();
        check_form(&a, &form);
        assert_eq!(form.is_structurally_nonsingular(), matching.is_perfect());
    }
    let a = generate::poisson2d(3, 3).unwrap();
    let pattern = Pattern::stored(&a).unwrap();
    let none = Matching::none(9, 9);
    assert!(block_triangular(&pattern, &none).unwrap_err().to_string().contains("maximum"));
    let mut wrong = Matching::none(9, 9);
    wrong.pair(0, 8);
    assert!(block_triangular(&pattern, &wrong).unwrap_err().to_string().contains("no entry"));
}

/// A chain of many rows, each referring to the next, and its reverse: nothing recurses.
#[test]
fn long_chains_need_no_stack() {
    let n = 300_000;
    let offsets = (0..n).map(|i| 2 * i).chain([2 * n - 1]).collect();
    let indices = (0..n as u32).flat_map(|i| [i, i + 1]).take(2 * n - 1).collect();
    let a = Csr::from_parts(n, n, offsets, indices, vec![1.0; 2 * n - 1]).unwrap();
    let pattern = Pattern::stored(&a).unwrap();
    let form = block_triangular(&pattern, &maximum_matching(&pattern).unwrap()).unwrap();
    assert_eq!(form.blocks().len(), n);
    assert!(form.rows().is_identity());
    // The large entry of the last row is in the first column: all others move by one.
    let offsets = (0..=n).map(|i| 2 * i).collect();
    let indices = (0..n as u32 - 1).flat_map(|i| [i, i + 1]).chain([0, n as u32 - 1]).collect();
    let mut values = vec![1.0; 2 * n];
    values[2 * n - 2] = 3.0;
    let a = Csr::from_parts(n, n, offsets, indices, values).unwrap();
    let matching = maximum_product_matching(&a).unwrap().into_parts().0;
    assert!(matching.is_perfect() && matching.column_of()[0] == 1);
    let form = block_triangular(&Pattern::stored(&a).unwrap(), &matching).unwrap();
    assert_eq!(form.blocks().len(), 1);
}

#[test]
fn a_matching_that_takes_too_long_gives_way_to_one_by_places_alone() {
    let a = random_symmetric(1000, 5);
    let most = (a.nonzeros() + a.rows()) as u64;
    let given_up = super::product::matching_or_norms(&a, most / 8).unwrap();
    let by_places = maximum_matching(&Pattern::nonzero(&a).unwrap()).unwrap();
    assert_eq!(given_up.matching().column_of(), by_places.column_of());
    assert_eq!(given_up.scaling(), &equilibrate(&a).unwrap());
    let found = super::product::matching_or_norms(&a, 16 * most).unwrap();
    assert_eq!(found.scaling(), maximum_product_matching(&a).unwrap().scaling());
    // A matrix with large entries to be found takes a few steps per entry.
    let hidden = generate::convection_diffusion([12, 12, 12], 0.1).unwrap();
    let best = maximum_product_matching(&hidden).unwrap();
    let found = product_matching_within_reason(&hidden).unwrap();
    assert_eq!(found.matching().column_of(), best.matching().column_of());
    assert_eq!(found.scaling(), best.scaling());
}

/// About `each` entries for each row in each triangle, at random, and none on the diagonal.
fn random_symmetric(n: usize, each: usize) -> Csr<f64> {
    let mut random = Random::new(11);
    let mut triplets = crate::Triplets::<f64>::new(n, n).unwrap();
    for _ in 0..each * n {
        let (i, j) = (random.below(n as u64) as usize, random.below(n as u64) as usize);
        if i != j {
            let value = random.between(0.001, 1.0);
            triplets.push(i, j, value).unwrap();
            triplets.push(j, i, value).unwrap();
        }
    }
    crate::assemble::to_csr(&crate::Host, triplets).unwrap()
}

#[test]
fn a_diagonal_of_the_largest_product_is_the_matching() {
    let a = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, -3.0, -3.0, 9.0]).unwrap();
    let found = symmetric_matching(&a).unwrap();
    assert_eq!((found.partner(), found.unmatched().len()), (&[0, 1][..], 0));
    let root = found.scaling().rows();
    assert!((root[0] - 0.5).abs() < 1e-15 && (root[1] - 1.0 / 3.0).abs() < 1e-15, "{root:?}");
    // 5 * 5 > 4 * 4: the pair is the pivot.
    let b = Csr::from_parts(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![4.0, 5.0, 5.0, 4.0]).unwrap();
    assert_eq!(symmetric_matching(&b).unwrap().partner(), [1, 0]);
}
