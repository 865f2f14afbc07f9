//! Products on the device: the cases of all formats, and those of the device's own algorithms.

use crate::formats::cases::{Expected, entries, on, ragged, reference, to_complex, with_lengths};
use crate::formats::half;
use crate::formats::products::{blocks, fused, padding_never_meets_x, products, stored};
use crate::random::Random;
use num_complex::Complex;
use residua::backend::cuda::CsrAlgorithm;
use residua::backend::{Backend, CsrParts, Gemv, Op, Products, Replay};
use residua::matrix::{Compressed, CompressedOptions, Coo, Csr, Dia, Sell};
use residua::scalar::{Promote, Scalar};
use residua::{Cuda, Host, LinearOperator};

pub fn double(b: &Cuda) {
    products::<f64, f64, _>(b);
}

pub fn single(b: &Cuda) {
    products::<f32, f32, _>(b);
}

pub fn complex(b: &Cuda) {
    products::<Complex<f64>, Complex<f64>, _>(b);
    products::<Complex<f32>, Complex<f32>, _>(b);
}

pub fn narrow(b: &Cuda) {
    products::<f32, f64, _>(b);
    products::<Complex<f32>, Complex<f64>, _>(b);
}

pub fn padding(b: &Cuda) {
    padding_never_meets_x(b);
}

pub fn fused_products(b: &Cuda) {
    fused::<f64, _>(b);
    fused::<f32, _>(b);
    fused::<Complex<f64>, _>(b);
}

pub fn half_diagonals(b: &Cuda) {
    half::of_all_types(b);
}

fn check<T: Scalar>(case: &str, y: &[T], expected: &[Expected]) {
    for (i, (&got, want)) in y.iter().zip(expected).enumerate() {
        let off = (to_complex(got) - want.value).norm();
        assert!(
            off <= want.bound,
            "{case}: element {i} is {got}, expected {}, bound {}",
            want.value,
            want.bound
        );
    }
}

/// alpha, x, beta and y of a case.
fn operands<T: Scalar>(random: &mut Random, rows: usize, columns: usize) -> (T, Vec<T>, T, Vec<T>) {
    (T::from_f64(-1.5), random.vector(columns), T::from_f64(0.25), random.vector(rows))
}

/// Every algorithm is correct for every matrix, and gives the same bits twice.
pub fn csr_algorithms(b: &Cuda) {
    fn cases<V: Scalar + Promote<T>, T: Scalar>(b: &Cuda) {
        let mut random = Random(21);
        for (name, host) in ragged::<V>() {
            let a = on(b, &host);
            let (alpha, x, beta, y) = operands::<T>(&mut random, a.rows(), a.columns());
            let shape = (a.rows(), a.columns());
            let want = reference(shape, &entries(&host), (false, false), (alpha, &x), (beta, Some(&y)));
            let x = b.upload(x).unwrap();
            for algorithm in CsrAlgorithm::ALL {
                let product = || {
                    let mut y = b.upload(y.clone()).unwrap();
                    b.csr_by(algorithm, a.parts(), alpha, &x, beta, &mut y).unwrap();
                    b.download(&y).unwrap()
                };
                let (first, second) = (product(), product());
                check(&format!("{algorithm:?} of {name}"), &first, &want);
                assert_eq!(first, second, "{algorithm:?} of {name}: other bits");
            }
        }
    }
    cases::<f64, f64>(b);
    cases::<f32, f32>(b);
    cases::<f32, f64>(b);
    cases::<Complex<f64>, Complex<f64>>(b);
}

pub fn coordinates_by_atomics(b: &Cuda) {
    let mut random = Random(22);
    for (name, host) in ragged::<f64>() {
        let a = Coo::from_csr(b, &on(b, &host)).unwrap();
        let (alpha, x, beta, y) = operands::<f64>(&mut random, a.rows(), a.columns());
        let shape = (a.rows(), a.columns());
        let want = reference(shape, &entries(&host), (false, false), (alpha, &x), (beta, Some(&y)));
        let (x, mut y) = (b.upload(x).unwrap(), b.upload(y).unwrap());
        b.coo_by_atomics(a.parts(), alpha, &x, beta, &mut y).unwrap();
        check(name, &b.download(&y).unwrap(), &want);
    }
}

