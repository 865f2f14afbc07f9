//! Constants and launch shapes of products with a stencil on the points of a grid.

use super::{PARTIALS, STENCILS, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::backend::{StencilParts, cuda::Cuda};
use crate::scalar::{Element, Scalar};

/// Threads per block, and the minimum number of threads of a warp that compute points.
const THREADS: u32 = 128;
const OWN: usize = 30;
/// Maximum number of bytes of a run: the neighbouring points that one thread computes.
const RUN_BYTES: usize = 16;
/// Up to this number of stencil points, a thread spends most of its time waiting for the second-level cache.
const FEW_PLACES: u32 = 9;
/// The stencil points in the point's own plane.
const OWN_PLANE: u32 = 0x1ff << 9;

/// In the class of a unit, in addition to the stencil points: how often the number of elements of a run was halved, for
/// lines that are not a multiple of a run, and for vectors with any alignment.
pub(in crate::backend::cuda) const GRID_HALVED: u32 = 1 << 27;
/// In the class: set if stencil points on both sides of a point, and of its plane, have the same value. The sum of both
/// elements of x is then multiplied by it.
pub(in crate::backend::cuda) const GRID_MIRRORED: u32 = 1 << 29;
/// In the class, multiplied by `Holes`: what rows may lack apart from the points beyond the grid.
pub(in crate::backend::cuda) const GRID_HOLES: u32 = 1 << 30;

/// What rows may lack apart from the points beyond the grid: nothing (None), any stencil points (Parts), or any in a
/// few listed rows and all but the diagonal in others (Marks). `HOLES` in the kernels.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::backend::cuda) enum Holes {
    None,
    Parts,
    Marks,
}

impl Holes {
    pub(super) fn of_class(class: u32) -> Self {
        match class / GRID_HOLES {
            0 => Self::None,
            1 => Self::Parts,
            _ => Self::Marks,
        }
    }
}

/// Returns whether the stencil has points in other planes.
pub(super) fn is_deep(places: u32) -> bool {
    places & !OWN_PLANE != 0
}

/// Returns whether arithmetic takes a large part of the time.
pub(super) fn is_long(places: u32) -> bool {
    is_deep(places) && places.count_ones() > FEW_PLACES
}

/// Returns whether products should take some rows of a grid with holes from a list: those that are neither complete nor
/// only a diagonal. A listed row costs as much as 10 to 30 others. In return, no kinds are loaded, and there is no test
/// for each stencil point, which saves half of a product's time and more with many points, a tenth with few, and less
/// if these are in one plane.
pub(in crate::backend::cuda) fn marks_pay(places: u32, rows: usize, listed: usize) -> bool {
    let least = match (is_deep(places), is_long(places)) {
        (false, _) => 1024,
        (true, false) => 256,
        (true, true) => 32,
    };
    listed <= rows / least
}

/// The properties of a stencil on which the choice of kernel and launch depends.
#[derive(Clone, Copy)]
pub(in crate::backend::cuda) struct GridStencil {
    pub(super) places: u32,
    mirrored: bool,
    pub(super) holes: Holes,
}

impl GridStencil {
    pub(in crate::backend::cuda) fn of<V: Element>(a: &StencilParts<'_, V, Cuda>) -> Self {
        let holes = match a.holes {
            None => Holes::None,
            Some(holes) if holes.marks.is_some() => Holes::Marks,
            Some(_) => Holes::Parts,
        };
        let mirrored = holes != Holes::Parts && is_long(a.places) && a.is_mirrored();
        Self { places: a.places, mirrored, holes }
    }

    /// Returns whether kernels read the marks of rows instead of their kinds.
    pub(in crate::backend::cuda) fn is_marked(self) -> bool {
        self.holes == Holes::Marks
    }

    /// Returns the class of the unit.
    pub(super) fn class(self) -> u32 {
        self.places + u32::from(self.mirrored) * GRID_MIRRORED + self.holes as u32 * GRID_HOLES
    }
}

/// Minimum number of points per multiprocessor of a grid whose rows may lack any stencil points. With fewer,
/// `compressed_stencil.cu` is faster, because it has more threads, which wait for fewer kinds.
const FEWEST_OF_PARTS: usize = 7900;

/// Lines per thread.
fn lines(places: u32) -> usize {
    if is_deep(places) { 2 } else { 4 }
}

/// Maximum number of planes per thread.
fn depth(places: u32, bytes: usize, mirrored: bool) -> u32 {
    match is_deep(places) {
        false => 1,
        true if mirrored => 6,
        true if bytes > 8 && !is_long(places) => 2,
        true => 4,
    }
}

/// Minimum number of blocks per multiprocessor, limited so that there are registers for everything in flight: one less
/// if the kernel does `more` than a product, one more if arithmetic determines the time.
fn blocks((places, holes): (u32, Holes), complex: bool, more: bool) -> u32 {
    match (complex, more) {
        (false, false) if holes != Holes::None && is_long(places) => 4,
        (false, false) if holes == Holes::Marks && !is_deep(places) => 7,
        (true, more) => 4 - u32::from(more),
        (false, true) => 4,
        (false, false) => 5 + u32::from(is_long(places)),
    }
}

