//! MATLAB's files, AMGX's systems, and plain numbers.

use crate::scratch::{Folder, gzip};
use residua::files::{read_csr, read_dense, read_header, read_stored, right_hand_side};
use residua::market::{Field, ReadOptions, Symmetry};
use residua::{Csr, Scalar};
use std::io::Write;
use std::path::Path;

/// The byte order of a `.mat` file, with functions that write its parts.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn word(self, value: u32) -> [u8; 4] {
        if self.0 { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn element(self, kind: u32, data: &[u8]) -> Vec<u8> {
        if (1..=4).contains(&data.len()) {
            let small = self.word((data.len() as u32) << 16 | kind);
            return [&small[..], data, &vec![0; 4 - data.len()]].concat();
        }
        let padding = vec![0; data.len().next_multiple_of(8) - data.len()];
        [&self.word(kind)[..], &self.word(data.len() as u32), data, &padding].concat()
    }

    fn integers(self, values: &[u32]) -> Vec<u8> {
        self.element(5, &values.iter().flat_map(|&value| self.word(value)).collect::<Vec<_>>())
    }

    fn doubles(self, values: &[f64]) -> Vec<u8> {
        let bytes = |value: &f64| if self.0 { value.to_be_bytes() } else { value.to_le_bytes() };
        self.element(9, &values.iter().flat_map(bytes).collect::<Vec<_>>())
    }

    fn array(self, flags: u32, sizes: [u32; 2], name: &str, parts: &[Vec<u8>]) -> Vec<u8> {
        let flags = self.element(6, &[self.word(flags), self.word(9)].concat());
        let head = [flags, self.integers(&sizes), self.element(1, name.as_bytes())].concat();
        self.element(14, &[head, parts.concat()].concat())
    }

    /// [1 0 2; 0 3 0], with space for one entry more than there are.
    fn sparse(self, name: &str) -> Vec<u8> {
        let parts =
            [self.integers(&[0, 1, 0, 0]), self.integers(&[0, 1, 2, 3]), self.doubles(&[1.0, 3.0, 2.0])];
        self.array(5, [2, 3], name, &parts)
    }

    fn file(self, arrays: &[Vec<u8>]) -> Vec<u8> {
        let mut head = b"MATLAB 5.0 MAT-file, made by a test".to_vec();
        head.resize(124, b' ');
        let version = if self.0 { [1, 0, b'M', b'I'] } else { [0, 1, b'I', b'M'] };
        [&head[..], &version, &arrays.concat()].concat()
    }
}

fn zlib(array: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(array).unwrap();
    let packed = encoder.finish().unwrap();
    [&15_u32.to_le_bytes()[..], &(packed.len() as u32).to_le_bytes(), &packed].concat()
}

fn rows<T: Scalar>(a: &Csr<T>) -> Vec<(usize, usize, T)> {
    a.iter().collect()
}

const EXPECTED: [(usize, usize, f64); 3] = [(0, 0, 1.0), (0, 2, 2.0), (1, 1, 3.0)];

