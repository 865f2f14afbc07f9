//! Several matrices in one process: `residua solve A.mtx B.mtx`. They share a device, its kernels and its memory.

use super::rhs::Rhs;
use super::{Arguments, one};
use crate::cli::{Ending, Failure, console, interrupt};
use crate::market::{self, Format};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Stands for a matrix's name in the names of other files.
const NAME: &str = "{}";

/// The maximum number of bytes in a line with one number.
const LINE: u64 = 64;

/// Solves one system after another. If one cannot be read or solved, that is reported, and the next one is solved.
pub(super) fn run(arguments: &Arguments) -> Result<Ending, Failure> {
    let matrices: Vec<&Path> =
        std::iter::once(&arguments.matrix).chain(&arguments.more).map(PathBuf::as_path).collect();
    check(arguments, &matrices)?;
    let (mut ending, mut failed) = (Ending::Done, 0);
    let talks = !arguments.quiet && results(arguments).all(|path| path.as_os_str() != "-");
    for (number, matrix) in matrices.iter().enumerate() {
        if talks && number > 0 {
            console::say("\n")?;
        }
        match one(&named(arguments, matrix)) {
            Ok(Ending::Done) => {}
            Ok(Ending::NotSolved) => ending = Ending::NotSolved,
            Err(end @ (Failure::Usage(_) | Failure::Interrupted | Failure::Unread)) => return Err(end),
            Err(failure) => {
                failure.report();
                failed += 1;
            }
        }
        interrupt::end_writing();
        // What was solved so far is written; an interrupt is meant for all of them.
        if interrupt::requested() {
            return Ok(Ending::NotSolved);
        }
    }
    if failed > 0 {
        return Err(Failure::Input(format!(
            "{failed} of {} systems were not read or not set up",
            matrices.len()
        )));
    }
    Ok(ending)
}

/// Where results go.
fn results(arguments: &Arguments) -> impl Iterator<Item = &PathBuf> {
    let Arguments { output, json, history, plot, report, .. } = arguments;
    [output, json, history, plot, report].into_iter().flatten()
}

/// The arguments for one matrix, with its name in place of `{}`.
pub(super) fn named(arguments: &Arguments, matrix: &Path) -> Arguments {
    let mut own = Arguments { matrix: matrix.to_path_buf(), more: Vec::new(), ..arguments.clone() };
    let name = name(matrix);
    let files = [&mut own.output, &mut own.json, &mut own.history, &mut own.plot, &mut own.report];
    let inputs = [&mut own.coordinates, &mut own.near_null, &mut own.null_space];
    let of_rhs = match &mut own.rhs {
        Some(Rhs::File(path)) => Some(path),
        _ => None,
    };
    for path in files.into_iter().chain(inputs).flatten().chain(of_rhs) {
        // A path that is no text has no place for a name.
        if let Some(text) = path.to_str().filter(|text| text.contains(NAME)) {
            *path = text.replace(NAME, &name).into();
        }
    }
    own
}

/// `bcsstk13` for `matrices/bcsstk13.tar.gz`.
fn name(matrix: &Path) -> String {
    let file = matrix.file_name().unwrap_or_default().to_string_lossy();
    let known = [".gz", ".tar", ".mtx", ".npz", ".npy", ".rb", ".rua", ".rsa", ".petsc"];
    let mut rest = file.as_ref();
    while let Some(shorter) = known.iter().find_map(|ending| rest.strip_suffix(ending)) {
        rest = shorter;
    }
    rest.to_string()
}

/// Whether a file has a single column: as a Matrix Market array, or as numbers one below the other.
fn is_vector(path: &Path) -> bool {
    if let Ok(header) = market::read_header(path) {
        return header.format() == Format::Array && header.columns() == 1;
    }
    let mut line = String::new();
    let read = File::open(path).and_then(|file| BufReader::new(file.take(LINE)).read_line(&mut line));
    read.is_ok() && line.trim().parse::<f64>().is_ok()
}

/// Refuses arguments that do not work with several matrices, and results that would overwrite each other.
fn check(arguments: &Arguments, matrices: &[&Path]) -> Result<(), Failure> {
    #[cfg(all(unix, feature = "ranks"))]
    if super::ranks::is_one() || arguments.ranks.is_some_and(|ranks| ranks > 1) {
        return Err(Failure::Usage(
            "several matrices need one process; several processes can solve only one matrix".into(),
        ));
    }
    if matrices.contains(&Path::new("-")) {
        return Err(Failure::Usage("standard input ('-') cannot be one of several matrices".into()));
    }
    // Other programs take the right-hand side as the second file.
    if let Some(path) = matrices[1..].iter().find(|path| is_vector(path)) {
        let path = path.display();
        return Err(Failure::Usage(format!(
            "{path} is a vector, not a matrix: give a right-hand side by --rhs {path}"
        )));
    }
    let results = results(arguments).filter(|path| path.as_os_str() != "-");
    let mut names: Vec<String> = matrices.iter().map(|matrix| name(matrix)).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair[0] == pair[1]);
    for path in results {
        let shown = path.display();
        if !path.to_string_lossy().contains(NAME) {
            let how = "write {} in it for the name of each";
            return Err(Failure::Usage(format!(
                "{shown} would be overwritten by each of several matrices: {how}"
            )));
        }
        if let Some(pair) = twice {
            return Err(Failure::Usage(format!(
                "{shown} would be overwritten: two of the matrices have the name {}",
                pair[0]
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::name;
    use std::path::Path;

    #[test]
    fn names_have_no_ending_of_a_format() {
        for (path, expected) in [
            ("a/bcsstk13.tar.gz", "bcsstk13"),
            ("step.10.mtx", "step.10"),
            ("A.npz", "A"),
            ("A.mtx.gz", "A"),
            ("A", "A"),
        ] {
            assert_eq!(name(Path::new(path)), expected);
        }
    }
}
