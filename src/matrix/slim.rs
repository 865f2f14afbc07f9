//! The compressed format.

use super::Csr;
use super::format::{Storage, check_vectors, offset_bytes};
use super::lengths::{RowLengths, offsets_of};
use super::stencil::Stencil;
use crate::backend::{
    Backend, Conversions, FoundKinds, Gemv, Host, KindParts, Kinds, LongParts, Offsets, Op, Products,
    RowOrder, SECTION, SectionParts, SlimBody, SlimColumns, SlimParts, SlimPlan, SlimValues, Survey,
    ValuesMut, ordered_by_length,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Offset, Scalar, Widen};
use std::sync::OnceLock;

/// A matrix stored in as few bytes as what repeats in it allows, and never with a bit lost. Products move less memory,
/// and memory is what they wait for.
///
/// What is chosen, for each matrix by itself:
///
/// 1. **Lines.** Where at most 255 kinds of rows occur, told apart by distances (column - row) and values, a byte a row is all
///    that is stored: stencils with constant coefficients. Where the kinds are parts of one stencil of at most a step along each of
///    three directions of a grid, that is kept too: a GPU then reads x once for several rows.
/// 2. **Kinds.** Where rows are alike in distances only, a byte a row stands for its columns: structured grids, also with
///    several unknowns a point.
/// 3. **Codes.** Where at most 255 distances occur, a byte an entry.
/// 4. **Wide.** Else two bytes an entry above the section's smallest distance; sections that span more hold columns of 32 bits.
///
/// In 2 to 4, values are codes of a byte where at most 256 different ones occur, else of half the width where that is exact,
/// else as they are. They stand in sections of 32 rows, each as wide as its longest row; where that would pad more than a
/// twentieth, rows are ordered by length within windows of 256. Rows with more than 8 times the mean number of entries
/// plus 64 stay in CSR beside the sections (2 times plus 4, where sections would still pad half as much as there is).
///
/// The running example is in codes of both kinds. Distances -3 -1 0 1 2 have codes 0 to 4, values 1 2 3 4 7 8 codes 0 to 5;
/// four codes of a row share a word, a section's words lie row beside row:
///
/// ```text
/// | 1 . 7 . |     columns  2 4 * * | 3 * * * | 1 2 * * | 0 2 * *       * = 255: no entry
/// | . . 8 . |     values   0 4     | 5       | 3 2     | 1 0
/// | . 4 3 . |
/// | 2 . . 1 |     and 28 rows of padding, so that this matrix takes more than CSR; large ones do not
/// ```
///
/// Bytes a nonzero: next to none, 1, 2 or 4 for its column, next to none, 1, or a value's half or full width. Products have the
/// same bits in every run, and padding never meets x.
///
/// Source: Kourtis, Goumas and Koziris, "Optimizing sparse matrix-vector multiplication using index and value compression",
/// Computing Frontiers 2008, for dictionaries of values and distances; kinds of rows carry the idea from entries to rows.
pub struct Slim<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    nonzeros: usize,
    padding: usize,
    body: Body<V, B>,
    long: Option<Long<V, B>>,
    transposed: OnceLock<Box<Self>>,
}

/// Which rows are long, and their entries.
type Long<V, B> = (<B as Backend>::Vec<u32>, Csr<V, B>);

/// What [`Slim`] may compress.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlimOptions {
    values: bool,
    kinds: bool,
}

impl Default for SlimOptions {
    fn default() -> Self {
        Self { values: true, kinds: true }
    }
}

impl SlimOptions {
    /// Whether values may be compressed, or columns only. Default: true.
    #[must_use]
    pub fn values(self, values: bool) -> Self {
        Self { values, ..self }
    }

    /// Whether rows may be stored by kinds, or entry by entry only. Default: true.
    #[must_use]
    pub fn kinds(self, kinds: bool) -> Self {
        Self { kinds, ..self }
    }
}

struct KindTable<B: Backend> {
    of_row: B::Vec<u8>,
    starts: B::Vec<u32>,
    distances: B::Vec<u32>,
}

impl<B: Backend> KindTable<B> {
    fn parts(&self) -> KindParts<'_, B> {
        KindParts { of_row: &self.of_row, starts: &self.starts, distances: &self.distances }
    }

    fn bytes(&self) -> usize {
        B::len(&*self.of_row) + 4 * (B::len(&*self.starts) + B::len(&*self.distances))
    }
}

enum Columns<B: Backend> {
    Kinds(KindTable<B>),
    Codes(B::Vec<u32>),
    Wide(B::Vec<u32>),
}

