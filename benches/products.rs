//! Products y = A x in every format, with matrices far larger than the caches, compared with this machine's copy
//! bandwidth.
//!
//! ```text
//! cargo bench --bench products [-- MATRIX...]
//! KMP_BLOCKTIME=0 RESIDUA_MKL=FOLDER/libmkl_rt.so.3 LD_LIBRARY_PATH=FOLDER cargo bench --bench products
//! ```
//!
//! The second command also runs MKL, whose threads must not spin while other contenders run.
//!
//! GB/s count the minimum number of bytes: the matrix in CSR with 32-bit indices once, x once, y once, whatever the
//! format stores. The speed of memory depends on physical pages and on other programs. Therefore all contenders,
//! including MKL, use the same arrays in one process, and each round runs every one of them.

#[path = "peers/mkl.rs"]
mod mkl;

use rayon::prelude::*;
use residua::backend::{OffsetsRef, Op};
use residua::generate::{self, RmatKind};
use residua::matrix::{self, Csr, Sell, SparseMatrix};
use residua::scalar::Real;
use residua::{Backend, Host, LinearOperator, Scalar};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Duration of the rounds for one matrix.
const ROUNDS: Duration = Duration::from_secs(12);

type Stored<T> = Box<dyn SparseMatrix<T, Host>>;

/// A function that reads x and writes y.
type Body<'a, T> = Box<dyn FnMut(&[T], &mut [T]) + 'a>;

/// The times of `body` in all rounds, without the first call of each round.
struct Contender<'a, T> {
    name: String,
    bytes: usize,
    body: Body<'a, T>,
    seconds: Vec<f64>,
}

impl<'a, T: Scalar> Contender<'a, T> {
    fn new(name: impl Into<String>, bytes: usize, body: impl FnMut(&[T], &mut [T]) + 'a) -> Self {
        Self { name: name.into(), bytes, body: Box::new(body), seconds: Vec::new() }
    }

    fn round(&mut self, x: &[T], y: &mut [T]) {
        (self.body)(x, y);
        for _ in 0..2 {
            let start = Instant::now();
            (self.body)(x, y);
            self.seconds.push(start.elapsed().as_secs_f64());
        }
    }

    /// The smallest, median and largest time.
    fn spread(&self) -> [f64; 3] {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        [sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1]]
    }
}

/// The number of entries that one task reads, if only reading is measured.
const PIECE: usize = 1 << 16;

fn total(indices: &[u32]) -> u32 {
    indices.iter().fold(0, |sum, &j| sum ^ j)
}

/// Adds up values in several partial sums, so that additions do not wait for each other.
fn total_values<T: Scalar>(values: &[T]) -> T::Real {
    let mut sums = [T::zero(); 32];
    for block in values.as_chunks::<32>().0 {
        sums.iter_mut().zip(block).for_each(|(sum, &v)| *sum += v);
    }
    sums.into_iter().sum::<T>().re()
}

