//! Finds the stencil of which all kinds of rows are parts.

use crate::backend::{
    Backend, CompressedSteps, GridHoles, GridMarks, GridRows, STENCIL_PLACES, StencilParts, WholeKinds,
};
use crate::error::Result;
use crate::parallel::both;
use crate::scalar::Scalar;
use std::collections::BTreeMap;

/// Marks a missing kind.
const NO_KIND: u8 = 255;
/// The distance between lines for a stencil without lines; any value that no distance reaches is right.
const NO_LINE: u32 = 128;

/// A stencil of which every kind of rows is a part: rows differ only in the neighbours that the boundary of the grid
/// cuts off.
pub(super) struct Stencil<V: Scalar, B: Backend> {
    shape: Shape<V>,
    places_of: B::Vec<u32>,
    grid: Option<[u32; 3]>,
    holes: Option<Holes<B>>,
}

/// The arrays of [`GridHoles`].
struct Holes<B: Backend> {
    whole: WholeKinds,
    marks: Option<GridMarks<B>>,
}

/// The shape of a stencil, as in [`StencilParts`].
#[derive(Debug, PartialEq)]
struct Shape<V> {
    line: u32,
    plane: u32,
    places: u32,
    numbers: [V; STENCIL_PLACES],
    whole: Option<u8>,
}

impl<V: Scalar, B: CompressedSteps> Stencil<V, B> {
    /// The stencil of the kinds of a matrix, given its number of columns, the kind of each row, the length of each
    /// kind, and the distances and values of all; `None` if they are not parts of one that the backend has.
    pub(super) fn of(
        backend: &B,
        columns: usize,
        kind_of: &B::Slice<u8>,
        lengths: &[u32],
        (distances, values): &(Vec<u32>, Vec<V>),
    ) -> Result<Option<Self>> {
        let found = find(lengths, distances, values);
        let Some((shape, places_of)) = found.filter(|(shape, _)| B::STENCILS.contains(&shape.places)) else {
            return Ok(None);
        };
        let whole = whole_kinds(shape.places, &places_of);
        let places_of = backend.upload(places_of)?;
        let mut of = Self { shape, places_of, grid: None, holes: None };
        if let Some(grid) = of.shape.grid(B::len(kind_of), columns) {
            let rows = backend.compressed_is_grid(kind_of, &of.places_of, of.shape.places, grid)?;
            of.grid = (rows != GridRows::Others).then_some(grid);
            if let GridRows::Holes(listed) = rows {
                let places = of.shape.places;
                // Products with complex numbers use kinds.
                let marks = match V::COMPLEX {
                    true => None,
                    false => backend.compressed_marks(kind_of, &of.places_of, places, grid, listed)?,
                };
                of.holes = Some(Holes { whole, marks });
            }
        }
        Ok(Some(of))
    }
}

impl<V: Scalar, B: Backend> Stencil<V, B> {
    pub(super) fn parts<'a>(&'a self) -> StencilParts<'a, V, B> {
        let Shape { line, plane, places, ref numbers, whole } = self.shape;
        let of_holes = |of: &'a Holes<B>| GridHoles { whole: &of.whole, marks: of.marks.as_ref() };
        let (grid, holes) = (self.grid, self.holes.as_ref().map(of_holes));
        StencilParts { line, plane, places, numbers, places_of: &self.places_of, whole, grid, holes }
    }

    /// Bytes that products read if the rows are points of a grid and need no kinds: none if no point is missing, since
    /// the row number then determines the row; else the marks.
    pub(super) fn bytes_without_kinds(&self) -> Option<usize> {
        self.grid?;
        match &self.holes {
            None => Some(0),
            Some(holes) => holes.marks.as_ref().map(|of| B::len(&*of.of_rows) + 8 * B::len(&*of.listed)),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        4 * B::len(&*self.places_of) + self.bytes_without_kinds().unwrap_or(0)
    }
}

/// The places of the stencil within the point's own plane.
const OWN_PLANE: u32 = 0x1ff << 9;

impl<V: Scalar> Shape<V> {
    /// The numbers of points per line, lines per plane, and planes, if the rows are a full grid.
    fn grid(&self, rows: usize, columns: usize) -> Option<[u32; 3]> {
        let deep = self.places & !OWN_PLANE != 0;
        let plane = if deep { self.plane } else { u32::try_from(rows).ok()? };
        let whole = |all: usize, part: u32| part > 0 && all.is_multiple_of(part as usize);
        let fits = rows == columns && whole(rows, plane) && whole(plane as usize, self.line);
        let finite = self.numbers.iter().all(|number| number.is_finite());
        (fits && finite).then(|| [self.line, plane / self.line, (rows / plane as usize) as u32])
    }
}

