//! Cases of the compressed format for any backend: every storage is chosen in some case, no bit is lost, and products
//! are within rounding.

use crate::random::Random;
use num_complex::Complex;
use residua::backend::{CompressedBody, CompressedColumns, Conversions, MOST_KEYS, Op, Products, VectorOps};
use residua::matrix::{Compressed, CompressedOptions, Csr};
use residua::scalar::{Promote, Scalar};
use residua::{LinearOperator, Real, generate};
use std::collections::BTreeSet;

/// A matrix from the columns of each row, and from a function that returns the value of the k-th entry of row i.
fn matrix(rows: Vec<Vec<u32>>, columns: usize, mut value: impl FnMut(usize, usize) -> f64) -> Csr<f64> {
    let mut offsets = vec![0];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for (i, row) in rows.iter().enumerate() {
        indices.extend_from_slice(row);
        values.extend((0..row.len()).map(|k| value(i, k)));
        offsets.push(indices.len());
    }
    Csr::from_parts(rows.len(), columns, offsets, indices, values).unwrap()
}

fn band(n: usize, distances: &[i64]) -> Vec<Vec<u32>> {
    let row = |i: usize| {
        let inside = distances.iter().map(|d| i as i64 + d).filter(|&j| (0..n as i64).contains(&j));
        inside.map(|j| j as u32).collect()
    };
    (0..n).map(row).collect()
}

/// Rows that are parts of one stencil, with coefficients that depend on the distance.
fn stencil(rows: usize, columns: usize, distances: &[i64]) -> Csr<f64> {
    let line = |i: usize| {
        let inside = distances.iter().map(|d| i as i64 + d).filter(|&j| (0..columns as i64).contains(&j));
        inside.map(|j| j as u32).collect()
    };
    let lines: Vec<Vec<u32>> = (0..rows).map(line).collect();
    let number = |i: usize, k: usize| (i64::from(lines[i][k]) - i as i64).rem_euclid(97) as f64 * 0.3 - 10.0;
    matrix(lines.clone(), columns, number)
}

/// Full blocks along the diagonal, with values that depend on the distance.
fn blocks(size: usize, count: usize) -> Csr<f64> {
    let first = |i: usize| i / size * size;
    let rows = (0..size * count).map(|i| (first(i)..first(i) + size).map(|j| j as u32).collect()).collect();
    matrix(rows, size * count, |i, k| (k as f64 - (i - first(i)) as f64) * 0.3 + 7.0)
}

/// 27 points on a grid, with coefficients that depend on the distance.
pub fn skewed(nx: usize, ny: usize, nz: usize) -> Csr<f64> {
    let a = generate::poisson3d_27(nx, ny, nz).unwrap();
    let rows: Vec<Vec<u32>> = (0..a.rows()).map(|i| a.row(i).0.to_vec()).collect();
    let number = |i: usize, k: usize| (i64::from(rows[i][k]) - i as i64) as f64 * 0.01 + 1.0;
    matrix(rows.clone(), a.rows(), number)
}

/// Leaves only the diagonal in some rows, a few of which are adjacent; if `cut`, no other row refers to them.
pub fn holed(a: &Csr<f64>, cut: bool) -> Csr<f64> {
    let n = a.rows();
    holed_where(a, cut, |i| i % 37 == n / 2 % 37 || (n / 3..n / 3 + 70).contains(&i))
}

pub fn holed_where(a: &Csr<f64>, cut: bool, hole: impl Fn(usize) -> bool) -> Csr<f64> {
    let n = a.rows();
    let kept = |i: usize, &(&j, _): &(&u32, &f64)| {
        let j = j as usize;
        i == j || !(hole(i) || cut && hole(j))
    };
    let lines: Vec<Vec<(u32, f64)>> = (0..n)
        .map(|i| {
            let (columns, values) = a.row(i);
            columns.iter().zip(values).filter(|entry| kept(i, entry)).map(|(&j, &v)| (j, v)).collect()
        })
        .collect();
    let columns = lines.iter().map(|line| line.iter().map(|entry| entry.0).collect()).collect();
    matrix(columns, n, |i, k| lines[i][k].1)
}

/// An obstacle of the given size, in a grid with the given points per line and lines per plane, to which no row around
/// it refers.
pub fn obstacle(a: &Csr<f64>, [points, lines]: [usize; 2], size: [usize; 3]) -> Csr<f64> {
    let middle = [points / 2, lines / 2, a.rows() / (points * lines) / 2];
    let at = |i: usize| [i % points, i / points % lines, i / (points * lines)];
    let within = |i: usize| (0..3).all(|d| (middle[d]..middle[d] + size[d]).contains(&at(i)[d]));
    holed_where(a, true, within)
}

