//! Several solvers at once on a device, each on a stream of its own, give the same bits as one after another.

#![cfg(feature = "cuda")]

#[path = "common/systems.rs"]
mod systems;

use residua::krylov::{Cg, FixedPatternCg, Outcome, SolveOptions};
use residua::matrix::Sell;
use residua::precondition::{Identity, Jacobi};
use residua::{Backend, Csr, Cuda, Error, LinearOperator, Result};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use systems::device::device;
use systems::*;

/// A system by its number: for one block, a cluster, the whole chip, and separate launches.
fn system(number: usize) -> Csr<f64> {
    poisson2d([20, 70, 150, 300, 700][number % 5])
}

fn right_hand_side(n: usize, number: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + number * 31) % 1009) as f64 / 500.0 - 1.0).collect()
}

/// x and the history.
fn solve(
    cuda: &Cuda,
    a: &dyn LinearOperator<f64, Cuda>,
    jacobi: Option<&Jacobi<f64, Cuda>>,
    b: &[f64],
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (b, mut x) = (cuda.upload(b.to_vec())?, cuda.zeros(b.len())?);
    let mut cg = Cg::new(cuda, a.rows(), SolveOptions::default())?;
    let report = match jacobi {
        Some(m) => cg.solve(a, m, &b, &mut x, |_, _| ControlFlow::Continue(()))?,
        None => cg.solve(a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?,
    };
    assert_eq!(report.outcome, Outcome::Converged);
    Ok((cuda.download(&x)?, cg.into_history()))
}

#[test]
fn solvers_side_by_side_give_the_bits_of_one_after_the_other() {
    let Some(cuda) = device() else { return };
    // Matrices that all threads share, one of them without persistent iterations, and matrices of their own.
    let matrices: Vec<Csr<f64, Cuda>> = (0..5).map(|number| cuda.place(system(number))).collect();
    let jacobi: Vec<_> = matrices.iter().map(|a| Jacobi::new(&cuda, a).unwrap()).collect();
    let run = |cuda: &Cuda, thread: usize| -> Result<Vec<(Vec<f64>, Vec<f64>)>> {
        let mut all = Vec::new();
        for (number, a) in matrices.iter().enumerate() {
            let b = right_hand_side(a.rows(), thread);
            let m = thread.is_multiple_of(2).then_some(&jacobi[number]);
            all.push(solve(cuda, a, m, &b)?);
            if number == 3 {
                // Also on the whole chip with a streamed matrix: blocks of two such launches must never wait for each
                // other.
                let sell = Sell::with_chunks(cuda, a, 32, 1)?;
                all.push(solve(cuda, &sell, m, &b)?);
            }
            if number == 2 {
                all.push(solve(cuda, &Stepwise(a), m, &b)?);
                all.push(solve(cuda, &cuda.place(system(number)), m, &b)?);
            }
        }
        Ok(all)
    };
    for streams in [2, 5] {
        let expected: Vec<_> = (0..streams).map(|thread| run(&cuda, thread).unwrap()).collect();
        for _ in 0..3 {
            let found = cuda.side_by_side(streams, |thread, cuda| run(cuda, thread)).unwrap();
            for (thread, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(found == expected, "{streams} streams, thread {thread}: other bits");
            }
        }
    }
}

#[test]
fn buffers_go_in_and_out_and_handles_may_alternate() {
    let Some(cuda) = device() else { return };
    let host = system(2);
    let n = host.rows();
    let b = cuda.upload(right_hand_side(n, 0)).unwrap();
    let alone = solve(&cuda, &cuda.place(csr_copy(&host)), None, &right_hand_side(n, 0)).unwrap().0;
    // Solvers and solutions are moved out of their threads; a buffer of another handle is written meanwhile.
    let mut out = cuda
        .side_by_side(3, |_, own| {
            let mut solver = FixedPatternCg::setup(own, own.place(csr_copy(&host)), SolveOptions::default())?;
            let late = cuda.upload(right_hand_side(n, 0))?;
            let mut x = own.zeros(n)?;
            assert!(solver.solve(&late, &mut x)?.outcome.is_converged());
            drop(late);
            Ok((solver, x))
        })
        .unwrap();
    for (solver, x) in &mut out {
        assert!(cuda.download(x).unwrap() == alone);
        // On this thread, work that one handle enqueues follows the work of another.
        let passing = cuda.zeros::<f64>(n).unwrap();
        cuda.fill(0.0, x).unwrap();
        assert!(solver.solve(&b, x).unwrap().outcome.is_converged());
        drop(passing);
        assert!(cuda.download(x).unwrap() == alone);
    }
    drop(b);
    drop(out);
    assert!(solve(&cuda, &cuda.place(host), None, &right_hand_side(n, 0)).unwrap().0 == alone);
}

#[test]
fn an_error_or_a_panic_of_one_thread_comes_out() {
    let Some(cuda) = device() else { return };
    let failed = cuda.side_by_side(3, |thread, cuda| {
        if thread == 1 { cuda.write(&[1.0, 2.0], &mut *cuda.zeros(1)?) } else { Ok(()) }
    });
    assert!(matches!(failed, Err(Error::Dimension { .. })), "{failed:?}");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        cuda.side_by_side(2, |thread, _| if thread == 0 { panic!("on purpose") } else { Ok(()) })
    }));
    assert!(panicked.is_err());
    assert_eq!(cuda.side_by_side(0, |_, _| Ok(())).unwrap(), []);
    assert_eq!(cuda.side_by_side(2, |thread, _| Ok(thread)).unwrap(), [0, 1]);
}
