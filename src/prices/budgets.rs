//! Budgets: how much each candidate may take before the next one is tried.

use super::factors::seconds_on_device;
use super::machine::{self, Factors};
use super::order::{OrderGuess, blocks};

/// The fraction of the remaining iterations that a method chosen by the solver gets if it makes slow progress and
/// another one may converge.
pub(crate) const SHARE: f64 = 0.4;

/// The maximum number of iterations of GMRES and BiCGSTAB if another method may converge.
pub(crate) const PATIENCE: f64 = 5000.0;

/// Iterations of GMRES with the diagonal before an incomplete factorisation is made, for many unknowns.
pub(crate) const BEFORE_FACTORS: f64 = 60.0;

/// Iterations before classical multigrid, or multigrid for a matrix whose rows were scaled.
pub(crate) const BEFORE_LEVELS_OF_OTHERS: f64 = 20.0;

/// Iterations of GMRES with an incomplete factorisation before a complete one is forecast.
pub(crate) const BEFORE_FORECAST: f64 = 300.0;

/// Iterations of MINRES before a factorisation of an indefinite matrix, if an earlier factorisation was refused.
pub(crate) const BEFORE_MINRES: f64 = 100.0;

/// A factorisation is faster than multigrid if it takes at most this many multiplications in dense blocks. Fitted with
/// GUESSED of `solver::choice::race`, which says to what.
pub(crate) const AT_ONCE: f64 = 7e8;

/// Multigrid for elasticity takes up to this multiple of its usual time (plates and beams of `benches/choice`,
/// 2026-11-28).
pub(crate) const LONG_LEVELS: f64 = 2.0;

/// The limit for a factorisation that is tried before iterations which may not converge: two seconds.
pub(crate) const QUICK: f64 = 1e10;

/// The limit for a factorisation whose forecast is compared with the progress of iterations, which are given up if it
/// is faster: eight seconds (three-dimensional elements, 8 10^4 unknowns: 4.7e10 in 4.8 s on two cores, 2026-11-27).
pub(crate) const IN_RACE: f64 = 8e10;

/// The limit for a factorisation that is tried before an incomplete factorisation of a large matrix, which runs on one
/// thread, row by row: ten seconds on two.
pub(crate) const BEFORE_INCOMPLETE: f64 = 1e11;

/// The limit for a factorisation that is tried after iterations did not converge: a minute.
pub(crate) const PATIENT: f64 = 4e11;

/// A factorisation is likely to be quick for at most this many unknowns.
pub(crate) const SMALL: usize = 200_000;

/// Iterations of conjugate gradients for at most that many unknowns before a factorisation is tried.
pub(crate) const SMALL_ITERATIONS: f64 = 1000.0;

/// A factorisation is tried for at most this many unknowns after conjugate gradients have failed: the other methods for
/// such a matrix are slower.
pub(crate) const MEDIUM: usize = 500_000;

/// The maximum number of iterations of multigrid: it takes 5 to 40 if it suits, more than 100 if a mesh has flat
/// elements, and its progress is judged meanwhile (`solver::choice::trial`, `solver::choice::race`).
pub(crate) const LEVELS_ITERATIONS: f64 = 300.0;

/// The minimum number of unknowns for which multigrid is worth its setup.
pub(crate) const LEVELS_FROM: usize = 10_000;

/// Iterations of conjugate gradients on the host before multigrid, unless they are near the end: less than half of its
/// setup. Fitted as [`AT_ONCE`].
const BEFORE_LEVELS: f64 = 40.0;

/// Seconds of the setup of multigrid on a device: a constant, and a factor of the square root of the number of unknowns
/// (general setup, H200, 2026-11-26: 10 ms for 128^3 points, 20 for a triangulation of 10^6 points in reverse
/// Cuthill-McKee order, 50 for 256^3).
const DEVICE_SETUP: [f64; 2] = [5e-3, 1.2e-5];

/// Seconds of an iteration of conjugate gradients on a device: a constant, and for each unknown (H200, 2026-11-23: 9 us
/// for 64^3 points, 100 for 128^3, 93 for a triangulation of 10^6 points, 346 for 256^3).
const DEVICE_ITERATION: [f64; 2] = [5e-6, 6e-11];

/// Conjugate gradients on a device get this multiple of the setup's time before multigrid is set up: many systems are
/// solved by then, and the first setup in a new process takes twice as long.
const SETUPS: f64 = 2.0;

/// Seconds of the setup of multigrid on a device for this many unknowns.
pub(crate) fn device_setup(n: usize) -> f64 {
    let [fixed, each] = DEVICE_SETUP;
    machine::gpu().launch * (fixed + each * (n as f64).sqrt())
}

/// Iterations of conjugate gradients before multigrid is tried.
pub(crate) fn before_levels(n: usize, on_device: bool) -> f64 {
    if !on_device {
        return BEFORE_LEVELS;
    }
    let [fixed, each] = DEVICE_ITERATION;
    let Factors { launch, bytes, .. } = machine::gpu();
    SETUPS * device_setup(n) / (launch * fixed + bytes * each * n as f64)
}

