//! The host's primitives beside their sequential twins. The same cases run on every backend.

#[path = "common/primitives/mod.rs"]
mod common;
#[path = "common/random.rs"]
mod random;

use residua::Host;

macro_rules! cases {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() {
            common::$name(&Host);
        }
    )*};
}
common::each_case!(cases);

#[test]
fn one_thread_and_several_agree() {
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| common::all_cases(&Host));
    }
}
