//! Cases for every backend: memory, recordings and mailboxes, vector operations, products. Each is compared with a
//! sequential twin.

use crate::random::Random;
use num_complex::Complex;
use residua::Error;
use residua::backend::{
    Backend, CsrParts, Gemv, Mailbox, OffsetsRef, Op, Products, Replay, RowShape, VectorOps,
};
use residua::scalar::{Element, Promote, Real, Scalar};

/// Lengths around the borders of vectors, warps, blocks, tiles and staging buffers, and a prime.
const LENGTHS: [usize; 12] = [0, 1, 2, 3, 31, 33, 255, 1025, 8191, 8193, 100_003, 300_007];

fn up<T: Element, B: Backend>(b: &B, x: &[T]) -> B::Vec<T> {
    b.upload(x.to_vec()).unwrap()
}

fn down<T: Element, B: Backend>(b: &B, x: &B::Slice<T>) -> Vec<T> {
    b.download(x).unwrap()
}

/// Calls a macro with its own arguments, followed by the names of all cases.
#[allow(unused_macros)] // not every test program uses this list
macro_rules! each_case {
    ($then:ident $($words:tt)*) => {
        $then! {
            $($words)*
            memory_cases,
            part_cases,
            recording_cases,
            mailbox_cases,
            vector_cases,
            interleaved_cases,
            product_cases,
            infinite_entries_stay_in_their_rows,
            refusals
        }
    };
}
#[allow(unused_imports)] // as above
pub(crate) use each_case;

/// Runs all cases.
pub fn all_cases<B: VectorOps + Products>(b: &B) {
    macro_rules! run {
        ($($name:ident),*) => { $($name(b);)* };
    }
    each_case!(run);
}

