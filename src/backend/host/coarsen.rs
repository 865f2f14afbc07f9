//! Setup steps of algebraic multigrid, on the CPU.

use super::Host;
use super::product::scattered;
use super::sparse::Rows;
use crate::backend::{
    CoarseningSteps, CsrParts, CsrPattern, EXPONENTS, Gemv, NO_GROUP, OffsetsRef, SMALLEST_LUMPED,
    ScatteredBlocks, with_offsets,
};
use crate::error::{Error, Result};
use crate::parallel::both;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Real, Scalar};
use num_traits::{Float, One, Zero};
use std::sync::atomic::{AtomicU32, Ordering};

/// With at most this many strong neighbours, groups are searched linearly.
const FEW: usize = 24;

/// The minimum number of nodes for each thread.
pub(super) const AT_LEAST: usize = 1 << 10;

/// Sets every element from its index, in parallel.
pub(super) fn each<T: Send>(out: &mut [T], set: impl Fn(usize, &mut T) + Sync) {
    out.par_iter_mut().enumerate().with_min_len(AT_LEAST).for_each(|(i, out)| set(i, out));
}

/// The rows of a matrix with their values.
pub(super) struct Entries<'a, V> {
    rows: Rows<'a>,
    values: &'a [V],
}

impl<'a, V: Scalar> Entries<'a, V> {
    pub(super) fn of(a: CsrParts<'a, V, Host>) -> Self {
        Self { rows: Rows::of(a.pattern()), values: a.values }
    }

    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> impl Iterator<Item = (usize, V)> + Clone + 'a {
        let range = self.rows.range(i);
        both(&self.rows.indices[range.clone()], &self.values[range]).map(|(&j, &value)| (j as usize, value))
    }

    /// The row without its diagonal entry.
    #[inline(always)]
    pub(super) fn others(&self, i: usize) -> impl Iterator<Item = (usize, V)> + Clone + 'a {
        self.row(i).filter(move |(j, _)| *j != i)
    }
}

/// Calls `write` for each row with the row's parts of two arrays; the rows start at `start(row)` in both.
fn fill_rows<A: Send, B: Send>(
    rows: usize,
    start: impl Fn(usize) -> usize + Sync,
    arrays: (&mut [A], &mut [B]),
    write: impl Fn(usize, &mut [A], &mut [B]) + Sync,
) {
    fill_rows_in(rows, start, arrays, || (), |row, first, second, &mut ()| write(row, first, second));
}

/// [`fill_rows`] with a workspace for each task.
fn fill_rows_in<A: Send, B: Send, W>(
    rows: usize,
    start: impl Fn(usize) -> usize + Sync,
    (first, second): (&mut [A], &mut [B]),
    memory: impl Fn() -> W + Sync,
    write: impl Fn(usize, &mut [A], &mut [B], &mut W) + Sync,
) {
    let chunks = row_chunks(&start, rows);
    let parts = split_rows(&chunks, &start, first);
    let parts = parts.into_par_iter().zip(split_rows(&chunks, &start, second));
    parts.for_each(|((rows, first), (_, second))| {
        let (before, mut memory) = (start(rows.start), memory());
        for row in rows {
            let range = start(row) - before..start(row + 1) - before;
            write(row, &mut first[range.clone()], &mut second[range], &mut memory);
        }
    });
}

/// 1 / sqrt(a_ii), or 0 if a_ii is not positive.
fn inverse_root<V: Scalar>(a: &Entries<'_, V>, i: usize) -> f64 {
    let range = a.rows.range(i);
    let place = a.rows.indices[range.clone()].binary_search(&(i as u32));
    let diagonal = place.map_or(0.0, |place| a.values[range][place].re().to_f64());
    if diagonal > 0.0 { 1.0 / diagonal.sqrt() } else { 0.0 }
}

