//! Triplets to CSR. `cargo bench --bench assembly`; beside SciPy: `python benches/peers/assembly.py`.
//! `RESIDUA_BENCH_TRIPLETS` sets the number of triplets (20 million).

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use residua::assemble::{Assembler, Assembly, Symmetry};
use residua::generate::Random;
use residua::{Host, Triplets};
use std::hint::black_box;

type Places = (Vec<u32>, Vec<u32>);

/// `n` entries in a square matrix of `rows` rows, each place given twice on average, in random order.
fn places(n: usize, rows: u64) -> Places {
    let mut random = Random::new(1);
    let mut distinct = || (random.bits() % rows) as u32;
    let distinct: Places = (0..n / 2).map(|_| (distinct(), distinct())).unzip();
    let mut random = Random::new(2);
    let picks = (0..n).map(|_| (random.bits() % (n as u64 / 2)) as usize);
    picks.map(|k| (distinct.0[k], distinct.1[k])).unzip()
}

fn sorted(places: Places, key: impl Fn((u32, u32)) -> (u32, u32)) -> Places {
    let mut pairs: Vec<(u32, u32)> = places.0.into_iter().zip(places.1).collect();
    pairs.sort_unstable_by_key(|&pair| key(pair));
    pairs.into_iter().unzip()
}

fn triplets(rows: usize, (is, js): Places) -> Triplets<f64> {
    let mut random = Random::new(3);
    let values = (0..is.len()).map(|_| random.bits() as i64 as f64).collect();
    Triplets::from_parts(rows, rows, is, js, values).expect("indices within the matrix")
}

fn assembly(c: &mut Criterion) {
    let n =
        std::env::var("RESIDUA_BENCH_TRIPLETS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000_000usize);
    let rows = (n / 20).max(1);
    let random = || places(n, rows as u64);
    let half = || {
        let (is, js) = random();
        is.into_iter().zip(js).take(n / 2).map(|(i, j)| (i.max(j), i.min(j))).unzip()
    };
    let mut group = c.benchmark_group("assembly");
    group.sample_size(10).throughput(Throughput::Elements(n as u64));
    group.warm_up_time(std::time::Duration::from_millis(500));
    let mut bench = |name: &str, symmetry: Symmetry, places: &dyn Fn() -> Places| {
        // Made on demand, so that a filter leaves the others unmade.
        let mut made = None;
        group.bench_function(name, |b| {
            let t = made.get_or_insert_with(|| triplets(rows, places()));
            let assembler = Assembler::default().symmetry(symmetry);
            b.iter_batched(
                || t.clone(),
                |t| assembler.to_csr(&Host, t).expect("assembled"),
                BatchSize::PerIteration,
            );
        });
    };
    bench("random", Symmetry::General, &random);
    bench("sorted by column", Symmetry::General, &|| sorted(random(), |(i, j)| (j, i)));
    bench("sorted by row, then column", Symmetry::General, &|| sorted(random(), |p| p));
    bench("lower triangle, random", Symmetry::Symmetric, &half);
    bench("lower triangle by column", Symmetry::Symmetric, &|| sorted(half(), |(i, j)| (j, i)));
    let mut made = None;
    group.bench_function("new values on the same pattern", |b| {
        let (t, map, a) = made.get_or_insert_with(|| {
            let t = triplets(rows, random());
            let (a, map) = Assembly::new(&Host, &t).expect("assembled");
            (t, map, a)
        });
        b.iter(|| map.update(&Host, black_box(t.parts().2), a).expect("updated"));
    });
    let mut made = None;
    group.bench_function("random, keeping the map", |b| {
        let t = made.get_or_insert_with(|| triplets(rows, random()));
        b.iter(|| Assembly::new(&Host, t).expect("assembled"));
    });
    group.finish();
}

criterion_group!(benches, assembly);
criterion_main!(benches);
