//! A test for each case of a list, on the host.

/// Runs the cases of the module `cases` by their names: for a list's `each_case`.
macro_rules! on_host {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            crate::cases::$name(&residua::Host);
        }
    )*};
}
