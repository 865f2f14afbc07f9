//! From CSR to the compressed format, on the device. The host numbers what the survey found: a few hundred keys.

use super::super::launch::kernels;
use super::super::slice::{Slice, Vec as DeviceVec};
use super::super::{Cuda, policy};
use super::restore;
use crate::backend::{
    Backend, CsrParts, FoundKinds, Keys, Kinds, Lookup, MOST_KEYS, OffsetsRef, Products, RowOrderRef,
    SLIM_WINDOW, SlimParts, SlimPlan, SlimSteps, Survey, ValuesMut, with_offsets,
};
use crate::error::Result;
use crate::scalar::{Element, Offset, Scalar};

/// Slots of a set in `kernels/slim.cuh`.
const SLOTS: usize = 1024;
/// What the survey finds: keys of four sets and the first rows of two of them, then six counters of half a word, then long rows.
const SETS: usize = 6 * SLOTS;
const HEAD: usize = SETS + 3;
/// Long rows that fit into one short copy with these.
const ALONG: usize = 8 * SLOTS - HEAD;

mod kernel {
    use super::*;
    kernels! {
        "slim_survey.cu", types(V: Element as VALUE, I: Offset as OFFSET);
        fn survey(
            rows: u64, offsets: &Slice<I>, columns: &Slice<u32>, values: &Slice<V>, longest: u32,
            found: &mut Slice<u64>,
        );
    }
    kernels! {
        "slim_is_grid.cu", types();
        fn slim_is_grid(
            rows: u64, kind_of: &Slice<u8>, places_of: &Slice<u32>, places: u32, points: u32, lines: u32,
            planes: u32, others: &mut Slice<u32>,
        );
    }
    kernels! {
        "slim_fill.cu", types(V: Element as VALUE, S: Element as STORED, I: Offset as OFFSET, O: Offset as TARGET);
        fn slim_table(
            offsets: &Slice<I>, columns: &Slice<u32>, values: &Slice<V>, first_rows: &Slice<u32>,
            starts: &Slice<u32>, distances: &mut Slice<u32>, numbers: &mut Slice<V>,
        );
        fn slim_rows(
            rows: u64, offsets: &Slice<I>, columns: &Slice<u32>, values: &Slice<V>, slots: &Slice<u64>,
            codes: &Slice<u8>, starts: &Slice<u32>, distances: &Slice<u32>, numbers: &Slice<V>,
            kind_of: &mut Slice<u8>, wrong: &mut Slice<u32>,
        );
        fn slim_order(rows: u64, offsets: &Slice<I>, longest: u32, order: &mut Slice<u32>);
        fn slim_sections(
            rows: u64, order: Option<&Slice<u32>>, offsets: &Slice<I>, columns: &Slice<u32>, longest: u32,
            entries: &mut Slice<u32>, words: &mut Slice<u32>, bases: &mut Slice<u32>, totals: &mut Slice<u64>,
        );
        fn slim_fill(
            rows: u64, order: Option<&Slice<u32>>, offsets: &Slice<I>, columns: &Slice<u32>, from: &Slice<V>,
            longest: u32, column_slots: Option<&Slice<u64>>, column_codes: Option<&Slice<u8>>,
            number_slots: Option<&Slice<u64>>, number_codes: Option<&Slice<u8>>, word_offsets: &Slice<O>,
            entries: &Slice<O>, bases: &Slice<u32>, words: &mut Slice<u32>, values: Option<&mut Slice<S>>,
            splits: u32, wrong: Option<&mut Slice<u32>>,
        );
        fn slim_long(
            offsets: &Slice<I>, columns: &Slice<u32>, values: &Slice<V>, long_rows: &Slice<u32>,
            starts: &Slice<O>, to_columns: &mut Slice<u32>, to_values: &mut Slice<V>,
        );
    }
}

/// One set of the survey: the slots of its keys.
struct Set<'a> {
    slots: &'a [u64],
    used: Vec<usize>,
}

