//! The collection's matrices: reads every one of them, its sizes, header variants and broken files. If the folder does
//! not exist (`RESIDUA_MATRICES`, or `../shared/matrices`), these tests print that and do nothing.

#[path = "../common/collection.rs"]
mod files;

use files::{folder, records};
use matrix_market_rs::MtxData;
use num_complex::Complex;
use residua::market::{self, Field, Format, MatrixFile, ReadOptions, Symmetry};

fn read(path: &std::path::Path) -> residua::Result<MatrixFile<Complex<f64>>> {
    market::read_triplets(path, &ReadOptions::default())
}

/// The number of entries including those that follow by symmetry.
fn full_count(file: &MatrixFile<Complex<f64>>) -> usize {
    let (rows, columns, _) = file.triplets().parts();
    let mirrored = file.symmetry() != Symmetry::General;
    rows.iter().zip(columns).map(|(r, c)| 1 + usize::from(mirrored && r != c)).sum()
}

#[test]
fn every_indexed_matrix_has_the_size_that_the_index_says() {
    let Some(folder) = folder() else { return };
    let index = records(&folder.join("index.csv")).split_off(1);
    assert!(index.len() > 100);
    for record in index {
        let file = match read(&folder.join(&record[1])) {
            Ok(file) => file,
            Err(error) => panic!("{error}"),
        };
        let header = file.header();
        // A directed graph with a symmetric header: 13 entries are in both triangles, with equal values. For a
        // symmetric matrix these lines are duplicates, and each entry is taken once; SciPy adds them up.
        let again = header.repeated() as usize;
        assert_eq!(again, if record[0] == "EVA" { 13 } else { 0 }, "{}", record[0]);
        assert_eq!(header.rows().to_string(), record[2], "{}", record[0]);
        assert_eq!(header.columns().to_string(), record[3], "{}", record[0]);
        if header.format() == Format::Coordinate {
            assert_eq!((file.triplets().len() + again).to_string(), record[4], "{}", record[0]);
            assert_eq!(full_count(&file).to_string(), record[5], "{}", record[0]);
        }
        assert_eq!(header.format().name(), record[6], "{}", record[0]);
        assert_eq!(header.symmetry().name(), record[7], "{}", record[0]);
        assert_eq!(header.field().name(), record[8], "{}", record[0]);
    }
}

/// Files on which SciPy and residua disagree: its verdict (true: accepts), and our reason.
const DISAGREEMENTS: &[(&str, bool, &str)] = &[
    ("variants/fmm_vector_array.mtx", false, "vectors are read as n x 1"),
    ("variants/fmm_vector_coordinate.mtx", false, "vectors are read as n x 1"),
    ("variants/fmm_vector_coordinate_complex.mtx", false, "vectors are read as n x 1"),
    ("variants/fmm_vector_coordinate_complex_dupes.mtx", false, "vectors are read as n x 1"),
    ("variants/fmm_vector_coordinate_dupes.mtx", false, "vectors are read as n x 1"),
    ("variants/cholmod_fullcsa.mtx", false, "blank lines may stand anywhere"),
    ("variants/cholmod_fullrsa.mtx", false, "blank lines may stand anywhere"),
    ("variants/lagraph_matrix_uint64.mtx", false, "large integers are rounded as reals are"),
    ("malformed/fmm_overflow__overflow_value_gt_int64.mtx", false, "large integers are rounded as reals are"),
    ("variants/lagraph_west0067_jumbled.mtx", false, "blank lines may stand anywhere"),
    ("variants/lagraph_comments_west0067.mtx", true, "a value is not a number"),
    ("variants/Ragusa16.mtx", true, "values other than 1 under a pattern banner"),
    ("variants/cholmod_cha.mtx", true, "a diagonal that is not real is not hermitian"),
    ("variants/lagraph_skew_fp32.mtx", true, "a value is infinite"),
    ("variants/lagraph_skew_fp64.mtx", true, "a value is infinite"),
    ("malformed/fmm_overflow__overflow_value_gt_complex128.mtx", true, "a value overflows"),
    ("malformed/fmm_overflow__overflow_value_gt_float128.mtx", true, "a value overflows"),
    ("malformed/fmm_overflow__overflow_value_gt_float64.mtx", true, "a value overflows"),
    ("malformed/lagraph_mangled5.mtx", true, "a pattern is not hermitian"),
    ("malformed/lagraph_mangled6.mtx", true, "a number too many on a line"),
    ("malformed/lagraph_mangled15.mtx", true, "complex numbers under a real banner"),
    ("malformed/lagraph_mangled16.mtx", true, "complex numbers under a real banner"),
];

#[test]
fn header_variants_and_broken_files() {
    let Some(folder) = folder() else { return };
    let variants = records(&folder.join("variants.csv")).split_off(1);
    assert!(variants.len() > 240);
    for record in &variants {
        let (name, verdict) = (record[0].as_str(), record[2].as_str());
        let scipy_accepts = verdict.starts_with("ok");
        let disagreement = DISAGREEMENTS.iter().find(|d| d.0 == name);
        if let Some((_, theirs, _)) = disagreement {
            assert_eq!(*theirs, scipy_accepts, "{name}");
        }
        let path = folder.join(name);
        match read(&path) {
            Ok(file) => {
                assert!(scipy_accepts != disagreement.is_some(), "{name} was accepted; SciPy: {verdict}");
                let full = if file.header().format() == Format::Array {
                    market::read_dense::<Complex<f64>>(&path, &ReadOptions::default()).unwrap().values().len()
                } else {
                    full_count(&file)
                };
                let (rows, columns) = (file.header().rows(), file.header().columns());
                if scipy_accepts {
                    assert_eq!(format!("ok ({rows}, {columns}) nnz={full}"), verdict, "{name}");
                }
            }
            Err(error) => {
                assert!(scipy_accepts == disagreement.is_some(), "{name}: {error}; SciPy: {verdict}");
                let text = error.to_string();
                assert!(text.starts_with(path.to_str().unwrap()) && !text.contains('\n'), "{text}");
                // SciPy counts lines too; if both refuse the same entry, the numbers agree.
                if let Some(line) =
                    verdict.strip_prefix("scipy rejects: Line ").and_then(|v| v.split(':').next())
                    && !text.contains("ends after")
                    && verdict.contains("out of bounds")
                {
                    assert!(text.contains(&format!(":{line}: ")), "{text}; SciPy: {verdict}");
                }
            }
        }
    }
}

#[test]
fn entries_agree_with_another_reader() {
    let Some(folder) = folder() else { return };
    let mut compared = 0;
    for record in records(&folder.join("index.csv")).split_off(1) {
        let path = folder.join(&record[1]);
        let oracle = path.extension().is_some_and(|e| e == "mtx").then(|| MtxData::<f64>::from_file(&path));
        let Some(Ok(MtxData::Sparse(_, places, expected, _))) = oracle else { continue };
        let file = read(&path).unwrap();
        if !matches!(file.header().field(), Field::Real | Field::Integer | Field::Pattern) {
            continue;
        }
        let (rows, columns, values) = file.triplets().parts();
        assert_eq!(values.len(), expected.len(), "{}", record[0]);
        for (k, [row, column]) in places.iter().enumerate() {
            assert_eq!((rows[k] as usize, columns[k] as usize), (*row, *column), "{}: entry {k}", record[0]);
            // The file's numbers are not rounded correctly, hence the tolerance.
            let error = (values[k].re - expected[k]).abs();
            assert!(error <= 1e-14 * expected[k].abs(), "{}: entry {k}", record[0]);
        }
        compared += 1;
    }
    assert!(compared > 50, "only {compared} files compared");
}
