//! The symmetry of a matrix, which a method must know before it begins.

use super::SolverBackend;
use super::builder::Builder;
use super::names::Method;
use super::report::Decision;
use crate::backend::{Communicator, Space};
use crate::error::{Error, Result};
use crate::look::{Defects, Transposed};
use crate::matrix::Csr;
use crate::report::Facts;
use crate::scalar::{Scalar, Symmetry};
use crate::spread::Edge;
use std::ops::Range;

/// Whether a matrix equals its transpose, and whether it equals its conjugate transpose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    symmetric: bool,
    pub(super) hermitian: bool,
    /// True if the symmetry was checked.
    pub(super) looked: bool,
}

impl Found {
    pub(super) fn symmetry(self) -> Symmetry {
        match self {
            Found { symmetric: true, .. } => Symmetry::Symmetric,
            Found { hermitian: true, .. } => Symmetry::Hermitian,
            _ => Symmetry::General,
        }
    }

    /// The entry of the trail.
    pub(super) fn decision<T: Scalar>(self, wishes: &Builder) -> Decision {
        Decision::new("symmetry", self.word::<T>(), if self.looked { "looked at" } else { wishes.known_from })
    }

    pub(super) fn word<T: Scalar>(self) -> &'static str {
        match (self.symmetric, self.hermitian) {
            (true, true) => "symmetric",
            (true, false) => "symmetric, not Hermitian",
            (false, true) => "Hermitian",
            (false, false) if T::COMPLEX => "not Hermitian",
            (false, false) => "not symmetric",
        }
    }
}

/// Checks the symmetry of a matrix, unless it is known to be Hermitian.
///
/// # Errors
/// If it is not Hermitian and the named method needs that; if memory runs out, or if the device fails.
pub(super) fn of<T: Scalar, B: SolverBackend>(
    backend: &B,
    a: &Csr<T, B>,
    known: Option<Symmetry>,
    method: Method,
) -> Result<Found> {
    if a.rows() != a.columns() {
        return Ok(Found { symmetric: false, hermitian: false, looked: false });
    }
    if let Some(found) = told::<T>(known) {
        return Ok(found);
    }
    let seen = Transposed::of(backend, a)?;
    let mut found = Found { symmetric: seen.is_symmetric(), hermitian: seen.is_hermitian(), looked: true };
    if T::COMPLEX && found.hermitian && method == Method::Auto {
        // It is Hermitian up to rounding, but methods for Hermitian matrices need a diagonal that is exactly real.
        found.hermitian = !has_complex_diagonal(backend, a)?;
    }
    if !found.hermitian && matches!(method, Method::Cg | Method::Minres) {
        let a = a.to_host(backend)?;
        return Err(Error::Unsupported(unsymmetric(&a, &Facts::of(&a), method)));
    }
    Ok(found)
}

/// Returns whether the first diagonal entry that is not a positive real number is complex.
fn has_complex_diagonal<T: Scalar, B: SolverBackend>(backend: &B, a: &Csr<T, B>) -> Result<bool> {
    let (mut inverse, mut rounded) = (backend.buffer::<T::Real>(a.rows())?, backend.buffer::<f32>(0)?);
    let mut found = backend.zeros::<u32>(3)?;
    backend.csr_inverse_diagonal::<T, T>(a.parts(), &mut inverse, &mut rounded, &mut found)?;
    let row = backend.download(&found)?[0] as usize;
    if row >= a.rows() {
        return Ok(false);
    }
    let entry = a.window(backend, row..row + 1)?.get(0, row);
    Ok(entry.is_some_and(|entry| entry.im() != T::Real::default()))
}

/// Returns the symmetry that the caller stated, if nothing else needs to be known.
fn told<T: Scalar>(known: Option<Symmetry>) -> Option<Found> {
    let symmetric = match known? {
        Symmetry::Symmetric if !T::COMPLEX => true,
        Symmetry::Hermitian => !T::COMPLEX,
        _ => return None,
    };
    Some(Found { symmetric, hermitian: true, looked: false })
}

