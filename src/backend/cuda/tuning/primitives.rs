//! Launches of the primitives' kernels: a launch uses a line of the table of constants, and its shape follows from
//! these constants (`kernels/README.md`).

use super::PARTIALS;
use super::table::{self, Choice};
use super::{ELEMENTWISE_THREADS, Shape};
use crate::backend::cuda::chip::Chip;
use crate::backend::cuda::compile::Unit;

/// Maximum number of bytes of shared memory that kernels declare statically.
const STATIC_SHARED: usize = 2 << 10;

fn choose(kernel: &'static str, variant: &str, n: usize) -> Choice {
    match table::pick(kernel, variant, n) {
        Some(choice) => choice,
        // The lines of the table are part of the program, and a test checks that each kernel has one.
        None => unreachable!("no constants for {kernel} {variant}"),
    }
}

/// Returns the choice, with its tile halved until it fits the chip.
fn fit(chip: Chip, choice: Choice, bytes: impl Fn(Choice) -> usize) -> Choice {
    choice.fit((chip.shared_a_block as usize).saturating_sub(STATIC_SHARED), bytes)
}

fn tiles(n: usize, tile: usize) -> usize {
    n.div_ceil(tile)
}

fn elements(choice: Choice, per_thread: &str) -> usize {
    (choice.get("THREADS") * choice.get(per_thread)) as usize
}

fn resident_blocks(chip: Chip, threads: u32) -> usize {
    (chip.multiprocessors * (chip.threads_per_multiprocessor / threads)) as usize
}

/// Files with elementwise kernels.
const ELEMENTWISE: [&str; 5] = ["index", "keys", "number", "own_columns", "pack"];
/// Returns the constants of a unit of the primitives: those of the line whose number is in its class and, for a file
/// with several kernels, also those of the other kernels' lines.
pub(super) fn constants(unit: &Unit) -> Vec<(&'static str, u32)> {
    let file = unit.source().trim_end_matches(".cu");
    if !table::has(file) && !ELEMENTWISE.contains(&file) {
        return Vec::new();
    }
    let (kernels, fixed): (&[&'static str], &[(&'static str, u32)]) = match file {
        _ if ELEMENTWISE.contains(&file) => (&[], &[("THREADS", ELEMENTWISE_THREADS)]),
        "sort" => (&["sort", "sort_histogram"], &[("MATCH_HARDWARE", 0)]),
        "histogram" => (&["histogram", "histogram_cached", "histogram_by_tiles"], &[]),
        _ => (&[file], &[]),
    };
    let own = Choice::of_class(unit.size_class());
    let others = kernels.iter().filter_map(|kernel| table::pick(kernel, "*", usize::MAX));
    let mut constants: Vec<(&'static str, u32)> = fixed.to_vec();
    for choice in own.into_iter().chain(others) {
        for (name, value) in choice.constants() {
            if constants.iter().all(|(known, _)| *known != name) {
                constants.push((name, value));
            }
        }
    }
    constants
}

/// Returns the class of a unit for this number of elements.
pub(in crate::backend::cuda) fn class_of(kernel: &str, variant: &str, n: usize) -> u32 {
    table::pick(kernel, variant, n).map_or(0, Choice::class)
}

fn bytes_name(bytes: usize) -> &'static str {
    match bytes {
        0..=4 => "4",
        5..=8 => "8",
        _ => "16",
    }
}

/// Returns the number of 32-bit words of a look-back value that consists of an element and a count of runs
/// (`open_run.cuh`).
fn run_words(value_bytes: usize, n: usize) -> usize {
    let wide = n as u64 >> 32 != 0 || value_bytes > 4;
    if value_bytes > 8 {
        8
    } else if wide {
        4
    } else {
        2
    }
}

/// Returns the launch of a reduction. The grid determines the bits of a floating-point sum, so it depends only on size
/// and chip.
pub(in crate::backend::cuda) fn reduce(chip: Chip, n: usize, element_bytes: usize) -> Shape {
    let choice = choose("reduce", "*", n);
    let chunk = elements(choice, "UNROLL") * 16 / element_bytes;
    let threads = choice.get("THREADS");
    let blocks = tiles(n, chunk).clamp(1, resident_blocks(chip, threads).min(PARTIALS));
    Shape::new(blocks as u32, threads).class(choice.class())
}

