//! Linear elements on triangles and tetrahedra of random shape.

use super::grid::{check_positive, point};
use super::rows::{by_entries, unknowns};
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::random::Random;

/// The maximum displacement of a point from the grid in each direction, in cells, in two and in three dimensions.
/// Elements keep their orientation, and a few are nearly flat.
const MOVED: [f64; 2] = [0.24, 0.17];

/// A cube is divided into six tetrahedra, whose edges follow the axes in these orders (H. W. Kuhn, IBM J. Res. Dev. 4,
/// 1960).
const KUHN: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// A triangulation of the unit square or cube.
struct Mesh {
    cells: [usize; 3],
    dimensions: usize,
    seed: u64,
}

/// An element: its nodes, the gradients of its linear functions, and its volume.
struct Element {
    nodes: [usize; 4],
    gradients: [[f64; 3]; 4],
    volume: f64,
}

impl Mesh {
    fn new(cells: [usize; 3], dimensions: usize, seed: u64) -> Result<Self> {
        unknowns(&cells.map(|n| n.saturating_add(1)))?;
        Ok(Self { cells, dimensions, seed })
    }

    fn sides(&self) -> [usize; 3] {
        std::array::from_fn(|d| if d < self.dimensions { self.cells[d] + 1 } else { 1 })
    }

    /// The index of a node among the unknown ones; none on the side x = 0, where the solution is given.
    fn unknown(&self, node: usize) -> Option<usize> {
        let [nx, ..] = self.sides();
        (!node.is_multiple_of(nx)).then(|| node / nx * (nx - 1) + node % nx - 1)
    }

    fn unknowns(&self) -> usize {
        let [nx, ny, nz] = self.sides();
        (nx - 1) * ny * nz
    }

    fn position(&self, node: usize) -> [f64; 3] {
        let (at, sides) = (point(self.sides(), node), self.sides());
        let mut random = Random::stream(self.seed, node as u64);
        std::array::from_fn(|d| {
            let by = MOVED[self.dimensions - 2] * (2.0 * random.unit() - 1.0);
            let is_inside = at[d] > 0 && at[d] + 1 < sides[d];
            (at[d] as f64 + if is_inside { by } else { 0.0 }) / self.cells[d].max(1) as f64
        })
    }

    /// Calls `each` for every element, with its own random numbers.
    fn for_each(&self, mut each: impl FnMut(&Element, &mut Random)) {
        let [nx, ny, _] = self.sides();
        let steps = [1, nx, nx * ny];
        let cells = self.cells.map(|n| n.max(1));
        for cell in 0..cells.iter().product() {
            let [x, y, z] = point(cells, cell);
            let first = x + nx * (y + ny * z);
            let mut random = Random::stream(!self.seed, cell as u64);
            if self.dimensions == 3 {
                for axes in KUHN {
                    let mut nodes = [first; 4];
                    (0..3).for_each(|k| nodes[k + 1] = nodes[k] + steps[axes[k]]);
                    self.take(nodes, &mut random, &mut each);
                }
            } else {
                let (right, up, across) = (first + 1, first + nx, first + nx + 1);
                let triangles = match random.below(2) {
                    0 => [[first, right, across], [first, across, up]],
                    _ => [[first, right, up], [right, across, up]],
                };
                for [a, b, c] in triangles {
                    self.take([a, b, c, c], &mut random, &mut each);
                }
            }
        }
    }

    /// Passes the element with these nodes to `each`.
    fn take(&self, nodes: [usize; 4], random: &mut Random, each: &mut impl FnMut(&Element, &mut Random)) {
        let p = nodes.map(|node| self.position(node));
        let edge = |k: usize| std::array::from_fn(|d| p[k][d] - p[0][d]);
        // In two dimensions the third edge is orthogonal to the plane.
        let e: [[f64; 3]; 3] =
            [edge(1), edge(2), if self.dimensions == 3 { edge(3) } else { [0.0, 0.0, 1.0] }];
        let normals = [cross(e[1], e[2]), cross(e[2], e[0]), cross(e[0], e[1])];
        let determinant: f64 = (0..3).map(|d| e[0][d] * normals[0][d]).sum();
        let mut gradients = [[0.0; 3]; 4];
        for k in 0..self.dimensions {
            for d in 0..3 {
                gradients[k + 1][d] = normals[k][d] / determinant;
                gradients[0][d] -= gradients[k + 1][d];
            }
        }
        let volume = determinant.abs() / if self.dimensions == 3 { 6.0 } else { 2.0 };
        each(&Element { nodes, gradients, volume }, random);
    }
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    (0..3).map(|d| a[d] * b[d]).sum()
}

