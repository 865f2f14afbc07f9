//! Faults of a device under a solver. Each ends in its named error, and the process can solve the next system.

#![cfg(feature = "cuda")]

#[path = "common/device.rs"]
mod device;

use device::device;
use residua::backend::{Backend, KrylovSteps, VectorOps};
use residua::generate::poisson2d;
use residua::krylov::{self, Cg, SolveOptions};
use residua::operator::FunctionOperator;
use residua::precondition::Identity;
use residua::{Csr, Cuda, CudaError, Error, LinearOperator, Result};
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::Mutex;

/// One test at a time has most of the memory.
static MEMORY: Mutex<()> = Mutex::new(());

fn solve<B: Backend + KrylovSteps>(backend: &B, a: &dyn LinearOperator<f64, B>) -> Result<bool> {
    let b = backend.upload(vec![1.0; a.rows()])?;
    let mut x = backend.zeros(a.rows())?;
    let mut cg = Cg::new(backend, a.rows(), SolveOptions::default())?;
    Ok(cg.solve(a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?.outcome.is_converged())
}

#[test]
fn a_solver_without_memory_is_an_error_and_the_next_one_solves() {
    let Some(cuda) = device() else { return };
    let _alone = MEMORY.lock();
    let (_, total) = cuda.memory().unwrap();
    match Cg::<f64, _>::new(&cuda, total / 16, SolveOptions::default()) {
        Err(Error::OutOfMemory { bytes, .. }) => assert!(bytes as usize <= total),
        other => panic!("{other:?}"),
    }
    let a: Csr<f64, Cuda> = poisson2d(30, 30).unwrap().to_backend(&cuda).unwrap();
    assert!(solve(&cuda, &a).unwrap());
}

/// What the child does, and how the test asks for it: bursts or single steps.
const ROLE: &str = "RESIDUA_TEST_LOSES_DEVICE";

/// Runs in a process of its own: after a fault a device is of no use to its process.
#[test]
fn child_that_loses_its_device() {
    let Ok(way) = std::env::var(ROLE) else { return };
    let cuda = device().expect("the parent found it");
    let host = poisson2d(200, 200).unwrap();
    let stored = host.to_backend(&cuda).unwrap();
    let stepwise = FunctionOperator::<f64, Cuda, _>::new(40_000, 40_000, |backend: &Cuda, x, y| {
        LinearOperator::<f64, Cuda>::apply(&stored, backend, x, y)
    });
    let a: &dyn LinearOperator<f64, Cuda> = if way == "bursts" { &stored } else { &stepwise };
    let b = cuda.upload(vec![1.0; 40_000]).unwrap();
    let (mut x, mut sink) = (cuda.zeros(40_000).unwrap(), cuda.zeros(1000).unwrap());
    let mut cg = Cg::new(&cuda, 40_000, SolveOptions::default()).unwrap();
    let ended = cg.solve(a, &Identity, &b, &mut x, |iteration, _| {
        if iteration == 3 {
            // SAFETY: not what is asked for, on purpose: nothing lies at this address, and the kernel that reads it is
            // stopped by the device.
            let nowhere = unsafe { cuda.foreign::<f64>(0x1000, 1000) };
            let _ = cuda.axpby(1.0, nowhere, 0.0, &mut sink);
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(ended, Err(Error::Cuda(CudaError::KernelFault { .. }))), "{ended:?}");
    // The device stays lost, and says so; the host solves the next system.
    assert!(matches!(cuda.synchronize(), Err(Error::Cuda(_))));
    assert!(krylov::solve(&host, &vec![1.0; 40_000]).unwrap().report.outcome.is_converged());
    println!("lost, told, and solved elsewhere");
}

#[test]
fn a_device_lost_in_the_middle_is_an_error_and_the_host_solves_the_next() {
    if device().is_none() {
        return;
    }
    let _alone = MEMORY.lock();
    for way in ["bursts", "steps"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_loses_its_device", "--nocapture"])
            .env(ROLE, way)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success() && text.contains("solved elsewhere"), "{way}: {text}\n{errors}");
    }
}
