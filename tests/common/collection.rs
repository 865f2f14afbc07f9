//! The collection of test matrices: its folder and its tables.

// Not every test program uses all of it.
#![allow(dead_code)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The folder, which is `RESIDUA_MATRICES` or else `shared/matrices` next to this package; if it does not exist, prints
/// that and returns `None`.
pub fn folder() -> Option<PathBuf> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let folder = std::env::var_os("RESIDUA_MATRICES")
        .map_or_else(|| Path::new(&package).join("../shared/matrices"), PathBuf::from);
    let there = folder.join("index.csv").is_file();
    if !there {
        println!("skipped: no test matrices at {}; set RESIDUA_MATRICES", folder.display());
    }
    there.then_some(folder)
}

/// Returns the lines of a CSV file, beginning with the names of its columns; quoted cells may contain commas.
pub fn records(path: &Path) -> Vec<Vec<String>> {
    let cells = |line: &str| {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    };
    std::fs::read_to_string(path).unwrap().lines().map(cells).collect()
}

/// The rows of a CSV file by the names of its columns.
pub fn table(path: &Path) -> Vec<HashMap<String, String>> {
    let mut records = records(path).into_iter();
    let names = records.next().unwrap();
    records.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}
