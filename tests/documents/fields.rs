//! docs/command.md lists every field of the command's JSON, and no other.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Paths of all fields in a JSON text: `seconds.read`, `trail.stages[].method`. Lists of numbers and texts are one field.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                paths(field, &path, found);
            }
        }
        Value::Array(list) if list.iter().any(|each| each.is_object()) => {
            list.iter().for_each(|each| paths(each, &format!("{path}[]"), found));
        }
        _ => {
            found.insert(path.into());
        }
    }
}

/// Names in the first column of the tables below a heading.
fn documented(page: &str, heading: &str) -> BTreeSet<String> {
    let below = page.split(&format!("\n## {heading}\n")).nth(1).expect("the page has the heading");
    let section = below.split("\n## ").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .map(String::from)
        .collect()
}

/// Runs commands in a folder and collects the fields of the JSON that each writes to `out.json`.
fn written(folder: &Path, lines: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in lines {
        let run = Command::new(env!("CARGO_BIN_EXE_residua"))
            .args(line.split_whitespace())
            .args(["--json", "out.json"])
            .current_dir(folder)
            .env("RESIDUA_CACHE", "off")
            .output()
            .unwrap();
        let text = fs::read_to_string(folder.join("out.json"));
        let text =
            text.unwrap_or_else(|error| panic!("{line}: {error}, {}", String::from_utf8_lossy(&run.stderr)));
        paths(&serde_json::from_str(&text).unwrap(), "", &mut found);
        fs::remove_file(folder.join("out.json")).unwrap();
    }
    // A field that is null in one report may have fields in another.
    let all = found.clone();
    found.retain(|path| !all.iter().any(|other| other.starts_with(&format!("{path}."))));
    found
}

/// Small systems whose reports together have every field: (name, header, entries).
const FILES: [(&str, &str, &str); 5] = [
    ("structural.mtx", "coordinate real general\n3 3 4", "1 1 1\n2 1 2\n3 2 1\n3 3 1\n"),
    ("singular.mtx", "coordinate real general\n3 3 6", "1 1 1\n1 2 2\n2 1 2\n2 2 4\n3 1 1\n3 3 1\n"),
    ("pattern.mtx", "coordinate pattern symmetric\n3 3 5", "1 1\n2 2\n3 3\n2 1\n3 2\n"),
    ("tall.mtx", "coordinate real general\n3 2 4", "1 1 1\n2 1 2\n3 2 1\n1 2 1\n"),
    ("two.mtx", "array real general\n3 2", "1\n2\n3\n1\n1\n1\n"),
];

#[test]
fn every_field_of_a_report_is_in_the_page() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/command.md")).unwrap();
    let folder = std::env::temp_dir().join(format!("residua-fields-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    for (name, header, entries) in FILES {
        fs::write(folder.join(name), format!("%%MatrixMarket matrix {header}\n{entries}")).unwrap();
    }
    for (from, to) in [("poisson2d-64x64", "a"), ("elasticity2d-24x12", "e"), ("convection2d-24x24", "c")] {
        fs::copy(root.join(format!("matrices/{from}.mtx")), folder.join(format!("{to}.mtx"))).unwrap();
    }
    let solves: &[&str] = &[
        "solve a.mtx -q --device cpu",
        "solve structural.mtx -q --rhs ones",
        "solve singular.mtx -q --rhs ones",
        "solve pattern.mtx -q --rhs two.mtx",
        "solve e.mtx -q --method cg --preconditioner amg",
        "solve a.mtx -q --method direct --memory-limit 1kB",
        #[cfg(all(unix, feature = "ranks"))]
        "solve a.mtx -q --ranks 2 --device cpu",
    ];
    let infos = ["info a.mtx", "info c.mtx", "info tall.mtx"];
    let orders = ["reorder a.mtx -o o.mtx", "reorder a.mtx -o o.mtx --method minimum-degree"];
    let benches = ["bench e.mtx --time 0.001 --device cpu --types f64"];
    let ranks = cfg!(all(unix, feature = "ranks"));
    for (command, lines, at_least) in
        [("solve", solves, 60), ("info", &infos, 80), ("reorder", &orders, 8), ("bench", &benches, 14)]
    {
        let (mut told, real) =
            (documented(&page, &format!("JSON of residua {command}")), written(&folder, lines));
        told.retain(|name| ranks || !name.starts_with("ranks[]"));
        let missing: Vec<_> = real.difference(&told).collect();
        assert!(missing.is_empty(), "docs/command.md lacks fields of residua {command}: {missing:?}");
        let gone: Vec<_> = told.difference(&real).collect();
        assert!(
            gone.is_empty(),
            "docs/command.md has fields that residua {command} does not write: {gone:?}"
        );
        assert!(real.len() >= at_least, "{command}: {real:?}");
    }
    fs::remove_dir_all(&folder).unwrap();
}
