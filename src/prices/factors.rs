//! Prices of factorisations.

use super::machine::{self, Factors};

/// The speed of multiplications column by column, relative to that in blocks: 1.6e8 per second were measured.
pub(crate) const COLUMN_BY_COLUMN: f64 = 0.05;

/// Seconds of a factorisation and of the solves with it: a constant, for each row and each entry of A, and for each
/// entry of the factor and each multiplication. Fitted to 123 real matrices (processor time of one thread, release
/// build, 2026-11-25: docs/internals/benchmarks/choice-of-method.md).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    pub(crate) any: f64,
    pub(crate) row: f64,
    pub(crate) entry: f64,
    pub(crate) entry_of_factor: f64,
    pub(crate) multiplication: f64,
}

pub(crate) const CHOLESKY: Price =
    Price { any: 2.1e-4, row: 3.8e-7, entry: 5.6e-8, entry_of_factor: 3e-8, multiplication: 1.4e-10 };
pub(crate) const SYMMETRIC: Price =
    Price { any: 1e-4, row: 2.6e-7, entry: 1.2e-7, entry_of_factor: 4.5e-8, multiplication: 1.6e-10 };
pub(crate) const BY_COLUMNS: Price =
    Price { any: 2e-4, row: 1.7e-7, entry: 1.5e-7, entry_of_factor: 4.3e-8, multiplication: 5e-10 };
pub(crate) const BY_BLOCKS: Price =
    Price { any: 1e-4, row: 5e-7, entry: 1.5e-7, entry_of_factor: 2.5e-8, multiplication: 1.2e-10 };
/// Fitted to 26 real matrices for which diagonal blocks are used, and to 14 complex symmetric systems, six of which are
/// real (release build, 2026-11-26).
pub(crate) const DIAGONAL_BLOCKS: Price =
    Price { any: 3.5e-4, row: 6.7e-7, entry: 8.8e-8, entry_of_factor: 4.1e-8, multiplication: 1.2e-10 };
pub(crate) const SYMMETRIC_FRONTS: Price =
    Price { any: 3.1e-4, row: 1.4e-6, entry: 1.2e-7, entry_of_factor: 2.6e-8, multiplication: 8e-11 };
/// L D L^T in fronts for matrices that need no matching (16 cores of the host of an H200, one thread, 2026-11-28:
/// meshes of 2 10^5 points in two dimensions and 10^5 in three).
pub(crate) const DEFINITE_FRONTS: Price =
    Price { any: 3.1e-4, row: 1.5e-6, entry: 1.2e-7, entry_of_factor: 2.6e-8, multiplication: 8e-11 };
/// LU within a band of 3 to 30 diagonals, with the solves of a refinement (two cores, one of which works, 2026-11-28).
pub(crate) const BAND: Price =
    Price { any: 5e-5, row: 2e-7, entry: 2e-8, entry_of_factor: 4e-9, multiplication: 4e-10 };
pub(crate) const DENSE: Price =
    Price { any: 1e-4, row: 2e-7, entry: 1e-8, entry_of_factor: 1e-8, multiplication: 4e-10 };

impl Price {
    /// The price on the machine of this process.
    pub(crate) fn here(&self) -> Self {
        // Threads share the work of all parts of a factorisation alike.
        let Factors { launch, multiplication: times, .. } = machine::cpu();
        Self {
            any: launch * self.any,
            row: times * self.row,
            entry: times * self.entry,
            entry_of_factor: times * self.entry_of_factor,
            multiplication: times * self.multiplication,
        }
    }
}

/// Real multiplications in a complex one.
pub(crate) const COMPLEX: f64 = 4.0;

/// Seconds of a factorisation on a GPU beside its order, which the host finds: for each multiplication in our own
/// fronts, and for each byte of the factors (H200, 2026-11-28: 7 points 64^3, 1.2e11 multiplications, in 43 ms).
const ON_DEVICE: [f64; 2] = [3.6e-13, 3e-11];

/// Seconds of a factorisation on a GPU, beside its order.
pub(crate) fn seconds_on_device(multiplications: f64, bytes: f64) -> f64 {
    let Factors { bytes: longer, multiplication, .. } = machine::gpu();
    multiplication * ON_DEVICE[0] * multiplications + longer * ON_DEVICE[1] * bytes
}
