//! Constants and launch shapes of products with a stencil on the points of a grid that keep planes of x in shared
//! memory.

use super::compressed_grid::{self, Holes};
use super::{CompressedGrid, GRID_HALVED, GRID_HOLES, GRID_MIRRORED, GridEnd, GridStencil, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::scalar::Scalar;

/// Maximum number of warps of a block that compute sums. It is smaller if rows have kinds or marks, which need
/// registers.
fn warps(holes: Holes) -> u32 {
    if holes == Holes::None { 13 } else { 10 }
}
/// Threads per block. In addition to the warps that compute sums, one warp loads, and with marks one computes only the
/// listed rows.
fn threads(holes: Holes) -> u32 {
    32 * (warps(holes) + 1 + u32::from(holes == Holes::Marks))
}
/// Blocks that fit a multiprocessor: one of this launch and one of the next.
const BLOCKS: u32 = 2;
/// Lines per thread, and bytes of neighbouring points per thread.
const LINES: usize = 2;
const RUN_BYTES: usize = 16;
/// Maximum number of planes in flight, and of their bytes: a multiprocessor does not need more in flight, and with
/// more, blocks that read the same lines drift apart.
const STAGES: u32 = 5;
const RING: usize = 64 << 10;
/// Number of bytes of shared memory before the planes.
const BARRIERS: usize = 128;
/// Number of bytes for the table of each kind's stencil points, if rows may lack any.
const TABLE: usize = 1 << 10;
/// Minimum number of lines per block, which reads two more.
const FEWEST_LINES: usize = 4;
/// Minimum number of bytes of x per multiprocessor. With less there are hardly any planes through which a block could
/// march.
const FEWEST_BYTES: usize = 6 << 10;
/// The same if rows may lack any stencil points. With less, `compressed_stencil.cu` is faster in f32.
const FEWEST_OF_PARTS: usize = 15 << 10;
/// Maximum number of slabs of planes.
const MOST_SLABS: usize = 64;

/// Number of planes in the ring: one less if kinds are loaded together with planes.
fn stages(holes: Holes) -> u32 {
    STAGES - u32::from(holes == Holes::Parts)
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let holes = Holes::of_class(unit.size_class());
    vec![
        ("THREADS", threads(holes)),
        ("BLOCKS", BLOCKS),
        ("PLACES", unit.size_class() % GRID_HALVED),
        ("MIRRORED", unit.size_class() % GRID_HOLES / GRID_MIRRORED),
        ("HOLES", holes as u32),
        ("LINES", LINES as u32),
        ("RUN", (RUN_BYTES / unit.scalar_bytes()) as u32),
        ("STAGES", stages(holes)),
    ]
}

/// Returns the classes of units for elements of type T.
pub(in crate::backend::cuda) fn march_classes<T: Scalar>() -> Vec<u32> {
    compressed_grid::stencils().filter(|&stencil| marches::<T>(stencil)).map(GridStencil::class).collect()
}

/// Returns whether blocks can march through the planes of a stencil: if it has points in other planes, and if blocks
/// would not wait for their slowest warp.
fn marches<T: Scalar>(stencil: GridStencil) -> bool {
    let kept = stencil.holes != Holes::Parts || !compressed_grid::is_long(stencil.places);
    !T::COMPLEX && compressed_grid::is_deep(stencil.places) && kept
}

/// How planes are divided: the number of groups of lines, the number of lines in the largest group, and the number of
/// slabs of planes. There is a block for each group of each slab.
struct Cut {
    groups: usize,
    tile: usize,
    slabs: usize,
}

/// A product on a grid: its launch shape and the kernel's `Grid`. `None` if `compressed_stencil.cu` is better.
pub(in crate::backend::cuda) fn compressed_grid<T: Scalar>(
    chip: Chip,
    stencil: GridStencil,
    grid: [u32; 3],
    vectors: &[u64],
    end: GridEnd,
) -> Option<CompressedGrid> {
    let march = match end {
        GridEnd::Product | GridEnd::Dot => marched::<T>(chip, stencil, grid, vectors),
        _ => None,
    };
    march.or_else(|| compressed_grid::tiled::<T>(chip, stencil, grid, vectors, end))
}

/// Returns the launch of a product on a grid with these numbers of points per line, lines per plane and planes, with
/// vectors at these addresses, and the kernel's `Grid`. `None` if the chip can't copy in bulk, if the stencil is in one
/// plane, if lines are not a multiple of a run or too long for a block to have a few of them, if there are few points,
/// or if rows may lack any of many stencil points, because blocks would wait for their slowest warp.
fn marched<T: Scalar>(
    chip: Chip,
    stencil: GridStencil,
    [points, lines, planes]: [u32; 3],
    vectors: &[u64],
) -> Option<CompressedGrid> {
    let line = points as usize * size_of::<T>();
    let whole = line.is_multiple_of(RUN_BYTES) && vectors.iter().all(|a| a.is_multiple_of(RUN_BYTES as u64));
    let bytes = line * lines as usize * planes as usize;
    let multiprocessors = chip.multiprocessors as usize;
    let fewest = if stencil.holes == Holes::Parts { FEWEST_OF_PARTS } else { FEWEST_BYTES };
    let many = bytes >= fewest * multiprocessors;
    if chip.capability < (9, 0) || !marches::<T>(stencil) || !whole || !many {
        return None;
    }
    let runs = line / RUN_BYTES;
    let most = 32 * warps(stencil.holes) as usize;
    let most_lines = (most / runs * LINES).min((RING / STAGES as usize / line).saturating_sub(2));
    let Cut { groups, tile, slabs } = cut(multiprocessors, (lines as usize, most_lines), planes as usize)?;
    let warps = (runs * tile.div_ceil(LINES)).div_ceil(32);
    // The kinds or marks of rows are loaded with each plane, from a multiple of 16 bytes to another.
    let rows = tile * points as usize;
    let (table, kinds) = match stencil.holes {
        Holes::None => (0, 0),
        Holes::Parts => (TABLE, (rows + 32) & !15),
        Holes::Marks => (0, (rows / 4 + 32) & !15),
    };
    let shared = BARRIERS + table + stages(stencil.holes) as usize * ((tile + 2) * line + kinds);
    let shape = Shape::new((groups * slabs) as u32, threads(stencil.holes)).shared(shared);
    let dealt = [runs, groups, tile, slabs, warps].map(|n| n as u32);
    let [runs, groups, tile, slabs, warps] = dealt;
    let dealt = [points, lines, planes, runs, groups, tile, slabs, warps];
    Some(CompressedGrid { shape: shape.class(stencil.class()), marches: true, dealt })
}

/// Divides the grid so that all blocks run at the same time and the largest block takes as little time as possible. A
/// block reads two more lines of a plane than it computes, and going on to the next plane takes the time of two lines.
fn cut(blocks: usize, (lines, most_lines): (usize, usize), planes: usize) -> Option<Cut> {
    let cuts = (1..=planes.min(MOST_SLABS).min(blocks)).map(|slabs| {
        let tile = lines.div_ceil(blocks / slabs).max(FEWEST_LINES);
        Cut { groups: lines.div_ceil(tile), tile, slabs }
    });
    let takes = |cut: &Cut| (cut.tile + 4) * (planes.div_ceil(cut.slabs) + 2);
    cuts.filter(|cut| cut.tile <= most_lines && cut.tile <= lines).min_by_key(takes)
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn blocks_run_at_a_time_and_have_all_lines() {
        for (blocks, lines, most_lines, planes) in
            [(132, 256, 4, 256), (132, 160, 8, 160), (132, 83, 10, 84), (1, 9, 40, 17), (4, 500, 8, 3)]
        {
            let Some(of) = cut(blocks, (lines, most_lines), planes) else {
                assert!(lines > blocks * most_lines, "{lines} lines of {blocks} blocks");
                continue;
            };
            assert!(of.groups * of.slabs <= blocks && of.slabs <= planes);
            assert!(
                (super::FEWEST_LINES..=most_lines).contains(&of.tile) && lines.div_ceil(of.groups) <= of.tile
            );
        }
        let of = |lines, planes| cut(132, (lines, 8), planes).map(|cut| (cut.groups, cut.slabs));
        assert_eq!((of(160, 160), of(256, 256)), (Some((20, 6)), Some((32, 4))));
    }
}