impl<'a> Set<'a> {
    fn new(slots: &'a [u64]) -> Self {
        Self { slots, used: (0..SLOTS).filter(|&s| slots[s] != u64::MAX).collect() }
    }

    /// The way from keys to codes; slots that are in use are given in the order of their codes.
    fn lookup(&self, cuda: &Cuda, by_code: &[usize]) -> Result<Lookup<Cuda>> {
        let mut codes = vec![0; SLOTS];
        by_code.iter().zip(0..).for_each(|(&slot, code)| codes[slot] = code);
        Ok(Lookup { slots: cuda.upload(self.slots.to_vec())?, codes: cuda.upload(codes)? })
    }

    /// `first` has the first row of each slot's kind and its length.
    fn kinds(mut self, cuda: &Cuda, first: &[u64]) -> Result<FoundKinds<Cuda>> {
        self.used.sort_unstable_by_key(|&slot| first[slot]);
        let lookup = self.lookup(cuda, &self.used)?;
        let (first_rows, lengths) =
            self.used.iter().map(|&slot| ((first[slot] >> 32) as u32, first[slot] as u32)).unzip();
        Ok(FoundKinds { first_rows, lengths, lookup })
    }
}

fn value_of<V: Scalar>(key: u64) -> V {
    V::from_bits(if V::COMPLEX { [key & 0xffff_ffff, key >> 32] } else { [key, 0] })
}

fn variants<V: Scalar>(plan: &SlimPlan<'_, V, Cuda>) -> (&'static str, &'static str) {
    let columns = if plan.kinds {
        "SLIM_KINDS"
    } else if plan.distances.is_some() {
        "SLIM_CODES"
    } else {
        "SLIM_WIDE"
    };
    (columns, if plan.values.is_some() { "SLIM_CODES" } else { "SLIM_STORED" })
}

fn limit(longest: usize) -> u32 {
    u32::try_from(longest).unwrap_or(u32::MAX)
}

impl SlimSteps for Cuda {
    const STENCILS: bool = true;

    fn slim_is_grid(
        &self,
        kind_of: &Slice<u8>,
        places_of: &Slice<u32>,
        places: u32,
        [points, lines, planes]: [u32; 3],
    ) -> Result<bool> {
        let mut others = self.zeros(1)?;
        let shape = policy::slim_is_grid(kind_of.len());
        kernel::slim_is_grid(
            *self,
            shape,
            kind_of.len() as u64,
            kind_of,
            places_of,
            places,
            points,
            lines,
            planes,
            &mut others,
        )?;
        Ok(self.value(&others)? == 0)
    }