/// Rows that span tiles, among short and empty ones.
pub fn rows_of_several_tiles(b: &Cuda) {
    let mut lengths = vec![3; 900];
    lengths.extend([30_000, 0, 0, 5, 9_000, 40_000]);
    lengths.extend([2; 3001]);
    lengths.extend([20_000, 1023, 1024, 1025, 0]);
    cut_rows::<f64>(b, &lengths);
}

/// Long rows among so many short ones that the tiles of large matrices are used, with columns close together or far
/// apart.
pub fn rows_of_several_large_tiles(b: &Cuda) {
    for longest in [5_000, 40_000] {
        let mut lengths = vec![1; 40_000];
        lengths[20_000..20_005].copy_from_slice(&[longest, 0, 2_600, 2_900, 3_000]);
        cut_rows::<f64>(b, &lengths);
        cut_rows::<f32>(b, &lengths);
        cut_rows::<Complex<f64>>(b, &lengths);
    }
}

/// The algorithms that share a row between blocks.
const CUT: [CsrAlgorithm; 2] = [CsrAlgorithm::Balanced, CsrAlgorithm::Binned];

/// Rows that extend beyond their tile by any number of nonzeros: from some number on they are divided.
pub fn rows_that_end_anywhere(b: &Cuda) {
    let lengths: Vec<usize> = (0..600).map(|i| i * 389 % 601).collect();
    cut_rows::<f64>(b, &lengths);
    cut_rows::<f32>(b, &lengths);
    cut_rows::<Complex<f64>>(b, &lengths);
}

/// Each size of tile, for short rows and rows of any length, of which some are divided. Every row is the beginning of
/// one longest row, and values and x are small integers, so sums are exact.
pub fn tiles_of_every_size(b: &Cuda) {
    let mixed = |rows: usize, below: usize, long: &[usize]| {
        let mut lengths: Vec<usize> = (0..rows).map(|i| i * 7919 % below).collect();
        long.iter().enumerate().for_each(|(i, &length)| lengths[rows / 2 + 3 * i] = length);
        lengths
    };
    for lengths in [
        mixed(300_000, 4, &[250_000, 700, 513, 0]),
        mixed(60_000, 30, &[3000, 512, 770, 40_000]),
        mixed(270_000, 64, &[200_000, 2049, 2560, 2561, 300_000]),
    ] {
        let columns = *lengths.iter().max().unwrap();
        let mut offsets = vec![0];
        let mut sums = vec![0.0];
        let x: Vec<f64> = (0..columns).map(|j| (j % 5) as f64 - 1.0).collect();
        let row: Vec<f64> = (0..columns).map(|j| (j % 11) as f64 - 3.0).collect();
        for (a, x) in row.iter().zip(&x) {
            sums.push(sums.last().unwrap() + a * x);
        }
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for &length in &lengths {
            indices.extend(0..length as u32);
            values.extend_from_slice(&row[..length]);
            offsets.push(indices.len());
        }
        let a = on(b, &Csr::from_parts(lengths.len(), columns, offsets, indices, values).unwrap());
        let (x, mut y) = (b.upload(x).unwrap(), b.zeros(lengths.len()).unwrap());
        for algorithm in CUT.into_iter().cycle().take(6) {
            b.csr_by(algorithm, a.parts(), 1.0, &x, 0.0, &mut y).unwrap();
            for (row, (got, length)) in b.download(&y).unwrap().into_iter().zip(&lengths).enumerate() {
                assert_eq!(got, sums[*length], "{algorithm:?}: row {row} of {length} nonzeros");
            }
        }
    }
}

