//! Conjugate gradients on the GPUs of a machine, a process each, beside one GPU: microseconds an iteration, and the
//! rounds of sums and halos alone.
//!
//! `cargo bench --bench ranks_device [-- RANKS CASE...]`. A case is `KxK` (5 points), `KxKxK` (7 points) or `mesh:K` (linear
//! elements on K x K points that are moved at random); `1:CASE` is the local work of one rank with nobody to wait for,
//! which is what half a system costs beside the whole one on two.

#[cfg(all(unix, feature = "ranks"))]
mod run {
    use residua::backend::{Communicator, ExchangePlan, Replay};
    use residua::generate::{self, Random};
    use residua::ranks::{Group, Peers, launch};
    use residua::solver::{Method, PreconditionerChoice, Solver};
    use residua::{Backend, Csr, Cuda};
    use std::process::Command;
    use std::time::Instant;

    /// Where a process that this one has started finds what to do.
    const WORK: &str = "RESIDUA_BENCH_WORK";

    /// Iterations that are timed.
    const ITERATIONS: usize = 200;

    /// Where point (i, j) of the mesh lies.
    fn point(i: i64, j: i64) -> [f64; 2] {
        let mut random = Random::new(((i + 7) << 24 ^ (j + 7)) as u64);
        [i, j].map(|place| place as f64 + 0.6 * (random.unit() - 0.5))
    }

    /// The stiffness of an edge from a to b between triangles with c and d.
    fn edge([a, b, c, d]: [[f64; 2]; 4]) -> f64 {
        let cotangent = |c: [f64; 2]| {
            let (u, v) = ([a[0] - c[0], a[1] - c[1]], [b[0] - c[0], b[1] - c[1]]);
            (u[0] * v[0] + u[1] * v[1]) / (u[0] * v[1] - u[1] * v[0]).abs()
        };
        -0.5 * (cotangent(c) + cotangent(d))
    }

    /// Linear elements for -div grad with zero at the rim, on `k` times `k` points inside.
    fn mesh(k: usize) -> residua::Result<Csr<f64>> {
        let (size, mut offsets, mut columns, mut values) = (k as i64, vec![0], Vec::new(), Vec::new());
        let stiffness = |i: i64, j: i64, step: [i64; 2]| {
            let [c, d] = match step {
                [1, 0] => [[1, 1], [0, -1]],
                [0, 1] => [[1, 1], [-1, 0]],
                _ => [[1, 0], [0, 1]],
            };
            edge([[0, 0], step, c, d].map(|[x, y]| point(i + x, j + y)))
        };
        for j in 0..size {
            for i in 0..size {
                let row = values.len();
                let (mut diagonal, mut place) = (0.0, row);
                for [x, y] in [[-1, -1], [0, -1], [-1, 0], [0, 0], [1, 0], [0, 1], [1, 1]] {
                    if [x, y] == [0, 0] {
                        place = values.len();
                        columns.push((j * size + i) as u32);
                        values.push(0.0);
                        continue;
                    }
                    let value =
                        if x + y > 0 { stiffness(i, j, [x, y]) } else { stiffness(i + x, j + y, [-x, -y]) };
                    diagonal -= value;
                    if (0..size).contains(&(i + x)) && (0..size).contains(&(j + y)) {
                        columns.push(((j + y) * size + i + x) as u32);
                        values.push(value);
                    }
                }
                values[place] = diagonal;
                offsets.push(values.len());
            }
        }
        Csr::from_parts(k * k, k * k, offsets, columns, values)
    }

    fn matrix(name: &str) -> residua::Result<Csr<f64>> {
        if let Some(size) = name.strip_prefix("mesh:").and_then(|size| size.parse().ok()) {
            return mesh(size);
        }
        let sizes: Vec<usize> = name.split('x').filter_map(|size| size.parse().ok()).collect();
        match sizes[..] {
            [x, y] => generate::poisson2d(x, y),
            [x, y, z] => generate::poisson3d(x, y, z),
            _ => Err(residua::Error::InvalidArgument(format!("{name}: KxK or KxKxK"))),
        }
    }

    fn right(n: usize) -> Vec<f64> {
        let mut random = Random::new(3);
        (0..n).map(|_| random.unit() - 0.5).collect()
    }

    fn wishes() -> residua::solver::Builder {
        let jacobi: PreconditionerChoice = "jacobi".parse().unwrap_or_default();
        Solver::<f64>::builder()
            .method(Method::Cg)
            .preconditioner(jacobi)
            .reorder(residua::solver::Reorder::None)
            .tolerance(1e-30)
            .max_iterations(ITERATIONS)
    }

    fn alone(name: &str) -> residua::Result<()> {
        let (cuda, a) = (Cuda::new(0)?, matrix(name)?);
        let b = cuda.upload(right(a.rows()))?;
        let mut x = cuda.zeros(a.rows())?;
        let mut solver = wishes().build_on(&cuda, a.into_backend(&cuda)?)?;
        let (mut best, mut residual) = (f64::INFINITY, 0.0);
        for _ in 0..3 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_on(&cuda, &b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
            residual = report.relative_residual;
        }
        println!("{name:12} one GPU {:8.2} us an iteration, residual {residual:.10e}", 1e6 * best);
        Ok(())
    }

