//! What programs ask for, so that it can be compiled before any user does: every kernel file, for the types that it is
//! used with.

use super::Unit;
use crate::backend::cuda::policy;

const SCALARS: [&str; 4] = ["f32", "f64", "c32", "c64"];
/// Types of vectors, each with the types of values that widen to it.
const WIDENINGS: [(&str, &str); 6] =
    [("f32", "f32"), ("f64", "f64"), ("f64", "f32"), ("c32", "c32"), ("c64", "c64"), ("c64", "c32")];
const OFFSETS: [&str; 2] = ["u32", "u64"];
const KEYS: [&str; 6] = ["u32", "u64", "i32", "i64", "f32", "f64"];
const NUMBERS: [&str; 8] = ["u8", "u32", "u64", "i32", "f32", "f64", "c32", "c64"];

/// Units of every kernel file: all types that solvers use, and of the primitives' many combinations enough to have
/// every line compiled.
pub fn catalogue() -> Vec<Unit> {
    let mut units = vec![Unit::new("memory.cu"), Unit::new("pack.cu")];
    for scalar in SCALARS {
        units.extend(["vector.cu", "krylov.cu"].map(|file| Unit::new(file).with("SCALAR", scalar)));
        units.extend(OFFSETS.map(|offset| {
            Unit::new("gather_sum.cu").with("SCALAR", scalar).with("SOURCE", "u32").with("OFFSET", offset)
        }));
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
        for class in policy::RESIDENT {
            let unit = Unit::new("cg_resident.cu").with("SCALAR", vector).with("STORED", value);
            units.push(unit.with("OFFSET", "u32").class(class));
        }
    }
    conversions(&mut units);
    primitives(&mut units);
    preconditioners(&mut units);
    units
}

fn preconditioners(units: &mut Vec<Unit>) {
    units.extend(SCALARS.map(|scalar| Unit::new("chebyshev.cu").with("SCALAR", scalar)));
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

fn conversions(units: &mut Vec<Unit>) {
    for offset in OFFSETS {
        units.push(Unit::new("convert_sizes.cu").with("OFFSET", offset));
        for (bytes, lanes) in [("4", 4), ("8", 8), ("16", 16)] {
            let unit = |file| Unit::new(file).with("VALUE_BYTES", bytes).with("OFFSET", offset);
            units.push(unit("convert_rows.cu").with("STARTS", "u32").class(lanes));
            units.push(unit("convert_rows.cu").with("STARTS", "u64").class(lanes));
            units.push(unit("convert_tails.cu").with("HEADS", "u32").with("TAILS", "u32"));
        }
    }
}

fn products(units: &mut Vec<Unit>, vector: &'static str, value: &'static str) {
    let unit = |file| Unit::new(file).with("SCALAR", vector).with("STORED", value);
    units.extend(["ell.cu", "coo.cu"].map(unit));
    for offset in OFFSETS {
        units.extend(["csr_balanced.cu", "jds.cu"].map(|file| unit(file).with("OFFSET", offset)));
        units.push(unit("csr_block.cu").with("OFFSET", offset).with("WIDTH", "1").class(8));
        units.extend([0, 16, 32].map(|height| unit("sell.cu").with("OFFSET", offset).class(height)));
    }
}

fn primitives(units: &mut Vec<Unit>) {
    units.extend(
        ["index.cu", "row_shape.cu"]
            .iter()
            .flat_map(|file| OFFSETS.map(|offset| Unit::new(file).with("OFFSET", offset))),
    );
    units.extend(KEYS.map(|key| Unit::new("keys.cu").with("KEY", key)));
    units.extend(NUMBERS.map(|number| Unit::new("number.cu").with("NUMBER", number)));
    for number in NUMBERS {
        for (reduce, segments) in [("SUM", "op_sum"), ("MIN", "op_min"), ("MAX", "op_max")] {
            if reduce != "SUM" && number.starts_with('c') {
                continue;
            }
            let unit = Unit::new("reduce.cu").with("IN", number).with("OP", reduce);
            units.push(unit.with("ACC", number).with("OUT", number));
            units.push(Unit::new("segments.cu").with("ELEMENT", number).with("OP", segments));
        }
    }
    for (x, sum) in
        [("u32", "u32"), ("u32", "u64"), ("u64", "u64"), ("f32", "f32"), ("f64", "f64"), ("c64", "c64")]
    {
        for (inclusive, class) in [("0", 0), ("1", 1)] {
            let unit = Unit::new("scan.cu").with("IN", x).with("OUT", sum).with("ACC", sum);
            units.push(unit.with("INCLUSIVE", inclusive).class(class));
        }
    }
    for mode in ["UNIQUE", "FLAGGED", "PARTITION"] {
        for element in ["u8", "u32", "u64"] {
            units.push(Unit::new("compact.cu").with("MODE", mode).with("IN", element).with("INDEX", "u32"));
        }
    }
    for index in OFFSETS {
        units.push(Unit::new("compact.cu").with("MODE", "POSITIONS").with("IN", index).with("INDEX", index));
        units.push(Unit::new("histogram.cu").with("COUNT", index));
        units.extend(
            ["1", "4", "8", "16"]
                .map(|bytes| Unit::new("gather.cu").with("INDEX", index).with("ITEM_BYTES", bytes)),
        );
        for value in ["u32", "f64", "c64"] {
            let unit = Unit::new("reduce_by_key.cu").with("KEY", "u64").with("VALUE", value);
            units.push(unit.with("INDEX", index));
        }
    }
    for bytes in ["0", "4", "16"] {
        units.push(Unit::new("merge.cu").with("KEY", "u64").with("VALUE_BYTES", bytes));
    }
    for mode in ["REDUCE", "SCAN", "SCAN_EXCLUSIVE"] {
        units.push(Unit::new("segmented.cu").with("VALUE", "f64").with("INDEX", "u32").with("MODE", mode));
    }
    for key in ["u32", "u64", "f64"] {
        for (bytes, class) in [("0", 3), ("4", 0), ("4", 3), ("8", 2), ("16", 1)] {
            units.push(
                Unit::new("sort.cu")
                    .with("KEY", key)
                    .with("VALUE_BYTES", bytes)
                    .with("LOOK", "u32")
                    .class(class),
            );
        }
    }
}
