//! Sparse products of matrices and algebraic multigrid on the host; `gpu.rs` runs the same bodies on a device.

#[path = "common/multigrid.rs"]
mod cases;
#[path = "common/collection.rs"]
mod collection;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;
#[path = "common/sparse.rs"]
mod sparse;

cases::each_case!(on_host);
on_host!(the_same_bits);

/// Sparse products.
mod products {
    macro_rules! on_host {
        ($($name:ident),*) => {$(
            #[test]
            fn $name() {
                crate::sparse::$name(&residua::Host);
            }
        )*};
    }
    crate::sparse::each_case!(on_host);
}
