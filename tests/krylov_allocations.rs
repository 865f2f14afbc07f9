//! A warm solve makes no allocation that grows with the system: counted by the allocator of this test program.

use residua::batch::{Batch, Method as By};
use residua::generate::poisson2d;
use residua::krylov::{Cg, MultiCg, SolveOptions};
use residua::operator::FunctionOperator;
use residua::precondition::Jacobi;
use residua::scalar::Symmetry;
use residua::solver::Method;
use residua::{Host, Solver, Triplets, assemble::Assembly};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

struct Counting;

thread_local! {
    /// Allocations and bytes of this thread only: the test harness has threads of its own, which allocate at any time.
    static COUNTED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

// SAFETY: every call is passed to the system's allocator unchanged. Counting accesses no memory of the caller and
// allocates none: the counters are thread-local and need no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (allocations, bytes) = COUNTED.get();
        COUNTED.set((allocations + 1, bytes + layout.size()));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations and bytes of this thread during `work`.
fn counted(work: impl FnOnce()) -> (usize, usize) {
    let (allocations, bytes) = COUNTED.get();
    work();
    let (allocations_behind, bytes_behind) = COUNTED.get();
    (allocations_behind - allocations, bytes_behind - bytes)
}

/// Runs on a thread of a pool, because the queue by which other threads pass work to it allocates now and then.
#[test]
fn a_warm_solve_allocates_nothing_that_grows() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(warm_solve);
}

/// A batch that is solved again with other values allocates nothing, whether elimination or iteration solves it.
#[test]
fn a_batch_with_new_values_allocates_nothing() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(|| {
        let n = 40;
        let near = |i: usize| i.saturating_sub(1)..(i + 2).min(n);
        let columns: Vec<u32> = (0..n).flat_map(near).map(|j| j as u32).collect();
        let offsets: Vec<u64> = (0..=n).map(|i| (0..i).map(|i| near(i).len() as u64).sum()).collect();
        let systems = 20;
        let pattern = || Batch::<f64>::one_pattern(Host, systems, offsets.clone(), columns.clone()).unwrap();
        let dense = Batch::<f64>::dense(Host, systems, n).unwrap();
        let batches = [pattern().method(By::Lu), pattern().method(By::BiCgStab), dense];
        for (which, mut batch) in batches.into_iter().enumerate() {
            let diagonal = |at: usize| match which {
                2 => (at % (n * n)).is_multiple_of(n + 1),
                _ => {
                    let at = at % columns.len();
                    let row = offsets.partition_point(|&offset| offset as usize <= at) - 1;
                    columns[at] as usize == row
                }
            };
            let values = |time: usize| -> Vec<f64> {
                let of = |at: usize| if diagonal(at) { 9.0 } else { 1.0 / (1 + (at + time) % 7 * 10) as f64 };
                (0..batch.entries()).map(of).collect()
            };
            let given: Vec<Vec<f64>> = (0..3).map(values).collect();
            let b = vec![1.0; batch.rows()];
            let mut x = vec![0.0; batch.rows()];
            assert!(batch.solve_into(&given[0], &b, &mut x).unwrap().all_converged());
            let of_others = counted(|| {
                for values in &given[1..] {
                    assert_eq!(batch.solve_into(values, &b, &mut x).unwrap().apart, 0);
                }
            });
            assert_eq!(of_others, (0, 0), "batch {which}");
        }
    });
}

fn warm_solve() {
    // Below the size from which work is shared among threads, all counts are exact. The operator stores nothing, so
    // only the solver's own allocations are counted.
    let a = poisson2d(60, 60).unwrap();
    let n = a.rows();
    let chain = FunctionOperator::<f64, Host, _>::new(n, n, |_, x: &[f64], y: &mut [f64]| {
        for i in 0..x.len() {
            let left = if i > 0 { x[i - 1] } else { 0.0 };
            let right = x.get(i + 1).copied().unwrap_or(0.0);
            y[i] = 2.01 * x[i] - left - right;
        }
        Ok(())
    });
    let b: Vec<f64> = (0..n).map(|i| (i % 7) as f64).collect();
    let mut x = vec![0.0; n];
    let mut cg = Cg::new(&Host, n, SolveOptions::default()).unwrap();
    let mut jacobi = Jacobi::new(&Host, &a).unwrap();
    let mut solve = |cg: &mut Cg<f64, Host>, jacobi: &Jacobi<f64, Host>| {
        x.fill(0.0);
        let report = cg.solve(&chain, jacobi, &b, &mut x, |_, _| ControlFlow::Continue(())).unwrap();
        assert!(report.outcome.is_converged() && report.iterations > 50, "{report:?}");
    };
    solve(&mut cg, &jacobi);
    let (allocations, bytes) = counted(|| {
        jacobi.update(&Host, &a).unwrap();
        solve(&mut cg, &jacobi);
    });
    // The recording is one small closure. Nothing is allocated per iteration, and nothing of the size of a vector.
    assert!(allocations <= 1 && bytes <= 256, "{allocations} allocations, {bytes} bytes");

    // Several right-hand sides: lists of a few words per system, nothing per iteration, nothing of the size of a
    // vector.
    let several: Vec<f64> = (0..4 * n).map(|i| (i % 11) as f64).collect();
    let mut x = vec![0.0; 4 * n];
    let mut multi = MultiCg::new(&Host, n, 4, SolveOptions::default()).unwrap();
    let mut iterations = [0; 2];
    let mut solve = |tolerance: f64, iterations: &mut usize| {
        x.fill(0.0);
        let enough = |_, _, norm: f64| {
            if norm < tolerance { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        *iterations = multi.solve(&a, &jacobi, &several, &mut x, enough).unwrap()[0].iterations;
    };
    solve(0.0, &mut iterations[0]);
    let long = counted(|| solve(0.0, &mut iterations[0]));
    let short = counted(|| solve(100.0, &mut iterations[1]));
    assert!(iterations[0] > 2 * iterations[1], "{iterations:?}");
    assert!(long.0 <= 20 && long.1 <= 8192, "{long:?}");
    assert_eq!(long.0, short.0, "{long:?} {short:?}");

    // A solver: from the second update on, nothing grows. By default it would factorise this matrix.
    let builder = Solver::builder().method(Method::Cg).updates(true).symmetry(Symmetry::Symmetric);
    let mut solver = builder.build(&a).unwrap();
    let (values, mut x) = (a.parts().values.to_vec(), vec![0.0; n]);
    let mut solve = || {
        x.fill(0.0);
        solver.update(&values).unwrap();
        let report = solver.solve_into(&b, &mut x).unwrap();
        assert!(report.outcome.is_converged() && report.iterations > 50, "{report:?}");
    };
    solve();
    let (allocations, bytes) = counted(solve);
    assert!(allocations <= 4 && bytes <= 1024, "{allocations} allocations, {bytes} bytes");

    // New values on the same pattern.
    let entries = vec![2.0, 2.0, -1.0, -1.0];
    let triplets = Triplets::from_parts(2, 2, vec![0, 1, 0, 1], vec![0, 1, 1, 0], entries.clone()).unwrap();
    let (mut a, assembly) = Assembly::new(&Host, &triplets).unwrap();
    let (_, bytes) = counted(|| assembly.update(&Host, &entries, &mut a).unwrap());
    assert!(bytes <= 64, "{bytes} bytes");
}
