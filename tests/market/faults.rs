//! Broken input: an error that names file, line and cause; never a panic, never a wrong matrix.

use crate::scratch::{Folder, gzip};
use num_complex::Complex;
use residua::Error;
use residua::market::{self, ReadOptions};

/// Line and cause of the refusal of `text`.
fn refused(text: impl AsRef<[u8]>) -> (u64, String) {
    let folder = Folder::new();
    let path = folder.file("broken.mtx", text);
    match market::read_triplets::<Complex<f64>>(&path, &ReadOptions::default()) {
        Err(Error::Parse { path: named, line, cause }) => {
            assert_eq!(named, path);
            (line, cause)
        }
        other => panic!("expected a parse error, got {other:?}"),
    }
}

const HEAD: &str = "%%MatrixMarket matrix coordinate real general\n% remark\n3 4 2\n";

#[test]
fn each_fault_names_its_line() {
    for (entries, line, part) in [
        ("1 1 1\n0 1 1\n", 5, "indices start at 1"),
        ("1 0 1\n1 1 1\n", 4, "column index 0"),
        ("1 1 1\n4 1 1\n", 5, "row index 4 is outside of a matrix with 3 rows"),
        ("1 1 1\n1 5 1\n", 5, "column index 5 is outside of a matrix with 4 columns"),
        ("1 1 1\n4294967297 1 1\n", 5, "row index 4294967297 is outside"),
        ("1 1 1\n99999999999999999999999 1 1\n", 5, "is outside"),
        ("1 1 1\n-1 1 1\n", 5, "`-1` is not a whole number"),
        ("1 1 1\n1.0 1 1\n", 5, "`1.0` is not a whole number"),
        ("1 1 1\n\n%\none 1 1\n", 7, "`one` is not"),
        ("1 1 one\n1 1 1\n", 4, "`one` is not a number"),
        ("1 1 1,5\n1 1 1\n", 4, "`1,5` is not a number"),
        ("1 1 nan\n1 1 1\n", 4, "`nan` is not finite"),
        ("1 1 1\n1 1 -Infinity\n", 5, "not finite"),
        ("1 1 1\n1 1 1e400\n", 5, "`1e400` is too large"),
        ("1 1\n1 1 1\n", 4, "the line ends before the value"),
        ("1\n1 1 1\n", 4, "the line ends before the column"),
        ("1 1 1 1\n1 1 1\n", 4, "`1` comes after a complete entry"),
        ("1 1 1\n", 4, "ends after 1 of 2 entries"),
        ("", 3, "ends after 0 of 2 entries"),
        ("1 1 1\n1 2 1\n\n1 3 1\n", 7, "more than the 2"),
        ("1 1 1\n1 2 \u{0}\n", 5, "`\\x00` is not a number"),
    ] {
        for (text, kind) in [
            (format!("{HEAD}{entries}").into_bytes(), "plain"),
            (gzip(format!("{HEAD}{entries}").as_bytes()), "gzip"),
        ] {
            let (found, cause) = refused(text);
            assert!(cause.contains(part), "{kind} {entries:?}: {cause}");
            assert_eq!(found, line, "{kind} {entries:?}: {cause}");
        }
    }
}

