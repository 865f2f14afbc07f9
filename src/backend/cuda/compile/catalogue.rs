//! The units that the program may need, so that they can be compiled in advance: every kernel file, for each
//! combination of types with which it is used.

use super::{Unit, program_number};
use crate::backend::cuda::tuning::{self, class_of};
use crate::backend::scalars::CODES;

const SCALARS: [&str; 4] = ["f32", "f64", "c32", "c64"];
/// Pairs of a vector type and a type of matrix values that can be promoted to it.
const WIDENINGS: [(&str, &str); 6] =
    [("f32", "f32"), ("f64", "f64"), ("f64", "f32"), ("c32", "c32"), ("c64", "c64"), ("c64", "c32")];
const OFFSETS: [&str; 2] = ["u32", "u64"];
/// The types in which a diagonal inverse may be stored.
const DIAGONALS: [&str; 2] = ["f32", "f64"];
const KEYS: [&str; 6] = ["u32", "u64", "i32", "i64", "f32", "f64"];
/// A number of elements that selects the constants for large arrays.
const LARGE: usize = 1 << 28;
const NUMBERS: [&str; 8] = ["u8", "u32", "u64", "i32", "f32", "f64", "c32", "c64"];

/// Returns units of every kernel file: for all types that solvers use, and for so many combinations of the primitives
/// that every line is compiled.
pub fn catalogue() -> Vec<Unit> {
    let mut units = vec![
        Unit::new("length_order.cu"),
        Unit::new("memory.cu"),
        Unit::new("pack.cu"),
        Unit::new("post.cu"),
    ];
    for scalar in SCALARS {
        units.push(Unit::new("vector.cu").with("SCALAR", scalar));
        units.push(Unit::new("vector_block.cu").with("SCALAR", scalar));
        for file in ["krylov.cu", "krylov_block.cu", "cg_part.cu"] {
            units.extend(DIAGONALS.map(|d| Unit::new(file).with("SCALAR", scalar).with("DIAGONAL", d)));
        }
        units.extend(
            OFFSETS.map(|offset| Unit::new("gather_sum.cu").with("SCALAR", scalar).with("SOURCE", offset)),
        );
        units.extend(
            ["1", "0"].map(|single| Unit::new("staged_sum.cu").with("SCALAR", scalar).with("SINGLE", single)),
        );
    }
    for (vector, value) in WIDENINGS {
        for (offset, lanes) in [("u32", 2), ("u64", 8), ("u32", 32)] {
            for file in ["csr_vector.cu", "csr_stream.cu", "csr_krylov.cu"] {
                let csr = Unit::new(file).with("SCALAR", vector).with("STORED", value).with("OFFSET", offset);
                units.push(csr.class(lanes));
            }
        }
        products(&mut units, vector, value);
    }
    units.extend(OFFSETS.map(|offset| Unit::new("cg_layout.cu").with("OFFSET", offset)));
    for (vector, value) in WIDENINGS {
        for class in tuning::RESIDENT {
            let unit = Unit::new("cg_resident.cu").with("SCALAR", vector).with("DIAGONAL", "f32");
            let unit = unit.with("STORED", value);
            units.push(unit.with("OFFSET", "u32").class(class));
            let unit = Unit::new("minres_resident.cu").with("SCALAR", vector).with("STORED", value);
            units.push(unit.with("OFFSET", "u32").class(class));
        }
        for (offset, class) in OFFSETS.iter().zip(tuning::STREAMED) {
            let unit = Unit::new("cg_streamed.cu").with("SCALAR", vector).with("DIAGONAL", "f32");
            let unit = unit.with("STORED", value);
            units.push(unit.with("OFFSET", offset).class(class));
        }
    }
    conversions(&mut units);
    for file in ["bfs_part.cu", "colour.cu", "components.cu", "grid_order.cu", "pattern.cu"] {
        units.extend(OFFSETS.map(|offset| Unit::new(file).with("OFFSET", offset)));
    }
    for cluster in tuning::CLUSTERS {
        for file in ["bfs.cu", "cuthill_mckee.cu"] {
            units.extend(OFFSETS.map(|offset| Unit::new(file).with("OFFSET", offset).class(cluster)));
        }
    }
    for (bytes, offset, lanes) in [("1", "u32", 8), ("4", "u32", 8), ("8", "u64", 32), ("16", "u32", 32)] {
        units.push(Unit::new("permute.cu").with("ITEM_BYTES", bytes).with("OFFSET", offset).class(lanes));
    }
    compressed(&mut units);
    primitives(&mut units);
    preconditioners(&mut units);
    sparse_products(&mut units);
    recurrences(&mut units);
    for scalar in SCALARS {
        let unit = |file| Unit::new(file).with("SCALAR", scalar);
        units.extend(tuning::LANES_CLASSES.map(|lanes| unit("batch_lanes.cu").class(lanes)));
        units.extend(tuning::BLOCK_CLASSES.map(|rows| unit("batch_block.cu").class(rows)));
        units.extend(tuning::KRYLOV_CLASSES.map(|rows| unit("batch_krylov.cu").class(rows)));
        units.extend(tuning::SPARSE_CLASSES.map(|systems| unit("batch_sparse.cu").class(systems)));
        units.extend(["fronts.cu", "fronts_pivots.cu"].map(unit));
        let small = tuning::small_fronts(unit("fronts.cu").scalar_bytes()).len();
        units.extend(tuning::FRONT_CLASSES[..small].iter().map(|&rows| unit("fronts_small.cu").class(rows)));
        units.extend(tuning::FRONT_SOLVES.map(|threads| unit("fronts_solve.cu").class(threads)));
        units.push(unit("fronts_solve_large.cu"));
    }
    units
}

