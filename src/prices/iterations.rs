//! Prices of iterations, incomplete factors and polynomials.

/// The time of an iteration on a CPU: seconds that every matrix takes; bytes per second if everything fits the caches;
/// the number of bytes above which it does not; and the largest factor by which it then takes longer. Fitted to
/// iterations of CG, MINRES, GMRES, BiCGSTAB and LSMR on 201 real matrices (two cores, 2026-11-25:
/// docs/internals/benchmarks/choice-of-method.md).
pub(crate) const START: f64 = 3e-6;
pub(crate) const CACHED: f64 = 28e9;
pub(crate) const CACHE: f64 = 6e6;
pub(crate) const UNCACHED: f64 = 2.8;

/// The seconds of any matrix and the factor for incomplete factors, whose rows wait for each other, and for multigrid,
/// whose small levels have a fixed time for each phase.
pub(crate) const WITH_INCOMPLETE: (f64, f64) = (8e-6, 1.2);
pub(crate) const WITH_LEVELS: (f64, f64) = (6e-5, 2.0);

/// Seconds to compute incomplete factors without fill on a CPU, per row and per entry. Of 100 real matrices with at
/// least 700 rows (two cores, 2026-11-25), the median takes 1.3 times as long as this, and 76 take between half and
/// twice as long; most of the others are factorised several times, with an increasing diagonal.
pub(crate) const WITHOUT_FILL: [f64; 2] = [6e-8, 3e-8];

/// ILU(0) and IC(0) need this many times fewer iterations than the diagonal. On the systems of `benches/choice/cpu.csv`
/// that both solve, the factor is 3 to 11 with a median of 4.5 (2026-11-28); on a third of the matrices from
/// applications it is smaller.
pub(crate) const FEWER_WITHOUT_FILL: f64 = 4.0;

/// Factors with fill on a CPU: seconds of their setup per entry of A (measured: 0.1e-6 to 10e-6), the time of an
/// iteration with them relative to one with the diagonal (2 to 17), and the factor by which they reduce the iterations
/// if they suit the matrix (10 to 600; the same file).
pub(crate) const WITH_FILL: [f64; 2] = [1.2e-6, 5.0];
pub(crate) const FEWER_WITH_FILL: f64 = 20.0;

/// Products with a polynomial of single precision, as a multiple of those of plain conjugate gradients: 1.11 to 1.20
/// were measured on grids in three dimensions (docs/internals/benchmarks/cg.md).
pub(crate) const MORE_PRODUCTS: f64 = 1.2;

/// The polynomial is chosen if it moves less than this fraction of the bytes of plain iterations: its savings are an
/// estimate, its costs certain.
pub(crate) const POLYNOMIAL_SHARE: f64 = 0.65;

/// The minimum number of bytes that must be saved: a GPU moves them in 25 ms, and the setup of the polynomial takes up
/// to 10.
pub(crate) const POLYNOMIAL_WORTH: f64 = 1e11;
