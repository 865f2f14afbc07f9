//! From a file to a system in the memory of any backend: reading in parts, the test for symmetry, narrower values.

#[path = "common/archives.rs"]
mod archives;
#[macro_use]
#[path = "common/systems.rs"]
mod systems;
#[path = "market/scratch.rs"]
mod scratch;

use archives::{npy, zip};
use num_complex::Complex;
use residua::assemble::{Assemble, Assembler, ResidentTriplets};
use residua::backend::{GraphSteps, OffsetsRef, PreconditionSteps};
use residua::files::{self, Resident};
use residua::generate::{self, RowLengths};
use residua::graph::{predicted_benefit, predicted_benefit_on};
use residua::look::Transposed;
use residua::market::{self, ReadOptions, Reading, WriteOptions};
use residua::report::Facts;
use residua::{Csr, Error, Host, Result, Scalar};
use scratch::{Folder, gzip};
use std::path::Path;
use systems::*;

/// Compares a file read for the backend with the plain reader's result.
fn both<T: Scalar, B: Device + Assemble>(backend: &B, path: &Path) -> Result<()> {
    let plain = market::read_triplets::<T>(path, &ReadOptions::default());
    let parts = Reading::<T>::start(path, ReadOptions::default()).into_resident(backend);
    let (plain, (header, triplets)) = match (plain, parts) {
        (Ok(plain), Ok(parts)) => (plain, parts),
        (Err(plain), Err(parts)) => {
            assert_eq!(plain.to_string(), parts.to_string());
            return Ok(());
        }
        (plain, parts) => panic!("{}: {:?}, {:?}", path.display(), plain.err(), parts.err()),
    };
    let (plain_header, expected, _) = plain.into_parts();
    assert_eq!(header, plain_header);
    let found = ResidentTriplets::to_host(&triplets, backend)?;
    assert!(found.parts() == expected.parts(), "{}", path.display());
    // The same bits of CSR as if the host assembles the triplets that the host has read.
    let assembler = Assembler::default().symmetry(header.symmetry());
    let here = assembler.to_csr(&Host, expected)?;
    let there = assembler.resident_to_csr(backend, triplets)?.to_host(backend)?;
    let (here, there) = (here.parts(), there.parts());
    assert!(here.values == there.values && here.indices == there.indices);
    Ok(())
}

fn parts_of_a_file_come_to_the_whole<B: Device + Assemble>(backend: &B) -> Result<()> {
    let folder = Folder::new();
    let head = "%%MatrixMarket matrix coordinate";
    for (name, text) in [
        ("small", format!("{head} real general\n3 4 3\n1 1 1.5\n3 4 -2e-3\n2 1 4\n")),
        ("no entries", format!("{head} real general\n3 4 0\n")),
        ("pattern", format!("{head} pattern symmetric\n2 2 2\n1 1\n2 1\n")),
        ("upper", format!("{head} real symmetric\n2 2 2\n1 1 3\n1 2 1\n")),
        ("mixed", format!("{head} real symmetric\n3 3 3\n1 1 3\n1 2 1\n3 1 7\n")),
        ("both", format!("{head} real symmetric\n3 3 3\n1 1 3\n1 2 1\n2 1 7\n")),
        ("skew", format!("{head} real skew-symmetric\n2 2 1\n2 1 1.25\n")),
        ("array", "%%MatrixMarket matrix array real general\n2 2\n1\n0\n0\n4\n".into()),
        ("vector", "%%MatrixMarket vector coordinate real general\n9 2\n1 4\n9 2\n".into()),
        ("short", format!("{head} real general\n3 4 3\n1 1 1.5\n")),
        ("long", format!("{head} real general\n3 4 1\n1 1 1.5\n1 2 2\n")),
        ("outside", format!("{head} real general\n3 4 1\n4 1 1.5\n")),
        ("promise", format!("{head} real general\n3 4 999999999999\n1 1 1.5\n")),
        ("diagonal", format!("{head} real skew-symmetric\n2 2 1\n2 2 1.25\n")),
        ("none", "hello".into()),
    ] {
        both::<f64, B>(backend, &folder.file(name, &text))?;
        both::<f64, B>(backend, &folder.file(&format!("{name}.gz"), gzip(text.as_bytes())))?;
    }
    let text = format!("{head} complex hermitian\n2 2 2\n1 1 3 0\n2 1 1 -2\n");
    both::<Complex<f64>, B>(backend, &folder.file("hermitian", &text))?;
    both::<f64, B>(backend, &folder.file("complex", &text))?;
    both::<Complex<f64>, B>(backend, &folder.file("bad", text.replace("3 0", "3 1")))?;
    both::<f64, B>(backend, &folder.path("not there"))
}

