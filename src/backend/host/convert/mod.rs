//! Conversions on the CPU. Every task writes its own part of the target, so no unsafe code is needed.

mod blocks;
mod dia;
mod sizes;
mod split;
mod transpose;

use super::Host;
use super::memory::PARALLEL_FROM;
use crate::backend::{
    Conversions, CooParts, CsrParts, CsrPattern, DiaFill, DiaParts, Diagonals, EllParts, JdsParts, Offsets,
    OffsetsRef, Primitives, RowOrderRef, SellParts, with_offsets,
};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::scalar::{Element, Offset, Scalar};
use blocks::{BLOCK, fill_diagonals, fill_rows, gather_rows, split_diagonals, split_rows};
use std::ops::Range;

impl Conversions for Host {
    fn row_lengths(
        &self,
        offsets: OffsetsRef<'_, Host>,
        skip: usize,
        most: usize,
        lengths: &mut [u32],
    ) -> Result<()> {
        sizes::row_lengths(offsets, skip, most, lengths);
        Ok(())
    }

    fn longest_first(&self, lengths: &[u32], window: usize, _longest: u32) -> Result<Vec<u32>> {
        Ok(sizes::longest_first(lengths, window))
    }

    fn order_windows(
        &self,
        lengths: &[u32],
        (window, _): (usize, usize),
        order: &mut Vec<u32>,
        sorted: &mut [u32],
        moved: &mut [u64],
    ) -> Result<()> {
        *order = sizes::longest_first(lengths, window);
        self.gather(lengths, order, sorted)?;
        if !self.is_sorted(order, false)? {
            moved[0] = 1;
        }
        Ok(())
    }

    fn chunk_offsets<I: Offset>(
        &self,
        lengths: &[u32],
        height: usize,
        offsets: &mut [I],
        found: &mut [u64],
    ) -> Result<()> {
        found[0] += sizes::chunk_offsets(lengths, height, offsets) as u64;
        found[1] = lengths.iter().copied().max().map_or(0, u64::from).max(found[1]);
        Ok(())
    }

    fn jagged_reach(&self, lengths: &[u32], order: RowOrderRef<'_, Host>, reach: &mut [u32]) -> Result<()> {
        sizes::jagged_reach(lengths, order.as_slice(), reach);
        Ok(())
    }

    fn jagged_lengths(
        &self,
        order: RowOrderRef<'_, Host>,
        diagonals: OffsetsRef<'_, Host>,
        lengths: &mut [u32],
    ) -> Result<()> {
        with_offsets!(diagonals, diagonals => sizes::jagged_lengths(order.as_slice(), diagonals, lengths));
        Ok(())
    }

    fn join_offsets<I: Offset>(
        &self,
        head: OffsetsRef<'_, Host>,
        tail: OffsetsRef<'_, Host>,
        offsets: &mut [I],
    ) -> Result<()> {
        with_offsets!(head, head => with_offsets!(tail, tail => {
            let both = head.par_iter().zip(tail);
            offsets.par_iter_mut().with_min_len(PARALLEL_FROM).zip(both).for_each(|(offset, (head, tail))| {
                *offset = I::from_usize(head.to_usize() + tail.to_usize());
            });
        }));
        Ok(())
    }

    fn entries_beyond(
        &self,
        a: CsrPattern<'_, Host>,
        rows: Range<usize>,
        own: Range<usize>,
        beyond: &mut [u32],
    ) -> Result<()> {
        split::entries_beyond(a, rows, own, beyond);
        Ok(())
    }

    fn split_columns<V: Element>(
        &self,
        a: CsrParts<'_, V, Host>,
        rows: Range<usize>,
        own: Range<usize>,
        before: &[u64],
        ours: (&mut Offsets<Host>, &mut [u32], &mut [V]),
        others: (&mut [u32], &mut [V]),
    ) -> Result<()> {
        split::split_columns(a, rows, own, before, ours, others);
        Ok(())
    }

    fn csr_tails<V: Element>(
        &self,
        a: CsrParts<'_, V, Host>,
        skip: usize,
        offsets: OffsetsRef<'_, Host>,
        (rows, indices, values): (&mut [u32], &mut [u32], &mut [V]),
    ) -> Result<()> {
        with_offsets!(offsets, offsets => self.expand_offsets(offsets, rows))?;
        with_offsets!(a.offsets, from => fill_rows(offsets, indices, values, |row, columns, numbers| {
            let end = from[row + 1].to_usize();
            let start = (from[row].to_usize() + skip).min(end);
            columns.copy_from_slice(&a.indices[start..end]);
            numbers.copy_from_slice(&a.values[start..end]);
        }));
        Ok(())
    }

