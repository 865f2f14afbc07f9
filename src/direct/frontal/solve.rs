//! Solves with the factors: M^-1 x and M^-T x.
//!
//! Subtrees are tasks for all threads. Each has its own part of x, and a few numbers for the rows after its columns,
//! which are those of its root. The same holds for each supernode near the root; those of a level are processed in
//! parallel, and all threads share the rows or columns of a large one.

use super::dense::{subtract, subtract_columns};
use super::numeric::{Frontal, Stretch};
use super::symmetric::TWO;
use crate::direct::Factorable;
use crate::lock::lock;
use crate::parallel::prelude::*;
use crate::parallel::{both, vectorised};
use std::ops::Range;
use std::sync::Mutex;

/// With fewer entries in all factors, or in one supernode, more threads save no time.
const WORTH_THREADS: usize = 1 << 17;
/// Rows that a thread takes at a time.
const ROWS: usize = 512;
/// Columns that a thread takes at a time.
const COLUMNS: usize = 32;

/// The part of a vector that consecutive supernodes use.
struct Part<'a, T> {
    /// The index of its first entry.
    from: usize,
    own: &'a mut [T],
    /// The entries for the rows of the last supernode, which come after its columns.
    beyond: Vec<T>,
}

/// A supernode's columns of L and U11, and its rows of U.
struct Front<'a, T> {
    width: usize,
    height: usize,
    panel: &'a [T],
    upper: &'a [T],
    /// The rows below its own: those within the current part, and the places of the others among the rows after it.
    inside: &'a [u32],
    outside: &'a [u32],
    /// The index of its own first entry of the vector.
    begin: usize,
    swaps: &'a [u32],
    /// Whether all threads work on its rows or columns.
    is_large: bool,
}

impl<T: Factorable> Part<'_, T> {
    /// Adds numbers to the entries of the rows below a front.
    #[inline(always)]
    fn add(&mut self, front: &Front<'_, T>, below: &[T]) {
        let (inside, outside) = below.split_at(front.inside.len());
        for (&row, &value) in both(front.inside, inside) {
            self.own[row as usize - self.from] += value;
        }
        for (&row, &value) in both(front.outside, outside) {
            self.beyond[row as usize] += value;
        }
    }

    /// Collects the entries of the rows below a front.
    #[inline(always)]
    fn gather(&self, front: &Front<'_, T>, below: &mut Vec<T>) {
        below.clear();
        below.extend(front.inside.iter().map(|&row| self.own[row as usize - self.from]));
        below.extend(front.outside.iter().map(|&row| self.beyond[row as usize]));
    }

    /// Returns whether a front has nothing to do on the way up, as is the case for most fronts if the vector has few
    /// nonzeros.
    #[inline(always)]
    fn is_zero(&mut self, front: &Front<'_, T>) -> bool {
        self.own(front).iter().all(|x| *x == T::default())
    }

    fn own(&mut self, front: &Front<'_, T>) -> &mut [T] {
        &mut self.own[front.begin - self.from..][..front.width]
    }
}

/// Memory for the rows below a front, and for its columns.
struct Scratch<T> {
    below: Vec<T>,
    products: Vec<T>,
}

/// A step of a solve, with a front and a part of the vector.
type Step<T> = fn(&Front<'_, T>, &mut Part<'_, T>, &mut Scratch<T>);

impl<T: Factorable> Frontal<T> {
    /// Replaces x by M^-1 x, or by M^-T x if `transposed`; `work` is as long as x.
    pub(in super::super) fn solve(&self, transposed: bool, x: &mut [T], work: &mut [T]) {
        self.solve_columns(transposed, [(x, work)]);
    }

    /// `solve` for several vectors, for which the factors are read from memory once.
    pub(in super::super) fn solve_columns<const N: usize>(
        &self,
        transposed: bool,
        mut columns: [(&mut [T], &mut [T]); N],
    ) {
        let order = &self.tree.order;
        for (x, work) in &mut columns {
            work.par_iter_mut().enumerate().with_min_len(1 << 13).for_each(|(new, value)| {
                *value = x[order[new] as usize];
            });
        }
        let mut works = columns.each_mut().map(|(_, work)| &mut **work);
        if self.tree.symmetric {
            self.up(&mut works, lower_symmetric);
            self.down(&mut works, upper_symmetric);
        } else if transposed {
            self.up(&mut works, upper_transposed);
            self.down(&mut works, lower_transposed);
        } else {
            self.up(&mut works, lower);
            self.down(&mut works, upper);
        }
        for (x, work) in columns {
            x.par_iter_mut().enumerate().with_min_len(1 << 13).for_each(|(old, value)| {
                *value = work[self.place[old] as usize];
            });
        }
    }

