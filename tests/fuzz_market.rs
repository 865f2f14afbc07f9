//! Mutations of a small corpus, for a bounded time (`RESIDUA_FUZZ_SECONDS`, 4 unless set): the reader neither panics
//! nor disagrees with a reader that goes line by line. The seed is fixed (`RESIDUA_FUZZ_SEED`), so a failure is
//! reproducible; the failing file is kept and named.

use num_complex::Complex;
use residua::market::{self, Field, Format, Header, ReadOptions, Symmetry};
use residua::scalar::Scalar;
use residua::{Error, generate::Random};
use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

type Listed = Vec<(u32, u32, Complex<f64>)>;

/// Returns the entries of a file with this header, or the line of its first fault.
fn line_by_line(text: &[u8], header: &Header) -> Result<Listed, u64> {
    let mut lines: Vec<&[u8]> = text.split(|&b| b == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    let filled = |line: &[u8]| !line.trim_ascii().is_empty();
    let banner = lines.iter().position(|l| filled(l.strip_prefix(b"\xef\xbb\xbf").unwrap_or(l))).unwrap();
    let sizes =
        lines.iter().enumerate().skip(banner + 1).find(|(_, l)| filled(l) && l.trim_ascii()[0] != b'%');
    let mut places = Vec::new();
    if header.format() == Format::Array {
        for column in 0..header.columns() {
            let first = match header.symmetry() {
                Symmetry::General => 0,
                Symmetry::SkewSymmetric => column + 1,
                _ => column,
            };
            for row in first..header.rows() {
                places.push((row as u32, column as u32));
                if places.len() > text.len() {
                    break;
                }
            }
            if places.len() > text.len() {
                break;
            }
        }
    }
    let object = lines[banner].split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).nth(1);
    let vector = object.is_some_and(|w| w.eq_ignore_ascii_case(b"vector"));
    let mut listed = Listed::new();
    let mut at_line = Vec::new();
    for (number, line) in lines.iter().enumerate().skip(sizes.unwrap().0 + 1) {
        let number = number as u64 + 1;
        let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c);
        let mut words = line.split(blank).filter(|w| !w.is_empty()).peekable();
        if words.peek().is_none_or(|w| w[0] == b'%') {
            continue;
        }
        if listed.len() as u64 == header.entries() {
            return Err(number);
        }
        let entry = || -> Option<(u32, u32, Complex<f64>)> {
            let mut index = |limit: usize| {
                let word = std::str::from_utf8(words.next()?).ok()?;
                let index = word.bytes().all(|b| b.is_ascii_digit()).then(|| word.parse::<u128>().ok())??;
                (index >= 1 && index <= limit as u128).then(|| (index - 1) as u32)
            };
            let (row, column) = match header.format() {
                Format::Array => places[listed.len()],
                Format::Coordinate if vector => (index(header.rows())?, 0),
                Format::Coordinate => (index(header.rows())?, index(header.columns())?),
            };
            let value = match header.field() {
                Field::Pattern => {
                    words.next_if(|w| *w == b"1");
                    Complex::new(1.0, 0.0)
                }
                Field::Complex => {
                    Complex::new(decimal(words.next()?, false)?, decimal(words.next()?, false)?)
                }
                field => Complex::new(decimal(words.next()?, field == Field::Integer)?, 0.0),
            };
            words.next().is_none_or(|w| w[0] == b'%').then_some((row, column, value))
        };
        let (row, column, value) = { entry }().ok_or(number)?;
        let contradicts = header.symmetry().mirror(value) != value && header.symmetry() != Symmetry::General;
        if header.format() == Format::Coordinate && row == column && contradicts {
            return Err(number);
        }
        listed.push((row, column, value));
        at_line.push(number);
    }
    if (listed.len() as u64) < header.entries() {
        return Err(lines.len() as u64);
    }
    let mut sides = HashMap::<_, [bool; 2]>::new();
    for (&(row, column, value), &line) in listed.iter().zip(&at_line) {
        if header.symmetry() == Symmetry::General {
            break;
        }
        if row == column {
            if header.symmetry().mirror(value) != value {
                return Err(line);
            }
            continue;
        }
        let side = sides.entry((row.max(column), row.min(column))).or_default();
        side[usize::from(column > row)] = true;
        if *side == [true, true] {
            return Err(line);
        }
    }
    Ok(listed)
}

/// A decimal number without the help of the reader under test.
fn decimal(word: &[u8], integer: bool) -> Option<f64> {
    let word = std::str::from_utf8(word).ok()?.replace(['d', 'D'], "e");
    let allowed = |c: char| c.is_ascii_digit() || "+-".contains(c) || (!integer && ".eE".contains(c));
    word.chars().all(allowed).then(|| word.parse::<f64>().ok()).flatten().filter(|v| v.is_finite())
}

fn listed<T: Scalar>(file: &market::MatrixFile<T>) -> Vec<(u32, u32, T)> {
    let (rows, columns, values) = file.triplets().parts();
    (0..values.len()).map(|k| (rows[k], columns[k], values[k])).collect()
}