#[test]
fn headers_that_are_none() {
    for (text, line, part) in [
        ("", 1, "empty"),
        ("1 2 3\n", 1, "not a Matrix Market file"),
        ("%%MatrixMarketmatrix coordinate real general\n", 1, "not a Matrix Market file"),
        ("%%MatrixMarket matrix coordinate real\n3 3 0\n", 1, "ends before the symmetry"),
        ("%%MatrixMarket matrix coordinate quaternion general\n", 1, "unknown field `quaternion`"),
        ("%%MatrixMarket matrix array pattern general\n1 1\n", 1, "needs values"),
        ("%%MatrixMarket matrix coordinate pattern hermitian\n", 1, "cannot be hermitian"),
        ("%%MatrixMarket matrix coordinate real general\n% end\n", 2, "before the line of sizes"),
        ("%%MatrixMarket matrix coordinate real general\n3 3\n", 2, "needs 3 numbers"),
        ("%%MatrixMarket matrix coordinate real general\n3 -3 1\n", 2, "number of columns `-3`"),
        ("%%MatrixMarket matrix coordinate real general\n4294967297 3 0\n", 2, "too many rows"),
        ("%%MatrixMarket matrix coordinate real general\n99999999999999999999 3 0\n", 2, "too many rows"),
        ("%%MatrixMarket matrix coordinate real symmetric\n3 4 0\n", 2, "must be square"),
        ("%%MatrixMarket matrix coordinate real general\n0 3 1\n1 1 1\n", 2, "cannot have 1 entries"),
        ("%%MatrixMarket matrix coordinate real general\r3 3 1\r1 1 1\r", 1, "carriage return"),
    ] {
        let (found, cause) = refused(text);
        assert!(cause.contains(part), "{text:?}: {cause}");
        assert_eq!(found, line, "{text:?}");
    }
    for size in [10, 100_000, 3 << 20] {
        let (line, cause) = refused(vec![0; size]);
        assert!(cause.contains("not a Matrix Market file"), "{size} zeros: {cause}");
        assert_eq!(line, 1);
    }
}

/// Collections deliver archives; the SuiteSparse Collection uses tar.gz.
#[test]
fn archives_are_told_from_what_is_no_matrix() {
    let text = "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1\n";
    let mut tar = vec![0; 512];
    tar[..9].copy_from_slice(b"bcsstk01/");
    tar[257..262].copy_from_slice(b"ustar");
    tar.extend_from_slice(text.as_bytes());
    for (content, kind) in [
        (tar.clone(), "a tar archive"),
        (gzip(&tar), "a tar archive"),
        (b"PK\x03\x04 and so on\n".to_vec(), "a zip archive"),
        (b"BZh91AY&SY\n".to_vec(), "bzip2"),
    ] {
        let (line, cause) = refused(content);
        assert!(line == 1 && cause.contains(kind) && cause.contains("unpack it first"), "{cause}");
    }
}

#[test]
fn what_contradicts_the_symmetry() {
    let head = "%%MatrixMarket matrix coordinate";
    let (line, cause) = refused(format!("{head} real skew-symmetric\n2 2 2\n2 1 1\n2 2 1\n"));
    assert_eq!((line, cause.contains("must be zero")), (4, true), "{cause}");
    let (line, cause) = refused(format!("{head} complex hermitian\n2 2 2\n2 1 1 1\n2 2 1 1\n"));
    assert_eq!((line, cause.contains("must be real")), (4, true), "{cause}");
    let (line, cause) = refused(format!("{head} real symmetric\n3 3 3\n1 1 1\n%\n2 3 1\n\n3 2 2\n"));
    assert_eq!((line, cause.contains("(3, 2) of a symmetric matrix is given in both")), (7, true), "{cause}");
    // Equal values, but one of them twice: perhaps they are to be added up.
    let (line, cause) = refused(format!("{head} real symmetric\n3 3 3\n3 2 1\n2 3 1\n3 2 1\n"));
    assert_eq!((line, cause.contains("(2, 3) of a symmetric")), (4, true), "{cause}");
    let (line, cause) = refused("%%MatrixMarket matrix array complex hermitian\n2 2\n\n1 0\n1 1\n2 2\n");
    assert_eq!((line, cause.contains("must be real")), (6, true), "{cause}");
}

