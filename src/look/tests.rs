use super::*;
use crate::generate::{self, Random, RowLengths};
use crate::graph::{Permutation, permute_symmetric};
use crate::prepare::permute;
use crate::report::Facts;
use num_complex::Complex;

fn dense<T: Scalar>(n: usize, columns: usize, values: &[T]) -> Csr<T> {
    let indices = (0..n).flat_map(|_| 0..columns as u32).collect();
    Csr::from_parts(n, columns, (0..=n).map(|i| i * columns).collect(), indices, values.to_vec()).unwrap()
}

fn first(look: &Look) -> &'static str {
    look.iterative_method().map_or("none", |fit| fit.method)
}

#[test]
fn models_are_told_apart() {
    let look = |a: &Csr<f64>| Look::of(a).unwrap();
    let poisson = look(&generate::poisson2d(20, 30).unwrap());
    assert_eq!(
        (poisson.kind, poisson.exact, poisson.definiteness),
        (Kind::Symmetric, true, Definiteness::Positive)
    );
    assert!(poisson.m_matrix_signs && poisson.block_size == 1 && !poisson.has_constant_null_vector());
    assert_eq!((first(&poisson), poisson.structure.rank, poisson.structure.square_blocks), ("cg", 600, 1));

    let flow = look(&generate::convection_diffusion([20, 20, 1], 1e-2).unwrap());
    assert_eq!((flow.kind, first(&flow)), (Kind::SymmetricPattern, "gmres"));
    assert!(flow.m_matrix_signs);

    let plate = look(&generate::elasticity2d(8, 9, 0.3).unwrap());
    assert_eq!((plate.block_size, plate.definiteness), (2, Definiteness::PerhapsPositive));
    assert_eq!(look(&generate::elasticity3d(4, 4, 4, 0.3).unwrap()).block_size, 3);

    let waves = look(&generate::helmholtz([30, 30, 1], 10.0).unwrap());
    assert_eq!((waves.definiteness, first(&waves)), (Definiteness::Indefinite, "minres"));
    let flow = look(&generate::stokes([9, 9, 1], 1.0, false).unwrap());
    assert_eq!((flow.definiteness, flow.structure.rank), (Definiteness::Indefinite, 225));

    let graph = generate::rmat(300, 4, generate::RmatKind::Symmetric, 1).unwrap();
    assert_eq!(look(&graph).definiteness, Definiteness::Indefinite);
    assert_eq!(first(&look(&graph)), "minres");

    let wide = look(&generate::random(30, 500, RowLengths::Constant(3), 1).unwrap());
    assert_eq!((wide.kind, first(&wide), wide.structure.rank), (Kind::Rectangular, "lsmr", 30));
    assert!(look(&generate::arrow(1000).unwrap()).by_column.dense_rows == 1);
    assert_eq!(look(&generate::diagonal(5).unwrap()).structure.triangle, Triangle::Diagonal);
}

#[test]
fn kinds_of_complex_matrices() {
    let (i, one) = (Complex::new(0.0, 1.0), Complex::new(2.0, 0.0));
    let look = |values: [Complex<f64>; 4]| Look::of(&dense(2, 2, &values)).unwrap();
    let hermitian = look([one, i, -i, one]);
    assert_eq!((hermitian.kind, hermitian.definiteness), (Kind::Hermitian, Definiteness::Positive));
    let symmetric = look([one, i, i, one]);
    assert_eq!((symmetric.kind, first(&symmetric)), (Kind::ComplexSymmetric, "gmres"));
    assert_eq!(look([one, one, one, one]).kind, Kind::Symmetric);
    let skew = look([i * 0.0, one, -one, i * 0.0]);
    assert_eq!((skew.kind, skew.definiteness), (Kind::SkewSymmetric, Definiteness::Unknown));
    assert_eq!(look([i, one, one, one]).facts.diagonal_complex, 1);
}

#[test]
fn signs_of_eigenvalues_that_are_certain() {
    let of = |values: [f64; 4]| Look::of(&dense(2, 2, &values)).unwrap().definiteness;
    assert_eq!(of([2.0, 1.0, 1.0, 2.0]), Definiteness::Positive);
    assert_eq!(of([-2.0, 1.0, 1.0, -2.0]), Definiteness::Negative);
    assert_eq!(of([1.0, 1.0, 1.0, 1.0]), Definiteness::PositiveOrZero);
    assert_eq!(of([1.0, 2.0, 2.0, 5.0]), Definiteness::PerhapsPositive);
    assert_eq!(of([1.0, 2.0, 2.0, 3.0]), Definiteness::Indefinite);
    assert_eq!(of([2.0, 0.0, 0.0, -2.0]), Definiteness::Indefinite);
    assert_eq!(of([2.0, 1.0, 1.0, 0.0]), Definiteness::Indefinite);
    assert_eq!(of([2.0, 0.0, 0.0, 0.0]), Definiteness::PositiveOrZero);
    assert_eq!(of([-1.0, 2.0, 2.0, -5.0]), Definiteness::PerhapsNegative);
    assert_eq!(of([2.0, 1.0, 1.0, f64::NAN]), Definiteness::Unknown);
    assert_eq!(of([0.0; 4]), Definiteness::Unknown);
}