/// Diffusion in the unit square (`cells[2]` of 0) or cube by linear elements on triangles or tetrahedra of random
/// shape, some of them nearly flat; u = 0 at x = 0. The coefficient of an element is random over `contrast`. With a
/// `peclet` of more than 0 there is convection by a rotating field, whose speed times spacing over diffusion is at most
/// that: the matrix is then not symmetric.
///
/// # Errors
/// As [`poisson2d`](super::poisson2d); unless `contrast` is from 1 to 1e100, and `peclet` 0 or positive.
pub fn mesh(cells: [usize; 3], contrast: f64, peclet: f64, seed: u64) -> Result<Csr<f64>> {
    if !(1.0..=1e100).contains(&contrast) {
        return Err(Error::InvalidArgument(format!("contrast must be from 1 to 1e100, not {contrast:e}")));
    }
    if peclet != 0.0 {
        check_positive("Peclet number", peclet)?;
    }
    let mesh = Mesh::new(cells, if cells[2] == 0 { 2 } else { 3 }, seed)?;
    let (n, corners) = (mesh.unknowns(), mesh.dimensions + 1);
    let speed = 2.0 * peclet * cells[0] as f64;
    let mut entries = Vec::with_capacity(n * if corners == 3 { 18 } else { 96 });
    mesh.for_each(|element, random| {
        let coefficient = contrast.powf(random.unit() - 0.5);
        let middle = mesh.position(element.nodes[0]);
        let wind = [speed * (middle[1] - 0.5), speed * (0.5 - middle[0]), 0.0];
        for a in 0..corners {
            for b in 0..corners {
                let [row, column] = [a, b].map(|k| mesh.unknown(element.nodes[k]));
                let (Some(row), Some(column)) = (row, column) else { continue };
                let stiffness = coefficient * dot(element.gradients[a], element.gradients[b]);
                let convection = dot(wind, element.gradients[b]) / corners as f64;
                let value = element.volume * (stiffness + convection);
                entries.push(((row as u64) << 32 | column as u64, value));
            }
        }
    });
    symmetric_to_the_last_bit(n, entries, peclet == 0.0)
}

/// A clamped elastic cube by linear elements on the tetrahedra of [`mesh`], three unknowns per node; Young's modulus 1.
///
/// # Errors
/// As [`elasticity3d`](super::elasticity3d).
pub fn elasticity_mesh(cells: [usize; 3], poisson_ratio: f64, seed: u64) -> Result<Csr<f64>> {
    check_positive("Poisson's ratio", poisson_ratio)?;
    if poisson_ratio >= 0.5 {
        let words = format!("Poisson's ratio must be below 0.5, not {poisson_ratio}");
        return Err(Error::InvalidArgument(words));
    }
    let lambda = poisson_ratio / ((1.0 + poisson_ratio) * (1.0 - 2.0 * poisson_ratio));
    let mu = 0.5 / (1.0 + poisson_ratio);
    let mesh = Mesh::new(cells, 3, seed)?;
    let n = unknowns(&[mesh.unknowns(), 3])?;
    let mut entries = Vec::with_capacity(n * 288);
    mesh.for_each(|element, _| {
        for a in 0..4 {
            for b in 0..4 {
                let [row, column] = [a, b].map(|k| mesh.unknown(element.nodes[k]));
                let (Some(row), Some(column)) = (row, column) else { continue };
                let (ga, gb) = (element.gradients[a], element.gradients[b]);
                for i in 0..3 {
                    for j in 0..3 {
                        let same = if i == j { mu * dot(ga, gb) } else { 0.0 };
                        let value = element.volume * (lambda * ga[i] * gb[j] + mu * ga[j] * gb[i] + same);
                        entries.push((((3 * row + i) as u64) << 32 | (3 * column + j) as u64, value));
                    }
                }
            }
        }
    });
    symmetric_to_the_last_bit(n, entries, true)
}

/// The matrix of summed entries. If it is `symmetric`, the lower triangle is a copy of the upper one, so that the
/// symmetry is exact.
fn symmetric_to_the_last_bit(n: usize, mut entries: Vec<(u64, f64)>, symmetric: bool) -> Result<Csr<f64>> {
    if symmetric {
        entries.retain(|(key, _)| key >> 32 <= u64::from(*key as u32));
        let mirrored = entries.iter().filter(|(key, _)| key >> 32 != u64::from(*key as u32));
        let mirrored: Vec<_> = mirrored.map(|&(key, value)| (key.rotate_left(32), value)).collect();
        entries.extend(mirrored);
    }
    by_entries(n, n, entries)
}
