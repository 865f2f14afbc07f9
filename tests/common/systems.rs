//! Systems to solve, and functions that the solvers' tests use to solve them.

// Not every test program uses all of it.
#![allow(dead_code, unused_macros)]

use residua::backend::{Conversions, KrylovSteps, Products, RowFacts, VectorOps};
use residua::krylov::{Cg, Outcome, Report, SolveOptions};
use residua::precondition::{Identity, Jacobi, Preconditioner};
use residua::{Csr, Host, LinearOperator, Real, Result, Scalar};
use std::ops::ControlFlow;

/// A backend under test, which can take matrices from the host.
pub trait Device: KrylovSteps + Products + Conversions + RowFacts {
    fn place<T: Scalar>(&self, a: Csr<T>) -> Csr<T, Self>;
}

impl Device for Host {
    fn place<T: Scalar>(&self, a: Csr<T>) -> Csr<T> {
        a
    }
}

#[cfg(feature = "cuda")]
impl Device for residua::Cuda {
    fn place<T: Scalar>(&self, a: Csr<T>) -> Csr<T, Self> {
        a.to_backend(self).unwrap()
    }
}

/// An operator without persistent iterations.
pub struct Stepwise<'a, A>(pub &'a A);

impl<T: Scalar, B: Products, A: LinearOperator<T, B>> LinearOperator<T, B> for Stepwise<'_, A> {
    fn rows(&self) -> usize {
        self.0.rows()
    }
    fn columns(&self) -> usize {
        self.0.columns()
    }
    fn apply(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>) -> Result<()> {
        self.0.apply(backend, x, y)
    }
    fn apply_dot(&self, backend: &B, x: &B::Slice<T>, y: &mut B::Slice<T>, xy: &mut B::Slice<T>) -> Result<()>
    where
        B: VectorOps,
    {
        self.0.apply_dot(backend, x, y, xy)
    }
    fn accurate_residual(
        &self,
        backend: &B,
        scale: T,
        b: &B::Slice<T>,
        x: &B::Slice<T>,
        r: &mut B::Slice<T>,
    ) -> Result<bool>
    where
        B: VectorOps,
    {
        self.0.accurate_residual(backend, scale, b, x, r)
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// CSR from a function that lists the (column, value) of a row in ascending order.
pub fn csr<T: Scalar>(n: usize, row: impl Fn(usize) -> Vec<(usize, T)>) -> Csr<T> {
    let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        for (j, v) in row(i) {
            columns.push(j as u32);
            values.push(v);
        }
        offsets.push(values.len());
    }
    Csr::from_parts(n, n, offsets, columns, values).unwrap()
}

pub fn tridiagonal<T: Scalar>(n: usize, diagonal: f64) -> Csr<T> {
    csr(n, |i| {
        let mut row = Vec::new();
        if i > 0 {
            row.push((i - 1, T::from_f64(-1.0)));
        }
        row.push((i, T::from_f64(diagonal)));
        if i + 1 < n {
            row.push((i + 1, T::from_f64(-1.0)));
        }
        row
    })
}

pub fn poisson2d(k: usize) -> Csr<f64> {
    csr(k * k, |i| {
        let (x, y) = (i % k, i / k);
        let mut row = Vec::new();
        for (j, inside) in [(i.wrapping_sub(k), y > 0), (i.wrapping_sub(1), x > 0)] {
            if inside {
                row.push((j, -1.0));
            }
        }
        row.push((i, 4.0));
        for (j, inside) in [(i + 1, x + 1 < k), (i + k, y + 1 < k)] {
            if inside {
                row.push((j, -1.0));
            }
        }
        row
    })
}

pub fn diagonal(entries: &[f64]) -> Csr<f64> {
    csr(entries.len(), |i| vec![(i, entries[i])])
}

/// b - A x by a plain loop.
pub fn true_residual<T: Scalar>(a: &Csr<T>, b: &[T], x: &[T]) -> Vec<T> {
    let mut y = vec![T::zero(); b.len()];
    a.product(&Host, T::one(), x, T::zero(), &mut y).unwrap();
    b.iter().zip(y).map(|(&b, y)| b - y).collect()
}

pub fn norm<T: Scalar>(x: &[T]) -> f64 {
    let largest = x.iter().map(|x| x.abs().to_f64()).fold(f64::MIN_POSITIVE, f64::max);
    x.iter().map(|x| (x.abs().to_f64() / largest).powi(2)).sum::<f64>().sqrt() * largest
}

