//! Written files are read back to the last bit.

use crate::scratch::Folder;
use num_complex::Complex;
use proptest::prelude::*;
use residua::market::{self, Field, Format, ReadOptions, Symmetry, WriteOptions};
use residua::scalar::{Real, Scalar};
use residua::{Csr, Triplets};
use std::collections::BTreeMap;

/// Any finite double, small and large, subnormal and signed zero.
fn any_value() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(|bits| Some(f64::from_bits(bits)).filter(|v| v.is_finite()).unwrap_or(-0.0)),
        (-1000i32..1000).prop_map(f64::from),
        (-1000i32..1000).prop_map(|v| f64::from(v) * 0.1),
    ]
}

type Entries = BTreeMap<(usize, usize), (f64, f64)>;

fn any_entries(rows: usize, columns: usize) -> impl Strategy<Value = Entries> {
    let entry = ((0..rows, 0..columns), (any_value(), any_value()));
    prop::collection::vec(entry, 0..200).prop_map(|entries| entries.into_iter().collect())
}

fn csr<T: Scalar>(rows: usize, columns: usize, entries: &BTreeMap<(usize, usize), T>) -> Csr<T> {
    let mut offsets = vec![0; rows + 1];
    for (row, _) in entries.keys() {
        offsets[row + 1] += 1;
    }
    for i in 0..rows {
        offsets[i + 1] += offsets[i];
    }
    let indices = entries.keys().map(|k| k.1 as u32).collect();
    Csr::from_parts(rows, columns, offsets, indices, entries.values().copied().collect()).unwrap()
}

fn bits<T: Scalar>(value: T) -> (u64, u64) {
    (value.re().to_f64().to_bits(), value.im().to_f64().to_bits())
}

/// Writes and reads; checks that the header says `symmetry`.
fn round_trip<T: Scalar>(
    name: &str,
    rows: usize,
    columns: usize,
    entries: &BTreeMap<(usize, usize), T>,
    symmetry: Symmetry,
) {
    let folder = Folder::new();
    let path = folder.path(name);
    market::write_csr(&path, &csr(rows, columns, entries), &WriteOptions::default()).unwrap();
    let header = market::read_header(&path).unwrap();
    assert_eq!(header.symmetry(), symmetry);
    assert_eq!(header.format(), Format::Coordinate);
    assert_eq!(header.field(), if T::COMPLEX { Field::Complex } else { Field::Real });
    let back = market::read_csr::<T>(&path).unwrap();
    assert_eq!((back.rows(), back.columns(), back.nonzeros()), (rows, columns, entries.len()));
    let wanted = csr(rows, columns, entries);
    let (back, wanted) = (back.parts(), wanted.parts());
    assert_eq!(back.indices, wanted.indices);
    for (a, b) in back.values.iter().zip(wanted.values) {
        assert_eq!(bits(*a), bits(*b), "{a:?} {b:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn general_matrices((rows, columns, entries) in prop_oneof![Just((597, 43)), Just((1, 50)), Just((50, 1)), Just((7, 9))]
        .prop_flat_map(|(r, c)| (Just(r), Just(c), any_entries(r, c))))
    {
        let real = entries.iter().map(|(&k, v)| (k, v.0)).collect();
        round_trip::<f64>("a.mtx", rows, columns, &real, Symmetry::General);
        let single = entries.iter().map(|(&k, v)| (k, v.0 as f32)).filter(|v| v.1.is_finite()).collect();
        round_trip::<f32>("a.mtx.gz", rows, columns, &single, Symmetry::General);
        let complex = entries.iter().map(|(&k, v)| (k, Complex::new(v.0, v.1))).collect();
        round_trip::<Complex<f64>>("a.mtx", rows, columns, &complex, Symmetry::General);
    }

    #[test]
    fn symmetric_matrices_of_each_kind(entries in any_entries(43, 43)) {
        let mirrored = |symmetry: Symmetry| {
            let mut full = BTreeMap::new();
            for (&(i, j), &(re, im)) in &entries {
                let value = Complex::new(re, if im == 0.0 { 1.0 } else { im });
                match symmetry {
                    _ if i != j => {
                        full.insert((i, j), value);
                        full.insert((j, i), symmetry.mirror(value));
                    }
                    Symmetry::SkewSymmetric => {}
                    Symmetry::Hermitian => {
                        full.insert((i, i), Complex::new(re, 0.0));
                    }
                    _ => {
                        full.insert((i, i), value);
                    }
                }
            }
            // No matrix is only a diagonal, which would be symmetric.
            full.insert((41, 42), Complex::new(1.5, 2.5));
            full.insert((42, 41), symmetry.mirror(Complex::new(1.5, 2.5)));
            full
        };
        for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric, Symmetry::Hermitian] {
            round_trip("a.mtx", 43, 43, &mirrored(symmetry), symmetry);
        }
        for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            let real = mirrored(symmetry).into_iter().map(|(k, v)| (k, v.re)).collect();
            round_trip::<f64>("a.mtx", 43, 43, &real, symmetry);
        }
    }

    #[test]
    fn full_arrays(values in prop::collection::vec(any_value(), 1..60), columns in 1usize..4) {
        let folder = Folder::new();
        let rows = values.len() / columns;
        let values = &values[..rows * columns];
        for name in ["x.mtx", "x.mtx.gz"] {
            market::write_dense(folder.path(name), rows, columns, values, &WriteOptions::default()).unwrap();
            let back = market::read_dense::<f64>(folder.path(name), &ReadOptions::default()).unwrap();
            prop_assert_eq!((back.rows(), back.columns()), (rows, columns));
            prop_assert!(back.values().iter().map(|v| v.to_bits()).eq(values.iter().map(|v| v.to_bits())));
        }
    }
}

