//! R-MAT graphs and random rows.

use super::rows::{by_keys, by_rows, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::parallel::prelude::*;
use crate::random::Random;
use rayon::slice::ParallelSliceMut;
use std::fmt;
use std::str::FromStr;

/// The probabilities of three quadrants in the Graph 500 benchmark; the fourth has the rest.
const QUADRANTS: [f64; 3] = [0.57, 0.19, 0.19];

/// How [`rmat`] turns its graph into a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RmatKind {
    /// A one for each edge from row to column.
    Directed,
    /// A one for each edge between row and column, in either direction.
    #[default]
    Symmetric,
    /// Laplacian of the undirected graph plus the identity: positive definite.
    Laplacian,
}

/// A graph whose degrees follow a power law, with `edge_factor` times `vertices` edges. The place of an edge is found
/// by choosing a quadrant of the matrix, a quadrant of that, and so on, with probabilities 0.57, 0.19, 0.19, 0.05
/// (Chakrabarti, Zhan and Faloutsos, "R-MAT: a recursive model for graph mining", SIAM Data Mining 2004; the Graph
/// 500's probabilities). Loops and repeated edges are dropped.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d).
pub fn rmat(vertices: usize, edge_factor: usize, kind: RmatKind, seed: u64) -> Result<Csr<f64>> {
    unknowns(&[vertices])?;
    let edges = vertices.checked_mul(edge_factor).filter(|&edges| edges <= 1 << 40).ok_or_else(|| {
        Error::InvalidArgument(format!(
            "{vertices} vertices times edge factor {edge_factor} are too many edges"
        ))
    })?;
    let levels = vertices.max(2).next_power_of_two().ilog2();
    let [a, b, c] = QUADRANTS;
    let draw = |edge: usize| -> u64 {
        let mut random = Random::stream(seed, edge as u64);
        // If the number of vertices is not a power of two, edges outside of the matrix are drawn again.
        loop {
            let (mut row, mut column) = (0u64, 0u64);
            for _ in 0..levels {
                let u = random.unit();
                row = row << 1 | u64::from(u >= a + b);
                column = column << 1 | u64::from((a..a + b).contains(&u) || u >= a + b + c);
            }
            if (row.max(column) as usize) < vertices {
                return row << 32 | column;
            }
        }
    };
    let mut keys = vec![0; edges];
    keys.par_iter_mut().enumerate().for_each(|(edge, key)| *key = draw(edge));
    if kind != RmatKind::Directed {
        keys.extend_from_within(..);
        keys[edges..].par_iter_mut().with_min_len(1 << 14).for_each(|key| *key = key.rotate_left(32));
    }
    let is_loop = |key: u64| key >> 32 == key & 0xffff_ffff;
    keys.retain(|&key| !is_loop(key));
    if kind == RmatKind::Laplacian {
        keys.extend((0..vertices as u64).map(|v| v << 32 | v));
    }
    keys.par_sort_unstable();
    keys.dedup();
    let mut values = vec![1.0; keys.len()];
    if kind == RmatKind::Laplacian {
        let mut degrees = vec![0u32; vertices];
        keys.iter().filter(|&&key| !is_loop(key)).for_each(|key| degrees[(key >> 32) as usize] += 1);
        values.iter_mut().zip(&keys).for_each(|(value, &key)| {
            *value = if is_loop(key) { f64::from(degrees[(key >> 32) as usize]) + 1.0 } else { -1.0 };
        });
    }
    by_keys(vertices, vertices, &keys, values)
}

/// The distribution of row lengths in [`random`].
///
/// Written `8` (every row), `4..32` (uniform between the two, both included) or `power:1..1000:2.1` (power law:
/// a length l is drawn with a probability proportional to l^-2.1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RowLengths {
    /// All rows have this length.
    Constant(usize),
    /// Uniform between the two, both included.
    Uniform(usize, usize),
    /// From `min` to `max`, both included, with a probability that decreases with this power of the length.
    PowerLaw {
        /// Shortest row.
        min: usize,
        /// Longest row.
        max: usize,
        /// Exponent, above 1.
        exponent: f64,
    },
}