/// A symmetric matrix stays symmetric under D A D for any D; an unsymmetric one does not become symmetric.
#[test]
fn scaling_hides_no_symmetry_and_feigns_none() {
    let mut random = Random::new(1);
    let a = generate::poisson2d(20, 20).unwrap();
    let factors: Vec<f64> = (0..400).map(|_| 10f64.powf(12.0 * random.unit() - 6.0)).collect();
    let scaling = crate::prepare::Scaling::from_parts(factors.clone(), factors.clone()).unwrap();
    assert_eq!(Look::of(&scaling.apply(&a).unwrap()).unwrap().kind, Kind::Symmetric);
    let flow = generate::convection_diffusion([20, 20, 1], 1e-2).unwrap();
    let scaled = Look::of(&scaling.apply(&flow).unwrap()).unwrap();
    assert_eq!(scaled.kind, Kind::SymmetricPattern);
    assert!(scaled.row_decades() > 5.0 && scaled.words().iter().any(|line| line.contains("decades")));
}

#[test]
fn singular_matrices_are_named() {
    // The Laplacian of two paths: the null space has constants on each.
    let path = |n: usize, i: usize| f64::from(u8::from(i > 0) + u8::from(i + 1 < n));
    let mut triplets = crate::Triplets::new(7, 7).unwrap();
    for (start, n) in [(0, 3), (3, 4)] {
        for i in 0..n {
            triplets.push(start + i, start + i, path(n, i)).unwrap();
            if i > 0 {
                triplets.push(start + i, start + i - 1, -1.0).unwrap();
                triplets.push(start + i - 1, start + i, -1.0).unwrap();
            }
        }
    }
    let look = Look::of(&crate::assemble::to_csr(&crate::Host, triplets).unwrap()).unwrap();
    assert!(look.has_constant_null_vector() && !look.is_structurally_singular());
    assert_eq!((look.structure.components, look.definiteness), (2, Definiteness::PositiveOrZero));
    assert!(look.words().iter().any(|line| line.contains("constants in each component")));

    let a = Csr::from_parts(3, 3, vec![0, 2, 3, 4], vec![0, 1, 1, 1], vec![1.0; 4]).unwrap();
    let look = Look::of(&a).unwrap();
    assert!(look.is_structurally_singular());
    assert_eq!((look.structure.rank, &look.structure.unmatched_rows[..]), (2, &[2][..]));
    assert_eq!((look.structure.vertical, look.structure.horizontal), ([2, 1], [0, 1]));
    let words = look.words().join("\n");
    assert!(
        words.contains("rank is at most 2") && words.contains("row 3") && words.contains("column 3"),
        "{words}"
    );
    assert_eq!(first(&look), "lsmr");
    let lu = look.methods().into_iter().find(|fit| fit.method == "lu").unwrap();
    assert_eq!(lu.fit, Fit::Impossible);
}

#[test]
fn triangles_are_seen_in_any_order() {
    let n = 50;
    let mut triplets = crate::Triplets::new(n, n).unwrap();
    let mut random = Random::new(9);
    for i in 0..n {
        triplets.push(i, i, 1.0).unwrap();
        for _ in 0..3 {
            triplets.push(i, random.below(i as u64 + 1) as usize, 0.5).unwrap();
        }
    }
    let a = crate::assemble::to_csr(&crate::Host, triplets).unwrap();
    assert_eq!(Look::of(&a).unwrap().structure.triangle, Triangle::Lower);
    assert_eq!(Look::of(&a.transpose(&crate::Host).unwrap()).unwrap().structure.triangle, Triangle::Upper);
    let mixed =
        permute(&a, &Permutation::random(n, 1).unwrap(), &Permutation::random(n, 2).unwrap()).unwrap();
    let look = Look::of(&mixed).unwrap();
    assert_eq!((look.structure.triangle, look.structure.square_blocks), (Triangle::Permuted, n));
}

#[test]
fn what_is_no_number_and_what_is_not_there() {
    let look = Look::of(&dense(2, 2, &[1.0, f64::INFINITY, 0.0, f64::NAN])).unwrap();
    assert_eq!((look.facts.non_finite, look.facts.first_non_finite), (2, Some((0, 1))));
    assert!(look.words()[0].contains("row 1, column 2") && first(&look) == "none");
    for (rows, columns) in [(0, 0), (0, 3), (3, 0), (2, 2)] {
        let empty = Csr::<f64>::from_parts(rows, columns, vec![0; rows + 1], vec![], vec![]).unwrap();
        let look = Look::of(&empty).unwrap();
        assert_eq!((first(&look), look.structure.rank), ("none", 0));
        look.words();
    }
}

/// Facts that are counted by binary search, hashing and sorting do not depend on the order of rows.
#[test]
fn renumbering_changes_no_fact() {
    let a = generate::wathen(6, 5, 1).unwrap();
    let b = permute_symmetric(&a, &Permutation::random(a.rows(), 3).unwrap()).unwrap();
    let (one, two) = (Look::of(&a).unwrap(), Look::of(&b).unwrap());
    let plain = |look: &Look| Facts {
        worst_pair: None,
        below_diagonal: 0,
        above_diagonal: 0,
        entry_sum: 0.0,
        magnitude_sum: 0.0,
        ..look.facts.clone()
    };
    assert_eq!(plain(&one), plain(&two));
    assert_eq!((one.definiteness, one.structure), (two.definiteness, two.structure));
}
