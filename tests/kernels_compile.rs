//! Compiles every kernel for every chip that is supported; it needs NVRTC but no device.
//!
//! Each kernel file is compiled with one choice of types for every chip, with full optimisation for one chip and with
//! little for the others, which takes half the time: a file has a chip's instructions between `#if`s, or as text, and
//! whether the compiler accepts them does not depend on optimisation. With `RESIDUA_ALL_KERNELS=1` all choices are
//! compiled for sm_90 too, which takes minutes (images in the cache are not compiled again: `RESIDUA_CACHE=off`
//! compiles all). `RESIDUA_REQUIRE_NVRTC=1` makes a missing compiler a failure.

#![cfg(feature = "cuda")]

use rayon::prelude::*;
use residua::backend::cuda::compile::{Compiler, HEADERS, SOURCES, Unit, catalogue};
use std::collections::BTreeSet;
use std::path::Path;

const CHIPS: [(u32, u32); 4] = [(7, 5), (8, 0), OPTIMISED, (10, 0)];
/// The chip for which kernels are compiled with full optimisation.
const OPTIMISED: (u32, u32) = (9, 0);

#[test]
fn every_file_is_in_the_catalogue() {
    let listed: BTreeSet<&str> = catalogue().iter().map(Unit::source).collect();
    let files: BTreeSet<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, files);
}

/// A header that is not in the list would be missing when a kernel is compiled at run time.
#[test]
fn every_header_that_is_included_is_listed() {
    let listed: BTreeSet<&str> = HEADERS.iter().map(|(name, _)| *name).collect();
    for (name, text) in SOURCES.iter().chain(HEADERS) {
        let included = text.lines().filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
        let missing: Vec<&str> = included.filter(|header| !listed.contains(header)).collect();
        assert!(missing.is_empty(), "{name} includes {missing:?}, which compile/sources.rs does not list");
    }
}

fn compiler() -> Option<&'static Compiler> {
    match Compiler::get() {
        Ok(compiler) => Some(compiler),
        Err(error) => {
            let needed = std::env::var_os("RESIDUA_REQUIRE_NVRTC").is_some_and(|value| value == "1");
            assert!(!needed, "RESIDUA_REQUIRE_NVRTC is set: {error}");
            eprintln!("SKIPPED, nothing was compiled: {error}");
            None
        }
    }
}

#[test]
fn every_kernel_compiles_for_every_chip() {
    let Some(compiler) = compiler() else { return };
    let units = catalogue();
    let mut work: Vec<(Unit, (u32, u32))> = Vec::new();
    for (file, _) in SOURCES {
        let last = units.iter().rfind(|unit| unit.source() == *file).unwrap();
        work.extend(CHIPS.map(|chip| (*last, chip)));
    }
    if std::env::var_os("RESIDUA_ALL_KERNELS").is_some_and(|all| all == "1") {
        work.extend(units.iter().map(|unit| (*unit, OPTIMISED)));
    }
    let work: Vec<_> = work.into_iter().filter(|(_, chip)| compiler.chips().contains(chip)).collect();
    let failures: Vec<String> = work
        .par_iter()
        .filter_map(|(unit, chip)| {
            let image =
                if *chip == OPTIMISED { compiler.image(unit, *chip) } else { compiler.draft(unit, *chip) };
            match image {
                Ok(image) if !image.code.is_empty() => None,
                Ok(_) => Some(format!("{}: an empty image", unit.describe())),
                Err(error) => Some(format!("{} for {chip:?}: {error}", unit.describe())),
            }
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} images by {compiler:?}", work.len());
}

/// The variable that makes this program a child that compiles, since the cache's folder is read from the environment.
const CHILD: &str = "RESIDUA_TEST_COMPILES";

#[test]
fn child() {
    if std::env::var_os(CHILD).is_some() {
        let unit = catalogue().into_iter().find(|unit| unit.source() == "keys.cu").unwrap();
        let image = Compiler::get().unwrap().image(&unit, (9, 0)).unwrap();
        println!("cached {} bytes {} end", image.cached, image.code.len());
    }
}

/// The result of a process with its cache in `folder`: whether the code was cached, and its length.
fn compiled_in(folder: &Path) -> (bool, usize) {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(CHILD, "1")
        .env("RESIDUA_CACHE", folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(child.status.success(), "{text}{}", String::from_utf8_lossy(&child.stderr));
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "cached").unwrap();
    (words[at + 1] == "true", words[at + 3].parse().unwrap())
}

/// A cache that is cold, warm, damaged, or no folder at all gives the same code each time.
#[test]
fn a_damaged_or_unwritable_cache_costs_a_compilation_and_nothing_else() {
    if compiler().is_none() {
        return;
    }
    let folder = std::env::temp_dir().join(format!("residua-compiles-{}", std::process::id()));
    let (cached, bytes) = compiled_in(&folder);
    assert!(!cached && bytes > 0);
    assert_eq!(compiled_in(&folder), (true, bytes));
    for damage in [|code: &mut Vec<u8>| code.truncate(100), |code: &mut Vec<u8>| code[50] ^= 1] {
        for file in std::fs::read_dir(&folder).unwrap() {
            let path = file.unwrap().path();
            let mut code = std::fs::read(&path).unwrap();
            damage(&mut code);
            std::fs::write(path, code).unwrap();
        }
        assert_eq!(compiled_in(&folder), (false, bytes), "damaged: compiled anew");
        assert_eq!(compiled_in(&folder), (true, bytes), "and mended");
    }
    std::fs::remove_dir_all(&folder).unwrap();
    // With a file of that name, the folder cannot be made.
    std::fs::write(&folder, "in the way").unwrap();
    for _ in 0..2 {
        assert_eq!(compiled_in(&folder), (false, bytes));
    }
    std::fs::remove_file(&folder).unwrap();
}
