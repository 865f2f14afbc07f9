//! The systems by name, as a whole, and the rows of one of several ranks.

use residua::generate::{self, Random};
use residua::{Csr, Cuda};
use std::ops::Range;

/// The position of point (i, j) of the mesh.
fn point(i: i64, j: i64) -> [f64; 2] {
    let mut random = Random::new(((i + 7) << 24 ^ (j + 7)) as u64);
    [i, j].map(|place| place as f64 + 0.6 * (random.unit() - 0.5))
}

/// The stiffness of an edge from a to b between triangles with c and d.
fn edge([a, b, c, d]: [[f64; 2]; 4]) -> f64 {
    let cotangent = |c: [f64; 2]| {
        let (u, v) = ([a[0] - c[0], a[1] - c[1]], [b[0] - c[0], b[1] - c[1]]);
        (u[0] * v[0] + u[1] * v[1]) / (u[0] * v[1] - u[1] * v[0]).abs()
    };
    -0.5 * (cotangent(c) + cotangent(d))
}

/// Linear elements for -div grad on `k` times `k` inner points, zero on the boundary.
fn mesh(k: usize) -> residua::Result<Csr<f64>> {
    let (size, mut offsets, mut columns, mut values) = (k as i64, vec![0], Vec::new(), Vec::new());
    let stiffness = |i: i64, j: i64, step: [i64; 2]| {
        let [c, d] = match step {
            [1, 0] => [[1, 1], [0, -1]],
            [0, 1] => [[1, 1], [-1, 0]],
            _ => [[1, 0], [0, 1]],
        };
        edge([[0, 0], step, c, d].map(|[x, y]| point(i + x, j + y)))
    };
    for j in 0..size {
        for i in 0..size {
            let row = values.len();
            let (mut diagonal, mut place) = (0.0, row);
            for [x, y] in [[-1, -1], [0, -1], [-1, 0], [0, 0], [1, 0], [0, 1], [1, 1]] {
                if [x, y] == [0, 0] {
                    place = values.len();
                    columns.push((j * size + i) as u32);
                    values.push(0.0);
                    continue;
                }
                let value =
                    if x + y > 0 { stiffness(i, j, [x, y]) } else { stiffness(i + x, j + y, [-x, -y]) };
                diagonal -= value;
                if (0..size).contains(&(i + x)) && (0..size).contains(&(j + y)) {
                    columns.push(((j + y) * size + i + x) as u32);
                    values.push(value);
                }
            }
            values[place] = diagonal;
            offsets.push(values.len());
        }
    }
    Csr::from_parts(k * k, k * k, offsets, columns, values)
}

/// The types of cases.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Whole,
    Own,
    Certified,
    Multigrid { jumps: bool, boxes: bool },
}

pub fn kind(name: &str) -> (Kind, &str) {
    match name.strip_prefix("there-").unwrap_or(name).split_once(':') {
        Some(("own", grid)) => (Kind::Own, grid),
        Some(("certified", grid)) => (Kind::Certified, grid),
        Some(("amg", grid)) => (Kind::Multigrid { jumps: false, boxes: true }, grid),
        Some(("jumps", grid)) => (Kind::Multigrid { jumps: true, boxes: true }, grid),
        Some(("aggregates", grid)) => (Kind::Multigrid { jumps: true, boxes: false }, grid),
        _ => (Kind::Whole, name),
    }
}

pub fn has_jumps(kind: Kind) -> bool {
    matches!(kind, Kind::Multigrid { jumps: true, .. })
}

/// The rows of each rank: whole planes.
pub fn planes([nx, ny, nz]: [usize; 3], ranks: usize) -> Vec<Range<usize>> {
    let bound = |rank: usize| if rank == ranks { nz } else { rank * nz / ranks / 8 * 8 };
    (0..ranks).map(|rank| nx * ny * bound(rank)..nx * ny * bound(rank + 1)).collect()
}

/// The coefficient of the block that contains a point.
fn coefficient(place: [usize; 3]) -> f64 {
    let [x, y, z] = place.map(|at| (at / 16) as u64);
    1e3_f64.powf(Random::new(x << 40 ^ y << 20 ^ z).unit())
}

