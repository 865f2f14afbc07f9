//! Compressed sparse rows (CSR), the format that all others are converted from and to.

use super::kept::Kept;
use super::product::product_op;
use super::storage::sizes;
use super::triplets::check_dimensions;
use crate::backend::{
    Backend, Conversions, CsrArrays, CsrParts, CsrPattern, Derived, Gemv, Host, NARROW_LIMIT, Offsets, Op,
    Products, RowShape, copied,
};
use crate::error::{Error, Result};
use crate::scalar::{Promote, Scalar};
use std::ops::Range;
use std::sync::Arc;

/// The pattern of a matrix in CSR.
#[derive(Debug)]
struct Pattern<B: Backend> {
    offsets: Offsets<B>,
    indices: B::Vec<u32>,
}

/// A matrix in compressed sparse rows ([`CsrParts`] draws it), values of type `V` in the memory of backend `B`.
///
/// The columns of every row ascend strictly: constructors check it once, and nothing can change it later. Products
/// compute in any type to which `V` widens.
pub struct Csr<V: Scalar, B: Backend = Host> {
    rows: usize,
    columns: usize,
    /// Shared by matrices with the same pattern: rounded copies, and those with other values.
    pattern: Arc<Pattern<B>>,
    values: B::Vec<V>,
    derived: Derived,
    shape: RowShape<B>,
    transposed: Kept<Self>,
}

impl<V: Scalar> Csr<V, Host> {
    /// A matrix from the three arrays of CSR, with indices from zero.
    ///
    /// # Errors
    /// Unless there are `rows + 1` offsets that ascend from 0 to the number of values, and the columns of each row
    /// ascend strictly and are below `columns`; the message names the first wrong row. Also if a dimension exceeds
    /// 2^32.
    pub fn from_parts(
        rows: usize,
        columns: usize,
        offsets: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<V>,
    ) -> Result<Self> {
        check_dimensions(rows, columns)?;
        Error::check_dimension("number of row offsets", rows.saturating_add(1), offsets.len())?;
        Error::check_dimension("number of values", indices.len(), values.len())?;
        Error::check_dimension("first row offset", 0, offsets[0])?;
        Error::check_dimension("last row offset", values.len(), offsets[rows])?;
        for row in 0..rows {
            let (start, end) = (offsets[row], offsets[row + 1]);
            if start > end || end > values.len() {
                return Err(Error::InvalidMatrix(format!(
                    "row {row} spans offsets {start} to {end}, but offsets must ascend up to the last"
                )));
            }
            let line = &indices[start..end];
            if let Some(w) = line.windows(2).find(|w| w[0] >= w[1]) {
                return Err(Error::InvalidMatrix(format!(
                    "row {row}: column {} comes after column {}; columns must ascend, none twice \
                     (assemble::to_csr sorts triplets and adds up)",
                    w[1], w[0]
                )));
            }
            if let Some(&last) = line.last().filter(|&&last| last as usize >= columns) {
                return Err(Error::InvalidMatrix(format!(
                    "row {row} has column {last}, but the {columns} columns count from 0"
                )));
            }
        }
        let offsets = if values.len() <= NARROW_LIMIT {
            Offsets::Lower(offsets.into_iter().map(|o| o as u32).collect())
        } else {
            Offsets::Wide(offsets.into_iter().map(|o| o as u64).collect())
        };
        Ok(Self::from_parts_unchecked(rows, columns, offsets, indices, values))
    }
}

impl<V: Scalar> Csr<V, Host> {
    /// A copy in the memory of a backend.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_backend<B: Backend>(&self, backend: &B) -> Result<Csr<V, B>> {
        self.moved(&Host, backend)
    }

    /// The matrix in the memory of a backend: moved if that is the host's, else copied and freed here.
    ///
    /// # Errors
    /// As [`Csr::to_backend`].
    pub fn into_backend<B: Backend>(self, backend: &B) -> Result<Csr<V, B>> {
        let (rows, columns) = (self.rows, self.columns);
        let (offsets, indices, values) = self.into_arrays(&Host)?;
        let offsets = match offsets {
            Offsets::Lower(offsets) => Offsets::Lower(backend.upload(offsets)?),
            Offsets::Wide(offsets) => Offsets::Wide(backend.upload(offsets)?),
        };
        let (indices, values) = (backend.upload(indices)?, backend.upload(values)?);
        Ok(Csr::from_parts_unchecked(rows, columns, offsets, indices, values))
    }
}

impl<V: Scalar, B: Backend> Csr<V, B> {
    /// Row offsets, column indices and values; offsets and indices are copied if another matrix shares them.
    pub(crate) fn into_arrays(self, backend: &B) -> Result<CsrArrays<V, B>> {
        let Pattern { offsets, indices } = match Arc::try_unwrap(self.pattern) {
            Ok(own) => own,
            Err(shared) => Pattern {
                offsets: shared.offsets.as_ref().copied(backend)?,
                indices: copied(backend, &shared.indices)?,
            },
        };
        Ok((offsets, indices, self.values))
    }

