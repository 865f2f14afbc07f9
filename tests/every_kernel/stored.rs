//! Stored matrices: products, conversions, the compressed format, assembly.

use crate::assembly;
use crate::compressed_cases;
use crate::formats::cases::{Expected, entries, on, ragged, reference, to_complex, with_lengths};
use crate::formats::conversions::{band, bits_of, round_trips, transposes_of, transposes_of_types};
use crate::formats::half;
use crate::formats::products::{blocks_of, fused_of, products_of, stored};
use crate::random::Random;
use num_complex::Complex;
use residua::assemble::Symmetry;
use residua::backend::Op;
use residua::backend::Replay;
use residua::backend::cuda::CsrAlgorithm;
use residua::matrix::{Compressed, CompressedOptions, Coo, Dia, Sell};
use residua::precondition::{Chebyshev, Jacobi, Preconditioner};
use residua::scalar::Scalar;
use residua::{Backend, Csr, Cuda, Host, LinearOperator};
use std::sync::Arc;

/// The ragged matrices with these names.
fn some<T: Scalar>(names: &[&str]) -> Vec<(&'static str, Csr<T>)> {
    let all = ragged::<T>().into_iter().filter(|(name, _)| names.contains(name));
    let some: Vec<_> = all.collect();
    assert_eq!(some.len(), names.len());
    some
}

const AWKWARD: [&str; 7] = [
    "597 x 43",
    "597 x 43 by diagonals",
    "empty rows and columns",
    "one giant row",
    "a long row among others",
    "a grid with holes",
    "no nonzeros",
];
const DEGENERATE: [&str; 7] = [
    "one row",
    "one row by diagonals",
    "one column",
    "one column by diagonals",
    "no rows",
    "no columns",
    "4 x 4 example",
];
const TWO: [&str; 3] = ["597 x 43", "597 x 43 by diagonals", "one giant row"];

/// alpha and beta: y is overwritten, or added to.
const FACTORS: [(f64, f64); 2] = [(1.0, 0.0), (-1.5, 0.25)];

pub fn products(b: &Cuda) {
    products_of::<f64, f64, _>(b, some(&AWKWARD), &FACTORS);
    products_of::<f64, f64, _>(b, by_lanes(), &FACTORS);
    fused_of::<f64, _>(b, some(&["one giant row", "arrow", "a grid with holes", "4 x 4 example"]));
}

/// Consecutive products in a recording load their matrix before the previous one has ended.
pub fn recorded_products(b: &Cuda) {
    for (name, host) in some(&AWKWARD).into_iter().chain(cut()).chain(by_lanes()) {
        let (a, mut random) = (on(b, &host), Random(22));
        let x = b.upload(random.vector::<f64>(a.columns())).unwrap();
        for (format, a) in stored::<f64, f64, _>(b, &a) {
            let (mut first, mut second) = (b.zeros(a.rows()).unwrap(), b.zeros(a.rows()).unwrap());
            let mut want = b.zeros(a.rows()).unwrap();
            {
                let mut both = b
                    .record(|| {
                        a.product(b, 2.0, &x, 0.0, &mut first)?;
                        a.product(b, 2.0, &x, 0.0, &mut second)
                    })
                    .unwrap();
                both.replay().unwrap();
                both.replay().unwrap();
            }
            a.product(b, 2.0, &x, 0.0, &mut want).unwrap();
            let want = b.download(&want).unwrap();
            assert_eq!(b.download(&first).unwrap(), want, "{format} of {name}");
            assert_eq!(b.download(&second).unwrap(), want, "{format} of {name}");
        }
    }
}

pub fn degenerate_products(b: &Cuda) {
    products_of::<f64, f64, _>(b, some(&DEGENERATE), &FACTORS);
}

pub fn narrow_products(b: &Cuda) {
    products_of::<f32, f64, _>(b, some(&TWO), &FACTORS);
}

pub fn complex_products(b: &Cuda) {
    products_of::<Complex<f64>, Complex<f64>, _>(b, some(&TWO), &FACTORS);
    fused_of::<Complex<f64>, _>(b, some(&["one giant row"]));
}