    /// Applies `step` to all supernodes, from the leaves to the root.
    fn up<const N: usize>(&self, columns: &mut [&mut [T]; N], step: Step<T>) {
        let parts = self.parts(columns);
        for level in &self.levels {
            self.on_threads(level, |number, piece| {
                let own = &mut *lock(&parts[number]);
                let width = self.width(piece);
                for &child in &piece.children {
                    for (part, child_part) in own.iter_mut().zip(&*lock(&parts[child])) {
                        for (&at, &value) in both(&self.pieces[child].place, &child_part.beyond) {
                            match (at as usize).checked_sub(width) {
                                None => part.own[at as usize] += value,
                                Some(at) => part.beyond[at] += value,
                            }
                        }
                    }
                }
                self.steps(piece, piece.supernodes.clone(), own, step);
            });
        }
    }

    /// Applies `step` to all supernodes, from the root to the leaves.
    fn down<const N: usize>(&self, columns: &mut [&mut [T]; N], step: Step<T>) {
        let parts = self.parts(columns);
        for level in self.levels.iter().rev() {
            self.on_threads(level, |number, piece| {
                let own = &mut *lock(&parts[number]);
                if let Some(parent) = piece.parent {
                    let width = self.width(&self.pieces[parent]);
                    for (part, above) in own.iter_mut().zip(&*lock(&parts[parent])) {
                        for (value, &at) in part.beyond.iter_mut().zip(&piece.place) {
                            *value = match (at as usize).checked_sub(width) {
                                None => above.own[at as usize],
                                Some(at) => above.beyond[at],
                            };
                        }
                    }
                }
                self.steps(piece, piece.supernodes.clone().rev(), own, step);
            });
        }
    }

    /// The number of columns of a piece's root.
    fn width(&self, piece: &Stretch) -> usize {
        self.tree.shape(piece.supernodes.end - 1).0
    }

    /// Divides each vector among the pieces.
    fn parts<'a, const N: usize>(&self, columns: &'a mut [&mut [T]; N]) -> Vec<Mutex<[Part<'a, T>; N]>> {
        let mut columns = columns.each_mut().map(|column| &mut **column);
        let part = |piece: &Stretch| {
            let Range { start, end } = piece.supernodes.clone();
            let (from, rows) = (self.tree.begin[start] as usize, self.tree.shape(end - 1).1);
            Mutex::new(columns.each_mut().map(|x| {
                let (own, behind) = std::mem::take(x).split_at_mut(self.tree.begin[end] as usize - from);
                *x = behind;
                Part { from, own, beyond: vec![T::default(); rows] }
            }))
        };
        self.pieces.iter().map(part).collect()
    }

    /// Calls a function for pieces that are independent of each other.
    fn on_threads(&self, pieces: &[u32], each: impl Fn(usize, &Stretch) + Sync) {
        let at_once = if self.tree.all_entries() < WORTH_THREADS { pieces.len() } else { 1 };
        pieces.par_iter().with_min_len(at_once).for_each(|&number| {
            each(number as usize, &self.pieces[number as usize]);
        });
    }

    /// Applies `step` to supernodes of a piece, one after another.
    fn steps(
        &self,
        piece: &Stretch,
        supernodes: impl Iterator<Item = usize>,
        parts: &mut [Part<'_, T>],
        step: Step<T>,
    ) {
        let scratch = &mut Scratch { below: Vec::new(), products: Vec::new() };
        for s in supernodes {
            let front = self.front(s, piece);
            parts.iter_mut().for_each(|part| step(&front, part, scratch));
        }
    }

    fn front(&self, s: usize, piece: &Stretch) -> Front<'_, T> {
        let (w, r) = self.tree.shape(s);
        let (number, first) = self.at[s];
        let entries = self.tree.entries(s);
        let (panel, upper) = self.values[number as usize][first..][..entries].split_at(w * (w + r));
        let (rows, begin) = (self.tree.rows(s), self.tree.begin[s] as usize);
        let outside = &self.beyond[self.beyond_at[s]..self.beyond_at[s + 1]];
        let inside = &rows[..r - outside.len()];
        let swaps = &self.swaps[begin..begin + w];
        let is_large = !piece.is_subtree && entries > WORTH_THREADS;
        Front { width: w, height: w + r, panel, upper, inside, outside, begin, swaps, is_large }
    }
}