/// Adds the compressed format, with every representation of columns and values.
fn compressed(units: &mut Vec<Unit>) {
    let held = ["COMPRESSED_KINDS", "COMPRESSED_CODES", "COMPRESSED_WIDE"]
        .into_iter()
        .flat_map(|columns| [(columns, "COMPRESSED_CODES"), (columns, "COMPRESSED_STORED")]);
    for (columns, values) in held {
        for (vector, value, stored) in [
            ("f64", "f64", "f64"),
            ("f64", "f64", "f32"),
            ("f32", "f32", "f32"),
            ("f64", "f32", "f32"),
            ("c64", "c64", "c32"),
        ] {
            let with = |unit: Unit| unit.with("COLUMNS", columns).with("VALUES", values);
            let unit =
                |file| Unit::new(file).with("SCALAR", vector).with("STORED", stored).with("OFFSET", "u32");
            if (columns, values) == ("COMPRESSED_KINDS", "COMPRESSED_STORED") {
                units.push(unit("compressed_kinds_stored.cu"));
            } else {
                let unit = unit("compressed.cu").with("VALUE", value).with("COLUMNS", columns);
                units.extend([0, tuning::LONG].map(|class| unit.with("VALUES", values).class(class)));
                if values == "COMPRESSED_CODES" {
                    units.push(unit.with("VALUES", "COMPRESSED_ONE").class(0));
                }
            }
            let unit =
                |file| Unit::new(file).with("VALUE", value).with("STORED", stored).with("OFFSET", "u32");
            units.push(with(unit("compressed_fill.cu").with("TARGET", "u32")).class(4));
            units.push(with(unit("compressed_restore.cu").with("TARGET", "u32")).class(2));
        }
    }
    for (vector, value) in WIDENINGS {
        let unit = |file| Unit::new(file).with("SCALAR", vector).with("VALUE", value);
        units.push(unit("compressed_kinds.cu"));
        units.push(Unit::new("compressed_balanced.cu").with("SCALAR", vector).with("STORED", value));
        let deal = Unit::new("compressed_deal.cu").with("VALUE", vector).with("STORED", value);
        units.extend(OFFSETS.map(|offset| deal.with("OFFSET", offset)));
        units.extend(OFFSETS.map(|offset| unit("compressed_long.cu").with("OFFSET", offset)));
    }
    for value in SCALARS {
        let survey = Unit::new("compressed_survey.cu").with("VALUE", value).with("OFFSET", "u32");
        units.extend([4, 4 | tuning::FEW].map(|class| survey.class(class)));
        for file in ["compressed_grid.cu", "compressed_stencil.cu"] {
            units.extend(tuning::STENCILS.map(|places| Unit::new(file).with("SCALAR", value).class(places)));
        }
        // Usually no load has two points of one grid line. For f32 there is also a variant for stencils in which a load
        // has two.
        let halves = match value {
            "f32" => [1, 2].as_slice(),
            "c64" => &[],
            _ => &[1],
        };
        let unit = |halved| tuning::STENCILS[0] + halved * tuning::GRID_HALVED;
        units.extend(
            halves.iter().map(|&h| Unit::new("compressed_grid.cu").with("SCALAR", value).class(unit(h))),
        );
        let [.., all] = tuning::STENCILS;
        let mirrored = all + tuning::GRID_MIRRORED;
        units.push(Unit::new("compressed_grid.cu").with("SCALAR", value).class(mirrored));
    }
    for value in ["f32", "f64"] {
        let [flat, few, _, all] = tuning::STENCILS;
        let (mirrored, parts, marks) =
            (all + tuning::GRID_MIRRORED, tuning::GRID_HOLES, 2 * tuning::GRID_HOLES);
        let holes = [flat + parts, few + parts, all + parts, flat + marks, few + marks, mirrored + marks];
        units.extend(holes.map(|class| Unit::new("compressed_grid.cu").with("SCALAR", value).class(class)));
        let classes = [few, all, mirrored, few + parts, few + marks, mirrored + marks];
        units
            .extend(classes.map(|class| Unit::new("compressed_march.cu").with("SCALAR", value).class(class)));
    }
    units.push(Unit::new("compressed_is_grid.cu"));
    for (offset, target) in [("u32", "u32"), ("u64", "u32"), ("u32", "u64")] {
        units.push(Unit::new("compressed_sizes.cu").with("OFFSET", offset).with("TARGET", target));
    }
}

