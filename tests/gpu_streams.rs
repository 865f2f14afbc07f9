//! Operations that run at once on several streams of a device: primitives, whose scans wait for what other blocks of
//! their launch publish, and kernels whose blocks all synchronise, which a second such launch must not keep from
//! starting. The solvers' streams are in `krylov_streams.rs`.

#![cfg(feature = "cuda")]

#[path = "common/device.rs"]
mod device;
#[allow(dead_code)]
#[path = "common/primitives/mod.rs"]
mod primitives;
#[path = "common/random.rs"]
mod random;

use device::device;
use residua::backend::{Backend, GraphSteps};
use residua::graph::{Adjacency, cuthill_mckee_order};
use residua::krylov::{Cg, SolveOptions};
use residua::precondition::Identity;
use residua::{Csr, Cuda, Host, generate};
use std::ops::ControlFlow;

const STREAMS: usize = 3;

/// The contents of one stream's shared buffers must not affect another: different cases run at the same time.
#[test]
fn primitives_at_once_on_streams_of_their_own() {
    let Some(b) = device() else { return };
    macro_rules! named {
        ($($name:ident),*) => { [$((stringify!($name), primitives::$name as fn(&Cuda))),*] };
    }
    let cases = primitives::each_case!(named);
    for turn in 0..cases.len().div_ceil(STREAMS) {
        let start = std::time::Instant::now();
        b.side_by_side(STREAMS, |thread, b| {
            let (_, case) = cases[(turn * STREAMS + thread) % cases.len()];
            primitives::with_sizes(&[33, 4099], || case(b));
            Ok(())
        })
        .unwrap();
        println!("{} and others: {:.2} s", cases[turn * STREAMS].0, start.elapsed().as_secs_f64());
    }
}

/// Runs a search, an ordering and a solver, each of which uses the whole chip, together with scans, many times.
#[test]
fn launches_whose_blocks_meet_do_not_keep_each_other_from_ending() {
    let Some(b) = device() else { return };
    let host = generate::poisson2d(220, 220).unwrap();
    let n = host.rows();
    let adjacency = Adjacency::new(&host).unwrap();
    let order = cuthill_mckee_order(&Host, adjacency.parts()).unwrap();
    let mut levels = vec![0; n];
    Host.bfs(adjacency.parts(), &[7], &mut levels).unwrap();
    let a: Csr<f64, Cuda> = host.to_backend(&b).unwrap();
    let ones = b.upload(vec![1.0; n]).unwrap();
    let solve = |b: &Cuda| {
        let mut x = b.zeros(n)?;
        let mut cg = Cg::new(b, n, SolveOptions::default().max_iterations(200))?;
        // Two hundred iterations are enough to compare bits.
        let _ = cg.solve(&a, &Identity, &ones, &mut x, |_, _| ControlFlow::Continue(()))?;
        b.download(&x)
    };
    let alone = solve(&b).unwrap();
    let start = std::time::Instant::now();
    b.side_by_side(6, |thread, b| {
        let graph = Adjacency::on(b, &a)?;
        let source = b.upload(vec![7_u32])?;
        for turn in 0..12 {
            match (thread + turn) % 4 {
                0 => assert!(solve(b)? == alone, "another x"),
                1 => {
                    let mut found = b.zeros(n)?;
                    b.bfs(graph.parts(), &source, &mut found)?;
                    assert!(b.download(&*found)? == levels, "other levels");
                }
                2 => {
                    let found = cuthill_mckee_order(b, graph.parts())?;
                    assert!(b.download(&*found)? == *order, "another order");
                }
                _ => primitives::with_sizes(&[100_003], || {
                    primitives::scan_cases(b);
                    primitives::reduce_by_key_cases(b);
                }),
            }
        }
        Ok(())
    })
    .unwrap();
    println!("72 pieces of work on six streams: {:.2} s", start.elapsed().as_secs_f64());
}