/// Computes row i of I - omega D^-1 F, which has one entry more than i has strong neighbours.
fn damped_row<V: Scalar>(
    i: usize,
    a: &Entries<'_, V>,
    strong: &[u32],
    omega: V::Real,
    (indices, values): (&mut [u32], &mut [V]),
) {
    let mut neighbours = strong.iter().copied().peekable();
    let (mut place, mut at_diagonal) = (0, None);
    let (mut diagonal, mut lumped) = (V::zero(), V::zero());
    for (j, value) in a.row(i) {
        if at_diagonal.is_none() && j >= i {
            at_diagonal = Some(place);
            place += 1;
        }
        if j == i {
            diagonal = value;
        } else if neighbours.next_if_eq(&(j as u32)).is_some() {
            (indices[place], values[place]) = (j as u32, value);
            place += 1;
        } else {
            lumped += value;
        }
    }
    let at_diagonal = at_diagonal.unwrap_or(place);
    indices[at_diagonal] = i as u32;
    let whole = diagonal + lumped;
    if whole.re() >= V::Real::from_f64(SMALLEST_LUMPED) * diagonal.re() {
        diagonal = whole;
    }
    values[at_diagonal] = diagonal;
    let sum = values.iter().fold(V::Real::zero(), |sum, value| sum + value.abs());
    let damped = sum > V::Real::zero() && !strong.is_empty();
    let scale = if damped { -omega / sum } else { V::Real::zero() };
    values.iter_mut().for_each(|value| *value *= V::from_real(scale));
    values[at_diagonal] += V::one();
}

/// Returns the start of a row.
fn start_of(offsets: OffsetsRef<'_, Host>, row: usize) -> usize {
    with_offsets!(offsets, offsets => offsets[row].to_usize())
}

/// Inverts a small Hermitian positive definite matrix in place, by rows, with Gauss-Jordan elimination without row
/// exchanges (Golub and Van Loan, 3.4). If a pivot is only rounding error, its row and column are set to zero.
fn invert<V: Scalar>(a: &mut [V], size: usize) {
    let largest = (0..size).fold(V::Real::zero(), |most, i| Float::max(most, a[i * size + i].abs()));
    let smallest = largest * <V::Real as Float>::epsilon() * V::Real::from_f64(size as f64);
    for p in 0..size {
        let pivot = a[p * size + p].re();
        let regular = pivot > smallest;
        let reciprocal = if regular { V::from_real(V::Real::one() / pivot) } else { V::zero() };
        for j in 0..size {
            let at = p * size + j;
            a[at] = if j == p { reciprocal } else { a[at] * reciprocal };
        }
        for i in (0..size).filter(|&i| i != p) {
            let factor = a[i * size + p];
            a[i * size + p] = V::zero();
            for j in 0..size {
                let above = a[p * size + j];
                a[i * size + j] -= factor * above;
            }
        }
    }
}

/// Computes the inverse of a block of A, by rows. Before that, it adds to each diagonal entry the magnitudes of its
/// row's entries outside of the block, and a fraction of the entry itself.
fn inverse_of_block<V: Scalar>(
    a: &Entries<'_, V>,
    members: &[u32],
    (scales, part): (&[f64], f64),
    dense: &mut Vec<V>,
) {
    let size = members.len();
    dense.clear();
    dense.resize(size * size, V::zero());
    for (row, &i) in members.iter().enumerate() {
        let i = i as usize;
        let mut outside = 0.0;
        for (j, value) in a.row(i) {
            match members.binary_search(&(j as u32)) {
                Ok(column) => dense[row * size + column] = value,
                Err(_) => outside += value.abs().to_f64() * scales[j],
            }
        }
        let own = &mut dense[row * size + row];
        *own += V::from_f64(part) * *own;
        if scales[i] > 0.0 {
            *own += V::from_f64(outside / scales[i]);
        }
    }
    invert(dense, size);
}

/// Makes a matrix exactly Hermitian by copying its lower triangle.
fn mirror_lower<V: Scalar>(a: &mut [V], size: usize) {
    for row in 0..size {
        a[row * size + row] = V::from_real(a[row * size + row].re());
        (0..row).for_each(|column| a[column * size + row] = a[row * size + column].conj());
    }
}

/// Returns the power of two with the exponent of `most`, which is not negative. It is limited so that its reciprocal is
/// finite.
fn unit_of<R: Real>(most: R) -> R {
    let least = if size_of::<R>() == 8 { 23 } else { 903 };
    let exponent = (most.to_f64().to_bits() >> 52).clamp(least, 2046 - least);
    R::from_f64(f64::from_bits(exponent << 52))
}