fn scattered(n: usize, columns: usize, length: impl Fn(usize) -> usize, reach: usize) -> Vec<Vec<u32>> {
    let mut random = Random(7);
    let row = |i: usize| {
        let first = (i * columns / n.max(1)).saturating_sub(reach / 2);
        let last = (first + reach).min(columns);
        let mut line = BTreeSet::new();
        for _ in 0..length(i) {
            line.insert((first + random.below(last - first)) as u32);
        }
        line.into_iter().collect()
    };
    (0..n).map(row).collect()
}

/// Name, words that must be in the description of the storage, matrix.
pub type Named = (&'static str, &'static str, Csr<f64>);

pub fn matrices() -> Vec<Named> {
    let mut random = Random(3);
    let few = [
        0.1,
        -0.0,
        f64::INFINITY,
        f64::from_bits(0x7ff8_dead_beef_0001),
        f64::from_bits(u64::MAX - 1),
        5e-324,
        0.0,
    ];
    let long = |i: usize| if i == 311 { 9000 } else { i % 4 };
    let of = |count: usize| move |i: usize, k: usize| ((3 * i + k) % count) as f64;
    let rows_of = |distances: &dyn Fn(usize) -> Vec<usize>| -> Vec<Vec<u32>> {
        let row = |i: usize| distances(i).into_iter().map(|d| (i + d) as u32).collect::<BTreeSet<_>>();
        (0..2500).map(|i| row(i).into_iter().collect()).collect()
    };
    // `count` distances, in more kinds of rows than one byte can number; and kinds of rows with more distances.
    let far = |count: usize| rows_of(&|i| (0..3 + i % 4).map(|k| (7 * i + 13 * k) % count).collect());
    let kinds = |count: usize| rows_of(&|i| vec![0, 300 + i % count, 1000 + i % count]);
    let general = |i: usize, k: usize| (8 * i + k) as f64 * 0.1;
    vec![
        (
            "a stencil",
            "3 kinds of rows, values included",
            matrix(band(5000, &[-1, 0, 1]), 5000, |_, k| k as f64),
        ),
        (
            "a wide stencil",
            "kinds of rows, values included",
            matrix(band(9000, &[-70, -1, 0, 1, 70]), 9000, |_, _| 0.1),
        ),
        // Nine distances and a stride of 600; rows end in the middle of a line, and the first and last lack entries.
        ("27 points", "kinds of rows, values included", {
            let plane = [-31, -30, -29, -1, 0, 1, 29, 30, 31];
            let all: Vec<i64> = [-600, 0, 600].iter().flat_map(|z| plane.map(|d| d + z)).collect();
            matrix(band(5111, &all), 5111, |i, k| if i % 30 == 7 { 0.5 } else { k as f64 })
        }),
        ("a wide stencil upwind", "kinds of rows, values included", {
            let all: Vec<i64> = [-700, 0].iter().flat_map(|z| (-4..5).map(move |d| d + z)).collect();
            matrix(band(8000, &all), 8000, |_, k| 1.0 / (k + 1) as f64)
        }),
        (
            "27 points of a grid",
            "27 kinds of rows, values included",
            generate::poisson3d_27(13, 11, 12).unwrap(),
        ),
        ("27 points of a grid, no two alike", "27 kinds of rows, values included", skewed(13, 11, 12)),
        ("7 points of a grid", "27 kinds of rows, values included", generate::poisson3d(20, 9, 17).unwrap()),
        ("9 points of a grid", "9 kinds of rows, values included", generate::poisson2d_9(70, 17).unwrap()),
        // The distances of a stencil, and as many rows as points of a grid; but rows have entries beyond its lines and
        // planes, and lack others.
        ("blocks of five", "5 kinds of rows, values included", blocks(5, 27)),
        ("blocks of nine", "9 kinds of rows, values included", blocks(9, 17)),
        ("7 points with holes", "kinds of rows, values included", {
            holed(&generate::poisson3d(20, 9, 17).unwrap(), true)
        }),
        ("7 points with holes, odd lines", "kinds of rows, values included", {
            holed(&generate::poisson3d(21, 10, 11).unwrap(), false)
        }),
        ("27 points with holes", "kinds of rows, values included", holed(&skewed(14, 11, 12), false)),
        ("5 points with holes", "kinds of rows, values included", {
            holed(&generate::poisson2d(60, 41).unwrap(), true)
        }),
        ("9 points with holes", "kinds of rows, values included", {
            holed(&generate::poisson2d_9(70, 17).unwrap(), false)
        }),
        // Few rows are neither complete nor only a diagonal.
        ("5 points around an obstacle", "kinds of rows, values included", {
            obstacle(&generate::poisson2d(60, 41).unwrap(), [60, 41], [2, 3, 1])
        }),
        ("7 points around an obstacle", "kinds of rows, values included", {
            obstacle(&generate::poisson3d(24, 22, 20).unwrap(), [24, 22], [4, 3, 2])
        }),
        ("27 points around an obstacle", "kinds of rows, values included", {
            obstacle(&skewed(14, 11, 12), [14, 11], [1, 1, 1])
        }),
        ("5 points of three lines", "9 kinds of rows, values included", generate::poisson2d(300, 3).unwrap()),
        ("lines of 128 points", "3 kinds of rows, values included", {
            let of_line = |i: u32| (i.max(1) - 1..=i + 1).filter(move |j| j / 128 == i / 128).collect();
            matrix((0..1280).map(of_line).collect(), 1280, |_, _| 0.1)
        }),
        ("points of a line", "3 kinds of rows, values included", stencil(1500, 1500, &[-1, 0, 1])),
        ("upwind", "kinds of rows, values included", stencil(3000, 3000, &[-900, -30, -1, 0])),
        ("without a diagonal", "kinds of rows, values included", stencil(1500, 1500, &[-66, -64, 64, 66])),
        ("7 points, more columns", "kinds of rows", stencil(2000, 2040, &[-350, -20, -1, 0, 1, 20, 350])),
        ("7 points, fewer columns", "kinds of rows", stencil(2000, 1800, &[-350, -20, -1, 0, 1, 20, 350])),
        ("12 points of two planes", "kinds of rows, values included", {
            let plane = [-22, -21, -20, -1, 0, 1];
            stencil(2000, 2000, &[-441, 0].map(|p| plane.map(|d| d + p)).concat())
        }),
        ("a stencil with general values", "columns by 3 kinds of rows, values in f64", {
            matrix(band(5000, &[-1, 0, 1]), 5000, |i, _| {
                if i == 7 { f64::from_bits(u64::MAX) } else { random.signed() }
            })
        }),
        ("a stencil with halves", "columns by 3 kinds of rows, values in f32", {
            matrix(band(5000, &[-1, 0, 1]), 5000, |i, k| (3 * i + k) as f64 / 2.0)
        }),
        ("few special values", "columns by 3 kinds of rows, values as codes of 7", {
            matrix(band(5000, &[-1, 0, 1]), 5000, |_, _| few[random.below(7)])
        }),
        (
            "few distances",
            "columns as codes of",
            matrix(scattered(3000, 3000, |i| i % 7, 90), 3000, |i, _| i as f64 + 0.1),
        ),
        // As many values as one byte can number, and one more; one code stands for no entry.
        ("256 values", "values as codes of 256", matrix(band(2000, &[-1, 0, 1]), 2000, of(256))),
        ("257 values", "values in f32", matrix(band(2000, &[-1, 0, 1]), 2000, of(257))),
        ("255 distances", "columns as codes of 255 distances", matrix(far(255), 4000, general)),
        ("256 distances", "columns in 16 or 32 bits", matrix(far(256), 4000, general)),
        ("255 kinds of rows", "columns by 255 kinds of rows", matrix(kinds(255), 4000, general)),
        ("256 kinds of rows", "columns in 16 or 32 bits", matrix(kinds(256), 4000, general)),
        ("few distances, few values", "values as codes of 6", {
            matrix(scattered(3000, 3000, |i| i % 7, 90), 3000, |i, _| few[i % 7])
        }),
        ("more than 255 distances", "columns in 16 or 32 bits", {
            matrix(scattered(3000, 3000, |i| 5 + i % 7, 900), 3000, |i, k| (i * 8 + k) as f64 * 0.1)
        }),
        ("far columns", "columns in 16 or 32 bits", {
            matrix(scattered(1500, 900_000, |i| i % 9, 900_000), 900_000, |i, k| (i * 8 + k) as f64 * 0.1)
        }),
        ("far columns here and there", "columns in 16 or 32 bits", {
            let mut rows = scattered(3000, 200_000, |_| 6, 2000);
            rows.iter_mut().step_by(500).for_each(|row| row.extend([199_998, 199_999]));
            rows.iter_mut().for_each(|row| row.dedup());
            matrix(rows, 200_000, |i, k| (i + k) as f64 * 0.1)
        }),
        ("far columns, one value", "columns in 16 or 32 bits, values as codes of 1", {
            matrix(scattered(1500, 900_000, |i| i % 9, 900_000), 900_000, |_, _| 0.7)
        }),
        ("rows of 20 to 49, few values", "columns in 16 or 32 bits, values as codes of 6", {
            matrix(scattered(1500, 3000, |i| 20 + i % 30, 3000), 3000, |i, k| few[(i + k) % 6])
        }),
        // Distances that just fit one base, that just don't, four ranges with adjacent ends and starts, one range too
        // many, and one that is not needed.
        ("distances in ranges", "columns in 16 or 32 bits, values as codes", {
            let apart: [&[usize]; 5] = [
                &[0, 65_534],
                &[0, 65_535],
                &[0, 16_382, 16_383, 16_384, 40_000, 80_000],
                &[0, 20_000, 40_000, 60_000, 80_000],
                &[0, 30_000, 65_535],
            ];
            let of_row = |i: usize| {
                let distance = |&d: &usize| if d == 40_000 { d + 37 * i % 5000 } else { d };
                apart[i / 32 % 5].iter().map(|d| (i + distance(d)) as u32).collect()
            };
            matrix((0..2000).map(of_row).collect(), 90_000, |i, k| few[(i + k) % 7])
        }),
        ("lengths of every kind", "rows by length", {
            matrix(scattered(2500, 2500, |i| (i * 7919) % 23, 2500), 2500, |i, k| (i + k) as f64 * 0.1)
        }),
        (
            "a giant row",
            "1 long rows",
            matrix(scattered(70_000, 70_000, long, 70_000), 70_000, |i, k| (i + k) as f64),
        ),
        // More long rows than a device reports to the host. Columns are scattered, so that a GPU makes no tiles of
        // entries.
        ("many long rows", "2143 long rows", {
            let length = |i| if i % 28 == 5 { 140 } else { i % 2 };
            matrix(scattered(60_000, 70_000, length, 70_000), 70_000, |i, k| (i + k) as f64)
        }),
        // Rows that a GPU divides into tiles of entries: some empty, including the last ones, some of several tiles;
        // columns of a tile are within 16 bits, those of all rows are not.
        ("uneven rows", "", {
            let length = |i| match i {
                500 | 501 | 1900 => 7000,
                2990.. => 0,
                _ if i % 60 == 7 => 250,
                _ => i % 5,
            };
            matrix(scattered(3000, 150_000, length, 40_000), 150_000, |i, k| (i * 8 + k) as f64 * 0.1)
        }),
        ("uneven rows of halves", "", {
            let length = |i| if i % 40 == 0 { 400 } else { i % 3 };
            matrix(scattered(2000, 2000, length, 900), 2000, |i, k| (i * 400 + k) as f64 / 2.0)
        }),
        ("uneven rows, far columns", "", {
            let length = |i| if i % 40 == 0 { 400 } else { i % 3 };
            matrix(scattered(900, 300_000, length, 300_000), 300_000, |i, k| (i * 8 + k) as f64 * 0.1)
        }),
        ("597 x 43", "", matrix(scattered(597, 43, |i| i % 10, 43), 43, |i, k| (i + 2 * k) as f64 * 0.3)),
        ("43 x 597", "", matrix(scattered(43, 597, |i| i % 70, 597), 597, |i, k| (i + 2 * k) as f64 * 0.3)),
        ("one row", "", matrix(scattered(1, 800, |_| 300, 800), 800, |_, k| k as f64 * 0.1)),
        ("one column", "", matrix(scattered(200, 1, |i| i % 2, 1), 1, |i, _| i as f64 * 0.1)),
        ("no nonzeros", "", matrix(vec![Vec::new(); 77], 5, |_, _| 0.0)),
        ("no rows", "", matrix(Vec::new(), 5, |_, _| 0.0)),
        ("no columns", "", matrix(vec![Vec::new(); 6], 0, |_, _| 0.0)),
    ]
}

