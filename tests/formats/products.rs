//! Products of every format against the sequential reference.

use crate::cases::{HOST, with_lengths};
use crate::common::products::{blocks, fused, padding_never_meets_x, products, stored};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::Op;

#[test]
fn products_in_double_precision() {
    products::<f64, f64, _>(&HOST);
}

#[test]
fn products_in_single_precision() {
    products::<f32, f32, _>(&HOST);
}

#[test]
fn products_of_complex_matrices() {
    products::<Complex<f64>, Complex<f64>, _>(&HOST);
    products::<Complex<f32>, Complex<f32>, _>(&HOST);
}

#[test]
fn products_of_narrow_values_in_double_precision() {
    products::<f32, f64, _>(&HOST);
    products::<Complex<f32>, Complex<f64>, _>(&HOST);
}

#[test]
fn infinities_reach_only_the_rows_that_refer_to_them() {
    padding_never_meets_x(&HOST);
}

#[test]
fn fused_products_agree_with_plain_ones() {
    fused::<f64, _>(&HOST);
    fused::<f32, _>(&HOST);
    fused::<Complex<f64>, _>(&HOST);
}

/// The same bits with any number of threads, for every format and either direction.
#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut lengths = vec![13; 20_000];
    lengths[77] = 15_000;
    let a = with_lengths::<f64>(20_000, &lengths, 5);
    let x: Vec<f64> = Random(3).vector(20_000);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut results = Vec::new();
            for (_, matrix) in stored::<f64, f64, _>(&HOST, &a) {
                for op in [Op::None, Op::Transpose] {
                    let mut y = vec![0.5; 20_000];
                    matrix.product_op(&HOST, op, 1.5, &x, 0.5, &mut y).unwrap();
                    results.push(y);
                }
                let (mut y, mut xy) = (vec![0.0; 20_000], vec![0.0]);
                matrix.apply_dot(&HOST, &x, &mut y, &mut xy).unwrap();
                results.push(xy);
            }
            results
        })
    };
    let one = run(1);
    for threads in [2, 3, 8] {
        assert!(run(threads) == one, "{threads} threads give other bits than one");
    }
}

#[test]
fn vectors_of_the_wrong_length_are_refused() {
    let a = with_lengths::<f64>(5, &[1, 2, 3], 1);
    for (format, matrix) in stored::<f64, f64, _>(&HOST, &a) {
        let mut y = [0.0; 3];
        let error = matrix.product(&HOST, 1.0, &[0.0; 4], 0.0, &mut y).unwrap_err().to_string();
        assert_eq!(error, "length of x: expected 5, got 4", "{format}");
        let error = matrix.product(&HOST, 1.0, &[0.0; 5], 0.0, &mut y[..2]).unwrap_err().to_string();
        assert_eq!(error, "length of y: expected 3, got 2", "{format}");
        let error = matrix.transposed_product(&HOST, 1.0, &[0.0; 5], 0.0, &mut y).unwrap_err().to_string();
        assert_eq!(error, "length of x: expected 3, got 5", "{format}");
        assert!(matrix.apply_dot(&HOST, &[0.0; 5], &mut y, &mut [0.0]).is_err(), "{format} is not square");
    }
}

#[test]
fn several_vectors_at_once() {
    blocks::<f64, f64, _>(&HOST);
    blocks::<f32, f64, _>(&HOST);
    blocks::<Complex<f32>, Complex<f32>, _>(&HOST);
}

#[test]
fn products_with_half_of_a_symmetric_matrix_have_the_bits_of_those_with_all_of_it() {
    crate::common::half::of_all_types(&HOST);
}