/// Checks products with doubles and with floats on one pattern whose tiles differ in size between the types, as columns
/// are close together and there are many entries. Multigrid once counted tiles for doubles but multiplied in single
/// precision. Sums are exact, as in [`tiles_of_every_size`].
pub fn values_of_two_types_on_one_pattern(b: &Cuda) {
    let mut lengths: Vec<usize> = (0..270_000).map(|i| i * 7919 % 64).collect();
    lengths[135_000..135_003].copy_from_slice(&[200_000, 0, 2561]);
    let columns = 200_000;
    let x: Vec<f64> = (0..columns).map(|j| (j % 5) as f64 - 1.0).collect();
    let row: Vec<f64> = (0..columns).map(|j| (j % 11) as f64 - 3.0).collect();
    let mut sums = vec![0.0];
    row.iter().zip(&x).for_each(|(a, x)| sums.push(sums.last().unwrap() + a * x));
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for &length in &lengths {
        indices.extend(0..length as u32);
        values.extend_from_slice(&row[..length]);
        offsets.push(indices.len());
    }
    let narrow = b.upload(values.iter().map(|&value| value as f32).collect::<Vec<f32>>()).unwrap();
    let a = on(b, &Csr::from_parts(lengths.len(), columns, offsets, indices, values).unwrap());
    let narrow_x = b.upload(x.iter().map(|&value| value as f32).collect::<Vec<f32>>()).unwrap();
    let (x, mut y) = (b.upload(x).unwrap(), b.zeros::<f64>(lengths.len()).unwrap());
    let mut narrow_y = b.zeros::<f32>(lengths.len()).unwrap();
    b.csr_by(CsrAlgorithm::Balanced, a.parts(), 1.0, &x, 0.0, &mut y).unwrap();
    let CsrParts { rows, columns, offsets, indices, shape, .. } = a.parts();
    let parts = CsrParts { rows, columns, offsets, indices, values: &*narrow, shape };
    b.csr_by(CsrAlgorithm::Balanced, parts, 1.0, &narrow_x, 0.0, &mut narrow_y).unwrap();
    let both = b.download(&y).unwrap().into_iter().zip(b.download(&narrow_y).unwrap());
    for (row, ((wide, narrow), length)) in both.zip(&lengths).enumerate() {
        assert_eq!(
            (wide, f64::from(narrow)),
            (sums[*length], sums[*length]),
            "row {row} of {length} nonzeros"
        );
    }
}

fn cut_rows<T: Scalar>(b: &Cuda, lengths: &[usize]) {
    let columns = 2 * lengths.iter().copied().max().unwrap_or(0);
    let host = with_lengths::<T>(columns, lengths, 23);
    let mut random = Random(24);
    let (alpha, x, beta, y) = operands::<T>(&mut random, host.rows(), host.columns());
    let shape = (host.rows(), host.columns());
    let want = reference(shape, &entries(&host), (false, false), (alpha, &x), (beta, Some(&y)));
    let a = on(b, &host);
    let x = b.upload(x).unwrap();
    let start = b.upload(y).unwrap();
    let mut y = b.zeros::<T>(host.rows()).unwrap();
    for algorithm in CUT {
        let mut product = || {
            b.copy(&start, &mut y).unwrap();
            b.csr_by(algorithm, a.parts(), alpha, &x, beta, &mut y).unwrap();
            b.download(&y).unwrap()
        };
        let bits = product();
        check(&format!("{algorithm:?}"), &bits, &want);
        for _ in 0..5 {
            assert_eq!(product(), bits, "{algorithm:?}: other bits");
        }
    }
    let coo = Coo::from_csr(b, &a).unwrap();
    b.copy(&start, &mut y).unwrap();
    coo.product_op(b, residua::backend::Op::None, alpha, &x, beta, &mut y).unwrap();
    check("coo", &b.download(&y).unwrap(), &want);
}

