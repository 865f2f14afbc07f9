//! Nested dissection of grids by their coordinates.
//!
//! Along a direction in which the numbers of neighbours differ by one at most, all points with the same number separate
//! those with smaller numbers from those with larger ones. Besides the axes these are diagonals of planes and of space,
//! in which a separator has fewer points for the sides that it leaves: with axes alone a factorisation takes 1.8 times
//! as many multiplications for 1000^2 points, and 2.5 times for 64^3.
//!
//! ```text
//!     a a s b b b        a a a s b b
//!     a a s b b b        a a s b b b      two separators of three points: x = 2, and x + y = 3
//!     a a s b b b        a s b b b b
//! ```
//!
//! Each part is cut in the direction, and at the number, with the best separator. Source: George, "Nested dissection of
//! a regular finite element mesh", SIAM J. Numer. Anal. 10 (1973).

use crate::backend::{Backend, GraphSteps, Host};
use crate::error::Result;
use crate::graph::{Adjacency, Permutation, grid_order_on, grid_sizes};
use crate::parallel::{join, prelude::*};
use crate::work::look_at;

/// Directions by their components along the axes; those in a plane come first.
const DIRECTIONS: [Point; 13] = [
    [1, 0, 0],
    [0, 1, 0],
    [1, 1, 0],
    [1, -1, 0],
    [0, 0, 1],
    [1, 0, 1],
    [1, 0, -1],
    [0, 1, 1],
    [0, 1, -1],
    [1, 1, 1],
    [1, 1, -1],
    [1, -1, 1],
    [-1, 1, 1],
];
const IN_A_PLANE: usize = 4;
/// A part with at most this many points is not cut: with 12 points, factors have 3 % more entries.
const LEAF: usize = 8;
/// Parts with more points are worth a second thread.
const WORTH_A_THREAD: usize = 1 << 12;
/// The larger side has at most this share of the points. With 0.85, factors of 64^3 points take 1.8 times as many
/// multiplications.
const LARGEST_SIDE: f64 = 0.7;

/// The coordinates of a point.
type Point = [i32; 3];

/// A graph that is a grid in two or three dimensions, each point coupled with its neighbours along the axes.
pub(crate) struct Grid {
    sizes: [usize; 3],
    /// The vertices, row by row and plane by plane.
    vertices: Vec<u32>,
}

/// A separator: its direction and number, how many points come before it and how many it has, and its costs.
#[derive(Clone, Copy)]
struct Cut {
    direction: Point,
    at: i32,
    before: usize,
    between: usize,
    cost: f64,
}

fn number_of(point: &Point, direction: &Point) -> i32 {
    point[0] * direction[0] + point[1] * direction[1] + point[2] * direction[2]
}

/// Returns the best separator across a direction. `counts` is room for the number of points with each number.
fn across(points: &[Point], direction: Point, counts: &mut Vec<u32>) -> Option<Cut> {
    let (mut low, mut high) = (i32::MAX, i32::MIN);
    for point in points {
        let number = number_of(point, &direction);
        (low, high) = (low.min(number), high.max(number));
    }
    counts.clear();
    counts.resize((high - low) as usize + 1, 0);
    points.iter().for_each(|point| counts[(number_of(point, &direction) - low) as usize] += 1);
    let all = points.len();
    let (mut best, mut before) = (None::<Cut>, 0);
    for (at, &between) in (low..).zip(&*counts) {
        let between = between as usize;
        let behind = all - before - between;
        let largest = before.max(behind) as f64 / all as f64;
        // A separator may be larger by the share by which its sides are uneven.
        let cost = between as f64 * (0.5 + largest);
        if before.min(behind) > 0 && largest <= LARGEST_SIDE && best.is_none_or(|best| cost < best.cost) {
            best = Some(Cut { direction, at, before, between, cost });
        }
        before += between;
    }
    best
}

/// Returns the best separator of a part, the first one if several are equally good.
fn best(points: &[Point], directions: &[Point], counts: &mut Vec<u32>) -> Option<Cut> {
    let better = |a: Option<Cut>, b: Option<Cut>| match (a, b) {
        (Some(a), Some(b)) if b.cost < a.cost => Some(b),
        (None, b) => b,
        (a, _) => a,
    };
    if points.len() > WORTH_A_THREAD {
        let cuts = directions.into_par_iter().map(|&direction| across(points, direction, &mut Vec::new()));
        return cuts.collect().into_iter().fold(None, better);
    }
    directions.iter().map(|&direction| across(points, direction, counts)).fold(None, better)
}

