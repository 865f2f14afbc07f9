//! Constants of conversions between formats, and launch shapes.

use super::{ELEMENTWISE_THREADS, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;
use crate::scalar::Element;

/// Threads per block that transposes rows. Its shared memory has a tile for each warp.
const ROWS_THREADS: u32 = 128;
/// Threads per block that processes the elements of segments in tiles of equal size, and elements per thread.
const TILE_THREADS: u32 = ELEMENTWISE_THREADS;
pub(super) const TILE_ITEMS: u32 = 8;
/// Approximate number of rows that are compared with their mirror images before half of a matrix is stored.
const COMPARED_ROWS: usize = 1 << 10;

/// Threads per block that looks up mirror images, the number of other kernels' tiles that one of its tiles covers, and
/// entries per thread at a time.
const MIRROR_THREADS: u32 = 1024;
const MIRROR_TILES: u32 = 3;
const MIRROR_AT_ONCE: u32 = 2;
const MIRROR_TILE: u32 = MIRROR_TILES * TILE_THREADS * TILE_ITEMS;
/// Minimum and maximum lanes per row of a conversion by rows.
const LANES: (usize, usize) = (4, 16);
/// Number of jagged diagonals that are transposed in tiles, as a multiple of the mean row length.
const NEAR: usize = 4;
/// Number of entries per thread of the other diagonals, as long as there are too few blocks to fill the chip.
const FAR_ENTRIES: usize = 4;
/// Number of blocks per multiprocessor that process the other diagonals.
const FAR_BLOCKS: usize = 16;
/// Maximum number of consecutive columns of slices in which a warp searches for entries, and the number of warps per
/// multiprocessor to reach before that. The remaining entries are in few places: in the slices with the longest rows.
const FAR_COLUMNS: usize = 128;
const FAR_WARPS: usize = 16;
/// Lanes that find the longest row of a slice of SELL.
const SECTION_LANES: u32 = 8;
/// Maximum number of rows in a window that one block sorts.
const MOST_WINDOW: u32 = 1024;
/// From this number of entries on, a few tiles are looked up before the others, and the number of those tiles.
const MIRROR_ALL: usize = 1 << 23;
const MIRRORED_FIRST: u32 = 64;
/// Minimum number of warps of a conversion, if it has as many pieces.
const WARPS: u64 = 1 << 20;

/// Minimum number of entries of a stretch, the entries that are sorted at a time, if there is enough memory; and the
/// bytes per entry for the sort: column, source, and a second copy of each.
const STRETCH: usize = 1 << 20;
const STRETCH_BYTES: usize = 16;

/// From this mean number of search steps per entry of the first tiles on, as `mirror.cu` counts them, sorting is
/// faster.
const FAR_SEARCH: f64 = 4.5;

/// Number of bits for a position within a window of columns. The smallest number is used for which window numbers
/// suffice.
const WINDOW_BITS: std::ops::RangeInclusive<u32> = 10..=12;
/// Windows have 16-bit numbers.
const WINDOWS: usize = 1 << 16;
/// Threads per block that sorts entries by windows, entries per thread, and blocks that a multiprocessor should be able
/// to hold. Each line applies from its number of entries on. A tile has 2 KiB of look-back: half a byte per entry, or a
/// third.
const WINDOW_SORTS: [(usize, [u32; 3]); 2] = [(0, [256, 16, 4]), (1 << 21, [256, 24, 4])];
/// The position in a unit's class, above the bits of a window, for the index in `WINDOW_SORTS`.
const SORT_SHIFT: u32 = 8;
/// Threads that a multiprocessor should be able to hold when windows are ordered, by the bits of a window: with more
/// threads, each has fewer registers.
const WINDOW_RESIDENT: [u32; 3] = [1024, 1024, 768];
/// Maximum number of bytes of shared memory in which a window is ordered. Every chip has this much; larger windows are
/// ordered without it.
const STAGED: usize = 64 << 10;

/// Threads per block that orders a window. Each warp counts the entries of all columns of the window.
fn window_threads(bits: u32) -> u32 {
    (1 << bits >> 3).min(256)
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    match unit.source() {
        "convert_dia.cu" | "convert_rows.cu" => {
            vec![("THREADS", ROWS_THREADS), ("LANES", unit.size_class().clamp(4, 16))]
        }
        "convert_tails.cu" | "diagonals.cu" | "index.cu" | "transpose.cu" => {
            vec![("THREADS", TILE_THREADS), ("ITEMS", TILE_ITEMS)]
        }
        "convert_sizes.cu" => vec![("THREADS", ELEMENTWISE_THREADS), ("LANES", SECTION_LANES)],
        "length_order.cu" => vec![("THREADS", MOST_WINDOW)],
        "mirror.cu" => vec![
            ("THREADS", MIRROR_THREADS),
            ("ITEMS", MIRROR_TILE / MIRROR_THREADS),
            ("AT_ONCE", MIRROR_AT_ONCE),
            ("TILES", MIRROR_TILES),
        ],
        "transpose_sort.cu" => {
            let [threads, items, blocks] = WINDOW_SORTS[(unit.size_class() >> SORT_SHIFT) as usize].1;
            vec![
                ("THREADS", threads),
                ("ITEMS", items),
                ("MIN_BLOCKS", blocks),
                ("WINDOW_BITS", unit.size_class() & ((1 << SORT_SHIFT) - 1)),
                ("LOOK_AT_ONCE", 1),
                ("MATCH_HARDWARE", 0),
            ]
        }
        "transpose_windows.cu" => vec![
            ("THREADS", window_threads(unit.size_class())),
            ("WINDOW_BITS", unit.size_class()),
            ("RESIDENT", WINDOW_RESIDENT[(unit.size_class() - WINDOW_BITS.start()) as usize]),
        ],
        _ => vec![("THREADS", ELEMENTWISE_THREADS)],
    }
}

/// Returns the launch of a conversion by rows, and the number of parts of each group of 32 positions. The mean row
/// length determines the lanes per row. Groups are divided so that long rows don't wait for one warp.
pub(in crate::backend::cuda) fn convert_rows(
    positions: usize,
    nonzeros: usize,
    longest: usize,
) -> (Shape, u32) {
    let lanes = nonzeros.div_ceil(positions.max(1)).next_power_of_two().clamp(LANES.0, LANES.1);
    let groups = (positions as u64).div_ceil(32);
    let splits = (WARPS / groups.max(1)).clamp(1, longest.div_ceil(lanes).clamp(1, 1 << 15) as u64);
    let blocks = (groups * splits).div_ceil(u64::from(ROWS_THREADS / 32));
    (Shape::new(blocks as u32, ROWS_THREADS).class(lanes as u32), splits as u32)
}

/// Returns the number of jagged diagonals that are transposed in tiles, and the number of blocks that process the
/// entries of the others.
pub(in crate::backend::cuda) fn far_diagonals(
    chip: Chip,
    rows: usize,
    nonzeros: usize,
    diagonals: usize,
) -> (usize, usize) {
    let near = (NEAR * nonzeros.div_ceil(rows.max(1))).next_multiple_of(LANES.1);
    if near >= diagonals {
        return (diagonals, 0);
    }
    let blocks = nonzeros.div_ceil(ROWS_THREADS as usize * FAR_ENTRIES);
    (near, blocks.min(FAR_BLOCKS * chip.multiprocessors as usize))
}

/// As [`far_diagonals`] for the columns of slices with `height` rows and `places` places in all; also returns the
/// number of columns that a warp examines.
pub(in crate::backend::cuda) fn far_columns(
    chip: Chip,
    (rows, nonzeros): (usize, usize),
    (height, widest): (usize, usize),
    places: usize,
) -> (usize, usize, u32) {
    let near = (NEAR * nonzeros.div_ceil(rows.max(1))).next_multiple_of(LANES.1);
    let columns = places / height;
    let share = columns / (FAR_WARPS * chip.multiprocessors as usize);
    let share = share.next_multiple_of(LANES.1).clamp(LANES.1, FAR_COLUMNS);
    let blocks = columns.div_ceil(ROWS_THREADS as usize / 32 * share);
    if near >= widest { (widest, 0, 0) } else { (near, blocks, share as u32) }
}

/// Returns a launch with a block per window of rows; `None` if a window is too large for a block.
pub(in crate::backend::cuda) fn order_windows(rows: usize, window: usize) -> Option<Shape> {
    let threads = window.checked_next_multiple_of(32).filter(|&threads| threads <= MOST_WINDOW as usize)?;
    Some(Shape::new(rows.div_ceil(window) as u32, threads as u32))
}

/// Returns a launch with [`SECTION_LANES`] lanes for each slice.
pub(in crate::backend::cuda) fn section_places(sections: usize) -> Shape {
    one_each(sections * SECTION_LANES as usize)
}

/// Returns a launch with a thread per item, for items that take a thread a long time.
pub(in crate::backend::cuda) fn one_each(n: usize) -> Shape {
    Shape::new(n.div_ceil(ELEMENTWISE_THREADS as usize) as u32, ELEMENTWISE_THREADS)
}

/// Returns a launch with a warp per slice of diagonals. The number of diagonals determines the lanes per row.
pub(in crate::backend::cuda) fn convert_dia(rows: usize, diagonals: usize) -> Shape {
    let blocks = rows.div_ceil(ROWS_THREADS as usize);
    Shape::new(blocks as u32, ROWS_THREADS).class(dia_lanes(diagonals) as u32)
}

/// Returns a launch with a warp for so many diagonals of a slice as there are lanes per row; it fills these at the same
/// time.
pub(in crate::backend::cuda) fn fill_dia(rows: usize, diagonals: usize) -> Shape {
    let warps = rows.div_ceil(32) * diagonals.div_ceil(dia_lanes(diagonals));
    convert_dia(rows, diagonals).blocks(warps.div_ceil(ROWS_THREADS as usize / 32))
}

/// Returns a launch with a warp for each row that is compared with its mirror image before half of a matrix is stored,
/// and the distance between these rows.
pub(in crate::backend::cuda) fn compare_rows(rows: usize) -> (Shape, usize) {
    let apart = (rows / COMPARED_ROWS).max(1);
    let blocks = rows.div_ceil(apart).div_ceil(ROWS_THREADS as usize / 32);
    (Shape::new(blocks as u32, ROWS_THREADS).class(dia_lanes(1) as u32), apart)
}

fn dia_lanes(diagonals: usize) -> usize {
    diagonals.next_power_of_two().clamp(4, 16)
}

/// Divides the `n` elements of segments into tiles of equal size. Returns a launch with a block per tile, the number of
/// tiles, and the launch that computes the segment in which each starts.
pub(in crate::backend::cuda) fn by_tiles(n: usize) -> (Shape, usize, Shape) {
    let tiles = n.div_ceil((TILE_THREADS * TILE_ITEMS) as usize);
    let find = Shape::new((tiles + 1).div_ceil(TILE_THREADS as usize) as u32, TILE_THREADS);
    (Shape::new(tiles as u32, TILE_THREADS), tiles, find)
}

/// Returns the number of entries that a transposition sorts at a time: so many that, together with the cursors of
/// columns, they take a tenth of the bytes of source and target. All stretches have about the same size.
pub(in crate::backend::cuda) fn transpose_stretch<V: Element>(nonzeros: usize, cursors: usize) -> usize {
    let room = (2 * nonzeros * (4 + size_of::<V>()) / 10).saturating_sub(cursors);
    let most = (room / STRETCH_BYTES).clamp(STRETCH, 1 << 30);
    nonzeros.div_ceil(nonzeros.div_ceil(most).max(1)).max(1)
}

/// Returns the launch that looks up the mirror images of `n` entries.
pub(in crate::backend::cuda) fn mirror(n: usize) -> Shape {
    Shape::new(n.div_ceil(MIRROR_TILE as usize) as u32, MIRROR_THREADS)
}

/// Returns the launch for the few tiles of a pattern that are checked for symmetry first, and the distance between
/// these tiles. `None` if the check of all tiles takes less time than waiting for this answer.
pub(in crate::backend::cuda) fn mirrored_first(n: usize) -> Option<(Shape, u64)> {
    let all = mirror(n);
    (n >= MIRROR_ALL).then(|| (all.blocks(MIRRORED_FIRST as usize), u64::from(all.blocks / MIRRORED_FIRST)))
}

/// Returns whether the first tiles took so many search steps that sorting all entries is faster.
pub(in crate::backend::cuda) fn searches_far(steps: u32) -> bool {
    f64::from(steps) >= FAR_SEARCH * f64::from(MIRRORED_FIRST * MIRROR_TILE)
}

/// The sort of entries by windows of columns (`transpose_sort.cu`), and the ordering within windows
/// (`transpose_windows.cu`).
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Windows {
    /// The number of windows.
    pub(in crate::backend::cuda) count: usize,
    /// The launch that orders windows, with a block per window.
    pub(in crate::backend::cuda) finish: Shape,
    /// The launch of the sort, and the number of entries per block.
    sort: Shape,
    tile: usize,
    nonzeros: usize,
}

impl Windows {
    /// Returns the plan; `None` if there would be too many windows, or if the target has no space for the columns'
    /// keys.
    pub(in crate::backend::cuda) fn of<V: Element>(nonzeros: usize, columns: usize) -> Option<Self> {
        let count = |bits: u32| (nonzeros >> bits) + 2;
        let bits = WINDOW_BITS.into_iter().find(|&bits| count(bits) <= WINDOWS)?;
        if columns > nonzeros {
            return None;
        }
        let threads = window_threads(bits);
        let counts = (threads as usize / 32 * size_of::<u16>()) << bits;
        // Space for half of the entries of the largest window, rounded up for each thread.
        let staged = ((1 << bits) + threads as usize) * (size_of::<V>() + 4);
        let shared = if staged <= STAGED { staged.max(counts) } else { counts };
        let finish = Shape::new(count(bits) as u32, threads).class(bits).shared(shared);
        let (line, [sort_threads, items, _]) = window_sort(nonzeros, bits);
        let sort = Shape::new(1, sort_threads).class(bits | line << SORT_SHIFT);
        Some(Windows {
            count: count(bits),
            finish: finish.for_values::<V>(),
            sort,
            tile: (sort_threads * items) as usize,
            nonzeros,
        })
    }

    /// Returns a launch with a thread per item, in the unit that orders windows.
    pub(in crate::backend::cuda) fn each(&self, n: usize) -> Shape {
        self.finish.blocks(n.div_ceil(self.finish.threads as usize))
    }

    /// Returns a launch with a thread per item, in the unit of the sort.
    pub(in crate::backend::cuda) fn sort_each(&self, n: usize) -> Shape {
        self.sort.blocks(n.div_ceil(self.sort.threads as usize))
    }

    /// Returns the launch that computes where windows start. A block has one thread more than it computes starts.
    pub(in crate::backend::cuda) fn starts(&self) -> Shape {
        self.sort.blocks((self.count + 1).div_ceil(self.sort.threads as usize - 1))
    }

    /// Returns the launches of the sort's two passes, with a block per tile. In shared memory there is a word for each
    /// entry with its digit and, in the second pass, the rest of its name.
    pub(in crate::backend::cuda) fn sort_passes(&self) -> [Shape; 2] {
        let counts = self.sort.threads as usize / 32 * 1024;
        let tiles = self.sort.blocks(self.nonzeros.div_ceil(self.tile));
        [5, 6].map(|bytes| tiles.shared(counts + bytes * self.tile))
    }
}

/// Returns the line of [`WINDOW_SORTS`] for this number of entries and bits of windows, with its index.
fn window_sort(nonzeros: usize, bits: u32) -> (u32, [u32; 3]) {
    let line = WINDOW_SORTS.iter().rposition(|&(from, shape)| from <= nonzeros && fits(shape, bits));
    let line = line.unwrap_or(0);
    (line as u32, WINDOW_SORTS[line].1)
}

/// Returns whether a word has enough bits for a position in such a tile, in addition to 8 bits and a column's name.
fn fits([threads, items, _]: [u32; 3], bits: u32) -> bool {
    threads * items <= 1 << (24 - bits)
}

/// Returns the classes of the sort's units, for the catalogue.
pub(in crate::backend::cuda) fn window_sort_classes() -> impl Iterator<Item = u32> {
    let lines = || (0..).zip(WINDOW_SORTS);
    WINDOW_BITS.flat_map(move |bits| {
        lines()
            .filter(move |(_, (_, shape))| fits(*shape, bits))
            .map(move |(line, _): (u32, _)| bits | line << SORT_SHIFT)
    })
}
