//! Conjugate gradients on the GPUs of a machine, with one process for each, compared with one GPU: microseconds per
//! iteration, and the time of sums and halos alone.
//!
//! `cargo bench --bench ranks_device [-- RANKS CASE...]`. A case is `KxK` (5 points), `KxKxK` (7 points) or `mesh:K`
//! (linear elements on K x K points that are moved at random). `1:CASE` runs the local work of one rank without
//! communication: half a system on one GPU, to compare with the whole system on two. In `own:KxKxK` (7 points) each
//! rank generates only its own planes, and `certified:KxKxK` solves it to 1e-8. `amg:KxKxK` is solved to 1e-8 with
//! multigrid, `jumps:KxKxK` likewise with coefficients over three decades, constant on blocks of 16^3 points, and
//! `aggregates:KxKxK` likewise without treating it as a grid. `bfs:N:K` is breadth-first search on an R-MAT graph with
//! N vertices and K N edges, from 16 sources with neighbours, on one GPU and on all. With the prefix `several-`,
//! nothing is run on one GPU alone.

#[cfg(all(unix, feature = "ranks"))]
mod run {
    use residua::backend::{Communicator, ExchangePlan, GraphSteps, Replay, Space};
    use residua::generate::{self, Random, RmatKind};
    use residua::graph::{Adjacency, SpreadGraph, vertex_parts};
    use residua::ranks::{Group, Peers, launch};
    use residua::solver::{Method, PreconditionerChoice, SolveReport, Solver};
    use residua::{Backend, Csr, Cuda};
    use std::ops::Range;
    use std::process::Command;
    use std::time::Instant;

    /// The environment variable that tells a child process its work.
    const WORK: &str = "RESIDUA_BENCH_WORK";

    /// The number of timed iterations.
    const ITERATIONS: usize = 200;

    /// The position of point (i, j) of the mesh.
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

    /// Linear elements for -div grad on `k` times `k` inner points, zero on the boundary.
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

