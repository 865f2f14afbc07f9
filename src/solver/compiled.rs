//! Engines that are compiled with the library.
//!
//! A solver is generic over the type of its values and over the backend, down to the innermost loops. If it were
//! compiled wherever a program names one, that would be most of the program's compile time. For double precision and
//! the built-in backends it is compiled once, with the library. Single precision is compiled only if a program uses it,
//! since most don't.

use super::builder::Builder;
use super::engine::OnBackend;
use super::placed::Placed;
#[cfg(feature = "cuda")]
use crate::backend::Cuda;
use crate::backend::Host;
use crate::error::Result;
use crate::matrix::Csr;
use crate::scalar::Scalar;
use num_complex::Complex;

/// A solver on a backend.
type Made<T, B> = Result<Box<dyn OnBackend<T, B>>>;

/// The types of values that a solver takes: all that a matrix can have.
pub trait Solvable: Scalar {
    /// A solver on the host.
    #[doc(hidden)]
    fn on_host(backend: &Host, a: Csr<Self>, wishes: &Builder, why: Option<String>) -> Made<Self, Host>;

    /// A solver on a GPU.
    #[cfg(feature = "cuda")]
    #[doc(hidden)]
    fn on_cuda(backend: &Cuda, a: Csr<Self, Cuda>, wishes: &Builder, why: Option<String>)
    -> Made<Self, Cuda>;
}

/// Functions without generics are compiled here, unless they may be inlined: then at their callers.
macro_rules! solvable {
    ($($t:ty: #[$where_:meta];)*) => {$(
        impl Solvable for $t {
            #[$where_]
            fn on_host(backend: &Host, a: Csr<Self>, by: &Builder, why: Option<String>) -> Made<Self, Host> {
                Ok(Box::new(Placed::build(backend, a, by, why)?))
            }

            #[cfg(feature = "cuda")]
            #[$where_]
            fn on_cuda(
                backend: &Cuda,
                a: Csr<Self, Cuda>,
                by: &Builder,
                why: Option<String>,
            ) -> Made<Self, Cuda> {
                Ok(Box::new(Placed::build(backend, a, by, why)?))
            }
        }
    )*};
}
solvable! {
    f64: #[inline(never)];
    Complex<f64>: #[inline(never)];
    f32: #[inline];
    Complex<f32>: #[inline];
}
