//! One matrix in every spelling that the format allows.

use crate::scratch::{Folder, gzip};
use num_complex::Complex;
use residua::market::{self, Field, Format, Order, ReadOptions, Symmetry};
use residua::scalar::Scalar;

type Listed<T> = Vec<(u32, u32, T)>;

fn listed<T: Scalar>(text: impl AsRef<[u8]>) -> Listed<T> {
    let folder = Folder::new();
    let file = market::read_triplets::<T>(folder.file("a.mtx", text), &ReadOptions::default()).unwrap();
    let (rows, columns, values) = file.triplets().parts();
    (0..values.len()).map(|k| (rows[k], columns[k], values[k])).collect()
}

const PLAIN: &str = "%%MatrixMarket matrix coordinate real general\n3 4 3\n1 1 1.5\n3 4 -2e-3\n2 1 4\n";

#[test]
fn spellings_of_the_same_matrix() {
    let expected = vec![(0, 0, 1.5), (2, 3, -2e-3), (1, 0, 4.0)];
    assert_eq!(listed::<f64>(PLAIN), expected);
    assert_eq!(listed::<f64>(PLAIN.replace('\n', "\r\n")), expected);
    assert_eq!(listed::<f64>(PLAIN.to_ascii_uppercase()), expected);
    assert_eq!(listed::<f64>(PLAIN.replace("e-3", "D-03").replace(' ', " \t ")), expected);
    assert_eq!(listed::<f64>(PLAIN.replace("real", "Double").replace('\n', "\n% remark\n\n  \n")), expected);
    assert_eq!(listed::<f64>(PLAIN.replace("4\n", "4 % four\n")), expected);
    assert_eq!(listed::<f64>(PLAIN.trim_end()), expected);
    assert_eq!(listed::<f64>(format!("\u{feff}{PLAIN}")), expected);
    assert_eq!(listed::<f64>(format!("\n\n {}\n\n\n", &PLAIN[1..])), expected);
    assert_eq!(listed::<f64>(gzip(PLAIN.as_bytes())), expected);
    let (first, second) = PLAIN.as_bytes().split_at(40);
    assert_eq!(listed::<f64>([gzip(first), gzip(second)].concat()), expected);
}

#[test]
fn fields_and_symmetries() {
    let head = "%%MatrixMarket matrix coordinate";
    assert_eq!(
        listed::<f64>(format!("{head} pattern symmetric\n2 2 2\n1 1\n2 1\n")),
        [(0, 0, 1.0), (1, 0, 1.0)]
    );
    assert_eq!(
        listed::<f64>(format!("{head} integer general\n2 2 2\n1 2 -7\n2 1 18446744073709551615\n")),
        [(0, 1, -7.0), (1, 0, 18446744073709551615.0)]
    );
    assert_eq!(listed::<f32>(format!("{head} unsigned-integer general\n2 2 1\n1 2 7\n")), [(0, 1, 7.0)]);
    assert_eq!(
        listed::<Complex<f64>>(format!("{head} complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 -2\n")),
        [(0, 0, Complex::new(3.0, 0.0)), (1, 0, Complex::new(1.0, -2.0))]
    );
    assert_eq!(
        listed::<Complex<f32>>(format!("{head} real skew-symmetric\n2 2 1\n2 1 1.25\n")),
        [(1, 0, Complex::new(1.25, 0.0))]
    );
    let folder = Folder::new();
    let path = folder.file("a.mtx", format!("{head} REAL Hermitian\n2 2 1\n2 1 1.25\n"));
    let header = market::read_header(&path).unwrap();
    assert_eq!((header.format(), header.field()), (Format::Coordinate, Field::Real));
    assert_eq!((header.rows(), header.columns(), header.entries()), (2, 2, 1));
    assert_eq!(header.symmetry(), Symmetry::Symmetric);
}

#[test]
fn what_a_symmetric_file_says_twice_counts_once() {
    let head = "%%MatrixMarket matrix coordinate";
    let folder = Folder::new();
    let of = |text: String| {
        let path = folder.file("a.mtx", text);
        let file = market::read_triplets::<Complex<f64>>(path, &ReadOptions::default()).unwrap();
        let (rows, columns, values) = file.triplets().parts();
        let places: Vec<_> =
            rows.iter().zip(columns).zip(values).map(|((i, j), v)| (*i, *j, v.re, v.im)).collect();
        (places, file.header().repeated(), file.header().entries())
    };
    let (two, three) = ((1, 0, 5.0, 0.0), (2, 1, -1.0, 0.0));
    assert_eq!(
        of(format!("{head} real symmetric\n3 3 5\n1 1 2\n2 1 5\n3 2 -1\n2 3 -1\n1 2 5\n")),
        (vec![(0, 0, 2.0, 0.0), two, three], 2, 5)
    );
    assert_eq!(of(format!("{head} pattern symmetric\n2 2 2\n1 2\n2 1\n")).1, 1);
    assert_eq!(of(format!("{head} real skew-symmetric\n3 3 2\n2 1 5\n1 2 -5\n")), (vec![two], 1, 2));
    assert_eq!(
        of(format!("{head} complex hermitian\n3 3 2\n1 2 1 -2\n2 1 1 2\n")),
        (vec![(0, 1, 1.0, -2.0)], 1, 2)
    );
    // In one triangle they add up, as everywhere.
    assert_eq!(of(format!("{head} real symmetric\n3 3 2\n2 1 5\n2 1 5\n")), (vec![two, two], 0, 2));
}

