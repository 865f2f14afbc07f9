//! The units that solves can need: each kernel file with the types of a solve, and with every class that `tuning`
//! chooses for matrices of some size on some chip. The functions of `tuning` themselves are called here, so a new class
//! gets into the next package even if no solve has been seen to use it.
//!
//! Packages have 12 MB for kernels, so the following are compiled at their first use: offsets of 64 bits (matrices of
//! 2^32 entries take longer to read); persistent iterations with a diagonal that exceeds single precision, or with
//! complex values in lower precision than the vectors; slices of SELL with another height than a warp; compressed
//! slices with coded values or values in lower precision; stencils with holes; several right-hand sides with rows of
//! different lengths; several GPUs; and everything that is not part of a solve. Units with a program are listed in
//! `units.txt` ([`list`](super::list)).

use super::Unit;
use crate::backend::RowExtent;
use crate::backend::cuda::chip::{Chip, LARGEST_CLUSTER};
use crate::backend::cuda::shape::{Shape, bytes_of};
use crate::backend::cuda::tuning::{self, CsrBlock, CsrWay, Histogram};
use crate::scalar::{Element, Promote, Scalar};
use num_complex::Complex;
use std::collections::HashSet;
use std::sync::LazyLock;

/// One chip of each family: these differ most in the properties on which choices depend.
const CHIPS: [Chip; 4] = [
    chip((8, 0), 1, 108, 2048, [163, 164]),
    chip((8, 6), 1, 82, 1536, [99, 100]),
    chip((9, 0), LARGEST_CLUSTER, 132, 2048, [227, 228]),
    chip((10, 0), LARGEST_CLUSTER, 148, 2048, [227, 228]),
];

/// Mean numbers of entries in a row.
const MEANS: [usize; 33] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 27, 28, 29, 32, 33, 41, 48, 64, 81,
    96, 97, 129, 200, 600,
];
/// The numbers of vectors in products with several.
const VECTORS: std::ops::RangeInclusive<usize> = 2..=8;
/// A matrix with at least this many entries has offsets of 64 bits.
const WIDE: usize = 1 << 32;

const fn chip(
    capability: (u32, u32),
    cluster: u32,
    multiprocessors: u32,
    threads_per_multiprocessor: u32,
    [a_block, a_multiprocessor]: [u32; 2],
) -> Chip {
    Chip {
        capability,
        cluster,
        multiprocessors,
        threads_per_multiprocessor,
        shared_a_block: a_block << 10,
        shared_a_multiprocessor: a_multiprocessor << 10,
        shared_reserved: 1 << 10,
    }
}

/// Returns numbers of rows or elements: four for each power of two.
fn counts() -> impl Iterator<Item = usize> + Clone {
    (0..28).flat_map(|power| [4, 5, 6, 7].map(|quarters| ((quarters << power) as usize).div_ceil(4)))
}

/// Returns pairs of a number of rows and a number of entries.
fn sizes() -> impl Iterator<Item = (usize, usize)> {
    counts().flat_map(|rows| MEANS.map(|mean| (rows, rows * mean))).filter(|&(_, nonzeros)| nonzeros < WIDE)
}

/// A list of units, each once, in the order in which they were added.
#[derive(Default)]
struct Asked {
    units: Vec<Unit>,
    known: HashSet<Unit>,
}

impl Asked {
    fn add(&mut self, unit: Unit) {
        if self.known.insert(unit) {
            self.units.push(unit);
        }
    }

    fn all(&mut self, units: impl IntoIterator<Item = Unit>) {
        units.into_iter().for_each(|unit| self.add(unit));
    }

    /// Adds a unit for each of these launch shapes.
    fn shapes(&mut self, unit: Unit, shapes: impl IntoIterator<Item = Shape>) {
        shapes.into_iter().for_each(|shape| self.add(shape.unit(unit)));
    }
}