/// Returns the launch of an exclusive prefix sum in one pass, and the number of look-back words that it needs.
pub(in crate::backend::cuda) fn scan(
    chip: Chip,
    n: usize,
    in_bytes: usize,
    out_bytes: usize,
) -> (Shape, usize) {
    let tile = |choice: Choice| elements(choice, "ROWS") * 16 / in_bytes;
    let choice = choose("scan", bytes_name(out_bytes), n);
    let choice = fit(chip, choice, |choice| tile(choice) * out_bytes);
    let (tile, threads) = (tile(choice), choice.get("THREADS"));
    let shape = Shape::resident(tiles(n, tile), threads).class(choice.class()).shared(tile * out_bytes);
    (shape, tiles(n, tile) * out_bytes.div_ceil(4))
}

/// As [`scan`] on chips that copy in bulk, for elements of 4 and 8 bytes; `None` if [`scan`] is faster.
pub(in crate::backend::cuda) fn scan_bulk(chip: Chip, n: usize, bytes: usize) -> Option<(Shape, usize)> {
    /// Threads in addition to those that add: a warp that loads and a warp that looks back.
    const OTHERS: u32 = 64;
    if chip.capability < (9, 0) || !matches!(bytes, 4 | 8) {
        return None;
    }
    let choice = table::pick("scan_bulk", bytes_name(bytes), n)?;
    let tile = elements(choice, "VECTORS") * 16 / bytes;
    let shared = choice.get("STAGES") as usize * tile * bytes;
    if shared > (chip.shared_a_block as usize).saturating_sub(STATIC_SHARED) {
        return None;
    }
    let shape = Shape::resident(tiles(n, tile), choice.get("THREADS") + OTHERS).class(choice.class());
    Some((shape.shared(shared), tiles(n, tile) * bytes / 4))
}

/// Returns the launch of a scan with any operation, and the number of look-back words.
pub(in crate::backend::cuda) fn scan_any(chip: Chip, n: usize, bytes: usize) -> (Shape, usize) {
    let choice = choose("scan_any", "*", n);
    let choice = fit(chip, choice, |choice| elements(choice, "ITEMS") * (bytes + 1));
    let tile = elements(choice, "ITEMS");
    let shape = Shape::new(tiles(n, tile) as u32, choice.get("THREADS")).class(choice.class());
    (shape.shared(tile * (bytes + 1)), tiles(n, tile) * run_words(bytes, n))
}

/// Returns the launch of a selection of elements of this size, and the number of look-back words. With `POSITIONS`,
/// their positions are selected instead.
pub(in crate::backend::cuda) fn compact(
    chip: Chip,
    mode: &'static str,
    n: usize,
    bytes: usize,
) -> (Shape, usize) {
    let vector = if mode == "POSITIONS" || bytes <= 4 { 4 } else { 16 / bytes };
    let wide = mode != "POSITIONS" && bytes > 4;
    let shared = |choice: Choice| 2 * elements(choice, "ROWS") * vector * bytes;
    let choice = fit(chip, choose("compact", if wide { "wide" } else { mode }, n), shared);
    let tile = elements(choice, "ROWS") * vector;
    let shape = Shape::resident(tiles(n, tile), choice.get("THREADS")).class(choice.class());
    (shape.shared(shared(choice)).variant("MODE", mode), tiles(n, tile) * 2)
}

/// Returns the launch of a reduction by key in one pass, and the number of look-back words.
pub(in crate::backend::cuda) fn reduce_by_key(
    chip: Chip,
    n: usize,
    key_bytes: usize,
    value_bytes: usize,
) -> (Shape, usize) {
    let shared = |choice: Choice| 2 * elements(choice, "ROWS") * 2 * (key_bytes + value_bytes);
    let choice = fit(chip, choose("reduce_by_key", bytes_name(value_bytes), n), shared);
    let tile = elements(choice, "ROWS") * 2;
    let shape = Shape::resident(tiles(n, tile), choice.get("THREADS")).class(choice.class());
    (shape.shared(shared(choice)), tiles(n, tile) * run_words(value_bytes, n))
}

/// The launches of radix sort for one size and combination of types.
#[derive(Debug, Clone, Copy)]
pub(in crate::backend::cuda) struct Sort {
    choice: Choice,
    chip: Chip,
    n: usize,
    shared: usize,
    one_block: bool,
}