    /// A matrix with other values, which shares the pattern.
    pub(crate) fn with_values<W: Scalar>(&self, values: B::Vec<W>) -> Csr<W, B> {
        Csr::on_pattern(self.rows, self.columns, Arc::clone(&self.pattern), values)
    }

    fn on_pattern(rows: usize, columns: usize, pattern: Arc<Pattern<B>>, values: B::Vec<V>) -> Self {
        debug_assert_eq!(pattern.offsets.as_ref().len(), rows + 1);
        debug_assert_eq!(B::len(&*pattern.indices), B::len(&*values));
        Self {
            rows,
            columns,
            pattern,
            values,
            derived: Derived::default(),
            shape: RowShape::default(),
            transposed: Kept::default(),
        }
    }

    /// A matrix from arrays that are known to be valid, already in the backend's memory.
    pub(crate) fn from_parts_unchecked(
        rows: usize,
        columns: usize,
        offsets: Offsets<B>,
        indices: B::Vec<u32>,
        values: B::Vec<V>,
    ) -> Self {
        Self::on_pattern(rows, columns, Arc::new(Pattern { offsets, indices }), values)
    }

    /// The format's name.
    pub const NAME: &'static str = "csr";

    /// Data that backends derived from the pattern.
    pub(crate) fn derived(&self) -> &Derived {
        &self.derived
    }

    sizes! { |a|
        rows: a.rows,
        columns: a.columns,
        nonzeros: B::len(&*a.values),
        storage_bytes: a.pattern.offsets.as_ref().bytes() + a.nonzeros() * (size_of::<u32>() + size_of::<V>()),
        padding: 0,
    }

    /// [`Csr::rows`], under its name in other crates.
    pub fn nrows(&self) -> usize {
        self.rows()
    }

    /// [`Csr::columns`], under its name in other crates.
    pub fn ncols(&self) -> usize {
        self.columns()
    }

    /// [`Csr::nonzeros`], under its name in other crates.
    pub fn nnz(&self) -> usize {
        self.nonzeros()
    }

    /// Bytes without a pattern that another matrix shares.
    pub(crate) fn own_bytes(&self) -> usize {
        let values = self.nonzeros() * size_of::<V>();
        if Arc::strong_count(&self.pattern) > 1 { values } else { self.storage_bytes() }
    }

