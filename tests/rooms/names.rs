//! Names that were replaced by terms of the field stay out of the tree.

use std::path::Path;

/// Identifiers that are gone, and the names that replaced them.
const GONE: &[(&str, &str)] = &[
    ("BYTES_TELL", "IS_DEVICE"),
    ("Widen", "Promote"),
    ("Narrow", "Lower, the type of lower precision"),
    ("into_narrow", "into_lower"),
    ("to_narrow", "to_lower"),
    ("Lone", "SingleRank"),
    ("look_and_start", "sample_and_launch_cost"),
    ("mul_add_fast", "mul_add"),
];

/// Files that are gone.
const FILES: &[&str] = &["direct/foreign.rs", "solver/lone.rs", "solver/agreed.rs"];

#[test]
fn names_that_were_replaced_are_gone() {
    let (mut found, mut files) = (Vec::new(), 0);
    let mut folders = ["src", "capi/src", "python/src", "benches", "examples"].map(Into::into).to_vec();
    while let Some(folder) = folders.pop() {
        let folder: std::path::PathBuf = folder;
        let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(&folder)).unwrap();
        for entry in entries.map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|ending| ending == "rs" || ending == "cu" || ending == "cuh")
            {
                files += 1;
                let text = std::fs::read_to_string(entry.path()).unwrap();
                let words: std::collections::HashSet<&str> =
                    text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
                let gone = GONE.iter().filter(|(word, _)| words.contains(word));
                found.extend(gone.map(|(word, now)| format!("{}: {word} is {now} now", path.display())));
                found.extend(
                    FILES.iter().filter(|file| path.ends_with(file)).map(|file| format!("{file} is back")),
                );
            }
        }
    }
    assert!(files > 500, "{files} files: is the source read?");
    assert!(found.is_empty(), "{found:#?}");
}
