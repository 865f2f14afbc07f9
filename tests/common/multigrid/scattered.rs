//! Inverses of blocks of arbitrary unknowns, and products with them, compared with loops over dense blocks.

use super::Able;
use crate::random::Random;
use num_complex::Complex;
use num_traits::{Float, Zero};
use residua::backend::{Backend, Gemv, MOST_OF_BLOCK, Op, ScatteredBlocks};
use residua::scalar::{Promote, Real};
use residua::{Csr, Scalar};

/// Blocks of random unknowns, of every possible size.
pub fn inverses_of_blocks<B: Able>(backend: &B) {
    for unknowns in [1, 12, 700, 6000] {
        each_kind::<f64, B>(backend, unknowns, 900.0);
        each_kind::<Complex<f64>, B>(backend, unknowns, 400.0);
        each_kind::<f32, B>(backend, unknowns, 100.0);
        each_kind::<Complex<f32>, B>(backend, unknowns, 50.0);
    }
    for blocks in [vec![vec![0], vec![]], vec![vec![0, 0]], vec![vec![1, 0]], vec![vec![0], vec![2]]] {
        assert!(ScatteredBlocks::new(&blocks).is_err(), "{blocks:?}");
    }
    let all: Vec<u32> = (0..=MOST_OF_BLOCK).collect();
    assert!(ScatteredBlocks::new(&[all]).is_err());
}

/// Tests each kind of block; the entries of some blocks are of the size 2^`decades` or 2^-`decades`.
fn each_kind<T: Scalar, B: Able>(backend: &B, unknowns: usize, decades: f64) {
    for (hermitian, outside) in [(true, false), (true, true), (false, true)] {
        // Pivots are assumed to be real.
        if hermitian || !T::COMPLEX {
            case::<T, B>(backend, unknowns, decades, hermitian, outside);
        }
    }
}

fn case<T: Scalar, B: Able>(backend: &B, unknowns: usize, decades: f64, hermitian: bool, with_outside: bool) {
    let mut random = Random(unknowns as u64);
    let blocks = random_blocks(&mut random, unknowns);
    let a = matrix::<T>(&mut random, &blocks, unknowns, decades, hermitian);
    let scales: Vec<f64> = (0..unknowns)
        .map(|i| if with_outside { a.get(i, i).map_or(0.0, |d| 1.0 / d.re().to_f64().sqrt()) } else { 0.0 })
        .collect();
    let there = ScatteredBlocks::new(&blocks).unwrap().into_backend(backend).unwrap();
    let entries = blocks.iter().map(|block| block.len().pow(2)).sum::<usize>();
    assert_eq!((there.count(), there.unknowns(), there.entries()), (blocks.len(), unknowns, entries));
    let mut units = backend.zeros::<T::Real>(blocks.len()).unwrap();
    let mut values = backend.zeros::<T::Lower>(entries).unwrap();
    let on = a.to_backend(backend).unwrap();
    let scales_there = backend.upload(scales.clone()).unwrap();
    // A fraction of the diagonal is added if the sums of the entries outside of the blocks are not.
    let part = if with_outside { 0.0 } else { 0.25 };
    let added = (&*scales_there, part);
    backend.group_inverses(on.parts(), &there, added, hermitian, &mut units, &mut values).unwrap();
    let (host_units, host_values) = (backend.download(&units).unwrap(), backend.download(&values).unwrap());
    let inverses = dense_of(&blocks, &host_units, &host_values);
    for (block, inverse) in blocks.iter().zip(&inverses) {
        check_inverse(&a, (&scales, part), block, inverse, hermitian);
    }
    products(backend, &there, (&units, &values), (&blocks, &inverses), &mut random);
}

/// Each unknown in one block, in random order.
fn random_blocks(random: &mut Random, unknowns: usize) -> Vec<Vec<u32>> {
    let mut left: Vec<u32> = (0..unknowns as u32).collect();
    let mut blocks = Vec::new();
    while !left.is_empty() {
        let size = 1 + random.below(MOST_OF_BLOCK as usize);
        let mut block: Vec<u32> =
            (0..size.min(left.len())).map(|_| left.swap_remove(random.below(left.len()))).collect();
        block.sort_unstable();
        blocks.push(block);
    }
    blocks
}

/// A matrix with dominant diagonals, couplings between blocks, and some zero blocks. The entries of each block are
/// scaled by a random factor, between 2^-`decades` and 2^`decades`.
fn matrix<T: Scalar>(
    random: &mut Random,
    blocks: &[Vec<u32>],
    unknowns: usize,
    decades: f64,
    hermitian: bool,
) -> Csr<T> {
    let mut rows = vec![Vec::<(u32, T)>::new(); unknowns];
    let mut sizes = vec![1.0; unknowns];
    for (k, block) in blocks.iter().enumerate() {
        let size = (decades / 2.0 * random.signed()).exp2();
        block.iter().for_each(|&i| sizes[i as usize] = size);
        if k % 7 == 5 {
            continue;
        }
        for (at, &i) in block.iter().enumerate() {
            let diagonal = T::from_f64((2.0 * MOST_OF_BLOCK as f64 + random.signed()) * size * size);
            rows[i as usize].push((i, diagonal));
            for &j in &block[..at] {
                let value = random.scalar::<T>() * T::from_f64(size * size);
                let other =
                    if hermitian { value.conj() } else { random.scalar::<T>() * T::from_f64(size * size) };
                rows[i as usize].push((j, value));
                rows[j as usize].push((i, other));
            }
        }
        // A coupling to an unknown of the previous block.
        if k % 7 != 6 && k > 0 {
            let (i, j) = (block[0], blocks[k - 1][0]);
            let value = random.scalar::<T>() * T::from_f64(size * sizes[j as usize]);
            rows[i as usize].push((j, value));
            rows[j as usize].push((i, value.conj()));
        }
    }
    let mut offsets = vec![0];
    for row in &mut rows {
        row.sort_unstable_by_key(|entry| entry.0);
        offsets.push(offsets[offsets.len() - 1] + row.len());
    }
    let (columns, values) = rows.into_iter().flatten().unzip();
    Csr::from_parts(unknowns, unknowns, offsets, columns, values).unwrap()
}

