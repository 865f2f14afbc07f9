//! Iterations, and what incomplete factors and polynomials cost and save.

/// Seconds of an iteration on a CPU, for any matrix, and bytes a second where all lies in the caches; bytes from which
/// on it does so less, and by how much more all may take at most. Fitted to iterations of CG, MINRES, GMRES, BiCGSTAB
/// and LSMR on 201 real matrices (two cores, 2026-11-25: docs/internals/benchmarks/choice-of-method.md).
pub(crate) const START: f64 = 3e-6;
pub(crate) const CACHED: f64 = 28e9;
pub(crate) const CACHE: f64 = 6e6;
pub(crate) const UNCACHED: f64 = 2.8;

/// The same of the solves with incomplete factors, whose rows wait for each other, and of multigrid's levels, of which
/// the small ones take as long as they have phases.
pub(crate) const WITH_INCOMPLETE: (f64, f64) = (8e-6, 1.2);
pub(crate) const WITH_LEVELS: (f64, f64) = (6e-5, 2.0);

/// Seconds to make incomplete factors without fill on a CPU, for each row and for each entry. Of 100 real matrices of
/// 700 rows and more (two cores, 2026-11-25) the median takes 1.3 times as long, and 76 no less than half and no more
/// than twice; most of the others are factorised several times, with larger and larger diagonals.
pub(crate) const WITHOUT_FILL: [f64; 2] = [6e-8, 3e-8];

/// What incomplete factors without fill divide the iterations with the diagonal by: 3 to 11 on the systems of
/// `benches/choice/cpu.csv` that both solve, 4.5 in the median (2026-11-28); less on a third of real matrices.
pub(crate) const FEWER_WITHOUT_FILL: f64 = 4.0;

/// Factors with fill on a CPU: seconds of their setup for each entry of A, which is 0.1e-6 to 10e-6, and how many times
/// as long as one with the diagonal an iteration with them takes, 2 to 17; what they divide the iterations by if they
/// suit the matrix, 10 to 600 (the same file).
pub(crate) const WITH_FILL: [f64; 2] = [1.2e-6, 5.0];
pub(crate) const FEWER_WITH_FILL: f64 = 20.0;

/// Products that a polynomial of single precision asks for, times those of plain conjugate gradients: 1.11 to 1.20 were
/// seen on grids in three dimensions (docs/internals/benchmarks/cg.md).
pub(crate) const MORE_PRODUCTS: f64 = 1.2;

/// The polynomial is taken for fewer bytes than this share of plain ones: what it saves is expected, what it costs
/// certain.
pub(crate) const POLYNOMIAL_SHARE: f64 = 0.65;

/// Bytes to be saved, at least: a GPU moves them in 25 ms, and setting the polynomial up takes up to 10.
pub(crate) const POLYNOMIAL_WORTH: f64 = 1e11;
