//! Compresses a matrix in CSR.

use super::{Body, Columns, Compressed, CompressedOptions, KindTable, Long, Sections, Values};
use crate::backend::{
    BALANCED_TILE, Backend, COMPRESSED_WINDOW, CompressedPlan, Conversions, FoundKinds, Kinds, LongRows,
    MOST_KEYS, NARROW_LIMIT, Offsets, SectionSizes, Survey, ValuesMut, WindowOrder, balanced_bytes,
    balanced_places,
};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::matrix::kept::Kept;
use crate::matrix::lengths::offsets_of;
use crate::matrix::stencil::Stencil;
use crate::scalar::Scalar;

/// The maximum number of entries in the tables of kinds, which must fit the shared memory of a multiprocessor.
const MOST_TABLE: usize = 1 << 12;

/// Tables must also be small compared to the entries that they replace.
fn most_table(nonzeros: usize) -> usize {
    MOST_TABLE.min(nonzeros / 8)
}

/// With at most this many columns, the distances of the rows of a window differ by less than 2^32.
const MOST_COLUMNS: usize = u32::MAX as usize - COMPRESSED_WINDOW;

/// The entries of a slice, including padding, are counted in 32 bits.
const LONGEST: usize = (1 << 27) - 1;

/// Rows longer than the first value stay in CSR; the second, smaller value is used if the first leaves too much
/// padding.
pub(super) fn longest_rows(rows: usize, nonzeros: usize) -> [usize; 2] {
    let mean = nonzeros / rows.max(1);
    [8 * mean + 64, 2 * mean + 4].map(|longest| longest.min(LONGEST))
}

/// Returns whether slices have so much padding that more rows should stay in CSR.
pub(super) fn is_padded(places: u64, entries: u64) -> bool {
    places - entries > (entries / 2).max(4096)
}

/// With more entries than this, the padding of the last tile of the balanced form no longer matters.
const MOST_OF_TILES: usize = 8 * BALANCED_TILE;

/// Returns whether distributing entries evenly moves fewer bytes than slices. Assembling rows again costs a fifth of
/// the bandwidth; long rows need a launch of their own, which reaches half of the bandwidth.
fn is_uneven<B: Backend>(
    sizes: &SectionSizes<B>,
    words: [u32; 2],
    (rows, nonzeros, in_long): (usize, usize, usize),
    [value, in_section, dealt]: [usize; 3],
) -> bool {
    let sections = 4 * sizes.words(words) + sizes.places() * in_section as u64;
    let long = in_long * (4 + value);
    let dealt = balanced_bytes(rows, nonzeros) + nonzeros * dealt;
    nonzeros >= MOST_OF_TILES && 5 * (sections + 2 * long as u64) > 6 * dealt as u64
}

