//! The order of the folders of `src` ("rooms"): each uses only folders that come before it in the list below. And no
//! files import from each other in a circle.

mod names;
mod paths;

use paths::{Arrows, Crate, circles};
use std::collections::BTreeSet;
use std::path::Path;

/// All rooms, beginning with those that use no other.
const ROOMS: &[&str] = &[
    "error",
    "lock",
    "mixing",
    "random",
    "settings",
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
    // faer's factorisations support the four types that a matrix may have, and `Scalar` is closed by that list of
    // types.
    ("scalar", "direct"),
];

fn arrows(folder: &str) -> Arrows {
    Crate::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).arrows()
}

/// The room of a file, as `src/room.rs` or below `src/room`.
fn room(file: &str) -> &str {
    let name = file.split('/').nth(1).unwrap_or_default();
    name.strip_suffix(".rs").unwrap_or(name)
}

#[test]
fn each_room_names_earlier_ones_alone() {
    let arrows = arrows(".");
    let place = |room: &str| ROOMS.iter().position(|known| *known == room);
    let found = arrows.keys().map(|(from, to)| (room(from), room(to))).filter(|(from, _)| *from != "lib");
    let found: BTreeSet<_> = found.filter(|(from, to)| from != to).collect();
    assert!(found.len() > 100, "{} arrows between rooms: is the source read?", found.len());
    let rooms: BTreeSet<_> = found.iter().flat_map(|(from, to)| [from, to]).collect();
    let unknown: Vec<_> = rooms.into_iter().filter(|room| place(room).is_none()).collect();
    assert!(unknown.is_empty(), "rooms without a place in the order: {unknown:?}");
    let wrong: Vec<_> = found.into_iter().filter(|(from, to)| place(to) > place(from)).collect();
    assert_eq!(wrong, EXCEPTIONS, "(a room, a later one that it names)");
}

#[test]
fn no_files_import_from_each_other_in_a_circle() {
    for folder in [".", "capi", "python"] {
        let mut arrows = arrows(folder);
        let is_exception = |from: &str, to: &str| EXCEPTIONS.contains(&(room(from), room(to)));
        arrows.retain(|(from, to), _| folder != "." || !is_exception(from, to));
        let mut told = String::new();
        for circle in circles(&arrows) {
            told += "a circle:\n";
            for (from, to, paths) in circle {
                told += &format!("  {from} -> {to}: {paths}\n");
            }
        }
        assert!(told.is_empty(), "in {folder}\n{told}");
    }
}

/// The arrows of a crate of these modules, each with its file and its text.
fn of(modules: &[(&str, &str, &str)]) -> Vec<(String, String)> {
    let mut all = Crate::default();
    for (path, file, text) in modules {
        let path = path.split("::").filter(|part| !part.is_empty()).map(String::from).collect();
        all.add(file, path, &paths::tokens(text));
    }
    all.arrows().into_keys().collect()
}

fn arrow(from: &str, to: &str) -> (String, String) {
    (from.into(), to.into())
}

#[test]
fn paths_end_where_a_name_is_defined() {
    let found = of(&[
        ("", "lib", "mod a; mod b; pub use a::Deep;"),
        ("a", "a", "mod c; pub use c::{Deep, other as Other}; // use crate::b::B;"),
        (
            "a::c",
            "c",
            "pub struct Deep; fn other() { let _ = \"crate::b::B\"; } #[cfg(test)] mod tests { use crate::b::B; }",
        ),
        ("b", "b", "use crate::{Deep, a::{self}}; pub struct B; fn f<'a>(x: &'a str) { a::Other(':') }"),
        ("d", "d", "use super::b::*; mod inner { use super::super::a::Deep; } fn f(_: B) {}"),
    ]);
    let expected = [arrow("a", "c"), arrow("b", "c"), arrow("d", "b"), arrow("d", "c"), arrow("lib", "c")];
    assert_eq!(found, expected);
}

#[test]
fn a_circle_is_found_and_what_is_exported_again_makes_none() {
    let circle = |first: &str| {
        let mut all = Crate::default();
        all.add("lib", Vec::new(), &paths::tokens("mod a; mod b; mod c;"));
        all.add("a", vec!["a".into()], &paths::tokens(first));
        all.add("b", vec!["b".into()], &paths::tokens("use super::c::C; pub struct B;"));
        all.add("c", vec!["c".into()], &paths::tokens("use crate::a::A; pub struct C;"));
        circles(&all.arrows()).iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(circle("use crate::b::B; pub struct A;"), [3]);
    assert_eq!(circle("pub use crate::b::B; pub struct A;"), []);
    assert_eq!(circle("pub struct A;"), []);
}