/// Rows of similar lengths, which several lanes may share: with one lane and more or fewer nonzeros in flight than a
/// row has, and with several lanes.
fn by_lanes() -> Vec<(&'static str, Csr<f64>)> {
    let of = |name, rows: usize, shortest, differ| {
        let lengths: Vec<usize> = (0..rows).map(|i| shortest + 11 * i % differ).collect();
        (name, with_lengths::<f64>(1000, &lengths, 35))
    };
    vec![
        of("rows of 4 to 12", 900, 4, 9),
        of("rows of 5 to 21", 900, 5, 17),
        of("rows of 10 to 26", 900, 10, 17),
        of("rows of 30 to 52", 900, 30, 23),
        of("rows of 50 to 160", 300, 50, 111),
    ]
}

/// Rows that span tiles, among empty ones.
fn cut() -> Vec<(&'static str, Csr<f64>)> {
    let mut lengths = vec![3; 400];
    lengths[77] = 5000;
    lengths[78..84].copy_from_slice(&[0, 0, 6000, 0, 2047, 1]);
    lengths[399] = 4100;
    vec![("rows cut", with_lengths::<f64>(6000, &lengths, 33))]
}

/// The same among many short rows, with columns close together or scattered.
fn cut_among_short() -> Vec<(&'static str, Csr<f64>)> {
    let mut lengths: Vec<usize> = (0..5000).map(|i| i % 4).collect();
    lengths[2100..2103].copy_from_slice(&[5000, 0, 2600]);
    [("short rows close together", 6000), ("short rows all over", 200_000)]
        .map(|(name, columns)| (name, with_lengths::<f64>(columns, &lengths, 34)))
        .into()
}

fn close<T: Scalar>(case: &str, y: &[T], expected: &[Expected]) {
    for (i, (&got, want)) in y.iter().zip(expected).enumerate() {
        let off = (to_complex(got) - want.value).norm();
        assert!(off <= want.bound, "{case}: element {i} is {got}, expected {}", want.value);
    }
}

/// Products with half of a matrix, conversions to it and back, and errors.
pub fn half_diagonals(b: &Cuda) {
    half::halves::<f64, _>(b, &[33, 100, 1000]);
    half::halves::<Complex<f32>, _>(b, &[33]);
    half::nearly_symmetric(b);
}

/// Rows shared by several tiles, every algorithm for CSR, and more blocks than the last block can add up by itself.
pub fn rows_cut(b: &Cuda) {
    for (name, host) in
        some(&AWKWARD).into_iter().chain(some(&["one row"])).chain(cut()).chain(cut_among_short())
    {
        let (a, mut random) = (on(b, &host), Random(21));
        let (x, y) = (random.vector::<f64>(a.columns()), random.vector::<f64>(a.rows()));
        let shape = (a.rows(), a.columns());
        let want = reference(shape, &entries(&host), (false, false), (-1.5, &x), (0.25, Some(&y)));
        let x = b.upload(x).unwrap();
        for algorithm in CsrAlgorithm::ALL {
            let mut y = b.upload(y.clone()).unwrap();
            b.csr_by(algorithm, a.parts(), -1.5, &x, 0.25, &mut y).unwrap();
            close(&format!("{algorithm:?} of {name}"), &b.download(&y).unwrap(), &want);
        }
        let coo = Coo::from_csr(b, &a).unwrap();
        let mut y = b.upload(y).unwrap();
        b.coo_by_atomics(coo.parts(), -1.5, &x, 0.25, &mut y).unwrap();
        close(&format!("atomics of {name}"), &b.download(&y).unwrap(), &want);
    }
    products_of::<f64, f64, _>(b, cut(), &FACTORS);
    // More blocks than the last block can add up by itself, and enough nonzeros for two rows per thread.
    let n = 400_001;
    let a = b.poisson2d::<f64>(n, 1).unwrap();
    let (sell, dia) = (Sell::with_chunks(b, &a, 32, 1).unwrap(), Dia::from_csr(b, &a).unwrap());
    let operators: [&dyn LinearOperator<f64, Cuda>; 3] = [&a, &sell, &dia];
    for operator in operators {
        let ones = b.upload(vec![1.0; n]).unwrap();
        let (mut y, mut sum) = (b.zeros(n).unwrap(), b.zeros(1).unwrap());
        operator.apply_dot(b, &ones, &mut y, &mut sum).unwrap();
        // Each row has a diagonal entry of 4, and each pair of neighbours two entries of -1.
        assert_eq!(b.download(&sum).unwrap(), [4.0 * n as f64 - 2.0 * (n - 1) as f64]);
    }
}