/// Returns the strong connections of unknown i, with their magnitudes.
#[inline(always)]
fn strong_of<'a, V: Scalar>(
    a: &Entries<'a, V>,
    i: usize,
    threshold: V::Real,
    largest: &'a [V::Real],
) -> impl Iterator<Item = (usize, V::Real)> + 'a {
    let own = largest[i];
    // A row whose largest entry is not finite has no strong connections.
    let least = if Float::is_finite(own) { V::Real::zero() } else { V::Real::infinity() };
    a.row(i).filter(move |(j, _)| *j != i).map(|(j, value)| (j, value.abs())).filter(move |&(j, value)| {
        let other = largest[j];
        let smaller = if other < own { other } else { own };
        value > least && value >= threshold * smaller
    })
}

impl CoarseningSteps for Host {
    fn largest_couplings<V: Scalar>(&self, a: CsrParts<'_, V, Self>, largest: &mut [V::Real]) -> Result<()> {
        let a = Entries::of(a);
        each(largest, |i, largest| {
            let magnitudes = a.others(i).map(|(_, value)| value.abs());
            *largest =
                magnitudes.fold(V::Real::zero(), |most, value| if value > most { value } else { most });
        });
        Ok(())
    }

    fn exponents<V: Scalar>(&self, x: &[V::Real], exponents: &mut [u32]) -> Result<()> {
        each(exponents, |i, exponent| *exponent = (x[i].to_f64().to_bits() >> 52) as u32 % EXPONENTS as u32);
        Ok(())
    }

    fn flags_from(&self, x: &[u32], least: u32, flags: &mut [u8]) -> Result<()> {
        each(flags, |i, flag| *flag = u8::from(x[i] >= least));
        Ok(())
    }