/// Computes minus the sum of a front's columns below its own rows, times factors.
#[inline(always)]
fn columns_below<T: Factorable>(front: &Front<'_, T>, factors: &[T], below: &mut Vec<T>) {
    let (w, m) = (front.width, front.height);
    below.clear();
    below.resize(m - w, T::default());
    if !front.is_large {
        return subtract_columns(below, (front.panel, m, w), factors);
    }
    below.par_chunks_mut(ROWS).enumerate().for_each(|(chunk, below)| {
        vectorised(|| subtract_columns(below, (front.panel, m, w + chunk * ROWS), factors));
    });
}

/// Computes the products of a front's columns, below its own rows, with a vector.
#[inline(always)]
fn products_below<'a, T: Factorable>(front: &Front<'_, T>, scratch: &'a mut Scratch<T>) -> &'a [T] {
    let (w, m) = (front.width, front.height);
    let Scratch { below, products } = scratch;
    products.clear();
    products.resize(w, T::default());
    let some = |first: usize, products: &mut [T]| {
        let column = |k: usize| &front.panel[(first + k) * m + w..(first + k + 1) * m];
        let (fours, rest) = products.as_chunks_mut::<4>();
        let many = 4 * fours.len();
        for (k, products) in fours.iter_mut().enumerate() {
            *products = four_products(std::array::from_fn(|j| column(4 * k + j)), below);
        }
        for (k, value) in rest.iter_mut().enumerate() {
            *value = product(column(many + k), below);
        }
    };
    if front.is_large {
        products.par_chunks_mut(COLUMNS).enumerate().for_each(|(chunk, products)| {
            vectorised(|| some(chunk * COLUMNS, products));
        });
    } else {
        some(0, products);
    }
    products
}

/// Solves with L and then with D, which is stored on the diagonal.
fn lower_symmetric<T: Factorable>(front: &Front<'_, T>, x: &mut Part<'_, T>, scratch: &mut Scratch<T>) {
    let (w, m, panel, swaps) = (front.width, front.height, front.panel, front.swaps);
    if x.is_zero(front) {
        return;
    }
    vectorised(|| {
        let own = x.own(front);
        for (k, &with) in swaps.iter().enumerate() {
            own.swap(k, (with & !TWO) as usize);
        }
        for k in 0..w {
            let factor = own[k];
            let column = &panel[k * m..(k + 1) * m];
            let next = k + 1 + usize::from(swaps[k] & TWO != 0);
            subtract(&mut own[next..], &column[next..w], factor);
        }
        columns_below(front, own, &mut scratch.below);
        x.add(front, &scratch.below);
        let own = x.own(front);
        let mut k = 0;
        while k < w {
            let pivot = panel[k * m + k];
            if swaps[k] & TWO == 0 {
                own[k] /= pivot;
                k += 1;
                continue;
            }
            let off = panel[k * m + k + 1];
            let (one, two) = (pivot / off, panel[(k + 1) * m + k + 1] / off);
            let inverse = T::from_f64(1.0) / (off * (one * two - T::from_f64(1.0)));
            let (first, second) = (own[k], own[k + 1]);
            own[k] = (first * two - second) * inverse;
            own[k + 1] = (second * one - first) * inverse;
            k += 2;
        }
    });
}