pub fn several_vectors(b: &Cuda) {
    blocks_of::<f64, f64, _>(b, cut());
    blocks_of::<f64, f64, _>(b, some(&["597 x 43", "one row", "no nonzeros"]));
    blocks_of::<f32, f32, _>(b, some(&["one giant row"]));
}

pub fn conversions(b: &Cuda) {
    round_trips::<f64, _>(b, some(&AWKWARD));
}

pub fn conversions_of_types(b: &Cuda) {
    round_trips::<f32, _>(b, some(&["597 x 43", "a grid with holes"]));
    round_trips::<Complex<f64>, _>(b, some(&["one giant row", "597 x 43 by diagonals"]));
    // Half the size if no value loses anything.
    for (last, narrow) in [(0.25, true), (0.1, false)] {
        let a = Csr::from_parts(1, 3, vec![0, 3], vec![0, 1, 2], vec![1.0, 0.5, last]).unwrap();
        assert_eq!(on(b, &a).into_lower(b).unwrap().is_ok(), narrow);
    }
}

pub fn conversions_of_degenerate(b: &Cuda) {
    round_trips::<f64, _>(b, some(&DEGENERATE));
}

pub fn transposes(b: &Cuda) {
    transposes_of(b, some(&AWKWARD));
    transposes_of(b, some(&DEGENERATE));
    transposes_of_types(b);
    for a in [band(300, usize::MAX), band(300, 297)] {
        let (here, there) = (a.transpose(&Host).unwrap(), on(b, &a).transpose(b).unwrap());
        assert!(bits_of(&here) == bits_of(&there.to_host(b).unwrap()));
    }
}

/// Three diagonals with so many rows that a few tiles are checked first for a symmetric pattern.
pub fn large_transpose(b: &Cuda) {
    let n = 2_800_000;
    let (first, end) = (|i: usize| (3 * i).saturating_sub(1), 3 * n - 2);
    let columns = (0..n as u32).flat_map(|i| i.saturating_sub(1)..=(i + 1).min(n as u32 - 1)).collect();
    let values = (0..end).map(|k| k as f32).collect();
    let offsets = (0..n).map(first).chain([end]).collect();
    let a = Csr::from_parts(n, n, offsets, columns, values).unwrap();
    let t = on(b, &a).transpose(b).unwrap().to_host(b).unwrap();
    assert!(t.parts().indices == a.parts().indices);
    // The last entry of row i and the first of row i + 1 are exchanged.
    let swapped = |k: usize| [k, k + 1, k.wrapping_sub(1)][k % 3] as f32;
    assert!(t.parts().values.iter().enumerate().all(|(k, &value)| value == swapped(k)));
}

fn compressible(names: &[&str]) -> Vec<compressed_cases::Named> {
    let some: Vec<_> = compressed_cases::matrices().into_iter().filter(|of| names.contains(&of.0)).collect();
    assert_eq!(some.len(), names.len());
    some
}

/// One matrix for each storage.
const STORAGES: [&str; 18] = [
    "27 points",
    "27 points of a grid",
    "27 points of a grid, no two alike",
    "7 points of a grid",
    "7 points with holes",
    "9 points with holes",
    "7 points around an obstacle",
    "27 points around an obstacle",
    "upwind",
    "a stencil with halves",
    "few distances, few values",
    "far columns",
    "far columns, one value",
    "rows of 20 to 49, few values",
    "distances in ranges",
    "a giant row",
    "uneven rows",
    "uneven rows of halves",
];

pub fn compressed(b: &Cuda) {
    let others = ["few special values", "many long rows", "597 x 43", "no nonzeros"];
    for (name, expected, a) in compressible(&STORAGES).into_iter().chain(compressible(&others)) {
        compressed_cases::round_trip(b, name, expected, &a);
    }
    // Uses tiles of equal numbers of entries, unless columns are too far apart.
    let rows = ["uneven rows", "uneven rows of halves", "uneven rows, far columns"];
    let expected = ["16 bits, values in f64", "16 bits, values in f32", "16 or 32 bits"];
    for ((name, _, a), expected) in compressible(&rows).into_iter().zip(expected) {
        compressed_cases::round_trip(b, name, expected, &a);
    }
}