    fn slim_survey<V: Scalar>(&self, a: CsrParts<'_, V, Self>, longest: usize) -> Result<Survey<V, Self>> {
        let nonzeros = a.indices.len();
        let most_long = a.rows.min(nonzeros / longest.max(1) + 1);
        // The first long rows come along with the rest: mostly these are all.
        let together = most_long.min(ALONG);
        let mut found = self.uninitialised::<u64>(HEAD + most_long)?;
        self.fill(u64::MAX, found.part_mut(0..HEAD + together))?;
        self.fill(0, found.part_mut(SETS..HEAD))?;
        let shape = policy::slim_survey(self.0.chip, a.rows, nonzeros);
        with_offsets!(a.offsets, offsets => kernel::survey(
            *self, shape, a.rows as u64, offsets, a.indices, a.values, limit(longest), &mut found,
        ))?;
        let told = self.download(found.part(0..HEAD + together))?;
        let counters: Vec<u32> =
            told[SETS..HEAD].iter().flat_map(|&two| [two as u32, (two >> 32) as u32]).collect();
        let long = counters[5] as usize;
        let mut long_rows = match long <= together {
            true => told[HEAD..HEAD + long].to_vec(),
            false => self.download(found.part(HEAD..HEAD + long))?,
        };
        long_rows.sort_unstable();
        let long_rows = long_rows.iter().map(|&two| ((two >> 32) as u32, two as u32)).collect();
        let keys = |which: usize| &told[which * SLOTS..(which + 1) * SLOTS];
        let set =
            |which: usize, most: usize| (counters[which] as usize <= most).then(|| Set::new(keys(which)));
        let distances = set(0, MOST_KEYS - 1).map(|mut set| -> Result<_> {
            set.used.sort_unstable_by_key(|&slot| set.slots[slot] as u32 as i32);
            let lookup = set.lookup(self, &set.used)?;
            Ok(Keys { keys: set.used.iter().map(|&slot| set.slots[slot] as u32).collect(), lookup })
        });
        let values = set(1, MOST_KEYS).map(|mut set| -> Result<_> {
            set.used.sort_unstable_by_key(|&slot| value_of::<V>(set.slots[slot]).bits());
            let lookup = set.lookup(self, &set.used)?;
            Ok(Keys { keys: set.used.iter().map(|&slot| value_of(set.slots[slot])).collect(), lookup })
        });
        let kinds = |which: usize| {
            let set = set(2 + which, MOST_KEYS - 1);
            set.map(|set| set.kinds(self, keys(4 + which))).transpose()
        };
        Ok(Survey {
            distances: distances.transpose()?,
            values: values.transpose()?,
            narrow: counters[4] == 0,
            kinds: kinds(0)?,
            lines: kinds(1)?,
            long_rows,
        })
    }

