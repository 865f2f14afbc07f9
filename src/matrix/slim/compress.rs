//! From CSR to what repeats in it.

use super::{Body, Columns, KindTable, Long, Sections, Slim, SlimOptions, Values};
use crate::backend::{
    Backend, Conversions, FoundKinds, Kinds, RowOrder, RowOrderRef, SECTION, SlimPlan, Survey, ValuesMut,
};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::lengths::{offsets_of, scanned};
use crate::matrix::stencil::Stencil;
use crate::scalar::{Offset, Scalar};
use std::sync::OnceLock;

/// Tables of kinds have at most so many entries: they must fit a multiprocessor's shared memory.
const MOST_TABLE: usize = 1 << 12;

/// And few beside the entries that they stand for.
fn most_table(nonzeros: usize) -> usize {
    MOST_TABLE.min(nonzeros / 8)
}

/// A row longer than this stays in CSR; a second, lower bound for where the first leaves too much padding.
pub(super) fn longest_rows(rows: usize, nonzeros: usize) -> [usize; 2] {
    let mean = nonzeros / rows.max(1);
    [8 * mean + 64, 2 * mean + 4]
}

/// Whether sections of rows in their order pad more than rows ordered by length are worth.
pub(super) fn wants_order(places: u64, entries: u64) -> bool {
    places - entries > entries / 20
}

/// Whether sections pad so much that fewer rows should be in them.
pub(super) fn is_padded(places: u64, entries: u64) -> bool {
    places - entries > (entries / 2).max(4096)
}

