//! Conjugate gradients on the GPUs of a machine, a process each, beside one GPU: microseconds an iteration, and the
//! rounds of sums and halos alone.
//!
//! `cargo bench --bench ranks_device [-- RANKS CASE...]`. A case is `KxK` (5 points) or `KxKxK` (7 points).

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

    fn matrix(name: &str) -> residua::Result<Csr<f64>> {
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
        let mut best = f64::INFINITY;
        for _ in 0..3 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_on(&cuda, &b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
        }
        println!("{name:12} one GPU {:8.2} us an iteration", 1e6 * best);
        Ok(())
    }

    fn rank(group: &Group, name: &str) -> residua::Result<()> {
        let count = residua::backend::cuda::devices().map_or(1, |all| all.len().max(1));
        let cuda = Cuda::new(group.rank() % count)?;
        let peers = Peers::new(cuda, group)?;
        let first = group.rank() == 0;
        let start = Instant::now();
        let a = matrix(name)?;
        let mut solver = wishes().build_spread(&cuda, peers.clone(), &a)?;
        let build = start.elapsed().as_secs_f64();
        let b = cuda.upload(solver.own_part(&right(a.rows())))?;
        drop(a);
        let mut x = cuda.zeros(b.len())?;
        let (mut best, mut bits) = (f64::INFINITY, None);
        for _ in 0..4 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_into(&b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
            let now = report.residual_norm.to_bits();
            assert_eq!(*bits.get_or_insert(now), now, "the same bits each time");
        }
        // An iteration's two sums and its halo, without any work between.
        let (other, halo) = (1 - group.rank().min(1), 256 * 256);
        let mut entries = vec![0; group.ranks()];
        entries[other] = if group.rank() < 2 { halo } else { 0 };
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
                "{name:12} {} GPUs {:7.2} us an iteration, halo {}, build {build:.2} s; two sums and a halo of 256^2 \
                 {:.2} us",
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
            let _ = Command::new(&own).env(WORK, format!("alone:{name}")).status();
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
