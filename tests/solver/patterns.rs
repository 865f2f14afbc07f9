//! New values from a matrix: with the same pattern, its entries in any order, or with another pattern.

use super::*;
use residua::assemble::{Arrays, Integers, Layout};

/// Offsets, or rows, and columns of a 3 x 3 matrix, and its values.
struct Given {
    layout: Layout,
    first: Vec<u32>,
    second: Vec<u32>,
    values: Vec<f64>,
}

impl Given {
    fn new(layout: Layout, first: &[u32], second: &[u32], values: &[f64]) -> Self {
        Self { layout, first: first.to_vec(), second: second.to_vec(), values: values.to_vec() }
    }

    fn arrays(&self) -> Arrays<'_, f64, Host> {
        let (first, second) = (Integers::Short(&self.first[..]), Integers::Short(&self.second[..]));
        Arrays { layout: self.layout, shape: (3, 3), base: 0, first, second, values: &self.values }
    }
}

/// | 4 1 . |
/// | 1 3 2 |
/// | . . 5 |, times a factor, in every layout that the solver takes.
fn same(factor: f64) -> Vec<Given> {
    let f = |values: &[f64]| values.iter().map(|value| factor * value).collect::<Vec<f64>>();
    vec![
        Given::new(Layout::Rows, &[0, 2, 5, 6], &[0, 1, 0, 1, 2, 2], &f(&[4.0, 1.0, 1.0, 3.0, 2.0, 5.0])),
        Given::new(Layout::Rows, &[0, 2, 5, 6], &[1, 0, 2, 0, 1, 2], &f(&[1.0, 4.0, 2.0, 1.0, 3.0, 5.0])),
        Given::new(Layout::Columns, &[0, 2, 4, 6], &[0, 1, 0, 1, 1, 2], &f(&[4.0, 1.0, 1.0, 3.0, 2.0, 5.0])),
        Given::new(
            Layout::Triplets,
            &[2, 1, 1, 0, 0, 1, 1],
            &[2, 2, 0, 1, 0, 1, 1],
            &f(&[5.0, 2.0, 1.0, 1.0, 4.0, 1.0, 2.0]),
        ),
    ]
}

#[test]
fn a_matrix_of_the_same_pattern_is_taken_in_any_order() {
    for updates in [false, true] {
        for (built, own) in same(1.0).iter().enumerate() {
            let mut solver = quick().updates(updates).build_arrays(&own.arrays(), true).unwrap();
            for (step, given) in same(2.0).iter().chain(&same(3.0)).enumerate() {
                solver.update_matrix(&given.arrays()).unwrap();
                let factor = if step < 4 { 2.0 } else { 3.0 };
                // A (1, 1, 1) = (5, 6, 5)
                let solution = solver.solver.solve(&[5.0 * factor, 6.0 * factor, 5.0 * factor]).unwrap();
                assert!(solution.report.outcome.is_converged(), "{built}, {step}");
                assert!(
                    solution.x.iter().all(|x| (x - 1.0).abs() < 1e-8),
                    "{built}, {step}: {:?}",
                    solution.x
                );
            }
            // Values alone are in the order of the arrays, and only their number can be checked.
            solver.update(&own.values).unwrap();
            assert!(solver.update(&own.values[1..]).is_err());
            assert!((solver.solver.solve(&[5.0, 6.0, 5.0]).unwrap().x[2] - 1.0).abs() < 1e-8);
        }
    }
}

#[test]
fn a_matrix_of_another_pattern_is_refused_and_changes_nothing() {
    let values = [4.0, 1.0, 1.0, 3.0, 2.0, 5.0];
    let others = [
        (Given::new(Layout::Rows, &[0, 2, 5, 6], &[0, 2, 0, 1, 2, 2], &values), "row 0, column 1"),
        (Given::new(Layout::Rows, &[0, 2, 4, 6], &[0, 1, 0, 1, 1, 2], &values), "row 1, column 2"),
        (Given::new(Layout::Rows, &[0, 2, 5, 7], &[0, 1, 0, 1, 2, 0, 2], &[1.0; 7]), "row 2, column 0"),
        (Given::new(Layout::Triplets, &[0, 1, 2], &[0, 1, 2], &[1.0; 3]), "row 0, column 1"),
    ];
    for own in same(1.0) {
        let mut solver = quick().build_arrays(&own.arrays(), true).unwrap();
        let before = solver.solver.solve(&[5.0, 6.0, 5.0]).unwrap();
        for (other, place) in &others {
            let told = solver.update_matrix(&other.arrays()).unwrap_err().to_string();
            assert!(told.contains("the pattern differs") && told.contains(place), "{told}");
        }
        let small = Arrays { shape: (3, 4), ..own.arrays() };
        assert!(solver.update_matrix(&small).unwrap_err().to_string().contains("another shape: 3 x 4"));
        assert_eq!(solver.solver.solve(&[5.0, 6.0, 5.0]).unwrap().x, before.x);
    }
}

/// The pattern of a matrix that was renumbered and stored in another format is still the caller's.
#[test]
fn patterns_are_compared_in_the_callers_order() {
    let a = shuffled(&uneven(30));
    let parts = a.parts();
    let residua::backend::OffsetsRef::Lower(offsets) = parts.offsets else { panic!("a small matrix") };
    let arrays = |first, second, values| Arrays::<'_, f64, Host> {
        layout: Layout::Rows,
        shape: (900, 900),
        base: 0,
        first: Integers::<Host>::Short(first),
        second: Integers::Short(second),
        values,
    };
    let settings = quick().reorder(Reorder::Rcm).format("sell");
    let mut solver = settings.build_arrays(&arrays(offsets, parts.indices, parts.values), true).unwrap();
    // The last entry of the first row moves one column to the right.
    let mut moved = parts.indices.to_vec();
    let last = offsets[1] as usize - 1;
    moved[last] += 1;
    let place = format!("row 0, column {}", parts.indices[last]);
    let told = solver.update_matrix(&arrays(offsets, &moved, parts.values)).unwrap_err().to_string();
    assert!(told.contains(&place), "{place}: {told}");
    let twice: Vec<f64> = parts.values.iter().map(|value| 2.0 * value).collect();
    solver.update_matrix(&arrays(offsets, parts.indices, &twice)).unwrap();
    let b = noise(900, 2);
    let x: Vec<f64> = solver.solver.solve(&b).unwrap().x.iter().map(|x| 2.0 * x).collect();
    assert!(solves(&a, &b, &x, 1e-9));
}