/// Reads `path`, which contains `text`, in every way.
fn check(path: &Path, text: &[u8]) {
    let options = ReadOptions::default();
    let read = market::read_triplets::<Complex<f64>>(path, &options);
    let _ = market::read_triplets::<f32>(path, &options);
    let dense = market::read_dense::<Complex<f64>>(path, &options);
    let small = |h: &Header| h.rows().max(h.columns()) < 1 << 16;
    if read.as_ref().is_ok_and(|file| small(file.header())) {
        market::read_csr::<Complex<f64>>(path).unwrap();
    }
    if text.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    let line = |e: &Error| match e {
        Error::Parse { line, .. } => *line,
        other => panic!("{other}"),
    };
    match (market::read_header(path), read) {
        (Err(first), Err(second)) => assert_eq!(first.to_string(), second.to_string()),
        (Err(error), Ok(_)) => panic!("entries without a header: {error}"),
        (Ok(_), Err(error)) if error.to_string().contains("out of proportion") => {}
        (Ok(header), read) => match (line_by_line(text, &header), read) {
            (Err(expected), Err(error)) => assert_eq!(line(&error), expected, "{error}"),
            (Ok(expected), Ok(file)) => {
                let kept = |(_, _, v): &(u32, u32, Complex<f64>)| {
                    header.format() == Format::Coordinate || *v != Complex::default()
                };
                let expected: Listed = expected.into_iter().filter(kept).collect();
                // As text, so that -0 and 0 differ.
                assert_eq!(format!("{:?}", listed(&file)), format!("{expected:?}"));
                assert!(dense.is_ok() || header.rows().saturating_mul(header.columns()) > 1 << 20);
            }
            (expected, read) => panic!("line by line: {expected:?}\nreader: {read:?}"),
        },
    }
}

/// Pieces of text with a meaning.
const WORDS: &[&str] = &[
    "%%MatrixMarket matrix coordinate real general\n",
    "symmetric",
    "hermitian",
    "pattern",
    "complex",
    "array",
    "vector",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "%",
    "% x\n",
    "0",
    "1",
    "-1",
    "+",
    "-",
    ".",
    "e",
    "E+",
    "D-",
    "1e400",
    "1e-400",
    "nan",
    "inf",
    "4294967296",
    "4294967297",
    "99999999999999999999",
    "1000000000000000",
    "1 1 1\n",
    "2 1 1 1\n",
    "0.1",
    "12345678",
    "123456789",
    "9007199254740993",
    "1.7976931348623159e308",
    "0x10",
    "1_0",
    "\0",
    "\u{feff}",
    "é",
    "00000000000000000001",
];

fn mutate(random: &mut Random, corpus: &[Vec<u8>]) -> Vec<u8> {
    let pick = |random: &mut Random, n: usize| random.below(n.max(1) as u64) as usize;
    let mut text = corpus[pick(random, corpus.len())].clone();
    for _ in 0..=pick(random, 5) {
        let (a, b) = (pick(random, text.len() + 1), pick(random, text.len() + 1));
        let (a, b) = (a.min(b), a.max(b));
        match pick(random, 9) {
            0 if a < text.len() => text[a] ^= 1 << pick(random, 8),
            1 if a < text.len() => text[a] = random.below(256) as u8,
            2 => text.truncate(b),
            3 => drop(text.drain(a..b.min(a + 20))),
            4 => {
                let copy = text[a..b].to_vec();
                text.splice(a..a, copy);
            }
            5 => {
                let other = &corpus[pick(random, corpus.len())];
                text.splice(a..b, other[pick(random, other.len())..].iter().copied());
            }
            // Replaces a word by another one.
            6 if a < text.len() => {
                let end = text[a..].iter().position(u8::is_ascii_whitespace).map_or(text.len(), |n| a + n);
                text.splice(a..end, WORDS[pick(random, WORDS.len())].bytes());
            }
            _ => drop(text.splice(a..a, WORDS[pick(random, WORDS.len())].bytes())),
        }
        text.truncate(1 << 16);
    }
    if pick(random, 20) == 0 {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&text).unwrap();
        text = encoder.finish().unwrap();
        let at = pick(random, text.len());
        if pick(random, 2) == 0 {
            text[at] ^= 1 << pick(random, 8);
        }
    }
    text
}

fn environment(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

#[test]
fn mutations_of_the_corpus() {
    let mut corpus = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir("tests/corpus").unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for name in names {
        corpus.push(std::fs::read(name).unwrap());
    }
    assert!(corpus.len() > 10);
    // A folder in memory if the system has one: a disk would take most of the time.
    let folder =
        Some(Path::new("/dev/shm")).filter(|p| p.is_dir()).map_or_else(std::env::temp_dir, Path::to_owned);
    let path = folder.join(format!("residua-fuzz-{}.mtx", std::process::id()));
    let seed = environment("RESIDUA_FUZZ_SEED", 1);
    let mut random = Random::new(seed);
    let end = Instant::now() + Duration::from_secs(environment("RESIDUA_FUZZ_SECONDS", 4));
    let mut cases = 0;
    while Instant::now() < end {
        let text = if cases < corpus.len() { corpus[cases].clone() } else { mutate(&mut random, &corpus) };
        std::fs::write(&path, &text).unwrap();
        let result = std::panic::catch_unwind(|| check(&path, &text));
        if let Err(panic) = result {
            println!("case {cases} of seed {seed} is left in {}: {}", path.display(), text.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        cases += 1;
    }
    std::fs::remove_file(&path).unwrap();
    println!("{cases} cases");
    assert!(cases > 100, "only {cases} cases");
}
