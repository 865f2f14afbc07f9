//! Products y = A x of every format, matrices far larger than the caches, beside this machine's copy bandwidth.
//!
//! ```text
//! cargo bench --bench products [-- poisson]
//! ```
//!
//! Criterion's throughput counts compulsory bytes: the matrix in CSR with 32-bit indices once, x once, y once,
//! whatever the format really stores. `benches/peers/products.py` measures MKL and SciPy on the same matrices.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rayon::prelude::*;
use residua::generate::{self, RmatKind};
use residua::matrix::{self, Csr, Sell, SparseMatrix};
use residua::{Backend, Host, LinearOperator, Scalar};
use std::hint::black_box;
use std::time::Duration;

type Stored<T> = Box<dyn SparseMatrix<T, Host>>;

/// Two arrays of 512 MB, each thread its own part; bytes read plus bytes written.
fn copy(c: &mut Criterion) {
    let n = 1 << 26;
    let (mut from, mut to) = (Host.zeros::<f64>(n).unwrap(), Host.zeros::<f64>(n).unwrap());
    from.fill(1.0);
    to.fill(2.0);
    let mut group = c.benchmark_group("copy");
    group.throughput(Throughput::Bytes(16 * n as u64));
    let part = n.div_ceil(rayon::current_num_threads());
    group.bench_function("f64", |b| {
        b.iter(|| {
            to.par_chunks_mut(part).zip(from.par_chunks(part)).for_each(|(to, from)| to.copy_from_slice(from))
        });
    });
    group.finish();
}

fn measure<T: Scalar>(c: &mut Criterion, name: &str, a: &Csr<T>) {
    let mut x = Host.zeros::<T>(a.columns()).unwrap();
    x.iter_mut().enumerate().for_each(|(i, x)| *x = T::from_f64((i % 100) as f64));
    let mut y = Host.zeros::<T>(a.rows()).unwrap();
    let mut xy = [T::zero()];
    let mut group = c.benchmark_group(format!("product/{name} {}", T::NAME));
    group.throughput(Throughput::Bytes(LinearOperator::<T, Host>::bytes(a) as u64));
    let mut formats: Vec<(String, Stored<T>)> = Vec::new();
    for format in matrix::formats::<T, Host, T>() {
        match format.build(&Host, a) {
            Ok(stored) => formats.push((format.name().into(), stored)),
            Err(refused) => println!("{name}: {refused}"),
        }
    }
    for (height, window) in [(8, 1), (8, 256), (16, 1)] {
        if let Ok(sell) = Sell::with_sections(&Host, a, height, window) {
            formats.push((format!("sell-{height}-{window}"), Box::new(sell)));
        }
    }
    for (format, stored) in &formats {
        group.bench_function(BenchmarkId::from_parameter(format), |b| {
            b.iter(|| stored.product(&Host, T::one(), black_box(&x), T::zero(), &mut y).unwrap());
        });
    }
    group.bench_function("csr with x.y", |b| {
        b.iter(|| a.apply_dot(&Host, black_box(&x), &mut y, &mut xy).unwrap())
    });
    if a.rows() == a.columns() {
        group.bench_function("csr transposed", |b| {
            b.iter(|| {
                let op = residua::backend::Op::Transpose;
                a.product_op(&Host, op, T::one(), black_box(&x), T::zero(), &mut y).unwrap();
            });
        });
    }
    group.finish();
}

/// Whether the command line asks for this matrix: building one that criterion then skips takes seconds.
fn wanted(name: &str) -> bool {
    let mut filters = std::env::args().skip(1).filter(|a| !a.starts_with('-')).peekable();
    filters.peek().is_none() || filters.any(|f| name.contains(&f) || f.contains(name))
}

fn products(c: &mut Criterion) {
    type Make = fn() -> residua::Result<Csr<f64>>;
    let matrices: [(&str, Make); 5] = [
        ("poisson 160^3", || generate::poisson3d(160, 160, 160)),
        ("elasticity 50^3", || generate::elasticity3d(50, 50, 50, 0.3)),
        ("tridiagonal 8e6", || generate::tridiagonal(8_000_000)),
        ("rmat 2^20", || generate::rmat(1 << 20, 8, RmatKind::Symmetric, 1)),
        ("poisson f32 160^3", || generate::poisson3d(160, 160, 160)),
    ];
    for (name, make) in matrices.into_iter().filter(|(name, _)| wanted(name)) {
        let a = make().unwrap();
        if name.contains("f32") { measure(c, name, &a.map(|v| v as f32)) } else { measure(c, name, &a) }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(1200))
        .without_plots();
    targets = copy, products
}
criterion_main!(benches);