/// Whether packages hold a unit. A wheel may have 24 MB, of which the library takes 13. Of 8.7 MB for sm_90 (1316
/// units, 2026-11-28), batches took 1.7, and persistent iterations other than conjugate gradients in double precision
/// 1.5: without a compiler, their steps are taken one by one.
pub(super) fn is_packed(unit: &Unit) -> bool {
    match unit.source() {
        "batch_block.cu" | "batch_krylov.cu" | "batch_lanes.cu" | "batch_sparse.cu"
        | "minres_resident.cu" => false,
        "cg_resident.cu" | "cg_streamed.cu" => unit.type_of("SCALAR") == "f64",
        _ => true,
    }
}

/// Returns all units that solves can need.
pub(super) fn asked_units() -> &'static [Unit] {
    static ALL: LazyLock<Vec<Unit>> = LazyLock::new(made);
    &ALL
}

fn made() -> Vec<Unit> {
    let mut asked = Asked::default();
    without_values(&mut asked);
    primitives(&mut asked);
    moved::<f32>(&mut asked);
    moved::<f64>(&mut asked);
    moved::<Complex<f64>>(&mut asked);
    of_scalar::<f32>(&mut asked);
    of_scalar::<f64>(&mut asked);
    of_scalar::<Complex<f32>>(&mut asked);
    of_scalar::<Complex<f64>>(&mut asked);
    of_matrix::<f32, f32>(&mut asked);
    of_matrix::<f64, f64>(&mut asked);
    of_matrix::<f64, f32>(&mut asked);
    of_matrix::<Complex<f32>, Complex<f32>>(&mut asked);
    of_matrix::<Complex<f64>, Complex<f64>>(&mut asked);
    of_matrix::<Complex<f64>, Complex<f32>>(&mut asked);
    asked.units
}

fn narrow(file: &'static str) -> Unit {
    Unit::new(file).with("OFFSET", "u32")
}

fn typed<T: Element>(file: &'static str) -> Unit {
    Unit::new(file).with("SCALAR", T::NAME)
}

/// Adds the kernels of patterns and orderings.
fn without_values(asked: &mut Asked) {
    let files = [
        "column_spread.cu",
        "compressed_is_grid.cu",
        "length_order.cu",
        "memory.cu",
        "pack.cu",
        "post.cu",
        "stage_runs.cu",
    ];
    asked.all(files.map(Unit::new));
    for offset in ["u32", "u64"] {
        asked.all(["convert_sizes.cu", "index.cu"].map(|file| Unit::new(file).with("OFFSET", offset)));
    }
    let files = ["cg_layout.cu", "colour.cu", "components.cu", "diagonals.cu", "grid_order.cu", "pattern.cu"];
    asked.all(files.map(narrow));
    asked.add(narrow("compressed_sizes.cu").with("TARGET", "u32"));
    asked.shapes(narrow("row_shape.cu"), [tuning::row_shape(CHIPS[0], 1)]);
    for (rows, nonzeros) in sizes() {
        asked.shapes(narrow("row_shape.cu"), [tuning::block_tiles(CHIPS[0], rows, nonzeros).1]);
    }
    for class in 0..=tuning::SCATTERED_TILES {
        asked.shapes(narrow("row_shape.cu"), [tuning::balanced_tiles(CHIPS[0], class, 1, 1).1]);
    }
    for chip in CHIPS {
        // A chip runs the largest cluster that it has the resources for: sixteen blocks if it can, else eight, and one
        // without clusters.
        let preferred = |size: &u32| matches!(*size, 1 | 8 | LARGEST_CLUSTER) && *size <= chip.cluster;
        for cluster in tuning::CLUSTERS.into_iter().filter(preferred) {
            asked.all(["bfs.cu", "cuthill_mckee.cu"].map(|file| narrow(file).class(cluster)));
        }
        for (rows, nonzeros) in sizes() {
            let lengths = tuning::product_lengths(chip, nonzeros / rows, rows);
            asked.shapes(narrow("spgemm_lengths.cu"), [lengths]);
            let merged = tuning::merged_rows(chip, rows, 0);
            asked.shapes(narrow("spgemm_merged_lengths.cu"), [merged]);
        }
    }
    asked.add(narrow("aggregate.cu").class(tuning::ONE_CLASS));
    let files = ["spgemm.cu", "spgemm_long.cu"];
    asked.all(files.map(|file| narrow(file).with("TARGET", "u32").class(tuning::ONE_CLASS)));
    asked.all(tuning::SORTED_CLASSES.map(|class| narrow("spgemm_sorted_lengths.cu").class(class)));
}