/// Solves with L^T.
fn upper_symmetric<T: Factorable>(front: &Front<'_, T>, x: &mut Part<'_, T>, scratch: &mut Scratch<T>) {
    let (w, m, panel, swaps) = (front.width, front.height, front.panel, front.swaps);
    vectorised(|| {
        x.gather(front, &mut scratch.below);
        let products = products_below(front, scratch);
        let own = x.own(front);
        for k in (0..w).rev() {
            let next = k + 1 + usize::from(swaps[k] & TWO != 0);
            own[k] -= product(&panel[k * m + next..k * m + w], &own[next..]) + products[k];
        }
        for (k, &with) in swaps.iter().enumerate().rev() {
            own.swap(k, (with & !TWO) as usize);
        }
    });
}

fn lower<T: Factorable>(front: &Front<'_, T>, x: &mut Part<'_, T>, scratch: &mut Scratch<T>) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    if x.is_zero(front) {
        return;
    }
    vectorised(|| {
        let own = x.own(front);
        for (k, &with) in front.swaps.iter().enumerate() {
            own.swap(k, with as usize);
        }
        for k in 0..w {
            let factor = own[k];
            subtract(&mut own[k + 1..], &panel[k * m + k + 1..k * m + w], factor);
        }
        columns_below(front, own, &mut scratch.below);
        x.add(front, &scratch.below);
    });
}

fn upper<T: Factorable>(front: &Front<'_, T>, x: &mut Part<'_, T>, scratch: &mut Scratch<T>) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    vectorised(|| {
        x.gather(front, &mut scratch.below);
        let own = x.own(front);
        subtract_columns(own, (front.upper, w, 0), &scratch.below);
        for k in (0..w).rev() {
            let column = &panel[k * m..k * m + k + 1];
            let factor = own[k] / column[k];
            own[k] = factor;
            subtract(&mut own[..k], &column[..k], factor);
        }
    });
}

fn upper_transposed<T: Factorable>(front: &Front<'_, T>, x: &mut Part<'_, T>, scratch: &mut Scratch<T>) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    if x.is_zero(front) {
        return;
    }
    vectorised(|| {
        let own = x.own(front);
        for k in 0..w {
            let column = &panel[k * m..k * m + k + 1];
            own[k] = (own[k] - product(&column[..k], &own[..k])) / column[k];
        }
        let below = &mut scratch.below;
        below.clear();
        below.extend(front.upper.chunks_exact(w).map(|column| -product(column, own)));
        x.add(front, below);
    });
}

fn lower_transposed<T: Factorable>(front: &Front<'_, T>, x: &mut Part<'_, T>, scratch: &mut Scratch<T>) {
    let (w, m, panel) = (front.width, front.height, front.panel);
    vectorised(|| {
        x.gather(front, &mut scratch.below);
        let products = products_below(front, scratch);
        let own = x.own(front);
        for k in (0..w).rev() {
            own[k] -= product(&panel[k * m + k + 1..k * m + w], &own[k + 1..]) + products[k];
        }
        for (k, &with) in front.swaps.iter().enumerate().rev() {
            own.swap(k, with as usize);
        }
    });
}

/// Computes the products of four columns with one vector, which is read once.
#[inline(always)]
fn four_products<T: Factorable>(columns: [&[T]; 4], b: &[T]) -> [T; 4] {
    let n = b.len();
    let columns = columns.map(|column| &column[..n]);
    let mut sums = [[T::default(); 4]; 4];
    let whole = n - n % 4;
    for i in (0..whole).step_by(4) {
        for (sums, column) in sums.iter_mut().zip(&columns) {
            for lane in 0..4 {
                sums[lane] += column[i + lane] * b[i + lane];
            }
        }
    }
    std::array::from_fn(|j| {
        let last = both(&columns[j][whole..], &b[whole..]).fold(T::default(), |sum, (&a, &b)| sum + a * b);
        (sums[j][0] + sums[j][1]) + (sums[j][2] + sums[j][3]) + last
    })
}

/// Sums four products side by side, so that none waits for another.
#[inline(always)]
fn product<T: Factorable>(a: &[T], b: &[T]) -> T {
    let (fours, rest) = a.as_chunks::<4>();
    let (fours_b, rest_b) = b.as_chunks::<4>();
    let mut sums = [T::default(); 4];
    for (a, b) in both(fours, fours_b) {
        for k in 0..4 {
            sums[k] += a[k] * b[k];
        }
    }
    let last = both(rest, rest_b).fold(T::default(), |sum, (&a, &b)| sum + a * b);
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + last
}