    /// The arrays, borrowed.
    pub fn parts(&self) -> CsrParts<'_, V, B> {
        CsrParts {
            rows: self.rows,
            columns: self.columns,
            offsets: self.pattern.offsets.as_ref(),
            indices: &self.pattern.indices,
            values: &self.values,
            shape: &self.shape,
        }
    }

    /// The pattern, and the values as mutable.
    pub(crate) fn pattern_and_values(&mut self) -> (CsrPattern<'_, B>, &mut B::Slice<V>) {
        self.transposed.forget();
        let Self { rows, columns, pattern, values, .. } = self;
        let (offsets, indices) = (pattern.offsets.as_ref(), &*pattern.indices);
        (CsrPattern { rows: *rows, columns: *columns, offsets, indices }, values)
    }

    /// The values, in the order of the pattern: a time loop writes new ones here.
    pub fn values_mut(&mut self) -> &mut B::Slice<V> {
        self.transposed.forget();
        &mut self.values
    }

    /// Replaces the values by others of the same number.
    pub(crate) fn replace_values(&mut self, values: B::Vec<V>) {
        assert_eq!(B::len(&self.values), B::len(&values), "values of another pattern");
        self.transposed.forget();
        self.values = values;
    }

    /// y = alpha A x + beta y. If `beta` is zero, y is not read.
    ///
    /// # Errors
    /// If a vector has the wrong length, or if the device fails.
    pub fn product<T: Scalar>(
        &self,
        backend: &B,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        V: Promote<T>,
        B: Products,
    {
        Error::check_dimension("length of x", self.columns, B::len(x))?;
        Error::check_dimension("length of y", self.rows, B::len(y))?;
        backend.csr(self.parts(), Gemv { op: Op::None, alpha, x, beta, y })
    }

    product_op!(csr, " On a device the first product with the transpose makes a transposed copy, which is kept until \
        the values change; [`Csc`](super::Csc) needs none."; transposed);

    /// Y = alpha A X + beta Y for 1 to 32 vectors at once, which are interleaved: element i of vector j is at i *
    /// vectors + j. If `beta` is zero, Y is not read. For 8 vectors, A is read once instead of 8 times.
    ///
    /// # Errors
    /// If the number of vectors is not from 1 to 32, if X or Y has the wrong length, or if the device fails.
    pub fn block_product<T: Scalar>(
        &self,
        backend: &B,
        vectors: usize,
        alpha: T,
        x: &B::Slice<T>,
        beta: T,
        y: &mut B::Slice<T>,
    ) -> Result<()>
    where
        V: Promote<T>,
        B: Products,
    {
        if !(1..=32).contains(&vectors) {
            return Err(Error::InvalidArgument(format!(
                "{vectors} vectors were given at once, but only 1 to 32 are possible"
            )));
        }
        Error::check_dimension("length of X", self.columns * vectors, B::len(x))?;
        Error::check_dimension("length of Y", self.rows * vectors, B::len(y))?;
        backend.csr_block(self.parts(), vectors, Gemv { op: Op::None, alpha, x, beta, y })
    }

    /// A second matrix with the same content.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn copied(&self, backend: &B) -> Result<Self> {
        Ok(self.with_values(copied(backend, &self.values)?))
    }

    /// The same matrix in the memory of another backend.
    ///
    /// # Errors
    /// If memory runs out, or if either device fails.
    fn moved<C: Backend>(&self, from: &B, to: &C) -> Result<Csr<V, C>> {
        let offsets = match &self.pattern.offsets {
            Offsets::Lower(o) => Offsets::Lower(to.upload(from.download(&**o)?)?),
            Offsets::Wide(o) => Offsets::Wide(to.upload(from.download(&**o)?)?),
        };
        let indices = to.upload(from.download(&*self.pattern.indices)?)?;
        let values = to.upload(from.download(&*self.values)?)?;
        Ok(Csr::from_parts_unchecked(self.rows, self.columns, offsets, indices, values))
    }

    /// A range of rows, on the host.
    pub(crate) fn window(&self, backend: &B, rows: Range<usize>) -> Result<Csr<V, Host>> {
        Ok(self.windows(backend, &[rows])?.pop().expect("a window each"))
    }

    /// Several ranges of rows. The host waits for a device three times, whatever their number.
    pub(crate) fn windows(&self, backend: &B, windows: &[Range<usize>]) -> Result<Vec<Csr<V, Host>>> {
        let places: Vec<Range<usize>> = windows.iter().map(|rows| rows.start..rows.end + 1).collect();
        let offsets = self.pattern.offsets.as_ref().windows(backend, &places)?;
        let (mut of_windows, mut rest) = (Vec::with_capacity(windows.len()), &offsets[..]);
        for rows in windows {
            let (here, behind) = rest.split_at(rows.len() + 1);
            of_windows.push(here);
            rest = behind;
        }
        let entries: Vec<Range<usize>> =
            of_windows.iter().map(|offsets| offsets[0]..offsets[offsets.len() - 1]).collect();
        let count = entries.iter().map(Range::len).sum();
        let (mut indices, mut values) = (vec![0; count], vec![V::zero(); count]);
        backend.read_parts(&self.pattern.indices, &entries, &mut indices)?;
        backend.read_parts(&self.values, &entries, &mut values)?;
        let mut made = Vec::with_capacity(windows.len());
        for (rows, offsets) in windows.iter().zip(of_windows).rev() {
            let first = offsets[0];
            let behind = indices.len() - (offsets[rows.len()] - first);
            let offsets = Offsets::Wide(offsets.iter().map(|&offset| (offset - first) as u64).collect());
            let (indices, values) = (indices.split_off(behind), values.split_off(behind));
            made.push(Csr::from_parts_unchecked(rows.len(), self.columns, offsets, indices, values));
        }
        made.reverse();
        Ok(made)
    }

    /// A copy in the host's memory.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn to_host(&self, backend: &B) -> Result<Csr<V, Host>> {
        self.moved(backend, &Host)
    }

    /// The transpose, values as they are (not conjugated).
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn transpose(&self, backend: &B) -> Result<Self>
    where
        B: Conversions,
    {
        if self.rows == self.columns {
            let mut indices = backend.buffer(self.nonzeros())?;
            let mut values = backend.buffer(self.nonzeros())?;
            if backend.csr_mirror(self.parts(), &mut indices, &mut values)? {
                let offsets = self.pattern.offsets.as_ref().copied(backend)?;
                return Ok(Self::from_parts_unchecked(self.columns, self.rows, offsets, indices, values));
            }
        }
        // There is one more count than columns; the scan puts the total there. The workspace of counting is freed
        // before the transpose is allocated.
        let mut counts = backend.zeros(self.columns + 1)?;
        backend.column_counts(&self.pattern.indices, &mut counts)?;
        let mut offsets = Offsets::zeros(backend, self.columns + 1, self.nonzeros())?;
        match &mut offsets {
            Offsets::Lower(o) => backend.exclusive_scan(&counts, o)?,
            Offsets::Wide(o) => backend.exclusive_scan(&counts, o)?,
        }
        drop(counts);
        let mut indices = backend.buffer(self.nonzeros())?;
        let mut values = backend.buffer(self.nonzeros())?;
        backend.csr_transpose(self.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Self::from_parts_unchecked(self.columns, self.rows, offsets, indices, values))
    }

    pub(super) fn to_csr(&self, backend: &B) -> Result<Self> {
        self.copied(backend)
    }

    pub(super) fn from_csr(backend: &B, a: &Self) -> Result<Self> {
        a.copied(backend)
    }
}