    fn rank(group: &Group, name: &str) -> residua::Result<()> {
        let count = residua::backend::cuda::devices().map_or(1, |all| all.len().max(1));
        let cuda = Cuda::new(group.rank() % count)?;
        let peers = Peers::new(cuda, group)?;
        let first = group.rank() == 0;
        let start = Instant::now();
        let a = matrix(name)?;
        let mut solver = wishes().all_parts(true).build_spread(&cuda, peers.clone(), &a)?;
        let build = start.elapsed().as_secs_f64();
        let b = cuda.upload(solver.own_part(&right(a.rows())))?;
        // What the solver does of its own accord, where that is another thing.
        let mut by_itself = None;
        if group.ranks() > 1 && a.rows() < 3_000_000 {
            let mut solver = wishes().build_spread(&cuda, peers.clone(), &a)?;
            let b = cuda.upload(solver.own_part(&right(a.rows())))?;
            let mut x = cuda.zeros(b.len())?;
            let mut best = f64::INFINITY;
            for _ in 0..3 {
                cuda.fill(0.0, &mut x)?;
                let report = solver.solve_into(&b, &mut x)?;
                best = best.min(report.seconds.iterating / report.iterations as f64);
                by_itself = report.trail.decisions.iter().find(|d| d.subject == "ranks").cloned();
            }
            if first && let Some(decision) = &by_itself {
                println!(
                    "{name:12} by itself {} ranks {:8.2} us: {}",
                    decision.chosen,
                    1e6 * best,
                    decision.why
                );
            }
        }
        drop(a);
        let mut x = cuda.zeros(b.len())?;
        let (mut best, mut bits, mut residual) = (f64::INFINITY, None, 0.0);
        for _ in 0..4 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_into(&b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
            let now = report.residual_norm.to_bits();
            assert_eq!(*bits.get_or_insert(now), now, "the same bits each time");
            residual = report.relative_residual;
        }
        // An iteration's two sums and its halo, without any work between.
        let halo = 256 * 256;
        let mut entries = vec![0; group.ranks()];
        if group.ranks() > 1 && group.rank() < 2 {
            entries[1 - group.rank()] = halo;
        }
        let plan = ExchangePlan { send: entries.clone(), receive: entries };
        peers.prepare_exchange::<f64>(&cuda, &plan)?;
        let (mut sums, length) = (cuda.zeros::<f64>(2)?, plan.send.iter().sum());
        let (send, mut receive) = (cuda.zeros::<f64>(length)?, cuda.zeros::<f64>(length)?);
        let mut round = f64::INFINITY;
        let mut rounds = cuda.record(|| {
            peers.begin_exchange(&cuda, &plan, &send)?;
            peers.exchange(&cuda, &plan, &send, &mut receive)?;
            peers.all_sum(&cuda, &mut sums)?;
            peers.all_sum(&cuda, &mut sums)
        })?;
        for _ in 0..3 {
            cuda.synchronize()?;
            group.all_gather(&[])?;
            let start = Instant::now();
            (0..ITERATIONS).try_for_each(|_| rounds.replay())?;
            cuda.synchronize()?;
            round = round.min(start.elapsed().as_secs_f64() / ITERATIONS as f64);
        }
        drop(rounds);
        if first {
            let share = solver.shares()[0];
            println!(
                "{name:12} {} GPUs {:7.2} us an iteration, residual {residual:.10e}, halo {}, build {build:.2} s; two sums \
                 and a halo of 256^2 {:.2} us",
                group.ranks(),
                1e6 * best,
                share.halo,
                1e6 * round
            );
        }
        Ok(())
    }

    pub fn main() -> residua::Result<()> {
        let work = std::env::var(WORK).unwrap_or_default();
        if let Some(name) = work.strip_prefix("alone:") {
            return alone(name);
        }
        if let Some(group) = Group::from_environment()? {
            match rank(&group, &work) {
                Ok(()) => group.leave(0),
                Err(error) => group.fail(&error),
            }
            return Ok(());
        }
        let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
        let ranks = named.first().and_then(|word| word.parse().ok()).unwrap_or(2);
        let cases = match named.get(1..) {
            Some(cases) if !cases.is_empty() => cases.to_vec(),
            _ => ["512x512", "64x64x64", "128x128x128", "256x256x256"].map(String::from).to_vec(),
        };
        let own =
            std::env::current_exe().map_err(|error| residua::Error::InvalidArgument(error.to_string()))?;
        for name in cases {
            let (ranks, name) = match name.strip_prefix("1:") {
                Some(name) => (1, name.to_string()),
                None => (ranks, name),
            };
            if ranks > 1 {
                let _ = Command::new(&own).env(WORK, format!("alone:{name}")).status();
            }
            let command = |_| {
                let mut command = Command::new(&own);
                command.env(WORK, &name);
                command
            };
            launch(ranks, command, || false)?;
        }
        Ok(())
    }
}

#[cfg(all(unix, feature = "ranks"))]
fn main() -> residua::Result<()> {
    run::main()
}

#[cfg(not(all(unix, feature = "ranks")))]
fn main() {}