/// Adds linear updates of few vectors and of the maximum number, scalar programs, and steps with a basis.
fn recurrences(units: &mut Vec<Unit>) {
    for scalar in SCALARS {
        let unit = |file| Unit::new(file).with("SCALAR", scalar);
        units.extend(["hessenberg.cu", "pair_scalars.cu", "scalars.cu"].map(unit));
        for (_, stored) in WIDENINGS.into_iter().filter(|(wide, _)| *wide == scalar) {
            units
                .extend(["pair_products.cu", "pair_update.cu"].map(|file| unit(file).with("STORED", stored)));
        }
        units.extend([tuning::FEW_ROWS, 0].map(|class| unit("basis.cu").class(class)));
        let bytes = unit("basis.cu").scalar_bytes();
        units.extend(tuning::project_classes(bytes).map(|class| unit("basis_project.cu").class(class)));
        let counts = [
            ("1", "1", "0"),
            ("2", "0", "2"),
            ("0", "2", "1"),
            ("2", "2", "1"),
            ("3", "2", "2"),
            ("4", "4", "4"),
        ];
        units.extend(counts.map(|(inputs, outputs, products)| {
            let unit = unit("linear_update.cu").with("INPUTS", inputs).with("OUTPUTS", outputs);
            unit.with("PRODUCTS", products)
        }));
        // A program with every instruction, to be compiled into the kernel.
        let program: Vec<u32> = (0..CODES).flat_map(|code| [code, 8 + code, 5 + code % 3, 6]).collect();
        units.push(unit("scalars.cu").class(program_number(&program)));
    }
}

fn preconditioners(units: &mut Vec<Unit>) {
    for file in ["chebyshev.cu", "grid.cu", "grid_linear.cu"] {
        units.extend(SCALARS.map(|scalar| Unit::new(file).with("SCALAR", scalar)));
    }
    for (wide, narrow) in [("f64", "f32"), ("f32", "f32"), ("c64", "c32")] {
        units.push(Unit::new("precision.cu").with("SCALAR", wide).with("NARROW", narrow));
    }
    for (vector, value) in WIDENINGS {
        let typed = |file| Unit::new(file).with("SCALAR", vector).with("STORED", value);
        units.push(typed("blocks.cu").with("OFFSET", "u32"));
        units.push(typed("sparse_inverse.cu").with("OFFSET", "u32").with("FACTOR_OFFSET", "u32"));
    }
    let wide =
        Unit::new("sparse_inverse.cu").with("SCALAR", "f64").with("STORED", "f64").with("OFFSET", "u64");
    units.push(wide.with("FACTOR_OFFSET", "u64"));
}

