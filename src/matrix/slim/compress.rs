//! From CSR to what repeats in it.

use super::{Body, Columns, KindTable, Long, Sections, Slim, SlimOptions, Values};
use crate::backend::{
    Backend, Conversions, FoundKinds, Kinds, NARROW_LIMIT, Offsets, RowOrder, SectionSizes, Sizes, SlimPlan,
    Survey, ValuesMut, wants_order,
};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::lengths::offsets_of;
use crate::matrix::stencil::Stencil;
use crate::scalar::Scalar;
use std::sync::OnceLock;

/// Tables of kinds have at most so many entries: they must fit a multiprocessor's shared memory.
const MOST_TABLE: usize = 1 << 12;

/// And few beside the entries that they stand for.
fn most_table(nonzeros: usize) -> usize {
    MOST_TABLE.min(nonzeros / 8)
}

/// Places of a section are counted in 32 bits.
const LONGEST: usize = (1 << 27) - 1;

/// A row longer than this stays in CSR; a second, lower bound for where the first leaves too much padding.
pub(super) fn longest_rows(rows: usize, nonzeros: usize) -> [usize; 2] {
    let mean = nonzeros / rows.max(1);
    [8 * mean + 64, 2 * mean + 4].map(|longest| longest.min(LONGEST))
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
        let Survey { distances, values, narrow, kinds, lines, long_rows, sets, sizes } =
            backend.slim_survey(a.parts(), longest)?;
        let whole = |body, padding| {
            let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
            Self { rows, columns, nonzeros, padding, body, long: None, transposed: OnceLock::new() }
        };
        let worthwhile = |found: &FoundKinds| {
            let table: usize = found.lengths.iter().map(|&n| n as usize).sum();
            options.kinds && long_rows.is_empty() && table <= most_table(a.nonzeros())
        };
        if let Some(found) = lines.filter(|found| options.values && worthwhile(found))
            && let Some(kinds) = backend.slim_kinds(a.parts(), &found, &sets, true)?
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
            Some(found) => backend.slim_kinds(a.parts(), &found, &sets, false)?,
            None => None,
        };
        let mut plan = SlimPlan {
            longest,
            kinds: kinds.is_some(),
            distances: distances.as_ref().filter(|_| kinds.is_none()),
            values: values.as_ref().filter(|_| options.values),
            sets: &*sets,
        };
        let narrow = options.values && narrow && size_of::<V::Narrow>() < size_of::<V>();
        let long = Self::long_rows(backend, a, &long_rows)?;
        let short = a.nonzeros() - long.as_ref().map_or(0, |(_, csr)| csr.nonzeros());
        let mut sections = match Self::sections(backend, a, &plan, sizes, narrow, (short, may_pad))? {
            Planned::Filled(sections) => sections,
            Planned::Padded => return Ok(None),
            Planned::Unknown => {
                // Two rows of one hash were not alike: store entries without tables.
                (plan.distances, plan.values) = (None, None);
                match Self::sections(backend, a, &plan, None, narrow, (short, may_pad))? {
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

    /// Sections for `short` entries, and their padding. Their sizes are found here unless they are known, columns included.
    fn sections(
        backend: &B,
        a: &Csr<V, B>,
        plan: &SlimPlan<'_, V, B>,
        sizes: Option<Sizes<B>>,
        narrow: bool,
        (short, may_pad): (usize, bool),
    ) -> Result<Planned<V, B>> {
        let Sizes { in_order, by_length } = match sizes {
            Some(sizes) => sizes,
            None => {
                let columns = !plan.kinds && plan.distances.is_none();
                backend.slim_sizes(a.parts(), plan.longest, columns)?
            }
        };
        let wanted = wants_order(a.rows(), in_order.places(), short as u64);
        let (order, sizes) = match by_length.filter(|_| wanted) {
            Some((order, sizes)) => (Some(RowOrder::new(order)), sizes),
            None => (None, in_order),
        };
        let (places, total) = (sizes.places(), sizes.words(plan.quad_words()));
        if !may_pad && is_padded(places, short as u64) {
            return Ok(Planned::Padded);
        }
        let (places, total) = (places as usize, total as usize);
        let (entries, word_offsets) = section_offsets(backend, &sizes, plan.quad_words(), places.max(total))?;
        let SectionSizes { widths, bases, .. } = sizes;
        drop(widths);
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

/// Where places and words of each section start: as wide as the larger of them needs.
fn section_offsets<B: Conversions>(
    backend: &B,
    sizes: &SectionSizes<B>,
    words: [u32; 2],
    most: usize,
) -> Result<(Offsets<B>, Offsets<B>)> {
    let n = B::len(&*sizes.widths) + 1;
    Ok(if most <= NARROW_LIMIT {
        let (mut places, mut of_words) = (backend.buffer(n)?, backend.buffer(n)?);
        backend.slim_offsets::<u32>(&sizes.widths, words, &mut places, &mut of_words)?;
        (Offsets::Narrow(places), Offsets::Narrow(of_words))
    } else {
        let (mut places, mut of_words) = (backend.buffer(n)?, backend.buffer(n)?);
        backend.slim_offsets::<u64>(&sizes.widths, words, &mut places, &mut of_words)?;
        (Offsets::Wide(places), Offsets::Wide(of_words))
    })
}

/// What became of a plan.
enum Planned<V: Scalar, B: Backend> {
    Filled((Sections<V, B>, usize)),
    /// Too much padding.
    Padded,
    /// A distance or value was in no table.
    Unknown,
}
