//! The content of a file, before its numbers are converted to the caller's type.

use super::bytes::content;
use crate::error::Result;
use crate::market::{DenseFile, Field, Format, Header, MatrixFile, Order, ReadOptions, Symmetry};
use crate::market::{against_symmetry, once_each, told_twice};
use crate::matrix::Triplets;
use crate::scalar::Scalar;
use num_complex::Complex;
use std::path::Path;

/// The values of a file.
#[derive(Debug)]
pub(super) enum Numbers {
    Real(Vec<f64>),
    Complex(Vec<Complex<f64>>),
}

impl Numbers {
    pub(super) fn field(&self) -> Field {
        match self {
            Numbers::Real(_) => Field::Real,
            Numbers::Complex(_) => Field::Complex,
        }
    }

    fn typed<T: Scalar>(&self, path: &Path) -> Result<Vec<T>> {
        if matches!(self, Numbers::Complex(_)) && !T::COMPLEX {
            return Err(super::complex(path));
        }
        let value = |re, im| T::from_parts(re, im).unwrap_or_default();
        let values: Vec<T> = match self {
            Numbers::Real(values) => values.iter().map(|&re| value(re, 0.0)).collect(),
            Numbers::Complex(values) => values.iter().map(|z| value(z.re, z.im)).collect(),
        };
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(values),
            Some(k) => Err(content(path, 0, format!("value {k} (from 0) is not finite"))),
        }
    }
}

/// A file's header and entries: positions for coordinates, none for an array stored by columns.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Numbers,
}

impl Found {
    /// Whether it is a full array.
    pub(super) fn is_array(&self) -> bool {
        self.header.format() == Format::Array
    }

    pub(super) fn array(rows: u64, columns: u64, values: Numbers) -> Self {
        let size = (rows as usize, columns as usize);
        let entries = rows.saturating_mul(columns);
        let header = Header::new(Format::Array, values.field(), Symmetry::General, size, entries);
        Self { header, rows: Vec::new(), columns: Vec::new(), values }
    }

    pub(super) fn coordinates(size: (u64, u64), places: (Vec<u32>, Vec<u32>), values: Numbers) -> Self {
        let (size, entries) = ((size.0 as usize, size.1 as usize), places.0.len() as u64);
        let header = Header::new(Format::Coordinate, values.field(), Symmetry::General, size, entries);
        Self { header, rows: places.0, columns: places.1, values }
    }

    /// Checks the entries against the symmetry of the header, and removes entries that are given twice.
    ///
    /// # Errors
    /// The index of an entry that contradicts it, and the reason.
    pub(super) fn keep_symmetry(&mut self) -> Result<(), (usize, String)> {
        fn keep<T: Scalar>(
            symmetry: Symmetry,
            rows: &mut Vec<u32>,
            columns: &mut Vec<u32>,
            values: &mut Vec<T>,
        ) -> Result<u64, (usize, String)> {
            for (k, &value) in values.iter().enumerate().filter(|&(k, _)| rows[k] == columns[k]) {
                if let Some(cause) = against_symmetry(symmetry, value) {
                    return Err((k, cause));
                }
            }
            once_each(symmetry, rows, columns, values)
                .map_err(|k| (k, told_twice(symmetry, rows[k], columns[k])))
        }
        let (symmetry, rows, columns) = (self.header.symmetry(), &mut self.rows, &mut self.columns);
        let repeated = match &mut self.values {
            Numbers::Real(values) => keep(symmetry, rows, columns, values)?,
            Numbers::Complex(values) => keep(symmetry, rows, columns, values)?,
        };
        self.header = self.header.clone().with_repeated(repeated);
        Ok(())
    }

    pub(super) fn triplets<T: Scalar>(self, path: &Path, options: &ReadOptions) -> Result<MatrixFile<T>> {
        if let Some(cause) = options.refuse(&self.header) {
            return Err(content(path, 0, cause));
        }
        let (header, values) = (self.header, self.values.typed::<T>(path)?);
        let (rows, columns) = (header.rows(), header.columns());
        if header.format() == Format::Coordinate {
            let triplets = Triplets::from_parts(rows, columns, self.rows, self.columns, values)?;
            return Ok(MatrixFile::new(header, triplets, Order::Any));
        }
        let mut triplets = Triplets::new(rows, columns)?;
        for (k, &value) in values.iter().enumerate().filter(|(_, value)| !value.is_zero()) {
            triplets.push(k % rows, k / rows, value)?;
        }
        Ok(MatrixFile::new(header, triplets, Order::Columns))
    }

    pub(super) fn dense<T: Scalar>(self, path: &Path, options: &ReadOptions) -> Result<DenseFile<T>> {
        if let Some(cause) = options.refuse_dense(&self.header) {
            return Err(content(path, 0, cause));
        }
        let (header, given) = (self.header, self.values.typed::<T>(path)?);
        if header.format() == Format::Array {
            return Ok(DenseFile::new(header, given));
        }
        let mut values = vec![T::zero(); header.rows() * header.columns()];
        for ((&row, &column), &value) in self.rows.iter().zip(&self.columns).zip(&given) {
            values[column as usize * header.rows() + row as usize] += value;
        }
        Ok(DenseFile::new(header, values))
    }
}