/// Some rows of the 7-point matrix of this size. An off-diagonal entry is the harmonic mean of two coefficients.
pub fn some_rows(sizes: [usize; 3], jumps: bool, rows: Range<usize>) -> residua::Result<Csr<f64>> {
    type Part = (Vec<usize>, Vec<u32>, Vec<f64>);
    let [nx, ny, nz] = sizes;
    let n = nx * ny * nz;
    let threads = std::thread::available_parallelism().map_or(4, |count| count.get().div_ceil(2));
    let part = |rows: Range<usize>| -> Part {
        let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let place = [row % nx, row / nx % ny, row / nx / ny];
            let own = if jumps { coefficient(place) } else { 1.0 };
            let (mut diagonal, before) = (0.0, values.len());
            let mut middle = before;
            let ways = [(2, nx * ny), (1, nx), (0, 1), (0, 0), (0, 1), (1, nx), (2, nx * ny)];
            for (k, (axis, step)) in ways.into_iter().enumerate() {
                if k == 3 {
                    middle = values.len();
                    columns.push(row as u32);
                    values.push(0.0);
                    continue;
                }
                let up = k > 3;
                let there = if up { place[axis] + 1 < sizes[axis] } else { place[axis] > 0 };
                let mut other = place;
                if there {
                    other[axis] = if up { place[axis] + 1 } else { place[axis] - 1 };
                }
                let theirs = if jumps && there { coefficient(other) } else { own };
                let coupling = 2.0 * own * theirs / (own + theirs);
                diagonal += coupling;
                if there {
                    columns.push(if up { row + step } else { row - step } as u32);
                    values.push(-coupling);
                }
            }
            values[middle] = diagonal;
            lengths.push(values.len() - before);
        }
        (lengths, columns, values)
    };
    let bound = |k: usize| rows.start + k * rows.len() / threads;
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let part = &part;
        let all: Vec<_> = (0..threads).map(|k| scope.spawn(move || part(bound(k)..bound(k + 1)))).collect();
        all.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let mut offsets = Vec::with_capacity(n + 1);
    offsets.resize(rows.start + 1, 0);
    let entries = parts.iter().map(|part| part.2.len()).sum();
    let (mut columns, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
    for (lengths, more, numbers) in parts {
        for length in lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        columns.extend(more);
        values.extend(numbers);
    }
    offsets.resize(n + 1, values.len());
    Csr::from_parts(n, n, offsets, columns, values)
}

pub fn sizes(grid: &str) -> residua::Result<[usize; 3]> {
    let sizes: Vec<usize> = grid.split('x').filter_map(|size| size.parse().ok()).collect();
    sizes.try_into().map_err(|_| residua::Error::InvalidArgument(format!("{grid}: KxKxK")))
}

/// A matrix that is made on a GPU.
pub fn made_there(cuda: &Cuda, name: &str) -> residua::Result<Option<Csr<f64, Cuda>>> {
    if !name.starts_with("there-") {
        return Ok(None);
    }
    let [nx, ny, nz] = sizes(kind(name).1)?;
    cuda.poisson3d(nx, ny, nz).map(Some)
}

pub fn matrix(name: &str) -> residua::Result<Csr<f64>> {
    let (kind, grid) = kind(name);
    if kind != Kind::Whole {
        let sizes = sizes(grid)?;
        return some_rows(sizes, has_jumps(kind), 0..sizes.iter().product());
    }
    if let Some(size) = name.strip_prefix("mesh:").and_then(|size| size.parse().ok()) {
        return mesh(size);
    }
    let sizes: Vec<usize> = name.split('x').filter_map(|size| size.parse().ok()).collect();
    match sizes[..] {
        [x, y] => generate::poisson2d(x, y),
        [x, y, z] => generate::poisson3d(x, y, z),
        _ => Err(residua::Error::InvalidArgument(format!("{name}: KxK or KxKxK"))),
    }
}