/// Entry (i, j) of each block at [i][j].
fn dense_of<T: Scalar>(blocks: &[Vec<u32>], units: &[T::Real], values: &[T::Lower]) -> Vec<Vec<Vec<T>>> {
    let mut start = 0;
    let of_block = |(block, &unit): (&Vec<u32>, &T::Real)| {
        let (size, first) = (block.len(), start);
        start += size * size;
        let at = |i: usize, j: usize| Promote::<T>::widen(values[first + j * size + i]) * T::from_real(unit);
        assert_eq!(unit.to_f64().log2().fract(), 0.0, "a unit is a power of two");
        (0..size).map(|i| (0..size).map(|j| at(i, j)).collect()).collect()
    };
    blocks.iter().zip(units).map(of_block).collect()
}

fn check_inverse<T: Scalar>(
    a: &Csr<T>,
    (scales, part): (&[f64], f64),
    block: &[u32],
    inverse: &[Vec<T>],
    hermitian: bool,
) {
    let entry = |i: u32, j: u32| a.get(i as usize, j as usize).unwrap_or(T::zero());
    if block.iter().all(|&i| entry(i, i) == T::zero()) {
        return assert!(inverse.iter().flatten().all(|&value| value == T::zero()));
    }
    for (row, &i) in block.iter().enumerate() {
        let (columns, values) = a.row(i as usize);
        let outside = columns.iter().zip(values).filter(|(j, _)| !block.contains(j));
        let outside: f64 = outside.map(|(&j, value)| value.abs().to_f64() * scales[j as usize]).sum();
        let more = if scales[i as usize] > 0.0 { outside / scales[i as usize] } else { 0.0 };
        let more = T::from_f64(more) + T::from_f64(part) * entry(i, i);
        for column in 0..block.len() {
            let sum = block.iter().zip(inverse).fold(T::zero(), |sum, (&k, inverse)| {
                let more = if i == k { more } else { T::zero() };
                sum + (entry(i, k) + more) * inverse[column]
            });
            let expected = if row == column { T::one() } else { T::zero() };
            assert!((sum - expected).abs().to_f64() < 1e-5, "{i}, column {column}: {sum}");
            if hermitian {
                assert_eq!(inverse[row][column], inverse[column][row].conj());
            }
        }
    }
}

/// Units and values of inverses.
type Inverses<'a, T, B> =
    (&'a <B as Backend>::Slice<<T as Scalar>::Real>, &'a <B as Backend>::Slice<<T as Scalar>::Lower>);

fn products<T: Scalar, B: Able>(
    backend: &B,
    there: &ScatteredBlocks<B>,
    (units, values): Inverses<'_, T, B>,
    (blocks, inverses): (&[Vec<u32>], &[Vec<Vec<T>>]),
    random: &mut Random,
) {
    let unknowns = there.unknowns();
    let x = random.vector::<T>(unknowns);
    for (alpha, beta) in
        [(1.0, 0.0), (-0.75, 1.0), (1.25, 0.5)].map(|(a, b)| (T::from_f64(a), T::from_f64(b)))
    {
        let not_read = T::from_real(T::Real::nan());
        let before = if beta == T::zero() { vec![not_read; unknowns] } else { random.vector::<T>(unknowns) };
        let mut y = backend.upload(before.clone()).unwrap();
        let x_there = backend.upload(x.clone()).unwrap();
        let gemv = Gemv { op: Op::None, alpha, x: &*x_there, beta, y: &mut *y };
        backend.group_product(there, units, values, gemv).unwrap();
        let y = backend.download(&y).unwrap();
        for (block, inverse) in blocks.iter().zip(inverses) {
            for (&i, row) in block.iter().zip(inverse) {
                let (mut sum, mut size) = (T::zero(), T::Real::zero());
                for (&j, &value) in block.iter().zip(row) {
                    sum += value * x[j as usize];
                    size += (value * x[j as usize]).abs();
                }
                let i = i as usize;
                let old = if beta == T::zero() { T::zero() } else { beta * before[i] };
                let most = T::Real::from_f64(50.0) * T::Real::epsilon() * (size + old.abs());
                assert!((y[i] - (alpha * sum + old)).abs() <= most, "unknown {i}: {} and {sum}", y[i]);
            }
        }
    }
    let short = backend.zeros::<T>(unknowns - 1).unwrap();
    let mut y = backend.zeros::<T>(unknowns).unwrap();
    let gemv = Gemv { op: Op::None, alpha: T::one(), x: &*short, beta: T::zero(), y: &mut *y };
    assert!(backend.group_product(there, units, values, gemv).is_err());
}
