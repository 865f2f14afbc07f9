//! Binary files: the same bits from every way of storing a matrix, whatever the types of numbers in it, and damaged
//! files refused.

#[path = "common/archives.rs"]
mod archives;
#[path = "market/scratch.rs"]
#[allow(dead_code)]
mod scratch;

use archives::{npy, npy_in, zip};
use num_complex::Complex;
use residua::backend::OffsetsRef;
use residua::files::{self, read_stored};
use residua::generate::Random;
use residua::market::{Field, Order, ReadOptions};
use residua::{Csr, Scalar, Triplets};
use scratch::{Folder, gzip};
use std::path::Path;

/// NumPy's types of integers, and how one is written.
const INTEGERS: [&str; 13] =
    ["<i4", "<i8", ">i4", ">i8", "<u4", "<u8", ">u4", ">u8", "<i2", ">i2", "<u2", ">u2", "=i8"];

fn number(descr: &str, value: i64) -> Vec<u8> {
    let size: usize = descr[2..].parse().unwrap();
    let mut bytes = value.to_le_bytes()[..size].to_vec();
    if descr.starts_with('>') {
        bytes.reverse();
    }
    bytes
}

fn integers(descr: &str, list: &[i64]) -> Vec<u8> {
    let data: Vec<u8> = list.iter().flat_map(|&value| number(descr, value)).collect();
    npy(&format!("'{descr}'"), &format!("({},)", list.len()), &data)
}

fn word(text: &str) -> Vec<u8> {
    npy(&format!("'|S{}'", text.len()), "()", text.as_bytes())
}

fn doubles(values: &[f64]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    npy("'<f8'", &format!("({},)", values.len()), &data)
}

/// A matrix as a list of entries, row after row.
#[derive(Clone)]
struct Entries {
    size: (usize, usize),
    rows: Vec<i64>,
    columns: Vec<i64>,
    values: Vec<f64>,
}

impl Entries {
    /// Up to `most` entries a row, columns ascending.
    fn random(size: (usize, usize), most: u64, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
        for row in 0..size.0 {
            let count = random.below(most + 1);
            let mut own: Vec<i64> = (0..count).map(|_| random.below(size.1 as u64) as i64).collect();
            own.sort_unstable();
            own.dedup();
            rows.extend(own.iter().map(|_| row as i64));
            values.extend(own.iter().map(|_| random.between(-1.0, 1.0)));
            columns.extend(own);
        }
        Self { size, rows, columns, values }
    }

    fn offsets(&self) -> Vec<i64> {
        let mut offsets = vec![0; self.size.0 + 1];
        self.rows.iter().for_each(|&row| offsets[row as usize + 1] += 1);
        (1..offsets.len()).for_each(|row| offsets[row] += offsets[row - 1]);
        offsets
    }

    fn transposed(self) -> Self {
        Self { size: (self.size.1, self.size.0), rows: self.columns, columns: self.rows, values: self.values }
    }

    fn shape(&self) -> Vec<u8> {
        integers("<i8", &[self.size.0 as i64, self.size.1 as i64])
    }

    /// What assembly makes of the entries in this order.
    fn assembled(&self) -> Csr<f64> {
        let list = |list: &[i64]| list.iter().map(|&index| index as u32).collect();
        let (rows, columns) = (list(&self.rows), list(&self.columns));
        Csr::from_triplets(
            Triplets::from_parts(self.size.0, self.size.1, rows, columns, self.values.clone()).unwrap(),
        )
        .unwrap()
    }

    /// Compressed rows. Offsets and indices have one type each.
    fn csr(&self, types: [&str; 2], deflate: bool) -> Vec<u8> {
        let members = [
            ("indices.npy", integers(types[1], &self.columns)),
            ("indptr.npy", integers(types[0], &self.offsets())),
            ("format.npy", word("csr")),
            ("shape.npy", self.shape()),
            ("data.npy", doubles(&self.values)),
        ];
        zip(&members, deflate)
    }