pub fn memory_cases<B: Backend>(b: &B) {
    fn round_trips<T: Element, B: Backend>(b: &B, value: impl Fn(u64) -> T) {
        for n in LENGTHS {
            let data: Vec<T> = (0..n as u64).map(&value).collect();
            let mut x = up(b, &data);
            assert_eq!(B::len::<T>(&x), n);
            assert_eq!(down(b, &x), data, "{} of {n}", T::NAME);
            let mut copy = b.zeros::<T>(n).unwrap();
            assert!(down(b, &copy).iter().all(|v| *v == T::default()), "zeros of {n} {}", T::NAME);
            b.copy(&x, &mut copy).unwrap();
            b.fill(value(77), &mut x).unwrap();
            assert_eq!(down(b, &copy), data, "copy of {n} {}", T::NAME);
            assert!(down(b, &x).iter().all(|v| *v == value(77)), "fill of {n} {}", T::NAME);
            b.write(&data, &mut x).unwrap();
            let mut back = vec![T::default(); n];
            b.read(&x, &mut back).unwrap();
            assert_eq!(back, data);
        }
    }
    round_trips(b, |i| (i * 37) as u8);
    round_trips(b, |i| (i * 3701) as u16);
    round_trips(b, |i| (i * 370_001) as u32);
    round_trips(b, |i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    round_trips(b, |i| -(i as i32));
    round_trips(b, |i| i as f32 * 0.5);
    round_trips(b, |i| i as f64 * 0.1);
    round_trips(b, |i| Complex::new(i as f32, -(i as f32)));
    round_trips(b, |i| Complex::new(i as f64, 0.25 * i as f64));
}

pub fn part_cases<B: Backend>(b: &B) {
    let data: Vec<u16> = (0..10_000).collect();
    let mut x = up(b, &data);
    assert_eq!(down(b, B::part::<u16>(&x, 13..4099)), &data[13..4099]);
    assert_eq!(b.value(B::part::<u16>(&x, 77..78)).unwrap(), 77);
    assert_eq!(B::len::<u16>(B::part::<u16>(&x, 10_000..10_000)), 0);
    b.fill(7, B::part_mut::<u16>(&mut x, 3..9)).unwrap();
    let (low, high) = B::split_mut::<u16>(&mut x, 5000);
    b.copy(B::part::<u16>(low, 0..12), B::part_mut::<u16>(high, 1..13)).unwrap();
    let mut twin = data;
    twin[3..9].fill(7);
    twin.copy_within(0..12, 5001);
    assert_eq!(down(b, &x), twin);
}

/// Waits for the next message.
fn wait<T: Element, B: Backend>(b: &B, mailbox: &B::Mailbox<T>, len: usize) -> Vec<T> {
    let mut message = vec![T::default(); len];
    assert!(mailbox.next(b, true, &mut message).unwrap());
    message
}

pub fn recording_cases<B: VectorOps>(b: &B) {
    let n = 1000;
    let mut x = up(b, &vec![1.0_f64; n]);
    let mut y = b.zeros::<f64>(n).unwrap();
    let mut sum = b.zeros::<f64>(1).unwrap();
    let (mailbox, owned) = (b.mailbox::<f64>(1).unwrap(), up(b, &vec![0.5_f64; n]));
    {
        // The body owns a buffer, borrows others, and posts a value; recording does not run it.
        let mut step = b
            .record(|| {
                b.axpby(1.0, &owned, 1.0, &mut x)?;
                b.axpby(1.0, &x, 0.0, &mut y)?;
                b.dot(&y, &x, &mut sum)?;
                mailbox.post(b, &sum)
            })
            .unwrap();
        assert!(!mailbox.next(b, false, &mut [0.0]).unwrap());
        for turn in 1..=100 {
            step.replay().unwrap();
            if turn > B::QUEUE_DEPTH {
                let value = 1.0 + 0.5 * (turn - B::QUEUE_DEPTH) as f64;
                assert_eq!(wait(b, &mailbox, 1), [n as f64 * value * value]);
            }
        }
        for turn in 101 - B::QUEUE_DEPTH..=100 {
            let value = 1.0 + 0.5 * turn as f64;
            assert_eq!(wait(b, &mailbox, 1), [n as f64 * value * value]);
        }
    }
    assert_eq!(down(b, &x), vec![51.0; n]);
    assert_eq!(down(b, &y), vec![51.0; n]);
    // An error of a body is returned, and the backend remains usable.
    let refused = b.record(|| Err(Error::Unsupported("this body".into()))).map(|mut r| r.replay());
    assert!(matches!(refused, Err(_) | Ok(Err(_))));
    assert_eq!(down(b, &x), vec![51.0; n]);
}

pub fn mailbox_cases<B: Backend>(b: &B) {
    fn messages<T: Element, B: Backend>(b: &B, len: usize, value: impl Fn(usize) -> T) {
        let mailbox = b.mailbox::<T>(len).unwrap();
        let message = |round: usize| (0..len).map(|i| value(round * len + i)).collect::<Vec<T>>();
        assert!(!mailbox.next(b, false, &mut message(0)).unwrap());
        for round in 0..3 * (B::QUEUE_DEPTH + 1) {
            for depth in 0..=B::QUEUE_DEPTH {
                mailbox.post(b, &up(b, &message(10 * round + depth))).unwrap();
            }
            for depth in 0..=B::QUEUE_DEPTH {
                assert_eq!(wait(b, &mailbox, len), message(10 * round + depth));
            }
        }
        b.synchronize().unwrap();
        assert!(!mailbox.next(b, false, &mut message(0)).unwrap());
        assert!(
            mailbox.next(b, true, &mut message(0)).is_err(),
            "waiting for nothing is an error, not for ever"
        );
    }
    messages(b, 1, |i| i as f64);
    messages(b, 7, |i| i as u8);
    messages(b, 3, |i| i as u16);
    messages(b, 5, |i| Complex::new(i as f64, -1.0));
    messages(b, 300, |i| i as u32);
}

/// A number in double precision, in which the twins compute.
fn wide<T: Scalar>(x: T) -> Complex<f64> {
    Complex::new(x.re().to_f64(), x.im().to_f64())
}

/// A compensated sum (Kahan), whose rounding is negligible.
fn sum(terms: impl Iterator<Item = Complex<f64>>) -> Complex<f64> {
    let (mut sum, mut lost) = (Complex::new(0.0, 0.0), Complex::new(0.0, 0.0));
    for term in terms {
        let term = term - lost;
        let next = sum + term;
        lost = (next - sum) - term;
        sum = next;
    }
    sum
}

/// Checks that `got` is `want` up to the rounding of `T` in sums whose terms have total magnitude `scale`.
fn close<T: Scalar>(got: T, want: Complex<f64>, scale: f64, what: &str) {
    let tolerance = 64.0 * <T::Real as num_traits::Float>::epsilon().to_f64();
    assert!((wide(got) - want).norm() <= tolerance * scale, "{what}: {got} instead of {want}");
}

pub fn vector_cases<B: VectorOps>(b: &B) {
    fn cases<T: Scalar, B: VectorOps>(b: &B) {
        let mut random = Random(7);
        for n in LENGTHS {
            for shift in [0, 1] {
                // A part that starts at an odd element is not aligned as a whole vector is.
                let (x, y) = (random.vector::<T>(n + shift), random.vector::<T>(n + shift));
                let (xs, ys) = (&x[shift..], &y[shift..]);
                let (dx, mut dy, mut dz) = (up(b, &x), up(b, &y), b.zeros::<T>(n + shift).unwrap());
                let mut out = b.zeros::<T>(1).unwrap();
                let mut norm = b.zeros::<T::Real>(1).unwrap();
                let what = format!("{} of {n} from {shift}", T::NAME);

                let px = B::part::<T>(&dx, shift..n + shift);
                b.dot(px, B::part::<T>(&dy, shift..n + shift), &mut out).unwrap();
                let exact = sum(xs.iter().zip(ys).map(|(&x, &y)| wide(x.conj()) * wide(y)));
                let size: f64 = xs.iter().zip(ys).map(|(&x, &y)| (x * y).abs().to_f64()).sum();
                let first = down(b, &out);
                close(first[0], exact, size, &format!("dot {what}"));
                b.fill(T::from_f64(3.0), &mut out).unwrap();
                b.dot(px, B::part::<T>(&dy, shift..n + shift), &mut out).unwrap();
                assert_eq!(down(b, &out), first, "the same bits twice");

                b.norm2_squared(px, &mut norm).unwrap();
                let exact = sum(xs.iter().map(|&x| wide(x).norm_sqr().into()));
                close(down(b, &norm)[0], exact, exact.re, &format!("norm {what}"));

                let (alpha, beta) = (random.scalar::<T>(), random.scalar::<T>());
                b.multiply(
                    px,
                    B::part::<T>(&dy, shift..n + shift),
                    B::part_mut::<T>(&mut dz, shift..n + shift),
                )
                .unwrap();
                for (i, z) in down(b, &dz).iter().enumerate().skip(shift) {
                    close(*z, wide(x[i]) * wide(y[i]), 2.0, &format!("multiply {what} at {i}"));
                }
                let d = random.vector::<T::Real>(n);
                b.scale(&up(b, &d), px, B::part_mut::<T>(&mut dz, shift..n + shift)).unwrap();
                for (i, z) in down(b, &dz).iter().enumerate().skip(shift) {
                    close(*z, wide(d[i - shift]) * wide(x[i]), 2.0, &format!("scale {what} at {i}"));
                }
                b.axpby(alpha, px, beta, B::part_mut::<T>(&mut dy, shift..n + shift)).unwrap();
                let got = down(b, &dy);
                assert_eq!(got[..shift], y[..shift]);
                for i in shift..n + shift {
                    let exact = wide(alpha) * wide(x[i]) + wide(beta) * wide(y[i]);
                    close(got[i], exact, 4.0, &format!("axpby {what} at {i}"));
                }
                b.fill(T::from_f64(f64::NAN), &mut dz).unwrap();
                b.axpby(alpha, &dx, T::zero(), &mut dz).unwrap();
                for (i, z) in down(b, &dz).iter().enumerate() {
                    close(*z, wide(alpha) * wide(x[i]), 2.0, &format!("axpby over NaN {what} at {i}"));
                }
            }
        }
    }
    cases::<f32, B>(b);
    cases::<f64, B>(b);
    cases::<Complex<f32>, B>(b);
    cases::<Complex<f64>, B>(b);
}

/// Offsets and columns of a ragged matrix: empty rows, short ones, one giant row.
fn ragged(rows: usize, columns: usize, random: &mut Random) -> (Vec<usize>, Vec<u32>) {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        let length = match row % 7 {
            _ if columns == 0 => 0,
            3 => 0,
            _ if row == rows / 2 => columns,
            kind => (random.next() as usize % (2 * kind + 3)).min(columns),
        };
        let mut line: Vec<u32> = if length == columns {
            (0..columns as u32).collect()
        } else {
            (0..length).map(|_| (random.next() % columns as u64) as u32).collect()
        };
        line.sort_unstable();
        line.dedup();
        indices.extend(line);
        offsets.push(indices.len());
    }
    (offsets, indices)
}