/// Sorts points in the order of elimination. `room` has space for as many points.
fn dissect(points: &mut [Point], room: &mut [Point], directions: &[Point], counts: &mut Vec<u32>) {
    if points.len() <= LEAF {
        return;
    }
    if points.len() > WORTH_A_THREAD {
        look_at(0);
    }
    let Some(Cut { direction, at, before, between, .. }) = best(points, directions, counts) else { return };
    let behind = points.len() - before - between;
    let (mut first, mut second, mut last) = (0, before, before + behind);
    for point in &*points {
        let place = match number_of(point, &direction).cmp(&at) {
            std::cmp::Ordering::Less => &mut first,
            std::cmp::Ordering::Greater => &mut second,
            std::cmp::Ordering::Equal => &mut last,
        };
        room[*place] = *point;
        *place += 1;
    }
    points.copy_from_slice(room);
    let (one, rest) = points.split_at_mut(before);
    let (room_of_one, rest_of_room) = room.split_at_mut(before);
    let (other, room_of_other) = (&mut rest[..behind], &mut rest_of_room[..behind]);
    if before + behind > WORTH_A_THREAD {
        join(
            || dissect(one, room_of_one, directions, &mut Vec::new()),
            || dissect(other, room_of_other, directions, &mut Vec::new()),
        );
    } else {
        dissect(one, room_of_one, directions, counts);
        dissect(other, room_of_other, directions, counts);
    }
}

impl Grid {
    /// Returns the grid that a graph is, if it is one.
    ///
    /// # Errors
    /// If memory runs out.
    pub(crate) fn of(graph: &Adjacency<'_>) -> Result<Option<Self>> {
        let Some(sizes) = grid_sizes(&Host, graph)? else { return Ok(None) };
        if let Some(vertices) = in_own_order(graph, sizes)? {
            return Ok(Some(Self { sizes, vertices }));
        }
        let found = grid_order_on(&Host, graph, sizes)?;
        Ok(found.map(|found| Self { sizes, vertices: found.into_permutation().into_parts().0 }))
    }

    /// Returns the order of elimination or, if the first separator alone takes more than `most` multiplications in a
    /// Cholesky factorisation, their number.
    ///
    /// # Errors
    /// If memory runs out.
    pub(crate) fn order(&self, most: f64) -> Result<std::result::Result<Permutation, f64>> {
        let [x_size, y_size, z_size] = self.sizes;
        let n = self.vertices.len();
        let mut points = vec![[0_i32; 3]; n];
        points.par_iter_mut().enumerate().with_min_len(1 << 12).for_each(|(k, point)| {
            *point = [k % x_size, k / x_size % y_size, k / x_size / y_size].map(|at| at as i32);
        });
        let directions = &DIRECTIONS[..if z_size > 1 { DIRECTIONS.len() } else { IN_A_PLANE }];
        let mut counts = Vec::new();
        if let Some(cut) = best(&points, directions, &mut counts) {
            let multiplications = (cut.between as f64).powi(3) / 6.0;
            if multiplications > most {
                return Ok(Err(multiplications));
            }
        }
        dissect(&mut points, &mut vec![[0; 3]; n], directions, &mut counts);
        let mut order = vec![0_u32; n];
        order.par_iter_mut().zip(&points).with_min_len(1 << 12).for_each(|(vertex, point)| {
            let [x, y, z] = point.map(|at| at as usize);
            *vertex = self.vertices[x + x_size * (y + y_size * z)];
        });
        Permutation::from_new_to_old(order).map(Ok)
    }
}