    /// The types of cases.
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Whole,
        Own,
        Certified,
        Multigrid { jumps: bool, boxes: bool },
    }

    fn kind(name: &str) -> (Kind, &str) {
        match name.split_once(':') {
            Some(("own", grid)) => (Kind::Own, grid),
            Some(("certified", grid)) => (Kind::Certified, grid),
            Some(("amg", grid)) => (Kind::Multigrid { jumps: false, boxes: true }, grid),
            Some(("jumps", grid)) => (Kind::Multigrid { jumps: true, boxes: true }, grid),
            Some(("aggregates", grid)) => (Kind::Multigrid { jumps: true, boxes: false }, grid),
            _ => (Kind::Whole, name),
        }
    }

    fn has_jumps(kind: Kind) -> bool {
        matches!(kind, Kind::Multigrid { jumps: true, .. })
    }

    /// The rows of each rank: whole planes.
    fn planes([nx, ny, nz]: [usize; 3], ranks: usize) -> Vec<Range<usize>> {
        let bound = |rank: usize| if rank == ranks { nz } else { rank * nz / ranks / 8 * 8 };
        (0..ranks).map(|rank| nx * ny * bound(rank)..nx * ny * bound(rank + 1)).collect()
    }

    /// The coefficient of the block that contains a point.
    fn coefficient(place: [usize; 3]) -> f64 {
        let [x, y, z] = place.map(|at| (at / 16) as u64);
        1e3_f64.powf(Random::new(x << 40 ^ y << 20 ^ z).unit())
    }

    /// Some rows of the 7-point matrix of this size. An off-diagonal entry is the harmonic mean of two coefficients.
    fn some_rows(sizes: [usize; 3], jumps: bool, rows: Range<usize>) -> residua::Result<Csr<f64>> {
        type Part = (Vec<usize>, Vec<u32>, Vec<f64>);
        let [nx, ny, nz] = sizes;
        let n = nx * ny * nz;
        let threads = std::thread::available_parallelism().map_or(4, |count| count.get().div_ceil(2));
        let part = |rows: Range<usize>| -> Part {
            let (mut lengths, mut columns, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for row in rows {
                let place = [row % nx, row / nx % ny, row / nx / ny];
                let own = if jumps { coefficient(place) } else { 1.0 };
                let (mut diagonal, before) = (0.0, values.len());
                let mut middle = before;
                let ways = [(2, nx * ny), (1, nx), (0, 1), (0, 0), (0, 1), (1, nx), (2, nx * ny)];
                for (k, (axis, step)) in ways.into_iter().enumerate() {
                    if k == 3 {
                        middle = values.len();
                        columns.push(row as u32);
                        values.push(0.0);
                        continue;
                    }
                    let up = k > 3;
                    let there = if up { place[axis] + 1 < sizes[axis] } else { place[axis] > 0 };
                    let mut other = place;
                    if there {
                        other[axis] = if up { place[axis] + 1 } else { place[axis] - 1 };
                    }
                    let theirs = if jumps && there { coefficient(other) } else { own };
                    let coupling = 2.0 * own * theirs / (own + theirs);
                    diagonal += coupling;
                    if there {
                        columns.push(if up { row + step } else { row - step } as u32);
                        values.push(-coupling);
                    }
                }
                values[middle] = diagonal;
                lengths.push(values.len() - before);
            }
            (lengths, columns, values)
        };
        let bound = |k: usize| rows.start + k * rows.len() / threads;
        let parts: Vec<Part> = std::thread::scope(|scope| {
            let part = &part;
            let all: Vec<_> =
                (0..threads).map(|k| scope.spawn(move || part(bound(k)..bound(k + 1)))).collect();
            all.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
        });
        let mut offsets = Vec::with_capacity(n + 1);
        offsets.resize(rows.start + 1, 0);
        let entries = parts.iter().map(|part| part.2.len()).sum();
        let (mut columns, mut values) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        for (lengths, more, numbers) in parts {
            for length in lengths {
                offsets.push(offsets[offsets.len() - 1] + length);
            }
            columns.extend(more);
            values.extend(numbers);
        }
        offsets.resize(n + 1, values.len());
        Csr::from_parts(n, n, offsets, columns, values)
    }

    fn sizes(grid: &str) -> residua::Result<[usize; 3]> {
        let sizes: Vec<usize> = grid.split('x').filter_map(|size| size.parse().ok()).collect();
        sizes.try_into().map_err(|_| residua::Error::InvalidArgument(format!("{grid}: KxKxK")))
    }

    fn matrix(name: &str) -> residua::Result<Csr<f64>> {
        let (kind, grid) = kind(name);
        if kind != Kind::Whole {
            let sizes = sizes(grid)?;
            return some_rows(sizes, has_jumps(kind), 0..sizes.iter().product());
        }
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

    fn wishes(name: &str) -> residua::solver::Builder {
        let wishes = Solver::<f64>::builder()
            .method(Method::Cg)
            .symmetry(residua::scalar::Symmetry::Symmetric)
            .reorder(residua::solver::Reorder::None);
        if let Kind::Multigrid { boxes, .. } = kind(name).0 {
            let named = if boxes { "amg" } else { "amg:boxes=no" };
            return wishes.preconditioner(named.parse().unwrap_or_default());
        }
        let jacobi: PreconditionerChoice = "jacobi".parse().unwrap_or_default();
        if kind(name).0 == Kind::Certified {
            return wishes.preconditioner(jacobi);
        }
        wishes.preconditioner(jacobi).tolerance(1e-30).max_iterations(ITERATIONS)
    }

    /// Prints the results of multigrid.
    fn tell(name: &str, ranks: usize, report: &SolveReport, [best, setup]: [f64; 2], peak: usize) {
        let told = report.trail.decisions.iter().find(|decision| decision.subject == "preconditioner");
        println!(
            "{name:12} {ranks} GPUs {:8.2} ms, {} iterations to {:.10e}, {:?}, setup {:.0} ms, peak {:.1} GB; {}",
            1e3 * best,
            report.iterations,
            report.relative_residual,
            report.outcome,
            1e3 * setup,
            peak as f64 / 1e9,
            told.map_or("", |told| &told.why)
        );
    }

    fn alone(name: &str) -> residua::Result<()> {
        let (cuda, a) = (Cuda::new(0)?, matrix(name)?);
        let b = cuda.upload(right(a.rows()))?;
        let mut x = cuda.zeros(a.rows())?;
        let a = a.into_backend(&cuda)?;
        cuda.synchronize()?;
        let start = Instant::now();
        let mut solver = wishes(name).build_on(&cuda, a)?;
        cuda.synchronize()?;
        let setup = start.elapsed().as_secs_f64();
        let (mut best, mut residual) = (f64::INFINITY, 0.0);
        let mut solve = f64::INFINITY;
        for round in 0..3 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_on(&cuda, &b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
            solve = solve.min(report.seconds.solve);
            residual = report.relative_residual;
            if round == 2 && matches!(kind(name).0, Kind::Multigrid { .. }) {
                tell(name, 1, &report, [solve, setup], cuda.peak_memory());
                return Ok(());
            }
        }
        println!("{name:12} one GPU {:8.2} us an iteration, residual {residual:.10e}", 1e6 * best);
        Ok(())
    }

    /// Searches on one GPU and on all, from the same sources. Prints the harmonic mean of edges per second, counted as
    /// in Graph500 (each edge of the component once).
    fn search(group: &Group, cuda: Cuda, size: &str) -> residua::Result<()> {
        let numbers: Vec<usize> = size.split(':').filter_map(|number| number.parse().ok()).collect();
        let [n, factor] = numbers[..] else {
            return Err(residua::Error::InvalidArgument(format!("bfs:{size}: bfs:VERTICES:FACTOR")));
        };
        let whole = generate::rmat(n, factor, RmatKind::Symmetric, 1)?;
        let own = vertex_parts(&whole, group.ranks())?[group.rank()].clone();
        let degree = |v: usize| whole.row(v).0.len();
        let mut random = Random::new(5);
        let vertices = std::iter::repeat_with(|| random.below(n as u64) as usize).filter(|&v| degree(v) > 0);
        let sources: Vec<u32> = vertices.take(16).map(|v| v as u32).collect();
        let a = whole.to_backend(&cuda)?;
        let graph = Adjacency::on(&cuda, &a)?;
        let spread = SpreadGraph::new(Space::spread(cuda, Peers::new(cuda, group)?), &a, own.clone())?;
        let (mut alone, mut together, mut levels, mut edges) = (0.0, 0.0, 0, 0);
        for &source in &sources {
            let (at, mut expected) = (cuda.upload(vec![source])?, cuda.buffer(n)?);
            let mut best = [f64::INFINITY; 2];
            for _ in 0..3 {
                cuda.synchronize()?;
                let start = Instant::now();
                cuda.bfs(graph.parts(), &at, &mut expected)?;
                best[0] = best[0].min(start.elapsed().as_secs_f64());
                group.all_gather(&[])?;
                let start = Instant::now();
                let part = spread.bfs(&[source])?;
                best[1] = best[1].min(start.elapsed().as_secs_f64());
                levels = levels.max(part.count);
                let whole = cuda.download(&*expected)?;
                assert!(cuda.download(&*part.levels)? == whole[own.clone()], "levels from {source}");
                edges = (0..n).filter(|&v| whole[v] != u32::MAX).map(degree).sum::<usize>() / 2;
            }
            alone += best[0] / edges as f64;
            together += best[1] / edges as f64;
        }
        if group.rank() == 0 {
            let rate = |seconds: f64| sources.len() as f64 / seconds / 1e9;
            println!(
                "bfs:{size} {} neighbours, {levels} levels at most: one GPU {:.1} G edges/s, {} GPUs {:.1}: {:.2} times; \
                 rank 0 has {} of {n} vertices",
                whole.nonzeros(),
                rate(alone),
                group.ranks(),
                rate(together),
                alone / together,
                own.len()
            );
        }
        Ok(())
    }

    fn rank(group: &Group, name: &str) -> residua::Result<()> {
        let count = residua::backend::cuda::devices().map_or(1, |all| all.len().max(1));
        let cuda = Cuda::new(group.rank() % count)?;
        if let Some(size) = name.strip_prefix("bfs:") {
            return search(group, cuda, size);
        }
        let peers = Peers::new(cuda, group)?;
        let first = group.rank() == 0;
        let start = Instant::now();
        let (a, mut solver, build);
        if kind(name).0 == Kind::Whole {
            a = matrix(name)?;
            solver = wishes(name).all_parts(true).build_spread(&cuda, peers.clone(), &a)?;
            build = start.elapsed().as_secs_f64();
        } else {
            let (kind, grid) = kind(name);
            let parts = planes(sizes(grid)?, group.ranks());
            let jumps = has_jumps(kind);
            a = some_rows(sizes(grid)?, jumps, parts[group.rank()].clone())?;
            let start = Instant::now();
            solver = wishes(name).all_parts(true).build_spread_rows(&cuda, peers.clone(), &a, &parts)?;
            build = start.elapsed().as_secs_f64();
        }
        let b = cuda.upload(solver.own_part(&right(solver.columns())))?;
        // The solver's default, which may use fewer ranks.
        let mut by_itself = None;
        if group.ranks() > 1 && a.rows() < 3_000_000 {
            let mut solver = wishes(name).build_spread(&cuda, peers.clone(), &a)?;
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
        let (mut solve, mut format) = (f64::INFINITY, String::new());
        for round in 0..4 {
            cuda.fill(0.0, &mut x)?;
            let report = solver.solve_into(&b, &mut x)?;
            best = best.min(report.seconds.iterating / report.iterations as f64);
            solve = solve.min(report.seconds.solve);
            let chosen = report.trail.decisions.iter().find(|decision| decision.subject == "format");
            format = chosen.map_or(String::new(), |told| format!("{}: {}", told.chosen, told.why));
            if first && round == 3 && matches!(kind(name).0, Kind::Multigrid { .. }) {
                tell(name, group.ranks(), &report, [solve, build], cuda.peak_memory());
            }
            if kind(name).0 == Kind::Certified {
                if first {
                    let n = solver.columns();
                    let bytes = (cuda.peak_memory() * group.ranks()) as f64 / n as f64;
                    println!(
                        "{name:12} {} GPUs {n} unknowns, {:?} in {:.2} s, {} iterations to {:.3e}, build {build:.1} s, \
                         {bytes:.0} bytes a row, {format}",
                        group.ranks(),
                        report.outcome,
                        report.seconds.solve,
                        report.iterations,
                        report.relative_residual,
                    );
                }
                return Ok(());
            }
            let now = report.residual_norm.to_bits();
            assert_eq!(*bits.get_or_insert(now), now, "the same bits each time");
            residual = report.relative_residual;
        }
        if kind(name).0 != Kind::Whole {
            if first && kind(name).0 == Kind::Own {
                let (us, rows, bytes) = (1e6 * best, solver.columns(), cuda.peak_memory());
                println!(
                    "{name:12} {} GPUs {us:8.2} us an iteration, residual {residual:.10e}, build {build:.2} s, {:.0} bytes a row, \
                     {format}",
                    group.ranks(),
                    (bytes * group.ranks()) as f64 / rows as f64
                );
            }
            return Ok(());
        }
        // The communication of an iteration without the work in between: two sums, and the halo with neighbouring
        // ranks.
        let halo = 256 * 256;
        let beside = |other: usize| if other.abs_diff(group.rank()) == 1 { halo } else { 0 };
        let entries: Vec<usize> = (0..group.ranks()).map(beside).collect();
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
            let (beside, name) = match name.strip_prefix("several-") {
                Some(name) => (false, name.to_string()),
                None => (ranks > 1, name),
            };
            if beside && !["bfs:", "certified:"].iter().any(|word| name.starts_with(word)) {
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