pub fn product_cases<B: VectorOps + Products>(b: &B) {
    fn cases<V: Scalar + Promote<T>, T: Scalar, B: VectorOps + Products>(b: &B) {
        let mut random = Random(11);
        for (rows, columns) in [(0, 0), (1, 1), (1, 500), (500, 1), (597, 43), (43, 597), (3000, 3000)] {
            let (offsets, indices) = ragged(rows, columns, &mut random);
            let values = random.vector::<V>(indices.len());
            let wide_offsets: Vec<u64> = offsets.iter().map(|&offset| offset as u64).collect();
            let narrow: Vec<u32> = offsets.iter().map(|&offset| offset as u32).collect();
            let (wide_offsets, narrow) = (up(b, &wide_offsets), up(b, &narrow));
            let (columns_there, values_there) = (up(b, &indices), up(b, &values));
            let shape = RowShape::default();
            let parts = |offsets| CsrParts::<V, B> {
                rows,
                columns,
                offsets,
                indices: &columns_there,
                values: &values_there,
                shape: &shape,
            };
            let a = parts(OffsetsRef::Lower(&*narrow));
            let with_wide_offsets = parts(OffsetsRef::Wide(&*wide_offsets));
            let (x, y) = (random.vector::<T>(columns), random.vector::<T>(rows));
            let (alpha, beta) = (random.scalar::<T>(), random.scalar::<T>());
            let mut product = vec![(Complex::new(0.0, 0.0), 0.0); rows];
            for row in 0..rows {
                for k in offsets[row]..offsets[row + 1] {
                    let value: T = values[k].widen();
                    let term = wide(value) * wide(x[indices[k] as usize]);
                    product[row].0 += term;
                    product[row].1 += term.norm();
                }
            }
            let (dx, mut dy) = (up(b, &x), up(b, &y));
            let gemv = Gemv { op: Op::None, alpha, x: &*dx, beta, y: &mut *dy };
            b.csr(with_wide_offsets, gemv).unwrap();
            for (row, got) in down(b, &dy).into_iter().enumerate() {
                let (product, size) = product[row];
                let exact = wide(alpha) * product + wide(beta) * wide(y[row]);
                close(got, exact, 4.0 * size + 4.0, &format!("{rows} x {columns} row {row}"));
            }
            b.fill(T::from_f64(f64::NAN), &mut dy).unwrap();
            if rows == columns {
                let mut xy = b.zeros::<T>(1).unwrap();
                b.csr_dot(a, &dx, &mut dy, &mut xy).unwrap();
                let exact = sum(x.iter().zip(&product).map(|(&x, p)| wide(x.conj()) * p.0));
                let size: f64 = x.iter().zip(&product).map(|(&x, p)| x.abs().to_f64() * p.1).sum();
                close(down(b, &xy)[0], exact, 8.0 * size, "x.y of a product");
            } else {
                b.csr(a, Gemv::plain(&*dx, &mut *dy)).unwrap();
            }
            for (row, got) in down(b, &dy).into_iter().enumerate() {
                close(
                    got,
                    product[row].0,
                    4.0 * product[row].1,
                    &format!("{rows} x {columns} row {row}, beta 0"),
                );
            }
        }
    }
    cases::<f32, f32, B>(b);
    cases::<f64, f64, B>(b);
    cases::<f32, f64, B>(b);
    cases::<Complex<f32>, Complex<f32>, B>(b);
    cases::<Complex<f32>, Complex<f64>, B>(b);
    cases::<Complex<f64>, Complex<f64>, B>(b);
}