    /// Compressed columns of the transpose: what these rows are.
    fn csc_of_transpose(&self, deflate: bool) -> Vec<u8> {
        let members = [
            ("data.npy", doubles(&self.values)),
            ("indices.npy", integers("<i4", &self.columns)),
            ("indptr.npy", integers("<i8", &self.offsets())),
            ("format.npy", word("csc")),
            ("shape.npy", integers("<i4", &[self.size.1 as i64, self.size.0 as i64])),
        ];
        zip(&members, deflate)
    }

    fn coo(&self, descr: &str, together: bool, deflate: bool) -> Vec<u8> {
        let mut members = vec![
            ("format.npy", word("coo")),
            ("shape.npy", self.shape()),
            ("data.npy", doubles(&self.values)),
        ];
        if together {
            let both: Vec<u8> =
                self.rows.iter().chain(&self.columns).flat_map(|&index| number(descr, index)).collect();
            let shape = format!("(2, {})", self.rows.len());
            members.push(("coords.npy", npy(&format!("'{descr}'"), &shape, &both)));
        } else {
            members.push(("row.npy", integers(descr, &self.rows)));
            members.push(("col.npy", integers(descr, &self.columns)));
        }
        zip(&members, deflate)
    }

    fn petsc(&self, wide: bool) -> Vec<u8> {
        let descr = if wide { ">i8" } else { ">i4" };
        let (rows, columns) = (self.size.0 as i64, self.size.1 as i64);
        let mut all = vec![1_211_216, rows, columns, self.values.len() as i64];
        all.extend(self.offsets().windows(2).map(|w| w[1] - w[0]));
        all.extend(&self.columns);
        let mut file: Vec<u8> = all.into_iter().flat_map(|value| number(descr, value)).collect();
        file.extend(self.values.iter().flat_map(|value| value.to_be_bytes()));
        file
    }
}

fn bits<T: Scalar>(a: &Csr<T>) -> (usize, usize, Vec<usize>, Vec<u32>, Vec<[u64; 2]>) {
    let parts = a.parts();
    let offsets = match parts.offsets {
        OffsetsRef::Narrow(offsets) => offsets.iter().map(|&offset| offset as usize).collect(),
        OffsetsRef::Wide(offsets) => offsets.iter().map(|&offset| offset as usize).collect(),
    };
    (a.rows(), a.columns(), offsets, parts.indices.to_vec(), parts.values.iter().map(|v| v.bits()).collect())
}

