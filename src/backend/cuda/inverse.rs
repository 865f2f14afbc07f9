//! Passes a diagonal preconditioner to the kernels of a Krylov iteration.

/// Compiles a launch with the diagonal of the inverse as an option, in its stored type:
/// `with_diagonal!(inverse, n, d => launch)`.
macro_rules! with_diagonal {
    ($inverse:expr, $n:expr, $d:ident => $launch:expr) => {
        match $inverse {
            $crate::backend::Inverse::Diagonal(d) => {
                $crate::error::Error::check_dimension("length of the diagonal", $n, d.len())?;
                let $d = Some(d);
                $launch
            }
            $crate::backend::Inverse::Rounded(d) => {
                $crate::error::Error::check_dimension("length of the diagonal", $n, d.len())?;
                let $d = Some(d);
                $launch
            }
            // There is no diagonal, so this is a type for which the kernels are compiled in any case.
            $crate::backend::Inverse::Identity | $crate::backend::Inverse::General(_) => {
                let $d = None::<&$crate::backend::cuda::slice::Slice<f32>>;
                $launch
            }
        }
    };
}
pub(super) use with_diagonal;