#[test]
fn the_line_is_exact_far_into_a_file() {
    let n = 300_000;
    let good: Vec<String> = (1..=n).map(|k| format!("{k} {k} {}.125", k * 3)).collect();
    for bad in [1, 7919, 123_456, n] {
        let mut lines = good.clone();
        lines[bad - 1] = format!("{bad} {bad} 1.2.3");
        let text =
            format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {n}\n{}\n", lines.join("\n"));
        assert_eq!(refused(&text).0, bad as u64 + 2);
        assert_eq!(refused(gzip(text.as_bytes())).0, bad as u64 + 2);
    }
}

/// None of these may allocate memory that the file does not justify; the test would fail.
#[test]
fn headers_that_lie_about_size() {
    let head = "%%MatrixMarket matrix";
    let (line, cause) = refused(format!("{head} coordinate real general\n3 3 1000000000000000\n1 1 1\n"));
    assert_eq!((line, cause.as_str()), (3, "the file ends after 1 of 1000000000000000 entries"));
    let zipped = gzip(format!("{head} coordinate real general\n3 3 1000000000000000\n1 1 1\n").as_bytes());
    assert!(refused(zipped).1.contains("ends after 1 of"));
    let (line, cause) = refused(format!("{head} coordinate real general\n1000000000 1000000000 1\n1 1 1\n"));
    assert_eq!(line, 2);
    assert!(cause.contains("out of proportion"), "{cause}");
    let (_, cause) = refused(format!("{head} array real general\n4294967296 4294967296\n1\n"));
    assert!(cause.contains("ends after 1 of 18446744073709551615"), "{cause}");
    let folder = Folder::new();
    let path = folder.file("b.mtx", format!("{head} coordinate real general\n1000000000 1 1\n1 1 1\n"));
    let error = market::read_dense::<f64>(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("out of proportion"), "{error}");
    let options = ReadOptions::default().empty_lines(1 << 30);
    let huge = market::read_triplets::<f64>(&path, &options).unwrap();
    assert_eq!(huge.triplets().rows(), 1_000_000_000);
}

#[test]
fn gzip_cut_in_half_or_damaged() {
    let text: String = (1..20_000).map(|k| format!("{k} {k} {}\n", k * k)).collect();
    let text = format!("%%MatrixMarket matrix coordinate integer general\n20000 20000 19999\n{text}");
    let whole = gzip(text.as_bytes());
    let (line, cause) = refused(&whole[..whole.len() / 2]);
    assert!(cause.contains("cut off") && line > 1000, "{line}: {cause}");
    let (line, cause) = refused(&whole[..10]);
    assert!(cause.contains("cut off") && line == 1, "{line}: {cause}");
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle..middle + 64].fill(0x55);
    refused(damaged);
}

#[test]
fn what_the_system_refuses() {
    let folder = Folder::new();
    for (path, part) in
        [(folder.path("missing.mtx"), "No such file"), (folder.as_path().to_owned(), "directory")]
    {
        let error = market::read_triplets::<f64>(&path, &ReadOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Io { .. }) && error.to_string().contains(part), "{error}");
        assert!(error.to_string().starts_with(path.to_str().unwrap()), "{error}");
    }
}

#[test]
fn complex_values_are_not_made_real() {
    let folder = Folder::new();
    let path = folder.file("z.mtx", "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n");
    let error = market::read_triplets::<f64>(&path, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
    assert!(error.to_string().contains("z.mtx: the header says `complex`"), "{error}");
    let error = market::read_dense::<f32>(&path, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
}

#[test]
fn a_line_without_end() {
    let (line, cause) = refused(format!("{HEAD}1 1 1\n1 2 {}", "1".repeat(6 << 20)));
    assert_eq!(line, 5);
    assert!(cause.contains("longer than"), "{cause}");
    // Long, but within the limit: a number like any other.
    let long = format!("{HEAD}1 1 1\n1 2 0.{}\n", "3".repeat(500_000));
    let folder = Folder::new();
    let file = market::read_triplets::<f64>(folder.file("a.mtx", long), &ReadOptions::default()).unwrap();
    assert_eq!(file.triplets().parts().2, [1.0, 1.0 / 3.0]);
}