/// Adds the primitives, with the types that assembly, conversions and preconditioners use.
fn primitives(asked: &mut Asked) {
    asked.add(Unit::new("keys.cu").with("KEY", "u32"));
    asked.add(Unit::new("number.cu").with("NUMBER", "u32"));
    for (element, operations) in
        [("u32", &["MIN", "MAX"][..]), ("f32", &["MIN", "MAX"]), ("f64", &["MIN", "MAX"]), ("u64", &["MAX"])]
    {
        for operation in operations {
            let unit = Unit::new("reduce.cu").with("IN", element).with("OP", operation).with("ACC", element);
            let unit = unit.with("OUT", element);
            asked.all(counts().map(|n| unit.class(tuning::class_of("reduce", "*", n))));
        }
    }
    for chip in CHIPS {
        for n in counts().filter(|&n| n < 1 << 30) {
            for (out, bytes) in [("u32", 4), ("u64", 8)] {
                let unit = Unit::new("scan.cu").with("IN", "u32").with("OUT", out).with("ACC", out);
                asked.shapes(unit.with("INCLUSIVE", "0"), [tuning::scan(chip, n, 4, bytes).0]);
            }
            let bulk = tuning::scan_bulk(chip, n, 4).map(|(shape, _)| shape.variant("INCLUSIVE", "0"));
            asked.shapes(Unit::new("scan_bulk.cu").with("ELEMENT", "u32"), bulk);
            for (mode, element, bytes) in [
                ("POSITIONS", "u32", 4),
                ("FLAGGED", "u32", 4),
                ("FLAGGED", "u64", 8),
                ("UNIQUE", "u32", 4),
                ("UNIQUE", "u64", 8),
            ] {
                let shape = tuning::compact(chip, mode, n, bytes).0.variant("IN", element);
                asked.shapes(Unit::new("compact.cu"), [shape.variant("INDEX", "u32")]);
            }
            for (key, key_bytes, value, value_bytes) in
                [("u32", 4, "4", 4), ("u32", 4, "0", 0), ("u64", 8, "4", 4), ("u64", 8, "0", 0)]
            {
                let sort = tuning::Sort::of(chip, n, key_bytes, value_bytes);
                let shape = sort.pass().variant("VALUE_BYTES", value).variant("LOOK", "u32");
                asked.shapes(Unit::new("sort.cu").with("KEY", key), [shape]);
            }
            for bins in [1, 1 << 13, 1 << 20] {
                let shapes = match tuning::histogram(n, bins) {
                    Histogram::Shared(shape) | Histogram::Cached(shape) => vec![shape],
                    Histogram::Grouped(shape, _, cached) => vec![shape, cached],
                };
                asked.shapes(Unit::new("histogram.cu"), shapes);
            }
        }
    }
    // Entries whose rows ascend, and columns do not.
    let of_numbers = |shape: Shape| shape.for_values::<u32>();
    for chip in CHIPS {
        let merges = [1, 1 << 12].map(|longest| of_numbers(tuning::merge_segments(chip, longest, 1, 4, 4).1));
        asked.shapes(Unit::new("merge.cu").with("KEY", "u32").with("OFFSET", "u32"), merges);
    }
    for n in counts() {
        let (_, find, tiles) = tuning::short_segments(n);
        let unit = Unit::new("segmented_sort.cu").with("KEY", "u32").with("OFFSET", "u32");
        asked.shapes(unit, [find, tiles].map(of_numbers));
    }
    asked.all(
        tuning::window_sort_classes()
            .map(|class| Unit::new("transpose_sort.cu").with("CURSOR", "u32").class(class)),
    );
}