pub fn infinite_entries_stay_in_their_rows<B: VectorOps + Products>(b: &B) {
    let (offsets, columns) = (up(b, &[0_u32, 1, 3, 3]), up(b, &[0_u32, 1, 2]));
    let values = up(b, &[2.0, 3.0, 4.0]);
    let offsets = OffsetsRef::Lower(&*offsets);
    let (shape, values) = (RowShape::default(), &values);
    let a = CsrParts::<f64, B> { rows: 3, columns: 3, offsets, indices: &columns, values, shape: &shape };
    let (x, mut y) = (up(b, &[1.0, f64::INFINITY, 1.0]), up(b, &[f64::NAN; 3]));
    b.csr(a, Gemv::plain(&*x, &mut *y)).unwrap();
    assert_eq!(down(b, &y), [2.0, f64::INFINITY, 0.0]);
}

/// Interleaved vectors: the dot products of each, and conversions from and to separate vectors. Small integers, so sums
/// are exact in any order.
pub fn interleaved_cases<B: VectorOps>(b: &B) {
    fn cases<T: Scalar, B: VectorOps>(b: &B, rows: usize, k: usize, shift: usize) {
        let what = format!("{} {rows} x {k} from {shift}", T::NAME);
        let value = |i: usize| {
            let im = if T::COMPLEX { (i % 7) as f64 - 3.0 } else { 0.0 };
            T::from_parts((i % 13) as f64 - 5.0, im).unwrap_or_default()
        };
        let n = rows * k;
        let x: Vec<T> = (0..n + shift).map(value).collect();
        let y: Vec<T> = (0..n + shift).map(|i| value(3 * i + 1)).collect();
        let (dx, mut dy) = (up(b, &x), up(b, &y));
        let (px, py) = (B::part(&dx, shift..n + shift), B::part_mut(&mut dy, shift..n + shift));
        let (x, y) = (&x[shift..], &y[shift..]);
        let mut out = up(b, &vec![value(2); k]);
        b.dot(px, py, &mut out).unwrap();
        for (j, dot) in down(b, &out).into_iter().enumerate() {
            let expected: T = (0..rows).map(|i| x[i * k + j].conj() * y[i * k + j]).sum();
            assert!(dot == expected, "{what}, vector {j}: {dot} for {expected}");
        }
        b.separate(k, px, py).unwrap();
        let apart = down(b, py);
        assert!((0..n).all(|e| apart[e % k * rows + e / k] == x[e]), "{what}: separate");
        let mut back = up(b, y);
        b.interleave(k, py, &mut back).unwrap();
        assert!(down(b, &back) == x, "{what}: interleave");
    }
    for k in [2, 3, 4, 7, 8, 16, 17, 31, 32] {
        for (rows, shift) in [(0, 0), (1, 1), (2, 0), (63, 1), (1000, 0), (3001, 0)] {
            cases::<f64, B>(b, rows, k, shift);
            cases::<f32, B>(b, rows, k, shift);
        }
        cases::<Complex<f32>, B>(b, 517, k, 0);
        cases::<Complex<f64>, B>(b, 517, k, 1);
    }
    let (x, mut y) = (b.zeros::<f64>(10).unwrap(), b.zeros::<f64>(10).unwrap());
    for k in [3, 33, 0] {
        assert!(b.interleave(k, &x, &mut y).is_err() && b.separate(k, &x, &mut y).is_err(), "{k}");
    }
    assert!(b.dot(&x, &y, &mut b.zeros(3).unwrap()).is_err());
    assert!(b.interleave(2, &x, B::part_mut(&mut y, 0..8)).is_err());
}

pub fn refusals<B: VectorOps>(b: &B) {
    let (mut x, mut y) = (b.zeros::<f64>(3).unwrap(), b.zeros::<f64>(4).unwrap());
    assert!(b.copy(&x, &mut y).is_err());
    assert!(b.read(&x, &mut [0.0; 2]).is_err());
    assert!(b.write(&[0.0; 2], &mut x).is_err());
    assert!(b.value(&x).is_err() && b.value(B::part(&x, 0..0)).is_err());
    assert!(b.axpby(1.0, &x, 1.0, &mut y).is_err());
    assert!(b.dot(&x, &y, &mut b.zeros(1).unwrap()).is_err());
    // Sizes that no memory has are errors, and the backend remains usable.
    for len in [usize::MAX, usize::MAX / 8, 1 << 46] {
        match b.zeros::<f64>(len) {
            Err(Error::OutOfMemory { bytes, .. }) => assert!(bytes >= 1 << 46),
            other => panic!("{len} doubles: {other:?}"),
        }
    }
    b.axpby(1.0, &up(b, &[1.0; 3]), 1.0, &mut x).unwrap();
    assert_eq!(down(b, &x), [1.0; 3]);
}
