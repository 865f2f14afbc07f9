//! Files of other formats than Matrix Market, generated here byte by byte.

use crate::archives::{npy, zip};
use crate::support::{Folder, read_matrix};
use std::io::Write;

/// [4 -1 0; -1 4 0; 0 2 2] in compressed rows.
const OFFSETS: [i32; 4] = [0, 2, 4, 6];
const COLUMNS: [i32; 6] = [0, 1, 0, 1, 1, 2];
const VALUES: [f64; 6] = [4.0, -1.0, -1.0, 4.0, 2.0, 2.0];
const TEXT: &str = "%%MatrixMarket matrix coordinate real general\n3 3 6\n\
    1 1 4\n1 2 -1\n2 1 -1\n2 2 4\n3 2 2\n3 3 2\n";
const B_TEXT: &str = "%%MatrixMarket matrix array real general\n3 1\n8\n-4\n6\n";

fn little(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn small(list: &[i32]) -> Vec<u8> {
    list.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn csr(columns: &[i32], deflate: bool) -> Vec<u8> {
    let members = [
        ("indices.npy", npy("'<i4'", "(6,)", &small(columns))),
        ("indptr.npy", npy("'<i4'", "(4,)", &small(&OFFSETS))),
        ("format.npy", npy("'|S3'", "()", b"csr")),
        ("shape.npy", npy("'<i4'", "(2,)", &small(&[3, 3]))),
        ("data.npy", npy("'<f8'", "(6,)", &little(&VALUES))),
    ];
    zip(&members, deflate)
}

fn petsc(wide: bool, nonzeros: i64) -> Vec<u8> {
    let mut numbers = vec![1_211_216, 3, 3, nonzeros, 2, 2, 2];
    numbers.extend(COLUMNS.map(i64::from));
    let number = |n: &i64| if wide { n.to_be_bytes().to_vec() } else { (*n as i32).to_be_bytes().to_vec() };
    let mut file: Vec<u8> = numbers.iter().flat_map(number).collect();
    file.extend(VALUES.iter().flat_map(|value| value.to_be_bytes()));
    file
}

pub fn tar(members: &[(&str, &str)]) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, text) in members {
        let mut head = [0u8; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", text.len()).as_bytes());
        head[148..156].fill(b' ');
        head[156] = b'0';
        head[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = head.iter().map(|&byte| u32::from(byte)).sum();
        head[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        file.extend(head);
        file.extend(text.as_bytes());
        file.resize(file.len().next_multiple_of(512), 0);
    }
    file.resize(file.len() + 1024, 0);
    file
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_same_matrix_from_every_format() {
    let f = Folder::new();
    f.write("plain.mtx", TEXT);
    let wanted = read_matrix(&f.path("plain.mtx"));
    let mut wanted: Vec<_> = wanted.entries.iter().map(|&(i, j, (re, _))| (i, j, re)).collect();
    wanted.sort_by_key(|entry| (entry.0, entry.1));
    let archive = tar(&[("a/a_b.mtx", B_TEXT), ("a/a.mtx", TEXT)]);
    for (name, content) in [
        ("stored.npz", csr(&COLUMNS, false)),
        ("deflated.npz", csr(&COLUMNS, true)),
        ("narrow.dat", petsc(false, 6)),
        ("wide.dat", petsc(true, 6)),
        ("renamed.tar.gz", gzip(&archive)),
        ("a.tar", archive),
        ("full.npy", npy("'<f8'", "(3, 3)", &little(&[4.0, -1.0, 0.0, -1.0, 4.0, 0.0, 0.0, 2.0, 2.0]))),
    ] {
        f.write(name, content);
        f.ok(&format!("convert {name} out.mtx --general"));
        let mut found: Vec<_> =
            read_matrix(&f.path("out.mtx")).entries.iter().map(|&(i, j, (re, _))| (i, j, re)).collect();
        found.retain(|entry| entry.2 != 0.0);
        found.sort_by_key(|entry| (entry.0, entry.1));
        assert_eq!(found, wanted, "{name}");
    }
    // 4 x - y = 8, 4 y - x = -4, 2 y + 2 z = 6.
    let run = f.ok("solve renamed.tar.gz -o x.npy");
    assert!(run.stdout.contains("a/a_b.mtx, which came with the matrix"), "{}", run.stdout);
    let x = std::fs::read(f.path("x.npy")).unwrap();
    assert!(x.len() == 128 + 24 && x.starts_with(b"\x93NUMPY\x01\x00"));
    let number = |k: usize| f64::from_le_bytes(x[128 + 8 * k..136 + 8 * k].try_into().unwrap());
    for (k, wanted) in [28.0 / 15.0, -8.0 / 15.0, 53.0 / 15.0].into_iter().enumerate() {
        assert!((number(k) - wanted).abs() < 1e-6, "{k}: {}", number(k));
    }
    let vector =
        [&1_211_214i32.to_be_bytes()[..], &3i32.to_be_bytes(), &1f64.to_be_bytes().repeat(3)].concat();
    f.write("both.dat", [petsc(false, 6), vector].concat());
    assert!(f.ok("solve both.dat").stdout.contains("which came with the matrix"));
    f.write("b.npy", npy("'>f4'", "(3,)", &1f32.to_be_bytes().repeat(3)));
    f.ok("solve stored.npz --rhs b.npy");
    assert!(f.fails(3, "convert plain.mtx y.npy").stderr.contains("full arrays"));
}

#[test]
fn broken_files_are_refused_by_name_and_cause() {
    let f = Folder::new();
    let whole = csr(&COLUMNS, false);
    let huge = npy("'<f8'", "(1000000000000000,)", &[0; 80]);
    let members = |data: Vec<u8>| {
        zip(
            &[
                ("format.npy", npy("'|S3'", "()", b"csr")),
                ("shape.npy", npy("'<i8'", "(2,)", &[1; 16])),
                ("data.npy", data),
            ],
            false,
        )
    };
    for (name, content, words) in [
        ("cut.npz", whole[..whole.len() / 2].to_vec(), "list of members is missing"),
        ("outside.npz", csr(&[0, 1, 0, 1, 1, 3], true), "index 3 (number 5 from 0) is outside of 3"),
        ("shape.npz", members(huge.clone()), "2^32"),
        ("none.npz", zip(&[("a.npy", vec![]), ("b.npy", vec![])], false), "neither a matrix"),
        ("huge.npy", huge, "indices have 32 bits"),
        ("lie.npy", npy("'<f8'", "(4000000000,)", &[0; 80]), "ends after 10 of 4000000000 values"),
        ("object.npy", npy("'|O'", "(1,)", &[0; 8]), "pickle"),
        ("record.npy", npy("[('a', '<f8')]", "(1,)", &[0; 8]), "a record"),
        ("nan.npy", npy("'<f8'", "(1,)", &f64::NAN.to_le_bytes()), "not finite"),
        ("half.dat", petsc(false, 6)[..60].to_vec(), "the file ends after"),
        ("lie.dat", petsc(false, 2_000_000_000), "do not add up"),
        ("little.dat", 1_211_216i32.to_le_bytes().repeat(4), "little endian"),
        ("cut.tar", tar(&[("a/a.mtx", TEXT)])[..540].to_vec(), "the archive is cut off"),
        ("none.tar", tar(&[("a/b.txt", "x")]), "no matrix NAME/NAME.mtx"),
        ("text.tar", tar(&[("a/a.mtx", &TEXT.replace("-1", "one"))]), "text.tar:a/a.mtx:4: `one`"),
    ] {
        f.write(name, content);
        let run = f.fails(3, &format!("solve {name} -o x.mtx"));
        assert!(run.stderr.starts_with(&format!("residua: {name}")), "{name}: {}", run.stderr);
        assert!(run.stderr.contains(words), "{name}: no `{words}` in {}", run.stderr);
        assert!(!f.path("x.mtx").exists(), "{name}");
    }
    let mut damaged = tar(&[("a/a.mtx", TEXT)]);
    damaged[3] ^= 1;
    f.write("damaged.tar", damaged);
    assert!(f.fails(3, "info damaged.tar").stderr.contains("checksum"));
}

#[test]
fn results_for_scipy_and_numpy() {
    let f = Folder::new();
    f.write("a.mtx", TEXT);
    f.write("b.mtx", B_TEXT);
    f.ok("convert a.mtx a.npz");
    // Files written here are read by the reader of SciPy's files.
    f.ok("convert a.npz again.mtx");
    f.ok("convert a.mtx once.mtx");
    assert_eq!(f.read("again.mtx"), f.read("once.mtx"));
    let bytes = std::fs::read(f.path("a.npz")).unwrap();
    let has = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
    for member in ["indices", "indptr", "format", "shape", "data"] {
        assert!(has(&[member.as_bytes(), b".npy\x93NUMPY"].concat()), "{member}");
    }
    assert!(has(&little(&VALUES)) && has(&small(&COLUMNS)) && has(&small(&OFFSETS)) && has(b"'|S3'"));
    f.ok("solve a.npz --rhs b.mtx -o x.npz");
    f.ok("convert x.npz x.mtx");
    let x = read_matrix(&f.path("x.mtx")).column(0);
    assert!((x[1].0 + 8.0 / 15.0).abs() < 1e-6, "{}", x[1].0);
    f.ok("generate poisson2d --size 5 -o p.npz");
    f.ok("reorder p.npz -o q.npz");
    assert_eq!(f.ok("info q.npz --json -").json()["nonzeros"], 105);
    // Changes one bit of an array.
    let at = bytes.windows(8).position(|window| window == 2f64.to_le_bytes()).unwrap();
    let mut damaged = bytes.clone();
    damaged[at] ^= 1;
    f.write("damaged.npz", damaged);
    let run = f.fails(3, "solve damaged.npz");
    assert!(run.stderr.contains("damaged.npz:data.npy") && run.stderr.contains("checksum"), "{}", run.stderr);
}