/// Adds the kernels that move values, by the width of these.
fn moved<V: Element>(asked: &mut Asked) {
    let items = Unit::new("gather.cu").with("INDEX", "u32").with("ITEM_BYTES", bytes_of::<V>());
    asked.shapes(items, [tuning::gather(1)]);
    asked.shapes(narrow("mirror.cu"), [tuning::mirror(1).for_values::<V>()]);
    asked.shapes(narrow("transpose.cu").with("CURSOR", "u32"), [tuning::one_each(1).for_values::<V>()]);
    let tails = narrow("convert_tails.cu").with("HEADS", "u32").with("TAILS", "u32");
    asked.shapes(tails, [tuning::one_each(1).for_values::<V>()]);
    for (rows, nonzeros) in sizes() {
        let mean = nonzeros / rows;
        let by_rows = tuning::convert_rows(rows, nonzeros, mean).0.for_values::<V>();
        asked.shapes(narrow("convert_rows.cu").with("STARTS", "u32"), [by_rows]);
        asked.shapes(narrow("convert_dia.cu"), [tuning::convert_dia(rows, mean).for_values::<V>()]);
        let windows = tuning::Windows::of::<V>(nonzeros, rows).map(|windows| windows.finish);
        asked.shapes(narrow("transpose_windows.cu").with("CURSOR", "u32"), windows);
        let rows = [tuning::permute(CHIPS[0], rows, nonzeros), tuning::permute_long(CHIPS[0], rows)];
        asked.shapes(narrow("permute.cu"), rows.map(|shape| shape.variant("ITEM_BYTES", bytes_of::<V>())));
    }
    asked.shapes(narrow("permute.cu"), [tuning::per_vertex(CHIPS[0], 1).variant("ITEM_BYTES", "1")]);
}