    fn join_rows<V: Element>(
        &self,
        head: EllParts<'_, V, Host>,
        tail: CooParts<'_, V, Host>,
        tails: OffsetsRef<'_, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        with_offsets!(tails, tails => fill_rows(offsets, indices, values, |row, columns, numbers| {
            let second = tails[row].to_usize()..tails[row + 1].to_usize();
            let middle = columns.len() - second.len();
            for k in 0..middle {
                let place = k * head.rows + row;
                (columns[k], numbers[k]) = (head.indices[place], head.values[place]);
            }
            columns[middle..].copy_from_slice(&tail.column_indices[second.clone()]);
            numbers[middle..].copy_from_slice(&tail.values[second]);
        }));
        Ok(())
    }

    fn csr_transpose<V: Element>(
        &self,
        a: CsrParts<'_, V, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        with_offsets!(a.offsets, from => with_offsets!(offsets, to => {
            transpose::fill((from, a.indices, a.values), (to, indices, values));
        }));
        Ok(())
    }

    fn csr_to_ell<V: Element>(
        &self,
        a: CsrParts<'_, V, Host>,
        width: usize,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let lengths = || (0..width).map(|_| a.rows);
        let pieces = split_diagonals(indices, lengths()).into_iter().zip(split_diagonals(values, lengths()));
        with_offsets!(a.offsets, from => fill_diagonals(pieces.collect(), |position, k| {
            let (start, end) = (from[position].to_usize(), from[position + 1].to_usize());
            (start + k < end).then(|| (a.indices[start + k], a.values[start + k]))
        }));
        Ok(())
    }

    fn ell_to_csr<V: Element>(
        &self,
        a: EllParts<'_, V, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let from = (a.indices, a.values);
        gather_rows(offsets, indices, values, from, |row, k| k * a.rows + row);
        Ok(())
    }

    fn diagonals(
        &self,
        size: (usize, usize),
        offsets: OffsetsRef<'_, Host>,
        indices: &[u32],
        most: usize,
    ) -> Result<Diagonals> {
        Ok(dia::diagonals(size, offsets, indices, most))
    }

    /// False, because on a CPU it takes longer to assemble mirror images than to read them from memory.
    fn half_pays<V: Scalar>(&self, _places: usize) -> bool {
        false
    }

    fn seems_symmetric<V: Scalar>(&self, a: CsrParts<'_, V, Host>) -> Result<bool> {
        Ok(dia::seems_symmetric(a))
    }

    fn csr_to_dia<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        mirrored: usize,
        distances: &[i64],
        values: &mut [V],
    ) -> Result<DiaFill> {
        Ok(dia::from_csr(a, mirrored, distances, values))
    }

    fn dia_lengths<V: Scalar>(&self, a: DiaParts<'_, V, Host>, lengths: &mut [u32]) -> Result<()> {
        dia::lengths(a, lengths);
        Ok(())
    }

    fn dia_to_csr<V: Scalar>(
        &self,
        a: DiaParts<'_, V, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        dia::to_csr(a, offsets, indices, values);
        Ok(())
    }

    fn csr_to_jds<V: Element>(
        &self,
        a: CsrParts<'_, V, Host>,
        order: RowOrderRef<'_, Host>,
        diagonals: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let order = order.as_slice();
        with_offsets!(diagonals, diagonals => with_offsets!(a.offsets, from => {
            let lengths = || diagonals.windows(2).map(|w| w[1].to_usize() - w[0].to_usize());
            let pieces = split_diagonals(indices, lengths()).into_iter().zip(split_diagonals(values, lengths()));
            fill_diagonals(pieces.collect(), |position, k| {
                let source = from[order[position] as usize].to_usize() + k;
                Some((a.indices[source], a.values[source]))
            });
        }));
        Ok(())
    }

    fn jds_to_csr<V: Element>(
        &self,
        a: JdsParts<'_, V, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let position = positions(a.order);
        with_offsets!(a.offsets, diagonals => {
            gather_rows(offsets, indices, values, (a.indices, a.values), |row, k| {
                diagonals[k].to_usize() + position[row] as usize
            });
        });
        Ok(())
    }

    fn csr_to_sell<V: Element>(
        &self,
        a: CsrParts<'_, V, Host>,
        (height, _): (usize, usize),
        order: Option<RowOrderRef<'_, Host>>,
        sections: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        with_offsets!(sections, sections => with_offsets!(a.offsets, from => {
            let pieces = split_rows(sections, indices).into_iter().zip(split_rows(sections, values));
            pieces.collect::<Vec<_>>().into_par_iter().for_each(|((first, columns), (_, numbers))| {
                let base = sections[first].to_usize();
                let start = first * height;
                let end = ((first + BLOCK) * height).min(a.rows);
                for position in start..end {
                    let row = order.map_or(position, |order| order.as_slice()[position] as usize);
                    let target = sections[position / height].to_usize() - base + position % height;
                    let line = from[row].to_usize()..from[row + 1].to_usize();
                    let entries = a.indices[line.clone()].iter().zip(&a.values[line]);
                    for (k, (&column, &number)) in entries.enumerate() {
                        columns[target + k * height] = column;
                        numbers[target + k * height] = number;
                    }
                }
            });
        }));
        Ok(())
    }

    fn sell_to_csr<V: Element>(
        &self,
        a: SellParts<'_, V, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        let position = a.order.map(positions);
        let height = a.height;
        with_offsets!(a.offsets, sections => {
            gather_rows(offsets, indices, values, (a.indices, a.values), |row, k| {
                let position = position.as_ref().map_or(row, |position| position[row] as usize);
                sections[position / height].to_usize() + k * height + position % height
            });
        });
        Ok(())
    }
}

/// Returns the position of each row, the inverse of an order.
fn positions(order: RowOrderRef<'_, Host>) -> Vec<u32> {
    let order = order.as_slice();
    let mut position = vec![0; order.len()];
    for (p, &row) in order.iter().enumerate() {
        position[row as usize] = p as u32;
    }
    position
}
