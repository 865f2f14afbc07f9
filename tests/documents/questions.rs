//! A newcomer's questions are answered within two links from README.md, and the pages for users stay short.

use super::links;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The questions, by the page that answers each.
const ANSWERS: [(&str, &str); 10] = [
    ("how do I install it, and what do I need for a GPU?", "start.md#install"),
    ("my solve says precision_limit: is x right?", "outcomes.md#precision-limit"),
    ("which method for Stokes?", "which-method.md#stokes-and-other-saddle-points"),
    ("how do I keep the factorisation?", "python.md#many-right-hand-sides"),
    ("what does each field of the JSON mean?", "command.md#json-of-residua-solve"),
    ("how do I give a near-null space?", "multigrid.md#near-null-space"),
    ("how do I pass a CuPy or torch matrix without a copy?", "python.md#arrays-on-a-gpu"),
    ("how do I run on four GPUs?", "several-gpus.md#four-gpus-of-one-machine"),
    ("how do I read x from C?", "c.md#a-minimal-program"),
    ("why did it not take multigrid?", "multigrid.md#why-was-it-not-taken-and-how-do-i-ask-for-it"),
];

#[test]
fn every_question_is_two_clicks_from_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(links(&readme).any(|link| link == "docs/faq.md"));
    let faq = fs::read_to_string(root.join("docs/faq.md")).unwrap();
    let answers: BTreeSet<&str> = links(&faq).collect();
    for (question, answer) in ANSWERS {
        assert!(answers.contains(answer), "{question} docs/faq.md has no link to {answer}");
    }
}

/// Number of words, as `wc -w` counts them.
fn words(path: &Path) -> usize {
    if path.is_dir() {
        return fs::read_dir(path).unwrap().map(|entry| words(&entry.unwrap().path())).sum();
    }
    let is_page = path.extension().is_some_and(|end| end == "md");
    if is_page { fs::read_to_string(path).unwrap().split_whitespace().count() } else { 0 }
}

#[test]
fn the_documents_stay_short() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let internals = words(&root.join("docs/internals"));
    let users = words(&root.join("docs")) - internals;
    let readme = words(&root.join("README.md"));
    assert!(users <= 25_000, "docs/ has {users} words for users");
    assert!(internals <= 35_000, "docs/internals has {internals} words");
    assert!(readme <= 900, "README.md has {readme} words");
}