impl Sort {
    pub(in crate::backend::cuda) fn of(chip: Chip, n: usize, key_bytes: usize, value_bytes: usize) -> Self {
        let variant = match (key_bytes > 4, value_bytes > 0) {
            (false, false) => "keys4",
            (false, true) => "pairs4",
            (true, false) => "keys8",
            (true, true) => "pairs8",
        };
        let shared = |choice: Choice| {
            choice.get("THREADS") as usize / 32 * 1024
                + elements(choice, "ITEMS") * key_bytes.max(value_bytes)
        };
        let small = fit(chip, choose("sort_small", variant, n), shared);
        let one_block = n <= elements(small, "ITEMS");
        let choice = if one_block { small } else { fit(chip, choose("sort", variant, n), shared) };
        Sort { choice, chip, n, shared: shared(choice), one_block }
    }

    /// Returns whether one block sorts everything.
    pub(in crate::backend::cuda) fn one_block(&self) -> bool {
        self.one_block
    }

    pub(in crate::backend::cuda) fn tiles(&self) -> usize {
        tiles(self.n, elements(self.choice, "ITEMS"))
    }

    /// Returns the launch of a pass, or of the one block that sorts everything.
    pub(in crate::backend::cuda) fn pass(&self) -> Shape {
        let blocks = if self.one_block { 1 } else { self.tiles() };
        Shape::new(blocks as u32, self.choice.get("THREADS")).class(self.choice.class()).shared(self.shared)
    }

    pub(in crate::backend::cuda) fn histogram(&self) -> Shape {
        let counts = choose("sort_histogram", "*", self.n);
        let threads = counts.get("HISTOGRAM_THREADS");
        let blocks = tiles(self.n, (threads * counts.get("HISTOGRAM_ITEMS")) as usize);
        let blocks = blocks.min(4 * self.chip.multiprocessors as usize);
        Shape::new(blocks as u32, threads).class(self.choice.class())
    }
}

/// The kernels for a histogram.
#[derive(Debug, Clone)]
pub(in crate::backend::cuda) enum Histogram {
    /// Every block counts all bins in shared memory.
    Shared(Shape),
    /// Keys are first grouped by these bits, and then each block counts the bins of a group in shared memory. If there
    /// is no memory for a second array of keys, they are counted through a cache with the second shape.
    Grouped(Shape, std::ops::Range<u32>, Shape),
    /// Bins are counted through a cache in shared memory.
    Cached(Shape),
}

pub(in crate::backend::cuda) fn histogram(n: usize, bins: usize) -> Histogram {
    let shape = |choice: Choice, shared: u32| {
        let blocks = tiles(n, elements(choice, "ITEMS"));
        Shape::resident(blocks, choice.get("THREADS"))
            .class(choice.class())
            .shared(4 * shared as usize)
            .variant("COUNT", "u32")
    };
    let few = choose("histogram", "*", n);
    if bins <= few.get("BINS") as usize {
        return Histogram::Shared(shape(few, bins as u32));
    }
    let cached = choose("histogram_cached", "*", n);
    let cached = shape(cached, 2 * cached.get("CACHE"));
    let bits = usize::BITS - (bins - 1).leading_zeros();
    match table::pick("histogram_by_tiles", "*", n) {
        Some(grouped) if bits <= 32 => {
            let window = grouped.get("WINDOW");
            Histogram::Grouped(shape(grouped, window), window.ilog2()..bits.max(window.ilog2() + 1), cached)
        }
        _ => Histogram::Cached(cached),
    }
}

/// Returns the bytes of shared memory of a tile of `merge.cu`.
fn merge_bytes(choice: Choice, key_bytes: usize, value_bytes: usize) -> usize {
    let tile = elements(choice, "ITEMS");
    let spread = if choice.get("ITEMS") % 2 == 1 { tile } else { tile + tile / 16 };
    tile * value_bytes + spread * (key_bytes + if value_bytes > 0 { 2 } else { 0 })
}

/// Returns, for a merge or a step of a merge sort, the number of elements per tile, a launch with a block per tile, and
/// a launch with a thread per tile.
pub(in crate::backend::cuda) fn merge(
    chip: Chip,
    n: usize,
    key_bytes: usize,
    value_bytes: usize,
) -> (usize, Shape, Shape) {
    let shared = |choice: Choice| merge_bytes(choice, key_bytes, value_bytes);
    let choice = fit(chip, choose("merge", bytes_name(value_bytes), n), shared);
    let tile = elements(choice, "ITEMS");
    let (blocks, threads) = (tiles(n, tile), choice.get("THREADS"));
    let merge = Shape::new(blocks as u32, threads).class(choice.class()).shared(shared(choice));
    (tile, merge, Shape::new(blocks.div_ceil(threads as usize) as u32, threads).class(choice.class()))
}

