//! Compresses a matrix in CSR on the device. The host only assigns codes to the keys that the survey found, a few
//! hundred.

use super::super::launch::{Constants, kernels};
use super::super::primitives::{bits_to, exclusive_scan};
use super::super::slice::Slice;
use super::super::{Cuda, tuning};
use super::told::{ALONG, HEAD, LISTS, SLOTS, TOTALS, Told, WRONG, slots_of};
use super::{Balanced, restore};
use crate::backend::{
    BASES, Backend, CompressedParts, CompressedPlan, CompressedSteps, CsrParts, CsrPattern, FoundKinds,
    GridMarks, GridRows, Host, Kinds, LongRows, NARROW_LIMIT, Offsets, OffsetsRef, Primitives, Products,
    SECTION, SectionSizes, Survey, ValuesMut, WindowOrder, WindowOrderRef, wants_order,
};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

mod kernel {
    use super::*;
    kernels! {
        "compressed_survey.cu", types(V: Element as VALUE; a as OFFSET);
        fn survey(rows: usize, a: CsrParts<'_, V, Cuda>, longest: u32, found: &mut Slice<u64>);
    }
    kernels! {
        "compressed_is_grid.cu", types();
        fn compressed_is_grid(
            rows: usize, kind_of: &Slice<u8>, places_of: &Slice<u32>, grid: Constants<u32, 4>,
            found: &mut Slice<u32>,
        );
        fn compressed_mark(
            rows: usize, kind_of: &Slice<u8>, places_of: &Slice<u32>, grid: Constants<u32, 4>,
            marks: &mut Slice<u8>, list: &mut Slice<u64>, count: &mut Slice<u32>,
        );
    }
    kernels! {
        "compressed_fill.cu", types(V: Element as VALUE, S: Element as STORED; a as OFFSET, "u32" as TARGET);
        fn compressed_table(
            a: CsrParts<'_, V, Cuda>, first_rows: &Slice<u32>, told_starts: &Slice<u32>,
            starts: &mut Slice<u32>, distances: &mut Slice<u32>, numbers: &mut Slice<V>,
        );
        fn compressed_rows(
            rows: usize, a: CsrParts<'_, V, Cuda>, slots: &Slice<u64>, codes: &Slice<u8>, starts: &Slice<u32>,
            distances: &Slice<u32>, numbers: &Slice<V>, kind_of: &mut Slice<u8>, wrong: &mut Slice<u64>,
        );
    }
    kernels! {
        "compressed_fill.cu", types(V: Element as VALUE, S: Element as STORED; a as OFFSET, word_offsets as TARGET);
        fn compressed_fill(
            rows: usize, order: Option<&Slice<u8>>, a: CsrParts<'_, V, Cuda>, longest: u32,
            column_slots: Option<&Slice<u64>>, column_codes: Option<&Slice<u8>>,
            number_slots: Option<&Slice<u64>>, number_codes: Option<&Slice<u8>>,
            word_offsets: OffsetsRef<'_, Cuda>, entries: OffsetsRef<'_, Cuda>, bases: &Slice<u32>,
            words: &mut Slice<u32>, values: Option<&mut Slice<S>>, splits: u32, wrong: &mut Slice<u64>,
        );
        fn compressed_long(
            a: CsrParts<'_, V, Cuda>, long_rows: &Slice<u32>, word_offsets: OffsetsRef<'_, Cuda>, n: usize,
            starts: &Slice<u64>, to_columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
    kernels! {
        "compressed_sizes.cu", types(; offsets as OFFSET, "u32" as TARGET);
        fn compressed_sizes(
            rows: usize, offsets: OffsetsRef<'_, Cuda>, longest: u32, widths: &mut Slice<u32>,
            ordered_widths: &mut Slice<u32>, order: &mut Slice<u8>, totals: &mut Slice<u64>,
        );
    }
    kernels! {
        "compressed_sizes.cu", types(; a as OFFSET, "u32" as TARGET);
        fn compressed_bases(
            rows: usize, order: &Slice<u8>, a: CsrPattern<'_, Cuda>, longest: u32, widths: &mut Slice<u32>,
            ordered_widths: &mut Slice<u32>, bases: &mut Slice<u32>, totals: &mut Slice<u64>,
        );
    }
    kernels! {
        "compressed_sizes.cu", types(O: Offset as _; "u32" as OFFSET, place_offsets as TARGET);
        fn compressed_offsets(
            sections: usize, each: usize, widths: &Slice<u32>, words: u32, wide_words: u32,
            place_offsets: &mut Slice<O>, word_offsets: &mut Slice<O>,
        );
    }
    kernels! {
        "compressed_sizes.cu", types(; "u32" as OFFSET, "u32" as TARGET);
        fn long_rows(found: &Slice<u64>, n: usize, rows: &mut Slice<u32>, lengths: &mut Slice<u32>);
    }
}

impl Cuda {
    /// Measures slices in both orders of rows. Their totals are added to six words.
    fn measure_sections<V: Scalar>(
        self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
        columns: bool,
        totals: &mut Slice<u64>,
    ) -> Result<BothSizes> {
        let (rows, count, longest) = (a.rows, a.rows.div_ceil(SECTION), limit(longest));
        let mut order = self.uninitialised(a.rows)?;
        let (mut in_order, mut by_length) = (self.uninitialised(count)?, self.uninitialised(count)?);
        let mut bases = self.uninitialised(if columns { BASES * count } else { 0 })?;
        let shapes = (tuning::compressed_sizes(a.rows), tuning::compressed_bases(a.rows));
        kernel::compressed_sizes(
            self,
            shapes.0,
            rows,
            a.offsets,
            longest,
            &mut in_order,
            &mut by_length,
            &mut order,
            totals,
        )?;
        if columns {
            kernel::compressed_bases(
                self,
                shapes.1,
                rows,
                &order,
                a.pattern(),
                longest,
                &mut in_order,
                &mut by_length,
                &mut bases,
                totals,
            )?;
        }
        Ok(BothSizes { rows: a.rows, order, in_order, by_length, bases })
    }
}

/// The sizes of slices in both orders, while the host does not yet know the totals, and which order is better.
struct BothSizes {
    rows: usize,
    order: <Cuda as Backend>::Vec<u8>,
    in_order: <Cuda as Backend>::Vec<u32>,
    by_length: <Cuda as Backend>::Vec<u32>,
    bases: <Cuda as Backend>::Vec<u32>,
}

impl BothSizes {
    /// Returns the sizes for the better order.
    fn chosen(
        self,
        &[width, quads, ordered_width, ordered_quads, entries, wide]: &[u64; 6],
    ) -> SectionSizes<Cuda> {
        let Self { rows, order, in_order, by_length, bases } = self;
        if wants_order(rows, width * SECTION as u64, entries) {
            let totals = [ordered_width, ordered_quads, wide];
            SectionSizes { order: Some(WindowOrder::new(order)), widths: by_length, bases, totals }
        } else {
            SectionSizes { order: None, widths: in_order, bases, totals: [width, quads, wide] }
        }
    }
}

impl Cuda {
    /// Sorts long rows, if they are too many for the host. `found` has row << 32 | length in any order.
    fn sorted_long(self, rows: usize, nonzeros: usize, found: &Slice<u64>) -> Result<LongRows<Self>> {
        let n = found.len();
        let mut keys = self.uninitialised::<u64>(n)?;
        self.copy(found, &mut keys)?;
        self.sort(&mut keys, 32..32 + bits_to(rows.saturating_sub(1)))?;
        let (mut rows, mut lengths) = (self.uninitialised(n)?, self.uninitialised::<u32>(n)?);
        let shape = tuning::one_each(n);
        kernel::long_rows(self, shape, &keys, n, &mut rows, &mut lengths)?;
        drop(keys);
        Ok(if nonzeros <= NARROW_LIMIT {
            let mut offsets = self.uninitialised::<u32>(n + 1)?;
            exclusive_scan(self, &lengths, &mut offsets)?;
            let total = self.value(offsets.part(n..n + 1))?;
            LongRows::Held(rows, Offsets::Lower(offsets), total as usize)
        } else {
            let mut offsets = self.uninitialised::<u64>(n + 1)?;
            exclusive_scan(self, &lengths, &mut offsets)?;
            let total = self.value(offsets.part(n..n + 1))?;
            LongRows::Held(rows, Offsets::Wide(offsets), total as usize)
        })
    }
}

fn variants<V: Scalar>(plan: &CompressedPlan<'_, V>) -> (&'static str, &'static str) {
    let columns = if plan.kinds {
        "COMPRESSED_KINDS"
    } else if plan.distances.is_some() {
        "COMPRESSED_CODES"
    } else {
        "COMPRESSED_WIDE"
    };
    (columns, if plan.values.is_some() { "COMPRESSED_CODES" } else { "COMPRESSED_STORED" })
}

fn limit(longest: usize) -> u32 {
    u32::try_from(longest).unwrap_or(u32::MAX)
}

impl CompressedSteps for Cuda {
    type Balanced = super::Balanced;

    const STENCILS: &'static [u32] = &tuning::STENCILS;

    fn compressed_is_grid(
        &self,
        kind_of: &Slice<u8>,
        places_of: &Slice<u32>,
        places: u32,
        [points, lines, planes]: [u32; 3],
    ) -> Result<GridRows> {
        let mut found = self.zeros(2)?;
        let shape = tuning::compressed_is_grid(kind_of.len());
        let grid = Constants([places, points, lines, planes]);
        kernel::compressed_is_grid(*self, shape, kind_of.len(), kind_of, places_of, grid, &mut found)?;
        Ok(match self.download(&found)?[..] {
            [0, _] => GridRows::Whole,
            [2, listed] => GridRows::Holes(listed as usize),
            _ => GridRows::Others,
        })
    }

    fn compressed_marks(
        &self,
        kind_of: &Slice<u8>,
        places_of: &Slice<u32>,
        places: u32,
        [points, lines, planes]: [u32; 3],
        listed: usize,
    ) -> Result<Option<GridMarks<Self>>> {
        let rows = kind_of.len();
        if !tuning::marks_pay(places, rows, listed) {
            return Ok(None);
        }
        let (mut of_rows, mut listed) = (self.zeros(rows.div_ceil(64) * 16)?, self.zeros(listed)?);
        let (mut count, shape) = (self.zeros(1)?, tuning::compressed_is_grid(rows));
        let grid = Constants([places, points, lines, planes]);
        let to = (&mut of_rows, &mut listed);
        kernel::compressed_mark(*self, shape, rows, kind_of, places_of, grid, to.0, to.1, &mut count)?;
        self.sort(&mut listed, 32..64)?;
        Ok(Some(GridMarks { of_rows, listed }))
    }

    fn compressed_survey<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
    ) -> Result<Survey<V, Self>> {
        let nonzeros = a.indices.len();
        let most_long = a.rows.min(nonzeros / longest.max(1) + 1);
        // Copies the first long rows together with the counters. Usually these are all.
        let together = most_long.min(ALONG);
        let mut found = self.zeros::<u64>(HEAD + most_long)?;
        let shape = tuning::compressed_survey(self.0.chip, a.rows, nonzeros);
        kernel::survey(*self, shape, a.rows, a, limit(longest), &mut found)?;
        // For small matrices it takes longer to wait for the host than to measure slices, so they are measured before
        // it is known whether they will be used.
        let along = tuning::compressed_measures_along(a.rows);
        let sizes = along.then(|| self.measure_sections(a, longest, true, found.part_mut(TOTALS..WRONG)));
        let sizes = sizes.transpose()?;
        let told = self.look_at(found.part(0..HEAD + together), Told::of)?;
        let sizes = sizes.map(|sizes| sizes.chosen(&told.totals));
        let long_rows = match told.long {
            Ok(rows) => LongRows::Told(rows),
            Err(count) => self.sorted_long(a.rows, nonzeros, found.part(HEAD..HEAD + count))?,
        };
        let Told { distances, values, narrow, kinds, lines, .. } = told;
        Ok(Survey { distances, values, narrow, kinds, lines, long_rows, sets: found, sizes })
    }

    fn compressed_kinds<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &FoundKinds,
        sets: &mut Slice<u64>,
        with_values: bool,
    ) -> Result<Kinds<V, Self>> {
        let kinds = found.first_rows.len();
        let (mut told, mut end) = (vec![0], 0);
        for n in &found.lengths {
            end += n;
            told.push(end);
        }
        let table = end as usize;
        // The starts of kinds, their first rows, and the codes of the table's slots, in one copy.
        told.extend(&found.first_rows);
        told.extend(found.lookup.codes.chunks(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])));
        let told = self.upload(told)?;
        let (told_starts, first_rows) = (told.part(0..kinds + 1), told.part(kinds + 1..2 * kinds + 1));
        let codes = Slice::<u8>::at(told.part(2 * kinds + 1..told.len()).address(), SLOTS);
        // If there are no kinds, no block writes the single offset, so it is set to zero here.
        let mut starts = if kinds == 0 { self.zeros(1)? } else { self.uninitialised(kinds + 1)? };
        let (tables, wrong) = sets.split_mut(WRONG);
        let slots = slots_of(tables, found.lookup.set);
        let mut distances = self.uninitialised(table)?;
        let mut values = self.uninitialised(if with_values { table } else { 0 })?;
        let mut of_row = self.uninitialised(a.rows)?;
        let held = |shape: super::super::shape::Shape| {
            shape.variant("COLUMNS", "COMPRESSED_KINDS").variant("VALUES", "COMPRESSED_STORED")
        };
        let each = held(tuning::compressed_blocks(kinds, with_values));
        let all = held(tuning::compressed_rows(self.0.chip, a.rows, a.indices.len(), with_values));
        kernel::compressed_table::<V, V>(
            *self,
            each,
            a,
            first_rows,
            told_starts,
            &mut starts,
            &mut distances,
            &mut values,
        )?;
        kernel::compressed_rows::<V, V>(
            *self,
            all,
            a.rows,
            a,
            slots,
            codes,
            &starts,
            &distances,
            &values,
            &mut of_row,
            wrong,
        )?;
        Ok(Kinds { of_row, starts, distances, values })
    }

    fn compressed_wrong(&self, sets: &Slice<u64>) -> Result<bool> {
        Ok(self.value(sets.part(WRONG..LISTS))? != 0)
    }

    fn compressed_tables<V: Element>(
        &self,
        sets: &Slice<u64>,
        distances: &Slice<u32>,
        values: &Slice<V>,
    ) -> Result<Option<(Vec<u32>, Vec<V>)>> {
        let mut wrong = [0];
        let (mut distances_there, mut values_there) =
            (Host.zeros(distances.len())?, Host.zeros(values.len())?);
        self.read_three(
            (sets.part(WRONG..LISTS), &mut wrong),
            (distances, &mut distances_there),
            (values, &mut values_there),
        )?;
        Ok((wrong[0] == 0).then_some((distances_there, values_there)))
    }

    fn compressed_sizes<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        longest: usize,
        columns: bool,
    ) -> Result<SectionSizes<Self>> {
        let mut totals = self.zeros(6)?;
        let sizes = self.measure_sections(a, longest, columns, &mut totals)?;
        let mut told = [0; 6];
        self.read(&totals, &mut told)?;
        Ok(sizes.chosen(&told))
    }

    fn compressed_offsets<O: Offset>(
        &self,
        widths: &Slice<u32>,
        [words, wide_words]: [u32; 2],
        place_offsets: &mut Slice<O>,
        word_offsets: &mut Slice<O>,
    ) -> Result<()> {
        let (shape, each) = tuning::compressed_offsets(widths.len());
        kernel::compressed_offsets(
            *self,
            shape,
            widths.len(),
            each,
            widths,
            words,
            wide_words,
            place_offsets,
            word_offsets,
        )
    }

    fn compressed_fill<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        plan: &CompressedPlan<'_, V>,
        sets: &mut Slice<u64>,
        order: Option<WindowOrderRef<'_, Self>>,
        (entries, word_offsets): (OffsetsRef<'_, Self>, OffsetsRef<'_, Self>),
        bases: &Slice<u32>,
        words: &mut Slice<u32>,
        values: ValuesMut<'_, V, Self>,
    ) -> Result<()> {
        let (columns, held) = variants(plan);
        let looks_up = plan.distances.is_some() || plan.values.is_some();
        let (shape, splits) = tuning::compressed_fills(a.rows, a.indices.len(), looks_up);
        let shape = shape.variant("COLUMNS", columns).variant("VALUES", held);
        let order = order.map(|order| order.as_slice());
        let (d, n) = (plan.distances.map(|d| &d.lookup), plan.values.map(|v| &v.lookup));
        let (tables, wrong) = sets.split_mut(WRONG);
        // The codes of both tables. Kernels read only those of tables that exist.
        let mut codes = Vec::with_capacity(2 * SLOTS);
        for lookup in [d, n].into_iter().flatten() {
            codes.extend_from_slice(&lookup.codes);
        }
        let codes = self.upload::<u8>(codes)?;
        let (column_slots, number_slots) =
            (d.map(|d| slots_of(tables, d.set)), n.map(|n| slots_of(tables, n.set)));
        let column_codes = d.map(|_| codes.part(0..SLOTS));
        let number_codes = n.map(|_| codes.part(codes.len() - SLOTS..codes.len()));
        if entries.type_name() != word_offsets.type_name() {
            return self.no_kernel("sections with offsets of two widths");
        }
        macro_rules! fill {
            ($stored:ty, $values:expr) => {
                kernel::compressed_fill::<V, $stored>(
                    *self,
                    shape,
                    a.rows,
                    order,
                    a,
                    limit(plan.longest),
                    column_slots,
                    column_codes,
                    number_slots,
                    number_codes,
                    word_offsets,
                    entries,
                    bases,
                    words,
                    $values,
                    splits,
                    wrong,
                )
            };
        }
        match values {
            ValuesMut::Codes => fill!(V, None),
            ValuesMut::Lower(values) => fill!(V::Lower, Some(values)),
            ValuesMut::Full(values) => fill!(V, Some(values)),
        }
    }

    fn compressed_tiles<V: Scalar>(&self, a: CsrParts<'_, V, Self>) -> Result<Option<Balanced>> {
        self.tiles_to_deal(a)
    }

    fn compressed_deal<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        tiles: &mut Balanced,
        values: ValuesMut<'_, V, Self>,
    ) -> Result<()> {
        self.deal(a, tiles, values)
    }

    fn compressed_long<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        rows: &Slice<u32>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let n = indices.len();
        self.by_tiles(offsets, n, |shape, starts| {
            let shape = tuning::compressed_tiles(shape, false);
            let shape = shape.variant("COLUMNS", "COMPRESSED_WIDE").variant("VALUES", "COMPRESSED_STORED");
            kernel::compressed_long::<V, V>(*self, shape, a, rows, offsets, n, starts, indices, values)
        })
    }

    fn compressed_lengths<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        restore::lengths(*self, a, lengths)
    }

    fn compressed_to_csr<V: Scalar>(
        &self,
        a: CompressedParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        restore::fill(*self, a, offsets, indices, values)
    }
}
