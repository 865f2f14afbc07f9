//! The near-null vectors that a caller gives.

use crate::error::{Error, Result};
use crate::multigrid::rigid_body_modes;
use crate::scalar::Scalar;
use std::any::Any;
use std::mem::take;

/// Vectors for multigrid's prolongation.
#[derive(Debug, Clone)]
pub(super) enum NearNull {
    /// Made from the points of a mesh: rigid body modes if each point has as many unknowns as dimensions, else
    /// constants for each unknown of a point.
    Points { dimensions: usize, coordinates: Vec<f64> },
    /// Given as entries: that of vector j at unknown i is at i * `count` + j.
    Vectors { count: usize, entries: Vec<f64> },
}

impl NearNull {
    /// Refuses vectors that do not fit a matrix with this number of unknowns.
    pub(super) fn check(&self, unknowns: usize) -> Result<()> {
        let refused = |what: String| Err(Error::InvalidArgument(what));
        match self {
            Self::Points { dimensions, coordinates } => {
                if !(1..=3).contains(dimensions) || !coordinates.len().is_multiple_of(*dimensions) {
                    return refused(format!(
                        "the coordinates have {dimensions} dimensions, but each point needs 1, 2 or 3 numbers"
                    ));
                }
                let points = coordinates.len() / dimensions;
                if points == 0 || !unknowns.is_multiple_of(points) {
                    return refused(format!(
                        "coordinates of {points} points do not fit {unknowns} unknowns: each point has equally many"
                    ));
                }
                check_finite(coordinates, *dimensions, "coordinates of point")
            }
            Self::Vectors { count, entries } => {
                if *count == 0 || *count > unknowns {
                    return refused(format!(
                        "{count} near-null vectors are not possible for {unknowns} unknowns"
                    ));
                }
                Error::check_dimension("entries of the near-null vectors", unknowns * count, entries.len())?;
                check_finite(entries, *count, "near-null vectors at unknown")
            }
        }
    }

    /// The number of unknowns of each point, if it is known.
    pub(super) fn unknowns_a_node(&self, unknowns: usize) -> Option<usize> {
        match self {
            Self::Points { dimensions, coordinates } => {
                let points = coordinates.len() / dimensions;
                Some(unknowns / points.max(1))
            }
            Self::Vectors { .. } => None,
        }
    }

    /// The vectors and their number; none if they are the constants that multigrid uses by default.
    pub(super) fn vectors<T: Scalar>(&self, unknowns: usize) -> Result<Option<(usize, Vec<T>)>> {
        match self {
            Self::Points { dimensions, coordinates } => {
                if !(2..=3).contains(dimensions) || coordinates.len() != unknowns {
                    return Ok(None);
                }
                let mut modes = rigid_body_modes(*dimensions, coordinates)?;
                let count = modes.len() / unknowns.max(1);
                // There are many modes, so they are not copied if they are doubles already.
                let same: &mut dyn Any = &mut modes;
                let modes = match same.downcast_mut::<Vec<T>>() {
                    Some(modes) => take(modes),
                    None => of(&modes),
                };
                Ok(Some((count, modes)))
            }
            Self::Vectors { count, entries } => Ok(Some((*count, of(entries)))),
        }
    }
}

/// The entries as numbers of another type.
fn of<T: Scalar>(entries: &[f64]) -> Vec<T> {
    entries.iter().map(|&entry| T::from_f64(entry)).collect()
}

/// Refuses infinite or NaN entries, and names their row.
fn check_finite(entries: &[f64], of_row: usize, what: &str) -> Result<()> {
    match entries.iter().position(|entry| !entry.is_finite()) {
        Some(place) => {
            let row = place / of_row + 1;
            Err(Error::InvalidArgument(format!("{what} {row}: an entry is infinite or NaN")))
        }
        None => Ok(()),
    }
}
