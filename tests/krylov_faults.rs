//! Faults of a device during a solve. Each is reported as its named error, and the process can solve the next system.

#![cfg(feature = "cuda")]

#[path = "common/device.rs"]
mod device;

use device::device;
use residua::backend::{Backend, KrylovSteps, VectorOps};
use residua::generate::poisson2d;
use residua::krylov::{Cg, SolveOptions};
use residua::operator::FunctionOperator;
use residua::precondition::Identity;
use residua::{Csr, Cuda, CudaError, Error, LinearOperator, Result};
use std::ops::ControlFlow;
use std::process::Command;

fn solve<B: Backend + KrylovSteps>(backend: &B, a: &dyn LinearOperator<f64, B>) -> Result<bool> {
    let b = backend.upload(vec![1.0; a.rows()])?;
    let mut x = backend.zeros(a.rows())?;
    let mut cg = Cg::new(backend, a.rows(), SolveOptions::default())?;
    Ok(cg.solve(a, &Identity, &b, &mut x, |_, _| ControlFlow::Continue(()))?.outcome.is_converged())
}

/// The variable that asks a child for a fault. Faults are provoked in processes of their own: after some of them the
/// device cannot be used by the process any more, and allocated memory is kept.
const FAULT: &str = "RESIDUA_TEST_FAULT";

#[test]
fn child() {
    let Ok(fault) = std::env::var(FAULT) else { return };
    let cuda = device().expect("the parent found it");
    match fault.as_str() {
        "memory" => runs_out_of_memory(&cuda),
        way => loses_its_device(&cuda, way == "persistent"),
    }
    println!("told, and solved the next");
}

fn runs_out_of_memory(cuda: &Cuda) {
    let (_, total) = cuda.memory().unwrap();
    match Cg::<f64, _>::new(cuda, total / 16, SolveOptions::default()) {
        Err(Error::OutOfMemory { bytes, .. }) => assert!(bytes as usize <= total),
        other => panic!("{:?}", other.map(|_| ())),
    }
    let a: Csr<f64, Cuda> = poisson2d(30, 30).unwrap().to_backend(cuda).unwrap();
    assert!(solve(cuda, &a).unwrap());
}

fn loses_its_device(cuda: &Cuda, persistent: bool) {
    let host = poisson2d(200, 200).unwrap();
    let stored = host.to_backend(cuda).unwrap();
    let stepwise = FunctionOperator::<f64, Cuda, _>::new(40_000, 40_000, |backend: &Cuda, x, y| {
        LinearOperator::<f64, Cuda>::apply(&stored, backend, x, y)
    });
    let a: &dyn LinearOperator<f64, Cuda> = if persistent { &stored } else { &stepwise };
    let b = cuda.upload(vec![1.0; 40_000]).unwrap();
    let (mut x, mut sink) = (cuda.zeros(40_000).unwrap(), cuda.zeros(1000).unwrap());
    let mut cg = Cg::new(cuda, 40_000, SolveOptions::default()).unwrap();
    let ended = cg.solve(a, &Identity, &b, &mut x, |iteration, _| {
        if iteration == 3 {
            // SAFETY: this violates the contract on purpose. There is no memory at this address, and the device stops
            // the kernel that reads it.
            let nowhere = unsafe { cuda.foreign::<f64>(0x1000, 1000) };
            let _ = cuda.axpby(1.0, nowhere, 0.0, &mut sink);
        }
        ControlFlow::Continue(())
    });
    assert!(matches!(ended, Err(Error::Cuda(CudaError::KernelFault { .. }))), "{ended:?}");
    // The device remains lost, and says so; the host solves the next system.
    assert!(matches!(cuda.synchronize(), Err(Error::Cuda(_))));
    assert!(residua::solve(&host, &vec![1.0; 40_000]).unwrap().report.outcome.is_converged());
}

#[test]
fn every_fault_is_told_and_the_next_system_solved() {
    if device().is_none() {
        return;
    }
    for fault in ["memory", "persistent", "steps"] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(FAULT, fault)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&child.stdout);
        let errors = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.success() && text.contains("solved the next"), "{fault}: {text}\n{errors}");
    }
}
