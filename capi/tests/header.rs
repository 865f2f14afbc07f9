//! The header that C, C++ and Fortran see is what the Rust sources declare: names, types, order and words.
//!
//! `RESIDUA_WRITE_HEADER=1 cargo test` writes it anew.

use std::path::Path;

/// Sources with entries, in the header's order.
const SOURCES: &[&str] = &["status", "options", "function", "solver", "report"];

#[test]
fn the_header_is_what_the_sources_declare() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let sources = SOURCES.iter().map(|name| folder.join("src").join(name).with_extension("rs"));
    let builder = sources.fold(cbindgen::Builder::new().with_config(config), |b, source| b.with_src(source));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    // The words that Rust's documentation has for it are no C programmer's.
    let made = String::from_utf8(made).unwrap().replace("# Safety\n", "Asked of the caller:\n");
    let place = folder.join("include/residua.h");
    if std::env::var_os("RESIDUA_WRITE_HEADER").is_some() {
        std::fs::write(&place, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&place).unwrap();
    let differ = committed.lines().zip(made.lines()).position(|(old, new)| old != new);
    if let Some(line) = differ {
        let (old, new) = (committed.lines().nth(line).unwrap(), made.lines().nth(line).unwrap());
        panic!("include/residua.h, line {}: `{old}` where the sources say `{new}`", line + 1);
    }
    assert_eq!(committed, made, "one is longer than the other");
}