/// Several blocks of text, with comments between entries; a fault in the last block is reported with its line.
fn large_files_come_in_parts<B: Device + Assemble>(backend: &B) -> Result<()> {
    let folder = Folder::new();
    let path = folder.path("a.mtx");
    let a = generate::jumping([44, 44, 44], 1e6, 1, 5)?;
    for options in [WriteOptions::default(), WriteOptions::default().detect_symmetry(false)] {
        market::write_csr(&path, &a, &options)?;
        assert!(std::fs::metadata(&path).unwrap().len() > 8 << 20);
        both::<f64, B>(backend, &path)?;
        let mut text = std::fs::read_to_string(&path).unwrap();
        let middle = text.len() / 2 + text[text.len() / 2..].find('\n').unwrap() + 1;
        text.insert_str(middle, &"% a remark\n\n".repeat(50_000));
        both::<f64, B>(backend, &folder.file("remarks.mtx", &text))?;
        text.push_str("1 1 1\n");
        both::<f64, B>(backend, &folder.file("fault.mtx", &text))?;
    }
    Ok(())
}

/// A matrix read for a backend has the same bits as on the host, whatever the format of the file: it comes from
/// compressed rows and columns if they ascend, otherwise from triplets.
fn every_format_comes_to_a_backend<B: Device + Assemble>(backend: &B) -> Result<()> {
    fn bytes<const N: usize>(numbers: impl Iterator<Item = [u8; N]>) -> (Vec<u8>, String) {
        let all: Vec<[u8; N]> = numbers.collect();
        (all.concat(), format!("({},)", all.len()))
    }
    let folder = Folder::new();
    let a = generate::convection_diffusion([7, 6, 5], 1e-2)?;
    let n = a.rows();
    // The same arrays as rows, as columns, and backwards, so that no row ascends.
    let parts = a.parts();
    let OffsetsRef::Lower(offsets) = parts.offsets else { panic!("few entries") };
    let archive = |format: &str, backwards: bool| {
        let turned = |k: usize| if backwards { parts.indices.len() - 1 - k } else { k };
        let all = || (0..parts.indices.len()).map(turned);
        let offset =
            |row: usize| if backwards { offsets[n] - offsets[n - row] } else { offsets[row] }.to_le_bytes();
        let (offsets, count) = bytes((0..=n).map(offset));
        let (indices, entries) = bytes(all().map(|k| parts.indices[k].to_le_bytes()));
        let (values, _) = bytes(all().map(|k| parts.values[k].to_le_bytes()));
        let (shape, two) = bytes([n as u64; 2].into_iter().map(u64::to_le_bytes));
        let members = [
            ("indices.npy", npy("'<i4'", &entries, &indices)),
            ("indptr.npy", npy("'<i4'", &count, &offsets)),
            ("format.npy", npy("'|S3'", "()", format.as_bytes())),
            ("shape.npy", npy("'<i8'", &two, &shape)),
            ("data.npy", npy("'<f8'", &entries, &values)),
        ];
        zip(&members, backwards)
    };
    let text = folder.path("a.mtx");
    market::write_csr(&text, &generate::poisson3d(5, 6, 7)?, &WriteOptions::default())?;
    let array = folder.path("a.npy");
    files::write_npy(&array, 3, 2, &[1.0, 0.0, 2.0, -0.5, 0.0, 0.0])?;
    let rows = archive("csr", false);
    for (path, way) in [
        (folder.file("rows.npz", &rows), "rows"),
        (folder.file("columns.npz", archive("csc", false)), "columns"),
        (folder.file("backwards.npz", archive("csr", true)), "triplets"),
        (folder.file("cut.npz", &rows[..rows.len() / 2]), "error"),
        (text, "triplets"),
        (array, "triplets"),
        (folder.path("not there"), "error"),
    ] {
        let reading = files::Reading::<f64>::start(&path, ReadOptions::default());
        let (resident, expected) = match (reading.into_resident(backend), files::read_csr(&path)) {
            (Ok(resident), Ok(expected)) => (resident, expected),
            (Err(found), Err(expected)) if way == "error" => {
                assert_eq!(found.to_string(), expected.to_string());
                continue;
            }
            (found, expected) => panic!("{way}: {:?}, {:?}", found.err(), expected.err()),
        };
        let found = match &resident {
            Resident::Triplets(..) => "triplets",
            Resident::Rows(..) => "rows",
            Resident::Columns(..) => "columns",
        };
        assert_eq!(found, way, "{}", path.display());
        assert_eq!(resident.header(), &files::read_header(&path)?);
        let found = resident.into_csr(backend)?.to_host(backend)?;
        assert_eq!((found.rows(), found.columns()), (expected.rows(), expected.columns()));
        assert!((0..found.rows()).all(|row| found.row(row) == expected.row(row)), "{}", path.display());
    }
    Ok(())
}

/// If the device is not available, reading stops without hanging.
#[test]
fn a_reading_may_be_dropped() {
    let folder = Folder::new();
    let path = folder.path("a.mtx");
    market::write_csr(&path, &generate::poisson3d(60, 60, 60).unwrap(), &WriteOptions::default()).unwrap();
    drop(Reading::<f64>::start(&path, ReadOptions::default()));
    assert!(market::read_csr::<f64>(&path).is_ok());
}

