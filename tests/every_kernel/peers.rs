//! Windows between GPUs, with a single rank that exchanges data with itself.

use crate::random::Random;
use num_complex::Complex;
use residua::backend::cuda::{Nccl, PeerWindow, PeerWindows, unique_id};
use residua::backend::{
    CgSlot, Conversions, CsrPattern, HaloProduct, Inverse, KrylovSteps, Offsets, PartDirection, PartResidual,
};
use residua::{Backend, Csr, Cuda, Host, Real, Scalar};

fn case<T: Scalar>(b: &Cuda, n: usize, asked: usize) {
    let mut random = Random(n as u64 + 1);
    let own = PeerWindow::new(*b, 1, asked * size_of::<T>()).unwrap();
    let handle = own.handle().to_vec();
    let mut windows = PeerWindows::open(own, 0, &[handle]).unwrap();
    let starts = b.upload(vec![0, asked as u64]).unwrap();
    let values = random.vector::<T>(n);
    let x = b.upload(values.clone()).unwrap();
    let numbers = random.vec(asked, |random| random.below(n) as u32);
    let expected: Vec<T> = numbers.iter().map(|&number| values[number as usize]).collect();
    let numbers = b.upload(numbers).unwrap();
    for _ in 0..3 {
        // The sum over one rank is its own contribution, also with more scalars than one launch takes.
        let sums = random.vector::<T>(1 + n % 150);
        let mut there = b.upload(sums.clone()).unwrap();
        windows.all_sum(&mut there).unwrap();
        assert_eq!(b.download(&there).unwrap(), sums);

        windows.send(&starts, Some(&numbers), &x).unwrap();
        let mut halo = b.zeros::<T>(asked).unwrap();
        windows.receive(&starts, &mut halo).unwrap();
        assert_eq!(b.download(&halo).unwrap(), expected);

        // Every third row has up to three entries of the halo.
        let rows: Vec<u32> = (0..n as u32).step_by(3).collect();
        let (mut offsets, mut columns) = (vec![0], Vec::new());
        for _ in &rows {
            let more = 1 + random.below(3);
            let mut line = random.vec(more, |random| random.below(asked) as u32);
            line.sort_unstable();
            line.dedup();
            columns.extend(line);
            offsets.push(columns.len());
        }
        let entries = random.vector::<T>(columns.len());
        let weights: Vec<T::Real> = (0..n).map(|i| T::Real::from_f64(0.5 + (i % 5) as f64)).collect();
        // Without weights, and with them.
        let (mut y, mut share, mut weighted) = (values.clone(), T::one(), values.clone());
        for (k, &row) in rows.iter().enumerate() {
            let places = offsets[k]..offsets[k + 1];
            let sum = places.fold(T::zero(), |sum, e| sum + entries[e] * expected[columns[e] as usize]);
            y[row as usize] += sum + sum;
            weighted[row as usize] += (sum + sum) * T::from_real(weights[row as usize]);
            share += values[row as usize].conj() * (sum + sum);
        }
        let matrix =
            Csr::from_parts(rows.len(), asked, offsets, columns, entries).unwrap().into_backend(b).unwrap();
        let (rows, mut there) = (b.upload(rows).unwrap(), b.upload(values.clone()).unwrap());
        let mut xy = b.upload(vec![T::one()]).unwrap();
        windows.send(&starts, Some(&numbers), &x).unwrap();
        let alpha = T::from_f64(2.0);
        let halo = HaloProduct {
            rows: &*rows,
            matrix: matrix.parts(),
            alpha,
            d: None,
            y: &mut there,
            dot: Some((&*x, &mut *xy)),
            publish: false,
        };
        windows.add_rows(&starts, halo).unwrap();
        windows.send(&starts, Some(&numbers), &x).unwrap();
        let (d, mut also) = (b.upload(weights).unwrap(), b.upload(values.clone()).unwrap());
        let (d, y_of_d) = (Some(&*d), &mut *also);
        let matrix = matrix.parts();
        let halo = HaloProduct { rows: &*rows, matrix, alpha, d, y: y_of_d, dot: None, publish: false };
        windows.add_rows(&starts, halo).unwrap();
        let close =
            |a: T, b: T| (a - b).abs() <= T::Real::from_f64(1e-4) * (b.abs() + T::Real::from_f64(1.0));
        assert!(b.download(&there).unwrap().into_iter().zip(&y).all(|(a, &b)| close(a, b)));
        assert!(b.download(&also).unwrap().into_iter().zip(&weighted).all(|(a, &b)| close(a, b)));
        assert!(close(b.download(&xy).unwrap()[0], share));
    }
}