impl<V: Scalar, B: Conversions> Compressed<V, B> {
    /// Compresses everything that repeats.
    ///
    /// # Errors
    /// As [`Compressed::with_options`].
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        Self::with_options(backend, a, &CompressedOptions::default())
    }

    /// Compresses as far as the options allow.
    ///
    /// # Errors
    /// If there are more than 2^32 - 257 columns, if memory runs out, or if the device fails.
    pub fn with_options(backend: &B, a: &Csr<V, B>, options: &CompressedOptions) -> Result<Self> {
        if a.columns() > MOST_COLUMNS {
            return Err(Error::Unsupported(format!(
                "format compressed with {} columns, of which it allows 2^32 - 257; use format csr",
                a.columns()
            )));
        }
        let [first, second] = longest_rows(a.rows(), a.nonzeros());
        if let Some(compressed) = Self::with_longest(backend, a, options, first, false)? {
            return Ok(compressed);
        }
        let compressed = Self::with_longest(backend, a, options, second, true)?;
        compressed.ok_or_else(|| {
            Error::Unsupported("format compressed: the matrix could not be compressed; use format csr".into())
        })
    }

    /// Compresses with rows of more than `longest` entries in CSR; `None` if slices would have too much padding, unless
    /// `may_pad` is set.
    fn with_longest(
        backend: &B,
        a: &Csr<V, B>,
        options: &CompressedOptions,
        longest: usize,
        may_pad: bool,
    ) -> Result<Option<Self>> {
        let Survey { distances, values, narrow, kinds, lines, long_rows, mut sets, sizes } =
            backend.compressed_survey(a.parts(), longest)?;
        let none_long = matches!(&long_rows, LongRows::Told(rows) if rows.is_empty());
        let whole = |body, padding| {
            let (rows, columns, nonzeros) = (a.rows(), a.columns(), a.nonzeros());
            Self { rows, columns, nonzeros, padding, body, long: None, transposed: Kept::default() }
        };
        let worthwhile = |found: &FoundKinds| {
            let table: usize = found.lengths.iter().map(|&n| n as usize).sum();
            options.kinds && none_long && table <= most_table(a.nonzeros())
        };
        // If two different rows have the same hash, the tables are not used.
        let mut trusted = true;
        if let Some(found) = lines.filter(|found| options.values && worthwhile(found)) {
            let Kinds { of_row, starts, distances, values } =
                backend.compressed_kinds(a.parts(), &found, &mut sets, true)?;
            // Distances are numbers modulo 2^32.
            let signed = a.rows().max(a.columns()) <= i32::MAX as usize;
            let stencil = if !B::STENCILS.is_empty() && signed {
                match backend.compressed_tables(&sets, &distances, &values)? {
                    Some(tables) => {
                        Some(Stencil::of(backend, a.columns(), &of_row, &found.lengths, &tables)?)
                    }
                    None => None,
                }
            } else {
                (!backend.compressed_wrong(&sets)?).then_some(None)
            };
            if let Some(stencil) = stencil {
                let body = Body::Lines(KindTable { of_row, starts, distances }, values, stencil);
                return Ok(Some(whole(body, 0)));
            }
            trusted = false;
        }
        let mut kinds = match kinds.filter(|found| trusted && worthwhile(found)) {
            Some(found) => Some(backend.compressed_kinds(a.parts(), &found, &mut sets, false)?),
            None => None,
        };
        let plan = CompressedPlan {
            longest,
            kinds: kinds.is_some(),
            distances: distances.as_ref().filter(|_| trusted && kinds.is_none()),
            values: values.as_ref().filter(|_| trusted && options.values),
        };
        let narrow = options.values && narrow && size_of::<V::Lower>() < size_of::<V>();
        let sizes = match sizes {
            Some(sizes) => sizes,
            None => backend.compressed_sizes(a.parts(), longest, !plan.kinds && plan.distances.is_none())?,
        };
        let in_long = long_rows.entries();
        let dealt = if narrow { size_of::<V::Lower>() } else { size_of::<V>() };
        let each = [size_of::<V>(), if plan.values.is_some() { 0 } else { dealt }, dealt];
        if is_uneven(&sizes, plan.quad_words(), (a.rows(), a.nonzeros(), in_long), each)
            && let Some(balanced) = Self::dealt(backend, a, narrow)?
        {
            return Ok(Some(whole(balanced, balanced_places(a.nonzeros()) - a.nonzeros())));
        }
        let long = Self::long_rows(backend, a, long_rows)?;
        let short = (a.nonzeros() - in_long, may_pad);
        let filled = Self::sections(backend, a, &plan, &mut sets, Some(sizes), narrow, short)?;
        let Some(mut sections) = filled else { return Ok(None) };
        let looked_up = plan.kinds || plan.distances.is_some() || plan.values.is_some();
        if looked_up && backend.compressed_wrong(&sets)? {
            kinds = None;
            let plan = CompressedPlan { longest, kinds: false, distances: None, values: None };
            let filled = Self::sections(backend, a, &plan, &mut sets, None, narrow, short)?;
            let Some(plain) = filled else { return Ok(None) };
            sections = plain;
        }
        if let Some(Kinds { of_row, starts, distances, .. }) = kinds {
            sections.0.columns = Columns::Kinds(KindTable { of_row, starts, distances });
        }
        Ok(Some(Self { long, ..whole(Body::Sections(sections.0), sections.1) }))
    }

    /// The balanced form, if the backend has it and the columns allow it.
    fn dealt(backend: &B, a: &Csr<V, B>, narrow: bool) -> Result<Option<Body<V, B>>> {
        let Some(mut tiles) = backend.compressed_tiles(a.parts())? else { return Ok(None) };
        let places = balanced_places(a.nonzeros());
        let values = if narrow {
            let mut values = backend.buffer(places)?;
            backend.compressed_deal(a.parts(), &mut tiles, ValuesMut::Lower(&mut *values))?;
            Values::Lower(values)
        } else {
            let mut values = backend.buffer(places)?;
            backend.compressed_deal(a.parts(), &mut tiles, ValuesMut::Full(&mut *values))?;
            Values::Full(values)
        };
        Ok(Some(Body::Balanced(tiles, values)))
    }

    fn long_rows(backend: &B, a: &Csr<V, B>, rows: LongRows<B>) -> Result<Option<Long<V, B>>> {
        let (rows, offsets, nonzeros) = match rows {
            LongRows::Told(rows) if rows.is_empty() => return Ok(None),
            LongRows::Told(rows) => {
                let lengths = rows.iter().map(|&(_, length)| length as usize);
                let (offsets, nonzeros) = (offsets_of(backend, lengths.clone())?, lengths.sum::<usize>());
                (backend.upload(rows.iter().map(|&(row, _)| row).collect())?, offsets, nonzeros)
            }
            LongRows::Held(rows, offsets, nonzeros) => (rows, offsets, nonzeros),
        };
        let count = B::len(&*rows);
        let (mut indices, mut values) = (backend.buffer(nonzeros)?, backend.buffer(nonzeros)?);
        backend.compressed_long(a.parts(), &rows, offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Some((rows, Csr::from_parts_unchecked(count, a.columns(), offsets, indices, values))))
    }

    /// Slices for the entries of `short`, and their padding; `None` if that is too much. Their sizes are computed here
    /// unless they are known.
    fn sections(
        backend: &B,
        a: &Csr<V, B>,
        plan: &CompressedPlan<'_, V>,
        sets: &mut B::Slice<u64>,
        sizes: Option<SectionSizes<B>>,
        narrow: bool,
        (short, may_pad): (usize, bool),
    ) -> Result<Option<(Sections<V, B>, usize)>> {
        let sizes = match sizes {
            Some(sizes) => sizes,
            None => {
                let columns = !plan.kinds && plan.distances.is_none();
                backend.compressed_sizes(a.parts(), plan.longest, columns)?
            }
        };
        let (places, total) = (sizes.places(), sizes.words(plan.quad_words()));
        if !may_pad && is_padded(places, short as u64) {
            return Ok(None);
        }
        let (places, total) = (places as usize, total as usize);
        let (entries, word_offsets) = chunk_offsets(backend, &sizes, plan.quad_words(), places.max(total))?;
        let SectionSizes { order, widths, bases, .. } = sizes;
        drop(widths);
        let mut words = backend.buffer(total)?;
        let at = (entries.as_ref(), word_offsets.as_ref());
        let order_ref = order.as_ref().map(WindowOrder::as_ref);
        let mut fill =
            |to| backend.compressed_fill(a.parts(), plan, sets, order_ref, at, &bases, &mut words, to);
        let values = if let Some(table) = plan.values {
            fill(ValuesMut::Codes)?;
            Values::Codes(backend.upload(table.keys.clone())?)
        } else if narrow {
            let mut values = backend.buffer(places)?;
            fill(ValuesMut::Lower(&mut *values))?;
            Values::Lower(values)
        } else {
            let mut values = backend.buffer(places)?;
            fill(ValuesMut::Full(&mut *values))?;
            Values::Full(values)
        };
        let columns = match plan.distances {
            Some(table) => {
                // Kernels look up the codes of padding too, which saves a test for each entry.
                let mut distances = table.keys.clone();
                distances.resize(MOST_KEYS, 0);
                Columns::Codes(backend.upload(distances)?, table.keys.len())
            }
            None => Columns::Wide(bases),
        };
        let sections = Sections { order, columns, values, entries, word_offsets, words };
        Ok(Some((sections, places - short)))
    }
}

/// The start of the entries and of the words of each slice, in offsets wide enough for the larger of them.
fn chunk_offsets<B: Conversions>(
    backend: &B,
    sizes: &SectionSizes<B>,
    words: [u32; 2],
    most: usize,
) -> Result<(Offsets<B>, Offsets<B>)> {
    let n = B::len(&*sizes.widths) + 1;
    Ok(if most <= NARROW_LIMIT {
        let (mut places, mut of_words) = (backend.buffer(n)?, backend.buffer(n)?);
        backend.compressed_offsets::<u32>(&sizes.widths, words, &mut places, &mut of_words)?;
        (Offsets::Lower(places), Offsets::Lower(of_words))
    } else {
        let (mut places, mut of_words) = (backend.buffer(n)?, backend.buffer(n)?);
        backend.compressed_offsets::<u64>(&sizes.widths, words, &mut places, &mut of_words)?;
        (Offsets::Wide(places), Offsets::Wide(of_words))
    })
}
