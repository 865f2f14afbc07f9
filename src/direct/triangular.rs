//! Substitution with a matrix that can be permuted to triangular form.

use super::report::Reason;
use super::steps::columns_of_transpose;
use crate::direct::Factorable;
use crate::matrix::Csr;
use crate::parallel::both;
use crate::prepare::triangular_order;

/// A matrix with the order in which its unknowns are computed one after the other: it needs no factor and no pivoting.
///
/// ```text
///     | . 2 . |  row 0 gives x_1, row 2 then x_0, row 1 then x_2:
/// A = | 1 . 3 |
///     | 4 5 . |  steps (0, 1), (2, 0), (1, 2)
/// ```
#[derive(Debug)]
pub(super) struct Substitution<T: Factorable> {
    a: Csr<T>,
    /// For each step its row, the column of the unknown that it gives, and the position of that entry in the value
    /// array.
    steps: Vec<(u32, u32, u32)>,
}

impl<T: Factorable> Substitution<T> {
    /// `None` if A has no triangular form, or a pivot is zero.
    pub(super) fn of(a: &Csr<T>) -> Result<Option<Self>, Reason> {
        let Some(order) = triangular_order(a).map_err(super::steps::as_reason)? else { return Ok(None) };
        let rows = columns_of_transpose(a)?;
        let mut steps = Vec::with_capacity(order.len());
        for (row, column) in order {
            let entries = a.row(row as usize).0;
            let Ok(place) = entries.binary_search(&column) else { return Ok(None) };
            let place = rows.starts[row as usize] + place as u32;
            if a.parts().values[place as usize] == T::default() {
                return Ok(None);
            }
            steps.push((row, column, place));
        }
        Ok(Some(Self { a: a.clone(), steps }))
    }

    /// Replaces x by A^-1 x, or by A^-T x if `transposed`.
    pub(super) fn apply(&self, transposed: bool, x: &mut Vec<T>) {
        let values = self.a.parts().values;
        let mut solution = vec![T::default(); x.len()];
        if !transposed {
            for &(row, column, place) in &self.steps {
                let (indices, entries) = self.a.row(row as usize);
                let mut left = x[row as usize];
                for (&j, &value) in both(indices, entries).filter(|(j, _)| **j != column) {
                    left -= value * solution[j as usize];
                }
                solution[column as usize] = left / values[place as usize];
            }
        } else {
            for &(row, column, place) in self.steps.iter().rev() {
                let found = x[column as usize] / values[place as usize];
                let (indices, entries) = self.a.row(row as usize);
                for (&j, &value) in both(indices, entries).filter(|(j, _)| **j != column) {
                    x[j as usize] -= value * found;
                }
                solution[row as usize] = found;
            }
        }
        *x = solution;
    }

    pub(super) fn bytes(&self) -> u64 {
        (self.a.nonzeros() * (size_of::<T>() + 4) + self.steps.len() * 12) as u64
    }
}