/// The stencil, and the places of each kind in it.
fn find<V: Scalar>(lengths: &[u32], distances: &[u32], values: &[V]) -> Option<(Shape<V>, Vec<u32>)> {
    let mut all = BTreeMap::new();
    for (&distance, &value) in both(distances, values) {
        let known = *all.entry(distance as i32).or_insert(value);
        if known.bits() != value.bits() || all.len() > STENCIL_PLACES {
            return None;
        }
    }
    let (line, plane) = strides(&all.keys().copied().collect::<Vec<_>>())?;
    let place = |distance| place(distance, line, plane).unwrap_or_default();
    let mut numbers = [V::zero(); STENCIL_PLACES];
    all.iter().for_each(|(&distance, &value)| numbers[place(distance)] = value);
    let bits = |distances: &[u32]| distances.iter().fold(0, |bits, &d| bits | 1 << place(d as i32));
    let places = bits(distances);
    let mut left = distances;
    let mut places_of = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (kind, others) = left.split_at_checked(length as usize)?;
        places_of.push(bits(kind));
        left = others;
    }
    let whole = places_of.iter().position(|&kind| kind == places).and_then(|kind| u8::try_from(kind).ok());
    Some((Shape { line, plane, places, numbers, whole }, places_of))
}

/// The kinds of rows that lack exactly the neighbours beyond the boundary, as [`WholeKinds`].
fn whole_kinds(places: u32, places_of: &[u32]) -> WholeKinds {
    std::array::from_fn(|at| {
        let side = [at / 9, at / 3 % 3, at % 3];
        let within = (0..STENCIL_PLACES).filter(|place| {
            // A step of -1 from the first point, or of 1 from the last, leaves the grid.
            [place / 9, place / 3 % 3, place % 3]
                .iter()
                .zip(side)
                .all(|(&step, side)| step == 1 || step != side)
        });
        let expected = within.fold(0, |bits, place| bits | 1 << place) & places;
        let kind = places_of.iter().position(|&kind| kind == expected);
        kind.and_then(|kind| u8::try_from(kind).ok()).unwrap_or(NO_KIND)
    })
}

/// Strides for which no two distances have the same place in the stencil. The distances themselves are tried first,
/// then their neighbours.
fn strides(distances: &[i32]) -> Option<(u32, u32)> {
    let far = || distances.iter().copied().filter(|&d| d > 2);
    let candidates: Vec<i32> = far().chain(far().flat_map(|d| [d - 1, d + 1])).collect();
    let fit = |&(line, plane): &(u32, u32)| distances.iter().all(|&d| place(d, line, plane).is_some());
    // With at least three rows in a line and three lines in a plane, no two places coincide.
    let lines = || candidates.iter().map(|&line| line as u32).filter(|&line| line > 2);
    let flat = std::iter::once(NO_LINE).chain(lines()).map(|line| (line, no_plane(line)));
    let deep = lines().flat_map(|line| {
        let planes = candidates.iter().map(|&plane| plane as u32);
        planes
            .filter(move |&plane| u64::from(plane) > 2 * (u64::from(line) + 1))
            .map(move |plane| (line, plane))
    });
    flat.chain(deep).find(fit)
}

/// The distance between planes for a stencil without planes, beyond every distance.
fn no_plane(line: u32) -> u32 {
    line.saturating_mul(4)
}