impl<V: Scalar, B: Conversions> Slim<V, B> {
    /// Compresses whatever repeats.
    ///
    /// # Errors
    /// As [`Slim::with_options`].
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Self::with_options(backend, a, &SlimOptions::default())
    }

    /// Compresses what the options allow.
    ///
    /// # Errors
    /// On 2^32 - 1 columns or more, on too little memory, or when the device fails.
    pub fn with_options(backend: &B, a: &Csr<V, B>, options: &SlimOptions) -> Result<Self> {
        if a.columns() >= u32::MAX as usize {
            return Err(Error::Unsupported(format!(
                "format slim with {} columns: it takes fewer than 2^32 - 1; use format csr",
                a.columns()
            )));
        }
        let [first, second] = longest_rows(a.rows(), a.nonzeros());
        if let Some(slim) = Self::with_longest(backend, a, options, first, false)? {
            return Ok(slim);
        }
        let slim = Self::with_longest(backend, a, options, second, true)?;
        slim.ok_or_else(|| {
            Error::Unsupported("format slim: the matrix could not be compressed; use format csr".into())
        })
    }

    /// With rows of more than `longest` entries in CSR; `None` where sections would pad too much, unless they may.
    fn with_longest(
        backend: &B,
        a: &Csr<V, B>,
        options: &SlimOptions,
        longest: usize,
        may_pad: bool,
    ) -> Result<Option<Self>> {
        let Survey { distances, values, narrow, kinds, lines, long_rows } =
            backend.slim_survey(a.parts(), longest)?;
        let whole = |body, padding| {
            let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
            Self { rows, columns, nonzeros, padding, body, long: None, transposed: OnceLock::new() }
        };
        let worthwhile = |found: &FoundKinds<B>| {
            let table: usize = found.lengths.iter().map(|&n| n as usize).sum();
            options.kinds && long_rows.is_empty() && table <= most_table(a.nonzeros())
        };
        if let Some(found) = lines.filter(|found| options.values && worthwhile(found))
            && let Some(kinds) = backend.slim_kinds(a.parts(), &found, true)?
        {
            let Kinds { of_row, starts, distances, values } = kinds;
            let table = KindTable { of_row, starts, distances };
            // Distances are numbers modulo 2^32.
            let signed = a.rows().max(a.columns()) <= i32::MAX as usize;
            let wanted = B::STENCILS && signed;
            let stencil =
                if wanted { Stencil::of(backend, a.columns(), table.parts(), &values)? } else { None };
            let body = Body::Lines(table, values, stencil);
            return Ok(Some(whole(body, 0)));
        }
        let kinds = match kinds.filter(worthwhile) {
            Some(found) => backend.slim_kinds(a.parts(), &found, false)?,
            None => None,
        };
        let mut plan = SlimPlan {
            longest,
            kinds: kinds.is_some(),
            distances: distances.as_ref().filter(|_| kinds.is_none()),
            values: values.as_ref().filter(|_| options.values),
        };
        let narrow = options.values && narrow && size_of::<V::Narrow>() < size_of::<V>();
        let long = Self::long_rows(backend, a, &long_rows)?;
        let short = a.nonzeros() - long.as_ref().map_or(0, |(_, csr)| csr.nonzeros());
        let mut sections = match Self::sections(backend, a, &plan, narrow, (short, may_pad))? {
            Planned::Filled(sections) => sections,
            Planned::Padded => return Ok(None),
            Planned::Unknown => {
                // Two rows of one hash were not alike: store entries without tables.
                (plan.distances, plan.values) = (None, None);
                match Self::sections(backend, a, &plan, narrow, (short, may_pad))? {
                    Planned::Filled(sections) => sections,
                    _ => return Ok(None),
                }
            }
        };
        if let Some(Kinds { of_row, starts, distances, .. }) = kinds {
            sections.0.columns = Columns::Kinds(KindTable { of_row, starts, distances });
        }
        Ok(Some(Self { long, ..whole(Body::Sections(sections.0), sections.1) }))
    }

    fn long_rows(backend: &B, a: &Csr<V, B>, rows: &[(u32, u32)]) -> Result<Option<Long<V, B>>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let lengths = rows.iter().map(|&(_, length)| length as usize);
        let (count, nonzeros) = (rows.len(), lengths.clone().sum::<usize>());
        let offsets = offsets_of(backend, lengths)?;
        let rows = backend.upload(rows.iter().map(|&(row, _)| row).collect())?;
        let (mut indices, mut values) = (backend.buffer(nonzeros)?, backend.buffer(nonzeros)?);
        backend.slim_long(a.parts(), &rows, offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Some((rows, Csr::from_parts_unchecked(count, a.columns(), offsets, indices, values))))
    }

    /// Sections for `short` entries, and their padding.
    fn sections(
        backend: &B,
        a: &Csr<V, B>,
        plan: &SlimPlan<'_, V, B>,
        narrow: bool,
        (short, may_pad): (usize, bool),
    ) -> Result<Planned<V, B>> {
        let count = a.rows().div_ceil(SECTION);
        let wide = !plan.kinds && plan.distances.is_none();
        let (mut sizes, mut words) = (backend.buffer::<u32>(count)?, backend.buffer::<u32>(count)?);
        let mut bases = backend.buffer::<u32>(if wide { count } else { 0 })?;
        let mut measured = |order: Option<RowOrderRef<'_, B>>| -> Result<[usize; 2]> {
            let (mut totals, mut told) = (backend.zeros::<u64>(2)?, [0; 2]);
            let sizes = (&mut *sizes, &mut *words, &mut *bases);
            backend.slim_sections(a.parts(), plan, order, sizes, &mut totals)?;
            backend.read(&totals, &mut told)?;
            Ok(told.map(Offset::to_usize))
        };
        let mut order = None;
        let [mut places, mut total] = measured(None)?;
        if a.rows() > SECTION && wants_order(places as u64, short as u64) {
            let rows = RowOrder::new(backend.slim_order(a.parts(), plan.longest)?);
            [places, total] = measured(Some(rows.as_ref()))?;
            order = Some(rows);
        }
        if !may_pad && is_padded(places as u64, short as u64) {
            return Ok(Planned::Padded);
        }
        // Both have the same width.
        let most = places.max(total);
        let (entries, word_offsets) = (scanned(backend, &sizes, most)?, scanned(backend, &words, most)?);
        drop((sizes, words));
        let mut words = backend.buffer(total)?;
        let at = (entries.as_ref(), word_offsets.as_ref());
        let order_ref = order.as_ref().map(RowOrder::as_ref);
        let mut fill = |to| backend.slim_fill(a.parts(), plan, order_ref, at, &bases, &mut words, to);
        let (values, good) = if let Some(table) = plan.values {
            let good = fill(ValuesMut::Codes)?;
            (Values::Codes(backend.upload(table.keys.clone())?), good)
        } else if narrow {
            let mut values = backend.buffer(places)?;
            let good = fill(ValuesMut::Narrow(&mut *values))?;
            (Values::Narrow(values), good)
        } else {
            let mut values = backend.buffer(places)?;
            let good = fill(ValuesMut::Full(&mut *values))?;
            (Values::Full(values), good)
        };
        if !good {
            return Ok(Planned::Unknown);
        }
        let columns = match plan.distances {
            Some(table) => Columns::Codes(backend.upload(table.keys.clone())?),
            None => Columns::Wide(bases),
        };
        Ok(Planned::Filled((
            Sections { order, columns, values, entries, word_offsets, words },
            places - short,
        )))
    }
}

/// What became of a plan.
enum Planned<V: Scalar, B: Backend> {
    Filled((Sections<V, B>, usize)),
    /// Too much padding.
    Padded,
    /// A distance or value was in no table.
    Unknown,
}