/// Adds the kernels of vectors, of matrices whose values have the type of vectors, and of batches.
fn of_scalar<T: Scalar>(asked: &mut Asked) {
    let bytes = size_of::<T>();
    let files = [
        "chebyshev.cu",
        "grid.cu",
        "grid_linear.cu",
        "hessenberg.cu",
        "pair_scalars.cu",
        "scalars.cu",
        "vector.cu",
        "vector_block.cu",
    ];
    asked.all(files.map(typed::<T>));
    for diagonal in ["f32", T::Real::NAME] {
        let files = ["krylov.cu", "krylov_block.cu"];
        asked.all(files.map(|file| typed::<T>(file).with("DIAGONAL", diagonal)));
    }
    asked.add(typed::<T>("gather_sum.cu").with("SOURCE", "u32"));
    asked.all(["0", "1"].map(|single| typed::<T>("staged_sum.cu").with("SINGLE", single)));
    asked.add(typed::<T>("precision.cu").with("NARROW", T::Lower::NAME));
    asked.all([tuning::FEW_ROWS, 0].map(|class| typed::<T>("basis.cu").class(class)));
    asked.all(tuning::project_classes(bytes).map(|class| typed::<T>("basis_project.cu").class(class)));
    batches::<T>(asked);
    asked.all(["fronts.cu", "fronts_pivots.cu"].map(typed::<T>));
    let small =
        tuning::small_fronts(bytes).iter().map(|&rows| typed::<T>("fronts_small.cu").class(rows as u32));
    asked.all(small);
    asked.all(tuning::FRONT_SOLVES.map(|class| typed::<T>("fronts_solve.cu").class(class)));
    asked.add(typed::<T>("fronts_solve_large.cu"));

    let of = |file| typed::<T>(file).with("OFFSET", "u32");
    asked.add(of("incomplete.cu").class(tuning::ONE_CLASS));
    asked.all(tuning::TRIANGULAR.map(|class| of("triangular.cu").class(class)));
    let of = |file| of(file).with("TARGET", "u32");
    let files = ["coarsen.cu", "near_null.cu", "spadd.cu", "spgemm_values.cu", "triangle.cu"];
    asked.all(files.map(|file| of(file).class(tuning::ONE_CLASS)));
    if !T::COMPLEX {
        asked.all(tuning::CLASSICAL_UNITS.map(|class| of("classical.cu").class(class)));
    }
    asked.all(tuning::KNOWN_UNITS.map(|class| of("spgemm_known.cu").class(class)));
    asked.all(tuning::MERGED_UNITS.map(|class| of("spgemm_merged.cu").class(class)));
    asked.all(tuning::SORTED_CLASSES.map(|class| of("spgemm_sorted.cu").class(class)));
    asked.all(tuning::SMOOTHED_UNITS.map(|class| of("smoothed_rows.cu").class(class)));
    asked.all(tuning::ROW_UNITS.map(|class| of("spgemm_rows.cu").class(class)));
    let inverses = typed::<T>("group_inverses.cu").with("NARROW", T::Lower::NAME).with("OFFSET", "u32");
    asked.add(inverses.with("TARGET", "u32").class(tuning::ONE_CLASS));

    compressing::<T>(asked);
    asked.all(tuning::STENCILS.map(|places| typed::<T>("compressed_stencil.cu").class(places)));
    let [grids, marches] = [tuning::grid_classes::<T>(), tuning::march_classes::<T>()];
    for (file, classes) in [("compressed_grid.cu", grids), ("compressed_march.cu", marches)] {
        let whole = classes.into_iter().filter(|&class| class < tuning::GRID_HOLES);
        asked.all(whole.map(|class| typed::<T>(file).class(class)));
    }
}

/// Adds the kernels of batches of small systems.
fn batches<T: Scalar>(asked: &mut Asked) {
    let bytes = size_of::<T::Double>();
    asked.shapes(
        typed::<T>("batch_lanes.cu"),
        (1..=tuning::BATCH_LANES).map(|size| tuning::batch_lanes(1, size, bytes)),
    );
    for chip in CHIPS {
        let dense = |size| tuning::batch_block(chip, 1, size, bytes).0;
        asked.shapes(typed::<T>("batch_block.cu"), (tuning::BATCH_LANES + 1..=tuning::BATCH_ROWS).map(dense));
        let sparse = |longest| Some(tuning::batch_sparse(chip, 1, (4096, 100_000, longest), bytes)?.0);
        asked.shapes(typed::<T>("batch_sparse.cu"), (1..4096).step_by(16).filter_map(sparse));
        let iterated = |(size, gone, longest)| {
            Some(tuning::batch_krylov(chip, 1, (size, gone, 5 * size, longest), bytes)?.0)
        };
        let sizes = (1..=tuning::BATCH_KRYLOV_ROWS).step_by(51);
        let kinds = sizes.flat_map(|size| [0, size / 4, size / 2].map(|gone| (size, gone)));
        let kinds = kinds.flat_map(|(size, gone)| [5, 64].map(|longest| (size, gone, longest)));
        asked.shapes(typed::<T>("batch_krylov.cu"), kinds.filter_map(iterated));
    }
}

