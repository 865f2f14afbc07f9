//! Compressing and decompressing matrices on the CPU ([`CompressedSteps`] defines each step).

mod fill;
mod restore;
mod survey;

pub(super) use restore::{Reader, at};

use super::Host;
use super::chunks;
use crate::backend::{
    CompressedParts, CompressedPlan, CompressedSteps, CsrParts, FoundKinds, Kinds, OffsetsRef, SECTION,
    SectionSizes, Survey, ValuesMut, WIDE_COLUMNS, WindowOrderRef, ordered_by_length, wants_order,
    with_offsets,
};
use crate::error::Result;
use crate::parallel::prelude::*;
use crate::scalar::{Offset, Scalar};
use std::ops::Range;

impl CompressedSteps for Host {
    type Balanced = std::convert::Infallible;

    fn compressed_survey<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        longest: usize,
    ) -> Result<Survey<V, Host>> {
        Ok(with_offsets!(a.offsets, offsets => survey::survey(Rows { offsets, a }, longest)))
    }

    fn compressed_kinds<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        found: &FoundKinds,
        sets: &mut [u64],
        with_values: bool,
    ) -> Result<Kinds<V, Host>> {
        let (kinds, good) =
            with_offsets!(a.offsets, offsets => survey::kinds(Rows { offsets, a }, found, with_values));
        sets[0] |= u64::from(!good);
        Ok(kinds)
    }

    fn compressed_wrong(&self, sets: &[u64]) -> Result<bool> {
        Ok(sets[0] != 0)
    }

    fn compressed_sizes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        longest: usize,
        columns: bool,
    ) -> Result<SectionSizes<Host>> {
        Ok(with_offsets!(a.offsets, offsets => {
            let rows = Rows { offsets, a };
            let in_order = fill::sections(rows, longest, columns, None);
            let lengths = rows.short_lengths(longest);
            let entries = lengths.iter().map(|&n| u64::from(n)).sum();
            if wants_order(a.rows, in_order.places(), entries) {
                fill::sections(rows, longest, columns, Some(ordered_by_length(&lengths)))
            } else {
                in_order
            }
        }))
    }

    fn compressed_offsets<O: Offset>(
        &self,
        widths: &[u32],
        words: [u32; 2],
        place_offsets: &mut [O],
        word_offsets: &mut [O],
    ) -> Result<()> {
        let (mut place, mut word) = (0, 0);
        let starts = place_offsets.iter_mut().zip(word_offsets);
        // The last two offsets are the total sizes.
        for ((to_place, to_word), &width) in starts.zip(widths.iter().chain([&0])) {
            (*to_place, *to_word) = (O::from_usize(place), O::from_usize(word));
            let (entries, far) = ((width & !WIDE_COLUMNS) as usize, width & WIDE_COLUMNS != 0);
            place += entries * SECTION;
            word += entries.div_ceil(4) * SECTION * words[usize::from(far)] as usize;
        }
        Ok(())
    }

    fn compressed_fill<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        plan: &CompressedPlan<'_, V>,
        sets: &mut [u64],
        order: Option<WindowOrderRef<'_, Host>>,
        (entries, word_offsets): (OffsetsRef<'_, Host>, OffsetsRef<'_, Host>),
        bases: &[u32],
        words: &mut [u32],
        values: ValuesMut<'_, V, Host>,
    ) -> Result<()> {
        let good = with_offsets!(a.offsets, offsets => {
            fill::fill(Rows { offsets, a }, plan, order, (entries, word_offsets), bases, words, values)
        });
        sets[0] |= u64::from(!good);
        Ok(())
    }

    fn compressed_long<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Host>,
        rows: &[u32],
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        with_offsets!(a.offsets, from => with_offsets!(offsets, to => {
            for (&row, to) in rows.iter().zip(to.windows(2)) {
                let (from, to) = (Rows { offsets: from, a }.range(row as usize), to[0].to_usize()..to[1].to_usize());
                indices[to.clone()].copy_from_slice(&a.indices[from.clone()]);
                values[to].copy_from_slice(&a.values[from]);
            }
        }));
        Ok(())
    }

    fn compressed_lengths<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Host>,
        lengths: &mut [u32],
    ) -> Result<()> {
        restore::lengths(a, lengths);
        Ok(())
    }

    fn compressed_to_csr<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Host>,
        offsets: OffsetsRef<'_, Host>,
        indices: &mut [u32],
        values: &mut [V],
    ) -> Result<()> {
        with_offsets!(offsets, offsets => restore::fill(a, offsets, indices, values));
        Ok(())
    }
}

/// The rows of a CSR matrix.
struct Rows<'a, O, V: Scalar> {
    offsets: &'a [O],
    a: CsrParts<'a, V, Host>,
}

impl<O, V: Scalar> Clone for Rows<'_, O, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O, V: Scalar> Copy for Rows<'_, O, V> {}

impl<'a, O: Offset, V: Scalar> Rows<'a, O, V> {
    fn range(self, row: usize) -> Range<usize> {
        self.offsets[row].to_usize()..self.offsets[row + 1].to_usize()
    }

    /// Returns the range of a row, which is empty if the row is long.
    fn short(self, row: usize, longest: usize) -> Range<usize> {
        let range = self.range(row);
        if range.len() > longest { range.start..range.start } else { range }
    }

    fn short_lengths(self, longest: usize) -> Vec<u32> {
        let mut lengths = vec![0; self.a.rows];
        let each = lengths.par_iter_mut().enumerate().with_min_len(1 << 12);
        each.for_each(|(row, length)| *length = self.short(row, longest).len() as u32);
        lengths
    }

    fn entries(self, range: Range<usize>) -> (&'a [u32], &'a [V]) {
        (&self.a.indices[range.clone()], &self.a.values[range])
    }

    /// Returns whether a row equals the previous one, shifted by one column. Compares values too if `with_values`.
    fn like_the_last(self, row: usize, range: &Range<usize>, with_values: bool) -> bool {
        if row == 0 {
            return false;
        }
        let (mine, values) = self.entries(range.clone());
        let (last, last_values) = self.entries(self.range(row - 1));
        mine.len() == last.len()
            && mine.iter().zip(last).fold(true, |same, (&j, &i)| same & (j.wrapping_sub(1) == i))
            && (!with_values
                || values.iter().zip(last_values).fold(true, |same, (v, w)| same & (v.bits() == w.bits())))
    }
}

/// Returns the results of `task` for each chunk of rows, in order.
fn by_rows<R: Send>(rows: usize, task: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    chunks::map(rows, task)
}
