//! Products with a stencil on the points of a grid, with planes of x in shared memory.

use super::compressed_grid::{self, Holes};
use super::{CompressedGrid, GRID_HALVED, GRID_HOLES, GRID_MIRRORED, GridStencil, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::scalar::Scalar;

/// Warps of a block that add up, at most. Fewer where rows have kinds or marks, so that there are registers for what
/// these tell.
fn warps(holes: Holes) -> u32 {
    if holes == Holes::None { 13 } else { 10 }
}
/// Threads of a block: a warp fetches, and one or more have nothing to do but listed rows.
fn threads(holes: Holes) -> u32 {
    32 * (warps(holes) + 1 + u32::from(holes == Holes::Marks))
}
/// Blocks for which a multiprocessor has room: one, and one of the next launch.
const BLOCKS: u32 = 2;
/// Lines and bytes of neighbouring points that a thread has.
const LINES: usize = 2;
const RUN_BYTES: usize = 16;
/// Planes on their way, and their bytes at most: what a multiprocessor needs under way is less, and the more there is,
/// the further apart blocks get that read the same lines.
const STAGES: u32 = 5;
const RING: usize = 64 << 10;
/// Bytes of shared memory before the planes.
const BARRIERS: usize = 128;
/// And where rows may lack any places, of those that each kind has.
const TABLE: usize = 1 << 10;
/// Lines of a block at least: it reads two more.
const FEWEST_LINES: usize = 4;
/// Bytes of x a multiprocessor at least: with fewer there are hardly planes to go through.
const FEWEST_BYTES: usize = 6 << 10;
/// And where rows may lack any places: below, `compressed_stencil.cu` is faster in f32.
const FEWEST_OF_PARTS: usize = 15 << 10;
/// Slabs of planes at most.
const MOST_SLABS: usize = 64;

/// Stages of the ring. One less where kinds come with planes.
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

/// How planes are cut: groups of lines, the most lines of one, and slabs of planes, a block for each group of each
/// slab.
struct Cut {
    groups: usize,
    tile: usize,
    slabs: usize,
}

/// A product on a grid of points a line, lines a plane and planes, with vectors at these addresses: the shape of its
/// launch and the kernel's `Grid`. `None` where chips cannot copy in bulk, the stencil stays in a plane, lines are no
/// whole number of runs or too long for a block to have a few of them, points are few, or rows may lack any of many
/// places: these keep blocks waiting for their slowest warp.
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
    let kept = stencil.holes != Holes::Parts || !compressed_grid::is_long(stencil.places);
    if chip.capability < (9, 0)
        || T::COMPLEX
        || !compressed_grid::is_deep(stencil.places)
        || !whole
        || !many
        || !kept
    {
        return None;
    }
    let runs = line / RUN_BYTES;
    let most = 32 * warps(stencil.holes) as usize;
    let most_lines = (most / runs * LINES).min((RING / STAGES as usize / line).saturating_sub(2));
    let Cut { groups, tile, slabs } = cut(multiprocessors, (lines as usize, most_lines), planes as usize)?;
    let warps = (runs * tile.div_ceil(LINES)).div_ceil(32);
    // With a plane come kinds or marks of rows, from a multiple of 16 bytes to one.
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

/// So that all blocks run at a time, and the one that has most takes least: of a plane it reads two lines more than it
/// has, and to go on to the next takes as long as two lines do.
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