    fn strong_lengths<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &[V::Real],
        lengths: &mut [u32],
    ) -> Result<()> {
        let (n, a) = (a.rows, Entries::of(a));
        each(&mut lengths[..n], |i, length| {
            *length = strong_of(&a, i, threshold, largest).count() as u32;
        });
        lengths[n] = 0;
        Ok(())
    }

    fn strong_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        threshold: V::Real,
        largest: &[V::Real],
        offsets: OffsetsRef<'_, Self>,
        neighbours: &mut [u32],
        weights: &mut [f32],
    ) -> Result<()> {
        let (n, a) = (a.rows, Entries::of(a));
        fill_rows(
            n,
            |row| start_of(offsets, row),
            (neighbours, weights),
            |i, neighbours, weights| {
                let strong = strong_of(&a, i, threshold, largest);
                for ((j, value), (neighbour, weight)) in strong.zip(neighbours.iter_mut().zip(weights)) {
                    *neighbour = j as u32;
                    *weight = (value / largest[i]).to_f64() as f32;
                }
            },
        );
        Ok(())
    }

    fn damped_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let (n, a, strong) = (a.rows, Entries::of(a), Rows::of(strong));
        fill_rows(
            n,
            |row| strong.start(row) + row,
            (indices, values),
            |i, indices, values| damped_row(i, &a, strong.columns(i), omega, (indices, values)),
        );
        Ok(())
    }

    fn smoothed_lengths(
        &self,
        strong: CsrPattern<'_, Self>,
        group: &[u32],
        lengths: &mut [u32],
    ) -> Result<()> {
        let (n, strong) = (strong.rows, Rows::of(strong));
        let tasks = lengths[..n].par_chunks_mut(AT_LEAST).enumerate();
        tasks.for_each(|(task, lengths)| {
            let mut met: Vec<u32> = Vec::new();
            for (i, length) in (task * AT_LEAST..).zip(lengths) {
                let neighbours = strong.columns(i);
                met.clear();
                for &j in std::iter::once(&(i as u32)).chain(neighbours) {
                    let group = group[j as usize];
                    // A node has few neighbouring groups, so a linear search is faster than sorting.
                    if group != NO_GROUP && (neighbours.len() > FEW || !met.contains(&group)) {
                        met.push(group);
                    }
                }
                if neighbours.len() > FEW {
                    met.sort_unstable();
                    met.dedup();
                }
                *length = met.len() as u32;
            }
        });
        lengths[n] = 0;
        Ok(())
    }

    fn smoothed_entries<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        strong: CsrPattern<'_, Self>,
        omega: V::Real,
        group: &[u32],
        vector: &[V::Real],
        norms: &[V::Real],
        offsets: OffsetsRef<'_, Self>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let (n, a, strong) = (a.rows, Entries::of(a), Rows::of(strong));
        fill_rows_in(
            n,
            |row| start_of(offsets, row),
            (indices, values),
            || (Vec::new(), Vec::new()),
            |i, indices, values, (columns, entries): &mut (Vec<u32>, Vec<V>)| {
                let neighbours = strong.columns(i);
                columns.resize(neighbours.len() + 1, 0);
                entries.resize(neighbours.len() + 1, V::zero());
                damped_row(i, &a, neighbours, omega, (&mut *columns, &mut *entries));
                let mut count = 0;
                for (&j, &entry) in both(columns, &*entries) {
                    let of = group[j as usize];
                    if of == NO_GROUP {
                        continue;
                    }
                    let product = entry * V::from_real(vector[j as usize] / norms[of as usize]);
                    let place = indices[..count].partition_point(|&other| other < of);
                    if place == count || indices[place] != of {
                        indices.copy_within(place..count, place + 1);
                        values.copy_within(place..count, place + 1);
                        (indices[place], values[place]) = (of, V::zero());
                        count += 1;
                    }
                    values[place] += product;
                }
            },
        );
        Ok(())
    }

    fn group_entries<V: Scalar>(
        &self,
        group: &[u32],
        vector: &[V::Real],
        offsets: OffsetsRef<'_, Self>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        fill_rows(
            group.len(),
            |row| start_of(offsets, row),
            (indices, values),
            |i, indices, values| {
                if let ([index], [value]) = (indices, values) {
                    (*index, *value) = (group[i], V::from_real(vector[i]));
                }
            },
        );
        Ok(())
    }

    fn row_norms<V: Scalar>(&self, a: CsrParts<'_, V, Self>, norms: &mut [V::Real]) -> Result<()> {
        let a = Entries::of(a);
        let tiny = V::Real::min_positive_value() / (V::Real::epsilon() * V::Real::epsilon());
        let huge = V::Real::max_value() * V::Real::epsilon();
        each(norms, |i, norm| {
            let squares = a.row(i).map(|(_, value)| value.abs2());
            let square = squares.fold(V::Real::zero(), |sum, square| sum + square);
            *norm = if square >= tiny && square <= huge {
                Float::sqrt(square)
            } else {
                // Squares of such entries would overflow, or lose digits to underflow.
                let largest =
                    a.row(i).fold(V::Real::zero(), |most, (_, value)| Float::max(most, value.abs()));
                if largest == V::Real::zero() || !Float::is_finite(largest) {
                    largest
                } else {
                    let parts = a.row(i).map(|(_, value)| {
                        let part = value.abs() / largest;
                        part * part
                    });
                    Float::sqrt(parts.fold(V::Real::zero(), |sum, part| sum + part)) * largest
                }
            };
        });
        Ok(())
    }

    fn divide_by_column<V: Scalar>(
        &self,
        indices: &[u32],
        norms: &[V::Real],
        values: &mut [V],
    ) -> Result<()> {
        each(values, |e, value| *value = V::from_real(value.re() / norms[indices[e] as usize]));
        Ok(())
    }

    fn conjugate<V: Scalar>(&self, x: &mut [V]) -> Result<()> {
        each(x, |_, x| *x = x.conj());
        Ok(())
    }

    fn diagonal_scales<V: Scalar>(&self, a: CsrParts<'_, V, Self>, scales: &mut [f64]) -> Result<()> {
        let a = Entries::of(a);
        each(scales, |i, scale| *scale = inverse_root(&a, i));
        Ok(())
    }

    fn inverse_roots<V: Scalar>(&self, a: CsrParts<'_, V, Self>, roots: &mut [V]) -> Result<()> {
        let a = Entries::of(a);
        each(roots, |i, root| *root = V::from_f64(inverse_root(&a, i)));
        Ok(())
    }

    fn scaled_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        left: &[V],
        right: &[V],
        values: &mut [V],
    ) -> Result<()> {
        let (n, a) = (a.rows, Entries::of(a));
        let mut nothing = vec![(); values.len()];
        fill_rows(
            n,
            |row| a.rows.start(row),
            (values, &mut nothing),
            |i, values, _| {
                for ((j, entry), value) in a.row(i).zip(values) {
                    let factor = left[i] * right[j];
                    // Both factors may be so large that their product overflows, although the scaled entry does not.
                    *value = if factor.is_finite() { entry * factor } else { entry * left[i] * right[j] };
                }
            },
        );
        Ok(())
    }

    fn scaled_sums<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &[f64],
        threshold: f64,
        sums: &mut [V::Real],
        strong: &mut [u32],
    ) -> Result<()> {
        let a = Entries::of(a);
        let found = AtomicU32::new(0);
        each(sums, |i, reciprocal| {
            let (mut sum, mut strongest) = (0.0, 0.0);
            for (j, value) in a.row(i) {
                let scaled = value.abs().to_f64() * scales[j];
                sum += scaled;
                if j != i {
                    strongest = f64::max(strongest, scaled * scales[i]);
                }
            }
            if strongest > threshold {
                found.fetch_add(1, Ordering::Relaxed);
            }
            let inverse = V::Real::from_f64(scales[i] / sum);
            *reciprocal = if Float::is_finite(inverse) { inverse } else { V::Real::zero() };
        });
        strong[0] = found.into_inner();
        Ok(())
    }

    fn scaled_magnitudes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        scales: &[f64],
        weights: &mut [f32],
    ) -> Result<()> {
        let (n, a) = (a.rows, Entries::of(a));
        let mut nothing = vec![(); weights.len()];
        fill_rows(
            n,
            |row| a.rows.start(row),
            (weights, &mut nothing),
            |i, weights, _| {
                for ((j, value), weight) in a.row(i).zip(weights) {
                    *weight = (value.abs().to_f64() * scales[i] * scales[j]) as f32;
                }
            },
        );
        Ok(())
    }

    fn group_inverses<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        blocks: &ScatteredBlocks<Self>,
        added: (&[f64], f64),
        hermitian: bool,
        units: &mut [V::Real],
        values: &mut [V::Lower],
    ) -> Result<()> {
        let (a, members) = (Entries::of(a), Rows::of(blocks.members()));
        let place = |block: usize| start_of(blocks.places(), block);
        let tasks = row_chunks(place, blocks.count());
        let parts = split_rows(&tasks, place, values).into_par_iter().zip(split_rows(&tasks, |k| k, units));
        parts.for_each(|((blocks, mut values), (_, units))| {
            let mut dense = Vec::new();
            for (block, unit) in blocks.zip(units) {
                let members = members.columns(block);
                let size = members.len();
                inverse_of_block(&a, members, added, &mut dense);
                let most = dense.iter().fold(V::Real::zero(), |most, value| Float::max(most, value.abs()));
                *unit = unit_of(most);
                if hermitian {
                    mirror_lower(&mut dense, size);
                }
                let scale = V::from_real(unit.recip());
                let (own, rest) = values.split_at_mut(size * size);
                for (at, value) in own.iter_mut().enumerate() {
                    *value = (scale * dense[at % size * size + at / size]).to_lower();
                }
                values = rest;
            }
        });
        Ok(())
    }

    fn group_product<V: Scalar>(
        &self,
        blocks: &ScatteredBlocks<Self>,
        units: &[V::Real],
        values: &[V::Lower],
        Gemv { alpha, x, beta, y, .. }: Gemv<'_, V, Self>,
    ) -> Result<()> {
        Error::check_dimension("length of x", blocks.unknowns(), x.len())?;
        Error::check_dimension("length of y", blocks.unknowns(), y.len())?;
        scattered::product(blocks, (units, values), (alpha, x), (beta, y));
        Ok(())
    }
}