pub fn several_vectors(b: &Cuda) {
    blocks::<f64, f64, _>(b);
    blocks::<f32, f32, _>(b);
    blocks::<f32, f64, _>(b);
    blocks::<Complex<f64>, Complex<f64>, _>(b);
    // Rows shared by several tiles, rows without nonzeros at the ends of tiles, and vectors that are not aligned to 16
    // bytes.
    let mut lengths = vec![3; 400];
    lengths[77] = 5000;
    lengths[78..84].copy_from_slice(&[0, 0, 6000, 0, 2047, 1]);
    lengths[399] = 4100;
    let host = with_lengths::<f64>(6000, &lengths, 33);
    let a = on(b, &host);
    for (vectors, shift) in [(8, 0), (8, 1), (5, 0)] {
        let x: Vec<f64> = Random(34).vector(6000 * vectors + shift);
        let (mut want, mut y) = (vec![0.0; 400 * vectors], b.zeros::<f64>(400 * vectors + shift).unwrap());
        host.block_product(&Host, vectors, 1.5, &x[shift..], 0.0, &mut want).unwrap();
        let there = b.upload(x.clone()).unwrap();
        let x = <Cuda as Backend>::part(&there, shift..6000 * vectors + shift);
        let part = <Cuda as Backend>::part_mut(&mut y, shift..400 * vectors + shift);
        a.block_product(b, vectors, 1.5, x, 0.0, part).unwrap();
        let bits = b.download(part).unwrap();
        for (got, want) in bits.iter().zip(&want) {
            assert!((got - want).abs() <= 1e-11, "{got} for {want}, {vectors} vectors");
        }
        for _ in 0..5 {
            a.block_product(b, vectors, 1.5, x, 0.0, part).unwrap();
            assert_eq!(b.download(part).unwrap(), bits);
        }
    }
}

fn tridiagonal(n: usize) -> Csr<f64> {
    banded(n, 1)
}

/// `reach` entries on either side of the diagonal.
fn banded(n: usize, reach: usize) -> Csr<f64> {
    let columns = |i: usize| i.saturating_sub(reach)..=(i + reach).min(n - 1);
    let mut offsets = vec![0];
    let mut indices = Vec::new();
    (0..n).for_each(|i| {
        indices.extend(columns(i).map(|j| j as u32));
        offsets.push(indices.len());
    });
    let values = indices.iter().enumerate().map(|(k, _)| 1.0 + (k % 7) as f64).collect();
    Csr::from_parts(n, n, offsets, indices, values).unwrap()
}

/// More blocks than the last block can add up by itself, and warps that process several sections one after another,
/// with one lane per row and with several.
pub fn sums_of_many_blocks(b: &Cuda) {
    for (n, reach) in [(1_400_001, 1), (150_003, 16), (25_003, 30)] {
        let host = banded(n, reach);
        let x: Vec<f64> = Random(25).vector(n);
        let (mut y, mut xy) = (vec![0.0; n], vec![0.0]);
        Host.csr_dot(host.parts(), &x, &mut y, &mut xy).unwrap();
        let size: f64 = x.iter().zip(&y).map(|(x, y)| (x * y).abs()).sum();
        let a = on(b, &host);
        let (sell, dia) = (Sell::with_chunks(b, &a, 32, 1).unwrap(), Dia::from_csr(b, &a).unwrap());
        let operators: [&dyn LinearOperator<f64, Cuda>; 3] = [&a, &sell, &dia];
        let x = b.upload(x).unwrap();
        for operator in operators {
            let (mut got, mut dot) = (b.zeros(n).unwrap(), b.zeros(1).unwrap());
            operator.apply_dot(b, &x, &mut got, &mut dot).unwrap();
            let first = b.download(&dot).unwrap();
            assert!((first[0] - xy[0]).abs() <= 1e-12 * size, "{} for {}", first[0], xy[0]);
            for (got, want) in b.download(&got).unwrap().iter().zip(&y) {
                // Entries are at most 7, elements of x at most 1.
                assert!((got - want).abs() <= 1e-13 * (7 * (2 * reach + 1)) as f64, "{got} for {want}");
            }
            for _ in 0..3 {
                operator.apply_dot(b, &x, &mut got, &mut dot).unwrap();
                assert_eq!(b.download(&dot).unwrap(), first);
            }
        }
    }
}

