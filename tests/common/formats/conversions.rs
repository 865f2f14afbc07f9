//! Conversions from CSR to every format and back.

use super::cases::{back, bits, entries, on, ragged, with_lengths};
use num_complex::Complex;
use residua::backend::{CompressedBody, Conversions, Products};
use residua::matrix::{self, Compressed, Csr, Sell};
use residua::scalar::Scalar;
use residua::{Error, Host};

/// Every format, and SELL with several slice heights, for every width of values.
pub fn round_trip_cases<B: Products + Conversions>(backend: &B) {
    round_trips::<f64, _>(backend, ragged());
    round_trips::<f32, _>(backend, ragged());
    round_trips::<Complex<f64>, _>(backend, ragged());
}

fn is_balanced<B: Conversions>(backend: &B, a: &Csr<f64, B>) -> bool {
    matches!(Compressed::from_csr(backend, a).unwrap().parts().body, CompressedBody::Balanced(..))
}

/// Converts these matrices to each format and back.
pub fn round_trips<T: Scalar, B: Products + Conversions>(backend: &B, matrices: Vec<(&str, Csr<T>)>) {
    for (name, a) in matrices {
        let device = on(backend, &a);
        let lengths = device.row_lengths(backend).unwrap();
        for format in matrix::formats::<T, B, T>() {
            let case = format!("{} of {name}", format.name());
            let storage = format.storage(&lengths);
            let stored = match format.build(backend, &device) {
                Ok(stored) => stored,
                Err(Error::Refused { reason, .. }) => {
                    assert_eq!(storage.refused.as_deref(), Some(reason.as_str()), "{case}");
                    continue;
                }
                Err(other) => panic!("{case}: {other}"),
            };
            assert_eq!(storage.refused, None, "{case}");
            let agrees =
                |estimate: u64, real: u64| if storage.exact { estimate == real } else { estimate >= real };
            assert!(agrees(storage.bytes, stored.storage_bytes() as u64), "{case}: {storage:?}");
            assert!(agrees(storage.padding, stored.padding() as u64), "{case}: {storage:?}");
            assert_eq!((stored.rows(), stored.columns()), (a.rows(), a.columns()), "{case}");
            assert_eq!(stored.nonzeros(), a.nonzeros(), "{case}");
            assert_eq!(stored.format(), format.name());
            let again = back(backend, &stored.to_csr(backend).unwrap());
            assert_eq!(entries(&again).len(), entries(&a).len(), "{case}");
            assert!(bits_of(&again) == bits_of(&a), "{case}: not the same matrix after the round trip");
        }
        for (height, window) in [(1, 1), (4, 1), (8, 8), (8, 64), (32, 32), (32, 1024), (7, 21), (8, 4096)] {
            match Sell::with_chunks(backend, &device, height, window) {
                Ok(sell) => assert!(bits_of(&back(backend, &sell.to_csr(backend).unwrap())) == bits_of(&a)),
                Err(Error::Refused { .. }) => {}
                Err(other) => panic!("sell-{height}-{window} of {name}: {other}"),
            }
        }
    }
}

pub fn bits_of<T: Scalar>(a: &Csr<T>) -> (String, String) {
    (format!("{:?}", a.parts().offsets), format!("{:?} {}", a.parts().indices, bits(a.parts().values)))
}

/// The transpose is compared with a sort of all entries, and the transpose of the transpose with the matrix.
pub fn transposes<B: Conversions>(backend: &B) {
    transposes_of(backend, ragged());
    let many = with_lengths::<f64>(30_000, &[83; 30_000], 5);
    for (name, a) in [("symmetric", band(3000, usize::MAX)), ("nearly", band(3000, 2970)), ("many", many)] {
        transposed_as_on_host(backend, name, &a);
    }
    // Columns with more entries than a device processes at a time, alone and among short ones.
    transposed_as_on_host(backend, "three long columns", &with_lengths::<f64>(3, &[2; 30_000], 6));
    for long in [0, 10_000, 20_000] {
        transposed_as_on_host(backend, "a long column", &spine(20_000, long));
    }
    transposed_as_on_host(backend, "many, narrow", &with_lengths::<f32>(30_000, &[83; 30_000], 5));
    transposes_of_types(backend);
    // More columns than entries, of which there are more than can be sorted at a time.
    transposed_as_on_host(backend, "wide", &with_lengths::<f64>(1_300_000, &[40; 30_000], 8));
}