#[test]
fn matlabs_matrices_are_read_in_both_orders_of_bytes_packed_or_not_and_in_structures() {
    let f = Folder::new();
    let (little, big) = (Order(false), Order(true));
    let b = little.array(6, [2, 1], "b", &[little.doubles(&[5.0, 6.0])]);
    let other = little.array(8, [1, 4], "other", &[little.element(1, &[1, 2, 3, 255])]);
    let text = little.array(4, [1, 2], "text", &[little.element(4, &[72, 0, 105, 0])]);
    let fields = little.element(1, b"title\0\0\0A\0\0\0\0\0\0\0b\0\0\0\0\0\0\0");
    let inside = [
        little.element(5, &8_u32.to_le_bytes()),
        fields,
        little.array(4, [1, 2], "", &[little.element(4, &[72, 0, 105, 0])]),
        little.sparse(""),
        little.array(6, [2, 1], "", &[little.doubles(&[5.0, 6.0])]),
    ];
    let problem = little.array(2, [1, 1], "Problem", &inside);
    for (name, content) in [
        ("plain.mat", little.file(&[text.clone(), other.clone(), b.clone(), little.sparse("K")])),
        ("packed.mat", little.file(&[zlib(&other), zlib(&little.sparse("A")), zlib(&b)])),
        ("problem.mat", little.file(&[problem])),
        ("gzip.mat", gzip(&little.file(&[little.sparse("K"), b.clone()]))),
    ] {
        let path = f.file(name, content);
        assert_eq!(rows(&read_csr::<f64>(&path).unwrap()), EXPECTED, "{name}");
        let header = read_header(&path).unwrap();
        assert_eq!((header.rows(), header.columns(), header.entries()), (2, 3, 3), "{name}");
        let (label, b) = right_hand_side::<f64>(&path, &ReadOptions::default()).unwrap().unwrap();
        assert!(label.ends_with('b') && b.values() == [5.0, 6.0], "{label}");
        assert_eq!(read_dense::<f64>(&path, &ReadOptions::default()).unwrap().values(), [5.0, 6.0]);
    }
    let path = f.file("big.mat", big.file(&[big.sparse("A")]));
    assert_eq!(rows(&read_csr::<f64>(&path).unwrap()), EXPECTED);
    assert!(right_hand_side::<f64>(&path, &ReadOptions::default()).unwrap().is_none());
    // Numbers of other types, and complex ones.
    let path = f.file("other.mat", little.file(&[other]));
    assert_eq!(read_dense::<f64>(&path, &ReadOptions::default()).unwrap().values(), [1.0, 2.0, 3.0, -1.0]);
    let both = [little.doubles(&[1.0, 2.0]), little.doubles(&[-1.0, 0.5])];
    let path = f.file("complex.mat", little.file(&[little.array(0x0806, [2, 1], "z", &both)]));
    assert_eq!(read_header(&path).unwrap().field(), Field::Complex);
    let z = read_dense::<num_complex::Complex<f64>>(&path, &ReadOptions::default()).unwrap();
    assert_eq!(z.values(), [num_complex::Complex::new(1.0, -1.0), num_complex::Complex::new(2.0, 0.5)]);
    assert!(read_dense::<f64>(&path, &ReadOptions::default()).unwrap_err().to_string().contains("complex"));
}

#[test]
fn damaged_files_of_matlab_and_newer_ones_are_refused() {
    let f = Folder::new();
    let order = Order(false);
    let good = order.file(&[order.sparse("A")]);
    let refused = |name: &str, content: &[u8], word: &str| {
        let error = read_csr::<f64>(f.file(name, content)).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(word), "{error}");
    };
    let mut new = b"MATLAB 7.3 MAT-file, HDF5".to_vec();
    new.resize(124, b' ');
    new.extend([0, 2, b'I', b'M']);
    refused("new.mat", &new, "-v7");
    for end in (130..good.len()).step_by(7) {
        assert!(read_csr::<f64>(f.file("cut.mat", &good[..end])).is_err(), "cut at {end}");
    }
    refused("empty.mat", &good[..128], "no matrix");
    let outside = [order.integers(&[0, 7, 0]), order.integers(&[0, 1, 2, 3]), order.doubles(&[1.0; 3])];
    refused("outside.mat", &order.file(&[order.array(5, [2, 3], "A", &outside)]), "row 7");
    let starts = [order.integers(&[0, 1, 0]), order.integers(&[0, 2, 1, 3]), order.doubles(&[1.0; 3])];
    refused("starts.mat", &order.file(&[order.array(5, [2, 3], "A", &starts)]), "start");
    let few = [order.integers(&[0, 1, 0]), order.integers(&[0, 1, 2, 3]), order.doubles(&[1.0; 2])];
    refused("few.mat", &order.file(&[order.array(5, [2, 3], "A", &few)]), "2 numbers where 3");
    let endless = order.array(6, [2_000_000_000, 2_000_000_000], "A", &[order.doubles(&[1.0])]);
    refused("endless.mat", &order.file(&[endless]), "numbers where");
    refused("torn.mat", &order.file(&[zlib(&order.sparse("A"))[..20].to_vec()]), "longer");
}

