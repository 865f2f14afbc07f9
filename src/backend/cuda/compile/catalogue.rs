//! Every unit that a program can ask for, so that all can be compiled before any user does.

use super::Unit;

const SCALARS: [&str; 4] = ["f32", "f64", "c32", "c64"];
/// Types of vectors, each with the types of values that widen to it.
const WIDENINGS: [(&str, &str); 6] =
    [("f32", "f32"), ("f64", "f64"), ("f64", "f32"), ("c32", "c32"), ("c64", "c64"), ("c64", "c32")];
const OFFSETS: [&str; 2] = ["u32", "u64"];

/// Every kernel file with every choice of types and every class.
pub fn catalogue() -> Vec<Unit> {
    let mut units = vec![Unit::new("memory.cu")];
    for scalar in SCALARS {
        units.extend(["vector.cu", "krylov.cu"].map(|file| Unit::new(file).with("T", scalar)));
    }
    for (vector, value) in WIDENINGS {
        for offset in OFFSETS {
            for file in ["csr_vector.cu", "csr_krylov.cu"] {
                let csr = Unit::new(file).with("T", vector).with("V", value).with("I", offset);
                units.extend([2, 4, 8, 16, 32].map(|lanes| csr.class(lanes)));
            }
        }
    }
    units
}