impl RowLengths {
    fn max(self) -> usize {
        match self {
            RowLengths::Constant(n) | RowLengths::Uniform(_, n) | RowLengths::PowerLaw { max: n, .. } => n,
        }
    }

    fn draw(self, random: &mut Random) -> usize {
        match self {
            RowLengths::Constant(n) => n,
            RowLengths::Uniform(min, max) => min + random.below((max - min + 1) as u64) as usize,
            RowLengths::PowerLaw { min, max, exponent } => {
                // The inverse of the distribution function of the continuous law on [min, max + 1).
                let power = 1.0 - exponent;
                let (low, high) = ((min as f64).powf(power), (max as f64 + 1.0).powf(power));
                let length = (low + random.unit() * (high - low)).powf(1.0 / power);
                (length as usize).clamp(min, max)
            }
        }
    }
}

impl fmt::Display for RowLengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowLengths::Constant(n) => write!(f, "{n}"),
            RowLengths::Uniform(min, max) => write!(f, "{min}..{max}"),
            RowLengths::PowerLaw { min, max, exponent } => write!(f, "power:{min}..{max}:{exponent}"),
        }
    }
}

impl FromStr for RowLengths {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let range = |text: &str| -> Option<(usize, usize)> {
            let (min, max) = text.split_once("..")?;
            Some((min.parse().ok()?, max.parse().ok()?)).filter(|(min, max)| min <= max)
        };
        let parsed = if let Some(law) = text.strip_prefix("power:") {
            law.split_once(':').and_then(|(bounds, exponent)| {
                let (min, max) = range(bounds).filter(|bounds| bounds.0 > 0)?;
                let exponent = exponent.parse().ok().filter(|e: &f64| *e > 1.0 && e.is_finite())?;
                Some(RowLengths::PowerLaw { min, max, exponent })
            })
        } else if let Some((min, max)) = range(text) {
            Some(RowLengths::Uniform(min, max))
        } else {
            text.parse().ok().map(RowLengths::Constant)
        };
        parsed.ok_or_else(|| {
            Error::InvalidArgument(format!(
                "row lengths '{text}' are not valid: write 8, 4..32, or power:1..1000:2.1 \
                 (shortest..longest:exponent above 1)"
            ))
        })
    }
}

/// Rows with these lengths. Columns are uniform without repetition, values are uniform in [-1, 1).
///
/// # Errors
/// As [`poisson2d`](super::poisson2d), and if a row could be longer than there are columns.
pub fn random(rows: usize, columns: usize, lengths: RowLengths, seed: u64) -> Result<Csr<f64>> {
    if lengths.max() > columns {
        return Err(Error::InvalidArgument(format!(
            "rows of up to {} entries do not fit into {columns} columns",
            lengths.max()
        )));
    }
    by_rows(rows, columns, |i, row| {
        let mut random = Random::stream(seed, i as u64);
        let length = lengths.draw(&mut random);
        for column in distinct(&mut random, length, columns) {
            row.push(column, random.between(-1.0, 1.0));
        }
    })
}

/// `count` different numbers below `limit`, ascending.
fn distinct(random: &mut Random, count: usize, limit: usize) -> Vec<usize> {
    if count > limit / 4 {
        // Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2S).
        let mut chosen = Vec::with_capacity(count);
        for candidate in 0..limit {
            let (open, left) = ((count - chosen.len()) as u64, (limit - candidate) as u64);
            if random.below(left) < open {
                chosen.push(candidate);
            }
        }
        return chosen;
    }
    let mut chosen: Vec<usize> = (0..count).map(|_| random.below(limit as u64) as usize).collect();
    loop {
        chosen.sort_unstable();
        chosen.dedup();
        let missing = count - chosen.len();
        if missing == 0 {
            return chosen;
        }
        chosen.extend((0..missing).map(|_| random.below(limit as u64) as usize));
    }
}