enum Values<V: Scalar, B: Backend> {
    Codes(B::Vec<V>),
    Narrow(B::Vec<V::Narrow>),
    Full(B::Vec<V>),
}

struct Sections<V: Scalar, B: Backend> {
    order: Option<RowOrder<B>>,
    columns: Columns<B>,
    values: Values<V, B>,
    entries: Offsets<B>,
    word_offsets: Offsets<B>,
    words: B::Vec<u32>,
}

enum Body<V: Scalar, B: Backend> {
    Lines(KindTable<B>, B::Vec<V>, Option<Stencil<V, B>>),
    Sections(Sections<V, B>),
}

/// Tables of kinds have at most so many entries: they must fit a multiprocessor's shared memory.
const MOST_TABLE: usize = 1 << 12;

/// And few beside the entries that they stand for.
fn most_table(nonzeros: usize) -> usize {
    MOST_TABLE.min(nonzeros / 8)
}

/// A row longer than this stays in CSR; a second, lower bound for where the first leaves too much padding.
fn longest_rows(rows: usize, nonzeros: usize) -> [usize; 2] {
    let mean = nonzeros / rows.max(1);
    [8 * mean + 64, 2 * mean + 4]
}

/// Whether sections of rows in their order pad more than rows ordered by length are worth.
fn wants_order(places: u64, entries: u64) -> bool {
    places - entries > entries / 20
}

/// Whether sections pad so much that fewer rows should be in them.
fn is_padded(places: u64, entries: u64) -> bool {
    places - entries > (entries / 2).max(4096)
}

