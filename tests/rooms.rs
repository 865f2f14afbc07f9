//! The order of the folders of `src` ("rooms"): each uses only folders that come before it in the list below.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// All rooms, beginning with those that use no other.
const ROOMS: &[&str] = &[
    "error",
    "lock",
    "mixing",
    "random",
    "units",
    "output",
    "prices",
    "cache",
    "work",
    "scalar",
    "parallel",
    "backend",
    "operator",
    "matrix",
    "assemble",
    "graph",
    "generate",
    "market",
    "files",
    "report",
    "spread",
    "prepare",
    "look",
    "direct",
    "precondition",
    "multigrid",
    "krylov",
    "verdict",
    "ranks",
    "solver",
    "batch",
    "cli",
];

/// Rooms that use a later one, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    // The prolongation of classical coarsening is a matrix in CSR, which the trait of its kernels returns as such.
    ("backend", "matrix"),
    // faer's factorisations support the four types that a matrix may have, and `Scalar` is closed by that list of
    // types.
    ("scalar", "direct"),
];

/// The text of a file without comments, and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or("");
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Returns the folder of an item that the root of the crate exports; other names are folders themselves.
fn home(name: &str) -> &str {
    match name {
        "Backend" | "Host" | "Cuda" => "backend",
        "Csr" | "Triplets" => "matrix",
        "LinearOperator" => "operator",
        "Error" | "Result" | "CudaError" => "error",
        "Element" | "Real" | "Scalar" => "scalar",
        "Solver" | "solve" => "solver",
        room => room,
    }
}

/// The names that follow `crate::`, alone or as a list in braces.
fn named(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let list = part.strip_prefix('{').unwrap_or(part);
        let mut depth = 0;
        for item in list.split_inclusive([',', '{', '}', ';']) {
            if depth == 0 {
                let name: String =
                    item.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                names.extend(Some(home(&name).to_string()).filter(|name| !name.is_empty()));
            }
            match item.chars().last() {
                Some('{') => depth += 1,
                Some('}') if depth > 0 => depth -= 1,
                Some(',') if part.starts_with('{') => {}
                Some(',') if depth > 0 => {}
                _ => break,
            }
        }
    }
    names
}

fn read(folder: &Path, room: Option<&str>, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_stem().unwrap().to_str().unwrap().to_string();
        if name == "tests" || (room.is_none() && (name == "lib" || name == "main")) {
            continue;
        }
        let room = room.unwrap_or(&name);
        if entry.is_dir() {
            read(&entry, Some(room), found);
        } else {
            let names = named(&code(&fs::read_to_string(&entry).unwrap()));
            found.entry(room.to_string()).or_default().extend(names);
        }
    }
}

#[test]
fn each_room_names_earlier_ones_alone() {
    let mut found = BTreeMap::new();
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &mut found);
    let place = |room: &str| ROOMS.iter().position(|known| *known == room);
    let unknown: Vec<_> = found.keys().filter(|room| place(room).is_none()).collect();
    assert!(unknown.is_empty(), "rooms without a place in the order: {unknown:?}");
    let mut wrong = Vec::new();
    for (room, names) in &found {
        for name in names.iter().filter(|name| place(name) > place(room)) {
            wrong.push((room.as_str(), name.as_str()));
        }
    }
    assert_eq!(wrong, EXCEPTIONS, "(a room, a later one that it names)");
}

#[test]
fn names_are_found_in_lists() {
    let text =
        "use crate::{backend::{Host, Op}, error::Result};\nfn f() { crate::matrix::x(crate::graph::y, 1) }";
    let expected = ["backend", "error", "graph", "matrix"].map(String::from);
    assert_eq!(named(&code(text)), expected.into_iter().collect());
    assert!(named(&code("// crate::solver\n\n#[cfg(test)]\nmod tests { use crate::cli; }")).is_empty());
}
