//! Ranks that know what others do not, or do not take part.

use crate::{N, random, ring};
use residua::backend::{Communicator, ExchangePlan, Parts};
use residua::krylov::Outcome;
use residua::solver::{self, PreconditionerChoice, Solver};
use residua::{Host, Result, Scalar, Triplets, assemble};

/// Earlier, a rank whose diagonal entries are all equal used M = I, and computed other sums than the ranks that scaled.
#[test]
fn a_diagonal_that_is_even_on_one_part_alone() {
    let mut triplets = Triplets::new(N, N).unwrap();
    for i in 0..N {
        triplets.push(i, i, if i < N / 3 { 4.0 } else { 3.0 + i as f64 }).unwrap();
        if i > 0 {
            triplets.push(i, i - 1, -1.0).unwrap();
            triplets.push(i - 1, i, -1.0).unwrap();
        }
    }
    let a = assemble::to_csr(&Host, triplets).unwrap();
    let (solution, mut b) = (random(5), vec![0.0; N]);
    a.product(&Host, 1.0, &solution, 0.0, &mut b).unwrap();
    let wishes =
        || Solver::<f64>::builder().method(solver::Method::Cg).preconditioner(PreconditionerChoice::Jacobi);
    let alone = wishes().device(solver::Device::Cpu).build(a.clone()).unwrap().solve(&b).unwrap();
    let solved: Vec<(Vec<f64>, usize)> = std::thread::scope(|scope| {
        let threads: Vec<_> = Parts::new(3)
            .into_iter()
            .map(|part| {
                let (a, b, wishes) = (&a, &b, wishes());
                scope.spawn(move || {
                    let mut solver = wishes.reorder(solver::Reorder::None).build_spread(&Host, part, a)?;
                    let mut x = vec![0.0; solver.numbers().len()];
                    let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                    Ok((x, report.iterations))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
    });
    assert!(solved.iter().all(|(_, iterations)| iterations.abs_diff(alone.report.iterations) <= 2));
    let x = solved.into_iter().flat_map(|(x, _)| x);
    assert!(x.zip(&solution).all(|(x, y)| (x - y).abs() < 1e-6));
}

/// Ranks that report slow communication.
#[derive(Debug, Clone)]
struct Slow(Parts);

impl Communicator<Host> for Slow {
    const ALONE: bool = false;

    fn part(&self) -> usize {
        Communicator::<Host>::part(&self.0)
    }

    fn parts(&self) -> usize {
        Communicator::<Host>::parts(&self.0)
    }

    fn all_sum<T: Scalar>(&self, backend: &Host, sums: &mut [T]) -> Result<()> {
        self.0.all_sum(backend, sums)
    }

    fn exchange<T: Scalar>(
        &self,
        backend: &Host,
        plan: &ExchangePlan,
        send: &[T],
        halo: &mut [T],
    ) -> Result<()> {
        self.0.exchange(backend, plan, send, halo)
    }

    fn agree(&self, stop: bool) -> Result<bool> {
        Communicator::<Host>::agree(&self.0, stop)
    }

    fn waits(&self) -> bool {
        true
    }

    fn latency(&self) -> f64 {
        1.0
    }

    fn deliver(&self, to_each: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        Communicator::<Host>::deliver(&self.0, to_each)
    }
}

#[test]
fn a_small_system_is_left_to_one_part_where_meetings_are_slow() {
    let (a, solution, mut b) = (ring(-1.0, -1.0), random(5), vec![0.0; N]);
    a.product(&Host, 1.0, &solution, 0.0, &mut b).unwrap();
    let (a, b) = (&a, &b);
    for all in [false, true] {
        let solved: Vec<(Option<Vec<f64>>, usize, Told)> = std::thread::scope(|scope| {
            let threads: Vec<_> = Parts::new(3)
                .into_iter()
                .map(|part| {
                    scope.spawn(move || {
                        let wishes = Solver::<f64>::builder().all_parts(all);
                        let mut solver = wishes.build_spread(&Host, Slow(part), a)?;
                        let mut x = vec![0.0; solver.numbers().len()];
                        let report = solver.solve_into(&solver.own_part(b), &mut x)?;
                        let decision = report.trail.decisions.iter().find(|d| d.subject == "ranks").unwrap();
                        let told = (report.outcome, report.iterations, decision.chosen.clone());
                        Ok((solver.whole(&x)?, x.len(), told))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Result<_>>().unwrap()
        });
        assert!(solved.iter().all(|(_, _, told)| *told == solved[0].2), "{solved:?}");
        assert_eq!(
            (solved[0].2.0, &*solved[0].2.2),
            (Outcome::Converged, if all { "3" } else { "one of 3 ranks" })
        );
        let rows: Vec<usize> = solved.iter().map(|(_, rows, _)| *rows).collect();
        assert_eq!(rows == [N, 0, 0], !all, "{rows:?}");
        let x = solved[0].0.as_ref().unwrap();
        assert!(x.iter().zip(&solution).all(|(x, y)| (x - y).abs() < 1e-6));
        assert!(solved[1].0.is_none());
    }
}

/// Outcome, iterations, and the number of ranks that took part.
type Told = (Outcome, usize, String);

/// No rank waits for one that has ended.
#[test]
fn a_part_that_ends_early_ends_the_others() {
    let mut parts = Parts::new(2);
    let (second, first) = (parts.pop().unwrap(), parts.pop().unwrap());
    drop(second);
    let error = first.all_sum(&Host, &mut [1.0_f64]).unwrap_err();
    assert!(error.to_string().contains("part 1 of 2 has ended"), "{error}");
}