/// The first product with a matrix examines the lengths of its rows. Here that happens inside a recording.
pub fn recorded_first(b: &Cuda) {
    let mut lengths = vec![4; 3000];
    lengths[17] = 2900;
    for (a, other) in
        [with_lengths::<f64>(3000, &lengths, 26), tridiagonal(3000)].map(|a| (on(b, &a), on(b, &a)))
    {
        let x = b.upload(Random(27).vector::<f64>(3000)).unwrap();
        let (mut y, mut want) = (b.zeros(3000).unwrap(), b.zeros(3000).unwrap());
        {
            let mut step = b.record(|| a.product(b, 2.0, &x, 0.0, &mut y)).unwrap();
            step.replay().unwrap();
            step.replay().unwrap();
        }
        other.product(b, 2.0, &x, 0.0, &mut want).unwrap();
        assert_eq!(b.download(&y).unwrap(), b.download(&want).unwrap());
    }
}

/// Products whose blocks may start before the previous launch ends read what that launch wrote, and write what it has
/// read: a long chain of short products, recorded, gives the bits of the same chain with a wait after each.
pub fn chained_products(b: &Cuda) {
    let mut lengths = vec![4; 3000];
    lengths[17] = 2900;
    for host in [with_lengths::<f64>(3000, &lengths, 28), tridiagonal(3000)] {
        let a = on(b, &host);
        let start = b.upload(Random(29).vector::<f64>(3000)).unwrap();
        for (format, a) in stored::<f64, f64, _>(b, &a) {
            let (mut x, mut y) = (b.zeros(3000).unwrap(), b.zeros(3000).unwrap());
            b.copy(&start, &mut x).unwrap();
            for _ in 0..40 {
                a.product(b, 1e-3, &x, 0.0, &mut y).unwrap();
                b.synchronize().unwrap();
                a.product(b, 1e-3, &y, 0.0, &mut x).unwrap();
                b.synchronize().unwrap();
            }
            let waited = b.download(&x).unwrap();
            for _ in 0..5 {
                b.copy(&start, &mut x).unwrap();
                {
                    let mut step = b
                        .record(|| {
                            for _ in 0..10 {
                                a.product(b, 1e-3, &x, 0.0, &mut y)?;
                                a.product(b, 1e-3, &y, 0.0, &mut x)?;
                            }
                            Ok(())
                        })
                        .unwrap();
                    for _ in 0..4 {
                        step.replay().unwrap();
                    }
                }
                assert_eq!(b.download(&x).unwrap(), waited, "{format}");
            }
        }
    }
}

/// A product whose matrix was written by the previous product does not load it too early: recorded, it gives the bits
/// of the same chain with a wait after each.
pub fn products_that_write_the_next_matrix(b: &Cuda) {
    let mut lengths = vec![4; 3000];
    lengths[17] = 2900;
    for host in [with_lengths::<f64>(3000, &lengths, 36), tridiagonal(3000)] {
        let pattern = on(b, &host);
        let nonzeros = pattern.nonzeros();
        // Its products are the values of the next matrix; rows are long enough that they take a while.
        let maker = on(b, &with_lengths::<f64>(3000, &vec![60; nonzeros], 37));
        let (start, ones) =
            (b.upload(Random(38).vector::<f64>(3000)).unwrap(), b.upload(vec![1e-3; 3000]).unwrap());
        for algorithm in CsrAlgorithm::ALL {
            let (mut x, mut values) = (b.zeros(3000).unwrap(), b.zeros(nonzeros).unwrap());
            let mut step = |x: &mut _, wait: bool| {
                b.csr(maker.parts(), Gemv { op: Op::None, alpha: 0.1, x: &*x, beta: 0.0, y: &mut values })?;
                if wait {
                    b.synchronize()?;
                }
                let CsrParts { rows, columns, offsets, indices, shape, .. } = pattern.parts();
                let made = CsrParts { rows, columns, offsets, indices, values: &*values, shape };
                b.csr_by(algorithm, made, 1.0, &ones, 0.0, x)
            };
            b.copy(&start, &mut x).unwrap();
            for _ in 0..20 {
                step(&mut x, true).unwrap();
            }
            let waited = b.download(&x).unwrap();
            b.copy(&start, &mut x).unwrap();
            {
                let mut several = b.record(|| (0..10).try_for_each(|_| step(&mut x, false))).unwrap();
                several.replay().unwrap();
                several.replay().unwrap();
            }
            assert_eq!(b.download(&x).unwrap(), waited, "{algorithm:?}");
        }
    }
}

