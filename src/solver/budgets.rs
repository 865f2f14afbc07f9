//! How much each stage may take before the next one's turn, where a solver chooses for itself.

/// The share of the iterations left that a method of our choice gets, where another may serve and it does not stand
/// still but creep.
pub(super) const SHARE: f64 = 0.4;

/// Iterations that GMRES and BiCGSTAB get at most, where another method may serve.
pub(super) const PATIENCE: f64 = 5000.0;

/// Iterations of GMRES with the diagonal before an incomplete factorisation is made, where there are many unknowns.
pub(super) const BEFORE_FACTORS: f64 = 60.0;

/// The same before multigrid that is classical, or of a matrix whose rows were scaled.
pub(super) const BEFORE_LEVELS_OF_OTHERS: f64 = 20.0;

/// Iterations of GMRES with an incomplete factorisation before the forecast of a complete one.
pub(super) const BEFORE_FORECAST: f64 = 300.0;

/// Iterations of MINRES before a factorisation of a matrix that is not positive definite, where the first one that may
/// come is refused.
pub(super) const BEFORE_MINRES: f64 = 100.0;

/// Multiplications in dense blocks of a factorisation that is faster than multigrid.
pub(super) const AT_ONCE: f64 = 2e9;

/// The same of one that is tried before iterations which may not serve: two seconds.
pub(super) const QUICK: f64 = 1e10;

/// The same of one that iterations are compared with while they go on, and are given up for where it is forecast to be
/// faster: eight seconds.
pub(super) const IN_RACE: f64 = 4e10;

/// The same of one that is tried before an incomplete factorisation of a large matrix, which is made and applied on
/// one thread, row by row: ten seconds on two.
pub(super) const BEFORE_INCOMPLETE: f64 = 1e11;

/// The same of one that is tried where iterations did not serve: a minute.
pub(super) const PATIENT: f64 = 4e11;

/// Unknowns up to which a factorisation is likely to be quick.
pub(super) const SMALL: usize = 200_000;

/// Iterations that conjugate gradients get for so few unknowns before a factorisation's turn.
pub(super) const SMALL_ITERATIONS: f64 = 1000.0;

/// Unknowns up to which a factorisation is tried where conjugate gradients have ended in a fault: the other methods for
/// such a matrix are slower.
pub(super) const MEDIUM: usize = 500_000;

/// Iterations that multigrid gets at most: it takes 5 to 40 where it suits, more than 100 where a mesh has flat
/// elements, and is judged on the way ([`super::trial`]). Where a factorisation may come behind it, that is sooner at
/// its end than so many.
pub(super) fn levels_iterations(n: usize) -> f64 {
    if n <= MEDIUM { 100.0 } else { 300.0 }
}

/// Unknowns from which on multigrid is worth its setup.
pub(super) const LEVELS_FROM: usize = 10_000;

/// Iterations of conjugate gradients on the host that take as long as setting multigrid up, about.
const BEFORE_LEVELS: f64 = 100.0;

/// Seconds that a device takes to set multigrid up: for any matrix, and times the square root of the number of unknowns
/// (the general way, H200, 2026-11-26: 10 ms for 128^3 points, 20 for a triangulation of 10^6 points in the order of
/// reverse Cuthill-McKee, 50 for 256^3).
const DEVICE_SETUP: [f64; 2] = [5e-3, 1.2e-5];

/// Seconds of an iteration of conjugate gradients there: for any matrix, and for each unknown (H200, 2026-11-23: 9 us
/// for 64^3 points, 100 for 128^3, 93 for a triangulation of 10^6 points, 346 for 256^3).
const DEVICE_ITERATION: [f64; 2] = [5e-6, 6e-11];

/// How many times the setup's time conjugate gradients get on a device before multigrid is set up: many systems are
/// solved by then, and a process that has just started takes twice as long for its first setup.
const SETUPS: f64 = 2.0;

/// Seconds that a device takes to set multigrid up for so many unknowns.
pub(super) fn device_setup(n: usize) -> f64 {
    let [fixed, each] = DEVICE_SETUP;
    fixed + each * (n as f64).sqrt()
}

/// Iterations of conjugate gradients before multigrid's turn.
pub(super) fn before_levels(n: usize, on_device: bool) -> f64 {
    if !on_device {
        return BEFORE_LEVELS;
    }
    let [fixed, each] = DEVICE_ITERATION;
    SETUPS * device_setup(n) / (fixed + each * n as f64)
}
