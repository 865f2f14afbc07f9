//! The content of a file in the memory of a backend.

use crate::assemble::{Assemble, Assembler, ResidentTriplets};
use crate::backend::{Backend, Conversions};
use crate::error::Result;
use crate::market::Header;
use crate::matrix::Csr;
use crate::scalar::Scalar;

/// The content of a file, in the memory of a backend, before it is assembled.
#[derive(Debug)]
pub enum Resident<T: Scalar, B: Backend> {
    /// Entries in any order; the header has the symmetry.
    Triplets(Header, ResidentTriplets<T, B>),
    /// The matrix in CSR.
    Rows(Header, Csr<T, B>),
    /// The matrix in compressed columns: the transpose in CSR.
    Columns(Header, Csr<T, B>),
}

impl<T: Scalar, B: Backend> Resident<T, B> {
    /// The header of the file.
    pub fn header(&self) -> &Header {
        let (Self::Triplets(header, _) | Self::Rows(header, _) | Self::Columns(header, _)) = self;
        header
    }

    /// The matrix: entries implied by symmetry are added, duplicates are summed.
    ///
    /// # Errors
    /// If memory runs out, or if the device fails.
    pub fn into_csr(self, backend: &B) -> Result<Csr<T, B>>
    where
        B: Assemble + Conversions,
    {
        match self {
            Self::Triplets(header, triplets) => {
                Assembler::default().symmetry(header.symmetry()).resident_to_csr(backend, triplets)
            }
            Self::Rows(_, a) => Ok(a),
            Self::Columns(_, transpose) => transpose.transpose(backend),
        }
    }
}