/// Seconds of a factorisation for each entry of A if the ordering is computed on the host of a GPU (16 threads; P1
/// meshes, Stokes, a KKT system of 10^5 unknowns and more: 1.15e-6 to 1.6e-6, H200, 2026-11-27).
const FACTORS_BESIDE_DEVICE: f64 = 1.2e-6;

/// Seconds of an iteration of MINRES or GMRES on a device: a constant, mostly launches, and for each entry.
const DEVICE_ITERATION_OF_OTHERS: [f64; 2] = [2.5e-5, 8e-12];

/// The number of iterations of BiCGSTAB on a device before incomplete factors are tried. They take 25 ms, about as long
/// as a trial of 25 iterations with L and U of 400 level sets each (1.2 us a set, H200, 2026-11-28).
pub(crate) const BEFORE_TRIALS: f64 = 1000.0;

/// The fraction of the next candidate's time that a trial may take: an unsuccessful trial makes the total longer by a
/// half.
pub(crate) const PART: f64 = 0.5;

/// The same fraction for iterations on a device before a factorisation, whose price there is less certain. It was
/// fitted to one half of `benches/choice/gpu.csv`; on the other half, the 90 % quantile of the regrets fell from 1.6 to
/// 1.4 (2026-11-28).
const PART_ON_DEVICE: f64 = 0.25;

/// Seconds of an iteration of MINRES or GMRES on a device.
fn device_iteration_of_others(n: usize, nonzeros: usize) -> f64 {
    let [fixed, each] = DEVICE_ITERATION_OF_OTHERS;
    let Factors { launch, bytes, .. } = machine::gpu();
    launch * fixed + bytes * each * (nonzeros + 10 * n) as f64
}

/// Iterations on a device before a factorisation of unknown cost is tried.
pub(crate) fn before_factors_on_device(n: usize, nonzeros: usize) -> f64 {
    let factors = machine::cpu().multiplication * FACTORS_BESIDE_DEVICE * nonzeros as f64;
    PART_ON_DEVICE * factors / device_iteration_of_others(n, nonzeros)
}

/// Iterations of conjugate gradients on a device before a factorisation of unknown cost is tried.
pub(crate) fn cg_before_factors_on_device(n: usize, nonzeros: usize) -> f64 {
    let ([fixed, each], Factors { launch, bytes, .. }) = (DEVICE_ITERATION, machine::gpu());
    let iteration = launch * fixed + bytes * each * n as f64;
    PART_ON_DEVICE * machine::cpu().multiplication * FACTORS_BESIDE_DEVICE * nonzeros as f64 / iteration
}

/// Iterations on a device after which the graph of the matrix is searched, which takes as long (3 ms).
pub(crate) const LOOKED_AT: usize = 100;

/// The time of a factorisation beside a device without its multiplications, relative to the expected time of the order
/// on two cores; multiplications a second of the host's 16 cores; and seconds to load the fronts on the device, which
/// are used if they are faster. Of 53 factorisations of seeds 7, 31 and 53 the median takes as long as this, and 43
/// between half and twice as long (`benches/choice`, H200, 2026-11-28).
const ALL_OF_IT: f64 = 1.5;
const BLOCKS_BESIDE_DEVICE: f64 = 2e10;
const LOADING_FRONTS: f64 = 0.1;

/// Expected seconds of a factorisation with a device: the order on its host, the fronts where they are faster.
pub(crate) fn expected_factors_beside_device(guess: &OrderGuess) -> f64 {
    let on_host = machine::cpu().multiplication * guess.multiplications / BLOCKS_BESIDE_DEVICE;
    let on_device = LOADING_FRONTS + seconds_on_device(guess.multiplications, 0.0);
    ALL_OF_IT * guess.seconds + on_host.min(on_device)
}

/// Iterations on a device before a factorisation with this expected cost is tried.
pub(crate) fn before_expected_factors([n, nonzeros]: [usize; 2], guess: &OrderGuess) -> f64 {
    PART_ON_DEVICE * expected_factors_beside_device(guess) / device_iteration_of_others(n, nonzeros)
}

/// Seconds of multigrid on the host for each entry of A, including setup and iterations (0.7e-7 to 7e-7 for the
/// systems of `benches/choice` that it solved, two cores, 2026-11-28). Fitted as [`AT_ONCE`].
const LEVELS: f64 = 6e-7;

/// Seconds of multigrid on the host for a matrix with this many entries.
pub(crate) fn seconds_of_levels(nonzeros: usize) -> f64 {
    machine::cpu().bytes * LEVELS * nonzeros as f64
}

/// Multiplications of a factorisation that takes equally long.
pub(crate) fn flops_of_levels(nonzeros: usize) -> f64 {
    blocks() * seconds_of_levels(nonzeros)
}