/// The fused steps of an iteration, with and without a window, compared with those of the host.
fn steps<T: Scalar>(b: &Cuda, n: usize, asked: usize, diagonal: bool) {
    let mut random = Random(n as u64 + 7);
    let own = PeerWindow::new(*b, 1, asked * size_of::<T>()).unwrap();
    let handle = own.handle().to_vec();
    let mut windows = PeerWindows::open(own, 0, &[handle]).unwrap();
    let starts = b.upload(vec![0, asked as u64]).unwrap();
    let numbers = random.vec(asked, |random| random.below(n) as u32);
    let sends = windows.sends::<T>(&numbers, n).unwrap().unwrap();
    let [mut p, q, mut r, mut x] = [0; 4].map(|_| random.vector::<T>(n));
    let weights: Vec<T::Real> = (0..n).map(|i| T::Real::from_f64(1.0 + (i % 7) as f64)).collect();
    let there = b.upload(weights.clone()).unwrap();
    let of_host = if diagonal { Inverse::Diagonal(&weights[..]) } else { Inverse::Identity };
    let of_device = if diagonal { Inverse::Diagonal(&*there) } else { Inverse::Identity };
    let mut state = CgSlot::to_start(T::Real::from_f64(1e-30)).to_vec();
    state[CgSlot::RHO] = T::Real::from_f64(0.5);
    let pq = [T::from_f64(3.0)];
    let mut on_device = [&p, &q, &r, &x].map(|vector| b.upload(vector.clone()).unwrap());
    let mut without = [&p, &q, &r, &x].map(|vector| b.upload(vector.clone()).unwrap());
    let (mut known, mut known_without) = (b.upload(state.clone()).unwrap(), b.upload(state.clone()).unwrap());
    let mut rz = [T::zero()];
    Host.cg_residual(of_host, &pq, &q, &mut r, &mut rz, &mut state).unwrap();
    Host.cg_direction(of_host, &r, &rz, &mut p, &mut x, &mut state).unwrap();

    // The end of an exchange without rows publishes p.q; data that was sent before is dropped first.
    let (mut xy, mut sums) = (b.upload(pq.to_vec()).unwrap(), b.zeros::<T>(2).unwrap());
    let empty = Csr::from_parts(0, asked, vec![0], Vec::new(), Vec::new()).unwrap().into_backend(b).unwrap();
    let none = b.zeros::<u32>(0).unwrap();
    let sent = b.upload(random.vector::<T>(asked)).unwrap();
    windows.send(&starts, None, &sent).unwrap();
    windows.drop_exchange::<T>().unwrap();
    windows.send(&starts, None, &sent).unwrap();
    {
        let [p, q, r, x] = &mut on_device;
        let dot = Some((&**p, &mut *xy));
        let halo = HaloProduct {
            rows: &*none,
            matrix: empty.parts(),
            alpha: T::one(),
            d: None,
            y: &mut **q,
            dot,
            publish: true,
        };
        windows.add_rows(&starts, halo).unwrap();
        let (inverse, state) = (of_device, &mut *known);
        let step = PartResidual { inverse, pq: None, q: &**q, r: &mut **r, sums: &mut *sums, state };
        windows.residual(step).unwrap();
        let (inverse, state) = (of_device, &mut *known);
        let step = PartDirection { inverse, r: &**r, sums: None, p: &mut **p, x: &mut **x, state };
        windows.direction(&starts, &sends, step).unwrap();
        let mut halo = b.zeros::<T>(asked).unwrap();
        windows.receive(&starts, &mut halo).unwrap();
        let new = b.download(&**p).unwrap();
        let expected: Vec<T> = numbers.iter().map(|&number| new[number as usize]).collect();
        assert_eq!(b.download(&halo).unwrap(), expected);
    }
    {
        let [p, q, r, x] = &mut without;
        let (inverse, state) = (of_device, &mut *known_without);
        let step = PartResidual { inverse, pq: Some(&*xy), q: &**q, r: &mut **r, sums: &mut *sums, state };
        b.cg_part_residual(step).unwrap();
        let (inverse, state) = (of_device, &mut *known_without);
        let step = PartDirection { inverse, r: &**r, sums: Some(&*sums), p: &mut **p, x: &mut **x, state };
        b.cg_part_direction(step).unwrap();
    }
    for (all, known) in [(&on_device, &known), (&without, &known_without)] {
        for (there, here) in all.iter().zip([&p, &q, &r, &x]) {
            let close =
                |a: T, b: T| (a - b).abs() <= T::Real::from_f64(1e-4) * (b.abs() + T::Real::from_f64(1.0));
            assert!(b.download(there).unwrap().into_iter().zip(here).all(|(a, &b)| close(a, b)));
        }
        for (there, &here) in b.download(known).unwrap().into_iter().zip(&state) {
            let (there, here): (f64, f64) = (there.to_f64(), here.to_f64());
            assert!((there - here).abs() <= 1e-4 * (1.0 + here.abs()));
        }
    }
}

