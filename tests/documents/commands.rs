//! Commands in documents (blocks of the kind `console`) print the output that is shown after them, except for numbers.
//!
//! Each page has a folder of its own, in which its commands run one after another. `cat FILE` creates the file if it
//! does not exist yet, so that a page can show its input; `echo $?` is the status of the previous command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Units after a number: a time in ms today may be in us tomorrow.
const UNITS: [&str; 8] = ["s", "ms", "us", "B", "kB", "MB", "GB", "GB/s"];

/// A line without the parts that differ from run to run: numbers with their units, the plural of threads, and the steps
/// in the line `time`, which omits short ones.
fn masked(line: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let comma = word.trim_end_matches([',', ')']);
        let numbers = kept.last().is_some_and(|last| *last == "#");
        if word.contains(|c: char| c.is_ascii_digit()) {
            if !numbers {
                kept.push("#");
            }
        } else if !(numbers && UNITS.contains(&comma)) {
            kept.push(if word.starts_with("thread") { "threads" } else { word });
        }
    }
    if kept.first() == Some(&"time") { "time".into() } else { kept.join(" ") }
}

/// Returns whether two lines are the same, except for rounding of numbers.
fn is_same(shown: &str, real: &str) -> bool {
    let close = |(a, b): (&str, &str)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-6 * a.abs().max(1.0),
        _ => a == b,
    };
    let (shown, real): (Vec<_>, Vec<_>) = (shown.split(' ').collect(), real.split(' ').collect());
    shown.len() == real.len() && shown.into_iter().zip(real).all(close)
}

/// Returns the commands (after `$ `) in the blocks of a page, each with the lines that follow it.
fn commands(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for block in text.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.into(), Vec::new())),
                (None, Some((_, shown))) => shown.push(line.into()),
                (None, None) => panic!("output without a command: {line}"),
            }
        }
    }
    found
}

/// Runs the commands of a page; returns their number.
fn check(page: &Path, folder: &Path) -> usize {
    let text = fs::read_to_string(page).unwrap();
    let (mut status, all) = (0, commands(&text));
    for (line, shown) in &all {
        let at = format!("{}: {line}", page.display());
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["cat", name] if !folder.join(name).exists() => {
                fs::write(folder.join(name), shown.join("\n") + "\n").unwrap();
            }
            ["cat", name] => {
                let real = fs::read_to_string(folder.join(name)).unwrap();
                let same = shown.iter().zip(real.lines()).all(|(shown, real)| is_same(shown, real));
                assert!(same && shown.len() == real.lines().count(), "{at}\n{real}");
            }
            // Skipped in a build without ranks.
            ["residua", ..] if words.contains(&"--ranks") && !cfg!(all(unix, feature = "ranks")) => {}
            ["echo", "$?"] => assert_eq!(shown.concat(), status.to_string(), "{at}"),
            ["residua", ..] => {
                let run = Command::new(env!("CARGO_BIN_EXE_residua"))
                    .args(&words[1..])
                    .current_dir(folder)
                    .env("RESIDUA_CACHE", "off")
                    .env("RAYON_NUM_THREADS", "2")
                    .output()
                    .unwrap();
                status = run.status.code().unwrap();
                let real = String::from_utf8([run.stdout, run.stderr].concat()).unwrap();
                let real: Vec<String> = real.trim_end().lines().map(masked).collect();
                let shown: Vec<String> = shown.join("\n").trim_end().lines().map(masked).collect();
                assert_eq!(shown.join("\n"), real.join("\n"), "{at}");
            }
            _ => panic!("{at}: neither residua nor cat nor echo"),
        }
    }
    all.len()
}

#[test]
fn commands_print_what_is_shown() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = entries.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut count = 0;
    for page in pages.chain([root.join("README.md")]) {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        let folder: PathBuf = std::env::temp_dir().join(format!("residua-{name}-{}", std::process::id()));
        fs::create_dir_all(folder.join("matrices")).unwrap();
        for entry in fs::read_dir(root.join("matrices")).unwrap() {
            let from = entry.unwrap().path();
            fs::copy(&from, folder.join("matrices").join(from.file_name().unwrap())).unwrap();
        }
        count += check(&page, &folder);
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(count >= 12, "only {count} commands were found");
}

#[test]
fn numbers_and_units_are_masked() {
    assert_eq!(
        masked("memory    3.47 MB read and written per iteration"),
        "memory # read and written per iteration"
    );
    assert_eq!(masked("device  2 x cpu (1 thread), 2 processes"), "device # x cpu # threads # processes");
    assert_eq!(masked("the factorisation is forecast to take 5.09 ms, and these iterations 11.0 us more"), {
        "the factorisation is forecast to take # and these iterations # more"
    });
    assert_eq!(masked("time  read 1 ms, solve 2 ms"), "time");
    assert!(is_same("3.5000001 x", "3.5 x") && !is_same("3.6 x", "3.5 x") && !is_same("3.5", "3.5 x"));
}