#[test]
fn amgxs_systems_have_their_diagonal_and_right_hand_side_behind_the_entries() {
    let f = Folder::new();
    let banner = "%%MatrixMarket matrix coordinate real general\n";
    let path = f.file("a.mtx", format!("{banner}%%AMGX diagonal rhs\n% note\n2 2 1\n1 2 1.5\n4\n5\n\n7 8\n"));
    assert_eq!(rows(&read_csr::<f64>(&path).unwrap()), [(0, 0, 4.0), (0, 1, 1.5), (1, 1, 5.0)]);
    let b = right_hand_side::<f64>(&path, &ReadOptions::default()).unwrap().unwrap().1;
    assert_eq!(b.values(), [7.0, 8.0]);
    let path = f.file(
        "b.mtx",
        format!(
            "{banner}%%NVAMG 2 2 sorted rhs solution base0\n2 2 4\n0 0 1\n0 1 2\n1 0 3\n1 1 4\n5\n6\n0\n0\n"
        ),
    );
    assert_eq!(rows(&read_csr::<f64>(&path).unwrap()).len(), 4);
    assert_eq!(read_dense::<f64>(&path, &ReadOptions::default()).unwrap().values(), [5.0, 6.0]);
    // Other programs write the length of a vector before it.
    let path = f.file("l.mtx", format!("{banner}%%AMGX rhs solution\n2 2 1\n1 1 4\n2\n5\n6\n2\n0\n0\n"));
    assert_eq!(read_dense::<f64>(&path, &ReadOptions::default()).unwrap().values(), [5.0, 6.0]);
    let symmetric = banner.replace("general", "symmetric");
    let path = f.file("s.mtx", format!("{symmetric}%%AMGX\n2 2 2\n1 1 3\n2 1 -1\n"));
    assert_eq!(read_header(&path).unwrap().symmetry(), Symmetry::Symmetric);
    assert_eq!(rows(&read_csr::<f64>(&path).unwrap()), [(0, 0, 3.0), (0, 1, -1.0), (1, 0, -1.0)]);
    assert!(right_hand_side::<f64>(&path, &ReadOptions::default()).unwrap().is_none());
    for (content, line, word) in [
        (format!("{banner}%%AMGX rhs\n2 2 1\n1 1 4\n5\n"), 5, "2 are needed"),
        (format!("{banner}%%AMGX rhs\n2 2 1\n1 1 4\n3\n5\n6\n"), 7, "3 numbers"),
        (format!("{banner}%%AMGX\n2 2 1\n1 3 4\n"), 4, "outside"),
        (format!("{banner}%%AMGX diagonal 2\n2 2 1\n1 2 4\n"), 3, "blocks"),
        (format!("{banner}%%AMGX\n2 2 1\n1 x 4\n"), 4, "`x`"),
        (format!("{banner}%%AMGX\n"), 2, "sizes"),
    ] {
        let error = read_csr::<f64>(f.file("bad.mtx", &content)).unwrap_err().to_string();
        assert!(error.contains(&format!("bad.mtx:{line}:")) && error.contains(word), "{error}");
    }
}

#[test]
fn plain_numbers_are_vectors_and_no_matrix() {
    let f = Folder::new();
    let values = |path: &Path| read_dense::<f64>(path, &ReadOptions::default()).map(|b| b.values().to_vec());
    let column = f.file("column.txt", "# made by savetxt\n1.5\n\n-2e3 # with a note\n3d-1");
    assert_eq!(values(&column).unwrap(), [1.5, -2000.0, 0.3]);
    assert_eq!(values(&f.file("line.txt", "1 2 3\n")).unwrap(), [1.0, 2.0, 3.0]);
    let table =
        read_dense::<f64>(f.file("table.csv", "1, 2;3\r\n4,5 , 6\r\n"), &ReadOptions::default()).unwrap();
    assert_eq!((table.rows(), table.columns(), table.column(1)), (2, 3, &[2.0, 5.0][..]));
    let many: Vec<String> = (0..1000).map(|k| format!("{k}.25")).collect();
    assert_eq!(values(&f.file("long.txt", many.join(" "))).unwrap().len(), 1000);
    assert_eq!(values(&f.file("packed.txt.gz", gzip(b"1\n2\n"))).unwrap(), [1.0, 2.0]);
    let refused = |content: &str, word: &str| {
        let error = values(&f.file("bad.txt", content)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    };
    refused("1 2\n3\n", "bad.txt:2: this line has 1 numbers, but");
    refused("1\ntwo\n", "bad.txt:2: `two`");
    refused("1\n1e999\n", "not finite");
    let error = read_stored::<f64>(&column, &ReadOptions::default()).unwrap_err().to_string();
    assert!(error.contains("right-hand side") && error.contains("%%MatrixMarket"), "{error}");
}