/// Returns, for segments of at most `longest` elements that are sorted by a block each, the maximum number of elements
/// per block, and the launch.
pub(in crate::backend::cuda) fn merge_segments(
    chip: Chip,
    longest: usize,
    segments: usize,
    key_bytes: usize,
    value_bytes: usize,
) -> (usize, Shape) {
    let shared = |choice: Choice| merge_bytes(choice, key_bytes, value_bytes);
    let choice = fit(chip, choose("merge_segments", "*", longest), shared);
    let shape = Shape::new(segments as u32, choice.get("THREADS")).class(choice.class());
    (elements(choice, "ITEMS"), shape.shared(shared(choice)))
}

/// Returns, for short segments, their maximum length, the launch that computes where tiles start, and that of the
/// tiles.
pub(in crate::backend::cuda) fn short_segments(n: usize) -> (usize, Shape, Shape) {
    let choice = choose("segmented_sort", "*", n);
    let (tiles, threads) = (tiles(n, elements(choice, "ITEMS")), choice.get("THREADS"));
    let find = Shape::new((tiles + 1).div_ceil(threads as usize) as u32, threads).class(choice.class());
    (choice.get("SHORT") as usize, find, Shape::new(tiles as u32, threads).class(choice.class()))
}

/// Returns, for reductions and scans of segments, the numbers of words of look-back and of temporary memory, the launch
/// that partitions, and that of the tiles.
pub(in crate::backend::cuda) fn segmented(
    chip: Chip,
    n: usize,
    segments: usize,
    bytes: usize,
    wide_offsets: bool,
) -> (usize, usize, Shape, Shape) {
    let shared = |choice: Choice| elements(choice, "ITEMS") * (bytes + 4);
    let choice = fit(chip, choose("segmented", bytes_name(bytes), n + segments), shared);
    let (blocks, threads) = (tiles(n + segments, elements(choice, "ITEMS")), choice.get("THREADS"));
    let partition = Shape::new((blocks + 1).div_ceil(threads as usize) as u32, threads);
    let words =
        blocks * if bytes > 8 { 8 } else { run_words(bytes, if wide_offsets { usize::MAX } else { 0 }) };
    let main = Shape::new(blocks as u32, threads).shared(shared(choice));
    (words, blocks + 1, partition.class(choice.class()), main.class(choice.class()))
}

pub(in crate::backend::cuda) fn gather(n: usize) -> Shape {
    let choice = choose("gather", "*", n);
    Shape::new(tiles(n, elements(choice, "ITEMS")) as u32, choice.get("THREADS")).class(choice.class())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_and_type_has_constants_on_every_chip() {
        for (capability, shared_memory) in [((7, 5), 64 << 10), ((8, 0), 163 << 10), ((9, 0), 227 << 10)] {
            let shared_a_block = shared_memory as u32;
            let chip = Chip {
                capability,
                cluster: 1,
                multiprocessors: 100,
                threads_per_multiprocessor: 1024,
                shared_a_block,
                shared_a_multiprocessor: shared_a_block,
                shared_reserved: 0,
            };
            let small = |shape: Shape| assert!(shape.shared_bytes() <= shared_memory, "{shape:?}");
            for n in [1, 2049, 1 << 20, 1 << 28, 1 << 33] {
                for bytes in [1, 2, 4, 8, 16] {
                    reduce(chip, n, bytes);
                    small(scan(chip, n, bytes, bytes.max(4)).0);
                    small(scan_any(chip, n, bytes).0);
                    for mode in ["UNIQUE", "FLAGGED", "PARTITION", "POSITIONS"] {
                        small(compact(chip, mode, n, bytes).0);
                    }
                    small(reduce_by_key(chip, n, 8, bytes).0);
                    small(Sort::of(chip, n, 8, bytes).pass());
                    small(Sort::of(chip, n, 8, bytes).histogram());
                    small(merge(chip, n, 8, bytes).1);
                    small(merge_segments(chip, 400, 1, 8, bytes).1);
                    small(merge_segments(chip, 4000, 1, 8, bytes).1);
                    small(segmented(chip, n, n, bytes, true).3);
                }
                small(short_segments(n).2);
                gather(n);
                histogram(n, 1 << 20);
            }
        }
    }
}