fn distance_from_the_transpose<B: Device>(backend: &B) -> Result<()> {
    fn check<T: Scalar, B: Device>(backend: &B, a: Csr<T>) -> Result<()> {
        let facts = Facts::of(&a);
        let seen = Transposed::of(backend, &backend.place(a))?;
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-15 * a.abs();
        assert!(near(seen.asymmetry, facts.asymmetry), "{seen:?} {facts:?}");
        assert!(near(seen.hermitian_defect, facts.hermitian_defect), "{seen:?} {facts:?}");
        assert_eq!(seen.is_symmetric(), facts.is_symmetric());
        assert_eq!(seen.is_hermitian(), facts.is_hermitian());
        Ok(())
    }
    check(backend, poisson2d(40))?;
    check(backend, generate::convection_diffusion([30, 30, 1], 1e-2)?)?;
    check(backend, generate::elasticity3d(5, 5, 5, 0.3)?)?;
    check(backend, generate::random(3000, 3000, RowLengths::Constant(5), 1)?)?;
    check(backend, csr::<f64>(3, |_| vec![]))?;
    // Only above the diagonal, only below it, and on both sides.
    for (upper, lower) in [(Some(7.0), None), (None, Some(7.0)), (Some(7.0), Some(9.0))] {
        let of = |i: usize| match i {
            0 => [Some((0, 1.0)), upper.map(|value| (2, value))],
            3 => [lower.map(|value| (1, value)), Some((3, 2.0))],
            _ => [Some((i, 3.0)), None],
        };
        check(backend, csr(4, |i| of(i).into_iter().flatten().collect()))?;
    }
    let i = Complex::new(0.0, 1.0);
    let one = Complex::new(2.0, 0.0);
    for (upper, lower) in [(i, -i), (i, i), (one, one), (one, i)] {
        check(backend, csr(2, |row| if row == 0 { vec![(0, one), (1, upper)] } else { vec![(0, lower)] }))?;
    }
    // A long first row: symmetric; with one entry that differs in the last digits from its mirror image; and without
    // mirror images.
    let mut long =
        csr(500, |i| if i == 0 { (0..500).map(|j| (j, 1.0)).collect() } else { vec![(0, 1.0), (i, 3.0)] });
    check(backend, csr_copy(&long))?;
    long.values_mut()[776] += 1e-13;
    check(backend, csr_copy(&long))?;
    check(backend, csr(500, |i| if i == 0 { (0..500).map(|j| (j, 1.0)).collect() } else { vec![(i, 3.0)] }))?;
    let wide = backend.place(generate::random(3, 5, RowLengths::Constant(2), 1)?);
    assert!(matches!(Transposed::of(backend, &wide), Err(Error::Dimension { .. })));
    Ok(())
}

fn values_narrow_where_nothing_is_lost<B: Device + PreconditionSteps>(backend: &B) -> Result<()> {
    fn check<T: Scalar, B: Device + PreconditionSteps>(backend: &B, a: Csr<T>) -> Result<()> {
        let expected = a.to_lower();
        let found = backend.place(csr_copy(&a)).into_lower(backend)?;
        match (expected, found) {
            (Some(expected), Ok(found)) => {
                let found = found.to_host(backend)?;
                let (found, expected) = (found.parts(), expected.parts());
                assert!(found.values == expected.values && found.indices == expected.indices);
            }
            (None, Err(same)) => assert_eq!(same.to_host(backend)?.parts().values, a.parts().values),
            (expected, _) => panic!("on the host narrow: {}", expected.is_some()),
        }
        Ok(())
    }
    let with = |last: f64| csr(300, move |i| vec![(i, if i == 299 { last } else { 0.5 + i as f64 })]);
    for last in [2.0, 0.1, -0.0, 1e300, 1e-320, 16_777_217.0] {
        check(backend, with(last))?;
    }
    let of = |re, im| csr(2, move |i| vec![(i, Complex::new(re, im))]);
    for (re, im) in [(1.0, 2.0), (1.0, 0.1), (0.1, 1.0)] {
        check(backend, of(re, im))?;
    }
    check(backend, tridiagonal::<f32>(50, 2.0))
}

fn benefit_is_predicted_alike<B: Device>(backend: &B) -> Result<()> {
    let a = generate::poisson2d(300, 300)?;
    let price = Host.ordering_price();
    let here = predicted_benefit(&a, price, 100)?;
    assert_eq!(here, predicted_benefit_on(backend, &backend.place(a), price, 100)?);
    Ok(())
}

on_every_backend!(
    parts_of_a_file_come_to_the_whole,
    large_files_come_in_parts,
    every_format_comes_to_a_backend,
    distance_from_the_transpose,
    values_narrow_where_nothing_is_lost,
    benefit_is_predicted_alike
);
