//! Sparse products and sums of matrices on the device. Rows are classified by their amount of work.

use super::launch::{Argument, Arguments, kernels, passed};
use super::product::{extent, scattered};
use super::slice::{Slice, Vec as DeviceVec};
use super::{Cuda, tuning};
use crate::backend::{
    Backend, Conversions, CsrArrays, CsrParts, CsrPattern, Offsets, OffsetsRef, Primitives, SparseProducts,
    offsets_of,
};
use crate::error::{Error, Result};
use crate::scalar::{Element, Scalar};
use std::ops::Range;

mod kernel;

/// Classes of rows by their number of products: class 0 has none, then come those of `tuning::SORTED_CLASSES`, rows
/// with more products, and long rows.
const MANY_PRODUCTS: usize = 3;
const LONG_PRODUCTS: usize = 4;
/// The class of the rows of C that are too long for `tuning::LENGTHS_OF_CLASSES`.
const LONG_ROW: usize = 6;
/// The number of classes, whether by products or by lengths.
const CLASSES: usize = LONG_ROW + 1;

/// The rows of a class join the next class if they are fewer than one in this many of the next class's rows, or too few
/// for a launch.
const FEW: usize = 4;

/// If the mean number of products is below this fraction of the first class's limit, most rows are in the first class.
const FEW_PRODUCTS: f64 = 0.9;

/// Rows grouped by class.
struct Dealt {
    /// The rows in descending order of class; `None` if no row is listed.
    order: Option<DeviceVec<u32>>,
    /// The range of each class in `order`.
    places: [Range<usize>; CLASSES],
    /// The class whose kernel is launched for all rows in their original order; it skips rows of other classes.
    of_all: Option<usize>,
    /// The class of each row; `None` if the longest row shows that all are in the same class.
    classes: Option<DeviceVec<u32>>,
}

/// The classes of rows, and the number of rows in each.
struct Classes {
    of_rows: DeviceVec<u32>,
    counts: DeviceVec<u32>,
}

impl Classes {
    fn new(cuda: Cuda, rows: usize) -> Result<Self> {
        Ok(Self { of_rows: cuda.buffer(rows)?, counts: cuda.zeros(CLASSES)? })
    }

    /// Returns a placeholder, if rows are already classified.
    fn none(cuda: Cuda) -> Result<Self> {
        Ok(Self { of_rows: cuda.buffer(0)?, counts: cuda.buffer(0)? })
    }
}

/// The rows of a class.
#[derive(Clone, Copy)]
struct Rows<'a> {
    count: usize,
    is_listed: bool,
    /// The rows to process; `None` means all rows.
    listed: Option<&'a Slice<u32>>,
}

impl<'a> Rows<'a> {
    fn all(count: usize) -> Self {
        Self { count, is_listed: false, listed: None }
    }

    fn listed(rows: &'a Slice<u32>) -> Self {
        Self { count: rows.len(), is_listed: true, listed: Some(rows) }
    }
}

