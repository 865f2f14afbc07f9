//! Constants of the primitives, as measured on an H200 (`kernels/README.md`), and the shapes of their launches.

use super::{ELEMENTWISE_THREADS, Shape};
use crate::backend::cuda::compile::Unit;
use crate::backend::cuda::device::{Chip, PARTIALS};

const THREADS: u32 = 256;
const REDUCE_UNROLL: u32 = 4;
const HISTOGRAM_ITEMS: u32 = 8;
const HISTOGRAM_CACHE: u32 = 8192;
/// Bins up to which a block counts in shared memory of its own.
pub(in crate::backend::cuda) const HISTOGRAM_IN_SHARED: usize = 12 << 10;
const GATHER_ITEMS: u32 = 4;
const SEGMENT_ITEMS: u32 = 8;

/// Bytes of an element type by its name.
fn size(name: Option<&str>) -> usize {
    match name {
        Some("u8" | "i8") => 1,
        Some("u16" | "i16") => 2,
        Some("u32" | "i32" | "f32") => 4,
        Some("c64") => 16,
        _ => 8,
    }
}

/// Bytes of the values that a unit carries along.
fn size_of_value(unit: &Unit) -> usize {
    unit.type_of("VALUE_BYTES").and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let class = unit.size_class();
    match unit.source() {
        "reduce.cu" => vec![("THREADS", THREADS), ("UNROLL", REDUCE_UNROLL)],
        "scan.cu" => {
            let (rows, blocks) = scan_rows(class);
            vec![("THREADS", THREADS), ("ROWS", rows), ("MIN_BLOCKS", blocks)]
        }
        "compact.cu" => {
            let (rows, blocks) = compact_rows(unit.type_of("MODE"));
            vec![("THREADS", THREADS), ("ROWS", rows), ("MIN_BLOCKS", blocks)]
        }
        "reduce_by_key.cu" => {
            let large = size(unit.type_of("VALUE")) > 8;
            vec![("THREADS", RUN_THREADS), ("ROWS", RUN_ROWS), ("MIN_BLOCKS", if large { 1 } else { 3 })]
        }
        "sort.cu" => {
            let sort =
                Sort::of_class(class, size(unit.type_of("KEY")), unit.type_of("VALUE_BYTES") != Some("0"));
            vec![
                ("THREADS", sort.threads),
                ("ITEMS", sort.items),
                ("MIN_BLOCKS", sort.blocks),
                ("LOOK_AT_ONCE", sort.look_at_once),
                ("HISTOGRAM_THREADS", Sort::HISTOGRAM_THREADS),
                ("HISTOGRAM_ITEMS", Sort::HISTOGRAM_ITEMS),
                ("MATCH_HARDWARE", 0),
            ]
        }
        "histogram.cu" => vec![
            ("THREADS", THREADS),
            ("ITEMS", HISTOGRAM_ITEMS),
            ("CACHE", HISTOGRAM_CACHE),
            ("WINDOW", 4096),
        ],
        "merge.cu" => {
            let wide = size_of_value(unit) > 4;
            vec![("THREADS", THREADS), ("ITEMS", 16), ("MIN_BLOCKS", if wide { 2 } else { 3 })]
        }
        "segmented.cu" => {
            let items = if size(unit.type_of("VALUE")) > 8 { 7 } else { 13 };
            vec![("THREADS", THREADS), ("ITEMS", items)]
        }
        "gather.cu" => vec![("THREADS", THREADS), ("ITEMS", GATHER_ITEMS)],
        "segments.cu" => vec![("THREADS", THREADS), ("ITEMS", SEGMENT_ITEMS)],
        "gather_sum.cu" | "index.cu" | "keys.cu" | "number.cu" | "pack.cu" => {
            vec![("THREADS", ELEMENTWISE_THREADS)]
        }
        _ => Vec::new(),
    }
}

fn tiles(n: usize, tile: usize) -> usize {
    n.div_ceil(tile)
}

/// A reduction: the grid is part of a floating-point sum's bits, and depends on size and chip alone.
pub(in crate::backend::cuda) fn reduce(chip: Chip, n: usize, element_bytes: usize) -> Shape {
    let chunk = (THREADS * REDUCE_UNROLL) as usize * 16 / element_bytes;
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS)) as usize;
    Shape::new(tiles(n, chunk).clamp(1, resident.min(PARTIALS)) as u32, THREADS)
}

fn scan_rows(class: u32) -> (u32, u32) {
    if class == 1 { (6, 3) } else { (4, 4) }
}

/// A scan in one pass, and the words of look-back that it needs.
pub(in crate::backend::cuda) fn scan(n: usize, in_bytes: usize, out_bytes: usize) -> (Shape, usize) {
    let class = u32::from(n >= 1 << 22);
    let tile = (THREADS * scan_rows(class).0) as usize * 16 / in_bytes;
    let shape = Shape::resident(tiles(n, tile), THREADS).class(class).shared(tile * out_bytes);
    (shape, tiles(n, tile) * out_bytes.div_ceil(4))
}

fn compact_rows(mode: Option<&str>) -> (u32, u32) {
    if mode == Some("FLAGGED") || mode == Some("PARTITION") { (8, 3) } else { (4, 4) }
}