/// Adds sparse products of matrices, and other kernels with the same types.
fn sparse_products(units: &mut Vec<Unit>) {
    let offsets = OFFSETS.iter().flat_map(|&from| OFFSETS.map(|to| (from, to)));
    for (from, to) in offsets {
        let unit = |file| Unit::new(file).with("OFFSET", from).with("TARGET", to);
        units.extend(["spgemm.cu", "spgemm_long.cu"].map(|file| unit(file).class(tuning::ONE_CLASS)));
    }
    for offset in OFFSETS {
        let unit = Unit::new("spgemm_lengths.cu").with("OFFSET", offset);
        units.extend(tuning::LENGTH_UNITS.map(|class| unit.class(class)));
        units.push(
            Unit::new("spgemm_merged_lengths.cu").with("OFFSET", offset).class(tuning::MERGED_UNITS[0]),
        );
        let unit = Unit::new("spgemm_sorted_lengths.cu").with("OFFSET", offset);
        units.extend(tuning::SORTED_CLASSES.map(|class| unit.class(class)));
    }
    units.extend(
        OFFSETS.map(|offset| Unit::new("aggregate.cu").with("OFFSET", offset).class(tuning::ONE_CLASS)),
    );
    for scalar in SCALARS {
        units.push(Unit::new("peers.cu").with("SCALAR", scalar));
        // Offsets of 64 bits make no other difference in these kernels, so they are compiled for one scalar type only.
        for offset in OFFSETS.into_iter().take(if scalar == "f64" { 2 } else { 1 }) {
            let unit = |file| Unit::new(file).with("SCALAR", scalar).with("OFFSET", offset);
            units.push(unit("peers_rows.cu"));
            units.push(unit("incomplete.cu").class(tuning::ONE_CLASS));
            units.extend(tuning::TRIANGULAR.map(|class| unit("triangular.cu").class(class)));
            let unit = |file| unit(file).with("TARGET", offset);
            units.extend(tuning::KNOWN_UNITS.map(|class| unit("spgemm_known.cu").class(class)));
            units.extend(tuning::MERGED_UNITS.map(|class| unit("spgemm_merged.cu").class(class)));
            units.extend(tuning::SORTED_CLASSES.map(|class| unit("spgemm_sorted.cu").class(class)));
            units.extend(tuning::ROW_UNITS.map(|class| unit("spgemm_rows.cu").class(class)));
            units.extend(tuning::CLASSICAL_UNITS.map(|class| unit("classical.cu").class(class)));
            units.extend(tuning::SMOOTHED_UNITS.map(|class| unit("smoothed_rows.cu").class(class)));
            let files = ["spgemm_values.cu", "spadd.cu", "coarsen.cu", "near_null.cu", "triangle.cu"];
            units.extend(files.map(|file| unit(file).class(tuning::ONE_CLASS)));
            let narrow = if matches!(scalar, "c32" | "c64") { "c32" } else { "f32" };
            let inverses = Unit::new("group_inverses.cu").with("SCALAR", scalar).with("NARROW", narrow);
            units.push(inverses.with("OFFSET", offset).with("TARGET", offset).class(tuning::ONE_CLASS));
        }
    }
}

