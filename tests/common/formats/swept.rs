//! Bands swept in the order of columns, on any backend: what every step must hold to, and what is refused.

use super::cases::{on, ragged, with_lengths};
use crate::random::Random;
use residua::backend::{
    Conversions, Gemv, Op, Products, SWEPT_STEP, SweptArrays, SweptParts, swept_row_bits,
};
use residua::matrix::{Csr, Swept};
use residua::{Error, Host};

/// Matrices that fill steps, close them by their reach, and make entries of a row wait for later ones.
pub fn awkward() -> Vec<(&'static str, Csr<f64>)> {
    let by_rows = |columns: usize, rows: Vec<Vec<u32>>| {
        let mut offsets = vec![0];
        rows.iter().for_each(|row| offsets.push(offsets.last().unwrap() + row.len()));
        let indices: Vec<u32> = rows.concat();
        let values = (0..indices.len()).map(|k| (k % 9) as f64 - 4.0).collect();
        Csr::from_parts(rows.len(), columns, offsets, indices, values).unwrap()
    };
    let far = (1 << 21) + 1;
    let mut random = Random(51);
    let mut scattered = |rows: usize, each: usize, columns: usize| {
        let row = |random: &mut Random| {
            let line: std::collections::BTreeSet<u32> =
                (0..each).map(|_| random.below(columns) as u32).collect();
            line.into_iter().collect()
        };
        (0..rows).map(|_| row(&mut random)).collect::<Vec<Vec<u32>>>()
    };
    vec![
        ("one column of all rows", by_rows(3, vec![vec![1]; 9000])),
        ("two columns far apart", by_rows(200_000, (0..3000).map(|row| vec![row % 2 * 150_000]).collect())),
        ("the same columns in all rows", by_rows(40, vec![(0..40).collect(); 3000])),
        (
            "columns farther apart than a step reaches",
            by_rows(4 * far as usize, vec![vec![0, far, 2 * far, 4 * far - 1]; 70]),
        ),
        // More steps in a band of 4096 rows than a block counts at a time on a device.
        ("the longest row among short ones", {
            let mut rows = scattered(2500, 3, 200_000);
            rows[1200] = (0..4096).map(|k| 40 * k).collect();
            by_rows(200_000, rows)
        }),
        ("columns anywhere", by_rows(300_000, scattered(20_000, 9, 300_000))),
        // As many bands as the largest devices have multiprocessors, where entries are written together.
        ("many bands", {
            let row = |row: u32| {
                (0..if row.is_multiple_of(16) { 3 } else { 1 }).map(|k| row % 199_999 + 40_000 * k).collect()
            };
            by_rows(300_000, (0..280_000).map(row).collect())
        }),
        // More of a band's entries than a block of a device gathers, where the mean is few.
        ("most entries in one band", {
            let mut rows = scattered(64, 600, 40_000);
            rows.extend((0..5000).map(|row| vec![row * 8]));
            by_rows(40_000, rows)
        }),
        // More rows in a tile than a block of a device has marks for, where as many steps as a long row has entries are
        // marked.
        ("long rows among many short ones", {
            let row = |row: u32| match row % 400 {
                7 => (0..700).map(|k| 10 * k).collect(),
                _ => vec![row],
            };
            by_rows(8192, (0..8192).map(row).collect())
        }),
        // In the order of columns, which is nearly that of rows, so that a search for rows goes wrong where a device
        // cuts a band between two.
        ("pairs of rows the other way round", {
            let row = |row: u32| (0..9).map(|k| 144 * ((row + 1) ^ 1) + 16 * k).collect();
            by_rows(144 * 8194, (0..8192).map(row).collect())
        }),
        ("long rows, far apart", {
            let run = |row: u32| (row * 400_000..row * 400_000 + 700).collect();
            by_rows(1 << 22, (0..10).map(run).collect())
        }),
        ("steps of runs that end out of reach", {
            let run = |row: u32| (row * 800..row * 800 + 9).collect();
            by_rows(1 << 22, (0..5000).map(run).collect())
        }),
    ]
}

/// Every entry is in one step, steps hold to their limits, and the matrix comes back bit for bit; products are exact
/// where sums are.
pub fn steps_hold<B: Products + Conversions>(backend: &B) {
    steps_hold_in(backend, awkward(), &[2048, 4096], 3);
    for (name, host) in ragged::<f64>() {
        let height = backend.band_height::<f64>(host.rows());
        check(backend, name, &host, height, &swept(backend, &on(backend, &host), height).0);
    }
    refused(backend);
}

