//! Assembly of triplets to CSR. `cargo bench --bench assembly`; the same with SciPy: `python
//! benches/peers/assembly.py`. `RESIDUA_BENCH_TRIPLETS` is the number of triplets (20 million).

#[path = "shared/timed.rs"]
mod timed;

use residua::assemble::{Assembler, Assembly, Symmetry};
use residua::generate::Random;
use residua::{Host, Triplets};
use timed::Timed;

type Places = (Vec<u32>, Vec<u32>);

/// `n` positions in a square matrix of `rows` rows, each drawn at random from n / 2 positions.
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

fn main() {
    let n =
        std::env::var("RESIDUA_BENCH_TRIPLETS").ok().and_then(|n| n.parse().ok()).unwrap_or(20_000_000usize);
    let rows = (n / 20).max(1);
    let random = || places(n, rows as u64);
    let half = || {
        let (is, js) = random();
        is.into_iter().zip(js).take(n / 2).map(|(i, j)| (i.max(j), i.min(j))).unzip()
    };
    let timed = Timed::new(n, "triplets");
    let bench = |name: &str, symmetry: Symmetry, places: &dyn Fn() -> Places| {
        // Triplets are generated on demand, so that this is not done if only other cases are selected.
        let mut made = None;
        let assembler = Assembler::default().symmetry(symmetry);
        timed.time_of(
            name,
            || made.get_or_insert_with(|| triplets(rows, places())).clone(),
            |t| assembler.to_csr(&Host, t).expect("assembled"),
        );
    };
    bench("random", Symmetry::General, &random);
    bench("sorted by column", Symmetry::General, &|| sorted(random(), |(i, j)| (j, i)));
    bench("sorted by row, then column", Symmetry::General, &|| sorted(random(), |p| p));
    bench("lower triangle, random", Symmetry::Symmetric, &half);
    bench("lower triangle by column", Symmetry::Symmetric, &|| sorted(half(), |(i, j)| (j, i)));
    let mut made = None;
    timed.time("new values on the same pattern", || {
        let (t, map, a) = made.get_or_insert_with(|| {
            let t = triplets(rows, random());
            let (a, map) = Assembly::new(&Host, &t).expect("assembled");
            (t, map, a)
        });
        map.update(&Host, t.parts().2, a).expect("updated");
    });
    let mut made = None;
    timed.time("random, keeping the map", || {
        let t = made.get_or_insert_with(|| triplets(rows, random()));
        Assembly::new(&Host, t).expect("assembled")
    });
}
