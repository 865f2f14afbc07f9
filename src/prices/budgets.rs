//! How much each candidate of the choice may take before the next one's turn.

use super::order::OrderGuess;

/// The share of the iterations left that a method of our choice gets, where another may serve and it does not stand
/// still but creep.
pub(crate) const SHARE: f64 = 0.4;

/// Iterations that GMRES and BiCGSTAB get at most, where another method may serve.
pub(crate) const PATIENCE: f64 = 5000.0;

/// Iterations of GMRES with the diagonal before an incomplete factorisation is made, where there are many unknowns.
pub(crate) const BEFORE_FACTORS: f64 = 60.0;

/// The same before multigrid that is classical, or of a matrix whose rows were scaled.
pub(crate) const BEFORE_LEVELS_OF_OTHERS: f64 = 20.0;

/// Iterations of GMRES with an incomplete factorisation before the forecast of a complete one.
pub(crate) const BEFORE_FORECAST: f64 = 300.0;

/// Iterations of MINRES before a factorisation of a matrix that is not positive definite, where the first one that may
/// come is refused.
pub(crate) const BEFORE_MINRES: f64 = 100.0;

/// Multiplications in dense blocks of a factorisation that is faster than multigrid.
pub(crate) const AT_ONCE: f64 = 2e9;

/// The same of one that is tried before iterations which may not serve: two seconds.
pub(crate) const QUICK: f64 = 1e10;

/// The same of one that iterations are compared with while they go on, and are given up for where it is forecast to be
/// faster: eight seconds (elements in space, 8 10^4 unknowns: 4.7e10 in 4.8 s on two cores, 2026-11-27).
pub(crate) const IN_RACE: f64 = 8e10;

/// The same of one that is tried before an incomplete factorisation of a large matrix, which is made and applied on
/// one thread, row by row: ten seconds on two.
pub(crate) const BEFORE_INCOMPLETE: f64 = 1e11;

/// The same of one that is tried where iterations did not serve: a minute.
pub(crate) const PATIENT: f64 = 4e11;

/// Unknowns up to which a factorisation is likely to be quick.
pub(crate) const SMALL: usize = 200_000;

/// Iterations that conjugate gradients get for so few unknowns before a factorisation's turn.
pub(crate) const SMALL_ITERATIONS: f64 = 1000.0;

/// Unknowns up to which a factorisation is tried where conjugate gradients have ended in a fault: the other methods for
/// such a matrix are slower.
pub(crate) const MEDIUM: usize = 500_000;

/// Iterations that multigrid gets at most: it takes 5 to 40 where it suits, more than 100 where a mesh has flat
/// elements, and is judged on the way (`solver::choice::trial`, `solver::choice::race`).
pub(crate) const LEVELS_ITERATIONS: f64 = 300.0;

/// Unknowns from which on multigrid is worth its setup.
pub(crate) const LEVELS_FROM: usize = 10_000;

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
pub(crate) fn device_setup(n: usize) -> f64 {
    let [fixed, each] = DEVICE_SETUP;
    fixed + each * (n as f64).sqrt()
}

/// Iterations of conjugate gradients before multigrid's turn.
pub(crate) fn before_levels(n: usize, on_device: bool) -> f64 {
    if !on_device {
        return BEFORE_LEVELS;
    }
    let [fixed, each] = DEVICE_ITERATION;
    SETUPS * device_setup(n) / (fixed + each * n as f64)
}

/// Seconds of a factorisation for each entry of A where the order is found on the host of a GPU (16 threads; P1 meshes,
/// Stokes, a KKT system of 10^5 unknowns and more: 1.15e-6 to 1.6e-6, H200, 2026-11-27).
const FACTORS_BESIDE_DEVICE: f64 = 1.2e-6;

/// Seconds of an iteration of MINRES and GMRES there: for any matrix, most of it launches, and for each entry.
const DEVICE_ITERATION_OF_OTHERS: [f64; 2] = [2.5e-5, 8e-12];

/// Iterations of GMRES there before incomplete factors are tried, and then BiCGSTAB: about as long as fifteen iterations
/// with factors of a thousand levels (1.4 ms each, H200, 2026-11-28).
pub(crate) const BEFORE_TRIALS: f64 = 500.0;

/// The part of what comes next that a trial may take: one in vain makes all of it half as long again.
pub(crate) const PART: f64 = 0.5;

/// Seconds of an iteration of MINRES and GMRES on a device.
fn device_iteration_of_others(n: usize, nonzeros: usize) -> f64 {
    let [fixed, each] = DEVICE_ITERATION_OF_OTHERS;
    fixed + each * (nonzeros + 10 * n) as f64
}

/// Iterations on a device before a factorisation's turn, of which nothing is known.
pub(crate) fn before_factors_on_device(n: usize, nonzeros: usize) -> f64 {
    PART * FACTORS_BESIDE_DEVICE * nonzeros as f64 / device_iteration_of_others(n, nonzeros)
}

/// Iterations on a device after which the graph of the matrix is looked at, which takes as long (10 ms).
pub(crate) const LOOKED_AT: usize = 400;

/// How many times as long as the order is sought all of a factorisation takes there, besides its multiplications (2 to 5
/// for control, Stokes, waves, circuits and Oseen, 2026-11-28).
const ALL_OF_IT: f64 = 3.0;

/// Iterations on a device before a factorisation's turn, of which this is expected.
pub(crate) fn before_expected_factors([n, nonzeros]: [usize; 2], guess: &OrderGuess) -> f64 {
    let factors = ALL_OF_IT * guess.seconds + guess.factorisation();
    PART * factors / device_iteration_of_others(n, nonzeros)
}

/// Seconds of multigrid on the host for each entry of A, its setup and its iterations (7 points 50^3 with convection,
/// two cores, 2026-11-27), and multiplications of a factorisation in a second there.
const LEVELS: f64 = 8e-7;
pub(super) const BLOCKS: f64 = 5e9;

/// Seconds of multigrid on the host for a matrix of so many entries.
pub(crate) fn seconds_of_levels(nonzeros: usize) -> f64 {
    LEVELS * nonzeros as f64
}

/// Multiplications of a factorisation that takes as long.
pub(crate) fn flops_of_levels(nonzeros: usize) -> f64 {
    BLOCKS * seconds_of_levels(nonzeros)
}