/// The same of some matrices, in bands as high as the backend makes them, and of other heights; so many products of
/// each.
pub fn steps_hold_in<B: Products + Conversions>(
    backend: &B,
    matrices: Vec<(&str, Csr<f64>)>,
    heights: &[usize],
    products: usize,
) {
    for (name, host) in matrices {
        let a = on(backend, &host);
        // Small integers: any order gives the same sum.
        let x: Vec<f64> = (0..host.columns()).map(|j| (j % 7) as f64 - 3.0).collect();
        let mut want = vec![0.0; host.rows()];
        host.product(&Host, 2.0, &x, 0.0, &mut want).unwrap();
        let x = backend.upload(x).unwrap();
        let own = backend.band_height::<f64>(host.rows());
        for height in std::iter::once(own).chain(heights.iter().copied()) {
            let (arrays, lengths) = swept(backend, &a, height);
            check(backend, name, &host, height, &arrays);
            same_here(backend, &format!("{name}, {height}"), &host, height, (&arrays, &lengths));
            comes_back(backend, name, &host, height, &arrays);
            let mut y = backend.upload(vec![f64::NAN; host.rows()]).unwrap();
            for _ in 0..products {
                let form = Gemv { op: Op::None, alpha: 2.0, x: &*x, beta: 0.0, y: &mut *y };
                backend.swept(parts(&host, height, &arrays), form).unwrap();
                assert_eq!(backend.download(&*y).unwrap(), want, "{name}, {height}");
            }
        }
    }
}

/// A matrix in bands of some height, and the lengths of its rows.
fn swept<B: Conversions>(backend: &B, a: &Csr<f64, B>, height: usize) -> (SweptArrays<f64, B>, B::Vec<u32>) {
    let mut lengths = backend.buffer(a.rows()).unwrap();
    let arrays = backend.csr_to_swept(a.parts(), height, &mut lengths).unwrap();
    (arrays, lengths)
}

fn parts<'a, B: Conversions>(
    a: &Csr<f64>,
    height: usize,
    of: &'a SweptArrays<f64, B>,
) -> SweptParts<'a, f64, B> {
    let (rows, columns) = (a.rows(), a.columns());
    let SweptArrays { firsts, starts, bases, places, values } = of;
    SweptParts { rows, columns, height, firsts, starts, bases, places, values }
}

/// The same arrays as on the host.
fn same_here<B: Conversions>(
    backend: &B,
    name: &str,
    a: &Csr<f64>,
    height: usize,
    (there, lengths): (&SweptArrays<f64, B>, &B::Vec<u32>),
) {
    let (here, lengths_here) = swept(&Host, a, height);
    assert_eq!(lengths_here, backend.download(&**lengths).unwrap(), "{name}: lengths of rows");
    assert_eq!(here.firsts, backend.download(&*there.firsts).unwrap(), "{name}: first steps");
    assert_eq!(here.starts, backend.download(&*there.starts).unwrap(), "{name}: starts");
    assert_eq!(here.bases, backend.download(&*there.bases).unwrap(), "{name}: bases");
    assert_eq!(here.places, backend.download(&*there.places).unwrap(), "{name}: places");
    assert_eq!(here.values, backend.download(&*there.values).unwrap(), "{name}: values");
}

fn comes_back<B: Conversions>(
    backend: &B,
    name: &str,
    a: &Csr<f64>,
    height: usize,
    of: &SweptArrays<f64, B>,
) {
    let there = on(backend, a);
    let (mut columns, mut values) =
        (backend.buffer(a.nonzeros()).unwrap(), backend.buffer(a.nonzeros()).unwrap());
    backend.swept_to_csr(parts(a, height, of), there.parts().offsets, &mut columns, &mut values).unwrap();
    assert_eq!(backend.download(&*columns).unwrap(), a.parts().indices, "{name}: columns, {height}");
    assert_eq!(backend.download(&*values).unwrap(), a.parts().values, "{name}: values, {height}");
}

fn check<B: Conversions>(backend: &B, name: &str, a: &Csr<f64>, height: usize, of: &SweptArrays<f64, B>) {
    let (firsts, starts) = (backend.download(&*of.firsts).unwrap(), backend.download(&*of.starts).unwrap());
    let (bases, places) = (backend.download(&*of.bases).unwrap(), backend.download(&*of.places).unwrap());
    assert_eq!(firsts.len(), a.rows().div_ceil(height) + 1, "{name}");
    assert_eq!(starts.len(), bases.len() + 1, "{name}");
    assert_eq!((starts[0], *starts.last().unwrap() as usize), (0, a.nonzeros()), "{name}");
    let bits = swept_row_bits(height);
    for band in firsts.windows(2) {
        // The column of the entry that a row had last.
        let mut last = vec![None; height];
        for step in band[0] as usize..band[1] as usize {
            let entries = &places[starts[step] as usize..starts[step + 1] as usize];
            assert!((1..=SWEPT_STEP).contains(&entries.len()), "{name}: {} entries in a step", entries.len());
            let mut rows: Vec<u32> = entries.iter().map(|place| place & ((1 << bits) - 1)).collect();
            rows.sort_unstable();
            assert!(rows.windows(2).all(|pair| pair[0] < pair[1]), "{name}: a row twice in step {step}");
            for place in entries {
                let (row, column) = ((place & ((1 << bits) - 1)) as usize, bases[step] + (place >> bits));
                assert!(last[row] < Some(column), "{name}: row {row} out of order in step {step}");
                last[row] = Some(column);
            }
        }
    }
}

fn refused<B: Products + Conversions>(backend: &B) {
    let a = on(backend, &with_lengths::<f64>(5000, &[4097, 3], 52));
    match Swept::from_csr(backend, &a) {
        Err(Error::Refused { format: "swept", reason }) => {
            assert_eq!(reason, "a row of 4097 entries takes as many steps");
        }
        other => panic!("{other:?}"),
    }
}
