//! Hybrid ELL + COO.

use super::format::{Storage, check_vectors};
use super::lengths::{RowLengths, offsets_of};
use super::{Coo, Csr, Ell};
use crate::backend::{Backend, Conversions, Host, Op, Products};
use crate::error::Result;
use crate::scalar::{Scalar, Widen};

/// A matrix whose rows keep their first entries in ELL and the rest in coordinates.
///
/// The width of the ELL part is the largest that at least a third of the rows reach: a column that fewer rows fill
/// costs more as padding than its entries cost as coordinates (Bell and Garland, "Implementing sparse matrix-vector
/// multiplication on throughput-oriented processors", SC 2009, section 4; PMPP section 14.5). Theirs also asks for
/// 4096 rows, a number of their chip's threads, which is left out here.
///
/// ```text
/// width    2            all four rows have one entry, three of four have two
/// ELL      columns 0 2 1 0 | 2 * 2 3     values 1 8 4 2 | 7 * 3 1
/// COO      nothing here: rows longer than the width go on in it
/// ```
pub struct Hybrid<V: Scalar, B: Backend = Host> {
    head: Ell<V, B>,
    tail: Coo<V, B>,
}

impl<V: Scalar, B: Backend> Hybrid<V, B> {
    /// The format's name.
    pub const NAME: &'static str = "hybrid";

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.head.rows()
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.head.columns()
    }

    /// The ELL part: the first entries of every row.
    pub fn head(&self) -> &Ell<V, B> {
        &self.head
    }

    /// The COO part: what does not fit into it.
    pub fn tail(&self) -> &Coo<V, B> {
        &self.tail
    }

    /// The ELL part's width, by the rule above.
    fn width(lengths: &RowLengths) -> usize {
        let counts = lengths.counts();
        let mut reach = 0;
        for width in (1..counts.len()).rev() {
            reach += counts[width];
            if 3 * reach >= lengths.rows() {
                return width;
            }
        }
        0
    }

    /// Number of stored entries, padding not counted.
    pub fn nonzeros(&self) -> usize {
        self.head.nonzeros() + self.tail.nonzeros()
    }

    /// Bytes of all arrays.
    pub fn storage_bytes(&self) -> usize {
        self.head.storage_bytes() + self.tail.storage_bytes()
    }

    /// Entries stored beyond the nonzeros.
    pub fn padding(&self) -> usize {
        self.head.padding()
    }

    /// y = alpha op(A) x + beta y. Where `beta` is zero, y is not read.
    ///
    /// # Errors
    /// On vectors of the wrong length, where the backend has no kernel, or when the device fails.
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
        backend.ell(self.head.parts(), op, alpha, x, beta, y)?;
        if B::len(self.tail.parts().values) == 0 {
            return Ok(());
        }
        backend.coo(self.tail.parts(), op, alpha, x, T::one(), y)
    }

    pub(super) fn storage(lengths: &RowLengths, value: usize) -> Storage {
        let width = Self::width(lengths);
        let head: usize = lengths.as_slice().iter().map(|&n| (n as usize).min(width)).sum();
        let tail = (lengths.nonzeros() - head) as u128;
        let entries = lengths.rows() as u128 * width as u128 + tail;
        let index = 4 * lengths.rows() as u128 + 4 * tail;
        Storage::new(lengths.nonzeros(), entries, 4 + value, index, &format!("an ELL part of width {width}"))
    }
}

impl<V: Scalar, B: Conversions> Hybrid<V, B> {
    /// Converts.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) where padding would take more than twice the nonzeros (the rule keeps
    /// it below that); on too little memory, or when the device fails.
    pub fn from_csr(backend: &B, a: &Csr<V, B>) -> Result<Self> {
        let lengths = RowLengths::of(backend, a)?;
        Self::storage(&lengths, size_of::<V>()).check(Self::NAME)?;
        let width = Self::width(&lengths);
        Ok(Self {
            head: Ell::with_width(backend, a, &lengths, width)?,
            tail: Coo::from_tails(backend, a, width, Some(&lengths))?,
        })
    }

    /// The same entries in CSR.
    ///
    /// # Errors
    /// On too little memory, or when the device fails.
    pub fn to_csr(&self, backend: &B) -> Result<Csr<V, B>> {
        let (head, tail) = (self.head.to_csr(backend)?, self.tail.to_csr(backend)?);
        let (heads, tails) = (RowLengths::of(backend, &head)?, RowLengths::of(backend, &tail)?);
        let lengths = heads.as_slice().iter().zip(tails.as_slice()).map(|(&a, &b)| a as usize + b as usize);
        let offsets = offsets_of(backend, lengths)?;
        let nonzeros = head.nonzeros() + tail.nonzeros();
        let mut indices = backend.zeros(nonzeros)?;
        let mut values = backend.zeros(nonzeros)?;
        backend.join_rows(head.parts(), tail.parts(), offsets.as_ref(), &mut indices, &mut values)?;
        Ok(Csr::from_parts_unchecked(self.rows(), self.columns(), offsets, indices, values))
    }
}