pub fn one_rank(b: &Cuda) {
    for (n, asked) in [(1, 1), (1000, 333), (70_003, 4099)] {
        steps::<f64>(b, n, asked, n == 1000);
        steps::<f32>(b, n, asked, n != 1000);
        steps::<Complex<f64>>(b, n, asked, true);
        steps::<Complex<f32>>(b, n, asked, false);
    }
    case::<f64>(b, 1, 1);
    case::<f64>(b, 1000, 333);
    case::<f32>(b, 70, 5);
    case::<Complex<f64>>(b, 300, 64);
    case::<Complex<f32>>(b, 20, 7);
    // No entries to send, and none to receive.
    let own = PeerWindow::new(*b, 1, 0).unwrap();
    let handle = own.handle().to_vec();
    let mut windows = PeerWindows::open(own, 0, &[handle]).unwrap();
    let starts = b.upload(vec![0_u64, 0]).unwrap();
    let mut none = b.zeros::<f64>(0).unwrap();
    windows.send(&starts, None, &none).unwrap();
    windows.receive(&starts, &mut none).unwrap();
    b.synchronize().unwrap();
    // Bits stay as they are if no other rank has any.
    for count in [0, 1, 5000] {
        let own = PeerWindow::new(*b, 1, 4 * count).unwrap();
        let handle = own.handle().to_vec();
        let mut windows = PeerWindows::open(own, 0, &[handle]).unwrap();
        let words: Vec<u32> = (0..count as u32).map(|k| k.wrapping_mul(0x9e37_79b9)).collect();
        let mut there = b.upload(words.clone()).unwrap();
        for _ in 0..3 {
            windows.all_or(&mut there).unwrap();
        }
        assert_eq!(b.download(&there).unwrap(), words);
        let mut many = b.zeros(count + 100).unwrap();
        assert!(windows.all_or(&mut many).is_err(), "more words than room");
    }
    // The sum by NCCL, if it is available.
    match unique_id() {
        Ok(name) => {
            let mut nccl = Nccl::join(*b, &name, 0, 1).unwrap();
            let mut sums = b.upload(vec![1.5, -2.0, 0.25]).unwrap();
            nccl.all_sum(&mut sums).unwrap();
            assert_eq!(b.download(&sums).unwrap(), [1.5, -2.0, 0.25]);
        }
        Err(error) => println!("SKIPPED peers_add: {error}"),
    }
}

/// Kernels that cannot be launched here.
pub fn without() -> Vec<(&'static str, &'static str)> {
    if unique_id().is_ok() { Vec::new() } else { vec![("peers.cu", "peers_add")] }
}

