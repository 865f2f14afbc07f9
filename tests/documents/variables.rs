//! docs/environment.md lists every environment variable that begins with `RESIDUA_`, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders with sources, and the folders in them that are generated.
const FOLDERS: [&str; 9] =
    ["src", "capi", "python", "kernels", "benches", "tests", "scripts", "site", "examples"];
const MADE: [&str; 4] = [".venv", "target", "__pycache__", "build"];

/// Names that begin with `RESIDUA_` in a text.
fn names(text: &str) -> BTreeSet<String> {
    let starts = text.match_indices("RESIDUA_").map(|(at, _)| at);
    let name =
        |at: usize| text[at..].chars().take_while(|c| c.is_ascii_uppercase() || "_0123456789".contains(*c));
    starts.map(|at| name(at).collect()).collect()
}

fn gather(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !MADE.contains(&name.as_str()) {
            gather(&path, found);
        } else if let (true, Ok(text)) = (path.is_file(), fs::read_to_string(&path)) {
            found.extend(names(&text));
        }
    }
}

#[test]
fn the_page_has_every_variable() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    FOLDERS.iter().for_each(|folder| gather(&root.join(folder), &mut found));
    found.extend(names(&fs::read_to_string(root.join(".ci/run")).unwrap()));
    // Constants of the C interface, guards of its headers, and the beginning of a name.
    let header = fs::read_to_string(root.join("capi/include/residua.h")).unwrap();
    let constants: BTreeSet<String> =
        header.lines().filter(|line| line.starts_with("#define ")).flat_map(names).collect();
    let page = names(&fs::read_to_string(root.join("docs/environment.md")).unwrap());
    found.retain(|name| !constants.contains(name) && !["RESIDUA_", "RESIDUA_HPP"].contains(&name.as_str()));
    let missing: Vec<_> = found.difference(&page).collect();
    assert!(missing.is_empty(), "docs/environment.md lacks {missing:?}");
    let gone: Vec<_> = page.difference(&found).filter(|name| *name != "RESIDUA_").collect();
    assert!(gone.is_empty(), "docs/environment.md has {gone:?}, which nothing reads");
    assert!(found.len() > 30);
}
