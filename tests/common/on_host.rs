//! Generates a test on the host for each case of a list.

/// Makes a test on the host for each given case of the module `cases`; to be called by `each_case`.
macro_rules! on_host {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            crate::cases::$name(&residua::Host);
        }
    )*};
}