fn options() -> [CompressedOptions; 4] {
    let all = CompressedOptions::default();
    [all.clone(), all.clone().values(false), all.clone().kinds(false), all.values(false).kinds(false)]
}

fn compressed<V: Scalar, B: Conversions>(b: &B, a: &Csr<V>) -> Vec<(String, Compressed<V, B>)> {
    let device = a.to_backend(b).unwrap();
    let compressed = options().map(|o| (format!("{o:?}"), Compressed::with_options(b, &device, &o).unwrap()));
    compressed.into_iter().collect()
}

fn bits<V: Scalar>(a: &Csr<V>) -> (Vec<u32>, Vec<[u64; 2]>) {
    (a.parts().indices.to_vec(), a.parts().values.iter().map(|v| v.bits()).collect())
}

/// Every storage is chosen for some matrix, and every bit is restored.
pub fn round_trips<B: Conversions + Products>(b: &B) {
    for (name, expected, a) in matrices() {
        round_trip(b, name, expected, &a);
        round_trip(b, &format!("f32, {name}"), "", &a.map(|v| v as f32));
        round_trip(b, &format!("c64, {name}"), "", &a.map(|v| Complex::new(v, -v)));
    }
}

/// Every bit is restored, whatever is compressed; with the usual options the description contains `expected`.
pub fn round_trip<V: Scalar, B: Conversions + Products>(b: &B, name: &str, expected: &str, a: &Csr<V>) {
    for (options, compressed) in compressed(b, a) {
        let case = format!("{name}, {options}: {}", compressed.describe());
        if options == format!("{:?}", CompressedOptions::default()) {
            assert!(compressed.describe().contains(expected), "{case}: expected {expected}");
        }
        let again = compressed.to_csr(b).unwrap().to_host(b).unwrap();
        assert_eq!(format!("{:?}", again.parts().offsets), format!("{:?}", a.parts().offsets), "{case}");
        assert!(bits(&again) == bits(a), "{case}");
        assert_eq!(
            (compressed.nonzeros(), compressed.rows(), compressed.columns()),
            (a.nonzeros(), a.rows(), a.columns())
        );
    }
}

