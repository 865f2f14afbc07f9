//! Every kernel compiles for every chip that we support, on a machine that needs no device: NVRTC suffices.
//!
//! One choice of types a kernel file for every chip; with `RESIDUA_ALL_KERNELS=1` all choices for sm_90 too, which takes
//! minutes
//! (images that are in the cache are taken from there: `RESIDUA_CACHE=off` compiles all).

#![cfg(feature = "cuda")]

use rayon::prelude::*;
use residua::backend::cuda::compile::{Compiler, SOURCES, Unit, catalogue};
use std::collections::BTreeSet;

const CHIPS: [(u32, u32); 4] = [(7, 5), (8, 0), (9, 0), (10, 0)];

#[test]
fn every_file_is_in_the_catalogue() {
    let listed: BTreeSet<&str> = catalogue().iter().map(Unit::source).collect();
    let files: BTreeSet<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, files);
}

#[test]
fn every_kernel_compiles_for_every_chip() {
    let compiler = match Compiler::get() {
        Ok(compiler) => compiler,
        Err(error) => return eprintln!("SKIPPED, kernels were not compiled: {error}"),
    };
    let units = catalogue();
    let mut work: Vec<(Unit, (u32, u32))> = Vec::new();
    for (file, _) in SOURCES {
        let last = units.iter().rfind(|unit| unit.source() == *file).unwrap();
        work.extend(CHIPS.map(|chip| (*last, chip)));
    }
    if std::env::var_os("RESIDUA_ALL_KERNELS").is_some_and(|all| all == "1") {
        work.extend(units.iter().map(|unit| (*unit, (9, 0))));
    }
    let work: Vec<_> = work.into_iter().filter(|(_, chip)| compiler.chips().contains(chip)).collect();
    let failures: Vec<String> = work
        .par_iter()
        .filter_map(|(unit, chip)| match compiler.image(unit, *chip) {
            Ok(image) if !image.code.is_empty() => None,
            Ok(_) => Some(format!("{}: an empty image", unit.describe())),
            Err(error) => Some(format!("{} for {chip:?}: {error}", unit.describe())),
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} images by {compiler:?}", work.len());
}