pub fn compressed_products(b: &Cuda) {
    for (name, _, a) in compressible(&STORAGES) {
        let usual = CompressedOptions::default();
        for options in [usual.clone(), usual.values(false).kinds(false)] {
            let compressed = Compressed::with_options(b, &on(b, &a), &options).unwrap();
            let (x, mut here) = (vec![0.5; a.columns()], vec![1.0; a.rows()]);
            a.product(&Host, -1.5, &x, 0.25, &mut here).unwrap();
            let (x, mut there) = (b.upload(x).unwrap(), b.upload(vec![1.0; a.rows()]).unwrap());
            compressed.product_op(b, Op::None, -1.5, &x, 0.25, &mut there).unwrap();
            for (i, (there, here)) in b.download(&there).unwrap().iter().zip(&here).enumerate() {
                let same = there.to_bits() == here.to_bits() || there.is_nan() && here.is_nan();
                assert!(
                    same || (there - here).abs() <= 1e-11 * here.abs().max(1.0),
                    "{name}, row {i}: {there} {here}"
                );
            }
        }
    }
    // In single precision, a warp takes two sections of a window.
    for (name, _, a) in compressible(&["far columns", "lengths of every kind"]) {
        compressed_cases::check::<f32, f32, _>(b, name, &a.map(|v| v as f32));
    }
    // Storage in tiles, with other types of values.
    for (name, _, a) in compressible(&["uneven rows of halves"]) {
        compressed_cases::check::<f32, f32, _>(b, name, &a.map(|v| v as f32));
        compressed_cases::check::<f32, f64, _>(b, name, &a.map(|v| v as f32));
        compressed_cases::check::<Complex<f32>, Complex<f32>, _>(
            b,
            name,
            &a.map(|v| Complex::new(v as f32, -0.5)),
        );
        compressed_cases::check::<Complex<f64>, Complex<f64>, _>(
            b,
            name,
            &a.map(|v| Complex::new(v, 0.1 * v)),
        );
    }
}

pub fn compressed_dots(b: &Cuda) {
    let square = [
        "27 points",
        "7 points of a grid",
        "7 points with holes",
        "5 points with holes",
        "5 points around an obstacle",
        "27 points around an obstacle",
        "upwind",
        "without a diagonal",
        "12 points of two planes",
        "a stencil with halves",
        "lengths of every kind",
        "a giant row",
        "uneven rows of halves",
    ];
    compressed_cases::dots_of(b, compressible(&square));
}

/// Grids with so many points that planes pass through shared memory, and that those with holes are treated as grids (on
/// chips with few multiprocessors).
pub fn compressed_grids(b: &Cuda) {
    compressed_grid(b, &b.poisson3d::<f64>(52, 49, 50).unwrap(), 1e-13);
    // The number of rows is no multiple of 16.
    let holed = compressed_cases::holed(&residua::generate::poisson3d(52, 49, 50).unwrap(), true);
    let device = on(b, &holed);
    compressed_grid(b, &device, 1e-13);
    // Rows with only a diagonal entry, to which other rows refer; lines that are a multiple of a run, and others.
    let few = residua::generate::poisson3d(52, 49, 50).unwrap();
    let flat = residua::generate::poisson2d_9(400, 330).unwrap();
    let all = |points| residua::generate::poisson3d_27(points, 52, 50).unwrap();
    let points = [&few, &flat, &all(52), &all(51), &compressed_cases::skewed(52, 52, 50)]
        .map(|a| compressed_cases::holed(a, false));
    // Obstacles to which no row refers, with few rows around them, and with many.
    let plates =
        |i: usize| i / 2704 % 10 == 5 && [i % 52, i / 52 % 52].iter().all(|at| (10..42).contains(at));
    let obstacles = [
        compressed_cases::obstacle(&few, [52, 49], [9, 10, 11]),
        compressed_cases::obstacle(&flat, [400, 330], [70, 50, 1]),
        compressed_cases::obstacle(&all(52), [52, 52], [14; 3]),
        compressed_cases::obstacle(&all(51), [51, 52], [11; 3]),
        compressed_cases::obstacle(&compressed_cases::skewed(52, 52, 50), [52, 52], [5; 3]),
        compressed_cases::holed_where(&all(52), true, plates),
    ];
    for a in points.iter().chain(&obstacles) {
        compressed_grid(b, &on(b, a), 1e-10);
    }
    // Rows with only a diagonal entry are not affected by their neighbours.
    for a in &points {
        let alone: Vec<bool> = (0..a.rows()).map(|i| a.row(i).0.len() == 1).collect();
        let x = alone.iter().map(|&alone| if alone { 1.0 } else { f64::NAN }).collect();
        let stored = Compressed::with_options(b, &on(b, a), &CompressedOptions::default()).unwrap();
        let (x, mut y) = (b.upload(x).unwrap(), b.zeros(a.rows()).unwrap());
        stored.product_op(b, Op::None, 1.0, &x, 0.0, &mut y).unwrap();
        let y = b.download(&y).unwrap();
        assert!(
            y.iter().zip(&alone).all(|(y, &alone)| y.is_nan() != alone),
            "a neighbour's element reaches a hole"
        );
    }
    // Steps of Chebyshev's iteration are part of the product.
    let stored = Arc::new(Compressed::with_options(b, &device, &CompressedOptions::default()).unwrap());
    let diagonal = Arc::new(Jacobi::new(b, &device).unwrap());
    let device = Arc::new(device);
    let r = b.upload(Random(4).vector::<f64>(holed.rows())).unwrap();
    let applied = |a: Arc<dyn LinearOperator<f64, Cuda>>| {
        let m = Chebyshev::with_bounds(b, a, diagonal.clone(), 3, (0.1, 2.2)).unwrap();
        let mut z = b.zeros(holed.rows()).unwrap();
        m.apply(b, &r, &mut z).unwrap();
        b.download(&z).unwrap()
    };
    let (want, z) = (applied(device.clone()), applied(stored.clone()));
    assert!(want.iter().zip(&z).all(|(want, z)| (want - z).abs() <= 1e-12), "not the steps of CSR");
    // Only row n / 2 has an entry in this column, so a NaN there must not reach other rows.
    let n = holed.rows();
    let mut x = vec![1.0; n];
    x[n / 2] = f64::NAN;
    let (x, mut y) = (b.upload(x).unwrap(), b.zeros(n).unwrap());
    stored.product_op(b, Op::None, 1.0, &x, 0.0, &mut y).unwrap();
    let y = b.download(&y).unwrap();
    assert!((0..n).all(|i| y[i].is_nan() == (i == n / 2)), "a hole's element reaches other rows");
}