/// A selection of elements of so many bytes; `positions` where places are kept and not elements.
pub(in crate::backend::cuda) fn compact(mode: &'static str, n: usize, bytes: usize) -> (Shape, usize) {
    let vector = if mode == "POSITIONS" || bytes <= 4 { 4 } else { 16 / bytes };
    let tile = (THREADS * compact_rows(Some(mode)).0) as usize * vector;
    let shape = Shape::resident(tiles(n, tile), THREADS).shared(2 * tile * bytes).variant("MODE", mode);
    (shape, tiles(n, tile) * 2)
}

const RUN_THREADS: u32 = 192;
const RUN_ROWS: u32 = 5;

/// A reduction by key in one pass.
pub(in crate::backend::cuda) fn reduce_by_key(
    n: usize,
    key_bytes: usize,
    value_bytes: usize,
) -> (Shape, usize) {
    let tile = (RUN_THREADS * RUN_ROWS) as usize * 2;
    let shape = Shape::resident(tiles(n, tile), RUN_THREADS).shared(2 * tile * (key_bytes + value_bytes));
    (shape, tiles(n, tile) * 8)
}

/// Radix sort's constants for one class of sizes.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Sort {
    class: u32,
    threads: u32,
    items: u32,
    blocks: u32,
    look_at_once: u32,
}

impl Sort {
    const HISTOGRAM_THREADS: u32 = 256;
    const HISTOGRAM_ITEMS: u32 = 16;
    /// Up to here one block sorts all.
    pub(in crate::backend::cuda) const SMALL: usize = 2048;

    pub(in crate::backend::cuda) fn of(n: usize, key_bytes: usize, with_values: bool) -> Self {
        let class = match n {
            _ if n <= Self::SMALL => 0,
            _ if n < 1 << 18 => 1,
            _ if n < 1 << 23 => 2,
            _ => 3,
        };
        Self::of_class(class, key_bytes, with_values)
    }

    fn of_class(class: u32, key_bytes: usize, with_values: bool) -> Self {
        let (threads, items, blocks, look_at_once) = match class {
            0 => (256, 8, 1, 4),
            1 => (256, 4, 1, 4),
            2 => (256, 16, 1, 4),
            _ if key_bytes > 4 && with_values => (512, 12, 2, 1),
            _ if key_bytes > 4 => (256, 22, 3, 2),
            _ if with_values => (512, 16, 2, 1),
            _ => (256, 36, 3, 2),
        };
        Sort { class, threads, items, blocks, look_at_once }
    }

    pub(in crate::backend::cuda) fn tiles(self, n: usize) -> usize {
        tiles(n, (self.threads * self.items) as usize)
    }

    /// The launch of a pass (or of the one block that sorts all).
    pub(in crate::backend::cuda) fn pass(self, n: usize, key_bytes: usize, value_bytes: usize) -> Shape {
        let tile = (self.threads * self.items) as usize;
        let shared = self.threads as usize / 32 * 1024 + tile * key_bytes.max(value_bytes);
        let blocks = if self.class == 0 { 1 } else { self.tiles(n) };
        Shape::new(blocks as u32, self.threads).class(self.class).shared(shared)
    }

    pub(in crate::backend::cuda) fn histogram(self, chip: Chip, n: usize) -> Shape {
        let blocks = tiles(n, (Self::HISTOGRAM_THREADS * Self::HISTOGRAM_ITEMS) as usize);
        let blocks = blocks.min(4 * chip.multiprocessors as usize);
        Shape::new(blocks as u32, Self::HISTOGRAM_THREADS).class(self.class)
    }
}

/// A histogram: in shared memory where the bins fit, else through a cache there.
pub(in crate::backend::cuda) fn histogram(n: usize, bins: usize) -> Shape {
    let tiles = tiles(n, (THREADS * HISTOGRAM_ITEMS) as usize);
    let shared = if bins <= HISTOGRAM_IN_SHARED { bins * 4 } else { HISTOGRAM_CACHE as usize * 8 };
    Shape::resident(tiles, THREADS).shared(shared).variant("COUNT", "u32")
}

pub(in crate::backend::cuda) fn gather(n: usize) -> Shape {
    Shape::new(tiles(n, (THREADS * GATHER_ITEMS) as usize) as u32, THREADS)
}

/// One warp a segment.
pub(in crate::backend::cuda) fn segmented_reduce(chip: Chip, segments: usize) -> Shape {
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS)) as usize;
    Shape::new(segments.div_ceil(THREADS as usize / 32).min(4 * resident) as u32, THREADS)
}

/// A scan with any operation: its tiles and the launch of each of its steps.
pub(in crate::backend::cuda) fn segmented_scan(chip: Chip, n: usize) -> (usize, Shape) {
    let tiles = tiles(n, (THREADS * SEGMENT_ITEMS) as usize);
    let resident = (chip.multiprocessors * (chip.threads_per_multiprocessor / THREADS)) as usize;
    (tiles, Shape::new(tiles.min(4 * resident) as u32, THREADS))
}

/// The one block of a step that is not worth more.
pub(in crate::backend::cuda) fn one_block() -> Shape {
    Shape::new(1, THREADS)
}