pub fn check<V: Scalar + Promote<T>, T: Scalar, B: Conversions + Products>(b: &B, name: &str, a: &Csr<V>) {
    let complex = |v: Complex<f64>| T::from_parts(v.re, v.im).unwrap_or_else(|| T::from_f64(v.re));
    let mut random = Random(11);
    let unit = if size_of::<T::Real>() == 4 { f64::from(f32::EPSILON) } else { f64::EPSILON };
    let wide = |v: T| Complex::new(v.re().to_f64(), v.im().to_f64());
    for (options, compressed) in compressed(b, a) {
        for op in [Op::None, Op::Transpose, Op::Conjugate, Op::ConjugateTranspose] {
            let (rows, columns) =
                if op.transposes() { (a.columns(), a.rows()) } else { (a.rows(), a.columns()) };
            let mut vector = |n: usize| -> Vec<T> {
                (0..n).map(|_| complex(Complex::new(random.signed(), random.signed()))).collect()
            };
            let (x, old) = (vector(columns), vector(rows));
            let mut sums: Vec<(Complex<f64>, f64, f64)> = vec![Default::default(); rows];
            for (i, j, v) in a.iter() {
                let (i, j) = if op.transposes() { (j, i) } else { (i, j) };
                let v: T = v.widen();
                let term = wide(if op.conjugates() { v.conj() } else { v }) * wide(x[j]);
                sums[i] = (sums[i].0 + term, sums[i].1 + term.norm(), sums[i].2 + 1.0);
            }
            for (alpha, beta) in [(1.0, 0.0), (-1.5, 0.25)] {
                let case = format!("{name}, {options}, {op:?}, {alpha} {beta}: {}", compressed.describe());
                let y = if beta == 0.0 { vec![T::from_f64(f64::NAN); rows] } else { old.clone() };
                let (x, mut y) = (b.upload(x.clone()).unwrap(), b.upload(y).unwrap());
                compressed.product_op(b, op, T::from_f64(alpha), &x, T::from_f64(beta), &mut y).unwrap();
                for (i, (&y, (sum, size, count))) in b.download(&*y).unwrap().iter().zip(&sums).enumerate() {
                    let carried = if beta == 0.0 { Complex::default() } else { wide(old[i]) * beta };
                    let off = (wide(y) - (sum * alpha + carried)).norm();
                    let bound = 8.0 * (count + 4.0) * unit * (size * alpha.abs() + carried.norm());
                    assert!(off <= bound || !sum.is_finite(), "{case}: row {i} is {y}, off by {off}");
                }
            }
        }
    }
}

