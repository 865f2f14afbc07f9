//! The host's primitives, compared with their sequential twins. The same cases run on every backend.

#[path = "common/primitives/mod.rs"]
mod cases;
#[macro_use]
#[path = "common/on_host.rs"]
mod on_host;
#[path = "common/random.rs"]
mod random;

use residua::Host;

cases::each_case!(on_host);

#[test]
fn one_thread_and_several_agree() {
    for threads in [1, 3] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| cases::all_cases(&Host));
    }
}
