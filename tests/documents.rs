//! Links between the documents lead somewhere: to a file that is there, and a heading that it has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The project's documents, those in folders of `docs` too.
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
    found.extend(["README.md", "CHANGELOG.md", "kernels/README.md"].map(|name| root.join(name)));
    found
}

/// What a link to each heading ends in: lower case, without punctuation, spaces as hyphens.
fn headings(text: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let kept = line.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    text.lines().filter(|line| line.starts_with('#')).map(name).collect()
}

/// The targets of `[words](target)`, but for those on other machines.
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