/// Products with A, its transpose and their conjugates, compared with a plain sum over the entries.
pub fn products<B: Conversions + Products>(b: &B) {
    for (name, _, a) in matrices() {
        check::<f64, f64, B>(b, name, &a);
        check::<f32, f32, B>(b, name, &a.map(|v| v as f32));
        check::<f32, f64, B>(b, name, &a.map(|v| v as f32));
        let complex = a.map(|v| Complex::new(v, 0.5 * v));
        check::<Complex<f64>, Complex<f64>, B>(b, name, &complex);
    }
}

/// The fused product and dot product: y has the bits of the plain product and is the same every time, x.y is within
/// rounding.
pub fn dots<B: Conversions + Products + VectorOps>(b: &B) {
    dots_of(b, matrices());
}

/// The fused product and dot product, for those matrices that are square.
pub fn dots_of<B: Conversions + Products + VectorOps>(b: &B, matrices: Vec<Named>) {
    for (name, _, a) in matrices.into_iter().filter(|(_, _, a)| a.rows() == a.columns()) {
        let mut random = Random(5);
        let x: Vec<f64> = (0..a.rows()).map(|_| random.signed()).collect();
        let on_device = b.upload(x.clone()).unwrap();
        for (options, compressed) in compressed(b, &a) {
            let (mut y, mut again) = (b.zeros(a.rows()).unwrap(), b.zeros(a.rows()).unwrap());
            let (mut dot, mut second) = (b.zeros(1).unwrap(), b.zeros(1).unwrap());
            compressed.product_op(b, Op::None, 1.0, &on_device, 0.0, &mut y).unwrap();
            compressed.apply_dot(b, &on_device, &mut again, &mut dot).unwrap();
            let (y, again) = (b.download(&*y).unwrap(), b.download(&*again).unwrap());
            let bits = |y: &[f64]| y.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            let case = format!("{name}, {options}: {}", compressed.describe());
            assert!(
                y.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()),
                "{case}"
            );
            let mut third = b.zeros(a.rows()).unwrap();
            compressed.apply_dot(b, &on_device, &mut third, &mut second).unwrap();
            let (dot, second) = (b.download(&*dot).unwrap(), b.download(&*second).unwrap());
            assert_eq!(bits(&dot), bits(&second), "{case}: other bits in a second run");
            let (sum, size) = x
                .iter()
                .zip(&y)
                .fold((0.0, 0.0), |(s, n): (f64, f64), (x, y)| (s + x * y, n + (x * y).abs()));
            let bound = 4.0 * (x.len() as f64 + 2.0) * f64::EPSILON * size;
            assert!((dot[0] - sum).abs() <= bound || !sum.is_finite(), "{case}: {} against {sum}", dot[0]);
        }
    }
}