/// Adds the kernels that convert to the compressed format and back.
fn compressing<V: Scalar>(asked: &mut Asked) {
    let survey = Unit::new("compressed_survey.cu").with("VALUE", V::NAME).with("OFFSET", "u32");
    let of = |file| {
        let unit = Unit::new(file).with("VALUE", V::NAME).with("STORED", V::NAME);
        unit.with("OFFSET", "u32").with("TARGET", "u32")
    };
    let held =
        |shape: Shape, columns| shape.variant("COLUMNS", columns).variant("VALUES", "COMPRESSED_STORED");
    let (fill, restore) = ("compressed_fill.cu", "compressed_restore.cu");
    for lines in [false, true] {
        let by_kinds = |shape| held(shape, "COMPRESSED_KINDS");
        asked.shapes(of(fill), [by_kinds(tuning::compressed_blocks(1, lines))]);
        for (rows, nonzeros) in sizes() {
            let rows = tuning::compressed_rows(CHIPS[0], rows, nonzeros, lines);
            asked.shapes(of(fill), [by_kinds(rows)]);
        }
        asked.shapes(of(restore), [by_kinds(tuning::compressed_places(1, lines))]);
    }
    for chip in CHIPS {
        asked.shapes(survey, sizes().map(|(rows, nonzeros)| tuning::compressed_survey(chip, rows, nonzeros)));
    }
    for columns in ["COMPRESSED_KINDS", "COMPRESSED_WIDE"] {
        let shape = held(tuning::compressed_fills(1, 1, true).0, columns);
        asked.all([fill, restore].map(|file| shape.unit(of(file))));
    }
    let deal = Unit::new("compressed_deal.cu").with("VALUE", V::NAME).with("STORED", V::NAME);
    asked.add(deal.with("OFFSET", "u32"));
}

/// Adds products and Krylov steps of vectors of T with a matrix of V.
fn of_matrix<T: Scalar, V: Scalar + Promote<T>>(asked: &mut Asked) {
    let of = |file| typed::<T>(file).with("STORED", V::NAME);
    let files = ["compressed_balanced.cu", "coo.cu", "csr_binned.cu", "pair_products.cu", "pair_update.cu"];
    asked.all(files.map(of));
    let narrow = |file| of(file).with("OFFSET", "u32");
    asked.all(["blocks.cu", "compressed_kinds_stored.cu", "jds.cu"].map(narrow));
    asked.add(narrow("sparse_inverse.cu").with("FACTOR_OFFSET", "u32"));
    asked.shapes(of("dia.cu"), [tuning::dia_transposed(1)]);
    for (rows, nonzeros) in sizes() {
        let mean = nonzeros / rows;
        for chip in CHIPS {
            let by_lanes = [tuning::csr(chip, rows, nonzeros), tuning::rows(chip, rows)];
            asked.shapes(narrow("csr_krylov.cu"), by_lanes);
            if T::COMPLEX && size_of::<V>() < size_of::<T>() {
                continue;
            }
            let on_chip = tuning::resident(chip, rows, nonzeros);
            let classes = || on_chip.iter().map(|way| way.class);
            let cg = typed::<T>("cg_resident.cu").with("DIAGONAL", "f32").with("STORED", V::NAME);
            asked.all(classes().map(|class| cg.with("OFFSET", "u32").class(class)));
            asked.all(classes().map(|class| narrow("minres_resident.cu").class(class)));
            let streamed = tuning::streamed(chip, rows, size_of::<T>(), 2 * size_of::<T>());
            let cg = typed::<T>("cg_streamed.cu").with("DIAGONAL", "f32").with("STORED", V::NAME);
            asked.all(streamed.map(|way| cg.with("OFFSET", "u32").class(way.class)));
        }
        asked.shapes(of("ell.cu"), [tuning::ell(rows, mean)]);
        for yes in [false, true] {
            let sell = [false, true].map(|known| tuning::sell::<T>(rows, nonzeros, 32, yes, known));
            asked.shapes(narrow("sell.cu"), sell);
            asked.shapes(of("dia.cu"), [tuning::dia::<T>(rows, mean, yes)]);
        }
        asked.shapes(of("dia.cu"), [tuning::half_dia(rows, mean), tuning::half_dia_dot::<T>(rows, mean)]);
        let lengths = [mean, mean + 1, 2 * mean + 7, 2 * mean + 8, 3 * mean + 8, 4 * mean, 100 * mean + 1000];
        for longest in lengths {
            csr::<T, V>(asked, longest, (rows, nonzeros));
        }
    }
    let of = |file| typed::<T>(file).with("VALUE", V::NAME);
    asked.add(of("compressed_kinds.cu"));
    asked.add(of("compressed_long.cu").with("OFFSET", "u32"));
    let sections = [1, 100].map(|quads| tuning::compressed_sections::<T>(1, quads, true, false));
    let wide =
        |shape: Shape| shape.variant("COLUMNS", "COMPRESSED_WIDE").variant("VALUES", "COMPRESSED_STORED");
    let compressed = of("compressed.cu").with("STORED", V::NAME).with("OFFSET", "u32");
    asked.shapes(compressed, sections.map(wide));
}