#[test]
fn almost_symmetric_is_general() {
    let symmetric =
        BTreeMap::from([((0, 0), 1.0), ((0, 1), 2.0), ((1, 0), 2.0), ((1, 2), 3.0), ((2, 1), 3.0)]);
    round_trip("a.mtx", 3, 3, &symmetric, Symmetry::Symmetric);
    for (place, value) in [((1, 0), f64::from_bits(2f64.to_bits() + 1)), ((0, 2), 1.0), ((2, 0), 1.0)] {
        let mut broken = symmetric.clone();
        broken.insert(place, value);
        round_trip("a.mtx", 3, 3, &broken, Symmetry::General);
    }
    for gone in [(0, 1), (2, 1)] {
        let mut broken = symmetric.clone();
        broken.remove(&gone);
        round_trip("a.mtx", 3, 3, &broken, Symmetry::General);
    }
    // Zero and minus zero are equal, but not the same.
    let zeros = BTreeMap::from([((0, 1), 0.0), ((1, 0), -0.0)]);
    round_trip("a.mtx", 2, 2, &zeros, Symmetry::SkewSymmetric);
    round_trip("a.mtx", 2, 2, &BTreeMap::from([((0, 0), -0.0)]), Symmetry::Symmetric);
    round_trip("a.mtx", 3, 3, &BTreeMap::<_, f64>::new(), Symmetry::Symmetric);
    round_trip("a.mtx", 0, 4, &BTreeMap::<_, f64>::new(), Symmetry::General);
}

#[test]
fn the_text_is_short_and_plain() {
    let folder = Folder::new();
    let path = folder.path("a.mtx");
    let mut triplets = Triplets::new(2, 3).unwrap();
    for (i, j, v) in [(1, 2, 4.0), (0, 0, -0.1), (1, 2, 1e-300)] {
        triplets.push(i, j, v).unwrap();
    }
    let options = WriteOptions::default().comment("made by a test\nin two lines");
    market::write_triplets(&path, &triplets, Symmetry::General, &options).unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "%%MatrixMarket matrix coordinate real general\n% made by a test\n% in two lines\n\
         2 3 3\n2 3 4\n1 1 -0.1\n2 3 1e-300\n"
    );
    assert!(market::write_triplets(&path, &triplets, Symmetry::Symmetric, &options).is_err());
    assert!(market::write_dense(&path, 2, 2, &[1.0], &options).is_err());
    assert_eq!(market::read_triplets::<f64>(&path, &ReadOptions::default()).unwrap().triplets(), &triplets);
}

/// More than one batch of chunks, so that their order matters.
#[test]
fn many_chunks_stay_in_order() {
    let n = 40_000;
    let entries: BTreeMap<_, _> = (0..n)
        .flat_map(|i| (0..16).map(move |k| ((i, i / 16 * 16 + k), (i * 16 + k) as f64 / 3.0)))
        .collect();
    round_trip("a.mtx", n, n, &entries, Symmetry::General);
    round_trip("a.mtx.gz", n, n, &entries, Symmetry::General);
}