/// Kernels look up the distance of every code, including that for no entry, before they know whether it is used.
pub fn no_entry_has_a_place<B: Conversions + Products>(b: &B) {
    let mut seen = 0;
    for (name, _, a) in matrices() {
        for (options, compressed) in compressed(b, &a) {
            let CompressedBody::Sections(sections) = compressed.parts().body else { continue };
            let CompressedColumns::Codes(distances) = sections.columns else { continue };
            assert_eq!(B::len(distances), MOST_KEYS, "{name}, {options}");
            seen += 1;
        }
    }
    assert!(seen > 3, "{seen} with codes");
}

/// An infinite or NaN element of x affects the rows that refer to it, and no other.
pub fn padding_never_meets_x<B: Conversions + Products>(b: &B) {
    for (name, _, a) in matrices() {
        let a = a.map(|v| if v.is_finite() { v } else { 1.0 });
        for poison in [f64::INFINITY, f64::NAN] {
            let mut x = vec![1.0; a.columns()];
            let poisoned: Vec<usize> = [0, a.columns() / 2].into_iter().filter(|&j| j < x.len()).collect();
            poisoned.iter().for_each(|&j| x[j] = poison);
            let mut hit = vec![false; a.rows()];
            a.iter().filter(|e| poisoned.contains(&e.1)).for_each(|e| hit[e.0] = true);
            let x = b.upload(x).unwrap();
            for (options, compressed) in compressed(b, &a) {
                let mut y = b.zeros(a.rows()).unwrap();
                compressed.product_op(b, Op::None, 1.0, &x, 0.0, &mut y).unwrap();
                for (i, (y, hit)) in b.download(&*y).unwrap().iter().zip(&hit).enumerate() {
                    assert_eq!(!y.is_finite(), *hit, "{name}, {options}: row {i} is {y}");
                }
            }
        }
    }
}