fn compressed_grid(b: &Cuda, a: &Csr<f64, Cuda>, tolerance: f64) {
    let n = a.rows();
    let grid = Compressed::with_options(b, a, &CompressedOptions::default()).unwrap();
    let x = b.upload(Random(3).vector::<f64>(n)).unwrap();
    let [mut want, mut y, mut again] = std::array::from_fn(|_| b.upload(vec![1.0; n]).unwrap());
    let mut dot = b.zeros(1).unwrap();
    a.product(b, -1.5, &x, 0.0, &mut want).unwrap();
    grid.product_op(b, Op::None, -1.5, &x, 0.0, &mut y).unwrap();
    let (want, scaled) = (b.download(&want).unwrap(), b.download(&y).unwrap());
    assert!(
        want.iter().zip(&scaled).all(|(want, y)| (want - y).abs() <= tolerance),
        "not the product of CSR"
    );
    // The product is added to the vector.
    let mut sum = b.upload(scaled).unwrap();
    grid.product_op(b, Op::None, -1.5, &x, 1.0, &mut sum).unwrap();
    let sum = b.download(&sum).unwrap();
    assert!(
        want.iter().zip(&sum).all(|(want, sum)| (2.0 * want - sum).abs() <= 3.0 * tolerance),
        "not the sum with CSR's product"
    );
    grid.product_op(b, Op::None, 1.0, &x, 0.0, &mut y).unwrap();
    grid.apply_dot(b, &x, &mut again, &mut dot).unwrap();
    assert!(b.download(&y).unwrap() == b.download(&again).unwrap(), "another y with the dot product");
}

pub fn assembled(b: &Cuda) {
    let mut random = Random(3);
    let shapes = [
        (0, 0, 0),
        (5, 0, 0),
        (1, 1, 40),
        (1, 1000, 3000),
        (597, 43, 0),
        (597, 43, 9000),
        (3, 1 << 20, 3000),
    ];
    for (rows, columns, n) in shapes {
        assembly::check(b, &assembly::triplets(&mut random, rows, columns, n), Symmetry::General);
    }
    for n in [1, 3000] {
        assembly::check(b, &assembly::triplets(&mut random, 300, 300, n), Symmetry::Symmetric);
    }
    assembly::resident_cases(b);
}
