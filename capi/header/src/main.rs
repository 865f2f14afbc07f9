//! Makes the header for C, C++ and Fortran from the Rust sources: names, types, order and documentation.
//!
//! `cargo run --manifest-path capi/header/Cargo.toml` compares the committed header, `-- --write` writes it anew.

use std::path::Path;
use std::process::ExitCode;

/// Sources with entries, in the order of the header.
const SOURCES: &[&str] = &["status", "options", "callback", "held", "solver", "observe", "spaces", "batch", "report"];

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml"))?;
    let sources = SOURCES.iter().map(|name| folder.join("src").join(name).with_extension("rs"));
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), |b, source| b.with_src(source));
    let mut made = Vec::new();
    builder.generate()?.write(&mut made);
    // Rust's heading for this means nothing to C programmers.
    let made = String::from_utf8(made)?.replace("# Safety\n", "Asked of the caller:\n");
    let place = folder.join("include/residua.h");
    if std::env::args().any(|argument| argument == "--write") {
        std::fs::write(&place, &made)?;
        return Ok(ExitCode::SUCCESS);
    }
    let committed = std::fs::read_to_string(&place)?;
    if committed == made {
        return Ok(ExitCode::SUCCESS);
    }
    let (old, new): (Vec<_>, Vec<_>) = (committed.lines().collect(), made.lines().collect());
    let line = old.iter().zip(&new).position(|(old, new)| old != new).unwrap_or(old.len().min(new.len()));
    let told = |lines: &[&str]| lines.get(line).map_or("nothing".into(), |text| format!("`{text}`"));
    eprintln!("include/residua.h, line {}: {}, where the sources say {}", line + 1, told(&old), told(&new));
    Ok(ExitCode::FAILURE)
}
