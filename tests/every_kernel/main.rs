//! Every kernel of the project, on small ragged inputs, compared with the host: this is what `scripts/sanitize.sh` runs
//! under compute-sanitizer, with which a kernel is a hundred times slower. A kernel that is not launched here is a
//! failure.
//!
//! `RESIDUA_GROUPS=merges,orders` runs some groups only. The kernels that exist and those that were launched are
//! printed in any case.

#![cfg(all(feature = "cuda", feature = "ranks"))]

#[path = "../common/assembly.rs"]
mod assembly;
#[allow(dead_code)]
#[path = "../common/backend.rs"]
mod backend;
#[allow(dead_code)]
#[path = "../common/compressed_cases.rs"]
mod compressed_cases;
#[path = "../common/formats/mod.rs"]
mod formats;
#[allow(dead_code)]
#[path = "../common/fronts.rs"]
mod fronts;
#[allow(dead_code)]
#[path = "../common/graph.rs"]
mod graph;
#[path = "../common/grid.rs"]
mod grid;
#[allow(dead_code)]
#[path = "../common/multigrid/mod.rs"]
mod multigrid;
#[allow(dead_code)]
#[path = "../common/precondition.rs"]
mod precondition;
#[allow(dead_code)]
#[path = "../common/primitives/mod.rs"]
mod primitives;
#[path = "../common/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "../common/sparse.rs"]
mod sparse;
#[path = "../common/systems.rs"]
mod systems;
#[allow(dead_code)]
#[path = "../common/triangular.rs"]
mod triangular;
#[allow(dead_code)]
#[path = "../common/vector_ops/mod.rs"]
mod vector_ops;

mod basics;
mod batches;
mod controls;
mod graphs;
mod peers;
mod solving;
mod stored;

use graph::collection;
use residua::Cuda;
use residua::backend::cuda::compile::SOURCES;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;
use systems::device::device;

/// A named group of cases that run together.
type Group = (&'static str, fn(&Cuda));

const GROUPS: [Group; 73] = [
    ("memory", basics::memory),
    ("vectors", basics::vectors),
    ("vectors-side-by-side", basics::vectors_side_by_side),
    ("linear-updates", basics::linear_updates),
    ("bases", basics::bases),
    ("pairs", basics::pairs),
    ("reductions", basics::reductions),
    ("scans", basics::scans),
    ("selections", basics::selections),
    ("sorts", basics::sorts),
    ("segmented-sorts", basics::segmented_sorts),
    ("merges", basics::merges),
    ("moves", basics::moves),
    ("runs-staged", basics::runs_staged),
    ("products", stored::products),
    ("products-narrow", stored::narrow_products),
    ("products-complex", stored::complex_products),
    ("products-recorded", stored::recorded_products),
    ("products-degenerate", stored::degenerate_products),
    ("half-diagonals", stored::half_diagonals),
    ("rows-cut", stored::rows_cut),
    ("several-vectors", stored::several_vectors),
    ("conversions", stored::conversions),
    ("conversions-types", stored::conversions_of_types),
    ("conversions-degenerate", stored::conversions_of_degenerate),
    ("transposes", stored::transposes),
    ("transposes-large", stored::large_transpose),
    ("compressed", stored::compressed),
    ("compressed-products", stored::compressed_products),
    ("compressed-dots", stored::compressed_dots),
    ("compressed-grids", stored::compressed_grids),
    ("assembly", stored::assembled),
    ("traversals-narrow", graphs::narrow),
    ("levels", graphs::levels),
    ("levels-wide", graphs::wide_levels),
    ("levels-parts", graphs::levels_of_parts),
    ("orders", graphs::orders),
    ("orders-components", graphs::orders_of_components),
    ("orders-wide", graphs::wide_orders),
    ("orders-grids", graphs::orders_of_grids),
    ("permutations", graphs::permutations),
    ("structures", graphs::structures),
    ("colours", graphs::colours),
    ("wide-offsets", graphs::wide_offsets),
    ("solvers", solving::steps),
    ("solvers-several", solving::several),
    ("persistent", solving::persistent),
    ("persistent-clusters", solving::clusters),
    ("persistent-types", solving::types),
    ("persistent-whole-chip", solving::whole_chip),
    ("preconditioners", solving::preconditioners),
    ("incomplete-levels", triangular::level_cases),
    ("incomplete-factors", triangular::factor_cases),
    ("incomplete-complex", triangular::complex_factor_cases),
    ("incomplete-pivots", triangular::failing_pivot_cases),
    ("fronts", fronts::small_cases),
    ("fronts-determinants", fronts::determinants),
    ("peers", peers::one_rank),
    ("peers-rows", peers::rows_of_a_rank),
    ("boxes", grid::boxes_of_points),
    ("boxes-between", grid::points_between),
    ("boxes-rows", grid::rows_on_grids),
    ("coarsening", multigrid::the_hierarchy_of_the_host),
    ("blocks-scattered", multigrid::inverses_of_blocks),
    ("sparse-products", sparse::small_cases),
    ("batches-f64", batches::doubles),
    ("batches-f32", batches::singles),
    ("batches-c64", batches::complex_doubles),
    ("batches-c32", batches::complex_singles),
    ("batches-eliminated", batches::eliminated),
    ("batches-iterated", batches::iterated),
    ("streams", solving::streams),
    ("large", basics::large),
];

/// Cases that a tool must report, so that its silence elsewhere is meaningful; run only if named.
const CONTROLS: [Group; 4] = [
    ("control-memcheck", controls::out_of_bounds),
    ("control-initcheck", controls::uninitialised),
    ("control-racecheck", controls::race),
    ("control-synccheck", controls::unwaited),
];

#[test]
fn every_kernel_is_launched_and_right() {
    let Some(b) = device() else { return };
    let only = std::env::var("RESIDUA_GROUPS").ok();
    let wanted = |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|one| one == name));
    let all = kernels();
    println!("GROUPS {}", GROUPS.map(|group| group.0).join(" "));
    CONTROLS.iter().for_each(|(name, _)| println!("CONTROL {name}"));
    all.iter().for_each(|(file, kernel)| println!("KERNEL {file} {kernel}"));
    let mut failed = Vec::new();
    let controls = CONTROLS.iter().filter(|_| only.is_some());
    for (name, group) in GROUPS.iter().chain(controls).filter(|(name, _)| wanted(name)) {
        let start = Instant::now();
        let right = catch_unwind(AssertUnwindSafe(|| group(&b))).is_ok();
        println!(
            "GROUP {name} {} {:.1} s",
            if right { "right" } else { "WRONG" },
            start.elapsed().as_secs_f64()
        );
        if !right {
            failed.push(*name);
        }
    }
    let launched = b.launched_kernels();
    launched.iter().for_each(|(file, kernel)| println!("LAUNCHED {file} {kernel}"));
    let without = peers::without();
    let missing: Vec<_> = all.difference(&launched).filter(|kernel| !without.contains(kernel)).collect();
    assert!(failed.is_empty(), "wrong: {failed:?}");
    assert!(only.is_some() || missing.is_empty(), "launched by nothing here: {missing:?}");
}