/// Stencils on grids so large that a thread goes through several planes, with lines of any length: compared with the
/// products of CSR.
pub fn stencils_on_large_grids(b: &Cuda) {
    fn case<T: Scalar>(b: &Cuda, name: &str, a: &Csr<T, Cuda>, tolerance: f64) {
        let compressed = Compressed::with_options(b, a, &CompressedOptions::default()).unwrap();
        let (one, zero, n) = (T::from_f64(1.0), T::from_f64(0.0), a.rows());
        let read = LinearOperator::<T, Cuda>::bytes(&compressed);
        let nothing = read == 2 * n * size_of::<T>();
        assert!(nothing != name.contains("holes"), "{name}: {read} bytes are read");
        let x = b.upload(Random(31).vector::<T>(n)).unwrap();
        let (mut want, mut y) = (b.zeros(n).unwrap(), b.zeros(n).unwrap());
        let (mut again, mut dot) = (b.zeros(n).unwrap(), b.zeros(1).unwrap());
        a.product(b, one, &x, zero, &mut want).unwrap();
        compressed.product_op(b, Op::None, one, &x, zero, &mut y).unwrap();
        compressed.apply_dot(b, &x, &mut again, &mut dot).unwrap();
        let (want, y) = (b.download(&want).unwrap(), b.download(&y).unwrap());
        assert!(y == b.download(&again).unwrap(), "{name}: another y with the dot product");
        for (i, (&y, &want)) in y.iter().zip(&want).enumerate() {
            let off = (to_complex(y) - to_complex(want)).norm();
            assert!(off <= tolerance, "{name}: row {i} is {y}, expected {want}");
        }
    }
    case::<f64>(b, "7 points", &b.poisson3d(96, 66, 70).unwrap(), 1e-13);
    case::<f64>(b, "27 points, odd lines", &b.poisson3d_27(51, 100, 60).unwrap(), 1e-12);
    case::<f32>(b, "7 points, in pairs", &b.poisson3d(130, 70, 65).unwrap(), 1e-4);
    case::<f32>(b, "27 points", &b.poisson3d_27(128, 65, 64).unwrap(), 1e-4);
    case::<f64>(b, "27 points, no two alike", &on(b, &crate::compressed_cases::skewed(64, 65, 66)), 1e-11);
    case::<Complex<f32>>(b, "27 complex points", &b.poisson3d_27(64, 64, 70).unwrap(), 1e-4);
    let holed = |a: residua::Result<Csr<f64>>, cut| crate::compressed_cases::holed(&a.unwrap(), cut);
    let cubes = holed(residua::generate::poisson3d(104, 101, 103), true);
    case::<f64>(b, "7 points with holes", &on(b, &cubes), 1e-13);
    case::<f32>(b, "7 points with holes in f32", &on(b, &cubes.map(|v| v as f32)), 1e-4);
    let squares = holed(residua::generate::poisson2d_9(1030, 1051), false);
    case::<f64>(b, "9 points with holes", &on(b, &squares), 1e-13);
    case::<f32>(b, "9 points with holes in f32", &on(b, &squares.map(|v| v as f32)), 1e-4);
}
