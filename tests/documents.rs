//! Checks that the documents are true: links lead to files and headings that exist, commands print the output that is
//! shown, every field of a JSON report and every environment variable is in a table, programs are the ones that other
//! tests run.

#[cfg(feature = "cli")]
#[path = "documents/commands.rs"]
mod commands;
#[cfg(feature = "cli")]
#[path = "documents/fields.rs"]
mod fields;
#[path = "documents/questions.rs"]
mod questions;
#[path = "documents/variables.rs"]
mod variables;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The project's documents, including those in folders of `docs`.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    let others = ["README.md", "CHANGELOG.md", "kernels/README.md", "python/README.md", "capi/README.md"];
    found.extend(others.map(|name| root.join(name)));
    found
}

/// The anchors of all headings: lower case, without punctuation, spaces as hyphens.
fn headings(text: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let kept = line.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    text.lines().filter(|line| line.starts_with('#')).map(name).collect()
}

/// The targets of `[words](target)`, except those on other machines.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    targets.filter(|target| !target.contains("://") && !target.contains(' '))
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let mut followed = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { document.clone() } else { document.parent().unwrap().join(file) };
            assert!(target.exists(), "{}: ({link}) leads to no file", document.display());
            let known =
                heading.is_empty() || headings(&fs::read_to_string(&target).unwrap()).contains(heading);
            assert!(known, "{}: ({link}) leads to no heading", document.display());
            followed += 1;
        }
    }
    assert!(followed > 50, "only {followed} links were found");
}

/// The program of docs/c.md is the one that scripts/test-c.sh compiles and runs.
#[test]
fn the_program_in_c_is_the_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/c.md")).unwrap();
    let example = fs::read_to_string(root.join("capi/examples/first.c")).unwrap();
    let shown = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(shown, example);
    assert!(example.lines().count() <= 30);
}
