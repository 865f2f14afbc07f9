//! Near-null vectors on groups of unknowns, on the CPU.

use super::Host;
use super::coarsen::{AT_LEAST, each};
use super::sparse::Rows;
use crate::backend::{CsrPattern, DEPENDENT, LEAST_OWN, NO_GROUP, NearNullSteps, OffsetsRef, with_offsets};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::parallel::rows::{row_chunks, split_rows};
use crate::scalar::{Offset, Scalar};
use num_traits::{Float, Zero};

/// The orthonormal basis on one group.
struct Basis<T> {
    /// Its vectors, each with an entry for each member.
    vectors: Vec<Vec<T>>,
    /// The near-null vectors in terms of the basis: a row for each of its vectors.
    r: Vec<Vec<T>>,
}

fn norm<T: Scalar>(vector: &[T]) -> T::Real {
    Float::sqrt(vector.iter().fold(T::Real::zero(), |sum, value| sum + value.abs2()))
}

/// Modified Gram-Schmidt orthogonalisation, each vector twice.
fn orthonormal<T: Scalar>(members: &[u32], count: usize, near_null: &[T]) -> Basis<T> {
    let mut basis: Basis<T> = Basis { vectors: Vec::with_capacity(count), r: Vec::with_capacity(count) };
    for j in 0..count {
        let mut vector: Vec<T> = members.iter().map(|&i| near_null[i as usize * count + j]).collect();
        let whole = norm(&vector);
        for _ in 0..2 {
            for (q, r) in basis.vectors.iter().zip(&mut basis.r) {
                let dot = q.iter().zip(&vector).fold(T::zero(), |sum, (&q, &v)| sum + q.conj() * v);
                vector.iter_mut().zip(q).for_each(|(v, &q)| *v -= dot * q);
                r[j] += dot;
            }
        }
        let left = norm(&vector);
        let independent = left > T::Real::from_f64(DEPENDENT) * whole;
        if !independent || basis.vectors.len() == members.len() {
            continue;
        }
        let mut row = vec![T::zero(); count];
        row[j] = T::from_real(left);
        basis.r.push(row);
        vector.iter_mut().for_each(|v| *v *= T::from_real(left.recip()));
        basis.vectors.push(vector);
    }
    basis
}

/// The number of vectors in the basis of a group.
fn rank(first: &[u32], group: u32) -> usize {
    (first[group as usize + 1] - first[group as usize]) as usize
}

/// The correction of one row: the first numbers of `missing` become the entries of C.
fn correct<T: Scalar>(r: &[T], rank: usize, scale: T, missing: &mut [T]) {
    let count = missing.len();
    let least = T::Real::from_f64(LEAST_OWN * LEAST_OWN);
    let mut column = 0;
    for j in 0..rank {
        // The rows of R are in echelon form.
        while column + 1 < count && r[j * count + column] == T::zero() {
            column += 1;
        }
        let own = r[j * count + column];
        let mut square = own.abs2();
        let mut left = missing[column] * scale;
        for above in 0..j {
            let there = r[above * count + column];
            square += there.abs2();
            left -= missing[above] * there;
        }
        missing[j] = if own.abs2() > least * square { left / own } else { T::zero() };
    }
}

/// Calls `write` for the rows of a matrix, each with its part of `values`.
fn each_row<T: Send>(
    rows: usize,
    offsets: OffsetsRef<'_, Host>,
    values: &mut [T],
    write: impl Fn(usize, &mut [T]) + Sync,
) {
    let start = |row: usize| with_offsets!(offsets, offsets => offsets[row].to_usize());
    let chunks = row_chunks(start, rows);
    split_rows(&chunks, start, values).into_par_iter().for_each(|(rows, values)| {
        let before = start(rows.start);
        for row in rows {
            write(row, &mut values[start(row) - before..start(row + 1) - before]);
        }
    });
}