pub struct Solved<T> {
    pub x: Vec<T>,
    pub report: Report,
    pub history: Vec<f64>,
}

/// Solves on the backend from `x`, and checks that the report's residual is true. If a device has persistent
/// iterations, it also solves step by step, which must give the same.
pub fn run<T: Scalar, B: Device>(
    backend: &B,
    a: &Csr<T>,
    jacobi: bool,
    b: &[T],
    x: Vec<T>,
    options: SolveOptions,
) -> Result<Solved<T>> {
    solved(backend, (a, jacobi), b, x, options, B::PERSISTENT_ITERATIONS > 0)
}

/// The same, but it solves step by step only if `stepwise` is set: if rounding errors dominate, persistent iterations
/// and single steps end differently.
pub fn solved<T: Scalar, B: Device>(
    backend: &B,
    (a, jacobi): (&Csr<T>, bool),
    b: &[T],
    x: Vec<T>,
    options: SolveOptions,
    stepwise: bool,
) -> Result<Solved<T>> {
    let copy = csr_copy(a);
    let device = backend.place(copy);
    let on_device = backend.upload(b.to_vec())?;
    let (mut x, mut again) = (backend.upload(x.clone())?, backend.upload(x)?);
    let mut cg = Cg::new(backend, b.len(), options)?;
    let go_on = |_, _| ControlFlow::Continue(());
    let preconditioner = if jacobi { Some(Jacobi::new(backend, &device)?) } else { None };
    let m: &dyn Preconditioner<T, B> = match &preconditioner {
        Some(m) => m,
        None => &Identity,
    };
    let mut steps = None;
    if stepwise {
        steps = Some(cg.solve(&Stepwise(&device), m, &on_device, &mut again, go_on)?);
    }
    let report = cg.solve(&device, m, &on_device, &mut x, go_on)?;
    if let Some(steps) = steps {
        assert_eq!(steps.outcome.is_converged(), report.outcome.is_converged(), "{steps:?}, {report:?}");
        let spent = |report: &Report| report.outcome == Outcome::IterationLimit;
        assert!(!spent(&report) || spent(&steps) && steps.iterations == report.iterations, "{steps:?}");
    }
    let x = backend.download(&x)?;
    if report.residual_norm.is_finite() {
        let expected = norm(&true_residual(a, b, &x));
        let scale = expected.max(norm(b) * 1e-13);
        // If x is huge, b - A x is known up to the rounding of A x, which differs with the order of its sums.
        let largest = a.parts().values.iter().map(|v| v.abs().to_f64()).fold(0.0, f64::max);
        let rounding = 8.0 * <T::Real as num_traits::Float>::epsilon().to_f64() * largest * norm(&x);
        let error = (report.residual_norm - expected).abs();
        assert!(error <= 0.01 * scale + rounding, "{report:?} but {expected:e}");
    }
    Ok(Solved { x, report, history: cg.into_history() })
}

pub fn csr_copy<T: Scalar>(a: &Csr<T>) -> Csr<T> {
    let parts = a.parts();
    let offsets = match parts.offsets {
        residua::backend::OffsetsRef::Lower(o) => o.iter().map(|&o| o as usize).collect(),
        residua::backend::OffsetsRef::Wide(o) => o.iter().map(|&o| o as usize).collect(),
    };
    Csr::from_parts(a.rows(), a.columns(), offsets, parts.indices.to_vec(), parts.values.to_vec()).unwrap()
}

pub fn defaults() -> SolveOptions {
    SolveOptions::default()
}

pub fn times_ones<T: Scalar>(a: &Csr<T>) -> Vec<T> {
    let mut b = vec![T::zero(); a.rows()];
    a.product(&Host, T::one(), &vec![T::one(); a.columns()], T::zero(), &mut b).unwrap();
    b
}

#[cfg(feature = "cuda")]
#[path = "device.rs"]
pub mod device;

/// Runs every body on the host, and on a CUDA device if there is one.
macro_rules! on_every_backend {
    ($($body:ident),* $(,)?) => {
        #[cfg(feature = "cuda")]
        mod cuda {
            $(
                #[test]
                fn $body() {
                    if let Some(device) = crate::systems::device::device() {
                        super::$body(&device).unwrap();
                    }
                }
            )*
        }

        mod host {
            $(
                #[test]
                fn $body() {
                    super::$body(&residua::Host).unwrap();
                }
            )*
        }
    };
}
