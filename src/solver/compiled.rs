//! Solvers that are compiled with the library.
//!
//! A solver is generic over the type of its values and over the backend, down to the last loop over the entries of the
//! last format: compiled wherever a program names one, that would be most of what the program's compiler has to do. For
//! the types and backends that are known here it is compiled once.

use super::builder::Builder;
use super::engine::{OnBackend, Placed};
#[cfg(feature = "cuda")]
use crate::backend::Cuda;
use crate::backend::Host;
use crate::error::{Error, Result};
use crate::matrix::Csr;
use crate::scalar::Scalar;
use num_complex::Complex;
use std::any::Any;

/// A solver on a backend.
type Made<T, B> = Result<Box<dyn OnBackend<T, B>>>;

/// The same value under another name of its type.
fn same<T: 'static, U: 'static>(value: T) -> Option<U> {
    let value: Box<dyn Any> = Box::new(value);
    value.downcast().ok().map(|value| *value)
}

/// A function that makes a solver on a backend for any of the types, each of them compiled here.
macro_rules! compiled {
    ($name:ident, $backend:ty: $($t:ty),*) => {
        pub(super) fn $name<T: Scalar>(
            backend: &$backend,
            a: Csr<T, $backend>,
            wishes: &Builder,
            why: Option<String>,
        ) -> Made<T, $backend> {
            let other = || Error::Unsupported(format!("a solver for values of type {}", T::NAME));
            let mut a: Box<dyn Any> = Box::new(a);
            $({
                // Nothing of this function is generic: it is compiled here and nowhere else.
                #[inline(never)]
                fn make(
                    backend: &$backend,
                    a: Csr<$t, $backend>,
                    wishes: &Builder,
                    why: Option<String>,
                ) -> Made<$t, $backend> {
                    Ok(Box::new(Placed::build(backend, a, wishes, why)?))
                }
                a = match a.downcast::<Csr<$t, $backend>>() {
                    Ok(a) => return make(backend, *a, wishes, why).and_then(|made| same(made).ok_or_else(other)),
                    Err(a) => a,
                };
            })*
            drop(a);
            Err(other())
        }
    };
}

compiled!(on_host, Host: f32, f64, Complex<f32>, Complex<f64>);
#[cfg(feature = "cuda")]
compiled!(on_cuda, Cuda: f32, f64, Complex<f32>, Complex<f64>);
