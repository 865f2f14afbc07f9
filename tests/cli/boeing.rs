//! Rutherford-Boeing and Harwell-Boeing files, generated here line by line.

use crate::formats::{gzip, tar};
use crate::support::{Folder, read_matrix};

/// The four lines of a header, for data with the given numbers of lines.
fn head(lines: &str, kind: &str, sizes: &str, formats: &str) -> String {
    format!(
        "{:72}key\n{lines}\n{kind}           {sizes}\n{formats}\n",
        "A title, which may hold anything (26I3)"
    )
}

/// [4 -1 0; 0 4 0; 2.5 0 2] in compressed columns.
fn general(values: &str, format: &str) -> String {
    head("5 1 1 3 0", "RUA", "3 3 5 0", &format!("(4I3)           (8I2)           {format}"))
        + "  1  3  5  6\n 1 3 1 2 3\n"
        + values
}

/// Returns the entries sorted by position: row, column, real and imaginary part.
fn entries(f: &Folder, name: &str) -> Vec<(usize, usize, f64, f64)> {
    f.ok(&format!("convert {name} out.mtx --general"));
    let mut found: Vec<_> =
        read_matrix(&f.path("out.mtx")).entries.iter().map(|&(i, j, (re, im))| (i, j, re, im)).collect();
    found.sort_by_key(|entry| (entry.0, entry.1));
    found
}

#[test]
fn cards_of_every_format_give_the_same_matrix() {
    let f = Folder::new();
    let wanted = [(0, 0, 4.0, 0.0), (0, 1, -1.0, 0.0), (1, 1, 4.0, 0.0), (2, 0, 2.5, 0.0), (2, 2, 2.0, 0.0)];
    for (format, values) in [
        ("(2D10.3)", " 4.000D+00 2.500D+00\n-1.000D+00 4.000D+00\n 2.000D+00\n"),
        ("(1P,5E9.2)", " 4.00E+00 2.50E+00-1.00E+00 4.00E+00 2.00E+00\n"),
        ("(1P5E9.2)", " 4.00E+00 2.50E+00-1.00E+00 4.00e+00 2.00E+00\r\n"),
        ("(5F5.1)", "  4.0  2.5 -1.0  4.0  2.0"),
        ("(1P,5F5.0)", "  40.  25. -10.  40.  20.\n"),
        ("(3(1X,G6.2),2X)", "    4.0    2.5   -1.0  x\n    4.0    2.0\n"),
        ("(10E)", "4 2.5 -1\n4.0+0 2\n"),
    ] {
        for (name, content) in [
            ("a.rua", general(values, format).into_bytes()),
            ("a.gz", gzip(general(values, format).as_bytes())),
            ("a.tar.gz", gzip(&tar(&[("a/a.txt", "words"), ("a/a.rb", &general(values, format))]))),
        ] {
            f.write(name, content);
            assert_eq!(entries(&f, name), wanted, "{format} {name}");
        }
    }
    let run = f.ok("info a.rua");
    assert!(run.stdout.contains("3 x 3, 5 nonzeros (real, stored as general)"), "{}", run.stdout);
}

#[test]
fn every_type_means_what_it_says() {
    let f = Folder::new();
    let of = |kind: &str, values: &str| {
        head("4 1 1 1", kind, "2 2 3 0", "(3I2)           (3I2)           (3E5.0)")
            + " 1 3 4\n 1 2 2\n"
            + values
    };
    let real = "   4.  -1.   3.\n";
    let complex = "   4.   0.   1.\n   2.   3.   0.\n";
    for (kind, values, mirror) in [
        ("rua", real, None),
        ("rra", real, None),
        ("iua", "    4   -1    3\n", None),
        ("RSA", real, Some((-1.0, 0.0))),
        ("rha", real, Some((-1.0, 0.0))),
        ("psa", "", Some((1.0, 0.0))),
        ("csa", complex, Some((1.0, 2.0))),
        ("CHA", complex, Some((1.0, -2.0))),
    ] {
        f.write("a.rb", of(kind, values));
        let found = entries(&f, "a.rb");
        assert_eq!(found.iter().find(|e| (e.0, e.1) == (0, 1)).map(|e| (e.2, e.3)), mirror, "{kind}");
        let diagonal = if kind == "psa" { [1.0, 1.0] } else { [4.0, 3.0] };
        let of_diagonal: Vec<f64> = found.iter().filter(|e| e.0 == e.1).map(|e| e.2).collect();
        assert_eq!(of_diagonal, diagonal, "{kind}");
    }
    let skew = head("4 1 1 1", "rza", "2 2 1 0", "(3I2)           (3I2)           (3E5.0)");
    f.write("a.rb", skew + " 1 2 2\n 2\n   7.\n");
    assert_eq!(entries(&f, "a.rb"), [(0, 1, -7.0, 0.0), (1, 0, 7.0, 0.0)]);
    let wide = head("4 1 1 1", "rra", "1 2 2 0", "(3I2)           (3I2)           (3E5.0)");
    f.write("a.rb", wide + " 1 2 3\n 1 1\n   7.   8.\n");
    assert_eq!(entries(&f, "a.rb"), [(0, 0, 7.0, 0.0), (0, 1, 8.0, 0.0)]);
}

