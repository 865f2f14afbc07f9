//! Constants and launch shapes of products with a stencil on the points of a grid, with planes of x in shared memory.

use super::compressed_grid::{self, Holes};
use super::{CompressedGrid, GRID_HALVED, GRID_HOLES, GRID_MIRRORED, GridStencil, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::scalar::Scalar;

/// Maximum number of warps of a block that compute sums. Fewer if rows have kinds or marks, whose content needs
/// registers.
fn warps(holes: Holes) -> u32 {
    if holes == Holes::None { 13 } else { 10 }
}
/// Threads per block: one warp loads, and with marks one more has only the listed rows to compute.
fn threads(holes: Holes) -> u32 {
    32 * (warps(holes) + 1 + u32::from(holes == Holes::Marks))
}
/// Blocks that fit a multiprocessor: one, and one of the next launch.
const BLOCKS: u32 = 2;
/// Lines, and bytes of neighbouring points, per thread.
const LINES: usize = 2;
const RUN_BYTES: usize = 16;
/// Maximum number of planes in flight, and their bytes: a multiprocessor needs less in flight, and with more, blocks
/// that read the same lines drift apart.
const STAGES: u32 = 5;
const RING: usize = 64 << 10;
/// Bytes of shared memory before the planes.
const BARRIERS: usize = 128;
/// Bytes for the table of each kind's stencil points, if rows may lack any.
const TABLE: usize = 1 << 10;
/// Minimum lines per block, which reads two more.
const FEWEST_LINES: usize = 4;
/// Minimum bytes of x per multiprocessor: with less there are hardly any planes to march through.
const FEWEST_BYTES: usize = 6 << 10;
/// The same if rows may lack any stencil points: below it, `compressed_stencil.cu` is faster in f32.
const FEWEST_OF_PARTS: usize = 15 << 10;
/// Maximum number of slabs of planes.
const MOST_SLABS: usize = 64;

/// Stages of the ring. One less if kinds are loaded along with planes.
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

/// The classes of units for elements of type T.
pub(in crate::backend::cuda) fn march_classes<T: Scalar>() -> Vec<u32> {
    compressed_grid::stencils().filter(|&stencil| marches::<T>(stencil)).map(GridStencil::class).collect()
}

/// Returns whether blocks may march through the planes of a stencil: it has some, and blocks would not wait for their
/// slowest warp.
fn marches<T: Scalar>(stencil: GridStencil) -> bool {
    let kept = stencil.holes != Holes::Parts || !compressed_grid::is_long(stencil.places);
    !T::COMPLEX && compressed_grid::is_deep(stencil.places) && kept
}

/// How planes are divided: the number of groups of lines, the lines of the largest group, and the number of slabs of
/// planes. Each group of each slab has one block.
struct Cut {
    groups: usize,
    tile: usize,
    slabs: usize,
}

/// A product on a grid with the given points per line, lines per plane and planes, with vectors at these addresses: its
/// launch shape and the kernel's `Grid`. `None` if the chip cannot copy in bulk, the stencil is within a plane, lines
/// are not a multiple of a run or too long for a block to have a few of them, there are few points, or rows may lack
/// any of many stencil points, where blocks would wait for their slowest warp.
pub(super) fn compressed_march<T: Scalar>(
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
    // Kinds or marks of rows are loaded with each plane, between two multiples of 16 bytes.
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

/// Divides the grid such that all blocks run at a time and the largest block takes the least time: it reads two more
/// lines of a plane than it computes, and going on to the next plane takes as long as two lines.
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