impl<V: Scalar, B: Backend> Slim<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "slim";

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries, padding not counted.
    pub fn nonzeros(&self) -> usize {
        self.nonzeros
    }

    /// Entries stored beyond the nonzeros.
    pub fn padding(&self) -> usize {
        self.padding
    }

    /// How columns and values are held, for reports: `27 kinds of rows`, `columns in codes, values in codes`.
    pub fn describe(&self) -> String {
        let long =
            self.long.as_ref().map_or(String::new(), |(rows, _)| format!(", {} long rows", B::len(&**rows)));
        let kinds = |table: &KindTable<B>| B::len(&*table.starts) - 1;
        let body = match &self.body {
            Body::Lines(table, _, stencil) => {
                let of = stencil.as_ref().map_or("", |_| ", parts of a stencil");
                format!("{} kinds of rows, values included{of}", kinds(table))
            }
            Body::Sections(s) => {
                let columns = match &s.columns {
                    Columns::Kinds(table) => format!("columns by {} kinds of rows", kinds(table)),
                    Columns::Codes(distances) => {
                        format!("columns as codes of {} distances", B::len(&**distances))
                    }
                    Columns::Wide(_) => "columns in 16 or 32 bits".into(),
                };
                let values = match &s.values {
                    Values::Codes(values) => format!("values as codes of {}", B::len(&**values)),
                    Values::Narrow(_) => format!("values in {}", V::Narrow::NAME),
                    Values::Full(_) => format!("values in {}", V::NAME),
                };
                let order = if s.order.is_some() { ", rows by length" } else { "" };
                format!("{columns}, {values}{order}")
            }
        };
        body + &long
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> SlimParts<'_, V, B> {
        let body = match &self.body {
            Body::Lines(table, values, stencil) => {
                SlimBody::Lines(table.parts(), values, stencil.as_ref().map(Stencil::parts))
            }
            Body::Sections(s) => SlimBody::Sections(SectionParts {
                order: s.order.as_ref().map(RowOrder::as_ref),
                columns: match &s.columns {
                    Columns::Kinds(table) => SlimColumns::Kinds(table.parts()),
                    Columns::Codes(distances) => SlimColumns::Codes(&**distances),
                    Columns::Wide(bases) => SlimColumns::Wide(&**bases),
                },
                values: match &s.values {
                    Values::Codes(values) => SlimValues::Codes(&**values),
                    Values::Narrow(values) => SlimValues::Narrow(&**values),
                    Values::Full(values) => SlimValues::Full(&**values),
                },
                entries: s.entries.as_ref(),
                word_offsets: s.word_offsets.as_ref(),
                words: &s.words,
            }),
        };
        let long = self.long.as_ref().map(|(rows, csr)| {
            let csr = csr.parts();
            LongParts { rows: &**rows, offsets: csr.offsets, indices: csr.indices, values: csr.values }
        });
        SlimParts { rows: self.rows, columns: self.columns, body, long }
    }

    /// Bytes of all arrays.
    pub fn storage_bytes(&self) -> usize {
        let long = self.long.as_ref().map_or(0, |(rows, csr)| 4 * B::len(&**rows) + csr.storage_bytes());
        let body = match &self.body {
            Body::Lines(table, values, stencil) => {
                let stencil = stencil.as_ref().map_or(0, Stencil::bytes);
                table.bytes() + B::len(&**values) * size_of::<V>() + stencil
            }
            Body::Sections(s) => {
                let columns = match &s.columns {
                    Columns::Kinds(table) => table.bytes(),
                    Columns::Codes(table) | Columns::Wide(table) => 4 * B::len(&**table),
                };
                let values = match &s.values {
                    Values::Codes(values) | Values::Full(values) => B::len(&**values) * size_of::<V>(),
                    Values::Narrow(values) => B::len(&**values) * size_of::<V::Narrow>(),
                };
                let order = if s.order.is_some() { 4 * self.rows } else { 0 };
                let offsets = s.entries.as_ref().bytes() + s.word_offsets.as_ref().bytes();
                columns + values + order + offsets + 4 * B::len(&*s.words)
            }
        };
        body + long
    }

    /// y = alpha op(A) x + beta y. Where `beta` is zero, y is not read. On a device the first product with the transpose makes a
    /// transposed copy, compressed as well, which is kept; while it is made there is memory for the matrix in CSR twice.
    ///
    /// # Errors
    /// On vectors of the wrong length, on too little memory for the copy, or when the device fails.
    pub fn product_op<T: Scalar>(
        &self,
        backend: &B,
        op: Op,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        V: Widen<T>,
        B: Products,
    {
        check_vectors(op, (self.rows(), self.columns()), (B::len(x), B::len(y)))?;
        match self.transposed(backend, op)? {
            Some(transposed) => {
                backend.slim(transposed.parts(), Gemv { op: op.transposed(), alpha, x, beta, y })
            }
            None => backend.slim(self.parts(), Gemv { op, alpha, x, beta, y }),
        }
    }

    /// The transposed copy that a product with `op` goes through, made at the first one: see [`Products::transposed_slim`].
    fn transposed(&self, backend: &B, op: Op) -> Result<Option<&Self>>
    where
        B: Products,
    {
        if !op.transposes() {
            return Ok(None);
        }
        if self.transposed.get().is_none() {
            let Some(copy) = backend.transposed_slim(self) else { return Ok(None) };
            let copy = Box::new(copy?);
            return Ok(Some(self.transposed.get_or_init(|| copy)));
        }
        Ok(self.transposed.get().map(|copy| &**copy))
    }

    /// At most this: columns of 32 bits and full values. How much of it repeats, row lengths do not tell.
    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let all = lengths.as_slice();
        let mut plan = (0, 0, 0, 0);
        for longest in longest_rows(lengths.rows(), lengths.nonzeros()) {
            let short: Vec<u32> = all.iter().map(|&n| if n as usize > longest { 0 } else { n }).collect();
            let entries = short.iter().map(|&n| u64::from(n)).sum::<u64>();
            let widths = |short: &[u32]| -> (u64, u64) {
                let widths = short.chunks(SECTION).map(|s| s.iter().copied().max().unwrap_or(0));
                widths.fold((0, 0), |(places, quads), w| {
                    (
                        places + u64::from(w) * SECTION as u64,
                        quads + u64::from(w).div_ceil(4) * SECTION as u64,
                    )
                })
            };
            let mut order = 0;
            let (mut places, mut quads) = widths(&short);
            if lengths.rows() > SECTION && wants_order(places, entries) {
                let by_length = ordered_by_length(&short);
                let ordered: Vec<u32> = by_length.iter().map(|&row| short[row as usize]).collect();
                (places, quads) = widths(&ordered);
                order = 4 * lengths.rows() as u64;
            }
            let long = all.iter().filter(|&&n| n as usize > longest);
            let (count, tail) = long.fold((0, 0), |(c, t), &n| (c + 1, t + u64::from(n)));
            let offsets = lengths.rows().div_ceil(SECTION) as u64 * 20 + 32;
            let long = if count > 0 { tail * (4 + value as u64) + 12 * (count + 1) } else { 0 };
            plan = (places, entries, tail, 4 * quads * 5 + offsets + order + long);
            if !is_padded(places, entries) {
                break;
            }
        }
        let (places, entries, _, other) = plan;
        let tables = 1 << 12;
        let other = other + tables + lengths.rows() as u64 + offset_bytes(1, 0) as u64;
        let stored = lengths.nonzeros() as u128 + u128::from(places - entries);
        Storage::at_most(lengths.nonzeros(), stored, value, u128::from(other))
    }
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
            let stencil = if wanted { Stencil::of(backend, table.parts(), &values)? } else { None };
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
        let long = Self::long_rows(backend, a, long_rows)?;
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

    fn long_rows(backend: &B, a: &Csr<V, B>, rows: Vec<u32>) -> Result<Option<Long<V, B>>> {
        if rows.is_empty() {
            return Ok(None);
        }
        let all = RowLengths::of(backend, a)?;
        let lengths: Vec<usize> = rows.iter().map(|&row| all.as_slice()[row as usize] as usize).collect();
        let (count, nonzeros) = (rows.len(), lengths.iter().sum());
        let offsets = offsets_of(backend, lengths.into_iter())?;
        let (rows, mut indices, mut values) =
            (backend.upload(rows)?, backend.zeros(nonzeros)?, backend.zeros(nonzeros)?);
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
        // One count more than there are sections: its place in the scan is the total.
        let (mut sizes, mut words) = (backend.zeros(count + 1)?, backend.zeros(count + 1)?);
        let mut bases = backend.zeros(if wide { count } else { 0 })?;
        backend.slim_sections(a.parts(), plan, None, (&mut sizes, &mut words, &mut bases))?;
        let (mut order, mut entries) = (None, scanned(backend, &sizes, false)?);
        if a.rows() > SECTION && wants_order(entries.1 as u64, short as u64) {
            let rows = RowOrder::new(backend.slim_order(a.parts(), plan.longest)?);
            backend.slim_sections(
                a.parts(),
                plan,
                Some(rows.as_ref()),
                (&mut sizes, &mut words, &mut bases),
            )?;
            (order, entries) = (Some(rows), scanned(backend, &sizes, false)?);
        }
        let (mut entries, places) = entries;
        if !may_pad && is_padded(places as u64, short as u64) {
            return Ok(Planned::Padded);
        }
        // Both have the same width.
        let (word_offsets, total) = scanned(backend, &words, matches!(entries, Offsets::Wide(_)))?;
        if matches!((&entries, &word_offsets), (Offsets::Narrow(_), Offsets::Wide(_))) {
            entries = scanned(backend, &sizes, true)?.0;
        }
        drop((sizes, words));
        let mut words = backend.zeros(total)?;
        let at = (entries.as_ref(), word_offsets.as_ref());
        let order_ref = order.as_ref().map(RowOrder::as_ref);
        let mut fill = |to| backend.slim_fill(a.parts(), plan, order_ref, at, &bases, &mut words, to);
        let (values, good) = if let Some(table) = plan.values {
            let good = fill(ValuesMut::Codes)?;
            (Values::Codes(backend.upload(table.keys.clone())?), good)
        } else if narrow {
            let mut values = backend.zeros(places)?;
            let good = fill(ValuesMut::Narrow(&mut *values))?;
            (Values::Narrow(values), good)
        } else {
            let mut values = backend.zeros(places)?;
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

    /// The same entries in CSR.
    ///
    /// # Errors
    /// On too little memory, or when the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        // One count more than there are rows: its place in the scan is the total.
        let mut lengths = backend.zeros(self.rows + 1)?;
        let (counts, _) = B::split_mut(&mut lengths, self.rows);
        backend.slim_lengths(self.parts(), counts)?;
        let mut offsets = Offsets::zeros(backend, self.rows + 1, self.nonzeros)?;
        match &mut offsets {
            Offsets::Narrow(o) => backend.exclusive_scan(&lengths, o)?,
            Offsets::Wide(o) => backend.exclusive_scan(&lengths, o)?,
        }
        let mut indices = backend.zeros(self.nonzeros)?;
        let mut values = backend.zeros(self.nonzeros)?;
        backend.slim_to_csr(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
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

/// Offsets from sizes, as wide as their total needs or `wide`, and the total.
fn scanned<B: Conversions>(backend: &B, sizes: &B::Slice<u32>, wide: bool) -> Result<(Offsets<B>, usize)> {
    let n = B::len(sizes);
    let mut offsets = backend.zeros::<u64>(n)?;
    backend.exclusive_scan(sizes, &mut offsets)?;
    let total = backend.download(B::part(&offsets, n - 1..n))?[0].to_usize();
    if wide || total > crate::backend::NARROW_LIMIT {
        return Ok((Offsets::Wide(offsets), total));
    }
    drop(offsets);
    let mut offsets = backend.zeros::<u32>(n)?;
    backend.exclusive_scan(sizes, &mut offsets)?;
    Ok((Offsets::Narrow(offsets), total))
}