fn measure<T: Scalar>(name: &str, a: &Csr<T>) {
    let compulsory = LinearOperator::<T, Host>::bytes(a);
    let values = a.parts().values;
    let mut target = Host.zeros::<T>(values.len()).expect("memory");
    let part = values.len().div_ceil(rayon::current_num_threads());
    let mut contenders = vec![Contender::<T>::new("copy", 2 * size_of_val(values), |_, _| {
        target
            .par_chunks_mut(part)
            .zip(values.par_chunks(part))
            .for_each(|(to, from)| to.copy_from_slice(from));
    })];
    let (bytes, indices) = (size_of_val(values) + 4 * values.len(), a.parts().indices);
    contenders.push(Contender::new("read", bytes, move |_, _| {
        let pieces = indices.par_chunks(PIECE).zip(values.par_chunks(PIECE));
        black_box(
            pieces.map(|(j, v)| total(j) as f64 + total_values(v).to_f64()).reduce(|| 0.0, |a, b| a + b),
        );
    }));
    for optimized in [false, true] {
        if let OffsetsRef::Lower(offsets) = a.parts().offsets
            && let Some(mut product) = mkl::Product::new(a.parts(), offsets, optimized)
        {
            let name = if optimized { "MKL, optimised" } else { "MKL" };
            contenders.push(Contender::new(name, compulsory, move |x, y| product.apply(x, y)));
        }
    }
    let mut formats: Vec<(String, Stored<T>)> = Vec::new();
    println!("{name}, {}: conversions from CSR, ms", T::NAME);
    for format in matrix::formats::<T, Host, T>() {
        let start = Instant::now();
        let built = format.build(&Host, a);
        println!("  {:<16} {:7.1}", format.name(), start.elapsed().as_secs_f64() * 1e3);
        match built {
            // The CSR format would be a copy; MKL and the plain product below use the same arrays.
            Ok(_) if format.name() == Csr::<T>::NAME => {}
            Ok(stored) => formats.push((format.name().into(), stored)),
            Err(refused) => println!("{name}: {refused}"),
        }
    }
    if let Ok(sell) = Sell::with_chunks(&Host, a, 8, 256) {
        formats.push(("sell-8-256".into(), Box::new(sell)));
    }
    contenders.push(Contender::new("csr", compulsory, |x, y| {
        a.product(&Host, T::one(), x, T::zero(), y).expect("lengths fit");
    }));
    contenders.push(Contender::new("csr with x.y", compulsory, |x, y| {
        a.apply_dot(&Host, x, y, &mut [T::zero()]).expect("lengths fit");
    }));
    contenders.push(Contender::new("csr transposed", compulsory, |x, y| {
        a.product_op(&Host, Op::Transpose, T::one(), x, T::zero(), y).expect("lengths fit");
    }));
    for (format, stored) in formats {
        contenders.push(Contender::new(format, compulsory, move |x, y| {
            stored.product(&Host, T::one(), x, T::zero(), y).expect("lengths fit");
        }));
    }
    let mut x = Host.zeros::<T>(a.columns()).expect("memory");
    x.iter_mut().enumerate().for_each(|(i, x)| *x = T::from_f64((i % 100) as f64));
    let mut y = Host.zeros::<T>(a.rows()).expect("memory");
    let start = Instant::now();
    while start.elapsed() < ROUNDS {
        contenders.iter_mut().for_each(|contender| contender.round(&x, &mut y));
    }
    let speed = |c: &Contender<'_, T>| c.bytes as f64 / c.spread()[1] * 1e-9;
    let copy = speed(&contenders[0]);
    println!("{name}, {}, {} nonzeros, {} MB", T::NAME, a.nonzeros(), compulsory / 1_000_000);
    for c in &contenders {
        let [least, median, greatest] = c.spread().map(|s| s * 1e3);
        println!(
            "  {:<16} {median:7.2} ms ({least:.2}-{greatest:.2})  {:5.1} GB/s  {:.2} of copy",
            c.name,
            speed(c),
            speed(c) / copy
        );
    }
}

fn main() {
    type Make = fn() -> residua::Result<Csr<f64>>;
    let matrices: [(&str, Make); 8] = [
        ("poisson", || generate::poisson3d(160, 160, 160)),
        ("general", || generate::jumping([128, 128, 128], 1e6, 2, 1)),
        ("27points", || generate::poisson3d_27(100, 100, 100)),
        ("elasticity", || generate::elasticity3d(50, 50, 50, 0.3)),
        ("tridiagonal", || generate::tridiagonal(8_000_000)),
        ("rmat", || generate::rmat(1 << 20, 8, RmatKind::Symmetric, 1)),
        ("hypersparse", || generate::rmat(1 << 24, 1, RmatKind::Symmetric, 1)),
        ("f32", || generate::poisson3d(160, 160, 160)),
    ];
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    println!("{}", Host.description());
    for (name, make) in matrices {
        if asked.is_empty() || asked.iter().any(|a| a == name) {
            let a = make().expect("memory");
            if name == "f32" { measure(name, &a.map(|v| v as f32)) } else { measure(name, &a) }
        }
    }
}