#[test]
fn arrays_are_listed_column_after_column() {
    let head = "%%MatrixMarket matrix array";
    assert_eq!(
        listed::<f64>(format!("{head} real general\n2 3\n1\n2\n0\n4\n5\n6\n")),
        [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 4.0), (0, 2, 5.0), (1, 2, 6.0)]
    );
    assert_eq!(
        listed::<f64>(format!("{head} real symmetric\n2 2\n1\n\n2\n3\n")),
        [(0, 0, 1.0), (1, 0, 2.0), (1, 1, 3.0)]
    );
    assert_eq!(listed::<f64>(format!("{head} real skew-symmetric\n2 2\n2\n")), [(1, 0, 2.0)]);
    assert!(listed::<f64>(format!("{head} real general\n3 0\n")).is_empty());
}

#[test]
fn dense_files_from_arrays_and_coordinates() {
    let folder = Folder::new();
    let read =
        |text: &str| market::read_dense::<f64>(folder.file("b.mtx", text), &ReadOptions::default()).unwrap();
    let array = read("%%MatrixMarket matrix array real general\n2 3\n1\n2\n0\n4\n5\n6\n");
    assert_eq!((array.rows(), array.columns()), (2, 3));
    assert_eq!(array.column(1), [0.0, 4.0]);
    assert_eq!(array.values(), [1.0, 2.0, 0.0, 4.0, 5.0, 6.0]);
    let full = read("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n");
    assert_eq!(full.values(), [1.0, 2.0, 2.0, 3.0]);
    let skew = read("%%MatrixMarket matrix array real skew-symmetric\n2 2\n2\n");
    assert_eq!(skew.values(), [0.0, 2.0, -2.0, 0.0]);
    let sparse = read("%%MatrixMarket matrix coordinate real general\n3 1 3\n3 1 1\n1 1 5\n3 1 2\n");
    assert_eq!(sparse.into_values(), [5.0, 0.0, 3.0]);
    let vector = read("%%MatrixMarket vector coordinate integer general\n3 2\n3 1\n1 5\n");
    assert_eq!((vector.rows(), vector.columns(), vector.values()), (3, 1, &[5.0, 0.0, 1.0][..]));
    let vector = read("%%MatrixMarket vector array real general\n2\n3\n1\n");
    assert_eq!(vector.values(), [3.0, 1.0]);
}

#[test]
fn the_order_of_entries_is_reported() {
    let folder = Folder::new();
    let order = |entries: &str| {
        let text = format!("%%MatrixMarket matrix coordinate pattern general\n3 3 3\n{entries}");
        market::read_triplets::<f64>(folder.file("a.mtx", text), &ReadOptions::default()).unwrap().order()
    };
    assert_eq!(order("1 1\n1 2\n2 1\n"), Order::Rows);
    assert_eq!(order("1 1\n2 1\n1 2\n"), Order::Columns);
    assert_eq!(order("1 1\n1 2\n1 2\n"), Order::Any);
    assert_eq!(order("2 1\n1 2\n1 1\n"), Order::Any);
}

/// Large enough for several blocks and pieces; comments in between leave gaps that must be closed.
#[test]
fn many_blocks_with_and_without_gaps() {
    let n = 200_000u32;
    for gaps in [false, true] {
        let mut text = format!("%%MatrixMarket matrix coordinate real general\n{n} {n} {n}\n");
        let mut expected = Vec::new();
        for k in 0..n {
            let (row, column, value) =
                (n - k, (u64::from(k) * 7919 % u64::from(n)) as u32 + 1, f64::from(k) / 7.0 - 1e4);
            text += &format!("{row} {column} {value:.17e}\n");
            if gaps && k % 1000 < 3 {
                text += "% a remark\n\n";
            }
            expected.push((row - 1, column - 1, value));
        }
        assert!(text.len() > 6 << 20);
        assert!(listed::<f64>(&text) == expected, "plain, gaps: {gaps}");
        assert!(listed::<f64>(gzip(text.as_bytes())) == expected, "gzip, gaps: {gaps}");
    }
}

#[test]
fn the_same_entries_whatever_the_number_of_threads() {
    let text: String =
        (0..50_000).map(|k| format!("{} {} {}\n", k % 300 + 1, k % 700 + 1, f64::from(k) * 0.1)).collect();
    let text = format!("%%MatrixMarket matrix coordinate real general\n300 700 50000\n{text}");
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| listed::<f64>(&text))
    };
    assert!(with(1) == with(5));
}