fn conversions(units: &mut Vec<Unit>) {
    for offset in OFFSETS {
        units.extend(
            SCALARS.map(|scalar| Unit::new("stencil.cu").with("SCALAR", scalar).with("OFFSET", offset)),
        );
        units.push(Unit::new("convert_sizes.cu").with("OFFSET", offset));
        units.push(Unit::new("diagonals.cu").with("OFFSET", offset));
        for (bytes, lanes) in [("4", 4), ("8", 8), ("16", 16)] {
            let unit = |file| Unit::new(file).with("VALUE_BYTES", bytes).with("OFFSET", offset);
            units.push(unit("convert_dia.cu").class(lanes));
            units.push(unit("convert_rows.cu").with("STARTS", "u32").class(lanes));
            units.push(unit("convert_rows.cu").with("STARTS", "u64").class(lanes));
            units.push(unit("convert_tails.cu").with("HEADS", "u32").with("TAILS", "u32"));
            units.push(unit("mirror.cu"));
            units.push(unit("own_columns.cu").with("TARGET", offset));
            units.extend(OFFSETS.map(|cursor| unit("transpose.cu").with("CURSOR", cursor)));
            units.push(unit("transpose_windows.cu").with("CURSOR", "u32").class(lanes / 8 + 10));
        }
        units.extend(
            tuning::window_sort_classes()
                .map(|class| Unit::new("transpose_sort.cu").with("CURSOR", offset).class(class)),
        );
    }
}

fn products(units: &mut Vec<Unit>, vector: &'static str, value: &'static str) {
    let unit = |file| Unit::new(file).with("SCALAR", vector).with("STORED", value);
    units.extend([
        unit("coo.cu"),
        unit("csr_binned.cu"),
        unit("dia.cu"),
        unit("ell.cu"),
        unit("ell.cu").class(1),
    ]);
    let pairs = (vector == "f32").then_some(tuning::PAIRS);
    let classes = pairs.into_iter().chain([tuning::WIDE, tuning::HALF, tuning::HALF | tuning::WIDE]);
    units.extend(classes.map(|class| unit("dia.cu").class(class)));
    // Sums of 16 bytes are never computed for two rows per thread.
    let pairs = (vector != "c64").then_some(tuning::PAIRS);
    for offset in OFFSETS {
        units.extend(["csr_balanced.cu", "jds.cu"].map(|file| unit(file).with("OFFSET", offset)));
        let [of_8, of_4] = tuning::CLUSTERED_TILES;
        let tiles = [if value == "f32" { of_4 } else { of_8 }, tuning::SCATTERED_TILES];
        units.extend(tiles.map(|class| unit("csr_balanced.cu").with("OFFSET", offset).class(class)));
        units.push(unit("csr_vector.cu").with("OFFSET", offset).class(4 | tuning::AHEAD));
        let several = |file| unit(file).with("OFFSET", offset).with("WIDTH", "1").class(8);
        units.push(several("csr_block.cu"));
        units.push(several("csr_block_tiles.cu").with("STEPS", "1024"));
        let heights = [0, 16, 32, 32 | tuning::WIDE, 32 | tuning::AHEAD];
        let heights = heights.into_iter().chain(pairs.map(|pairs| 32 | pairs));
        units.extend(heights.map(|height| unit("sell.cu").with("OFFSET", offset).class(height)));
    }
}

fn primitives(units: &mut Vec<Unit>) {
    units.push(Unit::new("column_spread.cu"));
    units.extend(
        ["index.cu", "row_shape.cu"]
            .iter()
            .flat_map(|file| OFFSETS.map(|offset| Unit::new(file).with("OFFSET", offset))),
    );
    units.extend(KEYS.map(|key| Unit::new("keys.cu").with("KEY", key)));
    units.extend(NUMBERS.map(|number| Unit::new("number.cu").with("NUMBER", number)));
    for number in NUMBERS {
        for (reduce, scan) in [("SUM", "op_sum"), ("MIN", "op_min"), ("MAX", "op_max")] {
            if reduce != "SUM" && number.starts_with('c') {
                continue;
            }
            let unit = Unit::new("reduce.cu").with("IN", number).with("OP", reduce);
            units.push(unit.with("ACC", number).with("OUT", number));
            let unit = Unit::new("scan_any.cu").with("VALUE", number).with("OP", scan);
            units.push(unit.with("INDEX", "u32").with("INCLUSIVE", "1"));
        }
    }
    scans_and_selections(units);
    sorts_and_merges(units);
}