passed!(['a] Rows<'a>: count as usize, is_listed as bool, listed as Option<&'a Slice<u32>>);

/// What is known about the numbers of products of rows before they are counted.
enum Products {
    /// All rows are in this class of sorted rows or a lower one.
    All(usize),
    /// Most rows are in the first class.
    MostFew,
    Any,
}

impl Products {
    fn of<V: Scalar>(
        cuda: Cuda,
        a: &CsrParts<'_, V, Cuda>,
        b: &CsrParts<'_, V, Cuda>,
        sorted: [u32; 2],
    ) -> Result<Self> {
        let mean = |a: &CsrParts<'_, V, Cuda>| a.indices.len() as f64 / a.rows.max(1) as f64;
        let usual = mean(a) * mean(b);
        if usual <= FEW_PRODUCTS * f64::from(sorted[0]) {
            return Ok(Self::MostFew);
        }
        if usual > f64::from(sorted[1]) {
            return Ok(Self::Any);
        }
        let most = extent(cuda, a)?.longest.saturating_mul(extent(cuda, b)?.longest);
        let fits = (1..).zip(sorted).find(|(_, room)| most <= u64::from(*room));
        Ok(fits.map_or(Self::Any, |(class, _)| Self::All(class)))
    }
}

impl Dealt {
    /// Puts all rows in one class.
    fn all(class: usize) -> Self {
        Self { order: None, places: [const { 0..0 }; CLASSES], of_all: Some(class), classes: None }
    }

    /// Groups rows by class. Rows of a class from `first` up to, but not including, `long` join the next class if they
    /// are few. If `first` is 2, class 1 is launched for all rows. Rows of class 0 are in no list; with `empty` they
    /// have no products, and a launch for all rows may include them. The host waits for the counts of the classes.
    fn new(cuda: Cuda, classes: Classes, (first, long): (usize, usize), empty: bool) -> Result<Self> {
        let Classes { of_rows, counts } = classes;
        let counts = cuda.download(&counts)?;
        let (mut places, mut start) = ([const { 0..0 }; CLASSES], 0);
        for class in (1..CLASSES).rev() {
            let behind = start + counts[class] as usize;
            places[class] = start..behind;
            start = behind;
        }
        let mut before = first;
        for class in first + 1..long {
            let (fewer, more) = (places[before].clone(), places[class].clone());
            if !more.is_empty() && (FEW * fewer.len() <= more.len() || fewer.len() <= tuning::TOO_FEW) {
                places[class] = more.start..fewer.end;
                places[before] = fewer.end..fewer.end;
            }
            before = if more.is_empty() { before } else { class };
        }
        let rows = of_rows.len();
        let taken_along = if empty { counts[0] as usize } else { 0 };
        let has_all = |class: &usize| places[*class].len() + taken_along == rows;
        let of_all = if first > 1 { Some(1) } else { (1..long).find(has_all) };
        let mut this = Self { order: None, places, of_all, classes: None };
        if start > 0 && (first > 1 || of_all.is_none()) {
            this.order = Some(cuda.longest_first(&of_rows, rows.max(1), CLASSES as u32 - 1)?);
        }
        this.classes = Some(of_rows);
        Ok(this)
    }

    /// Classifies rows by their number of products.
    fn of_products(
        cuda: Cuda,
        a: CsrPattern<'_, Cuda>,
        of_b: OffsetsRef<'_, Cuda>,
        [s, t]: [u32; 2],
    ) -> Result<Self> {
        let mut classes = Classes::new(cuda, a.rows)?;
        let shape = tuning::node_lanes(cuda.0.chip, a.rows);
        let Classes { of_rows, counts } = &mut classes;
        kernel::product_classes(cuda, shape, a.rows, a, of_b, s, t, of_rows, counts)?;
        Self::new(cuda, classes, (1, LONG_PRODUCTS), true)
    }

    /// Classifies, by their length in C, those rows whose products are not sorted; `None` if all are sorted.
    fn of_lengths(self, cuda: Cuda, offsets: OffsetsRef<'_, Cuda>) -> Result<Option<Self>> {
        let Some(of_rows) = self.classes else { return Ok(None) };
        if self.places[MANY_PRODUCTS..].iter().all(Range::is_empty) {
            return Ok(None);
        }
        // Classes with few rows have been merged with the next class.
        let sorted = (1..MANY_PRODUCTS).rfind(|&class| !self.places[class].is_empty()).unwrap_or(0);
        let apart = self.places[LONG_PRODUCTS].len() < tuning::MANY_LONG;
        Self::by_length(cuda, of_rows, (sorted, apart), offsets).map(Some)
    }

    /// Classifies all rows by their number of entries in C, however many products they have.
    fn of_all_lengths(cuda: Cuda, rows: usize, offsets: OffsetsRef<'_, Cuda>) -> Result<Self> {
        let mut of_rows = cuda.buffer(rows)?;
        cuda.fill(MANY_PRODUCTS as u32, &mut of_rows)?;
        Self::by_length(cuda, of_rows, (0, false), offsets)
    }

    /// Classifies rows by their number of entries in C, except those of class `sorted` and lower ones. `of_rows` has
    /// the class of each row by its products. If they are to be `apart`, blocks share rows with very many products.
    fn by_length(
        cuda: Cuda,
        of_rows: DeviceVec<u32>,
        (sorted, apart): (usize, bool),
        offsets: OffsetsRef<'_, Cuda>,
    ) -> Result<Self> {
        let (shape, rows) = (tuning::row_threads(cuda.0.chip, of_rows.len()), of_rows.len());
        let [a, b, c, d, e] = tuning::LENGTHS_OF_CLASSES;
        let mut classes = Classes { of_rows, counts: cuda.zeros(CLASSES)? };
        let Classes { of_rows, counts } = &mut classes;
        let (sorted, apart) = (sorted as u32, u32::from(apart));
        kernel::length_classes(cuda, shape, rows, offsets, sorted, apart, a, b, c, d, e, of_rows, counts)?;
        Self::new(cuda, classes, (1, LONG_ROW), false)
    }

    /// Returns the rows of a class, if they are listed.
    fn listed(&self, class: usize) -> Option<&Slice<u32>> {
        self.rows(class, 0)?.listed
    }

    /// Returns the rows of a class; `None` if it has none. `all` is the number of all rows.
    fn rows(&self, class: usize, all: usize) -> Option<Rows<'_>> {
        if self.of_all == Some(class) {
            return Some(Rows::all(all));
        }
        let places = self.places[class].clone();
        let order = self.order.as_ref().filter(|_| !places.is_empty())?;
        Some(Rows::listed(Cuda::part(order, places)))
    }
}

/// Checks that no column is 2^32 - 1, which marks a free slot of a hash table.
fn check_columns(columns: usize) -> Result<()> {
    let what = "a product of sparse matrices with 2^32 columns on a device; use the cpu";
    if columns > u32::MAX as usize { Err(Error::Unsupported(what.into())) } else { Ok(()) }
}

/// Returns a copy of the offsets as 64-bit integers.
fn wide(cuda: Cuda, offsets: OffsetsRef<'_, Cuda>) -> Result<DeviceVec<u64>> {
    let rows = offsets.len() - 1;
    let (mut lengths, mut wide) = (cuda.buffer(rows)?, cuda.buffer(rows + 1)?);
    cuda.row_lengths(offsets, 0, u32::MAX as usize, &mut lengths)?;
    cuda.exclusive_scan(&lengths, &mut wide)?;
    Ok(wide)
}

/// Runs `work` with offsets of the same width: if only one of them has 64 bits, the other is copied to 64 bits.
pub(super) fn alike<R>(
    cuda: Cuda,
    a: OffsetsRef<'_, Cuda>,
    b: OffsetsRef<'_, Cuda>,
    work: impl FnOnce(OffsetsRef<'_, Cuda>, OffsetsRef<'_, Cuda>) -> Result<R>,
) -> Result<R> {
    match (a, b) {
        (OffsetsRef::Lower(_), OffsetsRef::Wide(_)) => {
            let a = Offsets::<Cuda>::Wide(wide(cuda, a)?);
            work(a.as_ref(), b)
        }
        (OffsetsRef::Wide(_), OffsetsRef::Lower(_)) => {
            let b = Offsets::<Cuda>::Wide(wide(cuda, b)?);
            work(a, b.as_ref())
        }
        _ => work(a, b),
    }
}

impl<'a, V: Element> CsrParts<'a, V, Cuda> {
    /// The same matrix with its offsets in another width, as [`alike`] gives them.
    pub(super) fn with_offsets(self, offsets: OffsetsRef<'a, Cuda>) -> Self {
        Self { offsets, ..self }
    }
}

impl<'a> CsrPattern<'a, Cuda> {
    /// As [`CsrParts::with_offsets`].
    pub(super) fn with_offsets(self, offsets: OffsetsRef<'a, Cuda>) -> Self {
        Self { offsets, ..self }
    }
}

/// Calls `sort` for the rows of each class whose products are sorted. Returns the rows by class; `dealt` contains them
/// if they are known already. If `sort` gets classes, it is launched for all rows, and records the class of each row
/// that it skips.
fn sort_rows<V: Scalar>(
    cuda: Cuda,
    a: &CsrParts<'_, V, Cuda>,
    b: &CsrParts<'_, V, Cuda>,
    dealt: Option<Dealt>,
    sort: &mut impl FnMut(u32, Rows<'_>, Option<&mut Classes>) -> Result<()>,
) -> Result<Dealt> {
    let sorted = tuning::most_sorted(b.columns);
    let mut done = 0;
    let dealt = match dealt {
        Some(dealt) => dealt,
        None => match Products::of(cuda, a, b, sorted)? {
            Products::All(class) => Dealt::all(class),
            Products::MostFew => {
                let mut classes = Classes::new(cuda, a.rows)?;
                sort(1, Rows::all(a.rows), Some(&mut classes))?;
                done = 1;
                Dealt::new(cuda, classes, (2, LONG_PRODUCTS), false)?
            }
            Products::Any => Dealt::of_products(cuda, a.pattern(), b.offsets, sorted)?,
        },
    };
    for class in tuning::SORTED_CLASSES.into_iter().filter(|&class| class > done) {
        let Some(rows) = dealt.rows(class as usize, a.rows) else { continue };
        sort(class, rows, None)?;
    }
    Ok(dealt)
}

/// Returns whether each thread computes a row of C by merging rows of B. That requires that all rows have few entries,
/// and that neighbouring rows of A need neighbouring rows of B. If the rows of A are in random order, each thread would
/// load different cache lines (Delaunay mesh, A A: 1.5 ms merged, 0.9 ms sorted).
fn merges<V: Scalar>(cuda: Cuda, a: &CsrParts<'_, V, Cuda>, b: &CsrParts<'_, V, Cuda>) -> Result<bool> {
    let all_few = |a: &CsrParts<'_, V, Cuda>, most: u64| -> Result<bool> {
        Ok(a.indices.len() as u64 <= most * a.rows as u64 && extent(cuda, a)?.longest <= most)
    };
    Ok(all_few(a, tuning::MERGED_RUNS)?
        && all_few(b, tuning::MERGED_LENGTH)?
        && scattered(cuda, a)? != Some(true))
}

/// Returns the lengths of the rows of C, followed by a zero, and, unless rows are merged, the rows by class.
fn lengths<V: Scalar>(
    cuda: Cuda,
    a: &CsrParts<'_, V, Cuda>,
    b: &CsrParts<'_, V, Cuda>,
) -> Result<(DeviceVec<u32>, Option<Dealt>)> {
    let (chip, mut lengths) = (cuda.0.chip, cuda.zeros::<u32>(a.rows + 1)?);
    let (of_a, of_b) = (a.pattern(), b.pattern());
    if merges(cuda, a, b)? {
        let shape = tuning::merged_rows(chip, a.rows, 0);
        kernel::merged_lengths(cuda, shape, a.rows, of_a, of_b, &mut lengths)?;
        return Ok((lengths, None));
    }
    let sorted = tuning::most_sorted(b.columns);
    let mut sort = |class: u32, rows: Rows<'_>, classes: Option<&mut Classes>| {
        let (shape, deals) = (tuning::sorted_rows(chip, class, rows.count), classes.is_some());
        let mut none = Classes::none(cuda)?;
        let Classes { of_rows, counts } = classes.unwrap_or(&mut none);
        kernel::sorted_lengths(cuda, shape, rows, of_a, of_b, deals, sorted[1], of_rows, counts, &mut lengths)
    };
    let dealt = sort_rows(cuda, a, b, None, &mut sort)?;
    if let Some(rows) = dealt.rows(MANY_PRODUCTS, a.rows) {
        let shape = tuning::product_lengths(chip, mean_length(b), rows.count);
        kernel::product_lengths(cuda, shape, rows, of_a, of_b, &mut lengths)?;
        let shape = tuning::block_lengths(chip, rows.count);
        kernel::block_lengths(cuda, shape, rows, of_a, of_b, &mut lengths)?;
    }
    if let Some(rows) = dealt.listed(LONG_PRODUCTS) {
        let shape = tuning::block_of_rows(chip, rows.len());
        kernel::long_lengths(cuda, shape, rows.len(), rows, of_a, of_b, &mut lengths)?;
    }
    Ok((lengths, Some(dealt)))
}