/// Rows that a rank divides into its own columns and the others, compared with the host.
pub fn rows_of_a_rank(b: &Cuda) {
    fn case<T: Scalar>(b: &Cuda, rows: usize, columns: usize, lengths: usize, wide: bool) {
        let mut random = Random(rows as u64 + 3);
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            // Most rows have columns around the diagonal; every 50th has some anywhere, so that whole blocks of rows
            // stay within the own columns and others do not.
            let any = row % 50 == 0 && row / 1000 % 2 == 0;
            let mut line = random.vec(lengths, |random| {
                if any { random.below(columns) as u32 } else { ((row + random.below(40)) % columns) as u32 }
            });
            line.sort_unstable();
            line.dedup();
            line.truncate(random.below(lengths + 1));
            indices.extend(line);
            offsets.push(indices.len());
        }
        let values = random.vector::<T>(indices.len());
        let a = Csr::from_parts(rows, columns, offsets, indices, values).unwrap();
        let there = a.to_backend(b).unwrap();
        for (own, mine) in [
            (0..rows, 0..columns),
            (0..rows, 300..columns / 2),
            (rows / 3..rows / 2, 0..rows / 2),
            (5..5, 0..9),
        ] {
            let here = divided(&Host, &a, own.clone(), mine.clone(), wide);
            let device = divided(b, &there, own, mine, wide);
            assert!(here == device, "{rows} rows of {}", T::NAME);
        }
    }
    /// Counts, offsets, columns and values of the own columns, and columns and values of the others.
    type Divided<T> = (Vec<u32>, Vec<usize>, [Vec<u32>; 2], [Vec<T>; 2]);
    fn divided<T: Scalar, B: Conversions>(
        b: &B,
        a: &Csr<T, B>,
        rows: std::ops::Range<usize>,
        own: std::ops::Range<usize>,
        wide: bool,
    ) -> Divided<T> {
        let parts = a.parts();
        let pattern = CsrPattern {
            rows: parts.rows,
            columns: parts.columns,
            offsets: parts.offsets,
            indices: parts.indices,
        };
        let mut counts = b.buffer(rows.len()).unwrap();
        b.entries_beyond(pattern, rows.clone(), own.clone(), &mut counts).unwrap();
        let mut before = b.buffer::<u64>(rows.len() + 1).unwrap();
        b.exclusive_scan(&counts, &mut before).unwrap();
        let before_host = b.download(&before).unwrap();
        let all = a.parts().offsets.download(b).unwrap();
        let others = before_host[rows.len()] as usize;
        let owned = all[rows.end] - all[rows.start] - others;
        let mut offsets = if wide {
            Offsets::Wide(b.buffer(rows.len() + 1).unwrap())
        } else {
            Offsets::Lower(b.buffer(rows.len() + 1).unwrap())
        };
        let (mut indices, mut values) = (b.buffer(owned).unwrap(), b.buffer(owned).unwrap());
        let (mut columns, mut numbers) = (b.buffer(others).unwrap(), b.buffer(others).unwrap());
        let ours = (&mut offsets, &mut *indices, &mut *values);
        b.split_columns(a.parts(), rows, own, &before, ours, (&mut columns, &mut numbers)).unwrap();
        (
            b.download(&counts).unwrap(),
            offsets.download(b).unwrap(),
            [b.download(&indices).unwrap(), b.download(&columns).unwrap()],
            [b.download(&values).unwrap(), b.download(&numbers).unwrap()],
        )
    }
    case::<f64>(b, 3001, 3100, 7, false);
    case::<f32>(b, 700, 900, 90, true);
    case::<Complex<f64>>(b, 513, 800, 5, false);
    // Planes of a grid that are made on the device.
    let whole = b.poisson3d::<f64>(7, 6, 9).unwrap().to_host(b).unwrap();
    for planes in [0..9, 0..4, 3..5, 8..9, 2..2] {
        let some = b.poisson3d_planes::<f64>([7, 6, 9], planes.clone()).unwrap().to_host(b).unwrap();
        assert_eq!((some.rows(), some.columns()), (42 * planes.len(), whole.rows()));
        assert!((0..some.rows()).all(|row| some.row(row) == whole.row(42 * planes.start + row)));
    }
}