/// Columns of lengths from zero to several times what a device processes at a time, and types of values that leave more
/// or less room for sorting.
pub fn transposes_of_types<B: Conversions>(backend: &B) {
    fn columns<T: Scalar>() -> Csr<T> {
        let lengths: Vec<usize> = (0..60).map(|j| j * 1117 % 3001 * usize::from(j % 8 != 3)).collect();
        with_lengths(3000, &lengths, 7).transpose(&Host).unwrap()
    }
    transposed_as_on_host(backend, "columns of many lengths", &columns::<f32>());
    transposed_as_on_host(backend, "columns of many lengths", &columns::<f64>());
    transposed_as_on_host(backend, "columns of many lengths", &columns::<Complex<f64>>());
    transposed_as_on_host(backend, "more columns than entries", &with_lengths::<f32>(5000, &[3; 300], 8));
}

/// Enough entries for the sort to use the tiles for large inputs.
pub fn large_transposes<B: Conversions>(backend: &B) {
    fn rows<T: Scalar>() -> Csr<T> {
        let lengths: Vec<usize> = (0..250_000).map(|i| i * 7919 % 21).collect();
        with_lengths(180_000, &lengths, 9)
    }
    transposed_as_on_host(backend, "2.5 million entries", &rows::<f32>());
    transposed_as_on_host(backend, "2.5 million entries", &rows::<f64>());
}

fn transposed_as_on_host<T: Scalar, B: Conversions>(backend: &B, name: &str, a: &Csr<T>) {
    let (here, there) = (a.transpose(&Host).unwrap(), on(backend, a).transpose(backend).unwrap());
    let (here, there) = (here.parts(), back(backend, &there));
    assert!(here.indices == there.parts().indices && here.values == there.parts().values, "{name}");
}

/// A matrix of `n` rows and n + 1 columns with entries on the diagonal and in one column.
fn spine(n: usize, column: u32) -> Csr<f64> {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for i in 0..n as u32 {
        indices.extend([i.min(column), i.max(column)]);
        if i == column {
            indices.pop();
        }
        offsets.push(indices.len());
    }
    let values = (0..indices.len()).map(|k| k as f64).collect();
    Csr::from_parts(n, n + 1, offsets, indices, values).unwrap()
}

/// A symmetric pattern with different values on both sides of the diagonal, except that in row `skipped` one entry
/// right of the diagonal breaks the symmetry.
pub fn band(n: usize, skipped: usize) -> Csr<f64> {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for i in 0..n {
        let line = (0..n as u32).filter(|&j| [0, 1, 40].contains(&j.abs_diff(i as u32)));
        indices.extend(line.filter(|&j| i != skipped || j != skipped as u32 + 1));
        offsets.push(indices.len());
    }
    let values = (0..indices.len()).map(|k| k as f64).collect();
    Csr::from_parts(n, n, offsets, indices, values).unwrap()
}

/// Checks the transposes of some matrices, and the transposes of these.
pub fn transposes_of<B: Conversions>(backend: &B, matrices: Vec<(&str, Csr<f64>)>) {
    for (name, a) in matrices {
        let device = on(backend, &a);
        let t = device.transpose(backend).unwrap();
        assert_eq!((t.rows(), t.columns()), (a.columns(), a.rows()));
        let mut swapped: Vec<_> = entries(&a).into_iter().map(|(i, j, v)| (j, i, v)).collect();
        swapped.sort_by_key(|&(i, j, _)| (i, j));
        assert_eq!(entries(&back(backend, &t)), swapped, "{name}");
        let again = t.transpose(backend).unwrap();
        assert!(bits_of(&back(backend, &again)) == bits_of(&a), "{name}");
    }
}

/// Shapes for which work is divided differently: many rows, one long row among many, few long rows. Formats must equal
/// the host's, array by array, and have the same bits each time.
pub fn large_cases<B: Products + Conversions>(backend: &B) {
    let mut giant = vec![3; 20_000];
    giant[7_777] = 15_000;
    let uneven: Vec<usize> = (0..30_000).map(|i| (i * 7919) % 23).collect();
    let cases = [
        ("giant row", with_lengths::<f64>(20_000, &giant, 1)),
        ("uneven", with_lengths::<f64>(5_000, &uneven, 2)),
        ("three long rows", with_lengths::<f64>(40_000, &[30_000, 29_999, 12_345], 3)),
    ];
    for (name, a) in cases {
        let device = on(backend, &a);
        for format in matrix::formats::<f64, B, f64>() {
            let host = match matrix::build::<f64, Host, f64>(&Host, format.name(), &a) {
                Ok(host) => host,
                Err(_) => {
                    assert!(format.build(backend, &device).is_err(), "{} of {name}", format.name());
                    continue;
                }
            };
            for _ in 0..2 {
                let stored = format.build(backend, &device).unwrap();
                let padding = match format.name() {
                    // The default slice height of SELL depends on the backend, so the host's SELL is built with the
                    // same height.
                    Sell::<f64>::NAME => {
                        let there = Sell::from_csr(backend, &device).unwrap();
                        Sell::with_chunks(&Host, &a, there.height(), there.window()).unwrap().padding()
                    }
                    // A device may use tiles of entries, which the host does not: then the padding differs.
                    Compressed::<f64>::NAME if is_balanced(backend, &device) => stored.padding(),
                    _ => host.padding(),
                };
                assert_eq!(stored.padding(), padding, "{} of {name}", format.name());
                let again = back(backend, &stored.to_csr(backend).unwrap());
                assert!(bits_of(&again) == bits_of(&a), "{} of {name}", format.name());
            }
        }
        same_arrays(backend, &a, &device, name);
    }
    for (name, a) in ragged::<f32>() {
        same_arrays(backend, &a, &on(backend, &a), name);
    }
}