/// Returns the mean number of entries of a row.
fn mean_length<V: Scalar>(a: &CsrParts<'_, V, Cuda>) -> usize {
    (a.indices.len() + a.rows / 2) / a.rows.max(1)
}

/// The columns of C, which are either known or have to be computed.
enum Columns<'a> {
    /// Known columns.
    Known(&'a Slice<u32>),
    /// The array in which new columns are written.
    New(&'a mut Slice<u32>),
}

/// Three arguments: whether the columns are known, the known ones, and the array for new ones.
impl Argument for &mut Columns<'_> {
    type Bits = (u32, u64, u64);
    fn bits(self) -> Self::Bits {
        match self {
            Columns::Known(columns) => (1, columns.address(), 0),
            Columns::New(columns) => (0, 0, columns.address()),
        }
    }
    fn append((are_known, known, new): &Self::Bits, to: &mut Arguments) {
        u32::append(are_known, to);
        u64::append(known, to);
        u64::append(new, to);
    }
    fn written(&self, to: &mut Arguments) {
        if let Columns::New(columns) = self {
            columns.written(to);
        }
    }
}

/// Computes the values of C and, unless they are known, its columns. `dealt` contains the rows by class if they are
/// known.
fn rows_of_product<V: Scalar>(
    cuda: Cuda,
    dealt: Option<Dealt>,
    a: &CsrParts<'_, V, Cuda>,
    b: &CsrParts<'_, V, Cuda>,
    offsets: OffsetsRef<'_, Cuda>,
    mut columns: Columns<'_>,
    values: &mut Slice<V>,
) -> Result<()> {
    let chip = cuda.0.chip;
    let sorted = tuning::most_sorted(b.columns);
    if dealt.is_none() && merges(cuda, a, b)? {
        let shape = tuning::merged_rows(chip, a.rows, values.len() / a.rows.max(1));
        let new = match columns {
            Columns::Known(_) => None,
            Columns::New(columns) => Some(columns),
        };
        return kernel::merged_rows(cuda, shape, a.rows, *a, *b, offsets, new.is_some(), new, values);
    }
    let dealt = match (&mut columns, dealt) {
        (Columns::Known(_), _) => Dealt::of_all_lengths(cuda, a.rows, offsets)?,
        (Columns::New(columns), dealt) => {
            let mut sort = |class: u32, rows: Rows<'_>, classes: Option<&mut Classes>| {
                let (shape, deals) = (tuning::sorted_rows(chip, class, rows.count), classes.is_some());
                let mut none = Classes::none(cuda)?;
                let Classes { of_rows, counts } = classes.unwrap_or(&mut none);
                kernel::sorted_rows(
                    cuda, shape, rows, *a, *b, offsets, deals, sorted[1], of_rows, counts, columns, values,
                )
            };
            let dealt = sort_rows(cuda, a, b, dealt, &mut sort)?;
            let Some(dealt) = dealt.of_lengths(cuda, offsets)? else { return Ok(()) };
            dealt
        }
    };
    for (class, most) in (1..LONG_ROW).zip(tuning::LENGTHS_OF_CLASSES) {
        let Some(rows) = dealt.rows(class, a.rows) else { continue };
        if let Columns::Known(pattern) = columns
            && let Some(shape) = tuning::known_values(chip, most, rows.count)
        {
            kernel::known_values(cuda, shape, rows, *a, *b, offsets, pattern, values)?;
            continue;
        }
        let shape = tuning::product_rows(chip, most, mean_length(b), rows.count);
        kernel::product_rows(cuda, shape, rows, *a, *b, offsets, &mut columns, values)?;
    }
    let Some(rows) = dealt.listed(LONG_ROW) else { return Ok(()) };
    if let Columns::New(columns) = &mut columns {
        let (shape, of_a, of_b) = (tuning::block_of_rows(chip, rows.len()), a.pattern(), b.pattern());
        kernel::long_columns(cuda, shape, rows.len(), rows, of_a, of_b, offsets, columns)?;
    }
    let indices = match &columns {
        Columns::Known(columns) => columns,
        Columns::New(columns) => &**columns,
    };
    let c = CsrPattern { rows: a.rows, columns: b.columns, offsets, indices };
    kernel::long_values(cuda, tuning::long_values(chip, rows.len()), rows.len(), rows, *a, *b, c, values)
}

