//! Windows between GPUs, with one rank that tells itself what it would tell others.

use crate::random::Random;
use num_complex::Complex;
use residua::backend::HaloProduct;
use residua::backend::cuda::{PeerWindow, PeerWindows};
use residua::{Backend, Csr, Cuda, Scalar};

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
        // The sum over one rank is what it brings, more scalars than one launch takes, too.
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
        let (mut y, mut share) = (values.clone(), T::one());
        for (k, &row) in rows.iter().enumerate() {
            let places = offsets[k]..offsets[k + 1];
            let sum = places.fold(T::zero(), |sum, e| sum + entries[e] * expected[columns[e] as usize]);
            y[row as usize] += sum + sum;
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
            y: &mut there,
            dot: Some((&*x, &mut *xy)),
        };
        windows.add_rows(&starts, halo).unwrap();
        let close =
            |a: T, b: T| (a - b).abs() <= T::Real::from_f64(1e-4) * (b.abs() + T::Real::from_f64(1.0));
        assert!(b.download(&there).unwrap().into_iter().zip(&y).all(|(a, &b)| close(a, b)));
        assert!(close(b.download(&xy).unwrap()[0], share));
    }
}

pub fn one_rank(b: &Cuda) {
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
}