/// Holds a file against a matrix, however it is read. The order that its triplets have is given back.
fn check<T: Scalar>(path: &Path, expected: &Csr<T>, what: &str) -> Order {
    let expected = bits(expected);
    let found = files::read_csr::<T>(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(bits(&found), expected, "{what}");
    let file = files::read_triplets::<T>(path, &ReadOptions::default()).unwrap();
    assert_eq!((file.header().rows(), file.header().columns()), (expected.0, expected.1), "{what}");
    let (_, triplets, order) = file.into_parts();
    assert_eq!(bits(&Csr::from_triplets(triplets).unwrap()), expected, "{what}");
    order
}

#[test]
fn indices_of_every_type_give_the_bits_of_assembly() {
    let folder = Folder::new();
    let sorted = Entries::random((120, 90), 8, 1);
    let mut unsorted = sorted.clone();
    (0..unsorted.rows.len() - 1).step_by(3).for_each(|k| {
        if unsorted.rows[k] == unsorted.rows[k + 1] {
            unsorted.columns.swap(k, k + 1);
        }
    });
    let mut twice = unsorted.clone();
    (0..twice.rows.len() - 2).step_by(5).for_each(|k| {
        if twice.rows[k] == twice.rows[k + 2] {
            twice.columns[k + 2] = twice.columns[k];
        }
    });
    for (entries, ordered) in [(&sorted, true), (&unsorted, false), (&twice, false)] {
        let (expected, transpose) = (entries.assembled(), entries.clone().transposed().assembled());
        for deflate in [false, true] {
            for (k, descr) in INTEGERS.into_iter().enumerate() {
                let what = format!("{descr}, deflated: {deflate}, in order: {ordered}");
                let types = [INTEGERS[(k + 5) % INTEGERS.len()], descr];
                let path = folder.file("csr.npz", entries.csr(types, deflate));
                let order = check(&path, &expected, &what);
                assert_eq!(order, if ordered { Order::Rows } else { Order::Any }, "{what}");
                let path = folder.file("coo.npz", entries.coo(descr, k % 2 == 0, deflate));
                check(&path, &expected, &what);
            }
            let path = folder.file("csc.npz", entries.csc_of_transpose(deflate));
            let order = check(&path, &transpose, "columns");
            assert_eq!(order, if ordered { Order::Columns } else { Order::Any });
        }
        for wide in [false, true] {
            let bytes = entries.petsc(wide);
            check(&folder.file("a.petsc", &bytes), &expected, "PETSc");
            check(&folder.file("a.petsc.gz", gzip(&bytes)), &expected, "PETSc in gzip");
        }
    }
}

/// Values of every type in every order of bytes, as real and complex numbers of both precisions.
#[test]
fn values_of_every_type_are_what_they_were() {
    let folder = Folder::new();
    let given = [1.5f64, -0.0, 3.0, -7.25, 1e-30];
    let swap = |descr: &str, mut bytes: Vec<u8>| {
        if descr.starts_with('>') {
            bytes.reverse();
        }
        bytes
    };
    for descr in ["<f8", ">f8", "<f4", ">f4", "<c16", ">c16", "<c8", ">c8", "<i2", ">i8", "<u4", "|b1", "|i1"]
    {
        let single = matches!(&descr[1..], "f4" | "c8");
        let whole = !matches!(&descr[1..2], "f" | "c");
        let value = |re: f64| match (whole, single) {
            (true, _) => f64::from(re != 0.0),
            (_, true) => f64::from(re as f32),
            _ => re,
        };
        let part = |re: f64| {
            swap(descr, if single { (re as f32).to_le_bytes().to_vec() } else { re.to_le_bytes().to_vec() })
        };
        let complex = &descr[1..2] == "c";
        let data: Vec<u8> = given
            .iter()
            .flat_map(|&re| match (whole, complex) {
                (true, _) => number(descr, i64::from(re != 0.0)),
                (_, true) => [part(re), part(-2.0 * re)].concat(),
                _ => part(re),
            })
            .collect();
        let members = [
            ("indices.npy", integers("<i4", &[0, 2, 1, 0, 1])),
            ("indptr.npy", integers("<i4", &[0, 2, 3, 5])),
            ("format.npy", word("csr")),
            ("shape.npy", integers("<i4", &[3, 3])),
            ("data.npy", npy(&format!("'{descr}'"), "(5,)", &data)),
        ];
        let path = folder.file("a.npz", zip(&members, true));
        let found = files::read_csr::<Complex<f64>>(&path).unwrap();
        for (k, z) in found.parts().values.iter().enumerate() {
            let (re, im) = (value(given[k]), if complex { value(-2.0 * given[k]) } else { 0.0 });
            assert_eq!([z.re.to_bits(), z.im.to_bits()], [re.to_bits(), im.to_bits()], "{descr}: {k}");
        }
        let narrow = files::read_csr::<Complex<f32>>(&path).unwrap();
        assert!(narrow.parts().values.iter().zip(&given).all(|(z, &re)| z.re == value(re) as f32), "{descr}");
        let header = files::read_header(&path).unwrap();
        assert_eq!((header.entries(), header.field() == Field::Complex), (5, complex), "{descr}");
        match files::read_csr::<f64>(&path) {
            Ok(real) => {
                assert!(!complex && real.parts().values.iter().zip(&given).all(|(&x, &re)| x == value(re)))
            }
            Err(error) => assert!(complex && error.to_string().contains("complex values"), "{error}"),
        }
    }
}

/// More than a block and a piece of each array; what is out of order stands where these meet, too.
#[test]
fn large_arrays_come_in_pieces() {
    let folder = Folder::new();
    let entries = Entries::random((200_000, 200_000), 6, 3);
    assert!(entries.values.len() > 500_000);
    let expected = entries.assembled();
    for (types, deflate) in [(["<i4", "<i4"], false), (["<i8", ">i8"], false), (["<i4", "<i8"], true)] {
        let path = folder.file("a.npz", entries.csr(types, deflate));
        assert_eq!(check(&path, &expected, "large"), Order::Rows);
    }
    check(&folder.file("a.petsc", entries.petsc(false)), &expected, "large");
    let path = folder.file("t.npz", entries.csc_of_transpose(false));
    check(&path, &entries.clone().transposed().assembled(), "large");
    let offsets = entries.offsets();
    // A block has 2^14 indices of four bytes, a piece 2^18.
    for meeting in [1usize << 14, 1 << 18, 3 << 14, 12_345] {
        // The first pair from there on that is of one row.
        let k = (meeting..).find(|&k| entries.rows[k - 1] == entries.rows[k]).unwrap();
        for back in [0, k - meeting] {
            // Rows are moved so that the pair stands at the meeting itself.
            let mut moved = entries.clone();
            moved.rows.drain(..back);
            moved.columns.drain(..back);
            moved.values.drain(..back);
            let at = k - back;
            assert_eq!(moved.rows[at - 1], moved.rows[at]);
            moved.columns[at] = moved.columns[at - 1];
            let path = folder.file("twice.npz", moved.csr(["<i4", "<i4"], false));
            assert_eq!(check(&path, &moved.assembled(), "twice"), Order::Any, "{meeting} {back}");
        }
    }
    assert_eq!(offsets[200_000] as usize, entries.values.len());
    let mut bad = entries.csr(["<i4", "<i4"], false);
    let at = bad.len() / 2;
    bad[at] ^= 4;
    let error = files::read_csr::<f64>(folder.file("bad.npz", bad)).unwrap_err().to_string();
    assert!(error.contains("bad.npz:data.npy") && error.contains("checksum"), "{error}");
    // The first of several faults, whatever thread finds them.
    let mut outside = entries.clone();
    [400_000, 500_001, 333_333].into_iter().for_each(|k| outside.columns[k] = 200_000 + k as i64);
    let path = folder.file("outside.npz", outside.csr(["<i4", "<i4"], false));
    let error = files::read_csr::<f64>(path).unwrap_err().to_string();
    assert!(error.contains("index 533333 (number 333333 from 0) is outside of 200000"), "{error}");
}

#[test]
fn matrices_without_entries_rows_or_columns() {
    let folder = Folder::new();
    for size in [(0, 0), (0, 7), (7, 0), (5, 5), (3, 9)] {
        let entries = Entries::random(size, 0, 1);
        let expected = entries.assembled();
        for deflate in [false, true] {
            check(&folder.file("csr.npz", entries.csr(["<i4", "<i8"], deflate)), &expected, "csr");
            check(&folder.file("coo.npz", entries.coo("<i4", deflate, deflate)), &expected, "coo");
            let transposed = entries.clone().transposed().assembled();
            check(&folder.file("csc.npz", entries.csc_of_transpose(deflate)), &transposed, "csc");
            let members = [
                ("format.npy", word("dia")),
                ("shape.npy", entries.shape()),
                ("offsets.npy", integers("<i4", &[])),
                ("data.npy", npy("'<f8'", "(0, 0)", &[])),
            ];
            check(&folder.file("dia.npz", zip(&members, deflate)), &expected, "dia");
        }
        check(&folder.file("a.petsc", entries.petsc(false)), &expected, "PETSc");
    }
}

#[test]
fn rows_of_blocks() {
    let folder = Folder::new();
    let (high, wide) = (2, 3);
    for (columns, ordered) in [([0i64, 3, 1, 0, 2, 3], true), ([3, 0, 1, 2, 2, 3], false)] {
        let offsets = [0i64, 2, 3, 3, 6];
        // An array may have more blocks than are used.
        let blocks = 7;
        let mut random = Random::new(4);
        let given: Vec<f64> = (0..blocks * high * wide).map(|_| random.between(-1.0, 1.0)).collect();
        let mut entries = Entries { size: (8, 12), rows: vec![], columns: vec![], values: vec![] };
        for line in 0..4 {
            let (start, end) = (offsets[line] as usize, offsets[line + 1] as usize);
            for (block, column) in columns.iter().enumerate().take(end).skip(start) {
                for (r, c) in (0..high).flat_map(|r| (0..wide).map(move |c| (r, c))) {
                    entries.rows.push((line * high + r) as i64);
                    entries.columns.push(column * wide as i64 + c as i64);
                    entries.values.push(given[(block * high + r) * wide + c]);
                }
            }
        }
        let expected = entries.assembled();
        for by_columns in [false, true] {
            let mut data = vec![0.0; given.len()];
            for (k, &value) in given.iter().enumerate() {
                let (block, r, c) = (k / (high * wide), k / wide % high, k % wide);
                data[if by_columns { block + blocks * (r + high * c) } else { k }] = value;
            }
            let data: Vec<u8> = data.iter().flat_map(|value| value.to_le_bytes()).collect();
            let members = [
                ("format.npy", word("bsr")),
                ("shape.npy", integers("<i8", &[8, 12])),
                ("indptr.npy", integers("<i4", &offsets)),
                ("indices.npy", integers("<i4", &columns)),
                ("data.npy", npy_in("'<f8'", by_columns, "(7, 2, 3)", &data)),
            ];
            let order = check(&folder.file("bsr.npz", zip(&members, by_columns)), &expected, "bsr");
            assert_eq!(order, if ordered { Order::Rows } else { Order::Any });
        }
    }
}

#[test]
fn diagonals_of_any_length() {
    let folder = Folder::new();
    let mut random = Random::new(5);
    for (size, length) in [((6, 6), 6), ((5, 9), 4), ((9, 5), 8), ((10_000, 3), 3), ((3, 10_000), 10_000)] {
        for distances in [&[0i64, -2, 3][..], &[1, 1, -1], &[i64::MIN, i64::MAX, 0]] {
            let count = distances.len();
            let mut given: Vec<f64> = (0..count * length).map(|_| random.between(-1.0, 1.0)).collect();
            given.iter_mut().step_by(4).for_each(|value| *value = 0.0);
            let mut entries = Entries { size, rows: vec![], columns: vec![], values: vec![] };
            for (d, &distance) in distances.iter().enumerate() {
                for j in 0..length.min(size.1) {
                    let row = (j as i64).checked_sub(distance).filter(|row| (0..size.0 as i64).contains(row));
                    let value = given[d * length + j];
                    if let Some(row) = row.filter(|_| value != 0.0) {
                        entries.rows.push(row);
                        entries.columns.push(j as i64);
                        entries.values.push(value);
                    } else if row.is_none() {
                        // Nobody looks there.
                        given[d * length + j] = f64::NAN;
                    }
                }
            }
            let data: Vec<u8> = given.iter().flat_map(|value| value.to_le_bytes()).collect();
            let members = [
                ("format.npy", word("dia")),
                ("shape.npy", integers("<i8", &[size.0 as i64, size.1 as i64])),
                ("offsets.npy", integers("<i8", distances)),
                ("data.npy", npy("'<f8'", &format!("({count}, {length})"), &data)),
            ];
            let path = folder.file("dia.npz", zip(&members, false));
            check(&path, &entries.assembled(), &format!("{size:?} {distances:?}"));
        }
    }
}

#[test]
fn full_arrays_by_rows_and_by_columns() {
    let folder = Folder::new();
    for (m, n) in [(3, 40), (40, 3), (70, 33), (1, 5), (5, 1), (0, 4), (300, 1000)] {
        let value = |i: usize, j: usize| ((i * 7 + j * 3) % 5) as f64 - 1.0;
        let by_columns: Vec<f64> = (0..n).flat_map(|j| (0..m).map(move |i| value(i, j))).collect();
        let by_rows: Vec<f64> = (0..m).flat_map(|i| (0..n).map(move |j| value(i, j))).collect();
        let bytes = |values: &[f64]| values.iter().flat_map(|v| v.to_be_bytes()).collect::<Vec<u8>>();
        let shape = format!("({m}, {n})");
        let rows = npy_in("'>f8'", false, &shape, &bytes(&by_rows));
        let columns = npy_in("'>f8'", true, &shape, &bytes(&by_columns));
        let dense: Vec<u8> =
            [1_211_216i32, m as i32, n as i32, -1].iter().flat_map(|v| v.to_be_bytes()).collect();
        for (name, content) in [
            ("rows.npy", rows.clone()),
            ("columns.npy", columns.clone()),
            ("rows.npy.gz", gzip(&rows)),
            ("rows.npz", zip(&[("x.npy", rows)], false)),
            ("columns.npz", zip(&[("x.npy", columns)], true)),
            ("dense.petsc", [dense, bytes(&by_rows)].concat()),
        ] {
            let path = folder.file(name, content);
            let found = files::read_dense::<f64>(&path, &ReadOptions::default()).unwrap();
            assert_eq!((found.rows(), found.columns(), found.values()), (m, n, &by_columns[..]), "{name}");
            let a = files::read_csr::<f64>(&path).unwrap();
            let nonzeros = by_columns.iter().filter(|value| **value != 0.0).count();
            assert_eq!((a.rows(), a.columns(), a.nonzeros()), (m, n, nonzeros), "{name}");
            let header = files::read_header(&path).unwrap();
            assert_eq!((header.rows(), header.columns()), (m, n), "{name}");
        }
    }
}

#[test]
fn vectors_behind_a_matrix() {
    let folder = Folder::new();
    let entries = Entries::random((9, 9), 3, 6);
    let options = ReadOptions::default();
    for (wide, single, complex) in
        [(false, false, false), (true, false, false), (false, true, false), (true, false, true)]
    {
        let descr = if wide { ">i8" } else { ">i4" };
        let value = |re: f64| match (single, complex) {
            (true, _) => (re as f32).to_be_bytes().to_vec(),
            (_, true) => [re.to_be_bytes(), (-re).to_be_bytes()].concat(),
            _ => re.to_be_bytes().to_vec(),
        };
        let mut file = entries.petsc(wide);
        file.truncate(file.len() - 8 * entries.values.len());
        file.extend(entries.values.iter().flat_map(|&re| value(re)));
        file.extend([1_211_214, 9].into_iter().flat_map(|n| number(descr, n)));
        file.extend((0..9).flat_map(|k| value(f64::from(k) + 0.5)));
        let path = folder.file("both.petsc", file);
        let b = files::right_hand_side_header(&path).unwrap().unwrap();
        assert_eq!((b.rows(), b.field() == Field::Complex), (9, complex));
        let (name, b) = files::right_hand_side::<Complex<f64>>(&path, &options).unwrap().unwrap();
        assert!(name.contains("behind the matrix"));
        let im = |re: f64| if complex { -re } else { 0.0 };
        assert!(b.values().iter().enumerate().all(|(k, z)| z.re == k as f64 + 0.5 && z.im == im(z.re)));
        let a = read_stored::<Complex<f64>>(&path, &options).unwrap();
        assert_eq!(a.header().entries(), entries.values.len() as u64);
        let a = a.into_csr().unwrap();
        let near = |z: &Complex<f64>, re: f64| (z.re - re).abs() < 1e-6 && z.im == im(z.re);
        assert!(a.parts().values.iter().zip(&entries.values).all(|(z, &re)| near(z, re)));
    }
}

/// Whatever byte is wrong, or missing, a file is refused or says what it said.
#[test]
fn damage_at_every_byte_is_found_or_harmless() {
    let folder = Folder::new();
    let entries = Entries::random((12, 11), 3, 7);
    let expected = bits(&entries.assembled());
    let archives = [
        entries.csr(["<i4", "<i8"], false),
        entries.csr(["<i8", "<i4"], true),
        entries.coo("<i4", false, false),
        entries.clone().transposed().csc_of_transpose(true),
    ];
    for (k, whole) in archives.into_iter().enumerate() {
        let path = folder.path("a.npz");
        let (mut refused, transposed) = (0, k == 3);
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut bytes = whole.clone();
                bytes[at] ^= bit;
                std::fs::write(&path, bytes).unwrap();
                match files::read_csr::<f64>(&path) {
                    Ok(a) => assert!(transposed || bits(&a) == expected, "archive {k}, byte {at}"),
                    Err(error) => {
                        refused += 1;
                        assert!(error.to_string().contains("a.npz"), "byte {at}: {error}");
                    }
                }
            }
            std::fs::write(&path, &whole[..at]).unwrap();
            let error = files::read_csr::<f64>(&path).unwrap_err().to_string();
            assert!(error.contains("a.npz"), "cut at {at}: {error}");
        }
        assert!(refused > whole.len(), "archive {k}: {refused} of {}", whole.len());
    }
    let whole = entries.petsc(false);
    for at in 0..whole.len() {
        let path = folder.file("a.petsc", &whole[..at]);
        // With half of each value it is a file in single precision.
        let single = at + 4 * entries.values.len() == whole.len();
        assert_eq!(files::read_csr::<f64>(&path).is_ok(), single, "cut at {at}");
        let mut bytes = whole.clone();
        bytes[at] ^= 0x80;
        // Values have no checksum here, but no byte of a file may end the program.
        let _ = files::read_csr::<f64>(folder.file("a.petsc", bytes));
    }
    let whole = doubles(&[1.0, 2.0, 3.0]);
    for at in 6..whole.len() {
        assert!(files::read_csr::<f64>(folder.file("a.npy", &whole[..at])).is_err(), "cut at {at}");
    }
}