/// [`of`] for a distributed matrix, of which each rank has its block and the entries beside it. The mirror image of an
/// entry beside a block is beside another one: the rank that owns the entry's column gets it, and compares.
///
/// # Errors
/// As [`of`], and if another rank has failed.
pub(super) fn of_parts<T: Scalar, B: SolverBackend, C: Communicator<B>>(
    space: &Space<B, C>,
    (own, edge): (&Csr<T, B>, &Edge<T>),
    parts: &[Range<usize>],
    known: Option<Symmetry>,
    method: Method,
) -> Result<Found> {
    if let Some(found) = told::<T>(known) {
        return Ok(found);
    }
    let (backend, communicator) = (space.backend(), space.communicator());
    let mut defects = Defects::of(backend, own)?;
    let first = parts[communicator.part()].start;
    let mut to_each = vec![Vec::new(); parts.len()];
    for (place, &row) in edge.rows.iter().enumerate() {
        let (columns, values) = edge.a.row(place);
        for (&column, &value) in columns.iter().zip(values) {
            let owner = &mut to_each[parts.partition_point(|rows| rows.end <= column as usize)];
            owner.extend((first as u32 + row).to_le_bytes());
            owner.extend(column.to_le_bytes());
            value.bits().iter().for_each(|word| owner.extend(word.to_le_bytes()));
        }
    }
    for bytes in communicator.deliver(to_each)? {
        for entry in bytes.as_chunks::<24>().0 {
            let words: Vec<u32> = entry.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let word = |k: usize| u64::from(words[k]) | u64::from(words[k + 1]) << 32;
            let (columns, values) = edge.row(words[1] as usize - first);
            let mirrored = columns.binary_search(&words[0]).map_or(T::zero(), |k| values[k]);
            defects.compare(T::from_bits([word(2), word(4)]), mirrored);
        }
    }
    let bytes = defects.0.iter().flat_map(|number| number.to_le_bytes()).collect();
    for of_rank in communicator.gather(bytes)? {
        for (most, word) in defects.0.iter_mut().zip(of_rank.as_chunks().0) {
            *most = most.max(f64::from_le_bytes(*word));
        }
    }
    let seen = defects.relative();
    let mut found = Found { symmetric: seen.is_symmetric(), hermitian: seen.is_hermitian(), looked: true };
    if T::COMPLEX && found.hermitian && method == Method::Auto {
        // As for a single rank.
        found.hermitian = space.count(has_complex_diagonal(backend, own)?)? == 0;
    }
    if !found.hermitian && matches!(method, Method::Cg | Method::Minres) {
        let kind = if T::COMPLEX { "Hermitian" } else { "symmetric" };
        return Err(Error::Unsupported(format!(
            "a matrix that is not {kind}: {method} needs a {kind} matrix; method auto chooses another"
        )));
    }
    Ok(found)
}

/// The reason for refusing a matrix that is not Hermitian.
fn unsymmetric<T: Scalar>(a: &Csr<T>, facts: &Facts, method: Method) -> String {
    let only = format!("{method} needs a symmetric matrix; method auto chooses another");
    if facts.is_skew_symmetric() {
        return format!("a skew-symmetric matrix: {only}");
    }
    if T::COMPLEX && facts.is_symmetric() {
        return format!(
            "a complex symmetric matrix: {method} needs a Hermitian one; method auto chooses another"
        );
    }
    let kind = if T::COMPLEX { "Hermitian" } else { "symmetric" };
    let example = facts.worst_pair.map_or(String::new(), |(i, j)| {
        let entry = |i, j| a.get(i, j).unwrap_or_default();
        if i == j {
            return format!(" (diagonal entry {} is {}, not real)", i + 1, entry(i, i));
        }
        format!(
            " (entry ({}, {}) is {}, entry ({}, {}) is {})",
            i + 1,
            j + 1,
            entry(i, j),
            j + 1,
            i + 1,
            entry(j, i)
        )
    });
    format!("a matrix that is not {kind}{example}: {}", only.replace("symmetric", kind))
}
