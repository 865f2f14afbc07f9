//! Properties of the rows of a matrix, on the CPU.

use super::Host;
use super::memory::PARALLEL_FROM;
use super::precondition::inverse_weight;
use super::sums::{chunk_size, for_chunks};
use crate::backend::{CsrParts, RowFacts, SMALL_DIAGONAL, with_offsets};
use crate::error::{Error, Result};
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Promote, Real, Scalar};
use num_traits::{Float, Zero};

impl RowFacts for Host {
    fn csr_inverse_diagonal<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        inverse: &mut [T::Real],
        rounded: &mut [f32],
        found: &mut [u32],
    ) -> Result<()> {
        Error::check_dimension("length of the diagonal", a.rows, inverse.len())?;
        Error::check_dimension("length of what is found", 3, found.len())?;
        found[0] = with_offsets!(a.offsets, offsets => {
            inverse_diagonal::<V, T, _>(offsets, a.indices, a.values, inverse)
        });
        let row = |place: Option<usize>| place.map_or(u32::MAX, |row| row as u32);
        found[1] = row(inverse.iter().position(|d| *d != inverse[0]));
        found[2] = u32::MAX;
        if !rounded.is_empty() {
            Error::check_dimension("length of the rounded diagonal", a.rows, rounded.len())?;
            let near = inverse.iter().map(|d| d.to_f64() as f32);
            rounded.iter_mut().zip(near).for_each(|(rounded, near)| *rounded = near);
            found[2] = row(rounded.iter().position(|near| !near.is_normal()));
        }
        Ok(())
    }

    fn csr_symmetry<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &mut [T::Real],
    ) -> Result<()> {
        Error::check_dimension("length of what is found", 3, found.len())?;
        let most = with_offsets!(a.offsets, offsets => symmetry::<V, T, _>(offsets, a.indices, a.values));
        found.copy_from_slice(&most);
        Ok(())
    }

    fn same_columns<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        same: &mut [u8],
    ) -> Result<()> {
        Error::check_dimension("length of the marks", a.rows, same.len())?;
        let size = chunk_size(a.rows);
        with_offsets!(a.offsets, offsets => {
            let line = |row: usize| &a.indices[offsets[row].to_usize()..offsets[row + 1].to_usize()];
            for_chunks(a.rows, same.par_chunks_mut(size).enumerate(), |(chunk, same)| {
                for (row, same) in (chunk * size..).zip(same) {
                    *same = u8::from(row > 0 && line(row) == line(row - 1));
                }
            });
        });
        Ok(())
    }

    fn row_inverses<V: Promote<T>, T: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        positive: bool,
        d: &mut [T::Real],
    ) -> Result<()> {
        Error::check_dimension("length of the diagonal", a.rows, d.len())?;
        let size = chunk_size(a.rows);
        with_offsets!(a.offsets, offsets => {
            for_chunks(a.rows, d.par_chunks_mut(size).enumerate(), |(chunk, d)| {
                for (row, d) in (chunk * size..).zip(d) {
                    let entries = offsets[row].to_usize()..offsets[row + 1].to_usize();
                    let diagonal = a.indices[entries.clone()].binary_search(&(row as u32));
                    let diagonal = diagonal.map_or(0.0, |place| a.values[entries.start + place].widen().re().to_f64());
                    let norm = norm(a.values[entries].iter().map(|value| value.widen().abs().to_f64()));
                    let weight = match diagonal {
                        small if Float::abs(small) <= SMALL_DIAGONAL * norm => norm,
                        entry if positive => Float::abs(entry),
                        entry => entry,
                    };
                    *d = inverse_weight(weight);
                }
            });
        });
        Ok(())
    }
}

/// Writes the reciprocals, and returns the first row without one, see [`RowFacts::csr_inverse_diagonal`].
fn inverse_diagonal<V: Promote<T>, T: Scalar, O: Offset>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
    inverse: &mut [T::Real],
) -> u32 {
    let rows = inverse.par_iter_mut().enumerate();
    let rows = rows.with_min_len(if offsets.len() < PARALLEL_FROM { usize::MAX } else { 1 << 12 });
    rows.map(|(row, inverse)| {
        let range = offsets[row].to_usize()..offsets[row + 1].to_usize();
        let place = indices[range.clone()].binary_search(&(row as u32));
        let entry = place.map_or(T::zero(), |k| values[range.start + k].widen());
        let reciprocal = entry.re().recip();
        let good = entry.re() > T::Real::zero() && entry.im() == T::Real::zero() && entry.is_finite();
        let good = good && Float::is_finite(reciprocal);
        *inverse = if good { reciprocal } else { entry.re() };
        if good { u32::MAX } else { row as u32 }
    })
    .reduce(|| u32::MAX, u32::min)
}

/// See [`RowFacts::csr_symmetry`]. Entries below the diagonal are compared with their mirror images. That covers the
/// entries above it, unless some of these were not found.
fn symmetry<V: Promote<T>, T: Scalar, O: Offset>(
    offsets: &[O],
    indices: &[u32],
    values: &[V],
) -> [T::Real; 3] {
    let range = |row: usize| offsets[row].to_usize()..offsets[row + 1].to_usize();
    let most = |a: [T::Real; 3], b: [T::Real; 3]| std::array::from_fn(|i| Float::max(a[i], b[i]));
    // The result for the entries on one side of the diagonal, and how many entries on the other side were not matched.
    let side = |above: bool| {
        let row = |i: usize| {
            let (mut found, mut missed) = ([T::Real::zero(); 3], 0);
            for k in range(i) {
                let j = indices[k] as usize;
                if (j > i) != above {
                    missed += 1;
                    continue;
                }
                let (here, line) = (values[k].widen(), range(j));
                let place = indices[line.clone()].binary_search(&(i as u32));
                let mirror = place.map_or(T::zero(), |at| values[line.start + at].widen());
                missed -= isize::from(i != j && place.is_ok());
                let largest = Float::max(here.abs(), mirror.abs());
                found = most(found, [largest, (here - mirror).abs(), (here - mirror.conj()).abs()]);
            }
            (found, missed)
        };
        let rows = (0..offsets.len() - 1).into_par_iter();
        let rows = rows.with_min_len(if offsets.len() < PARALLEL_FROM { usize::MAX } else { 1 << 12 });
        rows.map(row).reduce(|| ([T::Real::zero(); 3], 0), |a, b| (most(a.0, b.0), a.1 + b.1))
    };
    let (found, missed) = side(false);
    if missed == 0 { found } else { most(found, side(true).0) }
}

/// The 2-norm, without overflow or underflow.
fn norm(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = values.clone().fold(0.0, f64::max);
    if largest == 0.0 {
        return 0.0;
    }
    largest * values.map(|value| (value / largest).powi(2)).sum::<f64>().sqrt()
}