impl NearNullSteps for Host {
    fn group_bases<T: Scalar>(
        &self,
        count: usize,
        starts: OffsetsRef<'_, Self>,
        members: &[u32],
        vectors: &[T],
        q: &mut [T],
        r: &mut [T],
        ranks: &mut [u32],
    ) -> Result<()> {
        let start = |group: usize| with_offsets!(starts, starts => starts[group].to_usize());
        let groups = r.len() / (count * count).max(1);
        let of_group = |group: usize| &members[start(group)..start(group + 1)];
        let bases = (0..groups).into_par_iter().with_min_len(256);
        let bases = bases.map(|group| orthonormal(of_group(group), count, vectors)).collect();
        r.fill(T::zero());
        for (group, basis) in bases.into_iter().enumerate() {
            ranks[group] = basis.r.len() as u32;
            for (j, row) in basis.r.iter().enumerate() {
                r[(group * count + j) * count..][..count].copy_from_slice(row);
            }
            for (j, vector) in basis.vectors.iter().enumerate() {
                for (&member, &value) in of_group(group).iter().zip(vector) {
                    q[member as usize * count + j] = value;
                }
            }
        }
        Ok(())
    }

    fn basis_lengths(&self, group: &[u32], first: &[u32], lengths: &mut [u32]) -> Result<()> {
        let n = group.len();
        each(&mut lengths[..n], |i, length| {
            *length = if group[i] == NO_GROUP { 0 } else { rank(first, group[i]) as u32 };
        });
        lengths[n] = 0;
        Ok(())
    }

    fn basis_entries<T: Scalar>(
        &self,
        count: usize,
        group: &[u32],
        first: &[u32],
        q: &[T],
        offsets: OffsetsRef<'_, Self>,
        indices: &mut [u32],
        values: &mut [T],
    ) -> Result<()> {
        each_row(group.len(), offsets, indices, |i, indices| {
            for (j, index) in indices.iter_mut().enumerate() {
                *index = first[group[i] as usize] + j as u32;
            }
        });
        each_row(group.len(), offsets, values, |i, values| {
            values.copy_from_slice(&q[i * count..][..values.len()]);
        });
        Ok(())
    }

    fn basis_rows<T: Scalar>(
        &self,
        count: usize,
        first: &[u32],
        r: &[T],
        rows: &mut [T],
        group: &mut [u32],
    ) -> Result<()> {
        for (number, ends) in first.windows(2).enumerate() {
            let (begin, end) = (ends[0] as usize, ends[1] as usize);
            group[begin..end].fill(number as u32);
            let from = &r[number * count * count..][..(end - begin) * count];
            rows[begin * count..end * count].copy_from_slice(from);
        }
        Ok(())
    }

    fn basis_corrections<T: Scalar>(
        &self,
        count: usize,
        group: &[u32],
        first: &[u32],
        r: &[T],
        scale: &[T],
        missing: &mut [T],
        offsets: OffsetsRef<'_, Self>,
        values: &mut [T],
    ) -> Result<()> {
        let tasks = missing.par_chunks_mut(count * AT_LEAST).enumerate();
        tasks.for_each(|(task, missing)| {
            for (i, missing) in (task * AT_LEAST..).zip(missing.chunks_exact_mut(count)) {
                if group[i] != NO_GROUP {
                    let r = &r[group[i] as usize * count * count..];
                    correct(r, rank(first, group[i]), scale[i], missing);
                }
            }
        });
        each_row(group.len(), offsets, values, |i, values| {
            for (value, &correction) in values.iter_mut().zip(&missing[i * count..]) {
                *value += correction;
            }
        });
        Ok(())
    }

    fn strong_blocks(
        &self,
        a: CsrPattern<'_, Self>,
        node: &[u32],
        strong: CsrPattern<'_, Self>,
        kept: &mut [u8],
        lengths: &mut [u32],
    ) -> Result<()> {
        let (n, offsets, a, strong) = (a.rows, a.offsets, Rows::of(a), Rows::of(strong));
        each_row(n, offsets, kept, |i, kept| {
            let own = node[i];
            let neighbours = strong.columns(own as usize);
            let mut at = 0;
            for (&j, kept) in a.columns(i).iter().zip(kept) {
                let there = node[j as usize];
                while at < neighbours.len() && neighbours[at] < there {
                    at += 1;
                }
                *kept = u8::from(there == own || neighbours.get(at) == Some(&there));
            }
        });
        let kept = &*kept;
        each(&mut lengths[..n], |i, length| {
            *length = kept[a.range(i)].iter().map(|&kept| u32::from(kept)).sum();
        });
        lengths[n] = 0;
        Ok(())
    }
}