/// The place of a distance in the stencil: the nearest plane, the nearest line in it, and the rest.
fn place(distance: i32, line: u32, plane: u32) -> Option<usize> {
    let nearest = |rest: i64, stride: u32| (2 * rest + i64::from(stride)).div_euclid(2 * i64::from(stride));
    let p = nearest(i64::from(distance), plane);
    let rest = i64::from(distance) - p * i64::from(plane);
    let l = nearest(rest, line);
    let e = rest - l * i64::from(line);
    let near = [p, l, e].iter().all(|step| step.abs() <= 1);
    near.then_some((9 * (p + 1) + 3 * (l + 1) + e + 1) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(kinds: &[&[(i32, f64)]]) -> Option<(Shape<f64>, Vec<u32>)> {
        let lengths: Vec<u32> = kinds.iter().map(|kind| kind.len() as u32).collect();
        let distances: Vec<u32> = kinds.iter().flat_map(|k| k.iter().map(|e| e.0 as u32)).collect();
        let values: Vec<f64> = kinds.iter().flat_map(|k| k.iter().map(|e| e.1)).collect();
        find(&lengths, &distances, &values)
    }

    #[test]
    fn strides_of_grids_are_found() {
        assert_eq!(strides(&[-1, 0, 1]), Some((NO_LINE, no_plane(NO_LINE))));
        assert_eq!(strides(&[-100, -1, 0, 1, 100]), Some((100, 400)));
        assert_eq!(strides(&[-101, -100, -99, -1, 0, 1, 99, 100, 101]), Some((100, 400)));
        assert_eq!(strides(&[-700, -10, -1, 0, 1, 10, 700]), Some((10, 700)));
        let all: Vec<i32> = [-70, 0, 70]
            .iter()
            .flat_map(|p| [-10, 0, 10].map(|l| p + l))
            .flat_map(|d| [d - 1, d, d + 1])
            .collect();
        assert_eq!(strides(&all), Some((10, 70)));
        // Two steps along a line are more than a stencil allows.
        assert_eq!(strides(&[-2, -1, 0, 1, 2]), None);
        assert_eq!(strides(&[-100, -50, -10, -1, 0, 1, 10, 50, 100]), None);
        // With corners only, strides are neighbours of distances.
        assert_eq!(strides(&[-101, -99, 99, 101]), Some((100, 400)));
    }

    #[test]
    fn grids_are_as_large_as_their_rows() {
        let line = [(-1, 1.0), (0, 2.0), (1, 1.0)];
        let of_plane: Vec<_> = [-10, 0, 10].iter().flat_map(|l| line.map(|(d, v)| (d + l, v))).collect();
        let plane = shape_of(&[&of_plane]).unwrap().0;
        assert_eq!(plane.grid(130, 130), Some([10, 13, 1]));
        assert_eq!((plane.grid(131, 131), plane.grid(130, 131)), (None, None));
        let deep: Vec<_> = of_plane.iter().chain(&[(-70, 1.0), (70, 1.0)]).copied().collect();
        let mut deep = shape_of(&[&deep]).unwrap().0;
        assert_eq!(deep.grid(210, 210), Some([10, 7, 3]));
        assert_eq!(deep.grid(220, 220), None);
        deep.numbers[0] = f64::INFINITY;
        assert_eq!(deep.grid(210, 210), None);
    }

    #[test]
    fn kinds_at_the_sides_lack_what_lies_beyond() {
        let inside = 1 << 10 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 16;
        let (first, last) = (inside & !(1 << 10 | 1 << 12), inside & !(1 << 14 | 1 << 16));
        let kinds = whole_kinds(inside, &[first, 1 << 13, inside, last]);
        let of_point = |line: usize, point: usize| kinds[9 + 3 * line + point];
        assert_eq!([of_point(0, 0), of_point(1, 1), of_point(2, 2)], [0, 2, 3]);
        assert_eq!([of_point(0, 2), of_point(0, 1)], [NO_KIND; 2]);
        // Without neighbours in other planes, all planes are equal.
        assert_eq!(kinds[..9], kinds[9..18]);
    }

    #[test]
    fn kinds_are_parts_of_a_stencil_where_their_numbers_agree() {
        let (first, inner, last) =
            ([(0, 2.0), (1, -1.0)], [(-1, -1.5), (0, 2.0), (1, -1.0)], [(-1, -1.5), (0, 2.0)]);
        let (shape, places_of) = shape_of(&[&first, &inner, &last]).unwrap();
        assert_eq!(shape.places, 0b111 << 12);
        assert_eq!(shape.numbers[12..15], [-1.5, 2.0, -1.0]);
        assert_eq!((shape.whole, places_of), (Some(1), vec![0b110 << 12, 0b111 << 12, 0b011 << 12]));
        assert_eq!(shape_of(&[&first, &inner, &[(-1, -1.5), (0, 1.0)]]), None);
        // Zeros of different sign are different values.
        assert_eq!(shape_of(&[&[(0, 0.0)], &[(0, -0.0)]]), None);
        let (shape, _) = shape_of(&[&first, &last]).unwrap();
        assert_eq!(shape.whole, None);
        assert_eq!(shape_of(&[&[]]).unwrap().0.places, 0);
    }
}
