//! The analysis of the collection's matrices, compared with its tables.

#[path = "common/collection.rs"]
mod collection;

use collection::{folder, table};
use num_complex::Complex;
use residua::look::{Definiteness, Look};
use residua::market::read_csr;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// `None` if the file cannot be read.
fn look(path: &Path) -> Option<(Look, Duration)> {
    macro_rules! of {
        ($t:ty) => {
            read_csr::<$t>(path).ok().map(|a| {
                let start = Instant::now();
                let look = Look::of(&a).unwrap();
                (look, start.elapsed())
            })
        };
    }
    of!(f64).or_else(|| of!(Complex<f64>))
}

#[test]
fn the_index_says_the_same() {
    let Some(folder) = folder() else { return };
    let mut slowest = (Duration::ZERO, String::new());
    for row in table(&folder.join("index.csv")) {
        let name = &row["file"];
        let Some((look, time)) = look(&folder.join(name)) else { continue };
        if time > slowest.0 {
            slowest = (time, name.clone());
        }
        let number = |key: &str| row[key].parse::<usize>().ok();
        assert_eq!(Some(look.rows), number("rows"), "{name}");
        let square = look.is_square();
        if let Some(components) = number("components").filter(|_| square) {
            // The index counts stored zeros as edges.
            let zeros = look.facts.explicit_zeros > 0;
            assert!(look.structure.components == components || zeros, "{name}: {components}");
        }
        if let Some(empty) = number("empty_rows") {
            assert!(look.facts.empty_rows == empty || look.facts.explicit_zeros > 0, "{name}");
        }
        match (row["spd"].as_str(), look.definiteness) {
            ("yes", sign) => assert!(
                matches!(
                    sign,
                    Definiteness::Positive | Definiteness::PositiveOrZero | Definiteness::PerhapsPositive
                ),
                "{name}: {sign:?}"
            ),
            ("no", sign) => assert_ne!(sign, Definiteness::Positive, "{name}"),
            _ => {}
        }
        assert!(look.methods().len() == 8 && !look.words().is_empty(), "{name}");
    }
    println!("slowest: {} {:?}", slowest.1, slowest.0);
}

#[test]
fn structural_ranks_are_as_others_found_them() {
    let Some(folder) = folder() else { return };
    let others = folder.join("../peers");
    let Ok(entries) = std::fs::read_dir(&others) else { return println!("skipped: no {}", others.display()) };
    let best = entries.map(|entry| entry.unwrap().path());
    let Some(best) = best.into_iter().find(|path| path.to_string_lossy().contains("square-files-best"))
    else {
        return println!("skipped: no table of structural ranks");
    };
    let index = table(&folder.join("index.csv"));
    let files: HashMap<&str, &str> =
        index.iter().map(|row| (row["name"].as_str(), row["file"].as_str())).collect();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in table(&best) {
        let name = row["name"].as_str();
        let Some((look, _)) = files.get(name).and_then(|file| look(&folder.join(file))) else {
            println!("{name}: no file");
            continue;
        };
        let (class, rank) = (row["class"].as_str(), row["sprank"].parse::<usize>().unwrap());
        if look.facts.explicit_zeros == 0 {
            assert_eq!(look.structure.rank, rank, "{name}");
            assert_eq!(look.is_structurally_singular(), class == "sing-struct", "{name}: {class}");
        } else {
            // That table counts stored zeros as entries.
            assert!(look.structure.rank <= rank, "{name}");
        }
        if look.has_constant_null_vector() {
            assert!(class == "sing-struct" || class == "rank-def", "{name}: {class}");
        }
        *counts.entry(format!("{class}: {:?}", look.definiteness)).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort();
    println!("{counts:#?}");
}