/// The arrays of each format, compared with the host's.
fn same_arrays<T: Scalar, B: Conversions>(backend: &B, a: &Csr<T>, device: &Csr<T, B>, name: &str) {
    use residua::backend::OffsetsRef;
    use residua::matrix::{Coo, Csc, Dia, Ell, Hybrid, Jds};
    fn numbers<B: Conversions>(backend: &B, offsets: OffsetsRef<'_, B>) -> Vec<u64> {
        match offsets {
            OffsetsRef::Lower(o) => backend.download(o).unwrap().into_iter().map(u64::from).collect(),
            OffsetsRef::Wide(o) => backend.download(o).unwrap(),
        }
    }
    macro_rules! same {
        ($what:literal, $here:expr, $there:expr, $($array:ident),*) => {
            $(assert!(
                bits(&backend.download($there.$array).unwrap()) == bits($here.$array),
                "{} of {name}: {}", $what, stringify!($array)
            );)*
        };
    }
    let (coo, host) = (Coo::from_csr(backend, device).unwrap(), Coo::from_csr(&Host, a).unwrap());
    same!("coo", host.parts(), coo.parts(), row_indices, column_indices, values);
    let (csc, host) = (Csc::from_csr(backend, device).unwrap(), Csc::from_csr(&Host, a).unwrap());
    same!("csc", host.transpose_parts(), csc.transpose_parts(), indices, values);
    if let (Ok(ell), Ok(host)) = (Ell::from_csr(backend, device), Ell::from_csr(&Host, a)) {
        same!("ell", host.parts(), ell.parts(), lengths, indices, values);
    }
    if let (Ok(dia), Ok(host)) = (Dia::whole_from_csr(backend, device), Dia::whole_from_csr(&Host, a)) {
        same!("dia", host.parts(), dia.parts(), distances);
        assert!(back(backend, &dia.to_csr(backend).unwrap()) == *a, "dia of {name}");
        let (here, there) = (host.parts().values, backend.download(dia.parts().values).unwrap());
        assert!(here.iter().zip(&there).all(|(a, b)| a.bits() == b.bits()), "dia of {name}: values");
    }
    let (hybrid, host) = (Hybrid::from_csr(backend, device).unwrap(), Hybrid::from_csr(&Host, a).unwrap());
    same!("hybrid's head", host.head().parts(), hybrid.head().parts(), lengths, indices, values);
    same!("hybrid's tail", host.tail().parts(), hybrid.tail().parts(), row_indices, column_indices, values);
    let (jds, host) = (Jds::from_csr(backend, device).unwrap(), Jds::from_csr(&Host, a).unwrap());
    same!("jds", host.parts(), jds.parts(), indices, values);
    assert_eq!(numbers(backend, jds.parts().offsets), numbers(&Host, host.parts().offsets), "jds of {name}");
    for (height, window) in [(32, 1), (16, 1024), (16, 4096), (7, 21), (1, 1)] {
        let here = Sell::with_chunks(&Host, a, height, window);
        let there = Sell::with_chunks(backend, device, height, window);
        let (Ok(here), Ok(there)) = (here, there) else { continue };
        same!("sell", here.parts(), there.parts(), lengths, values);
        let (here, there) = (here.parts(), there.parts());
        // Backends may put different column indices into padding, so only real entries are compared.
        let starts = numbers(&Host, here.offsets);
        let columns = backend.download(there.indices).unwrap();
        for (position, &length) in here.lengths.iter().enumerate() {
            for k in 0..length as usize {
                let at = starts[position / height] as usize + k * height + position % height;
                assert_eq!(columns[at], here.indices[at], "sell of {name}: entry {k} at position {position}");
            }
        }
        assert_eq!(numbers(backend, there.offsets), numbers(&Host, here.offsets), "sell of {name}");
        let there = there.order.map(|order| backend.download(order.as_slice()).unwrap());
        assert_eq!(there.as_deref(), here.order.map(|order| order.as_slice()), "sell of {name}");
    }
}