/// A wrong checksum in the archive's list, of each member, stored and deflated.
#[test]
fn checksums_are_held_against_every_member() {
    let folder = Folder::new();
    let entries = Entries::random((30, 30), 4, 8);
    for deflate in [false, true] {
        let whole = entries.csr(["<i4", "<i4"], deflate);
        let lists = (0..whole.len() - 4).filter(|&at| whole[at..].starts_with(b"PK\x01\x02"));
        for (member, at) in ["indices", "indptr", "format", "shape", "data"].into_iter().zip(lists) {
            let mut bytes = whole.clone();
            bytes[at + 16] ^= 1;
            let error = files::read_csr::<f64>(folder.file("a.npz", bytes)).unwrap_err().to_string();
            assert!(error.contains(&format!("a.npz:{member}.npy")), "{error}");
            assert!(error.contains("checksum"), "{error}");
        }
    }
}

/// What a header claims costs nothing unless it is there.
#[test]
fn sizes_that_are_not_there_are_refused() {
    let folder = Folder::new();
    let entries = Entries::random((4, 4), 2, 9);
    let huge = "(1000000000000,)";
    let members = |name: &str, with: Vec<u8>| {
        let mut members = vec![
            ("indices.npy", integers("<i4", &entries.columns)),
            ("indptr.npy", integers("<i4", &entries.offsets())),
            ("format.npy", word("csr")),
            ("shape.npy", entries.shape()),
            ("data.npy", doubles(&entries.values)),
        ];
        members.iter_mut().filter(|member| member.0 == name).for_each(|member| member.1 = with.clone());
        members
    };
    for deflate in [false, true] {
        for (name, with, words) in [
            ("indices.npy", npy("'<i4'", huge, &[0; 64]), "ends after 16 of 1000000000000 integers"),
            ("indptr.npy", npy("'<i8'", huge, &[0; 64]), "ends after 8 of 1000000000000 integers"),
            ("data.npy", npy("'<f8'", huge, &[0; 64]), "ends after 8 of 1000000000000 values"),
            ("data.npy", npy("'<f8'", "(2, 3, 4, 5)", &[0; 960]), "one dimension"),
            ("data.npy", doubles(&[1.0; 100])[..800].to_vec(), "of 100 values"),
            ("shape.npy", integers("<i8", &[4_000_000_000, 4]), "out of proportion"),
            ("shape.npy", integers("<i8", &[-4, 4]), "two sizes"),
            ("shape.npy", integers("<i8", &[5, 4]), "5 + 1 offsets are expected"),
            ("indptr.npy", integers("<i8", &[0, -1, 2, 3, 4]), "ascend"),
            ("indptr.npy", integers("<i8", &[0, 1, 1, 1, 99]), "ascend"),
            ("indptr.npy", integers("<i8", &[1, 1, 1, 1, 1]), "ascend"),
            ("indices.npy", integers("<i8", &[-1; 16]), "index -1 (number 0 from 0) is outside of 4"),
            ("indices.npy", doubles(&[0.0; 16]), "an array of integers is expected"),
            ("data.npy", npy("'<U4'", "(16,)", &[0; 256]), "text"),
            ("format.npy", word("lil"), "csr, csc, coo, bsr and dia are read"),
            ("format.npy", word("bsr"), "three dimensions"),
            ("format.npy", word("dia"), "two dimensions"),
        ] {
            let path = folder.file("a.npz", zip(&members(name, with), deflate));
            let error = files::read_csr::<f64>(&path).unwrap_err().to_string();
            assert!(error.contains("a.npz") && error.contains(words), "no `{words}` in {error}");
        }
        // An archive whose list promises more than its member can hold.
        let mut whole = zip(&members("", Vec::new()), deflate);
        let at = (0..whole.len()).rev().find(|&at| whole[at..].starts_with(b"PK\x01\x02")).unwrap();
        whole[at + 24..at + 28].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
        let error = files::read_csr::<f64>(folder.file("lie.npz", whole)).unwrap_err().to_string();
        assert!(
            error.contains("lie.npz:data.npy") && error.contains("is said to hold 2147483647 bytes"),
            "{error}"
        );
    }
    for (shape, offsets) in [("(0, 2000000000, 1)", 3), ("(0, 1, 1)", 3)] {
        let members = [
            ("format.npy", word("bsr")),
            ("shape.npy", integers("<i8", &[4_000_000_000, 1])),
            ("indptr.npy", integers("<i4", &vec![0; offsets])),
            ("indices.npy", integers("<i4", &[])),
            ("data.npy", npy("'<f8'", shape, &[])),
        ];
        let error =
            files::read_csr::<f64>(folder.file("a.npz", zip(&members, false))).unwrap_err().to_string();
        assert!(error.contains("out of proportion"), "{error}");
    }
    let value = f64::INFINITY.to_le_bytes();
    let members = members(
        "data.npy",
        npy("'<f8'", &format!("({},)", entries.values.len()), &value.repeat(entries.values.len())),
    );
    let error = files::read_csr::<f64>(folder.file("a.npz", zip(&members, false))).unwrap_err().to_string();
    assert!(error.contains("value 0 (from 0) is not finite"), "{error}");
}