    fn slim_kinds<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        found: &FoundKinds<Self>,
        with_values: bool,
    ) -> Result<Option<Kinds<V, Self>>> {
        let mut starts = vec![0_u32];
        let mut end = 0;
        for n in &found.lengths {
            end += n;
            starts.push(end);
        }
        let table = starts.last().copied().unwrap_or(0) as usize;
        let (starts, first_rows) = (self.upload(starts)?, self.upload(found.first_rows.clone())?);
        let mut distances = self.uninitialised(table)?;
        let mut values = self.uninitialised(if with_values { table } else { 0 })?;
        let (mut of_row, mut wrong) = (self.uninitialised(a.rows)?, self.zeros(1)?);
        let held = |shape: super::super::shape::Shape| {
            shape.variant("COLUMNS", "SLIM_KINDS").variant("VALUES", "SLIM_STORED")
        };
        let each = held(policy::slim_blocks(found.first_rows.len(), with_values));
        let all = held(policy::slim_rows(self.0.chip, a.rows, a.indices.len(), with_values));
        with_offsets!(a.offsets, offsets => {
            kernel::slim_table::<V, V, _, u32>(
                *self, each, offsets, a.indices, a.values, &first_rows, &starts, &mut distances, &mut values,
            )?;
            kernel::slim_rows::<V, V, _, u32>(
                *self, all, a.rows as u64, offsets, a.indices, a.values, &found.lookup.slots, &found.lookup.codes,
                &starts, &distances, &values, &mut of_row, &mut wrong,
            )
        })?;
        let good = self.value(&wrong)? == 0;
        Ok(good.then_some(Kinds { of_row, starts, distances, values }))
    }

    fn slim_order<V: Scalar>(&self, a: CsrParts<'_, V, Self>, longest: usize) -> Result<DeviceVec<u32>> {
        let mut order = self.uninitialised(a.rows)?;
        let shape = policy::slim_blocks(a.rows.div_ceil(SLIM_WINDOW), false).threads(SLIM_WINDOW as u32);
        let shape = shape.variant("COLUMNS", "SLIM_WIDE").variant("VALUES", "SLIM_STORED");
        with_offsets!(a.offsets, offsets => {
            kernel::slim_order::<V, V, _, u32>(*self, shape, a.rows as u64, offsets, limit(longest), &mut order)
        })?;
        Ok(order)
    }

    fn slim_sections<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        plan: &SlimPlan<'_, V, Self>,
        order: Option<RowOrderRef<'_, Self>>,
        (entries, words, bases): (&mut Slice<u32>, &mut Slice<u32>, &mut Slice<u32>),
        totals: &mut Slice<u64>,
    ) -> Result<()> {
        let (columns, values) = variants(plan);
        let shape = policy::slim_measures(self.0.chip, a.rows);
        let shape = shape.variant("COLUMNS", columns).variant("VALUES", values);
        let order = order.map(|order| order.as_slice());
        with_offsets!(a.offsets, offsets => kernel::slim_sections::<V, V, _, u32>(
            *self, shape, a.rows as u64, order, offsets, a.indices, limit(plan.longest), entries, words, bases,
            totals,
        ))
    }

    fn slim_fill<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        plan: &SlimPlan<'_, V, Self>,
        order: Option<RowOrderRef<'_, Self>>,
        (entries, word_offsets): (OffsetsRef<'_, Self>, OffsetsRef<'_, Self>),
        bases: &Slice<u32>,
        words: &mut Slice<u32>,
        values: ValuesMut<'_, V, Self>,
    ) -> Result<bool> {
        let (columns, held) = variants(plan);
        let (shape, splits) = policy::slim_fills(a.rows);
        let shape = shape.variant("COLUMNS", columns).variant("VALUES", held);
        let order = order.map(|order| order.as_slice());
        let (d, n) = (plan.distances.map(|d| &d.lookup), plan.values.map(|v| &v.lookup));
        let mut wrong = if d.is_some() || n.is_some() { Some(self.zeros(1)?) } else { None };
        macro_rules! fill {
            ($stored:ty, $values:expr) => {
                with_offsets!(a.offsets, offsets => match (entries, word_offsets) {
                    (OffsetsRef::Narrow(entries), OffsetsRef::Narrow(at)) => kernel::slim_fill::<V, $stored, _, _>(
                        *self, shape, a.rows as u64, order, offsets, a.indices, a.values, limit(plan.longest),
                        d.map(|d| &*d.slots), d.map(|d| &*d.codes), n.map(|n| &*n.slots), n.map(|n| &*n.codes),
                        at, entries, bases, words, $values, splits, wrong.as_deref_mut(),
                    ),
                    (OffsetsRef::Wide(entries), OffsetsRef::Wide(at)) => kernel::slim_fill::<V, $stored, _, _>(
                        *self, shape, a.rows as u64, order, offsets, a.indices, a.values, limit(plan.longest),
                        d.map(|d| &*d.slots), d.map(|d| &*d.codes), n.map(|n| &*n.slots), n.map(|n| &*n.codes),
                        at, entries, bases, words, $values, splits, wrong.as_deref_mut(),
                    ),
                    _ => self.no_kernel("sections with offsets of two widths"),
                })
            };
        }
        match values {
            ValuesMut::Codes => fill!(V, None),
            ValuesMut::Narrow(values) => fill!(V::Narrow, Some(values)),
            ValuesMut::Full(values) => fill!(V, Some(values)),
        }?;
        wrong.map_or(Ok(true), |wrong| Ok(self.value(&wrong)? == 0))
    }

    fn slim_long<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        rows: &Slice<u32>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let shape = policy::slim_blocks(rows.len(), false)
            .variant("COLUMNS", "SLIM_WIDE")
            .variant("VALUES", "SLIM_STORED");
        with_offsets!(a.offsets, from => with_offsets!(offsets, to => kernel::slim_long::<V, V, _, _>(
            *self, shape, from, a.indices, a.values, rows, to, indices, values,
        )))
    }

    fn slim_lengths<V: Scalar>(&self, a: SlimParts<'_, V, Self>, lengths: &mut Slice<u32>) -> Result<()> {
        restore::lengths(*self, a, lengths)
    }

    fn slim_to_csr<V: Scalar>(
        &self,
        a: SlimParts<'_, V, Self>,
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        with_offsets!(offsets, offsets => restore::fill(*self, a, offsets, indices, values))
    }
}