/// File and name of every kernel.
fn kernels() -> BTreeSet<(&'static str, &'static str)> {
    SOURCES.iter().flat_map(|&(file, text)| names(text).into_iter().map(move |name| (file, name))).collect()
}

/// The names of a file's kernels: after `__global__`, or its abbreviation `KERNEL`, and after the launch bounds.
fn names(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut declares = false;
    for line in lines.filter(|line| !line.starts_with('#')) {
        declares |= line.contains("__global__") || line.starts_with("KERNEL ");
        // The first word before a bracket that is no attribute.
        let mut rest = line;
        while declares && let Some((before, behind)) = rest.split_once('(') {
            let word = before.rsplit([' ', ')', '\t']).next().unwrap_or_default();
            if word.starts_with("__") || word.is_empty() {
                // Skips to the end of `__launch_bounds__(WARPS * 32)` on the same line.
                let mut depth = 1;
                let end = behind.find(|c| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    depth == 0
                });
                rest = &behind[end.map_or(behind.len(), |end| end + 1)..];
            } else {
                found.push(word);
                declares = false;
            }
        }
    }
    found
}

#[test]
fn the_kernels_of_a_file_are_found() {
    let text = "\
#define KERNEL extern \"C\" __global__ void __launch_bounds__(THREADS)
KERNEL one(u64 n) { two(n); }
// extern \"C\" __global__ void no(u64 n)
extern \"C\" __global__ void __launch_bounds__(THREADS, (A) + 1)
#if CLUSTER > 1
    __cluster_dims__(CLUSTER, 1, 1)
#endif
    three(u64 n, const u32* x) {
extern \"C\" __global__ void __launch_bounds__(THREADS) four(u64 n) {}";
    assert_eq!(names(text), ["one", "three", "four"]);
    let all = kernels();
    assert!(all.len() >= 146, "{all:?}");
    assert!(SOURCES.iter().all(|(file, _)| all.iter().any(|(of, _)| of == file)), "{all:?}");
}
