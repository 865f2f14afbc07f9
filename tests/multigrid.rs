//! Sparse products of matrices on the host, and algebraic multigrid on the host and on a device if there is one.

#[path = "common/multigrid/mod.rs"]
mod cases;
#[path = "common/collection.rs"]
mod collection;
#[cfg(feature = "cuda")]
#[path = "common/device.rs"]
mod device;
#[path = "common/grid.rs"]
mod grid;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;
#[path = "common/sparse.rs"]
mod sparse;

cases::each_case!(on_host);
on_host!(the_same_bits);

#[test]
fn rows_on_grids() {
    grid::rows_on_grids(&residua::Host);
}

#[test]
fn boxes_of_points() {
    grid::boxes_of_points(&residua::Host);
}

#[test]
fn points_between() {
    grid::points_between(&residua::Host);
}

/// The same bodies on a device.
#[cfg(feature = "cuda")]
mod on_device {
    macro_rules! on_device {
        ($($name:ident),*) => {$(
            #[test]
            fn $name() {
                if let Some(device) = crate::device::device() {
                    crate::cases::$name(&device);
                }
            }
        )*};
    }
    crate::cases::each_case!(on_device);

    /// Sparse products.
    mod products {
        macro_rules! on_device {
            ($($name:ident),*) => {$(
                #[test]
                fn $name() {
                    if let Some(device) = crate::device::device() {
                        crate::sparse::$name(&device);
                    }
                }
            )*};
        }
        crate::sparse::each_case!(on_device);
    }
}

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