impl SparseProducts for Cuda {
    fn multiply_rows<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        known: Option<(OffsetsRef<'_, Self>, usize)>,
        most: usize,
    ) -> Result<Option<CsrArrays<V, Self>>> {
        check_columns(b.columns)?;
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            let (a, b) = (&a.with_offsets(of_a), &b.with_offsets(of_b));
            let (dealt, offsets, entries) = match known {
                Some((offsets, entries)) => (None, offsets.copied(self)?, entries),
                None => {
                    let (lengths, dealt) = lengths(*self, a, b)?;
                    offsets_of(self, &lengths).map(|(offsets, entries)| (dealt, offsets, entries))?
                }
            };
            if entries > most {
                return Ok(None);
            }
            let (mut indices, mut values) = (self.buffer(entries)?, self.buffer(entries)?);
            rows_of_product(*self, dealt, a, b, offsets.as_ref(), Columns::New(&mut indices), &mut values)?;
            Ok(Some((offsets, indices, values)))
        })
    }

    fn multiply_values<V: Scalar>(
        &self,
        a: CsrParts<'_, V, Self>,
        b: CsrParts<'_, V, Self>,
        c: CsrPattern<'_, Self>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            let (a, b) = (&a.with_offsets(of_a), &b.with_offsets(of_b));
            rows_of_product(*self, None, a, b, c.offsets, Columns::Known(c.indices), values)
        })
    }

    fn count_differing(&self, list: &Slice<u32>, other: &Slice<u32>, count: &mut Slice<u32>) -> Result<()> {
        kernel::differing(*self, tuning::row_threads(self.0.chip, list.len()), list.len(), list, other, count)
    }

    fn add_lengths(
        &self,
        a: CsrPattern<'_, Self>,
        b: CsrPattern<'_, Self>,
        lengths: &mut Slice<u32>,
    ) -> Result<()> {
        let shape = tuning::row_threads(self.0.chip, a.rows + 1);
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            let (a, b) = (a.with_offsets(of_a), b.with_offsets(of_b));
            kernel::sum_lengths::<f32>(*self, shape, a.rows, a, b, lengths)
        })
    }

    fn add_rows<V: Scalar>(
        &self,
        (alpha, a): (V, CsrParts<'_, V, Self>),
        (beta, b): (V, CsrParts<'_, V, Self>),
        offsets: OffsetsRef<'_, Self>,
        indices: &mut Slice<u32>,
        values: &mut Slice<V>,
    ) -> Result<()> {
        let shape = tuning::row_threads(self.0.chip, a.rows);
        alike(*self, a.offsets, b.offsets, |of_a, of_b| {
            let (a, b) = (a.with_offsets(of_a), b.with_offsets(of_b));
            kernel::sum_rows(*self, shape, a.rows, alpha, a, beta, b, offsets, indices, values)
        })
    }
}
