//! Every way of storing a matrix is read with the same bits, whatever the types of numbers in it.

use crate::archives::{npy, npy_in, zip};
use crate::entries::*;
use crate::scratch::{Folder, gzip};
use num_complex::Complex;
use residua::files::{self, read_stored};
use residua::generate::Random;
use residua::market::{Field, Order, ReadOptions};

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

/// Values of every type and byte order, read as real and complex numbers of both precisions.
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
            Err(error) => assert!(complex && error.to_string().contains("real"), "{error}"),
        }
    }
}

/// More than a block and a piece of each array, with entries out of order also at their boundaries.
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
        // The first pair of entries from there on in one row.
        let k = (meeting..).find(|&k| entries.rows[k - 1] == entries.rows[k]).unwrap();
        for back in [0, k - meeting] {
            // Rows are moved so that the pair is exactly at the boundary.
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
    // The first of several faults is reported, whichever thread finds them.
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
                        // This value is never read.
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