/// Returns the vertices row by row and plane by plane if they have been numbered in this way, along whichever axes.
fn in_own_order(graph: &Adjacency<'_>, sizes: [usize; 3]) -> Result<Option<Vec<u32>>> {
    let n = graph.vertices();
    // The neighbours of the first corner are one point, one row and one plane away.
    let near: Vec<usize> = graph.neighbours(0).collect();
    let own = match near[..] {
        [1, row] => [row, n / row, 1],
        [1, row, plane] => [row, plane / row, n / plane],
        _ => return Ok(None),
    };
    let mut axes = [0, 1, 2];
    axes.sort_by_key(|&axis| std::cmp::Reverse(own[axis]));
    if axes.map(|axis| own[axis]) != sizes {
        return Ok(None);
    }
    let distances = |ends: [bool; 3]| {
        let mut distances = vec![0_u32; n];
        distances.par_iter_mut().enumerate().with_min_len(1 << 12).for_each(|(vertex, distance)| {
            let at = [vertex % own[0], vertex / own[0] % own[1], vertex / own[0] / own[1]];
            let along = |axis: usize| match ends[axis] {
                true => sizes[axis] - 1 - at[axes[axis]],
                false => at[axes[axis]],
            };
            *distance = (0..3).map(along).sum::<usize>() as u32;
        });
        distances
    };
    let corners = [[false; 3], [false, true, false], [false, false, true]].map(distances);
    let levels = [&corners[0][..], &corners[1], &corners[2]];
    let (mut new_to_old, mut old_to_new) = (Host.zeros(n)?, Host.zeros(n)?);
    let is_grid = Host.number_grid(graph.parts(), levels, sizes, &mut new_to_old, &mut old_to_new)?;
    Ok(is_grid.then_some(new_to_old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;
    use crate::graph::permute_symmetric;
    use crate::matrix::{Csr, Triplets};
    use crate::prepare::{nested_dissection, order_size};

    fn order_of(a: &Csr<f64>) -> Option<Permutation> {
        let grid = Grid::of(&Adjacency::new(a).unwrap()).unwrap();
        grid.map(|grid| grid.order(f64::INFINITY).unwrap().unwrap())
    }

    #[test]
    fn grids_take_less_work_than_by_a_search() {
        for (sizes, share) in
            [([130, 117, 1], 0.9), ([90, 200, 1], 1.0), ([21, 25, 23], 0.9), ([12, 40, 20], 1.0)]
        {
            let a = match sizes {
                [x, y, 1] => generate::poisson2d(x, y).unwrap(),
                [x, y, z] => generate::poisson3d(x, y, z).unwrap(),
            };
            let shuffled = permute_symmetric(&a, &Permutation::random(a.rows(), 1).unwrap()).unwrap();
            let searched = order_size(&a, &nested_dissection(&a).unwrap()).unwrap();
            for a in [&a, &shuffled] {
                let found = order_size(a, &order_of(a).unwrap()).unwrap();
                let part = found.multiplications / searched.multiplications;
                assert!(part < share, "{sizes:?}: {part:.3}, {found:?}");
                let grid = Grid::of(&Adjacency::new(a).unwrap()).unwrap().unwrap();
                let least = grid.order(1.0).unwrap().unwrap_err();
                assert!(least > 0.001 * found.multiplications && least < found.multiplications, "{least:e}");
            }
        }
    }

    #[test]
    fn small_and_thin_grids_have_orders() {
        for sizes in [[2, 2, 1], [3, 2, 1], [2, 50, 1], [2, 2, 2], [5, 2, 3], [2, 3, 40]] {
            let a = generate::poisson3d(sizes[0], sizes[1], sizes[2]).unwrap();
            assert_eq!(order_of(&a).unwrap().len(), a.rows());
        }
    }

    #[test]
    fn what_is_almost_a_grid_is_none() {
        assert!(order_of(&generate::arrow(50).unwrap()).is_none());
        // Two edges exchange their ends, so that degrees stay the same.
        let a: Csr<f64> = generate::poisson2d(20, 30).unwrap();
        let end = |from: usize, to: usize| match (from, to) {
            (221, 222) => 227,
            (226, 227) => 222,
            _ => to,
        };
        let mut entries = Triplets::new(600, 600).unwrap();
        for (i, j, value) in a.iter() {
            let (i, j) = if i < j { (i, end(i, j)) } else { (end(j, i), j) };
            entries.push(i, j, value).unwrap();
        }
        assert!(order_of(&a).is_some());
        assert!(order_of(&crate::assemble::to_csr(&Host, entries).unwrap()).is_none());
    }
}
