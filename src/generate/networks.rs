//! Optimal control, networks and PageRank.

use super::graphs::{RmatKind, rmat};
use super::rows::{by_entries, by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// The optimality system of linear control in discrete time (J. T. Betts, Practical Methods for Optimal Control, 2nd
/// ed., chapter 4): `stages` time steps, each with `states` states and half as many controls, costs that are random
/// over `contrast`, and dynamics x' = A x + B u with random A and B.
///
/// ```text
/// | Q    D^T |   Q  costs, diagonal
/// | D    .   |   D  a row of blocks (A, B, -I) per stage
/// ```
///
/// Symmetric and indefinite.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `contrast` is from 1 to 1e100.
pub fn control(stages: usize, states: usize, contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    let controls = states.div_ceil(2);
    let each = states + controls;
    let primal = unknowns(&[stages, each])?;
    let n = unknowns(&[primal + stages * states])?;
    let mut entries = Vec::with_capacity(n + 2 * stages * states * (each + 1));
    for i in 0..primal {
        let mut random = Random::stream(seed, i as u64);
        entries.push(((i as u64) << 32 | i as u64, contrast.powf(random.unit() - 0.5)));
    }
    for stage in 0..stages {
        let mut random = Random::stream(!seed, stage as u64);
        for state in 0..states {
            let row = primal + stage * states + state;
            let mut couple = |column: usize, value: f64| {
                entries.push(((row as u64) << 32 | column as u64, value));
                entries.push(((column as u64) << 32 | row as u64, value));
            };
            // This stage's states depend on its controls, on the states of the stage before, and on themselves.
            for control in 0..controls {
                couple(stage * each + states + control, random.unit() - 0.5);
            }
            for other in (0..states).filter(|_| stage > 0) {
                let value = (random.unit() - 0.5) / states as f64 + if other == state { 0.9 } else { 0.0 };
                couple((stage - 1) * each + other, value);
            }
            couple(stage * each + state, -1.0);
        }
    }
    by_entries(n, n, entries)
}

/// The normal equations of flows in a road network over `steps` hours: nodes on a perturbed grid with roads to near
/// ones and a few motorways, and storage from hour to hour. Weights are random over `contrast`, as in the last steps of
/// an interior-point method (M. G. C. Resende and G. Veiga, SIAM J. Optim. 3, 1993). Positive definite.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and unless `contrast` is from 1 to 1e100.
pub fn network_flow(places: usize, steps: usize, contrast: f64, seed: u64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    let n = unknowns(&[places, steps])?;
    let mut entries = Vec::with_capacity(20 * n);
    for i in 0..n {
        let (step, place) = (i / places, i % places);
        let mut random = Random::stream(seed, i as u64);
        let mut road = |j: usize, weight: f64| {
            for (row, column, value) in [(i, i, weight), (j, j, weight), (i, j, -weight), (j, i, -weight)] {
                entries.push(((row as u64) << 32 | column as u64, value));
            }
        };
        for other in neighbours(places, place, &mut Random::stream(!seed, place as u64)) {
            road(step * places + other, contrast.powf(-random.unit()));
        }
        if step + 1 < steps {
            road(i + places, contrast.powf(-random.unit()));
        }
        entries.push(((i as u64) << 32 | i as u64, 1e-3 / contrast.sqrt()));
    }
    by_entries(n, n, entries)
}

/// The places to which roads lead: the next ones in a square layout, and a distant one for a few places.
fn neighbours(places: usize, place: usize, random: &mut Random) -> Vec<usize> {
    let width = (places as f64).sqrt() as usize + 1;
    let mut others = vec![place + 1, place + width + random.below(2) as usize];
    if random.below(50) == 0 {
        others.push(random.below(places as u64) as usize);
    }
    others.retain(|&other| other < places && other != place);
    others.sort_unstable();
    others.dedup();
    others
}

/// A Newton step for the power flow in a grid of `buses`, two unknowns each (angle and voltage): lines to near buses
/// and a few long ones, with more reactance than resistance (A. R. Bergen and V. Vittal, Power Systems Analysis, 2nd
/// ed., chapter 10). Not symmetric.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn power_grid(buses: usize, seed: u64) -> Result<Csr<f64>> {
    let n = unknowns(&[buses, 2])?;
    let mut entries = Vec::with_capacity(24 * n);
    let mut add =
        |row: usize, column: usize, value: f64| entries.push(((row as u64) << 32 | column as u64, value));
    for i in 0..buses {
        let mut random = Random::stream(seed, i as u64);
        for j in neighbours(buses, i, &mut Random::stream(!seed, i as u64)) {
            let susceptance = 100_f64.powf(random.unit());
            let conductance = 0.3 * random.unit() * susceptance;
            let angle = 0.2 * (random.unit() - 0.5);
            for (from, to, angle) in [(i, j, angle), (j, i, -angle)] {
                let active = susceptance * angle.cos() - conductance * angle.sin();
                let reactive = conductance * angle.cos() + susceptance * angle.sin();
                for (row, column, value) in
                    [(0, 0, active), (0, 1, -reactive), (1, 0, reactive), (1, 1, active)]
                {
                    add(2 * from + row, 2 * to + column, -value);
                    add(2 * from + row, 2 * from + column, value);
                }
            }
        }
        // Loads, also at the buses of generators, make the matrix regular.
        add(2 * i, 2 * i, if i % 40 == 0 { 10.0 } else { 0.01 * random.unit() });
        add(2 * i + 1, 2 * i + 1, if i % 8 == 0 { 10.0 } else { 0.05 * random.unit() });
    }
    by_entries(n, n, entries)
}

/// The system of PageRank, I - 0.85 P^T, for the links of the directed graph of [`rmat`] (L. Page et al., 1999).
///
/// # Errors
/// As [`rmat`].
pub fn pagerank(pages: usize, edge_factor: usize, seed: u64) -> Result<Csr<f64>> {
    let links = rmat(pages, edge_factor, RmatKind::Directed, seed)?;
    let mut entries: Vec<(u64, f64)> = (0..pages as u64).map(|i| (i << 32 | i, 1.0)).collect();
    for page in 0..pages {
        let (others, _) = links.row(page);
        let each = 0.85 / others.len() as f64;
        entries.extend(others.iter().map(|&other| (u64::from(other) << 32 | page as u64, -each)));
    }
    by_entries(pages, pages, entries)
}

/// A symmetric positive definite Toeplitz matrix of 61 diagonals, with 1 / (1 + k)^2 at distance k from the main
/// diagonal (R. Chan and M. Ng, "Conjugate gradient methods for Toeplitz systems", SIAM Review 38, 1996).
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn toeplitz(n: usize) -> Result<Csr<f64>> {
    unknowns(&[n])?;
    by_rows(n, n, |i, row| {
        for j in i.saturating_sub(30)..n.min(i + 31) {
            row.push(j, ((1 + i.abs_diff(j)) as f64).powi(-2));
        }
    })
}