#[test]
fn right_hand_sides_come_with_the_matrix() {
    let f = Folder::new();
    let of = |kind: &str, count: usize, data: &str| {
        head("5 1 1 1 2", "RSA", "2 2 3 0", "(3I2)           (3I2)           (3E5.0)             (2E5.0)")
            + &format!("{kind}           {count} 2\n 1 3 4\n 1 2 2\n   4.  -1.   4.\n{data}")
    };
    // x = (1, 2) and (3, 1).
    for (name, content, count) in [
        ("one.rsa", of("F", 1, "   2.   7.\n"), 1),
        ("two.rsa", of("FGX", 2, "   2.   7.\n  11.   1.\n   0.   0.\n"), 2),
        ("sparse.rsa", of("M", 1, " 1 3\n 1 2\n   2.   7.\n"), 1),
    ] {
        f.write(name, content);
        let run = f.ok(&format!("solve {name} -o x.mtx --tolerance 1e-12"));
        assert!(run.stdout.contains("which came with the matrix"), "{name}: {}", run.stdout);
        let x = read_matrix(&f.path("x.mtx"));
        for (j, wanted) in [[1.0, 2.0], [3.0, 1.0]].into_iter().enumerate().take(count) {
            for (found, wanted) in x.column(j).into_iter().zip(wanted) {
                assert!((found.0 - wanted).abs() < 1e-9, "{name} {j}: {}", found.0);
            }
        }
    }
    f.write("cut.rsa", of("F", 2, "   2.   7.\n"));
    let run = f.fails(3, "solve cut.rsa");
    assert!(
        run.stderr.contains("cut.rsa:10: the file ends before the 4 values of right-hand sides; there are 2")
    );
    assert!(f.ok("solve cut.rsa --rhs a-ones").stdout.contains("A times ones"));
}

#[test]
fn broken_cards_are_refused_with_line_and_cause() {
    let f = Folder::new();
    let good = general("  4.0  2.5 -1.0  4.0  2.0\n", "(5F5.1)");
    f.write("good.rua", &good);
    f.ok("info good.rua");
    for (from, to, words) in [
        ("RUA", "RUE", ":3: matrix type `RUE`: elemental"),
        ("RUA", "QUA", ":3: matrix type `QUA`: its values are in another file"),
        ("3 3 5 0", "3 3", ":3: rows, columns and entries are expected"),
        ("3 3 5 0", "9999999999 3 5 0", ":3: 9999999999 x 3 is too large: indices have 32 bits"),
        ("3 3 5 0", "3 4000000000 5 0", ":7: `.0` is not a whole number"),
        ("3 3 5 0", "3 3 4000000000 0", ":5: column pointers must ascend from 1 to 4000000001"),
        ("(4I3)", "(4A3)", ":4: `(4A3)` is no format for pointers"),
        ("(5F5.1)", "", ":4: `` is no format for values"),
        ("  1  3  5  6", "  1  3  2  6", ":5: column pointers must ascend"),
        ("  1  3  5  6", "  1  3  5  7", ":5: column pointers must ascend"),
        (" 1 3 1 2 3", " 1 3 1 2 4", ":6: row index 4 is outside of a matrix with 3 rows"),
        (" 1 3 1 2 3", " 1 3 1 0 3", ":6: row index 0 is outside"),
        (" 1 3 1 2 3", " 1 3 1 x 3", ":6: `x` is not a whole number"),
        (" 1 3 1 2 3", " 1 3 1 2", ":6: the line ends before number 5 of 5 row indices"),
        (" -1.0", " -1.y", ":7: `-1.y` is not a number"),
        (" -1.0", "  NaN", ":7: `NaN` is not a number"),
        (" -1.0", "1e999", ":7: value `1e999` is too large"),
        ("  4.0  2.5 -1.0  4.0  2.0\n", "", ":7: the file ends before the 5 values; there are 0"),
        ("RUA", "RSA", ":6: entry (1, 2) of a symmetric matrix is given in both triangles"),
    ] {
        // With the entry's mirror image in the other triangle.
        let text = if to == "RSA" { good.replace(" 1 3 1 2 3", " 1 2 1 2 3") } else { good.clone() };
        f.write("bad.rua", text.replacen(from, to, 1));
        let run = f.fails(3, "solve bad.rua -o x.mtx");
        assert!(run.stderr.starts_with("residua: bad.rua"), "{to}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{to}: no `{words}` in {}", run.stderr);
    }
    f.write("skew.rua", good.replace("RUA", "RZA"));
    assert!(
        f.fails(3, "info skew.rua").stderr.contains("the diagonal of a skew-symmetric matrix must be zero")
    );
    f.write("cut.gz", &gzip(good.as_bytes())[..120]);
    assert!(f.fails(3, "info cut.gz").stderr.contains("cut"));
    let elsewhere = tar(&[("a/a.rb", &good.replace(" 1 3 1 2 3", " 1 3 1 2 4"))]);
    f.write("a.tar", elsewhere);
    assert!(f.fails(3, "info a.tar").stderr.contains("a.tar:a/a.rb:6: row index 4"));
}