/// Maximum number of warps in a block that have lines next to each other.
fn stack(places: u32, bytes: usize) -> usize {
    if is_deep(places) && bytes >= 8 { 4 } else { 1 }
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let (places, halved) = (unit.size_class() % GRID_HALVED, unit.size_class() % GRID_MIRRORED / GRID_HALVED);
    let mirrored = unit.size_class() % GRID_HOLES / GRID_MIRRORED;
    let holes = Holes::of_class(unit.size_class());
    let scalar = unit.type_of("SCALAR");
    let bytes = unit.scalar_bytes();
    vec![
        ("THREADS", THREADS),
        ("PLACES", places),
        ("LINES", lines(places) as u32),
        ("DEPTH", depth(places, bytes, mirrored != 0)),
        ("RUN", (RUN_BYTES / bytes) as u32 >> halved),
        ("MIRRORED", mirrored),
        ("HOLES", holes as u32),
        ("BLOCKS", blocks((places, holes), scalar.starts_with('c'), false)),
        ("FEWER_BLOCKS", blocks((places, holes), scalar.starts_with('c'), true)),
    ]
}

/// Returns the classes of units for elements of type T.
pub(in crate::backend::cuda) fn grid_classes<T: Scalar>() -> Vec<u32> {
    let runs = (RUN_BYTES / size_of::<T>()).ilog2();
    let stencils = stencils().filter(|stencil| stencil.holes == Holes::None || !T::COMPLEX);
    stencils
        .flat_map(|stencil| (0..=runs).map(move |halved| stencil.class() + halved * GRID_HALVED))
        .collect()
}

/// Returns every stencil that has kernels, with every kind of holes.
pub(super) fn stencils() -> impl Iterator<Item = GridStencil> {
    let kinds = [
        (false, Holes::None),
        (false, Holes::Parts),
        (false, Holes::Marks),
        (true, Holes::None),
        (true, Holes::Marks),
    ];
    let all = STENCILS
        .into_iter()
        .flat_map(move |places| kinds.map(|(mirrored, holes)| GridStencil { places, mirrored, holes }));
    all.filter(|stencil| !stencil.mirrored || is_long(stencil.places))
}

/// What a kernel does with the sums.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::backend::cuda) enum GridEnd {
    Product,
    /// The product is added to the vector.
    Sum,
    Dot,
    Chebyshev,
}

/// How a grid is divided. `dealt` is the `Grid` of the kernel in `compressed_march.cu` or `compressed_grid.cu`.
pub(in crate::backend::cuda) struct CompressedGrid {
    pub(in crate::backend::cuda) shape: Shape,
    pub(in crate::backend::cuda) marches: bool,
    pub(in crate::backend::cuda) dealt: [u32; 8],
}

/// Returns the launch of a product on a grid with these numbers of points per line, lines per plane and planes, with
/// vectors at these addresses. It goes through shared memory, or has a block per tile. For a product with x.y it has as
/// many blocks as the device can hold at a time, and each writes a partial sum. The number of planes per thread is
/// chosen so that the last wave has enough blocks. `None` if `compressed_stencil.cu` is better: with holes and few
/// points, and with holes and complex numbers, which were not measured.
pub(super) fn tiled<T: Scalar>(
    chip: Chip,
    stencil: GridStencil,
    grid: [u32; 3],
    vectors: &[u64],
    end: GridEnd,
) -> Option<CompressedGrid> {
    let GridStencil { places, mirrored, holes } = stencil;
    let [points, lines_a_plane, planes] = grid.map(|n| n as usize);
    let few = points * lines_a_plane * planes < FEWEST_OF_PARTS * chip.multiprocessors as usize;
    if holes != Holes::None && T::COMPLEX || holes == Holes::Parts && few {
        return None;
    }
    let whole = |run: usize| {
        points.is_multiple_of(run)
            && vectors.iter().all(|address| address.is_multiple_of((run * size_of::<T>()) as u64))
    };
    let most = RUN_BYTES / size_of::<T>();
    let halved = (0..most.ilog2()).find(|&halved| whole(most >> halved)).unwrap_or(most.ilog2());
    let (runs, groups) = (points / (most >> halved), lines_a_plane.div_ceil(lines(places)));
    let stack = if groups < 4 { 1 } else { stack(places, size_of::<T>()) };
    let groups = groups.div_ceil(stack);
    let threads = |depth: usize| runs * groups * planes.div_ceil(depth);
    let tiles = |depth: usize| threads(depth).div_ceil(THREADS as usize / 32 / stack * OWN);
    let at_once =
        (blocks((places, holes), T::COMPLEX, end != GridEnd::Product) * chip.multiprocessors) as usize;
    let waves_by_planes = |&depth: &usize| tiles(depth).div_ceil(at_once) * (depth + 2);
    let most = depth(places, size_of::<T>(), mirrored) as usize;
    let depth = (1..=most).rev().min_by_key(waves_by_planes).unwrap_or(1);
    let shape = match end {
        GridEnd::Dot => Shape::resident(tiles(depth).min(PARTIALS), THREADS),
        _ => Shape::new(tiles(depth) as u32, THREADS),
    };
    let dealt = [points, lines_a_plane, planes, runs, stack, groups, depth, threads(depth)];
    Some(CompressedGrid {
        marches: false,
        shape: shape.class(stencil.class() + halved * GRID_HALVED),
        dealt: dealt.map(|n| n as u32),
    })
}
