//! Two-step Arnoldi process on the CPU.

use super::basis::{negligible, rotate};
use super::sums::{Several, chunk_size, for_chunks, sum_chunks};
use crate::backend::pairs::{BEHIND, MOST_COSINE, MOST_VECTORS, check_vectors};
use crate::backend::{CgStatus, Host, PairScalars, Slot};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Promote, Real, Scalar};
use num_traits::{Float, One, Zero};

/// The number of basis vectors that are processed in one pass over the right-hand vectors.
const AT_ONCE: usize = 4;

/// The number of right-hand vectors in the products with the basis.
const RIGHT: usize = 4;

/// The number of rows whose new entries are computed before the next rows, so that they stay in the first-level cache.
const ROWS: usize = 512;

/// Rounds a number to the precision of the basis.
fn rounded<S: Scalar, T: Scalar>(x: T) -> S {
    S::from_parts(x.re().to_f64(), x.im().to_f64()).unwrap_or_default()
}

/// x^H y for a stored vector x, with several partial sums.
fn inner<S: Scalar + Promote<T>, T: Scalar>(x: &[S], y: &[T]) -> T {
    const LANES: usize = 8;
    let mut sums = [T::zero(); LANES];
    let (xs, x_rest) = x.as_chunks::<LANES>();
    let (ys, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in xs.iter().zip(ys) {
        for lane in 0..LANES {
            sums[lane] += <S as Promote<T>>::widen(x[lane]).conj() * y[lane];
        }
    }
    let rest: T = x_rest.iter().zip(y_rest).map(|(&x, &y)| <S as Promote<T>>::widen(x).conj() * y).sum();
    sums.into_iter().sum::<T>() + rest
}

/// [`inner`] of two stored vectors.
fn inner_stored<S: Scalar + Promote<T>, T: Scalar>(x: &[S], y: &[S]) -> T {
    let mut room = [T::zero(); ROWS];
    let mut sum = T::zero();
    for (x, y) in x.chunks(ROWS).zip(y.chunks(ROWS)) {
        room.iter_mut().zip(y).for_each(|(to, &y)| *to = <S as Promote<T>>::widen(y));
        sum += inner(x, &room[..y.len()]);
    }
    sum
}

/// See [`VectorOps::pair_products`](crate::backend::VectorOps::pair_products).
pub(super) fn products<S: Scalar + Promote<T>, T: Scalar>(
    basis: &[S],
    count: usize,
    [first, second]: [&[T]; 2],
    out: &mut [T],
) -> Result<()> {
    let n = first.len();
    check_vectors(basis.len(), count, 0, n, &[second.len()])?;
    let length = RIGHT * count + 3;
    if count == 0 || out.len() < length {
        return Err(Error::InvalidArgument(format!("{} places for the products of {count}", out.len())));
    }
    let size = chunk_size(n);
    let last = [count.saturating_sub(2), count - 1];
    for start in (0..count).step_by(AT_ONCE) {
        let vectors = AT_ONCE.min(count - start);
        let sums = sum_chunks(n, first.par_chunks(size).enumerate(), |(chunk, part)| {
            let rows = chunk * size..chunk * size + part.len();
            let stored = |j: usize| &basis[j * n + rows.start..j * n + rows.end];
            let mut sums = Several::<T, { AT_ONCE * RIGHT }>::default();
            for (i, sums) in sums.0.chunks_mut(RIGHT).take(vectors).enumerate() {
                let v = stored(start + i);
                sums[0] = inner(v, part);
                sums[1] = inner(v, &second[rows.clone()]);
                sums[2] = inner_stored(v, stored(last[0]));
                sums[3] = inner_stored(v, stored(last[1]));
            }
            sums
        });
        for i in 0..vectors {
            for right in 0..RIGHT {
                out[right * count + start + i] = sums.0[i * RIGHT + right];
            }
        }
    }
    let own = sum_chunks(n, first.par_chunks(size).zip(second.par_chunks(size)), |(a, b)| {
        Several([inner(a, a), inner(a, b), inner(b, b)])
    });
    out[RIGHT * count..length].copy_from_slice(&own.0);
    Ok(())
}

/// See [`VectorOps::pair_update`](crate::backend::VectorOps::pair_update).
pub(super) fn update<S: Scalar + Promote<T>, T: Scalar>(
    basis: &mut [S],
    count: usize,
    [first, second]: [&[T]; 2],
    factors: &[T],
    v: &mut [T],
    squares: &mut [T],
) -> Result<()> {
    let n = first.len();
    check_vectors(basis.len(), count, 2, n, &[second.len(), v.len()])?;
    let width = check_factors(factors.len(), count, squares.len())?;
    let (stored, fresh) = basis.split_at_mut(count * n);
    let (new, fresh) = fresh.split_at_mut(n);
    let behind = &factors[2 * width..];
    let (r, scale) = (behind[0], [1, 2].map(|k| T::from_real(Float::recip(behind[k].re()))));
    let size = chunk_size(n);
    let chunks = first.par_chunks(size).zip(second.par_chunks(size)).enumerate();
    let chunks = chunks.zip(new.par_chunks_mut(size)).zip(fresh[..n].par_chunks_mut(size));
    let sums = sum_chunks(n, chunks.zip(v.par_chunks_mut(size)), |parts| {
        let ((((chunk, (first, second)), new), newest), v) = parts;
        let mut sums = Several([T::zero(); 2]);
        for at in (0..first.len()).step_by(ROWS) {
            let rows = ROWS.min(first.len() - at);
            let (mut a, mut b) = ([T::zero(); ROWS], [T::zero(); ROWS]);
            a[..rows].copy_from_slice(&first[at..at + rows]);
            b[..rows].copy_from_slice(&second[at..at + rows]);
            for j in 0..count {
                let (h, k) = (factors[j], factors[width + j]);
                let start = j * n + chunk * size + at;
                for ((a, b), &v) in a.iter_mut().zip(&mut b).zip(&stored[start..start + rows]) {
                    let v = <S as Promote<T>>::widen(v);
                    *a -= h * v;
                    *b -= k * v;
                }
            }
            for i in 0..rows {
                new[at + i] = rounded(a[i] * scale[0]);
                let one = <S as Promote<T>>::widen(new[at + i]);
                newest[at + i] = rounded((b[i] - r * one) * scale[1]);
                let two = <S as Promote<T>>::widen(newest[at + i]);
                v[at + i] = two;
                sums.0[0] += T::from_real(one.abs2());
                sums.0[1] += T::from_real(two.abs2());
            }
        }
        sums
    });
    squares[..2].copy_from_slice(&sums.0);
    Ok(())
}

/// Checks lengths, and returns the distance between the two columns of `length` factors for `count` vectors.
pub(in crate::backend) fn check_factors(length: usize, count: usize, squares: usize) -> Result<usize> {
    let width = length.saturating_sub(BEHIND) / 2;
    if length < BEHIND || width < count || squares < 2 {
        return Err(Error::InvalidArgument(format!(
            "{length} factors and {squares} squares for {count} vectors"
        )));
    }
    Ok(width)
}

/// See [`VectorOps::basis_combination`](crate::backend::VectorOps::basis_combination).
pub(super) fn combination<S: Scalar + Promote<T>, T: Scalar>(
    basis: &[S],
    count: usize,
    c: &[T],
    x: &mut [T],
) -> Result<()> {
    let n = x.len();
    check_vectors(basis.len(), count, 0, n, &[])?;
    if c.len() < count {
        return Err(Error::InvalidArgument(format!("{} factors for {count} vectors", c.len())));
    }
    let size = chunk_size(n);
    for_chunks(n, x.par_chunks_mut(size).enumerate(), |(chunk, x)| {
        x.fill(T::zero());
        for (j, &c) in c[..count].iter().enumerate() {
            let start = j * n + chunk * size;
            for (x, &v) in x.iter_mut().zip(&basis[start..start + n.min(size)]) {
                *x += c * <S as Promote<T>>::widen(v);
            }
        }
    });
    Ok(())
}

/// See [`VectorOps::pair_factors`](crate::backend::VectorOps::pair_factors).
pub(super) fn factors<T: Scalar>(column: usize, pair: PairScalars<'_, T, Host>) -> Result<()> {
    pair.check(column)?;
    let PairScalars { layout, products, dense, state, taken, lone, .. } = pair;
    let (status, ended) = (Slot::STATUS.place(), Slot::ENDED.place());
    if lone {
        if state[status] != T::zero() || state[taken.place()].re().to_f64() != column as f64 {
            return Ok(());
        }
    } else {
        state[ended] = state[status];
        if state[ended] != T::zero() {
            return Ok(());
        }
    }
    let (width, count) = (layout.width(), column + 1);
    let (gram, rest) = dense.split_at_mut(width * width);
    let row = |k: usize| &products[k * count..(k + 1) * count];
    for (at, of) in [(column.wrapping_sub(1), 2), (column, 3)] {
        if at < count {
            for (i, &g) in row(of)[..=at].iter().enumerate() {
                gram[i + at * width] = g;
                gram[at + i * width] = g.conj();
            }
        }
    }
    let squares: [T; 3] = [products[4 * count], products[4 * count + 1], products[4 * count + 2]];
    let most = T::Real::from_f64(MOST_COSINE * MOST_COSINE);
    let mut verdict = CgStatus::Running;
    for at in [column.saturating_sub(1), column] {
        for i in 0..=at {
            let (own, other) = (gram[i + i * width].re(), gram[at + at * width].re());
            let oblique = i < at && gram[i + at * width].abs2() > most * own * other;
            if oblique || !(own > T::Real::zero() && other > T::Real::zero()) {
                verdict = CgStatus::Breakdown;
            }
        }
    }
    if !(squares.iter().all(|s| s.is_finite()) && products[..4 * count].iter().all(|p| p.is_finite())) {
        verdict = CgStatus::NotFinite;
    }
    if verdict != CgStatus::Running {
        neutralise(column, width, &mut dense[layout.triangle().start..]);
        dense[layout.right().start + column] = T::zero();
        (state[status], state[ended]) = (T::from_real(verdict.to_real()), T::from_real(verdict.to_real()));
        return Ok(());
    }
    let h = [row(0), row(1)].map(|t| corrected(gram, width, t));
    let dot = |h: &[T], t: &[T]| h.iter().zip(t).map(|(h, t)| h.conj() * *t).sum::<T>();
    let first = length(squares[0].re() - dot(&h[0][..count], row(0)).re(), squares[0].re());
    let r = (squares[1] - dot(&h[0][..count], row(1))) * T::from_real(Float::recip(first));
    let left = squares[2].re() - dot(&h[1][..count], row(1)).re() - r.abs2();
    let second = length(left, squares[2].re());
    rest[..count].copy_from_slice(&h[0][..count]);
    rest[width..width + count].copy_from_slice(&h[1][..count]);
    let scalars = [r, T::from_real(first), T::from_real(second), squares[0], squares[2]];
    rest[2 * width..2 * width + BEHIND].copy_from_slice(&scalars);
    let combination = &mut dense[layout.combination()];
    let one = &mut combination[column * width..(column + 1) * width];
    one.fill(T::zero());
    one[column] = T::one();
    if !lone {
        let two = &mut combination[(column + 1) * width..(column + 2) * width];
        two.fill(T::zero());
        two[..count].copy_from_slice(&h[0][..count]);
        two[count] = T::from_real(first);
    }
    Ok(())
}

/// Returns G^-1 t for a G that is nearly diagonal: two more steps of Jacobi's iteration after the first.
fn corrected<T: Scalar>(gram: &[T], width: usize, t: &[T]) -> [T; MOST_VECTORS] {
    let mut h = [T::zero(); MOST_VECTORS];
    let scale = |i: usize, t: T| t * T::from_real(Float::recip(gram[i + i * width].re()));
    for (i, &t) in t.iter().enumerate() {
        h[i] = scale(i, t);
    }
    for _ in 0..2 {
        let before = h;
        for (i, &right) in t.iter().enumerate() {
            let image: T = (0..t.len()).map(|j| gram[i + j * width] * before[j]).sum();
            h[i] += scale(i, right - image);
        }
    }
    h
}

/// Returns the length of the remainder of a vector from its squared length `left`, but at least the rounding errors of
/// the whole vector, whose squared length is `whole`; 1 for a zero vector.
fn length<R: Real>(left: R, whole: R) -> R {
    if whole.is_nan() || whole <= R::zero() {
        return R::one();
    }
    let least = whole * R::epsilon() * R::epsilon();
    Float::sqrt(if left > least { left } else { least })
}

/// Sets the column of R for a vector that is not used, so that y is zero there.
fn neutralise<T: Scalar>(column: usize, width: usize, triangle: &mut [T]) {
    let entries = &mut triangle[column * width..(column + 1) * width];
    entries.fill(T::zero());
    entries[column] = T::one();
}

/// See [`VectorOps::pair_columns`](crate::backend::VectorOps::pair_columns).
pub(super) fn columns<T: Scalar>(column: usize, pair: PairScalars<'_, T, Host>) -> Result<()> {
    pair.check(column)?;
    let PairScalars { layout, squares, dense, state, taken, lone, .. } = pair;
    let status = Slot::STATUS.place();
    if state[status] != T::zero() || state[taken.place()].re().to_f64() != column as f64 {
        return Ok(());
    }
    let (width, count) = (layout.width(), column + 1);
    let (before, rest) = dense.split_at_mut(layout.triangle().start);
    let (triangle, rest) = rest.split_at_mut(layout.columns * width);
    let (rotations, right) = rest.split_at_mut(2 * layout.columns);
    let factors = &before[layout.factors()];
    let behind = &factors[2 * width..];
    let norm = |i: usize| T::from_real(Float::sqrt(before[i + i * width].re()));
    let own = |k: usize| if lone { T::Real::one() } else { Float::sqrt(squares[k].re()) };
    let below = |k: usize| {
        let (below, whole) = (behind[1 + k].re() * own(k), Float::sqrt(behind[3 + k].re()));
        if below <= negligible::<T::Real>() * whole { T::Real::zero() } else { below }
    };
    let steps = 1 + usize::from(!lone);
    let mut whole = steps;
    for step in 0..steps {
        let j = column + step;
        let entries = &mut triangle[j * width..(j + 1) * width];
        entries.fill(T::zero());
        for i in 0..count {
            entries[i] = factors[step * width + i] * norm(i);
        }
        if step == 1 {
            entries[count] = behind[0] * T::from_real(own(0));
        }
        // If the first of the two new basis vectors is zero, the second is meaningless.
        let void = step == 1 && below(0).is_zero();
        let fault = if void { None } else { rotate(j, entries, below(step), rotations, right, state) };
        if void || fault.is_some() {
            neutralise(j, width, triangle);
            right[j] = T::zero();
        }
        if let Some(fault) = fault {
            // If the recurrence ended with the first column, a fault of the second does not matter.
            if state[status] == T::zero() {
                state[status] = T::from_real(fault.to_real());
                state[Slot::ENDED.place()] = state[status];
                whole = step;
            }
            break;
        }
    }
    state[taken.place()] = T::from_f64((column + whole) as f64);
    Ok(())
}