/// Adds the products in CSR for rows of these lengths.
fn csr<T: Scalar, V: Scalar + Promote<T>>(
    asked: &mut Asked,
    longest: usize,
    (rows, nonzeros): (usize, usize),
) {
    let of = |file| typed::<T>(file).with("STORED", V::NAME).with("OFFSET", "u32");
    let fullest = (32 * nonzeros / rows).max(longest) as u64;
    let extent = RowExtent { longest: longest as u64, fullest };
    for scattered in [false, true] {
        let asks = || Ok(tuning::asks_spread(rows, nonzeros).then_some(scattered));
        let ways = [
            tuning::csr_way::<V>(extent, rows, nonzeros, asks),
            tuning::csr_way_dot::<V, T>(extent, rows, nonzeros, asks),
        ];
        for way in ways.into_iter().flatten() {
            match way {
                CsrWay::Vector { shape } => asked.add(shape.unit(of("csr_vector.cu"))),
                CsrWay::Streamed { shape, .. } => asked.add(shape.unit(of("csr_stream.cu"))),
                CsrWay::Balanced { shape, .. } => asked.add(shape.unit(of("csr_balanced.cu"))),
                CsrWay::Binned => {}
            }
        }
    }
    for vectors in VECTORS {
        for aligned in [false, true] {
            let way = tuning::csr_block::<T, V>(extent, (rows, nonzeros), vectors, aligned);
            if let CsrBlock::Rows { shape, .. } = way {
                asked.add(shape.unit(of("csr_block.cu")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::cuda::compile::SOURCES;
    use crate::backend::cuda::compile::list::recorded_units;
    use std::collections::BTreeSet;

    /// Files for several GPUs, for rows of unlike lengths, and for those who call primitives and products by name.
    const NOT_ASKED: [&str; 11] = [
        "bfs_part.cu",
        "cg_part.cu",
        "csr_block_tiles.cu",
        "linear_update.cu",
        "own_columns.cu",
        "peers.cu",
        "peers_rows.cu",
        "reduce_by_key.cu",
        "scan_any.cu",
        "segmented.cu",
        "stencil.cu",
    ];

    #[test]
    fn every_file_of_a_solve_is_asked_for() {
        let asked: BTreeSet<&str> = asked_units().iter().map(Unit::source).collect();
        let files = SOURCES.iter().map(|(file, _)| *file).filter(|file| !NOT_ASKED.contains(file));
        assert_eq!(asked, files.collect());
    }

    /// The list contains every unit that was recorded in real solves, apart from files that are not packed.
    #[test]
    fn what_solves_were_seen_to_load_is_asked_for() {
        let asked: HashSet<&Unit> = asked_units().iter().collect();
        let of_a_solve = |unit: &Unit| !NOT_ASKED.contains(&unit.source()) && unit.source() != "scalars.cu";
        let seen = recorded_units();
        let missing: Vec<String> = seen
            .iter()
            .filter(|unit| of_a_solve(unit) && !asked.contains(unit))
            .map(Unit::describe)
            .collect();
        assert!(missing.is_empty(), "{} of {}:\n{}", missing.len(), seen.len(), missing.join("\n"));
    }
}
