//! Checks whether two matrices have the same sparsity pattern.

use super::{Arrays, Integers, Layout};
use crate::backend::{Host, OffsetsRef};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::mixing::mixed;
use crate::parallel::of_stretches;
use crate::scalar::Scalar;

/// The number of elements that a thread takes at a time, which is a millisecond of work or less.
const AT_ONCE: usize = 1 << 16;

impl<T: Scalar> Arrays<'_, T, Host> {
    /// A 64-bit hash of shape, layout and index arrays in their given order. It does not depend on values, the integer
    /// width or the base.
    pub(crate) fn fingerprint(&self) -> u64 {
        let layout = match self.layout {
            Layout::Rows => 1,
            Layout::Columns => 2,
            Layout::Triplets => 3,
        };
        let (rows, columns) = (self.shape.0 as u64, self.shape.1 as u64);
        let head = [layout, rows, columns].into_iter().fold(0, |hash, number| mixed(hash ^ mixed(number)));
        let first = of_integers(self.first, self.base, mixed(head));
        mixed(head ^ first) ^ of_integers(self.second, self.base, mixed(head + 1))
    }
}

/// Sums a hash of each number and its index, so that the result does not depend on how threads divide the array.
fn of_integers(all: Integers<'_, Host>, base: u32, salt: u64) -> u64 {
    let one = |place: usize, number: u64| {
        mixed(salt ^ number.wrapping_sub(u64::from(base)) ^ (place as u64).rotate_left(32))
    };
    let (range, sum) = (0..all.len(), |all: u64, next: u64| all.wrapping_add(next));
    let sums = match all {
        Integers::Short(all) => of_stretches(&range, AT_ONCE, |part| {
            part.map(|place| one(place, u64::from(all[place]))).fold(0, sum)
        }),
        Integers::Long(all) => {
            of_stretches(&range, AT_ONCE, |part| part.map(|place| one(place, all[place])).fold(0, sum))
        }
    };
    sums.into_iter().fold(0, sum)
}

/// [`Arrays::fingerprint`] of the arrays of a matrix whose rows are sorted.
pub(crate) fn fingerprint_of<T: Scalar>(a: &Csr<T>) -> u64 {
    let parts = a.parts();
    let first = match parts.offsets {
        OffsetsRef::Lower(all) => Integers::Short(all),
        OffsetsRef::Wide(all) => Integers::Long(all),
    };
    let (shape, second) = ((a.rows(), a.columns()), Integers::Short(parts.indices));
    Arrays { layout: Layout::Rows, shape, base: 0, first, second, values: parts.values }.fingerprint()
}

/// Checks that `new` has the pattern of `own`.
///
/// # Errors
/// [`Error::InvalidMatrix`] that names the first entry that only one of them has.
pub(crate) fn check_pattern<T: Scalar>(own: &Csr<T>, new: &Csr<T>) -> Result<()> {
    for row in 0..own.rows() {
        let (before, now) = (own.row(row).0, new.row(row).0);
        if before == now {
            continue;
        }
        let same = before.iter().zip(now).take_while(|(one, other)| one == other).count();
        let (before, now) = (before.get(same), now.get(same));
        let is_new = before.is_none_or(|before| now.is_some_and(|now| now < before));
        let (column, whose) = if is_new { (now, "the new matrix") } else { (before, "the solver's matrix") };
        return Err(Error::InvalidMatrix(format!(
            "the pattern differs: row {row}, column {} (from 0) is an entry of {whose} alone; make a new solver",
            column.copied().unwrap_or_default()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays<'a>(first: &'a [u32], second: &'a [u32], values: &'a [f64]) -> Arrays<'a, f64, Host> {
        let (first, second) = (Integers::Short(first), Integers::Short(second));
        Arrays { layout: Layout::Rows, shape: (2, 3), base: 0, first, second, values }
    }

    #[test]
    fn the_fingerprint_is_that_of_places_in_their_order() {
        let values = [1.0, 2.0, 3.0];
        let own = arrays(&[0, 2, 3], &[0, 2, 1], &values).fingerprint();
        assert_eq!(own, arrays(&[0, 2, 3], &[0, 2, 1], &[9.0; 3]).fingerprint());
        let wide = Arrays {
            first: Integers::Long(&[1, 3, 4][..]),
            second: Integers::Long(&[1, 3, 2][..]),
            base: 1,
            ..arrays(&[], &[], &values)
        };
        assert_eq!(own, wide.fingerprint());
        let (a, _) = arrays(&[0, 2, 3], &[0, 2, 1], &values).build(&Host, false).unwrap();
        assert_eq!(own, fingerprint_of(&a));
        for other in [
            arrays(&[0, 1, 3], &[0, 2, 1], &values),
            arrays(&[0, 2, 3], &[2, 0, 1], &values),
            arrays(&[0, 2, 3], &[0, 2, 2], &values),
            Arrays { shape: (2, 4), ..arrays(&[0, 2, 3], &[0, 2, 1], &values) },
            Arrays { layout: Layout::Triplets, ..arrays(&[0, 2, 3], &[0, 2, 1], &values) },
        ] {
            assert_ne!(own, other.fingerprint(), "{other:?}");
        }
    }

    #[test]
    fn the_first_place_that_differs_is_named() {
        let of = |offsets: Vec<usize>, columns: Vec<u32>| {
            let values = vec![1.0; columns.len()];
            Csr::from_parts(2, 3, offsets, columns, values).unwrap()
        };
        let own = of(vec![0, 2, 3], vec![0, 2, 1]);
        assert!(check_pattern(&own, &own).is_ok());
        for (offsets, columns, place) in [
            (vec![0, 2, 3], vec![0, 1, 1], "row 0, column 1 (from 0) is an entry of the new matrix alone"),
            (
                vec![0, 1, 3],
                vec![0, 1, 2],
                "row 0, column 2 (from 0) is an entry of the solver's matrix alone",
            ),
            (
                vec![0, 2, 3],
                vec![0, 2, 2],
                "row 1, column 1 (from 0) is an entry of the solver's matrix alone",
            ),
            (vec![0, 3, 4], vec![0, 1, 2, 1], "row 0, column 1 (from 0) is an entry of the new matrix alone"),
        ] {
            let told = check_pattern(&own, &of(offsets, columns)).unwrap_err().to_string();
            assert!(told.contains(place), "{told}");
        }
    }
}