fn scans_and_selections(units: &mut Vec<Unit>) {
    for (x, sum, bytes) in [
        ("u32", "u32", "4"),
        ("u32", "u64", "8"),
        ("u64", "u64", "8"),
        ("f32", "f32", "4"),
        ("f64", "f64", "8"),
        ("c64", "c64", "16"),
    ] {
        for (inclusive, n) in [("0", 1), ("1", LARGE)] {
            let unit = Unit::new("scan.cu").with("IN", x).with("OUT", sum).with("ACC", sum);
            units.push(unit.with("INCLUSIVE", inclusive).class(class_of("scan", bytes, n)));
        }
    }
    units.push(Unit::new("stage_runs.cu"));
    for (element, inclusive) in [("u32", "0"), ("u64", "1"), ("f64", "0")] {
        units.push(Unit::new("scan_bulk.cu").with("ELEMENT", element).with("INCLUSIVE", inclusive));
    }
    for mode in ["UNIQUE", "FLAGGED", "PARTITION"] {
        for element in ["u8", "u32", "u64"] {
            let class = class_of("compact", if element == "u64" { "wide" } else { mode }, 1);
            let unit = Unit::new("compact.cu").with("MODE", mode).with("IN", element).with("INDEX", "u32");
            units.push(unit.class(class));
        }
    }
    for index in OFFSETS {
        units.push(Unit::new("compact.cu").with("MODE", "POSITIONS").with("IN", index).with("INDEX", index));
        units.push(Unit::new("histogram.cu").with("COUNT", index));
        units.extend(
            ["1", "4", "8", "16"]
                .map(|bytes| Unit::new("gather.cu").with("INDEX", index).with("ITEM_BYTES", bytes)),
        );
        for (value, bytes, op) in
            [("u32", "4", "op_min"), ("i64", "8", "op_max"), ("f64", "8", "op_sum"), ("c64", "16", "op_sum")]
        {
            let unit = Unit::new("reduce_by_key.cu").with("KEY", "u64").with("VALUE", value).with("OP", op);
            units.push(unit.with("INDEX", index).class(class_of("reduce_by_key", bytes, 1)));
            for mode in ["REDUCE", "SCAN", "SCAN_EXCLUSIVE"] {
                let unit = Unit::new("segmented.cu").with("VALUE", value).with("INDEX", index).with("OP", op);
                units.push(unit.with("MODE", mode).class(class_of("segmented", bytes, 1)));
            }
        }
    }
}

fn sorts_and_merges(units: &mut Vec<Unit>) {
    for (bytes, name) in [("0", "4"), ("4", "4"), ("16", "16")] {
        let unit = Unit::new("merge.cu").with("KEY", "u64").with("VALUE_BYTES", bytes);
        units.push(unit.class(class_of("merge", name, 1)));
        units.push(unit.with("LESS(a,b)", "((a)%10<(b)%10)").class(class_of("merge", name, 1)));
        for n in [1, 1 << 12] {
            let unit = unit.with("OFFSET", if n == 1 { "u32" } else { "u64" });
            units.push(unit.class(class_of("merge_segments", "*", n)));
        }
    }
    for (key, offset, bytes) in [("u32", "u32", "8"), ("f64", "u64", "4"), ("u64", "u32", "16")] {
        let unit = Unit::new("segmented_sort.cu").with("KEY", key).with("OFFSET", offset);
        units.push(unit.with("VALUE_BYTES", bytes));
    }
    for (key, size) in [("u32", "4"), ("u64", "8"), ("f64", "8")] {
        for (bytes, kernel, n) in [
            ("0", "sort", LARGE),
            ("4", "sort_small", 1),
            ("4", "sort", LARGE),
            ("8", "sort", 1 << 20),
            ("16", "sort", 1 << 16),
        ] {
            let variant = match (bytes, size) {
                ("0", "4") => "keys4",
                ("0", _) => "keys8",
                (_, "4") => "pairs4",
                _ => "pairs8",
            };
            let unit = Unit::new("sort.cu").with("KEY", key).with("VALUE_BYTES", bytes).with("LOOK", "u32");
            units.push(unit.class(class_of(kernel, variant, n)));
        }
    }
}
