//! Generates a test on the host for each case of a list.

/// Runs the cases of the module `cases` by their names; for the `each_case` of a list.
macro_rules! on_host {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            crate::cases::$name(&residua::Host);
        }
    )*};
}
